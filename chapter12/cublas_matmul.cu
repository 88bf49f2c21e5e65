// SPDX-License-Identifier: MIT
/*
 * cublas_matmul: matrix product by cuBLAS, beside a kernel of our own
 *
 * Teaches: cuBLAS stores matrices by columns, C by rows; the memory of a matrix stored by rows, read by
 *          columns, is its transpose. Since (a b)^T = b^T a^T, cublasSgemm gets b before a, and what it
 *          writes is a b by rows; nothing is transposed or copied. The leading dimension of each matrix is
 *          the length of its row. A call that names a before b, as the formula does, succeeds with a wrong
 *          result.
 * Terms:   cuBLAS, matrix product, column-major order, row-major order, leading dimension, tiling
 * Book:    12.2.3 (after the book)
 * After:   chapter12/cublas_dot
 * Build:   nvcc -o cublas_matmul chapter12/cublas_matmul.cu common/lib/[a-z]*.c -lcublas
 * Run:     ./bin/chapter12/cublas_matmul --m 4096 --n 2048 --k 3072
 * Differs: --cpu compares with OpenBLAS, a library of the host, if the build has it.
 * Needs:   libs=cublas
 * Check:   --m 40 --n 50 --k 70
 */
#include "../common/book.h"
#include "../common/checks/product.h" // fill_matrix(), check_product()
#include <cublas_v2.h>
#include "libraries.h" // HANDLE_CUBLAS()

static size_t m = 500, n = 400, k = 300; // --m, --n, --k: c has m x n elements, a m x k, b k x n
const int TILE = 32;

static bool with_cpu; // --cpu
static int compare_with_cpu(void);
static void show_times(cublasHandle_t handle, const float *dev_a, const float *dev_b, float *dev_c);

// c = a b, by tiles in shared memory as in chapter 5. All three matrices are stored by rows.
__global__ void matmul(const float *a, const float *b, float *c, size_t m, size_t n, size_t k) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    unsigned x = threadIdx.x, y = threadIdx.y;
    size_t col = x + blockIdx.x * TILE, row = y + blockIdx.y * TILE;
    float sum = 0;
    for (size_t first = 0; first < k; first += TILE) {
        tile_a[y][x] = row < m && first + x < k ? a[row * k + first + x] : 0;
        tile_b[y][x] = first + y < k && col < n ? b[(first + y) * n + col] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += tile_a[y][i] * tile_b[i][x];
        __syncthreads();
    }
    if (row < m && col < n)
        c[row * n + col] = sum;
}

// c = a b by cuBLAS. Read by columns, the memory of c is the n x m matrix c^T = b^T a^T, that of b the n x k
// matrix b^T, and that of a the k x m matrix a^T. So the call names b first, the sizes n, m, k, and for each
// matrix the distance from one column to the next: the length of a row of ours.
static void multiply(cublasHandle_t handle, const float *dev_a, const float *dev_b, float *dev_c) {
    const float one = 1, zero = 0; // c = 1 a b + 0 c
    HANDLE_CUBLAS(
        cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, dev_b, n, dev_a, k, &zero, dev_c, n));
}

// The wrong call: a before b. cuBLAS takes the memory of each matrix for columns, so it multiplies other
// matrices of the same elements.
static void multiply_in_wrong_order(cublasHandle_t handle, const float *dev_a, const float *dev_b,
                                    float *dev_c) {
    const float one = 1, zero = 0;
    HANDLE_CUBLAS(
        cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, dev_a, m, dev_b, k, &zero, dev_c, m));
}

