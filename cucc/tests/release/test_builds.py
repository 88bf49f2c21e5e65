# SPDX-License-Identifier: MIT
"""What a release of cucc needs and a change does not: other compilers, sanitizers, CMake, the installed files, the tables
of functions in docs/limits.md."""
import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import test_conformance
import test_cucc
import test_split
import tools

needs_clang = pytest.mark.skipif(not shutil.which("clang++"), reason="needs clang++, found none")
needs_em = pytest.mark.skipif(
    not shutil.which("em++") or not shutil.which("node"), reason="needs em++ and node"
)
needs_cmake = pytest.mark.skipif(not shutil.which("cmake"), reason="needs cmake, found none")
TOOLKIT = Path(os.environ.get("CUDA_PATH", "/usr/local/cuda")) / "include"


@pytest.mark.parametrize("section", ["bfloat16", "double", "float", "warp"])
def test_optimised_functions_do_what_an_h200_does(tmp_path, section):
    test_conformance.test_functions_do_what_an_h200_does(tmp_path, section, "-O1")


# ---- libraries that are here in part ----


def test_headers_of_boost_without_its_libraries(tmp_path):
    header = tmp_path / "boost/context/detail/fcontext.hpp"
    header.parent.mkdir(parents=True)
    header.touch()
    compiler = tmp_path / "g++"
    missing = '*-print-file-name=libboost_context*) echo "${1#*=}" ;;'
    compiler.write_text(
        f'#!/bin/sh\ncase "$*" in {missing} *) exec {os.environ.get("CXX", "g++")} "$@" ;; esac\n'
    )
    compiler.chmod(0o755)
    settings = f"CXX={compiler}", f"BUILD={tmp_path}"
    made = tools.execute("make", "-C", tools.ROOM, "-pn", *settings, env={"CPATH": tmp_path})
    assert re.search("^LINKED := $", made.out, re.M)
    assert "BOOST" not in re.search("^FOUND := (.*)", made.out, re.M)[1]


# ---- clang++ ----


@needs_clang
def test_lint_finds_what_only_nvcc_refuses(tmp_path):
    text = (
        "#include <cstdio>\nint plus(int a) { return a + 1; }\n"
        '__global__ void k(int *p) { *p = plus(*p); printf("%d", *p); }\n'
        "void f(int) { }\nint main() { k<<<1, 1>>>(nullptr); k(nullptr); f<<<1, 1>>>(1); }\n"
    )
    done = tools.compiled(tmp_path, text, "--lint", status=1)
    assert re.findall(r"^main.cu:(\d+):\d+: error", done.err, re.M) == ["3", "5", "5"]


@needs_clang
def test_the_libraries_headers_do_not_make_clang_warn(tmp_path):
    """In a .cu their macros are expanded before clang++ reads them, so that it warns of more."""
    names = ["curand.h", "curand_kernel.h", "cusparse.h", "mma.h"]
    libraries = {"cublas": "cublas_v2.h", "cusolver": "cusolverDn.h", "cufft": "cufft.h"}
    names += [header for library, header in libraries.items() if tools.has(library)]
    text = "".join(f"#include <{name}>\n" for name in names)
    done = tools.compiled(tmp_path, text, "-Wall", "-Wextra", "-c", CXX="clang++")
    assert done.err == "", str(done)


APPEND = """
#include <cooperative_groups.h>
__device__ int add_for_all(int *sum) {
    auto group = cooperative_groups::coalesced_threads();
    int r;
    if (group.thread_rank() == 0)
        r = atomicAdd(sum, group.size());
    return group.shfl(r, 0) + group.thread_rank();
}
template <class T> __global__ void append(const T *__restrict__ in, T *__restrict__ const out, int *sum) {
    if (in[threadIdx.x] % 3 == 0)
        out[add_for_all(sum)] = in[threadIdx.x];
}
int main() {
    int *p;
    cudaMallocManaged(&p, 100 * sizeof(int));
    for (int i = 0; i < 100; i++)
        p[i] = i < 32 ? i : 0;
    append<<<1, 32>>>(p, p + 40, p + 32);
    cudaDeviceSynchronize();
    for (int i = 40; i < 51; i++)
        p[33] += p[i];
    return p[32] != 11 || p[33] != 165;
}
"""


@needs_clang
def test_clang_accepts_restrict_and_arguments_that_are_not_initialised(tmp_path):
    """In `r`, only the value of the lane that the shuffle reads is set."""
    tools.compiled(tmp_path, APPEND, "-O2", "-run", CXX="clang++")


# ---- em++: programs for WebAssembly, which node runs. They print what the same programs print here ----

