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
 * Run:     ./bin/appendix_a/hashtable_gpu --locks 32
 * Differs: the values are filled in, and each key is checked, as in hashtable_cpu. Options build the table
 *          without locks, without turns, with fewer locks, another hash function or other keys; the kernel
 *          alone is timed as well. The CPU back end has an eighth of the keys, so that it takes seconds.
 * Check:   --size 20000 | --size 2000 --hash multiply --locks 7
 */
#include "../common/book.h"
#include "../common/checks/child.h"
#include "../common/timing.h"
#include "hashtable.h" // make_values(), in_pool(), check_table()
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
static bool check(const Table &table, const unsigned *keys, bool print_found);

__host__ __device__ static unsigned hash(unsigned key, unsigned count) {
    return key % count;
}

static void initialize_table(Table &table, unsigned entries, size_t elements) {
    table.count = entries;
    HANDLE_ERROR(cudaMalloc(&table.entries, entries * sizeof(Entry *)));
    HANDLE_ERROR(cudaMemset(table.entries, 0, entries * sizeof(Entry *)));
    HANDLE_ERROR(cudaMalloc(&table.pool, elements * sizeof(Entry)));
    // The copy to the host also reads the padding between key and value, which the kernel does not write.
    HANDLE_ERROR(cudaMemset(table.pool, 0xff, elements * sizeof(Entry)));
}

// The pointers are device addresses. Each is replaced by the address of the same entry in the host's pool.
static void copy_table_to_host(const Table &table, Table &hostTable) {
    hostTable.count = table.count;
    hostTable.entries = host_array<Entry *>(table.count);
    hostTable.pool = host_array<Entry>(elements);
    HANDLE_ERROR(
        cudaMemcpy(hostTable.entries, table.entries, table.count * sizeof(Entry *), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaMemcpy(hostTable.pool, table.pool, elements * sizeof(Entry), cudaMemcpyDeviceToHost));

    size_t distance = (size_t)hostTable.pool - (size_t)table.pool;
    for (unsigned i = 0; i < table.count; i++)
        if (hostTable.entries[i] != NULL)
            hostTable.entries[i] = (Entry *)((size_t)hostTable.entries[i] + distance);
    for (size_t i = 0; i < elements; i++)
        if (hostTable.pool[i].next != NULL)
            hostTable.pool[i].next = (Entry *)((size_t)hostTable.pool[i].next + distance);
}

static void free_table(Table &table) {
    HANDLE_ERROR(cudaFree(table.pool));
    HANDLE_ERROR(cudaFree(table.entries));
}

__global__ void add_to_table(const unsigned *keys, void *const *values, size_t elements, Table table,
                             Lock *lock) {
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x; tid < elements; tid += stride) {
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
    }
}

