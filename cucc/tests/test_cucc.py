# SPDX-License-Identifier: MIT
"""cucc, the compiler driver: nvcc's options, messages, programs of several .cu, __CUDA_ARCH__, old programs."""
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

import tools


@pytest.fixture
def write(tmp_path):
    """write(main_cu="…") writes main.cu."""

    def write(**files):
        for name, text in files.items():
            stem, _, ending = name.rpartition("_")
            (tmp_path / f"{stem}.{ending}").write_text(text)

    return write


@pytest.fixture
def cucc(tmp_path):
    """cucc("a.cu", "-o", "a", status=0) -> what it wrote to stderr. Runs in tmp_path, without optimising, and must leave no
    temporary files."""
    (tmp_path / "temporary").mkdir()

    def cucc(*arguments, status=0):
        env = {"TMPDIR": str(tmp_path / "temporary")}
        done = tools.cucc("-O0", *arguments, cwd=tmp_path, env=env, status=status)
        assert list((tmp_path / "temporary").iterdir()) == []
        return done.err

    return cucc


@pytest.fixture
def output(tmp_path):
    """output() -> stdout and stderr of tmp_path/program, together"""

    def output(status=0):
        done = tools.execute(tmp_path / "program", cwd=tmp_path, status=status)
        return done.out + done.err

    return output


@pytest.mark.parametrize("option, compiler", [("-fatbin", "g++"), ("-cubin", "clang++")])
def test_modules(write, cucc, tmp_path, option, compiler):
    """A module that a program loads twice, with names of the program; files that end early"""
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}")
    write(
        module_cu="""
__device__ int total = 3;
extern "C" __global__ void add(int *x, short n, double d) {
    __shared__ int all[64];
    all[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = all[63 - threadIdx.x] + n + (int)d;
    if (threadIdx.x == 0) total++;
}
""",
        main_cu="""#include <cuda.h>
#include <cstdio>
#include <fstream>
int total;
extern "C" __global__ void add(int *x, short, double) { *x = -1; }
int main(int, char **arguments) {
    CUcontext context; CUmodule modules[2]; CUfunction f; CUdeviceptr x, total; int size, y[64]; size_t bytes;
    std::ifstream file(arguments[1], std::ios::binary);
    std::string image{std::istreambuf_iterator<char>(file), {}};
    cuInit(0); cuCtxCreate(&context, 0, 0);
    printf("%d ", cuModuleLoadData(&modules[0], image.data()) + cuModuleLoad(&modules[1], arguments[1]));
    cuMemAlloc(&x, sizeof y); cuMemsetD32(x, 5, 64);
    for (int i = 0; i < 6; i++) {
        short n = 2; double d = 10; void *parameters[] = {&x, &n, &d};
        printf("%d", cuModuleGetFunction(&f, modules[i / 4], "add"));
        printf("%d", cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr));
    }
    cuMemcpyDtoH(y, x, sizeof y);
    printf(" %d %d", y[0], y[63]);
    for (CUmodule m : modules) {
        cuModuleGetGlobal(&total, &bytes, m, "total"); cuMemcpyDtoH(&size, total, bytes);
        printf(" %d", size);
    }
    printf(" %d %d", cuModuleGetFunction(&f, modules[0], "printf"), cuModuleGetGlobal(&total, &bytes, modules[0], "add"));
    for (size_t part : {size_t(0), size_t(3), image.size() / 2}) {
        std::ofstream("part", std::ios::binary).write(image.data(), part);
        printf(" %d", cuModuleLoad(&modules[0], "part"));
    }
    printf(" %d", cuModuleLoadData(&modules[0], "no image, but text that is longer than its first words"));
    printf(" %d", cuModuleLoad(&modules[0], "missing"));
}
""",
    )
    cucc("-ccbin", compiler, option, "module.cu", "-o", "module.image")
    cucc("-ccbin", compiler, "main.cu", "-o", "program", "-lcuda")
    done = tools.execute(tmp_path / "program", "module.image", cwd=tmp_path)
    assert done.out == "0 000000000000 77 77 7 5 500 500 200 200 200 200 301"


