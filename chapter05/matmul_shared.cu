// SPDX-License-Identifier: MIT
/*
 * matmul_shared: matrix product by tiles in shared memory
 *
 * Teaches: The threads of a block need the same rows of a and columns of b. They load them together
 *          into shared memory, a tile of 32 x 32 elements at a time, and use each element 32 times. So
 *          global memory is read 32 times less often: the arithmetic intensity is 32 times as high. One
 *          barrier separates loading a tile from using it, and another one using it from loading the next.
 * Terms:   tiling, tile, shared memory, barrier, __syncthreads, matrix product, global memory,
 *          padding, arithmetic intensity
 * Book:    5.3.1 (course)
 * After:   chapter05/matmul_gmem
 * Build:   nvcc -o matmul_shared chapter05/matmul_shared.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/matmul_shared --size 1000 --tile 25
 * Differs: any width: tiles are padded with zeros. The course asks for a tile that divides the width;
 *          --truncate shows what happens otherwise, and ends with status 1.
 * Check:   --size 50 | --size 40 --tile 16
 */
#include <chrono>
#include "../common/book.h"
#include "../common/timing.h" // median_ms(); chapter 6 shows the events that it uses
#include "matmul.h"           // n, matmul_operations(), fill_matrix(), check_product()

static int tile = 3; // --tile: an index into `tiles`

// A tile has TILE x TILE elements, a block as many threads.
template <int TILE> __global__ void matmul(const float *a, const float *b, float *c, size_t n) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    unsigned x = threadIdx.x, y = threadIdx.y;
    size_t col = x + blockIdx.x * TILE;
    size_t row = y + blockIdx.y * TILE;

    float sum = 0;
    for (size_t first = 0; first < n; first += TILE) {
        // Where a tile extends beyond the edge it is padded with zeros, which do not change the sum.
        tile_a[y][x] = row < n && first + x < n ? a[row * n + first + x] : 0;
        tile_b[y][x] = first + y < n && col < n ? b[(first + y) * n + col] : 0;
        __syncthreads(); // the tiles are complete

        for (unsigned k = 0; k < TILE; k++)
            sum += tile_a[y][k] * tile_b[k][x];
        __syncthreads(); // all threads have used the tiles, so the next ones can be loaded
    }
    if (row < n && col < n)
        c[row * n + col] = sum;
}

static const struct {
    int width;
    void (*kernel)(const float *a, const float *b, float *c, size_t n);
} tiles[] = {{8, matmul<8>}, {16, matmul<16>}, {25, matmul<25>}, {32, matmul<32>}};

