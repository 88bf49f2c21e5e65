// SPDX-License-Identifier: MIT
// <cuda/atomic>: atomic objects and references. All operations are sequentially consistent, whatever order
// and scope they ask for. A thread that polls with load() lets other threads of its block run, as it does
// with atomicAdd(p, 0).
#pragma once
#include "std.h"

#include <atomic>
#include <cstring>
#include <type_traits>
#ifndef __CUDACC__
#include <sched.h>
#endif

#include "letters_off.h"

namespace cuda_cpu {

#ifdef __CUDACC__
template <class T> inline void polled(T *p, T seen, Site site) {
    atomic_without_effect(p, seen, site);
}
#else // a host source: the threads are those of the operating system
template <class T> inline void polled(T *, T, Site) {}
#endif

// Waits (polls) while holds(*p) is true.
template <class T, class F> inline void wait_while(T *p, F holds, Site site) {
    for (;;) {
        T seen;
        __atomic_load(p, &seen, __ATOMIC_SEQ_CST);
        if (!holds(seen))
            return;
        polled(p, seen, site);
#ifndef __CUDACC__
        sched_yield();
#endif
    }
}

// Common base class of atomic and atomic_ref. Self::address() is the object's, which may be volatile.
template <class T, class Self> class AtomicOperations {
    static_assert(std::is_trivially_copyable_v<T>, "atomics copy bytes");
    static_assert(sizeof(T) <= 8 && (sizeof(T) & (sizeof(T) - 1)) == 0, "atomics have 1, 2, 4 or 8 bytes");

    T *p() const volatile { return static_cast<const volatile Self *>(this)->address(); }
    static bool same(const T &a, const T &b) { return std::memcmp(&a, &b, sizeof a) == 0; }

    template <class F> T change(F f, Site site) const volatile {
        T old, changed;
        __atomic_load(p(), &old, __ATOMIC_SEQ_CST);
        do
            changed = f(old);
        while (!__atomic_compare_exchange(p(), &old, &changed, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
        if (same(old, changed))
            polled(p(), old, site);
        return old;
    }

  public:
    typedef T value_type;
    typedef std::memory_order Order;
    static constexpr Order strongest = std::memory_order_seq_cst;

    static constexpr bool is_always_lock_free = true;
    bool is_lock_free() const volatile { return true; }

    void store(T value, Order = strongest) const volatile { __atomic_store(p(), &value, __ATOMIC_SEQ_CST); }
    T load(Order = strongest, CUDA_CPU_SITE) const volatile {
        T value;
        __atomic_load(p(), &value, __ATOMIC_SEQ_CST);
        polled(p(), value, CUDA_CPU_HERE);
        return value;
    }
    operator T() const volatile { return load(); }
    T exchange(T value, Order = strongest, CUDA_CPU_SITE) const volatile {
        T old;
        __atomic_exchange(p(), &value, &old, __ATOMIC_SEQ_CST);
        if (same(old, value))
            polled(p(), old, CUDA_CPU_HERE);
        return old;
    }
    bool compare_exchange_strong(T &expected, T value, Order = strongest, Order = strongest,
                                 CUDA_CPU_SITE) const volatile {
        const bool done =
            __atomic_compare_exchange(p(), &expected, &value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        if (!done || same(expected, value))
            polled(p(), expected, CUDA_CPU_HERE);
        return done;
    }
    bool compare_exchange_weak(T &expected, T value, Order = strongest, Order = strongest,
                               CUDA_CPU_SITE) const volatile {
        return compare_exchange_strong(expected, value, strongest, strongest, cu_file, cu_line);
    }
    void wait(T old, Order = strongest, CUDA_CPU_SITE) const volatile {
        wait_while(
            p(), [=](const T &seen) { return same(seen, old); }, CUDA_CPU_HERE);
    }
    T operator++() const volatile { return fetch_add(1) + 1; }
    T operator--() const volatile { return fetch_sub(1) - 1; }
    T operator++(int) const volatile { return fetch_add(1); }
    T operator--(int) const volatile { return fetch_sub(1); }
    void notify_one() const volatile {}
    void notify_all() const volatile {}

    // For numbers and pointers; a difference to a pointer counts elements.
    typedef std::conditional_t<std::is_pointer_v<T>, ptrdiff_t, T> Difference;
#define CUDA_CPU_FETCH(name, Argument, expression)                                                           \
    T fetch_##name(Argument x, Order = strongest, CUDA_CPU_SITE) const volatile {                            \
        return change([=](T old) -> T { return expression; }, CUDA_CPU_HERE);                                \
    }
    CUDA_CPU_FETCH(add, Difference, old + x)
    CUDA_CPU_FETCH(sub, Difference, old - x)
    CUDA_CPU_FETCH(and, T, old &x)
    CUDA_CPU_FETCH(or, T, old | x)
    CUDA_CPU_FETCH(xor, T, old ^ x)
    CUDA_CPU_FETCH(min, T, x < old ? x : old)
    CUDA_CPU_FETCH(max, T, old < x ? x : old)
#undef CUDA_CPU_FETCH
#define CUDA_CPU_ASSIGN(sign, fetch, Argument)                                                               \
    T operator sign##=(Argument x) const volatile {                                                          \
        return fetch(x) sign x;                                                                              \
    }
    CUDA_CPU_ASSIGN(+, fetch_add, Difference)
    CUDA_CPU_ASSIGN(-, fetch_sub, Difference)
    CUDA_CPU_ASSIGN(&, fetch_and, T)
    CUDA_CPU_ASSIGN(|, fetch_or, T)
    CUDA_CPU_ASSIGN(^, fetch_xor, T)
#undef CUDA_CPU_ASSIGN
};

} // namespace cuda_cpu

namespace cuda {

enum thread_scope { thread_scope_system, thread_scope_device, thread_scope_block, thread_scope_thread };

using ::std::memory_order;
using ::std::memory_order_acq_rel;
using ::std::memory_order_acquire;
using ::std::memory_order_consume;
using ::std::memory_order_relaxed;
using ::std::memory_order_release;
using ::std::memory_order_seq_cst;

template <class T, thread_scope Scope = thread_scope_system>
class atomic : public cuda_cpu::AtomicOperations<T, atomic<T, Scope>> {
  public:
    atomic() = default;
    constexpr atomic(T initial) : value(initial) {}
    atomic(const atomic &) = delete;
    atomic &operator=(const atomic &) = delete;
    T operator=(T x) volatile {
        this->store(x);
        return x;
    }
    T *address() const volatile { return const_cast<T *>(&value); }

