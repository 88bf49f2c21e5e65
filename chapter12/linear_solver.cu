// SPDX-License-Identifier: MIT
/*
 * linear_solver: dense systems by LU and QR, least squares, singular values
 *
 * Teaches: cuSOLVER factorizes dense matrices on the device, as LAPACK does on the host. A matrix is
 *          factorized in place, and systems are then solved with the factors: by LU with row exchanges, or
 *          by QR, which takes twice the operations but also solves least-squares problems. Most functions
 *          need a workspace in device memory, whose size a function _bufferSize returns. Each also stores an
 *          int, info, in device memory: 0 for success; if LU meets a singular matrix (--singular), the number
 *          of the first column without a pivot, and the check fails.
 * Terms:   cuSOLVER, LU factorization, QR factorization, least squares, singular value decomposition,
 *          residual, condition number, column-major order, leading dimension
 * Book:    12.4.2 (after the book)
 * Build:   nvcc -o linear_solver chapter12/linear_solver.cu common/lib/[a-z]*.c -lcublas -lcusolver
 * Run:     ./bin/chapter12/linear_solver --size 4096 --rows 20000
 * Differs: the book names CULA, a library of that time, for LU, QR, singular values and least squares, also
 *          constrained (--constraints).
 * Needs:   libs=cublas, libs=cusolver
 * Check:   --size 90 --rows 300 | --rows 300 --constraints 4
 */
#include "../common/book.h"
#include <cublas_v2.h>
#include <cusolverDn.h>
#include "libraries.h" // HANDLE_CUBLAS(), HANDLE_CUSOLVER()

static size_t unknowns = 1024; // --size: of the square system
static size_t rows = 1500;     // --rows: of the tall matrix
static size_t columns;         // of the tall matrix: a tenth of its rows
static bool singular;          // --singular
static int constraints;        // --constraints
static int solve_constrained(cusolverDnHandle_t handle, cublasHandle_t blas);
static void fill(double *values, size_t count); // with random numbers
static void add(double *y, double factor, const double *x, size_t count);
static bool check_info(const char *call, const int *dev_info);
static bool check_solution(const char *name, const double *A, const double *b, const double *dev_x, size_t n);
static bool check_least_squares(const double *A, const double *b, const double *dev_x, size_t m, size_t n);
static bool check_orthonormal(const char *name, const double *dev_Q, size_t m, size_t n);
static bool check_singular_values(const double *A, const double *dev_S, const double *dev_U,
                                  const double *dev_VT, size_t m, size_t n);

// Solves A x = b for n unknowns by P A = L U. L and U replace A, and x replaces b. All matrices are stored by
// columns; the number after a matrix is the distance from one column to the next.
static bool solve_lu(cusolverDnHandle_t handle, size_t n, double *A, double *b) {
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
    size_t n = unknowns, bytes = n * sizeof(double);
    double *A = (double *)malloc(n * bytes), *b = (double *)malloc(bytes), *dev_A, *dev_x;
    HANDLE_NULL(A && b);
    fill(A, n * n);
    fill(b, n);
    if (singular)
        memset(&A[n / 2 * n], 0, bytes); // a column of zeros
    HANDLE_ERROR(cudaMalloc((void **)&dev_A, n * bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_x, bytes));
    HANDLE_ERROR(cudaMemcpy(dev_A, A, n * bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_x, b, bytes, cudaMemcpyHostToDevice));
    bool ok = solve_lu(handle, n, dev_A, dev_x) && check_solution("LU", A, b, dev_x, n);
    if (ok) {
        HANDLE_ERROR(cudaMemcpy(dev_A, A, n * bytes, cudaMemcpyHostToDevice));
        HANDLE_ERROR(cudaMemcpy(dev_x, b, bytes, cudaMemcpyHostToDevice));
        ok = solve_qr(handle, blas, n, n, dev_A, dev_x) && check_solution("QR", A, b, dev_x, n);
    }
    HANDLE_ERROR(cudaFree(dev_A));
    HANDLE_ERROR(cudaFree(dev_x));
    free(A);
    free(b);
    return ok;
}

