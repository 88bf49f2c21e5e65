# SPDX-License-Identifier: MIT
"""`make bench`: the ladders at small, odd and large sizes; the runner in a copy of the tree, whose ladders are scripts with a
chosen output; the plots; and the page in a browser. Invented records stay in the folder of their test."""
import dataclasses
import datetime
import itertools
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
import time
import xml.etree.ElementTree

import numpy as np
import pytest

import helpers
from browser import browse, needs_browser, violations
from trees import copy_sources, stand_in
from test_programs import numeric_options, one_line

ROOT = helpers.ROOT
PLOTS = any(
    subprocess.run([python, "-c", "import matplotlib"], stderr=subprocess.DEVNULL).returncode == 0
    for python in (sys.executable, "/usr/bin/python3")
    if os.path.exists(python)
)
# In CI a missing browser is a mistake in setup, so the tests fail there and are not skipped.
needs_plots = pytest.mark.skipif(not PLOTS and "CI" not in os.environ, reason="needs matplotlib")

ROW = {
    "size": int,
    "title": str,
    "data": (str, type(None)),
    "kind": str,
    "number": (int, type(None)),
    "name": str,
    "idea": str,
    "skipped": (str, type(None)),
    "runs": int,
    "unit": str,
    "in_l2": bool,
    "verified": (bool, type(None)),
    **dict.fromkeys(
        (
            "median_ms",
            "min_ms",
            "max_ms",
            "cold_ms",
            "rate",
            "of_copy_rate",
            "times_book",
            "times_library",
            "max_error",
            "rms_error",
        ),
        (int, float, type(None)),
    ),
}


def is_row_sound(row):
    assert row.keys() == ROW.keys() and all(isinstance(row[key], types) for key, types in ROW.items()), row
    assert (row["kind"] == "rung") == (row["number"] is not None)
    if row["skipped"]:
        assert row["skipped"].startswith("needs ") and row["median_ms"] is None and row["verified"] is None
    else:
        assert 0 <= row["min_ms"] <= row["median_ms"] <= row["max_ms"] and row["runs"] >= 1
        assert row["verified"] is (None if row["kind"] == "copy" else True)


# ---- The ladders


def test_every_ladder_is_measured():
    """Every program that includes bench.h is a ladder. Without sizes in its header it would not be measured."""
    ladders = {str(p) for p in helpers.programs() if '#include "../common/bench.h"' in p.source}
    assert ladders == {str(p) for p in helpers.programs() if p.bench} and "chapter05/reduction" in ladders


def sizes_of(program, run):
    """Sizes to test: 1, less than a warp, and a large odd size. If the work is the square of the size: a size of a few tiles,
    and an odd size."""
    [(low, high)] = [
        (int(low), int(high)) for name, low, high, _ in numeric_options(program, run) if name == "size"
    ]
    large = 100003 if helpers.sanitized() else 300007 if helpers.backend() == "cpu" else 1000003
    return sorted(
        {min(max(size, low), high) for size in ((1, 31, large) if high >= 1 << 24 else (1, 31, 132, 257))}
    )


def test_every_rung_at_sizes_that_are_not_round(ladder, run):
    for size in sizes_of(ladder, run):
        arguments = ("--size", size, "--runs", 2, "--json")
        rows = json.loads(run(ladder, *arguments, status=0, timeout=600).out)["rows"]
        assert {row["runs"] for row in rows if not row["skipped"]} == {2}
        assert {row["size"] for row in rows} == {size} and {row["kind"] for row in rows} >= {"rung", "copy"}
        for row in rows:
            is_row_sound(row)
        assert [row["number"] for row in rows if row["kind"] == "rung"][0] == 0


def test_one_rung(ladder, run):
    small = sizes_of(ladder, run)[min(1, len(sizes_of(ladder, run)) - 1)]
    arguments = ("--size", small, "--runs", 1, "--json")
    found = json.loads(run(ladder, *arguments, status=0).out)["rows"]
    names = {}
    for row in found:
        if row["kind"] == "rung":
            names.setdefault(row["number"], []).append(row["name"])
    assert sorted(names) == list(range(len(names)))
    for number, expected in names.items():
        rows = json.loads(run(ladder, *arguments, "--kernel", number, status=0).out)["rows"]
        assert [(row["number"], row["name"]) for row in rows if row["kind"] == "rung"] == [
            (number, name) for name in expected
        ]
        assert not [row for row in rows if row["kind"] == "library"]
    result = run(ladder, "--size", small, "--kernel", 99)
    one_line(result, 64)
    assert "--kernel 99: must be from 0 to " in result.err and not result.out


def test_every_rung_is_checked(ladder, run):
    """An error in the result of any rung makes the program fail, and a wrong rung has no time."""
    result = run(ladder, *ladder.small, "--inject-error", "--runs", 1, "--json", status=1)
    rows = json.loads(result.out)["rows"]
    assert all(
        row["verified"] is False and row["median_ms"] is None
        for row in rows
        if row["kind"] != "copy" and not row["skipped"]
    )


# ---- The runner


def rows_of(
    size,
    data=(None,),
    rungs=("book", "shuffles", "one launch"),
    libraries=("CUB",),
    slow=1.0,
    sm90=(),
    in_l2=False,
):
    """Invented rows of a ladder: rung i has a rate of 100 (i + 1) GB/s, the fastest library 250, the copy 400."""
    rows = []
    for which in data:
        kinds = [("rung", i, name, 100 * (i + 1)) for i, name in enumerate(rungs)]
        kinds += [("library", None, name, 250 - 10 * i) for i, name in enumerate(libraries)] + [
            ("copy", None, "copy", 400)
        ]
        for kind, number, name, rate in kinds:
            rate, same = rate / slow, kind != "copy"
            ms = size * 4 / rate / 1e6
            row = {
                "size": size,
                "title": f"{size} floats",
                "data": which,
                "kind": kind,
                "number": number,
                "name": name,
                "idea": f"idea of {name}",
                "skipped": None,
                "runs": 11,
                "median_ms": ms,
                "min_ms": ms * 0.99,
                "max_ms": ms * 1.02,
                "cold_ms": ms * 2 if in_l2 else None,
                "in_l2": in_l2,
                "rate": rate,
                "unit": "GB/s",
                "of_copy_rate": rate * slow / 400,
                "times_book": rate * slow / 100 if same else None,
                "times_library": rate * slow / 250 if same and libraries else None,
                "verified": True if same else None,
                "max_error": None,
                "rms_error": None,
            }
            if name in sm90:
                row.update(
                    dict.fromkeys(
                        (
                            "median_ms",
                            "min_ms",
                            "max_ms",
                            "cold_ms",
                            "rate",
                            "of_copy_rate",
                            "times_book",
                            "times_library",
                            "verified",
                        )
                    ),
                    skipped="needs sm_90",
                    runs=0,
                )
            rows.append(row)
    return rows


def printed(rows, device="Some GPU 3000", backend="gpu"):
    return json.dumps(
        {
            "program": "x",
            "device": device,
            "backend": backend,
            "compute_capability": "9.0",
            "multiprocessors": 2,
            "l2_bytes": 1,
            "memory_bytes": 2,
            "cuda_driver": 13000,
            "cuda_runtime": 13000,
            "seed": 1,
            "rows": rows,
        }
    )


