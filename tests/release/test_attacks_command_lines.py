# SPDX-License-Identifier: MIT
"""tests/attacks/command_lines.py: a sample of the attack, and that it notices what it is for."""
import sys
import types

import pytest

import helpers

sys.path.insert(0, str(helpers.ROOT / "tests/attacks"))
import command_lines  # noqa: E402

pytestmark = pytest.mark.skipif(helpers.backend() != "cpu", reason="needs the CPU back end")


def test_a_sample_of_command_lines(capfd, rng):
    programs = [
        "chapter03/simple_kernel_params",
        "chapter04/julia_gpu",
        "chapter05/dot",
        "chapter10/basic_single_stream",
    ]
    words = ["--lines", "9000", "--runs", "0.03", "--seed", str(rng.randrange(1 << 31)), *programs]
    assert command_lines.main(words) == 0, capfd.readouterr().out
    assert "command_lines.py: programs 4, command lines 3" in capfd.readouterr().out


@pytest.mark.parametrize(
    "words, runs, status, out, err, problem",
    [
        (["--size=x"], False, 64, "", "dot: --size x: must be …\n", None),
        (["--size=x"], False, 64, "", "dot: --size x: must be …\nmore\n", "64 with 2 lines"),
        (["--size=x"], False, 64, "hello\n", "dot: --size x: must be …\n", "on stdout"),
        (["--size=x"], False, 64, "", "dot: --size \x1b: must be …\n", "control characters"),
        (["--size=x"], False, 64, "", "dot: --size \u009b: must be …\n", "control characters"),
        (["--size=x"], False, 0, "right\n", "", "status 0 for a mistake"),
        (["--size=x", "--hel"], False, 0, "Usage\n", "", None),
        (["--size=x"], False, -11, "", "", "status -11"),
        (["--size=x"], False, 99, "", "", "a sanitizer reports"),
        (["--size=x"], False, None, "", "", "does not end"),
        (["--size=9"], True, 0, "right\n", "", None),
        (["--size=9"], True, 0, "right\n", "but\n", "on stderr"),
        (["--size=9"], True, 1, "", "", "without a line"),
        (["--size=9"], True, 1, "", "a: 1\na: 2\n", "status 1 with 2 lines"),
        (["--size=9", "--inject"], True, 1, "", "a: 1\na: 2\n", None),
    ],
)
def test_judgement(words, runs, status, out, err, problem):
    case = command_lines.Case.__new__(command_lines.Case)
    case.words, case.runs, case.out, case.err = words, runs, "out", "err"
    found = command_lines.judge(case, types.SimpleNamespace(status=0), status, out.encode(), err.encode())
    assert found is None if problem is None else problem in found


def test_files_that_should_not_be_there(tmp_path):
    command_lines.prepare(tmp_path)
    case = command_lines.Case.__new__(command_lines.Case)
    case.words, case.runs = ["--output=x.ppm"], True
    look = lambda status: command_lines.look_at(tmp_path, case, status)  # noqa: E731
    assert look(0) is None
    for name, status, problem in (
        ("x.ppm", 0, None),
        ("x.ppm", 64, "status 64, but wrote 'x.ppm'"),
        (".unfinished-abcdef.tmp", 1, "left .unfinished-abcdef.tmp"),
        ("folder/.unfinished-abcdef.tmp", 1, "left .unfinished-abcdef.tmp"),
    ):
        (tmp_path / name).write_text("")
        found = look(status)
        assert found is None if problem is None else problem in found
        assert not (tmp_path / name).exists()
    (tmp_path / "file").write_text("other")
    assert look(0) == "has changed another file"
