// SPDX-License-Identifier: MIT
// cucc only: wrong uses of memory, copies and symbols. Each gives the error that CUDA gives, and on the CPU
// back end also a line that says why. Correct twins give no error and print nothing.
#include <cstdint>
#include "device.h"

// Arrays of 100 ints: on two devices, in pinned host memory, and in pageable host memory.
struct Memory {
    int *device, *other, *pinned;
    std::vector<int> host = std::vector<int>(100, 1);

    Memory() {
        OK(cudaMalloc(&device, 400));
        OK(cudaMalloc(&other, 400));
        OK(cudaMallocHost(&pinned, 400));
    }
};

TEST(copy_in_the_wrong_direction) {
    Memory m;
    int *h = m.host.data(), *d = m.device;
    INVALID("the destination of cudaMemcpyDeviceToHost", cudaMemcpy(d, h, 400, cudaMemcpyDeviceToHost));
    INVALID("the destination of cudaMemcpyHostToDevice", cudaMemcpy(h, d, 400, cudaMemcpyHostToDevice));
    FAILS(cudaErrorInvalidMemcpyDirection, "there is no direction 5",
          cudaMemcpy(h, d, 400, (cudaMemcpyKind)5));
    INVALID("the destination of cudaMemcpyHostToDevice is NULL",
            cudaMemcpy(NULL, h, 4, cudaMemcpyHostToDevice));
    INVALID("is NULL", cudaMemset(NULL, 0, 4));
    INVALID("is not device memory", cudaMemset(h, 0, 4));
}

TEST(copy_past_the_end_or_the_pitch) {
    Memory m;
    int *h = m.host.data(), *d = m.device;
    INVALID("needs 401 bytes at byte 0, but is 400 bytes of device 0, allocated at memory_faults.cu:",
            cudaMemcpy(d, h, 401, cudaMemcpyHostToDevice));
    INVALID("needs 4 bytes at byte 397", cudaMemcpy(h, (char *)d + 397, 4, cudaMemcpyDeviceToHost));
    INVALID("the source of cudaMemcpyDeviceToDevice needs 400 bytes at byte 4",
            cudaMemcpy(m.other, d + 1, 400, cudaMemcpyDeviceToDevice));
    INVALID("needs 401 bytes at byte 0", cudaMemset(d, 0, 401));
    FAILS(cudaErrorInvalidPitchValue, "rows of 50 bytes do not fit pitches of 80 (destination) and 40",
          cudaMemcpy2D(h, 80, d, 40, 50, 2, cudaMemcpyDeviceToHost));
    FAILS(cudaErrorInvalidPitchValue, "rows of 50 bytes do not fit pitches of 40",
          cudaMemcpy2D(d, 40, h, 80, 50, 2, cudaMemcpyHostToDevice));
    INVALID("needs 440 bytes", cudaMemcpy2D(d, 40, h, 40, 40, 11, cudaMemcpyHostToDevice));
}

TEST(memory_freed_wrongly) {
    Memory m;
    int value = 1;
    WORKS(cudaFree(NULL));
    WORKS(cudaFreeHost(NULL));
    INVALID("pointer is NULL", cudaMalloc((void **)NULL, 4));
    INVALID("was not allocated by cudaMalloc", cudaFree(m.host.data()));
    INVALID("it is 400 bytes of device 0, allocated at memory_faults.cu:", cudaFreeHost(m.device));
    INVALID("it is 400 bytes of pinned host memory", cudaFree(m.pinned));
    INVALID("is 4 bytes into 400 bytes of device 0", cudaFree(m.device + 1));
    WORKS(cudaFree(m.device));
    WORKS(cudaFreeHost(m.pinned));
    INVALID("freed already: 400 bytes of device 0, allocated at memory_faults.cu:", cudaFree(m.device));
    INVALID("freed already: 400 bytes of pinned host memory", cudaFreeHost(m.pinned));
    INVALID("and was freed already: 400 bytes of device 0",
            cudaMemcpy(m.device, &value, 4, cudaMemcpyHostToDevice));
}

