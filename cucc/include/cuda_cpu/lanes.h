// SPDX-License-Identifier: MIT
// Warp operations of all lanes in kernels that were split into loops (translate/loops/); a part of kernel.h
//
// Each thread puts its operand, and a later region takes the result. The same code runs with fibers: then
// the operation itself is called. The value of a lane that has returned or does not exist reads as all ones.
#pragma once

namespace cuda_cpu {

uint64_t reduce(WarpOp op, uint64_t a, uint64_t b);

// `tile`: the size of the tile of threads (cooperative_groups.h) that exchanges values of this type, or 0
template <class T, unsigned tile = 0> struct TypeTag {};
template <class T, unsigned tile>
using Exchanged = std::conditional_t<tile != 0, std::decay_t<T>, Shuffled<T>>;

// The lanes in the calling thread's tile of `size` threads. Lanes that the block does not have are left out.
inline unsigned tile_mask(unsigned size) {
    const unsigned thread = thread_rank(), lane = thread % 32, first = lane / size * size;
    const unsigned here = blockDim.x * blockDim.y * blockDim.z - (thread - lane);
    const unsigned tile = (size == 32 ? ~0u : (1u << size) - 1) << first;
    return here >= 32 ? tile : tile & ((1u << here) - 1);
}

// The operands of one warp operation, `room` bytes for each thread of the block. There is room for 32 more
// before the first and after the last. So a shuffle can read the other lane's operand without testing whether
// there is such a lane, and then choose between it and the lane's own operand.
template <class W, size_t room = 8> class WarpOperands {
    static constexpr size_t margin = 32 * room;
    const W &range;
    alignas(16) mutable char single[room];
    char *const all;
    char *const absent; // if not null: whether a thread has stored no operand; for reductions

  public:
    // `gaps`: some threads have returned, or will return before they store an operand.
    // Inlined, so that the compiler knows that nothing else accesses the object, and uses vectors.
    __attribute__((always_inline)) WarpOperands(const W &w, bool gaps)
        : range(w),
          all(W::fibers ? single : (char *)current_block->keep((w.count + 95) / 32 * (margin + 32)) + margin),
          absent(!W::fibers && gaps && room > 8 ? all + (w.count + 63) / 32 * margin : nullptr) {
        if (!W::fibers && (gaps || w.count % 32))
            std::memset((void *)all, 0xff, (w.count + 31) / 32 * margin);
        if (absent)
            std::memset((void *)absent, 1, w.count);
    }
    __attribute__((always_inline)) ~WarpOperands() {
        if (!W::fibers)
            current_block->release(all - margin);
    }
    WarpOperands(const WarpOperands &) = delete;

    template <class T> void put(size_t row, unsigned x, T value) const {
        static_assert(sizeof value <= room && std::is_trivially_copyable_v<T>, "lanes exchange small values");
        ((Shuffled<T> *)all + row)[x] = value;
    }
    // The same for values of up to 32 bytes. A reduction also needs to know which threads have stored one.
    template <class T> void put_of_tile(size_t row, unsigned x, T value) const { put(row, x, value); }
    template <class V, template <class> class Op, class T>
    void put_of_tile(size_t row, unsigned x, V value, TypeTag<Op<T>>) const {
        static_assert(std::is_same_v<V, T>, "the operation is for another type than that of the value");
        put(row, x, value);
        if (absent)
            (absent + row)[x] = 0;
    }
    template <class T> Shuffled<T> own(size_t row, unsigned x, TypeTag<T>) const {
        return ((Shuffled<T> *)all + row)[x];
    }

#define CUDA_CPU_TAKE(name, Operand, own, source)                                                            \
    template <class T, unsigned tile>                                                                        \
    Exchanged<T, tile> name(size_t row, unsigned x, TypeTag<T, tile>, Operand operand,                       \
                            unsigned width = tile ? tile : 32, CUDA_CPU_SITE) const {                        \
        const Shuffled<T> *const mine = (const Shuffled<T> *)all + row + x, same = *mine;                    \
        if constexpr (W::fibers)                                                                             \
            return (Exchanged<T, tile>)shuffle(WarpOp::name, tile ? tile_mask(tile) : ~0u, same,             \
                                               (int)operand, (int)width, CUDA_CPU_HERE);                     \
        [[maybe_unused]] const int lane = lane_of(row, x), end = (int)width, at = lane & (end - 1),          \
                                   by = operand & 31, most = by < end ? by : end;                            \
        Shuffled<T> other = mine[source];                                                                    \
        if (tile && tile < 32 && (source) < -at) /* only other tiles have this lane */                       \
            std::memset((void *)&other, 0xff, sizeof other);                                                 \
        return (Exchanged<T, tile>)(own ? same : other);                                                     \
    }
    CUDA_CPU_TAKE(shuffle_index, int, false, (by & (end - 1)) - at)
    CUDA_CPU_TAKE(shuffle_up, unsigned, at < most, -most)
    CUDA_CPU_TAKE(shuffle_down, unsigned, at + most >= end, most)
    CUDA_CPU_TAKE(shuffle_xor, int, (lane ^ by) >= lane - at + end, (lane ^ by) - lane)

    // The operand of a vote or reduction: a number of 32 bits, and whether it has a sign
    template <class T> void put_number(size_t row, unsigned x, T value) const {
        put(row, x, (uint64_t)(uint32_t)value | (uint64_t)std::is_signed_v<decltype(+value)> << 32);
    }
    // All operands of a warp become the result. With fibers, the lanes of a tile of this size wait.
    void meet(WarpOp op, unsigned size = 32, CUDA_CPU_SITE) const {
        for (uint64_t *v = (uint64_t *)all + first(), *const end = v + threads(); v < end; v += 32) {
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
                    result =
                        warp_operation(exact, size < 32 ? tile_mask(size) : ~0u, value, 0, 32, CUDA_CPU_HERE);
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
    // The lanes of the tile in a ballot
    unsigned get(size_t row, unsigned x, unsigned size) const {
        return get(row, x) >> lane_of(row, x) / size * size & ~0u >> (32 - size);
    }

    // cooperative_groups::reduce(), in the same order: all operands of a tile become the result.
    template <class Tile, template <class> class Op, class T>
    void meet(TypeTag<Tile>, TypeTag<Op<T>>, CUDA_CPU_SITE) const {
        static const char zeros[32] = {};
        constexpr unsigned size = Tile::size();
        auto *const v = (Shuffled<T> *)all + (W::fibers ? 0 : first());
        if constexpr (W::fibers)
            *v = reduce(Tile(), (T)*v, Op<T>(), cu_file, cu_line);
        for (unsigned t = 0; !W::fibers && t < threads(); t += size) {
            const unsigned n = threads() - t < size ? threads() - t : size;
            v[t] = n == size && !absent
                       ? tree<size>(v + t, Op<T>(), size, nullptr)
                       : tree<size>(v + t, Op<T>(), n, absent ? absent + first() + t : zeros);
            for (unsigned k = 1; k < n && (size < 32 || threads() > 32); ++k) // otherwise all read the first
                v[t + k] = v[t];
        }
    }
    // Combines n of `count` neighbouring values in pairs, the pairs in pairs, … What is absent stays as it
    // is.
    template <unsigned count, unsigned step = 1, class V, template <class> class Op, class T>
    __attribute__((always_inline)) static T tree(const V *v, Op<T> op, unsigned n, const char *absent) {
        T pairs[count / 2 + 1];
        for (unsigned k = 0; k < count / 2; ++k)
            pairs[k] = absent && (2 * k + 1 >= n || absent[2 * k * step]) ? (T)v[2 * k]
                                                                          : op((T)v[2 * k], (T)v[2 * k + 1]);
        if constexpr (count <= 2)
            return count == 1 ? (T)v[0] : pairs[0];
        else
            return tree<count / 2, 2 * step>(pairs, op, (n + 1) / 2, absent);
    }
    template <class Tile, template <class> class Op, class T>
    T reduced(size_t row, unsigned x, TypeTag<Tile>, TypeTag<Op<T>>) const {
        return (T)((const Shuffled<T> *)all)[Tile::size() == 32 && threads() == 32 ? first() : row + x];
    }

  private:
    static unsigned lane_of(size_t row, unsigned x) {
        return W::fibers ? lane() : ((unsigned)row + x) % 32;
    }
    size_t first() const {
        return (range.row(range.y, range.z) + range.x) / 32 * 32;
    }
    unsigned threads() const {
        return W::fibers ? 1 : (range.end_x - range.x) * (range.end_y - range.y) * (range.end_z - range.z);
    }
};

} // namespace cuda_cpu
