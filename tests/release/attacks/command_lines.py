#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""command_lines.py: runs all programs, built with AddressSanitizer and UndefinedBehaviorSanitizer, with random and hostile command
lines: unknown and shortened options, numbers at and beyond their limits, very long arguments, file names with control characters or
what a shell or printf would act on, strange locales and settings, a hostile argv[0], stdout and stderr that are closed, full or
read by nobody, folders that cannot be written. Most command lines contain at least one mistake; `--runs` is the share of those without one,
which run the program at a small size. The exit status must be a documented one. A refusal is one line on stderr and nothing on stdout, without
control characters, and leaves no file. A report of a sanitizer, a signal, a run that does not end, a file that is written in spite of a
refusal, a change of another file, or a temporary file that is left behind is a defect."""
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile

import shared
from shared import helpers

SECONDS = 300  # limit of a run
ENDINGS = [".png", ".ppm", ".webp", ".svg"]

# Pieces of hostile texts; bytes above 127 are not UTF-8.
PIECES = r"%n %s %d %04d %99999d ; | & > < * ? ~ ' ` $(id) $HOME \ / .. . - -- = # ! : , @ {} () [] é 日本 a NUL CON".split()
PIECES += [*'" \x01\x07\x08\t\n\r\x7f\u202e\u2028\U0001f600\udc80']
PIECES += ["\x1b[31m", "\x1b]0;title\x07", "\u009b31m", "\udcff\udcfe", "\udc9b31m"]
NUMBERS = """0 -0 -1 1 2 00 +1 007 1. .5 1e3 1e999 -1e999 1e-999 0x10 0b1 nan inf -inf NaN 1_000 1,5 1K 1k 1KK 1KiB 99G -1G 9999999G
    2147483647 2147483648 4294967295 4294967296 9223372036854775807 9223372036854775808 -9223372036854775808 18446744073709551615
    18446744073709551616 99999999999999 1e308 3.4e38 1e39 1.17e-38 1.7976931348623157e308 ١٢ １ ½ %d %n ' 1' '1 ' '\t1' '1\n' ''"""
NUMBERS = shlex.split(NUMBERS) + ["9" * 400, "0" * 400 + "1", "-", "--", "K"]
WRONG_NUMBERS = ["", "x", "1x", "1e999", "-1e999", " 1", "nan", "1e"]
WRONG_FILES = """. .. / x folder/x x.png.gz missing/x.png file/x.ppm /proc/x.png loop.ppm folder.svg folder.ppm %d%n /dev/full
    loop/x.ppm""".split()
WRONG_FILES += ["", "x" * 256 + ".ppm", "y/" * 2100 + "x.ppm"]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUWXYZ0123456789éø%\x1b"
PRINTS = "--help --usage --version -h --list-devices".split()  # before other options are read
LOCALES = "C POSIX C.UTF-8 de_DE.UTF-8 tr_TR.UTF-8 ja_JP.SJIS xx_XX.utf8 ../../etc %n%s".split()
LOCALES += ["", "\x1b[31m", "x" * 5000]
VARIABLES = """CUDA_VISIBLE_DEVICES COLUMNS LINES TERM COLORTERM NO_COLOR DISPLAY PATH HOME TMPDIR POSIXLY_CORRECT ARGP_HELP_FMT
    LANGUAGE TZ""".split()
SETTINGS = "DEVICES WORKERS SCHEDULE STREAMS STRICT FILL CHECK WATCHDOG TIME_LIMIT FAIL GL"
VARIABLES += [f"CUDA_CPU_{name}" for name in SETTINGS.split()]
FOLDERS = "missing/ file/ folder/ ./ ../run/ folder/../ //dev/null/ /proc/ /dev/full/ loop/".split()
FILES = [".", "..", "/", "-", "x", "x.gif", "x.mp4", "x.PNG", "x.png.gz"]


def text(rng, most=8):
    """A hostile text."""
    kind = rng.random()
    if kind < 0.03:
        return rng.choice(PIECES) * rng.choice([100, 255, 256, 4095, 4096, 20000])
    if kind < 0.1:
        return rng.choice(NUMBERS)
    return "".join(rng.choice(PIECES) for _ in range(rng.randint(0, most)))


def file_name(rng):
    """A file name without folders of its own, or with one that is there for this: see prepare()."""
    kind, ending = rng.random(), rng.choice(ENDINGS)
    if kind < 0.5:
        name = text(rng).replace("/", "")
        return (name if rng.random() < 0.9 else name[:200]) + ending
    if kind < 0.8:
        return rng.choice(FOLDERS) + rng.choice(["x", "", "..", "%d", "\n"]) + ending
    long = ["x" * 250, "x" * 251, "x" * 256, "y/" * 2100]
    here = ["", "folder", "full", "null", "link", "loop"]  # see prepare()
    return rng.choice([*FILES, "", *(name + ending for name in here + long)])


def prepare(folder):
    """The files that are there before each run, and that must be there after it."""
    (folder / "file").write_text("keep")
    (folder / "folder").mkdir()
    for ending in ENDINGS:
        (folder / f"folder{ending}").mkdir()
        (folder / f"full{ending}").symlink_to("/dev/full")
        (folder / f"null{ending}").symlink_to("/dev/null")
        (folder / f"loop{ending}").symlink_to(f"loop{ending}")
        (folder / f"link{ending}").symlink_to("file")
    (folder / "loop").symlink_to("loop")


class Options:
    """The options of a program, from its --help."""

    def __init__(self, program, help_text):
        found = re.findall(r"^ *(?:-\w, )?--([\w-]+)(\[?=(\w+)\]?)?", help_text, re.M)
        self.flags = [name for name, value, _ in found if not value] + ["inject-error"]
        self.valued = {name: kind for name, value, kind in found if value}
        self.program = program

    def value(self, rng, name):
        kind = self.valued[name]
        if kind == "FILE":
            return file_name(rng)
        return rng.choice(NUMBERS) if kind == "N" and rng.random() < 0.8 else text(rng)

    def refused(self, rng):
        """Arguments of which at least one is a mistake, whatever the others are."""
        words = []
        for _ in range(rng.randint(0, 3)):
            if self.valued and rng.random() < 0.7:
                name = rng.choice(list(self.valued))
                value = self.value(rng, name)
                words += [f"--{name}={value}"] if rng.random() < 0.6 else [f"--{name}", value]
            else:
                flag = rng.choice(self.flags)
                words.append("--" + (flag if rng.random() < 0.8 else flag[: rng.randint(0, len(flag))]))
        numbers = [name for name, kind in self.valued.items() if kind == "N"]
        mistakes = [
            [f"--{rng.choice(numbers)}={rng.choice(WRONG_NUMBERS)}"],
            [f"--{rng.choice(numbers)}"],
            [f"--no-such{text(rng)}"],
            [f"--{rng.choice(self.flags)}={text(rng)}"],
            [f"-{rng.choice(LETTERS)}{text(rng, 2)}"],
            ["--", "x" + text(rng)],
            ["x" + text(rng)],
            ["x" * rng.choice([1000, 100000])],
        ]
        if "output" in self.valued:
            mistakes += [[f"--output={rng.choice(WRONG_FILES)}"], [f"--output={text(rng)}.xyz"]]
        if "window" in self.flags:
            mistakes.append(["--window", "--no-window"])
        mistake = rng.choice(mistakes)
        # An option without its value stands at the end, and so does a wrong file, of which the last one counts.
        if mistake[0][2:] in numbers or mistake[0].startswith("--output="):
            return [word for word in words if word.startswith("--") and "=" in word] + mistake
        return mistake + words  # not behind an option that would take it as its value

    def accepted(self, rng):
        """Arguments of a small run, with an output where the program has one."""
        words = list(self.program.small)
        if "output" in self.valued and rng.random() < 0.7:
            words.append(f"--output={file_name(rng)}")
        if "frames" in self.valued:
            words += ["--frames", str(rng.randint(1, 3))]
        if rng.random() < 0.2:
            more = "--list-devices --help --usage -h --inject-error --no-window --seed=9"
            words.append(rng.choice(more.split()))
        return [word for word in words if word != "--no-window" or "no-window" in self.flags]


class Case:
    def __init__(self, seed, number, program, options, runs):
        rng = random.Random(f"{seed} {number}")
        self.runs = rng.random() < runs
        self.words = options.accepted(rng) if self.runs else options.refused(rng)
        self.name = program.base if rng.random() < 0.9 else (text(rng) or "x")
        self.environment = {"PATH": "/usr/bin:/bin", "CUDA_CPU_WORKERS": "2"}
        if rng.random() < 0.3:
            name = rng.choice(["LC_ALL", "LANG", "LC_CTYPE", "LC_MESSAGES"])
            self.environment[name] = rng.choice(LOCALES)
        if rng.random() < 0.1:
            self.environment[rng.choice(VARIABLES)] = text(rng)
        self.folder = rng.choice(["/proc", "/sys"]) if rng.random() < 0.05 else None
        ends = ["out"] * 12 + ["", "|", "/dev/full"]
        self.out, self.err = rng.choice(ends), rng.choice(["err"] * 20 + ["", "|", "/dev/full"])
        self.no_input = rng.random() < 0.1

    def has(self, *options):
        """Whether one of these options, which may be shortened, is among the arguments."""
        return any(
            o.startswith(word) for o in options for word in self.words if len(word) > 2 or word == "-h"
        )

    def __str__(self):
        settings = " ".join(f"{k}={v!a}" for k, v in self.environment.items() if k != "PATH")
        ends = f"{'' if self.out == 'out' else f' >{self.out!a}'}{'' if self.err == 'err' else f' 2>{self.err!a}'}"
        return f"{settings} {self.name!a} {[w if len(w) < 200 else w[:90] + '…' for w in self.words]!a}{ends}"


def execute(case, program, folder):
    """The exit status (negative: a signal; None: the run did not end), stdout and stderr."""
    options = "exitcode=99:detect_leaks=0:allocator_may_return_null=1:handle_abort=0"
    sanitizers = {"ASAN_OPTIONS": options, "UBSAN_OPTIONS": "print_stacktrace=1:exitcode=99"}
    read, nobody_reads = os.pipe()
    os.close(read)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, open("/dev/full", "wb") as full:
        ends = {"out": out, "err": err, "|": nobody_reads, "/dev/full": full, "": None}

        def close():
            for descriptor, there in enumerate((not case.no_input, case.out, case.err)):
                if not there:
                    os.close(descriptor)

        process = subprocess.Popen(
            [word.replace("\0", "") for word in (case.name, *case.words)],
            executable=helpers.BIN / program.name,
            cwd=case.folder or folder,
            env=sanitizers | {k: v.replace("\0", "") for k, v in case.environment.items()},
            stdin=subprocess.DEVNULL,
            stdout=ends[case.out],
            stderr=ends[case.err],
            preexec_fn=close,
            start_new_session=True,
        )
        os.close(nobody_reads)
        try:
            status = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = None
        out.seek(0), err.seek(0)
        return status, out.read(), err.read()


CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def judge(case, program, status, out, err):
    """Why the result is a defect; None if it is none."""
    try:
        out, err = out.decode(), err.decode()
    except UnicodeDecodeError:
        return f"prints bytes that are not UTF-8: {out!r} {err!r}"
    # AddressSanitizer prints this line when fibers are switched by the C library, in a build without Boost.Context.
    err = re.sub(".*fully support makecontext/swapcontext.*\n?", "", err)
    if status is None:
        return f"does not end within {SECONDS} s"
    if helpers.SANITIZER.search(err) or status == 99:
        return f"a sanitizer reports: {err[:3000]}"
    if status not in (0, 1, 2, 64):
        return f"status {status}: {err[:500]}"
    if CONTROL.search(out + err):
        return f"prints control characters: {out!a} {err!a}"
    if err and not err.endswith("\n"):
        return f"an unfinished line: {err!a}"
    notes = "; writing a file| shows the launch of "
    lines = [line for line in err.splitlines() if not re.search(notes, line)]
    counts = {0: [0], 1: [1], 2: [1], 64: [1]}[status]  # how many lines there may be
    if status == 1 and (case.has("--inject-error") or program.status):
        counts = range(1, len(lines) + 1)
    if len(lines) not in counts and (case.err == "err" or len(lines) > 1):
        return f"status {status} with {len(lines)} lines: {err!a}"
    if status == 64 and out:
        return f"status 64, and on stdout {out!a}"
    if not case.runs and status in (0, 2) and not case.has(*PRINTS):
        return f"status {status} for a mistake: {out[:300]!a} {err!a}"
    return None


def look_at(folder, case, status):
    """Looks for files that should not be there, and deletes what the run has written. Returns the defect."""
    problem, here = None, folder / "file"
    if here.read_bytes() != b"keep":
        here.write_text("keep")
        if not any("link" in word for word in case.words):  # links to it
            problem = "has changed another file"
    for path in [*folder.iterdir(), *(folder / "folder").iterdir()]:
        if path.is_symlink() or path.is_dir() or path == here:
            continue
        path.unlink()
        if path.name.startswith(".unfinished-"):
            problem = f"left {path.name}"
        elif status not in (0, 1):
            problem = f"status {status}, but wrote {path.name!a}"
        elif not case.runs and not case.has(*PRINTS):
            problem = f"wrote {path.name!a} for a mistake"
    return problem


def attack(task):
    """Runs the command lines of a program, in a process of its own. Returns what came of them, and the defects."""
    program, numbers, seed, runs = task
    done, defects = collections.Counter(), []
    with tempfile.TemporaryDirectory() as outer:
        folder = pathlib.Path(outer).resolve() / "run"
        folder.mkdir()
        prepare(folder)
        help_text = helpers.execute(program, ["--help"], outer, {"ARGP_HELP_FMT": "rmargin=1000"}).out
        known = Options(program, help_text)
        for number in numbers:
            case = Case(seed, number, program, known, runs)
            status, out, err = execute(case, program, folder)
            about_files = look_at(folder, case, status)
            problem = judge(case, program, status, out, err) or about_files
            done.update({"command lines": 1, "without a mistake": case.runs, f"status {status}": 1})
            if problem:
                defects.append(f"case {number}: {program}: {case}: {problem}")
    return f"{str(program):36} {done['command lines']:6} command lines", done, defects


def main(words):
    options = shared.parse(
        __doc__,
        words,
        lines=(100000, "how many command lines"),
        runs=(0.02, "share of them without a mistake"),
        case=(-1, "only the command line of this number"),
    )
    programs = [p for p in helpers.programs() if p.built and (helpers.BIN / p.name).exists()]
    chosen = [p for p in programs if not options.programs or p.name in options.programs]
    tasks = []
    for program in chosen:  # the numbers do not depend on the choice of programs
        numbers = range(programs.index(program), options.lines, len(programs))
        if options.case >= 0:
            numbers = [options.case] if options.case in numbers else []
        elif "mpi" in program.needs:
            numbers = numbers[::10]  # MPI takes 0.1 s to start
        tasks += [(program, numbers, options.seed, options.runs)] if numbers else []
    kinds = ["command lines", "without a mistake", *(f"status {n}" for n in (0, 1, 2, 64))]
    figures = lambda done: {"programs": len(chosen), **{kind: done[kind] for kind in kinds}}  # noqa: E731
    return shared.campaign(options, concurrent.futures.ProcessPoolExecutor, attack, tasks, figures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
