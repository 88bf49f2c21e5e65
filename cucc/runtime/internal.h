// SPDX-License-Identifier: MIT
// The interface among the files of the runtime's host side, and between them and the engine (block.h)
#pragma once

#include "cuda_cpu/types.h"
#include "cuda_cpu/api.h"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <mutex>
#include <pthread.h>
#include <set>
#include <string>
#include <vector>

#ifdef __wasm__ // its C library has no on_exit()
inline int on_exit(void (*)(int, void *), void *) {
    return 0;
}
#endif

namespace cuda_cpu {

// ---- errors (error.cpp) ----

// Records the error as the last one of this host thread, prints "cuda on the CPU: …" on stderr, and returns
// the error. The text begins with the name of the call: "cudaFree: why". In these comments, "fails" means
// that a function calls fail().
cudaError_t fail(cudaError_t error, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Fails: "cudaStreamQuery: 0x1010 is not a stream, or was destroyed".
cudaError_t no_such(const char *call, cudaError_t error, const char *what, const void *handle);

// Prints "cuda on the CPU: NAME=value: must be …" for a variable of the environment, and ends the program.
[[noreturn]] void refuse_setting(const char *name, const char *value, const char *wanted);

// The index of an environment variable's value in this list, 0 if it is not set. Refuses any other value. The
// value random:SEED stands for random: and a number, which is stored in `seed`.
size_t setting_of(const char *name, const std::vector<std::string> &values, uint64_t *seed = nullptr);

// Sets the last error, and returns it: without a message, or after the message was printed. It has none for
// cudaErrorNotReady, which is a normal result, and for cudaErrorMemoryAllocation, after which a program may
// try with less; how much is free it can ask cudaMemGetInfo.
cudaError_t set_last_error(cudaError_t error);
// Device code: a pointer to the last error of the calling thread, which is cudaSuccess when the thread
// starts. Host code: null. In the common loop the calling thread is known only while a Caller exists
// (kernel.h): during a launch, cudaGetLastError and cudaPeekAtLastError. The error of any other call, such as
// cudaMalloc, becomes the last error of the thread that makes the next of these three calls.
cudaError_t *error_of_thread();

// A sticky error, which every later call on this device returns, because a GPU does not recover from it. The
// first one stays.
void set_sticky_error(cudaError_t error);
cudaError_t sticky_error(int device); // cudaSuccess if there is none
// After a reset, a device with a sticky error is unavailable to this process.
void lose_failed_device();

// Called before the message of an error that ends the program: writes what stdout still has. Only the first
// thread that calls it returns, so that one message is printed; the others wait until the program has ended.
void only_error();
// Prints a line on stderr that begins with "cuda on the CPU: ". Control characters, which names of files may
// contain, are replaced.
void print_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Prints such a line and ends the program. The functions of at_quick_exit() run, which may delete
// unfinished files, but no destructors of objects that other threads may still use.
[[noreturn]] void end_program(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The error that this call must return because CUDA_CPU_FAIL selects it; otherwise cudaSuccess. Every
// function of the runtime and of the driver API calls it, most of them in the checks below. A function that
// is built on another one, such as cudaMemcpy2D on transfer() or cuMemFree on cudaFree, counts as two calls.
cudaError_t failure_of(const char *call);

// The checks that every call begins with. Both refuse a call when there is no device, or when it is
// made inside a stream callback. begin() also returns the sticky error of the device; begin_query()
// does not, for calls that only ask about devices.
cudaError_t begin_query(const char *call);
extern std::atomic<bool> runtime_used; // by a call of the runtime, which on a GPU calls cuInit
cudaError_t begin(const char *call);

// Fail if there is no such device, memory pool or stream; the last two set `device`, if it is not null, to
// the one that the pool or stream belongs to.
cudaError_t check_device(const char *call, int device);
cudaError_t check_pool(const char *call, cudaMemPool_t pool, int *device = nullptr);
cudaError_t check_stream(const char *call, cudaStream_t stream, int *device = nullptr);

// Fails if an argument of a call is a null pointer, or a stream, memory pool, device, graph, executable
// graph, node of a graph or user object that does not exist. `names` begins with its name.
inline cudaError_t check_argument(const char *call, const char *, cudaStream_t stream) {
    return check_stream(call, stream);
}
inline cudaError_t check_argument(const char *call, const char *, cudaMemPool_t pool) {
    return check_pool(call, pool);
}
inline cudaError_t check_argument(const char *call, const char *, int device) {
    return check_device(call, device);
}
cudaError_t check_argument(const char *call, const char *, cudaGraph_t graph);          // graph.cpp
cudaError_t check_argument(const char *call, const char *, cudaGraphExec_t executable); // graph.cpp
cudaError_t check_argument(const char *call, const char *, cudaGraphNode_t node);       // graph.cpp
cudaError_t check_argument(const char *call, const char *, cudaUserObject_t object);    // graph.cpp
template <class T> cudaError_t check_argument(const char *call, const char *names, T *pointer) {
    return pointer ? cudaSuccess
                   : fail(cudaErrorInvalidValue, "%s: %.*s is NULL", call, (int)strcspn(names, ","), names);
}

template <class... T>
cudaError_t begin_with(cudaError_t begin(const char *), const char *call, const char *names, T... arguments) {
    cudaError_t error = begin(call);
    [[maybe_unused]] const auto check = [&](auto argument) {
        error = error ? error : check_argument(call, names, argument);
        names += strcspn(names, ",");
        names += strspn(names, ", ");
    };
    (check(arguments), ...);
    return error;
}

// Returns from the caller with the error of this call, if it has one.
#define TRY(call)                                                                                            \
    do {                                                                                                     \
        if (const cudaError_t failed = (call))                                                               \
            return failed;                                                                                   \
    } while (0)

// These begin a call: BEGIN(pointer, stream) declares `call`, its name for messages, makes the checks of
// begin(), and checks the arguments in this order (check_argument). BEGIN_AS is for a call with another name
// than the function, and BEGIN_IN for a function with the parameter `call`.
#define BEGIN(...)       BEGIN_AS(__func__, ##__VA_ARGS__)
#define BEGIN_QUERY(...) BEGIN_WITH(::cuda_cpu::begin_query, __func__, ##__VA_ARGS__)
#define MAY_FAIL(...)    BEGIN_WITH(::cuda_cpu::failure_of, __func__, ##__VA_ARGS__)
#define BEGIN_AS(...)    BEGIN_WITH(::cuda_cpu::begin, __VA_ARGS__)
#define BEGIN_WITH(begin, name, ...)                                                                         \
    [[maybe_unused]] const char *const call = name;                                                          \
    TRY(::cuda_cpu::begin_with(begin, call, #__VA_ARGS__, ##__VA_ARGS__))
#define BEGIN_IN(...) TRY(::cuda_cpu::begin_with(::cuda_cpu::begin, call, #__VA_ARGS__, ##__VA_ARGS__))
#define NOT_NULL(pointer)                                                                                    \
    if (!(pointer))                                                                                          \
    return ::cuda_cpu::fail(cudaErrorInvalidValue, "%s: %s is NULL", __func__, #pointer)
// Ends a call with an error and a message if the condition is true.
#define FAIL_IF(condition, error, format, ...)                                                               \
    do {                                                                                                     \
        if (condition)                                                                                       \
            return ::cuda_cpu::fail(error, "%s: " format, call, ##__VA_ARGS__);                              \
    } while (0)

// Ends a call if a value of an enumeration, which may hold any number, is not one of those from `first` to
// `last`.
#define IN_ENUMERATION(value, first, last, what)                                                             \
    FAIL_IF((int)(value) < (int)(first) || (int)(value) > (int)(last), cudaErrorInvalidValue,                \
            "there is no " what " %d", (int)(value))

// A call that makes these checks, one of the above, and returns one expression
#define SIMPLE_CALL(name, parameters, checks, ...)                                                           \
    cudaError_t name parameters {                                                                            \
        checks;                                                                                              \
        return __VA_ARGS__;                                                                                  \
    }

// Stores a result, unless the program passed a null pointer because it does not need it. Returns cudaSuccess.
template <class T, class Value> cudaError_t store(T *to, Value value) {
    if (to)
        *to = value;
    return cudaSuccess;
}

// Runs a callback of the program. The callback must not call the runtime.
extern thread_local bool in_callback;
template <class F> inline void run_callback(F callback) {
    in_callback = true;
    callback();
    in_callback = false;
}

extern thread_local bool in_library; // true while a function of cuBLAS, cuFFT, ... works in its stream

// For messages (error.cpp).
const char *base_name(const char *path);
std::string place(Site site); // "sum.cu:12"; line 0: not known, "sum.cu"
// ", allocated at sum.cu:12"; empty if the file is not known, as in a call from C.
std::string told_at(const char *verb, Site site);

// The number of workers, host threads that run blocks; a device reports as many multiprocessors
// (workers.cpp).
unsigned worker_count();

// Starts a host thread that is never joined (workers.cpp). False, with the reason in errno, if the system
// refuses it.
bool start_thread(std::function<void()> run);

// The only object of this type. It is never destroyed, because host threads may use it while the process
// exits.
template <class T> T &only() {
    static T &object = *new T;
    return object;
}
#define ONLY(name, ...)                                                                                      \
    __VA_ARGS__ &name() {                                                                                    \
        return only<__VA_ARGS__>();                                                                          \
    }

// The objects of one kind that the program has made and not destroyed
template <class T> struct Known {
    std::mutex mutex;
    std::set<T *> all;

    T *add(T *object) {
        std::lock_guard lock(mutex);
        return *all.insert(object).first;
    }
    bool has(const T *object) {
        std::lock_guard lock(mutex);
        return all.count(const_cast<T *>(object));
    }
    bool take(T *object) {
        std::lock_guard lock(mutex);
        return all.erase(object);
    }
    void delete_those_of(int device) {
        std::lock_guard lock(mutex);
        for (auto i = all.begin(); i != all.end();) {
            T *const object = *i;
            i = object->device == device ? all.erase(i) : std::next(i);
            if (object->device == device)
                delete object;
        }
    }
};
template <class T> Known<T> &known() {
    return only<Known<T>>();
}

// An object of each host thread, made when the thread first needs it and deleted when the thread ends. A
// thread_local object with a destructor is not used for this: glibc aborts the program if there is no memory
// to register the destructor.
template <class T> class PerThread {
  public:
    PerThread() {
        pthread_key_create(&key, [](void *object) { delete static_cast<T *>(object); });
    }
    T &mine() {
        static thread_local T *object = nullptr; // there is one PerThread for each type
        if (!object) {
            object = new T;
            pthread_setspecific(key, object);
        }
        return *object;
    }

  private:
    pthread_key_t key;
};

// ---- devices (device.cpp) ----

constexpr int max_devices = 64;

int device_count();                           // number of visible devices
int current_device();                         // the current device of this host thread
size_t limit_of(int device, cudaLimit limit); // the value that cudaDeviceSetLimit has set, or the default
const cudaDeviceProp &properties(int device);
cudaError_t no_device(const char *call);    // fails, with a message that says why there is no device
cudaDeviceProp describe_device(int device); // this machine as a device (properties.cpp)
size_t available_memory();                  // bytes that this process can still allocate

// Makes a device the current one of this host thread for the lifetime of the object.
struct OnDevice {
    const int before;

    explicit OnDevice(int device);
    ~OnDevice();
};

// ---- memory (registry.cpp) ----

enum class MemoryKind { device, managed, pinned, registered };
constexpr unsigned memory_of_stream = 1u << 31; // flag for allocate(): permitted while a stream is captured
constexpr unsigned memory_of_graphics = 1; // flag of device memory that stands for a mapped OpenGL buffer

struct Allocation {
    char *base;
    size_t size;
    MemoryKind kind;
    int device;     // the device that was current at the allocation
    unsigned flags; // cudaHostAlloc…, cudaHostRegister… or memory_of_graphics
    Site site;      // where the program allocated it
};

bool find_allocation(const void *pointer, Allocation &found);
const char *name_of(MemoryKind kind); // for messages: "managed memory"

enum class Side { device, host, either };

// Checks that [pointer, pointer + bytes) is valid as the `role` (for example "source") of `call`; fails if
// not.
cudaError_t check_range(const char *call, const char *role, const void *pointer, size_t bytes, Side side);
// The value that every byte of newly allocated device memory gets, as CUDA_CPU_FILL says (docs/execution.md)
int fresh_byte();
// Allocates memory filled with fresh_byte() and charges it to the current device. `file`
// and `line` are those of the program's call.
cudaError_t allocate(const char *call, void **pointer, size_t bytes, MemoryKind kind, unsigned flags);
// Frees device memory or managed memory. The memory of a mapped OpenGL buffer is freed only when
// `flags` is memory_of_graphics, so that a program cannot free it.
cudaError_t free_device(const char *call, void *pointer, unsigned flags = 0);
void free_memory_of(int device);

// Describes an address for the report of a fault: ", which is 400 bytes of device 0, allocated at sum.cu:12".
// Empty if nothing is known.
std::string describe_address(const void *address);

// How many were made and not destroyed
size_t live_arrays(), live_texture_objects(), live_streams(), live_events();

// ---- device memory that the host cannot access (guard.cpp) ----

bool guards();                        // true if CUDA_CPU_CHECK=1 is set
void *get_guarded(size_t bytes);      // filled with fresh_byte(); null when memory is exhausted
bool free_guarded(void *pointer);     // false if the memory is not of this kind
bool in_guarded(const void *pointer); // true for an address that is, or was, device memory
extern std::atomic<bool> guarding;    // true as soon as there may be such memory
void open_guarded();
void close_guarded();

// While one exists, host code can access device memory. Every function of the runtime that reads or writes
// device memory, and every launch, makes one.
struct DeviceAccess {
    const bool opened = guarding.load(std::memory_order_relaxed);

    DeviceAccess() {
        if (opened)
            open_guarded();
    }
    ~DeviceAccess() {
        if (opened)
            close_guarded();
    }
    DeviceAccess(const DeviceAccess &) = delete;
};

// ---- memory pools (memory_pool.cpp) ----

void enter_in_pool(cudaMemPool_t pool, void *pointer, size_t bytes); // pool null: the device's current pool
void leave_pool(void *pointer);

// ---- arrays, textures and surfaces (texture.cpp) ----

void free_arrays_of(int device); // also of textures and surfaces; free_memory_of frees the memory

// ---- graphics (gl.cpp) ----

// Drops the graphics resources of a device that is reset. It is a pointer, null until the first resource is
// registered, so that a program without OpenGL is linked without gl.cpp.
extern void (*forget_graphics_of)(int device);

// ---- streams (stream.cpp) ----

// Fails if there is no such stream, or if it belongs to another device than the current one. Launches need
// this.
cudaError_t check_stream_here(const char *call, cudaStream_t stream);
void destroy_streams_of(int device);
// Runs the deferred work of a device's streams (-1: of all devices); see operation.cpp.
cudaError_t finish_device(int device);
// Refuses a call that CUDA does not permit while a stream is captured, and invalidates the capture
// (capture.cpp).
cudaError_t refuse_unsafe(const char *call);

// ---- functions (function.cpp) ----

// Occupancy: the number of blocks with this many threads and bytes of shared memory that fit on a
// multiprocessor.
int resident_blocks(const cudaDeviceProp &device, unsigned threads, size_t shared_bytes);

// Reads an attribute of a launch: sets `cooperative`, refuses clusters, and ignores the others. `place` is
// the name of the call or structure, for messages.
cudaError_t set_attribute(const char *place, const cudaLaunchAttribute &attribute, bool &cooperative);

// ---- symbols (symbol.cpp) ----

// A ticket lock: it is granted in the order of the requests. Another host thread than the one that locked it
// may unlock it.
class TicketLock {
  public:
    void lock();
    void unlock();
    bool contended() const { return next != serving + 1; } // called by the holder: do others wait?

  private:
    std::atomic<uint64_t> next{0}, serving{0};
    std::mutex mutex;
    std::condition_variable changed;
};

// Serialises launches and accesses to symbols, because the variables of all devices share the same
// addresses.
TicketLock &launch_lock();
// Loads a device's __device__ and __constant__ variables into the sections. The caller holds
// launch_lock.
void symbols_for_device(int device);
void reset_symbols_of(int device);
void check_constant_limit();

struct SymbolSection {
    char *begin, *end;
    bool per_device, constant, writable;
};
// The section that contains the address, or null.
const SymbolSection *symbol_section(const void *address);
std::vector<SymbolSection> &symbol_sections();

// If one of the addresses is a symbol, loads the symbols of the current device. Holds launch_lock as long as
// it exists.
struct SymbolAccess {
    std::unique_lock<TicketLock> lock;

    explicit SymbolAccess(const void *a, const void *b = nullptr);
};

} // namespace cuda_cpu
