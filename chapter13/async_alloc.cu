// SPDX-License-Identifier: MIT
/*
 * async_alloc: device memory that is allocated and freed in the order of a stream
 *
 * Teaches: cudaMallocAsync and cudaFreeAsync are steps of a stream, as copies and kernels are: no call waits,
 *          and memory is free for others when the stream reaches the step. What is freed goes to a memory
 *          pool, from which the next allocation takes it. cudaMalloc and cudaFree go to the driver, and
 *          cudaFree waits for all streams, so that in a loop nothing overlaps. A stream that uses memory
 *          which another one has allocated has to wait for the allocation, by an event.
 * Terms:   stream-ordered allocation, memory pool, stream, overlap, asynchronous copy, chunk
 * Book:    10.5 (after the book)
 * Since:   CUDA 11.2; every GPU whose driver has memory pools (cudaDevAttrMemoryPoolsSupported)
 * Build:   nvcc -o async_alloc chapter13/async_alloc.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter13/async_alloc --chunk 64K
 * Differs: as chapter10/basic_double_stream, but each chunk has device memory of its own, one allocation for
 *          its three arrays, and the loop runs over single chunks, which the streams take in turn.
 * Check:   --size 50036 --chunk 10007 | --size 3000 --chunk 1000 | --size 1 --chunk 1 |
 *          --no-wait --size 3000 --chunk 1000 (race)
 * Web:     --size 4M
 */
#include "../common/book.h"
#include "../common/checks/chunks.h" // fill_random(), verify()

#define N (1024 * 1024)

size_t size = 20 * N; // --size, elements in all
size_t chunk = N;     // --chunk, elements that are copied and computed at a time
static bool no_wait;  // --no-wait
static cudaStream_t stream0, stream1;
static int *host_a, *host_b, *host_c;
static float time_loop(void (*loop)(void)); // milliseconds
static bool check(void);

// As in chapter 10
__global__ void kernel(const int *a, const int *b, int *c, size_t n) {
    size_t idx = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (idx < n) {
        size_t first = n < 256 ? n : 256;
        size_t idx1 = (idx + 1) % first, idx2 = (idx + 2) % first;
        float as = (a[idx] + a[idx1] + a[idx2]) / 3.0f, bs = (b[idx] + b[idx1] + b[idx2]) / 3.0f;
        c[idx] = (as + bs) / 2;
    }
}

// The chunk that begins with element i: copies and kernel, in the order of a stream
static void compute(size_t i, size_t count, cudaStream_t stream, int *dev_a, int *dev_b, int *dev_c) {
    HANDLE_ERROR(cudaMemcpyAsync(dev_a, host_a + i, count * sizeof(int), cudaMemcpyHostToDevice, stream));
    HANDLE_ERROR(cudaMemcpyAsync(dev_b, host_b + i, count * sizeof(int), cudaMemcpyHostToDevice, stream));
    kernel<<<(count + 255) / 256, 256, 0, stream>>>(dev_a, dev_b, dev_c, count);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpyAsync(host_c + i, dev_c, count * sizeof(int), cudaMemcpyDeviceToHost, stream));
}

// cudaMalloc and cudaFree belong to no stream. Kernels or copies of any stream could still use the memory,
// so cudaFree waits until the device has finished: the host never gets ahead, and the streams take turns.
static void malloc_loop(void) {
    for (size_t i = 0; i < size; i += chunk) {
        cudaStream_t stream = i / chunk % 2 == 0 ? stream0 : stream1;
        size_t count = min_of(chunk, size - i);
        int *dev; // three arrays of a chunk
        HANDLE_ERROR(cudaMalloc((void **)&dev, 3 * count * sizeof(int)));
        compute(i, count, stream, dev, dev + count, dev + 2 * count);
        HANDLE_ERROR(cudaFree(dev));
    }
}

