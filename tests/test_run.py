# SPDX-License-Identifier: MIT
"""make run, make check and make sanitize, with shell scripts instead of programs."""
import os
import re
import shutil
import subprocess

from trees import environment, programs_of, run, stand_in


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
        "wrong_on_purpose": ("echo 'no barrier' >&2; exit 1", "ok", "status 1 as expected: no barrier"),
        "right_by_mistake": (":", "FAILED", "exit status 0, its header expects 1"),
        "wrong_otherwise": ("echo oops >&2; exit 3", "FAILED", "exit status 3: oops"),
        "windowed": ('[ -z "$DISPLAY$WAYLAND_DISPLAY" ]', "ok", ""),
        "odd": ("[ $# = 0 ] || { echo oops >&2; exit 1; }", "FAILED", "--size 3: exit status 1: oops"),
        "late": ('[ $# = 0 ] || [ "$1$CUDA_CPU_STREAMS$DISPLAY" = --sizelate ]', "ok", ""),
    }

    headers = dict.fromkeys(["artist", "forgetful"], " * Picture: yes\n")
    expects = ["wrong_on_purpose", "right_by_mistake", "wrong_otherwise"]
    headers |= dict.fromkeys(expects, " * Expect:  1\n")
    headers |= dict.fromkeys(["odd", "late"], " * Check:   --size 3 | --bug race (race)\n")
    programs_of(sources, {name: script for name, (script, _, _) in ways.items()}, headers)
    env = {"TIME_LIMIT": "2", "DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}
    log = run(sources, "scripts/run.py", status=1, **env)
    for name, (_, result, why) in ways.items():
        row = rf"^\[ ?\d+/13\] chapter03/{name} +{result} +[0-9.]+ s +{re.escape(why)} *$"
        assert re.search(row, log, re.M), log
    assert re.findall(r"^\[ ?(\d+)/13\]", log, re.M) == [str(i + 1) for i in range(13)]
    assert "5 ok, 7 failed, 1 waived, 0 not built" in log.splitlines()[-1]
    for name in [name for name, (_, result, _) in ways.items() if result == "FAILED"]:
        (sources / "chapter03" / (name + ".cu")).unlink()
    assert "5 ok, 0 failed, 1 waived" in run(sources, "scripts/run.py", **env)


def test_run_starts_the_processes_of_a_program_of_mpi(sources, tmp_path):
    """As its Run: field says; without mpirun it is one process."""
    programs_of(sources, {"several": "echo alone"}, {"several": " * Needs:   libs=mpi\n"})
    source = sources / "chapter03/several.cu"
    source.write_text(source.read_text().replace("Run:     ./bin", "Run:     mpirun -np 3 ./bin"))
    stand_in(tmp_path / "tools", "mpirun", 'echo "mpirun $1 $2 ${3##*/}, root $OMPI_ALLOW_RUN_AS_ROOT"')
    path = f"{tmp_path}/tools:{os.environ['PATH']}"
    assert "1 ok" in run(sources, "scripts/run.py", PATH=path)
    printed = sources / "build/run/chapter03/several.txt"
    assert printed.read_text() == "mpirun -np 3 several, root 1\n"
    for tool in "sh", "sed", "awk", "env", "cat":
        (tmp_path / tool).symlink_to(shutil.which(tool))
    program = str(sources / "bin/chapter03/several")
    log = run(sources, "scripts/mpirun.sh", "-np", "3", program, PATH=str(tmp_path))
    assert re.fullmatch("mpirun.sh: no mpirun on PATH, so there is one process; .*\nalone\n", log)


def test_run_names_the_program_that_is_running(sources):
    """The second program waits until the test has read its name."""
    programs_of(sources, {"early": ":", "late": f"read go <{sources}/go"})
    os.mkfifo(sources / "go")
    words = "scripts/run.py", "chapter03"
    process = subprocess.Popen(words, cwd=sources, env=environment(), stdout=subprocess.PIPE)
    shown = b""
    while not re.search(rb"\[1/2\] chapter03/early +ok .*\n\[2/2\] chapter03/late +$", shown):
        shown += os.read(process.stdout.fileno(), 4096)
    (sources / "go").write_text("go\n")
    assert re.match(b"ok .*\n2 ok, ", process.communicate()[0]) and process.returncode == 0


def test_check_says_what_was_found(sources):
    """Shell scripts instead of programs. What is wrong on purpose must be found; an exercise has no run in which a race is expected."""
    race = "echo 'cuda on the CPU: race in kernel k' >&2; echo '    thread 1' >&2; echo other >&2; exit 1"
    wrong = "echo 'c[0]: got 1' >&2; echo wrong >&2; exit 1"
    ways = {
        "clean": ("[ -n $CUDA_CPU_SCHEDULE$CUDA_CPU_STRICT ]", "", "clean", ""),
        "raced": (race, "", "race", "    cuda on the CPU: race in kernel k\n        thread 1\n"),
        "purpose": (race, " * Check:   --seed 1 (race)\n", "race, on purpose", "    cuda on the CPU: race"),
        "unnoticed": (
            ":",
            " * Check:   --seed 1 (race)\n",
            "FAILED",
            "    wrong on purpose, but nothing was found\n",
        ),
        "unlike": (
            f"({race}); exit 0",
            " * Expect:  1\n",
            "FAILED",
            "    exit status 0, its header expects 1\n",
        ),
        "broken": ("echo oops >&2; exit 3", "", "FAILED", "    exit status 3: oops\n"),
        "waived": ("echo no GPU >&2; exit 2", "", "waived", "    no GPU\n"),
        "sound": (wrong, " * Check:   --seed 1 | --seed 2 (race)\n", "FAILED", ""),
    }
    scripts, headers = ({name: way[i] for name, way in ways.items()} for i in (0, 1))
    programs_of(sources, scripts, headers)
    log = run(sources, "scripts/check.py", "chapter03", status=1, BIN="bin")
    for name, (_, _, result, reason) in ways.items():
        row = rf"^\[\d/9\] chapter03/{name}(?: --seed \d)? +{result} +[0-9.]+ s\n{re.escape(reason)}"
        assert re.search(row, log, re.M), f"{name}: {log}"
    assert log.endswith("2 of 9 clean, 1 wrong on purpose and found, 6 failed, 0 not built\n"), log
    for folder, file in ("bin", "sound"), (".", "sound.cu"):
        (sources / folder / "my/chapter03").mkdir(parents=True)
        shutil.copy(sources / folder / "chapter03" / file, sources / folder / "my/chapter03" / file)
    log = run(sources, "scripts/check.py", "my/chapter03/sound", status=1, BIN="bin")
    assert re.search(r"\n\[1/1\] my/chapter03/sound +FAILED .*\n    c\[0\]: got 1\n    wrong\n", log), log


def test_sanitizers_say_what_was_found(sources, tmp_path):
    """Those of the compiler, and the tools of compute-sanitizer, for which a script stands in. What is wrong on purpose does not run."""
    scripts = {"sound": "exit 0", "wrong": "exit 1", "bug": "echo x.cu:7:5: runtime error: null >&2; exit 1"}
    fields = {"wrong": " * Expect:  1\n", "sound": " * Check:   --seed 1 | --seed 2 (race)\n"}
    programs_of(sources, scripts, fields)
    log = run(sources, "scripts/check.py", status=1, TOOLS="compiler", BIN="bin")
    assert re.sub(r" +[\d.]+ s\n", "\n", log) == (
        "[1/2] chapter03/bug                      FOUND\n    x.cu:7:5: runtime error: null\n"
        "[2/2] chapter03/sound                    clean\n"
        "1 of 2 clean, 0 wrong on purpose and found, 1 failed, 0 not built\n"
    )
    script = f"""echo "$@" >>{tmp_path}/calls
case "$*" in *initcheck*bug*) echo '========= Uninitialized __global__ memory read of size 4 bytes'; exit 9 ;; esac"""
    stand_in(tmp_path / "path", "compute-sanitizer", script)
    path = f"{tmp_path}/path:{os.environ['PATH']}"
    log = run(sources, "scripts/check.py", status=1, TOOLS="compute-sanitizer", BIN="bin", PATH=path)
    assert "FOUND" in log and "\n    ========= Uninitialized __global__ memory read" in log
    calls = [line.split("/chapter03/") for line in (tmp_path / "calls").read_text().splitlines()]
    tools = [(re.search("--tool ([a-z]+)", options)[1], program) for options, program in calls]
    four = ["memcheck", "racecheck", "initcheck", "synccheck"]
    assert tools == [(tool, "bug") for tool in four[:3]] + [(tool, "sound --seed 1") for tool in four]
    assert all(("--leak-check full" in options) == ("memcheck" in options) for options, _ in calls)
