# SPDX-License-Identifier: MIT
"""Each CUDA call of a program fails in turn, and each request to the operating system: allocations of memory, opening, writing and closing
files, starting threads and processes. A disk is full after 0, 1, 2 … KiB of a file. By default four requests of each of six programs;
FAULTS=all takes those of all programs, of many requests of one kind some hundreds at random.

Exit status 0 counts as correct only with the whole output of a run without a failure; otherwise the program must print one line that
says what failed and end with a documented status. A crash, a run that does not end, a file that is written in part, or a temporary
file that is left behind is a defect.

CUDA calls fail through CUDA_CPU_FAIL (cucc/README.md), writing through a limit on the size of files, other requests to the operating
system through attacks/refuse.c. Each call fails alone with cudaErrorUnknown, then with two random errors, every other time together with
all later calls. Every other request for memory fails together with all later ones. In a program that does not run with refuse.c preloaded,
only CUDA calls fail. Programs run as they do in make check, with small sizes."""
import collections
import concurrent.futures
import errno
import hashlib
import os
import pathlib
import random
import re
import resource
import tempfile

import helpers
from test_attacks import pytestmark  # noqa: F401
from test_exhausted import refuse

ALL = os.environ.get("FAULTS") == "all"
KINDS = ["calls", "memory", "files", "writes", "starts"]
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
        unread = start(program, refuse("reads:1+"))
        none = start(program, refuse("starts:1000000000"))
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

    def __init__(self, program, seed):
        self.program, self.reference = program, Reference(program)
        self.rng = random.Random(f"{seed} {program}")
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
        return refuse(f"{kind}:{number}{'+' if later else ''}")

    def attack(self, kind, number, variant=0):
        """Whether there was such a request."""
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

    def all(self, kind):
        """Each request in turn, of many the first ones and then fewer and fewer, or four of the first ones."""
        variants = range(3 if kind == "calls" else 1)
        if not ALL:
            for _ in range(4):
                self.attack(kind, self.rng.randrange(1, 40), self.rng.choice(variants))
            return
        number = 1
        while any([self.attack(kind, number, variant) for variant in variants]):
            number += self.rng.randint(1, 1 + number // 25)


def walk_through(program, seed):
    """All kinds of a program, or a random one. Returns the defects, and prints what has failed."""
    walk = Walk(program, seed)
    if walk.reference.endless:
        return [f"{program}: did not end within {TIME_LIMIT} s, without a failure"]
    # MPI's library has files of its own.
    kinds = [kind for kind in KINDS if kind == "calls" or walk.reference.can_preload]
    kinds = [kind for kind in kinds if kind != "writes" or "mpi" not in program.needs]
    for kind in kinds if ALL else [walk.rng.choice(KINDS)]:
        walk.all(kind)
    print(f"{program} failed:", dict(walk.done), flush=True)
    return walk.defects


def test_faults(rng):
    programs = [p for p in helpers.programs() if p.built]
    if not ALL:  # ladders and several processes take long
        programs = rng.sample([p for p in programs if not p.bench and "mpi" not in p.needs], 6)
    seed = rng.randrange(1 << 31)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() if ALL else 2) as pool:
        defects = list(pool.map(lambda program: walk_through(program, seed), programs))
    assert [defect for found in defects for defect in found] == []
