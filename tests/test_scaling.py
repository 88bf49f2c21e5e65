# SPDX-License-Identifier: MIT
"""docs/scaling.md and its tables: what bench/scaling.py reads from the programs and records, the model that it fits, and its tables."""
import shutil

import pytest

import helpers
from test_bench import RECORDED, bench, cells, record_of, results  # noqa: F401: a fixture
from trees import stand_in
import scaling  # bench/, which test_bench adds to the path

DOT, HEAT = scaling.DOT, scaling.HEAT
# An invented machine: the start of a launch in ms, and ms for each cell and step; latency of an exchange, ms for each byte, …
START, CELL = {1: 0.01, 4: 0.02, 12: 0.05}, {1: 3e-7, 4: 1e-7, 12: 4e-8}
LATENCY, BYTE, DOT_START, DOT_BYTE, ALL_REDUCE = 0.04, 2e-7, 0.02, 3e-10, 0.015


def invented(devices):
    """A record of the invented machine. Every term of the model is a part of some of its times."""
    rows = []
    for ranks, sides, rounds in (1, 0, 0), (2, 1, 1), (4, 2, 2):
        share = max(ranks / devices, 1)
        for n in 1 << 10, 1 << 24:
            row = {"program": DOT, "ranks": ranks, "size": [n], "transport": "NCCL" if ranks > 1 else None}
            rows.append({**row, "ms": DOT_START + share * 8 * n / ranks * DOT_BYTE + rounds * ALL_REDUCE})
        for width, height in (512, 256), (1024, 4096), (8192, 16384):
            for k, parts in (1, [1]), (4, [4]), (12, [12]), (16, [4, 12]), (24, [12, 12]):
                part, edge, last = height // ranks, sides * k, parts[-1]
                exchange = LATENCY + sides * k * width * 4 * BYTE if ranks > 1 else 0
                per_row = share * width * last * CELL[last]
                whole = share * sum(START[d] for d in parts) + edge * per_row
                if len(parts) == 2:  # the first launch also computes rows of the halos
                    whole += share * (part + sides * last) * width * parts[0] * CELL[parts[0]]
                interior, times = (part - edge) * per_row, 96 // k  # without an exchange after the last one
                ms = (whole * times + max(interior, exchange) * (times - 1) + interior) / (times * k)
                row = dict(program=HEAT, ranks=ranks, size=[width, height, k], transport=None, ms=ms)
                if ranks > 1:
                    row.update(transport="nccl", exchange_ms=exchange, hidden=0.5)
                rows.append(row)
    return {"scaling": {"devices": devices, "rows": rows}}


@pytest.mark.parametrize("devices", [1, 4])
def test_the_model_finds_the_parameters(devices):
    """It finds them from the times of a machine that keeps to it, and then predicts each time: with a device for each rank, and
    with one that all ranks share. A hidden exchange, which competes with a long interior, does not count."""
    found = invented(devices)
    model = scaling.fit(found)
    assert max(abs(scaling.error(model, found, row)) for row in found["scaling"]["rows"]) < 1e-6
    for row in found["scaling"]["rows"]:
        if row["size"][0] == 8192 and row["transport"]:
            row.update(hidden=1, exchange_ms=10 * row["exchange_ms"])
    for model in model, scaling.fit(found):
        for steps in scaling.DEPTHS:
            assert model["launch"][steps] == pytest.approx((START[steps], CELL[steps]), rel=1e-6)
        assert model["exchange"] == {"nccl": pytest.approx((LATENCY, BYTE), rel=1e-6)}
        assert model["dot"] == pytest.approx((DOT_START, DOT_BYTE), rel=1e-6)
        assert devices == 1 or model["all-reduce"] == {"NCCL": pytest.approx(ALL_REDUCE, rel=1e-6)}


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


def test_more_gpus():
    """Weak scaling stays as it is until the network is slower than the interior; strong scaling ends when the exchange is no
    longer hidden; the network adds 5 µs from the second node on."""
    model = {**scaling.fit(invented(4)), "all-reduce": {"nccl": 0.01}}
    time = lambda ranks, size: scaling.projected_ms(model, HEAT, size, "nccl", ranks)  # noqa: E731
    alone, hidden = time(1, (16384, 16384, 12))
    assert hidden and alone == pytest.approx((0.05 + 16384**2 * 12 * 4e-8) / 12)
    assert time(1024, (16384, 1024 * 16384, 12)) == (pytest.approx(alone), True)
    ms, hidden = time(1024, (32768, 32768, 12))
    longer = max(8 * 32768 * 12 * 4e-8, 0.04 + 0.005 + 2 * 2e-7 * 12 * 32768 * 4)
    assert not hidden and ms == pytest.approx((0.05 + (24 * 32768 * 12 * 4e-8) + longer) / 12)
    dots = [scaling.projected_ms(model, DOT, (1 << 20,), "nccl", ranks)[0] for ranks in (8, 16)]
    kernel = [0.02 + 8 * 3e-10 * (1 << 20) / ranks for ranks in (8, 16)]
    assert dots == pytest.approx([kernel[0] + 3 * 0.01, kernel[1] + 4 * 0.01 + 0.005])
    assert scaling.NETWORK_MS_PER_BYTE * 50e6 == pytest.approx(1)  # 50 GB/s


