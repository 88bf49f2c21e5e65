# SPDX-License-Identifier: MIT
"""The build and its scripts, each tried in a copy of the tree: what is rebuilt when, bad settings, a machine
that lacks things (stand-ins for nvcc, nvidia-smi and apt on PATH), the header reader and the README."""
import fcntl
import hashlib
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ["chapter03/hello_world", "chapter03/simple_kernel", "chapter04/julia_gpu"]
NVCC = next((n for n in (os.environ.get("NVCC"), shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc")
             if n and os.access(n, os.X_OK)), None)
needs_nvcc = pytest.mark.skipif(not NVCC, reason="needs nvcc, found none")


def environment(**more):
    """Ours, without what `make test` set for this run."""
    ours = {k: v for k, v in os.environ.items()
            if k not in ("BACKEND", "BIN", "BUILD", "SANITIZE", "DEBUG", "SMS", "NVCC", "CUDA_PATH")
            and not k.startswith(("MAKE", "MFLAGS", "HAVE_", "PYTEST"))}
    return {**ours, **more}


def run(tree, *command, status=0, **env):
    """Runs a command in tree; returns what it wrote to stdout and stderr together."""
    done = subprocess.run(command, cwd=tree, env=environment(**env), text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)
    assert done.returncode == status, done.stdout
    return done.stdout


def make(tree, *arguments, status=0, **env):
    """make on the CPU back end, unless the arguments name another."""
    if not any(a.startswith("BACKEND=") for a in arguments):
        arguments = ("BACKEND=cpu", *arguments)
    return run(tree, "make", *arguments, status=status, **env)


def compiled(output):
    """What was compiled, from lines as "[ 2/14] CXX   chapter04/julia_gpu", or what would be from those of make -n."""
    return set(re.findall(r"^\[ *\d+/\d+\] (?:CC|CXX|NVCC|AS) +(\S+)$", output, re.M))


def linked(output):
    return set(re.findall(r"^\[ *\d+/\d+\] LINK +bin/(\S+)$", output, re.M))


def copy_sources(tree, programs=None):
    """The tree's sources without what was built; of the programs only those named."""
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", "build", "bin", "tests", "__pycache__"))
    for source in [*tree.glob("chapter*/*.cu"), *tree.glob("appendix_a/*.cu")]:
        if programs is not None and str(source.relative_to(tree))[:-3] not in programs:
            source.unlink()
    return tree


def append(path, text):
    path.write_text(path.read_text() + text)


@pytest.fixture(scope="session")
def built(once):
    """Three programs, built once from clean with four jobs. Nothing may be written here, since other processes use it too."""
    def build(folder):
        tree = copy_sources(folder / "tree", PROGRAMS)
        (tree / "first.log").write_text(make(tree, "-j4"))
        return tree
    return once("built", build)


@pytest.fixture
def tree(built, tmp_path):
    """A copy of the built tree to spoil. The copy keeps its times, so nothing is due."""
    return pathlib.Path(shutil.copytree(built, tmp_path / "tree", symlinks=True))


@pytest.fixture
def sources(tmp_path):
    return copy_sources(tmp_path / "sources", PROGRAMS)


# ---- what is rebuilt when ----

def test_fresh_build(built):
    log = (built / "first.log").read_text()
    assert linked(log) == set(PROGRAMS)
    assert log.count("back end:") == 1
    assert "warning" not in log.lower()
    for program in PROGRAMS:
        assert os.access(built / "bin" / program, os.X_OK)


def test_each_step_has_a_number(tree):
    """Of as many as there are, in the order in which they begin, whatever is due and with any number of jobs."""
    (tree / "chapter03/simple_kernel.cu").touch()
    logs = [(tree / "first.log").read_text(), make(tree, "-j2"), make(tree)]
    counts = []
    for log in logs:
        steps = re.findall(r"^\[( *\d+)/(\d+)\] \w+ +\S+$", log, re.M)
        assert [(int(n), int(m)) for n, m in steps] == [(i, len(steps)) for i in range(1, len(steps) + 1)], log
        assert len({len(n) for n, _ in steps}) <= 1
        counts.append(len(steps))
    assert counts[0] == len(list((tree / "build/cpu").rglob("*.o"))) + len(PROGRAMS) + 3  # the translator and two libraries
    assert counts[1:] == [2, 0]


def test_a_name_that_several_programs_have(tree):
    (tree / "chapter03/julia_gpu.cu").write_text("")
    assert "did you mean chapter03/julia_gpu or chapter04/julia_gpu?" in make(tree, "julia_gpu", status=2)


def test_second_make_does_nothing(tree):
    before = {p: p.stat().st_mtime_ns for p in tree.rglob("*") if p.is_file()}
    log = make(tree)
    assert not compiled(log) and not linked(log)
    assert "Nothing to be done" in log
    assert {p: p.stat().st_mtime_ns for p in tree.rglob("*") if p.is_file()} == before


def test_touching_book_h_rebuilds_what_includes_it(tree):
    (tree / "common/book.h").touch()
    log = make(tree)
    assert set(PROGRAMS) <= compiled(log)
    assert linked(log) == set(PROGRAMS)


def test_touching_a_header_of_the_runtime_rebuilds_the_programs(tree):
    (tree / "cpu/include/cuda_runtime.h").touch()
    assert set(PROGRAMS) <= compiled(make(tree))


def test_touching_one_program_rebuilds_only_that(tree):
    (tree / "chapter03/simple_kernel.cu").touch()
    log = make(tree)
    assert compiled(log) == {"chapter03/simple_kernel"}
    assert linked(log) == {"chapter03/simple_kernel"}


def test_touching_a_common_source_links_the_programs_again(tree):
    (tree / "common/lib/options.c").touch()
    log = make(tree)
    assert compiled(log) == {"common/lib/options.c"}
    assert linked(log) == set(PROGRAMS)


def test_a_common_source_that_went_is_out_of_the_library(tree):
    (tree / "common/lib/extra.c").write_text("int extra_function(void);\nint extra_function(void) { return 1; }\n")
    make(tree)
    assert "extra.o" in run(tree, "ar", "t", "build/cpu/libcommon.a")
    (tree / "common/lib/extra.c").unlink()
    make(tree)
    assert "extra.o" not in run(tree, "ar", "t", "build/cpu/libcommon.a")


@pytest.mark.parametrize("gone, come", [("common/lib/extra.c", None), ("common/lib/extra.c", "common/lib/more.c"),
                                        ("tests/common/extra.c", "tests/common/extra.cu"),
                                        ("tests/common/extra.cu", "tests/common/extra.c"),
                                        ("chapter03/extra.cu", None), ("cpu/src/extra.cpp", "cpu/src/extra.c")])
def test_a_source_that_went_or_has_another_ending(tree, gone, come):
    """What was built of it does not stop the build, and is not taken for the new source's, whose time may be older."""
    (tree / "tests/common").mkdir(parents=True, exist_ok=True)
    name = "main" if gone.startswith(("tests", "chapter")) else "extra"
    (tree / gone).write_text(f"int {name}(void);\nint {name}(void) {{ return 1; }}\n")
    make(tree, "all", "tests")
    (tree / gone).unlink()
    if come:
        (tree / come).write_text(f"int {name}(void);\nint {name}(void) {{ return 2; }}\n")
        os.utime(tree / come, (1, 1))
    log = make(tree, "all", "tests")
    assert compiled(log) == ({come.removesuffix(".cu")} if come else set()), log
    assert not compiled(make(tree, "all", "tests"))
    if come and "tests" in come:
        run(tree, "bin/tests/common/extra", status=2)


def test_dependencies_cut_short_are_made_again(tree):
    """As when the disk was full. The translator's are among them, and every program is translated again."""
    for path in "cu2cpp.d", "chapter03/hello_world.d", "common/image.d":
        assert (tree / "build/cpu" / path).read_text()
        (tree / "build/cpu" / path).write_text("")
    assert compiled(make(tree)) == {*PROGRAMS, "cpu/cu2cpp.c", "common/lib/image.c"}
    assert not compiled(make(tree))
    (tree / "common/book.h").touch()
    assert set(PROGRAMS) <= compiled(make(tree))


def test_jobs_make_no_difference(tree):
    """With one job, in the folder where four jobs built, since a path may be part of a program. The libraries are put together
    again and the programs translated, compiled and linked."""
    def build(jobs):
        shutil.rmtree(tree / "bin")
        for path in [*(tree / "build/cpu").glob("*.a"), *(tree / "build/cpu").glob("chapter*/*.*")]:
            path.unlink()
        log = make(tree, jobs)
        assert linked(log) == set(PROGRAMS) == compiled(log)
        return {p: hashlib.sha256((tree / "bin" / p).read_bytes()).hexdigest() for p in PROGRAMS}
    assert build("-j4") == build("-j1")


@pytest.mark.skipif(not shutil.which("flock"), reason="needs flock")
def test_two_makes_at_once(tree):
    """They wait for each other, say so, and only one builds. The test holds the lock until both have met it."""
    (tree / "chapter03/hello_world.cu").touch()
    with open(tree / "build/.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        makes = [subprocess.Popen(["make", "BACKEND=cpu", "-j2"], cwd=tree, env=environment(), text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(2)]
        for process in makes:
            assert process.stdout.readline().startswith("back end: ")
            assert process.stdout.readline() == "another make builds here: waiting until it is done\n"
    logs = [process.communicate(timeout=600)[0] for process in makes]
    assert [process.returncode for process in makes] == [0, 0], "\n".join(logs)
    assert sorted(len(linked(log)) for log in logs) == [0, 1]
    assert not linked(make(tree))


def test_two_probes_at_once(tmp_path):
    """Without flock two makes may look for the libraries at the same time."""
    config = tmp_path / "build/config.mk"
    begin = lambda: subprocess.Popen(["scripts/libs.sh", "probe", "cpu", config], cwd=ROOT, env=environment(), text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    probes = [begin() for _ in range(8)]
    logs = [process.communicate(timeout=600)[0] for process in probes]
    assert [process.returncode for process in probes] == [0] * 8 and not any(logs), logs
    assert os.listdir(config.parent) == ["config.mk"] and "HAVE_FLAGS :=" in config.read_text()


def test_the_translator_is_built_for_this_machine(tree, tmp_path):
    """With CC for another machine, as a stand-in, whose translator could not run here."""
    log = tmp_path / "calls"
    stand_in(tmp_path, "cross", 'for a; do [ "$a" != cpu/cu2cpp.c ] || exit 9; done; exec cc "$@"')
    stand_in(tmp_path, "host", 'echo "$*" >>%s; exec cc "$@"' % log)
    arguments = ["CC=%s" % (tmp_path / "cross"), "HOSTCC=%s" % (tmp_path / "host")]
    assert set(PROGRAMS) <= compiled(make(tree, *arguments))
    calls = log.read_text().splitlines()
    assert len(calls) == 1 and calls[0].endswith("cpu/cu2cpp.c")
    assert not compiled(make(tree, *arguments))
    assert "no C compiler for this machine (HOSTCC): nonesuch-cc: " in make(tree, "HOSTCC=nonesuch-cc", status=2)


@pytest.mark.skipif(not shutil.which("clang++"), reason="needs clang++, found none")
def test_clang_builds_without_a_warning(sources):
    """The flags of CPPFLAGS go where something is preprocessed and nowhere else, or clang warns of them."""
    log = make(sources, "CC=clang", "CXX=clang++", "CPPFLAGS=-Inonesuch")
    assert "warning" not in log.lower() and linked(log) == set(PROGRAMS)


def test_another_variant_is_linked_and_the_first_not_compiled_again(tree):
    log = make(tree, "DEBUG=1")
    assert set(PROGRAMS) <= compiled(log) and linked(log) == set(PROGRAMS)
    assert (tree / "build/cpu-debug").is_dir()
    log = make(tree)
    assert not compiled(log) and linked(log) == set(PROGRAMS)


@needs_nvcc
def test_switching_the_back_end_links_again(tree):
    log = make(tree, "BACKEND=gpu", "SMS=90", "NVCC=" + NVCC)
    assert set(PROGRAMS) <= compiled(log) and linked(log) == set(PROGRAMS)
    assert b"libcudacpu" not in (tree / "bin/chapter03/hello_world").read_bytes()
    log = make(tree)
    assert not compiled(log) and linked(log) == set(PROGRAMS)
    log = make(tree, "BACKEND=gpu", "SMS=90", "NVCC=" + NVCC)
    assert not compiled(log) and linked(log) == set(PROGRAMS)
    assert set(PROGRAMS) <= compiled(make(tree, "BACKEND=gpu", "SMS=80", "NVCC=" + NVCC))


def test_one_chapter_and_one_program(tree):
    shutil.rmtree(tree / "bin")
    assert linked(make(tree, "chapter04")) == {"chapter04/julia_gpu"}
    assert linked(make(tree, "chapter03/hello_world")) == {"chapter03/hello_world"}


def test_a_new_program_needs_nothing_but_its_header(tree):
    text = (tree / "chapter03/hello_world.cu").read_text()
    (tree / "chapter03/hello_again.cu").write_text(text.replace("hello_world", "hello_again"))
    assert linked(make(tree)) == {"chapter03/hello_again"}
    assert "chapter03/hello_again\t" in run(tree, "scripts/programs.sh")
    assert re.search(r"chapter03/hello_again +ok ", make(tree, "run", "CHAPTER=3"))


def test_a_source_that_does_not_compile(tree):
    source = tree / "chapter03/hello_world.cu"
    append(source, "__global__ void broken(void) { nonesuch = 1; }\n")
    log = make(tree, status=2)
    assert re.search(r"^chapter03/hello_world\.cu:%d:" % len(source.read_text().splitlines()), log, re.M)
    make(tree, status=2)


def test_other_folders_and_clean(sources):
    before = set(sources.rglob("*"))
    folders = ["BIN=programs", "BUILD=objects"]
    make(sources, *folders, "chapter03/hello_world")
    assert {p.parts[len(sources.parts)] for p in set(sources.rglob("*")) - before} == {"programs", "objects"}
    assert os.access(sources / "programs/chapter03/hello_world", os.X_OK)
    (sources / "programs/mine").touch()
    make(sources, *folders, "clean")
    assert set(sources.rglob("*")) - before == {sources / "programs", sources / "programs/mine"}


# ---- settings ----

@pytest.mark.parametrize("arguments, says", [
    (["BACKEND=bogus"], "BACKEND=bogus: must be auto, gpu or cpu"),
    (["BACKEND=gpu", "CUDA_PATH=/nonexistent"], "no nvcc in CUDA_PATH=/nonexistent"),
    (["BACKEND=auto", "SMS=90", "CUDA_PATH=/nonexistent"], "SMS=90: no nvcc"),
    (["BACKEND=cpu", "SMS=90"], "SMS is for BACKEND=gpu"),
    (["BACKEND=gpu", "SANITIZE=address"], "SANITIZE is for BACKEND=cpu"),
    (["DEBUG=yes"], "DEBUG=yes: must be 0 or 1"),
    (["SANITIZE=bogus"], "SANITIZE=bogus: must be"),
    (["SANITIZE=thread,address"], "thread goes with neither"),
    (["run", "CHAPTER=99"], "CHAPTER=99: must be one of"),
    (["chapter03/nonesuch"], "there is no target chapter03/nonesuch: make help lists them"),
    (["chapter4"], "there is no target chapter4: did you mean chapter04?"),
    (["4"], "there is no target 4: did you mean chapter04?"),
    (["chapter4/julia_gpu"], "there is no target chapter4/julia_gpu: did you mean chapter04/julia_gpu?"),
    (["julia_gpu"], "there is no target julia_gpu: did you mean chapter04/julia_gpu?"),
    (["julia_gpu.cu", "run"], "there is no target julia_gpu.cu: did you mean chapter04/julia_gpu?"),
    (["install", "PREFIX=/nonexistent"], "there is no make install: the programs run where they are built, in bin"),
    (["CXX=nonesuch-g++"], "no C++ compiler: nonesuch-g++"),
])
def test_bad_settings(built, arguments, says):
    lines = make(built, *arguments, status=2).splitlines()
    assert any(says in line for line in lines)
    assert not any(line.startswith("[") for line in lines)


@needs_nvcc
def test_an_architecture_that_nvcc_does_not_know(built):
    log = make(built, "BACKEND=gpu", "SMS=10", "NVCC=" + NVCC, status=2)
    known = run(built, NVCC, "--list-gpu-code").replace("sm_", "").split()
    assert "SMS=10: nvcc" in log and " ".join(known) in log


@needs_nvcc
@pytest.mark.skipif(os.environ.get("BACKEND") == "gpu", reason="this run is the GPU build")
def test_gpu_back_end_builds_without_a_warning(tmp_path):
    """Every program for the least architecture, which lacks what later ones have. For the default ones, which take three
    times as long, the largest program and those whose text depends on the architecture."""
    folders = ["BACKEND=gpu", "NVCC=" + NVCC, "BIN=%s" % (tmp_path / "bin"), "BUILD=%s" % (tmp_path / "build")]
    programs = [line.split("\t")[0] for line in run(ROOT, "scripts/programs.sh").splitlines()]
    least = run(ROOT, NVCC, "--list-gpu-code").split()
    log = make(ROOT, *folders, "SMS=75" if "sm_75" in least else "SMS=" + least[0].removeprefix("sm_"), "all")
    assert "warning" not in log.lower()
    there = [name for name in programs if os.access(tmp_path / "bin" / name, os.X_OK)]
    assert all(name in there or "off: %s:" % name in log for name in programs)
    texts = {name: (ROOT / (name + ".cu")).read_text() for name in there}
    several = {max(there, key=lambda name: len(texts[name])), *(name for name in there if "__CUDA_ARCH__" in texts[name])}
    log = make(ROOT, *folders, "BUILD=%s" % (tmp_path / "several"), *several)
    assert several <= compiled(log) and "warning" not in log.lower()


def stand_in(folder, name, script):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n" + script)
    (folder / name).chmod(0o755)


FAKE_NVCC = """case $1 in --version) echo 'Cuda compilation tools, release 12.9, V12.9.1' ;;
--list-gpu-code) echo sm_75; echo sm_90; echo sm_120 ;; *) exit 1 ;; esac"""
FAKE_SMI = """case $1 in --query-gpu=compute_cap,name*) printf '9.0, NVIDIA H200\\n9.0, NVIDIA H200\\n' ;; *) exit 1 ;; esac"""
OLD_SMI = """case $1 in -L) echo 'GPU 0: Old (UUID: GPU-1)' ;; *) echo 'Field "compute_cap" is not a valid field to query.'; exit 2 ;; esac"""


@pytest.mark.parametrize("nvcc, smi, arguments, says", [
    (FAKE_NVCC, FAKE_SMI, [], r"gpu \(nvcc 12.9 and NVIDIA H200, sm 90\)"),
    (FAKE_NVCC, OLD_SMI, [], r"gpu \(nvcc 12.9 and a GPU, sm 75 90 120 and PTX\)"),
    (FAKE_NVCC, FAKE_SMI.replace("9.0", "13.0"), [], r"gpu \(nvcc 12.9 and NVIDIA H200, sm 75 90 120 and PTX\)"),
    (FAKE_NVCC, FAKE_SMI, ["SMS=75"], r"gpu \(SMS asks for GPU code, sm 75\)"),
    (FAKE_NVCC, FAKE_SMI, ["SANITIZE=address"], r"cpu \(SANITIZE is for the CPU back end\)"),
    (FAKE_NVCC, FAKE_SMI, ["BACKEND=cpu"], r"cpu \(asked for\)"),
    (None, FAKE_SMI, [], r"cpu \(no nvcc in CUDA_PATH=.*\)"),
    pytest.param(FAKE_NVCC, "exit 9", [], r"cpu \(nvcc 12.9 is here, but no GPU\)",
                 marks=pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="there is a GPU here")),
])
def test_choice_of_back_end(tree, tmp_path, nvcc, smi, arguments, says):
    tools = tmp_path / "cuda/bin"
    stand_in(tools, "nvidia-smi", smi)
    if nvcc:
        stand_in(tools, "nvcc", nvcc)
    if not any(a.startswith("BACKEND=") for a in arguments):
        arguments = ["BACKEND=auto", *arguments]
    log = make(tree, "-n", *arguments, CUDA_PATH=str(tmp_path / "cuda"), PATH="%s:%s" % (tools, os.environ["PATH"]))
    assert re.search("back end: " + says, log), log


def test_environment_sets_what_the_command_line_sets(tree):
    assert "cpu (asked for)" in run(tree, "make", "-n", BACKEND="cpu")
    assert "build/cpu-address" in run(tree, "make", "-n", BACKEND="cpu", SANITIZE="address")


# ---- libraries ----

def test_without_libraries(tree, tmp_path):
    """Built as if they were not there: what they bring is named as off, the rest works."""
    without = ["HAVE_PNG=0", "HAVE_WEBP=0", "HAVE_GLUT=0", "HAVE_GL=0", "HAVE_BOOST_CONTEXT=0"]
    log = make(tree, *without)
    assert set(PROGRAMS) <= compiled(log) and linked(log) == set(PROGRAMS)
    assert [line[:25] for line in log.splitlines()[-5:]] == [
        "off: PNG pictures (libpng", "off: animations as WebP (", "off: windows (freeglut, O", "off: CUDA with OpenGL (Op",
        "off: fast switches betwee"]
    log = make(tree, *without)
    assert not compiled(log) and not linked(log)
    julia = [str(tree / "bin/chapter04/julia_gpu"), "--size", "8"]
    folder, env = tmp_path / "pictures", {"DISPLAY": "", "PATH": "/nonexistent"}
    folder.mkdir()
    for ending, library in ("png", "libpng"), ("webp", "libwebp"), ("gif", "ffmpeg"):
        log = run(folder, *julia, "--output", "x." + ending, status=64, **env)
        assert library in log and len(log.splitlines()) == 1
    assert "built without freeglut" in run(folder, *julia, "--window", status=64, **env)
    assert "no window: built without freeglut (Debian: freeglut3-dev); writing a file" in run(folder, *julia, **{**env, "DISPLAY": ":0"})
    log = run(folder, *julia, "--animate", "--frames", "2", **env)
    assert "wrote julia_gpu.ppm (8x8, the last of 2 frames)\nall frames would need libwebp" in log
    assert os.listdir(folder) == ["julia_gpu.ppm"]
    if shutil.which("ffmpeg"):
        assert "wrote julia_gpu.gif (8x8, 2 frames)\n" in run(folder, *julia, "--animate", "--frames", "2", DISPLAY="")
    assert set(PROGRAMS) <= compiled(make(tree, "-n"))


def test_a_library_that_comes_later_is_found(built, tmp_path):
    """A miss is looked up again, so `make setup run` sees what setup has just installed."""
    stand_in(tmp_path, "gcc", """for a; do case $a in */probe.c) grep -q png.h "$a" && [ ! -e "$LATER" ] && exit 1 ;; esac; done
exec cc "$@" """)
    config = tmp_path / "build/config.mk"
    env = {"CC": str(tmp_path / "gcc"), "LATER": str(tmp_path / "later")}
    if "HAVE_PNG ?= 1" not in (built / "build/cpu/config.mk").read_text():
        pytest.skip("libpng is not here")
    run(built, "scripts/libs.sh", "probe", "cpu", str(config), **env)
    assert "off: PNG pictures (libpng): apt install libpng-dev" in run(built, "scripts/libs.sh", "report", "cpu", str(config), **env)
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
    assert "make: chapter03/hello_world needs nonesuch, which no library" in make(tree, "chapter03/hello_world", status=2)


@pytest.mark.parametrize("needs, says", [
    ("gl", "needs gl: switched off by HAVE_GL=0\n"),
    ("libs=webp, gl", "needs webp, animations as WebP (libwebp): apt install libwebp-dev; gl: switched off by HAVE_GL=0\n")])
def test_a_program_that_is_asked_for_but_can_not_be_built(tree, needs, says):
    """What it needs, and the package that brings it."""
    stand_in(tree, "cc", """for a; do case $a in */probe.c) grep -q webp "$a" && exit 1 ;; esac; done; exec gcc "$@" """)
    source = tree / "chapter03/hello_world.cu"
    source.write_text(source.read_text().replace("\n */", f"\n * Needs:   {needs}\n */", 1))
    log = make(tree, "chapter03/hello_world", "HAVE_GL=0", f"CC={tree}/cc", status=2)
    assert "make: chapter03/hello_world " + says in log


# ---- setup, with stand-ins for the package managers ----

class System:
    """A PATH with only what setup needs, and a package manager that keeps its packages in a file. It logs its
    calls, and can not get the packages named in the file `unreachable`."""
    MANAGERS = {  # what asks for one package, what installs
        "Debian": ("dpkg-query", "apt-get"), "Fedora": ("rpm", "dnf"), "openSUSE": ("rpm", "zypper"), "Arch": ("pacman", "pacman"),
        "other": ()}
    COLUMN = {"Debian": 0, "Fedora": 3, "Arch": 4, "openSUSE": 5, "other": 0}

    def __init__(self, folder, name="Debian"):
        self.tools, self.name = folder / "tools", name
        self.tools.mkdir()
        for tool in ("sh", "awk", "cut", "env", "cat", "id", "grep", "sed", "cc", "g++"):
            (self.tools / tool).symlink_to(shutil.which(tool))
        self.have, self.log, self.unreachable = folder / "installed", folder / "calls.log", folder / "unreachable"
        self.have.write_text("".join(p + "\n" for p in [*self.packages(), "dpkg", "rpm", "pacman"]))
        self.unreachable.write_text("")
        query = 'grep -qxF -e "$p" %s' % self.have
        install = """echo "%%s $*" >>%s
case " $* " in *" update "*) [ ! -s %s ]; exit ;; esac
for p; do grep -qxF -e "$p" %s && { echo "E: Unable to fetch $p" >&2; exit 100; }; done
past=; for p; do case $p in install) past=1 ;; -S) past=1 ;; -*) ;; *) [ -z "$past" ] || echo "$p" >>%s ;; esac; done
""" % (self.log, self.unreachable, self.unreachable, self.have)
        for tool in self.MANAGERS[name]:
            stand_in(self.tools, tool, {
                "dpkg-query": "for p; do :; done; " + query + " && printf installed",
                "rpm": 'for p; do :; done; [ "$1 $2" = "-q --whatprovides" ] && ' + query,
                "pacman": 'if [ "$1" = -T ]; then p=$2; ' + query + "; exit; fi\n" + install % tool}.get(tool, install % tool))
        if name == "Debian":
            stand_in(self.tools, "apt-cache", "exit 0")

    def packages(self, *goals):
        """All of them, or those for some goals of make, as they are called on this system."""
        table = (ROOT / "scripts/setup.sh").read_text().split("<<'END'\n")[1].split("END\n")[0]
        rows = [line.split("|") for line in table.splitlines()]
        return list(dict.fromkeys(r[self.COLUMN[self.name]] for r in rows if not goals or set(goals) & set(r[1].split())))

    def user(self, number):
        (self.tools / "id").unlink()
        stand_in(self.tools, "id", "echo %d" % number)

    def setup(self, *goals, status=0, **env):
        return run(ROOT, str(self.tools / "sh"), "scripts/setup.sh", *goals, status=status, **{"PATH": str(self.tools), **env})

    def remove(self, *packages):
        self.have.write_text("".join(p + "\n" for p in self.have.read_text().split() if p not in packages))

    def calls(self):
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def debian(tmp_path):
    return System(tmp_path)


SYSTEMS = ["Debian", "Fedora", "openSUSE", "Arch"]
# What installs, up to the names of packages
INSTALLS = {"Debian": "apt-get -qq -o Dpkg::Use-Pty=0 -o Acquire::Retries=1 -o Acquire::http::Timeout=20 install -y --no-install-recommends",
            "Fedora": "dnf install -y --setopt=install_weak_deps=False",
            "openSUSE": "zypper --non-interactive install --no-recommends", "Arch": "pacman -S --needed --noconfirm"}
BY_HAND = {"Debian": "apt install", "Fedora": "dnf install", "openSUSE": "zypper install", "Arch": "pacman -S --needed"}


@pytest.mark.parametrize("name", SYSTEMS)
def test_setup_with_nothing_missing_asks_for_nothing(tmp_path, name):
    system = System(tmp_path, name)
    assert system.setup("test") == "setup: nothing is missing\n"
    assert system.calls() == []


@pytest.mark.parametrize("name", SYSTEMS)
def test_setup_installs_what_is_missing_in_one_transaction(tmp_path, name):
    """And shows the command before it runs."""
    system = System(tmp_path, name)
    system.user(0)
    want = system.packages("all", "test")
    system.remove(*want)
    log = system.setup("test")
    assert "setup: missing: %s\n" % " ".join(want) in log
    assert system.calls() == ["%s %s" % (INSTALLS[name], " ".join(want))]
    assert re.search(r"^setup: %s .*%s$" % (system.MANAGERS[name][1], re.escape(" ".join(want))), log, re.M), log
    assert "could not" not in log
    assert system.setup("test") == "setup: nothing is missing\n"


@pytest.mark.parametrize("goals, needs", [
    ([], ["all"]), (["run"], ["all"]), (["chapter04/julia_gpu"], ["all"]), (["test"], ["all", "test"]),
    (["run", "test"], ["all", "test"]), (["bench"], ["all", "bench"]), (["docs"], ["all", "docs"]), (["gallery"], ["all", "gallery"])])
def test_setup_installs_what_the_goals_need(tmp_path, goals, needs):
    """By way of make."""
    system = System(tmp_path)
    system.user(0)
    want = system.packages(*needs)
    assert ("chromium" in want) == ("python3-pytest" in want) == ("xvfb" in want) == ("test" in goals)
    assert ("python3-matplotlib" in want) == bool({"test", "bench", "docs"} & set(goals))
    system.remove(*system.packages())
    tree = tmp_path / "tree"
    (tree / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts/setup.sh", tree / "scripts")
    (tree / "Makefile").write_text("GOALS := $(MAKECMDGOALS)\n"
                                   + re.search(r"^setup:\n(\t.*\n)+", (ROOT / "Makefile").read_text(), re.M).group()
                                   + "%s:;@:\n" % " ".join(goals or ["all"]))
    (system.tools / "make").symlink_to(shutil.which("make"))
    run(tree, "make", "setup", *goals, PATH=str(system.tools))
    assert [c.split("--no-install-recommends ")[1].split() for c in system.calls()] == [want]


def test_setup_fetches_lists_when_apt_does_not_know_a_package(debian):
    debian.user(0)
    stand_in(debian.tools, "apt-cache", "exit 100")
    debian.remove("libpng-dev")
    debian.setup()
    assert ["update" in c for c in debian.calls()] == [True, False]


@pytest.mark.parametrize("name, png, numpy", [("Debian", "libpng-dev", "python3-numpy"), ("Fedora", "libpng-devel", "python3-numpy"),
                                              ("openSUSE", "libpng16-devel", "python3-numpy"), ("Arch", "libpng", "python-numpy")])
def test_setup_names_what_it_can_not_install_and_goes_on(tmp_path, name, png, numpy):
    system = System(tmp_path, name)
    system.user(0)
    system.remove(png, numpy)
    system.unreachable.write_text(png + "\n")
    log = system.setup("test")
    assert "could not install %s, which is needed for: PNG pictures" % png in log
    assert "could not install %s" % numpy not in log
    assert "missing: %s\n" % png in system.setup("test")


@pytest.mark.parametrize("name", SYSTEMS)
def test_setup_as_a_user_takes_sudo(tmp_path, name):
    system = System(tmp_path, name)
    system.user(1000)
    want = system.packages("all")
    system.remove(*want)
    by_hand = "someone with the rights must run: %s %s\n" % (BY_HAND[name], " ".join(want))
    assert "setup: without sudo, " + by_hand in system.setup()
    stand_in(system.tools, "sudo", "echo user is not in the sudoers file >&2; exit 1")
    log = system.setup()
    assert "setup: since sudo refuses, " + by_hand in log and log.count("not in the sudoers") == 1
    assert system.calls() == []
    stand_in(system.tools, "sudo", 'exec "$@"')
    assert "setup: sudo %s " % system.MANAGERS[name][1] in system.setup()
    assert len(system.calls()) == 1 and system.calls()[0].endswith(" ".join(want))


def test_setup_takes_another_browser_for_chromium(debian):
    debian.remove("chromium")
    assert "missing: chromium" in debian.setup("test") or "ID=ubuntu" in pathlib.Path("/etc/os-release").read_text().split("\n")
    stand_in(debian.tools, "google-chrome", "exit 0")
    assert debian.setup("test") == "setup: nothing is missing\n"


def test_setup_takes_another_ffmpeg(tmp_path):
    """As on a Fedora with more sources of packages, whose ffmpeg does not go together with Fedora's."""
    system = System(tmp_path, "Fedora")
    system.remove("ffmpeg-free")
    stand_in(system.tools, "ffmpeg", "exit 0")
    assert system.setup() == "setup: nothing is missing\n"


def test_setup_without_a_compiler_fails(debian):
    debian.user(0)
    debian.remove("g++")
    debian.unreachable.write_text("g++\n")
    (debian.tools / "g++").unlink()
    assert "there is no g++" in debian.setup(status=1)


@pytest.mark.parametrize("goals", [[], ["test"]])
def test_setup_on_another_system_says_what_to_install(tmp_path, goals):
    """A line to paste for each system that it knows, in which nothing stands twice."""
    lines = System(tmp_path, "other").setup(*goals).splitlines()[1:]
    assert [line.split(":")[0].strip() for line in lines] == ["Debian", "Fedora", "Arch", "openSUSE"]
    for line in lines:
        words = line.split(": ")[1].split()
        assert len(words) == len(set(words)) and " ".join(words).startswith(BY_HAND[line.split(":")[0].strip()])
        assert ("chromium" in words) == bool(goals)


def test_setup_takes_the_package_manager_that_knows_of_itself(tmp_path):
    """Debian has dnf, pacman (a game) and zypper as packages, and Fedora apt."""
    system = System(tmp_path, "Fedora")
    system.user(0)
    stand_in(system.tools, "apt-get", "echo apt-get ran; exit 9")
    stand_in(system.tools, "dpkg-query", "exit 1")
    stand_in(system.tools, "pacman", "echo pacman ran; exit 9")
    system.remove("libpng-devel")
    assert " ran" not in system.setup() and len(system.calls()) == 1


def test_hints_name_the_package_of_this_system(tmp_path):
    assert run(ROOT, "sh", "scripts/setup.sh", "--how", "libpng-dev", "g++", "gcc", PATH=str(System(tmp_path, "Arch").tools)) \
        == "pacman -S --needed libpng gcc\n"


def test_setup_that_fails_does_not_stop_the_build(tree, tmp_path, debian):
    """`make setup all` with a package missing that can not be had."""
    debian.user(0)
    debian.remove("libpng-dev")
    debian.unreachable.write_text("libpng-dev\n")
    log = make(tree, "setup", "all", PATH="%s:%s" % (debian.tools, os.environ["PATH"]))
    assert log.index("could not install libpng-dev") < log.index("back end:")


def test_doctor(tree):
    log = make(tree, "doctor")
    for what in ("back end", "compiler", "toolkit", "driver", "GPU", "display", "OpenGL", "PNG pictures (libpng)",
                 "Boost.Context", "tests"):
        assert what in log
    assert "PNG" in make(tree, "doctor", "CC=nonesuch-cc")


# ---- other systems, with stand-ins for what makes them ----

@pytest.mark.parametrize("words, says", [
    ([], "name a folder"), (["/nonexistent"], "/nonexistent: is no folder"), (["run"], "name a folder"),
    (["{}", "debian11"], "debian11: must be one of"), (["{}", "mirror="], "mirror=: must be one of"), (["{}", "{}"], "must be one of")])
def test_systems_refuses_what_it_does_not_know(tmp_path, words, says):
    log = run(ROOT, "scripts/systems.sh", *(w.format(tmp_path) for w in words), status=64)
    assert says in log and log.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("prints, status, row", [
    ("4 ok, 0 failed, 1 waived", 0, "ok .* 4 ok, 0 failed, 1 waived"), ("1526 passed in 4.37s (0:07:44)", 0, "ok .* 1526 passed in"),
    ("3 ok, 1 failed", 2, "FAILED .* status 2: 3 ok, 1 failed"), ("a.cu:1:2: warning: unused\\n9 passed in 1s", 0, "FAILED .* 1 warnings: 9 passed"),
    (None, 9, "FAILED .* the system could not be made: debian13-clang\\+\\+-user-prepare.log")])
def test_systems_says_what_passed(tmp_path, prints, status, row):
    """What runs inside prints something and ends with a status; or nothing runs there."""
    tools, folder = tmp_path / "tools", tmp_path / "folder"
    folder.mkdir()
    stand_in(tools, "id", "echo 0")
    stand_in(tools, "git", "exit 0")
    stand_in(tools, "debootstrap", "exit 1")
    stand_in(tools, "unshare", r"""case $* in
*debootstrap*) for a; do case $a in *.new) mkdir -p "$a/etc/apt/apt.conf.d" ;; esac; done ;;
*"make CC=clang CXX=clang++ setup"*) printf '%s\n'; exit %d ;;
*) exit %d ;;
esac""" % (prints, status, prints is None))
    log = run(ROOT, "scripts/systems.sh", str(folder), "debian13", "clang++", "user", "run", status=1 if row.startswith("FAILED") else 0,
              PATH="%s:%s" % (tools, os.environ["PATH"]))
    assert re.search("^debian13  clang\\+\\+  user  make setup run +%s" % row, log, re.M), log
    assert log.endswith("0 ok, 1 failed\n" if row.startswith("FAILED") else "1 ok, 0 failed\n")
    assert {p.name for p in folder.iterdir()} == {"logs", "trixie-base", "trixie-packages"}


# ---- headers, README, help ----

def test_headers():
    assert run(ROOT, "scripts/programs.sh", "--check") == ""


@pytest.mark.parametrize("old, new, says", [
    ("// SPDX-License-Identifier: MIT\n", "", r":1: the first line must be"),
    (" * hello_world: ", " * hello: ", r":3: the header begins with"),
    (" * Teaches: ", " * Lesson:  ", r"(?s):5: Lesson: is no field.*:2: the header has no Teaches: field"),
    (" * Teaches: ", " Teaches: ", r":5: a line of the header"),
    (" * Book:    3.2.1\n", "", r":2: the header has no Book: field"),
    (" * Book:    3.2.1\n", " * Book:    4.2.1\n", r"Book: \"4.2.1\" does not begin with a section of chapter 3"),
    (" * Book:    3.2.1\n", " * Book:    3.2.1\n * Book:    3.2.1\n", r"Book: is here twice"),
    (" * Run:     ./bin/chapter03/hello_world", " * Run:     ./hello_world", r"Run: must begin with ./bin/chapter03/hello_world"),
    (" */", " * Needs:   gpu=2\n */", r'Needs: "gpu=2" is none of'),
    (" */", " * Picture: no\n */", r"Picture: is yes"),
    (" */", " * Expect:  2\n */", r"Expect: is 1"),
    (" */", " * Picture: yes\n */", r"Run: ends with --output FILE"),
    (" */", " * Picture: as chapter03/simple_kernel\n */", r"Picture: chapter03/simple_kernel draws no picture of its own"),
    (" */", " * Bench:   1M\n */", r"Bench: is for what includes common/bench.h"),
    (" */", " * Bench:   1M 0 2T\n */", r'Bench: "0" is no value of --size\n.*"2T" is no value'),
    (" */\n", " */\n#include \"../common/bench.h\"\n", r":2: the header of a ladder has a Bench: field"),
    (" */", "", r"a line of the header|the header comment does not end"),
])
def test_a_bad_header_is_named(sources, old, new, says):
    source = sources / "chapter03/hello_world.cu"
    assert old in source.read_text()
    source.write_text(source.read_text().replace(old, new, 1))
    log = run(sources, "scripts/programs.sh", "--check", status=1)
    assert re.search(says, log), log
    assert all(line.startswith("chapter03/hello_world.cu:") for line in log.splitlines())


def test_programs_in_reading_order(sources):
    """Sections as numbers, a bare section first; fields come through whole."""
    text = (sources / "chapter03/hello_world.cu").read_text()
    for name, section in [("a", "3.10"), ("b", "3.9.1"), ("c", "3.9 (course)"), ("d", "3.9")]:
        (sources / "chapter03" / (name + ".cu")).write_text(
            text.replace("hello_world", name).replace("Book:    3.2.1", "Book:    " + section)
            .replace(" */", " * Differs: in one\n *          or two things\n * Needs:   gpus=2, libs=png gl\n */", 1))
    rows = [line.split("\t") for line in run(sources, "scripts/programs.sh", "chapter03").splitlines()]
    assert [r[0][10:] for r in rows] == ["hello_world", "simple_kernel", "d", "c", "b", "a"]
    assert all(len(r) == 10 for r in rows)
    assert rows[2][5:] == ["in one or two things", "gpus=2, libs=png gl", "", "", ""]
    assert "chapter03/d:png,gl" in run(sources, "scripts/programs.sh", "--needs")


def test_the_books_order():
    """Chapters as numbers, the appendix after them, and in a section the book's own programs before all others."""
    rows = [line.split("\t") for line in run(ROOT, "scripts/programs.sh").splitlines()]
    folders = list(dict.fromkeys(row[0].split("/")[0] for row in rows))
    assert folders == sorted(f for f in folders if f.startswith("chapter")) + ["appendix_a"]
    order = [number for number, _, _ in sections()]
    places = [order.index(re.match(r"[0-9A-Z.]+", row[2])[0]) for row in rows]
    assert places == sorted(places)
    for before, after in zip(rows, rows[1:]):
        if before[2].split()[0] == after[2].split()[0]:
            assert beyond_the_book(before[2]) <= beyond_the_book(after[2]), f"{after[0]} comes after {before[0]}"
    assert [row[0] for row in rows if row[2].startswith("5.3.1")][:2] == ["chapter05/dot", "chapter05/dot_wrong_barrier"]


def beyond_the_book(section):
    return bool(re.search("archive|course|lab|ladder|after the book", section))


def sections():
    """(number, title, names of the programs printed there) of each section of the book."""
    for line in (ROOT / "tests/sections.txt").read_text().splitlines():
        if not line.startswith("#"):
            number, title, *programs = (part.strip() for part in line.split("|"))
            yield number, title, programs[0].split() if programs else []


def test_sections_are_the_books():
    """Each section that a Book: field names is one of the book's, and a program that the book prints names the section with it."""
    known = {number for number, _, _ in sections()}
    printed = {}
    for number, _, names in sections():
        chapter = number.split(".")[0]
        folder = "chapter%02d" % int(chapter) if chapter.isdigit() else "appendix_" + chapter.lower()
        for name in names:
            printed.setdefault(f"{folder}/{name}", set()).add(number)
    programs = {line.split("\t")[0]: line.split("\t")[2] for line in run(ROOT, "scripts/programs.sh").splitlines()}
    for name, field in programs.items():
        named = set(re.findall(r"\b(?:[A-Z]|\d+)(?:\.\d+)+\b", field))
        assert named and named <= known, f"{name}: {field}"
        assert not beyond_the_book(field) or name not in printed, f"{name}: the book prints it: {field}"
        for number in printed.get(name, ()):
            assert any(f"{number}.".startswith(f"{n}.") for n in named), f"{name}: the book prints it in {number}: {field}"
        for number in named if name in printed else ():
            assert any(f"{p}.".startswith(f"{number}.") for p in printed[name]), f"{name}: {field} is not where the book prints it"
    assert printed.keys() <= programs.keys()


def test_readme_table_is_fresh():
    table = (ROOT / "README.md").read_text().split("<!-- programs:begin", 1)[1].split("-->\n", 1)[1].split("<!-- programs:end")[0]
    assert table == run(ROOT, "scripts/programs.sh", "--table"), "stale: run make docs"
    assert table.count("\n") == 2 + len(list(ROOT.glob("chapter*/*.cu")) + list(ROOT.glob("appendix_a/*.cu")))


def test_docs_refreshes_the_table(sources):
    make(sources, "docs")
    before = (sources / "README.md").read_text()
    assert "fresh" in make(sources, "docs") and before.count("\n| [chapter") == len(PROGRAMS)
    source = sources / "chapter03/hello_world.cu"
    source.write_text(source.read_text().replace("Teaches: ", "Teaches: Something else. ", 1))
    assert "refreshed" in make(sources, "docs")
    after = (sources / "README.md").read_text()
    assert "| Something else. |" in after and len(after.splitlines()) == len(before.splitlines())


def test_help_lists_what_there_is(tree):
    listed = set(re.findall(r"^make ([a-z]\S*)", make(tree, "help"), re.M))
    there = set(re.search(r"^TARGETS := (.*)", (ROOT / "Makefile").read_text(), re.M).group(1).split())
    assert {t for t in listed if "chapter" not in t} | {"all"} == there
    for target in listed:
        make(tree, "-n", target)


def test_nobody_keeps_a_list_of_programs():
    programs = [line.split("\t")[0].split("/")[1] for line in run(ROOT, "scripts/programs.sh").splitlines()]
    for path in [ROOT / "Makefile", ROOT / ".ci/run", *(ROOT / "scripts").iterdir(), *(ROOT / ".github").rglob("*.yml")]:
        text = re.sub(r"^#:.*$", "", path.read_text(), flags=re.M)
        assert [p for p in programs if re.search(rf"\b{p}\b", text)] == [], path


def test_ci_runs_the_readme_command():
    assert "\n    make setup test " in (ROOT / "README.md").read_text()
    assert (ROOT / ".ci/run").read_text().endswith("\nmake setup test\n")
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    assert workflow.count("run: .ci/run") == workflow.count("timeout-minutes:")


# ---- make run ----

def programs_of(sources, scripts, header=lambda name: ""):
    """Replaces the programs by shell scripts, with headers to which header(name) adds lines."""
    text = (sources / "chapter03/hello_world.cu").read_text()
    for path in sources.glob("chapter*/*.cu"):
        path.unlink()
    for name, script in scripts.items():
        (sources / "chapter03" / (name + ".cu")).write_text(text.replace("hello_world", name).replace(" */", header(name) + " */", 1))
        stand_in(sources / "bin/chapter03", name, script)


def test_run_says_what_became_of_each_program(sources):
    """Programs that end in every way there is, as shell scripts."""
    ways = {
        "good": ("echo fine", "ok", ""),
        "artist": ("echo picture >artist.png", "ok", "build/run/chapter03/artist.png"),
        "forgetful": (":", "FAILED", "wrote no picture"),
        "wrong": ("echo 'c[7]: got 3' >&2; exit 1", "FAILED", "exit status 1: c[7]: got 3"),
        "choosy": ("echo needs 2 GPUs, found 1 >&2; exit 2", "waived", "needs 2 GPUs, found 1"),
        "endless": ("sleep 60", "FAILED", "ran longer than 2 s"),
        "crash": ("kill -SEGV $$", "FAILED", "ended by signal 11"),
        "wrong_on_purpose": ("echo 'divergent barrier' >&2; exit 1", "ok", "status 1 as expected: divergent barrier"),
        "right_by_mistake": (":", "FAILED", "exit status 0, its header expects 1"),
        "wrong_otherwise": ("echo oops >&2; exit 3", "FAILED", "exit status 3: oops"),
        "windowed": ('[ -z "$DISPLAY$WAYLAND_DISPLAY" ]', "ok", ""),
    }

    def header(name):
        return (" * Picture: yes\n" if name in ("artist", "forgetful") else
                " * Expect:  1\n" if name in ("wrong_on_purpose", "right_by_mistake", "wrong_otherwise") else "")

    programs_of(sources, {name: script for name, (script, _, _) in ways.items()}, header)
    env = {"TIME_LIMIT": "2", "DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}
    log = run(sources, "scripts/run.sh", status=1, **env)
    for name, (_, result, why) in ways.items():
        assert re.search(r"^\[ ?\d+/11\] chapter03/%s +%s +[0-9.]+ s +%s *$" % (name, result, re.escape(why)), log, re.M), log
    assert re.findall(r"^\[ ?(\d+)/11\]", log, re.M) == [str(i + 1) for i in range(11)]
    assert "running" not in log
    assert "4 ok, 6 failed, 1 waived, 0 not built" in log.splitlines()[-1]
    for name in ("forgetful", "wrong", "endless", "crash", "right_by_mistake", "wrong_otherwise"):
        (sources / "chapter03" / (name + ".cu")).unlink()
    assert "4 ok, 0 failed, 1 waived" in run(sources, "scripts/run.sh", **env)


def test_run_on_a_terminal_names_the_program_that_is_running(sources):
    """Until its row is there. The second program waits until the test has read its name."""
    programs_of(sources, {"early": ":", "late": f"read go <{sources}/go"})
    os.mkfifo(sources / "go")
    terminal, end = os.openpty()
    process = subprocess.Popen(["scripts/run.sh", "chapter03"], cwd=sources, env=environment(TERM="xterm"), stdin=subprocess.DEVNULL,
                               stdout=end, stderr=end)
    os.close(end)
    shown = b""
    while not re.search(rb"\[2/2\] chapter03/late +running$", shown):
        shown += os.read(terminal, 4096)
    assert re.search(rb"\[1/2\] chapter03/early +running\r\x1b\[K\[1/2\] chapter03/early +ok ", shown), shown
    (sources / "go").write_text("go\n")
    while b"2 ok" not in shown:
        shown += os.read(terminal, 4096)
    os.close(terminal)
    assert re.search(rb"late +running\r\x1b\[K\[2/2\] chapter03/late +ok ", shown) and process.wait() == 0


# ---- make test

@pytest.mark.parametrize("options, passed", [("", 3), ("-k one", 1), ("tests/test_b.py", 2), ("tests/test_b.py::test_two -v", 1),
                                             ("tests/test_a.py tests/test_b.py -k one", 1)])
def test_what_pytest_is_given(tree, options, passed):
    """A path takes the place of the folder. The tests run in several processes where pytest-xdist is there."""
    (tree / "tests").mkdir()
    check = f"assert ('PYTEST_XDIST_WORKER' in os.environ) == {bool(importlib.util.find_spec('xdist'))}"
    (tree / "tests/test_a.py").write_text(f"import os\ndef test_one(): {check}\n")
    (tree / "tests/test_b.py").write_text(f"import os\ndef test_two(): {check}\ndef test_three(): {check}\n")
    log = make(tree, "test", f"PYTEST={options}", f"PYTHON={sys.executable}", "JOBS=2")
    assert re.search(rf"^(=+ )?{passed} passed\b", log.splitlines()[-1]), log


# ---- make gallery

def gallery(sources, status=0):
    return run(sources, "scripts/gallery.sh", status=status, DISPLAY=":0")


def test_gallery_draws_what_the_headers_say(sources):
    """Programs that draw: a still with a size, one without, the same again, an animation."""
    Image = pytest.importorskip("PIL.Image")
    shutil.rmtree(sources / "docs/gallery")
    draw = 'for file; do :; done; [ -z "$DISPLAY" ] && echo "$*" | sed "s,/.*/,," >"$file"'
    Image.new("RGB", (8, 8)).save(sources / "pixels.png")
    draw_frames = (f'[ "$1 $2 $3 $4 $5" = "--size 256 --frames 120 --output" ] || exit 1; '
                   f'for i in 0000 0001 0002 0003 0004; do cp {sources}/pixels.png "$(printf %s "$6" | sed "s/%04d/$i/")"; done')
    scripts = {"sized": draw, "plain": draw, "again": "exit 9", "moving": draw_frames, "silent": "exit 9"}
    headers = {"again": " * Picture: as chapter03/plain\n", "silent": ""}
    programs_of(sources, scripts, lambda name: headers.get(name, " * Picture: yes\n"))
    for name, output in ("sized", "--output s.png"), ("plain", "--fast --output p.png"), ("again", "--output a.png"), ("moving", "--output m.webp"):
        path = sources / f"chapter03/{name}.cu"
        run_line = f" * Run:     ./bin/chapter03/{name}"
        path.write_text(path.read_text().replace(run_line, f"{run_line} {output}", 1)
                        + ('OPTION_SIZE("size"' if name in ("sized", "moving") else ""))
    assert run(sources, "scripts/programs.sh", "--check") == ""

    log = gallery(sources)
    made = {path.name: path for path in (sources / "docs/gallery").rglob("*.*")}
    assert set(made) == {"sized.png", "plain.png", "moving.webp"}
    assert made["sized.png"].read_text() == "--size 512 --output sized.png\n"
    assert made["plain.png"].read_text() == "--fast --output plain.png\n"
    with Image.open(made["moving.webp"]) as animation:  # of five alike, every second one, and a reader may join them
        assert animation.format == "WEBP" and animation.size == (8, 8)
    assert "docs/gallery/chapter03/sized.png: 30 bytes\n" in log and "gallery refreshed" in log
    readme = (sources / "README.md").read_text()
    assert '<img src="docs/gallery/chapter03/moving.webp"' in readme and "[again](chapter03/again.cu), [plain](chapter03/plain.cu) |" in readme

    # Once more: nothing changes, but what no program draws any more goes
    (sources / "docs/gallery/chapter03/old.png").write_text("")
    log = gallery(sources)
    assert log.count(", as it was\n") == 3 and "old.png: no program draws it, removed" in log and "gallery is fresh" in log
    assert not (sources / "docs/gallery/chapter03/old.png").exists()

    # A program that fails, or a picture too large, leaves the old one
    for script, says in ("echo 'plain: no' >&2; exit 1", "chapter03/plain --fast: plain: no"), \
            (draw + '; head -c 200000 /dev/zero >"$file"', "docs/gallery/chapter03/plain.png: 200000 bytes are too many"):
        stand_in(sources / "bin/chapter03", "plain", script)
        assert says in gallery(sources, status=1).splitlines()[-1]
        assert made["plain.png"].read_text() == "--fast --output plain.png\n"


def test_gallery_is_for_the_cpu_back_end(tree, tmp_path):
    tools = tmp_path / "cuda/bin"
    stand_in(tools, "nvidia-smi", FAKE_SMI)
    stand_in(tools, "nvcc", FAKE_NVCC)
    env = {"CUDA_PATH": str(tmp_path / "cuda"), "PATH": "%s:%s" % (tools, os.environ["PATH"])}
    assert "back end: cpu (the gallery has to come out the same on every machine)" in make(tree, "-n", "gallery", "BACKEND=auto", **env)
    assert "the gallery is for BACKEND=cpu" in make(tree, "-n", "gallery", "BACKEND=gpu", status=2, **env)


def test_the_gallery_in_words(sources):
    """Each picture has a text in its stead, the title of its program, and no two links read the same."""
    programs_of(sources, {"plain": "exit 9", "other": "exit 9"}, lambda name: " * Picture: yes\n")
    plain = sources / "chapter03/plain.cu"
    text = plain.read_text().replace(" Run:     ./bin/chapter03/plain", " Run:     ./bin/chapter03/plain --output p.png")
    plain.write_text(re.sub(r"plain: .*", 'plain: "a" <b> & c|d', text, count=1))
    (sources / "chapter04/plain.cu").write_text(text.replace("chapter03", "chapter04").replace("Picture: yes", "Picture: as chapter03/plain"))
    table = run(sources, "scripts/gallery.sh", "--table")
    assert re.search(r'docs/gallery/chapter03/plain.png" width="200" alt="&quot;a&quot; &lt;b&gt; &amp; c&#124;d">', table), table
    assert "[other](chapter03/other.cu)" in table and "[plain (chapter 3)](chapter03/plain.cu), [plain (chapter 4)](chapter04/plain.cu) |" in table, table
    table = run(ROOT, "scripts/gallery.sh", "--table")
    texts, links = re.findall(r'alt="([^"]*)"', table), re.findall(r"\[([^\]]+)\]\(", table)
    assert len(texts) == table.count("<img ") and all(texts) and len(set(texts)) == len(texts)
    assert len(set(links)) == len(links) and {"ripple (chapter 5)", "ripple (chapter 8)", "ray"} <= set(links)


def test_readme_gallery_is_fresh():
    shown = (ROOT / "README.md").read_text().split("<!-- gallery:begin", 1)[1].split("-->\n", 1)[1].split("<!-- gallery:end")[0]
    assert shown == run(ROOT, "scripts/gallery.sh", "--table"), "stale: run make docs"
