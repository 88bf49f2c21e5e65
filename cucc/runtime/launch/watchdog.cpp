// SPDX-License-Identifier: MIT
// The watchdog (docs/execution.md) ends a program whose kernel waits for ever, for example for a lock that
// is never released. A worker that computes does not poll, so a gap between two polls restarts its time.
//
// Polling with plain loads cannot be recognised. CUDA_CPU_TIME_LIMIT ends any launch in which no blocks were
// distributed to workers for that many seconds. There is no limit unless it is set.
#include "stream.h"

#include <chrono>
#include <thread>

namespace cuda_cpu {
namespace {

double seconds_from(const char *name, double otherwise) {
    const char *value = getenv(name);
    if (!value)
        return otherwise;
    char *end;
    const double seconds = strtod(value, &end);
    if (end == value || *end || !(seconds >= 0 && seconds <= 1e6))
        refuse_setting(name, value, "a number of seconds, 0 for never");
    return seconds;
}

struct Limits { // seconds; 0: no limit
    double no_progress = seconds_from("CUDA_CPU_WATCHDOG", 60), time = seconds_from("CUDA_CPU_TIME_LIMIT", 0);
};

// The first call is made by a launch, so the environment is read before kernels run.
const Limits &limits() {
    static const Limits all;
    return all;
}

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

} // namespace

Watch::Watch(const Worker &worker) : worker(worker) {
    live<const Worker>().add(&worker);
}

Watch::~Watch() {
    live<const Worker>().take(&worker);
}

void Watch::only_polling() {
    const double limit = limits().no_progress, gap = limit / 4;
    const uint64_t events = (uint64_t)worker.ended + worker.accounted + worker.barriers;
    if (spin.progress || block != block_number || events != seen) {
        spin.progress = false;
        block = block_number;
        seen = events;
        since = 0;
        rounds = 0;
        return;
    }
    if (++rounds >= 4)
        suspend_while_polling();
    if (spin.slept) { // the thread may wait until some time has passed
        spin.slept = false;
        since = 0;
    }
    if (limit == 0 || rounds % 64)
        return;
    const double time = now();
    if (since == 0 || time - last > gap)
        since = time;
    last = time;
    if (time - since < limit)
        return;

    if (host_may_signal()) {
        since = 0;
        return;
    }
    unsigned running = 0;
    {
        std::lock_guard lock(live<const Worker>().mutex);
        for (const Worker *other : live<const Worker>().all) {
            if (!__atomic_load_n(&other->kernel, __ATOMIC_RELAXED))
                continue;
            const Watch &w = other->watch;
            if (w.at_grid_barrier)
                continue;
            if (w.since == 0 || time - w.since < limit || time - w.last > gap)
                return;
            ++running;
        }
    }
    const unsigned long long blocks = (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
    char hint[200] = "";
    if (blocks > running)
        snprintf(hint, sizeof hint,
                 "\n    %u of %llu blocks run at the same time here; if they wait for one that has not "
                 "started, set "
                 "CUDA_CPU_WORKERS=%llu",
                 running, blocks, std::min(blocks, 1024ull));
    const std::string place =
        spin.site.file ? "with atomics that change nothing, such as at " + cuda_cpu::place(spin.site)
                       : "with reads through volatile";
    kernel_error("no progress for %g s: every thread that can run polls, %s: is a lock never released?%s",
                 limit, place.c_str(), hint);
}

// ---- the time limit ----

namespace {

struct Running {
    std::mutex mutex;
    const Kernel *kernel = nullptr; // null while no kernel runs
    const std::atomic<uint64_t> *distributed;
    uint64_t number = 0;
};

ONLY(running_launch, Running)

[[noreturn]] void watch_time(double limit) {
    uint64_t number = 0, distributed = 0;
    const double step = std::min(limit / 4, 0.5);
    double waited = 0; // sum of the steps, so time in which a debugger stops the process is not included
    for (;;) {
        std::this_thread::sleep_for(std::chrono::duration<double>(step));
        Running &launch = running_launch();
        std::lock_guard lock(launch.mutex);
        if (!launch.kernel || launch.number != number || *launch.distributed != distributed) {
            number = launch.number;
            distributed = launch.kernel ? launch.distributed->load() : 0;
            waited = 0;
        } else if ((waited += step) > limit) {
            end_program("kernel %s, launched at %s, runs for ever or very slowly: no further block of "
                        "it has started for %g s (CUDA_CPU_TIME_LIMIT)",
                        launch.kernel->name, place(launch.kernel->site).c_str(), limit);
        }
    }
}

} // namespace

TimeLimit::TimeLimit(const Kernel &kernel, const std::atomic<uint64_t> &distributed) {
    if (limits().time == 0)
        return;
    static std::once_flag once;
    std::call_once(once, [] {
        if (!start_thread([] { watch_time(limits().time); }))
            end_program("CUDA_CPU_TIME_LIMIT: the system refuses a thread: %s", strerror(errno));
    });
    Running &launch = running_launch();
    std::lock_guard lock(launch.mutex);
    launch.kernel = &kernel;
    launch.distributed = &distributed;
    ++launch.number;
}

TimeLimit::~TimeLimit() {
    if (limits().time == 0)
        return;
    std::lock_guard lock(running_launch().mutex);
    running_launch().kernel = nullptr;
}

} // namespace cuda_cpu