static bool solve_tall(cusolverDnHandle_t handle, cublasHandle_t blas) {
    size_t bytes = rows * columns * sizeof(double);
    double *A = (double *)malloc(bytes), *b = (double *)malloc(rows * sizeof(double));
    HANDLE_NULL(A && b);
    fill(A, rows * columns);
    fill(b, rows);
    for (size_t j = 0; j < columns; j++) // the sum of the columns, with noise: x is near 1
        add(b, 1, &A[j * rows], rows);
    double *dev_A, *dev_x, *dev_S, *dev_U, *dev_VT;
    HANDLE_ERROR(cudaMalloc((void **)&dev_A, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_x, rows * sizeof(double)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_S, columns * sizeof(double)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_U, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_VT, columns * columns * sizeof(double)));
    HANDLE_ERROR(cudaMemcpy(dev_A, A, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_x, b, rows * sizeof(double), cudaMemcpyHostToDevice));
    bool ok = solve_qr(handle, blas, rows, columns, dev_A, dev_x);
    ok = ok && check_least_squares(A, b, dev_x, rows, columns);
    ok = ok && check_orthonormal("Q", dev_A, rows, columns);

    HANDLE_ERROR(cudaMemcpy(dev_A, A, bytes, cudaMemcpyHostToDevice));
    ok = ok && decompose(handle, dev_A, dev_S, dev_U, dev_VT);
    ok = ok && check_singular_values(A, dev_S, dev_U, dev_VT, rows, columns);
    ok = ok && check_orthonormal("U", dev_U, rows, columns);
    ok = ok && check_orthonormal("V^T", dev_VT, columns, columns);
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
    if (constraints)
        return solve_constrained(handle, blas);
    bool ok = solve_square(handle, blas) && solve_tall(handle, blas);
    HANDLE_CUBLAS(cublasDestroy(blas));
    HANDLE_CUSOLVER(cusolverDnDestroy(handle));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include <float.h>
#include <numeric>
#include <vector>

// The host multiplies everything out again, in double as the device does. Each check prints the error and the
// largest error that rounding allows.

// Random numbers from -1 to 1
static void fill(double *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        values[i] = 2.0 * rnd(1) - 1;
}

static double product(const double *a, const double *b, size_t count) {
    return std::inner_product(a, a + count, b, 0.0);
}
static double length(const double *a, size_t count) {
    return sqrt(product(a, a, count));
}
// NaN counts as larger than every number.
static double larger(double a, double b) {
    return b > a || isnan(b) ? b : a;
}
static double largest(const double *a, size_t count) {
    return std::accumulate(a, a + count, 0.0, [](double most, double b) { return larger(most, fabs(b)); });
}

// y += factor x
static void add(double *y, double factor, const double *x, size_t count) {
    for (size_t i = 0; i < count; i++)
        y[i] += factor * x[i];
}

// r = b - A x
static void residual(double *r, const double *A, const double *b, const double *x, size_t m, size_t n) {
    memcpy(r, b, m * sizeof(double));
    for (size_t j = 0; j < n; j++)
        add(r, -x[j], &A[j * m], m);
}

// How much rounding may change in sums of n products, relative to the sizes of the factors. The constant is
// for small n.
static double eps(size_t n) {
    return (n + 30) * DBL_EPSILON;
}

static bool check_error(const char *name, const char *what, double error, double allowed) {
    printf("%-4s %s: %.2g of %.2g\n", name, what, error, allowed);
    return check_value(name, error / allowed, 0, 1);
}

// Checks devInfo, the status that cuSOLVER writes to device memory: 0 for success, -i if argument i is wrong,
// or i > 0 if the factorization failed at element i.
static bool check_info(const char *call, const int *dev_info) {
    int info = HostArray<int>(dev_info, 1)[0];
    if (info > 0)
        fprintf(stderr, "%s: devInfo is %d: element (%d, %d) of U is zero, so there is no solution\n", call,
                info, info, info);
    else if (info < 0)
        fprintf(stderr, "%s: devInfo is %d: argument %d is wrong\n", call, info, -info);
    return info == 0;
}

// The largest |b - A x| is at most n eps |A| |x| and a little, with the largest sum of a row of A as its
// norm.
static bool check_solution(const char *name, const double *A, const double *b, const double *dev_x,
                           size_t n) {
    HostArray<double> x(dev_x, n), r(n), sums(n, 0);
    residual(r, A, b, x, n, n);
    for (size_t i = 0; i < n * n; i++)
        sums[i % n] += fabs(A[i]);
    return check_error(name, "largest |b - A x|", largest(r, n), eps(n) * largest(sums, n) * largest(x, n));
}

// Checks a least-squares solution by the normal equations: the residual b - A x is orthogonal to the columns
// of A.
static bool check_least_squares(const double *A, const double *b, const double *dev_x, size_t m, size_t n) {
    HostArray<double> x(dev_x, n), r(m);
    residual(r, A, b, x, m, n);
    double most = 0, norm = length(A, m * n);
    for (size_t j = 0; j < n; j++)
        most = larger(most, fabs(product(&A[j * m], r, m)));
    printf("least squares: |b| = %.6g, |b - A x| = %.6g, x is from %.3f to %.3f\n", length(b, m),
           length(r, m), *std::min_element(+x, x + n), *std::max_element(+x, x + n));
    return check_error("QR", "largest |A^T (b - A x)|", most,
                       eps(m) * norm * (norm * length(x, n) + length(b, m)));
}

// Q^T Q is the identity.
static bool check_orthonormal(const char *name, const double *dev_Q, size_t m, size_t n) {
    HostArray<double> Q(dev_Q, m * n);
    double most = 0;
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i <= j; i++)
            most = larger(most, fabs(product(&Q[i * m], &Q[j * m], m) - (i == j)));
    return check_error(name, "largest deviation of its products from those of orthonormal vectors", most,
                       eps(m));
}

