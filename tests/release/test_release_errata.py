# SPDX-License-Identifier: MIT
"""docs/errata.md: the errors of the texts, tried. The listings in tests/errata are our own, with the same mistakes."""
import pathlib
import re

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
    """tried("unlock.cu", CUDA_CPU_CHECK="1") -> (status, output) of the listing as a program."""

    def tried(listing, **env):
        cucc(LISTINGS / listing, "-o", "program")
        result = helpers.execute(tmp_path / "program", [], tmp_path, env)
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
def test_what_the_programs_do(tried):
    """The lock that is not released is named. That the host reads device memory goes unnoticed on the CPU back end, but not with
    CUDA_CPU_CHECK; on a GPU the program crashes."""
    status, out = tried("unlock.cu", CUDA_CPU_WATCHDOG="1")
    assert status == 1 and "unlock.cu:4: is a lock never released?" in out
    assert tried("host_read.cu") == (0, "10\n")
    status, out = tried("host_read.cu", CUDA_CPU_CHECK="1")
    assert status != 0 and "the host reads" in out and "host_read.cu:7" in out


def test_every_listing_is_tried():
    text = pathlib.Path(__file__).read_text()
    assert [path.name for path in LISTINGS.iterdir() if f'"{path.name}"' not in text] == []
