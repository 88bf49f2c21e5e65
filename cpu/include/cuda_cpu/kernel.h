// SPDX-License-Identifier: MIT
/*
 * The device side of CUDA: indices, launches, barriers, warp operations, shared memory, atomics.
 *
 * cu2cpp rewrites `k<<<g, b>>>(x)` into (Launch(...), k(x)), the body of a kernel into a call of
 * launch_body(), and __shared__ declarations into references from shared<T>(). Programs use everything
 * else here by its CUDA name. The execution engine behind it is in cpu/src: launch.cpp, block.cpp,
 * warp.cpp and shared.cpp.
 */
#pragma once
#ifdef __cplusplus

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <ctime>
#include <limits>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include "switch.h"

// The indices are thread-local variables of trivial type, so that reading one is a single load.
//
// In a program that is one .cu, threadIdx is static and nothing takes its address. The compiler
// therefore knows that no store through a pointer and no external function changes it, and can keep it
// in a register. The engine must not access it either: every call that lets other threads run saves and
// restores it (Resume, below).
//
// Units that are linked with others (CUDA_CPU_SEVERAL, from cucc) share one threadIdx, which the engine
// defines. The linker keeps one copy of each inline function, so all of them must mean the same variable.
#if defined(CUDA_CPU_SEVERAL) || defined(CUDA_CPU_ENGINE)
extern __thread uint3 threadIdx;
#else
static __thread uint3 threadIdx __attribute__((unused));
#endif
// The indices that all threads of a block share are const for kernels, also so that the compiler
// can keep them in registers. Only the engine sets them.
#ifdef CUDA_CPU_ENGINE
extern __thread uint3 blockIdx, blockDim, gridDim;
#else
extern __thread const uint3 blockIdx, blockDim, gridDim;
#endif
constexpr int warpSize = 32;

// A default argument is evaluated at the call, so these give a function the file and line of its
// caller.
#define CUDA_CPU_SITE const char *cu_file = __builtin_FILE(), int cu_line = __builtin_LINE()
#define CUDA_CPU_HERE                                                                                        \
    ::cuda_cpu::Site {                                                                                       \
        cu_file, cu_line                                                                                     \
    }

// Declared here for __device__ functions. Each kernel declares a local type of the same name, so that
// shared(), which takes it as a template argument, knows which kernel it is called in.
struct cu_owner;

namespace cuda_cpu {

#ifdef __CU2CPP__
// Each unit calls one of these before main: the first one if it has a threadIdx of its own, else the second.
// The program ends with an error if it has several units and one of them has a threadIdx of its own. cucc
// recognises the form of an object file by the second name.
void cuda_cpu_one_unit(const char *file);
void cuda_cpu_several_units(const char *file);
#ifndef CUDA_CPU_UNIT // cucc sets the source's name; clang++ does not know it in a header given by -include
#define CUDA_CPU_UNIT __BASE_FILE__
#endif
namespace {
const struct Unit {
#ifdef CUDA_CPU_SEVERAL
    Unit() {
        cuda_cpu_several_units(CUDA_CPU_UNIT);
    }
#else
    Unit() {
        cuda_cpu_one_unit(CUDA_CPU_UNIT);
    }
#endif
} unit;
} // namespace
#endif

struct Site { // a line of the program's source
    const char *file;
    int line;
};

// ---- launches ----

struct LaunchConfig {
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;
};

inline LaunchConfig config(dim3 grid, dim3 block, size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
    return {grid, block, shared_bytes, stream};
}

constexpr unsigned max_threads = 1024;    // per block
constexpr unsigned atomics_in_a_row = 64; // limit, after which another thread of the block runs
constexpr size_t arena_size = 512 << 10;  // bytes of a worker's arena, which holds shared memory

// The part of a worker's state that inlined code needs (see Worker in cpu/src/block.h).
struct Block {
    struct Fiber *loop;    // the stack of the common loop (Call::run); replaced when a thread keeps it
    const uint16_t *order; // position in the loop -> linear thread index; null for 0, 1, 2, …
    unsigned position;     // position in the loop of the thread that runs now (used only with `order`)
    unsigned count;        // threads in the block

