// SPDX-License-Identifier: MIT
/*
 * hashtable_gpu: hash table with chaining, built by many threads with one lock per bucket
 *
 * Teaches: Two threads that insert at the head of one chain at the same time can lose an entry,
 *          so inserting is a critical section. With one mutex per bucket, threads wait for a lock (lock
 *          contention) only when their keys collide. The lanes of a warp insert one after the other: in
 *          a warp that executes in lockstep, the lane that holds the lock could not continue while
 *          other lanes wait for it, a deadlock. One lock for the whole table would make all threads
 *          insert one after the other.
 * Terms:   mutex, critical section, lock contention, hash table, hash bucket, chaining, collision,
 *          lockstep
 * Book:    A.2.3 and A.2.4
 * Run:     ./bin/appendix_a/hashtable_gpu --locks 32
 * Differs: the array of values has its real size and is filled. The check walks every chain to its
 *          end and must find each key once, with its value and in its own bucket; the exit status
 *          depends on it. --no-lock shows the entries that are lost without locks, and always ends
 *          with status 1: where few threads run at the same time, no entry may be lost. --locks takes
 *          fewer locks than buckets. --no-turns lets all lanes insert at once, in a process with a time
 *          limit: since compute capability 7.0 the lanes of a warp advance independently, so it ends. On an
 *          H200 the table is right, and the kernel takes 60 ms in place of 92 (2026-11-22).
 *          The book's GPU was no faster than its CPU. An H200 takes half the time of the CPU of its host.
 *          --hash and --keys try other hash functions and keys that are not random.
 * Check:   --size 20000 | --size 2000 --hash multiply --locks 7
 */
#include "../common/book.h"
#include "../common/proofs/child.h"
#include "../common/timing.h"
#include "hashtable.h" // struct Entry, hash(), hash_function, elements, make_keys(), make_values(), check_table()
#include "lock.h"

#define BLOCKS  60
#define THREADS 256

struct Table {
    unsigned count;  // buckets
    Entry **entries; // the head of each chain
    Entry *pool;     // all entries
    int function;    // the hash function
};

static int blocks = BLOCKS;      // --blocks
static bool no_lock = false;     // --no-lock
static bool no_turns = false;    // --no-turns
static int locks = HASH_ENTRIES; // --locks
__global__ void add_without_lock(const unsigned *keys, void *const *values, size_t elements, Table table,
                                 Lock *lock);
__global__ void add_all_lanes_at_once(const unsigned *keys, void *const *values, size_t elements, Table table,
                                      Lock *lock);
static bool check(const Table &table, const unsigned *keys);

