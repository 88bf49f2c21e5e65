// SPDX-License-Identifier: MIT
// inclusive_scan() and exclusive_scan(): prefix sums over a tile or coalesced group.
#pragma once
#include "../cooperative_groups.h"
#ifdef __CUDACC__

#include "../cuda_cpu/letters_off.h"

namespace cooperative_groups {

// Combines the values of the ranks up to and including the caller's.
template <class Group, class T, class Op = plus<T>>
T inclusive_scan(const Group &group, T value, Op &&op = Op(), CUDA_CPU_SITE) {
    if constexpr (!std::is_base_of_v<detail::lanes, Group>) // a tile of several warps
        return group.combine(value, group.thread_rank() + 1, op, cu_file, cu_line);
    else {
        const auto &lanes = static_cast<const detail::lanes &>(group);
        const unsigned n = lanes.size(), rank = lanes.thread_rank();
        for (unsigned step = 1; step < n; step *= 2) {
            const T before = lanes.shfl_up(value, step, cu_file, cu_line);
            if (rank >= step)
                value = op(before, value);
        }
        return value;
    }
}

// Combines the values of the ranks before the caller's; rank 0 gets T().
template <class Group, class T, class Op = plus<T>>
T exclusive_scan(const Group &group, T value, Op &&op = Op(), CUDA_CPU_SITE) {
    if constexpr (!std::is_base_of_v<detail::lanes, Group>) {
        value = group.combine(value, group.thread_rank(), op, cu_file, cu_line);
        return group.thread_rank() == 0 ? T() : value;
    } else {
        const auto &lanes = static_cast<const detail::lanes &>(group);
        const T before =
            lanes.shfl_up(inclusive_scan(group, value, op, cu_file, cu_line), 1, cu_file, cu_line);
        return lanes.thread_rank() == 0 ? T() : before;
    }
}

// Scans that begin with a value in memory, to which the combined values of the group are added.
template <class Group, class Atomic, class T, class Op = plus<T>>
T exclusive_scan_update(const Group &group, Atomic &atomic, T value, Op &&op = Op(), CUDA_CPU_SITE) {
    const auto &lanes = static_cast<const detail::lanes &>(group);
    const T last = inclusive_scan(group, value, op, cu_file, cu_line),
            mine = exclusive_scan(group, value, op, cu_file, cu_line);
    const unsigned n = lanes.size(), rank = lanes.thread_rank();
    T start = T();
    if (rank == n - 1) {
        start = atomic.load();
        while (!atomic.compare_exchange_weak(start, op(start, last)))
            ;
    }
    start = lanes.shfl(start, n - 1, cu_file, cu_line);
    return rank == 0 ? start : op(start, mine);
}
template <class Group, class Atomic, class T, class Op = plus<T>>
T inclusive_scan_update(const Group &group, Atomic &atomic, T value, Op &&op = Op(), CUDA_CPU_SITE) {
    return op(exclusive_scan_update(group, atomic, value, op, cu_file, cu_line), value);
}

} // namespace cooperative_groups

#include "../cuda_cpu/letters_on.h"
#endif // __CUDACC__
