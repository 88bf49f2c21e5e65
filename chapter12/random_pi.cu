// SPDX-License-Identifier: MIT
/*
 * random_pi: pi from random numbers by cuRAND
 *
 * Teaches: cuRAND fills arrays with random numbers, here the coordinates of points in the unit square. A
 *          random point lies in the quarter circle with probability pi / 4; the mean height of the quarter
 *          circle is pi / 4 too. The error of such an estimate with n pseudorandom numbers is about 1 /
 *          sqrt(n): a hundred times the numbers give one digit more. Quasirandom numbers, here those of
 *          Sobol', fill the square evenly, and with them the error of the mean height is about 1 / n.
 * Terms:   cuRAND, pseudorandom numbers, quasirandom numbers, Monte Carlo method, standard error,
 *          partial sum
 * Book:    12.2.2 (course); T random numbers (pseudorandom, quasirandom)
 * Build:   nvcc -o random_pi chapter12/random_pi.cu common/lib/[a-z]*.c -lcurand
 * Run:     ./bin/chapter12/random_pi --size 64M
 * Needs:   libs=curand
 * Check:   --size 70000
 */
#include "../common/book.h"
#include <curand.h>
#include "libraries.h" // HANDLE_CURAND()

const int threadsPerBlock = 256;
const int blocksPerGrid = 256;

static size_t n = 4 * 1024 * 1024; // --size

struct Sums {
    unsigned long long inside; // points inside the quarter circle x² + y² < 1
    double height;             // sum of the heights sqrt(1 - x²) of the quarter circle
};

// The squares of floats are exact in double, so the host counts the same points.
static __host__ __device__ void add_point(Sums *sums, double x, double y) {
    sums->inside += x * x + y * y < 1;
    sums->height += sqrt(1 - x * x);
}

static void print_row(Sums random, Sums sobol, size_t n);
static bool check_sums(Sums got, const float *dev_numbers, size_t n);
static bool check_pi(Sums random, Sums sobol, double n);

// Each thread adds the points of a grid-stride loop; a tree reduction in shared memory adds the sums of the
// block's threads.
__global__ void estimate(const float *x, const float *y, size_t n, Sums *partial) {
    __shared__ Sums cache[threadsPerBlock];
    Sums mine = {0, 0};
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += stride)
        add_point(&mine, x[i], y[i]);
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

// The sums of the next n points of the generator: n coordinates x, then n coordinates y
static Sums estimate_with(curandGenerator_t generator, size_t n, float *dev_numbers, Sums *dev_partial) {
    Sums partial[blocksPerGrid], total = {0, 0};
    HANDLE_CURAND(curandGenerateUniform(generator, dev_numbers, 2 * n));
    estimate<<<blocksPerGrid, threadsPerBlock>>>(dev_numbers, dev_numbers + n, n, dev_partial);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(partial, dev_partial, sizeof(partial), cudaMemcpyDeviceToHost));
    for (int i = 0; i < blocksPerGrid; i++) {
        total.inside += partial[i].inside;
        total.height += partial[i].height;
    }
    return total;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    float *dev_numbers;
    Sums *dev_partial;
    HANDLE_ERROR(cudaMalloc((void **)&dev_numbers, 2 * n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_partial, blocksPerGrid * sizeof(Sums)));

    // The numbers of a pseudorandom generator look random and depend on the seed. Sobol' numbers have
    // dimensions: the first half of the array will be coordinates x, the second half coordinates y.
    curandGenerator_t random, sobol;
    HANDLE_CURAND(curandCreateGenerator(&random, CURAND_RNG_PSEUDO_XORWOW));
    HANDLE_CURAND(curandSetPseudoRandomGeneratorSeed(random, options.seed));
    HANDLE_CURAND(curandCreateGenerator(&sobol, CURAND_RNG_QUASI_SOBOL32));
    HANDLE_CURAND(curandSetQuasiRandomGeneratorDimensions(sobol, 2));

    printf("%10s  | %-34s | %s\n", "", "error of the points in the circle", "error of the mean height");
    printf("%10s  | %10s %13s %9s | %10s %13s %9s %9s\n", "n", "random", "1.64/sqrt(n)", "Sobol'", "random",
           "0.89/sqrt(n)", "Sobol'", "1/n");
    bool ok = true;
    for (int shift = 12; shift >= 0; shift -= 4) { // n / 4096, n / 256, n / 16 and n points
        size_t points = n >> shift;
        if (points == 0)
            continue;
        Sums by_random = estimate_with(random, points, dev_numbers, dev_partial);
        ok = check_sums(by_random, dev_numbers, points) && ok;
        // From the first Sobol' point on; otherwise each call continues the sequence.
        HANDLE_CURAND(curandSetGeneratorOffset(sobol, 0));
        Sums by_sobol = estimate_with(sobol, points, dev_numbers, dev_partial);
        ok = check_sums(by_sobol, dev_numbers, points) && ok;
        print_row(by_random, by_sobol, points);
        ok = check_pi(by_random, by_sobol, points) && ok;
    }

    HANDLE_CURAND(curandDestroyGenerator(random));
    HANDLE_CURAND(curandDestroyGenerator(sobol));
    HANDLE_ERROR(cudaFree(dev_numbers));
    HANDLE_ERROR(cudaFree(dev_partial));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

