# SPDX-License-Identifier: MIT
"""The commands that build programs without make, as README and the pages of `make site` show them."""
import os
import re
import shlex

import pytest

import helpers
import programs
from trees import NVCC, copy_sources, needs_nvcc, run

BY_HAND = {p.name: p for p in programs.read_programs()}
BUILDABLE = [p.name for p in helpers.programs() if p.built]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return copy_sources(tmp_path_factory.mktemp("by-hand") / "tree")


def build(tree, name, compiler):
    """Types the command, with the path of this compiler. Returns what it printed."""
    command = programs.by_hand(BY_HAND[name], shlex.quote(compiler))
    log = run(tree, "sh", "-c", command)
    binary = tree / name.split("/")[1]
    assert os.access(binary, os.X_OK)
    return binary, log


@pytest.mark.parametrize("name", BUILDABLE)
def test_with_cucc(name, tree):
    binary, log = build(tree, name, "cucc/cucc")
    assert "warning" not in log and "Usage" in run(tree, binary, "--help")
    binary.unlink()


@needs_nvcc
def test_with_nvcc(tree):
    """One program for each list of options. make compiles the others with nvcc (test_compilers.py)."""
    of_options = {re.sub(r"-o \S+ \S+", "", programs.by_hand(BY_HAND[name])): name for name in BUILDABLE}
    for name in of_options.values():
        build(tree, name, NVCC)
