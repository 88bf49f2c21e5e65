// SPDX-License-Identifier: MIT
// Programs for the race detector (test_races.py), each with a mistake and, as its twin, without. The first
// argument names the case, the second is 1 for the mistake. The line of a mistake is marked with its case's
// name.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda/barrier>
#include <cuda_pipeline.h>
#include <cusparse.h>
#include <mma.h>

constexpr int N = 256;

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        if ((int)(call) != 0)                                                                                \
            exit(3);                                                                                         \
    } while (0)

// ---- memory that nothing has written ----

__global__ void add_to(const int *in, int *sum) {
    sum[threadIdx.x] += in[threadIdx.x]; // read of sum
}

__global__ void count(const int *data, unsigned *bins) {
    atomicAdd(&bins[data[threadIdx.x] & 7], 1); // count in memory
}

static void unset_bins(int *data, bool wrong) {
    unsigned *bins;
    CHECK(cudaMallocAsync(&bins, 8 * sizeof *bins, 0));
    if (!wrong)
        CHECK(cudaMemset(bins, 0xff, 8 * sizeof *bins));
    count<<<1, N>>>(data, bins);
    CHECK(cudaFree(bins));
}

__global__ void others_local(int *data, bool wrong) {
    __shared__ int *local[N];
    int mine = data[threadIdx.x];
    local[threadIdx.x] = &mine;
    __syncthreads();
    int *const one = local[wrong ? threadIdx.x & 128 : threadIdx.x];
    data[threadIdx.x] = *one; // others_local
    atomicAdd(one, 1);        // others_local
    __syncthreads();
}

__global__ void written_index(int *data, bool wrong) {
    __syncthreads();
    if (wrong) {
        const_cast<unsigned &>(threadIdx.x) = 0; // written_index
        *(unsigned *)&blockDim.y = 1;            // written_index
    }
    data[threadIdx.x] = 1;
}

// What the twin reads has the bytes of fresh memory too. The mistake reads an allocation that has been freed
// and allocated again.
static void uninitialized(int *data, bool wrong) {
    int *sum;
    for (int i = 0; i < 2; ++i) {
        CHECK(cudaMalloc(&sum, N * sizeof *sum));
        if (i == 0 || !wrong)
            CHECK(cudaMemset(sum, 0xff, N * sizeof *sum));
        add_to<<<1, N>>>(data, sum);
        CHECK(cudaFree(sum));
    }
}

// ---- out-of-bounds accesses ----

__global__ void read_beyond(const int *in, int *out, int n) {
    out[threadIdx.x] = threadIdx.x < n ? in[threadIdx.x] : 0; // read beyond in
}
// Sizes that fill whole pages of the race detector and sizes that do not, also in memory that was freed.
static void beyond_allocation(int *, bool wrong) {
    for (int n : {16384, 33, 16384, 7}) {
        int *in, *out;
        CHECK(cudaMalloc(&in, n * sizeof *in));
        CHECK(cudaMalloc(&out, N * sizeof *out));
        CHECK(cudaMemset(in, 0, n * sizeof *in));
        const int last = n < N ? n : N - 1;
        read_beyond<<<1, N>>>(in + n - last, out, last + wrong);
        CHECK(cudaFree(in));
        CHECK(cudaFree(out));
    }
}

__global__ void before_and_behind(int last) {
    extern __shared__ int dynamic[];
    __shared__ int small[N - 1];
    __shared__ float2 pairs[2];
    dynamic[threadIdx.x] = 0;
    if (threadIdx.x < last)
        small[threadIdx.x] = 1; // write beyond small
    if (last == N && threadIdx.x == 5) {
        ((volatile int *)dynamic)[N] = 2;        // write beyond dynamic
        ((volatile float2 *)&pairs[1].y)->x = 0; // in bounds
        *(volatile long long *)&pairs[1].y = 3;  // write across the end
        atomicAdd((int *)&small[-1], 1);         // atomic before small
    }
}
static void beyond_shared(int *, bool wrong) {
    before_and_behind<<<1, N, N * sizeof(int)>>>(wrong ? N : N - 1);
}

