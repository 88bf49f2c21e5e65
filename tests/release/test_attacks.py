# SPDX-License-Identifier: MIT
"""Mutation testing, attacks/mutate.py: the permanent mutants. CONTRIBUTING.md describes it."""
import sys

import pytest

import helpers

sys.path.insert(0, str(helpers.ROOT / "tests/release/attacks"))
import mutate  # noqa: E402

why = "an allocator of its own, and other flags of the compiler"
pytestmark = [pytest.mark.backend("cpu"), pytest.mark.skipif(helpers.sanitized(), reason=why)]


def test_mistakes_that_must_be_noticed(capfd):
    assert mutate.main(["--permanent", "--jobs", "2"]) == 0, capfd.readouterr()