static double by_points(Sums sums, double n) {
    return 4 * sums.inside / n;
}
static double by_height(Sums sums, double n) {
    return 4 * sums.height / n;
}

// The standard errors of 4 times the mean of n numbers: each point is inside with probability pi / 4; the
// squared height has the mean 2 / 3.
static double error_of_points(double n) {
    return sqrt(M_PI * (4 - M_PI) / n);
}
static double error_of_height(double n) {
    return sqrt((16 * 2 / 3.0 - M_PI * M_PI) / n);
}

static void print_row(Sums random, Sums sobol, size_t n) {
    printf("%10zu  | %+10.1e %13.1e %+9.1e | %+10.1e %13.1e %+9.1e %9.1e\n", n, by_points(random, n) - M_PI,
           error_of_points(n), by_points(sobol, n) - M_PI, by_height(random, n) - M_PI, error_of_height(n),
           by_height(sobol, n) - M_PI, 1.0 / n);
}

// Whether these are the first 2 n numbers of a generator, with the seed of the command line or of two
// dimensions
static bool check_numbers(const char *name, curandRngType_t type, const float *numbers, size_t n) {
    DeviceArray<float> dev_expected(2 * n);
    curandGenerator_t generator;
    HANDLE_CURAND(curandCreateGenerator(&generator, type));
    if (type == CURAND_RNG_QUASI_SOBOL32)
        HANDLE_CURAND(curandSetQuasiRandomGeneratorDimensions(generator, 2));
    else
        HANDLE_CURAND(curandSetPseudoRandomGeneratorSeed(generator, options.seed));
    HANDLE_CURAND(curandGenerateUniform(generator, dev_expected, 2 * n));
    HANDLE_CURAND(curandDestroyGenerator(generator));
    HostArray<float> expected(dev_expected, 2 * n);
    return check_ints(name, (const int *)numbers, (const int *)+expected, 2 * n);
}

// The same sums on the host, of the numbers in device memory. main calls this for random and Sobol' numbers
// in turn. The first random numbers must be those of the seed, and the second Sobol' numbers the first ones
// again.
static bool check_sums(Sums got, const float *dev_numbers, size_t n) {
    static int calls = 0;
    HostArray<float> numbers(dev_numbers, 2 * n);
    calls++;
    if (calls == 1 && !check_numbers("random numbers", CURAND_RNG_PSEUDO_XORWOW, numbers, n))
        return false;
    if (calls == 4 && !check_numbers("Sobol' numbers", CURAND_RNG_QUASI_SOBOL32, numbers, n))
        return false;
    Sums expected = {0, 0};
    for (size_t i = 0; i < n; i++)
        add_point(&expected, numbers[i], numbers[n + i]);
    // Rounding: n additions of numbers up to 1
    return check_counts("points inside", &got.inside, &expected.inside, 1) &&
           check_value("sum of heights", got.height, expected.height, likely_roundings(n) * 0x1p-53);
}

// Random numbers: a difference of more than 5 standard errors has the probability 6e-7; with 4 one run in
// 2000 would fail, since a run makes eight estimates. Sobol' numbers: the height decreases from 1 to 0, so
// the error of its mean is at most the discrepancy of the numbers x, the largest difference between the share
// of numbers in an interval from 0 and the length of that interval. For the first dimension it is at most
// (log2(n) / 3 + 1) / n. Of 4^k points each square of side 2^-k has one, so only the squares that the circle
// crosses, fewer than 2^(k + 1), cause an error. For other n: twice as much.
static bool check_pi(Sums random, Sums sobol, double n) {
    return check_value("pi by random points", (by_points(random, n) - M_PI) / error_of_points(n), 0, 5) &&
           check_value("pi by random heights", (by_height(random, n) - M_PI) / error_of_height(n), 0, 5) &&
           check_value("pi by Sobol' heights", (by_height(sobol, n) - M_PI) * n / 4, 0, log2(n) / 3 + 1) &&
           check_value("pi by Sobol' points", (by_points(sobol, n) - M_PI) * sqrt(n) / 4, 0, 4);
}

void settings(int argc, char **argv) {
    configure(
        argc, argv, "Estimates pi with random numbers.", 0,
        {OPTION_SIZE("size", &n, 1, (size_t)1 << 31, "points; the table begins with a small part of them")});
    require_memory(2 * n * sizeof(float), 2 * n * sizeof(float));
}

// Task: estimate(): Each thread has a variable of type Sums, whose members are initialized to zero. In a
// grid-stride loop over n points it calls add_point() with the address of its variable, x[i] and y[i]. A tree
// reduction in shared memory adds the Sums of the block's threadsPerBlock threads, both members, with a
// barrier for all threads of the block between writing and reading. Thread 0 stores the result in
// partial[blockIdx.x].
