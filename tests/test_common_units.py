# SPDX-License-Identifier: MIT
"""The unit tests of common/ in C and CUDA, tests/common. Each program is a test; it runs its cases in child processes."""


def test_unit(unit, run):
    run(unit, status=0, timeout=300)
