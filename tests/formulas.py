# SPDX-License-Identifier: MIT
"""Pictures and numbers of the programs, computed from their formulas with numpy, independently of the programs."""
import numpy as np


def julia_steps(size, scale=1.5, real=-0.8, imag=0.156, iterations=200):
    """The steps after which each point diverges, bottom row first; `iterations` inside the Julia set. Computed in
    float32; each operation rounds separately, as without fused multiply-add (FMA)."""
    f = np.float32
    scale, real, imag, half = f(scale), f(real), f(imag), f(size) / f(2)
    axis = scale * (half - np.arange(size, dtype=f)) / half
    re, im = np.tile(axis, size), np.repeat(axis, size)
    steps = np.full(size * size, iterations)
    left = np.arange(size * size)  # the pixels that have not diverged yet
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(iterations):
            re, im = re * re - im * im + real, im * re + re * im + imag
            gone = re * re + im * im > f(1000)
            steps[left[gone]] = step
            left, re, im = left[~gone], re[~gone], im[~gone]
            if not left.size:
                break
    return steps.reshape(size, size)


def julia(size, iterations=200, **view):
    """The Julia set as an array of bool, bottom row first: True inside."""
    return julia_steps(size, iterations=iterations, **view) == iterations


def red(inside):
    """An RGB picture, top row first: red where inside, else black."""
    picture = np.zeros(inside.shape + (3,), np.uint8)
    picture[inside[::-1], 0] = 255
    return picture


def by_steps(steps, iterations=200):
    """An RGB picture, top row first: black inside, else from black over red and yellow to white by the steps."""
    shades = np.clip(10 * steps[::-1, :, None] - 255 * np.arange(3), 0, 255)
    return np.where(steps[::-1, :, None] == iterations, 0, shades).astype(np.uint8)


def ripple(size, ticks):
    """The greys of chapter 5's ripple before truncation to whole numbers, bottom row first."""
    x = np.arange(size) - size // 2
    ring = np.hypot(x[None, :], x[:, None]) / 10
    return 128 + 127 * np.cos(ring - ticks / 7) / (ring + 1)


def diamonds(size):
    """The greens of chapter 8's basic_interop before truncation."""
    f = np.abs(np.arange(size) / size - 0.5) * 100
    return 128 + 127 * np.sin(f[None, :] - f[:, None])


def whole(values, channels=(0, 1, 2)):
    """An RGB picture, top row first, with the truncated values in the given channels."""
    picture = np.zeros(values.shape + (3,), np.uint8)
    picture[..., channels] = np.floor(values[::-1]).astype(np.uint8)[..., None]
    return picture


def random_bits(seed=1):
    """The random sequence of common/random.h: xoshiro256**, with its state filled by splitmix64 from the seed."""
    mask = (1 << 64) - 1
    state = []
    for i in range(1, 5):
        z = seed + i * 0x9E3779B97F4A7C15 & mask
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        state.append(z ^ z >> 31)
    a, b, c, d = state
    while True:
        product = b * 5 & mask
        yield (product << 7 | product >> 57) * 9 & mask
        t = b << 17 & mask
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= t
        d = (d << 45 | d >> 19) & mask


def spheres(n=20, seed=1):
    """n rows of red, green, blue (0 to 1), x, y, z (-500 to 500) and radius (20 to 120), as float32."""
    bits = random_bits(seed)
    # From 0 to x, x excluded, as common/random.h does: with 24 random bits
    rnd = lambda x: np.float32(next(bits) >> 40) * np.float32(2.0**-24) * np.float32(x)  # noqa: E731
    rows = [[rnd(1) for _ in "rgb"] + [rnd(1000) - 500 for _ in "xyz"] + [rnd(100) + 20] for _ in range(n)]
    return np.array(rows, np.float32)


def turned(spheres, ticks):
    """The spheres in frame `ticks`: each turns around the y axis, once or twice in 120 frames, in either direction."""
    moved = spheres.copy()
    x, z = spheres[:, 3].astype(float), spheres[:, 5].astype(float)
    turns = np.resize([1, -1, 2, -2], len(spheres))
    angle = 2 * np.pi * turns * (ticks % 120) / 120
    moved[:, 3] = np.cos(angle) * x + np.sin(angle) * z
    moved[:, 5] = np.cos(angle) * z - np.sin(angle) * x
    return moved


def ray(spheres, size, background=(0, 0, 0)):
    """The spheres seen along the z axis: an RGB picture of 1024 x 1024 units, top row first. Each pixel shows the surface
    with the largest z; its brightness is the cosine of the angle to the normal. Computed in float32; each operation
    rounds separately."""
    f = np.float32
    axis = (np.arange(size, dtype=f) - f(size) / f(2)) * (f(1024) / f(size))
    depth = np.full((size, size), f(-2e10))
    picture = np.full((size, size, 3), background, np.uint8)
    for r, g, b, x, y, z, radius in spheres:
        rows, columns = (np.flatnonzero(np.abs(axis - centre) <= radius) for centre in (y, x))
        if not rows.size or not columns.size:
            continue
        part = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        dx, dy = axis[None, part[1]] - x, axis[part[0], None] - y
        square = radius * radius - dx * dx - dy * dy
        dz = np.sqrt(np.maximum(square, f(0)))
        seen = (square > 0) & (z + dz > depth[part])
        depth[part][seen] = (z + dz)[seen]
        shade = (dz / radius)[seen]
        picture[part][seen] = np.stack([color * shade * f(255) for color in (r, g, b)], axis=-1)
    return picture[::-1]


def exact_dot(size):
    """Twice the sum of the squares below size, which the programs of dot products compute."""
    return (size - 1) * size * (2 * size - 1) // 3
