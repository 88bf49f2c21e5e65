// SPDX-License-Identifier: MIT
/*
 * simple_device_call: a kernel calls a device function
 *
 * Teaches: A kernel can call functions that are marked __device__. Only device code can call them: the
 *          host cannot, and a kernel cannot call an ordinary host function.
 * Terms:   device function, __device__, __global__, kernel, launch, device memory
 * Book:    3.2.3 (archive)
 * Build:   nvcc -o simple_device_call chapter03/simple_device_call.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter03/simple_device_call --a 2 --b 7
 * Differs: the two numbers are options.
 * Check:   --a 5 --b -9
 */
#include "../common/book.h"

static int first = 2, second = 7; // --a, --b

__device__ int addem(int a, int b) {
    return a + b;
}

__global__ void add(int a, int b, int *c) {
    *c = addem(a, b);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int c, *dev_c;
    HANDLE_ERROR(cudaMalloc(&dev_c, sizeof(int)));

    add<<<1, 1>>>(first, second, dev_c);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(&c, dev_c, sizeof(int), cudaMemcpyDeviceToHost));
    printf("%d + %d = %d\n", first, second, c);
    HANDLE_ERROR(cudaFree(dev_c));
    bool ok = check_value("c", c, first + second, 0); // tolerance 0: c must be exactly the sum
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    // Each number is between minus and plus one billion, so that the sum fits an int.
    configure(argc, argv, "Adds two numbers on the device, in a function that the kernel calls.", 0,
              {OPTION_INT("a", &first, -1000000000, 1000000000, "first number"),
               OPTION_INT("b", &second, -1000000000, 1000000000, "second number")});
}

// Task: addem(): Return the sum of a and b.
// add(): The grid has one block of one thread. The thread stores in *c what addem() returns for a and b.
