// SPDX-License-Identifier: MIT
/*
 * peer_copy: copies from device to device, through the host and past it
 *
 * Teaches: A copy from one device to another goes through memory of the host, unless they can reach
 *          each other's memory over the bus or NVLink and peer access is enabled. Then it takes the
 *          direct way, and kernels may use the other's memory as well.
 * Book:    11.3 (after the book)
 * Run:     ./bin/chapter11/peer_copy
 * Needs:   gpus=2
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include "../common/book.h"
#include "../common/memory.h"

#define SIZE     (64 * 1024 * 1024)
#define MAX_GPUS 64

struct Data {
    size_t bytes;
    unsigned char *source, *result;
    int from, to;
    unsigned char *dev_from, *dev_to;
};

// Milliseconds of a copy: the mean of up to 100 in a row, or as many as a tenth of a second has
// room for. A first one warms up, a second one says how many these are.
static float time_copies(const Data &d, size_t bytes) {
    cudaStream_t stream;
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaSetDevice(d.from));
    HANDLE_ERROR(cudaStreamCreate(&stream));
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    float elapsed = 0;
    int copies = 1;
    for (int pass = 0; pass < 3; pass++) {
        HANDLE_ERROR(cudaEventRecord(start, stream));
        for (int i = 0; i < copies; i++)
            HANDLE_ERROR(cudaMemcpyPeerAsync(d.dev_to, d.to, d.dev_from, d.from, bytes, stream));
        HANDLE_ERROR(cudaEventRecord(stop, stream));
        HANDLE_ERROR(cudaEventSynchronize(stop));
        HANDLE_ERROR(cudaEventElapsedTime(&elapsed, start, stop));
        if (pass == 1)
            copies = std::max(1, (int)std::min(100 / elapsed, 100.0f));
    }
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaStreamDestroy(stream));
    return elapsed / copies;
}

static bool test(const Data &d, const char *way) {
    HANDLE_ERROR(cudaSetDevice(d.to));
    HANDLE_ERROR(cudaMemset(d.dev_to, 0xff, d.bytes));
    HANDLE_ERROR(cudaDeviceSynchronize()); // the copy is in a stream of the other device
    float ms = time_copies(d, d.bytes), one_byte = time_copies(d, 1);
    printf("%d to %d  %-12s %10.3f GB/s, %8.2f us for one byte\n", d.from, d.to, way,
           d.bytes / ms / 1e6, one_byte * 1e3);

    HANDLE_ERROR(cudaSetDevice(d.to));
    HANDLE_ERROR(cudaMemcpy(d.result, d.dev_to, d.bytes, cudaMemcpyDeviceToHost));
    inject_error(d.result, d.bytes);
    if (memcmp(d.result, d.source, d.bytes) == 0)
        return true;
    size_t at = std::mismatch(d.result, d.result + d.bytes, d.source).first - d.result;
    fprintf(stderr, "%d to %d, %s: byte %zu is %d, expected %d\n", d.from, d.to, way, at,
            d.result[at], d.source[at]);
    return false;
}

static bool can_access(int from, int to) {
    int can = 0;
    HANDLE_ERROR(cudaDeviceCanAccessPeer(&can, from, to));
    return can;
}

// Without peer access, and with it where it can be had, in both directions.
static bool test_pair(const Data &d) {
    bool ok = test(d, "by the host");
    if (!can_access(d.from, d.to) || !can_access(d.to, d.from)) {
        printf("%d to %d  no peer access\n", d.from, d.to);
        return ok;
    }
    HANDLE_ERROR(cudaSetDevice(d.from));
    HANDLE_ERROR(cudaDeviceEnablePeerAccess(d.to, 0));
    HANDLE_ERROR(cudaSetDevice(d.to));
    HANDLE_ERROR(cudaDeviceEnablePeerAccess(d.from, 0));
    ok = test(d, "peer access") && ok;
    HANDLE_ERROR(cudaDeviceDisablePeerAccess(d.from));
    HANDLE_ERROR(cudaSetDevice(d.from));
    HANDLE_ERROR(cudaDeviceDisablePeerAccess(d.to));
    return ok;
}

int main(int argc, char **argv) {
    Data d = {};
    d.bytes = SIZE;
    int gpus = 0, count;
    const Option own[] = {OPTION_SIZE("size", &d.bytes, 1, 1LL << 40, "bytes to copy"),
                          OPTION_INT("gpus", &gpus, 2, MAX_GPUS, "devices to use, or else all"),
                          OPTION_END};
    parse_options(argc, argv, "Copies between devices, with and without peer access.", 0, own);
    select_device();
    HANDLE_ERROR(cudaGetDeviceCount(&count));
    if (count < std::max(gpus, 2))
        quit(EXIT_WAIVED, "needs %d GPUs, found %d", std::max(gpus, 2), count);
    gpus = gpus ? gpus : std::min(count, MAX_GPUS);

    int id[MAX_GPUS]; // --device says which device comes first
    unsigned char *memory[MAX_GPUS];
    for (int i = 0; i < gpus; i++) {
        id[i] = (options.device + i) % count;
        print_device(id[i]);
        HANDLE_ERROR(cudaSetDevice(id[i]));
        require_memory(2 * d.bytes, d.bytes);
    }
    d.source = (unsigned char *)big_random_block(d.bytes);
    d.result = (unsigned char *)malloc(d.bytes);
    HANDLE_NULL(d.result);
    for (int i = 0; i < gpus; i++) {
        HANDLE_ERROR(cudaSetDevice(id[i]));
        HANDLE_ERROR(cudaMalloc((void **)&memory[i], d.bytes));
    }

    printf("Peer access, from row to column:\n%4s", "");
    for (int i = 0; i < gpus; i++)
        printf("%4d", id[i]);
    for (int i = 0; i < gpus; i++) {
        printf("\n%4d", id[i]);
        for (int j = 0; j < gpus; j++)
            printf("%4s", i == j ? "-" : can_access(id[i], id[j]) ? "yes" : "no");
    }
    printf("\n");

    bool ok = true;
    for (int i = 0; i < gpus; i++) {
        HANDLE_ERROR(cudaSetDevice(id[i]));
        HANDLE_ERROR(cudaMemcpy(memory[i], d.source, d.bytes, cudaMemcpyHostToDevice));
        for (int j = 0; j < gpus; j++) {
            d.from = id[i];
            d.to = id[j];
            d.dev_from = memory[i];
            d.dev_to = memory[j];
            ok = (i == j || test_pair(d)) && ok;
        }
    }

    for (int i = 0; i < gpus; i++) {
        HANDLE_ERROR(cudaSetDevice(id[i]));
        HANDLE_ERROR(cudaFree(memory[i]));
    }
    free(d.result);
    free(d.source);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
