// SPDX-License-Identifier: MIT
// Warp operations: all lanes in a mask wait for each other (a rendezvous), then each takes its result.
//
// As on a GPU, the rendezvous does not wait for lanes that have ended, or that the block does not have
// because its last warp is partial. The value of such a lane, or of a lane outside the mask, is undefined in
// CUDA; here it reads as all ones, which is NaN in floating point.
#include "call.h"
#include "race.h"

namespace cuda_cpu {

uint64_t reduce(WarpOp op, uint64_t a, uint64_t b) {
    switch (op) {
    case WarpOp::reduce_add:
        return (uint32_t)(a + b);
    case WarpOp::reduce_min:
        return (uint32_t)std::min((int32_t)a, (int32_t)b);
    case WarpOp::reduce_max:
        return (uint32_t)std::max((int32_t)a, (int32_t)b);
    case WarpOp::reduce_min_unsigned:
        return std::min(a, b);
    case WarpOp::reduce_max_unsigned:
        return std::max(a, b);
    case WarpOp::reduce_and:
        return a & b;
    case WarpOp::reduce_or:
        return a | b;
    default:
        return a ^ b;
    }
}

namespace {

constexpr uint64_t undefined = ~(uint64_t)0;

const char *op_name(WarpOp op) {
    static const char *const before_reductions[] = {
        "__syncwarp",       "__ballot_sync, __any_sync or __all_sync",
        "__shfl_sync",      "__shfl_up_sync",
        "__shfl_down_sync", "__shfl_xor_sync",
        "__match_any_sync", "__match_all_sync"};
    static const char *const after_reductions[] = {"a function of nvcuda::wmma", "__activemask",
                                                   "a store through volatile"};
    return op < WarpOp::reduce_add ? before_reductions[(int)op]
           : op < WarpOp::matrix   ? "__reduce_*_sync"
                                   : after_reductions[(int)op - (int)WarpOp::matrix];
}

// The source lane of a shuffle, as by PTX's shfl: a warp is split into segments of `width` lanes, and a lane
// whose source lies outside its segment reads its own value. The operand's low five bits count.
unsigned source_lane(const Lane &thread, unsigned lane) {
    const unsigned width = thread.width, segment = lane & ~(width - 1);
    const unsigned operand = (unsigned)thread.operand & 31;
    switch (thread.op) {
    case WarpOp::shuffle_index:
        return segment + (operand & (width - 1));
    case WarpOp::shuffle_up:
        return lane - segment < operand ? lane : lane - operand;
    case WarpOp::shuffle_down:
        return lane - segment + operand >= width ? lane : lane + operand;
    default: { // xor: the source may be in an earlier segment, but not in a later one
        const unsigned source = lane ^ operand;
        return source >= segment + width ? lane : source;
    }
    }
}

#define EACH_LANE(set)                                                                                       \
    for (unsigned left = set, lane; left && (lane = (unsigned)__builtin_ctz(left), true); left &= left - 1)

// Computes the results of a warp operation for the lanes in the mask `present`. `lanes` and `values` have 32
// elements, one for each lane of the warp; a result replaces the lane's value.
void compute(const Lane *lanes, uint64_t *values, unsigned present, WarpOp op) {
    uint64_t common = 0, given[32];
    bool first = true, all_equal = true;
    const unsigned mask = lanes[__builtin_ctz(present)].mask;
    switch (op) {
    case WarpOp::sync:
    case WarpOp::matrix: // the operands are pointers to the lanes' fragments, which mma.h reads
        return;
    case WarpOp::shuffle_index:
    case WarpOp::shuffle_up:
    case WarpOp::shuffle_down:
    case WarpOp::shuffle_xor:
        memcpy(given, values, sizeof given);
        EACH_LANE(present) {
            const unsigned source = source_lane(lanes[lane], lane);
            values[lane] = present >> source & 1 ? given[source] : undefined;
        }
        return;
    case WarpOp::match_any:
        memcpy(given, values, sizeof given);
        EACH_LANE(present) {
            uint64_t equal = 0;
            for (unsigned other = 0; other < 32; ++other)
                equal |= (uint64_t)(given[other] == given[lane]) << other;
            values[lane] = equal & present;
        }
        return;
    case WarpOp::ballot:
        EACH_LANE(present) common |= values[lane] << lane;
        break;
    case WarpOp::match_all:
        common = values[__builtin_ctz(present)];
        EACH_LANE(present) all_equal &= values[lane] == common;
        common = all_equal ? mask : 0;
        break;
    default: // the reductions; WarpOp::active is never computed here
        EACH_LANE(present) {
            common = first ? values[lane] : reduce(op, common, values[lane]);
            first = false;
        }
    }
    EACH_LANE(present) values[lane] = common;
}

} // namespace

// Makes the lanes ready in the order of the schedule, as a barrier does. With a fixed order, no schedule
// would reveal that a __syncwarp() is missing after this operation.
//
// The lanes go before other ready threads: a warp continues while its stacks are in the cache. Exceptions:
//
// First, as long as threads that a barrier has released have not run, the lanes go behind these. So every
// thread gets from the barrier to its next warp operation before any warp gets further. Some programs read a
// shared variable after a barrier and write it after a shuffle. That is a data race, but on a GPU it rarely
// has an effect: usually all warps have read the variable before one of them has completed its shuffle.
//
// Second, a warp that waits for another one in a loop with warp operations would wait for ever. So from time
// to time the lanes go behind all others, and a thread that has not run yet is started.
void Worker::make_lanes_ready(unsigned w, unsigned lanes) {
    const unsigned first = w * warpSize;
    uint16_t sequence[warpSize];
    unsigned n = 0;
    if (!order)
        EACH_LANE(lanes) sequence[n++] = (uint16_t)(first + lane);
    else
        for (unsigned i = 0; i < count; ++i)
            if (order[i] / warpSize == w && lanes >> order[i] % warpSize & 1)
                sequence[n++] = order[i];
    const bool others_first = (int)(released_end - head) > 0, all_others_first = ++streak % 256 == 0;
    if (others_first || all_others_first) {
        for (unsigned i = 0; i < n; ++i)
            ready[tail++ % max_threads] = sequence[i];
        start_another |= all_others_first;
    } else {
        head -= n;
        released_end = head;
        for (unsigned i = 0; i < n; ++i)
            ready[(head + i) % max_threads] = sequence[i];
    }
}

// Completes every warp operation for which all lanes of its mask have arrived, and makes these lanes ready.
// `diagnose`: no thread can run. Then it reports lanes that wait in different operations.
void Worker::complete_warp_operation(unsigned w, bool diagnose) {
    Warp &warp = warps[w];
    const Lane *const all = lanes + w * warpSize;
    const unsigned alive = lanes_of(w) & ~warp.ended;
    for (unsigned todo = warp.waiting & ~warp.asking; todo;) {
        const Lane &first = all[__builtin_ctz(todo)];
        const unsigned present = first.mask & alive;
        todo &= todo - 1;
        if ((warp.waiting & present) != present)
            continue;
        const Lane *stranger = nullptr;
        EACH_LANE(present) {
            const Lane &other = all[lane];
            if (other.op != first.op || other.mask != first.mask ||
                (other.op == WarpOp::matrix && !same_site(other.site, first.site)))
                stranger = &other;
        }
        if (stranger) {
            if (diagnose)
                kernel_error("divergent warp operation: lanes that wait for each other call %s with mask "
                             "0x%08x (%s) and %s with mask 0x%08x (%s)",
                             op_name(first.op), first.mask, place(first.site).c_str(), op_name(stranger->op),
                             stranger->mask, place(stranger->site).c_str());
            continue;
        }
        if (first.op == WarpOp::matrix && present != first.mask)
            kernel_error(
                "%s at %s:%d: all 32 lanes of the warp must call it; lanes 0x%08x have returned or do "
                "not exist",
                op_name(first.op), base_name(first.site.file), first.site.line, ~present);
        compute(all, values + w * warpSize, present, first.op);
        if (race_warp_barrier && first.op == WarpOp::sync)
            race_warp_barrier(w, present);
        warp.waiting &= ~present;
        todo &= ~present;
        make_lanes_ready(w, present);
    }
}

Switch meet_lanes(uint3 thread, WarpOp op, unsigned mask, uint64_t value, int operand, int width, Site site) {
    Worker &worker = in_kernel(op_name(op));
    const unsigned t = worker.enter(thread);
    const unsigned w = t / warpSize, lane = t % warpSize;
    if (!(mask >> lane & 1))
        kernel_error("%s at %s: lane %u calls it with mask 0x%08x, which excludes that lane", op_name(op),
                     place(site).c_str(), lane, mask);
    if (width < 1 || width > 32 || (width & (width - 1)))
        kernel_error("%s at %s: width %d is not a power of two up to 32", op_name(op), place(site).c_str(),
                     width);
    worker.lanes[t] = {op, (uint8_t)width, mask, operand, site, worker.barriers};
    worker.values[t] = value;
    Warp &warp = worker.warps[w];
    warp.waiting |= 1u << lane;
    if (op >= WarpOp::active) {
        warp.asking |= 1u << lane;
        ++worker.asking;
        if (op == WarpOp::step && (~warp.asking & ~warp.ended & worker.lanes_of(w)) == 0)
            worker.answer_warp(w, true);
    } else if ((mask & ~warp.ended & ~warp.waiting & worker.lanes_of(w)) == 0) {
        worker.complete_warp_operation(w);
    }
    return worker.wait(t);
}

// Releases the lanes of a warp that wait for all lanes that can reach the same line. WarpOp::active releases
// all of them, grouped by line. WarpOp::step releases those at the earliest line only, because lanes that are
// past it wait for the others, as on a GPU. With `all_here`, all lanes of the warp wait; then nothing is
// released unless all are in the same step.
void Worker::answer_warp(unsigned w, bool all_here) {
    Warp &warp = warps[w];
    const unsigned first = w * warpSize;
    const Lane *earliest = nullptr;
    unsigned together = 0, active = 0;
    EACH_LANE(warp.asking) {
        const Lane &l = lanes[first + lane];
        if (l.op == WarpOp::active) {
            active |= 1u << lane;
        } else if (earliest && same_site(l.site, earliest->site)) {
            together |= 1u << lane;
        } else if (!earliest || l.site.line < earliest->site.line) {
            earliest = &l;
            together = 1u << lane;
        }
    }
    if (all_here && together != warp.asking)
        return;
    const auto answer = [&](unsigned lanes_together) {
        EACH_LANE(lanes_together) values[first + lane] = lanes_together;
        warp.waiting &= ~lanes_together;
        warp.asking &= ~lanes_together;
        asking -= (unsigned)__builtin_popcount(lanes_together);
        make_lanes_ready(w, lanes_together);
    };
    if (together)
        answer(together);
    while (active) {
        const Lane &one = lanes[first + (unsigned)__builtin_ctz(active)];
        together = 0;
        EACH_LANE(active) {
            const Lane &other = lanes[first + lane];
            if (other.operand == one.operand && same_site(other.site, one.site)) // the place on the line
                together |= 1u << lane;
        }
        active &= ~together;
        answer(together);
    }
}

// Releases the waiting lanes of warps in which no lane can run, while lanes of other warps can.
void Worker::answer_blocked() {
    unsigned here[max_threads / warpSize] = {}; // the lanes that wait at the barrier
    for (unsigned i = 0; i < at_barrier; ++i)
        here[arrived[i] / warpSize] |= 1u << arrived[i] % warpSize;
    for (unsigned w = 0; w * warpSize < count; ++w)
        if (warps[w].asking && (lanes_of(w) & ~(warps[w].waiting | warps[w].ended | here[w])) == 0)
            answer_warp(w, false);
}

// Called when no thread can run: then every lane of a warp that can reach a line has reached it.
void Worker::answer_asking() {
    for (unsigned w = 0; w * warpSize < count; ++w)
        if (warps[w].asking)
            answer_warp(w, false);
}

} // namespace cuda_cpu
