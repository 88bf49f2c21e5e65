// SPDX-License-Identifier: MIT
// Below the ruler of both hash tables: the options, other hash functions, keys and values, and the check of a
// table: a walk through all chains. Two programs and a unit test share it, because hashtable_gpu builds the
// table of hashtable_cpu and the long check must be the same.
#pragma once

#include "../common/book.h"

const unsigned BUCKETS = 1024; // HASH_ENTRIES of the programs

extern size_t elements; // --size; every program defines it

enum HashFunction { MODULO, MULTIPLY, FIRST_LETTER };

// For --hash: returns the hash bucket of a key, a number below `count`. MODULO, the book's function, is the
// remainder of the division by `count`. If `count` is 1024, it depends only on the lower 10 bits of the key,
// so it suits random keys. MULTIPLY is multiplicative hashing: it takes the upper bits of the product of the
// key and 2654435769, which is 2^32 divided by the golden ratio, and these depend on all bits of the key.
// FIRST_LETTER takes the upper 7 bits of the key, which hold the first letter of a word. Words with the same
// first letter collide, and the buckets of other characters stay empty.
__host__ __device__ static inline unsigned hash_with(int function, unsigned key, unsigned count) {
    if (function == MULTIPLY)
        return (unsigned long long)(key * 2654435769u) * count >> 32;
    if (function == FIRST_LETTER)
        return (key >> 25) % count;
    return key % count;
}

static int hash_function = MODULO; // --hash

enum { RANDOM, MULTIPLES, WORDS };
static int kind_of_keys = RANDOM; // --keys

#define TABLE_OPTIONS                                                                                        \
    OPTION_SIZE("size", &elements, 1, 1LL << 36, "keys"),                                                    \
        OPTION_WORD("hash", &hash_function, "modulo|multiply|first-letter", "hash function"),                \
        OPTION_WORD("keys", &kind_of_keys, "random|multiples|words",                                         \
                    "keys: random bits, multiples of 1024, or words of six letters")

// A word of six letters, 5 bits each. Of 10,000 words about this many begin with each letter in an English
// dictionary; the other letters are equally likely.
static inline unsigned random_word(void) {
    static const short begin[] = {600, 570, 940, 610, 390, 410,  330, 370, 390, 110, 100, 310, 560,
                                  220, 250, 770, 49,  600, 1146, 500, 290, 150, 270, 5,   36,  24};
    uint64_t bits = random_bits();
    int which = bits % 10000;
    unsigned word = 0;
    while (which >= begin[word])
        which -= begin[word++];
    bits /= 10000;
    for (int letter = 1; letter < 6; letter++) {
        word = word << 5 | bits % 26;
        bits /= 26;
    }
    return word;
}

// Returns an array of `elements` keys of the kind that --keys selects. The caller frees it with free().
static inline unsigned *make_keys(void) {
    if (kind_of_keys != WORDS) {
        unsigned *keys = (unsigned *)big_random_block(elements * sizeof(unsigned));
        for (size_t i = 0; kind_of_keys == MULTIPLES && i < elements; i++)
            keys[i] *= 1024;
        return keys;
    }
    unsigned *keys = host_array<unsigned>(elements);
    for (size_t i = 0; i < elements; i++)
        keys[i] = random_word();
    return keys;
}

// The value of a key is the key's address in host memory. So the check can tell which key an entry belongs
// to, even when several keys are equal. No code dereferences a value.
static inline void **make_values(unsigned *keys) {
    void **values = host_array<void *>(elements);
    for (size_t i = 0; i < elements; i++)
        values[i] = &keys[i];
    return values;
}

// The bucket in which a key must be, computed otherwise than by the programs, whose mistakes the check would
// repeat.
static inline unsigned expected_bucket(unsigned key) {
    static_assert(BUCKETS == 1 << 10, "buckets are numbered by ten bits");
    unsigned bits = hash_function == MULTIPLY ? key * 2654435769u >> 22
                    : hash_function == MODULO ? key
                                              : key >> 25;
    return bits & (BUCKETS - 1);
}

// Whether the address is that of an entry in the table's pool. NULL is not, nor is an address elsewhere in a
// wrong table.
template <class Table, class Entry> static inline bool in_pool(const Table &table, const Entry *entry) {
    size_t offset = (uintptr_t)entry - (uintptr_t)table.pool;
    return offset % sizeof(Entry) == 0 && offset / sizeof(Entry) < elements;
}

// Walks every chain to its end. Each key must be found once, with its value and in its own bucket, and
// there must be no other entries. The pointers in the table are addresses within `from`, which may be device
// memory and is not accessed; the entry is read at the same offset of `pool`, in host memory. The loop visits
// one entry of each chain in turn, because entries that are neighbours in memory belong to different chains:
// this is faster than one chain after the other. `print_found`: prints how many keys are in the table.
template <class Entry>
static inline bool check_table(Entry *const *entries, const Entry *from, const Entry *pool,
                               const unsigned *keys, bool print_found = true) {
    HostArray<int> found(elements, 0);
    const Entry *next[BUCKETS];
    std::copy(entries, entries + BUCKETS, next);

    unsigned active[BUCKETS], left = 0; // the buckets whose chains have not ended yet
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++)
        if (entries[bucket])
            active[left++] = bucket;

    unsigned long long visited = 0, keys_found = 0, wrong = 0, longest = 0;
    unsigned empty = BUCKETS - left;
    for (; left > 0 && visited <= elements; longest++) { // more entries than keys: a chain is a cycle
        unsigned all = left;
        left = 0;
        for (unsigned i = 0; i < all; i++) {
            unsigned bucket = active[i];
            visited++;
            size_t offset = (uintptr_t)next[bucket] - (uintptr_t)from;
            next[bucket] = NULL;
            size_t which = elements; // the key that the entry stands for
            if (offset / sizeof(Entry) < elements && offset % sizeof(Entry) == 0) {
                const Entry *entry = pool + offset / sizeof(Entry);
                next[bucket] = entry->next;
                which = ((uintptr_t)entry->value - (uintptr_t)keys) / sizeof(unsigned);
                if (!(which < elements && entry->value == &keys[which] && entry->key == keys[which] &&
                      expected_bucket(entry->key) == bucket))
                    which = elements;
            }
            if (which < elements)
                keys_found += found[which]++ == 0;
            else if (wrong++ < 5)
                fprintf(stderr, "bucket %u: the entry at byte %zu of the pool does not belong here\n", bucket,
                        offset);
            if (next[bucket])
                active[left++] = bucket;
        }
    }
    if (print_found)
        printf("%llu elements found in hash table.\n", keys_found);
    printf("Longest chain %llu, mean %.3f; %u of %d buckets are empty\n", longest, (double)elements / BUCKETS,
           empty, BUCKETS);
    bool ok = check_ints("found", found, elements, [](size_t) { return 1; });
    return check_value("wrong entries", wrong, 0, 0) && ok;
}
