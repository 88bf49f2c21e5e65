// SPDX-License-Identifier: MIT
// Graphs and stream capture: the part of the runtime's host side that api.h includes last. CUDA 13 changed
// some signatures; in C++ the forms of CUDA 11 and 12 are overloads.
#pragma once
#include "types.h"

// ---- values and structures ----

typedef struct CUgraphNode_st *cudaGraphNode_t;

typedef struct CUuserObject_st *cudaUserObject_t;

enum cudaUserObjectFlags { cudaUserObjectNoDestructorSync = 1 };
enum cudaUserObjectRetainFlags { cudaGraphUserObjectMove = 1 };

// clang-format off
typedef enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal = 0, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed
} cudaStreamCaptureMode;

typedef enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone = 0, cudaStreamCaptureStatusActive, cudaStreamCaptureStatusInvalidated
} cudaStreamCaptureStatus;

enum cudaStreamUpdateCaptureDependenciesFlags {
    cudaStreamAddCaptureDependencies = 0, cudaStreamSetCaptureDependencies
};

typedef enum cudaGraphNodeType {
    cudaGraphNodeTypeKernel = 0, cudaGraphNodeTypeMemcpy = 1, cudaGraphNodeTypeMemset = 2,
    cudaGraphNodeTypeHost = 3, cudaGraphNodeTypeGraph = 4, cudaGraphNodeTypeEmpty = 5,
    cudaGraphNodeTypeWaitEvent = 6, cudaGraphNodeTypeEventRecord = 7, cudaGraphNodeTypeExtSemaphoreSignal = 8,
    cudaGraphNodeTypeExtSemaphoreWait = 9, cudaGraphNodeTypeMemAlloc = 10, cudaGraphNodeTypeMemFree = 11,
    cudaGraphNodeTypeConditional = 13, cudaGraphNodeTypeCount
} cudaGraphNodeType;

enum cudaGraphExecUpdateResult {
    cudaGraphExecUpdateSuccess = 0, cudaGraphExecUpdateError, cudaGraphExecUpdateErrorTopologyChanged,
    cudaGraphExecUpdateErrorNodeTypeChanged, cudaGraphExecUpdateErrorFunctionChanged,
    cudaGraphExecUpdateErrorParametersChanged, cudaGraphExecUpdateErrorNotSupported,
    cudaGraphExecUpdateErrorUnsupportedFunctionChange, cudaGraphExecUpdateErrorAttributesChanged
};
// clang-format on

typedef struct cudaGraphExecUpdateResultInfo_st {
    enum cudaGraphExecUpdateResult result;
    cudaGraphNode_t errorNode, errorFromNode;
} cudaGraphExecUpdateResultInfo;

enum cudaGraphInstantiateFlags {
    cudaGraphInstantiateFlagAutoFreeOnLaunch = 1,
    cudaGraphInstantiateFlagUpload = 2,
    cudaGraphInstantiateFlagDeviceLaunch = 4,
    cudaGraphInstantiateFlagUseNodePriority = 8
};

enum cudaGraphMemAttributeType {
    cudaGraphMemAttrUsedMemCurrent = 0,
    cudaGraphMemAttrUsedMemHigh = 1,
    cudaGraphMemAttrReservedMemCurrent = 2,
    cudaGraphMemAttrReservedMemHigh = 3
};

// A handle stands for the value that a conditional node reads.
typedef unsigned long long cudaGraphConditionalHandle;
enum cudaGraphConditionalHandleFlags { cudaGraphCondAssignDefault = 1 };
enum cudaGraphConditionalNodeType { cudaGraphCondTypeIf, cudaGraphCondTypeWhile, cudaGraphCondTypeSwitch };

typedef struct cudaGraphEdgeData_st { // all members 0: a full dependency, the only supported kind
    unsigned char from_port, to_port, type, reserved[5];
} cudaGraphEdgeData;

typedef struct cudaKernelNodeParams {
    void *func;
    dim3 gridDim, blockDim;
    unsigned int sharedMemBytes;
    void **kernelParams; // addresses of the arguments
    void **extra;
} cudaKernelNodeParams;

typedef struct cudaMemsetParams {
    void *dst;
    size_t pitch;
    unsigned int value, elementSize; // the value; the size of an element: 1, 2 or 4 bytes
    size_t width, height;            // width in elements
} cudaMemsetParams;

typedef struct cudaHostNodeParams {
    cudaHostFn_t fn;
    void *userData;
} cudaHostNodeParams;

struct cudaMemAllocNodeParams {
    struct cudaMemPoolProps poolProps;
    const struct cudaMemAccessDesc *accessDescs;
    size_t accessDescCount, bytesize;
    void *dptr;
};

struct cudaMemcpyNodeParams {
    int flags, reserved[3];
    struct cudaMemcpy3DParms copyParams;
};
struct cudaChildGraphNodeParams {
    cudaGraph_t graph;
    int ownership;
};
struct cudaMemFreeNodeParams {
    void *dptr;
};
struct cudaConditionalNodeParams {
    cudaGraphConditionalHandle handle;
    enum cudaGraphConditionalNodeType type;
    unsigned int size;        // number of bodies: 1 or 2 of an `if`, 1 of a `while`
    cudaGraph_t *phGraph_out; // set by cudaGraphAddNode: the bodies, empty graphs
};

struct cudaGraphNodeParams {
    cudaGraphNodeType type;
    int reserved0[3];
    union {
        long long reserved1[29];
        cudaKernelNodeParams kernel;
        struct cudaMemcpyNodeParams memcpy;
        cudaMemsetParams memset;
        cudaHostNodeParams host;
        struct cudaChildGraphNodeParams graph;
        struct cudaMemAllocNodeParams alloc;
        struct cudaMemFreeNodeParams free;
        struct cudaConditionalNodeParams conditional;
    };
    long long reserved2;
};

