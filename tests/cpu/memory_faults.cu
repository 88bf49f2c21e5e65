// SPDX-License-Identifier: MIT
// Wrong uses of memory, copies and symbols. Each gives the error that CUDA gives, and on the CPU
// back end also a line that says why. A correct twin of each gives no error and prints nothing.
#include <cuda_runtime.h>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>
#include "../unit.h"

// Runs the body with stderr redirected to a file, and returns what it printed.
template <class Body> static std::string said(Body body) {
    FILE *file = tmpfile();
    fflush(stderr);
    const int before = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    body();
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    char text[4096];
    unit_slurp(file, text, sizeof text);
    return text;
}

// `wrong` must return `error` and say `why` in one line; `right` must return cudaSuccess and say
// nothing.
template <class Wrong, class Right>
static bool caught(cudaError_t error, const char *why, Wrong wrong, Right right) {
    cudaError_t got = cudaSuccess;
    std::string text = said([&] { got = right(); });
    bool ok = got == cudaSuccess && text.empty();
    if (!ok)
        fprintf(stderr, "the twin: %s\n%s", cudaGetErrorName(got), text.c_str());
    text = said([&] { got = wrong(); });
    bool told = got == error && cudaGetLastError() == error && cudaGetLastError() == cudaSuccess;
#ifdef __CU2CPP__
    told = told && text.find("cuda on the CPU: cuda") == 0 && text.find(why) != std::string::npos &&
           text.find('\n') == text.size() - 1;
#else
    (void)why;
#endif
    if (!told)
        fprintf(stderr, "the fault: %s, expected %s (%s)\n%s", cudaGetErrorName(got), cudaGetErrorName(error),
                why, text.c_str());
    return ok && told;
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
    ~Memory() {
        OK(cudaFree(device));
        OK(cudaFree(other));
        OK(cudaFreeHost(pinned));
        OK(cudaFree(managed));
    }
};

TEST(copy_in_the_wrong_direction) {
    Memory m;
    int *h = m.host.data(), *d = m.device;
    EXPECT(caught(
        cudaErrorInvalidValue, "the destination of cudaMemcpyDeviceToHost",
        [&] { return cudaMemcpy(d, h, 400, cudaMemcpyDeviceToHost); },
        [&] { return cudaMemcpy(d, h, 400, cudaMemcpyHostToDevice); }));
    EXPECT(caught(
        cudaErrorInvalidValue, "the destination of cudaMemcpyHostToDevice",
        [&] { return cudaMemcpy(h, d, 400, cudaMemcpyHostToDevice); },
        [&] { return cudaMemcpy(h, d, 400, cudaMemcpyDeviceToHost); }));
    EXPECT(caught(
        cudaErrorInvalidMemcpyDirection, "there is no direction 5",
        [&] { return cudaMemcpy(h, d, 400, (cudaMemcpyKind)5); },
        [&] { return cudaMemcpy(h, d, 400, cudaMemcpyDefault); }));
}

TEST(copy_past_the_end) {
    Memory m;
    int *h = m.host.data(), *d = m.device;
    EXPECT(caught(
        cudaErrorInvalidValue,
        "needs 401 bytes at byte 0, but is 400 bytes of device 0, allocated at "
        "memory_faults.cu:",
        [&] { return cudaMemcpy(d, h, 401, cudaMemcpyHostToDevice); },
        [&] { return cudaMemcpy(d, h, 400, cudaMemcpyHostToDevice); }));
    EXPECT(caught(
        cudaErrorInvalidValue, "needs 4 bytes at byte 397",
        [&] { return cudaMemcpy(h, (char *)d + 397, 4, cudaMemcpyDeviceToHost); },
        [&] { return cudaMemcpy(h, (char *)d + 396, 4, cudaMemcpyDeviceToHost); }));
    EXPECT(caught(
        cudaErrorInvalidValue, "the source of cudaMemcpyDeviceToDevice needs 400 bytes at byte 4",
        [&] { return cudaMemcpy(m.other, d + 1, 400, cudaMemcpyDeviceToDevice); },
        [&] { return cudaMemcpy(m.other, d, 400, cudaMemcpyDeviceToDevice); }));
    EXPECT(caught(
        cudaErrorInvalidValue, "needs 401 bytes at byte 0", [&] { return cudaMemset(d, 0, 401); },
        [&] { return cudaMemset(d, 0, 400); }));
}

