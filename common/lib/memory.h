// SPDX-License-Identifier: MIT
// Host memory: how much of it is free, and its allocation.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Bytes of host memory that can be used without swapping: what is free on the machine, within the
// limits of the container and of this process (ulimit -v). SIZE_MAX when the system reports neither.
size_t free_host_memory(void);

// Ends the program (one line, EXIT_FAILURE) when more bytes are needed than are available. `what`
// names the memory in the message: "host", "device".
void require_free(const char *what, size_t needed, size_t available);

// n elements of `size` bytes, not initialized, to be freed with free(). Ends the program when that
// much memory is not free.
void *allocate_host(size_t n, size_t size);

#ifdef __cplusplus
}
#endif
