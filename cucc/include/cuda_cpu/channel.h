// SPDX-License-Identifier: MIT
// The formats of texels by their C++ types, for host sources too, and so in C++11.
#pragma once

#include "types.h"
#include "api.h"

#ifdef __cplusplus
#include <type_traits>

namespace cuda_cpu {

template <class T> struct Channels; // the component type and number of components of a texel type

#define CUDA_CPU_CHANNELS(T, C, n)                                                                           \
    template <> struct Channels<T> {                                                                         \
        typedef C Component;                                                                                 \
        static constexpr int components = n, bits = 8 * sizeof(C),                                           \
                             kind = std::is_floating_point<C>::value ? cudaChannelFormatKindFloat            \
                                    : std::is_signed<C>::value       ? cudaChannelFormatKindSigned           \
                                                                     : cudaChannelFormatKindUnsigned;              \
    };
#define CUDA_CPU_CHANNELS_OF(name, C)                                                                        \
    CUDA_CPU_CHANNELS(C, C, 1)                                                                               \
    CUDA_CPU_CHANNELS(name##1, C, 1)                                                                         \
    CUDA_CPU_CHANNELS(name##2, C, 2)                                                                         \
    CUDA_CPU_CHANNELS(name##4, C, 4)
CUDA_CPU_CHANNELS(char, signed char, 1)
CUDA_CPU_CHANNELS_OF(char, signed char)
CUDA_CPU_CHANNELS_OF(uchar, unsigned char)
CUDA_CPU_CHANNELS_OF(short, short)
CUDA_CPU_CHANNELS_OF(ushort, unsigned short)
CUDA_CPU_CHANNELS_OF(int, int)
CUDA_CPU_CHANNELS_OF(uint, unsigned)
CUDA_CPU_CHANNELS_OF(float, float)

template <class T> constexpr int channel_bits(int component) {
    return component < Channels<T>::components ? Channels<T>::bits : 0;
}

} // namespace cuda_cpu

// The format of a texel of type T: cudaCreateChannelDesc<float4>().
template <class T> inline cudaChannelFormatDesc cudaCreateChannelDesc() {
    return {cuda_cpu::channel_bits<T>(0), cuda_cpu::channel_bits<T>(1), cuda_cpu::channel_bits<T>(2),
            cuda_cpu::channel_bits<T>(3), (cudaChannelFormatKind)cuda_cpu::Channels<T>::kind};
}

// The channel formats of half-precision numbers: bits of x, y, z and w
#define CUDA_CPU_HALVES(name, ...)                                                                           \
    CUDA_CPU_RETURN(cudaChannelFormatDesc, name, (), {__VA_ARGS__, cudaChannelFormatKindFloat})
CUDA_CPU_HALVES(cudaCreateChannelDescHalf, 16, 0, 0, 0)
CUDA_CPU_HALVES(cudaCreateChannelDescHalf1, 16, 0, 0, 0)
CUDA_CPU_HALVES(cudaCreateChannelDescHalf2, 16, 16, 0, 0)
CUDA_CPU_HALVES(cudaCreateChannelDescHalf4, 16, 16, 16, 16)
#endif // __cplusplus
