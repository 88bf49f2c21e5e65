# SPDX-License-Identifier: MIT
"""docs/errata.md: the errors of the texts, tried. The listings in tests/errata are our own, with the same mistakes."""
import functools
import re
import resource
import signal

import pytest

import helpers
import trees
from trees import NVCC, needs_nvcc

LISTINGS = helpers.ROOT / "tests/errata"
CUCC = helpers.ROOT / "cucc/cucc"
on_the_cpu = pytest.mark.backend("cpu")

# The cases of refused.cu and what the compilers say of them: cucc, whichever C++ compiler it uses, and nvcc. Functions of the
# host may be called from kernels on the CPU back end, so cucc takes two of them.
REFUSED = {
    "VOID_RESULT": ("cudaError_t", "cudaError_t"),
    "FORMATS": (r"format.*void ?\*", r"(?s)%ld.*format.*void ?\*"),
    "NO_INDEX": (r"\bi\b", '"i" is undefined'),
    "CONSTRUCTOR": (None, "calling a __host__ function"),
    "HOST_POINTER": (None, '"s" is undefined in device code'),
    "TOO_MANY": ("too many arguments|no matching function for call to 'draw'", "too many arguments"),
    "IDLE": ("glutIdleFunction|GL/glut.h", "glutIdleFunction|GL/glut.h"),
    "NO_OFFSET": ("offset", "offset"),
    "HASHED_VALUE": (r"void ?\*|no matching function for call to 'bucket_of'", "void"),
    "MISSPELT": ("(?s)unit3.*__synthreads.*blockId", "(?s)unit3.*__synthreads.*blockId"),
    "VOID_POINTER": ("cudaMalloc", "cudaMalloc"),
    "DIM_CALL": ("call", "call of an object"),
    "CAPITAL": ("Texture", "Texture is not a template"),
    "NO_TEMPLATE": ("warpReduce", "warpReduce"),
    "AMAX": ("double|cublasIsamax", "double|cublas_v2.h"),
    "SEGMENTED": ("segmented_inclusive_scan|thrust/scan.h", "segmented_inclusive_scan"),
}
SANITIZERS = "-g", "-Xcompiler", "-fsanitize=address,undefined"

# The cases of run.cu: options of cucc, environment, and what the program reports
REPORTED = [
    ("squares", SANITIZERS, {}, r"run\.cu:\d+:.* 46341 \* 46341 cannot be represented in type 'int'"),
    ("leak", (), {"CUDA_CPU_CHECK": "1"}, r"at exit not freed: 4096 bytes of device 0, allocated at run\.cu"),
    ("leak", SANITIZERS, {}, r"Direct leak of 128 byte"),
    ("unset", ("--check",), {}, r"uninitialized memory in kernel read,"),
    ("unlock", (), {"CUDA_CPU_WATCHDOG": "1"}, r"run\.cu:\d+: is a lock never released\?"),
    ("fence", ("--check",), {}, "race in kernel count_alone: .*\n.*nothing orders these blocks"),
    ("freed_twice", (), {}, "cudaFree: .* was not allocated by cudaMalloc, and was freed already"),
    ("values", (), {}, "illegal address .*\n.*in kernel take_values"),
    ("host_read", (), {}, "the host reads .* 16 bytes of device 0, allocated at run"),
    ("small_block", ("--check",), {}, "at offset 128 of dynamic shared memory, which has 128 bytes"),
    ("random_sum", SANITIZERS, {}, "signed integer overflow: .* cannot be represented in type 'int'"),
]

# The cases that go unnoticed without these tools, and what the program prints then
UNNOTICED = {
    "squares": "46340 * 46340 = 2147395600\n46341 * 46341 = -2147479015\n",
    "symbol": "7\n",
    "cast": "7\n",
    "addresses": "equal\nequal\n",
    "neighbour": "cudaSuccess\na has 256 elements, and one beyond them is 7\n",
    "fence": "cudaSuccess\n100000 of 100000\n",
    "freed_first": "cudaSuccess, cudaSuccess\n",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """built("--check") -> run.cu as a program, compiled with these options."""

    @functools.lru_cache
    def built(*options):
        folder = tmp_path_factory.mktemp("errata")
        trees.run(folder, CUCC, "-O0", *options, LISTINGS / "run.cu", "-o", "run")
        return folder / "run"

    return built


def errors(log, case):
    """The errors that a compiler reports within a case of refused.cu."""
    lines = (LISTINGS / "refused.cu").read_text().splitlines()
    first = next(i for i, line in enumerate(lines, 1) if line.startswith(f"#ifdef {case} "))
    last = lines.index("#endif", first)
    found = re.findall(r"refused\.cu[:(](\d+)[:)].*error: (.*)", log)
    return "\n".join(text for line, text in found if first < int(line) <= last)


def refused(folder, compiler, cases):
    """What a compiler says of these cases, each of which it must refuse."""
    options = "-O0", "-c", *(f"-D{case}" for case in cases)
    log = trees.run(folder, compiler, *options, LISTINGS / "refused.cu", status=None)
    return {case: errors(log, case) for case in cases}


COMPILERS = [pytest.param(CUCC, marks=on_the_cpu), pytest.param(NVCC, marks=needs_nvcc)]


@pytest.mark.parametrize("compiler", COMPILERS, ids=["cucc", "nvcc"])
def test_compilers_refuse(tmp_path, compiler):
    """A header that is wrong, and kernels with one name, are compiled alone."""
    says = {case: words[compiler != CUCC] for case, words in REFUSED.items()}
    alone = ["SEGMENTED", "CONSTRUCTOR", "HOST_POINTER", "DIM_CALL", "FORMATS", "IDLE", "AMAX"]
    for cases in [case for case in says if case not in alone], *([case] for case in alone):
        if says[cases[0]]:
            for case, found in refused(tmp_path, compiler, cases).items():
                assert re.search(says[case], found), (case, found)
        else:
            trees.run(tmp_path, compiler, "-O0", "-c", f"-D{cases[0]}", LISTINGS / "refused.cu")
    log = trees.run(tmp_path, compiler, "-c", LISTINGS / "kernel.c", "-o", "x.o", status=None)
    assert re.search(r"kernel\.c:3:", log) and not (tmp_path / "x.o").exists(), log


@on_the_cpu
def test_reported(built, tmp_path):
    for case, options, env, says in REPORTED:
        result = helpers.execute(built(*options), [case], tmp_path, env)
        assert result.status != 0 and re.search(says, result.err), str(result)


@on_the_cpu
def test_unnoticed(built, tmp_path):
    for case, says in UNNOTICED.items():
        result = helpers.execute(built(), [case], tmp_path)
        assert (result.status, result.out, result.err) == (0, says, ""), str(result)
    checked = helpers.execute(built("--check"), ["neighbour"], tmp_path)
    assert (checked.status, checked.out, checked.err) == (0, UNNOTICED["neighbour"], ""), str(checked)


@on_the_cpu
def test_stack(built, tmp_path):
    """Three vectors of 700,000 ints, of which the usual stack holds 699,050."""
    for size, status, out in ((8 << 20, -signal.SIGSEGV, ""), (16 << 20, 0, "9\n")):
        result = helpers.execute(built(), ["stack"], tmp_path, limits={resource.RLIMIT_STACK: size})
        assert (result.status, result.out) == (status, out), str(result)
