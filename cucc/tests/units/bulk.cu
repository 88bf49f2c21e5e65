// SPDX-License-Identifier: MIT
// Bulk copies of contiguous bytes and by tensor maps, and transaction barriers (compute capability 9.0)
#include <cuda.h>
#include <cuda/barrier>
#include <cuda/ptx>
#include <utility>
#include "device.h"

typedef cuda::barrier<cuda::thread_scope_block> Barrier;
namespace cde = cuda::device::experimental;
namespace ptx = cuda::ptx;

#pragma nv_diag_suppress static_var_with_dynamic_init

// ---- copies of contiguous bytes ----

enum Way { by_memcpy, by_function, by_ptx };

// Each block reverses 512 values in two rounds of 256: the barrier is used again.
template <Way way> __global__ void reversed(const int *in, int *out) {
    __shared__ alignas(16) int to[256];
    __shared__ Barrier bar;
    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        cde::fence_proxy_async_shared_cta();
    }
    __syncthreads();
    for (int round = 0; round < 2; round++) {
        const size_t first = 512 * blockIdx.x + 256 * round;
        Barrier::arrival_token token;
        if (threadIdx.x == 0) {
            if (way == by_memcpy)
                cuda::device::memcpy_async_tx(to, in + first, cuda::aligned_size_t<16>(sizeof to), bar);
            else if (way == by_function)
                cde::cp_async_bulk_global_to_shared(to, in + first, sizeof to, bar);
            else
                ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, to, in + first, sizeof to,
                                   cuda::device::barrier_native_handle(bar));
            token = cuda::device::barrier_arrive_tx(bar, 1, sizeof to);
        } else {
            token = bar.arrive();
        }
        bar.wait(std::move(token));
        const int mine = to[255 - threadIdx.x];
        __syncthreads();
        to[threadIdx.x] = mine;
        cde::fence_proxy_async_shared_cta();
        __syncthreads();
        if (threadIdx.x == 0) {
            if (way == by_ptx) {
                ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + first, to, sizeof to);
                ptx::cp_async_bulk_commit_group();
                ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
            } else {
                cde::cp_async_bulk_shared_to_global(out + first, to, sizeof to);
                cde::cp_async_bulk_commit_group();
                cde::cp_async_bulk_wait_group_read<0>();
            }
        }
        __syncthreads();
    }
}

TEST(copies_of_bytes) {
    const int n = 512 * 5;
    const Device<int> in(made(n, [](int i) { return 7 * i; }));
    const auto expected = made(n, [](int i) { return 7 * (i / 256 * 256 + 255 - i % 256); });
    EXPECT(WRITTEN(int, n, reversed<by_memcpy><<<5, 256>>>(in.data, out)) == expected);
    EXPECT(WRITTEN(int, n, reversed<by_function><<<5, 256>>>(in.data, out)) == expected);
    EXPECT(WRITTEN(int, n, reversed<by_ptx><<<5, 256>>>(in.data, out)) == expected);
}

// ---- copies of boxes ----

struct Described {
    CUtensorMap map;
    CUresult result;
};

// Rows of `width` floats or ints that begin every `pitch` elements, and a box of 32 by 8
static Described described(const void *memory, CUtensorMapDataType type, unsigned width, unsigned height,
                           unsigned pitch, CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,
                           CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
                           unsigned box_width = 32, unsigned step = 1) {
    const cuuint64_t size[] = {width, height}, stride[] = {pitch * sizeof(int)};
    const cuuint32_t box[] = {box_width, 8}, steps[] = {1, step};
    Described d;
    d.result =
        cuTensorMapEncodeTiled(&d.map, type, 2, (void *)memory, size, stride, box, steps,
                               CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, fill);
    return d;
}

// Copies the box at (x, y) of one tensor, as it lies in shared memory, to `seen`, and to a box of another.
template <bool with_ptx, class T>
__global__ void box(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to, int x,
                    int y, int bytes, T *seen) {
    __shared__ alignas(1024) T tile[8 * 32];
    __shared__ Barrier bar;
    const int t = (int)threadIdx.x;
    tile[t] = 77;
    if (t == 0)
        init(&bar, blockDim.x);
    cde::fence_proxy_async_shared_cta();
    __syncthreads();
    Barrier::arrival_token token;
    if (t == 0) {
        if (with_ptx) {
            const int32_t at[] = {x, y};
            ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &from, at,
                                      cuda::device::barrier_native_handle(bar));
        } else {
            cde::cp_async_bulk_tensor_2d_global_to_shared(tile, &from, x, y, bar);
        }
        token = cuda::device::barrier_arrive_tx(bar, 1, bytes);
    } else {
        token = bar.arrive();
    }
    bar.wait(std::move(token));
    seen[t] = tile[t];
    __syncthreads();
    if (t == 0 && x >= 0 && y >= 0) { // a box can be written from there on only
        if (with_ptx) {
            const int32_t at[] = {x, y};
            ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &to, at, tile);
        } else {
            cde::cp_async_bulk_tensor_2d_shared_to_global(&to, x, y, tile);
        }
        cde::cp_async_bulk_commit_group();
        cde::cp_async_bulk_wait_group_read<0>();
    }
}

static const int width = 61, height = 19, pitch = 64;

static int value(int x, int y) {
    return 100 * y + x + 1;
}

