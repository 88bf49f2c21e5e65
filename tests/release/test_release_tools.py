# SPDX-License-Identifier: MIT
"""What sanitizers say of each bug of chapter12/memory_bugs; docs/tools.md quotes the reports. Ranges for a
profiler."""
import re

import pytest

import helpers
import test_programs
import trees
from test_chapter12_tools import line
from test_release_programs import sanitized


@pytest.fixture
def instrumented(once):
    """The folder of two programs and the unit test of the options, built with AddressSanitizer and UndefinedBehaviorSanitizer."""
    programs = ["chapter12/memory_bugs", "chapter04/julia_gpu", "tests/common/options"]

    def build(folder):
        folders = f"BIN={folder}/bin", f"BUILD={folder}/build"
        # Halves the time of a build of which only the outcome matters
        unoptimised = "CFLAGS=-O0", "CXXFLAGS=-O0"
        helpers.make(*programs, "BACKEND=cpu", "SANITIZE=address,undefined", *unoptimised, *folders)
        return folder / "bin"

    return once("instrumented", build)


@pytest.mark.backend("cpu")
def test_sanitizers_name_the_line(run, instrumented):
    program = instrumented / "chapter12/memory_bugs"
    run(program, status=0)
    error, at = r":{}:\d+: runtime error: ", r"READ of size 4 [^\n]*\n *#0 [^\n]*memory_bugs.cu:{}\b"
    for bug, text, says in [
        ("misaligned-read", "*pointers[i].from", error + "load of misaligned address .* type 'const float'"),
        ("out-of-bounds", "*pointers[i].from", rf"heap-buffer-overflow.*\n{at}"),
        ("misaligned-write", "*pointers[i].to_pair", error + ".* misaligned address .*float2"),
        ("null-write", "*pointers[i].to =", error + "store to null pointer"),
        ("mask", "__syncwarp(mask)", r"__syncwarp at memory_bugs.cu:{}: lane 8"),
    ]:
        result = run(program, "--bug", bug, status=1, sanitizers=False)
        assert re.search(says.format(line(text)), result.err, re.S), str(result)


@pytest.mark.backend("cpu")
def test_options_with_sanitizers(run, rng, instrumented, monkeypatch):
    monkeypatch.setattr(helpers, "BIN", instrumented)
    run("tests/common/options", status=0, timeout=300)
    julia = helpers.program("chapter04/julia_gpu")
    test_programs.test_bad_arguments(julia, run, rng)


@pytest.mark.backend("cpu")
@pytest.mark.skipif(helpers.sanitized(), reason="cucc has a library of its own, without sanitizers")
def test_steps_of_a_stream_are_ranges_for_a_profiler(tmp_path):
    """Macros that print stand in for NVTX."""
    says = """#include "common/nvtx.h"
#include <stdio.h>
#define nvtxRangePushA(name) printf("<%s", name)
#define nvtxRangePop()       printf(">\\n")
"""
    (tmp_path / "ranges.h").write_text(says)
    source = helpers.ROOT / "chapter10/basic_single_stream.cu"
    nvtx = ["-I.", "-include", tmp_path / "ranges.h"]
    library = helpers.BUILD / helpers.config()["VARIANT"] / "libcommon.a"
    trees.run(helpers.ROOT, "cucc/cucc", "-O0", *nvtx, source, library, "-o", tmp_path / "x")
    out = trees.run(tmp_path, "./x", "--size", "30", "--chunk", "10")
    assert re.findall("<(.*)>", out) == ["copy up", "kernel", "copy down"] * 3


# A bug, the tool that finds it, the line of the source, what the tool says, and of some the thread
FOUND = """misaligned-read; memcheck; *pointers[i].from; Invalid __global__ read of size 4 bytes; (5,0,0) in block (3,0,0)
out-of-bounds; memcheck; *pointers[i].from; Invalid __global__ read of size 4 bytes; (3,0,0) in block (5,0,0)
misaligned-write; memcheck; *pointers[i].to_pair; Invalid __global__ write of size 8 bytes; (1,0,0) in block (8,0,0)
null-write; memcheck; *pointers[i].to =; Invalid __global__ write of size 4 bytes; (63,0,0) in block (22,0,0)
leak; memcheck; cudaMalloc(&dev_sum; Leaked 5,888 bytes
race; racecheck; cache[t] = in[i]; Race reported between Write access
uninitialized; initcheck; sum[i] += in[i]; Uninitialized __global__ memory read of size 4 bytes
mask; synccheck; __syncwarp(mask); Barrier error detected. Invalid arguments"""


@pytest.mark.backend("gpu")
@pytest.mark.parametrize("row", FOUND.splitlines(), ids=lambda row: row.partition(";")[0])
def test_compute_sanitizer_names_the_line(row, tmp_path):
    bug, tool, text, says, *thread = row.split("; ")
    more = ["--leak-check", "full"] if bug == "leak" else []
    status, out = sanitized(tmp_path, tool, *more, "chapter12/memory_bugs", "--bug", bug)
    assert says in out and f"in memory_bugs.cu:{line(text)}" in out, out
    assert not thread or f"by thread {thread[0]}" in out, out
