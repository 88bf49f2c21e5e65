// SPDX-License-Identifier: MIT
/*
 * time_zero2: dot product of vectors that the device reads from host memory (zero-copy)
 *
 * Teaches: Mapped memory is page-locked host memory with a device address: a kernel reads and writes it
 *          over PCIe, without a copy (zero-copy). For data that a kernel uses once this is faster than a
 *          copy from pageable memory; data that it uses several times should be copied to device memory.
 *          Write-combined memory is not cached by the CPU, so the device can read it faster. An integrated
 *          device shares the memory of the host, so there zero-copy saves the copy and loses nothing.
 * Terms:   zero-copy, mapped memory, page-locked memory, pageable memory, write-combined memory, PCIe,
 *          unified addressing
 * Book:    11.2
 * Build:   nvcc -o time_zero2 chapter11/time_zero2.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter11/time_zero2 --reads 8
 * Differs: the result is compared with the closed form. The kernel is timed alone as well. --reads runs the
 *          kernel several times: mapped memory crosses the bus each time, since it is not kept on the device.
 * Check:   --size 100000 | --size 20000 --reads 2 | --size 300 --reads 1
 */
#include "../common/book.h"

#define imin(a, b) ((a) < (b) ? (a) : (b))
#define N          (33 * 1024 * 1024)
const int threadsPerBlock = 256;

static size_t n = N;      // --size
static int reads = 0;     // --reads
static int blocksPerGrid; // settings() sets it: imin(32, (n + threadsPerBlock - 1) / threadsPerBlock)
static bool ok = true;    // false when check() has found a wrong sum
static int compare_reads(void);
static void check(const char *name, float c, const float *dev_a, const float *dev_b, float *dev_partial_c);
static void print_time(const char *name, float elapsedTime);

__global__ void dot(size_t size, const float *a, const float *b, float *c) {
    __shared__ float cache[threadsPerBlock];
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    int cacheIndex = threadIdx.x;

    float temp = 0;
    while (tid < size) {
        temp += a[tid] * b[tid];
        tid += (size_t)blockDim.x * gridDim.x;
    }
    cache[cacheIndex] = temp;
    __syncthreads();

    for (int i = blockDim.x / 2; i > 0; i /= 2) {
        if (cacheIndex < i)
            cache[cacheIndex] += cache[cacheIndex + i];
        __syncthreads();
    }
    if (cacheIndex == 0)
        c[blockIdx.x] = cache[0];
}

// Pageable host memory: both vectors are copied to the device, and the partial sums are copied back.
// Returns milliseconds.
static float malloc_test(size_t size) {
    cudaEvent_t start, stop;
    float *a, *b, c, *partial_c;
    float *dev_a, *dev_b, *dev_partial_c;
    float elapsedTime;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    a = (float *)malloc(size * sizeof(float));
    b = (float *)malloc(size * sizeof(float));
    partial_c = (float *)malloc(blocksPerGrid * sizeof(float));
    HANDLE_NULL(a && b && partial_c);
    HANDLE_ERROR(cudaMalloc(&dev_a, size * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_b, size * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_partial_c, blocksPerGrid * sizeof(float)));
    for (size_t i = 0; i < size; i++) {
        a[i] = i;
        b[i] = i * 2;
    }

    HANDLE_ERROR(cudaEventRecord(start, 0));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, size * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, size * sizeof(float), cudaMemcpyHostToDevice));
    dot<<<blocksPerGrid, threadsPerBlock>>>(size, dev_a, dev_b, dev_partial_c);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(partial_c, dev_partial_c, blocksPerGrid * sizeof(float), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));

    c = 0;
    for (int i = 0; i < blocksPerGrid; i++)
        c += partial_c[i];
    printf("Value calculated:  %f\n", c);
    check("cudaMalloc", c, dev_a, dev_b, dev_partial_c);

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_partial_c));
    free(a);
    free(b);
    free(partial_c);
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    return elapsedTime;
}

