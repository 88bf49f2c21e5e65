# SPDX-License-Identifier: MIT
"""Chapter 5: launches, sums, dot products and products of matrices, and the programs that are wrong on purpose."""
import fcntl
import os
import re

import pytest

import helpers
from formulas import exact_dot


# ---- Vectors


def test_launch_shapes(run, rng):
    for n in 1024, rng.randint(1025, 10**5):
        out = run("chapter05/add_launch_shapes", "--size", n, status=0).out
        shapes = ["<<<1, 1>>>", f"<<<{n}, 1>>>", *[f"<<<1, {n}>>>"] * (n <= 1024)]
        shapes += [f"<<<{-(-n // 128)}, 128>>>", "<<<128, 1>>>", "<<<128, 128>>>", "<<<10, 16>>>"]
        assert re.findall(r"<<<.*?>>>", out) == shapes
        assert ("a block has at most 1024 threads" in out) == (n > 1024)
        times = r"\d ms +\d+\.\d+ GB/s +\d+\.\d+ ms with allocation and copies$"
        assert len(re.findall(times, out, re.M)) == len(shapes)


def test_wrong_launches(run):
    """CUDA refuses launches of no block and beyond the limits. The program itself checks how many elements are left out."""
    out = run("chapter05/launch_mistakes", status=1).out
    assert out.endswith("\nThe counts are as expected.\n")
    launches = dict(re.findall(r"^<<<\((\d+, \d+\), \d+)>>> for N = \d+: (\w+), ", out, re.M))
    # CUDA 13.0 returns cudaErrorInvalidValue, although its documentation says cudaErrorInvalidConfiguration.
    refused = "cudaErrorInvalidConfiguration", "cudaErrorInvalidValue"
    wrong = {launch for launch, error in launches.items() if error in refused}
    assert wrong == {"0, 1), 128", "2147483648, 1), 128", "1, 65536), 128", "128, 1), 1025"}
    assert {launches[launch] for launch in launches.keys() - wrong} == {"cudaSuccess"} and len(launches) == 7


# ---- Shapes of launches, warps


def numbers(line):
    return list(map(int, re.findall(r"\d+", line)))


def test_cycles_of_paths(run):
    out = run("chapter05/divergence", status=0).out
    rows = re.findall(r"^ ?(\d+) paths?: +(\d+) cycles, +(\S+) times those of one path$", out, re.M)
    assert [int(paths) for paths, *_ in rows] == [1, 2, 4, 8, 16, 32]
    assert all(float(times) == pytest.approx(int(n) / int(rows[0][1]), abs=0.006) for _, n, times in rows)


# ---- Dot products


@pytest.mark.parametrize("name", ["dot", "dot_gmem"])
def test_dot(run, rng, name):
    for size in 257, rng.randint(3, 10**6):
        out = run(f"chapter05/{name}", "--size", size, status=0).out
        got, expected = map(float, re.search(r"^Does GPU value (\S+) = (\S+)\?$", out, re.M).groups())
        assert expected == float(f"{exact_dot(size):.6g}")
        assert abs(got - expected) <= 1e-4 * expected  # six printed digits, and the program's rounding limit
        assert name == "dot" or f"\n{4 * size} bytes came back\nTime to generate:  " in out


