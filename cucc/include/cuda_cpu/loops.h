// SPDX-License-Identifier: MIT
// Kernels whose barriers became the ends of loops over the threads of a block; a part of kernel.h
//
// cu2cpp (translate/loops/) divides the body of such a kernel into regions. Each is a loop over threads. The
// same code runs a whole block, or, as one of many fibers, a single thread.
#pragma once

namespace cuda_cpu {

// The threads that a call of a kernel's body runs
struct ThreadRange {
    unsigned x, y, z, end_x, end_y, end_z; // from here up to these, which do not belong to it
    unsigned columns, rows;                // of the block
    unsigned first, count;                 // linear index of the first thread, and number of threads
    bool fibers;                           // only one thread

    static ThreadRange all(uint3 dim) {
        return {0, 0, 0, dim.x, dim.y, dim.z, dim.x, dim.y, 0, dim.x * dim.y * dim.z, false};
    }
    static ThreadRange one(uint3 t, uint3 dim) {
        return {t.x, t.y, t.z, t.x + 1, t.y + 1, t.z + 1, dim.x, dim.y, t.x + dim.x * (t.y + dim.y * t.z),
                1,   true};
    }
    // The place of the first thread of a row in what is kept for each thread
    size_t row(unsigned j, unsigned k) const { return columns * (j + (size_t)rows * k) - first; }
};

// Kernels with warp operations are compiled twice: as loops over threads, and for the thread of a fiber.
struct LoopThreads : ThreadRange {
    static constexpr bool fibers = false;
    explicit LoopThreads(const ThreadRange &range) : ThreadRange(range) {}
    unsigned warps() const { return (count + 31) / 32; }
    // The threads of warp w, in a block whose rows are multiples of 32 threads. `alone`: values that live
    // across a barrier are kept for these 32 threads only.
    LoopThreads warp(unsigned w, bool alone = false) const {
        const unsigned t = 32 * w, i = t % columns, j = t / columns % rows, k = t / columns / rows;
        return LoopThreads(ThreadRange{i, j, k, i + 32, j + 1, k + 1, columns, rows, alone ? t : 0,
                                       alone ? 32 : count, false});
    }
};
struct FiberThread : ThreadRange {
    static constexpr bool fibers = true;
    explicit FiberThread(const ThreadRange &range) : ThreadRange(range) {}
    unsigned warps() const { return 1; }
    FiberThread warp(unsigned) const { return *this; }
};
// How the body of a kernel is called. cu2cpp writes one of these names at each kernel.
struct Fibers {};   // for each thread, which becomes a fiber if it has to wait
struct OneBody {};  // for all threads of a block or for one (ThreadRange); the kernel has no warp operations
struct PerWarp {};  // with warp operations: for the threads of one warp
struct InRows {};   // with warp operations: for all threads of a block whose rows are multiples of 32 threads
struct AnyShape {}; // with warp operations: for all threads of a block of any shape

inline void *Block::keep(size_t bytes) {
    char *const memory = kept;
    bytes = (bytes + 63) / 64 * 64;
    if (__builtin_expect((size_t)(kept_end - memory) < bytes, 0))
        return keep_more(bytes);
    kept += bytes;
    return memory;
}

inline void Block::release(void *memory) {
    if (__builtin_expect((uintptr_t)memory - (uintptr_t)(kept_end - kept_size) >= kept_size, 0))
        release_more(memory);
    else
        kept = (char *)memory;
}

// Memory for a variable of one thread: with fibers, the function runs for each thread on its own.
template <class T> struct OnlyThread {
    alignas(T) char memory[sizeof(T)];

    // Hidden from the compiler, which warns because an array of max_threads is larger
    std::remove_cv_t<T> *pointer() {
        auto *value = (std::remove_cv_t<T> *)memory;
        __asm__("" : "+r"(value));
        return value;
    }
};

// A variable that several regions use: a value for each thread. OnlyThread is a separate object: compilers
// assume that stores change an object whose address has escaped, and would read `all` again after each.
template <class T> class EachThread {
    using Value = std::remove_cv_t<T>;
    Value *__restrict const all;
    const unsigned count;
    const bool alone;

  public:
    EachThread(const ThreadRange &range, OnlyThread<T> &only)
        : all(range.fibers ? only.pointer() : (Value *)current_block->keep(range.count * sizeof(Value))),
          count(range.count), alone(range.fibers) {}
    ~EachThread() {
        if (!alone)
            current_block->release(all);
    }
    EachThread(const EachThread &) = delete;
    // Of the thread at place x in the row that begins at this place. The compiler knows that the index of an
    // array does not overflow, so that it sees consecutive elements.
    Value &operator()(size_t row, unsigned x) const { return (*(Value(*)[max_threads])(all + row))[x]; }
    void put(size_t row, unsigned x, Value value) const { ::new ((void *)&(*this)(row, x)) Value(value); }
    void fill(Value value) const {
        for (unsigned t = 0; t < count; ++t)
            put(0, t, value);
    }
};

// Stores the initial value of a variable to which regions have a reference.
template <class T, class U> inline T &keep(T &to, const U &value) {
    std::memcpy((void *)&to, (const void *)&value, sizeof to);
    return to;
}

} // namespace cuda_cpu
