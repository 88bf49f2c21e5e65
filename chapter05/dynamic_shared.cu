// SPDX-License-Identifier: MIT
/*
 * dynamic_shared: shared memory whose size is given at the launch
 *
 * Teaches: extern __shared__ declares dynamic shared memory: an array whose size in bytes is the third
 *          argument of the launch. All such arrays of a kernel begin at the same address, so a kernel that
 *          needs two divides one; the part with the larger alignment comes first. If a block needs more than
 *          48 KiB, the host must allow it with cudaFuncSetAttribute before the launch.
 * Terms:   dynamic shared memory, shared memory, barrier, launch, block
 * Book:    5.3.1 (course); T reduction (dynamic shared memory)
 * After:   chapter05/memory_kinds
 * Build:   nvcc -o dynamic_shared chapter05/dynamic_shared.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/dynamic_shared --size 40
 * Check:   --size 40 | --size 9900
 */
#include "../common/book.h"

#define N 64

static size_t n = N; // --size
static bool check(const int *numbers, const char *letters);

// Reverses both arrays in place, with one block. All elements are copied to shared memory first, because an
// element must not be overwritten before it has been read.
__global__ void reverse(int *numbers, char *letters, size_t n) {
    extern __shared__ int shared[];
    int *shared_numbers = shared;                // n ints, aligned to 4 bytes
    char *shared_letters = (char *)(shared + n); // n chars, which need no alignment

    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
        shared_numbers[i] = numbers[i];
        shared_letters[i] = letters[i];
    }
    __syncthreads(); // both arrays are complete

    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
        numbers[i] = shared_numbers[n - 1 - i];
        letters[i] = shared_letters[n - 1 - i];
    }
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int *numbers = (int *)malloc(n * sizeof(int)), shared_bytes = n * sizeof(int) + n * sizeof(char);
    char *letters = (char *)malloc(n * sizeof(char));
    HANDLE_NULL(numbers && letters);
    for (size_t i = 0; i < n; i++) {
        numbers[i] = 2 * i + 1;
        letters[i] = 'a' + i % 26;
    }
    int shown = n < 64 ? n : 64;
    printf("%zu ints and %zu letters in %d bytes of shared memory\n", n, n, shared_bytes);
    printf("%.*s\n", shown, letters);

    int *dev_numbers;
    char *dev_letters;
    HANDLE_ERROR(cudaMalloc(&dev_numbers, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_letters, n));
    HANDLE_ERROR(cudaMemcpy(dev_numbers, numbers, n * sizeof(int), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_letters, letters, n, cudaMemcpyHostToDevice));

    if (shared_bytes > 48 << 10)
        HANDLE_ERROR(
            cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
    reverse<<<1, 256, shared_bytes>>>(dev_numbers, dev_letters, n);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(numbers, dev_numbers, n * sizeof(int), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaMemcpy(letters, dev_letters, n, cudaMemcpyDeviceToHost));
    printf("%.*s\n", shown, letters);
    bool ok = check(numbers, letters);

    HANDLE_ERROR(cudaFree(dev_numbers));
    HANDLE_ERROR(cudaFree(dev_letters));
    free(numbers);
    free(letters);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Reverses two arrays in dynamic shared memory.", 0,
              {OPTION_SIZE("size", &n, 1, 1 << 20, "elements in each array")});
    size_t needed = n * sizeof(int) + n * sizeof(char);
    size_t most = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin); // that a kernel can request
    if (needed > most)
        quit(EXIT_WAIVED, "needs %zu bytes of shared memory in a block, found %zu", needed, most);
}

static bool check(const int *numbers, const char *letters) {
    HostArray<int> codes(n);
    std::copy(letters, letters + n, +codes);
    bool ok = check_ints("number", numbers, n, [](size_t i) { return 2 * (n - 1 - i) + 1; });
    return check_ints("letter", codes, n, [](size_t i) { return 'a' + (n - 1 - i) % 26; }) && ok;
}

// Task: reverse(): One block reverses two arrays in place: n ints (numbers) and n chars (letters). Its
// dynamic shared memory has room for both: declare one array of ints without a size, and let the chars begin
// after the n ints. The threads copy all elements of both arrays to shared memory in a loop whose stride is
// the number of threads in the block. After a barrier for all threads of the block, they write the elements
// back in reverse order: numbers[i] becomes the former numbers[n - 1 - i], and letters[i] the former
// letters[n - 1 - i].