// Checks a singular value decomposition: U S V^T = A, and the singular values are non-negative and
// descending.
static bool check_singular_values(const double *A, const double *dev_S, const double *dev_U,
                                  const double *dev_VT, size_t m, size_t n) {
    HostArray<double> S(dev_S, n), U(dev_U, m * n), VT(dev_VT, n * n), column(m);
    double most = 0;
    bool ok = S[n - 1] >= 0;
    for (size_t i = 1; i < n; i++)
        ok = ok && S[i] <= S[i - 1];
    if (!ok)
        fprintf(stderr, "S: the singular values do not descend to 0 or more\n");
    for (size_t j = 0; j < n; j++) {
        memcpy(column, &A[j * m], m * sizeof(double));
        for (size_t l = 0; l < n; l++)
            add(column, -S[l] * VT[j * n + l], &U[l * m], m);
        most = larger(most, largest(column, m));
    }
    printf("singular values: %.6g to %.6g, condition number %.6g\n", S[0], S[n - 1], S[0] / S[n - 1]);
    return ok && check_error("SVD", "largest |A - U S V^T|", most, eps(m) * S[0]);
}

// Least squares with equality constraints: the x with C x = d that makes |b - A x| smallest. There the
// gradient A^T (b - A x) is a combination C^T l of the constraints (Lagrange multipliers). So the system is
// ((A^T A, C^T), (C, 0)) (x, l) = (A^T b, d), which LU solves.
static int solve_constrained(cusolverDnHandle_t handle, cublasHandle_t blas) {
    const size_t m = rows, count = constraints, n = columns + count;
    HostArray<double> A(m * columns), b(m), C(count * columns), d(count);
    fill(A, m * columns);
    fill(b, m);
    fill(C, count * columns);
    fill(d, count);
    std::vector<double> K(n * n), right(n);
    for (size_t j = 0; j < columns; j++) {
        right[j] = product(&A[j * m], b, m);
        for (size_t i = 0; i < count; i++)
            K[j * n + columns + i] = K[(columns + i) * n + j] = C[j * count + i];
    }
    std::copy(+d, d + count, &right[columns]);

    DeviceArray<double> dev_K(K.data(), n * n), dev_x(right.data(), n), dev_A(A, m * columns);
    const double one = 1, zero = 0;
    HANDLE_CUBLAS(cublasDgemm(blas, CUBLAS_OP_T, CUBLAS_OP_N, columns, columns, m, &one, dev_A, m, dev_A, m,
                              &zero, dev_K, n));
    bool ok = solve_lu(handle, n, dev_K, dev_x);
    HANDLE_CUBLAS(cublasDestroy(blas));
    HANDLE_CUSOLVER(cusolverDnDestroy(handle));
    HostArray<double> x(dev_x, n), r(m), off(count);
    residual(r, A, b, x, m, columns);
    residual(off, C, d, x, count, columns);
    double most = 0, norm = length(A, m * columns),
           limit = eps(m) * norm * (norm * length(x, n) + length(b, m));
    for (size_t j = 0; j < columns; j++)
        most = larger(most, fabs(product(&A[j * m], r, m) - product(&C[j * count], x + columns, count)));
    ok = ok && check_error("C x", "largest |d - C x|", largest(off, count), limit) &&
         check_error("KKT", "largest |A^T (b - A x) - C^T l|", most, limit);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

void settings(int argc, char **argv) {
    parse_options(
        argc, argv, "Solves dense systems and a least-squares problem, and computes singular values.", 0,
        {OPTION_SIZE("size", &unknowns, 1, 46340, "unknowns of the square system"),
         OPTION_SIZE("rows", &rows, 1, 140000, "rows of the tall matrix, with a tenth as many columns"),
         OPTION_INT("constraints", &constraints, 1, 14000, "least squares with so many equality constraints"),
         OPTION_FLAG("singular", &singular, "a column of the square matrix is zero: no solution")});
    columns = (rows + 9) / 10;
    if (constraints > (int)columns)
        quit(EXIT_USAGE, "--constraints %d: must be at most %zu, the columns", constraints, columns);
    select_device();
    size_t n = max_of(unknowns, constraints > 0 ? columns + constraints : 0);
    require_memory(max_of(n * n, 3 * rows * columns) * sizeof(double),
                   max_of(2 * n * n, 4 * rows * columns) * sizeof(double));
}

// Task: solve_lu(): A is a column-major matrix of n x n doubles and b has n doubles, both in device memory.
// Get the size of the workspace of getrf from cuSOLVER, and allocate the workspace, n ints for the pivots
// and one int for info. Factor A in place (cusolverDnDgetrf); if check_info("getrf", info) is true, solve
// for b in place (cusolverDnDgetrs). Free all three allocations, and return what check_info() has returned.
// Each call of cuSOLVER is in HANDLE_CUSOLVER().
// solve_qr(): A is a column-major matrix with m rows and n columns. Allocate tau, n doubles, one int for
// info, and a workspace with the largest of the three sizes that geqrf, ormqr and orgqr ask for. Factor A
// (cusolverDnDgeqrf), and call check_info("geqrf", info). Multiply b by the transpose of Q
// (cusolverDnDormqr), solve with the upper triangle of A (cublasDtrsm in HANDLE_CUBLAS()), and replace A by
// the n columns of Q (cusolverDnDorgqr). Free all, and return what check_info() has returned.
// decompose(): The singular value decomposition of A, with `rows` rows and `columns` columns, by
// cusolverDnDgesvd with 'S' for both jobs and a workspace of the size that it asks for. Free all, and
// return what check_info("gesvd", info) returns.