IN_WEBASSEMBLY = r"""
#include <cstdio>
#include <pthread.h>

__constant__ int factor;
__device__ unsigned total;
extern __shared__ int tree[];

__global__ void sum(int *out) {
    const unsigned t = threadIdx.x;
    tree[t] = factor * t;
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        tree[t] += t < half ? tree[t + half] : 0;
    }
    atomicAdd(&total, __shfl_xor_sync(~0u, t, 5));
    out[blockIdx.x] = tree[0];
}

__global__ void wide(double a, unsigned long long b, uchar4 c) { printf("%g\n", a + b + c.x); }

void *in_a_thread(void *value) { return (char *)value + 1; }

int main(int argc, char **argv) {
    int *out, sums[3], scale = 2;
    unsigned all;
    cudaMalloc(&out, sizeof sums);
    cudaMemcpyToSymbol(factor, &scale, sizeof scale);
    sum<<<3, 1024, 1024 * sizeof(int)>>>(out);
    cudaMemcpy(sums, out, sizeof sums, cudaMemcpyDeviceToHost);
    cudaMemcpyFromSymbol(&all, total, sizeof all);
    void *arguments[] = {new double(0.5), new unsigned long long(40), new uchar4{2, 0, 0, 0}}, *back;
    cudaLaunchKernel(wide, dim3(1), dim3(1), arguments, 0, 0);
    cudaFuncAttributes attributes;
    const cudaError_t error = cudaFuncGetAttributes(&attributes, (const void *)~0ul);
    pthread_t thread;
    pthread_create(&thread, NULL, in_a_thread, argv);
    pthread_join(thread, &back);
    printf("%d %u %s %d", sums[2], all, cudaGetErrorName(error), (char *)back == (char *)argv + 1);
    return argc;
}
"""


@needs_em
def test_the_same_in_webassembly(tmp_path):
    (tmp_path / "sum.cu").write_text(IN_WEBASSEMBLY)
    # with -G the threads of sum() are fibers
    for arguments in ["-o", "sum"], ["-ccbin", "em++", "-O1", "-G", "-o", "sum.js"]:
        tools.cucc("sum.cu", *arguments, cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sum", "sum.cu", "sum.js"]
    here = tools.execute(tmp_path / "sum", "a", "b", env={"CUDA_CPU_WORKERS": "1"}, status=3)
    there = tools.execute("node", tmp_path / "sum.js", "a", "b", status=3)
    # the last line has no end; node adds it
    assert f"{here.out}\n" == there.out, str(there)
    assert "42.5\n1047552 1571328 cudaErrorInvalidDeviceFunction 1" in here.out, str(here)


@needs_em
def test_an_error_in_a_kernel_ends_a_program_in_webassembly(tmp_path):
    source = "__global__ void wrong() { __trap(); }\nint main() { wrong<<<1, 4>>>(); return cudaDeviceSynchronize(); }\n"
    tools.compiled(tmp_path, source, "-ccbin", "em++", "-O1", "-o", "wrong.js")
    done = tools.execute("node", "wrong.js", cwd=tmp_path, status=1)
    assert done.err == "cuda on the CPU: __trap() at main.cu:1\n"


# ---- nvcc ----


@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
@pytest.mark.parametrize(
    "source", sorted((tools.HERE / "constructs").glob("*.cu")), ids=lambda path: path.stem
)
def test_nvcc_accepts_the_constructs(tmp_path, source):
    """Only its front end, without code for a GPU"""
    standard = "-std=c++20" if source.stem == "cxx20" else "-std=c++17"
    options = "-w", "--extended-lambda", "-rdc=true", "-arch=compute_90", "-ptx", standard
    tools.execute("nvcc", *options, "-o", tmp_path / "out", source)


# ---- sanitizers ----

SANITIZERS = "-g", "-Xcompiler", "-fsanitize=address,undefined"


@pytest.mark.parametrize(
    "name", "atomics device graph launch memory nested_launches nested_waits visible_devices warp".split()
)
def test_units_with_sanitizers(unit, name):
    result = tools.execute(unit(name, *SANITIZERS), timeout=600)
    assert result.err == "", str(result)


def test_sanitizers_follow_single_threads(tmp_path):
    """Kernels are not split at their barriers."""
    test_split.test_debuggers_and_detectors_follow_single_threads(tmp_path, SANITIZERS, False)


@pytest.mark.parametrize("what", ["global", "static", "dynamic", "variable", "barrier"])
def test_address_sanitizer_names_the_line(unit, what):
    source = (tools.HERE / "units/bounds.cu").read_text().splitlines()
    line = next(i for i, text in enumerate(source, 1) if text.endswith(f"// line: {what}"))
    program = unit("bounds", *SANITIZERS)
    tools.execute(program, "within_bounds")
    result = tools.execute(program, "past", env={"PAST": what}, status=None)
    if what == "variable":  # see docs/execution.md
        assert result.status == 0 or f"bounds.cu:{line}" in result.err, str(result)
        return
    assert result.status != 0
    # UndefinedBehaviorSanitizer reports arrays of known length first.
    assert re.search(
        rf"AddressSanitizer.*#0 [^\n]*bounds\.cu:{line}\b|bounds\.cu:{line}:\d+: runtime error: index",
        result.err,
        re.S,
    ), str(result)


# ---- CMake, the installed files ----


@pytest.fixture(scope="module")
def installed(once):
    """The folder of a copy that was installed by make and then moved. Nobody can write to it, and its sources are gone."""

    def install(folder):
        shutil.copytree(tools.ROOM, folder / "clone", ignore=shutil.ignore_patterns("build", "__pycache__"))
        where = "PREFIX=/opt/cucc", f"DESTDIR={folder}/package"
        tools.execute("make", "-C", folder / "clone", "-j2", "install", *where, timeout=600)
        shutil.rmtree(folder / "clone")
        (folder / "package/opt/cucc").rename(folder / "moved here")
        for path in (folder / "moved here").rglob("*"):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & ~0o222)
        return folder / "moved here"

    return once("installed", install)


