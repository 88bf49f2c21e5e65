# SPDX-License-Identifier: MIT
"""Chapter 7: temperatures compared with numpy in double, the palette, texture filtering and address modes."""
import itertools
import re

import numpy as np
import pytest

import formulas
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


def check_colors(name, picture, temperatures):
    """An error in the last bit of a temperature may select the next colour. That differs by at most 10 levels, since the hue
    changes by whole degrees, and concerns few pixels."""
    helpers.compare(name, picture, formulas.colors(temperatures), mean=0.05, worst=10, fraction=1e-4)


@pytest.mark.parametrize(
    "size, frames, iterations, fused",
    [(1, 1, 1, 0), (17, 3, 1, 0), (0, 2, 91, 0), (300, 2, 45, 0), (0, 2, 30, 1)],
)
def test_temperatures(run, rng, tmp_path, size, frames, iterations, fused):
    """The three programs agree within 1e-6 with double, and with numpy; also after an odd number of steps. Size 0 stands for a random
    one. They agree exactly with each other, unless the speed is such that fused multiplications and additions (FMA) round otherwise.
    """
    size, speed = size or rng.randint(3, 200), rng.uniform(0.001, 0.249) if fused else 0.25
    expected = formulas.heat(size, frames * iterations, float(np.float32(speed)))
    means, pictures = set(), []
    for name in HEAT:
        view = dict(size=size, frames=frames, iterations=iterations, speed=speed)
        mean, off, steps, picture = heat(run, tmp_path, name, **view)
        assert steps == frames * iterations and off <= 1e-6, (name, off)
        assert float(mean) == pytest.approx(expected.mean(), abs=1e-7)
        check_colors(f"{name}-{frames}-{iterations}", picture, expected)
        means.add(mean)
        pictures.append(picture)
    assert fused or len(means) == 1 and all((picture == pictures[0]).all() for picture in pictures)


def test_times(run):
    out = run("chapter07/heat_gmem", "--size", 500, "--frames", 3, "--no-window", status=0).out
    assert re.search(r"^Average Time per frame:  \d+\.\d ms$", out, re.M)
    ms, rate = map(float, re.search(r"^Step: +(\d+\.\d{3}) ms, (\d+\.\d) GB/s$", out, re.M).groups())
    assert ms == 0 or rate * ms * 1e6 == pytest.approx(12 * 500**2, rel=0.06 / rate + 0.0006 / ms)


# ---- Textures


