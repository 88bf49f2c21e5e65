// SPDX-License-Identifier: MIT
// What this chapter's programs for several GPUs share: the choice of the devices, and for the ladders
// peer-to-peer access.
#pragma once

#include "../common/book.h"

#define MAX_GPUS 64

static int gpus = 0;            // --gpus; settings() replaces 0 by the number of devices
static int device_id[MAX_GPUS]; // the devices to use

// Waits for all of them and makes the first one current.
static inline void wait_for_gpus(void) {
    for (int i = gpus - 1; i >= 0; i--) {
        HANDLE_ERROR(cudaSetDevice(device_id[i]));
        HANDLE_ERROR(cudaDeviceSynchronize());
    }
}

static bool no_peer;     // --no-peer
static bool peer_access; // whether the devices access each other's memory

// Enables access between all pairs of devices, if it is possible between all of them and --no-peer is not
// given.
static inline void enable_peer_access(void) {
    peer_access = !no_peer;
    for (int i = 0; i < gpus; i++)
        for (int j = 0; j < gpus; j++) {
            int can = 1;
            if (i != j)
                HANDLE_ERROR(cudaDeviceCanAccessPeer(&can, device_id[i], device_id[j]));
            peer_access = peer_access && can;
        }
    for (int i = gpus - 1; i >= 0; i--) { // the first device is current afterwards
        HANDLE_ERROR(cudaSetDevice(device_id[i]));
        for (int j = 0; j < gpus && peer_access; j++)
            if (i != j)
                HANDLE_ERROR(cudaDeviceEnablePeerAccess(device_id[j], 0));
    }
}

// ---------------------------------------------------------------------------------------- check

#define OPTION_GPUS                                                                                          \
    OPTION_INT("gpus", &gpus, 1, MAX_GPUS, "number of devices to use; all of them if not given")
#define OPTION_NO_PEER                                                                                       \
    OPTION_FLAG("no-peer", &no_peer, "no peer access: copies between devices go through the host")

static bool elsewhere = false; // whether memory was on another device than expected

static inline void expect_device(const void *memory, int device) {
    cudaPointerAttributes found;
    HANDLE_ERROR(cudaPointerGetAttributes(&found, memory));
    if (found.device != device)
        elsewhere = true;
}

// Prints on which devices, and at which size, the following times are measured.
static inline void name_gpus(void) {
    for (int i = 0; i < gpus; i++)
        print_device(device_id[i]);
    print_size();
}

// Sets gpus and device_id, after parse_options. Without --gpus all devices are used, at least two. --device
// selects the first one. Waived when there are too few.
static inline void choose_gpus(void) {
    int count, needed = gpus ? gpus : 2;
    select_device();
    HANDLE_ERROR(cudaGetDeviceCount(&count));
    if (count < needed)
        quit(EXIT_WAIVED, "needs %d GPUs, found %d", needed, count);
    gpus = gpus ? gpus : min_of(count, MAX_GPUS);
    for (int i = 0; i < gpus; i++)
        device_id[i] = (options.device + i) % count;
}
