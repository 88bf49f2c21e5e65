# SPDX-License-Identifier: MIT
"""Kernels whose barriers become loops over the threads of a block (translate/loops/): the same results as with fibers."""
import re
import shutil
from pathlib import Path

import pytest

import split_generator
import tools

SOURCES = {Path(__file__).with_name("split.cu"): 43, Path(__file__).with_name("split_tiles.cu"): 48}
WAYS = {"CUDA_CPU_BARRIERS": "fibers"}, {"CUDA_CPU_SCHEDULE": "random:7"}


@pytest.mark.parametrize("source", SOURCES)
def test_explain(source):
    expected = re.findall(
        r"^// (.*)\n(?:template <.*?> )?__global__ void (?:__launch_bounds__\(.*?\) )?(\w+)",
        source.read_text(),
        re.M,
    )
    told = tools.cucc("--explain", source)
    assert told.err == ""
    lines = [
        re.fullmatch(r".*split\w*\.cu:\d+: (\w+): (.*?)(?: \(line \d+\))?", line)
        for line in told.out.splitlines()
    ]
    assert [(line[2], line[1]) for line in lines] == expected


def test_explain_says_what_its_page_shows():
    page = (tools.ROOM / "docs/execution.md").read_text()
    source, shown = re.search(r"^    \$ cucc --explain (\S+) .*\n((?:    .+\n)+)", page, re.M).groups()
    assert tools.cucc("--explain", source, cwd=tools.ROOM).out.startswith(shown.replace("    ", ""))


@pytest.mark.parametrize("source", SOURCES)
def test_loops_and_fibers_agree(tmp_path, source):
    built = tmp_path / "split"
    assert tools.cucc("-O1", "-Wall", "-Wextra", source, "-o", built).err == ""
    loops = tools.execute(built)
    assert loops.err == "" and loops.out.count("no error") == SOURCES[source], str(loops)
    for way in WAYS:
        other = tools.execute(built, env=way)
        assert (other.out, other.err) == (loops.out, ""), way


@pytest.mark.parametrize(
    "options, split", [([], True), (["-g"], True), (["-G"], False), (["--check"], False)]
)
def test_debuggers_and_detectors_follow_single_threads(tmp_path, options, split):
    text = "__global__ void k(int *x) { x[0]++; __syncthreads(); x[1]++; }\n"
    told = tools.compiled(tmp_path, text, "-cuda", *options)
    assert ("cu_w.fibers" in told.out) == split, str(told)


def test_a_wait_that_was_not_seen_is_an_error(tmp_path):
    """A function object with a barrier, whose call looks like that of a function of the library"""
    text = (
        "struct F { __device__ int operator+(int x) const { __syncthreads(); return x; } };\n"
        "__global__ void k(int *x, F f) { __syncthreads(); x[threadIdx.x] = f + 1; }\n"
        "int main() { int *x; cudaMallocManaged(&x, 256); k<<<1, 64>>>(x, F()); cudaDeviceSynchronize(); return x[5]; }\n"
    )
    tools.compiled(tmp_path, text)
    loops, fibers = (tools.execute(tmp_path / "a.out", env=way, status=1).err for way in ({}, WAYS[0]))
    assert "waits for others in a kernel that was split at its barriers" in loops and fibers == ""


@pytest.mark.parametrize(
    "more", ["", "while (once(p)) ;", "deep(p, 0);", "do atomicOr(p, 0); while (*p > 9);"]
)
def test_an_atomic_in_no_loop_does_not_wait(tmp_path, more):
    """The program has nothing that polls then. Its own atomicMax stays as it is."""
    text = (
        "__device__ float atomicMax(float *p, float x);\n"
        "static __device__ int once(int *p) { return atomicCAS(p, 3, 4) != 1; }\n"
        "static __device__ int deep(int *p, int n) { return n > 9 ? n : atomicCAS(p, 7, 8) + deep(p, n + 1); }\n"
        "__global__ void k(int *p) {\n"
        "    int i = threadIdx.x, old = atomicExch(p, 1) + atomicOr(p, 0) + atomicAdd(p + i, 0);\n"
        "    atomicMax((float *)p + 99, 2.0f);\n"
        f"    __syncthreads(); p[i + 100] = old + atomicCAS(p, 1, 1) + p[99 - i]; {more}\n"
        "}\n"
        "__device__ float atomicMax(float *p, float x) { return *p = x; }\n"
        "int main() { int *p, sum = 0; cudaMallocManaged(&p, 800); k<<<1, 64>>>(p); cudaDeviceSynchronize();\n"
        '    for (int i = 0; i < 164; i++) sum = sum * 3 + p[i]; printf("%d", sum); }\n'
    )
    assert ("split" in tools.compiled(tmp_path, text, "--explain").out) == (not more)
    tools.compiled(tmp_path, text, "-O2")
    assert (b"\0cuda_polls\0" not in (tmp_path / "a.out").read_bytes()) == (not more)
    assert len({tools.execute(tmp_path / "a.out", env=way).out for way in ({}, WAYS[0])}) == 1


