#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""translator_fuzz.py: gives the translator of the CPU back end, cpu/cu2cpp.c, damaged CUDA sources. They are made from every program,
the list of constructs (tests/constructs) and the unit tests (tests/cpu): bytes and tokens are changed, removed, repeated and inserted,
or parts of two sources are joined. The translator is compiled with AddressSanitizer and UndefinedBehaviorSanitizer. It must either
succeed in silence, or end with status 1 and one line that names file and line. A crash, a report of a sanitizer, a run of more than 10
seconds of CPU time, and any other message are defects. The undamaged sources of tests/constructs must be translated, and the result
must compile.

With AFL++ (afl-fuzz and afl-clang-fast, the package afl++) its mutations are used, which look for inputs that reach new code;
afterwards every input that it kept is checked as above. Otherwise, or with --engine own, the mutations of this file are used.
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
# The translator does not free its memory in order, because it ends soon after.
SANITIZER_SETTINGS = "abort_on_error=1:detect_leaks=0:allocator_may_return_null=1"
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": SANITIZER_SETTINGS, "UBSAN_OPTIONS": "print_stacktrace=1"}
LIMIT = 10  # seconds of CPU time
MESSAGE = re.compile(rb"(?s)\A[^\n]*:\d+: [^\n]+\n\Z|\Acu2cpp: [^\n]+\n\Z")
# What the mutations insert
WORDS = b"""<<< >>> << >> < > ( ) [ ] { } , ; : :: -> . ... * & && = == + - ~ ? # \\ \n " ' // /* */ R"( )" <: :> <% %> 0 1'0 1e+5 x T
__global__ __device__ __host__ __shared__ __constant__ __managed__ extern static const constexpr inline volatile template typename
struct class union enum namespace operator void int auto float return if else for while switch case default goto asm __asm__ typedef
using friend decltype sizeof alignas __align__(16) __attribute__((x)) __launch_bounds__(64) __noinline__ requires noexcept final
[[maybe_unused]] [=] [&] <<<1,1>>>() extern"C" #line "add.u32 %0, %1, %2;" .reg "=r"(x) {%0,%1}""".split(
    b" "
)
TOKEN = re.compile(rb"[A-Za-z_]\w*|\d[\w.]*|\"(?:\\.|[^\"\\\n])*\"|\s+|[<>]{2,3}|.", re.S)


class CannotBuild(Exception):
    """No compiler here can build the translator with sanitizers."""


def build(folder, compilers, name):
    """Compiles the translator with sanitizers, with the first of these compilers that can do it."""
    program = folder / name
    for compiler in compilers:
        words = [
            *compiler.split(),
            "-std=c11",
            "-O1",
            "-g",
            *SANITIZERS,
            ROOT / "cpu/cu2cpp.c",
            "-o",
            program,
        ]
        try:
            made = subprocess.run(words, env={**os.environ, "AFL_QUIET": "1"}, capture_output=True, text=True)
        except OSError as error:
            why = error.strerror
        else:
            if made.returncode == 0:
                return program
            why = made.stderr.strip().rpartition("\n")[2]
    raise CannotBuild(f"{compiler} cannot build cpu/cu2cpp.c with {SANITIZERS[0]}: {why}")


def seeds(longest=None):
    """The sources, without comments, so that mutations change code; with `longest`, in parts of about so many bytes."""
    files = [
        *sorted(ROOT.glob("chapter*/*.cu")),
        *sorted(ROOT.glob("appendix_a/*.cu")),
        *sorted(ROOT.glob("tests/constructs/*.cu")),
        *sorted(ROOT.glob("tests/cpu/*.cu")),
    ]
    texts = (re.sub(rb"(?m)/\*(?s:.*?)\*/|(?<!:)//.*$", b"", path.read_bytes()) for path in files)
    found = [re.sub(rb"\n\s*\n+", b"\n", text) for text in texts]
    if not longest:
        return found
    parts = []
    for text in found:
        part = b""
        for item in re.split(rb"(?<=\n}\n)", text):
            part += item
            if len(part) > longest:
                parts.append(part)
                part = b""
        parts.append(part)
    return [
        part
        for part in parts
        if len(part) < 4 * longest and re.search(rb"<<<|__(global|device|shared)__|asm", part)
    ]


def balanced(tokens):
    """Removes and adds brackets until all are in pairs. The translator refuses other texts before it does anything else."""
    pairs, kept, open_ones = {b")": b"(", b"]": b"[", b"}": b"{"}, [], []
    for token in tokens:
        if token in pairs.values():
            open_ones.append(token)
        elif token in pairs:
            if not open_ones or open_ones[-1] != pairs[token]:
                continue
            open_ones.pop()
        kept.append(token)
    closing = {opening: token for token, opening in pairs.items()}
    return kept + [closing[token] for token in reversed(open_ones)]