def test_every_declared_function_links(cucc, output, tmp_path):
    """All functions of the runtime's and the driver's headers are in the library, by the names they have in C."""
    (tmp_path / "api.c").write_text("#include <cuda.h>\n")
    cucc("-E", "api.c", "-o", "api.i")
    declared = re.findall(r"\b(?:cudaError_t|CUresult) (cu\w+) ?\(", (tmp_path / "api.i").read_text())
    names = sorted(name for name in set(declared) if "Graphics" not in name)  # those need OpenGL
    assert len(names) > 250
    addresses = ", ".join(f"(void *){name}" for name in names)
    (tmp_path / "all.c").write_text(f"#include <cuda.h>\nvoid *all[] = {{{addresses}}};\n")
    (tmp_path / "main.cu").write_text('extern "C" void *all[]; int main() { return !all[0]; }')
    cucc("main.cu", "all.c", "-o", "program")
    assert output() == ""


# ---- options ----


def test_version():
    """The version of cucc, then the words by which CMake recognises nvcc."""
    version = (tools.ROOM / "VERSION").read_text()
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", version)
    for option in "--version", "-V":
        lines = tools.cucc(option).out.splitlines()
        assert lines[0].startswith(f"cucc {version.strip()}: ")
        assert lines[0].endswith("nvcc: NVIDIA (R) Cuda compiler driver")
        assert ", release 13.0, V13.0." in lines[1]


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


def test_options_in_all_spellings(cucc, write, output, tmp_path):
    write(main_cu=SETTINGS, before_h="#include <cstdio>\n#define FROM_HEADER 100\n")
    (tmp_path / "with blank").mkdir()
    (tmp_path / "with blank/here.h").write_text("#define THERE 1000\n")
    (tmp_path / "options").write_text('-DA=1 --define-macro TEXT="\\"a b\\""\n')
    cucc(
        *("@options", "main.cu", "-D", "B=10", "-DGONE", "-U=GONE", "-I", "with blank", "-include=before.h"),
        *("--std", "c++20", "-arch=sm_120", "-gencode", "arch=compute_75,code=[sm_75,compute_75]"),
        *("--expt-extended-lambda", "-Xcompiler", "-Wall,-Werror", "-Xptxas=-v", "--ptxas-options", "-O3"),
        *("-lineinfo", "--use_fast_math", "-m64", "-maxrregcount", "32", "-lcudart"),
        *("-L/usr/local/cuda/lib64", "-cudart=static", "-Werror", "all-warnings"),
        *("-MD", "-MT", "goal", "-MF", "main.d", "-Xlinker", "--as-needed", "--output-file=program"),
    )
    assert output() == "1111 a b\n"
    rule = (tmp_path / "main.d").read_text()
    assert rule.startswith("goal:") and "main.cu" in rule and "here.h" in rule


USES = {
    "cublas": ("cublas_v2.h", "cublasHandle_t h; cublasCreate(&h)"),
    "cufft": ("cufft.h", "cufftHandle p; cufftPlan1d(&p, 8, CUFFT_Z2Z, 1); cufftPlan1d(&p, 8, CUFFT_C2C, 1)"),
    "cusparse": ("cusparse.h", "cusparseHandle_t h; cusparseCreate(&h)"),
    "nvidia-ml": ("nvml.h", "nvmlInit()"),
    "nvToolsExt": ("nvToolsExt.h", 'nvtxRangePushA("x")'),
}


def test_libraries_may_stand_before_sources(cucc, write, output, tmp_path):
    """Those of another toolkit are not taken, although its folder is named first."""
    names = [name for name in USES if name not in tools.LIBRARIES or tools.has(name)]
    headers = "".join(f"#include <{USES[name][0]}>\n" for name in names)
    for name in names:
        (tmp_path / f"lib{name}.so").write_text("not a library\n")
    write(main_cu=headers + "int main() {" + "".join(f"{{ {USES[name][1]}; }}\n" for name in names) + "}\n")
    cucc("-L.", *[f"-l{name}" for name in names], "main.cu", "-o", "program")
    assert output() == ""


