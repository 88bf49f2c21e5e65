// SPDX-License-Identifier: MIT
// Errors: the last error of each host thread, the sticky error of each device, names and texts.
#include "printable.h"
#include "stream.h"
#include "cuda_cpu/math.h"

#include <cctype>
#include <cstdarg>
#include <cxxabi.h>
#include <exception>
#include <new>
#include <sched.h>

namespace cuda_cpu {

thread_local bool in_callback = false;
thread_local bool in_library = false;

namespace {

struct ErrorText {
    cudaError_t error;
    const char *number, *name, *text;
};
#define NONE(...)
#define BOTH(name, NAME, value, text) {cudaError##name, #value, "cudaError" #name, text},
#define RUNTIME(name, value, text)    BOTH(name, , value, text)
constexpr ErrorText error_texts[] = {{cudaSuccess, "0", "cudaSuccess", "no error"},
                                     CUDA_CPU_ERRORS(BOTH, RUNTIME, NONE)};
#undef NONE
#undef BOTH
#undef RUNTIME

thread_local cudaError_t last_error_of_host = cudaSuccess;
std::atomic<cudaError_t> for_good[max_devices];

// The last message of a launch, copy, fill or cudaFree that failed since the program asked for an error
struct Unasked {
    std::mutex mutex;
    std::string text;
    bool of_launch = false;

    void clear() {
        std::lock_guard lock(mutex);
        text.clear();
        of_launch = false;
    }
};

ONLY(unasked, Unasked)

cudaError_t &last_error() {
    cudaError_t *const of_thread = error_of_thread();
    return of_thread ? *of_thread : last_error_of_host;
}

void say(const char *format, va_list values) {
    char text[1000];
    vsnprintf(text, sizeof text, format, values);
    fprintf(stderr, "cuda on the CPU: %s\n", printable(text));
}
#define SAY(format)                                                                                          \
    va_list values;                                                                                          \
    va_start(values, format);                                                                                \
    say(format, values);                                                                                     \
    va_end(values)

// CUDA_CPU_FAIL=k[:error][:sticky] (README.md)
struct Failure {
    uint64_t first = 0;
    cudaError_t error = cudaErrorUnknown;
    bool sticky = false;
    std::atomic<uint64_t> calls{0};
    std::atomic<bool> announced{false};

    Failure() {
        const char *const value = getenv("CUDA_CPU_FAIL");
        if (!value)
            return;
        char *end;
        first = strtoull(value, &end, 10);
        bool good = end != value && *value != '-' && first > 0;
        if (good && *end == ':' && strcmp(end, ":sticky") != 0) {
            const std::string name(end + 1, strcspn(end + 1, ":"));
            error = error_of(name);
            good = error != cudaSuccess;
            end += 1 + name.size();
        }
        sticky = strcmp(end, ":sticky") == 0;
        if (good && (sticky || !*end))
            return;
        refuse_setting("CUDA_CPU_FAIL", value,
                       "the number of a call, from 1, optionally followed by :ERROR, such as "
                       ":cudaErrorMemoryAllocation, and by :sticky");
    }