FORMS = r"""
#include <cstdio>
const int N = 300, M = 8;
static const unsigned A = 3, B = A * 2;
enum { FEW = 2 }; enum class Scoped { TWO = FEW };
namespace space { constexpr int n = 2; namespace { const int inner = 1; } struct Traits { static constexpr int N = 1; int plain; }; int varies = 3; }
template <int K> struct Sizes { static const int N = K / 2; };
template <int K> constexpr int half = K / 2;
__host__ __device__ constexpr int divide_up(int a, int b) { return (a + b - 1) / b; }
__device__ int scaled(int x) { return x * 3; }
__device__ int steps(float z, int n) {
    for (int i = 0; i < n; ++i) { z = z * z * 0.25f + 0.3f; if (z > 50) return i; else if (z < 0.305f) { z = 7; return (int)z + i; } }
    if (z > 2) { z += 1; return 71; }
    return (int)(z * 10);
}
__device__ int waits(int *p) { while (atomicCAS(p, 0, 1)) {} return 1; }
__device__ void load(const int *from, int &to) { to = *from; }
using namespace space;
struct Rows { int width, *all; __device__ int at(int i) const { return all[i]; } };
struct Rank { int width; __device__ operator int() const { return threadIdx.x; } __device__ int next() { return ++width; } };
struct Cell { float value; int parts[2]; };
#define REPEAT(bound) for (int i = 0; i < (bound); i++) { int v = x[t ^ 1]; __syncthreads(); x[t] += v + i; __syncthreads(); }
"""
KERNELS = {  # the statements of a kernel, with x and t; whether it becomes loops
    "REPEAT(::N / 100 + B + FEW + (int)Scoped::TWO)": True,
    "REPEAT(space::n + n + inner + T::N + space::Traits::N + Sizes<4>::N + half<3> + K)": True,
    "REPEAT(divide_up(rows.width, 2) + (int)(sizeof(float4) / sizeof(int)) + rank.width)": True,
    "enum { LOCAL = 1 }; const auto several = N / 100 + K; REPEAT(several + LOCAL)": True,
    "REPEAT(varies)": False,
    "REPEAT(R)": False,  # a template argument that is a reference
    "const int N = x[1] & 3; REPEAT(N)": False,
    "REPEAT(rank)": False,
    # in copies of the initial values, N and M would be others
    "const int i = t + N, j = t + M; __syncthreads(); const int N = 5; enum { M = 9 }; x[t ^ 1] += N + M; __syncthreads(); x[i] += N; x[j] += M;": True,
    "const int w = rows.at(t ^ 1); REPEAT(rows.width) x[t] += w;": True,
    "if (t & 1) rank.next(); __syncthreads(); x[t ^ 1] += rank.next();": True,
    "int waits[2] = {x[t], 3}; __syncthreads(); x[t ^ 1] += waits[0];": True,
    "int waits = x[t]; __syncthreads(); x[t ^ 1] += waits;": True,
    "int *p = (int *)&four; load(x + t, k); p[t % 4] = k; x += t; __syncthreads(); int *&same = x; p[0] += 3; const int4 bits = *(int4 *)&four;"
    " same += 4; reinterpret_cast<int &>(four.x) += bits.y; __syncthreads(); atomicAdd(x, k + bits.z + ((int4 &)four).x);": True,
    "__shared__ int s[64]; const auto u = threadIdx.x; auto v = x[u], w = 2 * v; auto *next = x + (u ^ 1); const auto *other = next;"
    " auto &mine = s[u]; auto pair = make_int2(v, w); Cell cell = {1, {v, 2}}; auto copy = cell; mine = v; const auto &seen = s[u]; auto before = seen; auto &far = s[x[t] & 63];"
    " __syncthreads(); copy.parts[1] += s[63 - u]; *next += *other; pair.x += w; __syncthreads(); mine += copy.parts[1] + pair.x;"
    " __syncthreads(); x[t] += s[u ^ 3] + v + far + before;": True,
    "auto c = rank; __syncthreads(); x[t] += c.next();": False,
    "const long &v = x[t]; __syncthreads(); x[t ^ 1] = 1; __syncthreads(); x[t] += v;": False,  # of a temporary value
    # loops whose variable differs by 1 between neighbouring threads, until it overflows or changes its sign
    **{
        f"__syncthreads(); for ({kind} i = {first}; i {test}; i += {step}) atomicAdd(x + (i & 255), scaled(i) + t);": True
        for kind in ("int", "unsigned", "size_t", "short")
        for first in ("threadIdx.x", "blockDim.x * edge + threadIdx.x")
        for test, step in (
            ("< 99u", "blockDim.x"),
            ("<= K * 50", "blockDim.x + 3"),
            ("< 99 != false", "blockDim.x"),
        )
    },
}


