# SPDX-License-Identifier: MIT
"""Chapter 12: scan, sorting and Thrust."""
import re


def test_radix_sort(run, rng):
    """Random ints, which contain INT_MIN and INT_MAX, on the host and on the device"""
    for size in 1, 3841, rng.randint(3, 10**5):
        for passes in 0, 32:  # printed: none, or all with --passes
            options = ["--size", size, "--seed", rng.randrange(10**6), *["--passes"][:passes]]
            out = run("chapter12/radix_sort", *options, status=0).out
            assert re.findall(r"^pass (\d+):", out, re.M) == [str(i + 1) for i in range(passes)]
    wrong = run("chapter12/radix_sort", "--size", 9, "--inject-error", status=1).err
    assert all(f"\n{name}: 1 of 9 differ" in "\n" + wrong for name in ("host", "device"))
    for more in ["--size", 9], ["--printed-test"]:
        assert "only one of" in run("chapter12/radix_sort", "--base", 10, *more, status=64).err


# ---- Thrust


def test_thrust_sort(run, rng):
    """Each sort is compared with std::stable_sort: signed, equal and sorted keys, and few different ones."""
    for kind in "few", "equal", "sorted", "reversed":
        options = ["--input", kind, "--size", rng.randint(2, 20000), "--seed", rng.randrange(10**6)]
        out = run("chapter12/thrust_sort", *options, status=0).out
        sorts = ["ints, radix sort", "structures, merge sort", "keys and numbers, radix sort"]
        rows = re.findall(r"^(.*): +[\d.]+ ms, +[\d.]+ Mkeys/s$", out, re.M)
        assert rows == ["host, std::stable_sort", *sorts]
    wrong = run("chapter12/thrust_sort", "--size", 9, "--inject-error", status=1).err
    assert all(f"\n{name}: 1 of " in wrong for name in ("ints", "structures", "keys and numbers"))


# ---- sort_ladder


def test_sort_ladder(run, rng):
    """All data sets, signed and unsigned, of sizes around those of a block and a tile."""
    tile = 256 * 32
    for size in 1, 257, tile, 3 * tile + rng.randint(1, tile):
        fill, sign = rng.choice(["uniform", "skewed", "equal", "sorted", "reversed"]), rng.randrange(2)
        options = ["--size", size, "--runs", 1, "--fill", fill, "--seed", rng.randrange(10**6)]
        out = run("chapter12/sort_ladder", *options, *["--signed"] * sign, status=0).out
        keys = f"{size} {'ints' if sign else 'unsigned ints'}, {fill}"
        # On a GPU a title ends with "; in L2, and cold".
        assert re.search(rf"\n{keys}[;\n]", out) and re.search(rf"\n{keys}, with values[;\n]", out)
        assert len(re.findall(r"^ [0-4]  .*  yes$", out, re.M)) == 10
    out = run("chapter12/sort_ladder", "--size", 100, "--runs", 1, "--fill", "all", status=0).out
    tables = re.findall(r"^100 unsigned ints, ([^;\n]*)", out, re.M)
    assert tables == ["uniform", "uniform, with values", "skewed", "equal"]
    result = run("chapter12/sort_ladder", "--size", 100, "--inject-error", status=1)
    assert "single pass: misplaced keys, hash, wrong values: " in result.err and " yes" not in result.out


# ---- scan_ladder


def test_scan_ladder(rungs, rng):
    """Ints and floats, of sizes around those of a tile, of a window of the look-back, and with one level of sums more; the
    largest one has rounds of large blocks on two cores"""
    tile = 256 * 24
    for size in 1, tile, 33 * tile + rng.randint(1, tile), 256 * 256 + 1, 450_000 + rng.randint(0, tile):
        rows = rungs(
            "chapter12/scan_ladder", "--all", "--size", size, "--runs", 2, "--seed", rng.randrange(10**6)
        )
        tables = "exclusive, int", "inclusive, float", "inclusive, int", "exclusive, float"
        assert [row["data"] for row in rows] == [table for table in tables for _ in range(6)]
