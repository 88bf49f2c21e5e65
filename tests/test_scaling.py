# SPDX-License-Identifier: MIT
"""docs/scaling.md: what bench/scaling.py reads from the programs and records. The model that it fits to the records, and its tables, are
in bench/results/README.md, which test_docs.py compares."""
import shutil

import pytest

import helpers
import test_bench  # noqa: F401: adds bench/ to the path
import scaling

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
