// SPDX-License-Identifier: MIT
/*
 * Warp operations of all lanes in kernels that were split into loops (translate/expand.c); a part of kernel.h
 *
 * Each thread puts its operand, and a later region takes the result. The same code runs with fibers: then the
 * operation itself is called. The value of a lane that has returned or does not exist reads as all ones.
 */
#pragma once

namespace cuda_cpu {

template <class T> struct Type {};

// The operands of a shuffle. Before the first and after the last there is room for 32 more, which the other
// lanes read without using them, so that a shuffle is two loads and a selection.
template <class W> class Given {
    static constexpr size_t margin = 32 * 8;
    char *const all;

  public:
    // `gaps`: some threads have returned, or return before they put their operand
    Given(const W &way, bool gaps)
        : all((char *)current_block->keep((way.count + 31) / 32 * margin + 2 * margin) + margin) {
        if (gaps || way.count % 32)
            std::memset((void *)all, 0xff, (way.count + 31) / 32 * margin);
    }
    ~Given() { current_block->release(all - margin); }
    Given(const Given &) = delete;

    template <class T> void put(size_t row, unsigned x, T value) const { ((T *)all + row)[x] = value; }

#define CUDA_CPU_TAKE(name, Operand, before, own, source)                                                    \
    template <class T>                                                                                       \
    std::decay_t<T> name(size_t row, unsigned x, Type<T>, Operand operand, unsigned width = 32) const {      \
        const std::decay_t<T> *const mine = (const std::decay_t<T> *)all + row + x;                          \
        [[maybe_unused]] const unsigned i = ((unsigned)row + x) % 32, at = i & (width - 1),                  \
                                        segment = i - at;                                                    \
        before;                                                                                              \
        const auto other = mine[source], same = mine[0];                                                     \
        return own ? same : other;                                                                           \
    }
    CUDA_CPU_TAKE(index, int, , false, (int)(segment + (operand & (width - 1)) - i))
    CUDA_CPU_TAKE(up, unsigned, const int d = operand < 32 ? (int)operand : 32, at < (unsigned)d, -d)
    CUDA_CPU_TAKE(down, unsigned, const int d = operand < width ? (int)operand : 32, at + d >= width, d)
    CUDA_CPU_TAKE(xor_, int, const unsigned from = i ^ (operand & 31), from >= segment + width,
                  (int)(from - i))
#undef CUDA_CPU_TAKE
};

template <> class Given<Single> {
    mutable uint64_t value = 0;

  public:
    Given(const Single &, bool) {}
    template <class T> void put(size_t, unsigned, T v) const { value = to_bits(v); }

#define CUDA_CPU_TAKE(name, op)                                                                              \
    template <class T>                                                                                       \
    std::decay_t<T> name(size_t, unsigned, Type<T>, int operand, int width = 32, CUDA_CPU_SITE) const {      \
        return from_bits<std::decay_t<T>>(                                                                   \
            warp_operation(WarpOp::op, ~0u, value, operand, width, CUDA_CPU_HERE));                          \
    }
    CUDA_CPU_TAKE(index, shuffle_index)
    CUDA_CPU_TAKE(up, shuffle_up)
    CUDA_CPU_TAKE(down, shuffle_down)
    CUDA_CPU_TAKE(xor_, shuffle_xor)
#undef CUDA_CPU_TAKE
};

// The operands of a vote or a reduction, and the results
template <class W> class Vote {
    unsigned *const all;
    const Way &way;
    mutable bool is_signed = false;
    bool *present() const { return (bool *)(all + (way.count + 31) / 32 * 33); }

    template <class F> void fold(unsigned start, F add) const {
        const size_t first = way.row(way.y, way.z) + way.x;
        const unsigned threads = (way.end_x - way.x) * (way.end_y - way.y) * (way.end_z - way.z);
        for (size_t warp = first / 32; warp < (first + threads + 31) / 32; ++warp) {
            unsigned result = start;
            for (unsigned lane = 0; lane < 32; ++lane)
                if (present()[32 * warp + lane])
                    result = add(result, all[32 * warp + lane], lane);
            all[(way.count + 31) / 32 * 32 + warp] = result;
        }
    }

  public:
    Vote(const W &w, bool)
        : all((unsigned *)current_block->keep((w.count + 31) / 32 * (33 * 4 + 32))), way(w) {
        std::memset(present(), 0, (w.count + 31) / 32 * 32);
    }
    ~Vote() { current_block->release(all); }
    Vote(const Vote &) = delete;

    template <class T> void put(size_t row, unsigned x, T value) const {
        is_signed = std::is_signed_v<decltype(+value)>;
        all[row + x] = (unsigned)value;
        present()[row + x] = true;
    }
    void meet(WarpOp op) const {
        switch (op) {
        case WarpOp::ballot:
            return fold(0, [](unsigned a, unsigned b, unsigned lane) { return a | b << lane; });
        case WarpOp::reduce_add:
            return fold(0, [](unsigned a, unsigned b, unsigned) { return a + b; });
        case WarpOp::reduce_min:
            return is_signed ? fold(INT32_MAX,
                                    [](unsigned a, unsigned b, unsigned) { return (int)a < (int)b ? a : b; })
                             : fold(~0u, [](unsigned a, unsigned b, unsigned) { return a < b ? a : b; });
        case WarpOp::reduce_max:
            return is_signed ? fold(1u << 31,
                                    [](unsigned a, unsigned b, unsigned) { return (int)a > (int)b ? a : b; })
                             : fold(0, [](unsigned a, unsigned b, unsigned) { return a > b ? a : b; });
        case WarpOp::reduce_and:
            return fold(~0u, [](unsigned a, unsigned b, unsigned) { return a & b; });
        case WarpOp::reduce_or:
            return fold(0, [](unsigned a, unsigned b, unsigned) { return a | b; });
        default:
            return fold(0, [](unsigned a, unsigned b, unsigned) { return a ^ b; });
        }
    }
    unsigned get(size_t row, unsigned x) const { return all[(way.count + 31) / 32 * 32 + (row + x) / 32]; }
    template <class T> auto get(size_t row, unsigned x, Type<T>) const { return (decltype(+T()))get(row, x); }
};

template <> class Vote<Single> {
    mutable unsigned value = 0;
    mutable bool is_signed = false;

  public:
    Vote(const Single &, bool) {}
    template <class T> void put(size_t, unsigned, T v) const {
        is_signed = std::is_signed_v<decltype(+v)>;
        value = (unsigned)v;
    }
    void meet(WarpOp op, CUDA_CPU_SITE) const {
        if (!is_signed && (op == WarpOp::reduce_min || op == WarpOp::reduce_max))
            op = op == WarpOp::reduce_min ? WarpOp::reduce_min_unsigned : WarpOp::reduce_max_unsigned;
        value = (unsigned)warp_operation(op, ~0u, value, 0, 32, CUDA_CPU_HERE);
    }
    unsigned get(size_t, unsigned) const { return value; }
    template <class T> auto get(size_t, unsigned, Type<T>) const { return (decltype(+T()))value; }
};

} // namespace cuda_cpu
