// SPDX-License-Identifier: MIT
// cucc only: kernels that poll. They wait for the host, for a copy in another stream, or for another kernel.
// Their launches become asynchronous.
#include <algorithm>
#include <cooperative_groups.h>
#include "device.h"

enum { DEVICES = 2, ROUNDS = 40 };

__device__ int rounds; // each device has its own

// Waits for the device, and sets `rounds` to 0.
static int rounds_of(int device) {
    const int none = 0;
    OK(cudaSetDevice(device));
    OK(cudaDeviceSynchronize());
    const int n = STORED(int, cudaMemcpyFromSymbol(&it, rounds, sizeof it));
    OK(cudaMemcpyToSymbol(rounds, &none, sizeof none));
    OK(cudaSetDevice(0));
    return n;
}

// Waits until *ball is its own number, then sets it to the number of the other kernel.
__global__ void play(volatile int *ball, int me, int other) {
    for (int i = 0; i < ROUNDS; ++i) {
        while (*ball != me)
            ;
        ++rounds;
        __threadfence_system();
        *ball = other;
    }
}

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__ // with them, __trap() ends the program
// A kernel of an asynchronous launch that ends with an error
__global__ void fail_after(const volatile int *flag) {
    while (*flag == 0)
        ;
    __trap();
}

TEST(an_error_of_a_kernel_that_has_waited) {
    const unit_result result = in_child([] {
        int *const flag = managed<int>();
        fail_after<<<1, 1>>>(flag);
        const bool runs = cudaGetLastError() == cudaSuccess;
        *(volatile int *)flag = 1;
        exit(runs && cudaDeviceSynchronize() == cudaErrorLaunchFailure ? 3 : 4);
    });
    EXPECT(result.status == 3);
}
#endif

// A deadlock of two kernels
TEST(each_waits_for_the_other) {
    const unit_result result = under({"CUDA_CPU_WATCHDOG=0.3"}, [] {
        int *const ball = managed<int>();
        *ball = 7;
        for (int d = 0; d < DEVICES; ++d) {
            cudaSetDevice(d);
            play<<<1, 1>>>(ball, d, 1 - d);
        }
    });
    ends_with(result, {"no progress for 0.3 s", "in kernel play"});
}

TEST(kernels_of_two_streams) {
    int *const ball = managed<int>();
    const cudaStream_t streams[3] = {new_stream(), new_stream(), new_stream()};
    *ball = 2;
    for (int i = 0; i < 3; ++i)
        play<<<1, 1, 0, streams[i]>>>(ball, i, (i + 1) % 3);
    for (cudaStream_t stream : streams)
        OK(cudaStreamSynchronize(stream));
    EXPECT(rounds_of(0) == 3 * ROUNDS && *ball == 2);
}

// All blocks of all devices wait for each other, in every round.
__global__ void meet(unsigned *arrived, int *sum) {
    for (unsigned i = 1; i <= ROUNDS / 4; ++i) {
        atomicAdd_system(sum, 1);
        cooperative_groups::this_grid().sync();
        if (cooperative_groups::this_grid().thread_rank() == 0) {
            ++rounds;
            atomicAdd_system(arrived, 1);
            while (atomicAdd_system(arrived, 0) < DEVICES * i)
                ;
        }
        cooperative_groups::this_grid().sync();
        if (*(volatile int *)sum < (int)(DEVICES * i * gridDim.x * blockDim.x))
            __trap();
        cooperative_groups::this_grid().sync(); // so that no device adds for the next round before
    }
}

TEST(cooperative_kernels_of_two_devices) {
    unsigned *arrived = managed<unsigned>();
    int *sum = managed<int>();
    void *arguments[] = {&arrived, &sum};
    for (int d = 0; d < DEVICES; ++d) {
        OK(cudaSetDevice(d));
        OK(cudaLaunchCooperativeKernel(meet, 3, 40, arguments));
    }
    for (int d = 0; d < DEVICES; ++d)
        EXPECT(rounds_of(d) == ROUNDS / 4);
    EXPECT(*sum == DEVICES * ROUNDS / 4 * 3 * 40);
}

