// SPDX-License-Identifier: MIT
// Says no in time when a size asks for more memory than there is. malloc alone does not: it
// promises what the system cannot keep, and the program is killed when it writes there.
#ifndef COMMON_MEMORY_H
#define COMMON_MEMORY_H

#include <stddef.h>
#ifdef __cplusplus
#include <cuda_runtime.h>
#include "book.h"

extern "C" {
#endif

// Bytes of host memory that can be had without swapping: what the machine has, and what limits on
// the container and on this process (ulimit -v) leave. SIZE_MAX when the system tells none of it.
size_t free_host_memory(void);

#ifdef __cplusplus
}

static inline void require_free(const char *what, size_t needed, size_t available) {
    const double gib = 1 << 30;
    if (needed > available)
        quit(EXIT_FAILURE, "out of memory: needs %.2f GiB of %s memory, %.2f GiB are free",
             needed / gib, what, available / gib);
}

// Ends the program, with one line and EXIT_FAILURE, when so many bytes of host memory and of the
// current device's memory are not free. `device` 0 asks no device. Once for each device: those that
// are the host's own memory are counted together.
static inline void require_memory(size_t host, size_t device) {
    static size_t asked; // for devices in the host's memory
    size_t available = 0, total;
    int id, shared = 0;
    if (device > 0) {
        HANDLE_ERROR(cudaMemGetInfo(&available, &total));
        require_free("device", device, available);
        HANDLE_ERROR(cudaGetDevice(&id));
        HANDLE_ERROR(cudaDeviceGetAttribute(&shared, cudaDevAttrIntegrated, id));
        asked += shared ? device : 0;
    }
    require_free("host", host + asked, free_host_memory());
}
#endif

#endif
