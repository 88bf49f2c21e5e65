// SPDX-License-Identifier: MIT
/*
 * runtime_compile: the kernel of a Julia set, compiled while the program runs, with the given c
 *
 * Teaches: NVRTC compiles CUDA C++ from a string. So a value that is known only when the program runs, such
 *          as an option, can be a constant of the kernel, and the compiler can make the code shorter. The
 *          code is compiled for the compute capability of the device. The compilation takes far longer than
 *          a launch, so it saves time only if the kernel runs often or becomes much faster.
 * Terms:   runtime compilation, Julia set, compute capability
 * Book:    4.2.2 (after the book)
 * Since:   CUDA 7.0, every GPU; as written here CUDA 13.0
 * Build:   nvcc -o runtime_compile chapter13/runtime_compile.cu common/lib/[a-z]*.c -lnvrtc
 * Run:     ./bin/chapter13/runtime_compile --real 0 --imag 0
 * Differs: as chapter04/julia_gpu with larger blocks, and without a picture. The CPU back end has no
 *          compiler when a program runs, so it leaves this one out.
 * Needs:   libs=nvrtc
 * Check:   --size 97 | --size 64 --real 0 --imag 0 --iterations 3
 */
#include <nvrtc.h>
#include "../common/book.h"
#include "../common/timing.h" // host_ms(), median_ms()

struct View {
    size_t size;             // points a side
    float scale, real, imag; // both axes go from -scale to scale; c is real + imag * i
    int iterations;
};
static View view = {4096, 1.5f, -0.8f, 0.156f, 200}; // --size, --real and --imag, --iterations
static bool check(const char *name, unsigned char *dev_ptr, float ms);
static void handle_nvrtc(nvrtcResult result, nvrtcProgram program);
#define HANDLE_NVRTC(...) handle_nvrtc(__VA_ARGS__, program)

__global__ void julia_kernel(unsigned char *ptr, View v) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= v.size || y >= v.size)
        return;
    float half = v.size / 2.0f, r = v.scale * (half - x) / half, i = v.scale * (half - y) / half;
    int step = 0;
    for (; step < v.iterations && r * r + i * i <= 1000; step++) {
        float old = r;
        r = r * r - i * i + v.real;
        i = 2 * old * i + v.imag;
    }
    ptr[x + y * v.size] = step == v.iterations && r * r + i * i <= 1000;
}

// The same as text. SIZE, SCALE, REAL, IMAG and ITERATIONS are macros; compile() defines them by options of
// the compiler. extern "C": the compiler does not add the types of the parameters to the name of the kernel.
static const char source[] = R"(
extern "C" __global__ void julia_kernel(unsigned char *ptr) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= SIZE || y >= SIZE)
        return;
    float half = SIZE / 2.0f, r = SCALE * (half - x) / half, i = SCALE * (half - y) / half;
    int step = 0;
    for (; step < ITERATIONS && r * r + i * i <= 1000; step++) {
        float old = r;
        r = r * r - i * i + REAL;
        i = 2 * old * i + IMAG;
    }
    ptr[x + (unsigned long long)y * SIZE] = step == ITERATIONS && r * r + i * i <= 1000;
})";

