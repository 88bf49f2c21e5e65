// SPDX-License-Identifier: MIT
// Launches on the CPU back end: which threads run, with which indices and arguments, and which
// launches are refused.
#include "device.h"

static bool launched() {
    return OK(cudaGetLastError());
}

__global__ void hello() {
    printf("block %u thread %u\n", blockIdx.x, threadIdx.x);
}

TEST(kernels_print) { // first, because it forks, which needs a process without threads
    const unit_result result = in_child([] { hello<<<2, 3>>>(); });
    EXPECT(result.status == 0);
    for (int block = 0; block < 2; ++block)
        for (int thread = 0; thread < 3; ++thread) {
            char line[40];
            snprintf(line, sizeof line, "block %d thread %d\n", block, thread);
            EXPECT(strstr(result.out, line) != NULL);
        }
}

__global__ void visit(unsigned *visits) {
    size_t block = blockIdx.x + (size_t)gridDim.x * (blockIdx.y + (size_t)gridDim.y * blockIdx.z);
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    bool sane = threadIdx.x < blockDim.x && threadIdx.y < blockDim.y && threadIdx.z < blockDim.z;
    atomicAdd(&visits[block * blockDim.x * blockDim.y * blockDim.z + thread], sane ? 1u : 100u);
}

TEST(every_thread_runs_once) {
    const dim3 shapes[][2] = {{1, 1},
                              {7, 33},
                              {dim3(3, 5, 2), dim3(4, 3, 5)},
                              {dim3(1, 1, 9), dim3(1, 1, 64)},
                              {dim3(1, 600), dim3(1, 1024)},
                              {5000, 1}};
    for (auto &shape : shapes) {
        const dim3 g = shape[0], b = shape[1];
        Device<unsigned> visits((size_t)g.x * g.y * g.z * b.x * b.y * b.z);
        visit<<<g, b, 0, g.x % 2 ? cudaStreamLegacy : cudaStreamPerThread>>>(visits.data);
        launched();
        size_t wrong = 0;
        for (unsigned count : visits.host())
            wrong += count != 1;
        EXPECT(wrong == 0);
    }
}

// Each launch is refused with the given error, the kernel does not run, and the error is cleared
// afterwards.
__global__ void must_not_run(int *out) {
    *out = 1;
}

static void refused(dim3 grid, dim3 block, size_t shared, cudaError_t expected) {
    Device<int> out(1);
    must_not_run<<<grid, block, shared>>>(out.data);
    EXPECT(cudaPeekAtLastError() == expected);
    EXPECT(cudaGetLastError() == expected);
    OK(cudaGetLastError());
    EXPECT(out.host()[0] == 0);
}

TEST(limits_of_a_launch) {
    refused(1, 1025, 0, cudaErrorInvalidConfiguration);
    refused(1, dim3(32, 33), 0, cudaErrorInvalidConfiguration);
    refused(1, dim3(1, 1, 65), 0, cudaErrorInvalidConfiguration);
    refused(0, 1, 0, cudaErrorInvalidConfiguration);
    refused(1, 0, 0, cudaErrorInvalidConfiguration);
    refused(dim3(1, 65536), 1, 0, cudaErrorInvalidConfiguration);
    refused(dim3(1, 1, 65536), 1, 0, cudaErrorInvalidConfiguration);
    refused(dim3(0x80000000u), 1, 0, cudaErrorInvalidConfiguration);
    refused(1, 1, (48 << 10) + 1, cudaErrorInvalidValue);
    Device<int> out(1);
    must_not_run<<<1, dim3(32, 32), 48 << 10>>>(out.data); // the correct twin, at the limits
    launched();
    EXPECT(out.host()[0] == 1);
}
