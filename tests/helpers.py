# SPDX-License-Identifier: MIT
"""Functions for all tests: building, running a program, and comparing pictures."""
import atexit
import contextlib
import fcntl
import functools
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest
from PIL import Image, ImageSequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / folder) for folder in ("scripts", "web", "cucc/tests")]
import docs  # noqa: E402
import programs as headers  # noqa: E402
import tokens  # noqa: E402
import tools  # noqa: E402

BIN = ROOT / os.environ.get("BIN", "bin")
BUILD = ROOT / os.environ.get("BUILD", "build")
GALLERY = ROOT / "docs" / "gallery"
KEPT = BUILD / "test-output"  # the pictures of failed comparisons

# Messages of the sanitizers. A program that prints one has failed, whatever its exit status is.
SANITIZER = re.compile(r"runtime error:|(Address|Leak|Thread|Memory|UndefinedBehavior)Sanitizer")

# A number with a unit of time or of a rate
MEASURED = re.compile(r"\d *([mun]?s|cycles|[kMG]Hz|[kKMGT]\w*/s)\b")

# A row of a timeline, which is drawn from measured times
DRAWN = re.compile(r"(stream \d+ )\|.*\|$")

# A row of a ladder's table: number and names, measures, verified
TIMED = re.compile(r"( *(?:\d+|-)  .*?)(?: +(?:[\d.]+%?|-|nan|inf)){6,}  (yes|NO|-).*")

# Variables of the user's environment that would change the results, so the programs do not get them. The variables for the
# number of devices and workers and for the schedule of the CPU back end are passed on: the tests hold with all their values.
PRIVATE = re.compile(
    r"CUDA_CPU_GL$|CUDA_CPU_STREAMS$|CUDA_VISIBLE_DEVICES$|ARGP_HELP_FMT$|POSIXLY_CORRECT$|(WAYLAND_)?DISPLAY$|COLUMNS$"
)


@functools.lru_cache
def devices():
    """The number of devices of this machine; for the CPU back end, its default number."""
    return len(re.findall(r"^\d+: ", execute("chapter03/enum_gpu", ["--list-devices"], ROOT).out, re.M))


@functools.lru_cache
def waived(program):
    """Whether a program says that this machine lacks what it needs."""
    with tempfile.TemporaryDirectory() as folder:
        return execute(program, ["--size", 1], folder).status == 2


def lacks(program):
    """The device that a program needs and this machine lacks, or None. Libraries are not checked."""
    if program.gpus > 1 and devices() < program.gpus:
        return f"needs {program.gpus} GPUs"
    if {"opencl", "vulkan", "sm"} & set(re.findall("[a-z]+", program.needs)) and waived(program.name):
        return "needs an OpenCL device, a GPU whose driver has Vulkan, or a newer GPU"
    return None


# For subprocess.run: stdout and stderr in one text
TOGETHER = {"text": True, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}


def make(*goals, status=0):
    """Runs make with the settings of the tests: BACKEND, SANITIZE and so on, from the environment. Returns its output.
    Status None stands for any."""
    done = subprocess.run(["make", *goals], cwd=ROOT, **TOGETHER)
    assert status in (None, done.returncode), done.stdout
    return done.stdout


@functools.lru_cache
def config():
    """The settings that bin/ was built with, from the file that scripts/configure.sh has written: the value of each variable."""
    values = {}
    for line in (BIN / ".config.mk").read_text().splitlines():
        name, _, value = line.replace(" += ", " := ").partition(" :=")
        values[name] = f"{values.get(name, '')} {value.strip()}".strip()
    return values


def backend():
    """The back end that bin/ was built for: cpu or gpu."""
    return config()["CHOSEN"]


def has(library):
    """Whether bin/ was built with a library: PNG, WEBP, GLUT."""
    return library.lower() in config()["FOUND"].split()


