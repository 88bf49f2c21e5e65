# SPDX-License-Identifier: MIT
"""cucc, the compiler driver: nvcc's options, programs of several .cu, __CUDA_ARCH__, CMake and the installed copy."""
import itertools
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import helpers
import trees

pytestmark = [
    pytest.mark.backend("cpu"),
    pytest.mark.skipif(helpers.sanitized(), reason="cucc has a library of its own, without sanitizers"),
]
CUCC = helpers.ROOT / "cpu/cucc"
CLANG = "clang" in os.environ.get("CXX", "")


def environment(tmp_path, **more):
    """Temporary files go to tmp_path/temporary, which must be empty afterwards. CXX is the C++ compiler of the build."""
    (tmp_path / "temporary").mkdir(exist_ok=True)
    return trees.environment(TMPDIR=str(tmp_path / "temporary"), **more)


@pytest.fixture
def cucc(tmp_path, installed):
    """cucc("a.cu", "-o", "a", status=0) -> what it wrote to stderr. Runs the installed one in tmp_path, without optimising."""

    def cucc(*arguments, status=0, program=installed / "bin/cucc", **more):
        done = subprocess.run(
            [program, "-O0", *arguments],
            cwd=tmp_path,
            env=environment(tmp_path, **more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == status, done.stderr
        assert list((tmp_path / "temporary").iterdir()) == []
        return done.stderr

    return cucc


@pytest.fixture(scope="session")
def installed(once):
    """The folder of a copy that was installed by make and then moved. Nobody can write to it."""

    def install(folder):
        trees.run(helpers.ROOT, "make", "install", "PREFIX=/opt/cucc", f"DESTDIR={folder}/package")
        (folder / "package/opt/cucc").rename(folder / "moved here")
        for path in (folder / "moved here").rglob("*"):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & ~0o222)
        return folder / "moved here"

    return once("installed", install)


@pytest.fixture
def write(tmp_path):
    def write(**files):
        for name, text in files.items():
            stem, _, ending = name.rpartition("_")
            (tmp_path / f"{stem}.{ending}").write_text(text)

    return write


def output(tmp_path, program="program", status=0):
    done = subprocess.run([tmp_path / program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def test_every_declared_function_links(cucc, installed, tmp_path):
    """All functions of the runtime's and the driver's headers are in the library, by the names they have in C."""
    include = next(installed.rglob("cuda_cpu/api.h")).parents[1]
    headers = [include / "cuda_cpu/api.h", include / "cuda_cpu/graph.h", include / "cuda.h"]
    names = {
        name
        for header in headers
        for name in re.findall(r"^(?:cudaError_t|CUresult) (cu\w+)\(", header.read_text(), re.M)
    }
    names = {name for name in names if "Graphics" not in name}  # these need OpenGL
    assert len(names) > 250
    (tmp_path / "all.c").write_text(
        "#include <cuda.h>\nvoid *all[] = {%s};\n" % ", ".join(f"(void *){name}" for name in sorted(names))
    )
    subprocess.run(["gcc", "-c", "-I", include, "all.c"], cwd=tmp_path, check=True)
    (tmp_path / "main.cu").write_text('extern "C" void *all[]; int main() { return !all[0]; }')
    cucc("main.cu", "all.o", "-o", "program")
    assert output(tmp_path) == ""


TOOLKIT = Path(os.environ.get("CUDA_PATH", "/usr/local/cuda")) / "include"


def expanded(cell):
    """The names in a cell of the tables: `{a,b}` is either, and `*` is left."""
    for name in re.findall(r"`([^`]+)`", cell):
        parts = [re.split(",", p[1:-1]) if p[0] == "{" else [p] for p in re.findall(r"\{.*?\}|[^{]+", name)]
        yield from ("".join(choice) for choice in itertools.product(*parts))


@pytest.mark.skipif(not (TOOLKIT / "cuda_runtime_api.h").exists(), reason="no CUDA toolkit")
def test_the_tables_of_functions_are_complete():
    def declared(header, kind):
        names = re.findall(rf"{kind}\s+(cu\w+)\s*\(", (TOOLKIT / header).read_text())
        return {re.sub(r"(_v\d+)?(_pt[sd][sz])?$", "", name) for name in names}

    def words(*patterns):
        include = helpers.ROOT / "cpu/include"
        text = "".join(path.read_text() for pattern in patterns for path in include.glob(pattern))
        return set(re.findall(r"\bcu[\w]+(?=\()", text))

    text = (helpers.ROOT / "cpu/README.md").read_text().split("### Functions of CUDA 13")[1]
    runtime_table, driver_table = text.split("| of the driver |")
    cells = [
        [list(expanded(cell)) for cell in row.split("|")[1:3]] for row in runtime_table.split("\n| ")[2:]
    ]
    refused, patterns = ({name for row in cells for name in row[column]} for column in (0, 1))
    patterns = {pattern: re.compile(pattern.replace("*", r"\w*") + "$") for pattern in patterns}
    here = words("cuda_cpu/*.h", "cuda_*.h", "cooperative_groups.h")
    missing = declared("cuda_runtime_api.h", "CUDARTAPI") - here
    assert {name for name in missing if not any(p.match(name) for p in patterns.values())} == set()
    assert {
        p for p, compiled in patterns.items() if not any(compiled.match(name) for name in missing)
    } == set()
    sources = "".join(path.read_text() for path in (helpers.ROOT / "cpu/src").glob("*.cpp"))
    assert refused == set(
        re.findall(r"^cudaError_t (\w+)\([^{]*\{\n    return no_\w+\(__func__\);", sources, re.M)
    )

    cells = [[list(expanded(cell)) for cell in row.split("|")[1:3]] for row in driver_table.split("\n| ")[1:]]
    exist, refused = ({name for row in cells for name in row[column]} for column in (0, 1))
    assert exist | refused == declared("cuda.h", "CUDAAPI") & words("cuda.h")
    assert refused == set(re.findall(r"^REFUSED\((\w+)", sources, re.M))


# ---- options ----

SETTINGS = r"""
#include "here.h"
__global__ void k(int *p) { *p = A + B + FROM_HEADER + THERE; }
int main(int, char **argv) {
    int *d, h;
    cudaMalloc(&d, sizeof h);
    k<<<1, 1>>>(d);
    cudaMemcpy(&h, d, sizeof h, cudaMemcpyDeviceToHost);
#if !defined GONE && defined __NVCC__ && defined __CUDACC__ && __CUDACC_VER_MAJOR__ == 13 && CUDART_VERSION == 13000 && \
    defined __DRIVER_TYPES_H__ && defined __CUDA_RUNTIME_H__ && defined __CUDA_RUNTIME_API_H__ && __cplusplus > 201703 && \
    defined __CUDACC_EXTENDED_LAMBDA__ && !defined __CUDACC_RDC__ && __CUDA_ARCH_LIST__ == 750
    printf("%d %s\n", h, TEXT);
#endif
}
"""


def test_options_in_all_spellings(cucc, write, tmp_path):
    write(main_cu=SETTINGS, before_h="#include <cstdio>\n#define FROM_HEADER 100\n")
    (tmp_path / "with blank").mkdir()
    (tmp_path / "with blank/here.h").write_text("#define THERE 1000\n")
    (tmp_path / "options").write_text('-DA=1 --define-macro TEXT=\\"a\\ b\\"\n')
    cucc(
        *("@options", "main.cu", "-D", "B=10", "-DGONE", "-U=GONE", "-I", "with blank", "-include=before.h"),
        *(
            "--std",
            "c++20",
            "-arch=sm_120",
            "-gencode",
            "arch=compute_75,code=[sm_75,compute_75]",
            "--expt-extended-lambda",
        ),
        *(
            "-Xcompiler",
            "-Wall,-Werror",
            "-Xptxas=-v",
            "--ptxas-options",
            "-O3",
            "-lineinfo",
            "--use_fast_math",
            "-m64",
        ),
        *(
            "-maxrregcount",
            "32",
            "-lcudart",
            "-L/usr/local/cuda/lib64",
            "-cudart=static",
            "-Werror",
            "all-warnings",
        ),
        *("-MD", "-MT", "goal", "-MF", "main.d", "-Xlinker", "--as-needed", "--output-file=program"),
    )
    assert output(tmp_path) == "1111 a b\n"
    rule = (tmp_path / "main.d").read_text()
    assert rule.startswith("goal:") and "main.cu" in rule and "here.h" in rule


def test_linear_algebra_is_linked_as_openblas(cucc, write):
    write(main_cu="int main() { }\n")
    for libraries in ["-lcublas_static", "-lculibos"], ["-lcusparse", "-lcusolver"]:
        commands = cucc("--dryrun", "main.cu", *libraries, "-lm")
        assert " -lopenblas -lm" in commands and "-lcu" not in commands.replace("-lcuda", "")


def test_cufft_is_linked_as_fftw(cucc, write):
    write(main_cu="int main() { }\n")
    commands = cucc("--dryrun", "main.cu", "-lcufft", "-lm")
    assert " -lfftw3f -lm -lfftw3 " in commands and "-lcu" not in commands.replace("-lcuda", "")


def test_curand_is_in_the_runtime(cucc, write):
    write(
        main_cu="""#include <curand.h>
int main() {
    curandGenerator_t g;
    unsigned x;
    curandCreateGeneratorHost(&g, CURAND_RNG_PSEUDO_DEFAULT);
    return curandGenerate(g, &x, 1) || x != 3179217846;
}
"""
    )
    cucc("main.cu", "-lcurand", "-run")


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["main.cu", "-foo"], "unknown option '-foo'"),
        (["main.cu", "--foo=bar"], "unknown option '--foo=bar'"),
        ([], "no input files"),
        (["gone.cu"], "gone.cu: no such file"),
        (["main.txt"], "main.txt: do not know this kind of file"),
        (["main.cu", "-o"], "argument expected after '-o'"),
        (["main.cu", "-x", "fortran"], "-x fortran: must be"),
        (["main.cu", "-std=c++98"], "-std=c++98: must be"),
        (["main.cu", "-m32"], "-m32: only 64 bits"),
        (["main.cu", "-rdc=maybe"], "-rdc=maybe: must be true or false"),
        (["-ptx", "main.cu"], "-ptx: there is no code for a GPU here"),
        (["-c", "main.cu", "second.cu", "-o", "both.o"], "-o names one file, but there are 2 sources"),
        (["main.cu", "-lnppc"], "-lnppc: this library of NVIDIA's is not part of the CPU back end"),
        (["main.cu", "-ccbin", "no-such-compiler"], "no C++ compiler: no-such-compiler"),
        (["@gone"], "gone: cannot read this file of options"),
    ],
)
def test_what_is_refused_is_named_in_one_line(cucc, write, arguments, says):
    write(main_cu="int main() { }\n", second_cu="", main_txt="")
    message = cucc(*arguments, status=1)
    assert message.startswith("cucc: " + says) and message.count("\n") == 1


