// SPDX-License-Identifier: MIT
// Memory: allocation, copies, fills, pools, hints, and launches with a configuration. Errors are tested in
// memory_faults.cu.
#include <atomic>
#include <cstdint>
#include "device.h"

static std::vector<unsigned char> counted(size_t n) {
    return made(n, [](int i) { return (unsigned char)(i * 7 + 1); });
}

#ifdef __CU2CPP__
// First, because its children need a runtime that has not been used.
__global__ void read_fresh_shared(int *seen) {
    __shared__ int fresh;
    extern __shared__ int dynamic[];
    atomicOr(seen, fresh | dynamic[1]);
    fresh = dynamic[1] = INT32_MIN; // which the next block must not see
}

// The value of all ints, as far as three of them show it
static int filled(const int *p, size_t n) {
    return p[0] == p[n / 2] && p[0] == p[n - 1] ? p[0] : 7;
}

static void print_fresh() {
    const size_t n = (18 << 20) + 3; // of more than one huge page
    int *p, *q, *r, *const seen = managed<int>();
    OK(cudaMalloc(&p, n * sizeof(int)));
    OK(cudaMallocManaged(&q, 1000 * sizeof(int)));
    OK(cudaMallocHost(&r, 1000 * sizeof(int)));
    read_fresh_shared<<<100, 1, 2 * sizeof(int)>>>(seen);
    OK(cudaDeviceSynchronize());
    printf("%d %d %d %d", filled(p, n), filled(q, 1000), filled(r, 1000), *seen);
}

TEST(fresh_memory_holds_what_the_environment_says) {
    const struct {
        const char *setting, *out, *err;
        int status;
    } runs[] = {{"CUDA_CPU_FILL=huge", "2139062143 2139062143 2139062143 2139062143", "", 0},
                {"CUDA_CPU_FILL=nan", "-1 -1 -1 -1", "", 0}, // not a number
                {"CUDA_CPU_FILL=zero", "0 0 0 0", "", 0},
                {"CUDA_CPU_FILL=0", "", "cuda on the CPU: CUDA_CPU_FILL=0: must be huge, nan or zero\n", 1}};
    if (getenv("CUDA_CPU_CHECK")) // this case reads device memory
        return;
    for (const auto &run : runs) {
        const unit_result r = under({run.setting, "CUDA_CPU_CHECK=0"}, print_fresh);
        EXPECT(r.status == run.status && strcmp(r.out, run.out) == 0 && strcmp(r.err, run.err) == 0);
    }
}

static void print_used() {
    size_t free, less, total;
    int *p;
    OK(cudaMemGetInfo(&free, &total));
    OK(cudaMalloc(&p, 64 << 20));
    OK(cudaMemGetInfo(&less, &total));
    printf("%zu", free == total ? (free - less) >> 20 : 64); // the machine itself may have less
}

TEST(used_memory_is_not_free) { // this device has less memory than most machines have available
    EXPECT(strcmp(under({"CUDA_CPU_PROPERTIES=unequal"}, print_used).out, "64") == 0);
}

#endif

TEST(copies_there_and_back) {
    for (size_t n : {1, 3, 4, 255, 4096, 1000003}) {
        const std::vector<unsigned char> in = counted(n);
        const Device<unsigned char> a(n), b(n);
        EXPECT((uintptr_t)a.data % 256 == 0 && (uintptr_t)b.data % 256 == 0);
        for (bool told : {true, false}) { // the direction can follow from the pointers
            std::vector<unsigned char> out(n), same(n);
            const auto copy = [&](void *to, const void *from, cudaMemcpyKind kind) {
                OK(cudaMemcpy(to, from, n, told ? kind : cudaMemcpyDefault));
            };
            OK(cudaMemset(a.data, 0, n));
            copy(a.data, in.data(), cudaMemcpyHostToDevice);
            copy(b.data, a.data, cudaMemcpyDeviceToDevice);
            copy(out.data(), b.data, cudaMemcpyDeviceToHost);
            copy(same.data(), in.data(), cudaMemcpyHostToHost);
            EXPECT(in == out && in == same);
        }
    }
}

