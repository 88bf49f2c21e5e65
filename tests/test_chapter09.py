# SPDX-License-Identifier: MIT
"""Chapter 9: histograms with many sizes and kinds of data, and lost updates."""
import re
from string import ascii_uppercase as ALPHABET

import pytest

import helpers

FILLS = ["random", "equal", "skewed"]


def total(result):
    return int(re.search(r"^Histogram Sum:  (\d+)$", result.out, re.M)[1])


def test_letters(run, rng):
    book = run("chapter09/hist_cpu", "--text", "Programming with CUDA C", status=0).out
    assert book == "A 2\nC 2\nD 1\nG 2\nH 1\nI 2\nM 2\nN 1\nO 1\nP 1\nR 2\nT 1\nU 1\nW 1\n20 letters\n"
    random = "".join(chr(rng.randint(1, 126)) for _ in range(1000)).replace("\n", "x")
    for text in "", "@[`{ 1", "é", random:
        out = run("chapter09/hist_cpu", f"--text={text}", status=0).out
        counts = {c: n for c in ALPHABET if (n := text.upper().count(c))}
        assert out == "".join(f"{c} {n}\n" for c, n in counts.items()) + f"{sum(counts.values())} letters\n"
    assert "letter: 1 of 26 differ" in run("chapter09/hist_cpu", "--text=A", "--inject-error", status=1).err


@pytest.mark.parametrize("name", ["hist_gpu_gmem_atomics", "hist_gpu_shmem_atomics"])
def test_numbers_of_blocks(run, rng, name):
    """Every histogram is checked by the program."""
    for size in 257, rng.randint(10**4, 10**6):
        blocks, fill = rng.choice([1, 2, 31, 5000]), rng.choice(FILLS)
        result = run(f"chapter09/{name}", "--size", size, "--blocks", blocks, status=0)
        assert total(result) == size
        assert "shmem" in name or "down on the host: 0 bins are not 0" in result.out
        out = run(f"chapter09/{name}", "--size", size, "--sweep", "--fill", fill, status=0).out
        multiprocessors = int(re.search(r"^(\d+) multiprocessors$", out, re.M)[1])
        row = r"^ +(\d+) blocks, +([\d.]+) bytes a thread: +[\d.]+ ms, +[\d.]+ GB/s$"
        rows = re.findall(row, out, re.M)
        most = -(-size // 256)
        expected = {1, most, *(min(most, int(k * multiprocessors) or 1) for k in (0.5, 1, 2, 4, 8, 32))}
        assert [int(blocks) for blocks, _ in rows] == sorted(expected)
        assert all(float(each) == pytest.approx(size / int(n) / 256, abs=0.051) for n, each in rows)
        says = r"^Fastest: (\d+) blocks, (\S+) times the multiprocessors$"
        fastest, times = map(float, re.search(says, out, re.M).groups())
        assert fastest in expected and times == pytest.approx(fastest / multiprocessors, rel=0.01)
        row = r"^ +(\d+) threads in a block, (\d+) bins for a thread at most: +[\d.]+ ms$"
        threads = [("32", "8"), ("100", "3"), ("256", "1"), ("1000", "1")] if "shmem" in name else []
        assert re.findall(row, out, re.M) == threads
    wrong = run(f"chapter09/{name}", "--size=99", "--sweep", "--inject-error", status=1)
    assert "bin: 1 of 256 differ" in wrong.err


# ---- atomics_race


@pytest.mark.parametrize("schedule", ["forward", "reverse", "random"])
@pytest.mark.parametrize("workers", ["1", "7", None])
def test_additions(run, rng, workers, schedule):
    """Atomic additions are all there. Of the plain ones at least 31 of 32 are lost, with any number of workers in any order: after
    the barrier of the warp, each of its 32 threads writes at most the largest x that one of them has read, plus one.
    """
    env = {"CUDA_CPU_SCHEDULE": f"random:{rng.randrange(10**6)}" if schedule == "random" else schedule}
    env.update({"CUDA_CPU_WORKERS": workers} if workers else {})
    for blocks, iterations in (1, 1), (rng.randint(2, 64), rng.randint(2, 100)):
        n = blocks * 256 * iterations
        options = ["--blocks", blocks, "--iterations", iterations]
        out = run("chapter09/atomics_race", *options, status=0, env=env).out
        assert f"x should be {n}." in out and f"x = {n}, 0 lost" in out.splitlines()[-1]
        assert re.search(rf"^each its own x: +x = {n}, 0 lost$", out, re.M)
        x, lost = map(int, re.search(r"^x = x \+ 1: +x = (\d+), (\d+) lost", out, re.M).groups())
        assert x > 0 and x + lost == n and lost >= 31 * n / 32


# ---- compute_capability


def test_sum_with_atomics(run, rng):
    for size in 1, 257, rng.randint(3, 2**20):
        out = run("chapter09/compute_capability", "--size", size, status=0).out
        device = re.search(r"^Compute capability of the device: (\d+\.\d)$", out, re.M)[1]
        # The sum of component k is that of i % 7 + k for all i below the size.
        sums = [sum(i % 7 for i in range(size)) + k * size for k in range(4)]
        assert "Sums: " + ", ".join(map(str, sums)) in out.splitlines()
        atomics = re.search(r"^Each thread made (\d) atomic additions?$", out, re.M)[1]
        arch = re.search(r"^__CUDA_ARCH__ of the code that ran: (\d+)$", out, re.M)[1]
        assert (atomics == "1") == (int(arch) >= 900)
        name = run("chapter09/compute_capability", "--list-devices", status=0).out
        rows = re.findall(r"^ +(\d+\.\d)  (yes|no) +\S.*\S  +(\w.*)$", out, re.M)
        known = "1.0 1.1 1.2 1.3 2.0 3.0 6.0 7.0 7.5 8.0 9.0 10.0 10.3 11.0 12.0 12.1"
        assert [row[0] for row in rows] == known.split()
        for least, has, devices in rows:
            assert (has == "yes") == (float(least) <= float(device))
            assert least == device or not any(re.search(rf"\b{each}\b", name) for each in devices.split(", "))
        if helpers.backend() == "gpu":
            binary, ptx = re.search(r"^Binary code for (\S+), from PTX for (\S+)$", out, re.M).groups()
            assert float(binary) <= float(device) and int(arch) == int(float(ptx) * 10) * 10


# ---- hist_ladder, hist_wide_ladder


@pytest.mark.parametrize("fill", ["equal", "pair"])
def test_bins_of_16_bits_overflow(rungs, rng, fill):
    """The first value decides which half of a word overflows. Of a pair both halves do, at the same value."""
    size = rng.randint(4 << 16, 6 << 16)
    options = ["--size", size, "--fill", fill, "--seed", rng.randrange(10**9)]
    rows = rungs("chapter09/hist_wide_ladder", *options)
    assert [row["verified"] for row in rows] == [True] * 5 and {row["data"] for row in rows} == {fill}
    rows = rungs("chapter09/hist_wide_ladder", "--size", 1000)
    assert [row["data"] for row in rows[::5]] == ["random", "skewed", "equal"]
