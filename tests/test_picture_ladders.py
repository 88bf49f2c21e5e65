"""The ladders that draw pictures: julia_ladder, ripple_ladder and ray_ladder."""

import json

import pytest


def rows_of(run, program, *options):
    rows = json.loads(run(program, *options, "--json", status=0).out)["rows"]
    return [row for row in rows if row["kind"] == "rung"]


def verified(rows):
    return {row["name"] for row in rows if row["verified"]}


@pytest.mark.parametrize("iterations", [1, 9, 10, 11, 57])
def test_julia_tests_every_tenth_step(run, rng, iterations):
    """Numbers of steps below, equal to and above those between two tests, for c outside and inside of the Mandelbrot set. Every
    pixel is equal to that of the book's kernel. The last rung computes half of the iterations, but for the column without a
    counterpart."""
    for real, imag in ((0, 0), (-1, 0), (2, 2), (-0.5, 0.6), (rng.uniform(-2, 2), rng.uniform(-2, 2))):
        size = rng.randint(2, 90)
        rows = rows_of(
            run,
            *("chapter04/julia_ladder", "--size", size, "--iterations", iterations),
            *(f"--real={real:.3f}", f"--imag={imag:.3f}"),
        )
        assert len(rows) == 6 and len(verified(rows)) == 6
        work = [row["rate"] * row["median_ms"] for row in rows]
        assert all(abs(w / work[0] - 1) < 1e-4 for w in work[:5])
        assert 0.49 < work[5] / work[0] < 0.52 + 4 / size


def test_julia_scales(run):
    """With a large scale every point diverges in the first step, with a small one all points behave as the origin does."""
    for scale in ("1e6", "30", "1e-6"):
        rows = rows_of(run, "chapter04/julia_ladder", "--size", 41, "--scale", scale, "--iterations", 23)
        assert len(rows) == 4 * 6 and all(row["verified"] for row in rows)
        assert len({row["data"] for row in rows}) == 4


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8, 132, 1000])
def test_ripple_of_any_size(run, rng, size):
    """Early and late frames. The rungs with vectorized stores need a multiple of four."""
    for ticks in (0, rng.randint(1, 1000), 10**6):
        rows = rows_of(run, "chapter05/ripple_ladder", "--size", size, "--ticks", ticks)
        assert len(verified(rows)) == (4 if size % 4 == 0 else 1)
        assert {row["skipped"] for row in rows} - {None} == (
            {"needs a size that is a multiple of 4"} if size % 4 else set()
        )


@pytest.mark.parametrize("spheres", [1, 32, 33, 65, 500, 2000])
def test_spheres_in_tiles(run, rng, spheres):
    """Up to 32 spheres, one per lane, and more, for which there are lists; sizes that are no multiple of a tile."""
    for size in (4, 100, 131):
        rows = rows_of(
            run,
            *("chapter06/ray_ladder", "--size", size, "--spheres", spheres, "--seed", rng.randrange(10**6)),
        )
        assert len(rows) == 8 and len(verified(rows)) == (4 if size % 4 else 8 if spheres > 32 else 6)
        assert max(row["max_error"] for row in rows if row["verified"]) <= 2
