# SPDX-License-Identifier: MIT
"""Signals at random moments to programs that write pictures, animations, videos, timelines and checkpoints: SIGINT, SIGTERM, SIGHUP,
SIGPIPE and SIGKILL, most of them up to 0.03 s after a temporary file has been created. Afterwards the file must have its old contents, or
its new contents as a whole. A temporary file may be left by SIGKILL only, no process may be left, nothing may stand on stderr, and the
exit status must be that of the signal, that of an animation that ended early, or that of a run that was complete. SIGNALS=1000 is a long
run, TEST_SEED repeats one."""
import contextlib
import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from xml.etree import ElementTree

import helpers
from test_attacks import pytestmark  # noqa: F401

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGKILL]
OLD = b"the old contents"
SECONDS = 600  # limit of a run


class Defect(Exception):
    pass


@dataclasses.dataclass
class Job:
    """A run of a program. `output` is the file that it writes, or the pattern of the files. `early` is true for an animation,
    which a signal ends early; `whole(path)` raises an error for an incomplete file, where two runs do not write the same bytes.
    """

    program: str
    arguments: str
    output: str
    early: bool = False
    whole: object = None
    seconds: float = 0  # duration of a run without a signal
    files: int = 0  # temporary files that it creates
    expected: dict = dataclasses.field(default_factory=dict)  # the files of that run

    def __str__(self):
        return f"{self.program} {self.arguments}"


def resume(path):
    """heat_checkpoint checks the length and the checksum of what it resumes from."""
    options = ["--size", "64", "--iterations", "60", "--resume", path]
    done = helpers.execute("chapter11/heat_checkpoint", options, path.parent)
    assert done.status == 0, done.err


RIPPLE, STREAM = "chapter05/ripple", "--size 70000 --chunk 700 --output a.svg"
HEAT = "--size 64 --iterations 60 --checkpoint a.state"
JOBS = [
    Job("chapter04/julia_cpu", "--size 300 --iterations 10 --output a.png", "a.png"),
    Job("chapter04/julia_gpu", "--size 100 --iterations 10 --output a.ppm", "a.ppm"),
    Job("chapter05/shared_bitmap", "--size 128 --output a.webp", "a.webp"),
    Job("chapter07/heat", "--size 48 --frames 12 --output a.webp", "a.webp", early=True),
    Job(RIPPLE, "--size 48 --frames 30 --output frame-%03d.png", "frame-*.png", early=True),
    Job(RIPPLE, "--size 48 --frames 10 --output a.gif", "a.gif", early=True),
    Job(RIPPLE, "--size 48 --frames 10 --output a.mp4", "a.mp4", early=True),
    Job(RIPPLE, "--size 100 --frames 10 --output a.png", "a.png", early=True, whole=helpers.pixels),
    Job("chapter10/basic_single_stream", STREAM, "a.svg", whole=ElementTree.parse),
    Job("chapter10/basic_double_stream_correct", STREAM, "a.svg", whole=ElementTree.parse),
    Job("chapter11/heat_checkpoint", HEAT, "a.state", whole=resume),
]


def start(job, folder):
    # Processes of Open MPI at the same time do not share its temporary files.
    mpi = {"OMPI_MCA_orte_tmpdir_base": f"{folder}.mpi"}
    return helpers.start(job.program, job.arguments.split(), folder, mpi)


def measure(job):
    """Runs the job without a signal. Returns false if this machine lacks what it needs."""
    with new_folder() as folder:
        since = time.monotonic()
        process = start(job, folder)
        job.files = wait_for_files(process, folder, sys.maxsize)
        process.communicate()
        job.seconds = time.monotonic() - since
        job.expected = {path.name: path.read_bytes() for path in folder.iterdir()}
    return process.returncode == 0 and bool(job.expected)


def unfinished(folder):
    return [name for name in os.listdir(folder) if re.fullmatch(r"\.unfinished-\w{6}\.\w+", name)]


