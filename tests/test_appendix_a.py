# SPDX-License-Identifier: MIT
"""Appendix A: locks without deadlock, and hash tables without lost entries."""
import itertools
import re

import pytest

import helpers

# On the CPU back end a lock must work with any schedule of the threads and any number of workers.
ORDERS = [
    {"CUDA_CPU_WORKERS": workers, "CUDA_CPU_SCHEDULE": schedule}
    for workers, schedule in itertools.product(
        ["1", "2", "8"], ["forward", "reverse", "random:1", "random:2"]
    )
]


def orders():
    return ORDERS if helpers.backend() == "cpu" else [{}] * 3


def check_dot(result, size):
    got = re.findall(r"^Does GPU value (\S+) = (\S+)\?$", result.out, re.M)
    exact = (size - 1) * size * (2 * size - 1) // 3  # twice the sum of the squares below size
    assert len(got) == 2
    for value, expected in got:
        assert float(expected) == float(f"{exact:.6g}")
        assert abs(float(value) - exact) <= 1e-4 * exact
    assert re.findall(r"^With (a lock|atomicAdd\(\)): +[\d.]+ ms, [\d.]+ GB/s$", result.out, re.M) == [
        "a lock",
        "atomicAdd()",
    ]


def test_dot(run, default_run, rng):
    check_dot(default_run("appendix_a/dot"), 33 * 1024 * 1024)
    for size in [1, 2, 255, 256, 257, 32 * 256, 32 * 256 + 1, rng.randint(3, 10**6)]:
        check_dot(run("appendix_a/dot", "--size", size, status=0), size)


def test_dot_always_ends(run, rng):
    """A run launches up to 24 kernels, which all take the lock or use atomicAdd."""
    for blocks in 1, 60:
        for env in orders():
            size = rng.randint(1, 20000)
            check_dot(run("appendix_a/dot", "--size", size, "--blocks", blocks, status=0, env=env), size)
    for env in rng.sample(orders(), 2):
        check_dot(run("appendix_a/dot", "--size", 999, "--blocks", 1000, status=0, env=env), 999)


def found(result):
    return int(re.search(r"^(\d+) elements found in hash table\.$", result.out, re.M)[1])


@pytest.mark.parametrize("name", ["hashtable_cpu", "hashtable_gpu"])
def test_hash_table(run, default_run, rng, name):
    sizes = [
        None,
        1,
        2,
        31,
        32,
        33,
        1023,
        1024,
        1025,
        60 * 256 - 1,
        60 * 256,
        60 * 256 + 1,
        rng.randint(10**5, 10**6),
    ]
    for size in sizes:
        result = (
            run(f"appendix_a/{name}", "--size", size, "--seed", rng.randrange(10**6), status=0)
            if size
            else default_run(f"appendix_a/{name}")
        )
        assert found(result) == (size or 26214400) and re.search(
            r"^Time to hash:  \d+\.\d ms\b", result.out, re.M
        )


def test_hash_table_always_ends(run, rng):
    """A run launches up to 12 kernels."""
    for blocks in 1, 60, 1000:
        for env in orders():
            size = rng.randint(1, 30000)
            assert (
                found(run("appendix_a/hashtable_gpu", "--size", size, "--blocks", blocks, status=0, env=env))
                == size
            )


@pytest.mark.parametrize("name", ["hashtable_cpu", "hashtable_gpu"])
def test_a_key_found_too_often_is_noticed(run, rng, name):
    """--inject-error changes the number of times that a key was found. tests/common/hashtable.cu tests the walk itself."""
    size = rng.randint(1, 5000)
    result = run(f"appendix_a/{name}", "--size", size, "--inject-error", status=1)
    assert (
        re.search(rf"^found\[{size // 2}\]: got \d+, expected 1$", result.err, re.M)
        and f"found: 1 of {size} differ" in result.err
    ), str(result)


@pytest.mark.backend("cpu")
def test_without_locks_one_worker_loses_nothing(run):
    """With one worker no entry is lost. The status is 1 all the same, because the kernel has a data race."""
    result = run(
        "appendix_a/hashtable_gpu", "--no-lock", "--size", 5000, status=1, env={"CUDA_CPU_WORKERS": "1"}
    )
    assert result.errors == ["nothing was lost, this time and on this device"] and found(result) == 5000


def test_without_locks(run):
    """The number of lost entries varies from run to run, but it is counted correctly."""
    size = 4000000 if helpers.backend() == "cpu" else 26214400
    result = run("appendix_a/hashtable_gpu", "--no-lock", "--size", size, status=1)
    lost = re.search(rf"^found: (\d+) of {size} differ$", result.err, re.M)
    assert "wrong entries" not in result.err, str(result)
    assert found(result) == size - (int(lost[1]) if lost else 0)
    assert helpers.backend() == "cpu" or int(lost[1]) > 0