def test_a_program_of_c_is_linked_by_the_c_compiler(cucc, write, output, tmp_path):
    write(
        main_c="int run(int); int main() { return run(6) != 42; }\n",
        run_cu="#include <string>\n__constant__ int factor; __global__ void k(int *p) { *p *= factor; }\n"
        'extern "C" int run(int n) { int *p, f = 7; cudaMallocManaged(&p, sizeof *p); *p = n;'
        ' cudaMemcpyToSymbol("factor", &f, sizeof f); k<<<1, 1>>>(p);'
        " cudaDeviceSynchronize(); return *p + std::string().size(); }\n",
    )
    cucc("--legacy", "-c", "run.cu")  # with --legacy a string may name a variable
    folder = tools.cucc("--toolkit").out.strip() + "/lib64"
    for libraries in (
        [f"-L{folder}", "-lcudart"],
        [f"{folder}/libcudart.so"],
        [f"-L{folder}", "-lcudart_static"],
    ):
        tools.execute("gcc", "main.c", "run.o", *libraries, "-o", "program", cwd=tmp_path)
        tools.execute(tmp_path / "program")


def test_what_is_refused_is_named_in_one_line(cucc, write, tmp_path):
    write(main_cu="int main() { }\n", second_cu="", main_txt="")
    (tmp_path / "link.cu").symlink_to("main.cu")
    for arguments, says in [
        ("main.cu -foo", "unknown option '-foo'"),
        ("main.cu --foo=bar", "unknown option '--foo=bar'"),
        ("", "no input files"),
        ("gone.cu", "gone.cu: no such file"),
        ("main.txt", "main.txt: do not know this kind of file"),
        ("main.cu -o", "argument expected after '-o'"),
        ("main.cu -x fortran", "-x fortran: must be"),
        ("main.cu -std=c++98", "-std=c++98: must be"),
        ("main.cu -m32", "-m32: only 64 bits"),
        ("main.cu -o main.cu", "main.cu: the output would overwrite this source"),
        ("-c main.cu -o ./main.cu", "./main.cu: the output would overwrite this source"),
        ("-cuda main.cu -o link.cu", "link.cu: the output would overwrite this source"),
        ("-fatbin link.cu -o main.cu", "main.cu: the output would overwrite this source"),
        ("-c main.cu -MD -MF main.cu", "main.cu: the output would overwrite this source"),
        ("main.cu -o=", "-o: the output's name is empty"),
        ("main.cu -O10", "-O10: must be 0 to 4"),
        ("main.cu -arch=", "Unsupported gpu architecture ''"),
        ("main.cu -arch=sm_zz", "Unsupported gpu architecture 'sm_zz'"),
        ("main.cu -arch=sm_9", "Unsupported gpu architecture 'sm_9'"),
        ("main.cu -arch=sm_80,sm_90", "Unsupported gpu architecture 'sm_80,sm_90'"),
        ("main.cu -gencode foo", "'foo' is not in 'keyword=value' format"),
        ("main.cu -gencode arch=compute_80", "Option '--generate-code arch=compute_80', missing code"),
        ("main.cu -gencode code=sm_80", "Option '--generate-code code=sm_80', missing architecture"),
        ("main.cu -gencode arch=compute_80,code=[sm_80,sm_8000]", "Unsupported gpu architecture 'sm_8000'"),
        ("main.cu -rdc=maybe", "-rdc=maybe: must be true or false"),
        ("-ptx main.cu", "-ptx: there is no code for a GPU here"),
        ("-c main.cu second.cu -o both.o", "-o names one file, but there are 2 sources"),
        ("main.cu -lnppc", "-lnppc: this library of NVIDIA's is not part of the CPU back end"),
        ("main.cu -ccbin no-such-compiler", "no C++ compiler: no-such-compiler"),
        ("main.cu --check -Xcompiler -fsanitize=address", "--check does not go with -fsanitize"),
        ("@gone", "gone: cannot read this file of options"),
    ]:
        message = cucc(*arguments.split(), status=1)
        assert message.startswith("cucc: " + says) and message.count("\n") == 1
    assert (tmp_path / "main.cu").read_text() == "int main() { }\n"


