# SPDX-License-Identifier: MIT
"""The table of mistakes in README.md: each cell is what a run of mistakes.cu says, or its compilation."""
import re

import pytest

import tools

ROWS = re.search(r"## Mistakes\n.*?\|---\|.*?\n(.*?)\n\n", (tools.ROOM / "README.md").read_text(), re.S)[
    1
].splitlines()
# The mistake's number for each row; 0: it is not compiled. The status of the plain run, and with --check.
RUNS = [
    (1, 1, 1),
    (2, 1, 1),
    (3, 0, 1),
    (4, 0, 1),
    (10, 0, 1),
    (5, 0, 1),
    (6, 0, 1),
    (7, 0, 1),
    (8, 1, 1),
    (9, 0, 0),
    (0, 1, 1),
]


def says(cell, plain):
    """The pattern of the messages in a cell"""
    quoted = re.findall("`(.*?)`", plain if cell == "the same" else cell)
    return [re.escape(text).replace("…", ".*").replace("N", "[0-9]+") for text in quoted]


def check(result, patterns):
    at = 0
    for pattern in patterns:
        found = re.compile(pattern).search(result.err, at)
        assert found, f"{pattern}\n{result}"
        at = found.end()
    assert patterns or result.err == "", str(result)


@pytest.mark.parametrize("row", range(len(ROWS)))
def test_a_mistake(program, row):
    _, what, plain, checked, _ = [cell.strip() for cell in re.split(r"(?<!\\)\|", ROWS[row])]
    number, *statuses = RUNS[row]
    for options, cell, status in ([], plain, statuses[0]), (["--check"], checked, statuses[1]):
        if number:
            result = tools.execute(program(tools.HERE / "mistakes.cu", *options), number, status=status)
        else:
            result = tools.cucc(
                *options, "-DCALLED", "-c", tools.HERE / "mistakes.cu", "-o", "/dev/null", status=status
            )
        check(result, says(cell, plain))
    assert row + 1 < len(RUNS) or len(ROWS) == len(RUNS)


@pytest.mark.parametrize("options", [[], ["--check"]])
def test_no_mistake(program, options):
    assert tools.execute(program(tools.HERE / "mistakes.cu", *options), 0).err == ""


def test_a_kernel_is_named_before_its_errors(tmp_path):
    text = "template <class T> __global__ void __launch_bounds__(64) fill(T *p)\n{\n    { *p = x; }\n}\n"
    text += "__global__ void use(int *p) { *p = y; }\nint main() { fill<<<1, 1>>>((int *)0); auto f = [] { return z; }; }\n"
    said = tools.compiled(tmp_path, text, "-o", "main", status=1).err
    before = [re.search(rf"(.*)\nmain.cu:.*\b{name}\b.* (?:not|undeclared)", said)[1] for name in "xyz"]
    if not tools.CLANG:
        assert before == [
            f"main.cu: In {what}:" for what in ("kernel fill", "kernel use", "lambda function")
        ], said
