// SPDX-License-Identifier: MIT
// The device attributes that programs ask for: the name in the runtime (cudaDevAttr…), that in the driver
// API (CU_DEVICE_ATTRIBUTE_…), the value, and the expression that cudaDeviceGetAttribute returns. In it, `p`
// is the device's cudaDeviceProp and `machine` describes the processor. The attributes that only the driver
// API has are constants: most of them are of features that do not exist here.
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
    BOTH(PciDomainId, PCI_DOMAIN_ID, 50, p.pciDomainID)                                                      \
    BOTH(TexturePitchAlignment, TEXTURE_PITCH_ALIGNMENT, 51, p.texturePitchAlignment)                        \
    BOTH(MaxSurface1DWidth, MAXIMUM_SURFACE1D_WIDTH, 55, p.maxSurface1D)                                     \
    BOTH(MaxSurface2DWidth, MAXIMUM_SURFACE2D_WIDTH, 56, p.maxSurface2D[0])                                  \
    BOTH(MaxSurface2DHeight, MAXIMUM_SURFACE2D_HEIGHT, 57, p.maxSurface2D[1])                                \
    BOTH(MaxTexture1DLinearWidth, MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 69, MAX_TEXTURE_1D_LINEAR)                 \
    BOTH(ComputeCapabilityMajor, COMPUTE_CAPABILITY_MAJOR, 75, p.major)                                      \
    BOTH(ComputeCapabilityMinor, COMPUTE_CAPABILITY_MINOR, 76, p.minor)                                      \
    BOTH(StreamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED, 78, p.streamPrioritiesSupported)            \
    BOTH(GlobalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED, 79, p.globalL1CacheSupported)                    \
    BOTH(LocalL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED, 80, p.localL1CacheSupported)                       \
    BOTH(MaxSharedMemoryPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81,                         \
         p.sharedMemPerMultiprocessor)                                                                       \
    BOTH(MaxRegistersPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR, 82, p.regsPerMultiprocessor)       \
    BOTH(ManagedMemory, MANAGED_MEMORY, 83, p.managedMemory)                                                 \
    BOTH(HostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED, 86, p.hostNativeAtomicSupported)           \
    BOTH(SingleToDoublePrecisionPerfRatio, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 87, 2)                     \
    BOTH(PageableMemoryAccess, PAGEABLE_MEMORY_ACCESS, 88, p.pageableMemoryAccess)                           \
    BOTH(ConcurrentManagedAccess, CONCURRENT_MANAGED_ACCESS, 89, p.concurrentManagedAccess)                  \
    BOTH(ComputePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED, 90, p.computePreemptionSupported)         \
    BOTH(CooperativeLaunch, COOPERATIVE_LAUNCH, 95, p.cooperativeLaunch)                                     \
    DRIVER(COOPERATIVE_MULTI_DEVICE_LAUNCH, 96, 0)                                                           \
    BOTH(MaxSharedMemoryPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97, p.sharedMemPerBlockOptin)      \
    BOTH(HostRegisterSupported, HOST_REGISTER_SUPPORTED, 99, p.hostRegisterSupported)                        \
    BOTH(PageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 100,          \
         p.pageableMemoryAccessUsesHostPageTables)                                                           \
    BOTH(DirectManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 101,                           \
         p.directManagedMemAccessFromHost)                                                                   \
    DRIVER(VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, 102, 0)                                                     \
    DRIVER(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103, 0)                                              \
    DRIVER(HANDLE_TYPE_WIN32_HANDLE_SUPPORTED, 104, 0)                                                       \
    BOTH(MaxBlocksPerMultiprocessor, MAX_BLOCKS_PER_MULTIPROCESSOR, 106, p.maxBlocksPerMultiProcessor)       \
    DRIVER(GENERIC_COMPRESSION_SUPPORTED, 107, 0)                                                            \
    BOTH(MaxPersistingL2CacheSize, MAX_PERSISTING_L2_CACHE_SIZE, 108, p.persistingL2CacheMaxSize)            \
    BOTH(ReservedSharedMemoryPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK, 111, p.reservedSharedMemPerBlock)   \
    BOTH(MemoryPoolsSupported, MEMORY_POOLS_SUPPORTED, 115, p.memoryPoolsSupported)                          \
    BOTH(MemoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES, 119,                                \
         p.memoryPoolSupportedHandleTypes)                                                                   \
    BOTH(ClusterLaunch, CLUSTER_LAUNCH, 120, p.clusterLaunch)                                                \
    DRIVER(MEM_DECOMPRESS_ALGORITHM_MASK, 136, 0)