@pytest.mark.backend("cpu")
@pytest.mark.parametrize("schedule", ["forward", "reverse", "random:1"])
def test_wrong_barrier_is_named(run, rng, schedule):
    """CUDA counts threads that have returned as arrived, so the sum comes out right, as on a GPU. In the strict reading the
    message names the line where half of the threads wait and the last barrier of the others."""
    source = (helpers.ROOT / "chapter05/dot_wrong_barrier.cu").read_text().splitlines()
    barriers = [number for number, line in enumerate(source, 1) if "__syncthreads();" in line]
    right, wrong, other = barriers[:3]  # the others are of dot_without
    for size in 1, rng.randint(2, 10**5):
        command, env = ["chapter05/dot_wrong_barrier", "--size", size], {"CUDA_CPU_SCHEDULE": schedule}
        result = run(*command, status=1, env=env)
        assert result.errors == ["the sum is right, this time and on this device"]
        env["CUDA_CPU_STRICT"] = "1"
        assert run(*command, status=1, env=env).errors[:2] == [
            "cuda on the CPU: divergent barrier: 128 of 256 threads wait at dot_wrong_barrier.cu:"
            f"{wrong}: threads (0,0,0) to (127,0,0)",
            f"    returned after passing dot_wrong_barrier.cu:{right}: threads (128,0,0) to (255,0,0)",
        ]
        err = run(*command, "--both-arms", status=1, env=env).err
        place = r"dot_wrong_barrier\.cu:(\d+)"
        says = rf"divergent barrier: \d+ of 256 threads wait at {place} while .* reaches {place}$"
        lines = re.search(says, err, re.M)
        assert lines and {int(lines[1]), int(lines[2])} == {wrong, other}, err


@pytest.mark.backend("cpu")
@pytest.mark.parametrize("barrier", ["first", "loop"])
def test_without_a_barrier(run, barrier):
    """A thread that runs first reads what the others have not stored; in the reverse order all is stored before it is read."""
    command = ["chapter05/dot_wrong_barrier", "--left-out", barrier]
    for schedule, right in ("forward", False), ("reverse", True):
        err = run(*command, status=1, env={"CUDA_CPU_SCHEDULE": schedule}).err
        assert ("the sum is right, this time" if right else "dot product: 1 of 1 differ") in err
    run(*command, "--both-arms", status=64)


def test_wrong_barrier_ends_in_time(tmp_path):
    """A process that hangs is ended after the time limit. Here it hangs before its kernel, because its pipe is full."""
    read, write = os.pipe()
    os.write(write, b"x" * fcntl.fcntl(write, fcntl.F_GETPIPE_SZ))
    limit = ["--time-limit", "1"]
    result = helpers.execute("chapter05/dot_wrong_barrier", limit, tmp_path, stdout=write, timeout=60)
    os.close(write)
    assert result.status == 1
    assert result.errors == ["dot_wrong_barrier: ended after 1 s: the threads wait for each other"]
    with open(read, "rb") as pipe:  # end of file: no process has the pipe open for writing
        assert set(pipe.read()) == {ord("x")}


@pytest.mark.backend("gpu")
def test_wrong_barrier_on_a_gpu(run):
    """The behaviour is undefined, but the exit status is 1, within the time limit."""
    for mistake in [], ["--both-arms"], ["--left-out=first"], ["--left-out=loop"]:
        result = run("chapter05/dot_wrong_barrier", "--time-limit", 30, *mistake, status=1, timeout=60)
        assert result.errors and re.match(
            "Half of the threads (do not reach|wait at another call of) the barrier|The .*barrier.* is left out",
            result.out,
        )


# ---- Shared memory


def test_dynamic_shared(run, rng):
    for n in 1, 26, 257, 9831, rng.randint(258, 9000):
        out = run("chapter05/dynamic_shared", "--size", n, status=0).out
        text = "".join(chr(ord("a") + i % 26) for i in range(n))
        first = f"{n} ints and {n} letters in {5 * n} bytes of shared memory"
        assert out.splitlines() == [first, text[:64], text[::-1][:64]]
    result = run("chapter05/dynamic_shared", "--size", "1M", status=2)
    says = r"dynamic_shared: needs 5242880 bytes of shared memory in a block, found \d+\n"
    assert re.fullmatch(says, result.err)


def test_memory_kinds(run):
    """The program checks what the threads see in each kind of memory, and where the reads end."""
    out = run("chapter05/memory_kinds", status=0).out
    timed = re.findall(r"^(\w+(?:, [\w ]+?)?)  .+ \d+\.\d cycles$", out, re.M)
    kinds = ["register", "local", "shared", "constant", "texture"]
    assert timed == kinds + ["global, in L1", "global, in L2", "global, beyond"]


