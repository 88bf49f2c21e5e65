# SPDX-License-Identifier: MIT
"""Chapter 12: transposes, and what each tool says of each bug of memory_bugs."""
import os
import re
import subprocess

import pytest

import helpers
import trees

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


def test_transpose_ladder_of_every_shape(rungs, rng):
    """Tiles that extend beyond an edge. Rungs with vectorized accesses need rows that are a multiple of a float4."""
    sides = [1, 3, 4, 31, 60, 64, 65, 68, 4 * rng.randint(20, 200), rng.randint(70, 500)]
    shapes = [(4, 60), (68, 4), (64, 128)] + [(rng.choice(sides), rng.choice(sides)) for _ in "abcdefgh"]
    for width, height in shapes:
        rows = rungs("chapter12/transpose_ladder", "--size", width, "--height", height)
        whole = width % 4 == 0 and height % 4 == 0
        lacks = None if whole else "needs a width and a height that are multiples of 4"
        assert [row["skipped"] for row in rows] == [None] * 3 + [lacks] * 2, (width, height)
        assert {row["title"] for row in rows} == {f"{height} x {width} floats"}


# ---- memory_bugs


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


def test_the_page_of_the_tools_names_lines_bugs_and_metrics():
    """docs/tools.md quotes reports; when memory_bugs.cu changes, they have to be made again."""
    page = (helpers.ROOT / "docs/tools.md").read_text()
    quoted = {int(number) for number in re.findall(r"memory_bugs\.cu:(\d+)", page)}
    texts = [
        "*pointers[i].from",
        "*pointers[i].to =",
        "*pointers[i].to_pair",
        "__syncwarp(mask)",
        "sum[i] += in[i]",
    ]
    texts += ["cache[t] = in[i];", "out[i] = cache[(t", "cudaMalloc(&dev_sum", "scatter<<<", "swap_pairs<<<"]
    texts += ["while (*flag == 0)", "wait_for_flag<<<"]
    assert quoted == {line(text) for text in texts}
    table = page.partition("## What is wrong")[2].partition("## ")[0]
    named = re.findall(r"^\| `([a-z]+-?[a-z-]+)` \|", table, re.M)
    words = re.search(r"none\|([a-z|-]+)\"\s+\"([a-z|-]+)", "\n".join(SOURCE))
    assert sorted(named) == sorted("".join(words.groups()).split("|"))
    script = (helpers.ROOT / "scripts/profile.sh").read_text()
    metrics = re.findall(r"\b(?:gpu|sm|smsp|idc|l1tex)__\w+", script)
    assert len(metrics) > 8 and all(metric in page for metric in metrics)


# ---- opencl_add

needs_opencl = pytest.mark.skipif(not helpers.has("OPENCL"), reason="needs OpenCL's headers")


@needs_opencl
def test_opencl(run, rng):
    if not helpers.opencl_device():
        pytest.skip("needs an OpenCL device")
    for size in 1, 127, 128, 129, rng.randint(130, 10**6):
        out = run("chapter12/opencl_add", "--size", size, status=0).out
        assert re.fullmatch(rf"Platform \d of \d+: .+\nDevice: .+\nAll {size} sums are right.\n", out)
    result = run("chapter12/opencl_add", "--platform", 15, status=64)
    assert re.fullmatch(r"opencl_add: --platform 15: there are only \d+\n", result.err)


@needs_opencl
@pytest.mark.backend("cpu")
def test_without_an_opencl_platform(run, tmp_path):
    result = run("chapter12/opencl_add", status=2, env={"OCL_ICD_VENDORS": str(tmp_path)})
    assert result.err.startswith("opencl_add: needs an OpenCL platform, found none (Debian: pocl-opencl-icd")


# ---- make sanitize, make profile-…, ranges for a profiler


def scripted(sources):
    """Programs that are scripts: `sound`, one that is `wrong` on purpose, and one with a `bug` that sanitizers report."""
    scripts = {
        "sound": "exit 0",
        "wrong": "exit 1",
        "bug": "echo x.cu:7:5: runtime error: load of null pointer >&2; exit 1",
    }
    fields = {"wrong": " * Expect:  1\n", "sound": " * Check:   --seed 1 | --seed 2 (race)\n"}
    trees.programs_of(sources, scripts, lambda name: fields.get(name, ""))
    return sources


def test_sanitizers_of_the_compiler(sources):
    log = trees.run(scripted(sources), "scripts/check.sh", status=1, TOOLS="compiler", BIN="bin")
    assert re.sub(r" +[\d.]+ s\n", "\n", log) == (
        "[1/2] chapter03/bug                      FOUND\n    x.cu:7:5: runtime error: load of null pointer\n"
        "[2/2] chapter03/sound                    clean\n"
        "1 of 2 clean, 0 wrong on purpose and found, 1 failed, 0 not built\n"
    )


