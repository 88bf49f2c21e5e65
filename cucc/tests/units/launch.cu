// SPDX-License-Identifier: MIT
// Launches on the CPU back end: which threads run, with which indices and arguments, and which
// launches are refused.
#include "device.h"

__global__ void hello() {
    printf("%u.%u\n", blockIdx.x, threadIdx.x);
}

TEST(kernels_print) { // first, because it forks, which needs a process without threads
    const unit_result result = in_child([] { hello<<<2, 3>>>(); });
    EXPECT(result.status == 0);
    for (const char *place : {"0.0\n", "0.1\n", "0.2\n", "1.0\n", "1.1\n", "1.2\n"})
        EXPECT(strstr(result.out, place) != NULL);
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
        EXPECT(visits.host() == std::vector<unsigned>(visits.n, 1));
    }
}

__global__ void plain(int *out) {
    *out = 1;
}
template <class T> __global__ void __launch_bounds__(16 * sizeof(T)) bounded(T *out) {
    *out = 1;
}

// Whether a launch gives this error, which stays until it is fetched, and the kernel runs only without one.
static bool gives(cudaError_t error, dim3 grid, dim3 block, size_t shared = 0,
                  void (*kernel)(int *) = plain) {
    Device<int> out(1);
    kernel<<<grid, block, shared>>>(out.data);
    const cudaError_t peeked = cudaPeekAtLastError();
    OK(cudaDeviceSynchronize());
    return peeked == error && cudaGetLastError() == error && out.host()[0] == (error == cudaSuccess);
}

TEST(limits_of_a_launch) {
    // The manual says this; CUDA 13 on a GPU gives cudaErrorInvalidValue.
    const cudaError_t bad = cudaErrorInvalidConfiguration;
    EXPECT(gives(bad, 1, 1025) && gives(bad, 1, dim3(32, 33)) && gives(bad, 1, dim3(1, 1, 65)));
    EXPECT(gives(bad, 0, 1) && gives(bad, 1, 0));
    EXPECT(gives(bad, dim3(1, 65536), 1) && gives(bad, dim3(1, 1, 65536), 1) && gives(bad, 0x80000000u, 1));
    EXPECT(gives(cudaErrorInvalidValue, 1, 1, (48 << 10) + 1));
    EXPECT(gives(cudaSuccess, 1, dim3(32, 32), 48 << 10)); // the correct twin, at the limits
    EXPECT(gives(cudaErrorInvalidValue, 1, dim3(5, 13), 0, bounded<int>));
    EXPECT(gives(cudaSuccess, 1, dim3(4, 16), 0, bounded<int>));
}