@functools.cache
def build(target):
    """Builds a program, unless `make test` has built everything (EVERYTHING_IS_BUILT). Skips a test of one that lacks a library."""
    if any(program.name == target and not program.built for program in programs()):
        pytest.skip(f"{target} needs a library that is not here")
    if "EVERYTHING_IS_BUILT" in os.environ:
        return
    (ROOT / BUILD).mkdir(parents=True, exist_ok=True)
    with open(ROOT / BUILD / "tests.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        make(target)


def ending():
    """The format of the pictures that the tests request: png, or ppm in a build without libpng."""
    return "png" if has("PNG") else "ppm"


def sanitized(name=""):
    """Whether bin/ was built with a sanitizer, or with the named one."""
    return any(s.startswith(name) for s in config()["VARIANT"].split("-")[1:] if s != "debug")


class Program(headers.Program):
    """A row of scripts/programs.py."""

    def __str__(self):
        return self.name

    @property
    def path(self):
        return ROOT / (self.name + ".cu")

    @functools.cached_property
    def source(self):
        return self.path.read_text()

    @functools.cached_property
    def settings(self):
        """The source together with the headers that may contain its options: those of its chapter and common/checks, but not
        the options of other programs, when this one reads its own, nor macros of options that it does not use.
        """
        included = re.findall(r'#include "(\w+\.h|\.\./common/checks/\w+\.h)"', self.source)
        texts = [(self.path.parent / header).read_text() for header in included]
        reads = re.compile(r"\b(parse_options|configure)\(")
        own = reads.search(self.source)
        text = "".join(text for text in texts if not (own and reads.search(text)))
        macro = r"#define (OPTION_\w+)(?:.*\\\n)*.*"
        return self.source + re.sub(macro, lambda match: match[0] * (match[1] in self.source), text)

    @property
    def base(self):
        return self.name.split("/")[1]

    @property
    def built(self):
        """Whether the build has the libraries that it needs."""
        return set(headers.libraries(self)) <= set(config()["FOUND"].split())

    @property
    def status(self):
        """The expected exit status of a run: 1 for a program that is wrong on purpose."""
        return int(self.expect or 0)

    @property
    def gpus(self):
        """How many devices it needs."""
        return int((re.search(r"gpus=(\d+)", self.needs) or [0, 1])[1])

    @property
    def host_only(self):
        return bool(re.search(r"\bHOST_ONLY\b", self.source))

    @property
    def own_options(self):
        """The names of its own options."""
        return re.findall(r'OPTION_(?:FLAG|INT|SIZE|FLOAT|WORD|FILE|TEXT)\("([^"]+)"', self.settings)

    @property
    def small(self):
        """Arguments that make a run short: those of the header's Check:, size 48, and one timed run in a ladder."""
        arguments = self.check.replace("(race)", "").split("|")[0].split()
        if "--size" in arguments:
            arguments[arguments.index("--size") + 1] = "48"
        elif "size" in self.own_options:
            arguments += ["--size", "48"]
        return (*arguments, *(["--runs", "1"] if self.bench else []))


@functools.lru_cache(maxsize=None)
def gallery():
    """A dict from program to the file of its picture in docs/gallery and the arguments that draw it."""
    return {program: (ROOT / file, arguments) for program, file, arguments in docs.pictures()}


@functools.lru_cache
def programs():
    return [Program(*fields) for fields in headers.read_programs()]


def code_of(source):
    """A source with blanks in place of strings, characters and comments; the code stays where it is."""
    return tokens.without(source, "string", "character", "comment")


def program(name):
    return next(program for program in programs() if program.name == name)


class Result(tools.Result):
    @property
    def errors(self):
        return self.err.splitlines()

    @property
    def lines(self):
        """The lines of stdout without measured values: numbers in lines with a time or a rate, and timelines."""
        unmeasured = lambda line: re.sub(r" *\d[\d.]*", " #", line)  # noqa: E731
        undrawn = lambda line: TIMED.sub(r"\1 \2", DRAWN.sub(r"\1", line))  # noqa: E731
        return [(unmeasured if MEASURED.search(s) else undrawn)(s) for s in self.out.splitlines()]


@functools.cache
def mpi_folder():
    # The path is short, because the length of a socket's path is limited.
    folder = tempfile.mkdtemp(prefix="mpi", dir="/tmp")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def environment(extra=None):
    env = {k: v for k, v in os.environ.items() if not PRIVATE.match(k)}
    # Without the libraries for networks Open MPI starts in a fifth of the time.
    env.setdefault("OMPI_MCA_pml", "ob1")
    # A folder for each worker of pytest-xdist: processes of Open MPI 4 that start while another one removes their common folder fail.
    env.setdefault("OMPI_MCA_orte_tmpdir_base", mpi_folder())
    env.update(extra or {})
    return env


def default_signals():
    """For preexec_fn: a shell that starts the tests in the background makes them ignore interrupts."""
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, signal.SIG_DFL)


