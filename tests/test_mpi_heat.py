# SPDX-License-Identifier: MIT
"""chapter11/heat_mpi: strips of several processes (ranks), checkpoints, and ranks that are killed."""
import os
import re
import shutil

import pytest

import helpers
from test_mpi import killed, mpirun

HEAT = "chapter11/heat_mpi"
pytestmark = [
    helpers.needs(HEAT),
    pytest.mark.skipif(not shutil.which("mpirun"), reason="needs mpirun, found none"),
]


@pytest.fixture
def ranks(run):
    """ranks(3, "--size", 64, status=0) -> Result of three processes."""

    def ranks(number, *args, **more):
        args = [*args, "--output", "heat." + helpers.ending()]
        return mpirun(run, number, helpers.BIN / HEAT, *args, **more)

    return ranks


def bits(result, folder):
    """The checksum of all temperatures, and the file of the picture."""
    assert re.search(
        "^Equal to the temperatures of the host, bit for bit, after .* steps: all cells", result.out, re.M
    ), str(result)
    checksum = re.findall("^Checksum of all temperatures: ([0-9a-f]{16})$", result.out, re.M)
    assert len(checksum) == 1, str(result)
    return checksum[0], (folder / f"heat.{helpers.ending()}").read_bytes()


def test_every_number_of_ranks_has_the_same_bits(ranks, rng, tmp_path):
    """Strips of unequal sizes, and any number of steps for an exchange. On the CPU back end the work in streams runs late, so
    that a missing wait gives wrong results."""
    columns, rows, steps = rng.randint(1, 200), rng.randint(80, 120), rng.randint(17, 40)
    plate = ["--size", columns, "--rows", rows, "--iterations", steps, "--picture-size", rng.randint(1, 90)]
    expected = bits(ranks(1, *plate, status=0), tmp_path)
    for number, k in (2, 1), (3, 4), (5, 16), (8, rng.randint(2, 10)), (2, rng.randint(13, 40)), (3, 12):
        late = {"CUDA_CPU_STREAMS": "late"}
        result = ranks(number, *plate, "--steps-per-exchange", k, status=0, env=late)
        assert f"{rows} rows of {columns} cells, {steps} steps, {number} ranks, {k} step" in result.out
        assert bits(result, tmp_path) == expected, f"{number} ranks, k = {k}, {plate}\n{result}"