@dataclasses.dataclass
class Bench:
    """A copy of the tree, with scripts instead of ladders."""

    tree: pathlib.Path

    def add(self, name, sizes="1M 4M", script=None, device="Some GPU 3000", **more):
        """Adds a ladder that prints rows_of() its --size, or runs the given script."""
        text = (
            (ROOT / "chapter03/hello_world.cu")
            .read_text()
            .replace("hello_world", name)
            .replace("chapter03", "chapter05")
        )
        text = text.replace("Book:    3.2.1", "Book:    5.3").replace(
            " */\n", f' * Bench:   {sizes}\n */\n#include "../common/bench.h"\n', 1
        )
        (self.tree / f"chapter05/{name}.cu").write_text(text)
        folder = self.tree / "bin/chapter05"
        for size in (None, *sizes.split()):
            number = (
                int(size.rstrip("KMG")) << {"K": 10, "M": 20, "G": 30}.get(size[-1], 0) if size else 1 << 21
            )
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.{size or 'default'}").write_text(printed(rows_of(number, **more), device))
        stand_in(folder, name, script or f'echo "$*" >>{folder}/{name}.log; exec cat "$0.${{3:-default}}"')

    def environment(self, **more):
        env = {k: v for k, v in helpers.environment().items() if not k.startswith(("MAKE", "MFLAGS"))}
        env.update({"BIN": "bin", "BACKEND": "gpu", "PATH": f"{self.tree}/tools:{env['PATH']}", **more})
        return {
            k: v
            for k, v in env.items()
            if v is not None and k not in {"SIZES", "TIME_LIMIT", "COMPARE", "RESULTS", "COMMIT"} - set(more)
        }

    def run(self, *programs, status=0, limits=None, **env):
        def before():
            for which, value in (limits or {}).items():
                resource.setrlimit(which, (value, value))

        done = subprocess.run(
            [sys.executable, "bench/run.py", *(f"chapter05/{p}" for p in programs)],
            cwd=self.tree,
            text=True,
            env=self.environment(**env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=120,
            preexec_fn=before,
        )
        result = helpers.Result(done.returncode, done.stdout, done.stderr, "run.py")
        assert done.returncode == status, str(result)
        return result

    def report(self, *arguments):
        done = subprocess.run(
            [sys.executable, "bench/report.py", *arguments],
            cwd=self.tree,
            text=True,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def arguments(self, name):
        return [
            line.removeprefix("--json").split()
            for line in (self.tree / f"bin/chapter05/{name}.log").read_text().splitlines()
        ]

    def recorded(self, device="some-gpu-3000"):
        return json.loads((self.tree / f"bench/results/{device}.json").read_text())

    def plot(self, topic, device="some-gpu-3000"):
        return self.tree / f"bench/results/{device}/chapter05/{topic}.svg"

    @property
    def page(self):
        return (self.tree / "bench/report.html").read_text()


@pytest.fixture
def bench(tmp_path):
    tree = copy_sources(tmp_path / "tree", [])
    shutil.rmtree(tree / "bench/results", ignore_errors=True)
    (tree / "bench/report.html").unlink(missing_ok=True)
    stand_in(
        tree / "tools",
        "nvidia-smi",
        """case $* in *--query-gpu=name,driver_version,*nounits*) ;; *) exit 1 ;; esac
echo 'Other GPU, 1.2.3, 1, 2, 3, 4, 5'
echo 'Some GPU 3000, 580.65.06, 1755, 2619, 1980, [N/A], 700.00'""",
    )
    stand_in(tree / "tools", "nvcc", "echo 'Cuda compilation tools, release 13.0, V13.0.88'")
    return Bench(tree)


def times(rows):
    return [(row["size"], row["name"], row["median_ms"]) for row in rows]


def record(program, folder, **settings):
    """Runs bench/run.py for a program of this build."""
    settings = {"BIN": helpers.BIN, "BACKEND": helpers.backend(), **settings}
    return subprocess.run(
        [sys.executable, ROOT / "bench/run.py", program],
        cwd=folder,
        env=helpers.environment({name: str(value) for name, value in settings.items()}),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=300,
    )


def test_real_ladders_are_recorded(tmp_path):
    """A real ladder on this back end: its record has every field, and the figures are consistent."""
    results = tmp_path / "results"
    done = record("chapter05/add_ladder", tmp_path, RESULTS=results, SIZES="1000 4K", COMMIT="abc")
    assert done.returncode == 0, done.stdout + done.stderr
    [path] = results.glob("*.json")
    found = json.loads(path.read_text())
    assert found["backend"] == helpers.backend() and path.stem == re.sub(
        "[^a-z0-9]+", "-", found["device"].lower()
    )
    block = found["programs"].pop("chapter05/add_ladder")
    assert not found["programs"]
    date = datetime.datetime.fromisoformat(block["date"])
    assert date.utcoffset() == datetime.timedelta(0)
    assert abs((datetime.datetime.now(datetime.timezone.utc) - date).total_seconds()) < 300
    assert (
        block["commit"] == "abc"
        and block["machine"]["cores"] == os.cpu_count()
        and block["machine"]["cpu"]
        and block["machine"]["os"]
    )
    assert (
        abs(block["machine"]["memory_bytes"] / (os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) - 1)
        < 1e-9
    )
    if helpers.backend() == "cpu":
        assert block["toolkit"] is None and block["driver"] is None and block["clocks"] is None
    rows = block["rows"]
    assert [row["size"] for row in rows] == [1000] * (len(rows) // 2) + [4096] * (len(rows) // 2)
    for row in rows:
        is_row_sound(row)
        if row["kind"] == "rung" and not row["skipped"]:
            same = [r for r in rows if r["size"] == row["size"]]
            [book], [copy] = [r for r in same if r["number"] == 0], [r for r in same if r["kind"] == "copy"]
            assert math.isclose(row["rate"], 12 * row["size"] / row["median_ms"] / 1e6, rel_tol=1e-4)
            assert math.isclose(row["times_book"], book["median_ms"] / row["median_ms"], rel_tol=1e-4)
            if helpers.backend() == "cpu":
                assert row["of_copy_rate"] is None  # on the CPU back end rungs are not compared with a copy
            else:
                assert math.isclose(row["of_copy_rate"], row["rate"] / copy["rate"], rel_tol=1e-4)
            assert row["times_library"] is None
    assert "4096 ints: " in done.stdout and (tmp_path / "report.html").exists()
    assert done.stderr.splitlines() == [
        f"[1/1] chapter05/add_ladder --size {size}" for size in ("1000", "4K")
    ]  # without \r, because stdout is not a terminal
    assert not list(results.glob(".*"))


@pytest.mark.skipif(
    helpers.sanitized() or os.environ.get("DEBUG", "0") != "0", reason="the bench is for the optimised build"
)
def test_make_bench(tmp_path):
    """make bench selects the ladders, builds them, and passes its settings to bench/run.py."""

    def make(*arguments):
        return helpers.make("bench", "SIZES=64", f"RESULTS={tmp_path}/results", *arguments)

    status, output = make("TOPIC=add")
    assert status == 0 and "1 of 1 ladders measured, 0 failed" in output, output
    for arguments, says in [
        ("TOPIC=nonesuch", "TOPIC=nonesuch: must be of"),
        ("CHAPTER=03", "CHAPTER=03: has no ladder"),
        ("DEBUG=1", "without SANITIZE and DEBUG"),
    ]:
        status, output = make(arguments)
        assert status == 2 and len(output.splitlines()) == 1 and says in output, output


def test_facts_of_the_gpu(bench):
    bench.add("dot_ladder")
    bench.run("dot_ladder", COMMIT="cafe")
    found = bench.recorded()
    assert (found["device"], found["backend"]) == ("Some GPU 3000", "gpu")
    block = found["programs"]["chapter05/dot_ladder"]
    assert (block["driver"], block["toolkit"], block["commit"], block["dirty"]) == (
        "580.65.06",
        "13.0.88",
        "cafe",
        None,
    )
    now = {"sm_mhz": 1755, "memory_mhz": 2619}
    assert block["clocks"] == {
        "sm_max_mhz": 1980,
        "memory_max_mhz": None,
        "power_limit_w": 700,
        "before": now,
        "after": now,
    }
    assert block["l2_bytes"] == 1 and block["seed"] == 1
    assert block["rows"] == rows_of(1 << 20) + rows_of(4 << 20)
    assert bench.arguments("dot_ladder") == [["--size", "1M"], ["--size", "4M"]]


def test_commit_and_changes(bench):
    def git(*arguments):
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *arguments],
            cwd=bench.tree,
            check=True,
            stdout=subprocess.PIPE,
        )

    bench.add("dot_ladder", device="NVIDIA H200")  # git does not ignore the results of this device
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "x")
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=bench.tree, text=True, stdout=subprocess.PIPE
    ).stdout.strip()

    def block():
        bench.run("dot_ladder")
        return bench.recorded("nvidia-h200")["programs"]["chapter05/dot_ladder"]

    assert (block()["commit"], block()["dirty"]) == (head, False)
    assert (block()["commit"], block()["dirty"]) == (head, False)  # results do not count as changes
    (bench.tree / "common/bench.h").write_text("")
    assert (block()["commit"], block()["dirty"]) == (head, True)


