// SPDX-License-Identifier: MIT
/*
 * sort_ladder: radix sort, from one bit per pass to passes with decoupled look-back
 *
 * Teaches: Each pass of a radix sort reads and writes all keys, so fewer passes with larger digits are
 *          faster. A pass needs the rank of each key: the number of keys before it with the same digit.
 *          The lanes of a warp find it together, first by a match, then faster by setting bits in shared
 *          memory. In the last rung a pass is one kernel, whose blocks pass on their counts while they run.
 * Terms:   radix sort, stable sort, decoupled look-back, warp vote, histogram, scan, scatter, pass, tile,
 *          half-warp, contention, atomic operation, relaxed, CUB
 * Book:    12.4.1 (ladder)
 * Run:     ./bin/chapter12/sort_ladder --size 256M
 * Differs: the course sorts ints. --signed does so too; without it the keys are unsigned. In the tables
 *          "with values" the index of each key is sorted along with it. The input is not overwritten. The
 *          last rung has 30 bits for a count, so there may be at most 2^30 - 1 keys. The copies move the
 *          bytes that four passes and one count must move.
 * Bench:   1M 16M 256M
 * Check:   --size 3000 | --size 700 --signed --fill skewed
 */
#include <stddef.h>
#include <vector>
#include "../common/book.h"
#include "../common/bench.h"
#include "scan.h"       // scan()
#include "sort_tiles.h" // the kernels of rungs 1 to 4
#ifdef HAVE_CUB
#include <cub/device/device_radix_sort.cuh>
#endif

const size_t MOST = (1 << 30) - 1; // keys: the last rung has 30 bits for a count

static size_t n = BENCH_SIZE(256 << 20, 1 << 15); // --size
static bool with_values, is_signed;               // --signed
static Records dev_in, dev_other, dev_out;
static unsigned *dev_scratch; // flags, or counts of each tile
static unsigned *dev_sums;    // for scan()
static Totals *dev_totals;
static int multiprocessors;
static void fill_keys(int fill);
static void poison(void);
static bool check(const char *name, BenchError *error);

// Pass 0 reads the input; the others read what the pass before has written. The number of passes is even, so
// the last one writes to dev_out.
static Records source(unsigned pass) {
    Records r = pass == 0 ? dev_in : pass % 2 ? dev_other : dev_out;
    return {r.keys, with_values ? r.values : NULL};
}

static Records target(unsigned pass) {
    return source(pass + 1);
}

static unsigned flip(void) {
    return is_signed ? 1u << 31 : 0;
}

// ---- Rung 0: one bit per pass, as in radix_sort.cu. An exclusive scan of flags gives the index of each key.

__global__ void mark_zeros(const unsigned *keys, unsigned *zeros, Digit digit, unsigned n) {
    unsigned i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n)
        zeros[i] = !((keys[i] ^ digit.flip) >> digit.shift & 1);
}

// zeros[i] is the number of keys before key i whose bit is 0, *all_zeros the number of all such keys.
__global__ void split(Records from, Records to, const unsigned *zeros, const unsigned *all_zeros, Digit digit,
                      unsigned n) {
    unsigned i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i >= n)
        return;
    bool one = (from.keys[i] ^ digit.flip) >> digit.shift & 1;
    unsigned index = one ? *all_zeros + i - zeros[i] : zeros[i];
    to.keys[index] = from.keys[i];
    if (from.values)
        to.values[index] = from.values[i];
}

static void run_bits(void) {
    for (unsigned bit = 0; bit < 32; bit++) {
        unsigned blocks = (n + BLOCK - 1) / BLOCK;
        mark_zeros<<<blocks, BLOCK>>>(source(bit).keys, dev_scratch, {bit, flip()}, n);
        HANDLE_LAUNCH();
        scan(dev_scratch, dev_scratch, dev_sums, n);
        split<<<blocks, BLOCK>>>(source(bit), target(bit), dev_scratch, dev_sums + scan_sums(n) - 1,
                                 {bit, flip()}, n);
        HANDLE_LAUNCH();
    }
}

// ---- Rungs 1 to 3: digits of several bits, three kernels per pass: histogram, scan and scatter.

