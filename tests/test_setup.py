# SPDX-License-Identifier: MIT
"""make setup, with a stand-in for the package manager of Debian, and make doctor."""
import re
import shutil

import pytest

from trees import ROOT, make, run, stand_in

# An apt-get that writes the packages that it installs to the file `have`, and its calls to `calls`
APT = """echo "$*" >>{0}/calls
past=; for p; do [ -z "$past" ] || echo "$p" >>{0}/have; [ "$p" != --no-install-recommends ] || past=1; done"""


@pytest.fixture
def setup(tmp_path):
    """setup("run", lacking=["g++"]) -> what scripts/setup.sh prints where these packages are missing, and the calls of apt-get. Only
    the commands that it needs are on PATH."""
    table = (ROOT / "scripts/libraries.txt").read_text().splitlines()
    rows = [re.split(" *[|] *", line) for line in table if not line.startswith("#")]
    known = [row[4] if len(row) > 6 else row[0] for row in rows] + ["dpkg"]
    for tool in "sh", "awk", "env", "cat", "grep", "cc", "g++":
        (tmp_path / "tools").mkdir(exist_ok=True)
        (tmp_path / "tools" / tool).symlink_to(shutil.which(tool))
    query = f'for p; do :; done; grep -qxF -e "$p" {tmp_path}/have && printf installed'
    scripts = {"dpkg-query": query, "apt-get": APT.format(tmp_path), "id": "echo 0", "cmp": ""}
    for name, script in scripts.items():
        stand_in(tmp_path / "tools", name, script)

    def setup(*goals, lacking=(), status=0, tree=ROOT):
        (tmp_path / "calls").write_text("")
        (tmp_path / "have").write_text("".join(f"{p}\n" for p in known if p not in lacking))
        env = {"PATH": f"{tmp_path}/tools", "OS_RELEASE": "/nonexistent", "CC": "cc", "CXX": "g++"}
        log = run(tree, f"{tmp_path}/tools/sh", "scripts/setup.sh", *goals, status=status, **env)
        return log, (tmp_path / "calls").read_text().splitlines()

    return setup


def test_setup_installs_what_the_goals_need(setup):
    """In one call, and it says so; when nothing is missing it asks for nothing."""
    assert setup("test") == ("setup: nothing is missing\n", [])
    log, calls = setup("run", lacking=["libpng-dev", "xvfb"])
    assert log.startswith("setup: missing: libpng-dev\nsetup: apt-get update\nsetup: apt-get install -y")
    assert calls[0].endswith(" update") and calls[1].endswith(" --no-install-recommends libpng-dev")
    assert setup("run", "test", lacking=["libpng-dev", "xvfb"])[1][1].endswith(" libpng-dev xvfb")
    assert setup("--missing", "run", lacking=["libpng-dev"]) == ("libpng-dev: PNG pictures\n", [])


def test_setup_goes_on_without_what_it_can_not_install(setup, tmp_path):
    """Without sudo, and on another system, it says what to run. Only a missing compiler is an error."""
    stand_in(tmp_path / "tools", "id", "echo 1000")
    says = "setup: without sudo, someone with the rights must run: apt install libpng-dev\n"
    log, calls = setup(lacking=["libpng-dev"])
    assert says in log and calls == []
    stand_in(tmp_path / "tools", "sudo", 'exec "$@"')
    stand_in(tmp_path / "tools", "apt-get", "exit 100")
    log, _ = setup(lacking=["libpng-dev"])
    assert "setup: sudo apt-get install" in log
    assert "could not install libpng-dev, which is needed for: PNG pictures" in log
    (tmp_path / "tools/g++").unlink()
    assert "there is no g++" in setup(status=1)[0]
    (tmp_path / "tools/apt-get").unlink()
    stand_in(tmp_path / "tools", "pacman", '[ "$*" = "-T pacman" ]')
    assert setup("--how", "libpng-dev", "g++", "gcc")[0] == "pacman -S --needed libpng gcc\n"


def test_setup_fetches_the_packages_of_the_playground(setup, tmp_path):
    """Once for each package-lock.json, for the goal site only."""
    for file in "scripts/setup.sh", "scripts/libraries.txt", "web/playground/package-lock.json":
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    (tmp_path / "tools/cmp").unlink()
    for tool in "cmp", "cp", "mkdir":
        (tmp_path / "tools" / tool).symlink_to(shutil.which(tool))
    stand_in(tmp_path / "tools", "npm", "echo npm $*; mkdir -p node_modules")
    nothing, fetched = "setup: nothing is missing\n", "npm ci --ignore-scripts"
    lock = tmp_path / "web/playground/package-lock.json"
    assert setup("run", tree=tmp_path)[0] == nothing
    assert "web/playground/node_modules: " in setup("--missing", "site", tree=tmp_path)[0]
    assert fetched in setup("site", tree=tmp_path)[0]
    assert setup("site", tree=tmp_path)[0] == nothing and setup("--missing", "site", tree=tmp_path)[0] == ""
    lock.write_text(lock.read_text() + "\n")
    stand_in(tmp_path / "tools", "npm", "exit 1")
    assert "could not fetch" in setup("site", tree=tmp_path)[0]


def test_doctor(sources):
    log = make(sources, "doctor", "CC=nonesuch-cc", "CUDA_PATH=/nonexistent")
    for what in "back end", "cores", "GPU", "display", "library":
        assert f"\n{what} " in f"\n{log}", log
    assert "back end       no compiler nonesuch-cc: " in log
    assert "compiler       missing: nonesuch-cc\n" in log