    // Ring buffer of the threads that can continue: `ready`[head] to `ready`[tail - 1]. Empty while the
    // common loop runs.
    unsigned head, tail;
    unsigned slice;      // atomics left until the running thread goes to the end of the queue (count_atomic)
    unsigned running;    // linear index of the running thread; not valid while the common loop runs
    unsigned caller;     // linear index of the thread that calls the runtime (see Caller)
    unsigned at_barrier; // number of threads in `arrived`: those that wait at barrier_site
    Site barrier_site;   // where the threads in `arrived` wait; if there are none, the last barrier
    int barrier_result;  // result of the last barrier, for __syncthreads_count() and the like
    char *arena;         // the shared memory of this block
    uint64_t *values;    // for each thread its operand of a warp operation, then the result
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
    // Launches the kernel with copies of the arguments at these addresses.
    cudaError_t (*launch)(const LaunchConfig &config, void *const *arguments, bool cooperative, Site site);
    // Mangled name of a type declared in the kernel. It begins with the mangled name of the kernel.
    const char *inner_name;
    // Bytes of dynamic shared memory (cudaFuncSetAttribute); 0: the device's limit
    Relaxed<size_t> dynamic_limit{0};
    const Function *next; // next in the list of all kernels
};

struct Kernel {
    const char *name, *file;
    int line;
    void (*run)(const void *call, Block &block, unsigned first); // runs positions first to count - 1
    const void *call;
    const StoredCall *stored; // one object for each type of call
    const Function *function;
};

// With `cooperative`, all blocks run concurrently, so that they can wait for each other in the grid
// barrier. If it is called in a kernel (dynamic parallelism), the child grid runs after the parent grid has
// ended.
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
// The type of a parameter of a kernel's body: the declared type, or a reference to the thread's copy of the
// bytes.
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

// The body and arguments of a launch. Every thread gets its own copy of the arguments.
template <class Body, class... A> struct Call {
    Body body;
    std::tuple<Stored<A>...> arguments;

    // The common loop: runs the threads from position `first` on, one after the other, as plain
    // calls on the current stack. If a thread had to wait, it has kept this stack, and the loop has
    // moved to another one. The call that runs on this stack then returns as soon as that thread
    // ends.
    CUDA_CPU_UNRECORDED static void run(const void *p, Block &block, unsigned first) {
        // A local copy whose address no other code has, so the compiler knows that stores of the
        // kernel do not change it.
        const Call call = *static_cast<const Call *>(p);
        const Fiber *const stack = block.loop;
        const uint3 dim = blockDim;
        if (block.order) {
            for (unsigned i = first; i < block.count; ++i) {
                const unsigned t = block.order[i];
                block.position = i;
                threadIdx = {t % dim.x, t / dim.x % dim.y, t / (dim.x * dim.y)};
                call.thread();
                if (block.loop != stack)
                    return;
            }
            return;
        }
        uint3 t = {0, 0, 0};
        if (first)
            t = {first % dim.x, first / dim.x % dim.y, first / (dim.x * dim.y)};
        for (; t.z < dim.z; ++t.z, t.y = 0)
            for (; t.y < dim.y; ++t.y, t.x = 0) {
                threadIdx = t;
                for (; t.x < dim.x; ++t.x) {
                    threadIdx.x = t.x;
                    call.thread();
                    if (__builtin_expect(block.loop != stack, 0))
                        return;
                }
            }
    }

    CUDA_CPU_APART void thread() const {
        std::tuple<Stored<A>...> mine = arguments;
        std::apply(body, mine);
    }

    template <size_t... I> static Call with(Body body, void *const *addresses, std::index_sequence<I...>) {
        return {body, {*(const Stored<A> *)addresses[I]...}};
    }
    static void *copy(const void *p) { return new Call(*static_cast<const Call *>(p)); }
    static void discard(void *copy) { delete static_cast<Call *>(copy); }
    static size_t addresses(const void *p, const void **to) {
        const auto store = [&](const auto &...a) { ((*to++ = &a), ...); };
        if (to)
            std::apply(store, static_cast<const Call *>(p)->arguments);
        return sizeof...(A);
    }
    static constexpr StoredCall stored = {copy, discard, addresses};
};

// The linear index of the calling thread in its block
inline unsigned thread_rank() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

// An object of this class exists during a call of the runtime in device code. It stores the linear index of
// the calling thread, because each thread has a last error of its own. Without such an object the index is
// max_threads: the calling thread is not known.
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

    inline Launch(const char *name, const LaunchConfig &config, Site site, bool cooperative = false,
                  Function **wanted = nullptr);
    inline Launch(const char *name, const LaunchConfig &config, const char *file = __builtin_FILE(),
                  int line = __builtin_LINE())
        : Launch(name, config, Site{file, line}) {}
    inline ~Launch();
    Launch(const Launch &) = delete;
};
// The innermost Launch of this host thread whose kernel has not been called yet
extern __thread Launch *current_launch;

Launch::Launch(const char *name, const LaunchConfig &config, Site site, bool cooperative, Function **wanted)
    : name(name), config(config), site(site), cooperative(cooperative), wanted(wanted),
      outer(current_launch) {
    current_launch = this;
    // Dynamic parallelism: atomics in the arguments of the launch must not switch to another thread of the
    // block, whose launch would change current_launch. launch_grid() permits the switch again.
    if (__builtin_expect(current_block != &no_block, 0))
        current_block->slice = ~0u;
}
[[noreturn]] void launched_no_kernel(const char *name, Site site);
Launch::~Launch() {
    if (__builtin_expect(taken, 1))
        return;
    current_launch = outer;
    if (!wanted && std::uncaught_exceptions() == 0)
        launched_no_kernel(name, site);
}

extern const Function *all_functions;
[[noreturn]] void called_without_launch(const char *kernel);
// Finds the kernel at this address, which may come from a cast. Prints an error message and returns null if
// there is none.
Function *find_function(const char *call, const void *kernel);

cudaError_t refuse_without_arguments(const char *kernel, Site site);

// Total size in bytes of the __shared__ variables declared in the kernel that has the type `Owner`.
template <class Owner> struct Declared { static inline size_t bytes; };

