// SPDX-License-Identifier: MIT
/*
 * hashtable_ladder: hash table of 26 million keys, from a lock per bucket to parts in shared memory
 *
 * Teaches: A hash function scatters keys over the table, so the insertions of a warp go to places far apart,
 *          and the threads wait for memory even without locks. When the keys are partitioned first, by
 *          the upper bits of their hash values, a block can build each part of the table in shared memory.
 *          The table is then written in order, with coalesced stores. Look-ups become faster in the same way:
 *          sorted by the part of the table that they access, they find it in the L2 cache.
 * Terms:   hash table, open addressing, partition, load factor, compare-and-swap, lock-free, chaining,
 *          lock contention, coalesced access, shared memory, L2 cache, sector, tile, scan
 * Book:    A.2.4 (ladder)
 * Rungs:   builds: 0 book, locks (1024 buckets with a lock each); 1 exchange of the head (lock-free, buckets
 *          as the load factor says); 2 open addressing (64-bit compare-and-swap of key and value); 3 parts in
 *          shared memory (partition first, then the table is written once, in order); 4 sorted parts (places
 *          by prefix sums, without a search). With look-ups: 0 lists (rung 1, then a thread per look-up); 1
 *          open addressing (a look-up reads a sector); 2 parts in shared memory (faster build, the same
 *          look-ups); 3 sorted parts (no long probe sequences in a full table); 4 sorted look-ups (they find
 *          the sectors in the L2 cache)
 * Build:   nvcc -o hashtable_ladder appendix_a/hashtable_ladder.cu common/lib/[a-z]*.c
 * Run:     ./bin/appendix_a/hashtable_ladder --load 0.8 --fill random
 * Differs: the book's table and the lists of rung 1 keep all pairs of equal keys; open addressing keeps the
 *          pair with the smallest value. Clearing the table is part of the time. The second table adds the
 *          look-up of all keys; it leaves out the book's table, whose lists have 25,600 entries.
 * Limit:   two passes more than a copy: one that partitions, one that brings look-ups back into order. With a
 *          load factor of 0.95 the lanes of a warp wait for the longest probe sequence. On an H200 a
 *          build of 64K keys by rung 3, three kernels, takes 16 us, an empty kernel 2.8 us.
 * Bench:   64K 512K 1M 6M 26214400
 * Check:   --size 8000 --load 0.95 --runs 20 | --size 20000 --load 0.95 |
 *          --size 3000 --fill repeated --load 0.95
 */
#include "../common/book.h"
#include "../common/bench.h"
#ifdef HAVE_CUCO
#include <cuco/static_map.cuh>
#include <memory>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#endif
#include "lock.h"

const unsigned ELEMENTS = 100 * 1024 * 1024 / sizeof(unsigned); // the book's 100 MB of keys
const unsigned HASH_ENTRIES = 1024;                             // the book's buckets

struct Entry { // of a list
    unsigned key, value;
    Entry *next;
};

typedef unsigned long long Slot; // a hash value in the upper half, the value of its key in the lower half

const Slot EMPTY = ~0ULL;       // an empty slot; values are less than elements, so no pair equals it
const unsigned SECTOR = 4;      // slots in 32 bytes, the smallest unit that memory delivers
const unsigned ITEMS = 16;      // keys per thread in sort_tile()
const unsigned BUILDERS = 1024; // threads per block of build_parts()
const unsigned AHEAD = 4;       // pairs that each of them loads before its first insertion
const float ALMOST_FULL = 0.9f; // load factor from which rung 4 is used
const unsigned FINER = 8;       // sort_lookups() sorts by bins of 1/8 of a group

// The sectors of the table form parts, numbered by the upper bits of the hash value. A bin collects the pairs
// of one part. Pairs that do not fit in their bin or part are appended to an overflow list, `spill`, which is
// inserted after the parts have been built. So skewed keys take more time, but no pair is lost.
struct Table {
    Slot *slots;
    unsigned parts, part_sectors, seed;
    Slot *bins, *spill;
    unsigned bin_size, *in_bin;       // in_bin: pairs per bin, also those that did not fit
    unsigned *spilled, *next_spilled; // the number of pairs in spill, in this build and in the next
};

// The last step of the table with look-ups: see sort_lookups().
struct Lookups {
    unsigned *sorted;       // of each tile: the sorted hash values; later the values found
    unsigned short *places; // the indices of their keys in the tile
    unsigned *starts;       // of each tile and group: the index of the first look-up
    unsigned groups, tiles, tile_size;
};

static size_t elements = BENCH_SIZE(ELEMENTS, 1 << 14); // --size
static unsigned *dev_keys, *dev_values, *dev_found;     // found: results of look-ups
static Entry **dev_heads, *dev_pool;
static Lock *dev_locks;
static unsigned long long *dev_counts; // of the check
static Table table;
static Lookups lookups;
static unsigned buckets;      // number of lists, for this load factor
static unsigned tile_threads; // 1024; fewer with few keys, or where shared memory is small
static float load;            // load factor
static size_t shared_bytes, part_bytes, sector_bytes; // of shared memory: at most, for a part, for a sector
static int only_fill, only_load;                      // --fill, --load; 0: all
enum { LISTS_OF_BOOK, LISTS, SLOTS, OTHER };
static int built;                // the kind of table that the last run built
static void (*find_other)(void); // looks up all keys in such a table
static bool looked_up;
static unsigned unused_key; // a key that is in no pair
static void make_table(void);
static void allocate(void);
static void fill_keys(int fill);

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

