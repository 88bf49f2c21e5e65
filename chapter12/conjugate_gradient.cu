// SPDX-License-Identifier: MIT
/*
 * conjugate_gradient: linear systems, dense by cuBLAS and sparse by cuSPARSE
 *
 * Teaches: The conjugate gradient method solves A x = b for a symmetric positive definite A. It needs A only
 *          in products with a vector, so one loop serves a dense matrix (cublasSgemv) and a sparse one
 *          (cusparseSpMV). The residual r is updated in each step; rounding errors let it drift away from b
 *          - A x, so every 50th step computes it anew. With --recompute 0 --limit 1e-7 no step does: the
 *          loop ends because r is small, but b - A x exceeds the limit, and the check fails.
 * Terms:   conjugate gradient method, residual, condition number, cuBLAS, cuSPARSE, sparse matrix, CSR,
 *          dot product, saxpy
 * Book:    12.2.3 (course); T conjugate gradient (dense, sparse)
 * After:   chapter12/cublas_matmul
 * Build:   nvcc -o conjugate_gradient chapter12/conjugate_gradient.cu common/lib/[a-z]*.c -lcublas -lcusparse
 * Run:     ./bin/chapter12/conjugate_gradient --size 4096 --grid 1024
 * Needs:   libs=cublas, libs=cusparse
 * Check:   --size 100 --grid 20 --recompute 7 --limit 1e-3
 */
#include "../common/book.h"
#include <cublas_v2.h>
#include <cusparse.h>
#include "libraries.h" // HANDLE_CUBLAS(), HANDLE_CUSPARSE()

#define MOST_STEPS 10000
#define CONDITION  400 // condition number of the dense matrix

static size_t n = 1024;     // --size: unknowns of the dense system
static size_t side = 128;   // --grid: the sparse system has side * side unknowns
static int recompute = 50;  // --recompute
static float limit = 1e-4f; // --limit: the method ends when |r| / |b| is so small
static int products = 0;    // with A

static cublasHandle_t handle;
static float *A, *dev_A; // the dense matrix
static cusparseHandle_t sparse;
static cusparseSpMatDescr_t grid; // the sparse matrix
static cusparseDnVecDescr_t from, to;
static void *buffer;

typedef void Multiply(float *in, float *out);

static void fill_vector(float *b, size_t unknowns);
static void fill_dense(void);
static size_t fill_grid(int *rows, int *columns, float *values);
static bool check(bool dense, const float *x, const float *b, int steps);

// out = A in. A is symmetric, so it does not matter whether it is stored by rows or by columns.
static void multiply_dense(float *in, float *out) {
    const float one = 1, zero = 0;
    HANDLE_CUBLAS(cublasSgemv(handle, CUBLAS_OP_N, n, n, &one, dev_A, n, in, 1, &zero, out, 1));
    products++;
}

// out = A in with the sparse matrix. The descriptors `from` and `to` get the addresses of the two vectors.
static void multiply_sparse(float *in, float *out) {
    const float one = 1, zero = 0;
    HANDLE_CUSPARSE(cusparseDnVecSetValues(from, in));
    HANDLE_CUSPARSE(cusparseDnVecSetValues(to, out));
    HANDLE_CUSPARSE(cusparseSpMV(sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, grid, from, &zero, to,
                                 CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, buffer));
    products++;
}