__global__ void add_to_table(const unsigned *keys, void *const *values, size_t elements, Table table,
                             Lock *lock) {
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x; tid < elements; tid += stride) {
        unsigned hashValue = hash(keys[tid], table.count, table.function);
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

static void initialize_table(Table &table, unsigned entries, size_t elements) {
    table.count = entries;
    table.function = hash_function;
    HANDLE_ERROR(cudaMalloc(&table.entries, entries * sizeof(Entry *)));
    HANDLE_ERROR(cudaMemset(table.entries, 0, entries * sizeof(Entry *)));
    HANDLE_ERROR(cudaMalloc(&table.pool, elements * sizeof(Entry)));
}

static void free_table(Table &table) {
    HANDLE_ERROR(cudaFree(table.pool));
    HANDLE_ERROR(cudaFree(table.entries));
}

int main(int argc, char **argv) {
    settings(argc, argv);
    unsigned *keys = make_keys(), *dev_keys;
    void **values = make_values(keys), **dev_values;

    // The book's figure includes the allocations and the copies to the device.
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    HANDLE_ERROR(cudaEventRecord(start, 0));

    HANDLE_ERROR(cudaMalloc(&dev_keys, elements * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc(&dev_values, elements * sizeof(void *)));
    HANDLE_ERROR(cudaMemcpy(dev_keys, keys, elements * sizeof(unsigned), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_values, values, elements * sizeof(void *), cudaMemcpyHostToDevice));

    Table table;
    initialize_table(table, HASH_ENTRIES, elements);

    // Each Lock is a pointer to a mutex in device memory; the kernel gets an array of them.
    Lock lock[HASH_ENTRIES], *dev_lock;
    for (int i = 0; i < locks; i++)
        lock[i].init();
    for (int i = locks; i < HASH_ENTRIES; i++) // with --locks buckets share a mutex
        lock[i] = lock[i % locks];
    HANDLE_ERROR(cudaMalloc(&dev_lock, sizeof(lock)));
    HANDLE_ERROR(cudaMemcpy(dev_lock, lock, sizeof(lock), cudaMemcpyHostToDevice));

    auto kernel = no_lock ? add_without_lock : no_turns ? add_all_lanes_at_once : add_to_table;
    kernel<<<blocks, THREADS>>>(dev_keys, dev_values, elements, table, dev_lock);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    float elapsedTime;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    printf("Time to hash:  %3.1f ms\n", elapsedTime);

    // The kernel alone is timed while it builds the table again. The pool is filled with bytes 0xff, which
    // are not a valid entry, so that the check finds entries that the kernel has not written.
    auto launch = [&] { kernel<<<blocks, THREADS>>>(dev_keys, dev_values, elements, table, dev_lock); };
    auto reset = [&] {
        HANDLE_ERROR(cudaMemset(table.entries, 0, HASH_ENTRIES * sizeof(Entry *)));
        HANDLE_ERROR(cudaMemset(table.pool, 0xff, elements * sizeof(Entry)));
    };
    float ms = median_ms(launch, reset);
    printf("Kernel:        %.3f ms, %.3f M keys/s\n", ms, elements / ms / 1e3);

    bool ok = check(table, keys);

    for (int i = 0; i < locks; i++)
        lock[i].release();
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFree(dev_lock));
    free_table(table);
    HANDLE_ERROR(cudaFree(dev_values));
    HANDLE_ERROR(cudaFree(dev_keys));
    free(values);
    free(keys);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

// The kernel of --no-lock: two threads that insert into the same bucket at the same time can lose an entry.
__global__ void add_without_lock(const unsigned *keys, void *const *values, size_t elements, Table table,
                                 Lock *) {
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x; tid < elements; tid += stride) {
        unsigned hashValue = hash(keys[tid], table.count, table.function);
        for (unsigned i = 0; i < 32; i++) // one lane of the warp at a time
            if (threadIdx.x % 32 == i) {
                Entry *location = &table.pool[tid];
                location->key = keys[tid];
                location->value = values[tid];
                location->next = table.entries[hashValue];
                table.entries[hashValue] = location;
            }
    }
}

// The kernel of --no-turns: all lanes of a warp try to take a lock at the same time. Before compute
// capability 7.0 the lanes of a warp ran in lockstep, so the lane with the lock could not reach unlock()
// while the other lanes were spinning: a deadlock.
__global__ void add_all_lanes_at_once(const unsigned *keys, void *const *values, size_t elements, Table table,
                                      Lock *lock) {
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x; tid < elements; tid += stride) {
        unsigned hashValue = hash(keys[tid], table.count, table.function);
        Entry *location = &table.pool[tid];
        location->key = keys[tid];
        location->value = values[tid];
        lock[hashValue].lock();
        location->next = table.entries[hashValue];
        table.entries[hashValue] = location;
        lock[hashValue].unlock();
    }
}

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
    require_memory(bytes + elements * 2 * sizeof(int), bytes);
}

// Copies the table to the host. The pointers in it stay device addresses.
static bool check(const Table &table, const unsigned *keys) {
    HostArray<Entry *> entries(table.entries, HASH_ENTRIES);
    HostArray<Entry> pool(table.pool, elements);
    bool ok = check_table(entries, table.pool, pool, keys);
    if (ok && no_lock) { // the data race is an error even when it has no effect
        fprintf(stderr, "nothing was lost, this time and on this device\n");
        ok = false;
    }
    return ok;
}

// Task: add_to_table(): The threads of the grid insert all elements in a grid-stride loop. For element i:
// store keys[i] and values[i] in entry i of table.pool, and insert the entry at the head of the linked list
// of its bucket, b = hash(keys[i], table.count, table.function). Its `next` becomes the old head,
// table.entries[b], and the new head is the entry. Reading and changing the head is a critical section
// between lock[b].lock() and lock[b].unlock(). The 32 lanes of a warp insert one after the other, in a loop
// with one iteration per lane; the lane is threadIdx.x % 32. Before compute capability 7.0, lanes of one warp
// that waited for each other's lock could deadlock. (Newer GPUs and the CPU back end do not show this error.)
