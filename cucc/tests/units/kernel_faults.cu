// SPDX-License-Identifier: MIT
// cucc only: errors in kernels that the CPU back end must detect. The program ends with a message that names
// the line. A version of each kernel without the error runs and prints nothing.
#include <cassert>
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda/barrier>
#include <cuda_pipeline.h>
#include <mma.h>
#include "device.h"

static const char *const as_cuda = "CUDA_CPU_STRICT=0", *const strict = "CUDA_CPU_STRICT=1";

static void faulty(std::initializer_list<std::string> words, void (*launch)(),
                   const char *barriers = as_cuda) {
    ends_with(under({barriers}, launch), words);
}

static void silent(void (*launch)(), const char *barriers = as_cuda) {
    ends_well(under({barriers}, launch));
}

// A fault in the strict reading of barriers only: CUDA counts the threads that have returned as arrived.
static void faulty_if_strict(std::initializer_list<std::string> words, void (*launch)()) {
    faulty(words, launch, strict);
    silent(launch);
}

static std::string line(int number) {
    return "kernel_faults.cu:" + std::to_string(number);
}

__global__ void in_a_branch(bool all) {
    if (all || threadIdx.x < 10)
        __syncthreads();
}
static const int in_a_branch_line = __LINE__ - 2;

TEST(barrier_in_a_branch_and_outside_a_kernel) {
    faulty({"__syncthreads()", "outside a kernel"}, [] { __syncthreads(); });
    faulty_if_strict({"divergent barrier", "in_a_branch", "10 of 32 threads", line(in_a_branch_line),
                      "(0,0,0) to (9,0,0)", "(10,0,0) to (31,0,0)", "launched at kernel_faults.cu"},
                     [] { in_a_branch<<<dim3(2, 1), 32>>>(false); });
    silent([] { in_a_branch<<<2, 32>>>(true); }, strict);
}

__global__ void early_return(unsigned leave) {
    __syncthreads();
    if (threadIdx.x == leave)
        return;
    __syncthreads();
}
static const int early_return_line = __LINE__ - 5;

TEST(return_before_a_barrier) {
    faulty_if_strict({"divergent barrier", "63 of 64", line(early_return_line + 3), line(early_return_line),
                      "returned after passing", "(40,0,0)"},
                     [] { early_return<<<1, 64>>>(40); });
    silent([] { early_return<<<1, 64>>>(64); }, strict);
}

// A barrier in each of two branches, which whole warps take
__global__ void barrier_in_each_branch(unsigned split) {
    if (threadIdx.x < split)
        __syncthreads();
    else if (threadIdx.x < 90)
        __syncthreads();
    else
        __syncthreads();
}
static const int each_branch_line = __LINE__ - 6;

TEST(a_barrier_in_each_branch) {
    faulty_if_strict(
        {"divergent barrier: 32 of 90 threads", line(each_branch_line), line(each_branch_line + 2)},
        [] { barrier_in_each_branch<<<1, 90>>>(32); });
    for (const char *barriers : {as_cuda, strict}) // lanes of a warp in two branches
        faulty(
            {"divergent barrier", line(each_branch_line), line(each_branch_line + 2)},
            [] { barrier_in_each_branch<<<1, 64>>>(33); }, barriers);
}

__global__ void lane_left_out(unsigned mask) {
    __syncwarp(mask);
}

__global__ void different_operations(bool mixed) {
    if (mixed && threadIdx.x % 2)
        __shfl_sync(~0u, 1, 0);
    else
        __ballot_sync(~0u, 1);
}

__global__ void lane_at_a_barrier(bool mixed) {
    if (mixed && threadIdx.x == 3)
        __syncthreads();
    __syncwarp();
    if (!mixed || threadIdx.x != 3)
        __syncthreads();
}

