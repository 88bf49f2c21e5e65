# SPDX-License-Identifier: MIT
"""make setup, with a stand-in for the package manager of Debian, and make doctor."""
import shutil

import pytest

from trees import ROOT, make, run, stand_in

UPDATE = "-qq -o Dpkg::Use-Pty=0 -o Acquire::Retries=1 -o Acquire::http::Timeout=20 update"
INSTALL = UPDATE.replace("update", "install -y --no-install-recommends")


class Debian:
    """A PATH with only the commands that setup needs, and an apt-get that logs its calls. It writes the packages that it installs
    to a file, and fails for those that are named in the file `unreachable`."""

    def __init__(self, folder):
        self.tools, self.log = folder / "tools", folder / "calls.log"
        self.have, self.unreachable = folder / "installed", folder / "unreachable"
        self.tools.mkdir()
        for tool in "sh", "awk", "env", "cat", "grep", "cc", "g++":
            (self.tools / tool).symlink_to(shutil.which(tool))
        table = (ROOT / "scripts/setup.sh").read_text().split("<<'END'\n")[1].split("END\n")[0]
        self.rows = [line.split("|") for line in table.splitlines()]
        self.have.write_text("".join(f"{row[0]}\n" for row in self.rows) + "dpkg\n")
        self.unreachable.write_text("")
        stand_in(self.tools, "id", "echo 0")
        query = f'for p; do :; done; grep -qxF -e "$p" {self.have} && printf installed'
        stand_in(self.tools, "dpkg-query", query)
        install = f"""echo "$*" >>{self.log}
for p; do grep -qxF -e "$p" {self.unreachable} && exit 100; done
past=; for p; do [ -z "$past" ] || echo "$p" >>{self.have}; [ "$p" != --no-install-recommends ] || past=1; done"""
        stand_in(self.tools, "apt-get", install)

    def packages(self, *goals):
        return [row[0] for row in self.rows if {"all", *goals} & set(row[1].split())]

    def remove(self, *packages):
        self.have.write_text("".join(f"{p}\n" for p in self.have.read_text().split() if p not in packages))

    def setup(self, *goals, status=0):
        env = {"PATH": str(self.tools), "OS_RELEASE": "/nonexistent", "CC": "cc", "CXX": "g++"}
        return run(ROOT, str(self.tools / "sh"), "scripts/setup.sh", *goals, status=status, **env)

    def calls(self):
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def debian(tmp_path):
    return Debian(tmp_path)


def test_setup_installs_what_the_goals_need(debian):
    """In one transaction, and it says so; when nothing is missing it asks for nothing."""
    assert debian.setup("test") == "setup: nothing is missing\n" and debian.calls() == []
    want = debian.packages("run")
    assert "libpng-dev" in want and "python3" in want and "xvfb" not in want
    debian.remove(*debian.packages("test"))
    log = debian.setup("run")
    assert f"setup: missing: {' '.join(want)}\nsetup: apt-get update\nsetup: apt-get install -y" in log
    assert "could not" not in log and debian.calls() == [UPDATE, f"{INSTALL} {' '.join(want)}"]
    rest = [package for package in debian.packages("test") if package not in want]
    debian.setup("run", "test")
    assert debian.calls()[3:] == [f"{INSTALL} {' '.join(rest)}"] and {"xvfb", "python3-pytest-xdist"} < set(
        rest
    )
    assert debian.setup("test") == "setup: nothing is missing\n" and len(debian.calls()) == 4


def test_setup_goes_on_without_what_it_can_not_install(debian):
    """Another browser replaces Chromium. Only a missing compiler is an error."""
    debian.remove("libpng-dev", "python3-numpy", "chromium")
    assert debian.setup("--missing", "run") == "libpng-dev: PNG pictures\n" and debian.calls() == []
    debian.unreachable.write_text("libpng-dev\n")
    stand_in(debian.tools, "google-chrome", "exit 0")
    log = debian.setup("test")
    assert "could not install libpng-dev, which is needed for: PNG pictures" in log and "chromium" not in log
    assert "could not install python3-numpy" not in log and "python3-numpy" in debian.have.read_text()
    (debian.tools / "g++").unlink()
    assert "there is no g++" in debian.setup(status=1)


def test_setup_as_a_user_takes_sudo(debian):
    """Without sudo it says what to run. On another system the hint has the names of its packages."""
    stand_in(debian.tools, "id", "echo 1000")
    debian.remove("libpng-dev")
    says = "someone with the rights must run: apt install libpng-dev\n"
    assert f"setup: without sudo, {says}" in debian.setup()
    stand_in(debian.tools, "sudo", "exit 1")
    assert f"setup: without sudo, {says}" in debian.setup() and debian.calls() == []
    stand_in(debian.tools, "sudo", 'exec "$@"')
    assert "setup: sudo apt-get install" in debian.setup() and len(debian.calls()) == 2
    (debian.tools / "apt-get").unlink()
    assert "this system is unknown, so nothing is installed: install g++ make " in debian.setup()
    stand_in(debian.tools, "pacman", '[ "$*" = "-T pacman" ]')
    none = "Arch has no package for it, Debian has libthrust-dev\n"
    assert debian.setup("--how", "libpng-dev", "g++", "gcc") == "pacman -S --needed libpng gcc\n"
    assert debian.setup("--how", "libthrust-dev") == none


def test_doctor(sources):
    log = make(sources, "doctor", "CC=nonesuch-cc", "CUDA_PATH=/nonexistent")
    for what in "back end", "cores", "GPU", "display", "library":
        assert f"\n{what} " in f"\n{log}", log
    assert (
        "back end       no compiler nonesuch-cc: " in log and "compiler       missing: nonesuch-cc\n" in log
    )
