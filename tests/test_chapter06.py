# SPDX-License-Identifier: MIT
"""Chapter 6: spheres compared with numpy, constant scalars and timed kernels compared with closed forms."""
import re

import numpy as np
import pytest

import helpers
from formulas import mirrors, random_bits, random_floats, ray, spheres, turned

ENDING = helpers.ending()
# On a GPU, FMA changes the rounding: a colour may differ by one level, and where two spheres intersect the other one may be
# the nearest.
LIMITS = {} if helpers.backend() == "cpu" else dict(mean=0.01, worst=1, fraction=1e-5)
STILLS = ["ray", "ray_noconst"]


def draw(run, tmp_path, name, *options, **given):
    """The picture that a program draws with --option=value for each item of `given`, and the result of the run."""
    arguments = [f"--{option}={value}" for option, value in given.items()]
    result = run(f"chapter06/{name}", *options, *arguments, f"--output={name}.{ENDING}", status=0)
    return helpers.pixels(tmp_path / f"{name}.{ENDING}"), result


@pytest.mark.parametrize("name", STILLS)
def test_spheres(run, rng, tmp_path, name):
    views = [dict(size=n) for n in (1, 2, 15, 16, 17, 255)]
    views += [dict(size=100, spheres=1), dict(size=200, spheres=2000)]
    views += [
        dict(size=rng.randint(18, 400), spheres=rng.randint(1, 300), seed=rng.randrange(1 << 63))
        for _ in range(6)
    ]
    for view in views:
        picture, _ = draw(run, tmp_path, name, **view)
        scene = spheres(view.get("spheres", 20), view.get("seed", 1))
        helpers.compare(name, picture, ray(scene, view["size"]), **LIMITS)


SHADES = {"black": (0, 0, 0), "white": (1, 1, 1), "sky": (0.5, 0.75, 1)}


@pytest.mark.parametrize("name", [*STILLS, "ray_animated"])
def test_backgrounds_and_blocks(run, rng, tmp_path, name):
    """The picture depends on the background, not on the block."""
    seed, size = rng.randrange(1 << 63), rng.randint(33, 200)
    for shade, color in SHADES.items():
        expected = ray(spheres(30, seed), size, color)
        pictures = []
        for block in 16, 32:
            more = [f"--background={shade}", f"--block={block}"] + ["--frames=1"] * (name == "ray_animated")
            pictures.append(draw(run, tmp_path, name, *more, size=size, spheres=30, seed=seed)[0])
            helpers.compare(f"{name}-{shade}", pictures[-1], expected, **LIMITS)
        assert (pictures[0] == pictures[1]).all()


def test_mirrors(run, rng, tmp_path):
    """Pictures with 0 to 5 reflections against numpy's. Each reflection adds edges, where rounding selects another sphere."""
    for bounces in range(6):
        view = dict(size=rng.randint(20, 150), spheres=rng.randint(1, 60), seed=rng.randrange(1 << 63))
        shade = rng.choice(list(SHADES))
        more = dict(bounces=bounces, background=shade, block=rng.choice([16, 32]))
        picture, result = draw(run, tmp_path, "ray_mirrors", **more, **view)
        assert f", at most {bounces} reflections\n" in result.out
        expected = mirrors(spheres(view["spheres"], view["seed"]), view["size"], bounces, SHADES[shade])
        helpers.compare(f"mirrors-{bounces}", picture, expected, mean=0.1, worst=1, fraction=0.003)
    for size in 1, 2, 15, 17:
        draw(run, tmp_path, "ray_mirrors", size=size)
    run("chapter06/ray_mirrors", "--bounces", 6, status=64)


def test_constant_divergence(run, rng):
    out = run("chapter06/constant_divergence", "--seed", rng.randrange(1 << 63), status=0).out
    rows = re.findall(
        r"^ ?(\d+) different words\n    a read takes ([\d.]+) cycles from constant, ([\d.]+) cycles from global memory\n"
        r"    words((?: \d+){32})$",
        out,
        re.M,
    )
    assert [int(different) for different, *_ in rows] == [1, 2, 4, 8, 16, 32]
    for different, constant, device, words in rows:
        assert len(set(words.split())) == int(different) and set(map(int, words.split())) <= set(range(32))
        assert float(constant) > 0 and float(device) > 0


