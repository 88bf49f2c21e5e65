// SPDX-License-Identifier: MIT
/*
 * portable: several GPUs read one portable pinned allocation directly
 *
 * Teaches: Portable pinned memory is page-locked for every host thread and device. In the book's time,
 *          memory without the flag cudaHostAllocPortable was page-locked only for the host thread that
 *          allocated it; for other host threads it was pageable memory, so their copies were slower. With
 *          unified addressing all pinned memory is portable. The vectors are mapped too, so each GPU
 *          reads its part of them directly (zero-copy).
 * Terms:   portable pinned memory, page-locked memory, mapped memory, zero-copy, host thread,
 *          unified addressing
 * Book:    11.4
 * Build:   nvcc -o portable chapter11/portable.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter11/portable --no-portable
 * Differs: any number of devices, and an array of threads where the page has one. The main thread sets a
 *          second device, which no thread could before CUDA 4. The result is compared with the closed form.
 *          Today all pinned memory is portable: --no-portable shows it.
 * Needs:   gpus=2
 * Check:   --size 100000 | --size 5000 --no-portable | --size 3 | --size 2
 */
#include "../common/book.h"
#include "gpus.h" // gpus, device_id[], expect_device()

#define imin(a, b) ((a) < (b) ? (a) : (b))
#define N          (33 * 1024 * 1024)
const int threadsPerBlock = 256;

static size_t n = N;     // --size
static bool no_portable; // --no-portable
static int copy_from_another_thread(void);
static bool check(float c, int current);

struct DataStruct {
    int deviceID;
    size_t size, offset; // its part of the vectors
    float *a;            // the whole vectors, in pinned host memory
    float *b;
    float returnValue;
};

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
static void *routine(void *pvoidData) {
    struct DataStruct *data = (struct DataStruct *)pvoidData;
    if (data->size == 0) // more devices than elements
        return NULL;
    HANDLE_ERROR(cudaSetDevice(data->deviceID)); // the current device of this host thread only
    HANDLE_ERROR(cudaSetDeviceFlags(cudaDeviceMapHost));

    size_t size = data->size;
    int blocksPerGrid = imin(32, (size + threadsPerBlock - 1) / threadsPerBlock);
    float *a = data->a, *b = data->b;
    float *partial_c = (float *)malloc(blocksPerGrid * sizeof(float));
    HANDLE_NULL(partial_c);
    float *dev_a, *dev_b, *dev_partial_c;
    // The address by which this device reaches the host memory. Nothing is copied.
    HANDLE_ERROR(cudaHostGetDevicePointer(&dev_a, a, 0));
    HANDLE_ERROR(cudaHostGetDevicePointer(&dev_b, b, 0));
    HANDLE_ERROR(cudaMalloc(&dev_partial_c, blocksPerGrid * sizeof(float)));
    dev_a += data->offset;
    dev_b += data->offset;

    dot<<<blocksPerGrid, threadsPerBlock>>>(size, dev_a, dev_b, dev_partial_c);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(partial_c, dev_partial_c, blocksPerGrid * sizeof(float), cudaMemcpyDeviceToHost));
    float c = 0;
    for (int i = 0; i < blocksPerGrid; i++)
        c += partial_c[i];
    expect_device(dev_partial_c, data->deviceID); // for the check: no other device computed this part

    HANDLE_ERROR(cudaFree(dev_partial_c));
    free(partial_c);
    data->returnValue = c;
    return NULL;
}

int main(int argc, char **argv) {
    settings(argc, argv); // ends the program if there are too few devices
    if (no_portable)
        return copy_from_another_thread();
    int deviceCount;
    HANDLE_ERROR(cudaGetDeviceCount(&deviceCount));
    deviceCount = imin(deviceCount, gpus); // --gpus

    cudaDeviceProp prop;
    for (int i = 0; i < deviceCount; i++) {
        HANDLE_ERROR(cudaGetDeviceProperties(&prop, device_id[i]));
        if (!prop.canMapHostMemory)
            quit(EXIT_WAIVED, "needs devices that can map host memory");
    }

    // Mapping of host memory is a flag of the device. With unified addressing it is always on.
    float *a, *b;
    HANDLE_ERROR(cudaSetDevice(device_id[0]));
    HANDLE_ERROR(cudaSetDeviceFlags(cudaDeviceMapHost));
    // The CPU only writes the vectors: reading write-combined memory from the CPU can be very slow.
    const unsigned flags = cudaHostAllocWriteCombined | cudaHostAllocPortable | cudaHostAllocMapped;
    HANDLE_ERROR(cudaHostAlloc(&a, n * sizeof(float), flags));
    HANDLE_ERROR(cudaHostAlloc(&b, n * sizeof(float), flags));
    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = i * 2;
    }

    // Equal parts, n / 2 elements with two devices. The last part also has the remainder.
    struct DataStruct data[MAX_GPUS];
    size_t part = n / deviceCount;
    for (int i = 0; i < deviceCount; i++) {
        data[i].deviceID = device_id[i];
        data[i].offset = i * part;
        data[i].size = i < deviceCount - 1 ? part : n - i * part;
        data[i].a = a;
        data[i].b = b;
        data[i].returnValue = 0;
    }

    // One new host thread for each device but the last, which this thread uses itself.
    CUTThread thread[MAX_GPUS];
    for (int i = 0; i < deviceCount - 1; i++)
        thread[i] = start_thread(routine, &data[i]);
    routine(&data[deviceCount - 1]);
    for (int i = 0; i < deviceCount - 1; i++)
        end_thread(thread[i]);

    // This thread called cudaSetDevice twice, above and in routine(). In the book's time a thread kept its
    // first device. Memory of the first one, a and b here, is still there.
    int current;
    HANDLE_ERROR(cudaGetDevice(&current));
    printf("This thread set device %d, then %d\n", device_id[0], current);

    float c = 0;
    for (int i = 0; i < deviceCount; i++) {
        printf("GPU %d: %zu elements\n", data[i].deviceID, data[i].size);
        c += data[i].returnValue;
    }
    printf("Value calculated:  %f\n", c);
    bool ok = check(c, current);

    HANDLE_ERROR(cudaFreeHost(a));
    HANDLE_ERROR(cudaFreeHost(b));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/dot.h" // check_dot(), tree_additions()
