# SPDX-License-Identifier: MIT
"""Chapter 12: Fourier transforms, random numbers and image filters by NVIDIA's libraries or what stands in for them."""
import re

import numpy as np

import formulas
from helpers import needs


# ---- Fourier transforms


def random_numbers(seed, n):
    """The first n numbers of rnd(2) - 1 with a seed."""
    bits = formulas.random_bits(seed)
    return np.array([next(bits) >> 40 for _ in range(n)]) * 2.0**-23 - 1


def bins(out):
    """The bins of a spectrum that a program prints: (k, l) and value."""
    number = r"(-?[\d.]+(?:e-?\d+)?)"
    found = re.findall(rf"^bin \((\d+), (\d+)\) = {number} \+?{number} i", out, re.M)
    return [(int(k), int(l), complex(float(re_), float(im))) for k, l, re_, im in found]


def check_bins(found, spectrum):
    for k, l, value in found:
        assert abs(value - spectrum[k, l]) <= 1e-5 * np.abs(spectrum).max(), (k, l)


@needs("chapter12/fft_2d")
def test_fft_is_that_of_numpy(run, rng):
    for nx, ny in (1, 1), (rng.randint(1, 300), rng.randint(1, 300)):
        seed, n = rng.randrange(10**6), nx * ny
        arguments = ["chapter12/fft_2d", "--nx", nx, "--ny", ny, "--seed", seed]
        out = run(*arguments, status=0).out
        x = random_numbers(seed, 2 * n)
        found = bins(out)
        assert len(found) == 3
        check_bins(found, np.fft.fft2((x[::2] + 1j * x[1::2]).reshape(nx, ny)))
        assert f"Forward and back: {n:.6g} times the input; NX * NY = {n}\n" in out
        assert float(re.search(r"the largest error is (\S+)", out)[1]) < 1e-5
        magnitudes = re.findall(r"^Impulse .* from (\S+) to (\S+)$", out, re.M)
        assert len(magnitudes) == 2 and all(0.99999 < float(m) < 1.00001 for pair in magnitudes for m in pair)
        out = run(*arguments, "--real", status=0).out
        assert f"{nx} x {ny} real numbers have {nx} x {ny // 2 + 1} bins\n" in out
        found = bins(out)
        assert len(found) == 3
        check_bins(found, np.fft.rfft2(x[:n].reshape(nx, ny)))


@needs("chapter12/fft_2d")
def test_fft_of_rows(run, rng):
    rows, points, seed = rng.randint(2, 50), rng.randint(1, 500), rng.randrange(10**6)
    out = run("chapter12/fft_2d", "--batch", rows, "--ny", points, "--seed", seed, status=0).out
    x = random_numbers(seed, 2 * rows * points)
    spectra = np.fft.fft((x[::2] + 1j * x[1::2]).reshape(rows, points))
    found = bins(out)  # three of the first row and three of the last one, row by row and with one call
    assert len(found) == 12
    for i in 0, 6:
        check_bins(found[i : i + 3], spectra[:1])
        check_bins(found[i + 3 : i + 6], spectra[-1:])
    out = run("chapter12/fft_2d", "--long", 10007, "--seed", seed, status=0).out
    x = random_numbers(seed, 2 * 10007)
    check_bins(bins(out), np.fft.fft(x[::2] + 1j * x[1::2])[None])
    assert len(bins(out)) == 3
    nx, ny, nz = (rng.randint(1, 40) for _ in range(3))  # the program compares every bin
    out = run("chapter12/fft_2d", "--nx", nx, "--ny", ny, "--nz", nz, "--seed", seed, status=0).out
    assert out.endswith(f"{nx} x {ny} x {nz} bins of an impulse\n")
    for variant in ["--real"], ["--batch", 3], ["--long", 64], ["--nz", 3]:
        run("chapter12/fft_2d", *variant, "--inject-error", status=1)
    run("chapter12/fft_2d", "--real", "--batch", 3, status=64)


@needs("chapter12/fft_convolution")
def test_blur(run, rng):
    """The program checks each pixel."""
    for border, size, radius in ("zero", 2, 7), *(
        (b, rng.randint(20, 90), rng.randint(0, 20)) for b in ("zero", "wrap")
    ):
        options = ["--size", size, "--radius", radius, "--border", border, "--no-window"]
        out = run("chapter12/fft_convolution", *options, status=0).out
        padded = size + radius * (border == "zero")
        assert f"Transforms of {padded} x {padded} numbers for a picture of {size} x {size}\n" in out


# ---- Random numbers


GENERATORS = ["xorwow", "mrg32k3a", "philox"]


@needs("chapter12/random_pi")
def test_errors_of_pi(run, rng):
    """Random numbers: errors within 5 standard errors, which differ with the seed and the generator. Sobol' numbers: at
    most 4/n for the mean height, the same for every seed."""
    sobol, seen = set(), set()
    size = rng.randint(2**17, 2**18)
    seeds = rng.sample(range(10**6), 2)
    for generator, seed in (GENERATORS[0], seeds[0]), *((generator, seeds[1]) for generator in GENERATORS):
        options = ["--size", size, "--generator", generator, "--seed", seed]
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
    assert len(sobol) == 1 and len(seen) == 4


@needs("chapter12/random_pi")
def test_random_numbers_in_the_kernel(run, rng):
    for generator in GENERATORS:
        options = ["--in-kernel", "--size", 20000, "--generator", generator, "--seed", rng.randrange(10**6)]
        out = run("chapter12/random_pi", *options, status=0).out
        found = re.search(r"^pi = (\S+) by points, (\S+) by the mean height of 20000 points$", out, re.M)
        assert abs(float(found[1]) - np.pi) < 5 * 1.65 / 20000**0.5
        assert abs(float(found[2]) - np.pi) < 5 * 0.9 / 20000**0.5
    run("chapter12/random_pi", "--in-kernel", "--size", 100, "--inject-error", status=1)
    run("chapter12/random_pi", "--generator", "mt19937", status=64)


# ---- Images


@needs("chapter12/npp_blur")
def test_npp_differs_by_one_grey_at_most(run, rng):
    for size, radius in (1, 0), (7, 20), (rng.randint(2, 500), rng.randint(0, 12)):
        options = ["--size", size, "--radius", radius, "--seed", rng.randrange(10**6)]
        out = run("chapter12/npp_blur", *options, status=0).out
        line = rf"^NPP: of {size * size} pixels \d+ are one grey lighter and \d+ one grey darker$"
        assert re.search(line, out, re.M)