def test_an_error_is_shown_at_its_line_and_column(cucc, write, tmp_path):
    write(main_cu="__global__ void k(int *p, int n) { }\nint main() { k<<<1, 2>>>(nullptr, undeclared); }\n")
    message = cucc("main.cu", "-o", "program", status=1)
    assert "main.cu:2:35: error: " in message
    # g++ shows the line of the source, clang++ that of the translation.
    assert "k<<<1, 2>>>(nullptr, undeclared)" in message or CLANG
    assert not (tmp_path / "program").exists()


MISTAKES = """
__global__ void add(int *c, int a, int b) {
\t__shared__ int s[4]; *c = threadId.x + a; /* threadIdx */
    __syncthreads(); *c += bb;
}
int main() {
    int *d; float *f = 0; cudaMalloc(&d, sizeof d);
    add<<<1, 1>>>(d, 2);
    add<<<1, 1>>>(f, 2, 7); add<<<n, 1>>>(d, 2, 7);
    add<<<dim3(1, 2, 3, 4), 1>>>(*d, 2, 7);
    ad<<<1, 1>>>(d, 2, 7); add<<<1, d>>>(d, 2,
        e); HANDLE_ERROR(cudaFree(d));
    std::vector<int> v;
}
"""


@pytest.mark.skipif(CLANG, reason="the places and words are those of g++")
def test_common_mistakes_are_shown_where_they_are(cucc, write):
    write(main_cu=MISTAKES)
    message = re.sub("[‘’]", "'", cucc("-c", "main.cu", status=1))
    errors = re.findall(r"^main.cu:(\d+):(\d+): error: (.*)", message, re.M)
    rows = MISTAKES.expandtabs().split("\n")
    shown = [(rows[int(line) - 1][int(column) - 1 :][:8], text) for line, column, text in errors]
    for place, text in [
        ("threadId", "threadId"),
        ("bb;", "bb"),
        ("<<<1, 1>", "too few arguments"),
        ("f, 2, 7)", "cannot convert 'float*' to 'int*'"),
        ("n, 1>>>(", "'n' was not declared"),
        ("*d, 2, 7", "invalid conversion"),
        ("ad<<<1, ", "'ad' was not declared"),
        ("d>>>(d, ", "invalid conversion"),
        ("e); HAND", "'e' was not declared"),
        ("HANDLE_E", "'HANDLE_ERROR' was not declared"),
        ("vector<i", "'vector' is not a member of 'std'"),
    ]:
        assert any(at.startswith(place) and text in what for at, what in shown), (place, shown)
    assert any(line == "10" and "dim3" in what for line, _, what in errors)


