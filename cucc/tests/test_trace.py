# SPDX-License-Identifier: MIT
"""Recorded launches (CUDA_CPU_TRACE): the data of the kernels in traced.cu, and the picture that trace.py draws."""
import collections
import itertools
import json
import re
import sys
import xml.etree.ElementTree as ElementTree

import pytest

import tools

DRAW, SOURCE = tools.ROOM / "trace.py", tools.HERE / "traced.cu"
TEXT = SOURCE.read_text().splitlines()


def line(comment):
    """The line of the source that ends in this comment"""
    [number] = [n for n, text in enumerate(TEXT, 1) if text.endswith(f"// {comment}")]
    return f"traced.cu:{number}"


LAUNCH = f"the launch of sum at {line('launch of sum')}"


@pytest.fixture
def traced(program):
    """traced(check) -> traced.cu, compiled for checking or not"""
    return lambda check: program(SOURCE, *["--check"] * check)


@pytest.fixture
def trace(traced, tmp_path):
    """trace("kernel=sum,block=3") -> the recorded data."""

    def trace(choice, check=True, **settings):
        settings["CUDA_CPU_TRACE"] = f"x.json,{choice}"
        tools.execute(traced(check), cwd=tmp_path, env=settings)
        return json.loads((tmp_path / "x.json").read_text())

    return trace


def access(data, at, **like):
    """The accesses of a line as one. A compiler that unrolls a loop, as clang++ does, makes several of them."""
    found = [
        a for a in data["launch"]["accesses"] if a["line"] == at and all(a[k] == v for k, v in like.items())
    ]
    sums = {k: sum(a[k] for a in found) for k in ("warp_accesses", "lanes", "turns")}
    return {**found[0], **sums, "most": max(a["most"] for a in found)}


def spans(data, process):
    """The events of a process by thread, in the order of time. Those of a thread must not overlap."""
    rows = collections.defaultdict(list)
    for event in data["traceEvents"]:
        if event["ph"] == "X" and event["pid"] == process:
            rows[event["tid"]].append(event)
    for row in rows.values():
        row.sort(key=lambda e: (e["ts"], e["dur"]))
        for one, two in zip(row, row[1:]):
            assert one["ts"] + one["dur"] <= two["ts"] + 0.002, (one, two)
    return rows


def test_a_sum_halves_its_active_threads_in_each_step(trace):
    data = trace("kernel=sum,block=3")
    launch = data["launch"]
    active = collections.Counter()
    for step in launch["steps"]:
        if step["line"] == line("add"):
            active[step["phase"]] += step["active"]
            assert int(step["lanes"], 16).bit_count() == step["active"]
    assert active == {phase: 256 >> phase for phase in range(1, 9)}
    assert launch["barriers"] == [line("before the loop")] + [line("barrier of the loop")] * 8
    assert launch["barriers_passed"] == 9 and launch["all_steps"]
    assert launch["grid"] == [32, 1, 1] and launch["block"] == [256, 1, 1]
    read = access(data, line("load"), memory="global")
    assert (read["kind"], read["warp_accesses"], read["most"], read["turns"]) == ("read", 8, 4, 32)
    assert read["object"] == "allocated at " + line("all memory of the kernels")
    # Every thread waits at each barrier until the last one arrives.
    waits = spans(data, 2)
    assert len(waits) == 256
    for row in waits.values():
        assert [e["name"].split()[0] for e in row] == ["run", "wait"] * 9 + ["run"]
    for phase in range(9):
        ends = [row[2 * phase + 1]["ts"] + row[2 * phase + 1]["dur"] for row in waits.values()]
        assert max(ends) - min(ends) < 0.002
    assert sorted(e["args"]["first"] for row in spans(data, 1).values() for e in row) == list(range(32))


