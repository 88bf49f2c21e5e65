// SPDX-License-Identifier: MIT
// cuSOLVER for dense matrices by LAPACK. Matrices are stored by columns. The functions check sizes and
// leading dimensions, and do their work in the order of the stream; devInfo, in device memory, says what
// LAPACK reports. A workspace must be as large as _bufferSize says, and of those of a QR factorization each
// may be the largest.
#pragma once
#include "cublas_v2.h"
#include "cusolver_common.h"
#include "cuda_cpu/letters_off.h"
#include <limits.h>

struct cusolverDnContext {
    cudaStream_t stream = nullptr;
};
typedef cusolverDnContext *cusolverDnHandle_t;

namespace cuda_cpu::lapack {

// Runs work(info), which sets LAPACK's info, and stores that in device memory.
template <class Work>
cusolverStatus_t run(const char *call, cusolverDnHandle_t handle, int *dev_info, Work work) {
    const auto all = [=] {
        int info = 0;
        work(info);
        if (dev_info)
            *dev_info = info;
    };
    return library_call(call, handle->stream, all) == cudaSuccess ? CUSOLVER_STATUS_SUCCESS
                                                                  : CUSOLVER_STATUS_EXECUTION_FAILED;
}

// Overwrites the program's workspace. The runtime refuses it if the memory is smaller.
template <class T> bool overwrite(T *work, int least, cudaStream_t stream) {
    return cudaMemsetAsync(work, 0xff, std::max(1, least) * sizeof(T), stream) == cudaSuccess;
}

using blas::fits, blas::rows_of;
CUDA_CPU_RETURN(char, uplo, (cublasFillMode_t fill), fill == CUBLAS_FILL_MODE_LOWER ? 'L' : 'U')
CUDA_CPU_RETURN(char, trans, (cublasOperation_t op), op == CUBLAS_OP_N ? 'N' : op == CUBLAS_OP_T ? 'T' : 'C')
CUDA_CPU_RETURN(char, side, (cublasSideMode_t side), side == CUBLAS_SIDE_LEFT ? 'L' : 'R')
CUDA_CPU_RETURN(char, job, (cusolverEigMode_t mode), mode == CUSOLVER_EIG_MODE_VECTOR ? 'V' : 'N')

} // namespace cuda_cpu::lapack

#define CUDA_CPU_LIBRARY      lapack
#define CUDA_CPU_RESULT(name) CUSOLVER_STATUS_##name

#define CUDA_CPU_FUNCTION(name, ...)                                                                         \
    static inline cusolverStatus_t cusolverDn##name(cusolverDnHandle_t handle, __VA_ARGS__)
// The function that says how large a workspace is; the size is never 0, so that a program can allocate it.
#define CUDA_CPU_SIZE(name, condition, n, ...)                                                               \
    CUDA_CPU_FUNCTION(name##_bufferSize, __VA_ARGS__, int *size) {                                           \
        CUDA_CPU_VALID((condition) && size);                                                                 \
        *size = std::max(1, n);                                                                              \
        return CUSOLVER_STATUS_SUCCESS;                                                                      \
    }
// Whether the program's workspace has `least` numbers, by its size and by its memory
#define CUDA_CPU_HAS(least) (lwork >= std::max(1, least) && cpu::overwrite(work, least, handle->stream))
// Work that needs memory: `size` numbers at `work`
#define CUDA_CPU_WORKSPACE(T, ...) cpu::with_workspace<T>([&](T *work, int size) { __VA_ARGS__; })
// The body of a function: what its arguments must satisfy, and the work, which sets `info`
#define CUDA_CPU_WORK(condition, ...)                                                                        \
    CUDA_CPU_VALID(condition);                                                                               \
    return cpu::run(__func__, handle, dev_info, [=](int &info) { __VA_ARGS__; })

CUDA_CPU_HANDLES(CUDA_CPU_DEFINE, cusolverDn, cusolverDnContext)
CUDA_CPU_SETTING(CUDA_CPU_FUNCTION, Stream, cudaStream_t, stream)

// ---- all types ----

