// SPDX-License-Identifier: MIT
/*
 * hashtable_ladder: hash table of 26 million keys, from a lock per bucket to parts in shared memory
 *
 * Teaches: A hash function scatters keys over the table, so each insertion accesses a memory location of its
 *          own, and the threads wait for memory even without locks. When the keys are partitioned first, by
 *          the upper bits of their hash values, a block can build each part of the table in shared memory.
 *          The table is then written in order, with coalesced stores. Look-ups become faster in the same way:
 *          sorted by the part of the table that they access, they find it in the L2 cache.
 * Terms:   hash table, open addressing, partition, load factor, compare-and-swap, lock-free, chaining,
 *          lock contention, coalesced access, shared memory, L2 cache, sector, tile, scan
 * Book:    A.2.4 (ladder)
 * Run:     ./bin/appendix_a/hashtable_ladder --load 0.8 --fill random
 * Differs: a value is the index of its key in the input, in 32 bits. The book's table keeps all pairs of
 *          equal keys, and so do the lists of rung 1, where a look-up finds any of them. An open-addressing
 *          table keeps the pair with the smallest value. Clearing the table is part of the time. The second
 *          table of times adds the look-up of all keys, with the results in the order of the keys. It leaves
 *          out the book's table, whose lists have 25,600 entries. The device verifies every result.
 * Bench:   1M 26214400
 * Check:   --size 20000 --load 0.95 | --size 3000 --fill repeated
 */
#include "../common/book.h"
#include "../common/bench.h"
#include "hashtable_parts.h" // open addressing: insert(), find(); the kernels of rungs 3 and 4
#include "lock.h"

const unsigned ELEMENTS = 100 * 1024 * 1024 / sizeof(unsigned); // the book's 100 MB of keys
const unsigned L2_BINS = BENCH_SIZE(256, 16);                   // rung 3

static size_t elements = BENCH_SIZE(ELEMENTS, 1 << 14); // --size
static unsigned *dev_keys, *dev_values, *dev_found;     // found: results of look-ups
static Entry **dev_heads, *dev_pool;
static Lock *dev_locks;
static unsigned long long *dev_counts; // of the check
static Table table;
static Lookups lookups;
static unsigned buckets;      // number of lists, for this load factor
static unsigned tile_threads; // 1024, fewer where shared memory is small
static float load;            // load factor
static size_t shared_bytes, part_bytes;
static int only_fill, only_load; // --fill, --load; 0: all
enum { LISTS_OF_BOOK, LISTS, SLOTS };
static int built; // the kind of table that the last run built
static bool looked_up;
static void make_table(void);
static void free_table(void);
static void fill_keys(int fill);
static void poison(void);
static bool check(const char *name, BenchError *error);
static const char *needs_bins(void);

// Rung 0, the book's kernel: one lock per bucket. The lanes of a warp insert their keys one after another,
// because lanes that waited for a lock of another lane of their warp could deadlock.
__global__ void add_to_table(const unsigned *keys, const unsigned *values, size_t elements, Entry **entries,
                             Entry *pool, Lock *lock) {
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x; tid < elements; tid += stride) {
        unsigned hashValue = keys[tid] % HASH_ENTRIES;
        for (unsigned i = 0; i < 32; i++)
            if (threadIdx.x % 32 == i) {
                Entry *location = &pool[tid];
                location->key = keys[tid];
                location->value = values[tid];
                lock[hashValue].lock();
                location->next = entries[hashValue];
                entries[hashValue] = location;
                lock[hashValue].unlock();
            }
    }
}

// Rung 1: an atomic exchange makes the entry the head of its list and returns the old head, its successor. No
// thread waits for another. While the kernel runs, no thread may traverse the lists: atomicExch() makes an
// entry the head of its list before the entry's `next` pointer is set.
__global__ void push(const unsigned *keys, const unsigned *values, size_t elements, Entry **heads,
                     unsigned buckets, Entry *pool, unsigned seed) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (i < elements) {
        Entry **head = &heads[scale(mix(keys[i], seed), buckets)];
        Entry *old = (Entry *)atomicExch((unsigned long long *)head, (unsigned long long)&pool[i]);
        pool[i] = {keys[i], values[i], old};
    }
}

