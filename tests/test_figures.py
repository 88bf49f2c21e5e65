# SPDX-License-Identifier: MIT
"""What bench/then.py reads from the programs, and which figures are of an older version. test_docs.py compares the tables."""
import re

import pytest

import helpers
import test_bench  # noqa: F401: adds bench/ to the path
import docs  # scripts/, which helpers adds to the path
import report
import results
import then
from test_programs import help_of

# Commands of three seconds or more on the CPU
LONG = re.compile("chapter08/|chapter13/|hashtable|thrust_sort|shmem.* --sweep|--reads")


def check_command(run, command, smaller=()):
    """Every line of bench/then.ini is one that its program prints, with numbers; and the run has the size that is named there, if it gets no
    smaller one."""
    program, *options = command.split()
    if lacks := helpers.lacks(helpers.program(program)):
        pytest.skip(lacks)
    out = run(program, *options, *smaller, status=0, timeout=600).out
    figures, size = then.commands()[command], smaller[1] if smaller else None
    for name, numbers in then.read(figures, out, size).items():
        assert len(numbers) == dict(figures)[name]["line"].count("{}")
    for name, entry in figures:
        with pytest.raises(then.bench.Failed, match="prints no line such as"):
            then.read([(name, entry)], out.replace(entry["line"].split()[0], "gone"), size)
    if sizes := {entry["size"] for _, entry in figures if "size" in entry} - {"none"}:
        default = re.search(r"--size=N .*?\(default (\d+)", help_of(helpers.program(program)), re.S)[1]
        chosen = options[options.index("--size") + 1] if "--size" in options else default
        assert sizes == {str(then.bench.number(chosen))}
        with pytest.raises(then.bench.Failed, match="is not measured with --size 47"):
            then.read(figures, out, "47")


@pytest.mark.parametrize("command", then.commands())
def test_the_programs_print_the_figures(command, run):
    """Where a run takes long, with a small size; tests/release has the full one."""
    small = ["--size", "64" if "matmul" in command else "48"]
    check_command(run, command, small if LONG.search(command) else [])


def test_the_ladders_have_the_rungs():
    """Every rung of bench/then.ini is in the table of its ladder, which runs with that size, and every figure of a claim exists."""
    figures = then.facts().figures
    limits = (helpers.ROOT / "common/bench.h").read_text()
    ladders = {str(p): p.source + limits for p in helpers.programs() if p.bench}
    for program, size in [entry["ladder"].split()[:2] for entry in figures.values() if "ladder" in entry]:
        assert size in then.bench.ladders()[program]
    rungs = [(e["ladder"].split()[0], e["rung"]) for e in figures.values() if "ladder" in e]
    assert len(rungs) >= 9 and [r for r in rungs if f'{{"{r[1]}", ' not in ladders[r[0]]] == []
    for claim in then.facts().claims.values():
        first, _, second = then.terms(claim)
        assert first in figures and (second in figures or second == 2), claim
    for row in then.facts().since.values():
        assert {row["slow"], row["fast"], row["share"], row["best"]} <= {*figures, ""}, row


def test_when_a_conclusion_holds():
    for expect, yes, no in [
        ("hist_cpu < ray", [0.5, 0.95], [0.96, 1.0, 2.0]),
        ("hist_cpu = ray", [0.96, 1.0, 1.04], [0.9, 1.1]),
        ("hist_cpu > ray", [1.05, 4.0], [1.04, 0.5]),
        ("hist_cpu >= ray", [0.96, 1.0, 3.0], [0.9]),
        ("hist_cpu <= ray", [0.1, 1.04], [1.06]),
        ("hist_multiple = 2", [2.0], [1.0, 1.96, 4.0]),
    ]:
        holds = [then.holds({"expect": expect}, ratio) for ratio in yes + no]
        assert holds == [True] * len(yes) + [False] * len(no), expect


FILES = {
    "chapter03/x.cu": """#include "own.h"
#include "../common/dev.h"
int n = 1000; // elements
int main(void) { printf("all: %d", n); }
// --- check
#include "low.h"
bool check(void) { return n > 0; }
void time_kernel(void) { median_ms(run); }
""",
    "chapter03/own.h": "struct Own { int i; };",
    "chapter03/low.h": "float timed(void) { return host_ms(f); } int g(void) { return 3; }",
    "common/dev.h": "__device__ int twice(int i) { return 2 * i; } int one(void) { return 1; }",
}
CHANGES = """x.cu: 1000 -> 1024, counts; x.cu: elements -> numbers; x.cu: all -> sum; x.cu: n > 0 -> n > 1; x.cu: { r ->  {  r
x.cu: (run) -> (walk), counts; own.h: int -> long, counts; low.h: (f) -> (g), counts; low.h: 3 -> 4; dev.h: 2 -> 3, counts; dev.h: 1 -> 2"""


@pytest.mark.parametrize("change", re.split("; |\n", CHANGES))
def test_what_makes_a_figure_one_of_an_older_version(change):
    """Not comments, blanks, messages, checks and functions of the host in common/."""
    name, old, new = re.fullmatch(r"(.*?): (.*) -> (.*?)(?:, counts)?", change).groups()
    [file] = [file for file in FILES if file.endswith(f"/{name}")]
    files = {**FILES, file: FILES[file].replace(old, new, 1)}
    before, after = (results.source_of("chapter03/x", lambda path: of.get(path, "")) for of in (FILES, files))
    assert files != FILES and (before != after) == change.endswith("counts")


def test_figures_of_an_older_version_are_marked():
    """In the tables and where documents quote them; a record without a hash is one of an older version."""
    program, block = "chapter05/dot_ladder", {"source": results.source_hash("chapter05/dot_ladder")}
    assert results.mark(program, block) == "" and results.mark(program, {}) == " †"
    assert results.mark("chapter05/add_ladder", block) == " †" and results.with_legend("1 ms") == "1 ms"
    assert results.with_legend("1 ms †").startswith("† The program has changed")
    row = {"size": 33 << 20, "name": "book", "median_ms": 2.0, "rate": 5, "unit": "GB/s"}
    found = {"backend": "gpu", "figures": {}, "programs": {program: {"rows": [row], **block}}}
    entry = then.facts().figures["dot_book"]
    assert then.cell("dot_book", entry, found) == "2.00 ms, 5.00 GB/s"
    del found["programs"][program]["source"]
    assert then.cell("dot_book", entry, found) == "2.00 ms, 5.00 GB/s †"
    text = "in <!-- figure matmul_cpu -->\n7 ms<!-- end -->."
    assert docs.quoted(text, {"matmul_cpu": "8 ms †"}) == "in <!-- figure matmul_cpu -->8 ms †<!-- end -->."


def test_predictions_for_other_gpus():
    """All are made, and by the slower of two limits."""
    table = report.recorded_part(report.predictions)()
    assert table.count("\n") == 1 + len(report.PREDICTED)
    ms = lambda text: float(text[:-3]) / (1000 if "µ" in text else 1)  # noqa: E731
    (times,) = re.findall(r"^\| heat \| .* \| arithmetic or memory \| (.*?) \|$", table, re.M)
    ratios = [ms(time) / ms(times.split(" | ")[0]) for time in times.split(" | ")]
    assert ratios == pytest.approx([1, 67 / 19.5, 4800 / 1008, 4800 / 205], rel=0.01)
