# SPDX-License-Identifier: MIT
"""make: what is built again and when, the choice of the back end, libraries that are missing, messages about wrong settings."""
import os
import re
import shlex

import pytest

import helpers
import programs as headers
from trees import NVCC, PROGRAMS, append, compiled, make, needs_nvcc, run, stand_in


HELLO, OTHER, _ = PROGRAMS


def test_what_is_built_again(tree):
    """A second make changes nothing. A program is built after a change of its own, of what it includes, links, or is compiled by."""
    before = {p: p.stat().st_mtime_ns for p in tree.rglob("*") if p.is_file()}
    assert not compiled(make(tree))
    assert {p: p.stat().st_mtime_ns for p in tree.rglob("*") if p.is_file()} == before
    (tree / "common/lib/random.h").touch()  # there is no such file: nothing depends on it
    (tree / f"{OTHER}.cu").touch()
    assert compiled(make(tree)) == {OTHER}
    (tree / "common/book.h").touch()
    assert compiled(make(tree, HELLO)) == {HELLO}
    (tree / "common/lib/options.c").touch()
    assert compiled(make(tree, HELLO)) == {HELLO, "common/lib/options.c"}
    (tree / f"bin/{HELLO}").unlink()
    assert compiled(make(tree, "chapter03")) == {HELLO, OTHER}


def test_flags_that_change(tree):
    assert compiled(make(tree, "CFLAGS=-DX=1", HELLO)) >= {HELLO, "common/lib/options.c"}
    reason = "BACKEND=auto", "CUDA_PATH=/nonexistent"  # the same choice for another reason
    log = make(tree, "CFLAGS=-DX=1", HELLO, *reason)
    assert "back end: cpu (no nvcc in" in log and not compiled(log)
    assert compiled(make(tree, HELLO)) >= {HELLO, "common/lib/options.c"}
    make(tree, "-n", "DEBUG=1", HELLO)
    assert not compiled(make(tree, HELLO)), "make -n has changed what make builds"
    assert compiled(make(tree, "DEBUG=1", HELLO)) >= {HELLO}
    assert (tree / "build/cpu-debug/libcommon.a").exists()


def test_sources_that_come_and_go(tree):
    """An object whose source has gone leaves the library; headers that have gone do not stop the build. A new program needs nothing but
    its header."""
    extra, program = tree / "common/lib/extra.c", tree / f"{OTHER}.cu"
    extra.write_text("int extra(void);\nint extra(void) { return 1; }\n")
    (tree / "common/extra.h").write_text("")
    text = program.read_text()
    append(program, '#include "../common/extra.h"\n')
    make(tree, OTHER)
    assert "extra.o" in run(tree, "ar", "t", "build/cpu/libcommon.a")
    extra.unlink()
    (tree / "common/extra.h").unlink()
    program.write_text(text)
    text = (tree / f"{HELLO}.cu").read_text().replace("hello_world", "hello_again")
    (tree / "chapter03/hello_again.cu").write_text(text)
    assert compiled(make(tree, "chapter03")) == {HELLO, OTHER, "chapter03/hello_again"}
    assert "extra.o" not in run(tree, "ar", "t", "build/cpu/libcommon.a")


@pytest.mark.parametrize("compiler", ["cucc/cucc", pytest.param(NVCC, marks=needs_nvcc)])
def test_the_line_of_make_n_can_be_typed(tree, compiler):
    """`make -n` prints one command for a program, also when it is up to date, and the command alone builds it."""
    settings = [] if compiler != NVCC else ["BACKEND=gpu", "SMS=90", f"NVCC={NVCC}", "BIN=bin-gpu"]
    make(tree, "common", *settings)
    lines = make(tree, "-n", "chapter03/hello_world", *settings).replace("\\\n", " ").splitlines()
    (command,) = [line for line in lines if compiler in shlex.split(line)[:1]]
    program = tree / ("bin-gpu" if settings else "bin") / "chapter03/hello_world"
    assert f"-o {program.relative_to(tree)} " in make(tree, "-nB", "chapter03/hello_world", *settings)
    program.unlink(missing_ok=True)
    program.parent.mkdir(parents=True, exist_ok=True)
    run(tree, *shlex.split(command))
    assert run(tree, str(program)).startswith("Hello, World!")


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["BACKEND=cuda"], "BACKEND=cuda: must be auto, gpu or cpu"),
        (["DEBUG=yes"], "DEBUG=yes: must be 0 or 1"),
        (["SANITIZE=addres"], "SANITIZE=addres: must be of address, undefined, leak or thread"),
        (["SANITIZE=address,thread"], "thread goes with neither address nor leak"),
        (["BACKEND=gpu", "SANITIZE=address"], "SANITIZE is for BACKEND=cpu"),
        (["SMS=90"], "SMS is for BACKEND=gpu"),
        (["BACKEND=gpu", "CUDA_PATH=/nonexistent"], "BACKEND=gpu: no nvcc in CUDA_PATH=/nonexistent"),
        (["CC=nonesuch-cc"], "no compiler nonesuch-cc: "),
        (["CHAPTER=99", "run"], "CHAPTER=99: must be one of chapter03 "),
        (["PROGRAM=chapter05/dto", "check"], "PROGRAM=chapter05/dto: there is no such program"),
        (["TOPIC=nonesuch", "bench"], "TOPIC=nonesuch: no such ladder"),
        (["old"], "make old needs the program"),
        (["julia_gpu"], "there is no target julia_gpu: did you mean chapter04/julia_gpu?"),
        (["nonesuch"], "there is no target nonesuch"),
    ],
)
def test_wrong_settings(tree, arguments, says):
    assert says in make(tree, *arguments, status=2)


