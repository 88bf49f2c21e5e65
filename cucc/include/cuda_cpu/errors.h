// SPDX-License-Identifier: MIT
// All errors: the name in the runtime (cudaError…), that in the driver API (CUDA_ERROR_…), the value and the
// text. The list defines both enumerations and what cudaGetErrorName, cudaGetErrorString and the like
// return.
#pragma once

#define CUDA_CPU_ERRORS(BOTH, RUNTIME, DRIVER)                                                               \
    BOTH(InvalidValue, INVALID_VALUE, 1, "invalid argument")                                                 \
    BOTH(MemoryAllocation, OUT_OF_MEMORY, 2, "out of memory")                                                \
    BOTH(InitializationError, NOT_INITIALIZED, 3, "initialization error")                                    \
    BOTH(CudartUnloading, DEINITIALIZED, 4, "driver shutting down")                                          \
    BOTH(ProfilerDisabled, PROFILER_DISABLED, 5, "profiler disabled while using external profiling tool")    \
    BOTH(ProfilerNotInitialized, PROFILER_NOT_INITIALIZED, 6,                                                \
         "profiler not initialized: call cudaProfilerInitialize()")                                          \
    BOTH(ProfilerAlreadyStarted, PROFILER_ALREADY_STARTED, 7, "profiler already started")                    \
    BOTH(ProfilerAlreadyStopped, PROFILER_ALREADY_STOPPED, 8, "profiler already stopped")                    \
    RUNTIME(InvalidConfiguration, 9, "invalid configuration argument")                                       \
    RUNTIME(InvalidPitchValue, 12, "invalid pitch argument")                                                 \
    RUNTIME(InvalidSymbol, 13, "invalid device symbol")                                                      \
    RUNTIME(InvalidHostPointer, 16, "invalid host pointer")                                                  \
    RUNTIME(InvalidDevicePointer, 17, "invalid device pointer")                                              \
    RUNTIME(InvalidTexture, 18, "invalid texture reference")                                                 \
    RUNTIME(InvalidTextureBinding, 19, "texture is not bound to a pointer")                                  \
    RUNTIME(InvalidChannelDescriptor, 20, "invalid channel descriptor")                                      \
    RUNTIME(InvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                                 \
    RUNTIME(AddressOfConstant, 22, "invalid address of constant")                                            \
    RUNTIME(TextureFetchFailed, 23, "fetch from texture failed")                                             \
    RUNTIME(TextureNotBound, 24, "cannot fetch from a texture that is not bound")                            \
    RUNTIME(SynchronizationError, 25, "incorrect use of __syncthreads()")                                    \
    RUNTIME(InvalidFilterSetting, 26, "linear filtering not supported for non-float type")                   \
    RUNTIME(InvalidNormSetting, 27, "read as normalized float not supported for data type")                  \
    RUNTIME(MixedDeviceExecution, 28, "device emulation mode and device execution mode cannot be mixed")     \
    RUNTIME(NotYetImplemented, 31, "feature not yet implemented")                                            \
    RUNTIME(MemoryValueTooLarge, 32, "memory size or pointer value too large to fit in 32 bit")              \
    BOTH(StubLibrary, STUB_LIBRARY, 34, "CUDA driver is a stub library")                                     \
    RUNTIME(InsufficientDriver, 35, "CUDA driver version is insufficient for CUDA runtime version")          \
    BOTH(CallRequiresNewerDriver, CALL_REQUIRES_NEWER_DRIVER, 36,                                            \
         "API call is not supported in the installed CUDA driver")                                           \
    RUNTIME(InvalidSurface, 37, "invalid surface reference")                                                 \
    RUNTIME(DuplicateVariableName, 43, "duplicate global variable looked up by string name")                 \
    RUNTIME(DuplicateTextureName, 44, "duplicate texture looked up by string name")                          \
    RUNTIME(DuplicateSurfaceName, 45, "duplicate surface looked up by string name")                          \
    BOTH(DevicesUnavailable, DEVICE_UNAVAILABLE, 46, "CUDA-capable device(s) is/are busy or unavailable")    \
    RUNTIME(IncompatibleDriverContext, 49, "incompatible driver context")                                    \
    RUNTIME(MissingConfiguration, 52, "__global__ function call is not configured")                          \
    RUNTIME(PriorLaunchFailure, 53, "unspecified launch failure in prior launch")                            \
    RUNTIME(LaunchMaxDepthExceeded, 65, "launch would exceed maximum depth of nested launches")              \
    RUNTIME(LaunchFileScopedTex, 66,                                                                         \
            "launch failed because kernel uses unsupported, file-scoped textures (texture objects are "      \
            "supported)")                                                                                    \
    RUNTIME(LaunchFileScopedSurf, 67,                                                                        \
            "launch failed because kernel uses unsupported, file-scoped surfaces (surface objects are "      \
            "supported)")                                                                                    \
    RUNTIME(SyncDepthExceeded, 68,                                                                           \
            "cudaDeviceSynchronize failed because caller's grid depth exceeds cudaLimitDevRuntimeSyncDepth") \
    RUNTIME(LaunchPendingCountExceeded, 69,                                                                  \
            "launch failed because launch would exceed cudaLimitDevRuntimePendingLaunchCount")               \
    RUNTIME(InvalidDeviceFunction, 98, "invalid device function")                                            \
    BOTH(NoDevice, NO_DEVICE, 100, "no CUDA-capable device is detected")                                     \
    BOTH(InvalidDevice, INVALID_DEVICE, 101, "invalid device ordinal")                                       \
    BOTH(DeviceNotLicensed, DEVICE_NOT_LICENSED, 102, "device doesn't have valid Grid license")              \
    RUNTIME(SoftwareValidityNotEstablished, 103, "integrity checks failed")                                  \
    RUNTIME(StartupFailure, 127, "startup failure in cuda runtime")                                          \
    BOTH(InvalidKernelImage, INVALID_IMAGE, 200, "device kernel image is invalid")                           \
    BOTH(DeviceUninitialized, INVALID_CONTEXT, 201, "invalid device context")                                \
    DRIVER(CONTEXT_ALREADY_CURRENT, 202)                                                                     \
    BOTH(MapBufferObjectFailed, MAP_FAILED, 205, "mapping of buffer object failed")                          \
    BOTH(UnmapBufferObjectFailed, UNMAP_FAILED, 206, "unmapping of buffer object failed")                    \
    BOTH(ArrayIsMapped, ARRAY_IS_MAPPED, 207, "array is mapped")                                             \
    BOTH(AlreadyMapped, ALREADY_MAPPED, 208, "resource already mapped")                                      \
    BOTH(NoKernelImageForDevice, NO_BINARY_FOR_GPU, 209,                                                     \
         "no kernel image is available for execution on the device")                                         \
    BOTH(AlreadyAcquired, ALREADY_ACQUIRED, 210, "resource already acquired")                                \
    BOTH(NotMapped, NOT_MAPPED, 211, "resource not mapped")                                                  \
    BOTH(NotMappedAsArray, NOT_MAPPED_AS_ARRAY, 212, "resource not mapped as array")                         \
    BOTH(NotMappedAsPointer, NOT_MAPPED_AS_POINTER, 213, "resource not mapped as pointer")                   \
    BOTH(ECCUncorrectable, ECC_UNCORRECTABLE, 214, "uncorrectable ECC error encountered")                    \
    BOTH(UnsupportedLimit, UNSUPPORTED_LIMIT, 215, "limit is not supported on this architecture")            \
    BOTH(DeviceAlreadyInUse, CONTEXT_ALREADY_IN_USE, 216,                                                    \
         "exclusive-thread device already in use by a different thread")                                     \
    BOTH(PeerAccessUnsupported, PEER_ACCESS_UNSUPPORTED, 217,                                                \
         "peer access is not supported between these two devices")                                           \
    BOTH(InvalidPtx, INVALID_PTX, 218, "a PTX JIT compilation failed")                                       \
    BOTH(InvalidGraphicsContext, INVALID_GRAPHICS_CONTEXT, 219, "invalid OpenGL or DirectX context")         \
    BOTH(NvlinkUncorrectable, NVLINK_UNCORRECTABLE, 220,                                                     \
         "uncorrectable NVLink error detected during the execution")                                         \
    BOTH(JitCompilerNotFound, JIT_COMPILER_NOT_FOUND, 221, "PTX JIT compiler library not found")             \
    BOTH(UnsupportedPtxVersion, UNSUPPORTED_PTX_VERSION, 222,                                                \
         "the provided PTX was compiled with an unsupported toolchain.")                                     \
    BOTH(JitCompilationDisabled, JIT_COMPILATION_DISABLED, 223, "PTX JIT compilation was disabled")          \
    BOTH(UnsupportedExecAffinity, UNSUPPORTED_EXEC_AFFINITY, 224,                                            \
         "the provided execution affinity is not supported")                                                 \
    BOTH(UnsupportedDevSideSync, UNSUPPORTED_DEVSIDE_SYNC, 225,                                              \
         "the provided PTX contains unsupported call to cudaDeviceSynchronize")                              \
    BOTH(Contained, CONTAINED, 226, "Invalid access of peer GPU memory over nvlink or a hardware error")     \
    BOTH(InvalidSource, INVALID_SOURCE, 300, "device kernel image is invalid")                               \
    BOTH(FileNotFound, FILE_NOT_FOUND, 301, "file not found")                                                \
    BOTH(SharedObjectSymbolNotFound, SHARED_OBJECT_SYMBOL_NOT_FOUND, 302, "shared object symbol not found")  \
    BOTH(SharedObjectInitFailed, SHARED_OBJECT_INIT_FAILED, 303, "shared object initialization failed")      \
    BOTH(OperatingSystem, OPERATING_SYSTEM, 304, "OS call failed or operation not supported on this OS")     \
    BOTH(InvalidResourceHandle, INVALID_HANDLE, 400, "invalid resource handle")                              \
    BOTH(IllegalState, ILLEGAL_STATE, 401, "the operation cannot be performed in the present state")         \
    BOTH(LossyQuery, LOSSY_QUERY, 402, "attempted introspection would be semantically lossy")                \
    BOTH(SymbolNotFound, NOT_FOUND, 500, "named symbol not found")                                           \
    BOTH(NotReady, NOT_READY, 600, "device not ready")                                                       \
    BOTH(IllegalAddress, ILLEGAL_ADDRESS, 700, "an illegal memory access was encountered")                   \
    BOTH(LaunchOutOfResources, LAUNCH_OUT_OF_RESOURCES, 701, "too many resources requested for launch")      \
    BOTH(LaunchTimeout, LAUNCH_TIMEOUT, 702, "the launch timed out and was terminated")                      \
    BOTH(LaunchIncompatibleTexturing, LAUNCH_INCOMPATIBLE_TEXTURING, 703,                                    \
         "launch uses incompatible texturing mode")                                                          \
    BOTH(PeerAccessAlreadyEnabled, PEER_ACCESS_ALREADY_ENABLED, 704, "peer access is already enabled")       \
    BOTH(PeerAccessNotEnabled, PEER_ACCESS_NOT_ENABLED, 705, "peer access has not been enabled")             \
    BOTH(SetOnActiveProcess, PRIMARY_CONTEXT_ACTIVE, 708,                                                    \
         "cannot set while device is active in this process")                                                \
    BOTH(ContextIsDestroyed, CONTEXT_IS_DESTROYED, 709, "context is destroyed")                              \
    BOTH(Assert, ASSERT, 710, "device-side assert triggered")                                                \
    BOTH(TooManyPeers, TOO_MANY_PEERS, 711, "peer mapping resources exhausted")                              \
    BOTH(HostMemoryAlreadyRegistered, HOST_MEMORY_ALREADY_REGISTERED, 712,                                   \
         "part or all of the requested memory range is already mapped")                                      \
    BOTH(HostMemoryNotRegistered, HOST_MEMORY_NOT_REGISTERED, 713,                                           \
         "pointer does not correspond to a registered memory region")                                        \
    BOTH(HardwareStackError, HARDWARE_STACK_ERROR, 714, "hardware stack error")                              \
    BOTH(IllegalInstruction, ILLEGAL_INSTRUCTION, 715, "an illegal instruction was encountered")             \
    BOTH(MisalignedAddress, MISALIGNED_ADDRESS, 716, "misaligned address")                                   \
    BOTH(InvalidAddressSpace, INVALID_ADDRESS_SPACE, 717,                                                    \
         "operation not supported on global/shared address space")                                           \
    BOTH(InvalidPc, INVALID_PC, 718, "invalid program counter")                                              \
    BOTH(LaunchFailure, LAUNCH_FAILED, 719, "unspecified launch failure")                                    \
    BOTH(CooperativeLaunchTooLarge, COOPERATIVE_LAUNCH_TOO_LARGE, 720,                                       \
         "too many blocks in cooperative launch")                                                            \
    BOTH(TensorMemoryLeak, TENSOR_MEMORY_LEAK, 721, "tensor memory not completely freed")                    \
    BOTH(NotPermitted, NOT_PERMITTED, 800, "operation not permitted")                                        \
    BOTH(NotSupported, NOT_SUPPORTED, 801, "operation not supported")                                        \
    BOTH(SystemNotReady, SYSTEM_NOT_READY, 802, "system not yet initialized")                                \
    BOTH(SystemDriverMismatch, SYSTEM_DRIVER_MISMATCH, 803,                                                  \
         "system has unsupported display driver / cuda driver combination")                                  \
    BOTH(CompatNotSupportedOnDevice, COMPAT_NOT_SUPPORTED_ON_DEVICE, 804,                                    \
         "forward compatibility was attempted on non supported HW")                                          \
    BOTH(MpsConnectionFailed, MPS_CONNECTION_FAILED, 805,                                                    \
         "MPS client failed to connect to the MPS control daemon or the MPS server")                         \
    BOTH(MpsRpcFailure, MPS_RPC_FAILURE, 806,                                                                \
         "the remote procedural call between the MPS server and the MPS client failed")                      \
    BOTH(MpsServerNotReady, MPS_SERVER_NOT_READY, 807,                                                       \
         "MPS server is not ready to accept new MPS client requests")                                        \
    BOTH(MpsMaxClientsReached, MPS_MAX_CLIENTS_REACHED, 808,                                                 \
         "the hardware resources required to create MPS client have been exhausted")                         \
    BOTH(MpsMaxConnectionsReached, MPS_MAX_CONNECTIONS_REACHED, 809,                                         \
         "the hardware resources required to support device connections have been exhausted")                \
    BOTH(MpsClientTerminated, MPS_CLIENT_TERMINATED, 810,                                                    \
         "the MPS client has been terminated by the server")                                                 \
    BOTH(CdpNotSupported, CDP_NOT_SUPPORTED, 811,                                                            \
         "is using CUDA Dynamic Parallelism, but the current configuration, like MPS, does not support it")  \
    BOTH(CdpVersionMismatch, CDP_VERSION_MISMATCH, 812,                                                      \
         "unsupported interaction between different versions of CUDA Dynamic Parallelism")                   \
    BOTH(StreamCaptureUnsupported, STREAM_CAPTURE_UNSUPPORTED, 900,                                          \
         "operation not permitted when stream is capturing")                                                 \
    BOTH(StreamCaptureInvalidated, STREAM_CAPTURE_INVALIDATED, 901,                                          \
         "operation failed due to a previous error during capture")                                          \
    BOTH(StreamCaptureMerge, STREAM_CAPTURE_MERGE, 902,                                                      \
         "operation would result in a merge of separate capture sequences")                                  \
    BOTH(StreamCaptureUnmatched, STREAM_CAPTURE_UNMATCHED, 903,                                              \
         "capture was not ended in the same stream as it began")                                             \
    BOTH(StreamCaptureUnjoined, STREAM_CAPTURE_UNJOINED, 904, "capturing stream has unjoined work")          \
    BOTH(StreamCaptureIsolation, STREAM_CAPTURE_ISOLATION, 905,                                              \
         "dependency created on uncaptured work in another stream")                                          \
    BOTH(StreamCaptureImplicit, STREAM_CAPTURE_IMPLICIT, 906,                                                \
         "operation would make the legacy stream depend on a capturing blocking stream")                     \
    BOTH(CapturedEvent, CAPTURED_EVENT, 907,                                                                 \
         "operation not permitted on an event last recorded in a capturing stream")                          \
    BOTH(StreamCaptureWrongThread, STREAM_CAPTURE_WRONG_THREAD, 908,                                         \
         "attempt to terminate a thread-local capture sequence from another thread")                         \
    BOTH(Timeout, TIMEOUT, 909, "wait operation timed out")                                                  \
    BOTH(GraphExecUpdateFailure, GRAPH_EXEC_UPDATE_FAILURE, 910,                                             \
         "the graph update was not performed because it included changes which violated constraints "        \
         "specific to instantiated graph update")                                                            \
    BOTH(ExternalDevice, EXTERNAL_DEVICE, 911,                                                               \
         "an async error has occured in external entity outside of CUDA")                                    \
    BOTH(InvalidClusterSize, INVALID_CLUSTER_SIZE, 912,                                                      \
         "a kernel launch error has occurred due to cluster misconfiguration")                               \
    BOTH(FunctionNotLoaded, FUNCTION_NOT_LOADED, 913,                                                        \
         "the function handle is not loaded when calling an API that requires a loaded function")            \
    BOTH(InvalidResourceType, INVALID_RESOURCE_TYPE, 914,                                                    \
         "one or more resources passed in are not valid resource types for the operation")                   \
    BOTH(InvalidResourceConfiguration, INVALID_RESOURCE_CONFIGURATION, 915,                                  \
         "one or more resources are insufficient or non-applicable for the operation")                       \
    DRIVER(KEY_ROTATION, 916)                                                                                \
    BOTH(Unknown, UNKNOWN, 999, "unknown error")                                                             \
    RUNTIME(ApiFailureBase, 10000, "api failure base")
