// SPDX-License-Identifier: MIT
/*
 * npp_blur: a box filter by NPP, beside a kernel of our own
 *
 * Teaches: NPP has functions for images and signals in device memory. A picture is a pointer to its first
 *          pixel and the distance of its rows in bytes, and sizes and offsets choose a rectangle of it. The
 *          name of a function tells the type of a pixel and its channels: 8u_C1R is one byte. A box filter
 *          replaces each pixel by the mean of the pixels around it; beyond the edge of the picture NPP
 *          repeats the pixels at the edge.
 * Terms:   NPP, convolution, pitch, clamp, effective bandwidth
 * Book:    12.2.5 (after the book)
 * Build:   nvcc -o npp_blur chapter12/npp_blur.cu common/lib/[a-z]*.c -lnppif -lnppc
 * Run:     ./bin/chapter12/npp_blur --size 4000 --radius 5
 * Differs: the book names NPP and shows no program. NPP drops the fraction of the mean, where our kernel
 *          rounds, so some of its pixels are darker by one grey. The CPU back end has no stand-in for NPP:
 *          this program is off there.
 * Needs:   libs=npp
 * Check:   --size 101
 */
#include "../common/book.h"
#include <nppi_filtering_functions.h>
#include "libraries.h" // HANDLE_NPP()

#define DIM 2048

static size_t size = DIM; // --size
static int radius = 2;    // --radius
static void show(const char *name, float ms);
static bool check(const unsigned char *own, const unsigned char *npp, const unsigned char *in);

// The mean of (2 radius + 1)² pixels, rounded to the nearest whole number. Coordinates are clamped at the
// edges.
__global__ void box(const unsigned char *in, size_t in_pitch, unsigned char *out, size_t out_pitch, int size,
                    int radius) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    unsigned sum = 0, side = 2 * radius + 1;
    for (int j = y - radius; j <= y + radius; j++)
        for (int i = x - radius; i <= x + radius; i++)
            sum += in[min(max(i, 0), size - 1) + min(max(j, 0), size - 1) * in_pitch];
    out[x + y * out_pitch] = (2 * sum + side * side) / (2 * side * side);
}