LIBRARIES = [library.name.upper() for library in headers.read_libraries() if library.only != "gpu"]
# nvcc and nvidia-smi, as scripts for stand_in()
FAKE_NVCC = """case $1 in --version) echo 'Cuda compilation tools, release 12.9, V12.9.1' ;;
--list-gpu-code) echo sm_75; echo sm_90; echo sm_120 ;; *) exit 1 ;; esac"""
FAKE_SMI = """case $1 in --query-gpu=compute_cap,name*) printf '%s, NVIDIA H200\\n%s, NVIDIA H200\\n' {0} {0} ;; *) exit 1 ;; esac"""


def test_choice_of_back_end(tree, tmp_path):
    tools, known = tmp_path / "cuda/bin", [f"HAVE_{name}=0" for name in LIBRARIES]  # none is looked for
    stand_in(tools, "nvcc", FAKE_NVCC)
    for capability, argument, says in [
        ("9.0", "BACKEND=auto", "gpu (nvcc 12.9 and NVIDIA H200, sm 90)"),
        ("13.0", "BACKEND=auto", "gpu (nvcc 12.9 and NVIDIA H200, sm 75 90 120 and PTX)"),
        ("9.0", "SMS=75", "gpu (SMS asks for GPU code, sm 75)"),
        ("9.0", "SANITIZE=address", "cpu (SANITIZE is for the CPU back end)"),
        ("9.0", "BACKEND=cpu", "cpu (asked for)"),
        ("9.0", "NVCC=cucc/cucc", "cpu (NVCC=cucc/cucc is for the CPU)"),
        ("9.0", f"CUDA_PATH={tmp_path}", f"cpu (no nvcc in CUDA_PATH={tmp_path}"),
    ]:
        stand_in(tools, "nvidia-smi", FAKE_SMI.format(capability))
        env = {"CUDA_PATH": str(tmp_path / "cuda"), "PATH": f"{tools}:{os.environ['PATH']}"}
        auto = ["BACKEND=auto"] * (argument != "BACKEND=cpu")
        log = make(tree, "-n", "common", *auto, argument, *known, **env)
        assert "back end: " + says in log, log


def test_program_for_an_architecture_with_its_own_features(tree, tmp_path):
    """With `Needs: arch=90a` a program is compiled for 90a in place of 90; other architectures, PTX and programs stay."""
    source = tree / "chapter03/hello_world.cu"
    source.write_text(source.read_text().replace("\n */", "\n * Needs:   arch=90a\n */", 1))
    stand_in(tmp_path, "nvcc", FAKE_NVCC.replace("echo sm_120", "true"))  # the default adds PTX for 90
    stand_in(tmp_path, "nvidia-smi", "exit 9")
    for arguments, others, own in [
        (["SMS=75 90"], "75,sm_75 90,sm_90", "75,sm_75 90a,sm_90a"),
        (["SMS=75"], "75,sm_75", "75,sm_75"),
        (["SMS=90a"], "90a,sm_90a", "90a,sm_90a"),
        ([], "75,sm_75 90,sm_90 90,compute_90", "75,sm_75 90a,sm_90a 90,compute_90"),
    ]:
        path = f"{tmp_path}:{os.environ['PATH']}"
        log = make(tree, "-n", "BACKEND=gpu", f"NVCC={tmp_path}/nvcc", *arguments, PATH=path)
        log = log.replace("\\\n", " ")
        for name, codes in ("simple_kernel", others), ("hello_world", own):
            (command,) = re.findall(rf".* -o bin/chapter03/{name} .*", log)
            found = re.findall(r"arch=compute_(\w+),code=(\w+)", command)
            assert " ".join(map(",".join, found)) == codes, command


# ---- libraries ----


