#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""faults.py: makes each CUDA call of every program fail in turn, and each request to the operating system: allocations of memory,
opening, writing and closing files, starting threads and processes. The first run lets call 1 fail, the second run call 2, and so on.
A disk is full after 0, 1, 2 … KiB of a file.
Of more than 300 requests of one kind in a program (`--most`), 300 are chosen at random, and `--minutes` ends the attack early.
Exit status 0 counts as correct only with the whole output of a run without a failure; otherwise the program must print one line that
says what failed and end with a documented status. A crash, a run that does not end, a file that is written in part, or a temporary
file that is left behind is a defect.

CUDA calls fail through CUDA_CPU_FAIL (cucc/README.md), writing through a limit on the size of files, other requests to the operating
system through refuse.c. Each call fails
alone with cudaErrorUnknown, then with --errors random errors, every other time together with all later calls. Every other request for
memory fails together with all later ones. In a program that does not run with refuse.c preloaded, only CUDA calls fail. Programs run as
they do in make check, with small sizes. Exit status 1 if there is a defect."""
import collections
import concurrent.futures
import errno
import hashlib
import math
import os
import pathlib
import random
import re
import resource
import sys
import tempfile
import time

import shared
from shared import helpers

KINDS = {
    "calls": "failing calls",
    "memory": "failing allocations",
    "files": "failing file operations",
    "writes": "full disks",
    "starts": "refused threads, processes and pipes",
}
# Errors that programs or the runtime treat in a special way, and common ones
ERRORS = """cudaErrorInvalidValue cudaErrorMemoryAllocation cudaErrorInitializationError cudaErrorInvalidConfiguration
cudaErrorInsufficientDriver cudaErrorDevicesUnavailable cudaErrorNoDevice cudaErrorInvalidDevice cudaErrorNoKernelImageForDevice
cudaErrorECCUncorrectable cudaErrorOperatingSystem cudaErrorInvalidResourceHandle cudaErrorNotReady cudaErrorIllegalAddress
cudaErrorLaunchOutOfResources cudaErrorPeerAccessAlreadyEnabled cudaErrorHostMemoryAlreadyRegistered cudaErrorLaunchFailure
cudaErrorCooperativeLaunchTooLarge cudaErrorNotPermitted cudaErrorNotSupported cudaErrorUnknown""".split()
ANNOUNCED = re.compile(r"^(refused: |cuda on the CPU: CUDA_CPU_FAIL=)")
TOO_LARGE = os.strerror(errno.EFBIG)
TIME_LIMIT = 120  # seconds
WORKERS = "3"


def start(program, settings, limit=resource.RLIM_INFINITY):
    """Runs a program in an empty folder. `limit` is for the bytes of a file. Returns the Result, whose status is None if it did not
    end; `files` is a dict from name to a hash of the content."""
    settings = {"CUDA_CPU_WORKERS": WORKERS, **settings}
    limits = {resource.RLIMIT_FSIZE: limit}
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        try:
            path = helpers.BIN / program.name
            run = helpers.execute(path, program.small, folder, settings, TIME_LIMIT, limits)
        except AssertionError as late:
            run = helpers.Result(None, "", str(late), program.name)
        run.files = {
            str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in pathlib.Path(folder).rglob("*")
            if path.is_file()
        }
    return run


class Reference:
    """What a run of a program without a failure gives. What differs between three runs is not compared, nor what differs when no
    file can be read: a program then cannot name the processor, and does not know the memory limit of a container.
    """

    def __init__(self, program):
        runs = [start(program, {}) for _ in range(3)]
        unread = start(program, {"LD_PRELOAD": str(shared.library("refuse")), "REFUSE": "reads:1+"})
        none = start(program, {"LD_PRELOAD": str(shared.library("refuse")), "REFUSE": "starts:1000000000"})
        # False for a library that replaces functions of the C library itself, as UCX below Open MPI does.
        self.can_preload = none.status == runs[0].status
        self.endless = any(run.status is None for run in [*runs, unread])
        self.statuses = {run.status for run in runs}
        self.counts = {len(run.lines) for run in runs}
        self.lines = [line for line in runs[0].lines if all(line in run.lines for run in [*runs, unread])]
        self.errors = {line for run in runs for line in run.errors}
        self.files = {name: {run.files.get(name) for run in runs} for run in runs for name in run.files}

    def has_whole(self, lines):
        """Whether the lines of stdout are complete."""
        rest = iter(lines)
        return min(self.counts) <= len(lines) <= max(self.counts) and all(line in rest for line in self.lines)

    def defect(self, run, failed):
        """What is wrong with a run, or None. `failed`: whether something was made to fail in it."""
        if run.status is None:
            return f"did not end within {TIME_LIMIT} s: {' / '.join(run.errors[-4:])}"
        if run.status < 0:
            return f"ended by signal {-run.status}: {' / '.join(run.errors[-4:])}"
        told = [line for line in run.errors if not ANNOUNCED.match(line) and line not in self.errors]
        runtime = [line for line in told if line.startswith("cuda on the CPU: ")]
        own = [line for line in told if not line.startswith("cuda on the CPU: ")]
        for name, content in run.files.items():
            if "unfinished" in name:
                return f"left {name}"
            if name not in self.files:
                return f"made {name}"
            if len(self.files[name]) == 1 and content not in self.files[name]:
                return f"{name} is not as without a failure (status {run.status})"
        if run.status in self.statuses and (run.status == 0 or not told):
            if not self.has_whole(run.lines):
                return f"status {run.status}, but stdout is not complete"
            if set(run.files) != set(self.files):
                return f"status {run.status}, but no {', '.join(set(self.files) - set(run.files))}"
            return None
        if run.status not in (0, 1, 2):
            return f"status {run.status}: {' / '.join(told)}"
        if not failed:
            return f"status {run.status} without a failure: {' / '.join(told)}"
        if len(own) > 1 or len(runtime) > 1:
            return f"{len(told)} lines: {' / '.join(told)}"
        return None if told and all(line.strip() for line in told) else "no line that says what failed"


class Walk:
    """Makes the requests of one program fail, one after the other."""

    def __init__(self, program, options):
        self.program, self.reference, self.options = program, Reference(program), options
        self.rng = random.Random(f"{options.seed} {program}")
        self.done = collections.Counter()
        self.defects = []

    def settings(self, kind, number, variant):
        """Environment variables that make request `number` fail."""
        if kind == "calls":
            how = f":{self.rng.choice(ERRORS)}{'' if variant % 2 else ':sticky'}" if variant else ""
            return {"CUDA_CPU_FAIL": f"{number}{how}"}
        if kind == "writes":
            return {}
        later = kind == "memory" and number % 2 == 0
        return {
            "LD_PRELOAD": str(shared.library("refuse")),
            "REFUSE": f"{kind}:{number}{'+' if later else ''}",
        }

    def attack(self, kind, number, variant=0):
        """Whether there was such a request; after --minutes there is none."""
        if time.monotonic() > self.options.end:
            return False
        settings = self.settings(kind, number, variant)
        limit = (number - 1) * 1024 if kind == "writes" else resource.RLIM_INFINITY
        run = start(self.program, settings, limit)
        failed = any(ANNOUNCED.match(line) or TOO_LARGE in line for line in run.errors)
        wrong = self.reference.defect(run, failed)
        if failed:
            self.done.update([kind, "went on" if run.status == 0 else "ended"])
        if wrong:
            shown = f"{kind} {number}: " + " ".join(f"{key}={value}" for key, value in settings.items())
            command = " ".join([f"{helpers.BIN.name}/{self.program}", *map(str, self.program.small)])
            self.defects.append(f"{shown} CUDA_CPU_WORKERS={WORKERS} {command}: {wrong}")
        return failed

    def count(self, kind):
        """How many requests a run has; the runs that find it out are attacks too."""
        there, missing = 0, 64
        while missing < 1 << 20 and self.attack(kind, missing):
            there, missing = missing, 4 * missing
        while missing - there > 1:
            middle = (there + missing) // 2
            if self.attack(kind, middle):
                there = middle
            else:
                missing = middle
        return there

    def all(self, kind):
        """Each request in turn. Of more than --most, that many are chosen at random; with --sample, four of the first ones."""
        variants = range(1 + self.options.errors if kind == "calls" else 1)
        if self.options.sample:
            for _ in range(4):
                self.attack(kind, self.rng.randrange(1, 40), self.rng.choice(variants))
            return
        count = self.count(kind)
        for number in self.rng.sample(range(1, count + 1), min(count, self.options.most)):
            for variant in variants:
                self.attack(kind, number, variant)


def attack(task):
    """Walks through all kinds for a program; with --sample through a random one. Returns what came of them, and the defects."""
    program, options = task
    if time.monotonic() > options.end:
        return None, {}, []
    walk = Walk(program, options)
    if walk.reference.endless:
        return program, {"programs": 1}, [f"did not end within {TIME_LIMIT} s, without a failure"]
    # MPI's library has files of its own.
    kinds = [kind for kind in KINDS if kind == "calls" or walk.reference.can_preload]
    kinds = [kind for kind in kinds if kind != "writes" or "mpi" not in program.needs]
    for kind in [walk.rng.choice(list(KINDS))] if options.sample else kinds:
        walk.all(kind)
    told = ", ".join(f"{kind} {walk.done[kind]}" for kind in kinds)
    return f"{str(program):36} failed: {told}", walk.done + collections.Counter(programs=1), walk.defects


def main(words):
    options = shared.parse(
        __doc__,
        words,
        most=(300, "at most so many requests of a kind of a program"),
        sample=(0, "only 4 requests of each of so many programs"),
        errors=(2, "random errors of each CUDA call in turn"),
        minutes=(math.inf, "stop after that time"),
    )
    options.end = time.monotonic() + 60 * options.minutes
    if helpers.backend() != "cpu" or helpers.sanitized():
        print("faults.py: needs a build for the CPU back end without sanitizers", file=sys.stderr)
        return 64
    programs = [p for p in helpers.programs() if p.built and p.name in (options.programs or p.name)]
    if options.sample:  # ladders and several processes take long
        programs = [p for p in programs if not p.bench and "mpi" not in p.needs]
    count = min(len(programs), options.sample or len(programs))
    programs = random.Random(options.seed).sample(programs, count)
    programs.sort(key=lambda program: program.bench != "")  # ladders come last
    tasks = [(program, options) for program in programs]
    told = {
        "programs": "programs",
        **KINDS,
        "ended": "ended with one line",
        "went on": "right result all the same",
    }
    figures = lambda done: {text: done[kind] for kind, text in told.items()}  # noqa: E731
    return shared.campaign(options, concurrent.futures.ThreadPoolExecutor, attack, tasks, figures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
