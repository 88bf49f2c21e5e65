// SPDX-License-Identifier: MIT
/*
 * hashtable_pipeline: three stages of work with a hash table, on the device, on the host, or on both
 *
 * Teaches: Keys are made, a hash table is built, and all keys are looked up. If only the middle stage runs
 *          on the host, the keys must be copied to the host and the table to the device, and each side
 *          waits for the other. So the program can be faster with all stages on the device, even if the
 *          host builds the table faster. Amdahl's law limits the speedup of a program of which a part
 *          stays as slow as it was.
 * Terms:   hash table, hash bucket, chaining, host, device, lock-free, Amdahl's law, speedup
 * Book:    A.2.5 (after the book)
 * Build:   nvcc -o hashtable_pipeline appendix_a/hashtable_pipeline.cu common/lib/[a-z]*.c
 * Run:     ./bin/appendix_a/hashtable_pipeline
 * Differs: the book says this in its text and has no program for it. Entries are indices instead of pointers,
 *          so a table can be copied. One atomic exchange inserts an entry, without a lock, because no
 *          thread follows the chains before the kernel ends. The host uses one thread.
 * Check:   --size 270000 | --size 20000 --where mixed
 */
#include <chrono>
#include <numeric>
#include <vector>
#include "../common/book.h"

#define ELEMENTS (4 * 1024 * 1024)
#define NONE     0xffffffffu // the end of a chain

enum { GPU, CPU, MIXED, WAYS };
enum { MAKE, COPY_KEYS, BUILD, COPY_TABLE, LOOK_UP, STAGES };

static size_t elements = ELEMENTS; // --size
static int only = 0;               // --where; 0: all ways
static void print_times(int way, const double *ms);
static bool amdahl(const double *cpu, const double *mixed);

// Entry i has key keys[i] and value i. heads[b]: first entry of bucket b; next[i]: the one after entry i.
struct Table {
    unsigned n, buckets;
    unsigned *keys, *heads, *next;
};
static void poison(const Table &table, const Table &dev);
static bool check(int way, const Table &table, const Table &dev, const unsigned long long *result);

// Different numbers i have different keys.
__host__ __device__ static inline unsigned key_of(unsigned i) {
    unsigned key = i * 2654435769u;
    return (key ^ key >> 16) * 1664525u;
}

__host__ __device__ static inline unsigned bucket_of(unsigned key, unsigned buckets) {
    return (unsigned long long)(key * 2654435769u) * buckets >> 32;
}

