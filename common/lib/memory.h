// SPDX-License-Identifier: MIT
// How much host memory is free.
#ifndef COMMON_LIB_MEMORY_H
#define COMMON_LIB_MEMORY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Bytes of host memory that can be used without swapping: what the machine has free, within the
// limits of the container and of this process (ulimit -v). SIZE_MAX when the system says neither.
size_t free_host_memory(void);

#ifdef __cplusplus
}
#endif
#endif