@pytest.mark.parametrize("name, size", [(DOT, (1000,)), (HEAT, (70, 40, 4))])
def test_what_the_programs_print_is_read(name, size, run):
    """One rank, and two."""
    source = next((p for p in helpers.programs() if str(p) == name), None)
    if not source or not source.built:
        pytest.skip(f"{name} is not built here")
    command = [helpers.BIN / name, *scaling.options(name, size)]
    [first, *_] = rows = scaling.read(name, run(*command, status=0).out)
    assert first["transport"] is None and all(row["ms"] > 0 for row in rows) and "hidden" not in first
    with pytest.raises(scaling.bench.Failed, match="prints no times"):
        scaling.read(name, "gone")
    if shutil.which("mpirun"):
        out = run(helpers.ROOT / "scripts/mpirun.sh", "-np", 2, *command, status=0).out
        rows = {row["transport"]: row for row in scaling.read(name, out)}
        row = rows[{DOT: "MPI_Allreduce", HEAT: "host"}[name]]
        assert name == DOT or row["exchange_ms"] > 0 and 0 <= row["hidden"] <= 1


DOT_MPI = """[ "$1" = --list-devices ] && echo '0: Some CPU, compute capability 8.0, 3 GiB' && exit
echo x >>{}/runs; echo 'Rank 0 alone:  2.500 ms, 3 GB/s, 1.00 times'
echo "MPI_Allreduce: $((10 - $(wc -l <{}/runs) % 5)).000 ms, 3 GB/s, 1.00 times"
"""
HEAT_MPI = """[ "${RANKS-1}" != 4 ] || { echo 'heat_mpi: out of luck' >&2; exit 1; }
[ "${RANKS-1}" = 1 ] && echo 'one rank        0.5000 ms     1070.204 Gcells/s' && exit
echo 'host            0.2500 ms     1070.204 Gcells/s      0.0276 ms        39 %'
echo 'nccl         skipped: this build has no NCCL'
"""


def test_the_runs_are_recorded(bench):  # noqa: F811
    """The least of five times counts; a case that fails is named, and the others are recorded. Other records stay."""
    for part in "tables", "plot":  # without records there is nothing
        assert bench.run(f"--{part}", script="scaling.py").out.strip() == ""
    bench.run("--nonesuch", script="scaling.py", status=64)
    # A run of several ranks is one run
    stand_in(bench.tree / "scripts", "mpirun.sh", 'shift; export RANKS=$1; shift; exec "$@"')
    stand_in(bench.tree / "bin/chapter11", "dot_mpi", DOT_MPI.format(bench.tree, bench.tree))
    stand_in(bench.tree / "bin/chapter11", "heat_mpi", HEAT_MPI)
    bench.add("add_ladder", device="Some CPU", backend="cpu")
    bench.run("add_ladder")
    log = bench.run(script="scaling.py", BACKEND="cpu", status=1)
    assert (
        "chapter11/heat_mpi 256 x 256 x 12, 4 ranks: FAILED: exit status 1: heat_mpi: out of luck" in log.err
    )
    assert "25 of 28 cases measured, 3 failed; bench/results/some-cpu.json" in log.out
    found = bench.recorded("some-cpu")
    rows = found["scaling"]["rows"]
    assert list(found["programs"]) == ["chapter05/add_ladder"] and found["scaling"]["devices"] == 1
    assert {row["ms"] for row in rows if row["transport"] == "MPI_Allreduce"} == {6}
    assert {row["ranks"] for row in rows if row["program"] == HEAT} == {1, 2, 8}
    [host] = [row for row in rows if row["ranks"] == 2 and row["size"] == [256, 256, 12]]
    assert [host[key] for key in ("transport", "ms", "exchange_ms", "hidden")] == ["host", 0.25, 0.0276, 0.39]
    text = (bench.tree / "bench/results/some-cpu.json").read_text()
    assert text.count('\n      {"program":') == len(rows)


def test_the_plot_is_fresh():
    assert results.plot(RECORDED, scaling.PLOT, scaling.plotted()), "stale: run make docs"


def test_the_tables():
    """Each time of the invented machine with its error of 0 %, and the speedup or the efficiency."""
    found = invented(4)
    [block] = record_of([], repeat=5, load=[1, 2])["programs"].values()
    found["scaling"] = {**block, **found["scaling"]}
    found.update(device="Some GPU", backend="gpu")
    text = scaling.scaling_tables(found)
    assert "; the least of 5 runs, while other processes used the cores too (load average 1 and 2)." in text
    ms = {row["ranks"]: row["ms"] for row in found["scaling"]["rows"] if row["size"] == [8192, 16384, 12]}
    [row] = [row for row in cells(text) if row[0] == "heat, 16384 rows of 8192, k = 12"]
    assert row[1:] == [*(f"{results.duration(ms[n])} (0 %)" for n in (1, 2, 4)), f"{ms[1] / ms[4]:.2f} on 4"]
    assert "median 0.0 %, largest 0.0 %" in text and scaling.share_of(found, {"ranks": 8}) == 2
