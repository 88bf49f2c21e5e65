// SPDX-License-Identifier: MIT
/*
 * sort_ladder: radix sort, from one bit per pass to single passes with decoupled look-back
 *
 * Teaches: Each pass of a radix sort reads and writes all keys, so fewer passes with larger digits are
 *          faster. A pass must keep the order of equal digits: each key needs its rank, the number of keys
 *          before it with the same digit. The lanes of a warp find it by votes, without sorting. In the last
 * rung a pass reads the keys once: its tiles pass the counts of digits on while they run. Terms:   radix
 * sort, stable sort, decoupled look-back, warp vote, histogram, scan, scatter, pass, tile, lane, bank
 * conflict, atomic operation, relaxed, CUB Book:    12.4.1 (course, ladder) Run: ./bin/chapter12/sort_ladder
 * --size 256M Differs: the course sorts ints with one bit per pass. --signed does so here; without it the
 * keys are unsigned. The table "with values" sorts the number of each key along with it. The input stays as
 * it is. The last rung counts the tiles' digits in 30 bits, so there may be at most 2^30 - 1 keys. Bench: 1M
 * 16M 256M Check:   --size 3000
 */
#include "../common/book.h"
#include "../common/bench.h"
#include "scan.h"       // scan()
#include "sort_tiles.h" // the kernels of rungs 2 to 4
#ifdef HAVE_CUB
#include <cub/device/device_radix_sort.cuh>
#endif

const unsigned BLOCK = 256;        // threads of the small kernels
const unsigned ITEMS_4 = 16;       // keys per thread of rung 1
const size_t MOST = (1 << 30) - 1; // keys: the last rung has 30 bits for a count

static size_t n = BENCH_SIZE(256 << 20, 1 << 15); // --size
static bool with_values, is_signed;               // --signed
static Records dev_in, dev_other, dev_out;
static unsigned *dev_scratch; // flags, or counts of each tile
static unsigned *dev_sums;    // for scan()
static Totals *dev_totals;
static int multiprocessors;
static void prepare_proof(void);
static void end_proof(void);
static void make_keys(int fill);
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

// ---- Rung 0: one bit per pass, as in radix_sort.cu. A scan of flags tells each key its place.

__global__ void mark_zeros(const unsigned *keys, unsigned *zeros, Digit digit, unsigned n) {
    unsigned i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n)
        zeros[i] = !((keys[i] ^ digit.flip) >> digit.shift & 1);
}

// zeros[i] is the number of zeros before key i, *all_zeros how many there are.
__global__ void split(Records from, Records to, const unsigned *zeros, const unsigned *all_zeros, Digit digit,
                      unsigned n) {
    unsigned i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i >= n)
        return;
    bool one = (from.keys[i] ^ digit.flip) >> digit.shift & 1;
    unsigned place = one ? *all_zeros + i - zeros[i] : zeros[i];
    to.keys[place] = from.keys[i];
    if (from.values)
        to.values[place] = from.values[i];
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

// One block per tile counts its digits. In the order of `counts`, first all tiles of digit 0, a scan turns
// the counts into places: of the first key with digit d of tile b.
template <unsigned digits>
__global__ void count_digits(const unsigned *keys, unsigned *counts, unsigned tile, Digit digit, unsigned n) {
    __shared__ unsigned bins[digits];
    if (threadIdx.x < digits)
        bins[threadIdx.x] = 0;
    __syncthreads();
    unsigned first = blockIdx.x * tile;
    for (unsigned i = threadIdx.x; i < tile && first + i < n; i += blockDim.x)
        atomicAdd(&bins[digit_of<digits>(keys[first + i], digit)], 1);
    __syncthreads();
    if (threadIdx.x < digits)
        counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}

