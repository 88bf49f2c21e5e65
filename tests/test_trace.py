# SPDX-License-Identifier: MIT
"""Recorded launches (CUDA_CPU_TRACE, --trace): the data of six programs, and the pictures in a browser."""
import collections
import itertools
import json
import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import helpers
from helpers import ROOT
from test_bench import browse, needs_browser

pytestmark = [
    pytest.mark.backend("cpu"),
    pytest.mark.skipif(helpers.sanitized(), reason="cucc has a library of its own, without sanitizers"),
]


def execute(command, folder, **settings):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_CPU_") and k != "DISPLAY"}
    return subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        text=True,
        capture_output=True,
        timeout=600,
        env={**environment, **settings},
    )


@pytest.fixture
def checked(once, variant):
    """checked("chapter05/dot") -> the program, built for checking by cucc."""

    def checked(name):
        def build(folder):
            program = folder / name
            program.parent.mkdir(exist_ok=True)
            done = execute(
                ["cpu/cucc", "--check", f"{name}.cu", variant / "libcommon.a", "-o", program], ROOT
            )
            assert done.returncode == 0, done.stderr
            return program

        return once(name.replace("/", "-") + "-checked", build)

    return checked


@pytest.fixture
def trace(checked, tmp_path):
    """trace("chapter05/dot", "line=41", "--size", 100) -> the recorded data."""

    def trace(name, choice="", *options):
        file = tmp_path / "trace.json"
        setting = f"{file},{choice}" if choice else str(file)
        done = execute([checked(name), *options], tmp_path, CUDA_CPU_TRACE=setting)
        assert done.returncode == 0, done.stderr
        return json.loads(file.read_text())

    return trace


def source_line(name, text):
    """The first line of a program that contains the text, as in "dot.cu:41"."""
    lines = (ROOT / f"{name}.cu").read_text().splitlines()
    number = next(n for n, line in enumerate(lines, 1) if text in line)
    return f"{name.split('/')[1]}.cu:{number}"


def accesses(data, line, **like):
    return [
        a for a in data["launch"]["accesses"] if a["line"] == line and all(a[k] == v for k, v in like.items())
    ]


def access(data, line, **like):
    """The accesses of a line as one. A compiler that unrolls a loop, as clang++ does, makes several instructions of them."""
    all_of_them = accesses(data, line, **like)
    sums = {
        k: sum(a[k] for a in all_of_them if k in a) for k in ("warp_accesses", "lanes", "turns", "sectors")
    }
    return {**all_of_them[0], **sums, "most": max(a["most"] for a in all_of_them)}


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


