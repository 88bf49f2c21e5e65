// SPDX-License-Identifier: MIT
// Launches: which threads run, with which indices and arguments, and which launches are refused; launches by
// address; errors. The forms of a launch are in constructs/launches.cu.
#include "device.h"

__global__ void hello() {
    printf("%u.%u\n", blockIdx.x, threadIdx.x);
}

TEST(kernels_print) { // first, because it forks, which needs a process without threads
    const unit_result result = in_child([] {
        hello<<<2, 3>>>();
        OK(cudaDeviceSynchronize());
    });
    EXPECT(result.status == 0);
    for (const char *place : {"0.0\n", "0.1\n", "0.2\n", "1.0\n", "1.1\n", "1.2\n"})
        EXPECT(strstr(result.out, place) != NULL);
}

// printf returns the number of arguments, and prints a NaN without its sign.
template <class... T> __device__ int print_all(const char *format, T... values) {
    return ::printf(format, values...);
}
__global__ void printed_values(int *out, const char *none) {
    const double nan = -__longlong_as_double(0x7ff8000000000000ll + threadIdx.x);
    out[0] = printf("abc\n"), out[1] = std::printf("%s %d\n", "x", max(1, 2)),
    out[2] = print_all("%d %d %d\n", 1, 2, 3);
    out[3] = printf("%f %g\n", nan, (double)-(float)nan);
#ifdef __SANITIZE_ADDRESS__
    out[4] = none ? 0 : -1; // UndefinedBehaviorSanitizer refuses a null format
#else
#pragma GCC diagnostic ignored "-Wformat-security"
    out[4] = printf(none);
#endif
}

TEST(kernels_print_values) { // forks
    const unit_result result = in_child([] {
        EXPECT((WRITTEN(int, 5, printed_values<<<1, 1>>>(out, nullptr)) == std::vector<int>{0, 2, 3, 2, -1}));
    });
    EXPECT(result.status == 0 && strcmp(result.out, "abc\nx 2\n1 2 3\nnan nan\n") == 0);
}

__global__ void visit(unsigned *visits) {
    size_t block = blockIdx.x + (size_t)gridDim.x * (blockIdx.y + (size_t)gridDim.y * blockIdx.z);
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    bool sane = threadIdx.x < blockDim.x && threadIdx.y < blockDim.y && threadIdx.z < blockDim.z;
    atomicAdd(&visits[block * blockDim.x * blockDim.y * blockDim.z + thread], sane ? 1u : 100u);
}

TEST(every_thread_runs_once) {
    const dim3 shapes[][2] = {{1, 1},
                              {7, 33},
                              {dim3(3, 5, 2), dim3(4, 3, 5)},
                              {dim3(1, 1, 9), dim3(1, 1, 64)},
                              {dim3(1, 600), dim3(1, 1024)},
                              {5000, 1}};
    for (auto &shape : shapes) {
        const dim3 g = shape[0], b = shape[1];
        const size_t n = (size_t)g.x * g.y * g.z * b.x * b.y * b.z;
        const cudaStream_t stream = g.x % 2 ? cudaStreamLegacy : cudaStreamPerThread;
        EXPECT(WRITTEN(unsigned, n, visit<<<g, b, 0, stream>>>(out)) == std::vector<unsigned>(n, 1));
    }
}

__global__ void plain(int *out) {
    *out = 1;
}
template <class T> __global__ void __launch_bounds__(16 * sizeof(T)) bounded(T *out) {
    *out = 1;
}

// Whether a launch gives this error, which stays until it is fetched, and the kernel runs only without one.
static bool gives(cudaError_t error, dim3 grid, dim3 block, size_t shared = 0,
                  void (*kernel)(int *) = plain) {
    Device<int> out(1);
    kernel<<<grid, block, shared>>>(out.data);
    const cudaError_t peeked = cudaPeekAtLastError();
    OK(cudaDeviceSynchronize());
    return peeked == error && cudaGetLastError() == error && out.host()[0] == (error == cudaSuccess);
}

TEST(limits_of_a_launch) {
#ifdef __CU2CPP__ // as the manual says
    const cudaError_t bad = cudaErrorInvalidConfiguration;
#else
    const cudaError_t bad = cudaErrorInvalidValue;
#endif
    EXPECT(gives(bad, 1, 1025) && gives(bad, 1, dim3(32, 33)) && gives(bad, 1, dim3(1, 1, 65)));
    EXPECT(gives(bad, 0, 1) && gives(bad, 1, 0));
    EXPECT(gives(bad, dim3(1, 65536), 1) && gives(bad, dim3(1, 1, 65536), 1) && gives(bad, 0x80000000u, 1));
    EXPECT(gives(cudaErrorInvalidValue, 1, 1, (48 << 10) + 1));
    EXPECT(gives(cudaSuccess, 1, dim3(32, 32), 48 << 10)); // the correct twin, at the limits
    EXPECT(gives(cudaErrorInvalidValue, 1, dim3(5, 13), 0, bounded<int>));
    EXPECT(gives(cudaSuccess, 1, dim3(4, 16), 0, bounded<int>));
}

__managed__ float seen[16];

__device__ void say(int i, float value) {
    seen[i] = value;
}

