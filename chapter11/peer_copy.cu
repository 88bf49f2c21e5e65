// SPDX-License-Identifier: MIT
/*
 * peer_copy: copies between devices, with and without peer-to-peer access
 *
 * Teaches: A copy from one device to another goes through a staging buffer in host memory unless
 *          peer-to-peer access is enabled. With it the data go directly over PCIe or NVLink, and
 *          kernels can access the memory of the other device too.
 * Terms:   peer-to-peer access, NVLink, PCIe, device memory, bandwidth, latency, staging buffer
 * Book:    11.3 (after the book); R 7.2 (copies between GPUs)
 * Build:   nvcc -o peer_copy chapter11/peer_copy.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter11/peer_copy
 * Needs:   gpus=2
 * Check:   --size 100000 | --size 3001 --gpus 2
 */
#include "../common/book.h"
#include "gpus.h" // gpus, device_id[], choose_gpus()

#define SIZE            (64 * 1024 * 1024)
#define COPIES          5
#define ONE_BYTE_COPIES 100

static size_t bytes = SIZE; // --size
static unsigned char *source, *result;
static bool check(const char *way, int from, int to);

static bool can_access(int from, int to) {
    int can = 0;
    HANDLE_ERROR(cudaDeviceCanAccessPeer(&can, from, to));
    return can;
}

// The milliseconds of so many copies of `size` bytes, one after the other. The events are in the default
// stream of device `from`, which is the current one; the copies are too.
static float time_copies(int copies, size_t size, int from, int to, const void *dev_from, void *dev_to) {
    cudaEvent_t start, stop;
    float elapsedTime;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    HANDLE_ERROR(cudaMemcpyPeerAsync(dev_to, to, dev_from, from, size, 0)); // warms up
    HANDLE_ERROR(cudaEventRecord(start, 0));
    for (int i = 0; i < copies; i++)
        HANDLE_ERROR(cudaMemcpyPeerAsync(dev_to, to, dev_from, from, size, 0));
    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    return elapsedTime;
}

// Times copies of all bytes, and copies of one byte for the latency: many in a row, so that the time to issue
// the first one does not count.
static bool copy(const char *way, int from, int to, const void *dev_from, void *dev_to) {
    HANDLE_ERROR(cudaSetDevice(to));
    HANDLE_ERROR(cudaMemset(dev_to, 0xff, bytes));
    // The copies run in a stream of the other device, which does not wait for the work of this device.
    HANDLE_ERROR(cudaDeviceSynchronize());

    HANDLE_ERROR(cudaSetDevice(from));
    float ms = time_copies(COPIES, bytes, from, to, dev_from, dev_to) / COPIES;
    float many_ms = time_copies(ONE_BYTE_COPIES, 1, from, to, dev_from, dev_to);
    printf("%d to %d  %-12s %10.3f GB/s, %8.2f us for one byte\n", from, to, way, bytes / ms / 1e6,
           many_ms / ONE_BYTE_COPIES * 1e3);

    HANDLE_ERROR(cudaSetDevice(to));
    HANDLE_ERROR(cudaMemcpy(result, dev_to, bytes, cudaMemcpyDeviceToHost));
    return check(way, from, to);
}

// Copies without peer-to-peer access, and then, if it is possible, with access enabled in both directions.
static bool copy_pair(int from, int to, const void *dev_from, void *dev_to) {
    bool ok = copy("by the host", from, to, dev_from, dev_to);
    if (!can_access(from, to) || !can_access(to, from)) {
        printf("%d to %d  no peer access\n", from, to);
        return ok;
    }
    HANDLE_ERROR(cudaSetDevice(from));
    HANDLE_ERROR(cudaDeviceEnablePeerAccess(to, 0));
    HANDLE_ERROR(cudaSetDevice(to));
    HANDLE_ERROR(cudaDeviceEnablePeerAccess(from, 0));
    ok = copy("peer access", from, to, dev_from, dev_to) && ok;
    HANDLE_ERROR(cudaDeviceDisablePeerAccess(from));
    HANDLE_ERROR(cudaSetDevice(from));
    HANDLE_ERROR(cudaDeviceDisablePeerAccess(to));
    return ok;
}

