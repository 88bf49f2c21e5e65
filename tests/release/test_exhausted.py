# SPDX-License-Identifier: MIT
"""What programs do when memory or threads are exhausted, on the CPU back end; tests/release/attacks/refuse.c refuses them."""
import resource

import pytest

import helpers
import shared

pytestmark = [
    pytest.mark.backend("cpu"),
    pytest.mark.skipif(helpers.sanitized(), reason="the sanitizers have an allocator of their own"),
]
DOT = "chapter05/dot"


def refuse(what, **more):
    return {"LD_PRELOAD": str(shared.library("refuse")), "REFUSE": what, **more}


def test_memory_is_exhausted_at_any_time(run):
    """With every limit on the address space the program ends with the right result or with one line."""
    statuses = set()
    for limit in range(6, 60, 3):
        limits = {resource.RLIMIT_AS: limit << 20}
        result = run("chapter04/add_loop_gpu", env={"CUDA_CPU_WORKERS": "2"}, limits=limits)
        if "error while loading shared libraries" in result.err or result.status == 127:
            continue
        assert result.status in (0, 1) and len(result.errors) == result.status, str(result)
        statuses.add(result.status)
    assert 0 in statuses


def test_an_exception_without_memory_is_one_line(run):
    """std::bad_alloc that nothing catches"""
    for number in range(1, 40):
        result = run(DOT, "--size", 100, env=refuse(f"memory:{number}"))
        if result.errors[:1] == ["refused: operator new"]:
            break
    assert result.status == 1
    assert result.errors[1:] == ["cuda on the CPU: out of memory: an allocation of host memory failed"]


def test_memory_for_the_plan_of_an_fft_is_refused(run):
    """If memory for the shared_ptr of a plan is missing, the plan is destroyed while the planner's mutex is locked."""
    statuses = {
        run("chapter12/fft_convolution", "--size", 48, env=refuse(f"memory:{number}")).status
        for number in range(110, 170)
    }
    assert statuses == {0, 1}


@pytest.mark.parametrize("name", [DOT, "appendix_a/dot"])
def test_fewer_workers_where_threads_are_refused(run, name):
    """The launch of a kernel that may poll, as that of appendix_a/dot, usually runs on other threads than that of the host."""
    for setting in "starts:1", "starts:1+", "starts:2+":
        result = run(name, "--size", 10000, status=0, env=refuse(setting, CUDA_CPU_WORKERS="4"))
        assert result.errors == ["refused: pthread_create"]