TEST(copy_of_rows_past_the_end_or_the_pitch) {
    Memory m;
    int *h = m.host.data(), *d = m.device;
    EXPECT(caught(
        cudaErrorInvalidPitchValue, "rows of 50 bytes do not fit pitches of 80 (destination) and 40",
        [&] { return cudaMemcpy2D(h, 80, d, 40, 50, 2, cudaMemcpyDeviceToHost); },
        [&] { return cudaMemcpy2D(h, 80, d, 50, 50, 2, cudaMemcpyDeviceToHost); }));
    EXPECT(caught(
        cudaErrorInvalidPitchValue, "rows of 50 bytes do not fit pitches of 40",
        [&] { return cudaMemcpy2D(d, 40, h, 80, 50, 2, cudaMemcpyHostToDevice); },
        [&] { return cudaMemcpy2D(d, 40, h, 80, 40, 2, cudaMemcpyHostToDevice); }));
    EXPECT(caught(
        cudaErrorInvalidValue, "needs 440 bytes",
        [&] { return cudaMemcpy2D(d, 40, h, 40, 40, 11, cudaMemcpyHostToDevice); },
        [&] { return cudaMemcpy2D(d, 40, h, 40, 40, 10, cudaMemcpyHostToDevice); }));
}

TEST(host_memory_where_device_memory_belongs) {
    Memory m;
    EXPECT(caught(
        cudaErrorInvalidValue, "is not device memory", [&] { return cudaMemset(m.host.data(), 0, 4); },
        [&] { return cudaMemset(m.managed, 0, 4); }));
    EXPECT(caught(
        cudaErrorInvalidValue, "was not allocated by cudaMalloc", [&] { return cudaFree(m.host.data()); },
        [&] {
            int *p;
            const cudaError_t error = cudaMalloc(&p, 4);
            return error ? error : cudaFree(p);
        }));
    EXPECT(caught(
        cudaErrorInvalidValue,
        "it is 400 bytes of device 0, allocated at memory_faults.cu:", [&] { return cudaFreeHost(m.device); },
        [&] {
            int *p;
            const cudaError_t error = cudaMallocHost(&p, 4);
            return error ? error : cudaFreeHost(p);
        }));
    EXPECT(caught(
        cudaErrorInvalidValue, "it is 400 bytes of pinned host memory", [&] { return cudaFree(m.pinned); },
        [&] { return cudaFree(NULL); }));
}

TEST(null_pointers) {
    Memory m;
    EXPECT(caught(
        cudaErrorInvalidValue, "the destination of cudaMemcpyHostToDevice is NULL",
        [&] { return cudaMemcpy(NULL, m.host.data(), 4, cudaMemcpyHostToDevice); },
        [&] { return cudaMemcpy(m.device, m.host.data(), 4, cudaMemcpyHostToDevice); }));
    EXPECT(caught(
        cudaErrorInvalidValue, "is NULL", [&] { return cudaMemset(NULL, 0, 4); },
        [&] { return cudaMemset(m.device, 0, 4); }));
    EXPECT(caught(
        cudaErrorInvalidValue, "pointer is NULL", [] { return cudaMalloc((void **)NULL, 4); },
        [] { return cudaFree(NULL); }));
}

