// SPDX-License-Identifier: MIT
// Atomic functions: sequentially consistent, each returns the old value; a part of kernel.h
#pragma once

#ifdef CUDA_CPU_CHECK // relaxed, as in CUDA: the race detector must not take these atomics for fences
#define CUDA_CPU_ORDER __ATOMIC_RELAXED
#else
#define CUDA_CPU_ORDER __ATOMIC_SEQ_CST
#endif

namespace cuda_cpu {

// True if an atomic on this address can be a plain load and a plain store, which are several times faster.
// That is so in shared memory: one worker runs the threads of a block, one at a time, and never preempts
// them, so no other thread runs between the load and the store.
inline bool is_shared([[maybe_unused]] const __volatile__ void *p) {
#if defined CUDA_CPU_WATCHED || defined CUDA_CPU_CHECK // the race detector must see the atomic
    return false;
#else
    return (uintptr_t)p - (uintptr_t)current_block->arena < arena_size;
#endif
}

// Lets the next thread of the block run after a number of atomics. A histogram is the typical case:
// neighbouring threads read neighbouring elements, with strides over the whole input. On a GPU they read a
// cache line together. If each thread ran to its end before the next one, each would load every line again.
inline __attribute__((noinline)) void take_turns() {
    const Resume resume;
    carry_out(take_turns(resume.mine));
}

// Not called by a compare-and-swap, nor by an exchange unless it releases a lock: the thread may then hold a
// lock, and switching would only make the others poll.
inline void count_atomic() {
    if (__builtin_expect(--current_block->slice == 0, 0))
        take_turns();
}

// Replaces *p, which is in shared memory, by change(*p). Returns the old value.
template <class T, class F> inline T change_shared(T *p, F change) {
    const T old = *(__volatile__ T *)p;
    *(__volatile__ T *)p = change(old);
    return old;
}

// Atomic read-modify-write by a compare-and-swap loop: replaces *p by change(*p), which may be called several
// times, and returns the old value. T is a type of 1, 2, 4 or 8 bytes, such as __half2.
template <int order, class T, class F> inline T change_by_swaps(T *p, F change) {
    T old, changed;
    __atomic_load(p, &old, order);
    do {
        changed = change(old);
        if (order != __ATOMIC_RELAXED && std::memcmp(&changed, &old, sizeof old) == 0)
            break; // nothing to write; but the race detector must see it
    } while (!__atomic_compare_exchange(p, &old, &changed, false, order, order));
    return old;
}
template <class T, class F> inline T atomic_update(T *p, F change) {
    count_atomic();
    return is_shared(p) ? change_shared(p, change) : change_by_swaps<CUDA_CPU_ORDER>(p, change);
}

// A GPU's addition to a float in global memory takes subnormal numbers for 0.
inline double flushed(double x) {
    return x;
}
inline float flushed(float x) {
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

// Performs an atomic function. With `no_change`, its operand leaves every value as it is, as in atomicOr(p,
// 0): then a load gives the same result, and the call is counted as polling. The race detector needs the
// atomic.
template <class T, class F>
inline __attribute__((always_inline)) T poll_if(bool no_change, T *p, F atomic, Site site) {
    const T old =
        no_change && CUDA_CPU_ORDER != __ATOMIC_RELAXED ? __atomic_load_n(p, CUDA_CPU_ORDER) : atomic();
    if (__builtin_expect(no_change, 0))
        atomic_without_effect(p, old, site);
    return old;
}

template <class T>
inline __attribute__((always_inline)) T atomic_add(T *p, T value, [[maybe_unused]] Site site) {
    if constexpr (std::is_integral_v<T>) {
        const auto add = [=](T it) { return (T)((std::make_unsigned_t<T>)it + value); };
        const auto atomic = [=] {
            count_atomic();
            return is_shared(p) ? change_shared(p, add) : __atomic_fetch_add(p, value, CUDA_CPU_ORDER);
        };
        return poll_if(value == 0, p, atomic, site);
    } else {
        count_atomic();
        if (is_shared(p))
            return change_shared(p, [=](T it) { return it + value; });
        return change_by_swaps<CUDA_CPU_ORDER>(p,
                                               [=](T it) { return flushed(flushed(it) + flushed(value)); });
    }
}

template <class T> inline T atomic_exchange(T *p, T value, Site site) {
    T old;
    if (is_shared(p))
        old = change_shared(p, [=](T) { return value; });
    else
        __atomic_exchange(p, &value, &old, CUDA_CPU_ORDER);
    if (std::memcmp(&old, &value, sizeof old) == 0) {
        atomic_without_effect(p, old, site); // the lock is held already
    } else {
        atomic_with_effect();
        if (last_lock == p) { // the exchange released the lock
            last_lock = nullptr;
            count_atomic();
        }
    }
    return old;
}

template <class T> inline T atomic_compare_and_swap(T *p, T compare, T value, Site site) {
    T old = compare;
    if (is_shared(p))
        old = change_shared(p, [=](T it) { return it == compare ? value : it; });
    else
        __atomic_compare_exchange(p, &old, &value, false, CUDA_CPU_ORDER, CUDA_CPU_ORDER);
    if (old != compare || compare == value) {
        atomic_without_effect(p, old, site);
    } else {
        atomic_with_effect();
        last_lock = p;
    }
    return old;
}

} // namespace cuda_cpu

// Overloads only for the types that CUDA has, so that a call that nvcc refuses is refused here too.
// The plain form, which is that for the device, and those for a block and for the system
#define CUDA_CPU_SCOPES(T, name, PARAMETERS, ARGUMENTS, expression)                                          \
    inline T atomic##name(T *p, CUDA_CPU_LIST PARAMETERS, CUDA_CPU_SITE) {                                   \
        (void)cu_file, (void)cu_line;                                                                        \
        return expression;                                                                                   \
    }                                                                                                        \
    inline T atomic##name##_block(T *p, CUDA_CPU_LIST PARAMETERS, CUDA_CPU_SITE) {                           \
        return atomic##name(p, CUDA_CPU_LIST ARGUMENTS, cu_file, cu_line);                                   \
    }                                                                                                        \
    inline T atomic##name##_system(T *p, CUDA_CPU_LIST PARAMETERS, CUDA_CPU_SITE) {                          \
        return atomic##name(p, CUDA_CPU_LIST ARGUMENTS, cu_file, cu_line);                                   \
    }
