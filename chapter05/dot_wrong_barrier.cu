// SPDX-License-Identifier: MIT
/*
 * dot_wrong_barrier: dot product with a divergent barrier, or without a barrier
 *
 * Teaches: A barrier waits for all threads of the block, so all of them must reach it. Inside the if,
 *          where it seems to save time, only the threads that add reach it: a divergent barrier, whose
 *          behaviour is undefined. The kernel may hang in a deadlock, or compute a wrong sum, or
 *          compute the right one until the compiler or the device changes. Without one of the two barriers of
 *          dot, a thread may read a value that another thread has not stored yet.
 * Terms:   divergent barrier, barrier, __syncthreads, deadlock, data race, warp divergence, tree reduction
 * Book:    5.3.1 (optimized incorrectly); R 7.3 (a barrier in both arms): --both-arms; T reduction
 *          (barriers): --left-out loop
 * Build:   nvcc -o dot_wrong_barrier chapter05/dot_wrong_barrier.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/dot_wrong_barrier
 * Differs: the kernel runs in a child process, which --time-limit ends. The status is 1, since no result is
 *          reliable (docs/book-vs-today.md: what devices do today). --both-arms has a barrier in each arm;
 *          --left-out runs the kernel of dot without its first barrier, or without that of the loop.
 * Expect:  1
 * Check:   --size 9000 | --left-out first (race) | --left-out loop (race)
 */
#include "../common/book.h"

#define imin(a, b)     ((a) < (b) ? (a) : (b))
#define sum_squares(x) ((x) * ((x) + 1) * (2 * (x) + 1) / 6) // 0² + 1² + ... + x²

#define N (33 * 1024)
const int threadsPerBlock = 256;

enum { NONE, FIRST, LOOP }; // the barrier that is left out

static size_t n = N;        // --size
static bool both_arms;      // --both-arms
static int left_out = NONE; // --left-out
static void run_in_child(void);
static bool check(float c, int blocks);

__global__ void dot(const float *a, const float *b, float *c, size_t n, bool both_arms) {
    __shared__ float cache[threadsPerBlock];

    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    unsigned cacheIndex = threadIdx.x;

    float temp = 0;
    while (tid < n) {
        temp += a[tid] * b[tid];
        tid += (size_t)blockDim.x * gridDim.x;
    }
    cache[cacheIndex] = temp;
    __syncthreads();

    for (unsigned i = blockDim.x / 2; i > 0; i /= 2) {
        if (cacheIndex < i) {
            cache[cacheIndex] += cache[cacheIndex + i];
            __syncthreads(); // wrong: the other threads of the block do not reach it
        } else if (both_arms)
            __syncthreads(); // as wrong: another call of the barrier, which the rest of the block reaches
                             // alone
    }
    if (cacheIndex == 0)
        c[blockIdx.x] = cache[0];
}

// A data race: some threads read values that others may not have stored yet. The sum depends on the order in
// which the threads run (on the CPU back end it is right with CUDA_CPU_SCHEDULE=reverse). At first all values
// are 0, so that one which is read too early is not what an earlier block has left there.
__global__ void dot_without(const float *a, const float *b, float *c, size_t n, int left_out) {
    __shared__ float cache[threadsPerBlock];
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    unsigned cacheIndex = threadIdx.x;
    cache[cacheIndex] = 0;
    __syncthreads();

    float temp = 0;
    while (tid < n) {
        temp += a[tid] * b[tid];
        tid += (size_t)blockDim.x * gridDim.x;
    }
    cache[cacheIndex] = temp;
    if (left_out != FIRST)
        __syncthreads();

    for (unsigned i = blockDim.x / 2; i > 0; i /= 2) {
        if (cacheIndex < i)
            cache[cacheIndex] += cache[cacheIndex + i];
        if (left_out != LOOP)
            __syncthreads();
    }
    if (cacheIndex == 0)
        c[blockIdx.x] = cache[0];
}

int main(int argc, char **argv) {
    settings(argc, argv);
    run_in_child(); // from here on this is a child process with a time limit
    int blocksPerGrid = imin(32, (n + threadsPerBlock - 1) / threadsPerBlock);
    float *a = (float *)malloc(n * sizeof(float)), *b = (float *)malloc(n * sizeof(float));
    float *partial_c = (float *)malloc(blocksPerGrid * sizeof(float));
    HANDLE_NULL(a && b && partial_c);

    float *dev_a, *dev_b, *dev_partial_c;
    HANDLE_ERROR(cudaMalloc(&dev_a, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_b, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_partial_c, blocksPerGrid * sizeof(float)));

    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = i * 2;
    }
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(float), cudaMemcpyHostToDevice));

    const char *const mistakes[] = {
        "Half of the threads do not reach the barrier in the loop: this may hang.",
        "The first barrier is left out: a value may be read before it is stored.",
        "The barrier of the loop is left out: a sum may be read before it is stored."};
    printf("%s\n", both_arms ? "Half of the threads wait at another call of the barrier: this may hang."
                             : mistakes[left_out]);
    fflush(stdout); // the kernel may end the process

    if (left_out == NONE)
        dot<<<blocksPerGrid, threadsPerBlock>>>(dev_a, dev_b, dev_partial_c, n, both_arms);
    else
        dot_without<<<blocksPerGrid, threadsPerBlock>>>(dev_a, dev_b, dev_partial_c, n, left_out);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(partial_c, dev_partial_c, blocksPerGrid * sizeof(float), cudaMemcpyDeviceToHost));
    float c = 0;
    for (int i = 0; i < blocksPerGrid; i++)
        c += partial_c[i];
    printf("Does GPU value %.6g = %.6g?\n", c, 2 * sum_squares(n - 1.0));
    if (check(c, blocksPerGrid))
        fprintf(stderr, "the sum is right, this time and on this device\n");

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_partial_c));
    free(a);
    free(b);
    free(partial_c);
    return EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/child.h" // continue_in_child()
#include "../common/checks/dot.h"   // check_dot()

static int time_limit = 20; // --time-limit

void settings(int argc, char **argv) {
    parse_options(
        argc, argv, "Dot product with a barrier that not every thread reaches, or without a barrier.", 0,
        {OPTION_SIZE("size", &n, 1, 1LL << 33, "elements in a vector"),
         OPTION_FLAG("both-arms", &both_arms, "a call of the barrier in each arm of the if"),
         OPTION_WORD("left-out", &left_out, "none|first|loop",
                     "the kernel of dot without one of its barriers"),
         OPTION_INT("time-limit", &time_limit, 1, 3600, "seconds after which the kernel is ended")});
    if (both_arms && left_out != NONE)
        quit(EXIT_USAGE, "only one of --both-arms and --left-out");
    if (options.list_devices)
        select_device();
}

// The device is selected in the child process, since this is a call of CUDA.
static void run_in_child(void) {
    continue_in_child(time_limit);
    select_device();
    require_memory(2 * n * sizeof(float), 2 * n * sizeof(float));
}

static bool check(float c, int blocks) {
    return check_dot("dot product", c, n, tree_additions(n, blocks, threadsPerBlock));
}

// Task: none: its kernel is wrong on purpose; the exercise is chapter05/dot
