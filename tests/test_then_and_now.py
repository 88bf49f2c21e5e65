# SPDX-License-Identifier: MIT
"""docs/then-and-now.md: the figures that bench/then.py reads from the programs, records, and shows in tables."""
import json
import re
import subprocess
import sys

import pytest

import helpers
from test_bench import printed, rows_of
from trees import ROOT, copy_sources, environment, run as run_in, stand_in

sys.path.insert(0, str(ROOT / "bench"))
import then  # noqa: E402

PARTS = ["figures", "claims", "limits", "devices"]


def section(path, name):
    return (
        path.read_text().split(f"<!-- {name}:begin", 1)[1].split("-->\n", 1)[1].split(f"<!-- {name}:end")[0]
    )


@pytest.mark.parametrize("part", PARTS)
def test_the_tables_are_fresh(part):
    text = run_in(ROOT, sys.executable, "bench/then.py", f"--{part}", RESULTS="")
    assert section(ROOT / "docs/then-and-now.md", part) == text, "stale: run make docs"


def smaller(command):
    """Arguments that make the run of a command short."""
    program = next((p for p in helpers.programs() if str(p) == command.split()[0]), None)
    options = program.own_options if program else []
    small = {
        "matmul": 64,
        "heat": 48,
        "hist": "64K",
        "copy": "64K",
        "basic": "64K",
        "time": "64K",
        "port": "64K",
        "hash": "64K",
    }
    size = next((value for key, value in small.items() if f"/{key}" in command), 48)
    return ["--size", str(size)] if "size" in options else []


@pytest.mark.parametrize("command", then.commands())
def test_the_programs_print_the_figures(command, run):
    """Every line of bench/then.ini is one that its program prints, with numbers."""
    program, *options = command.split()
    known = [p for p in helpers.programs() if str(p) == program]
    if not known or not known[0].built:
        pytest.skip(f"{program} is not built here")
    if helpers.devices() < known[0].gpus:
        pytest.skip(f"needs {known[0].gpus} GPUs")
    out = run(program, *options, *smaller(command), status=0).out
    figures = then.commands()[command]
    for name, numbers in then.read(figures, out).items():
        assert len(numbers) == dict(figures)[name]["line"].count("{}")
    for name, entry in figures:
        with pytest.raises(then.bench.Failed, match="prints no line such as"):
            then.read([(name, entry)], out.replace(entry["line"].split()[0], "gone"))


def test_the_ladders_have_the_rungs():
    """Every rung of bench/then.ini is in the table of its ladder, and every figure of a claim exists."""
    figures = then.entries("figure")
    ladders = {str(p): p.source for p in helpers.programs() if p.bench}
    rungs = [(e["ladder"].split()[0], e["rung"]) for e in figures.values() if "ladder" in e]
    assert len(rungs) >= 9 and [r for r in rungs if f'{{"{r[1]}", ' not in ladders[r[0]]] == []
    for claim in then.entries("claim").values():
        assert all(name in figures for name in claim["ratio"].split(" / "))


@pytest.mark.parametrize(
    "line, out, numbers",
    [
        ("Time to generate: {} ms", "Time to generate:  416.5 ms, 1.0 GB/s", ["416.5"]),
        ("A: {_} ms up, {} ms", "A:  1.5 ms up,\n    2e-05 ms", ["2e-05"]),
        ("Sizes: ({}, {})", "Sizes:   (12, 34)", ["12", "34"]),
        ("Time: {} ms", "Time: none ms", None),
        ("a.b {}", "axb 1", None),
    ],
)
def test_lines(line, out, numbers):
    match = re.search(then.pattern(line), out)
    assert (list(match.groups()) if match else None) == numbers


@pytest.mark.parametrize(
    "expect, yes, no",
    [
        ("less", [0.5, 0.95], [0.96, 1.0, 2.0]),
        ("same", [0.96, 1.0, 1.04], [0.9, 1.1]),
        ("more", [1.05, 4.0], [1.04, 0.5]),
        ("not less", [0.96, 1.0, 3.0], [0.9]),
        ("not more", [0.1, 1.04], [1.06]),
        ("2", [2.0], [1.0, 4.0]),
    ],
)
def test_when_a_conclusion_holds(expect, yes, no):
    assert [then.holds(expect, ratio) for ratio in yes + no] == [True] * len(yes) + [False] * len(no)