@pytest.mark.skipif(not shutil.which("clang++"), reason="needs clang++, found none")
def test_lint_finds_what_only_nvcc_refuses(cucc, write):
    write(
        main_cu="#include <cstdio>\nint plus(int a) { return a + 1; }\n"
        '__global__ void k(int *p) { *p = plus(*p); printf("%d", *p); }\n'
        "void f(int) { }\nint main() { k<<<1, 1>>>(nullptr); k(nullptr); f<<<1, 1>>>(1); }\n"
    )
    lines = re.findall(r"^main.cu:(\d+):\d+: error", cucc("--lint", "main.cu", status=1), re.M)
    assert lines == ["3", "5", "5"]


@pytest.mark.skipif(not shutil.which("clang++"), reason="needs clang++, found none")
def test_the_libraries_headers_do_not_make_clang_warn(cucc, write, monkeypatch):
    """In a .cu their macros are expanded before clang++ reads them, so that it warns of more."""
    monkeypatch.setenv("CXX", "clang++")
    names = ["curand.h", "curand_kernel.h", "cusparse.h", "mma.h"]
    names += ["cublas_v2.h"] * helpers.has("CUBLAS") + ["cusolverDn.h"] * helpers.has("CUSOLVER")
    names += ["cufft.h"] * helpers.has("CUFFT")
    write(all_cu="".join(f"#include <{name}>\n" for name in names))
    assert cucc("-Wall", "-Wextra", "-c", "all.cu") == ""


