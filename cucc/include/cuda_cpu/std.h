// SPDX-License-Identifier: MIT
// libcu++: what its headers in cuda/std/ have in common. Their names are those of the standard library,
// except for what waits for other threads (cuda_cpu/atomic.h).
#pragma once
#include "cuda_runtime.h"

namespace cuda::std {
using namespace ::std;
} // namespace cuda::std
