// SPDX-License-Identifier: MIT
// The functions that instrumented code calls at each access, atomic and function: those of ThreadSanitizer.
#include "race_detector.h"
#include "trace.h"

using namespace race;

#ifdef __wasm__
#define CALLER race_line
#else
#define CALLER __builtin_return_address(0)
#endif

extern "C" {
#ifdef __wasm__
const void *race_line;
void race_at_line(const void *line) {
    race_line = line;
}
#endif

void __tsan_init() {}
void __tsan_func_entry(void *) {
    if (traced_block)
        trace_call(1);
}
void __tsan_func_exit() {
    if (traced_block)
        trace_call(-1);
}
// Called in every basic block (-fsanitize-coverage=trace-pc)
void __sanitizer_cov_trace_pc() {
    if (traced_block)
        trace_event(EventKind::code, nullptr, 0, place_of(CALLER));
}
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}

// True if a volatile access counts as atomic. In global memory it does: before CUDA 9 programs wrote flags
// between blocks so. In shared memory it does not, because volatile does not order the lanes of a warp.
static bool like_atomic(const void *p) {
    return !(self && self->kernel && is_shared_memory((uintptr_t)p));
}

static void volatile_access(void *p, size_t bytes, bool write, const void *caller) {
    const bool atomic = like_atomic(p);
    access((uintptr_t)p, bytes, write, atomic, !write, caller);
    if (!atomic || !self || !self->kernel)
        return;
    if (write) {
        release((uintptr_t)p);
        return;
    }
    acquire((uintptr_t)p);
    threads().polled[thread_rank()] =
        (uintptr_t)p; // the thread reads the address after this call; see fence()
    threads().talks = true;
}

#define HOOK(name, check, ...)                                                                               \
    void __tsan_##name(void *p) {                                                                            \
        check(__VA_ARGS__, CALLER);                                                                          \
    }
#define ACCESSES(n)                                                                                          \
    HOOK(read##n, access, (uintptr_t)p, n, false, false, true)                                               \
    HOOK(write##n, access, (uintptr_t)p, n, true, false, false)                                              \
    HOOK(unaligned_read##n, access, (uintptr_t)p, n, false, false, true)                                     \
    HOOK(unaligned_write##n, access, (uintptr_t)p, n, true, false, false)                                    \
    HOOK(volatile_read##n, volatile_access, p, n, false)                                                     \
    HOOK(volatile_write##n, volatile_access, p, n, true)                                                     \
    HOOK(unaligned_volatile_read##n, volatile_access, p, n, false)                                           \
    HOOK(unaligned_volatile_write##n, volatile_access, p, n, true)
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_read_range(void *p, unsigned long n) {
    access((uintptr_t)p, n, false, false, true, CALLER);
}
void __tsan_write_range(void *p, unsigned long n) {
    access((uintptr_t)p, n, true, false, false, CALLER);
}
// clang++ calls these instead of the functions of the C library.
#define MOVE(function)                                                                                       \
    void *__tsan_##function(void *to, const void *from, size_t n) {                                          \
        access((uintptr_t)from, n, false, false, true, CALLER);                                              \
        access((uintptr_t)to, n, true, false, false, CALLER);                                                \
        return function(to, from, n);                                                                        \
    }
MOVE(memcpy)
MOVE(memmove)
void *__tsan_memset(void *to, int value, size_t n) {
    access((uintptr_t)to, n, true, false, false, CALLER);
    return memset(to, value, n);
}

void __tsan_atomic_thread_fence(int) {
    __sync_synchronize();
    fence();
}
void __tsan_atomic_signal_fence(int) {
    fence();
}

} // extern "C"

// An atomic that is stronger than relaxed, as those of cuda::atomic are by default, is its own fence. CUDA's
// atomicAdd and the like are relaxed (kernel.h). The atomic itself comes between release and acquire: it must
// not see a value whose release acquire() has missed.
template <class T>
static void before_atomic(volatile T *p, bool reads, bool write, int order, const void *caller) {
    access((uintptr_t)p, sizeof *p, write, true, reads, caller);
    if (!write || !self || !self->kernel)
        return;
    if (order >= __ATOMIC_RELEASE)
        fence();
    release((uintptr_t)p);
}
template <class T> static T after_atomic(volatile T *p, T value) {
    if (self && self->kernel)
        acquire((uintptr_t)p);
    return value;
}

#define ATOMICS(bits, T)                                                                                     \
    T __tsan_atomic##bits##_load(const volatile T *p, int order) {                                           \
        before_atomic(p, true, false, order, CALLER);                                                        \
        return after_atomic<const T>(p, __atomic_load_n(p, __ATOMIC_SEQ_CST));                               \
    }                                                                                                        \
    void __tsan_atomic##bits##_store(volatile T *p, T value, int order) {                                    \
        before_atomic(p, false, true, order, CALLER);                                                        \
        __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                                                        \
    }                                                                                                        \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile T *p, T *old, T value, int order, int) {      \
        before_atomic(p, true, true, order, CALLER);                                                         \
        const bool done =                                                                                    \
            __atomic_compare_exchange_n(p, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);           \
        after_atomic<T>(p, value);                                                                           \
        return done;                                                                                         \
    }                                                                                                        \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile T *p, T *old, T value, int order, int also) {   \
        return __tsan_atomic##bits##_compare_exchange_strong(p, old, value, order, also);                    \
    }                                                                                                        \
    T __tsan_atomic##bits##_compare_exchange_val(volatile T *p, T old, T value, int order, int) {            \
        before_atomic(p, true, true, order, CALLER);                                                         \
        __atomic_compare_exchange_n(p, &old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
        return after_atomic<T>(p, old);                                                                      \
    }                                                                                                        \
    T __tsan_atomic##bits##_exchange(volatile T *p, T value, int order) {                                    \
        before_atomic(p, false, true, order, CALLER);                                                        \
        return after_atomic<T>(p, __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST));                          \
    }                                                                                                        \
    FETCH(bits, T, add)                                                                                      \
    FETCH(bits, T, sub) FETCH(bits, T, and) FETCH(bits, T, or) FETCH(bits, T, xor) FETCH(bits, T, nand)
#define FETCH(bits, T, name)                                                                                 \
    T __tsan_atomic##bits##_fetch_##name(volatile T *p, T value, int order) {                                \
        before_atomic(p, true, true, order, CALLER);                                                         \
        return after_atomic<T>(p, __atomic_fetch_##name(p, value, __ATOMIC_SEQ_CST));                        \
    }
extern "C" {
ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)
}
