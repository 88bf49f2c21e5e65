// SPDX-License-Identifier: MIT
/*
 * simple_device_call: a kernel calls device functions
 *
 * Teaches: A kernel can call functions that are marked __device__. Only device code can call them: the
 *          host cannot, and a kernel cannot call an ordinary host function. A device function may also
 *          be called through a pointer, and may call itself; each thread has a stack for the calls.
 * Terms:   device function, __device__, __global__, kernel, launch, device memory, function pointer,
 *          recursion
 * Book:    3.2.3 (archive); R 7.2 (functions of the device)
 * Build:   nvcc -o simple_device_call chapter03/simple_device_call.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter03/simple_device_call --a 2 --b 7
 * Differs: the two numbers are options, and they are added in three ways. Devices of compute capability 1 had
 *          neither pointers to functions nor recursion; all later ones have both.
 * Check:   --a 5 --b -9
 */
#include "../common/book.h"

static int first = 2, second = 7; // --a, --b

__device__ int addem(int a, int b) {
    return a + b;
}

// A pointer to a device function. It holds the address of the function on the device, so it is a variable of
// the device too. On the host the function has another address, or none.
__device__ int (*pointer)(int a, int b) = addem;

// Recursion: the function calls itself. a ^ b is the sum of each two bits without the carries, and
// (a & b) << 1 has the carries, which the next call adds, until there are none.
__device__ unsigned add_bits(unsigned a, unsigned b) {
    if (b == 0)
        return a;
    return add_bits(a ^ b, (a & b) << 1);
}

__global__ void add(int a, int b, int *c) {
    c[0] = addem(a, b);
    c[1] = pointer(a, b);
    c[2] = add_bits(a, b);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    // The compiler cannot know how deep a recursion nests, so the host sets the size of each thread's stack:
    // at most 33 calls of at most 64 bytes.
    HANDLE_ERROR(cudaDeviceSetLimit(cudaLimitStackSize, 33 * 64));

    int c[3], *dev_c;
    HANDLE_ERROR(cudaMalloc(&dev_c, sizeof(c)));

    add<<<1, 1>>>(first, second, dev_c);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(c, dev_c, sizeof(c), cudaMemcpyDeviceToHost));
    printf("%d + %d = %d\n", first, second, c[0]);
    printf("through a pointer %d, by recursion %d\n", c[1], c[2]);
    HANDLE_ERROR(cudaFree(dev_c));
    const int expected[3] = {first + second, first + second, first + second};
    return check_ints("c", c, expected, 3) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    // Each number is between minus and plus one billion, so that the sum fits an int.
    configure(argc, argv, "Adds two numbers on the device, in functions that the kernel calls.", 0,
              {OPTION_INT("a", &first, -1000000000, 1000000000, "first number"),
               OPTION_INT("b", &second, -1000000000, 1000000000, "second number")});
}

// Task: addem(): Return the sum of a and b.
// add_bits(): Return the sum of a and b by recursion, with the operators ^, & and << instead of +.
