// SPDX-License-Identifier: MIT
// Needs: cusolver
// cuSOLVER: the factors and solutions are multiplied out in double on the host.
#include <cusolverDn.h>
#include <algorithm>
#include "linear.h"

#define TYPED_WITH_WORKSPACE(name) TYPED(cusolverDn, name) TYPED(cusolverDn, name##_bufferSize)
TYPED_WITH_WORKSPACE(potrf)
TYPED(cusolverDn, potrs)
TYPED_WITH_WORKSPACE(potri)
TYPED_WITH_WORKSPACE(getrf)
TYPED(cusolverDn, getrs)
TYPED_WITH_WORKSPACE(geqrf)
TYPED_WITH_WORKSPACE(ormqr)
TYPED_WITH_WORKSPACE(orgqr)
TYPED_WITH_WORKSPACE(gesvd)
TYPED_WITH_WORKSPACE(syevd)
TYPED_WITH_WORKSPACE(sygvd)

typedef HandleOf<cusolverDnHandle_t, cusolverDnCreate, cusolverDnDestroy> Handle;

// The workspace of a call, and its devInfo
template <class T> struct Work : Array<T> {
    int size;
    Array<int> info{std::vector<int>{-99}};
    explicit Work(int size) : Array<T>(size > 0 ? size : 1), size(size) {}
    int result() const { return info.back()[0]; }
};
// The size of a function's workspace
#define SIZE(function, ...) STORED(int, function##_bufferSize(__VA_ARGS__, &it))
// A call that succeeds and says so in the devInfo of `work`
#define DONE(call) OK(call), EXPECT(work.result() == 0)

// Element (row, column) of op(A) X, of a matrix A as it was on the host and of columns that a call has
// computed
template <class T>
static double times(const Matrix<T> &A, const std::vector<T> &X, int ld, int row, int column,
                    bool transposed = false) {
    return sum(transposed ? A.rows : A.columns,
               [&](int j) { return A.at(row, j, transposed) * X[j + (size_t)column * ld]; });
}
// Whether the solutions of op(A) X = B are in the place of B.
template <class T> static bool solved(const Matrix<T> &A, const Matrix<T> &B, bool transposed = false) {
    const std::vector<T> X = B.back();
    for (int c = 0; c < B.columns; c++)
        for (int i = 0; i < A.rows; i++)
            if (!near<T>(times(A, X, B.ld, i, c, transposed), B.at(i, c), 20 * A.rows))
                return false;
    return true;
}
template <class T> static bool orthonormal(const Matrix<T> &Q) {
    const std::vector<T> q = Q.back();
    for (int j = 0; j < Q.columns; j++)
        for (int i = 0; i <= j; i++) {
            const double product =
                sum(Q.rows, [&](int l) { return (double)q[l + (size_t)i * Q.ld] * q[l + (size_t)j * Q.ld]; });
            if (!near<T>(product, i == j, 20 * Q.rows))
                return false;
        }
    return true;
}
// Makes a matrix symmetric and adds a value to its diagonal.
template <class T> static void make_symmetric(Matrix<T> &A, T value) {
    for (int j = 0; j < A.rows; j++) {
        for (int i = 0; i < j; i++)
            A.host[j + (size_t)i * A.ld] = A.host[i + (size_t)j * A.ld];
        A.host[j + (size_t)j * A.ld] += value;
    }
    A.to_device();
}

