# SPDX-License-Identifier: MIT
"""Programs of several processes (ranks): chapter11/ranks.h, dot_mpi, julia_mpi, heat_mpi and heat_checkpoint. tests/test_programs.py
runs them as one process; tests/release kills ranks."""
import re
import shutil
import time

import pytest

import helpers

DOT, JULIA, HEAT = "chapter11/dot_mpi", "chapter11/julia_mpi", "chapter11/heat_mpi"
CHECKPOINT = "chapter11/heat_checkpoint"
MPIRUN = helpers.ROOT / "scripts" / "mpirun.sh"
ENDING = helpers.ending()
pytestmark = pytest.mark.skipif(not shutil.which("mpirun"), reason="needs mpirun, found none")


@pytest.fixture
def ranks(run):
    """ranks(3, DOT, "--size", 64, status=0) -> Result of three processes. `err` has the lines of the program only: mpirun adds lines
    of its own, and that of Open MPI 5 sometimes a null byte before the first line."""

    def ranks(number, program, *args, command=(), **more):
        helpers.build(program)
        result = run(MPIRUN, "-np", number, *command, helpers.BIN / program, *args, **more)
        result.out, result.err = (text.replace("\0", "") for text in (result.out, result.err))
        own = r"(dot|heat|julia)_mpi|heat_checkpoint|contiguous|round-robin|dynamic|MPI_Allreduce|cuda on the CPU|[\w/]+\.(cu|h):\d+"
        result.err = "".join(line + "\n" for line in result.errors if re.match(own, line))
        return result

    return ranks


@pytest.fixture
def on_rank_1(tmp_path):
    """on_rank_1("export X=1") -> a script that runs its arguments, after these commands if it is rank 1."""

    def script(commands):
        path = tmp_path / "rank.sh"
        which = '[ "${OMPI_COMM_WORLD_RANK-$PMI_RANK}" != 1 ]'
        path.write_text(f'#!/bin/sh\n{which} || {{\n{commands}\n}}\nexec "$@"\n')
        path.chmod(0o755)
        return path

    return script


def sums(result):
    """The sum of all ranks and the exact one, from the last row."""
    return [float(x) for x in re.findall(r"Does the sum (\S+) = (\S+)\?", result.out)[-1]]


def test_every_number_of_ranks_has_the_same_vectors(ranks, rng):
    """Parts of unequal sizes, more ranks than elements; the exact sum does not depend on the number of ranks. That of whole blocks of
    2^24 elements is a formula, that of the rest is computed."""
    many = rng.randrange(1000, 200000)
    for number, size in (3, many), (1, many), (5, 3), (2, (1 << 24) + 12345):
        result = ranks(number, DOT, "--size", size, "--seed", 7, status=0)
        got, exact = sums(result)
        assert abs(got - exact) <= 1e-4 * exact and not result.err
        assert f"{size} elements, at most {-(-size // number)} in a rank; kernel" in result.out
        assert re.search(rf"^{number} ranks on 1 node", result.out, re.M) or number == 1
        assert len(re.findall("^MPI_Allreduce: ", result.out, re.M)) == 1
        if size == many:
            both = {exact} if number == 3 else both | {exact}
    assert len(both) == 1


def test_a_wrong_result_of_all_ranks(ranks):
    for name, size, says in (DOT, 1000, "MPI_Allreduce: 1 of 1 differ\n"), (JULIA, 40, "dynamic: "):
        result = ranks(2, name, "--size", size, "--inject-error", status=1)
        assert says in result.err, str(result)


# ---- Options and devices


def test_only_rank_0_has_the_options(ranks, run, on_rank_1):
    """Rank 1 is started with other options, which it does not read. Help and mistakes are printed once."""
    others = on_rank_1('set -- "$1" --size 7 --nonsense')
    result = ranks(2, DOT, "--size", 1001, command=[others], status=0)
    assert "1001 elements, at most 501 in a rank" in result.out
    assert ranks(3, DOT, "--help", status=0).out == run(DOT, "--help", status=0).out
    for args, env, status, says in [
        (["--nonsense"], {}, 64, "dot_mpi: unrecognized option '--nonsense'\n"),
        (["--size", "999G"], {}, 1, "dot_mpi: out of memory: needs "),
        ([], {"CUDA_VISIBLE_DEVICES": ""}, 2, "dot_mpi: needs a CUDA device, found none"),
    ]:
        result = ranks(3, DOT, *args, env=env, status=status)
        assert result.err.startswith(says) and len(result.errors) == 1, str(result)