@pytest.mark.parametrize("launch, turns, words", [(1, 1, 32), (2, 2, 32), (3, 32, 32), (4, 1, 1), (5, 1, 32)])
def test_bank_conflicts_of_strides(trace, launch, turns, words):
    """Stride 1, stride 2, a column, one word for all lanes, and a column of padded rows"""
    read = access(trace(f"kernel=stride,launch={launch}"), line("banks"), memory="shared")
    assert (read["kind"], read["object"], read["lanes"]) == ("read", "words", 32)
    assert read["most"] == read["turns"] == turns
    assert len(set(read["addresses"].values())) == words


def test_sectors_of_rows_and_columns(trace):
    data = trace("kernel=transpose")
    read, write = [access(data, line("transpose"), kind=kind) for kind in ("read", "write")]
    assert (read["most"], read["turns"]) == (4, 4 * 8) and (write["most"], write["turns"]) == (32, 32 * 8)
    assert [write["addresses"][str(i + 1)] - write["addresses"][str(i)] for i in range(31)] == [64 * 4] * 31


def test_paths_join_behind_branches_and_loops(trace):
    launch = trace("kernel=paths")["launch"]
    [atomic] = [a for a in launch["accesses"] if a["kind"] == "atomic"]
    assert atomic["most"] == 24 and atomic["memory"] == "shared" and atomic["object"] == "bins"

    def masks(comment):
        all_masks = [
            int(s["lanes"], 16) for s in launch["steps"] if s["line"] == line(comment) and s["memory"]
        ]
        return [mask for mask, _ in itertools.groupby(all_masks)]

    def lanes(chosen):
        return sum(1 << t for t in range(20) if chosen(t))

    assert masks("not returned") == masks("reconverged") == masks("after the loop") == [lanes(lambda t: True)]
    assert masks("in the function") == [lanes(lambda t: t % 2), lanes(lambda t: t % 4 == 3)]
    assert masks("else") == [lanes(lambda t: t % 2 == 0)]
    assert masks("in the loop") == [lanes(lambda t: i < t // 5 and i < t % 5) for i in range(3)]


def test_blocks_of_unequal_length(trace):
    data = trace("kernel=unequal", check=False)
    rows = spans(data, 1)
    assert sorted(e["args"]["first"] for row in rows.values() for e in row) == list(range(150))
    assert 1 <= len(rows) <= data["launch"]["workers"]  # a worker that starts late may find no block left
    assert len({e["dur"] for row in rows.values() for e in row}) > 1 and "steps" not in data["launch"]
    # In a launch of more than 4096 blocks an event stands for several consecutive blocks; no block is missing.
    data = trace("kernel=unequal,launch=2", check=False)
    events = sorted((e["args"]["first"], e["args"]["last"]) for row in spans(data, 1).values() for e in row)
    assert events[0][0] == 0 and events[-1][1] == 8999 and len(events) < 6000
    assert all(one[1] + 1 == two[0] for one, two in zip(events, events[1:]))
    data = trace("kernel=unequal,launch=2", check=False, CUDA_CPU_SCHEDULE="random:5")
    assert sum(e["args"]["blocks"] for row in spans(data, 1).values() for e in row) == 9000


FORM = "must be FILE.json, optionally followed by ,kernel=NAME ,launch=N ,block=N"
BAD = ["", "x.png", ".json", "x.json,block=", "x.json,block=-1", "x.json,launch=0", "x.json,lane=3"]


@pytest.mark.parametrize(
    "setting, status, says",
    [
        *[(text, 64, f": {FORM}") for text in BAD],
        ("a\nb.svg", 64, f": {FORM}"),
        ("none/x.json", 1, ": cannot write none/x.json: No such file or directory"),
        ("x.json,block=32", 64, f": {LAUNCH} has the blocks 0 to 31"),
        ("x.json,kernel=summ", 64, ": nothing is written, no kernel summ is launched, but"),
        ("x.json,launch=99", 64, ": nothing is written, the number of launches is 10"),
    ],
)
def test_bad_choices(traced, tmp_path, setting, status, says):
    env = {"CUDA_CPU_TRACE": setting}
    err = tools.execute(traced(False), cwd=tmp_path, env=env, status=status).err
    shown = re.escape(setting.replace("\n", "?") + says)
    assert re.match(f"cuda on the CPU: (CUDA_CPU_TRACE=|the trace ){shown}", err)
    assert err.count("\n") == 1 and list(tmp_path.iterdir()) == []


def test_a_file_is_written_whole_or_not_at_all(traced, tmp_path):
    """If the new file cannot be written, the old one is kept. A program without the setting writes nothing."""
    (tmp_path / "x.json").write_text("old")
    command = ["bash", "-c", f'trap "" XFSZ; ulimit -f 1; exec {traced(False)}']
    done = tools.execute(*command, cwd=tmp_path, env={"CUDA_CPU_TRACE": "x.json"}, status=1)
    assert done.err.startswith("cuda on the CPU: cannot write x.json: "), str(done)
    assert (tmp_path / "x.json").read_text() == "old" and len(list(tmp_path.iterdir())) == 1
    assert tools.execute(traced(False), cwd=tmp_path).err == ""


def draw(tmp_path, *arguments, status=0):
    return tools.execute(sys.executable, DRAW, *arguments, cwd=tmp_path, status=status)


def test_a_picture_has_titles_axes_and_legends(traced, tmp_path):
    done = draw(tmp_path, "x.svg,kernel=sum", traced(True))
    assert f"x.json describes {LAUNCH}, and block (0,0,0) of it" in done.err, str(done)
    root, space = ElementTree.parse(tmp_path / "x.svg").getroot(), "{http://www.w3.org/2000/svg}"
    assert root.get("role") == "img" and root.get("aria-labelledby") == "title desc"
    assert root.find(f"{space}title").text == "A launch of the kernel sum"
    assert "@media (prefers-color-scheme: dark)" in (tmp_path / "x.svg").read_text()
    assert "Block (0,0,0) passes 9 barriers." in root.find(f"{space}desc").text
    words = [element.text for element in root.iter(f"{space}text")]
    for needed in (
        "Blocks, on the workers that ran them",
        "Barriers of block (0,0,0): when its warps run and wait",
        "Warps of block (0,0,0): active lanes in each step",
        "Lanes of warp 0",
        "waits at a barrier",
        "Memory accesses of block (0,0,0), by source line",
    ):
        assert needed in words, needed
    assert any(word.startswith("time since the first block began, in ") for word in words)
    # The data can be drawn again. Of an access to shared memory the banks are shown, in a column the turns.
    add = line("add").split(":")[1]
    for setting, source, said in (
        (f"y.svg,warp=7,line={add}", "x.json", "read of cache in shared memory: no bank"),
        ("y.svg", "x.json", "read of global memory: 4 sectors"),
        ("y.svg,kernel=stride,launch=3", traced(True), ">turn 32<"),
    ):
        draw(tmp_path, setting, source)
        assert said in (tmp_path / "y.svg").read_text()


@pytest.mark.parametrize(
    "check, setting, says",
    [
        (True, "x.svg,kernel=sum,warp=8", "x.svg,kernel=sum,warp=8: a block of sum has the warps 0 to 7"),
        (True, "x.svg,line=1", r"line=1: block 0 of sum accesses memory at traced\.cu:\d+, traced\.cu:\d+"),
        (True, "x.png", "x.png: must be FILE.svg or FILE.json"),
        (False, "x.svg,line=9", "x.svg,line=9: lanes and accesses need a program built for checking"),
    ],
)
def test_bad_choices_of_a_picture(traced, tmp_path, check, setting, says):
    done = draw(tmp_path, setting, traced(check), status=64)
    assert re.search(f"^trace.py: {says}", done.err, re.M), str(done)
    assert not (tmp_path / "x.svg").exists()