VECTORS = {
    # conditions whose threads become the bounds of loops; those of the second wrap around, at thread 0
    "if (t < k * 20) { x[t] += 3; float f = t; for (int j = 0; j < rows.width + 9; j++) { f = f * 0.75f + x[j + 64] % 5; if (f > 9) break; } x[t] += (int)(f * 8); }": True,
    "if (t - 1 >= 40) return; if (threadIdx.x - 1 > 50u) return; x[t] += 7;": True,
    "if (t > 3 && threadIdx.x + edge < 4294967290u && (40 >= t)) x[t] += 1;": True,
    "if (t < (k << 4) + 3 && t < 200 >> 2 && t < (int)edge) x[t] += 9; ": True,
    "for (int i = threadIdx.x; i < (k << 4); i += blockDim.x) x[i] += 2; float f = k; for (int j = 0; j < 12; j++) { f += f * t; if (f > 9) break; } x[t] += f;": True,
    "int v; v = k; x[t + 70] += v; int w = 1 + v; const int i = t + w; x[i] += 3; for (int j = threadIdx.x; j < 40; j += blockDim.x) x[j] += t;": True,
    "int total = 2; for (int j = 0; j < 12; j++) total += j; if (t < 50 && threadIdx.y < 1) { total += k; x[t] += total; }": True,
    "if (t < 50) { if (x[t] & 1) return; x[t] += 5; float f = 1; for (int j = 0; j < 12; j++) f += x[j + 100] * f; x[t] += f > 9; }": True,
    "if (x[t] > t || t >= 9) return; x[t] += 5;": False,
    "if (t < rows.width + 9) x[t] += 5;": False,  # an object with functions: they might copy it
    "int i = t + rank.width; if (i < 20) x[t] += i;": False,
    # loops in chunks of threads
    "float f = t; for (int j = 0; j < 12; j++) { float g = 0; for (int l = j; l < 20; l++) g += x[l + 100] * 0.5f; f += g; } x[t] += (int)f;": True,
    "int j; float f = 0; for (j = 0; j < 14; j++) f += j * t; x[t] += f + j; __syncthreads(); for (int i = 0; i < 12; i++) f += x[i + 70]; x[t] += f;": True,
    "float f = t * 0.1f; unsigned n = 0; while (f < 30 && n < 40u) { f = f * 1.5f + 0.5f; n++; } x[t] += n + (int)f;": True,
    "double d = t; bool odd = false; for (int j = 0; j < 30; j++) { d = d * 0.5 + 1; odd = !odd; if (d < 1.9) break; } x[t] += odd + (int)(d * 100);": True,
    "float f = t; int q = t; for (int j = 1; j < 12; j++) { f += 1.5f / j; if (t % 5 < 2 || f > 20) break; q += 7 / (t % 5); } x[t] += q + f;": False,
    "x[t] += steps(t * 0.3f - 4, 12 + k) + (t & 1);": True,
}


