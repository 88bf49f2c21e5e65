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


def ripple(size, ticks, centre=None):
    """The greys of chapter 5's ripple as numbers that are not yet whole, bottom row first."""
    x = np.arange(size) - (size // 2 if centre is None else centre)
    ring = np.hypot(x[None, :], x[:, None]) / 10
    return 128 + 127 * np.cos(ring - ticks / 7) / (ring + 1)


def green_spheres(size):
    """The greens of chapter 5's shared_bitmap, likewise: each 16 x 16 tile is turned by half a circle."""
    i = np.arange(size)
    wave = np.sin((i // 16 * 16 + 15 - i % 16) * 2 * np.pi / 128) + 1
    return 255 * np.outer(wave, wave) / 4


def whole(values, channels=(0, 1, 2)):
    """An RGB picture, top row first, with the whole part of each value in these channels."""
    picture = np.zeros(values.shape + (3,), np.uint8)
    picture[..., channels] = np.floor(values[::-1]).astype(np.uint8)[..., None]
    return picture


def indexed(picture):
    """The same picture with a palette: a smaller file."""
    colours, index = np.unique(picture.reshape(-1, 3), axis=0, return_inverse=True)
    image = Image.fromarray(index.reshape(picture.shape[:2]).astype(np.uint8), "P")
    image.putpalette(colours.tobytes())
    return image


if __name__ == "__main__":
    folder = pathlib.Path(__file__).parent / "reference"
    folder.mkdir(exist_ok=True)
    Image.fromarray(red(julia(1000))).quantize(2).save(folder / "julia.png", optimize=True)
    indexed(whole(ripple(1024, 119))).save(folder / "ripple.png", optimize=True)
    indexed(whole(green_spheres(1024), (1,))).save(folder / "shared_bitmap.png", optimize=True)
