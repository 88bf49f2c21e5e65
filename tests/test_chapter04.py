# SPDX-License-Identifier: MIT
"""Chapter 4: vector sums compared with closed forms, and Julia sets compared with numpy."""
import re

import numpy as np
import pytest

import helpers
from formulas import by_steps, julia, julia_steps, red

ENDING = helpers.ending()
PERIOD = 46341  # the smallest whole number whose square does not fit an int
EXACT = helpers.backend() == "cpu"


def sums(out):
    """The lines a + b = c, and n of the line "... n more ..." (or None)."""
    lines = [tuple(map(int, line)) for line in re.findall(r"^(-?\d+) \+ (-?\d+) = (-?\d+)$", out, re.M)]
    more = re.search(r"^\.\.\. (\d+) more \.\.\.$", out, re.M)
    return lines, int(more[1]) if more else None


@pytest.mark.parametrize("name", ["add_loop_cpu", "add_loop_gpu"])
def test_sums(run, rng, name):
    for n in 1, 20, 21, PERIOD + 1, rng.randint(23, 300000):
        lines, more = sums(run(f"chapter04/{name}", "--size", n, status=0).out)
        shown = list(range(n)) if n <= 20 else [*range(5), *range(n - 5, n)]
        assert more == (None if n <= 20 else n - 10)
        expected = [(-(i % PERIOD), (i % PERIOD) ** 2, (i % PERIOD) ** 2 - i % PERIOD) for i in shown]
        assert lines == expected, f"size {n}"
    out = run(f"chapter04/{name}", status=0).out
    assert len(sums(out)[0]) == 10
    assert name == "add_loop_gpu" or "Two cores computed the same sums." in out


def random_view(rng):
    """Options of a Julia set, and the same values for numpy. c is near the boundary of the Mandelbrot set, where the
    pictures have the most detail."""
    angle = rng.uniform(0, 2 * np.pi)
    c = (np.exp(1j * angle) / 2 - np.exp(2j * angle) / 4) * rng.uniform(0.95, 1.03)
    view = dict(
        size=rng.choice([1, 2, 3, rng.randint(4, 200), rng.randint(200, 400)]),
        scale=rng.choice([1.5, rng.uniform(0.5, 2)]),
        real=float(np.float32(c.real)),
        imag=float(np.float32(c.imag)),
        iterations=rng.randint(1, 300),
    )
    return [f"--{name}={value!r}" for name, value in view.items()], view


@pytest.mark.parametrize("name", ["julia_cpu", "julia_gpu"])
def test_julia(run, rng, tmp_path, name):
    """The set, and the number of its pixels. For the effect of FMA see test_programs.py; in small pictures single pixels weigh more."""
    views = [random_view(rng) for _ in range(3)]
    for arguments, view in views + [(["--scale=1e6", "--size=9"], dict(size=9, scale=1e6))]:
        out = run(f"chapter04/{name}", *arguments, f"--output=julia.{ENDING}", status=0).out
        limits = {} if EXACT else dict(mean=10, fraction=0.02 + 4 / view["size"] ** 2)
        helpers.compare(name, helpers.pixels(tmp_path / f"julia.{ENDING}"), red(julia(**view)), **limits)
        inside = int(re.search(r"(\d+) of (\d+) pixels are in the set", out)[1])
        assert not EXACT or inside == julia(**view).sum(), arguments


def test_animation(run, tmp_path, rng):
    """The colours, and c, which moves towards the origin and back in 120 frames."""
    arguments, view = random_view(rng)
    few = 4 / view["size"] ** 2
    run("chapter04/julia_animated", *arguments, "--frames=1", f"--output=julia.{ENDING}", status=0)
    expected = by_steps(julia_steps(**view), view["iterations"])
    limits = {} if EXACT else dict(mean=10, fraction=0.05 + few)
    shown = tmp_path / f"julia.{ENDING}"
    helpers.compare("julia_animated", helpers.pixels(shown), expected, **limits)
    shown.unlink()
    size, f = rng.randint(30, 90), np.float32
    run("chapter04/julia_animated", "--frames=121", f"--size={size}", f"--output=%03d.{ENDING}", status=0)
    pictures = [helpers.pixels(path) for path in sorted(tmp_path.iterdir())]
    assert len(pictures) == 121 and (pictures[0] == pictures[120]).all()
    for tick in 0, 1, 60, rng.randint(2, 119):
        nearer = f(1) - f(0.1) * (f(1) - np.cos(f(6.2831853) * f(tick % 120) / f(120)))
        expected = by_steps(julia_steps(size, real=f(-0.8) * nearer, imag=f(0.156) * nearer))
        # The cosines of numpy and of the C library, and so c, may differ in the last bit.
        helpers.compare("julia_animated", pictures[tick], expected, mean=5, fraction=0.05)


def test_julia_tests_every_tenth_iteration(rungs, rng):
    """Numbers of iterations below, equal to and above those between two tests, for c outside and inside of the Mandelbrot set.
    The rate of each rung counts the iterations of the picture, also that of the last one, which computes half of them.
    """
    for iterations in 1, 9, 10, 11, 57:
        anywhere = rng.uniform(-2, 2), rng.uniform(-2, 2)
        real, imag = rng.choice([(0, 0), (-1, 0), (2, 2), (-0.5, 0.6), anywhere])
        size = rng.randint(2, 90)
        options = ["--size", size, "--iterations", iterations, f"--real={real:.3f}", f"--imag={imag:.3f}"]
        rows = rungs("chapter04/julia_ladder", *options)
        assert [row["skipped"] for row in rows] == [None] * 6
        work = [row["rate"] * row["median_ms"] for row in rows]
        assert all(abs(w / work[0] - 1) < 1e-4 for w in work)
    rows = rungs("chapter04/julia_ladder", "--size", 41, "--iterations", 23)
    assert [row["skipped"] for row in rows] == [None] * 4 * 6
    assert len({row["data"] for row in rows}) == 4