def test_sizes_on_the_cpu_back_end(bench):
    """The CPU back end runs the default size, and the sizes of the header that are smaller."""
    bench.add("dot_ladder", sizes="1M 2M 4M 1G")
    for file in (bench.tree / "bin/chapter05").glob("dot_ladder.[1-9d]*"):
        file.write_text(file.read_text().replace('"gpu"', '"cpu"'))
    bench.run("dot_ladder", BACKEND="cpu")
    assert bench.arguments("dot_ladder") == [[], ["--size", "1M"]]
    block = bench.recorded()["programs"]["chapter05/dot_ladder"]
    assert times(block["rows"]) == times(rows_of(1 << 20) + rows_of(1 << 21))
    assert block["toolkit"] is None and re.search(r"g\+\+|clang", block["compiler"])


def test_a_part_replaces_only_its_own_rows(bench):
    for name in "add_ladder", "dot_ladder", "gone_ladder":
        bench.add(name)
    bench.run("add_ladder", "dot_ladder", "gone_ladder", COMMIT="one")
    first = bench.recorded()["programs"]
    (bench.tree / "chapter05/gone_ladder.cu").unlink()
    bench.add("dot_ladder", slow=2.0)
    bench.add("scan_ladder")
    bench.run("scan_ladder", "dot_ladder", COMMIT="two")
    second = bench.recorded()["programs"]
    assert list(second) == ["chapter05/add_ladder", "chapter05/dot_ladder", "chapter05/scan_ladder"]
    assert second["chapter05/add_ladder"] == first["chapter05/add_ladder"]
    assert [second[p]["commit"] for p in second] == ["one", "two", "two"]
    assert times(second["chapter05/dot_ladder"]["rows"]) == times(
        rows_of(1 << 20, slow=2.0) + rows_of(4 << 20, slow=2.0)
    )
    # The results of another device are in another file.
    stand_in(
        bench.tree / "bin/chapter05",
        "dot_ladder",
        f"cat <<'END'\n{printed(rows_of(1 << 20), 'Other/GPU (2)')}\nEND",
    )
    bench.run("dot_ladder")
    assert (
        list(bench.recorded("other-gpu-2")["programs"]) == ["chapter05/dot_ladder"]
        and bench.recorded()["programs"] == second
    )
    assert bench.page.count("<section") == 3 and bench.page.count("<h3>") == 4


WRONG = json.dumps({**json.loads(printed([])), "rows": [{**rows_of(1 << 20)[1], "verified": False}]})


@pytest.mark.parametrize(
    "script, says, status",
    [
        ("echo 'dot_ladder: sum is wrong' >&2; exit 1", "FAILED: exit status 1: dot_ladder: sum is wrong", 1),
        ("exit 64", "FAILED: exit status 64", 1),
        ("kill -SEGV $$", "FAILED: ended by signal 11", 1),
        ("echo '{}'", "FAILED: what it printed is not the JSON of a ladder", 1),
        ("echo hello", "FAILED: what it printed is not the JSON of a ladder", 1),
        (f"echo '{WRONG}'", "FAILED: shuffles is not verified", 1),
        ('case $3 in 1M) exec cat "$0.1M" ;; esac; exit 1', "FAILED: exit status 1", 1),
        ("sleep 60", "FAILED: ran longer than 0.5 s", 1),
        (
            "echo 'dot_ladder: needs 2 GPUs, found 1' >&2; exit 2",
            "waived: dot_ladder: needs 2 GPUs, found 1",
            0,
        ),
        (
            "echo 'dot_ladder: out of memory: needs 9.00 GiB of device memory, 1.00 GiB are free' >&2; exit 1",
            "waived: no size fits into the memory here",
            0,
        ),
    ],
)
def test_what_fails_is_not_recorded(bench, script, says, status):
    bench.add("add_ladder")
    bench.add("dot_ladder")
    bench.run("dot_ladder")
    before = bench.recorded()["programs"]["chapter05/dot_ladder"]
    stand_in(bench.tree / "bin/chapter05", "dot_ladder", script)
    result = bench.run("dot_ladder", "add_ladder", status=status, TIME_LIMIT="0.5")
    lines = result.out + result.err
    assert (
        f"chapter05/dot_ladder: {says}" in lines and f"1 of 2 ladders measured, {status} failed" in lines
    ), str(result)
    after = bench.recorded()["programs"]
    assert after["chapter05/dot_ladder"] == before and len(after["chapter05/add_ladder"]["rows"]) == 10


def test_an_injected_error_is_not_recorded(tmp_path):
    """A real program that finds an error in its result is not recorded either."""
    program = next(p for p in helpers.programs() if p.bench and p.built)
    stand_in(
        tmp_path / "bin" / program.name.split("/")[0],
        program.base,
        f'exec {helpers.BIN / program.name} --inject-error "$@"',
    )
    done = record(program.name, tmp_path, BIN=tmp_path / "bin", RESULTS=tmp_path / "results", SIZES="64")
    assert done.returncode == 1 and f"{program.name}: FAILED: exit status 1: " in done.stderr
    assert list((tmp_path / "results").iterdir()) == []


def test_a_size_that_does_not_fit_is_left_out(bench):
    bench.add(
        "dot_ladder",
        script='case $3 in 4M) echo "dot_ladder: out of memory: needs 9.00 GiB of device memory, 1.00 GiB are free" >&2; '
        'exit 1 ;; esac; exec cat "$0.$3"',
    )
    result = bench.run("dot_ladder")
    assert "chapter05/dot_ladder --size 4M: left out, out of memory: needs 9.00 GiB" in result.out, str(
        result
    )
    assert times(bench.recorded()["programs"]["chapter05/dot_ladder"]["rows"]) == times(rows_of(1 << 20))