static void print_access(void) {
    printf("Peer access, from row to column:\n%4s", "");
    for (int i = 0; i < gpus; i++)
        printf("%4d", device_id[i]);
    for (int i = 0; i < gpus; i++) {
        printf("\n%4d", device_id[i]);
        for (int j = 0; j < gpus; j++)
            printf("%4s", i == j ? "-" : can_access(device_id[i], device_id[j]) ? "yes" : "no");
    }
    printf("\n");
}

int main(int argc, char **argv) {
    settings(argc, argv);
    source = (unsigned char *)big_random_block(bytes);
    result = (unsigned char *)malloc(bytes);
    HANDLE_NULL(result);
    void *memory[MAX_GPUS];
    for (int i = 0; i < gpus; i++) {
        HANDLE_ERROR(cudaSetDevice(device_id[i]));
        HANDLE_ERROR(cudaMalloc(&memory[i], bytes));
    }

    print_access();

    bool ok = true;
    for (int i = 0; i < gpus; i++) {
        HANDLE_ERROR(cudaSetDevice(device_id[i]));
        HANDLE_ERROR(cudaMemcpy(memory[i], source, bytes, cudaMemcpyHostToDevice));
        for (int j = 0; j < gpus; j++)
            if (i != j)
                ok = copy_pair(device_id[i], device_id[j], memory[i], memory[j]) && ok;
    }

    for (int i = 0; i < gpus; i++) {
        HANDLE_ERROR(cudaSetDevice(device_id[i]));
        HANDLE_ERROR(cudaFree(memory[i]));
    }
    free(source);
    free(result);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    parse_options(
        argc, argv, "Copies between devices, with and without peer access.", 0,
        {OPTION_SIZE("size", &bytes, 1, 1LL << 40, "bytes to copy"),
         OPTION_INT("gpus", &gpus, 2, MAX_GPUS, "number of devices to use; all of them if not given")});
    choose_gpus();
    name_gpus();
    for (int i = 0; i < gpus; i++) {
        HANDLE_ERROR(cudaSetDevice(device_id[i]));
        require_memory(2 * bytes, bytes);
    }
}

// Compares the copy with the source. Access must be enabled in both directions, or in none. CUDA has no
// query for it, but it is an error to enable access twice, or to disable it twice. If there is no error, the
// opposite call restores what was before.
static bool check(const char *way, int from, int to) {
    char name[64];
    snprintf(name, sizeof(name), "wrong copies, %d to %d, %s", from, to, way);
    bool ok = check_value(name, memcmp(result, source, bytes) != 0, 0, 0);
    for (int device : {from, to}) { // `to` is the current device afterwards, as before
        int can, peer = from + to - device;
        HANDLE_ERROR(cudaSetDevice(device));
        HANDLE_ERROR(cudaDeviceCanAccessPeer(&can, device, peer));
        ok = check_value("can_access()", can_access(device, peer), can, 0) && ok;
        if (can && strcmp(way, "peer access") == 0) {
            HANDLE_ERROR(cudaDeviceDisablePeerAccess(peer));
            HANDLE_ERROR(cudaDeviceEnablePeerAccess(peer, 0));
        } else if (can) {
            HANDLE_ERROR(cudaDeviceEnablePeerAccess(peer, 0));
            HANDLE_ERROR(cudaDeviceDisablePeerAccess(peer));
        }
    }
    return ok;
}

// Task: can_access(): Return whether device `from` can access the memory of device `to`.
// copy_pair(): Call copy("by the host", from, to, dev_from, dev_to). If peer access is possible in both
// directions, enable it in both, call copy("peer access", from, to, dev_from, dev_to), and disable it in
// both; otherwise print that there is no peer access. Return whether all calls of copy() have returned true.
// The functions that enable and disable access apply to the current device, and their argument is the peer
// device, whose memory the current device accesses.
