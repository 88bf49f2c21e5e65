# SPDX-License-Identifier: MIT
"""docs/scaling.md: what bench/scaling.py reads from the programs and records. The model that it fits to the records, and its tables, are
in bench/results/README.md, which test_docs.py compares."""
import shutil

import pytest

import helpers
from test_bench import bench, results  # noqa: F401: a fixture
from trees import stand_in
import scaling  # bench/, which test_bench adds to the path

DOT, HEAT = scaling.DOT, scaling.HEAT


def test_a_line_through_points_has_no_negative_parameter():
    """The fits of the records are compared with the documents."""
    assert scaling.line([(1, 4), (2, 2)]) == pytest.approx((2.4, 0)) and scaling.line([]) == (0, 0)


@pytest.mark.parametrize("name, size", [(DOT, (1000,)), (HEAT, (70, 40, 4))])
def test_what_the_programs_print_is_read(name, size, run):
    """One rank, and two."""
    options = scaling.options(name, size)
    [first, *_] = rows = scaling.read(name, run(name, *options, status=0).out)
    assert first["transport"] is None and all(row["ms"] > 0 for row in rows) and "hidden" not in first
    with pytest.raises(scaling.bench.Failed, match="prints no times"):
        scaling.read(name, "gone")
    if shutil.which("mpirun"):
        command = helpers.ROOT / "scripts/mpirun.sh", "-np", 2, helpers.BIN / name
        out = run(*command, *options, status=0).out
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
    says = "chapter11/heat_mpi 256 x 256 x 12, 4 ranks: FAILED: exit status 1: heat_mpi: out of luck"
    assert says in log.err
    assert "25 of 28 cases measured, 3 failed; bench/results/some-cpu.json" in log.out
    found = bench.recorded("some-cpu")
    rows = found["scaling"]["rows"]
    assert list(found["programs"]) == ["chapter05/add_ladder"] and found["scaling"]["devices"] == 1
    assert {row["ms"] for row in rows if row["transport"] == "MPI_Allreduce"} == {6}
    assert {row["ranks"] for row in rows if row["program"] == HEAT} == {1, 2, 8}
    [host] = [row for row in rows if row["ranks"] == 2 and row["size"] == [256, 256, 12]]
    assert [host[key] for key in ("transport", "ms", "exchange_ms", "hidden")] == ["host", 0.25, 0.0276, 0.39]


def test_the_plot_is_fresh():
    assert results.plot(scaling.RECORDED, scaling.PLOT, scaling.plotted()), "stale: run make docs"