def test_the_installed_files(installed, tmp_path):
    """No file knows where the sources were. What is installed can be removed again."""
    files = [path for path in installed.rglob("*") if path.is_file()]
    names = {str(path.relative_to(installed)) for path in files}
    assert "bin/cucc" in names
    manual = (installed / "share/man/man1/cucc.1").read_text().replace("\\", "")
    assert tools.cucc("--help").out in manual and "@" not in manual.replace("@FILE", "")
    assert any(name.endswith("/cu2cpp") for name in names) and any(
        name.endswith("/cuda_runtime.h") for name in names
    )
    assert [path for path in files if str(installed.parent / "clone").encode() in path.read_bytes()] == []
    shutil.copytree(installed, tmp_path / "usr", symlinks=True)
    subprocess.run(["chmod", "-R", "u+w", tmp_path / "usr"], check=True)
    tools.execute("make", "-C", tools.ROOM, "uninstall", "PREFIX=/usr", f"DESTDIR={tmp_path}")
    assert [path for path in (tmp_path / "usr").rglob("*") if not path.is_dir()] == []


def test_the_installed_cucc_builds_its_library_with_a_sanitizer(installed, tmp_path):
    """With the one that the tests above, which have the other two, cannot have."""
    source = tools.HERE / "units/bounds.cu"
    command = installed / "bin/cucc", source, "-o", "bounds", "-Xcompiler", "-fsanitize=thread"
    tools.execute(*command, cwd=tmp_path, env={"XDG_CACHE_HOME": tmp_path}, timeout=600)
    tools.execute(tmp_path / "bounds", "within_bounds")


def test_the_installed_cucc_passes_the_tests_of_the_driver(installed, tmp_path):
    """Those of options, libraries, files that are linked, and programs of 2010. The messages are the script's, which is the same."""
    options = "-q", "-p", "no:xdist", "-p", "no:cacheprovider", f"--basetemp={tmp_path}/tests"
    options += "-k", "version or librar or declared or options or linked or arch or old"
    tests = "-m", "pytest", *options, tools.HERE / "test_cucc.py"
    env = {"CUCC": installed / "bin/cucc", "XDG_CACHE_HOME": tmp_path}
    done = tools.execute(sys.executable, *tests, cwd=tools.ROOM, env=env, timeout=600)
    assert " passed" in done.out, str(done)


def build_with_cmake(folder, project, *options, env=None):
    """Builds test_cucc.LIBRARY with the text `project` of CMakeLists.txt, and runs it."""
    for name, text in test_cucc.LIBRARY.items():
        (folder / ".".join(name.rsplit("_", 1))).write_text(text)
    (folder / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.18)\n{project}")
    for command in ["-B", "build", *options, "."], ["--build", "build"]:
        tools.execute("cmake", *command, cwd=folder, env=env, timeout=600)
    assert tools.execute(folder / "build/program").out == "0 wrong, 256 calls\n"


@needs_cmake
def test_cmake(installed, tmp_path):
    project = """
project(program LANGUAGES CXX)
find_package(cucc 1.0 REQUIRED)
enable_language(CUDA)
add_library(k STATIC k.cu)
add_executable(program main.cu)
find_package(CUDAToolkit REQUIRED)
target_link_libraries(program k CUDA::curand $<TARGET_NAME_IF_EXISTS:CUDA::nvToolsExt> cusparse)
set_target_properties(k program PROPERTIES CUDA_SEPARABLE_COMPILATION ON)
"""
    build_with_cmake(tmp_path, project, f"-DCMAKE_PREFIX_PATH={installed}", "-DCMAKE_BUILD_TYPE=Debug")