template <class Owner, class Body, class... A> struct KernelOf {
    static cudaError_t launch(const LaunchConfig &config, void *const *arguments, bool cooperative,
                              Site site) {
        using TheCall = Call<Body, A...>;
        if (sizeof...(A) && !arguments)
            return refuse_without_arguments(function.name, site);
        const Bits<char> none = '\0'; // stands for the lambda
        const auto &body = reinterpret_cast<const Body &>(none);
        const TheCall call = TheCall::with(body, arguments, std::index_sequence_for<A...>());
        return launch_grid(
            config, {function.name, site.file, site.line, TheCall::run, &call, &TheCall::stored, &function},
            cooperative);
    }
    static Function add() {
        Function function;
        function.shared_bytes = &Declared<Owner>::bytes;
        function.launch = launch;
        function.inner_name = typeid(Body).name();
        function.next = all_functions;
        all_functions = &KernelOf::function;
        return function;
    }
    static inline Function function = add();
};

// The rest of a kernel: runs `body` for every thread of the current launch. `most_threads` is from
// __launch_bounds__.
template <class Owner, class... A, class Body>
inline void launch_body(const char *name, unsigned most_threads, Body body,
                        std::add_lvalue_reference_t<A>... a) {
    using TheCall = Call<Body, A...>;
    Function &function = KernelOf<Owner, Body, A...>::function;
    Launch *const launch = current_launch;
    if (!launch || launch->taken)
        called_without_launch(name);
    launch->taken = true;
    current_launch = launch->outer;
    function.name = name;
    function.most_threads = most_threads;
    if (launch->wanted) {
        *launch->wanted = &function;
        return;
    }
    const TheCall call{body, {Stored<A>(a)...}};
    launch_grid(launch->config,
                {launch->name, launch->site.file, launch->site.line, TheCall::run, &call, &TheCall::stored,
                 &function},
                launch->cooperative);
}

[[noreturn]] void assertion_failed(uint3 thread, const char *expression, const char *file, unsigned line,
                                   const char *function);
// Called by assert() (cpu/include/assert.h) in kernels.
[[noreturn]] inline void assert_failed(const char *expression, const char *file, unsigned line,
                                       const char *function) {
    assertion_failed(threadIdx, expression, file, line, function);
}

// ---- shared memory ----

struct SharedEntry {
    uint64_t block; // the block_number for which the pointer is valid
    void *pointer;
};
extern __thread SharedEntry *shared_table; // one entry for each __shared__ declaration
extern __thread uint64_t block_number;     // how many blocks this worker thread has started

// Returns the index of a new entry in shared_table, and adds the variable's size, in bytes, to *declared.
unsigned new_shared_slot(size_t size, size_t *declared);
// Allocates the current block's instance of a __shared__ variable. Ends the program outside of kernels, and
// when the block then has more shared memory than the launch permits. `name` is for messages.
void *allocate_shared(unsigned slot, size_t size, size_t align, const char *name);
// The current block's dynamic shared memory. Ends the program outside of kernels.
void *dynamic_shared_memory(const char *name);

// The index of a declaration's entry in shared_table. Each declaration, and each instance of a template, has
// its own. Tag distinguishes them: it is the type of a lambda that is written at the declaration.
template <class T, class Owner, class Tag> struct SharedSlot {
    static inline const unsigned index = new_shared_slot(sizeof(T), &Declared<Owner>::bytes);
};

// Returns the current block's instance of a __shared__ variable. The first thread of the block that executes
// the declaration allocates it. `align`: the alignment that the declaration specifies, in bytes.
template <class T, class Owner, class Tag>
inline T &shared(Tag, const char *name, size_t align = alignof(T)) {
    const unsigned slot = SharedSlot<T, Owner, Tag>::index;
    if (__builtin_expect(shared_table && shared_table[slot].block == block_number, 1))
        return *static_cast<T *>(shared_table[slot].pointer);
    return *static_cast<T *>(allocate_shared(slot, sizeof(T), align, name));
}

// Returns the current block's dynamic shared memory. T is an array of unknown bound, such as float[].
template <class T> inline T &dynamic_shared(const char *name) {
    return *static_cast<T *>(dynamic_shared_memory(name));
}

// `extern __shared__ T x[];` outside a function. Functions at namespace scope that use x declare a reference
// of the same name. Elsewhere this object converts to a pointer to the current block's dynamic shared memory
// at every use. T is an array of unknown bound.
template <class T> struct dynamic_array {
    using Element = std::remove_extent_t<T>;
    T *operator&() const { return &dynamic_shared<T>("extern __shared__ array"); }
    operator Element *() const { return *&*this; }
    template <class U> explicit operator U *() const { return (U *)*&*this; }
};

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