def test_what_only_nvcc_refuses_is_a_warning(cucc, write):
    """Without one: all that nvcc 13.0 accepts."""
    write(main_cu="int main() { }\n")
    for arguments in (
        "-arch=native | -arch=all-major | -arch=lto_80 | -arch sm_90a | -arch=sm_100f | -arch=compute_80 -code=sm_80,sm_86 | -O4 |"
        "-gencode arch=compute_80,code=[sm_80,compute_80] | -gencode=arch=compute_80,code=sm_80 | -Xfatbin -compress-all |"
        "-Xcudafe --diag_suppress=1 | -clean | -fdevice-time-trace trace | -std=c++20"
    ).split("|"):
        assert cucc("-E", "main.cu", "-o", "main.ii", *arguments.split()) == "", arguments
    for arguments in "-arch=sm_13", "-gencode arch=compute_20,code=sm_75", "-Wl,--as-needed", "-std=c++23":
        message = cucc("-E", "main.cu", "-o", "main.ii", *arguments.split())
        assert message.startswith("cucc: warning: nvcc ") and message.count("\n") == 1


BEFORE_CXX17 = """
    #include <cooperative_groups/reduce.h>
    #include <cub/cub.cuh>
    #include <cuda/std/span>
    #include <cuda_bf16.h>
    #include <cuda_fp8.h>
    #include <cuda_pipeline.h>
    #include <curand_kernel.h>
    #include <mma.h>
    #include <algorithm>
    #include <cstdio>
    #include <functional>
    #include <memory>
    #include <numeric>
    using namespace std;
    // names that C++17 has added to std
    typedef unsigned char byte;
    int data[3] = {1, 2, 3}, size = 4;
    bool empty = false;
    __host__ __device__ int clamp(int x) { return x < 9 ? x : 9; }
    template <class T> T gcd(T a, T b) { return b ? gcd(b, a % b) : a; }
    template <class A, class B> struct any { A a; B b; };
    // what C++17 has removed
    int positive(int n) throw(const char *, int) { if (n <= 0) throw "not"; return n; }
    __global__ void reverse(int *to, const byte *from) {
        register int i = threadIdx.x;
        __shared__ byte tile[32];
        tile[i] = from[i];
        __syncthreads();
        to[i] = clamp(tile[31 - i]);
    }
    __managed__ int to[32];
    __managed__ byte from[32];
    int main() {
        auto_ptr<int> five(new int(5));
        any<int, int> two = {1, 1};
        empty++;
        iota(from, from + 32, 0);
        reverse<<<1, 32>>>(to, from);
        cudaDeviceSynchronize();
        random_shuffle(to, to + 32);
        printf("%d %d %d\\n", (int)count_if(to, to + 32, bind2nd(less<int>(), 9)), gcd(12, 8) * size + positive(*five),
               data[2] + empty + two.a);
    }
"""


@pytest.mark.parametrize("standard", ["c++03", "c++11", "gnu++14"])
def test_older_standards(cucc, write, output, standard):
    """What C++17 has added and removed is not in a program's way, and the headers make no warnings."""
    write(main_cu=BEFORE_CXX17)
    options = "-Wall", "-Wextra", "-Werror", "-Wno-deprecated", "-Wno-deprecated-declarations"
    assert cucc("main.cu", "-o", "program", f"-std={standard}", *options) == ""
    assert output() == "9 21 5\n"


LACKING = """
    #include <nvjpeg.h> -> nvjpeg.h of NVIDIA is not part of the CPU back end, which has cublas_v2.h,
    #include <cublasXt.h> -> cublasXt.h of NVIDIA is not part of the CPU back end, which has cublas_v2.h and
    #include <nvrtc.h> -> nvrtc.h of NVIDIA is not part of the CPU back end, which has no compiler at run time
    #include <cuda/iterator> -> cuda/iterator is newer than CUDA 13.0
    #include <mine.h> -> nothing
    #include <cuda.h> / CUmemAllocationProp p; -> CUmemAllocationProp: virtual memory
    cufftXtSetCallback(plan); -> cufftXtSetCallback: callbacks and plans for several devices are not
    Unknown x; -> nothing
"""


def test_what_the_cpu_back_end_lacks_is_named_after_the_errors(cucc, write):
    """In a line of its own, after the compiler's; not for headers and names of others."""
    for source in "main.cu", "main.cpp":
        for text, says in tools.pairs(LACKING):
            write(**{source.replace(".", "_"): text.replace(" / ", "\n") + "\n"})
            message = cucc("-c", source, status=1)
            last = message.strip().split("\n")[-1]
            assert (
                ("cucc: " not in message) if says == "nothing" else last.startswith(f"cucc: {says}")
            ), message


