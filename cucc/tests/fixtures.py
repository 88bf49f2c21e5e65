# SPDX-License-Identifier: MIT
"""Fixtures for every folder of tests: random numbers that can be repeated, and results that are made once for all processes."""
import fcntl
import os
import pickle
import random

import pytest


def choose_seed():
    """Inputs differ from run to run; TEST_SEED=N repeats a run. pytest-xdist's workers inherit it."""
    os.environ.setdefault("TEST_SEED", str(random.SystemRandom().randrange(1 << 31)))


@pytest.fixture
def rng(request):
    """Random numbers that differ between tests and between runs, and repeat with TEST_SEED."""
    return random.Random(f"{os.environ['TEST_SEED']} {request.node.nodeid}")


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """once("name", function) -> the result of function(folder), which is called once per session and shared by all tests and
    all processes of pytest-xdist. The folder is kept. A call that fails is repeated by the next test."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent

    def once(name, function):
        folder = shared / "once" / name
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder.with_name(folder.name + ".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            kept = folder.with_name(folder.name + ".result")
            if not kept.exists():
                kept.write_bytes(pickle.dumps(function(folder)))
            return pickle.loads(kept.read_bytes())

    return once
