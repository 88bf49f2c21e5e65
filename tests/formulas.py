# SPDX-License-Identifier: MIT
"""Reference pictures of the programs, computed from their formulas with numpy, independently of the programs."""
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


def green_spheres(size):
    """The greens of chapter 5's shared_bitmap before truncation: each 16 x 16 tile is rotated by 180 degrees."""
    i = np.arange(size)
    wave = np.sin((i // 16 * 16 + 15 - i % 16) * 2 * np.pi / 128) + 1
    return 255 * np.outer(wave, wave) / 4


def diamonds(size):
    """The greens of chapter 8's basic_interop before truncation."""
    f = np.abs(np.arange(size) / size - 0.5) * 100
    return 128 + 127 * np.sin(f[None, :] - f[:, None])


def squares(size, ticks):
    """The picture of chapter 8's texture_interop, top row first."""
    x, y = np.arange(size)[None, :], np.arange(size)[::-1, None]
    return np.stack([(x ^ y) + ticks, y // 2 + 0 * x, (x & y) - 2 * ticks], axis=-1) % 256


def surface(size, ticks=44, n=256, height=0.25):
    """Chapter 8's vertex_interop: the surface of the ripple in perspective, an RGB picture, top row first. Each ray goes from
    the camera through the middle of a pixel. Its first crossing of the surface is found in steps, then by bisection.
    """
    angle = np.radians(40)
    across = (2 * np.arange(size) + 1) / size - 1
    x, y = np.meshgrid(0.4 * across, 0.4 * across[::-1])
    # The point at depth t is start + t * step, in the coordinates of the surface, whose y axis points upwards.
    start = 3 * np.sin(angle) - 0.15 * np.cos(angle), 3 * np.cos(angle) + 0.15 * np.sin(angle)
    step_y, step_z = y * np.cos(angle) - np.sin(angle), -y * np.sin(angle) - np.cos(angle)

    def above(t):
        """The height of the points above the surface; NaN beyond its edges."""
        fx, fz = t * x * n / 2, (start[1] + t * step_z) * n / 2
        ring = np.hypot(fx, fz) / 10
        inside = (np.abs(fx + 0.5) <= (n - 1) / 2) & (np.abs(fz + 0.5) <= (n - 1) / 2)
        wave = height * np.cos(ring - ticks / 7) / (ring + 1)
        return np.where(inside, start[0] + t * step_y - wave, np.nan)

    first, last = ((top - start[0]) / step_y for top in (height, -height))
    after = np.full_like(x, np.nan)
    steps, value = 56, above(first)
    for i in range(1, steps + 1):
        t = first + (last - first) * i / steps
        previous, value = value, above(t)
        crossing = np.isnan(after) & (previous >= 0) & (value < 0)
        after[crossing] = t[crossing]
    before = after - (last - first) / steps
    for _ in range(10):
        middle = (before + after) / 2
        over = above(middle) >= 0
        before, after = np.where(over, middle, before), np.where(over, after, middle)
    share = np.clip(2 * ((start[0] + after * step_y) / height + 0.5) - 0.5, 0, 1)[..., None]
    colours = np.array([0, 32, 96]) * (1 - share) + 255 * share
    return np.where(np.isnan(after)[..., None], 0, np.nan_to_num(colours)).round().astype(np.uint8)


def whole(values, channels=(0, 1, 2)):
    """An RGB picture, top row first, with the truncated values in the given channels."""
    picture = np.zeros(values.shape + (3,), np.uint8)
    picture[..., channels] = np.floor(values[::-1]).astype(np.uint8)[..., None]
    return picture


def discs(size):
    """The input of chapter 12's fft_convolution, greys with the bottom row first."""
    place = 512 * np.arange(size) // size % 64 - 32
    inside = place[None, :] ** 2 + place[:, None] ** 2 < 400
    inside[16 * np.arange(size) < size] = True
    return 255.0 * inside


def blurred(picture, radius, wrap=False):
    """The mean of a picture over a disc around each pixel; beside the picture is its other side, or zeros."""
    reach = np.arange(-radius, radius + 1)
    dy, dx = np.nonzero(reach[:, None] ** 2 + reach[None, :] ** 2 <= radius**2)
    padded = np.pad(picture, radius, mode="wrap" if wrap else "constant")
    size = len(picture)
    return sum(padded[y : y + size, x : x + size] for y, x in zip(dy, dx)) / len(dx)


def out_of_focus(size, radius=20, wrap=False):
    """The picture of chapter 12's fft_convolution, top row first: its left half is the input."""
    values = discs(size)
    right = 2 * np.arange(size) >= size
    values[:, right] = blurred(values, radius, wrap)[:, right]
    return np.repeat(np.floor(values[::-1] + 0.5)[..., None], 3, axis=2)


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


def random_floats(bits):
    """A function rnd(x) that returns floats from 0 to x, x excluded, as common/random.h does: with 24 random bits."""
    return lambda x: np.float32(next(bits) >> 40) * np.float32(2.0**-24) * np.float32(x)


def spheres(n=20, seed=1):
    """n rows of red, green, blue (0 to 1), x, y, z (-500 to 500) and radius (20 to 120), as float32."""
    rnd = random_floats(random_bits(seed))
    rows = [[rnd(1) for _ in "rgb"] + [rnd(1000) - 500 for _ in "xyz"] + [rnd(100) + 20] for _ in range(n)]
    return np.array(rows, np.float32)


def buckets(points=100000, width=200, height=100, seed=1):
    """How many points of bucket_sort_2d are in each cell, the bottom row first. The first point is in the upper right corner."""
    bits = random_bits(seed)
    drawn = np.array([(1 << 31) - 1] * 2 + [next(bits) >> 33 for _ in range(2 * (points - 1))]).astype(
        np.float32
    )
    place = drawn.reshape(-1, 2) / np.float32(2**31) * np.array([width, height], np.float32)
    x, y = np.minimum(place.astype(int), [width - 1, height - 1]).T
    return np.bincount(y * width + x, minlength=width * height).reshape(height, width)


def bucket_picture():
    """The picture of bucket_sort_2d: a grey square of 4 x 4 pixels for each cell."""
    counts = buckets()
    return whole((255 * counts // counts.max()).repeat(4, axis=0).repeat(4, axis=1))


def turned(spheres, ticks):
    """The spheres in frame `ticks`: each turns around the y axis, once or twice in 120 frames, in either direction."""
    moved = spheres.copy()
    x, z = spheres[:, 3].astype(float), spheres[:, 5].astype(float)
    turns = np.resize([1, -1, 2, -2], len(spheres))
    angle = 2 * np.pi * turns * (ticks % 120) / 120
    moved[:, 3] = np.cos(angle) * x + np.sin(angle) * z
    moved[:, 5] = np.cos(angle) * z - np.sin(angle) * x
    return moved


def ray(spheres, size):
    """The spheres seen along the z axis: an RGB picture of 1024 x 1024 units, top row first. Each pixel shows the surface
    with the largest z; its brightness is the cosine of the angle to the normal. Computed in float32; each operation
    rounds separately."""
    f = np.float32
    axis = (np.arange(size, dtype=f) - f(size) / f(2)) * (f(1024) / f(size))
    depth = np.full((size, size), f(-2e10))
    picture = np.zeros((size, size, 3), np.uint8)
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


def mirrors(spheres, size, bounces=3):
    """Chapter 6's ray_mirrors, in double: an RGB picture, top row first. Rays are followed from surface to surface; each
    surface reflects 0.4 of the light, and scatters the rest as it is lit."""
    centres, radii, colours = (spheres[:, part].astype(float) for part in (np.s_[3:6], 6, np.s_[:3]))
    light = np.array([-600.0, 800, 1200])

    def hit(start, direction, own):
        """For each ray the first sphere other than its own, or -1, and the distance."""
        which, distance = np.full(len(start), -1), np.full(len(start), np.inf)
        for i, (centre, radius) in enumerate(zip(centres, radii)):
            middle = ((centre - start) * direction).sum(axis=1)
            miss = start + middle[:, None] * direction - centre
            square = radius**2 - (miss**2).sum(axis=1)
            t = middle - np.sqrt(np.maximum(square, 0))
            nearer = (square > 0) & (own != i) & (t > 0) & (t < distance)
            which[nearer], distance[nearer] = i, t[nearer]
        return which, distance

    axis = (np.arange(size) - size / 2) * 1024 / size
    x, y = np.meshgrid(axis, axis[::-1])
    start = np.stack([x.ravel(), y.ravel(), np.full(size * size, 1000.0)], axis=1)
    direction = np.tile([0.0, 0, -1], (size * size, 1))
    own, left, share = np.full(size * size, -1), np.arange(size * size), 1.0
    picture = np.zeros((size * size, 3))
    for bounce in range(bounces + 1):
        which, distance = hit(start, direction, own)
        out = which < 0
        picture[left[out]] += share * np.array([0.5, 0.75, 1])
        left, own, direction = left[~out], which[~out], direction[~out]
        start = start[~out] + distance[~out, None] * direction
        normal = (start - centres[own]) / radii[own, None]
        far = np.linalg.norm(light - start, axis=1)
        to_light = (light - start) / far[:, None]
        lit = np.maximum((normal * to_light).sum(axis=1), 0) * (hit(start, to_light, own)[1] >= far)
        scattered = share * (0.6 if bounce < bounces else 1) * (0.25 + 0.75 * lit)
        picture[left] += scattered[:, None] * colours[own]
        direction = direction - 2 * (direction * normal).sum(axis=1)[:, None] * normal
        share *= 0.4
    return (255 * picture).astype(np.uint8).reshape(size, size, 3)


def heat(size, steps, speed=0.25):
    """Temperatures after a number of steps, in double, indexed (y, x) with y upwards. Positions of the heaters are scaled
    from a plate of 1024 x 1024 cells. In each step the heaters are imposed, then each cell becomes a weighted mean of itself
    and its neighbours; coordinates are clamped at the edges."""
    place = np.arange(size) * 1024 / size
    x, y = place[None, :], place[:, None]
    heaters = np.zeros((size, size))
    heaters[(x >= 400) & (x < 500) & (y >= 800) & (y < 900)] = np.float32(0.0001)
    heaters[(x > 300) & (x < 600) & (y > 310) & (y < 601)] = 1
    for a, b, temperature in (100, 100, 0.50005), (100, 700, 0.0001), (300, 300, 0.0001), (700, 200, 0.0001):
        heaters[b * size // 1024, a * size // 1024] = np.float32(temperature)
    t = heaters.copy()
    t[(x < 200) & (y >= 800)] = 1
    for _ in range(steps):
        t = np.where(heaters != 0, heaters, t)
        p = np.pad(t, 1, mode="edge")
        neighbours = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
        t = (1 - 4 * speed) * t + speed * neighbours
    return t


def volume(size, ticks=30, n=64):
    """Chapter 7's texture_3d: a slice through n * (n + 1) * (n + 2) texels in frame `ticks`, top row first. Each pixel is the
    mean of the eight texels around it, weighted by their distances."""
    extent = np.array([n, n + 1, n + 2])
    z = 0.5 + (extent[2] - 1) * (1 - abs(1 - ticks % 120 / 60))
    across = (np.arange(size) + 0.5) / size
    picture = np.zeros((size, size))
    places = [axis - 0.5 for axis in (across * extent[0], across * extent[1], np.array([z]))]
    for corner in np.ndindex(2, 2, 2):
        weights = [np.abs(1 - c - place + np.floor(place)) for c, place in zip(corner, places)]
        x, y, z = (
            np.clip(np.floor(place) + c, 0, most - 1) for c, place, most in zip(corner, places, extent)
        )
        rest = (x[None, :] ** 2 + 3 * y[:, None] ** 2 + 5 * z[0] ** 2) // 8 % 500
        picture += weights[2][0] * np.outer(weights[1], weights[0]) * np.abs(rest - 250)
    return np.repeat(picture[::-1, :, None], 3, axis=2).astype(np.uint8)


def colors(values):
    """Values, indexed (y, x) with y upwards, as an RGB picture. The lightness is the value; the hue starts at 180 degrees
    and turns once around, in whole degrees; the saturation is full."""
    lightness = np.clip(values, 0, 1)[::-1].astype(np.float32)
    hue = (180 + (360 * lightness).astype(int)) % 360
    high = np.where(lightness <= 0.5, 2 * lightness, 1)
    low = 2 * lightness - high

    def component(turn):
        # Over the six sixths of the colour circle: rising, high, high, falling, low, low
        return low + (high - low) * np.interp((hue + turn) % 360, [0, 60, 180, 240, 360], [0, 1, 1, 0, 0])

    return (255 * np.stack([component(120), component(0), component(-120)], axis=-1)).astype(np.uint8)


def texture_modes(size):
    """A texture with the letter F, sampled from -1 to 2 in normalized coordinates: border and clamp in the lower quarters,
    wrap and mirror in the upper ones."""
    rows = ["........", "..#.....", "..#.....", "..###...", "..#.....", "..#####.", "........", "........"]
    letter = np.array([list(row) for row in rows]) == "#"
    x, y = np.meshgrid(np.arange(8), np.arange(8))
    texels = np.stack([20 * (x + 1), np.where(letter, 255, 40 + 20 * y), np.where(letter, 255, 160)], axis=-1)
    modes = [
        np.pad(texels, ((9, 9), (9, 9), (0, 0)), mode) for mode in ("constant", "edge", "wrap", "symmetric")
    ]
    pixel = np.arange(size)
    quarter = 2 * pixel // size
    texel = np.floor((3 * (2 * pixel + 1 - quarter * size) / size - 1) * 8).astype(int) + 9
    picture = np.zeros((size, size, 3), np.uint8)
    for mode, padded in enumerate(modes):
        upper, right = quarter == mode // 2, quarter == mode % 2
        picture[np.ix_(upper, right)] = padded[np.ix_(texel[upper], texel[right])]
    return picture[::-1]


def exact_dot(size):
    """Twice the sum of the squares below size, which the programs of dot products compute."""
    return (size - 1) * size * (2 * size - 1) // 3
