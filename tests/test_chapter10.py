# SPDX-License-Identifier: MIT
"""Chapter 10: copies and kernels in streams with many sizes of chunks, and their timelines."""
import re
import resource
import xml.etree.ElementTree as xml

import pytest

import helpers

STREAMS = {"basic_single_stream": 1, "basic_double_stream": 2, "basic_double_stream_correct": 2}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(params=STREAMS)
def name(request):
    return request.param


def parts(tmp_path, path="timeline.svg"):
    """(part, stream, start, end) of each bar of an SVG timeline; times in ms."""
    root = xml.parse(tmp_path / path).getroot()
    assert root.tag == SVG + "svg"
    bars = []
    for bar in root.iter(SVG + "rect"):
        if (title := bar.find(SVG + "title")) is not None:
            what, start, end = re.fullmatch(
                r"(copy up|kernel|copy down), ([\d.]+) to ([\d.]+) ms", title.text
            ).groups()
            bars.append((what, (int(bar.get("y")) - 64) // 36, float(start), float(end)))
    return bars


def test_default_run(default_run, name):
    out = default_run(f"chapter10/{name}").out
    assert re.search(r"^Time taken:  \d+\.\d ms$", out, re.M)
    rows = re.findall(r"^stream (\d) \|([.^#v]{64})\|$", out, re.M)
    assert [int(row) for row, _ in rows] == list(range(STREAMS[name]))
    assert all("#" in drawn for _, drawn in rows)


def test_the_ratio_is_that_of_the_times(default_run, name):
    out = default_run(f"chapter10/{name}").out
    times = re.search(
        r"copies up ([\d.]+) ms, kernels ([\d.]+) ms, copies down ([\d.]+) ms", out, re.I
    ).groups()
    ratio, whole = re.search(
        r"^The parts together are ([\d.]+) times the whole of ([\d.]+) ms$", out, re.M
    ).groups()
    assert float(ratio) == pytest.approx(sum(map(float, times)) / float(whole), abs=0.02)


def test_copy_engines(default_run, name):
    engines = re.search(r"^Copy engines: (\d+)\n(.*)", default_run(f"chapter10/{name}").out, re.M)
    assert (engines[1] == "0") == engines[2].startswith("The device does not overlap copies with kernels")


def test_host_work(run, rng):
    for size, chunk in [(20 << 18, 1 << 18), (1, 1), (rng.randint(1, 10**6), rng.randint(1000, 10**5))]:
        arguments = "--host-work", "--size", size, "--chunk", chunk, "--seed", rng.randrange(10**6)
        out = run("chapter10/basic_single_stream", *arguments, status=0).out
        device, host, both, ratio = map(
            float,
            re.search(
                r"^Device alone: +([\d.]+) ms\nHost alone: +([\d.]+) ms\n"
                r"Both: +([\d.]+) ms, ([\d.]+) times the longer one ",
                out,
                re.M,
            ).groups(),
        )
        assert ratio == pytest.approx(both / max(device, host), rel=0.1, abs=0.02)
        run("chapter10/basic_single_stream", *arguments, "--inject-error", status=1)


def sizes(rng):
    """(elements, elements per chunk): one chunk, less than one, a shorter last chunk, chunks shorter than the 256 elements
    that hold the neighbours, odd and even numbers of chunks."""
    return [
        (1, 1),
        (2, 1),
        (3, 2),
        (5, 5),
        (255, 256),
        (256, 256),
        (257, 256),
        (511, 256),
        (513, 256),
        (1000, 300),
        (1000, 999),
        (1000, 1000),
        (1000, 1001),
        (1025, 255),
        (10000, 3333),
        (rng.randint(1, 10**6), rng.randint(1000, 10**5)),
    ]


def test_sizes(run, rng, tmp_path, name):
    for size, chunk in sizes(rng):
        run(
            f"chapter10/{name}",
            "--size",
            size,
            "--chunk",
            chunk,
            "--seed",
            rng.randrange(10**6),
            "--output",
            "timeline.svg",
            status=0,
        )
        bars = parts(tmp_path)
        chunks = -(-size // chunk)
        streams = [i % STREAMS[name] for i in range(chunks)]
        for what in "copy up", "kernel", "copy down":
            assert [stream for w, stream, _, _ in bars if w == what] == streams, (size, chunk)


def test_steps_of_a_stream_follow_each_other(run, tmp_path, name):
    """In each stream: copy up, kernel, copy down, copy up, …; none begins before the previous one has ended."""
    run(f"chapter10/{name}", "--size", 70000, "--chunk", 10000, "--output", "timeline.svg", status=0)
    for stream in range(STREAMS[name]):
        mine = sorted((bar for bar in parts(tmp_path) if bar[1] == stream), key=lambda bar: bar[3])
        assert [bar[0] for bar in mine] == ["copy up", "kernel", "copy down"] * (len(mine) // 3)
        assert all(
            a[3] <= b[2] + 0.002 for a, b in zip(mine, mine[1:])
        )  # the times in the file are rounded to microseconds


def test_order_of_the_calls(run, tmp_path):
    """Bars are drawn in the order of the calls: depth first (chunk by chunk) or breadth first (step by step)."""
    order = {
        "basic_double_stream": [
            ("copy up", 0),
            ("kernel", 0),
            ("copy down", 0),
            ("copy up", 1),
            ("kernel", 1),
            ("copy down", 1),
        ],
        "basic_double_stream_correct": [
            ("copy up", 0),
            ("copy up", 1),
            ("kernel", 0),
            ("kernel", 1),
            ("copy down", 0),
            ("copy down", 1),
        ],
    }
    for name, steps in order.items():
        run(f"chapter10/{name}", "--size", 4000, "--chunk", 1000, "--output", "timeline.svg", status=0)
        assert [bar[:2] for bar in parts(tmp_path)] == steps * 2


@pytest.mark.parametrize("output", ["", "svg", ".svg", "timeline.png", "timeline.svg.gz", "timeline"])
def test_bad_names(run, tmp_path, name, output):
    result = run(f"chapter10/{name}", "--size", 9, f"--output={output}", status=64)
    assert result.errors == [f"{name}: --output {output or repr('')}: the name must end in .svg"]
    assert not list(tmp_path.iterdir())


def test_unwritable(run, tmp_path, name):
    (tmp_path / "folder.svg").mkdir()
    full = tmp_path / "full.svg"
    full.symlink_to("/dev/full")
    for output in "missing/x.svg", "folder.svg", "full.svg", "/proc/x.svg":
        result = run(f"chapter10/{name}", "--size", 9, "--output", output, status=1)
        assert len(result.errors) == 1 and result.err.startswith(f"{name}: cannot write {output}: "), str(
            result
        )
        # A full disk is detected when the file is written; all other errors before the work begins.
        assert bool(result.out) == (output == "full.svg"), str(result)
    assert (
        sorted(path.name for path in tmp_path.iterdir()) == ["folder.svg", "full.svg"] and full.is_symlink()
    )


def test_older_timeline(run, tmp_path, name):
    """An existing file is replaced only when the new one is complete; a symbolic link stays a link."""
    old, link = tmp_path / "old.svg", tmp_path / "link.svg"
    old.write_text("old")
    link.symlink_to("old.svg")
    limited = run(
        f"chapter10/{name}",
        "--size",
        9,
        "--output",
        "link.svg",
        status=1,
        limits={resource.RLIMIT_FSIZE: 100},
    )
    assert limited.errors == [f"{name}: cannot write link.svg: File too large"]
    run(
        f"chapter10/{name}", "--size", 9, "--output", "link.svg", "--inject-error", "--list-devices", status=0
    )
    run(f"chapter10/{name}", "--size", 9, "--output", "link.svg", "--chunk", 0, status=64)
    assert old.read_text() == "old" and sorted(tmp_path.iterdir()) == [link, old]
    run(f"chapter10/{name}", "--size", 9, "--output", "link.svg", status=0)
    assert (
        len(parts(tmp_path, "old.svg")) == 3
        and link.is_symlink()
        and sorted(tmp_path.iterdir()) == [link, old]
    )


# ---- copy_timed


KINDS = [
    "Pageable memory",
    "Pinned memory",
    "Pinned memory, both directions at once",
    "Write-combined memory",
]


def test_copies(run, default_run, rng):
    for size in [None, 1, 2, 3, rng.randint(4, 10**6)]:
        out = (
            run("chapter10/copy_timed", "--size", size, status=0)
            if size
            else default_run("chapter10/copy_timed")
        ).out
        assert [line for line in out.splitlines() if line in KINDS] == KINDS
        mb = 4 * (size or 10 << 20) / 2**20
        assert f"\n{mb:.3f} MB\n" in out
        rates = re.findall(r": +([\d.]+) ms, (\d+) copies\n +([\d.]+) MB/s$", out, re.M)
        assert len(rates) == 7 and all(1 <= int(copies) <= 100 for _, copies, _ in rates)
        if size is None:
            assert all(
                float(rate) == pytest.approx(mb * int(copies) / (float(ms) / 1000), rel=0.01)
                for ms, copies, rate in rates
            )
        # The host's own accesses to pageable, pinned and write-combined memory
        access = re.findall(r"^  host (writes|reads): +([\d.]+) MB/s$", out, re.M)
        assert [what for what, _ in access] == ["reads", "writes"] * 3


def test_number_of_copies(run, rng):
    copies = rng.randint(2, 50)
    out = run("chapter10/copy_timed", "--size", 10, "--iterations", copies, status=0).out
    assert re.findall(r" ms, (\d+) copies$", out, re.M) == [str(copies)] * 7
