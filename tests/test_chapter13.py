# SPDX-License-Identifier: MIT
"""Chapter 13: what is special in a lesson. tests/test_programs.py runs each of them."""
import re

import pytest

import helpers


def mean(run, *options):
    out = run("chapter13/graph_heat", "--size", 60, "--iterations", 7, *options, status=0).out
    return float(re.search(r"^Mean temperature: ([\d.]+)$", out, re.M)[1])


def test_the_graph_gets_another_speed(run):
    """The third frame spreads the heat more slowly, at another speed at another rate; the program checks each against its reference."""
    assert mean(run, "--slower", 0.001) != mean(run, "--slower", 0.1) != mean(run)


def test_chunks_of_all_sizes(run, rng):
    """Fewer chunks than streams, a shorter last chunk, more chunks than the pool has to hold at once."""
    size = rng.randrange(1, 20_000)
    for chunk in 1 + size // 40, size, 2 * size:
        run(
            "chapter13/async_alloc",
            "--size",
            size,
            "--chunk",
            chunk,
            "--seed",
            rng.randrange(10**6),
            status=0,
        )


def test_one_block_adds_the_partial_sums_of_many(run, rng):
    """From one block to more blocks than a tile has threads."""
    for size in 255, 257, 32 * 256 + 1, rng.randrange(9_000, 300_000):
        run("chapter13/groups_dot", "--size", size, status=0)


def test_managed_memory_in_three_ways(run, rng):
    out = run("chapter13/managed_hist", "--size", rng.randrange(1, 300_000), status=0).out
    ways = re.findall(r"^(.*?): +[\d.]+ ms, [\d.]+ GB/s$", out, re.M)
    assert ways == ["Page faults", "Prefetch", "Advice", "Copied, as in 2010"]


@pytest.mark.skipif(helpers.backend() == "gpu", reason="a GPU may have clusters")
def test_a_program_of_clusters_says_what_it_needs(run):
    assert "needs clusters of blocks" in run("chapter13/cluster_hist", "--size", 1, status=2).err


def test_factors_of_11_bits_cause_the_error(run, rng):
    """Whole numbers that fit into them are multiplied exactly."""
    out = run("chapter13/wmma_matmul", "--size", rng.randrange(65, 200), status=0).out
    errors = [float(error) for error in re.findall(r"^(?:float|half|TF32).* largest error (.*)$", out, re.M)]
    half = len(errors) // 2
    assert all(error > 20 * errors[0] for error in errors[1:half]) and errors[half:] == [0] * half