@needs_cmake
def test_the_cuda_module_of_cmake(installed, tmp_path):
    """find_package(CUDA), which CMake had before it knew CUDA as a language."""
    project = """
project(program LANGUAGES C CXX)
find_package(CUDA REQUIRED)
set(CUDA_SEPARABLE_COMPILATION ON)
cuda_add_executable(program main.cu k.cu)
target_link_libraries(program ${CUDA_curand_LIBRARY})
"""
    toolkit = tools.execute(installed / "bin/cucc", "--toolkit").out.strip()
    build_with_cmake(tmp_path, project, env={"CUDA_PATH": toolkit})


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="needs pkg-config, found none")
def test_pkg_config(installed, tmp_path):
    (tmp_path / "main.c").write_text("#include <cuda_runtime.h>\nint main(void) { return cudaFree(0); }\n")
    command = 'pkg-config --modversion cucc && eval "cc main.c $(pkg-config --cflags --libs cucc)" && ./a.out'
    env = {"PKG_CONFIG_PATH": str(installed / "lib/pkgconfig")}
    done = tools.execute("sh", "-c", command, cwd=tmp_path, env=env)
    assert done.out == (tools.ROOM / "VERSION").read_text()


def test_completion(installed):
    """The options of --help; for other words the function finds nothing, and bash completes the names of files."""
    complete = 'source "$0/share/bash-completion/completions/cucc"; _cucc "$0/bin/cucc" "$1" cucc; echo ${COMPREPLY[*]}'
    for word, found in ("--le", "--legacy\n"), ("-M", "-M -MM -MD -MMD -MP -MF -MT\n"), ("a", "\n"):
        assert tools.execute("bash", "-c", complete, installed, word).out == found


# ---- the tables of functions in docs/limits.md ----


def expanded(cell):
    """The names in a cell of the tables: `{a,b}` is either, and `*` is left."""
    for name in re.findall(r"`([^`]+)`", cell):
        parts = [re.split(",", p[1:-1]) if p[0] == "{" else [p] for p in re.findall(r"\{.*?\}|[^{]+", name)]
        yield from ("".join(choice) for choice in itertools.product(*parts))


@pytest.mark.skipif(not (TOOLKIT / "cuda_runtime_api.h").exists(), reason="no CUDA toolkit")
def test_the_tables_of_functions_are_complete(tmp_path):
    def declared(header, kind):
        names = re.findall(rf"{kind}\s+(cu\w+)\s*\(", (TOOLKIT / header).read_text())
        return {re.sub(r"(_v\d+)?(_pt[sd][sz])?$", "", name) for name in names}

    include = tools.ROOM / "include"
    preprocessed = tools.compiled(tmp_path, "#include <cuda.h>\n", "-E").out  # also what lists declare

    def words(*patterns):
        text = "".join(path.read_text() for pattern in patterns for path in include.glob(pattern))
        return set(re.findall(r"\bcu\w+(?= ?\()", text + preprocessed))

    text = (tools.ROOM / "docs/limits.md").read_text().split("## Functions of CUDA 13")[1].split("\n## ")[0]
    runtime_table, driver_table = text.split("| of the driver |")
    cells = [
        [list(expanded(cell)) for cell in row.split("|")[1:3]] for row in runtime_table.split("\n| ")[2:]
    ]
    refused, patterns = ({name for row in cells for name in row[column]} for column in (0, 1))
    patterns = {pattern: re.compile(pattern.replace("*", r"\w*") + "$") for pattern in patterns}
    missing = declared("cuda_runtime_api.h", "CUDARTAPI") - words(
        "cuda_cpu/*.h", "cuda_*.h", "cooperative_groups.h"
    )
    assert {name for name in missing if not any(p.match(name) for p in patterns.values())} == set()
    assert {
        p for p, compiled in patterns.items() if not any(compiled.match(name) for name in missing)
    } == set()
    refuses = r"^ +(?:CLUSTERS|PROCESSES|EXTERNAL)\((cuda\w+),"
    assert refused == set(re.findall(refuses, (include / "cuda_cpu/api.h").read_text(), re.M))

    rows = driver_table.split("\n\n")[0].split("\n| ")[1:]
    exist = {name for row in rows for name in expanded(row.split("|")[1])}
    assert exist == declared("cuda.h", "CUDAAPI") & words("cuda.h")