__global__ void find_in_lists(const unsigned *keys, size_t elements, Entry *const *heads, unsigned buckets,
                              unsigned seed, unsigned *found) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (i < elements) {
        const Entry *entry = heads[scale(mix(keys[i], seed), buckets)];
        while (entry && entry->key != keys[i])
            entry = entry->next;
        found[i] = entry ? entry->value : UINT_MAX;
    }
}

// Rung 2: the table holds the pairs themselves, and insert() takes a slot by a compare-and-swap.
__global__ void insert_all(const unsigned *keys, const unsigned *values, size_t elements, Table t) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (i < elements)
        insert(t, (Slot)mix(keys[i], t.seed) << 32 | values[i]);
}

static unsigned blocks(size_t n, unsigned threads) {
    return (n + threads - 1) / threads;
}

static void run_book(void) {
    HANDLE_ERROR(cudaMemsetAsync(dev_heads, 0, HASH_ENTRIES * sizeof(Entry *)));
    add_to_table<<<60, 256>>>(dev_keys, dev_values, elements, dev_heads, dev_pool, dev_locks);
    HANDLE_LAUNCH();
    built = LISTS_OF_BOOK;
}

static void run_push(void) {
    HANDLE_ERROR(cudaMemsetAsync(dev_heads, 0, buckets * sizeof(Entry *)));
    push<<<blocks(elements, 256), 256>>>(dev_keys, dev_values, elements, dev_heads, buckets, dev_pool,
                                         table.seed);
    HANDLE_LAUNCH();
    built = LISTS;
}

static size_t table_bytes(void) {
    return (size_t)table.parts * table.part_sectors * SECTOR * sizeof(Slot);
}

static void run_insert(void) {
    HANDLE_ERROR(cudaMemsetAsync(table.slots, 0xff, table_bytes())); // EMPTY
    insert_all<<<blocks(elements, 256), 256>>>(dev_keys, dev_values, elements, table);
    HANDLE_LAUNCH();
    built = SLOTS;
}

// The capacity of a bin: the expected number of pairs plus six standard deviations. It is even, so that bins
// are aligned to 16 bytes.
static unsigned bin_size(unsigned bins) {
    double mean = (double)elements / bins;
    return (unsigned)(mean + 6 * sqrt(mean) + 16) / 2 * 2;
}

static void run_partition(unsigned bins) {
    table.bin_count = bins;
    table.bin_size = bin_size(bins);
    HANDLE_ERROR(cudaMemsetAsync(table.in_bin, 0, bins * sizeof(unsigned)));
    HANDLE_ERROR(cudaMemsetAsync(table.spilled, 0, sizeof(unsigned)));
    partition<<<lookups.tiles, tile_threads, tile_bytes(tile_threads, bins)>>>(dev_keys, dev_values, elements,
                                                                               table);
    HANDLE_LAUNCH();
}

static void run_l2(void) {
    run_partition(L2_BINS);
    HANDLE_ERROR(cudaMemsetAsync(table.slots, 0xff, table_bytes()));
    unsigned per_bin = blocks(table.bin_size, 256);
    insert_bins<<<L2_BINS * per_bin, 256>>>(table, per_bin);
    HANDLE_LAUNCH();
    insert_spill<<<256, 256>>>(table);
    HANDLE_LAUNCH();
    built = SLOTS;
}

static void run_parts(void) {
    run_partition(table.parts);
    build_parts<<<table.parts, BUILDERS, table.part_sectors * SECTOR * sizeof(Slot)>>>(table);
    HANDLE_LAUNCH();
    insert_spill<<<256, 256>>>(table);
    HANDLE_LAUNCH();
    built = SLOTS;
}

