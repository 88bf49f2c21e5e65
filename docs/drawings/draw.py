#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the drawings of docs/drawings.md as SVG files beside this script, or into the folder that is named. One function here or in
figures.py draws one file; its docstring is the title and the description of the drawing."""
import inspect
import json
import re
import statistics
import sys
from pathlib import Path

from drawing import EDGE, LAYOUT, Drawing
from figures import *  # noqa: F403


def reduction(d):
    """The tree of a reduction

    Eight words are added in three steps. With interleaved addressing lanes 0, 2, 4 and 6 work, then 0 and 4, then 0. With
    sequential addressing lanes 0 to 3 work, then 0 and 1, then 0."""
    left, pitch, width = LAYOUT

    def tree(y, title, name, steps, says):
        d.head(y, title)
        d.text(EDGE, y + 24, "lane", "s")
        words = list(range(1, 9))
        for step in 0, *steps:
            lanes = [t for t in range(8) if step and (t % (2 * step) == 0 if name == "step" else t < step)]
            d.text(EDGE, y + 48, f"{name} = {step}" if step else "cache[t]", "s")
            for t in range(8):
                x = left + pitch * t
                if step == 0:
                    d.text(x + 20, y + 24, str(t), "s m")
                if t in lanes:
                    words[t] += words[t + step]
                    d.arrow((x + 20, y - 6), (x + 20, y + 29))
                    d.arrow((x + 20 + pitch * step, y - 6), (x + 26, y + 29))
                kind = "n" if step == 0 else "a" if t in lanes else "i"
                d.box(x, y + 30, width, 26, "" if kind == "i" else str(words[t]), kind)
            y += 62
        return d.note(y + 16, says)

    says = "Working lanes (filled) are spread over all warps."
    y = tree(28, "Interleaved addressing", "step", (1, 2, 4), says)
    says = "Working lanes are neighbours and read neighbouring words."
    tree(y + 18, "Sequential addressing", "half", (4, 2, 1), says)


def lost_update(d):
    """The race of the lost update

    Two threads add 1 to x, which is 7. Both read 7 before either writes, and both write 8, so x is 8. With atomicAdd, x is 9.
    """

    def threads(y, title, rows):
        d.head(y, title)
        for x, name in (100, "thread 0"), (260, "x in memory"), (420, "thread 1"):
            d.text(x, y + 26, name, "m")
        d.arrow((24, y + 30), (24, y + 44 + 40 * len(rows)))
        d.text(34, y + 48 + 40 * len(rows), "time", "s")
        for i, (left, way, x, right) in enumerate(rows):
            at = y + 38 + 40 * i
            for middle, half, words, kind in (100, 52, left, "a"), (260, 35, x, "n"), (420, 52, right, "b"):
                if words:
                    d.box(middle - half, at, 2 * half, 26, words, kind)
            ends = {"0<x": (223, 155), "0>x": (155, 223), "x<1": (365, 297), "x>1": (297, 365)}.get(way)
            if ends:
                d.arrow((ends[0], at + 13), (ends[1], at + 13))
        return y + 40 * len(rows) + 88

    rows = [("read: 7", "0<x", "7", ""), ("", "x>1", "7", "read: 7"), ("7 + 1 = 8", "", "", "7 + 1 = 8")]
    rows += [("write 8", "0>x", "8", ""), ("", "x<1", "8", "write 8")]
    y = threads(28, "x++ in two threads: one update is lost", rows)
    rows = [("", "", "7", ""), ("7 + 1 = 8", "0>x", "8", ""), ("", "x<1", "9", "8 + 1 = 9")]
    threads(y, "atomicAdd(&x, 1) in two threads", rows)


def bank_conflicts(d):
    """Bank conflicts and padding

    An array of 8 rows of 8 words in 8 banks: its first column lies in bank 0. With a word of padding in each row the first column
    lies in banks 0 to 7."""
    d.note(28, "Drawn with 8 banks, not 32. In each word: its bank")
    for x, pitch, column in (EDGE, 8, "b"), (248, 9, "a"):
        d.text(x, 64, "word[8][8]" if pitch == 8 else "word[8][8 + 1]", "c")
        kinds, bank = [column, *"nnnnnnnw"], lambda r, c: str((pitch * r + c) % 8 if c < 8 else "")
        d.grid(x, 74, 8, pitch, 24, lambda r, c: kinds[c], bank)
    d.note(288, "A column: one bank, eight turns", width=26)
    d.note(288, "A column: eight banks, one turn. Hatched: padding", 248, 27)


def streams(d):
    """Two streams on a device with one copy engine

    Depth-first issue puts copy down 0 before copy up 1 into the queue of the copy engine, so copy up 1 waits for kernel 0, and nothing
    overlaps. With breadth-first issue copy up 1 runs beside kernel 0."""

    def rows(y, title, copies, kernels, unit=64):
        d.text(EDGE, y, title)
        for name, line in ("copies", copies), ("kernels", kernels):
            d.text(EDGE, y + 28, name, "s")
            for i, part in enumerate(line.split(", ")):
                if part:
                    kind = "w" if part == "wait" else "b" if part[-1] == "1" else "a"
                    words = "" if part == "wait" else part.replace("k", "kernel")
                    d.box(84 + unit * i, y + 9, 64, 28, words, kind)
            y += 34
        return y + 36

    y = d.note(28, "Stream 0 has thin frames, stream 1 has thick ones.") + 14
    d.head(y, "Depth-first issue")
    y = rows(y + 24, "the queues of the engines", "up 0, down 0, up 1, down 1", "k 0, k 1", 74)
    y = rows(y, "as intended (time to the right)", "up 0, up 1, down 0, down 1", ", k 0, k 1")
    y = rows(y, "as it runs", "up 0, wait, down 0, up 1, wait, down 1", ", k 0, , , k 1")
    d.head(y + 6, "Breadth-first issue")
    y = rows(y + 30, "the queues of the engines", "up 0, up 1, down 0, down 1", "k 0, k 1", 74)
    rows(y, "as it runs", "up 0, up 1, down 0, down 1", ", k 0, k 1")


def tiles(d):
    """The four phases of a tiled matrix product

    The threads of a block load a tile of a and one of b, wait at a barrier, multiply the tiles, and wait at another barrier before they
    load the next tiles."""

    def barrier(x, y, title, words):
        d.head(y, title, x)
        for i in range(4):
            d.arrow((x + 30 + 50 * i, y + 18 + 6 * (i % 3)), (x + 30 + 50 * i, y + 54))
        d.box(x, y + 56, 208, 28, "__syncthreads()", "b", "m c")
        d.note(y + 104, words, x, 26)

    left, right, low = EDGE, 256, 230
    d.head(28, "1. Load")
    d.grid(left, 46, 3, 4, 22, lambda r, c: "a" if (r, c) == (1, 1) else "n")
    d.grid(left + 124, 46, 4, 3, 22, lambda r, c: "b" if (r, c) == (1, 1) else "n")
    d.note(154, "a and b; a thread loads one element of each tile", left, 27)
    barrier(right, 28, "2. Barrier", "The tiles are complete.")
    d.head(low, "3. Multiply", right)
    d.grid(right, low + 16, 4, 4, 20, lambda r, c: "a" if r == 2 else "n")
    d.grid(right + 112, low + 16, 4, 4, 20, lambda r, c: "b" if c == 1 else "n")
    d.text(right + 96, low + 62, "×", "m", 16)
    d.note(low + 116, "tile_a and tile_b; a thread adds row × column to its sum", right, 27)
    barrier(left, low, "4. Barrier", "All threads have used the tiles.")
    d.arrow((216, 98), (248, 98))
    d.arrow((right + 100, 146), (right + 100, low - 12))
    d.arrow((right - 8, low + 70), (left + 216, low + 70))
    d.arrow((left + 100, low - 6), (left + 100, 184))
    d.text(left + 110, 204, "next tiles", "s")


def constant_memory(d):
    """The broadcast of constant memory

    Eight lanes that read one word of constant memory are served in one turn. Eight lanes that read eight words are served in eight
    turns, one after the other."""
    left, pitch, width = LAYOUT

    def lanes(y, title, word):
        d.head(y, title)
        for name, at in ("lane", 32), ("constant", 102), ("turn", 130):
            d.text(EDGE, y + at, name, "s")
        for lane in range(8):
            x, read = left + pitch * lane, lane in map(word, range(8))
            d.box(x, y + 14, width, 26, str(lane), "a")
            d.arrow((x + 20, y + 40), (left + 20 + pitch * word(lane), y + 82))
            d.box(x, y + 84, width, 26, f"w{lane}", "b" if read else "n")
            if read:
                d.text(x + 20, y + 130, str(lane - word(0) + 1), "m")
        return y + 170

    y = d.note(28, "Drawn with 8 lanes, not 32.")
    y = lanes(y + 14, "One address: one turn", lambda lane: 3)
    lanes(y, "Eight addresses: eight turns", lambda lane: lane)


def memory_hierarchy(d):
    """The memory of an H200

    Registers, shared memory and caches are in each of 132 multiprocessors. Below them are the L2 cache of 60 MiB and device memory of
    140 GiB, and beyond these the memory of the host and of another GPU, with measured latencies and rates."""
    results = Path(__file__).parents[2] / "bench/results"
    ladders = json.loads((results / "nvidia-h200.json").read_text())["programs"]
    kinds = (results / "nvidia-h200/memory_kinds.txt").read_text()  # of three runs

    def row(ladder, name, data=None):
        """The row of the largest size."""
        rows = [row for row in ladders[ladder]["rows"] if row["name"] == name and data in (None, row["data"])]
        return max(rows, key=lambda row: row["size"])

    def cycles(kind):
        return sorted(float(number) for number in re.findall(rf"^{kind} .* ([\d.]+) cycles", kinds, re.M))

    fma = f"{row('chapter05/matmul_ladder', 'FMA alone')['rate'] / 1000:.0f} TFLOP/s"
    copy, read = row("chapter07/heat_ladder", "copy of the plate"), row("chapter05/dot_ladder", "read")
    copied = 2 * 4 * copy["size"] ** 2 / copy["median_ms"] / 1e6  # GB/s: each cell is read and written once
    pinned = row("chapter10/copy_ladder", "pinned copy")["rate"]
    up, down = (row("chapter10/copy_ladder", "book", way)["rate"] for way in ("up", "down"))
    names = "shared", "constant", "texture", "global, in L1", "global, in L2"
    shared, constant, texture, l1, l2 = (f"{statistics.median(cycles(name)):.0f}" for name in names)
    beyond = cycles("global, beyond")

    def both_ways(x, y, y2, *rates):
        d.arrow((x, y), (x, y2 - 1))
        d.arrow((x + 10, y2), (x + 10, y + 2))
        for i, rate in enumerate(rates):
            d.text(x + 24, y + 25 + 18 * i, rate, "h")

    d.box(EDGE, 16, 448, 148)
    d.text(28, 38, "multiprocessor (1 of 132)", "h")
    d.box(28, 50, 424, 48, f"registers of each thread\nFMA instructions on them: {fma}", "a")
    d.box(28, 106, 204, 46, f"shared memory of each\nblock: {shared} cycles", "a")
    d.box(244, 106, 208, 46, f"caches: L1 {l1} cycles,\nconstant {constant}, texture {texture}", "a")
    both_ways(240, 164, 192)
    d.box(EDGE, 192, 448, 34, f"L2 cache of all multiprocessors, 60 MiB: {l2} cycles", "a")
    both_ways(200, 226, 280, f"copy: {copied:.0f} GB/s", f"reads alone: {read['rate']:.0f} GB/s")
    words = "device memory, 140 GiB: global, local,\ntexture and constant memory: "
    words += f"{beyond[0]:.0f} to {beyond[-1]:.0f} cycles"
    d.box(EDGE, 280, 448, 50, words, "b")
    both_ways(60, 330, 390, f"page-locked: {pinned:.0f} GB/s", f"pageable: {up:.0f} to {down:.0f} GB/s")
    both_ways(320, 330, 390, "peer exchange:", "322 GB/s")
    d.box(EDGE, 390, 264, 40, "memory of the host")
    d.box(296, 390, 168, 40, "another H200")
    says = "NVIDIA H200, November 2026 (bench/results). A copy counts reads and writes. "
    d.note(454, says + "Cycles: from one read to the next that depends on it.")


def heat(d):
    """Heat: pair sums, levels, and a tile with its margin

    The sum of two diagonal cells serves two other cells. As soon as row y has arrived, row y - 1 takes its first step and row y - 2
    its second one. A tile owns the cells within a margin, into which wrong values move by one cell in each step.
    """
    d.head(28, "A pair sum serves two cells")
    cells = {(0, 0): ("a", "b"), (0, 1): ("P", "a"), (1, 0): ("Q", "a"), (1, 1): ("d", "b")}
    d.grid(56, 58, 2, 2, 46, lambda r, c: cells[r, c][1], lambda r, c: cells[r, c][0])
    d.arrow((86, 88), (118, 120), tip="")
    for x, y, words in (72, 52, "x"), (112, 52, "x+1"), (EDGE, 86, "y"), (EDGE, 132, "y+1"):
        d.text(x, y, words, "s c")
    d.note(74, "a + d: the upper and the right neighbour of Q, the left and the lower one of P", 176, 33)

    d.head(186, "The slanted pipeline of levels")
    d.text(EDGE, 210, "after step", "s")
    for up in range(5):  # rows above row y
        y = 346 - 32 * up
        d.text(EDGE, y + 18, f"row y−{up}" if up else "row y", "s")
        d.text(112 + 48 * up, 210, str(up), "s m")
        for step in range(5):
            words, kind = ("now", "b") if step == up else ("done", "a") if step < up else ("", "i")
            d.box(92 + 48 * step, y, 40, 26, words, kind)
        if up:
            d.arrow((84 + 48 * up, y + 38), (96 + 48 * up, y + 26))
    d.note(236, "Row y has just been loaded. Each level gives a row to the next one.", 348, 15)

    d.head(408, "A tile, its margin, and who owns a cell")
    d.box(EDGE, 424, 250, 96, "", "w")
    d.box(46, 454, 190, 36, "tile i owns these", "a")
    d.box(206, 536, 250, 96, "", "w")
    d.box(236, 566, 190, 36, "tile i + 1 owns these", "b")
    d.arrow((236, 490), (236, 565), tip="")
    d.note(446, "Hatched: the margin. Wrong values move into it by one cell in each step.", 282, 24)
    d.note(558, "The line is the border between what they own.", EDGE, 22)


def look_back(d):
    """Decoupled look-back

    Tile 6 reads the flags of the tiles before it: A, A and P. It adds 4, 7 and 20, and stops, because P counts all tiles up to tile
    3. Then it publishes P with 36."""

    def row(y, title, *last):
        d.head(y, title)
        d.note(y + 60, "flag count", width=5)
        for i, words in enumerate(("3 P 20", "4 A 7", "5 A 4", *last, "7 · none")):
            tile, flag, count = words.split()
            d.text(126 + 76 * i, y + 30, f"tile {tile}", "m")
            d.box(92 + 76 * i, y + 38, 68, 48, f"{flag}\n{count}", {"P": "b", "A": "a", "·": "i"}[flag])

    row(28, "Tile 6 has its own count and looks back", "6 A 5")
    for x, count in (308, "+ 4"), (232, "+ 7"), (156, "+ 20"):
        d.arrow((x + 14, 120), (x + 14, 134), (x - 30, 134), (x - 30, 120))
        d.text(x - 8, 153, count, "m")
    d.note(182, "A: the keys of the tile. P: of it and all tiles before it. ·: not published yet.")
    row(250, "Then it publishes 4 + 7 + 20 + 5 = 36", "6 P 36")
    d.note(362, "After Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016.")


def ring(d):
    """The ring of full and empty barriers

    A producer copies tiles into four stages of shared memory, and consumers multiply them. A barrier full tells the consumers that a
    stage has been filled. A barrier empty tells the producer that it can be filled again."""
    d.box(EDGE, 16, 448, 50, "producer thread: waits for empty[s],\nstarts 2 bulk copies of 24 KiB", "b")
    states = ("being\nmultiplied", "a"), ("full", "a"), ("full", "a"), ("being filled", "b")
    for i, (state, kind) in enumerate(states):
        d.box(EDGE + 114 * i, 134, 106, 70, f"stage {i}\n{state}", kind)
    d.arrow((411, 66), (411, 133))
    d.text(403, 104, "copies, counted at full[3]", "s e")
    d.arrow((89, 204), (89, 271))
    d.text(100, 240, "after waiting for full[0]", "s")
    d.arrow((36, 272), (36, 222), (6, 222), (6, 92), (36, 92), (36, 68))
    d.text(44, 104, "empty[0]", "s")
    d.box(EDGE, 272, 448, 50, "consumers: multiply; then a lane of\neach of 8 warps arrives at empty[s]", "a")
    d.note(346, "After stage 3 follows stage 0, as soon as it is empty.")


def core_matrices(d):
    """Core matrices in shared memory

    A part of a tile, 128 rows of 32 numbers, is stored as four columns of 16 core matrices. A core matrix has 8 rows of 8 numbers and
    is 128 contiguous bytes."""
    d.head(28, "A part of a tile: 128 rows of 32 numbers")
    d.note(50, "Its core matrices, and the byte at which each begins")
    d.text(EDGE, 78, "rows", "s")
    for group, y in (0, 88), (1, 118), (7, 160), (8, 190), (15, 232):
        d.text(EDGE, y + 18, f"{8 * group}…{8 * group + 7}", "s")
        for col in range(4):
            words, kind = str(2048 * col + 128 * group), "a" if col < 2 and group < 8 else "n"
            d.box(98 + 86 * col, y, 80, 26, words, kind)
            if group == 0:
                d.text(138 + 86 * col, 78, f"k {8 * col}…{8 * col + 7}", "s m")
    for y in 156, 228:
        d.text(EDGE + 14, y, "⋮", "s m")
    d.note(282, "Filled: what one wgmma instruction reads of rows 0…63")
    d.head(320, "One core matrix: 8 × 8 numbers, 128 bytes")
    for row in range(8):
        d.text(88, 355 + 26 * row, f"+ {16 * row}", "e s")
    d.grid(98, 337, 8, 8, 26, lambda r, c: "a" if r == 0 else "n", lambda r, c: str(8 * r + c))
    d.note(355, "Numbers of 2 bytes, in the order in memory. Filled: a row, 16 bytes", 320, 18)


def hash_table(d):
    """Insertion at the head of a chain

    A new entry points to the old head, then the bucket points to the new entry. If two threads read the head before either of them
    writes it, the entry of the first is lost."""

    def state(y, title, links, lost=""):
        d.head(y, title)
        places = {"entries[h]": (EDGE, 34, 104, "n"), "A": (164, 12, 76, "i" if lost else "a")}
        places |= {"B": (164, 63, 76, "b"), "E": (288, 34, 72, "n"), "F": (392, 34, 72, "n")}
        for name in dict.fromkeys(links.replace(">", " ").split()):
            x, up, w, kind = places[name]
            d.box(x, y + up, w, 32, name + (lost if name == "A" else ""), kind)
        for start, end in (link.split(">") for link in links.split()):
            (x, up, w, _), (x2, up2, *_) = places[start], places[end]
            d.arrow((x + w, y + up + 16), (x2 - 1, y + up2 + 16 + (up - up2) / 3))

    state(28, "1. The chain of bucket h", "entries[h]>E E>F")
    state(122, "2. A->next = entries[h], then entries[h] = A", "entries[h]>A A>E E>F")
    d.head(222, "Without a lock")
    state(248, "1. Both threads read entries[h]", "entries[h]>E A>E B>E E>F")
    state(372, "2. entries[h] = A, then entries[h] = B", "entries[h]>B A>E B>E E>F", ": lost")


def managed_pages(d):
    """The pages of managed memory

    With page faults each page moves when the kernel first reads it. Prefetching moves all pages before the kernel begins. With the
    advice pages stay in the memory of the host, and the device reads them over the bus."""

    def way(y, title, pages, says):
        d.head(y, title)
        for x, side in (EDGE, "host"), (264, "device"):
            d.text(x, y + 24, f"memory of the {side}", "s")
            for i, state in enumerate(pages):
                kinds = {"h": ("a", "i"), "d": ("i", "b"), "f": ("w", "w")}
                kind = kinds[state][side == "device"]
                d.box(x + 52 * i, y + 32, 46, 30, f"p {i}" if kind in "ab" else "", kind)
        if "d" not in pages:
            d.arrow((366, y + 64), (366, y + 76), (100, y + 76), (100, y + 63))
        return d.note(y + (98 if "d" not in pages else 84), says) + 22

    y = d.note(28, "Four pages that the host has written, and a kernel that reads them") + 12
    says = "Pages 0 and 1 have moved. A read of page 2 (hatched) caused a fault: it is copied, and the read waits."
    y = way(y, "Page faults", "ddfh", says)
    y = way(y, "Prefetch", "dddd", "All pages have moved in one piece before the kernel began.")
    says = "No page moves: each read goes over the bus, also a second one."
    way(y, "Advice: they stay on the host", "hhhh", says)


def memory_pool(d):
    """cudaFree, and freeing in the order of a stream

    With cudaFree in the loop chunk 1 begins when chunk 0 has been freed. With cudaFreeAsync the streams overlap, and chunk 2 uses the
    memory of chunk 0."""

    def rows(y, title, steps, height):
        d.head(y, title)
        for stream in 0, 1:
            d.text(EDGE, y + 30 + 34 * stream, f"stream {stream}", "s")
        for stream, at, length, words, kind in steps:
            d.box(84 + 30 * at, y + 12 + 34 * stream, 30 * length, 28, words, kind)
        return d.note(y + height, "time to the right", 84) + 16

    free = [(s, at, 1, "", "w") for s, at in ((0, 5), (1, 11))]
    first = [(0, 0, 5, "chunk 0 in memory A", "a"), (1, 6, 5, "chunk 1 in memory A", "b")]
    y = rows(28, "cudaMalloc and cudaFree", first + free, 100)
    says = "Hatched: cudaFree. The host waits there until all streams have finished, so chunk 1 comes later."
    y = d.note(y, says) + 16
    then = [(0, 0, 5, "chunk 0 in A", "a"), (0, 5, 5, "chunk 2 in A", "a")]
    more = [(1, 1, 5, "chunk 1 in B", "b"), (1, 6, 5, "chunk 3 in B", "b")]
    y = rows(y, "cudaMallocAsync and cudaFreeAsync", then + more, 100)
    says = "The host has issued all steps and waits nowhere. What is freed goes to the pool, and to the next chunk of the stream."
    d.note(y, says)


def groups(d):
    """The groups of a dot product

    The tiles of a block add their values in registers. The first tile of a block adds the sums of its tiles. After the barrier of the
    grid the first tile of block 0 adds the sums of the blocks."""
    for b in range(3):
        x = EDGE + 154 * b
        d.text(x, 28, f"block {b}", "h")
        for tile in range(4):
            d.box(x + 35 * tile, 38, 31, 26, f"t{tile}", "a")
            d.arrow((x + 15 + 35 * tile, 64), (x + 15 + 35 * tile, 91))
            d.box(x + 35 * tile, 92, 31, 26)
            d.arrow((x + 15 + 35 * tile, 118), (x + 15 if tile < 1 else x + 15 + 8 * tile, 147))
        d.box(x, 148, 136, 26, "t0: the block's sum", "a")
        d.arrow((x + 68, 174), (x + 68, 201))
        d.box(x, 202, 136, 26, f"partial_c[{b}]")
        d.arrow((x + 68, 228), (x + 68, 247))
        d.arrow((x + 68, 276), (68 + 24 * b, 305))
    d.box(EDGE, 248, 444, 28, "grid.sync()", "b", "m c")
    d.box(EDGE, 306, 136, 26, "t0: the sum c", "a")
    d.note(324, "Only block 0 works here.", 176)
    says = "Filled: reduce() over the 32 threads of a tile, in registers. Between: shared and global memory. Drawn with 4 tiles, not 8."
    d.note(358, says)


def graph(d):
    """Launches one by one, and as a graph

    One by one, the host issues two launches a step, and short kernels wait for it. A graph is issued by one call, and its kernels follow
    each other. A changed argument is written into the nodes of the graph."""

    def row(y, name, boxes):
        d.text(EDGE, y + 19, name, "s")
        for at, length, words, kind in boxes:
            d.box(84 + 12 * at, y, 12 * length, 28, words, kind)

    d.head(28, "One by one")
    row(42, "host", [(5 * i, 5, "call", "b") for i in range(6)])
    row(82, "device", [(5 * i + 4, 2, "CB"[i % 2], "a") for i in range(6)])
    for i in range(6):
        d.arrow((84 + 60 * i + 52, 70), (84 + 60 * i + 56, 81))
    y = d.note(136, "C: copy_const_kernel, B: blend_kernel. The device waits for the next call.")
    d.head(y + 18, "As a graph")
    row(y + 32, "host", [(0, 7, "one call", "b")])
    row(y + 72, "device", [(6 + 2 * i, 2, "CB"[i % 2], "a") for i in range(6)])
    d.arrow((152, y + 60), (160, y + 71))
    d.head(y + 140, "A new speed")
    row(y + 154, "graph", [(5 * i, 3, "CB"[i % 2], "nb"[i % 2]) for i in range(6)])
    for i in range(5):
        d.arrow((120 + 60 * i, y + 168), (143 + 60 * i, y + 168))
    says = "The frame is recorded again, and cudaGraphExecUpdate writes it into each node B (thick frames)."
    d.note(y + 210, says)


def stages(d):
    """Stages of asynchronous copies

    With one stage the copy of a tile ends before the block computes it, and begins after the last one has been computed. With three
    stages the copies of the next two tiles are under way meanwhile."""

    def rows(y, title, count, copies, computed):
        d.head(y, title)
        for stage in range(count):
            d.text(EDGE, y + 30 + 34 * stage, f"stage {stage}", "s")
        for tile, at in enumerate(copies):
            d.box(84 + 27 * at, y + 12 + 34 * (tile % count), 27 * 3, 28, f"copy {tile}", "a")
        for tile, at in enumerate(computed):
            d.box(84 + 27 * at, y + 12 + 34 * (tile % count), 27 * 2, 28, f"use {tile}", "b")
        return d.note(y + 34 * count + 30, "time to the right", 84) + 16

    y = rows(28, "One stage", 1, (0, 5, 10), (3, 8))
    y = rows(y, "Three stages", 3, (0, 0, 0, 5, 7, 9), (3, 5, 7, 9, 11))
    d.note(y, "A stage is a tile in shared memory. The copy of tile 3 begins when tile 0 has been used.")


def fragments(d):
    """A tile of a product in fragments

    A warp adds the products of the tiles along a row of tiles of a and a column of tiles of b. A tile is spread over the registers of
    the 32 lanes of the warp."""
    d.head(28, "One warp, one tile of c")
    d.grid(EDGE, 52, 4, 4, 30, lambda r, c: "a" if r == 1 else "n")
    d.grid(172, 52, 4, 4, 30, lambda r, c: "a" if c == 2 else "n")
    d.grid(328, 52, 4, 4, 30, lambda r, c: "b" if (r, c) == (1, 2) else "n")
    for x, name in (EDGE, "a"), (172, "b"), (328, "c"):
        d.text(x + 60, 192, name, "m c")
    d.text(154, 118, "×", "m", 16)
    d.text(310, 118, "=", "m", 16)
    says = "Each box is a tile of 16 × 16 elements. mma_sync adds the product of a tile of a and a tile of b to the sum."
    y = d.note(222, says)
    d.head(y + 16, "The sum: 256 elements in 32 lanes")
    for lane in range(8):
        d.text(EDGE + 56 * lane + 24, y + 44, f"lane {lane}" if lane < 7 else "… 31", "m s")
        d.box(EDGE + 56 * lane, y + 52, 48, 26, "8", "b")
    says = (
        "8 registers a lane. Which element is where is not specified: all lanes call each function together."
    )
    d.note(y + 102, says)


def cluster(d):
    """The bins of a cluster

    Four blocks of a cluster have a quarter of the bins each. A thread of block 1 adds to a bin of block 3, whose address it gets from
    map_shared_rank."""
    d.box(EDGE, 40, 448, 174)
    d.text(28, 62, "cluster: 4 blocks on neighbouring multiprocessors", "h")
    for rank in range(4):
        x = 28 + 108 * rank
        d.box(x, 76, 100, 34, f"block {rank}", "a")
        d.box(x, 150, 100, 52, f"bins {16 * rank}K\nto {16 * rank + 16}K", "b" if rank == 3 else "n")
        d.arrow((x + 24, 110), (x + 24, 149))
    d.arrow((202, 110), (202, 128), (412, 128), (412, 149))
    says = "temp, in the shared memory of each block: 64 KiB. The long arrow: map_shared_rank(temp, 3)"
    y = d.note(238, says) + 8
    says = "The barrier of the cluster stands before the counting, when all bins are 0, and behind it: "
    d.note(y, says + "a block that ends takes its shared memory with it.")


def fused(d):
    """A sum over an iterator

    With two kernels the products go to memory and back. With an iterator the reduction reads a and b, and computes each product when
    it reads it."""

    def way(y, title, product, says):
        d.head(y, title)
        for i, (words, kind) in enumerate([("a, b\nin memory", "n"), product, ("sum", "a")]):
            x = EDGE + 158 * i
            d.box(x, y + 16, 132, 46, words, kind)
            if i:
                d.arrow((x - 26, y + 39), (x - 1, y + 39))
        return d.note(y + 86, says) + 22

    says = "Two kernels, and 16 bytes for each product: a and b are read, the product is written and read."
    y = way(28, "Products first, then their sum", ("products\nin memory", "b"), says)
    says = "One kernel, and 8 bytes for each product. Dashed: in a register only."
    way(y, "An iterator", ("product i, when\ni is read", "i"), says)


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    # Every function here draws one, those of figures.py too.
    for drawing in map(Drawing, filter(inspect.isfunction, [*globals().values()])):
        (folder / f"{drawing.name}.svg").write_text(drawing.svg())