TEST(free_twice) {
    int *p, *q;
    OK(cudaMalloc(&p, 40));
    OK(cudaMallocHost(&q, 40));
    EXPECT(caught(
        cudaErrorInvalidValue, "freed already: 40 bytes of device 0, allocated at memory_faults.cu:",
        [&] { return cudaFree(p); }, [&] { return cudaFree(p); }));
    EXPECT(caught(
        cudaErrorInvalidValue, "freed already: 40 bytes of pinned host memory",
        [&] { return cudaFreeHost(q); }, [&] { return cudaFreeHost(q); }));
}

TEST(use_after_free) {
    int *p, value = 1;
    OK(cudaMalloc(&p, 4));
    EXPECT(caught(
        cudaErrorInvalidValue, "and was freed already: 4 bytes of device 0",
        [&] { return cudaMemcpy(p, &value, 4, cudaMemcpyHostToDevice); },
        [&] {
            const cudaError_t error = cudaMemcpy(p, &value, 4, cudaMemcpyHostToDevice);
            return error ? error : cudaFree(p);
        }));
}

TEST(free_the_middle) {
    int *p;
    OK(cudaMalloc(&p, 40));
    EXPECT(caught(
        cudaErrorInvalidValue, "is 4 bytes into 40 bytes of device 0", [&] { return cudaFree(p + 1); },
        [&] { return cudaMemset(p + 1, 0, 36); }));
    OK(cudaFree(p));
}

TEST(pinned_and_registered_memory_used_wrongly) {
    int *pinned, *mapped, *device;
    std::vector<int> host(5000);
    OK(cudaHostAlloc(&pinned, 40, cudaHostAllocDefault));
    OK(cudaHostAlloc(&mapped, 40, cudaHostAllocMapped));
    EXPECT(caught(
        cudaErrorInvalidValue, "is not from cudaHostAlloc",
        [&] { return cudaHostGetDevicePointer(&device, host.data(), 0); },
        [&] { return cudaHostGetDevicePointer(&device, mapped, 0); }));
    EXPECT(caught(
        cudaErrorInvalidValue, "flags", [&] { return cudaHostGetDevicePointer(&device, mapped, 1); },
        [&] { return cudaHostGetDevicePointer(&device, mapped, 0); }));
    int *p;
    EXPECT(caught(
        cudaErrorInvalidValue, "not a valid combination of flags",
        [&] { return cudaHostAlloc(&p, 4, 0x100); }, [&] { return cudaFreeHost(pinned); }));
    EXPECT(caught(
        cudaErrorHostMemoryAlreadyRegistered, "overlap 20000 bytes of registered host memory",
        [&] { return cudaHostRegister(&host[10], 40, 0); },
        [&] { return cudaHostRegister(host.data(), 20000, 0); }));
    EXPECT(caught(
        cudaErrorHostMemoryNotRegistered, "is not registered",
        [&] { return cudaHostUnregister(host.data()); }, [&] { return cudaHostUnregister(host.data()); }));
    EXPECT(caught(
        cudaErrorInvalidValue, "0 bytes", [&] { return cudaHostRegister(host.data(), 0, 0); },
        [&] { return cudaFreeHost(mapped); }));
}

TEST(managed_memory_asked_for_wrongly) {
    int *p;
    EXPECT(caught(
        cudaErrorInvalidValue, "flags are 0x10", [&] { return cudaMallocManaged(&p, 4, 0x10); },
        [&] { return cudaMallocManaged(&p, 4, cudaMemAttachHost); }));
    OK(cudaFree(p));
}

TEST(more_memory_than_there_is) {
    size_t free, total;
    int *p;
    OK(cudaMemGetInfo(&free, &total));
    const std::string figures = std::to_string(total + 1) + " bytes requested, ";
    EXPECT(caught(
        cudaErrorMemoryAllocation,
        (figures + std::to_string(total) + " of " + std::to_string(total) + " are free").c_str(),
        [&] { return cudaMalloc(&p, total + 1); },
        [&] {
            const cudaError_t error = cudaMalloc(&p, 1000000);
            return error ? error : cudaFree(p);
        }));
}

__constant__ float coefficients[16];
__device__ int result;
static int on_the_host;

