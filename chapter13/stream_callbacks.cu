// SPDX-License-Identifier: MIT
/*
 * stream_callbacks: two host threads, each with a default stream of its own, and functions of the host in it
 *
 * Teaches: All host threads share the default stream, so that the work of one thread waits for that of the
 *          others. Each thread has a default stream of its own as well, cudaStreamPerThread. A function of
 *          the host can be a step of a stream, as copies and kernels are: it runs when the steps before it
 *          have ended, in a thread of the driver, and must not call CUDA.
 * Terms:   host function, default stream, stream, host thread, overlap, asynchronous copy
 * Book:    10.4 (after the book)
 * Since:   cudaStreamPerThread: CUDA 7.0; cudaLaunchHostFunc: CUDA 10.0; every GPU
 * Build:   nvcc -o stream_callbacks chapter13/stream_callbacks.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter13/stream_callbacks --size 4M
 * Differs: as chapter10/basic_single_stream with other arithmetic, and the host adds up each chunk. With
 *          nvcc's option --default-stream per-thread, stream 0 is the default stream of the thread.
 * Check:   --size 5001 --chunk 1000 | --size 2
 */
#include "../common/book.h"

const int THREADS = 2; // host threads

struct DataStruct { // of a host thread
    unsigned *host, *dev;
    size_t n, added; // elements, and how many of them the host has added up
    unsigned long long sum;
    cudaStream_t stream;
};

static size_t size = 1 << 18;  // --size, elements in all
static size_t chunk = 1 << 15; // --chunk, elements that are copied and computed at a time
static float time_threads(DataStruct *data, cudaStream_t stream);
static bool check(const DataStruct *data);

// 1000 steps of a random generator. A few blocks cannot fill a device, so kernels of two streams can overlap.
__global__ void kernel(unsigned *a, size_t n) {
    for (size_t i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x)
        for (int step = 0; step < 1000; step++)
            a[i] = a[i] * 1664525 + 1013904223;
}

// A function of the host. The stream calls it when the copy before it has ended, so it can read the chunk.
static void CUDART_CB add_chunk(void *pvoidData) {
    DataStruct *data = (DataStruct *)pvoidData;
    size_t end = min_of(data->added + chunk, data->n);
    for (; data->added < end; data->added++)
        data->sum += data->host[data->added];
}

// What each host thread does. The host issues all chunks and waits once; meanwhile add_chunk() runs in other
// threads.
static void *routine(void *pvoidData) {
    DataStruct *data = (DataStruct *)pvoidData;
    HANDLE_ERROR(cudaSetDevice(options.device));
    for (size_t i = 0; i < data->n; i += chunk) {
        size_t count = min_of(chunk, data->n - i);
        HANDLE_ERROR(cudaMemcpyAsync(data->dev, data->host + i, count * sizeof(unsigned),
                                     cudaMemcpyHostToDevice, data->stream));
        kernel<<<8, 256, 0, data->stream>>>(data->dev, count);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpyAsync(data->host + i, data->dev, count * sizeof(unsigned),
                                     cudaMemcpyDeviceToHost, data->stream));
        HANDLE_ERROR(cudaLaunchHostFunc(data->stream, add_chunk, data));
    }
    HANDLE_ERROR(cudaStreamSynchronize(data->stream)); // each thread waits for its own stream
    return NULL;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    DataStruct data[THREADS];
    unsigned *host, *dev;
    HANDLE_ERROR(cudaHostAlloc((void **)&host, size * sizeof(unsigned), cudaHostAllocDefault));
    HANDLE_ERROR(cudaMalloc((void **)&dev, THREADS * chunk * sizeof(unsigned)));
    for (int k = 0; k < THREADS; k++) {
        data[k].host = host + k * (size / THREADS);
        data[k].n = k < THREADS - 1 ? size / THREADS : size - k * (size / THREADS);
        data[k].dev = dev + k * chunk;
    }

    bool ok = true;
    for (cudaStream_t stream : {cudaStreamLegacy, cudaStreamPerThread}) {
        float ms = time_threads(data, stream); // runs routine() in both threads
        const char *whose = stream == cudaStreamLegacy ? "all threads" : "each thread";
        printf("The default stream of %s: %.3f ms\n", whose, ms);
        ok = check(data) && ok;
    }

    HANDLE_ERROR(cudaFreeHost(host));
    HANDLE_ERROR(cudaFree(dev));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/timing.h" // host_ms()

void settings(int argc, char **argv) {
    configure(argc, argv, "Adds up chunks on the host, in streams of two host threads.", TIMES,
              {OPTION_SIZE("size", &size, 2, 1 << 28, "elements in all"),
               OPTION_SIZE("chunk", &chunk, 1, 1 << 26, "elements at a time")});
    chunk = min_of(chunk, size);
    require_memory(size * sizeof(unsigned), THREADS * chunk * sizeof(unsigned));
}

// Runs both threads twice, because the first run loads the kernel; between these runs one thread alone. If
// the work of both overlapped all the time, both would take as long as one: the limit.
static float time_threads(DataStruct *data, cudaStream_t stream) {
    float ms[3];
    for (int run = 0; run < 3; run++) {
        for (int k = 0; k < THREADS; k++) {
            data[k].stream = stream;
            data[k].sum = data[k].added = 0;
            for (size_t i = 0; i < data[k].n; i++)
                data[k].host[i] = i + (size_t)k * (size / THREADS);
        }
        ms[run] = host_ms([=] {
            CUTThread other = {};
            if (run != 1)
                other = start_thread(routine, &data[0]);
            routine(&data[1]);
            if (run != 1)
                end_thread(other);
        });
    }
    if (stream == cudaStreamPerThread)
        printf("A thread alone: %.3f ms, %.0f %% of both in streams of their own\n", ms[1],
               100 * ms[1] / ms[2]);
    return ms[2];
}

// The reference takes all 1000 steps of the generator at once: together they are one multiplication and one
// addition.
static bool check(const DataStruct *data) {
    unsigned factor = 1, add = 0;
    for (int step = 0; step < 1000; step++) {
        factor *= 1664525;
        add = add * 1664525 + 1013904223;
    }
    unsigned long long sums[THREADS], expected[THREADS] = {};
    for (int k = 0; k < THREADS; k++) {
        sums[k] = data[k].sum;
        for (size_t i = 0; i < data[k].n; i++)
            expected[k] += (unsigned)(i + (size_t)k * (size / THREADS)) * factor + add;
    }
    return check_counts("sum", sums, expected, THREADS);
}

// Task: routine(): What a host thread does with its `n` elements at `host`. Chunk by chunk, in its stream:
// copies the chunk to `dev`, launches kernel() with 8 blocks of 256 threads, copies the chunk back and lets
// the host add it up by add_chunk(). At the end it waits for its stream. First it sets the device to
// options.device.
