# SPDX-License-Identifier: MIT
"""Chapter 13: what is special in a lesson. tests/test_programs.py runs each of them."""
import re

import pytest

import helpers
from trees import ROOT
from trees import run as run_in


def test_errors_of_launches_and_of_kernels(run):
    """The program compares them itself. On the CPU back end the error of a kernel comes late only if the streams are."""
    for late in True, helpers.backend() == "gpu":
        env = {"CUDA_CPU_STREAMS": "late" if late else "eager"}
        result = run("chapter13/async_errors", status=1, env=env)
        assert "expected" not in result.err and ": cudaFree(dev_c): an illegal memory access" in result.err
        errors = re.findall("cuda(?:Error[A-Z]|Success)\\w*", result.out)
        assert errors[:2] == ["cudaSuccess" if late else "cudaErrorIllegalAddress", "cudaErrorIllegalAddress"]
        assert result.out.endswith("  2 + 7 = 9\n")


def test_more_partial_sums_than_a_tile_has_threads(run):
    """On the CPU back end seven multiprocessors hold 56 blocks."""
    run("chapter13/groups_dot", "--size", 100_003, status=0, env={"CUDA_CPU_WORKERS": "7"})


@pytest.mark.backend("cpu")  # a GPU may have clusters
def test_a_program_of_clusters_says_what_it_needs(run):
    assert "needs clusters of blocks" in run("chapter13/cluster_hist", "--size", 1, status=2).err


def test_factors_of_11_bits_cause_the_error(run, rng):
    """Whole numbers that fit into them are multiplied exactly."""
    out = run("chapter13/wmma_matmul", "--size", rng.randrange(65, 200), status=0).out
    errors = [float(error) for error in re.findall(r"^(?:float|half|TF32).* largest error (.*)$", out, re.M)]
    half = len(errors) // 2
    assert all(error > 20 * errors[0] for error in errors[1:half]) and errors[half:] == [0] * half


# Mistakes: what is left out of a program, and what stands in its place. Some are found by the search for races only.
WAIT = "    cudaGridDependencySynchronize();"
MISTAKES = {
    "--check chapter13/dependent_launch --size 37 --iterations 3": [
        (f"may start where there is room\n{WAIT}", "\n"),
        (f"{WAIT}\n#endif", "#endif"),
    ],
    "chapter13/async_alloc --size 3000 --chunk 1000": [
        ("HANDLE_ERROR(cudaStreamWaitEvent(stream1, written, 0));", ";"),
        ("HANDLE_ERROR(cudaDeviceSetMemPool(options.device, pool));", ""),
    ],
    "chapter13/stream_callbacks --size 5000 --chunk 1000": [
        ("HANDLE_ERROR(cudaStreamSynchronize(data->stream));", ""),
        ("HANDLE_ERROR(cudaLaunchHostFunc(data->stream, add_chunk, data));", ""),
    ],
    "chapter13/barrier_tma --size 150": [
        ("copied.wait(std::move(token)); // until all threads have arrived and the copies are complete", ""),
        ("copied.wait(std::move(token)); // until all threads and all bytes have arrived", ""),
        (
            "copied.wait(std::move(token)); // until all threads have arrived and the copies are complete",
            "__syncthreads();",
        ),
        (
            "copied.wait(std::move(token)); // until all threads and all bytes have arrived",
            "__syncthreads();",
        ),
    ],
    "chapter13/async_errors": [
        ('report("cudaDeviceSynchronize()", cudaDeviceSynchronize());', ""),
        ("add<<<1, 1>>>(2, 7, dev_c, 0);", ""),
    ],
    "chapter13/graph_heat --size 100 --iterations 9": [
        ("update(&data, graphExec, slower);", ""),
    ],
}


@pytest.mark.backend("cpu")
@pytest.mark.parametrize("command, old, new", [(c, *m) for c, all in MISTAKES.items() for m in all])
def test_a_mistake_is_found(command, old, new, tmp_path):
    """By the check of the program, where work in streams runs late, and threads in an order that shows it."""
    checks = command.startswith("--check ")
    name, *options = command.split()[checks:]
    source = (ROOT / f"{name}.cu").read_text()
    assert source.count(old) == 1
    (tmp_path / "common").symlink_to(ROOT / "common")
    (tmp_path / "chapter13").mkdir()
    (tmp_path / f"{name}.cu").write_text(source.replace(old, new))
    library = [*(ROOT / "common/lib").glob("*.c")]
    run_in(
        tmp_path,
        ROOT / "cucc/cucc",
        "-std=c++17",
        "-O1",
        "-w",
        *["--check"] * checks,
        "-o",
        "program",
        f"{name}.cu",
        *library,
    )
    status = 0 if " * Expect:  1\n" in source else 1
    run_in(tmp_path, "./program", *options, status=status, CUDA_CPU_STREAMS="late")
