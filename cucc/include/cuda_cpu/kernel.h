// SPDX-License-Identifier: MIT
// The device side of CUDA: indices, launches, shared memory, and how barriers and warp operations work. What
// programs call is in warp.h, occupancy.h and atomics.h.
//
// cu2cpp rewrites `k<<<g, b>>>(x)` into (Launch(...), k(x)), the body of a kernel into a call of
// launch_body(), and __shared__ declarations into references from shared<T>(). Programs use everything else
// here by its CUDA name. The execution engine behind it is in runtime/.
#pragma once
#ifdef __cplusplus

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <ctime>
#include <limits>
#include <new>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include "cxx14.h"
#include "switch.h"

// The indices are thread-local variables of trivial type, so that reading one is a single load.
//
// In a program that is one .cu, threadIdx is static and nothing takes its address, so the compiler knows that
// no store through a pointer and no external function changes it, and can keep it in a register. The engine
// must not access it: every call that lets other threads run saves and restores it (Resume, below).
//
// Units that are linked with others (CUDA_CPU_SEVERAL, from cucc) share one threadIdx, which the engine
// defines. The linker keeps one copy of each inline function, so all of them must mean the same variable.
#if defined(CUDA_CPU_SEVERAL) || defined(CUDA_CPU_ENGINE)
extern __thread uint3 threadIdx;
#else
static __thread uint3 threadIdx __attribute__((unused));
#endif
// The indices that all threads of a block share are const for kernels, also so that the compiler
// can keep them in registers. Only the engine sets them; the race detector is not told of writes to const.
#if defined(CUDA_CPU_ENGINE) || defined(CUDA_CPU_CHECK)
extern __thread uint3 blockIdx, blockDim, gridDim;
#else
extern __thread const uint3 blockIdx, blockDim, gridDim;
#endif
constexpr int warpSize = 32;

// Declared here for __device__ functions. Each kernel declares a local type of the same name, so that
// shared(), which takes it as a template argument, knows which kernel it is called in.
struct cu_owner;

namespace cuda_cpu {

// ---- launches ----

struct LaunchConfig {
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;
    bool dependent; // on a GPU it may begin before the kernel before it in the stream has ended
};

inline LaunchConfig config(dim3 grid, dim3 block, size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
    return {grid, block, shared_bytes, stream, false};
}

constexpr unsigned max_threads = 1024;    // per block
constexpr unsigned atomics_in_a_row = 64; // limit, after which another thread of the block runs
constexpr size_t arena_size = 512 << 10;  // bytes of a worker's arena, which holds shared memory
constexpr size_t kept_size = 256 << 10;   // bytes for what regions of split kernels keep (loops.h)

// The part of a worker's state that inlined code needs (see Worker in runtime/block.h).
struct Block {
    struct Fiber *loop;    // the stack of the common loop (Call::run); replaced when a thread keeps it
    const uint16_t *order; // position in the loop -> linear thread index; null for 0, 1, 2, …
    unsigned position;     // position in the loop of the thread that runs now (used only with `order`)
    unsigned count;        // threads in the block

    // Ring buffer of the threads that can continue, [head] to [tail - 1]. Empty while the common loop runs.
    unsigned head, tail;
    unsigned slice;      // atomics left until the running thread goes to the end of the queue (count_atomic)
    unsigned running;    // linear index of the running thread; not valid while the common loop runs
    unsigned caller;     // linear index of the thread that calls the runtime (see Caller)
    unsigned at_barrier; // number of threads in `arrived`: those that wait at barrier_site
    Site barrier_site;   // where the threads in `arrived` wait; if there are none, the last barrier
    int barrier_result;  // result of the last barrier, for __syncthreads_count() and the like
    char *arena;         // the shared memory of this block
    uint64_t *values;    // for each thread its operand of a warp operation, then the result
    bool whole;          // kernels that are split run as loops (loops.h)
    bool in_loops;       // one is running
    unsigned joined;     // how many blocks run as one, from blockIdx on (Joined in loops.h)
    bool for_warp;       // the running thread accesses the fragments of all lanes (mma.h)
    char *kept, *kept_end; // memory for what such a kernel keeps for each thread
    uint16_t ready[max_threads], arrived[max_threads];
    Context contexts[max_threads];