    // The error of that name or number; cudaSuccess if there is none.
    static cudaError_t error_of(const std::string &name) {
        for (const ErrorText &known : error_texts)
            if (name == known.name || name == known.number)
                return known.error;
        return cudaSuccess;
    }
} failure; // initialized before main

std::terminate_handler terminate_before;

// Runs when nothing catches an exception. If memory is exhausted, in the runtime or in the program, one line
// says so and the exit status is 1, as after other errors. Then there may be no current exception, because
// the exception object must be allocated too. Otherwise the C++ library reports the exception.
[[noreturn]] void on_terminate() {
    if (abi::__cxa_current_exception_type()) {
        try {
            throw; // looks at the exception
        } catch (const std::bad_alloc &) {
            end_program("out of memory: an allocation of host memory failed");
        } catch (...) {
            if (self && self->kernel)
                kernel_error("an exception, which device code cannot throw");
        }
    } else if (void *volatile memory = malloc(4096)) { // volatile: clang++ would leave the allocation out
        free(memory);
    } else {
        end_program("out of memory: an allocation of host memory failed");
    }
    terminate_before();
    abort();
}

// Runs before the constructors of static objects, because these allocate memory (101: the first priority).
[[gnu::constructor(101)]] void handle_terminate() {
    terminate_before = std::set_terminate(on_terminate);
}

} // namespace

const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

std::string place(Site site) {
    return base_name(site.file) + (site.line ? ":" + std::to_string(site.line) : "");
}

std::string told_at(const char *verb, Site site) {
    return site.file ? std::string(", ") + verb + " at " + place(site) : "";
}

void only_error() {
    static std::atomic_flag ending = ATOMIC_FLAG_INIT;
    static thread_local bool mine = false;
    while (!mine && ending.test_and_set())
        pause(); // another thread ends the program
    mine = true;
    fflush(stdout);
}

void print_line(const char *format, ...) {
    fflush(stdout);
    SAY(format);
}

void end_program(const char *format, ...) {
    only_error();
    SAY(format);
    quick_exit(EXIT_FAILURE);
}

cudaError_t failure_of(const char *call) {
    if (!failure.first)
        return cudaSuccess;
    const uint64_t number = ++failure.calls;
    if (number != failure.first && !(failure.sticky && number > failure.first))
        return cudaSuccess;
    if (number == failure.first) {
        fprintf(stderr, "cuda on the CPU: CUDA_CPU_FAIL=%s: %s fails with %s\n", getenv("CUDA_CPU_FAIL"),
                call, cudaGetErrorName(failure.error));
        failure.announced = true;
    }
    while (!failure.announced) // the program may end as soon as a call fails
        sched_yield();
    return failure.error;
}

cudaError_t fail(cudaError_t error, const char *format, ...) {
    SAY(format);
    char text[1000];
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    std::lock_guard lock(unasked().mutex);
    for (const char *begin : {"launch of", "the kernel", "kernel ", "cudaMemcpy", "cudaMemset", "cudaFree"})
        if (!in_kernel_now() && !unasked().of_launch && strncmp(text, begin, strlen(begin)) == 0)
            unasked().text = text;
    return last_error() = error;
}

void launch_failed() {
    if (in_kernel_now())
        return;
    std::lock_guard lock(unasked().mutex);
    unasked().of_launch = !unasked().text.empty();
}

bool tell_of_unasked() {
    Unasked &u = unasked();
    std::lock_guard lock(u.mutex);
    if (!u.text.empty())
        print_line("at exit: nothing has asked for the error of %s (cudaGetLastError): %s",
                   u.of_launch ? "a launch" : "a call", u.text.c_str());
    return u.of_launch;
}

cudaError_t no_such(const char *call, cudaError_t error, const char *what, const void *handle) {
    return fail(error, "%s: %p is not %s, or was destroyed", call, handle, what);
}

cudaError_t set_last_error(cudaError_t error) {
    return last_error() = error;
}

void refuse_setting(const char *name, const char *value, const char *wanted) {
    end_program("%s=%s: must be %s", name, value, wanted);
}

size_t setting_of(const char *name, const std::vector<std::string> &values, uint64_t *seed) {
    const char *const value = getenv(name);
    std::string list;
    for (size_t i = 0; i < values.size(); ++i) {
        const size_t seed_at = values[i].find("SEED");
        char *end = nullptr;
        if (!value || (seed_at == std::string::npos && value == values[i]))
            return i;
        if (strncmp(value, values[i].c_str(), seed_at) == 0 && isdigit((unsigned char)value[seed_at]) &&
            (*seed = strtoull(value + seed_at, &end, 10), *end == 0))
            return i;
        list += (i == 0 ? "" : i + 1 == values.size() ? " or " : ", ") + values[i];
    }
    refuse_setting(name, value, list.c_str());
}

void set_sticky_error(cudaError_t error) {
    cudaError_t none = cudaSuccess;
    for_good[current_device()].compare_exchange_strong(none, error);
}

cudaError_t sticky_error(int device) {
    return for_good[device];
}

void lose_failed_device() {
    if (for_good[current_device()] != cudaSuccess)
        for_good[current_device()] = cudaErrorDevicesUnavailable;
}

std::atomic<bool> runtime_used{false};

cudaError_t begin_query(const char *call) {
    runtime_used.store(true, std::memory_order_relaxed);
    FAIL_IF(in_callback, cudaErrorNotPermitted, "a stream's callback must not call the runtime");
    if (const cudaError_t error = failure_of(call))
        return last_error() = error;
    return device_count() == 0 ? no_device(call) : cudaSuccess;
}

cudaError_t begin(const char *call) {
    TRY(begin_query(call));
    const cudaError_t error = for_good[current_device()];
    if (error != cudaSuccess) {
        last_error() = error; // its message was printed when it occurred
        unasked().clear();
    }
    return error;
}

cudaError_t last_error_of_caller(const char *call, bool reset) {
    if (const cudaError_t error = failure_of(call))
        last_error() = error;
    const cudaError_t error = last_error();
    if (error && !in_kernel_now())
        unasked().clear();
    if (reset)
        last_error() = cudaSuccess;
    return error;
}

} // namespace cuda_cpu

FORWARD(cudaPeekAtLastError, (), last_error_of_caller(__func__, false))
FORWARD(cudaGetLastError, (), last_error_of_caller(__func__, true))

#define TEXT(function, member)                                                                               \
    const char *function(cudaError_t error) {                                                                \
        for (const ErrorText &known : error_texts)                                                           \
            if (known.error == error)                                                                        \
                return known.member;                                                                         \
        return "unrecognized error code";                                                                    \
    }
TEXT(cudaGetErrorName, name)
TEXT(cudaGetErrorString, text)