TEST(nothing_is_allocated_copied_and_freed) {
    int *p, *const before = (int *)&p;
    size_t pitch = 99;
    const auto null = [&](cudaError_t error) {
        const bool is = error == cudaSuccess && p == NULL;
        p = before;
        return is;
    };
    p = before;
    EXPECT(null(cudaMalloc(&p, 0)) && null(cudaMallocHost(&p, 0)) && null(cudaMallocManaged(&p, 0)));
    EXPECT(null(cudaMallocPitch(&p, &pitch, 0, 5)) && pitch == 0);
    OK(cudaMalloc(&p, 4));
    OK(cudaMemcpy(NULL, p, 0, cudaMemcpyDeviceToHost));
    OK(cudaMemcpy2D(p, 4, p, 4, 0, 3, cudaMemcpyDeviceToDevice));
}

TEST(fills) {
    const Device<unsigned char> a(300);
    OK(cudaMemset(a.data, 0x107, 300)); // only the lowest byte is used
    OK(cudaMemset(a.data + 1, 5, 100));
    OK(cudaMemset(a.data + 250, 6, 50));
    OK(cudaMemset(a.data, 0, 0));
    EXPECT(a.host() == made(300, [](int i) { return (unsigned char)(i && i <= 100 ? 5 : i < 250 ? 7 : 6); }));
}

