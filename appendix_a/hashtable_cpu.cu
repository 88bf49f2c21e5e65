// SPDX-License-Identifier: MIT
/*
 * hashtable_cpu: hash table with chaining, built by the host
 *
 * Teaches: A hash table finds a value by its key: the hash function computes the bucket of the key. Keys
 *          with the same bucket collide (a collision), so the entries of a bucket form a linked list, its
 *          chain. The load factor, the number of keys divided by the number of buckets, is the mean length
 *          of a chain. Inserting an entry at the head of a chain takes two writes.
 * Terms:   hash table, hash function, hash bucket, collision, chaining, load factor, host
 * Book:    A.2.2
 * Build:   nvcc -o hashtable_cpu appendix_a/hashtable_cpu.cu common/lib/[a-z]*.c
 * Run:     ./bin/appendix_a/hashtable_cpu --keys words --hash multiply
 * Differs: the values are filled in; the time is elapsed time. After verify_table() a complete check must
 *          find each key once, with its value and in its own bucket. --hash and --keys try other functions
 *          and keys. The CPU back end has an eighth of the keys, so that it takes seconds.
 * Check:   --size 20000 | --size 3000 --hash multiply | --size 3000 --hash first-letter --keys words
 */
#include "../common/book.h"
#include <chrono>
#include "hashtable.h" // make_values(), in_pool(), check_table()

#define SIZE         (100 * 1024 * 1024)
#define ELEMENTS     (SIZE / sizeof(unsigned)) // of 4 bytes each
#define HASH_ENTRIES 1024                      // buckets: a load factor of 25,600

struct Entry {
    unsigned key;
    void *value;
    Entry *next; // the next entry of the same bucket, or NULL
};

struct Table {
    unsigned count;  // buckets
    Entry **entries; // the head of each chain
    Entry *pool;     // all entries
    Entry *firstFree;
};

size_t elements = CPU_BACKEND ? ELEMENTS / 8 : ELEMENTS; // --size

static unsigned hash(unsigned key, unsigned count) {
    return key % count;
}

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
    unsigned hashValue = hash(key, table.count);
    Entry *location = table.firstFree++;
    location->key = key;
    location->value = value;
    location->next = table.entries[hashValue];
    table.entries[hashValue] = location;
}

static bool verify_table(const Table &table, const unsigned *buffer) {
    size_t count = 0, misplaced = 0;
    for (unsigned i = 0; i < table.count; i++) {
        Entry *current = table.entries[i];
        // NULL ends a chain. In a wrong table any other address outside the pool ends it too, and so does
        // the count, if there is a cycle.
        while (in_pool(table, current) && count <= elements) {
            count++;
            misplaced += hash(current->key, table.count) != i;
            current = current->next;
        }
    }
    printf("%zu elements found in hash table.\n", count);
    if (count != elements || misplaced > 0)
        fprintf(stderr, "%zu entries instead of %zu, %zu in a wrong bucket\n", count, elements, misplaced);
    bool ok = check_table(table.entries, table.pool, table.pool, buffer, false);
    return ok && count == elements && misplaced == 0;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    unsigned *buffer = (unsigned *)big_random_block(elements * sizeof(unsigned));
    void **values = make_values(buffer);

    auto start = std::chrono::steady_clock::now();
    Table table;
    initialize_table(table, HASH_ENTRIES, elements);
    for (size_t i = 0; i < elements; i++)
        add_to_table(table, buffer[i], values[i]);
    auto stop = std::chrono::steady_clock::now();
    double elapsedTime = std::chrono::duration<double, std::milli>(stop - start).count();
    printf("Time to hash:  %3.1f ms, %.3f M keys/s\n", elapsedTime, elements / elapsedTime / 1e3);

    bool ok = verify_table(table, buffer);

    free_table(table);
    free(values);
    free(buffer);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

// For --hash and --keys: builds a table as main does. Returns the exit status.
static int build_variant(void) {
    unsigned *keys = make_keys();
    void **values = make_values(keys);
    auto start = std::chrono::steady_clock::now();
    Table table;
    initialize_table(table, HASH_ENTRIES, elements);
    for (size_t i = 0; i < elements; i++) {
        unsigned bucket = hash_with(hash_function, keys[i], table.count);
        *table.firstFree = {keys[i], values[i], table.entries[bucket]};
        table.entries[bucket] = table.firstFree++;
    }
    std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    printf("Time to hash:  %3.1f ms, %.3f M keys/s\n", elapsed.count(), elements / elapsed.count() / 1e3);
    bool ok = check_table(table.entries, table.pool, table.pool, keys);
    free_table(table);
    free(values);
    free(keys);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// With --hash or --keys the program ends here.
void settings(int argc, char **argv) {
    configure(argc, argv, "Builds a hash table.", HOST_ONLY | TIMES, {TABLE_OPTIONS});
    require_memory(elements * (sizeof(unsigned) + sizeof(void *) + sizeof(Entry) + 2 * sizeof(int)), 0);
    if (hash_function != MODULO || kind_of_keys != RANDOM)
        exit(build_variant());
}

// Task: add_to_table(): Take the next free entry of the pool, table.firstFree, and advance table.firstFree to
// the entry after it. Store key and value in the entry, and insert it at the head of the linked list
// table.entries[b], where b is the bucket that hash() computes with table.count.
