// SPDX-License-Identifier: MIT
/*
 * simple_device_call: a kernel calls a device function
 *
 * Teaches: A kernel can call functions that are marked __device__. Only device code can call them: the
 *          host cannot, and a kernel cannot call an ordinary host function.
 * Terms:   device function, __device__, __global__, kernel, launch, device memory
 * Book:    3.2.3 (archive)
 * Run:     ./bin/chapter03/simple_device_call --a 2 --b 7
 * Differs: the two numbers are options.
 */
#include "../common/book.h"

static int a = 2, b = 7; // --a, --b

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

    add<<<1, 1>>>(a, b, dev_c);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(&c, dev_c, sizeof(int), cudaMemcpyDeviceToHost));
    printf("%d + %d = %d\n", a, b, c);
    HANDLE_ERROR(cudaFree(dev_c));
    return check_value("c", c, a + b, 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

void settings(int argc, char **argv) {
    // Each number is between minus and plus one billion, so that the sum fits an int.
    const Option own[] = {OPTION_INT("a", &a, -1000000000, 1000000000, "first number"),
                          OPTION_INT("b", &b, -1000000000, 1000000000, "second number"), OPTION_END};
    parse_options(argc, argv, "Adds two numbers on the device, in a function that the kernel calls.", 0, own);
    select_device();
}
