# SPDX-License-Identifier: MIT
"""The race detector: cucc --check and make check. Each case of tests/races/cases.cu has a mistake, and a twin without."""
import os
import re
import subprocess

import pytest

import helpers

pytestmark = [
    pytest.mark.skipif(helpers.backend() != "cpu", reason="needs the CPU back end"),
    pytest.mark.skipif(helpers.sanitized(), reason="cucc has a library of its own, without sanitizers"),
]
SOURCE = helpers.ROOT / "tests/races/cases.cu"
LINES = SOURCE.read_text().splitlines()
CASES = sorted({n for line in LINES for n in re.findall(r"^ *(?:KERNEL|HOST)\((\w+)[,)]", line)} | {"bytes"})
UNINITIALIZED = {"uninitialized": ("add_to", "// read of sum"), "unset_bins": ("count", "// count in memory")}
BEYOND = {  # the comment of each line, and parts of its report
    "beyond_allocation": {
        "// read beyond in": ("thread (255,0,0) reads 4", "65536 of device memory", 65536),
    },
    "beyond_shared": {
        "// write beyond small": ("thread (255,0,0) writes 4", "1020 of shared memory small", 1020),
        "// write beyond dynamic": ("thread (5,0,0) writes 4", "1024 of dynamic shared memory", 1024),
        "// write across the end": ("thread (5,0,0) writes 8", "12 of shared memory pairs", 16),
        "// atomic before small": ("thread (5,0,0) atomically changes 4", "-4 of shared memory small", 1020),
    },
}
CASES = [case for case in CASES if case not in {**UNINITIALIZED, **BEYOND}]  # they are no races
REPORT = re.compile(r"race .*?at cases\.cu:(\d+).*?at cases\.cu:(\d+)", re.S)


@pytest.fixture(scope="module")
def binary(once):
    def build(folder):
        done = subprocess.run(
            [helpers.ROOT / "cpu/cucc", "--check", SOURCE, "-o", folder / "cases"],
            text=True,
            capture_output=True,
        )
        assert done.returncode == 0, done.stderr
        return folder / "cases"

    return once("races", build)


def run(binary, *arguments, **settings):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_CPU_")}
    return subprocess.run(
        [binary, *arguments], text=True, capture_output=True, timeout=60, env={**environment, **settings}
    )


SCHEDULES = [
    {},
    {"CUDA_CPU_SCHEDULE": "reverse", "CUDA_CPU_WORKERS": "2"},
    {"CUDA_CPU_SCHEDULE": "random:7", "CUDA_CPU_STREAMS": "random:7"},
]


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_reported_and_its_twin_is_clean(binary, case):
    marked = {n for n, line in enumerate(LINES, 1) if re.search(rf"// .*\b{case}\b", line)}
    assert marked
    reported = run(binary, case, "1")
    assert reported.returncode == 1, reported.stderr
    lines = {int(n) for pair in REPORT.findall(reported.stderr) for n in pair}
    assert lines & marked, f"{reported.stderr}\nexpected: {marked}"
    for settings in SCHEDULES:
        clean = run(binary, case, "0", **settings)
        assert clean.returncode == 0 and clean.stderr == "", f"{settings}: {clean.stderr}"


def test_a_report_names_both_threads_and_lines(binary):
    text = run(binary, "tile", "1").stderr
    assert re.fullmatch(
        r"cuda on the CPU: race in kernel tile, block \(0,0,0\): thread \(127,0,0\) reads 4 bytes of dynamic "
        r"shared memory at cases\.cu:\d+,\n    thread \(128,0,0\) writes them at cases\.cu:\d+, with no "
        r"__syncthreads\(\) between\n",
        text,
    ), text
    text = run(binary, "increment", "1").stderr
    assert re.search(r"device memory at cases\.cu:\d+ \(allocated at cases\.cu:\d+\)", text), text
    text = run(binary, "host_reads", "1").stderr
    assert re.search(
        r"the host reads 4 bytes of pinned host memory at cases\.cu:\d+ \(allocated at cases\.cu:\d+\),\n"
        r"    which cudaMemcpyAsync, called at cases\.cu:\d+, writes, and the host has not waited for that\n",
        text,
    ), text


