// SPDX-License-Identifier: MIT
// Chapter 3: the properties of every device, among them those that CUDA 13 has removed. No header is
// included.
#include "../common/book.h"

int main(void) {
    cudaDeviceProp prop;
    int count;
    HANDLE_ERROR(cudaGetDeviceCount(&count));
    for (int i = 0; i < count; i++) {
        HANDLE_ERROR(cudaGetDeviceProperties(&prop, i));
        printf("Name: %s\n", prop.name);
        printf("Compute capability: %d.%d\n", prop.major, prop.minor);
        printf("Clock rate: %d\n", prop.clockRate);
        printf("Device copy overlap: ");
        if (prop.deviceOverlap)
            printf("Enabled\n");
        else
            printf("Disabled\n");
        printf("Kernel execution timeout: %s\n", prop.kernelExecTimeoutEnabled ? "Enabled" : "Disabled");
        printf("Compute mode: %d\n", prop.computeMode);
        printf("Memory clock: %d\n", prop.memoryClockRate);
        printf("Total global mem: %ld\n", prop.totalGlobalMem);
        printf("Total constant mem: %ld\n", prop.totalConstMem);
        printf("Max mem pitch: %ld\n", prop.memPitch);
        printf("Texture alignment: %ld\n", prop.textureAlignment);
        printf("Multiprocessor count: %d\n", prop.multiProcessorCount);
        printf("Shared mem per mp: %ld\n", prop.sharedMemPerBlock);
        printf("Registers per mp: %d\n", prop.regsPerBlock);
        printf("Threads in warp: %d\n", prop.warpSize);
        printf("Max threads per block: %d\n", prop.maxThreadsPerBlock);
        printf("Max grid dimensions: (%d, %d, %d)\n", prop.maxGridSize[0], prop.maxGridSize[1],
               prop.maxGridSize[2]);
        printf("Max linear texture: %d\n", prop.maxTexture1DLinear > 0);
        struct cudaDeviceProp again;
        cudaGetDeviceProperties(&again, i);
        if (again.clockRate != prop.clockRate || again.major != prop.major)
            exit(1);
    }
    memset(&prop, 0, sizeof(cudaDeviceProp));
    prop.major = 1;
    prop.minor = 3;
    int dev;
    HANDLE_ERROR(cudaChooseDevice(&dev, &prop));
    HANDLE_ERROR(cudaSetDevice(dev));
    size_t stack;
    cudaThreadGetLimit(&stack, cudaLimitStackSize);
    cudaThreadSetCacheConfig(cudaFuncCachePreferL1);
    HANDLE_ERROR(cudaThreadSynchronize());
    HANDLE_ERROR(cudaThreadExit());
}