// Mapped host memory: the kernel reads the vectors and writes the partial sums there.
static float cuda_host_alloc_test(size_t size) {
    cudaEvent_t start, stop;
    float *a, *b, c, *partial_c;
    float *dev_a, *dev_b, *dev_partial_c;
    float elapsedTime;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    const unsigned flags = cudaHostAllocWriteCombined | cudaHostAllocMapped;
    HANDLE_ERROR(cudaHostAlloc(&a, size * sizeof(float), flags));
    HANDLE_ERROR(cudaHostAlloc(&b, size * sizeof(float), flags));
    // The CPU reads the partial sums, so they are not write-combined.
    HANDLE_ERROR(cudaHostAlloc(&partial_c, blocksPerGrid * sizeof(float), cudaHostAllocMapped));
    for (size_t i = 0; i < size; i++) { // no 2 * a[i]: the CPU may read write-combined memory very slowly
        a[i] = i;
        b[i] = i * 2;
    }
    HANDLE_ERROR(cudaHostGetDevicePointer(&dev_a, a, 0));
    HANDLE_ERROR(cudaHostGetDevicePointer(&dev_b, b, 0));
    HANDLE_ERROR(cudaHostGetDevicePointer(&dev_partial_c, partial_c, 0));

    HANDLE_ERROR(cudaEventRecord(start, 0));
    dot<<<blocksPerGrid, threadsPerBlock>>>(size, dev_a, dev_b, dev_partial_c);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaDeviceSynchronize()); // from here on the host sees what the kernel wrote
    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));

    c = 0;
    for (int i = 0; i < blocksPerGrid; i++)
        c += partial_c[i];
    printf("Value calculated:  %f\n", c);
    check("cudaHostAlloc", c, dev_a, dev_b, dev_partial_c);

    HANDLE_ERROR(cudaFreeHost(a));
    HANDLE_ERROR(cudaFreeHost(b));
    HANDLE_ERROR(cudaFreeHost(partial_c));
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    return elapsedTime;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    if (reads)
        return compare_reads();
    cudaDeviceProp prop;
    int whichDevice;
    HANDLE_ERROR(cudaGetDevice(&whichDevice));
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, whichDevice));
    if (!prop.canMapHostMemory)
        quit(EXIT_WAIVED, "needs a device that can map host memory");
    printf("Integrated: %s\n", prop.integrated ? "yes" : "no");
    HANDLE_ERROR(cudaSetDeviceFlags(cudaDeviceMapHost)); // with unified addressing mapping is always on

    float elapsedTime = malloc_test(n);
    print_time("cudaMalloc", elapsedTime);
    elapsedTime = cuda_host_alloc_test(n);
    print_time("cudaHostAlloc", elapsedTime);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include <numeric>                // accumulate()
#include "../common/checks/dot.h" // check_dot(), fill_dot(), tree_additions()
#include "../common/timing.h"

void settings(int argc, char **argv) {
    configure(argc, argv, "Dot product of vectors in host memory.", TIMES,
              {OPTION_SIZE("size", &n, 1, 1LL << 33, "elements in a vector"),
               OPTION_INT("reads", &reads, 1, 1024,
                          "compare kernels that read the vectors once, twice, … up to N times")});
    require_memory((reads ? 6 : 2) * n * sizeof(float), 2 * n * sizeof(float));
    blocksPerGrid = imin(32, (n + threadsPerBlock - 1) / threadsPerBlock);
}

static float kernel_ms; // of the last test; 0 before it calls check()

// Times the kernel alone. Compares the sum with the closed form, and whether the kernel has read host memory.
static void check(const char *name, float c, const float *dev_a, const float *dev_b, float *dev_partial_c) {
    kernel_ms = median_ms([&] { dot<<<blocksPerGrid, threadsPerBlock>>>(n, dev_a, dev_b, dev_partial_c); });
    cudaPointerAttributes memory;
    HANDLE_ERROR(cudaPointerGetAttributes(&memory, dev_a));
    bool on_host = memory.type == cudaMemoryTypeHost, mapped = strcmp(name, "cudaHostAlloc") == 0;
    ok = check_dot(name, c, n, tree_additions(n, blocksPerGrid, threadsPerBlock)) && ok;
    ok = check_value("vectors in host memory", on_host, mapped, 0) && ok;
}

// The first products are smaller than the tolerance, so a sum without them would pass. With ones in place of
// the vectors each product adds 1; at most 2^24 are added, so that the sum is exact in float.
static void check_ones(void) {
    size_t count = min_of(n, 1 << 24);
    DeviceArray<float> dev_ones(HostArray<float>(count, 1), count), dev_partial_c(blocksPerGrid, 0xff);
    dot<<<blocksPerGrid, threadsPerBlock>>>(count, dev_ones, dev_ones, dev_partial_c);
    HANDLE_LAUNCH();
    HostArray<float> partial_c(dev_partial_c, blocksPerGrid);
    ok = check_value("ones", std::accumulate(+partial_c, partial_c + blocksPerGrid, 0.0), count, 0) && ok;
}

static void print_time(const char *name, float elapsedTime) {
    double bytes = 2.0 * n * sizeof(float); // both vectors are read
    check_ones();
    ok = check_value("elapsed time", elapsedTime > 0, 1, 0) && ok;
    ok = check_value("tests that called check()", kernel_ms > 0, 1, 0) && ok;
    printf("Time using %s:  %3.1f ms, %.3f GB/s; kernel %.3f ms, %.3f GB/s\n", name, elapsedTime,
           bytes / elapsedTime / 1e6, kernel_ms, bytes / kernel_ms / 1e6);
    kernel_ms = 0;
}

