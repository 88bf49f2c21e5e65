// SPDX-License-Identifier: MIT
// The check of appendix A's hash tables: it must pass a correct table and reject each kind of error.
#include "../../appendix_a/hashtable.h"
#include "../unit.h"

const int KEYS = 5000; // about five in each bucket

static unsigned keys[KEYS];
static Entry *heads[HASH_ENTRIES];
static Entry there[KEYS]; // stands for the pool in device memory; only its addresses are used
static Entry pool[KEYS];

// `address` is an address in `there`. Returns the entry at the same offset of `pool`.
static Entry &at(const Entry *address) {
    return pool[address - there];
}

static void build(void) {
    elements = KEYS;
    std::fill(heads, heads + HASH_ENTRIES, nullptr);
    memset((void *)there, 0xff, sizeof(there));
    for (int i = 0; i < KEYS; i++) {
        keys[i] = i < 10 ? 7 : 12345u * i; // some keys are equal
        unsigned bucket = hash(keys[i], HASH_ENTRIES);
        pool[i] = {keys[i], &keys[i], heads[bucket]};
        heads[bucket] = &there[i];
    }
}

static bool passes(void) {
    return check_table(heads, there, pool, keys);
}

// A bucket whose first entry has a successor and is not one of the equal keys.
static unsigned some_bucket(void) {
    return hash(keys[KEYS - 1], HASH_ENTRIES);
}

TEST(a_lost_entry_is_noticed) {
    build();
    EXPECT(passes());
    Entry *&head = heads[some_bucket()];
    head = at(head).next;
    EXPECT(!passes());
}

TEST(a_wrong_key_is_noticed) {
    build();
    pool[KEYS / 2].key += HASH_ENTRIES; // the same bucket
    EXPECT(!passes());
}

TEST(a_wrong_value_is_noticed) {
    build();
    pool[1].value = pool[0].value; // an equal key, so key and bucket are right
    EXPECT(!passes());
    build();
    pool[0].value = (char *)pool[0].value + 1;
    EXPECT(!passes());
    build();
    pool[0].value = NULL;
    EXPECT(!passes());
}

TEST(a_wrong_bucket_is_noticed) {
    build();
    swap(heads[some_bucket()], heads[(some_bucket() + 1) % HASH_ENTRIES]);
    EXPECT(!passes());
}

TEST(a_cycle_is_noticed) {
    build();
    Entry *head = heads[some_bucket()];
    at(head).next = head;
    EXPECT(!passes());
    build();
    Entry *last = head;
    while (at(last).next)
        last = at(last).next;
    at(last).next = head;
    EXPECT(!passes());
}

TEST(a_pointer_elsewhere_is_noticed) {
    build();
    Entry *last = heads[some_bucket()];
    while (at(last).next)
        last = at(last).next;
    at(last).next = there + KEYS;
    EXPECT(!passes());
    at(last).next = (Entry *)((uintptr_t)there - sizeof(Entry));
    EXPECT(!passes());
    at(last).next = (Entry *)((char *)there + 1);
    EXPECT(!passes());
    at(last).next = (Entry *)8;
    EXPECT(!passes());
    at(last).next = NULL;
    EXPECT(passes());
}
