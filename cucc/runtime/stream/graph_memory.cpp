// SPDX-License-Identifier: MIT
// Memory that graphs own: cudaMallocAsync in a captured stream, and nodes that allocate.
#include "graph.h"

namespace cuda_cpu {

cudaError_t graph_memory(const char *call, size_t bytes, void **pointer, std::shared_ptr<const void> &keeps) {
    const CallFrom no_line(nullptr, 0); // the graph frees it
    TRY(allocate(call, pointer, bytes, MemoryKind::device, memory_of_stream));
    graphs().memory[*pointer] = bytes;
    keeps = {*pointer, [](const void *p) {
                 LOCK();
                 void *const memory = const_cast<void *>(p);
                 if (graphs().memory.erase(memory))
                     free_device("cudaGraphExecDestroy", memory);
             }};
    return cudaSuccess;
}

cudaError_t release(const char *call, void *pointer, cudaStream_t stream) {
    bool of_graph;
    {
        LOCK();
        of_graph = graphs().memory.count(pointer);
    }
    return submit(stream, {call, Release{pointer, of_graph}});
}

bool graph_owns(void *pointer) {
    LOCK();
    return graphs().memory.count(pointer);
}

cudaError_t allocate_captured(const char *call, void **pointer, size_t bytes, cudaStream_t stream) {
    Operation operation = {call, {}};
    TRY(graph_memory(call, bytes, pointer, operation.keeps));
    operation.what = Allocate{*pointer, bytes};
    return add_captured(stream, std::move(operation));
}

} // namespace cuda_cpu

SIMPLE_CALL(cudaDeviceGraphMemTrim, (int device), BEGIN(), check_device(call, device))

cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void *value) {
    BEGIN(value, device);
    IN_ENUMERATION(attribute, cudaGraphMemAttrUsedMemCurrent, cudaGraphMemAttrReservedMemHigh, "attribute");
    LOCK();
    uint64_t bytes = 0;
    for (const auto &[pointer, size] : graphs().memory) {
        const auto a = find_allocation(pointer);
        bytes += a && a->device == device ? size : 0;
    }
    *(uint64_t *)value = bytes;
    return cudaSuccess;
}
