// SPDX-License-Identifier: MIT
// Warp operations of all lanes in kernels that were split into loops (translate/loops/); a part of kernel.h
//
// Each thread puts its operand, and a later region takes the result. The same code runs with fibers: then
// the operation itself is called. The value of a lane that has returned or does not exist reads as all ones.
#pragma once

namespace cuda_cpu {

uint64_t reduce(WarpOp op, uint64_t a, uint64_t b);

template <class T> struct TypeTag {};

// The operands of one warp operation, at most 8 bytes for each thread of the block. There is room for 32 more
// before the first and after the last. So a shuffle can read the other lane's operand without testing whether
// there is such a lane, and then choose between it and the lane's own operand.
template <class W> class WarpOperands {
    static constexpr size_t margin = 32 * 8;
    const W &range;
    alignas(8) mutable char single[8];
    char *const all;

  public:
    // `gaps`: some threads have returned, or will return before they store an operand.
    // Inlined, so that the compiler knows that nothing else accesses the object, and uses vectors.
    __attribute__((always_inline)) WarpOperands(const W &w, bool gaps)
        : range(w),
          all(W::fibers ? single : (char *)current_block->keep((w.count + 95) / 32 * margin) + margin) {
        if (!W::fibers && (gaps || w.count % 32))
            std::memset((void *)all, 0xff, (w.count + 31) / 32 * margin);
    }
    __attribute__((always_inline)) ~WarpOperands() {
        if (!W::fibers)
            current_block->release(all - margin);
    }
    WarpOperands(const WarpOperands &) = delete;

    template <class T> void put(size_t row, unsigned x, T value) const {
        ((Shuffled<T> *)all + row)[x] = value;
    }
    template <class T> Shuffled<T> own(size_t row, unsigned x, TypeTag<T>) const {
        return ((Shuffled<T> *)all + row)[x];
    }

#define CUDA_CPU_TAKE(name, Operand, own, source)                                                            \
    template <class T>                                                                                       \
    Shuffled<T> name(size_t row, unsigned x, TypeTag<T>, Operand operand, unsigned width = 32,               \
                     CUDA_CPU_SITE) const {                                                                  \
        const Shuffled<T> *const mine = (const Shuffled<T> *)all + row + x, same = *mine;                    \
        if constexpr (W::fibers)                                                                             \
            return from_bits<Shuffled<T>>(                                                                   \
                warp_operation(WarpOp::name, ~0u, to_bits(same), (int)operand, (int)width, CUDA_CPU_HERE));  \
        [[maybe_unused]] const unsigned lane = ((unsigned)row + x) % 32, at = lane & (width - 1),            \
                                        most = (operand & 31) < width ? operand & 31 : width;                \
        const Shuffled<T> other = mine[(int)(source)];                                                       \
        return own ? same : other;                                                                           \
    }
    CUDA_CPU_TAKE(shuffle_index, int, false, (operand & (width - 1)) - at)
    CUDA_CPU_TAKE(shuffle_up, unsigned, at < most, -most)
    CUDA_CPU_TAKE(shuffle_down, unsigned, at + most >= width, most)
    CUDA_CPU_TAKE(shuffle_xor, int, (lane ^ (operand & 31)) >= lane - at + width,
                  (lane ^ (operand & 31)) - lane)

    // The operand of a vote or reduction: a number of 32 bits, and whether it has a sign
    template <class T> void put_number(size_t row, unsigned x, T value) const {
        put(row, x, (uint64_t)(uint32_t)value | (uint64_t)std::is_signed_v<decltype(+value)> << 32);
    }
    // All operands of a warp become the result.
    void meet(WarpOp op, CUDA_CPU_SITE) const {
        const size_t first = (range.row(range.y, range.z) + range.x) / 32 * 32;
        const unsigned threads =
            W::fibers ? 1 : (range.end_x - range.x) * (range.end_y - range.y) * (range.end_z - range.z);
        for (uint64_t *v = (uint64_t *)all + first, *const end = v + threads; v < end; v += 32) {
            uint64_t result = 0;
            bool any = false;
            for (unsigned lane = 0; lane < (W::fibers ? 1 : 32); ++lane) {
                if (!W::fibers && v[lane] == ~(uint64_t)0)
                    continue;
                const bool is_signed = v[lane] >> 32;
                const WarpOp exact = is_signed                  ? op
                                     : op == WarpOp::reduce_min ? WarpOp::reduce_min_unsigned
                                     : op == WarpOp::reduce_max ? WarpOp::reduce_max_unsigned
                                                                : op;
                const uint32_t value = (uint32_t)v[lane];
                if constexpr (W::fibers)
                    result = warp_operation(exact, ~0u, value, 0, 32, CUDA_CPU_HERE);
                else if (op == WarpOp::ballot)
                    result |= value << lane;
                else
                    result = any ? reduce(exact, result, value) : value;
                any = true;
            }
            *v = result;
        }
    }
    unsigned get(size_t row, unsigned x) const {
        return (unsigned)((uint64_t *)all)[(row + x) / 32 * 32];
    }
    template <class T> auto get(size_t row, unsigned x, TypeTag<T>) const {
        return (decltype(+std::decay_t<T>()))get(row, x);
    }
};

} // namespace cuda_cpu
