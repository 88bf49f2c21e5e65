// SPDX-License-Identifier: MIT
// cucc only: calls that are made to fail with CUDA_CPU_FAIL, and failures of the operating system and of the
// program.
#include <atomic>
#include <cuda.h>
#include <fstream>
#include <stdexcept>
#include <sys/resource.h>
#include <thread>
#include "../unit.h"

// What call `number` of this process must return.
static cudaError_t expected(int number) {
    const char *const setting = getenv("CUDA_CPU_FAIL");
    const bool sticky = strstr(setting, ":sticky") != NULL;
    return number == atoi(setting) || (sticky && number > atoi(setting)) ? cudaErrorIllegalAddress
                                                                         : cudaSuccess;
}

// Runs a case in this program anew: the setting is read before main.
static void again(const char *the_case, const char *setting) {
    setenv("CUDA_CPU_FAIL", setting, 1);
    execl("/proc/self/exe", "failing_calls", the_case, NULL);
}

TEST(each_call_counts_once) {
    int device, version;
    if (!getenv("CUDA_CPU_FAIL")) {
        for (const char *setting : {"1:700", "2:700", "3:700", "4:700", "5:cudaErrorIllegalAddress", "6:700",
                                    "2:cudaErrorIllegalAddress:sticky"}) {
            fprintf(stderr, "CUDA_CPU_FAIL=%s\n", setting);
            ends_with(in_child([=] { again("each_call_counts_once", setting); }),
                      {"fails with cudaErrorIllegalAddress"}, 0);
        }
        return;
    }
    EXPECT(cudaGetDevice(&device) == expected(1));
    EXPECT(cuInit(0) == (CUresult)expected(2));
    EXPECT(cuDriverGetVersion(&version) == (CUresult)expected(3));
    EXPECT(cudaSetDevice(0) == expected(4));
    // A failure of the driver API is no error of the runtime.
    const cudaError_t last = expected(1) ? expected(1) : expected(4);
    EXPECT(cudaGetLastError() == (last ? last : expected(5)));
    EXPECT(cudaGetLastError() == expected(6));
}

static std::atomic<bool> writing, written;

static ssize_t write_slowly(void *, const char *, size_t bytes) {
    writing = true;
    usleep(100000);
    written = true;
    return (ssize_t)bytes;
}

// The program may end as soon as a call fails, so no other thread may see a failure before its line is there.
TEST(a_failure_is_announced_first) {
    int device;
    if (!getenv("CUDA_CPU_FAIL")) {
        ends_with(in_child([] { again("a_failure_is_announced_first", "1:700:sticky"); }), {}, 0);
        return;
    }
    FILE *const terminal = stderr;
    stderr = fopencookie(NULL, "w", {NULL, write_slowly, NULL, NULL});
    setvbuf(stderr, NULL, _IONBF, 0);
    std::thread first([] { cudaFree(NULL); });
    while (!writing)
        usleep(1000);
    const bool ok = cudaGetDevice(&device) == cudaErrorIllegalAddress && written;
    first.join();
    fclose(stderr);
    stderr = terminal;
    EXPECT(ok);
}

// Only an exception that says that memory is exhausted ends in one line; others are left to the C++ library.
TEST(other_exceptions_are_reported_as_usual) {
    ends_with(in_child([] { throw std::runtime_error("not of memory"); }), {"not of memory"}, 128 + SIGABRT);
}

// With RLIMIT_AS = 0 the system gives no more memory, and the loop allocates what malloc still has. Not with
// sanitizers, which replace malloc.
static void terminate_without_memory() {
    const struct rlimit none = {0, 0};
    void *volatile memory;
    setrlimit(RLIMIT_AS, &none);
    for (size_t bytes = 1 << 20; bytes >= 16; bytes /= 2)
        while ((memory = malloc(bytes))) {
        }
    std::terminate();
}

// The exception object must be allocated. If that fails, the C++ library calls std::terminate().
TEST(no_memory_for_an_exception) {
    ends_with(in_child([] { std::terminate(); }), {"without an active exception"}, 128 + SIGABRT);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    const unit_result result = in_child(terminate_without_memory);
    EXPECT(result.status == 1);
    EXPECT(strcmp(result.err, "cuda on the CPU: out of memory: an allocation of host memory failed\n") == 0);
#endif
}
