// SPDX-License-Identifier: MIT
// cucc only: the watchdog ends the program with a message when a kernel is in a deadlock. A slow kernel is
// not affected.
#include <chrono>
#include <cooperative_groups.h>
#include "device.h"

static void work(double seconds) { // keeps its processor busy
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < end)
        ;
}

template <class Body> static unit_result run(Body launch, const char *setting = "CUDA_CPU_WATCHDOG=0.1") {
    return under({"CUDA_CPU_WORKERS=2", setting}, launch);
}

__device__ int mutex, turn;

__global__ void never_released() {
    while (atomicCAS(&mutex, 0, 1) != 0)
        ;
}
static const int never_released_line = __LINE__ - 3;

__global__ void wait_for(int n) {
    while (atomicAdd(&turn, 0) < n)
        ;
}

__global__ void wait_for_host(volatile int *flag) {
    while (*flag == 0)
        ;
}

__global__ void wait_for_two(volatile int *flag) {
    while (flag[0] == 0 && flag[1] == 0)
        ;
}

// Some threads wait at a barrier for others that poll.
__global__ void barrier_and_poll() {
    if (threadIdx.x % 2)
        while (atomicExch(&mutex, 0) == 0)
            ;
    __syncthreads();
}

// One thread polls, the others of the grid wait at the grid barrier.
__global__ void poll_before_the_grid_barrier() {
    if (blockIdx.x == 1 && threadIdx.x == 3)
        while (atomicAdd(&turn, 0) == 0)
            ;
    cooperative_groups::this_grid().sync();
}

TEST(deadlocks) {
    ends_with(run([] { never_released<<<3, 40>>>(); }),
              {"no progress for 0.1 s", "watchdog.cu:" + std::to_string(never_released_line),
               "kernel never_released", "launched at watchdog.cu"});
    ends_with(run([] { wait_for<<<1, 100>>>(1); }), {"no progress", "kernel wait_for"});
    ends_with(run([] { barrier_and_poll<<<2, 64>>>(); }), {"no progress", "kernel barrier_and_poll"});
    ends_with(run([] { cudaLaunchCooperativeKernel(poll_before_the_grid_barrier, 3, 8, NULL); }),
              {"no progress", "kernel poll_before_the_grid_barrier, block (1,0,0)"});
    ends_with(run([] { never_released<<<2, 2>>>(); }, "CUDA_CPU_WATCHDOG=soon"),
              {"CUDA_CPU_WATCHDOG=soon: must be a number of seconds"});
    ends_with(run([] { wait_for_host<<<3, 64>>>(managed<int>()); }),
              {"with reads through volatile", "in kernel wait_for_host"});
    ends_with(run([] { wait_for_two<<<3, 64>>>(managed<int>(2)); }),
              {"with reads through volatile", "in kernel wait_for_two"});
    // threads without a barrier wait for a block that has not started
    ends_with(run([] { wait_for<<<5, 1>>>(1); }), {"2 of 5 blocks run", "CUDA_CPU_WORKERS=5"});
}

TEST(zero_switches_it_off) {
    const auto wait = [] {
        alarm(1);
        wait_for<<<1, 1>>>(1);
    };
    EXPECT(run(wait, "CUDA_CPU_WATCHDOG=0").status == 128 + SIGALRM);
}

// Two blocks, each on its own worker, hold the lock in turn, at last for much longer than the watchdog waits.
__global__ void slow_holder() {
    for (int i = 0; i < 2; ++i) {
        while (atomicCAS(&mutex, 0, 1) != 0)
            ;
        work(atomicAdd(&turn, 1) == 0 ? 0.05 : 0.3);
        atomicExch(&mutex, 0);
        work(0.01); // gives the other block the lock
    }
}

TEST(a_slow_holder_of_a_lock) {
    ends_well(run([] { slow_holder<<<2, 1>>>(); }));
}

#ifndef __SANITIZE_THREAD__                        // accesses through volatile are data races
TEST(the_host_sets_a_flag_long_after_the_launch) { // the host does not wait for the kernel meanwhile
    ends_well(run([] {
        int *const flag = managed<int>();
        wait_for_host<<<1, 1>>>(flag);
        work(0.3);
        *flag = 1;
    }));
}

// The blocks hand on a number. Only the value that the waiting one sees shows the progress.
__global__ void hand_on() {
    for (int i = 0; i < 50000; ++i) {
        while (atomicAdd(&turn, 0) % 2 != (int)blockIdx.x)
            ;
        *(volatile int *)&turn = turn + 1;
    }
}

TEST(a_value_that_changes) {
    ends_well(run([] { hand_on<<<2, 1>>>(); }));
}
#endif

// A loop that polls with plain loads and sleeps between them is not recognised, and not ended.
__global__ void sleeper() {
    for (int i = 0; threadIdx.x == 1 && i < 2500; ++i)
        __nanosleep(1000);
    volatile int *const set = &turn;
    if (threadIdx.x == 1)
        *set = 1;
    while (*set == 0)
        __nanosleep(1000);
}

TEST(sleeping) {
    ends_well(run([] { sleeper<<<1, 2>>>(); }));
}

__global__ void for_ever() {
    for (volatile int i = 0;; i = i + 1)
        ;
}
__global__ void short_work() {
    work(0.01);
}

TEST(time_limit) {
    ends_with(run([] { for_ever<<<1, 1>>>(); }, "CUDA_CPU_TIME_LIMIT=0.3"),
              {"kernel for_ever, launched at watchdog.cu:", "no further block of it has started for 0.3 s"});
    ends_well(under({"CUDA_CPU_WORKERS=2", "CUDA_CPU_TIME_LIMIT=0.3"}, [] {
        for (int i = 0; i < 40; ++i)
            short_work<<<1, 1>>>();
        short_work<<<64, 1>>>();
    }));
}