@pytest.mark.parametrize("kernels", [KERNELS, VECTORS], ids=["forms", "vectors"])
def test_forms(tmp_path, kernels):
    # If a function asks for the thread's index, no loop is executed in chunks.
    text = FORMS if kernels is KERNELS else FORMS.replace("return threadIdx.x; }", "return width; }")
    for k, body in enumerate(kernels):
        text += f"template <class T, int K, int &R> __global__ void k{k}(int *x, int k, float4 four, Rows rows, Rank rank, unsigned edge)"
        text += f" {{ const int t = threadIdx.x; {body} }}\n"
    text += "int main() { int *x; cudaMallocManaged(&x, 4096); for (unsigned width : {64, 48}) for (unsigned k : {0, 1, 2}) {\n"
    text += "unsigned edge = k == 2 ? 4294967280u / 48 : k; auto show = [&] { unsigned h = cudaDeviceSynchronize();\n"
    text += 'for (int i = 0; i < 1024; i++) { h = h * 31 + x[i]; x[i] = i * 7 % 31; } printf("%u ", h); }; show();\n'
    for k, _ in enumerate(kernels):
        text += f"k{k}<space::Traits, 1, varies><<<1, width>>>(x, k, float4{{1, 2, 3, 4}}, Rows{{3, x}}, Rank{{2}}, edge); show();\n"
    told = tools.compiled(tmp_path, text + "} }\n", "--explain").out.splitlines()
    assert [line.endswith(": split") for line in told] == [*kernels.values()], "\n".join(told)
    said = []
    for optimise in "-O2", "-O0":  # without optimisation, kernels keep their barriers
        tools.compiled(tmp_path, text + "} }\n", optimise, "-w")
        said += [tools.execute(tmp_path / "a.out", env=way).out.split() for way in ({}, *WAYS)]
    assert [n for n, each in enumerate(zip(*said)) if len(set(each)) > 1] == []


GLOBAL = "const int i = blockIdx.x * blockDim.x + threadIdx.x"
GRIDS = {  # the statements of a kernel; the kind of its loops, if neighbouring blocks run as one, or along another axis than x
    f"{GLOBAL}; x[i] += 3;": "Joined<OneBody, 256>",
    f"{GLOBAL}, j = blockIdx.y * blockDim.y + threadIdx.y; if (i > 0 && i < n && j < 5) x[j * 100 + i] += i * j;": "Joined<OneBody, 256>",
    "size_t i = (size_t)blockDim.x * blockIdx.x + threadIdx.x; if (i >= n || blockIdx.y >= 2) return; x[i + 300 * blockIdx.y] += i;": "Joined<OneBody, 256>",
    "float f = threadIdx.x + blockIdx.x * blockDim.x; for (int k = 0; k < 20; k++) { f = f * 1.25f + k; if (f > 900) break; }"
    " x[(threadIdx.x + blockDim.x * blockIdx.x) * 2] += (int)f + gridDim.x;": "Joined<InChunks, 256>",
    "int i = blockIdx.x; if (i < n) x[i] = i * 7;": "Joined<OneBody, 1>",
    "int i = blockIdx.x, j = blockIdx.y; float f = i * 0.1f; for (int k = 0; k < 20; k++) { f = f * f + 0.2f; if (f > 9) break; }"
    " x[i + j * gridDim.x] = (int)(f * 5);": "Joined<InChunks, 1>",
    "int i = 2 * blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += 3;": "OneBody",
    "int i = (short)blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += 3;": "OneBody",
    "int i = n - blockIdx.x * blockDim.x + threadIdx.x; if (i < n && i >= 0) x[i] += 3;": "OneBody",
    "float i = (float)blockIdx.x * blockDim.x + threadIdx.x; if (threadIdx.y < 1) x[(int)i] += 3;": "Fibers",
    f"{GLOBAL}; if (i < n) x[i] += blockIdx.x;": "OneBody",
    f"{GLOBAL}; const uint3 b = blockIdx; if (i < n) x[i] += b.x;": "OneBody",
    f"{GLOBAL}; if (i < n) x[i] += block();": "OneBody",
    f"{GLOBAL}; if (i < n) atomicAdd(x + i / 9, i);": "OneBody",
    f"{GLOBAL}, j = blockIdx.y * blockDim.y + threadIdx.y; if (i < n && j < 9) x[i * 15 + j] += i - j;": "Along<OneBody, 'y'>",
    "int i = blockIdx.z * blockDim.z + threadIdx.z, j = threadIdx.x; float f = j; for (int k = 0; k < 20; k++) f = f * 0.5f + i;"
    " x[blockIdx.x * 500 + j * 20 + i] += (int)f + threadIdx.y;": "Along<InChunks, 'z'>",
}


