# SPDX-License-Identifier: MIT
"""nvcc accepts the constructs that the translator translates, and those that it refuses: only its front end, without
code for a GPU."""
import pathlib
import re
import shutil
import subprocess

import pytest

CONSTRUCTS = pathlib.Path(__file__).resolve().parent.parent / "constructs"
pytestmark = pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")


def accepts(folder, *arguments):
    command = [
        "nvcc",
        "-w",
        "--extended-lambda",
        "-rdc=true",
        "-arch=compute_90",
        "-ptx",
        "-o",
        folder / "out",
    ]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("source", sorted(CONSTRUCTS.glob("*.cu")), ids=lambda path: path.stem)
def test_nvcc_accepts_the_constructs(tmp_path, source):
    accepts(tmp_path, "-std=c++20" if source.stem == "cxx20" else "-std=c++17", source)


def test_nvcc_accepts_what_is_refused(tmp_path):
    refused = re.findall(r"(?ms)^== .*?\n(.*?)(?=^== |\Z)", (CONSTRUCTS / "refused.txt").read_text())
    (tmp_path / "all.cu").write_text("".join(refused))
    accepts(tmp_path, "-std=c++17", tmp_path / "all.cu")