def test_not_built(bench):
    bench.add("dot_ladder")
    (bench.tree / "bin/chapter05/dot_ladder").unlink()
    assert "chapter05/dot_ladder: waived: not built" in bench.run("dot_ladder").out
    assert (
        "chapter05/nonesuch: is no ladder; there are chapter05/dot_ladder"
        in bench.run("nonesuch", status=1).err
    )


@pytest.mark.parametrize("results", ["/proc/results", "file/results"])
def test_results_that_can_not_be_written(bench, results):
    """The error is reported before any measurement."""
    bench.add("dot_ladder")
    (bench.tree / "file").write_text("")
    result = bench.run("dot_ladder", status=1, RESULTS=results)
    assert (
        len(result.errors) == 1
        and "cannot be written" in result.err
        and results in result.err
        and not result.out
    ), str(result)
    assert not (bench.tree / "bin/chapter05/dot_ladder.log").exists()


def test_full_disk(bench):
    """After a failed write the old results are unchanged, and there are no other files."""
    bench.add("dot_ladder", sizes="1M")
    bench.run("dot_ladder")
    folder = bench.tree / "bench/results"
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    bench.add("dot_ladder", sizes="1M", slow=2.0)
    result = bench.run("dot_ladder", status=1, limits={resource.RLIMIT_FSIZE: 1000})
    assert result.errors[1:] == [
        "bench: bench/results/some-gpu-3000.json: cannot be written: File too large"
    ], str(result)
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before


def test_results_that_are_none(bench):
    bench.add("dot_ladder")
    path = bench.tree / "bench/results/some-gpu-3000.json"
    path.parent.mkdir()
    for text in "{", "{}", "[]", '{"format": 1}', '{"format": 2}', '{"format": 3}':
        path.write_text(text)
        result = bench.run("dot_ladder", status=1)
        assert (
            len(result.errors) == 1
            and "some-gpu-3000.json: no results (" in result.err
            and path.read_text() == text
        ), str(result)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_interrupt_keeps_what_was_measured(bench, number):
    bench.add("add_ladder")
    bench.add("dot_ladder", script=f"sleep 60 & echo $! >{bench.tree}/pid; wait")
    process = subprocess.Popen(
        [sys.executable, "bench/run.py", "chapter05/add_ladder", "chapter05/dot_ladder"],
        cwd=bench.tree,
        text=True,
        env=bench.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    pid = bench.tree / "pid"
    for _ in range(600):
        if pid.exists() and pid.read_text():
            break
        time.sleep(0.05)
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted" in out and "Traceback" not in out, out
    assert list(bench.recorded()["programs"]) == ["chapter05/add_ladder"] and "add" in bench.page
    time.sleep(0.1)
    status = pathlib.Path(f"/proc/{int(pid.read_text())}/stat")
    assert (
        not status.exists() or status.read_text().split()[2] == "Z"
    ), "what the ladder started is still running"


def test_progress_on_a_terminal(bench):
    bench.add("dot_ladder", sizes="1M")
    main, side = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "bench/run.py", "chapter05/dot_ladder"],
        cwd=bench.tree,
        env=bench.environment(),
        stdout=subprocess.DEVNULL,
        stderr=side,
    )
    os.close(side)
    shown = b""
    try:
        while chunk := os.read(main, 4096):
            shown += chunk
    except OSError:  # the process has closed the terminal
        pass
    assert process.wait(60) == 0
    assert (
        shown.startswith(b"\r\033[K[1/1] chapter05/dot_ladder --size 1M  0 s")
        and shown.endswith(b"\r\033[K")
        and b"\n" not in shown
    )


def test_comparison_with_what_was_recorded(bench):
    bench.add("dot_ladder", sizes="1M 4M")
    assert "0 rows over 20 µs compared" in bench.run("dot_ladder", status=1, COMPARE="1").out
    assert not list((bench.tree / "bench").glob("results/*.json"))
    bench.run("dot_ladder")
    before = (bench.tree / "bench/results/some-gpu-3000.json").read_text()
    bench.add("dot_ladder", sizes="1M 4M", slow=1.029)
    result = bench.run("dot_ladder", COMPARE="1")
    # At 1M the rungs take 42, 21 and 14 µs, the library 17 µs and the copy 10 µs; at 4M four times as long.
    assert "7 rows over 20 µs compared, 0 moved by more than 3%" in result.out, str(result)
    for slow, change in (1.04, "+4.0%"), (0.96, "-4.0%"):
        bench.add("dot_ladder", sizes="1M 4M", slow=slow)
        result = bench.run("dot_ladder", status=1, COMPARE="1")
        moved = re.findall(
            r"^chapter05/dot_ladder: (\d+) floats: (.*): \S+ ms, was \S+ \((.*)\)$", result.out, re.M
        )
        assert (
            len(moved) == 7
            and {m[2] for m in moved} == {change}
            and ("1048576", "one launch", change) not in moved
        )
        assert "7 rows over 20 µs compared, 7 moved" in result.out
    assert (bench.tree / "bench/results/some-gpu-3000.json").read_text() == before


# ---- The plots


SVG = "{http://www.w3.org/2000/svg}"


def drawn(path):
    """The ids of the lines and bars of rungs, libraries and copies, and all texts of a plot."""
    tree = xml.etree.ElementTree.fromstring(path.read_text())
    ids = [
        g.get("id")
        for g in tree.iter()
        if re.match(r"(p\d+-)?(rung|library|copy|line)-\d+$", g.get("id") or "")
    ]
    return ids, ["".join(text.itertext()).strip() for text in tree.iter(f"{SVG}text")]


def bar_widths(path):
    bars = re.findall(
        r'<g id="((?:p\d+-)?(?:rung|library|copy)-\d+)">\s*<path d="M (\S+) \S+\s*L (\S+) ', path.read_text()
    )
    return {name: float(right) - float(left) for name, left, right in bars}


@needs_plots
def test_lines(bench):
    bench.add(
        "dot_ladder",
        sizes="1M 4M 50000000",
        rungs=["book", "shuffles", "clusters", "one launch"],
        libraries=["CUB", "cuBLAS <&>"],
        sm90=["clusters"],
    )
    bench.run("dot_ladder")
    ids, texts = drawn(bench.plot("dot"))
    assert ids == ["rung-0", "rung-1", "rung-3", "library-0", "library-1", "copy-0"]
    assert {
        "0 book",
        "1 shuffles",
        "2 clusters: needs sm_90",
        "3 one launch",
        "CUB",
        "cuBLAS <&>",
        "copy (copy rate)",
        "1M",
        "4M",
        "50·10⁶",
        "GB/s, log scale",
        "floats (--size), log scale",
        "dot",
    } <= set(texts)
    # A line has a point for each size. The rates here do not depend on the size, and the fastest line is the highest.
    tree = xml.etree.ElementTree.fromstring(bench.plot("dot").read_text())
    heights = {}
    for g in tree.iter(f"{SVG}g"):
        if g.get("id") in ids:
            path = g.find(f"{SVG}path")
            points = re.findall(r"[ML] (\S+) (\S+)", path.get("d"))
            assert len(points) == 3 and len({y for _, y in points}) == 1
            heights[g.get("id")] = float(points[0][1])
            assert ("stroke-dasharray" in path.get("style")) == (not g.get("id").startswith("rung"))
    assert (
        heights["rung-0"]
        > heights["rung-1"]
        > heights["library-1"]
        > heights["library-0"]
        > heights["copy-0"]
    )
    assert math.isclose(heights["rung-3"], heights["copy-0"])
    assert math.isclose(
        (heights["rung-0"] - heights["rung-1"]) * 2, heights["rung-0"] - heights["rung-3"], rel_tol=1e-4
    )


