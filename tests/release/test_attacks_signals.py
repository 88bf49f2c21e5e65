# SPDX-License-Identifier: MIT
"""tests/attacks/signals.py: a sample of the attack, and that it notices what it is for."""
import dataclasses
import signal
import sys

import pytest

import helpers

sys.path.insert(0, str(helpers.ROOT / "tests/attacks"))
import signals  # noqa: E402

PICTURE = signals.Job("chapter04/julia_cpu", "--size 200 --output a.ppm", "a.ppm")


def test_a_sample_of_signals(capfd, rng):
    programs = "chapter04/julia_cpu", "chapter05/ripple", "chapter10/basic_single_stream"
    words = ["--signals", "24", "--seed", str(rng.randrange(1 << 31)), *programs]
    assert signals.main(words) == 0, capfd.readouterr().out
    assert "signals.py: signals 24, programs 3, " in capfd.readouterr().out


@pytest.mark.parametrize(
    "files, number, status, problem",
    [
        ({"a.ppm": b"whole"}, signal.SIGINT, 0, None),
        ({"a.ppm": signals.OLD}, signal.SIGINT, -2, None),
        ({"a.ppm": b"who"}, signal.SIGINT, -2, "a.ppm has 3 bytes"),
        ({"a.ppm": signals.OLD}, signal.SIGINT, 0, "a.ppm has 16 bytes"),
        ({}, signal.SIGTERM, -15, "a.ppm is missing"),
        ({"a.ppm": b"whole", "b.ppm": b""}, signal.SIGTERM, -15, "b.ppm, which the program does not write"),
        (
            {"a.ppm": b"whole", ".unfinished-abcdef.tmp": b""},
            signal.SIGHUP,
            -1,
            "left .unfinished-abcdef.tmp",
        ),
        ({"a.ppm": b"whole", ".unfinished-abcdef.tmp": b""}, signal.SIGKILL, -9, None),
    ],
)
def test_what_a_signal_must_not_leave(tmp_path, files, number, status, problem):
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    job = dataclasses.replace(PICTURE, expected={"a.ppm": b"whole"})
    if problem is None:
        signals.check_files(job, tmp_path, number, status, "", True)
        return
    with pytest.raises(signals.Defect, match=problem):
        signals.check_files(job, tmp_path, number, status, "", True)
