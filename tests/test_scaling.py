# SPDX-License-Identifier: MIT
"""docs/scaling.md: what bench/scaling.py reads from the programs and records, the model that it fits, and its tables."""
import json
import math
import shutil
import sys

import pytest

import helpers
from test_then_and_now import section
from trees import ROOT, copy_sources, environment, run as run_in, stand_in

sys.path.insert(0, str(ROOT / "bench"))
import results  # noqa: E402
import scaling  # noqa: E402

DOT, HEAT = scaling.DOT, scaling.HEAT

# An invented machine: the start of a launch in ms, ms for each cell and step, latency of an exchange, ms for each byte, …
MACHINE = {
    "start": {1: 0.01, 4: 0.02, 12: 0.05},
    "cell": {1: 3e-7, 4: 1e-7, 12: 4e-8},
    "latency": 0.04,
    "byte": 2e-7,
    "dot start": 0.02,
    "dot byte": 3e-10,
    "all-reduce": 0.015,
}
TERMS = [
    "start",
    "cell",
    "edges",
    "redundant",
    "overlap",
    "latency",
    "byte",
    "dot start",
    "dot byte",
    "all-reduce",
]


def invented(devices, without=None):
    """A record of the invented machine, whose times lack one of the terms of the model."""
    value = {key: 0 if key == without and not isinstance(v, dict) else v for key, v in MACHINE.items()}
    value["start"] = {k: 0 if without == "start" else v for k, v in MACHINE["start"].items()}
    value["cell"] = {k: 0 if without == "cell" else v for k, v in MACHINE["cell"].items()}
    rows = []
    for ranks in 1, 2, 4:
        share = max(ranks / devices, 1)
        for n in 1 << 10, 1 << 24:
            kernel = value["dot start"] + share * 8 * n / ranks * value["dot byte"]
            row = {"program": DOT, "ranks": ranks, "size": [n], "transport": "NCCL" if ranks > 1 else None}
            rows.append({**row, "ms": kernel + {1: 0, 2: 1, 4: 2}[ranks] * value["all-reduce"]})
        for width, height in (512, 256), (1024, 4096), (8192, 16384):
            for k, parts in (1, [1]), (4, [4]), (12, [12]), (16, [4, 12]), (24, [12, 12]):
                sides, part = {1: 0, 2: 1, 4: 2}[ranks], height // ranks
                edge, last = sides * k, parts[-1]
                exchange = value["latency"] + sides * k * width * 4 * value["byte"] if ranks > 1 else 0
                per_row = share * width * last * value["cell"][last]
                whole = share * sum(value["start"][d] for d in parts)
                if len(parts) == 2:
                    beyond = 0 if without == "redundant" else sides * last
                    whole += share * (part + beyond) * width * parts[0] * value["cell"][parts[0]]
                if without != "edges":
                    whole += edge * per_row
                interior = (part - edge) * per_row
                with_exchange = interior + exchange if without == "overlap" else max(interior, exchange)
                rounds = 96 // k  # without an exchange after the last one
                ms = (whole * rounds + with_exchange * (rounds - 1) + interior) / (rounds * k)
                row = {"program": HEAT, "ranks": ranks, "size": [width, height, k], "ms": ms}
                more = (
                    {"transport": "nccl", "exchange_ms": exchange, "hidden": 0.5}
                    if ranks > 1
                    else {"transport": None}
                )
                rows.append({**row, **more})
    return {"scaling": {"devices": devices, "rows": rows}}


@pytest.mark.parametrize("devices", [1, 4])
def test_the_model_finds_the_parameters(devices):
    """It finds them from the times of a machine that keeps to it, and then predicts each time: with a device for each rank, and
    with one that all ranks share."""
    found = invented(devices)
    model = scaling.fit(found)
    for steps in scaling.DEPTHS:
        assert model["launch"][steps] == pytest.approx(
            (MACHINE["start"][steps], MACHINE["cell"][steps]), rel=1e-6
        )
    assert model["exchange"] == {"nccl": pytest.approx((MACHINE["latency"], MACHINE["byte"]), rel=1e-6)}
    assert model["dot"] == pytest.approx((MACHINE["dot start"], MACHINE["dot byte"]), rel=1e-6)
    if devices == 4:
        assert model["all-reduce"] == {"NCCL": pytest.approx(MACHINE["all-reduce"], rel=1e-6)}
    assert max(abs(scaling.error(model, found, row)) for row in found["scaling"]["rows"]) < 1e-6


@pytest.mark.parametrize("term", TERMS)
def test_every_term_counts(term):
    """If a time lacks one term, the model of the whole machine is wrong about it. So a model without a term would be wrong too."""
    whole, lacking = invented(4), invented(4, without=term)
    model = scaling.fit(whole)
    errors = [
        scaling.predicted(model, lacking, row) / row["ms"] - 1 if row["ms"] else 1
        for row in lacking["scaling"]["rows"]
    ]
    assert max(map(abs, errors)) > 0.02


