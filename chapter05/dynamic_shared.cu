// SPDX-License-Identifier: MIT
/*
 * dynamic_shared: shared memory whose size the launch decides
 *
 * Teaches: extern __shared__ declares an array without a size, and the third number of the launch
 *          gives its bytes. A kernel has one such array, so two arrays are two parts of it, the
 *          one with the stricter alignment first. More than 48 KiB have to be asked for.
 * Book:    5.3.1 (course)
 * Run:     ./bin/chapter05/dynamic_shared --size 40
 */
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"

#define N 64

// Turns both arrays round. An element may be overwritten only when it has been read, so all of them
// go to shared memory first. One block does it, for any n.
__global__ void reverse(int *numbers, char *letters, size_t n) {
    extern __shared__ int shared[];
    int *shared_numbers = shared;                // n of them, each on a multiple of 4 bytes
    char *shared_letters = (char *)(shared + n); // n of them, which may lie anywhere

    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
        shared_numbers[i] = numbers[i];
        shared_letters[i] = letters[i];
    }

    __syncthreads();

    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
        numbers[i] = shared_numbers[n - 1 - i];
        letters[i] = shared_letters[n - 1 - i];
    }
}

// Every kernel may use 48 KiB in a block. Most devices have more, for a kernel that says so.
static void allow_shared(size_t bytes) {
    int most;
    HANDLE_ERROR(
        cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, options.device));
    if (bytes > (size_t)most)
        quit(EXIT_WAIVED, "needs %zu bytes of shared memory in a block, found %d", bytes, most);
    if (bytes > 48 << 10)
        HANDLE_ERROR(
            cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
}

static bool check(const int *got_numbers, const char *got_letters, const int *numbers,
                  const char *letters, size_t n) {
    int *got = (int *)malloc(n * sizeof(int)), *expected = (int *)malloc(n * sizeof(int));
    HANDLE_NULL(got);
    HANDLE_NULL(expected);
    for (size_t i = 0; i < n; i++)
        expected[i] = numbers[n - 1 - i];
    bool ok = check_ints("number", got_numbers, expected, n);
    for (size_t i = 0; i < n; i++) {
        got[i] = got_letters[i];
        expected[i] = letters[n - 1 - i];
    }
    ok = check_ints("letter", got, expected, n) && ok;
    free(got);
    free(expected);
    return ok;
}

int main(int argc, char **argv) {
    size_t n = N;
    const Option own[] = {OPTION_SIZE("size", &n, 1, 1 << 20, "elements in each array"),
                          OPTION_END};
    parse_options(argc, argv, "Turns two arrays round in dynamic shared memory.", 0, own);
    select_device();

    size_t shared_bytes = n * sizeof(int) + n * sizeof(char);
    allow_shared(shared_bytes);
    int *numbers = big_random_ints(n), *turned_numbers = (int *)malloc(n * sizeof(int));
    char *letters = (char *)malloc(n), *turned_letters = (char *)malloc(n);
    HANDLE_NULL(turned_numbers);
    HANDLE_NULL(letters);
    HANDLE_NULL(turned_letters);
    for (size_t i = 0; i < n; i++)
        letters[i] = 'a' + i % 26;

    int *dev_numbers;
    char *dev_letters;
    HANDLE_ERROR(cudaMalloc((void **)&dev_numbers, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_letters, n));
    HANDLE_ERROR(cudaMemcpy(dev_numbers, numbers, n * sizeof(int), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_letters, letters, n, cudaMemcpyHostToDevice));

    reverse<<<1, 256, shared_bytes>>>(dev_numbers, dev_letters, n);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(turned_numbers, dev_numbers, n * sizeof(int), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaMemcpy(turned_letters, dev_letters, n, cudaMemcpyDeviceToHost));
    inject_error(turned_letters, n);
    int shown = n < 64 ? n : 64;
    printf("%zu ints and %zu letters in %zu bytes of shared memory\n", n, n, shared_bytes);
    printf("%.*s\n%.*s\n", shown, letters, shown, turned_letters);
    bool ok = check(turned_numbers, turned_letters, numbers, letters, n);

    HANDLE_ERROR(cudaFree(dev_numbers));
    HANDLE_ERROR(cudaFree(dev_letters));
    free(numbers);
    free(turned_numbers);
    free(letters);
    free(turned_letters);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
