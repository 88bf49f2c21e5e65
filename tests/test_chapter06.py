# SPDX-License-Identifier: MIT
"""Chapter 6: spheres compared with numpy, and timed kernels."""
import re

import pytest

import helpers
from formulas import random_bits, ray, spheres

ENDING = helpers.ending()
# On a GPU, FMA changes the rounding: a colour may differ by one level, and where two spheres intersect the other one may be
# the nearest.
LIMITS = {} if helpers.backend() == "cpu" else dict(mean=0.01, worst=1, fraction=1e-5)


def draw(run, tmp_path, name, **given):
    """The picture that a program draws with --option=value for each item of `given`, and the result of the run."""
    arguments = [f"--{option}={value}" for option, value in given.items()]
    result = run(f"chapter06/{name}", *arguments, f"--output={name}.{ENDING}", status=0)
    return helpers.pixels(tmp_path / f"{name}.{ENDING}"), result


@pytest.mark.parametrize("name", ["ray", "ray_noconst", "ray_animated"])
def test_spheres(run, rng, tmp_path, name):
    """A size that is no multiple of a block. The picture does not depend on the block: the same in constant and in global memory."""
    seed, size, count = rng.randrange(1 << 63), rng.randint(18, 300), rng.randint(1, 300)
    view = dict(size=size, spheres=count, seed=seed, block=rng.choice([16, 32]))
    more = {"ray": dict(background="sky"), "ray_animated": dict(frames=1)}.get(name, {})
    picture, _ = draw(run, tmp_path, name, **view, **more)
    background = (127, 191, 255) if name == "ray" else (0, 0, 0)
    helpers.compare(name, picture, ray(spheres(count, seed), size, background), **LIMITS)


def test_mirrors(run, tmp_path):
    """The program checks the picture."""
    for more in dict(bounces=0), dict(bounces=5, block=32), dict(bounces=5, surface="glass"):
        _, result = draw(run, tmp_path, "ray_mirrors", size=99, spheres=30, **more)
        assert f", at most {more['bounces']} reflections\n" in result.out


def test_constant_divergence(run, rng):
    out = run("chapter06/constant_divergence", "--seed", rng.randrange(1 << 63), status=0).out
    read = r"    a read takes ([\d.]+) cycles from constant, ([\d.]+) cycles from global memory\n"
    rows = re.findall(rf"^ ?(\d+) different words\n{read}", out, re.M)
    assert [int(different) for different, *_ in rows] == [1, 2, 4, 8, 16, 32]
    assert all(float(constant) > 0 and float(device) > 0 for _, constant, device in rows)


def test_event_timing(run, rng):
    """The value after 15 launches, and three clocks, of which two are the host's: the call returns before the kernel ends."""
    for size, rounds in (1, 1), (257, 3), (100000, rng.randint(10, 300)):
        seed = rng.randrange(1 << 63)
        options = [f"--size={size}", f"--rounds={rounds}", f"--seed={seed}"]
        out = run("chapter06/event_timing", *options, status=0).out
        before = after = next(random_bits(seed)) & 0xFFFFFFFF
        for _ in range(15 * rounds):
            after = after * 1664525 + 1013904223 & 0xFFFFFFFF
        assert f"\nx[0] has gone from {before} to {after} in 15 launches\n" in out
        assert out.endswith(f"\nAll {size} elements are right.\n")
        for row in "first launch", "median of later ones":
            times = re.search(rf"^{row} +(\d+\.\d+) ms +(\d+\.\d+) ms +(\d+\.\d+) ms$", out, re.M).groups()
            returned, done, events = map(float, times)
            assert size < 10**5 or 0 < returned <= done and events > 0
        assert re.search(r"^Kernel: \d+\.\d{3} ms, \d+\.\d Gop/s$", out, re.M)
        early = re.search(r"^Read without cudaEventSynchronize\(\): (\w+)$", out, re.M)[1]
        if helpers.backend() == "cpu":
            assert early == "cudaSuccess"
        else:  # a short kernel may have ended
            assert early == "cudaErrorNotReady" or (early == "cudaSuccess" and size < 10**5)
        both = re.search(r"^3 launches after 10 ms of work of the host: (\d+\.\d+) ms", out, re.M)
        assert (
            float(both[1]) > 5
        )  # less than 10 if the first event was late, because another process had the GPU


@pytest.mark.parametrize("spheres", [1, 33, 500])
def test_spheres_in_tiles(rungs, rng, spheres):
    """Up to 32 spheres, one per lane, and more, for which there are lists; sizes that are no multiple of a tile, and pictures
    with enough blocks for four tiles per warp: 2048 on a GPU, 100 with one multiprocessor."""
    for size, workers in (100, 1), (131, 1), (132, 8), *[(2048, 1)] * (helpers.backend() == "gpu"):
        options = ["--size", size, "--spheres", spheres, "--seed", rng.randrange(10**6)]
        rows = rungs("chapter06/ray_ladder", *options, env={"CUDA_CPU_WORKERS": str(workers)})
        verified = [row for row in rows if row["verified"]]
        assert len(rows) == 7 and len(verified) == (2 if size % 4 else 7 if spheres > 32 else 4)
        assert max(row["max_error"] for row in verified) <= 8  # pixels that differ from the book's: rounding