// ---- within a block ----

__global__ void tile(int *data, bool wrong) {
    extern __shared__ int loaded[];
    loaded[threadIdx.x] = data[threadIdx.x]; // tile
    if (!wrong)
        __syncthreads();
    data[N + threadIdx.x] = loaded[N - 1 - threadIdx.x]; // tile
}

// Two threads change a word: a barrier would not help.
__global__ void bins_of_block(int *data, bool wrong) {
    __shared__ int bins[8];
    if (threadIdx.x < 8)
        bins[threadIdx.x] = 0;
    __syncthreads();
    if (wrong)
        bins[data[threadIdx.x] & 7]++; // bins_of_block
    else
        atomicAdd(&bins[data[threadIdx.x] & 7], 1);
}

// Each word is changed by one thread, and read by another one in the same line.
__global__ void tree(int *data, bool wrong) {
    __shared__ int sum[N];
    sum[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    for (int half = N / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            sum[threadIdx.x] += sum[threadIdx.x + half]; // tree
        if (!wrong)
            __syncthreads();
    }
}

// Reductions of 2010 relied on warps that run in step.
__global__ void warp_volatile(int *data, bool wrong) {
    __shared__ volatile int sum[64];
    const int i = threadIdx.x % 32;
    if (threadIdx.x >= 32)
        return;
    sum[i] = data[i];
    sum[i + 32] = data[i + 32];
    for (int s = 32; s > 0; s /= 2) {
        const int other = sum[i + s]; // warp_volatile
        if (!wrong)
            __syncwarp();
        sum[i] = sum[i] + other; // warp_volatile
        if (!wrong)
            __syncwarp();
    }
    if (i == 0)
        data[0] = sum[0];
}

// Copies that begin while other threads still read the last ones
__global__ void async_copy(int *data, bool wrong) {
    __shared__ int cells[N];
    for (int i = 0; i < 2; ++i) {
        __pipeline_memcpy_async(&cells[threadIdx.x], &data[threadIdx.x], sizeof(int)); // async_copy
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        data[N + threadIdx.x] = cells[N - 1 - threadIdx.x]; // async_copy
        if (!wrong)
            __syncthreads();
    }
}

// Each thread begins a copy, which the barrier object counts.
__global__ void barrier_copy(int *data, bool wrong) {
    __shared__ int cells[N];
    __shared__ cuda::barrier<cuda::thread_scope_block> copied;
    if (threadIdx.x == 0)
        init(&copied, N);
    __syncthreads();
    cuda::memcpy_async(&cells[threadIdx.x], &data[threadIdx.x], cuda::aligned_size_t<4>(4), copied);
    copied.arrive_and_wait();
    data[N + threadIdx.x] = cells[N - 1 - threadIdx.x]; // barrier_copy
    if (!wrong)
        __syncthreads();
    cells[threadIdx.x] = 1; // barrier_copy
}

// A shuffle exchanges registers, it does not order memory.
__global__ void shuffle_order(int *data, bool wrong) {
    __shared__ int values[N];
    values[threadIdx.x] = data[threadIdx.x]; // shuffle_order
    int other = __shfl_xor_sync(~0u, (int)threadIdx.x, 1);
    if (!wrong)
        __syncwarp();
    data[threadIdx.x] = values[other]; // shuffle_order
}

// Warp matrix functions are no memory barriers either: a thread writes an element of a tile in shared memory
// that load_matrix_sync of another warp reads, or reads an element that store_matrix_sync has written.
__global__ void matrix_load(int *data, bool wrong) {
    using namespace nvcuda::wmma;
    __shared__ float values[N];
    fragment<accumulator, 16, 16, 16, float> sum;
    values[N - 1 - threadIdx.x] = 1; // matrix_load
    if (!wrong)
        __syncthreads();
    load_matrix_sync(sum, values, 16, mem_row_major); // matrix_load
    data[threadIdx.x] = (int)sum.x[0];
}

__global__ void matrix_store(int *data, bool wrong) {
    using namespace nvcuda::wmma;
    __shared__ float values[N / 32][256];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    fragment<matrix_a, 16, 16, 16, half, row_major> a;
    fragment<matrix_b, 16, 16, 16, half, row_major> b;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(a, 1.0f);
    fill_fragment(b, 1.0f);
    fill_fragment(sum, 0.0f);
    mma_sync(sum, a, b, sum);
    store_matrix_sync(values[warp], sum, 16, mem_col_major); // matrix_store
    if (!wrong)
        __syncwarp();
    data[threadIdx.x] = (int)values[warp][lane * 8]; // matrix_store
}

__global__ void sync_of_other_lanes(int *data, bool wrong) {
    __shared__ int values[32];
    const int lane = threadIdx.x % 32;
    if (threadIdx.x >= 32)
        return;
    values[lane] = data[lane]; // sync_of_other_lanes
    if (lane < 16)
        __syncwarp(0xffff);
    else
        __syncwarp(0xffff0000);
    data[lane] = values[wrong ? 31 - lane : lane ^ 1]; // sync_of_other_lanes
}

__global__ void bytes(int *memory, bool wrong) {
    char *const data = (char *)memory;
    data[threadIdx.x] = 1;                                     // bytes
    data[4 * N + (wrong ? threadIdx.x / 2 : threadIdx.x)] = 2; // bytes
    ((int2 *)(data + 8 * N))[threadIdx.x] = make_int2(wrong, wrong);
}

// ---- between blocks ----

__global__ void increment(int *data, bool wrong) {
    if (wrong)
        data[0]++; // increment
    else
        atomicAdd(&data[0], 1);
}

// An atomic does not protect from a plain write.
__global__ void mixed(int *data, bool wrong) {
    if (wrong && threadIdx.x == 5 && blockIdx.x == 1)
        data[0] = 0;        // mixed
    atomicAdd(&data[0], 1); // mixed
}

// The lock of the book has no fence: the next holder may not see what the last one wrote.
__global__ void lock_fence(int *data, bool wrong) {
    if (threadIdx.x == 0) {
        while (atomicCAS(&data[N], 0, 1) != 0)
            ;
        __threadfence();
        data[0] += 1; // lock_fence
        if (!wrong)
            __threadfence();
        atomicExch(&data[N], 0);
    }
}

// The last block adds what all blocks have written.
__global__ void last_block(int *data, bool wrong) {
    __shared__ bool last;
    data[threadIdx.x + blockIdx.x * N] = 1; // last_block
    if (!wrong)
        __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicAdd(&data[8 * N], 1) == (int)gridDim.x - 1;
    __syncthreads();
    if (last) {
        int sum = 0;
        for (unsigned b = 0; b < gridDim.x; ++b)
            sum += data[b * N + threadIdx.x]; // last_block
        data[9 * N + threadIdx.x] = sum;
    }
}

// A flag in a volatile variable with memory fences, without atomics
__global__ void flag(int *data, bool wrong) {
    volatile int *ready = data + N;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        data[0] = 42; // flag
        if (!wrong)
            __threadfence();
        *ready = 1;
    } else if (blockIdx.x == 1 && threadIdx.x == 0) {
        while (*ready == 0)
            __nanosleep(10);
        __threadfence();
        data[1] = data[0]; // flag
    }
}

