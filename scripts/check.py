#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check.py [PROGRAM | FOLDER]: runs programs under tools that find mistakes, and prints what they report. TOOLS in the environment is
race (make check: programs built for the race detector of the CPU back end, run under several schedules), compiler (make sanitize:
built with the sanitizers of the compiler) or compute-sanitizer (make sanitize on a GPU). Checking is slow, so each program runs with
the options of the Check: field of its header. The exit status is 1 when something is found in a program, or it fails, has a race on
purpose that is not found, or ends with another status than its header expects. BIN and BUILD are the folders of the
Makefile; TIME_LIMIT is in seconds, for a run."""
import collections
import os
import pathlib
import re
import shutil
import sys
import time

from programs import read_programs
from run import BIN, BUILD, ROOT, TOO_LONG, execute, launcher, lines_of, reason_of

TOOLS = os.environ.get("TOOLS", "race")
# Schedules: the order of threads and of streams. The detector needs one only; the others show what depends on the order, such as
# the result of a missing wait.
WAYS = {
    "race": ["forward/late", "reverse/late", "random:1/random:1", "random:2/random:2", "random:3/random:3"],
    "compiler": ["sanitizers"],
    "compute-sanitizer": ["memcheck", "racecheck", "initcheck", "synccheck"],
}[TOOLS]
FOUND = "race|divergent|uninitialized|out of bounds|illegal address|was freed already"
DETECTED = re.compile(f"cuda on the CPU: (?:cuda\\w+: .* and )?({FOUND})[ :]")
REPORT = {
    "race": DETECTED,
    "compiler": re.compile("(Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error:"),
    "compute-sanitizer": re.compile("^========= (Invalid|Error|Warning|Uninit|Barrier|Leaked)"),
}[TOOLS]


def own_errors(errors):
    """The lines of stderr without that of the CPU back end, which is no error."""
    return [line for line in errors if not re.match("cuda on the CPU: [0-9]* worker", line)]


def selected(part):
    """The runs as (name, program, options, whether a race is expected). What is wrong on purpose is for make check only, and
    compute-sanitizer does not work with OpenGL and Vulkan (docs/book-vs-today.md). An exercise has the runs of the program that
    it was made from, without those in which a race is expected."""
    alone, original = "/" in part, part.removeprefix("my/")
    for program in read_programs([original.split("/")[0]] if part else []):
        runs = program.check.split(" | ") if not alone or original == program.name else []
        for options in runs:
            race = options.endswith("(race)")
            if TOOLS == "race":
                wanted = part == original or not race or len(runs) == 1
            else:
                graphics = TOOLS == "compute-sanitizer" and re.search("gl|vulkan", program.needs)
                wanted = not (program.expect or race or graphics)
            if wanted:
                yield part if alone else program.name, program, options.removesuffix("(race)").strip(), race


def settings_of(schedule):
    """The environment variables of a run with the race detector."""
    # Fresh memory holds NaN, all ones, and once zeros: a byte that must be 255 and is never written shows then.
    fill, (threads, streams) = "zero" if schedule == "reverse/late" else "nan", schedule.split("/")
    settings = {"SCHEDULE": threads, "STREAMS": streams, "STRICT": 1, "FILL": fill, "PROPERTIES": "unequal"}
    return {f"CUDA_CPU_{name}": str(value) for name, value in {**settings, "DEVICES": 3}.items()}


def run_once(name, program, options, way):
    """Returns the exit status and the lines of stderr."""
    command, base = [BIN / name, *options.split()], ROOT / BUILD / "check-runs" / name
    if TOOLS == "compute-sanitizer":
        full = ["--leak-check", "full"] if way == "memcheck" else []
        command = ["compute-sanitizer", "--error-exitcode", 9, "--tool", way, *full, *command]
    elif TOOLS == "race":
        command = ["env", *(f"{name}={value}" for name, value in settings_of(way).items()), *command]
    status, errors = execute([*launcher(program), *command], base)
    reports = lines_of(pathlib.Path(f"{base}.txt")) if TOOLS == "compute-sanitizer" else []
    return status, errors + [line for line in reports if line.startswith("=========")]


def judge(status, errors, exercise):
    """The result of a run, and the lines that say why."""
    places = [i for i, line in enumerate(errors) if REPORT.search(line)]
    if places:
        kind = DETECTED.search(errors[places[0]])
        result = "FOUND" if TOOLS != "race" else kind[1].replace("divergent", "divergent barrier")
        return result, [line for i, line in enumerate(errors) if {i, i - 1} & {*places}]
    if status in (0, 2):
        return ("waived", errors[-1:]) if status else ("clean", [])
    # The last line of an exercise is the verdict; the first ones are the first elements that differ.
    if exercise and status != TOO_LONG:
        return "FAILED", own_errors(errors)[:4]
    return "FAILED", [reason_of(status, [f"exit status {status}: {''.join(errors[-1:])}"])]


def main(part=""):
    if TOOLS == "compute-sanitizer" and not shutil.which(TOOLS):
        sys.exit("no compute-sanitizer on PATH: it is part of the CUDA toolkit")
    runs, counts = list(selected(part)), collections.Counter()
    total, alone = len(runs), "/" in part
    for number, (name, program, options, race) in enumerate(runs, 1):
        head = f"[{number:{len(str(total))}}/{total}] {f'{name} {options}' if race else name:34} "
        print(head * (not alone), end="", flush=True)  # the rest follows
        if not os.access(BIN / name, os.X_OK):
            counts["absent"] += 1
            print(f"{head * alone}not built")
            continue
        start, expected = time.monotonic(), race or bool(program.expect)
        # Programs of cuSPARSE and cuSOLVER have no kernels of their own, and these tools report the library's.
        library = TOOLS == "compute-sanitizer" and re.search("cusparse|cusolver", program.needs)
        for way in WAYS[:1] if library else WAYS:
            status, errors = run_once(name, program, options, way)
            result, reason = judge(status, errors, name.startswith("my/"))
            if program.expect not in (str(status), "") and result != "waived":
                result, reason = "FAILED", [f"exit status {status}, its header expects {program.expect}"]
            if alone:
                shown = "threads {:10} streams {:10}".format(*way.split("/")) if "/" in way else f"{way:10}"
                print(f"    {shown} {result}", flush=True)
            if result != "clean":
                break
        if result == "clean" and expected:
            result, reason = "FAILED", ["wrong on purpose, but nothing was found"]
        found = expected and result not in ("waived", "FAILED")
        counts["found" if found else "clean" if result in ("clean", "waived") else "failed"] += 1
        seconds = time.monotonic() - start
        print(f"{head * alone}{'race, on purpose' if found else result:17} {seconds:7.1f} s")
        print(*(f"    {line}\n" for line in reason), sep="", end="")
    good = f"{counts['clean']} of {total} clean, {counts['found']} wrong on purpose and found"
    print(f"{good}, {counts['failed']} failed, {counts['absent']} not built")
    return counts["failed"] > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
