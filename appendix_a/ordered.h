// SPDX-License-Identifier: MIT
// For dot --ordered: blocks that add in a fixed order. dot defines n, blocks, threadsPerBlock, block_sum()
// and the kernel with the lock.
#ifndef APPENDIX_A_ORDERED_H
#define APPENDIX_A_ORDERED_H

// counters[0]: the number of blocks that have started, counters[1]: of those that have added. Each block
// draws a ticket, computes the part with that number and adds when the tickets before it have added. So a
// block waits only for blocks that have started before it. If blockIdx.x were the ticket, the waiting blocks
// could fill the device while the block that they wait for has not started.
__global__ void dot_ordered(unsigned *counters, const float *a, const float *b, float *c, size_t n) {
    __shared__ unsigned ticket;
    if (threadIdx.x == 0)
        ticket = atomicAdd(&counters[0], 1);
    __syncthreads();
    float sum = block_sum(a, b, n, ticket);
    if (threadIdx.x == 0) {
        while (atomicAdd(&counters[1], 0) != ticket)
            ;
        __threadfence(); // memory fences, as in lock() and unlock()
        *c += sum;
        __threadfence();
        atomicAdd(&counters[1], 1);
    }
}

__global__ void partial_sums(const float *a, const float *b, float *partial_c, size_t n) {
    float sum = block_sum(a, b, n, blockIdx.x);
    if (threadIdx.x == 0)
        partial_c[blockIdx.x] = sum;
}

#define RUNS 100

// For --ordered: the sums of many runs, with the lock and in order. In order, each run must give the sum that
// the host gets when it adds the partial sums one after the other, as in chapter 5. Returns the exit status.
static int compare_orders(void) {
    int blocksPerGrid = blocks ? blocks : min_of(32, (n + threadsPerBlock - 1) / threadsPerBlock);
    float *a = host_array<float>(n), *b = host_array<float>(n), *partial_c = host_array<float>(blocksPerGrid);
    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = i * 2;
    }
    float *dev_a, *dev_b, *dev_c, *dev_partial_c;
    unsigned *dev_counters;
    HANDLE_ERROR(cudaMalloc(&dev_a, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_b, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_c, sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_counters, 2 * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc(&dev_partial_c, blocksPerGrid * sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(float), cudaMemcpyHostToDevice));
    Lock lock;
    lock.init();

    partial_sums<<<blocksPerGrid, threadsPerBlock>>>(dev_a, dev_b, dev_partial_c, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(partial_c, dev_partial_c, blocksPerGrid * sizeof(float), cudaMemcpyDeviceToHost));
    float of_host = 0;
    for (int i = 0; i < blocksPerGrid; i++)
        of_host += partial_c[i];
    printf("Added by the host: %.9g\n", of_host);

    bool ok = true;
    for (int ordered = 0; ordered < 2; ordered++) {
        float sums[RUNS];
        for (float &sum : sums) {
            HANDLE_ERROR(cudaMemset(dev_c, 0, sizeof(float)));
            HANDLE_ERROR(cudaMemset(dev_counters, 0, 2 * sizeof(unsigned)));
            if (ordered) {
                dot_ordered<<<blocksPerGrid, threadsPerBlock>>>(dev_counters, dev_a, dev_b, dev_c, n);
                HANDLE_LAUNCH();
            } else {
                dot<<<blocksPerGrid, threadsPerBlock>>>(lock, dev_a, dev_b, dev_c, n);
                HANDLE_LAUNCH();
            }
            HANDLE_ERROR(cudaMemcpy(&sum, dev_c, sizeof(float), cudaMemcpyDeviceToHost));
        }
        int bits[RUNS], expected[RUNS]; // compared as ints: every bit must be equal
        memcpy(bits, sums, sizeof(bits));
        for (int &each : expected)
            memcpy(&each, &of_host, sizeof(each));
        if (ordered)
            ok = check_ints("sum in order", bits, expected, RUNS) && ok;
        for (float sum : sums)
            ok = ok && check_dot("sum", sum, n, tree_additions(n, blocksPerGrid, threadsPerBlock));
        std::sort(bits, bits + RUNS);
        int different = std::unique(bits, bits + RUNS) - bits;
        printf("%-13s %d different sum%s in %d runs\n", ordered ? "In order:" : "With a lock:", different,
               different == 1 ? "" : "s", RUNS);
    }

    lock.release();
    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    HANDLE_ERROR(cudaFree(dev_counters));
    HANDLE_ERROR(cudaFree(dev_partial_c));
    free(a);
    free(b);
    free(partial_c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