static void find_each(void) {
    if (built == LISTS) {
        find_in_lists<<<blocks(elements, 256), 256>>>(dev_keys, elements, dev_heads, buckets, table.seed,
                                                      dev_found);
        HANDLE_LAUNCH();
    } else {
        find_all<<<blocks(elements, 256), 256>>>(dev_keys, elements, table, dev_found);
        HANDLE_LAUNCH();
    }
}

static void find_sorted(void) {
    sort_lookups<<<lookups.tiles, tile_threads, tile_bytes(tile_threads, lookups.groups * FINER)>>>(
        dev_keys, elements, table.seed, lookups);
    HANDLE_LAUNCH();
    find_groups<<<lookups.tiles * lookups.groups, 256>>>(table, elements, lookups);
    HANDLE_LAUNCH();
    put_in_order<<<lookups.tiles, tile_threads, lookups.tile_size * sizeof(unsigned)>>>(elements, lookups,
                                                                                        dev_found);
    HANDLE_LAUNCH();
}

// The memory traffic that no build can avoid: reading all pairs and writing a table of this size.
static void copy_pairs(void) {
    size_t bytes = 2 * elements * sizeof(unsigned);
    HANDLE_ERROR(cudaMemcpyAsync(table.slots, dev_keys, bytes, cudaMemcpyDeviceToDevice));
    HANDLE_ERROR(cudaMemsetAsync((char *)table.slots + bytes, 0xff, table_bytes() - bytes));
}

static const Rung copy = {"copy and fill", "reads the pairs, writes as much as a table", copy_pairs,
                          COPY_RATE};

static const Rung builds[] = {
    {"book, locks", "1024 buckets with a lock each", run_book},
    {"exchange of the head", "lock-free, buckets as the load factor says", run_push},
    {"open addressing", "64-bit compare-and-swap of key and value", run_insert},
    {"partition first", "insertions at the same time go to the L2 cache", run_l2, RUNG, 0, 0, needs_bins},
    {"parts in shared memory", "the table is written once, in order", run_parts, RUNG, 0, 0, needs_bins},
    copy,
};

static const Rung builds_and_lookups[] = {
    {"lists", "rung 1, then a thread per look-up", [] { run_push(), find_each(); }},
    {"open addressing", "a look-up reads a sector", [] { run_insert(), find_each(); }},
    {"parts in shared memory", "faster build, the same look-ups", [] { run_parts(), find_each(); }, RUNG, 0,
     0, needs_bins},
    {"sorted look-ups", "they find the sectors in the L2 cache", [] { run_parts(), find_sorted(); }, RUNG, 0,
     0, needs_bins},
    copy,
};

