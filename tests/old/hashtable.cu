// SPDX-License-Identifier: MIT
// Appendix A: a hash table with an array of locks, and a sum under a lock that is passed by value.
#include "../common/book.h"
#include "lock.h"

#define ELEMENTS     5000
#define HASH_ENTRIES 64

struct Entry {
    unsigned int key;
    void *value;
    Entry *next;
};
struct Table {
    size_t count;
    Entry **entries;
    Entry *pool;
};

__device__ __host__ size_t hash(unsigned int key, size_t count) {
    return key % count;
}

__global__ void add_to_table(unsigned int *keys, void **values, Table table, Lock *lock) {
    int tid = threadIdx.x + blockIdx.x * blockDim.x;
    int stride = blockDim.x * gridDim.x;
    while (tid < ELEMENTS) {
        unsigned int key = keys[tid];
        size_t hashValue = hash(key, table.count);
        for (int i = 0; i < 32; i++) {
            if ((tid % 32) == i) {
                Entry *location = &(table.pool[tid]);
                location->key = key;
                location->value = values[tid];
                lock[hashValue].lock();
                location->next = table.entries[hashValue];
                table.entries[hashValue] = location;
                lock[hashValue].unlock();
            }
        }
        tid += stride;
    }
}

__global__ void count(Lock lock, int *total) {
    __shared__ int sum;
    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    atomicAdd(&sum, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        lock.lock();
        *total += sum;
        lock.unlock();
    }
}

int main(void) {
    unsigned int *buffer = (unsigned int *)big_random_block(ELEMENTS * sizeof(unsigned int));
    unsigned int *dev_keys;
    void **dev_values;
    HANDLE_ERROR(cudaMalloc((void **)&dev_keys, ELEMENTS * sizeof(unsigned int)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_values, ELEMENTS * sizeof(void *)));
    HANDLE_ERROR(cudaMemcpy(dev_keys, buffer, ELEMENTS * sizeof(unsigned int), cudaMemcpyHostToDevice));
    Table table;
    table.count = HASH_ENTRIES;
    HANDLE_ERROR(cudaMalloc((void **)&table.entries, HASH_ENTRIES * sizeof(Entry *)));
    HANDLE_ERROR(cudaMemset(table.entries, 0, HASH_ENTRIES * sizeof(Entry *)));
    HANDLE_ERROR(cudaMalloc((void **)&table.pool, ELEMENTS * sizeof(Entry)));

    Lock lock[HASH_ENTRIES];
    Lock *dev_lock;
    HANDLE_ERROR(cudaMalloc((void **)&dev_lock, HASH_ENTRIES * sizeof(Lock)));
    HANDLE_ERROR(cudaMemcpy(dev_lock, lock, HASH_ENTRIES * sizeof(Lock), cudaMemcpyHostToDevice));
    add_to_table<<<6, 64>>>(dev_keys, dev_values, table, dev_lock);

    Entry **entries = (Entry **)malloc(HASH_ENTRIES * sizeof(Entry *));
    Entry *pool = (Entry *)malloc(ELEMENTS * sizeof(Entry));
    HANDLE_ERROR(cudaMemcpy(entries, table.entries, HASH_ENTRIES * sizeof(Entry *), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaMemcpy(pool, table.pool, ELEMENTS * sizeof(Entry), cudaMemcpyDeviceToHost));
    int found = 0;
    for (int i = 0; i < HASH_ENTRIES; i++)
        for (Entry *e = entries[i]; e; e = (pool + (e - table.pool))->next) {
            Entry *current = pool + (e - table.pool);
            if (hash(current->key, table.count) != (size_t)i)
                printf("%d is in the wrong bucket\n", current->key);
            found++;
        }
    printf("%d elements found in hash table.\n", found);

    Lock one;
    int *dev_total, total = 0;
    HANDLE_ERROR(cudaMalloc((void **)&dev_total, sizeof(int)));
    HANDLE_ERROR(cudaMemset(dev_total, 0, sizeof(int)));
    count<<<32, 96>>>(one, dev_total);
    count<<<32, 96>>>(one, dev_total);
    HANDLE_ERROR(cudaMemcpy(&total, dev_total, sizeof(int), cudaMemcpyDeviceToHost));
    printf("%d threads counted\n", total);
    return 0;
}
