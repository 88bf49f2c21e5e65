// SPDX-License-Identifier: MIT
/*
 * wmma_matmul: matrix product by tensor cores, in half precision and TF32, and its error
 *
 * Teaches: A tensor core multiplies tiles of matrices. A warp loads tiles into fragments, which are
 *          spread over the registers of its lanes, and one call adds the product of two fragments to a
 *          third. The sums are floats; the factors have 11 significant bits in half and in TF32, where
 *          float has 24: the rounding of the factors causes the error. Half also has fewer bits for the
 *          exponent: its largest number is 65,504, while TF32 has the range of float.
 * Terms:   tensor core, matrix product, TF32, tile, warp, lane
 * Book:    5.3.1 (after the book)
 * Since:   half: CUDA 9.0, compute capability 7.0 (V100); TF32: CUDA 11.0, 8.0 (A100)
 * After:   chapter13/thrust_dot
 * Build:   nvcc -o wmma_matmul chapter13/wmma_matmul.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter13/wmma_matmul --size 4096
 * Differs: matmul() is the kernel of chapter05/matmul_gmem. On a device without TF32 that part is left out.
 *          Today one calls cuBLAS, or writes such a kernel with CUTLASS, NVIDIA's templates for products.
 *          Their instructions are wgmma (9.0), which chapter05/matmul_ladder uses, and tcgen05 (10.0).
 * Check:   --size 50 | --size 16
 * Web:     --size 128
 */
#include <cuda_fp16.h>
#include <mma.h>
#include "../common/book.h"
#include "../common/timing.h" // median_ms()
using namespace nvcuda;

#define WIDTH 512
#define TILE  16 // rows and columns of the tile of c that a warp computes

static size_t n = WIDTH; // --size: rows and columns of the matrices
enum { FLOAT, HALF, TF32, TYPES };
static void fill(float *matrix, float *dev_matrix, half *dev_half, size_t width, bool whole);
static bool check(int type, float ms, bool whole, const float *a, const float *b, float *dev_c, size_t width);
static bool has_tf32(void);
static void print_limit(const half *dev_a, const half *dev_b, float *dev_c, size_t width);

// The kernel of chapter05/matmul_gmem, for comparison: a thread computes an element
__global__ void matmul(const float *a, const float *b, float *c, size_t n);

// A warp computes a tile of c: threadIdx.x is the lane, threadIdx.y the warp of the block. All 32 lanes take
// part in each call, with the same arguments; which elements a lane holds is not specified. Tiles go from
// global memory to registers, so there is neither shared memory nor a barrier, and each element of a and b is
// read n / TILE times in place of n times. Tiles are whole, so n is a multiple of TILE.
__global__ void matmul_half(const half *a, const half *b, float *c, size_t n) {
    size_t col = TILE * blockIdx.x, row = TILE * (threadIdx.y + blockIdx.y * blockDim.y);
    if (row >= n) // for all lanes of the warp
        return;
    wmma::fragment<wmma::matrix_a, TILE, TILE, 16, half, wmma::row_major> tile_a; // rows, columns, k
    wmma::fragment<wmma::matrix_b, TILE, TILE, 16, half, wmma::row_major> tile_b;
    wmma::fragment<wmma::accumulator, TILE, TILE, 16, float> sum;
    wmma::fill_fragment(sum, 0);
    for (size_t k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(tile_a, &a[row * n + k], n); // n elements from one row to the next
        wmma::load_matrix_sync(tile_b, &b[k * n + col], n);
        wmma::mma_sync(sum, tile_a, tile_b, sum);
    }
    wmma::store_matrix_sync(&c[row * n + col], sum, n, wmma::mem_row_major);
}

// The same with floats, of which the tensor core uses 11 significant bits. The kernel rounds them; without
// that the tensor core would cut off the other 13 bits, and the largest error would be twice as large.
__global__ void matmul_tf32(const float *a, const float *b, float *c, size_t n) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    size_t col = TILE * blockIdx.x, row = TILE * (threadIdx.y + blockIdx.y * blockDim.y);
    if (row >= n)
        return;
    wmma::fragment<wmma::matrix_a, TILE, TILE, 8, wmma::precision::tf32, wmma::row_major> tile_a;
    wmma::fragment<wmma::matrix_b, TILE, TILE, 8, wmma::precision::tf32, wmma::row_major> tile_b;
    wmma::fragment<wmma::accumulator, TILE, TILE, 8, float> sum;
    wmma::fill_fragment(sum, 0);
    for (size_t k = 0; k < n; k += 8) {
        wmma::load_matrix_sync(tile_a, &a[row * n + k], n);
        wmma::load_matrix_sync(tile_b, &b[k * n + col], n);
        for (int i = 0; i < tile_a.num_elements; i++) // the elements that this lane holds
            tile_a.x[i] = wmma::__float_to_tf32(tile_a.x[i]);
        for (int i = 0; i < tile_b.num_elements; i++)
            tile_b.x[i] = wmma::__float_to_tf32(tile_b.x[i]);
        wmma::mma_sync(sum, tile_a, tile_b, sum);
    }
    wmma::store_matrix_sync(&c[row * n + col], sum, n, wmma::mem_row_major);