  private:
    alignas(sizeof(T)) T value;
};

template <class T, thread_scope Scope = thread_scope_system>
class atomic_ref : public cuda_cpu::AtomicOperations<T, atomic_ref<T, Scope>> {
  public:
    static constexpr size_t required_alignment = sizeof(T);
    explicit atomic_ref(T &x) : target(&x) {}
    atomic_ref(const atomic_ref &) = default;
    T operator=(T x) const {
        this->store(x);
        return x;
    }
    T *address() const volatile { return const_cast<const atomic_ref *>(this)->target; }

  private:
    T *target;
};

CUDA_CPU_RETURN(void, atomic_thread_fence, (memory_order, thread_scope = thread_scope_system),
                __atomic_thread_fence(__ATOMIC_SEQ_CST))
CUDA_CPU_RETURN(void, atomic_signal_fence, (memory_order), __atomic_signal_fence(__ATOMIC_SEQ_CST))

namespace std {
template <class T> using atomic = cuda::atomic<T>;
template <class T> using atomic_ref = cuda::atomic_ref<T>;
using cuda::atomic_signal_fence;
CUDA_CPU_RETURN(void, atomic_thread_fence, (memory_order), cuda::atomic_thread_fence(memory_order_seq_cst))
typedef atomic<bool> atomic_bool;
typedef atomic<int> atomic_int;
typedef atomic<unsigned> atomic_uint;
typedef atomic<unsigned long long> atomic_ullong;
} // namespace std
} // namespace cuda

#include "letters_on.h"
