# SPDX-License-Identifier: MIT
"""What bench/then.py and bench/scaling.py read from the programs. The tables of what they record are compared by test_docs.py."""
import re
import shutil

import pytest

import helpers
import test_bench  # noqa: F401: adds bench/ to the path
import scaling
import then

DOT, HEAT = scaling.DOT, scaling.HEAT


def smaller(command):
    """Arguments that make the run of a command short."""
    large = re.search("/(hist|copy|basic|time|port|hash)", command)
    size = "64K" if large else "64" if "matmul" in command else "48"
    return ["--size", size] if "--size" in helpers.program(command.split()[0]).small else []


@pytest.mark.parametrize("command", then.commands())
def test_the_programs_print_the_figures(command, run):
    """Every line of bench/then.ini is one that its program prints, with numbers."""
    program, *options = command.split()
    if lacks := helpers.lacks(helpers.program(program)):
        pytest.skip(lacks)
    out = run(program, *options, *smaller(command), status=0).out
    figures = then.commands()[command]
    for name, numbers in then.read(figures, out).items():
        assert len(numbers) == dict(figures)[name]["line"].count("{}")
    for name, entry in figures:
        with pytest.raises(then.bench.Failed, match="prints no line such as"):
            then.read([(name, entry)], out.replace(entry["line"].split()[0], "gone"))


def test_the_ladders_have_the_rungs():
    """Every rung of bench/then.ini is in the table of its ladder, which runs with that size, and every figure of a claim exists."""
    figures = then.facts().figures
    ladders = {str(p): p.source for p in helpers.programs() if p.bench}
    for program, size in [entry["ladder"].split() for entry in figures.values() if "ladder" in entry]:
        assert size in then.bench.ladders()[program]
    rungs = [(e["ladder"].split()[0], e["rung"]) for e in figures.values() if "ladder" in e]
    assert len(rungs) >= 9 and [r for r in rungs if f'{{"{r[1]}", ' not in ladders[r[0]]] == []
    for claim in then.facts().claims.values():
        first, _, second = then.terms(claim)
        assert first in figures and (second in figures or second == 2), claim
    assert [row for row in then.facts().since.values() if {row["slow"], row["fast"]} - figures.keys()] == []


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


# ---- docs/scaling.md ----


@pytest.mark.parametrize("name, size", [(DOT, (1000,)), (HEAT, (70, 40, 4))])
def test_what_the_programs_print_is_read(name, size, run):
    """One rank, and two."""
    options = scaling.options(name, size)
    [first, *_] = rows = scaling.read(name, run(name, *options, status=0).out)
    assert first["transport"] is None and all(row["ms"] > 0 for row in rows) and "hidden" not in first
    with pytest.raises(scaling.bench.Failed, match="prints no times"):
        scaling.read(name, "gone")
    if shutil.which("mpirun"):
        command = helpers.ROOT / "scripts/mpirun.sh", "-np", 2, helpers.BIN / name
        out = run(*command, *options, status=0).out
        rows = {row["transport"]: row for row in scaling.read(name, out)}
        row = rows[{DOT: "MPI_Allreduce", HEAT: "host"}[name]]
        assert name == DOT or row["exchange_ms"] > 0 and 0 <= row["hidden"] <= 1