// The mixing function of MurmurHash3. Each bit of the key changes about half of the bits of the result, so
// that regular keys spread like random ones. The seed makes it hard to choose keys that collide. The function
// is a bijection: equal hash values mean equal keys, so a slot needs no key.
__host__ __device__ static unsigned mix(unsigned key, unsigned seed) {
    key ^= seed;
    key = (key ^ key >> 16) * 0x85ebca6b;
    key = (key ^ key >> 13) * 0xc2b2ae35;
    return key ^ key >> 16;
}

// h * n / 2^32, from 0 to n - 1: which of n bins, parts or sectors a hash value belongs to. Since it does not
// decrease when h increases, the hash values of a part are those of part_sectors successive sectors.
__device__ static unsigned scale(unsigned h, unsigned n) {
    return __umulhi(h, n);
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

__device__ static unsigned hash_of(Slot pair) {
    return pair >> 32;
}

// Open addressing with linear probing: the probe sequence of a key goes through the slots of its home sector,
// then through the other sectors of the part, which follow each other in a circle. A 64-bit compare-and-swap
// stores the pair in the first empty slot. Of equal keys the smallest value is kept. `slot` is the slot of
// each sector that is tried first. Returns false if all slots hold other keys.
__device__ static bool insert_in_part(Slot *part, unsigned sectors, unsigned home, Slot pair, unsigned slot) {
    for (unsigned n = 0, sector = home; n < sectors; n++, sector = sector + 1 < sectors ? sector + 1 : 0)
        for (unsigned i = 0; i < SECTOR; i++) {
            Slot *to = &part[sector * SECTOR + (slot + i) % SECTOR];
            Slot old = atomicCAS(to, EMPTY, pair);
            if (old == EMPTY)
                return true;
            if (hash_of(old) == hash_of(pair)) {
                atomicMin(to, pair);
                return true;
            }
        }
    return false;
}

// The home sector of a hash value, within its part
__device__ static unsigned home_of(const Table &t, unsigned h) {
    return scale(h, t.parts * t.part_sectors) - scale(h, t.parts) * t.part_sectors;
}

// Inserts a pair into the table: into its part, or when that is full into one of the next parts.
__device__ static void insert(const Table &t, Slot pair, unsigned slot) {
    unsigned part = scale(hash_of(pair), t.parts), home = home_of(t, hash_of(pair));
    for (unsigned n = 0; n < t.parts; n++, part = part + 1 < t.parts ? part + 1 : 0, home = 0)
        if (insert_in_part(t.slots + (size_t)part * t.part_sectors * SECTOR, t.part_sectors, home, pair,
                           slot))
            return;
}

// Rung 2: the table holds the pairs themselves, and insert() takes a slot by a compare-and-swap. Which slot
// of a sector is tried first depends on the hash value; this reduces contention.
__global__ void insert_all(const unsigned *keys, const unsigned *values, size_t elements, Table t) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (i < elements) {
        Slot pair = (Slot)mix(keys[i], t.seed) << 32 | values[i];
        insert(t, pair, hash_of(pair));
    }
}

// ---- tiles: the keys of a block, sorted by part in shared memory ----

// Combines the x of the threads before this one by an operation; `none` is the result of the first thread.
template <class Operation> __device__ static int before(int x, int none, Operation operation) {
    __shared__ int all[32];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int sum = x, left = none;
    for (unsigned d = 1; d < 32; d *= 2) {
        int y = __shfl_up_sync(0xffffffff, sum, d);
        sum = lane >= d ? operation(sum, y) : sum;
    }
    __syncthreads(); // the results of an earlier call have been read
    if (lane == 31)
        all[warp] = sum;
    __syncthreads();
    sum = __shfl_up_sync(0xffffffff, sum, 1);
    for (unsigned i = 0; i < warp; i++)
        left = operation(left, all[i]);
    return lane ? operation(left, sum) : left;
}

__device__ static int sum_before(int x) {
    return before(x, 0, [](int a, int b) { return a + b; });
}

struct Tile {
    Slot *pairs;             // sorted by part
    unsigned *count, *start; // of each part: the number of its pairs, and the index of the first
};

__host__ __device__ static size_t tile_bytes(unsigned threads, unsigned parts) {
    return threads * ITEMS * sizeof(Slot) + 2 * parts * sizeof(unsigned);
}