// Compiles the text for this device; SIZE and the other macros have the values in `view`. Returns the machine
// code (cubin), which the caller frees.
static char *compile(void) {
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, options.device));
    char arch[40], text[5][40];
    snprintf(arch, sizeof(arch), "--gpu-architecture=sm_%d%d", prop.major, prop.minor);
    snprintf(text[0], sizeof(text[0]), "-DSIZE=%zu", view.size);
    snprintf(text[1], sizeof(text[1]), "-DSCALE=%af", view.scale); // %a prints all bits
    snprintf(text[2], sizeof(text[2]), "-DREAL=%af", view.real);
    snprintf(text[3], sizeof(text[3]), "-DIMAG=%af", view.imag);
    snprintf(text[4], sizeof(text[4]), "-DITERATIONS=%d", view.iterations);
    const char *arguments[] = {arch, text[0], text[1], text[2], text[3], text[4]};

    nvrtcProgram program;
    size_t bytes;
    HANDLE_NVRTC(nvrtcCreateProgram(&program, source, "julia.cu", 0, NULL, NULL));
    HANDLE_NVRTC(nvrtcCompileProgram(program, 6, arguments));
    HANDLE_NVRTC(nvrtcGetCUBINSize(program, &bytes));
    char *code = (char *)malloc(bytes);
    HANDLE_NULL(code);
    HANDLE_NVRTC(nvrtcGetCUBIN(program, code));
    HANDLE_NVRTC(nvrtcDestroyProgram(&program));
    return code;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    unsigned char *dev_ptr;
    HANDLE_ERROR(cudaMalloc(&dev_ptr, view.size * view.size));
    dim3 threads(32, 8), blocks((view.size + 31) / 32, (view.size + 7) / 8);

    char *code = NULL;
    double compile_ms = host_ms([&] { code = compile(); });
    cudaLibrary_t library;
    cudaKernel_t kernel;
    HANDLE_ERROR(cudaLibraryLoadData(&library, code, NULL, NULL, 0, NULL, NULL, 0));
    HANDLE_ERROR(cudaLibraryGetKernel(&kernel, library, "julia_kernel"));
    printf("Compiled in %.1f ms\n", compile_ms);

    bool ok = true;
    float ms = median_ms([=] { julia_kernel<<<blocks, threads>>>(dev_ptr, view); });
    ok = check("Argument:", dev_ptr, ms) && ok;
    void *arguments[] = {&dev_ptr};
    ms = median_ms([&] { HANDLE_ERROR(cudaLaunchKernel((void *)kernel, blocks, threads, arguments, 0, 0)); });
    ok = check("Constant:", dev_ptr, ms) && ok;

    HANDLE_ERROR(cudaLibraryUnload(library));
    HANDLE_ERROR(cudaFree(dev_ptr));
    free(code);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/julia.h" // reference_steps()

void settings(int argc, char **argv) {
    configure(argc, argv, "Compiles the kernel of a Julia set while it runs.", TIMES,
              {OPTION_SIZE("size", &view.size, 1, 4096, "points a side"),
               OPTION_FLOAT("real", &view.real, -2, 2, "real part of c"),
               OPTION_FLOAT("imag", &view.imag, -2, 2, "imaginary part of c"),
               OPTION_INT("iterations", &view.iterations, 0, 100000, "after which a point is in the set")});
    require_memory(6 * view.size * view.size, view.size * view.size);
    printf("The fastest: ./bin/chapter04/julia_ladder --size %zu --real %g --imag %g --iterations %d\n",
           view.size, view.real, view.imag, view.iterations);
}

static void handle_nvrtc(nvrtcResult result, nvrtcProgram program) {
    char log[4000] = "";
    size_t bytes;
    if (result == NVRTC_ERROR_COMPILATION && nvrtcGetProgramLogSize(program, &bytes) == NVRTC_SUCCESS &&
        bytes <= sizeof(log))
        nvrtcGetProgramLog(program, log);
    if (result != NVRTC_SUCCESS)
        quit(EXIT_FAILURE, "NVRTC: %s %s", nvrtcGetErrorString(result), log);
}

// The limit: steps alone, without tests and divergence
const int ALONE = 1 << 14;
__global__ void steps_alone(View v, unsigned char *ptr) {
    float r = threadIdx.x / 256.0f, i = 0;
    for (int step = 0; step < ALONE; step++) {
        float old = r;
        r = r * r - i * i + v.real;
        i = 2 * old * i + v.imag;
    }
    if (r == 0) // hardly ever; so nvcc leaves no step out
        *ptr = 2;
}

// Prints the time of a kernel, the rate of its steps and what part of the limit that is, and compares its
// points, of which a few may differ by rounding.
static bool check(const char *name, unsigned char *dev_ptr, float ms) {
    const size_t points = view.size * view.size;
    static HostArray<int> steps(points);
    static double allowed = reference_steps(view, false, steps);
    HostArray<unsigned char> inside(dev_ptr, points);
    size_t differ = 0;
    for (size_t i = 0; i < points; i++)
        differ += inside[i] != (steps[i] == view.iterations);
    unsigned blocks = 8 * device_attribute(cudaDevAttrMultiProcessorCount);
    float alone_ms = median_ms([=] { steps_alone<<<blocks, 256>>>(view, dev_ptr); });
    double done = 0, limit = 256.0 * blocks * ALONE / alone_ms;
    for (size_t i = 0; i < points; i++)
        done += min_of(steps[i] + 1, view.iterations);
    printf("%-9s %.4f ms, %.0f Gsteps/s, %.0f %% of the steps alone\n", name, ms, done / ms / 1e6,
           100 * done / ms / limit);
    HANDLE_ERROR(cudaMemset(dev_ptr, 2, points));
    return check_value(name, fmax(0, (double)differ / points - allowed), 0, 0);
}

// Task: none: its kernel is that of chapter04/julia_gpu. By hand: give the compiler --use_fast_math, too.
