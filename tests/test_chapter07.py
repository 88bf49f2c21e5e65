# SPDX-License-Identifier: MIT
"""Chapter 7: temperatures of the three programs, pitched memory, and the ladder. printed.txt has what the programs of textures print."""
import re

import pytest

import helpers

ENDING = helpers.ending()
HEAT = ["heat_gmem", "heat", "heat_2d"]


def figures(out):
    """(the printed mean temperature, the largest difference from double, the number of steps checked)"""
    mean = re.search(r"^Mean temperature: (\d\.\d{12})$", out, re.M)[1]
    steps, off = re.search(r"^Largest difference from double, over (\d+) steps: (\S+)$", out, re.M).groups()
    return mean, float(off), int(steps)


def heat(run, tmp_path, name, **given):
    """The same figures and the picture."""
    arguments = [f"--{option}={value}" for option, value in given.items()]
    out = run(f"chapter07/{name}", *arguments, f"--output={name}.{ENDING}", status=0, timeout=600).out
    return (*figures(out), helpers.pixels(tmp_path / f"{name}.{ENDING}"))


@pytest.mark.parametrize(
    "size, frames, iterations, fused",
    [(1, 1, 1, 0), (17, 3, 1, 0), (0, 2, 91, 0), (300, 2, 45, 0), (0, 2, 30, 1)],
)
def test_temperatures(run, rng, tmp_path, size, frames, iterations, fused):
    """The three programs agree within 1e-6 with double; also after an odd number of steps. Size 0 stands for a random one. They agree
    exactly with each other, unless the speed is such that fused multiplications and additions (FMA) round otherwise.
    """
    size, speed = size or rng.randint(3, 200), rng.uniform(0.001, 0.249) if fused else 0.25
    means, pictures = set(), []
    for name in HEAT:
        view = dict(size=size, frames=frames, iterations=iterations, speed=speed)
        mean, off, steps, picture = heat(run, tmp_path, name, **view)
        assert steps == frames * iterations and off <= 1e-6, (name, off)
        means.add(mean)
        pictures.append(picture)
    assert fused or len(means) == 1 and all((picture == pictures[0]).all() for picture in pictures)


# ---- Textures


@pytest.mark.parametrize("columns, rows", [(1, 1), (129, 1), (1000, 77), (1, 600000)])
def test_pitched_memory(run, columns, rows):
    out = run("chapter07/pitched_memory", f"--columns={columns}", f"--rows={rows}", status=0).out
    sizes = re.search(r"have (\d+) bytes, the pitch is (\d+): (\d+) bytes", out).groups()
    width, pitch, left = map(int, sizes)
    assert width == 4 * columns and pitch == width + left and 0 <= left < 1024
    row, column, place, value = re.search(r"Row (\d+), column (\d+) is .* = (\d+): (\S+)", out).groups()
    assert int(place) == int(row) * pitch + int(column) * 4
    assert float(value) == pytest.approx(1000 * int(row) + int(column), rel=1e-5)


# ---- The ladder


@pytest.mark.parametrize("size", [128, 164, pytest.param(1000, marks=pytest.mark.backend("gpu"))])
def test_tiles(rungs, size):
    """As many steps as the margin of a tile allows; one more; several exchanges of margins, also an odd number. The tiles
    overlap more than necessary; with 164, tiles that are not neighbours overlap too. A host with one core cannot run four
    blocks of the persistent kernel at once."""
    for steps in 8, 9, 43:
        rows = rungs("chapter07/heat_ladder", "--size", size, "--iterations", steps)
        checked = {row["name"] for row in rows if not row["skipped"]}
        assert checked >= {"book", "1-D texture", "CUDA array", "cooperative launch", "temporal blocking"}
        assert ("2-D texture" in checked) == (size % 8 == 0)
        assert "persistent kernel" in checked or size > 128 and helpers.backend() == "cpu"


@pytest.mark.parametrize(
    "size, multiprocessors",
    [(128, 2), (128, 13), (128, 26), (300, 42), pytest.param(512, 132, marks=pytest.mark.backend("gpu"))],
)
def test_heights_of_tiles(rungs, size, multiprocessors):
    """The persistent kernel takes the lowest tiles of which no multiprocessor gets two: 2, 13 or 26 of them, or 3 x 14. A GPU
    has as many multiprocessors as it has."""
    env = {"CUDA_CPU_WORKERS": str(multiprocessors)}
    for steps in 1, 13, 31:
        rows = rungs("chapter07/heat_ladder", "--size", size, "--iterations", steps, "--kernel", 8, env=env)
        assert [row["skipped"] for row in rows] == [None]


def test_tiles_need_a_size(rungs):
    rows = rungs("chapter07/heat_ladder", "--size", 130, "--iterations", 3)
    names = lambda reason: {row["name"] for row in rows if row["skipped"] == reason}
    assert names("needs a size that is a multiple of 8") == {"2-D texture"}
    both = {"temporal blocking", "persistent kernel"}
    assert names("needs a size from 128 on, a multiple of 4") == both