def test_same_seed_same_picture(run, rng, tmp_path):
    """ray (constant memory) and ray_noconst (global memory) draw identical pictures; another seed draws another one."""
    seed = rng.randrange(1, 1 << 63)
    for seed in seed, seed + 1:
        ray_picture, noconst_picture = (
            draw(run, tmp_path, name, seed=seed, size=333, spheres=100)[0] for name in STILLS
        )
        assert (ray_picture == noconst_picture).all()
        other = draw(run, tmp_path, "ray", seed=seed + 1, size=333, spheres=100)[0]
        assert (ray_picture != other).any(axis=2).mean() > 0.2


def overlapping(rng, front):
    """A seed for two overlapping spheres of which number `front` is well in front of the other one; the two spheres; and the
    centre of their overlap."""
    while True:
        seed = rng.randrange(1 << 63)
        pair = spheres(2, seed).astype(float)
        (x, y), radii = pair[:, 3:5].T, pair[:, 6]
        distance = np.hypot(x[1] - x[0], y[1] - y[0])
        # The middle of the overlap of both discs, on the line between their centres
        middle = (max(-radii[0], distance - radii[1]) + min(radii[0], distance + radii[1])) / 2
        point = np.array([x[0] + (x[1] - x[0]) * middle / distance, y[0] + (y[1] - y[0]) * middle / distance])
        apart = pair[front, 5] - pair[1 - front, 5]
        if (
            distance < radii.sum() * 0.7
            and np.abs(point).max() < 500
            and apart > radii.sum()
            and abs(radii - distance).min() > 20
        ):
            return seed, pair, point


@pytest.mark.parametrize("front", [0, 1])
@pytest.mark.parametrize("name", STILLS)
def test_nearest_sphere_wins(run, rng, tmp_path, name, front):
    """Where two spheres overlap, the colour is that of the nearer one, independent of their order."""
    seed, pair, point = overlapping(rng, front)
    picture, _ = draw(run, tmp_path, name, seed=seed, spheres=2)
    column, row = np.round(point + 512).astype(int)
    at = np.array([column - 512, row - 512])  # the ray through that pixel
    dz = [np.sqrt(sphere[6] ** 2 - ((sphere[3:5] - at) ** 2).sum()) for sphere in pair]
    color = {i: 255 * pair[i, :3] * dz[i] / pair[i, 6] for i in (0, 1)}
    assert np.abs(picture[1023 - row, column] - color[front]).max() <= 1.001, (seed, color)


@pytest.mark.parametrize(
    "name, label",
    [
        ("ray", "Time to generate"),
        ("ray_noconst", "Time to generate"),
        ("ray_animated", "Average Time per frame"),
    ],
)
def test_times(run, tmp_path, name, label):
    """The book's figure, and the time and rate of the kernel alone: 7 operations for each pixel and sphere."""
    more = dict(frames=2) if name == "ray_animated" else {}
    _, result = draw(run, tmp_path, name, size=400, spheres=50, **more)
    assert re.search(rf"^{label}:  \d+\.\d ms$", result.out, re.M), str(result)
    ms, rate = map(
        float, re.search(r"^Kernel: +(\d+\.\d{3}) ms, (\d+\.\d) GFLOP/s$", result.out, re.M).groups()
    )
    assert ms == 0 or rate * ms * 1e6 == pytest.approx(7 * 400**2 * 50, rel=0.06 / rate + 0.0006 / ms)


def frames(run, tmp_path, count, **given):
    draw_into = f"frame-%04d.{ENDING}"
    arguments = [f"--{option}={value}" for option, value in given.items()]
    run("chapter06/ray_animated", *arguments, f"--frames={count}", f"--output={draw_into}", status=0)
    paths = sorted(tmp_path.glob(f"frame-*.{ENDING}"))
    assert [path.name for path in paths] == [draw_into % i for i in range(count)]
    return [helpers.pixels(path) for path in paths]


def test_moving_spheres(run, rng, tmp_path):
    size, count, seed = rng.randint(20, 200), rng.randint(5, 60), rng.randrange(1 << 63)
    scene = spheres(count, seed)
    for tick, picture in enumerate(frames(run, tmp_path, 7, size=size, spheres=count, seed=seed)):
        # The sines of numpy and of the C library, and so the positions, may differ in the last bit.
        helpers.compare(
            f"frame {tick}", picture, ray(turned(scene, tick), size), mean=0.01, worst=1, fraction=2e-4
        )