// The same with the stream as a further argument. The pointer is known at once, but only work that stands in
// the stream between the allocation and the free may use the memory. It is useful where the sizes are not
// known before the loop. Here they are, and one allocation before the loop, as in chapter 10, is as fast;
// check() times that too.
static void async_loop(void) {
    for (size_t i = 0; i < size; i += chunk) {
        cudaStream_t stream = i / chunk % 2 == 0 ? stream0 : stream1;
        size_t count = min_of(chunk, size - i);
        int *dev;
        HANDLE_ERROR(cudaMallocAsync((void **)&dev, 3 * count * sizeof(int), stream));
        compute(i, count, stream, dev, dev + count, dev + 2 * count);
        HANDLE_ERROR(cudaFreeAsync(dev, stream)); // the next chunk of this stream gets this memory
    }
}

// stream0 allocates memory and writes it; stream1 reads it and frees it. The event orders both: without it
// (--no-wait) stream1 may use memory that is not allocated yet, and the result may still be right. Tools find
// the missing wait: make check on the CPU, compute-sanitizer --track-stream-ordered-races all on a GPU. If
// stream0 freed the memory, it would have to wait for stream1 before that.
static void hand_over(void) {
    int *dev;
    cudaEvent_t written;
    HANDLE_ERROR(cudaEventCreate(&written));
    HANDLE_ERROR(cudaMallocAsync((void **)&dev, chunk * sizeof(int), stream0));
    HANDLE_ERROR(cudaMemcpyAsync(dev, host_a, chunk * sizeof(int), cudaMemcpyHostToDevice, stream0));
    HANDLE_ERROR(cudaEventRecord(written, stream0));
    if (!no_wait)
        HANDLE_ERROR(cudaStreamWaitEvent(stream1, written, 0));
    HANDLE_ERROR(cudaMemcpyAsync(host_c, dev, chunk * sizeof(int), cudaMemcpyDeviceToHost, stream1));
    HANDLE_ERROR(cudaFreeAsync(dev, stream1));
    HANDLE_ERROR(cudaEventDestroy(written));
}

