// SPDX-License-Identifier: MIT
// The work of streams. By default each call does its work before it returns, and the queues stay empty. With
// CUDA_CPU_STREAMS=late or random:SEED it stays in the queue of its stream until the program waits for it.
// Only work that must have completed by then runs, and with random:SEED other work that is ready may run
// before it.
//
// Until all kernels of asynchronous launches (launch.h) have ended, work is deferred as with `late`, also by
// default. So the program continues, and it can write what the kernel polls.
#include "race.h"
#include "stream.h"
#include "cuda_cpu/library.h"

#include <deque>
#include <random>

namespace cuda_cpu {

struct Work {
    Operation operation;
    StreamIdentity stream;
    uint64_t number;                // order of the calls
    std::vector<WorkPointer> after; // dependencies: work that must have completed before this runs
    bool done = false, asked = false;
    AsyncLaunchPointer async{}; // set while this is an asynchronous launch whose kernel runs
};

namespace {

enum class Order { eager, late, random };

struct Queues {
    std::mutex mutex;
    std::map<uint64_t, WorkPointer> last; // key: the stream's number
    std::deque<WorkPointer> pending;      // in the order of the calls
    uint64_t calls = 0;
    std::mutex running; // held while deferred work runs
    std::atomic<Order> order{Order::eager};
    bool late_for_async = false; // `order` is late only until the last asynchronous launch is complete
    bool always_eager = false;
    std::minstd_rand random;

