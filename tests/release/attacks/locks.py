#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""locks.py: runs the programs with locks and atomic operations, hash tables, histograms and sums, many times under each schedule of
the CPU back end: blocks and threads in ascending, descending or random order, on 1, 2 or 5 worker threads. Sizes, numbers of blocks
and locks, and the data are chosen at random. A run is right when it ends with status 0 and prints nothing on stderr; each program
compares its result with the exact one. Then a mistake is put into a copy of a program, such as a sum without its lock, and a race
detector must report it: that of `make check` or ThreadSanitizer. Without the mistake both must be silent.

`--runs` is the number of runs under each schedule, `--all` adds the programs with hundreds of launches, and `--seed` repeats the
random choices. `--detectors` names the race detectors; with `none` the copies are left out."""
import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import helpers  # noqa: E402
import record  # noqa: E402

TIME_LIMIT = (
    3600  # seconds for a run: the machine may be busy, and the watchdog of the back end ends a deadlock
)
WORKERS = ["1", "2", "5"]
ORDERS = ["forward", "reverse", "random"]

# The options of each program. A value is chosen from a tuple, where None leaves the option out and True gives it without a value, or
# from a range, where small numbers are as frequent as large ones.
KEYS, BYTES, BLOCKS, FLAG = range(1, 20001), range(1, 200001), range(1, 301), (None, True)
FILL = ("random", "equal", "skewed")
PROGRAMS = {
    "appendix_a/dot": {"size": KEYS, "blocks": BLOCKS},
    "appendix_a/hashtable_gpu": {"size": KEYS, "blocks": BLOCKS, "locks": range(1, 1025), "no-turns": FLAG},
    "appendix_a/hashtable_ladder": {
        "size": KEYS,
        "fill": ("random", "sequential", "repeated"),
        "load": ("0.5", "0.8", "0.95"),
        "runs": (1,),
    },
    "appendix_a/hashtable_pipeline": {"size": KEYS, "where": ("all", "gpu", "mixed")},
    "chapter09/atomics_race": {"blocks": range(1, 17), "iterations": range(1, 11)},
    "chapter09/compute_capability": {"size": range(1, 5001)},
    "chapter09/hist_gpu_gmem_atomics": {"size": BYTES, "blocks": BLOCKS, "fill": FILL},
    "chapter09/hist_gpu_shmem_atomics": {"size": BYTES, "blocks": BLOCKS, "fill": FILL},
    "chapter09/hist_ladder": {"size": KEYS, "fill": FILL, "runs": (1,)},
    "chapter09/hist_wide_ladder": {"size": KEYS, "fill": (*FILL, "pair"), "runs": (1,)},
}
# Programs with hundreds of launches
LONG = [program for program in PROGRAMS if program.endswith(("_ladder", "_pipeline"))]

# Each mistake: its name, the program, its options, the file to change, the text to replace and what replaces it
MISTAKES = [
    (
        "a sum without its lock",
        "appendix_a/dot",
        ["--size", 5000, "--blocks", 20],
        "dot.cu",
        "        lock.lock();\n        *c += sum;\n        lock.unlock();\n",
        "        *c += sum;\n",
    ),
    (
        "a lock that is released without a memory fence",
        "appendix_a/dot",
        ["--size", 5000, "--blocks", 20],
        "lock.h",
        "        __threadfence();\n        atomicExch(mutex, 0);\n",
        "        atomicExch(mutex, 0);\n",
    ),
    (
        "a histogram without atomic additions",
        "chapter09/hist_gpu_gmem_atomics",
        ["--size", 5000, "--blocks", 20],
        "hist_gpu_gmem_atomics.cu",
        "atomicAdd(&histo[buffer[i]], 1ULL)",
        "histo[buffer[i]]++",
    ),
]
# The options of cucc for each race detector. On the CPU back end every atomic operation is sequentially consistent, so
# ThreadSanitizer does not see that a fence is missing.
DETECTORS = {"check": ["--check"], "thread": ["-Xcompiler", "-fsanitize=thread"]}
NOT_SEEN = {("thread", "a lock that is released without a memory fence")}
REPORT = re.compile(r"cuda on the CPU: race in kernel|ThreadSanitizer: data race")


def value(choices, rng):
    if isinstance(choices, range):
        return int(choices[0] * (choices[-1] / choices[0]) ** rng.random() + 0.5)
    return rng.choice(choices)


def arguments(program, rng):
    found = {name: value(choices, rng) for name, choices in PROGRAMS[program].items()}
    return [
        word for name, v in found.items() if v is not None for word in ([f"--{name}"] + [v] * (v is not True))
    ]


def plan(programs, first, runs, rng):
    """The runs: program, arguments and settings; under each schedule the programs take turns."""
    for run in range(first, first + runs):
        for schedule, (workers, order) in enumerate((w, o) for w in WORKERS for o in ORDERS):
            program = programs[(run + schedule) % len(programs)]
            if order == "random":
                order = f"random:{rng.randrange(1 << 31)}"
            yield program, arguments(program, rng), {"CUDA_CPU_WORKERS": workers, "CUDA_CPU_SCHEDULE": order}


def problem(run):
    """What is wrong about a run; None if nothing is."""
    program, given, settings = run
    command = " ".join([*(f"{name}={v}" for name, v in settings.items()), f"bin/{program}", *map(str, given)])
    try:
        result = helpers.execute(program, given, helpers.ROOT, env=settings, timeout=TIME_LIMIT)
    except AssertionError as error:
        return f"{command}: {error}"
    if result.status == 0 and not result.err:
        return None
    return f"{command}: status {result.status}\n{result.err or result.out}"


def attack(programs, runs, rng, jobs, minutes=None):
    """Runs the programs; returns how many runs there were under each schedule and how many were wrong, and prints the wrong ones."""
    under_each = wrong = 0
    end = time.monotonic() + 60 * minutes if minutes else None
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        while under_each < runs and not (end and time.monotonic() > end):
            step = min(10, runs - under_each)
            for found in pool.map(problem, list(plan(programs, under_each, step, rng))):
                if found:
                    wrong += 1
                    print(found, file=sys.stderr)
            under_each += step
    return under_each, wrong


def compile_copy(program, changed, old, new, options, folder):
    """Compiles, in an empty folder, a copy of a program in which `old` is replaced in the file `changed`."""
    chapter, name = program.split("/")
    copies = folder / chapter
    shutil.copytree(helpers.ROOT / chapter, copies)
    (folder / "common").symlink_to(helpers.ROOT / "common")
    text = (copies / changed).read_text()
    if text.count(old) != 1:
        sys.exit(f"locks.py: {chapter}/{changed} has not exactly one {old!r}")
    (copies / changed).write_text(text.replace(old, new))
    libraries = re.findall(
        r"^(\w+)_LIBS := *(.*)$", (helpers.ROOT / helpers.variant() / "config.mk").read_text(), re.M
    )
    words = " ".join(libs for library, libs in libraries if library in ("PNG", "WEBP", "GLUT", "GL")).split()
    binary = folder / name
    command = [
        helpers.ROOT / "cucc/cucc",
        *options,
        "-w",
        "-g",
        "-O0",
        copies / f"{name}.cu",
        helpers.ROOT / helpers.variant() / "libcommon.a",
    ]
    done = subprocess.run([*command, "-o", binary, *words], text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"locks.py: cannot compile {program}:\n{done.stderr}")
    return binary


def mistakes(detectors, rng):
    """Looks for each mistake with each detector that can see it; returns how many were looked for and found."""
    looked = found = 0
    silent = {}  # for each program and detector: whether the copy without a mistake is right and silent
    for name, program, given, changed, old, new in MISTAKES:
        for detector in detectors:
            if (detector, name) in NOT_SEEN:
                continue
            settings = {"CUDA_CPU_WORKERS": "2", "CUDA_CPU_SCHEDULE": f"random:{rng.randrange(1 << 31)}"}

            def run(text):
                with tempfile.TemporaryDirectory(prefix="locks-") as folder:
                    binary = compile_copy(
                        program, changed, old, text, DETECTORS[detector], pathlib.Path(folder)
                    )
                    return helpers.execute(binary, given, folder, env=settings, timeout=TIME_LIMIT)

            if (program, detector) not in silent:
                result = run(old)
                silent[program, detector] = result.status == 0 and not result.err
                if not silent[program, detector]:
                    print(f"without a mistake: {result}", file=sys.stderr)
            result = run(new)
            reported = bool(result.status and REPORT.search(result.err))
            if not reported:
                print(f"{name} ({program}): the detector {detector} reports nothing", file=sys.stderr)
            looked += 1
            found += reported and silent[program, detector]
    return looked, found


def main():
    parser = argparse.ArgumentParser(
        prog="locks.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "programs",
        nargs="*",
        metavar="PROGRAM",
        help="such as appendix_a/dot; default: those with few launches",
    )
    parser.add_argument(
        "--runs", type=int, default=1000, metavar="N", help="runs under each of the 9 schedules (1000)"
    )
    parser.add_argument(
        "--all", action="store_true", help="also the ladders and the pipeline, which take long"
    )
    parser.add_argument("--minutes", type=float, metavar="M", help="end the runs after so long")
    parser.add_argument("--seed", type=int, help="of the random choices")
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count(),
        metavar="N",
        help="runs at the same time; default: the cores",
    )
    parser.add_argument(
        "--detectors",
        choices=["all", "none", *DETECTORS],
        default="all",
        help="detectors that look for the mistakes",
    )
    parser.add_argument(
        "--record", action="store_true", help="write the figures into tests/attacks/results.json"
    )
    given = parser.parse_args()
    unknown = [p for p in given.programs if p not in PROGRAMS]
    if unknown:
        parser.error(f"{unknown[0]} is none of {', '.join(PROGRAMS)}")
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1 << 31)
    programs = given.programs or [p for p in PROGRAMS if given.all or p not in LONG]
    detectors = {"all": list(DETECTORS), "none": []}.get(given.detectors, [given.detectors])
    under_each, wrong = attack(programs, given.runs, random.Random(seed), given.jobs, given.minutes)
    looked, found = mistakes(detectors, random.Random(seed))
    schedules = len(WORKERS) * len(ORDERS)
    right = under_each * schedules - wrong
    print(
        f"locks.py: {right} of {right + wrong} runs right, {under_each} under each of {schedules} schedules, of {len(programs)} "
        f"programs; {found} of {looked} mistakes reported; seed {seed}"
    )
    if given.record:
        figures = {
            "programs": len(programs),
            "schedules": schedules,
            "runs under each": under_each,
            "runs right": right,
            "runs wrong": wrong,
            "mistakes": looked,
            "mistakes reported": found,
            "seed": seed,
        }
        chosen = " ".join(["--all"] * given.all + given.programs)
        record.record("locks", "make locks" + (f" ARGS='{chosen}'" if chosen else ""), figures)
    return 1 if wrong or found < looked else 0


if __name__ == "__main__":
    sys.exit(main())