def test_movement_begins_with_the_still_and_comes_back(run, tmp_path):
    still, _ = draw(run, tmp_path, "ray", size=64)
    pictures = frames(run, tmp_path, 122, size=64)
    assert (pictures[0] == still).all()
    for tick in 0, 1:
        assert (pictures[120 + tick] == pictures[tick]).all()
    for tick in range(1, 120):
        assert (pictures[tick] != pictures[tick - 1]).any(), tick
    last, _ = draw(run, tmp_path, "ray_animated", size=64, frames=40)
    assert (last == pictures[39]).all()


@pytest.mark.skipif(not helpers.has("WEBP"), reason="needs a build with libwebp")
def test_animation_in_one_file(run, rng, tmp_path):
    """All frames, lossless."""
    count = rng.randint(2, 30)
    run("chapter06/ray_animated", "--size=100", f"--frames={count}", "--output=spheres.webp", status=0)
    shown = list(helpers.frames(tmp_path / "spheres.webp"))
    assert len(shown) == count
    for tick in 0, count - 1:
        helpers.compare(
            f"frame {tick}", shown[tick], ray(turned(spheres(), tick), 100), mean=0.01, worst=1, fraction=2e-4
        )


@pytest.mark.parametrize("name", [*STILLS, "ray_animated"])
def test_too_many_spheres(run, name):
    result = run(f"chapter06/{name}", "--spheres", 2001, status=64)
    assert len(result.errors) == 1 and "--spheres 2001" in result.err


def test_constant_scalars(run, rng):
    f = np.float32
    for size in [None, 1, 255, 256, 257, rng.randint(2, 10**6)]:
        seed = rng.randrange(1 << 63)
        g, m = (f(rng.choice([rng.uniform(-20, 20), rng.uniform(-1e6, 1e6), 0])) for _ in range(2))
        arguments = [f"--g={float(g)!r}", f"--m={float(m)!r}", f"--seed={seed}"] + (
            [f"--size={size}"] if size else []
        )
        out = run("chapter06/constant_scalars", *arguments, status=0).out.splitlines()
        first = random_floats(random_bits(seed))(100)
        assert out[0] == f"g = {g:g}, m = {m:g}"
        assert out[1] == f"a[0] = m * a[0] * g = {m:g} * {first:g} * {g:g} = {m * first * g:g}"
        assert out[2] == f"All {size or 1024} products are right, from scalars and from the array."
    result = run("chapter06/constant_scalars", status=0)
    assert result.out.startswith("g = 9.81, m = 2\n")


def test_event_timing(run, rng):
    for size, rounds in (1, 1), (255, 2), (257, 3), (rng.randint(2, 10**5), rng.randint(1, 1000)):
        seed = rng.randrange(1 << 63)
        result = run(
            "chapter06/event_timing", f"--size={size}", f"--rounds={rounds}", f"--seed={seed}", status=0
        )
        before = next(random_bits(seed)) & 0xFFFFFFFF
        after = before
        for _ in range(12 * rounds):
            after = after * 1664525 + 1013904223 & 0xFFFFFFFF
        assert f"\nx[0] has gone from {before} to {after} in 12 launches\n" in result.out
        assert result.out.endswith(f"\nAll {size} elements are right.\n")


def test_event_timing_has_three_clocks(run):
    out = run("chapter06/event_timing", "--size=100000", status=0).out
    for row in "first launch", "median of later ones":
        returned, done, events = map(
            float, re.search(rf"^{row} +(\d+\.\d+) ms +(\d+\.\d+) ms +(\d+\.\d+) ms$", out, re.M).groups()
        )
        assert (
            0 < returned <= done and events > 0
        )  # both by the host's clock: the call returns before the kernel ends
    assert re.search(r"^Kernel: \d+\.\d{3} ms, \d+\.\d Gop/s$", out, re.M)


# ---- ray_ladder


@pytest.mark.parametrize("spheres", [1, 32, 33, 65, 500, 2000])
def test_spheres_in_tiles(rungs, rng, spheres):
    """Up to 32 spheres, one per lane, and more, for which there are lists; sizes that are no multiple of a tile."""
    for size in (4, 100, 131):
        rows = rungs(
            *("chapter06/ray_ladder", "--size", size, "--spheres", spheres, "--seed", rng.randrange(10**6))
        )
        verified = [row for row in rows if row["verified"]]
        assert len(rows) == 8 and len(verified) == (4 if size % 4 else 8 if spheres > 32 else 6)
        assert max(row["max_error"] for row in verified) <= 2