__device__ int counter;
__global__ void variable(int *, bool wrong) {
    if (threadIdx.x == 0) {
        if (wrong)
            counter = counter + 1; // variable
        else
            atomicAdd(&counter, 1);
    }
}

// ---- streams ----

__global__ void fill(int *to, int value) {
    to[threadIdx.x] = value + threadIdx.x; // missing_event, host_reads_kernel, allocated_elsewhere
}
__global__ void copy(int *to, const int *from) {
    to[threadIdx.x] = from[threadIdx.x]; // missing_event, freed_elsewhere
}

// Streams that wait for each other in turn
static void missing_event(int *data, bool wrong) {
    cudaStream_t s[2];
    cudaEvent_t e[2];
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 2; ++i) {
        CHECK(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
        CHECK(cudaEventCreate(&e[i]));
    }
    for (int round = 0; round < 3; ++round) {
        fill<<<1, N, 0, s[0]>>>(data, round);
        CHECK(cudaEventRecord(e[0], s[0]));
        CHECK(cudaStreamWaitEvent(s[1], e[0], 0));
        copy<<<1, N, 0, s[1]>>>(data + N, data);
        CHECK(cudaEventRecord(e[1], s[1]));
        if (!wrong)
            CHECK(cudaStreamWaitEvent(s[0], e[1], 0));
    }
}