#endif
}

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t width = (n + TILE - 1) / TILE * TILE, elements = width * width; // padded with zeros to whole tiles
    float *a = (float *)malloc(elements * sizeof(float)), *b = (float *)malloc(elements * sizeof(float));
    HANDLE_NULL(a && b);

    float *dev_a, *dev_b, *dev_c;
    half *dev_half_a, *dev_half_b;
    HANDLE_ERROR(cudaMalloc((void **)&dev_a, elements * sizeof(float)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_b, elements * sizeof(float)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_c, elements * sizeof(float)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_half_a, elements * sizeof(half)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_half_b, elements * sizeof(half)));

    bool ok = true;
    dim3 threads(32, 4), blocks((width + 31) / 32, (width + 3) / 4);
    dim3 tiles(width / TILE, (width / TILE + 3) / 4); // 4 warps a block
    for (int whole = 0; whole < 2; whole++) {
        printf(whole ? "Whole numbers of at most 11 bits:\n" : "Random numbers between -1 and 1:\n");
        // Each matrix is filled and copied to the device twice: as floats, and as numbers of type half.
        fill(a, dev_a, dev_half_a, width, whole);
        fill(b, dev_b, dev_half_b, width, whole);

        float ms = median_ms([=] { matmul<<<blocks, threads>>>(dev_a, dev_b, dev_c, width); });
        ok = check(FLOAT, ms, whole, a, b, dev_c, width) && ok;
        ms = median_ms([=] { matmul_half<<<tiles, threads>>>(dev_half_a, dev_half_b, dev_c, width); });
        ok = check(HALF, ms, whole, a, b, dev_c, width) && ok;
        if (has_tf32()) {
            ms = median_ms([=] { matmul_tf32<<<tiles, threads>>>(dev_a, dev_b, dev_c, width); });
            ok = check(TF32, ms, whole, a, b, dev_c, width) && ok;
        }
    }
    print_limit(dev_half_a, dev_half_b, dev_c, width);

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    HANDLE_ERROR(cudaFree(dev_half_a));
    HANDLE_ERROR(cudaFree(dev_half_b));
    free(a);
    free(b);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#ifdef HAVE_CUBLAS
#include <cublas_v2.h>
#endif
#include "../common/checks/product.h" // check_product()

static float times[TYPES] = {NAN, NAN, NAN}; // of the kernels, in milliseconds

void settings(int argc, char **argv) {
    configure(argc, argv, "Multiplies two matrices by tensor cores.", TIMES,
              {OPTION_SIZE("size", &n, 1, 32768, "width of the matrices")});
    size_t elements = (n + TILE) * (n + TILE), bytes = (3 * sizeof(float) + 2 * sizeof(half)) * elements;
    require_memory(bytes, bytes);
}

__global__ void matmul(const float *a, const float *b, float *c, size_t n) {
    size_t col = threadIdx.x + blockIdx.x * blockDim.x, row = threadIdx.y + blockIdx.y * blockDim.y;
    if (row >= n || col >= n)
        return;
    float sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}

// Random numbers between -1 and 1; or whole numbers, of which no sum of n products exceeds 2^24 and none has
// more than 11 bits: their product is exact
static void fill(float *matrix, float *dev_matrix, half *dev_half, size_t width, bool whole) {
    int most = whole ? sqrt(0x1p24 / max_of(n, TILE)) : 1 << 23;
    size_t elements = width * width;
    HostArray<half> rounded(elements);
    for (size_t i = 0; i < elements; i++) {
        int number = (int)(random_bits() % (2 * most)) - most;
        number += number >= 0; // no 0, as in fill_matrix()
        bool inside = i / width < n && i % width < n;
        matrix[i] = inside ? number * (whole ? 1 : 0x1p-23f) : 0;
        rounded[i] = __float2half(matrix[i]);
    }
    HANDLE_ERROR(cudaMemcpy(dev_matrix, matrix, elements * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_half, rounded, elements * sizeof(half), cudaMemcpyHostToDevice));
}

