#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the reference pictures, from the formulas and with numpy alone: no program of the suite has a
hand in what it is compared with. Run it only when a formula changes."""
import pathlib

import numpy as np
from PIL import Image


def julia(size, scale=1.5, real=-0.8, imag=0.156, iterations=200):
    """The Julia set as an array of bool, bottom row first: True inside. In float32, each operation
    rounded on its own, as a compiler without fused multiply-add has it."""
    f = np.float32
    scale, real, imag, half = f(scale), f(real), f(imag), f(size) / f(2)
    axis = scale * (half - np.arange(size, dtype=f)) / half
    re, im = np.tile(axis, size), np.repeat(axis, size)
    inside = np.ones(size * size, bool)
    left = np.arange(size * size)  # the pixels whose orbits are still near
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(iterations):
            re, im = re * re - im * im + real, im * re + re * im + imag
            gone = re * re + im * im > f(1000)
            inside[left[gone]] = False
            left, re, im = left[~gone], re[~gone], im[~gone]
            if not left.size:
                break
    return inside.reshape(size, size)


def red(inside):
    """An RGB picture, top row first: red where inside, else black."""
    picture = np.zeros(inside.shape + (3,), np.uint8)
    picture[inside[::-1], 0] = 255
    return picture


if __name__ == "__main__":
    folder = pathlib.Path(__file__).parent / "reference"
    folder.mkdir(exist_ok=True)
    Image.fromarray(red(julia(1000))).quantize(2).save(folder / "julia.png", optimize=True)
