// SPDX-License-Identifier: MIT
// reduce(): combines the values of the threads of a tile or coalesced group.
#pragma once
#include "../cooperative_groups.h"
#ifdef __CUDACC__

#include "../cuda_cpu/letters_off.h"

namespace cooperative_groups {

// A reduction whose result every thread gets. In each round a thread combines its value with that of the
// thread `step` ranks above. The operands stay in rank order, so `op` has to be associative, but not
// commutative.
template <class Group, class T, class Op> T reduce(const Group &group, T value, Op &&op, CUDA_CPU_SITE) {
    if constexpr (!std::is_base_of_v<detail::lanes, Group>) { // a tile of several warps
        value = group.combine(value, group.thread_rank() == 0 ? group.size() : 1, op, cu_file, cu_line);
        return group.shfl(value, 0, cu_file, cu_line);
    } else {
        const auto &lanes =
            static_cast<const detail::lanes &>(group); // leaves out the lanes that a partial tile lacks
        const unsigned n = lanes.size(), rank = lanes.thread_rank();
        for (unsigned step = 1; step < n; step *= 2) {
            const T other = lanes.shfl_down(value, step, cu_file, cu_line);
            if (rank % (2 * step) == 0 && rank + step < n)
                value = op(value, other);
        }
        return lanes.shfl(value, 0, cu_file, cu_line);
    }
}

// Combines the result with a value in memory, or stores it there. The operation is complete on return; CUDA
// requires a barrier.
template <class Group, class Atomic, class T, class Op>
void reduce_update_async(const Group &group, Atomic &atomic, T value, Op &&op, CUDA_CPU_SITE) {
    const T total = reduce(group, value, op, cu_file, cu_line);
    if (group.thread_rank() == 0) {
        auto old = atomic.load();
        while (!atomic.compare_exchange_weak(old, op(old, total)))
            ;
    }
}
template <class Group, class P, class T, class Op>
void reduce_store_async(const Group &group, P *p, T value, Op &&op, CUDA_CPU_SITE) {
    const T total = reduce(group, value, op, cu_file, cu_line);
    if (group.thread_rank() == 0)
        *p = total;
}

} // namespace cooperative_groups

#include "../cuda_cpu/letters_on.h"
#endif // __CUDACC__