@pytest.mark.skipif(not shutil.which("clang++"), reason="needs clang++, found none")
def test_clang_accepts_restrict_and_arguments_that_are_not_initialised(cucc, write, tmp_path, monkeypatch):
    """In `r`, only the value of the lane that the shuffle reads is set."""
    monkeypatch.setenv("CXX", "clang++")
    write(
        main_cu="""
        #include <cooperative_groups.h>
        #include <stdio.h>
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
            printf("%d %d\\n", p[32], p[33]);
        }
        """
    )
    cucc("-O2", "main.cu", "-o", "main")
    assert subprocess.run([tmp_path / "main"], capture_output=True, text=True).stdout == "11 165\n"


def test_an_interrupt_leaves_nothing_behind(installed, write, tmp_path):
    write(main_cu="int main() { }\n")
    slow = tmp_path / "slow"
    slow.write_text(
        "#!/bin/sh\ncase $1 in -dumpmachine) exec g++ -dumpmachine ;; esac\ntouch started\nexec sleep 60\n"
    )
    slow.chmod(0o755)
    process = subprocess.Popen(
        [installed / "bin/cucc", "-ccbin", slow, "main.cu"],
        cwd=tmp_path,
        env=environment(tmp_path),
        start_new_session=True,
        preexec_fn=helpers.default_signals,
    )
    while not (tmp_path / "started").exists():
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=60) not in (0, 1)
    assert list((tmp_path / "temporary").iterdir()) == []


# ---- several files ----

SHARED = """
#pragma once
#include <cstdio>
__constant__ float scale[2];
__device__ int calls;
__device__ float twice(float x);
__device__ float twice(float x) { atomicAdd(&calls, 1); return 2 * x * scale[0]; }
inline __device__ int index() { return blockIdx.x * blockDim.x + threadIdx.x; }
void second(float *p);
extern "C" float half(float x);
float three();
"""


