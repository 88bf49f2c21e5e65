# SPDX-License-Identifier: MIT
"""The headers that only include others (cucc/include/forward.txt)."""
import pathlib
import subprocess

INCLUDE = pathlib.Path(__file__).resolve().parent.parent / "include"


def test_each_header_compiles_alone(tmp_path):
    subprocess.run([INCLUDE / "forward.sh", tmp_path], check=True)
    made = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    names = [str(path.relative_to(tmp_path)) for path in made]
    assert {"cuda_runtime_api.h", "sm_20_intrinsics.h", "cuda/std/cmath", "cub/util_type.cuh"} <= set(names)
    options = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", INCLUDE, "-I", tmp_path]
    command = ["g++", *options, "-fsyntax-only", "-x", "c++", "-"]
    for name in names:
        assert not (INCLUDE / name).exists(), f"{name} would hide the one of forward.txt"
        done = subprocess.run(command, input=f"#include <{name}>\n", capture_output=True, text=True)
        assert done.returncode == 0, f"{name}: {done.stderr}"


def test_a_header_is_written_only_when_it_changes(tmp_path):
    def times():
        return {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}

    subprocess.run([INCLUDE / "forward.sh", tmp_path], check=True)
    before = times()
    (tmp_path / "device_types.h").write_text("old\n")
    subprocess.run([INCLUDE / "forward.sh", tmp_path], check=True)
    changed = [path.name for path, time in times().items() if time != before[path]]
    assert changed == ["device_types.h"] and "cuda_runtime.h" in (tmp_path / "device_types.h").read_text()
