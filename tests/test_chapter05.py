# SPDX-License-Identifier: MIT
"""Chapter 5: sums, dot products, matrix products and pictures compared with numpy, and the two programs that are wrong on
purpose."""
import json
import os
import re
import subprocess

import numpy as np
import pytest

import helpers
from formulas import green_spheres, ripple, whole

ENDING = helpers.ending()


# ---- Vectors


def test_sums(run):
    for size in [None, 1, 2, 20, 21, 31, 32, 33, 1023, 1024]:
        result = run("chapter05/add_loop_blocks", *([] if size is None else ["--size", size]), status=0)
        n = size or 10
        shown = list(range(n)) if n <= 20 else [*range(5), *range(n - 5, n)]
        lines = [f"{i} + {i * i} = {i + i * i}" for i in shown]
        assert result.out.splitlines() == (
            lines if n <= 20 else lines[:5] + [f"... {n - 10} more ..."] + lines[5:]
        )


def test_a_block_has_1024_threads(run):
    result = run("chapter05/add_loop_blocks", "--size", 1025, status=64)
    assert result.errors == ["add_loop_blocks: --size 1025: must be a whole number from 1 to 1024"]


def test_long_vectors(run, rng):
    # 128 * 128 is the number of threads; 46341 is the smallest number whose square does not fit an int.
    for size in [
        None,
        1,
        127,
        128,
        129,
        128 * 128 - 1,
        128 * 128,
        128 * 128 + 1,
        46342,
        rng.randint(46343, 10**6),
    ]:
        result = run("chapter05/add_loop_long_blocks", *([] if size is None else ["--size", size]), status=0)
        assert f"All {size or 33 * 1024} sums are right.\n" in result.out
    for blocks, threads in (1, 1), (1, 1024), (rng.randint(2, 500), rng.randint(1, 1024)):
        options = ["--size", rng.randint(1, 10**4), "--blocks", blocks, "--threads", threads]
        out = run("chapter05/add_loop_long_blocks", *options, status=0).out
        assert " sums are right.\n" in out
        assert re.search(rf"^{blocks} blocks of {threads} threads: \d+\.\d+ ms, \d+\.\d+ GB/s$", out, re.M)