@pytest.mark.parametrize("case", UNINITIALIZED)
def test_a_read_of_memory_that_nothing_has_written(binary, case):
    kernel, text = UNINITIALIZED[case]
    at = next(n for n, line in enumerate(LINES, 1) if text in line)
    reported = run(binary, case, "1")
    assert reported.returncode == 1 and re.fullmatch(
        rf"cuda on the CPU: uninitialized memory in kernel {kernel}, block \(0,0,0\): thread \(0,0,0\) reads 4 bytes of "
        rf"device memory at cases\.cu:{at} \(allocated at cases\.cu:\d+\),\n    which nothing has written\n",
        reported.stderr,
    ), reported.stderr
    for settings in [*SCHEDULES, {"CUDA_CPU_STREAMS": "eager"}]:
        clean = run(binary, case, "0", **settings)
        assert clean.returncode == 0 and clean.stderr == "", f"{settings}: {clean.stderr}"


@pytest.mark.parametrize("case", BEYOND)
def test_an_access_beyond_an_array(binary, case):
    reported = run(binary, case, "1")
    assert reported.returncode == 1
    for text, (who, where, size) in BEYOND[case].items():
        at = next(n for n, line in enumerate(LINES, 1) if text in line)
        report = (
            rf"cuda on the CPU: out of bounds in kernel \w+, block \(0,0,0\): {re.escape(who)} bytes at cases\.cu:{at},\n"
            rf"    at offset {where}(| \(allocated at cases\.cu:\d+\)), which has {size} bytes\n"
        )
        assert re.search(report, reported.stderr), reported.stderr
    assert reported.stderr.count("out of bounds") == len(BEYOND[case]), reported.stderr
    for settings in [*SCHEDULES, {"CUDA_CPU_STREAMS": "eager"}]:
        clean = run(binary, case, "0", **settings)
        assert clean.returncode == 0 and clean.stderr == "", f"{settings}: {clean.stderr}"


LIBRARY = """
#include <cublas_v2.h>
#include <stdio.h>
int main(int argc, char **) {
    float *x, *sum, result;
    cudaStream_t stream, other;
    cublasHandle_t handle;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cublasCreate(&handle);
    cublasSetStream(handle, stream);
    cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE);
    cudaMalloc(&x, 400);
    cudaMalloc(&sum, 4);
    cudaMemset(x, 0, 400);
    cudaDeviceSynchronize();
    cublasSdot(handle, 100, x, 1, x, 1, sum);
    cudaMemcpyAsync(&result, sum, 4, cudaMemcpyDeviceToHost, argc > 1 ? other : stream);
    cudaDeviceSynchronize();
    return result != 0;
}
"""


def test_the_work_of_a_library_belongs_to_its_stream(tmp_path):
    if not helpers.has("CUBLAS"):
        pytest.skip("needs OpenBLAS")
    (tmp_path / "dot.cu").write_text(LIBRARY)
    command = [helpers.ROOT / "cpu/cucc", "--check", tmp_path / "dot.cu", "-lcublas", "-o", tmp_path / "dot"]
    built = subprocess.run(command, text=True, capture_output=True)
    assert built.returncode == 0, built.stderr
    clean = run(tmp_path / "dot")
    assert clean.returncode == 0 and clean.stderr == "", clean.stderr
    reported = run(tmp_path / "dot", "other")
    assert reported.returncode == 1 and re.fullmatch(
        r"cuda on the CPU: race between streams: cudaMemcpyAsync, called at dot\.cu:18, reads 4 bytes of device memory "
        r"\(allocated at dot\.cu:14\),\n    cublasSdot, called at dot\.cu:17, writes them, and nothing orders the two\n",
        reported.stderr,
    ), reported.stderr