def start(program, args, cwd, env=None, **more):
    """Starts bin/`program` (or the Path given) in a session of its own."""
    if not isinstance(program, pathlib.Path):
        build(str(program))
    settings = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    settings |= {"text": True, "errors": "replace", "start_new_session": True, "preexec_fn": default_signals}
    command = [str(program if isinstance(program, pathlib.Path) else BIN / str(program)), *map(str, args)]
    return subprocess.Popen(command, cwd=cwd, env=environment(env), **(settings | more))


def execute(program, args, cwd, env=None, timeout=None, limits=None, stdout=subprocess.PIPE):
    """Runs bin/`program` (or the Path given) to its end. `limits` maps resource.RLIMIT_… to bytes or seconds."""
    timeout = timeout or (300 if sanitized() else 120)

    def before():
        for which, value in (limits or {}).items():
            resource.setrlimit(which, (value, value))

    process = start(program, args, cwd, env, stdout=stdout, preexec_fn=before if limits else None)
    command = " ".join(process.args)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        raise AssertionError(f"{command}: not done after {timeout} s\n{out}\n{err}")
    return Result(process.returncode, out or "", err, command)


def wait_for(condition, seconds=60):
    """Waits until condition() is true. Returns what it returned."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"not after {seconds} s"
        time.sleep(0.005)
    return found


def processes_in(folder):
    """The processes whose current folder this is, apart from those that have ended: their numbers, with their names. A minimal
    system has no ps."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it is another user's, or has ended meanwhile
            if os.readlink(entry / "cwd") == str(folder):
                found[int(entry.name)] = (entry / "comm").read_text().rstrip("\n")
    return found


def pixels(path):
    """A picture as an array (height, width, 3) of whole numbers, top row first."""
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB")).astype(int)


def frames(path):
    """A list of the frames of an animation or a video, or of the one picture, as arrays like those of pixels()."""
    if path.suffix in (".mp4", ".webm", ".mkv", ".mov", ".avi", ".mpg"):
        entries = "-v error -select_streams v:0 -show_entries stream=width,height -of csv=p=0".split()
        probe = subprocess.run(["ffprobe", *entries, path], check=True, stdout=subprocess.PIPE).stdout
        width, height = map(int, re.findall(rb"\d+", probe)[:2])
        decode = ["ffmpeg", "-v", "error", "-i", path, *"-f rawvideo -pix_fmt rgb24 pipe:1".split()]
        raw = subprocess.run(decode, check=True, stdout=subprocess.PIPE).stdout
        return list(np.frombuffer(raw, np.uint8).reshape(-1, height, width, 3).astype(int))
    with Image.open(path) as animation:
        return [np.asarray(frame.convert("RGB")).astype(int) for frame in ImageSequence.Iterator(animation)]


def compare(name, actual, expected, mean=0.0, worst=0, fraction=0.0):
    """Compares two pictures. The mean difference of a channel (0 to 255) may be at most `mean`, where one pixel that is off by
    `worst` is not counted, and at most the fraction `fraction` of the pixels may differ by more than `worst`. When a limit is
    exceeded, both pictures and their difference are saved, and the message says by how much."""
    actual, expected = np.asarray(actual, int), np.asarray(expected, int)
    if actual.shape == expected.shape:
        difference = np.abs(actual - expected)
        off_by = difference.max(axis=2)
        off = (off_by > worst).mean()
        mean += worst / off_by.size
        if difference.mean() <= mean and off <= fraction:
            return
        why = (
            f"mean difference {difference.mean():.4f} (at most {mean}); {off:.3%} of the pixels are off by "
            f"more than {worst} (at most {fraction:.3%}), the worst by {difference.max()}"
        )
    else:
        difference = None
        why = f"shape {actual.shape}, expected {expected.shape}"
    folder = KEPT / name
    folder.mkdir(parents=True, exist_ok=True)
    for what, array in ("actual", actual), ("expected", expected), ("difference", difference):
        if array is not None and array.size:
            Image.fromarray(array.astype(np.uint8)).save(folder / f"{what}.png")
    raise AssertionError(f"{name}: {why}; see {folder}")