def test_compute_sanitizer_with_its_four_tools(sources, tmp_path):
    """A script stands in for compute-sanitizer."""
    scripted(sources)
    trees.stand_in(
        tmp_path / "path",
        "compute-sanitizer",
        f"""echo "$@" >>{tmp_path}/calls
case "$*" in *initcheck*bug*) echo '========= Uninitialized __global__ memory read of size 4 bytes'; exit 9 ;; esac""",
    )
    path = f"{tmp_path}/path:{os.environ['PATH']}"
    log = trees.run(sources, "scripts/check.sh", status=1, TOOLS="compute-sanitizer", BIN="bin", PATH=path)
    assert "FOUND" in log and "\n    ========= Uninitialized __global__ memory read" in log
    calls = [line.split("/chapter03/") for line in (tmp_path / "calls").read_text().splitlines()]
    tools = [(re.search("--tool ([a-z]+)", options)[1], program) for options, program in calls]
    four = ["memcheck", "racecheck", "initcheck", "synccheck"]
    assert tools == [(tool, "bug") for tool in four[:3]] + [(tool, "sound --seed 1") for tool in four]
    assert all(("--leak-check full" in options) == ("memcheck" in options) for options, _ in calls)


def test_profiles(sources, tmp_path):
    """Scripts stand in for nsys and ncu."""
    scripted(sources)
    os.symlink("/bin/sh", tmp_path / "sh")
    for name in "mkdir", "dirname", "cat":
        os.symlink(f"/bin/{name}", tmp_path / name) if os.path.exists(f"/bin/{name}") else None
    command = ["scripts/profile.sh", "chapter03/sound", "--size", "9"]
    bare = {"BIN": "bin", "PATH": str(tmp_path)}
    assert "neither nsys nor ncu is on PATH" in trees.run(sources, *command, status=1, **bare)
    trees.stand_in(tmp_path, "nsys", 'echo "nsys $1 $*"')
    trees.stand_in(tmp_path, "ncu", 'echo "ncu $*"')
    log = trees.run(sources, *command, **bare)
    assert re.search(r"^nsys stats .*nvtx_gpu_proj_sum sound.nsys-rep$", log, re.M)
    assert re.search(r"^ncu .*global_op_st.ratio.* /.*/bin/chapter03/sound --size 9$", log, re.M)
    assert "profile" in (sources / "build/profile/chapter03/sound.txt").read_text()


@pytest.mark.backend("cpu")
@pytest.mark.skipif(helpers.sanitized(), reason="cucc has a library of its own, without sanitizers")
def test_steps_of_a_stream_are_ranges_for_a_profiler(tmp_path, variant):
    """Functions that print stand in for NVTX."""
    (tmp_path / "nvtx.h").write_text(
        """#include <stdio.h>
static inline int nvtxRangePushA(const char *name) { return printf("<%s", name); }
static inline int nvtxRangePop(void) { return printf(">\\n"); }
"""
    )
    source = helpers.ROOT / "chapter10/basic_single_stream.cu"
    nvtx = ["-DCOMMON_NVTX_H", "-include", tmp_path / "nvtx.h"]
    command = [helpers.ROOT / "cpu/cucc", "-O0", *nvtx, source, variant / "libcommon.a", "-o", tmp_path / "x"]
    trees.run(helpers.ROOT, *map(str, command))
    out = trees.run(tmp_path, "./x", "--size", "30", "--chunk", "10")
    assert re.findall("<(.*)>", out) == ["copy up", "kernel", "copy down"] * 6


# ---- on a GPU: docs/tools.md quotes these reports

THREADS = {
    "misaligned-read": (5, 3),
    "out-of-bounds": (3, 5),
    "misaligned-write": (1, 8),
    "null-write": (63, 22),
}


@pytest.mark.backend("gpu")
@pytest.mark.parametrize(
    "bug, tool, text, says",
    [
        ("misaligned-read", "memcheck", "*pointers[i].from", "Invalid __global__ read of size 4 bytes"),
        ("out-of-bounds", "memcheck", "*pointers[i].from", "Invalid __global__ read of size 4 bytes"),
        ("misaligned-write", "memcheck", "*pointers[i].to_pair", "Invalid __global__ write of size 8 bytes"),
        ("null-write", "memcheck", "*pointers[i].to =", "Invalid __global__ write of size 4 bytes"),
        ("leak", "memcheck", "cudaMalloc(&dev_sum", "Leaked 5,888 bytes"),
        ("race", "racecheck", "cache[t] = in[i];", "Race reported between Write access"),
        (
            "uninitialized",
            "initcheck",
            "sum[i] += in[i]",
            "Uninitialized __global__ memory read of size 4 bytes",
        ),
        ("mask", "synccheck", "__syncwarp(mask)", "Barrier error detected. Invalid arguments"),
    ],
)
def test_compute_sanitizer_names_the_line(bug, tool, text, says, tmp_path):
    options = ["--tool", tool, *(["--leak-check", "full"] if bug == "leak" else [])]
    done = subprocess.run(
        ["compute-sanitizer", *options, helpers.BIN / "chapter12/memory_bugs", "--bug", bug],
        cwd=tmp_path,
        env=helpers.environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert says in done.stdout and f"in memory_bugs.cu:{line(text)}" in done.stdout, done.stdout
    if bug in THREADS:
        thread, block = THREADS[bug]
        assert f"by thread ({thread},0,0) in block ({block},0,0)" in done.stdout, done.stdout