TEST(divergent_warp_operations) {
    faulty({"lane 16", "0x0000ffff", "__syncwarp"}, [] { lane_left_out<<<1, 32>>>(0xffff); });
    faulty({"divergent warp operation", "__shfl_sync", "__ballot_sync"},
           [] { different_operations<<<1, 32>>>(true); });
    faulty({"divergent", "kernel_faults.cu:"}, [] { lane_at_a_barrier<<<1, 32>>>(true); });
    silent([] {
        lane_left_out<<<1, 32>>>(0xffffffff);
        different_operations<<<1, 32>>>(false);
        lane_at_a_barrier<<<1, 32>>>(false);
    });
}

__global__ void leave_a_tile() {
    const auto tile = cooperative_groups::tiled_partition<64>(cooperative_groups::this_thread_block());
    if (threadIdx.x != 70)
        tile.sync();
}

TEST(divergent_tile) {
    faulty({"divergent barrier of a tile: 63 of 128 threads wait at kernel_faults.cu:"},
           [] { leave_a_tile<<<1, 128>>>(); });
}

using Sum = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float>;

__device__ float matrices[512];

__global__ void load_matrix() {
    Sum sum;
    load_matrix_sync(sum, matrices, 16, nvcuda::wmma::mem_row_major);
}
static const int load_matrix_line = __LINE__ - 2;

__global__ void store_matrix_by(unsigned lanes) {
    Sum sum;
    fill_fragment(sum, 1.0f);
    if (threadIdx.x < lanes)
        store_matrix_sync(matrices, sum, 16, nvcuda::wmma::mem_row_major);
    else
        store_matrix_sync(matrices + 256, sum, 16, nvcuda::wmma::mem_row_major);
}
static const int store_matrix_line = __LINE__ - 4;

TEST(lanes_that_miss_a_matrix_function) {
    faulty({"nvcuda::wmma at " + line(load_matrix_line), "all 32 lanes", "0xffff0000", "load_matrix"},
           [] { load_matrix<<<1, 48>>>(); });
    faulty({"divergent warp operation", line(store_matrix_line), line(store_matrix_line + 2), "nvcuda::wmma"},
           [] { store_matrix_by<<<1, 32>>>(16); });
    silent([] {
        store_matrix_by<<<1, 64>>>(32);
        load_matrix<<<1, 64>>>();
    });
}

template <int BYTES> __global__ void too_much() {
    __shared__ char bytes[BYTES];
    bytes[0] = 1;
}

TEST(too_much_declared_shared_memory) {
    faulty({"bytes", "49153", "49152", "too_much"}, [] { too_much<48 * 1024 + 1><<<1, 1>>>(); });
    silent([] { too_much<48 * 1024><<<1, 1>>>(); });
}

#ifndef __SANITIZE_ADDRESS__ // which reports these itself
__global__ void wild(int *p) {
    *p = 1;
}

TEST(illegal_address) {
    ends_with(under({}, [] { wild<<<1, 1>>>((int *)8), exit(3); }), {"illegal address 0x8\n", "wild"}, 3);
}

// As loops and with fibers, in a called function, in a function of the C library, while other blocks wait; in
// one block or in all
enum { plainly, after_barrier, after_shuffle, in_memcpy, while_others_wait, in_printf };
__device__ __noinline__ int value_of(const int *p) {
    return *p;
}
__global__ void reads(int way, const int *p, int *sum) {
    if (way == after_barrier)
        __syncthreads();
    if (way == after_shuffle && threadIdx.x < 5)
        p = (const int *)__shfl_sync(31, (long long)p, 3);
    while (way == while_others_wait && blockIdx.x == 0 && gridDim.x > 1 && atomicAdd(sum + 1, 0) == 0)
        ;
    if (way == in_memcpy)
        memcpy(sum, p, sizeof *p);
    else if (way == in_printf)
        printf("%s", (const char *)p);
    else
        atomicAdd(sum, value_of(p));
    __syncthreads();
}