#define CUDA_CPU_ATOMIC(T, name, expression) CUDA_CPU_SCOPES(T, name, (T value), (value), expression)
#define CUDA_CPU_ATOMIC_CAS(T)                                                                               \
    CUDA_CPU_SCOPES(T, CAS, (T compare, T value), (compare, value),                                          \
                    cuda_cpu::atomic_compare_and_swap(p, compare, value, CUDA_CPU_HERE))

CUDA_CPU_ATOMIC(int, Add, cuda_cpu::atomic_add(p, value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC(unsigned, Add, cuda_cpu::atomic_add(p, value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC(unsigned long long, Add, cuda_cpu::atomic_add(p, value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC(float, Add, cuda_cpu::atomic_add(p, value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC(double, Add, cuda_cpu::atomic_add(p, value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC(int, Sub, cuda_cpu::atomic_add(p, (int)-(unsigned)value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC(unsigned, Sub, cuda_cpu::atomic_add(p, -value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC(int, Exch, cuda_cpu::atomic_exchange(p, value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC(unsigned, Exch, cuda_cpu::atomic_exchange(p, value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC(unsigned long long, Exch, cuda_cpu::atomic_exchange(p, value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC(float, Exch, cuda_cpu::atomic_exchange(p, value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC_CAS(int)
CUDA_CPU_ATOMIC_CAS(unsigned)
CUDA_CPU_ATOMIC_CAS(unsigned long long)
CUDA_CPU_ATOMIC_CAS(unsigned short)

// `neutral` is the operand that changes nothing.
#define CUDA_CPU_POLL(T, name, neutral, expression)                                                          \
    CUDA_CPU_ATOMIC(T, name,                                                                                 \
                    cuda_cpu::poll_if(                                                                       \
                        value == neutral, p, [=] { return expression; }, CUDA_CPU_HERE))
#define CUDA_CPU_ATOMIC_BITS(T, name, neutral, result, fetch)                                                \
    CUDA_CPU_POLL(T, name, neutral,                                                                          \
                  cuda_cpu::is_shared(p) ? cuda_cpu::change_shared(p, [=](T old) { return result; })         \
                                         : fetch(p, value, CUDA_CPU_ORDER))
#define CUDA_CPU_ATOMIC_INTEGERS(T)                                                                          \
    CUDA_CPU_POLL(T, Min, std::numeric_limits<T>::max(),                                                     \
                  cuda_cpu::atomic_update(p, [=](T old) { return old < value ? old : value; }))              \
    CUDA_CPU_POLL(T, Max, std::numeric_limits<T>::min(),                                                     \
                  cuda_cpu::atomic_update(p, [=](T old) { return old > value ? old : value; }))              \
    CUDA_CPU_ATOMIC_BITS(T, And, (T) ~(T)0, old &value, __atomic_fetch_and)                                  \
    CUDA_CPU_ATOMIC_BITS(T, Or, 0, old | value, __atomic_fetch_or)                                           \
    CUDA_CPU_ATOMIC_BITS(T, Xor, 0, old ^ value, __atomic_fetch_xor)
CUDA_CPU_ATOMIC_INTEGERS(int)
CUDA_CPU_ATOMIC_INTEGERS(unsigned)
CUDA_CPU_ATOMIC_INTEGERS(long long)
CUDA_CPU_ATOMIC_INTEGERS(unsigned long long)
// Each component is added atomically; the vector as a whole is not, as on a GPU.
CUDA_CPU_ATOMIC(float2, Add, (float2{atomicAdd(&p->x, value.x), atomicAdd(&p->y, value.y)}))
CUDA_CPU_ATOMIC(float4, Add,
                (float4{atomicAdd(&p->x, value.x), atomicAdd(&p->y, value.y), atomicAdd(&p->z, value.z),
                        atomicAdd(&p->w, value.w)}))
CUDA_CPU_ATOMIC(unsigned, Inc,
                cuda_cpu::atomic_update(p, [=](unsigned old) { return old >= value ? 0u : old + 1; }))
CUDA_CPU_ATOMIC(unsigned, Dec, cuda_cpu::atomic_update(p, [=](unsigned old) {
                    return old == 0 || old > value ? value : old - 1;
                }))

// The compiler's builtins of CUDA 12.8: functions above, with an order and a scope, which are not needed here
enum {
    __NV_ATOMIC_RELAXED,
    __NV_ATOMIC_CONSUME,
    __NV_ATOMIC_ACQUIRE,
    __NV_ATOMIC_RELEASE,
    __NV_ATOMIC_ACQ_REL,
    __NV_ATOMIC_SEQ_CST
};
enum {
    __NV_THREAD_SCOPE_THREAD,
    __NV_THREAD_SCOPE_BLOCK,
    __NV_THREAD_SCOPE_CLUSTER,
    __NV_THREAD_SCOPE_DEVICE,
    __NV_THREAD_SCOPE_SYSTEM
};
#define CUDA_CPU_HOW int = 0, int = __NV_THREAD_SCOPE_SYSTEM, CUDA_CPU_SITE
template <class T> inline T __nv_atomic_load_n(T *p, CUDA_CPU_HOW) {
    const T seen = __atomic_load_n(p, CUDA_CPU_ORDER);
    cuda_cpu::atomic_without_effect(p, seen, CUDA_CPU_HERE);
    return seen;
}
template <class T> inline void __nv_atomic_store_n(T *p, T value, int = 0, int = 0) {
    __atomic_store_n(p, value, CUDA_CPU_ORDER);
}
template <class T> inline T __nv_atomic_exchange_n(T *p, T value, CUDA_CPU_HOW) {
    return cuda_cpu::atomic_exchange(p, value, CUDA_CPU_HERE);
}
template <class T>
inline bool __nv_atomic_compare_exchange_n(T *p, T *expected, T value, bool, int, CUDA_CPU_HOW) {
    const T wanted = *expected;
    *expected = cuda_cpu::atomic_compare_and_swap(p, wanted, value, CUDA_CPU_HERE);
    return *expected == wanted;
}
#define CUDA_CPU_NV_FETCH(name, expression)                                                                  \
    template <class T> inline T __nv_atomic_fetch_##name(T *p, T value, CUDA_CPU_HOW) {                      \
        const auto change = [=](T old) -> T { return expression; };                                          \
        const T old = cuda_cpu::atomic_update(p, change);                                                    \
        if (change(old) == old)                                                                              \
            cuda_cpu::atomic_without_effect(p, old, CUDA_CPU_HERE);                                          \
        return old;                                                                                          \
    }
template <class T> inline T __nv_atomic_fetch_add(T *p, T value, CUDA_CPU_HOW) {
    return cuda_cpu::atomic_add(p, value, CUDA_CPU_HERE);
}
CUDA_CPU_NV_FETCH(sub, old - value)
CUDA_CPU_NV_FETCH(and, old &value)
CUDA_CPU_NV_FETCH(or, old | value)
CUDA_CPU_NV_FETCH(xor, old ^ value)
CUDA_CPU_NV_FETCH(min, value < old ? value : old)
CUDA_CPU_NV_FETCH(max, old < value ? value : old)
CUDA_CPU_RETURN(void, __nv_atomic_thread_fence, (int, int = 0), __threadfence())

#undef CUDA_CPU_ORDER
