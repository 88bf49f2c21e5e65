# SPDX-License-Identifier: MIT
"""The headers that only include others (cucc/include/forward.txt)."""
import pathlib
import re
import shutil
import subprocess

import tools

INCLUDE = pathlib.Path(__file__).resolve().parent.parent / "include"


def test_a_header_of_each_kind_compiles_alone(tmp_path):
    """The first header of each line `include`. test_toolkit_headers.py includes all of them together."""
    subprocess.run([INCLUDE / "forward.sh", tmp_path], check=True)
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    listed = re.split(r"(?m)^include .*$", re.sub("(?m)^#.*", "", (INCLUDE / "forward.txt").read_text()))[1:]
    assert names == {name for group in listed for name in group.split()} and len(listed) > 10
    options = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", INCLUDE, "-I", tmp_path]
    for name in names:
        assert not (INCLUDE / name).exists(), f"{name} would hide the one of forward.txt"
    for name in (group.split()[0] for group in listed):
        command = [*tools.CXX, *options, "-fsyntax-only", "-x", "c++", "-"]
        done = subprocess.run(command, input=f"#include <{name}>\n", capture_output=True, text=True)
        assert done.returncode == 0, f"{name}: {done.stderr}"


def test_sources_that_nobody_can_write(tmp_path):
    """The folders of the built headers can be written to, although they are copies of the sources' folders."""
    shutil.copytree(tools.ROOM / "include", tmp_path / "include")
    shutil.copy(tools.ROOM / "Makefile", tmp_path)
    subprocess.run(["chmod", "-R", "a-w", tmp_path / "include"], check=True)
    done = tools.execute("make", "TOOLKIT=built", "built/forwarded", cwd=tmp_path)
    folders = [path for path in (tmp_path / "built").rglob("*") if path.is_dir()]
    assert done.status == 0 and len(folders) > 10, str(done)
    assert [path for path in folders if not path.stat().st_mode & 0o200] == []


def test_a_header_is_written_only_when_it_changes(tmp_path):
    def times():
        return {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}

    subprocess.run([INCLUDE / "forward.sh", tmp_path], check=True)
    before = times()
    (tmp_path / "device_types.h").write_text("old\n")
    subprocess.run([INCLUDE / "forward.sh", tmp_path], check=True)
    changed = [path.name for path, time in times().items() if time != before[path]]
    assert changed == ["device_types.h"] and "cuda_runtime.h" in (tmp_path / "device_types.h").read_text()
