// SPDX-License-Identifier: MIT
// Errors: names, texts, the last error, and sticky errors.
#include "../../runtime/internal.h"
#include "device.h"

static bool named(cudaError_t error, const char *name, const char *text) {
    return strcmp(cudaGetErrorName(error), name) == 0 && strcmp(cudaGetErrorString(error), text) == 0;
}

TEST(names_and_texts) {
    EXPECT(named(cudaSuccess, "cudaSuccess", "no error"));
    EXPECT(named(cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"));
    EXPECT(named(cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"));
    EXPECT(named(cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"));
    EXPECT(named(cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
                 "invalid configuration argument"));
    EXPECT(named(cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
                 "an illegal memory access was encountered"));
    EXPECT(named(cudaErrorUnknown, "cudaErrorUnknown", "unknown error"));
    EXPECT(named((cudaError_t)12345, "unrecognized error code", "unrecognized error code"));
    EXPECT(named((cudaError_t)-1, "unrecognized error code", "unrecognized error code"));
    EXPECT(cudaErrorInvalidDevice == 101 && cudaErrorIllegalAddress == 700 && cudaErrorUnknown == 999);
}

TEST(the_last_error_is_kept_until_it_is_fetched) {
    int device;
    OK(cudaGetLastError());
    EXPECT(cudaSetDevice(1 << 20) == cudaErrorInvalidDevice);
    OK(cudaGetDevice(&device)); // a successful call does not clear it
    EXPECT(cudaPeekAtLastError() == cudaErrorInvalidDevice);
    std::thread([] { // each thread has its own
        OK(cudaPeekAtLastError());
        EXPECT(cudaMemset(NULL, 0, 4) == cudaErrorInvalidValue);
    })
        .join();
    EXPECT(cudaPeekAtLastError() == cudaErrorInvalidDevice);
    EXPECT(cudaMemset(NULL, 0, 4) == cudaErrorInvalidValue); // the latest error replaces it
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    OK(cudaGetLastError());
}

static void fail_for_good() {
    int device;
    void *p;
    cuda_cpu::set_sticky_error(cudaErrorAssert);
    EXPECT(cuda_cpu::fail(cudaErrorAssert, "kernel: an assertion") == cudaErrorAssert);
    EXPECT(cudaGetLastError() == cudaErrorAssert);
    OK(cudaGetLastError()); // cleared, but the next call returns it again
    EXPECT(cudaMalloc(&p, 4) == cudaErrorAssert);
    EXPECT(cudaDeviceSynchronize() == cudaErrorAssert);
    EXPECT(cudaGetLastError() == cudaErrorAssert);
    cuda_cpu::set_sticky_error(cudaErrorIllegalAddress);
    EXPECT(cudaFree(NULL) == cudaErrorAssert); // the first error stays
    std::thread([] {
        EXPECT(cudaDeviceSynchronize() == cudaErrorAssert); // for every host thread
    }).join();
    OK(cudaGetDevice(&device)); // queries still work
    (void)cudaGetLastError();
    if (device_count() > 1) { // other devices are not affected
        OK(cudaSetDevice(1));
        OK(cudaMalloc(&p, 4));
        OK(cudaFree(p));
        OK(cudaGetLastError());
        OK(cudaSetDevice(0));
    }
    OK(cudaDeviceReset()); // a reset does not help
    EXPECT(cudaMalloc(&p, 4) == cudaErrorDevicesUnavailable);
}

TEST(an_error_for_good_is_what_every_later_call_gives) {
    ends_with(in_child(fail_for_good), {"cuda on the CPU: kernel: an assertion\n"}, 0);
}
