// SPDX-License-Identifier: MIT
// For unit tests: memory of the device, streams, graphs, messages, and random numbers, which repeat with the
// environment's TEST_SEED.
#pragma once

#include <cuda_runtime.h>
#include <random>
#include <vector>
#include "../unit.h"

inline std::mt19937 &engine() {
    static std::mt19937 rng(getenv("TEST_SEED") ? (unsigned)atol(getenv("TEST_SEED")) : 1);
    return rng;
}
inline int pick(int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(engine());
}

// f(0), f(1) … f(n - 1)
template <class F> static auto made(size_t n, F f) {
    std::vector<decltype(f(0))> values;
    for (size_t i = 0; i < n; i++)
        values.push_back(f((int)i));
    return values;
}

// An array in device memory
template <class T> struct Device {
    T *data;
    size_t n;
    explicit Device(const std::vector<T> &from) : n(from.size()) {
        OK(cudaMalloc(&data, n * sizeof(T) + 1));
        OK(cudaMemcpy(data, from.data(), n * sizeof(T), cudaMemcpyHostToDevice));
    }
    explicit Device(size_t count) : n(count) { // zeros
        OK(cudaMalloc(&data, n * sizeof(T) + 1));
        OK(cudaMemset(data, 0, n * sizeof(T)));
    }
    ~Device() { OK(cudaFree(data)); }
    Device(const Device &) = delete;
    // The values, after the kernels that have been launched
    std::vector<T> host() const {
        std::vector<T> copy(n);
        OK(cudaGetLastError());
        OK(cudaMemcpy(copy.data(), data, n * sizeof(T), cudaMemcpyDeviceToHost));
        return copy;
    }
};

// What a launch leaves in `out`, an array in device memory of n zeros, or of these values:
// EXPECT(WRITTEN(int, 64, kernel<<<1, 64>>>(out, 5)) == made(64, f))
#define WRITTEN(T, n, ...)                                                                                   \
    [&] {                                                                                                    \
        const Device<T> unit_array(n);                                                                       \
        T *const out = unit_array.data;                                                                      \
        __VA_ARGS__;                                                                                         \
        return unit_array.host();                                                                            \
    }()

// Whether these are the values expected; names the first one that is not.
template <class T> static bool equal(const std::vector<T> &got, const std::vector<T> &expected) {
    size_t i = 0;
    while (i < expected.size() && i < got.size() && got[i] == expected[i])
        i++;
    if (i < expected.size() && i < got.size())
        fprintf(stderr, "  value %zu is %.17g, not %.17g\n", i, (double)got[i], (double)expected[i]);
    return got.size() == expected.size() && i == got.size();
}

// Whether a block of the kernel sets a number for each of its threads to 1: EXPECT(good(kernel, 32, x, y))
template <class... A, class... B> static bool good(void (*kernel)(int *, A...), unsigned threads, B... more) {
    const Device<int> all(threads);
    kernel<<<1, threads>>>(all.data, (A)more...);
    return all.host() == std::vector<int>(threads, 1);
}

// Checks that a call's error is also the last error, clears it, and returns it.
inline cudaError_t last(cudaError_t error) {
    EXPECT(cudaGetLastError() == error);
    return error;
}

// One value of device memory
template <class T> static T value_at(const T *p) {
    return STORED(T, cudaMemcpy(&it, p, sizeof it, cudaMemcpyDeviceToHost));
}

// Zeros in managed memory
template <class T> static T *managed(size_t count = 1) {
    T *memory;
    OK(cudaMallocManaged(&memory, count * sizeof(T)));
    memset((void *)memory, 0, count * sizeof(T));
    return memory;
}

inline int device_count() {
    return STORED(int, cudaGetDeviceCount(&it));
}
inline cudaStream_t new_stream(unsigned flags = cudaStreamDefault) {
    return STORED(cudaStream_t, cudaStreamCreateWithFlags(&it, flags));
}
inline cudaEvent_t new_event(unsigned flags = cudaEventDefault) {
    return STORED(cudaEvent_t, cudaEventCreateWithFlags(&it, flags));
}

