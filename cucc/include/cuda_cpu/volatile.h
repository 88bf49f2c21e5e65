// SPDX-License-Identifier: MIT
// Accesses through `volatile` in kernels, by which the lanes of a warp exchange values in programs written
// before 2017 (docs/execution.md). Each store is a rendezvous of the lanes of the warp that have reached the
// same line: all of them have read their operands before any of them stores, and all have stored before any
// continues. A read that finds the same value again and again is a way to poll, and lets other threads run.
//
// cu2cpp gives pointers and __shared__ variables that are declared volatile in a function the types of this
// file. (This file spells the keyword __volatile__, because cu2cpp looks for the other one.)
#pragma once
#ifdef __cplusplus

namespace cuda_cpu {

CUDA_CPU_RETURN(bool, in_a_kernel, (), current_block != &no_block)

// Blocks a lane until every lane of its warp that can reach this line waits here too, as in lockstep on a GPU
// before Volta. `site` is the line, for messages. Does nothing on the host.
inline void meet_at_line(Site site) {
    if (in_a_kernel())
        warp_operation(WarpOp::step, 1u << lane(), 0, 0, 32, site);
}

// Counts a read through volatile, which may be polling.
template <class T> inline void count_read(const T *p, T value) {
    if (in_a_kernel())
        atomic_without_effect(p, value, {nullptr, 0});
}

// The right operand of an assignment, with the file and line of the assignment.
template <class T> struct Operand {
    T value;
    Site site;
    template <class U>
    Operand(const U &from, const char *file = __builtin_FILE(), int line = __builtin_LINE())
        : value((T)from), site{file, line} {}
};

// A number in memory whose stores make the lanes of a warp run in lockstep. It has the layout of a T. Its
// functions are inlined so that the race detector finds the line that calls them.
#define CUDA_CPU_INLINE __attribute__((always_inline)) inline
template <class T> struct InStep {
    T number;

    InStep(const InStep &) = delete; // not copyable; so it also cannot be passed to printf
    CUDA_CPU_INLINE operator T() const {
        const T value = *(const __volatile__ T *)&number;
        count_read(&number, value);
        return value;
    }
    CUDA_CPU_INLINE T store(T value, Site site) {
        meet_at_line(site);
        spin.progress = true;
        *(__volatile__ T *)&number = value;
        meet_at_line(site);
        return value;
    }
    CUDA_CPU_INLINE T operator=(Operand<T> o) { return store(o.value, o.site); }
    CUDA_CPU_INLINE T operator=(const InStep &other) { return store(other, {"", 0}); }
    CUDA_CPU_INLINE T operator++() { return store((T)(*this + 1), {"", 0}); }
    CUDA_CPU_INLINE T operator--() { return store((T)(*this - 1), {"", 0}); }
    CUDA_CPU_INLINE T operator++(int) {
        const T old = *this;
        store((T)(old + 1), {"", 0});
        return old;
    }
    CUDA_CPU_INLINE T operator--(int) {
        const T old = *this;
        store((T)(old - 1), {"", 0});
        return old;
    }
    __volatile__ T *operator&() const { return (__volatile__ T *)__builtin_addressof(number); }
#define CUDA_CPU_ASSIGN(op)                                                                                  \
    CUDA_CPU_INLINE T operator op##=(Operand<T> o) {                                                         \
        return store((T)(*this op o.value), o.site);                                                         \
    }
    CUDA_CPU_ASSIGN(+)
    CUDA_CPU_ASSIGN(-)
    CUDA_CPU_ASSIGN(*)
    CUDA_CPU_ASSIGN(/)
    CUDA_CPU_ASSIGN(%)
    CUDA_CPU_ASSIGN(&)
    CUDA_CPU_ASSIGN(|)
    CUDA_CPU_ASSIGN(^)
#undef CUDA_CPU_ASSIGN
    CUDA_CPU_INLINE T operator<<=(Operand<T> o) {
        return store((T)shift_left(+(T) * this, o.value), o.site);
    }
    CUDA_CPU_INLINE T operator>>=(Operand<T> o) {
        return store((T)shift_right(+(T) * this, o.value), o.site);
    }
};

// For the shifts of shift.h the left operand is the number.
#define CUDA_CPU_SHIFT(Tag)                                                                                  \
    template <class T> CUDA_CPU_INLINE auto operator<<(InStep<T> &a, Tag &&tag) {                            \
        return (T)a << (Tag &&) tag;                                                                         \
    }
