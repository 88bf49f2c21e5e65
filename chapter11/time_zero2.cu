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
 * Run:     ./bin/chapter11/time_zero2 --reads 8
 * Differs: the result is compared with the closed form. The device flag for mapping is not set: with
 *          unified addressing, mapping is always enabled. The kernel is timed alone as well. --reads
 *          times kernels that read the vectors several times: mapped memory crosses the bus at each read,
 *          since it is not kept on the device. On an H200 a copy from pinned memory and a kernel with one
 *          read take 6.8 ms together, a kernel that reads mapped memory once takes 6.9 ms. With 8 reads the
 *          times are 19 ms and 56 ms. The CPU back end has no bus, so all versions use the same memory.
 * Check:   --size 100000 | --size 20000 --reads 2 | --size 300 --reads 1
 */
#include "../common/book.h"
#include "../common/proofs/dot.h"
#include "../common/timing.h"

#define N (33 * 1024 * 1024)
const int threadsPerBlock = 256;

static size_t n = N; // --size
static int blocksPerGrid;
static bool report(const char *name, float c, float elapsedTime, float kernel_ms);

__global__ void dot(const float *a, const float *b, float *c, size_t n) {
    __shared__ float cache[threadsPerBlock];

    float temp = 0;
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x; tid < n; tid += stride)
        temp += a[tid] * b[tid];
    cache[threadIdx.x] = temp;
    __syncthreads();

    for (unsigned i = blockDim.x / 2; i > 0; i /= 2) {
        if (threadIdx.x < i)
            cache[threadIdx.x] += cache[threadIdx.x + i];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        c[blockIdx.x] = cache[0];
}

// Pageable host memory: both vectors are copied to the device, and the partial sums are copied back.
static bool malloc_test(void) {
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    float *a = host_array<float>(n), *b = host_array<float>(n);
    float *partial_c = host_array<float>(blocksPerGrid);
    float *dev_a, *dev_b, *dev_partial_c, elapsedTime;
    HANDLE_ERROR(cudaMalloc(&dev_a, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_b, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_partial_c, blocksPerGrid * sizeof(float)));
    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = i * 2;
    }

    HANDLE_ERROR(cudaEventRecord(start, 0));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(float), cudaMemcpyHostToDevice));
    dot<<<blocksPerGrid, threadsPerBlock>>>(dev_a, dev_b, dev_partial_c, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(partial_c, dev_partial_c, blocksPerGrid * sizeof(float), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));

    float c = 0;
    for (int i = 0; i < blocksPerGrid; i++)
        c += partial_c[i];
    float ms = median_ms([&] { dot<<<blocksPerGrid, threadsPerBlock>>>(dev_a, dev_b, dev_partial_c, n); });

    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_partial_c));
    free(a);
    free(b);
    free(partial_c);
    return report("cudaMalloc", c, elapsedTime, ms);
}

// Mapped host memory: the kernel reads the vectors and writes the partial sums there.
static bool cuda_host_alloc_test(void) {
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    float *a, *b, *partial_c, *dev_a, *dev_b, *dev_partial_c, elapsedTime;
    const unsigned flags = cudaHostAllocMapped | cudaHostAllocWriteCombined;
    HANDLE_ERROR(cudaHostAlloc(&a, n * sizeof(float), flags));
    HANDLE_ERROR(cudaHostAlloc(&b, n * sizeof(float), flags));
    // The CPU reads the partial sums, so they are not write-combined.
    HANDLE_ERROR(cudaHostAlloc(&partial_c, blocksPerGrid * sizeof(float), cudaHostAllocMapped));
    HANDLE_ERROR(cudaHostGetDevicePointer(&dev_a, a, 0));
    HANDLE_ERROR(cudaHostGetDevicePointer(&dev_b, b, 0));
    HANDLE_ERROR(cudaHostGetDevicePointer(&dev_partial_c, partial_c, 0));
    for (size_t i = 0; i < n; i++) { // no 2 * a[i]: the CPU may read write-combined memory very slowly
        a[i] = i;
        b[i] = i * 2;
    }

    HANDLE_ERROR(cudaEventRecord(start, 0));
    dot<<<blocksPerGrid, threadsPerBlock>>>(dev_a, dev_b, dev_partial_c, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop)); // from here on the host sees what the kernel wrote
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));

    float c = 0;
    for (int i = 0; i < blocksPerGrid; i++)
        c += partial_c[i];
    float ms = median_ms([&] { dot<<<blocksPerGrid, threadsPerBlock>>>(dev_a, dev_b, dev_partial_c, n); });

    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFreeHost(a));
    HANDLE_ERROR(cudaFreeHost(b));
    HANDLE_ERROR(cudaFreeHost(partial_c));
    return report("cudaHostAlloc", c, elapsedTime, ms);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, options.device));
    if (!prop.canMapHostMemory)
        quit(EXIT_WAIVED, "needs a device that can map host memory");
    printf("Integrated: %s\n", prop.integrated ? "yes" : "no");
    blocksPerGrid = min_of(32, (n + threadsPerBlock - 1) / threadsPerBlock);

    bool ok = malloc_test();
    ok = cuda_host_alloc_test() && ok;
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

