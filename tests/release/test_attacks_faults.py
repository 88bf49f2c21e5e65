# SPDX-License-Identifier: MIT
"""tests/attacks/faults.py and CUDA_CPU_FAIL: a sample of the attack, and what the attack must find. What the runtime does when memory
or threads are exhausted."""
import resource
import subprocess
import sys

import pytest

import helpers

sys.path.insert(0, str(helpers.ROOT / "tests/attacks"))
import faults  # noqa: E402

pytestmark = pytest.mark.skipif(helpers.backend() != "cpu", reason="needs the CPU back end")
unsanitized = pytest.mark.skipif(helpers.sanitized(), reason="the sanitizers have an allocator of their own")
DOT, UNIT = "chapter05/dot", "cucc/tests/units/failing_calls"


def refuse(what, **more):
    return {"LD_PRELOAD": str(faults.library()), "REFUSE": what, **more}


# ---- CUDA_CPU_FAIL ----


def test_the_chosen_call_fails(run):
    """Each call in turn, until a run has no more. The name in the message is that of the call which the program checks."""
    called, number = [], 0
    while True:
        number += 1
        result = run(DOT, "--size", 100, env={"CUDA_CPU_FAIL": f"{number}:cudaErrorLaunchTimeout"})
        if not result.err:
            break
        announced, told = result.errors
        start = f"cuda on the CPU: CUDA_CPU_FAIL={number}:cudaErrorLaunchTimeout: "
        assert announced.startswith(start) and announced.endswith(" fails with cudaErrorLaunchTimeout")
        assert "(cudaErrorLaunchTimeout)" in told and result.status == 1
        called.append(announced.removeprefix(start).split(" fails ")[0])
        if called[-1].startswith("cudaM"):
            assert called[-1] in told
    assert result.status == 0
    assert [
        called.count(name) for name in ("cudaMalloc", "cudaMemcpy", "kernel launch", "cudaGetLastError")
    ] == [
        3,
        3,
        1,
        1,
    ]
    assert called[0] == "cudaGetDeviceCount" and called[-1] == "cudaFree"


@pytest.mark.parametrize("number", range(1, 7))
@pytest.mark.parametrize("sticky", ["", ":sticky"])
def test_one_call_or_all_later_ones_fail(run, number, sticky):
    """Of the runtime and of the driver API"""
    setting = f"{number}:700{sticky}"
    result = run(UNIT, "each_call_counts_once", status=0, env={"CUDA_CPU_FAIL": setting})
    assert [line for line in result.errors if "CUDA_CPU_FAIL" in line] == result.errors[:1], str(result)


def test_an_error_that_means_waived(run):
    result = run(DOT, status=2, env={"CUDA_CPU_FAIL": "1:100"})
    assert result.errors[0].endswith("cudaGetDeviceCount fails with cudaErrorNoDevice")


@pytest.mark.parametrize(
    "value",
    ["", "0", "-1", "x", "3x", "3:", "3:nonsense", "3:cudaSuccess", "3:2:sticky:", "3:2:always", "3:\x1b"],
)
def test_other_values_are_refused(run, value):
    result = run(DOT, status=1, env={"CUDA_CPU_FAIL": value})
    (line,) = result.errors
    assert line.startswith(f"cuda on the CPU: CUDA_CPU_FAIL={value.replace(chr(27), '?')}: must be ")


# ---- memory and threads ----


@unsanitized
def test_memory_is_exhausted_at_any_time(run):
    """With every limit on the address space the program ends with the right result or with one line."""
    statuses = set()
    for limit in range(6, 60, 3):
        result = run(
            "chapter04/add_loop_gpu",
            env={"CUDA_CPU_WORKERS": "2"},
            limits={resource.RLIMIT_AS: limit << 20},
        )
        if "error while loading shared libraries" in result.err or result.status == 127:
            continue
        assert result.status in (0, 1) and len(result.errors) == result.status, str(result)
        statuses.add(result.status)
    assert 0 in statuses


@unsanitized
def test_an_exception_without_memory_is_one_line(run):
    """std::bad_alloc that nothing catches; cucc/tests/units/failing_calls has another exception, which aborts."""
    for number in range(1, 40):
        result = run(DOT, "--size", 100, env=refuse(f"memory:{number}"))
        if result.errors[:1] == ["refused: operator new"]:
            break
    assert result.status == 1
    assert result.errors[1:] == ["cuda on the CPU: out of memory: an allocation of host memory failed"]