int main(int argc, char **argv) {
    settings(argc, argv);
    HANDLE_ERROR(cudaStreamCreate(&stream0));
    HANDLE_ERROR(cudaStreamCreate(&stream1));
    HANDLE_ERROR(cudaHostAlloc((void **)&host_a, size * sizeof(int), cudaHostAllocDefault));
    HANDLE_ERROR(cudaHostAlloc((void **)&host_b, size * sizeof(int), cudaHostAllocDefault));
    HANDLE_ERROR(cudaHostAlloc((void **)&host_c, size * sizeof(int), cudaHostAllocDefault));
    fill_random(host_a);
    fill_random(host_b);

    // A memory pool of the program. Up to the release threshold it keeps what is freed; the default is 0:
    // whenever the host waits for the device, the driver gets the memory back. Each device has a pool from
    // the beginning, from which cudaMallocAsync allocates. cudaDeviceSetMemPool puts this one in its place;
    // cudaMallocFromPoolAsync would take the pool as an argument.
    cudaMemPool_t pool;
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned; // memory that does not migrate
    properties.location = {cudaMemLocationTypeDevice, options.device};
    uint64_t threshold = UINT64_MAX;
    HANDLE_ERROR(cudaMemPoolCreate(&pool, &properties));
    HANDLE_ERROR(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    HANDLE_ERROR(cudaDeviceSetMemPool(options.device, pool));

    time_loop(malloc_loop); // a warm-up
    printf("cudaMalloc in the loop:       %.3f ms\n", time_loop(malloc_loop));
    printf("cudaMallocAsync, empty pool:  %.3f ms\n", time_loop(async_loop)); // memory from the driver
    printf("cudaMallocAsync in the loop:  %.3f ms\n", time_loop(async_loop)); // memory from the pool
    hand_over();
    bool ok = check();

    HANDLE_ERROR(cudaMemPoolDestroy(pool)); // and the device has its own pool again
    HANDLE_ERROR(cudaFreeHost(host_a));
    HANDLE_ERROR(cudaFreeHost(host_b));
    HANDLE_ERROR(cudaFreeHost(host_c));
    HANDLE_ERROR(cudaStreamDestroy(stream0));
    HANDLE_ERROR(cudaStreamDestroy(stream1));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/timing.h" // host_ms()

void settings(int argc, char **argv) {
    configure(argc, argv, "Allocates device memory for each chunk, in the order of a stream.", TIMES,
              {OPTION_SIZE("size", &size, 1, 1LL << 40, "elements in all"),
               OPTION_SIZE("chunk", &chunk, 1, 1 << 30, "elements at a time"),
               OPTION_FLAG("no-wait", &no_wait, "a stream uses memory of another one without an event")});
    if (!device_attribute(cudaDevAttrMemoryPoolsSupported))
        quit(EXIT_WAIVED, "needs a device with memory pools");
    chunk = min_of(chunk, size);
    require_memory(4 * size * sizeof(int), 2 * 6 * chunk * sizeof(int));
    printf("Chunks: %zu, each with memory of its own\n", (size + chunk - 1) / chunk);
}

static bool all_right = true; // the results of all loops

// Runs a loop and checks its result. Returns its time by the host's clock.
static float time_loop(void (*loop)(void)) {
    memset(host_c, 0xff, size * sizeof(int));
    float ms = host_ms([=] {
        loop();
        HANDLE_ERROR(cudaStreamSynchronize(stream0));
        HANDLE_ERROR(cudaStreamSynchronize(stream1));
    });
    all_right = verify(host_a, host_b, host_c) && all_right;
    return ms;
}

// As in chapter 10, with memory for one chunk of each stream, three arrays, that is allocated before the loop
static int *dev_memory;
static void once_loop(void) {
    for (size_t i = 0; i < size; i += chunk) {
        int k = i / chunk % 2, *dev = dev_memory + 3 * k * chunk;
        compute(i, min_of(chunk, size - i), k == 0 ? stream0 : stream1, dev, dev + chunk, dev + 2 * chunk);
    }
}

// The limit of all three loops: the copies of both vectors to the device. The copies back overlap with them.
static float time_copies(void) {
    return median_host_ms([] {
        for (size_t i = 0; i < size; i += chunk)
            for (const int *host : {host_a, host_b})
                HANDLE_ERROR(cudaMemcpyAsync(dev_memory, host + i, min_of(chunk, size - i) * sizeof(int),
                                             cudaMemcpyHostToDevice, stream0));
        HANDLE_ERROR(cudaStreamSynchronize(stream0));
    });
}

static bool check(void) {
    HANDLE_ERROR(cudaStreamSynchronize(stream1)); // first: shows on the CPU whether it waits for stream0
    HANDLE_ERROR(cudaStreamSynchronize(stream0));
    bool ok = check_ints("of another stream", host_c, host_a, chunk);
    DeviceArray<int> memory(6 * chunk);
    dev_memory = memory;
    float once_ms = time_loop(once_loop), async_ms = time_loop(async_loop), copies_ms = time_copies();
    printf("cudaMalloc before the loop:   %.3f ms\n", once_ms);
    printf("The copies to the device:     %.3f ms, %.0f %% of the loop with cudaMallocAsync\n", copies_ms,
           100 * copies_ms / async_ms);
    printf("The fastest: ./bin/chapter10/stream_ladder --size %zu\n", size);
    cudaMemPool_t pool;
    uint64_t threshold, used, most; // bytes of the pool
    HANDLE_ERROR(cudaDeviceGetMemPool(&pool, options.device));
    HANDLE_ERROR(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    HANDLE_ERROR(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    HANDLE_ERROR(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &most));
    return check_value("the pool keeps all memory", threshold == UINT64_MAX, 1, 0) &&
           check_value("memory that is not freed", used, 0, 0) &&
           check_value("chunks were in the pool", most >= 3 * chunk * sizeof(int), 1, 0) && all_right && ok;
}

// Task: malloc_loop(): The streams take the chunks in turn; the last chunk may be shorter. For each chunk,
// allocate memory for its three arrays by one call of cudaMalloc, call compute(), and free it with cudaFree.
// async_loop(): The same work, with stream-ordered allocation: the memory of a chunk is allocated and freed
// in the stream of the chunk. No call of the loop waits for the device.
