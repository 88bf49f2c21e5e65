# SPDX-License-Identifier: MIT
"""Chapter 12: scan, sorting and Thrust."""
import re

import formulas


def random_words(seed, n):
    """The first n of the suite's random numbers, 32 bits of each."""
    bits = formulas.random_bits(seed)
    return [next(bits) & 0xFFFFFFFF for _ in range(n)]


def test_scan(run, rng):
    """The program compares each sum with the host's and with the closed form."""
    for size in [1, 32, 33, 3839, 3840, 3841, rng.randint(2, 10**6), 2**24 + 1]:
        out = run("chapter12/scan", "--size", size, "--seed", rng.randrange(10**6), status=0).out
        tiles = -(-size // 3840)
        assert f"\n{tiles} tile{'s' * (tiles > 1)}, {16 if tiles > 1 else 8} bytes moved per element\n" in out
        squares = " ".join(str(i * i) for i in range(min(size, 10)))
        assert f"\nsums of odd numbers: {squares}{' …' if size > 10 else ''}\n" in out
        assert "\nCUB: " in out or "\nCUB is not in this build\n" in out


def test_compaction(run, rng):
    for size, keep in [(1, 0), (1, 100), (33, 50), (3841, 0), (3841, 100), (rng.randint(2, 50000), rng.randint(1, 99))]:
        seed = rng.randrange(10**6)
        out = run("chapter12/scan", "--size", size, "--keep", keep, "--seed", seed, status=0).out
        kept = sum(x % 100 < keep for x in random_words(seed, size))
        assert f"\nkept {kept} of {size} elements\n" in out
    assert "kept element" in run("chapter12/scan", "--size", 9, "--keep", 50, "--inject-error", status=1).err
    run("chapter12/scan", "--keep", 101, status=64)