// Counting sort of the block's keys by part: atomicAdd() returns the rank of each key among the keys of its
// part, and an exclusive prefix sum of the counts gives the index of the first key of each part. If values is
// NULL, the value of a key is its index in the tile.
__device__ static Tile sort_tile(Slot *shared, const unsigned *keys, const unsigned *values, unsigned size,
                                 unsigned parts, unsigned seed) {
    unsigned *count = (unsigned *)(shared + blockDim.x * ITEMS), *start = count + parts;
    Tile tile = {shared, count, start};
    unsigned h[ITEMS], rank[ITEMS];
    for (unsigned j = 0, i = threadIdx.x; j < ITEMS; j++, i += blockDim.x)
        h[j] = i < size ? keys[i] : 0;
    for (unsigned part = threadIdx.x; part < parts; part += blockDim.x)
        count[part] = 0;
    __syncthreads();
    for (unsigned j = 0, i = threadIdx.x; j < ITEMS; j++, i += blockDim.x) {
        h[j] = mix(h[j], seed);
        rank[j] = i < size ? atomicAdd(&count[scale(h[j], parts)], 1) : 0;
    }
    __syncthreads();
    unsigned each = (parts + blockDim.x - 1) / blockDim.x, sum = 0; // successive parts for each thread
    unsigned first = min(threadIdx.x * each, parts), last = min(first + each, parts);
    for (unsigned part = first; part < last; part++)
        sum += count[part];
    sum = sum_before(sum);
    for (unsigned part = first; part < last; part++) {
        start[part] = sum;
        sum += count[part];
    }
    __syncthreads();
    for (unsigned j = 0, i = threadIdx.x; j < ITEMS; j++, i += blockDim.x)
        if (i < size)
            shared[start[scale(h[j], parts)] + rank[j]] = (Slot)h[j] << 32 | (values ? values[i] : i);
    __syncthreads();
    return tile;
}

// Rungs 3 and 4, first step: writes each pair to the bin of its part. One atomic addition per tile and bin
// reserves memory for all pairs of the tile that belong to the bin. Successive threads then write them to
// successive addresses (coalesced).
__global__ void __launch_bounds__(1024)
    partition(const unsigned *keys, const unsigned *values, size_t elements, Table t) {
    extern __shared__ Slot shared[];
    size_t first = (size_t)blockIdx.x * blockDim.x * ITEMS;
    unsigned size = min((size_t)blockDim.x * ITEMS, elements - first);
    Tile tile = sort_tile(shared, keys + first, values + first, size, t.parts, t.seed);
    // Now count[bin] becomes an offset: added to a pair's index in the sorted tile, it gives its index in the
    // bin.
    for (unsigned bin = threadIdx.x; bin < t.parts; bin += blockDim.x)
        if (tile.count[bin])
            tile.count[bin] = atomicAdd(&t.in_bin[bin], tile.count[bin]) - tile.start[bin];
    __syncthreads();
    for (unsigned i = threadIdx.x; i < size; i += blockDim.x) {
        Slot pair = tile.pairs[i];
        unsigned bin = scale(hash_of(pair), t.parts), place = tile.count[bin] + i;
        if (place < t.bin_size)
            t.bins[(size_t)bin * t.bin_size + place] = pair;
        else
            t.spill[atomicAdd(t.spilled, 1)] = pair;
    }
}

struct alignas(16) TwoSlots {
    Slot a, b;
};

// Pairs that find no empty slot in their part are appended to the overflow list.
__device__ static void insert_or_spill(const Table &t, Slot *part, Slot pair) {
    if (!insert_in_part(part, t.part_sectors, home_of(t, hash_of(pair)), pair, 0))
        t.spill[atomicAdd(t.spilled, 1)] = pair;
}

// Rung 3, second step: a block builds one part in shared memory and writes it once. The first pairs are
// loaded while the block clears the part.
__global__ void __launch_bounds__(BUILDERS) build_parts(Table t) {
    extern __shared__ __align__(16) Slot part[];
    unsigned first = blockIdx.x * t.part_sectors, count = min(t.in_bin[blockIdx.x], t.bin_size);
    const Slot *bin = t.bins + (size_t)blockIdx.x * t.bin_size;
    Slot pairs[AHEAD];
    for (unsigned j = 0, i = threadIdx.x; j < AHEAD; j++, i += BUILDERS)
        pairs[j] = i < count ? bin[i] : EMPTY;
    for (unsigned i = threadIdx.x; i < t.part_sectors * SECTOR / 2; i += BUILDERS)
        ((TwoSlots *)part)[i] = {EMPTY, EMPTY};
    __syncthreads();
    for (Slot pair : pairs)
        if (pair != EMPTY)
            insert_or_spill(t, part, pair);
    for (unsigned i = threadIdx.x + AHEAD * BUILDERS; i < count; i += BUILDERS)
        insert_or_spill(t, part, bin[i]);
    __syncthreads();
    TwoSlots *to = (TwoSlots *)(t.slots + (size_t)first * SECTOR);
    for (unsigned i = threadIdx.x; i < t.part_sectors * SECTOR / 2; i += BUILDERS)
        to[i] = ((TwoSlots *)part)[i];
}

