# SPDX-License-Identifier: MIT
"""What tests/test_programs.py tests with three programs, with all of them; more orders of threads, more sizes, large sizes."""
import itertools
import json
import os
import pathlib
import re

import pytest

import helpers
import test_programs as default
import trees
from test_chapter05 import counts
from test_chapter07 import figures, heat
from test_programs import test_bad_arguments, test_default_run, test_lost_output  # noqa: F401
from test_programs import test_more_than_the_memory, test_no_device_at_all  # noqa: F401
from trees import ROOT


@pytest.mark.backend("cpu")
def test_orders_of_threads(device_program, run, tmp_path, rng):
    orders = [{"CUDA_CPU_SCHEDULE": "forward"}, {"CUDA_CPU_SCHEDULE": "reverse", "CUDA_CPU_WORKERS": "7"}]
    for n in "125":
        random = f"random:{rng.randrange(10**6)}"
        orders.append({"CUDA_CPU_SCHEDULE": random, "CUDA_CPU_WORKERS": n})
    # Work of Thrust runs at once, and a line says so.
    orders.append({} if "thrust" in device_program.needs else {"CUDA_CPU_STREAMS": "late"})
    default.compare_orders(device_program, orders, run, tmp_path)


def test_sizes(program, run, rng):
    """Sizes around those of a warp, a block and a tile. The program checks its results."""
    words, range_ = list(program.small), default.sizes_of(program)
    if "--size" not in words:
        return
    at = words.index("--size") + 1
    for size in 2, 31, 33, 127, 257, rng.randint(1, 600):
        if range_[0] <= size <= range_[1] and (size < 400 or not program.picture):
            seed = ["--seed", rng.randrange(1 << 63)]
            run(program, *words[:at], size, *words[at + 1 :], *seed, status=program.status)


LARGE = [
    "chapter04/add_loop_long --size 2147483653",
    *(
        f"chapter09/{name} --size 5G --fill {fill}"
        for name in ("hist_cpu", "hist_gpu_gmem_atomics", "hist_gpu_shmem_atomics")
        for fill in ("random", "equal", "skewed")  # with equal, one bin counts more than 2^32 bytes
    ),
    *(f"chapter05/reduction --runs 1 --size 268435459 --kernel {kernel}" for kernel in range(9)),
]


@pytest.mark.backend("gpu")
@pytest.mark.skipif(
    os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 40 << 30, reason="needs 40 GiB of memory"
)
@pytest.mark.xdist_group("much memory")
@pytest.mark.parametrize("line", LARGE)
def test_more_than_32_bits_count(run, line):
    run(*line.split(), status=0, timeout=600)


@pytest.mark.backend("cpu")
@pytest.mark.parametrize("kernel, size", [(6, 2**24 + 3), (7, 2**28 + 3), (8, 2**24 + 3)])
def test_long_reduction(run, kernel, size):
    """With more than 16384 * 16384 elements kernel 7 needs a third pass; kernels 6 and 8 need at most two."""
    run("chapter05/reduction", "--size", size, "--runs", 1, "--kernel", kernel, status=0)


@pytest.mark.backend("cpu")
def test_counts_are_those_of_recorded_launches(run, tmp_path):
    """reduction --counts against what the kernels did, which a program compiled with cucc --check records."""
    files = "chapter05/reduction.cu", *sorted((ROOT / "common/lib").glob("[a-z]*.c"))
    trees.run(ROOT, "cucc/cucc", "--check", *files, "-o", tmp_path / "checked")
    for threads, kernel in itertools.product((64, 128, 256, 512), range(9)):
        options = ["--size", str(threads), "--threads", str(threads), "--kernel", str(kernel)]
        out = run("chapter05/reduction", "--counts", *options, status=0).out
        ((_, _, diverging, idle, barriers, turns, conflicts, _),) = counts(out)
        trace = f"x.json,kernel=reduce{min(kernel, 7)}"  # kernel 8 adds a single tile as kernel 7 does
        trees.run(tmp_path, "./checked", *options, "--runs", "1", CUDA_CPU_TRACE=trace)
        launch = json.loads((tmp_path / "x.json").read_text())["launch"]
        shared = [access for access in launch["accesses"] if access["memory"] == "shared"]
        recorded = sum(access["turns"] for access in shared)
        assert (barriers, turns) == (launch["barriers_passed"], recorded)
        assert conflicts == recorded - sum(access["warp_accesses"] for access in shared)
        if kernel < 4:  # one line adds
            reads = [a for a in shared if a["kind"] == "read" and a["lanes"] == threads - 1]
            line = min(access["line"] for access in reads)
            lanes = [step["active"] for step in launch["steps"] if step["line"] == line and step["memory"]]
            assert (diverging, idle) == (sum(n < 32 for n in lanes), threads * (barriers - 1) - sum(lanes))


def test_dot_waits_for_all_blocks(run):
    """The block that starts last adds the partial sums of all blocks. Here the others still run, so it must wait."""
    for workers in "2", "5":
        options = ["--size", 4 << 20, "--runs", 1, "--kernel", 4]
        run("chapter05/dot_ladder", *options, status=0, env={"CUDA_CPU_WORKERS": workers})


def test_long_runs_of_heat(run, tmp_path):
    """The reference computes at most 2^29 cell updates; in longer runs it checks one more frame alone."""
    mean, off, steps = figures(run("chapter07/heat_gmem", status=0).out)
    assert steps == 450 and off <= 1e-6
    assert mean == "0.138576413771"  # computed with numpy in float, from the same differences
    assert heat(run, tmp_path, "heat_gmem", size=33, frames=3, iterations=2000)[2] == 6000
    if not helpers.sanitized():
        assert heat(run, tmp_path, "heat_gmem", size=200, frames=9, iterations=1500)[2] == 1500


# ---- On a GPU


@pytest.mark.backend("gpu")
@pytest.mark.parametrize("tool", ["memcheck --leak-check full", "racecheck", "initcheck", "synccheck"])
def test_compute_sanitizer_is_silent(sound_device_program, tool, tmp_path):
    program, racecheck = sound_device_program, tool == "racecheck"
    if "vulkan" in program.needs:
        pytest.skip("compute-sanitizer does not work with Vulkan")
    if "memcheck" not in tool and re.search("cusparse|cusolver", program.needs):
        pytest.skip("reports kernels of the library; the program has none of its own")
    # ncclCommInitRank asks for kernels of its own that have no image for this GPU, and handles error 209 itself.
    calls = ["--report-api-errors", "no"] if "mpi" in program.needs and "memcheck" in tool else []
    words = *tool.split(), "--error-exitcode", "9", *calls, program.name, *program.small
    status, out = sanitized(tmp_path, *words)
    summary = "RACECHECK SUMMARY: 0 hazards" if racecheck else "ERROR SUMMARY: 0 errors"
    assert status == 0 and summary in out, out


@pytest.mark.backend("gpu")
def test_racecheck_sees_that_the_barrier_is_missing(tmp_path):
    options = ["--no-sync", "--size", "64"]
    status, out = sanitized(tmp_path, "racecheck", "chapter05/shared_bitmap", *options)
    assert re.search(r"RACECHECK SUMMARY: [1-9]\d* hazard", out), out


def sanitized(folder, tool, *words):
    """The status and the output of a program, the word with a slash, under a tool of compute-sanitizer."""
    words = ["--tool", tool, *(helpers.BIN / word if "/" in str(word) else word for word in words)]
    result = helpers.execute(pathlib.Path("compute-sanitizer"), words, folder, timeout=3600)
    return result.status, result.out + result.err