# ---- messages ----

MISTAKES = """
__global__ void add(int *c, int a, int b) {
\t__shared__ int s[4]; *c = threadId.x + a; /* threadIdx */
    __syncthreads(); *c += bb;
} __global__ void one() { return 1; }
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


@pytest.mark.skipif(tools.CLANG, reason="the places and words are those of g++")
def test_common_mistakes_are_shown_where_they_are(cucc, write):
    write(main_cu=MISTAKES)
    message = re.sub("[‘’]", "'", cucc("-c", "main.cu", status=1))
    errors = re.findall(r"^main.cu:(\d+):(\d+): error: (.*)", message, re.M)
    rows = MISTAKES.expandtabs().split("\n")
    shown = [(rows[int(line) - 1][int(column) - 1 :][:8], text) for line, column, text in errors]
    for place, text in [
        ("threadId", "threadId"),
        ("bb;", "bb"),
        ("1; }", "return-statement with a value"),
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
    assert "ad<<<1, 1>>>(d, 2, 7); add<<<1, d>>>(d, 2," in message  # the line of the source


def test_an_interrupt_leaves_nothing_behind(write, tmp_path):
    write(main_cu="int main() { }\n")
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\n[ $1 != -dumpmachine ] || exec g++ $1\ntouch started\nexec sleep 60\n")
    slow.chmod(0o755)
    (tmp_path / "temporary").mkdir()
    process = subprocess.Popen(
        [tools.CUCC, "-ccbin", slow, "main.cu"],
        cwd=tmp_path,
        env=tools.environment({"TMPDIR": str(tmp_path / "temporary")}),
        start_new_session=True,
        # A shell that starts the tests in the background makes them ignore interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
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


def test_each_cu_has_device_variables_of_its_own(cucc, write, output):
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
    assert output() == "360 1\n"


LIBRARY = {
    "k_cu": """
#include "k.h"
__device__ int counter;
__constant__ int scale[4];
__device__ int square(int x) { return x * x + (int)threadIdx.x; }
__global__ void fill(int *p, int n) {
    if (index() < n)
        p[index()] = square(index()) * scale[1];
    atomicAdd(&counter, 1);
}
""",
    "k_h": """
#pragma once
extern __device__ int counter;
extern __constant__ int scale[4];
__device__ int square(int x);
__global__ void fill(int *p, int n);
inline __device__ int index() { return blockIdx.x * blockDim.x + threadIdx.x; }
""",
    "main_cu": """
#include <cstdio>
#include "k.h"
__global__ void more(int *p, int n) {
    if (index() < n)
        p[index()] += square(1);
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
    for (int i = 0; i < 100; i++)
        wrong += h[i] != (i * i + i % 64) * 3 + 1 + i % 64;
    printf("%d wrong, %d calls\\n", wrong, count);
}
""",
}


def test_kernels_in_a_library(cucc, write, output):
    """Device functions and variables of other files with -rdc=true, also from a library, and with a program that is one .cu
    in the same command. Without it the linker does not find them, and cucc says why."""
    write(**LIBRARY)
    cucc("-dc", "k.cu")
    cucc("-lib", "k.o", "-o", "libk.a")
    cucc("-rdc=true", "main.cu", "-L.", "-lk", "-o", "program")
    assert output() == "0 wrong, 256 calls\n"
    cucc("-c", "k.cu")
    assert "only with -rdc=true" in cucc("main.cu", "k.o", "-o", "program", status=1)


def test_a_mixture_of_both_forms_is_refused(cucc, write, output):
    write(one_cu="__global__ void one() { }\nint main() { }\n", two_cu="__global__ void two() { }\n")
    cucc("-keep", "one.cu", "-o", "program")
    output()
    cucc("-c", "two.cu")
    cucc("one.o", "two.o", "-o", "program")
    message = output(status=1)
    why = "one.cu is linked with two.cu, but was compiled as a program of one .cu"
    assert message.count("\n") == 1 and why in message


# ---- __CUDA_ARCH__ ----

ARCH = r"""
#include <cstdio>
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
__device__ int version() { return 6; }
#elif defined(__CUDA_ARCH__)
__device__ int version() { return 7; }
#else
__device__ double version(); // left out
#endif
#ifdef __CUDA_ARCH__
#define OF(device, host) device
#else
#define OF(device, host) host
#endif
#define WHERE OF(1, 2)
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
    static int member() { return WHERE; }