// Solves A x = b for the unknowns x, from x = 0 on; returns the number of steps. multiply(in, out) computes
// out = A in. All vectors are in device memory. Each dot product returns its result to the host, so it waits.
static int solve(Multiply *multiply, size_t unknowns, const float *b, float *x) {
    float *r, *d, *y, delta, dy, before;
    const float one = 1, minus_one = -1;
    HANDLE_ERROR(cudaMalloc((void **)&r, unknowns * sizeof(float)));
    HANDLE_ERROR(cudaMalloc((void **)&d, unknowns * sizeof(float)));
    HANDLE_ERROR(cudaMalloc((void **)&y, unknowns * sizeof(float)));
    HANDLE_ERROR(cudaMemset(x, 0, unknowns * sizeof(float)));
    HANDLE_CUBLAS(cublasScopy(handle, unknowns, b, 1, r, 1));
    HANDLE_CUBLAS(cublasScopy(handle, unknowns, b, 1, d, 1));
    HANDLE_CUBLAS(cublasSdot(handle, unknowns, r, 1, r, 1, &delta));
    const float enough = limit * limit * delta;

    int steps = 0;
    products = 0;
    while (steps < MOST_STEPS && delta > enough) {
        multiply(d, y); // y = A d
        HANDLE_CUBLAS(cublasSdot(handle, unknowns, d, 1, y, 1, &dy));
        const float alpha = delta / dy, minus_alpha = -alpha;
        HANDLE_CUBLAS(cublasSaxpy(handle, unknowns, &alpha, d, 1, x, 1)); // x += alpha d
        steps++;
        if (recompute && steps % recompute == 0) {
            multiply(x, y);
            HANDLE_CUBLAS(cublasScopy(handle, unknowns, b, 1, r, 1));
            HANDLE_CUBLAS(cublasSaxpy(handle, unknowns, &minus_one, y, 1, r, 1)); // r = b - A x
        } else {
            HANDLE_CUBLAS(cublasSaxpy(handle, unknowns, &minus_alpha, y, 1, r, 1)); // r -= alpha y
        }
        before = delta;
        HANDLE_CUBLAS(cublasSdot(handle, unknowns, r, 1, r, 1, &delta));
        const float beta = delta / before;
        HANDLE_CUBLAS(cublasSscal(handle, unknowns, &beta, d, 1));
        HANDLE_CUBLAS(cublasSaxpy(handle, unknowns, &one, r, 1, d, 1)); // d = r + beta d
    }
    printf("%d steps, %d products with A, |r| / |b| = %.2g by the loop\n", steps, products,
           limit * sqrtf(delta / enough));
    HANDLE_ERROR(cudaFree(r));
    HANDLE_ERROR(cudaFree(d));
    HANDLE_ERROR(cudaFree(y));
    return steps;
}

static bool solve_dense(void) {
    size_t bytes = n * sizeof(float);
    float *b = (float *)malloc(bytes), *x = (float *)malloc(bytes), *dev_b, *dev_x;
    A = (float *)malloc(n * bytes);
    HANDLE_NULL(A && b && x);
    fill_dense();
    fill_vector(b, n);
    HANDLE_ERROR(cudaMalloc((void **)&dev_A, n * bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_b, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_x, bytes));
    HANDLE_ERROR(cudaMemcpy(dev_A, A, n * bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, bytes, cudaMemcpyHostToDevice));

    printf("Dense, %zu unknowns: ", n);
    int steps = solve(multiply_dense, n, dev_b, dev_x);
    HANDLE_ERROR(cudaMemcpy(x, dev_x, bytes, cudaMemcpyDeviceToHost));
    bool ok = check(true, x, b, steps);

    HANDLE_ERROR(cudaFree(dev_A));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_x));
    free(A);
    free(b);
    free(x);
    return ok;
}

