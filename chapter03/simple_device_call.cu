// SPDX-License-Identifier: MIT
/*
 * simple_device_call: a kernel calls a device function
 *
 * Teaches: A kernel can call functions that are marked __device__. Only device code can call them: the
 *          host cannot, and a kernel cannot call an ordinary host function. A device function may also
 *          be called through a pointer, and may call itself; each thread has a stack for the calls.
 * Terms:   device function, __device__, __global__, kernel, launch, device memory, function pointer,
 *          recursion
 * Book:    3.2.3 (archive)
 * Build:   nvcc -o simple_device_call chapter03/simple_device_call.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter03/simple_device_call --a 2 --b 7 --via pointer
 * Differs: the two numbers are options, and --via calls in other ways, by a kernel below the line. Devices of
 *          compute capability 1 had neither pointers to functions nor recursion; all later ones have both.
 * Check:   --via direct | --via pointer --a 5 | --via recursion --b 9
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

// ---------------------------------------------------------------------------------------- check

enum Via { DIRECT, POINTER, RECURSION };
const int DEEPEST = 200;        // nested calls
const int BYTES_OF_A_CALL = 64; // of stack, at most

// Adds 1 to a, b times. Each call has its own a and b on the stack of the thread. The compiler cannot know
// how deep the calls will nest, so the host sets the size of the stack.
__device__ static int add_ones(int a, int b) {
    return b == 0 ? a : 1 + add_ones(a, b - 1);
}

// Pointers to device functions. The addresses are those of the functions on the device, so the table
// is a variable of the device too: on the host addem has another address, or none.
typedef int (*Function)(int, int);
__device__ Function functions[] = {addem, addem, add_ones}; // the index is a Via; DIRECT needs no pointer

__global__ void add_through(int a, int b, int *c, int via) {
    *c = functions[via](a, b);
}

// Adds as main does, through a pointer. Returns the exit status.
static int add_via(int via) {
    if (via == RECURSION) {
        size_t stack;
        HANDLE_ERROR(cudaDeviceSetLimit(cudaLimitStackSize, BYTES_OF_A_CALL * (b + 16)));
        HANDLE_ERROR(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
        printf("%zu bytes of stack for each thread, %d nested calls\n", stack, b + 1);
    }
    DeviceArray<int> dev_c(1);
    add_through<<<1, 1>>>(a, b, dev_c, via);
    HANDLE_LAUNCH();
    HostArray<int> c(dev_c, 1);
    printf("%d + %d = %d\n", a, b, c[0]);
    return check_value("c", c[0], a + b, 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// With --via pointer and recursion the program ends in this function, and main does not run.
void settings(int argc, char **argv) {
    int via = DIRECT;
    // Each number is between minus and plus one billion, so that the sum fits an int.
    parse_options(
        argc, argv, "Adds two numbers on the device, in a function that the kernel calls.", 0,
        {OPTION_INT("a", &a, -1000000000, 1000000000, "first number"),
         OPTION_INT("b", &b, -1000000000, 1000000000, "second number"),
         OPTION_WORD("via", &via, "direct|pointer|recursion", "how the kernel calls the function")});
    if (via == RECURSION && (b < 0 || b > DEEPEST))
        quit(EXIT_USAGE, "--via recursion nests b calls, so --b must be from 0 to %d", DEEPEST);
    select_device();
    if (via != DIRECT)
        exit(add_via(via));
}

// Task: addem(): Return the sum of a and b.
// add(): The grid has one block of one thread. The thread stores in *c what addem() returns for a and b.
