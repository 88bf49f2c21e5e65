// SPDX-License-Identifier: MIT
/*
 * cluster_hist: histogram whose bins are spread over the shared memory of a cluster of blocks
 *
 * Teaches: The blocks of a cluster run at the same time on neighbouring multiprocessors. They have a
 *          barrier in common, and each reads and writes the shared memory of the others: distributed
 *          shared memory. So the privatization of section 9.4.2 works for more bins than a block can
 *          have: 65,536 bins of 4 bytes are 256 KiB, and 128 KiB for each of 2 blocks. The more blocks
 *          a cluster has, the more of its additions go to another block, which takes longer.
 * Terms:   cluster, distributed shared memory, privatization, shared memory, atomic operation, barrier
 * Book:    9.4.2 (after the book)
 * Since:   CUDA 11.8, compute capability 9.0 (H100)
 * After:   chapter13/managed_hist
 * Build:   nvcc -o cluster_hist chapter13/cluster_hist.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter13/cluster_hist --size 512M --fill equal
 * Differs: as chapter09/hist_gpu_shmem_atomics, but values of 16 bits. On an H200, for 512 Mi random values,
 *          it takes 3.45 ms, atomic operations in global memory 5.77, chapter09/hist_wide_ladder without
 *          clusters 0.29. The CPU back end has no clusters: there the program is waived.
 * Needs:   sm=90
 * Check:   --size 100003 | --size 48891 --cluster 8 | --size 5003 --fill equal
 */
#include <cooperative_groups.h>
#include "../common/book.h"

namespace cg = cooperative_groups;

#define SIZE (50 * 1024 * 1024)
#define BINS 65536

const int THREADS = 1024; // of a block

static size_t size = SIZE;        // --size: values
static int blocks_of_cluster = 2; // --cluster
static int equal;                 // --fill: random or equal values
static bool check(const unsigned long long *histo, const unsigned short *buffer);
static bool time_kernels(const cudaLaunchConfig_t *config, const unsigned short *buffer,
                         const unsigned short *dev_buffer, unsigned long long *dev_histo);

// For comparison: bins in global memory, as in chapter09/hist_gpu_gmem_atomics
__global__ void histo_gmem(const unsigned short *buffer, size_t size, unsigned long long *histo) {
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < size; i += stride)
        atomicAdd(&histo[buffer[i]], 1ULL);
}

// On devices before 9.0, which have no clusters, this kernel is empty, and it is not called.
__global__ void histo_kernel(const unsigned short *buffer, size_t size, unsigned long long *histo) {
#if __CUDA_ARCH__ >= 900
    extern __shared__ unsigned temp[]; // the bins of this block: those from `first` on
    cg::cluster_group cluster = cg::this_cluster();
    unsigned bins = BINS / cluster.num_blocks(), first = bins * cluster.block_rank();
    for (unsigned i = threadIdx.x; i < bins; i += blockDim.x)
        temp[i] = 0;
    // The barrier of the cluster: now all blocks have begun, so that their shared memory exists, and all bins
    // are 0. __syncthreads() would wait for the threads of this block only.
    cluster.sync();

    // map_shared_rank() turns the address of a variable in shared memory into that of the same variable in
    // another block of the cluster, or in this one. An atomic operation works on it as on any other address.
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < size; i += stride) {
        unsigned *there = cluster.map_shared_rank(temp, buffer[i] / bins);
        atomicAdd(&there[buffer[i] % bins], 1);
    }
    // The cluster has counted all its values. Without this barrier a block could also end, and its shared
    // memory with it, while other blocks still add to it.
    cluster.sync();

    for (unsigned i = threadIdx.x; i < bins; i += blockDim.x)
        atomicAdd(&histo[first + i], temp[i]);
#else
    (void)buffer, (void)size, (void)histo;
#endif
}

