# SPDX-License-Identifier: MIT
"""Chapter 4: vector sums compared with closed forms, and Julia sets compared with numpy."""
import os
import re

import numpy as np
import pytest
from PIL import Image

import helpers
from formulas import by_steps, julia, julia_steps, red

ENDING = helpers.ending()
PERIOD = 46341  # the smallest whole number whose square does not fit an int


def sums(out):
    """The lines a + b = c, and n of the line "... n more ..." (or None)."""
    lines = [tuple(map(int, line)) for line in re.findall(r"^(-?\d+) \+ (-?\d+) = (-?\d+)$", out, re.M)]
    more = re.search(r"^\.\.\. (\d+) more \.\.\.$", out, re.M)
    return lines, int(more[1]) if more else None


@pytest.mark.parametrize("name", ["add_loop_cpu", "add_loop_gpu"])
def test_sums(run, rng, name):
    sizes = [None, 1, 2, 3, 20, 21, 22, PERIOD - 1, PERIOD, PERIOD + 1, 70000, rng.randint(23, 300000)]
    for size in sizes:
        result = run(f"chapter04/{name}", *([] if size is None else ["--size", size]), status=0)
        lines, more = sums(result.out)
        n = size or 10
        shown = list(range(n)) if n <= 20 else [*range(5), *range(n - 5, n)]
        assert more == (None if n <= 20 else n - 10)
        expected = [(-(i % PERIOD), (i % PERIOD) ** 2, (i % PERIOD) ** 2 - i % PERIOD) for i in shown]
        assert lines == expected, f"size {n}"


def test_inputs_made_on_the_device(run, rng):
    """--fill device prints two times, then the same lines as without: they show the inputs, copied back."""
    for size in 1, 10, PERIOD + 1, rng.randint(2, 300000):
        there = run("chapter04/add_loop_gpu", "--size", size, "--fill=device", status=0).out
        times = re.findall(r"^Inputs made on the (host and copied|device): +\d+\.\d{3} ms$", there, re.M)
        assert times == ["host and copied", "device"]
        assert sums(there) == sums(run("chapter04/add_loop_gpu", "--size", size, status=0).out)


def test_two_cores_do_the_same(run):
    assert "Two cores computed the same sums." in run("chapter04/add_loop_cpu", status=0).out


def test_long_vectors(run, rng):
    sizes = [None, 1, 127, 128, 129, rng.randint(130, 10**6), "64K"]
    for size in sizes:
        result = run("chapter04/add_loop_long", *([] if size is None else ["--size", size]), status=0)
        n = {None: 32 * 1024, "64K": 64 * 1024}.get(size, size)
        assert result.out == f"All {n} sums are right.\n"


@pytest.mark.backend("gpu")
@pytest.mark.skipif(
    os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 40 << 30, reason="needs 40 GiB of memory"
)
def test_more_elements_than_an_int_counts(run):
    assert (
        run("chapter04/add_loop_long", "--size", 2**31 + 5, status=0, timeout=600).out
        == f"All {2**31 + 5} sums are right.\n"
    )


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


def compare_julia(name, path, view, exact):
    expected = red(julia(**view))
    if exact:
        helpers.compare(name, helpers.pixels(path), expected)
    else:
        # For the effect of FMA see test_programs.py. In small pictures single pixels weigh more.
        helpers.compare(name, helpers.pixels(path), expected, mean=10, fraction=0.02 + 4 / view["size"] ** 2)


@pytest.mark.parametrize("name", ["julia_cpu", "julia_gpu"])
def test_julia(run, rng, tmp_path, name):
    exact = helpers.backend() == "cpu"
    views = [random_view(rng) for _ in range(8)]
    views += [([f"--size={n}"], dict(size=n)) for n in (1, 2, 3, 17, 255, 256)]
    views += [
        (["--iterations=1", "--size=64"], dict(size=64, iterations=1)),
        (["--scale=1e6", "--size=9"], dict(size=9, scale=1e6)),
    ]
    for arguments, view in views:
        result = run(f"chapter04/{name}", *arguments, f"--output=julia.{ENDING}", status=0)
        compare_julia(name, tmp_path / f"julia.{ENDING}", view, exact)
        inside = int(re.search(r"(\d+) of (\d+) pixels are in the set", result.out)[1])
        assert (
            not exact or inside == julia(**view).sum()
        ), arguments  # the reference of the program gives the same count


@pytest.mark.parametrize("name", ["julia_cpu", "julia_gpu"])
def test_colors_by_steps(run, rng, tmp_path, name):
    """Near the set a rounding changes the number of steps of many pixels, most of them by one step (10 of 255)."""
    exact = helpers.backend() == "cpu"
    for arguments, view in [(["--size=300"], dict(size=300))] + [random_view(rng) for _ in range(3)]:
        run(f"chapter04/{name}", *arguments, "--colors=steps", f"--output=steps.{ENDING}", status=0)
        expected = by_steps(julia_steps(**view), view.get("iterations", 200))
        limits = {} if exact else dict(mean=10, fraction=0.05 + 4 / view["size"] ** 2)
        helpers.compare(name, helpers.pixels(tmp_path / f"steps.{ENDING}"), expected, **limits)


