# SPDX-License-Identifier: MIT
"""Chapter 12: Fourier transforms, random numbers and image filters by NVIDIA's libraries or what stands in for them."""
import re


def test_transforms_of_any_size(run, rng):
    """The programs compare bins with their definition in double, the transform back, and the spectra of waves."""
    for nx, ny in (1, 1), (rng.randint(1, 300), rng.randint(1, 300)):
        out = run("chapter12/fft_2d", "--nx", nx, "--ny", ny, "--seed", rng.randrange(10**6), status=0).out
        assert f"Forward and back: {nx * ny} times the input;" in out  # docs/errata.md
    for rows, points in (1, 1), (rng.randint(2, 50), rng.randint(1, 500)):
        run("chapter12/fft_batch", "--rows", rows, "--points", points, status=0)


# ---- Random numbers


def test_errors_of_pi(run, rng):
    """Random numbers: errors within 5 standard errors, which differ with the seed. Sobol' numbers: at
    most 4/n for the mean height, the same for every seed."""
    sobol, seen = set(), set()
    size = rng.randint(2**17, 2**18)
    for seed in rng.sample(range(10**6), 2):
        options = ["--size", size, "--seed", seed]
        lines = run("chapter12/random_pi", *options, status=0).out.splitlines()[2:]
        rows = [[float(x) for x in line.replace("|", "").split()] for line in lines if "|" in line]
        assert [row[0] for row in rows] == [size // 16**k for k in (3, 2, 1, 0)]
        for n, points, expected, sobol_points, height, expected_height, sobol_height, one_by_n in rows:
            assert abs(points) <= 5.01 * expected and abs(expected - 1.642 / n**0.5) < 0.051 * expected
            assert abs(height) <= 5.01 * expected_height
            assert abs(expected_height - 0.893 / n**0.5) < 0.051 * expected_height
            assert abs(sobol_points) <= 4 / n**0.75 * 2 and abs(sobol_height) <= 8 / n
            assert abs(one_by_n * n - 1) < 0.051
        sobol.add(str([(row[3], row[6]) for row in rows]))
        seen.add(str([(row[1], row[4]) for row in rows]))
    assert len(sobol) == 1 and len(seen) == 2


# ---- Images


def test_npp_differs_by_one_grey_at_most(run, rng):
    for size, radius in (1, 0), (7, 20), (rng.randint(2, 500), rng.randint(0, 12)):
        options = ["--size", size, "--radius", radius, "--seed", rng.randrange(10**6)]
        out = run("chapter12/npp_blur", *options, status=0).out
        line = rf"^NPP: of {size * size} pixels \d+ are one grey lighter and \d+ one grey darker$"
        assert re.search(line, out, re.M)