def test_without_libraries(tree, tmp_path):
    """The build lists what is switched off, and everything else works."""
    log = make(tree, *(f"HAVE_{name}=0" for name in LIBRARIES))
    assert set(PROGRAMS) <= compiled(log)
    assert re.findall(r"^off: .*: switched off by HAVE_(\w+)=0$", log, re.M) == LIBRARIES
    julia = [str(tree / "bin/chapter04/julia_gpu"), "--size", "8"]
    env = {"DISPLAY": "", "PATH": "/nonexistent"}
    for ending, library in ("png", "libpng"), ("webp", "libwebp"), ("gif", "ffmpeg"):
        log = run(tmp_path, *julia, "--output", "x." + ending, status=64, **env)
        assert library in log and len(log.splitlines()) == 1
    assert "built without freeglut" in run(tmp_path, *julia, "--window", status=64, **env)
    assert "no window: built without freeglut" in run(tmp_path, *julia, **{**env, "DISPLAY": ":0"})
    assert "wrote julia_gpu.ppm (8x8)\n" in run(tmp_path, *julia, **env)


def test_a_program_that_lacks_its_library(tree):
    source = tree / "chapter03/hello_world.cu"
    source.write_text(source.read_text().replace("\n */", "\n * Needs:   libs=nonesuch, gl\n */", 1))
    (tree / "bin/chapter03/hello_world").unlink()
    log = make(tree, "HAVE_GL=0")
    assert "chapter03/hello_world" not in compiled(log)
    assert log.splitlines()[-1] == "off: chapter03/hello_world: needs nonesuch gl"
    other = tree / "chapter03/simple_kernel.cu"  # lacks what nobody can install for this back end
    other.write_text(other.read_text().replace("\n */", "\n * Needs:   libs=nonesuch\n */", 1))
    needs = {"hello_world": "nonesuch gl", "simple_kernel": "nonesuch"}
    lines = [f"off: chapter03/{name}: needs {libraries}\n" for name, libraries in needs.items()]
    assert [line in make(tree, "HAVE_GL=0") for line in lines] == [True, False]
    assert [line in make(tree, "chapter03", "HAVE_GL=0") for line in lines] == [True, True]
    log = make(tree, "chapter03/hello_world", "HAVE_GL=0", status=2)
    assert "chapter03/hello_world needs nonesuch, which this back end lacks" in log
    assert "chapter03/hello_world needs gl, CUDA with OpenGL (OpenGL, EGL): switched off by HAVE_GL=0" in log
    assert re.search(r"chapter03/hello_world +not built +needs nonesuch", make(tree, "run", "CHAPTER=3"))


# What mpicc of Open MPI and of MPICH shows; the flags for the compiler, and those for the linker
MPICC = """-I/i/openmpi -pthread -L/m/lib -Wl,-rpath -Wl,/m/lib -lmpi
-I/i/openmpi
-L/m/lib -Xlinker -rpath -Xlinker /m/lib -lmpi

-Wl,-z,relro -O2 -DM=1 -I/m/include -L/m/lib -Wl,-rpath,/m/lib -lmpich
-DM=1 -I/m/include
-Xlinker -z -Xlinker relro -L/m/lib -Xlinker -rpath -Xlinker /m/lib -lmpich"""


@pytest.mark.parametrize("library", MPICC.split("\n\n"), ids=["Open MPI", "MPICH"])
def test_flags_of_mpi(tree, tmp_path, library):
    """Those of `mpicc -show`, in forms that nvcc takes too."""
    shown, flags, libs = library.split("\n")
    stand_in(tmp_path, "mpicc", f'[ "$*" = -show ] && echo "gcc {shown}"')
    without = {f"HAVE_{name}": "0" for name in LIBRARIES} | {"HAVE_MPI": "1"}
    run(tree, "scripts/configure.sh", "x/config.mk", BACKEND="cpu", MPICC=f"{tmp_path}/mpicc", **without)
    lines = (tree / "x/config.mk").read_text().splitlines()
    assert f"FLAGS_mpi := {flags}" in lines and f"LIBS_mpi := {libs}" in lines


@pytest.mark.skipif(not helpers.has("PNG"), reason="needs libpng")
def test_a_library_that_comes_later_is_found(tree, tmp_path):
    """Missing libraries are looked for again by each make, so `make setup run` finds those that setup has just installed."""
    lacks = 'for a; do case $a in */probe.c) grep -q png.h "$a" && [ ! -e "$LATER" ] && exit 1 ;; esac; done'
    stand_in(tmp_path, "gcc", lacks + '\nexec cc "$@"')
    env = {"CC": f"{tmp_path}/gcc", "LATER": f"{tmp_path}/later"}
    goal = "-n", "chapter03", *(f"HAVE_{name}=0" for name in LIBRARIES if name != "PNG")
    assert "off: PNG pictures (libpng): " in make(tree, *goal, **env)
    (tmp_path / "later").touch()
    assert "libpng" not in make(tree, *goal, **env)
