// SPDX-License-Identifier: MIT
/*
 * basic_single_stream: asynchronous copies and kernels in one stream
 *
 * Teaches: A stream is a queue of work for the device. cudaMemcpyAsync and launches return at once, and
 *          the device runs what is in the stream in the order of the calls. Asynchronous copies need
 *          page-locked host memory. In one stream nothing overlaps: copies and kernels together take
 *          as long as the sum of their times, but the host can do work of its own meanwhile.
 * Terms:   stream, asynchronous copy, cudaMemcpyAsync, page-locked memory, cudaHostAlloc, DMA, chunk,
 *          timeline
 * Book:    10.4
 * Build:   nvcc -o basic_single_stream chapter10/basic_single_stream.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter10/basic_single_stream --output timeline.svg
 * Differs: the input is masked, so that the sum of three numbers does not overflow. The
 *          result is verified. A later run gives a timeline, with --output as SVG. With --host-work the host
 *          works while the device does.
 * Check:   --size 50036 --chunk 10007 | --size 3000 --chunk 1000 | --host-work --size 9000 --chunk 1100
 */
#include "../common/book.h"
#include "streams.h" // fill_random(), check()

#define N              (1024 * 1024)
#define FULL_DATA_SIZE (N * 20)

size_t size = FULL_DATA_SIZE; // --size, elements in all
size_t chunk = N;             // --chunk, elements that are copied and computed at a time
static bool host_work;        // --host-work
static int run_with_host_work(void);

// The average of two averages: of three elements of a and of three of b. As in the book, the second and
// the third are among the first 256 elements of the chunk.
__global__ void kernel(const int *a, const int *b, int *c, size_t n) {
    size_t idx = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (idx < n) {
        size_t first = n < 256 ? n : 256;
        size_t idx1 = (idx + 1) % first;
        size_t idx2 = (idx + 2) % first;
        float as = (a[idx] + a[idx1] + a[idx2]) / 3.0f;
        float bs = (b[idx] + b[idx1] + b[idx2]) / 3.0f;
        c[idx] = (as + bs) / 2;
    }
}

int main(int argc, char **argv) {
    settings(argc, argv);
    if (host_work)
        return run_with_host_work();
    cudaDeviceProp prop;
    int whichDevice;
    HANDLE_ERROR(cudaGetDevice(&whichDevice));
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, whichDevice));
    printf("Copy engines: %d\n", prop.asyncEngineCount);
    if (prop.asyncEngineCount == 0) // the page asks for deviceOverlap, which CUDA 13 removed
        printf("The device does not overlap copies with kernels, so streams gain nothing.\n");

    cudaEvent_t start, stop;
    float elapsedTime;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    cudaStream_t stream;
    HANDLE_ERROR(cudaStreamCreate(&stream));

    // The device has room for one chunk.
    int *host_a, *host_b, *host_c;
    int *dev_a, *dev_b, *dev_c;
    HANDLE_ERROR(cudaMalloc(&dev_a, chunk * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_b, chunk * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_c, chunk * sizeof(int)));

    // Page-locked (pinned) memory: the copy engine reads and writes it by DMA while the host continues.
    HANDLE_ERROR(cudaHostAlloc(&host_a, size * sizeof(int), cudaHostAllocDefault));
    HANDLE_ERROR(cudaHostAlloc(&host_b, size * sizeof(int), cudaHostAllocDefault));
    HANDLE_ERROR(cudaHostAlloc(&host_c, size * sizeof(int), cudaHostAllocDefault));
    fill_random(host_a);
    fill_random(host_b);

    // The first launch loads the kernel, so it is not timed. It computes no element.
    kernel<<<1, 256, 0, stream>>>(dev_a, dev_b, dev_c, 0);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaEventRecord(start, 0));
    for (size_t i = 0; i < size; i += chunk) {
        size_t count = min_of(chunk, size - i); // the last chunk may be shorter
        HANDLE_ERROR(cudaMemcpyAsync(dev_a, host_a + i, count * sizeof(int), cudaMemcpyHostToDevice, stream));
        HANDLE_ERROR(cudaMemcpyAsync(dev_b, host_b + i, count * sizeof(int), cudaMemcpyHostToDevice, stream));
        kernel<<<count / 256 + 1, 256, 0, stream>>>(dev_a, dev_b, dev_c, count);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpyAsync(host_c + i, dev_c, count * sizeof(int), cudaMemcpyDeviceToHost, stream));
    }

    // All calls above return at once. Here the host waits until the device has finished.
    HANDLE_ERROR(cudaStreamSynchronize(stream));
    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    printf("Time taken:  %3.1f ms\n", elapsedTime);
    bool ok = check(kernel, 1, DEPTH_FIRST, host_a, host_b, host_c);

    HANDLE_ERROR(cudaFreeHost(host_a));
    HANDLE_ERROR(cudaFreeHost(host_b));
    HANDLE_ERROR(cudaFreeHost(host_c));
    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    HANDLE_ERROR(cudaStreamDestroy(stream));
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/timing.h" // median_host_ms()