    // Removes the first thread from `ready`, makes it the running one and returns its context.
    Context *pop() {
        slice = atomics_in_a_row;
        running = ready[head++ % max_threads];
        const char *const later = (const char *)contexts[ready[head % max_threads]].stack;
        __builtin_prefetch(later); // the stack of the thread after it
        __builtin_prefetch(later + 64);
        return &contexts[running];
    }
    // Memory that is released in reverse order (loops.h)
    void *keep(size_t bytes);
    void release(void *memory);
    void *keep_more(size_t bytes);
    void release_more(void *memory);
};

// The block that this host thread runs; outside kernels, no_block.
extern __thread Block *current_block;
extern Block no_block;

// Reads current_block. In a loop with a barrier, compilers keep the variable's offset in thread-local storage
// in a register. The stack switch restores that register from memory, so each switch would wait for the load
// of the previous one. Here the offset is loaded from an address that is part of the instruction.
inline __attribute__((always_inline)) Block &block_of_this_thread() {
#if defined CUDA_CPU_INLINE_SWITCH && defined __x86_64__
    Block *block;
    asm __volatile__("movq _ZN8cuda_cpu13current_blockE@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0"
                     : "=r"(block));
    return *block;
#else
    return *current_block;
#endif
}

// Operations on a launch that is stored in a stream's queue or in a graph.
struct StoredCall {
    void *(*copy)(const void *call); // returns a copy on the heap
    void (*discard)(void *copy);
    // Returns the number of arguments, and sets addresses[i] to the address of each.
    size_t (*arguments)(const void *call, const void **addresses);
    struct Type {
        size_t size; // 0 if no pointers can be in it
        bool points_to_const;
        bool points_to_data; // not to a function, nor to a type that is only declared
    };
    const Type *types; // of the arguments
    bool pointers;     // whether any of them points to data
};

// A value that several host threads may read and write at the same time
template <class T> struct Relaxed {
    T value;
    operator T() const { return __atomic_load_n(&value, __ATOMIC_RELAXED); }
    void operator=(T other) { __atomic_store_n(&value, other, __ATOMIC_RELAXED); }
};

// What the runtime knows about a kernel. Each instance of a kernel template has its own Function.
struct Function {
    Relaxed<const char *> name{""};    // known after the first launch, like most_threads
    Relaxed<unsigned> most_threads{0}; // the limit given by __launch_bounds__, or 0
    const size_t *shared_bytes;        // total size of the kernel's __shared__ variables, in bytes
    void (*run)(const void *call, Block &block, unsigned first); // as in Kernel
    // Launches the kernel with copies of the arguments at these addresses; one for each list of types.
    cudaError_t (*launch)(const Function &function, const LaunchConfig &config, void *const *arguments,
                          bool cooperative, Site site);
    // A type declared in the kernel. Its mangled name begins with the mangled name of the kernel.
    const std::type_info *inner;
    unsigned joined_columns = 0; // of Joined in loops.h
    // Bytes of dynamic shared memory (cudaFuncSetAttribute); 0: the device's limit
    Relaxed<size_t> dynamic_limit{0};
    const Function *next = nullptr; // next in the list of all kernels
};

struct Kernel {
    const char *name;
    Site site;                                                   // of the launch
    void (*run)(const void *call, Block &block, unsigned first); // runs positions first to count - 1
    const void *call;
    const StoredCall *stored; // one object for each type of call
    const Function *function;
};

// With `cooperative`, all blocks run concurrently, so that they can wait for each other in the grid barrier.
// In a kernel (dynamic parallelism), the child grid runs after the parent grid has ended.
cudaError_t launch_grid(const LaunchConfig &config, const Kernel &kernel, bool cooperative = false);

// The bytes of a kernel argument that has constructors or a destructor. CUDA copies an argument once, on the
// host. Each thread gets a copy of its bytes, for which no constructor or destructor runs.
template <class A> struct Bits {
    alignas(A) char bytes[sizeof(A)];
    Bits(const A &a) { std::memcpy(bytes, (const void *)&a, sizeof(A)); }
    operator A &() { return *reinterpret_cast<A *>(bytes); }
};
// The argument for a parameter that is a reference, for example to managed memory.
template <class A> struct Reference {
    std::remove_reference_t<A> *to;
    Reference(std::remove_reference_t<A> &a) : to(&a) {}
    operator A() const { return static_cast<A>(*to); }
};
// The type of an argument without const, volatile and, for clang++, __restrict.
template <class A> struct Unqualified { using type = std::remove_cv_t<A>; };
template <class A> struct Unqualified<A *__restrict> { using type = A *; };
template <class A> struct Unqualified<A *const __restrict> { using type = A *; };
// True also for a class with a constructor template that would be called for a copy of a variable: A(T &&).
template <class A>
constexpr bool is_bits =
    !std::is_reference_v<A> && (!std::is_trivially_copyable_v<A> ||
                                (std::is_class_v<A> && !(std::is_trivially_constructible_v<A, A &> &&
                                                         std::is_trivially_constructible_v<A, const A &>)));
template <class A>
using Stored = std::conditional_t<
    std::is_reference_v<A>, Reference<A>,
    std::conditional_t<is_bits<A>, Bits<std::remove_cv_t<A>>, typename Unqualified<A>::type>>;
// The type of a parameter of a kernel's body: the declared type, or a reference to the thread's copy.
template <class A> using Parameter = std::conditional_t<is_bits<A>, A &, A>;

#ifdef CUDA_CPU_CHECK // the compiler must not move an access into the loop, where another thread may run
#define CUDA_CPU_APART __attribute__((noinline))
#ifdef __clang__
#define CUDA_CPU_UNRECORDED __attribute__((no_sanitize("coverage"), disable_sanitizer_instrumentation))
#else
#define CUDA_CPU_UNRECORDED __attribute__((no_sanitize("thread"), no_sanitize_coverage))
#endif
#else
#define CUDA_CPU_APART
#define CUDA_CPU_UNRECORDED
#endif

} // namespace cuda_cpu