// Where the pairs of a part go when their home sectors take turns: those of a sector begin in its first slot,
// or after those of the sector before, whichever comes later. So they end at
// e(s) = max(e(s - 1), SECTOR s) + count[s]. Written out, this is a prefix sum and a prefix maximum:
// e(s) = sum + max(w, max(SECTOR j - sum before j)) over all j up to s. The last w pairs pass the end of the
// part and are the first ones in its beginning. Writes start[s] for each sector.
__device__ static void find_starts(const unsigned *count, unsigned *start, unsigned sectors) {
    __shared__ int past_end;
    unsigned each = (sectors + blockDim.x - 1) / blockDim.x; // successive sectors for each thread
    unsigned first = min(threadIdx.x * each, sectors), last = min(first + each, sectors);
    int sum = 0, most = -(1 << 30);
    for (unsigned s = first; s < last; s++) {
        most = max(most, (int)(SECTOR * s) - sum);
        sum += count[s];
    }
    int left = sum_before(sum);
    most -= left;
    int most_left = before(most, -(1 << 30), [](int a, int b) { return max(a, b); });
    if (threadIdx.x == blockDim.x - 1)
        past_end = max(0, left + sum + max(most, most_left) - (int)(SECTOR * sectors));
    __syncthreads();
    int end = left + max(past_end, most_left);
    for (unsigned s = first; s < last; s++) {
        start[s] = end = max(end, (int)(SECTOR * s));
        end += count[s];
    }
    __syncthreads();
}

// Rung 4, second step: the pairs of a part are sorted by their home sector (counting sort), with gaps where
// find_starts() leaves them. So no insertion has to search for an empty slot, and look-ups in a table that is
// almost full meet no long probe sequences (Robin Hood hashing). Of equal keys, which have the same home
// sector, all but the pair with the smallest value are taken out of the bin; then the part is built once
// more. Pairs that the part cannot hold are appended to the overflow list.
__global__ void __launch_bounds__(BUILDERS) build_sorted(Table t) {
    extern __shared__ __align__(16) Slot part[];
    unsigned slots = t.part_sectors * SECTOR, first = blockIdx.x * t.part_sectors;
    unsigned *count = (unsigned *)(part + slots), *start = count + t.part_sectors; // of each sector
    unsigned in_bin = min(t.in_bin[blockIdx.x], t.bin_size), n = min(in_bin, slots);
    Slot *bin = t.bins + (size_t)blockIdx.x * t.bin_size;
    for (unsigned i = n + threadIdx.x; i < in_bin; i += BUILDERS)
        t.spill[atomicAdd(t.spilled, 1)] = bin[i];
    for (unsigned s = threadIdx.x; s < t.part_sectors; s += BUILDERS)
        count[s] = 0;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < n; i += BUILDERS)
        atomicAdd(&count[home_of(t, hash_of(bin[i]))], 1);
    bool again;
    do {
        for (unsigned i = threadIdx.x; i < slots / 2; i += BUILDERS)
            ((TwoSlots *)part)[i] = {EMPTY, EMPTY};
        __syncthreads();
        find_starts(count, start, t.part_sectors);
        for (unsigned i = threadIdx.x; i < n; i += BUILDERS) {
            Slot pair = bin[i];
            unsigned place = pair != EMPTY ? atomicAdd(&start[home_of(t, hash_of(pair))], 1)
                                           : 0; // start[s] becomes the end
            if (pair != EMPTY)
                part[place < slots ? place : place - slots] = pair;
        }
        __syncthreads();
        unsigned taken_out = 0; // a bit for each pair of this thread
        for (unsigned j = 0, i = threadIdx.x; i < n; j++, i += BUILDERS) {
            Slot pair = bin[i];
            unsigned s = pair != EMPTY ? home_of(t, hash_of(pair)) : 0, end = pair != EMPTY ? start[s] : 0;
            for (unsigned k = end - min(end, count[s]); k < end; k++) {
                Slot other = part[k < slots ? k : k - slots];
                if (hash_of(other) == hash_of(pair) && other < pair)
                    taken_out |= 1u << j;
            }
        }
        again = __syncthreads_or(taken_out);
        for (unsigned j = 0, i = threadIdx.x; i < n && again; j++, i += BUILDERS)
            if (taken_out >> j & 1) {
                atomicSub(&count[home_of(t, hash_of(bin[i]))], 1);
                bin[i] = EMPTY;
            }
    } while (again);
    TwoSlots *to = (TwoSlots *)(t.slots + (size_t)first * SECTOR);
    for (unsigned i = threadIdx.x; i < slots / 2; i += BUILDERS)
        to[i] = ((TwoSlots *)part)[i];
}

// The last step of rungs 3 and 4: inserts the pairs of the overflow list. The first pair of a sector is in
// its first slot, so that slot is tried first. It also sets the counters to 0 for the next build. That counts
// spilled pairs in another counter, because threads of this kernel still read the one of this build.
__global__ void insert_spill(Table t) {
    unsigned self = threadIdx.x + blockIdx.x * blockDim.x, step = blockDim.x * gridDim.x;
    for (unsigned bin = self; bin < t.parts; bin += step)
        t.in_bin[bin] = 0;
    if (self == 0)
        *t.next_spilled = 0;
    for (unsigned i = self; i < *t.spilled; i += step)
        insert(t, t.spill[i], 0);
}

// ---- look-ups ----

