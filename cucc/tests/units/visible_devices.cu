// SPDX-License-Identifier: MIT
// cucc only: how many devices there are and which of them are visible, and what is said of the others.
#include "device.h"

static void print_devices() {
    int n = -1, device = -1;
    const cudaError_t error = cudaGetDeviceCount(&n);
    printf("%d%s", error == cudaSuccess ? n : -(int)error, n > 0 ? ":" : "");
    char id[64];
    for (int i = 0; i < n; i++)
        if (cudaDeviceGetPCIBusId(id, sizeof id, i) == cudaSuccess)
            printf(" %.7s", id);
    if (n > 0 && (cudaGetDevice(&device) != cudaSuccess || device != 0))
        printf(" not 0");
}

// The output of print_devices, such as "2: 0000:01 0000:02", or the negative error code. NULL: no such
// variable
static unit_result devices_when(const char *devices, const char *visible) {
    return in_child([=] {
        if (devices)
            setenv("CUDA_CPU_DEVICES", devices, 1);
        if (visible)
            setenv("CUDA_VISIBLE_DEVICES", visible, 1);
        print_devices();
    });
}

TEST(visible_devices_are_counted_and_ordered) {
    const struct {
        const char *devices, *visible, *out;
    } cases[] = {
        {NULL, NULL, "2: 0000:01 0000:02"},
        {"1", "0", "1: 0000:01"},
        {"0", "0", "-100"}, // cudaErrorNoDevice
        {"2", "", "-100"},
        {"2", "-1,0", "-100"},
        {"2", ",0", "-100"},
        {"2", "99", "-100"},
        {"3", "0,1,2", "3: 0000:01 0000:02 0000:03"},
        {"3", "2,0", "2: 0000:03 0000:01"},
        {"3", "1,-1,0", "1: 0000:02"},
        {"3", "1,7,0", "1: 0000:02"},
        {"3", "2,", "1: 0000:03"},
        {"3", " 2x,1.5,0", "3: 0000:03 0000:02 0000:01"},
        {"3", "GPU-43554441-206f-6e20-7468-652043505501", "1: 0000:02"},
        {"3", "GPU-43554441", "-100"}, // a prefix of all three
    };
    for (const auto &c : cases) {
        const unit_result r = devices_when(c.devices, c.visible);
        if (!EXPECT(r.status == 0 && r.err[0] == '\0' && strcmp(r.out, c.out) == 0))
            fprintf(stderr, "%s devices, visible %s: %s%s\n", c.devices, c.visible, r.out, r.err);
    }
}

TEST(bad_devices_are_told) {
    const unit_result twice = devices_when(NULL, "0,0");
    EXPECT(strcmp(twice.out, "-101") == 0); // cudaErrorInvalidDevice
    EXPECT(strcmp(twice.err, "cuda on the CPU: cudaGetDeviceCount: no device: CUDA_VISIBLE_DEVICES=0,0 "
                             "names a device twice\n") == 0);
    for (const char *bad : {"", "two", "-1", "1000", "2x", " 2"})
        ends_with(devices_when(bad, NULL), {"must be a number from 0 to 64\n"});
}

TEST(calls_without_a_device_say_so) {
    const unit_result r = in_child([] {
        void *p;
        int device;
        setenv("CUDA_VISIBLE_DEVICES", "", 1);
        EXPECT(cudaMalloc(&p, 1) == cudaErrorNoDevice && cudaGetLastError() == cudaErrorNoDevice);
        OK(cudaGetLastError());
        EXPECT(cudaSetDevice(0) == cudaErrorNoDevice && cudaGetDevice(&device) == cudaErrorNoDevice);
        EXPECT(cudaDeviceSynchronize() == cudaErrorNoDevice && cudaFree(NULL) == cudaErrorNoDevice);
    });
    ends_with(r, {"cuda on the CPU: cudaMalloc: no device: CUDA_VISIBLE_DEVICES= selects no device\n"}, 0);
}