def test_dot_halves_its_active_threads_in_each_step(trace):
    name, threads, blocks = "chapter05/dot", 256, 32
    data = trace(name, "block=3")
    launch = data["launch"]
    adds = source_line(name, "cache[threadIdx.x] += cache[threadIdx.x + i];")
    active = collections.Counter()
    for step in launch["steps"]:
        if step["line"] == adds:
            active[step["phase"]] += step["active"]
            assert int(step["lanes"], 16).bit_count() == step["active"]
    assert active == {phase: threads >> phase for phase in range(1, 9)}
    # One barrier before the loop, and one in each of its log2(256) iterations
    lines = (ROOT / f"{name}.cu").read_text().splitlines()
    barriers = [f"dot.cu:{n}" for n, line in enumerate(lines, 1) if line.strip() == "__syncthreads();"]
    assert launch["barriers"] == [barriers[0]] + [barriers[1]] * 8 and launch["barriers_passed"] == 9
    assert launch["grid"] == [blocks, 1, 1] and launch["block"] == [threads, 1, 1] and launch["all_steps"]
    # Each warp reads 32 consecutive floats of both vectors, in each iteration of the grid-stride loop.
    both = accesses(data, source_line(name, "temp += a[tid] * b[tid];"), kind="read")
    iterations = 33 * 1024 // (threads * blocks) + 1 * (3 * threads < 33 * 1024 % (threads * blocks))
    assert [a["warp_accesses"] for a in both] == [threads // 32 * iterations] * 2
    assert all(
        a["memory"] == "global" and a["most"] == 4 and a["sectors"] == 4 * a["warp_accesses"] for a in both
    )
    assert len({a["object"] for a in both}) == 2
    # Every thread waits at each barrier until the last one arrives.
    waits = spans(data, 2)
    assert len(waits) == threads
    for row in waits.values():
        assert [e["name"].split()[0] for e in row] == ["run", "wait"] * 9 + ["run"]
    for phase in range(9):
        ends = [row[2 * phase + 1]["ts"] + row[2 * phase + 1]["dur"] for row in waits.values()]
        assert max(ends) - min(ends) < 0.002
    blocks_run = [e["args"]["first"] for row in spans(data, 1).values() for e in row]
    assert sorted(blocks_run) == list(range(blocks))


@pytest.mark.parametrize("launch, turns, words", [(1, 1, 32), (2, 2, 32), (4, 32, 32), (5, 1, 1), (7, 1, 32)])
def test_bank_conflicts_of_strides(trace, launch, turns, words):
    """Stride 1, stride 2, a column, one word for all lanes, and a column of padded rows"""
    name = "chapter05/bank_conflicts"
    line = source_line(name, "at = shared[at];")
    data = trace(name, f"launch={launch},line={line.split(':')[1]}")
    read = access(data, line)
    assert {(a["memory"], a["kind"], a["object"]) for a in accesses(data, line)} == {
        ("shared", "read", "shared")
    }
    assert read["warp_accesses"] == 2 * 512 and read["lanes"] == 32 * 1024
    assert read["most"] == turns and read["turns"] == 1024 * turns
    assert len(set(read["addresses"].values())) == words
    assert "addresses" not in accesses(data, source_line(name, "shared[i] = (i + 1)"))[0]


def test_sectors_of_rows_and_columns(trace):
    name, options = "chapter12/transpose", ("--size", 64, "--height", 64)
    line = source_line(name, "out[x * h + y] = in[y * w + x];")
    data = trace(name, "kernel=transpose_naive", *options)
    read, write = access(data, line, kind="read"), access(data, line, kind="write")
    assert (read["most"], read["sectors"]) == (4, 4 * 32) and (write["most"], write["sectors"]) == (
        32,
        32 * 32,
    )
    assert [write["addresses"][str(i + 1)] - write["addresses"][str(i)] for i in range(31)] == [64 * 4] * 31
    # With a tile in shared memory both accesses to global memory are rows, so they are coalesced. Reading a column of the tile has
    # bank conflicts: 32 turns, 1 with padding.
    from_tile = "out[(left + column) * h + top + threadIdx.x] = tile[threadIdx.x][column];"
    line = source_line(name, from_tile)
    for kernel, turns in ("transpose_tile", 32), ("transpose", 1):
        data = trace(name, f"kernel={kernel}", *options)
        read, write = access(data, line, memory="shared"), access(data, line, memory="global")
        assert (read["kind"], read["most"]) == ("read", turns) and (write["kind"], write["most"]) == (
            "write",
            4,
        )


def test_tiles_of_a_matrix_product(trace):
    name, size, tile = "chapter05/matmul_shared", 64, 32
    data = trace(name, "", "--size", size)
    launch = data["launch"]
    assert launch["barriers_passed"] == 2 * size // tile
    line = source_line(name, "sum += tile_a[y][k] * tile_b[k][x];")
    a, b = [access(data, line, object=o) for o in ("tile_a", "tile_b")]
    # A warp is a row of the tile: it reads one element of a, a broadcast, and a row of b, from 32 banks.
    for one, words in (a, 1), (b, 32):
        assert one["most"] == 1 and len(set(one["addresses"].values())) == words
        assert one["warp_accesses"] == tile * size and one["lanes"] == tile * tile * size
    # Each element of the tiles is read from global memory once.
    for text in "? a[row * n + first + x]", "? b[(first + y) * n + col]":
        read = access(data, source_line(name, text), kind="read", memory="global")
        assert read["lanes"] == size // tile * tile**2 and read["most"] == 4
    # No divergence: all lanes are active in every step.
    assert {s["active"] for s in launch["steps"]} == {32}


def test_lanes_that_diverge(trace):
    name = "chapter05/divergence"
    adds = source_line(name, "cache[t] += cache[t + distance];")
    # Adding neighbours: in each step half as many lanes add, spread over all warps.
    steps = trace(name, "kernel=reduce", "--steps", 3)["launch"]["steps"]
    masks = [s["lanes"] for s in steps if s["line"] == adds and s["warp"] == 0]
    assert masks[:5] == ["55555555", "11111111", "01010101", "00010001", "00000001"]
    assert {s["warp"] for s in steps if s["line"] == adds and s["phase"] == 5} == set(range(8))
    # Adding the second half to the first: all lanes of a warp are active or none, until fewer than 32 threads add.
    steps = trace(name, "kernel=reduce,launch=2", "--steps", 3)["launch"]["steps"]
    masks = [(s["warp"], s["lanes"]) for s in steps if s["line"] == adds]
    assert collections.Counter(lanes for _, lanes in masks) == {
        "ffffffff": 4 + 2 + 1,
        **{f"{(1 << n) - 1:08x}": 1 for n in (16, 8, 4, 2, 1)},
    }
    # 32 paths are executed one after the other, by one lane each; a single path by all lanes.
    loop = source_line(name, "x = x * (8 * path + 13) + path + 1;")
    loops = {loop, source_line(name, "for (int i = 0; i < steps; i++)")}
    for launch, paths in (1, 1), (3, 4), (6, 32):
        steps = trace(name, f"kernel=diverge,launch={launch}", "--steps", 3)["launch"]["steps"]
        masks = [s["lanes"] for s in steps if s["line"] in loops]
        alone = {f"{sum(1 << i for i in range(p, 32, paths)):08x}" for p in range(paths)}
        assert alone <= set(masks) and len([mask for mask in masks if mask in alone]) >= 4 * paths


PATHS = """
__device__ __attribute__((noinline)) int sum(const int *a, int n) {
    int s = 0;
    for (int i = 0; i < n; i++)
        s += a[i]; // in the function
    return s;
}
__device__ int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__global__ void paths(const int *a, int *b) {
    __shared__ int bins[128];
    int t = threadIdx.x;
    atomicAdd(&bins[t % 4 * 32], 1); // 24 lanes, 4 words, 1 bank
    if (t >= 20)
        return;
    int v = a[t]; // not returned
    if (t % 2)
        v += sum(a, t % 4);
    else
        b[t] = 5; // else
    b[t + 32] = v; // reconverged
    for (int i = 0; i < t / 5; i++) {
        if (i == t % 5)
            break;
        b[t] += a[i]; // in the loop
    }
    b[t + 64] = fibonacci(t % 4); // after the loop
}
int main() {
    int *a, *b;
    cudaMalloc(&a, 512);
    cudaMalloc(&b, 512);
    cudaMemset(a, 0, 512);
    cudaMemset(b, 0, 512);
    paths<<<1, 24>>>(a, b);
    return cudaDeviceSynchronize();
}
"""


def test_paths_join_behind_branches_and_loops(tmp_path):
    (tmp_path / "paths.cu").write_text(PATHS)
    done = execute([ROOT / "cpu/cucc", "--check", "paths.cu", "-o", "paths"], tmp_path)
    assert done.returncode == 0, done.stderr
    done = execute(["./paths"], tmp_path, CUDA_CPU_TRACE="paths.json")
    assert done.returncode == 0, done.stderr
    launch = json.loads((tmp_path / "paths.json").read_text())["launch"]
    steps = launch["steps"]
    [atomic] = [a for a in launch["accesses"] if a["kind"] == "atomic"]
    assert atomic["most"] == 24 and atomic["memory"] == "shared" and atomic["object"] == "bins"

    def masks(comment):
        [line] = [f"paths.cu:{n}" for n, text in enumerate(PATHS.splitlines(), 1) if comment in text]
        all_masks = [int(s["lanes"], 16) for s in steps if s["line"] == line and s["memory"]]
        return [mask for mask, _ in itertools.groupby(all_masks)]

    def lanes(chosen):
        return sum(1 << t for t in range(20) if chosen(t))

    everybody = lanes(lambda t: True)
    assert masks("// not returned") == [everybody]
    assert masks("// in the function") == [lanes(lambda t: t % 2), lanes(lambda t: t % 4 == 3)]
    assert masks("// else") == [lanes(lambda t: t % 2 == 0)]
    assert masks("// reconverged") == [everybody]
    assert masks("// in the loop") == [lanes(lambda t: i < t / 5 - 0.9 and i < t % 5) for i in range(3)]
    assert masks("// after the loop") == [everybody]


def test_blocks_of_unequal_length(run, tmp_path, monkeypatch):
    """Each pixel of the Julia set is a block. Its time depends on the number of iterations."""
    monkeypatch.delenv("CUDA_CPU_SCHEDULE", raising=False)
    run("chapter04/julia_gpu", "--size", 60, "--output", "x.ppm", "--trace", "x.json", status=0)
    data = json.loads((tmp_path / "x.json").read_text())
    rows = spans(data, 1)
    assert sorted(e["args"]["first"] for row in rows.values() for e in row) == list(range(3600))
    assert 1 <= len(rows) <= data["launch"]["workers"]  # a worker that starts late may find no block left
    assert data["launch"]["grid"] == [60, 60, 1]
    assert len({e["dur"] for row in rows.values() for e in row}) > 1
    # In a launch of more than 4096 blocks an event stands for several consecutive blocks; no block is missing.
    run("chapter04/julia_gpu", "--size", 150, "--output", "x.ppm", "--trace", "x.json", status=0)
    data = json.loads((tmp_path / "x.json").read_text())
    events = sorted((e["args"]["first"], e["args"]["last"]) for row in spans(data, 1).values() for e in row)
    assert events[0][0] == 0 and events[-1][1] == 150 * 150 - 1 and len(events) < 9000
    assert all(one[1] + 1 == two[0] for one, two in zip(events, events[1:]))
    for order in "reverse", "random:5":
        monkeypatch.setenv("CUDA_CPU_SCHEDULE", order)
        run("chapter04/julia_gpu", "--size", 150, "--output", "x.ppm", "--trace", "x.json", status=0)
        data = json.loads((tmp_path / "x.json").read_text())
        assert sum(e["args"]["blocks"] for row in spans(data, 1).values() for e in row) == 150 * 150
    names = {e["args"]["name"] for e in data["traceEvents"] if e["ph"] == "M"}
    assert "blocks of kernel, launched at " + source_line("chapter04/julia_gpu", "<<<grid, 1>>>") in names


FORM = (
    "must be FILE.svg or FILE.json, optionally followed by ,kernel=NAME ,launch=N ,block=N ,warp=N ,line=N, "
    "such as dot.svg,line=41"
)


def test_one_line_for_a_refusal_and_none_for_help(run, tmp_path):
    """No kernel is launched then. Control characters in a file's name are replaced."""
    for command_line in (["x"], ["--size", -1]):
        result = run("chapter05/dot", "--trace", "x.svg", *command_line, status=64)
        assert len(result.errors) == 1 and "trace" not in result.err, str(result)
        assert (
            len(run("chapter05/dot", *command_line, env={"CUDA_CPU_TRACE": "x.svg"}, status=64).errors) == 1
        )
    assert run("chapter05/dot", "--trace", "x.svg", "--help", status=0).err == ""
    assert list(tmp_path.iterdir()) == []
    result = run("chapter05/dot", "--size", 48, "--trace", "a\nb.svg,kernel=c\rd", status=64)
    assert len(result.errors) == 1 and "a?b.svg,kernel=c?d" in result.err and "\r" not in result.err


@pytest.mark.parametrize(
    "setting, status, says",
    [
        *[
            (text, 64, f"dot: --trace {text or repr('')}: {FORM}")
            for text in (
                "",
                "x.png",
                ".svg",
                "x.svg,block=",
                "x.svg,block=-1",
                "x.svg,launch=0",
                "x.svg,lane=3",
            )
        ],
        ("none/x.svg", 1, "dot: --trace none/x.svg: cannot write none/x.svg: No such file or directory"),
        (
            "x.svg,block=32",
            64,
            "cuda on the CPU: the trace x.svg,block=32: the launch of dot at {} has the blocks 0 to 31",
        ),
        (
            "x.svg,warp=8",
            64,
            "cuda on the CPU: the trace x.svg,warp=8: a block of dot, launched at {}, has the warps 0 to 7",
        ),
        (
            "x.svg,line=41",
            64,
            "cuda on the CPU: the trace x.svg,line=41: lanes and accesses need a program built for checking: "
            "make trace-chapter05/dot",
        ),
        (
            "x.svg,kernel=dott",
            64,
            "cuda on the CPU: the trace x.svg,kernel=dott: nothing is written, no kernel dott is launched, "
            "but dot",
        ),
        (
            "x.svg,launch=2",
            64,
            "cuda on the CPU: the trace x.svg,launch=2: nothing is written, the number of launches is 1",
        ),
    ],
)
def test_bad_choices(run, tmp_path, setting, status, says):
    launched = source_line("chapter05/dot", "dot<<<blocksPerGrid")
    result = run("chapter05/dot", "--trace", setting, status=status)
    assert result.errors == [says.format(launched)]
    assert list(tmp_path.iterdir()) == []


def test_a_line_without_accesses(checked, tmp_path):
    done = execute([checked("chapter05/dot")], tmp_path, CUDA_CPU_TRACE="x.svg,line=1")
    assert done.returncode == 64 and list(tmp_path.iterdir()) == []
    assert re.fullmatch(
        r"cuda on the CPU: the trace x.svg,line=1: block 0 of dot accesses no memory at that line, but at "
        r"dot\.cu:\d+(, dot\.cu:\d+)+\n",
        done.stderr,
    ), done.stderr


def test_a_file_is_written_whole_or_not_at_all(run, tmp_path):
    """If the new file cannot be written, the old one is kept. A program without the option writes nothing."""
    (tmp_path / "x.svg").write_text("old")
    command = f"ulimit -f 1; exec {helpers.BIN}/chapter05/dot --trace x.svg"
    done = execute(["bash", "-c", command], tmp_path)
    assert done.returncode == 1 and done.stderr.startswith(
        "cuda on the CPU: cannot write x.svg: "
    ), done.stderr
    assert (tmp_path / "x.svg").read_text() == "old" and len(list(tmp_path.iterdir())) == 1
    assert run("chapter05/dot", status=0).err == ""
    done = execute([f"{helpers.BIN}/chapter05/dot", "--trace", "x.svg"], tmp_path)
    assert done.returncode == 0 and done.stderr == (
        f"cuda on the CPU: x.svg shows the launch of dot at {source_line('chapter05/dot', 'dot<<<blocksPerGrid')}; "
        "lanes and accesses need a program built for checking: make trace-chapter05/dot\n"
    )
    assert (tmp_path / "x.svg").read_text().endswith("</svg>\n") and len(list(tmp_path.iterdir())) == 1


def drawing(checked, tmp_path):
    """The picture of a launch, drawn by the script of make trace-chapter05/dot"""
    program = checked("chapter05/dot")
    done = execute(
        ["scripts/trace.sh", "chapter05/dot"],
        ROOT,
        BIN=str(program.parent.parent),
        BUILD=str(tmp_path / "build"),
        FILE=str(tmp_path / "dot.svg"),
    )
    assert done.returncode == 0, done.stderr
    return (tmp_path / "dot.svg").read_text()


def contrast(one, two):
    def luminance(color):
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        return np.dot(
            [0.2126, 0.7152, 0.0722],
            [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts],
        )

    bright, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_a_picture_has_titles_axes_and_legends(checked, tmp_path):
    svg = drawing(checked, tmp_path)
    root = ElementTree.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    assert root.get("role") == "img" and root.get("aria-labelledby") == "title desc"
    assert root.find(f"{space}title").text == "A launch of the kernel dot"
    assert "Block (0,0,0) passes 9 barriers." in root.find(f"{space}desc").text
    words = [element.text for element in root.iter(f"{space}text")]
    line = source_line("chapter05/dot", "temp += a[tid] * b[tid];")
    for needed in (
        "Blocks, on the workers that ran them",
        "Barriers of block (0,0,0): when its warps run and wait",
        "Warps of block (0,0,0): active lanes in each step",
        "Lanes of warp 0",
        "steps: a step is a source line that lanes of a warp execute together",
        "waits at a barrier",
        "Memory accesses of block (0,0,0), by source line",
    ):
        assert needed in words, needed
    assert any(word.startswith("time since the first block began, in ") for word in words)
    assert any(
        re.match(r"The memory was allocated at dot\.cu:\d+\. The access with the most", word)
        for word in words
    )
    assert f"{line}, read of global memory: 4 sectors" in words
    for colors in re.findall(r"--paper: [^}]*", svg):
        paper, ink, soft, _, a, b = [
            c if len(c) == 7 else "#" + 2 * c[1] + 2 * c[2] + 2 * c[3]
            for c in re.findall("#[0-9a-f]+", colors)
        ]
        assert min(contrast(paper, c) for c in (ink, soft, a, b)) >= 4.5


SCRIPT = """<script>
const far = [...document.querySelectorAll("text")].filter(t => {
    const box = t.getBBox();
    return box.x < 0 || box.x + box.width > 960 || box.y < 0;
}).map(t => t.textContent);
document.body.dataset.seen = JSON.stringify([document.querySelectorAll("text").length, far]);
</script>"""


@needs_browser
def test_a_picture_in_a_browser(checked, tmp_path):
    svg = drawing(checked, tmp_path)
    dom = browse(tmp_path, svg + SCRIPT, "--dump-dom")
    seen = re.search(r'data-seen="\[(\d+),\[(.*?)\]\]"', dom)
    assert seen and int(seen[1]) > 100 and seen[2] == "", dom[-2000:]
    from PIL import Image

    for dark, paper, mark in (False, (255, 255, 255), (0x0B, 0x57, 0xA4)), (
        True,
        (0x16, 0x16, 0x18),
        (0x8A, 0xB8, 0xF0),
    ):
        picture = tmp_path / "shot.png"
        said = browse(tmp_path, svg, "--window-size=980,1800", f"--screenshot={picture}", dark=dark)
        assert picture.exists(), said
        pixels = np.asarray(Image.open(picture).convert("RGB"))[20:1700, 20:940]
        assert (pixels == paper).all(axis=2).mean() > 0.4 and (pixels == mark).all(axis=2).mean() > 0.05
        picture.unlink()
