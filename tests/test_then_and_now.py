# SPDX-License-Identifier: MIT
"""Then and now: the figures that bench/then.py reads from the programs, records, and shows in tables."""
import re

import pytest

import helpers
from test_bench import bench, cells  # noqa: F401: a fixture
from trees import stand_in
import then  # bench/, which test_bench adds to the path


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


FACTS = """[figures]
slow = B 1.1 | work on the CPU | 416 ms | Old CPU | chapter05/slow | Time: {} ms
quick = B 1.2 | the same on the GPU | 52 ms | Old GPU
    | chapter05/quick --sweep | Rate {_} of {} MB/s | {} MB/s | 0.5
waived = B 1.3 | on two GPUs | 9 ms | Old GPU | chapter05/waived | Time: {} ms
rung = T | a rung | 4 ms | Old GPU | ladder chapter05/add_ladder 4M | shuffles
bandwidth = | | | | chapter03/enum_gpu | Bandwidth: {} GB/s | {} GB/s
[claims]
speed = B 1.2 | The GPU is faster. | quick < slow | | it is not.
unmeasured = B 1.3 | Two are faster. | waived < slow
[since]
[limits]
units = arithmetic units | 240 | Units: {} | cores
[devices]
[cores]
"""
SLOW = """echo x >>{}/runs; set -- 10 50 30 20 40 10; shift $(($(wc -l <{}/runs) - 1))
echo "Time:  $1.0 ms"; : >picture.png"""


@pytest.fixture
def recorder(bench):  # noqa: F811
    """Scripts instead of the programs. Each run of `slow` prints another time: 10, 50, 30, 20, 40."""
    tree = bench.tree
    (tree / "bench/then.ini").write_text(FACTS)
    gpu = "echo 'Name:    NVIDIA H200'; echo 'Units: 132'; echo 'Bandwidth: unknown'"
    stand_in(tree / "bin/chapter03", "enum_gpu", gpu)
    bench.add("add_ladder", device="NVIDIA H200")
    stand_in(tree / "bin/chapter05", "slow", SLOW.format(tree, tree))
    stand_in(tree / "bin/chapter05", "quick", '[ "$*" = --sweep ] && echo "Rate 1 of 100.0 MB/s"')
    stand_in(tree / "bin/chapter05", "waived", "echo 'needs 2 GPUs, found 1' >&2; exit 2")
    return bench


def shown(recorder, part):
    if part == "Conclusions":
        return cells(recorder.run("--conclusions", script="then.py").out)[2:]
    text = recorder.run("--tables", script="then.py").out.split(f"### {part}\n")[1]
    return cells(text.split("\n### ")[0])[2:]


def test_figures_are_recorded_and_shown(recorder):
    for part, column in ("Figures", 4), ("Conclusions", 3):  # without records nothing is invented
        assert {row[column] for row in shown(recorder, part)} == {"not measured"}
    recorder.run("add_ladder")
    log = recorder.run(script="then.py").out
    assert "chapter05/waived: waived: needs 2 GPUs, found 1" in log
    assert "3 of 4 programs measured, 0 failed; bench/results/nvidia-h200.json" in log
    found = recorder.recorded("nvidia-h200")
    slow = found["figures"]["chapter05/slow"]
    assert slow["values"] == {"slow": [[10], [50], [30], [20], [40]]} and slow["date"]
    assert not list(recorder.tree.glob("**/picture.png"))
    # 4 Mi elements of 4 bytes at 200 GB/s take 83.9 µs
    assert [row[2:6] for row in shown(recorder, "Figures")] == [
        ["416 ms", "Old CPU", "30.0 ms", "not measured"],
        ["52 ms", "Old GPU", "50 MB/s", "not measured"],
        ["9 ms", "Old GPU", "not measured", "not measured"],
        ["4 ms", "Old GPU", "83.9 µs, 200 GB/s", "not measured"],
    ]
    # 52 / 416, and 50 / 30, which is not less
    wanted = [["0.12", "1.67", "**no**: it is not."], ["1/46", "not measured", "not measured"]]
    assert [row[2:5] for row in shown(recorder, "Conclusions")] == wanted


def test_one_program_replaces_its_own_figures(recorder):
    recorder.run(script="then.py")
    stand_in(recorder.tree / "bin/chapter05", "slow", "echo 'Time: 7 ms'")
    stand_in(recorder.tree / "bin/chapter05", "quick", "exit 1")
    recorder.run("slow", script="then.py")
    assert [row[4] for row in shown(recorder, "Figures")][:2] == ["7.00 ms", "50 MB/s"]
    result = recorder.run(script="then.py", status=1)
    assert "chapter05/quick --sweep: FAILED: exit status 1" in result.err
    assert [row[4] for row in shown(recorder, "Figures")][1] == "50 MB/s"
    stand_in(recorder.tree / "bin/chapter05", "slow", "echo 'Time: nan ms'")
    result = recorder.run("slow", script="then.py", status=1)
    assert 'chapter05/slow: FAILED: prints no line such as "Time: {} ms"' in result.err
    assert [row[4] for row in shown(recorder, "Figures")][0] == "7.00 ms"
    result = recorder.run("nonesuch", script="then.py", status=1)
    assert len(result.errors) == 1 and "nonesuch: is not in bench/then.ini" in result.err
