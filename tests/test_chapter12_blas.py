# SPDX-License-Identifier: MIT
"""Chapter 12: linear algebra by cuBLAS, cuSPARSE and cuSOLVER."""
import re


def test_the_three_dot_products_are_equal(run, rng):
    for size in 1, 257, rng.randint(1000, 10**6):
        out = run("chapter12/cublas_dot", "--size", size, "--seed", rng.randrange(10**6), status=0).out
        values = re.findall(r"a \. b = (-?\d+)$", out, re.M)
        assert len(values) == 3 and len(set(values)) == 1
        assert len(re.findall(r": +[\d.]+ ms, [\d.]+ GB/s$", out, re.M)) == 5


def test_products_of_matrices(run, rng):
    """Not square and square; the call with a before b is wrong for both."""
    m, n, k = (rng.randint(5, 130) for _ in range(3))
    seed = ["--seed", rng.randrange(10**6)]
    for m, n, k in (m, n, k), (n, n, n):
        out = run("chapter12/cublas_matmul", "--m", m, "--n", n, "--k", k, *seed, status=0).out
        assert f"Both products of the {m} x {k} and {k} x {n} matrices are right.\n" in out
        says = rf"a before b the call succeeds, and (\d+) of {m * n} elements are wrong\.$"
        wrong = re.search(says, out, re.M)
        assert int(wrong[1]) > m * n / 2


def test_conjugate_gradients(run, rng):
    some = rng.randint(10, 300), rng.randint(4, 100), ["--recompute", rng.randint(1, 60)]
    for size, grid, more in (1, 1, []), some:
        options = ["--size", size, "--grid", grid, "--seed", rng.randrange(10**6), *more]
        out = run("chapter12/conjugate_gradient", *options, status=0).out
        assert f"Dense, {size} unknowns: " in out
        assert f"Sparse, {grid**2} unknowns, {5 * grid**2 - 4 * grid} entries: " in out
        steps = [int(n) for n in re.findall(r"unknowns.*: (\d+) steps,", out)]
        on_host = [int(n) for n in re.findall(r"in double the method takes (\d+) steps", out)]
        assert all(abs(a - b) <= 2 + b / 10 for a, b in zip(steps, on_host, strict=True)) and len(steps) == 2


def test_conjugate_gradients_that_do_not_reach_the_limit(run, rng):
    """A residual that is never computed anew"""
    result = run("chapter12/conjugate_gradient", "--recompute", 0, "--limit", 1e-7, status=1)
    assert re.search(r"^residual: got .*, expected 0, difference at most .*$", result.err, re.M)
    claimed = [float(x) for x in re.findall(r"\|r\| / \|b\| = (\S+) by the loop", result.out)]
    real = [float(x) for x in re.findall(r"\|b - A x\| / \|b\| = (\S+) in double", result.out)]
    assert claimed[1] <= 1e-7 and real[1] > 1e-6


def test_solvers(run, rng):
    """Systems of any size, and a singular matrix, which has no solution."""
    for size, rows in (1, 1), (rng.randint(3, 200), rng.randint(2, 600)):
        options = ["--size", size, "--rows", rows, "--seed", rng.randrange(10**6)]
        out = run("chapter12/linear_solver", *options, status=0).out
        errors = re.findall(r"^(\S+) +largest .*: (\S+) of (\S+)$", out, re.M)
        assert [name for name, _, _ in errors] == ["LU", "QR", "QR", "Q", "SVD", "U", "V^T"]
        assert all(float(error) <= float(allowed) for _, error, allowed in errors)
        constraints = rng.randint(1, (rows + 9) // 10)
        out = run("chapter12/linear_solver", *options, "--constraints", constraints, status=0).out
        assert re.findall(r"^(C x|KKT) +largest .*: \S+ of \S+$", out, re.M) == ["C x", "KKT"]
    k = size // 2 + 1
    result = run("chapter12/linear_solver", "--size", size, "--singular", status=1)
    says = f"devInfo is {k}: element ({k}, {k}) of U is zero, so there is no solution"
    assert result.errors == [f"getrf: {says}"]
