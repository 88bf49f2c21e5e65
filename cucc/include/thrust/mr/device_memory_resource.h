// SPDX-License-Identifier: MIT
// Where device_vector gets its memory: cudaMalloc, so that it is device memory for cudaMemcpy and
// cudaPointerGetAttributes too.
#pragma once
#include "../../cuda_cpu/api.h"
#include <thrust/detail/config.h>

#define __THRUST_DEVICE_SYSTEM_MEMORY_HEADER <__THRUST_DEVICE_SYSTEM_ROOT/memory_resource.h>
#include __THRUST_DEVICE_SYSTEM_MEMORY_HEADER
#undef __THRUST_DEVICE_SYSTEM_MEMORY_HEADER
#include <thrust/system/detail/bad_alloc.h>
#include <thrust/system_error.h>

void cuda_cpu_eager_streams(const char *library);

THRUST_NAMESPACE_BEGIN
namespace system::cuda::detail {

// Of every program that uses Thrust: its algorithms run at once, so no kernel may wait in a stream.
[[maybe_unused]] static const bool streams_are_eager = (cuda_cpu_eager_streams("Thrust"), true);

class malloc_resource final : public mr::memory_resource<> {
  public:
    void *do_allocate(std::size_t bytes, std::size_t = THRUST_MR_DEFAULT_ALIGNMENT) override {
        void *memory = nullptr;
        if (const cudaError_t error = cudaMalloc(&memory, bytes ? bytes : 1))
            throw thrust::system::detail::bad_alloc(cudaGetErrorString(error));
        return memory;
    }
    void do_deallocate(void *memory, std::size_t, std::size_t) override { cudaFree(memory); }
};

} // namespace system::cuda::detail

typedef mr::fancy_pointer_resource<system::cuda::detail::malloc_resource,
                                   system::__THRUST_DEVICE_SYSTEM_NAMESPACE::pointer<void>>
    device_memory_resource;
typedef system::__THRUST_DEVICE_SYSTEM_NAMESPACE::universal_memory_resource universal_memory_resource;
typedef system::__THRUST_DEVICE_SYSTEM_NAMESPACE::universal_host_pinned_memory_resource
    universal_host_pinned_memory_resource;
THRUST_NAMESPACE_END
