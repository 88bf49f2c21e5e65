#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exercises: programs of the suite whose kernels the reader writes. They are in my/, which git ignores.
  exercise.py write PROGRAM…   writes my/PROGRAM.cu; a chapter stands for its exercises. A file that exists is never changed
  exercise.py exercises        writes every exercise that is not there yet, and lists all
  exercise.py progress         builds and runs the exercises that are no longer as they were written, and lists all: done, wrong or open
BACKEND, BIN and BUILD are the settings of make. TIME_LIMIT is in seconds, for a run."""
import collections
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
LOG = ROOT / BUILD / "progress/build.log"  # of make


def exercises(folders=()):
    every = [Exercise(program.name) for program in read_programs(folders)]
    return [exercise for exercise in every if not exercise.why_none()]


def write(exercise):
    """Writes an exercise. Returns whether it was not there yet; a file that exists is never changed."""
    path = ROOT / f"my/{exercise.name}.cu"
    if path.exists():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(exercise.written())
    return True


def write_each(words):
    for word in words:
        for exercise in [Exercise(word)] if "/" in word else exercises([word]):
            name = exercise.name
            if exercise.why_none():
                raise Problem(f"{name} is no exercise: {exercise.why_none()}")
            if write(exercise):
                what = f'write what the comments "Task:" ask for, then make my/{name}'
                print(f"my/{name}.cu: {what}; the first comment in it has all commands")
            else:
                print(f"my/{name}.cu is there already and stays as it is")


# Of what make says, without the lines of source that compilers quote: these may be many, and a submission could write there what looks
# like a message about another one. At most 1 MiB about each goal, and 64 KiB of a line.
KEPT = r"cut -b-65536 | awk '/^NVCC / { room = 2^20 } { room -= length + 1 } room > 0 && !/^ *[0-9]* \|/'"


def build(goals, log, *settings, **options):
    """Builds all goals with one make, whose output goes to a file. options are those of subprocess.run."""
    make = ["make", "-k", "--no-print-directory", f"BACKEND={BACKEND}", f"BUILD={BUILD}", *settings]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        command = ["sh", "-c", f'"$@" 2>&1 | {KEPT}', "sh", *make, *map(str, goals)]
        subprocess.run(command if goals else ["true"], cwd=ROOT, stdout=output, **options)


def why_not_built(goal, bin_folder, log):
    """Why make could not build a goal, in lines; none if it could."""
    every = lines_of(log)
    said = [line for line in every if re.search(rf"{goal}(?!\w)", line)]
    if os.access(bin_folder / goal, os.X_OK) and not any("***" in line for line in said):
        return []
    wrong = rf"error:|needs|{goal}\S*:\d+: (?! |note|warning)"  # of compilers, make, cu2cpp
    reasons = [line for line in said if re.search(wrong, line)] or said[:1] or every[-1:]
    return [f"does not build: {''.join(reasons[:1])}", *reasons[1:]]


def attempt(exercise):
    """Runs an exercise that make has built. Returns its state, and the reason."""
    why = why_not_built(f"my/{exercise.name}", BIN, LOG)
    if why:
        return "wrong", why[0]
    command = [BIN / "my" / exercise.name, *exercise.options.split()]
    status, errors = execute(command, ROOT / BUILD / "progress" / exercise.name, limit=TIME_LIMIT)
    said = own_errors(errors)
    if status == 0:
        return ("done", "") if said and said[-1].endswith(": right") else ("wrong", "ended before its check")
    return ("waived" if status == 2 else "wrong"), reason_of(status, said[:1], TIME_LIMIT)


def state_of(exercise):
    """What the source alone says."""
    path = ROOT / f"my/{exercise.name}.cu"
    if not path.exists():
        return "not written"
    return "open" if path.read_text() == exercise.written() else "changed"


def list_all(run_changed):
    counts, listed = collections.Counter(), [(exercise, state_of(exercise)) for exercise in exercises()]
    if run_changed:
        build([f"my/{exercise.name}" for exercise, state in listed if state == "changed"], LOG, f"BIN={BIN}")
    for number, (exercise, state) in enumerate(listed, 1):
        state, reason = attempt(exercise) if run_changed and state == "changed" else (state, "")
        shown = f"{exercise.name:38} {state.replace('not written', '-'):6} {exercise.program.title}"
        print(f"{number:3}  {'*' * exercise.stars():4}  {shown}", flush=True)
        if reason:
            print(f"           {reason}")
        counts[state] += 1
    print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))


def main(mode, *words):
    if mode == "write":
        return write_each(words)
    for exercise in exercises() if mode == "exercises" else ():
        write(exercise)
    list_all(mode == "progress")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Problem as problem:
        sys.exit(f"make: {problem}")
