// SPDX-License-Identifier: MIT
// For time_zero2 --reads: vectors that a kernel reads several times, copied or mapped. time_zero2 defines n,
// threadsPerBlock and blocksPerGrid.
#ifndef CHAPTER11_REPEATED_READS_H
#define CHAPTER11_REPEATED_READS_H

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
    float *a[KINDS], *b[KINDS], *dev_a[KINDS], *dev_b[KINDS], *dev_partial_c, partial_c[32];
    const unsigned mapped = cudaHostAllocMapped | cudaHostAllocWriteCombined;
    int attribute;
    HANDLE_ERROR(cudaDeviceGetAttribute(&attribute, cudaDevAttrIntegrated, options.device));
    printf("Integrated: %s\n", attribute ? "yes" : "no");
    HANDLE_ERROR(cudaDeviceGetAttribute(&attribute, cudaDevAttrPageableMemoryAccess, options.device));
    printf("Kernels read pageable memory: %s\n", attribute ? "yes" : "no");

    blocksPerGrid = min_of(32, (n + threadsPerBlock - 1) / threadsPerBlock);
    HANDLE_ERROR(cudaMalloc(&dev_partial_c, blocksPerGrid * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_a[PINNED], n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_b[PINNED], n * sizeof(float)));
    dev_a[PAGEABLE] = dev_a[PINNED];
    dev_b[PAGEABLE] = dev_b[PINNED];
    a[PAGEABLE] = host_array<float>(n);
    b[PAGEABLE] = host_array<float>(n);
    for (int kind = PINNED; kind < KINDS; kind++) {
        HANDLE_ERROR(
            cudaHostAlloc(&a[kind], n * sizeof(float), kind == MAPPED ? mapped : cudaHostAllocDefault));
        HANDLE_ERROR(
            cudaHostAlloc(&b[kind], n * sizeof(float), kind == MAPPED ? mapped : cudaHostAllocDefault));
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
            HANDLE_ERROR(
                cudaMemcpy(partial_c, dev_partial_c, blocksPerGrid * sizeof(float), cudaMemcpyDeviceToHost));
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
    HANDLE_ERROR(cudaFree(dev_a[PINNED]));
    HANDLE_ERROR(cudaFree(dev_b[PINNED]));
    HANDLE_ERROR(cudaFree(dev_partial_c));
    free(a[PAGEABLE]);
    free(b[PAGEABLE]);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