// NPP takes the stream and the properties of its device in a structure.
static NppStreamContext stream_context(void) {
    NppStreamContext c = {}; // stream 0
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDevice(&c.nCudaDeviceId));
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, c.nCudaDeviceId));
    c.nMultiProcessorCount = prop.multiProcessorCount;
    c.nMaxThreadsPerMultiProcessor = prop.maxThreadsPerMultiProcessor;
    c.nMaxThreadsPerBlock = prop.maxThreadsPerBlock;
    c.nSharedMemPerBlock = prop.sharedMemPerBlock;
    c.nCudaDevAttrComputeCapabilityMajor = prop.major;
    c.nCudaDevAttrComputeCapabilityMinor = prop.minor;
    HANDLE_ERROR(cudaStreamGetFlags(c.hStream, &c.nStreamFlags));
    return c;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t bytes = size * size;
    unsigned char *in = (unsigned char *)big_random_block(bytes), *dev_in, *dev_out;
    unsigned char *own = (unsigned char *)malloc(bytes), *npp = (unsigned char *)malloc(bytes);
    HANDLE_NULL(own && npp);
    size_t in_pitch, out_pitch;
    HANDLE_ERROR(cudaMallocPitch((void **)&dev_in, &in_pitch, size, size));
    HANDLE_ERROR(cudaMallocPitch((void **)&dev_out, &out_pitch, size, size));
    HANDLE_ERROR(cudaMemcpy2D(dev_in, in_pitch, in, size, size, size, cudaMemcpyHostToDevice));
    cudaEvent_t start, stop;
    float ms;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));

    dim3 threads(32, 8), blocks((size + 31) / 32, (size + 7) / 8);
    for (int run = 0; run < 2; run++) { // the first run is a warm-up
        HANDLE_ERROR(cudaEventRecord(start));
        box<<<blocks, threads>>>(dev_in, in_pitch, dev_out, out_pitch, size, radius);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaEventRecord(stop));
    }
    HANDLE_ERROR(cudaMemcpy2D(own, size, dev_out, out_pitch, size, size, cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaEventElapsedTime(&ms, start, stop));
    show("box:", ms);

    // The anchor is the place of the pixel within its mask.
    HANDLE_ERROR(cudaMemset2D(dev_out, out_pitch, 0, size, size));
    NppStreamContext context = stream_context();
    NppiSize picture = {(int)size, (int)size}, mask = {2 * radius + 1, 2 * radius + 1};
    NppiPoint origin = {0, 0}, anchor = {radius, radius};
    for (int run = 0; run < 2; run++) {
        HANDLE_ERROR(cudaEventRecord(start));
        HANDLE_NPP(nppiFilterBoxBorder_8u_C1R_Ctx(dev_in, in_pitch, picture, origin, dev_out, out_pitch,
                                                  picture, mask, anchor, NPP_BORDER_REPLICATE, context));
        HANDLE_ERROR(cudaEventRecord(stop));
    }
    HANDLE_ERROR(cudaMemcpy2D(npp, size, dev_out, out_pitch, size, size, cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaEventElapsedTime(&ms, start, stop));
    show("nppiFilterBoxBorder:", ms);
    bool ok = check(own, npp, in);

    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFree(dev_in));
    HANDLE_ERROR(cudaFree(dev_out));
    free(in);
    free(own);
    free(npp);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Blurs a picture by NPP and by a kernel.", TIMES,
              {OPTION_SIZE("size", &size, 1, 32768, "pixels a side"),
               OPTION_INT("radius", &radius, 0, 100, "radius of the filter")});
    require_memory(8 * size * size,
                   2 * size * size + 1024 * size); // rows are padded to at most 512 bytes more
}

// Each pixel is read once and written once.
static void show(const char *name, float ms) {
    printf("%-21s %.4f ms, %.1f GB/s\n", name, ms, 2 * size * size / ms / 1e6);
}

// The reference first adds the columns of each mask, over sliding rows. Our kernel must give its means; NPP
// may differ by one grey.
static bool check(const unsigned char *own, const unsigned char *npp, const unsigned char *in) {
    int side = 2 * radius + 1, last = (int)size - 1;
    HostArray<int> expected(size * size), got(size * size);
    HostArray<long> columns(size);
    long area = (long)side * side;
    for (int y = 0; y <= last; y++) {
        for (int x = 0; x <= last; x++) {
            columns[x] = 0;
            for (int j = y - radius; j <= y + radius; j++)
                columns[x] += in[x + std::clamp(j, 0, last) * size];
        }
        for (int x = 0; x <= last; x++) {
            long sum = 0;
            for (int i = x - radius; i <= x + radius; i++)
                sum += columns[std::clamp(i, 0, last)];
            expected[x + y * size] = lround((double)sum / area);
            got[x + y * size] = own[x + y * size];
        }
    }
    bool ok = check_ints("box", got, expected, size * size);
    size_t above = 0, below = 0;
    for (size_t i = 0; i < size * size; i++) {
        int difference = npp[i] - expected[i];
        above += difference == 1;
        below += difference == -1;
        got[i] = difference == 1 || difference == -1 ? expected[i] : npp[i];
    }
    printf("NPP: of %zu pixels %zu are one grey lighter and %zu one grey darker\n", size * size, above,
           below);
    return check_ints("nppiFilterBoxBorder", got, expected, size * size) && ok;
}

// Task: box(): One thread per pixel of size x size pixels of one byte each; threads beyond the edges do
// nothing. A byte of `out` is the mean of the (2 * radius + 1) x (2 * radius + 1) bytes of `in` around it,
// rounded to the nearest integer; halves are rounded up. Coordinates are clamped at the edges. `in` and `out`
// are row-major, and their rows begin in_pitch and out_pitch bytes apart.
