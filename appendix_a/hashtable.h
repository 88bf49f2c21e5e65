// SPDX-License-Identifier: MIT
// The entries and the hash function of both hash tables, their keys and values, and the check of a
// table: a walk through all chains.
#ifndef APPENDIX_A_HASHTABLE_H
#define APPENDIX_A_HASHTABLE_H

#include "../common/book.h"

#define ELEMENTS     (100 * 1024 * 1024 / sizeof(unsigned)) // 100 MB of keys
#define HASH_ENTRIES 1024                                   // buckets: a load factor of 25,600

struct Entry {
    unsigned key;
    void *value;
    Entry *next; // the next entry of the same bucket, or NULL
};

__host__ __device__ static inline unsigned hash(unsigned key, unsigned count) {
    return key % count;
}

// ---------------------------------------------------------------------------------------- proof

static size_t elements = ELEMENTS; // --size

// The value of a key is the key's address in host memory. So the check can tell which key an entry belongs
// to, even when several keys are equal. No code dereferences a value.
static inline void **make_values(unsigned *keys) {
    void **values = host_array<void *>(elements);
    for (size_t i = 0; i < elements; i++)
        values[i] = &keys[i];
    return values;
}

// Walks every chain to its end. Each key must be found once, with its value and in its own bucket, and
// there must be no other entries. The pointers in the table are addresses within `from`, which may be device
// memory and is not accessed; the entry is read at the same offset of `pool`, in host memory. The loop visits
// one entry of each chain in turn, because entries that are neighbours in memory belong to different chains:
// this is faster than one chain after the other.
static inline bool check_table(const Entry *const *entries, const Entry *from, const Entry *pool,
                               const unsigned *keys) {
    int *found = host_array<int>(elements), *once = host_array<int>(elements);
    std::fill(found, found + elements, 0);
    std::fill(once, once + elements, 1);
    const Entry *next[HASH_ENTRIES];
    std::copy(entries, entries + HASH_ENTRIES, next);

    unsigned long long visited = 0, keys_found = 0, wrong = 0;
    for (bool more = true; more && visited <= elements;) { // more entries than keys: a chain is a cycle
        more = false;
        for (unsigned bucket = 0; bucket < HASH_ENTRIES; bucket++) {
            if (!next[bucket])
                continue;
            more = true;
            visited++;
            size_t offset = (uintptr_t)next[bucket] - (uintptr_t)from;
            next[bucket] = NULL;
            size_t which = elements; // the key that the entry stands for
            if (offset / sizeof(Entry) < elements && offset % sizeof(Entry) == 0) {
                const Entry *entry = pool + offset / sizeof(Entry);
                next[bucket] = entry->next;
                which = ((uintptr_t)entry->value - (uintptr_t)keys) / sizeof(unsigned);
                if (!(which < elements && entry->value == &keys[which] && entry->key == keys[which] &&
                      hash(entry->key, HASH_ENTRIES) == bucket))
                    which = elements;
            }
            if (which < elements)
                keys_found += found[which]++ == 0;
            else if (wrong++ < 5)
                fprintf(stderr, "bucket %u: the entry at byte %zu of the pool does not belong here\n", bucket,
                        offset);
        }
    }
    printf("%llu elements found in hash table.\n", keys_found);
    const unsigned long long none = 0;
    bool ok = check_ints("found", found, once, elements);
    ok = check_counts("wrong entries", &wrong, &none, 1) && ok;
    free(found);
    free(once);
    return ok;
}

#endif