#ifndef __SANITIZE_THREAD__ // with which it ends the program
TEST(illegal_address_is_an_error_that_stays) {
    const auto fails_on = [](int device, int way, int blocks) {
        int *sum;
        OK(cudaSetDevice(device));
        OK(cudaMallocManaged(&sum, 8));
        sum[0] = sum[1] = 0;
        reads<<<blocks, 64>>>(after_barrier, sum + 1, sum); // stacks and signals work
        OK(cudaDeviceSynchronize());
        reads<<<blocks, 64>>>(way, (int *)16, sum);
        EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
        EXPECT(cudaGetLastError() == cudaErrorIllegalAddress && cudaFree(sum) == cudaErrorIllegalAddress);
    };
    for (const int way : {plainly, after_barrier, after_shuffle, in_memcpy, while_others_wait})
        for (const char *barriers : {"CUDA_CPU_BARRIERS=loops", "CUDA_CPU_BARRIERS=fibers"})
            for (const char *streams : {"CUDA_CPU_STREAMS=eager", "CUDA_CPU_STREAMS=late"})
                for (const char *workers : {"CUDA_CPU_WORKERS=1", "CUDA_CPU_WORKERS=4"})
                    ends_with(
                        under({barriers, streams, workers, "CUDA_CPU_DEVICES=3"},
                              [=] {
                                  fails_on(0, way, 1);
                                  fails_on(1, way,
                                           way == while_others_wait ? 1 + 3 * (workers[17] == '4') : 1000);
                                  fails_on(2, after_barrier, 2);
                                  exit(unit_failures ? 1 : 7); // at_exit frees nothing of these devices
                              }),
                        {"illegal address 0x10\n    in kernel reads", "was ended by an illegal address"}, 7);
    // In a library that may hold a lock it ends the program, and so does that of the host.
    faulty({"illegal address 0x10", "reads"}, [] { reads<<<1, 1>>>(in_printf, (int *)16, nullptr); });
    EXPECT(under({}, [] { wild<<<1, 1>>>(nullptr), *(volatile int *)16 = 1; }).status > 128);
}
#endif

__device__ int down(int n) {
    volatile char frame[500] = {};
    return n == 0 ? frame[0] : down(n - 1) + frame[n % 500];
}
template <bool WAIT> __global__ void recursion(int depth) {
    if (WAIT)
        __syncthreads();
    if (down(depth))
        printf("never\n");
}
// An array that fits no stack: the first one not that of a host thread, the second one not that of a fiber
template <int BYTES> __global__ void large_array() {
    volatile char array[BYTES];
    for (int i = 0; i < BYTES; i += 4096)
        array[i] = 1;
    __syncthreads();
    if (array[4096] != 1)
        printf("never\n");
}

TEST(stack_overflow) {
    faulty({"stack overflow", "recursion"}, [] { recursion<true><<<1, 32>>>(1 << 20); });
    faulty({"stack overflow", "recursion"}, [] { recursion<false><<<1, 1>>>(1 << 20); });
    faulty({"stack overflow", "large_array"}, [] { large_array<32 << 20><<<1, 1>>>(); });
    faulty({"stack overflow", "large_array"}, [] { large_array<4 << 20><<<1, 64>>>(); });
    silent([] {
        recursion<true><<<1, 32>>>(100);
        recursion<false><<<1, 1>>>(100);
        large_array<8192><<<1, 64>>>();
    });
}
#endif

__global__ void divides(int zero) {
    matrices[0] = (float)(7 / zero);
}
__global__ void throws() {
    throw 1;
}

__global__ void traps(int bad) {
    __syncthreads();
    if ((int)threadIdx.x == bad)
        __trap();
    __syncthreads();
}
static const int trap_line = __LINE__ - 3;

