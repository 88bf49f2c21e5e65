// SPDX-License-Identifier: MIT
// With DEBUG, HANDLE_LAUNCH() waits for the kernel, and not for one that a graph records.
#undef DEBUG
#define DEBUG
#include "../../common/book.h"
#include "../../cucc/tests/unit.h"

__global__ static void set(int *x, int value) {
    *x = value;
}

TEST(a_launch_that_a_graph_records_is_not_waited_for) {
    int *x;
    cudaStream_t stream;
    cudaGraph_t graph;
    HANDLE_ERROR(cudaHostAlloc(&x, sizeof(*x), cudaHostAllocMapped));
    HANDLE_ERROR(cudaStreamCreate(&stream));
    set<<<1, 1, 0, stream>>>(x, 1);
    HANDLE_LAUNCH();
    EXPECT(*x == 1);
    HANDLE_ERROR(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    set<<<1, 1, 0, stream>>>(x, 2);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaStreamEndCapture(stream, &graph));
    EXPECT(*x == 1 && cudaGetLastError() == cudaSuccess);
    HANDLE_ERROR(cudaGraphDestroy(graph));
    HANDLE_ERROR(cudaStreamDestroy(stream));
    HANDLE_ERROR(cudaFreeHost(x));
}