FACTS = """[figure slow]
text = B 1.1
work = work on the CPU
then = 416 ms
machine = Old CPU
run = chapter05/slow
line = Time: {} ms

[figure quick]
text = B 1.2
work = the same on the GPU
then = 52 ms
machine = Old GPU
run = chapter05/quick --sweep
line = Rate {_} of {} MB/s
scale = 0.5
show = {} MB/s

[figure waived]
text = B 1.3
work = on two GPUs
then = 9 ms
machine = Old GPU
run = chapter05/waived
line = Time: {} ms

[claim speed]
text = B 1.2
says = The GPU is faster.
ratio = quick / slow
expect = less
why = it is not.

[claim unmeasured]
text = B 1.3
says = Two are faster.
ratio = waived / slow
expect = less

[limit blocks]
what = blocks
then = 65535
line = Grid: {}

[limit units]
what = arithmetic units
then = 240
line = Units: {}

[figure bandwidth]
run = chapter03/enum_gpu
line = Bandwidth: {} GB/s
show = {} GB/s
"""


@pytest.fixture
def tree(tmp_path):
    """A copy of the tree with scripts instead of programs, and its records in results/."""
    tree = copy_sources(tmp_path / "tree", ["chapter03/hello_world"])
    (tree / "bench/then.ini").write_text(FACTS)
    stand_in(tree / "tools", "nvidia-smi", "exit 1")
    stand_in(
        tree / "bin/chapter03",
        "enum_gpu",
        "echo 'Name:    NVIDIA H200'; echo 'Grid: 2147483647'; echo 'Units: 132'; echo 'Bandwidth: unknown'",
    )
    # Each run prints another time: 10, 50, 30, 20, 40.
    stand_in(
        tree / "bin/chapter05",
        "slow",
        f'echo x >>{tree}/runs; set -- 10 50 30 20 40 10; shift $(($(wc -l <{tree}/runs) - 1)); echo "Time:  $1.0 ms"; : >picture.png',
    )
    stand_in(tree / "bin/chapter05", "quick", '[ "$*" = --sweep ] && echo "Rate 1 of 100.0 MB/s"')
    stand_in(tree / "bin/chapter05", "waived", "echo 'needs 2 GPUs, found 1' >&2; exit 2")
    return tree


def record(tree, *programs, status=0):
    return run_in(
        tree,
        sys.executable,
        "bench/then.py",
        *programs,
        status=status,
        BIN="bin",
        BACKEND="gpu",
        RESULTS="results",
        COMMIT="abc",
        PATH=f"{tree}/tools:{environment()['PATH']}",
    )


def cells(tree, part):
    text = run_in(tree, sys.executable, "bench/then.py", f"--{part}", RESULTS="results")
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")][2:]


def test_figures_are_recorded_and_shown(tree):
    log = record(tree)
    assert "chapter05/waived: waived: needs 2 GPUs, found 1" in log
    assert "3 of 4 programs measured, 0 failed; results/nvidia-h200.json" in log
    found = json.loads((tree / "results/nvidia-h200.json").read_text())
    assert (found["device"], found["backend"], found["programs"]) == ("NVIDIA H200", "gpu", {})
    slow = found["figures"]["chapter05/slow"]
    assert slow["values"] == {"slow": [[10], [50], [30], [20], [40]]} and slow["commit"] == "abc"
    assert not list(tree.glob("**/picture.png"))
    rows = cells(tree, "figures")
    assert [row[2:6] for row in rows] == [
        ["416 ms", "Old CPU", "30.0 ms", "not measured"],
        ["52 ms", "Old GPU", "50 MB/s", "not measured"],
        ["9 ms", "Old GPU", "not measured", "not measured"],
    ]
    # 52 / 416, and 50 / 30, which is not less
    assert [row[2:5] for row in cells(tree, "claims")] == [
        ["0.12", "1.67", "**no**"],
        ["1/46", "not measured", "not measured"],
    ]
    text = run_in(tree, sys.executable, "bench/then.py", "--claims", RESULTS="results")
    assert text.endswith("\n- B 1.2: The GPU is faster. Today: it is not.\n")
    assert cells(tree, "limits")[0] == ["blocks", "65535", "2147483647", "not measured"]
    assert cells(tree, "devices")[-1][:3] == ["NVIDIA H200", "132", "not measured"]


