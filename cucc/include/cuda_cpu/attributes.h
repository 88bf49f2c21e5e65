// SPDX-License-Identifier: MIT
/*
 * All device attributes: the name in the runtime (cudaDevAttr…), that in the driver API
 * (CU_DEVICE_ATTRIBUTE_…), the value, and the expression that cudaDeviceGetAttribute returns. In it, `p` is
 * the device's cudaDeviceProp and `machine` describes the processor. The attributes that only the driver API
 * has are constants: most of them are of features that do not exist here.
 */
#pragma once

#define CUDA_CPU_ATTRIBUTES(BOTH, DRIVER)                                                                    \
    BOTH(MaxThreadsPerBlock, MAX_THREADS_PER_BLOCK, 1, p.maxThreadsPerBlock)                                 \
    BOTH(MaxBlockDimX, MAX_BLOCK_DIM_X, 2, p.maxThreadsDim[0])                                               \
    BOTH(MaxBlockDimY, MAX_BLOCK_DIM_Y, 3, p.maxThreadsDim[1])                                               \
    BOTH(MaxBlockDimZ, MAX_BLOCK_DIM_Z, 4, p.maxThreadsDim[2])                                               \
    BOTH(MaxGridDimX, MAX_GRID_DIM_X, 5, p.maxGridSize[0])                                                   \
    BOTH(MaxGridDimY, MAX_GRID_DIM_Y, 6, p.maxGridSize[1])                                                   \
    BOTH(MaxGridDimZ, MAX_GRID_DIM_Z, 7, p.maxGridSize[2])                                                   \
    BOTH(MaxSharedMemoryPerBlock, MAX_SHARED_MEMORY_PER_BLOCK, 8, p.sharedMemPerBlock)                       \
    BOTH(TotalConstantMemory, TOTAL_CONSTANT_MEMORY, 9, p.totalConstMem)                                     \
    BOTH(WarpSize, WARP_SIZE, 10, p.warpSize)                                                                \
    BOTH(MaxPitch, MAX_PITCH, 11, p.memPitch)                                                                \
    BOTH(MaxRegistersPerBlock, MAX_REGISTERS_PER_BLOCK, 12, p.regsPerBlock)                                  \
    BOTH(ClockRate, CLOCK_RATE, 13, clock_khz())                                                             \
    BOTH(TextureAlignment, TEXTURE_ALIGNMENT, 14, p.textureAlignment)                                        \
    BOTH(GpuOverlap, GPU_OVERLAP, 15, p.asyncEngineCount > 0)                                                \
    BOTH(MultiProcessorCount, MULTIPROCESSOR_COUNT, 16, p.multiProcessorCount)                               \
    BOTH(KernelExecTimeout, KERNEL_EXEC_TIMEOUT, 17, 0)                                                      \
    BOTH(Integrated, INTEGRATED, 18, p.integrated)                                                           \
    BOTH(CanMapHostMemory, CAN_MAP_HOST_MEMORY, 19, p.canMapHostMemory)                                      \
    BOTH(ComputeMode, COMPUTE_MODE, 20, cudaComputeModeDefault)                                              \
    BOTH(MaxTexture1DWidth, MAXIMUM_TEXTURE1D_WIDTH, 21, p.maxTexture1D)                                     \
    BOTH(MaxTexture2DWidth, MAXIMUM_TEXTURE2D_WIDTH, 22, p.maxTexture2D[0])                                  \
    BOTH(MaxTexture2DHeight, MAXIMUM_TEXTURE2D_HEIGHT, 23, p.maxTexture2D[1])                                \
    BOTH(MaxTexture3DWidth, MAXIMUM_TEXTURE3D_WIDTH, 24, p.maxTexture3D[0])                                  \
    BOTH(MaxTexture3DHeight, MAXIMUM_TEXTURE3D_HEIGHT, 25, p.maxTexture3D[1])                                \
    BOTH(MaxTexture3DDepth, MAXIMUM_TEXTURE3D_DEPTH, 26, p.maxTexture3D[2])                                  \
    BOTH(MaxTexture2DLayeredWidth, MAXIMUM_TEXTURE2D_LAYERED_WIDTH, 27, p.maxTexture2DLayered[0])            \
    BOTH(MaxTexture2DLayeredHeight, MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, 28, p.maxTexture2DLayered[1])          \
    BOTH(MaxTexture2DLayeredLayers, MAXIMUM_TEXTURE2D_LAYERED_LAYERS, 29, p.maxTexture2DLayered[2])          \
    BOTH(SurfaceAlignment, SURFACE_ALIGNMENT, 30, p.surfaceAlignment)                                        \
    BOTH(ConcurrentKernels, CONCURRENT_KERNELS, 31, p.concurrentKernels)                                     \
    BOTH(EccEnabled, ECC_ENABLED, 32, p.ECCEnabled)                                                          \
    BOTH(PciBusId, PCI_BUS_ID, 33, p.pciBusID)                                                               \
    BOTH(PciDeviceId, PCI_DEVICE_ID, 34, p.pciDeviceID)                                                      \
    BOTH(TccDriver, TCC_DRIVER, 35, p.tccDriver)                                                             \
    BOTH(MemoryClockRate, MEMORY_CLOCK_RATE, 36, 0)                                                          \
    BOTH(GlobalMemoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH, 37, p.memoryBusWidth)                                \
    BOTH(L2CacheSize, L2_CACHE_SIZE, 38, p.l2CacheSize)                                                      \
    BOTH(MaxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR, 39, p.maxThreadsPerMultiProcessor)     \
    BOTH(AsyncEngineCount, ASYNC_ENGINE_COUNT, 40, p.asyncEngineCount)                                       \
    BOTH(UnifiedAddressing, UNIFIED_ADDRESSING, 41, p.unifiedAddressing)                                     \
    BOTH(MaxTexture1DLayeredWidth, MAXIMUM_TEXTURE1D_LAYERED_WIDTH, 42, p.maxTexture1DLayered[0])            \
    BOTH(MaxTexture1DLayeredLayers, MAXIMUM_TEXTURE1D_LAYERED_LAYERS, 43, p.maxTexture1DLayered[1])          \
    DRIVER(CAN_TEX2D_GATHER, 44, 1)                                                                          \
    BOTH(MaxTexture2DGatherWidth, MAXIMUM_TEXTURE2D_GATHER_WIDTH, 45, p.maxTexture2DGather[0])               \
    BOTH(MaxTexture2DGatherHeight, MAXIMUM_TEXTURE2D_GATHER_HEIGHT, 46, p.maxTexture2DGather[1])             \
    BOTH(MaxTexture3DWidthAlt, MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, 47, p.maxTexture3DAlt[0])                  \
    BOTH(MaxTexture3DHeightAlt, MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, 48, p.maxTexture3DAlt[1])                \
    BOTH(MaxTexture3DDepthAlt, MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE, 49, p.maxTexture3DAlt[2])                  \
    BOTH(PciDomainId, PCI_DOMAIN_ID, 50, p.pciDomainID)                                                      \
    BOTH(TexturePitchAlignment, TEXTURE_PITCH_ALIGNMENT, 51, p.texturePitchAlignment)                        \
    BOTH(MaxTextureCubemapWidth, MAXIMUM_TEXTURECUBEMAP_WIDTH, 52, p.maxTextureCubemap)                      \
    BOTH(MaxTextureCubemapLayeredWidth, MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, 53,                            \
         p.maxTextureCubemapLayered[0])                                                                      \
    BOTH(MaxTextureCubemapLayeredLayers, MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, 54,                          \
         p.maxTextureCubemapLayered[1])                                                                      \
    BOTH(MaxSurface1DWidth, MAXIMUM_SURFACE1D_WIDTH, 55, p.maxSurface1D)                                     \
    BOTH(MaxSurface2DWidth, MAXIMUM_SURFACE2D_WIDTH, 56, p.maxSurface2D[0])                                  \
    BOTH(MaxSurface2DHeight, MAXIMUM_SURFACE2D_HEIGHT, 57, p.maxSurface2D[1])                                \
    BOTH(MaxSurface3DWidth, MAXIMUM_SURFACE3D_WIDTH, 58, p.maxSurface3D[0])                                  \
    BOTH(MaxSurface3DHeight, MAXIMUM_SURFACE3D_HEIGHT, 59, p.maxSurface3D[1])                                \
    BOTH(MaxSurface3DDepth, MAXIMUM_SURFACE3D_DEPTH, 60, p.maxSurface3D[2])                                  \
    BOTH(MaxSurface1DLayeredWidth, MAXIMUM_SURFACE1D_LAYERED_WIDTH, 61, p.maxSurface1DLayered[0])            \
    BOTH(MaxSurface1DLayeredLayers, MAXIMUM_SURFACE1D_LAYERED_LAYERS, 62, p.maxSurface1DLayered[1])          \
    BOTH(MaxSurface2DLayeredWidth, MAXIMUM_SURFACE2D_LAYERED_WIDTH, 63, p.maxSurface2DLayered[0])            \
    BOTH(MaxSurface2DLayeredHeight, MAXIMUM_SURFACE2D_LAYERED_HEIGHT, 64, p.maxSurface2DLayered[1])          \
    BOTH(MaxSurface2DLayeredLayers, MAXIMUM_SURFACE2D_LAYERED_LAYERS, 65, p.maxSurface2DLayered[2])          \
    BOTH(MaxSurfaceCubemapWidth, MAXIMUM_SURFACECUBEMAP_WIDTH, 66, p.maxSurfaceCubemap)                      \
    BOTH(MaxSurfaceCubemapLayeredWidth, MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, 67,                            \
         p.maxSurfaceCubemapLayered[0])                                                                      \
    BOTH(MaxSurfaceCubemapLayeredLayers, MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS, 68,                          \
         p.maxSurfaceCubemapLayered[1])                                                                      \
    BOTH(MaxTexture1DLinearWidth, MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 69, MAX_TEXTURE_1D_LINEAR)                 \
    BOTH(MaxTexture2DLinearWidth, MAXIMUM_TEXTURE2D_LINEAR_WIDTH, 70, p.maxTexture2DLinear[0])               \
    BOTH(MaxTexture2DLinearHeight, MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, 71, p.maxTexture2DLinear[1])             \
    BOTH(MaxTexture2DLinearPitch, MAXIMUM_TEXTURE2D_LINEAR_PITCH, 72, p.maxTexture2DLinear[2])               \
    BOTH(MaxTexture2DMipmappedWidth, MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, 73, p.maxTexture2DMipmap[0])         \
    BOTH(MaxTexture2DMipmappedHeight, MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, 74, p.maxTexture2DMipmap[1])       \
    BOTH(ComputeCapabilityMajor, COMPUTE_CAPABILITY_MAJOR, 75, p.major)                                      \
    BOTH(ComputeCapabilityMinor, COMPUTE_CAPABILITY_MINOR, 76, p.minor)                                      \
    BOTH(MaxTexture1DMipmappedWidth, MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, 77, p.maxTexture1DMipmap)            \
    BOTH(StreamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED, 78, p.streamPrioritiesSupported)            \
    BOTH(GlobalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED, 79, p.globalL1CacheSupported)                    \
    BOTH(LocalL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED, 80, p.localL1CacheSupported)                       \
    BOTH(MaxSharedMemoryPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81,                         \
         p.sharedMemPerMultiprocessor)                                                                       \
    BOTH(MaxRegistersPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR, 82, p.regsPerMultiprocessor)       \
    BOTH(ManagedMemory, MANAGED_MEMORY, 83, p.managedMemory)                                                 \
    BOTH(IsMultiGpuBoard, MULTI_GPU_BOARD, 84, p.isMultiGpuBoard)                                            \
    BOTH(MultiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID, 85, p.multiGpuBoardGroupID)                         \
    BOTH(HostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED, 86, p.hostNativeAtomicSupported)           \
    BOTH(SingleToDoublePrecisionPerfRatio, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 87, 2)                     \
    BOTH(PageableMemoryAccess, PAGEABLE_MEMORY_ACCESS, 88, p.pageableMemoryAccess)                           \
    BOTH(ConcurrentManagedAccess, CONCURRENT_MANAGED_ACCESS, 89, p.concurrentManagedAccess)                  \
    BOTH(ComputePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED, 90, p.computePreemptionSupported)         \
    BOTH(CanUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 91,                     \
         p.canUseHostPointerForRegisteredMem)                                                                \
    DRIVER(CAN_USE_STREAM_MEM_OPS_V1, 92, 0)                                                                 \
    DRIVER(CAN_USE_64_BIT_STREAM_MEM_OPS_V1, 93, 0)                                                          \
    DRIVER(CAN_USE_STREAM_WAIT_VALUE_NOR_V1, 94, 0)                                                          \
    BOTH(CooperativeLaunch, COOPERATIVE_LAUNCH, 95, p.cooperativeLaunch)                                     \
    DRIVER(COOPERATIVE_MULTI_DEVICE_LAUNCH, 96, 0)                                                           \
    BOTH(MaxSharedMemoryPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97, p.sharedMemPerBlockOptin)      \
    BOTH(CanFlushRemoteWrites, CAN_FLUSH_REMOTE_WRITES, 98, 0)                                               \
    BOTH(HostRegisterSupported, HOST_REGISTER_SUPPORTED, 99, p.hostRegisterSupported)                        \
    BOTH(PageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 100,          \
         p.pageableMemoryAccessUsesHostPageTables)                                                           \
    BOTH(DirectManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 101,                           \
         p.directManagedMemAccessFromHost)                                                                   \
    DRIVER(VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, 102, 0)                                                     \
    DRIVER(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103, 0)                                              \
    DRIVER(HANDLE_TYPE_WIN32_HANDLE_SUPPORTED, 104, 0)                                                       \
    DRIVER(HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED, 105, 0)                                                   \
    BOTH(MaxBlocksPerMultiprocessor, MAX_BLOCKS_PER_MULTIPROCESSOR, 106, p.maxBlocksPerMultiProcessor)       \
    DRIVER(GENERIC_COMPRESSION_SUPPORTED, 107, 0)                                                            \
    BOTH(MaxPersistingL2CacheSize, MAX_PERSISTING_L2_CACHE_SIZE, 108, p.persistingL2CacheMaxSize)            \
    BOTH(MaxAccessPolicyWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE, 109, p.accessPolicyMaxWindowSize)         \
    DRIVER(GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 110, 0)                                                  \
    BOTH(ReservedSharedMemoryPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK, 111, p.reservedSharedMemPerBlock)   \
    BOTH(SparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED, 112, p.sparseCudaArraySupported)             \
    BOTH(HostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED, 113,                              \
         p.hostRegisterReadOnlySupported)                                                                    \
    BOTH(TimelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, 114,                       \
         p.timelineSemaphoreInteropSupported)                                                                \
    BOTH(MemoryPoolsSupported, MEMORY_POOLS_SUPPORTED, 115, p.memoryPoolsSupported)                          \
    BOTH(GPUDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED, 116, p.gpuDirectRDMASupported)                   \
    BOTH(GPUDirectRDMAFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 117,                         \
         p.gpuDirectRDMAFlushWritesOptions)                                                                  \
    BOTH(GPUDirectRDMAWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING, 118, p.gpuDirectRDMAWritesOrdering)   \
    BOTH(MemoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES, 119,                                \
         p.memoryPoolSupportedHandleTypes)                                                                   \
    BOTH(ClusterLaunch, CLUSTER_LAUNCH, 120, p.clusterLaunch)                                                \
    BOTH(DeferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, 121,                      \
         p.deferredMappingCudaArraySupported)                                                                \
    DRIVER(CAN_USE_64_BIT_STREAM_MEM_OPS, 122, 0)                                                            \
    DRIVER(CAN_USE_STREAM_WAIT_VALUE_NOR, 123, 0)                                                            \
    DRIVER(DMA_BUF_SUPPORTED, 124, 0)                                                                        \
    BOTH(IpcEventSupport, IPC_EVENT_SUPPORTED, 125, p.ipcEventSupported)                                     \
    BOTH(MemSyncDomainCount, MEM_SYNC_DOMAIN_COUNT, 126, 1)                                                  \
    DRIVER(TENSOR_MAP_ACCESS_SUPPORTED, 127, 0)                                                              \
    DRIVER(HANDLE_TYPE_FABRIC_SUPPORTED, 128, 0)                                                             \
    DRIVER(UNIFIED_FUNCTION_POINTERS, 129, 0)                                                                \
    BOTH(NumaConfig, NUMA_CONFIG, 130, p.deviceNumaConfig)                                                   \
    BOTH(NumaId, NUMA_ID, 131, p.deviceNumaId)                                                               \
    DRIVER(MULTICAST_SUPPORTED, 132, 0)                                                                      \
    BOTH(MpsEnabled, MPS_ENABLED, 133, p.mpsEnabled)                                                         \
    BOTH(HostNumaId, HOST_NUMA_ID, 134, p.hostNumaId)                                                        \
    BOTH(D3D12CigSupported, D3D12_CIG_SUPPORTED, 135, 0)                                                     \
    DRIVER(MEM_DECOMPRESS_ALGORITHM_MASK, 136, 0)                                                            \
    DRIVER(MEM_DECOMPRESS_MAXIMUM_LENGTH, 137, 0)                                                            \
    BOTH(VulkanCigSupported, VULKAN_CIG_SUPPORTED, 138, 0)                                                   \
    BOTH(GpuPciDeviceId, GPU_PCI_DEVICE_ID, 139, p.gpuPciDeviceID)                                           \
    BOTH(GpuPciSubsystemId, GPU_PCI_SUBSYSTEM_ID, 140, p.gpuPciSubsystemID)                                  \
    DRIVER(HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 141, 0)                                            \
    BOTH(HostNumaMemoryPoolsSupported, HOST_NUMA_MEMORY_POOLS_SUPPORTED, 142, 0)                             \
    BOTH(HostNumaMultinodeIpcSupported, HOST_NUMA_MULTINODE_IPC_SUPPORTED, 143,                              \
         p.hostNumaMultinodeIpcSupported)                                                                    \
    BOTH(HostMemoryPoolsSupported, HOST_MEMORY_POOLS_SUPPORTED, 144, 0)                                      \
    DRIVER(HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 145, 0)                                                 \
    DRIVER(HOST_ALLOC_DMA_BUF_SUPPORTED, 146, 0)                                                             \
    BOTH(OnlyPartialHostNativeAtomicSupported, ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED, 147, 0)
