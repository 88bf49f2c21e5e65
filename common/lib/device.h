// SPDX-License-Identifier: MIT
// select_device and require_memory of book.h, and the lines that name the device on which times are measured.
// Only book.h includes this header, after it has defined HANDLE_ERROR.
#pragma once

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

// Prints on which device the following times are measured, once for each device. On the CPU back end, the
// first call also prints that they are CPU times.
static inline void print_device(int device) {
    static bool said, named[64];
    if (device < 64 && named[device])
        return;
    if (device < 64)
        named[device] = true;
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, device));
    if (CPU_BACKEND && !said)
        printf("CPU back end: these are CPU times and do not rank GPU kernels.\n");
    said = true;
    printf("Measured on device %d: %s\n", device, prop.name);
}

// Prints on which processor the following times of the host are measured.
static inline void print_host(void) {
    char line[256], name[256] = "CPU of unknown name";
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "model name : %255[^\n]", name) == 1) // present on x86, missing on arm64
            break;
    if (file)
        fclose(file);
    printf("Measured on the host: %s\n", name);
}

// Prints the size that the following times are measured at. A ladder prints it in the titles of its tables.
static inline void print_size(void) {
    if (options.size && !(options.uses & LADDER))
        printf("Measured with --size %zu: %s\n", *options.size, options.size_of);
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
        error = cudaFree(NULL); // creates the context, which fails when another process has the device
    if (error != cudaSuccess)
        quit(EXIT_FAILURE, "device %d cannot be used: %s (%s)", options.device, cudaGetErrorString(error),
             cudaGetErrorName(error));
}

static inline void select_device(void) {
    bool host = options.uses & HOST_ONLY;
    if (!host || options.device_given || options.list_devices)
        use_device();
    if (options.uses & TIMES && host)
        print_host();
    else if (options.uses & TIMES)
        print_device(options.device);
    if (options.uses & TIMES)
        print_size();
}

// An attribute of a device; if none is named, of the one that the options choose.
static inline int device_attribute(cudaDeviceAttr which, int device = options.device) {
    int value;
    HANDLE_ERROR(cudaDeviceGetAttribute(&value, which, device));
    return value;
}

// The memory of an integrated device is part of the host's memory, so it counts as host memory too.
static inline void require_memory(size_t host, size_t device) {
    static size_t shared_with_host;
    size_t available = 0, total;
    int id;
    if (device > 0) {
        HANDLE_ERROR(cudaMemGetInfo(&available, &total));
        require_free("device", device, available);
        HANDLE_ERROR(cudaGetDevice(&id));
        shared_with_host += device_attribute(cudaDevAttrIntegrated, id) ? device : 0;
    }
    require_free("host", host + shared_with_host, free_host_memory());
}
