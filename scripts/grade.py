#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""grade.py FOLDER: grades solutions of exercises, for make grade: prints a line for each .cu file below a folder. The functions that
the exercise asks for, and further __device__ functions, are put into the program of the suite; the submission's host part and check
are not compiled. docs/teaching.md has the verdicts, the limits, and what this holds and what it does not. BACKEND, BUILD and BIN are
the settings of make. The exit status is 1 unless all are right."""
import collections
import os
import pathlib
import re
import resource
import secrets
import shutil
import signal
import sys

from check import DETECTED
from exercise import BACKEND, TIME_LIMIT, build, why_not_built
from run import BUILD, ROOT, TOO_LONG, execute, lines_of, reason_of
from task import Exercise, Problem

RACES = BACKEND != "gpu" and os.environ.get("CHECK") != "0"
MEMORY_LIMIT = int(os.environ.get("MEMORY_LIMIT") or (0 if BACKEND == "gpu" else 4096))
OUTPUT_LIMIT = int(os.environ.get("OUTPUT_LIMIT") or 16)
MIB = 1 << 20
WORK = ROOT / BUILD / "grade"
LOG = WORK / "build.log"  # of make
SOURCES = pathlib.Path("my/.grade")  # relative to ROOT
SCHEDULES = "forward", "random:1", "random:2"


def limit(**limits):
    """For preexec_fn: sets limits such as AS=4 << 30."""
    return lambda: [resource.setrlimit(getattr(resource, f"RLIMIT_{n}"), (v, v)) for n, v in limits.items()]


def exercise_of(path):
    """The exercise that a file is a solution of: the name of the program, or None."""
    text = path.read_text(errors="replace")
    named = re.search(r"^ \* Run: .*\./bin/(?:my/)?([a-z0-9_]+/[a-z0-9_]+)(?![a-z0-9_/])", text, re.M)
    name = named[1] if named else str(path.with_suffix("").relative_to(path.parent.parent))
    return name if re.fullmatch("[a-z0-9_]+/[a-z0-9_]+", name) and (ROOT / f"{name}.cu").is_file() else None


def run_once(binary, options, schedule):
    """Runs the program in a folder of its own, with limits. Returns its status, the lines of stderr, and the verdict of
    common/exercise/verdict.c if it comes with the word that is drawn here."""
    here = WORK / "runs/here"
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir(parents=True)
    word = secrets.token_hex(16)
    (WORK / "word").write_text(word + "\n")
    # The race detector reserves 32 GiB of addresses for its table, and uses little of that.
    memory = {"AS": (MEMORY_LIMIT + (32768 if RACES else 0)) * MIB} if MEMORY_LIMIT else {}
    descriptors = f'exec 3<"{WORK}/word" 4>"{WORK}/said" && rm "{WORK}/word" && exec "$@"'
    env = {"PATH": os.environ["PATH"], "HOME": str(here), "TMPDIR": str(here), "EXERCISE_GRADED": "1"}
    env |= dict(CUDA_CPU_SCHEDULE=schedule, CUDA_CPU_STREAMS="late", CUDA_CPU_STRICT="1", CUDA_CPU_FILL="nan")
    limits = limit(CORE=0, CPU=TIME_LIMIT * 2, FSIZE=OUTPUT_LIMIT * MIB, **memory)
    command = ["sh", "-c", descriptors, "sh", binary, *options]
    status, errors = execute(command, here.parent / "run", TIME_LIMIT, cwd=here, env=env, preexec_fn=limits)
    said = [line.removeprefix(word + " ") for line in lines_of(WORK / "said") if line.startswith(word + " ")]
    return status, errors, said[-1] if said else ""


def grade(name, goal):
    """The verdict on a program that make has built, and the reason."""
    binary, own = WORK / "bin" / goal, f"{goal.parent.parent}/"
    why = why_not_built(goal, WORK / "bin", LOG)
    if why:
        return "wrong", why.replace(own, "")[:160]
    options = Exercise(name).options.split() if RACES else []
    for schedule in SCHEDULES:
        status, errors, said = run_once(binary, options, schedule)
        detected = next((line for line in errors if DETECTED.search(line)), None)
        if detected:
            kind = "race" if DETECTED.search(detected)[1] in ("race", "divergent") else "wrong"
            return kind, detected.replace(own, "")[:200]
        if said == "right" and status == 0:
            continue
        reasons = [line[:160] for line in errors if "--inject-error" not in line]
        if said == "not checked" or status == 2:  # the machine lacks what the program needs, such as a GPU
            return "unknown", "".join(reasons[:1])
        if status == 0:
            return "wrong", "the program ended before its check"
        return "wrong", reason_of(TOO_LONG if status == 128 + signal.SIGXCPU else status, reasons, TIME_LIMIT)
    # The check must also notice a result that is not right.
    if run_once(binary, [*options, "--inject-error"], schedule)[2] != "wrong":
        return "wrong", "the check does not notice a changed result"
    return "right", ""


def assemble(name, path, number):
    """Writes the program with the functions of the submission. Returns the goal of make, and a verdict if there is one already."""
    if not name:
        return None, ("unknown", 'its header has no "Run: ./bin/chapterNN/name" of a program of the suite')
    if Exercise(name).why_none():
        return None, ("unknown", "this program is no exercise")
    try:
        text = Exercise(name).with_functions_of(path.read_text(errors="replace"), "../../../../")
    except Problem as problem:
        return None, ("wrong", str(problem))
    goal = SOURCES / str(number) / name
    (ROOT / goal).parent.mkdir(parents=True)
    (ROOT / f"{goal}.cu").write_text(text)
    return goal, None


def main(folder):
    files = sorted(path for path in folder.rglob("*.cu") if path.is_file())
    if not files:
        sys.exit(f"make: DIR={folder}: there is no .cu file in it")
    shutil.rmtree(ROOT / SOURCES, ignore_errors=True)
    shutil.rmtree(WORK, ignore_errors=True)
    (WORK / "runs").mkdir(parents=True)
    names, counts = [exercise_of(path) for path in files], collections.Counter()
    begun = [assemble(name, path, i) for i, (name, path) in enumerate(zip(names, files))]
    # Limits stop a source that makes the compiler run without end.
    settings = f"BIN={WORK}/bin", "SANITIZE=", *["NVCCFLAGS=--check"] * RACES
    build([goal for goal, _ in begun if goal], LOG, *settings, preexec_fn=limit(CPU=300, AS=6 << 30))
    for path, name, (goal, verdict) in zip(files, names, begun):
        result, reason = verdict or grade(name, goal)
        counts[result] += 1
        shown = f"{result:9} {name or '-':34} {path.relative_to(folder)}"
        print(f"{shown}: {reason}" if reason else shown, flush=True)
    print(", ".join(f"{count} {result}" for result, count in sorted(counts.items())))
    return set(counts) != {"right"}


if __name__ == "__main__":
    for number in signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, lambda *_: sys.exit(1))
    try:
        sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
    finally:
        shutil.rmtree(ROOT / SOURCES, ignore_errors=True)