TEST_OF(lu, float, double) {
    const Handle h;
    for (int round = 0; round < 8; round++) {
        const int n = pick(1, 40), columns = pick(1, 4);
        const bool pivots = round % 2, transposed = pick(0, 1);
        Matrix<T> A(n, n, pick(0, 2)), B(n, columns, pick(0, 2));
        for (int i = 0; i < n; i++)
            A.host[i + (size_t)i * A.ld] += n; // well conditioned, also without pivots
        if (pivots && n > 1)                   // rows that must be exchanged
            for (int j = 0; j < n; j++)
                std::swap(A.host[(size_t)j * A.ld], A.host[n - 1 + (size_t)j * A.ld]);
        A.to_device();
        const Work<T> work(SIZE(getrf, T(), h, n, n, A, A.ld));
        const Array<int> exchanges(n);
        int *const list = pivots ? exchanges.data : NULL;
        DONE(getrf(T(), h, n, n, A, A.ld, work, list, work.info));
        DONE(getrs(T(), h, transposed ? CUBLAS_OP_T : CUBLAS_OP_N, n, columns, A, A.ld, list, B, B.ld,
                   work.info));
        EXPECT(!pivots || n < 2 || exchanges.back()[0] == n);
        EXPECT(solved(A, B, transposed));
        std::fill_n(&A.host[(n - 1) * (size_t)A.ld], n, 0); // the last column: a zero pivot
        A.to_device();
        OK(getrf(T(), h, n, n, A, A.ld, work, list, work.info));
        EXPECT(work.result() == n);
    }
}
TEST_OF(cholesky, float, double) {
    const Handle h;
    for (int round = 0; round < 6; round++) {
        const int n = pick(1, 40), columns = pick(1, 4);
        const cublasFillMode_t fill = (cublasFillMode_t)(round % 2);
        Matrix<T> A(n, n, pick(0, 2)), B(n, columns, pick(0, 2));
        make_symmetric(A, (T)(n + 1));
        std::vector<T> half = A.host; // the other triangle must not be read
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++)
                if (fill == CUBLAS_FILL_MODE_LOWER ? i < j : i > j)
                    half[i + (size_t)j * A.ld] = NAN;
        OK(cudaMemcpy(A, half.data(), half.size() * sizeof(T), cudaMemcpyHostToDevice));
        const Work<T> work(SIZE(potrf, T(), h, fill, n, A, A.ld));
        DONE(potrf(T(), h, fill, n, A, A.ld, work, work.size, work.info));
        DONE(potrs(T(), h, fill, n, columns, A, A.ld, B, B.ld, work.info));
        EXPECT(solved(A, B));
        const Work<T> more(SIZE(potri, T(), h, fill, n, A, A.ld));
        OK(potri(T(), h, fill, n, A, A.ld, more, more.size, more.info));
        const std::vector<T> triangle = A.back();
        const auto inverse = [&](int l, int j) {
            const bool there = fill == CUBLAS_FILL_MODE_LOWER ? l >= j : l <= j;
            return there ? triangle[l + j * A.ld] : triangle[j + l * A.ld];
        };
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                const double product = sum(n, [&](int l) { return A.at(i, l) * inverse(l, j); });
                EXPECT(near<T>(product, i == j, 20));
            }
        make_symmetric(A, (T)(-4 * n - 8)); // not positive definite, from the first element on
        OK(potrf(T(), h, fill, n, A, A.ld, work, work.size, work.info));
        EXPECT(work.result() == 1);
    }
}
// Q R = A by applying Q to R, and Q with orthonormal columns
TEST_OF(qr, float, double) {
    const Handle h;
    for (int round = 0; round < 6; round++) {
        const int n = pick(1, 20), m = n + pick(0, 20);
        const Matrix<T> A(m, n, pick(0, 2));
        const Array<T> tau(n);
        Matrix<T> R(m, n, 1);
        const int size =
            std::max({SIZE(geqrf, T(), h, m, n, A, A.ld), SIZE(orgqr, T(), h, m, n, n, A, A.ld, tau),
                      SIZE(ormqr, T(), h, CUBLAS_SIDE_LEFT, CUBLAS_OP_N, m, n, n, A, A.ld, tau, R, R.ld)});
        const Work<T> work(size);
        DONE(geqrf(T(), h, m, n, A, A.ld, tau, work, size, work.info));
        const std::vector<T> factors = A.back();
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++)
                R.host[i + (size_t)j * R.ld] = i <= j ? factors[i + (size_t)j * A.ld] : 0;
        R.to_device();
        DONE(ormqr(T(), h, CUBLAS_SIDE_LEFT, CUBLAS_OP_N, m, n, n, A, A.ld, tau, R, R.ld, work, size,
                   work.info));
        DONE(orgqr(T(), h, m, n, n, A, A.ld, tau, work, size, work.info));
        EXPECT(R.holds(10 * m, [&](int i, int j) { return A.at(i, j); }));
        EXPECT(orthonormal(A)); // Q is in its place
    }
}
// U S V^T = A, singular values that descend, orthonormal columns of U and V
TEST_OF(svd, float, double) {
    const Handle h;
    for (int round = 0; round < 6; round++) {
        const int n = pick(1, 20), m = n + pick(0, 20);
        const signed char job = round % 2 ? 'A' : 'S';
        const Matrix<T> A(m, n, pick(0, 2)), U(m, job == 'A' ? m : n, 1), VT(n, n, 2);
        const Array<T> S(n), rest(n);
        const Work<T> work(SIZE(gesvd, T(), h, m, n));
        DONE(gesvd(T(), h, job, job, m, n, A, A.ld, S, U, U.ld, VT, VT.ld, work, work.size, rest, work.info));
        const std::vector<T> s = S.back(), u = U.back(), vt = VT.back();
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++) {
                const double element = sum(n, [&](int l) {
                    return (double)u[i + (size_t)l * U.ld] * s[l] * vt[l + (size_t)j * VT.ld];
                });
                EXPECT(near<T>(element, A.at(i, j), 20 * m));
            }
        EXPECT(orthonormal(U));
        for (int i = 0; i < n; i++)
            EXPECT(s[i] >= 0 && (i == 0 || s[i] <= s[i - 1]));
    }
}
// A v = lambda B v, where B is the identity for syevd; eigenvalues that ascend
TEST_OF(eigenvalues, float, double) {
    const Handle h;
    for (int round = 0; round < 8; round++) {
        const int n = pick(1, 30);
        const bool general = round % 2;
        const cublasFillMode_t fill = (cublasFillMode_t)(round >> 1 & 1);
        Matrix<T> A(n, n, pick(0, 2)), B(n, n, pick(0, 2));
        make_symmetric(A, T(0)), make_symmetric(B, (T)(n + 1));
        const Array<T> W(n);
        const int size = general ? SIZE(sygvd, T(), h, CUSOLVER_EIG_TYPE_1, CUSOLVER_EIG_MODE_VECTOR, fill, n,
                                        A, A.ld, B, B.ld, W)
                                 : SIZE(syevd, T(), h, CUSOLVER_EIG_MODE_VECTOR, fill, n, A, A.ld, W);
        const Work<T> work(size);
        if (general)
            OK(sygvd(T(), h, CUSOLVER_EIG_TYPE_1, CUSOLVER_EIG_MODE_VECTOR, fill, n, A, A.ld, B, B.ld, W,
                     work, size, work.info));
        else
            DONE(syevd(T(), h, CUSOLVER_EIG_MODE_VECTOR, fill, n, A, A.ld, W, work, size, work.info));
        const std::vector<T> values = W.back(), vectors = A.back();
        for (int k = 0; k < n; k++) {
            double length = 0;
            for (int i = 0; i < n; i++) {
                const double v = vectors[i + (size_t)k * A.ld],
                             right = general ? times(B, vectors, A.ld, i, k) : v;
                EXPECT(near<T>(times(A, vectors, A.ld, i, k), values[k] * right, 40 * n));
                length += v * right;
            }
            EXPECT(near<T>(length, 1, 40 * n));
            EXPECT(k == 0 || values[k] >= values[k - 1]);
        }
    }
}
// A complex Hermitian matrix [[2, i], [-i, 2]] has the eigenvalues 1 and 3, and these are its singular
// values.
TEST(complex_numbers) {
    const Handle h;
    const std::vector<cuDoubleComplex> matrix = {{2, 0}, {0, -1}, {0, 1}, {2, 0}};
    const Array<cuDoubleComplex> A(matrix), again(matrix), lu(matrix), U(4), VT(4),
        b(std::vector<cuDoubleComplex>{{2, 1}, {2, -1}}); // A (1, 1)
    const Array<double> W(2), S(2), rest(10);
    const int size =
        std::max({SIZE(cusolverDnZheevd, h, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, 2, A, 2, W),
                  SIZE(cusolverDnZgesvd, h, 2, 2), SIZE(cusolverDnZgetrf, h, 2, 2, lu, 2)});
    const Work<cuDoubleComplex> work(size);
    const Array<int> pivots(2);
    DONE(cusolverDnZheevd(h, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, 2, A, 2, W, work, size,
                          work.info));
    DONE(cusolverDnZgesvd(h, 'A', 'A', 2, 2, again, 2, S, U, 2, VT, 2, work, size, rest, work.info));
    OK(cusolverDnZgetrf(h, 2, 2, lu, 2, work, pivots, work.info));
    DONE(cusolverDnZgetrs(h, CUBLAS_OP_N, 2, 1, lu, 2, pivots, b, 2, work.info));
    EXPECT(W.holds(10, [](int i) { return 1 + 2 * i; }) && S.holds(10, [](int i) { return 3 - 2 * i; }));
    for (const cuDoubleComplex &x : b.back())
        EXPECT(near<double>(x.x, 1, 10) && near<double>(x.y, 0, 10));
}