static bool saw(float a, float b = 0, float c = 0) {
    OK(cudaDeviceSynchronize());
    const bool equal = seen[0] == a && seen[1] == b && seen[2] == c;
    if (!equal)
        fprintf(stderr, "saw %g %g %g\n", seen[0], seen[1], seen[2]);
    memset(seen, 0, sizeof seen);
    return cudaGetLastError() == cudaSuccess && equal;
}

struct Pair {
    int a, b;
};

template <class T> __global__ void __launch_bounds__(64 * sizeof(T), 2) declared_first(T value);
template <class T> __global__ void __launch_bounds__(64 * sizeof(T), 2) declared_first(T value) {
    if constexpr (sizeof(T) == 4)
        say(0, value);
    else
        value.never_compiled();
}
template __global__ void declared_first<int>(int);

namespace outer {
static __global__ void internal(int i) {
    say(0, 10 * i);
}
} // namespace outer
extern "C" __global__ void with_c_linkage(int i) {
    say(0, 100 * i);
}

// ---- arguments with constructors and destructors ----

static int copies, destructions;

struct Counted {
    int value, *memory;
    explicit Counted(int v) : value(v), memory(nullptr) {}
    Counted(const Counted &other) : value(other.value), memory(other.memory) { ++copies; }
    ~Counted() { ++destructions; }
};
__global__ void take(Counted c, const Counted d) {
    c.value += 1; // each thread has its own
    atomicAdd(&seen[0], (float)c.value);
    atomicAdd(&seen[1], (float)d.value);
}

TEST(a_launch_copies_an_argument_once) {
    {
        const Counted c(5);
        copies = destructions = 0;
        take<<<2, 8>>>(c, Counted(3));
        EXPECT(copies == 1 && destructions == 2);
        EXPECT(saw(16 * 6, 16 * 3));
    }
    EXPECT(destructions == 3);
}

// ---- launches by address ----

__global__ void with_shared(int *out, Pair pair, int n) {
    __shared__ int values[100];
    extern __shared__ int dynamic[];
    values[threadIdx.x] = dynamic[threadIdx.x] = n;
    out[threadIdx.x] = values[threadIdx.x] + pair.b;
}
static __global__ __launch_bounds__(128) void with_bounds(int i) {
    say(0, i);
}

TEST(launches_by_address) {
    int *out = managed<int>(2), value = 4, n = 30;
    Pair pair = {1, 2};
    void *one[] = {&value}, *three[] = {&out, &pair, &n};
    const void *variable = (const void *)with_shared;
    OK(cudaLaunchKernel((void *)outer::internal, 1, 1, one));
    EXPECT(saw(40));
    OK(cudaLaunchKernel((const void *)with_c_linkage, dim3(1), dim3(1), one, 0, 0));
    EXPECT(saw(400));
    OK(cudaLaunchCooperativeKernel((void *)declared_first<int>, 1, 1, one));
    EXPECT(saw(4));
    OK(cudaLaunchKernel(variable, 1, 2, three, 64));
    EXPECT(value_at(out) == 32 && value_at(out + 1) == 32);
    Counted c(5), d(6);
    void *two[] = {&c, &d};
    copies = destructions = 0;
    EXPECT(cudaLaunchKernel(take, 1, 1, two) == cudaSuccess && copies == 0 && destructions == 0);
    EXPECT(saw(6, 6));
    EXPECT(cudaLaunchKernel((void *)with_c_linkage, 1, 1, nullptr) == cudaErrorInvalidValue);
    EXPECT(cudaLaunchKernel((void *)nullptr, 1, 1, one) == cudaErrorInvalidDeviceFunction);
    cudaGetLastError();
}

TEST(attributes_by_address) {
    cudaFuncAttributes a;
    OK(cudaFuncGetAttributes(&a, (void *)with_shared));
    EXPECT(a.sharedSizeBytes == 400 && a.maxThreadsPerBlock == 1024 && a.maxDynamicSharedSizeBytes == 48752);
    EXPECT(cudaFuncGetAttributes(&a, with_bounds) == cudaSuccess && a.maxThreadsPerBlock == 128);
    EXPECT(cudaFuncGetAttributes(&a, declared_first<int>) == cudaSuccess && a.maxThreadsPerBlock == 256);
    // The limit of dynamic shared memory belongs to one kernel. Its static shared memory is in addition.
    int *const out = managed<int>();
    with_shared<<<1, 1, 60000>>>(out, {}, 1);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    EXPECT(cudaFuncSetAttribute(with_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20) ==
           cudaErrorInvalidValue);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    OK(cudaFuncSetSharedMemConfig(with_shared, cudaSharedMemBankSizeEightByte));
    OK(cudaFuncSetAttribute((void *)with_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000));
    EXPECT(cudaFuncGetAttributes(&a, with_shared) == cudaSuccess && a.maxDynamicSharedSizeBytes == 60000);
    EXPECT(cudaFuncGetAttributes(&a, with_bounds) == cudaSuccess && a.maxDynamicSharedSizeBytes == 49152);
    with_shared<<<1, 1, 60000>>>(out, {}, 1);
    OK(cudaGetLastError());
    with_bounds<<<1, 1, 60000>>>(1);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    with_shared<<<1, 1, 60001>>>(out, {}, 1);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
}

// ---- errors: names, texts, and the last error ----

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
    OK(cudaGetLastError());
    EXPECT(cudaSetDevice(1 << 20) == cudaErrorInvalidDevice);
    STORED(int, cudaGetDevice(&it)); // a successful call does not reset the last error
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
