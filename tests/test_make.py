# SPDX-License-Identifier: MIT
"""make: which files are built again and when, several makes at the same time, the lines of the steps, make help."""
import fcntl
import hashlib
import os
import re
import shutil
import subprocess

import pytest

from trees import (
    NVCC,
    PROGRAMS,
    ROOT,
    UNOPTIMISED,
    append,
    compiled,
    environment,
    linked,
    make,
    needs_nvcc,
    run,
    stand_in,
)


def test_fresh_build(built):
    log = (built / "first.log").read_text()
    assert linked(log) == set(PROGRAMS)
    assert log.count("back end:") == 1
    assert "warning" not in log.lower()
    for program in PROGRAMS:
        assert os.access(built / "bin" / program, os.X_OK)


def test_each_step_has_a_number(tree):
    """The total is the number of steps, and steps are numbered in the order in which they begin, with any number of jobs."""
    (tree / "chapter03/simple_kernel.cu").touch()
    logs = [(tree / "first.log").read_text(), make(tree, "-j2"), make(tree)]
    counts = []
    for log in logs:
        steps = re.findall(r"^\[( *\d+)/(\d+)\] \w+ +\S+$", log, re.M)
        assert [(int(n), int(m)) for n, m in steps] == [
            (i, len(steps)) for i in range(1, len(steps) + 1)
        ], log
        assert len({len(n) for n, _ in steps}) <= 1
        counts.append(len(steps))
    assert (
        counts[0] == len(list((tree / "build/cpu").rglob("*.o"))) + len(PROGRAMS) + 3
    )  # the translator and two libraries
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
    log = make(tree, "-n")
    assert set(PROGRAMS) <= compiled(log)
    assert linked(log) == set(PROGRAMS)


def test_touching_a_header_of_the_runtime_rebuilds_the_programs(tree):
    (tree / "cpu/include/cuda_runtime.h").touch()
    assert set(PROGRAMS) <= compiled(make(tree, "-n"))


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
    (tree / "common/lib/extra.c").write_text(
        "int extra_function(void);\nint extra_function(void) { return 1; }\n"
    )
    make(tree)
    assert "extra.o" in run(tree, "ar", "t", "build/cpu/libcommon.a")
    (tree / "common/lib/extra.c").unlink()
    make(tree)
    assert "extra.o" not in run(tree, "ar", "t", "build/cpu/libcommon.a")


@pytest.mark.parametrize(
    "gone, come",
    [
        ("common/lib/extra.c", None),
        ("common/lib/extra.c", "common/lib/more.c"),
        ("tests/common/extra.c", "tests/common/extra.cu"),
        ("tests/common/extra.cu", "tests/common/extra.c"),
        ("chapter03/extra.cu", None),
        ("cpu/src/extra.cpp", "cpu/src/extra.c"),
    ],
)
def test_a_source_that_went_or_has_another_ending(tree, gone, come):
    """Objects of the old source do not stop the build, and are not used for the new source, which may have an older time."""
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
    """Dependency files are incomplete when the disk was full. That of the translator is one of them, so every program is
    translated again."""
    for path in "cu2cpp.d", "chapter03/hello_world.d", "common/lib/image.d":
        assert (tree / "build/cpu" / path).read_text()
        (tree / "build/cpu" / path).write_text("")
    assert compiled(make(tree)) == {*PROGRAMS, "cpu/cu2cpp.c", "common/lib/image.c"}
    assert not compiled(make(tree))
    (tree / "common/book.h").touch()
    assert set(PROGRAMS) <= compiled(make(tree, "-n"))


