// SPDX-License-Identifier: MIT
// Choosing the device, naming what times are measured on, and refusing sizes beyond the free memory.
// book.h includes this, after HANDLE_ERROR.
#ifndef COMMON_LIB_DEVICE_H
#define COMMON_LIB_DEVICE_H

#include "../options.h"
#include "memory.h"

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
        quit(EXIT_USAGE, "--device %d: no such device, found %d (--list-devices shows them)", options.device,
             count);
    error = cudaSetDevice(options.device);
    if (error == cudaSuccess)
        error = cudaFree(NULL); // creates the context: a device that is taken shows here
    if (error != cudaSuccess)
        quit(EXIT_FAILURE, "device %d cannot be used: %s (%s)", options.device, cudaGetErrorString(error),
             cudaGetErrorName(error));
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

#endif