// For --reads: copies from pageable and from pinned memory, and none from mapped memory, each with as many
// runs of the kernel, which reads the vectors once. Returns the exit status.
static int compare_reads(void) {
    enum { PAGEABLE, PINNED, MAPPED, KINDS };
    const char *const names[] = {"pageable, copied", "pinned, copied", "mapped"};
    const unsigned mapped = cudaHostAllocMapped | cudaHostAllocWriteCombined;
    printf("Integrated: %s\n", device_attribute(cudaDevAttrIntegrated) ? "yes" : "no");
    printf("Kernels read pageable memory: %s\n",
           device_attribute(cudaDevAttrPageableMemoryAccess) ? "yes" : "no");

    DeviceArray<float> dev_partial_c(blocksPerGrid), copy_of_a(n), copy_of_b(n);
    HostArray<float> pageable_a(n), pageable_b(n);
    PinnedArray<float> pinned_a(n), pinned_b(n), mapped_a(n, mapped), mapped_b(n, mapped);
    float *a[] = {pageable_a, pinned_a, mapped_a}, *dev_a[KINDS] = {copy_of_a, copy_of_a};
    float *b[] = {pageable_b, pinned_b, mapped_b}, *dev_b[KINDS] = {copy_of_b, copy_of_b};
    HANDLE_ERROR(cudaHostGetDevicePointer(&dev_a[MAPPED], a[MAPPED], 0));
    HANDLE_ERROR(cudaHostGetDevicePointer(&dev_b[MAPPED], b[MAPPED], 0));
    for (int kind = 0; kind < KINDS; kind++)
        fill_dot(a[kind], b[kind], n);

    size_t bytes = n * sizeof(float);
    int copying_wins = 0;
    for (int times = 1; times <= reads; times *= 2) {
        float ms[KINDS];
        printf("%4d read%s:", times, times == 1 ? "" : "s");
        for (int kind = 0; kind < KINDS; kind++) {
            // NaN, so that a missing copy or a missing launch shows
            HANDLE_ERROR(cudaMemset(copy_of_a, 0xff, bytes));
            HANDLE_ERROR(cudaMemset(copy_of_b, 0xff, bytes));
            HANDLE_ERROR(cudaMemset(dev_partial_c, 0xff, blocksPerGrid * sizeof(float)));
            ms[kind] = median_ms([&] {
                if (kind != MAPPED) {
                    HANDLE_ERROR(cudaMemcpy(dev_a[kind], a[kind], bytes, cudaMemcpyHostToDevice));
                    HANDLE_ERROR(cudaMemcpy(dev_b[kind], b[kind], bytes, cudaMemcpyHostToDevice));
                }
                for (int i = 0; i < times; i++)
                    dot<<<blocksPerGrid, threadsPerBlock>>>(n, dev_a[kind], dev_b[kind], dev_partial_c);
            });
            HostArray<float> partial_c(dev_partial_c, blocksPerGrid);
            float c = 0;
            for (int i = 0; i < blocksPerGrid; i++)
                c += partial_c[i];
            printf("  %s %.3f ms", names[kind], ms[kind]);
            ok = check_dot(names[kind], c, n, tree_additions(n, blocksPerGrid, threadsPerBlock)) && ok;
        }
        printf("\n");
        if (!copying_wins && ms[PINNED] < ms[MAPPED])
            copying_wins = times;
    }
    if (CPU_BACKEND)
        return ok ? EXIT_SUCCESS : EXIT_FAILURE; // host and device memory are one: no bus makes a difference
    if (copying_wins)
        printf("Copying from pinned memory is faster from %d read%s on.\n", copying_wins,
               copying_wins == 1 ? "" : "s");
    else
        printf("Mapped memory is faster with every number of reads.\n");
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// Task: malloc_test(): Compute the dot product of a[i] = i and b[i] = i * 2, for i below size. a, b and
// partial_c come from malloc(), dev_a, dev_b and dev_partial_c from cudaMalloc(). Fill a and b. Record start,
// copy both to the device, launch dot() with blocksPerGrid blocks, copy the partial sums back, record stop,
// wait for it, and compute elapsedTime. The host adds the partial sums. Print the sum with
// printf("Value calculated:  %f\n", the sum), and call check("cudaMalloc", the sum, dev_a, dev_b,
// dev_partial_c). Free all memory, destroy the events, and return elapsedTime.
// cuda_host_alloc_test(): The same, but without copies. a and b are page-locked, mapped and write-combined
// host memory. partial_c is page-locked and mapped. Get the device pointers of the mapped memory with
// cudaHostGetDevicePointer(), and pass them to the kernel. Between the launch and the record of stop, wait
// for the device: the host adds the partial sums only after that. The name for check() is "cudaHostAlloc".
