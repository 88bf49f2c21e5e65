#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mutate.py: mutation testing: puts one small mistake at a time (mutants.py) into a program, whose own check must notice it: into its
lesson, the part above the ruler line, or a header of its chapter. One is detected when the program ends with another status than 0 in one
of these runs, on the CPU back end: with the options of `make check`, by default, with `--size 77` and `--size 1`, and on another device
with seven workers; with the race detector of `make check` under each of its schedules, where a race on purpose must be found; with
CUDA_CPU_CHECK=1 and with the sanitizers of the compiler; when the compiler warns of it alone; when a test of the program fails. Runs
longer than `--longest` follow after the others.

Not counted is a mutant that the program's compiler, with -O2, turns into the same binary, and one that makes no difference: in all runs of
its own check and six of other random sizes the program ends the same way, prints the same but for what it measures, writes the same files,
and each copy and each piece of memory that it frees holds the same bytes. This is never said of a wait, a barrier, a fence, a lock, an
atomic operation or two calls in another order, since these runs have one schedule. The survivors and the mutants without a difference are
printed, for a person to examine. A mistake that a check once missed becomes a line of permanent_mutants.txt."""
import argparse
import collections
import concurrent.futures
import contextlib
import dataclasses
import itertools
import os
import pathlib
import random
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
import helpers  # noqa: E402
import check  # noqa: E402: scripts/, which helpers adds to the path
from mutants import Mutant, mutants  # noqa: E402

ROOT = helpers.ROOT
# The settings of make for each way to compile the programs
BUILDS = {"plain": [], "check": ["NVCCFLAGS=--check"], "sanitize": ["SANITIZE=address,undefined"]}
NOTICED = {"own check", "make check", "sanitizers", "warnings", "tests"}
NOT_NOTICED = ["survived", "no difference", "equivalent", "does not compile"]
# Changes of which runs of one schedule say nothing
ONE_SCHEDULE = re.compile(r"^without .*([Ss]ync|Wait|fence|lock\()|^plain load|^\S+ before ")


@dataclasses.dataclass
class Stage:
    """A way to run a program."""

    by: str  # what notices the mistake: own check, make check, sanitizers
    build: str
    options: list
    environment: dict = dataclasses.field(default_factory=dict)
    race: bool = False  # it must fail: a race on purpose is found
    seconds: float = 0  # CPU time without a mistake


def stages_of(program):
    """The runs of a program, the cheapest first: its own check, then make check, then the sanitizers."""
    rest = ["--runs", "1"] if program.bench else []
    runs = [run.split() for run in program.check.split("|")]
    checks = [run for run in runs if "(race)" not in run] or [[]]
    on_purpose = [run[:-1] for run in runs if "(race)" in run]
    own = [*(rest + options for options in checks), rest]
    for size in ("77", "1") if "size" in program.own_options else ():
        odd = [*checks[0], *([] if "--size" in checks[0] else ["--size", size])]
        odd[odd.index("--size") + 1] = size
        own.append(rest + odd)
    stages = [Stage("own check", "plain", options) for options in own]
    if not program.host_only and program.gpus == 1:
        device = [*rest, *checks[0], "--device", "1"]
        stages.append(Stage("own check", "plain", device, {"CUDA_CPU_WORKERS": "7"}))
    races = []
    for schedule in check.WAYS:
        environment = check.settings_of(schedule)
        races += [Stage("make check", "check", rest + options, environment) for options in checks]
    races += [
        Stage("make check", "check", options, races[0].environment, race=True) for options in on_purpose
    ]
    stages += races[: len(checks)]
    for options in checks:
        stages.append(Stage("sanitizers", "plain", rest + options, {"CUDA_CPU_CHECK": "1"}))
        stages.append(Stage("sanitizers", "sanitize", rest + options))
    return stages + races[len(checks) :]


def commands(programs, *settings):
    """The command that compiles each program, as make prints it: a list of words without those that write dependencies. Programs
    that lack a library are missing."""
    helpers.make("common", "BACKEND=cpu", *settings)
    output = helpers.make("-n", "-k", "BACKEND=cpu", *settings, *programs, status=None)
    found = {}
    for line in output.replace("\\\n", " ").splitlines():
        if match := re.search(r" -MMD .*? -o \S+/(\w+/\w+) ", line):
            found[match[1]] = shlex.split(re.sub(r" -MMD -MP -MF \S+ -MT \S+", "", line))
    return found


def compile_copy(program, command, folder, binary, changed=None, flags=("-O1", "-w")):
    """Compiles a copy of a program in which the files of the dictionary `changed` have other contents. Returns the exit status and the
    messages of the compiler."""
    chapter = folder / program.split("/")[0]
    if not chapter.exists():
        shutil.copytree(helpers.ROOT / chapter.name, chapter, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "common").symlink_to(helpers.ROOT / "common")
    for file, text in (changed or {}).items():
        (folder / file).write_text(text)
    words = [w for w in command if w not in ("-O2", "-g", "-lineinfo", "-Xcompiler=-Wall,-Wextra,-pthread")]
    words[words.index("-o") + 1] = str(binary)
    words[words.index(f"{program}.cu")] = str(folder / f"{program}.cu")
    words[1:1] = [*flags, "-Xcompiler=-pthread"]
    done = subprocess.run(words, cwd=helpers.ROOT, **helpers.TOGETHER)
    return done.returncode, done.stdout


def run_once(binary, stage, limit):
    """Runs a program in an empty folder. Returns its exit status, or None if it takes too long, and its CPU seconds."""
    settings = {"CUDA_CPU_WORKERS": "3", "CUDA_CPU_WATCHDOG": "4", **stage.environment}
    limits = {resource.RLIMIT_CPU: int(limit) + 1, resource.RLIMIT_FSIZE: 1 << 28, resource.RLIMIT_CORE: 0}
    with tempfile.TemporaryDirectory() as cwd:
        used, status = resource.getrusage(resource.RUSAGE_CHILDREN), None
        with contextlib.suppress(AssertionError):  # it takes too long
            more = {"limits": limits, "stdout": subprocess.DEVNULL}
            status = helpers.execute(binary, stage.options, cwd, settings, limit * 4 + 20, **more).status
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        return status, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime


def reference(task):
    """The stages of a program that end with status 0 without a mistake, and do not take too long."""
    program, by, compilers, options = task
    stages, binaries = [], {}
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        for stage in stages_of(program):
            if options.permanent and (stage.by not in by or stage.by in [s.by for s in stages]):
                continue
            if stage.build == "plain" and (helpers.BIN / program.name).exists():
                binaries["plain"] = helpers.BIN / program.name
            if stage.build not in binaries:
                binaries[stage.build] = binary = pathlib.Path(folder) / stage.build
                command = compilers[stage.build][program.name]
                failed, messages = compile_copy(program.name, command, pathlib.Path(folder), binary)
                if failed:
                    return program.name, messages
            limit = options.longest * (1 if options.permanent else 8)
            status, stage.seconds = run_once(binaries[stage.build], stage, limit)
            if status is not None and (status > 0 if stage.race else status == 0) and stage.seconds <= limit:
                stages.append(stage)
    return program.name, sorted(stages, key=lambda stage: stage.seconds > options.longest)


def same(program, command, folder, changed):
    """Compares a mutant with its program as a release compiles them, without the information for debuggers: "equivalent" if the binaries
    are equal, "warnings" if the compiler warns of the mutant alone, else None."""
    built, binary, flags = [], folder / "optimized", ("-O2", "-Xcompiler=-Wall,-Wextra")
    for texts in {file: (ROOT / file).read_text() for file in changed}, changed:
        _, messages = compile_copy(program, command, folder, binary, texts, flags)
        subprocess.run(["strip", binary], check=True)
        built.append(("warning:" in messages, binary.read_bytes()))
    return "equivalent" if built[0] == built[1] else "warnings" if built[0][0] < built[1][0] else None


def differs(program, command, folder, changed, stages, seed):
    """Whether a run of a mutant, by one worker, gives another result than its program, or no result can be compared. What differs from one
    run of the program to the next was measured: it says nothing. Some measured values, such as a few cycles, are often the same, so the
    program runs up to nine times while there is a difference."""
    numbers, runs = random.Random(seed), [s.options for s in stages if s.by == "own check"]
    if "size" in program.own_options:
        runs += [[*runs[0], f"--size={numbers.randint(1, most)}"] for most in (8, 40, 40, 300, 300, 2000)]
    start, flags = pathlib.Path(shutil.which("setarch")), ["-O1", "-w", "-include", str(HERE / "digest.h")]
    flags += ["-DDIGEST_MALLOC"] if program.host_only else []

    def results(binary):
        lines = []
        for options in runs:
            with tempfile.TemporaryDirectory() as cwd:
                settings = {"CUDA_CPU_WORKERS": "1", "CUDA_CPU_FILL": "nan"}
                done = helpers.execute(start, ["-R", binary, *options], cwd, settings)
                lines += [done.status, *done.lines, *done.errors]
                lines += [f"file {hash(file.read_bytes())}" for file in sorted(pathlib.Path(cwd).iterdir())]
        # A ladder repeats a rung as often as its time allows.
        return [line for line, _ in itertools.groupby(lines)]

    original, mutant = folder / "original", folder / "mutant"
    texts = {file: (ROOT / file).read_text() for file in changed}
    compile_copy(program.name, command, folder, original, texts, flags)
    compile_copy(program.name, command, folder, mutant, changed, flags)
    with contextlib.suppress(AssertionError):  # it takes too long
        found, mutated = [results(original)], results(mutant)
        while len(found) < 9:
            found.append(results(original))
            if len({*map(len, [*found, mutated])}) > 1:
                break
            reliable = [(values[0], other) for *values, other in zip(*found, mutated) if len({*values}) == 1]
            if not any(re.match("copied|freed|file ", str(value)) for value, _ in reliable):
                break
            if all(value == other for value, other in reliable):
                return False
    return True


def suite(program):
    """The tests of a program, as arguments of pytest: those of its chapter that name it, and of all programs."""
    (chapter, base), names = program.split("/"), [program]
    files = [*(ROOT / "tests").glob(f"test_{chapter}*.py")]
    for block in [block for file in files for block in file.read_text().split("\n\n\n")]:
        if base in re.findall(r"\w+", block):
            names += re.findall(r"^def (test_\w+)", block, re.M)
    return [*map(str, files), "tests/test_programs.py", "tests/test_bench.py", "-k", " or ".join(names)]


def failing(program, binary, folder, arguments, seed):
    """Runs tests with another binary of a program. Returns the names of those that fail."""
    links = pathlib.Path(tempfile.mkdtemp(dir=folder)) / "bin"
    shutil.copytree(helpers.BIN, links, copy_function=os.symlink)
    (links / program).unlink()
    (links / program).symlink_to(binary)
    environment = helpers.environment({"BIN": str(links), "EVERYTHING_IS_BUILT": "1", "TEST_SEED": str(seed)})
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, **helpers.TOGETHER)
    return re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", done.stdout, re.M)


def judge(program, stages, compilers, changed, folder, options):
    """What notices a mutant of a program, or a reason not to count it, or "survived"."""
    binaries = set()
    for stage in stages:
        binary = folder / stage.build
        if stage.build not in binaries:
            if compile_copy(program.name, compilers[stage.build], folder, binary, changed)[0]:
                break
            binaries.add(stage.build)
        failed = run_once(binary, stage, max(1, 8 * stage.seconds))[0] != 0
        if failed != stage.race:
            return stage.by
    if not binaries:
        return "does not compile"
    by = same(program.name, compilers["plain"], folder, changed)
    if by or options.permanent:
        return by or "survived"
    # What fails must fail twice, and not without the mistake.
    before, failed = None, suite(program.name)
    for binary in folder / "plain", folder / "plain", helpers.BIN / program.name:
        before, failed = failed, failed and failing(program.name, binary, folder, failed, options.seed)
    if set(before) - set(failed):
        return "tests"
    differ = differs(program, compilers["plain"], folder, changed, stages, options.seed)
    return "survived" if differ else "no difference"


def attack(task):
    """A mutant, and what noticed it in one of its programs or why it is not counted, or "survived"."""
    mutant, runs, options = task
    if options.minutes and time.time() > options.begin + 60 * options.minutes:
        return mutant, "not tried"
    changed = {mutant.file: mutant.applied((ROOT / mutant.file).read_text())}
    found = set()
    for run in runs:
        with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
            found.add(judge(*run, changed, pathlib.Path(folder), options))
        if found & NOTICED:
            break
    if ONE_SCHEDULE.search(mutant.change):
        found = {"survived" if by == "no difference" else by for by in found}
    return mutant, next(by for by in (*NOTICED, *NOT_NOTICED) if by in found)


def permanent(mutants):
    """The mutants of permanent_mutants.txt in the files that are mutated."""
    chosen, files = [], {m.file for m in mutants}
    for line in (HERE / "permanent_mutants.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        by, file, change, text = line.split(" | ")
        source = (ROOT / file).read_text()
        if file not in files:
            continue
        old, arrow, new = change.replace("\\n", "\n").partition(" => ")
        if arrow and old in source:
            at = source.index(old)
            chosen.append(Mutant(0, change, text, [(at, at + len(old), new)], file, by))
            continue
        pattern = re.compile(".*".join(map(re.escape, change.split("*"))))
        found = [
            m for m in mutants if m.file == file and pattern.fullmatch(m.change) and text in ("*", m.text)
        ]
        if not found:
            sys.exit(f"mutate.py: permanent_mutants.txt: {file} has no {change!r} at {text!r}")
        chosen += [dataclasses.replace(m, by=by) for m in found]
    return chosen


def sources(programs):
    """A dict from each file that is mutated, a program or a header of its chapter, to the names of the programs that contain it."""
    users = {}
    for program in programs:
        folder, files = program.name.split("/")[0], [f"{program.name}.cu"]
        for file in files:
            for header in re.findall(r'^#include "(\w+\.h)"', (ROOT / file).read_text(), re.M):
                if (ROOT / folder / header).exists() and f"{folder}/{header}" not in files:
                    files.append(f"{folder}/{header}")
            users.setdefault(file, []).append(program.name)
    return users


def main(words):
    form = argparse.ArgumentDefaultsHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__.partition(": ")[2], formatter_class=form)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="such as chapter05/dot; default: all")
    for option, text in {
        "permanent": "the mutants of permanent_mutants.txt, without sanitizers",
        "list": "print the mutants and stop",
    }.items():
        parser.add_argument(f"--{option}", action="store_true", help=text)
    seed = random.SystemRandom().randrange(1 << 31)
    for option, default, text in [
        ("sample", 0, "so many random mutants of all that there are; 0: all of them"),
        ("longest", 4.0, "leave out runs that take more CPU seconds"),
        ("seed", seed, "repeats the random choice"),
        ("minutes", 0.0, "begin no mutant later; 0: no limit"),
        ("jobs", os.cpu_count(), "processes at the same time"),
    ]:
        parser.add_argument(f"--{option}", type=type(default), default=default, help=text)
    options = parser.parse_args(words, argparse.Namespace(begin=time.time()))
    for name in [name for name in os.environ if re.match("CUDA_|[AUL]B?SAN", name)]:
        del os.environ[name]  # they would change the runs
    programs = {
        p.name: p for p in helpers.programs() if not p.expect and not re.search("mpi|opencl", p.needs)
    }
    users = sources(programs.values())
    found = [m for file in users for m in mutants((ROOT / file).read_text(), file)]
    if options.programs:
        found = [m for m in found if set(users[m.file]) & set(options.programs)]
    if options.permanent:
        found = permanent(found)
    elif options.sample:
        found = random.Random(options.seed).sample(found, min(options.sample, len(found)))
    if options.list:
        print(*found, sep="\n")
        return 0
    # A mutant of a header runs in up to four programs until one notices it.
    needed = list(dict.fromkeys(p for m in found for p in users[m.file][:4]))
    # The modules of the tests run some programs when they are read, and without those all tests would fail.
    missing = [p.name for p in helpers.programs() if p.built and not (helpers.BIN / p.name).exists()]
    if missing and not options.permanent:
        sys.exit(f"mutate.py: build all programs first, for the tests: make (missing: {' '.join(missing)})")
    builds = list(BUILDS)[: 2 if options.permanent else 3]
    compilers = {
        name: commands(needed, f"BIN={helpers.BUILD}/mutate/{name}", *BUILDS[name]) for name in builds
    }
    counts = collections.Counter()
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        # For permanent mutants, what must notice those of a program
        by = {p: {"own check", *(m.by for m in found if p in users[m.file])} for p in needed}
        tasks = [(programs[p], by[p], compilers, options) for p in needed if p in compilers["plain"]]
        stages = {}
        for program, runs in pool.map(reference, tasks):
            if isinstance(runs, list) and runs:
                stages[program] = runs
            else:
                counts["programs not run"] += 1
                print(f"{program}: not run: {runs or 'it ends with an error without a mistake'}")
    compilers = {p: {build: compilers[build].get(p) for build in builds} for p in stages}
    tasks = [
        (m, [(programs[p], stages[p], compilers[p]) for p in users[m.file][:4] if p in stages], options)
        for m in found
    ]
    late = 0
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        attacks = [pool.submit(attack, task) for task in tasks if task[1]]
        try:
            for done in concurrent.futures.as_completed(attacks):
                mutant, by = done.result()
                counts[by] += 1
                # A permanent one must be noticed by what it names, or earlier.
                too_late = mutant.by and by not in (mutant.by, "own check")
                late += bool(too_late)
                if too_late or by in ("survived", "no difference"):
                    print(f"{by}: {mutant}{', noticed too late' * bool(too_late)}", flush=True)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
    noticed = sum(counts[by] for by in NOTICED)
    total = noticed + counts["survived"]
    shown = {"programs": len(stages), **+counts, "seed": options.seed}
    shown["detected"] = f"{noticed} of {total}, {100 * noticed / max(1, total):.1f} %"
    shown["minutes"] = f"{(time.time() - options.begin) / 60:.1f}"
    print("mutate.py: " + ", ".join(f"{what} {value}" for what, value in shown.items()))
    return int(late > 0 or counts["programs not run"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
