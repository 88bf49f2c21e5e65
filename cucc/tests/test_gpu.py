# SPDX-License-Identifier: MIT
"""What a GPU does, by nvcc: the units that state its behaviour, which are all without `// cucc only:` in their first comment, and random
kernels, whose output must be cucc's. `make test-gpu` runs them; they are skipped where nvcc or a GPU is missing."""
import os
import re
import subprocess

import pytest

import split_generator
import tools

UNITS = [
    source
    for source in sorted((tools.HERE / "units").glob("*.cu"))
    if "\n// cucc only: " not in source.read_text()
]
PROGRAMS = int(os.environ.get("PROGRAMS", "4"))  # random ones
LIBRARIES = "-lcublas -lcublasLt -lcufft -lcurand -lcusolver -lcusparse -lcuda".split()

NVCC = os.environ.get("NVCC", "nvcc")

pytestmark = pytest.mark.skipif(
    subprocess.run(
        f"{NVCC} -V && ! {NVCC} --toolkit && nvidia-smi -L", shell=True, capture_output=True
    ).returncode
    != 0,
    reason="needs nvcc and a GPU",
)


def nvcc(source, built):
    """-rdc=true, because kernels launch kernels"""
    options = "-arch=native", "-std=c++17", "--extended-lambda", "-rdc=true", "-w"
    tools.execute(NVCC, *options, source, "-o", built, *LIBRARIES, timeout=900)
    return built


@pytest.mark.parametrize("source", UNITS, ids=lambda source: source.stem)
def test_unit_on_a_gpu(source, tmp_path):
    result = tools.execute(nvcc(source, tmp_path / "unit"), timeout=300)
    assert result.err == "" and re.fullmatch(r"[1-9]\d* cases, 0 failed\n", result.out), str(result)


@pytest.mark.parametrize("number", range(PROGRAMS))
def test_random_kernels_on_a_gpu(rng, tmp_path, number):
    text = split_generator.program(rng, 6, whole_warps=True)
    (tmp_path / "main.cu").write_text(text)
    gpu = tools.execute(nvcc(tmp_path / "main.cu", tmp_path / "gpu"))
    tools.compiled(tmp_path, text, "-O1", "-w")
    for way in {}, {"CUDA_CPU_BARRIERS": "fibers"}:
        cpu = tools.execute(tmp_path / "a.out", env=way)
        assert (cpu.out, cpu.err) == (gpu.out, ""), str(gpu)