int main(int argc, char **argv) {
    settings(argc, argv);
    Lock locks[HASH_ENTRIES];
    for (Lock &lock : locks)
        lock.init();

    Bench bench;
    bench.size = bench.work = elements;
    bench.unit = "Gkeys/s";
    bench.poison = poison;
    bench.check = check;
    bool ok = true;
    const char *const fills[] = {"random", "sequential", "adversarial", "repeated"};
    const float loads[] = {0.5f, 0.8f, 0.95f};
    for (int fill = 0; fill < 4; fill++)
        for (int i = 0; i < 3; i++) {
            // By default repeated keys are left out, and only random ones come with every load factor. The
            // CPU back end, whose times do not rank kernels, takes random keys and one load factor.
            if (only_fill ? fill != only_fill - 1 : fill > (CPU_BACKEND ? 0 : 2))
                continue;
            if (only_load ? i != only_load - 1 : i > 0 && (fill > 0 || CPU_BACKEND))
                continue;
            load = loads[i];
            make_table();
            fill_keys(fill);
            HANDLE_ERROR(cudaMemcpy(dev_locks, locks, sizeof locks, cudaMemcpyHostToDevice));
            std::string data = std::string(fills[fill]) + ", load factor " +
                               (i == 0   ? "0.5"
                                : i == 1 ? "0.8"
                                         : "0.95");
            bench.data = data.c_str();
            bench.footprint = 2 * elements * sizeof(unsigned) + table_bytes();
            looked_up = false;
            bench.title = std::to_string(elements) + " keys, build";
            ok = bench_run(bench, builds) && ok;
            looked_up = true;
            bench.title = std::to_string(elements) + " keys, build and look-up of each";
            ok = bench_run(bench, builds_and_lookups) && ok;
            free_table();
        }
    bench_finish();

    for (Lock &lock : locks)
        lock.release();
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

const double LEAST_LOAD = 0.5;

void settings(int argc, char **argv) {
    const Option own[] = {
        OPTION_SIZE("size", &elements, 1, 1LL << 30, "keys"),
        OPTION_WORD("fill", &only_fill, "all|random|sequential|adversarial|repeated",
                    "keys: random bits, 0 1 2 …, multiples of 16, or 100 different ones"),
        OPTION_WORD("load", &only_load, "all|0.5|0.8|0.95", "load factor: keys divided by slots"),
        OPTION_END};
    parse_options(argc, argv, "Hash table, from the book's kernel to the fastest.", LADDER, own);
    select_device();
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, options.device));
    shared_bytes = prop.sharedMemPerBlockOptin - 1024;       // kernels also have static shared memory
    part_bytes = prop.sharedMemPerMultiprocessor / 2 - 1024; // two blocks per multiprocessor
    part_bytes = min_of(part_bytes, shared_bytes);
    tile_threads = tile_bytes(1024, 4096) <= shared_bytes ? 1024 : 256;
    for (auto kernel : {(const void *)partition, (const void *)sort_lookups, (const void *)build_parts,
                        (const void *)put_in_order})
        HANDLE_ERROR(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
    table.seed = random_bits();
    size_t per_key = 3 * sizeof(unsigned) + sizeof(Entry) + sizeof(Entry *) / LEAST_LOAD +
                     sizeof(Slot) * (1 / LEAST_LOAD + 2) + 6;
    require_memory(elements * sizeof(unsigned), elements * per_key * 1.05 + bench_memory(0));
    lookups.tile_size = tile_threads * ITEMS;
    lookups.tiles = blocks(elements, lookups.tile_size);
    lookups.groups = 1;
}

// Multiples of 16 belong to 64 of the book's buckets.
static void fill_keys(int fill) {
    unsigned *keys = host_array<unsigned>(elements);
    for (size_t i = 0; i < elements; i++) {
        uint64_t bits = random_bits();
        keys[i] = fill == 0 ? bits : fill == 1 ? i : fill == 2 ? 16 * i : bits % 100 * 0x9e3779b9;
    }
    HANDLE_ERROR(cudaMemcpy(dev_keys, keys, elements * sizeof(unsigned), cudaMemcpyHostToDevice));
    for (size_t i = 0; i < elements; i++)
        keys[i] = i;
    HANDLE_ERROR(cudaMemcpy(dev_values, keys, elements * sizeof(unsigned), cudaMemcpyHostToDevice));
    free(keys);
}

static std::vector<void *> allocated;

template <class T> static void allocate(T *&memory, size_t n) {
    HANDLE_ERROR(cudaMalloc(&memory, n * sizeof(T)));
    allocated.push_back(memory);
}

static void free_table(void) {
    for (void *memory : allocated)
        HANDLE_ERROR(cudaFree(memory));
    allocated.clear();
}