TEST(division_by_zero_exceptions_and_traps) {
    faulty({"cuda on the CPU: __trap() at " + line(trap_line) + "\n"}, [] { traps<<<10, 64>>>(40); });
    faulty({"integer division by zero", "divides"}, [] { divides<<<1, 1>>>(0); });
    faulty({"an exception, which device code cannot throw", "throws"}, [] { throws<<<1, 1>>>(); });
}

template <class T> __global__ void asserts(T bad) {
    __shared__ int sum;
    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    atomicAdd(&sum, 1);
    __syncthreads();
    assert((T)(threadIdx.x + 8 * blockIdx.x) != bad && sum == 8);
    __syncthreads();
}
static const int assert_line = __LINE__ - 3;
__device__ __noinline__ void check_index(int i) {
    assert(i != 5);
}
__global__ void asserts_without_barrier() {
    check_index(threadIdx.x);
}

TEST(assertion) {
    faulty(
        {line(assert_line) + ": ", "asserts", ": block: [2,0,0], thread: [3,0,0] Assertion `", "` failed."},
        [] { asserts<<<4, 8>>>(19); });
    faulty({"check_index(int): block: [0,0,0], thread: [5,0,0]"},
           [] { asserts_without_barrier<<<1, 8>>>(); });
    silent([] { asserts<<<4, 8>>>(-1); });
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
    faulty({"was ended by an assertion", "went on"}, [] { // the error is sticky, and the program goes on
        asserts<<<1, 8>>>(3);
        const bool sticky = cudaDeviceSynchronize() == cudaErrorAssert && cudaFree(NULL) == cudaErrorAssert;
        cudaSetDevice(1);
        asserts<<<100, 8>>>(-1); // the stacks work again
        if (sticky && cudaDeviceSynchronize() == cudaSuccess)
            fprintf(stderr, "went on\n");
        exit(EXIT_FAILURE);
    });
#endif
}

__global__ void inner() {}
__global__ void outer(bool cooperative) {
    if (cooperative)
        cudaLaunchCooperativeKernel(inner, 1, 1, nullptr, 0, nullptr);
    else
        inner<<<1, 1>>>();
}

TEST(cooperative_launch_inside_a_kernel) {
    faulty({"inner", "inside a kernel as a cooperative launch", "outer"}, [] { outer<<<1, 1>>>(true); });
    silent([] { outer<<<1, 1>>>(false); });
}

__global__ void leave_early(bool leave) {
    if (leave && blockIdx.x == 0)
        return;
    cooperative_groups::this_grid().sync();
}
static const int grid_barrier_line = __LINE__ - 2;

static void launch_leave_early(bool leave) {
    void *arguments[] = {&leave};
    cudaLaunchCooperativeKernel(leave_early, 4, 32, arguments);
}

TEST(block_that_misses_a_grid_barrier) {
    faulty({"divergent grid barrier: 3 of 4 blocks", line(grid_barrier_line), "leave_early"},
           [] { launch_leave_early(true); });
    silent([] { launch_leave_early(false); });
    faulty({"cooperative launch", line(grid_barrier_line)}, [] { leave_early<<<2, 32>>>(false); });
}

// A missing barrier is not reported as an error, but the result is wrong under some order of the
// threads.
__global__ void missing_barrier(int *out, bool wait) {
    __shared__ int cells[64];
    cells[threadIdx.x] = (int)threadIdx.x;
    if (wait)
        __syncthreads();
    out[threadIdx.x] = cells[63 - threadIdx.x];
}

// The same after a __syncwarp(): without the second one, half of the lanes overwrite values before
// the other half reads them.
__global__ void missing_syncwarp(int *out, bool wait) {
    __shared__ int cells[64];
    const unsigned t = threadIdx.x, opposite = t ^ 31;
    cells[t] = 63 - (int)opposite;
    __syncwarp();
    out[t] = cells[opposite];
    if (wait)
        __syncwarp();
    if (t & 16)
        cells[t] = -1;
}

