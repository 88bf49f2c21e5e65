// SPDX-License-Identifier: MIT
/*
 * hashtable_gpu: hash table with chaining, built by many threads with one lock per bucket
 *
 * Teaches: Two threads that insert at the head of one chain at the same time can lose an entry, so
 *          inserting is a critical section. With one mutex per bucket, threads wait for a lock (lock
 *          contention) only when their keys collide. The lanes of a warp insert one after the other: in
 *          lockstep, the lane that holds the lock could not continue while others wait for it, a deadlock.
 * Terms:   mutex, critical section, lock contention, hash table, hash bucket, chaining, collision,
 *          lockstep
 * Book:    A.2.3 and A.2.4
 * Build:   nvcc -o hashtable_gpu appendix_a/hashtable_gpu.cu common/lib/[a-z]*.c
 * Run:     ./bin/appendix_a/hashtable_gpu --size 1M
 * Differs: each entry has a value of its own. The CPU back end has an eighth of the keys, so that it takes
 *          seconds. hashtable_locks leaves out locks and turns.
 * Check:   --size 20000
 * Web:     --size 500000
 */
#include "../common/book.h"
#include "lock.h"

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
};

size_t elements = CPU_BACKEND ? ELEMENTS / 8 : ELEMENTS; // --size
static void time_kernel(const unsigned *keys, void *const *values, Lock *lock);
static bool check(const Table *table, const unsigned *keys);

__host__ __device__ static unsigned hash(unsigned key, unsigned count) {
    return key % count;
}

static void initialize_table(Table *table, unsigned entries, size_t elements) {
    table->count = entries;
    HANDLE_ERROR(cudaMalloc((void **)&table->entries, entries * sizeof(Entry *)));
    HANDLE_ERROR(cudaMemset(table->entries, 0, entries * sizeof(Entry *))); // NULL: all chains are empty
    HANDLE_ERROR(cudaMalloc((void **)&table->pool, elements * sizeof(Entry)));
    // The memory may hold a table of an earlier run, whose entries must not pass for those of this one.
    HANDLE_ERROR(cudaMemset(table->pool, 0xff, elements * sizeof(Entry)));
}

