# SPDX-License-Identifier: MIT
"""clangd, as editors use it, parses the sources without errors, by .clangd."""
import re
import shutil

import pytest

from trees import copy_sources, run

# A program of each kind: shared memory, textures, OpenGL, atomics in device functions, streams, cooperative groups, threads
KINDS = """chapter03/hello_world chapter05/dot chapter07/heat_2d chapter08/basic_interop
    chapter09/hist_gpu_shmem_atomics chapter10/basic_double_stream chapter05/occupancy chapter11/multidevice
    appendix_a/dot""".split()
needs_clangd = pytest.mark.skipif(not shutil.which("clangd"), reason="needs clangd, found none")


@pytest.fixture(scope="session")
def tree(once):
    """A tree as after cloning, which tests must not change."""
    return once("editor", lambda folder: copy_sources(folder / "tree", KINDS))


def mistakes(tree, file):
    """The errors that clangd reports for a file."""
    log = run(tree, "clangd", f"--check={tree / file}", status=None)
    assert "config error" not in log and "All checks completed" in log, log
    return re.findall(r"^E.*?(\[\w+\] Line .*)", log, re.M)


HEADERS = "common/checks/dot.h", "common/gpu_anim.h", "chapter06/spheres.h"
C_FILES = "common/lib/window.c", "common/lib/options.c", "common/old/glut.c"


@needs_clangd
@pytest.mark.parametrize("file", [*(kind + ".cu" for kind in KINDS), *HEADERS, *C_FILES])
def test_clangd_finds_nothing_wrong(tree, file):
    assert mistakes(tree, file) == []


MISTAKES = [
    ("cacheIndex = threadIdx.x;", "cacheIndex = threadIdx.w;", "no member named 'w'"),
    (">>>(dev_a, dev_b,", ">>>(dev_a,", "too few arguments"),
    ("__syncthreads();", "__syncthread();", "__syncthread"),
    ("cudaMemcpyHostToDevice", "cudaMemcpyHostToDevise", "cudaMemcpyHostToDevise"),
]


@needs_clangd
def test_clangd_finds_mistakes_in_a_program(tmp_path):
    tree = copy_sources(tmp_path / "tree", ["chapter05/dot"])
    source = tree / "chapter05/dot.cu"
    text = source.read_text()
    for old, new, _ in MISTAKES:
        assert old in text
        text = text.replace(old, new, 1)
    source.write_text(text)
    found = mistakes(tree, "chapter05/dot.cu")
    assert [says for *_, says in MISTAKES if not any(says in mistake for mistake in found)] == [], found
