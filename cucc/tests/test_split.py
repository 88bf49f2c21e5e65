# SPDX-License-Identifier: MIT
"""Kernels whose barriers become loops over the threads of a block (translate/split.c): the same results as with fibers."""
import re
import shutil
from pathlib import Path

import pytest

import split_generator
import tools

SOURCE = Path(__file__).with_name("split.cu")
WAYS = {"CUDA_CPU_BARRIERS": "fibers"}, {"CUDA_CPU_SCHEDULE": "random:7"}


def test_explain():
    expected = re.findall(
        r"^// (.*)\n(?:template <.*?> )?__global__ void (?:__launch_bounds__\(.*?\) )?(\w+)",
        SOURCE.read_text(),
        re.M,
    )
    told = tools.cucc("--explain", SOURCE)
    assert told.err == ""
    lines = [
        re.fullmatch(r".*split\.cu:\d+: (\w+): (.*?)(?: \(line \d+\))?", line)
        for line in told.out.splitlines()
    ]
    assert [(line[2], line[1]) for line in lines] == expected


def test_loops_and_fibers_agree(tmp_path):
    built = tmp_path / "split"
    assert tools.cucc("-O1", "-Wall", "-Wextra", SOURCE, "-o", built).err == ""
    loops = tools.execute(built)
    assert loops.err == "" and loops.out.count("no error") == 43, str(loops)
    for way in WAYS:
        other = tools.execute(built, env=way)
        assert (other.out, other.err) == (loops.out, ""), way


@pytest.mark.parametrize(
    "options, split", [([], True), (["-g"], True), (["-G"], False), (["--check"], False)]
)
def test_debuggers_and_detectors_follow_single_threads(tmp_path, options, split):
    text = "__global__ void k(int *x) { x[0]++; __syncthreads(); x[1]++; }\n"
    told = tools.compiled(tmp_path, text, "-cuda", *options)
    assert ("cu_w.fibers" in told.out) == split, str(told)


def test_a_wait_that_was_not_seen_is_an_error(tmp_path):
    """A function object with a barrier, whose call looks like that of a function of the library"""
    text = (
        "struct F { __device__ int operator+(int x) const { __syncthreads(); return x; } };\n"
        "__global__ void k(int *x, F f) { __syncthreads(); x[threadIdx.x] = f + 1; }\n"
        "int main() { int *x; cudaMallocManaged(&x, 256); k<<<1, 64>>>(x, F()); cudaDeviceSynchronize(); return x[5]; }\n"
    )
    tools.compiled(tmp_path, text)
    loops, fibers = (tools.execute(tmp_path / "a.out", env=way, status=1).err for way in ({}, WAYS[0]))
    assert "waits for others in a kernel that was split at its barriers" in loops and fibers == ""


def test_random_kernels(rng, tmp_path):
    text = split_generator.program(rng, 6)
    told = tools.compiled(tmp_path, text, "--explain")
    assert told.out.count(": split\n") > 2, str(told)
    said = set()
    for optimised in "-O1", "-O0":  # which does not split
        tools.compiled(tmp_path, text, optimised, "-w")
        for way in {}, WAYS[0]:
            ran = tools.execute(tmp_path / "a.out", env=way)
            assert ran.err == "", str(ran)
            said.add(ran.out)
    assert len(said) == 1, str(ran)


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_a_store_of_one_thread(tmp_path, compiler):
    """It stays one, whatever a compiler may do to vectorize the loop over the threads."""
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}")
    text = (
        "__global__ void scan(unsigned *x, unsigned *sums) {\n"
        "    __shared__ unsigned tile[2048];\n"
        "    unsigned *mine = tile + threadIdx.x * 8, sum = 0;\n"
        "    for (unsigned k = 0; k < 8; k++) mine[k] = x[threadIdx.x * 8 + k];\n"
        "    for (unsigned k = 0; k < 8; k++) sum += mine[k];\n"
        "    __syncthreads();\n"
        "    unsigned before = sum;\n"
        "    for (unsigned k = 0; k < 8; k++) { unsigned y = mine[k]; mine[k] = before; before += y; }\n"
        "    if (threadIdx.x == 255) sums[blockIdx.x] = before;\n"
        "    __syncthreads();\n"
        "    for (unsigned k = 0; k < 8; k++) x[threadIdx.x * 8 + k] = mine[k];\n"
        "}\n"
        "int main() {\n"
        "    unsigned *x; cudaMallocManaged(&x, 2049 * 4);\n"
        "    for (int i = 0; i < 2048; i++) x[i] = i;\n"
        "    scan<<<1, 256>>>(x, x + 2048);\n"
        "    if (cudaDeviceSynchronize()) return 2;\n"
        "    return x[2040] != 8 * 2040 + 28 || x[2048] != 2 * x[2040];\n"
        "}\n"
    )
    tools.compiled(tmp_path, text, "-ccbin", compiler)
    assert tools.execute(tmp_path / "a.out").err == ""
