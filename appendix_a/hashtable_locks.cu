// SPDX-License-Identifier: MIT
/*
 * hashtable_locks: a hash table with fewer locks, without turns, and without locks
 *
 * Teaches: Without locks, two threads that read the same head of a chain lose an entry. If buckets share a
 *          lock, threads wait for each other though their keys do not collide: lock contention. If the lanes
 *          of a warp do not take turns, all of them try to lock at once. Before compute capability 7.0 they
 *          ran in lockstep, so the lane with the lock waited for the lanes that wanted it: a deadlock.
 * Terms:   lock contention, mutex, critical section, hash bucket, chaining, lockstep
 * Book:    A.2.4 (after the book)
 * Build:   nvcc -o hashtable_locks appendix_a/hashtable_locks.cu common/lib/[a-z]*.c
 * Run:     ./bin/appendix_a/hashtable_locks --locks 32
 * Differs: the table of hashtable_gpu with indices instead of pointers, and without values. The status is 1
 *          without locks, also if nothing was lost. With --no-turns a child process does the work,
 *          which is ended after 30 s if it has a deadlock.
 * Check:   --size 2000 --locks 7 | --size 2000 --no-turns
 */
#include "../common/book.h"
#include "lock.h"

#define ELEMENTS     (1024 * 1024)
#define HASH_ENTRIES 1024        // buckets
#define NONE         0xffffffffu // the end of a chain

static size_t elements = ELEMENTS; // --size
static int locks = HASH_ENTRIES;   // --locks; 0: without locks
static bool no_turns;              // --no-turns
static bool check(const unsigned *keys, const unsigned *dev_heads, const unsigned *dev_next);

// Entry i has the key keys[i]. heads[b]: the first entry of bucket b; next[i]: the entry behind entry i. The
// lanes of a warp insert in 32 turns, one after the other, or in one: all at once.
__global__ void add_to_table(const unsigned *keys, unsigned elements, unsigned *heads, unsigned *next,
                             Lock *lock, unsigned locks, unsigned turns) {
    for (unsigned tid = threadIdx.x + blockIdx.x * blockDim.x; tid < elements;
         tid += blockDim.x * gridDim.x) {
        unsigned hashValue = keys[tid] % HASH_ENTRIES;
        for (unsigned i = 0; i < turns; i++)
            if (threadIdx.x % turns == i) {
                lock[hashValue % locks].lock();
                next[tid] = heads[hashValue];
                heads[hashValue] = tid;
                lock[hashValue % locks].unlock();
            }
    }
}

// Wrong: if another thread changes the head between both lines, the entries that it inserts are lost.
__global__ void add_without_locks(const unsigned *keys, unsigned elements, unsigned *heads, unsigned *next) {
    for (unsigned tid = threadIdx.x + blockIdx.x * blockDim.x; tid < elements;
         tid += blockDim.x * gridDim.x) {
        unsigned hashValue = keys[tid] % HASH_ENTRIES;
        next[tid] = heads[hashValue];
        heads[hashValue] = tid;
    }
}

int main(int argc, char **argv) {
    settings(argc, argv);
    unsigned *keys = (unsigned *)big_random_block(elements * sizeof(unsigned)), *dev_keys, *dev_heads,
             *dev_next;
    HANDLE_ERROR(cudaMalloc((void **)&dev_keys, elements * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_heads, HASH_ENTRIES * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_next, elements * sizeof(unsigned)));
    HANDLE_ERROR(cudaMemcpy(dev_keys, keys, elements * sizeof(unsigned), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemset(dev_heads, 0xff, HASH_ENTRIES * sizeof(unsigned))); // NONE: all chains are empty
    HANDLE_ERROR(cudaMemset(dev_next, 0xff, elements * sizeof(unsigned)));

    Lock lock[HASH_ENTRIES], *dev_lock;
    HANDLE_ERROR(cudaMalloc((void **)&dev_lock, sizeof(lock)));
    HANDLE_ERROR(cudaMemcpy(dev_lock, lock, sizeof(lock), cudaMemcpyHostToDevice));

    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    HANDLE_ERROR(cudaEventRecord(start, 0));
    if (locks == 0) {
        add_without_locks<<<60, 256>>>(dev_keys, elements, dev_heads, dev_next);
        HANDLE_LAUNCH();
    } else {
        add_to_table<<<60, 256>>>(dev_keys, elements, dev_heads, dev_next, dev_lock, locks,
                                  no_turns ? 1 : 32);
        HANDLE_LAUNCH();
    }
    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    float elapsedTime;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    printf("Time to hash:  %3.1f ms, %.3f M keys/s\n", elapsedTime, elements / elapsedTime / 1e3);
    bool ok = check(keys, dev_heads, dev_next);

    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    for (int i = 0; i < HASH_ENTRIES; i++)
        lock[i].release();
    HANDLE_ERROR(cudaFree(dev_lock));
    HANDLE_ERROR(cudaFree(dev_keys));
    HANDLE_ERROR(cudaFree(dev_heads));
    HANDLE_ERROR(cudaFree(dev_next));
    free(keys);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/child.h" // continue_in_child()

void settings(int argc, char **argv) {
    parse_options(argc, argv, "Builds a hash table with few locks, or none.", TIMES,
                  {OPTION_SIZE("size", &elements, 1, 1 << 30, "keys"),
                   OPTION_INT("locks", &locks, 0, HASH_ENTRIES, "locks that the buckets share; 0: none"),
                   OPTION_FLAG("no-turns", &no_turns, "all lanes of a warp insert at once")});
    if (locks == 0 && no_turns)
        quit(EXIT_USAGE, "--no-turns needs locks");
    if (no_turns && !options.list_devices)
        continue_in_child(30); // in seconds
    select_device();
    require_memory(4 * elements * sizeof(unsigned), 2 * elements * sizeof(unsigned));
}

// Each entry must be in the chain of its bucket, once. Without locks the data race is an error even when it
// has no effect.
static bool check(const unsigned *keys, const unsigned *dev_heads, const unsigned *dev_next) {
    HostArray<unsigned> heads(dev_heads, HASH_ENTRIES), next(dev_next, elements);
    HostArray<int> found(elements, 0);
    size_t count = 0; // a wrong chain may be a cycle
    for (unsigned b = 0; b < HASH_ENTRIES; b++)
        for (unsigned i = heads[b]; i != NONE && count <= elements;
             i = i < elements ? next[i] : NONE, count++)
            if (i < elements && (keys[i] & (HASH_ENTRIES - 1)) == b)
                found[i]++;
    printf("%zu elements found in hash table.\n", count);
    bool ok = check_ints("found", found, elements, [](size_t) { return 1; });
    if (ok && locks == 0)
        fprintf(stderr, "nothing was lost, this time and on this device\n");
    return ok && locks > 0;
}

// Task: none: hashtable_gpu asks for the same kernel, with a lock for each bucket.