@pytest.mark.parametrize("shared", [0, 16384, 49152])
def test_occupancy(run, shared):
    """The numbers of blocks follow from the printed limits. Registers are a limit only on a GPU."""
    out = run("chapter05/occupancy", "--shared", shared, status=0).out
    says = r"room for (\d+) blocks, (\d+) threads, (\d+) registers and (\d+) bytes"
    most_blocks, threads, registers, bytes_ = map(int, re.search(says, out).groups())
    *tables, by_registers = out.split("\n\n")[1:]
    assert len(tables) == 5
    # A multiprocessor with 65536 registers and room for 2048 threads; compute capability 7.5 has room for 1024.
    if (registers, threads) == (65536, 2048):
        blocks_of = {32: [16, 8, 4, 2], 64: [8, 4, 2, 1], 128: [4, 2, 1, 0], 255: [2, 1, 0, 0]}
        for line, (number, blocks) in zip(by_registers.splitlines()[1:], blocks_of.items()):
            percents = [100 * n * size // 2048 for n, size in zip(blocks, (128, 256, 512, 1024))]
            assert numbers(line) == [number, *(x for pair in zip(blocks, percents) for x in pair)]
    needs = re.findall(r"(\d+) registers, (\d+) bytes of local memory a thread; \d", out)
    if helpers.backend() == "cpu":
        assert not needs and out.count(": registers and local memory of a thread are not known; ") == 5
    else:  # an array whose index is known only at run time, and spilled registers
        local = [int(bytes_) for _, bytes_ in needs]
        assert len(needs) == 5 and int(needs[3][0]) * 1024 <= registers
        assert local[:2] == [0, 0] and local[2] >= 256 and local[3] > 0
    for table, needed in zip(tables, (0, 0, 0, 0, shared)):
        rows = re.findall(r"^ +(\d+) +(\d+) +(\d+) +(\d+) % +(.+)$", table, re.M)
        assert [int(row[0]) for row in rows] == [32, 64, 128, 256, 512, 768, 1024]
        for *found, limit in rows:
            size, blocks, warps, percent = map(int, found)
            room = {"blocks": most_blocks, "threads": threads // size}
            if needed:
                room["shared memory"] = bytes_ // (needed + 1024)
            least = min(room.values())
            if "registers" in limit:
                assert helpers.backend() == "gpu" and blocks <= least
            else:
                assert blocks == least and room[limit.split(", ")[0]] == least
            assert warps == blocks * size // 32 and abs(percent - 100 * blocks * size / threads) <= 0.5
        best = max(int(size) * int(blocks) for size, blocks, *_ in rows)
        grid, size = map(int, re.search(r"best: (\d+) blocks of (\d+) threads", table).groups())
        assert grid % best == 0 or size * grid >= best


# ---- Reduction, ladders


def rungs_of(out):
    return [int(number) for number in re.findall(r"^ (\d)  .+ yes$", out, re.M)]


def test_reduction_of_every_size(run, rng):
    """Up to 3 blocks in the first kernels, 2 in the others. A block of the last kernels reduces 16384 elements."""
    out = run("chapter05/reduction", "--every", "--size", 600, "--seed", rng.randrange(10**6), status=0).out
    assert re.findall(r"^(\d) .+: right for every size from 1 to 600$", out, re.M) == list("012345678")
    for threads in 64, 128, 512:  # more elements than a block adds
        options = "--threads", threads, "--every", "--size", 2 * threads + 70, "--kernel", rng.randrange(7)
        assert "right for every size from 1" in run("chapter05/reduction", *options, status=0).out
    for size in 16385, rng.randint(5001, 10**5):
        more = "--threads", rng.choice([64, 128, 512])
        out = run("chapter05/reduction", "--size", size, "--runs", 1, *more, status=0).out
        assert re.search(rf"^{size} ints", out, re.M) and rungs_of(out) == list(range(9))
    kernel = rng.randrange(9)
    out = run("chapter05/reduction", "--size", 999, "--runs", 1, "--kernel", kernel, status=0).out
    assert rungs_of(out) == [kernel]
    assert ("x prev x first" in out) == (helpers.backend() == "gpu")


# A block of 256 threads by hand: 47 and 5 as in divergence, the turns of kernel 1 as in bank_conflicts, 8 steps with 255 additions
BLOCK_OF_256 = """47 1793 9 150 0; 5 1793 9 150 105; 5 1793 9 45 0; 5 1793 9 45 0; 0 320 3 40 0; 0 320 3 40 0; 0 320 3 40 0;
    0 0 1 17 0; 0 0 1 17 0"""


def counts(out):
    """The rows of --counts, as numbers."""
    return [[int(n) for n in row.split()] for row in re.findall(r"^ \d  \D+((?: +\d+){8})  ", out, re.M)]


def test_reduction_counts(run, rng):
    """Of one block; of more blocks each has the same. The program compares with closed formulas, and runs the kernels."""
    block = [[1, 1, *map(int, row.split()), 1024] for row in BLOCK_OF_256.split(";")]
    assert counts(run("chapter05/reduction", "--counts", "--size", 256, status=0).out) == block
    for threads in 64, 128, 256, 512:
        size = rng.randint(2, 10**6)
        options = "--counts", "--size", size, "--threads", threads
        rows = counts(run("chapter05/reduction", *options, status=0).out)
        for k, (passes, blocks, *each, read) in enumerate(rows):
            per_block = threads if k < 3 else 2 * threads if k < 7 else 16384
            left = [size]
            while len(left) == 1 or left[-1] > 1 and k < 8:
                left.append(min(-(-left[-1] // per_block), 2 * threads if k == 6 else size))
            assert (passes, blocks, read) == (len(left) - 1, sum(left[1:]), 4 * sum(left[:-1]))
            assert threads != 256 or each == [blocks * count for count in block[k][2:-1]]


@pytest.mark.parametrize("fill", ["uniform", "positive", "wide", "scaled"])
def test_products_of_hard_matrices(rungs, run, rng, fill):
    """Every rung, with shapes that are no multiple of a tile, and with rows that are and are not aligned to 16 bytes; vectors; one
    tile, with k split over blocks; on a GPU large tiles, with k split over blocks."""
    low, high = rng.randint(1, 40), rng.randint(130, 200)
    aligned, deep = rng.choice([[4 * low, 132, 3], [3, 132, 4 * low]]), [9, rng.randint(2, 32), 20 * high]
    vectors = [1, high, low], [high, 1, low], [1, 4 * low, high], [low, 1, 4 * high], [1, 1, 20 * high]
    large = [rng.sample(range(700, 1000), 3)] if helpers.backend() == "gpu" else []
    for m, n, k in rng.sample([1, low, 127, 129, high], 3), aligned, deep, *rng.sample(vectors, 2), *large:
        options = ["--shape", f"{m}x{n}x{k}", "--fill", fill, "--seed", rng.randrange(10**6)]
        rows = rungs("chapter05/matmul_ladder", *options)
        assert {row["title"] for row in rows} == {f"{m} x {k} times {k} x {n} floats"}
        errors = [(row["rms_error"], row["max_error"]) for row in rows if row["verified"]]
        assert len(errors) >= 6 and all(0 <= rms <= most <= 1e-5 for rms, most in errors)
    result = run("chapter05/matmul_ladder", "--size", 33, "--fill", fill, "--inject-error", status=1)
    assert "wrong, not timed" in result.out


def test_ripple_ladder_of_any_size(rungs, rng):
    """Early and late frames. The rungs with vectorized stores need a multiple of four."""
    for size, ticks in (3, 0), (132, rng.randint(1, 1000)), (rng.randint(4, 500), 10**6):
        rows = rungs("chapter05/ripple_ladder", "--size", size, "--ticks", ticks)
        lacks = "needs a size that is a multiple of 4" if size % 4 else None
        assert [row["skipped"] for row in rows] == [None] + [lacks] * 3
