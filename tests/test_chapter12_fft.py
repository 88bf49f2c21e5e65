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
    return [
        (int(k), int(l), complex(float(re_), float(im)))
        for k, l, re_, im in re.findall(rf"^bin \((\d+), (\d+)\) = {number} \+?{number} i", out, re.M)
    ]


def check_bins(found, spectrum):
    for k, l, value in found:
        assert abs(value - spectrum[k, l]) <= 1e-5 * np.abs(spectrum).max(), (k, l)


@needs("chapter12/fft_2d")
def test_fft_is_that_of_numpy(run, rng):
    for nx, ny in (256, 128), (1, 1), (rng.randint(1, 300), rng.randint(1, 300)):
        seed, n = rng.randrange(10**6), nx * ny
        arguments = ["--nx", nx, "--ny", ny, "--seed", seed]
        out = run("chapter12/fft_2d", *arguments, status=0).out
        x = random_numbers(seed, 2 * n)
        found = bins(out)
        assert len(found) == 3
        check_bins(found, np.fft.fft2((x[::2] + 1j * x[1::2]).reshape(nx, ny)))
        assert f"Forward and back: {n:.6g} times the input; NX * NY = {n}\n" in out
        assert float(re.search(r"the largest error is (\S+)", out)[1]) < 1e-5
        magnitudes = re.findall(r"^Impulse .* from (\S+) to (\S+)$", out, re.M)
        assert len(magnitudes) == 2 and all(0.99999 < float(m) < 1.00001 for pair in magnitudes for m in pair)

        out = run("chapter12/fft_2d", "--real", *arguments, status=0).out
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
    for variant in ["--real"], ["--batch", 3], ["--long", 64]:
        run("chapter12/fft_2d", *variant, "--inject-error", status=1)
    run("chapter12/fft_2d", "--real", "--batch", 3, status=64)
