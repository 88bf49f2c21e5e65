// SPDX-License-Identifier: MIT
// <cuda/ptx>, and the part of <cuda/barrier> for compute capability 9.0: bulk copies (memcpy_async_tx,
// cp_async_bulk…), also by tensor maps, and transaction barriers, which count bytes too. A copy to shared
// memory is made when a thread waits for its barrier, so that threads which do not wait read old values. A
// copy to global memory is made at once. The functions of <cuda/ptx> for an mbarrier do not exist; for
// copies, barrier_native_handle() gives the mbarrier of a cuda::barrier.
#pragma once
#include "synchronize.h"

#include "letters_off.h"

// <cuda/barrier> has these functions: CCCL's feature tests
#define __cccl_lib_local_barrier_arrive_tx
#define __cccl_lib_experimental_ctk12_cp_async_exposure

struct CUtensorMap_st;
typedef struct CUtensorMap_st CUtensorMap;

namespace cuda_cpu {

// Copies a box of a tensor to shared memory, or back. The coordinates are those of its first element. Copies
// to shared memory are put off, so they need check_box() before. (tensor_map.cpp)
void copy_box(const CUtensorMap *map, const int *coordinates, void *shared, bool to_shared);
// Ends the program with a message if a GPU would refuse this copy. Returns the bytes of the box in shared
// memory.
ptrdiff_t check_box(const CUtensorMap *map, const int *coordinates, const void *shared, bool to_shared);
// Ends the program with a message if the addresses or the size are no multiples of 16.
void check_bulk_copy(const void *to, const void *from, size_t bytes);

using BlockBarrier = cuda::barrier<cuda::thread_scope_block>;

} // namespace cuda_cpu

namespace cuda {
namespace device {

inline uint64_t *barrier_native_handle(::cuda_cpu::BlockBarrier &b) {
    return (uint64_t *)&b;
}
inline void barrier_expect_tx(::cuda_cpu::BlockBarrier &b, ptrdiff_t bytes) {
    b.expect_bytes(bytes);
}
[[nodiscard]] inline ::cuda_cpu::BlockBarrier::arrival_token
barrier_arrive_tx(::cuda_cpu::BlockBarrier &b, ptrdiff_t arrivals, ptrdiff_t bytes) {
    b.expect_bytes(bytes);
    return b.arrive(arrivals);
}

namespace experimental {
inline void cp_async_bulk_global_to_shared(void *to, const void *from, uint32_t bytes,
                                           ::cuda_cpu::BlockBarrier &b) {
    ::cuda_cpu::check_bulk_copy(to, from, bytes);
    b.copy_later(bytes, [=] { memcpy(to, from, bytes); });
}
inline void cp_async_bulk_shared_to_global(void *to, const void *from, uint32_t bytes) {
    ::cuda_cpu::check_bulk_copy(to, from, bytes);
    memcpy(to, from, bytes);
}
template <size_t Rank> struct box_corner { int at[Rank]; };
template <size_t Rank>
void tensor_to_shared(void *to, const CUtensorMap *map, box_corner<Rank> corner,
                      ::cuda_cpu::BlockBarrier &b) {
    b.copy_later(::cuda_cpu::check_box(map, corner.at, to, true),
                 [=] { ::cuda_cpu::copy_box(map, corner.at, to, true); });
}
#define CUDA_CPU_TENSOR(rank, PARAMETERS, ...)                                                               \
    inline void cp_async_bulk_tensor_##rank##d_global_to_shared(                                             \
        void *to, const CUtensorMap *map, CUDA_CPU_LIST PARAMETERS, ::cuda_cpu::BlockBarrier &b) {           \
        tensor_to_shared<rank>(to, map, {{__VA_ARGS__}}, b);                                                 \
    }                                                                                                        \
    inline void cp_async_bulk_tensor_##rank##d_shared_to_global(                                             \
        const CUtensorMap *map, CUDA_CPU_LIST PARAMETERS, const void *from) {                                \
        const int at[] = {__VA_ARGS__};                                                                      \
        ::cuda_cpu::copy_box(map, at, (void *)from, false);                                                  \
    }
CUDA_CPU_TENSOR(1, (int x), x)
CUDA_CPU_TENSOR(2, (int x, int y), x, y)
CUDA_CPU_TENSOR(3, (int x, int y, int z), x, y, z)
CUDA_CPU_TENSOR(4, (int x, int y, int z, int u), x, y, z, u)
CUDA_CPU_TENSOR(5, (int x, int y, int z, int u, int v), x, y, z, u, v)
#undef CUDA_CPU_TENSOR
inline void fence_proxy_async_shared_cta() {}
inline void cp_async_bulk_commit_group() {}
template <int N> void cp_async_bulk_wait_group_read() {}
} // namespace experimental

template <class T, class Shape>
void memcpy_async_tx(T *to, const T *from, Shape bytes, ::cuda_cpu::BlockBarrier &b) {
    static_assert(Shape::align >= 16, "memcpy_async_tx copies memory that is aligned to 16 bytes");
    experimental::cp_async_bulk_global_to_shared(to, from, (uint32_t)bytes, b);
}

} // namespace device

namespace ptx {
struct space_global_t {};
struct space_shared_t {};
struct space_cluster_t {};
template <int N> struct n32_t {};
inline constexpr space_global_t space_global{};
inline constexpr space_shared_t space_shared{};
inline constexpr space_cluster_t space_cluster{};

template <class Shared>
void cp_async_bulk(Shared, space_global_t, void *to, const void *from, uint32_t bytes, uint64_t *b) {
    device::experimental::cp_async_bulk_global_to_shared(to, from, bytes, *(::cuda_cpu::BlockBarrier *)b);
}
inline void cp_async_bulk(space_global_t, space_shared_t, void *to, const void *from, uint32_t bytes) {
    device::experimental::cp_async_bulk_shared_to_global(to, from, bytes);
}
template <class Shared, size_t Rank>
void cp_async_bulk_tensor(Shared, space_global_t, void *to, const void *map, const int32_t (&at)[Rank],
                          uint64_t *b) {
    device::experimental::box_corner<Rank> corner;
    memcpy(corner.at, at, sizeof at);
    device::experimental::tensor_to_shared<Rank>(to, (const CUtensorMap *)map, corner,
                                                 *(::cuda_cpu::BlockBarrier *)b);
}
template <size_t Rank>
void cp_async_bulk_tensor(space_global_t, space_shared_t, const void *map, const int32_t (&at)[Rank],
                          const void *from) {
    ::cuda_cpu::copy_box((const CUtensorMap *)map, at, (void *)from, false);
}
inline void cp_async_bulk_commit_group() {}
template <int N> void cp_async_bulk_wait_group(n32_t<N>) {}
template <int N> void cp_async_bulk_wait_group_read(n32_t<N>) {}
inline void fence_proxy_async() {}
template <class Space> void fence_proxy_async(Space) {}
} // namespace ptx
} // namespace cuda

#include "letters_on.h"
