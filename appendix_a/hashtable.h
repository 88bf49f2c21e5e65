// SPDX-License-Identifier: MIT
// The check of the hash tables that hashtable_cpu and hashtable_gpu build, which has a unit test.
#pragma once

#include "../common/book.h"

const unsigned BUCKETS = 1024; // HASH_ENTRIES of the programs

extern size_t elements; // --size; every program defines it

// Entry i of the pool must hold key i, and the address of this key as its value. Exactly one pointer must
// lead to it: the head of its bucket, or `next` of another entry of its bucket. So no chain that begins at a
// head is a cycle, or leaves the pool, and verify_table() comes to its end. bucket_of computes a bucket
// otherwise than the program, whose mistakes the check would repeat.
template <class Entry>
static inline bool check_table(Entry *const *entries, const Entry *pool, const unsigned *keys,
                               unsigned (*bucket_of)(unsigned key)) {
    HostArray<int> found(elements, 0); // the pointers to entry i
    unsigned long long length[BUCKETS] = {}, longest = 0, empty = 0, wrong = 0;
    auto follow = [&](const Entry *next, unsigned bucket) {
        size_t offset = (uintptr_t)next - (uintptr_t)pool, i = offset / sizeof(Entry);
        if (i < elements && offset % sizeof(Entry) == 0 && bucket_of(keys[i]) == bucket)
            found[i]++;
        else
            wrong += next != NULL;
    };
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++)
        follow(entries[bucket], bucket);
    for (size_t i = 0; i < elements; i++) {
        unsigned bucket = bucket_of(keys[i]);
        wrong += pool[i].key != keys[i] || pool[i].value != &keys[i];
        follow(pool[i].next, bucket);
        longest = max_of(longest, ++length[bucket]);
    }
    for (unsigned long long l : length)
        empty += l == 0;
    printf("Longest chain %llu, mean %.3f; %llu of %d buckets are empty\n", longest,
           (double)elements / BUCKETS, empty, BUCKETS);
    bool ok = check_ints("found", found, elements, [](size_t) { return 1; });
    return check_value("wrong entries and pointers", wrong, 0, 0) && ok;
}