TEST(boxes_inside_and_across_the_edges) {
    const Device<int> in(made(pitch * height, [](int i) { return value(i % pitch, i / pitch); }));
    const Described from = described(in.data, CU_TENSOR_MAP_DATA_TYPE_INT32, width, height, pitch);
    EXPECT(from.result == CUDA_SUCCESS);
    const int corners[][2] = {{0, 0}, {7, 5}, {-4, -2}, {40, 15}, {-40, 3}, {64, 2}};
    for (const auto &corner : corners) {
        const int x0 = corner[0], y0 = corner[1];
        const auto inside = [=](int x, int y) { return x >= 0 && x < width && y >= 0 && y < height; };
        const Device<int> out(made(pitch * height, [](int) { return -1; }));
        const Described to = described(out.data, CU_TENSOR_MAP_DATA_TYPE_INT32, width, height, pitch);
        EXPECT(WRITTEN(int, 256, box<false><<<1, 256>>>(from.map, to.map, x0, y0, 1024, out)) ==
               made(256, [=](int i) {
                   return inside(x0 + i % 32, y0 + i / 32) ? value(x0 + i % 32, y0 + i / 32) : 0;
               }));
        EXPECT(out.host() == made(pitch * height, [=](int i) { // what is outside is not written
                   const int x = i % pitch, y = i / pitch;
                   const bool written =
                       x0 >= 0 && y0 >= 0 && inside(x, y) && x >= x0 && x < x0 + 32 && y >= y0 && y < y0 + 8;
                   return written ? value(x, y) : -1;
               }));
        EXPECT(WRITTEN(int, 256, box<true><<<1, 256>>>(from.map, to.map, x0, y0, 1024, out))[37] ==
               (inside(x0 + 5, y0 + 1) ? value(x0 + 5, y0 + 1) : 0));
    }
}

TEST(swizzled_boxes) {
    const Device<int> in(made(pitch * height, [](int i) { return i; })), out(pitch * height);
    const CUtensorMapSwizzle swizzles[] = {CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_SWIZZLE_64B,
                                           CU_TENSOR_MAP_SWIZZLE_128B};
    for (int s = 1; s <= 3; s++) { // rows of 32, 64 and 128 bytes: parts of 16 bytes change places
        const unsigned row = 4u << s;
        const CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_INT32;
        const auto fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
        const Described from = described(in.data, type, pitch, height, pitch, swizzles[s - 1], fill, row);
        const Described to = described(out.data, type, pitch, height, pitch, swizzles[s - 1], fill, row);
        const int bytes = (int)row * 32;
        const std::vector<int> seen =
            WRITTEN(int, 256, box<false><<<1, 256>>>(from.map, to.map, 0, 0, bytes, out));
        bool right = true;
        for (unsigned i = 0; i < 8 * row; i++) {
            const unsigned at = i ^ (i / 32 & ((1u << s) - 1)) << 2;
            right = right && seen[at] == (int)(i / row * pitch + i % row);
        }
        EXPECT(right);
        EXPECT(out.host()[pitch + 1] == pitch + 1);
    }
}

TEST(steps_and_fill) {
    const Device<float> in(made(pitch * height, [](int i) { return (float)i; }));
    Described from = described(in.data, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, width, height, pitch,
                               CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
    std::vector<float> seen =
        WRITTEN(float, 256, box<false><<<1, 256>>>(from.map, from.map, -4, 0, 1024, out));
    EXPECT(seen[3] != seen[3] && seen[4] == 0 && seen[36] == pitch);
    from =
        described(in.data, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, width, height, pitch, CU_TENSOR_MAP_SWIZZLE_NONE,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, 32, 3); // rows 0, 3 and 6 of the 8
    seen = WRITTEN(float, 256, box<false><<<1, 256>>>(from.map, from.map, 0, 1, 384, out));
    EXPECT(seen[31] == pitch + 31 && seen[32] == 4 * pitch && seen[64] == 7 * pitch && seen[96] == 77);
}

TEST(entry_point) {
    void *function;
    cudaDriverEntryPointQueryResult found;
    OK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault,
                                        &found));
    EXPECT(found == cudaDriverEntryPointSuccess && function);
    cudaGetDriverEntryPointByVersion("cuNothing", &function, 12000, cudaEnableDefault, &found);
    EXPECT(found == cudaDriverEntryPointSymbolNotFound);
    (void)cudaGetLastError();
}

TEST(maps_that_are_refused) {
    const Device<int> in(pitch * height);
    const auto type = CU_TENSOR_MAP_DATA_TYPE_INT32;
    const auto none = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
    const auto result = [&](const void *memory, unsigned row, unsigned box, CUtensorMapSwizzle swizzle,
                            CUtensorMapFloatOOBfill fill) {
        CUresult got;
        cudaError_t same;
        said(
            [&] {
                return (
                    cudaError_t)(got =
                                     described(memory, type, width, height, row, swizzle, fill, box).result);
            },
            same);
        return got;
    };
    EXPECT(result(in.data, pitch, 32, CU_TENSOR_MAP_SWIZZLE_NONE, none) == CUDA_SUCCESS);
    EXPECT(result(in.data + 1, pitch, 32, CU_TENSOR_MAP_SWIZZLE_NONE, none) == CUDA_ERROR_INVALID_VALUE);
    EXPECT(result(in.data, pitch + 1, 32, CU_TENSOR_MAP_SWIZZLE_NONE, none) == CUDA_ERROR_INVALID_VALUE);
    EXPECT(result(in.data, pitch, 30, CU_TENSOR_MAP_SWIZZLE_NONE, none) == CUDA_ERROR_INVALID_VALUE);
    EXPECT(result(in.data, pitch, 32, CU_TENSOR_MAP_SWIZZLE_64B, none) == CUDA_ERROR_INVALID_VALUE);
    EXPECT(result(in.data, pitch, 0, CU_TENSOR_MAP_SWIZZLE_NONE, none) == CUDA_ERROR_INVALID_VALUE);
    EXPECT(result(in.data, pitch, 32, CU_TENSOR_MAP_SWIZZLE_NONE,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA) == CUDA_ERROR_INVALID_VALUE);
}
