// SPDX-License-Identifier: MIT
/*
 * hashtable_pipeline: three stages of work with a hash table, on the device, on the host, or on both
 *
 * Teaches: Keys are made, a hash table is built, and all keys are looked up. If only the middle stage runs
 *          on the host, the keys must be copied to the host and the table to the device, and each side
 *          waits for the other. So the program can be faster with all stages on the device, even if the
 *          host builds the table faster.
 * Terms:   hash table, hash bucket, chaining, host, device, lock-free
 * Book:    A.2.5 (after the book)
 * Build:   nvcc -o hashtable_pipeline appendix_a/hashtable_pipeline.cu common/lib/[a-z]*.c
 * Run:     ./bin/appendix_a/hashtable_pipeline
 * Differs: the book says this in its text and has no program for it. Entries are indices instead of pointers,
 *          so a table can be copied. One atomic exchange inserts an entry, without a lock, because no
 *          thread follows the chains before the kernel ends. The host uses one thread.
 * Check:   --size 270000 | --size 20000 --where mixed
 * Web:     --size 300000
 */
#include "../common/book.h"

#define ELEMENTS (4 * 1024 * 1024)
#define NONE     0xffffffffu // the end of a chain

const int BLOCKS = 1024, THREADS = 256;

enum { GPU, CPU, MIXED, WAYS };
enum { MAKE, COPY_KEYS, BUILD, COPY_TABLE, LOOK_UP, STAGES };

static size_t elements = ELEMENTS; // --size
static int only = 0;               // --where; 0: all ways
static double lap(void);           // waits for the device; milliseconds since the last call
static void print_times(int way, const double *ms);

// Entry i has key keys[i] and value i. heads[b]: first entry of bucket b; next[i]: the one after entry i.
struct Table {
    unsigned n, buckets;
    unsigned *keys, *heads, *next;
};
static void poison(Table table, Table dev);
static bool check(int way, Table table, Table dev, const unsigned long long *result);

// Different numbers i have different keys.
__host__ __device__ static inline unsigned key_of(unsigned i) {
    unsigned key = i * 2654435769u;
    return (key ^ key >> 16) * 1664525u;
}

__host__ __device__ static inline unsigned bucket_of(unsigned key, unsigned buckets) {
    return (unsigned long long)(key * 2654435769u) * buckets >> 32;
}

// Searches the chain of the key's bucket. Returns the value of the key, or NONE.
__host__ __device__ static inline unsigned find(Table table, unsigned key) {
    unsigned i = table.heads[bucket_of(key, table.buckets)];
    while (i != NONE && table.keys[i] != key)
        i = table.next[i];
    return i;
}

__global__ void fill_keys(Table table) {
    for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < table.n; i += blockDim.x * gridDim.x)
        table.keys[i] = key_of(i);
}

__global__ void build(Table table) {
    for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < table.n; i += blockDim.x * gridDim.x)
        table.next[i] = atomicExch(&table.heads[bucket_of(table.keys[i], table.buckets)], i);
}

// result[0]: the sum of the values that were found; result[1]: the number of keys that were found.
__global__ void look_up(Table table, unsigned long long *result) {
    unsigned long long sum = 0, found = 0;
    for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < table.n; i += blockDim.x * gridDim.x) {
        unsigned value = find(table, key_of(i));
        sum += value != NONE ? value : 0;
        found += value != NONE;
    }
    atomicAdd(&result[0], sum);
    atomicAdd(&result[1], found);
}

static void build_on_host(Table table) {
    memset(table.heads, 0xff, table.buckets * sizeof(unsigned)); // all chains are empty: NONE
    for (unsigned i = 0; i < table.n; i++) {
        unsigned *head = &table.heads[bucket_of(table.keys[i], table.buckets)];
        table.next[i] = *head;
        *head = i;
    }
}

