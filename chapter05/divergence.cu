// SPDX-License-Identifier: MIT
/*
 * divergence: the cost of lanes that take different branches
 *
 * Teaches: If lanes of a warp take different branches, the branches run one after the other: while some lanes
 *          execute their branch, the others wait. So the time of a warp grows with the number of branches
 *          that its lanes take. In a reduction that adds neighbours, warps diverge in every step. In one
 *          that adds the second half to the first, only one warp diverges, and only in the last steps.
 * Terms:   warp divergence, warp, lane, tree reduction, interleaved addressing, sequential addressing,
 *          predication
 * Book:    5.3.1 (course); R warps (divergence); T reduction (divergence)
 * After:   chapter05/dynamic_shared
 * Build:   nvcc -o divergence chapter05/divergence.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/divergence --steps 10000
 * Differs: on the CPU back end the lanes of a warp always run one after the other, so the cycles hardly
 *          depend on the number of paths.
 * Check:   --steps 37
 */
#include "../common/book.h"

#define LANES   32
#define THREADS 256 // in the block of the reductions

static int steps = 1000; // --steps of a path
static bool check_lanes(const unsigned *x, int paths, long long cycles);
static bool check_diverged(int sum, const int *diverged, int total, bool halves);

// Path k, as a case of a switch. All paths have the same length. Each has its own constants, because the
// compiler would merge equal paths. Each is a loop, because the compiler replaces a short branch by
// predicated instructions: all lanes execute them, and they have an effect only in the lanes whose condition
// is true. With unroll 1 the compiler does not join steps of a path.
#define PATH(k)                                                                                              \
    case k:                                                                                                  \
        _Pragma("unroll 1") for (int i = 0; i < steps; i++) value = value * (8 * (k) + 13) + (k) + 1;        \
        break;
#define PATHS(k) PATH(k) PATH(k + 1) PATH(k + 2) PATH(k + 3) PATH(k + 4) PATH(k + 5) PATH(k + 6) PATH(k + 7)

// Lane l takes path l mod paths. The cycles are those of the whole warp, in the fastest of four runs.
__global__ void diverge(int paths, int steps, unsigned *x, long long *cycles) {
    int lane = threadIdx.x;
    long long least = LLONG_MAX;
    for (int run = 0; run < 4; run++) {
        __syncwarp();
        long long start = clock64();
        unsigned value = lane;
        switch (lane % paths) {
            PATHS(0)
            PATHS(8)
            PATHS(16)
            PATHS(24)
        }
        x[lane] = value;
        __syncwarp();
        least = min(least, clock64() - start);
    }
    if (lane == 0)
        *cycles = least;
}

// Parallel reduction (sum) of a block. With `halves`, thread t adds element t + s in each step, as in dot.
// Without, the active threads are those whose number is a multiple of 2s, and each adds its neighbour at
// distance s. diverged[w] counts the steps in which some lanes of warp w add and others do not.
__global__ void reduce(const int *in, bool halves, int *sum, int *diverged) {
    __shared__ int cache[THREADS];
    int t = threadIdx.x, count = 0;
    cache[t] = in[t];
    __syncthreads();
    for (int step = 1; step < THREADS; step *= 2) {
        int distance = halves ? THREADS / 2 / step : step;
        bool adds = halves ? t < distance : t % (2 * step) == 0;
        unsigned adding = __ballot_sync(0xffffffff, adds); // a bit for each lane that adds
        count += adding != 0 && adding != 0xffffffff;
        if (adds)
            cache[t] += cache[t + distance];
        __syncthreads();
    }
    if (t % LANES == 0)
        diverged[t / LANES] = count;
    if (t == 0)
        *sum = cache[0];
}

