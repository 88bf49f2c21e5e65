// SPDX-License-Identifier: MIT
// <cuda/barrier>, <cuda/latch> and <cuda/pipeline>. A thread that waits yields to the other threads of its
// block. Bulk copies (bulk.h), and asynchronous copies with the barrier of a block, are made by the first
// thread that waits for their phase, so that a wait that is missing shows. Other asynchronous copies are
// complete when the call returns. pipeline::quit() does not exist.
#pragma once
#include "atomic.h"

#include <cstddef>
#include <new>

#include "letters_off.h"

namespace cuda {

// ---- barriers ----

namespace cuda_cpu_detail {
struct no_completion {
    void operator()() const {}
};
struct late_copy {
    late_copy *next;
    virtual void run() = 0;
    virtual ~late_copy() {}
};
} // namespace cuda_cpu_detail

template <thread_scope Scope = thread_scope_system, class Completion = cuda_cpu_detail::no_completion>
class barrier {
  public:
    struct arrival_token {
        unsigned phase;
    };

    barrier() = default; // for shared memory; the program calls init() before the first use
    explicit barrier(ptrdiff_t threads, Completion f = Completion())
        : expected(threads), pending(threads), bytes(0), copies(nullptr), due(nullptr), phase(0),
          completion(f) {}
    barrier(const barrier &) = delete;
    barrier &operator=(const barrier &) = delete;
    static constexpr ptrdiff_t(max)() { return (1 << 20) - 1; }

    arrival_token arrive(ptrdiff_t n = 1) {
        const arrival_token token = {__atomic_load_n(&phase, __ATOMIC_SEQ_CST)};
        if (__atomic_sub_fetch(&pending, n, __ATOMIC_SEQ_CST) == 0)
            all_arrived();
        return token;
    }
    void wait(arrival_token &&token, CUDA_CPU_SITE) const {
        ::cuda_cpu::wait_while(
            &phase, [=](unsigned now) { return now == token.phase; }, CUDA_CPU_HERE);
        make_copies();
    }
    bool try_wait(arrival_token &&token, CUDA_CPU_SITE) const {
        const unsigned now = __atomic_load_n(&phase, __ATOMIC_SEQ_CST);
        if (now == token.phase)
            ::cuda_cpu::polled(&phase, now, CUDA_CPU_HERE);
        else
            make_copies();
        return now != token.phase;
    }
    void arrive_and_wait(CUDA_CPU_SITE) { wait(arrive(), cu_file, cu_line); }
    void arrive_and_drop() {
        __atomic_sub_fetch(&expected, 1, __ATOMIC_SEQ_CST);
        (void)arrive();
    }
    // Waits until the barrier has completed more than `count` phases.
    void wait_for_phase(unsigned count, CUDA_CPU_SITE) const {
        ::cuda_cpu::wait_while(
            &phase, [=](unsigned now) { return (int)(now - count) <= 0; }, CUDA_CPU_HERE);
        make_copies();
    }
    // For bulk.h, in barriers of one block: the phase also waits for this number of bytes.
    void expect_bytes(ptrdiff_t n) { __atomic_add_fetch(&bytes, n, __ATOMIC_RELAXED); }
    // Keeps a copy until a thread waits for the phase, and then calls copy(). `n` are the bytes that it
    // counts.
    template <class F> void copy_later(ptrdiff_t n, F copy) {
        struct of_f : late_copy {
            F copy;
            explicit of_f(F f) : copy(f) {}
            void run() override { copy(); }
        };
        put(copies, new of_f(copy));
        expect_bytes(-n);
        if (__atomic_load_n(&pending, __ATOMIC_SEQ_CST) == 0)
            all_arrived();
    }

  private:
    using late_copy = cuda_cpu_detail::late_copy;

    void all_arrived() {
        if (__atomic_load_n(&bytes, __ATOMIC_RELAXED))
            return; // the phase does not end: a thread has still to call the copy of these bytes
        take(copies, [this](late_copy *copy) { put(due, copy); });
        completion();
        __atomic_store_n(&pending, __atomic_load_n(&expected, __ATOMIC_SEQ_CST), __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&phase, 1, __ATOMIC_SEQ_CST);
    }

