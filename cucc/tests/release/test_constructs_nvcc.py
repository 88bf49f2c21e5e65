# SPDX-License-Identifier: MIT
"""nvcc accepts the constructs that the translator translates: only its front end, without code for a GPU."""
import shutil

import pytest

import tools

CONSTRUCTS = tools.HERE / "constructs"
pytestmark = pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")


@pytest.mark.parametrize("source", sorted(CONSTRUCTS.glob("*.cu")), ids=lambda path: path.stem)
def test_nvcc_accepts_the_constructs(tmp_path, source):
    standard = "-std=c++20" if source.stem == "cxx20" else "-std=c++17"
    options = "-w", "--extended-lambda", "-rdc=true", "-arch=compute_90", "-ptx", standard
    done = tools.execute("nvcc", *options, "-o", tmp_path / "out", source)
    assert done.status == 0, str(done)
