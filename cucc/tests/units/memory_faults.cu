// SPDX-License-Identifier: MIT
// Wrong uses of memory, copies and symbols. Each gives the error that CUDA gives, and on the CPU
// back end also a line that says why. A correct twin of each gives no error and prints nothing.
#include <cstdint>
#include <cstring>
#include <vector>
#include "messages.h"

// The call must return `error` and say `why` in one line; its correct twin must say nothing.
#define CAUGHT(error, why, wrong, right)                                                                     \
    WORKS(right);                                                                                            \
    FAILS(error, why, wrong)

static cudaError_t allocate_and_free(size_t bytes) {
    void *p;
    const cudaError_t error = cudaMalloc(&p, bytes);
    return error ? error : cudaFree(p);
}

// 100 ints in each kind of memory.
struct Memory {
    int *device, *other, *pinned, *managed;
    std::vector<int> host = std::vector<int>(100, 1);

    Memory() {
        OK(cudaMalloc(&device, 400)); // line: device
        OK(cudaMalloc(&other, 400));
        OK(cudaMallocHost(&pinned, 400));
        OK(cudaMallocManaged(&managed, 400));
    }
};

TEST(copy_in_the_wrong_direction) {
    Memory m;
    int *h = m.host.data(), *d = m.device;
    CAUGHT(cudaErrorInvalidValue, "the destination of cudaMemcpyDeviceToHost",
           cudaMemcpy(d, h, 400, cudaMemcpyDeviceToHost), cudaMemcpy(d, h, 400, cudaMemcpyHostToDevice));
    CAUGHT(cudaErrorInvalidValue, "the destination of cudaMemcpyHostToDevice",
           cudaMemcpy(h, d, 400, cudaMemcpyHostToDevice), cudaMemcpy(h, d, 400, cudaMemcpyDeviceToHost));
    CAUGHT(cudaErrorInvalidMemcpyDirection, "there is no direction 5",
           cudaMemcpy(h, d, 400, (cudaMemcpyKind)5), cudaMemcpy(h, d, 400, cudaMemcpyDefault));
}

TEST(copy_past_the_end) {
    Memory m;
    int *h = m.host.data(), *d = m.device;
    CAUGHT(cudaErrorInvalidValue,
           "needs 401 bytes at byte 0, but is 400 bytes of device 0, allocated at memory_faults.cu:",
           cudaMemcpy(d, h, 401, cudaMemcpyHostToDevice), cudaMemcpy(d, h, 400, cudaMemcpyHostToDevice));
    CAUGHT(cudaErrorInvalidValue, "needs 4 bytes at byte 397",
           cudaMemcpy(h, (char *)d + 397, 4, cudaMemcpyDeviceToHost),
           cudaMemcpy(h, (char *)d + 396, 4, cudaMemcpyDeviceToHost));
    CAUGHT(cudaErrorInvalidValue, "the source of cudaMemcpyDeviceToDevice needs 400 bytes at byte 4",
           cudaMemcpy(m.other, d + 1, 400, cudaMemcpyDeviceToDevice),
           cudaMemcpy(m.other, d, 400, cudaMemcpyDeviceToDevice));
    CAUGHT(cudaErrorInvalidValue, "needs 401 bytes at byte 0", cudaMemset(d, 0, 401), cudaMemset(d, 0, 400));
}

TEST(copy_of_rows_past_the_end_or_the_pitch) {
    Memory m;
    int *h = m.host.data(), *d = m.device;
    CAUGHT(cudaErrorInvalidPitchValue, "rows of 50 bytes do not fit pitches of 80 (destination) and 40",
           cudaMemcpy2D(h, 80, d, 40, 50, 2, cudaMemcpyDeviceToHost),
           cudaMemcpy2D(h, 80, d, 50, 50, 2, cudaMemcpyDeviceToHost));
    CAUGHT(cudaErrorInvalidPitchValue, "rows of 50 bytes do not fit pitches of 40",
           cudaMemcpy2D(d, 40, h, 80, 50, 2, cudaMemcpyHostToDevice),
           cudaMemcpy2D(d, 40, h, 80, 40, 2, cudaMemcpyHostToDevice));
    CAUGHT(cudaErrorInvalidValue, "needs 440 bytes",
           cudaMemcpy2D(d, 40, h, 40, 40, 11, cudaMemcpyHostToDevice),
           cudaMemcpy2D(d, 40, h, 40, 40, 10, cudaMemcpyHostToDevice));
}