    void make_copies() const {
        take(due, [](late_copy *copy) {
            copy->run();
            delete copy;
        });
    }
    // Lists of copies. The threads of the block run in turn; the race detector needs the atomic accesses.
    static void put(late_copy *&list, late_copy *copy) {
        copy->next = __atomic_exchange_n(&list, copy, __ATOMIC_RELAXED);
    }
    template <class F> static void take(late_copy *&list, F f) {
        late_copy *copy = __atomic_exchange_n(&list, nullptr, __ATOMIC_RELAXED);
        while (copy) {
            late_copy *const next = copy->next;
            f(copy);
            copy = next;
        }
    }

    ptrdiff_t expected, pending, bytes;
    late_copy *copies;      // of this phase
    mutable late_copy *due; // of phases that have ended
    mutable unsigned phase;
    Completion completion;
};

template <thread_scope Scope, class Completion>
void init(barrier<Scope, Completion> *b, ptrdiff_t threads, Completion f = Completion()) {
    new (b) barrier<Scope, Completion>(threads, f);
}

// ---- latches ----

template <thread_scope Scope = thread_scope_system> class latch {
  public:
    explicit constexpr latch(ptrdiff_t n) : left(n) {}
    void count_down(ptrdiff_t n = 1) { __atomic_sub_fetch(&left, n, __ATOMIC_SEQ_CST); }
    bool try_wait(CUDA_CPU_SITE) const {
        const ptrdiff_t now = __atomic_load_n(&left, __ATOMIC_SEQ_CST);
        if (now)
            ::cuda_cpu::polled(&left, now, CUDA_CPU_HERE);
        return now == 0;
    }
    void wait(CUDA_CPU_SITE) const {
        ::cuda_cpu::wait_while(
            &left, [](ptrdiff_t now) { return now != 0; }, CUDA_CPU_HERE);
    }
    void arrive_and_wait(ptrdiff_t n = 1, CUDA_CPU_SITE) {
        count_down(n);
        wait(cu_file, cu_line);
    }

  private:
    mutable ptrdiff_t left;
};
template <thread_scope Scope> void init(latch<Scope> *l, ptrdiff_t n) {
    new (l) latch<Scope>(n);
}

namespace std {
template <class Completion = cuda_cpu_detail::no_completion>
using barrier = cuda::barrier<thread_scope_system, Completion>;
using latch = cuda::latch<>;
} // namespace std

// ---- pipelines ----

enum class pipeline_role { producer, consumer };

template <thread_scope Scope, unsigned char Stages> class pipeline_shared_state {
  public:
    pipeline_shared_state() = default;
    pipeline_shared_state(const pipeline_shared_state &) = delete;

    // For make_pipeline
    barrier<Scope> produced[Stages], consumed[Stages];
    ptrdiff_t producers;
};

// A queue of stages: producers fill them by copies, and consumers empty them. The pipeline of one thread
// needs no state, because its copies are complete on return.
template <thread_scope Scope> class pipeline {
  public:
    void producer_acquire(CUDA_CPU_SITE) {
        if (stages && head >= stages)
            consumed[head % stages].wait_for_phase(head / stages - 1, cu_file, cu_line);
    }
    void producer_commit() {
        if (stages)
            (void)produced[head % stages].arrive();
        ++head;
    }
    void consumer_wait(CUDA_CPU_SITE) {
        if (stages)
            produced[tail % stages].wait_for_phase(tail / stages, cu_file, cu_line);
    }
    void consumer_release() {
        if (stages)
            (void)consumed[tail % stages].arrive();
        ++tail;
    }

    // Used by make_pipeline and pipeline_consumer_wait_prior.
    barrier<Scope> *produced = nullptr, *consumed = nullptr;
    unsigned stages = 0, head = 0, tail = 0; // number of stages begun by the producer and by the consumer
};

CUDA_CPU_RETURN(pipeline<thread_scope_thread>, make_pipeline, (), {})
namespace cuda_cpu_detail {
template <class Group, thread_scope Scope, unsigned char Stages>
pipeline<Scope> shared_pipeline(const Group &group, pipeline_shared_state<Scope, Stages> *state,
                                ptrdiff_t producers, ptrdiff_t consumers, CUDA_CPU_SITE) {
    for (unsigned i = 0; i < Stages && group.thread_rank() == 0; ++i) {
        init(&state->produced[i], producers);
        init(&state->consumed[i], consumers);
    }
    group.sync(cu_file, cu_line);
    return {state->produced, state->consumed, Stages};
}
} // namespace cuda_cpu_detail
template <class Group, thread_scope Scope, unsigned char Stages>
pipeline<Scope> make_pipeline(const Group &group, pipeline_shared_state<Scope, Stages> *state,
                              CUDA_CPU_SITE) {
    return cuda_cpu_detail::shared_pipeline(group, state, (ptrdiff_t)group.size(), (ptrdiff_t)group.size(),
                                            cu_file, cu_line);
}
// The first threads are producers, the others consumers.
template <class Group, thread_scope Scope, unsigned char Stages>
pipeline<Scope> make_pipeline(const Group &group, pipeline_shared_state<Scope, Stages> *state,
                              size_t producers, CUDA_CPU_SITE) {
    return cuda_cpu_detail::shared_pipeline(group, state, (ptrdiff_t)producers,
                                            (ptrdiff_t)(group.size() - producers), cu_file, cu_line);
}
template <class Group, thread_scope Scope, unsigned char Stages>
pipeline<Scope> make_pipeline(const Group &group, pipeline_shared_state<Scope, Stages> *state,
                              pipeline_role role, CUDA_CPU_SITE) {
    if (group.thread_rank() == 0)
        state->producers = 0;
    group.sync(cu_file, cu_line);
    if (role == pipeline_role::producer)
        __atomic_add_fetch(&state->producers, 1, __ATOMIC_SEQ_CST);
    group.sync(cu_file, cu_line);
    const ptrdiff_t producers = state->producers;
    return cuda_cpu_detail::shared_pipeline(group, state, producers, (ptrdiff_t)group.size() - producers,
                                            cu_file, cu_line);
}

// Waits for all stages that the caller has committed except the last N.
template <unsigned char N, thread_scope Scope>
void pipeline_consumer_wait_prior(pipeline<Scope> &p, CUDA_CPU_SITE) {
    for (unsigned i = p.tail; p.stages && i + N < p.head; ++i)
        p.produced[i % p.stages].wait_for_phase(i / p.stages, cu_file, cu_line);
}

// ---- copies ----

template <size_t Alignment> struct aligned_size_t {
    static constexpr size_t align = Alignment;
    size_t value;
    explicit constexpr aligned_size_t(size_t n) : value(n) {}
    constexpr operator size_t() const { return value; }
};

namespace cuda_cpu_detail {
template <class Sync> void copy(void *to, const void *from, size_t bytes, Sync &) {
    memcpy(to, from, bytes);
}
inline void copy(void *to, const void *from, size_t bytes, barrier<thread_scope_block> &b) {
    b.copy_later(0, [=] { memcpy(to, from, bytes); });
}
} // namespace cuda_cpu_detail

// Copies by a thread, or by a group's threads, each a share, for the users of the barrier or pipeline
template <class To, class From, class Shape, class Sync>
void memcpy_async(To *to, const From *from, Shape bytes, Sync &sync) {
    cuda_cpu_detail::copy((void *)to, (const void *)from, (size_t)bytes, sync);
}
template <class Group, class Shape, class Sync,
          class = decltype(::std::declval<const Group &>().thread_rank())>
void memcpy_async(const Group &group, void *to, const void *from, Shape bytes, Sync &sync) {
    const size_t n = (size_t)group.size(), rank = (size_t)group.thread_rank(), all = (size_t)bytes;
    const size_t share = (all / n + 16) / 16 * 16, begin = rank * share;
    if (begin < all)
        cuda_cpu_detail::copy((char *)to + begin, (const char *)from + begin,
                              all - begin < share ? all - begin : share, sync);
}

} // namespace cuda

#include "letters_on.h"
