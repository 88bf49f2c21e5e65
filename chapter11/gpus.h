// SPDX-License-Identifier: MIT
// What this chapter's programs for several GPUs share: the choice of the devices, and for the dot
// product the parts of the vectors, the options and the check of the sum.
#ifndef CHAPTER11_GPUS_H
#define CHAPTER11_GPUS_H

#include "../common/book.h"
#include "../common/proofs/dot.h"

#define N        (33 * 1024 * 1024)
#define MAX_GPUS 64
const int threadsPerBlock = 256;

static int gpus = 0;            // --gpus; settings() replaces 0 by the number of devices
static int device_id[MAX_GPUS]; // the devices to use
static size_t n = N;            // --size of the dot products

// Elements of the part of GPU i. The first n % gpus parts are one element longer than the others.
static inline size_t part_size(int i) {
    return n / gpus + ((size_t)i < n % gpus);
}

// ---------------------------------------------------------------------------------------- proof

// Sets gpus and device_id, after parse_options, and prints the names of the devices. Without --gpus all
// devices are used, at least two. --device selects the first one. Waived when there are too few.
static inline void choose_gpus(void) {
    int count, needed = gpus ? gpus : 2;
    select_device();
    HANDLE_ERROR(cudaGetDeviceCount(&count));
    if (count < needed)
        quit(EXIT_WAIVED, "needs %d GPUs, found %d", needed, count);
    gpus = gpus ? gpus : min_of(count, MAX_GPUS);
    for (int i = 0; i < gpus; i++) {
        device_id[i] = (options.device + i) % count;
        print_device(device_id[i]);
    }
}

static inline void dot_settings(int argc, char **argv, const char *doc) {
    const Option own[] = {
        OPTION_SIZE("size", &n, 1, (size_t)1 << 33, "elements in a vector"),
        OPTION_INT("gpus", &gpus, 1, MAX_GPUS, "number of devices to use; all of them if not given"),
        OPTION_END};
    parse_options(argc, argv, doc, 0, own);
    choose_gpus();
}

// Each product goes through the additions of its thread, those of the tree, of the blocks and of the
// devices. A device uses 32 blocks, or fewer when each thread has one element.
static inline bool check_parts(float c) {
    double per_thread = ceil((double)part_size(0) / (32 * threadsPerBlock));
    return check_dot("dot product", c, n, per_thread + log2(threadsPerBlock) + 32 + gpus);
}

#endif