TEST(host_memory_where_device_memory_belongs) {
    Memory m;
    CAUGHT(cudaErrorInvalidValue, "is not device memory", cudaMemset(m.host.data(), 0, 4),
           cudaMemset(m.managed, 0, 4));
    CAUGHT(cudaErrorInvalidValue, "was not allocated by cudaMalloc", cudaFree(m.host.data()),
           allocate_and_free(4));
    CAUGHT(cudaErrorInvalidValue,
           "it is 400 bytes of device 0, allocated at memory_faults.cu:", cudaFreeHost(m.device),
           cudaFreeHost(NULL));
    CAUGHT(cudaErrorInvalidValue, "it is 400 bytes of pinned host memory", cudaFree(m.pinned),
           cudaFree(NULL));
}

TEST(null_pointers) {
    Memory m;
    CAUGHT(cudaErrorInvalidValue, "the destination of cudaMemcpyHostToDevice is NULL",
           cudaMemcpy(NULL, m.host.data(), 4, cudaMemcpyHostToDevice),
           cudaMemcpy(m.device, m.host.data(), 4, cudaMemcpyHostToDevice));
    CAUGHT(cudaErrorInvalidValue, "is NULL", cudaMemset(NULL, 0, 4), cudaMemset(m.device, 0, 4));
    CAUGHT(cudaErrorInvalidValue, "pointer is NULL", cudaMalloc((void **)NULL, 4), cudaFree(NULL));
}

TEST(use_after_free) {
    int *p, *q, value = 1;
    OK(cudaMalloc(&p, 40));
    OK(cudaMallocHost(&q, 40));
    CAUGHT(cudaErrorInvalidValue, "is 4 bytes into 40 bytes of device 0", cudaFree(p + 1),
           cudaMemset(p + 1, 0, 36));
    CAUGHT(cudaErrorInvalidValue,
           "freed already: 40 bytes of device 0, allocated at memory_faults.cu:", cudaFree(p), cudaFree(p));
    CAUGHT(cudaErrorInvalidValue, "freed already: 40 bytes of pinned host memory", cudaFreeHost(q),
           cudaFreeHost(q));
    FAILS(cudaErrorInvalidValue, "and was freed already: 40 bytes of device 0",
          cudaMemcpy(p, &value, 4, cudaMemcpyHostToDevice));
}

TEST(pinned_and_registered_memory_used_wrongly) {
    int *pinned, *mapped, *device;
    std::vector<int> host(5000);
    OK(cudaHostAlloc(&pinned, 40, cudaHostAllocDefault));
    OK(cudaHostAlloc(&mapped, 40, cudaHostAllocMapped));
    CAUGHT(cudaErrorInvalidValue, "is not from cudaHostAlloc",
           cudaHostGetDevicePointer(&device, host.data(), 0), cudaHostGetDevicePointer(&device, mapped, 0));
    CAUGHT(cudaErrorInvalidValue, "flags", cudaHostGetDevicePointer(&device, mapped, 1),
           cudaHostGetDevicePointer(&device, mapped, 0));
    int *p;
    CAUGHT(cudaErrorInvalidValue, "not a valid combination of flags", cudaHostAlloc(&p, 4, 0x100),
           cudaFreeHost(pinned));
    CAUGHT(cudaErrorHostMemoryAlreadyRegistered, "overlap 20000 bytes of registered host memory",
           cudaHostRegister(&host[10], 40, 0), cudaHostRegister(host.data(), 20000, 0));
    CAUGHT(cudaErrorHostMemoryNotRegistered, "is not registered", cudaHostUnregister(host.data()),
           cudaHostUnregister(host.data()));
    CAUGHT(cudaErrorInvalidValue, "0 bytes", cudaHostRegister(host.data(), 0, 0), cudaFreeHost(mapped));
    CAUGHT(cudaErrorInvalidValue, "flags are 0x10", cudaMallocManaged(&p, 4, 0x10),
           cudaMallocManaged(&p, 4, cudaMemAttachHost));
}