static bool reversed(const char *schedule, void (*kernel)(int *, bool), bool wait) {
    const unit_result result = under({schedule}, [=] {
        EXPECT(WRITTEN(int, 64, kernel<<<1, 64>>>(out, wait)) == made(64, [](int i) { return 63 - i; }));
    });
    return result.status == 0;
}

TEST(missing_barrier_shows) {
    for (const char *schedule : {"CUDA_CPU_SCHEDULE=forward", "CUDA_CPU_SCHEDULE=reverse",
                                 "CUDA_CPU_SCHEDULE=random:1", "CUDA_CPU_SCHEDULE=random:2"}) {
        EXPECT(!reversed(schedule, missing_barrier, false));
        EXPECT(reversed(schedule, missing_barrier, true));
        EXPECT(reversed(schedule, missing_syncwarp, true));
        if (!strstr(schedule, "forward"))
            EXPECT(!reversed(schedule, missing_syncwarp, false));
    }
}

__global__ void changes(const int *in, int *out) {
    *(int *)in = *out = 1;
}

TEST(const_memory_stays_the_same) {
    const char *const on = "CUDA_CPU_CONST=1";
    ends_with(
        under({on}, [] { changes<<<1, 1>>>(managed<int>(), managed<int>()); }),
        {"kernel changes", "has written to memory that parameter 1 points to as const: byte 0 of 4 bytes"});
    ends_well(under({on}, [] {
        int *const both = managed<int>();
        changes<<<1, 1>>>(both, both);
    }));
}

// Waits for its first copy only.
__global__ void early_reader(const int *in, int *out) {
    __shared__ int cells[2];
    for (int i = 0; i < 2; i++) {
        __pipeline_memcpy_async(&cells[i], &in[i], sizeof(int));
        __pipeline_commit();
    }
    __pipeline_wait_prior(1);
    out[0] = cells[0];
    out[1] = cells[1];
}

TEST(missing_wait_for_a_copy_shows) {
    const Device<int> in(std::vector<int>{1, 2});
    EXPECT(WRITTEN(int, 2, early_reader<<<1, 1>>>(in.data, out)) == (std::vector<int>{1, -1}));
}

TEST(grids_that_cannot_be) {
    ends_with(
        in_child([] {
            inner<<<0, 1>>>();
            inner<<<1u << 31, 1>>>();
        }),
        {"launch of inner at kernel_faults.cu:", "gridDim.x is 0, must be from 1 to 2147483647",
         "gridDim.x is 2147483648, must be",
         "at exit: nothing has asked for the error of a launch (cudaGetLastError): launch of inner at"});
}

TEST(settings_that_make_no_sense) {
    for (const char *setting : {"CUDA_CPU_WORKERS=0", "CUDA_CPU_WORKERS=two", "CUDA_CPU_SCHEDULE=backward",
                                "CUDA_CPU_SCHEDULE=random:", "CUDA_CPU_SCHEDULE=random:1x"})
        ends_with(under({setting}, [] { inner<<<1, 1>>>(); }), {"must be"});
}

// A warp of 13 lanes. The value of a lane that does not exist is all ones, here and not on a GPU.
__global__ void partial_warp(int *good) {
    const unsigned t = threadIdx.x, lanes = t < 32 ? 32 : 13;
    const float below = __shfl_down_sync(~0u, (float)t, 8);
    int same;
    good[t] = __popc(__ballot_sync(~0u, 1)) == (int)lanes && __all_sync(~0u, t < 45) &&
              !__any_sync(~0u, t > 44) && __reduce_add_sync(~0u, 1) == (int)lanes &&
              __reduce_and_sync(~0u, t | 64) >= 64 && __popc(__match_any_sync(~0u, t / 32)) == (int)lanes &&
              __match_all_sync(~0u, 7, &same) && same &&
              (t < 32 || t % 32 + 8 < lanes ? below == (float)(t % 32 < 24 ? t + 8 : t) : below != below);
}

TEST(lanes_that_do_not_exist) {
    EXPECT(good(partial_warp, 45));
}

