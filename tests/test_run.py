# SPDX-License-Identifier: MIT
"""make run, with shell scripts instead of programs, and the arguments that make test gives to pytest."""
import importlib.util
import os
import re
import shutil
import subprocess
import sys

import pytest

from trees import environment, make, programs_of, run, stand_in


def test_run_says_what_became_of_each_program(sources):
    """Shell scripts instead of programs, one for each way in which a program can end."""
    ways = {
        "good": ("echo fine", "ok", ""),
        "artist": ("echo picture >artist.png", "ok", "build/run/chapter03/artist.png"),
        "forgetful": (":", "FAILED", "wrote no picture"),
        "wrong": ("echo 'c[7]: got 3' >&2; exit 1", "FAILED", "exit status 1: c[7]: got 3"),
        "choosy": ("echo needs 2 GPUs, found 1 >&2; exit 2", "waived", "needs 2 GPUs, found 1"),
        "endless": ("sleep 60", "FAILED", "ran longer than 2 s"),
        "crash": ("kill -SEGV $$", "FAILED", "ended by signal 11"),
        "wrong_on_purpose": (
            "echo 'divergent barrier' >&2; exit 1",
            "ok",
            "status 1 as expected: divergent barrier",
        ),
        "right_by_mistake": (":", "FAILED", "exit status 0, its header expects 1"),
        "wrong_otherwise": ("echo oops >&2; exit 3", "FAILED", "exit status 3: oops"),
        "windowed": ('[ -z "$DISPLAY$WAYLAND_DISPLAY" ]', "ok", ""),
    }

    def header(name):
        return (
            " * Picture: yes\n"
            if name in ("artist", "forgetful")
            else " * Expect:  1\n"
            if name in ("wrong_on_purpose", "right_by_mistake", "wrong_otherwise")
            else ""
        )

    programs_of(sources, {name: script for name, (script, _, _) in ways.items()}, header)
    env = {"TIME_LIMIT": "2", "DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}
    log = run(sources, "scripts/run.sh", status=1, **env)
    for name, (_, result, why) in ways.items():
        assert re.search(
            r"^\[ ?\d+/11\] chapter03/%s +%s +[0-9.]+ s +%s *$" % (name, result, re.escape(why)), log, re.M
        ), log
    assert re.findall(r"^\[ ?(\d+)/11\]", log, re.M) == [str(i + 1) for i in range(11)]
    assert "running" not in log
    assert "4 ok, 6 failed, 1 waived, 0 not built" in log.splitlines()[-1]
    for name in ("forgetful", "wrong", "endless", "crash", "right_by_mistake", "wrong_otherwise"):
        (sources / "chapter03" / (name + ".cu")).unlink()
    assert "4 ok, 0 failed, 1 waived" in run(sources, "scripts/run.sh", **env)


def test_run_starts_the_processes_of_a_program_of_mpi(sources, tmp_path):
    """As its Run: field says; without mpirun it is one process."""
    programs_of(sources, {"several": "echo alone"}, lambda name: " * Needs:   libs=mpi\n")
    source = sources / "chapter03/several.cu"
    source.write_text(source.read_text().replace("Run:     ./bin", "Run:     mpirun -np 3 ./bin"))
    stand_in(tmp_path / "tools", "mpirun", 'echo "mpirun $1 $2 ${3##*/}, root $OMPI_ALLOW_RUN_AS_ROOT"')
    path = f"{tmp_path}/tools:{os.environ['PATH']}"
    assert "1 ok" in run(sources, "scripts/run.sh", PATH=path)
    printed = sources / "build/run/chapter03/several.txt"
    assert printed.read_text() == "mpirun -np 3 several, root 1\n"
    for tool in "sh", "dirname", "sed", "awk", "env":
        (tmp_path / tool).symlink_to(shutil.which(tool))
    program = str(sources / "bin/chapter03/several")
    log = run(sources, "scripts/mpirun.sh", "-np", "3", program, PATH=str(tmp_path))
    assert re.fullmatch("mpirun.sh: no mpirun on PATH, so there is one process; .*\nalone\n", log)


def test_run_on_a_terminal_names_the_program_that_is_running(sources):
    """The name of a running program is shown until its row is printed. The second program waits until the test has read its
    name."""
    programs_of(sources, {"early": ":", "late": f"read go <{sources}/go"})
    os.mkfifo(sources / "go")
    terminal, end = os.openpty()
    process = subprocess.Popen(
        ["scripts/run.sh", "chapter03"],
        cwd=sources,
        env=environment(TERM="xterm"),
        stdin=subprocess.DEVNULL,
        stdout=end,
        stderr=end,
    )
    os.close(end)
    shown = b""
    while not re.search(rb"\[2/2\] chapter03/late +running$", shown):
        shown += os.read(terminal, 4096)
    assert re.search(rb"\[1/2\] chapter03/early +running\r\x1b\[K\[1/2\] chapter03/early +ok ", shown), shown
    (sources / "go").write_text("go\n")
    while b"2 ok" not in shown:
        shown += os.read(terminal, 4096)
    os.close(terminal)
    assert re.search(rb"late +running\r\x1b\[K\[2/2\] chapter03/late +ok ", shown) and process.wait() == 0


@pytest.mark.parametrize(
    "options, passed",
    [
        ("", 3),
        ("-k one", 1),
        ("tests/test_b.py", 2),
        ("tests/test_b.py::test_two -v", 1),
        ("tests/test_a.py tests/test_b.py -k one", 1),
    ],
)
def test_what_pytest_is_given(tree, options, passed):
    """A path in PYTEST replaces the folder of the tests. With pytest-xdist the tests run in several processes."""
    (tree / "tests").mkdir(exist_ok=True)
    check = f"assert ('PYTEST_XDIST_WORKER' in os.environ) == {bool(importlib.util.find_spec('xdist'))}"
    (tree / "tests/test_a.py").write_text(f"import os\ndef test_one(): {check}\n")
    (tree / "tests/test_b.py").write_text(f"import os\ndef test_two(): {check}\ndef test_three(): {check}\n")
    log = make(tree, "test", f"PYTEST={options}", f"PYTHON={sys.executable}", "JOBS=2")
    assert re.search(rf"^(=+ )?{passed} passed\b", log.splitlines()[-1]), log
