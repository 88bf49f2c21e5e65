# SPDX-License-Identifier: MIT
"""Programs of several processes (ranks): chapter11/ranks.h, chapter11/dot_mpi and chapter11/julia_mpi. tests/test_programs.py runs them as one process."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

import helpers

DOT = "chapter11/dot_mpi"
JULIA = "chapter11/julia_mpi"
MPIRUN = helpers.ROOT / "scripts" / "mpirun.sh"
pytestmark = [
    helpers.needs(DOT),
    helpers.needs(JULIA),
    pytest.mark.skipif(not shutil.which("mpirun"), reason="needs mpirun, found none"),
]


def mpirun(run, number, *words, **more):
    """The Result of a program as several processes. `err` has the lines of the program only: mpirun adds lines of its own, and that
    of Open MPI 5 sometimes a null byte before the first line."""
    result = run(MPIRUN, "-np", number, *words, **more)
    result.out, result.err = (text.replace("\0", "") for text in (result.out, result.err))
    own = r"dot_mpi|heat_mpi|julia_mpi|contiguous|round-robin|dynamic|MPI_Allreduce|cuda on the CPU|[\w/]+\.(cu|h):\d+"
    result.err = "".join(line + "\n" for line in result.errors if re.match(own, line))
    return result


@pytest.fixture
def ranks(run):
    """ranks(3, "--size", 64, status=0) -> Result of chapter11/dot_mpi as three processes."""

    def ranks(number, *args, command=(), **more):
        return mpirun(run, number, *command, helpers.BIN / DOT, *args, **more)

    return ranks


@pytest.fixture
def on_rank_1(tmp_path):
    """on_rank_1("export X=1") -> a script that runs its arguments, after these commands if it is rank 1."""

    def script(commands):
        path = tmp_path / "rank.sh"
        path.write_text(
            '#!/bin/sh\n[ "${OMPI_COMM_WORLD_RANK-$PMI_RANK}" != 1 ] || {\n' f'{commands}\n}}\nexec "$@"\n'
        )
        path.chmod(0o755)
        return path

    return script


def sums(result):
    """The sum of all ranks and the exact one, from the last row."""
    return [float(x) for x in re.findall(r"Does the sum (\S+) = (\S+)\?", result.out)[-1]]


@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_every_number_of_ranks_has_the_same_vectors(ranks, rng, number):
    """Parts of unequal sizes; the exact sum does not depend on the number of ranks."""
    size, seed = rng.randrange(1000, 200000), rng.randrange(1 << 40)
    result = ranks(number, "--size", size, "--seed", seed, status=0)
    assert not result.err
    got, exact = sums(result)
    alone = ranks(1, "--size", size, "--seed", seed, status=0)
    assert abs(got - exact) <= 1e-4 * exact and sums(alone)[1] == exact
    assert f"{size} elements, at most {-(-size // number)} in a rank; kernel" in result.out
    assert re.search(rf"^{number} ranks on 1 node", result.out, re.M) or number == 1
    assert len(re.findall("^MPI_Allreduce: ", result.out, re.M)) == 1


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_more_ranks_than_elements(ranks, size):
    assert f"{size} elements" in ranks(5, "--size", size, status=0).out


def test_beyond_a_block_of_the_closed_form(ranks):
    """The exact sum of whole blocks of 2^24 elements is a formula, that of the rest is computed."""
    got, exact = sums(ranks(2, "--size", (1 << 24) + 12345, status=0))
    assert abs(got - exact) <= 1e-5 * exact


def test_a_wrong_result_of_all_ranks(ranks):
    result = ranks(2, "--size", 1000, "--inject-error", status=1)
    assert "MPI_Allreduce: 1 of 1 differ\n" in result.err, str(result)


# ---- Options and devices


def test_only_rank_0_has_the_options(ranks, on_rank_1):
    """Rank 1 is started with other options, which it does not read."""
    others = on_rank_1('set -- "$1" --size 7 --nonsense')
    result = ranks(2, "--size", 1001, command=[others], status=0)
    assert "1001 elements, at most 501 in a rank" in result.out


@pytest.mark.parametrize("option", ["--help", "--usage", "--list-devices"])
def test_help_is_printed_once(ranks, run, option):
    assert ranks(3, option, status=0).out == run(DOT, option, status=0).out


@pytest.mark.parametrize(
    "args, env, status, says",
    [
        (["--nonsense"], {}, 64, "dot_mpi: unrecognized option '--nonsense'\n"),
        (["--size", "0"], {}, 64, "dot_mpi: --size 0: must be a whole number from 1 to 1099511627776\n"),
        (["--device", "999"], {}, 64, "dot_mpi: --device 999: no such device"),
        (["--size", "999G"], {}, 1, "dot_mpi: out of memory: needs "),
        ([], {"CUDA_VISIBLE_DEVICES": ""}, 2, "dot_mpi: needs a CUDA device, found none"),
    ],
    ids=["option", "value", "device", "memory", "none"],
)
def test_a_mistake_is_reported_once(ranks, args, env, status, says):
    result = ranks(3, *args, env=env, status=status)
    assert result.err.startswith(says) and len(result.errors) == 1, str(result)


@pytest.mark.backend("cpu")
def test_more_ranks_than_devices(ranks):
    two = {"CUDA_CPU_DEVICES": "2"}
    assert "3 ranks on 1 node share 2 devices\n" in ranks(3, "--size", 9, env=two, status=0).out
    result = ranks(3, "--size", 9, "--exclusive", env=two, status=2)
    assert result.err == "dot_mpi: needs 3 GPUs, one for each rank, found 2\n"
    three = {"CUDA_CPU_DEVICES": "3"}
    assert (
        "3 ranks on 1 node use 3 devices\n" in ranks(3, "--size", 9, "--exclusive", env=three, status=0).out
    )
    # The first rank gets the device that --device names.
    assert "Measured on device 2: " in ranks(2, "--size", 9, "--device", 2, env=three, status=0).out


# ---- julia_mpi


@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_every_tile_is_drawn_once(run, rng, tmp_path, number):
    """The program checks the pixels. Here: the numbers of tiles, and that the picture has the colors of the ranks that drew."""
    size, tile = rng.randint(20, 90), rng.randint(5, 30)
    result = mpirun(
        *(run, number, helpers.BIN / JULIA, "--size", size, "--tile", tile, "--output", "j.ppm"), status=0
    )
    tiles = (-(-size // min(tile, size))) ** 2
    assert f"{tiles} tiles, {number} rank{'s' if number > 1 else ''}\n" in result.out
    rows = dict(re.findall(r"^(\S+) +[\d.]+ ms +\d+ % +([\d ]+)$", result.out, re.M))
    counts = {name: [int(count) for count in row.split()] for name, row in rows.items()}
    assert counts["contiguous"] == [tiles * (r + 1) // number - tiles * r // number for r in range(number)]
    assert counts["round-robin"] == [len(range(r, tiles, number)) for r in range(number)]
    assert len(counts["dynamic"]) == number and sum(counts["dynamic"]) == tiles
    pixels = helpers.pixels(tmp_path / "j.ppm").reshape(-1, 3)
    outside = {tuple(pixel) for pixel in pixels.tolist()} - {(255, 0, 0)}
    drew = {(0, r * 80 % 200, r * 120 % 220) for r, count in enumerate(counts["dynamic"]) if count}
    assert outside == drew


def test_a_slower_rank_draws_fewer_tiles(run):
    """Rank 1 of 2 draws each of its tiles 1000 times. With 200 times, on a GPU that both share with other programs, it drew 144 of
    the tiles."""
    out = mpirun(run, 2, helpers.BIN / JULIA, "--size", 120, "--tile", 6, "--slower", 1000, status=0).out
    fast, slow = map(int, re.search(r"^dynamic .* (\d+) (\d+)$", out, re.M).groups())
    assert "400 tiles, 2 ranks, the last one 1000 times slower\n" in out and fast + slow == 400 and slow < 100


def test_a_wrong_picture_of_all_ranks(run):
    result = mpirun(run, 2, helpers.BIN / JULIA, "--size", 40, "--tile", 9, "--inject-error", status=1)
    assert "dynamic: " in result.err, str(result)


# ---- A rank that fails


@pytest.mark.backend("cpu")
@pytest.mark.parametrize(
    "change, status, says",
    [
        ("export CUDA_VISIBLE_DEVICES=77", 2, "dot_mpi: rank 1: needs a CUDA device, found none"),
        ("export CUDA_CPU_WORKERS=many", 1, "cuda on the CPU: CUDA_CPU_WORKERS=many: must be"),
    ],
    ids=["no device", "in the back end"],
)
def test_a_rank_that_fails_ends_all(ranks, on_rank_1, change, status, says):
    """Only rank 1 has this environment."""
    begun = time.monotonic()
    result = ranks(3, "--size", 100000, command=[on_rank_1(change)], status=status)
    assert result.err.startswith(says) and len(result.errors) == 1, str(result)
    assert time.monotonic() - begun < 60  # not the time limit of the test


def test_a_killed_rank_ends_all(tmp_path, rng):
    """At a random time, from the start of the processes on."""
    for attempt in range(2):
        status, out = killed(rng, 0.8, tmp_path, 3, helpers.BIN / DOT, "--size", "128M")
        assert status != 0 and "Does the sum" not in out, out


def killed(rng, seconds, folder, number, program, *args):
    """The status and the output of a program as several processes, one of which gets SIGKILL within some seconds after the start
    of the processes, unless it has ended before. None of them is left."""
    process = subprocess.Popen(
        [str(word) for word in (MPIRUN, "-np", number, program, *args)],
        cwd=folder,
        env=helpers.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        pids = wait_for(lambda: children(process.pid, program.name), number)
        time.sleep(rng.uniform(0, seconds))
        with contextlib.suppress(ProcessLookupError):
            os.kill(rng.choice(pids), signal.SIGKILL)
        out, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    wait_for(lambda: [pid for pid in pids if os.path.exists(f"/proc/{pid}")], 0)
    return process.returncode, out


def children(parent, program):
    """The processes of a program that a process has started."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/stat") as file:
                name, fields = file.read().split("(", 1)[1].rsplit(")", 1)
        except (OSError, IndexError):
            continue
        if name == program and int(fields.split()[1]) == parent:
            found.append(int(entry))
    return found


def wait_for(function, number):
    for _ in range(600):
        found = function()
        if len(found) == number:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{found}, expected {number} processes")
