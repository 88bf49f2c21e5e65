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
    bool joined;                           // of several blocks that run as one

    static ThreadRange all(uint3 dim, unsigned blocks) {
        const unsigned columns = dim.x * blocks;
        return {0,     0,         0, columns, dim.y, dim.z, columns, dim.y, 0, columns * dim.y * dim.z,
                false, blocks > 1};
    }
    static ThreadRange one(uint3 t, uint3 dim) {
        return {t.x, t.y,  t.z,  t.x + 1, t.y + 1, t.z + 1, dim.x, dim.y, t.x + dim.x * (t.y + dim.y * t.z),
                1,   true, false};
    }
    // blockIdx of the thread in column x, in blocks of one column
    uint3 block(unsigned x) const { return {blockIdx.x + (joined ? x : 0), blockIdx.y, blockIdx.z}; }
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
                                       alone ? 32 : count, false, false});
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
struct InChunks {
}; // with loops in chunks: for all threads of a block whose rows are not narrower than a chunk
// One of these kinds, with innermost loops along y or z: these take the place of x in a ThreadRange
template <class Kind, char Axis> struct Along : Kind {};
template <class Kind> constexpr char innermost_axis = 'x';
template <class Kind, char Axis> constexpr char innermost_axis<Along<Kind, Axis>> = Axis;
template <char Axis> inline uint3 turned(uint3 i) {
    return Axis == 'x' ? i : Axis == 'y' ? uint3{i.y, i.x, i.z} : uint3{i.z, i.y, i.x};
}
// One of these kinds, for neighbouring blocks as well, as if they were one, if they have at most so many
// columns
template <class Kind, unsigned Columns> struct Joined : Kind {};
template <class Kind> constexpr unsigned joined_columns = 0;
template <class Kind, unsigned Columns> constexpr unsigned joined_columns<Joined<Kind, Columns>> = Columns;

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

  public: // inlined for the same reason: the address of this object does not escape
    __attribute__((always_inline)) EachThread(const ThreadRange &range, OnlyThread<T> &only)
        : all(range.fibers ? only.pointer() : (Value *)current_block->keep(range.count * sizeof(Value))),
          count(range.count), alone(range.fibers) {}
    __attribute__((always_inline)) ~EachThread() {
        if (!alone)
            current_block->release(all);
    }
    EachThread(const EachThread &) = delete;
    // Of the thread at place x in the row that begins at this place. The compiler knows that the index of an
    // array does not overflow, so that it sees consecutive elements.
    __attribute__((always_inline)) Value &operator()(size_t row, unsigned x) const {
        return (*(Value(*)[max_threads])(all + row))[x];
    }
    __attribute__((always_inline)) void put(size_t row, unsigned x, Value value) const {
        ::new ((void *)&(*this)(row, x)) Value(value);
    }
    void fill(Value value) const {
        for (unsigned t = 0; t < count; ++t)
            put(0, t, value);
    }
};

// A value for each thread, like EachThread, in a kernel without barriers. When the kernel's body runs for a
// single thread, the value is a local variable.
template <class Range, class T> class EachThreadOf {
    OnlyThread<T> only;
    EachThread<T> all;

  public:
    explicit EachThreadOf(const ThreadRange &range) : all(range, only) {}
    std::remove_cv_t<T> &operator()(size_t row, unsigned x) const { return all(row, x); }
    void put(size_t row, unsigned x, std::remove_cv_t<T> value) const { all.put(row, x, value); }
};
template <class T> class EachThreadOf<FiberThread, T> {
    mutable std::remove_cv_t<T> value{};

  public:
    explicit EachThreadOf(const FiberThread &) {}
    std::remove_cv_t<T> &operator()(size_t, unsigned) const { return value; }
    void put(size_t, unsigned, std::remove_cv_t<T> other) const { value = other; }
};

// Says to the compiler that an index does not wrap around, so that it sees consecutive elements.
inline void is_in_block(unsigned x) {
    if (x >= max_threads)
        __builtin_unreachable();
}

// The value of a variable that grows by one in each thread of a run, n threads after the first one, and whose
// initial value is `own`: if that is a floating-point number, it may have been rounded.
template <class T, class Own> inline std::remove_cv_t<T> step(long long first, int n, Own own) {
    using Value = std::remove_cv_t<T>;
    if constexpr (!std::is_integral_v<Own>)
        return own;
    else if constexpr (std::is_signed_v<Value>)
        return (Value)first + n; // does not overflow, so that compilers see that it grows by one
    const long long value = first + n;
    if constexpr (sizeof(Value) < sizeof value)
        if (value < 0 || value > (long long)std::numeric_limits<Value>::max())
            __builtin_unreachable();
    return (Value)value;
}

