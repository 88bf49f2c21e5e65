# SPDX-License-Identifier: MIT
"""Fixtures of the release tests."""
import sys

import pytest

import helpers

sys.path.insert(0, str(helpers.ROOT / "tests/release/attacks"))


@pytest.fixture
def instrumented(once):
    """The folder of two programs and the unit test of the options, built with AddressSanitizer and UndefinedBehaviorSanitizer."""
    programs = ["chapter12/memory_bugs", "chapter04/julia_gpu", "tests/common/options"]

    def build(folder):
        folders = f"BIN={folder}/bin", f"BUILD={folder}/build"
        # Halves the time of a build of which only the outcome matters
        unoptimised = "CFLAGS=-O0", "CXXFLAGS=-O0"
        helpers.make(*programs, "BACKEND=cpu", "SANITIZE=address,undefined", *unoptimised, *folders)
        return folder / "bin"

    return once("instrumented", build)
