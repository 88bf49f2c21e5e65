// SPDX-License-Identifier: MIT
/*
 * simple_kernel: the first launch
 *
 * Teaches: A kernel is a function that runs on the device, launched by the host. __global__ marks
 *          it and <<<blocks, threads>>> launches it. A launch returns nothing, so its errors have
 *          to be asked for.
 * Book:    3.2.2
 * Run:     ./bin/chapter03/simple_kernel
 * Differs: the launch is checked. The book greets even where the kernel could not run.
 */
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"

__global__ void kernel(void) {}

int main(int argc, char **argv) {
    parse_options(argc, argv, "Launches an empty kernel, then greets.", 0, NULL);
    select_device();

    kernel<<<1, 1>>>();
    HANDLE_LAUNCH();

    // HANDLE_LAUNCH saw whether the launch was accepted. The kernel runs on its own time, and an
    // error that it meets then is what waiting for it returns.
    cudaError_t status = cudaDeviceSynchronize();
    inject_error(&status, 1); // one byte, so that it stays in the range of the enum
    HANDLE_ERROR(status);

    printf("Hello, World!\n");
    return EXIT_SUCCESS;
}
