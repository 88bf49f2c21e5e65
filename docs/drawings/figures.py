# SPDX-License-Identifier: MIT
"""Drawings for draw.py: what some figures of the book and the first sections of course R explain, with the numbers of our programs."""
from math import sqrt

from drawing import EDGE


def vector_sum(d):
    """The sum of two vectors

    Each of ten elements of c is the sum of the elements of a and b with the same index. One core adds all of them, two cores add the
    even and the odd ones, and on a GPU each of ten blocks adds one."""

    def row(y, name, words, kind, text="c"):
        d.text(EDGE, y + 18, name, text)
        for i in range(10):
            d.box(74 + 39 * i, y, 34, 26, str(words(i)).replace("-", "−"), kind(i))

    d.head(28, "c[i] = a[i] + b[i]")
    d.text(EDGE, 56, "i", "c s")
    row(64, "a", lambda i: -i, lambda i: "a")
    row(112, "b", lambda i: i * i, lambda i: "a")
    row(172, "c", lambda i: i * i - i, lambda i: "b")
    for i in range(10):
        d.text(91 + 39 * i, 56, str(i), "m s")
        d.text(91 + 39 * i, 106, "+", "m")
        d.arrow((91 + 39 * i, 138), (91 + 39 * i, 170))
    d.head(234, "Who adds element i")
    row(250, "1 core", lambda i: 0, lambda i: "a", "s")
    y = d.note(296, "One core: ten steps, one after the other", 74, 50)
    row(y, "2 cores", lambda i: i % 2, lambda i: "ab"[i % 2], "s")
    y = d.note(y + 46, "Cores 0 and 1: five steps each, at the same time", 74, 50)
    row(y, "blocks", lambda i: i, lambda i: "a", "s")
    d.note(y + 46, "A GPU: block i adds element i (blockIdx.x)", 74, 50)


