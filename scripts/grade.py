#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""grade.py PATH: grades solutions of exercises, for make grade: a .cu file, or all below a folder. docs/teaching.md has the tables, the
verdicts and the limits, docs/grading.md what this holds and what it does not. BACKEND, BUILD, BIN and JOBS are the settings of make. The exit status
is 1 unless all are right."""
import collections
import concurrent.futures
import contextlib
import csv
import json
import os
import pathlib
import re
import resource
import secrets
import shutil
import signal
import subprocess
import sys
import time

from check import DETECTED, own_errors
from exercise import BACKEND, TIME_LIMIT, Exercise, build, why_not_built
from programs import BUILD, ROOT
from run import TOO_LONG, execute, lines_of, reason_of, wait_for_others
from submission import OWN, functions_of, with_functions
from tokens import Problem

RACES = BACKEND != "gpu" and os.environ.get("CHECK") != "0"
JOBS = int(os.environ.get("JOBS") or os.cpu_count())
MEMORY_LIMIT = int(os.environ.get("MEMORY_LIMIT") or (0 if BACKEND == "gpu" else 4096))
OUTPUT_LIMIT = int(os.environ.get("OUTPUT_LIMIT") or 16)
TABLE = pathlib.Path(os.environ.get("TABLE") or ROOT / BUILD / "grades")
MIB = 1 << 20
LONGEST = 64 << 10  # bytes of a submission
WORK = ROOT / BUILD / "grade"
SOURCES = pathlib.Path("my/.grade")  # relative to ROOT
SCHEDULES = "forward", "random:1", "random:2"
BOXES = (
    "bwrap --unshare-all --die-with-parent --ro-bind / / --dev-bind /dev /dev --proc /proc --bind HERE HERE --chdir HERE",
    "unshare --user --map-current-user --net --ipc --pid --fork --kill-child --mount-proc setpriv --no-new-privs",
)
SIMILAR = 90  # per cent of one text that are in another one, for a note


def limit(**limits):
    """For preexec_fn: sets limits such as AS=4 << 30."""
    return lambda: [resource.setrlimit(getattr(resource, f"RLIMIT_{n}"), (v, v)) for n, v in limits.items()]


def shown(text):
    """A name or a message as one line in which every character can be seen."""
    return "".join(c if c.isprintable() and c != "\\" else c.encode("unicode_escape").decode() for c in text)


def find_box(here):
    """A function that returns the words of a command that runs another one without network and without new privileges, in a folder."""
    here.mkdir(parents=True, exist_ok=True)
    for box in BOXES:
        in_box = lambda folder, box=box: [folder if word == "HERE" else word for word in box.split()]
        words = in_box(here)
        if shutil.which(words[0]) and subprocess.run([*words, "true"], capture_output=True).returncode == 0:
            return in_box
    print("make grade: runs have no sandbox: neither bwrap nor unshare works here", file=sys.stderr)
    return lambda _: []


def exercise_of(path, text):
    """The exercise that a text is a solution of: the name of the program, or None."""
    named = re.search(r"^ \* Run: .*\./bin/(?:my/)?([a-z0-9_]+/[a-z0-9_]+)(?![a-z0-9_/])", text, re.M)
    name = named[1] if named else str(path.with_suffix("").relative_to(path.parent.parent))
    return name if re.fullmatch("[a-z0-9_]+/[a-z0-9_]+", name) and (ROOT / f"{name}.cu").is_file() else None


def sources_below(folder):
    """The .cu files below a folder, sorted. Folders that cannot be read, and those whose path is too long for the system, are named."""
    found, folders = [], [folder]
    while folders:  # no recursion: students make folders of any depth
        here = folders.pop()
        try:
            for entry in os.scandir(here):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.name.endswith(".cu"):
                    found.append(pathlib.Path(entry.path))
        except OSError as error:
            name = shown(os.path.relpath(here, folder))
            print(f"make grade: not read: {name[:100]}: {error.strerror}", file=sys.stderr)
    return sorted(found)


class Submission:
    """A file, and what is found out about it. goal is that of make; lines is the reason of the verdict."""

    def __init__(self, path, folder, number):
        self.path, self.file, self.number = path, str(path.relative_to(folder)), number
        self.student = self.file.split("/")[0].removesuffix(".cu")
        self.exercise = self.goal = None
        self.folder = SOURCES / str(number)
        self.verdict, self.lines, self.notes, self.own, self.seconds, self.kernels = "", [], [], "", 0.0, []
        self.here = WORK / f"runs/{number}/here"  # the folder of a run, the only one that it can write to

    def decide(self, verdict, *lines):
        ours = f"{self.goal}/|{self.folder}/|{OWN}"
        self.verdict, self.lines = verdict, [shown(re.sub(ours, "", line)) for line in lines if line]

    def row(self):
        points = self.exercise.stars() if self.exercise and self.verdict == "right" else 0
        points = len(self.kernels) or points  # a ladder has a point for each kernel
        name, reason = self.exercise.name if self.exercise else "", "\n".join(self.lines)
        texts = dict(reason=reason, notes="; ".join(self.notes), file=shown(self.file))
        row = dict(student=shown(self.student), exercise=name, verdict=self.verdict, points=points)
        return {**row, "seconds": round(self.seconds, 1), **texts}

    def assemble(self):
        """Writes the program with the functions of the submission, or decides."""
        signal.alarm(TIME_LIMIT)  # for regular expressions, which some texts make slow
        try:
            if self.path.is_symlink() or not self.path.is_file():
                raise Problem("a symbolic link, or no file")
            if self.path.stat().st_size > LONGEST:
                raise Problem(f"longer than {LONGEST >> 10} KiB")
            text = self.path.read_text(errors="replace")
            name = exercise_of(self.path, text)
            if not name:
                why = 'its header has no "Run: ./bin/chapterNN/name" of a program of the suite'
                return self.decide("unknown", why)
            self.exercise = Exercise(name)
            if self.exercise.why_none():
                return self.decide("unknown", "this program is no exercise")
            goal, (given, further) = self.folder / name, functions_of(self.exercise, text)
            text = with_functions(self.exercise, given, further, "../../../../", goal)
        except (Problem, OSError) as problem:
            return self.decide("wrong", getattr(problem, "strerror", str(problem)))
        finally:
            signal.alarm(0)
        self.goal, self.own = goal, "\n".join(text for _, text in [*further, *given.values()])
        (ROOT / goal).parent.mkdir(parents=True)
        (ROOT / f"{goal}.cu").write_text(text)

    def run_once(self, folder, options, schedule, seconds=TIME_LIMIT, **settings):
        """Runs the program in a folder of its own, with limits. Returns its status, the lines of stderr, and the verdict of
        common/exercise/verdict.c if it comes with the word that is drawn here."""
        here, base, word = self.here, self.here.parent, secrets.token_hex(16)
        shutil.rmtree(here, ignore_errors=True)
        here.mkdir(parents=True)
        (base / "word").write_text(word + "\n")
        # The race detector reserves 32 GiB of addresses for its table, and uses little of that.
        memory = {"AS": (MEMORY_LIMIT + (32768 if RACES else 0)) * MIB} if MEMORY_LIMIT else {}
        kept = "PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES"
        env = {name: os.environ[name] for name in kept if name in os.environ} | settings
        env |= {"HOME": str(here), "TMPDIR": str(here), "EXERCISE_GRADED": "1", "CUDA_CPU_SCHEDULE": schedule}
        env |= {"CUDA_CPU_STREAMS": "late", "CUDA_CPU_FILL": "nan"}
        env |= {"CUDA_CPU_STRICT": "1", "CUDA_CPU_CONST": "1"}
        size = OUTPUT_LIMIT * MIB
        limits = limit(CORE=0, CPU=TIME_LIMIT * 2, FSIZE=size, NPROC=4096, NOFILE=1024, **memory)
        # The first process of a sandbox does not get every signal, so that is a shell.
        inner = [*self.in_box(here), "sh", "-c", '"$@"; exit $?', "sh", WORK / folder / self.goal, *options]
        files = f'exec 3<"{base}/word" 4>"{base}/said" && rm "{base}/word" && exec "$@"'
        command, begin = ["sh", "-c", files, "sh", *inner], time.monotonic()
        status, errors = execute(command, base / "run", seconds, cwd=here, env=env, preexec_fn=limits)
        self.seconds += time.monotonic() - begin
        said = re.findall(rf"^{word} (.*)$", "\n".join(lines_of(base / "said")), re.M)
        return status, errors, "".join(said[-1:])

    def is_right(self, folder, options, schedule, seconds=TIME_LIMIT):
        """Whether a run with a random seed, and other sizes than the given ones, is right. If not, decides."""
        vary = lambda n: str(secrets.randbelow(int(n[0]) // 8 + 1) + int(n[0]) * 7 // 8)
        varied = re.sub(r"(?<=--size )\d+", vary, options)
        for chosen in varied, options:  # some programs do not have all sizes
            words = [*chosen.split(), "--seed", str(secrets.randbelow(1 << 31))]
            status, errors, said = self.run_once(folder, words, schedule, seconds)
            if status != 64:
                break
        errors = [line for line in own_errors(errors) if "--inject-error" not in line]
        found = next((i for i, line in enumerate(errors) if DETECTED.search(line)), None)
        run = f"options {' '.join(words)}, CUDA_CPU_SCHEDULE={schedule}"
        if found is not None:
            kind = "race" if DETECTED.search(errors[found])[1] in ("race", "divergent") else "wrong"
            self.decide(kind, *errors[found : found + 20], run)
        elif said == "right" and status == 0:
            return True
        elif said == "not checked" or status == 2:  # the machine lacks what the program needs, such as a GPU
            self.decide("unknown", *errors[:1])
        elif status == 0:
            self.decide("wrong", "the program ended before its check", run)
        else:
            status = TOO_LONG if status == 128 + signal.SIGXCPU else status
            first = reason_of(status, errors, seconds)
            self.decide("wrong", first, *[line for line in errors[:20] if line != first], run)
        return False

    def note_idle_threads(self):
        """Adds a note if one thread has done the work of a block, as the recorded launch says."""
        with contextlib.suppress(OSError, ValueError):
            launch = json.loads((self.here / "trace.json").read_text())["launch"]
            used = [a for a in launch["accesses"] if a["memory"] in ("global", "shared")]
            turns, lanes = (sum(a[of] for a in used) for of in ("warp_accesses", "lanes"))
            x, y, z = launch["block"]
            if x * y * z > 1 and lanes < 1.2 * turns:
                self.notes.append(f"in {launch['kernel']} one thread of a warp does all the work")

    def is_built(self, folder):
        """Whether make has built it. If not, decides."""
        why = why_not_built(self.goal, WORK / folder, WORK / f"{folder}.log")
        if why:
            hint = "; only the functions asked for and __device__ functions are taken"
            verdict = "unknown" if re.match(r"does not build: make: \S+ needs ", why[0]) else "wrong"
            self.decide(verdict, why[0] + hint * ("not declared" in why[0]), *why[1:20])
        return not why

    def grade_small(self):
        """Decides by the small sizes of make check. What is right there stays undecided until its default size is right too."""
        if not self.is_built("bin"):
            return
        options = self.exercise.options if RACES else ""
        every = lambda options: all(self.is_right("bin", options, s) for s in SCHEDULES)  # noqa: E731
        right = every(options)
        verdict, lines, told = self.verdict, self.lines, ""
        if verdict != "unknown":
            self.kernels, told = self.exercise.of_kernels(lambda options: right or every(options))
        if not right:
            self.verdict, self.lines = verdict, [told + lines[0], *lines[1:]] if lines else lines
            return
        # The check must also notice a result that is not right. This run is recorded.
        kernel = next((f",kernel={f.name}" for f in self.exercise.asked if "__global__" in f.declared), "")
        trace = {"CUDA_CPU_TRACE": f"trace.json{kernel}"} if RACES else {}
        if self.run_once("bin", [*options.split(), "--inject-error"], "forward", **trace)[2] != "wrong":
            return self.decide("wrong", "the check does not notice a changed result")
        self.note_idle_threads()
        # The search for races makes large sizes slow. If it has not ended soon, another build decides.
        runs = self.large_runs("bin")[not options :]
        sure = all(self.is_right("bin", large, "forward", min(3, TIME_LIMIT)) for large in runs)
        self.decide("right" if sure else "")

    def large_runs(self, folder):
        """The options of a run with the default size, and of one that is fifteen times as large, if that has few rounds of a
        loop with the stride of the grid."""
        few_frames = "".join(re.findall(r"--frames \d+", self.exercise.options))
        stride = re.compile(r"\+= (stride|[^;]*(gridDim|num_threads))\b")
        if not any(stride.search(f.text) for f in self.exercise.asked):
            return [few_frames]
        self.run_once(folder, ["--help"], "forward")
        told = "\n".join(lines_of(self.here.parent / "run.txt"))
        sizes = map(int, re.findall(r" --size=N\s[^(]*\(default (\d+)", told))
        return [few_frames, *(f"--size {16 * size}" for size in sizes if size <= 1 << 17)]

    def grade_default(self):
        runs = self.large_runs("plain") if self.is_built("plain") else []
        if runs and all(self.is_right("plain", options, "forward") for options in runs):
            self.decide("right")
        else:
            self.kernels = []
            self.lines[0] = f"with a large size: {self.lines[0]}"


def note_similar(submissions):
    """Adds a note to submissions whose functions are nearly the same, other names and constants apart."""
    if not shutil.which("sim_c++"):
        print("make grade: no sim_c++ (package similarity-tester): similar submissions are not looked for")
        return
    groups, folder = collections.defaultdict(dict), WORK / "similar"
    folder.mkdir()
    for s in submissions:
        if s.own:
            (folder / f"{s.number}.cu").write_text(s.own)
            groups[s.exercise.name][f"{s.number}.cu"] = s
    for group in groups.values():
        command = ["sim_c++", "-peaT", "-r", "16", "-t", str(SIMILAR), *group]
        said = subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout
        found = re.findall(r"^(\S+) consists for (\d+) % of (\S+) material", said, re.M)
        shares = {(one, other): int(share) for one, share, other in found}
        for one, s in group.items():
            for least in SIMILAR, 100:
                alike = [n for n in group if min(shares.get((one, n), 0), shares.get((n, one), 0)) >= least]
                names = [name for n in alike if (name := shown(group[n].student)) != shown(s.student)]
                if 0 < len(names) <= max(3, len(group) // 10):
                    s.notes.append(f"nearly the same as {', '.join(dict.fromkeys(names))}")
                    break


def build_all(submissions, folder, check=""):
    """Builds all into a folder. Limits stop a source that makes the compiler run without end, or write without end."""
    # A function that lacks a return would go on in the one that follows it in the program, such as main.
    flags = f"NVCCFLAGS={check}" + "-Xcompiler=-Werror=return-type" * (BACKEND != "gpu")
    limits = limit(CPU=300, AS=6 << 30, FSIZE=256 * MIB)
    settings = f"BIN={WORK / folder}", f"JOBS={JOBS}", "SANITIZE=", flags
    build([s.goal for s in submissions], WORK / f"{folder}.log", *settings, preexec_fn=limits)


def write_tables(rows):
    """A cell of the CSV never begins like a formula of a spreadsheet."""
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    TABLE.with_name(f"{TABLE.name}.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    with TABLE.with_name(f"{TABLE.name}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0])
        writer.writerows([re.sub("^(?=[-=+@])", "'", str(cell)) for cell in row.values()] for row in rows)


def clean_up():
    """Leaves only what make said, in bin.log and plain.log."""
    shutil.rmtree(ROOT / SOURCES, ignore_errors=True)
    for path in WORK.glob("*/"):
        shutil.rmtree(path, ignore_errors=True)


def took_too_long(*_):
    raise Problem(f"took longer than {TIME_LIMIT} s to read")


def main(path):
    folder = path.parent if path.is_file() else path
    files = [path] if path.is_file() else sources_below(folder) if path.exists() else []
    if not files:
        sys.exit(
            f"make: DIR={path}: there is no {'.cu file in it' if path.exists() else 'such file or folder'}"
        )
    submissions = [Submission(path, folder, i) for i, path in enumerate(files)]
    for submission in submissions:
        submission.assemble()
    Submission.in_box = staticmethod(find_box(WORK / "runs/here"))
    with concurrent.futures.ThreadPoolExecutor(1 if BACKEND == "gpu" else JOBS) as pool:
        small = "bin", "--check -O1 " * RACES, Submission.grade_small, ""
        for folder, check, work, again in small, ("plain", "", Submission.grade_default, " once more"):
            rest = [s for s in submissions if not s.verdict]
            print(
                f"make grade: {len(rest)} of {len(files)} are built and run{again}",
                file=sys.stderr,
                flush=True,
            )
            build_all(rest, folder, check)
            list(pool.map(work, rest))
    note_similar(submissions)
    for s in submissions:
        told = "".join(f": {line[:200]}" for line in s.lines[:1]) + "".join(f" ({note})" for note in s.notes)
        print(f"{s.verdict:9} {s.exercise.name if s.exercise else '-':34} {shown(s.file)}{told}")
    write_tables([s.row() for s in submissions])
    counts = collections.Counter(s.verdict for s in submissions)
    summary = ", ".join(f"{count} {result}" for result, count in sorted(counts.items()))
    print(f"{summary}; {TABLE}.csv, .json")
    return set(counts) != {"right"}


if __name__ == "__main__":
    for number in signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, lambda *_: sys.exit(1))
    signal.signal(signal.SIGALRM, took_too_long)
    lock = wait_for_others("grade")
    try:
        clean_up()  # after a run that was killed
        sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
    finally:
        clean_up()