#include "../common/timing.h"

void settings(int argc, char **argv) {
    parse_options(
        argc, argv, "Dot product on several devices, from pinned memory.", 0,
        {OPTION_SIZE("size", &n, 1, 1LL << 33, "elements in a vector"), OPTION_GPUS,
         OPTION_FLAG("no-portable", &no_portable, "copy in another thread, without the flag and with it")});
    choose_gpus();
    require_memory((no_portable ? 4 : 2) * n * sizeof(float), no_portable ? n * sizeof(float) : 0);
}

// Each product goes through the additions of its thread, those of the tree, of the blocks and of the devices.
// A device uses at most 32 blocks, and its part is at most n / gpus + gpus elements long.
static bool check(float c, int current) {
    return check_value("current device", current, device_id[gpus - 1], 0) &&
           check_dot("dot product", c, n, tree_additions(n / gpus + gpus, 32, threadsPerBlock) + gpus) &&
           check_value("memory on another device", elsewhere, 0, 0);
}

// Arguments and results of the second host thread.
struct Copies {
    const int *from; // source in host memory, allocated by the first thread
    int *back;       // the data on the device, copied back for the check
    float ms;        // of a copy
    cudaError_t taken;
};

// Runs in another host thread than the one that allocated the memory, with another device: copies from it,
// first with cudaMemcpy, then asynchronously.
static void *copy_elsewhere(void *pvoidData) {
    Copies *data = (Copies *)pvoidData;
    size_t bytes = n * sizeof(int);
    cudaStream_t stream;
    HANDLE_ERROR(cudaSetDevice(device_id[gpus > 1]));
    DeviceArray<int> dev(n);
    HANDLE_ERROR(cudaStreamCreate(&stream));
    data->ms = median_ms([&] { HANDLE_ERROR(cudaMemcpy(dev, data->from, bytes, cudaMemcpyHostToDevice)); });
    HANDLE_ERROR(cudaMemset(dev, 0xff, bytes));
    HANDLE_ERROR(cudaDeviceSynchronize());
    data->taken = cudaMemcpyAsync(dev, data->from, bytes, cudaMemcpyHostToDevice, stream);
    HANDLE_ERROR(cudaStreamSynchronize(stream));
    HANDLE_ERROR(cudaMemcpy(data->back, dev, bytes, cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaStreamDestroy(stream));
    return NULL;
}

// For --no-portable. Returns the exit status.
static int copy_from_another_thread(void) {
    const char *const kinds[] = {"pageable", "pinned", "portable"};
    HostArray<int> pageable(n), back(n);
    PinnedArray<int> pinned(n), portable(n, cudaHostAllocPortable);
    const int *const memory[] = {pageable, pinned, portable};
    random_bytes(pageable, n * sizeof(int));
    memcpy(pinned, pageable, n * sizeof(int));
    memcpy(portable, pageable, n * sizeof(int));
    bool ok = true;
    name_gpus();
    printf("Copies by another host thread, to device %d\n", device_id[gpus > 1]);
    for (int kind = 0; kind < 3; kind++) {
        Copies data = {memory[kind], back, 0, cudaSuccess};
        end_thread(start_thread(copy_elsewhere, &data));
        printf("%-9s memory: %.3f ms, %.3f GB/s; asynchronous copy: %s\n", kinds[kind], data.ms,
               n * sizeof(int) / data.ms / 1e6, cudaGetErrorName(data.taken));
        ok = check_ints(kinds[kind], back, pageable, n) && ok;
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// Task: routine(): pvoidData points to a DataStruct. If its size is 0, return NULL. Otherwise select the
// device with cudaSetDevice(deviceID), set its flag cudaDeviceMapHost with cudaSetDeviceFlags(), and compute
// the dot product of `size` elements of a and b, beginning at element `offset`. Both vectors are in mapped
// page-locked memory: get their device pointers with cudaHostGetDevicePointer(), and copy nothing to the
// device. Allocate device memory for the partial sums, launch dot with blocksPerGrid blocks, at most 32, of
// threadsPerBlock threads, copy the partial sums to the host, and add them there. Call
// expect_device(dev_partial_c, deviceID). Free what has been allocated, store the sum in returnValue, and
// return NULL.
