# SPDX-License-Identifier: MIT
"""Kernels on the CPU back end: the same results whatever the order of threads and blocks and the number
of workers, and out-of-bounds accesses reported at the line of the .cu."""
import re

import pytest

import helpers

pytestmark = pytest.mark.backend("cpu")

SCHEDULES = ["forward", "reverse", *(f"random:{i}" for i in range(10))]


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("schedule", ["forward", "reverse", "random"])
@pytest.mark.parametrize("binary", ["launch", "barrier", "warp", "atomics"])
def test_units_in_any_order(run, rng, binary, schedule, workers):
    if schedule == "random":
        schedule = f"random:{rng.randrange(1 << 32)}"
    run(f"tests/cpu/{binary}", env={"CUDA_CPU_SCHEDULE": schedule, "CUDA_CPU_WORKERS": str(workers)}, status=0)


def test_programs_give_the_same_bits_in_any_order(run, tmp_path, device_program):
    """What a program prints, but for times and rates, and the picture that it writes."""
    def results(schedule):
        folder = tmp_path / schedule.replace(":", "-")
        folder.mkdir()
        result = run(device_program, *device_program.small, cwd=folder, env={"CUDA_CPU_SCHEDULE": schedule})
        text = re.sub(r"\S+ *(ms|us|ns|[kM]Hz|[GM]B/s|GFLOP/s)\b", "", result.out)
        return result.status, text, {p.name: p.read_bytes() for p in folder.iterdir()}

    first = results(SCHEDULES[0])
    assert first[0] == 0
    for schedule in SCHEDULES[1:]:
        assert results(schedule) == first, schedule


@pytest.fixture(scope="module")
def bounds(tmp_path_factory):
    """tests/cpu/bounds, built with AddressSanitizer."""
    if helpers.sanitized("address"):
        return helpers.BIN / "tests/cpu/bounds"
    folder = tmp_path_factory.mktemp("address")
    status, output = helpers.make("tests/cpu/bounds", "BACKEND=cpu", "SANITIZE=address", f"BUILD={folder}/build",
                                  f"BIN={folder}/bin")
    assert status == 0, output
    return folder / "bin/tests/cpu/bounds"


@pytest.mark.parametrize("what", ["global", "static", "dynamic", "variable", "barrier"])
def test_address_sanitizer_names_the_line(run, bounds, what):
    source = (helpers.ROOT / "tests/cpu/bounds.cu").read_text().splitlines()
    line = next(i for i, text in enumerate(source, 1) if text.endswith(f"// line: {what}"))
    result = run(bounds, "past", "--", what, sanitizers=False)
    assert result.status != 0
    # UndefinedBehaviorSanitizer, where it is on too, speaks first of arrays whose length it knows.
    assert re.search(rf"AddressSanitizer.*#0 [^\n]*bounds\.cu:{line}\b|bounds\.cu:{line}:\d+: runtime error: index",
                     result.err, re.S), str(result)


def test_address_sanitizer_is_silent_within_bounds(run, bounds):
    run(bounds, "within_bounds", status=0)