// Allocates the table. It has the smallest number of parts for which a part fits in shared memory. Look-ups
// are grouped so that the sectors of a group take a quarter of the L2 cache.
static void make_table(void) {
    buckets = ceil(elements / (double)load);
    size_t bytes = buckets * sizeof(Slot);
    size_t l2 = BENCH_SIZE(max_of(bench_device()->prop.l2CacheSize, 1 << 20), 1 << 18);
    table.parts = (bytes + part_bytes - 1) / part_bytes;
    table.part_sectors = blocks(buckets, SECTOR * table.parts);
    lookups.groups = min_of((size_t)256, 4 * bytes / l2 + 1);
    unsigned bins = max_of(table.parts, L2_BINS);
    size_t in_parts = (size_t)table.parts * bin_size(table.parts),
           in_l2 = (size_t)L2_BINS * bin_size(L2_BINS);
    allocate(dev_keys, 2 * elements);
    dev_values = dev_keys + elements;
    allocate(dev_found, elements);
    allocate(dev_pool, elements);
    allocate(dev_heads, max_of(buckets, HASH_ENTRIES));
    allocate(dev_locks, HASH_ENTRIES);
    allocate(table.slots, table_bytes() / sizeof(Slot));
    allocate(table.bins, max_of(in_parts, in_l2));
    allocate(table.spill, elements);
    allocate(table.in_bin, bins);
    allocate(table.spilled, 1);
    allocate(lookups.sorted, elements);
    allocate(lookups.places, elements);
    allocate(lookups.starts, (size_t)lookups.tiles * lookups.groups);
    allocate(dev_counts, COUNTERS);
}

static const char *needs_bins(void) {
    return tile_bytes(tile_threads, max_of(table.parts, L2_BINS)) <= shared_bytes ? NULL : "needs fewer keys";
}

// Every sector gets a wrong pair and three empty slots, so that a look-up in a table that was not built ends.
static void poison(void) {
    built = -1; // no table
    HANDLE_ERROR(cudaMemset(table.slots, 0xff, table_bytes()));
    HANDLE_ERROR(cudaMemset2D(table.slots, SECTOR * sizeof(Slot), 0x5a, sizeof(Slot),
                              (size_t)table.parts * table.part_sectors));
    HANDLE_ERROR(cudaMemset(dev_heads, 0xff, max_of(buckets, HASH_ENTRIES) * sizeof(Entry *)));
    HANDLE_ERROR(cudaMemset(dev_pool, 0xff, elements * sizeof(Entry)));
    HANDLE_ERROR(cudaMemset(dev_found, 0xff, elements * sizeof(unsigned)));
}

// Lists: every pair must be in the list of its key exactly once. Open addressing: the look-up of every key
// must return the index of the first equal key, and the table must hold as many pairs as there are different
// keys. A larger index than the first fails the test `value <= i` for the first of the equal keys.
static bool check(const char *name, BenchError *) {
    unsigned long long counts[COUNTERS], n = elements;
    HANDLE_ERROR(cudaMemset(dev_counts, 0, sizeof counts));
    if (built != SLOTS && !looked_up) {
        HANDLE_ERROR(cudaMemset(dev_found, 0, elements * sizeof(unsigned)));
        unsigned lists = built == LISTS_OF_BOOK ? HASH_ENTRIES : buckets;
        walk<<<blocks(lists, 128), 128>>>(dev_keys, elements, dev_heads, lists, built == LISTS_OF_BOOK,
                                          dev_pool, table.seed, dev_found);
        HANDLE_LAUNCH();
        count_once<<<1024, 256>>>(elements, dev_found, dev_counts);
        HANDLE_LAUNCH();
    } else {
        if (!looked_up)
            find_each();
        count_right<<<1024, 256>>>(dev_keys, elements, dev_found, built == SLOTS, dev_counts);
        HANDLE_LAUNCH();
        count_full<<<1024, 256>>>(table.slots, table_bytes() / sizeof(Slot), dev_counts);
        HANDLE_LAUNCH();
    }
    HANDLE_ERROR(cudaMemcpy(counts, dev_counts, sizeof counts, cudaMemcpyDeviceToHost));
    std::string what = std::string(name) + ": keys found with their values";
    bool ok = check_counts(what.c_str(), &counts[RIGHT], &n, 1);
    what = std::string(name) + ": pairs in the table";
    if (built == SLOTS)
        ok = check_counts(what.c_str(), &counts[FULL], &counts[DIFFERENT], 1) && ok;
    return ok;
}