def mutate(chance, sources):
    """Returns a damaged part of a source."""
    tokens = TOKEN.findall(chance.choice(sources))
    start = chance.randrange(len(tokens))
    tokens = tokens[start : start + chance.choice((20, 200, 2000, 20000))]
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        i, n = chance.randrange(len(tokens) + 1), chance.choice((1, 1, 2, 5, 30))
        kind = chance.randrange(8)
        if kind == 0:
            del tokens[i : i + n]
        elif kind == 1:
            tokens[i:i] = tokens[i : i + n] * chance.choice((1, 1, 2, 50))
        elif kind == 2:
            other = TOKEN.findall(chance.choice(sources))
            j = chance.randrange(len(other))
            tokens[i:i] = other[j : j + n]
        elif kind == 3 and tokens:
            j = chance.randrange(len(tokens))
            tokens[i : i + n], tokens[j : j + n] = tokens[j : j + n], tokens[i : i + n]
        elif kind == 4 and tokens:
            data = bytearray(b"".join(tokens))
            for _ in range(n):
                data[chance.randrange(len(data))] = chance.choice((chance.randrange(256), 0, 10, 34, 92, 255))
            tokens = TOKEN.findall(bytes(data))
        else:
            tokens[i:i] = [chance.choice(WORDS) for _ in range(n)]
    return b"".join(balanced(tokens) if chance.randrange(4) else tokens)


def check(program, *arguments, text=b""):
    """Translates a text. Returns "translated", "refused", or what is wrong."""
    limited = ["sh", "-c", f'ulimit -t {LIMIT}; exec "$@"', "sh", program, *arguments]
    try:
        done = subprocess.run(limited, input=text, capture_output=True, timeout=60 * LIMIT, env=ENVIRONMENT)
    except subprocess.TimeoutExpired:
        return f"not ended after {60 * LIMIT} s"
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"not ended after {LIMIT} s"
    if b"runtime error" in done.stderr or b"Sanitizer" in done.stderr:
        return re.search(rb"runtime error.*|\w*Sanitizer: .*", done.stderr)[0].decode(errors="replace")
    if done.returncode == 0 and not done.stderr:
        return "translated"
    if done.returncode == 1 and MESSAGE.match(done.stderr) and not done.stdout:
        return "refused"
    return f"status {done.returncode}, {done.stderr[:200]!r}"


class Campaign:
    """The counts, and the inputs that show a defect, which are kept in `folder`."""

    def __init__(self, folder):
        self.folder = folder
        self.counts = {"translated": 0, "refused": 0}
        self.defects = {}

    def add(self, outcome, text):
        if outcome in self.counts:
            self.counts[outcome] += 1
        elif outcome not in self.defects:
            path = self.folder / f"defect-{len(self.defects) + 1}.cu"
            path.write_bytes(text)
            self.defects[outcome] = path
            print(f"{outcome}\n    {path}", file=sys.stderr)


def fuzz_ourselves(program, campaign, options):
    """Own mutations: on each fifth input the source is also merged with a second, damaged text of the device (-d)."""
    sources = seeds()

    def one(number):
        chance = random.Random(f"{options.seed} {number}")
        text = mutate(chance, sources)
        if number % 5:
            return check(program, "-", *(["-w"] if number % 2 else []), text=text), text
        with tempfile.NamedTemporaryFile(dir=campaign.folder) as other:
            other.write(mutate(random.Random(f"{options.seed} {number}"), sources) + chance.choice(WORDS))
            other.flush()
            return check(program, "-", "-d", other.name, text=text), text

    end = time.monotonic() + 60 * options.minutes
    tried = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        while tried < options.inputs and time.monotonic() < end:
            count = min(200, options.inputs - tried)
            for outcome, text in pool.map(one, range(tried, tried + count)):
                campaign.add(outcome, text)
            tried += count
    return tried


