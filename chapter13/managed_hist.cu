// SPDX-License-Identifier: MIT
/*
 * managed_hist: histogram of managed memory: page faults, prefetching, advice
 *
 * Teaches: Managed memory has one address for host and device. On most machines a page moves to the
 *          processor that accesses it: the access causes a page fault, the driver copies the page, and the
 *          access is repeated; where CPU and GPU access each other's memory coherently, as on Grace Hopper,
 *          pages need not move. cudaMemPrefetchAsync moves pages in the order of a stream before a kernel
 *          needs them. cudaMemAdvise tells the driver how memory will be used, here that its pages stay on
 *          the host.
 * Terms:   managed memory, page fault, prefetch, zero-copy, histogram bin, privatization, event
 * Book:    9.4.2 (after the book)
 * Since:   CUDA 8.0, compute capability 6.0 (without page faults: CUDA 6.0, 3.0); as written here CUDA 12.2
 * Build:   nvcc -o managed_hist chapter13/managed_hist.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter13/managed_hist --size 256M
 * Differs: as chapter09/hist_gpu_shmem_atomics, but nothing is copied, and the histogram is made three times.
 * Check:   --size 100000
 * Web:     --size 10M
 */
#include "../common/book.h"
#include "../common/cuda12.h"

#define SIZE (100 * 1024 * 1024)

static size_t size = SIZE; // --size
enum { PAGE_FAULTS, PREFETCH, ADVICE, WAYS };
static bool check(int way, float ms, const unsigned long long *histo, const unsigned char *buffer);
static bool check_copied(const unsigned char *buffer);

// As in chapter 9. A kernel does not see whether its memory is managed.
__global__ void histo_kernel(const unsigned char *buffer, size_t size, unsigned long long *histo) {
    __shared__ unsigned temp[256];
    temp[threadIdx.x] = 0;
    __syncthreads();

    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < size; i += stride)
        atomicAdd(&temp[buffer[i]], 1);
    __syncthreads();

    atomicAdd(&histo[threadIdx.x], temp[threadIdx.x]);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    const cudaMemLocation host = {cudaMemLocationTypeHost, 0};
    const cudaMemLocation device = {cudaMemLocationTypeDevice, options.device};
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, options.device));
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));

    // Host and device use the same pointers. The first access to a page decides where it is allocated.
    unsigned char *buffer;
    unsigned long long *histo;
    HANDLE_ERROR(cudaMallocManaged((void **)&buffer, size));
    HANDLE_ERROR(cudaMallocManaged((void **)&histo, 256 * sizeof(*histo)));

    bool ok = true;
    for (int way = 0; way < WAYS; way++) {
        // No kernel is running, so the host may write the memory. Its accesses move the pages to the host.
        random_bytes(buffer, size);
        HANDLE_ERROR(cudaMemset(histo, 0, 256 * sizeof(*histo))); // moves its page to the device

        // Without page faults in kernels (Windows, some virtual machines) these calls are refused; there the
        // launch moves all managed memory to the device, and the host must wait for the kernel.
        if (way == ADVICE && prop.concurrentManagedAccess) {
            // The pages stay on the host, and the device maps them: it reads them over the bus without a page
            // fault, as it reads zero-copy memory (chapter 11). This suits data that is read once.
            HANDLE_ERROR(cudaMemAdvise(buffer, size, cudaMemAdviseSetPreferredLocation, host));
            HANDLE_ERROR(cudaMemAdvise(buffer, size, cudaMemAdviseSetAccessedBy, device));
        }
        HANDLE_ERROR(cudaEventRecord(start, 0));
        if (way == PREFETCH && prop.concurrentManagedAccess)
            HANDLE_ERROR(
                cudaMemPrefetchAsync(buffer, size, device, 0, 0)); // returns at once, as a launch does
        histo_kernel<<<prop.multiProcessorCount * 2, 256>>>(buffer, size, histo);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaEventRecord(stop, 0));

        // A copy to the host would wait for the kernel. Here the host calls a function that waits, and then
        // reads the bins.
        HANDLE_ERROR(cudaEventSynchronize(stop));
        float elapsedTime;
        HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
        ok = check(way, elapsedTime, histo, buffer) && ok;
    }
    ok = check_copied(buffer) && ok;

    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFree(histo));
    HANDLE_ERROR(cudaFree(buffer));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/timing.h" // median_ms()

