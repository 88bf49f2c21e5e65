// SPDX-License-Identifier: MIT
// Barriers, warp operations, address spaces and fences, by their CUDA names; a part of kernel.h
#pragma once

inline __attribute__((always_inline)) void __syncthreads(CUDA_CPU_SITE) {
    cuda_cpu::block_barrier(cuda_cpu::BlockVote::none, false, CUDA_CPU_HERE);
}
CUDA_CPU_RETURN(int, __syncthreads_count, (int predicate, CUDA_CPU_SITE),
                cuda_cpu::block_barrier(cuda_cpu::BlockVote::count, predicate, CUDA_CPU_HERE))
CUDA_CPU_RETURN(int, __syncthreads_and, (int predicate, CUDA_CPU_SITE),
                cuda_cpu::block_barrier(cuda_cpu::BlockVote::all, predicate, CUDA_CPU_HERE))
CUDA_CPU_RETURN(int, __syncthreads_or, (int predicate, CUDA_CPU_SITE),
                cuda_cpu::block_barrier(cuda_cpu::BlockVote::any, predicate, CUDA_CPU_HERE))

inline void __syncwarp(unsigned mask = 0xffffffff, CUDA_CPU_SITE) {
    cuda_cpu::warp_operation(cuda_cpu::WarpOp::sync, mask, 0, 0, 32, CUDA_CPU_HERE);
}
// Returns the mask of the lanes that have reached this call. It waits until no other lane of the warp can
// reach it. cu2cpp passes the number of the call among those on its line.
CUDA_CPU_RETURN(unsigned, __activemask, (int place = 0, CUDA_CPU_SITE),
                (unsigned)cuda_cpu::warp_operation(cuda_cpu::WarpOp::active, 1u << cuda_cpu::lane(), 0, place,
                                                   32, CUDA_CPU_HERE))

CUDA_CPU_RETURN(unsigned, __ballot_sync, (unsigned mask, int predicate, CUDA_CPU_SITE),
                (unsigned)cuda_cpu::warp_operation(cuda_cpu::WarpOp::ballot, mask, predicate != 0, 0, 32,
                                                   CUDA_CPU_HERE))
CUDA_CPU_RETURN(int, __any_sync, (unsigned mask, int predicate, CUDA_CPU_SITE),
                __ballot_sync(mask, predicate, cu_file, cu_line) != 0)
CUDA_CPU_RETURN(int, __all_sync, (unsigned mask, int predicate, CUDA_CPU_SITE),
                __ballot_sync(mask, !predicate, cu_file, cu_line) == 0)

#define CUDA_CPU_SHUFFLE(name, op, Operand, operand)                                                         \
    template <class T>                                                                                       \
    inline cuda_cpu::Shuffled<T> name(unsigned mask, T number, Operand operand, int width = 32,              \
                                      CUDA_CPU_SITE) {                                                       \
        static_assert(cuda_cpu::shuffled<T>, #name " takes numbers");                                        \
        const cuda_cpu::Shuffled<T> value = number;                                                          \
        return cuda_cpu::shuffle(cuda_cpu::WarpOp::op, mask, value, (int)operand, width, CUDA_CPU_HERE);     \
    }
CUDA_CPU_SHUFFLE(__shfl_sync, shuffle_index, int, lane)
CUDA_CPU_SHUFFLE(__shfl_up_sync, shuffle_up, unsigned, delta)
CUDA_CPU_SHUFFLE(__shfl_down_sync, shuffle_down, unsigned, delta)
CUDA_CPU_SHUFFLE(__shfl_xor_sync, shuffle_xor, int, lanes)
#undef CUDA_CPU_SHUFFLE

template <class T> inline unsigned __match_any_sync(unsigned mask, T value, CUDA_CPU_SITE) {
    return (unsigned)cuda_cpu::warp_operation(cuda_cpu::WarpOp::match_any, mask, cuda_cpu::to_bits(value), 0,
                                              32, CUDA_CPU_HERE);
}
template <class T> inline unsigned __match_all_sync(unsigned mask, T value, int *predicate, CUDA_CPU_SITE) {
    const unsigned lanes = (unsigned)cuda_cpu::warp_operation(cuda_cpu::WarpOp::match_all, mask,
                                                              cuda_cpu::to_bits(value), 0, 32, CUDA_CPU_HERE);
    *predicate = lanes != 0;
    return lanes;
}

#define CUDA_CPU_REDUCE(T, name, op)                                                                         \
    inline T __reduce_##name##_sync(unsigned mask, T value, CUDA_CPU_SITE) {                                 \
        return (T)cuda_cpu::warp_operation(cuda_cpu::WarpOp::reduce_##op, mask, cuda_cpu::to_bits(value), 0, \
                                           32, CUDA_CPU_HERE);                                               \
    }