// Poisson's equation on a grid: 4 times each cell minus its neighbours. At most 5 elements in each row of A
// are not zero. CSR stores these with their columns, and where the entries of each row begin.
static bool solve_sparse(void) {
    size_t unknowns = side * side, bytes = unknowns * sizeof(float);
    int *rows = (int *)malloc((unknowns + 1) * sizeof(int));
    int *columns = (int *)malloc(5 * unknowns * sizeof(int));
    float *values = (float *)malloc(5 * bytes), *b = (float *)malloc(bytes), *x = (float *)malloc(bytes);
    HANDLE_NULL(rows && columns && values && b && x);
    size_t entries = fill_grid(rows, columns, values);
    fill_vector(b, unknowns);
    int *dev_rows, *dev_columns;
    float *dev_values, *dev_b, *dev_x;
    HANDLE_ERROR(cudaMalloc((void **)&dev_rows, (unknowns + 1) * sizeof(int)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_columns, entries * sizeof(int)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_values, entries * sizeof(float)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_b, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_x, bytes));
    HANDLE_ERROR(cudaMemcpy(dev_rows, rows, (unknowns + 1) * sizeof(int), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_columns, columns, entries * sizeof(int), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_values, values, entries * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, bytes, cudaMemcpyHostToDevice));

    // Descriptors hold sizes, types and addresses.
    const float one = 1, zero = 0;
    size_t size;
    HANDLE_CUSPARSE(cusparseCreate(&sparse));
    HANDLE_CUSPARSE(cusparseCreateCsr(&grid, unknowns, unknowns, entries, dev_rows, dev_columns, dev_values,
                                      CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                      CUDA_R_32F));
    HANDLE_CUSPARSE(cusparseCreateDnVec(&from, unknowns, dev_b, CUDA_R_32F));
    HANDLE_CUSPARSE(cusparseCreateDnVec(&to, unknowns, dev_x, CUDA_R_32F));
    HANDLE_CUSPARSE(cusparseSpMV_bufferSize(sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, grid, from, &zero,
                                            to, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, &size));
    HANDLE_ERROR(cudaMalloc(&buffer, max_of(size, 1)));
    printf("Sparse, %zu unknowns, %zu entries: ", unknowns, entries);
    int steps = solve(multiply_sparse, unknowns, dev_b, dev_x);
    HANDLE_ERROR(cudaMemcpy(x, dev_x, bytes, cudaMemcpyDeviceToHost));
    bool ok = check(false, x, b, steps);

    HANDLE_CUSPARSE(cusparseDestroyDnVec(from));
    HANDLE_CUSPARSE(cusparseDestroyDnVec(to));
    HANDLE_CUSPARSE(cusparseDestroySpMat(grid));
    HANDLE_CUSPARSE(cusparseDestroy(sparse));
    HANDLE_ERROR(cudaFree(buffer));
    HANDLE_ERROR(cudaFree(dev_rows));
    HANDLE_ERROR(cudaFree(dev_columns));
    HANDLE_ERROR(cudaFree(dev_values));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_x));
    free(rows);
    free(columns);
    free(values);
    free(b);
    free(x);
    return ok;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    HANDLE_CUBLAS(cublasCreate(&handle));
    bool ok = solve_dense();
    ok = solve_sparse() && ok;
    HANDLE_CUBLAS(cublasDestroy(handle));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include <numeric>

void settings(int argc, char **argv) {
    configure(
        argc, argv, "Solves two linear systems by the conjugate gradient method.", 0,
        {OPTION_SIZE("size", &n, 1, 65535, "unknowns of the dense system"),
         OPTION_SIZE("grid", &side, 1, 16384, "rows and columns of the grid of the sparse system"),
         OPTION_FLOAT("limit", &limit, 1e-8, 1, "ends when the residual is so small, relative to b"),
         OPTION_INT("recompute", &recompute, 0, INT_MAX, "steps from one b - A x to the next, 0: never")});
    size_t unknowns = side * side, bytes = unknowns * (10 * sizeof(float) + 5 * sizeof(int));
    require_memory(max_of(n * n * sizeof(float), bytes + 5 * unknowns * sizeof(double)),
                   max_of((n + 5) * n * sizeof(float), bytes));
}

// Random numbers from -1 to 1
static void fill_vector(float *b, size_t unknowns) {
    for (size_t i = 0; i < unknowns; i++)
        b[i] = 2 * rnd(1) - 1;
}