// Copies `bytes` bytes by a bulk copy or another asynchronous one, and reads them after the wait, or after
// another barrier.
template <bool bulk> __global__ void bulk_copy(const int *in, int *out, int bytes, bool wait) {
    typedef cuda::barrier<cuda::thread_scope_block> Barrier;
    __shared__ alignas(16) int to[32];
    __shared__ Barrier bar;
    to[threadIdx.x] = -1;
    if (threadIdx.x == 0)
        init(&bar, blockDim.x);
    __syncthreads();
    if (threadIdx.x == 0 && bulk) {
        cuda::device::memcpy_async_tx(to, in, cuda::aligned_size_t<16>(bytes), bar);
        cuda::device::barrier_expect_tx(bar, bytes);
    } else if (threadIdx.x == 0) {
        cuda::memcpy_async(to, in, cuda::aligned_size_t<16>(bytes), bar);
    }
    Barrier::arrival_token token = bar.arrive();
    if (wait)
        bar.wait(std::move(token));
    else
        __syncthreads();
    out[threadIdx.x] = to[threadIdx.x];
    bar.arrive_and_wait(); // the copy must not end after the kernel
}

// Copies the box at (x, y) of a tensor to shared memory, or back.
__global__ void box_copy(const __grid_constant__ CUtensorMap map, int x, int y, bool back) {
    typedef cuda::barrier<cuda::thread_scope_block> Barrier;
    __shared__ alignas(128) int tile[8 * 4];
    __shared__ Barrier bar;
    init(&bar, 1);
    if (back) {
        cuda::device::experimental::cp_async_bulk_tensor_2d_shared_to_global(&map, x, y, tile);
        return;
    }
    cuda::device::experimental::cp_async_bulk_tensor_2d_global_to_shared(tile, &map, x, y, bar);
    bar.wait(cuda::device::barrier_arrive_tx(bar, 1, sizeof tile));
}

static void copy_a_box(int x, int y, bool back) {
    CUtensorMap map;
    const cuuint64_t size[] = {16, 16}, stride[] = {16 * sizeof(int)};
    const cuuint32_t box[] = {4, 8}, steps[] = {1, 1};
    int *data = STORED(int *, cudaMalloc(&it, 16 * 16 * sizeof(int)));
    EXPECT(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, data, size, stride, box, steps,
                                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                  CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
    box_copy<<<1, 1>>>(map, x, y, back);
    OK(cudaDeviceSynchronize());
}

TEST(boxes) {
    faulty({"bulk copy of a box from -1 on", "multiple of 16", "box_copy"}, [] { copy_a_box(-1, 0, false); });
    faulty({"bulk copy of a box from 1 on", "multiple of 16"}, [] { copy_a_box(1, 9, false); });
    faulty({"bulk copy of a box to global memory", "negative"}, [] { copy_a_box(0, -1, true); });
    copy_a_box(5, 3, true);
    copy_a_box(12, 9, true);
}

TEST(bulk_copies) {
    faulty({"bulk copy of 100 bytes", "multiple of 16", "bulk_copy"},
           [] { bulk_copy<true><<<1, 32>>>(STORED(int *, cudaMalloc(&it, 128)), nullptr, 100, true); });
    const auto copied = [](int bytes, bool wait, bool bulk = true) {
        const Device<int> in(made(32, [](int i) { return i; }));
        const auto kernel = bulk ? bulk_copy<true> : bulk_copy<false>;
        return WRITTEN(int, 32, kernel<<<1, 32>>>(in.data, out, bytes, wait));
    };
    EXPECT(copied(128, true)[5] == 5);
    EXPECT(copied(64, true)[15] == 15 && copied(64, true)[16] == -1);
    EXPECT(copied(128, false)[5] == -1);
    EXPECT(copied(128, true, false)[31] == 31 && copied(128, false, false)[31] == -1);
}
