# SPDX-License-Identifier: MIT
"""Chapter 13: what is special in a lesson. tests/test_programs.py runs each of them."""
import re

import pytest

import helpers


def test_more_partial_sums_than_a_tile_has_threads(run):
    """On the CPU back end seven multiprocessors hold 56 blocks."""
    run("chapter13/groups_dot", "--size", 100_003, status=0, env={"CUDA_CPU_WORKERS": "7"})


@pytest.mark.skipif(helpers.backend() == "gpu", reason="a GPU may have clusters")
def test_a_program_of_clusters_says_what_it_needs(run):
    assert "needs clusters of blocks" in run("chapter13/cluster_hist", "--size", 1, status=2).err


def test_factors_of_11_bits_cause_the_error(run, rng):
    """Whole numbers that fit into them are multiplied exactly."""
    out = run("chapter13/wmma_matmul", "--size", rng.randrange(65, 200), status=0).out
    errors = [float(error) for error in re.findall(r"^(?:float|half|TF32).* largest error (.*)$", out, re.M)]
    half = len(errors) // 2
    assert all(error > 20 * errors[0] for error in errors[1:half]) and errors[half:] == [0] * half