// Times the work of the device alone, work of the host that takes about as long, and both: the host begins
// its work when all calls have returned, and waits for the stream afterwards. Returns the exit status.
static int run_with_host_work(void) {
    const int numbers = 1 << 16; // that the host sums: 0 to numbers - 1, in several passes
    cudaStream_t stream;
    PinnedArray<int> host_a(size), host_b(size), host_c(size);
    DeviceArray<int> dev_a(chunk), dev_b(chunk), dev_c(chunk);
    HostArray<int> own(numbers);
    HANDLE_ERROR(cudaStreamCreate(&stream));
    fill_random(host_a);
    fill_random(host_b);
    for (int i = 0; i < numbers; i++)
        own[i] = i;

    auto device_work = [&] {
        for (size_t i = 0; i < size; i += chunk) {
            size_t n = min_of(chunk, size - i);
            HANDLE_ERROR(cudaMemcpyAsync(dev_a, host_a + i, n * sizeof(int), cudaMemcpyHostToDevice, stream));
            HANDLE_ERROR(cudaMemcpyAsync(dev_b, host_b + i, n * sizeof(int), cudaMemcpyHostToDevice, stream));
            kernel<<<n / 256 + 1, 256, 0, stream>>>(dev_a, dev_b, dev_c, n);
            HANDLE_LAUNCH();
            HANDLE_ERROR(cudaMemcpyAsync(host_c + i, dev_c, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
        }
    };
    unsigned long long sum, passes = 1;
    auto host_work = [&] { // the weight keeps the compiler from doing all passes at once
        sum = 0;
        for (unsigned long long pass = 1; pass <= passes; pass++)
            for (int i = 0; i < numbers; i++)
                sum += pass * own[i];
    };
    auto wait = [&] { HANDLE_ERROR(cudaStreamSynchronize(stream)); };

    double device = median_host_ms([&] { device_work(), wait(); });
    passes = max_of(1, (long long)(device / median_host_ms(host_work)));
    double host = median_host_ms(host_work);
    memset(host_c, 0xff, size * sizeof(int));
    double both = median_host_ms([&] { device_work(), host_work(), wait(); });
    printf("Device alone:  %9.3f ms\n", device);
    printf("Host alone:    %9.3f ms\n", host);
    printf("Both:          %9.3f ms, %.2f times the longer one (1: full overlap, 2: none)\n", both,
           both / max_of(device, host));
    HANDLE_ERROR(cudaStreamDestroy(stream));

    // The sum of 0 to numbers - 1, with the weights 1 to passes
    unsigned long long expected = numbers * (numbers - 1ULL) / 2 * (passes * (passes + 1) / 2);
    bool ok = check_counts("sum of the host", &sum, &expected, 1);
    return verify(host_a, host_b, host_c) && ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

void settings(int argc, char **argv) {
    stream_settings(argc, argv, "Copies and computes in chunks, in one stream.", 1,
                    OPTION_FLAG("host-work", &host_work, "let the host work meanwhile, and time it"));
}

// Task: kernel(): One thread per element: the thread with the global index idx computes c[idx] if idx is
// below n. The mean of three elements of a is (a[idx] + a[idx1] + a[idx2]) / 3, in float, where idx1 is
// (idx + 1) % m, idx2 is (idx + 2) % m, and m is the smaller of n and 256. The mean of three elements of b
// has the same indices. c[idx] is the mean of both means, converted to int.
// main(): Write the calls for a pipeline in one stream. Fill in whichDevice and prop, and create the events
// and the stream. Allocate device memory for one chunk each for dev_a, dev_b and dev_c, and page-locked host
// memory for `size` ints each for host_a, host_b and host_c. The loop over i takes one chunk after the other;
// a chunk has `count` elements and begins at element i. Enqueue in the stream: the asynchronous copies of the
// chunk from host_a and host_b to the device, a launch of kernel with 256 threads per block, and the
// asynchronous copy of the result to the chunk of host_c. Record start before the first chunk. After the last
// chunk wait for the stream, record stop, wait for it, and compute elapsedTime. At the end free all memory
// and destroy the stream and the events.