@pytest.mark.backend("cpu")
def test_more_ranks_than_devices(ranks):
    two, three = {"CUDA_CPU_DEVICES": "2"}, {"CUDA_CPU_DEVICES": "3"}
    assert "3 ranks on 1 node share 2 devices\n" in ranks(3, DOT, "--size", 9, env=two, status=0).out
    result = ranks(3, DOT, "--size", 9, "--exclusive", env=two, status=2)
    assert result.err == "dot_mpi: needs 3 GPUs, one for each rank, found 2\n"
    out = ranks(3, DOT, "--size", 9, "--exclusive", "--device", 2, env=three, status=0).out
    assert "3 ranks on 1 node use 3 devices\n" in out
    assert "Measured on device 2: " in out  # the first rank gets the device that --device names


@pytest.mark.backend("cpu")
def test_a_rank_that_fails_ends_all(ranks, on_rank_1):
    """Only rank 1 has this environment."""
    for change, status, says in [
        ("CUDA_VISIBLE_DEVICES=77", 2, "dot_mpi: rank 1: needs a CUDA device, found none"),
        ("CUDA_CPU_WORKERS=many", 1, "cuda on the CPU: CUDA_CPU_WORKERS=many: must be"),
    ]:
        begun = time.monotonic()
        result = ranks(3, DOT, "--size", 100000, command=[on_rank_1(f"export {change}")], status=status)
        assert result.err.startswith(says) and len(result.errors) == 1, str(result)
        assert time.monotonic() - begun < 60  # not the time limit of the test


# ---- julia_mpi


