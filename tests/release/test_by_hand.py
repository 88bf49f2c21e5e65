# SPDX-License-Identifier: MIT
"""The commands that build programs without make, as README and the pages of `make site` show them. make has compiled every source with
the same compilers; what can fail here alone is a line's library, and what a source has in place of a library that it does not find."""
import os
import re
import shlex

import pytest

import helpers
import programs
from trees import NVCC, copy_sources, needs_nvcc, run

# Those that cucc can compile: a build for a GPU has more of them.
MORE = {"npp", "thrust"} if helpers.backend() == "gpu" else set()
BUILDABLE = [p for p in helpers.programs() if p.built and not MORE & set(programs.libraries(p))]
BUILDABLE.sort(key=lambda p: len(p.source))


def of_each_need():
    """The shortest program of each list of needs that add an option, so also of each line that there should be."""
    shortest = {}
    for program in BUILDABLE:
        shortest.setdefault(re.sub(r"(gpus|sm)=\S*|libs=|thrust", "", program.needs).strip(" ,"), program)
    return list(shortest.values())


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return copy_sources(tmp_path_factory.mktemp("by-hand") / "tree")


def build(tree, program, compiler):
    """Types the command, with the path of this compiler and without optimisation, which takes half the time. The files of common/,
    the same in all commands, are compiled once, unless an option is for them too. Returns the binary and what was printed.
    """
    command = programs.by_hand(program, os.path.basename(compiler)).split(" ", 1)[1]
    objects = tree / f"objects of {os.path.basename(compiler)}"
    if not re.search(r" -(D|ccbin)", command):
        if not objects.exists():
            objects.mkdir()
            run(objects, "sh", "-c", f"{shlex.quote(str(tree / compiler))} -O0 -c {tree}/common/lib/[a-z]*.c")
        command = command.replace("common/lib/[a-z]*.c", f"'{objects}'/*.o")
    log = run(tree, "sh", "-c", f"{shlex.quote(compiler)} -O0 {command}")
    assert os.access(tree / program.base, os.X_OK)
    return tree / program.base, log


def test_with_cucc(tree, rng):
    """Those, the programs that are compiled differently without a library, and one at random; BY_HAND=all takes all."""
    others = [p for p in BUILDABLE if re.search(r"^#\s*if.*HAVE_", p.source, re.M)]
    chosen = {*of_each_need(), *others, rng.choice(BUILDABLE)}
    for program in BUILDABLE if os.environ.get("BY_HAND") == "all" else chosen:
        binary, log = build(tree, program, "cucc/cucc")
        assert "warning" not in log and "Usage" in run(tree, binary, "--help"), program
        binary.unlink()


@needs_nvcc
def test_with_nvcc(tree):
    for program in of_each_need():
        build(tree, program, NVCC)