def test_texture_formats(run, rng):
    """The program compares random texels with double; here the fixed ones, from the formulas v / 2^n and max(v / 2^(n-1), -1)."""
    out = run("chapter07/texture_formats", "--seed", rng.randrange(1 << 63), status=0).out
    sections = re.findall(r"^([a-z]\w*(?: \w+)?)\n((?:  .*\n)+)", out, re.M)
    kinds = ["unsigned char", "signed char", "unsigned short", "short", "uchar4"]
    assert [name for name, _ in sections] == kinds
    for (name, rows), (least, most) in zip(sections, [(0, 255), (-128, 127), (0, 65535), (-32768, 32767)]):
        values = {int(v): float(f) for v, f in re.findall(r"^ +(-?\d+) is read as +(\S+)$", rows, re.M)}
        assert {least, 0, 1, 10, most // 2, most} <= set(values)
        assert all(f == pytest.approx(max(v / most, -1), abs=1e-6) for v, f in values.items()), name
    assert "(0, 255, 127, 128) is read as (0.000000, 1.000000, 0.498039, 0.501961)" in out


def test_volume(run, rng):
    """The program checks every texel and every point. Here: the printed point between texels, from the formula."""
    texel = lambda x, y, z: abs((x * x + 3 * y * y + 5 * z * z) // 8 % 500 - 250)
    for size in 1, 33, rng.randint(3, 80):
        options = ["--texels", size, "--size=20", "--frames=1", "--points", 3000]
        out = run("chapter07/texture_3d", *options, "--seed", rng.randrange(1 << 63), status=0).out
        assert out.startswith(f"{size} x {size + 1} x {size + 2} texels; rows of {4 * size} bytes, pitch ")
        (*at, point), (*again, linear) = (
            map(float, re.search(rf"^{name}: \((\S+), (\S+), (\S+)\) is (\S+)$", out, re.M).groups())
            for name in ("point", "linear")
        )
        sizes = [size, size + 1, size + 2]
        clip = lambda place: [int(min(max(np.floor(c), 0), n - 1)) for c, n in zip(place, sizes)]
        assert at == again and point == texel(*clip(at))
        base = np.floor(np.array(at) - 0.5)
        weight = np.array(at) - 0.5 - base
        corners = list(itertools.product((0, 1), repeat=3))
        values = [texel(*clip(base + corner)) for corner in corners]
        mean = sum(v * np.prod(np.where(corner, weight, 1 - weight)) for v, corner in zip(values, corners))
        assert abs(linear - mean) <= 3 * (max(values) - min(values)) / 256 + 0.5
    result = run("chapter07/texture_3d", "--texels=5", "--frames=1", "--inject-error", status=1)
    for name in "linear memory", "array", "point", "linear", "slice":
        assert f"{name}: 1 of " in result.err


def interpolated(x, linear):
    texels = np.arange(10.0) ** 2
    at = lambda i: texels[np.clip(i, 0, 9).astype(int)]
    if not linear:
        return at(np.floor(x))
    i = np.floor(x - 0.5)
    weight = np.round((x - 0.5 - i) * 256) / 256
    return (1 - weight) * at(i) + weight * at(i + 1)


@pytest.mark.parametrize("points", [1, 7, 100])
def test_texture_interpolation(run, points):
    out = run("chapter07/texture_interpolation", f"--points={points}", status=0).out.splitlines()
    rows = np.array([line.split() for line in out[3:]], float)
    x = (np.arange(12 * points) + 0.5) / points - 1
    assert np.abs(rows[:, 0] - x).max() <= 0.0005001
    for column, linear in (1, False), (2, True), (3, False), (4, True):
        # On the edge of two texels either is right. The weights of linear filtering have 8 fraction bits.
        clear = np.abs(x - np.round(x)) > 1e-4 if not linear else np.full(len(x), True)
        off = np.abs(rows[:, column] - interpolated(x, linear))
        assert off[clear].max() <= (17 / 256 + 0.0006 if linear else 0.0005), column


@pytest.mark.parametrize("points", [1, 4])
def test_texture_interpolation_in_two_dimensions(run, points):
    out = run("chapter07/texture_interpolation", "--2d", f"--points={points}", status=0).out
    shown = [
        np.array([line.split() for line in table.split("\n") if line], float)
        for table in re.split(r"^(?:point|linear)$", out, flags=re.M)[1:]
    ]
    x = (np.arange(6 * points) + 0.5) / points - 1
    texel = lambda j, i: np.clip(i, 0, 3)[None, :] ** 2 + 10 * np.clip(j, 0, 3)[:, None]
    clear = np.abs(x - np.round(x)) > 1e-4  # not on the edge of two texels
    assert (shown[0] == texel(np.floor(x), np.floor(x)))[np.ix_(clear, clear)].all()
    i = np.floor(x - 0.5)
    a, b = (x - 0.5 - i)[None, :], (x - 0.5 - i)[:, None]
    below, above = ((1 - a) * texel(j, i) + a * texel(j, i + 1) for j in (i, i + 1))
    assert np.abs(shown[1] - (1 - b) * below - b * above).max() <= 2 * 15 / 256 + 0.0006
    result = run("chapter07/texture_interpolation", "--2d", "--inject-error", status=1)
    assert "copied back" in result.err and "linear" in result.err


def test_texture_modes(run):
    """The table of the columns that each mode reads. The program checks the picture."""
    for size in 16, 47, 1:
        out = run("chapter07/texture_modes", f"--size={size}", f"--output=modes.{ENDING}", status=0).out
        table = {line.split()[0]: [int(n) for n in line.split()[1:]] for line in out.splitlines()[:5]}
        up, down, nothing = list(range(1, 9)), list(range(8, 0, -1)), [0] * 8
        assert table == {
            "column": list(range(-8, 16)),
            "border": nothing + up + nothing,
            "clamp": [1] * 8 + up + [8] * 8,
            "wrap": up * 3,
            "mirror": down + up + down,
        }


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
        assert checked >= {"book", "1-D texture", "cooperative launch", "temporal blocking"}
        assert ("2-D texture" in checked) == (size % 8 == 0)
        assert "persistent kernel" in checked or size > 128 and helpers.backend() == "cpu"


def test_tiles_need_a_size(rungs):
    rows = rungs("chapter07/heat_ladder", "--size", 130, "--iterations", 3)
    names = lambda reason: {row["name"] for row in rows if row["skipped"] == reason}
    assert names("needs a size that is a multiple of 8") == {"2-D texture"}
    both = {"temporal blocking", "persistent kernel"}
    assert names("needs a size from 128 on, a multiple of 4") == both
