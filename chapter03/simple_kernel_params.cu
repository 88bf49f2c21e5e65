// SPDX-License-Identifier: MIT
/*
 * simple_kernel_params: kernel arguments and device memory
 *
 * Teaches: A kernel takes its arguments by value, as a function does, and returns results through
 *          device memory, which the host allocates, copies from and frees. Host and device may pass a
 *          device pointer around, but only device code may read and write memory through it.
 * Terms:   kernel, launch, device pointer, device memory, cudaMalloc, cudaMemcpy, cudaFree
 * Book:    3.2.3
 * Build:   nvcc -o simple_kernel_params chapter03/simple_kernel_params.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter03/simple_kernel_params --a 2 --b 7
 * Differs: the two numbers are options.
 * Check:   --a 4 --b -9
 */
#include "../common/book.h"

static int first = 2, second = 7; // --a, --b

__global__ void add(int a, int b, int *c) {
    *c = a + b;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    // dev_c is a device pointer: it holds an address in device memory, which cudaMalloc stores in it.
    // - The host may pass it to kernels and to host functions.
    // - Kernels may read and write memory through it, as add does.
    // - The host must not: *dev_c = 0 in main would write to an address that is not the host's.
    // - The host copies device memory with cudaMemcpy, and frees it with cudaFree, not with free.
    int c, *dev_c;
    HANDLE_ERROR(cudaMalloc(&dev_c, sizeof(int)));

    add<<<1, 1>>>(first, second, dev_c);
    HANDLE_LAUNCH();

    // cudaMemcpy waits for the kernel, so c is complete when it returns.
    HANDLE_ERROR(cudaMemcpy(&c, dev_c, sizeof(int), cudaMemcpyDeviceToHost));
    printf("%d + %d = %d\n", first, second, c);
    HANDLE_ERROR(cudaFree(dev_c));
    bool ok = check_value("c", c, first + second, 0); // tolerance 0: c must be exactly the sum
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    // Each number is between minus and plus one billion, so that the sum fits an int.
    configure(argc, argv, "Adds two numbers on the device.", 0,
              {OPTION_INT("a", &first, -1000000000, 1000000000, "first number"),
               OPTION_INT("b", &second, -1000000000, 1000000000, "second number")});
}

// Task: add(): The grid has one block of one thread. The thread stores the sum of a and b in *c, an int in
// device memory.
// main(): Allocate device memory for one int and store its address in dev_c. Launch add with one block of one
// thread and the arguments first, second and dev_c. Check the launch with HANDLE_LAUNCH(). Copy the result
// from device memory to the host variable c, and free the device memory. Check each call of the runtime API
// with HANDLE_ERROR().