CUDA_CPU_SHIFT(ShiftLeft)
CUDA_CPU_SHIFT(ShiftRight)
CUDA_CPU_SHIFT(AssignLeft)
CUDA_CPU_SHIFT(AssignRight)
#undef CUDA_CPU_SHIFT
#undef CUDA_CPU_INLINE

// An array of InStep numbers.
template <class T, size_t N> struct ArrayInStep {
    using Element = std::remove_extent_t<T>;
    T numbers[N];

    ArrayInStep(const ArrayInStep &) = delete;
    template <class I> auto &operator[](const I &i) const;
    template <class I> auto operator+(const I &i) const;
    auto &operator*() const { return (*this)[0]; }
    operator __volatile__ T *() const { return (__volatile__ T *)numbers; }
    template <class U> explicit operator U *() const { return (U *)numbers; }
};

// A pointer to InStep numbers.
template <class T> struct PointerInStep {
    T *pointer;

    PointerInStep() = default;
    template <class U> PointerInStep(U *p) : pointer((T *)p) {}
    template <class U> explicit PointerInStep(const PointerInStep<U> &p) : pointer((T *)p.pointer) {}
    template <class U, size_t N>
    explicit PointerInStep(const ArrayInStep<U, N> &a) : pointer((T *)a.numbers) {}
    explicit PointerInStep(size_t address) : pointer((T *)address) {}
    InStep<T> &operator*() const { return *(InStep<T> *)pointer; }
    template <class I> InStep<T> &operator[](const I &i) const { return *(InStep<T> *)(pointer + i); }
    template <class I> PointerInStep operator+(const I &i) const { return pointer + i; }
    template <class I, class = std::enable_if_t<std::is_integral_v<I>>>
    PointerInStep operator-(const I &i) const {
        return pointer - i;
    }
    template <class I> PointerInStep &operator+=(const I &i) { return pointer += i, *this; }
    template <class I> PointerInStep &operator-=(const I &i) { return pointer -= i, *this; }
    PointerInStep &operator++() { return ++pointer, *this; }
    PointerInStep &operator--() { return --pointer, *this; }
    PointerInStep operator++(int) { return pointer++; }
    PointerInStep operator--(int) { return pointer--; }
    operator __volatile__ T *() const { return pointer; }
    template <class U> explicit operator U *() const { return (U *)pointer; }
};

template <class T, size_t N> template <class I> auto &ArrayInStep<T, N>::operator[](const I &i) const {
    if constexpr (std::is_array_v<T>)
        return *(ArrayInStep<std::remove_extent_t<T>, std::extent_v<T>> *)&numbers[i];
    else
        return *(InStep<T> *)&numbers[i];
}
template <class T, size_t N> template <class I> auto ArrayInStep<T, N>::operator+(const I &i) const {
    return PointerInStep<T>(numbers + i);
}

// cu2cpp inserts calls of these. Structures keep their type; members are plain volatile memory.
template <class T> inline auto in_step_pointer(__volatile__ T *p) {
    if constexpr (std::is_arithmetic_v<T>)
        return PointerInStep<T>(p);
    else
        return p;
}
template <class T> inline auto in_step_pointer(PointerInStep<T> p) {
    return p;
}
template <class T> inline decltype(auto) in_step(T &variable) {
    using Element = std::remove_all_extents_t<T>;
    using Plain = std::remove_cv_t<T>;
    if constexpr (!std::is_volatile_v<Element> || !std::is_arithmetic_v<Element>)
        return (variable);
    else if constexpr (std::is_array_v<T>)
        return *(ArrayInStep<std::remove_extent_t<Plain>, std::extent_v<T>> *)&variable;
    else
        return *(InStep<Plain> *)&variable;
}
template <class P> struct CastInStep { using type = P; };
template <class T> struct CastInStep<__volatile__ T *> {
    using type = std::conditional_t<std::is_arithmetic_v<T>, PointerInStep<T>, __volatile__ T *>;
};
template <class P> using in_step_cast = typename CastInStep<P>::type;

} // namespace cuda_cpu

inline void cu_step(CUDA_CPU_SITE) { // in kernels that cu2cpp has split
    cuda_cpu::meet_at_line(CUDA_CPU_HERE);
}

#endif
