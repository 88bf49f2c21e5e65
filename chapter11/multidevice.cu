// SPDX-License-Identifier: MIT
/*
 * multidevice: dot product on several GPUs, one host thread for each
 *
 * Teaches: Each host thread has a current device, which its CUDA calls use; cudaSetDevice() selects it.
 *          Here one host thread for each GPU copies a part of the vectors to its device and computes
 *          a partial sum there, and the host adds the partial sums. With devices of different speed, the
 *          vectors are divided so that all devices take the same time (load balancing), because the
 *          slowest device determines the total time.
 * Terms:   host thread, device, dot product, partial sum, scaling, load balancing
 * Book:    11.3
 * Build:   nvcc -o multidevice chapter11/multidevice.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter11/multidevice --gpus 2 --balance
 * Differs: any number of devices, an array of threads where the page has one; unequal parts (--share,
 *          --balance). The result is compared with the closed form; time and rate of each device are printed.
 *          --one-thread needs no threads; with --different-work each device does something else.
 * Needs:   gpus=2
 * Check:   --size 100000 | --size 30000 --one-thread --share 30 | --size 3 | --size 1 --one-thread |
 *          --size 999 --different-work
 */
#include "../common/book.h"
#include "../common/timing.h"
#include <chrono>
#include <numeric>
#include "parts.h" // gpus, device_id[], part[], check_parts()

#define imin(a, b) ((a) < (b) ? (a) : (b))
#define N          (33 * 1024 * 1024)
const int threadsPerBlock = 256;

size_t n = N; // --size

struct DataStruct {
    int deviceID;
    size_t size; // elements of its part
    float *a;    // its part of the vectors, in pageable host memory
    float *b;
    float returnValue;
    float ms, kernel_ms; // see time_part()
};
static void time_part(DataStruct *data, float *dev_a, float *dev_b, float *dev_partial_c, int blocksPerGrid);
static bool report(const DataStruct *data, float c);

__global__ void dot(size_t size, const float *a, const float *b, float *c) {
    __shared__ float cache[threadsPerBlock];
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    int cacheIndex = threadIdx.x;

    float temp = 0;
    while (tid < size) {
        temp += a[tid] * b[tid];
        tid += (size_t)blockDim.x * gridDim.x;
    }
    cache[cacheIndex] = temp;
    __syncthreads();

    for (int i = blockDim.x / 2; i > 0; i /= 2) {
        if (cacheIndex < i)
            cache[cacheIndex] += cache[cacheIndex + i];
        __syncthreads();
    }
    if (cacheIndex == 0)
        c[blockIdx.x] = cache[0];
}

// Runs in one host thread for each device.
static CUT_THREADPROC routine(void *pvoidData) {
    DataStruct *data = (DataStruct *)pvoidData;
    if (data->size == 0) // more devices than elements
        CUT_THREADEND;
    HANDLE_ERROR(cudaSetDevice(data->deviceID)); // the current device of this host thread only

    size_t size = data->size;
    int blocksPerGrid = imin(32, (size + threadsPerBlock - 1) / threadsPerBlock);
    float *a = data->a, *b = data->b;
    float *partial_c = host_array<float>(blocksPerGrid);
    float *dev_a, *dev_b, *dev_partial_c;
    HANDLE_ERROR(cudaMalloc(&dev_a, size * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_b, size * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_partial_c, blocksPerGrid * sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, size * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, size * sizeof(float), cudaMemcpyHostToDevice));

    dot<<<blocksPerGrid, threadsPerBlock>>>(size, dev_a, dev_b, dev_partial_c);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(partial_c, dev_partial_c, blocksPerGrid * sizeof(float), cudaMemcpyDeviceToHost));
    float c = 0;
    for (int i = 0; i < blocksPerGrid; i++)
        c += partial_c[i];
    time_part(data, dev_a, dev_b, dev_partial_c, blocksPerGrid); // once more, for the times of the report

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_partial_c));
    free(partial_c);
    data->returnValue = c;
    CUT_THREADEND;
}

int main(int argc, char **argv) {
    settings(argc, argv); // ends the program if there are too few devices
    int deviceCount;
    HANDLE_ERROR(cudaGetDeviceCount(&deviceCount));
    deviceCount = imin(deviceCount, gpus); // --gpus

    float *a = host_array<float>(n), *b = host_array<float>(n);
    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = i * 2;
    }

    DataStruct data[MAX_GPUS] = {};
    size_t offset = 0;
    for (int i = 0; i < deviceCount; i++) {
        data[i].deviceID = device_id[i];
        data[i].size = part[i];
        data[i].a = a + offset;
        data[i].b = b + offset;
        offset += part[i];
    }

    // One new host thread for each device but the last, which this thread uses itself.
    CUTThread thread[MAX_GPUS];
    for (int i = 0; i < deviceCount - 1; i++)
        thread[i] = start_thread(routine, &data[i]);
    routine(&data[deviceCount - 1]);
    for (int i = 0; i < deviceCount - 1; i++)
        end_thread(thread[i]);

    float c = 0;
    for (int i = 0; i < deviceCount; i++)
        c += data[i].returnValue;
    bool ok = report(data, c);

    free(a);
    free(b);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

