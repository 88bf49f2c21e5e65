// SPDX-License-Identifier: MIT
// For hashtable_ladder: a hash table with open addressing, and kernels that partition the keys before they
// insert them or look them up.
#ifndef APPENDIX_A_HASHTABLE_PARTS_H
#define APPENDIX_A_HASHTABLE_PARTS_H

#include "../common/book.h"

const unsigned HASH_ENTRIES = 1024; // the book's buckets

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
const unsigned FINER = 8;       // sort_lookups() sorts by bins of 1/8 of a group

// The sectors of the table form parts, numbered by the upper bits of the hash value. A bin collects the pairs
// of one part or, for rung 3, of many parts. Pairs that do not fit in their bin or part are appended to an
// overflow list, `spill`, which is inserted after the parts have been built. So skewed keys take more time,
// but no pair is lost.
struct Table {
    Slot *slots;
    unsigned parts, part_sectors, seed;
    Slot *bins, *spill;
    unsigned bin_count, bin_size, *in_bin, *spilled; // in_bin: pairs per bin, also those that did not fit
};

// The mixing function of MurmurHash3. Each bit of the key changes about half of the bits of the result, so
// that regular keys spread like random ones. The seed makes it hard to choose keys that collide. The function
// is a bijection: equal hash values mean equal keys, so a slot needs no key.
__device__ static unsigned mix(unsigned key, unsigned seed) {
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

__device__ static unsigned hash_of(Slot pair) {
    return pair >> 32;
}

// Open addressing with linear probing: the probe sequence of a key goes through the slots of its sector, then
// through the next sectors up to `end`. A 64-bit compare-and-swap stores the pair in the first empty slot. Of
// equal keys the smallest value is kept. Which slot of a sector is probed first depends on the hash value;
// this reduces contention. Returns false if all slots hold other keys.
__device__ static bool insert_from(Slot *slots, unsigned sector, unsigned end, Slot pair) {
    for (; sector < end; sector++)
        for (unsigned i = 0; i < SECTOR; i++) {
            Slot *slot = &slots[(size_t)sector * SECTOR + (hash_of(pair) + i) % SECTOR];
            Slot old = atomicCAS(slot, EMPTY, pair);
            if (old == EMPTY)
                return true;
            if (hash_of(old) == hash_of(pair)) {
                atomicMin(slot, pair);
                return true;
            }
        }
    return false;
}

// Inserts a pair into the table. The probe sequence wraps around from the last sector to the first.
__device__ static void insert(const Table &t, Slot pair) {
    unsigned sectors = t.parts * t.part_sectors;
    if (!insert_from(t.slots, scale(hash_of(pair), sectors), sectors, pair))
        insert_from(t.slots, 0, sectors, pair);
}

// ---- tiles: the keys of a block, sorted by part in shared memory ----

// Returns the sum of x over the threads before this one.
__device__ static unsigned sum_before(unsigned x) {
    __shared__ unsigned sums[32];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, sum = x;
    for (unsigned d = 1; d < 32; d *= 2) {
        unsigned y = __shfl_up_sync(0xffffffff, sum, d);
        sum += lane >= d ? y : 0;
    }
    if (lane == 31)
        sums[warp] = sum;
    __syncthreads();
    for (unsigned i = 0; i < warp; i++)
        sum += sums[i];
    return sum - x;
}

struct Tile {
    Slot *pairs;             // sorted by part
    unsigned *count, *start; // of each part: the number of its pairs, and the index of the first
};

__host__ __device__ static size_t tile_bytes(unsigned threads, unsigned parts) {
    return threads * ITEMS * sizeof(Slot) + 2 * parts * sizeof(unsigned);
}

// Counting sort of the block's keys by part: atomicAdd() returns the rank of each key among the keys of its
// part, and an exclusive prefix sum of the counts gives the index of the first key of each part. value(i) is
// the value of key i of the tile.
template <class Value>
__device__ static Tile sort_tile(Slot *shared, const unsigned *keys, unsigned size, unsigned parts,
                                 unsigned seed, Value value) {
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
            shared[start[scale(h[j], parts)] + rank[j]] = (Slot)h[j] << 32 | value(i);
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
    Tile tile = sort_tile(shared, keys + first, size, t.bin_count, t.seed,
                          [&](unsigned i) { return values[first + i]; });
    // Now count[bin] becomes an offset: added to a pair's index in the sorted tile, it gives its index in the
    // bin.
    for (unsigned bin = threadIdx.x; bin < t.bin_count; bin += blockDim.x)
        if (tile.count[bin])
            tile.count[bin] = atomicAdd(&t.in_bin[bin], tile.count[bin]) - tile.start[bin];
    __syncthreads();
    for (unsigned i = threadIdx.x; i < size; i += blockDim.x) {
        Slot pair = tile.pairs[i];
        unsigned bin = scale(hash_of(pair), t.bin_count), place = tile.count[bin] + i;
        if (place < t.bin_size)
            t.bins[(size_t)bin * t.bin_size + place] = pair;
        else
            t.spill[atomicAdd(t.spilled, 1)] = pair;
    }
}

// Rung 3, second step: a block inserts pairs of one bin as in rung 2. Blocks start in the order of their
// numbers, so those that run at the same time access a small part of the table, which stays in the L2 cache.
__global__ void insert_bins(Table t, unsigned blocks_per_bin) {
    unsigned bin = blockIdx.x / blocks_per_bin;
    unsigned i = blockIdx.x % blocks_per_bin * blockDim.x + threadIdx.x;
    if (i < min(t.in_bin[bin], t.bin_size))
        insert(t, t.bins[(size_t)bin * t.bin_size + i]);
}

struct alignas(16) TwoSlots {
    Slot a, b;
};

// Rung 4, second step: a block builds one part in shared memory and writes it once. The first pairs are
// loaded while the block clears the part. Pairs whose probe sequence leaves the part are appended to the
// overflow list.
__global__ void __launch_bounds__(BUILDERS) build_parts(Table t) {
    extern __shared__ __align__(16) Slot part[];
    unsigned sectors = t.parts * t.part_sectors, first = blockIdx.x * t.part_sectors;
    unsigned count = min(t.in_bin[blockIdx.x], t.bin_size);
    const Slot *bin = t.bins + (size_t)blockIdx.x * t.bin_size;
    Slot pairs[AHEAD];
    for (unsigned j = 0, i = threadIdx.x; j < AHEAD; j++, i += BUILDERS)
        pairs[j] = i < count ? bin[i] : EMPTY;
    for (unsigned i = threadIdx.x; i < t.part_sectors * SECTOR / 2; i += BUILDERS)
        ((TwoSlots *)part)[i] = {EMPTY, EMPTY};
    __syncthreads();
    auto insert_here = [&](Slot pair) {
        if (!insert_from(part, scale(hash_of(pair), sectors) - first, t.part_sectors, pair))
            t.spill[atomicAdd(t.spilled, 1)] = pair;
    };
    for (Slot pair : pairs)
        if (pair != EMPTY)
            insert_here(pair);
    for (unsigned i = threadIdx.x + AHEAD * BUILDERS; i < count; i += BUILDERS)
        insert_here(bin[i]);
    __syncthreads();
    TwoSlots *to = (TwoSlots *)(t.slots + (size_t)first * SECTOR);
    for (unsigned i = threadIdx.x; i < t.part_sectors * SECTOR / 2; i += BUILDERS)
        to[i] = ((TwoSlots *)part)[i];
}

// The last step of rungs 3 and 4: inserts the pairs of the overflow list.
__global__ void insert_spill(Table t) {
    for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < *t.spilled; i += blockDim.x * gridDim.x)
        insert(t, t.spill[i]);
}