// Searches the chain of the key's bucket. Returns the value of the key, or NONE.
__host__ __device__ static inline unsigned find(const Table &table, unsigned key) {
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

// Runs the three stages on the host (table) or on the device (dev), and stores the times of the stages and of
// the copies between them.
static void run(int way, Table table, Table dev, unsigned long long *dev_result, unsigned long long *result,
                double *ms) {
    const size_t bytes = table.n * sizeof(unsigned), heads = table.buckets * sizeof(unsigned);
    const int blocks = 1024, threads = 256;
    auto last = std::chrono::steady_clock::now();
    auto done = [&](int stage) { // the time of a stage includes the wait
        HANDLE_ERROR(cudaDeviceSynchronize());
        auto now = std::chrono::steady_clock::now();
        ms[stage] = std::chrono::duration<double, std::milli>(now - last).count();
        last = now;
    };
    if (way == CPU)
        for (unsigned i = 0; i < table.n; i++)
            table.keys[i] = key_of(i);
    else {
        fill_keys<<<blocks, threads>>>(dev);
        HANDLE_LAUNCH();
    }
    done(MAKE);
    if (way == MIXED)
        HANDLE_ERROR(cudaMemcpy(table.keys, dev.keys, bytes, cudaMemcpyDeviceToHost));
    done(COPY_KEYS);
    if (way == GPU) {
        HANDLE_ERROR(cudaMemset(dev.heads, 0xff, heads)); // all chains are empty: NONE
        build<<<blocks, threads>>>(dev);
        HANDLE_LAUNCH();
    } else {
        memset(table.heads, 0xff, heads);
        for (unsigned i = 0; i < table.n; i++) {
            unsigned *head = &table.heads[bucket_of(table.keys[i], table.buckets)];
            table.next[i] = *head;
            *head = i;
        }
    }
    done(BUILD);
    if (way == MIXED) {
        HANDLE_ERROR(cudaMemcpy(dev.heads, table.heads, heads, cudaMemcpyHostToDevice));
        HANDLE_ERROR(cudaMemcpy(dev.next, table.next, bytes, cudaMemcpyHostToDevice));
    }
    done(COPY_TABLE);
    result[0] = result[1] = 0;
    if (way == CPU)
        for (unsigned i = 0; i < table.n; i++) {
            unsigned value = find(table, key_of(i));
            result[0] += value != NONE ? value : 0;
            result[1] += value != NONE;
        }
    else {
        HANDLE_ERROR(cudaMemset(dev_result, 0, 2 * sizeof(unsigned long long)));
        look_up<<<blocks, threads>>>(dev, dev_result);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpy(result, dev_result, 2 * sizeof(unsigned long long), cudaMemcpyDeviceToHost));
    }
    done(LOOK_UP);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    Table table, dev;
    unsigned long long result[2], *dev_result;
    table.n = dev.n = elements;
    table.buckets = dev.buckets = elements / 4 + 1;
    table.keys = host_array<unsigned>(elements);
    table.next = host_array<unsigned>(elements);
    table.heads = host_array<unsigned>(table.buckets);
    HANDLE_ERROR(cudaMalloc(&dev.keys, elements * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc(&dev.next, elements * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc(&dev.heads, dev.buckets * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc(&dev_result, sizeof(result)));

    bool ok = true;
    double ms[WAYS][STAGES];
    for (int way = 0; way < WAYS; way++) {
        if (only && only - 1 != way)
            continue;
        poison(table, dev);         // removes earlier results
        for (int i = 0; i < 2; i++) // the first run warms up
            run(way, table, dev, dev_result, result, ms[way]);
        print_times(way, ms[way]);
        ok = check(way, table, dev, result) && ok;
    }
    if (!only)
        ok = amdahl(ms[CPU], ms[MIXED]) && ok;

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

static void print_times(int way, const double *ms) {
    printf("%s\n", ways[way]);
    for (int stage = 0; stage < STAGES; stage++)
        if (way == MIXED || (stage != COPY_KEYS && stage != COPY_TABLE))
            printf("  %-20s %9.3f ms\n", stages[stage], ms[stage]);
    printf("  %-20s %9.3f ms\n", "all", std::accumulate(ms, ms + STAGES, 0.0));
}

// Amdahl's law: if a part s of the time stays, and the rest becomes p times as fast, all becomes
// 1 / (s + (1 - s) / p) times as fast, and never more than 1 / s times. Here the host goes on building the
// table. The law counts no copies, so what is measured is slower. It is checked against the sum of the times.
static bool amdahl(const double *cpu, const double *mixed) {
    double whole = std::accumulate(cpu, cpu + STAGES, 0.0), divided = cpu[MAKE] + cpu[LOOK_UP];
    double s = 1 - divided / whole, on_device = mixed[MAKE] + mixed[LOOK_UP], p = divided / on_device;
    double speedup = 1 / (s + (1 - s) / p), all = std::accumulate(mixed, mixed + STAGES, 0.0);
    printf("Amdahl's law: %.3f ms, %.3f %% of cpu, stay; the device is %.5f times as fast with the rest:\n"
           "  speedup %.5f, at most %.3f; measured, with the copies and waits, %.3f ms, speedup %.5f\n",
           whole - divided, 100 * s, p, speedup, 1 / s, all, whole / all);
    return check_value("speedup", speedup, whole / (whole - divided + on_device), 1e-9);
}

// Neither the number of an entry nor NONE
const int POISON = 0xfe;

static void poison(const Table &table, const Table &dev) {
    for (auto member : {&Table::keys, &Table::next, &Table::heads}) {
        size_t bytes = (member == &Table::heads ? table.buckets : elements) * sizeof(unsigned);
        memset(table.*member, POISON, bytes);
        HANDLE_ERROR(cudaMemset(dev.*member, POISON, bytes));
    }
}

// Every key must be found with its value: the sum of 0 to elements - 1. Each entry must be in the chain of
// its bucket, and each chain ends with NONE, so that the look-up of a key that is not in the table ends too.
static bool check(int way, const Table &table, const Table &dev, const unsigned long long *result) {
    printf("  sum of the values %llu, %llu keys found\n", result[0], result[1]);
    std::vector<unsigned> heads(table.buckets), next(elements), keys(elements);
    const Table &from = way == CPU ? table : dev;
    for (auto [to, part] : {std::pair(&heads, from.heads), {&next, from.next}, {&keys, from.keys}})
        HANDLE_ERROR(cudaMemcpy(to->data(), part, to->size() * sizeof(unsigned), cudaMemcpyDefault));
    unsigned long long once = 0, ends = 0;
    size_t steps = 0; // a wrong chain may be a cycle
    for (unsigned b = 0; b < table.buckets; b++) {
        unsigned i = heads[b];
        for (; i < elements && steps++ < elements; i = next[i])
            once += keys[i] == key_of(i) && bucket_of(keys[i], table.buckets) == b;
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