int main(int argc, char **argv) {
    settings(argc, argv);
    if (with_cpu)
        return compare_with_cpu();
    size_t a_bytes = m * k * sizeof(float), b_bytes = k * n * sizeof(float), c_bytes = m * n * sizeof(float);
    float *a = (float *)malloc(a_bytes), *b = (float *)malloc(b_bytes);
    float *c = (float *)malloc(c_bytes), *by_cublas = (float *)malloc(c_bytes);
    HANDLE_NULL(a && b && c && by_cublas);
    fill_matrix(a, m * k, k); // with small whole numbers: every sum is exact
    fill_matrix(b, k * n, k);

    float *dev_a, *dev_b, *dev_c;
    HANDLE_ERROR(cudaMalloc((void **)&dev_a, a_bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_b, b_bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_c, c_bytes));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, a_bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, b_bytes, cudaMemcpyHostToDevice));

    dim3 blocks((n + TILE - 1) / TILE, (m + TILE - 1) / TILE), threads(TILE, TILE);
    matmul<<<blocks, threads>>>(dev_a, dev_b, dev_c, m, n, k);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(c, dev_c, c_bytes, cudaMemcpyDeviceToHost));
    bool ok = check_product(a, b, c, m, n, k);

    cublasHandle_t handle;
    HANDLE_CUBLAS(cublasCreate(&handle));
    HANDLE_ERROR(cudaMemset(dev_c, 0, c_bytes)); // so that the check notices a missing product
    multiply(handle, dev_a, dev_b, dev_c);
    HANDLE_ERROR(cudaMemcpy(by_cublas, dev_c, c_bytes, cudaMemcpyDeviceToHost));
    ok = check_product(a, b, by_cublas, m, n, k) && ok;
    if (ok)
        printf("Both products of the %zu x %zu and %zu x %zu matrices are right.\n", m, k, k, n);

    multiply_in_wrong_order(handle, dev_a, dev_b, dev_c);
    HANDLE_ERROR(cudaMemcpy(c, dev_c, c_bytes, cudaMemcpyDeviceToHost));
    ok = check_product(b, a, c, n, m, k) && ok; // by rows it is a product too: b of n x k times a of k x m
    size_t differ = 0;
    for (size_t i = 0; i < m * n; i++)
        differ += c[i] != by_cublas[i];
    printf("With a before b the call succeeds, and %zu of %zu elements are wrong.\n", differ, m * n);
    show_times(handle, dev_a, dev_b, dev_c);

    HANDLE_CUBLAS(cublasDestroy(handle));
    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    free(c);
    free(by_cublas);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/runs.h" // compare_runs()
#ifdef HAVE_OPENBLAS
#include <cblas.h>
#endif

static void show(const char *name, float ms) {
    printf("%-13s%.3f ms, %.1f GFLOP/s\n", name, ms, 2.0 * m * n * k / ms / 1e6);
}

static void show_times(cublasHandle_t handle, const float *dev_a, const float *dev_b, float *dev_c) {
    dim3 blocks((n + TILE - 1) / TILE, (m + TILE - 1) / TILE), threads(TILE, TILE);
    show("kernel:", median_ms([&] { matmul<<<blocks, threads>>>(dev_a, dev_b, dev_c, m, n, k); }));
    show("cublasSgemm:", median_ms([&] { multiply(handle, dev_a, dev_b, dev_c); }));
}

static int compare_with_cpu(void) {
#ifndef HAVE_OPENBLAS
    quit(EXIT_WAIVED, "--cpu needs OpenBLAS, which this build lacks");
#else
    HostArray<float> a(m * k), b(k * n), c(m * n);
    fill_matrix(a, m * k, k);
    fill_matrix(b, k * n, k);
    cublasHandle_t handle;
    HANDLE_CUBLAS(cublasCreate(&handle));
    auto device = [&] {
        DeviceArray<float> dev_a(a, m * k), dev_b(b, k * n), dev_c(m * n);
        multiply(handle, dev_a, dev_b, dev_c);
        HANDLE_ERROR(cudaMemcpy(c, dev_c, m * n * sizeof(float), cudaMemcpyDeviceToHost));
    };
    auto host = [&] {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, k, b, n, 0, c, n);
    };
    int status = compare_runs("OpenBLAS, with all cores", device, host, [&] {
        bool ok = check_product(a, b, c, m, n, k);
        std::fill(+c, c + m * n, NAN);
        return ok;
    });
    HANDLE_CUBLAS(cublasDestroy(handle));
    return status;
#endif
}

void settings(int argc, char **argv) {
    configure(argc, argv, "Multiplies two matrices by cuBLAS and by a kernel.", TIMES,
              {OPTION_SIZE("m", &m, 1, 65535, "rows of a and of the product"),
               OPTION_SIZE("n", &n, 1, 65535, "columns of b and of the product"),
               OPTION_SIZE("k", &k, 1, 65535, "columns of a, rows of b"),
               OPTION_FLAG("cpu", &with_cpu, WITH_CPU)});
    size_t bytes = (m * k + k * n + 2 * m * n) * sizeof(float);
    require_memory(bytes, bytes);
}

// Task: matmul(): c = a b, where a has m x k, b has k x n and c has m x n elements, all row-major. Blocks of
// TILE x TILE threads cover c, and each thread computes one element of c. In steps of TILE along k, the block
// loads one tile of a and one tile of b into shared memory, with zero padding at the edges, and each thread
// adds TILE products. Barriers for all threads of the block separate loading the tiles from using them, and
// using them from loading the next ones. Threads beyond the edges of c store nothing.
// multiply(): Compute the same product with cublasSgemm in HANDLE_CUBLAS(). cuBLAS takes column-major
// matrices, so it reads each of these row-major matrices as its transpose. So it must compute c^T = b^T a^T.
// multiply_in_wrong_order(): The call that the formula c = a b suggests, with a before b. Its result is
// wrong.
