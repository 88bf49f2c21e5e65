# SPDX-License-Identifier: MIT
"""Chapter 12: linear algebra by cuBLAS, cuSPARSE and cuSOLVER."""
import re

from helpers import needs


# ---- Vectors


@needs("chapter12/cublas_dot")
def test_the_three_dot_products_are_equal(run, rng):
    for size in [1, 2, 33, 255, 257, 256 * 1024 + 1, rng.randint(1000, 10**6)]:
        out = run("chapter12/cublas_dot", "--size", size, "--seed", rng.randrange(10**6), status=0).out
        values = re.findall(r"a \. b = (-?\d+)$", out, re.M)
        assert len(values) == 3 and len(set(values)) == 1
        assert len(re.findall(r": +[\d.]+ ms, [\d.]+ GB/s$", out, re.M)) == 5