// Launches that may begin before the kernel before has ended. One thread of a block may wait for all.
enum Waits { nobody, one, all };
__global__ void dependent_fill(int *to, int value, bool triggers, Waits who) {
    if (triggers)
        cudaTriggerProgrammaticLaunchCompletion();
    if (who == all || (who == one && threadIdx.x == 0))
        cudaGridDependencySynchronize();
    if (who == one)
        __syncthreads();
    to[threadIdx.x] = value; // dependent, dependent_lane, dependent_chain
}
__global__ void dependent_copy(int *to, const int *from, bool wrong, Waits who) {
    int early = wrong ? from[threadIdx.x] : 0; // dependent, dependent_chain
    cudaTriggerProgrammaticLaunchCompletion();
    if (who == all || (who == one && threadIdx.x % 32 == 5))
        cudaGridDependencySynchronize();
    if (who == one && !wrong)
        __syncwarp();
    to[threadIdx.x] = wrong ? early : from[threadIdx.x];
}
template <class... P, class... A>
static void launch_dependent(bool dependent, void (*kernel)(P...), A... arguments) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = dependent;
    const cudaLaunchConfig_t config = {1, N, 0, 0, &attribute, 1};
    CHECK(cudaLaunchKernelEx(&config, kernel, P(arguments)...));
}
// What is launched as usual, or after a kernel that has not triggered, after a copy or after a wait of the
// host, needs no wait.
static void dependent(int *data, bool wrong) {
    int *const copy = data + N;
    launch_dependent(true, dependent_fill, data, 1, true, all);
    launch_dependent(false, dependent_copy, copy, data, true, nobody);
    CHECK(cudaMemcpyAsync(copy + N, copy, sizeof *copy, cudaMemcpyDeviceToDevice));
    launch_dependent(true, dependent_copy, copy, copy + N, true, nobody);
    CHECK(cudaDeviceSynchronize());
    launch_dependent(true, dependent_fill, copy, 1, false, nobody);
    launch_dependent(true, dependent_fill, copy, 2, true, one);
    launch_dependent(true, dependent_copy, copy + N, copy, wrong, all);
}
static void dependent_lane(int *data, bool wrong) {
    launch_dependent(true, dependent_fill, data, 1, true, one);
    launch_dependent(true, dependent_fill, data, 2, true, wrong ? nobody : one); // dependent_lane
    launch_dependent(true, dependent_copy, data + N, data, false, one);
}
// The kernel between the two waits, but lets the next one begin before it does.
static void dependent_chain(int *data, bool wrong) {
    launch_dependent(true, dependent_fill, data, 1, true, all);
    launch_dependent(true, dependent_fill, data + N, 2, true, all);
    launch_dependent(true, dependent_copy, data + 2 * N, data, wrong, all);
}

// A stream uses memory that another one allocates.
static void allocated_elsewhere(int *, bool wrong) {
    cudaStream_t s[2];
    cudaEvent_t e;
    int *memory;
    CHECK(cudaEventCreate(&e));
    for (int i = 0; i < 2; ++i)
        CHECK(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
    for (int i = 0; i < 2; ++i) {
        CHECK(cudaMallocAsync(&memory, N * sizeof *memory, s[i]));
        CHECK(cudaEventRecord(e, s[i]));
        if (!wrong)
            CHECK(cudaStreamWaitEvent(s[1 - i], e, 0));
        fill<<<1, N, 0, s[1 - i]>>>(memory, 3); // allocated_elsewhere
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaFreeAsync(memory, s[1 - i]));
    }
}

