# SPDX-License-Identifier: MIT
"""The race detector, cucc --check: each case of races/cases.cu has a mistake, which is reported, and a twin without."""
import re

import pytest

import tools

SOURCE = tools.HERE / "races/cases.cu"
LINES = SOURCE.read_text().splitlines()
CASES = re.findall(r"(?<!define )(?:KERNEL|HOST)\((\w+)", SOURCE.read_text())
UNINITIALIZED = {"uninitialized": ("add_to", "// read of sum"), "unset_bins": ("count", "// count in memory")}
BEYOND = {  # the comment of each line, and parts of its report
    "beyond_allocation": {"// read beyond in": ("thread (255,0,0) reads 4", "65536 of device memory", 65536)},
    "beyond_shared": {
        "// write beyond small": ("thread (255,0,0) writes 4", "1020 of shared memory small", 1020),
        "// write beyond dynamic": ("thread (5,0,0) writes 4", "1024 of dynamic shared memory", 1024),
        "// write across the end": ("thread (5,0,0) writes 8", "12 of shared memory pairs", 16),
        "// atomic before small": ("thread (5,0,0) atomically changes 4", "-4 of shared memory small", 1020),
    },
}
FORBIDDEN = {
    "others_local": "a local variable of another thread",
    "written_index": "threadIdx, blockIdx, blockDim or gridDim",
}
RACES = [case for case in CASES if case not in {**UNINITIALIZED, **BEYOND, **FORBIDDEN}]


@pytest.fixture
def run(program):
    """run("tile", 1, CUDA_CPU_STREAMS="eager") -> the Result of the case with its mistake"""
    checked = program(SOURCE, "--check")
    return lambda case, wrong, **env: tools.execute(checked, case, wrong, env=env, timeout=60, status=wrong)


def reported(run, case):
    return run(case, 1).err


def line(text):
    return next(n for n, line in enumerate(LINES, 1) if text in line)


@pytest.mark.parametrize("case", CASES)
def test_a_program_without_the_mistake(run, case):
    for settings in [
        {},
        {"CUDA_CPU_STREAMS": "eager"} if case not in RACES else {},
        {"CUDA_CPU_SCHEDULE": "reverse", "CUDA_CPU_WORKERS": "2"},
        {"CUDA_CPU_SCHEDULE": "random:7", "CUDA_CPU_STREAMS": "random:7"},
    ]:
        assert run(case, 0, **settings).err == "", settings


@pytest.mark.parametrize("case", RACES)
def test_a_race(run, case):
    marked = {n for n, line in enumerate(LINES, 1) if re.search(rf"// .*\b{case}\b", line)}
    text = reported(run, case)
    pairs = re.findall(r"race .*?at cases\.cu:(\d+).*?at cases\.cu:(\d+)", text, re.S)
    assert {int(n) for pair in pairs for n in pair} & marked, f"{text}\nexpected: {marked}"


def test_a_report_names_both_threads_and_lines(run):
    text = reported(run, "tile")
    assert re.fullmatch(
        r"cuda on the CPU: race in kernel tile, block \(0,0,0\): thread \(127,0,0\) reads 4 bytes of dynamic "
        r"shared memory at cases\.cu:\d+,\n    thread \(128,0,0\) writes them at cases\.cu:\d+, with no "
        r"__syncthreads\(\) between\n",
        text,
    ), text
    text = reported(run, "increment")
    assert re.search(r"device memory at cases\.cu:\d+ \(allocated at cases\.cu:\d+\)", text), text
    text = reported(run, "host_reads")
    assert re.search(
        r"the host reads 4 bytes of pinned host memory at cases\.cu:\d+ \(allocated at cases\.cu:\d+\),\n"
        r"    which cudaMemcpyAsync, called at cases\.cu:\d+, writes, and the host has not waited for that\n",
        text,
    ), text


def test_a_race_of_dependent_launches(run):
    """The reader may be two launches after the writer."""
    for case in "dependent", "dependent_chain":
        report = (
            r"cuda on the CPU: race between kernels: kernel dependent_fill, launched at cases\.cu:\d+, thread \(0,0,0\) of block "
            rf"\(0,0,0\) writes 4 bytes of device memory at cases\.cu:{line('dependent, dependent_lane')} "
            r"\(allocated at cases\.cu:\d+\),\n    kernel dependent_copy, launched at cases\.cu:\d+, thread \(0,0,0\) of block "
            rf"\(0,0,0\) reads them at cases\.cu:{line('// dependent, dependent_chain')}, "
            r"and has not called cudaGridDependencySynchronize\(\)\n"
        )
        assert re.fullmatch(report, reported(run, case)), reported(run, case)


