// SPDX-License-Identifier: MIT
/*
 * simple_kernel: the first kernel launch
 *
 * Teaches: A kernel is a function that runs on the device: __global__ marks it, and the host launches
 *          it with <<<blocks, threads>>>. A launch is asynchronous: it returns before the kernel has
 *          run, and it returns no error, so the program asks for errors afterwards.
 * Terms:   kernel, launch, __global__, asynchronous launch, synchronization, host, device
 * Book:    3.2.2
 * Build:   nvcc -o simple_kernel chapter03/simple_kernel.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter03/simple_kernel
 * Differs: the launch is checked. The book's program prints its greeting even where the kernel could
 *          not run.
 */
#include "../common/book.h"

__global__ void kernel(void) {}

int main(int argc, char **argv) {
    settings(argc, argv);
    kernel<<<1, 1>>>();
    HANDLE_LAUNCH();                       // was the launch accepted?
    HANDLE_ERROR(cudaDeviceSynchronize()); // waits for the kernel: did it run without an error?
    printf("Hello, World!\n");
    return EXIT_SUCCESS;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Launches an empty kernel, then prints a greeting.");
}

// Task: none: its kernel is empty
