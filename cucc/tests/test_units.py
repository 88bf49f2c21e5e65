# SPDX-License-Identifier: MIT
"""The unit tests of the runtime and the headers: units/*.cu, each file a program that runs each case in a process of its own."""
import re

import pytest

import tools

UNITS = sorted((tools.HERE / "units").glob("*.cu"))
# In any order of threads and blocks, on any number of processors, kernels do the same.
IN_ANY_ORDER = ["atomics", "launch", "nested_launches", "nested_waits", "warp", "wmma"]


def run(program, name, **env):
    result = tools.execute(program, env=env, timeout=300)
    assert result.err == "", str(result)
    cases = re.findall(r"^(?:TEST|TEST_OF)\(", (tools.HERE / f"units/{name}.cu").read_text(), re.M)
    assert result.out == f"{len(cases)} cases, 0 failed\n"


@pytest.mark.parametrize("name", [source.stem for source in UNITS])
def test_unit(unit, name):
    run(unit(name), name)


@pytest.mark.parametrize("name", IN_ANY_ORDER)
def test_unit_in_any_order(unit, rng, name):
    for schedule in "forward", "reverse", f"random:{rng.randrange(1 << 32)}":
        for workers in "1", "8":
            run(unit(name), name, CUDA_CPU_SCHEDULE=schedule, CUDA_CPU_WORKERS=workers)


@pytest.mark.parametrize("name", ["atomics", "graph", "memory"])
def test_unit_whose_memory_is_guarded(unit, name):
    """Only what the cases leave at their end is reported."""
    result = tools.execute(unit(name), env={"CUDA_CPU_CHECK": "1"}, timeout=300, status=None)
    assert not re.search("the host (reads|writes)|illegal|: expected |, status", result.err), str(result)


@pytest.mark.parametrize("name", ["libcudacxx", "wmma"])
def test_unit_of_an_older_standard(unit, name):
    """-O0: what C++14 does not make inline by itself is a symbol that is missing."""
    run(unit(name, "-std=c++14", "-O0"), name)


def test_unit_with_many_processors(unit):
    """A cooperative launch that fills 16 processors: more stacks than there can be mappings with a guard page."""
    run(unit("groups"), "groups", CUDA_CPU_WORKERS="16")