    Queues() {
        uint64_t seed = 0;
        order = (Order)setting_of("CUDA_CPU_STREAMS", {"eager", "late", "random:SEED"}, &seed);
        if (!getenv("CUDA_CPU_STREAMS") && race_enqueue) // null unless the program is built for race checking
            order = Order::late;
        if (order == Order::eager)
            return;
        random.seed((unsigned)seed + 1);
        ++storing;
        atexit([] { tell_of_unfinished(); });
    }
    static void tell_of_unfinished();
};

ONLY(queues, Queues)

// Reports work that the program started but never waited for, and which therefore has not run.
void Queues::tell_of_unfinished() {
    Queues &q = queues();
    const Operation *last = nullptr;
    bool runs = false;
    for (const WorkPointer &work : q.pending)
        if (!work->done && work->operation.what.index() != 0 &&
            !std::get_if<Allocate>(&work->operation.what) && !(work->async && kernel_ended(work->async))) {
            last = &work->operation;
            runs = work->async != nullptr;
        }
    if (!last)
        return;
    const StoredLaunch *const launch = std::get_if<StoredLaunch>(&last->what);
    const std::string name = launch
                                 ? launch->kernel.name + (", launched at " + place(launch->kernel.site) + ",")
                                 : std::string("a ") + last->call;
    print_line("the program ended without waiting for its streams: %s %s", name.c_str(),
               runs ? "still ran" : "did not run");
}

template <class Works> void drop_done(Works &work) {
    work.erase(std::remove_if(work.begin(), work.end(), [](const WorkPointer &w) { return w->done; }),
               work.end());
}

// The dependencies of new work in the stream: the last work of the stream itself. The legacy default stream
// and the blocking streams of a device also wait for each other's newer work. The race detector is told of
// dependencies also when they are done already. The caller holds the mutex.
std::vector<WorkPointer> predecessors(Queues &q, const StreamIdentity &stream) {
    std::vector<WorkPointer> before;
    const auto own = q.last.find(stream.number);
    uint64_t newest = 0;
    if (own != q.last.end() && (!own->second->done || race_enqueue)) {
        before.push_back(own->second);
        newest = before[0]->number;
    }
    for (const auto &[number, work] : q.last) {
        const StreamIdentity &other = work->stream;
        const bool implicit = other.device == stream.device && (stream.legacy || other.legacy) &&
                              (stream.legacy || stream.blocking) && (other.legacy || other.blocking);
        if (number != stream.number && implicit && (!work->done || race_enqueue) && work->number > newest)
            before.push_back(work);
    }
    return before;
}

// Adds work at the end of the stream's queue. The caller holds the mutex.
WorkPointer append(Queues &q, const StreamIdentity &stream, std::vector<WorkPointer> after,
                   Operation operation) {
    operation.device = stream.device;
    if (race_enqueue) {
        std::vector<uint64_t> before;
        for (const WorkPointer &one : after)
            before.push_back(one->number);
        const StoredLaunch *const launch = std::get_if<StoredLaunch>(&operation.what);
        race_enqueue(q.calls + 1, stream.number, before, operation.call ? operation.call : "a wait",
                     launch ? &launch->config : nullptr);
    }
    const WorkPointer work(new Work{std::move(operation), stream, ++q.calls, std::move(after)});
    q.last[stream.number] = work;
    q.pending.push_back(work);
    return work;
}

// Runs work whose dependencies are done. Afterwards it is done, or it is an asynchronous launch.
cudaError_t run_work(Queues &q, Work &work) {
    if (race_begin)
        race_begin(work.number);
    AsyncLaunchPointer async;
    const int device = work.operation.device;
    const cudaError_t error = perform(work.operation, &async);
    if (race_end)
        race_end();
    std::lock_guard lock(q.mutex);
    work.async = async;
    work.done = !async;
    if (work.done)
        work.operation = {};
    return error ? error : sticky_error(device);
}

// Completes an asynchronous launch whose kernel has ended.
cudaError_t complete(Queues &q, Work &work) {
    const int device = work.operation.device;
    const OnDevice current(device);
    complete_launch(work.async);
    std::lock_guard lock(q.mutex);
    work.done = true;
    work.operation = {};
    return sticky_error(device);
}

// The first work that can run now; null if there is none.
WorkPointer ready_work(Queues &q) {
    std::lock_guard lock(q.mutex);
    for (const WorkPointer &work : q.pending) {
        drop_done(work->after);
        if (!work->done && !work->async && work->after.empty())
            return work;
    }
    return nullptr;
}

// Runs the work and everything that it depends on; returns the first error. Without `wait`, returns when the
// next step would be to wait for the kernel of an asynchronous launch.
cudaError_t run_until(Queues &q, const WorkPointer &target, bool wait) {
    HostWait host;
    cudaError_t first = cudaSuccess;
    const auto note = [&](cudaError_t error) { first = first ? first : error; };
    std::vector<WorkPointer> stack = {target};
    while (!stack.empty()) {
        WorkPointer work = stack.back();
        {
            std::lock_guard lock(q.mutex);
            drop_done(work->after);
            if (work->done) {
                stack.pop_back();
                continue;
            }
            if (!work->after.empty()) { // streams that were created last come first
                const size_t pick =
                    q.order == Order::random ? q.random() % work->after.size() : work->after.size() - 1;
                stack.push_back(work->after[pick]);
                continue;
            }
        }
        if (!work->async) {
            note(run_work(q, *work));
        } else if (kernel_ended(work->async)) {
            note(complete(q, *work));
        } else if (const WorkPointer other = wait ? ready_work(q) : nullptr) {
            note(run_work(q, *other)); // the kernel may poll what this work writes
        } else if (wait) {
            const AsyncLaunchPointer async = work->async;
            q.running.unlock(); // another host thread may run the work that writes what the kernel polls
            host.wait(async);
            q.running.lock();
        } else {
            break;
        }
    }
    return first;
}

cudaError_t run_all(const std::vector<WorkPointer> &targets, bool wait = true) {
    if (in_kernel_now()) // cudaFree in device code does not synchronise
        return cudaSuccess;
    Queues &q = queues();
    std::lock_guard running(q.running);
    cudaError_t first = cudaSuccess;
    const auto note = [&](cudaError_t error) { first = first ? first : error; };
    for (const WorkPointer &target : targets) {
        // In random order: a random pending work runs first, in rounds, each the last with probability 1/2.
        while (q.order == Order::random) {
            WorkPointer other;
            {
                std::lock_guard lock(q.mutex);
                if (q.random() / 64 % 2 || q.pending.empty())
                    break;
                other = q.pending[q.random() % q.pending.size()];
            }
            note(run_until(q, other, wait));
        }
        note(run_until(q, target, wait));
        if (race_waited)
            race_waited(target->number);
    }
    std::lock_guard lock(q.mutex);
    drop_done(q.pending);
    if (q.late_for_async && q.pending.empty()) {
        q.late_for_async = false;
        q.order = Order::eager;
        --storing;
    }
    return first;
}

cudaError_t perform_here(const Operation &o) {
    struct Visitor {
        const char *call;
        cudaError_t error = cudaSuccess;

        void operator()(const std::monostate &) {}
        void operator()(const StoredLaunch &l) { error = run_launch(l.config, l.kernel, l.cooperative); }
        void operator()(const Transfer &t) {
            error = check_transfer(call, t); // memory may have been freed meanwhile
            if (!error)
                move(t);
        }
        void operator()(const Fill &f) {
            error = check_fill(call, f);
            if (!error)
                fill_now(f);
        }
        void operator()(const HostCall &h) {
            run_callback(
                [&] { h.function ? h.function(h.data) : h.callback(h.stream, cudaSuccess, h.data); });
        }
        void operator()(const LibraryWork &l) {
            const DeviceAccess access;
            in_library = true;
            l.work();
            in_library = false;
        }
        void operator()(const RecordEvent &r) { record_event(r.event); }
        void operator()(const WaitEvent &) {}
        void operator()(const Allocate &a) {
            const DeviceAccess access;
            if (!find_allocation(a.pointer))
                return; // another stream has freed it
            if (race_allocate)
                race_allocate(a.pointer, a.bytes);
            memset(a.pointer, fresh_byte(), a.bytes);
        }
        void operator()(const Release &r) {
            if (r.of_graph)
                return;
            const auto a = find_allocation(r.pointer);
            if (race_copy && a)
                race_copy(a->base, a->size, true); // no other stream may still use the memory
            error = free_device(call, r.pointer);
        }
        void operator()(const Subgraph &s) { error = run_graph(*s.run); }
        void operator()(const Conditional &c) { error = run_conditional(c); }
    };
    Visitor visitor{o.call};
    std::visit(visitor, o.what);
    return visitor.error;
}

} // namespace

std::atomic<int> storing{0};

// Makes the queues before main, which reads the environment before the program's first call.
[[maybe_unused]] static const bool queues_made = (queues(), true);

bool order_backwards() {
    return queues().order == Order::late && !queues().late_for_async;
}

cudaError_t perform(const Operation &operation, AsyncLaunchPointer *async) {
    const OnDevice device(operation.device);
    const StoredLaunch *const launch = std::get_if<StoredLaunch>(&operation.what);
    if (launch && async && kernels_may_poll() && !queues().always_eager)
        return start_launch(*launch, *async);
    return perform_here(operation);
}

cudaError_t submit(cudaStream_t stream, Operation operation, bool wait) {
    if (in_kernel_now())
        return store_child(std::move(operation));
    const StreamIdentity id = identity(stream);
    const char *const call = operation.call;
    operation.device = id.device;
    if (captures(stream))
        return wait ? refuse_in_capture(call, stream) : add_captured(stream, std::move(operation));
    if (id.legacy)
        TRY(refuse_legacy(call));
    Queues &q = queues();
    WorkPointer work;
    {
        std::lock_guard lock(q.mutex);
        if (q.order != Order::eager)
            work = append(q, id, predecessors(q, id), std::move(operation));
    }
    if (work)
        return wait ? run_all({work}) : cudaSuccess;
    AsyncLaunchPointer async;
    const cudaError_t error = perform(operation, &async);
    if (async) {
        std::lock_guard lock(q.mutex);
        append(q, id, predecessors(q, id), std::move(operation))->async = async;
        if (q.order == Order::eager) {
            q.order = Order::late;
            q.late_for_async = true;
            ++storing;
        }
    }
    return error;
}

cudaError_t library_call(const char *call, cudaStream_t stream, std::function<void()> work, bool wait) {
    BEGIN_IN(stream);
    return submit(stream, {call, LibraryWork{std::move(work)}}, wait);
}

WorkPointer last_work(cudaStream_t stream) {
    const StreamIdentity id = identity(stream);
    Queues &q = queues();
    std::lock_guard lock(q.mutex);
    if (q.order == Order::eager)
        return nullptr;
    std::vector<WorkPointer> before = predecessors(q, id);
    if (before.empty())
        return nullptr;
    if (before.size() == 1 && before[0]->stream.number == id.number)
        return before[0];
    return append(q, id, std::move(before), {}); // an empty operation with all these dependencies
}

bool is_done(const WorkPointer &work) {
    std::lock_guard lock(queues().mutex);
    return !work || work->done;
}

bool completed(const WorkPointer &work) {
    if (is_done(work)) {
        if (work && race_waited)
            race_waited(work->number);
        return true;
    }
    {
        std::lock_guard lock(queues().mutex);
        if (!work->asked) {
            work->asked = true;
            return false;
        }
    }
    run_all({work}, false);
    return is_done(work);
}

cudaError_t finish(const WorkPointer &work) {
    return work ? run_all({work}) : cudaSuccess;
}

void order_after(cudaStream_t stream, const WorkPointer &work) {
    if (!work || (is_done(work) && !race_enqueue))
        return;
    const StreamIdentity id = identity(stream);
    Queues &q = queues();
    std::lock_guard lock(q.mutex);
    std::vector<WorkPointer> after = predecessors(q, id);
    after.push_back(work);
    append(q, id, std::move(after), {});
}

// Later work in other streams may still have to wait for the stream's pending work.
void forget_queue(cudaStream_t stream) {
    const uint64_t number = identity(stream).number;
    Queues &q = queues();
    std::lock_guard lock(q.mutex);
    const auto own = q.last.find(number);
    if (own != q.last.end() && own->second->done && !race_enqueue)
        q.last.erase(own);
}

cudaError_t finish_device(int device) {
    if (at_once())
        return cudaSuccess;
    Queues &q = queues();
    std::vector<WorkPointer> targets;
    {
        std::lock_guard lock(q.mutex);
        for (const WorkPointer &work : q.pending)
            if (device < 0 || work->stream.device == device)
                targets.push_back(work);
        for (const auto &[number, work] : q.last) // done already: only the race detector is told of it
            if (race_enqueue && work->done && (device < 0 || work->stream.device == device))
                targets.push_back(work);
    }
    if (targets.empty())
        return cudaSuccess;
    // The work of the stream that was created last comes first.
    std::stable_sort(targets.begin(), targets.end(), [](const WorkPointer &a, const WorkPointer &b) {
        return a->stream.number > b->stream.number;
    });
    return run_all(targets);
}

} // namespace cuda_cpu

// Switches deferred work off, with a message. The headers of Thrust call it before main, because Thrust's
// algorithms are host code: they do not wait for streams.
void cuda_cpu_eager_streams(const char *library) {
    Queues &q = queues();
    q.always_eager = true;
    if (q.order == Order::eager)
        return;
    print_line("work in streams runs at once, because this program uses %s: missing waits do not show",
               library);
    q.order = Order::eager;
    --storing;
}
