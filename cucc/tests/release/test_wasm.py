# SPDX-License-Identifier: MIT
"""-ccbin em++: programs for WebAssembly, which node runs. They print what the same programs print here."""
import shutil

import pytest

import tools

needs_em = pytest.mark.skipif(
    not shutil.which("em++") or not shutil.which("node"), reason="needs em++ and node"
)

SOURCE = r"""
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
    (tmp_path / "sum.cu").write_text(SOURCE)
    # with -G the threads of sum() are fibers
    for arguments in ["-o", "sum"], ["-ccbin", "em++", "-O1", "-G", "-o", "sum.js"]:
        assert tools.cucc("sum.cu", *arguments, cwd=tmp_path).status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sum", "sum.cu", "sum.js"]
    here = tools.execute(tmp_path / "sum", "a", "b", env={"CUDA_CPU_WORKERS": "1"})
    there = tools.execute("node", tmp_path / "sum.js", "a", "b")
    # the last line has no end; node adds it
    assert (here.status, f"{here.out}\n") == (there.status, there.out), str(there)
    assert here.status == 3 and "42.5\n1047552 1571328 cudaErrorInvalidDeviceFunction 1" in here.out, str(
        here
    )


@needs_em
def test_an_error_in_a_kernel_ends_a_program_in_webassembly(tmp_path):
    source = "__global__ void wrong() { __trap(); }\nint main() { wrong<<<1, 4>>>(); return cudaDeviceSynchronize(); }\n"
    assert tools.compiled(tmp_path, source, "-ccbin", "em++", "-O1", "-o", "wrong.js").status == 0
    done = tools.execute("node", "wrong.js", cwd=tmp_path)
    assert (done.status, done.err) == (1, "cuda on the CPU: __trap() at main.cu:1\n"), str(done)
