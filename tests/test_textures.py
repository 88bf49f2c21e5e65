# SPDX-License-Identifier: MIT
"""Texture fetches against the formulas of the CUDA programming guide's appendix on texture fetching, in numpy.

tests/common/textures.cu fetches from 8 x 4 texels, at points whose coordinates are multiples of 1/256, because the
fractions of a GPU are. Normalised coordinates are divided by 8 or 4 and are still exact floats. So no fraction is
rounded, and rounding moves no point across the edge of a texel; only the first point lies on an edge."""
import numpy as np

import helpers

W, H, POINTS = 8, 4, 160
WRAP, CLAMP, MIRROR, BORDER = range(4)


def texels(kind, components):
    """The texels in the order (row, column, component), with the values that the program gives them."""
    j, i, c = np.meshgrid(np.arange(H), np.arange(W), np.arange(components), indexing="ij")
    raw = ((i * 37 + j * 71 + c * 13 + 5) % 251).astype(np.int64)
    return {
        "int8": np.where(raw == 5, -128, raw - 125),
        "uint8": raw,
        "int16": np.where(raw == 5, -32768, raw * 257 - 32000),
        "uint16": raw * 257,
        "int32": raw * 8000000 - 1000000000,
        "uint32": raw * 17000000,
        "float32": raw / 8 - 10,
    }[kind]


def normalised(values, kind):
    """The smallest value of a signed kind is slightly less than -1 until after filtering (measured on a GPU)."""
    return values / np.iinfo(kind).max


def indices(i, size, mode):
    """Applies an address mode to integer coordinates: the indices of the texels, -1 for the border."""
    if mode == WRAP:
        return i % size
    if mode == MIRROR:
        return np.where(i // size % 2 == 0, i % size, size - 1 - i % size)
    if mode == BORDER:
        return np.where((i < 0) | (i >= size), -1, i)
    return np.clip(i, 0, size - 1)


def border_of(kind, as_float):
    """The border colour in the texture's format: components of 8 and 16 bits are rounded, ties towards 0."""
    colours = np.array([-0.5, 0.5, 0.25, 1])
    if not as_float:
        return colours if kind == "float32" else np.arange(20, 100, 20)
    largest = np.iinfo(kind).max
    wanted = np.clip(colours, -1 if np.iinfo(kind).min < 0 else 0, 1) * largest
    return np.copysign(np.ceil(np.abs(wanted) - 0.5), wanted) / largest


def at(data, i, j, border):
    return np.where(((i < 0) | (j < 0))[:, None], border[: data.shape[2]], data[j, i])


def expected(shape, data, linear, in_one, mode, border):
    """The expected result at each point. `in_one` means normalised coordinates."""
    k = np.arange(POINTS)
    if shape == "fetch":
        inside = (k - 80 >= 0) & (k - 80 < W)
        return np.where(inside[:, None], data[0, np.where(inside, k - 80, 0)], 0)
    x, y = k * 37 / 256 - 10, k * 53 % 2560 / 256 - 4
    # A 1-D texture is a row that is read at y = 0, its edge (measured). This matters when both address modes are
    # border: half of a filtered result is then border. In the shape "row" the second mode is not border.
    data, y = (data[:1], np.zeros(POINTS)) if shape in ("one", "row") else (data, y)
    if not in_one and mode in (WRAP, MIRROR):
        mode = CLAMP

    def place(i, j):
        return at(
            data,
            indices(i.astype(int), W, mode),
            indices(j.astype(int), len(data), WRAP if shape == "row" else mode),
            border,
        )

    if not linear:
        return place(np.floor(x), np.floor(y))
    i, j = np.floor(x - 0.5), np.floor(y - 0.5)
    # The weights are whole 256ths: that of the fourth texel is rounded, and the others follow from the sums (measured).
    a, b = ((x - 0.5 - i) * 256)[:, None], ((y - 0.5 - j) * 256)[:, None]
    both = np.floor((a * b + 128) / 256)
    weighted = (256 - a - b + both) * place(i, j) + (a - both) * place(i + 1, j)
    return (weighted + (b - both) * place(i, j + 1) + both * place(i + 1, j + 1)) / 256


def test_fetches(run):
    lines = run("tests/common/textures", "table", status=0).out.splitlines()
    seen, wrong = set(), []
    for line in lines:
        shape, kind, components, as_float, linear, in_one, mode, *values = line.split()
        components, as_float, linear, in_one, mode = map(int, (components, as_float, linear, in_one, mode))
        what = " ".join(line.split()[:7])
        data = texels(kind, components)
        if as_float:
            data = normalised(data, kind)
        floats = as_float or kind == "float32"
        wanted = expected(shape, data, linear, in_one, mode, border_of(kind, as_float))
        if as_float:
            wanted = np.maximum(wanted, -1)
        got = np.array(values, float).reshape(POINTS, components)
        # A GPU filters with lower precision. Otherwise the only error is the rounding of the result to float.
        limit = (
            0
            if not floats
            else np.abs(data).max() * (0.004 if linear and helpers.backend() == "gpu" else 2e-7)
        )
        off = np.abs(got - wanted)
        if not (off <= limit).all():
            point, c = np.unravel_index(off.argmax(), off.shape)
            wrong.append(
                f"{what}: {(~(off <= limit)).any(axis=1).sum()} points; component {c} of point {point} is "
                f"{got[point, c]}, expected {wanted[point, c]}, {limit} allowed"
            )
        seen.add((shape, kind, components, as_float, linear, in_one, mode))
    assert not wrong, f"{len(wrong)} of {len(lines)} kinds\n" + "\n".join(wrong)
    assert len(seen) == len(lines) == 16 + 4 * (8 * 8 + 8 * 16)
