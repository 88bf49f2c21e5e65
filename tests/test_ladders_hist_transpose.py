# SPDX-License-Identifier: MIT
"""hist_wide_ladder: bins of 16 bits that overflow; transpose_ladder: matrices that are not square."""
import json

import pytest


def rungs(result):
    return [row for row in json.loads(result.out)["rows"] if row["kind"] == "rung"]


@pytest.mark.parametrize("fill", ["equal", "pair"])
def test_bins_of_16_bits_overflow(run, rng, fill):
    """The first value decides which half of a word overflows. Of a pair both halves do, at the same value."""
    for seed in rng.sample(range(10**9), 3):
        size = rng.randint(4 << 16, 6 << 16)
        rows = rungs(
            run(
                "chapter09/hist_wide_ladder",
                "--size",
                size,
                "--fill",
                fill,
                "--seed",
                seed,
                "--json",
                status=0,
            )
        )
        assert [row["verified"] for row in rows] == [True] * 5 and {row["data"] for row in rows} == {fill}


def test_data_sets(run):
    rows = rungs(run("chapter09/hist_wide_ladder", "--size", 1000, "--json", status=0))
    assert [row["data"] for row in rows[::5]] == ["random", "skewed", "equal"]


def test_transposes_that_are_not_square(run, rng):
    """Tiles that extend beyond an edge. Without rows of whole float4 the vectorized rungs are left out."""
    sides = [1, 3, 4, 31, 60, 64, 65, 68, 4 * rng.randint(20, 200), rng.randint(70, 500)]
    for width, height in [(4, 60), (68, 4), (64, 128)] + [
        (rng.choice(sides), rng.choice(sides)) for _ in "abcdefgh"
    ]:
        rows = rungs(
            run("chapter12/transpose_ladder", "--size", width, "--height", height, "--json", status=0)
        )
        whole = width % 4 == 0 and height % 4 == 0
        assert [row["verified"] for row in rows] == [True] * 3 + [True if whole else None] * 2, (
            width,
            height,
        )
        assert whole or rows[-1]["skipped"] == "needs a width and a height that are multiples of 4"
        assert {row["title"] for row in rows} == {f"{height} x {width} floats"}
