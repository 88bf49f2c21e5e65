# SPDX-License-Identifier: MIT
"""docs/errata.md: the errors of the texts, tried. The listings in tests/errata are our own, with the same mistakes."""
import pathlib
import re
import resource

import pytest

import helpers
import trees
from trees import NVCC, needs_nvcc

LISTINGS = helpers.ROOT / "tests/errata"
on_the_cpu = pytest.mark.backend("cpu")


@pytest.fixture
def cucc(tmp_path):
    """cucc("-c", "a.cu", "-o", "a.o", status=0) -> what it printed."""

    def cucc(*arguments, status=0):
        return trees.run(tmp_path, helpers.ROOT / "cucc/cucc", "-O0", *arguments, status=status)

    return cucc


@pytest.fixture
def tried(cucc, tmp_path):
    """tried("unlock.cu", "argument", CUDA_CPU_CHECK="1") -> (status, output) of the listing as a program."""

    def tried(listing, *arguments, limits=None, **env):
        cucc(LISTINGS / listing, "-o", "program")
        result = helpers.execute(tmp_path / "program", arguments, tmp_path, env, limits=limits)
        return result.status, result.out + result.err

    return tried


@on_the_cpu
@pytest.mark.parametrize(
    "listing, says",
    [
        ("hashed_value.cu", r"hashed_value\.cu:8:.*(void ?\*|no matching function for call to 'bucket_of')"),
        ("void_pointer.cu", r"void_pointer\.cu:5:.*cudaMalloc"),
        ("kernel.c", r"kernel\.c:3:"),
    ],
)
def test_does_not_compile(cucc, listing, says):
    assert re.search(says, cucc("-c", LISTINGS / listing, "-o", "x.o", status=1))


@needs_nvcc
@pytest.mark.parametrize(
    "listing, says",
    [
        ("constructor.cu", r"constructor\.cu\(9\): error: calling a __host__ function"),
        ("void_pointer.cu", r"void_pointer\.cu\(5\): error: .*cudaMalloc"),
        ("kernel.c", r"kernel\.c:3:"),
    ],
)
def test_nvcc_refuses(tmp_path, listing, says):
    log = trees.run(tmp_path, NVCC, "-c", LISTINGS / listing, "-o", "x.o", status=None)
    assert re.search(says, log) and not (tmp_path / "x.o").exists()


@on_the_cpu
def test_a_constructor_of_the_host_on_the_cpu(cucc):
    """On the CPU back end all functions are functions of the host, so it compiles."""
    cucc("-c", LISTINGS / "constructor.cu", "-o", "x.o")


@on_the_cpu
def test_what_the_programs_do(tried):
    """The lock that is not released is named. That the host reads device memory goes unnoticed on the CPU back end, but not with
    CUDA_CPU_CHECK; on a GPU the program crashes. 8 MiB of stack hold two arrays of 1000 ints, not of 1 100 000.
    """
    status, out = tried("unlock.cu", CUDA_CPU_WATCHDOG="1")
    assert status == 1 and "unlock.cu:4: is a lock never released?" in out
    assert tried("host_read.cu") == (0, "10\n")
    status, out = tried("host_read.cu", CUDA_CPU_CHECK="1")
    assert status != 0 and "the host reads" in out and "host_read.cu:7" in out
    limits = {resource.RLIMIT_STACK: 8 << 20, resource.RLIMIT_CORE: 0}
    for n, status in ("1000", 0), ("1100000", -11):
        assert tried("stack.cu", n, limits=limits)[0] == status


@on_the_cpu
def test_values(tried):
    status, out = tried("values.cu")
    lines = [line for line in out.splitlines() if "GB/s" not in line and "cuda on" not in line]
    assert status == 0 and dict(line.rsplit(" ", 1) for line in lines) == {
        "4.2.2 magnitude": "31.6",
        "5.2.1 blocks": "8",
        "5.2.2 threads above": "133",
        "R grid of size 0": "cudaErrorInvalidConfiguration",
        "C whole tiles of 1000 columns": "31",
        "N fractions in an unsigned short 0": "1",
        "N numbers whose tens are 3": "2",
        "N bit 0 of 3: > 1 0, != 0": "1",
        "T maximum from 0": "0",
        "T largest quotient": "1.0",
    }
    assert "T peak 102.4 GB/s\nT rate 73.97 GB/s\n" in out


def test_every_listing_is_tried():
    text = pathlib.Path(__file__).read_text()
    assert [path.name for path in LISTINGS.iterdir() if f'"{path.name}"' not in text] == []
