// SPDX-License-Identifier: MIT
/*
 * scan: prefix sums, and stream compaction with them
 *
 * Teaches: A prefix sum gives each element its index in the output. An exclusive scan adds all elements
 *          before each one; of flags that are 0 or 1 it counts the elements that are kept so far, which
 *          is the place of the next one in the output. Blocks scan tiles, the sums of the tiles are
 *          scanned in the same way, and each tile then adds the sum of all tiles before it. Stream
 *          compaction copies the elements that are wanted next to each other, in their order.
 * Terms:   scan, stream compaction, partial sum, tile, barrier, CUB
 * Book:    12.4.1 (after the book); T Thrust (how scans work)
 * Build:   nvcc -o scan chapter12/scan.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter12/scan --size 64M --keep 25
 * Differs: the book names a library for scans, CUDPP. Here the scan is our own, and CUB, which comes with
 *          the CUDA toolkit today, runs beside it.
 * Check:   --size 66000 --keep 31 | --size 256
 */
#include "../common/book.h"

#define TILE 256 // elements of a tile, and threads of a block

static size_t n = 1 << 22; // --size
static int keep = 30;      // --keep: percent of the elements
static bool check_scan(const char *name, const unsigned *out, unsigned total);
static bool check_kept(const unsigned *in, const unsigned *kept, unsigned count);
static bool scan_with_cub(const unsigned *dev_in, unsigned *dev_out);
static void show_times(const unsigned *dev_in, unsigned *dev_out, unsigned *dev_sums);

// Scans the tile of a block, and stores the sum of the tile in sums[blockIdx.x]. `out` may be `in`.
__global__ void scan_tiles(const unsigned *in, unsigned *out, unsigned *sums, size_t n) {
    __shared__ unsigned cache[TILE];
    unsigned t = threadIdx.x;
    size_t i = t + (size_t)blockIdx.x * TILE;
    unsigned x = i < n ? in[i] : 0;
    cache[t] = x;
    __syncthreads();
    // After the step with this distance, cache[t] is the sum of the last 2 * distance elements up to t. All
    // threads read before any thread writes.
    for (unsigned distance = 1; distance < TILE; distance *= 2) {
        unsigned left = t >= distance ? cache[t - distance] : 0;
        __syncthreads();
        cache[t] += left;
        __syncthreads();
    }
    if (i < n)
        out[i] = cache[t] - x; // exclusive: without the element itself
    if (t == TILE - 1)
        sums[blockIdx.x] = cache[t];
}

// Adds to each element of a tile the sum of all tiles before it.
__global__ void add_sums(unsigned *out, const unsigned *sums, size_t n) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * TILE;
    if (i < n)
        out[i] += sums[blockIdx.x];
}

static size_t tiles_of(size_t n) {
    return (n + TILE - 1) / TILE;
}

// All sums of tiles: of the n elements, of their sums, ..., up to one tile. The last is the sum of all.
static size_t sums_of(size_t n) {
    return tiles_of(n) + (n > TILE ? sums_of(tiles_of(n)) : 0);
}

// The exclusive scan of n elements, modulo 2^32. dev_sums has sums_of(n) elements.
static void scan(const unsigned *dev_in, unsigned *dev_out, unsigned *dev_sums, size_t n) {
    size_t tiles = tiles_of(n);
    scan_tiles<<<tiles, TILE>>>(dev_in, dev_out, dev_sums, n);
    HANDLE_LAUNCH();
    if (tiles > 1) {
        scan(dev_sums, dev_sums, dev_sums + tiles, tiles);
        add_sums<<<tiles, TILE>>>(dev_out, dev_sums, n);
        HANDLE_LAUNCH();
    }
}

// Which elements stay
__host__ __device__ bool wanted(unsigned x, int keep) {
    return (int)(x % 100) < keep;
}

__global__ void mark(const unsigned *in, unsigned *flags, int keep, size_t n) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (i < n)
        flags[i] = wanted(in[i], keep);
}

