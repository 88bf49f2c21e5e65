// SPDX-License-Identifier: MIT
/*
 * cublas_matmul: matrix product by cuBLAS, beside a kernel of our own
 *
 * Teaches: cuBLAS stores matrices by columns, C by rows; the memory of a matrix stored by rows, read by
 *          columns, is its transpose. Since (a b)^T = b^T a^T, cublasSgemm gets b before a, and what it
 *          writes is a b by rows; nothing is transposed or copied. The leading dimension of each matrix is
 *          the length of its row. With --as-if-rows it gets a before b: the result is wrong, the status 1.
 *          --cpu compares with OpenBLAS, a library of the host, if the build has it.
 * Terms:   cuBLAS, matrix product, column-major order, row-major order, leading dimension, tiling
 * Book:    12.2.3 (after the book)
 * After:   chapter12/cublas_dot
 * Build:   nvcc -o cublas_matmul chapter12/cublas_matmul.cu common/lib/[a-z]*.c -lcublas
 * Run:     ./bin/chapter12/cublas_matmul --m 4096 --n 2048 --k 3072
 * Needs:   libs=cublas
 * Check:   --m 40 --n 50 --k 70
 */
#include "../common/book.h"
#include "../common/checks/product.h"
#include "../common/checks/runs.h"
#include "../common/timing.h"
#include <cublas_v2.h>
#include "libraries.h"
#ifdef HAVE_OPENBLAS
#include <cblas.h>
#endif

static size_t m = 500, n = 400, k = 300; // --m, --n, --k: c has m x n elements, a m x k, b k x n
const int TILE = 32;

static void show(const char *name, float ms);
static bool check(const float *a, const float *b, float *c);

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

int main(int argc, char **argv) {
    settings(argc, argv);
    float *a = host_array<float>(m * k), *b = host_array<float>(k * n), *c = host_array<float>(m * n);
    fill_matrix(a, m * k, k);
    fill_matrix(b, k * n, k);

    float *dev_a, *dev_b, *dev_c;
    HANDLE_ERROR(cudaMalloc(&dev_a, m * k * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_b, k * n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_c, m * n * sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, m * k * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, k * n * sizeof(float), cudaMemcpyHostToDevice));

    dim3 blocks((n + TILE - 1) / TILE, (m + TILE - 1) / TILE), threads(TILE, TILE);
    show("kernel:", median_ms([&] { matmul<<<blocks, threads>>>(dev_a, dev_b, dev_c, m, n, k); }));
    HANDLE_ERROR(cudaMemcpy(c, dev_c, m * n * sizeof(float), cudaMemcpyDeviceToHost));
    bool ok = check(a, b, c);

    cublasHandle_t handle;
    HANDLE_CUBLAS(cublasCreate(&handle));
    HANDLE_ERROR(cudaMemset(dev_c, 0xff, m * n * sizeof(float))); // NaN
    show("cublasSgemm:", median_ms([&] { multiply(handle, dev_a, dev_b, dev_c); }));
    HANDLE_ERROR(cudaMemcpy(c, dev_c, m * n * sizeof(float), cudaMemcpyDeviceToHost));
    ok = ok && check(a, b, c);
    if (ok)
        printf("Both products of the %zu x %zu and %zu x %zu matrices are right.\n", m, k, k, n);

    HANDLE_CUBLAS(cublasDestroy(handle));
    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    free(c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

static void show(const char *name, float ms) {
    printf("%-13s%.3f ms, %.1f GFLOP/s\n", name, ms, 2.0 * m * n * k / ms / 1e6);
}

// Overwrites c after the check, so that a product that is not computed or not copied is wrong.
static bool check(const float *a, const float *b, float *c) {
    bool ok = check_product(a, b, c, m, n, k);
    std::fill(c, c + m * n, NAN);
    return ok;
}

// The call as the formula c = a b suggests it, with leading dimensions that cuBLAS accepts. It reads the
// memory of each matrix by columns, so a and b are other matrices of the same elements. Returns the status of
// a wrong program.
static int show_wrong_call(void) {
    HostArray<float> a(m * k), b(k * n);
    fill_matrix(a, m * k, k);
    fill_matrix(b, k * n, k);
    DeviceArray<float> dev_a(a, m * k), dev_b(b, k * n), dev_c(m * n);
    cublasHandle_t handle;
    HANDLE_CUBLAS(cublasCreate(&handle));
    const float one = 1, zero = 0;
    HANDLE_CUBLAS(
        cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, dev_a, m, dev_b, k, &zero, dev_c, m));
    HostArray<float> c(dev_c, m * n);
    printf("cublasSgemm gets a before b, as if it read by rows, and reports success.\n");
    bool ok = check_product(a, b, c, m, n, k);
    if (ok)
        printf(
            "The product is right all the same: one of the matrices has a single row or column, or so few\n"
            "elements that they happen to fit.\n");
    else if (m == n && n == k && check_product(b, a, c, n, n, n))
        printf("For square matrices the result is b a instead of a b.\n");
    HANDLE_CUBLAS(cublasDestroy(handle));
    return EXIT_FAILURE;
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
    int status = compare_runs("OpenBLAS, with all cores", device, host, [&] { return check(a, b, c); });
    HANDLE_CUBLAS(cublasDestroy(handle));
    return status;
#endif
}

void settings(int argc, char **argv) {
    bool as_if_rows = false, with_cpu = false;
    configure(argc, argv, "Multiplies two matrices by cuBLAS and by a kernel.", TIMES,
              {OPTION_SIZE("m", &m, 1, 65535, "rows of a and of the product"),
               OPTION_SIZE("n", &n, 1, 65535, "columns of b and of the product"),
               OPTION_SIZE("k", &k, 1, 65535, "columns of a, rows of b"),
               OPTION_FLAG("cpu", &with_cpu, WITH_CPU),
               OPTION_FLAG("as-if-rows", &as_if_rows, "wrong: calls cuBLAS as if it read by rows")});
    size_t bytes = (m * k + k * n + m * n) * sizeof(float);
    require_memory(bytes, bytes);
    if (as_if_rows)
        exit(show_wrong_call());
    if (with_cpu)
        exit(compare_with_cpu());
}

// Task: matmul(): c = a b, where a has m x k, b has k x n and c has m x n elements, all row-major. Blocks of
// TILE x TILE threads cover c, and each thread computes one element of c. In steps of TILE along k, the block
// loads one tile of a and one tile of b into shared memory, with zero padding at the edges, and each thread
// adds TILE products. Barriers for all threads of the block separate loading the tiles from using them, and
// using them from loading the next ones. Threads beyond the edges of c store nothing.
// multiply(): Compute the same product with cublasSgemm in HANDLE_CUBLAS(). cuBLAS takes column-major
// matrices, so it reads each of these row-major matrices as its transpose. So it must compute c^T = b^T a^T.
