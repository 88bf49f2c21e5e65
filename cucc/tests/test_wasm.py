# SPDX-License-Identifier: MIT
"""-ccbin em++: programs for WebAssembly, which node runs. They print what the same programs print here."""
import shutil

import pytest

import tools

needs_em = pytest.mark.skipif(
    not shutil.which("em++") or not shutil.which("node"), reason="needs em++ and node"
)

SOURCE = r"""
#include <cooperative_groups.h>
#include <cstdio>
#include <pthread.h>

__constant__ float factor;
__device__ unsigned total;
extern __shared__ float tree[];

__global__ void sum(const float *in, float *out) {
    const unsigned t = threadIdx.x;
    tree[t] = factor * in[blockIdx.x * blockDim.x + t];
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half)
            tree[t] += tree[t + half];
    }
    float lanes = __shfl_xor_sync(~0u, (float)t, 5);
    atomicAdd(&total, (unsigned)lanes);
    if (t == 0) {
        out[blockIdx.x] = tree[0];
        printf("block %u: %g\n", blockIdx.x, tree[0]);
    }
}

__global__ void wide(double a, unsigned long long b, uchar4 c, int *d) { *d = (int)(a + b + c.x); }
void *in_a_thread(void *value) { return (char *)value + 1; }

int main(int argc, char **argv) {
    const int blocks = 3, threads = 1024, n = blocks * threads;
    float host[n], *in, *out, *wrong, scale = 0.5f;
    int *number, answer;
    for (int i = 0; i < n; ++i)
        host[i] = (float)(i % 7);
    cudaMalloc(&in, sizeof host);
    cudaMalloc(&out, blocks * sizeof(float));
    cudaMalloc(&number, sizeof(int));
    cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
    cudaMemcpyToSymbol(factor, &scale, sizeof scale);
    sum<<<blocks, threads, threads * sizeof(float)>>>(in, out);
    unsigned sums;
    cudaMemcpyFromSymbol(&sums, total, sizeof sums);
    void *arguments[] = {new double(0.5), new unsigned long long(40), new uchar4{2, 0, 0, 0}, &number};
    cudaLaunchKernel(wide, dim3(1), dim3(1), arguments, 0, 0);
    cudaMemcpy(&answer, number, sizeof answer, cudaMemcpyDeviceToHost);
    cudaFuncAttributes attributes;
    const cudaError_t error = cudaFuncGetAttributes(&attributes, (const void *)~0ul);
    pthread_t thread;
    void *back;
    pthread_create(&thread, NULL, in_a_thread, argv);
    pthread_join(thread, &back);
    printf("%u %d %s %d\n", sums, answer, cudaGetErrorName(error), (char *)back == (char *)argv + 1);
    cudaMalloc(&wrong, 4);
    cudaFree(in), cudaFree(out), cudaFree(number), cudaFree(wrong);
    return argc;
}
"""


@needs_em
def test_the_same_in_webassembly(tmp_path):
    (tmp_path / "sum.cu").write_text(SOURCE)
    for arguments in ["-o", "sum"], ["-ccbin", "em++", "-O1", "-o", "sum.js"]:
        assert tools.cucc("sum.cu", *arguments, cwd=tmp_path).status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sum", "sum.cu", "sum.js"]
    here = tools.execute(tmp_path / "sum", "a", "b", env={"CUDA_CPU_WORKERS": "1"})
    there = tools.execute("node", tmp_path / "sum.js", "a", "b")
    assert (here.status, here.out) == (there.status, there.out), str(there)
    assert here.status == 3 and "1571328 42 cudaErrorInvalidDeviceFunction 1\n" in here.out, str(here)


@needs_em
def test_errors_end_a_program_in_webassembly(tmp_path):
    """What a kernel does wrong is told on stderr, and the exit status says so."""
    cases = {"__trap();": "__trap() at wrong.cu:3", "assert(threadIdx.x < 2);": "thread: [2,0,0] Assertion"}
    for case, text in cases.items():
        (tmp_path / "wrong.cu").write_text(
            f"#include <cassert>\n#include <cstdio>\n__global__ void wrong() {{ {case} }}\n"
            'int main() { wrong<<<1, 4>>>(); puts("went on"); return 0; }\n'
        )
        assert tools.cucc("wrong.cu", "-ccbin", "em++", "-O1", "-o", "wrong.js", cwd=tmp_path).status == 0
        done = tools.execute("node", "wrong.js", cwd=tmp_path)
        assert done.status == 1 and text in done.err and done.out == "", str(done)