#ifdef __CUDA_ARCH__
    __device__ int only() { return 5; }
#else
    int only_host() { return 6; }
#endif
};
template <int N> struct Items { static constexpr int count = N; }; // another N
template <class T> struct Box { // its array is the device's
    enum { SIZE = OF(4, 5) };
    static const int MORE = SIZE + 1;
    T array[SIZE];
    __device__ int get() { return SIZE * 100 + MORE * 10 + sizeof(Box); }
    __host__ __device__ int both() { return SIZE + MORE; }
    int host() { return SIZE * 10 + MORE; }
};
namespace n {
int function() { return WHERE; }
constexpr int N = OF(4, 5);
const int M = 2 * N;
static_assert(M >= 8, "");
}
enum Stages { STAGES = OF(3, 2), OTHER };
typedef Items<OF(__CUDA_ARCH__, 0)> Old;
using New = Items<OF(7, 1)>;
template <int K> constexpr bool fast = OF(true, false);
__constant__ int table[n::M];
__device__ int on_device() { return WHERE; }
__host__ __device__ int both() { return n::M * 100 + STAGES; }
template <bool B> __global__ void __launch_bounds__(64 * WHERE) bounded(int *p) { p[3] += B - 1; }
__launch_bounds__(n::M) __global__ void box(int *p) { p[0] = Box<char>().get() + 1000 * Box<int>().both(); }
__global__ void __launch_bounds__(64 * WHERE) k(int *p) {
#if __CUDA_ARCH__ >= 600
    p[0] = where();
#endif
    int values[] = {V(1).x, V(1).only(), WHERE, version(), V::k(1), on_device(), n::N, n::M, STAGES, OTHER, Old::count,
        New::count, fast<1>, sizeof(table) / 4, both()};
    for (int i = 0; i < 15; i++)
        p[i + 1] = values[i];
}
int main() {
    int *p;
    cudaMallocManaged(&p, 16 * sizeof(int));
    k<<<1, 1>>>(p);
    bounded<true><<<1, 1>>>(p);
    cudaDeviceSynchronize();
    for (int i = 0; i < 16; i++)
        printf("%d ", p[i]);
    box<<<1, 1>>>(p);
    cudaDeviceSynchronize();
    printf("%d %d %d", p[0], Box<char>().host(), Box<int>().both());
    static_assert(V::k(4) == 6, "");
    printf("\n%d %d %d %d %d %d ", where(), V(1).x, V(1).only_host(), V::k(1), V::member(), n::function());
    printf("%d %d %d %d %d %d %d %d\n", n::N, n::M, STAGES, OTHER, Old::count, New::count, fast<1>, both());
}
"""


ARCHITECTURES = [
    ([], 800, 7),
    (["-arch=sm_60"], 600, 6),
    (["-gencode=arch=compute_75,code=sm_75", "-arch", "sm_90"], 750, 7),
]


@pytest.mark.parametrize("options, arch, version", ARCHITECTURES)
def test_cuda_arch(cucc, write, output, options, arch, version):
    """Device code sees __CUDA_ARCH__, host code does not, and a function for both has two bodies. Device code has its own
    constants, enumerations and types."""
    write(main_cu=ARCH)
    cucc("main.cu", "-o", "program", *options)
    on_device = f"{arch} 1001 5 1 {version} 2 1 4 8 3 4 {arch} 7 1 8 803 9454 56 11"
    assert output().splitlines() == [on_device, "-1 1 6 3 2 2 5 10 2 3 0 1 0 1002"]


NAMES = r"""
#include <cstdio>
#ifdef __CUDA_ARCH__
#define OF(device, host) device
#else
#define OF(device, host) host
#endif
template <class OF(T, U), int OF(N, M) = 3> __global__ void __launch_bounds__(64 * OF(2, 1)) a(OF(T, U) *OF(p, q), int OF(x, y)[]) {
    *OF(p, q) += OF(N, M) + OF(1, 0); }
