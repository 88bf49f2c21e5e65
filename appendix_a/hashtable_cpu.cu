// SPDX-License-Identifier: MIT
/*
 * hashtable_cpu: hash table with chaining, built by the host
 *
 * Teaches: A hash table finds a value by its key: the hash function computes the bucket of the key.
 *          Keys with the same bucket collide (a collision), so the entries of a bucket form a linked
 *          list, its chain. The load factor, the number of keys divided by the number of buckets, is
 *          the mean length of a chain. Inserting an entry at the head of a chain takes two writes. With
 *          one thread no other write can come between them.
 * Terms:   hash table, hash function, hash bucket, collision, chaining, load factor, host
 * Book:    A.2.2
 * Run:     ./bin/appendix_a/hashtable_cpu --keys words --hash multiply
 * Differs: the array of values has its real size and is filled. The check walks every chain to its
 *          end and must find each key once, with its value and in its own bucket; the exit status
 *          depends on it. --hash and --keys try other hash functions and keys that are not random.
 * Check:   --size 20000 | --size 3000 --hash multiply | --size 3000 --hash first-letter --keys words
 */
#include "../common/book.h"
#include <chrono>
#include "hashtable.h" // struct Entry, hash(), hash_function, elements, make_keys(), make_values(), check_table()

struct Table {
    unsigned count;  // buckets
    Entry **entries; // the head of each chain
    Entry *pool;     // all entries
    Entry *firstFree;
};

static void initialize_table(Table &table, unsigned entries, size_t elements) {
    table.count = entries;
    table.entries = host_array<Entry *>(entries);
    std::fill(table.entries, table.entries + entries, nullptr);
    table.pool = host_array<Entry>(elements);
    table.firstFree = table.pool;
}

static void free_table(Table &table) {
    free(table.pool);
    free(table.entries);
}

static void add_to_table(Table &table, unsigned key, void *value) {
    unsigned hashValue = hash(key, table.count, hash_function);
    Entry *location = table.firstFree++;
    location->key = key;
    location->value = value;
    location->next = table.entries[hashValue];
    table.entries[hashValue] = location;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    unsigned *keys = make_keys();
    void **values = make_values(keys);

    auto start = std::chrono::steady_clock::now();
    Table table;
    initialize_table(table, HASH_ENTRIES, elements);
    for (size_t i = 0; i < elements; i++)
        add_to_table(table, keys[i], values[i]);
    std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    printf("Time to hash:  %3.1f ms, %.3f M keys/s\n", elapsed.count(), elements / elapsed.count() / 1e3);

    bool ok = check_table(table.entries, table.pool, table.pool, keys);

    free_table(table);
    free(values);
    free(keys);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

void settings(int argc, char **argv) {
    configure(argc, argv, "Builds a hash table.", HOST_ONLY | TIMES, {TABLE_OPTIONS});
    require_memory(elements * (sizeof(unsigned) + sizeof(void *) + sizeof(Entry) + 2 * sizeof(int)), 0);
}

// Task: add_to_table(): Take the next free entry of the pool, table.firstFree, and advance table.firstFree to
// the entry after it. Store key and value in the entry, and insert it at the head of the linked list
// table.entries[b], where b is the bucket that hash() computes with table.count and hash_function.