def fuzz_with_afl(program, campaign, options):
    """AFL++. It is told to stop after the number of inputs or the time."""
    folder = campaign.folder / "afl"
    (folder / "seeds").mkdir(parents=True)
    for i, text in enumerate(random.Random(options.seed).sample(seeds(1000), 150)):
        (folder / "seeds" / f"{i:03}.cu").write_bytes(text)
    lines = (
        b'"' + re.sub(rb'[\\"\n]', lambda m: b"\\x%02x" % m[0][0], word) + b'"\n' for word in WORDS if word
    )
    (folder / "words").write_bytes(b"".join(lines))
    instrumented = build(folder, ["afl-clang-fast"], "cu2cpp")
    settings = ["AFL_SKIP_CPUFREQ", "AFL_NO_AFFINITY", "AFL_NO_UI", "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES"]
    log = (folder / "log").open("wb")
    subprocess.run(
        [
            "afl-fuzz",
            "-i",
            folder / "seeds",
            "-o",
            folder / "out",
            "-x",
            folder / "words",
            "-s",
            str(options.seed),
        ]
        + [
            "-V",
            str(int(60 * options.minutes)),
            "-E",
            str(options.inputs),
            "-t",
            f"{1000 * LIMIT}",
            "-m",
            "none",
        ]
        + ["--", instrumented, "@@", "-w", "-o", "/dev/null"],
        env={
            **os.environ,
            **{name: "1" for name in settings},
            "ASAN_OPTIONS": SANITIZER_SETTINGS + ":symbolize=0",
        },
        stdout=log,
        stderr=log,
    )
    found = folder / "out/default"
    if not (found / "fuzzer_stats").exists():
        sys.exit(f"translator_fuzz.py: afl-fuzz did not run, see {folder}/log")
    stats = dict(re.findall(r"^(\w+) *: (.*)$", (found / "fuzzer_stats").read_text(), re.M))
    kept = [p for kind in ("queue", "crashes", "hangs") for p in sorted((found / kind).glob("id*"))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = [path.read_bytes() for path in kept]
        for outcome, text in zip(pool.map(lambda text: check(program, "-", text=text), texts), texts):
            campaign.add(outcome, text)
    if int(stats["saved_crashes"]) + int(stats["saved_hangs"]) and not campaign.defects:
        campaign.defects["found by AFL++, but not repeated"] = found
    return int(stats["execs_done"])


def check_sources(program, campaign):
    """Preprocesses, translates and compiles the sources of the constructs, which nothing has damaged. Returns their number."""
    compiler = os.environ.get("CXX", "g++").split()
    files = sorted((ROOT / "tests/constructs").glob("*.cu"))
    flags = ["-x", "c++", f"-I{ROOT}/cpu/include", "-w"]
    for path in files:
        standard = "-std=gnu++20" if "20" in path.stem else "-std=gnu++17"
        preprocess = [*compiler, standard, *flags, "-D__CU2CPP__", "-include", "cuda_runtime.h", "-E", path]
        text = subprocess.run(preprocess, check=True, capture_output=True).stdout
        with tempfile.NamedTemporaryFile(dir=campaign.folder, suffix=".ii") as out:
            outcome = check(program, "-", "-o", out.name, text=text)
            compiled = subprocess.run(
                [*compiler, standard, "-fpreprocessed", "-fsyntax-only", "-w", "-x", "c++", out.name],
                capture_output=True,
                text=True,
            )
        if outcome != "translated" or compiled.returncode:
            campaign.add(f"{path.name}: {outcome}, the compiler says {compiled.stderr[:300]}", text)
    return len(files)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n")[0], epilog=__doc__.partition("\n\n")[2]
    )
    parser.add_argument(
        "--seed", type=int, help="of the random choices; default: a new one, which is printed"
    )
    parser.add_argument("--inputs", type=int, default=100000, help="how many; default 100000")
    parser.add_argument("--minutes", type=float, default=30, help="at most; default 30")
    parser.add_argument("--engine", choices=("afl", "own"), help="default: afl if it is installed")
    parser.add_argument("--keep", type=pathlib.Path, help="the folder for inputs that show a defect")
    parser.add_argument("--record", action="store_true", help="write the figures into results.json")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 31)
    if not options.engine:
        options.engine = "afl" if shutil.which("afl-fuzz") and shutil.which("afl-clang-fast") else "own"
    if options.record:
        os.environ["BACKEND"] = "cpu"  # for record.py: nothing needs to be built in bin
    folder = options.keep or pathlib.Path(tempfile.mkdtemp(prefix="translator_fuzz."))
    folder.mkdir(parents=True, exist_ok=True)
    campaign = Campaign(folder)
    # clang's UndefinedBehaviorSanitizer also reports arithmetic on null pointers.
    compilers = [*(["clang"] if shutil.which("clang") else []), os.environ.get("CC", "cc")]
    try:
        program = build(folder, compilers, "cu2cpp")
        sources = check_sources(program, campaign)
        tried = (fuzz_with_afl if options.engine == "afl" else fuzz_ourselves)(program, campaign, options)
    except CannotBuild as error:
        sys.exit(f"translator_fuzz.py: {error}")
    kept = campaign.counts
    figures = {
        "engine": "AFL++" if options.engine == "afl" else "own mutations",
        "inputs": tried,
        "translated": kept["translated"],
        "refused by file and line": kept["refused"],
        "sources without damage": sources,
        "defects": len(campaign.defects),
        "seed": options.seed,
    }
    print("translator_fuzz.py: " + ", ".join(f"{name} {value}" for name, value in figures.items()))
    if options.record:
        from record import record

        chosen = f"--engine {options.engine} --minutes {options.minutes:g} --inputs {options.inputs} --seed {options.seed}"
        record("translator_fuzz", f"make fuzz ARGS='{chosen}'", figures)
    if not options.keep and not campaign.defects:
        shutil.rmtree(folder)
    return 1 if campaign.defects else 0


if __name__ == "__main__":
    sys.exit(main())
