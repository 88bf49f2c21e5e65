# SPDX-License-Identifier: MIT
"""Appendix A: locks without deadlock, and hash tables without lost entries."""
import re

import pytest

import helpers
from formulas import exact_dot


def orders(rng, count=3):
    """Environments: on the CPU back end a lock must work with any schedule of the threads and any number of workers."""
    schedules = ["forward", "reverse", f"random:{rng.randrange(10**6)}"]
    choose = lambda: {"CUDA_CPU_WORKERS": rng.choice("128"), "CUDA_CPU_SCHEDULE": rng.choice(schedules)}
    return [choose() if helpers.backend() == "cpu" else {} for _ in range(count)]


def test_dot(run, rng):
    """It ends with any schedule. A run launches up to 26 kernels, which all take the lock or use atomicAdd."""
    for env in orders(rng):
        size = rng.randint(1, 20000)
        result = run("appendix_a/dot", "--size", size, status=0, env=env)
        got = re.findall(r"^Does GPU value (\S+) = (\S+)\?$", result.out, re.M)
        exact = exact_dot(size)
        assert len(got) == 2
        for value, expected in got:
            assert float(expected) == float(f"{exact:.6g}")
            assert abs(float(value) - exact) <= 1e-4 * exact
        timed = re.findall(r"^With (a lock|atomicAdd\(\)): +[\d.]+ ms, [\d.]+ GB/s$", result.out, re.M)
        assert timed == ["a lock", "atomicAdd()"]


def different_sums(out):
    lines = r"^Added by the host: \S+\nWith a lock: +(\d+) different sums? in 100 runs\nIn order: +1 different sum in 100 runs$"
    return int(re.search(lines, out, re.M)[1])


def test_sums_in_order(run, rng):
    """The program compares the sums in order with that of the host, bit by bit."""
    for env in orders(rng):
        size = rng.randint(1, 50000)
        assert different_sums(run("appendix_a/locks", "--size", size, status=0, env=env).out) >= 1
    assert "sum in order" in run("appendix_a/locks", "--size", 500, "--inject-error", status=1).err


@pytest.mark.backend("cpu")
def test_sums_with_a_lock_depend_on_the_order(run, rng):
    """Each launch has another random order, so that 100 of them give several sums; the same seed gives the same ones again."""
    env = {"CUDA_CPU_SCHEDULE": f"random:{rng.randrange(10**6)}", "CUDA_CPU_WORKERS": "1"}
    first, again = (different_sums(run("appendix_a/locks", status=0, env=env).out) for _ in range(2))
    assert 1 < first == again


def test_naive_lock(run, rng):
    """All threads find the mutex free, whatever the order of the threads."""
    for env in orders(rng):
        result = run("appendix_a/locks", "--naive", status=1, env=env)
        assert result.out.endswith("if (*mutex == 0) *mutex = 1: 32 of 32 threads took the lock\n")
        assert "owners of the lock: got 32, expected 1" in result.err


# ---- Hash tables


def found(result):
    return int(re.search(r"^(\d+) elements found in hash table\.$", result.out, re.M)[1])


def test_hash_functions(run, rng):
    size, seed = 20000, rng.randrange(10**6)  # 19.5 keys in each bucket on average
    table = {}
    for keys in "random", "multiples", "words":
        for function in "modulo", "multiply", "first-letter":
            options = [f"--keys={keys}", f"--hash={function}", f"--size={size}", f"--seed={seed}"]
            result = run("appendix_a/hashtable_cpu", *options, status=0)
            assert found(result) == size and re.search(r"^Time to hash:  \d+\.\d ms\b", result.out, re.M)
            line = r"^Longest chain (\d+), mean \S+; (\d+) of 1024 buckets are empty$"
            table[keys, function] = tuple(map(int, re.search(line, result.out, re.M).groups()))
    spread = [("random", "modulo"), ("random", "multiply"), ("multiples", "multiply"), ("words", "multiply")]
    for longest, empty in (table[case] for case in spread):
        assert longest < 80 and empty <= 3, table
    assert table["multiples", "modulo"] == (size, 1023)  # all keys in one chain
    # The last two letters of a word: 26 x 26 of the 32 x 32 values of 10 bits.
    assert 348 <= table["words", "modulo"][1] < 360, table
    longest, empty = table["words", "first-letter"]  # S: 11.46 %
    assert 998 <= empty <= 1001 and 0.1 * size < longest < 0.13 * size, table


def test_the_time_includes_allocation_and_copies():
    """As the book's figure does: the timer starts before the first allocation of the table and its keys."""
    for name, first in ("cpu", "initialize_table("), ("gpu", "cudaMalloc("):
        main = (helpers.ROOT / f"appendix_a/hashtable_{name}.cu").read_text().partition("int main(")[2]
        assert 0 < re.search(r"start = clock\(\)|EventRecord\(start", main).start() < main.index(first)


