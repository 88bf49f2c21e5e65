# SPDX-License-Identifier: MIT
"""Fixtures of the release tests."""
import sys

import pytest

import helpers
import trees

sys.path.insert(0, str(helpers.ROOT / "tests/release/attacks"))


@pytest.fixture
def instrumented(once):
    """The folder of chapter12/memory_bugs and four other programs, built with AddressSanitizer and UndefinedBehaviorSanitizer."""
    programs = ["chapter12/memory_bugs", *trees.SANITIZED]

    def build(folder):
        folders = f"BIN={folder}/bin", f"BUILD={folder}/build"
        sanitize = "BACKEND=cpu", "SANITIZE=address,undefined", *trees.UNOPTIMISED
        status, output = helpers.make(*programs, *sanitize, *folders)
        assert status == 0, output
        return folder / "bin"

    return once("instrumented", build)