// Of a positive definite matrix: the factor (potrf), or the inverse from the factor (potri), in its place
#define CUDA_CPU_CHOLESKY(S, s, T, potrf)                                                                    \
    CUDA_CPU_SIZE(S##potrf, cpu::fits(n, lda), n, cublasFillMode_t, int n, T *, int lda)                     \
    CUDA_CPU_FUNCTION(S##potrf, cublasFillMode_t fill, int n, T *A, int lda, T *work, int lwork,             \
                      int *dev_info) {                                                                       \
        CUDA_CPU_WORK(cpu::fits(n, lda) && CUDA_CPU_HAS(n),                                                  \
                      cpu::cuda_cpu_##s##potrf(cpu::uplo(fill), n, A, lda, info, 1));                        \
    }
// OR is or for real numbers (orthogonal) and un for complex ones (unitary).
#define CUDA_CPU_SOLVER(S, s, T, OR)                                                                         \
    CUDA_CPU_CHOLESKY(S, s, T, potrf)                                                                        \
    CUDA_CPU_CHOLESKY(S, s, T, potri)                                                                        \
    /* A and devInfo are arrays in device memory */                                                          \
    CUDA_CPU_FUNCTION(S##potrfBatched, cublasFillMode_t fill, int n, T *A[], int lda, int *dev_info,         \
                      int count) {                                                                           \
        CUDA_CPU_VALID(cpu::fits(n, lda) && count >= 0);                                                     \
        return cpu::run(__func__, handle, nullptr, [=](int &) {                                              \
            for (int i = 0; i < count; i++)                                                                  \
                cpu::cuda_cpu_##s##potrf(cpu::uplo(fill), n, A[i], lda, dev_info[i], 1);                     \
        });                                                                                                  \
    }                                                                                                        \
    CUDA_CPU_FUNCTION(S##potrs, cublasFillMode_t fill, int n, int columns, const T *A, int lda, T *B,        \
                      int ldb, int *dev_info) {                                                              \
        CUDA_CPU_WORK(columns >= 0 && cpu::fits(n, lda, n, ldb),                                             \
                      cpu::cuda_cpu_##s##potrs(cpu::uplo(fill), n, columns, A, lda, B, ldb, info, 1));       \
    }                                                                                                        \
    CUDA_CPU_SIZE(S##getrf, n >= 0 && cpu::fits(m, lda), n, int m, int n, T *, int lda)                      \
    CUDA_CPU_FUNCTION(S##getrf, int m, int n, T *A, int lda, T *work, int *pivots, int *dev_info) {          \
        const int lwork = INT_MAX;                                                                           \
        CUDA_CPU_WORK(n >= 0 && cpu::fits(m, lda) && CUDA_CPU_HAS(n),                                        \
                      info = cpu::factorize(m, n, A, lda, pivots));                                          \
    }                                                                                                        \
    CUDA_CPU_FUNCTION(S##getrs, cublasOperation_t op, int n, int columns, const T *A, int lda,               \
                      const int *pivots, T *B, int ldb, int *dev_info) {                                     \
        CUDA_CPU_WORK(columns >= 0 && cpu::fits(n, lda, n, ldb),                                             \
                      info = cpu::substitute(cpu::trans(op), n, columns, A, lda, pivots, B, ldb));           \
    }                                                                                                        \
    CUDA_CPU_SIZE(S##geqrf, n >= 0 && cpu::fits(m, lda), n, int m, int n, T *, int lda)                      \
    CUDA_CPU_FUNCTION(S##geqrf, int m, int n, T *A, int lda, T *tau, T *work, int lwork, int *dev_info) {    \
        CUDA_CPU_WORK(n >= 0 && cpu::fits(m, lda) && CUDA_CPU_HAS(n),                                        \
                      CUDA_CPU_WORKSPACE(T, cpu::cuda_cpu_##s##geqrf(m, n, A, lda, tau, work, size, info))); \
    }                                                                                                        \
    CUDA_CPU_SIZE(S##OR##mqr,                                                                                \
                  n >= 0 && k >= 0 && k <= cpu::rows_of(side, m, n) &&                                       \
                      cpu::fits(cpu::rows_of(side, m, n), lda, m, ldc),                                      \
                  cpu::rows_of(side, m, n), cublasSideMode_t side, cublasOperation_t, int m, int n, int k,   \
                  const T *, int lda, const T *, const T *, int ldc)                                         \
    CUDA_CPU_FUNCTION(S##OR##mqr, cublasSideMode_t side, cublasOperation_t op, int m, int n, int k,          \
                      const T *A, int lda, const T *tau, T *C, int ldc, T *work, int lwork, int *dev_info) { \
        CUDA_CPU_WORK(                                                                                       \
            n >= 0 && k >= 0 && k <= cpu::rows_of(side, m, n) &&                                             \
                cpu::fits(cpu::rows_of(side, m, n), lda, m, ldc) && CUDA_CPU_HAS(cpu::rows_of(side, m, n)),  \
            CUDA_CPU_WORKSPACE(T, cpu::cuda_cpu_##s##OR##mqr(cpu::side(side), cpu::trans(op), m, n, k, A,    \
                                                             lda, tau, C, ldc, work, size, info, 1, 1)));    \
    }                                                                                                        \
    CUDA_CPU_SIZE(S##OR##gqr, k >= 0 && k <= n && n <= m && cpu::fits(m, lda), n + k, int m, int n, int k,   \
                  const T *, int lda, const T *)                                                             \
    CUDA_CPU_FUNCTION(S##OR##gqr, int m, int n, int k, T *A, int lda, const T *tau, T *work, int lwork,      \
                      int *dev_info) {                                                                       \
        CUDA_CPU_WORK(                                                                                       \
            k >= 0 && k <= n && n <= m && cpu::fits(m, lda) && CUDA_CPU_HAS(n + k),                          \
            CUDA_CPU_WORKSPACE(T, cpu::cuda_cpu_##s##OR##gqr(m, n, k, A, lda, tau, work, size, info)));      \
    }
CUDA_CPU_SOLVER(S, s, float, or)
CUDA_CPU_SOLVER(D, d, double, or)
CUDA_CPU_SOLVER(C, c, cuComplex, un)
CUDA_CPU_SOLVER(Z, z, cuDoubleComplex, un)

// ---- singular values ----

// Singular value decomposition (gesvd). As in cuSOLVER, the matrix has at least as many rows as columns, and
// the result is V transposed. For complex numbers LAPACK needs a workspace of 5 n real numbers as well.
#define CUDA_CPU_SVD(S, s, T, R, ...)                                                                        \
    CUDA_CPU_SIZE(S##gesvd, n >= 0 && m >= n, n, int m, int n)                                               \
    CUDA_CPU_FUNCTION(S##gesvd, signed char jobu, signed char jobvt, int m, int n, T *A, int lda, R *values, \
                      T *U, int ldu, T *VT, int ldvt, T *work, int lwork, R *, int *dev_info) {              \
        CUDA_CPU_WORK(n >= 0 && m >= n && cpu::fits(m, lda) &&                                               \
                          ((jobu != 'A' && jobu != 'S') || cpu::fits(m, ldu)) &&                             \
                          ((jobvt != 'A' && jobvt != 'S') || cpu::fits(n, ldvt)) && CUDA_CPU_HAS(n),         \
                      std::vector<R> real(5 * n + 1);                                                        \
                      CUDA_CPU_WORKSPACE(T, cpu::cuda_cpu_##s##gesvd((char)jobu, (char)jobvt, m, n, A, lda,  \
                                                                     values, U, ldu, VT, ldvt, work, size,   \
                                                                     __VA_ARGS__ info, 1, 1)));              \
    }
CUDA_CPU_SVD(S, s, float, float, )
CUDA_CPU_SVD(D, d, double, double, )
CUDA_CPU_SVD(C, c, cuComplex, float, real.data(), )
CUDA_CPU_SVD(Z, z, cuDoubleComplex, double, real.data(), )

// ---- eigenvalues of symmetric matrices ----

// Ascending eigenvalues; eigenvectors replace the matrix. LAPACK's first run says how much memory is needed.
#define CUDA_CPU_EIGEN(S, s, T)                                                                              \
    CUDA_CPU_SIZE(S##sygvd, cpu::fits(n, lda, n, ldb), n, cusolverEigType_t, cusolverEigMode_t,              \
                  cublasFillMode_t, int n, const T *, int lda, const T *, int ldb, const T *)                \
    CUDA_CPU_FUNCTION(S##sygvd, cusolverEigType_t type, cusolverEigMode_t mode, cublasFillMode_t fill,       \
                      int n, T *A, int lda, T *B, int ldb, T *values, T *work, int lwork, int *dev_info) {   \
        CUDA_CPU_WORK(                                                                                       \
            cpu::fits(n, lda, n, ldb) && CUDA_CPU_HAS(n), std::vector<int> whole(5 * n + 3);                 \
            CUDA_CPU_WORKSPACE(T, cpu::cuda_cpu_##s##sygvd((int)type, cpu::job(mode), cpu::uplo(fill), n, A, \
                                                           lda, B, ldb, values, work, size, whole.data(),    \
                                                           size < 0 ? -1 : (int)whole.size(), info, 1, 1))); \
    }
CUDA_CPU_EIGEN(S, s, float)
CUDA_CPU_EIGEN(D, d, double)
// For complex numbers LAPACK needs a workspace of real numbers as well.
#define CUDA_CPU_EVD(S, s, T, R, syevd, reals, ...)                                                          \
    CUDA_CPU_SIZE(S##syevd, cpu::fits(n, lda), n, cusolverEigMode_t, cublasFillMode_t, int n, const T *,     \
                  int lda, const R *)                                                                        \
    CUDA_CPU_FUNCTION(S##syevd, cusolverEigMode_t mode, cublasFillMode_t fill, int n, T *A, int lda,         \
                      R *values, T *work, int lwork, int *dev_info) {                                        \
        CUDA_CPU_WORK(cpu::fits(n, lda) && CUDA_CPU_HAS(n), std::vector<int> whole(5 * n + 3);               \
                      std::vector<R> real(reals); CUDA_CPU_WORKSPACE(                                        \
                          T, cpu::cuda_cpu_##s##syevd(cpu::job(mode), cpu::uplo(fill), n, A, lda, values,    \
                                                      work, size, __VA_ARGS__ whole.data(),                  \
                                                      size < 0 ? -1 : (int)whole.size(), info, 1, 1)));      \
    }
#define CUDA_CPU_REALS real.data(), size < 0 ? -1 : (int)real.size(),
CUDA_CPU_EVD(S, s, float, float, syevd, 0, )
CUDA_CPU_EVD(D, d, double, double, syevd, 0, )
CUDA_CPU_EVD(C, c, cuComplex, float, heevd, 2 * (size_t)n * n + 5 * n + 1, CUDA_CPU_REALS)
CUDA_CPU_EVD(Z, z, cuDoubleComplex, double, heevd, 2 * (size_t)n * n + 5 * n + 1, CUDA_CPU_REALS)
#undef CUDA_CPU_LIBRARY
#undef CUDA_CPU_RESULT
#undef CUDA_CPU_FUNCTION
#include "cuda_cpu/letters_on.h"
