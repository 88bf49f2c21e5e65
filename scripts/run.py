#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run.py [FOLDER…]: runs every program, or those of the given folders, without a window, and prints a table. Each program runs in
build/run/chapterNN with its defaults, a program of MPI as several processes. Its output is saved there as NAME.txt, with its picture
beside it. The exit status is 1 when a program failed. BIN and BUILD are the folders of the Makefile; TIME_LIMIT is in seconds."""
import os
import re
import signal
import subprocess
import sys
import time

from programs import ROOT, libraries, read_programs

BIN = ROOT / os.environ.get("BIN", "bin")
BUILD = os.environ.get("BUILD", "build")  # relative to ROOT, as it is printed
TIME_LIMIT = int(os.environ.get("TIME_LIMIT", 120))
TOO_LONG = 124  # the exit status of timeout(1)


def execute(command, cwd, limit=TIME_LIMIT, **options):
    """Runs a command without a window in a session of its own, which ends with it. Returns the exit status as a shell has it: 128
    and the number of the signal that ended it, or TOO_LONG. options are those of subprocess.Popen."""
    env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    options = {"env": env, "stdin": subprocess.DEVNULL, "start_new_session": True, **options}
    process = subprocess.Popen([str(word) for word in command], cwd=cwd, **options)
    try:
        status = process.wait(limit)
        return status if status >= 0 else 128 - status
    except subprocess.TimeoutExpired:
        return TOO_LONG
    finally:
        stop(process)


def stop(process):
    """Ends what is left of the session of a process."""
    for number, seconds in (signal.SIGTERM, 5), (signal.SIGKILL, None):
        try:
            if process.poll() is None:
                os.killpg(process.pid, number)
                process.wait(seconds)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


def launcher(program):
    """The command that starts the processes of a program of MPI, as its Run: field says."""
    ranks = re.match(r"mpirun (-np \d+) ", program.run)
    return [ROOT / "scripts/mpirun.sh", *ranks[1].split()] if ranks else []


def lines_of(path):
    return path.read_text(errors="replace").splitlines() if path.exists() else []


class Table:
    """Numbers the rows. On a terminal the program that is running is shown until its row replaces it."""

    def __init__(self, total):
        self.number, self.total, self.width = 0, total, len(str(total))
        self.terminal = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"

    def begin(self, name):
        self.number += 1
        self.head = f"[{self.number:{self.width}}/{self.total}] {name:34} "
        if self.terminal:
            print(f"{self.head}running", end="", flush=True)

    def note(self, text):
        print("\r\033[K" * self.terminal + text, flush=True)

    def row(self, text):
        self.note(self.head + text)


def judge(program, status, errors, picture):
    """The result of a run, and the reason. errors: the lines that it wrote to stderr."""
    last, expected = errors[-1] if errors else "", int(program.expect or 0)
    if expected and status == expected:
        return "ok", f"status {status} as expected: {errors[0] if errors else ''}"
    if status == 0 and expected:
        return "FAILED", f"exit status 0, its header expects {expected}"
    if status == 0:
        return ("FAILED", "wrote no picture") if program.picture and not picture else ("ok", picture or "")
    if status == 2:
        return "waived", last
    if status == TOO_LONG:
        return "FAILED", f"ran longer than {TIME_LIMIT} s"
    if status > 128:
        return "FAILED", f"ended by signal {status - 128}"
    return "FAILED", f"exit status {status}" + (f": {last}" if last else "")


def run(program):
    """Runs a program and judges it."""
    folder, name = ROOT / BUILD / "run" / program.name.split("/")[0], program.name.split("/")[1]
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{name}.*"):
        old.unlink()
    output, errors = folder / f"{name}.txt", folder / f"{name}.err"
    with output.open("w") as out, errors.open("w") as err:
        status = execute([*launcher(program), BIN / program.name], folder, stdout=out, stderr=err)
    said = lines_of(errors)
    if not said:
        errors.unlink()
    made = [f for f in sorted(folder.glob(f"{name}.*")) if f not in (output, errors) and f.stat().st_size]
    return judge(
        program, status, said, f"{BUILD}/run/{program.name.split('/')[0]}/{made[-1].name}" if made else None
    )


def main(folders):
    programs = read_programs(folders)
    table, counts = Table(len(programs)), dict.fromkeys(("ok", "failed", "waived", "not built"), 0)
    print(
        f"{'':{2 * table.width + 3}} {'program':34} {'result':9} {'time':>9}  picture, or why not", flush=True
    )
    for program in programs:
        table.begin(program.name)
        seconds = ""
        if os.access(BIN / program.name, os.X_OK):
            start = time.monotonic()
            result, reason = run(program)
            seconds = f"{time.monotonic() - start:.2f} s"
        else:
            result, needs = "not built", ",".join(libraries(program))
            reason = f"needs {needs}" if needs else ""
        counts[result.lower()] += 1
        table.row(f"{result:9} {seconds:>9}  {reason}")
    summary = ", ".join(f"{count} {result}" for result, count in counts.items())
    print(f"{summary}; what they printed is in {BUILD}/run")
    return counts["failed"] > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