@pytest.mark.parametrize("number", [2, 5])
def test_every_tile_is_drawn_once(ranks, rng, tmp_path, number):
    """The program checks the pixels. Here: the numbers of tiles, and that the picture has the colors of the ranks that drew."""
    size, tile = rng.randint(20, 90), rng.randint(5, 30)
    out = ranks(number, JULIA, "--size", size, "--tile", tile, "--output", "j.ppm", status=0).out
    tiles = (-(-size // min(tile, size))) ** 2
    assert f"{tiles} tiles, {number} ranks\n" in out
    rows = re.findall(r"^(\S+) +[\d.]+ ms +\d+ % +([\d ]+)$", out, re.M)
    counts = {name: [int(count) for count in row.split()] for name, row in rows}
    assert counts["contiguous"] == [tiles * (r + 1) // number - tiles * r // number for r in range(number)]
    assert counts["round-robin"] == [len(range(r, tiles, number)) for r in range(number)]
    assert len(counts["dynamic"]) == number and sum(counts["dynamic"]) == tiles
    pixels = helpers.pixels(tmp_path / "j.ppm").reshape(-1, 3)
    outside = {tuple(pixel) for pixel in pixels.tolist()} - {(255, 0, 0)}
    drew = {(0, r * 80 % 200, r * 120 % 220) for r, count in enumerate(counts["dynamic"]) if count}
    assert outside == drew


# ---- heat_mpi


def checksum(result):
    """The checksum of all temperatures."""
    same = "^Equal to the temperatures of the host, bit for bit, after .* steps: all cells"
    found = re.findall("^Checksum of all temperatures: ([0-9a-f]{16})$", result.out, re.M)
    assert re.search(same, result.out, re.M) and len(found) == 1, str(result)
    return found[0]


def bits(result, folder):
    """The checksum of all temperatures, and the file of the picture."""
    return checksum(result), (folder / f"heat.{ENDING}").read_bytes()


def test_every_number_of_ranks_has_the_same_bits(ranks, rng, tmp_path):
    """Strips of unequal sizes, a row for each rank, and any number of steps for an exchange. On the CPU back end the work in streams
    runs late, so that a missing wait gives wrong results."""
    for columns, rows, cases in [
        (rng.randint(1, 200), rng.randint(80, 120), [(2, 1), (3, 4), (5, rng.randint(2, 16))]),
        (rng.randint(1, 300), 5, [(5, 1)]),
    ]:
        plate = ["--size", columns, "--rows", rows, "--iterations", rng.randint(17, 40)]
        plate += ["--output", f"heat.{ENDING}"]
        expected = bits(ranks(1, HEAT, *plate, status=0), tmp_path)
        for number, k in cases:
            late = {"CUDA_CPU_STREAMS": "late"}
            result = ranks(number, HEAT, *plate, "--steps-per-exchange", k, status=0, env=late)
            for text in f"{rows} rows of {columns} cells, ", f" {number} ranks, {k} step":
                assert text in result.out
            assert bits(result, tmp_path) == expected, f"{number} ranks, k = {k}, {plate}\n{result}"


def test_the_picture_is_that_of_heat_gmem(ranks, run, tmp_path):
    """That one begins with a slightly colder plate, and its heaters change in the last step."""
    arguments = "--size", 128, "--iterations", 60, "--output"
    ranks(3, HEAT, *arguments, f"heat.{ENDING}", status=0)
    run("chapter07/heat_gmem", *arguments, f"heat_gmem.{ENDING}", "--frames", 1, status=0)
    got, expected = (helpers.pixels(tmp_path / f"{name}.{ENDING}") for name in ("heat", "heat_gmem"))
    helpers.compare("heat_mpi", got, expected, mean=1, worst=8, fraction=0.02)


def test_large_plates_are_checked_in_patches(ranks):
    """Of a plate that is too large to compute all its cells on the host; and the first 256 steps of more."""
    options = ["--size", 1100, "--rows", 60, "--iterations", 257]
    out = ranks(3, HEAT, *options, "--output", f"heat.{ENDING}", status=0).out
    assert "bit for bit, after 256 steps: 9 patches of 16 x 16 cells of each rank\n" in out


def test_options_of_heat(ranks):
    for number, args, says in [
        (5, ["--size", 4], "4 rows are too few for 5 ranks"),
        (3, ["--size", 64, "--steps-per-exchange", 22], "--steps-per-exchange 22: only 21 rows for a rank"),
    ]:
        assert ranks(number, HEAT, *args, status=64).err == f"heat_mpi: {says}\n"
    result = ranks(2, HEAT, "--size", 50, "--iterations", 20, "--inject-error", status=1)
    assert "Not equal to the temperatures of the host" in result.out
    assert "heat_mpi: rank 1: --inject-error: changed element" in result.err


def test_transports(ranks):
    out = ranks(2, HEAT, "--size", 40, "--iterations", 50, "--steps-per-exchange", 10, status=0).out
    row = r"^host +[\d.]+ ms +[\d.]+ Gcells/s +[\d.]+ ms +\d+ %$"
    assert len(re.findall(row, out, re.M)) == 1, out
    if helpers.backend() == "cpu":
        skipped = re.findall(r"^(\S+) +skipped: (?:this build has no NCCL|needs GPUs)$", out, re.M)
        assert skipped == ["cuda-aware", "nccl", "peer"]


# ---- Checkpoints

PLATE = ["--size", 67, "--iterations", 100]


def test_resume_with_another_number_of_ranks(ranks, rng, tmp_path):
    """The plate is that of heat_mpi. A checkpoint is written every 1000 steps, too."""
    expected = checksum(ranks(2, HEAT, *PLATE, "--output", f"heat.{ENDING}", status=0))
    assert checksum(ranks(1, CHECKPOINT, *PLATE, status=0)) == expected
    assert checksum(ranks(3, CHECKPOINT, *PLATE, "--checkpoint", "a", status=0)) == expected
    first = ["--size", 67, "--iterations", rng.randint(1, 99)]
    ranks(5, CHECKPOINT, *first, "--checkpoint", "c", status=0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "c", f"heat.{ENDING}"]
    resumed = ranks(2, CHECKPOINT, *PLATE, "--resume", "c", status=0)
    assert checksum(resumed) == expected and f"steps {first[-1]} to 100, 2 ranks" in resumed.out
    long = ["--size", 16, "--iterations", 1010]
    through = ranks(1, CHECKPOINT, *long, "--checkpoint", "c", status=0).out.splitlines()
    assert ranks(1, CHECKPOINT, *long, status=0).out.splitlines()[-2:] == through[-2:]
    out = ranks(5, CHECKPOINT, "--size", 4, status=64)
    assert out.err == "heat_checkpoint: 4 rows are too few for 5 ranks\n"
