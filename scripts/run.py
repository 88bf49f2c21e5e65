#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run.py [FOLDER…]: runs every program, or those of the given folders, without a window, and prints a table. Each program runs in
build/run/chapterNN with its defaults, a program of MPI as several processes; an animation has one frame there, and the kernels of a ladder
are timed once. Its output is saved there as NAME.txt, with its picture beside it. Then it runs in build/run/small with the small and odd
sizes of its Check: field. On the CPU the work of its streams runs late there, so that a missing wait shows, and there are three devices.
On a GPU all streams share one hardware queue there, and in programs whose Terms: name no stream: the driver creates one context at a time,
and one with eight queues takes twice as long. As many programs run at a time as half of the cores, at most four, and beside them as many
ladders, then other programs. On a GPU the programs of OpenGL run before the others, one at a time: beside other work the driver may draw
nothing, and reports no error. A ladder may need much memory; if there was too little, it runs again when the other programs have ended.
The exit status is 1 when a program failed. BIN and BUILD are the folders of the Makefile; TIME_LIMIT is in seconds."""
import concurrent.futures
import contextlib
import fcntl
import itertools
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

from programs import BIN, BUILD, ROOT, libraries, read_programs

TIME_LIMIT = float(os.environ.get("TIME_LIMIT") or 120)
ONE_QUEUE = "CUDA_DEVICE_MAX_CONNECTIONS=1"
TOO_LONG = 124  # the exit status of timeout(1)
HELD = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM}
AT_A_TIME = max(1, min(4, len(os.sched_getaffinity(0)) // 2))  # and as many ladders
RUNNING, STARTS = set(), threading.Lock()  # the processes of execute(); held while one begins
ENDING = threading.Event()  # no other one begins


@contextlib.contextmanager
def signals_held():
    """Signals wait until the block is left. Python raises their exceptions anywhere in the main thread; within subprocess.Popen one
    would leave a process, or a lock, behind. Yields the signals, none in another thread, and what sets the mask of a child again.
    """
    held = HELD if threading.current_thread() is threading.main_thread() else set()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, held)
        yield held, lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def execute(command, base, limit=TIME_LIMIT, preexec_fn=None, **options):
    """Runs a command without a window in a session of its own, which ends with it; what it prints goes to base.txt and base.err.
    Returns the exit status as a shell has it: 128 and the number of the signal that ended it, or TOO_LONG; and the lines of base.err.
    options are those of subprocess.Popen; by default it runs in the folder of base."""
    env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    options = {"cwd": base.parent, "env": env, "start_new_session": True, **options}
    base.parent.mkdir(parents=True, exist_ok=True)
    errors, end = pathlib.Path(f"{base}.err"), time.monotonic() + limit
    with signals_held() as (held, release):
        begin = (lambda: (release(), preexec_fn and preexec_fn())) if held else preexec_fn
        with STARTS, open(f"{base}.txt", "w") as options["stdout"], errors.open("w") as options["stderr"]:
            if ENDING.is_set():
                raise KeyboardInterrupt
            words = [str(word) for word in command]
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, preexec_fn=begin, **options)
            RUNNING.add(process)
        while process.poll() is None and time.monotonic() < end and not signal.sigpending() & held:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
        status = TOO_LONG if process.returncode is None else process.returncode
        stop(process)
        RUNNING.discard(process)
    return status if status >= 0 else 128 - status, lines_of(errors)


def stop(process):
    """Ends what is left of the session of a process."""
    for number, seconds in (signal.SIGTERM, 5), (signal.SIGKILL, None):
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            if process.poll() is None:
                os.killpg(process.pid, number)
                process.wait(seconds)


def launcher(program):
    """The command that starts the processes of a program of MPI, as its Run: field says."""
    ranks = re.match(r"mpirun (-np \d+) ", program.run)
    return [ROOT / "scripts/mpirun.sh", *ranks[1].split()] if ranks else []


def lines_of(path):
    return path.read_text(errors="replace").splitlines() if path.exists() else []


def reason_of(status, last, limit=TIME_LIMIT):
    """Why a program failed. last: the line that it wrote to stderr last, in a list, or none."""
    if status == TOO_LONG:
        return f"ran longer than {limit:g} s"
    return last[0] if last else f"exit status {status}"


def judge(program, status, errors, picture):
    """The result of a run, and the reason. errors: the lines that it wrote to stderr."""
    if str(status) == program.expect:
        return "ok", f"status {status} as expected: {errors[0] if errors else ''}"
    if status == 0 and program.expect:
        return "FAILED", f"exit status 0, its header expects {program.expect}"
    if status == 0:
        return ("FAILED", "wrote no picture") if program.picture and not picture else ("ok", picture)
    if status == 2:
        return "waived", "".join(errors[-1:])
    if status > 128:
        return "FAILED", f"ended by signal {status - 128}"
    return "FAILED", reason_of(status, [f"exit status {status}: {line}" for line in errors[-1:]])


def shorter(program):
    """The options that make a run short without making the data smaller. Those of Check: come after them."""
    return ["--runs", "1"] if program.bench else ["--frames", "1"] if "--frames " in program.check else []


def small_runs(program):
    """The result of the runs with the options of the Check: field, without those in which something is wrong on purpose."""
    for options in program.check.split(" | ") if program.check and not program.expect else []:
        if not options.endswith("(race)"):
            settings = "CUDA_CPU_STREAMS=late", "CUDA_CPU_DEVICES=3", ONE_QUEUE
            words = BIN / program.name, *shorter(program), *options.split()
            command = ["env", *settings, *launcher(program), *words]
            status, errors = execute(command, ROOT / BUILD / "run/small" / program.name)
            if status not in (0, 2):
                return "FAILED", f"{options}: {judge(program, status, errors, '')[1]}"
    return "ok", ""


def run(program):
    """Runs a program and judges it."""
    base = ROOT / BUILD / "run" / program.name
    for old in base.parent.glob(f"{base.name}.*"):
        old.unlink()
    settings = [] if "stream" in program.terms else [ONE_QUEUE]
    words = BIN / program.name, *shorter(program)
    status, errors = execute(["env", *settings, *launcher(program), *words], base)
    made = {file.suffix for file in base.parent.glob(f"{base.name}.*") if file.stat().st_size}
    pictures = [f"{BUILD}/run/{program.name}{ending}" for ending in sorted(made - {".txt", ".err"})]
    result = judge(program, status, errors, "".join(pictures[-1:]))
    small = small_runs(program) if result[0] == "ok" else ("ok", "")
    return small if small[0] != "ok" else result


def timed(program):
    """The result of a program, the reason, and the time that it took as text."""
    if not os.access(BIN / program.name, os.X_OK):
        needs = ",".join(libraries(program))
        return "not built", f"needs {needs}" if needs else "", ""
    start = time.monotonic()
    return *run(program), f"{time.monotonic() - start:.2f} s"


def run_all(programs, results, before=()):
    """Runs programs, after those of `before` and until main() ends. The iterator is that of other threads as well: each takes the next
    one."""
    concurrent.futures.wait([results[program] for program in before])
    for program in programs:
        if ENDING.is_set():
            break
        try:
            results[program].set_result(timed(program))
        except BaseException as error:  # main() is waiting for it
            results[program].set_exception(error)


@contextlib.contextmanager
def several(programs):
    """Begins to run the programs. Yields a dict of their futures. When the block is left by an exception they are ended."""
    results = {program: concurrent.futures.Future() for program in programs}
    first = [
        program for program in programs if os.environ.get("BACKEND") == "gpu" and "gl" in libraries(program)
    ]
    ladders = iter(
        [program for program in reversed(programs) if program.bench]
    )  # the last ones take the longest
    others = iter([program for program in programs if not program.bench and program not in first])
    pool = concurrent.futures.ThreadPoolExecutor(2 * AT_A_TIME + 1)
    pool.submit(run_all, first, results)
    for _ in range(AT_A_TIME):
        pool.submit(run_all, itertools.chain(ladders, others), results, first)
        pool.submit(run_all, others, results, first)
    try:
        yield results
    finally:
        with signals_held(), STARTS:
            ENDING.set()
            for process in list(RUNNING):
                stop(process)
        pool.shutdown()


def wait_for_others(name):
    """Two runs write the same files, so the second one waits for the first. The lock ends with the process."""
    (ROOT / BUILD).mkdir(parents=True, exist_ok=True)
    lock = open(ROOT / BUILD / f"{name}.lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"waiting for another run in {BUILD}/{name}", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def main(folders):
    lock = wait_for_others("run")  # noqa: F841
    programs, counts = read_programs(folders), dict.fromkeys(("ok", "failed", "waived", "not built"), 0)
    total, width = len(programs), len(str(len(programs)))
    print(f"{'':{2 * width + 3}} {'program':34} {'result':9} {'time':>9}  picture, or why not")
    with several(programs) as runs:
        for number, program in enumerate(programs, 1):
            print(f"[{number:{width}}/{total}] {program.name:34} ", end="", flush=True)  # the rest follows
            result, reason, seconds = runs[program].result()
            if result == "FAILED" and "out of memory" in reason:
                concurrent.futures.wait(runs.values())
                result, reason, seconds = timed(program)
            counts[result.lower()] += 1
            print(f"{result:9} {seconds:>9}  {reason}")
    summary = ", ".join(f"{count} {result}" for result, count in counts.items())
    print(f"{summary}; what they printed is in {BUILD}/run")
    return counts["failed"] > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
