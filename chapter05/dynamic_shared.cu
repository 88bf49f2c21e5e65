// SPDX-License-Identifier: MIT
/*
 * dynamic_shared: shared memory whose size is given at the launch
 *
 * Teaches: extern __shared__ declares dynamic shared memory: an array whose size in bytes is the third
 *          argument of the launch. A kernel has only one such array, so one that needs two divides it; the
 *          part with the larger alignment comes first. If a block needs more than 48 KiB, the host must
 *          allow it with cudaFuncSetAttribute before the launch.
 * Terms:   dynamic shared memory, shared memory, barrier, launch, block
 * Book:    5.3.1 (course)
 * After:   chapter05/memory_kinds
 * Build:   nvcc -o dynamic_shared chapter05/dynamic_shared.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/dynamic_shared --size 40
 * Check:   --size 40 | --size 9900
 */
#include "../common/book.h"

#define N 64

static size_t n = N; // --size
template <class T> static bool check(const char *name, const T *in, const T *out);

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
    int *numbers = big_random_ints(n), *reversed_numbers = host_array<int>(n);
    char *letters = host_array<char>(n), *reversed_letters = host_array<char>(n);
    for (size_t i = 0; i < n; i++)
        letters[i] = 'a' + i % 26;

    int *dev_numbers;
    char *dev_letters;
    HANDLE_ERROR(cudaMalloc(&dev_numbers, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_letters, n));
    HANDLE_ERROR(cudaMemcpy(dev_numbers, numbers, n * sizeof(int), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_letters, letters, n, cudaMemcpyHostToDevice));

    int shared_bytes = n * sizeof(int) + n * sizeof(char);
    if (shared_bytes > 48 << 10)
        HANDLE_ERROR(
            cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
    reverse<<<1, 256, shared_bytes>>>(dev_numbers, dev_letters, n);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(reversed_numbers, dev_numbers, n * sizeof(int), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaMemcpy(reversed_letters, dev_letters, n, cudaMemcpyDeviceToHost));
    int shown = min_of(n, 64);
    printf("%zu ints and %zu letters in %d bytes of shared memory\n", n, n, shared_bytes);
    printf("%.*s\n%.*s\n", shown, letters, shown, reversed_letters);
    bool ok = check("number", numbers, reversed_numbers);
    ok = check("letter", letters, reversed_letters) && ok;

    HANDLE_ERROR(cudaFree(dev_numbers));
    HANDLE_ERROR(cudaFree(dev_letters));
    free(numbers);
    free(reversed_numbers);
    free(letters);
    free(reversed_letters);
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

// Compares out with the reverse of the input: the numbers that --seed determines, or the letters.
template <class T> static bool check(const char *name, const T *, const T *out) {
    HostArray<int> got(n), in(n);
    std::copy(out, out + n, +got);
    seed_random(options.seed);
    random_bytes(in, n * sizeof(int));
    for (size_t i = 0; i < n && sizeof(T) == sizeof(char); i++)
        in[i] = 'a' + i % 26;
    return check_ints(name, got, n, [&](size_t i) { return in[n - 1 - i]; });
}

// Task: reverse(): One block reverses two arrays in place: n ints (numbers) and n chars (letters). Its
// dynamic shared memory has room for both: declare one array of ints without a size, and let the chars begin
// after the n ints. The threads copy all elements of both arrays to shared memory in a loop whose stride is
// the number of threads in the block. After a barrier for all threads of the block, they write the elements
// back in reverse order: numbers[i] becomes the former numbers[n - 1 - i], and letters[i] the former
// letters[n - 1 - i].