CUDA_CPU_REDUCE(int, add, add)
CUDA_CPU_REDUCE(unsigned, add, add)
CUDA_CPU_REDUCE(int, min, min)
CUDA_CPU_REDUCE(unsigned, min, min_unsigned)
CUDA_CPU_REDUCE(int, max, max)
CUDA_CPU_REDUCE(unsigned, max, max_unsigned)
CUDA_CPU_REDUCE(unsigned, and, and)
CUDA_CPU_REDUCE(unsigned, or, or)
CUDA_CPU_REDUCE(unsigned, xor, xor)

// ---- address spaces ----

// The CPU has a single address space. Addresses in shared memory are counted from the begin of the block's,
// so that they have 32 bits, as programs assume.
#define CUDA_CPU_SPACE(Name, space, begin)                                                                   \
    CUDA_CPU_RETURN(unsigned, __is##Name, (const void *p), cuda_cpu::space_of(p) == cuda_cpu::Space::space)  \
    CUDA_CPU_RETURN(size_t, __cvta_generic_to_##space, (const void *p), (size_t)p - (begin))                 \
    CUDA_CPU_RETURN(void *, __cvta_##space##_to_generic, (size_t address), (void *)(address + (begin)))
CUDA_CPU_SPACE(Global, global, 0)
CUDA_CPU_SPACE(Shared, shared, (size_t)cuda_cpu::current_block->arena)
CUDA_CPU_SPACE(Constant, constant, 0)
CUDA_CPU_SPACE(Local, local, 0)

// ---- fences ----

CUDA_CPU_RETURN(void, __threadfence, (), __sync_synchronize())
inline void __threadfence_block() { // the threads of a block run on one worker
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
CUDA_CPU_RETURN(void, __threadfence_system, (), __sync_synchronize())

// Also lets other threads of the block run, for loops that poll with plain loads.
inline void __nanosleep(unsigned nanoseconds) {
    const struct timespec t = {(time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000)};
    cuda_cpu::yield();
    nanosleep(&t, nullptr);
}

// Programmatic dependent launch: a kernel begins when the one before has ended. The race detector is told.
namespace cuda_cpu {
void race_trigger();
void race_wait_for_kernel();
} // namespace cuda_cpu
inline void cudaTriggerProgrammaticLaunchCompletion() {
#ifdef CUDA_CPU_CHECK
    cuda_cpu::race_trigger();
#endif
}
inline void cudaGridDependencySynchronize() {
#ifdef CUDA_CPU_CHECK
    cuda_cpu::race_wait_for_kernel();
#endif
}

namespace cuda_cpu {
cudaError_t last_error_of_caller(const char *call, bool reset);
}
#ifdef __CU2CPP__ // a unit that may have device code
// Calls use these inline definitions. The address of each function is that of the definition in the library.
extern "C" {
#define CUDA_CPU_INLINE extern inline __attribute__((gnu_inline, always_inline))
CUDA_CPU_INLINE cudaError_t cudaGetLastError(void) {
    const cuda_cpu::Caller caller;
    return cuda_cpu::last_error_of_caller(__func__, true);
}
CUDA_CPU_INLINE cudaError_t cudaPeekAtLastError(void) {
    const cuda_cpu::Caller caller;
    return cuda_cpu::last_error_of_caller(__func__, false);
}
#undef CUDA_CPU_INLINE
}
#endif