// The pointers are device addresses. Each is replaced by the address of the same entry in the host's pool.
static void copy_table_to_host(const Table *table, Table *hostTable) {
    hostTable->count = table->count;
    hostTable->entries = (Entry **)malloc(table->count * sizeof(Entry *));
    hostTable->pool = (Entry *)malloc(elements * sizeof(Entry));
    HANDLE_NULL(hostTable->entries && hostTable->pool);
    HANDLE_ERROR(cudaMemcpy(hostTable->entries, table->entries, table->count * sizeof(Entry *),
                            cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaMemcpy(hostTable->pool, table->pool, elements * sizeof(Entry), cudaMemcpyDeviceToHost));

    size_t distance = (size_t)hostTable->pool - (size_t)table->pool;
    for (unsigned i = 0; i < table->count; i++)
        if (hostTable->entries[i] != NULL)
            hostTable->entries[i] = (Entry *)((size_t)hostTable->entries[i] + distance);
    for (size_t i = 0; i < elements; i++)
        if (hostTable->pool[i].next != NULL)
            hostTable->pool[i].next = (Entry *)((size_t)hostTable->pool[i].next + distance);
}

static void free_table(Table *table) {
    HANDLE_ERROR(cudaFree(table->pool));
    HANDLE_ERROR(cudaFree(table->entries));
}

__global__ void add_to_table(const unsigned *keys, void *const *values, size_t elements, Table table,
                             Lock *lock) {
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    size_t stride = (size_t)blockDim.x * gridDim.x;
    while (tid < elements) {
        unsigned hashValue = hash(keys[tid], table.count);
        for (unsigned i = 0; i < 32; i++) // one lane of the warp at a time
            if (threadIdx.x % 32 == i) {
                Entry *location = &table.pool[tid];
                location->key = keys[tid];
                location->value = values[tid];
                lock[hashValue].lock();
                location->next = table.entries[hashValue];
                table.entries[hashValue] = location;
                lock[hashValue].unlock();
            }
        tid += stride;
    }
}

// Follows all chains of a copy: counts the entries, and looks whether each is in the bucket of its key.
static bool verify_table(const Table *dev_table) {
    Table table;
    copy_table_to_host(dev_table, &table);
    size_t count = 0, misplaced = 0;
    for (unsigned i = 0; i < table.count; i++) {
        Entry *current = table.entries[i];
        while (current != NULL) {
            count++;
            if (hash(current->key, table.count) != i)
                misplaced++;
            current = current->next;
        }
    }
    printf("%zu elements found in hash table.\n", count);
    if (count != elements || misplaced > 0)
        fprintf(stderr, "%zu entries instead of %zu, %zu in a wrong bucket\n", count, elements, misplaced);
    free(table.pool);
    free(table.entries);
    return count == elements && misplaced == 0;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    unsigned *buffer = (unsigned *)big_random_block(elements * sizeof(unsigned)), *dev_keys;
    void **values = (void **)malloc(elements * sizeof(void *)), **dev_values;
    HANDLE_NULL(values);
    for (size_t i = 0; i < elements; i++)
        values[i] = &buffer[i]; // a pointer that differs from entry to entry

    // The book's figure includes the allocations and the copies to the device.
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    HANDLE_ERROR(cudaEventRecord(start, 0));

    HANDLE_ERROR(cudaMalloc((void **)&dev_keys, elements * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_values, elements * sizeof(void *)));
    HANDLE_ERROR(cudaMemcpy(dev_keys, buffer, elements * sizeof(unsigned), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_values, values, elements * sizeof(void *), cudaMemcpyHostToDevice));

    Table table;
    initialize_table(&table, HASH_ENTRIES, elements);

    // Each Lock is a pointer to a mutex in device memory; the kernel gets an array of them.
    Lock lock[HASH_ENTRIES], *dev_lock;
    HANDLE_ERROR(cudaMalloc((void **)&dev_lock, sizeof(lock)));
    HANDLE_ERROR(cudaMemcpy(dev_lock, lock, sizeof(lock), cudaMemcpyHostToDevice));

    add_to_table<<<60, 256>>>(dev_keys, dev_values, elements, table, dev_lock);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    float elapsedTime;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    printf("Time to hash:  %3.1f ms, with allocation and copies\n", elapsedTime);
    time_kernel(dev_keys, dev_values, dev_lock);

    // check() comes first: a wrong table could have a chain without an end.
    bool ok = check(&table, buffer) && verify_table(&table);

    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    free_table(&table);
    for (int i = 0; i < HASH_ENTRIES; i++)
        lock[i].release();
    HANDLE_ERROR(cudaFree(dev_lock));
    HANDLE_ERROR(cudaFree(dev_keys));
    HANDLE_ERROR(cudaFree(dev_values));
    free(values);
    free(buffer);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/timing.h" // median_ms()
#include "hashtable.h"        // check_table()

void settings(int argc, char **argv) {
    configure(argc, argv, "Builds a hash table on the device.", TIMES,
              {OPTION_SIZE("size", &elements, 1, 1LL << 36, "keys")});
    size_t bytes = elements * (sizeof(unsigned) + sizeof(void *) + sizeof(Entry));
    require_memory(bytes + elements * 2 * sizeof(int), bytes + elements * sizeof(Entry));
}

// Times the kernel alone, which builds a second table, so that the check sees the one that main() has built.
static void time_kernel(const unsigned *keys, void *const *values, Lock *lock) {
    Table table;
    initialize_table(&table, HASH_ENTRIES, elements);
    float ms = median_ms([&] { add_to_table<<<60, 256>>>(keys, values, elements, table, lock); },
                         [&] { HANDLE_ERROR(cudaMemset(table.entries, 0, HASH_ENTRIES * sizeof(Entry *))); });
    printf("Kernel:        %.3f ms, %.3f Mkeys/s\n", ms, elements / ms / 1e3);
    free_table(&table);
}

static unsigned expected_bucket(unsigned key) {
    return key & (BUCKETS - 1);
}

static bool check(const Table *dev_table, const unsigned *keys) {
    Table table;
    copy_table_to_host(dev_table, &table);
    bool ok = check_table(table.entries, table.pool, keys, expected_bucket);
    free(table.pool);
    free(table.entries);
    return ok;
}

// Task: add_to_table(): The threads of the grid insert all elements in a grid-stride loop. For element i:
// store keys[i] and values[i] in entry i of table.pool, and insert the entry at the head of the linked list
// of its bucket, b = hash(keys[i], table.count). Its `next` becomes the old head,
// table.entries[b], and the new head is the entry. Reading and changing the head is a critical section
// between lock[b].lock() and lock[b].unlock(). The 32 lanes of a warp insert one after the other, in a loop
// with one iteration per lane; the lane is threadIdx.x % 32. Before compute capability 7.0, lanes of one warp
// that waited for each other's lock could deadlock. (Newer GPUs and the CPU back end do not show this error.)