// Saves threadIdx and restores it at the end of the object's lifetime, because other threads that
// run in between set it.
struct Resume {
    const uint3 mine = threadIdx;
    ~Resume() { threadIdx = mine; }
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
        threadIdx = {back.index[0], back.index[1], back.index[2]};
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

// The address that the worker's threads poll, for the watchdog (cpu/src/watchdog.cpp).
struct Spin {
    const __volatile__ void *address;
    uint64_t bits;  // the value that the thread has read there
    unsigned count; // number of consecutive atomics on the address that changed nothing
    bool progress;  // true if a thread has done something else since the watchdog last looked
    Site site;
    bool slept; // true if a thread has called __nanosleep since then
};
extern __thread Spin spin;
extern __thread const __volatile__ void *last_lock; // address of the last compare-and-swap that succeeded
extern __thread unsigned last_reader; // the thread that last read a volatile variable (volatile.h)

// Adds a byte to a section of the object file. The compiler drops it together with code that is not used, so
// the section exists only where kernels may poll (cpu/src/launch.cpp).
#define CUDA_CPU_MAY_POLL asm __volatile__(".pushsection cuda_polls,\"a\"\n\t.byte 0\n\t.popsection")

// Lets other threads of the block run, then other threads of the operating system.
inline void yield() {
    const Resume resume;
    CUDA_CPU_MAY_POLL;
    spin.slept = true; // it is unknown what the thread waits for
    carry_out(let_others_run(resume.mine));
}

// True while a kernel runs. A function for host and device whose text depends on __CUDA_ARCH__ chooses its
// body by this.
inline bool on_device() {
    return gridDim.x != 0;
}

inline unsigned lane() {
    return thread_rank() % 32;
}

// Counts consecutive atomics that left the value at one address unchanged. After 16 of them the thread is
// assumed to be polling, for example for a lock, and yields. Otherwise the thread that it waits for might
// never run: threads of a block run on one worker and are not preempted.
template <class T> inline void atomic_without_effect(T *p, T seen, Site site) {
    uint64_t bits = 0;
    std::memcpy(&bits, &seen, sizeof seen);
    if (spin.address != p || spin.bits != bits)
        spin = {p, bits, 0, true, site, false};
    if (++spin.count < 16)
        return;
    CUDA_CPU_MAY_POLL;
    {
        const Resume resume;
        spin.site = site;
        carry_out(let_others_run(resume.mine));
    }
    spin.address = p; // another thread may have polled meanwhile
    spin.bits = bits;
    spin.count = 0;
}

// Called after an atomic that changed its variable: the thread is not polling.
inline void atomic_with_effect() {
    spin.address = nullptr;
}

template <class T> inline uint64_t to_bits(T value) {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>, "a number of 8 bytes at most");
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
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

// The types that __shfl_sync and __match_any_sync accept; cuda_fp16.h adds its own.
template <class T> constexpr bool shuffled = std::is_arithmetic_v<T> && sizeof(T) <= 8;

enum class Space { global, shared, constant, local };
// The address space of a pointer. Memory counts as local unless it is shared memory, a __constant__ variable,
// or memory or a variable of a device.
Space space_of(const void *address);

} // namespace cuda_cpu

inline __attribute__((always_inline)) void __syncthreads(CUDA_CPU_SITE) {
    cuda_cpu::block_barrier(cuda_cpu::BlockVote::none, false, CUDA_CPU_HERE);
}
inline int __syncthreads_count(int predicate, CUDA_CPU_SITE) {
    return cuda_cpu::block_barrier(cuda_cpu::BlockVote::count, predicate, CUDA_CPU_HERE);
}
inline int __syncthreads_and(int predicate, CUDA_CPU_SITE) {
    return cuda_cpu::block_barrier(cuda_cpu::BlockVote::all, predicate, CUDA_CPU_HERE);
}
inline int __syncthreads_or(int predicate, CUDA_CPU_SITE) {
    return cuda_cpu::block_barrier(cuda_cpu::BlockVote::any, predicate, CUDA_CPU_HERE);
}

inline void __syncwarp(unsigned mask = 0xffffffff, CUDA_CPU_SITE) {
    cuda_cpu::warp_operation(cuda_cpu::WarpOp::sync, mask, 0, 0, 32, CUDA_CPU_HERE);
}
// Returns the mask of the lanes that have reached this call. It waits until no other lane of the warp can
// reach it.
inline unsigned __activemask(CUDA_CPU_SITE) {
    return (unsigned)cuda_cpu::warp_operation(cuda_cpu::WarpOp::active, 1u << cuda_cpu::lane(), 0, 0, 32,
                                              CUDA_CPU_HERE);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, CUDA_CPU_SITE) {
    return (unsigned)cuda_cpu::warp_operation(cuda_cpu::WarpOp::ballot, mask, predicate != 0, 0, 32,
                                              CUDA_CPU_HERE);
}
inline int __any_sync(unsigned mask, int predicate, CUDA_CPU_SITE) {
    return __ballot_sync(mask, predicate, cu_file, cu_line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, CUDA_CPU_SITE) {
    return __ballot_sync(mask, !predicate, cu_file, cu_line) == 0;
}

template <class T> inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32, CUDA_CPU_SITE) {
    static_assert(cuda_cpu::shuffled<T>, "__shfl_sync takes numbers");
    return cuda_cpu::shuffle(cuda_cpu::WarpOp::shuffle_index, mask, value, lane, width, CUDA_CPU_HERE);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_CPU_SITE) {
    static_assert(cuda_cpu::shuffled<T>, "__shfl_up_sync takes numbers");
    return cuda_cpu::shuffle(cuda_cpu::WarpOp::shuffle_up, mask, value, (int)delta, width, CUDA_CPU_HERE);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_CPU_SITE) {
    static_assert(cuda_cpu::shuffled<T>, "__shfl_down_sync takes numbers");
    return cuda_cpu::shuffle(cuda_cpu::WarpOp::shuffle_down, mask, value, (int)delta, width, CUDA_CPU_HERE);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, CUDA_CPU_SITE) {
    static_assert(cuda_cpu::shuffled<T>, "__shfl_xor_sync takes numbers");
    return cuda_cpu::shuffle(cuda_cpu::WarpOp::shuffle_xor, mask, value, lanes, width, CUDA_CPU_HERE);
}

