# SPDX-License-Identifier: MIT
"""What programs do when memory or threads are exhausted, on the CPU back end; tests/release/attacks/refuse.c refuses them."""
import os
import re
import resource
import shutil
import subprocess
import threading

import pytest

import helpers

pytestmark = [
    pytest.mark.backend("cpu"),
    pytest.mark.skipif(helpers.sanitized(), reason="the sanitizers have an allocator of their own"),
]
DOT = "chapter05/dot"
PICTURE = "tests/common/picture"


def refuse(what, **more):
    """The environment in which attacks/refuse.c, which is compiled if it has changed, refuses a request such as memory:7."""
    source, made = helpers.ROOT / "tests/release/attacks/refuse.c", helpers.BUILD / "attacks/refuse.so"
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        made.parent.mkdir(parents=True, exist_ok=True)
        new = made.with_name(f"refuse.{threading.get_native_id()}.so")
        command = [*os.environ.get("CC", "cc").split(), "-std=gnu11", "-O1", "-shared", "-fPIC", source]
        subprocess.run([*command, "-o", new, "-ldl"], check=True)
        new.replace(made)
    return {"LD_PRELOAD": str(made.resolve()), "REFUSE": what, **more}


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
    command = "chapter12/fft_convolution", "--size", 48
    results = [run(*command, env=refuse(f"memory:{number}")) for number in range(110, 170)]
    assert {result.status for result in results} == {0, 1}


# One request fails, or all later ones too. libwebp writes a damaged picture when it has no memory once.
@pytest.mark.parametrize(
    "ending, later",
    [("ppm", ""), ("ppm", "+"), *[("png", "+")] * helpers.has("PNG"), *[("webp", "+")] * helpers.has("WEBP")],
)
def test_a_picture_without_memory(run, tmp_path, ending, later):
    """Of the options, for the name of a numbered picture, or for the picture: it is written whole or not at all."""
    command = PICTURE, "--output", f"o%d.{ending}"
    run(*command, status=0)
    [path] = tmp_path.iterdir()
    whole, statuses = path.read_bytes(), []
    while True:
        path.unlink(missing_ok=True)
        result = run(*command, env=refuse(f"memory:{len(statuses) + 1}{later}"))
        written = [file.read_bytes() for file in tmp_path.iterdir()]
        if not result.err:
            break
        statuses.append(result.status)
        assert len(result.errors) == 1 + result.status, str(result)
        assert written == [whole] if result.status == 0 else not written and "memory" in result.errors[1]
    assert statuses.count(1) > 3 and {*statuses} <= {0, 1} and written == [whole]


@pytest.mark.skipif(not shutil.which("ffmpeg"), reason="needs ffmpeg, found none")
def test_ffmpeg_cannot_be_started(run, tmp_path):
    """A pipe or a process is refused when the program looks for ffmpeg, or for the animation."""
    refused = 0
    while True:
        options = "--animate", "--frames", 2, "--output", "x.mp4"
        result = run(PICTURE, *options, env=refuse(f"starts:{refused + 1}"))
        if not result.err:
            break
        refused += 1
        says = r"refused: \w+\npicture: cannot (write x\.mp4|start ffmpeg): .*\n"
        assert result.status == 1 and re.fullmatch(says, result.err), str(result)
        assert os.listdir(tmp_path) == []
    assert refused >= 3 and os.listdir(tmp_path) == ["x.mp4"]


@pytest.mark.parametrize("name", [DOT, "appendix_a/dot"])
def test_fewer_workers_where_threads_are_refused(run, name):
    """The launch of a kernel that may poll, as that of appendix_a/dot, usually runs on other threads than that of the host."""
    for setting in "starts:1", "starts:1+", "starts:2+":
        result = run(name, "--size", 10000, status=0, env=refuse(setting, CUDA_CPU_WORKERS="4"))
        assert result.errors == ["refused: pthread_create"]