#ifndef __SANITIZE_THREAD__ // accesses through volatile are data races of the host threads
__global__ void wait_for(const volatile int *flag, int *answer) {
    while (*flag == 0)
        ;
    *answer = *flag + 1;
}

TEST(the_host_polls_what_the_kernel_writes) {
    int *flag = managed<int>(), *answer = managed<int>(), *copy = managed<int>();
    const cudaEvent_t end = new_event();
    *copy = -1;
    wait_for<<<1, 1>>>(flag, answer);
    OK(cudaMemcpyAsync(copy, answer, sizeof *copy, cudaMemcpyDefault, 0)); // waits for the kernel
    OK(cudaEventRecord(end));
    EXPECT(*copy == -1);
    for (int i = 0; i < 5; ++i) {
        EXPECT(cudaStreamQuery(0) == cudaErrorNotReady);
        EXPECT(cudaEventQuery(end) == cudaErrorNotReady);
    }
    *(volatile int *)flag = 6;
    while (*(volatile int *)answer == 0)
        ;
    EXPECT(*answer == 7);
    while (cudaEventQuery(end) == cudaErrorNotReady)
        ;
    OK(cudaStreamSynchronize(0));
    EXPECT(*copy == 7);
    *answer = 0;
    wait_for<<<1, 1>>>(flag, answer); // the flag is set already
    OK(cudaStreamSynchronize(0));
    EXPECT(*answer == 7);
}

__global__ void sleep_until(unsigned *flag) {
    while (atomicAdd(flag, 0) == 0)
        __nanosleep(100);
}

TEST(a_copy_in_another_stream) {
    const unsigned one = 1;
    const cudaStream_t kernels = new_stream(cudaStreamNonBlocking),
                       copies = new_stream(cudaStreamNonBlocking);
    for (bool wait : {false, true}) {
        const Device<unsigned> flag(1);
        sleep_until<<<4, 40, 0, kernels>>>(flag.data);
        OK(cudaMemcpyAsync(flag.data, &one, sizeof one, cudaMemcpyHostToDevice, copies));
        if (wait)
            OK(cudaStreamSynchronize(copies));
        OK(cudaStreamSynchronize(kernels));
    }
}
#endif

__global__ void add_one(int *sum) {
    atomicAdd(sum, 1);
}

__global__ void launch_before_and_after(const volatile int *flag, int *sum) {
    add_one<<<4, 64>>>(sum);
    while (*flag == 0)
        ;
    add_one<<<1, 1>>>(sum);
}

TEST(a_kernel_that_has_waited_launches_kernels) {
    int *flag = managed<int>(), *sum = managed<int>();
    launch_before_and_after<<<2, 1>>>(flag, sum);
    EXPECT(*(volatile int *)sum == 0);
    *(volatile int *)flag = 1;
    OK(cudaDeviceSynchronize());
    EXPECT(*sum == 2 * (4 * 64 + 1));
}

// Many critical sections in each thread. Threads take turns when they release a lock, but not while they hold
// one: with one lock for all, a thread in the critical section never finds another one in it. The time of a
// thread's last section, and of the first section of any other thread, show whether they took turns.
__global__ void critical_sections(int *mutex, int *inside, int *clock, int *first, int *last, int *wrong) {
    for (int i = 0; i < 200; ++i) {
        while (atomicCAS(mutex, 0, 1) != 0)
            ;
        __threadfence();
        if (*inside)
            *wrong += 1;
        *inside = 1;
        const int now = ++*clock;
        if (i == 0)
            first[threadIdx.x] = now;
        last[threadIdx.x] = now;
        *inside = 0;
        __threadfence();
        atomicExch(mutex, 0);
    }
}

TEST(threads_take_turns_at_the_release_of_a_lock) {
    const int n = 40;
    const std::vector<int> host = WRITTEN(
        int, 4 + 2 * n, critical_sections<<<1, n>>>(out, out + 1, out + 2, out + 4, out + 4 + n, out + 3));
    EXPECT(host[2] == 200 * n && host[3] == 0);
    const int latest_first = *std::max_element(host.begin() + 4, host.begin() + 4 + n);
    const int earliest_last = *std::min_element(host.begin() + 4 + n, host.end());
    EXPECT(latest_first < earliest_last);
}