@pytest.mark.parametrize(
    "points, expected",
    [
        ([(1, 3), (2, 5), (10, 21)], (1, 2)),
        ([(1, 2), (2, 6)], (0, 30 / 13)),  # the start would be negative
        ([(1, 4), (2, 2)], (2.4, 0)),  # the time for each unit would be negative
        ([(5, 10)], (0, 2)),
        ([], (0, 0)),
    ],
)
def test_a_line_through_points(points, expected):
    assert scaling.line(points) == pytest.approx(expected)


def test_hidden_exchanges_do_not_count():
    """An exchange that competes with a long interior takes longer than alone."""
    found = invented(4)
    for row in found["scaling"]["rows"]:
        if row["size"][0] == 8192 and row["transport"]:
            row.update(hidden=1, exchange_ms=10 * row["exchange_ms"])
    latency, per_byte = scaling.fit(found)["exchange"]["nccl"]
    assert (latency, per_byte) == pytest.approx((MACHINE["latency"], MACHINE["byte"]), rel=1e-6)


def test_launches_of_a_round():
    """Those of heat_mpi: the last launch is the longest, and the ones before also compute the rows that later ones read."""
    assert [scaling.launches(k) for k in (1, 2, 4, 12, 16, 24)] == [
        [(1, 0)],
        [(1, 1), (1, 0)],
        [(4, 0)],
        [(12, 0)],
        [(4, 12), (12, 0)],
        [(12, 12), (12, 0)],
    ]


def test_more_gpus():
    """Weak scaling stays as it is until the network is slower than the interior; strong scaling ends when the exchange is no
    longer hidden; the network adds 5 µs from the second node on."""
    model = {**scaling.fit(invented(4)), "all-reduce": {"nccl": 0.01}}
    time = lambda ranks, size: scaling.projected_ms(model, HEAT, size, "nccl", ranks)  # noqa: E731
    alone, hidden = time(1, (16384, 16384, 12))
    assert hidden and alone == pytest.approx((0.05 + 16384**2 * 12 * 4e-8) / 12)
    assert time(1024, (16384, 1024 * 16384, 12)) == (pytest.approx(alone), True)
    ms, hidden = time(1024, (32768, 32768, 12))
    exchange = 0.04 + 0.005 + 2 * 2e-7 * 12 * 32768 * 4
    assert not hidden and ms == pytest.approx(
        (0.05 + (24 * 32768 * 12 * 4e-8) + max(8 * 32768 * 12 * 4e-8, exchange)) / 12
    )
    dots = [scaling.projected_ms(model, DOT, (1 << 20,), "nccl", ranks)[0] for ranks in (8, 16)]
    kernel = [0.02 + 8 * 3e-10 * (1 << 20) / ranks for ranks in (8, 16)]
    assert dots == pytest.approx([kernel[0] + 3 * 0.01, kernel[1] + 4 * 0.01 + 0.005])
    assert scaling.NETWORK_MS_PER_BYTE * 50e6 == pytest.approx(1)  # 50 GB/s


# ---- recording ----


@pytest.mark.parametrize("name", [DOT, HEAT])
def test_what_the_programs_print_is_read(name, run):
    """One rank, and two."""
    source = next((p for p in helpers.programs() if str(p) == name), None)
    if not source or not source.built:
        pytest.skip(f"{name} is not built here")
    size = {DOT: (1000,), HEAT: (70, 40, 4)}[name]
    words = scaling.options(name, size)
    [first, *_] = rows = scaling.read(name, run(helpers.BIN / name, *words, status=0).out)
    assert first["transport"] is None and all(row["ms"] > 0 for row in rows) and "hidden" not in first
    if not shutil.which("mpirun"):
        return
    rows = scaling.read(
        name, run(ROOT / "scripts/mpirun.sh", "-np", 2, helpers.BIN / name, *words, status=0).out
    )
    transports = [row["transport"] for row in rows]
    assert {DOT: "MPI_Allreduce", HEAT: "host"}[name] in transports
    if name == HEAT:
        assert all(row["exchange_ms"] > 0 and 0 <= row["hidden"] <= 1 for row in rows)
    with pytest.raises(scaling.bench.Failed, match="prints no times"):
        scaling.read(name, "gone")


