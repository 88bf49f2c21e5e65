// SPDX-License-Identifier: MIT
// What the dot products on several GPUs share: the sizes, the options, the parts of the vectors, and the
// check of the sum. Two programs use it, multidevice and portable: they divide the same vectors in the same
// ways, so that their times can be compared.
#pragma once

#include "../common/checks/dot.h"
#include "gpus.h" // gpus, device_id[]

extern size_t n;              // --size, which each program defines with the size of the book
static size_t part[MAX_GPUS]; // elements of each GPU's part: the same number, or as --share and --balance ask

// ---------------------------------------------------------------------------------------- check

// Load balancing: gives each GPU a part in proportion to its rate, in elements per second.
static inline void set_parts(const double *rate) {
    double all = 0, before = 0;
    size_t from = 0;
    for (int i = 0; i < gpus; i++)
        all += rate[i];
    for (int i = 0; i < gpus; i++) {
        before += rate[i];
        size_t to = i == gpus - 1 ? n : min_of(n, (size_t)(n * (before / all)));
        part[i] = to - from;
        from = to;
    }
}

static bool elsewhere = false; // whether memory for a part was on another device than its own

static inline void expect_device(const void *memory, int device) {
    cudaPointerAttributes found;
    HANDLE_ERROR(cudaPointerGetAttributes(&found, memory));
    if (found.device != device)
        elsewhere = true;
}

// Sets n, gpus, device_id and part. With --balance the parts are set from the times that `measure` stores for
// parts of a sixteenth of n elements, computed on all GPUs at the same time. `own_option` and `another` are
// options that only this program has.
static inline void dot_settings(int argc, char **argv, const char *doc,
                                void (*measure)(size_t elements, float *ms), Option own_option,
                                Option another = OPTION_END) {
    bool balance = false;
    parse_options(argc, argv, doc, 0,
                  {OPTION_SIZE("size", &n, 1, 1LL << 33, "elements in a vector"), OPTION_GPUS,
                   OPTION_SHARE("elements for the first device; equal parts if not given"),
                   OPTION_FLAG("balance", &balance,
                               "parts in proportion to the speed of the devices, which is measured first"),
                   own_option, another});
    if (share && balance)
        quit(EXIT_USAGE, "--share and --balance exclude each other");
    choose_gpus();

    divide(n, share, part);
    if (balance) {
        size_t elements = max_of(n / 16, 1);
        double rate[MAX_GPUS];
        float ms[MAX_GPUS];
        measure(elements, ms);
        for (int i = 0; i < gpus; i++)
            rate[i] = elements / max_of(ms[i], 1e-6);
        set_parts(rate);
    }
}

// For --balance: the time of each device for a part of so many zeros, while all devices work.
template <class Data>
static inline void measure_parts(CUTThreadRoutine routine, float *zeros, size_t elements, float *ms) {
    std::fill(zeros, zeros + elements, 0.0f);
    Data data[MAX_GPUS] = {};
    CUTThread threads[MAX_GPUS];
    for (int i = 0; i < gpus; i++) {
        data[i].deviceID = device_id[i];
        data[i].size = elements;
        data[i].a = data[i].b = zeros;
        threads[i] = start_thread(routine, &data[i]);
    }
    wait_for_threads(threads, gpus);
    for (int i = 0; i < gpus; i++)
        ms[i] = data[i].ms;
}

static inline double dot_gb_per_s(size_t elements, float ms) {
    return 2.0 * elements * sizeof(float) / ms / 1e6; // both vectors are read
}

// Prints the time of each GPU's part, `more` about it, and the ratio of the slowest GPU's time to the fastest
// one's. The GPUs work at the same time, so the slowest one determines the total time.
template <class Data, class More>
static inline void print_parts(const Data *data, const char *with, More more) {
    float fastest = INFINITY, slowest = 0;
    for (int i = 0; i < gpus; i++)
        if (part[i] > 0) {
            float ms = data[i].ms;
            fastest = min_of(fastest, ms);
            slowest = max_of(slowest, ms);
            printf("GPU %d: %zu elements, %s%.3f ms, %.3f GB/s", device_id[i], part[i], with, ms,
                   dot_gb_per_s(part[i], ms));
            more(data[i]);
            printf("\n");
        } else
            printf("GPU %d: nothing to do\n", device_id[i]);
    printf("Slowest GPU %.3f ms, fastest %.3f ms: %.2f times as long\n", slowest, fastest, slowest / fastest);
}

// Each product goes through the additions of its thread, those of the tree, of
// the blocks and of the devices. A device uses 32 blocks, or fewer when each thread has one element.
static inline bool check_parts(float c, int threadsPerBlock) {
    double per_thread = ceil((double)*std::max_element(part, part + gpus) / (32 * threadsPerBlock));
    return check_dot("dot product", c, n, per_thread + log2(threadsPerBlock) + 32 + gpus) &&
           check_value("memory on another device", elsewhere, 0, 0);
}