// Measures, while the other devices do the same, the copies to the device with the kernel, and the kernel
// alone.
static void time_part(DataStruct *data, float *dev_a, float *dev_b, float *dev_partial_c, int blocksPerGrid) {
    size_t bytes = data->size * sizeof(float);
    auto kernel = [&] { dot<<<blocksPerGrid, threadsPerBlock>>>(data->size, dev_a, dev_b, dev_partial_c); };
    data->ms = median_ms([&] {
        HANDLE_ERROR(cudaMemcpy(dev_a, data->a, bytes, cudaMemcpyHostToDevice));
        HANDLE_ERROR(cudaMemcpy(dev_b, data->b, bytes, cudaMemcpyHostToDevice));
        kernel();
    });
    data->kernel_ms = median_ms(kernel);
    expect_device(dev_a, data->deviceID);
}

static bool report(const DataStruct *data, float c) {
    print_parts(data, "with copies ", [](const DataStruct &d) {
        printf("; kernel %.3f ms, %.3f GB/s", d.kernel_ms, dot_gb_per_s(d.size, d.kernel_ms));
    });
    printf("Value calculated:  %f\n", c);
    return check_parts(c, threadsPerBlock);
}

// For --one-thread: this thread gives each device its copies and its kernel, which all return at once, and
// then waits for all devices. Returns the exit status.
static int run_in_one_thread(void) {
    PinnedArray<float> a(n, cudaHostAllocPortable), b(n, cudaHostAllocPortable);
    PinnedArray<float[32]> partial_c(gpus, cudaHostAllocPortable);
    float *dev_a[MAX_GPUS], *dev_b[MAX_GPUS], *dev_partial_c[MAX_GPUS];
    cudaStream_t stream[MAX_GPUS];
    cudaEvent_t start[MAX_GPUS], stop[MAX_GPUS];
    fill_dot(a, b, n);
    // A stream and its events belong to the device that is current when they are created.
    for (int i = 0; i < gpus; i++) {
        HANDLE_ERROR(cudaSetDevice(device_id[i]));
        HANDLE_ERROR(cudaStreamCreate(&stream[i]));
        HANDLE_ERROR(cudaEventCreate(&start[i]));
        HANDLE_ERROR(cudaEventCreate(&stop[i]));
        HANDLE_ERROR(cudaMalloc(&dev_a[i], max_of(part[i], 1) * sizeof(float)));
        HANDLE_ERROR(cudaMalloc(&dev_b[i], max_of(part[i], 1) * sizeof(float)));
        HANDLE_ERROR(cudaMalloc(&dev_partial_c[i], 32 * sizeof(float)));
    }

    std::chrono::duration<double, std::milli> elapsed;
    for (int run = 0; run < 2; run++) { // the first run warms up
        auto began = std::chrono::steady_clock::now();
        size_t offset = 0;
        for (int i = 0; i < gpus; offset += part[i++]) {
            int blocks = min_of(32, (part[i] + threadsPerBlock - 1) / threadsPerBlock);
            size_t bytes = part[i] * sizeof(float);
            if (part[i] == 0)
                continue;
            HANDLE_ERROR(cudaSetDevice(device_id[i]));
            HANDLE_ERROR(cudaEventRecord(start[i], stream[i]));
            HANDLE_ERROR(cudaMemcpyAsync(dev_a[i], a + offset, bytes, cudaMemcpyHostToDevice, stream[i]));
            HANDLE_ERROR(cudaMemcpyAsync(dev_b[i], b + offset, bytes, cudaMemcpyHostToDevice, stream[i]));
            dot<<<blocks, threadsPerBlock, 0, stream[i]>>>(part[i], dev_a[i], dev_b[i], dev_partial_c[i]);
            HANDLE_LAUNCH();
            HANDLE_ERROR(cudaMemcpyAsync(partial_c[i], dev_partial_c[i], blocks * sizeof(float),
                                         cudaMemcpyDeviceToHost, stream[i]));
            HANDLE_ERROR(cudaEventRecord(stop[i], stream[i]));
        }
        for (int i = 0; i < gpus; i++)
            HANDLE_ERROR(cudaStreamSynchronize(stream[i]));
        elapsed = std::chrono::steady_clock::now() - began;
    }

    DataStruct data[MAX_GPUS] = {};
    float c = 0, sum = 0;
    for (int i = 0; i < gpus; i++) {
        int blocks = min_of(32, (part[i] + threadsPerBlock - 1) / threadsPerBlock);
        c += std::accumulate(partial_c[i], partial_c[i] + blocks, 0.0f);
        if (part[i] > 0)
            HANDLE_ERROR(cudaEventElapsedTime(&data[i].ms, start[i], stop[i]));
        sum += data[i].ms;
    }
    print_parts(data, "with copies ", [](const DataStruct &) {});
    printf("One thread for all: %.3f ms; the times of the GPUs add up to %.3f ms\n", elapsed.count(), sum);
    printf("Value calculated:  %f\n", c);
    bool ok = check_parts(c, threadsPerBlock);

    for (int i = 0; i < gpus; i++) {
        HANDLE_ERROR(cudaSetDevice(device_id[i]));
        HANDLE_ERROR(cudaStreamDestroy(stream[i]));
        HANDLE_ERROR(cudaEventDestroy(start[i]));
        HANDLE_ERROR(cudaEventDestroy(stop[i]));
        HANDLE_ERROR(cudaFree(dev_a[i]));
        HANDLE_ERROR(cudaFree(dev_b[i]));
        HANDLE_ERROR(cudaFree(dev_partial_c[i]));
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

__global__ void add(size_t size, const float *a, float *b) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (i < size)
        b[i] += a[i];
}

// The second kind of work. returnValue becomes 1 if all sums are right.
static CUT_THREADPROC add_vectors(void *pvoidData) {
    DataStruct *data = (DataStruct *)pvoidData;
    HANDLE_ERROR(cudaSetDevice(data->deviceID));
    DeviceArray<float> dev_a(data->a, data->size), dev_b(data->b, data->size);
    add<<<(data->size + 255) / 256, 256>>>(data->size, dev_a, dev_b);
    HANDLE_LAUNCH();
    HostArray<float> sums(dev_b, data->size);
    data->returnValue = check_floats("sum", sums, data->size, 0x1p-23, [](size_t i) { return 2.0 * i; });
    CUT_THREADEND;
}

// For --different-work: devices 0, 2 ... compute the dot product of a vector with itself, and at the same
// time devices 1, 3 ... add it to itself. The thread of a device runs the function for its work. Returns the
// exit status.
static int run_different_work(void) {
    HostArray<float> a(n);
    for (size_t i = 0; i < n; i++)
        a[i] = i;
    DataStruct data[MAX_GPUS];
    CUTThread threads[MAX_GPUS];
    for (int i = 0; i < gpus; i++) {
        data[i] = {device_id[i], part[i] = n, a, a, 0, 0, 0};
        threads[i] = start_thread(i % 2 ? add_vectors : routine, &data[i]);
    }
    wait_for_threads(threads, gpus);
    bool ok = true;
    for (int i = 0; i < gpus; i++) {
        float value = data[i].returnValue;
        printf("GPU %d: %s = %f\n", device_id[i], i % 2 ? "all sums are right" : "dot product", value);
        ok = (i % 2 ? value == 1 : check_parts(2 * value, threadsPerBlock)) && ok;
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// For --balance: the time of each device for a part of this size, while all devices work.
static void measure(size_t elements, float *ms) {
    HostArray<float> zeros(elements);
    measure_parts<DataStruct>(routine, zeros, elements, ms);
}

// With --one-thread or --different-work the program ends in this function, and main, which has the book's
// version, does not run.
void settings(int argc, char **argv) {
    bool one_thread = false, different_work = false;
    const Option own = OPTION_FLAG("one-thread", &one_thread, "one host thread for all devices");
    dot_settings(argc, argv, "Dot product on several devices.", measure, own,
                 OPTION_FLAG("different-work", &different_work, "dot product or sums, in turn by device"));
    for (int i = 0; i < gpus; i++) {
        HANDLE_ERROR(cudaSetDevice(device_id[i]));
        require_memory(2 * n * sizeof(float), 2 * (different_work ? n : part[i]) * sizeof(float));
    }
    if (one_thread)
        exit(run_in_one_thread());
    if (different_work)
        exit(run_different_work());
    HANDLE_ERROR(cudaSetDevice(options.device));
}

// Task: routine(): pvoidData points to a DataStruct. If its size is 0, only end the thread with
// CUT_THREADEND. Otherwise select the device with cudaSetDevice(deviceID), and compute the dot product of the
// parts a and b, of `size` elements each: allocate device memory, copy the parts to the device, launch dot
// with blocksPerGrid blocks, at most 32, of threadsPerBlock threads, copy the partial sums of the blocks to
// the host, and add them there. Call time_part(data, dev_a, dev_b, dev_partial_c, blocksPerGrid). Free all
// memory, store the sum in returnValue, and end the thread with CUT_THREADEND.
