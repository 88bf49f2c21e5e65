// SPDX-License-Identifier: MIT
// The choice of the devices in this chapter's programs for several GPUs.
#ifndef CHAPTER11_GPUS_H
#define CHAPTER11_GPUS_H

#include "../common/book.h"

#define MAX_GPUS 64

static int gpus = 0;            // --gpus; settings() replaces 0 by the number of devices
static int device_id[MAX_GPUS]; // the devices to use

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

#endif
