// SPDX-License-Identifier: MIT
// Arguments of kernels that have constructors and destructors, and launches by address. The forms of a launch
// are in constructs/launches.cu.
#include "device.h"

__managed__ float seen[16];

__device__ void say(int i, float value) {
    seen[i] = value;
}

static bool saw(float a, float b = 0, float c = 0) {
    const bool equal = seen[0] == a && seen[1] == b && seen[2] == c;
    if (!equal)
        fprintf(stderr, "saw %g %g %g\n", seen[0], seen[1], seen[2]);
    memset(seen, 0, sizeof seen);
    return cudaGetLastError() == cudaSuccess && equal;
}

__global__ void called(int) {}
static void not_global(int) {}
TEST(only_a_kernel_is_launched_and_only_by_a_launch) { // first, because it forks
    ends_with(in_child([] { not_global<<<1, 1>>>(1); }), {"not_global is not __global__"});
    void (*const pointer)(int) = called;
    pointer(1);
    EXPECT(cudaGetLastError() == cudaErrorMissingConfiguration);
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

// ---- constructors and destructors ----

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
static __global__ __launch_bounds__(128) void bounded(int i) {
    say(0, i);
}
static int no_kernel() {
    return 1;
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
    EXPECT(cudaLaunchKernel((void *)&value, 1, 1, one) == cudaErrorInvalidDeviceFunction);
    EXPECT(cudaLaunchKernel((void *)nullptr, 1, 1, one) == cudaErrorInvalidDeviceFunction);
    EXPECT(cudaLaunchKernel((void *)puts, 1, 1, one) == cudaErrorInvalidDeviceFunction);
    EXPECT(cudaLaunchKernel((void *)no_kernel, 1, 1, one) == cudaErrorInvalidDeviceFunction);
    EXPECT(cudaLaunchKernel((char *)bounded + 1, 1, 1, one) == cudaErrorInvalidDeviceFunction);
    cudaGetLastError();
}

TEST(attributes_by_address) {
    cudaFuncAttributes a;
    OK(cudaFuncGetAttributes(&a, (void *)with_shared));
    EXPECT(a.sharedSizeBytes == 400 && a.maxThreadsPerBlock == 1024 && a.maxDynamicSharedSizeBytes == 48752);
    EXPECT(cudaFuncGetAttributes(&a, bounded) == cudaSuccess && a.maxThreadsPerBlock == 128);
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
    EXPECT(cudaFuncGetAttributes(&a, bounded) == cudaSuccess && a.maxDynamicSharedSizeBytes == 49152);
    with_shared<<<1, 1, 60000>>>(out, {}, 1);
    OK(cudaGetLastError());
    bounded<<<1, 1, 60000>>>(1);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    with_shared<<<1, 1, 60001>>>(out, {}, 1);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
}