def test_each_cu_has_device_variables_of_its_own(cucc, write, tmp_path):
    """What a header defines with __device__ or __constant__ is there once for each .cu, as with nvcc without -rdc=true."""
    write(
        shared_h=SHARED,
        a_cu='#include "shared.h"\n__global__ void k(float *p) { *p = twice(*p); }\n'
        "int main() { float s[2] = {3}, *p; int n; cudaMallocManaged(&p, 4); *p = half(2) * three();"
        " cudaMemcpyToSymbol(scale, s, sizeof s); k<<<1, 1>>>(p); cudaDeviceSynchronize(); second(p);"
        ' cudaMemcpyFromSymbol(&n, calls, 4); printf("%g %d\\n", *p, n); }\n',
        b_cu='#include "shared.h"\n__global__ void k2(float *p) { *p = twice(*p); }\n'
        "void second(float *p) { float s[2] = {10}; cudaMemcpyToSymbol(scale, s, sizeof s); k2<<<1, 1>>>(p);"
        " cudaDeviceSynchronize(); }\n",
        c_c="float half(float x) { int new = 2; return x / new; }\n",
        d_cpp="#include <cuda_runtime.h>\n#include <vector>\nint max(int a, int b) { return a > b ? a : b; }\n"
        "float three() { cudaFree(0); return std::vector<float>(3, 1).size(); }\n",
    )
    cucc("a.cu", "b.cu", "c.c", "d.cpp", "-o", "program", "-Xcompiler", "-Wall,-Wextra,-Werror")
    assert output(tmp_path) == "360 1\n"


KERNELS = """
#include "k.h"
__device__ int counter;
__constant__ int scale[4];
__device__ int square(int x) { return x * x + (int)threadIdx.x; }
__global__ void fill(int *p, int n) {
    __shared__ int s[64];
    s[threadIdx.x] = index();
    __syncthreads();
    if (index() < n)
        p[index()] = square(s[blockDim.x - 1 - threadIdx.x]) * scale[1];
    atomicAdd(&counter, 1);
}
"""
HEADER = """
#pragma once
extern __device__ int counter;
extern __constant__ int scale[4];
__device__ int square(int x);
__global__ void fill(int *p, int n);
inline __device__ int index() { return blockIdx.x * blockDim.x + threadIdx.x; }
"""
MAIN = """
#include <cstdio>
#include "k.h"
__global__ void more(int *p, int n) {
    if (index() < n)
        p[index()] += square(1);
    __syncthreads();
    atomicAdd(&counter, 1);
}
int main() {
    int *d, h[100], s[4] = {1, 3, 5, 7}, count, wrong = 0;
    cudaMalloc(&d, sizeof h);
    cudaMemcpyToSymbol(scale, s, sizeof s);
    fill<<<2, 64>>>(d, 100);
    more<<<2, 64>>>(d, 100);
    cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
    cudaMemcpyFromSymbol(&count, counter, sizeof count);
    for (int i = 0; i < 100; i++) {
        int t = i % 64, other = i - t + 63 - t;
        wrong += h[i] != (other * other + t) * 3 + 1 + t;
    }
    printf("%d wrong, %d calls\\n", wrong, count);
}
"""


def test_kernels_in_a_library(cucc, write, tmp_path):
    """Device functions and variables of other files with -rdc=true, also from a library, and with a program that is one .cu
    in the same command. Without it the linker does not find them, and cucc says why."""
    write(k_h=HEADER, k_cu=KERNELS, main_cu=MAIN)
    cucc("-dc", "k.cu")
    cucc("-lib", "k.o", "-o", "libk.a")
    cucc("-rdc=true", "main.cu", "-L.", "-lk", "-o", "program")
    assert output(tmp_path) == "0 wrong, 256 calls\n"
    cucc("-c", "k.cu")
    assert "only with -rdc=true" in cucc("main.cu", "k.o", "-o", "program", status=1)


def test_a_mixture_of_both_forms_is_refused(cucc, write, tmp_path):
    write(
        one_cu="__global__ void one() { }\nint main() { return 0; }\n", two_cu="__global__ void two() { }\n"
    )
    cucc("-keep", "one.cu", "-o", "program")
    output(tmp_path)
    cucc("-c", "two.cu")
    cucc("one.o", "two.o", "-o", "program")
    message = output(tmp_path, status=1)
    assert (
        message.count("\n") == 1
        and "one.cu is linked with two.cu, but was compiled as a program of one .cu" in message
    )