TEST(batches_of_cholesky) {
    const Handle h;
    const Array<float> A(std::vector<float>{4, 2, 2, 5, 9, 0, 0, -1});
    const Array<float *> list(std::vector<float *>{A, A + 4});
    const Array<int> info(2);
    OK(cusolverDnSpotrfBatched(h, CUBLAS_FILL_MODE_LOWER, 2, list, 2, info, 2));
    const std::vector<float> L = A.back();
    EXPECT(L[0] == 2 && L[1] == 1 && L[3] == 2 && L[4] == 3);
    EXPECT(info.back() == (std::vector<int>{0, 2})); // the second matrix is not positive definite
}

// This is a function of cuBLAS, but needs LAPACK here.
TEST(batches_of_lu) {
    const auto h = STORED(cublasHandle_t, cublasCreate_v2(&it)); // the same function
    const Handle solver;
    for (int round = 0; round < 4; round++) {
        const int n = pick(1, 12), count = pick(1, 5), columns = 2;
        const bool pivots = round % 2;
        const cublasOperation_t op = (cublasOperation_t)(round >> 1);
        Matrix<double> A(n, n * count), B(n, columns * count);
        for (int i = 0; i < n * count; i++) // well conditioned, also without pivots
            A.host[i % n + (size_t)i * n] += n + 1;
        A.to_device();
        const Array<double *> list_a(made(count, [&](int i) { return A + i * n * n; }));
        const Array<int> exchanges(n * count), info(std::vector<int>(count, -9));
        int *const list = pivots ? exchanges.data : NULL;
        OK(cublasDgetrfBatched(h, n, list_a, n, list, info, count));
        EXPECT(info.back() == std::vector<int>(count));
        for (int i = 0; i < count; i++)
            OK(cusolverDnDgetrs(solver, op, n, columns, A + i * n * n, n, list ? list + i * n : NULL,
                                B + i * n * columns, n, info));
        const std::vector<double> x = B.back();
        for (int which = 0; which < count; which++)
            for (int i = 0; i < n; i++) {
                const auto element = [&](int i, int j) { return A.at(i, j + which * n); };
                for (int c = which * columns; c < (which + 1) * columns; c++) {
                    const double got =
                        sum(n, [&](int j) { return (op ? element(j, i) : element(i, j)) * x[j + c * n]; });
                    EXPECT(near<double>(got, B.at(i, c), 100));
                }
            }
    }
}