static void run_4_bits(void) {
    const unsigned tile = BLOCK * ITEMS_4, tiles = (n + tile - 1) / tile;
    for (unsigned pass = 0; pass < 8; pass++) {
        Digit digit = {4 * pass, flip()};
        count_digits<16><<<tiles, BLOCK>>>(source(pass).keys, dev_scratch, tile, digit, n);
        HANDLE_LAUNCH();
        scan(dev_scratch, dev_scratch, dev_sums, 16 * tiles);
        scatter_4_bits<<<tiles, BLOCK>>>(source(pass), target(pass), dev_scratch, digit, n);
        HANDLE_LAUNCH();
    }
}

static unsigned tiles(void) {
    return (n + TILE - 1) / TILE;
}

static size_t tile_bytes(void) {
    return with_values ? sizeof(Tile) : offsetof(Tile, values);
}

// Opts in to more shared memory per block than the default limit.
template <Method method> static auto scatter_kernel(void) -> decltype(&scatter_8_bits<method, false>) {
    auto kernel = with_values ? scatter_8_bits<method, true> : scatter_8_bits<method, false>;
    HANDLE_ERROR(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, tile_bytes()));
    return kernel;
}

static const char *needs_memory(void) {
    int bytes;
    HANDLE_ERROR(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, options.device));
    return tile_bytes() <= (size_t)bytes ? NULL : "needs more shared memory";
}

// Rungs 2 and 3
template <Method method> static void run_8_bits(void) {
    auto scatter = scatter_kernel<method>();
    for (unsigned pass = 0; pass < PASSES; pass++) {
        Digit digit = {8 * pass, flip()};
        count_digits<DIGITS><<<tiles(), BLOCK>>>(source(pass).keys, dev_scratch, TILE, digit, n);
        HANDLE_LAUNCH();
        scan(dev_scratch, dev_scratch, dev_sums, (size_t)DIGITS * tiles());
        scatter<<<tiles(), DIGITS, tile_bytes()>>>(source(pass), target(pass), dev_scratch, NULL, digit, n);
        HANDLE_LAUNCH();
    }
}

// Rung 4: a pass is a single kernel. Its blocks get the prefix sums of their counts by decoupled look-back.
static size_t words_per_pass(void) {
    return (size_t)(tiles() + WINDOW) * DIGITS;
}

static void run_look_back(void) {
    auto scatter = scatter_kernel<ATOMIC>();
    count_all<<<2 * multiprocessors, COUNTERS>>>(dev_in.keys, dev_totals, dev_scratch, words_per_pass(),
                                                 flip(), n);
    HANDLE_LAUNCH();
    for (unsigned pass = 0; pass < PASSES; pass++) {
        scatter<<<tiles(), DIGITS + LOOKING, tile_bytes()>>>(
            source(pass), target(pass), dev_scratch + pass * words_per_pass(), &dev_totals->tickets[pass],
            {8 * pass, flip()}, n);
        HANDLE_LAUNCH();
    }
}

static size_t scratch_words(void) {
    return max_of(n, PASSES * words_per_pass());
}

#ifdef HAVE_CUB
static void *cub_memory;
static size_t cub_bytes;

template <class T> static void cub_sort(void) {
    const T *in = (const T *)dev_in.keys;
    T *out = (T *)dev_out.keys;
    if (with_values)
        HANDLE_ERROR(cub::DeviceRadixSort::SortPairs(cub_memory, cub_bytes, in, out, dev_in.values,
                                                     dev_out.values, (int)n));
    else
        HANDLE_ERROR(cub::DeviceRadixSort::SortKeys(cub_memory, cub_bytes, in, out, (int)n));
}

static void run_cub(void) {
    if (is_signed)
        cub_sort<int>();
    else
        cub_sort<unsigned>();
}
#endif

// The memory traffic of a sort with four passes: it reads and writes all records four times, and reads the
// keys once more to count the digits. One read moves as many bytes as a copy of half the keys.
static void run_copies(void) {
    for (unsigned pass = 0; pass < PASSES; pass++) {
        HANDLE_ERROR(cudaMemcpyAsync(target(pass).keys, source(pass).keys, 4 * n, cudaMemcpyDeviceToDevice));
        if (with_values)
            HANDLE_ERROR(
                cudaMemcpyAsync(target(pass).values, source(pass).values, 4 * n, cudaMemcpyDeviceToDevice));
    }
    HANDLE_ERROR(cudaMemcpyAsync(dev_other.keys, dev_in.keys, 2 * n, cudaMemcpyDeviceToDevice));
}

