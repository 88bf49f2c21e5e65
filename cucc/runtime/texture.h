// SPDX-License-Identifier: MIT
// What the unit "texture" gives to the others: arrays, which array.cpp makes and texture_fetch.cpp reads
#pragma once
#include "memory.h"

// The rows and slices of an array have no padding, so that AddressSanitizer detects an access past its end.
struct cudaArray {
    char *data;
    cudaChannelFormatDesc desc;
    size_t width, height, depth, row_bytes; // height 0: a 1-D array; depth: slices, layers or faces
    unsigned flags;
    int device;
    cudaMipmappedArray *levels_of; // if set, this is a level of that mipmapped array, which owns the memory

    size_t rows() const { return height ? height : 1; }
    size_t slices() const { return depth ? depth : 1; }
    size_t slice_bytes() const { return rows() * row_bytes; }
};

struct cudaMipmappedArray {
    char *data;
    cudaArray *levels[32];
    unsigned count;
    int device;
};

namespace cuda_cpu {

// Bytes per texel; 0 for an unsupported format. 1, 2 or 4 components have the same 8, 16 or 32 bits.
size_t texel_bytes(const cudaChannelFormatDesc &format);
cudaError_t bad_format(const char *call, const cudaChannelFormatDesc &format); // fails
// Fail if there is no such array.
cudaError_t check_array(const char *call, const cudaArray *array);
cudaError_t check_mipmapped_array(const char *call, const cudaMipmappedArray *array);

// Converts the parameters of a 3-D copy; fails if they contradict each other.
cudaError_t transfer_of(const char *call, const cudaMemcpy3DParms &p, Transfer &t);
void free_arrays_of(int device); // also of textures and surfaces; free_memory_of frees the memory
size_t live_arrays(), live_texture_objects(); // how many were made and not destroyed

} // namespace cuda_cpu
