// SPDX-License-Identifier: MIT
// The C library's header; in a .cu, a failed assertion in a kernel is reported as CUDA does. Like the C
// library's, it has no include guard.
#include_next <assert.h>
#if defined(__CU2CPP__) && !defined(NDEBUG)
#undef assert
#define assert(...)                                                                                          \
    (static_cast<bool>(__VA_ARGS__)                                                                          \
         ? void(0)                                                                                           \
         : ::cuda_cpu::assert_failed(#__VA_ARGS__, __FILE__, __LINE__, __extension__ __PRETTY_FUNCTION__))
#endif
