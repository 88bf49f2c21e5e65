# SPDX-License-Identifier: MIT
"""Chapter 12: transposes, and what each tool says of each bug of memory_bugs."""
import re

import pytest

import helpers

SOURCE = (helpers.ROOT / "chapter12/memory_bugs.cu").read_text().splitlines()


def line(text):
    """The number of the line of memory_bugs.cu that contains the text."""
    numbers = [number for number, code in enumerate(SOURCE, 1) if text in code]
    assert len(numbers) == 1, text
    return numbers[0]


# ---- transpose


def test_transposes_of_every_shape(run, rng):
    """The program compares every element with its own transposed place."""
    for sides in (1, 1), (256, 256), (1, 2000), (rng.randint(2, 99), rng.randint(2, 999)):
        options = [word for pair in zip(("--size", "--height"), sides) for word in pair]
        run("chapter12/transpose", *options, "--seed", rng.randrange(10**6), status=0)


def test_transpose_ladder_of_every_shape(rungs, rng):
    """Tiles that extend beyond an edge. Rungs with vectorized accesses need rows that are a multiple of a float4."""
    sides = [1, 31, 60, 65, 68, 4 * rng.randint(20, 200), rng.randint(70, 500)]
    for width, height in [(4, 60), (68, 4)] + [(rng.choice(sides), rng.choice(sides)) for _ in "abcd"]:
        rows = rungs("chapter12/transpose_ladder", "--size", width, "--height", height)
        whole = width % 4 == 0 and height % 4 == 0
        lacks = None if whole else "needs a width and a height that are multiples of 4"
        assert [row["skipped"] for row in rows] == [None] * 3 + [lacks] * 2, (width, height)
        assert {row["title"] for row in rows} == {f"{height} x {width} floats"}


# ---- memory_bugs


@pytest.mark.backend("cpu")
def test_what_the_cpu_back_end_says_by_itself(run):
    at = f"memory_bugs.cu:{line('__syncwarp(mask)')}"
    in_kernel = r"in kernel scatter, block \(22,0,0\), launched at memory_bugs.cu:\d+"
    for bug, says in {
        "misaligned-read": r"gather\[197\]: got .*\nmemory_bugs: make check .*\ngather: 1 of 1472 differ\n",
        "misaligned-write": r"pairs\[1026\]: ",
        "null-write": rf"illegal address .*\n    {in_kernel}",
        "race": r"neighbours: \d+ of 1472 differ",
        "mask": f"__syncwarp at {at}: lane 8 calls it with mask 0x000000ff",
        "uninitialized": "sum: 1472 of 1472 differ",
    }.items():
        options = {"sanitizers": False, "env": {"CUDA_CPU_SCHEDULE": "forward"}}
        result = run("chapter12/memory_bugs", "--bug", bug, status=1, **options)
        assert helpers.sanitized() or re.search(says, result.err), str(result)
    result = run("chapter12/memory_bugs", "--bug=leak", status=1)
    assert result.out == "All results are right, in spite of the bug.\n"


@pytest.mark.backend("cpu")
def test_the_kernel_that_hangs_ends(run):
    """By the host after a time, or by the watchdog."""
    command = "chapter12/memory_bugs", "--bug=hang"
    err = run(*command, "--seconds=1", status=1, timeout=60).err
    assert "the kernel waited until the host set the flag, after 1 s" in err
    err = run(*command, "--seconds=60", status=1, env={"CUDA_CPU_WATCHDOG": "1"}).err
    assert "every thread that can run polls, with reads through volatile" in err
    assert "in kernel wait_for_flag" in err and f"memory_bugs.cu:{line('wait_for_flag<<<')}" in err


@pytest.mark.backend("cpu")
def test_memory_that_is_not_freed(run):
    check = {"CUDA_CPU_CHECK": "1"}
    at = line("cudaMalloc(&dev_sum")
    assert run("chapter12/memory_bugs", status=0, env=check).out == "All results are right.\n"
    says = f"not freed: 5888 bytes of device 0, allocated at memory_bugs.cu:{at}\n"
    err = run("chapter12/memory_bugs", "--bug=leak", status=1, env=check).err
    assert err == f"cuda on the CPU: at exit {says}"


# ---- docs/tools.md


def test_the_page_of_the_tools_names_lines_and_bugs():
    """docs/tools.md quotes reports; when memory_bugs.cu changes, they have to be made again."""
    page = (helpers.ROOT / "docs/tools.md").read_text()
    quoted = {int(number) for number in re.findall(r"memory_bugs\.cu:(\d+)", page)}
    texts = """*pointers[i].from  *pointers[i].to =  __syncwarp(mask)  sum[i] += in[i]
        cache[t] = in[i];  out[i] = cache[(t  cudaMalloc(&dev_sum  swap_pairs<<<
        while (*flag == 0)  wait_for_flag<<<"""
    assert quoted == {line(text) for text in re.split(r"\s{2,}", texts)}
    debugged = "chapter05/add_loop_long_blocks.cu", "chapter05/dot.cu", "chapter12/memory_bugs.cu"
    sources = [(helpers.ROOT / name).read_text().splitlines() for name in debugged]
    shown = re.findall(r"^    (\d+)\t(.+)$", page, re.M)  # as a debugger does
    wrong = [s for s in shown if all(s[1] != source[int(s[0]) - 1] for source in sources)]
    assert len(shown) > 5 and wrong == []
    table = page.partition("## What is wrong")[2].partition("## ")[0]
    named = re.findall(r"^\| `([a-z]+-?[a-z-]+)` \|", table, re.M)
    words = re.search(r"none\|([a-z|-]+)\"\s+\"([a-z|-]+)", "\n".join(SOURCE))
    assert sorted(named) == sorted("".join(words.groups()).split("|"))


# ---- opencl_add

needs_opencl = pytest.mark.skipif(not helpers.has("OPENCL"), reason="needs OpenCL's headers")


@needs_opencl
def test_opencl(run, rng):
    if helpers.waived("chapter12/opencl_add"):
        pytest.skip("needs an OpenCL device")
    for size in 1, 127, 128, 129, rng.randint(130, 10**6):
        out = run("chapter12/opencl_add", "--size", size, status=0).out
        assert re.fullmatch(rf"Platform \d of \d+: .+\nDevice: .+\nAll {size} sums are right.\n", out)


@needs_opencl
@pytest.mark.backend("cpu")
def test_without_an_opencl_platform(run, tmp_path):
    result = run("chapter12/opencl_add", env={"OCL_ICD_VENDORS": str(tmp_path), "OCL_ICD_FILENAMES": ""})
    if result.out.startswith("Platform"):
        pytest.skip("the loader of OpenCL has found a driver elsewhere")
    says = "opencl_add: needs an OpenCL platform, found none (Debian: pocl-opencl-icd"
    assert result.status == 2 and result.err.startswith(says)
