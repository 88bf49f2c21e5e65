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
 * Differs: each entry has a value of its own. --hash and --keys try other functions and keys. The CPU back
 *          end has an eighth of the keys, so that it takes seconds.
 * Check:   --size 20000 | --size 3000 --hash multiply | --size 3000 --hash first-letter --keys words
 */
#include <time.h>
#include "../common/book.h"

#define SIZE         (100 * 1024 * 1024)
#define ELEMENTS     (SIZE / sizeof(unsigned)) // of 4 bytes each
#define HASH_ENTRIES 1024                      // buckets: a load factor of 25,600

struct Entry {
    unsigned key;
    void *value;
    Entry *next; // the next entry of the same bucket, or NULL
};

// Drawn in docs/drawings.md#a-hash-table-buckets-chains-and-the-pool
struct Table {
    unsigned count;  // buckets
    Entry **entries; // the head of each chain
    Entry *pool;     // all entries
    Entry *firstFree;
};

size_t elements = CPU_BACKEND ? ELEMENTS / 8 : ELEMENTS; // --size
enum { MODULO, MULTIPLY, FIRST_LETTER };
static int hash_function = MODULO; // --hash
static void change_keys(unsigned *keys);
static bool check(const Table *table, const unsigned *keys);

// Returns the bucket of a key, a number below count. The book's function is the remainder. For 1024 buckets
// it depends only on the lower 10 bits of the key, so it suits random keys. Multiplicative hashing takes the
// upper bits of the product of the key and 2654435769, which is 2^32 divided by the golden ratio; they depend
// on all bits of the key. The upper 7 bits of a key hold the first letter of a word: words with the same
// first letter collide, and the buckets of other characters stay empty.
static unsigned hash(unsigned key, unsigned count) {
    if (hash_function == MULTIPLY)
        return (unsigned long long)(key * 2654435769u) * count >> 32;
    if (hash_function == FIRST_LETTER)
        return (key >> 25) % count;
    return key % count;
}

static void initialize_table(Table *table, unsigned entries, size_t elements) {
    table->count = entries;
    table->entries = (Entry **)calloc(entries, sizeof(Entry *));
    table->pool = (Entry *)malloc(elements * sizeof(Entry));
    HANDLE_NULL(table->entries && table->pool);
    table->firstFree = table->pool;
}

static void free_table(Table *table) {
    free(table->pool);
    free(table->entries);
}

static void add_to_table(Table *table, unsigned key, void *value) {
    unsigned hashValue = hash(key, table->count);
    Entry *location = table->firstFree++;
    location->key = key;
    location->value = value;
    location->next = table->entries[hashValue];
    table->entries[hashValue] = location;
}

// Follows all chains: counts the entries, and looks whether each is in the bucket of its key.
static bool verify_table(const Table *table) {
    size_t count = 0, misplaced = 0;
    for (unsigned i = 0; i < table->count; i++) {
        Entry *current = table->entries[i];
        while (current != NULL) {
            count++;
            if (hash(current->key, table->count) != i)
                misplaced++;
            current = current->next;
        }
    }
    printf("%zu elements found in hash table.\n", count);
    if (count != elements || misplaced > 0)
        fprintf(stderr, "%zu entries instead of %zu, %zu in a wrong bucket\n", count, elements, misplaced);
    return count == elements && misplaced == 0;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    unsigned *buffer = (unsigned *)big_random_block(elements * sizeof(unsigned));
    change_keys(buffer); // --keys

    clock_t start = clock(); // the book's figure includes the allocation
    Table table;
    initialize_table(&table, HASH_ENTRIES, elements);
    for (size_t i = 0; i < elements; i++)
        add_to_table(&table, buffer[i], &buffer[i]); // the value: a pointer that differs from entry to entry
    clock_t stop = clock();
    float elapsedTime = (float)(stop - start) / CLOCKS_PER_SEC * 1000;
    printf("Time to hash:  %3.1f ms\n", elapsedTime);

    // check() comes first: a wrong table could have a chain without an end.
    bool ok = check(&table, buffer) && verify_table(&table);

    free_table(&table);
    free(buffer);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "hashtable.h" // check_table()

enum { RANDOM, MULTIPLES, WORDS };
static int kind_of_keys = RANDOM; // --keys

void settings(int argc, char **argv) {
    configure(argc, argv, "Builds a hash table.", HOST_ONLY | TIMES,
              {OPTION_SIZE("size", &elements, 1, 1LL << 36, "keys"),
               OPTION_WORD("hash", &hash_function, "modulo|multiply|first-letter", "hash function"),
               OPTION_WORD("keys", &kind_of_keys, "random|multiples|words",
                           "keys: random bits, multiples of 1024, or words of six letters")});
    require_memory(elements * (sizeof(unsigned) + sizeof(Entry) + 2 * sizeof(int)), 0);
}

// A word of six letters, 5 bits each. Of 10,000 words about this many begin with each letter in an English
// dictionary; the other letters are equally likely.
static unsigned random_word(void) {
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

static void change_keys(unsigned *keys) {
    for (size_t i = 0; kind_of_keys != RANDOM && i < elements; i++)
        keys[i] = kind_of_keys == WORDS ? random_word() : keys[i] * 1024;
}

static unsigned expected_bucket(unsigned key) {
    unsigned bits = hash_function == MULTIPLY ? key * 2654435769u >> 22
                    : hash_function == MODULO ? key
                                              : key >> 25;
    return bits & (BUCKETS - 1);
}

static bool check(const Table *table, const unsigned *keys) {
    return check_table(table->entries, table->pool, keys, expected_bucket);
}

// Task: add_to_table(): Take the next free entry of the pool, table->firstFree, and advance table->firstFree
// to the entry after it. Store key and value in the entry, and insert it at the head of the linked list
// table->entries[b], where b is the bucket that hash() computes with table->count.
