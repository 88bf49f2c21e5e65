# SPDX-License-Identifier: MIT
"""The headers, as the C++ compiler sees them: in host sources, all together, and what they must refuse. Those that only include others
(cucc/include/forward.txt)."""
import functools
import hashlib
import os
import pathlib
import re
import shutil
import string
import subprocess

import tools

SOURCES = tools.ROOM / "include"
IN_A_CU = ["-D__CU2CPP__", "-include", "cuda_runtime.h"]


@functools.cache
def include():
    """The folder of the built headers: those of cucc/include, and those that include/forward.sh writes."""
    return pathlib.Path(tools.cucc("--toolkit").out.strip()) / "include"


def check(tmp_path, text, *options):
    """Checks the syntax of a source. Returns the compiler's messages if it is refused, else an empty text."""
    (tmp_path / "main.cpp").write_text(text)
    command = [*tools.CXX, "-std=gnu++17", *options, "-I", include(), "-fsyntax-only", "main.cpp"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    return (done.stderr or "no message") if done.returncode else ""


HOST_SOURCE = """
#include <cuda_runtime.h>
#include <curand_kernel.h>
#include <math_constants.h>
#include <device_launch_parameters.h>
template <class T> T max(T a, T b) { return a > b ? a : b; }
int min(int a, int b) { return a < b ? a : b; }
float rsqrtf(float x) { return 1 / x; }
float lerp(float a, float b, float t) { return a + t * (b - a); }
float clamp(float x, float low, float high) { return x < low ? low : x > high ? high : x; }
int __float_as_int(float);
double normcdf(double);
struct dot; struct sad; struct norm; struct saturate;
float4 operator+(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
__host__ __device__ inline int both(int x) { return max(x, min(2, 3)); }
__global__ void kernel(int *);
int main() {
    float4 *p;
    dim3 grid(2);
    cudaStream_t stream = 0;
    struct States { curandState *states; curandStateSobol32_t sobol; curandStatePhilox4_32_10_t philox; } states = {};
    if (states.states)
        return 3;
    cudaChannelFormatDesc texel = cudaCreateChannelDesc<float4>(), half = cudaCreateChannelDescHalf2();
    if (texel.w != 32 || texel.f != cudaChannelFormatKindFloat || half.y != 16)
        return 2;
    return cudaMalloc(&p, 16) == cudaSuccess && both((int)grid.x) && stream == 0 ? 0 : cudaFree(p);
}
"""


def test_a_host_source_sees_the_api_only(tmp_path):
    """Device functions such as max and rsqrtf are for .cu files; a host source may have its own."""
    for standard in "c++11", "c++17", "gnu++20":
        assert check(tmp_path, HOST_SOURCE, f"-std={standard}", "-Wall", "-Werror") == ""


MARKED_SOURCE = """
#include <cuda_runtime.h>
struct __device_builtin__ __align__(8) Pair { float a, b; };
struct __device_builtin_texture_type__ Texture { int x; };
struct __device_builtin_surface_type__ Surface { int x; };
extern __host__ __device__ __cudart_builtin__ int CUDARTAPI_CDECL twice(int);
__no_return__ void die() { throw 1; }
static __thread__ int own = 3;
__import__ extern int imported;
__export__ int imported = 4;
__annotate__(noinline) int __cdecl sum(int x) { return x + own + imported; }
__location__(device) __forceinline__ int five() { return 5; }
__location__(global) __local_maxnreg__(32) void kernel(int *p) { *p = twice(five()); }
template <class T> struct Of { static int n; };
template <> __specialization_static int Of<int>::n = 6;
__host__ __device__ int twice(int x) { return sizeof(Pair) == 8 ? 2 * x : 0; }
"""
MARKED_MAIN = """int main() {
    int *p;
    return cudaMallocManaged(&p, 4) || (kernel<<<1, 1>>>(p), cudaDeviceSynchronize()) || *p + sum(Of<int>::n) != 23;
}
"""


def test_words_of_host_defines(tmp_path):
    assert check(tmp_path, MARKED_SOURCE, "-Wall", "-Werror") == ""
    tools.compiled(tmp_path, MARKED_SOURCE + MARKED_MAIN, "-Wall", "-Werror", "-run")


def test_mathematical_constants(tmp_path):
    """By a sum over names and bits, which those of CUDA 13 have too; and by the toolkit's header where there is one."""
    kept = "0e0597891d74e5d37095cb6422184a03f2f4c15b5d628d52eb0d09d20b793ace"
    toolkit = pathlib.Path(os.environ.get("CUDA_PATH", "/usr/local/cuda")) / "include/math_constants.h"
    names = sorted(re.findall(r"^#define +(CUDART_\w+)", (SOURCES / "math_constants.h").read_text(), re.M))
    for header in filter(pathlib.Path.exists, [SOURCES / "math_constants.h", toolkit]):
        values = "".join(f'printf("{name} %zu %a\\n", sizeof({name}), (double){name});' for name in names)
        (tmp_path / "constants.h").write_text(header.read_text())
        text = f'#include <cstdio>\n#include "constants.h"\n__global__ void k() {{ {values} }}\n'
        text += "int main() { k<<<1, 1>>>(); return cudaDeviceSynchronize(); }"
        built = tools.compiled(tmp_path, text, "-run")
        assert hashlib.sha256(built.out.encode()).hexdigest() == kept, f"{header}:\n{built.out}"


def test_guards_that_other_headers_look_for_and_names_of_x11(tmp_path):
    """NVIDIA's helper headers test these guards; X11 defines the other names."""
    guards = {
        "cufft.h": "_CUFFT_H_",
        "curand.h": "CURAND_H_",
        "cuda_runtime.h": "__CUDA_RUNTIME_H__",
        "cuda.h": "__cuda_cuda_h__",
    }
    guards |= {"cublas_v2.h": "CUBLAS_API_H_"} if tools.has("cublas") else {}
    if not tools.has("cufft"):
        del guards["cufft.h"]
    names = "Complex=0 None=0L Bool=int Status=int True=1 False=0 Success=0 Always=2 Above=0 Below=1 Convex=2 Unsorted=0"
    text = "".join(f"#include <{h}>\n#ifndef {guard}\n#error {h}\n#endif\n" for h, guard in guards.items())
    assert check(tmp_path, "#include <curand.h>\n#ifndef __CUDA_RUNTIME_H__\n#error\n#endif\n") == ""
    for options in [], IN_A_CU:
        assert check(tmp_path, text, *options, *(f"-D{name}" for name in names.split())) == ""


def test_all_headers_together(tmp_path):
    """In a host source and in a .cu, with macros of one letter that the headers must not see."""
    names = sorted(str(p.relative_to(include())) for p in include().rglob("*") if p.is_file())
    # thrust/ needs Thrust, cub/ the translator
    others = ("cuda_cpu/", "thrust/", "cub/", "cuda_gl_interop.h")
    for header, library in ("cublas_v2.h", "cublas"), ("cusolverDn.h", "cusolver"), ("cufft.h", "cufft"):
        if not tools.has(library):
            others += (header,)
    names = [n for n in names if not n.startswith(others)]
    assert "cuda/std/span" in names and "curand_kernel.h" in names
    macros = "".join(f"#define {letter} 1\n" for letter in string.ascii_uppercase)
    text = macros + "".join(f"#include <{n}>\n" for n in names) + "int main() { return T + N + F; }\n"
    for options in [], [*IN_A_CU, "-DCUDA_CPU_CHECK"]:
        assert check(tmp_path, text, "-Wall", "-Wextra", "-Werror", *options) == ""


FRAGMENTS = """#include <mma.h>
using namespace nvcuda::wmma;
template <class T> using A = fragment<matrix_a, 16, 16, 16, T, row_major>;
template <class T> using B = fragment<matrix_b, 16, 16, 16, T, col_major>;
template <class T> using C = fragment<accumulator, 16, 16, 16, T>;
"""
NO_FRAGMENT = "nvcuda::wmma has no fragment of this use, shape, element type and layout"
NO_SUM = "mma_sync does not add products of this type to accumulators of this type"
NO_CALL = "no matching function for call to "


MATRICES = [
    *(
        (f"fragment<{f}> f", "f.x[0] = 0;", NO_FRAGMENT)
        for f in tools.rows(
            """
            matrix_a, 8, 8, 16, half, row_major | matrix_a, 16, 16, 16, float, row_major | matrix_b, 16, 16, 16, half
            matrix_a, 16, 16, 16, char, row_major | matrix_b, 16, 16, 16, half, half
            matrix_b, 16, 16, 16, precision::tf32, row_major | matrix_b, 8, 8, 8, double, row_major | accumulator, 16, 16, 8, half
            accumulator, 16, 16, 16, half, row_major | accumulator, 16, 16, 16, double
            accumulator, 8, 8, 32, float | half, 16, 16, 16, half, row_major
            """
        )
    ),
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
]


def test_matrices_that_cuda_lacks(tmp_path):
    """nvcc refuses these too. Each is a function in one line, for which g++ must give the reason."""
    first = FRAGMENTS.count("\n") + 1
    functions = [f"void f{i}({arguments}) {{ {body} }}\n" for i, (arguments, body, _) in enumerate(MATRICES)]
    all_errors = "-ferror-limit=0" if tools.CLANG else "-fmax-errors=0"
    errors = check(tmp_path, FRAGMENTS + "".join(functions), *IN_A_CU, all_errors)
    for line, (_, _, why) in enumerate(MATRICES, first):
        # The messages from the first that names the line to the first that names another one
        mine = re.search(rf"main\.cpp:{line}:.*?(?=main\.cpp:(?!{line}:)\d|\Z)", errors, re.S)
        if tools.CLANG:  # clang++ 19 gives the reason first, and names the line in the note below it
            below = rf"^.*{re.escape(why)}(?:(?! error: )[\s\S])*?main\.cpp:{line}:"
            mine = re.search(below, errors, re.M) or mine
        assert mine and why in mine[0], f"{functions[line - first]}{mine and mine[0]}"


# ---- headers that only include others ----


def test_the_headers_are_those_of_the_list(tmp_path):
    """test_all_headers_together compiles them."""
    subprocess.run([SOURCES / "forward.sh", tmp_path], check=True)
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    listed = re.split(r"(?m)^include .*$", re.sub("(?m)^#.*", "", (SOURCES / "forward.txt").read_text()))[1:]
    assert names == {name for group in listed for name in group.split()} and len(listed) > 10
    for name in names:
        assert not (SOURCES / name).exists(), f"{name} would hide the one of forward.txt"


def test_sources_that_nobody_can_write(tmp_path):
    """The folders of the built headers can be written to, although they are copies of the sources' folders."""
    shutil.copytree(tools.ROOM / "include", tmp_path / "include")
    shutil.copytree(tools.ROOM / "driver", tmp_path / "driver")
    shutil.copy(tools.ROOM / "Makefile", tmp_path)
    subprocess.run(["chmod", "-R", "a-w", tmp_path / "include"], check=True)
    tools.execute("make", "TOOLKIT=built", "built/forwarded", cwd=tmp_path)
    folders = [path for path in (tmp_path / "built").rglob("*") if path.is_dir()]
    assert len(folders) > 10 and all(path.stat().st_mode & 0o200 for path in folders)


def test_a_header_is_written_only_when_it_changes(tmp_path):
    def times():
        return {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}

    subprocess.run([SOURCES / "forward.sh", tmp_path], check=True)
    before = times()
    (tmp_path / "device_types.h").write_text("old\n")
    subprocess.run([SOURCES / "forward.sh", tmp_path], check=True)
    changed = [path.name for path, time in times().items() if time != before[path]]
    assert changed == ["device_types.h"] and "cuda_runtime.h" in (tmp_path / "device_types.h").read_text()