// Rung 1: each thread has ITEMS_4 consecutive keys, and a counter for each digit that no other thread uses. A
// scan of the block's counters, first those of digit 0, gives the rank of the thread's first key with that
// digit.
__global__ void scatter_4_bits(Records from, Records to, const unsigned *places, Digit digit, unsigned n) {
    __shared__ unsigned ranks[16][BLOCK];
    __shared__ unsigned moves[16]; // from a key's place in the sorted tile to its place among all keys
    unsigned first = (threadIdx.x + blockIdx.x * BLOCK) * ITEMS_4, sum = 0;
    for (unsigned d = 0; d < 16; d++)
        ranks[d][threadIdx.x] = 0;
    for (unsigned i = first; i < first + ITEMS_4 && i < n; i++)
        ranks[digit_of<16>(from.keys[i], digit)][threadIdx.x]++;
    __syncthreads();
    unsigned *mine = &ranks[0][0] + threadIdx.x * 16;
    for (unsigned k = 0; k < 16; k++)
        sum += mine[k];
    sum = sum_before(sum);
    for (unsigned k = 0; k < 16; k++) {
        unsigned count = mine[k];
        mine[k] = sum;
        sum += count;
    }
    __syncthreads();
    if (threadIdx.x < 16)
        moves[threadIdx.x] = places[threadIdx.x * gridDim.x + blockIdx.x] - ranks[threadIdx.x][0];
    __syncthreads();
    for (unsigned i = first; i < first + ITEMS_4 && i < n; i++) {
        unsigned d = digit_of<16>(from.keys[i], digit);
        unsigned place = moves[d] + ranks[d][threadIdx.x]++;
        to.keys[place] = from.keys[i];
        if (from.values)
            to.values[place] = from.values[i];
    }
}

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

// More shared memory per block than every device grants without being asked
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

// Rung 4: a pass is a single kernel. It finds its counts by looking back.
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

// What every sort with four passes must do: read and write all records four times, and read the keys once
// more to count the digits. One read is as much as a copy of half the keys.
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
    {"four bits", "8 passes; counters for each thread", run_4_bits},
    {"eight bits", "4 passes; lanes match digits, coalesced writes", run_8_bits<MATCH>, RUNG, 0, 0,
     needs_memory},
    {"lanes as bits", "matched by atomic operations in shared memory", run_8_bits<ATOMIC>, RUNG, 0, 0,
     needs_memory},
    {"single pass", "decoupled look-back: keys are read once a pass", run_look_back, RUNG, 0, 0,
     needs_memory},
#ifdef HAVE_CUB
    {"CUB", "DeviceRadixSort", run_cub, LIBRARY},
#endif
    {"copies", "as many bytes as four passes and a count move", run_copies, COPY_RATE},
};

enum { UNIFORM, SKEWED, EQUAL, SORTED, REVERSED };
static const char *const fills[] = {"uniform", "skewed", "equal", "sorted", "reversed"};
static int only = BENCH_SIZE(0, 1); // --fill: 0: several data sets, else fills[only - 1]

