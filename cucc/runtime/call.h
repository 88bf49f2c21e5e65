// SPDX-License-Identifier: MIT
// How every call of the runtime begins, checks its arguments and fails (device/error.cpp); common headers
#pragma once

#include "cuda_cpu/types.h"
#include "cuda_cpu/api.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>
#include <unistd.h>

namespace cuda_cpu {} // namespace cuda_cpu
using namespace cuda_cpu;

namespace cuda_cpu {

// Records the error as the last one of this host thread, prints "cuda on the CPU: …" on stderr, and returns
// it. The text begins with the call's name: "cudaFree: why". In comments, "fails" means a call of fail().
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

// Prints a line on stderr that begins with "cuda on the CPU: ", without control characters from file names.
void print_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Prints such a line and ends the program. The functions of at_quick_exit() run, which may delete
// unfinished files, but no destructors of objects that other threads may still use.
[[noreturn]] void end_program(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The error that this call must return because CUDA_CPU_FAIL selects it; otherwise cudaSuccess. Every
// function of the runtime and of the driver API calls it, most of them in the checks below. A function that
// is built on another one, such as cudaMemcpy2D on transfer() or cuMemFree on cudaFree, counts as two calls.
cudaError_t failure_of(const char *call);

// The checks that every call begins with: for a device, and against calls in a stream's callback. begin()
// also returns the sticky error of the device; begin_query() does not, for calls that only ask about devices.
cudaError_t begin_query(const char *call);
extern std::atomic<bool> runtime_used; // by a call of the runtime, which on a GPU calls cuInit
cudaError_t begin(const char *call);

// Fail if there is no such device, memory pool or stream; the last two set its `device`, if not null.
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

// Ends a call if a value of an enumeration, which may hold any number, is not from `first` to `last`.
#define IN_ENUMERATION(value, first, last, what)                                                             \
    FAIL_IF((int)(value) < (int)(first) || (int)(value) > (int)(last), cudaErrorInvalidValue,                \
            "there is no " what " %d", (int)(value))

// A call that makes these checks, one of the above, and returns one expression
#define SIMPLE_CALL(name, parameters, checks, ...)                                                           \
    cudaError_t name parameters {                                                                            \
        checks;                                                                                              \
        return __VA_ARGS__;                                                                                  \
    }

// A call that is another one with other arguments
#define FORWARD(name, parameters, ...)                                                                       \
    cudaError_t name parameters {                                                                            \
        return __VA_ARGS__;                                                                                  \
    }

// Stores a result, unless the program passed a null pointer because it does not need it. Returns cudaSuccess.
template <class T, class Value> cudaError_t store(T *to, Value value) {
    if (to)
        *to = value;
    return cudaSuccess;
}

// Runs a callback of the program (cudaStreamAddCallback, cudaLaunchHostFunc …), in which calls of the runtime
// are errors.
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

} // namespace cuda_cpu
