# SPDX-License-Identifier: MIT
"""Chapter 10: copies and kernels in streams with many sizes of chunks, and their timelines."""
import re
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
            says = re.fullmatch(r"(copy up|kernel|copy down), ([\d.]+) to ([\d.]+) ms", title.text)
            what, start, end = says.groups()
            bars.append((what, (int(bar.get("y")) - 64) // 36, float(start), float(end)))
    return bars


def test_default_run(run, name):
    """The book's line, the timeline in letters, copy engines, and the ratio of the times."""
    out = run(f"chapter10/{name}", status=0).out
    assert float(re.search(r"^Time taken:  (\d+\.\d) ms$", out, re.M)[1]) > 0
    rows = re.findall(r"^stream (\d) \|([.^#v]{64})\|$", out, re.M)
    assert [int(row) for row, _ in rows] == list(range(STREAMS[name]))
    assert all("#" in drawn for _, drawn in rows)
    line = r"copies up ([\d.]+) ms, kernels ([\d.]+) ms, copies down ([\d.]+) ms"
    times = map(float, re.search(line, out, re.I).groups())
    line = r"^The parts together are ([\d.]+) times the whole of ([\d.]+) ms$"
    found = re.search(line, out, re.M)
    assert bool(found) == (helpers.backend() == "gpu")
    if found:
        assert float(found[1]) == pytest.approx(sum(times) / float(found[2]), abs=0.02)
    engines = re.search(r"^Copy engines: (\d+)\n(.*)", out, re.M)
    assert (engines[1] == "0") == engines[2].startswith("The device does not overlap copies with kernels")


def test_host_work(run, rng):
    size, chunk = rng.randint(1, 10**6), rng.randint(1000, 10**5)
    arguments = "--host-work", "--size", size, "--chunk", chunk, "--seed", rng.randrange(10**6)
    out = run("chapter10/basic_single_stream", *arguments, status=0).out
    line = r"^Device alone: +(\S+) ms\nHost alone: +(\S+) ms\nBoth: +(\S+) ms, (\S+) times the longer one "
    device, host, both, ratio = map(float, re.search(line, out, re.M).groups())
    assert ratio == pytest.approx(both / max(device, host), rel=0.1, abs=0.02)
    run("chapter10/basic_single_stream", *arguments, "--inject-error", status=1)


def test_two_tasks(run):
    out = run("chapter10/basic_double_stream", "--tasks", status=0).out
    line = (
        r"^12251 primes: (\S+) ms\npi = 3.141592653590: (\S+) ms\nBoth at once: (\S+) ms, (\S+) times as fast"
    )
    primes, pi, both, gain = map(float, re.search(line, out, re.M).groups())
    assert gain == pytest.approx((primes + pi) / both, abs=0.02)
    run("chapter10/basic_double_stream", "--tasks", "--inject-error", status=1)


@pytest.mark.parametrize("streams", [1, 2, 7])
def test_streams_and_longer_kernels(run, rng, streams):
    """Each result is compared by the program. The kernels become longer from row to row, and no gain exceeds the number of parts."""
    sizes = "--size", rng.randint(1, 10**6), "--chunk", rng.randint(1000, 10**5)
    out = run("chapter10/basic_double_stream_correct", "--streams", streams, *sizes, status=0).out
    rows = re.findall(r"^ +([\d.]+) +([\d.]+) ms +([\d.]+) ms +([\d.]+) +([\d.]+)$", out, re.M)
    assert len(rows) == 5 and f" {streams} streams " in out
    for ratio, one, several, gain, most in ([float(word) for word in row] for row in rows):
        assert ratio > 0 and 1 <= most <= 3
        assert gain == pytest.approx(one / several, rel=0.1, abs=0.02)
    run("chapter10/basic_double_stream_correct", "--streams", 2, "--size", 99, "--inject-error", status=1)


def test_sizes(run, rng, tmp_path, name):
    """One chunk, less than one, a shorter last chunk, chunks shorter than the 256 elements that hold the neighbours, odd and even
    numbers of chunks. In each stream the steps follow each other; the times in the file are rounded to microseconds.
    """
    many = rng.randint(1, 10**6), rng.randint(1000, 10**5)
    for size, chunk in (1, 1), (3, 2), (255, 256), (513, 256), (1000, 999), (1025, 255), (70000, 10000), many:
        options = ["--size", size, "--chunk", chunk, "--seed", rng.randrange(10**6)]
        run(f"chapter10/{name}", *options, "--output", "timeline.svg", status=0)
        bars = parts(tmp_path)
        streams = [i % STREAMS[name] for i in range(-(-size // chunk))]
        for what in "copy up", "kernel", "copy down":
            assert [stream for w, stream, _, _ in bars if w == what] == streams, (size, chunk)
        for stream in set(streams):
            mine = sorted((bar for bar in bars if bar[1] == stream), key=lambda bar: bar[3])
            assert [bar[0] for bar in mine] == ["copy up", "kernel", "copy down"] * (len(mine) // 3)
            assert all(a[3] <= b[2] + 0.002 for a, b in zip(mine, mine[1:]))


def test_order_of_the_calls(run, tmp_path):
    """Bars are drawn in the order of the calls: depth first (chunk by chunk) or breadth first (step by step)."""
    steps = "copy up", "kernel", "copy down"
    order = {
        "basic_double_stream": [(step, stream) for stream in (0, 1) for step in steps],
        "basic_double_stream_correct": [(step, stream) for step in steps for stream in (0, 1)],
    }
    for name, calls in order.items():
        run(f"chapter10/{name}", "--size", 4000, "--chunk", 1000, "--output", "timeline.svg", status=0)
        assert [bar[:2] for bar in parts(tmp_path)] == calls * 2


def test_unwritable(run, tmp_path):
    """A full disk is detected when the file is written; other errors, which tests/common/image.c tries, before the work begins."""
    (tmp_path / "full.svg").symlink_to("/dev/full")
    command = "chapter10/basic_double_stream", "--size", 9, "--output"
    for output in "missing/x.svg", "full.svg":
        result = run(*command, output, status=1)
        assert len(result.errors) == 1, str(result)
        assert result.err.startswith(f"basic_double_stream: cannot write {output}: "), str(result)
        assert bool(result.out) == (output == "full.svg"), str(result)
    for output in "", ".svg", "timeline.png", "timeline.svg.gz":
        result = run(*command, output, status=64)
        says = f"--output {output or repr('')}: the name must end in .svg"
        assert result.errors == [f"basic_double_stream: {says}"]
    assert [path.name for path in tmp_path.iterdir()] == ["full.svg"]


# ---- copy_timed


def test_copies(run, rng):
    pinned = "Pinned memory"
    kinds = ["Pageable memory", pinned, f"{pinned}, both directions at once", "Write-combined memory"]
    for size, copies in (10, rng.randint(2, 50)), (rng.randint(11, 10**6), 3), (10 << 20, 4):
        out = run("chapter10/copy_timed", "--size", size, "--iterations", copies, status=0).out
        assert [line for line in out.splitlines() if line in kinds] == kinds
        assert f"\n{4 * size / 2**20:.3f} MB\n" in out
        rates = re.findall(r": +([\d.]+) ms, (\d+) copies\n +([\d.]+) MB/s$", out, re.M)
        assert len(rates) == 7 and {made for _, made, _ in rates} == {str(copies)}
        for ms, made, rate in rates if size == 10 << 20 else ():  # long enough for the printed digits
            assert float(rate) == pytest.approx(40 * int(made) / (float(ms) / 1000), rel=0.01)
        # The host's own accesses to pageable, pinned and write-combined memory
        access = re.findall(r"^  host (writes|reads): +([\d.]+) MB/s$", out, re.M)
        assert [what for what, _ in access] == ["reads", "writes"] * 3


def test_pinned_memory_is_limited(run):
    """A quarter of the host's memory may be pinned at most; each allocation is of the kind that its row names."""
    out = run("chapter10/copy_timed", "--pin", "8M", "--size", 99, status=0).out
    row = r"^(\w[\w ]*\w) +(\d) MB: +[1-9]\d* MB are available$"
    kinds = [("at first", "0"), ("malloc", "8"), ("written", "8")]
    kinds += [("cudaHostAlloc", str(MB)) for MB in (2, 4, 6, 8)] + [("cudaFreeHost", "0")]
    assert re.findall(row, out, re.M) == kinds
    much = run("chapter10/copy_timed", "--pin", "1024G", "--size", 99, status=1)
    assert much.err.startswith("copy_timed: out of memory: needs 4096.00 GiB of host memory, ")
    run("chapter10/copy_timed", "--pin", "1M", "--size", 99, "--inject-error", status=1)
