# SPDX-License-Identifier: MIT
"""Kernels on the CPU back end: the results do not depend on the order of threads and blocks or on the number of
workers, and AddressSanitizer reports accesses out of bounds at their line in the .cu."""
import pathlib
import re
import subprocess

import pytest

import helpers

pytestmark = pytest.mark.backend("cpu")


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("schedule", ["forward", "reverse", "random"])
@pytest.mark.parametrize("binary", ["launch", "nested_launches", "barrier", "warp", "atomics", "wmma"])
def test_units_in_any_order(run, rng, binary, schedule, workers):
    if schedule == "random":
        schedule = f"random:{rng.randrange(1 << 32)}"
    run(
        f"tests/cpu/{binary}", env={"CUDA_CPU_SCHEDULE": schedule, "CUDA_CPU_WORKERS": str(workers)}, status=0
    )


def test_a_program_is_one_cu(tmp_path, variant, run):
    """Each .cu has its own threadIdx, so a program linked from two of them is refused when it starts."""
    sanitizers = "-".join(variant.name.split("-")[1:]).replace("debug", "").strip("-").replace("-", ",")
    flags = ["-std=gnu++17", "-pthread", *([f"-fsanitize={sanitizers}"] if sanitizers else [])]
    for name, main in ("one", "int main() { return 0; }"), ("two", ""):
        (tmp_path / f"{name}.cu").write_text(f"__global__ void {name}() {{}}\n{main}\n")
        for command in (
            [
                "g++",
                *flags,
                "-D__CU2CPP__",
                "-include",
                "cuda_runtime.h",
                "-I",
                helpers.ROOT / "cpu/include",
                "-x",
                "c++",
                "-E",
                f"{name}.cu",
                "-o",
                f"{name}.ii",
            ],
            [variant / "cu2cpp", f"{name}.ii", "-o", f"{name}.cpp.ii"],
            ["g++", *flags, "-c", f"{name}.cpp.ii", "-o", f"{name}.o"],
        ):
            subprocess.run(command, cwd=tmp_path, check=True)
    fast = re.search(r"^HAVE_BOOST_CONTEXT \?= 1$", (variant / "config.mk").read_text(), re.M)
    libraries = [variant / "libcudacpu.a", *(["-lboost_context"] if fast else [])]
    for objects, status in (["one.o"], 0), (["one.o", "two.o"], 1):
        subprocess.run(["g++", *flags, *objects, *libraries, "-o", "program"], cwd=tmp_path, check=True)
        result = run(tmp_path / "program", status=status)
        assert ("compiled as a program of one .cu" in result.err) == (status == 1)


HOST_SOURCE = """
#include <cuda_runtime.h>
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
    cudaChannelFormatDesc texel = cudaCreateChannelDesc<float4>(), half = cudaCreateChannelDescHalf2();
    if (texel.w != 32 || texel.f != cudaChannelFormatKindFloat || half.y != 16)
        return 2;
    return cudaMalloc(&p, 16) == cudaSuccess && both((int)grid.x) && stream == 0 ? 0 : cudaFree(p);
}
"""


def test_a_host_source_sees_the_api_only(tmp_path):
    """Device functions such as max and rsqrtf are for .cu files; a host source may have its own."""
    (tmp_path / "host.cpp").write_text(HOST_SOURCE)
    include = ["-I", helpers.ROOT / "cpu/include"]
    for standard in "c++11", "c++17", "gnu++20":
        command = ["g++", f"-std={standard}", "-Wall", "-Werror", *include, "-fsyntax-only", "host.cpp"]
        subprocess.run(command, cwd=tmp_path, check=True)


@pytest.mark.parametrize("flags", [[], ["-D__CU2CPP__", "-include", "cuda_runtime.h"]], ids=["cpp", "cu"])
def test_all_headers_together(tmp_path, flags):
    """In a host source and in a .cu, with macros of one letter that the headers must not see."""
    folder = helpers.ROOT / "cpu/include"
    names = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    # thrust/ needs Thrust, cub/ the translator; nvrtc.h is only a message
    others = ("cuda_cpu/", "thrust/", "cub/", "nvrtc.h", "cuda_gl_interop.h")
    names = [n for n in names if not n.startswith(others)]
    for ours, theirs in ("cublas_v2.h", "cblas.h"), ("cusolverDn.h", "cblas.h"), ("cufft.h", "fftw3.h"):
        if subprocess.run(
            ["g++", "-fsyntax-only", "-include", theirs, "-xc++", "/dev/null"], stderr=subprocess.DEVNULL
        ).returncode:
            names.remove(ours)
    assert "cuda/std/span" in names and "curand_kernel.h" in names
    macros = "#define T 1\n#define N 2\n#define F 3\n"
    (tmp_path / "all.cpp").write_text(
        macros + "".join(f"#include <{n}>\n" for n in names) + "int main() { return T + N + F; }\n"
    )
    command = ["g++", "-std=gnu++17", "-Wall", "-Wextra", "-Werror", *flags, "-I", folder, "-fsyntax-only"]
    subprocess.run([*command, "all.cpp"], cwd=tmp_path, check=True)


@pytest.fixture(scope="module")
def bounds(instrumented):
    return instrumented / "tests/cpu/bounds"


def watches_variables(bounds):
    """Whether AddressSanitizer watches __device__ variables: that of g++ does, that of clang++ does not (cpu/README.md)."""
    build = pathlib.Path((bounds.parents[2] / ".variant").read_text().split()[0])
    return "-fsanitize-sections=" in (helpers.ROOT / build / "flags-cxx").read_text()


@pytest.mark.parametrize("what", ["global", "static", "dynamic", "variable", "barrier"])
def test_address_sanitizer_names_the_line(run, bounds, what):
    source = (helpers.ROOT / "tests/cpu/bounds.cu").read_text().splitlines()
    line = next(i for i, text in enumerate(source, 1) if text.endswith(f"// line: {what}"))
    result = run(bounds, "past", "--", what, sanitizers=False)
    if what == "variable" and not watches_variables(bounds):
        assert result.status == 0 and not helpers.SANITIZER.search(result.err), str(result)
        return
    assert result.status != 0
    # If UndefinedBehaviorSanitizer is on too, it reports arrays of known length first.
    assert re.search(
        rf"AddressSanitizer.*#0 [^\n]*bounds\.cu:{line}\b|bounds\.cu:{line}:\d+: runtime error: index",
        result.err,
        re.S,
    ), str(result)


def test_address_sanitizer_is_silent_within_bounds(run, bounds):
    run(bounds, "within_bounds", status=0)