// places[i] is the number of wanted elements before element i.
__global__ void scatter(const unsigned *in, const unsigned *places, unsigned *out, int keep, size_t n) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (i < n && wanted(in[i], keep))
        out[places[i]] = in[i];
}

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t bytes = n * sizeof(unsigned), blocks = (n + 255) / 256;
    unsigned *in = (unsigned *)malloc(bytes), *out = (unsigned *)malloc(bytes), sum;
    HANDLE_NULL(in && out);
    for (size_t i = 0; i < n; i++)
        in[i] = 2 * i + 1; // the sum of the first i odd numbers is i²
    unsigned *dev_in, *dev_out, *dev_kept, *dev_sums;
    HANDLE_ERROR(cudaMalloc((void **)&dev_in, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_out, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_kept, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_sums, sums_of(n) * sizeof(unsigned)));
    HANDLE_ERROR(cudaMemcpy(dev_in, in, bytes, cudaMemcpyHostToDevice));

    // The scan
    unsigned *dev_total = dev_sums + sums_of(n) - 1;
    scan(dev_in, dev_out, dev_sums, n);
    HANDLE_ERROR(cudaMemcpy(out, dev_out, bytes, cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaMemcpy(&sum, dev_total, sizeof(unsigned), cudaMemcpyDeviceToHost));
    printf("sums of odd numbers:");
    for (size_t i = 0; i < min_of(n, 10); i++)
        printf(" %u", out[i]);
    printf("%s\n", n > 10 ? " …" : "");
    bool ok = check_scan("scan", out, sum);

    // Stream compaction: flags, their scan, and each wanted element to its place. The sum of the flags is the
    // number of elements that are kept.
    HANDLE_ERROR(cudaMemset(dev_kept, 0xff, bytes));
    mark<<<blocks, 256>>>(dev_in, dev_out, keep, n);
    HANDLE_LAUNCH();
    scan(dev_out, dev_out, dev_sums, n);
    scatter<<<blocks, 256>>>(dev_in, dev_out, dev_kept, keep, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(out, dev_kept, bytes, cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaMemcpy(&sum, dev_total, sizeof(unsigned), cudaMemcpyDeviceToHost));
    printf("kept %u of %zu elements\n", sum, n);
    ok = check_kept(in, out, sum) && ok;

    show_times(dev_in, dev_out, dev_sums);
    ok = scan_with_cub(dev_in, dev_out) && ok;

    HANDLE_ERROR(cudaFree(dev_in));
    HANDLE_ERROR(cudaFree(dev_out));
    HANDLE_ERROR(cudaFree(dev_kept));
    HANDLE_ERROR(cudaFree(dev_sums));
    free(in);
    free(out);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/timing.h" // median_ms()
#if __has_include(<cub/device/device_scan.cuh>)
#include <cub/device/device_scan.cuh>
#define WITH_CUB 1
#endif

void settings(int argc, char **argv) {
    configure(
        argc, argv, "Prefix sums on the device, and stream compaction.", TIMES,
        {OPTION_SIZE("size", &n, 1, INT_MAX, "elements"),
         OPTION_INT("keep", &keep, 0, 100, "keep the elements whose remainder by 100 is less than this")});
    require_memory(4 * n * sizeof(unsigned), 4 * n * sizeof(unsigned));
}

static bool check_scan(const char *name, const unsigned *out, unsigned total) {
    bool ok = check_ints(name, (const int *)out, n, [](size_t i) { return i * i; });
    return check_value("sum of all elements", total, (unsigned)(n * n), 0) && ok;
}

// The kept elements in their order, and nothing written after them
static bool check_kept(const unsigned *in, const unsigned *kept, unsigned count) {
    HostArray<int> expected(n, -1);
    unsigned wanted_count = 0;
    for (size_t i = 0; i < n; i++)
        if ((int)(in[i] % 100) < keep)
            expected[wanted_count++] = in[i];
    bool ok = check_value("kept elements", count, wanted_count, 0);
    return check_ints("kept element", (const int *)kept, expected, n) && ok;
}

// scan_tiles reads and writes each element, and add_sums does so once more. A scan in a single pass, such as
// CUB's, reads and writes it once.
static void show_times(const unsigned *dev_in, unsigned *dev_out, unsigned *dev_sums) {
    const size_t tiles = tiles_of(n);
    float ms = median_ms([&] { scan(dev_in, dev_out, dev_sums, n); });
    printf("%zu tile%s, %d bytes moved per element\n", tiles, tiles > 1 ? "s" : "", tiles > 1 ? 16 : 8);
    printf("scan: %.3f ms, %.3f GB/s of 8 bytes per element\n", ms, n * 8 / ms / 1e6);
}

static bool scan_with_cub(const unsigned *dev_in, unsigned *dev_out) {
#ifdef WITH_CUB
    void *storage = NULL; // at first the call only computes the size
    size_t bytes = 0;
    auto run = [&] { HANDLE_ERROR(cub::DeviceScan::ExclusiveSum(storage, bytes, dev_in, dev_out, (int)n)); };
    run();
    DeviceArray<char> memory(bytes);
    storage = memory;
    HANDLE_ERROR(cudaMemset(dev_out, 0xff, n * sizeof(unsigned)));
    float ms = median_ms(run);
    printf("CUB:  %.3f ms, %.3f GB/s of 8 bytes per element\n", ms, n * 8 / ms / 1e6);
    HostArray<unsigned> out(dev_out, n);
    return check_scan("CUB", out, n * n);
#else
    printf("CUB is not in this build\n");
    return true;
#endif
}

// Task: scan_tiles(): A block has TILE threads and scans TILE elements of `in`, modulo 2^32. out[i] becomes
// the sum of the elements of the tile before element i, and sums[blockIdx.x] the sum of all elements of the
// tile. Elements from n on count as 0 and are not stored. `out` may be the same array as `in`. Barriers for
// all threads of the block separate reading shared memory from writing it. add_sums(): One thread per
// element: if its global index i is below n, sums[blockIdx.x] is added to out[i]. mark(): One thread per
// element: if its global index i is below n, flags[i] becomes 1 if wanted() returns true for in[i], otherwise
// 0. scatter(): One thread per element: if its global index i is below n and wanted() returns true for in[i],
// that element is stored in `out` at the index places[i].
