// SPDX-License-Identifier: MIT
/*
 * Warp operations: a rendezvous of the lanes in a mask, after which each lane takes its result.
 *
 * As on a GPU, the rendezvous does not wait for lanes that have ended, or that the block does not
 * have because its last warp is partial. The value of such a lane, or of a lane outside the mask,
 * is undefined in CUDA; here it reads as all ones, which is NaN in floating point.
 */
#include "block.h"

#include <algorithm>

namespace cuda_cpu {

namespace {

constexpr uint64_t undefined = ~(uint64_t)0;

const char *op_name(WarpOp op) {
    switch (op) {
    case WarpOp::sync:
        return "__syncwarp";
    case WarpOp::ballot:
        return "__ballot_sync, __any_sync or __all_sync";
    case WarpOp::shuffle_index:
        return "__shfl_sync";
    case WarpOp::shuffle_up:
        return "__shfl_up_sync";
    case WarpOp::shuffle_down:
        return "__shfl_down_sync";
    case WarpOp::shuffle_xor:
        return "__shfl_xor_sync";
    case WarpOp::match_any:
        return "__match_any_sync";
    case WarpOp::match_all:
        return "__match_all_sync";
    case WarpOp::active:
        return "__activemask";
    default:
        return "__reduce_*_sync";
    }
}

// The source lane of a shuffle, as PTX's shfl instruction defines it: a warp is split into segments
// of `width` lanes, and a lane whose source lies outside its segment reads its own value.
unsigned source_lane(const Thread &thread, unsigned lane) {
    const unsigned width = (unsigned)thread.width, segment = lane & ~(width - 1);
    const unsigned operand = (unsigned)thread.operand;
    switch (thread.op) {
    case WarpOp::shuffle_index:
        return segment + (operand & (width - 1));
    case WarpOp::shuffle_up:
        return lane - segment < operand ? lane : lane - operand;
    case WarpOp::shuffle_down:
        return operand >= width || lane - segment + operand >= width ? lane : lane + operand;
    default: { // xor: the source may be in an earlier segment, but not in a later one
        const unsigned source = lane ^ (operand & 31);
        return source >= segment + width ? lane : source;
    }
    }
}

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

// Computes the result of every lane in `present`. `threads` points to the records of the warp's
// lanes.
void compute(Thread *threads, unsigned present, WarpOp op) {
    uint64_t common = 0;
    bool first = true, all_equal = true;
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (!(present >> lane & 1))
            continue;
        const uint64_t value = threads[lane].value;
        if (op == WarpOp::ballot)
            common |= value << lane;
        else if (op >= WarpOp::reduce_add) // the reductions; WarpOp::active never gets here
            common = first ? value : reduce(op, common, value);
        else if (first)
            common = value;
        all_equal &= value == common;
        first = false;
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (!(present >> lane & 1))
            continue;
        Thread &thread = threads[lane];
        switch (op) {
        case WarpOp::sync:
            break;
        case WarpOp::shuffle_index:
        case WarpOp::shuffle_up:
        case WarpOp::shuffle_down:
        case WarpOp::shuffle_xor: {
            const unsigned source = source_lane(thread, lane);
            thread.result = present >> source & 1 ? threads[source].value : undefined;
            break;
        }
        case WarpOp::match_any:
            thread.result = 0;
            for (unsigned other = 0; other < 32; ++other)
                if (present >> other & 1 && threads[other].value == thread.value)
                    thread.result |= 1u << other;
            break;
        case WarpOp::match_all:
            thread.result = all_equal ? thread.mask : 0;
            break;
        default:
            thread.result = common;
        }
    }
}

} // namespace

// Queues the lanes in the order of the schedule, as meet_block does after a barrier. In a fixed
// order no schedule would reveal a __syncwarp() that is missing after this operation.
void Worker::make_lanes_ready(unsigned w, unsigned lanes) {
    const unsigned first = w * warpSize;
    if (!order)
        for (unsigned left = lanes; left; left &= left - 1)
            make_ready(first + (unsigned)__builtin_ctz(left));
    else
        for (unsigned i = 0; i < count; ++i)
            if (order[i] / warpSize == w && lanes >> order[i] % warpSize & 1)
                make_ready(order[i]);
}

