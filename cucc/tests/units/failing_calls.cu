// SPDX-License-Identifier: MIT
// Programs whose calls are made to fail. tests/test_attacks_faults.py runs each case with CUDA_CPU_FAIL=k,
// which lets call k return an error, or with the library tests/attacks/refuse.c preloaded, in which requests
// for threads and files fail. Without them no call fails.
#include <cuda.h>
#include <cooperative_groups.h>
#include <stdexcept>
#include <sys/resource.h>
#include "../unit.h"

// What call `number` of this process must return.
static cudaError_t expected(int number) {
    const char *const setting = getenv("CUDA_CPU_FAIL");
    if (!setting)
        return cudaSuccess;
    const bool sticky = strstr(setting, ":sticky") != NULL;
    return number == atoi(setting) || (sticky && number > atoi(setting)) ? cudaErrorIllegalAddress
                                                                         : cudaSuccess;
}

TEST(each_call_counts_once) {
    int device, version;
    EXPECT(cudaGetDevice(&device) == expected(1));
    EXPECT(cuInit(0) == (CUresult)expected(2));
    EXPECT(cuDriverGetVersion(&version) == (CUresult)expected(3));
    EXPECT(cudaSetDevice(0) == expected(4));
    // A failure of the driver API is no error of the runtime.
    const cudaError_t last = expected(1) ? expected(1) : expected(4);
    EXPECT(cudaGetLastError() == (last ? last : expected(5)));
    EXPECT(cudaGetLastError() == expected(6));
}

static __global__ void count_blocks(int *count) {
    cooperative_groups::this_grid().sync();
    atomicAdd(count, 1);
    cooperative_groups::this_grid().sync();
}

static __global__ void set(int *count) {
    *count = 100;
}

TEST(a_cooperative_launch_needs_its_threads) {
    int *count;
    OK(cudaMallocManaged(&count, sizeof *count));
    *count = 0;
    void *arguments[] = {&count};
    const bool refused = getenv("REFUSED") != NULL;
    const cudaError_t error = cudaLaunchCooperativeKernel(count_blocks, dim3(4), dim3(1), arguments, 0, 0);
    EXPECT(error == (refused ? cudaErrorLaunchOutOfResources : cudaSuccess));
    EXPECT(cudaGetLastError() == error);
    OK(cudaDeviceSynchronize());
    EXPECT(*count == (refused ? 0 : 4));
    set<<<64, 1>>>(count);
    OK(cudaDeviceSynchronize());
    EXPECT(*count == 100);
}

TEST(a_graph_is_written_whole_or_not_at_all) {
    cudaGraph_t graph;
    cudaGraphNode_t node;
    OK(cudaGraphCreate(&graph, 0));
    for (int i = 0; i < 100; i++)
        OK(cudaGraphAddEmptyNode(&node, graph, NULL, 0));
    const cudaError_t error = cudaGraphDebugDotPrint(graph, "graph.dot", 0);
    EXPECT(error == cudaSuccess || (error == cudaErrorOperatingSystem && getenv("REFUSED")));
    EXPECT((access("graph.dot", F_OK) == 0) == (error == cudaSuccess));
    remove("graph.dot");
}

static void throw_another(void *) {
    throw std::runtime_error("not of memory");
}

// Only an exception that says that memory is exhausted ends in one line; others are left to the C++ library.
TEST(other_exceptions_are_reported_as_usual) {
    const struct unit_result result = unit_child(throw_another, NULL);
    EXPECT(result.status == 128 + SIGABRT && strstr(result.err, "not of memory"));
}

static void terminate_program(void *) {
    std::terminate();
}

// With RLIMIT_AS = 0 the system gives no more memory, and the loop allocates what malloc still has. Not with
// sanitizers, which replace malloc.
static void terminate_without_memory(void *) {
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
    struct unit_result result = unit_child(terminate_program, NULL);
    EXPECT(result.status == 128 + SIGABRT && strstr(result.err, "without an active exception"));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    result = unit_child(terminate_without_memory, NULL);
    EXPECT(result.status == 1);
    EXPECT(strcmp(result.err, "cuda on the CPU: out of memory: an allocation of host memory failed\n") == 0);
#endif
}
