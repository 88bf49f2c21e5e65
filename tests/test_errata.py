# SPDX-License-Identifier: MIT
"""docs/errata.md: the errors of the texts, tried. The listings in tests/errata are our own, with the same mistakes."""
import re
import resource
import subprocess

import pytest

import helpers
from test_cucc import cucc, environment, installed, output, pytestmark  # noqa: F401
from trees import NVCC, needs_nvcc

LISTINGS = helpers.ROOT / "tests/errata"


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
    done = subprocess.run(
        [NVCC, "-c", LISTINGS / listing, "-o", tmp_path / "x.o"], capture_output=True, text=True
    )
    assert done.returncode != 0 and re.search(says, done.stdout + done.stderr)


def test_a_constructor_of_the_host_on_the_cpu(cucc):
    """On the CPU back end all functions are functions of the host, so it compiles."""
    cucc("-c", LISTINGS / "constructor.cu", "-o", "x.o")


def test_a_lock_that_is_not_released(cucc, tmp_path):
    cucc(LISTINGS / "unlock.cu", "-o", "program")
    done = subprocess.run(
        [tmp_path / "program"],
        env=environment(tmp_path, CUDA_CPU_WATCHDOG="1"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and "unlock.cu:4: is a lock never released?" in done.stderr


def test_the_host_reads_device_memory(cucc, tmp_path):
    """It goes unnoticed on the CPU back end, but not with CUDA_CPU_CHECK; on a GPU the program crashes."""
    cucc(LISTINGS / "host_read.cu", "-o", "program")
    assert output(tmp_path) == "10\n"
    done = subprocess.run(
        [tmp_path / "program"], env=environment(tmp_path, CUDA_CPU_CHECK="1"), capture_output=True, text=True
    )
    assert done.returncode != 0 and "the host reads" in done.stderr and "host_read.cu:7" in done.stderr


def test_arrays_on_the_stack(cucc, tmp_path):
    """8 MiB hold two arrays of 1000 ints, not of 1 100 000."""
    cucc(LISTINGS / "stack.cu", "-o", "program")

    def limit():
        resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, 8 << 20))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    for n, status in (1000, 0), (1100000, -11):
        done = subprocess.run(
            [tmp_path / "program", str(n)], capture_output=True, text=True, preexec_fn=limit
        )
        assert done.returncode == status


def test_values(cucc, tmp_path):
    cucc(LISTINGS / "values.cu", "-o", "program")
    printed = dict(
        line.rsplit(" ", 1)
        for line in output(tmp_path).splitlines()
        if "GB/s" not in line and "cuda on" not in line
    )
    assert printed == {
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
    assert "T peak 102.4 GB/s\nT rate 73.97 GB/s\n" in output(tmp_path)


def test_every_listing_is_tried():
    text = (helpers.ROOT / "tests/test_errata.py").read_text()
    assert [path.name for path in LISTINGS.iterdir() if f'"{path.name}"' not in text] == []


def test_every_error_names_a_program():
    """Each row of the tables ends with a program of this project, a listing or a page, and its links lead somewhere."""
    rows = [
        line for line in (helpers.ROOT / "docs/errata.md").read_text().splitlines() if line.startswith("| ")
    ]
    rows = [row for row in rows if not re.match(r"\| (---|where)", row)]
    assert len(rows) >= 70
    assert [row for row in rows if not re.search(r"\]\([\w./#-]+\)[^|]* \|$", row)] == []
