// SPDX-License-Identifier: MIT
// Named ranges for a profiler (NVTX): nsys shows them above the copies and kernels that a program issues
// within them. Without a profiler the calls do nothing. They are nvtxRangePushA(name) and nvtxRangePop().
#pragma once

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else // a toolkit that was installed in parts
static inline int nvtxRangePushA(const char *) {
    return 0;
}
static inline int nvtxRangePop(void) {
    return 0;
}
#endif
