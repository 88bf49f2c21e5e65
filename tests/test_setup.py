# SPDX-License-Identifier: MIT
"""make setup, with stand-ins for the package managers, and make doctor."""
import os
import re
import shutil

import pytest

from trees import ROOT, make, run, stand_in


class System:
    """A PATH with only the commands that setup needs, and a package manager that stores its packages in a file. It logs its
    calls, and fails for the packages that are named in the file `unreachable`."""

    MANAGERS = {  # the command that looks for a package, and the command that installs
        "Debian": ("dpkg-query", "apt-get"),
        "Fedora": ("rpm", "dnf"),
        "openSUSE": ("rpm", "zypper"),
        "Arch": ("pacman", "pacman"),
        "other": (),
    }
    COLUMN = {"Debian": 0, "Fedora": 3, "Arch": 4, "openSUSE": 5, "other": 0}

    def __init__(self, folder, name="Debian"):
        self.tools, self.name = folder / "tools", name
        self.tools.mkdir()
        for tool in ("sh", "awk", "cut", "env", "cat", "id", "grep", "sed", "cc", "g++"):
            (self.tools / tool).symlink_to(shutil.which(tool))
        self.have, self.log, self.unreachable = (
            folder / "installed",
            folder / "calls.log",
            folder / "unreachable",
        )
        self.have.write_text("".join(p + "\n" for p in [*self.packages(), "dpkg", "rpm", "pacman"]))
        self.unreachable.write_text("")
        self.os_release = folder / "os-release"  # replaces this machine's file
        self.os_release.write_text("ID=%s\n" % name.lower())
        query = 'grep -qxF -e "$p" %s' % self.have
        install = """echo "%%s $*" >>%s
case " $* " in *" update "*) [ ! -s %s ]; exit ;; esac
for p; do grep -qxF -e "$p" %s && { echo "E: Unable to fetch $p" >&2; exit 100; }; done
past=; for p; do case $p in install) past=1 ;; -S) past=1 ;; -*) ;; *) [ -z "$past" ] || echo "$p" >>%s ;; esac; done
""" % (
            self.log,
            self.unreachable,
            self.unreachable,
            self.have,
        )
        for tool in self.MANAGERS[name]:
            stand_in(
                self.tools,
                tool,
                {
                    "dpkg-query": "for p; do :; done; " + query + " && printf installed",
                    "rpm": 'for p; do :; done; [ "$1 $2" = "-q --whatprovides" ] && ' + query,
                    "pacman": 'if [ "$1" = -T ]; then p=$2; ' + query + "; exit; fi\n" + install % tool,
                }.get(tool, install % tool),
            )
        if name == "Debian":
            stand_in(self.tools, "apt-cache", "exit 0")

    def packages(self, *goals):
        """The names of the packages on this system: of all, or of those that some goals of make need."""
        table = (ROOT / "scripts/setup.sh").read_text().split("<<'END'\n")[1].split("END\n")[0]
        rows = [line.split("|") for line in table.splitlines()]
        names = [r[self.COLUMN[self.name]] for r in rows if not goals or set(goals) & set(r[1].split())]
        return [name for name in dict.fromkeys(names) if name != "-"]

    def user(self, number):
        (self.tools / "id").unlink()
        stand_in(self.tools, "id", "echo %d" % number)

    def setup(self, *goals, status=0, **env):
        return run(
            ROOT,
            str(self.tools / "sh"),
            "scripts/setup.sh",
            *goals,
            status=status,
            **{"PATH": str(self.tools), "OS_RELEASE": str(self.os_release), "CC": "cc", "CXX": "g++", **env}
        )

    def remove(self, *packages):
        self.have.write_text("".join(p + "\n" for p in self.have.read_text().split() if p not in packages))

    def calls(self):
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def debian(tmp_path):
    return System(tmp_path)


