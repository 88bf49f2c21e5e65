// SPDX-License-Identifier: MIT
// thrust::device_malloc allocates with cudaMalloc, as device_vector does.
#pragma once
#include <thrust/device_malloc.h>
#include <thrust/mr/device_memory_resource.h>

THRUST_NAMESPACE_BEGIN

inline device_ptr<void> device_malloc(const std::size_t n) {
    return device_ptr<void>(system::cuda::detail::malloc_resource().do_allocate(n));
}

template <typename T> device_ptr<T> device_malloc(const std::size_t n) {
    return device_ptr<T>(static_cast<T *>(device_malloc(n * sizeof(T)).get()));
}

THRUST_NAMESPACE_END