int main(int argc, char **argv) {
    settings(argc, argv);
    unsigned short *buffer = (unsigned short *)big_random_block(size * sizeof(unsigned short));
    if (equal) // every thread adds to the same bin
        memset(buffer, 0, size * sizeof(unsigned short));
    size_t bytes = BINS * sizeof(unsigned long long);
    unsigned long long *histo = (unsigned long long *)malloc(bytes);
    HANDLE_NULL(histo);

    unsigned short *dev_buffer;
    unsigned long long *dev_histo;
    HANDLE_ERROR(cudaMalloc((void **)&dev_buffer, size * sizeof(unsigned short)));
    HANDLE_ERROR(cudaMemcpy(dev_buffer, buffer, size * sizeof(unsigned short), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMalloc((void **)&dev_histo, bytes));

    // <<<>>> has no place for the size of a cluster, so the launch is described by structures. The number of
    // blocks is a multiple of that of a cluster.
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, options.device));
    int blocks = prop.multiProcessorCount * 2 / blocks_of_cluster * blocks_of_cluster;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = blocks_of_cluster;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {
        dim3(blocks), dim3(THREADS), BINS / blocks_of_cluster * sizeof(unsigned), 0, &attribute, 1};
    HANDLE_ERROR(cudaFuncSetAttribute(histo_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      config.dynamicSmemBytes)); // more than 48 KiB has to be allowed
    HANDLE_ERROR(cudaMemset(dev_histo, 0, bytes));
    HANDLE_ERROR(cudaLaunchKernelEx(&config, histo_kernel, dev_buffer, size, dev_histo));
    HANDLE_ERROR(cudaMemcpy(histo, dev_histo, bytes, cudaMemcpyDeviceToHost));
    bool ok = check(histo, buffer);

    ok = time_kernels(&config, buffer, dev_buffer, dev_histo) && ok;

    HANDLE_ERROR(cudaFree(dev_histo));
    HANDLE_ERROR(cudaFree(dev_buffer));
    free(histo);
    free(buffer);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/yardstick.h" // print_share()

void settings(int argc, char **argv) {
    int choice = 0;
    configure(argc, argv, "Counts 16-bit values with clusters of blocks.", TIMES,
              {OPTION_SIZE("size", &size, 1, UINT_MAX, "values to count"),
               OPTION_WORD("cluster", &choice, "2|4|8", "blocks of a cluster"),
               OPTION_WORD("fill", &equal, "random|equal", "values")});
    blocks_of_cluster = 2 << choice;
    cudaFuncAttributes compiled;
    HANDLE_ERROR(cudaFuncGetAttributes(&compiled, histo_kernel));
    if (!device_attribute(cudaDevAttrClusterLaunch) || compiled.ptxVersion < 90)
        quit(EXIT_WAIVED, "needs clusters of blocks: a device of compute capability 9.0, and code for it");
    require_memory(size * sizeof(unsigned short), size * sizeof(unsigned short));
}

static bool check(const unsigned long long *histo, const unsigned short *buffer) {
    HostArray<unsigned long long> expected(BINS, 0);
    for (size_t i = 0; i < size; i++)
        expected[buffer[i]]++;
    return check_counts("bin", histo, expected, BINS);
}

static bool time_kernels(const cudaLaunchConfig_t *config, const unsigned short *buffer,
                         const unsigned short *dev_buffer, unsigned long long *dev_histo) {
    auto clear = [=] { HANDLE_ERROR(cudaMemset(dev_histo, 0, BINS * sizeof(unsigned long long))); };
    float ms = median_ms(
        [=] { HANDLE_ERROR(cudaLaunchKernelEx(config, histo_kernel, dev_buffer, size, dev_histo)); }, clear);
    unsigned blocks = config->gridDim.x;
    double bytes = size * sizeof(unsigned short);
    printf("%u blocks in clusters of %d\n", blocks, blocks_of_cluster);
    print_share("Bins in shared memory:", ms, bytes);
    bool ok = check(HostArray<unsigned long long>(dev_histo, BINS), buffer);
    ms = median_ms([=] { histo_gmem<<<blocks, THREADS>>>(dev_buffer, size, dev_histo); }, clear);
    print_share("Bins in global memory:", ms, bytes);
    printf("The fastest: ./bin/chapter09/hist_wide_ladder --size %zu\n", size);
    return check(HostArray<unsigned long long>(dev_histo, BINS), buffer) && ok;
}

// Task: none: its kernel is compiled for compute capability 9.0 only, and the CPU back end has no clusters.
// By hand: take out one cluster.sync() at a time, and see which bins are wrong, and when.