@pytest.fixture
def tree(tmp_path):
    """A copy of the tree with scripts instead of the programs, and its records in results/. A run of several ranks is one run."""
    tree = copy_sources(tmp_path / "tree", ["chapter03/hello_world"])
    stand_in(tree / "scripts", "mpirun.sh", 'shift; echo $1 >>ranks; export RANKS=$1; shift; exec "$@"')
    stand_in(
        tree / "bin/chapter11",
        "dot_mpi",
        f"""[ "$1" = --list-devices ] && echo '0: Some CPU, compute capability 8.0, 3 GiB' && exit
echo x >>{tree}/runs; echo 'Rank 0 alone:  2.500 ms, 3 GB/s, 1.00 times'
echo "MPI_Allreduce: $((10 - $(wc -l <{tree}/runs) % 5)).000 ms, 3 GB/s, 1.00 times"
""",
    )
    stand_in(
        tree / "bin/chapter11",
        "heat_mpi",
        """[ "${RANKS-1}" != 4 ] || { echo 'heat_mpi: out of luck' >&2; exit 1; }
[ "${RANKS-1}" = 1 ] && echo 'one rank        0.5000 ms     1070.204 Gcells/s' && exit
echo 'host            0.2500 ms     1070.204 Gcells/s      0.0276 ms        39 %'
echo 'nccl         skipped: this build has no NCCL'
""",
    )
    return tree


def measure(tree, *words, status=0):
    more = {
        "BIN": "bin",
        "BACKEND": "cpu",
        "RESULTS": "results",
        "COMMIT": "abc",
        "PATH": environment()["PATH"],
    }
    return run_in(tree, sys.executable, "bench/scaling.py", *words, status=status, **more)


def test_the_runs_are_recorded(tree):
    """The least of five times counts; a case that fails is named, and the others are recorded. Other records stay."""
    (tree / "results").mkdir()
    (tree / "results/some-cpu.json").write_text(
        json.dumps(
            {
                "format": 2,
                "device": "Some CPU",
                "backend": "cpu",
                "programs": {},
                "figures": {"x": {"values": {}}},
            }
        )
    )
    log = measure(tree, status=1)
    assert "chapter11/heat_mpi: FAILED: exit status 1: heat_mpi: out of luck" in log
    assert "25 of 28 cases measured, 3 failed; results/some-cpu.json" in log
    found = json.loads((tree / "results/some-cpu.json").read_text())
    block = found["scaling"]
    assert found["figures"] == {"x": {"values": {}}} and block["commit"] == "abc" and block["devices"] == 1
    rows = block["rows"]
    assert {row["ms"] for row in rows if row["transport"] == "MPI_Allreduce"} == {6}
    assert {row["ranks"] for row in rows if row["program"] == HEAT} == {1, 2, 8}
    [host] = [row for row in rows if row["ranks"] == 2 and row["size"] == [256, 256, 12]]
    assert (host["transport"], host["ms"], host["exchange_ms"], host["hidden"]) == (
        "host",
        0.25,
        0.0276,
        0.39,
    )
    assert (tree / "results/some-cpu.json").read_text().count('{"program":') == len(rows)  # a line each


def test_without_records_the_page_is_empty(tree):
    for part in "measured", "model", "projection", "plot":
        assert measure(tree, f"--{part}").strip() == ""
    assert "usage" not in measure(tree, "--nonesuch", status=64)


# ---- the page ----


@pytest.mark.parametrize("part", ["measured", "model", "projection"])
def test_the_page_is_fresh(part):
    text = run_in(ROOT, sys.executable, "bench/scaling.py", f"--{part}", RESULTS="")
    assert section(ROOT / "docs/scaling.md", part) == text, "stale: run make docs"


def test_the_plot_is_fresh():
    assert results.plot(scaling.RECORDED, scaling.PLOT, scaling.plotted()), "stale: run make docs"


def test_the_tables(monkeypatch):
    """Each time of the invented machine with its error of 0 %, and the speedup or the efficiency."""
    found = invented(4)
    block = {
        "date": "2026-01-01",
        "machine": {"cores": 1, "cpu": "C", "os": "O"},
        "repeat": 1,
        "load": [0, 0],
    }
    block.update(toolkit=None, compiler="g++", driver=None, clocks=None, commit="abc", dirty=False)
    found["scaling"].update(block)
    found.update(device="Some GPU", backend="gpu")
    text = scaling.scaling_tables(found)
    [row] = [line for line in text.splitlines() if "16384 rows of 8192, k = 12 |" in line]
    ms = {row["ranks"]: row["ms"] for row in found["scaling"]["rows"] if row["size"] == [8192, 16384, 12]}
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1:-1] == [f"{results.duration(ms[ranks])} (0 %)" for ranks in (1, 2, 4)]
    assert cells[-1] == f"{ms[1] / ms[4]:.2f} on 4"
    assert "median 0.0 %, largest 0.0 %" in text and math.isclose(scaling.share_of(found, {"ranks": 8}), 2)