template <class T> inline unsigned __match_any_sync(unsigned mask, T value, CUDA_CPU_SITE) {
    return (unsigned)cuda_cpu::warp_operation(cuda_cpu::WarpOp::match_any, mask, cuda_cpu::to_bits(value), 0,
                                              32, CUDA_CPU_HERE);
}
template <class T> inline unsigned __match_all_sync(unsigned mask, T value, int *predicate, CUDA_CPU_SITE) {
    const unsigned lanes = (unsigned)cuda_cpu::warp_operation(cuda_cpu::WarpOp::match_all, mask,
                                                              cuda_cpu::to_bits(value), 0, 32, CUDA_CPU_HERE);
    *predicate = lanes != 0;
    return lanes;
}

#define CUDA_CPU_REDUCE(T, name, op)                                                                         \
    inline T __reduce_##name##_sync(unsigned mask, T value, CUDA_CPU_SITE) {                                 \
        return (T)cuda_cpu::warp_operation(cuda_cpu::WarpOp::reduce_##op, mask, cuda_cpu::to_bits(value), 0, \
                                           32, CUDA_CPU_HERE);                                               \
    }
CUDA_CPU_REDUCE(int, add, add)
CUDA_CPU_REDUCE(unsigned, add, add)
CUDA_CPU_REDUCE(int, min, min)
CUDA_CPU_REDUCE(unsigned, min, min_unsigned)
CUDA_CPU_REDUCE(int, max, max)
CUDA_CPU_REDUCE(unsigned, max, max_unsigned)
CUDA_CPU_REDUCE(unsigned, and, and)
CUDA_CPU_REDUCE(unsigned, or, or)
CUDA_CPU_REDUCE(unsigned, xor, xor)
#undef CUDA_CPU_REDUCE

// ---- launches by functions of the runtime, and occupancy ----

namespace cuda_cpu {
inline cudaError_t launch_by_address(const char *call, const void *kernel, const LaunchConfig &config,
                                     void **arguments, bool cooperative, Site site) {
    Function *const function = find_function(call, kernel);
    return function ? function->launch(config, arguments, cooperative, site) : cudaErrorInvalidDeviceFunction;
}

// The configuration of cudaLaunchKernelEx, converted where the program calls it
struct LaunchConfigAt {
    const cudaLaunchConfig_t *config;
    Site site;

    LaunchConfigAt(const cudaLaunchConfig_t *config, const char *file = __builtin_FILE(),
                   int line = __builtin_LINE())
        : config(config), site{file, line} {}
};
cudaError_t launch_by_config(const LaunchConfigAt &at, const void *kernel, void **arguments);
} // namespace cuda_cpu

template <class T>
inline cudaError_t cudaLaunchKernel(T *kernel, dim3 grid, dim3 block, void **arguments,
                                    size_t shared_bytes = 0, cudaStream_t stream = 0, CUDA_CPU_SITE) {
    return cuda_cpu::launch_by_address("cudaLaunchKernel", (const void *)kernel,
                                       {grid, block, shared_bytes, stream}, arguments, false, CUDA_CPU_HERE);
}
template <class T>
inline cudaError_t cudaLaunchCooperativeKernel(T *kernel, dim3 grid, dim3 block, void **arguments,
                                               size_t shared_bytes = 0, cudaStream_t stream = 0,
                                               CUDA_CPU_SITE) {
    return cuda_cpu::launch_by_address("cudaLaunchCooperativeKernel", (const void *)kernel,
                                       {grid, block, shared_bytes, stream}, arguments, true, CUDA_CPU_HERE);
}

