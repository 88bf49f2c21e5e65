// SPDX-License-Identifier: MIT
// --in-kernel of random_pi.cu: each thread makes its own random numbers. They stay in registers, while
// cuRAND's host functions write all numbers to memory, from where the kernel reads them.
#ifndef CHAPTER12_RANDOM_PI_IN_KERNEL_H
#define CHAPTER12_RANDOM_PI_IN_KERNEL_H

#include "../common/timing.h"
#include <curand_kernel.h>

// ---------------------------------------------------------------------------------------- proof

// All threads use one seed and different sequences, which do not overlap.
template <class State>
__global__ void estimate_with_own_numbers(unsigned long long seed, size_t n, Sums *partial) {
    State state;
    size_t thread = threadIdx.x + (size_t)blockIdx.x * blockDim.x, stride = (size_t)blockDim.x * gridDim.x;
    curand_init(seed, thread, 0, &state);
    Sums mine = {0, 0};
    for (size_t i = thread; i < n; i += stride) {
        float x = curand_uniform(&state);
        add_point(&mine, x, curand_uniform(&state));
    }
    add_sums(mine, partial);
}

static inline int estimate_in_kernel(void) {
    float *dev_numbers;
    Sums partial[blocksPerGrid], *dev_partial, total = {0, 0};
    HANDLE_ERROR(cudaMalloc(&dev_numbers, 2 * n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_partial, sizeof(partial)));
    curandGenerator_t generator;
    HANDLE_CURAND(curandCreateGenerator(&generator, generator_type));
    HANDLE_CURAND(curandSetPseudoRandomGeneratorSeed(generator, options.seed));

    float in_memory = median_ms([&] {
        HANDLE_CURAND(curandGenerateUniform(generator, dev_numbers, 2 * n));
        estimate<<<blocksPerGrid, threadsPerBlock>>>(dev_numbers, dev_numbers + n, n, dev_partial);
    });
    float in_kernel = median_ms([&] {
        if (generator_type == CURAND_RNG_PSEUDO_XORWOW)
            estimate_with_own_numbers<curandStateXORWOW_t>
                <<<blocksPerGrid, threadsPerBlock>>>(options.seed, n, dev_partial);
        else if (generator_type == CURAND_RNG_PSEUDO_MRG32K3A)
            estimate_with_own_numbers<curandStateMRG32k3a_t>
                <<<blocksPerGrid, threadsPerBlock>>>(options.seed, n, dev_partial);
        else
            estimate_with_own_numbers<curandStatePhilox4_32_10_t>
                <<<blocksPerGrid, threadsPerBlock>>>(options.seed, n, dev_partial);
    });
    HANDLE_ERROR(cudaMemcpy(partial, dev_partial, sizeof(partial), cudaMemcpyDeviceToHost));
    for (Sums block : partial) {
        total.inside += block.inside;
        total.height += block.height;
    }
    printf("numbers in memory:      %.3f ms, %.2f G/s\n", in_memory, 2 * n / in_memory / 1e6);
    printf("numbers in the kernel:  %.3f ms, %.2f G/s\n", in_kernel, 2 * n / in_kernel / 1e6);
    printf("pi = %.7f by points, %.7f by the mean height of %zu points\n", by_points(total, n),
           by_height(total, n), n);
    bool ok = check_random(total, n);

    HANDLE_CURAND(curandDestroyGenerator(generator));
    HANDLE_ERROR(cudaFree(dev_numbers));
    HANDLE_ERROR(cudaFree(dev_partial));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
