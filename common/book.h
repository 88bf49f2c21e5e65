// SPDX-License-Identifier: MIT
// Every program includes this header: checks of CUDA calls and kernel launches, the choice of the
// device, host arrays, and the checks, options, random numbers and threads of the headers below.
#pragma once

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <cuda_runtime.h>
#include "check.h"      // compares a result with its reference
#include "lib/memory.h" // allocate_host()
#include "options.h"    // command line, exit status, quit()
#include "random.h"     // random data that --seed determines
#include "thread.h"     // host threads

using std::swap;

// Checks the status that a CUDA call returns. On an error it prints one line,
// "file:line: call: text (cudaErrorName)", and ends the program: EXIT_FAILURE, or EXIT_WAIVED where
// there is no device.
//
//     HANDLE_ERROR(cudaMalloc(&dev_a, n * sizeof(float)));
#define HANDLE_ERROR(...) handle_error((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

// Checks the kernel launch before it; a launch has no return value. In debug builds (make DEBUG=1) it
// also waits for the kernel, so that an error during its execution is reported here.
//
//     kernel<<<blocks, threads>>>(dev_a, n);
//     HANDLE_LAUNCH();
#define HANDLE_LAUNCH() handle_launch(__FILE__, __LINE__)

// Ends the program when a host allocation has returned NULL.
//
//     float *a = (float *)malloc(n * sizeof(float));
//     HANDLE_NULL(a);
#define HANDLE_NULL(...) handle_null(!(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

// Makes the device that --device names (default 0) the current one; call it after parse_options. Ends
// the program after --list-devices, and with one line when that device does not exist or cannot be
// used, or when there is no device (EXIT_WAIVED). A HOST_ONLY program needs no device unless one was
// asked for. In a program with TIMES it also prints which device the times are measured on.
static inline void select_device(void);

// The same as parse_options in options.h, with a list of options that needs no OPTION_END.
static inline void parse_options(int argc, char **argv, const char *doc, unsigned uses,
                                 std::initializer_list<Option> own) {
    Option table[32];
    assert(own.size() < 32);
    *std::copy(own.begin(), own.end(), table) = OPTION_END;
    parse_options(argc, argv, doc, uses, table);
}

// Calls parse_options, then select_device.
static inline void configure(int argc, char **argv, const char *doc, unsigned uses = 0,
                             std::initializer_list<Option> own = {}) {
    parse_options(argc, argv, doc, uses, own);
    select_device();
}

// Ends the program with one line and EXIT_FAILURE unless `host` bytes of host memory and `device` bytes of
// the current device's memory are free. malloc alone does not refuse: Linux grants more memory than there
// is and ends the program when it is used. If `device` is 0, the device's memory is not looked up. Call it
// once for each device whose memory the program needs.
static inline void require_memory(size_t host, size_t device);

// For checks: an array of n elements in host memory, not initialized, to be freed with free(). Ends the
// program with one line and EXIT_FAILURE when there is too little memory.
//
//     float *a = host_array<float>(n);
template <class T> static inline T *host_array(size_t n) {
    return (T *)allocate_host(n, sizeof(T));
}

// The smaller and the larger of two numbers, which may be of different types. Neither may be negative
// when one type is unsigned.
template <class A, class B> static inline std::common_type_t<A, B> min_of(A a, B b) {
    return std::min<std::common_type_t<A, B>>(a, b);
}
template <class A, class B> static inline std::common_type_t<A, B> max_of(A a, B b) {
    return std::max<std::common_type_t<A, B>>(a, b);
}

// Whether kernels run on the CPU back end.
#ifdef __CU2CPP__
const bool CPU_BACKEND = true;
#else
const bool CPU_BACKEND = false;
#endif

#include "lib/error.h"  // what HANDLE_ERROR, HANDLE_LAUNCH and HANDLE_NULL call
#include "lib/device.h" // select_device and require_memory
#include "lib/arrays.h" // HostArray and DeviceArray