TEST(symbol_overflow) {
    const float in[32] = {};
    float out[32];
    EXPECT(caught(
        cudaErrorInvalidValue, "65 bytes at offset 0 do not fit in a variable of 64",
        [&] { return cudaMemcpyToSymbol(coefficients, in, 65); },
        [&] { return cudaMemcpyToSymbol(coefficients, in, 64); }));
    EXPECT(caught(
        cudaErrorInvalidValue, "4 bytes at offset 61 do not fit",
        [&] { return cudaMemcpyToSymbol(coefficients, in, 4, 61); },
        [&] { return cudaMemcpyToSymbol(coefficients, in, 4, 60); }));
    EXPECT(caught(
        cudaErrorInvalidValue, "8 bytes at offset 0 do not fit in a variable of 4",
        [&] { return cudaMemcpyFromSymbol(out, result, 8); },
        [&] { return cudaMemcpyFromSymbol(out, result, 4); }));
    EXPECT(caught(
        cudaErrorInvalidValue, "at offset 18446744073709551612 do not fit",
        [&] { return cudaMemcpyFromSymbol(out, result, 8, SIZE_MAX - 3); },
        [&] { return cudaMemcpyFromSymbol(out, result, 0, 4); }));
}

TEST(symbol_that_is_none) {
    int value = 1;
    void *address;
    EXPECT(caught(
        cudaErrorInvalidSymbol, "is not a __device__ or __constant__ variable",
        [&] { return cudaMemcpyToSymbol(on_the_host, &value, 4); },
        [&] { return cudaMemcpyToSymbol(result, &value, 4); }));
    EXPECT(caught(
        cudaErrorInvalidSymbol, "pass the variable itself, not its address",
        [&] { return cudaMemcpyToSymbol(&result, &value, 4); },
        [&] { return cudaMemcpyToSymbol(result, &value, 4); }));
    EXPECT(caught(
        cudaErrorInvalidSymbol, "is not a __device__",
        [&] { return cudaGetSymbolAddress(&address, on_the_host); },
        [&] { return cudaGetSymbolAddress(&address, coefficients); }));
}

#ifdef __CU2CPP__
__constant__ const int fixed[2] = {1, 2};
#endif

TEST(symbol_copied_in_the_wrong_direction) {
    int value = 1;
    EXPECT(caught(
        cudaErrorInvalidMemcpyDirection, "does not end at a device",
        [&] { return cudaMemcpyToSymbol(result, &value, 4, 0, cudaMemcpyDeviceToHost); },
        [&] { return cudaMemcpyToSymbol(result, &value, 4, 0, cudaMemcpyHostToDevice); }));
    EXPECT(caught(
        cudaErrorInvalidMemcpyDirection, "does not start at a device",
        [&] { return cudaMemcpyFromSymbol(&value, result, 4, 0, cudaMemcpyHostToDevice); },
        [&] { return cudaMemcpyFromSymbol(&value, result, 4, 0, cudaMemcpyDefault); }));
#ifdef __CU2CPP__
    EXPECT(caught(
        cudaErrorInvalidSymbol, "the variable is const", [&] { return cudaMemcpyToSymbol(fixed, &value, 4); },
        [&] { return cudaMemcpyFromSymbol(&value, fixed, 4); }));
#endif
}

TEST(devices_that_are_not_there) {
    Memory m;
    int count;
    OK(cudaGetDeviceCount(&count));
    const std::string why =
        "there is no device " + std::to_string(count) + ", only 0 to " + std::to_string(count - 1);
    EXPECT(caught(
        cudaErrorInvalidDevice, why.c_str(), [&] { return cudaSetDevice(count); },
        [&] { return cudaSetDevice(count - 1); }));
    EXPECT(caught(
        cudaErrorInvalidDevice, why.c_str(), [&] { return cudaMemcpyPeer(m.device, 0, m.other, count, 4); },
        [&] { return cudaMemcpyPeer(m.device, 0, m.other, 0, 4); }));
}
