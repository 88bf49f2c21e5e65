# SPDX-License-Identifier: MIT
"""`make bench`: the ladders at small, odd and large sizes; the runner, with scripts instead of ladders, and its plots."""
import dataclasses
import datetime
import importlib.util
import json
import math
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys

import pytest

import helpers
from trees import stand_in
from test_programs import numeric_options, one_line

ROOT = helpers.ROOT
sys.path.insert(0, str(ROOT / "bench"))
import report  # noqa: E402
import results  # noqa: E402

PYTHON = pathlib.Path(sys.executable)
MEASURED = ["median_ms", "min_ms", "max_ms", "cold_ms", "rate", "of_limit", "times_book", "times_library"]


# ---- the ladders ----


def is_row_sound(row):
    assert row.keys() == rows_of(1)[0].keys() and (row["kind"] == "rung") == (row["number"] is not None), row
    if row["skipped"]:
        assert row["skipped"].startswith("needs ") and row["median_ms"] is row["verified"] is None
    else:
        assert 0 <= row["min_ms"] <= row["median_ms"] <= row["max_ms"] and row["runs"] >= 1
        assert row["verified"] is (None if row["kind"] in ("limit", "alone") else True)


def test_every_rung_at_sizes_that_are_not_round(ladder, run):
    """Less than a warp, and a large odd size or, if the work is the square of the size, a few tiles. test_programs.py has other sizes."""
    [(low, high)] = [(int(o[1]), int(o[2])) for o in numeric_options(ladder) if o[0] == "size"]
    large = 100003 if helpers.backend() == "cpu" else 1000003
    for size, runs in (max(31, low), 2), (large if high >= 1 << 24 else 132, 1):
        arguments = ("--size", size, "--runs", runs, "--json")
        rows = json.loads(run(ladder, *arguments, status=0, timeout=600).out)["rows"]
        assert {row["runs"] for row in rows if not row["skipped"]} == {runs}
        assert {row["size"] for row in rows} == {size} and {row["kind"] for row in rows} >= {"rung", "limit"}
        for row in rows:
            is_row_sound(row)
        assert [row["number"] for row in rows if row["kind"] == "rung"][0] == 0


@pytest.mark.parametrize("name", ["chapter05/dot_ladder", "chapter07/heat_ladder", "chapter10/copy_ladder"])
def test_one_rung(name, run):
    """--kernel N runs rung N alone, also where another table lacks it; with --inject-error every rung fails, and a wrong rung has no
    time."""
    arguments = ("--size", 31, "--runs", 1, "--json")
    assert ("x book" in run(name, *arguments[:-1], status=0).out) == (helpers.backend() == "gpu")
    every = {row["number"]: row for row in json.loads(run(name, *arguments, status=0).out)["rows"]}
    every.pop(None)
    for number in every:
        rows = json.loads(run(name, *arguments, "--kernel", number, status=0).out)["rows"]
        assert {row["number"] for row in rows if row["kind"] not in ("limit", "alone")} == {number}
    result = run(name, "--size", 31, "--kernel", 99)
    one_line(result, 64)
    assert f"--kernel 99: must be from 0 to {max(every)}" in result.err and not result.out
    wrong = json.loads(run(name, *arguments, "--inject-error", status=1).out)["rows"]
    wrong = [row for row in wrong if row["kind"] not in ("limit", "alone") and not row["skipped"]]
    assert wrong and {(row["verified"], row["median_ms"]) for row in wrong} == {(False, None)}


# ---- the runner ----