#include "loops.h"

namespace cuda_cpu {

cudaError_t refuse_without_arguments(const char *kernel, Site site);

// The values of arguments. With std::tuple, names of 400 arguments would be megabytes of text.
template <size_t I, class T> struct ValueAt { T value; };
template <class Indices, class... T> struct ValuesOf;
template <size_t... I, class... T> struct ValuesOf<std::index_sequence<I...>, T...> : ValueAt<I, T>... {
    ValuesOf(const T &...values) : ValueAt<I, T>{values}... {}
};

// The arguments of a launch, copied for every thread. Compiled once for each list of types.
template <class... A> struct Arguments {
    ValuesOf<std::index_sequence_for<A...>, Stored<A>...> values;

    template <size_t... I> static Arguments at(void *const *addresses, std::index_sequence<I...>) {
        return {{*(const Stored<A> *)addresses[I]...}};
    }
    static cudaError_t launch(const Function &function, const LaunchConfig &config, void *const *addresses,
                              bool cooperative, Site site) {
        if (sizeof...(A) && !addresses)
            return refuse_without_arguments(function.name, site);
        return at(addresses, std::index_sequence_for<A...>())
            .launch(function.name, function, config, cooperative, site);
    }
    __attribute__((noinline)) cudaError_t launch(const char *name, const Function &function,
                                                 const LaunchConfig &config, bool cooperative,
                                                 Site site) const {
        return launch_grid(config, {name, site, function.run, this, &stored, &function}, cooperative);
    }
    static void *copy(const void *p) { return new Arguments(*static_cast<const Arguments *>(p)); }
    static void discard(void *copy) { delete static_cast<Arguments *>(copy); }
    template <size_t... I> static void store(Arguments *p, const void **to, std::index_sequence<I...>) {
        ((to[I] = &static_cast<ValueAt<I, Stored<A>> &>(p->values).value), ...);
    }
    static size_t addresses(const void *p, const void **to) {
        if (to)
            store((Arguments *)p, to, std::index_sequence_for<A...>());
        return sizeof...(A);
    }
    template <class T>
    static constexpr bool is_input = std::is_const<T>::value && !std::is_volatile<T>::value;
    template <class T> static constexpr auto has_size(T *) -> decltype(sizeof(T) > 0) { return true; }
    static constexpr bool has_size(...) { return false; }
    template <class T, class To = std::remove_pointer_t<T>>
    static constexpr bool to_data = std::is_pointer<T>::value &&
                                    (std::is_void<To>::value || has_size((To *)nullptr));
    static inline constexpr StoredCall::Type types[] = {
        {alignof(Stored<A>) < sizeof(void *) ? 0 : sizeof(Stored<A>),
         is_input<std::remove_pointer_t<Stored<A>>>, to_data<Stored<A>>}...,
        {}};
    static inline constexpr StoredCall stored = {copy, discard, addresses, types,
                                                 (to_data<Stored<A>> || ...)};
};

// Calls the body of a kernel, a lambda without captures, with the arguments of a launch. It is compiled once
// for each kernel; what depends only on the arguments stands above. `Kind` is one of loops.h.
template <class Kind, class Body, class... A> struct Call {
    using Values = decltype(Arguments<A...>::values);
    static constexpr bool is_split = !std::is_same_v<Kind, Fibers>, per_warp = std::is_same_v<Kind, PerWarp>,
                          in_rows = per_warp || std::is_same_v<Kind, InRows>,
                          in_chunks = std::is_base_of_v<InChunks, Kind>;
    static constexpr char axis = innermost_axis<Kind>;

    // The common loop: runs the threads from position `first` on, one after the other, as plain calls on the
    // current stack. If a thread had to wait, it has kept this stack, and the loop has moved to another one.
    // The call that runs on this stack then returns when that thread ends.
    CUDA_CPU_UNRECORDED static void run(const void *p, Block &block, unsigned first) {
        // A local copy whose address nobody has: the compiler knows that the kernel does not change it.
        const Arguments<A...> arguments = *static_cast<const Arguments<A...> *>(p);
        const Fiber *const stack = block.loop;
        const uint3 dim = blockDim, turned_dim = turned<axis>(dim);
        if constexpr (is_split)
            if (block.whole && (!in_rows || dim.x % 32 == 0) &&
                (!in_chunks || block.joined > 1 || turned_dim.x >= chunk_lanes)) {
                block.in_loops = true;
                block.slice = ~0u;
                const LoopThreads all{ThreadRange::all(turned_dim, block.joined)};
                for (unsigned w = 0; per_warp && w < all.warps(); ++w)
                    split(arguments.values, all.warp(w, true));
                if (!per_warp)
                    split(arguments.values, all);
                block.in_loops = false;
                return;
            }
        const auto index = [dim](unsigned i) {
            return uint3{i % dim.x, i / dim.x % dim.y, i / (dim.x * dim.y)};
        };
        uint3 t = first ? index(first) : uint3{0, 0, 0};
        for (unsigned i = first; block.order ? i < block.count : t.z < dim.z; ++i) { // a row, or one thread
            unsigned end = dim.x;
            if (block.order) {
                block.position = i;
                t = index(block.order[i]);
                end = t.x + 1;
            }
            threadIdx = t;
            for (; t.x < end; ++t.x) {
                threadIdx.x = t.x;
                thread(arguments.values);
                if (__builtin_expect(block.loop != stack, 0))
                    return;
            }
            t.x = 0;
            if (++t.y == dim.y)
                t.y = 0, ++t.z;
        }
    }

    using Indices = std::index_sequence_for<A...>;
    CUDA_CPU_APART static void thread(const Values &values) {
        if constexpr (is_split)
            split(values, FiberThread{ThreadRange::one(turned<axis>(threadIdx), turned<axis>(blockDim))});
        else
            thread(values, Indices());
    }
    template <class W> static void split(const Values &values, W range) { thread(values, Indices(), range); }
    template <size_t... I, class... Range>
    static void thread(const Values &values, std::index_sequence<I...>, Range... range) {
        const Bits<char> none = '\0'; // stands for the lambda
        [[maybe_unused]] Values mine = values;
        reinterpret_cast<const Body &>(none)(range..., static_cast<ValueAt<I, Stored<A>> &>(mine).value...);
    }
};

// The linear index of the calling thread in its block
CUDA_CPU_RETURN(unsigned, thread_rank, (),
                threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z))