@needs_plots
def test_panels_and_bars(bench):
    """Each data set has a panel. With one size, or with different rungs at each size, the plot has bars."""
    bench.add("histogram_ladder", data=["uniform", "skewed", "all equal"])
    bench.add("heat_ladder", sizes="1K 16K")
    small, large = rows_of(1 << 10, rungs=["book", "fused", "graph"], libraries=[]), rows_of(
        1 << 14, rungs=["book", "fused", "blocking"], libraries=["x"], in_l2=True
    )
    for size, rows in ("1K", small), ("16K", large):
        (bench.tree / f"bin/chapter05/heat_ladder.{size}").write_text(printed(rows))
    bench.run("histogram_ladder", "heat_ladder")
    ids, texts = drawn(bench.plot("histogram"))
    assert ids == [
        f"p{panel}-{kind}"
        for panel in range(3)
        for kind in ("rung-0", "rung-1", "rung-2", "library-0", "copy-0")
    ]
    assert {"histogram: uniform", "histogram: skewed", "histogram: all equal"} <= set(texts) and texts.count(
        "2 one launch"
    ) == 3
    ids, texts = drawn(bench.plot("heat"))
    assert sorted(ids) == sorted(
        [
            "p0-rung-0",
            "p0-rung-1",
            "p0-rung-2",
            "p0-copy-0",
            "p1-rung-0",
            "p1-rung-1",
            "p1-rung-2",
            "p1-library-0",
            "p1-copy-0",
        ]
    )
    far = [{**row, "rate": row["rate"] * (100 if row["kind"] == "copy" else 1)} for row in small]
    (bench.tree / "bin/chapter05/heat_ladder.1K").write_text(printed(far))
    width = bar_widths(bench.plot("heat"))["p0-rung-2"]
    bench.run("heat_ladder")  # a copy that is much faster does not make the other bars shorter
    assert drawn(bench.plot("heat"))[0] == ids and bar_widths(bench.plot("heat"))["p0-rung-2"] > width
    assert "40000 GB/s, 0.0102 µs →" in drawn(bench.plot("heat"))[1]
    assert {
        "heat: 1024 floats",
        "heat: 16384 floats",
        "2 graph",
        "2 blocking",
        "x",
        "300 GB/s, 0.0137 µs",
        "copy (copy rate)",
        "GB/s",
    } <= set(texts)


def with_rows(bench, name, rows):
    """Adds a ladder with one size and these rows."""
    bench.add(name, sizes="1M")
    (bench.tree / f"bin/chapter05/{name}.1M").write_text(printed(rows))
    return rows


def several_copies(size=1 << 20):
    """The rows of a ladder with three copies, two of which have almost the same rate."""
    rows = rows_of(size, libraries=["CUB"])
    copy = rows.pop()
    return rows + [
        {
            **copy,
            "name": name,
            "rate": rate,
            **{f"{which}_ms": copy["median_ms"] * 400 / rate for which in ("min", "median", "max")},
        }
        for name, rate in (
            ("copies up", 400),
            ("copies down", 800),
            ("copies across", 810),
            ("kernels", 9000),
        )
    ]


def text_boxes(path):
    """The approximate place of each text of a plot: text, left, right, top, bottom. Vertical texts are left out."""
    for text in xml.etree.ElementTree.fromstring(path.read_text()).iter(f"{SVG}text"):
        if "rotate(-90" in text.get("transform"):
            continue
        if text.get("x"):
            x, y = float(text.get("x")), float(text.get("y"))
        else:
            x, y = map(float, re.match(r"translate\((\S+) (\S+)\)", text.get("transform")).groups())
        size, words = float(re.search(r"font(?:-size)?: ([\d.]+)px", text.get("style"))[1]), "".join(
            text.itertext()
        )
        width = 0.5 * size * len(words)
        x -= width * {"middle": 0.5, "end": 1}.get(
            (re.search(r"text-anchor: (\w+)", text.get("style")) or [0, "start"])[1], 0
        )
        yield words, x, x + width, y - 0.7 * size, y


def overprints(path):
    """The pairs of texts that overlap."""
    return [
        (a[0], b[0])
        for a, b in itertools.combinations(text_boxes(path), 2)
        if a[1] < b[2] and b[1] < a[2] and a[3] < b[4] and b[3] < a[4]
    ]


@needs_plots
def test_no_text_stands_on_another(bench):
    with_rows(bench, "streams_ladder", several_copies())
    bench.run("streams_ladder")
    assert {"copies up (copy rate)", "copies down", "copies across", "kernels"} <= set(
        drawn(bench.plot("streams"))[1]
    )
    plots = [bench.plot("streams"), *(ROOT / "bench/results").rglob("*.svg")]
    assert not [(path.stem, pair) for path in plots for pair in overprints(path)]
    doubled = bench.tree / "doubled.svg"
    doubled.write_text(re.sub(r"(<text .*</text>)", r"\1\1", bench.plot("streams").read_text(), count=1))
    assert len(overprints(doubled)) == 1  # overprints() finds an overlap


def test_a_less_accurate_library_is_not_compared_with(bench):
    """It is in the tables and in the plot, but neither the last line of the runner nor README calls it the fastest library."""
    rows = rows_of(1 << 20, libraries=["CUB", "half"])
    [row] = [row for row in rows if row["name"] == "half"]
    row.update(kind="inaccurate", rate=900, median_ms=0.1, min_ms=0.1, max_ms=0.1)
    with_rows(bench, "dot_ladder", rows)
    result = bench.run("dot_ladder")
    assert "1.20 × CUB" in result.out and "half" not in result.out, result.out
    assert "less accurate library" in bench.page and "half" in bench.page
    if PLOTS:
        assert "half" in drawn(bench.plot("dot"))[1]


@needs_plots
def test_a_line_that_ends_early_has_its_name_there(bench):
    """The name of the line is beside its last point, and no leader is drawn from there to the edge."""
    bench.add("heat_ladder", sizes="1M 4M 16M")
    for size in "4M", "16M":
        file = bench.tree / f"bin/chapter05/heat_ladder.{size}"
        found = json.loads(file.read_text())
        found["rows"] = [
            {
                **row,
                "skipped": "needs a small plate",
                "rate": None,
                "median_ms": None,
                "min_ms": None,
                "max_ms": None,
                "verified": None,
            }
            if row["name"] == "one launch"
            else row
            for row in found["rows"]
        ]
        file.write_text(json.dumps(found))
    bench.run("heat_ladder")
    tree = xml.etree.ElementTree.fromstring(bench.plot("heat").read_text())
    [line] = [g for g in tree.iter(f"{SVG}g") if g.get("id") == "rung-2"]
    [point] = line.iter(f"{SVG}use")
    [box] = [box for box in text_boxes(bench.plot("heat")) if box[0] == "2 one launch"]
    assert 0 < box[1] - float(point.get("x")) < 10 and 0 < float(point.get("y")) - box[4] < 10
    color = re.search(r"stroke: (#\w+)", point.get("style"))[1]
    drawn_so = [
        path.get("d") for path in tree.iter(f"{SVG}path") if f"stroke: {color}" in path.get("style", "")
    ]
    assert all(
        len(set(re.findall(r"[MLQ] (\S+)", d))) <= 1 or "C" in d or "z" in d for d in drawn_so
    ), drawn_so


