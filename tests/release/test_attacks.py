# SPDX-License-Identifier: MIT
"""The attacks of tests/release/attacks: a small sample of each passes, and each finds a planted defect. CONTRIBUTING.md describes them."""
import dataclasses
import math
import types

import pytest

import faults
import helpers
import mutate
import shared
from mutants import RULER, mutants
from trees import ROOT, stand_in

pytestmark = [
    pytest.mark.backend("cpu"),
    pytest.mark.skipif(
        helpers.sanitized(), reason="an allocator of its own, and other flags of the compiler"
    ),
]
DOT = "chapter05/dot"


@pytest.fixture
def main(rng, capfd):
    """main(faults, "--sample", 6) -> the last line that the attack prints; it must end with status 0."""

    def main(attack, *words):
        seed = [] if attack is mutate else ["--seed", str(rng.randrange(1 << 31))]
        status = attack.main([*map(str, words), "--jobs", "2", *seed])
        out, err = capfd.readouterr()
        assert status == 0, out + err
        return out.splitlines()[-1]

    return main


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """planted(script) -> the program chapter05/dot, in whose place a shell script stands."""

    def planted(script):
        stand_in(tmp_path / "bin/chapter05", "dot", script)
        monkeypatch.setattr(helpers, "BIN", tmp_path / "bin")
        monkeypatch.setenv("EVERYTHING_IS_BUILT", "1")
        return next(p for p in helpers.programs() if p.name == DOT)

    return planted


# ---- faults


def test_a_sample_of_faults(main):
    assert "programs 6, " in main(faults, "--sample", 6)


@pytest.mark.parametrize(
    "script, says",
    [
        ("kill -11 $$", "ended by signal 11"),
        ("echo why >&2; echo half >dot.out; exit 1", "made dot.out"),
        ("exit 1", "no line that says what failed"),
        ("exit 0", "stdout is not complete"),
    ],
)
def test_a_failure_that_is_not_told_is_found(planted, script, says):
    told = 'echo "cuda on the CPU: CUDA_CPU_FAIL=1: x" >&2'
    program = planted(f'[ -z "$CUDA_CPU_FAIL" ] || {{ {told}; {script}; }}\necho right\n')
    walk = faults.Walk(program, types.SimpleNamespace(seed=1, end=math.inf))
    assert walk.attack("calls", 1) and says in walk.defects[0]


# ---- mutate


def test_mistakes_that_must_be_noticed(main):
    main(mutate, "--permanent")


def test_a_mistake_that_nothing_notices_is_found(main):
    """Here it changes nothing."""
    first = mutants((ROOT / f"{DOT}.cu").read_text(), f"{DOT}.cu")[0]
    compilers = {"plain": shared.commands([DOT], f"BIN={helpers.BUILD}/mutate/plain")}
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