// An object of this class exists during a call of the runtime in device code, and stores the linear index of
// the calling thread, because each has a last error. Otherwise the index is max_threads: not known.
struct Caller {
    Caller() {
        if (__builtin_expect(current_block != &no_block, 0))
            current_block->caller = thread_rank();
    }
    ~Caller() {
        if (__builtin_expect(current_block != &no_block, 0))
            current_block->caller = max_threads;
    }
};

// The innermost Launch of this host thread whose kernel has not been called yet
extern __thread struct Launch *current_launch;
[[noreturn]] void launched_no_kernel(const char *name, Site site);

// cu2cpp writes this before a call of a kernel, in place of <<<…>>>, so the arguments are those of a normal
// call. The kernel is a function that begins with launch_body(), which takes the configuration from here.
struct Launch {
    const char *name;
    LaunchConfig config;
    Site site;
    bool cooperative;
    Function **wanted; // if set, the kernel does not run, but stores its Function here
    bool taken = false;
    Launch *outer; // launches nest when the evaluation of an argument launches another kernel
    Caller caller;

    Launch(const char *name, const LaunchConfig &config, Site site, bool cooperative = false,
           Function **wanted = nullptr)
        : name(name), config(config), site(site), cooperative(cooperative), wanted(wanted),
          outer(current_launch) {
        Launch *self = this;
        __asm__("" : "+r"(self)); // g++ 14 warns when it sees that current_launch points to a temporary
        current_launch = self;
        // Dynamic parallelism: atomics in the arguments of the launch must not switch to another thread of
        // the block, whose launch would change current_launch. launch_grid() permits the switch again.
        if (__builtin_expect(current_block != &no_block, 0))
            current_block->slice = ~0u;
    }
    Launch(const char *name, const LaunchConfig &config, const char *file = __builtin_FILE(),
           int line = __builtin_LINE())
        : Launch(name, config, Site{file, line}) {}
    ~Launch() {
        if (__builtin_expect(taken, 1))
            return;
        current_launch = outer;
        if (!wanted && std::uncaught_exceptions() == 0)
            launched_no_kernel(name, site);
    }
    Launch(const Launch &) = delete;
};