static const Rung rungs[] = {
    {"book, one bit", "32 passes: flags, scan, scatter", run_bits},
    {"four bits", "8 passes; counters per thread", run_4_bits},
    {"eight bits", "4 passes; lanes match digits, coalesced writes", run_8_bits<MATCH>, RUNG, 0, 0,
     needs_memory},
    {"lanes as bits", "matched by atomic operations in shared memory", run_8_bits<ATOMIC>, RUNG, 0, 0,
     needs_memory},
    {"single pass", "decoupled look-back: keys are read once per pass", run_look_back, RUNG, 0, 0,
     needs_memory},
#ifdef HAVE_CUB
    {"CUB", "DeviceRadixSort", run_cub, LIBRARY},
#endif
    {"copies", "the bytes that four passes and a count move", run_copies, COPY_RATE},
};

enum { UNIFORM, SKEWED, EQUAL, SORTED, REVERSED };
static const char *const fills[] = {"uniform", "skewed", "equal", "sorted", "reversed"};
static int only = BENCH_SIZE(0, 1); // --fill: 0: several data sets, else fills[only - 1]

int main(int argc, char **argv) {
    settings(argc, argv);
    for (Records *r : {&dev_in, &dev_other, &dev_out}) {
        HANDLE_ERROR(cudaMalloc(&r->keys, n * sizeof(unsigned)));
        HANDLE_ERROR(cudaMalloc(&r->values, n * sizeof(unsigned)));
    }
    HANDLE_ERROR(cudaMalloc(&dev_scratch, scratch_words() * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc(&dev_sums, scan_sums(scratch_words()) * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc(&dev_totals, sizeof(Totals)));
    HANDLE_ERROR(cudaMemset(dev_totals, 0, sizeof(Totals)));
#ifdef HAVE_CUB
    with_values = true; // needs more memory
    run_cub();          // without memory it only computes cub_bytes
    HANDLE_ERROR(cudaMalloc(&cub_memory, cub_bytes));
#endif

    bool ok = true;
    for (int fill = UNIFORM; fill <= REVERSED; fill++) {
        if (only ? only - 1 != fill : fill > EQUAL)
            continue;
        fill_keys(fill);
        for (bool values : {false, true}) {
            if (values && !only && fill != UNIFORM)
                continue;
            with_values = values;
            Bench bench;
            std::string data = std::string(fills[fill]) + (values ? ", with values" : "");
            bench.title = std::to_string(n) + (is_signed ? " ints" : " unsigned ints");
            bench.data = data.c_str();
            bench.size = n;
            bench.work = n;
            bench.unit = "Gkeys/s";
            bench.footprint = (values ? 6 : 3) * n * sizeof(unsigned);
            bench.poison = poison;
            bench.check = check;
            ok = bench_run(bench, rungs) && ok;
        }
    }
    bench_finish();

#ifdef HAVE_CUB
    HANDLE_ERROR(cudaFree(cub_memory));
#endif
    for (Records *r : {&dev_in, &dev_other, &dev_out}) {
        HANDLE_ERROR(cudaFree(r->keys));
        HANDLE_ERROR(cudaFree(r->values));
    }
    HANDLE_ERROR(cudaFree(dev_scratch));
    HANDLE_ERROR(cudaFree(dev_sums));
    HANDLE_ERROR(cudaFree(dev_totals));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

void settings(int argc, char **argv) {
    const Option own[] = {
        OPTION_SIZE("size", &n, 1, MOST, "keys to sort"),
        OPTION_WORD("fill", &only, "all|uniform|skewed|equal|sorted|reversed", "distribution of the keys"),
        OPTION_FLAG("signed", &is_signed, "sort ints instead of unsigned ints"), OPTION_END};
    parse_options(argc, argv, "Radix sort, from one bit per pass to decoupled look-back.", LADDER, own);
    select_device();
    HANDLE_ERROR(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, options.device));
    size_t bytes = n * sizeof(unsigned), cub = 2 * bytes + (64 << 20);
    require_memory(2 * bytes,
                   6 * bytes + (scratch_words() + scan_sums(scratch_words())) * sizeof(unsigned) + cub);
}

static const size_t HOST_SORT = 1 << 20; // up to so many keys are compared with a sort on the host

// Hashes of the keys: sums that do not depend on their order
struct Found {
    unsigned long long misplaced, hash[2], wrong_values;
};

static std::vector<unsigned> keys, expected; // the input; the values in the order of a stable sort
static Found expected_found;
__device__ static Found found;

// Mixes the bits of a key: the last step of MurmurHash3, an invertible function.
__device__ static unsigned mix(unsigned x) {
    x = (x ^ x >> 16) * 0x85ebca6b;
    x = (x ^ x >> 13) * 0xc2b2ae35;
    return x ^ x >> 16;
}

// Compares each key with the one before it.
__global__ void examine(Records sorted, const unsigned *in, unsigned flip, unsigned n) {
    Found f = {0, {0, 0}, 0};
    for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x) {
        unsigned key = sorted.keys[i], left = i ? sorted.keys[i - 1] : key;
        f.misplaced += (left ^ flip) > (key ^ flip);
        f.hash[0] += mix(key);
        f.hash[1] += (unsigned long long)mix(~key) * mix(key + 1);
        if (sorted.values) {
            unsigned value = sorted.values[i];
            bool ordered = i == 0 || left != key || sorted.values[i - 1] < value;
            f.wrong_values += !(value < n && in[value] == key && ordered);
        }
    }
    atomicAdd(&found.misplaced, f.misplaced);
    atomicAdd(&found.hash[0], f.hash[0]);
    atomicAdd(&found.hash[1], f.hash[1]);
    atomicAdd(&found.wrong_values, f.wrong_values);
}

static Found examined(Records sorted) {
    Found f = {};
    HANDLE_ERROR(cudaMemcpyToSymbol(found, &f, sizeof f));
    examine<<<min_of(16 * multiprocessors, (n + BLOCK - 1) / BLOCK), BLOCK>>>(sorted, dev_in.keys, flip(), n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpyFromSymbol(&f, found, sizeof f));
    return f;
}

// SKEWED: the bits of three random numbers and-ed, each bit is 1 once in eight times (Thearling and Smith,
// 1992). SORTED, REVERSED: keys of the whole range in equal steps. The value of each key is its index.
static void fill_keys(int fill) {
    keys.resize(n);
    expected.resize(n);
    random_bytes(keys.data(), n * sizeof(unsigned));
    for (int more = 0; more < 2 && fill == SKEWED; more++) {
        random_bytes(expected.data(), n * sizeof(unsigned));
        for (size_t i = 0; i < n; i++)
            keys[i] &= expected[i];
    }
    for (size_t i = 0; i < n; i++) {
        unsigned step = ((uint64_t)i << 32) / n ^ flip();
        keys[i] = fill == EQUAL ? keys[0] : fill == SORTED ? step : fill == REVERSED ? ~step : keys[i];
        expected[i] = i;
    }
    HANDLE_ERROR(cudaMemcpy(dev_in.keys, keys.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_in.values, expected.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));
    if (n <= HOST_SORT)
        std::stable_sort(expected.begin(), expected.end(),
                         [](unsigned a, unsigned b) { return (keys[a] ^ flip()) < (keys[b] ^ flip()); });
    expected_found = examined({dev_in.keys, NULL});
}

static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_out.keys, 0xff, n * sizeof(unsigned)));
    HANDLE_ERROR(cudaMemset(dev_out.values, 0xff, n * sizeof(unsigned)));
}

