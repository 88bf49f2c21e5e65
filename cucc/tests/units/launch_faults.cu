// SPDX-License-Identifier: MIT
// cucc only: calls that are no launch, launches of what is no kernel, and an error that stays, without a
// fault that causes it.
#include "device.h"

namespace cuda_cpu { // of the runtime
cudaError_t fail(cudaError_t error, const char *format, ...);
void set_sticky_error(cudaError_t error);
} // namespace cuda_cpu

__global__ void called(int) {}
static void not_global(int) {}
TEST(only_a_kernel_is_launched_and_only_by_a_launch) {
    ends_with(in_child([] { not_global<<<1, 1>>>(1); }), {"not_global is not __global__"});
    void (*const pointer)(int) = called;
    pointer(1);
    EXPECT(cudaGetLastError() == cudaErrorMissingConfiguration);
    int value = 4;
    void *one[] = {&value};
    for (const void *function : {(void *)&value, (void *)puts, (void *)((char *)called + 1)})
        EXPECT(cudaLaunchKernel(function, 1, 1, one) == cudaErrorInvalidDeviceFunction);
}

__global__ void plain(int *out) {
    *out = 1;
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
    plain<<<1, 1>>>(NULL); // does not run
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
