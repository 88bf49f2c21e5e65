// SPDX-License-Identifier: MIT
/*
 * Errors: the last error of each host thread, the sticky error of each device, names and texts.
 */
#include "internal.h"
#include "../../common/lib/printable.h"
#include "cuda_cpu/math.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace cuda_cpu {

thread_local bool in_callback = false;
thread_local bool in_library = false;
thread_local bool told_of_memory = false;

namespace {

thread_local cudaError_t last_error = cudaSuccess;
std::atomic<cudaError_t> for_good[max_devices];

void say(const char *format, va_list values) {
    char text[1000];
    vsnprintf(text, sizeof text, format, values);
    fprintf(stderr, "cuda on the CPU: %s\n", printable(text));
}

} // namespace

cudaError_t fail(cudaError_t error, const char *format, ...) {
    va_list values;
    va_start(values, format);
    say(format, values);
    va_end(values);
    told_of_memory = false;
    return last_error = error;
}

void refuse_setting(const char *name, const char *value, const char *wanted) {
    char text[1000];
    snprintf(text, sizeof text, "%s=%s: must be %s", name, value, wanted);
    fprintf(stderr, "cuda on the CPU: %s\n", printable(text));
    exit(EXIT_FAILURE);
}

cudaError_t not_ready() {
    return last_error = cudaErrorNotReady;
}

bool out_of_memory_was_told() {
    return told_of_memory;
}

cudaError_t fail_for_good(cudaError_t error, const char *format, ...) {
    va_list values;
    va_start(values, format);
    say(format, values);
    va_end(values);
    cudaError_t none = cudaSuccess;
    for_good[current_device()].compare_exchange_strong(none, error); // the first sticky error stays
    return last_error = error;
}

cudaError_t sticky_error(int device) {
    return for_good[device];
}

void lose_failed_device() {
    if (for_good[current_device()] != cudaSuccess)
        for_good[current_device()] = cudaErrorDevicesUnavailable;
}

cudaError_t begin_query(const char *call) {
    if (in_callback)
        return fail(cudaErrorNotPermitted, "%s: a stream's callback must not call the runtime", call);
    return device_count() == 0 ? no_device(call) : cudaSuccess;
}

cudaError_t begin(const char *call) {
    if (const cudaError_t error = begin_query(call))
        return error;
    const cudaError_t error = for_good[current_device()];
    if (error != cudaSuccess)
        last_error = error; // its message was printed when it occurred
    return error;
}

} // namespace cuda_cpu

using namespace cuda_cpu;

extern "C" cudaError_t cudaPeekAtLastError() {
    return last_error;
}

extern "C" cudaError_t cudaGetLastError() {
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

extern "C" const char *cudaGetErrorName(cudaError_t error) {
    switch (error) {
#define NAME(name, value, text)                                                                              \
    case name:                                                                                               \
        return #name;
        CUDA_CPU_ERRORS(NAME)
#undef NAME
    }
    return "unrecognized error code";
}

extern "C" const char *cudaGetErrorString(cudaError_t error) {
    switch (error) {
#define TEXT(name, value, text)                                                                              \
    case name:                                                                                               \
        return text;
        CUDA_CPU_ERRORS(TEXT)
#undef TEXT
    }
    return "unrecognized error code";
}
