# SPDX-License-Identifier: MIT
"""tests/attacks/mutate.py: programs notice the mistakes that they once did not, and a sample of others."""
import re
import subprocess
import sys

import pytest

import helpers
from trees import ROOT

sys.path.insert(0, str(ROOT / "tests/attacks"))
import mutate  # noqa: E402

pytestmark = [
    pytest.mark.skipif(helpers.backend() != "cpu", reason="needs the CPU back end"),
    pytest.mark.skipif(helpers.sanitized(), reason="compiles its programs with other flags"),
]


def attack(*arguments):
    return subprocess.run(
        [sys.executable, mutate.__file__, *arguments], text=True, capture_output=True, timeout=500
    )


def test_programs_notice_mistakes_that_they_once_did_not():
    done = attack("--permanent")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch(r"permanent mutants: (\d+) in \d+ programs, \1 noticed, 0 not\n", done.stdout)


def test_a_sample(rng):
    seed = str(rng.randrange(1000))
    done = attack("--sample", "3", "--seed", seed, "--own-check", "--again", "chapter03/simple_kernel_params")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"mutate: 1 programs, 3 mutants, .* \(seed {seed}\)$", done.stdout), done.stdout


PROGRAM = """__global__ void kernel(int *a, size_t n) {
    if (threadIdx.x < n)
        a[threadIdx.x] += 2;
    __syncthreads();
    atomicAdd(&a[0], 1);
}
int main() {
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n, cudaMemcpyHostToDevice));
    kernel<<<1, n, 0, stream0>>>(dev_a, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaStreamWaitEvent(stream1, arrived, 0));
    printf("%d", 7 * a[0]); // 8 + 9
    ok = check_ints("a", a, b, 10 + 1);
    double bytes = 2.0 * n;
    for (int i = 0; i < 3; i++)
        printf("%d", a[i]);
}
double add_operations() { return 2.0 * n; }
RULER
int below(int x) { return x + 1; }
"""


def test_the_mutants_of_a_source():
    source = mutate.Source(PROGRAM.replace("RULER", mutate.RULER))
    found = [(m.line, m.change) for m in source.mutants]
    for line, change in [
        (2, "condition never true"),
        (2, "<= for <"),
        (2, "threadIdx.y for threadIdx.x"),
        (3, "index + 1"),
        (3, "-= for +="),
        (3, "2 + 1 for 2"),
        (4, "without __syncthreads();"),
        (5, "plain load and store for atomicAdd"),
        (8, "cudaMemcpyDeviceToHost for cudaMemcpyHostToDevice"),
        (8, "kernel before cudaMemcpy"),
        (9, "without kernel<<<1, n, 0, stream0>>>(dev_a, n);"),
        (9, "stream1 for stream0"),
        (11, "without HANDLE_ERROR(cudaStreamWaitEvent(stream1, arrived, 0));"),
    ]:
        assert (line, change) in found
    assert not {line for line, _ in found} & {
        12,
        *range(13, 22),
    }, "what is printed, the check and the proof have no mutants"


def test_headers_of_a_program():
    """A mutant of matmul.h that matmul_cpu, the first program, does not notice is run in the programs that also include it."""
    assert mutate.headers_of("chapter05/matmul_cpu") == ["chapter05/matmul.h"]
    assert "chapter05/matmul.h" in mutate.headers_of("chapter05/matmul_gmem")
    sources = mutate.sources_of("chapter05/matmul_cpu", ["chapter05/matmul.h"])
    numbers = [m.number for source in sources.values() for m in source.mutants]
    assert numbers == list(range(2, 2 + len(numbers))), "each mutant of a program has a number of its own"


def test_lists_are_well_formed():
    """Each row of equivalent_mutants.txt is about a mutant that exists."""
    for file, change, text, _ in mutate.rows_of("equivalent_mutants.txt", 4):
        path, _, function = file.partition("@")
        files = [p for p in ROOT.glob("*/*.[ch]*") if mutate.matches(path, str(p.relative_to(ROOT)))]
        assert files, f"equivalent_mutants.txt: there is no {path}"
        if "*" not in path:
            source = mutate.Source(files[0].read_text())
            assert any(
                mutate.matches(function or "*", m.function)
                and mutate.matches(change, m.change)
                and mutate.matches(text, m.text)
                for m in source.mutants
            ), f"equivalent_mutants.txt: {file} has no mutant {change!r} at {text!r}"


def test_rows_about_one_function():
    source = mutate.Source(
        "__global__ void __launch_bounds__(256) copy(int *a) {\n    a[0] = 1;\n}\n"
        "static void fill(int *a) {\n    a[0] = 1;\n}\n" + mutate.RULER
    )
    assert {m.function for m in source.mutants} == {"copy", "fill"}
    rows = [["chapter*/x.cu@fill", "*", "a[0] = 1;", "never read"]]
    for m in source.mutants:
        assert mutate.reason_of("chapter03/x.cu", m, rows) == ("never read" if m.function == "fill" else "")


def test_the_statement_of_an_if_changes_places_with_no_other():
    """It would take the statements after it into the condition."""
    source = mutate.Source(
        "int main() {\n    if (large)\n        prepare(dev_a);\n    fill(dev_a);\n    show(dev_a);\n}\n"
        + mutate.RULER
    )
    assert [m.change for m in source.mutants if " before " in m.change] == ["show before fill"]