// Returns the end of a run of threads, from `begin` to at most `end` - 1, in which the variables grow by one:
// all of them, or a single one if a number wraps around. `at` computes them; `first`: for the first thread
template <size_t N, class At>
inline __attribute__((always_inline)) unsigned end_of_run(unsigned begin, unsigned end, long long (&first)[N],
                                                          At at) {
    long long last[N] = {};
    bool grow = true;
    at(begin, first);
    if (end - begin == 1)
        return end;
    at(end - 1, last);
    for (size_t i = 0; i < N; ++i)
        grow &= (unsigned long long)last[i] - (unsigned long long)first[i] == end - 1 - begin;
    return grow ? end : begin + 1;
}

// A condition compares indices with constants, each of which depends on one axis. True is returned if each
// comparison then changes at most once along its axis: the index grows by one, without overflow, and has the
// same sign for the first and the last thread, because a comparison with an unsigned number converts negative
// numbers to large ones.
template <size_t N>
inline __attribute__((always_inline)) bool is_monotonic(const char (&axes)[N], const long long (&first)[N],
                                                        const long long (&last)[N],
                                                        const ThreadRange &range) {
    bool all = true;
    for (size_t i = 0; i + 1 < N; ++i) {
        const unsigned steps = axes[i] == 'x'   ? range.end_x - range.x
                               : axes[i] == 'y' ? range.end_y - range.y
                                                : range.end_z - range.z;
        all &= (unsigned long long)last[i] - (unsigned long long)first[i] == steps - 1;
        all &= (first[i] < 0) == (last[i] < 0);
    }
    return all;
}

enum class Runs { none, all, part };

// The end of the numbers from `begin` on for which `holds` is true. It is for the first of them.
template <class Holds> unsigned end_of(unsigned begin, unsigned end, Holds holds) {
    while (end - begin > 1) {
        const unsigned middle = begin + (end - begin) / 2;
        (holds(middle) ? begin : end) = middle;
    }
    return end;
}

// Moves `run` to the next single thread for which the condition holds, in the order of threads.
template <size_t N, class At>
__attribute__((noinline)) Runs next_part(ThreadRange &run, const ThreadRange &range, const char (&)[N],
                                         At at) {
    long long values[N];
    for (; run.z < range.end_z; run.end_z = ++run.z + 1, run.y = range.y)
        for (; run.y < range.end_y; run.end_y = ++run.y + 1, run.end_x = range.x)
            while ((run.x = run.end_x) < range.end_x) {
                ++run.end_x;
                if (at(run.x, run.y, run.z, values))
                    return Runs::part;
            }
    return Runs::none;
}

// Sets `run` to the threads for which the condition holds. `monotonic`: as is_monotonic(), so that these are
// the threads in some columns, rows and layers, which follow each other.
template <size_t N, class At>
__attribute__((noinline)) Runs first_part(ThreadRange &run, const ThreadRange &range, const char (&axes)[N],
                                          At at, bool monotonic) {
    long long values[N];
    run.end_x = range.x, run.end_y = range.y + 1, run.end_z = range.z + 1;
    const Runs found = next_part(run, range, axes, at);
    if (found == Runs::none || !monotonic)
        return found;
    run.end_x = end_of(run.x, range.end_x, [&](unsigned x) { return at(x, run.y, run.z, values); });
    run.end_y = end_of(run.y, range.end_y, [&](unsigned y) { return at(run.x, y, run.z, values); });
    run.end_z = end_of(run.z, range.end_z, [&](unsigned z) { return at(run.x, run.y, z, values); });
    return Runs::all;
}

// Sets `run` to the first threads of the range for which the condition holds, mostly to all of these. `at`
// computes the condition and the indices that it compares.
template <size_t N, class Range, class At>
inline __attribute__((always_inline)) Runs first_run(Range &run, const Range &range, const char (&axes)[N],
                                                     At at) {
    long long first[N] = {}, last[N] = {};
    const bool begins = at(range.x, range.y, range.z, first);
    if (std::is_same_v<Range, FiberThread> || range.fibers)
        return begins ? Runs::all : Runs::none;
    const bool ends = at(range.end_x - 1, range.end_y - 1, range.end_z - 1, last),
               monotonic = is_monotonic(axes, first, last, range);
    return begins && ends && monotonic ? Runs::all : first_part(run, range, axes, at, monotonic);
}

// The threads of a smaller chunk; a larger one has twice as many (translate/loops/vector.c)
constexpr unsigned chunk_lanes = 8;
template <unsigned N> struct Chunk : ThreadRange {
    static constexpr unsigned lanes = N;
    Chunk(const ThreadRange &row, unsigned begin) : ThreadRange(row) {
        x = begin;
        end_x = begin + N;
    }
};

