// SPDX-License-Identifier: MIT
/*
 * compute_capability: what a device can do, and the devices for which a binary has code
 *
 * Teaches: A binary has code for some devices, and what a device can do depends on its compute capability.
 *          nvcc compiles device code once for each architecture: -arch=sm_90 makes binary code for 9.0
 *          and later devices of the same generation, and PTX that the driver compiles for all later
 *          ones. In device code, __CUDA_ARCH__ tells which one is being compiled, so a kernel can use a
 *          newer feature and do without it elsewhere.
 * Terms:   compute capability, __CUDA_ARCH__, PTX, nvcc, atomicAdd, atomic operation
 * Book:    9.2.1 and 9.2.2 (after the book)
 * Build:   nvcc -o compute_capability chapter09/compute_capability.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter09/compute_capability
 * Differs: the book explains versions 1.0 to 2.0; CUDA 13 compiles for 7.5 and later. Without code for a
 *          device cudaFuncGetAttributes fails with cudaErrorNoKernelImageForDevice, as a launch would (try
 *          make SMS=100 on an older device). The CPU back end, which has no PTX, says 8.0 everywhere.
 * Check:   --size 5000 | --size 40000
 */
#include "../common/book.h"

static size_t n = 1 << 20; // --size
static bool check(float4 sum, int arch);

// Adds four sums at once. atomicAdd() of a float4, one instruction for 16 bytes, needs compute
// capability 9.0; before, it takes four. *arch is the __CUDA_ARCH__ of the code that runs.
__global__ void add(const float4 *in, size_t n, float4 *sum, int *arch) {
    float4 mine = make_float4(0, 0, 0, 0);
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += stride) {
        mine.x += in[i].x;
        mine.y += in[i].y;
        mine.z += in[i].z;
        mine.w += in[i].w;
    }
#if __CUDA_ARCH__ >= 900
    atomicAdd(sum, mine);
#else
    atomicAdd(&sum->x, mine.x);
    atomicAdd(&sum->y, mine.y);
    atomicAdd(&sum->z, mine.z);
    atomicAdd(&sum->w, mine.w);
#endif
#ifdef __CUDA_ARCH__ // undefined while nvcc compiles the host's part, which has no use for this function
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *arch = __CUDA_ARCH__;
#endif
}

// Features and the compute capability that introduced them. A device also has the features of all earlier
// versions, except architecture-specific ones: those of targets that end in a letter, such as sm_90a.
static const struct {
    int version;                   // times ten
    const char *feature, *devices; // some of the devices of this version
} features[] = {
    {10, "kernels, without atomic operations", "GeForce 8800 GTX, Tesla C870"},
    {11, "atomic operations on 32-bit words in global memory", "GeForce 8800 GT, GeForce 9800 GTX"},
    {12, "atomic operations in shared memory, and on 64-bit words", "GeForce GT 240"},
    {13, "double precision", "GeForce GTX 280, Tesla C1060"},
    {20, "atomicAdd() of a float", "GeForce GTX 480, Tesla C2050"},
    {30, "warp shuffles; 2^31 - 1 blocks in x", "GeForce GTX 680, Tesla K10"},
    {60, "atomicAdd() of a double", "Tesla P100"},
    {70, "lanes of a warp that advance independently; tensor cores", "Tesla V100, TITAN V"},
    {75, "loads of 8 x 8 matrices from shared memory (ldmatrix)", "GeForce RTX 2080, Tesla T4"},
    {80, "asynchronous copies from global to shared memory", "A100, A30"},
    {90, "atomicAdd() of a float4; clusters of blocks", "H100, H200"},
    {100, "tensor cores for floating-point numbers of 4 bits", "B200"},
    {103, "as 10.0", "B300"},
    {110, "as 10.0; 24 blocks a multiprocessor, 10.0 has 32", "Jetson T5000"},
    {120, "100 KiB of shared memory a multiprocessor, 10.0 has 228", "GeForce RTX 5090"},
    {121, "as 12.0", "GB10"},
};

int main(int argc, char **argv) {
    settings(argc, argv);
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, options.device));
    int version = prop.major * 10 + prop.minor;
    printf("Compute capability of the device: %d.%d\n", prop.major, prop.minor);
    for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++)
        printf("  %2d.%d  %-3s  %-56s  %s\n", features[i].version / 10, features[i].version % 10,
               features[i].version <= version ? "yes" : "no", features[i].feature, features[i].devices);

    // The version of this kernel that the driver has selected from the binary, or compiled from PTX (JIT).
    cudaFuncAttributes attributes;
    HANDLE_ERROR(cudaFuncGetAttributes(&attributes, add));
    printf("Binary code for %d.%d, from PTX for %d.%d\n", attributes.binaryVersion / 10,
           attributes.binaryVersion % 10, attributes.ptxVersion / 10, attributes.ptxVersion % 10);

    float4 sum, *in = (float4 *)malloc(n * sizeof(float4));
    HANDLE_NULL(in);
    for (size_t i = 0; i < n; i++) {
        float k = i % 7;
        in[i] = make_float4(k, k + 1, k + 2, k + 3);
    }
    float4 *dev_in, *dev_sum;
    int arch, *dev_arch;
    HANDLE_ERROR(cudaMalloc(&dev_in, n * sizeof(float4)));
    HANDLE_ERROR(cudaMalloc(&dev_sum, sizeof(float4)));
    HANDLE_ERROR(cudaMalloc(&dev_arch, sizeof(int)));
    HANDLE_ERROR(cudaMemcpy(dev_in, in, n * sizeof(float4), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemset(dev_sum, 0, sizeof(float4)));

    add<<<64, 256>>>(dev_in, n, dev_sum, dev_arch);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(&sum, dev_sum, sizeof(float4), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaMemcpy(&arch, dev_arch, sizeof(int), cudaMemcpyDeviceToHost));
    printf("__CUDA_ARCH__ of the code that ran: %d\n", arch);
    printf("Each thread made %s\n", arch >= 900 ? "1 atomic addition" : "4 atomic additions");
    printf("Sums: %.0f, %.0f, %.0f, %.0f\n", sum.x, sum.y, sum.z, sum.w);
    bool ok = check(sum, arch);

    HANDLE_ERROR(cudaFree(dev_in));
    HANDLE_ERROR(cudaFree(dev_sum));
    HANDLE_ERROR(cudaFree(dev_arch));
    free(in);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Adds with atomics that depend on the compute capability.", 0,
              {OPTION_SIZE("size", &n, 1, 1 << 20, "vectors of four floats")});
    require_memory(n * sizeof(float4), n * sizeof(float4));
}

// Of component k any 7 successive elements are k to k + 6. The sums stay below 2^24, so floats add them
// exactly in any order. nvcc names all versions for which it compiles in __CUDA_ARCH_LIST__.
static bool check(float4 sum, int arch) {
    const float got[] = {sum.x, sum.y, sum.z, sum.w};
    double expected[4];
    for (int k = 0; k < 4; k++) {
        expected[k] = k * n + n / 7 * 21;
        for (size_t i = 0; i < n % 7; i++)
            expected[k] += i;
    }
    bool compiled = false;
    for (int version : {__CUDA_ARCH_LIST__})
        compiled = compiled || version == arch;
    return check_floats("sum", got, expected, 4, 0) &&
           check_value("__CUDA_ARCH__ is of this build", compiled, 1, 0);
}

// Task: none: it shows conditional compilation, and the sums that it computes are only an example
