// SPDX-License-Identifier: MIT
/*
 * groups_dot: dot product with cooperative groups and a barrier for the whole grid
 *
 * Teaches: A group is an object that stands for threads: those of a tile of a warp, of the block, of the
 *          grid. reduce() adds one value of each thread of a tile, in registers, and sync() is the barrier
 *          of a group. A barrier of the grid needs a cooperative launch, whose blocks all run at the same
 *          time. After that barrier the same kernel adds the partial sums; in chapter 5 the host did so,
 *          after the kernel had ended.
 * Terms:   cooperative groups, cooperative launch, grid barrier, warp shuffle, reduction, occupancy
 * Book:    5.3.1 (after the book); T reduction (a barrier of the grid)
 * Since:   CUDA 11.0 (tiles and barriers: CUDA 9.0); the barrier of the grid: compute capability 6.0
 * Build:   nvcc -o groups_dot chapter13/groups_dot.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter13/groups_dot --size 1M
 * Differs: as chapter05/dot, but the grid has all blocks that the device can run at the same time, and one
 *          number comes back to the host.
 * Check:   --size 1000 | --size 100003
 */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include "../common/book.h"
#include "../common/checks/dot.h" // fill_dot(), check_dot(), fill_ones()

namespace cg = cooperative_groups;

#define N (33 * 1024)
const int threadsPerBlock = 256;

static size_t n = N; // --size
static bool check(float c, float *dev_a, float *dev_b, int blocks);

__global__ void dot(const float *a, const float *b, float *partial_c, float *c, size_t n) {
    cg::grid_group grid = cg::this_grid();
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block); // on every device of today: a warp
    __shared__ float cache[threadsPerBlock / 32];                    // one element for each tile

    // As in chapter 5, with the index of the thread in the grid and the number of threads of the grid.
    float temp = 0;
    for (size_t tid = grid.thread_rank(); tid < n; tid += grid.num_threads())
        temp += a[tid] * b[tid];

    // The threads of a tile exchange registers (warp shuffles): they need neither shared memory nor a
    // barrier, and each of them gets the sum. The sums of the tiles still go through shared memory.
    temp = cg::reduce(tile, temp, cg::plus<float>());
    if (tile.thread_rank() == 0)
        cache[tile.meta_group_rank()] = temp;
    block.sync(); // the same as __syncthreads()
    if (tile.meta_group_rank() == 0) {
        temp = tile.thread_rank() < tile.meta_group_size() ? cache[tile.thread_rank()] : 0;
        temp = cg::reduce(tile, temp, cg::plus<float>());
        if (tile.thread_rank() == 0)
            partial_c[grid.block_rank()] = temp;
    }

    // After the barrier all blocks have written their partial sums, and every thread sees them. As with
    // __syncthreads(), every thread has to reach the barrier, so no thread may return before it.
    grid.sync();
    if (grid.block_rank() == 0 && tile.meta_group_rank() == 0) {
        temp = 0;
        for (size_t i = tile.thread_rank(); i < grid.num_blocks(); i += tile.num_threads())
            temp += partial_c[i];
        temp = cg::reduce(tile, temp, cg::plus<float>());
        if (tile.thread_rank() == 0)
            *c = temp;
    }
}

int main(int argc, char **argv) {
    settings(argc, argv);

    // Blocks that wait for each other must all run at the same time. If there were more, those that run would
    // wait for blocks that cannot begin until others have ended. Such a launch fails with
    // cudaErrorCooperativeLaunchTooLarge.
    int blocksPerMultiprocessor;
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, options.device));
    HANDLE_ERROR(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocksPerMultiprocessor, dot, threadsPerBlock, 0));
    int blocksPerGrid = min_of(blocksPerMultiprocessor * prop.multiProcessorCount,
                               (n + threadsPerBlock - 1) / threadsPerBlock);

    float *a = (float *)malloc(n * sizeof(float)), *b = (float *)malloc(n * sizeof(float)), c;
    HANDLE_NULL(a && b);
    fill_dot(a, b, n);

    float *dev_a, *dev_b, *dev_partial_c, *dev_c;
    HANDLE_ERROR(cudaMalloc((void **)&dev_a, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_b, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_partial_c, blocksPerGrid * sizeof(float)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_c, sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(float), cudaMemcpyHostToDevice));

    // <<<>>> cannot ask for a cooperative launch. The arguments are passed by their addresses.
    void *arguments[] = {&dev_a, &dev_b, &dev_partial_c, &dev_c, &n};
    HANDLE_ERROR(cudaLaunchCooperativeKernel(dot, blocksPerGrid, threadsPerBlock, arguments, 0, 0));
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(&c, dev_c, sizeof(float), cudaMemcpyDeviceToHost));
    printf("Does GPU value %.6g = %.6g?\n", c, expected_dot(n));
    bool ok = check(c, dev_a, dev_b, blocksPerGrid);

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_partial_c));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/yardstick.h" // print_share()