def luminance(color):
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return sum(
        part * (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4)
        for part, v in zip((0.2126, 0.7152, 0.0722), channels)
    )


def contrast(a, b):
    """The contrast of two colours as WCAG defines it, from 1 to 21."""
    dark, light = sorted((luminance(a), luminance(b)))
    return (light + 0.05) / (dark + 0.05)


def in_the_dark(svg):
    """A dict from each colour to its colour in the dark scheme."""
    return dict(
        re.findall(r'\[style\*="(?:fill|stroke): (#\w+)"\] \{(?:fill|stroke): (#\w+) !important\}', svg)
    )


@needs_plots
def test_contrast_of_the_plots(bench):
    """On a light and on a dark background, lines and bars have a contrast of at least 3 to 1 and texts of 4.5 to 1. No part
    stays white in the dark scheme."""
    bench.add(
        "dot_ladder",
        rungs=[f"rung {i}" for i in range(10)],
        libraries=["CUB", "cuBLAS", "Thrust", "x"],
        sm90=["rung 3"],
    )
    with_rows(bench, "streams_ladder", several_copies())
    bench.run("dot_ladder", "streams_ladder")
    for path in (bench.plot("dot"), bench.plot("streams"), *(ROOT / "bench/results").rglob("*.svg")):
        svg = path.read_text()
        dark, lines, texts = in_the_dark(svg), set(), set()
        for g in xml.etree.ElementTree.fromstring(svg).iter(f"{SVG}g"):
            if re.match(r"(p\d+-)?(rung|library|copy|line)-\d+$", g.get("id") or ""):
                lines |= {
                    color
                    for part in g.iter()
                    for color in re.findall(r"stroke: (#\w+)", part.get("style", ""))
                }
            texts |= {re.search(r"fill: (#\w+)", part.get("style"))[1] for part in g.iter(f"{SVG}text")}
        paper = dark["#ffffff"]
        assert len(lines) > 2 and luminance(paper) < 0.05
        assert ('fill="#ffffff"' in svg) == (
            f'[fill="#ffffff"] {{fill: {paper}}}' in svg
        )  # the area of a bar, below its hatch
        for colors, least in (lines, 3), (texts, 4.5):
            for color in colors:
                assert contrast(color, "#ffffff") >= least, f"{path.stem}: {color}"
                assert (
                    contrast(dark[color], paper) >= least
                ), f"{path.stem}: {color} in the dark: {dark[color]}"


@needs_plots
def test_a_plot_in_words(bench):
    """The SVG has a title, and a description with every figure of the largest size."""
    bench.add(
        "dot_ladder", libraries=["cuBLAS <&>"], rungs=["book", "a \\1 rung", "clusters"], sm90=["clusters"]
    )
    bench.run("dot_ladder")
    svg = xml.etree.ElementTree.fromstring(bench.plot("dot").read_text())
    assert (
        svg.get("role") == "img" and svg[0].tag == f"{SVG}title" and svg[0].text == "dot: rate of each rung"
    )
    assert svg[1].tag == f"{SVG}desc" and svg[1].text == (
        "dot, at --size 4194304: 0 book 100 GB/s, 1 a \\1 rung 200 GB/s, 2 clusters needs sm_90, "
        "cuBLAS <&> 250 GB/s, copy (copy rate) 400 GB/s."
    )


@pytest.mark.parametrize("copy", ["without a share", "without a time", "left out"])
def test_without_a_copy_rate(bench, copy):
    """Without a copy rate no rung is compared with a copy, as on the CPU back end."""
    rows = [{**row, "of_copy_rate": None} for row in rows_of(1 << 20)]
    if copy == "without a time":
        rows[-1].update(
            dict.fromkeys(("median_ms", "min_ms", "max_ms", "rate")), skipped="needs a GPU", runs=0
        )
    with_rows(bench, "dot_ladder", rows[:-1] if copy == "left out" else rows)
    out = bench.run("dot_ladder").out
    assert "1048576 floats: 2 one launch 14.0 µs, 300 GB/s, 3.00 × book, 1.20 × CUB\n" in out
    [table] = unescaped(bench.page).iter("table")
    head, *body = [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]
    assert "of copy rate" not in head and body[2][head.index("rate") :] == ["300 GB/s", "3.00", "1.20", "yes"]
    assert not PLOTS or "2 one launch" in drawn(bench.plot("dot"))[1]


@needs_plots
def test_plots_repeat(bench):
    """The same rows give the same file, which is not written again; other rows give another file."""
    bench.add("dot_ladder")
    bench.add("add_ladder", rungs=["book", "x", "y", "one launch"])
    bench.run("dot_ladder")
    bench.run("add_ladder")
    plot = bench.plot("dot")
    first, written = plot.read_bytes(), plot.stat().st_mtime_ns
    assert str(datetime.date.today().year).encode() not in first and b"Matplotlib" not in first
    bench.report()
    assert plot.stat().st_mtime_ns == written
    plot.unlink()
    bench.plot("add").unlink()  # the file does not depend on the plots that are drawn before it
    bench.report()
    assert plot.read_bytes() == first
    bench.add("dot_ladder", slow=2.0)
    bench.run("dot_ladder")
    assert plot.read_bytes() != first


def test_without_matplotlib(bench):
    """Without matplotlib no plot is drawn, and the page shows no plots of older rows."""
    bench.add("dot_ladder")
    bench.run("dot_ladder")
    (bench.tree / "tools/matplotlib.py").write_text("raise ImportError")
    bench.add("dot_ladder", slow=2.0)
    result = bench.run("dot_ladder", PYTHONPATH=str(bench.tree / "tools"))
    assert "plots are off: no python3 here has matplotlib" in result.out
    assert "<svg" not in bench.page and "1 of 1 ladders measured" in result.out and "one launch" in bench.page


# ---- The page


def unescaped(page):
    return xml.etree.ElementTree.fromstring(re.sub(r"^<!DOCTYPE html>\n|<meta [^>]*>", "", page))


@needs_plots
def test_the_page_is_whole(bench):
    bench.add("dot_ladder", sizes="1M 4M 16M", libraries=["CUB", "cuBLAS <&>"], in_l2=True)
    bench.add("histogram_ladder", data=["uniform", "skewed"])
    bench.run("dot_ladder", "histogram_ladder")
    page = unescaped(bench.page)
    ids = [element.get("id") for element in page.iter() if element.get("id")]
    assert len(ids) == len(set(ids)), "the same id twice"
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', bench.page))
    assert len(used) > 10 and used <= set(ids)
    assert not re.search(r'(src|href)="(?!#)|@import|<script|url\((?!#)', bench.page), "it needs another file"
    assert len(list(page.iter(f"{SVG}svg"))) == 2
    tables = {
        "".join(t.find("caption").itertext()): [
            ["".join(cell.itertext()) for cell in row] for row in t.iter("tr")
        ]
        for t in page.iter("table")
    }
    assert set(tables) == {
        "1048576 floats",
        "4194304 floats",
        "16777216 floats",
        *(f"{n} floats, {d}" for n in (1 << 20, 4 << 20) for d in ("uniform", "skewed")),
    }
    head, *rows = tables["16777216 floats"]
    assert head == [
        "#",
        "name",
        "what is new",
        "median",
        "min",
        "max",
        "cold",
        "rate",
        "of copy rate",
        "× book",
        "× library",
        "verified",
    ]
    assert rows[2] == [
        "2",
        "one launch",
        "idea of one launch",
        "224 µs",
        "221 µs",
        "228 µs",
        "447 µs",
        "300 GB/s",
        "75.0 %",
        "3.00",
        "1.20",
        "yes",
    ]
    assert (
        rows[4][:2] == ["library", "cuBLAS <&>"]
        and rows[5][0] == "copy rate"
        and rows[5][-3:] == ["–", "–", "–"]
    )
    [line] = {"".join(p.itertext()) for p in page.iter("p") if p.get("class") == "machine"}
    for fact in (
        "driver 580.65.06",
        "CUDA 13.0.88",
        "1980 MHz",
        "1755 and 1755 MHz before and after",
        "700 W",
        str(datetime.datetime.now(datetime.timezone.utc).date()),
    ):
        assert fact in line, line