extern const Function *all_functions;
bool add_function(Function &function);
void called_without_launch(const char *kernel);
void launch_failed(); // a launch by <<<…>>>, whose error the program has to ask for
// Finds the kernel at this address, which may come from a cast. Prints an error and returns null if none is.
Function *find_function(const char *call, const void *kernel);

// Total size in bytes of the __shared__ variables declared in the kernel that has the type `Owner`.
template <class Owner> struct Declared { static inline size_t bytes; };

// The Function is a constant: a file with thousands of kernels has only a call for each before main.
template <class Owner, class Kind, class Body, class... A> struct KernelOf {
    static inline Function function = {{""},
                                       {0},
                                       &Declared<Owner>::bytes,
                                       Call<Kind, Body, A...>::run,
                                       Arguments<A...>::launch,
                                       &typeid(Body),
                                       joined_columns<Kind>};
    static inline const bool added = add_function(function);
};

// Returns the launch of the kernel that begins here; null if its body does not run.
Launch *begin_kernel(Function &function, const char *name, unsigned most_threads);

// The rest of a kernel: runs `body` for every thread. `most_threads` is from __launch_bounds__.
template <class Owner, class Kind, class... A, class Body>
inline void launch_body(const char *name, unsigned most_threads, Body, std::add_lvalue_reference_t<A>... a) {
    using Kernel = KernelOf<Owner, Kind, Body, A...>;
    (void)Kernel::added;
    if (Launch *const launch = begin_kernel(Kernel::function, name, most_threads))
        if (Arguments<A...>{{Stored<A>(a)...}}.launch(launch->name, Kernel::function, launch->config,
                                                      launch->cooperative, launch->site) != cudaSuccess)
            launch_failed();
}

[[noreturn]] void assertion_failed(uint3 thread, const char *expression, const char *file, unsigned line,
                                   const char *function);
// Called by assert() (cucc/include/assert.h) in kernels.
[[noreturn]] inline void assert_failed(const char *expression, const char *file, unsigned line,
                                       const char *function) {
    assertion_failed(threadIdx, expression, file, line, function);
}

// ---- barriers and warp operations ----

enum class WarpOp : uint8_t {
    sync,
    ballot,
    shuffle_index,
    shuffle_up,
    shuffle_down,
    shuffle_xor,
    match_any,
    match_all,
    reduce_add,
    reduce_min,
    reduce_max,
    reduce_min_unsigned,
    reduce_max_unsigned,
    reduce_and,
    reduce_or,
    reduce_xor,
    matrix, // mma.h
    active, // __activemask
    step    // volatile.h
};

enum class BlockVote : uint8_t { none, count, all, any, grid };

// These record that the thread waits, and return the stack switch that it has to make: meet_block() at a
// barrier of the block, meet_lanes() in a warp operation.
Switch meet_block(uint3 thread, BlockVote vote, bool predicate, Site site);
// `operand` is the lane, distance or lane mask of a shuffle; `width` is the number of lanes in a segment.
Switch meet_lanes(uint3 thread, WarpOp op, unsigned mask, uint64_t value, int operand, int width, Site site);
// The barrier of a tile of several warps. A tile consists of the threads with equal rank / size.
Switch meet_tile(uint3 thread, unsigned size, Site site);
Switch let_others_run(uint3 thread); // the thread is polling: all others that can run go first
Switch take_turns(uint3 thread);     // the thread may be doing useful work: it goes to the end of the queue
bool in_cooperative_launch();

