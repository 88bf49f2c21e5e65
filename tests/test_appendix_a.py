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


def test_sums_in_order(run, rng):
    """The program compares the sums in order with that of the host, bit by bit."""
    schedules = [{"CUDA_CPU_SCHEDULE": f"random:{rng.randrange(1000)}"}, {"CUDA_CPU_SCHEDULE": "reverse"}]
    for blocks in 0, 1, 100:
        for env in [{}, *(schedules if helpers.backend() == "cpu" else [])]:
            size = rng.randint(1, 50000)
            out = run(
                "appendix_a/dot", "--ordered", "--size", size, "--blocks", blocks, status=0, env=env
            ).out
            assert re.search(
                r"^Added by the host: \S+\nWith a lock:  (\d+) different sums? in 100 runs\n"
                r"In order:     1 different sum in 100 runs$",
                out,
                re.M,
            ), out
    wrong = run("appendix_a/dot", "--ordered", "--size", 500, "--inject-error", status=1)
    assert "sum in order" in wrong.err


@pytest.mark.backend("cpu")
def test_sums_with_a_lock_depend_on_the_order(run):
    """With more workers than one and random orders, 100 runs give several sums; seldom they all give the same one."""

    def different_sums(seed):
        env = {"CUDA_CPU_SCHEDULE": f"random:{seed}", "CUDA_CPU_WORKERS": "4"}
        out = run("appendix_a/dot", "--ordered", "--size", 100000, status=0, env=env).out
        return int(re.search(r"^With a lock: +(\d+) different", out, re.M)[1])

    assert any(different_sums(seed) > 1 for seed in range(1, 9))


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


def chains(result):
    """Length of the longest chain, and the number of empty buckets of 1024."""
    return tuple(
        map(
            int,
            re.search(
                r"^Longest chain (\d+), mean \S+; (\d+) of 1024 buckets are empty$", result.out, re.M
            ).groups(),
        )
    )


@pytest.mark.parametrize("name", ["hashtable_cpu", "hashtable_gpu"])
def test_hash_functions(run, rng, name):
    size = 20000  # 19.5 keys in each bucket on average
    seed = rng.randrange(10**6)
    table = {}
    for keys in "random", "multiples", "words":
        for function in "modulo", "multiply", "first-letter":
            result = run(
                f"appendix_a/{name}",
                f"--keys={keys}",
                f"--hash={function}",
                f"--size={size}",
                f"--seed={seed}",
                status=0,
            )
            assert found(result) == size
            table[keys, function] = chains(result)
    spread = [("random", "modulo"), ("random", "multiply"), ("multiples", "multiply"), ("words", "multiply")]
    for longest, empty in (table[case] for case in spread):
        assert longest < 80 and empty <= 3, table
    assert table["multiples", "modulo"] == (size, 1023)  # all keys in one chain
    # The last two letters of a word: 26 x 26 of the 32 x 32 values of 10 bits.
    assert 348 <= table["words", "modulo"][1] < 360, table
    longest, empty = table["words", "first-letter"]  # S: 11.46 %
    assert 998 <= empty <= 1001 and 0.1 * size < longest < 0.13 * size, table


def test_fewer_locks_than_buckets(run, rng):
    for locks in 1, 32, rng.randint(2, 1023), 1024:
        for env in rng.sample(orders(), 2):
            size = rng.randint(1, 20000)
            assert (
                found(run("appendix_a/hashtable_gpu", "--size", size, "--locks", locks, status=0, env=env))
                == size
            )


def test_all_lanes_at_once(run, rng):
    """Without turns the table is right, or the time limit ends the process."""
    for env in rng.sample(orders(), 3):
        size = rng.randint(1, 20000)
        result = run("appendix_a/hashtable_gpu", "--no-turns", "--size", size, "--time-limit=30", env=env)
        if result.status == 0:
            assert found(result) == size and not result.err
        else:
            assert (
                helpers.backend() == "gpu"
                and "ended after 30 s: the threads wait for each other" in result.err
            )
    run("appendix_a/hashtable_gpu", "--no-turns", "--size", 99, "--inject-error", status=1)
    run("appendix_a/hashtable_gpu", "--no-turns", "--no-lock", status=64)


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


# ---- hashtable_pipeline


STEPS = {
    "gpu": ["make the keys", "build the table", "look all keys up"],
    "cpu": ["make the keys", "build the table", "look all keys up"],
    "mixed": [
        "make the keys",
        "copy the keys down",
        "build the table",
        "copy the table up",
        "look all keys up",
    ],
}


def test_pipeline(run, rng):
    for size, where in [
        (1, "all"),
        (2, "gpu"),
        (255, "mixed"),
        (257, "cpu"),
        (1024 * 256 + 1, "gpu"),
        (rng.randint(3, 10**6), "all"),
    ]:
        for env in rng.sample(orders(), 1):
            out = run(
                "appendix_a/hashtable_pipeline", "--size", size, "--where", where, status=0, env=env
            ).out
            ways = re.findall(
                r"^(gpu|cpu|mixed)\n((?:  .* ms\n)+)  sum of the values (\d+), (\d+) keys found$", out, re.M
            )
            assert [way for way, *_ in ways] == (list(STEPS) if where == "all" else [where])
            for way, lines, total, count in ways:
                assert re.findall(r"^  (\S.*?) +[\d.]+ ms$", lines, re.M) == [*STEPS[way], "all"]
                assert int(total) == size * (size - 1) // 2 and int(count) == size


# ---- hashtable_ladder


@pytest.mark.parametrize("fill", ["random", "sequential", "adversarial", "repeated"])
def test_hash_table_ladder(rungs, rng, fill):
    """All rungs with each kind of keys and each load factor. Of 100 different keys many have the same bin, more than it has
    room for; at a load factor of 0.95 pairs find no room in their part. What has no room must not be lost."""
    for load, size in ("0.5", rng.randint(2, 200)), ("0.8", rng.randint(20000, 40000)), ("0.95", 100003):
        rows = rungs(
            "appendix_a/hashtable_ladder",
            *("--fill", fill, "--load", load, "--size", size, "--seed", rng.randrange(10**6)),
            env={"CUDA_CPU_SCHEDULE": f"random:{rng.randrange(10**6)}"},
        )
        assert len(rows) == 9 and not any(row["skipped"] for row in rows), rows
        assert {row["data"] for row in rows} == {f"{fill}, load factor {load}"}
