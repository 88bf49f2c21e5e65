// SPDX-License-Identifier: MIT
/*
 * scan: prefix sums, and stream compaction with them
 *
 * Teaches: A prefix sum gives each element its index in the output. An exclusive scan adds all elements
 *          before each one; of flags that are 0 or 1 it counts the elements that are kept so far, which
 *          is the place of the next one in the output. Blocks scan tiles, the sums of the tiles are
 *          scanned in the same way, and each tile then adds the sum of all tiles before it. With --keep
 *          the program compacts: it copies the elements that are wanted next to each other, in their
 *          order.
 * Terms:   scan, stream compaction, partial sum, tile, coarsening, bank conflict, coalesced access, CUB
 * Book:    12.4.1 (after the book)
 * Build:   nvcc -o scan chapter12/scan.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter12/scan --size 64M --keep 25
 * Differs: the book names a library for scans, CUDPP. Here the scan is our own, and CUB, which comes with
 *          the CUDA toolkit today, runs beside it.
 * Check:   --size 9000 --keep 30 | --size 3840
 */
#include "../common/book.h"
#include "../common/timing.h"
#include "scan.h" // scan_tiles, add_sums and scan()
#if __has_include(<cub/device/device_scan.cuh>)
#include <cub/device/device_scan.cuh>
#define WITH_CUB 1
#endif

static size_t n = 1 << 22; // --size
static int keep = -1;      // --keep: percent of the elements

static unsigned *in, *dev_in, *dev_out, *dev_sums;
static void fill(bool odd_numbers);
static bool check_scan(const char *name, bool odd_numbers);
static bool check_kept(const unsigned *dev_kept, unsigned count);
static bool scan_with_cub(void);

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

static bool compact(void) {
    unsigned *dev_kept, count;
    HANDLE_ERROR(cudaMalloc(&dev_kept, n * sizeof(unsigned)));
    HANDLE_ERROR(cudaMemset(dev_kept, 0xff, n * sizeof(unsigned)));
    size_t blocks = (n + 255) / 256;
    auto run = [&] {
        mark<<<blocks, 256>>>(dev_in, dev_out, keep, n);
        HANDLE_LAUNCH();
        scan(dev_out, dev_out, dev_sums, n);
        scatter<<<blocks, 256>>>(dev_in, dev_out, dev_kept, keep, n);
        HANDLE_LAUNCH();
    };
    float ms = median_ms(run);
    // The last sum is that of all flags.
    HANDLE_ERROR(cudaMemcpy(&count, dev_sums + scan_sums(n) - 1, sizeof(count), cudaMemcpyDeviceToHost));
    printf("kept %u of %zu elements\n", count, n);
    printf("stream compaction: %.3f ms\n", ms);
    bool ok = check_kept(dev_kept, count);
    HANDLE_ERROR(cudaFree(dev_kept));
    return ok;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    in = host_array<unsigned>(n);
    HANDLE_ERROR(cudaMalloc(&dev_in, n * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc(&dev_out, n * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc(&dev_sums, scan_sums(n) * sizeof(unsigned)));

    bool ok = true;
    for (bool odd_numbers : {true, false}) {
        fill(odd_numbers);
        HANDLE_ERROR(cudaMemcpy(dev_in, in, n * sizeof(unsigned), cudaMemcpyHostToDevice));
        scan(dev_in, dev_out, dev_sums, n);
        ok = check_scan("scan", odd_numbers) && ok;
    }

    // scan_tiles reads and writes each element, and add_sums does so once more. A scan in a single pass, such
    // as CUB's, reads and writes it once.
    float ms = median_ms([] { scan(dev_in, dev_out, dev_sums, n); });
    const size_t tiles = scan_blocks(n);
    printf("%zu tile%s, %d bytes moved per element\n", tiles, tiles > 1 ? "s" : "", tiles > 1 ? 16 : 8);
    printf("scan: %.3f ms, %.3f GB/s of 8 bytes per element\n", ms, n * 8 / ms / 1e6);
    ok = scan_with_cub() && ok;
    if (keep >= 0)
        ok = compact() && ok;

    HANDLE_ERROR(cudaFree(dev_in));
    HANDLE_ERROR(cudaFree(dev_out));
    HANDLE_ERROR(cudaFree(dev_sums));
    free(in);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Prefix sums on the device; stream compaction.", TIMES,
              {OPTION_SIZE("size", &n, 1, INT_MAX, "elements"),
               OPTION_INT("keep", &keep, 0, 100,
                          "compact: keep the elements whose remainder by 100 is less than this")});
    require_memory((keep >= 0 ? 4 : 3) * n * sizeof(unsigned), 4 * n * sizeof(unsigned));
}

// The sum of the first i odd numbers is i².
static void fill(bool odd_numbers) {
    for (size_t i = 0; i < n; i++)
        in[i] = odd_numbers ? 2 * i + 1 : random_bits();
}

static bool check_scan(const char *name, bool odd_numbers) {
    HostArray<int> got((int *)dev_out, n);
    unsigned sum = 0;
    if (odd_numbers) {
        printf("sums of odd numbers:");
        for (size_t i = 0; i < min_of(n, 10); i++)
            printf(" %d", got[i]);
        printf("%s\n", n > 10 ? " …" : "");
    }
    bool ok = check_ints(name, got, n, [&](size_t i) {
        unsigned before = sum;
        sum += in[i];
        return odd_numbers ? i * i : before;
    });
    unsigned total;
    HANDLE_ERROR(cudaMemcpy(&total, dev_sums + scan_sums(n) - 1, sizeof(total), cudaMemcpyDeviceToHost));
    return check_value("sum of all elements", total, sum, 0) && ok;
}

// Checks the stream compaction: the kept elements in their order, and nothing written after them.
static bool check_kept(const unsigned *dev_kept, unsigned count) {
    HostArray<int> got((const int *)dev_kept, n), expected(n, -1);
    unsigned wanted_count = 0;
    for (size_t i = 0; i < n; i++)
        if ((int)(in[i] % 100) < keep)
            expected[wanted_count++] = in[i];
    bool ok = check_value("kept elements", count, wanted_count, 0);
    return check_ints("kept element", got, expected, n) && ok;
}

// Without --keep: compacts the first elements, so that a default run checks stream compaction too.
static bool compact_few(void) {
    if (keep >= 0)
        return true;
    Smaller few(n, 10007);
    keep = 30;
    bool ok = compact();
    keep = -1;
    return ok;
}

static bool scan_with_cub(void) {
    bool ok = true;
#ifdef WITH_CUB
    void *storage = NULL; // at first the call only computes the size
    size_t bytes = 0;
    auto run = [&] { HANDLE_ERROR(cub::DeviceScan::ExclusiveSum(storage, bytes, dev_in, dev_out, (int)n)); };
    run();
    HANDLE_ERROR(cudaMalloc(&storage, bytes));
    HANDLE_ERROR(cudaMemset(dev_out, 0xff, n * sizeof(unsigned)));
    float ms = median_ms(run);
    printf("CUB:  %.3f ms, %.3f GB/s of 8 bytes per element\n", ms, n * 8 / ms / 1e6);
    ok = check_scan("CUB", false);
    HANDLE_ERROR(cudaFree(storage));
#else
    printf("CUB is not in this build\n");
#endif
    return compact_few() && ok;
}

// Task: none: the scan is in scan.h, which other programs use too; the exercise is chapter12/radix_sort