int main(int argc, char **argv) {
    settings(argc, argv);
    const int TILE = tiles[tile].width;
    auto kernel = tiles[tile].kernel;
    size_t bytes = n * n * sizeof(float);
    float *a = host_array<float>(n * n), *b = host_array<float>(n * n), *c = host_array<float>(n * n);
    fill_matrix(a);
    fill_matrix(b);

    float *dev_a, *dev_b, *dev_c;
    auto start = std::chrono::steady_clock::now();
    HANDLE_ERROR(cudaMalloc(&dev_a, bytes));
    HANDLE_ERROR(cudaMalloc(&dev_b, bytes));
    HANDLE_ERROR(cudaMalloc(&dev_c, bytes));

    HANDLE_ERROR(cudaMemcpy(dev_a, a, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, bytes, cudaMemcpyHostToDevice));
    dim3 blocks((n + TILE - 1) / TILE, (n + TILE - 1) / TILE), threads(TILE, TILE);
    kernel<<<blocks, threads>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(c, dev_c, bytes, cudaMemcpyDeviceToHost)); // waits for the kernel
    std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    printf("Time to multiply:  %.1f ms, with allocation and copies\n", elapsed.count());
    bool ok = check_product(a, b, c);

    // All bytes 0xff are NaN, so the check finds elements that the next launch does not write.
    HANDLE_ERROR(cudaMemset(dev_c, 0xff, bytes));
    float ms = median_ms([&] { kernel<<<blocks, threads>>>(dev_a, dev_b, dev_c, n); });
    HANDLE_ERROR(cudaMemcpy(c, dev_c, bytes, cudaMemcpyDeviceToHost));
    ok = ok && check_product(a, b, c);
    printf("Kernel:            %.3f ms, %.1f GFLOP/s\n", ms, matmul_operations() / ms / 1e6);
    print_bound(ms);
    printf("A block has %d warps, the last of %d lanes, and two tiles of %d bytes in all\n",
           (TILE * TILE + 31) / 32, (TILE * TILE - 1) % 32 + 1, 8 * TILE * TILE);
    printf("Reads of each element from global memory: %zu\n", (n + TILE - 1) / TILE);
    if (ok)
        printf("The product of the %zu x %zu matrices is right.\n", n, n);

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    free(c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

// The kernel of the course, which is right only when the width is a multiple of the tile: n / TILE drops the
// remainder, and nothing is tested at the edges or padded with zeros beyond them.
template <int TILE> __global__ void matmul_truncated(const float *a, const float *b, float *c, size_t n) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    unsigned x = threadIdx.x, y = threadIdx.y;
    size_t col = x + blockIdx.x * TILE, row = y + blockIdx.y * TILE;
    float sum = 0;
    for (size_t phase = 0; phase < n / TILE; phase++) {
        tile_a[y][x] = a[row * n + phase * TILE + x];
        tile_b[y][x] = b[(phase * TILE + y) * n + col];
        __syncthreads();
        for (unsigned k = 0; k < TILE; k++)
            sum += tile_a[y][k] * tile_b[k][x];
        __syncthreads();
    }
    c[row * n + col] = sum;
}

// Compares the truncated product with the right one. Returns the exit status of a wrong program.
static int show_truncated(size_t width) {
    size_t unwritten = 0, wrong = 0;
    HostArray<float> a(n * n);
    fill_matrix(a);
    DeviceArray<float> dev_a(a, n * n);
    fill_matrix(a);
    DeviceArray<float> dev_b(a, n * n), dev_c(n * n);
    dim3 blocks((n + width - 1) / width, (n + width - 1) / width), threads(width, width);
    tiles[tile].kernel<<<blocks, threads>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();
    HostArray<float> right(dev_c, n * n);

    HANDLE_ERROR(cudaMemset(dev_c, 0xff, n * n * sizeof(float))); // NaN
    void (*kernels[])(const float *, const float *, float *, size_t) = {
        matmul_truncated<8>, matmul_truncated<16>, matmul_truncated<25>, matmul_truncated<32>};
    auto kernel = kernels[tile];
    if (n >= width) {
        kernel<<<dim3(n / width, n / width), threads>>>(dev_a, dev_b, dev_c, n);
        HANDLE_LAUNCH();
    }
    HostArray<float> c(dev_c, n * n);
    for (size_t i = 0; i < n * n; i++) {
        unwritten += isnan(c[i]);
        wrong += !isnan(c[i]) && c[i] != right[i];
    }
    printf("%zu / %zu = %zu, so the last %zu rows and columns are left out: %zu elements are not written.\n",
           n, width, n / width, n % width, unwritten);
    printf("The other %zu sums lack %zu of %zu products: %zu are wrong.\n", n * n - unwritten, n % width, n,
           wrong);
    return EXIT_FAILURE;
}

// --phases. The kernel of the lesson for a product of width 4 by tiles of 2 x 2: trace[0], [1] and [2] become
// the elements of both tiles in the first phase and the sums after it, trace[3] to [5] those of the second.
const int SMALL = 4;
__global__ void trace_phases(const float *a, const float *b, float (*trace)[SMALL * SMALL]) {
    __shared__ float tile_a[2][2], tile_b[2][2];
    unsigned x = threadIdx.x, y = threadIdx.y, col = x + blockIdx.x * 2, row = y + blockIdx.y * 2;
    float sum = 0;
    for (unsigned first = 0; first < SMALL; first += 2, trace += 3) {
        trace[0][row * SMALL + col] = tile_a[y][x] = a[row * SMALL + first + x];
        trace[1][row * SMALL + col] = tile_b[y][x] = b[(first + y) * SMALL + col];
        __syncthreads();
        for (unsigned k = 0; k < 2; k++)
            sum += tile_a[y][k] * tile_b[k][x];
        trace[2][row * SMALL + col] = sum;
        __syncthreads();
    }
}

