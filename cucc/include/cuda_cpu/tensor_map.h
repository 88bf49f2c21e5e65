// SPDX-License-Identifier: MIT
// What a CUtensorMap holds here. cuTensorMapEncodeTiled (runtime/driver.cpp) writes it, and the bulk copies
// of <cuda/barrier> read it.
#pragma once
#include <stdint.h>

namespace cuda_cpu {

struct TensorMap {
    char *first;        // element 0
    uint64_t dim[3];    // elements of the tensor; 1 in dimensions that it lacks
    uint64_t stride[3]; // bytes from one element, row and layer to the next
    uint32_t box[3];    // elements that one copy moves
    unsigned char fill; // byte of the elements outside of the tensor
};

} // namespace cuda_cpu