// ---- functions ----

#ifdef __cplusplus
extern "C" {
#endif

// Capture
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges,
                                          size_t count, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status);
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus *status,
                                     unsigned long long *id CUDA_CPU_OR(NULL),
                                     cudaGraph_t *graph CUDA_CPU_OR(NULL),
                                     const cudaGraphNode_t **dependencies CUDA_CPU_OR(NULL),
                                     const cudaGraphEdgeData **edges CUDA_CPU_OR(NULL),
                                     size_t *count CUDA_CPU_OR(NULL));
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *dependencies,
                                                const cudaGraphEdgeData *edges, size_t count,
                                                unsigned int flags CUDA_CPU_OR(0));

// Graphs
cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to, const cudaGraphEdgeData *edges, size_t count);
cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *data, cudaHostFn_t destroy,
                                 unsigned int references, unsigned int flags);
cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count CUDA_CPU_OR(1));
cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count CUDA_CPU_OR(1));
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                      unsigned int count CUDA_CPU_OR(1), unsigned int flags CUDA_CPU_OR(0));
cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                       unsigned int count CUDA_CPU_OR(1));
// Makes a handle for one conditional node. With cudaGraphCondAssignDefault each launch begins with `value`.
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
                                             unsigned int value CUDA_CPU_OR(0),
                                             unsigned int flags CUDA_CPU_OR(0));
void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value); // for kernels

// Nodes. The parameters of each new node, which runs after the `count` nodes of `after`
#define CUDA_CPU_NEW_NODE cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count
cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                             const cudaGraphEdgeData *edges, size_t count,
                             struct cudaGraphNodeParams *params);
cudaError_t cudaGraphAddKernelNode(CUDA_CPU_NEW_NODE, const cudaKernelNodeParams *params);
cudaError_t cudaGraphAddMemcpyNode(CUDA_CPU_NEW_NODE, const cudaMemcpy3DParms *params);
cudaError_t cudaGraphAddMemcpyNode1D(CUDA_CPU_NEW_NODE, void *to, const void *from, size_t bytes,
                                     cudaMemcpyKind kind);
cudaError_t cudaGraphAddMemsetNode(CUDA_CPU_NEW_NODE, const cudaMemsetParams *params);
cudaError_t cudaGraphAddHostNode(CUDA_CPU_NEW_NODE, const cudaHostNodeParams *params);
cudaError_t cudaGraphAddChildGraphNode(CUDA_CPU_NEW_NODE, cudaGraph_t child);
cudaError_t cudaGraphAddEmptyNode(CUDA_CPU_NEW_NODE);
cudaError_t cudaGraphAddMemAllocNode(CUDA_CPU_NEW_NODE, struct cudaMemAllocNodeParams *params);
cudaError_t cudaGraphAddMemFreeNode(CUDA_CPU_NEW_NODE, void *pointer);
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType *type);
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams *params);
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams *params);
cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            const cudaLaunchAttributeValue *value);

// Executable graphs
#define CUDA_CPU_EXEC_NODE cudaGraphExec_t executable, cudaGraphNode_t node
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                 unsigned long long flags CUDA_CPU_OR(0));
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph,
                                          unsigned long long flags CUDA_CPU_OR(0));
cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *info);
cudaError_t cudaGraphExecKernelNodeSetParams(CUDA_CPU_EXEC_NODE, const cudaKernelNodeParams *params);
cudaError_t cudaGraphExecMemcpyNodeSetParams(CUDA_CPU_EXEC_NODE, const cudaMemcpy3DParms *params);
cudaError_t cudaGraphExecMemsetNodeSetParams(CUDA_CPU_EXEC_NODE, const cudaMemsetParams *params);
cudaError_t cudaGraphExecHostNodeSetParams(CUDA_CPU_EXEC_NODE, const cudaHostNodeParams *params);

// Memory that graphs own.
cudaError_t cudaDeviceGraphMemTrim(int device);
cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute, void *value);

#ifdef __cplusplus
} // extern "C"

// The signatures of CUDA 11 and 12.
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                        cudaGraphNode_t *error_node, char *, size_t) {
    if (error_node)
        *error_node = nullptr;
    return cudaGraphInstantiate(executable, graph, 0ull);
}
inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                       cudaGraphNode_t *error_node, cudaGraphExecUpdateResult *result) {
    cudaGraphExecUpdateResultInfo info = {};
    const cudaError_t error = cudaGraphExecUpdate(executable, graph, &info);
    if (error_node)
        *error_node = info.errorNode;
    if (result)
        *result = info.result;
    return error;
}
CUDA_CPU_OVERLOAD(cudaGraphAddDependencies,
                  (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count),
                  graph, from, to, nullptr, count)
CUDA_CPU_OVERLOAD(cudaGraphAddNode, (CUDA_CPU_NEW_NODE, cudaGraphNodeParams *params), node, graph, after,
                  nullptr, count, params)
CUDA_CPU_OVERLOAD(cudaStreamGetCaptureInfo,
                  (cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id,
                   cudaGraph_t *graph, const cudaGraphNode_t **dependencies, size_t *count),
                  stream, status, id, graph, dependencies, nullptr, count)
CUDA_CPU_OVERLOAD(cudaStreamUpdateCaptureDependencies,
                  (cudaStream_t stream, cudaGraphNode_t *dependencies, size_t count, unsigned int flags = 0),
                  stream, dependencies, nullptr, count, flags)
// Makes a user object from a C++ object, which is deleted with the last reference.
template <class T>
inline cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, T *wrapped, unsigned int references,
                                        unsigned int flags) {
    return cudaUserObjectCreate(
        object, wrapped, [](void *p) { delete (T *)p; }, references, flags);
}
#endif
