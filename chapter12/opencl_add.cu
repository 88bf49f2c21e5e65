// SPDX-License-Identifier: MIT
/*
 * opencl_add: vector addition in OpenCL C
 *
 * Teaches: OpenCL has the model of CUDA under other names, on devices of many makers. The kernel is a text
 *          that the driver compiles when the program runs. The program makes the context and the command
 *          queue itself, where CUDA has a context and a stream by default.
 * Terms:   OpenCL, kernel, context, grid, block, thread, vector addition
 * Book:    12.4.3 (course); R OpenCL; C 1.6 (OpenCL)
 * Build:   nvcc -o opencl_add chapter12/opencl_add.cu common/lib/[a-z]*.c -lOpenCL
 * Run:     ./bin/chapter12/opencl_add
 * Differs: runs on the first GPU with an OpenCL driver, else on another device, such as the CPU with PoCL.
 *          Without a device the status is 2.
 * Needs:   libs=opencl
 * Check:   --size 1001
 */
#include "../common/book.h"
#include "../common/checks/add.h" // check_sums()
#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>
#include "libraries.h" // HANDLE_OPENCL()

#define N (33 * 1024)

static size_t n = N; // --size

// CUDA                             OpenCL
// thread, block, grid              work-item, work-group, NDRange
// threadIdx.x, blockIdx.x          get_local_id(0), get_group_id(0)
// blockDim.x, gridDim.x            get_local_size(0), get_num_groups(0)
// global, shared, local memory     global, local, private memory
// __global__, __shared__           __kernel, __local
// __syncthreads()                  barrier(CLK_LOCAL_MEM_FENCE)
// stream                           command queue
// cudaMalloc, cudaFree             clCreateBuffer, clReleaseMemObject
// cudaMemcpy                       clEnqueueWriteBuffer, clEnqueueReadBuffer
// kernel<<<grid, block>>>(a, n)    clSetKernelArg for each argument; clEnqueueNDRangeKernel, which takes the
//                                  number of all work-items, not of work-groups
static const char text[] = R"(
    __kernel void add(__global const int *a, __global const int *b, __global int *c, ulong n) {
        size_t i = get_global_id(0); // get_local_id(0) + get_group_id(0) * get_local_size(0)
        if (i < n)
            c[i] = a[i] + b[i];
    }
)";

// Returns the first GPU, or without one the first device. A platform is a driver, with its devices.
static cl_device_id find_device(void) {
    cl_platform_id platforms[16];
    cl_uint count = 0, devices = 0;
    cl_int error = clGetPlatformIDs(16, platforms, &count);
    if (error == -1001 || count == 0) // CL_PLATFORM_NOT_FOUND_KHR
        quit(EXIT_WAIVED,
             "needs an OpenCL platform, found none (Debian: pocl-opencl-icd has one for the CPU)");
    HANDLE_OPENCL(error);
    const cl_device_type types[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ALL};
    for (int t = 0; t < 2; t++)
        for (cl_uint i = 0; i < min_of(count, 16u); i++) {
            cl_device_id device;
            if (clGetDeviceIDs(platforms[i], types[t], 1, &device, &devices) != CL_SUCCESS || devices == 0)
                continue;
            char name[256], version[256];
            HANDLE_OPENCL(clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof(name), name, NULL));
            printf("Platform %u of %u: %s\n", i, count, name);
            HANDLE_OPENCL(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof(name), name, NULL));
            HANDLE_OPENCL(clGetDeviceInfo(device, CL_DEVICE_VERSION, sizeof(version), version, NULL));
            printf("Device: %s, %s\n", name, version);
            return device;
        }
    quit(EXIT_WAIVED, "needs an OpenCL device, found none");
}

