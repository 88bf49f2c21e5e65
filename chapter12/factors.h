// SPDX-License-Identifier: MIT
// The random matrices of linear_solver, and checks of solutions and factors. The host multiplies everything
// out again, in double as the device does. Each check prints the error and the largest error that rounding
// allows. Matrices are stored by columns.
#ifndef CHAPTER12_FACTORS_H
#define CHAPTER12_FACTORS_H

#include <float.h>
#include <numeric>
#include "../common/book.h"

// ---------------------------------------------------------------------------------------- proof

// Random numbers from -1 to 1
static inline void fill(double *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        values[i] = 2.0 * rnd(1) - 1;
}

static inline double *to_host(const double *device, size_t count) {
    double *values = host_array<double>(count);
    HANDLE_ERROR(cudaMemcpy(values, device, count * sizeof(double), cudaMemcpyDeviceToHost));
    return values;
}

static inline double product(const double *a, const double *b, size_t count) {
    return std::inner_product(a, a + count, b, 0.0);
}
static inline double length(const double *a, size_t count) {
    return sqrt(product(a, a, count));
}
// NaN counts as larger than every number.
static inline double larger(double a, double b) {
    return b > a || isnan(b) ? b : a;
}
static inline double largest(const double *a, size_t count) {
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = larger(most, fabs(a[i]));
    return most;
}

// y += factor x
static inline void add(double *y, double factor, const double *x, size_t count) {
    for (size_t i = 0; i < count; i++)
        y[i] += factor * x[i];
}

// b - A x
static inline double *residual(const double *A, const double *b, const double *x, size_t m, size_t n) {
    double *r = host_array<double>(m);
    memcpy(r, b, m * sizeof(double));
    for (size_t j = 0; j < n; j++)
        add(r, -x[j], &A[j * m], m);
    return r;
}

// How much rounding may change in sums of n products, relative to the sizes of the factors. The constant is
// for small n.
static inline double eps(size_t n) {
    return (n + 30) * DBL_EPSILON;
}

static inline bool check_error(const char *name, const char *what, double error, double allowed) {
    printf("%-4s %s: %.2g of %.2g\n", name, what, error, allowed);
    return check_value(name, error / allowed, 0, 1);
}

// Checks devInfo, the status that cuSOLVER writes to device memory: 0 for success, -i if argument i is wrong,
// or i > 0 if the factorization failed at element i.
static inline bool check_info(const char *call, const int *dev_info) {
    int info;
    HANDLE_ERROR(cudaMemcpy(&info, dev_info, sizeof(int), cudaMemcpyDeviceToHost));
    if (info > 0)
        fprintf(stderr, "%s: devInfo is %d: element (%d, %d) of U is zero, so there is no solution\n", call,
                info, info, info);
    else if (info < 0)
        fprintf(stderr, "%s: devInfo is %d: argument %d is wrong\n", call, info, -info);
    return info == 0;
}

// The largest |b - A x| is at most n eps |A| |x| and a little, with the largest sum of a row of A as its
// norm.
static inline bool check_solution(const char *name, const double *A, const double *b, const double *dev_x,
                                  size_t n) {
    double *x = to_host(dev_x, n), *r = residual(A, b, x, n, n), *sums = host_array<double>(n);
    for (size_t i = 0; i < n; i++)
        sums[i] = 0;
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < n; i++)
            sums[i] += fabs(A[j * n + i]);
    bool ok =
        check_error(name, "largest |b - A x|", largest(r, n), eps(n) * largest(sums, n) * largest(x, n));
    free(x);
    free(r);
    free(sums);
    return ok;
}

// Checks a least-squares solution by the normal equations: the residual b - A x is orthogonal to the columns
// of A.
static inline bool check_least_squares(const double *A, const double *b, const double *dev_x, size_t m,
                                       size_t n) {
    double *x = to_host(dev_x, n), *r = residual(A, b, x, m, n), most = 0, norm = length(A, m * n);
    for (size_t j = 0; j < n; j++)
        most = larger(most, fabs(product(&A[j * m], r, m)));
    printf("least squares: |b| = %.6g, |b - A x| = %.6g, x is from %.3f to %.3f\n", length(b, m),
           length(r, m), *std::min_element(x, x + n), *std::max_element(x, x + n));
    bool ok = check_error("QR", "largest |A^T (b - A x)|", most,
                          eps(m) * norm * (norm * length(x, n) + length(b, m)));
    free(x);
    free(r);
    return ok;
}

// Q^T Q is the identity.
static inline bool check_orthonormal(const char *name, const double *dev_Q, size_t m, size_t n) {
    double *Q = to_host(dev_Q, m * n), most = 0;
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i <= j; i++)
            most = larger(most, fabs(product(&Q[i * m], &Q[j * m], m) - (i == j)));
    free(Q);
    return check_error(name, "largest deviation of its products from those of orthonormal vectors", most,
                       eps(m));
}

// Checks a singular value decomposition: U S V^T = A, and the singular values are non-negative and
// descending.
static inline bool check_singular_values(const double *A, const double *dev_S, const double *dev_U,
                                         const double *dev_VT, size_t m, size_t n) {
    double *S = to_host(dev_S, n), *U = to_host(dev_U, m * n), *VT = to_host(dev_VT, n * n);
    double *column = host_array<double>(m), most = 0;
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
    ok = ok && check_error("SVD", "largest |A - U S V^T|", most, eps(m) * S[0]);
    free(S);
    free(U);
    free(VT);
    free(column);
    return ok;
}

#endif