// A stream frees memory that another one reads.
static void freed_elsewhere(int *data, bool wrong) {
    cudaStream_t s[2];
    cudaEvent_t e[2];
    int *memory;
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 2; ++i) {
        CHECK(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
        CHECK(cudaEventCreate(&e[i]));
    }
    CHECK(cudaMallocAsync(&memory, N * sizeof *memory, s[0]));
    fill<<<1, N, 0, s[0]>>>(memory, 3);
    CHECK(cudaEventRecord(e[0], s[0]));
    CHECK(cudaStreamWaitEvent(s[1], e[0], 0));
    copy<<<1, N, 0, s[1]>>>(data, memory);
    CHECK(cudaEventRecord(e[1], s[1]));
    if (!wrong)
        CHECK(cudaStreamWaitEvent(s[0], e[1], 0));
    CHECK(cudaFreeAsync(memory, s[0]));
    CHECK(cudaStreamSynchronize(s[1])); // the copy comes first
    CHECK(cudaStreamSynchronize(s[0]));
}

static void host_reads(int *data, bool wrong) {
    int *host;
    CHECK(cudaMallocHost(&host, N * sizeof *host));
    CHECK(cudaMemset(data, 0, N * sizeof *data));
    CHECK(cudaMemcpyAsync(host, data, N * sizeof *host, cudaMemcpyDeviceToHost)); // host_reads
    if (!wrong)
        CHECK(cudaStreamSynchronize(0));
    printf("%d\n", host[3]); // host_reads
}

static void host_writes(int *data, bool wrong) {
    int *host;
    CHECK(cudaMallocHost(&host, N * sizeof *host));
    memset(host, 0, N * sizeof *host);
    CHECK(cudaMemcpyAsync(data, host, N * sizeof *host, cudaMemcpyHostToDevice)); // host_writes
    if (!wrong)
        CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < N; ++i)
        host[i] = i; // host_writes
}

static void host_reads_kernel(int *, bool wrong) {
    int *managed;
    CHECK(cudaMallocManaged(&managed, N * sizeof *managed));
    fill<<<1, N>>>(managed, 3);
    if (!wrong)
        CHECK(cudaDeviceSynchronize());
    printf("%d\n", managed[0]); // host_reads_kernel
}

// The host waits for each of three streams, one of which is on another device. By then the work may have run
// already, while the host waited for another stream.
static void each_stream(int *data, bool wrong) {
    int *host;
    cudaStream_t s[3];
    CHECK(cudaHostAlloc(&host, 3 * sizeof *host, cudaHostAllocPortable));
    for (int i = 0; i < 3; ++i) {
        CHECK(cudaSetDevice(i == 2));
        CHECK(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
    }
    CHECK(cudaSetDevice(0));
    CHECK(cudaDeviceSynchronize());
    for (int round = 0; round < 20; ++round) {
        for (int i = 0; i < 3; ++i)
            CHECK(cudaMemcpyAsync(host + i, data, sizeof *host, cudaMemcpyDeviceToHost, s[i])); // each_stream
        CHECK(cudaStreamSynchronize(s[0]));
        if (!wrong)
            CHECK(cudaStreamSynchronize(s[1]));
        CHECK(cudaSetDevice(1));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaSetDevice(0));
        printf("%d %d %d\n", host[0], host[1], host[2]); // each_stream
        CHECK(cudaDeviceSynchronize());
    }
}