# ---- __CUDA_ARCH__ ----

ARCH = r"""
#include <cstdio>
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
__device__ int version() { return 6; }
#elif defined(__CUDA_ARCH__)
__device__ int version() { return 7; }
#endif
#ifdef __CUDA_ARCH__
#define WHERE 1
#else
#define WHERE 2
#endif
__host__ __device__ inline int where() {
#ifdef __CUDA_ARCH__
    return __CUDA_ARCH__;
#else
    return -1;
#endif
}
struct V {
    int x, y;
    __host__ __device__ V(int a) : x{a}, y(0)
    {
#if defined(__CUDA_ARCH__)
        x += 1000;
#endif
    }
    __host__ __device__ static constexpr int k(int a) { return a + WHERE; }
    template <class T> __host__ __device__ T operator()(T a) const { return a + WHERE; }
#ifdef __CUDA_ARCH__
    __device__ int only() { return 5; }
#else
    int only_host() { return 6; }
#endif
};
namespace n {
#ifdef __CUDA_ARCH__
__device__ const int table[2] = {3, 4};
#else
const int host_table[2] = {5, 6};
#endif
}
void host() { printf("host %d\n", WHERE); }
template <bool B> __global__ void __launch_bounds__(64 * WHERE) bounded(int *p) { p[3] += B - 1; }
__global__ void __launch_bounds__(64 * WHERE) k(int *p) {
#if __CUDA_ARCH__ >= 600
    p[0] = where();
#endif
    p[1] = V(1).x; p[2] = V(1)(2); p[3] = WHERE; p[4] = version(); p[5] = V(1).only(); p[6] = n::table[1]; p[7] = V::k(1);
}
int main() {
    int *p;
    cudaMallocManaged(&p, 8 * sizeof(int));
    k<<<1, 1>>>(p);
    bounded<true><<<1, 1>>>(p);
    cudaDeviceSynchronize();
    for (int i = 0; i < 8; i++)
        printf("%d ", p[i]);
    static_assert(V::k(4) == 6, "");
    printf("\n%d %d %d %d %d %d\n", where(), V(1).x, V(1)(2), V(1).only_host(), n::host_table[0], V::k(1));
    host();
}
"""


@pytest.mark.parametrize(
    "options, arch, version",
    [
        ([], 800, 7),
        (["-arch=sm_60"], 600, 6),
        (["-gencode=arch=compute_75,code=sm_75", "-arch", "sm_90"], 750, 7),
    ],
)
def test_cuda_arch(cucc, write, tmp_path, options, arch, version):
    """Device code sees __CUDA_ARCH__, host code does not, and a function for both has two bodies."""
    write(main_cu=ARCH)
    cucc("main.cu", "-o", "program", *options)
    assert output(tmp_path).splitlines() == [
        f"{arch} 1001 3 1 {version} 5 4 2 ",
        "-1 1 4 6 5 3",
        "host 2",
    ]


def test_what_cannot_differ_is_refused(cucc, write):
    for text in (
        "#ifdef __CUDA_ARCH__\nconst int N = 4;\n#else\n\nconst int N = 5;\n#endif\n",
        "void f() { auto l = [=] __device__ () { int x = 1;\n#ifdef __CUDA_ARCH__\nx = 2;\n#endif\nreturn x; }; }\n",
    ):
        write(main_cu=text + "int main() { }\n")
        message = cucc("-cuda", "main.cu", status=1)
        assert message.startswith("main.cu:") and message.count("\n") == 1 and "__CUDA_ARCH__" in message


# ---- CMake, make, the installed files ----


@pytest.mark.skipif(not shutil.which("cmake"), reason="needs cmake, found none")
def test_cmake(installed, write, tmp_path):
    write(k_h=HEADER, k_cu=KERNELS, main_cu=MAIN)
    (tmp_path / "CMakeLists.txt").write_text(
        """
cmake_minimum_required(VERSION 3.18)
project(program LANGUAGES CUDA)
add_library(k STATIC k.cu)
add_executable(program main.cu)
target_link_libraries(program k)
set_target_properties(k program PROPERTIES CUDA_SEPARABLE_COMPILATION ON)
"""
    )
    env = environment(tmp_path)
    for command in (
        [
            "cmake",
            "-B",
            "build",
            f"-DCMAKE_CUDA_COMPILER={installed}/bin/cucc",
            "-DCMAKE_BUILD_TYPE=Debug",
            ".",
        ],
        ["cmake", "--build", "build"],
    ):
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
    assert output(tmp_path, "build/program") == "0 wrong, 256 calls\n"


