// SPDX-License-Identifier: MIT
// Asynchronous copies to shared memory without libcu++. A copy is carried out by the call that waits for it,
// so that a program which does not wait gets wrong data; before, its destination holds 0xff. The barriers of
// cuda_awbarrier_primitives.h are not here; <cuda/barrier> has the same.
#pragma once
#include "cuda_runtime.h"
#ifdef __CUDACC__

#include "cuda_cpu/letters_off.h"

namespace cuda_cpu {
void copies_to_shared_memory() __attribute__((weak));
inline __attribute__((noinline)) void
copies_to_shared_memory() { // race.h; not in programs that do not call it
    __asm__ __volatile__("");
}

// The copies that a thread has begun and not waited for
struct AsyncCopies {
    struct Copy {
        void *to;
        const void *from;
        size_t size, zeros, batch;
    };
    uint64_t block = 0;    // the block_number of the thread's block
    size_t batches = 0;    // that the thread has committed
    Copy *begun = nullptr; // not a std::vector: every .cu includes this header, by way of ptx.h
    size_t count = 0, room = 0;

    void add(const Copy &copy) {
        if (count == room)
            begun = (Copy *)realloc((void *)begun, (room = 2 * room + 8) * sizeof copy);
        begun[count++] = copy;
    }
    static AsyncCopies &of_thread() {
        static thread_local AsyncCopies all[max_threads];
        AsyncCopies &mine = all[thread_rank()];
        if (mine.block != block_number) {
            mine.block = block_number;
            mine.batches = 0;
            mine.count = 0;
        }
        return mine;
    }
};

// The race detector sees a write, at the caller's line: g++ instruments assignments, but not memcpy().
template <size_t size>
inline __attribute__((always_inline)) void copy_bytes(void *to, const void *from, size_t zeros) {
    typedef int Bytes __attribute__((vector_size(size), may_alias));
    Bytes value = {};
    if (zeros == 0)
        value = *(const Bytes *)from;
    else
        memcpy(&value, from, size - zeros);
    *(Bytes *)to = value;
}
inline __attribute__((always_inline)) void copy_bytes(size_t size, void *to, const void *from, size_t zeros) {
    size == 4   ? copy_bytes<4>(to, from, zeros)
    : size == 8 ? copy_bytes<8>(to, from, zeros)
                : copy_bytes<16>(to, from, zeros);
}

} // namespace cuda_cpu

// Copies `size` bytes (4, 8 or 16); the last `zeros` become zero. Other sizes end the kernel, as on a GPU.
inline __attribute__((always_inline)) void __pipeline_memcpy_async(void *to, const void *from, size_t size,
                                                                   size_t zeros = 0) {
    if ((size != 4 && size != 8 && size != 16) || zeros > size)
        __trap();
#ifdef CUDA_CPU_CHECK
    cuda_cpu::copies_to_shared_memory();
#endif
    alignas(16) static const int ones[] = {-1, -1, -1, -1};
    cuda_cpu::copy_bytes(size, to, ones, 0);
    auto &copies = cuda_cpu::AsyncCopies::of_thread();
    for (size_t i = 0; i < copies.count; ++i)
        if (copies.begun[i].to ==
            to) // undefined: two copies to one address at once. The first brings no data
            copies.begun[i].from = ones;
    copies.add({to, from, size, zeros, copies.batches});
}
inline void __pipeline_commit() {
    ++cuda_cpu::AsyncCopies::of_thread().batches;
}
// Waits for all batches but the latest `later`.
inline __attribute__((always_inline)) void __pipeline_wait_prior(size_t later) {
    auto &copies = cuda_cpu::AsyncCopies::of_thread();
    auto *const begun = copies.begun, *copy = begun;
    for (; copy < begun + copies.count && copy->batch + later < copies.batches; ++copy)
        cuda_cpu::copy_bytes(copy->size, copy->to, copy->from, copy->zeros);
    copies.count -= copy - begun;
    if (copies.count > 0)
        memmove((void *)begun, copy, copies.count * sizeof *copy);
}

#include "cuda_cpu/letters_on.h"
#endif // __CUDACC__