__global__ void touch(int *pages) {
    pages[threadIdx.x << 14] = 1;
}
// Fills of whole pages of the race detector, and copies, which have no shadow memory until something else
// accesses a part. That of freed memory is released. The fills race with each other, or a kernel races with
// the second one.
template <bool FILLS> static void fills_of_pages(int *large, bool wrong) {
    cudaStream_t s[2];
    for (int i = 0; i < 16; ++i) {
        CHECK(cudaMalloc(&large, (1 << 24) + (i << 16)));
        touch<<<1, N>>>(large);
        CHECK(cudaFree(large));
    }
    CHECK(cudaMalloc(&large, 1 << 27));
    for (int i = 0; i < 2; ++i) {
        CHECK(cudaStreamCreate(&s[i]));
        CHECK(cudaMemsetAsync(large, i, 1 << 27, s[i])); // two_fills, fill_and_kernel
        CHECK(cudaMemcpyAsync(large + (1 << 24), large, 1 << 26, cudaMemcpyDeviceToDevice, s[i]));
        if (!wrong || i != FILLS)
            CHECK(cudaDeviceSynchronize());
    }
    fill<<<1, N, 0, s[0]>>>(large + (1 << 15), 3); // fill_and_kernel
}

static const auto two_fills = fills_of_pages<false>, fill_and_kernel = fills_of_pages<true>;

// The work of a library's function is in the stream. What it reads and writes are no accesses of the host.
static void library(int *data, bool wrong) {
    float *const dense = (float *)(data + N), *const value = (float *)(data + 2 * N), *host;
    cusparseHandle_t handle;
    cusparseSpVecDescr_t x;
    cusparseDnVecDescr_t y;
    CHECK(cudaMallocHost(&host, sizeof *host));
    CHECK(cusparseCreate(&handle));
    CHECK(
        cusparseCreateSpVec(&x, N, 1, data, value, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
    CHECK(cusparseCreateDnVec(&y, N, dense, CUDA_R_32F));
    for (int round = 0; round < 2; round++) {
        CHECK(cusparseScatter(handle, x, y));
        CHECK(cudaMemcpyAsync(host, dense, sizeof *host, cudaMemcpyDeviceToHost)); // library
    }
    if (!wrong)
        CHECK(cudaDeviceSynchronize());
    printf("%g\n", *host); // library
}

#define KERNEL(name, blocks)                                                                                 \
    {#name, [](int *data, bool wrong) { name<<<blocks, N, N * sizeof(int)>>>(data, wrong); }},
#define HOST(name) {#name, name},
// clang-format off
static const struct {
    const char *name;
    void (*run)(int *, bool);
} cases[] = {
    KERNEL(tile, 1) KERNEL(warp_volatile, 1) KERNEL(async_copy, 1) KERNEL(barrier_copy, 1)
    KERNEL(shuffle_order, 1) KERNEL(matrix_load, 1) KERNEL(matrix_store, 1)
    KERNEL(sync_of_other_lanes, 1) KERNEL(bytes, 1) KERNEL(bins_of_block, 1) KERNEL(tree, 1)
    KERNEL(increment, 4) KERNEL(mixed, 4) KERNEL(lock_fence, 4) KERNEL(last_block, 4) KERNEL(flag, 2)
    KERNEL(variable, 4) HOST(uninitialized) HOST(unset_bins) HOST(beyond_allocation) HOST(beyond_shared)
    HOST(missing_event) HOST(allocated_elsewhere) HOST(freed_elsewhere) HOST(host_reads) HOST(host_writes) HOST(host_reads_kernel)
    HOST(each_stream) HOST(library) KERNEL(others_local, 1) KERNEL(written_index, 1)
    HOST(two_fills) HOST(fill_and_kernel) HOST(dependent) HOST(dependent_lane) HOST(dependent_chain)
};
// clang-format on

int main(int, char **argv) {
    int *data;
    const bool wrong = *argv[2] == '1';
    CHECK(cudaMalloc(&data, 10 * N * sizeof *data));
    CHECK(cudaMemset(data, 0, 10 * N * sizeof *data));
    for (const auto &test : cases)
        if (strcmp(argv[1], test.name) == 0) {
            test.run(data, wrong);
            CHECK(cudaDeviceSynchronize());
            return 0;
        }
    return 3;
}