def test_jobs_make_no_difference(tree):
    """One job and four jobs build identical files. Both build in the same folder, because a program may contain its path. The
    libraries are archived again, and the programs are translated, compiled and linked again."""

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
    """Two makes wait for each other and print that they wait, and only one of them builds. The test holds the lock until both
    wait for it."""
    (tree / "chapter03/hello_world.cu").touch()
    with open(tree / "build/.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        makes = [
            subprocess.Popen(
                ["make", "BACKEND=cpu", "-j2"],
                cwd=tree,
                env=environment(),
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            for _ in range(2)
        ]
        for process in makes:
            assert process.stdout.readline().startswith("back end: ")
            assert process.stdout.readline() == "another make builds here: waiting until it is done\n"
    logs = [process.communicate(timeout=600)[0] for process in makes]
    assert [process.returncode for process in makes] == [0, 0], "\n".join(logs)
    assert sorted(len(linked(log)) for log in logs) == [0, 1]
    assert not linked(make(tree))


def test_the_translator_is_built_for_this_machine(tree, tmp_path):
    """CC stands for a compiler for another machine, whose programs cannot run here."""
    log = tmp_path / "calls"
    stand_in(tmp_path, "cross", 'for a; do [ "$a" != cpu/cu2cpp.c ] || exit 9; done; exec cc "$@"')
    stand_in(tmp_path, "host", 'echo "$*" >>%s; exec cc "$@"' % log)
    arguments = ["CC=%s" % (tmp_path / "cross"), "HOSTCC=%s" % (tmp_path / "host")]
    assert set(PROGRAMS) <= compiled(make(tree, *arguments))
    calls = log.read_text().splitlines()
    assert len(calls) == 1 and calls[0].endswith("cpu/cu2cpp.c")
    assert not compiled(make(tree, *arguments))
    assert "no C compiler for this machine (HOSTCC): nonesuch-cc: " in make(
        tree, "HOSTCC=nonesuch-cc", status=2
    )


@pytest.mark.skipif(not shutil.which("clang++"), reason="needs clang++, found none")
def test_clang_builds_without_a_warning(sources):
    """CPPFLAGS are given only to commands that preprocess; otherwise clang warns of unused flags. clang's warnings do not
    depend on the optimisation, except about `#pragma unroll`, which these programs do not have."""
    log = make(sources, "CC=clang", "CXX=clang++", "CPPFLAGS=-Inonesuch", *UNOPTIMISED)
    assert "warning" not in log.lower() and linked(log) == set(PROGRAMS)


def test_sections_are_watched_where_the_compiler_can(tree):
    """g++ watches the sections of __device__ variables with an option that clang++ refuses."""
    for compilers, there in (["CC=gcc", "CXX=g++"], True), (["CC=clang", "CXX=clang++"], False):
        if shutil.which(compilers[1].removeprefix("CXX=")):
            log = make(tree, "-n", "SANITIZE=address", *compilers)
            assert compiled(log) >= set(PROGRAMS)
            flags = (tree / "build/cpu-address/flags-cxx").read_text()
            assert (
                "-fsanitize-sections=cuda_device," in flags
            ) == there and "-D__SANITIZE_ADDRESS__=1" in flags


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
    assert set(PROGRAMS) <= compiled(make(tree, "-n", "BACKEND=gpu", "SMS=80", "NVCC=" + NVCC))


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


def test_other_folders_and_clean(sources, tmp_path):
    """Where the files go does not depend on what is in them, so a stand-in takes the place of the compilers."""
    empty = 'for a; do if [ "$o" ]; then : >"$a"; chmod +x "$a"; fi; o=; [ "$a" != -o ] || o=1; done'
    stand_in(tmp_path, "compiler", empty)
    before = set(sources.rglob("*"))
    compiler = tmp_path / "compiler"
    folders = ["BIN=programs", "BUILD=objects", f"CC={compiler}", f"CXX={compiler}"]
    make(sources, *folders, "chapter03/hello_world")
    assert {p.parts[len(sources.parts)] for p in set(sources.rglob("*")) - before} == {"programs", "objects"}
    assert os.access(sources / "programs/chapter03/hello_world", os.X_OK)
    (sources / "programs/mine").touch()
    make(sources, *folders, "clean")
    assert set(sources.rglob("*")) - before == {sources / "programs", sources / "programs/mine"}


def test_help_lists_what_there_is(tree):
    listed = set(re.findall(r"^make ([a-z]\S*)", make(tree, "help"), re.M))
    there = set(re.search(r"^TARGETS := (.*)", (ROOT / "Makefile").read_text(), re.M).group(1).split())
    assert {t for t in listed if "chapter" not in t} | {"all"} == there
    for target in listed:
        if not target.startswith(("profile-", "trace-")):  # need programs that this tree lacks
            needed = {
                "old": f"FILE={ROOT}/tests/old/heat.cu",
                "exercise": "chapter04",
                "grade": f"DIR={ROOT}",
            }
            make(tree, "-n", target, *([needed[target]] if target in needed else []))


def test_nobody_keeps_a_list_of_programs():
    programs = [line.split("\t")[0].split("/")[1] for line in run(ROOT, "scripts/programs.sh").splitlines()]
    for path in [
        ROOT / "Makefile",
        ROOT / ".ci/run",
        *(path for path in (ROOT / "scripts").iterdir() if path.is_file()),
        *(ROOT / ".github").rglob("*.yml"),
    ]:
        text = re.sub(r"^#:.*$", "", path.read_text(), flags=re.M)
        assert [p for p in programs if re.search(rf"\b{p}\b", text)] == [], path