def test_launch_shapes(run, rng):
    for size in [None, 1, 127, 128, 129, 1023, rng.randint(1025, 10**5)]:
        out = run("chapter05/add_launch_shapes", *([] if size is None else ["--size", size]), status=0).out
        n = size or 1024
        blocks = -(-n // 128)
        shapes = [f"<<<{n}, 1>>>", f"<<<1, {n}>>>"] if n <= 1024 else [f"<<<{n}, 1>>>"]
        shapes = [
            "<<<1, 1>>>",
            *shapes,
            f"<<<{blocks}, 128>>>",
            "<<<128, 1>>>",
            "<<<128, 128>>>",
            "<<<10, 16>>>",
        ]
        assert re.findall(r"<<<.*?>>>", out) == shapes
        assert ("a block has at most 1024 threads" in out) == (n > 1024)
        whole = r"\d ms +\d+\.\d+ GB/s +\d+\.\d+ ms with allocation and copies$"
        assert len(re.findall(whole, out, re.M)) == len(shapes)


def test_wrong_index(run):
    """Counts computed here with the same wrong index: the number of blocks in place of the threads of a block."""
    out = run("chapter05/add_launch_shapes", "--wrong-index", status=1).out
    rows = re.findall(r"^<<<(\d+), (\d+)>>>: (\d+) of (\d+) elements are never added$", out, re.M)
    rows = [tuple(map(int, row)) for row in rows]
    assert rows == [
        (
            b,
            t,
            b * t - len({(i + j * b) % (b * t) for i in range(t) for j in range(b) if i + j * b < b * t}),
            b * t,
        )
        for b, t in ((64, 128), (128, 64), (128, 128))
    ]
    assert [row[2] for row in rows] == [4032, 4096, 0]


# ---- Shapes of launches, warps


def test_launch_geometry(run, rng):
    """Numbers, warps and lanes of the first launch, in full; the sizes of all launches."""
    shapes = [((3, 2, 1), (4, 3, 1))]
    uneven = (rng.randint(1, 5), rng.randint(6, 10), rng.randint(2, 20))
    for block in (
        (rng.randint(1, 1024), 1, 1),
        (10, 10, 1),
        uneven,
        (32, rng.randint(1, 4), rng.randint(1, 8)),
    ):
        shapes.append((tuple(rng.randint(1, 4) for _ in range(3)), block))
    fixed = [
        ((8, 1, 1), (16, 1, 1)),
        ((3, 2, 1), (16, 16, 1)),
        ((13, 9, 1), (16, 16, 1)),
        ((1, 1, 1), (10, 10, 1)),
        ((2, 2, 2), (4, 4, 4)),
    ]
    for i, (grid, block) in enumerate(shapes):
        options = [
            f"--{box}-{axis}={size}"
            for box, sizes in (("grid", grid), ("block", block))
            for axis, size in zip("xyz", sizes)
        ]
        out = run("chapter05/launch_geometry", *(options if i else []), status=0).out
        first, second = out.split("\n\n")
        rows = [list(map(int, re.findall(r"\d+", line))) for line in first.splitlines()[1:]]
        threads, extent = np.prod(block), np.multiply(grid, block)
        n = int(threads * np.prod(grid))
        assert len(rows) == min(n, 100) + (n > 100) and (n <= 100 or rows[100] == [n - 100])
        for number, row in enumerate(rows[:100]):
            place = np.unravel_index(number, extent[::-1])[::-1]
            b, t = np.divmod(place, block)
            rank = t[0] + block[0] * (t[1] + block[1] * t[2])
            lanes = min(32, threads - rank // 32 * 32)
            assert row == [number, *b, *t, rank, rank // 32, rank % 32, lanes], f"{grid} {block}"
        expected = []
        for g, b in [(grid, block), *fixed]:
            threads, blocks = int(np.prod(b)), int(np.prod(g))
            last = (threads - 1) % 32 + 1
            expected.append([*g, *b, blocks, threads, blocks * threads, -(-threads // 32), last])
            if g == (13, 9, 1):
                expected.append([3, 5, 12, 8, 195, 133])
        assert [list(map(int, re.findall(r"\d+", line))) for line in second.splitlines()[1:]] == expected


def test_too_many_threads(run, rng):
    for block in (32, 33, 1), (1024, 2, 1), (16, 16, 5):
        options = [f"--block-{axis}={size}" for axis, size in zip("xyz", block)]
        result = run("chapter05/launch_geometry", *options, status=64)
        x, y, z = block
        assert result.errors == [
            f"launch_geometry: a block has at most 1024 threads, and {x} x {y} x {z} are {x * y * z}"
        ]
    result = run("chapter05/launch_geometry", "--grid-x=65535", "--grid-y=65535", "--grid-z=65535", status=64)
    assert result.errors == ["launch_geometry: a launch has at most 1048576 threads here"]


def test_divergence(run, rng):
    for steps in None, 1, 2, rng.randint(3, 5000):
        options = [] if steps is None else ["--steps", steps, "--seed", rng.randrange(10**6)]
        out = run("chapter05/divergence", *options, status=0).out
        paths = re.findall(r"^ ?(\d+) paths?: +\d+ cycles, +\d+\.\d\d times those of one path$", out, re.M)
        assert paths == ["1", "2", "4", "8", "16", "32"]
        assert out.endswith(
            "Adding neighbours: in 8 steps, 47 times a warp diverges\n"
            "Adding the second half to the first: in 8 steps, 5 times a warp diverges\n"
        )


# ---- Dot products


DOT_SIZES = [None, 1, 2, 255, 256, 257, 32 * 256, 32 * 256 + 1, 33 * 1024 - 1, 10**7 + 1]


@pytest.mark.parametrize("name", ["dot", "dot_gmem"])
def test_dot(run, rng, name):
    for size in DOT_SIZES + [rng.randint(3, 10**6)]:
        result = run(f"chapter05/{name}", *([] if size is None else ["--size", size]), status=0)
        got, expected = map(float, re.search(r"^Does GPU value (\S+) = (\S+)\?$", result.out, re.M).groups())
        n = size or 33 * 1024
        exact = (n - 1) * n * (2 * n - 1) // 3  # twice the sum of the squares below n
        assert expected == float(f"{exact:.6g}")
        assert abs(got - exact) <= 1e-4 * exact  # six printed digits, and the program's rounding limit
        assert name == "dot" or f"\n{4 * n} bytes came back\nTime to generate:  " in result.out


def dot_rows(out):
    return re.findall(r"^ *(\d+) +\d+\.\d+ ms +\d+\.\d+ GB/s +\d+\.\d+ ms   (\S+)$", out, re.M)


def test_dot_in_other_launches(run, rng):
    """The program compares each sum with the closed form. A sweep doubles the blocks up to one product a thread."""
    for size, threads in (1, 1), (33 * 1024, 256), (rng.randint(2, 20000), 2 ** rng.randint(5, 10)):
        out = run("chapter05/dot", "--size", size, "--threads", threads, "--sweep", status=0).out
        most = -(-size // threads)
        counts = [str(2**i) for i in range((most - 1).bit_length())] + [str(most)]
        assert [blocks for blocks, _ in dot_rows(out)] == counts
    size, blocks = rng.randint(2, 20000), rng.randint(1, 100)
    for threads in 1, 64, 1024:
        for by, steps in ("tree", threads.bit_length() - 1), ("one-thread", threads - 1):
            for writers, stores in ("one", 1), ("all", threads):
                options = ["--size", size, "--blocks", blocks, "--threads", threads]
                out = run("chapter05/dot", *options, "--sum", by, "--writers", writers, status=0).out
                assert (
                    f"A block of {threads} threads adds in {steps} steps and stores its sum {stores} times.\n"
                    in out
                )
                [(count, value)] = dot_rows(out)
                exact = (size - 1) * size * (2 * size - 1) // 3
                assert f"\n{4 * blocks} bytes came back\nTime to generate:  " in out
                assert int(count) == blocks and abs(float(value) - exact) <= 1e-4 * exact
    for threads in 3, 96, 1000:
        result = run("chapter05/dot", "--threads", threads, status=64)
        assert result.errors == [
            f"dot: --threads {threads}: must be a power of two, because a block adds in halves"
        ]


def test_trace_of_the_dot_product(run, rng):
    for size, blocks, threads in (48, 2, 8), (rng.randint(1, 256), rng.randint(1, 8), 2 ** rng.randint(0, 5)):
        options = ["--size", size, "--blocks", blocks, "--threads", threads, "--additions"]
        out = run("chapter05/dot", *options, status=0).out
        sums = [sum(2 * i * i for i in range(t, size, blocks * threads)) for t in range(blocks * threads)]
        expected = []
        for t, value in enumerate(sums):
            elements = "".join(f" {i}" for i in range(t, size, blocks * threads))
            expected.append(f"thread {t}: elements{elements}, sum {value:g}")
        values = [sums[threads * b : threads * (b + 1)] for b in range(blocks)]
        for step in range(1, threads.bit_length()):
            for b in range(blocks):
                half = len(values[b]) // 2
                values[b] = [x + y for x, y in zip(values[b][:half], values[b][half:])]
                expected.append(f"step {step}, block {b}:" + "".join(f" {x:g}" for x in values[b]))
        assert [line for line in out.splitlines() if re.match("thread |step ", line)] == expected
        if size == 48:
            assert sums[0] == 2560 and sums[8] == 4480 and values == [[26696], [44744]]
            assert dot_rows(out) == [("2", "71440")]
    for options in ["--size=257"], ["--size=10", "--blocks=2", "--threads=256"]:
        result = run("chapter05/dot", *options, "--additions", status=64)
        assert result.errors == ["dot: --additions is for up to 256 elements and threads"]


def lines_with(program, text):
    """The numbers of the source lines of a program that contain the text."""
    source = (helpers.ROOT / f"{program}.cu").read_text().splitlines()
    return [number for number, line in enumerate(source, 1) if text in line]


@pytest.mark.backend("cpu")
@pytest.mark.parametrize("schedule", ["forward", "reverse", "random:1", "random:2"])
def test_wrong_barrier_is_named(run, rng, schedule):
    """CUDA counts threads that have returned as arrived, so the sum comes out right, as on a GPU. In the strict reading the
    message names the line where half of the threads wait and the last barrier of the others."""
    right, wrong, _, upper, lower = lines_with("chapter05/dot_wrong_barrier", "__syncthreads();")
    for size in 1, 33 * 1024, rng.randint(2, 10**5):
        env = {"CUDA_CPU_SCHEDULE": schedule}
        result = run("chapter05/dot_wrong_barrier", "--size", size, status=1, env=env)
        assert result.errors == ["the sum is right, this time and on this device"]
        env["CUDA_CPU_STRICT"] = "1"
        result = run("chapter05/dot_wrong_barrier", "--size", size, status=1, env=env)
        assert result.errors[:2] == [
            "cuda on the CPU: divergent barrier: 128 of 256 threads wait at dot_wrong_barrier.cu:"
            f"{wrong}: threads (0,0,0) to (127,0,0)",
            f"    returned after passing dot_wrong_barrier.cu:{right}: threads (128,0,0) to (255,0,0)",
        ]
        result = run("chapter05/dot_wrong_barrier", "--both-arms", "--size", size, status=1, env=env)
        place = r"dot_wrong_barrier\.cu:(\d+)"
        lines = re.search(
            rf"divergent barrier: \d+ of 256 threads wait at {place} while .* reaches {place}$",
            result.err,
            re.M,
        )
        assert lines and {int(lines[1]), int(lines[2])} == {upper, lower}, str(result)


def test_wrong_barrier_ends_in_time(tmp_path):
    """A process that hangs is ended after the time limit. Here it hangs before its kernel, because its pipe is full."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        while True:
            os.write(write, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(write, True)
    result = helpers.execute(
        "chapter05/dot_wrong_barrier", ["--time-limit", "1"], tmp_path, stdout=write, timeout=60
    )
    os.close(write)
    assert result.status == 1
    assert result.errors == ["dot_wrong_barrier: ended after 1 s: the threads wait for each other"]
    with open(read, "rb") as pipe:  # end of file: no process has the pipe open for writing
        assert set(pipe.read()) == {ord("x")}


@pytest.mark.backend("gpu")
def test_wrong_barrier_on_a_gpu(run):
    """The behaviour is undefined, but the exit status is 1, within the time limit."""
    for arms in [], ["--both-arms"]:
        result = run("chapter05/dot_wrong_barrier", "--time-limit", 30, *arms, status=1, timeout=60)
        assert result.errors and result.out.startswith("Half of the threads")


# ---- Pictures


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 33, 128, 250])
def test_spheres(run, tmp_path, size):
    run("chapter05/shared_bitmap", "--size", size, f"--output=spheres.{ENDING}", status=0)
    helpers.compare(
        "spheres",
        helpers.pixels(tmp_path / f"spheres.{ENDING}"),
        whole(green_spheres(size), (1,)),
        mean=0.01,
        worst=1,
    )


@pytest.mark.backend("cpu")
@pytest.mark.parametrize("schedule", ["forward", "reverse", *(f"random:{i}" for i in range(10))])
def test_spheres_without_the_barrier(run, tmp_path, schedule):
    """Of two opposite threads of a block, the one that runs first reads an element that is not written yet. In every order,
    half of the pixels are black."""
    size = 1024 if schedule == "forward" else 64
    result = run(
        "chapter05/shared_bitmap",
        "--no-sync",
        "--size",
        size,
        f"--output=spheres.{ENDING}",
        status=1,
        env={"CUDA_CPU_SCHEDULE": schedule},
    )
    assert re.search(r"^pixel: \d+ of \d+ differ$", result.err, re.M)
    right = whole(green_spheres(size), (1,)).astype(int)
    got = helpers.pixels(tmp_path / f"spheres.{ENDING}")
    early = (np.abs(got - right) > 1).any(axis=2)
    assert (got[early] == 0).all()
    opposite = early.reshape(size // 16, 16, size // 16, 16)[:, ::-1, :, ::-1].reshape(size, size)
    assert not (early & opposite).any()
    # Both pixels of a pair are right only where the wrong one should be black or nearly black.
    dark = (
        (right <= 1)
        | (right.reshape(size // 16, 16, size // 16, 16, 3)[:, ::-1, :, ::-1].reshape(right.shape) <= 1)
    ).all(axis=2)
    assert (early | opposite | dark).all()
    lower = np.arange(size)[::-1, None] % 16 < 8  # the rows whose threads run first in forward order
    if schedule in ("forward", "reverse"):
        assert not (early & (lower if schedule == "reverse" else ~lower)).any()


@pytest.mark.backend("gpu")
def test_racecheck_sees_that_the_barrier_is_missing(tmp_path):
    done = subprocess.run(
        [
            "compute-sanitizer",
            "--tool",
            "racecheck",
            helpers.BIN / "chapter05/shared_bitmap",
            "--no-sync",
            "--size",
            "64",
        ],
        cwd=tmp_path,
        env=helpers.environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert re.search(r"RACECHECK SUMMARY: [1-9]\d* hazard", done.stdout), done.stdout


def test_ripple(run, rng, tmp_path):
    """Every frame, with sizes that are multiples of a block and sizes that are not."""
    for size in [1, 2, 15, 16, 17, 100, rng.randint(101, 300)]:
        folder = tmp_path / str(size)
        folder.mkdir()
        frames = rng.randint(2, 5)
        result = run(
            "chapter05/ripple",
            "--size",
            size,
            "--frames",
            frames,
            f"--output=frame-%04d.{ENDING}",
            cwd=folder,
            status=0,
        )
        assert f"Frame {frames - 1} is right.\n" in result.out
        assert sorted(path.name for path in folder.iterdir()) == [
            f"frame-{i:04}.{ENDING}" for i in range(frames)
        ]
        for tick in range(frames):
            helpers.compare(
                "ripple",
                helpers.pixels(folder / f"frame-{tick:04}.{ENDING}"),
                whole(ripple(size, tick)),
                mean=0.01,
                worst=1,
            )


# ---- Shared memory


def test_dynamic_shared(run, rng):
    for n in [1, 2, 3, 26, 64, 255, 256, 257, 9830, 9831, rng.randint(258, 9000)]:
        out = run("chapter05/dynamic_shared", "--size", n, status=0).out
        text = "".join(chr(ord("a") + i % 26) for i in range(n))
        assert out.splitlines() == [
            f"{n} ints and {n} letters in {5 * n} bytes of shared memory",
            text[:64],
            text[::-1][:64],
        ]


def test_more_shared_memory_than_there_is(run):
    result = run("chapter05/dynamic_shared", "--size", "1M", status=2)
    assert re.fullmatch(
        r"dynamic_shared: needs 5242880 bytes of shared memory in a block, found \d+\n", result.err
    )


def test_bank_conflicts(run):
    out = run("chapter05/bank_conflicts", status=0).out
    words = {
        "stride 1": lambda l: l,
        "stride 2": lambda l: 2 * l,
        "stride 8": lambda l: 8 * l,
        "stride 32": lambda l: 32 * l,
        "broadcast": lambda l: 5,
        "permuted": lambda l: (7 * l + 3) % 32,
        "padded": lambda l: 33 * l,
        "words 50": lambda l: {2: 50, 7: 178, 18: 2}.get(l, l),
    }
    turns = {
        "stride 1": 1,
        "stride 2": 2,
        "stride 8": 8,
        "stride 32": 32,
        "broadcast": 1,
        "permuted": 1,
        "padded": 1,
        "words 50": 2,
    }
    in_banks = dict(re.findall(r"^word (\d+) is in bank (\d+)$", out, re.M))
    assert in_banks == {"4": "4", "31": "31", "50": "18", "128": "0", "178": "18"}
    found = re.findall(
        r"^(\w+(?: \d+)?) \(?.* (\d+) turns?\n    a read takes [\d.]+ cycles\n    banks ([\d ]+)$", out, re.M
    )
    assert {name: int(number) for name, number, _ in found} == turns
    for name, _, banks in found:
        assert list(map(int, banks.split())) == [words[name](lane) % 32 for lane in range(32)], name
    assert sorted(map(int, found[5][2].split())) == list(range(32))


def test_memory_kinds(run):
    """The program checks what the threads see in each kind of memory, and where the reads end."""
    for seed in 1, 2:
        out = run("chapter05/memory_kinds", "--seed", seed, status=0).out
        timed = re.findall(r"^(\w+(?:, [\w ]+?)?)  .+ \d+\.\d cycles$", out, re.M)
        kinds = ["register", "local", "shared", "constant", "texture", *(f"global, {w}" for w in WHERE)]
        assert timed == kinds
        uses = re.findall(r"^ *(\d+) values a thread, .+: +(.+)$", out, re.M)
        assert [number for number, _ in uses] == ["16", "16", "128"]
        if helpers.backend() == "cpu":
            assert {use for _, use in uses} == {"registers and local memory not known"}
        else:
            local = [int(re.search(r"(\d+) bytes of local memory", use)[1]) for _, use in uses]
            assert local[0] == 0 and local[1] >= 64 and local[2] > 0


WHERE = ("in L1", "in L2", "beyond")  # the reads of global memory


@pytest.mark.parametrize("shared", [None, 0, 1000, 8192, 49152])
def test_occupancy(run, shared):
    """The numbers of blocks follow from the printed limits. Registers are a limit only on a GPU."""
    out = run("chapter05/occupancy", *([] if shared is None else ["--shared", shared]), status=0).out
    shared = 16384 if shared is None else shared
    most_blocks, threads, registers, bytes_ = map(
        int, re.search(r"room for (\d+) blocks, (\d+) threads, (\d+) registers and (\d+) bytes", out).groups()
    )
    *tables, by_registers = out.split("\n\n")[1:]
    assert len(tables) == 4
    # A multiprocessor with 65536 registers and room for 2048 threads; compute capability 7.5 has room for 1024.
    if (registers, threads) == (65536, 2048):
        blocks_of = {32: [16, 8, 4, 2], 64: [8, 4, 2, 1], 128: [4, 2, 1, 0], 255: [2, 1, 0, 0]}
        for line, (number, blocks) in zip(by_registers.splitlines()[1:], blocks_of.items()):
            percents = [100 * n * size // 2048 for n, size in zip(blocks, (128, 256, 512, 1024))]
            assert list(map(int, re.findall(r"\d+", line))) == [
                number,
                *(x for pair in zip(blocks, percents) for x in pair),
            ]
    needs = re.findall(r"(\d+) registers, (\d+) bytes of local memory a thread", out)
    assert len(needs) == 4 and int(needs[2][0]) * 1024 <= registers
    if helpers.backend() == "cpu":
        assert set(needs) == {("0", "0")}
    for table, needed in zip(tables, (0, 0, 0, shared)):
        rows = re.findall(r"^ +(\d+) +(\d+) +(\d+) +(\d+) % +(.+)$", table, re.M)
        assert [int(row[0]) for row in rows] == [32, 64, 128, 256, 512, 768, 1024]
        best = 0
        for size, blocks, warps, percent, limit in rows:
            size, blocks = int(size), int(blocks)
            room = {"blocks": most_blocks, "threads": threads // size}
            if needed:
                room["shared memory"] = bytes_ // (needed + 1024)
            if "registers" in limit:
                assert helpers.backend() == "gpu" and blocks <= min(room.values())
            else:
                assert blocks == min(room.values()) and limit.split(", ")[0] in [
                    r for r in room if room[r] == blocks
                ]
            assert int(warps) == blocks * size // 32
            assert abs(int(percent) - 100 * blocks * size / threads) <= 0.5
            best = max(best, blocks * size)
        grid, size = map(int, re.search(r"best: (\d+) blocks of (\d+) threads", table).groups())
        assert grid % best == 0 or size * grid >= best


# ---- Products of matrices


@pytest.mark.parametrize("name", ["matmul_cpu", "matmul_gmem", "matmul_shared"])
def test_products(run, rng, name):
    for width in [1, 2, 31, 32, 33, 63, 64, 65, 100, rng.randint(101, 200)]:
        for more in [[], ["--columns"]] if name == "matmul_cpu" else [[]]:
            out = run(
                f"chapter05/{name}", "--size", width, "--seed", rng.randrange(10**6), *more, status=0
            ).out
            assert f"The product of the {width} x {width} matrices is right.\n" in out
            assert re.search(r"^Time to multiply:  \d+\.\d+ ms, ", out, re.M)
            if name != "matmul_cpu":
                assert re.search(r"^Kernel: +\d+\.\d+ ms, \d+\.\d GFLOP/s$", out, re.M)
                reads = width if name == "matmul_gmem" else -(-width // 32)
                assert f"Reads of each element from global memory: {reads}\n" in out


def test_products_by_columns(run, rng):
    for width in 8, 31, 64, rng.randint(65, 150):
        for option, a, b in ([], 1, 4), (["--columns"], 32, 1):
            out = run("chapter05/matmul_gmem", "--size", width, *option, status=0).out
            assert f"The product of the {width} x {width} matrices is right.\n" in out
            assert f"for a read of a: {a}, for a read of b: {b}, for a write of c: {max(a, b)}\n" in out


@pytest.mark.parametrize("name", ["matmul_gmem", "matmul_shared"])
def test_comparison_with_the_cpu(run, rng, name):
    """Each of the six products is checked by the program; the mean is that of the five times."""
    out = run(f"chapter05/{name}", "--size", rng.randint(20, 120), "--cpu", status=0).out
    five = re.search(r"^Five products .*: (.+) ms, mean (\S+) ms$", out, re.M)
    times = list(map(float, five[1].split(", ")))
    assert len(times) == 5 and abs(sum(times) / 5 - float(five[2])) <= 0.011
    assert re.search(
        r"^Three loops on one core of the host: \S+ ms, \S+ times the mean, \S+ GFLOP/s$", out, re.M
    )


@pytest.mark.parametrize("tile", [8, 16, 25, 32])
def test_tiles(run, rng, tile):
    lanes = (tile * tile - 1) % 32 + 1
    for width in 1, tile, tile + 1, rng.randint(50, 150):
        out = run("chapter05/matmul_shared", "--size", width, "--tile", tile, status=0).out
        assert f"The product of the {width} x {width} matrices is right.\n" in out
        assert f"Reads of each element from global memory: {-(-width // tile)}\n" in out
        assert f"A block has {-(-tile * tile // 32)} warps, the last of {lanes} lanes, " in out
    if tile == 25:
        assert "A block has 20 warps, the last of 17 lanes, and two tiles of 5000 bytes in all\n" in out
        run("chapter05/matmul_shared", "--size", 1000, "--tile", 25, status=0)


def test_truncated_products(run, rng):
    """Without padding the last rows and columns are not written, and nearly all other sums are wrong."""
    for width, tile in (1000, 32), (150, 25), (rng.randint(33, 200), 32), (rng.randint(3, 20), 8):
        out = run("chapter05/matmul_shared", "--truncate", "--size", width, "--tile", tile, status=1).out
        whole = width // tile * tile
        unwritten = width**2 - whole**2
        assert f"{width} / {tile} = {width // tile}, so the last {width - whole} rows" in out
        assert f": {unwritten} elements are not written.\n" in out
        wrong = int(re.search(r"products: (\d+) are wrong\.$", out, re.M)[1])
        assert wrong == 0 if whole == width else wrong >= 0.9 * whole**2
        assert width != 1000 or unwritten == 15936


@pytest.mark.parametrize("name", ["matmul_cpu", "matmul_gmem", "matmul_shared"])
def test_wide_products(run, name):
    """A width that is not a multiple of a tile. The default, 1024, is a multiple."""
    assert (
        "The product of the 500 x 500 matrices is right.\n"
        in run(f"chapter05/{name}", "--size", 500, status=0).out
    )


# ---- Reduction


@pytest.mark.parametrize("kernel", range(9))
def test_reduction_of_every_size(run, rng, kernel):
    last = 1300 if helpers.sanitized() else 2600  # up to 11 blocks in the first kernels, 6 in the others
    out = run(
        "chapter05/reduction",
        "--every",
        "--kernel",
        kernel,
        "--size",
        last,
        "--seed",
        rng.randrange(10**6),
        status=0,
    ).out
    assert re.fullmatch(rf"{kernel} .+: right for every size from 1 to {last}\n", out)


@pytest.mark.parametrize("size", [1, 2, 1000, "random"])
def test_minimum(run, rng, size):
    """Minima of random ints of both signs, and of every size; the last kernel can only add, and says so."""
    size = rng.randint(5001, 3 * 10**5) if size == "random" else size
    arguments = ["chapter05/reduction", "--operator", "min", "--size", size, "--seed", rng.randrange(10**6)]
    out = run(*arguments, "--runs", 1, status=0).out
    assert re.search(rf"^{size} ints, minimum(;|$)", out, re.M)
    assert rungs_of(out) == list(range(8)) and len(re.findall("^ 8  .+ needs a sum: .*$", out, re.M)) == 1
    wrong = run(*arguments, "--kernel", rng.randrange(8), "--inject-error", status=1)
    assert "--inject-error: changed" in wrong.err
    if size == 1000:
        out = run(*arguments, "--every", status=0).out
        assert [line.split(": ")[1] for line in out.splitlines()] == [
            *[f"right for every size from 1 to {size}"] * 8,
            "needs a sum",
        ]


def rungs_of(out):
    return [int(number) for number in re.findall(r"^ (\d)  .+ yes$", out, re.M)]


# A block of the last kernels reduces 16384 elements.
@pytest.mark.parametrize("size", [1, 255, 512, 513, 16383, 16384, 16385, 2**18 + 1, "random"])
def test_reduction(run, rng, size):
    size = rng.randint(5001, 3 * 10**5) if size == "random" else size
    out = run(
        "chapter05/reduction", "--size", size, "--runs", 1, "--seed", rng.randrange(10**6), status=0
    ).out
    assert re.search(rf"^{size} ints", out, re.M)
    assert rungs_of(out) == list(range(9))
    kernel = rng.randrange(9)
    assert rungs_of(
        run("chapter05/reduction", "--size", size, "--runs", 1, "--kernel", kernel, status=0).out
    ) == [kernel]


# With more than 16384 * 16384 elements kernel 7 needs a third pass. On the CPU back end the kernels with a barrier for each
# element take minutes, and kernels 6 and 8, which need at most two passes, get fewer elements.
@pytest.mark.parametrize(
    "kernel", [pytest.param(k, marks=[] if k >= 6 else pytest.mark.backend("gpu")) for k in range(9)]
)
@pytest.mark.xdist_group("much memory")
def test_long_reduction(run, kernel):
    size = 2**28 + 3 if kernel == 7 or helpers.backend() == "gpu" else 2**24 + 3
    run("chapter05/reduction", "--size", size, "--runs", 1, "--kernel", kernel, status=0)


# ---- The ladder of the dot product


@pytest.mark.parametrize("fill", ["random", "equal", "sorted", "signed", "denormal", "nan"])
def test_dot_of_hard_data(run, rng, fill):
    """Every rung, with data that are difficult to sum and sizes that are no multiple of a block or a vector load."""
    for size in (3, rng.randint(1000, 70000)):
        run(
            *(
                "chapter05/dot_ladder",
                "--size",
                size,
                "--fill",
                fill,
                "--runs",
                1,
                "--seed",
                rng.randrange(10**6),
            ),
            status=0,
        )
    result = run("chapter05/dot_ladder", "--size", 1000, "--fill", fill, "--inject-error", status=1)
    assert "wrong, not timed" in result.out


def test_dot_waits_for_all_blocks(run):
    """The block that starts last adds the partial sums of all blocks. Here the others still run, so it must wait."""
    for workers in ("2", "5"):
        run(
            "chapter05/dot_ladder",
            "--size",
            4 << 20,
            "--runs",
            1,
            "--kernel",
            4,
            status=0,
            env={"CUDA_CPU_WORKERS": workers},
        )


# ---- The ladder of the matrix product


@pytest.mark.parametrize("fill", ["uniform", "positive", "wide", "scaled"])
def test_products_of_hard_matrices(run, rng, fill):
    """Every rung, with shapes that are no multiple of a tile, and with rows that are and are not aligned to 16 bytes."""
    low, high = (rng.randint(1, 40), rng.randint(130, 200))
    for shape in (rng.sample([1, low, 127, 128, 129, high], 3), [4 * low, 132, 3], [3, 132, 4 * low]):
        words = [word for name, size in zip("mnk", shape) for word in (f"--{name}", size)]
        rows = json.loads(
            run(
                "chapter05/matmul_ladder",
                *words,
                "--fill",
                fill,
                "--json",
                "--runs",
                1,
                "--seed",
                rng.randrange(10**6),
                status=0,
            ).out
        )["rows"]
        m, n, k = shape
        assert {row["title"] for row in rows} == {f"{m} x {k} times {k} x {n} floats"}
        errors = [
            (row["rms_error"], row["max_error"])
            for row in rows
            if row["verified"] and row["kind"] != "inaccurate"
        ]
        assert len(errors) >= 4 and all(0 <= rms <= max <= 1e-5 for rms, max in errors)
    result = run("chapter05/matmul_ladder", "--size", 33, "--fill", fill, "--inject-error", status=1)
    assert "wrong, not timed" in result.out


# ---- ripple_ladder


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8, 132, 1000])
def test_ripple_ladder_of_any_size(rungs, rng, size):
    """Early and late frames. The rungs with vectorized stores need a multiple of four."""
    for ticks in (0, rng.randint(1, 1000), 10**6):
        skipped = [
            row["skipped"] for row in rungs("chapter05/ripple_ladder", "--size", size, "--ticks", ticks)
        ]
        assert skipped[0] is None and len(skipped) == 4
        assert set(skipped[1:]) == {"needs a size that is a multiple of 4" if size % 4 else None}