static Records allocate(void) {
    Records r;
    HANDLE_ERROR(cudaMalloc(&r.keys, n * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc(&r.values, n * sizeof(unsigned)));
    return r;
}

static void release(Records r) {
    HANDLE_ERROR(cudaFree(r.keys));
    HANDLE_ERROR(cudaFree(r.values));
}

int main(int argc, char **argv) {
    settings(argc, argv);
    dev_in = allocate();
    dev_other = allocate();
    dev_out = allocate();
    HANDLE_ERROR(cudaMalloc(&dev_scratch, scratch_words() * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc(&dev_sums, scan_sums(scratch_words()) * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc(&dev_totals, sizeof(Totals)));
    HANDLE_ERROR(cudaMemset(dev_totals, 0, sizeof(Totals)));
    prepare_proof();
#ifdef HAVE_CUB
    with_values = true; // needs more memory
    run_cub();          // without memory it only computes cub_bytes
    HANDLE_ERROR(cudaMalloc(&cub_memory, cub_bytes));
#endif

    bool ok = true;
    for (int fill = UNIFORM; fill <= REVERSED; fill++) {
        if (only ? only - 1 != fill : fill > EQUAL)
            continue;
        make_keys(fill);
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
    release(dev_in);
    release(dev_other);
    release(dev_out);
    HANDLE_ERROR(cudaFree(dev_scratch));
    HANDLE_ERROR(cudaFree(dev_sums));
    HANDLE_ERROR(cudaFree(dev_totals));
    end_proof();
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

static unsigned *keys, *expected; // the input; the values in the order of a stable sort
static Found *dev_found, expected_found;

static void prepare_proof(void) {
    keys = host_array<unsigned>(n);
    expected = host_array<unsigned>(n);
    HANDLE_ERROR(cudaMalloc(&dev_found, sizeof(Found)));
}

static void end_proof(void) {
    HANDLE_ERROR(cudaFree(dev_found));
    free(keys);
    free(expected);
}

// Mixes the bits of a key: the last step of MurmurHash3, an invertible function.
__device__ static unsigned mix(unsigned x) {
    x = (x ^ x >> 16) * 0x85ebca6b;
    x = (x ^ x >> 13) * 0xc2b2ae35;
    return x ^ x >> 16;
}

// Compares each key with the one before it.
__global__ void examine(Records sorted, const unsigned *in, Found *found, unsigned flip, unsigned n) {
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
    atomicAdd(&found->misplaced, f.misplaced);
    atomicAdd(&found->hash[0], f.hash[0]);
    atomicAdd(&found->hash[1], f.hash[1]);
    atomicAdd(&found->wrong_values, f.wrong_values);
}

static Found examined(Records sorted) {
    Found found;
    HANDLE_ERROR(cudaMemset(dev_found, 0, sizeof found));
    examine<<<min_of(16 * multiprocessors, (n + BLOCK - 1) / BLOCK), BLOCK>>>(sorted, dev_in.keys, dev_found,
                                                                              flip(), n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(&found, dev_found, sizeof found, cudaMemcpyDeviceToHost));
    return found;
}

// SKEWED: the bits of three random numbers and-ed, each bit is 1 once in eight times (Thearling and Smith,
// 1992). SORTED, REVERSED: keys of the whole range in equal steps. The value of each key is its number.
static void make_keys(int fill) {
    random_bytes(keys, n * sizeof(unsigned));
    unsigned *more = expected; // not needed yet
    for (int i = 0; i < 2 && fill == SKEWED; i++) {
        random_bytes(more, n * sizeof(unsigned));
        for (size_t k = 0; k < n; k++)
            keys[k] &= more[k];
    }
    for (size_t i = 0; i < n; i++) {
        unsigned step = ((uint64_t)i << 32) / n ^ flip();
        keys[i] = fill == EQUAL ? keys[0] : fill == SORTED ? step : fill == REVERSED ? ~step : keys[i];
        expected[i] = i;
    }
    HANDLE_ERROR(cudaMemcpy(dev_in.keys, keys, n * sizeof(unsigned), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_in.values, expected, n * sizeof(unsigned), cudaMemcpyHostToDevice));
    if (n <= HOST_SORT)
        std::stable_sort(expected, expected + n,
                         [](unsigned a, unsigned b) { return (keys[a] ^ flip()) < (keys[b] ^ flip()); });
    expected_found = examined({dev_in.keys, NULL});
}

static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_out.keys, 0xff, n * sizeof(unsigned)));
    HANDLE_ERROR(cudaMemset(dev_out.values, 0xff, n * sizeof(unsigned)));
}

// On the device: no key is less than the one before it, and the hashes are those of the input. With values:
// each key is that of its value in the input, and equal keys have increasing values. So no value occurs
// twice, all are there, and the sort is stable.
static bool check(const char *name, BenchError *) {
    Found found = examined({dev_out.keys, with_values ? dev_out.values : NULL});
    unsigned long long got[] = {found.misplaced, found.hash[0], found.hash[1], found.wrong_values},
                       right[] = {0, expected_found.hash[0], expected_found.hash[1], 0};
    bool ok =
        check_counts((std::string(name) + ": misplaced keys, hashes, wrong values").c_str(), got, right, 4);
    if (n > HOST_SORT)
        return ok;
    int *sorted = host_array<int>(n), *right_keys = host_array<int>(n);
    HANDLE_ERROR(cudaMemcpy(sorted, dev_out.keys, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < n; i++)
        right_keys[i] = keys[expected[i]];
    ok = check_ints(name, sorted, right_keys, n) && ok;
    if (with_values) {
        HANDLE_ERROR(cudaMemcpy(sorted, dev_out.values, n * sizeof(int), cudaMemcpyDeviceToHost));
        ok = check_ints((std::string(name) + ": values").c_str(), sorted, (int *)expected, n) && ok;
    }
    free(sorted);
    free(right_keys);
    return ok;
}