#ifdef __CU2CPP__ // cuSOLVER 13 does not check these
TEST(bad_arguments) {
    const Handle h;
    Matrix<float> A(4, 4);
    int size;
    EXPECT(cusolverDnSgetrf_bufferSize(h, 4, 4, A, 3, &size) == CUSOLVER_STATUS_INVALID_VALUE);
    EXPECT(cusolverDnSgeqrf_bufferSize(h, 4, -1, A, 4, &size) == CUSOLVER_STATUS_INVALID_VALUE);
    EXPECT(cusolverDnSetStream(NULL, 0) == CUSOLVER_STATUS_NOT_INITIALIZED);
}

// A workspace that is too small, by its size or by its memory, and the size that another function needs
TEST(small_workspaces) {
    const Handle h;
    const int m = 9, n = 4;
    const Array<int> pivots(n);
    const Array<double> tau(n), values(n), x(m);
    Matrix<double> A(m, n), U(m, n), VT(n, n);
    const int of_lu = SIZE(cusolverDnDgetrf, h, n, n, A, m), of_qr = SIZE(cusolverDnDgeqrf, h, m, n, A, m),
              of_product = SIZE(cusolverDnDormqr, h, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, m, 1, n, A, m, tau, x, m),
              of_q = SIZE(cusolverDnDorgqr, h, m, n, n, A, m, tau);
    const Work<double> work(64), small(1);
    int *info = work.info;
    EXPECT(of_qr < of_product && of_qr < of_q && of_lu > 1);
    EXPECT(cusolverDnDgetrf(h, n, n, A, m, small, pivots, info) == CUSOLVER_STATUS_INVALID_VALUE);
    for (int right = 0; right < 2; right++) {
        const auto expected = right ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE;
        EXPECT(cusolverDnDgeqrf(h, m, n, A, m, tau, work, of_qr - !right, info) == expected);
        EXPECT(cusolverDnDgeqrf(h, m, n, A, m, tau, right ? work : small, of_qr, info) == expected);
        EXPECT(cusolverDnDormqr(h, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, m, 1, n, A, m, tau, x, m, work,
                                right ? of_product : of_qr, info) == expected);
        EXPECT(cusolverDnDorgqr(h, m, n, n, A, m, tau, work, right ? of_q : of_qr, info) == expected);
        EXPECT(cusolverDnDgesvd(h, 'S', 'S', m, n, A, m, values, U, m, VT, n, work, right ? n : 1, NULL,
                                info) == expected);
    }
}
#endif
