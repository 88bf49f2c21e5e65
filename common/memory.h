// SPDX-License-Identifier: MIT
// Says no in time when a size asks for more memory than there is. malloc alone does not: it
// promises what the system cannot keep, and the program is killed when it writes there.
#ifndef COMMON_MEMORY_H
#define COMMON_MEMORY_H

#include <stdint.h>
#include <stdio.h>
#include <cuda_runtime.h>
#include "book.h"

// Bytes of host memory that can be had without swapping, SIZE_MAX when the system does not tell.
static inline size_t free_host_memory(void) {
    size_t kib = SIZE_MAX / 1024;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "r");
    if (!file)
        return SIZE_MAX;
    while (fgets(line, sizeof line, file) && sscanf(line, "MemAvailable: %zu kB", &kib) != 1)
        ;
    fclose(file);
    return kib * 1024;
}

static inline void require_free(const char *what, size_t needed, size_t available) {
    const double gib = 1 << 30;
    if (needed > available)
        quit(EXIT_FAILURE, "out of memory: needs %.2f GiB of %s memory, %.2f GiB are free",
             needed / gib, what, available / gib);
}

// Ends the program, with one line and EXIT_FAILURE, when so many bytes of host memory and of the
// current device's memory are not free. `device` 0 asks no device.
static inline void require_memory(size_t host, size_t device) {
    size_t available = 0, total;
    int id, shared = 0;
    if (device > 0) {
        HANDLE_ERROR(cudaMemGetInfo(&available, &total));
        require_free("device", device, available);
        HANDLE_ERROR(cudaGetDevice(&id));
        HANDLE_ERROR(cudaDeviceGetAttribute(&shared, cudaDevAttrIntegrated, id));
    }
    require_free("host", shared ? host + device : host, free_host_memory());
}

#endif