// Returns the value of the key with hash value h, or UINT_MAX if it is not in the table. Two loads of 16
// bytes read a whole sector, which is transferred from memory as a unit.
__device__ static unsigned find(const Table &t, unsigned h) {
    unsigned part = scale(h, t.parts), sector = home_of(t, h);
    for (unsigned i = 0; i < t.parts; i++, part = part + 1 < t.parts ? part + 1 : 0, sector = 0)
        for (unsigned j = 0; j < t.part_sectors; j++, sector = sector + 1 < t.part_sectors ? sector + 1 : 0) {
            const TwoSlots *two =
                (const TwoSlots *)(t.slots + ((size_t)part * t.part_sectors + sector) * SECTOR);
            const TwoSlots x = two[0], y = two[1];
            const Slot slots[SECTOR] = {x.a, x.b, y.a, y.b};
            for (Slot slot : slots)
                if (slot != EMPTY && hash_of(slot) == h)
                    return (unsigned)slot; // the value, in the lower half
            if (x.a == EMPTY || x.b == EMPTY || y.a == EMPTY || y.b == EMPTY)
                return UINT_MAX;
        }
    return UINT_MAX;
}

__global__ void find_all(const unsigned *keys, size_t elements, Table t, unsigned *found) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (i < elements)
        found[i] = find(t, mix(keys[i], t.seed));
}

// The last rung sorts the look-ups of each tile by groups of successive sectors. Then all tiles access the
// first group of sectors, which stays in the L2 cache meanwhile, then the second, and so on. Finally each
// tile restores the order of its keys, in shared memory.
__global__ void __launch_bounds__(1024)
    sort_lookups(const unsigned *keys, size_t elements, unsigned seed, Lookups l) {
    extern __shared__ Slot shared[];
    size_t first = (size_t)blockIdx.x * l.tile_size;
    unsigned size = min((size_t)l.tile_size, elements - first);
    Tile tile = sort_tile(shared, keys + first, NULL, size, l.groups * FINER, seed);
    for (unsigned group = threadIdx.x; group < l.groups; group += blockDim.x)
        l.starts[(size_t)blockIdx.x * l.groups + group] = tile.start[group * FINER];
    for (unsigned i = threadIdx.x; i < size; i += blockDim.x) {
        l.sorted[first + i] = hash_of(tile.pairs[i]);
        l.places[first + i] = (unsigned short)tile.pairs[i]; // from the lower half
    }
}

// One block per group and tile. Blocks of all tiles of group 0 come first, then those of group 1, and so on.
__global__ void find_groups(Table t, size_t elements, Lookups l) {
    unsigned group = blockIdx.x / l.tiles, tile = blockIdx.x % l.tiles;
    const unsigned *start = l.starts + (size_t)tile * l.groups + group;
    size_t first = (size_t)tile * l.tile_size;
    unsigned end = group + 1 < l.groups ? start[1] : min((size_t)l.tile_size, elements - first);
    for (unsigned i = *start + threadIdx.x; i < end; i += blockDim.x)
        l.sorted[first + i] = find(t, l.sorted[first + i]);
}

__global__ void put_in_order(size_t elements, Lookups l, unsigned *found) {
    extern __shared__ unsigned values[];
    size_t first = (size_t)blockIdx.x * l.tile_size;
    unsigned size = min((size_t)l.tile_size, elements - first);
    for (unsigned i = threadIdx.x; i < size; i += blockDim.x)
        values[l.places[first + i]] = l.sorted[first + i];
    __syncthreads();
    for (unsigned i = threadIdx.x; i < size; i += blockDim.x)
        found[first + i] = values[i];
}

// ---- what the rungs launch ----

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
static unsigned bin_size(void) {
    double mean = (double)elements / table.parts;
    return (unsigned)(mean + 6 * sqrt(mean) + 16) / 2 * 2;
}

// sorted: with rung 4, for a table that is almost full; otherwise rung 3 takes less time.
static void run_parts(bool sorted) {
    table.bin_size = bin_size();
    std::swap(table.spilled, table.next_spilled);
    size_t tile = tile_bytes(tile_threads, table.parts);
    partition<<<lookups.tiles, tile_threads, tile>>>(dev_keys, dev_values, elements, table);
    HANDLE_LAUNCH();
    auto kernel = sorted ? build_sorted : build_parts;
    kernel<<<table.parts, BUILDERS, table.part_sectors * sector_bytes>>>(table);
    HANDLE_LAUNCH();
    insert_spill<<<256, 256>>>(table);
    HANDLE_LAUNCH();
    built = SLOTS;
}

static void find_each(void) {
    unsigned n = blocks(elements, 256);
    if (built == LISTS)
        find_in_lists<<<n, 256>>>(dev_keys, elements, dev_heads, buckets, table.seed, dev_found);
    else
        find_all<<<n, 256>>>(dev_keys, elements, table, dev_found);
    HANDLE_LAUNCH();
}

