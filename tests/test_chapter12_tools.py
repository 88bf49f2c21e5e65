# SPDX-License-Identifier: MIT
"""Chapter 12: transposes, and what each tool says of each bug of memory_bugs."""
import re
import subprocess

import pytest

import helpers

SOURCE = (helpers.ROOT / "chapter12/memory_bugs.cu").read_text().splitlines()
ROW = re.compile(
    r"^(.+?) +[\d.]+ ms +[\d.]+ GB/s   sectors: read +(\d+), write +(\d+)(?:   turns in shared memory: +(\d+))?$",
    re.M,
)


def line(text):
    """The number of the line of memory_bugs.cu that contains the text."""
    numbers = [number for number, code in enumerate(SOURCE, 1) if text in code]
    assert len(numbers) == 1, text
    return numbers[0]


# ---- transpose


def rows(result):
    return [(name, int(read), int(write), turns) for name, read, write, turns in ROW.findall(result.out)]


def test_transpose(default_run):
    assert rows(default_run("chapter12/transpose")) == [
        ("copy", 4, 4, ""),
        ("naive", 4, 32, ""),
        ("tile", 4, 4, "32"),
        ("tile, padded rows", 4, 4, "1"),
    ]


def test_transposes_of_every_shape(run, rng):
    """The program compares every element with its own transposed place."""
    sides = [1, 7, 8, 31, 32, 33, 64, 65, rng.randint(66, 999)]
    for width, height in [(side, side) for side in sides] + [
        (rng.choice(sides), rng.choice(sides)) for _ in "abcd"
    ]:
        result = run(
            "chapter12/transpose",
            "--size",
            width,
            "--height",
            height,
            "--seed",
            rng.randrange(10**6),
            status=0,
        )
        lanes = min(width, 32)
        places = lambda step, count: len({lane * step // 8 for lane in range(count)})
        copied, scattered, *tiles = rows(result)
        assert copied[1:3] == (places(1, lanes), places(1, lanes))
        assert scattered[1:3] == (places(1, lanes), places(height, lanes))
        assert [tile[2] for tile in tiles] == [places(1, min(height, 32))] * 2


def test_too_many_rows(run):
    result = run("chapter12/transpose", "--size", 1, "--height", 1 << 20, status=0)
    assert "1048576 rows of 1 floats" in result.out


# ---- memory_bugs

BUGS = re.findall(r'"([a-z|-]+)"', "\n".join(SOURCE))


def test_memory_bugs_without_a_bug(run):
    assert run("chapter12/memory_bugs", status=0).out == "All results are right.\n"


@pytest.mark.backend("cpu")
def test_what_the_cpu_back_end_says_by_itself(run):
    for bug, says in [
        ("misaligned-read", r"gather\[197\]: got .*\ngather: 1 of 1472 differ\n"),
        ("misaligned-write", r"pairs\[1026\]: "),
        (
            "null-write",
            r"illegal address .*\n    in kernel scatter, block \(22,0,0\), launched at memory_bugs.cu:\d+",
        ),
        ("race", r"neighbours: \d+ of 1472 differ"),
        (
            "mask",
            rf"__syncwarp at memory_bugs.cu:{line('__syncwarp(mask)')}: lane 8 calls it with mask 0x000000ff",
        ),
        ("uninitialized", "sum: 1472 of 1472 differ"),
    ]:
        result = run(
            "chapter12/memory_bugs",
            "--bug",
            bug,
            status=1,
            sanitizers=False,
            env={"CUDA_CPU_SCHEDULE": "forward"},
        )
        assert helpers.sanitized() or re.search(says, result.err), str(result)
    result = run("chapter12/memory_bugs", "--bug=leak", status=1)
    assert result.out == "All results are right, in spite of the bug.\n"


def test_the_kernel_that_hangs_ends(run):
    result = run("chapter12/memory_bugs", "--bug", "hang", "--seconds", 1, status=1, timeout=60)
    assert "the kernel waited until the host set the flag, after 1 s" in result.err


@pytest.mark.backend("cpu")
def test_the_watchdog_ends_the_kernel_that_hangs(run):
    result = run(
        "chapter12/memory_bugs", "--bug=hang", "--seconds=60", status=1, env={"CUDA_CPU_WATCHDOG": "2"}
    )
    assert "every thread that can run polls, with reads through volatile" in result.err
    assert (
        f"in kernel wait_for_flag" in result.err
        and f"memory_bugs.cu:{line('wait_for_flag<<<')}" in result.err
    )


@pytest.mark.backend("cpu")
def test_memory_that_is_not_freed(run):
    check = {"CUDA_CPU_CHECK": "1"}
    at = line("cudaMalloc(&dev_sum")
    assert run("chapter12/memory_bugs", status=0, env=check).err == ""
    result = run("chapter12/memory_bugs", "--bug=leak", status=1, env=check)
    assert result.err == (
        f"cuda on the CPU: at exit not freed: 5888 bytes of device 0, allocated at memory_bugs.cu:{at}\n"
    )


# ---- what the tools say on the CPU back end: docs/tools.md names them


@pytest.mark.backend("cpu")
def test_sanitizers_name_the_line(run, instrumented):
    program = instrumented / "chapter12/memory_bugs"
    run(program, status=0)
    for bug, text, says in [
        (
            "misaligned-read",
            "*pointers[i].from",
            r":{}:\d+: runtime error: load of misaligned address .* type 'const float'",
        ),
        (
            "out-of-bounds",
            "*pointers[i].from",
            r"heap-buffer-overflow.*\nREAD of size 4 [^\n]*\n *#0 [^\n]*memory_bugs.cu:{}\b",
        ),
        (
            "misaligned-write",
            "*pointers[i].to_pair",
            r":{}:\d+: runtime error: .* misaligned address .*float2",
        ),
        ("null-write", "*pointers[i].to =", r":{}:\d+: runtime error: store to null pointer"),
        ("mask", "__syncwarp(mask)", r"__syncwarp at memory_bugs.cu:{}: lane 8"),
    ]:
        result = run(program, "--bug", bug, status=1, sanitizers=False)
        assert re.search(says.format(line(text)), result.err, re.S), str(result)


# ---- opencl_add

needs_opencl = pytest.mark.skipif(not helpers.has("OPENCL"), reason="needs OpenCL's headers")


@needs_opencl
def test_opencl(run, rng):
    if not helpers.opencl_device():
        pytest.skip("needs an OpenCL device")
    for size in 1, 127, 128, 129, rng.randint(130, 10**6):
        out = run("chapter12/opencl_add", "--size", size, status=0).out
        assert re.fullmatch(rf"Platform 0 of \d+: .+\nDevice: .+\nAll {size} sums are right.\n", out)
    result = run("chapter12/opencl_add", "--platform", 15, status=64)
    assert re.fullmatch(r"opencl_add: --platform 15: there are only \d+\n", result.err)


@needs_opencl
@pytest.mark.backend("cpu")
def test_without_an_opencl_platform(run, tmp_path):
    result = run("chapter12/opencl_add", status=2, env={"OCL_ICD_VENDORS": str(tmp_path)})
    assert result.err.startswith("opencl_add: needs an OpenCL platform, found none (Debian: pocl-opencl-icd")