def test_one_program_replaces_its_own_figures(tree):
    record(tree)
    stand_in(tree / "bin/chapter05", "slow", "echo 'Time: 7 ms'")
    stand_in(tree / "bin/chapter05", "quick", "exit 1")
    record(tree, "chapter05/slow")
    assert [row[4] for row in cells(tree, "figures")] == ["7.00 ms", "50 MB/s", "not measured"]
    log = record(tree, status=1)
    assert "chapter05/quick --sweep: FAILED: exit status 1" in log
    assert [row[4] for row in cells(tree, "figures")][1] == "50 MB/s"
    stand_in(tree / "bin/chapter05", "slow", "echo 'Time took 7 ms'")
    assert 'chapter05/slow: FAILED: prints no line such as "Time: {} ms"' in record(
        tree, "chapter05/slow", status=1
    )
    assert "nonesuch: is not in bench/then.ini" in record(tree, "nonesuch", status=1)


def test_a_ladder_is_measured_when_its_row_is_not_recorded(tree):
    """The record keeps its other sizes; a row that is recorded is not measured again."""
    facts = "[figure rung]\ntext = T\nwork = a rung\nthen = 4 ms\nmachine = Old GPU\nladder = chapter05/add_ladder 4M\nrung = shuffles\n"
    (tree / "bench/then.ini").write_text(facts + FACTS)
    header = (tree / "chapter03/hello_world.cu").read_text().replace("hello_world", "add_ladder")
    header = header.replace("Book:    3.2.1", "Book:    5.3").replace(" */\n", " * Bench:   1M\n */\n", 1)
    (tree / "chapter05/add_ladder.cu").write_text(header + '#include "../common/bench.h"\n')
    for size in 1 << 20, 4 << 20:
        (tree / f"{size}.json").write_text(printed(rows_of(size), device="NVIDIA H200"))
    stand_in(tree / "bin/chapter05", "add_ladder", f"echo $3 >>{tree}/sizes; cat {tree}/$3.json")
    record(tree)
    record(tree)
    assert (tree / "sizes").read_text().split() == ["1048576", "4194304"]
    # 4 Mi elements of 4 bytes at 200 GB/s
    assert cells(tree, "figures")[0][4] == "83.9 µs, 200 GB/s"
    rows = json.loads((tree / "results/nvidia-h200.json").read_text())["programs"]["chapter05/add_ladder"][
        "rows"
    ]
    assert {row["size"] for row in rows} == {1 << 20, 4 << 20}


def test_nothing_is_invented(tree):
    """Without records every figure of today is missing."""
    for part, column in ("figures", 4), ("claims", 3), ("limits", 2):
        assert {row[column] for row in cells(tree, part)} == {"not measured"}


def test_what_make_measures():
    """make then-and-now and a whole make bench measure the figures, a part of make bench does not."""

    def figures(*goals, **settings):
        out = run_in(
            ROOT, "scripts/configure.sh", *goals, BACKEND="cpu", TARGETS="bench then-and-now", **settings
        )
        assert " measured" in f" {re.search('^BUILD_GOALS := (.*)', out, re.M)[1]}"
        return re.search("^FIGURES := (.*)", out, re.M)[1].split()

    programs = {command.split()[0] for command in then.commands()}
    assert programs < set(figures("then-and-now")) and figures("bench") == figures("then-and-now")
    assert (
        figures("bench", CHAPTER="05") == figures("bench", SIZES="1M") == figures("bench", COMPARE="1") == []
    )
