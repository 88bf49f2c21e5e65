# SPDX-License-Identifier: MIT
"""Mutation testing, attacks/mutate.py: the permanent mutants. CONTRIBUTING.md describes it."""
import dataclasses

import pytest

import helpers
import mutate
from mutants import RULER, mutants
from trees import ROOT

pytestmark = [
    pytest.mark.backend("cpu"),
    pytest.mark.skipif(
        helpers.sanitized(), reason="an allocator of its own, and other flags of the compiler"
    ),
]
DOT = "chapter05/dot"


def test_mistakes_that_must_be_noticed(capfd):
    assert mutate.main(["--permanent", "--jobs", "2"]) == 0, capfd.readouterr()


def test_a_mistake_that_nothing_notices_is_found():
    """Here it changes nothing."""
    first = mutants((ROOT / f"{DOT}.cu").read_text(), f"{DOT}.cu")[0]
    compilers = {"plain": mutate.commands([DOT], f"BIN={helpers.BUILD}/mutate/plain")}
    stages = {DOT: [mutate.Stage("own check", "plain", [], seconds=1)]}
    for change, by in ([], "survived"), ([(0, 0, "#error\n")], "does not compile"):
        mutant = dataclasses.replace(first, replacements=change)
        assert mutate.attack((mutant, [DOT], stages, compilers)) == (mutant, by)


PROGRAM = """__global__ void kernel(int *a) {
    a[threadIdx.x] -= 2;
    __syncthreads();
}
int main() {
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n, cudaMemcpyHostToDevice));
    kernel<<<1, n, 0, stream0>>>(dev_a, n);
    if (large)
        prepare(dev_a);
    show(dev_a);
    printf("%d", 7 * a[0]); // 8 + 9
    ok = check_ints("a", a, b, 10 + 1);
}
"""


def test_the_mutants_of_a_source():
    """Those of which permanent_mutants.txt has none, and what has none."""
    found = {(m.line, m.change) for m in mutants(f"{PROGRAM}{RULER}\nint below(int x) {{ return x + 1; }}\n")}
    wanted = {(2, "+= for -="), (2, "2 + 1 for 2"), (3, "without __syncthreads();")}
    wanted |= {(6, "kernel before cudaMemcpy"), (7, "stream1 for stream0")}
    assert wanted <= found
    assert max(line for line, _ in found) == 10, "what is printed, the check and the proof have no mutants"
    assert not any("show before" in change for _, change in found), "it would come into the condition"
