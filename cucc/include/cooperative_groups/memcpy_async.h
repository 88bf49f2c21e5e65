// SPDX-License-Identifier: MIT
// memcpy_async(), wait() and wait_prior(): copies by all threads of a group.
#pragma once
#include "../cooperative_groups.h"
#ifdef __CUDACC__

#include "../cuda_cpu/letters_off.h"

namespace cooperative_groups {

// Each thread copies its share before this returns, so the copy is complete after wait().
template <class Group> void memcpy_async(const Group &group, void *to, const void *from, size_t bytes) {
    const size_t n = (size_t)group.size(), rank = (size_t)group.thread_rank();
    const size_t share = (bytes / n + 15) / 16 * 16 + (bytes % n ? 16 : 0), begin = rank * share;
    if (begin < bytes)
        memcpy((char *)to + begin, (const char *)from + begin, bytes - begin < share ? bytes - begin : share);
}
template <class Group, class T, class Shape>
void memcpy_async(const Group &group, T *to, const T *from, const Shape &bytes) {
    memcpy_async(group, (void *)to, (const void *)from, (size_t)bytes);
}
// With the number of elements on either side; copies the smaller number.
template <class Group, class T, class To, class From>
void memcpy_async(const Group &group, T *to, const To &to_elements, const T *from,
                  const From &from_elements) {
    const size_t n =
        (size_t)to_elements < (size_t)from_elements ? (size_t)to_elements : (size_t)from_elements;
    memcpy_async(group, (void *)to, (const void *)from, n * sizeof(T));
}

template <class Group> void wait(const Group &group, CUDA_CPU_SITE) {
    group.sync(cu_file, cu_line);
}
template <unsigned COUNT, class Group> void wait_prior(const Group &group, CUDA_CPU_SITE) {
    group.sync(cu_file, cu_line);
}

} // namespace cooperative_groups

#include "../cuda_cpu/letters_on.h"
#endif // __CUDACC__
