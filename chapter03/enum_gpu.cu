// SPDX-License-Identifier: MIT
/*
 * enum_gpu: the properties of each device
 *
 * Teaches: cudaGetDeviceCount counts the devices, and cudaGetDeviceProperties fills a structure with
 *          the name, the memory sizes and the limits of one. cudaDeviceGetAttribute asks for a single
 *          value, among them some that the structure does not have.
 * Terms:   device properties, compute capability, multiprocessor, core, warp, theoretical bandwidth,
 *          peer-to-peer access, texture
 * Book:    3.3; R 7.1 (Table 7.1); C 1.4 (devices); N arrays (limits); T reduction (peak bandwidth)
 * Build:   nvcc -o enum_gpu chapter03/enum_gpu.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter03/enum_gpu
 * Differs: CUDA 13 removed clock rate, copy overlap, kernel timeout and compute mode; they are attributes
 *          now. Adds figures per multiprocessor (MP), memory clock, bandwidth, L2 cache, versions, peer
 *          access, and the number of cores from a table by compute capability (on the CPU back end 8.0).
 */
#include "../common/book.h"

static void print_cores(const cudaDeviceProp *prop, int device);
static bool check_properties(const cudaDeviceProp *prop, int device);

static int attribute(cudaDeviceAttr which, int device) {
    int value = 0;
    HANDLE_ERROR(cudaDeviceGetAttribute(&value, which, device));
    return value;
}

static const char *yes_no(int value) {
    return value ? "yes" : "no";
}

// The index is the value of cudaDevAttrComputeMode.
static const char *const compute_modes[] = {"default", "one thread at a time", "prohibited",
                                            "one process at a time"};

static void print_bandwidth(int bits, int device) {
    int clock = attribute(cudaDevAttrMemoryClockRate, device); // in kHz
    if (clock == 0 || bits == 0) {
        printf("Peak memory bandwidth:     unknown, "
               "the device does not report its memory clock or bus width\n");
        return;
    }
    printf("Memory clock rate:         %d kHz\n", clock);
    printf("Memory bus width:          %d bits\n", bits);
    // Double data rate memory transfers the width of the bus twice in each clock cycle.
    printf("Peak memory bandwidth:     %.1f GB/s\n", 2.0 * clock * bits / 8 / 1e6);
}

static void print_peers(int device, int count) {
    for (int peer = 0; peer < count; peer++) {
        int can = 0;
        if (peer == device)
            continue;
        HANDLE_ERROR(cudaDeviceCanAccessPeer(&can, device, peer));
        printf("Peer access to device %d:   %s\n", peer, yes_no(can));
    }
}

