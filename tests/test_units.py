# SPDX-License-Identifier: MIT
"""The unit tests in C, C++ and CUDA under tests/common, tests/constructs and tests/cpu, each case a test."""


def test_unit(unit, run):
    binary, case = unit
    result = run(binary, case, timeout=300)
    assert result.status == 0 and case != "--list", str(result)