def test_hash_table_always_ends(run, rng):
    """Any number of locks, under any schedule. On a GPU the kernel without turns may be ended by the time limit."""
    some = rng.randint(2, 1023)
    for options in ["gpu"], ["locks", "--locks", 1], ["locks", "--locks", some], ["locks", "--no-turns"]:
        for env in orders(rng):
            size = rng.randint(1, 20000)
            result = run(f"appendix_a/hashtable_{options[0]}", *options[1:], "--size", size, env=env)
            if result.status != 0 and "--no-turns" in options and helpers.backend() == "gpu":
                assert "ended after 30 s: the threads wait for each other" in result.err
            else:
                assert result.status == 0 and found(result) == size, result
    run("appendix_a/hashtable_locks", "--no-turns", "--size", 99, "--inject-error", status=1)
    run("appendix_a/hashtable_locks", "--no-turns", "--locks", 0, status=64)


def test_without_locks(run):
    """The number of lost entries varies from run to run, but it is counted correctly. If the threads run one after the other none is
    lost; the status is 1 all the same, because the kernel has a data race."""
    command = "appendix_a/hashtable_locks", "--locks", 0, "--size"
    if helpers.backend() == "cpu":
        result = run(*command, 5000, status=1, env={"CUDA_CPU_WORKERS": "1", "CUDA_CPU_BARRIERS": "fibers"})
        assert result.errors == ["nothing was lost, this time and on this device"] and found(result) == 5000
    result = run(*command, 1000000, status=1)
    lost = re.search(r"^found: (\d+) of 1000000 differ$", result.err, re.M)
    assert found(result) == 1000000 - (int(lost[1]) if lost else 0)
    assert helpers.backend() == "cpu" or int(lost[1]) > 0


# ---- hashtable_pipeline, hashtable_ladder


def test_pipeline(run, rng):
    made, built, looked = "make the keys", "build the table", "look all keys up"
    steps = dict.fromkeys(["gpu", "cpu"], [made, built, looked])
    steps["mixed"] = [made, "copy the keys down", built, "copy the table up", looked]
    for size, where in (1, "all"), (255, "mixed"), (1024 * 256 + 1, "gpu"), (rng.randint(3, 10**6), "all"):
        options, [env] = ["--size", size, "--where", where], orders(rng, 1)
        out = run("appendix_a/hashtable_pipeline", *options, status=0, env=env).out
        way = r"^(gpu|cpu|mixed)\n((?:  .* ms\n)+)  sum of the values (\d+), (\d+) keys found$"
        ways = re.findall(way, out, re.M)
        assert [way for way, *_ in ways] == (list(steps) if where == "all" else [where])
        for way, lines, total, count in ways:
            assert re.findall(r"^  (\S.*?) +[\d.]+ ms$", lines, re.M) == [*steps[way], "all"]
            assert int(total) == size * (size - 1) // 2 and int(count) == size


WORKS = "build", "build and look-up of each"


@pytest.mark.parametrize("fill", ["random", "sequential", "adversarial", "repeated"])
def test_hash_table_ladder(rungs, rng, fill):
    """All rungs with each kind of keys and each load factor. Of 100 different keys many have the same bin, more than it has
    room for; at a load factor of 0.95 pairs find no room in their part. What has no room must not be lost."""
    for load, size in ("0.5", rng.randint(2, 200)), ("0.8", rng.randint(5000, 10000)), ("0.95", 30011):
        options = ["--fill", fill, "--load", load, "--size", size, "--seed", rng.randrange(10**6)]
        env = {"CUDA_CPU_SCHEDULE": f"random:{rng.randrange(10**6)}"}
        rows = rungs("appendix_a/hashtable_ladder", *options, env=env)
        skipped = [row["name"] for row in rows if row["skipped"]]
        assert len(rows) == 10 and skipped == ([] if load == "0.95" else 2 * ["sorted parts"]), rows
        assert {row["data"] for row in rows} == {f"{work}, {fill}, load factor {load}" for work in WORKS}


def test_keys_of_the_hash_table_ladder(rungs):
    """By default random keys come with each load factor and other keys with the smallest; on the CPU back end one table is enough."""
    shown = {row["data"] for row in rungs("appendix_a/hashtable_ladder", "--size", 1000)}
    random = [f"random, load factor {load}" for load in (0.5, 0.8, 0.95)]
    others = [f"{fill}, load factor 0.5" for fill in ("sequential", "adversarial")]
    keys = random[:1] if helpers.backend() == "cpu" else random + others
    assert shown == {f"{work}, {data}" for work in WORKS for data in keys}
