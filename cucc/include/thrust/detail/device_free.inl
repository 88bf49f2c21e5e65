// SPDX-License-Identifier: MIT
// The counterpart of device_malloc.inl
#pragma once
#include <thrust/device_free.h>
#include <thrust/mr/device_memory_resource.h>

THRUST_NAMESPACE_BEGIN

inline void device_free(device_ptr<void> memory) {
    cudaFree(memory.get());
}

THRUST_NAMESPACE_END