@needs_plots
def test_the_page_is_for_everybody(bench):
    """Properties of the page that axe does not check, or only in a browser."""
    bench.add("dot_ladder", sizes="1M 4M")
    bench.add("histogram_ladder", data=["uniform", "skewed"])
    bench.run("dot_ladder", "histogram_ladder")
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in bench.page
    page = unescaped(bench.page)
    assert len(list(page.iter("main"))) == 1
    assert {cell.get("scope") for cell in page.iter("th")} == {"col", "row"}
    assert all(
        [cell.get("scope") for cell in row.iter("th")] == ["row"]
        for body in page.iter("tbody")
        for row in body
    )
    scrolled = [*page.iter("figure"), *(div for div in page.iter("div") if div.get("class") == "table")]
    assert len(scrolled) == 2 + len(list(page.iter("table"))) and all(
        box.get("tabindex") == "0" and box.get("role") == "group" for box in scrolled
    )
    labels = [box.get("aria-label") for box in scrolled]
    assert len(set(labels)) == len(labels) and "dot on Some GPU 3000: 4194304 floats" in labels
    assert {svg[0].text for svg in page.iter(f"{SVG}svg")} == {
        f"{topic}: rate of each rung on Some GPU 3000" for topic in ("dot", "histogram")
    }


def test_of_several_copies_the_slowest_counts(bench):
    """The slowest copy is the copy rate and has 100 %. The other copies have no share, whether they are faster or were not run."""
    with_rows(bench, "streams_ladder", several_copies())
    bench.run("streams_ladder")
    head, *body = [["".join(cell.itertext()) for cell in row] for row in unescaped(bench.page).iter("tr")]
    shares = [(row[0], row[1], row[head.index("of copy rate")]) for row in body]
    assert shares[-5:] == [
        ("library", "CUB", "62.5 %"),
        ("copy rate", "copies up", "100.0 %"),
        ("other rate", "copies down", "–"),
        ("other rate", "copies across", "–"),
        ("other rate", "kernels", "–"),
    ]


def pictures_of(cells, page, tmp_path, dark):
    """Makes one screenshot of plots side by side, as the page shows them. `cells` has for each plot its figure and its rules of
    style, in which & stands for its place. Returns an array for each plot."""
    from PIL import Image

    places, top, columns = [], 0, 2
    for row in itertools.zip_longest(*[iter(cells)] * columns):
        height = max(
            math.ceil(float(re.search(r'<svg [^>]*height="([\d.]+)pt"', cell[0])[1]) * 4 / 3)
            for cell in row
            if cell
        )
        places += [(800 * i, top, height) for i, cell in enumerate(row) if cell]
        top += height
    shown = (
        re.search(r".*?</style>", page, re.S)[0]
        + "<style>figure { margin: 0 } section section { position: absolute; width: 800px; overflow: hidden }</style>"
    )
    shown += "</head><body><main><section>"
    for i, ((figure, rules), (left, y, height)) in enumerate(zip(cells, places)):
        shown += (
            f"<style>{rules.replace('&', f'#cell-{i}')}</style>"
            f'<section id="cell-{i}" style="left: {left}px; top: {y}px; height: {height}px">{figure}</section>'
        )
    picture = tmp_path / "plots.png"
    said = browse(
        tmp_path,
        shown + "</section></main></body></html>",
        f"--window-size={800 * columns},{top}",
        f"--screenshot={picture}",
        dark=dark,
    )
    assert picture.exists(), said
    with Image.open(picture) as opened:
        pixels = np.asarray(opened.convert("RGB")).astype(np.int16)
    picture.unlink()
    return [pixels[y : y + height, left : left + 800] for left, y, height in places]


def counts_of(picture):
    """The colours of a picture and the number of pixels of each. There are far fewer colours than pixels."""
    return np.unique(picture.astype(np.int32) @ (1 << 16, 1 << 8, 1), return_counts=True)


def pixels_of(color, counts):
    colors, numbers = counts
    near = [abs((colors >> shift & 255) - (int(color[1:], 16) >> shift & 255)) <= 3 for shift in (16, 8, 0)]
    return int(numbers[np.logical_and.reduce(near)].sum())


def plots_are_drawn(page, tmp_path, style="", dark=False):
    """Checks that the page shows each colour of the lines of a plot, and that the picture changes without the texts."""
    page = page.replace("</style>", f"{style}</style>", 1)
    figures = re.findall(r"<figure.*?</figure>", page, re.S)
    assert figures and len(figures) == page.count("<svg")
    pictures = pictures_of(
        [cell for figure in figures for cell in ((figure, ""), (figure, "& text { display: none }"))],
        page,
        tmp_path,
        dark,
    )
    hidden = []
    for figure, whole, mute in zip(figures, pictures[::2], pictures[1::2]):
        title, counts = re.search("<title>(.*?)</title>", figure)[1], counts_of(whole)
        becomes = in_the_dark(figure) if dark else {}
        lines = re.findall(r'id="([^"]*(?:rung|library)-\d+)">(.*?)</g>', figure, re.S)
        colors = {
            name: set(re.findall(r"(?:stroke|fill): (#[0-9a-f]{6})", line)) - {"#ffffff"}
            for name, line in lines
        }
        assert len(set().union(*colors.values())) >= 2
        for name, own in colors.items():
            alone = "".join(
                f"& [id='{other}'] {{ visibility: hidden }} " for other in colors if other != name
            )
            for color in {becomes.get(color, color) for color in own}:
                if (
                    pixels_of(color, counts) < 15
                ):  # fewer pixels than a marker: lines that are drawn later may cover it, so it is drawn alone
                    hidden.append((f"{title}: {name}", color, (figure, alone)))
        text = int((np.abs(whole - mute).max(axis=2) > 60).sum())
        assert hidden or text > 1000, f"{title}: no text, it changes {text} pixels"
    alone = pictures_of([cell for *_, cell in hidden], page, tmp_path, dark) if hidden else []
    for (line, color, _), picture in zip(hidden, alone):
        count = pixels_of(color, counts_of(picture))
        assert count >= 15, f"{line}: {count} pixels of {color}"


