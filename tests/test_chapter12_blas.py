# SPDX-License-Identifier: MIT
"""Chapter 12: linear algebra by cuBLAS, cuSPARSE and cuSOLVER."""
import re

import pytest

import helpers


def needs(program):
    """Skips a test where the build lacks a library of the program."""
    built = next(p.built for p in helpers.programs() if p.name == f"chapter12/{program}")
    return pytest.mark.skipif(not built, reason=f"{program} needs a library that is not here")


# ---- Vectors


@needs("cublas_dot")
def test_the_three_dot_products_are_equal(run, rng):
    for size in [1, 2, 33, 255, 257, 256 * 1024 + 1, rng.randint(1000, 10**6)]:
        out = run("chapter12/cublas_dot", "--size", size, "--seed", rng.randrange(10**6), status=0).out
        values = re.findall(r"a \. b = (-?\d+)$", out, re.M)
        assert len(values) == 3 and len(set(values)) == 1
        assert len(re.findall(r": +[\d.]+ ms, [\d.]+ GB/s$", out, re.M)) == 5
