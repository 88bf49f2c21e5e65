// SPDX-License-Identifier: MIT
// Host memory: how much of it is free, according to Linux, and its allocation.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "../options.h"
#include "memory.h"

// The number that follows `word` in a file, or the first number when `word` is empty; `missing` when
// there is none.
static size_t number_in(const char *path, const char *word, size_t missing) {
    char found[64] = "";
    size_t number = missing;
    FILE *file = fopen(path, "r");
    if (!file)
        return missing;
    while (strcmp(found, word) != 0 && fscanf(file, "%63s", found) == 1)
        ;
    if (strcmp(found, word) != 0 || fscanf(file, "%zu", &number) != 1)
        number = missing;
    fclose(file);
    return number;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t left_of(size_t limit, size_t used) {
    return limit == SIZE_MAX ? SIZE_MAX : limit - smaller(limit, used);
}

// What a container (control group) may still allocate. The page cache counts as used, but the kernel
// reclaims it when memory is needed.
static size_t left_in_container(const char *folder, const char *limit, const char *used, const char *cached) {
    char path[128];
    snprintf(path, sizeof(path), "%s/memory.stat", folder);
    size_t cache = number_in(path, cached, 0);
    snprintf(path, sizeof(path), "%s/%s", folder, used);
    size_t in_use = number_in(path, "", 0);
    snprintf(path, sizeof(path), "%s/%s", folder, limit);
    return left_of(number_in(path, "", SIZE_MAX), in_use - smaller(in_use, cache));
}

size_t free_host_memory(void) {
    size_t kib = number_in("/proc/meminfo", "MemAvailable:", SIZE_MAX);
    size_t left = kib == SIZE_MAX ? SIZE_MAX : kib * 1024;
    left =
        smaller(left, left_in_container("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"));
    left = smaller(left, left_in_container("/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                           "memory.usage_in_bytes", "total_inactive_file"));
    struct rlimit addresses;
    if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY) {
        size_t pages = number_in("/proc/self/statm", "", 0);
        left = smaller(left, left_of(addresses.rlim_cur, pages * (size_t)sysconf(_SC_PAGESIZE)));
    }
    return left;
}

void require_free(const char *what, size_t needed, size_t available) {
    const double gib = 1 << 30;
    if (needed > available)
        quit(EXIT_FAILURE, "out of memory: needs %.2f GiB of %s memory, %.2f GiB are free",
             (double)needed / gib, what, (double)available / gib);
}

enum { HUGE_PAGE = 2 << 20 };

void *allocate_host(size_t n, size_t size) {
    size_t bytes = n > SIZE_MAX / size ? SIZE_MAX : n * size;
    require_free("host", bytes, free_host_memory());
    // Huge pages, if the system has them, save most of the page faults when a large array is first written.
    bool large = bytes >= 16 * HUGE_PAGE && bytes < SIZE_MAX - HUGE_PAGE;
    void *data = large ? aligned_alloc(HUGE_PAGE, (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE)
                       : malloc(bytes ? bytes : 1); // malloc(0) may return NULL
    if (data && large)
        madvise(data, bytes, MADV_HUGEPAGE);
    if (!data)
        quit(EXIT_FAILURE, "out of memory: %zu elements of %zu bytes in host memory", n, size);
    return data;
}