// A variable with one value for each thread of a chunk; bool as int, so that all have the same size
template <class T, unsigned N> class EachLane {
    using Value = std::conditional_t<std::is_same_v<std::remove_cv_t<T>, bool>, int, std::remove_cv_t<T>>;
    Value values[N];

  public:
    template <class All> void take(const All &all, size_t row, unsigned begin) {
        for (unsigned i = 0; i < N; ++i)
            values[i] = all(row, begin + i);
    }
    template <class All> void give(const All &all, size_t row, unsigned begin) const {
        for (unsigned i = 0; i < N; ++i)
            all.put(row, begin + i, values[i]);
    }
    Value &operator()(size_t, unsigned lane) { return values[lane]; }
    void put(size_t, unsigned lane, Value value) { values[lane] = value; }
};

// Whether each thread of a chunk is still in a loop: -1 if it is, 0 if it has left the loop. In a chunk of
// one thread, the loop ends when the thread leaves it, so the value is -1.
template <unsigned N> class Mask {
    int values[N];

  public:
    Mask() {
        for (int &one : values)
            one = -1;
    }
    int operator()(size_t, unsigned lane) const { return N == 1 ? -1 : values[lane]; }
    void put(size_t, unsigned lane, int value) { values[lane] = value; }
};

// Calls `run` for chunks of the threads of each row, and for single ones at its end, or if it returns false.
template <class Range, class Run>
inline __attribute__((always_inline)) void for_chunks(const Range &range, Run run) {
    for (unsigned z = range.z; z < range.end_z; ++z)
        for (unsigned y = range.y; y < range.end_y; ++y) {
            Range row = range;
            row.y = y, row.z = z, row.end_y = y + 1, row.end_z = z + 1;
            for (unsigned x = range.x; x < range.end_x;)
                if (!std::is_same_v<Range, FiberThread> && range.end_x - x >= 2 * chunk_lanes &&
                    run(Chunk<2 * chunk_lanes>(row, x)))
                    x += 2 * chunk_lanes;
                else if (!std::is_same_v<Range, FiberThread> && range.end_x - x >= chunk_lanes &&
                         run(Chunk<chunk_lanes>(row, x)))
                    x += chunk_lanes;
                else
                    run(Chunk<1>(row, x++));
        }
}

// `on` is -1 or 0. Written so that compilers see no branch.
template <class T> inline T choose(int on, T value, T other) {
    if constexpr (sizeof(T) == sizeof(int) && std::is_arithmetic_v<T>) {
        int a, b;
        std::memcpy(&a, &value, sizeof a);
        std::memcpy(&b, &other, sizeof b);
        a = (a & on) | (b & ~on);
        std::memcpy(&value, &a, sizeof a);
        return value;
    } else {
        return on ? value : other;
    }
}
inline int choose(int on, bool value, bool other) {
    return choose(on, (int)value, (int)other);
}

// A loop such as for (int i = threadIdx.x; i < n; i += blockDim.x): the threads from `begin` up to `end` of
// each row execute the next iteration together. Their loop variables are first, first + 1, first + 2 and so
// on.
template <class T> struct Neighbours {
    unsigned begin, end, rest; // those from begin + 1 up to `rest` go on after thread `begin`, which is alone
    T first = 0;
    uint64_t sum = 0, sum_of_rest = 0; // of the steps

    Neighbours(unsigned x, unsigned end_x) : begin(x), end(end_x), rest(x) {}
    // Finds the threads of the next iteration. `at` computes the variable of a thread before the first one,
    // and `goes_on` compares it with a limit. False: all threads have ended.
    template <class At, class Test>
    __attribute__((always_inline)) bool next(uint64_t step, At at, Test goes_on) {
        for (;; end = rest, rest = begin, sum = sum_of_rest) {
            const T last = (T)(at(end - 1) + sum);
            first = (T)(at(begin) + sum);
            if (((int64_t)first ^ (int64_t)last) < 0 || (uint64_t)last - (uint64_t)first != end - 1 - begin) {
                rest = end; // it overflows or changes its sign between two threads
                sum_of_rest = sum;
                end = begin + 1;
            }
            sum += step;
            unsigned active = 0;
            for (unsigned count = end - begin, stop = count; active < stop;) {
                const unsigned k =
                    stop == count ? count - 1 : (active + stop) / 2; // mostly all go on, or none
                if (goes_on((T)(first + k)))
                    active = k + 1;
                else
                    stop = k;
            }
            end = begin + active;
            if (end > max_threads)
                __builtin_unreachable(); // so first + (cu_x - begin) does not overflow
            if (active > 0 || rest <= begin + 1)
                return active > 0;
            begin++;
        }
    }
};

// Stores the initial value of a variable to which regions have a reference.
template <class T, class U> inline T &keep(T &to, const U &value) {
    std::memcpy((void *)&to, (const void *)&value, sizeof to);
    return to;
}

} // namespace cuda_cpu