def test_timeline(ranks):
    """Three rounds of rank 0 after the first one, for each transport."""
    out = ranks(2, "--size", 40, "--iterations", 50, "--steps-per-exchange", 10, "--timeline", status=0).out
    rows = re.findall(r"^  (exchange|interior) \|([ #=]{80})\|$", out, re.M)
    assert len(rows) >= 2 and [name for name, _ in rows] == ["exchange", "interior"] * (len(rows) // 2)
    assert all({"#", "="} <= set(line) for name, line in rows if name == "exchange"), out


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_row_for_each_rank(ranks, rng, rows, tmp_path):
    plate = ["--size", rng.randint(1, 300), "--rows", rows, "--iterations", 7]
    expected = bits(ranks(1, *plate, status=0), tmp_path)
    assert bits(ranks(rows, *plate, status=0), tmp_path) == expected


def test_the_picture_is_that_of_heat_gmem(ranks, run, tmp_path):
    """That one begins with a slightly colder plate, and its heaters change in the last step."""
    ranks(3, "--size", 128, "--iterations", 60, status=0)
    got, expected = (tmp_path / f"{name}.{helpers.ending()}" for name in ("heat", "heat_gmem"))
    arguments = ("--size", 128, "--iterations", 60, "--frames", 1, "--output", expected.name)
    run("chapter07/heat_gmem", *arguments, status=0)
    helpers.compare("heat_mpi", helpers.pixels(got), helpers.pixels(expected), mean=1, worst=8, fraction=0.02)


def test_the_picture_has_the_means_of_the_cells(ranks, tmp_path):
    """One pixel: its lightness is between those of the coldest and the hottest cell."""
    ranks(3, "--size", 77, "--iterations", 1, "--picture-size", 1, status=0)
    picture = helpers.pixels(tmp_path / f"heat.{helpers.ending()}")
    assert picture.shape == (1, 1, 3) and 20 < picture.mean() < 120


def test_large_plates_are_checked_in_patches(ranks):
    """Of a plate that is too large to compute all its cells on the host; and the first 256 steps of more."""
    out = ranks(3, "--size", 500, "--rows", 60, "--iterations", 257, status=0).out
    assert "bit for bit, after 256 steps: 9 patches of 16 x 16 cells of each rank\n" in out


def test_a_wrong_result_of_all_ranks(ranks):
    result = ranks(2, "--size", 50, "--iterations", 20, "--inject-error", status=1)
    assert "Not equal to the temperatures of the host" in result.out
    assert "heat_mpi: rank 1: --inject-error: changed element" in result.err


@pytest.mark.parametrize(
    "number, args, says",
    [
        (5, ["--size", 4], "4 rows are too few for 5 ranks"),
        (3, ["--size", 64, "--steps-per-exchange", 22], "--steps-per-exchange 22: only 21 rows for a rank"),
        (2, ["--checkpoint", "x"], "--checkpoint needs one --transport"),
        (2, ["--resume", "x"], "--resume needs one --transport"),
        (2, ["--every", 3], "--every needs --checkpoint"),
    ],
)
def test_bad_options(ranks, number, args, says):
    assert ranks(number, *args, status=64).err == f"heat_mpi: {says}\n"


@pytest.mark.backend("cpu")
def test_transports_that_are_not_there(ranks, tmp_path):
    out = ranks(2, "--size", 20, "--iterations", 30, status=0).out
    assert re.findall(r"^(\S+) +skipped: (?:this build has no NCCL|needs GPUs)$", out, re.M) == [
        "cuda-aware",
        "nccl",
        "peer",
    ]
    assert re.search(r"^host +[\d.]+ ms +[\d.]+ Gcells/s +[\d.]+ ms +\d+ %$", out, re.M)
    for transport, reason in [("nccl", "this build has no NCCL"), ("peer", "needs GPUs")]:
        result = ranks(2, "--size", 20, "--transport", transport, status=2)
        assert result.err == f"heat_mpi: --transport {transport}: {reason}\n"


# ---- Checkpoints

PLATE = ["--size", 61, "--rows", 67, "--iterations", 100, "--transport", "host"]


def test_resume_with_another_number_of_ranks(ranks, rng, tmp_path):
    expected = bits(ranks(1, *PLATE, status=0), tmp_path)
    every, k = rng.randint(20, 99), rng.randint(1, 12)
    result = ranks(3, *PLATE, "--checkpoint", "a", "--every", every, "--steps-per-exchange", k, status=0)
    assert bits(result, tmp_path) == expected  # writing changes nothing
    first = PLATE[:4] + ["--iterations", rng.randint(1, 99)] + PLATE[6:]
    ranks(5, *first, "--checkpoint", "c", status=0)
    assert sorted(os.listdir(tmp_path)) == ["a", "c", f"heat.{helpers.ending()}"]
    for number in 1, 2, 8:
        assert bits(ranks(number, *PLATE, "--resume", "c", status=0), tmp_path) == expected


def test_wrong_checkpoints(ranks, rng, tmp_path):
    ranks(2, *PLATE, "--checkpoint", "good", status=0)
    os.remove(tmp_path / f"heat.{helpers.ending()}")
    good = (tmp_path / "good").read_bytes()

    def flipped(at, bit=1):
        return good[:at] + bytes([good[at] ^ bit]) + good[at + 1 :]

    cell = rng.randrange(len(good) - 61 * 67 * 4, len(good))
    for data, says in [
        (good[: rng.randrange(len(good) // 2, len(good))], "cannot resume from bad: its length is wrong"),
        (good + b"x", "cannot resume from bad: its length is wrong"),
        (b"", "cannot resume from bad: it is no checkpoint"),
        (flipped(0), "cannot resume from bad: it is no checkpoint"),
        (flipped(8), "cannot resume from bad: it is of another version of this program"),
        (flipped(cell), "cannot resume from bad: its checksum is wrong"),
        (flipped(12, 4), "cannot resume from bad: its checksum is wrong"),  # 96 steps, not 100
        (None, "cannot read bad: No such file or directory"),
    ]:
        (tmp_path / "bad").unlink(missing_ok=True)
        if data is not None:
            (tmp_path / "bad").write_bytes(data)
        assert ranks(2, *PLATE, "--resume", "bad", status=1).err == f"heat_mpi: {says}\n"
    assert "bad" not in os.listdir(tmp_path) and f"heat.{helpers.ending()}" not in os.listdir(tmp_path)
    for args, says in [
        (["--size", 62], "it is of a plate of 61 columns and 67 rows, not of 62 and 67"),
        (["--iterations", 99], "it has taken more steps than --iterations"),
    ]:
        result = ranks(2, *PLATE, *args, "--resume", "good", status=1)
        assert result.err == f"heat_mpi: cannot resume from good: {says}\n"


def test_a_checkpoint_that_cannot_be_written(ranks, tmp_path):
    for file, says in [
        ("/dev/full", "cannot write /dev/full: MPI_ERR"),
        ("/none/x", "cannot write /none/x: No such"),
    ]:
        assert ranks(2, *PLATE, "--checkpoint", file, status=1).err.startswith(f"heat_mpi: {says}")
    assert os.listdir(tmp_path) == []


def test_killed_ranks(ranks, rng, tmp_path):
    """A run goes on from its last checkpoint whenever one of its ranks has been killed, and ends with the same bits."""
    expected = bits(ranks(1, *PLATE, status=0), tmp_path)
    picture, checkpoint = tmp_path / f"heat.{helpers.ending()}", tmp_path / "c"
    picture.unlink()
    for attempt in range(5):
        number = rng.choice([2, 3, 5])
        resume = ["--resume", "c"] if checkpoint.exists() else []
        every = ["--checkpoint", "c", "--every", 2]
        status, out = killed(
            rng, 1.5, tmp_path, number, helpers.BIN / HEAT, *PLATE, *every, *resume, "--output", picture
        )
        assert picture.exists() or status != 0, out
        if picture.exists():  # a rank can be killed after it has been written
            assert picture.read_bytes() == expected[1]
            picture.unlink()
    resume = ["--resume", "c"] if checkpoint.exists() else []
    assert bits(ranks(rng.choice([2, 3, 5]), *PLATE, *resume, status=0), tmp_path) == expected
