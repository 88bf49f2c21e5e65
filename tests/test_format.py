# SPDX-License-Identifier: MIT
"""make format: the sources are formatted, and files that are not formatted are named."""
import shutil
import subprocess

import pytest

from trees import ROOT, make, run, stand_in


def tools():
    """Skips a test, with the message of format.sh, if a tool is missing or has another version."""
    done = subprocess.run(
        [ROOT / "scripts/format.sh", "--tools"], cwd=ROOT, text=True, stderr=subprocess.PIPE, check=False
    )
    return pytest.mark.skipif(done.returncode == 2, reason=done.stderr.strip())


needs_tools = tools()


@needs_tools
def test_the_sources_are_formatted():
    assert make(ROOT, "format", "CHECK=1") == ""


@needs_tools
@pytest.mark.parametrize(
    "file, text",
    [
        ("chapter03/extra.cu", "int  extra(void);\n"),
        ("common/lib/extra.c", "int  extra(void);\n"),
        ("cpu/src/extra.cpp", "int  extra(void);\n"),
        ("bench/extra.py", "extra = [ 1 ]\n"),
        ("chapter03/wide.cu", f"int wide = {' + '.join('1' * 40)};\n"),
        ("bench/wide.py", f"wide = {' + '.join('1' * 40)}\n"),
    ],
)
def test_what_is_not_formatted_is_named_and_mended(tmp_path, file, text):
    """Wrong spaces and lines of more than 110 columns are found in each kind of source."""
    for name in ".clang-format", "pyproject.toml", "Makefile":
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(
        ROOT / "scripts",
        tmp_path / "scripts",
        ignore=lambda folder, names: [n for n in names if n.endswith(".py")],
    )
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    assert file in make(tmp_path, "format", "CHECK=1", status=2)
    assert (tmp_path / file).read_text() == text
    make(tmp_path, "format")
    assert (tmp_path / file).read_text() != text and max(
        map(len, (tmp_path / file).read_text().splitlines())
    ) <= 110
    assert make(tmp_path, "format", "CHECK=1") == ""


@pytest.mark.parametrize("tool, setting", [("clang-format", "CLANG_FORMAT"), ("black", "BLACK")])
def test_another_version_is_refused(tmp_path, tool, setting):
    """Another version would format the whole tree differently."""
    stand_in(tmp_path, "clang-format-good", "echo Debian clang-format version 14.0.6")
    stand_in(tmp_path, "black-good", "echo black, 23.1.0")
    stand_in(tmp_path, "other", "echo other, version 99.0.1")
    stand_in(tmp_path, "clang-format-14", "exit 1")
    good = {"CLANG_FORMAT": f"{tmp_path}/clang-format-good", "BLACK": f"{tmp_path}/black-good"}
    assert run(ROOT, "scripts/format.sh", "--tools", **good) == ""
    says = run(
        ROOT,
        "scripts/format.sh",
        "--tools",
        status=2,
        **{**good, setting: f"{tmp_path}/other"},
        PATH=f"{tmp_path}:/usr/bin:/bin",
    )
    assert f"format: needs {tool} " in says and "found 99" in says and says.count("\n") == 1
