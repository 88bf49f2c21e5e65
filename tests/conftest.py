# SPDX-License-Identifier: MIT
"""Defines the fixtures. Programs are built when the first test runs them; `make test` builds all of them before."""
import fcntl
import json
import os
import pathlib
import shutil

import pytest

import helpers
import trees
from fixtures import choose_seed, once, rng  # noqa: F401: those of cucc/tests


def pytest_configure(config):
    config.addinivalue_line("markers", "backend(name): runs on that back end only, cpu or gpu")
    config.addinivalue_line("markers", "xdist_group(name): with pytest-xdist these run one after the other")
    choose_seed()
    if hasattr(config, "workerinput") or config.option.help or config.option.version:
        return
    if "EVERYTHING_IS_BUILT" not in os.environ:
        try:
            helpers.make("common")
        except AssertionError as failed:
            pytest.exit(f"the build failed:\n{failed}", returncode=1)


def pytest_report_header():
    return f"back end: {helpers.config()['VARIANT']}, TEST_SEED={os.environ['TEST_SEED']}"


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(pytest_report_header())


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config, items):
    """Deselects the tests of the other back end, which would not be skips worth reporting."""

    def fits(item):
        return all(mark.args[0] == helpers.backend() for mark in item.iter_markers("backend"))

    for item in items:
        if opengl_on_a_gpu(item):
            item.add_marker(pytest.mark.xdist_group("OpenGL"))
    other = [item for item in items if not fits(item)]
    if other:
        config.hook.pytest_deselected(items=other)
        items[:] = [item for item in items if fits(item)]


def opengl_on_a_gpu(item):
    return helpers.backend() == "gpu" and "chapter08" in item.nodeid


@pytest.fixture(autouse=True)
def others_wait_for_opengl(request):
    """On a GPU a test of OpenGL runs while no other test does: beside 14 others on an H200 the driver drew nothing, and reported no
    error. The first lock keeps others from beginning while a test of OpenGL waits for those that run."""
    if helpers.backend() == "cpu":
        yield
        return
    with open(helpers.BUILD / "turn.lock", "w") as turn, open(helpers.BUILD / "running.lock", "w") as running:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if opengl_on_a_gpu(request.node):
            fcntl.flock(running, fcntl.LOCK_EX)
        else:
            fcntl.flock(running, fcntl.LOCK_SH)
            fcntl.flock(turn, fcntl.LOCK_UN)
        yield


# A picture, a ladder, and a program of the host alone
THREE = ["chapter04/julia_gpu", "chapter05/dot_ladder", "chapter09/hist_cpu"]
# On the CPU back end their default runs take more than a second of CPU time (measured on two cores); tests/release makes them.
SLOW = """chapter04/julia_ladder chapter05/matmul_gmem chapter05/matmul_ladder chapter05/matmul_shared chapter05/ripple
    chapter06/event_timing chapter06/ray_animated chapter06/ray_mirrors chapter07/heat chapter07/heat_2d chapter07/heat_gmem
    chapter07/heat_ladder chapter07/texture_3d chapter08/heat chapter08/ripple chapter08/vertex_interop
    chapter09/hist_gpu_gmem_atomics chapter09/hist_gpu_shmem_atomics chapter09/hist_ladder chapter10/copy_timed chapter11/dot_mpi
    chapter11/heat_mpi chapter11/multidevice chapter11/one_thread chapter11/portable chapter11/time_zero2 chapter12/cublas_dot
    chapter12/cublas_matmul
    chapter12/radix_sort chapter12/scan chapter12/thrust_sort chapter12/transpose appendix_a/dot appendix_a/hashtable_gpu
    chapter13/async_alloc chapter13/graph_heat chapter13/managed_hist appendix_a/hashtable_ladder appendix_a/hashtable_pipeline
    chapter08/texture_interop chapter10/basic_double_stream_correct chapter10/basic_single_stream chapter10/copy_ladder
    chapter13/wmma_matmul appendix_a/hashtable_cpu""".split()