def rows_of(size, rungs=("book", "shuffles", "one launch"), data=None, slow=1.0, sm90=(), in_l2=False):
    """Invented rows of a ladder: rung i has a rate of 100 (i + 1) GB/s, the library 250, the copy 400."""
    kinds = [("rung", i, name, 100 * (i + 1)) for i, name in enumerate(rungs)]
    rows = []
    for kind, number, name, rate in [*kinds, ("library", None, "CUB", 250), ("limit", None, "copy", 400)]:
        ms, same = slow * size * 4 / rate / 1e6, kind != "limit"
        row = {"size": size, "title": f"{size} floats", "data": data, "kind": kind, "number": number}
        row.update(name=name, idea=f"idea of {name}", skipped=None, runs=11, in_l2=in_l2, unit="GB/s")
        row.update(median_ms=ms, min_ms=ms * 0.99, max_ms=ms * 1.02, cold_ms=ms * 2 if in_l2 else None)
        row.update(rate=rate / slow, of_limit=rate / 400, max_error=None, rms_error=None)
        row.update(times_book=rate / 100 if same else None, times_library=rate / 250 if same else None)
        row["verified"] = True if same else None
        if name in sm90:
            row.update(dict.fromkeys([*MEASURED, "verified"]), skipped="needs sm_90", runs=0)
        rows.append(row)
    return rows


def printed(rows, device="Some GPU 3000", backend="gpu"):
    facts = {"compute_capability": "9.0", "l2_bytes": 1, "seed": 1, "rows": rows}
    return json.dumps({"program": "x", "device": device, "backend": backend, **facts})


@dataclasses.dataclass
class Bench:
    """A folder with the scripts of bench/, and scripts instead of ladders."""

    tree: pathlib.Path

    def add(self, name, sizes="1M 4M", script=None, device="Some GPU 3000", backend="gpu", **more):
        """Adds a ladder that prints rows_of() its --size, or runs the given script."""
        folder = self.tree / "bin/chapter05"
        stand_in(folder, name, script or f'echo "$*" >>{folder}/{name}.log; exec cat "$0.${{3:-default}}"')
        self.source(name).write_text(f"/*\n * {name}: a ladder\n *\n * Bench: {sizes}\n */\n")
        for size in ("2M", *sizes.split()):
            rows = rows_of(int(size[:-1]) << {"K": 10, "M": 20, "G": 30}[size[-1]], **more)
            (folder / f"{name}.{size}").write_text(printed(rows, device, backend))
        shutil.copy(folder / f"{name}.2M", folder / f"{name}.default")

    def source(self, name):
        return self.tree / f"chapter05/{name}.cu"

    def run(self, *programs, status=0, script="measure.py", limit=None, **env):
        words = [word if word[0] == "-" else f"chapter05/{word}" for word in programs]
        limits = {resource.RLIMIT_FSIZE: limit} if limit else None
        result = helpers.execute(PYTHON, [f"bench/{script}", *words], self.tree, env, limits=limits)
        assert result.status == status, str(result)
        return result

    def arguments(self, name):
        log = (self.tree / f"bin/chapter05/{name}.log").read_text()
        return [line.removeprefix("--json").split() for line in log.splitlines()]

    def record(self, program, **env):
        """Runs a ladder. Returns its record."""
        self.run(program, **env)
        return self.recorded()["programs"][f"chapter05/{program}"]

    def recorded(self, device="some-gpu-3000"):
        return json.loads((self.tree / f"bench/results/{device}.json").read_text())

    def plot(self, topic):
        return self.tree / f"bench/results/some-gpu-3000/chapter05/{topic}.svg"

    def page(self, device="some-gpu-3000"):
        return (self.tree / f"bench/results/{device}.md").read_text()


@pytest.fixture
def bench(tmp_path, monkeypatch):
    tree, others = tmp_path / "tree", shutil.ignore_patterns("results", "*.html", "__py*")
    shutil.copytree(ROOT / "bench", tree / "bench", ignore=others)
    for folder in "scripts", "chapter05":
        (tree / folder).mkdir()
    for name in "run.py", "programs.py", "tokens.py":
        shutil.copy(ROOT / "scripts" / name, tree / "scripts")
    (tree / "cucc").symlink_to(ROOT / "cucc")  # the lexer
    query = """case $* in *--query-gpu=name,driver_version,*nounits*) ;; *) exit 1 ;; esac
echo 'Other GPU, 1.2.3, 1, 2, 3, 4, 5'
echo 'Some GPU 3000, 580.65.06, 1755, 2619, 1980, [N/A], 700.00'"""
    stand_in(tree / "tools", "nvidia-smi", query)
    (tree / "tools/matplotlib.py").write_text("raise ImportError")
    stand_in(tree / "tools", "nvcc", "echo 'Cuda compilation tools, release 13.0, V13.0.88'")
    for name in list(os.environ):
        if re.match("MAKE|MFLAGS|SIZES|TIME_LIMIT|COMPARE|RESULTS|COMMIT|BUILD|NVCC", name):
            monkeypatch.delenv(name)
    for name, value in ("BIN", "bin"), ("BACKEND", "gpu"), ("PATH", f"{tree}/tools:{os.environ['PATH']}"):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", f"{tree}/tools")  # hides matplotlib, which is slow
    return Bench(tree)