// This error has no message: a program may try with less memory.
TEST(more_memory_than_there_is) {
    size_t free, total;
    int *p;
    OK(cudaMemGetInfo(&free, &total));
    cudaError_t error;
    const std::string text = said([&] { return cudaMalloc(&p, total + 1); }, error);
    EXPECT(error == cudaErrorMemoryAllocation && cudaGetLastError() == error && text.empty());
    WORKS(allocate_and_free(1000000));
}

__constant__ float coefficients[16];
__device__ int result;
static int on_the_host;

TEST(symbol_overflow) {
    const float in[32] = {};
    float out[32];
    CAUGHT(cudaErrorInvalidValue, "65 bytes at offset 0 do not fit in a variable of 64",
           cudaMemcpyToSymbol(coefficients, in, 65), cudaMemcpyToSymbol(coefficients, in, 64));
    CAUGHT(cudaErrorInvalidValue, "4 bytes at offset 61 do not fit",
           cudaMemcpyToSymbol(coefficients, in, 4, 61), cudaMemcpyToSymbol(coefficients, in, 4, 60));
    CAUGHT(cudaErrorInvalidValue, "8 bytes at offset 0 do not fit in a variable of 4",
           cudaMemcpyFromSymbol(out, result, 8), cudaMemcpyFromSymbol(out, result, 4));
    CAUGHT(cudaErrorInvalidValue, "at offset 18446744073709551612 do not fit",
           cudaMemcpyFromSymbol(out, result, 8, SIZE_MAX - 3), cudaMemcpyFromSymbol(out, result, 0, 4));
}

TEST(symbol_that_is_none) {
    int value = 1;
    void *address;
    CAUGHT(cudaErrorInvalidSymbol, "is not a __device__ or __constant__ variable",
           cudaMemcpyToSymbol(on_the_host, &value, 4), cudaMemcpyToSymbol(result, &value, 4));
    CAUGHT(cudaErrorInvalidSymbol, "pass the variable itself, not its address",
           cudaMemcpyToSymbol(&result, &value, 4), cudaMemcpyToSymbol(result, &value, 4));
    CAUGHT(cudaErrorInvalidSymbol, "is not a __device__", cudaGetSymbolAddress(&address, on_the_host),
           cudaGetSymbolAddress(&address, coefficients));
}

#ifdef __CU2CPP__
__constant__ const int fixed[2] = {1, 2};
#endif

TEST(symbol_copied_in_the_wrong_direction) {
    int value = 1;
    CAUGHT(cudaErrorInvalidMemcpyDirection, "does not end at a device",
           cudaMemcpyToSymbol(result, &value, 4, 0, cudaMemcpyDeviceToHost),
           cudaMemcpyToSymbol(result, &value, 4, 0, cudaMemcpyHostToDevice));
    CAUGHT(cudaErrorInvalidMemcpyDirection, "does not start at a device",
           cudaMemcpyFromSymbol(&value, result, 4, 0, cudaMemcpyHostToDevice),
           cudaMemcpyFromSymbol(&value, result, 4, 0, cudaMemcpyDefault));
#ifdef __CU2CPP__
    CAUGHT(cudaErrorInvalidSymbol, "the variable is const", cudaMemcpyToSymbol(fixed, &value, 4),
           cudaMemcpyFromSymbol(&value, fixed, 4));
#endif
}

TEST(devices_that_are_not_there) {
    Memory m;
    int count;
    OK(cudaGetDeviceCount(&count));
    const std::string why =
        "there is no device " + std::to_string(count) + ", only 0 to " + std::to_string(count - 1);
    CAUGHT(cudaErrorInvalidDevice, why.c_str(), cudaSetDevice(count), cudaSetDevice(count - 1));
    CAUGHT(cudaErrorInvalidDevice, why.c_str(), cudaMemcpyPeer(m.device, 0, m.other, count, 4),
           cudaMemcpyPeer(m.device, 0, m.other, 0, 4));
}