static void find_sorted(void) {
    if (lookups.groups == 1)
        return find_each();
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

static const char *needs_bins(void) {
    return tile_bytes(tile_threads, table.parts) <= shared_bytes ? NULL : "needs fewer keys";
}

static const char *needs_load(void) {
    return load > ALMOST_FULL ? needs_bins() : "needs load 0.95";
}

static const Rung copy = {"copy and fill", "reads the pairs, writes as much as a table", copy_pairs, LIMIT};

#ifdef HAVE_CUCO
// The hash table of cuCollections. Groups of GROUP threads probe GROUP slots at once. An empty slot has a key
// that is in no pair.
struct PairOf {
    const unsigned *keys, *values;
    __device__ cuco::pair<unsigned, unsigned> operator()(size_t i) const { return {keys[i], values[i]}; }
};

template <int GROUP> static void run_cuco(void) {
    typedef cuco::linear_probing<GROUP, cuco::default_hash_function<unsigned>> Probing;
    typedef cuco::static_map<unsigned, unsigned, cuco::extent<size_t>, cuda::thread_scope_device,
                             thrust::equal_to<unsigned>, Probing>
        Map;
    static std::unique_ptr<Map> map;
    static unsigned of_buckets, of_key;
    if (!map || of_buckets != buckets || of_key != unused_key) // in the first run, which is not timed
        map.reset(new Map(of_buckets = buckets, cuco::empty_key<unsigned>(of_key = unused_key),
                          cuco::empty_value<unsigned>(UINT_MAX)));
    auto pairs = thrust::make_transform_iterator(thrust::make_counting_iterator<size_t>(0),
                                                 PairOf{dev_keys, dev_values});
    map->clear_async();
    map->insert_async(pairs, pairs + elements);
    find_other = [] { map->find_async(dev_keys, dev_keys + elements, dev_found); };
    if (looked_up)
        find_other();
    built = OTHER;
}

static const Rung cuco_single = {"cuCollections", "static_map, a thread a key", run_cuco<1>, LIBRARY, 70},
                  cuco_pair = {"cuCollections, groups", "static_map, two threads a key", run_cuco<2>, LIBRARY,
                               70};
#endif

static const Rung builds[] = {
    {"book, locks", "1024 buckets with a lock each", run_book},
    {"exchange of the head", "lock-free, buckets as the load factor says", run_push},
    {"open addressing", "64-bit compare-and-swap of key and value", run_insert},
    {"parts in shared memory", "partition first, then the table is written once, in order",
     [] { run_parts(false); }, needs_bins},
    {"sorted parts", "places by prefix sums, without a search", [] { run_parts(true); }, needs_load},
#ifdef HAVE_CUCO
    cuco_single,
    cuco_pair,
#endif
    copy,
};

static const Rung builds_and_lookups[] = {
    {"lists", "rung 1, then a thread per look-up", [] { run_push(), find_each(); }},
    {"open addressing", "a look-up reads a sector", [] { run_insert(), find_each(); }},
    {"parts in shared memory", "faster build, the same look-ups", [] { run_parts(false), find_each(); },
     needs_bins},
    {"sorted parts", "no long probe sequences in a full table", [] { run_parts(true), find_each(); },
     needs_load},
    {"sorted look-ups", "they find the sectors in the L2 cache",
     [] { run_parts(load > ALMOST_FULL), find_sorted(); }, needs_bins},
#ifdef HAVE_CUCO
    cuco_single,
    cuco_pair,
#endif
    copy,
};

int main(int argc, char **argv) {
    settings(argc, argv);
    Lock locks[HASH_ENTRIES];
    allocate();
    HANDLE_ERROR(cudaMemcpy(dev_locks, locks, sizeof locks, cudaMemcpyHostToDevice));

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
            std::string data = std::string(fills[fill]) + bench_format(", load factor %g", load);
            bench.footprint = 2 * elements * sizeof(unsigned) + table_bytes();
            looked_up = false;
            bench.data = "build, " + data;
            bench_run(builds);
            looked_up = true;
            bench.data = "build and look-up of each, " + data;
            bench_run(builds_and_lookups);
        }

    for (unsigned i = 0; i < HASH_ENTRIES; i++)
        locks[i].release();
    return bench_finish();
}

// ---------------------------------------------------------------------------------------- check

enum { RIGHT, DIFFERENT, FULL, COUNTERS };

// Traverses the list of each bucket, one thread per bucket, and counts the values that occur once, in an
// entry with their key and in the list of that key; a value that occurs again counts as -1. So does a pointer
// that is not to an entry of the pool, where the thread stops: a list ends with NULL. times[]: 0 before
__global__ void walk(const unsigned *keys, size_t elements, Entry *const *heads, unsigned buckets, bool book,
                     const Entry *pool, unsigned seed, unsigned *times, unsigned long long *counts) {
    size_t bucket = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (bucket >= buckets)
        return;
    const Entry *entry = heads[bucket];
    long long right = 0;
    for (size_t i = 0; i < elements && entry; i++, entry = entry->next) {
        size_t offset = (size_t)entry - (size_t)pool;
        if (offset >= elements * sizeof(Entry) || offset % sizeof(Entry)) {
            right--;
            break;
        }
        unsigned key = entry->key, value = entry->value;
        unsigned of = book ? key % HASH_ENTRIES : scale(mix(key, seed), buckets);
        if (value < elements && keys[value] == key && of == bucket)
            right += atomicExch(&times[value], 1) == 0 ? 1 : -1;
    }
    atomicAdd(&counts[RIGHT], (unsigned long long)right);
}

