// SPDX-License-Identifier: MIT
/*
 * linear_solver: dense systems by LU and QR, least squares, singular values
 *
 * Teaches: cuSOLVER factorizes dense matrices on the device, as LAPACK does on the host. A matrix is
 *          factorized in place, and systems are then solved with the factors: by LU with row exchanges, or by
 *          QR, which takes twice the operations but also solves least-squares problems. Most functions
 *          need a workspace in device memory; a function _bufferSize returns its size. Each function also
 *          stores an int, info, in device memory. If the matrix is singular (--singular), info is the number
 *          of the first column without a pivot, and the check fails.
 * Terms:   cuSOLVER, LU factorization, QR factorization, least squares, singular value decomposition,
 *          residual, condition number, column-major order, leading dimension
 * Book:    12.4.2 (after the book)
 * Run:     ./bin/chapter12/linear_solver --size 4096 --rows 20000 --columns 500
 * Differs: the book names CULA, a library of that time, for LU, QR, singular values and least squares.
 * Needs:   libs=cublas, libs=cusolver
 */
#include "../common/book.h"
#include <cublas_v2.h>
#include <cusolverDn.h>
#include "factors.h" // random matrices, and the checks
#include "libraries.h"

static size_t n = 1024;                   // --size: unknowns of the square system
static size_t rows = 1500, columns = 150; // --rows, --columns: of the tall matrix
static bool singular = false;             // --singular

// Solves A x = b for n unknowns by P A = L U. L and U replace A, and x replaces b. All matrices are stored by
// columns; the number after a matrix is the distance from one column to the next.
static bool solve_lu(cusolverDnHandle_t handle, double *A, double *b) {
    int size, *pivots, *info;
    double *work;
    HANDLE_CUSOLVER(cusolverDnDgetrf_bufferSize(handle, n, n, A, n, &size));
    HANDLE_ERROR(cudaMalloc(&work, size * sizeof(double)));
    HANDLE_ERROR(cudaMalloc(&pivots, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&info, sizeof(int)));

    HANDLE_CUSOLVER(cusolverDnDgetrf(handle, n, n, A, n, work, pivots, info));
    bool ok = check_info("getrf", info);
    if (ok) // L y = P b, U x = y
        HANDLE_CUSOLVER(cusolverDnDgetrs(handle, CUBLAS_OP_N, n, 1, A, n, pivots, b, n, info));

    HANDLE_ERROR(cudaFree(work));
    HANDLE_ERROR(cudaFree(pivots));
    HANDLE_ERROR(cudaFree(info));
    return ok;
}

// Finds the x that makes |b - A x| smallest, for a matrix A with n columns and m >= n rows, by A = Q R: since
// Q^T keeps lengths, it solves R x = Q^T b. x replaces the beginning of b, and Q replaces A.
static bool solve_qr(cusolverDnHandle_t handle, cublasHandle_t blas, size_t m, size_t n, double *A,
                     double *b) {
    int size, more, *info;
    double *work, *tau;
    const double one = 1;
    HANDLE_ERROR(cudaMalloc(&tau, n * sizeof(double)));
    HANDLE_ERROR(cudaMalloc(&info, sizeof(int)));
    HANDLE_CUSOLVER(cusolverDnDgeqrf_bufferSize(handle, m, n, A, m, &size));
    HANDLE_CUSOLVER(
        cusolverDnDormqr_bufferSize(handle, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, m, 1, n, A, m, tau, b, m, &more));
    size = max_of(size, more);
    HANDLE_CUSOLVER(cusolverDnDorgqr_bufferSize(handle, m, n, n, A, m, tau, &more));
    size = max_of(size, more);
    HANDLE_ERROR(cudaMalloc(&work, size * sizeof(double)));

    // R is then in the upper triangle of A. Below it and in tau is Q, as n reflections.
    HANDLE_CUSOLVER(cusolverDnDgeqrf(handle, m, n, A, m, tau, work, size, info));
    bool ok = check_info("geqrf", info);
    HANDLE_CUSOLVER(
        cusolverDnDormqr(handle, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, m, 1, n, A, m, tau, b, m, work, size, info));
    HANDLE_CUBLAS(cublasDtrsm(blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N,
                              CUBLAS_DIAG_NON_UNIT, n, 1, &one, A, m, b, m));
    HANDLE_CUSOLVER(cusolverDnDorgqr(handle, m, n, n, A, m, tau, work, size, info)); // the columns of Q

    HANDLE_ERROR(cudaFree(work));
    HANDLE_ERROR(cudaFree(tau));
    HANDLE_ERROR(cudaFree(info));
    return ok;
}

// A = U S V^T, for a matrix with at least as many rows as columns
static bool decompose(cusolverDnHandle_t handle, double *A, double *S, double *U, double *VT) {
    int size, *info;
    double *work;
    HANDLE_ERROR(cudaMalloc(&info, sizeof(int)));
    HANDLE_CUSOLVER(cusolverDnDgesvd_bufferSize(handle, rows, columns, &size));
    HANDLE_ERROR(cudaMalloc(&work, size * sizeof(double)));
    // 'S': as many columns of U and rows of V^T as there are singular values
    HANDLE_CUSOLVER(cusolverDnDgesvd(handle, 'S', 'S', rows, columns, A, rows, S, U, rows, VT, columns, work,
                                     size, NULL, info));
    bool ok = check_info("gesvd", info);
    HANDLE_ERROR(cudaFree(work));
    HANDLE_ERROR(cudaFree(info));
    return ok;
}

