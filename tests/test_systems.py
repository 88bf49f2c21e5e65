# SPDX-License-Identifier: MIT
"""scripts/systems.sh, with scripts instead of the tools that create other systems."""
import os
import re

import pytest

from trees import ROOT, make, run, stand_in


@pytest.mark.parametrize(
    "words, says",
    [
        ([], "name a folder"),
        (["/nonexistent"], "/nonexistent: is no folder"),
        (["run"], "name a folder"),
        (["{}", "debian11"], "debian11: must be one of"),
        (["{}", "mirror="], "mirror=: must be one of"),
        (["{}", "{}"], "must be one of"),
    ],
)
def test_systems_refuses_what_it_does_not_know(tmp_path, words, says):
    log = run(ROOT, "scripts/systems.sh", *(w.format(tmp_path) for w in words), status=64)
    assert says in log and log.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "prints, status, row",
    [
        ("4 ok, 0 failed, 1 waived", 0, "ok .* 4 ok, 0 failed, 1 waived"),
        ("1526 passed in 4.37s (0:07:44)", 0, "ok .* 1526 passed in"),
        ("3 ok, 1 failed", 2, "FAILED .* status 2: 3 ok, 1 failed"),
        ("a.cu:1:2: warning: unused\\n9 passed in 1s", 0, "FAILED .* 1 warnings: 9 passed"),
        ("update-alternatives: warning: skip a page\\n9 passed in 1s", 0, "ok .* 9 passed"),
        (None, 9, "FAILED .* the system could not be made: debian13-clang\\+\\+-user-prepare.log"),
    ],
)
def test_systems_says_what_passed(tmp_path, prints, status, row):
    """The command in the trial system prints text and ends with a status; or no command can run there."""
    tools, folder = tmp_path / "tools", tmp_path / "folder"
    folder.mkdir()
    stand_in(tools, "id", "echo 0")
    stand_in(tools, "git", "exit 0")
    stand_in(tools, "debootstrap", "exit 1")
    stand_in(
        tools,
        "unshare",
        r"""case $* in
*debootstrap*) for a; do case $a in *.new) mkdir -p "$a/etc/apt/apt.conf.d" ;; esac; done ;;
*"make CC=clang CXX=clang++ setup"*) printf '%s\n'; exit %d ;;
*) exit %d ;;
esac"""
        % (prints, status, prints is None),
    )
    log = run(
        ROOT,
        "scripts/systems.sh",
        str(folder),
        "debian13",
        "clang++",
        "user",
        "run",
        status=1 if row.startswith("FAILED") else 0,
        PATH="%s:%s" % (tools, os.environ["PATH"]),
    )
    assert re.search("^debian13    clang\\+\\+  user  make setup run +%s" % row, log, re.M), log
    assert log.endswith("0 ok, 1 failed\n" if row.startswith("FAILED") else "1 ok, 0 failed\n")
    assert {p.name for p in folder.iterdir()} == {"logs", "trixie-base", "trixie-packages"}


@pytest.mark.parametrize(
    "last, row", [("true", "ok .* 4 ok, 0 failed"), ("false", "FAILED .* status 1: 4 ok")]
)
def test_systems_runs_the_steps_of_the_dockerfile(tmp_path, last, row):
    """The steps run here, with scripts in the place of their commands; make is the last one."""
    tools, folder = tmp_path / "tools", tmp_path / "folder"
    (folder / "trixie-base/etc/apt/apt.conf.d").mkdir(parents=True)
    stand_in(tools, "id", "echo 0")
    stand_in(tools, "debootstrap", "exit 1")
    for tool in "git", "apt-get", "useradd", "rm":
        stand_in(tmp_path / "inside", tool, f'echo {tool} "$@"')
    stand_in(
        tmp_path / "inside", "make", f'echo make "$@"; echo \'4 ok, 0 failed\'; [ "$1" != run ] || {last}'
    )
    stand_in(
        tools,
        "unshare",
        f"""case $* in *"make run"*) ;; *) exit 0 ;; esac
while [ "$1" != env ]; do shift; done
shift
[ "$1 $2 $3 $4" = "DEBIAN=13 CUDA= sh -xc" ] || exit 8
steps=$(printf '%s' "$5" | sed 's,> */[^ ;]*,,g') # writes no file of this machine
PATH={tmp_path}/inside DEBIAN=13 CUDA= exec /bin/sh -fc "$steps"
""",
    )
    stand_in(tools, "git", "exit 0")
    log = run(
        ROOT,
        "scripts/systems.sh",
        str(folder),
        "debian13",
        "image",
        status=0 if last == "true" else 1,
        PATH="%s:%s" % (tools, os.environ["PATH"]),
    )
    assert re.search("^debian13    g\\+\\+      root  Dockerfile +%s" % row, log, re.M), log
    commands = (folder / "logs/debian13-g++-root-image.log").read_text()
    order = ["apt-get install", "make setup\n", "useradd", "make\n", "make run\n"]
    assert sorted(order, key=commands.index) == order and "curl" not in commands, commands