// A look-up is right if it returns the index of an equal key; with `first`, an index that is not larger than
// its own. DIFFERENT counts the look-ups that return their own index: the first of equal keys.
__global__ void count_right(const unsigned *keys, size_t elements, const unsigned *found, bool first,
                            const Slot *slots, size_t n, unsigned long long *counts) {
    unsigned long long right = 0, different = 0, full = 0;
    size_t start = threadIdx.x + (size_t)blockIdx.x * blockDim.x, stride = blockDim.x * gridDim.x;
    for (size_t i = start; i < elements; i += stride) {
        size_t value = found[i];
        right += value < elements && keys[value] == keys[i] && (!first || value <= i);
        different += value == i;
    }
    for (size_t i = start; i < n; i += stride)
        full += slots[i] != EMPTY;
    atomicAdd(&counts[RIGHT], right);
    atomicAdd(&counts[DIFFERENT], different);
    atomicAdd(&counts[FULL], full);
}

const double LEAST_LOAD = 0.5;

void settings(int argc, char **argv) {
    configure(argc, argv, "Hash table, from the book's kernel to the fastest.", LADDER,
              {OPTION_SIZE("size", &elements, 1, 1LL << 30, "keys"),
               OPTION_WORD("fill", &only_fill, "all|random|sequential|adversarial|repeated",
                           "keys: random bits, 0 1 2 …, multiples of 16, or 100 different ones"),
               OPTION_WORD("load", &only_load, "all|0.5|0.8|0.95", "load factor: keys divided by slots")});
    // Kernels also have static shared memory; part_bytes is for two blocks with theirs.
    shared_bytes = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) - 1024;
    part_bytes = device_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / 2 - 2048;
    part_bytes = min_of(min_of(part_bytes, shared_bytes), 32 * BUILDERS * sizeof(Slot));
    const unsigned multiprocessors = device_attribute(cudaDevAttrMultiProcessorCount);
    tile_threads = tile_bytes(1024, 4096) <= shared_bytes ? 1024 : 256;
    while (tile_threads > 128 && blocks(elements, tile_threads * ITEMS) < multiprocessors)
        tile_threads /= 2;
    for (auto kernel : {(const void *)partition, (const void *)sort_lookups, (const void *)build_parts,
                        (const void *)build_sorted, (const void *)put_in_order})
        bench_shared(kernel, shared_bytes);
    table.seed = random_bits();
    size_t per_key = 3 * sizeof(unsigned) + sizeof(Entry) + sizeof(Entry *) / LEAST_LOAD +
                     sizeof(Slot) * (1 / LEAST_LOAD + 2) + 6;
    require_memory(elements * sizeof(unsigned), elements * per_key * 1.05 + bench_memory(0));
    lookups.tile_size = tile_threads * ITEMS;
    lookups.tiles = blocks(elements, lookups.tile_size);
    lookups.groups = 1;
    bench.title = std::to_string(elements) + " keys";
    bench.size = bench.work = elements;
    bench.unit = "Gkeys/s";
    bench.left = [](const std::string &) { // by copy_pairs
        size_t bytes = 2 * elements * sizeof(unsigned);
        return std::vector<BenchLeft>{{table.slots, dev_keys, bytes},
                                      {(char *)table.slots + bytes, NULL, table_bytes() - bytes, 0xff}};
    };
}

// The inverse of mix(): the key with this hash value
static unsigned key_of(unsigned h, unsigned seed) {
    h = (h ^ h >> 16) * 0x7ed1b41d;
    h = (h ^ h >> 13 ^ h >> 26) * 0xa5cb9243;
    return h ^ h >> 16 ^ seed;
}

// The adversarial keys are multiples of 16: only 64 of the book's 1024 buckets get entries. On the CPU back
// end up to a tenth of the random keys get hash values of the last part of the table, most of them near the
// end. Then its bin overflows, at a load factor of 0.95 the part overflows too, and probe sequences wrap
// around from the last sector to the first one.
static void fill_keys(int fill) {
    HostArray<unsigned> keys(elements);
    for (size_t i = 0; i < elements; i++) {
        uint64_t bits = random_bits();
        keys[i] = fill == 0 ? bits : fill == 1 ? i : fill == 2 ? 16 * i : bits % 100 * 0x9e3779b9;
    }
    size_t more = CPU_BACKEND && fill == 0 ? min_of(elements / 10, SECTOR * table.part_sectors / 5) : 0;
    for (unsigned i = 0; i < more; i++) {
        double part = (double)i / more, from_end = UINT_MAX / table.parts * part * part;
        keys[4 * i] = key_of(UINT_MAX - (unsigned)from_end, table.seed);
    }
    do
        unused_key = random_bits();
    while (std::find(keys + 0, keys + elements, unused_key) != keys + elements);
    HANDLE_ERROR(cudaMemcpy(dev_keys, keys, elements * sizeof(unsigned), cudaMemcpyHostToDevice));
    for (size_t i = 0; i < elements; i++)
        keys[i] = i;
    HANDLE_ERROR(cudaMemcpy(dev_values, keys, elements * sizeof(unsigned), cudaMemcpyHostToDevice));
}