// The race detector reports what a kernel writes there.
CUDA_CPU_APART CUDA_CPU_UNRECORDED inline void set_index(uint3 mine) {
    threadIdx = mine;
}

// Restores threadIdx at the end of the object's lifetime, because other threads that run set it.
struct Resume {
    const uint3 mine = threadIdx;
    ~Resume() { set_index(mine); }
};

inline __attribute__((always_inline)) void carry_out(Switch decided) {
    if (decided.from != decided.to)
        switch_context(decided.from, decided.to);
}

inline __attribute__((always_inline)) int block_barrier(BlockVote vote, bool predicate, Site site) {
    Block &block = block_of_this_thread();
    // Fast path, inlined: the thread arrives at a barrier where others wait already, or at the same one as
    // last time, and another thread can run. threadIdx is saved beside the context, which is in the cache
    // when the thread continues, and not on the thread's stack.
    if (__builtin_expect(vote == BlockVote::none && block.head != block.tail &&
                             block.barrier_site.line == site.line && block.barrier_site.file == site.file,
                         1)) {
        block.arrived[block.at_barrier++] = (uint16_t)block.running;
        Context *const mine = &block.contexts[block.running];
        mine->index[0] = threadIdx.x, mine->index[1] = threadIdx.y, mine->index[2] = threadIdx.z;
        switch_context(mine, block.pop());
        const Block &same = block_of_this_thread();
        const Context &back = same.contexts[same.running];
        set_index({back.index[0], back.index[1], back.index[2]});
        return 0;
    }
    const Resume resume;
    carry_out(meet_block(resume.mine, vote, predicate, site));
    return current_block->barrier_result;
}

inline __attribute__((always_inline)) uint64_t warp_operation(WarpOp op, unsigned mask, uint64_t value,
                                                              int operand, int width, Site site) {
    const Resume resume;
    carry_out(meet_lanes(resume.mine, op, mask, value, operand, width, site));
    return current_block->values[current_block->running];
}

inline void tile_barrier(unsigned size, Site site) {
    const Resume resume;
    carry_out(meet_tile(resume.mine, size, site));
}

// What a thread has read by atomics that changed nothing, and through volatile. If it finds the same again
// and again, it is polling. Each host thread has one, for the CUDA thread that reads now.
struct Spin {
    uint64_t seen, before;  // a bit for each address and value: those of this turn of the thread, and before
    unsigned thread;        // its index
    unsigned again, of_all; // reads of what it had seen, since it saw something new; turns of all threads
    bool progress;          // true if a thread has done something else since the watchdog last looked
    bool slept;             // true if a thread has called __nanosleep since then
    Site site;

    static constexpr unsigned nobody = ~0u, polls = 16, polls_of_all = 4096, addresses_to_poll = 16;
    void begin(unsigned me, uint64_t now) { thread = me, before = seen, seen = now, again = 0; }
};
extern __thread Spin spin;
extern __thread const __volatile__ void *last_lock; // address of the last compare-and-swap that succeeded

// Adds a byte to a section of the object file. The compiler drops it together with code that is not used, so
// the section exists only where kernels may poll (runtime/launch/waiting.cpp).
#ifdef __wasm__ // has one thread
#define CUDA_CPU_MAY_POLL
#else
#define CUDA_CPU_MAY_POLL asm __volatile__(".pushsection cuda_polls,\"a\"\n\t.byte 0\n\t.popsection")
#endif

// Lets other threads of the block run, then other threads of the operating system.
inline void yield() {
    const Resume resume;
    CUDA_CPU_MAY_POLL;
    spin.slept = true; // it is unknown what the thread waits for
    carry_out(let_others_run(resume.mine));
}

// True while a kernel runs. Functions for both whose text depends on __CUDA_ARCH__ choose their body by it.
CUDA_CPU_RETURN(bool, on_device, (), gridDim.x != 0)

// The value of printf in a kernel is the number of arguments, and a NaN is printed without its sign.
CUDA_CPU_RETURN(int, printed, (int characters, int arguments),
                on_device() && characters >= 0 ? arguments : characters)
