// SPDX-License-Identifier: MIT
/*
 * hashtable_cpu: a hash table with chains, built by the host
 *
 * Teaches: A hash table finds a value by its key: the key's hash says in which of many buckets to
 *          look, and each bucket is a chain of the entries whose keys fell there. To put an entry
 *          in front of a chain takes two writes, and with one thread nothing can come between them.
 * Book:    A.2.2
 * Run:     ./bin/appendix_a/hashtable_cpu
 * Differs: values have memory of their real size, and are filled. The check walks every chain to
 *          its end, and every key must be there once, with its value, in the bucket that it belongs
 *          to; the exit status depends on that.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "../common/book.h"
#include "../common/memory.h"

#define ELEMENTS     (100 * 1024 * 1024 / sizeof(unsigned)) // 100 MB of keys
#define HASH_ENTRIES 1024

struct Entry {
    unsigned key;
    void *value;
    Entry *next;
};

struct Table {
    unsigned count;  // buckets
    Entry **entries; // the first of each chain
    Entry *pool;     // all entries
    Entry *firstFree;
};

static unsigned hash(unsigned key, unsigned count) {
    return key % count;
}

static void initialize_table(Table &table, unsigned entries, size_t elements) {
    table.count = entries;
    table.entries = (Entry **)calloc(entries, sizeof(Entry *));
    table.pool = (Entry *)malloc(elements * sizeof(Entry));
    HANDLE_NULL(table.entries);
    HANDLE_NULL(table.pool);
    table.firstFree = table.pool;
}

static void free_table(Table &table) {
    free(table.pool);
    free(table.entries);
}

static void add_to_table(Table &table, unsigned key, void *value) {
    unsigned hashValue = hash(key, table.count);
    Entry *location = table.firstFree++;
    location->key = key;
    location->value = value;
    location->next = table.entries[hashValue];
    table.entries[hashValue] = location;
}

// Walks all chains, and finds all keys: the value of a key is a pointer to it, so an entry tells
// which of the keys it stands for, and each must be met once. The chains are walked abreast, an
// entry of each in turn, since neighbours in memory are in different chains.
static bool verify_table(const Table &table, const unsigned *keys, size_t elements) {
    bool *found = (bool *)calloc(elements, 1);
    const Entry **next = (const Entry **)malloc(table.count * sizeof(Entry *));
    HANDLE_NULL(found);
    HANDLE_NULL(next);
    for (unsigned i = 0; i < table.count; i++)
        next[i] = table.entries[i];

    size_t wrong = 0, met = 0;
    for (bool more = true; more && met <= elements;) { // a chain that is a ring has no end
        more = false;
        for (unsigned i = 0; i < table.count; i++) {
            const Entry *entry = next[i];
            if (!entry)
                continue;
            more = true;
            met++;
            next[i] = entry->next;
            size_t which = ((uintptr_t)entry->value - (uintptr_t)keys) / sizeof(unsigned);
            if (which < elements && entry->value == &keys[which] && entry->key == keys[which] &&
                hash(entry->key, table.count) == i && !found[which])
                found[which] = true;
            else if (wrong++ < 5)
                fprintf(stderr, "bucket %u: key %u with value %p does not belong here\n", i,
                        entry->key, entry->value);
        }
    }
    size_t missing = 0;
    for (size_t i = 0; i < elements; i++)
        if (!found[i] && missing++ < 5)
            fprintf(stderr, "key %zu, %u, is not in the table\n", i, keys[i]);
    printf("%zu elements found in hash table.\n", met - wrong);
    if (missing + wrong > 0)
        fprintf(stderr, "%zu of %zu keys are missing, %zu entries are wrong\n", missing, elements,
                wrong);
    free(next);
    free(found);
    return missing + wrong == 0;
}

static double now(void) { // ms
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int main(int argc, char **argv) {
    size_t elements = ELEMENTS;
    const Option own[] = {OPTION_SIZE("size", &elements, 1, 1LL << 36, "keys"), OPTION_END};
    parse_options(argc, argv, "Builds a hash table.", HOST_ONLY | TIMES, own);
    select_device();
    require_memory(elements * (sizeof(unsigned) + sizeof(void *) + sizeof(Entry) + 1), 0);

    unsigned *keys = (unsigned *)big_random_block(elements * sizeof(unsigned));
    void **values = (void **)malloc(elements * sizeof(void *));
    HANDLE_NULL(values);
    for (size_t i = 0; i < elements; i++)
        values[i] = &keys[i];

    double start = now();
    Table table;
    initialize_table(table, HASH_ENTRIES, elements);
    for (size_t i = 0; i < elements; i++)
        add_to_table(table, keys[i], values[i]);
    double elapsed = now() - start;
    printf("Time to hash:  %3.1f ms, %.3f M keys/s\n", elapsed, elements / elapsed / 1e3);

    inject_error(&table.pool[elements / 2].key, sizeof(unsigned));
    bool ok = verify_table(table, keys, elements);

    free_table(table);
    free(values);
    free(keys);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