// The dot product `reads` times over, which reads both vectors each time.
__global__ void dot_repeated(const float *a, const float *b, float *c, size_t n, int reads) {
    __shared__ float cache[threadsPerBlock];

    float temp = 0;
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (int read = 0; read < reads; read++)
        for (size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x; tid < n; tid += stride)
            temp += a[tid] * b[tid];
    cache[threadIdx.x] = temp;
    __syncthreads();

    for (unsigned i = blockDim.x / 2; i > 0; i /= 2) {
        if (threadIdx.x < i)
            cache[threadIdx.x] += cache[threadIdx.x + i];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        c[blockIdx.x] = cache[0];
}

// For --reads: copies from pageable and from pinned memory, and none from mapped memory, each with kernels
// that read the vectors 1, 2, 4, … times. Returns the exit status.
static int compare_reads(int most) {
    enum { PAGEABLE, PINNED, MAPPED, KINDS };
    const char *const names[] = {"pageable, copied", "pinned, copied", "mapped"};
    float *a[KINDS], *b[KINDS], *dev_a[KINDS], *dev_b[KINDS];
    const unsigned mapped = cudaHostAllocMapped | cudaHostAllocWriteCombined;
    int attribute;
    HANDLE_ERROR(cudaDeviceGetAttribute(&attribute, cudaDevAttrIntegrated, options.device));
    printf("Integrated: %s\n", attribute ? "yes" : "no");
    HANDLE_ERROR(cudaDeviceGetAttribute(&attribute, cudaDevAttrPageableMemoryAccess, options.device));
    printf("Kernels read pageable memory: %s\n", attribute ? "yes" : "no");

    blocksPerGrid = min_of(32, (n + threadsPerBlock - 1) / threadsPerBlock);
    DeviceArray<float> dev_partial_c(blocksPerGrid), copy_of_a(n), copy_of_b(n);
    HostArray<float> pageable_a(n), pageable_b(n);
    dev_a[PAGEABLE] = dev_a[PINNED] = copy_of_a;
    dev_b[PAGEABLE] = dev_b[PINNED] = copy_of_b;
    a[PAGEABLE] = pageable_a;
    b[PAGEABLE] = pageable_b;
    for (int kind = PINNED; kind < KINDS; kind++) {
        unsigned flags = kind == MAPPED ? mapped : cudaHostAllocDefault;
        HANDLE_ERROR(cudaHostAlloc(&a[kind], n * sizeof(float), flags));
        HANDLE_ERROR(cudaHostAlloc(&b[kind], n * sizeof(float), flags));
    }
    HANDLE_ERROR(cudaHostGetDevicePointer(&dev_a[MAPPED], a[MAPPED], 0));
    HANDLE_ERROR(cudaHostGetDevicePointer(&dev_b[MAPPED], b[MAPPED], 0));
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < n; i++) {
            a[kind][i] = i;
            b[kind][i] = i * 2;
        }

    bool ok = true;
    double bytes = n * sizeof(float), per_thread = ceil((double)n / (blocksPerGrid * threadsPerBlock));
    int copying_wins = 0;
    for (int reads = 1; reads <= most; reads *= 2) {
        float ms[KINDS];
        printf("%4d read%s:", reads, reads == 1 ? "" : "s");
        for (int kind = 0; kind < KINDS; kind++) {
            // NaN, so that a missing copy or a missing launch shows
            HANDLE_ERROR(cudaMemset(dev_a[PINNED], 0xff, n * sizeof(float)));
            HANDLE_ERROR(cudaMemset(dev_b[PINNED], 0xff, n * sizeof(float)));
            HANDLE_ERROR(cudaMemset(dev_partial_c, 0xff, blocksPerGrid * sizeof(float)));
            ms[kind] = median_ms([&] {
                if (kind != MAPPED) {
                    HANDLE_ERROR(cudaMemcpy(dev_a[kind], a[kind], bytes, cudaMemcpyHostToDevice));
                    HANDLE_ERROR(cudaMemcpy(dev_b[kind], b[kind], bytes, cudaMemcpyHostToDevice));
                }
                dot_repeated<<<blocksPerGrid, threadsPerBlock>>>(dev_a[kind], dev_b[kind], dev_partial_c, n,
                                                                 reads);
            });
            HostArray<float> partial_c(dev_partial_c, blocksPerGrid);
            float c = 0;
            for (int i = 0; i < blocksPerGrid; i++)
                c += partial_c[i];
            printf("  %s %.3f ms", names[kind], ms[kind]);
            // `reads` is a power of two, so the division is exact.
            double additions = reads * per_thread + log2(threadsPerBlock) + blocksPerGrid;
            ok = check_dot(names[kind], c / reads, n, additions) && ok;
        }
        printf("\n");
        if (!copying_wins && ms[PINNED] < ms[MAPPED])
            copying_wins = reads;
    }
    if (copying_wins)
        printf("Copying from pinned memory is faster from %d read%s on.\n", copying_wins,
               copying_wins == 1 ? "" : "s");
    else
        printf("Mapped memory is faster with every number of reads.\n");

    for (int kind = PINNED; kind < KINDS; kind++) {
        HANDLE_ERROR(cudaFreeHost(a[kind]));
        HANDLE_ERROR(cudaFreeHost(b[kind]));
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// With --reads the program ends in this function, and main, which has the book's version, does not run.
void settings(int argc, char **argv) {
    int reads = 0;
    configure(argc, argv, "Dot product of vectors in host memory.", TIMES,
              {OPTION_SIZE("size", &n, 1, (size_t)1 << 33, "elements in a vector"),
               OPTION_INT("reads", &reads, 1, 1024,
                          "compare kernels that read the vectors once, twice, … up to N times")});
    require_memory((reads ? 6 : 2) * n * sizeof(float), 2 * n * sizeof(float));
    if (reads)
        exit(compare_reads(reads));
}

// Each product goes through the additions of its thread, those of the tree, and those on the host.
static bool report(const char *name, float c, float elapsedTime, float kernel_ms) {
    double bytes = 2.0 * n * sizeof(float); // both vectors are read
    double per_thread = ceil((double)n / (blocksPerGrid * threadsPerBlock));
    printf("Value calculated:  %f\n", c);
    printf("Time using %s:  %3.1f ms, %.3f GB/s; kernel %.3f ms, %.3f GB/s\n", name, elapsedTime,
           bytes / elapsedTime / 1e6, kernel_ms, bytes / kernel_ms / 1e6);
    return check_dot(name, c, n, per_thread + log2(threadsPerBlock) + blocksPerGrid);
}

// Task: cuda_host_alloc_test(): Compute the dot product as malloc_test() does, but without copies. a and b
// are page-locked, mapped and write-combined host memory; partial_c is page-locked and mapped. Get the device
// pointers of the mapped memory with cudaHostGetDevicePointer(), and pass them to the kernel. elapsedTime is
// the time between two events, one recorded before the launch and one after it. The host reads the partial
// sums only after it has waited for the second event. Then measure the launch alone with median_ms(). Free
// all memory, destroy the events, and return
// report("cudaHostAlloc", the sum, elapsedTime, the time of the launch).