TEST(copies_and_fills_rows) {
    const size_t width = 13, rows = 7, host_pitch = 20;
    const std::vector<unsigned char> in = counted(host_pitch * rows);
    std::vector<unsigned char> out(host_pitch * rows, 77);
    unsigned char *a;
    size_t pitch;
    OK(cudaMallocPitch(&a, &pitch, width, rows));
    EXPECT(pitch >= width && pitch % 32 == 0);
    OK(cudaMemset2D(a, pitch, 1, width, rows));
    OK(cudaMemcpy2D(a, pitch, in.data(), host_pitch, width, rows - 1, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2D(out.data(), host_pitch, a, pitch, width, rows, cudaMemcpyDeviceToHost));
    for (size_t y = 0; y < rows; y++)
        for (size_t x = 0; x < host_pitch; x++)
            EXPECT(out[y * host_pitch + x] == (x >= width ? 77 : y == rows - 1 ? 1 : in[y * host_pitch + x]));
    const Device<unsigned char> b(4 * 3); // the middle part of rows, between two pieces of device memory
    OK(cudaMemcpy2D(b.data, 4, a + pitch + 2, pitch, 4, 3, cudaMemcpyDeviceToDevice));
    EXPECT(b.host() == made(12, [&](int i) { return in[(i / 4 + 1) * host_pitch + 2 + i % 4]; }));
}

TEST(asynchronous_forms_are_done_after_synchronizing) {
    const std::vector<unsigned char> in = counted(5000);
    std::vector<unsigned char> out(5000);
    const cudaStream_t s = new_stream();
    const auto a = STORED(unsigned char *, cudaMallocAsync(&it, 5000, s));
    OK(cudaMemsetAsync(a, 3, 5000, s));
    OK(cudaMemcpyAsync(a + 1000, in.data(), 4000, cudaMemcpyHostToDevice, s));
    OK(cudaMemset2DAsync(a, 100, 8, 10, 5, s));
    OK(cudaMemcpyAsync(out.data(), a, 4000, cudaMemcpyDeviceToHost, s));
    OK(cudaMemcpy2DAsync(out.data() + 4000, 1000, a + 4000, 1000, 1000, 1, cudaMemcpyDeviceToHost, s));
    OK(cudaFreeAsync(a, s));
    OK(cudaStreamSynchronize(s));
    for (int i = 0; i < 5000; i++)
        EXPECT(out[i] == (i >= 1000 ? in[i - 1000] : i < 500 && i % 100 < 10 ? 8 : 3));
}

TEST(pinned_memory_and_its_flags) {
    const unsigned all = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    for (unsigned flags : {0u, (unsigned)cudaHostAllocMapped, all}) {
        int *p, *device = NULL;
        OK(cudaHostAlloc(&p, 1000, flags));
        EXPECT((STORED(unsigned, cudaHostGetFlags(&it, p)) & flags) == flags);
        memset(p, 1, 1000);
        OK(cudaHostGetDevicePointer(&device, p, 0)); // mapped without the flag, too
        EXPECT(value_at(device) == 0x01010101);
        OK(cudaFreeHost(p));
    }
}

TEST(registered_memory) {
    std::vector<int> v(5000, 3);
    OK(cudaHostRegister(v.data(), v.size() * sizeof(int), cudaHostRegisterMapped));
    int *const device = STORED(int *, cudaHostGetDevicePointer(&it, v.data(), 0));
    EXPECT(value_at(device) == 3);
    OK(cudaMemset(device + 100, 0, 400));
    EXPECT(v[99] == 3 && v[100] == 0 && v[199] == 0 && v[200] == 3);
    // Parts that touch do not overlap.
    OK(cudaHostUnregister(v.data()));
    OK(cudaHostRegister(&v[2000], 4000, cudaHostRegisterDefault));
    OK(cudaHostRegister(&v[1000], 4000, cudaHostRegisterDefault));
    OK(cudaHostRegister(&v[3000], 4000, cudaHostRegisterDefault));
    EXPECT(last(cudaHostRegister(&v[3999], 8, cudaHostRegisterDefault)) ==
           cudaErrorHostMemoryAlreadyRegistered);
    EXPECT(last(cudaHostRegister(&v[999], 8, cudaHostRegisterDefault)) ==
           cudaErrorHostMemoryAlreadyRegistered);
    for (int i : {1000, 2000, 3000})
        OK(cudaHostUnregister(&v[i]));
}

static cudaPointerAttributes attributes(const void *pointer) {
    return STORED(cudaPointerAttributes, cudaPointerGetAttributes(&it, pointer));
}

TEST(pointers_tell_what_they_are) {
    const Device<int> memory(25);
    int host = 0, *const device = memory.data + 10, *const unified = managed<int>(25);
    int *const pinned = STORED(int *, cudaHostAlloc(&it, 100, cudaHostAllocMapped)) + 1;
    EXPECT(attributes(device).type == cudaMemoryTypeDevice && attributes(device).device == 0);
    EXPECT(attributes(device).devicePointer == device);
    EXPECT(attributes(pinned).type == cudaMemoryTypeHost && attributes(pinned).hostPointer == pinned);
    EXPECT(attributes(pinned).devicePointer == pinned);
    EXPECT(attributes(unified).type == cudaMemoryTypeManaged && attributes(unified).devicePointer == unified);
    EXPECT(attributes(&host).type == cudaMemoryTypeUnregistered);
}

TEST(memory_is_counted_and_too_much_is_refused) {
    size_t free, total, less;
    int *p, *q = NULL;
    cudaError_t error;
    OK(cudaMemGetInfo(&free, &total));
    EXPECT(free > 64 << 20 && free <= total);
    EXPECT(total == STORED(cudaDeviceProp, cudaGetDeviceProperties(&it, 0)).totalGlobalMem);
    OK(cudaMalloc(&p, 64 << 20));
    OK(cudaMemGetInfo(&less, &total));
    EXPECT(less <= total - (64 << 20));
    for (size_t n : {total + 1, (size_t)99999999999999, SIZE_MAX, SIZE_MAX - 100, SIZE_MAX / 2}) {
        // without a message: a program may try with less memory
        EXPECT(said([&] { return cudaMalloc(&q, n); }, error) == "" && error == cudaErrorMemoryAllocation);
        EXPECT(cudaGetLastError() == error && q == NULL);
    }
    size_t pitch;
    EXPECT(last(cudaMallocPitch(&p, &pitch, 1 << 20, SIZE_MAX / 4)) != cudaSuccess);
    WORKS(cudaMalloc(&p, 100));
}

TEST(host_threads_call_the_runtime_at_once) {
    std::atomic<int> wrong{0};
    in_threads(8, [&](int t) {
        for (int i = 0; i < 200; i++) {
            int *p = NULL, *q = NULL;
            std::vector<int> in(100 + i, t * 1000 + i), out(in.size());
            const size_t n = in.size() * sizeof(int);
            cudaStream_t s;
            cudaEvent_t e;
            wrong += cudaStreamCreate(&s) || cudaEventCreate(&e) || cudaEventRecord(e, s) ||
                     cudaStreamSynchronize(s) || cudaEventDestroy(e) || cudaStreamDestroy(s) ||
                     cudaMalloc(&p, n) || cudaMallocHost(&q, n) ||
                     cudaMemcpy(p, in.data(), n, cudaMemcpyHostToDevice) ||
                     cudaMemcpy(q, p, n, cudaMemcpyDeviceToHost) ||
                     cudaMemcpy(out.data(), q, n, cudaMemcpyHostToHost) || in != out || cudaFree(p) ||
                     cudaFreeHost(q);
        }
    });
    EXPECT(wrong == 0);
}

TEST(devices_copy_between_each_other) {
    if (device_count() < 2)
        return;
    const Device<int> a(std::vector<int>{42});
    OK(cudaSetDevice(1)); // where the memory of the other device is freed, too
    const Device<int> b(1);
    EXPECT(attributes(b.data).device == 1);
    OK(cudaMemcpyPeer(b.data, 1, a.data, 0, sizeof(int)));
    OK(cudaMemset(a.data, 0, sizeof(int)));
    OK(cudaMemcpyPeerAsync(a.data, 0, b.data, 1, sizeof(int), 0));
    EXPECT(a.host()[0] == 42);
    OK(cudaMemset(b.data, 0, sizeof(int)));
    OK(cudaMemcpy(b.data, a.data, sizeof(int), cudaMemcpyDeviceToDevice));
    EXPECT(b.host()[0] == 42);
    for (int wrong = 0; wrong < 2; wrong++) { // the destination's device, and the source's
        cudaError_t error;
        const std::string message =
            said([&] { return cudaMemcpyPeer(b.data, !wrong, a.data, !wrong, sizeof(int)); }, error);
        EXPECT(error == cudaErrorInvalidValue);
        EXPECT(message.find(wrong
                                ? "the destination is memory of device 1, not of device 0"
                                : "the source is memory of device 0, not of device 1") != std::string::npos);
    }
}

// ---- pools, hints about managed memory, and calls that programs make beside their work ----

static uint64_t attribute(cudaMemPool_t pool, cudaMemPoolAttr which) {
    return STORED(uint64_t, cudaMemPoolGetAttribute(pool, which, &it));
}

__global__ void set(int *x, int value) {
    *x = value;
}

TEST(memory_comes_from_pools) {
    const cudaStream_t s = new_stream();
    const cudaMemPool_t standard = STORED(cudaMemPool_t, cudaDeviceGetDefaultMemPool(&it, 0));
    EXPECT(standard == STORED(cudaMemPool_t, cudaDeviceGetMemPool(&it, 0)));
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    const auto pool = STORED(cudaMemPool_t, cudaMemPoolCreate(&it, &properties));
    EXPECT(pool != standard);
    uint64_t threshold = ~0ull;
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    int *a = STORED(int *, cudaMallocFromPoolAsync(&it, 1000000, pool, s));
    int *const b = STORED(int *, cudaMallocAsync(&it, 1000000, pool, s));
    set<<<1, 1, 0, s>>>(a, 5);
    OK(cudaStreamSynchronize(s));
    EXPECT(value_at(a) == 5);
    const uint64_t used = attribute(pool, cudaMemPoolAttrUsedMemCurrent);
    EXPECT(used >= 2000000 && attribute(pool, cudaMemPoolAttrUsedMemHigh) == used);
    OK(cudaFreeAsync(a, s));
    OK(cudaFreeAsync(b, s));
    OK(cudaStreamSynchronize(s));
    EXPECT(attribute(pool, cudaMemPoolAttrUsedMemCurrent) == 0);
    EXPECT(attribute(pool, cudaMemPoolAttrReservedMemCurrent) >= used); // kept, as the threshold says
    OK(cudaMemPoolTrimTo(pool, 0));
    EXPECT(attribute(pool, cudaMemPoolAttrReservedMemCurrent) == 0);

    OK(cudaDeviceSetMemPool(0, pool));
    OK(cudaMallocAsync(&a, 1000, s));
    EXPECT(attribute(pool, cudaMemPoolAttrUsedMemCurrent) >= 1000);
    OK(cudaFreeAsync(a, s));
    OK(cudaStreamSynchronize(s));
    cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
    EXPECT(STORED(cudaMemAccessFlags, cudaMemPoolGetAccess(&it, pool, &here)) ==
           cudaMemAccessFlagsProtReadWrite);
    OK(cudaDeviceSetMemPool(0, standard));
    OK(cudaMemPoolDestroy(pool));
    EXPECT(last(cudaMemPoolDestroy(standard)) == cudaErrorInvalidValue);
}

TEST(another_device_gets_access_to_a_pool) {
    if (device_count() < 2)
        return;
    const cudaMemPool_t pool = STORED(cudaMemPool_t, cudaDeviceGetDefaultMemPool(&it, 0));
    cudaMemAccessDesc other = {{cudaMemLocationTypeDevice, 1}, cudaMemAccessFlagsProtReadWrite};
    const auto access = [&] {
        return STORED(cudaMemAccessFlags, cudaMemPoolGetAccess(&it, pool, &other.location));
    };
    EXPECT(access() == cudaMemAccessFlagsProtNone);
    OK(cudaMemPoolSetAccess(pool, &other, 1));
    EXPECT(access() == cudaMemAccessFlagsProtReadWrite);
    int *const x = STORED(int *, cudaMallocAsync(&it, sizeof(int), pool, 0));
    OK(cudaDeviceSynchronize());
    OK(cudaSetDevice(1));
    set<<<1, 1>>>(x, 7);
    EXPECT(value_at(x) == 7);
    other.location.id = 0;
    other.flags = cudaMemAccessFlagsProtNone;
    EXPECT(last(cudaMemPoolSetAccess(pool, &other, 1)) == cudaErrorInvalidValue);
}

TEST(hints_are_accepted) {
    int *managed;
    OK(cudaMallocManaged(&managed, 1 << 20));
    const cudaMemLocation gpu = {cudaMemLocationTypeDevice, 0}, host = {cudaMemLocationTypeHost, 0};
    OK(cudaMemAdvise(managed, 1 << 20, cudaMemAdviseSetReadMostly, gpu));
    OK(cudaMemAdvise(managed, 1 << 20, cudaMemAdviseSetPreferredLocation, host));
    OK(cudaMemAdvise(managed, 1 << 20, cudaMemAdviseSetAccessedBy, gpu));
    OK(cudaMemPrefetchAsync(managed, 1 << 20, gpu, 0, 0));
    OK(cudaDeviceSynchronize());
    OK(cudaStreamAttachMemAsync(0, managed, 0, cudaMemAttachGlobal));
#ifdef __CU2CPP__ // the forms of CUDA 12
    OK(cudaMemAdvise(managed, 1 << 20, cudaMemAdviseUnsetPreferredLocation, cudaCpuDeviceId));
    OK(cudaMemPrefetchAsync(managed, 1 << 20, cudaCpuDeviceId));
#endif
}

__global__ void add(int *x, long y, char z) {
    *x = (int)(y + z);
}

__global__ void doubled(int *x) {
#if __CUDA_ARCH__ >= 900 || defined(__CU2CPP__)
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#endif
    *x *= 2;
}

TEST(launches_with_a_configuration) {
    int *x = managed<int>();
    cudaLaunchConfig_t config = {1, 1, 0, 0, NULL, 0};
    cudaLaunchAttribute cooperative;
    OK(cudaLaunchKernelEx(&config, add, x, 40, 2)); // converts to long and char
    EXPECT(value_at(x) == 42);
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = 1;
    config.attrs = &cooperative;
    config.numAttrs = 1;
    int value = 7;
    void *arguments[] = {&x, &value};
    OK(cudaLaunchKernelExC(&config, (const void *)set, arguments));
    EXPECT(value_at(x) == 7);
    cooperative.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    cooperative.val.programmaticStreamSerializationAllowed = 1;
    for (int i = 0; i < 3; i++)
        OK(cudaLaunchKernelEx(&config, doubled, x));
    EXPECT(value_at(x) == 56);
}

#ifdef __CU2CPP__
static void launch_a_cluster() { // the device has none
    int clusters;
    cudaLaunchAttribute cluster;
    const cudaLaunchConfig_t config = {4, 32, 0, 0, &cluster, 1};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {2, 1, 1};
    EXPECT(last(cudaLaunchKernelEx(&config, add, (int *)NULL, 40, 2)) == cudaErrorNotSupported);
    EXPECT(last(cudaOccupancyMaxActiveClusters(&clusters, add, &config)) == cudaErrorNotSupported);
}
static const int cluster_line = __LINE__ - 3;

TEST(memory_and_semaphores_of_vulkan_are_refused) {
    const unit_result r = in_child([] {
        cudaExternalSemaphoreHandleDesc desc = {};
        desc.type = cudaExternalSemaphoreHandleTypeTimelineSemaphoreFd;
        cudaExternalSemaphore_t semaphore;
        EXPECT(last(cudaImportExternalSemaphore(&semaphore, &desc)) == cudaErrorNotSupported);
    });
    ends_with(r, {"cudaImportExternalSemaphore: memory and semaphores of Vulkan and Direct3D are not"}, 0);
    const auto properties = STORED(cudaDeviceProp, cudaGetDeviceProperties(&it, 0));
    EXPECT(!properties.timelineSemaphoreInteropSupported);
}

TEST(a_launch_of_clusters_is_refused_with_its_line) {
    const std::string where = "cudaLaunchKernelEx at memory.cu:" + std::to_string(cluster_line);
    ends_with(in_child(launch_a_cluster),
              {where + ": clusters of 2 x 1 x 1 blocks", "cudaOccupancyMaxActiveClusters: clusters"}, 0);
}
#endif

// ---- __device__ and __constant__ variables: copies, addresses, use in kernels, several devices ----

struct Sphere {
    float x, y, z;
    int id;
};

__constant__ int numbers[64];
__constant__ float scale = 2.5f;
__device__ int counter = 7;
__device__ double table[3][5];
__device__ Sphere spheres[4];
__device__ volatile int flag;
__managed__ unsigned shared_by_all = 11;
__constant__ const int fixed_numbers[4] = {10, 20, 30, 40};
static __device__ int hidden[3] = {1, 2, 3};
namespace inner {
__device__ short small[5];
}
__device__ char odd[3];

// A variable, or an element of it
template <class T, class S> static T copied(const S &symbol, size_t i = 0) {
    return STORED(T, cudaMemcpyFromSymbol(&it, symbol, sizeof it, i * sizeof it));
}
template <class S, class T> static void put(S &symbol, const T &value) {
    OK(cudaMemcpyToSymbol(symbol, &value, sizeof value));
}

__global__ void read(int *out) {
    const int i = threadIdx.x;
    out[i] = numbers[i] + counter + (int)scale + fixed_numbers[i % 4] + hidden[i % 3];
}

__global__ void write() {
    counter += 1;
    table[2][4] = counter;
    spheres[3].id = 99;
    inner::small[4] = -5;
    odd[2] = 'z';
    shared_by_all *= 2;
}

TEST(symbols_are_copied_both_ways) {
    const std::vector<int> in = made(64, [](int i) { return i * i; });
    int out[64] = {};
    OK(cudaMemcpyToSymbol(numbers, in.data(), sizeof out));
    OK(cudaMemcpyFromSymbol(out, numbers, sizeof out));
    EXPECT(memcmp(in.data(), out, sizeof out) == 0);
    OK(cudaMemcpyFromSymbol(out, numbers, 8, 16)); // the offset is in bytes
    EXPECT(out[0] == 16 && out[1] == 25);
    const int two[2] = {-1, -2};
    OK(cudaMemcpyToSymbol(numbers, two, sizeof two, 62 * sizeof(int)));
    OK(cudaMemcpyFromSymbol(out, numbers, sizeof out));
    EXPECT(out[61] == 61 * 61 && out[62] == -1 && out[63] == -2);
    EXPECT(copied<float>(scale) == 2.5f);
    OK(cudaMemcpyToSymbol(numbers, in.data(), 0, sizeof numbers)); // 0 bytes at the end
    const cudaStream_t s = new_stream();
    OK(cudaMemcpyToSymbolAsync(counter, &in[3], sizeof(int), 0, cudaMemcpyHostToDevice, s));
    OK(cudaMemcpyFromSymbolAsync(&out[0], counter, sizeof(int), 0, cudaMemcpyDeviceToHost, s));
    OK(cudaStreamSynchronize(s));
    EXPECT(out[0] == 9);
}

TEST(kernels_see_symbols) {
    OK(cudaMemcpyToSymbol(numbers, made(64, [](int i) { return 1000 * i; }).data(), sizeof numbers));
    put(counter, 7);
    const auto expected = [](int i) { return 1000 * i + 7 + 2 + 10 * (i % 4 + 1) + i % 3 + 1; };
    EXPECT(WRITTEN(int, 32, read<<<1, 32>>>(out)) == made(32, expected));
    shared_by_all = 21;
    write<<<1, 1>>>();
    OK(cudaDeviceSynchronize());
    EXPECT(shared_by_all == 42); // managed, so it belongs to both sides
    EXPECT(copied<double>(table, 14) == 8 && copied<Sphere>(spheres, 3).id == 99);
    EXPECT(copied<short>(inner::small, 4) == -5 && copied<char>(odd, 2) == 'z');
}

TEST(symbols_have_addresses_and_sizes) {
    const double value = 4.5;
    EXPECT(STORED(size_t, cudaGetSymbolSize(&it, table)) == 15 * sizeof(double));
    EXPECT(STORED(size_t, cudaGetSymbolSize(&it, flag)) == sizeof(int));
    double *const address = STORED(double *, cudaGetSymbolAddress((void **)&it, table));
    OK(cudaMemcpy(address + 7, &value, sizeof value, cudaMemcpyHostToDevice));
    EXPECT(copied<double>(table, 7) == 4.5);
    OK(cudaMemset(address, 0, sizeof table));
    EXPECT(copied<double>(table, 7) == 0);
    EXPECT(attributes(address).type == cudaMemoryTypeDevice);
    const Device<int> device(1); // from a variable to memory and back, on the device
    put(counter, 31);
    OK(cudaMemcpyFromSymbol(device.data, counter, sizeof(int), 0, cudaMemcpyDeviceToDevice));
    OK(cudaMemcpyToSymbol(hidden, device.data, sizeof(int), 4, cudaMemcpyDeviceToDevice));
    EXPECT(copied<int>(hidden, 1) == 31);
}

// No code of this file writes these by name, so a compiler could take them for constants.
static __device__ int level = 5;
static __constant__ float factor = 0.5f;
__global__ void read_level(float *out) {
    *out = level * factor;
}

TEST(kernels_read_values_that_only_copies_change) {
    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < device_count(); d++) {
            OK(cudaSetDevice(d));
            EXPECT(WRITTEN(float, 1, read_level<<<1, 1>>>(out))[0] == (pass ? (8 + d) * (d + 1.5f) : 2.5f));
            put(level, 8 + d);
            put(factor, d + 1.5f);
        }
}

TEST(a_reset_brings_the_first_values_back) {
    put(scale, 7.0f);
    OK(cudaDeviceReset());
    EXPECT(copied<float>(scale) == 2.5f);
}
