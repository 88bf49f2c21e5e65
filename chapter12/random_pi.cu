// SPDX-License-Identifier: MIT
/*
 * random_pi: pi from random numbers by cuRAND
 *
 * Teaches: cuRAND fills arrays with random numbers. A random point of the unit square lies in the quarter
 *          circle with probability pi / 4; the mean height of the quarter circle is pi / 4 too. The error
 *          of such an estimate with n pseudorandom numbers is about 1 / sqrt(n): a hundred times the numbers
 *          give one digit more. Quasirandom numbers, here those of Sobol', fill the square evenly. With them
 *          the error of the mean height is about 1 / n.
 * Terms:   cuRAND, pseudorandom numbers, quasirandom numbers, Monte Carlo method, standard error,
 *          partial sum
 * Book:    12.2.2 (lab)
 * Run:     ./bin/chapter12/random_pi --size 64M --generator philox
 * Differs: --in-kernel makes the random numbers in the kernel that uses them, and compares the times.
 * Needs:   libs=curand
 * Check:   --size 5000 | --size 5000 --in-kernel
 */
#include "../common/book.h"
#include <curand.h>
#include "libraries.h"
#include "random_pi_check.h" // Sums, check_sums(), check_random(), check_sobol()

const int threadsPerBlock = 256;
const int blocksPerGrid = 256;

static size_t n = 4 * 1024 * 1024;                                // --size
static curandRngType_t generator_type = CURAND_RNG_PSEUDO_XORWOW; // --generator

// Parallel reduction: adds the sums of all threads of the block, and stores the result in
// partial[blockIdx.x].
__device__ void add_sums(Sums mine, Sums *partial) {
    __shared__ Sums cache[threadsPerBlock];
    cache[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned i = blockDim.x / 2; i > 0; i /= 2) {
        if (threadIdx.x < i) {
            cache[threadIdx.x].inside += cache[threadIdx.x + i].inside;
            cache[threadIdx.x].height += cache[threadIdx.x + i].height;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        partial[blockIdx.x] = cache[0];
}

__global__ void estimate(const float *x, const float *y, size_t n, Sums *partial) {
    Sums mine = {0, 0};
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += stride)
        add_point(&mine, x[i], y[i]);
    add_sums(mine, partial);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    float *dev_numbers;
    Sums partial[blocksPerGrid], *dev_partial;
    HANDLE_ERROR(cudaMalloc(&dev_numbers, 2 * n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_partial, sizeof(partial)));

    // The numbers of a pseudorandom generator look random and depend on the seed. Sobol' numbers have
    // dimensions: the first half of the array will be coordinates x, the second half coordinates y.
    curandGenerator_t random, sobol;
    HANDLE_CURAND(curandCreateGenerator(&random, generator_type));
    HANDLE_CURAND(curandSetPseudoRandomGeneratorSeed(random, options.seed));
    HANDLE_CURAND(curandCreateGenerator(&sobol, CURAND_RNG_QUASI_SOBOL32));
    HANDLE_CURAND(curandSetQuasiRandomGeneratorDimensions(sobol, 2));

    print_head();
    bool ok = true;
    int rows = 0;
    for (size_t points : {n / 4096, n / 256, n / 16, n}) {
        if (points == 0)
            continue;
        Sums total[2] = {};
        for (int quasi = 0; quasi < 2; quasi++) {
            curandGenerator_t generator = quasi ? sobol : random;
            if (quasi) // from the first Sobol' point on; otherwise each call continues the sequence
                HANDLE_CURAND(curandSetGeneratorOffset(generator, 0));
            HANDLE_CURAND(curandGenerateUniform(generator, dev_numbers, 2 * points));
            estimate<<<blocksPerGrid, threadsPerBlock>>>(dev_numbers, dev_numbers + points, points,
                                                         dev_partial);
            HANDLE_LAUNCH();
            HANDLE_ERROR(cudaMemcpy(partial, dev_partial, sizeof(partial), cudaMemcpyDeviceToHost));
            for (Sums block : partial) {
                total[quasi].inside += block.inside;
                total[quasi].height += block.height;
            }
            ok = check_sums(total[quasi], dev_numbers, points) && ok;
        }
        print_row(total[0], total[1], points);
        ok = check_random(total[0], points) && check_sobol(total[1], points) && ok;
        rows++;
    }

    HANDLE_CURAND(curandDestroyGenerator(random));
    HANDLE_CURAND(curandDestroyGenerator(sobol));
    HANDLE_ERROR(cudaFree(dev_numbers));
    HANDLE_ERROR(cudaFree(dev_partial));
    return ok && rows > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

#include "random_pi_in_kernel.h"

void settings(int argc, char **argv) {
    int generator = 0;
    bool in_kernel = false;
    const Option own[] = {
        OPTION_SIZE("size", &n, 1, (size_t)1 << 31, "points; the table begins with a small part of them"),
        OPTION_WORD("generator", &generator, "xorwow|mrg32k3a|philox", "the pseudorandom generator"),
        OPTION_FLAG("in-kernel", &in_kernel, "makes the random numbers in the kernel, and times both ways"),
        OPTION_END};
    parse_options(argc, argv, "Estimates pi with random numbers.", 0, own);
    const curandRngType_t types[] = {CURAND_RNG_PSEUDO_XORWOW, CURAND_RNG_PSEUDO_MRG32K3A,
                                     CURAND_RNG_PSEUDO_PHILOX4_32_10};
    generator_type = types[generator];
    options.uses |= in_kernel ? TIMES : 0;
    select_device();
    require_memory(2 * n * sizeof(float), 2 * n * sizeof(float));
    if (in_kernel)
        exit(estimate_in_kernel());
}

// Task: add_sums(): A tree reduction in shared memory adds the Sums `mine` of the block's threadsPerBlock
// threads, both members, with a barrier for all threads of the block between writing and reading. Thread 0
// stores the result in partial[blockIdx.x].
// estimate(): Each thread has a variable `mine` of type Sums, whose members are initialized to zero. In a
// grid-stride loop over n points the thread calls add_point(&mine, x[i], y[i]). Then all threads of the block
// call add_sums().