template <class... P, class... A>
inline cudaError_t cudaLaunchKernelEx(cuda_cpu::LaunchConfigAt config, void (*kernel)(P...),
                                      A &&...arguments) {
    return [&](P... converted) {
        void *addresses[] = {(void *)&converted..., nullptr};
        return cuda_cpu::launch_by_config(config, (const void *)kernel, addresses);
    }(std::forward<A>(arguments)...);
}
template <class T>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, T *kernel, int threads,
                                                                          size_t dynamic_bytes,
                                                                          unsigned flags) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, (const void *)kernel, threads,
                                                                  dynamic_bytes, flags);
}
template <class T>
inline cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, T *kernel, int blocks,
                                                             int threads) {
    return cudaOccupancyAvailableDynamicSMemPerBlock(bytes, (const void *)kernel, blocks, threads);
}
template <class T>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, T *kernel, int threads,
                                                                 size_t dynamic_bytes) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, (const void *)kernel, threads,
                                                         dynamic_bytes);
}
// Finds the largest block size among those with the highest occupancy, and the number of blocks that fill the
// device. shared_bytes(threads) is the dynamic shared memory of a block, in bytes.
template <class T, class F>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int *grid, int *block, T *kernel,
                                                                  F shared_bytes, int limit = 0) {
    cudaFuncAttributes attributes;
    int device, processors, best = 0;
    cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
    if (error == cudaSuccess)
        error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (limit <= 0 || limit > attributes.maxThreadsPerBlock)
        limit = attributes.maxThreadsPerBlock;
    *grid = *block = 0;
    for (int threads = limit; error == cudaSuccess && threads > 0; threads = (threads - 1) / 32 * 32) {
        int blocks;
        error =
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes(threads));
        if (blocks * threads > best) {
            best = blocks * threads;
            *grid = blocks * processors;
            *block = threads;
        }
    }
    return error;
}
template <class T, class F>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags(int *grid, int *block, T *kernel,
                                                                           F shared_bytes, int limit = 0,
                                                                           unsigned = 0) {
    return cudaOccupancyMaxPotentialBlockSizeVariableSMem(grid, block, kernel, shared_bytes, limit);
}
template <class T>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, T *kernel,
                                                               size_t dynamic_bytes = 0, int limit = 0,
                                                               unsigned = 0) {
    return cudaOccupancyMaxPotentialBlockSizeVariableSMem(
        grid, block, kernel, [=](int) { return dynamic_bytes; }, limit);
}
template <class T>
inline cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, T *kernel,
                                                  const cudaLaunchConfig_t *config) {
    return cudaOccupancyMaxActiveClusters(clusters, (const void *)kernel, config);
}
template <class T>
inline cudaError_t cudaOccupancyMaxPotentialClusterSize(int *blocks, T *kernel,
                                                        const cudaLaunchConfig_t *config) {
    return cudaOccupancyMaxPotentialClusterSize(blocks, (const void *)kernel, config);
}
template <class T>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int *grid, int *block, T *kernel,
                                                      size_t dynamic_bytes = 0, int limit = 0) {
    return cudaOccupancyMaxPotentialBlockSizeVariableSMem(
        grid, block, kernel, [=](int) { return dynamic_bytes; }, limit);
}

// ---- address spaces ----

inline unsigned __isGlobal(const void *p) {
    return cuda_cpu::space_of(p) == cuda_cpu::Space::global;
}
inline unsigned __isShared(const void *p) {
    return cuda_cpu::space_of(p) == cuda_cpu::Space::shared;
}
inline unsigned __isConstant(const void *p) {
    return cuda_cpu::space_of(p) == cuda_cpu::Space::constant;
}
inline unsigned __isLocal(const void *p) {
    return cuda_cpu::space_of(p) == cuda_cpu::Space::local;
}
// The CPU has a single address space, so conversions return the address unchanged.
#define CUDA_CPU_CONVERT_ADDRESS(space)                                                                      \
    inline size_t __cvta_generic_to_##space(const void *p) {                                                 \
        return (size_t)p;                                                                                    \
    }                                                                                                        \
    inline void *__cvta_##space##_to_generic(size_t address) {                                               \
        return (void *)address;                                                                              \
    }
CUDA_CPU_CONVERT_ADDRESS(global)
CUDA_CPU_CONVERT_ADDRESS(shared)
CUDA_CPU_CONVERT_ADDRESS(constant)
CUDA_CPU_CONVERT_ADDRESS(local)
#undef CUDA_CPU_CONVERT_ADDRESS

// ---- fences ----