@pytest.mark.parametrize(
    "case, how",
    [
        ("bins_of_block", "writes .* writes them at .*, with no atomic operation such as atomicAdd()"),
        (
            "variable",
            "writes .* writes them at .*, with no atomic operation such as atomicAdd(), and nothing orders these blocks",
        ),
        ("bytes", "writes .* writes it at .*, with no __syncthreads() or atomic operation between"),
        ("tree", "reads .* writes them at .*, with no __syncwarp() or __syncthreads() between"),
    ],
)
def test_a_race_of_one_line(run, case, how):
    """Whether an atomic operation is missing there, or a barrier."""
    text = reported(run, case)
    assert re.search(how.replace("()", r"\(\)") + "\n$", text, re.S) and text.count("race") == 1, text


def test_fills_copies_and_freed_memory_need_no_shadow_memory(program):
    """Of 33 GiB the detector's table takes 32."""
    limited = "ulimit -v 34603008; exec " + f"'{program(SOURCE, '--check')}' fill_and_kernel 0"
    tools.execute("sh", "-c", limited, timeout=60)


@pytest.mark.parametrize("case", UNINITIALIZED)
def test_a_read_of_memory_that_nothing_has_written(run, case):
    kernel, text = UNINITIALIZED[case]
    report = (
        rf"cuda on the CPU: uninitialized memory in kernel {kernel}, block \(0,0,0\): thread \(0,0,0\) reads 4 bytes of "
        rf"device memory at cases\.cu:{line(text)} \(allocated at cases\.cu:\d+\),\n    which nothing has written\n"
    )
    assert re.fullmatch(report, reported(run, case))


@pytest.mark.parametrize("case", BEYOND)
def test_an_access_beyond_an_array(run, case):
    err = reported(run, case)
    for text, (who, where, size) in BEYOND[case].items():
        report = (
            rf"cuda on the CPU: out of bounds in kernel \w+, block \(0,0,0\): {re.escape(who)} bytes at "
            rf"cases\.cu:{line(text)},\n    at offset {where}(| \(allocated at cases\.cu:\d+\)), which has {size} bytes\n"
        )
        assert re.search(report, err), err
    assert err.count("out of bounds") == len(BEYOND[case]), err


@pytest.mark.parametrize("case", FORBIDDEN)
def test_what_belongs_to_another_thread_or_is_constant(run, case):
    where = rf"kernel {case}, block \(0,0,0\): thread \([01],0,0\)"
    report = rf"cuda on the CPU: out of bounds in {where} \w+ (?:changes )?4 bytes of {FORBIDDEN[case]} at cases\.cu:(\d+)\n"
    lines = [str(n) for n, text in enumerate(LINES, 1) if f"// {case}" in text]
    assert len(lines) == 2 and re.fullmatch(report * 2, reported(run, case)).groups() == tuple(lines)


@pytest.mark.parametrize(
    "mistake, message",
    [
        ("*(volatile int *)p = 1", r"illegal address \(nil\)"),
        ("n /= n - 5", "integer division by zero at .*"),
    ],
)
def test_a_fault_names_the_thread_and_its_line(tmp_path, mistake, message):
    """Also of a thread that has waited at a barrier. Without --check the message says who knows it."""
    text = f"""__global__ void k(int *p) {{
        __syncthreads();
        volatile int n = threadIdx.x;
        if (n == 5)
            {mistake};
    }}
    int main() {{ k<<<1, 32>>>(nullptr); cudaDeviceSynchronize(); }}"""
    for option, thread, hint in ("--check", r": thread \(5,0,0\) at \w+\.cu:5", ""), (
        "-O1",
        "",
        "; cucc --check names .*",
    ):
        tools.compiled(tmp_path, text, option)
        err = tools.execute(tmp_path / "a.out", status=None).err
        expected = rf"{message}\n    in kernel k, block \(0,0,0\).*{thread}, launched at \w+\.cu:7{hint}\n"
        assert re.search(expected, err), err