static void look_up_on_device(Table dev, unsigned long long *dev_result, unsigned long long *result) {
    HANDLE_ERROR(cudaMemset(dev_result, 0, 2 * sizeof(*dev_result)));
    look_up<<<BLOCKS, THREADS>>>(dev, dev_result);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(result, dev_result, 2 * sizeof(*dev_result), cudaMemcpyDeviceToHost));
}

// The three ways. ms gets the times of the stages and copies.
static void all_on_host(Table table, unsigned long long *result, double *ms) {
    lap();
    for (unsigned i = 0; i < table.n; i++)
        table.keys[i] = key_of(i);
    ms[MAKE] = lap();
    build_on_host(table);
    ms[BUILD] = lap();
    result[0] = result[1] = 0;
    for (unsigned i = 0; i < table.n; i++) {
        unsigned value = find(table, key_of(i));
        result[0] += value != NONE ? value : 0;
        result[1] += value != NONE;
    }
    ms[LOOK_UP] = lap();
}

static void all_on_device(Table dev, unsigned long long *dev_result, unsigned long long *result, double *ms) {
    lap();
    fill_keys<<<BLOCKS, THREADS>>>(dev);
    HANDLE_LAUNCH();
    ms[MAKE] = lap();
    HANDLE_ERROR(cudaMemset(dev.heads, 0xff, dev.buckets * sizeof(unsigned)));
    build<<<BLOCKS, THREADS>>>(dev);
    HANDLE_LAUNCH();
    ms[BUILD] = lap();
    look_up_on_device(dev, dev_result, result);
    ms[LOOK_UP] = lap();
}

// The host builds the table, between two copies.
static void mixed(Table table, Table dev, unsigned long long *dev_result, unsigned long long *result,
                  double *ms) {
    size_t bytes = table.n * sizeof(unsigned), heads = table.buckets * sizeof(unsigned);
    lap();
    fill_keys<<<BLOCKS, THREADS>>>(dev);
    HANDLE_LAUNCH();
    ms[MAKE] = lap();
    HANDLE_ERROR(cudaMemcpy(table.keys, dev.keys, bytes, cudaMemcpyDeviceToHost));
    ms[COPY_KEYS] = lap();
    build_on_host(table);
    ms[BUILD] = lap();
    HANDLE_ERROR(cudaMemcpy(dev.heads, table.heads, heads, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev.next, table.next, bytes, cudaMemcpyHostToDevice));
    ms[COPY_TABLE] = lap();
    look_up_on_device(dev, dev_result, result);
    ms[LOOK_UP] = lap();
}