inline void __threadfence() {
    __sync_synchronize();
}
inline void __threadfence_block() { // the threads of a block run on one worker
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
inline void __threadfence_system() {
    __sync_synchronize();
}

// Also lets other threads of the block run, for loops that poll with plain loads.
inline void __nanosleep(unsigned nanoseconds) {
    const struct timespec t = {nanoseconds / 1000000000, (long)(nanoseconds % 1000000000)};
    cuda_cpu::yield();
    nanosleep(&t, nullptr);
}

namespace cuda_cpu {
cudaError_t last_error_of_caller(const char *call, bool reset);
}
#ifdef __CU2CPP__ // a unit that may have device code
// Calls use these inline definitions. The address of each function is that of the definition in the library.
extern "C" {
#define CUDA_CPU_INLINE extern inline __attribute__((gnu_inline, always_inline))
CUDA_CPU_INLINE cudaError_t cudaGetLastError(void) {
    const cuda_cpu::Caller caller;
    return cuda_cpu::last_error_of_caller(__func__, true);
}
CUDA_CPU_INLINE cudaError_t cudaPeekAtLastError(void) {
    const cuda_cpu::Caller caller;
    return cuda_cpu::last_error_of_caller(__func__, false);
}
#undef CUDA_CPU_INLINE
}
#endif

// ---- atomics: sequentially consistent, each returns the old value ----

#ifdef CUDA_CPU_CHECK // relaxed, as in CUDA: the race detector must not take these atomics for fences
#define CUDA_CPU_ORDER __ATOMIC_RELAXED
#else
#define CUDA_CPU_ORDER __ATOMIC_SEQ_CST
#endif

namespace cuda_cpu {

// True if an atomic on this address can be a plain load and a plain store, which are several times faster.
// One worker runs the threads of a block, one at a time, and never preempts them, so shared memory needs no
// more.
inline bool is_shared([[maybe_unused]] const __volatile__ void *p) {
#if defined CUDA_CPU_WATCHED || defined CUDA_CPU_CHECK // the race detector must see the atomic
    return false;
#else
    return (uintptr_t)p - (uintptr_t)current_block->arena < arena_size;
#endif
}

// Lets the next thread of the block run after a number of atomics. A histogram is the typical case:
// neighbouring threads read neighbouring elements, with strides over the whole input. On a GPU they read a
// cache line together. If each thread ran to its end before the next one, each would load every line again.
inline __attribute__((noinline)) void take_turns() {
    const Resume resume;
    carry_out(take_turns(resume.mine));
}

// Not called by a compare-and-swap, nor by an exchange unless it releases a lock: the thread may then hold a
// lock, and switching would only make the others poll.
inline void count_atomic() {
    if (__builtin_expect(--current_block->slice == 0, 0))
        take_turns();
}

// Replaces *p, which is in shared memory, by change(*p). Returns the old value.
template <class T, class F> inline T change_shared(T *p, F change) {
    const T old = *(__volatile__ T *)p;
    *(__volatile__ T *)p = change(old);
    return old;
}

template <class T> inline T atomic_add(T *p, T value, [[maybe_unused]] Site site) {
    count_atomic();
    if constexpr (std::is_integral_v<T>) {
        const T old = is_shared(p)
                          ? change_shared(p, [=](T it) { return (T)((std::make_unsigned_t<T>)it + value); })
                          : __atomic_fetch_add(p, value, CUDA_CPU_ORDER);
        if (__builtin_expect(value == 0, 0))
            atomic_without_effect(p, old, site); // adding 0 may be polling
        return old;
    } else {
        if (is_shared(p))
            return change_shared(p, [=](T it) { return it + value; });
        T old, sum;
        __atomic_load(p, &old, CUDA_CPU_ORDER);
        do
            sum = old + value;
        while (!__atomic_compare_exchange(p, &old, &sum, false, CUDA_CPU_ORDER, CUDA_CPU_ORDER));
        return old;
    }
}

template <class T> inline T atomic_exchange(T *p, T value, Site site) {
    T old;
    if (is_shared(p))
        old = change_shared(p, [=](T) { return value; });
    else
        __atomic_exchange(p, &value, &old, CUDA_CPU_ORDER);
    if (std::memcmp(&old, &value, sizeof old) == 0) {
        atomic_without_effect(p, old, site); // the lock is held already
    } else {
        atomic_with_effect();
        if (last_lock == p) { // the exchange released the lock
            last_lock = nullptr;
            count_atomic();
        }
    }
    return old;
}

template <class T> inline T atomic_compare_and_swap(T *p, T compare, T value, Site site) {
    T old = compare;
    if (is_shared(p))
        old = change_shared(p, [=](T it) { return it == compare ? value : it; });
    else
        __atomic_compare_exchange(p, &old, &value, false, CUDA_CPU_ORDER, CUDA_CPU_ORDER);
    if (old != compare || compare == value) {
        atomic_without_effect(p, old, site);
    } else {
        atomic_with_effect();
        last_lock = p;
    }
    return old;
}

// Counts the call as polling if its operand cannot change any value, as in atomicOr(p, 0).
template <class T> inline void poll_if(bool no_change, T *p, Site site) {
    if (__builtin_expect(no_change, 0))
        atomic_without_effect(p, __atomic_load_n(p, CUDA_CPU_ORDER), site);
}

// Atomic read-modify-write by a compare-and-swap loop: replaces *p by change(*p) and returns the old value. T
// is a class type of 1, 2, 4 or 8 bytes, such as __half2. The memory order is sequential consistency.
template <class T, class F> inline T atomic_change(T *p, F change) {
    T old, changed;
    __atomic_load(p, &old, __ATOMIC_SEQ_CST);
    do
        changed = change(old);
    while (!__atomic_compare_exchange(p, &old, &changed, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return old;
}

// Replaces *p by change(*p) in a compare-and-swap loop, so change may be called several times.
template <class T, class F> inline T atomic_update(T *p, F change) {
    count_atomic();
    if (is_shared(p))
        return change_shared(p, change);
    T old = __atomic_load_n(p, CUDA_CPU_ORDER);
    while (!__atomic_compare_exchange_n(p, &old, change(old), false, CUDA_CPU_ORDER, CUDA_CPU_ORDER))
        ;
    return old;
}

} // namespace cuda_cpu

// Overloads only for the types that CUDA has, so that a call that nvcc refuses is refused here too.
#define CUDA_CPU_ATOMIC(T, name, expression)                                                                 \
    inline T atomic##name(T *p, T value, CUDA_CPU_SITE) {                                                    \
        (void)cu_file, (void)cu_line;                                                                        \
        return expression;                                                                                   \
    }                                                                                                        \
    inline T atomic##name##_block(T *p, T value, CUDA_CPU_SITE) {                                            \
        return atomic##name(p, value, cu_file, cu_line);                                                     \
    }                                                                                                        \
    inline T atomic##name##_system(T *p, T value, CUDA_CPU_SITE) {                                           \
        return atomic##name(p, value, cu_file, cu_line);                                                     \
    }
