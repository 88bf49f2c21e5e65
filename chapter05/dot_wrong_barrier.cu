// SPDX-License-Identifier: MIT
/*
 * dot_wrong_barrier: the dot product with a barrier that not every thread reaches
 *
 * Teaches: A barrier is for all threads of a block. Moved inside the if, where it looks cheaper, it
 *          waits for threads that never come: what happens then is undefined. It may hang, or give
 *          a wrong sum, or the right one until the next compiler or device.
 * Book:    5.3.1 (optimized incorrectly)
 * Run:     ./bin/chapter05/dot_wrong_barrier
 * Differs: the kernel runs in a process of its own, which is ended after --time-limit seconds. The
 *          status is 1 whatever comes out, since no result of this kernel can be relied on. The CPU
 *          back end names the barrier and both lines. A GPU need not: an H200 with CUDA 13.0 gives
 *          the right sum, and compute-sanitizer's four tools are silent.
 * Expect:  1
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../common/book.h"
#include "../common/memory.h"

#define imin(a, b) ((a) < (b) ? (a) : (b))

#define N (33 * 1024)

const unsigned threadsPerBlock = 256;

__global__ void dot(const float *a, const float *b, float *c, size_t n) {
    __shared__ float cache[threadsPerBlock];
    unsigned cacheIndex = threadIdx.x;

    float temp = 0;
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x; tid < n; tid += stride)
        temp += a[tid] * b[tid];
    cache[cacheIndex] = temp;

    __syncthreads();

    for (unsigned i = blockDim.x / 2; i != 0; i /= 2) {
        if (cacheIndex < i) {
            cache[cacheIndex] += cache[cacheIndex + i];
            __syncthreads(); // wrong: half of the threads pass by on the outside
        }
    }

    if (cacheIndex == 0)
        c[blockIdx.x] = cache[0];
}

// 0² + 1² + … + x²
static double sum_squares(double x) {
    return x * (x + 1) * (2 * x + 1) / 6;
}

// What any other program would have in main. Returns its exit status.
static int run(size_t n) {
    select_device();
    unsigned blocksPerGrid = imin(32, (n + threadsPerBlock - 1) / threadsPerBlock);
    size_t bytes = n * sizeof(float);
    require_memory(2 * bytes, 2 * bytes);
    float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes);
    float *partial_c = (float *)malloc(blocksPerGrid * sizeof(float));
    HANDLE_NULL(a);
    HANDLE_NULL(b);
    HANDLE_NULL(partial_c);
    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = 2 * a[i];
    }

    float *dev_a, *dev_b, *dev_partial_c;
    HANDLE_ERROR(cudaMalloc((void **)&dev_a, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_b, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_partial_c, blocksPerGrid * sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, bytes, cudaMemcpyHostToDevice));

    printf("Half of the threads do not come to the barrier in the loop: this may hang.\n");
    fflush(stdout); // while there is time

    dot<<<blocksPerGrid, threadsPerBlock>>>(dev_a, dev_b, dev_partial_c, n);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(partial_c, dev_partial_c, blocksPerGrid * sizeof(float),
                            cudaMemcpyDeviceToHost));
    inject_error(partial_c, blocksPerGrid * sizeof(float));
    float c = 0;
    for (unsigned i = 0; i < blocksPerGrid; i++)
        c += partial_c[i];
    double expected = 2 * sum_squares(n - 1);
    printf("Does GPU value %.6g = %.6g?\n", c, expected);
    if (check_value("dot product", c, expected, (n / 8192 + 64) * 0x1p-24)) // roundings, as in dot
        fprintf(stderr, "the sum is right, this time and on this device\n");

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_partial_c));
    free(a);
    free(b);
    free(partial_c);
    return EXIT_FAILURE;
}

// Runs the kernel in a child process and waits for that, not for the device: a kernel that hangs
// can hold its own process beyond every signal. The pipe is closed when the child is gone.
static int run_within(int seconds, size_t n) {
    int pipe_ends[2];
    if (pipe(pipe_ends) != 0)
        quit(EXIT_FAILURE, "cannot make a pipe");
    pid_t child = fork(); // before any CUDA call: a CUDA context does not outlive a fork
    if (child < 0)
        quit(EXIT_FAILURE, "cannot start a process");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // when this program is killed, the child goes too
        exit(run(n));
    }
    close(pipe_ends[1]);
    struct pollfd ended = {pipe_ends[0], POLLIN, 0};
    if (poll(&ended, 1, seconds * 1000) == 0) {
        kill(child, SIGKILL);
        poll(&ended, 1, 5000); // the driver may need a while to stop the device
        quit(EXIT_FAILURE, "ended after %d s: the threads wait for each other", seconds);
    }
    int status;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        quit(EXIT_FAILURE, "the process with the kernel did not end as it should");
    return WEXITSTATUS(status);
}

int main(int argc, char **argv) {
    size_t n = N;
    int time_limit = 20;
    const Option own[] = {
        OPTION_SIZE("size", &n, 1, (size_t)1 << 33, "elements in a vector"),
        OPTION_INT("time-limit", &time_limit, 1, 3600, "seconds after which the kernel is ended"),
        OPTION_END};
    parse_options(argc, argv, "A dot product whose barrier not every thread reaches.", 0, own);
    if (options.list_devices)
        select_device();

    return run_within(time_limit, n);
}
