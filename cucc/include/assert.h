// SPDX-License-Identifier: MIT
// The C library's header, without an include guard. In a .cu, failures in kernels are reported as by CUDA.
#include_next <assert.h>
#if defined(__CU2CPP__) && !defined(NDEBUG)
#undef assert
#define assert(...)                                                                                          \
    (static_cast<bool>(__VA_ARGS__)                                                                          \
         ? void(0)                                                                                           \
         : ::cuda_cpu::assert_failed(#__VA_ARGS__, __FILE__, __LINE__, __extension__ __PRETTY_FUNCTION__))
#endif