#define CUDA_CPU_ATOMIC_CAS(T)                                                                               \
    inline T atomicCAS(T *p, T compare, T value, CUDA_CPU_SITE) {                                            \
        return cuda_cpu::atomic_compare_and_swap(p, compare, value, CUDA_CPU_HERE);                          \
    }                                                                                                        \
    inline T atomicCAS_block(T *p, T compare, T value, CUDA_CPU_SITE) {                                      \
        return atomicCAS(p, compare, value, cu_file, cu_line);                                               \
    }                                                                                                        \
    inline T atomicCAS_system(T *p, T compare, T value, CUDA_CPU_SITE) {                                     \
        return atomicCAS(p, compare, value, cu_file, cu_line);                                               \
    }

CUDA_CPU_ATOMIC(int, Add, cuda_cpu::atomic_add(p, value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC(unsigned, Add, cuda_cpu::atomic_add(p, value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC(unsigned long long, Add, cuda_cpu::atomic_add(p, value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC(float, Add, cuda_cpu::atomic_add(p, value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC(double, Add, cuda_cpu::atomic_add(p, value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC(int, Sub, cuda_cpu::atomic_add(p, (int)-(unsigned)value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC(unsigned, Sub, cuda_cpu::atomic_add(p, -value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC(int, Exch, cuda_cpu::atomic_exchange(p, value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC(unsigned, Exch, cuda_cpu::atomic_exchange(p, value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC(unsigned long long, Exch, cuda_cpu::atomic_exchange(p, value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC(float, Exch, cuda_cpu::atomic_exchange(p, value, CUDA_CPU_HERE))
CUDA_CPU_ATOMIC_CAS(int)
CUDA_CPU_ATOMIC_CAS(unsigned)
CUDA_CPU_ATOMIC_CAS(unsigned long long)
CUDA_CPU_ATOMIC_CAS(unsigned short)

#define CUDA_CPU_ATOMIC_INTEGERS(T)                                                                          \
    CUDA_CPU_ATOMIC(T, Min,                                                                                  \
                    (cuda_cpu::poll_if(value == std::numeric_limits<T>::max(), p, CUDA_CPU_HERE),            \
                     cuda_cpu::atomic_update(p, [=](T old) { return old < value ? old : value; })))          \
    CUDA_CPU_ATOMIC(T, Max,                                                                                  \
                    (cuda_cpu::poll_if(value == std::numeric_limits<T>::min(), p, CUDA_CPU_HERE),            \
                     cuda_cpu::atomic_update(p, [=](T old) { return old > value ? old : value; })))          \
    CUDA_CPU_ATOMIC(T, And,                                                                                  \
                    (cuda_cpu::poll_if(value == (T) ~(T)0, p, CUDA_CPU_HERE),                                \
                     cuda_cpu::is_shared(p) ? cuda_cpu::change_shared(p, [=](T old) { return old & value; }) \
                                            : __atomic_fetch_and(p, value, CUDA_CPU_ORDER)))                 \
    CUDA_CPU_ATOMIC(T, Or,                                                                                   \
                    (cuda_cpu::poll_if(value == 0, p, CUDA_CPU_HERE),                                        \
                     cuda_cpu::is_shared(p) ? cuda_cpu::change_shared(p, [=](T old) { return old | value; }) \
                                            : __atomic_fetch_or(p, value, CUDA_CPU_ORDER)))                  \
    CUDA_CPU_ATOMIC(T, Xor,                                                                                  \
                    (cuda_cpu::poll_if(value == 0, p, CUDA_CPU_HERE),                                        \
                     cuda_cpu::is_shared(p) ? cuda_cpu::change_shared(p, [=](T old) { return old ^ value; }) \
                                            : __atomic_fetch_xor(p, value, CUDA_CPU_ORDER)))
CUDA_CPU_ATOMIC_INTEGERS(int)
CUDA_CPU_ATOMIC_INTEGERS(unsigned)
CUDA_CPU_ATOMIC_INTEGERS(long long)
CUDA_CPU_ATOMIC_INTEGERS(unsigned long long)
// Each component is added atomically; the vector as a whole is not, as on a GPU.
CUDA_CPU_ATOMIC(float2, Add, (float2{atomicAdd(&p->x, value.x), atomicAdd(&p->y, value.y)}))
CUDA_CPU_ATOMIC(float4, Add,
                (float4{atomicAdd(&p->x, value.x), atomicAdd(&p->y, value.y), atomicAdd(&p->z, value.z),
                        atomicAdd(&p->w, value.w)}))
CUDA_CPU_ATOMIC(unsigned, Inc,
                cuda_cpu::atomic_update(p, [=](unsigned old) { return old >= value ? 0u : old + 1; }))
CUDA_CPU_ATOMIC(unsigned, Dec, cuda_cpu::atomic_update(p, [=](unsigned old) {
                    return old == 0 || old > value ? value : old - 1;
                }))

#undef CUDA_CPU_ORDER
#undef CUDA_CPU_ATOMIC
#undef CUDA_CPU_ATOMIC_CAS
#undef CUDA_CPU_ATOMIC_INTEGERS

#include "volatile.h"

#endif // __cplusplus
