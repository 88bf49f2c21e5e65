// SPDX-License-Identifier: MIT
// What HANDLE_ERROR, HANDLE_LAUNCH and HANDLE_NULL of book.h call. Only book.h includes this header.
#pragma once

// Whether the error says that there is no device, or no driver for one.
static inline bool no_device(cudaError_t error) {
    return error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver;
}

static inline void handle_error(cudaError_t error, const char *call, const char *file, int line) {
    if (error == cudaSuccess)
        return;
    char more[96] = "";
    if (error == cudaErrorNoKernelImageForDevice) {
        int device = 0, major = 0, minor = 0;
        cudaGetDevice(&device);
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
        snprintf(more, sizeof(more), "; this build has no code for device %d: rebuild with SMS=%d%d", device,
                 major, minor);
    }
    size_t available, total;
    if (error == cudaErrorMemoryAllocation && cudaMemGetInfo(&available, &total) == cudaSuccess)
        snprintf(more, sizeof(more), "; %zu of %zu bytes are free", available, total);
    quit_line(no_device(error) ? EXIT_WAIVED : EXIT_FAILURE, "%s:%d: %s: %s (%s)%s", file, line, call,
              cudaGetErrorString(error), cudaGetErrorName(error), more);
}

static inline void handle_launch(const char *file, int line) {
    cudaError_t error = cudaGetLastError();
#ifdef DEBUG
    // While a graph records the launch, waiting is an error, and so is the question to the default stream.
    cudaStreamCaptureStatus status;
    if (error == cudaSuccess && cudaStreamIsCapturing(cudaStreamLegacy, &status) == cudaSuccess)
        error = cudaDeviceSynchronize();
    cudaGetLastError();
#endif
    handle_error(error, "kernel launch", file, line);
}

static inline void handle_null(bool missing, const char *call, const char *file, int line) {
    if (missing)
        quit_line(EXIT_FAILURE, "%s:%d: %s: out of memory", file, line, call);
}
