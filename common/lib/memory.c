// SPDX-License-Identifier: MIT
// How much memory of the host is free, as Linux tells it.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "memory.h"

// The number that follows `word` in a file (the first one for ""), `missing` when there is none.
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

// Files that are cached count as used, but give way.
static size_t left_in_container(const char *folder, const char *limit, const char *used,
                                const char *cached) {
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
    left = smaller(
        left, left_in_container("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"));
    left = smaller(left, left_in_container("/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                           "memory.usage_in_bytes", "total_inactive_file"));
    struct rlimit addresses;
    if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY) {
        size_t pages = number_in("/proc/self/statm", "", 0);
        left = smaller(left, left_of(addresses.rlim_cur, pages * (size_t)sysconf(_SC_PAGESIZE)));
    }
    return left;
}