template <class T> inline T without_sign_of_nan(T x) {
    if constexpr (std::is_floating_point_v<T>)
        return x != x && on_device() ? std::copysign(x, T(1)) : x;
    else
        return x;
}

CUDA_CPU_RETURN(unsigned, lane, (), thread_rank() % 32)

template <class T> inline uint64_t to_bits(T value) {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>, "a number of 8 bytes at most");
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}

// Lets others run if the thread is polling, for example for a lock: if it has found the same 16 times at each
// address. Otherwise the thread that it waits for might never run: threads of a block run on one worker and
// are not preempted. Threads that meet after each read are counted together.
inline __attribute__((noinline)) void may_be_polling(Site site) {
    const unsigned me = spin.thread, addresses = (unsigned)__builtin_popcountll(spin.seen);
    if (current_block->in_loops || (spin.again < Spin::polls * addresses && spin.of_all < Spin::polls_of_all))
        return;
    if (addresses > Spin::addresses_to_poll)
        spin.progress = true, spin.seen = 0;
    const uint64_t seen = spin.seen;
    {
        const Resume resume;
        spin.site = site;
        carry_out(let_others_run(resume.mine));
    }
    spin.seen = seen; // another thread may have polled meanwhile
    spin.begin(me, 0), spin.of_all = 0;
}

// Called after an atomic that left the value unchanged.
template <class T> inline void atomic_without_effect(const __volatile__ void *p, T seen, Site site) {
    if (site.line < 0) // of an atomic that stands in no loop (mark_atomics() in translate/loops/calls.c)
        return;
    constexpr uint64_t golden = 0x9e3779b97f4a7c15;
    const uint64_t bit = 1ull << (((uint64_t)p * golden ^ to_bits(seen) * golden) >> 58);
    if (!(spin.seen & bit)) {
        spin.seen |= bit;
        spin.again = spin.before & bit ? Spin::polls / 2 : 0; // it has polled before
        spin.progress |= !(spin.before & bit);
        return;
    }
    const unsigned me = threadIdx.x + (threadIdx.y << 10) + (threadIdx.z << 20);
    if (spin.thread != me)
        spin.begin(me, bit), ++spin.of_all;
    CUDA_CPU_MAY_POLL; // here, because a function that is not inlined stays in the object file
    if (++spin.again % Spin::polls == 0 || spin.of_all >= Spin::polls_of_all)
        may_be_polling(site);
}

// Called after an atomic that changed its variable: the thread is not polling.
inline void atomic_with_effect() {
    spin.seen = 0, spin.progress = true;
}

template <class T> inline T from_bits(uint64_t bits) {
    T value;
    std::memcpy((void *)&value, &bits, sizeof value);
    return value;
}

// Shuffles any value whose bytes can be copied, in pieces of 8 bytes.
template <class T> inline T shuffle(WarpOp op, unsigned mask, T value, int operand, int width, Site site) {
    static_assert(std::is_trivially_copyable_v<T>, "shuffles copy bytes");
    if constexpr (sizeof(T) <= 8) {
        return from_bits<T>(warp_operation(op, mask, to_bits(value), operand, width, site));
    } else {
        for (size_t i = 0; i < sizeof(T); i += 8) {
            const size_t length = sizeof(T) - i < 8 ? sizeof(T) - i : 8;
            uint64_t piece = 0;
            std::memcpy(&piece, (char *)&value + i, length);
            piece = warp_operation(op, mask, piece, operand, width, site);
            std::memcpy((char *)&value + i, &piece, length);
        }
        return value;
    }
}

// What a shuffle returns: int for the types that C++ promotes to it
template <class T, class D = std::decay_t<T>>
using Shuffled = std::conditional_t<std::is_integral_v<D> && (sizeof(D) < sizeof(int)), int, D>;

// The types that __shfl_sync and __match_any_sync accept; cuda_fp16.h adds its own.
template <class T> constexpr bool shuffled = std::is_arithmetic_v<T> && sizeof(T) <= 8;

enum class Space { global, shared, constant, local };
// The address space of a pointer: local if it is neither shared memory nor a variable or memory of a device
Space space_of(const void *address);

} // namespace cuda_cpu

#include "shared.h"
#include "warp.h"
#include "lanes.h"
#include "occupancy.h"
#include "atomics.h"
#include "shift.h"
#include "convert.h"
#include "volatile.h"

#endif // __cplusplus
