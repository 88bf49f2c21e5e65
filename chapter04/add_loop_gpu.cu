// SPDX-License-Identifier: MIT
/*
 * add_loop_gpu: vector addition, one block for each element
 *
 * Teaches: A launch runs the kernel in each block of the grid, here with one thread in a block. The kernel
 *          needs no loop over the elements: each block adds one pair, and blockIdx.x is the index of its
 *          element.
 * Terms:   kernel, launch, grid, block, blockIdx, device memory
 * Book:    4.2.1 (GPU)
 * Build:   nvcc -o add_loop_gpu chapter04/add_loop_gpu.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter04/add_loop_gpu --size 1000 --fill device
 * Differs: with --fill device a kernel makes the inputs in device memory, and the time of that is shown
 *          beside the time of the loop on the host and the copies.
 * Check:   --size 1001
 */
#include <chrono>
#include "../common/book.h"
#include "../common/checks/add.h"
#include "../common/timing.h"

#define N 10

static size_t n = N; // --size

__global__ void add(const int *a, const int *b, int *c, size_t n) {
    size_t tid = blockIdx.x; // the element that this block adds
    if (tid < n)
        c[tid] = a[tid] + b[tid];
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int *a = host_array<int>(n), *b = host_array<int>(n), *c = host_array<int>(n);
    int *dev_a, *dev_b, *dev_c;

    HANDLE_ERROR(cudaMalloc(&dev_a, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_b, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_c, n * sizeof(int)));

    fill_vectors(a, b, n, -1); // a[i] = -k, b[i] = k * k with k = i % 46341
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(int), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(int), cudaMemcpyHostToDevice));

    add<<<n, 1>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(c, dev_c, n * sizeof(int), cudaMemcpyDeviceToHost));
    print_sums(a, b, c, n);
    bool ok = check_sums("c", c, n, -1);

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    free(c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

// The kernel of --fill device: initializes both vectors in device memory with the values of fill_vectors().
__global__ void fill(int *a, int *b, size_t n) {
    size_t tid = blockIdx.x;
    if (tid < n) {
        int k = tid % 46341; // 46340 is the largest number whose square fits an int
        a[tid] = -k;
        b[tid] = k * k;
    }
}

// Times two ways to initialize vectors in device memory: a loop on the host with two copies to the device,
// and a kernel. Then adds the vectors of the kernel, as main does. Returns the exit status.
static int fill_on_device(void) {
    print_device(options.device);
    size_t bytes = n * sizeof(int);
    HostArray<int> a(n), b(n);
    DeviceArray<int> dev_a(n), dev_b(n), dev_c(n);

    auto start = std::chrono::steady_clock::now();
    fill_vectors(a, b, n, -1);
    HANDLE_ERROR(cudaMemcpy(dev_a, a, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, bytes, cudaMemcpyHostToDevice));
    std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    printf("Inputs made on the host and copied:  %8.3f ms\n", elapsed.count());

    HANDLE_ERROR(cudaMemset(dev_a, 0xff, bytes));
    HANDLE_ERROR(cudaMemset(dev_b, 0xff, bytes));
    float ms = median_ms([&] { fill<<<n, 1>>>(dev_a, dev_b, n); });
    printf("Inputs made on the device:           %8.3f ms\n", ms);

    add<<<n, 1>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();
    HostArray<int> made_a(dev_a, n), made_b(dev_b, n), c(dev_c, n);
    print_sums(made_a, made_b, c, n);
    bool ok = check_ints("a", made_a, a, n) && check_ints("b", made_b, b, n) && check_sums("c", c, n, -1);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// With --fill device the program ends in this function, and main, which has the book's version, does not run.
void settings(int argc, char **argv) {
    int fill_by = 0;
    // A grid has at most INT_MAX blocks in x.
    configure(argc, argv, "Adds two vectors on the device, one block for each element.", 0,
              {OPTION_SIZE("size", &n, 1, INT_MAX, "elements in a vector"),
               OPTION_WORD("fill", &fill_by, "host|device", "where the inputs are made")});
    require_memory((fill_by == 1 ? 6 : 4) * n * sizeof(int), 3 * n * sizeof(int));
    if (fill_by == 1)
        exit(fill_on_device());
}

// Task: add(): The grid has n blocks of one thread. The thread of block i stores a[i] + b[i] in c[i]. If
// i >= n, it does nothing. All arrays are in device memory.
