// SPDX-License-Identifier: MIT
/*
 * Errors: the last one of each host thread, those that are for good, names and texts.
 */
#include "internal.h"
#include "cuda_cpu/math.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace cuda_cpu {

thread_local bool in_callback = false;

namespace {

thread_local cudaError_t last_error = cudaSuccess;
std::atomic<cudaError_t> for_good[max_devices];

// An error for good of the current device, if there is a device.
std::atomic<cudaError_t> *device_error() {
    return device_count() > 0 ? &for_good[current_device()] : nullptr;
}

void say(const char *format, va_list values) {
    char text[1000];
    vsnprintf(text, sizeof text, format, values);
    fprintf(stderr, "cuda on the CPU: %s\n", text);
}

} // namespace

cudaError_t fail(cudaError_t error, const char *format, ...) {
    va_list values;
    va_start(values, format);
    say(format, values);
    va_end(values);
    return last_error = error;
}

cudaError_t fail_for_good(cudaError_t error, const char *format, ...) {
    va_list values;
    va_start(values, format);
    say(format, values);
    va_end(values);
    cudaError_t none = cudaSuccess;
    for_good[current_device()].compare_exchange_strong(none, error); // the first one stays
    return last_error = error;
}

cudaError_t begin(const char *call) {
    if (in_callback)
        return fail(cudaErrorNotPermitted, "%s: a stream's callback must not call the runtime",
                    call);
    if (device_count() == 0)
        return fail(cudaErrorNoDevice, "%s: no device: %s", call, why_no_device());
    const cudaError_t error = *device_error();
    if (error != cudaSuccess)
        last_error = error; // has had its line already
    return error;
}

void trap(const char *file, int line) {
    fflush(stdout);
    fprintf(stderr, "cuda on the CPU: __trap() at %s:%d\n", base_name(file), line);
    _exit(EXIT_FAILURE);
}

} // namespace cuda_cpu

using namespace cuda_cpu;

extern "C" cudaError_t cudaPeekAtLastError() {
    const std::atomic<cudaError_t> *error = device_error();
    return error && *error != cudaSuccess ? error->load() : last_error;
}

extern "C" cudaError_t cudaGetLastError() {
    const cudaError_t error = cudaPeekAtLastError();
    last_error = cudaSuccess;
    return error;
}

extern "C" const char *cudaGetErrorName(cudaError_t error) {
    switch (error) {
#define NAME(name, value, text)                                                                    \
    case name:                                                                                     \
        return #name;
        CUDA_CPU_ERRORS(NAME)
#undef NAME
    }
    return "unrecognized error code";
}

extern "C" const char *cudaGetErrorString(cudaError_t error) {
    switch (error) {
#define TEXT(name, value, text)                                                                    \
    case name:                                                                                     \
        return text;
        CUDA_CPU_ERRORS(TEXT)
#undef TEXT
    }
    return "unrecognized error code";
}
