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

from check import own_errors
from programs import read_programs
from run import BIN, BUILD, ROOT, execute, lines_of, reason_of
from task import Exercise, Problem

BACKEND = os.environ.get("BACKEND", "cpu")
TIME_LIMIT = int(os.environ.get("TIME_LIMIT", 60))


def exercises(folders=()):
    """Pairs of a program that is an exercise, and its Exercise."""
    pairs = ((program, Exercise(program.name)) for program in read_programs(folders))
    return [(program, exercise) for program, exercise in pairs if not exercise.why_none()]


def write(exercise):
    """Writes an exercise. Returns whether it was not there yet; a file that exists is never changed."""
    path = ROOT / f"my/{exercise.name}.cu"
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    if new:
        path.write_text(exercise.written())
    return new


def write_each(words):
    for word in words:
        for exercise in [Exercise(word)] if "/" in word else [exercise for _, exercise in exercises([word])]:
            name = exercise.name
            if exercise.why_none():
                raise Problem(f"{name} is no exercise: {exercise.why_none()}")
            if write(exercise):
                what = f'write what the comments "Task:" ask for, then make my/{name}'
                print(f"my/{name}.cu: {what}; the first comment in it has all commands")
            else:
                print(f"my/{name}.cu is there already and stays as it is")


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
    said = own_errors(errors)
    if status == 0:
        return ("done", "") if said and said[-1].endswith(": right") else ("wrong", "ended before its check")
    return ("waived" if status == 2 else "wrong"), reason_of(status, said[:1], TIME_LIMIT)


def state_of(exercise, run_changed):
    """The state of an exercise, and the reason. What a run found is recorded for this source and back end."""
    path, record = ROOT / f"my/{exercise.name}.cu", ROOT / BUILD / "progress" / exercise.name
    if not path.exists():
        return "not written", ""
    text, recorded = path.read_text(), lines_of(record)
    key = f"{BACKEND} {hashlib.sha1(text.encode()).hexdigest()}"
    if recorded[:1] == [key]:
        return recorded[1], "\n".join(recorded[2:])
    if text == exercise.written():
        return "open", ""
    if not run_changed:
        return "changed", ""
    state, reason = attempt(exercise, record)
    record.write_text(f"{key}\n{state}\n{reason}\n")
    return state, reason


def list_all(run_changed):
    counts = collections.Counter()
    for number, (program, exercise) in enumerate(exercises(), 1):
        state, reason = state_of(exercise, run_changed)
        shown = f"{program.name:38} {state.replace('not written', '-'):6} {program.title}"
        print(f"{number:3}  {'*' * exercise.stars():4}  {shown}", flush=True)
        if state in ("wrong", "waived"):
            print(f"           {reason}")
        counts[state] += 1
    print(
        ", ".join(
            f"{n} {state}" for state, n in sorted(counts.items(), key=lambda c: (c[0] != "not written", c))
        )
    )


def main(mode="", *words):
    if mode == "write":
        write_each(words)
    elif mode in ("all", "progress"):
        for _, exercise in exercises() if mode == "all" else ():
            write(exercise)
        list_all(mode == "progress")
    else:
        print(__doc__, file=sys.stderr)
        sys.exit(64)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Problem as problem:
        sys.exit(f"make: {problem}")