// A = H L H with the eigenvalues L from 1 to CONDITION, and the reflection H = 1 - 2 v v^T at a random vector
// v of length 1. With w = L v, A = L - 2 v w^T - 2 w v^T + 4 (v . w) v v^T.
static void fill_dense(void) {
    HostArray<double> v(n), w(n), L(n);
    double length = 0, vw = 0;
    for (size_t i = 0; i < n; i++) {
        v[i] = 2 * rnd(1) - 1;
        length += v[i] * v[i];
        L[i] = 1 + (CONDITION - 1) * (i / (double)n);
    }
    for (size_t i = 0; i < n; i++) {
        v[i] /= sqrt(length);
        w[i] = L[i] * v[i];
        vw += v[i] * w[i];
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            A[i * n + j] = (i == j ? L[i] : 0) - 2 * (v[i] * w[j] + w[i] * v[j]) + 4 * vw * v[i] * v[j];
}

// Poisson's equation on a grid of side * side cells, in CSR. Returns the number of entries.
static size_t fill_grid(int *rows, int *columns, float *values) {
    size_t k = 0, cell = 0;
    const auto add = [&](bool is_there, size_t column, float value) {
        columns[k] = column;
        values[k] = value;
        k += is_there;
    };
    for (size_t y = 0; y < side; y++)
        for (size_t x = 0; x < side; x++, cell++) {
            rows[cell] = k;
            add(y > 0, cell - side, -1);
            add(x > 0, cell - 1, -1);
            add(true, cell, 4);
            add(x + 1 < side, cell + 1, -1);
            add(y + 1 < side, cell + side, -1);
        }
    rows[cell] = k;
    return k;
}

static double dot(const double *a, const double *b, size_t n) {
    return std::inner_product(a, a + n, b, 0.0);
}

typedef void MultiplyOnHost(const double *in, double *out);

static void multiply_on_host(const double *in, double *out) {
    for (size_t i = 0; i < n; i++)
        out[i] = std::inner_product(in, in + n, A + i * n, 0.0);
}

// From the grid itself, without the sparse matrix
static void multiply_grid(const double *in, double *out) {
    for (size_t i = 0; i < side * side; i++)
        out[i] = 4 * in[i] - (i >= side ? in[i - side] : 0) - (i + side < side * side ? in[i + side] : 0) -
                 (i % side ? in[i - 1] : 0) - ((i + 1) % side ? in[i + 1] : 0);
}

// The conjugate gradient method in double; returns the number of steps.
static int host_steps(size_t n, MultiplyOnHost *multiply, const float *b) {
    HostArray<double> r(n), d(n), y(n);
    std::copy(b, b + n, +r);
    std::copy(b, b + n, +d);
    double delta = dot(r, r, n), enough = (double)limit * limit * delta;
    int steps = 0;
    for (; steps < MOST_STEPS && delta > enough; steps++) {
        multiply(d, y);
        double alpha = delta / dot(d, y, n), before = delta;
        for (size_t i = 0; i < n; i++)
            r[i] -= alpha * y[i];
        delta = dot(r, r, n);
        for (size_t i = 0; i < n; i++)
            d[i] = r[i] + delta / before * d[i];
    }
    return steps;
}

// Checks |b - A x| / |b|, computed in double. It may exceed `limit` by what rounding has changed in r since
// the loop last computed b - A x: less than 2^-24 |A| |x| / |b| in 120 runs, so twice that is allowed. |A| is
// the largest eigenvalue. The number of steps may differ a little from that in double. There is one product
// with A in each step, and one for each b - A x.
static bool check(bool dense, const float *x, const float *b, int steps) {
    const size_t unknowns = dense ? n : side * side;
    const double norm = dense ? CONDITION : 8;
    MultiplyOnHost *multiply = dense ? multiply_on_host : multiply_grid;
    HostArray<double> in(unknowns), r(unknowns);
    std::copy(x, x + unknowns, +in);
    multiply(in, r);
    double bb = 1e-300;
    for (size_t i = 0; i < unknowns; i++) {
        r[i] = b[i] - r[i];
        bb += (double)b[i] * b[i];
    }
    double residual = sqrt(dot(r, r, unknowns) / bb),
           rounding = 0x1p-23 * norm * sqrt(dot(in, in, unknowns) / bb);
    int on_host = host_steps(unknowns, multiply, b);
    printf("  |b - A x| / |b| = %.2g in double; in double the method takes %d steps\n", residual, on_host);
    bool ok = check_value("residual", residual, 0, limit + rounding);
    ok = check_value("products with A", products, steps + (recompute ? steps / recompute : 0), 0) && ok;
    return check_value("steps", steps, on_host, 0.1 + 2.0 / max_of(1, on_host)) && ok;
}

// Task: solve(): Solve A x = b for `unknowns` unknowns by the conjugate gradient method, using cuBLAS
// functions, each call in HANDLE_CUBLAS(). All vectors are in device memory. multiply(in, out) computes out =
// A in. Initially x = 0, r = b, d = b and delta = r . r. Each step computes, in this order: y = A d, alpha =
// delta / (d . y), x = x + alpha d, r = r - alpha y, new delta = r . r, beta = new delta / delta, d = r +
// beta d, delta = new delta. Every `recompute` steps, unless `recompute` is 0, r = b - A x is computed
// instead of r - alpha y. Stop when delta is at most limit * limit times the initial delta, or after
// MOST_STEPS steps. Free the vectors r, d and y, and return the number of steps.