// ---- look-ups ----

// Returns the value of the key with hash value h, or UINT_MAX if it is not in the table. Two loads of 16
// bytes read a whole sector, which is transferred from memory as a unit.
__device__ static unsigned find(const Table &t, unsigned h) {
    unsigned sectors = t.parts * t.part_sectors, sector = scale(h, sectors);
    for (unsigned i = 0; i < sectors; i++) {
        const TwoSlots *two = (const TwoSlots *)(t.slots + (size_t)sector * SECTOR);
        const TwoSlots x = two[0], y = two[1];
        const Slot slots[SECTOR] = {x.a, x.b, y.a, y.b};
        bool full = true;
        for (Slot slot : slots) {
            if (slot == EMPTY)
                full = false;
            else if (hash_of(slot) == h)
                return (unsigned)slot; // the value, in the lower half
        }
        if (!full)
            break;
        sector = sector + 1 < sectors ? sector + 1 : 0;
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
struct Lookups {
    unsigned *sorted;       // of each tile: the sorted hash values; later the values found
    unsigned short *places; // the indices of their keys in the tile
    unsigned *starts;       // of each tile and group: the index of the first look-up
    unsigned groups, tiles, tile_size;
};

__global__ void __launch_bounds__(1024)
    sort_lookups(const unsigned *keys, size_t elements, unsigned seed, Lookups l) {
    extern __shared__ Slot shared[];
    size_t first = (size_t)blockIdx.x * l.tile_size;
    unsigned size = min((size_t)l.tile_size, elements - first);
    Tile tile = sort_tile(shared, keys + first, size, l.groups * FINER, seed, [](unsigned i) { return i; });
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

// ---------------------------------------------------------------------------------------- proof

// Traverses the list of each bucket, one thread per bucket, and counts how often each value occurs in an
// entry with its key and in the list of that key. It stops at a pointer that is not to an entry of the pool,
// and then counts value 0 twice more, which is an error: a list ends with NULL.
__global__ void walk(const unsigned *keys, size_t elements, Entry *const *heads, unsigned buckets, bool book,
                     const Entry *pool, unsigned seed, unsigned *times) {
    size_t bucket = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (bucket >= buckets)
        return;
    const Entry *entry = heads[bucket];
    for (size_t i = 0; i < elements && entry; i++, entry = entry->next) {
        size_t offset = (size_t)entry - (size_t)pool;
        if (offset >= elements * sizeof(Entry) || offset % sizeof(Entry)) {
            atomicAdd(&times[0], 2);
            return;
        }
        unsigned key = entry->key, value = entry->value;
        unsigned of = book ? key % HASH_ENTRIES : scale(mix(key, seed), buckets);
        if (value < elements && keys[value] == key && of == bucket)
            atomicAdd(&times[value], 1);
    }
}

enum { RIGHT, DIFFERENT, FULL, COUNTERS };

__global__ void count_once(size_t elements, const unsigned *times, unsigned long long *counts) {
    unsigned once = 0;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < elements; i += blockDim.x * gridDim.x)
        once += times[i] == 1;
    atomicAdd(&counts[RIGHT], (unsigned long long)once);
}

// A look-up is right if it returns the index of an equal key; with `first`, an index that is not larger than
// its own. DIFFERENT counts the look-ups that return their own index: the first of equal keys.
__global__ void count_right(const unsigned *keys, size_t elements, const unsigned *found, bool first,
                            unsigned long long *counts) {
    unsigned right = 0, different = 0;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < elements;
         i += blockDim.x * gridDim.x) {
        size_t value = found[i];
        right += value < elements && keys[value] == keys[i] && (!first || value <= i);
        different += value == i;
    }
    atomicAdd(&counts[RIGHT], (unsigned long long)right);
    atomicAdd(&counts[DIFFERENT], (unsigned long long)different);
}

__global__ void count_full(const Slot *slots, size_t n, unsigned long long *counts) {
    unsigned full = 0;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x)
        full += slots[i] != EMPTY;
    atomicAdd(&counts[FULL], (unsigned long long)full);
}

#endif
