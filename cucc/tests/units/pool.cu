// SPDX-License-Identifier: MIT
// Memory pools, hints about managed memory, and calls that programs make beside their work. Everything is
// legal CUDA, apart from what is marked.
#include <cstdint>
#include "device.h"

static uint64_t attribute(cudaMemPool_t pool, cudaMemPoolAttr which) {
    uint64_t value = ~0ull;
    OK(cudaMemPoolGetAttribute(pool, which, &value));
    return value;
}

__global__ void set(int *x, int value) {
    *x = value;
}

TEST(memory_comes_from_pools) {
    cudaMemPool_t standard, pool, current;
    const cudaStream_t s = new_stream();
    int *a, *b;
    OK(cudaDeviceGetDefaultMemPool(&standard, 0));
    OK(cudaDeviceGetMemPool(&current, 0));
    EXPECT(standard == current);
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    OK(cudaMemPoolCreate(&pool, &properties));
    EXPECT(pool != standard);
    uint64_t threshold = ~0ull;
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    OK(cudaMallocFromPoolAsync(&a, 1000000, pool, s));
    OK(cudaMallocAsync(&b, 1000000, pool, s));
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
    cudaMemLocation here = {};
    here.type = cudaMemLocationTypeDevice;
    cudaMemAccessFlags access;
    OK(cudaMemPoolGetAccess(&access, pool, &here));
    EXPECT(access == cudaMemAccessFlagsProtReadWrite);
    OK(cudaDeviceSetMemPool(0, standard));
    OK(cudaMemPoolDestroy(pool));
    EXPECT(cudaMemPoolDestroy(standard) == cudaErrorInvalidValue);
    (void)cudaGetLastError();
}

TEST(hints_are_kept) {
    int *managed, number = 99, list[2];
    OK(cudaMallocManaged(&managed, 1 << 20));
    const auto query = [&](cudaMemRangeAttribute which) {
        OK(cudaMemRangeGetAttribute(&number, sizeof number, which, managed, 1 << 20));
        return number;
    };
    cudaMemLocation gpu = {}, host = {};
    gpu.type = cudaMemLocationTypeDevice;
    host.type = cudaMemLocationTypeHost;
    EXPECT(query(cudaMemRangeAttributeReadMostly) == 0);
    EXPECT(query(cudaMemRangeAttributePreferredLocation) == cudaInvalidDeviceId);
    OK(cudaMemAdvise(managed, 1 << 20, cudaMemAdviseSetReadMostly, gpu));
    EXPECT(query(cudaMemRangeAttributeReadMostly) == 1);
    OK(cudaMemAdvise(managed, 1 << 20, cudaMemAdviseSetPreferredLocation, host));
    EXPECT(query(cudaMemRangeAttributePreferredLocation) == cudaCpuDeviceId);
    OK(cudaMemAdvise(managed, 1 << 20, cudaMemAdviseSetAccessedBy, gpu));
    OK(cudaMemRangeGetAttribute(list, sizeof list, cudaMemRangeAttributeAccessedBy, managed, 1 << 20));
    EXPECT(list[0] == 0 && list[1] == cudaInvalidDeviceId);
    void *values[] = {&number, list};
    size_t sizes[] = {sizeof number, sizeof list};
    cudaMemRangeAttribute both[] = {cudaMemRangeAttributeReadMostly, cudaMemRangeAttributeAccessedBy};
    number = list[0] = list[1] = 99;
    OK(cudaMemRangeGetAttributes(values, sizes, both, 2, managed, 1 << 20));
    EXPECT(number == 1 && list[0] == 0 && list[1] == cudaInvalidDeviceId);
    OK(cudaMemPrefetchAsync(managed, 1 << 20, gpu, 0, 0));
    OK(cudaDeviceSynchronize());
    EXPECT(query(cudaMemRangeAttributeLastPrefetchLocation) == 0);
    OK(cudaStreamAttachMemAsync(0, managed, 0, cudaMemAttachGlobal));
#ifdef __CU2CPP__ // the forms of CUDA 12
    OK(cudaMemAdvise(managed, 1 << 20, cudaMemAdviseUnsetPreferredLocation, cudaCpuDeviceId));
    EXPECT(query(cudaMemRangeAttributePreferredLocation) == cudaInvalidDeviceId);
    OK(cudaMemPrefetchAsync(managed, 1 << 20, cudaCpuDeviceId));
    EXPECT(query(cudaMemRangeAttributeLastPrefetchLocation) == cudaCpuDeviceId);
#endif
}

__global__ void add(int *x, long y, char z) {
    *x = (int)(y + z);
}

TEST(launches_with_a_configuration) {
    int *x = managed<int>();
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute cooperative;
    config.gridDim = dim3(1);
    config.blockDim = dim3(1);
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
    size_t bytes = 0;
    OK(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, add, 2, 256));
    EXPECT(bytes >= 16384);
    int blocks = 0, same = 0;
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 256, 0));
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&same, add, 256, 0, cudaOccupancyDefault));
    EXPECT(blocks > 0 && blocks == same);
    int least = 0, most = 0, block = 0, other = 0;
    OK(cudaOccupancyMaxPotentialBlockSize(&least, &block, add));
    OK(cudaOccupancyMaxPotentialBlockSizeWithFlags(&most, &other, add, 0, 0, cudaOccupancyDefault));
    EXPECT(block > 0 && block == other && least == most);
}

#ifdef __CU2CPP__
static bool refused(cudaError_t error) {
    return error == cudaErrorNotSupported && cudaGetLastError() == cudaErrorNotSupported;
}

static void launch_a_cluster() { // the device has none
    int clusters;
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute cluster;
    config.gridDim = dim3(4);
    config.blockDim = dim3(32);
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {2, 1, 1};
    config.attrs = &cluster;
    config.numAttrs = 1;
    exit(!refused(cudaLaunchKernelEx(&config, add, (int *)NULL, 40, 2)) ||
         !refused(cudaOccupancyMaxActiveClusters(&clusters, add, &config)));
}
static const int cluster_line = __LINE__ - 3;

TEST(memory_and_semaphores_of_vulkan_are_refused) {
    const unit_result r = in_child([] {
        cudaExternalSemaphoreHandleDesc desc = {};
        desc.type = cudaExternalSemaphoreHandleTypeTimelineSemaphoreFd;
        cudaExternalSemaphore_t semaphore;
        exit(!refused(cudaImportExternalSemaphore(&semaphore, &desc)));
    });
    ends_with(r, {"cudaImportExternalSemaphore: memory and semaphores of Vulkan and Direct3D are not"}, 0);
    cudaDeviceProp properties;
    OK(cudaGetDeviceProperties(&properties, 0));
    EXPECT(!properties.timelineSemaphoreInteropSupported);
}

TEST(a_launch_of_clusters_is_refused_with_its_line) {
    const std::string where = "cudaLaunchKernelEx at pool.cu:" + std::to_string(cluster_line);
    ends_with(in_child(launch_a_cluster),
              {where + ": clusters of 2 x 1 x 1 blocks", "cudaOccupancyMaxActiveClusters: clusters"}, 0);
}
#endif
