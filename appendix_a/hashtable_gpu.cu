// SPDX-License-Identifier: MIT
/*
 * hashtable_gpu: a hash table with chains, built by many threads
 *
 * Teaches: Two threads that put entries in front of one chain at the same time lose one of them, so
 *          each bucket has a lock, and threads wait only where they really meet. The lanes of a
 *          warp take their turns: where all run in step, a lane that has the lock cannot go on
 *          while the others wait for it.
 * Book:    A.2.3 and A.2.4
 * Run:     ./bin/appendix_a/hashtable_gpu
 * Differs: values have memory of their real size, and are filled. The check walks every chain to
 *          its end, and every key must be there once, with its value, in the bucket that it belongs
 *          to; the exit status depends on that. --no-lock shows what is lost without locks, and the
 *          status is then 1 whatever comes out: where few threads run at a time, it can be nothing.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <algorithm>
#include "../common/book.h"
#include "../common/memory.h"
#include "lock.h"

#define ELEMENTS     (100 * 1024 * 1024 / sizeof(unsigned)) // 100 MB of keys
#define HASH_ENTRIES 1024
#define BLOCKS       60
#define THREADS      256
#define RUNS         11

struct Entry {
    unsigned key;
    void *value;
    Entry *next;
};

struct Table {
    unsigned count;  // buckets
    Entry **entries; // the first of each chain
    Entry *pool;     // all entries
};

__host__ __device__ unsigned hash(unsigned key, unsigned count) {
    return key % count;
}

template <bool locked>
__global__ void add_to_table(const unsigned *keys, void *const *values, size_t elements,
                             Table table, Lock *lock) {
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x; tid < elements;
         tid += stride) {
        unsigned hashValue = hash(keys[tid], table.count);
        for (unsigned i = 0; i < 32; i++)
            if (threadIdx.x % 32 == i) {
                Entry *location = &table.pool[tid];
                location->key = keys[tid];
                location->value = values[tid];
                if (locked)
                    lock[hashValue].lock();
                location->next = table.entries[hashValue];
                table.entries[hashValue] = location;
                if (locked)
                    lock[hashValue].unlock();
            }
    }
}

// Walks all chains, and finds all keys: the value of a key is a pointer to it on the host, so an
// entry tells which of the keys it stands for, and each must be met once. The chains are walked
// abreast, an entry of each in turn, since neighbours in memory are in different chains. `pool` is
// where the pool is on the host: pointers to entries are the device's and are only compared.
static bool verify_table(const Table &table, const Entry *const *entries, const Entry *pool,
                         const unsigned *keys, size_t elements) {
    bool *found = (bool *)calloc(elements, 1);
    const Entry **next = (const Entry **)malloc(table.count * sizeof(Entry *));
    HANDLE_NULL(found);
    HANDLE_NULL(next);
    std::copy(entries, entries + table.count, next);
    size_t wrong = 0, met = 0;
    for (bool more = true; more && met <= elements;) { // a chain that is a ring has no end
        more = false;
        for (unsigned i = 0; i < table.count; i++) {
            if (!next[i])
                continue;
            more = true;
            met++;
            size_t offset = (uintptr_t)next[i] - (uintptr_t)table.pool;
            const Entry *entry = pool + offset / sizeof(Entry);
            bool good = offset / sizeof(Entry) < elements && offset % sizeof(Entry) == 0;
            next[i] = good ? entry->next : NULL;
            size_t which = elements;
            if (good)
                which = ((uintptr_t)entry->value - (uintptr_t)keys) / sizeof(unsigned);
            if (which < elements && entry->value == &keys[which] && entry->key == keys[which] &&
                hash(entry->key, table.count) == i && !found[which])
                found[which] = true;
            else if (wrong++ < 5)
                fprintf(stderr, "bucket %u: what is at byte %zu of the pool does not belong here\n",
                        i, offset);
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

int main(int argc, char **argv) {
    size_t elements = ELEMENTS;
    int blocks = BLOCKS;
    bool no_lock = false;
    const Option own[] = {OPTION_SIZE("size", &elements, 1, 1LL << 36, "keys"),
                          OPTION_INT("blocks", &blocks, 1, 65536, "blocks of 256 threads"),
                          OPTION_FLAG("no-lock", &no_lock, "show what is lost without locks"),
                          OPTION_END};
    parse_options(argc, argv, "Builds a hash table on the device.", TIMES, own);
    select_device();
    size_t bytes = elements * (sizeof(unsigned) + sizeof(void *) + sizeof(Entry));
    require_memory(bytes + elements, bytes);

    unsigned *keys = (unsigned *)big_random_block(elements * sizeof(unsigned)), *dev_keys;
    void **values = (void **)malloc(elements * sizeof(void *)), **dev_values;
    HANDLE_NULL(values);
    for (size_t i = 0; i < elements; i++)
        values[i] = &keys[i];

    // The time that the book measures: from the empty device to the whole table there.
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    HANDLE_ERROR(cudaEventRecord(start, 0));

    HANDLE_ERROR(cudaMalloc((void **)&dev_keys, elements * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_values, elements * sizeof(void *)));
    HANDLE_ERROR(cudaMemcpy(dev_keys, keys, elements * sizeof(unsigned), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_values, values, elements * sizeof(void *), cudaMemcpyHostToDevice));
    Table table = {HASH_ENTRIES, NULL, NULL};
    HANDLE_ERROR(cudaMalloc((void **)&table.entries, HASH_ENTRIES * sizeof(Entry *)));
    HANDLE_ERROR(cudaMalloc((void **)&table.pool, elements * sizeof(Entry)));
    Lock lock[HASH_ENTRIES], *dev_lock;
    for (Lock &each : lock)
        each.init();
    HANDLE_ERROR(cudaMalloc((void **)&dev_lock, sizeof(lock)));
    HANDLE_ERROR(cudaMemcpy(dev_lock, lock, sizeof(lock), cudaMemcpyHostToDevice));

    // Then the kernel alone, warm, RUNS times or until half a second is over: their median.
    float ms[RUNS], total = 0, all;
    int runs = -1;
    while (runs < RUNS && total < 500) {
        HANDLE_ERROR(cudaMemset(table.entries, 0, HASH_ENTRIES * sizeof(Entry *)));
        if (runs >= 0) {
            HANDLE_ERROR(cudaMemset(table.pool, 0xff, elements * sizeof(Entry)));
            HANDLE_ERROR(cudaEventRecord(start, 0));
        }
        auto kernel = no_lock ? add_to_table<false> : add_to_table<true>;
        kernel<<<blocks, THREADS>>>(dev_keys, dev_values, elements, table, dev_lock);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaEventRecord(stop, 0));
        HANDLE_ERROR(cudaEventSynchronize(stop));
        HANDLE_ERROR(cudaEventElapsedTime(runs < 0 ? &all : &ms[runs], start, stop));
        total += runs < 0 ? 0 : ms[runs];
        runs++;
    }
    std::nth_element(ms, ms + runs / 2, ms + runs);
    printf("Time to hash:  %3.1f ms\n", all);
    printf("Kernel:        %.3f ms, %.3f M keys/s\n", ms[runs / 2], elements / ms[runs / 2] / 1e3);

    Entry *entries[HASH_ENTRIES], *pool = (Entry *)malloc(elements * sizeof(Entry));
    HANDLE_NULL(pool);
    HANDLE_ERROR(cudaMemcpy(entries, table.entries, sizeof(entries), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaMemcpy(pool, table.pool, elements * sizeof(Entry), cudaMemcpyDeviceToHost));
    inject_error(&pool[elements / 2].key, sizeof(unsigned));
    bool ok = verify_table(table, entries, pool, keys, elements);
    if (ok && no_lock) {
        fprintf(stderr, "nothing was lost, this time and on this device\n");
        ok = false;
    }

    for (Lock &each : lock)
        each.release();
    HANDLE_ERROR(cudaFree(dev_lock));
    HANDLE_ERROR(cudaFree(table.pool));
    HANDLE_ERROR(cudaFree(table.entries));
    HANDLE_ERROR(cudaFree(dev_values));
    HANDLE_ERROR(cudaFree(dev_keys));
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    free(pool);
    free(values);
    free(keys);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
