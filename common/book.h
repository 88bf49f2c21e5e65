// SPDX-License-Identifier: MIT
// What every program includes: error checks for CUDA calls and launches, the choice of the device,
// host memory, and the small headers of this folder.
#ifndef COMMON_BOOK_H
#define COMMON_BOOK_H

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include <type_traits>
#include <utility>
#include <cuda_runtime.h>
#include "check.h"
#include "lib/memory.h"
#include "options.h"
#include "random.h"
#include "thread.h"

using std::swap;
#define inject_error(...) ((void)0) // until all programs are converted

// Whether kernels run on the CPU back end.
#ifdef __CU2CPP__
const bool CPU_BACKEND = true;
#else
const bool CPU_BACKEND = false;
#endif

// Checks a CUDA call. An error ends the program: `file:line: call: text (cudaErrorName)`,
// EXIT_FAILURE, or EXIT_WAIVED where there is no device.
#define HANDLE_ERROR(...) handle_error((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

// Goes right after <<<…>>>: checks the launch, and in debug builds (DEBUG) waits for the kernel and
// checks its execution as well.
#define HANDLE_LAUNCH() handle_launch(__FILE__, __LINE__)

// Checks a host allocation of a listing from the book. Programs here call host_array.
#define HANDLE_NULL(...) handle_null(!(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

// Whether the error says that there is no device, or no driver for one.
static inline bool no_device(cudaError_t error) {
    return error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver;
}

static inline void handle_error(cudaError_t error, const char *call, const char *file, int line) {
    if (error == cudaSuccess)
        return;
#ifdef __CU2CPP__ // the CPU back end has said in one line where, how much, and how much there is
    if (error == cudaErrorMemoryAllocation && cuda_cpu::out_of_memory_was_told())
        exit(EXIT_FAILURE);
#endif
    fprintf(stderr, "%s:%d: %s: %s (%s)", file, line, call, cudaGetErrorString(error),
            cudaGetErrorName(error));
    if (error == cudaErrorNoKernelImageForDevice) {
        int device = 0, major = 0, minor = 0;
        cudaGetDevice(&device);
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
        fprintf(stderr, "; this build has no code for device %d: rebuild with SMS=%d%d", device, major,
                minor);
    }
    fputc('\n', stderr);
    exit(no_device(error) ? EXIT_WAIVED : EXIT_FAILURE);
}

static inline void handle_launch(const char *file, int line) {
    cudaError_t error = cudaGetLastError();
#ifdef DEBUG
    if (error == cudaSuccess)
        error = cudaDeviceSynchronize();
#endif
    handle_error(error, "kernel launch", file, line);
}

static inline void handle_null(bool missing, const char *call, const char *file, int line) {
    if (missing) {
        fprintf(stderr, "%s:%d: %s: out of memory\n", file, line, call);
        exit(EXIT_FAILURE);
    }
}

#include "lib/device.h"

// An array of n elements in host memory, to be freed with free(). Not initialized. Ends the program
// with one line when that much is not free.
template <class T> static inline T *host_array(size_t n) {
    require_free("host", n * sizeof(T), n > SIZE_MAX / sizeof(T) ? 0 : free_host_memory());
    T *data = (T *)malloc(n ? n * sizeof(T) : 1);
    if (!data)
        quit(EXIT_FAILURE, "out of memory: %zu elements of %zu bytes in host memory", n, sizeof(T));
    return data;
}

// The smaller and the larger of two numbers, which may be of different types. Neither may be negative
// when one type is unsigned.
template <class A, class B> static inline std::common_type_t<A, B> min_of(A a, B b) {
    return std::min<std::common_type_t<A, B>>(a, b);
}
template <class A, class B> static inline std::common_type_t<A, B> max_of(A a, B b) {
    return std::max<std::common_type_t<A, B>>(a, b);
}

#endif
