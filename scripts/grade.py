#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""grade.py FOLDER: grades solutions of exercises, for make grade: prints a line for each .cu file below a folder. The functions that
the exercise asks for, and further __device__ functions, are put into the program of the suite (submission.py); the submission's host
part and check are not compiled. Each run is in a sandbox. docs/teaching.md has the verdicts, the limits, and what this holds and what
it does not. BACKEND, BUILD and BIN are the settings of make. The exit status is 1 unless all are right."""
import collections
import contextlib
import fcntl
import os
import pathlib
import re
import resource
import secrets
import shutil
import signal
import subprocess
import sys

from check import DETECTED
from exercise import BACKEND, TIME_LIMIT, build, why_not_built
from run import BUILD, ROOT, TOO_LONG, execute, lines_of, reason_of
from submission import OWN, with_functions_of
from task import Exercise, Problem

RACES = BACKEND != "gpu" and os.environ.get("CHECK") != "0"
MEMORY_LIMIT = int(os.environ.get("MEMORY_LIMIT") or (0 if BACKEND == "gpu" else 4096))
OUTPUT_LIMIT = int(os.environ.get("OUTPUT_LIMIT") or 16)
MIB = 1 << 20
LONGEST = 64 << 10  # bytes of a submission
RUN = secrets.token_hex(8)  # of the folders of this call of make grade; another one may run at the same time
WORK = ROOT / BUILD / "grade" / RUN
LOG = WORK / "bin.log"  # of make
SOURCES = pathlib.Path("my/.grade")  # relative to ROOT; the folders in it begin with RUN
HERE = WORK / "runs/here"  # the folder of a run, the only one that it can write to
SCHEDULES = "forward", "random:1", "random:2"
BOXES = (
    "bwrap --unshare-all --die-with-parent --ro-bind / / --dev-bind /dev /dev --proc /proc --bind HERE HERE --chdir HERE",
    "unshare --user --map-current-user --net --ipc --pid --fork --kill-child --mount-proc setpriv --no-new-privs",
)


def limit(**limits):
    """For preexec_fn: sets limits such as AS=4 << 30."""
    return lambda: [resource.setrlimit(getattr(resource, f"RLIMIT_{n}"), (v, v)) for n, v in limits.items()]


def shown(text):
    """A name or a message as one line in which every character can be seen."""
    return "".join(c if c.isprintable() and c != "\\" else c.encode("unicode_escape").decode() for c in text)


def find_box():
    """The words of a command that runs another one without network and without new privileges."""
    HERE.mkdir(parents=True)
    for box in BOXES:
        words = [HERE if word == "HERE" else word for word in box.split()]
        if shutil.which(words[0]) and subprocess.run([*words, "true"], capture_output=True).returncode == 0:
            return words
    print(
        "make grade: neither bwrap nor unshare works here: runs have limits, but no sandbox", file=sys.stderr
    )
    return []


def exercise_of(path, text):
    """The exercise that a text is a solution of: the name of the program, or None."""
    named = re.search(r"^ \* Run: .*\./bin/(?:my/)?([a-z0-9_]+/[a-z0-9_]+)(?![a-z0-9_/])", text, re.M)
    name = named[1] if named else str(path.with_suffix("").relative_to(path.parent.parent))
    return name if re.fullmatch("[a-z0-9_]+/[a-z0-9_]+", name) and (ROOT / f"{name}.cu").is_file() else None


def run_once(box, binary, options, schedule):
    """Runs the program in a folder of its own, with limits. Returns its status, the lines of stderr, and the verdict of
    common/exercise/verdict.c if it comes with the word that is drawn here."""
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir(parents=True)
    word = secrets.token_hex(16)
    (WORK / "word").write_text(word + "\n")
    # The race detector reserves 32 GiB of addresses for its table, and uses little of that.
    memory = {"AS": (MEMORY_LIMIT + (32768 if RACES else 0)) * MIB} if MEMORY_LIMIT else {}
    descriptors = f'exec 3<"{WORK}/word" 4>"{WORK}/said" && rm "{WORK}/word" && exec "$@"'
    kept = {n: os.environ[n] for n in ("PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES") if n in os.environ}
    env = kept | {"HOME": str(HERE), "TMPDIR": str(HERE), "EXERCISE_GRADED": "1"}
    env |= dict(CUDA_CPU_SCHEDULE=schedule, CUDA_CPU_STREAMS="late", CUDA_CPU_STRICT="1", CUDA_CPU_FILL="nan")
    limits = limit(CORE=0, CPU=TIME_LIMIT * 2, FSIZE=OUTPUT_LIMIT * MIB, NPROC=4096, NOFILE=1024, **memory)
    # The first process of a sandbox does not get every signal, so that is a shell.
    command = ["sh", "-c", descriptors, "sh", *box, "sh", "-c", '"$@"; exit $?', "sh", binary, *options]
    status, errors = execute(command, HERE.parent / "run", TIME_LIMIT, cwd=HERE, env=env, preexec_fn=limits)
    said = [line.removeprefix(word + " ") for line in lines_of(WORK / "said") if line.startswith(word + " ")]
    return status, errors, said[-1] if said else ""


def fault(box, binary, options, schedule):
    """What is wrong with a run with a random seed: the verdict and the reason, or None."""
    options = [*options, "--seed", secrets.randbelow(1 << 31)]
    status, errors, said = run_once(box, binary, options, schedule)
    detected = next((line for line in errors if DETECTED.search(line)), None)
    if detected:
        kind = "race" if DETECTED.search(detected)[1] in ("race", "divergent") else "wrong"
        return kind, re.sub(rf"{SOURCES}/[^/]*/", "", detected)[:200]
    if said == "right" and status == 0:
        return None
    reasons = [line[:160] for line in errors if "--inject-error" not in line]
    if said == "not checked" or status == 2:  # the machine lacks what the program needs, such as a GPU
        return "unknown", "".join(reasons[:1])
    if status == 0:
        return "wrong", "the program ended before its check"
    return "wrong", reason_of(TOO_LONG if status == 128 + signal.SIGXCPU else status, reasons, TIME_LIMIT)


def grade(name, goal, box):
    """The verdict on a program that make has built, and the reason."""
    binary = WORK / "bin" / goal
    why = why_not_built(goal, WORK / "bin", LOG)
    if why:
        hint = "; only the functions asked for and __device__ functions are taken" * ("not declared" in why)
        return "wrong", why.replace(f"{goal.parent.parent}/", "").replace(OWN, "")[:160] + hint
    options = Exercise(name).options if RACES else ""
    for schedule in SCHEDULES:
        if found := fault(box, binary, options.split(), schedule):
            return found
    # The check must also notice a result that is not right.
    if run_once(box, binary, [*options.split(), "--inject-error"], schedule)[2] != "wrong":
        return "wrong", "the check does not notice a changed result"
    if options:  # and the default size must be right, for which the search for races would take too long
        build_all([goal], "plain")
        few_frames = "".join(re.findall(r"--frames \d+", options)).split()
        if found := fault(box, WORK / "plain" / goal, few_frames, "forward"):
            return found[0], f"with the default size: {found[1]}"
    return "right", ""


def build_all(goals, folder, check=""):
    """Builds all goals into a folder. Limits stop a source that makes the compiler run without end, or write without end."""
    # A function that lacks a return would go on in the one that follows it in the program, such as main.
    flags = f"NVCCFLAGS={check}" + "-Xcompiler=-Werror=return-type" * (BACKEND != "gpu")
    limits = limit(CPU=300, AS=6 << 30, FSIZE=256 * MIB)
    build(goals, WORK / f"{folder}.log", f"BIN={WORK / folder}", "SANITIZE=", flags, preexec_fn=limits)


def assemble(path, number):
    """Writes the program with the functions of the submission. Returns its name, the goal of make, and a verdict if there is one."""
    name = None
    signal.alarm(TIME_LIMIT)  # for regular expressions, which some texts make slow
    try:
        if path.is_symlink() or path.stat().st_size > LONGEST:
            raise Problem("a symbolic link" if path.is_symlink() else f"longer than {LONGEST >> 10} KiB")
        text = path.read_text(errors="replace")
        name = exercise_of(path, text)
        if not name:
            why = 'its header has no "Run: ./bin/chapterNN/name" of a program of the suite'
            return None, None, ("unknown", why)
        if Exercise(name).why_none():
            return name, None, ("unknown", "this program is no exercise")
        text = with_functions_of(Exercise(name), text, "../../../../")
    except (Problem, OSError) as problem:
        return name, None, ("wrong", getattr(problem, "strerror", str(problem)))
    finally:
        signal.alarm(0)
    goal = SOURCES / f"{RUN}-{number}" / name
    (ROOT / goal).parent.mkdir(parents=True)
    (ROOT / f"{goal}.cu").write_text(text)
    return name, goal, None


def clean_up(run=RUN):
    for folder in WORK.parent / run, *(ROOT / SOURCES).glob(f"{run}-*"):
        shutil.rmtree(folder, ignore_errors=True)


def begin():
    """Locks the folder of this call, and removes those of calls that were killed, whose locks have ended with them."""
    WORK.mkdir(parents=True)
    lock = open(WORK / "new", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.rename(WORK / "new", WORK / "lock")
    for old in WORK.parent.glob("*/lock"):
        with contextlib.suppress(OSError), open(old) as other:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            clean_up(old.parent.name)
    return lock


def took_too_long(*_):
    raise Problem(f"took longer than {TIME_LIMIT} s to read")


def main(folder):
    files = sorted(path for path in folder.rglob("*.cu") if path.is_file())
    if not files:
        sys.exit(f"make: DIR={folder}: there is no .cu file in it")
    lock = begin()  # noqa: F841
    begun, counts = [assemble(path, i) for i, path in enumerate(files)], collections.Counter()
    box = find_box()
    build_all([goal for _, goal, _ in begun if goal], "bin", "--check " * RACES)
    for path, (name, goal, verdict) in zip(files, begun):
        result, reason = verdict or grade(name, goal, box)
        counts[result] += 1
        line = f"{result:9} {name or '-':34} {shown(str(path.relative_to(folder)))}"
        print(f"{line}: {shown(reason)}" if reason else line, flush=True)
    print(", ".join(f"{count} {result}" for result, count in sorted(counts.items())))
    return set(counts) != {"right"}


if __name__ == "__main__":
    for number in signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, lambda *_: sys.exit(1))
    signal.signal(signal.SIGALRM, took_too_long)
    try:
        sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
    finally:
        with contextlib.suppress(OSError):
            os.replace(LOG, WORK.parent / "build.log")
        clean_up()
