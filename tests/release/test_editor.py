# SPDX-License-Identifier: MIT
"""clangd, as editors use it, parses the sources without errors: .clangd and make compile_commands.json."""
import json
import re
import shlex
import shutil

import pytest

from trees import copy_sources, make, run

# A program of each kind: shared memory, textures, OpenGL, atomics in device functions, streams, cooperative groups, threads
KINDS = """chapter03/hello_world chapter05/dot chapter07/heat_2d chapter08/basic_interop
    chapter09/hist_gpu_shmem_atomics chapter10/basic_double_stream chapter05/occupancy chapter11/multidevice
    appendix_a/dot""".split()
needs_clangd = pytest.mark.skipif(not shutil.which("clangd"), reason="needs clangd, found none")


@pytest.fixture(scope="session")
def trees(once):
    """Two trees that tests must not change: one as after cloning, and one with compile_commands.json."""

    def build(folder):
        plain = copy_sources(folder / "plain", KINDS)
        built = copy_sources(folder / "built", KINDS)
        make(built, "compile_commands.json")
        return plain, built

    return once("editor", build)


def mistakes(tree, file):
    """The errors that clangd reports for a file."""
    log = run(tree, "clangd", f"--check={tree / file}", status=None)
    assert "config error" not in log and "All checks completed" in log, log
    return re.findall(r"^E.*?(\[\w+\] Line .*)", log, re.M)


PLAIN = [*(kind + ".cu" for kind in KINDS), "common/proofs/dot.h", "common/gpu_anim.h", "chapter06/spheres.h"]
WITH_DATABASE = "chapter05/dot.cu", "common/gpu_anim.h", "common/lib/window.c", "common/lib/options.c"


@needs_clangd
@pytest.mark.parametrize(
    "tree, file", [*((0, file) for file in PLAIN), *((1, file) for file in WITH_DATABASE)]
)
def test_clangd_finds_nothing_wrong(trees, tree, file):
    assert mistakes(trees[tree], file) == []


@needs_clangd
@pytest.mark.parametrize(
    "old, new, says",
    [
        ("cache[threadIdx.x] = temp;", "cache[threadIdx.w] = temp;", "no member named 'w'"),
        (">>>(dev_a, dev_b,", ">>>(dev_a,", "too few arguments"),
        ("__syncthreads();", "__syncthread();", "__syncthread"),
        ("cudaMemcpyHostToDevice", "cudaMemcpyHostToDevise", "cudaMemcpyHostToDevise"),
    ],
)
def test_clangd_finds_mistakes_in_a_program(tmp_path, old, new, says):
    tree = copy_sources(tmp_path / "tree", ["chapter05/dot"])
    source = tree / "chapter05/dot.cu"
    assert old in source.read_text()
    source.write_text(source.read_text().replace(old, new, 1))
    found = mistakes(tree, "chapter05/dot.cu")
    assert found and says in found[0]


def test_the_database_has_every_source(trees):
    tree = trees[1]
    entries = json.loads((tree / "compile_commands.json").read_text())
    files = [entry["file"] for entry in entries]
    there = [
        path.relative_to(tree).as_posix()
        for folder in ("chapter*", "appendix_a", "common/lib", "common/old")
        for path in tree.glob(folder + "/*.c*")
        if path.suffix in (".c", ".cu")
    ]
    assert sorted(files) == sorted(there) and all(entry["directory"] == str(tree) for entry in entries)
    assert all(re.search(r"-DHAVE_\w+", entry["command"]) for entry in entries)


@pytest.mark.skipif(not shutil.which("clang++"), reason="needs clang++, found none")
def test_the_database_needs_no_toolkit(trees):
    entries = json.loads((trees[1] / "compile_commands.json").read_text())
    command = next(entry["command"] for entry in entries if entry["file"] == "chapter05/dot.cu")
    assert run(trees[1], *shlex.split(command), "-fsyntax-only", "--cuda-path=/nonexistent") == ""
