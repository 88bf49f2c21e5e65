// SPDX-License-Identifier: MIT
/*
 * simple_kernel_params: arguments in, a result out
 *
 * Teaches: A kernel takes arguments by value and leaves its results in device memory, which the
 *          host allocates, copies from and frees. The host may pass a device pointer around,
 *          never dereference it.
 * Book:    3.2.3
 * Run:     ./bin/chapter03/simple_kernel_params
 * Differs: --a and --b choose the numbers
 */
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"

__global__ void add(int a, int b, int *c) {
    *c = a + b;
}

int main(int argc, char **argv) {
    int a = 2, b = 7; // within a billion, so that the sum is an int as well
    const Option own[] = {OPTION_INT("a", &a, -1000000000, 1000000000, "first number"),
                          OPTION_INT("b", &b, -1000000000, 1000000000, "second number"),
                          OPTION_END};
    parse_options(argc, argv, "Adds two numbers on the device.", 0, own);
    select_device();

    int *dev_c;
    HANDLE_ERROR(cudaMalloc((void **)&dev_c, sizeof(int)));

    add<<<1, 1>>>(a, b, dev_c);
    HANDLE_LAUNCH();

    int c; // the copy waits for the kernel
    HANDLE_ERROR(cudaMemcpy(&c, dev_c, sizeof(int), cudaMemcpyDeviceToHost));
    inject_error(&c, sizeof c);
    printf("%d + %d = %d\n", a, b, c);

    int expected = a + b;
    bool ok = check_ints("c", &c, &expected, 1);
    HANDLE_ERROR(cudaFree(dev_c));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