static bool solve_square(cusolverDnHandle_t handle, cublasHandle_t blas) {
    double *A = host_array<double>(n * n), *b = host_array<double>(n);
    fill(A, n * n);
    fill(b, n);
    if (singular)
        memset(&A[n / 2 * n], 0, n * sizeof(double)); // a column of zeros
    double *dev_A, *dev_x;
    HANDLE_ERROR(cudaMalloc(&dev_A, n * n * sizeof(double)));
    HANDLE_ERROR(cudaMalloc(&dev_x, n * sizeof(double)));
    HANDLE_ERROR(cudaMemcpy(dev_A, A, n * n * sizeof(double), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_x, b, n * sizeof(double), cudaMemcpyHostToDevice));
    bool ok = solve_lu(handle, dev_A, dev_x) && check_solution("LU", A, b, dev_x, n);
    if (ok) {
        HANDLE_ERROR(cudaMemcpy(dev_A, A, n * n * sizeof(double), cudaMemcpyHostToDevice));
        HANDLE_ERROR(cudaMemcpy(dev_x, b, n * sizeof(double), cudaMemcpyHostToDevice));
        ok = solve_qr(handle, blas, n, n, dev_A, dev_x) && check_solution("QR", A, b, dev_x, n);
    }
    HANDLE_ERROR(cudaFree(dev_A));
    HANDLE_ERROR(cudaFree(dev_x));
    free(A);
    free(b);
    return ok;
}

static bool solve_tall(cusolverDnHandle_t handle, cublasHandle_t blas) {
    double *A = host_array<double>(rows * columns), *b = host_array<double>(rows);
    fill(A, rows * columns);
    fill(b, rows);
    for (size_t j = 0; j < columns; j++) // the sum of the columns, with noise: x is near 1
        add(b, 1, &A[j * rows], rows);
    double *dev_A, *dev_x, *dev_S, *dev_U, *dev_VT;
    HANDLE_ERROR(cudaMalloc(&dev_A, rows * columns * sizeof(double)));
    HANDLE_ERROR(cudaMalloc(&dev_x, rows * sizeof(double)));
    HANDLE_ERROR(cudaMalloc(&dev_S, columns * sizeof(double)));
    HANDLE_ERROR(cudaMalloc(&dev_U, rows * columns * sizeof(double)));
    HANDLE_ERROR(cudaMalloc(&dev_VT, columns * columns * sizeof(double)));
    HANDLE_ERROR(cudaMemcpy(dev_A, A, rows * columns * sizeof(double), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_x, b, rows * sizeof(double), cudaMemcpyHostToDevice));
    bool ok = solve_qr(handle, blas, rows, columns, dev_A, dev_x);
    ok =
        ok && check_least_squares(A, b, dev_x, rows, columns) && check_orthonormal("Q", dev_A, rows, columns);

    HANDLE_ERROR(cudaMemcpy(dev_A, A, rows * columns * sizeof(double), cudaMemcpyHostToDevice));
    ok = ok && decompose(handle, dev_A, dev_S, dev_U, dev_VT);
    ok = ok && check_singular_values(A, dev_S, dev_U, dev_VT, rows, columns) &&
         check_orthonormal("U", dev_U, rows, columns) && check_orthonormal("V^T", dev_VT, columns, columns);
    HANDLE_ERROR(cudaFree(dev_A));
    HANDLE_ERROR(cudaFree(dev_x));
    HANDLE_ERROR(cudaFree(dev_S));
    HANDLE_ERROR(cudaFree(dev_U));
    HANDLE_ERROR(cudaFree(dev_VT));
    free(A);
    free(b);
    return ok;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    cusolverDnHandle_t handle;
    cublasHandle_t blas;
    HANDLE_CUSOLVER(cusolverDnCreate(&handle));
    HANDLE_CUBLAS(cublasCreate(&blas));
    bool ok = solve_square(handle, blas) && solve_tall(handle, blas);
    HANDLE_CUBLAS(cublasDestroy(blas));
    HANDLE_CUSOLVER(cusolverDnDestroy(handle));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

void settings(int argc, char **argv) {
    const Option own[] = {
        OPTION_SIZE("size", &n, 1, 46340, "unknowns of the square system"),
        OPTION_SIZE("rows", &rows, 1, 1 << 20, "rows of the tall matrix, at least as many as columns"),
        OPTION_SIZE("columns", &columns, 1, 46340, "columns of the tall matrix"),
        OPTION_FLAG("singular", &singular, "a column of the square matrix is zero: no solution"), OPTION_END};
    parse_options(argc, argv,
                  "Solves dense systems and a least-squares problem, and computes singular values.", 0, own);
    if (rows < columns)
        quit(EXIT_USAGE, "--rows %zu: must be at least --columns %zu", rows, columns);
    if (rows * columns > INT_MAX)
        quit(EXIT_USAGE, "--rows %zu --columns %zu: more than 2^31 elements", rows, columns);
    select_device();
    require_memory(max_of(n * n, 3 * rows * columns) * sizeof(double),
                   max_of(2 * n * n, 4 * rows * columns) * sizeof(double));
}

// Task: solve_lu(): A is a column-major matrix of n x n doubles and b has n doubles, both in device memory.
// Get the size of the workspace of getrf from cuSOLVER, and allocate the workspace, n ints for the pivots and
// one int for info. Factor A in place (cusolverDnDgetrf); if check_info("getrf", info) is true, solve for b
// in place (cusolverDnDgetrs). Free all three allocations, and return what check_info() has returned. Each
// call of cuSOLVER is in HANDLE_CUSOLVER().