int main(int argc, char **argv) {
    settings(argc, argv);
    Table table, dev;
    unsigned long long result[2], *dev_result;
    table.n = dev.n = elements;
    table.buckets = dev.buckets = elements / 4 + 1;
    table.keys = (unsigned *)malloc(elements * sizeof(unsigned));
    table.next = (unsigned *)malloc(elements * sizeof(unsigned));
    table.heads = (unsigned *)malloc(table.buckets * sizeof(unsigned));
    HANDLE_NULL(table.keys && table.next && table.heads);
    HANDLE_ERROR(cudaMalloc((void **)&dev.keys, elements * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc((void **)&dev.next, elements * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc((void **)&dev.heads, dev.buckets * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_result, sizeof(result)));

    bool ok = true;
    for (int way = 0; way < WAYS; way++) {
        if (only && only - 1 != way)
            continue;
        double ms[STAGES] = {};
        poison(table, dev);           // removes earlier results
        for (int i = 0; i < 2; i++) { // the first run warms up
            if (way == GPU)
                all_on_device(dev, dev_result, result, ms);
            else if (way == CPU)
                all_on_host(table, result, ms);
            else
                mixed(table, dev, dev_result, result, ms);
        }
        print_times(way, ms);
        ok = check(way, table, dev, result) && ok;
    }

    HANDLE_ERROR(cudaFree(dev.keys));
    HANDLE_ERROR(cudaFree(dev.next));
    HANDLE_ERROR(cudaFree(dev.heads));
    HANDLE_ERROR(cudaFree(dev_result));
    free(table.keys);
    free(table.next);
    free(table.heads);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include <chrono>
#include <numeric>

void settings(int argc, char **argv) {
    configure(argc, argv, "Makes keys, builds a hash table and looks all keys up.", TIMES,
              {OPTION_SIZE("size", &elements, 1, 1 << 30, "keys"),
               OPTION_WORD("where", &only, "all|gpu|cpu|mixed", "where the stages run")});
    size_t bytes = (2 * elements + elements / 4 + 1) * sizeof(unsigned);
    require_memory(bytes, bytes);
}

static const char *const ways[] = {"gpu", "cpu", "mixed"};
static const char *const stages[] = {"make the keys", "copy the keys down", "build the table",
                                     "copy the table up", "look all keys up"};

static double lap(void) {
    static std::chrono::steady_clock::time_point last;
    HANDLE_ERROR(cudaDeviceSynchronize());
    auto before = last;
    last = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::milli>(last - before).count();
}

static void print_times(int way, const double *ms) {
    printf("%s\n", ways[way]);
    for (int stage = 0; stage < STAGES; stage++)
        if (way == MIXED || (stage != COPY_KEYS && stage != COPY_TABLE))
            printf("  %-20s %9.3f ms\n", stages[stage], ms[stage]);
    printf("  %-20s %9.3f ms\n", "all", std::accumulate(ms, ms + STAGES, 0.0));
}

// Fills both tables with bytes that form neither the number of an entry nor NONE.
static void poison(Table table, Table dev) {
    unsigned *hosts[] = {table.keys, table.next, table.heads}, *devs[] = {dev.keys, dev.next, dev.heads};
    for (int i = 0; i < 3; i++) {
        size_t bytes = (i == 2 ? table.buckets : elements) * sizeof(unsigned);
        memset(hosts[i], 0xfe, bytes);
        HANDLE_ERROR(cudaMemset(devs[i], 0xfe, bytes));
    }
}

// Every key must be found with its value: the sum of 0 to elements - 1. Each entry must be in the chain of
// its bucket, and each chain ends with NONE, so that the look-up of a key that is not in the table ends too.
static bool check(int way, Table table, Table dev, const unsigned long long *result) {
    printf("  sum of the values %llu, %llu keys found\n", result[0], result[1]);
    if (way != CPU) {
        HANDLE_ERROR(cudaMemcpy(table.keys, dev.keys, elements * sizeof(unsigned), cudaMemcpyDefault));
        HANDLE_ERROR(cudaMemcpy(table.next, dev.next, elements * sizeof(unsigned), cudaMemcpyDefault));
        HANDLE_ERROR(cudaMemcpy(table.heads, dev.heads, dev.buckets * sizeof(unsigned), cudaMemcpyDefault));
    }
    unsigned long long once = 0, ends = 0;
    size_t steps = 0; // a wrong chain may be a cycle
    for (unsigned b = 0; b < table.buckets; b++) {
        unsigned i = table.heads[b];
        for (; i < elements && steps++ < elements; i = table.next[i])
            once += table.keys[i] == key_of(i) && bucket_of(table.keys[i], table.buckets) == b;
        ends += i == NONE;
    }
    const unsigned long long got[] = {result[0], result[1], once, ends},
                             expected[] = {(unsigned long long)elements * (elements - 1) / 2, elements,
                                           elements, table.buckets};
    return check_counts(ways[way], got, expected, 4);
}

// Task: fill_keys(): In a grid-stride loop, table.keys[i] becomes key_of(i) for all i below table.n.
// build(): In a grid-stride loop, insert each i below table.n at the head of the linked list of its bucket,
// bucket_of(table.keys[i], table.buckets). The head of bucket b is table.heads[b]. One atomic operation makes
// i the head and returns the old head, which becomes table.next[i]; no lock is needed.
// look_up(): In a grid-stride loop, look up key_of(i) with find() for all i below table.n. Each thread sums
// the values that it finds, which are those other than NONE, and counts them. Then it adds its sum to
// result[0] and its count to result[1], with one atomic addition each.