int main(int argc, char **argv) {
    settings(argc, argv);
    cudaDeviceProp prop;
    bool ok = true;

    int count, driver, runtime;
    HANDLE_ERROR(cudaGetDeviceCount(&count));
    HANDLE_ERROR(cudaDriverGetVersion(&driver));
    HANDLE_ERROR(cudaRuntimeGetVersion(&runtime));
    printf("Devices:                   %d\n", count);
    printf("CUDA driver version:       %d.%d\n", driver / 1000, driver % 1000 / 10);
    printf("CUDA runtime version:      %d.%d\n", runtime / 1000, runtime % 1000 / 10);

    for (int i = 0; i < count; i++) {
        if (options.device_given && i != options.device)
            continue;
        HANDLE_ERROR(cudaGetDeviceProperties(&prop, i));
        // A copy engine copies between host and device while kernels run. A device that also drives a
        // display can have a run time limit: the driver ends kernels that take longer than some seconds.
        // The compute mode says which processes may use the device. An integrated device uses the host's
        // memory. Kernels can access mapped host memory (chapter 11). Concurrent kernels need streams.
        printf("\n   --- General information for device %d ---\n", i);
        printf("Name:                      %s\n", prop.name);
        printf("Compute capability:        %d.%d\n", prop.major, prop.minor);
        printf("Clock rate:                %d kHz\n", attribute(cudaDevAttrClockRate, i));
        printf("Copy engines:              %d\n", prop.asyncEngineCount);
        printf("Copy overlaps kernels:     %s\n", yes_no(attribute(cudaDevAttrGpuOverlap, i)));
        printf("Kernel run time limit:     %s\n", yes_no(attribute(cudaDevAttrKernelExecTimeout, i)));
        printf("Compute mode:              %s\n", compute_modes[attribute(cudaDevAttrComputeMode, i)]);
        printf("Integrated:                %s\n", yes_no(prop.integrated));
        printf("Maps host memory:          %s\n", yes_no(prop.canMapHostMemory));
        printf("Concurrent kernels:        %s\n", yes_no(prop.concurrentKernels));

        // Constant memory is used in chapter 6. The pitch and the alignment are limits of chapter 7's
        // textures and two-dimensional arrays.
        printf("   --- Memory information for device %d ---\n", i);
        printf("Total global memory:       %zu bytes\n", prop.totalGlobalMem);
        printf("Total constant memory:     %zu bytes\n", prop.totalConstMem);
        printf("Maximum memory pitch:      %zu bytes\n", prop.memPitch);
        printf("Texture alignment:         %zu bytes\n", prop.textureAlignment);
        printf("L2 cache:                  %d bytes\n", prop.l2CacheSize);
        print_bandwidth(prop.memoryBusWidth, i);

        // The limits of a launch (threads per block, dimensions of block and grid), and the resources that
        // the threads of a block and the blocks of a multiprocessor share.
        printf("   --- Multiprocessor information for device %d ---\n", i);
        printf("Multiprocessors:           %d\n", prop.multiProcessorCount);
        print_cores(&prop, i);
        printf("Shared memory per block:   %zu bytes\n", prop.sharedMemPerBlock);
        printf("Shared memory per MP:      %zu bytes\n", prop.sharedMemPerMultiprocessor);
        printf("Registers per block:       %d\n", prop.regsPerBlock);
        printf("Registers per MP:          %d\n", prop.regsPerMultiprocessor);
        printf("Threads in a warp:         %d\n", prop.warpSize);
        printf("Maximum threads per block: %d\n", prop.maxThreadsPerBlock);
        printf("Maximum threads per MP:    %d\n", prop.maxThreadsPerMultiProcessor);
        printf("Maximum block dimensions:  (%d, %d, %d)\n", prop.maxThreadsDim[0], prop.maxThreadsDim[1],
               prop.maxThreadsDim[2]);
        printf("Maximum grid dimensions:   (%d, %d, %d)\n", prop.maxGridSize[0], prop.maxGridSize[1],
               prop.maxGridSize[2]);
        print_peers(i, count);

        // The largest textures (chapter 7), in elements.
        printf("   --- Texture information for device %d ---\n", i);
        printf("Maximum 1-D texture:       %d\n", prop.maxTexture1D);
        printf("Maximum 2-D texture:       (%d, %d)\n", prop.maxTexture2D[0], prop.maxTexture2D[1]);
        printf("Maximum 3-D texture:       (%d, %d, %d)\n", prop.maxTexture3D[0], prop.maxTexture3D[1],
               prop.maxTexture3D[2]);
        printf("Maximum layered texture:   (%d, %d), %d layers\n", prop.maxTexture2DLayered[0],
               prop.maxTexture2DLayered[1], prop.maxTexture2DLayered[2]);
        const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
        size_t width;
        HANDLE_ERROR(cudaDeviceGetTexture1DLinearMaxWidth(&width, &format, i));
        printf("Texture in linear memory:  %zu floats\n", width);
        ok = check_properties(&prop, i) && ok;
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Lists the devices and their properties.");
}

// Cores: the units of a multiprocessor that compute with 32-bit floating-point numbers, each up to one
// multiplication and addition (FMA) in a clock cycle. Compute capability 7.5 and 8.0 have 64, later ones 128.
static void print_cores(const cudaDeviceProp *prop, int device) {
    int version = 10 * prop->major + prop->minor, cores = version <= 80 ? 64 : 128;
    if (version < 75 || version > 121) // not known here
        cores = 0;
    int all = cores * prop->multiProcessorCount;
    printf("Cores per MP:              %d%s\n", cores, cores ? "" : " (unknown)");
    printf("Peak performance:          %.0f GFLOP/s by %d cores\n",
           2e-6 * all * attribute(cudaDevAttrClockRate, device), all);
}

// Compares properties with the attributes of the same meaning.
static bool check_properties(const cudaDeviceProp *prop, int device) {
    const struct {
        cudaDeviceAttr which;
        int property;
    } facts[] = {
        {cudaDevAttrComputeCapabilityMajor, prop->major},
        {cudaDevAttrComputeCapabilityMinor, prop->minor},
        {cudaDevAttrAsyncEngineCount, prop->asyncEngineCount},
        {cudaDevAttrTotalConstantMemory, (int)prop->totalConstMem},
        {cudaDevAttrMaxPitch, (int)prop->memPitch},
        {cudaDevAttrTextureAlignment, (int)prop->textureAlignment},
        {cudaDevAttrMultiProcessorCount, prop->multiProcessorCount},
        {cudaDevAttrMaxSharedMemoryPerBlock, (int)prop->sharedMemPerBlock},
        {cudaDevAttrMaxRegistersPerBlock, prop->regsPerBlock},
        {cudaDevAttrWarpSize, prop->warpSize},
        {cudaDevAttrMaxThreadsPerBlock, prop->maxThreadsPerBlock},
        {cudaDevAttrMaxBlockDimX, prop->maxThreadsDim[0]},
        {cudaDevAttrMaxBlockDimY, prop->maxThreadsDim[1]},
        {cudaDevAttrMaxBlockDimZ, prop->maxThreadsDim[2]},
        {cudaDevAttrMaxGridDimX, prop->maxGridSize[0]},
        {cudaDevAttrMaxGridDimY, prop->maxGridSize[1]},
        {cudaDevAttrMaxGridDimZ, prop->maxGridSize[2]},
    };
    const size_t n = sizeof(facts) / sizeof(facts[0]);
    int properties[n], attributes[n];
    for (size_t i = 0; i < n; i++) {
        properties[i] = facts[i].property;
        attributes[i] = attribute(facts[i].which, device);
    }
    return check_ints("property", properties, attributes, n);
}

// Task: none: it asks the runtime for properties and prints them
