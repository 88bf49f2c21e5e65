# SPDX-License-Identifier: MIT
"""tests/attacks/locks.py: a sample of the attack, and mistakes that it must find."""
import pathlib
import random
import sys

import pytest

import helpers

sys.path.insert(0, str(helpers.ROOT / "tests/attacks"))
import locks  # noqa: E402

pytestmark = pytest.mark.skipif(helpers.backend() != "cpu", reason="needs the CPU back end")


def test_a_sample_of_the_runs(rng, capfd):
    """Two runs under each schedule"""
    programs = [p for p in locks.PROGRAMS if p not in locks.LONG]
    assert locks.attack(programs, 2, random.Random(rng.random()), jobs=1) == (2, 0), capfd.readouterr().err


def test_a_wrong_run_is_counted(monkeypatch, capfd):
    monkeypatch.setitem(locks.PROGRAMS, "appendix_a/dot", {"size": (100,), "inject-error": (True,)})
    assert locks.attack(["appendix_a/dot"], 1, random.Random(1), jobs=1) == (1, 9)
    assert "bin/appendix_a/dot --size 100 --inject-error: status 1" in capfd.readouterr().err


@pytest.mark.skipif(helpers.sanitized(), reason="cucc has a library of its own, without sanitizers")
def test_the_race_detector_finds_a_missing_lock_and_a_missing_fence(monkeypatch, rng, capfd):
    monkeypatch.setattr(locks, "MISTAKES", locks.MISTAKES[:2])
    assert locks.mistakes(["check"], rng) == (2, 2), capfd.readouterr().err


@pytest.mark.skipif(helpers.sanitized(), reason="cucc has a library of its own, without sanitizers")
def test_a_mistake_that_nothing_reports_is_named(monkeypatch, rng, capfd):
    monkeypatch.setattr(locks, "MISTAKES", locks.MISTAKES[:1])
    monkeypatch.setattr(locks, "compile_copy", lambda *_: pathlib.Path("/bin/true"))
    assert locks.mistakes(["check"], rng) == (1, 0)
    assert (
        "a sum without its lock (appendix_a/dot): the detector check reports nothing"
        in capfd.readouterr().err
    )