TEST(pinned_registered_and_managed_memory_used_wrongly) {
    int *mapped, *p;
    std::vector<int> host(5000);
    OK(cudaHostAlloc(&mapped, 40, cudaHostAllocMapped));
    WORKS(cudaHostGetDevicePointer(&p, mapped, 0));
    INVALID("is not from cudaHostAlloc", cudaHostGetDevicePointer(&p, host.data(), 0));
    INVALID("flags", cudaHostGetDevicePointer(&p, mapped, 1));
    INVALID("not a valid combination of flags", cudaHostAlloc(&p, 4, 0x100));
    WORKS(cudaHostRegister(host.data(), 20000, 0));
    FAILS(cudaErrorHostMemoryAlreadyRegistered, "overlap 20000 bytes of registered host memory",
          cudaHostRegister(&host[10], 40, 0));
    WORKS(cudaHostUnregister(host.data()));
    FAILS(cudaErrorHostMemoryNotRegistered, "is not registered", cudaHostUnregister(host.data()));
    INVALID("0 bytes", cudaHostRegister(host.data(), 0, 0));
    WORKS(cudaMallocManaged(&p, 4, cudaMemAttachHost));
    INVALID("flags are 0x10", cudaMallocManaged(&p, 4, 0x10));
}

__constant__ float coefficients[16];
__device__ int result;
static int on_the_host;

__constant__ const int fixed[2] = {1, 2};

TEST(symbols_used_wrongly) {
    const float in[32] = {};
    float out[32];
    int value = 1;
    void *address;
    WORKS(cudaMemcpyToSymbol(coefficients, in, 4, 60));
    WORKS(cudaMemcpyFromSymbol(out, result, 0, 4));
    WORKS(cudaMemcpyFromSymbol(&value, result, 4, 0, cudaMemcpyDefault));
    WORKS(cudaMemcpyFromSymbol(&value, fixed, 4));
    INVALID("65 bytes at offset 0 do not fit in a variable of 64", cudaMemcpyToSymbol(coefficients, in, 65));
    INVALID("4 bytes at offset 61 do not fit", cudaMemcpyToSymbol(coefficients, in, 4, 61));
    INVALID("8 bytes at offset 0 do not fit in a variable of 4", cudaMemcpyFromSymbol(out, result, 8));
    INVALID("at offset 18446744073709551612 do not fit", cudaMemcpyFromSymbol(out, result, 8, SIZE_MAX - 3));
    FAILS(cudaErrorInvalidSymbol, "is not a __device__ or __constant__ variable",
          cudaMemcpyToSymbol(on_the_host, &value, 4));
    FAILS(cudaErrorInvalidSymbol, "pass the variable itself, not its address",
          cudaMemcpyToSymbol(&result, &value, 4));
    FAILS(cudaErrorInvalidSymbol, "is not a __device__", cudaGetSymbolAddress(&address, on_the_host));
    FAILS(cudaErrorInvalidMemcpyDirection, "does not end at a device",
          cudaMemcpyToSymbol(result, &value, 4, 0, cudaMemcpyDeviceToHost));
    FAILS(cudaErrorInvalidMemcpyDirection, "does not start at a device",
          cudaMemcpyFromSymbol(&value, result, 4, 0, cudaMemcpyHostToDevice));
    FAILS(cudaErrorInvalidSymbol, "the variable is const", cudaMemcpyToSymbol(fixed, &value, 4));
}

TEST(devices_that_are_not_there) {
    Memory m;
    const int count = device_count();
    const std::string why =
        "there is no device " + std::to_string(count) + ", only 0 to " + std::to_string(count - 1);
    WORKS(cudaSetDevice(count - 1));
    FAILS(cudaErrorInvalidDevice, why.c_str(), cudaSetDevice(count));
    WORKS(cudaMemcpyPeer(m.device, 0, m.other, 0, 4));
    FAILS(cudaErrorInvalidDevice, why.c_str(), cudaMemcpyPeer(m.device, 0, m.other, count, 4));
}
