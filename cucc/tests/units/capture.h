// SPDX-License-Identifier: MIT
// Graphs of the work of libraries, for unit tests.
#ifndef TESTS_CAPTURE_H
#define TESTS_CAPTURE_H

#include <cuda_runtime.h>
#include "../unit.h"

// A stream, and a graph of what `work` puts into it
struct Captured {
    cudaStream_t stream;
    cudaGraphExec_t runs;

    Captured() { OK(cudaStreamCreate(&stream)); }
    template <class Work> void capture(Work work) {
        cudaGraph_t graph;
        OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        work();
        OK(cudaStreamEndCapture(stream, &graph));
        OK(cudaGraphInstantiate(&runs, graph, 0));
        OK(cudaGraphDestroy(graph));
    }
    void run() const {
        OK(cudaGraphLaunch(runs, stream));
        OK(cudaStreamSynchronize(stream));
    }
};

#endif
