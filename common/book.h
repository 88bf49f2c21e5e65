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

// Prints one line per device and ends the program.
static inline void list_devices(int count) {
    for (int i = 0; i < count; i++) {
        cudaDeviceProp prop;
        HANDLE_ERROR(cudaGetDeviceProperties(&prop, i));
        printf("%d: %s, compute capability %d.%d, %.1f GiB\n", i, prop.name, prop.major, prop.minor,
               static_cast<double>(prop.totalGlobalMem) / (1 << 30));
    }
    exit(EXIT_SUCCESS);
}

// Sets the device that --device asks for (0 when it was not given), after parse_options. Ends the
// program when --list-devices was given, and with one line when there is no such device, none at
// all (EXIT_WAIVED), or it cannot be used. A HOST_ONLY program needs none unless it was asked for.
static inline void select_device(void) {
    if ((options.uses & HOST_ONLY) && !options.device_given && !options.list_devices)
        return;
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (no_device(error))
        count = 0;
    else
        HANDLE_ERROR(error);
    if (count == 0) {
        bool told = error == cudaErrorInsufficientDriver;
        quit(EXIT_WAIVED, "needs a CUDA device, found none%s%s", told ? ": " : "",
             told ? cudaGetErrorString(error) : "");
    }
    if (options.list_devices)
        list_devices(count);
    if (options.device >= count)
        quit(EXIT_USAGE, "--device %d: no such device, found %d (--list-devices shows them)", options.device,
             count);
    error = cudaSetDevice(options.device);
    if (error == cudaSuccess)
        error = cudaFree(NULL); // creates the context: a device that is taken shows here
    if (error != cudaSuccess)
        quit(EXIT_FAILURE, "device %d cannot be used: %s (%s)", options.device, cudaGetErrorString(error),
             cudaGetErrorName(error));
}

static inline void require_free(const char *what, size_t needed, size_t available) {
    const double gib = 1 << 30;
    if (needed > available)
        quit(EXIT_FAILURE, "out of memory: needs %.2f GiB of %s memory, %.2f GiB are free", needed / gib,
             what, available / gib);
}

// Ends the program, with one line and EXIT_FAILURE, unless that many bytes of host memory and of the
// current device's memory are free. malloc alone does not refuse: it promises more than the system
// has, and the program is killed when it writes there. `device` 0 asks no device; call it once for
// each device. Memory of a device that shares the host's memory is counted with the host's.
static inline void require_memory(size_t host, size_t device) {
    static size_t shared_with_host;
    size_t available = 0, total;
    int id, integrated = 0;
    if (device > 0) {
        HANDLE_ERROR(cudaMemGetInfo(&available, &total));
        require_free("device", device, available);
        HANDLE_ERROR(cudaGetDevice(&id));
        HANDLE_ERROR(cudaDeviceGetAttribute(&integrated, cudaDevAttrIntegrated, id));
        shared_with_host += integrated ? device : 0;
    }
    require_free("host", host + shared_with_host, free_host_memory());
}

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
