// SPDX-License-Identifier: MIT
// thrust::cuda::par and thrust::cuda::par.on(stream): algorithms run at once, in the calling host thread.
#pragma once
#include <thrust/mr/device_memory_resource.h>
#include <thrust/system/cpp/execution_policy.h>
#include <thrust/system/cuda/error.h>
#include <thrust/system_error.h>

THRUST_NAMESPACE_BEGIN
namespace system::cuda {

using thrust::system::__THRUST_DEVICE_SYSTEM_NAMESPACE::execution_policy;
using thrust::system::__THRUST_DEVICE_SYSTEM_NAMESPACE::tag;

namespace detail {

template <typename Derived>
struct execute_on_stream : thrust::system::__THRUST_DEVICE_SYSTEM_NAMESPACE::execution_policy<Derived> {
    // The stream's earlier work has completed. A stream that does not exist or that captures is an error.
    Derived on(cudaStream_t stream) const {
        if (const cudaError_t error = cudaStreamSynchronize(stream))
            throw thrust::system_error(error, thrust::cuda_category(), "thrust::cuda::par.on");
        return static_cast<const Derived &>(*this);
    }
};

// par, par.on(stream), par(allocator) and par(allocator).on(stream)
struct par_t : execute_on_stream<par_t>, thrust::detail::allocator_aware_execution_policy<execute_on_stream> {
    constexpr par_t() {}
};

} // namespace detail

static constexpr detail::par_t par;
static constexpr detail::par_t par_nosync;

} // namespace system::cuda

namespace cuda {
using thrust::system::cuda::execution_policy;
using thrust::system::cuda::par;
using thrust::system::cuda::par_nosync;
using thrust::system::cuda::tag;
} // namespace cuda
THRUST_NAMESPACE_END