static bool verify_table(const Table &dev_table, const unsigned *buffer) {
    Table table;
    copy_table_to_host(dev_table, table);
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
    free(table.pool);
    free(table.entries);
    bool ok = check(dev_table, buffer, false);
    return ok && count == elements && misplaced == 0;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    unsigned *buffer = (unsigned *)big_random_block(elements * sizeof(unsigned)), *dev_keys;
    void **values = make_values(buffer), **dev_values;

    HANDLE_ERROR(cudaMalloc(&dev_keys, elements * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc(&dev_values, elements * sizeof(void *)));
    HANDLE_ERROR(cudaMemcpy(dev_keys, buffer, elements * sizeof(unsigned), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_values, values, elements * sizeof(void *), cudaMemcpyHostToDevice));

    Table table;
    initialize_table(table, HASH_ENTRIES, elements);

    // Each Lock is a pointer to a mutex in device memory; the kernel gets an array of them.
    Lock lock[HASH_ENTRIES], *dev_lock;
    for (int i = 0; i < HASH_ENTRIES; i++)
        lock[i].init();
    HANDLE_ERROR(cudaMalloc(&dev_lock, sizeof(lock)));
    HANDLE_ERROR(cudaMemcpy(dev_lock, lock, sizeof(lock), cudaMemcpyHostToDevice));

    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    HANDLE_ERROR(cudaEventRecord(start, 0));

    add_to_table<<<60, 256>>>(dev_keys, dev_values, elements, table, dev_lock);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    float elapsedTime;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    printf("Time to hash:  %3.1f ms\n", elapsedTime);

    // Builds another table, several times.
    time_kernel(dev_keys, dev_values, dev_lock);
    bool ok = verify_table(table, buffer);

    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    free_table(table);
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

static int blocks = 60, locks = HASH_ENTRIES;  // --blocks, --locks
static bool no_lock = false, no_turns = false; // --no-lock, --no-turns

// The kernel of the variants. Without locks, two threads that insert into the same bucket at the same time
// can lose an entry. Without turns, all lanes of a warp try to take a lock at the same time. Before compute
// capability 7.0 the lanes of a warp ran in lockstep, so the lane with the lock could not reach unlock()
// while the other lanes were spinning: a deadlock.
template <bool locked, bool turns>
__global__ void add_variant(const unsigned *keys, void *const *values, size_t elements, Table table,
                            Lock *lock, int function) {
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x; tid < elements; tid += stride) {
        unsigned bucket = hash_with(function, keys[tid], table.count);
        for (unsigned i = 0; i < (turns ? 32 : 1); i++)
            if (!turns || threadIdx.x % 32 == i) {
                Entry *location = &table.pool[tid];
                location->key = keys[tid];
                location->value = values[tid];
                if (locked)
                    lock[bucket].lock();
                location->next = table.entries[bucket];
                table.entries[bucket] = location;
                if (locked)
                    lock[bucket].unlock();
            }
    }
}

// Prints and returns the time of the kernel alone. Before each run the table is emptied, and the pool is
// filled with bytes 0xff, which are not a valid entry, so that the check finds entries that the kernel has
// not written.
template <class Launch> static float time_launch(const Table &table, Launch launch) {
    float ms = median_ms(launch, [=] {
        HANDLE_ERROR(cudaMemset(table.entries, 0, HASH_ENTRIES * sizeof(Entry *)));
        HANDLE_ERROR(cudaMemset(table.pool, 0xff, elements * sizeof(Entry)));
    });
    printf("Kernel:        %.3f ms, %.3f M keys/s\n", ms, elements / ms / 1e3);
    return ms;
}

// In a table of its own, so that the check sees the one that main() has built.
static void time_kernel(const unsigned *keys, void *const *values, Lock *lock) {
    Table table;
    initialize_table(table, HASH_ENTRIES, elements);
    time_launch(table, [=] { add_to_table<<<60, 256>>>(keys, values, elements, table, lock); });
    free_table(table);
}

// Builds a table as main does. Returns the exit status.
static int build_variant(void) {
    unsigned *keys = make_keys();
    void **values = make_values(keys);
    DeviceArray<unsigned> dev_keys(keys, elements);
    DeviceArray<void *> dev_values(values, elements);
    Table table;
    initialize_table(table, HASH_ENTRIES, elements);
    Lock lock[HASH_ENTRIES];
    for (int i = 0; i < HASH_ENTRIES; i++)
        if (i < locks)
            lock[i].init();
        else
            lock[i] = lock[i % locks]; // buckets share a mutex
    DeviceArray<Lock> dev_lock(lock, HASH_ENTRIES);

    auto kernel = no_lock    ? add_variant<false, true>
                  : no_turns ? add_variant<true, false>
                             : add_variant<true, true>;
    float ms = time_launch(table, [&] {
        kernel<<<blocks, 256>>>(dev_keys, dev_values, elements, table, dev_lock, hash_function);
    });
    printf("Time to hash:  %3.1f ms\n", ms);
    bool ok = check(table, keys, true);
    for (int i = 0; i < locks; i++)
        lock[i].release();
    free_table(table);
    free(values);
    free(keys);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// With an option for a variant the program ends here.
void settings(int argc, char **argv) {
    int time_limit = 60;
    parse_options(argc, argv, "Builds a hash table on the device.", TIMES,
                  {TABLE_OPTIONS, OPTION_INT("blocks", &blocks, 1, 65536, "blocks of 256 threads"),
                   OPTION_INT("locks", &locks, 1, HASH_ENTRIES, "locks that the buckets share"),
                   OPTION_FLAG("no-lock", &no_lock, "show how many entries are lost without locks"),
                   OPTION_FLAG("no-turns", &no_turns, "all lanes of a warp insert at once"),
                   OPTION_INT("time-limit", &time_limit, 1, 3600,
                              "seconds after which the kernel is ended, with --no-turns")});
    if (no_lock && no_turns)
        quit(EXIT_USAGE, "--no-lock and --no-turns exclude each other");
    if (no_turns && !options.list_devices)
        continue_in_child(time_limit);
    select_device();
    size_t bytes = elements * (sizeof(unsigned) + sizeof(void *) + sizeof(Entry));
    require_memory(bytes + elements * 2 * sizeof(int), bytes + elements * sizeof(Entry));
    if (no_lock || no_turns || blocks != 60 || locks != HASH_ENTRIES || hash_function || kind_of_keys)
        exit(build_variant());
}

// Copies the table to the host. The pointers in it stay device addresses.
static bool check(const Table &table, const unsigned *keys, bool print_found) {
    HostArray<Entry *> entries(table.entries, HASH_ENTRIES);
    HostArray<Entry> pool(table.pool, elements);
    bool ok = check_table(+entries, table.pool, +pool, keys, print_found);
    if (ok && no_lock) { // the data race is an error even when it has no effect
        fprintf(stderr, "nothing was lost, this time and on this device\n");
        ok = false;
    }
    return ok;
}

// Task: add_to_table(): The threads of the grid insert all elements in a grid-stride loop. For element i:
// store keys[i] and values[i] in entry i of table.pool, and insert the entry at the head of the linked list
// of its bucket, b = hash(keys[i], table.count). Its `next` becomes the old head,
// table.entries[b], and the new head is the entry. Reading and changing the head is a critical section
// between lock[b].lock() and lock[b].unlock(). The 32 lanes of a warp insert one after the other, in a loop
// with one iteration per lane; the lane is threadIdx.x % 32. Before compute capability 7.0, lanes of one warp
// that waited for each other's lock could deadlock. (Newer GPUs and the CPU back end do not show this error.)
