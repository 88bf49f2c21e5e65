# SPDX-License-Identifier: MIT
"""Gives cu2cpp, the translator, damaged CUDA sources. They are made from the list of constructs (cucc/tests/constructs) and the unit
tests (cucc/tests/units): tokens and bytes are changed, removed, repeated and inserted. The translator is compiled with
AddressSanitizer and UndefinedBehaviorSanitizer. It must either succeed in silence, or end with status 1 and one line that names file
and line. A crash, a report of a sanitizer, a run of more than 10 seconds of CPU time, and any other message are defects.

FUZZ=100000 pytest tests/release/test_translator_fuzz.py is a long run; TEST_SEED repeats one."""
import collections
import concurrent.futures
import os
import random
import re
import shutil
import subprocess
import tempfile

import tools

# The translator does not free its memory.
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1"}
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
# Texts that were defects once, and that the mutations seldom make
FOUND = [
    b" y, z;else\n        surf2DLayeredwrite()",
    b"using namespace cooperative_groups; __global__ void k() { thread_block g = this_thread_block(); h(g); }",
]
TOKEN = re.compile(rb"[A-Za-z_]\w*|\d[\w.]*|\"(?:\\.|[^\"\\\n])*\"|\s+|[<>]{2,3}|.", re.S)


def build(folder):
    """Compiles the translator with sanitizers. Those of clang also report arithmetic on null pointers."""
    program = folder / "cu2cpp"
    sources = sorted((tools.ROOM / "translate").glob("**/*.c"))
    flags = ["-std=gnu11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    for compiler in "clang", os.environ.get("CC", "cc"):
        if shutil.which(compiler.split()[0]):
            made = tools.execute(*compiler.split(), *flags, *sources, "-o", program, status=None)
            if made.status == 0:
                return program
    raise AssertionError(str(made))


def seeds():
    """The sources, without comments, so that mutations change code"""
    files = [
        path for folder in ("constructs", "units") for path in sorted((tools.HERE / folder).glob("*.cu"))
    ]
    texts = (re.sub(rb"(?m)/\*(?s:.*?)\*/|(?<!:)//.*$", b"", path.read_bytes()) for path in files)
    return [re.sub(rb"\n\s*\n+", b"\n", text) for text in texts]


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
    done = subprocess.run(limited, input=text, capture_output=True, env=ENVIRONMENT)
    report = re.search(rb"runtime error.*|\w*Sanitizer: [\w-]*.*?(?=0x|\n)", done.stderr)
    if report:
        return report[0].decode(errors="replace")
    if done.returncode == 0 and not done.stderr:
        return "translated"
    if done.returncode == 1 and MESSAGE.match(done.stderr) and not done.stdout:
        return "refused"
    return f"status {done.returncode}, {done.stderr[:200]!r}"


def test_damaged_sources_are_translated_or_refused(tmp_path, rng):
    """On each fifth input the source is merged with a second, damaged text of the device (-d)."""
    program, sources, seed = build(tmp_path), seeds(), rng.randrange(1 << 31)
    assert {check(program, "-", text=text) for text in FOUND} == {"translated"}

    def one(number):
        chance, arguments = random.Random(f"{seed} {number}"), ["-w"] if number % 2 else []
        text = mutate(chance, sources)
        with tempfile.NamedTemporaryFile() as device:
            if number % 5 == 0:
                device.write(mutate(random.Random(f"{seed} {number}"), sources) + chance.choice(WORDS))
                device.flush()
                arguments = ["-d", device.name]
            outcome = check(program, "-", *arguments, text=text)
        if outcome not in ("translated", "refused"):
            (tmp_path / f"defect-{number}.cu").write_bytes(text)
        return outcome

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = collections.Counter(pool.map(one, range(int(os.environ.get("FUZZ", "500")))))
    assert set(outcomes) == {"translated", "refused"}, f"{outcomes}, {tmp_path}"
    assert min(outcomes.values()) > 50