// Compiles the text for the device. A mistake in it ends the program with the messages of the compiler.
static cl_program compile(cl_context context, cl_device_id device, const char *text) {
    cl_int error;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
    HANDLE_OPENCL(error);
    error = clBuildProgram(program, 1, &device, "", NULL, NULL);
    if (error == CL_BUILD_PROGRAM_FAILURE) {
        static char log[100000];
        HANDLE_OPENCL(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof(log), log, NULL));
        quit(EXIT_FAILURE, "the kernel does not compile: %s", log);
    }
    HANDLE_OPENCL(error);
    return program;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    cl_device_id device = find_device();
    cl_int error;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    HANDLE_OPENCL(error);
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &error);
    HANDLE_OPENCL(error);
    cl_program program = compile(context, device, text);
    cl_kernel add = clCreateKernel(program, "add", &error);
    HANDLE_OPENCL(error);

    size_t bytes = n * sizeof(int);
    int *a = (int *)malloc(bytes), *b = (int *)malloc(bytes), *c = (int *)malloc(bytes);
    HANDLE_NULL(a && b && c);
    for (size_t i = 0; i < n; i++) {
        a[i] = i % 46341; // 46340 is the largest number whose square fits an int
        b[i] = a[i] * a[i];
    }
    cl_mem dev_a = clCreateBuffer(context, CL_MEM_READ_ONLY, bytes, NULL, &error);
    HANDLE_OPENCL(error);
    cl_mem dev_b = clCreateBuffer(context, CL_MEM_READ_ONLY, bytes, NULL, &error);
    HANDLE_OPENCL(error);
    cl_mem dev_c = clCreateBuffer(context, CL_MEM_WRITE_ONLY, bytes, NULL, &error);
    HANDLE_OPENCL(error);
    HANDLE_OPENCL(clEnqueueWriteBuffer(queue, dev_a, CL_TRUE, 0, bytes, a, 0, NULL, NULL)); // CL_TRUE: waits
    HANDLE_OPENCL(clEnqueueWriteBuffer(queue, dev_b, CL_TRUE, 0, bytes, b, 0, NULL, NULL));

    cl_ulong count = n;
    HANDLE_OPENCL(clSetKernelArg(add, 0, sizeof(dev_a), &dev_a));
    HANDLE_OPENCL(clSetKernelArg(add, 1, sizeof(dev_b), &dev_b));
    HANDLE_OPENCL(clSetKernelArg(add, 2, sizeof(dev_c), &dev_c));
    HANDLE_OPENCL(clSetKernelArg(add, 3, sizeof(count), &count));
    size_t group = 128, items = (n + group - 1) / group * group;
    HANDLE_OPENCL(clEnqueueNDRangeKernel(queue, add, 1, NULL, &items, &group, 0, NULL, NULL));

    HANDLE_OPENCL(clEnqueueReadBuffer(queue, dev_c, CL_TRUE, 0, bytes, c, 0, NULL, NULL));
    bool ok = check_sums("c", c, n, 1);
    if (ok)
        printf("All %zu sums are right.\n", n);

    HANDLE_OPENCL(clReleaseMemObject(dev_a));
    HANDLE_OPENCL(clReleaseMemObject(dev_b));
    HANDLE_OPENCL(clReleaseMemObject(dev_c));
    HANDLE_OPENCL(clReleaseKernel(add));
    HANDLE_OPENCL(clReleaseProgram(program));
    HANDLE_OPENCL(clReleaseCommandQueue(queue));
    HANDLE_OPENCL(clReleaseContext(context));
    free(a);
    free(b);
    free(c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

// A driver that cannot start may end the process, so this runs in a child process first.
static void start_drivers(void) {
    cl_platform_id platforms[16];
    cl_uint count = 0, devices;
    clGetPlatformIDs(16, platforms, &count);
    for (cl_uint i = 0; i < min_of(count, 16u); i++)
        clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 0, NULL, &devices);
}

void settings(int argc, char **argv) {
    configure(argc, argv, "Adds two vectors with OpenCL.", HOST_ONLY,
              {OPTION_SIZE("size", &n, 1, 1LL << 32, "elements in a vector")});
    require_memory(4 * n * sizeof(int), 0);
    try_start("OpenCL", start_drivers);
}

// Task: none: its kernel is OpenCL C source, which is compiled at run time; the lesson is a comparison of
// OpenCL with CUDA