void settings(int argc, char **argv) {
    configure(argc, argv, "Dot product in one launch, with cooperative groups.", TIMES,
              {OPTION_SIZE("size", &n, 1, 1LL << 33, "elements in a vector")});
    if (!device_attribute(cudaDevAttrCooperativeLaunch))
        quit(EXIT_WAIVED, "needs a device with cooperative launches");
    require_memory(3 * n * sizeof(float), 2 * n * sizeof(float));
}

// The kernel of section 5.3.1, for comparison
__global__ void dot_of_blocks(const float *a, const float *b, float *c, size_t n) {
    __shared__ float cache[threadsPerBlock];
    float temp = 0;
    for (size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x; tid < n;
         tid += (size_t)blockDim.x * gridDim.x)
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

static bool check_ones(float *dev_a, float *dev_b, float *dev_partial_c, float *dev_c, int blocks) {
    double ones = fill_ones(dev_a, dev_b, n);
    float count;
    void *arguments[] = {&dev_a, &dev_b, &dev_partial_c, &dev_c, &n};
    HANDLE_ERROR(cudaLaunchCooperativeKernel(dot, blocks, threadsPerBlock, arguments, 0, 0));
    HANDLE_ERROR(cudaMemcpy(&count, dev_c, sizeof(float), cudaMemcpyDeviceToHost));
    return check_value("ones", count, ones, 0);
}

// Times both ways from the launch until the host has the sum, with equal numbers of blocks. The order in
// which reduce() adds the values of a tile is not specified: at most 31 of the additions are behind each
// other.
static bool check(float c, float *dev_a, float *dev_b, int blocks) {
    DeviceArray<float> dev_partial_c(blocks), dev_c(1);
    HostArray<float> partial_c(blocks);
    float *partial = dev_partial_c, *sum = dev_c, book = 0, again = 0;
    double book_ms = median_ms([&] {
        dot_of_blocks<<<blocks, threadsPerBlock>>>(dev_a, dev_b, dev_partial_c, n);
        HANDLE_ERROR(cudaMemcpy(partial_c, partial, blocks * sizeof(float), cudaMemcpyDeviceToHost));
        book = 0;
        for (int i = 0; i < blocks; i++)
            book += partial_c[i];
    });
    void *arguments[] = {&dev_a, &dev_b, &partial, &sum, &n};
    double ms = median_ms([&] {
        HANDLE_ERROR(cudaLaunchCooperativeKernel(dot, blocks, threadsPerBlock, arguments, 0, 0));
        HANDLE_ERROR(cudaMemcpy(&again, sum, sizeof(float), cudaMemcpyDeviceToHost));
    });
    print_share("Tree in shared memory, sum on the host:", book_ms, 2 * n * sizeof(float));
    print_share("Tiles, and a barrier of the grid:", ms, 2 * n * sizeof(float));
    printf("The fastest: ./bin/chapter05/dot_ladder --size %zu\n", n);
    double additions = ceil((double)n / ((double)blocks * threadsPerBlock)) + 3 * 31 + blocks / 32 + 1;
    bool ok = check_dot("dot product of section 5.3.1", book, n, tree_additions(n, blocks, threadsPerBlock));
    ok = check_dot("dot product again", again, n, additions) && ok;
    ok = check_ones(dev_a, dev_b, partial, sum, blocks) && ok;
    return check_dot("dot product", c, n, additions) && ok;
}

// Task: dot(): The sum of a[i] * b[i] over all i < n, in *c. The kernel is launched cooperatively, with
// blocks of 256 threads. First, each thread adds the products of a grid-stride loop. Second, the threads of
// each tile of 32 add their sums with cg::reduce(); the sums of the 8 tiles of a block go through shared
// memory, and block b stores their sum in partial_c[b]. Third, after a barrier of the grid, one tile adds the
// elements of partial_c, one for each block, and one of its threads stores the sum in *c.