#ifdef __CUDA_ARCH__
__global__ void __launch_bounds__(32, 2) b(int *p) { *p += 10; }
#else
__global__ void b(int *) { }
#endif
__host__ __device__ int both(int OF(u, v), int k = 3) { return OF(u + 1, v + 2) * k; }
__host__ __device__ int over(float OF(u, v)) { return OF(u + 1, v + 2); }
__host__ __device__ int over(int OF(u, v)) { return 10 * OF(u + 1, v + 2); }
int host(unsigned OF(u, v)) { return OF(u, v); }
template <class F> __global__ void call(int *p, F f) { f(p); }
struct One { typedef int Sm; enum { n = 1 }; };
struct Two { typedef OF(short, int) Sm; enum { n = OF(2, 1) }; };
template <class B> __global__ void sizes(int *p) { typename B::Sm s; p[1] += sizeof s + 10 * B::n; }
int main() {
    int *p, n = 5;
    cudaMallocManaged(&p, 16);
    p[0] = p[1] = 0;
    a<int><<<1, 1>>>(p, nullptr), b<<<1, 1>>>(p);
    sizes<One><<<1, 1>>>(p), sizes<Two><<<1, 1>>>(p);
    call<<<1, 1>>>(p, [=] __device__(int *p) { *p += OF(100, 200) * n + 0 * both(1); });
    auto f = [=] __host__ __device__(int *p) { *p += OF(1000 * over(1), 2000 * over(1.f)); };
    call<<<1, 1>>>(p, f);
    cudaDeviceSynchronize();
    printf("%d %d", p[0], p[1]);
    f(p);
    printf(" %d %d %d\n", p[0], both(1), host(4));
}
"""


def test_what_differs_by_cuda_arch_in_names_only(cucc, write, output):
    """A kernel or function is one, whatever its parameters are called; members of other classes keep their names; a lambda of a
    host function has the device's text."""
    write(main_cu=NAMES)
    cucc("main.cu", "-o", "program")
    assert output() == "11514 36 17514 7 4\n"


def test_what_cannot_differ_is_refused(cucc, write):
    kernel = "template <int I = A> __global__ void k() { }"
    for text in "int n = N;", "const int A = N, B = 1;", f"const int A = N; {kernel}":
        lines = text.replace("N; ", "N;\n").split("\n")
        write(main_cu="\n".join(["#ifdef __CUDA_ARCH__\n#define N 4\n#else\n#define N 5\n#endif", *lines]))
        message = cucc("-c" if len(lines) == 1 else "-cuda", "main.cu", status=1)
        assert message.startswith(f"main.cu:{5 + len(lines)}:") and "__CUDA_ARCH__" in message
        assert message.count("\n") == 1


# ---- programs of 2010 ----


def test_old_programs(cucc, write, output, tmp_path):
    """Texture references: all types, read modes and ways to bind; members that change while bound; two devices."""
    old = tools.HERE / "old_textures.cu"
    assert "cutil_inline.h" in cucc("-c", old, status=1)
    write(shuffle_cu="__global__ void k(int *p) { *p = __shfl(*p, 0); }\n")
    message = cucc("-c", "shuffle.cu", status=1)
    assert "shuffle.cu:1:" in message and "CUDA 13 does not have __shfl; with --legacy it is here" in message
    write(clock_cu="int main() { cudaDeviceProp p; return p.clockRate; }\n")
    assert "CUDA 13 does not have clockRate; with --legacy it is here" in cucc("-c", "clock.cu", status=1)
    cucc("--legacy", old, "-o", "program")
    assert output() == "5 cases, 0 failed\n"
    write(
        host_cpp="#include <cuda_runtime.h>\nint max(int a, int b) { return a > b ? a : b; }\n"
        "int main() { cudaDeviceProp p; cudaThreadSynchronize(); return cudaGetDeviceProperties(&p, 0) || p.clockRate < 1; }\n",
        more_c="int more(void) { int class = 1; return class; }\n",
    )
    env = {"NVCC_PREPEND_FLAGS": "-O0 --legacy -o program", "NVCC_APPEND_FLAGS": "shuffle.cu"}
    tools.cucc("host.cpp", "more.c", cwd=tmp_path, env=env)
    assert output() == ""