@unsanitized
def test_memory_for_the_plan_of_an_fft_is_refused(run):
    """If memory for the shared_ptr of a plan is missing, the plan is destroyed while the planner's mutex is locked."""
    statuses = set()
    for number in range(110, 170):
        result = run("chapter12/fft_convolution", "--size", 48, env=refuse(f"memory:{number}"))
        assert result.status in (0, 1), str(result)
        statuses.add(result.status)
    assert statuses == {0, 1}


def test_the_runtime_registers_no_destructors_of_threads(variant):
    """Without memory for the registration of a thread_local object's destructor, glibc aborts the program."""
    symbols = subprocess.run(
        ["nm", "-A", variant / "libcudacpu.a"], text=True, capture_output=True, check=True
    )
    assert "T cuda" in symbols.stdout and "__cxa_thread_atexit" not in symbols.stdout


@unsanitized
def test_fewer_workers_where_threads_are_refused(run):
    for setting in "starts:1", "starts:1+", "starts:2+":
        result = run(DOT, "--size", 100000, status=0, env=refuse(setting, CUDA_CPU_WORKERS="4"))
        assert result.errors == ["refused: pthread_create"]


@unsanitized
def test_a_kernel_that_may_poll_runs_without_helpers(run):
    """Its launch usually runs on other threads than that of the host."""
    result = run("appendix_a/dot", "--size", 1000, status=0, env=refuse("starts:1+", CUDA_CPU_WORKERS="4"))
    assert result.errors == ["refused: pthread_create"]


@unsanitized
def test_a_cooperative_launch_without_its_threads_fails(run):
    result = run(
        UNIT, "a_cooperative_launch_needs_its_threads", status=0, env=refuse("starts:2+", REFUSED="1")
    )
    assert "launch of count_blocks at failing_calls.cu:" in result.err
    assert "needs 3 host threads, the system permits 1" in result.err


@unsanitized
def test_a_graph_is_written_whole_or_not_at_all(run):
    """fopen, fclose and the write in it fail in turn, after the operations on files that the runtime begins with."""
    told, number, result = [], 0, None
    while result is None or result.err:
        number += 1
        env = refuse(f"files:{number}", REFUSED="1")
        result = run(UNIT, "a_graph_is_written_whole_or_not_at_all", status=0, env=env)
        if "cannot write graph.dot" in result.err:
            told.append(result.errors[0])
    assert told == ["refused: fopen", "refused: fclose", "refused: write"]


# ---- the attack ----


@unsanitized
def test_a_sample(rng, capsys):
    status = faults.main(["--sample", "8", "--jobs", "2", "--seed", str(rng.randrange(1 << 31))])
    assert status == 0, capsys.readouterr().out


class Whole(faults.Reference):
    """The reference of an invented program, which prints two lines and writes a file."""

    def __init__(self):
        self.statuses, self.counts, self.lines = {0}, {3}, ["a", "c"]
        self.errors, self.files = {"usual"}, {"o.png": {"hash"}}


@pytest.mark.parametrize(
    "status, lines, errors, files, found",
    [
        (0, "abc", [], {"o.png": "hash"}, None),
        (0, "axc", ["refused: malloc", "usual", "went on"], {"o.png": "hash"}, None),
        (1, "a", ["refused: malloc", "why"], {}, None),
        (2, "", ["cuda on the CPU: CUDA_CPU_FAIL=1: x", "why"], {}, None),
        (1, "a", ["cuda on the CPU: why", "file:1: why"], {}, None),
        (None, "", [], {}, "did not end"),
        (-6, "", ["refused: malloc", "terminate called"], {}, "signal 6"),
        (0, "ab", [], {"o.png": "hash"}, "stdout is not complete"),
        (0, "abx", [], {"o.png": "hash"}, "stdout is not complete"),
        (0, "abc", [], {}, "no o.png"),
        (0, "abc", [], {"o.png": "other"}, "o.png is not as"),
        (1, "a", ["why"], {"o.png": "other"}, "o.png is not as"),
        (1, "a", ["why"], {"o%d.png": "hash"}, "made o%d.png"),
        (1, "a", ["why"], {".unfinished-x.tmp": "hash"}, "left .unfinished-x.tmp"),
        (1, "a", ["refused: malloc", "usual"], {}, "no line"),
        (1, "a", ["refused: malloc", "one", "two"], {}, "2 lines"),
        (64, "a", ["refused: malloc", "one"], {}, "status 64"),
        (127, "a", ["one"], {}, "status 127"),
    ],
)
def test_what_the_attack_finds(status, lines, errors, files, found):
    defect = Whole().defect(faults.Run(status, list(lines), errors, files), True)
    assert (defect is None) if found is None else found in defect, defect


def test_a_failure_that_nothing_caused_is_found():
    assert "without a failure" in Whole().defect(faults.Run(1, [], ["why"], {}), False)
