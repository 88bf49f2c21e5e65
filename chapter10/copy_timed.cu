// SPDX-License-Identifier: MIT
/*
 * copy_timed: how fast memory is copied to the device and back
 *
 * Teaches: The device can copy from pinned host memory by itself, because its pages stay where they
 *          are; other memory the driver first copies to pinned memory of its own. So pinned memory
 *          is copied faster, and only it can be copied while the host, or a copy the other way,
 *          goes on. There is a price: what is pinned is taken from everybody else.
 * Book:    10.2
 * Run:     ./bin/chapter10/copy_timed
 * Differs: also write-combined memory, which the host writes past its caches and reads slowly, and
 *          both directions at once, in two streams. MB are 10^6 bytes. What came back is verified.
 *          100 copies are timed, or where they take more than half a second, as many as a quarter
 *          has room for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include "../common/book.h"
#include "../common/memory.h"

#define SIZE   (64 * 1024 * 1024)
#define COPIES 100

struct Data {
    size_t bytes;
    int copies;
    const int *source; // what is copied
    int *result;       // what came back
    int *dev_a, *dev_b;
    cudaStream_t up, down;
    cudaEvent_t start, stop;
};

// Milliseconds of one call of copy(): the mean of many, with nothing in between. A first one warms
// up and says how many there is time for.
template <class Copy> static float cuda_copy_test(const Data &d, const char *name, Copy copy) {
    float elapsed = 0;
    int copies = 1;
    for (int pass = 0; pass < 3; pass++) {
        HANDLE_ERROR(cudaEventRecord(d.start, 0));
        for (int i = 0; i < copies; i++)
            copy();
        HANDLE_ERROR(cudaEventRecord(d.stop, 0));
        HANDLE_ERROR(cudaEventSynchronize(d.stop));
        HANDLE_ERROR(cudaEventElapsedTime(&elapsed, d.start, d.stop));
        if (pass == 1)
            copies = d.copies * elapsed <= 500 ? d.copies : std::max(1, (int)(250 / elapsed));
    }
    printf("  %-28s %9.3f ms a copy, %9.1f MB/s (%d copies)\n", name, elapsed / copies,
           d.bytes / 1e3 * copies / elapsed, copies);
    return elapsed;
}

// Up and down again from and to host memory of one kind. What the host cannot read fast, the device
// reads for it: so the result goes up once more, and down to ordinary memory.
static bool test(const Data &d, const char *name, int *host) {
    printf("%s\n", name);
    memcpy(host, d.source, d.bytes);
    HANDLE_ERROR(cudaMemset(d.dev_a, 0xff, d.bytes));
    cuda_copy_test(d, "up, to the device:", [&] {
        HANDLE_ERROR(cudaMemcpy(d.dev_a, host, d.bytes, cudaMemcpyHostToDevice));
    });
    memset(host, 0xff, d.bytes);
    cuda_copy_test(d, "down, to the host:", [&] {
        HANDLE_ERROR(cudaMemcpy(host, d.dev_a, d.bytes, cudaMemcpyDeviceToHost));
    });
    HANDLE_ERROR(cudaMemcpy(d.dev_b, host, d.bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(d.result, d.dev_b, d.bytes, cudaMemcpyDeviceToHost));
    inject_error(d.result, d.bytes);
    return check_ints(name, d.result, d.source, d.bytes / sizeof(int));
}

// One buffer up and another one down, in a stream each. Both streams are waited for, so that the
// next pair starts together: what is timed is both directions, not one after the other.
static bool test_both(const Data &d, int *host_up, int *host_down) {
    const char *name = "Pinned memory, both directions at once";
    printf("%s\n", name);
    memcpy(host_up, d.source, d.bytes);
    HANDLE_ERROR(cudaMemcpy(d.dev_b, host_up, d.bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemset(d.dev_a, 0xff, d.bytes));
    memset(host_down, 0xff, d.bytes);
    cuda_copy_test(d, "each, at the same time:", [&] {
        HANDLE_ERROR(cudaMemcpyAsync(d.dev_a, host_up, d.bytes, cudaMemcpyHostToDevice, d.up));
        HANDLE_ERROR(cudaMemcpyAsync(host_down, d.dev_b, d.bytes, cudaMemcpyDeviceToHost, d.down));
        HANDLE_ERROR(cudaStreamSynchronize(d.up));
        HANDLE_ERROR(cudaStreamSynchronize(d.down));
    });
    HANDLE_ERROR(cudaMemcpy(d.result, d.dev_a, d.bytes, cudaMemcpyDeviceToHost));
    bool ok = check_ints("up", d.result, d.source, d.bytes / sizeof(int));
    return check_ints("down", host_down, d.source, d.bytes / sizeof(int)) && ok;
}

int main(int argc, char **argv) {
    size_t size = SIZE;
    Data d = {};
    d.copies = COPIES;
    const Option own[] = {
        OPTION_SIZE("size", &size, 1, 1LL << 40, "ints to copy"),
        OPTION_INT("iterations", &d.copies, 1, 1000000, "copies that are timed, if time allows"),
        OPTION_END};
    parse_options(argc, argv, "Times copies to the device and back.", TIMES, own);
    select_device();
    d.bytes = size * sizeof(int);
    require_memory(4 * d.bytes, 2 * d.bytes);

    int *source = big_random_ints(size), *pageable = (int *)malloc(d.bytes);
    int *pinned, *other, *combined;
    d.source = source;
    d.result = (int *)malloc(d.bytes);
    HANDLE_NULL(pageable);
    HANDLE_NULL(d.result);
    HANDLE_ERROR(cudaMalloc((void **)&d.dev_a, d.bytes));
    HANDLE_ERROR(cudaMalloc((void **)&d.dev_b, d.bytes));
    HANDLE_ERROR(cudaStreamCreate(&d.up));
    HANDLE_ERROR(cudaStreamCreate(&d.down));
    HANDLE_ERROR(cudaEventCreate(&d.start));
    HANDLE_ERROR(cudaEventCreate(&d.stop));

    printf("%.3f MB\n", d.bytes / 1e6);
    bool ok = test(d, "Pageable memory", pageable);
    free(pageable);
    HANDLE_ERROR(cudaHostAlloc((void **)&pinned, d.bytes, cudaHostAllocDefault));
    ok = test(d, "Pinned memory", pinned) && ok;
    HANDLE_ERROR(cudaHostAlloc((void **)&other, d.bytes, cudaHostAllocDefault));
    ok = test_both(d, pinned, other) && ok;
    HANDLE_ERROR(cudaFreeHost(other));
    HANDLE_ERROR(cudaFreeHost(pinned));
    HANDLE_ERROR(cudaHostAlloc((void **)&combined, d.bytes, cudaHostAllocWriteCombined));
    ok = test(d, "Write-combined memory", combined) && ok;
    HANDLE_ERROR(cudaFreeHost(combined));

    HANDLE_ERROR(cudaEventDestroy(d.start));
    HANDLE_ERROR(cudaEventDestroy(d.stop));
    HANDLE_ERROR(cudaStreamDestroy(d.up));
    HANDLE_ERROR(cudaStreamDestroy(d.down));
    HANDLE_ERROR(cudaFree(d.dev_a));
    HANDLE_ERROR(cudaFree(d.dev_b));
    free(d.result);
    free(source);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