SYSTEMS = ["Debian", "Fedora", "openSUSE", "Arch"]
# The commands that install, without the names of packages
INSTALLS = {
    "Debian": "apt-get -qq -o Dpkg::Use-Pty=0 -o Acquire::Retries=1 -o Acquire::http::Timeout=20 install -y --no-install-recommends",
    "Fedora": "dnf install -y --setopt=install_weak_deps=False",
    "openSUSE": "zypper --non-interactive install --no-recommends",
    "Arch": "pacman -S --needed --noconfirm",
}
BY_HAND = {
    "Debian": "apt install",
    "Fedora": "dnf install",
    "openSUSE": "zypper install",
    "Arch": "pacman -S --needed",
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_setup_with_nothing_missing_asks_for_nothing(tmp_path, name):
    system = System(tmp_path, name)
    assert system.setup("test") == "setup: nothing is missing\n"
    assert system.calls() == []


@pytest.mark.parametrize("name", SYSTEMS)
def test_setup_installs_what_is_missing_in_one_transaction(tmp_path, name):
    """Setup installs the missing packages, and prints the command before it runs."""
    system = System(tmp_path, name)
    system.user(0)
    want = system.packages("all", "test")
    system.remove(*want)
    log = system.setup("test")
    assert "setup: missing: %s\n" % " ".join(want) in log
    assert system.calls() == ["%s %s" % (INSTALLS[name], " ".join(want))]
    assert re.search(
        r"^setup: %s .*%s$" % (system.MANAGERS[name][1], re.escape(" ".join(want))), log, re.M
    ), log
    assert "could not" not in log
    assert system.setup("test") == "setup: nothing is missing\n"


@pytest.mark.parametrize(
    "goals, needs",
    [
        ([], ["all"]),
        (["run"], ["all"]),
        (["chapter04/julia_gpu"], ["all"]),
        (["test"], ["all", "test"]),
        (["run", "test"], ["all", "test"]),
        (["bench"], ["all", "bench"]),
        (["docs"], ["all", "docs"]),
        (["gallery"], ["all", "gallery"]),
    ],
)
def test_setup_installs_what_the_goals_need(tmp_path, goals, needs):
    """make passes its other goals to setup."""
    system = System(tmp_path)
    system.user(0)
    want = system.packages(*needs)
    assert ("chromium" in want) == ("python3-pytest" in want) == ("xvfb" in want) == ("test" in goals)
    assert ("python3-matplotlib" in want) == bool({"test", "bench", "docs"} & set(goals))
    system.remove(*system.packages())
    tree = tmp_path / "tree"
    (tree / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts/setup.sh", tree / "scripts")
    (tree / "Makefile").write_text(
        "GOALS := $(MAKECMDGOALS)\n"
        + re.search(r"^setup:\n(\t.*\n)+", (ROOT / "Makefile").read_text(), re.M).group()
        + "%s:;@:\n" % " ".join(goals or ["all"])
    )
    (system.tools / "make").symlink_to(shutil.which("make"))
    run(
        tree,
        "make",
        "setup",
        *goals,
        PATH=str(system.tools),
        OS_RELEASE=str(system.os_release),
        CC="cc",
        CXX="g++"
    )
    assert [c.split("--no-install-recommends ")[1].split() for c in system.calls()] == [want]


def test_setup_fetches_lists_when_apt_does_not_know_a_package(debian):
    debian.user(0)
    stand_in(debian.tools, "apt-cache", "exit 100")
    debian.remove("libpng-dev")
    debian.setup()
    assert ["update" in c for c in debian.calls()] == [True, False]


@pytest.mark.parametrize(
    "name, png, numpy",
    [
        ("Debian", "libpng-dev", "python3-numpy"),
        ("Fedora", "libpng-devel", "python3-numpy"),
        ("openSUSE", "libpng16-devel", "python3-numpy"),
        ("Arch", "libpng", "python-numpy"),
    ],
)
def test_setup_names_what_it_can_not_install_and_goes_on(tmp_path, name, png, numpy):
    system = System(tmp_path, name)
    system.user(0)
    system.remove(png, numpy)
    system.unreachable.write_text(png + "\n")
    log = system.setup("test")
    assert "could not install %s, which is needed for: PNG pictures" % png in log
    assert "could not install %s" % numpy not in log
    assert "missing: %s\n" % png in system.setup("test")


@pytest.mark.parametrize("name", SYSTEMS)
def test_setup_as_a_user_takes_sudo(tmp_path, name):
    system = System(tmp_path, name)
    system.user(1000)
    want = system.packages("all")
    system.remove(*want)
    by_hand = "someone with the rights must run: %s %s\n" % (BY_HAND[name], " ".join(want))
    assert "setup: without sudo, " + by_hand in system.setup()
    stand_in(system.tools, "sudo", "echo user is not in the sudoers file >&2; exit 1")
    log = system.setup()
    assert "setup: since sudo refuses, " + by_hand in log and log.count("not in the sudoers") == 1
    assert system.calls() == []
    stand_in(system.tools, "sudo", 'exec "$@"')
    assert "setup: sudo %s " % system.MANAGERS[name][1] in system.setup()
    assert len(system.calls()) == 1 and system.calls()[0].endswith(" ".join(want))


def test_setup_takes_another_browser_for_chromium(debian):
    """Ubuntu has Chromium as a snap only, which apt does not install."""
    debian.remove("chromium")
    debian.os_release.write_text("NAME=Ubuntu\nID=ubuntu\n")
    assert debian.setup("test") == "setup: nothing is missing\n"
    debian.os_release.write_text("ID=debian\n")
    assert "missing: chromium" in debian.setup("test")
    debian.remove("chromium")
    stand_in(debian.tools, "google-chrome", "exit 0")
    assert debian.setup("test") == "setup: nothing is missing\n"


def test_setup_takes_another_ffmpeg(tmp_path):
    """On Fedora, another source of packages may have an ffmpeg that conflicts with Fedora's."""
    system = System(tmp_path, "Fedora")
    system.remove("ffmpeg-free")
    stand_in(system.tools, "ffmpeg", "exit 0")
    assert system.setup() == "setup: nothing is missing\n"


def test_setup_without_a_compiler_fails(debian):
    debian.user(0)
    debian.remove("g++")
    debian.unreachable.write_text("g++\n")
    (debian.tools / "g++").unlink()
    assert "there is no g++" in debian.setup(status=1)


@pytest.mark.parametrize("goals", [[], ["test"]])
def test_setup_on_another_system_says_what_to_install(tmp_path, goals):
    """On an unknown system setup prints a command for each system that it knows, without duplicate packages."""
    lines = System(tmp_path, "other").setup(*goals).splitlines()[1:]
    assert [line.split(":")[0].strip() for line in lines] == ["Debian", "Fedora", "Arch", "openSUSE"]
    for line in lines:
        words = line.split(": ")[1].split()
        assert len(words) == len(set(words)) and " ".join(words).startswith(
            BY_HAND[line.split(":")[0].strip()]
        )
        assert ("chromium" in words) == bool(goals)


def test_setup_takes_the_package_manager_that_knows_of_itself(tmp_path):
    """Debian has dnf, pacman (a game) and zypper as packages, and Fedora apt."""
    system = System(tmp_path, "Fedora")
    system.user(0)
    stand_in(system.tools, "apt-get", "echo apt-get ran; exit 9")
    stand_in(system.tools, "dpkg-query", "exit 1")
    stand_in(system.tools, "pacman", "echo pacman ran; exit 9")
    system.remove("libpng-devel")
    assert " ran" not in system.setup() and len(system.calls()) == 1


def test_hints_name_the_package_of_this_system(tmp_path):
    assert (
        run(
            ROOT,
            "sh",
            "scripts/setup.sh",
            "--how",
            "libpng-dev",
            "g++",
            "gcc",
            PATH=str(System(tmp_path, "Arch").tools),
        )
        == "pacman -S --needed libpng gcc\n"
    )


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_package_that_only_debian_has(tmp_path, name):
    """Elsewhere setup does not look for it, and a hint says so."""
    system = System(tmp_path, name)
    hint = lambda *packages: run(
        ROOT, "sh", "scripts/setup.sh", "--how", *packages, PATH=str(system.tools)
    ).strip()
    assert hint("libthrust-dev", "make") == BY_HAND[name] + (
        " libthrust-dev make" if name == "Debian" else " make"
    )
    if name == "Debian":
        assert hint("libthrust-dev") == "apt install libthrust-dev"
    else:
        assert hint("libthrust-dev") == name + " has no package for it, Debian has libthrust-dev"
        assert "-" not in system.packages() and system.setup() == "setup: nothing is missing\n"


def test_setup_that_fails_does_not_stop_the_build(tree, tmp_path, debian):
    """`make setup all` when a missing package cannot be installed."""
    debian.user(0)
    debian.remove("libpng-dev")
    debian.unreachable.write_text("libpng-dev\n")
    log = make(tree, "setup", "all", PATH="%s:%s" % (debian.tools, os.environ["PATH"]))
    assert log.index("could not install libpng-dev") < log.index("back end:")


def test_doctor(tree):
    log = make(tree, "doctor")
    for what in (
        "back end",
        "compiler",
        "toolkit",
        "driver",
        "GPU",
        "display",
        "OpenGL",
        "PNG pictures (libpng)",
        "Boost.Context",
        "tests",
    ):
        assert what in log
    assert "PNG" in make(tree, "doctor", "CC=nonesuch-cc", "CUDA_PATH=/nonexistent")