// An array with these values
template <class T>
static cudaArray_t array_of(const std::vector<T> &values, size_t width, size_t height, unsigned flags = 0,
                            cudaChannelFormatDesc format = cudaCreateChannelDesc<T>()) {
    const auto array = STORED(cudaArray_t, cudaMallocArray(&it, &format, width, height, flags));
    const size_t row = values.size() * sizeof(T) / height;
    OK(cudaMemcpy2DToArray(array, 0, 0, values.data(), row, row, height, cudaMemcpyHostToDevice));
    return array;
}
// The parameters of a copy between an array and host memory
template <class T> static cudaMemcpy3DParms box(const std::vector<T> &host, size_t w, size_t h, size_t d) {
    EXPECT(host.size() == w * h * d);
    cudaMemcpy3DParms p = {};
    p.srcPtr = p.dstPtr = make_cudaPitchedPtr((void *)host.data(), w * sizeof(T), w, h);
    p.extent = make_cudaExtent(w, h, d);
    return p;
}
template <class T>
static void copy_in(cudaArray_t array, const std::vector<T> &host, size_t w, size_t h, size_t d) {
    cudaMemcpy3DParms p = box(host, w, h, d);
    p.dstPtr = {};
    p.dstArray = array;
    p.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&p));
}
inline cudaResourceDesc of_array(cudaArray_t array) {
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeArray;
    r.res.array.array = array;
    return r;
}
inline cudaSurfaceObject_t surface_of(cudaArray_t array) {
    const cudaResourceDesc resource = of_array(array);
    return STORED(cudaSurfaceObject_t, cudaCreateSurfaceObject(&it, &resource));
}

// A stream, and a graph of what `work` puts into it
struct Captured {
    cudaStream_t stream = new_stream();
    cudaGraphExec_t runs;

    template <class Work> void capture(Work work) {
        OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        work();
        const auto graph = STORED(cudaGraph_t, cudaStreamEndCapture(stream, &it));
        OK(cudaGraphInstantiate(&runs, graph, 0));
        OK(cudaGraphDestroy(graph));
    }
    void run() const {
        OK(cudaGraphLaunch(runs, stream));
        OK(cudaStreamSynchronize(stream));
    }
};

// ---- tests of faults: what calls and programs write to stderr ----

// Executes a body with settings such as "CUDA_CPU_CHECK=1" in a child process, which waits for what it has
// launched, and ends with status 0 or 1.
template <class Body> static unit_result under(std::initializer_list<const char *> settings, Body body) {
    return in_child([=] {
        for (const char *setting : settings)
            putenv(const_cast<char *>(setting));
        body();
        exit(cudaDeviceSynchronize() == cudaSuccess && !unit_failures ? EXIT_SUCCESS : EXIT_FAILURE);
    });
}

// The call's output on stderr
template <class Call> static std::string said(Call call, cudaError_t &error) {
    FILE *file = tmpfile();
    fflush(stderr);
    const int before = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    error = call();
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    char text[4096];
    unit_slurp(file, text, sizeof text);
    return text;
}

// The call gives this error, cudaGetLastError() then returns the same, and on the CPU back end one line says
// why. A call that succeeds says nothing.
template <class Call> static bool reports(cudaError_t error, const char *why, Call call) {
    cudaError_t got;
    const std::string text = said(call, got);
    bool ok = got == error && cudaGetLastError() == error && cudaGetLastError() == cudaSuccess;
    if (error == cudaSuccess)
        ok = ok && text.empty();
    else
        ok = ok && text.find("cuda on the CPU: cuda") == 0 && text.find(why) != std::string::npos &&
             text.find('\n') == text.size() - 1;
    if (!ok)
        fprintf(stderr, "%s, expected %s (%s)\n%s", cudaGetErrorName(got), cudaGetErrorName(error), why,
                text.c_str());
    return ok;
}

#define FAILS(error, why, call) EXPECT(reports(error, why, [&] { return call; }))
#define INVALID(why, call)      FAILS(cudaErrorInvalidValue, why, call)
#define WORKS(call)             FAILS(cudaSuccess, "", call)

// A program that ended with status 0 and said nothing
[[maybe_unused]] static void ends_well(const unit_result &result) {
    if (!EXPECT(result.status == 0 && result.err[0] == '\0'))
        fprintf(stderr, "  status %d: %s%s\n", result.status, result.out, result.err);
}