// Chooses the sizes of the table. It has the smallest number of parts for which a part fits in shared memory.
// A small table has more, up to one per multiprocessor, if a part remains so large that its pairs almost
// never exceed its slots: by five standard deviations of their number. Look-ups are grouped so that the
// sectors of a group take a quarter of the L2 cache. In a table below twice the L2 cache there is one group,
// and look-ups are not sorted.
static void make_table(void) {
    buckets = ceil(elements / (double)load);
    size_t bytes = buckets * sizeof(Slot);
    size_t l2 = BENCH_SIZE(max_of(bench_device()->prop.l2CacheSize, 1 << 20), 1 << 16);
    size_t counters = load > ALMOST_FULL ? 2 * sizeof(unsigned) : 0; // of a sector, in rung 4
    sector_bytes = SECTOR * sizeof(Slot) + counters;
    double least = 25 * load / ((1 - load) * (1 - load)); // slots of a part
    table.parts = max_of(
        blocks(buckets, part_bytes / sector_bytes * SECTOR),
        min_of((unsigned)device_attribute(cudaDevAttrMultiProcessorCount), (unsigned)(buckets / least)));
    table.part_sectors = blocks(buckets, SECTOR * table.parts);
    lookups.groups = bytes < 2 * l2 ? 1 : min_of((size_t)256, 4 * bytes / l2 + 1);
}

// Allocates memory that suffices for all tables: that of the one with the smallest load factor.
static void allocate(void) {
    load = LEAST_LOAD;
    make_table();
    size_t bytes = elements * sizeof(unsigned);
    bench_malloc(&dev_keys, 2 * bytes);
    dev_values = dev_keys + elements;
    bench_malloc(&dev_found, bytes);
    bench_malloc(&dev_pool, elements * sizeof(Entry));
    bench_malloc(&dev_heads, max_of(buckets, HASH_ENTRIES) * sizeof(Entry *));
    bench_malloc(&dev_locks, HASH_ENTRIES * sizeof(Lock));
    bench_malloc(&table.slots, table_bytes());
    bench_malloc(&table.bins, (size_t)table.parts * bin_size() * sizeof(Slot));
    bench_malloc(&table.spill, elements * sizeof(Slot));
    bench_malloc(&table.in_bin, (table.parts + 2) * sizeof(unsigned));
    table.spilled = table.in_bin + table.parts;
    table.next_spilled = table.spilled + 1;
    HANDLE_ERROR(cudaMemset(table.in_bin, 0, (table.parts + 2) * sizeof(unsigned)));
    bench_malloc(&lookups.sorted, bytes);
    bench_malloc(&lookups.places, elements * sizeof(unsigned short));
    bench_malloc(&lookups.starts, (size_t)lookups.tiles * lookups.groups * sizeof(unsigned));
    bench_malloc(&dev_counts, COUNTERS * sizeof(*dev_counts));
}

// Every sector gets a wrong pair and three empty slots, so that a look-up in a table that was not built ends.
// Bins get wrong pairs, which must not reach the table from behind the last pair of a bin.
static void poison(void) {
    built = -1; // no table
    HANDLE_ERROR(cudaMemset(table.slots, 0xff, table_bytes()));
    HANDLE_ERROR(cudaMemset2D(table.slots, SECTOR * sizeof(Slot), 0x5a, sizeof(Slot),
                              (size_t)table.parts * table.part_sectors));
    HANDLE_ERROR(cudaMemset(table.bins, 0x5a, (size_t)table.parts * bin_size() * sizeof(Slot)));
    HANDLE_ERROR(cudaMemset(dev_heads, 0xff, max_of(buckets, HASH_ENTRIES) * sizeof(Entry *)));
    HANDLE_ERROR(cudaMemset(dev_pool, 0xff, elements * sizeof(Entry)));
    HANDLE_ERROR(cudaMemset(dev_found, 0xff, elements * sizeof(unsigned)));
}

// Lists: every pair must be in the list of its key exactly once. Open addressing: the look-up of every key
// must return the index of the first equal key, and the table must hold as many pairs as there are different
// keys. A larger index than the first fails the test `value <= i` for the first of the equal keys.
static bool check(const char *name, BenchError *) {
    unsigned long long n = elements;
    HANDLE_ERROR(cudaMemset(dev_counts, 0, COUNTERS * sizeof(*dev_counts)));
    if (built <= LISTS && !looked_up) {
        HANDLE_ERROR(cudaMemset(dev_found, 0, elements * sizeof(unsigned)));
        unsigned lists = built == LISTS_OF_BOOK ? HASH_ENTRIES : buckets;
        walk<<<blocks(lists, 128), 128>>>(dev_keys, elements, dev_heads, lists, built == LISTS_OF_BOOK,
                                          dev_pool, table.seed, dev_found, dev_counts);
        HANDLE_LAUNCH();
    } else {
        if (!looked_up)
            built == OTHER ? find_other() : find_each();
        count_right<<<1024, 256>>>(dev_keys, elements, dev_found, built == SLOTS, table.slots,
                                   table_bytes() / sizeof(Slot), dev_counts);
        HANDLE_LAUNCH();
    }
    HostArray<unsigned long long> counts(dev_counts, COUNTERS);
    std::string what = std::string(name) + ": keys found with their values";
    bool ok = check_counts(what.c_str(), &counts[RIGHT], &n, 1);
    const unsigned hash = 0x12345678;
    ok = check_value("the hash value of its key", mix(key_of(hash, table.seed), table.seed), hash, 0) && ok;
    what = std::string(name) + ": pairs in the table";
    if (built == SLOTS)
        ok = check_counts(what.c_str(), &counts[FULL], &counts[DIFFERENT], 1) && ok;
    return ok;
}
