// SPDX-License-Identifier: MIT
// Tensor maps: cuTensorMapEncodeTiled(), the copies of a box that a map describes, and
// cudaGetDriverEntryPointByVersion(), by which programs call the former
#include "block.h"
#include <cuda.h>
#include <dlfcn.h>

namespace cuda_cpu {
namespace {

// The contents of a CUtensorMap that has been encoded
struct TensorMap {
    static constexpr uint64_t mark = 0x7461'6d72'6f73'6e65; // the value of `encoded`
    uint64_t encoded;
    char *memory;
    uint64_t stride[5];  // in bytes; stride[0] is the size of an element
    uint32_t last[5];    // the last index in each dimension
    uint8_t box_last[5]; // the last index in the box
    uint8_t step[5], rank;
    uint8_t swizzle; // number of address bits that change
    bool nan;        // elements outside the tensor are NaN, not 0
};
static_assert(sizeof(TensorMap) <= sizeof(CUtensorMap));

constexpr uint8_t bytes_of_type[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};

// Writes an element of the box that is outside the tensor: 0, or a NaN whose fraction has all bits set
void fill_outside(char *to, const TensorMap &t) {
    static constexpr unsigned char nan[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
    const size_t bytes = t.stride[0];
    if (t.nan)
        memcpy(to, nan + 8 - bytes, bytes);
    else
        memset(to, 0, bytes);
}

} // namespace

void check_bulk_copy(const void *to, const void *from, size_t bytes) {
    if ((uintptr_t)to % 16 || (uintptr_t)from % 16 || bytes % 16)
        kernel_error("bulk copy of %zu bytes from %p to %p: each must be a multiple of 16", bytes, from, to);
}

ptrdiff_t check_box(const CUtensorMap *map, const int *coordinates, const void *shared, bool to_shared) {
    TensorMap t;
    memcpy(&t, map, sizeof t);
    if (t.encoded != TensorMap::mark)
        kernel_error("bulk copy: the tensor map at %p was not encoded by cuTensorMapEncodeTiled",
                     (const void *)map);
    if ((uintptr_t)shared % 128)
        kernel_error("bulk copy of a box: its shared memory at %p must be aligned to 128 bytes", shared);
    bool inside = true, negative = false;
    ptrdiff_t bytes = (ptrdiff_t)t.stride[0];
    for (unsigned d = 0; d < t.rank; ++d) {
        bytes *= t.box_last[d] / t.step[d] + 1;
        negative = negative || coordinates[d] < 0;
        inside = inside && coordinates[d] >= 0 && (int64_t)coordinates[d] + t.box_last[d] <= t.last[d];
    }
    // An H200 ends a kernel with such a copy with cudaErrorIllegalInstruction.
    if (!inside && coordinates[0] * (int64_t)t.stride[0] % 16)
        kernel_error("bulk copy of a box from %d on: only a box that lies inside the tensor can begin at an "
                     "address that is no multiple of 16",
                     coordinates[0]);
    if (negative && !to_shared)
        kernel_error("bulk copy of a box to global memory: its coordinates must not be negative");
    return bytes;
}

void copy_box(const CUtensorMap *map, const int *coordinates, void *shared, bool to_shared) {
    if (!to_shared)
        check_box(map, coordinates, shared, false);
    TensorMap t;
    memcpy(&t, map, sizeof t);
    char *at = (char *)shared;
    unsigned i[5] = {};
    for (;;) { // the elements of the box, the first dimension fastest
        int64_t offset = 0;
        bool inside = true;
        for (unsigned d = 0; d < t.rank; ++d) {
            const int64_t x = (int64_t)coordinates[d] + i[d];
            inside = inside && x >= 0 && x <= t.last[d];
            offset += x * (int64_t)t.stride[d];
        }
        char *const element = inside ? t.memory + offset : nullptr;
        const uintptr_t line = (uintptr_t)at / 128 & ((1u << t.swizzle) - 1);
        char *const in_shared = (char *)((uintptr_t)at ^ line << 4);
        if (!to_shared && inside)
            memcpy(element, in_shared, t.stride[0]);
        else if (to_shared && inside)
            memcpy(in_shared, element, t.stride[0]);
        else if (to_shared)
            fill_outside(in_shared, t);
        at += t.stride[0];
        unsigned d = 0;
        while (d < t.rank && (i[d] += t.step[d]) > t.box_last[d])
            i[d++] = 0;
        if (d == t.rank)
            return;
    }
}

} // namespace cuda_cpu

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *memory,
                                const cuuint64_t *size, const cuuint64_t *stride, const cuuint32_t *box,
                                const cuuint32_t *step, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
    using namespace cuda_cpu;
    const auto refuse = [](const char *why) {
        fail(cudaErrorUnknown, "cuTensorMapEncodeTiled: %s", why);
        (void)cudaGetLastError(); // a call of the driver API must not set the runtime's last error
        return CUDA_ERROR_INVALID_VALUE;
    };
    if (!map || !memory || !size || !box || !step || (rank > 1 && !stride))
        return refuse("a pointer is NULL");
    if ((uintptr_t)map % 64 || (uintptr_t)memory % 16)
        return refuse("the map must be aligned to 64 bytes, and the tensor to 16");
    if (rank < 1 || rank > 5)
        return refuse("the rank must be 1 to 5");
    if ((unsigned)type >= sizeof bytes_of_type || interleave ||
        (unsigned)swizzle > CU_TENSOR_MAP_SWIZZLE_128B ||
        (unsigned)promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B || (unsigned)fill > 1)
        return refuse("a type, interleave, swizzle, promotion or fill that does not exist here");
    const bool floating = type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    if (fill && !floating)
        return refuse("only floating-point types can be filled with NaN");
    TensorMap t = {TensorMap::mark,  (char *)memory, {bytes_of_type[type]}, {}, {}, {}, (uint8_t)rank,
                   (uint8_t)swizzle, fill != 0};
    for (unsigned d = 0; d < rank; ++d) {
        if (size[d] < 1 || size[d] > (cuuint64_t)1 << 32 || box[d] < 1 || box[d] > 256 || step[d] < 1 ||
            step[d] > 8)
            return refuse("sizes must be 1 to 2^32, those of the box 1 to 256, and steps 1 to 8");
        if (d && (stride[d - 1] % 16 || stride[d - 1] >= (cuuint64_t)1 << 40))
            return refuse("strides must be multiples of 16 below 2^40");
        if (d)
            t.stride[d] = stride[d - 1];
        t.last[d] = (uint32_t)(size[d] - 1);
        t.box_last[d] = (uint8_t)(box[d] - 1);
        t.step[d] = d ? (uint8_t)step[d] : 1; // CUDA ignores the step of the first dimension
    }
    const cuuint64_t row = box[0] * t.stride[0];
    if (row % 16 || (swizzle && row > 16u << (unsigned)swizzle))
        return refuse("a row of the box must be a multiple of 16 bytes, and not longer than the swizzle");
    memcpy(map, &t, sizeof t);
    return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult *result) {
    BEGIN(name, function);
    *function = nullptr;
    if (strcmp(name, "cuTensorMapEncodeTiled") == 0)
        *function = (void *)cuTensorMapEncodeTiled;
#ifndef __wasm__
    else
        *function = dlsym(RTLD_DEFAULT, name);
#endif
    if (result)
        *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
