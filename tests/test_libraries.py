# SPDX-License-Identifier: MIT
"""scripts/libs.sh: which libraries are found, and what is switched off without one."""
import os
import re
import shutil
import subprocess

import pytest

from trees import PROGRAMS, ROOT, UNOPTIMISED, compiled, environment, linked, make, run, stand_in


LIBS = (ROOT / "scripts/libs.sh").read_text()
# The libraries that the CPU back end can use, and what the build calls them
LIBRARIES = dict(
    re.findall(
        r"^([A-Z_]+)\|(?:common|programs|cpu|cpu programs)\|([^|]*)\|",
        LIBS,
        re.M,
    )
)


def test_without_libraries(tree, tmp_path):
    """A build without the libraries: it lists what is switched off, and everything else works."""
    without = [*(f"HAVE_{name}=0" for name in LIBRARIES), *UNOPTIMISED]
    log = make(tree, *without)
    assert set(PROGRAMS) <= compiled(log) and linked(log) == set(PROGRAMS)
    assert len(LIBRARIES) > 12 and re.findall("^off: .*", log, re.M) == [
        f"off: {what}: switched off by HAVE_{name}=0" for name, what in LIBRARIES.items()
    ]
    log = make(tree, *without)
    assert not compiled(log) and not linked(log)
    julia = [str(tree / "bin/chapter04/julia_gpu"), "--size", "8"]
    folder, env = tmp_path / "pictures", {"DISPLAY": "", "PATH": "/nonexistent"}
    folder.mkdir()
    for ending, library in ("png", "libpng"), ("webp", "libwebp"), ("gif", "ffmpeg"):
        log = run(folder, *julia, "--output", "x." + ending, status=64, **env)
        assert library in log and len(log.splitlines()) == 1
    assert "built without freeglut" in run(folder, *julia, "--window", status=64, **env)
    assert "no window: built without freeglut (Debian: freeglut3-dev); writing a file" in run(
        folder, *julia, **{**env, "DISPLAY": ":0"}
    )
    log = run(folder, *julia, "--animate", "--frames", "2", **env)
    assert (
        "wrote julia_gpu.ppm (8x8, the last of 2 frames)\nfor all frames in one file, install ffmpeg, or build with libwebp"
        in log
    )
    assert os.listdir(folder) == ["julia_gpu.ppm"]
    if shutil.which("ffmpeg"):
        assert "wrote julia_gpu.gif (8x8, 2 frames)\n" in run(
            folder, *julia, "--animate", "--frames", "2", DISPLAY=""
        )
    assert set(PROGRAMS) <= compiled(make(tree, "-n"))


def test_each_library_hidden_in_turn(tmp_path):
    """Exactly the programs whose headers name it are left out, and the unit test of its stand-in."""

    def lists(name, config, **env):
        config.parent.mkdir()
        if name:
            shutil.copy(tmp_path / "all/config.mk", config)
        run(ROOT, "scripts/libs.sh", "probe", "cpu", str(config), **env)
        report = run(ROOT, "scripts/libs.sh", "report", "cpu", str(config), **env)
        return [
            set(re.findall(pattern, text, re.M))
            for pattern, text in (
                (r"^SKIPPED \+= (\S+)", config.read_text()),
                (r"^MISSING_TESTS \+= (\S+)", config.read_text()),
                (r"^off: .* switched off by HAVE_(\w+)=0$", report),
            )
        ]

    needs = {
        program: names.split(",")
        for program, names in re.findall(r"^(.*):(.+)$", run(ROOT, "scripts/programs.sh", "--needs"), re.M)
    }
    found = {f"HAVE_{name}": "1" for name in LIBRARIES}
    skipped, missing, off = lists(None, tmp_path / "all/config.mk", **found)
    assert skipped == {program for program in needs if "npp" in needs[program]} and not missing and not off
    for name in LIBRARIES:
        own = {program for program in needs if name.lower() in needs[program]}
        test = {f"tests/cpu/{name.lower()}"}
        now = lists(name, tmp_path / name / "config.mk", **{**found, f"HAVE_{name}": "0"})
        assert now[0] == skipped | own and now[2] == {name}, (name, now)
        assert now[1] == (test if re.search(rf"^{name}\|cpu programs", LIBS, re.M) else set()), (name, now)


def test_programs_without_their_library(tmp_path):
    """They are not built, and neither are the unit tests of its stand-in."""
    config = tmp_path / "build/config.mk"
    run(ROOT, "scripts/libs.sh", "probe", "cpu", str(config), HAVE_CUFFT="0", HAVE_CURAND="1", HAVE_MPI="0")
    lines = config.read_text().splitlines()
    assert "SKIPPED += chapter12/fft_2d # needs cufft" in lines
    assert "LACKS_chapter12/fft_2d := cufft: switched off by HAVE_CUFFT=0" in lines
    assert "MISSING_TESTS += tests/cpu/cufft" in lines
    assert "SKIPPED += chapter11/dot_mpi # needs mpi" in lines
    assert "LACKS_chapter11/dot_mpi := mpi: switched off by HAVE_MPI=0" in lines
    assert "LACKS_chapter12/npp_blur := npp, which no library of this back end provides" in lines
    assert not [line for line in lines if "SKIPPED += chapter12/random_pi" in line]