def test_blocks_of_a_grid(tmp_path):
    text = "#include <cstdio>\n__device__ int block() { return blockIdx.x; }\n"
    for k, body in enumerate(GRIDS):
        text += f"__global__ void k{k}(int *x, int n) {{ {body} }}\n"
    text += "int main() { int *x; cudaMallocManaged(&x, 40000); const dim3 blocks[] = {1, {1, 3}, 30, {5, 2}, {3, 2, 2}, {2, 2, 18}};\n"
    text += "for (dim3 block : blocks) for (dim3 grid : {dim3(1), dim3(7, 2)}) { auto show = [&] { unsigned h = cudaDeviceSynchronize();\n"
    text += 'for (int i = 0; i < 10000; i++) { h = h * 31 + x[i]; x[i] = i * 7 % 31; } printf("%u ", h); }; show();\n'
    text += (
        "".join(f"k{k}<<<grid, block>>>(x, 5 * grid.x + 3); show();\n" for k, _ in enumerate(GRIDS)) + "} }\n"
    )
    tools.compiled(tmp_path, text, "-cuda", "-o", tmp_path / "text.cpp")
    kinds = re.findall(r"launch_body<cu_owner, (.*?), decltype", (tmp_path / "text.cpp").read_text())
    assert [kind.replace("::cuda_cpu::", "") for kind in kinds] == [*GRIDS.values()]
    said = []
    for optimise in "-O3", "-O0":
        tools.compiled(tmp_path, text, optimise, "-w")
        said += [
            tools.execute(tmp_path / "a.out", env={**way, "CUDA_CPU_WORKERS": "1"}).out.split()
            for way in ({}, *WAYS)
        ]
    assert [n for n, each in enumerate(zip(*said)) if len(set(each)) > 1] == []


def test_random_kernels(rng, tmp_path):
    text = split_generator.program(rng, 6)
    told = tools.compiled(tmp_path, text, "--explain")
    assert told.out.count(": split\n") > 2, str(told)
    said = set()
    for optimise in "-O1", "-O0":  # without optimisation, kernels keep their barriers
        tools.compiled(tmp_path, text, optimise, "-w")
        for way in {}, WAYS[0]:
            ran = tools.execute(tmp_path / "a.out", env=way)
            assert ran.err == "", str(ran)
            said.add(ran.out)
    assert len(said) == 1, str(ran)


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_a_store_of_one_thread(tmp_path, compiler):
    """It stays one, whatever a compiler may do to vectorize the loop over the threads."""
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}")
    text = (
        "__global__ void scan(unsigned *x, unsigned *sums) {\n"
        "    __shared__ unsigned tile[2048];\n"
        "    unsigned *mine = tile + threadIdx.x * 8, sum = 0;\n"
        "    for (unsigned k = 0; k < 8; k++) mine[k] = x[threadIdx.x * 8 + k];\n"
        "    for (unsigned k = 0; k < 8; k++) sum += mine[k];\n"
        "    __syncthreads();\n"
        "    unsigned before = sum;\n"
        "    for (unsigned k = 0; k < 8; k++) { unsigned y = mine[k]; mine[k] = before; before += y; }\n"
        "    if (threadIdx.x == 255) sums[blockIdx.x] = before;\n"
        "    __syncthreads();\n"
        "    for (unsigned k = 0; k < 8; k++) x[threadIdx.x * 8 + k] = mine[k];\n"
        "}\n"
        "int main() {\n"
        "    unsigned *x; cudaMallocManaged(&x, 2049 * 4);\n"
        "    for (int i = 0; i < 2048; i++) x[i] = i;\n"
        "    scan<<<1, 256>>>(x, x + 2048);\n"
        "    if (cudaDeviceSynchronize()) return 2;\n"
        "    return x[2040] != 8 * 2040 + 28 || x[2048] != 2 * x[2040];\n"
        "}\n"
    )
    tools.compiled(tmp_path, text, "-ccbin", compiler)
    assert tools.execute(tmp_path / "a.out").err == ""