// Completes every rendezvous of the warp whose lanes have all arrived, and makes these lanes ready.
void Worker::complete_warp_operation(unsigned w) {
    Warp &warp = warps[w];
    Thread *const lanes = threads + w * warpSize;
    const unsigned here = std::min(count - w * warpSize, (unsigned)warpSize);
    const unsigned alive = (here == 32 ? ~0u : (1u << here) - 1) & ~warp.ended;
    const Thread *one = nullptr, *other = nullptr; // a pair of lanes that disagree
    bool completed = false;
    for (unsigned todo = warp.waiting; todo;) {
        const Thread &first = lanes[__builtin_ctz(todo)];
        const unsigned present = first.mask & alive;
        todo &= todo - 1;
        if ((warp.waiting & present) != present)
            continue;
        const Thread *stranger = nullptr;
        for (unsigned left = present; left; left &= left - 1) {
            const Thread &lane = lanes[__builtin_ctz(left)];
            if (lane.op != first.op || lane.mask != first.mask)
                stranger = &lane;
        }
        if (stranger) { // an error only if no other rendezvous completes
            one = &first;
            other = stranger;
            continue;
        }
        compute(lanes, present, first.op);
        completed = true;
        warp.waiting &= ~present;
        todo &= ~present;
        make_lanes_ready(w, present);
    }
    if (one && !completed)
        kernel_error("divergent warp operation: lanes that wait for each other call %s with mask "
                     "0x%08x (%s:%d) and %s with mask 0x%08x (%s:%d)",
                     op_name(one->op), one->mask, base_name(one->site.file), one->site.line,
                     op_name(other->op), other->mask, base_name(other->site.file), other->site.line);
}

uint64_t meet_lanes(uint3 thread, WarpOp op, unsigned mask, uint64_t value, int operand, int width,
                    Site site) {
    Worker &worker = in_kernel(op_name(op));
    const unsigned t = worker.enter(thread);
    const unsigned w = t / warpSize, lane = t % warpSize;
    if (!(mask >> lane & 1))
        kernel_error("%s at %s:%d: lane %u calls it with mask 0x%08x, which excludes that lane", op_name(op),
                     base_name(site.file), site.line, lane, mask);
    if (width < 1 || width > 32 || (width & (width - 1)))
        kernel_error("%s at %s:%d: width %d is not a power of two up to 32", op_name(op),
                     base_name(site.file), site.line, width);
    Thread &me = worker.threads[t];
    me.site = site;
    me.op = op;
    me.mask = mask;
    me.value = value;
    me.operand = operand;
    me.width = width;
    me.state = State::at_warp_operation;
    if (op == WarpOp::active) {
        ++worker.asking;
    } else {
        worker.warps[w].waiting |= 1u << lane;
        worker.complete_warp_operation(w);
    }
    worker.wait(t);
    return me.result;
}

// Answers __activemask. No other thread can run, so every lane of a warp that can reach the call
// has reached it. The lanes of a warp that call it from the same line are active together.
void Worker::answer_active_lanes() {
    asking = 0;
    for (unsigned first = 0; first < count; first += warpSize) {
        const unsigned end = std::min(first + warpSize, count);
        const auto asks = [&](unsigned t) {
            return threads[t].state == State::at_warp_operation && threads[t].op == WarpOp::active;
        };
        for (unsigned t = first; t < end; ++t) {
            if (!asks(t))
                continue;
            unsigned together = 0;
            for (unsigned other = t; other < end; ++other)
                if (asks(other) && same_site(threads[other].site, threads[t].site))
                    together |= 1u << (other - first);
            for (unsigned left = together; left; left &= left - 1)
                threads[first + (unsigned)__builtin_ctz(left)].result = together;
            make_lanes_ready(first / warpSize, together);
        }
    }
}

} // namespace cuda_cpu