@pytest.mark.parametrize(
    "shown, flags, libs",
    [
        (
            "gcc -I/usr/include/openmpi-x86_64 -pthread -L/m/lib -Wl,-rpath -Wl,/m/lib -Wl,--enable-new-dtags -lmpi",
            "-I/usr/include/openmpi-x86_64",
            "-L/m/lib -Xlinker -rpath -Xlinker /m/lib -lmpi",
        ),
        (
            "gcc -Wl,-z,relro -O2 -DM=1 -I/m/include -L/m/lib -Wl,-rpath,/m/lib -lmpich",
            "-DM=1 -I/m/include",
            "-L/m/lib -Xlinker -rpath -Xlinker /m/lib -lmpich",
        ),
    ],
    ids=["Open MPI", "MPICH"],
)
def test_flags_of_mpi(tmp_path, shown, flags, libs):
    """Those of `mpicc -show`, in forms that nvcc takes too."""
    stand_in(tmp_path, "mpicc", f'[ "$*" = -show ] && echo "{shown}"')
    config = tmp_path / "build/config.mk"
    run(ROOT, "scripts/libs.sh", "probe", "cpu", str(config), HAVE_MPI="1", MPICC=str(tmp_path / "mpicc"))
    lines = [" ".join(line.split()) for line in config.read_text().splitlines()]
    assert f"MPI_FLAGS := {flags}" in lines and f"MPI_LIBS := {libs}" in lines


def test_without_mpicc_there_is_no_mpi(tmp_path):
    config = tmp_path / "build/config.mk"
    run(ROOT, "scripts/libs.sh", "probe", "cpu", str(config), MPICC="/nonexistent/mpicc")
    assert "SKIPPED += chapter11/dot_mpi # needs mpi" in config.read_text()
    log = run(ROOT, "scripts/libs.sh", "report", "cpu", str(config), MPICC="/nonexistent/mpicc")
    assert re.search("^off: MPI .*libopenmpi-dev$", log, re.M) or not shutil.which("apt-get"), log


def test_a_thrust_that_does_not_compile_is_missing(tmp_path):
    """thrust/version.h alone says nothing."""
    (tmp_path / "thrust").mkdir()
    (tmp_path / "thrust/version.h").write_text("#define THRUST_VERSION 200302\n")
    (tmp_path / "thrust/tuple.h").write_text("#error refused\n")
    config = tmp_path / "build/config.mk"
    run(ROOT, "scripts/libs.sh", "probe", "cpu", str(config), CPATH=str(tmp_path))
    assert "SKIPPED += chapter12/thrust_sort # needs thrust" in config.read_text()


def test_a_library_that_comes_later_is_found(built, tmp_path):
    """A missing library is looked up again, so `make setup run` finds libraries that setup has just installed."""
    stand_in(
        tmp_path,
        "gcc",
        """for a; do case $a in */probe.c) grep -q png.h "$a" && [ ! -e "$LATER" ] && exit 1 ;; esac; done
exec cc "$@" """,
    )
    config = tmp_path / "build/config.mk"
    env = {"CC": str(tmp_path / "gcc"), "LATER": str(tmp_path / "later")}
    if "HAVE_PNG ?= 1" not in (built / "build/cpu/config.mk").read_text():
        pytest.skip("libpng is not here")
    run(built, "scripts/libs.sh", "probe", "cpu", str(config), **env)
    assert "off: PNG pictures (libpng): apt install libpng-dev" in run(
        built, "scripts/libs.sh", "report", "cpu", str(config), **env
    )
    (tmp_path / "later").touch()
    run(built, "scripts/libs.sh", "probe", "cpu", str(config), **env)
    assert "PNG" not in run(built, "scripts/libs.sh", "report", "cpu", str(config), **env)


def test_a_program_that_needs_what_is_not_here_is_left_out(tree):
    source = tree / "chapter03/hello_world.cu"
    source.write_text(source.read_text().replace("\n */", "\n * Needs:   libs=nonesuch\n */", 1))
    (tree / "bin/chapter03/hello_world").unlink()
    log = make(tree)
    assert not linked(log)
    assert log.splitlines()[-1] == "off: chapter03/hello_world: needs nonesuch"
    assert re.search(r"chapter03/hello_world +not built +needs nonesuch", make(tree, "run", "CHAPTER=3"))
    assert "make: chapter03/hello_world needs nonesuch, which no library" in make(
        tree, "chapter03/hello_world", status=2
    )


@pytest.mark.parametrize(
    "needs, says",
    [
        ("gl", "needs gl: switched off by HAVE_GL=0\n"),
        (
            "libs=webp, gl",
            "needs webp, animations as WebP (libwebp): apt install libwebp-dev; gl: switched off by HAVE_GL=0\n",
        ),
    ],
)
def test_a_program_that_is_asked_for_but_can_not_be_built(tree, needs, says):
    """The message names the library that the program needs, and its package."""
    stand_in(
        tree,
        "cc",
        """for a; do case $a in */probe.c) grep -q webp "$a" && exit 1 ;; esac; done; exec gcc "$@" """,
    )
    source = tree / "chapter03/hello_world.cu"
    source.write_text(source.read_text().replace("\n */", f"\n * Needs:   {needs}\n */", 1))
    log = make(tree, "chapter03/hello_world", "HAVE_GL=0", f"CC={tree}/cc", status=2)
    assert "make: chapter03/hello_world " + says in log


def test_two_probes_at_once(tmp_path):
    """Without flock two makes may look for the libraries at the same time."""
    config = tmp_path / "build/config.mk"
    begin = lambda: subprocess.Popen(
        ["scripts/libs.sh", "probe", "cpu", config],
        cwd=ROOT,
        env=environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    probes = [begin() for _ in range(8)]
    logs = [process.communicate(timeout=600)[0] for process in probes]
    assert [process.returncode for process in probes] == [0] * 8 and not any(logs), logs
    assert os.listdir(config.parent) == ["config.mk"] and "HAVE_FLAGS :=" in config.read_text()