// Whether the kernel that runs on this device is compiled with TF32
static bool has_tf32(void) {
    cudaFuncAttributes attributes;
    HANDLE_ERROR(cudaFuncGetAttributes(&attributes, matmul_tf32));
    if (attributes.ptxVersion < 80)
        printf("TF32   needs code for compute capability 8.0\n");
    return attributes.ptxVersion >= 80;
}

// A factor as the tensor cores have it: of 24 bits the first 11, rounded
static float factor(int type, float x) {
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x1000) & ~0x1fffu;
    memcpy(&x, &bits, type == TF32 ? sizeof bits : 0);
    return type == HALF ? __half2float(__float2half(x)) : x;
}

// Prints the time of a kernel, and computes about 16 rows again in double. Before it returns it overwrites
// the product on the device, for the next kernel. Factors have 11 bits in half and in TF32, as in the
// reference; the printed error is that of the whole product. Sums are cut off by tensor cores, so that their
// errors do not cancel. A sum is less than 4 sqrt(n), but for a chance of one in 10^11.
static bool check(int type, float ms, bool whole, const float *a, const float *b, float *dev_c,
                  size_t width) {
    const char *name = type == FLOAT ? "float" : type == HALF ? "half" : "TF32";
    times[type] = ms;
    const HostArray<float> c(dev_c, width * width);
    HANDLE_ERROR(cudaMemset(dev_c, 0xff, width * width * sizeof(float))); // NaN
    double limit = n * 4 * sqrt(n) * 0x1p-23, largest = 0;
    bool ok = !whole || check_product(a, b, c, width, width, width);
    for (size_t row = 0; row < n; row += (n + 15) / 16) {
        HostArray<double> expected(n, 0), rounded(n, 0);
        HostArray<float> error(n);
        for (size_t i = 0; i < n * n; i++) {
            float x = a[row * width + i / n], y = b[i / n * width + i % n];
            expected[i % n] += (double)x * y;
            rounded[i % n] += (double)factor(type, x) * factor(type, y);
        }
        for (size_t col = 0; col < n; col++) {
            error[col] = c[row * width + col] - rounded[col];
            largest = max_of(largest, fabs(c[row * width + col] - expected[col]));
        }
        ok = check_floats(name, error, n, whole ? 0 : limit, [](size_t) { return 0; }) && ok;
    }
    printf("%-6s %9.3f ms, %8.1f GFLOP/s, largest error %.2g\n", name, ms, 2.0 * n * n * n / ms / 1e6,
           largest);
    return ok;
}

// The limit: the rate of cuBLAS on tensor cores, with elements of half and sums of float
static void print_limit(const half *dev_a, const half *dev_b, float *dev_c, size_t width) {
#ifdef HAVE_CUBLAS
    cublasHandle_t handle;
    const float one = 1, zero = 0;
    if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS)
        quit(EXIT_FAILURE, "cuBLAS cannot start");
    float ms = median_ms([&] {
        if (cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, width, width, width, &one, dev_b, CUDA_R_16F,
                         width, dev_a, CUDA_R_16F, width, &zero, dev_c, CUDA_R_32F, width, CUBLAS_COMPUTE_32F,
                         CUBLAS_GEMM_DEFAULT) != CUBLAS_STATUS_SUCCESS)
            quit(EXIT_FAILURE, "cublasGemmEx failed");
    });
    cublasDestroy(handle);
    printf("cuBLAS %9.3f ms, %8.1f GFLOP/s; of it half %.1f %%, TF32 %.1f %%\n", ms,
           2.0 * n * n * n / ms / 1e6, 100 * ms / times[HALF], 100 * ms / times[TF32]);
#else
    (void)dev_a, (void)dev_b, (void)dev_c, (void)width;
    printf("cuBLAS unknown: it is not here\n");
#endif
    printf("The fastest: ./bin/chapter05/matmul_ladder --size %zu\n", n);
}

// Task: matmul_half(): c = a b for n x n matrices, all row-major, where n is a multiple of TILE. A block has
// several warps of 32 threads; threadIdx.x is the lane and threadIdx.y the warp. A warp computes the tile of
// TILE x TILE elements of c whose column of tiles is blockIdx.x and whose row of tiles is threadIdx.y +
// blockIdx.y * blockDim.y, with fragments of half and a sum of float; a warp below the matrix does nothing.
// matmul_tf32(): The same with fragments of wmma::precision::tf32, whose depth along k is 8. Each lane rounds
// its elements of the fragments of a and b to TF32 by wmma::__float_to_tf32(). GPUs before compute capability
// 8.0 have no TF32: for them, put the body between #if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800 and
// #endif.
