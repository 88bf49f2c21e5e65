// SPDX-License-Identifier: MIT
// What programs of 2010 use most of NVIDIA's cutil: checks of calls, the choice of a device, timers.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vector>
#include <cuda_runtime.h>

inline void cutil_check(cudaError_t error, const char *what, const char *file, int line) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "%s:%d: %s: %s (%s)\n", file, line, what, cudaGetErrorString(error),
            cudaGetErrorName(error));
    exit(EXIT_FAILURE);
}

#define CUDA_SAFE_CALL(call)         cutil_check((call), #call, __FILE__, __LINE__)
#define CUDA_SAFE_CALL_NO_SYNC(call) CUDA_SAFE_CALL(call)
#define CUT_CHECK_ERROR(message)                                                                             \
    do {                                                                                                     \
        cutil_check(cudaGetLastError(), message, __FILE__, __LINE__);                                        \
        cutil_check(cudaDeviceSynchronize(), message, __FILE__, __LINE__);                                   \
    } while (0)
#define cutilSafeCall(call)       CUDA_SAFE_CALL(call)
#define cutilSafeCallNoSync(call) CUDA_SAFE_CALL(call)
#define cutilSafeThreadSync()     CUDA_SAFE_CALL(cudaDeviceSynchronize())
#define cutilCheckMsg(message)    CUT_CHECK_ERROR(message)
#define CUT_SAFE_CALL(call)                                                                                  \
    do {                                                                                                     \
        if (!(call)) {                                                                                       \
            fprintf(stderr, "%s:%d: %s failed\n", __FILE__, __LINE__, #call);                                \
            exit(EXIT_FAILURE);                                                                              \
        }                                                                                                    \
    } while (0)
#define cutilCheckError(call) CUT_SAFE_CALL(call)

typedef enum CUTBoolean { CUTFalse = 0, CUTTrue = 1 } CUTBoolean;

// The device that -device=N or --device=N names, else the first
inline void cutil_device(int argc, char **argv) {
    int device = 0;
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i] + strspn(argv[i], "-");
        if (strncmp(name, "device=", 7) == 0)
            device = atoi(name + 7);
    }
    CUDA_SAFE_CALL(cudaSetDevice(device));
}
#define CUT_DEVICE_INIT(argc, argv)       cutil_device(argc, argv)
#define cutilDeviceInit(argc, argv)       cutil_device(argc, argv)
#define cutilChooseCudaDevice(argc, argv) cutil_device(argc, argv)
inline int cutGetMaxGflopsDeviceId() {
    return 0;
}
#define CUT_EXIT(argc, argv)  exit(EXIT_SUCCESS)
#define cutilExit(argc, argv) exit(EXIT_SUCCESS)

// Timers, by number; times in milliseconds
struct CutilTimer {
    double since, total;
    unsigned intervals;
    bool running;
};
inline std::vector<CutilTimer> &cutil_timers() {
    static std::vector<CutilTimer> all;
    return all;
}
inline double cutil_now() {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}
inline CUTBoolean cutCreateTimer(unsigned *timer) {
    *timer = (unsigned)cutil_timers().size();
    cutil_timers().push_back({0, 0, 0, false});
    return CUTTrue;
}
inline CUTBoolean cutStartTimer(unsigned timer) {
    CutilTimer &t = cutil_timers().at(timer);
    t.since = cutil_now();
    t.running = true;
    return CUTTrue;
}
inline CUTBoolean cutStopTimer(unsigned timer) {
    CutilTimer &t = cutil_timers().at(timer);
    t.total += cutil_now() - t.since;
    t.intervals++;
    t.running = false;
    return CUTTrue;
}
inline CUTBoolean cutResetTimer(unsigned timer) {
    CutilTimer &t = cutil_timers().at(timer);
    t = {cutil_now(), 0, 0, t.running};
    return CUTTrue;
}
inline CUTBoolean cutDeleteTimer(unsigned) {
    return CUTTrue;
}
inline float cutGetTimerValue(unsigned timer) {
    const CutilTimer &t = cutil_timers().at(timer);
    return (float)(t.total + (t.running ? cutil_now() - t.since : 0));
}
inline float cutGetAverageTimerValue(unsigned timer) {
    const CutilTimer &t = cutil_timers().at(timer);
    return t.intervals ? (float)(t.total / t.intervals) : 0;
}
