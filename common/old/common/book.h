// SPDX-License-Identifier: MIT
// The book.h that old listings expect: ours, and what has other places or names there. make old searches
// this folder for headers that do not lie beside the listing.
#pragma once

#include "../../book.h"
#include "../../color.h"

typedef CUTThreadRoutine CUT_THREADROUTINE;

// An array of random ints, to be freed with free()
inline int *big_random_block_int(int count) {
    return big_random_ints((size_t)count);
}
