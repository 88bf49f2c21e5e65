# SPDX-License-Identifier: MIT
"""clangd, as editors use it, parses the sources without errors, by .clangd."""
import re
import shutil

import pytest

from trees import copy_sources, run

# Textures, OpenGL, threads, and dot, the model of the others
KINDS = ["chapter07/heat_2d", "chapter08/basic_interop", "chapter11/multidevice", "chapter05/dot"]
needs_clangd = pytest.mark.skipif(not shutil.which("clangd"), reason="needs clangd, found none")


def mistakes(tree, file):
    """The errors that clangd reports for a file."""
    log = run(tree, "clangd", f"--check={tree / file}", status=None)
    assert "config error" not in log and "All checks completed" in log, log
    return re.findall(r"^E.*?(\[\w+\] Line .*)", log, re.M)


MISTAKES = [
    ("cacheIndex = threadIdx.x;", "cacheIndex = threadIdx.w;", "no member named 'w'"),
    (">>>(dev_a, dev_b,", ">>>(dev_a,", "too few arguments"),
    ("__syncthreads();", "__syncthread();", "__syncthread"),
    ("cudaMemcpyHostToDevice", "cudaMemcpyHostToDevise", "cudaMemcpyHostToDevise"),
]


@needs_clangd
def test_clangd_finds_the_mistakes_and_nothing_else(tmp_path):
    tree = copy_sources(tmp_path / "tree", KINDS)
    others = "common/gpu_anim.h chapter06/spheres.h common/lib/window.c common/old/glut.c".split()
    for file in *(f"{kind}.cu" for kind in KINDS), *others:
        assert mistakes(tree, file) == [], file
    source = tree / "chapter05/dot.cu"
    text = source.read_text()
    for old, new, _ in MISTAKES:
        assert old in text
        text = text.replace(old, new, 1)
    source.write_text(text)
    found = mistakes(tree, "chapter05/dot.cu")
    assert [says for *_, says in MISTAKES if not any(says in mistake for mistake in found)] == [], found