FRAGMENTS = """#include <mma.h>
using namespace nvcuda::wmma;
using namespace nvcuda::wmma::experimental::precision;
template <class T> using A = fragment<matrix_a, 16, 16, 16, T, row_major>;
template <class T> using B = fragment<matrix_b, 16, 16, 16, T, col_major>;
template <class T> using C = fragment<accumulator, 16, 16, 16, T>;
"""
NO_FRAGMENT = "nvcuda::wmma has no fragment of this use, shape, element type and layout"
NO_SUM = "mma_sync does not add products of this type to accumulators of this type"
NO_CALL = "no matching function for call to "


@pytest.mark.parametrize(
    "arguments, body, why",
    [
        *[
            (f"fragment<{f}> f", "f.x[0] = 0;", NO_FRAGMENT)
            for f in (
                "matrix_a, 8, 8, 16, half, row_major",
                "matrix_a, 16, 16, 16, float, row_major",
                "matrix_a, 16, 16, 16, char, row_major",
                "matrix_b, 16, 16, 16, half",
                "matrix_b, 16, 16, 16, half, half",
                "matrix_b, 16, 16, 16, precision::tf32, row_major",
                "matrix_b, 8, 8, 8, double, row_major",
                "matrix_a, 8, 8, 32, u4, col_major",
                "matrix_b, 8, 8, 128, b1, row_major",
                "accumulator, 16, 16, 16, half, row_major",
                "accumulator, 16, 16, 16, double",
                "accumulator, 16, 16, 8, half",
                "accumulator, 8, 8, 32, float",
                "half, 16, 16, 16, half, row_major",
            )
        ],
        ("A<half> a, B<half> b, C<int> c", "mma_sync(c, a, b, c);", NO_SUM),
        ("A<__nv_bfloat16> a, B<__nv_bfloat16> b, C<half> c", "mma_sync(c, a, b, c);", NO_SUM),
        ("A<signed char> a, B<signed char> b, C<float> c", "mma_sync(c, a, b, c);", NO_SUM),
        ("A<signed char> a, B<unsigned char> b, C<int> c", "mma_sync(c, a, b, c);", NO_CALL),
        ("A<half> a, A<half> b, C<half> c", "mma_sync(c, a, b, c);", NO_CALL),
        ("A<half> a, B<half> b, C<half> c", "mma_sync(c, a, b, c, true);", NO_CALL),
        ("A<half> a, const half *p", "load_matrix_sync(a, p, 16, mem_row_major);", NO_CALL),
        ("A<half> a, const float *p", "load_matrix_sync(a, p, 16);", NO_CALL),
        ("C<half> c, const half *p", "load_matrix_sync(c, p, 16);", "needs the layout of an accumulator"),
        ("A<half> a, half *p", "store_matrix_sync(p, a, 16, mem_row_major);", NO_CALL),
        (
            "fragment<matrix_a, 8, 8, 128, b1, row_major> a, fragment<matrix_b, 8, 8, 128, b1, col_major> b, "
            "fragment<accumulator, 8, 8, 128, int> c",
            "mma_sync(c, a, b, c);",
            "bits are multiplied by bmma_sync",
        ),
    ],
)
def test_matrices_that_cuda_lacks(tmp_path, arguments, body, why):
    """nvcc refuses these too."""
    (tmp_path / "main.cpp").write_text(f"{FRAGMENTS}void f({arguments}) {{ {body} }}\n")
    command = [os.environ.get("CXX", "g++"), "-std=gnu++17", "-D__CU2CPP__", "-include", "cuda_runtime.h"]
    command += ["-I", helpers.ROOT / "cpu/include", "-fsyntax-only", "main.cpp"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and why in done.stderr, done.stderr


@pytest.mark.skipif(not helpers.has("THRUST"), reason="needs libthrust-dev that the compiler accepts")
def test_thrust(cucc, tmp_path):
    source = helpers.ROOT / "tests/thrust.cu"
    assert cucc(source, "-Wall", "-Wextra", "-o", "program") == ""
    output(tmp_path)
    late = subprocess.run(
        [tmp_path / "program"], env={"CUDA_CPU_STREAMS": "late"}, capture_output=True, text=True, timeout=60
    )
    assert late.returncode == 0, late.stderr
    assert "because this program uses Thrust" in late.stderr
    # No toolkit's Thrust is in the way.
    cucc(source, "-M", "-o", "list")
    list_text = (tmp_path / "list").read_text().replace(str(helpers.ROOT), "").replace("\\ ", "_")
    folders = set(re.findall(r"(\S+)/thrust/", list_text))
    assert {folder for folder in folders if "/moved_here/" not in folder} == {"/usr/include"}


def test_the_installed_files(installed, tmp_path):
    """No file knows where the sources were. What is installed can be removed again."""
    files = [path for path in installed.rglob("*") if path.is_file()]
    names = {str(path.relative_to(installed)) for path in files}
    assert {
        "bin/cucc",
        "share/man/man1/cucc.1",
        "lib/cucc/bin/cu2cpp",
        "lib/cucc/include/cuda_runtime.h",
    } <= names
    assert [path for path in files if str(helpers.ROOT).encode() in path.read_bytes()] == []
    shutil.copytree(installed, tmp_path / "usr", symlinks=True)
    trees.run(tmp_path / "usr", "chmod", "-R", "u+w", ".")
    trees.run(helpers.ROOT, "make", "uninstall", "PREFIX=/usr", f"DESTDIR={tmp_path}")
    assert [path for path in (tmp_path / "usr").rglob("*") if not path.is_dir()] == []
    assert "is not installed" in trees.run(
        helpers.ROOT, "make", "uninstall", "PREFIX=/usr", f"DESTDIR={tmp_path}", status=2
    )


def test_a_library_with_sanitizers_lacks_the_race_detector(installed, tmp_path):
    """It defines functions of ThreadSanitizer, which newer compilers then refuse. A script stands in for the compilers."""
    fake = tmp_path / "compiler"
    fake.write_text(
        f"""#!/bin/sh
echo "$*" >>'{tmp_path}/log'
case $* in *-dumpmachine*) echo some-machine ;; esac
while [ $# -gt 0 ]; do [ "$1" != -o ] || : >"$2"; shift; done
"""
    )
    fake.chmod(0o755)
    (tmp_path / "a.cu").write_text("")
    env = environment(tmp_path, CXX=str(fake), HOSTCC=str(fake), XDG_CACHE_HOME=str(tmp_path / "cache"))
    for option, there in ("-fsanitize=address", False), ("-g", True):
        (tmp_path / "log").write_text("")
        subprocess.run(
            [installed / "bin/cucc", "-Xcompiler", option, "-c", "a.cu"],
            cwd=tmp_path,
            env=env,
            capture_output=True,
        )
        log = (tmp_path / "log").read_text()
        assert "/src/block.cpp" in log and ("/src/race.cpp" in log) == there, log


def test_the_manual_lists_every_option(installed):
    manual = (installed / "share/man/man1/cucc.1").read_text()
    named = set(re.findall(r"(?:Fl |, )(?!Fl )-?([\w-]+)", manual))
    options = set(re.findall(r"(?<![\w=-])--?([A-Za-z][\w-]*)", trees.run(helpers.ROOT, CUCC, "--help")))
    assert options - named == set()
    assert len(options) > 40


def test_programs_of_2010(cucc, tmp_path):
    """--legacy finds legacy.h and cutil.h among the installed headers."""
    text = (helpers.ROOT / "tests/old/textures.cu").read_text()
    (tmp_path / "old.cu").write_text("#include <cutil_inline.h>\n" + text)
    assert "cutil_inline.h" in cucc("-c", "old.cu", status=1)
    (tmp_path / "shuffle.cu").write_text("__global__ void k(int *p) { *p = __shfl(*p, 0); }\n")
    message = cucc("-c", "shuffle.cu", status=1)
    assert "shuffle.cu:1:" in message and "CUDA 13 does not have __shfl; with --legacy it is here" in message
    cucc("--legacy", "old.cu", "-o", "program")
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "textures: right\n", done.stderr
