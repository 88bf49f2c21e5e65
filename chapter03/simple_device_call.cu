// SPDX-License-Identifier: MIT
/*
 * simple_device_call: a kernel that calls a function
 *
 * Teaches: A kernel can call functions that are marked for the device. The mark is __device__:
 *          the host cannot call such a function, and a kernel cannot call an unmarked one.
 * Book:    3.2.3 (archive)
 * Run:     ./bin/chapter03/simple_device_call
 * Differs: --a and --b choose the numbers
 */
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"

__device__ int addem(int a, int b) {
    return a + b;
}

__global__ void add(int a, int b, int *c) {
    *c = addem(a, b);
}

int main(int argc, char **argv) {
    int a = 2, b = 7; // within a billion, so that the sum is an int as well
    const Option own[] = {OPTION_INT("a", &a, -1000000000, 1000000000, "first number"),
                          OPTION_INT("b", &b, -1000000000, 1000000000, "second number"),
                          OPTION_END};
    parse_options(argc, argv,
                  "Adds two numbers on the device, in a function that the kernel calls.", 0, own);
    select_device();

    int *dev_c;
    HANDLE_ERROR(cudaMalloc((void **)&dev_c, sizeof(int)));

    add<<<1, 1>>>(a, b, dev_c);
    HANDLE_LAUNCH();

    int c;
    HANDLE_ERROR(cudaMemcpy(&c, dev_c, sizeof(int), cudaMemcpyDeviceToHost));
    inject_error(&c, sizeof c);
    printf("%d + %d = %d\n", a, b, c);

    int expected = a + b;
    bool ok = check_ints("c", &c, &expected, 1);
    HANDLE_ERROR(cudaFree(dev_c));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