@contextlib.contextmanager
def new_folder():
    """An empty folder inside of another one, where there is room for the files of Open MPI."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as outer:
        folder = pathlib.Path(outer).resolve() / "run"
        folder.mkdir()
        folder.with_name("run.mpi").mkdir()
        yield folder


def wait_for_moment(job, process, folder, choice):
    """Waits until the signal is due: a random time after the start, or after a random temporary file has been created."""
    if choice.random() < 0.3 or not job.files:
        time.sleep(choice.uniform(0, job.seconds))
        return
    wait_for_files(process, folder, choice.randint(1, job.files))
    time.sleep(choice.choice([0, 0, choice.uniform(0, 0.003), choice.uniform(0, 0.03)]))


def wait_for_files(process, folder, wanted):
    """Waits until a process has created so many temporary files, or has ended. Returns how many it has created."""
    seen = set()
    while len(seen) < wanted and process.poll() is None:
        seen.update(unfinished(folder))
        time.sleep(0.0002)
    return len(seen)


def check_files(job, folder, number, status, out, old):
    # MPI's library has files of its own beside one that it opens.
    names = sorted(name for name in os.listdir(folder) if not re.search(r"\.lock(test\.\d+)?$", name))
    left = unfinished(folder)
    if left and (number != signal.SIGKILL or len(left) > 1):
        raise Defect(f"left {' '.join(left)}")
    files = {name: (folder / name).read_bytes() for name in names if name not in left}
    if job.output not in files and "*" not in job.output:
        if old or status in (0, 128 + number):
            raise Defect(f"{job.output} is missing")
        return
    for name, data in files.items():
        kept = data == OLD and old and status not in (0, 128 + number)
        if kept or data == job.expected.get(name):
            continue
        if name not in job.expected:
            raise Defect(f"{name}, which the program does not write")
        if job.whole:
            try:
                job.whole(folder / name)
            except Exception as error:
                raise Defect(f"{name} is not whole: {error}") from None
            continue
        if job.early and "*" not in job.output and status == 128 + number:
            told = re.search(rf"wrote {name} \(.*, (\d+) frames?", out)
            if told and len(helpers.frames(folder / name)) == int(told[1]):
                continue
        raise Defect(f"{name} has {len(data)} bytes, which are not those of a whole file")
    if "*" in job.output:
        complete = sorted(job.expected)[: len(files)]
        if sorted(files) != complete:
            raise Defect(f"frames are missing among {names}")


def attack(job, number, choice):
    """One signal."""
    with new_folder() as folder:
        old = "*" not in job.output and choice.random() < 0.5
        if old:
            (folder / job.output).write_bytes(OLD)
        process = start(job, folder)
        wait_for_moment(job, process, folder, choice)
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                (os.killpg if choice.random() < 0.5 else os.kill)(process.pid, number)
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise Defect(f"is still running {SECONDS} s after the signal") from None
        status = process.returncode
        try:  # ffmpeg ends when its standard input does
            helpers.wait_for(lambda: not helpers.processes_in(folder), 10)
        except AssertionError:
            raise Defect("a process is left") from None
        allowed = {0, -number} | ({128 + number} if job.early else set())
        if status not in allowed:
            raise Defect(f"status {status}: {err}")
        if err:
            raise Defect(f"status {status}, and on stderr: {err}")
        check_files(job, folder, number, status, out, old)


def test_signals(rng):
    jobs = [job for job in rng.sample(JOBS, len(JOBS)) if (helpers.BIN / job.program).exists()]
    jobs = [job for job in jobs[: int(os.environ.get("SIGNALS", 30)) // 5] if measure(job)]
    defects = []
    for case in range(int(os.environ.get("SIGNALS", 30))):
        job, number = jobs[case % len(jobs)], SIGNALS[case // len(jobs) % len(SIGNALS)]
        try:
            attack(job, number, rng)
        except Defect as defect:
            defects.append(f"case {case}: {job}: {number.name}: {defect}")
    assert not defects
