# SPDX-License-Identifier: MIT
"""make format: the sources are formatted, and files that are not formatted are named."""
import shutil
import subprocess

import pytest

from trees import ROOT, run, stand_in

TOOLS = subprocess.run([ROOT / "scripts/format.sh", "--help"], cwd=ROOT, text=True, stderr=subprocess.PIPE)
needs_tools = pytest.mark.skipif(TOOLS.returncode == 2, reason=TOOLS.stderr.strip())


@needs_tools
def test_the_sources_are_formatted():
    assert run(ROOT, "scripts/format.sh", "--check") == ""


@needs_tools
def test_what_is_not_formatted_is_named_and_mended(tmp_path):
    """Wrong spaces and lines of more than 110 columns are found in each kind of source."""
    (tmp_path / "scripts").mkdir()
    for name in ".clang-format", "pyproject.toml", "scripts/format.sh", "scripts/setup.sh":
        shutil.copy(ROOT / name, tmp_path / name)
    wide = " + ".join("1" * 40)
    texts = dict.fromkeys(["chapter03/a.cu", "common/lib/a.c"], "int  a(void);\n")
    texts |= {"cucc/a.cpp": f"int wide = {wide};\n"}
    texts |= {"bench/a.py": "a = [ 1 ]\n", "bench/wide.py": f"wide = {wide}\n"}
    for file, text in texts.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    log = run(tmp_path, "scripts/format.sh", "--check", status=1)
    assert [file for file in texts if file not in log] == []
    run(tmp_path, "scripts/format.sh")
    for file, text in texts.items():
        new = (tmp_path / file).read_text()
        assert new != text and max(map(len, new.splitlines())) <= 110, file
    assert run(tmp_path, "scripts/format.sh", "--check") == ""


def test_another_version_is_refused(tmp_path):
    """Another version would format the whole tree differently."""
    stand_in(tmp_path, "good", "echo version 14.0.6")
    stand_in(tmp_path, "other", "echo other, version 99.0.1")
    env = {"CLANG_FORMAT": f"{tmp_path}/good", "BLACK": f"{tmp_path}/other"}
    says = run(ROOT, "scripts/format.sh", "--check", status=2, **env)
    assert says.startswith("format: needs black 23, found 99") and says.count("\n") == 1
