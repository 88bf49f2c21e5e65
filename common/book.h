// SPDX-License-Identifier: MIT
// What every program includes: error checks for CUDA calls and launches, choosing the device, and
// the small headers of this folder.
#ifndef COMMON_BOOK_H
#define COMMON_BOOK_H

#include <stdio.h>
#include <stdlib.h>
#include <utility>
#include <cuda_runtime.h>
#include "check.h"
#include "options.h"
#include "random.h"
#include "thread.h"

using std::swap;

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

// Checks that host memory was to be had.
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
        fprintf(stderr, "; this build has no code for device %d: rebuild with SMS=%d%d", device,
                major, minor);
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

// Names the device that the times printed below it were measured on.
static inline void print_device(int device) {
    static bool said;
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, device));
    if (CPU_BACKEND && !said)
        printf("CPU back end: these are CPU times and do not rank GPU kernels.\n");
    said = true;
    printf("Measured on device %d: %s\n", device, prop.name);
}

// The same for times that were measured on the host.
static inline void print_host(void) {
    char line[256], name[256] = "CPU of unknown name";
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "model name : %255[^\n]", name) == 1) // x86 has one, arm64 none
            break;
    if (file)
        fclose(file);
    printf("Measured on the host: %s\n", name);
}

static inline void use_device(void) {
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
        quit(EXIT_USAGE, "--device %d: no such device, found %d (--list-devices shows them)",
             options.device, count);
    error = cudaSetDevice(options.device);
    if (error == cudaSuccess)
        error = cudaFree(NULL); // creates the context: a device that is taken shows here
    if (error != cudaSuccess)
        quit(EXIT_FAILURE, "device %d cannot be used: %s (%s)", options.device,
             cudaGetErrorString(error), cudaGetErrorName(error));
}

// Sets the device that --device asks for (0 when it was not given), after parse_options. Ends the
// program when --list-devices was given, and with one line when there is no such device, none at
// all (EXIT_WAIVED), or it cannot be used. A HOST_ONLY program needs none unless it was asked for.
// A program with TIMES says here what it measures them on.
static inline void select_device(void) {
    bool host = options.uses & HOST_ONLY;
    if (!host || options.device_given || options.list_devices)
        use_device();
    if (options.uses & TIMES && host)
        print_host();
    else if (options.uses & TIMES)
        print_device(options.device);
}

#endif
