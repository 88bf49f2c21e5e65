# SPDX-License-Identifier: MIT
"""Ranks that are killed or slow, and damaged checkpoints."""
import contextlib
import os
import re
import signal
import struct
import subprocess
import time

import helpers
from test_mpi import CHECKPOINT, DOT, JULIA, MPIRUN, PLATE, pytestmark, ranks  # noqa: F401


def killed(rng, seconds, folder, number, program, *args, begun=lambda: True):
    """The status and the output of a program as several processes, one of which gets SIGKILL within some seconds after they have
    started and `begun` is true, unless it has ended before. None of them is left."""
    command = ["-np", number, helpers.BIN / program, *args]
    process = helpers.start(MPIRUN, command, folder, stderr=subprocess.STDOUT)

    def running():
        return [p for p, name in helpers.processes_in(folder).items() if name == program.split("/")[1]]

    try:
        pids = helpers.wait_for(lambda: found if len(found := running()) == number else None, 30)
        helpers.wait_for(begun, 30)
        time.sleep(rng.uniform(0, seconds))
        with contextlib.suppress(ProcessLookupError):
            os.kill(rng.choice(pids), signal.SIGKILL)
        try:
            out, _ = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:  # Open MPI's mpirun rarely hangs when a rank was killed in MPI_Init
            assert not running()
            process.kill()
            out, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    helpers.wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), 30)
    return process.returncode, out


def test_a_killed_rank_ends_all(tmp_path, rng):
    """At a random time, from the start of the processes on."""
    for attempt in range(2):
        status, out = killed(rng, 0.8, tmp_path, 3, DOT, "--size", "128M")
        assert status != 0 and "Does the sum" not in out, out


def test_a_slower_rank_draws_fewer_tiles(ranks):
    """Rank 1 of 2 draws each of its tiles many times. With 200 times, on a GPU that both share with other programs, it drew 144 of the
    tiles."""
    times = 200 if helpers.backend() == "cpu" else 1000
    out = ranks(2, JULIA, "--size", 120, "--tile", 6, "--slower", times, status=0).out
    fast, slow = map(int, re.search(r"^dynamic .* (\d+) (\d+)$", out, re.M).groups())
    assert f"400 tiles, 2 ranks, the last one {times} times slower\n" in out
    assert fast + slow == 400 and slow < 100


def test_wrong_checkpoints(ranks, rng, tmp_path):
    ranks(2, CHECKPOINT, *PLATE, "--checkpoint", "good", status=0)
    good = (tmp_path / "good").read_bytes()
    for path in tmp_path.iterdir():
        path.unlink()

    def flipped(at, bit=1):
        return good[:at] + bytes([good[at] ^ bit]) + good[at + 1 :]

    cell = rng.randrange(len(good) - 67 * 67 * 4, len(good))
    for data, says in [
        (good[: rng.randrange(len(good) // 2, len(good))], "cannot resume from bad: its length is wrong"),
        (good + b"x", "cannot resume from bad: its length is wrong"),
        (b"", "cannot resume from bad: it is not a checkpoint"),
        (good[:20], "cannot resume from bad: it is not a checkpoint"),
        (flipped(0), "cannot resume from bad: it is not a checkpoint"),
        (flipped(15, 128), "cannot resume from bad: its number of steps is negative"),
        (flipped(8), "cannot resume from bad: it is of another version of this program"),
        (flipped(cell), "cannot resume from bad: its checksum is wrong"),
        (flipped(12, 4), "cannot resume from bad: its checksum is wrong"),  # 96 steps, not 100
        (None, "cannot read bad: No such file or directory"),
    ]:
        (tmp_path / "bad").unlink(missing_ok=True)
        if data is not None:
            (tmp_path / "bad").write_bytes(data)
        assert ranks(2, CHECKPOINT, *PLATE, "--resume", "bad", status=1).err == f"heat_checkpoint: {says}\n"
    assert os.listdir(tmp_path) == []
    os.mkfifo(tmp_path / "pipe")
    for file in "pipe", "/dev/zero", ".":
        result = ranks(2, CHECKPOINT, *PLATE, "--resume", file, status=1)
        assert result.err == f"heat_checkpoint: cannot read {file}: it is not a regular file\n"
    long = "l" * 255  # more than the array that Open MPI has for a path
    (tmp_path / long).write_bytes(good)
    for option, what, name in (
        ("--resume", "read", long),
        ("--checkpoint", "write", long),
        ("--checkpoint", "write", long[:200]),
    ):
        result = ranks(2, CHECKPOINT, *PLATE, option, name, status=1)
        assert result.err == f"heat_checkpoint: cannot {what} {name}: its path has more than 240 characters\n"
    (tmp_path / "good").write_bytes(good)
    for args, says in [
        (["--size", 62], "it is of a plate of 67 columns and 67 rows, not of 62 and 62"),
        (["--iterations", 99], "it has taken more steps than --iterations"),
    ]:
        result = ranks(2, CHECKPOINT, *PLATE, *args, "--resume", "good", status=1)
        assert result.err == f"heat_checkpoint: cannot resume from good: {says}\n"
    for file, why in ("/dev/full", "MPI_ERR"), ("/none/x", "No such"):
        says = f"heat_checkpoint: cannot write {file}: {why}"
        assert ranks(2, CHECKPOINT, *PLATE, "--checkpoint", file, status=1).err.startswith(says)


def test_a_rank_killed_while_a_checkpoint_is_written(ranks, rng, tmp_path):
    """The checkpoint before it stays good: the next run goes on from it. KILLS=100 is the long run of CONTRIBUTING.md."""
    endless, path = ["--size", 67, "--iterations"], tmp_path / "c"
    every = [*endless, 1000000, "--checkpoint", "c"]
    for kill in range(int(os.environ.get("KILLS", 4))):
        before = path.read_bytes() if path.exists() else b""
        resume = ["--resume", "c"] if before else []

        def begun():
            new = path.exists() and path.read_bytes() != before
            return new and [*tmp_path.glob(".unfinished-*")]

        number, command = rng.choice([2, 3]), [CHECKPOINT, *every, *resume]
        status, out = killed(rng, 0.02, tmp_path, number, *command, begun=begun)
        assert status != 0 and "cannot" not in out, out
        for left in tmp_path.glob(".unfinished-*"):  # SIGKILL leaves it
            left.unlink()
    (steps,) = struct.unpack_from("<i", path.read_bytes(), 12)
    plain = ranks(2, CHECKPOINT, *endless, steps, status=0).out
    resumed = ranks(2, CHECKPOINT, *endless, steps, "--resume", "c", status=0).out
    assert plain.splitlines()[-2:] == resumed.splitlines()[-2:] and "Checksum of all" in plain
