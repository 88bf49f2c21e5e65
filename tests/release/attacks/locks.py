#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""locks.py: runs the programs with locks and atomic operations, hash tables, histograms and sums, many times under each schedule of
the CPU back end: blocks and threads in ascending, descending or random order, on 1, 2 or 5 worker threads. Sizes, numbers of blocks
and locks, and the data are chosen at random. A run is right when it ends with status 0 and prints nothing on stderr; each program
compares its result with the exact one."""
import concurrent.futures
import random
import sys
import time

import shared
from shared import helpers

TIME_LIMIT = (
    3600  # seconds for a run: the machine may be busy, and the watchdog of the back end ends a deadlock
)
SCHEDULES = [(workers, order) for workers in "125" for order in ("forward", "reverse", "random")]

# The options of each program. A value is chosen from a tuple, where None leaves the option out and True gives it without a value, or
# from a range, where small numbers are as frequent as large ones.
KEYS, BYTES, BLOCKS, FLAG = range(1, 20001), range(1, 200001), range(1, 301), (None, True)
FILL = ("random", "equal", "skewed")
TABLE_FILL, LOAD = ("random", "sequential", "repeated"), ("0.5", "0.8", "0.95")
PROGRAMS = {
    "appendix_a/dot": {"size": KEYS, "blocks": BLOCKS},
    "appendix_a/hashtable_gpu": {"size": KEYS, "blocks": BLOCKS, "locks": range(1, 1025), "no-turns": FLAG},
    "appendix_a/hashtable_ladder": {"size": KEYS, "fill": TABLE_FILL, "load": LOAD, "runs": (1,)},
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


def value(choices, rng):
    if isinstance(choices, range):
        return int(choices[0] * (choices[-1] / choices[0]) ** rng.random() + 0.5)
    return rng.choice(choices)


def arguments(program, rng):
    words = []
    for name, choices in PROGRAMS[program].items():
        chosen = value(choices, rng)
        words += [] if chosen is None else [f"--{name}"] if chosen is True else [f"--{name}", str(chosen)]
    return words


def plan(programs, first, runs, rng):
    """The runs: program, arguments and settings; under each schedule the programs take turns."""
    for run in range(first, first + runs):
        for schedule, (workers, order) in enumerate(SCHEDULES):
            program = programs[(run + schedule) % len(programs)]
            order += f":{rng.randrange(1 << 31)}" if order == "random" else ""
            yield program, arguments(program, rng), {"CUDA_CPU_WORKERS": workers, "CUDA_CPU_SCHEDULE": order}


def problem(run):
    """What is wrong about a run; None if nothing is."""
    program, given, settings = run
    command = " ".join([*(f"{name}={v}" for name, v in settings.items()), f"bin/{program}", *given])
    try:
        result = helpers.execute(program, given, helpers.ROOT, env=settings, timeout=TIME_LIMIT)
    except AssertionError as error:
        return f"{command}: {error}"
    if result.status == 0 and not result.err:
        return None
    return f"{command}: status {result.status}\n{result.err or result.out}"


def main(words):
    options = shared.parse(
        __doc__,
        words,
        PROGRAMS,
        runs=(1000, "runs under each of the 9 schedules"),
        all=(False, "also the ladders and the pipeline, which take long"),
        minutes=(0.0, "end the runs after so long"),
    )
    programs = options.programs or [p for p in PROGRAMS if options.all or p not in LONG]
    under_each, wrong, rng = 0, 0, random.Random(options.seed)
    end = time.monotonic() + 60 * (options.minutes or 1e9)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        while under_each < options.runs and time.monotonic() < end:
            step = min(10, options.runs - under_each)
            for found in filter(None, pool.map(problem, list(plan(programs, under_each, step, rng)))):
                wrong += 1
                print(found, file=sys.stderr)
            under_each += step
    figures = {
        "programs": len(programs),
        "runs under each schedule": under_each,
        "runs right": under_each * len(SCHEDULES) - wrong,
        "runs wrong": wrong,
        "seed": options.seed,
    }
    shared.report("locks.py", figures)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