def pytest_generate_tests(metafunc):
    """Parametrizes tests by the names of their arguments: `unit` by the unit tests, those of `kinds` by programs. On the CPU back end
    `quick_program` are those that are not SLOW, in tests/release the others; the samples are all in tests/release, and fewer elsewhere.
    """
    release = pathlib.Path(metafunc.module.__file__).parent.name == "release"
    kinds = {
        "program": lambda p: True,
        "device_program": lambda p: not p.host_only,
        "picture_program": lambda p: p.picture,
        "sound_device_program": lambda p: not p.expect and not p.host_only,
        "ladder": lambda p: p.bench,
        "quick_program": lambda p: helpers.backend() == "gpu" or (p.name in SLOW) == release,
        "sample": lambda p: release or p.name in THREE,
        "sound_sample": lambda p: not p.expect if release else p.name in THREE,
    }
    for kind, wanted in kinds.items():
        if kind in metafunc.fixturenames:
            runs = {"run", "tmp_path"} & set(metafunc.fixturenames)
            chosen = [p for p in helpers.programs() if p.built and wanted(p)]
            metafunc.parametrize(kind, [*map(with_devices, chosen)] if runs else chosen, ids=str)
    if "unit" in metafunc.fixturenames:
        names = sorted(p.stem for p in (helpers.ROOT / "tests/common").glob("*.c*"))
        metafunc.parametrize("unit", [f"tests/common/{name}" for name in names])


def with_devices(program):
    """Skips a program that needs a device which this machine lacks; test_chapter11, test_chapter12_tools and test_vulkan check the
    messages."""
    lacks = helpers.lacks(program)
    return pytest.param(program, marks=pytest.mark.skip(reason=lacks)) if lacks else program


@pytest.fixture
def run(tmp_path):
    """run("chapter04/julia_gpu", "--size", 64, status=0, env={…}, timeout=…, limits={…}, cwd=…) -> Result.

    Runs the program in a temporary folder. If `status` is given, the exit status must equal it. A message of a sanitizer
    fails the test, unless sanitizers=False."""

    def run(program, *args, status=None, sanitizers=True, cwd=None, **more):
        result = helpers.execute(program, args, cwd or tmp_path, **more)
        if sanitizers:
            assert not helpers.SANITIZER.search(result.err), str(result)
        if status is not None:
            assert result.status == status, f"expected status {status}\n{result}"
        return result

    return run


@pytest.fixture
def rungs(run):
    """rungs("chapter07/heat_ladder", "--size", 130, …) -> the rows of a ladder's rungs, without its limits and
    libraries, as dictionaries. Each is verified, or has a reason in "skipped"."""

    def rungs(program, *args, **more):
        rows = json.loads(run(program, *args, "--runs", 1, "--json", status=0, **more).out)["rows"]
        rows = [row for row in rows if row["kind"] == "rung"]
        assert rows and all(row["verified"] is True or row["skipped"] for row in rows), rows
        return rows

    return rungs


@pytest.fixture(scope="session")
def built(once):
    """Three programs, built once from clean with four jobs. Nothing may be written here, since other processes use it too."""

    def build(folder):
        tree = trees.copy_sources(folder / "tree", trees.PROGRAMS)
        (tree / "first.log").write_text(trees.make(tree, "-j4"))
        return tree

    return once("built", build)


@pytest.fixture
def tree(built, tmp_path):
    """A copy of the built tree to spoil. The copy keeps its times, so nothing is due."""
    return pathlib.Path(shutil.copytree(built, tmp_path / "tree", symlinks=True))


@pytest.fixture
def sources(tmp_path):
    """The sources with three programs, and without recorded results, whose plots take long to draw."""
    tree = trees.copy_sources(tmp_path / "sources", trees.PROGRAMS)
    for record in tree.glob("bench/results/*.json"):
        record.unlink()
    return tree
