// SPDX-License-Identifier: MIT
/*
 * recursion: a device function that calls itself, and pointers to device functions
 *
 * Teaches: A device function may call itself, and may be called through a pointer. Each thread has a stack
 *          for its calls. The compiler cannot know how deep a recursion will nest, so the host sets the
 *          size of the stack before the launch.
 * Terms:   recursion, function pointer, device function, __device__
 * Book:    3.2.3 (course)
 * Build:   nvcc -o recursion chapter03/recursion.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter03/recursion --a 2 --b 7
 * Differs: devices of compute capability 1 had neither recursion nor pointers to functions; all later ones
 *          have both.
 * Check:   --a 5 --b 0 | --b 9
 */
#include "../common/book.h"

#define DEEPEST         200 // the largest --b: nested calls
#define BYTES_OF_A_CALL 64  // of stack, at most

static int first = 2, second = 7; // --a, --b
static bool check(const int *c);

__device__ int add_once(int a, int b) {
    return a + b;
}

// Adds 1 to a, b times. Each call has its own a and b on the stack of the thread.
__device__ int add_ones(int a, int b) {
    if (b == 0)
        return a;
    return 1 + add_ones(a, b - 1);
}

// The table of pointers is a variable of the device (__device__), because it holds the addresses of
// functions on the device. On the host these functions have other addresses, or none.
__device__ int (*functions[])(int a, int b) = {add_once, add_ones};

__global__ void add(int a, int b, int *c) {
    for (int i = 0; i < 2; i++)
        c[i] = functions[i](a, b);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t stack;
    HANDLE_ERROR(cudaDeviceSetLimit(cudaLimitStackSize, BYTES_OF_A_CALL * (second + 16)));
    HANDLE_ERROR(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
    printf("%zu bytes of stack for each thread, %d nested calls\n", stack, second + 1);

    int c[2], *dev_c;
    HANDLE_ERROR(cudaMalloc(&dev_c, sizeof(c)));
    add<<<1, 1>>>(first, second, dev_c);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(c, dev_c, sizeof(c), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaFree(dev_c));

    printf("add_once: %d + %d = %d\n", first, second, c[0]);
    printf("add_ones: %d + %d = %d\n", first, second, c[1]);
    return check(c) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Adds two numbers on the device, also by recursion.", 0,
              {OPTION_INT("a", &first, -1000000000, 1000000000, "first number"),
               OPTION_INT("b", &second, 0, DEEPEST, "second number: recursive calls")});
}

static bool check(const int *c) {
    const int expected[] = {first + second, first + second};
    return check_ints("c", c, expected, 2);
}

// Task: add_ones(): Return a + b, with b >= 0, by recursion: each call adds 1, and the last one has b = 0.