@needs_plots
@needs_browser
def test_the_page_in_a_browser(bench, tmp_path):
    bench.add("dot_ladder", sizes="1M 4M 16M")
    bench.add("histogram_ladder", data=["uniform", "skewed", "all equal"])
    with_rows(bench, "streams_ladder", several_copies())
    bench.run("dot_ladder", "histogram_ladder", "streams_ladder")
    plots_are_drawn(bench.page, tmp_path)
    plots_are_drawn(bench.page, tmp_path, dark=True)
    one_line = re.search(r'id="([^"]*streams[^"]*rung-1)"', bench.page)[1]
    for broken, says in ("text { display: none }", "no text"), (
        f"#{one_line} {{ visibility: hidden }}",
        "rung-1: 0 pixels of #",
    ):
        with pytest.raises(AssertionError, match=says):
            plots_are_drawn(bench.page, tmp_path, broken)


RECORDED = pytest.mark.skipif(
    not list((ROOT / "bench/results").glob("*.json")), reason="nothing is recorded here"
)


def page_of_records(bench, programs=None):
    """The page of the recorded runs, or of those of some programs."""
    shutil.copytree(ROOT / "bench/results", bench.tree / "bench/results")
    for file in (bench.tree / "bench/results").glob("*.json"):
        machine = json.loads(file.read_text())
        machine["programs"] = {
            name: block for name, block in machine["programs"].items() if not programs or name in programs
        }
        file.write_text(json.dumps(machine))
    bench.report()
    return bench.page


@pytest.fixture
def recorded_page(bench, once):
    return once("recorded page", lambda folder: page_of_records(bench))


@needs_plots
@needs_browser
@RECORDED
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_recorded_page_in_a_browser(recorded_page, tmp_path, dark):
    plots_are_drawn(recorded_page, tmp_path, dark=dark)


def violations_in(page, axe, tmp_path, widths, dark):
    (tmp_path / "asked.html").write_text(page)
    return violations(axe, [tmp_path / "asked.html"], tmp_path, widths, dark)


@needs_plots
@needs_browser
def test_axe_finds_nothing(bench, axe, tmp_path):
    bench.add("dot_ladder", sizes="1M 4M 16M", libraries=["CUB", "cuBLAS <&>"], in_l2=True)
    with_rows(bench, "streams_ladder", several_copies())
    bench.run("dot_ladder", "streams_ladder")
    page = bench.page.replace("<details>", "<details open>")
    for dark in False, True:
        assert violations_in(page, axe, tmp_path, [375, 1200], dark) == {}
    for old, new in (
        ("<main>", "<div>"),
        ("</main>", "</div>"),
        (' tabindex="0"', ""),
        ("<title>", "<i>"),
        ("</title>", "</i>"),
        ("--ink: #e6e6e6", "--ink: #444"),
    ):
        page = page.replace(old, new)
    found = violations_in(page, axe, tmp_path, [375], True)
    assert found.keys() >= {
        "color-contrast",
        "landmark-one-main",
        "region",
        "scrollable-region-focusable",
        "svg-img-alt",
        "document-title",
    }, found


@needs_plots
@needs_browser
@RECORDED
@pytest.mark.parametrize("width, dark", [(1200, False), (375, True)], ids=["light", "phone and dark"])
def test_axe_finds_nothing_in_the_recorded_page(bench, axe, tmp_path, width, dark):
    """Four topics, of each machine that has them. For all of them axe takes minutes, and their parts have the same form."""
    some = "chapter04/julia_ladder", "chapter05/reduction", "chapter07/heat_ladder", "chapter10/stream_ladder"
    page = page_of_records(bench, some)
    assert all(name.split("/")[1] in page for name in some)
    assert violations_in(page, axe, tmp_path, [width], dark) == {}


# ---- The figures that the pages quote


def section(path, name):
    return (
        path.read_text().split(f"<!-- {name}:begin", 1)[1].split("-->\n", 1)[1].split(f"<!-- {name}:end")[0]
    )


@pytest.mark.parametrize(
    "file, name, option",
    [
        ("README.md", "performance", "--summary"),
        ("docs/performance.md", "performance", "--table"),
        ("docs/performance.md", "plots", "--plots"),
    ],
)
def test_what_is_quoted_is_fresh(file, name, option):
    text = subprocess.run(
        [sys.executable, ROOT / "bench/report.py", option],
        cwd=ROOT,
        text=True,
        check=True,
        stdout=subprocess.PIPE,
        env={k: v for k, v in os.environ.items() if k != "RESULTS"},
    ).stdout
    assert section(ROOT / file, name) == text, "stale: run make docs"


def test_recorded_plots_are_fresh():
    """Each recorded program has a plot, drawn from its present rows by the present plots.py."""
    sys.path.insert(0, str(ROOT / "bench"))
    import results

    for path in (ROOT / "bench/results").glob("nvidia-h200.json"):
        for program, block in json.loads(path.read_text())["programs"].items():
            assert results.plot(path.stem, program, block["rows"]), f"{program}: run make docs"


def test_above_100_percent_is_explained(bench):
    """A page with shares of the copy rate explains how they can be above 100 %."""
    why = "Reads alone are faster than a copy"
    bench.add("dot_ladder", sizes="1M")
    bench.run("dot_ladder")
    for text in (
        *(section(ROOT / "docs/performance.md", name) for name in ("performance", "plots")),
        bench.page,
    ):
        assert (
            text.count(why) == 1 and text.index(why) < text.index("of copy rate") and "of limit" not in text
        )


def test_tables_of_the_pages(bench):
    """Without records the tables are empty. With records they show every figure, and no figure of another machine."""

    def docs():
        subprocess.run(
            ["scripts/docs.sh"], cwd=bench.tree, check=True, env=bench.environment(), stdout=subprocess.PIPE
        )
        return [
            section(bench.tree / file, name)
            for file, name in (
                ("README.md", "performance"),
                ("docs/performance.md", "performance"),
                ("docs/performance.md", "plots"),
            )
        ]

    bench.add("dot_ladder")
    bench.run("dot_ladder", COMMIT="one")
    assert docs() == ["", "", ""]
    bench.add("dot_ladder", device="NVIDIA H200", libraries=["CUB", "slower"])
    bench.run("dot_ladder", COMMIT="one")
    summary, quoted, plots = docs()
    conditions, _, _, _, *lines = quoted.splitlines()
    assert conditions.startswith("NVIDIA H200; ") and "commit one" in conditions and conditions.endswith(".")
    assert lines[0].count("|") == lines[1].count("|") == lines[2].count("|") and len(lines) == 4
    rows = [line.strip("| ").split(" | ") for line in lines[2:]]
    # An element has 4 bytes: 4M elements are 16.8 MB, which take 168 µs at 100 GB/s.
    assert rows[1] == [
        "[dot](../chapter05/dot_ladder.cu)",
        "4194304 floats",
        "168 µs",
        "55.9 µs, 300 GB/s",
        "3.00",
        "CUB 67.1 µs",
        "1.20",
        "copy 400 GB/s",
        "75.0 %",
    ]
    assert "| 2 | one launch | idea of one launch | 55.9 µs |" in plots
    assert not PLOTS or "](../bench/results/nvidia-h200/chapter05/dot.svg)" in plots
    device, _, *lines = summary.splitlines()
    assert device == "NVIDIA H200:" and len({line.count("|") for line in lines}) == 1 and len(lines) == 3
    assert lines[2] == (
        "| [dot](chapter05/dot_ladder.cu) | 4194304 floats | 168 µs | 55.9 µs | 3.00 | CUB 67.1 µs | 300 GB/s | 400 GB/s |"
    )
    assert docs() == [summary, quoted, plots]
