// SPDX-License-Identifier: MIT
/*
 * constant_scalars: scalars and array elements in constant memory
 *
 * Teaches: A kernel reads a __constant__ variable by its name, as C reads a global variable. The host writes
 *          it with cudaMemcpyToSymbol, which takes the variable itself, not a pointer. An offset in bytes
 *          selects an element of a __constant__ array. cudaMemcpyFromSymbol reads back.
 * Terms:   constant memory, __constant__, cudaMemcpyToSymbol, cudaMemcpyFromSymbol, symbol
 * Book:    6.2.3 (course); N memory (constants)
 * Build:   nvcc -o constant_scalars chapter06/constant_scalars.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter06/constant_scalars --g 1.62
 * Check:   --size 300 --g 1.62 --m 3
 */
#include "../common/book.h"

#define N 1024

static size_t n = N;                     // --size
static float host_g = 9.81f, host_m = 2; // --g, --m
static bool check(const float *scalars, const float *array);

__constant__ float g, m;
__constant__ float both[2]; // the same two numbers as elements of an array
enum { G, M };              // their indices

__global__ void from_scalars(float *a, size_t n) {
    size_t x = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (x < n)
        a[x] = m * a[x] * g;
}

__global__ void from_array(float *a, size_t n) {
    size_t x = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (x < n)
        a[x] = both[M] * a[x] * both[G];
}

int main(int argc, char **argv) {
    settings(argc, argv);
    float *a = (float *)malloc(n * sizeof(float));
    float *scalars = (float *)malloc(n * sizeof(float)), *array = (float *)malloc(n * sizeof(float));
    HANDLE_NULL(a && scalars && array);
    random_floats(a, n, 100.0f);
    float *dev_a;
    HANDLE_ERROR(cudaMalloc(&dev_a, n * sizeof(float)));
    unsigned blocks = (n + 255) / 256;

    // Each scalar is a symbol of its own.
    HANDLE_ERROR(cudaMemcpyToSymbol(g, &host_g, sizeof(float)));
    HANDLE_ERROR(cudaMemcpyToSymbol(m, &host_m, sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    from_scalars<<<blocks, 256>>>(dev_a, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(scalars, dev_a, n * sizeof(float), cudaMemcpyDeviceToHost));

    // The array is one symbol; the offset, the fourth argument, selects the element.
    HANDLE_ERROR(cudaMemcpyToSymbol(both, &host_g, sizeof(float), G * sizeof(float)));
    HANDLE_ERROR(cudaMemcpyToSymbol(both, &host_m, sizeof(float), M * sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    from_array<<<blocks, 256>>>(dev_a, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(array, dev_a, n * sizeof(float), cudaMemcpyDeviceToHost));

    // Read back: the whole array, then its second element alone.
    float back[2], back_m;
    HANDLE_ERROR(cudaMemcpyFromSymbol(back, both, sizeof(back)));
    HANDLE_ERROR(cudaMemcpyFromSymbol(&back_m, both, sizeof(float), M * sizeof(float)));
    printf("g = %g, m = %g\n", back[G], back_m);
    printf("a[0] = m * a[0] * g = %g * %g * %g = %g\n", back_m, a[0], back[G], array[0]);

    bool ok = check_value("g", back[G], host_g, 0) && check_value("m", back[M], host_m, 0) &&
              check_value("m alone", back_m, host_m, 0);
    ok = check(scalars, array) && ok;
    HANDLE_ERROR(cudaFree(dev_a));
    free(a);
    free(scalars);
    free(array);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Computes a[x] = m * a[x] * g with m and g in constant memory.", 0,
              {OPTION_SIZE("size", &n, 1, 1LL << 33, "elements of a"),
               OPTION_FLOAT("g", &host_g, -1e6, 1e6, "the constant g"),
               OPTION_FLOAT("m", &host_m, -1e6, 1e6, "the constant m")});
    require_memory(4 * n * sizeof(float) + n * sizeof(double), n * sizeof(float));
}

// The host computes the products in float. It rounds both as the device does, so the results must be equal.
static bool check(const float *scalars, const float *array) {
    HostArray<float> a(n);
    seed_random(options.seed);
    random_floats(a, n, 100);
    auto product = [&](size_t x) { return host_m * a[x] * host_g; };
    bool ok = check_floats("from scalars: a", scalars, n, 0, product);
    ok = check_floats("from the array: a", array, n, 0, product) && ok;
    if (ok)
        printf("All %zu products are right, from scalars and from the array.\n", n);
    return ok;
}

// Task: from_scalars(): One thread per element: a[x] becomes m * a[x] * g, multiplied in this order, with the
// variables m and g in constant memory. Threads with x >= n do nothing.
// from_array(): The same as from_scalars(), with the elements M and G of the array `both` in constant memory
// instead of m and g.
// main(): Allocate dev_a, n floats, and free it at the end. Copy host_g and host_m to the symbols g and m,
// copy a to dev_a, launch from_scalars with `blocks` blocks of 256 threads, and copy dev_a to `scalars`. Do
// the same with the elements G and M of the symbol `both`, with from_array and `array`. Copy the whole symbol
// `both` to `back`, and its element M alone to back_m. Check each launch with HANDLE_LAUNCH().