int main(int argc, char **argv) {
    settings(argc, argv);
    unsigned x[LANES], *dev_x;
    long long cycles = 0, one_path = 0, *dev_cycles;
    HANDLE_ERROR(cudaMalloc(&dev_x, sizeof(x)));
    HANDLE_ERROR(cudaMalloc(&dev_cycles, sizeof(cycles)));
    int right = 0; // checks that have passed
    for (int paths = 1; paths <= LANES; paths *= 2) {
        HANDLE_ERROR(cudaMemset(dev_x, 0xff, sizeof(x)));
        diverge<<<1, LANES>>>(paths, steps, dev_x, dev_cycles);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpy(x, dev_x, sizeof(x), cudaMemcpyDeviceToHost));
        HANDLE_ERROR(cudaMemcpy(&cycles, dev_cycles, sizeof(cycles), cudaMemcpyDeviceToHost));
        if (paths == 1)
            one_path = cycles;
        printf("%2d path%s  %10lld cycles, %5.2f times those of one path\n", paths,
               paths == 1 ? ": " : "s:", cycles, (double)cycles / one_path);
        right += check_lanes(x, paths, cycles);
    }

    int in[THREADS], *dev_in, *dev_sum, *dev_diverged;
    for (int i = 0; i < THREADS; i++)
        in[i] = i * i;
    HANDLE_ERROR(cudaMalloc(&dev_in, THREADS * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_sum, sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_diverged, THREADS / LANES * sizeof(int)));
    HANDLE_ERROR(cudaMemcpy(dev_in, in, THREADS * sizeof(int), cudaMemcpyHostToDevice));
    for (int halves = 0; halves <= 1; halves++) {
        int sum, diverged[THREADS / LANES], total = 0;
        HANDLE_ERROR(cudaMemset(dev_sum, 0xff, sizeof(sum)));
        reduce<<<1, THREADS>>>(dev_in, halves, dev_sum, dev_diverged);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpy(&sum, dev_sum, sizeof(sum), cudaMemcpyDeviceToHost));
        HANDLE_ERROR(cudaMemcpy(diverged, dev_diverged, sizeof(diverged), cudaMemcpyDeviceToHost));
        for (int w = 0; w < THREADS / LANES; w++)
            total += diverged[w];
        printf("%s: in 8 steps, %d times a warp diverges\n",
               halves ? "Adding the second half to the first" : "Adding neighbours", total);
        right += check_diverged(sum, diverged, total, halves);
    }

    HANDLE_ERROR(cudaFree(dev_x));
    HANDLE_ERROR(cudaFree(dev_cycles));
    HANDLE_ERROR(cudaFree(dev_in));
    HANDLE_ERROR(cudaFree(dev_sum));
    HANDLE_ERROR(cudaFree(dev_diverged));
    return check_value("right rows", right, 6 + 2, 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Times warps whose lanes take different branches.", TIMES,
              {OPTION_INT("steps", &steps, 1, 1000000, "multiplications in a path")});
}

// The cycles must have been measured.
static bool check_lanes(const unsigned *x, int paths, long long cycles) {
    return check_ints("lanes", (const int *)x, LANES,
                      [=](int lane) {
                          unsigned value = lane, path = lane % paths;
                          for (int i = 0; i < steps; i++)
                              value = value * (8 * path + 13) + path + 1;
                          return (int)value;
                      }) &&
           check_value("cycles were measured", cycles > 0 && cycles < LLONG_MAX, 1, 0);
}

// Five of the eight steps of 256 threads are within a warp. Adding the second half to the first, only warp 0
// adds there. Adding neighbours, all warps add in those steps, and later lane 0 of every 2nd, 4th and 8th
// warp.
static bool check_diverged(int sum, const int *diverged, int total, bool halves) {
    bool ok = check_ints("steps in which a warp diverges", diverged, THREADS / LANES, [=](int w) {
        return halves ? 5 * (w == 0) : 5 + (w % 2 == 0) + (w % 4 == 0) + (w % 8 == 0);
    });
    ok = check_value("sum", sum, (THREADS - 1) * THREADS * (2 * THREADS - 1) / 6, 0) && ok;
    return check_value("diverging steps of all warps", total, halves ? 5 : 47, 0) && ok;
}

// Task: diverge(): The grid has one block, which is one warp. Lane l takes path l % paths, a case of a
// switch that the macros PATHS(0), PATHS(8), PATHS(16) and PATHS(24) write. It changes the variable value,
// which begins as l and is stored in x[l]. Measure the cycles of this with clock64(). All lanes call
// __syncwarp() before each of the two readings of the clock. Do this four times. Lane 0 stores the smallest
// number of cycles in *cycles. reduce(): One block of THREADS threads adds in[0] to in[THREADS - 1] with a
// tree reduction in shared memory. Thread 0 stores the sum in *sum. The variable step takes the values 1, 2,
// 4, ... below THREADS. If `halves` is true, distance = THREADS / 2 / step, and thread t is active if t <
// distance. If `halves` is false, distance = step, and thread t is active if t is a multiple of 2 * step. An
// active thread t adds element t + distance to element t. All threads of the block reach a barrier after each
// step. In each step,
// __ballot_sync() with this condition returns the mask of the active lanes of the warp. diverged[w] is the
// number of steps in which warp w has both active and inactive lanes.