// On the device: no key is less than the one before it, and the hashes of the output equal those of the
// input, so the output is a permutation of it. With values: in[value] is the key, and equal keys have
// increasing values. So every value occurs exactly once, and the sort is stable.
static bool check(const char *name, BenchError *) {
    Found f = examined({dev_out.keys, with_values ? dev_out.values : NULL});
    unsigned long long got[] = {f.misplaced, f.hash[0], f.hash[1], f.wrong_values},
                       right[] = {0, expected_found.hash[0], expected_found.hash[1], 0};
    bool ok =
        check_counts((std::string(name) + ": misplaced keys, hashes, wrong values").c_str(), got, right, 4);
    if (n > HOST_SORT)
        return ok;
    std::vector<int> sorted(n), right_keys(n);
    for (size_t i = 0; i < n; i++)
        right_keys[i] = keys[expected[i]];
    HANDLE_ERROR(cudaMemcpy(sorted.data(), dev_out.keys, n * sizeof(int), cudaMemcpyDeviceToHost));
    ok = check_ints(name, sorted.data(), right_keys.data(), n) && ok;
    if (!with_values)
        return ok;
    HANDLE_ERROR(cudaMemcpy(sorted.data(), dev_out.values, n * sizeof(int), cudaMemcpyDeviceToHost));
    return check_ints((std::string(name) + ": values").c_str(), sorted.data(), (int *)expected.data(), n) &&
           ok;
}