void settings(int argc, char **argv) {
    configure(argc, argv, "Counts bytes of managed memory in three ways.", TIMES,
              {OPTION_SIZE("size", &size, 1, (size_t)1 << 31, "bytes to count")});
    // All pages of the managed memory may be on the host, or all on the device. check_copied() has a copy on
    // each, too.
    require_memory(3 * size, 2 * size);
    if (!device_attribute(cudaDevAttrManagedMemory))
        quit(EXIT_WAIVED, "needs a device with managed memory");
    cudaFuncAttributes loaded;
    HANDLE_ERROR(cudaFuncGetAttributes(&loaded, histo_kernel)); // so that the first launch does not load it
    // The other two kinds of machine: with HMM (heterogeneous memory management, of Linux and an open driver)
    // and on a coherent machine kernels access what malloc() returns, too; on the latter the GPU uses the
    // page tables of the CPU, and no page needs to move.
    printf("Kernels may access memory of malloc(): %s, by the page tables of the host: %s\n",
           device_attribute(cudaDevAttrPageableMemoryAccess) ? "yes" : "no",
           device_attribute(cudaDevAttrPageableMemoryAccessUsesHostPageTables) ? "yes" : "no");
    if (!device_attribute(cudaDevAttrConcurrentManagedAccess))
        printf("Kernels cause no page faults here: the launch moves all pages, in each of the three ways.\n");
}

static float times[WAYS + 1];

// Counts the bytes on the host, whose accesses move the pages back.
static bool check(int way, float ms, const unsigned long long *histo, const unsigned char *buffer) {
    times[way] = ms;
    const char *names[] = {"Page faults:", "Prefetch:", "Advice:", "Copied, as in 2010:"};
    printf("%-20s %7.2f ms, %.1f GB/s\n", names[way], ms, size / ms / 1e6);
    unsigned long long expected[256] = {};
    for (size_t i = 0; i < size; i++)
        expected[buffer[i]]++;
    return check_counts("bin", histo, expected, 256);
}

// The same work as chapter 9 does it: with a copy, here from pageable memory. Allocation is not timed.
static bool check_copied(const unsigned char *buffer) {
    const int blocks = device_attribute(cudaDevAttrMultiProcessorCount) * 2;
    HostArray<unsigned char> pageable(size);
    memcpy(pageable, buffer, size);
    DeviceArray<unsigned char> dev_buffer(size);
    DeviceArray<unsigned long long> dev_histo(256);
    void *pinned;
    HANDLE_ERROR(cudaHostAlloc(&pinned, size, cudaHostAllocDefault));
    float bus =
        median_ms([&] { HANDLE_ERROR(cudaMemcpyAsync(dev_buffer, pinned, size, cudaMemcpyHostToDevice)); });
    HANDLE_ERROR(cudaFreeHost(pinned));
    float ms = median_ms(
        [&] {
            HANDLE_ERROR(cudaMemcpy(dev_buffer, pageable, size, cudaMemcpyHostToDevice));
            histo_kernel<<<blocks, 256>>>(dev_buffer, size, dev_histo);
        },
        [&] { HANDLE_ERROR(cudaMemset(dev_histo, 0, 256 * sizeof(unsigned long long))); });
    printf("%-20s %7.2f ms, %.1f GB/s; of it page faults %.0f %%, prefetch %.0f %%, advice %.0f %%\n",
           "The bus:", bus, size / bus / 1e6, 100 * bus / times[PAGE_FAULTS], 100 * bus / times[PREFETCH],
           100 * bus / times[ADVICE]);
    return check(WAYS, ms, HostArray<unsigned long long>(dev_histo, 256), buffer);
}

// Task: main(): Make the histogram of managed memory. Get prop and create both events. Allocate managed
// memory for `size` bytes (buffer) and 256 bins (histo). The loop does the work in three ways. Clear the
// bins. With ADVICE: prefer `host` as the location of buffer and say that `device` accesses it. Record start.
// With PREFETCH: move buffer to `device`. Both only if prop.concurrentManagedAccess is not 0. Launch
// histo_kernel with two blocks of 256 threads for each multiprocessor, record stop, wait for it and compute
// elapsedTime. At the end destroy the events and free the memory. The check
// sees only the bins: whether pages have moved early shows in the times, on a GPU.
