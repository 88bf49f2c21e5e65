#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exercises: programs of the suite whose kernels the reader writes. They are in my/, which git ignores.
  exercise.py write PROGRAM…   writes my/PROGRAM.cu; a chapter stands for its exercises. A file that exists is never changed
  exercise.py all              writes every exercise that is not there yet, and lists all
  exercise.py progress         builds and runs the exercises that have changed, and lists all: done, wrong or open
BACKEND, BIN and BUILD are the settings of make. TIME_LIMIT is in seconds, for a run."""
import collections
import hashlib
import os
import re
import subprocess
import sys

from check import WORKERS
from programs import read_programs
from run import BIN, BUILD, ROOT, TOO_LONG, execute, lines_of
from task import Exercise, Problem

BACKEND = os.environ.get("BACKEND", "cpu")
TIME_LIMIT = int(os.environ.get("TIME_LIMIT", 60))


def exercises(folders=()):
    """Pairs of a program that is an exercise, and its Exercise."""
    pairs = ((program, Exercise(program.name)) for program in read_programs(folders))
    return [(program, exercise) for program, exercise in pairs if not exercise.why_none()]


def mine(name):
    return ROOT / f"my/{name}.cu"


def write(exercise):
    """Writes an exercise. Returns whether it was not there yet; a file that exists is never changed."""
    path = mine(exercise.name)
    if path.exists():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(exercise.written())
    return True


def write_each(words):
    for word in words:
        for name in [word] if "/" in word else [exercise.name for _, exercise in exercises([word])]:
            exercise = Exercise(name)
            if exercise.why_none():
                raise Problem(f"{name} is no exercise: {exercise.why_none()}")
            if write(exercise):
                what = f'write what the comments "Task:" ask for, then make my/{name}'
                print(f"my/{name}.cu: {what}; the first comment in it has all commands")
            else:
                print(f"my/{name}.cu is there already and stays as it is")


def known_state(exercise, record):
    """The state that the last run has left, and the reason; None if the source or the back end has changed since."""
    text = mine(exercise.name).read_bytes()
    key = f"{BACKEND} {hashlib.sha1(text).hexdigest()}"
    recorded = lines_of(record)
    if recorded[:1] == [key]:
        return key, recorded[1], "\n".join(recorded[2:])
    return key, "open" if text == exercise.written().encode() else None, ""


def attempt(exercise, base):
    """Builds and runs an exercise, whose output goes to files beside base. Returns its state, and the reason."""
    settings = [f"BACKEND={BACKEND}", f"BIN={BIN}", f"BUILD={BUILD}"]
    make = ["make", "--no-print-directory", *settings, f"my/{exercise.name}"]
    built = subprocess.run(make, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if built.returncode:
        said = built.stdout.splitlines() or [""]
        why = next((line for line in said if re.search("error|Error|needs", line)), said[-1])
        return "wrong", f"does not build: {why}"
    command = [BIN / "my" / exercise.name, *exercise.options.split()]
    status, errors = execute(command, base, limit=TIME_LIMIT)
    said = [line for line in errors if not WORKERS.match(line)]
    if status == 0:
        return ("done", "") if said and said[-1].endswith(": right") else ("wrong", "ended before its check")
    if status == TOO_LONG:
        return "wrong", f"ran longer than {TIME_LIMIT} s"
    return ("waived" if status == 2 else "wrong"), said[0] if said else f"exit status {status}"


def list_all(run_changed):
    counts = collections.Counter()
    for number, (program, exercise) in enumerate(exercises(), 1):
        state, reason = "-", ""
        if mine(program.name).exists():
            record = ROOT / BUILD / "progress" / program.name
            key, state, reason = known_state(exercise, record)
            if not state and run_changed:
                state, reason = attempt(exercise, record)
                record.parent.mkdir(parents=True, exist_ok=True)
                record.write_text(f"{key}\n{state}\n{reason}\n")
            state = state or "changed"
        stars = "*" * exercise.stars()
        print(f"{number:3}  {stars:4}  {program.name:38} {state:6} {program.title}", flush=True)
        if state in ("wrong", "waived"):
            print(f"           {reason}")
        counts[state] += 1
    print(", ".join(f"{n} {'not written' if s == '-' else s}" for s, n in sorted(counts.items())))


def main(words):
    mode = words.pop(0) if words else ""
    if mode == "write":
        write_each(words)
    elif mode in ("all", "progress"):
        if mode == "all":
            for _, exercise in exercises():
                write(exercise)
        list_all(mode == "progress")
    else:
        print(__doc__, file=sys.stderr)
        return 64
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Problem as problem:
        sys.exit(f"make: {problem}")
