// SPDX-License-Identifier: MIT
// The check of appendix A's hash tables: it must pass a correct table and reject each kind of error.
#include "../../appendix_a/hashtable.h"
#include "../../cucc/tests/unit.h"

const unsigned HASH_ENTRIES = BUCKETS;

struct Entry {
    unsigned key;
    void *value;
    Entry *next;
};

static unsigned hash(unsigned key, unsigned count) {
    return key % count;
}

static unsigned expected_bucket(unsigned key) {
    return key & (HASH_ENTRIES - 1);
}

size_t elements;
const int KEYS = 5000; // about five in each bucket

static unsigned keys[KEYS];
static Entry *heads[HASH_ENTRIES];
static Entry pool[KEYS];

static void build(void) {
    elements = KEYS;
    std::fill(heads, heads + HASH_ENTRIES, nullptr);
    for (int i = 0; i < KEYS; i++) {
        keys[i] = i < 10 ? 7 : 12345u * i; // some keys are equal
        unsigned bucket = hash(keys[i], HASH_ENTRIES);
        pool[i] = {keys[i], &keys[i], heads[bucket]};
        heads[bucket] = &pool[i];
    }
}

// Whether the check passes a table after a change.
static bool passes_with(void (*change)(void)) {
    build();
    change();
    return check_table(heads, pool, keys, expected_bucket);
}

// A bucket whose first entry has a successor and is not one of the equal keys.
static unsigned some_bucket(void) {
    return hash(keys[KEYS - 1], HASH_ENTRIES);
}

static Entry *&last_pointer(void) {
    Entry *last = heads[some_bucket()];
    while (last->next)
        last = last->next;
    return last->next;
}

TEST(only_a_correct_table_passes) {
    EXPECT(passes_with([] {}));
    // a lost entry, a wrong key, wrong values, entries in another bucket
    EXPECT(!passes_with([] { heads[some_bucket()] = heads[some_bucket()]->next; }));
    EXPECT(!passes_with([] { pool[KEYS / 2].key += HASH_ENTRIES; })); // the same bucket
    EXPECT(!passes_with([] { pool[1].value = pool[0].value; })); // an equal key, so key and bucket are right
    EXPECT(!passes_with([] { pool[0].value = (char *)pool[0].value + 1; }));
    EXPECT(!passes_with([] { pool[0].value = NULL; }));
    EXPECT(!passes_with([] { swap(heads[some_bucket()], heads[(some_bucket() + 1) % HASH_ENTRIES]); }));
    // cycles, pointers elsewhere
    EXPECT(!passes_with([] { heads[some_bucket()]->next = heads[some_bucket()]; }));
    EXPECT(!passes_with([] { last_pointer() = heads[some_bucket()]; }));
    EXPECT(!passes_with([] { last_pointer() = pool + KEYS; }));
    EXPECT(!passes_with([] { last_pointer() = (Entry *)((uintptr_t)pool - sizeof(Entry)); }));
    EXPECT(!passes_with([] { last_pointer() = (Entry *)((char *)pool + 1); }));
    EXPECT(!passes_with([] { last_pointer() = (Entry *)8; }));
}