// a = 1 … 16 and b = 16 … 1 by rows. The sums after a phase are compared with the terms that it has added.
static int show_phases(void) {
    const int ALL = SMALL * SMALL;
    const char *const parts[] = {" a", ", b", ", sums"};
    HostArray<float> a(ALL), b(ALL);
    for (int i = 0; i < ALL; i++)
        b[ALL - 1 - i] = a[i] = i + 1;
    DeviceArray<float> dev_a(a, ALL), dev_b(b, ALL), dev_trace(6 * ALL);
    trace_phases<<<dim3(2, 2), dim3(2, 2)>>>(dev_a, dev_b, (float(*)[ALL]) + dev_trace);
    HANDLE_LAUNCH();
    HostArray<float> trace(dev_trace, 6 * ALL);
    for (int phase = 0; phase < 2; phase++)
        for (int block = 0; block < 4; block++) {
            printf("phase %d, block (%d, %d):", phase + 1, block % 2, block / 2);
            for (int part = 0; part < 3; part++) {
                const float *top = trace + (3 * phase + part) * ALL + block / 2 * 2 * SMALL + block % 2 * 2;
                printf("%s [%g %g; %g %g]", parts[part], top[0], top[1], top[SMALL], top[SMALL + 1]);
            }
            printf("\n");
        }
    bool ok = check_floats("phase", trace, 6 * ALL, 0, [&](size_t i) {
        size_t first = i / ALL / 3 * 2, part = i / ALL % 3, row = i % ALL / SMALL, col = i % SMALL;
        double sum = 0;
        for (size_t k = 0; k < first + 2; k++)
            sum += a[row * SMALL + k] * b[k * SMALL + col];
        return part == 2   ? sum
               : part == 0 ? a[row * SMALL + first + col % 2]
                           : b[(first + row % 2) * SMALL + col];
    });
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

void settings(int argc, char **argv) {
    bool with_cpu = false, phases = false, truncate = false;
    configure(argc, argv, "Multiplies two matrices by tiles in shared memory.", TIMES,
              {OPTION_SIZE("size", &n, 1, 65535, "width of the matrices"),
               OPTION_FLAG("cpu", &with_cpu, WITH_CPU),
               OPTION_WORD("tile", &tile, "8|16|25|32", "width of a tile"),
               OPTION_FLAG("phases", &phases, "prints the phases of a product of width 4 by tiles of 2"),
               OPTION_FLAG("truncate", &truncate, "wrong at sizes that the tile does not divide")});
    require_memory(3 * n * n * sizeof(float), 3 * n * n * sizeof(float));
    const size_t width = tiles[tile].width;
    if (phases)
        exit(show_phases());
    if (truncate)
        exit(show_truncated(width));
    if (with_cpu)
        exit(compare_with_cpu([width](const float *a, const float *b, float *c) {
            dim3 blocks((n + width - 1) / width, (n + width - 1) / width), threads(width, width);
            tiles[tile].kernel<<<blocks, threads>>>(a, b, c, n);
        }));
}

// Task: matmul(): Tiled matrix multiplication, c = a * b. The three matrices are n x n and row-major. Blocks
// of TILE x TILE threads cover c, one thread per element: the sum of the products of a row of a and a column
// of b. The block iterates over its rows of a and its columns of b in steps of TILE. In each step, every
// thread loads one element of a tile of a and one element of a tile of b into shared memory, with zero
// padding where a tile extends beyond the matrix. After a barrier, each thread adds TILE products from the
// two tiles to its sum. After another barrier, the next tiles may be loaded. All threads of the block reach
// all barriers. Only threads inside the matrix store a result.