def test_both_draw_the_same_picture(run, tmp_path):
    for name in "julia_cpu", "julia_gpu":
        run(f"chapter04/{name}", "--size=333", "--output", f"{name}.{ENDING}", status=0)
    limits = {} if helpers.backend() == "cpu" else dict(mean=0.5, fraction=0.006)
    helpers.compare(
        "julia",
        *(helpers.pixels(tmp_path / f"{name}.{ENDING}") for name in ("julia_cpu", "julia_gpu")),
        **limits,
    )


@pytest.mark.parametrize("name", ["julia_cpu", "julia_gpu"])
def test_animation(run, tmp_path, rng, name):
    """c moves towards the origin and back in 120 frames."""
    size, frames = rng.randint(30, 90), 4
    run(
        f"chapter04/{name}",
        "--animate",
        f"--frames={frames}",
        f"--size={size}",
        f"--output=frame-%04d.{ENDING}",
        status=0,
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"frame-{i:04}.{ENDING}" for i in range(frames)
    ]
    f = np.float32
    for tick in range(frames):
        nearer = f(1) - f(0.1) * (f(1) - np.cos(f(6.2831853) * f(tick) / f(120)))
        view = dict(size=size, real=f(-0.8) * nearer, imag=f(0.156) * nearer)
        expected = red(julia(**view))
        # The cosines of numpy and of the C library, and so c, may differ in the last bit.
        helpers.compare(
            name, helpers.pixels(tmp_path / f"frame-{tick:04}.{ENDING}"), expected, mean=5, fraction=0.01
        )


@pytest.mark.parametrize("name", ["julia_cpu", "julia_gpu"])
def test_animation_moves_c_and_comes_back(run, tmp_path, name):
    pictures = {}
    for frames in 1, 61, 121:
        run(
            f"chapter04/{name}",
            "--animate",
            f"--frames={frames}",
            "--size=40",
            f"--output=last.{ENDING}",
            status=0,
        )
        pictures[frames] = helpers.pixels(tmp_path / f"last.{ENDING}")
    assert (pictures[1] == pictures[121]).all()
    still = f"chapter04/{name}", "--size=40", f"--output=still.{ENDING}"
    run(*still, status=0)
    assert (pictures[1] == helpers.pixels(tmp_path / f"still.{ENDING}")).all()
    run(*still, "--real=-0.64", "--imag=0.1248", status=0)
    helpers.compare(name, pictures[61], helpers.pixels(tmp_path / f"still.{ENDING}"), mean=3, fraction=0.02)


@pytest.mark.parametrize("name", ["julia_cpu", "julia_gpu"])
def test_frames_need_animate(run, name):
    result = run(f"chapter04/{name}", "--frames=3", status=64)
    assert result.errors == [f"{name}: --frames needs --animate"]


@pytest.mark.parametrize("name", ["julia_cpu", "julia_gpu"])
def test_portable_pixmap(run, tmp_path, name):
    """.ppm needs no library and has the same pixels."""
    run(f"chapter04/{name}", "--size=77", "--output=julia.ppm", status=0)
    with Image.open(tmp_path / "julia.ppm") as picture:
        assert picture.format == "PPM"
    compare_julia(name, tmp_path / "julia.ppm", dict(size=77), exact=helpers.backend() == "cpu")


# ---- julia_ladder


@pytest.mark.parametrize("iterations", [1, 9, 10, 11, 57])
def test_julia_tests_every_tenth_iteration(rungs, rng, iterations):
    """Numbers of iterations below, equal to and above those between two tests, for c outside and inside of the Mandelbrot set.
    Every pixel is equal to that of the book's kernel. The last rung computes half of the iterations, but for the column without
    a counterpart."""
    for real, imag in ((0, 0), (-1, 0), (2, 2), (-0.5, 0.6), (rng.uniform(-2, 2), rng.uniform(-2, 2))):
        size = rng.randint(2, 90)
        rows = rungs(
            *("chapter04/julia_ladder", "--size", size, "--iterations", iterations),
            *(f"--real={real:.3f}", f"--imag={imag:.3f}"),
        )
        assert [row["skipped"] for row in rows] == [None] * 6
        work = [row["rate"] * row["median_ms"] for row in rows]
        assert all(abs(w / work[0] - 1) < 1e-4 for w in work[:5])
        assert 0.49 < work[5] / work[0] < 0.52 + 4 / size


def test_julia_scales(rungs):
    """With a large scale every point diverges in the first step, with a small one all points behave as the origin does."""
    for scale in ("1e6", "30", "1e-6"):
        rows = rungs("chapter04/julia_ladder", "--size", 41, "--scale", scale, "--iterations", 23)
        assert [row["skipped"] for row in rows] == [None] * 4 * 6
        assert len({row["data"] for row in rows}) == 4