def picture_blocks(d):
    """A picture in blocks of threads

    A picture of 10 by 10 pixels is covered by 3 by 3 blocks of 4 by 4 threads. Thread (2,1) of block (1,2) computes pixel (6,9), which
    is number 96 in memory. The threads beyond the edge return."""
    size, block, blocks, left, top = 10, 4, 3, 60, 62
    bx, by, tx, ty = 1, 2, 2, 1
    x, y = tx + bx * block, ty + by * block

    def kind(row, col):
        if row >= size or col >= size:
            return "w"
        return "b" if (row, col) == (y, x) else "na"[(row // block + col // block) % 2]

    d.head(28, "Threads: 3 × 3 blocks of 4 × 4")
    cells = [(r, c) for r in range(block * blocks) for c in range(block * blocks)]
    for r, c in sorted(cells, key=lambda cell: kind(*cell) == "b"):  # the thick frame last, on top
        d.box(left + 20 * c, top + 20 * r, 20, 20, "", kind(r, c))
    for i in range(blocks):
        d.text(left + 40 + 80 * i, 54, f"x {i}", "m s")
        d.text(left - 6, top + 45 + 80 * i, f"y {i}", "e s")
    d.text(EDGE, 54, "block", "s")
    for i, words in enumerate((f"blockIdx   ({bx},{by})", f"threadIdx  ({tx},{ty})", "blockDim   (4,4)")):
        d.text(316, 82 + 22 * i, words, "c")
    d.text(316, 164, f"x = {tx} + {bx} * {block} = {x}", "c")
    d.text(316, 186, f"y = {ty} + {by} * {block} = {y}", "c")
    d.note(224, "Hatched: beyond the edge of the picture; these threads return.", 316, 19)
    d.head(338, f"Memory: row {y} of the picture")
    for i in range(size):
        d.box(EDGE + 44 * i, 354, 40, 26, str(y * size + i), "b" if i == x else "n")
    d.text(EDGE, 404, f"offset = x + y * size = {x} + {y} * {size} = {x + y * size}", "c")


def rays(d):
    """Rays through the pixels of a picture

    Eight parallel rays go through eight pixels. Each shows the sphere that its ray meets first, and its brightness, the part dz of the
    radius. One ray meets no sphere. In an example dz is 56 of a radius of 70, so the brightness is 0.8."""

    def circle(x, y, r, kind):
        half = f"a{r} {r} 0 0 1 "
        d.outline(kind, f"M{x - r} {y}{half}{2 * r} 0{half}{-2 * r} 0z", (x - r, y - r, x + r, y + r))

    spheres = [(268, 180, 62, "a"), (388, 252, 68, "b")]
    d.head(28, "Seen from the side")
    d.text(EDGE, 56, "viewer", "s")
    d.text(126, 56, "picture", "m s")
    d.arrow((464, 52), (330, 52))
    d.text(322, 56, "z", "e c")
    for sphere in spheres:
        circle(*sphere)
    d.text(268, 134, "a", "m h")
    d.text(402, 304, "b", "m h")
    for i in range(8):
        y = 90 + 30 * i
        found = [(x - sqrt(r * r - (y - cy) ** 2), kind, r) for x, cy, r, kind in spheres if abs(y - cy) < r]
        d.arrow((24, y), (98, y), tip="")
        if not found:
            d.box(98, y - 14, 56, 28, "black", "i")
            d.arrow((154, y), (464, y))
            continue
        hit, kind, radius = min(found)
        center = next(x for x, _, _, k in spheres if k == kind)
        d.box(98, y - 14, 56, 28, f"{(center - hit) / radius:.2f}", kind)
        d.arrow((154, y), (hit, y))
        for other, *_ in sorted(found)[1:]:
            d.outline("i", f"M{hit:g} {y}H{other:g}", (hit, y, other, y))
    says = "Of all spheres on a ray the one with the largest z + dz is nearest to the viewer. "
    y = d.note(346, says + "Dashed: b is behind a.")
    d.head(y + 16, "Where a ray meets a sphere, and how bright")
    x, y = 96, y + 106
    circle(x, y, 70, "a")
    d.outline("l", f"M{x} {y}V{y - 42}H{x - 56}L{x} {y}", (x - 56, y - 42, x, y))
    d.arrow((EDGE - 8, y - 42), (x - 56, y - 42))
    d.text(x - 24, y - 49, "dz", "m c")
    d.text(x + 6, y - 16, "dx, dy", "c")
    d.text(x - 62, y + 14, "radius", "c")
    d.height = y + 70 + EDGE
    d.text(200, y - 40, "dz² = radius² − dx² − dy²", "c")
    d.text(200, y - 16, "n = dz / radius", "c")
    d.note(y + 10, "Here 56 / 70 = 0.8. In the middle of a sphere n is 1, at its outline 0.", 200, 33)


def nearness(d):
    """Nearness in two dimensions

    Sixteen threads read 80 times, but only 32 cells. In memory the cells above and below are a whole row away.
    """
    size, first = 8, 2  # of the plate; the block covers cells first to first + 3

    def near(x, y):
        return [(x, y), (x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)]

    block = [(x, y) for y in range(first, first + 4) for x in range(first, first + 4)]
    reads = [cell for thread in block for cell in near(*thread)]
    counts = {cell: reads.count(cell) for cell in reads}
    d.head(28, "In the plate: how often each cell is read")
    d.grid(EDGE, 46, size, size, 28, lambda r, c: "n")
    for x, y in sorted(counts, key=block.count):  # the thick frames last, on top
        d.box(EDGE + 28 * x, 46 + 28 * y, 28, 28, str(counts[x, y]), "ab"[block.count((x, y))])
    y = d.note(64, "Thick: the cells of a block of 4 × 4 threads.", 262, 25)
    y = d.note(y + 6, "Each thread reads its cell and its four neighbours.", 262, 25)
    says = f"{len(reads)} reads of {len(counts)} cells: the others are repeated, and a cache serves them."
    d.note(y + 6, says, 262, 25)
    d.head(304, "In memory: what one thread reads")
    own = [x + size * y for x, y in near(3, 3)]
    for i in range(21):
        d.box(EDGE + 21 * i, 320, 21, 28, "", "n")
    for i in range(21):
        if 17 + i in own:
            d.box(EDGE + 21 * i, 320, 21, 28, str(17 + i), "b")
    for name, at in zip(("own", "left", "right", "top", "bottom"), own):
        shift = {"left": -24, "right": 28}.get(name, 0)
        d.text(EDGE + 21 * (at - 17) + 10 + shift, 368, name, "m s")
    says = f"Row by row, top and bottom are {size} floats away; "
    d.note(396, says + "on a plate of 1024 × 1024 cells, 1024 floats, 4 KiB.")


def heat_step(d):
    """One step of heat, and its buffers

    A cell takes its new temperature from its old one and those of its four neighbours. A step copies the heaters into the input,
    computes the output from it, and swaps the two buffers."""
    speed, t, l, c, r, b = 0.25, 40, 80, 40, 90, 50  # noqa: E741
    names = {(1, 2): ("t", t), (2, 1): ("l", l), (2, 2): ("c", c), (2, 3): ("r", r), (3, 2): ("b", b)}
    d.head(28, "Five cells of a buffer, one of the other")
    for x, buffer in (EDGE, "dev_inSrc"), (284, "dev_outSrc"):
        d.text(x, 54, buffer, "c")
        d.grid(x, 64, 5, 5, 36, lambda r, c: "n")
    for (row, col), (name, value) in names.items():
        d.box(EDGE + 36 * col, 64 + 36 * row, 36, 36, f"{name} {value}", "a")
    new = c + speed * ((t - c) + (b - c) + (l - c) + (r - c))
    d.box(284 + 72, 64 + 72, 36, 36, f"{new:g}", "b")
    d.arrow((162, 154), (354, 154))
    d.text(240, 144, "one thread", "m s")
    d.text(EDGE, 268, "c + speed * ((t - c) + (b - c) + (l - c) + (r - c))", "c")
    d.text(EDGE, 290, f"{c} + {speed} * ({t - c} + {b - c} + {l - c} + {r - c}) = {new:g}", "c")
    y = d.note(314, "A neighbour beyond an edge of the plate: the cell itself.")
    d.head(y + 18, "One time step")
    top = y + 36
    d.box(EDGE, top, 140, 46, "dev_constSrc:\nthe heaters", "n")
    d.box(EDGE, top + 108, 140, 46, "dev_inSrc", "a")
    d.box(324, top + 108, 140, 46, "dev_outSrc", "b")
    d.arrow((86, top + 46), (86, top + 107))
    d.text(98, top + 80, "1. copy_const_kernel", "c")
    d.arrow((156, top + 124), (323, top + 124))
    d.text(240, top + 115, "2. blend_kernel", "m c")
    d.arrow((323, top + 142), (158, top + 142))
    d.arrow((158, top + 142), (322, top + 142))
    d.text(240, top + 162, "3. swap", "m c")
    says = "All threads of blend_kernel read one buffer and write the other, "
    d.note(top + 190, says + "so none reads what another has just written.")


def buckets(d):
    """A hash table: buckets, chains and the pool

    The keys 6, 9, 13, 2 and 5 are inserted into four buckets. The remainder of division by 4 is the bucket. Bucket 1 has the chain 5,
    13, 9, bucket 2 the chain 2, 6, and buckets 0 and 3 are empty. The entries lie in the pool in the order of insertion.
    """
    keys, count, heads, after = [6, 9, 13, 2, 5], 4, {}, {}
    for i, key in enumerate(keys):
        after[i], heads[key % count] = heads.get(key % count), i
    d.head(28, "Buckets and their chains: key % 4")
    for bucket in range(count):
        y, at, x = 46 + 46 * bucket, heads.get(bucket), EDGE
        d.box(x, y, 100, 32, f"entries[{bucket}]")
        x += 100
        while at is not None:
            d.arrow((x, y + 16), (x + 33, y + 16))
            d.box(x + 34, y, 56, 32, str(keys[at]), "ab"[bucket % 2])
            x, at = x + 90, after[at]
        d.text(x + 10, y + 21, "NULL", "s")
    d.head(258, "The pool: entries in the order of insertion")
    for name, y in ("key", 304), ("next", 330):
        d.text(EDGE, y, name, "c s")
    for i in range(7):
        x = 62 + 58 * i
        d.text(x + 27, 280, str(i), "m s")
        d.box(x, 286, 54, 26, str(keys[i]) if i < 5 else "free", "ab"[keys[i] % count % 2] if i < 5 else "i")
        if i < 5:
            d.box(x, 312, 54, 26, "NULL" if after[i] is None else f"to {after[i]}")
    d.arrow((62 + 58 * 5 + 27, 362), (62 + 58 * 5 + 27, 314))
    d.text(62 + 58 * 5 + 36, 356, "firstFree", "c")
    says = "A new entry is the next one of the pool, and becomes the head of its chain. To find a key, follow the chain of its bucket. "
    d.note(390, says + "The values are left out.")


def multiprocessor(d):
    """Inside a multiprocessor

    A multiprocessor of compute capability 9.0 has four parts. Each has a warp scheduler, registers, and function units: 32 for float,
    16 for double, 16 for int, 4 for special functions, a tensor core. The four share one memory, which is shared memory and L1 cache.
    """
    d.box(EDGE, 16, 448, 396)
    d.text(28, 38, "streaming multiprocessor, or SIMD processor", "h")
    for i in 3, 2, 1, 0:
        for kind in "paper", "n":
            d.box(28 + 6 * i, 50 + 6 * i, 406, 240, "", kind)
    d.text(38, 70, "1 of 4 parts")
    d.text(424, 70, "up to 16 warps, or SIMD threads", "e")
    for i in range(16):
        d.box(38 + 24.3 * i, 78, 21, 24, "", "b" if i == 5 else "aaw"[i % 3])
    d.arrow((170, 103), (170, 121))
    d.box(38, 124, 386, 28, "warp scheduler: at most one instruction a cycle", "b")
    d.arrow((231, 153), (231, 165))
    d.box(38, 166, 386, 28, "register file: 16,384 registers of 32 bits", "a")
    cycles = {"32\nfloat": 1, "16\nint": 2, "16\ndouble": 2, "4 special\nfunction": 8, "tensor\ncore": 0}
    for i, words in enumerate(cycles):
        x = 38 + 78 * i
        d.arrow((x + 37, 194), (x + 37, 211))
        d.box(x, 212, 74, 46, words)
        if cycles[words]:
            d.text(x + 37, 278, f"{cycles[words]} cycle{'s' * (cycles[words] > 1)}", "m s")
    d.arrow((231, 308), (231, 319))
    d.arrow((251, 320), (251, 310))
    d.box(28, 320, 424, 34, "load/store and texture units")
    d.arrow((231, 354), (231, 365))
    d.arrow((251, 366), (251, 355))
    d.box(28, 366, 424, 34, "shared memory and L1 cache: 256 KiB together", "a")
    says = "Filled: warps that are ready. Hatched: warps that wait. Thick: the warp whose instruction is issued, to function units "
    says += "of one kind. "
    d.note(436, says + "Cycles: the 32 lanes of a warp, divided by the number of units.")