def test_a_real_ladder_is_recorded(tmp_path):
    """make bench selects a ladder of this build: its record has every field, and the figures are consistent."""
    output = helpers.make("bench", "SIZES=1000 4K", f"RESULTS={tmp_path}/results", "TOPIC=add")
    assert "1 of 1 ladders measured, 0 failed" in output, output
    [path] = tmp_path.glob("results/*.json")
    found = json.loads(path.read_text())
    assert found["backend"] == helpers.backend() and path.stem == results.slug(found["device"])
    [(program, block)] = found["programs"].items()
    age = datetime.datetime.now(datetime.timezone.utc) - datetime.datetime.fromisoformat(block["date"])
    assert program == "chapter05/add_ladder" and 0 <= age.total_seconds() + 1 < 300
    assert block["machine"]["cores"] == os.cpu_count() and block["machine"]["cpu"]
    assert list(dict.fromkeys(row["size"] for row in block["rows"])) == [1000, 4096]
    for row in block["rows"]:
        is_row_sound(row)
        if row["kind"] == "rung" and not row["skipped"]:
            [book] = [r for r in block["rows"] if r["size"] == row["size"] and r["number"] == 0]
            assert math.isclose(row["rate"], 12 * row["size"] / row["median_ms"] / 1e6, rel_tol=1e-4)
            if helpers.backend() == "cpu":  # whose times do not rank kernels
                assert row["times_book"] is row["of_limit"] is None
            else:
                assert math.isclose(row["times_book"], book["median_ms"] / row["median_ms"], rel_tol=1e-4)
                assert row["of_limit"]


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_facts_of_the_run(bench):
    """Driver, clocks, toolkit and commit are recorded. Results do not count as changes of the commit."""
    bench.add("dot_ladder")
    (bench.tree / ".gitignore").write_text("/bin\n__pycache__\n")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com"]
    for words in ["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]:
        subprocess.run([*git, *words], cwd=bench.tree, check=True)
    head = subprocess.check_output([*git, "rev-parse", "HEAD"], cwd=bench.tree, text=True).strip()
    for commit, dirty in (head, False), (head, False), ("cafe", None), (head, True):
        if dirty:
            (bench.tree / "new").touch()
        block = bench.record("dot_ladder", **({"COMMIT": "cafe"} if dirty is None else {}))
        assert (block["commit"], block["dirty"]) == (commit, dirty)
    assert [block[key] for key in ("driver", "toolkit", "seed", "l2_bytes")] == ["580.65.06", "13.0.88", 1, 1]
    now = {"sm_mhz": 1755, "memory_mhz": 2619}
    most = {"sm_max_mhz": 1980, "memory_max_mhz": None, "power_limit_w": 700}
    assert block["clocks"] == {**most, "before": now, "after": now}
    assert block["rows"] == rows_of(1 << 20) + rows_of(4 << 20)
    assert bench.arguments("dot_ladder")[:2] == [["--size", "1M"], ["--size", "4M"]]
    # A change of the program marks what its older version printed
    assert re.fullmatch("[0-9a-f]{16}", block["source"]) and "†" not in bench.page()
    bench.source("dot_ladder").write_text(bench.source("dot_ladder").read_text() + "int n;\n")
    bench.run(script="report.py")
    assert bench.page().count("dot_ladder.cu) †") == 4 and results.LEGEND in bench.page()


def test_sizes_on_the_cpu_back_end(bench):
    """The CPU back end runs the default size, 2M here, and the sizes of the header that are smaller."""
    bench.add("dot_ladder", sizes="1M 2M 4M 1G", backend="cpu")
    block = bench.record("dot_ladder", BACKEND="cpu")
    assert bench.arguments("dot_ladder") == [[], ["--size", "1M"]]
    assert block["rows"] == rows_of(1 << 20) + rows_of(1 << 21) and block["toolkit"] is None
    assert re.search(r"g\+\+|clang", block["compiler"])


def test_a_part_replaces_only_its_own_rows(bench):
    for name in "add_ladder", "dot_ladder", "gone_ladder":
        bench.add(name)
    bench.run("add_ladder", "dot_ladder", "gone_ladder", COMMIT="one")
    first = bench.recorded()["programs"]
    bench.source("gone_ladder").unlink()
    bench.add("dot_ladder", slow=2.0)
    bench.add("scan_ladder")
    bench.run("scan_ladder", "dot_ladder", COMMIT="two")
    add, dot, scan = second = bench.recorded()["programs"]
    assert [add, dot, scan] == [f"chapter05/{name}_ladder" for name in ("add", "dot", "scan")]
    assert second[add] == first[add] and [second[p]["commit"] for p in second] == ["one", "two", "two"]
    assert second[dot]["rows"] == rows_of(1 << 20, slow=2.0) + rows_of(4 << 20, slow=2.0)
    bench.add("dot_ladder", device="Other/GPU (2)")  # has a file of its own
    bench.run("dot_ladder")
    assert list(bench.recorded("other-gpu-2")["programs"]) == [dot] and bench.recorded()["programs"] == second
    assert [bench.page(name).count("\n### ") for name in ("some-gpu-3000", "other-gpu-2")] == [3, 1]


def with_row(number, **changes):
    """A script that prints the rows of a ladder with changes of one row."""
    rows = rows_of(1 << 20)
    rows[number].update(changes)
    return f"echo '{printed(rows)}'"


NO_MEMORY = "out of memory: needs 9.00 GiB of device memory, 1.00 GiB are free"


# What a ladder does, and what is said of it
ENDS = [
    ("echo 'dot_ladder: sum is wrong' >&2; exit 1", "FAILED: exit status 1: dot_ladder: sum is wrong"),
    ("kill -SEGV $$", "FAILED: ended by signal 11"),
    ("echo '{}'", "FAILED: what it printed is not the JSON of a ladder"),
    (with_row(1, verified=False), "FAILED: shuffles is not verified"),
    (with_row(3, verified=False), "FAILED: CUB is not verified"),
    (with_row(1, median_ms=math.nan), "FAILED: shuffles has no times"),
    (with_row(4, min_ms=9), "FAILED: copy has no times"),
    ('case $3 in 1M) exec cat "$0.1M" ;; esac; exit 1', "FAILED: exit status 1"),
    ("sleep 60", "FAILED: ran longer than 0.5 s"),
    ("echo 'dot_ladder: needs 2 GPUs' >&2; exit 2", "waived: dot_ladder: needs 2 GPUs"),
    (f"echo 'dot_ladder: {NO_MEMORY}' >&2; exit 1", "waived: no size fits into the memory here"),
]


def test_what_fails_is_not_recorded(bench):
    """The records from before are kept, and other ladders are recorded."""
    names = [f"{chr(ord('a') + i)}_ladder" for i in range(len(ENDS))]
    for name in [*names, "sound_ladder"]:
        bench.add(name)
    bench.run(*names)
    before = bench.recorded()["programs"]
    for name, (script, _) in zip(names, ENDS):
        stand_in(bench.tree / "bin/chapter05", name, script)
    result = bench.run(*names, "sound_ladder", status=1, TIME_LIMIT="0.5")
    for name, (_, says) in zip(names, ENDS):
        assert f"chapter05/{name}: {says}" in result.out + result.err, str(result)
    assert "1 of 12 ladders measured, 9 failed" in result.out, str(result)
    after = bench.recorded()["programs"]
    assert len(after.pop("chapter05/sound_ladder")["rows"]) == 10 and after == before


def test_a_size_that_does_not_fit_is_left_out(bench):
    refusal = f'echo "dot_ladder: {NO_MEMORY}" >&2; exit 1'
    bench.add("dot_ladder", script=f'case $3 in 4M) {refusal} ;; esac; exec cat "$0.$3"')
    result = bench.run("dot_ladder")
    assert f"chapter05/dot_ladder --size 4M: left out, {NO_MEMORY}" in result.out, str(result)
    assert bench.recorded()["programs"]["chapter05/dot_ladder"]["rows"] == rows_of(1 << 20)


def test_wrong_settings_are_refused(bench):
    """The reason is one line, before any measurement."""
    bench.add("dot_ladder")
    (bench.tree / "file").write_text("")
    cases = [
        (["nonesuch"], {}, "chapter05/nonesuch: is no ladder; there are chapter05/dot_ladder"),
        (["dot_ladder"], {"RESULTS": "/proc/results"}, "/proc/results: cannot be written"),
        (["dot_ladder"], {"RESULTS": "file/results"}, "file/results: cannot be written"),
        (["dot_ladder"], {"BACKEND": ""}, "nothing is built here"),
    ]
    for programs, settings, says in cases:
        result = bench.run(*programs, status=1, **settings)
        assert len(result.errors) == 1 and says in result.err and not result.out, str(result)
    path = bench.tree / "bench/results/some-gpu-3000.json"
    path.parent.mkdir(exist_ok=True)
    for text in "{", "{}", "[]", '{"format": 1}', '{"format": 2}':
        path.write_text(text)
        result = bench.run("dot_ladder", status=1)
        assert len(result.errors) == 1 and "some-gpu-3000.json: no results (" in result.err, str(result)
        assert path.read_text() == text
    assert not (bench.tree / "bin/chapter05/dot_ladder.log").exists()
    path.unlink()
    (bench.tree / "bin/chapter05/dot_ladder").unlink()
    assert "chapter05/dot_ladder: waived: not built" in bench.run("dot_ladder").out


def test_full_disk(bench):
    """After a failed write the old results are unchanged, and there are no other files."""
    bench.add("dot_ladder")
    before = bench.record("dot_ladder")
    bench.add("dot_ladder", slow=2.0)
    size = (bench.tree / "bench/results/some-gpu-3000.json").stat().st_size
    result = bench.run("dot_ladder", status=1, limit=size * 3 // 4)  # what the ladder prints fits
    assert result.errors[-1] == "bench: bench/results/some-gpu-3000.json: cannot be written: File too large"
    assert bench.recorded()["programs"]["chapter05/dot_ladder"] == before
    names = {path.name for path in (bench.tree / "bench/results").iterdir()}
    assert names == {"some-gpu-3000.json", "some-gpu-3000.md"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_interrupt_keeps_what_was_measured(bench, number):
    bench.add("add_ladder")
    bench.add("dot_ladder", script=f"sleep 60 & echo $! >{bench.tree}/pid; wait")
    words = "bench/measure.py", "chapter05/add_ladder", "chapter05/dot_ladder"
    process = helpers.start(PYTHON, words, bench.tree, stderr=subprocess.STDOUT)
    pid = bench.tree / "pid"
    child = helpers.wait_for(lambda: pid.exists() and pid.read_text().strip())
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted" in out and "Traceback" not in out, out
    assert list(bench.recorded()["programs"]) == ["chapter05/add_ladder"] and "### add" in bench.page()
    helpers.wait_for(lambda: not os.path.exists(f"/proc/{child}/cwd"), 20)  # at most waits to be reaped


def test_comparison_with_what_was_recorded(bench):
    bench.add("dot_ladder")
    assert "0 rows over 20 µs compared" in bench.run("dot_ladder", status=1, COMPARE="1").out
    assert not list((bench.tree / "bench").glob("results/*.json"))
    bench.run("dot_ladder")
    before = bench.recorded()
    bench.add("dot_ladder", slow=1.029)
    result = bench.run("dot_ladder", COMPARE="1")
    # At 1M the rungs take 42, 21 and 14 µs, the library 17 µs and the copy 10 µs; at 4M four times as long.
    assert "7 rows over 20 µs compared, 0 moved by more than 3%" in result.out, str(result)
    for slow, change in (1.04, "+4.0%"), (0.96, "-4.0%"):
        bench.add("dot_ladder", slow=slow)
        out = bench.run("dot_ladder", status=1, COMPARE="1").out
        moved = re.findall(r"^chapter05/dot_ladder: (\d+) floats: (.*): \S+ ms, was \S+ \((.*)\)$", out, re.M)
        assert len(moved) == 7 and {m[2] for m in moved} == {change}, out
        assert ("1048576", "one launch", change) not in moved and "7 rows over 20 µs compared, 7 moved" in out
    assert bench.recorded() == before


# ---- the plots ----


def test_plots(bench):
    """The lines of what was run, of one size its points, its figures in words, and the colours of the dark scheme."""
    if not importlib.util.find_spec("matplotlib") and "CI" not in os.environ:
        pytest.skip("needs matplotlib")
    rungs = ["book", "a <\\1> rung", "clusters"]
    bench.add("dot_ladder", rungs=rungs, sm90=["clusters"])
    bench.add("add_ladder", sizes="4M", rungs=rungs, sm90=["clusters"])
    bench.run("dot_ladder", "add_ladder", PYTHONPATH="")
    shown = ["rung-0", "rung-1", "library-0", "limit-0"]
    figures = "0 book 100 GB/s, 1 a &lt;\\1&gt; rung 200 GB/s, 2 clusters needs sm_90, CUB 250 GB/s"
    dot, add = (bench.plot(name).read_text() for name in ("dot", "add"))
    for svg, title in (dot, "dot"), (add, "add"):
        assert re.findall(r'id="((?:rung|library|limit)-\d+)"', svg) == shown
        assert "@media (prefers-color-scheme: dark)" in svg
        assert f"<desc>{title}, at --size 4194304: {figures}, copy (limit) 400 GB/s.</desc>" in svg
    written = bench.plot("dot").stat().st_mtime_ns
    bench.plot("add").unlink()
    bench.run(script="report.py", PYTHONPATH="")
    assert bench.plot("dot").stat().st_mtime_ns == written, "drawn again"
    assert bench.plot("add").read_text() == add, "the same rows give the same file"
    bench.add("dot_ladder", slow=2.0)  # without matplotlib a page shows no plot of other rows
    assert "plots are off: no python3 here has matplotlib" in bench.run("dot_ladder").out
    assert bench.page().count("![") == 1


def test_recorded_plots_are_fresh():
    """Each recorded program has a plot, drawn from its present rows by the present plots.py."""
    name, programs = report.RECORDED, results.load()[report.RECORDED]["programs"]
    for program, block in programs.items():
        assert results.plot(name, program, block["rows"]), f"{name}, {program}: run make docs"
    ladders = [program for program in helpers.programs() if program.bench]
    assert set(programs) == {p.name for p in ladders if "Not measured on a GPU yet." not in p.source}
    rows = report.speedups(results.load()[name])
    assert len(rows) >= 16 and results.plot(name, report.SPEEDUPS, rows), "run make docs"


def test_large_factors_are_explained():
    """In README.md the rungs of each topic from 100 on multiply to its factor, except for rounding; the text beside the table of
    docs/performance.md names its highest share of a limit."""
    text = (ROOT / "README.md").read_text()
    found = re.findall(r"^- (.*): (\d{3,}) = (.*)", text, re.M)
    for topic, factor, product in found:
        numbers = [float(number) for number in re.findall(r"(?:^|× )([\d.]+) \(", product)]
        assert math.prod(numbers) == pytest.approx(float(factor), rel=0.02), topic
    table = report.recorded_part(report.summary)()
    large = re.findall(r"^\| \[(.*?)\](?:[^|]*\|){4} (\d{3,}) \|", table, re.M)
    assert found and large == [(topic, factor) for topic, factor, _ in found]
    shares = [float(share) for share in re.findall(r" \| ([\d.]+) % \| ", table)]
    assert f"up to {max(shares)} % in this table" in table and max(shares) > 100
