// SPDX-License-Identifier: MIT
/*
 * cuSOLVER for dense matrices by LAPACK, which OpenBLAS contains: link with -lopenblas (cucc does so for
 * -lcusolver). Matrices are stored by columns. The functions check sizes and leading dimensions, and do their
 * work in the order of the stream; devInfo, in device memory, says what LAPACK reports.
 *
 * Has potrf, potrs, potri, getrf, getrs, geqrf, ormqr, orgqr, sytrf, gesvd, syevd and sygvd for float and
 * double, potrf, potrs, getrf, getrs, geqrf, unmqr, ungqr, gesvd and heevd for complex numbers, and
 * potrfBatched. Other functions are not declared.
 */
#pragma once
#include "cublas_v2.h"
#include "cusolver_common.h"
#include "cuda_cpu/letters_off.h"
#include <algorithm>
#include <complex>
#include <vector>

struct cusolverDnContext {
    cudaStream_t stream = nullptr;
};
typedef cusolverDnContext *cusolverDnHandle_t;

// LAPACK's functions, in Fortran: every argument is an address, and the lengths of texts come last. The names
// here are our own, so that a program may declare them too.
namespace cuda_cpu {
namespace lapack {
typedef const int &Int;
typedef const char &Char;
typedef size_t Length;
#define CUDA_CPU_LAPACK(name, ...) void cuda_cpu_##name(__VA_ARGS__) __asm__(#name "_");
#define CUDA_CPU_LAPACK_ALL(s, T, OR)                                                                        \
    CUDA_CPU_LAPACK(s##potrf, Char, Int n, T *A, Int lda, int &info, Length)                                 \
    CUDA_CPU_LAPACK(s##potrs, Char, Int n, Int nrhs, const T *A, Int lda, T *B, Int ldb, int &info, Length)  \
    CUDA_CPU_LAPACK(s##potri, Char, Int n, T *A, Int lda, int &info, Length)                                 \
    CUDA_CPU_LAPACK(s##getrf, Int m, Int n, T *A, Int lda, int *pivots, int &info)                           \
    CUDA_CPU_LAPACK(s##getrs, Char, Int n, Int nrhs, const T *A, Int lda, const int *pivots, T *B, Int ldb,  \
                    int &info, Length)                                                                       \
    CUDA_CPU_LAPACK(s##geqrf, Int m, Int n, T *A, Int lda, T *tau, T *work, Int lwork, int &info)            \
    CUDA_CPU_LAPACK(s##OR##mqr, Char, Char, Int m, Int n, Int k, const T *A, Int lda, const T *tau, T *C,    \
                    Int ldc, T *work, Int lwork, int &info, Length, Length)                                  \
    CUDA_CPU_LAPACK(s##OR##gqr, Int m, Int n, Int k, T *A, Int lda, const T *tau, T *work, Int lwork,        \
                    int &info)
#define CUDA_CPU_LAPACK_REAL(s, T)                                                                           \
    CUDA_CPU_LAPACK(s##sytrf, Char, Int n, T *A, Int lda, int *pivots, T *work, Int lwork, int &info,        \
                    Length)                                                                                  \
    CUDA_CPU_LAPACK(s##gesvd, Char, Char, Int m, Int n, T *A, Int lda, T *S, T *U, Int ldu, T *VT, Int ldvt, \
                    T *work, Int lwork, int &info, Length, Length)                                           \
    CUDA_CPU_LAPACK(s##syevd, Char, Char, Int n, T *A, Int lda, T *W, T *work, Int lwork, int *iwork,        \
                    Int liwork, int &info, Length, Length)                                                   \
    CUDA_CPU_LAPACK(s##sygvd, Int type, Char, Char, Int n, T *A, Int lda, T *B, Int ldb, T *W, T *work,      \
                    Int lwork, int *iwork, Int liwork, int &info, Length, Length)
#define CUDA_CPU_LAPACK_COMPLEX(c, T, R)                                                                     \
    CUDA_CPU_LAPACK(c##gesvd, Char, Char, Int m, Int n, T *A, Int lda, R *S, T *U, Int ldu, T *VT, Int ldvt, \
                    T *work, Int lwork, R *rwork, int &info, Length, Length)                                 \
    CUDA_CPU_LAPACK(c##heevd, Char, Char, Int n, T *A, Int lda, R *W, T *work, Int lwork, R *rwork,          \
                    Int lrwork, int *iwork, Int liwork, int &info, Length, Length)
extern "C" {
CUDA_CPU_LAPACK_ALL(s, float, or)
CUDA_CPU_LAPACK_ALL(d, double, or)
CUDA_CPU_LAPACK_ALL(c, cuComplex, un)
CUDA_CPU_LAPACK_ALL(z, cuDoubleComplex, un)
CUDA_CPU_LAPACK_REAL(s, float)
CUDA_CPU_LAPACK_REAL(d, double)
CUDA_CPU_LAPACK_COMPLEX(c, cuComplex, float)
CUDA_CPU_LAPACK_COMPLEX(z, cuDoubleComplex, double)
}
#undef CUDA_CPU_LAPACK
#undef CUDA_CPU_LAPACK_ALL
#undef CUDA_CPU_LAPACK_REAL
#undef CUDA_CPU_LAPACK_COMPLEX

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

inline char uplo(cublasFillMode_t fill) {
    return fill == CUBLAS_FILL_MODE_LOWER ? 'L' : 'U';
}
inline char trans(cublasOperation_t op) {
    return op == CUBLAS_OP_N ? 'N' : op == CUBLAS_OP_T ? 'T' : 'C';
}
inline char side(cublasSideMode_t side) {
    return side == CUBLAS_SIDE_LEFT ? 'L' : 'R';
}
inline char job(cusolverEigMode_t mode) {
    return mode == CUSOLVER_EIG_MODE_VECTOR ? 'V' : 'N';
}

// The C++ type of a number
template <class T> struct NumberOf { using type = T; };
template <> struct NumberOf<cuComplex> { using type = std::complex<float>; };
template <> struct NumberOf<cuDoubleComplex> { using type = std::complex<double>; };
template <class T> using Number = typename NumberOf<T>::type;
template <class T> Number<T> number(T x) {
    if constexpr (std::is_floating_point<T>::value)
        return x;
    else
        return {x.x, x.y};
}

// Calls f(work, lwork) twice: LAPACK first says which size is best, and then works with memory of that size.
// The program's own workspace is not used.
template <class T, class F> void with_workspace(F f) {
    T best = {};
    f(&best, -1);
    const int size = std::max(1, (int)std::real(number(best)));
    std::vector<T> work(size);
    f(work.data(), size);
}

// cuSOLVER does not pivot where it gets no array for the pivots.
template <class T> int lu_without_pivots(int m, int n, T *A, int lda) {
    const auto at = [=](int i, int j) -> T & { return A[i + (size_t)j * lda]; };
    int info = 0;
    for (int k = 0; k < m && k < n; k++) {
        if (at(k, k) == T(0)) {
            info = info ? info : k + 1;
            continue;
        }
        for (int i = k + 1; i < m; i++)
            at(i, k) /= at(k, k);
        for (int j = k + 1; j < n; j++)
            for (int i = k + 1; i < m; i++)
                at(i, j) -= at(i, k) * at(k, j);
    }
    return info;
}
inline std::vector<int> no_exchanges(int n) {
    std::vector<int> pivots(n);
    for (int i = 0; i < n; i++)
        pivots[i] = i + 1;
    return pivots;
}

} // namespace lapack
} // namespace cuda_cpu

#define CUDA_CPU_HANDLE                                                                                      \
    namespace cpu = cuda_cpu::lapack;                                                                        \
    if (!handle)                                                                                             \
    return CUSOLVER_STATUS_NOT_INITIALIZED
#define CUDA_CPU_REQUIRE(condition)                                                                          \
    if (!(condition))                                                                                        \
    return CUSOLVER_STATUS_INVALID_VALUE
#define CUDA_CPU_FITS(rows, ld) ((rows) >= 0 && (ld) >= 1 && (ld) >= (rows))
// The size of a workspace; it is never 0, so that a program can allocate it.
#define CUDA_CPU_SIZE(condition, size, n)                                                                    \
    CUDA_CPU_HANDLE;                                                                                         \
    CUDA_CPU_REQUIRE((condition) && size);                                                                   \
    *size = std::max(1, n);                                                                                  \
    return CUSOLVER_STATUS_SUCCESS

static inline cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle) {
    CUDA_CPU_REQUIRE(handle);
    *handle = nullptr;
    if (cudaFree(nullptr) != cudaSuccess) // no device
        return CUSOLVER_STATUS_NOT_INITIALIZED;
    *handle = new cusolverDnContext;
    return CUSOLVER_STATUS_SUCCESS;
}
static inline cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) {
    delete handle;
    return handle ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_NOT_INITIALIZED;
}
static inline cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream) {
    CUDA_CPU_HANDLE;
    handle->stream = stream;
    return CUSOLVER_STATUS_SUCCESS;
}
static inline cusolverStatus_t cusolverDnGetStream(cusolverDnHandle_t handle, cudaStream_t *stream) {
    CUDA_CPU_HANDLE;
    CUDA_CPU_REQUIRE(stream);
    *stream = handle->stream;
    return CUSOLVER_STATUS_SUCCESS;
}

// ---- all types ----

// OR is or for real numbers (orthogonal) and un for complex ones (unitary).
#define CUDA_CPU_SOLVER(S, s, T, OR)                                                                         \
    static inline cusolverStatus_t cusolverDn##S##potrf_bufferSize(                                          \
        cusolverDnHandle_t handle, cublasFillMode_t, int n, T *, int lda, int *size) {                       \
        CUDA_CPU_SIZE(CUDA_CPU_FITS(n, lda), size, n);                                                       \
    }                                                                                                        \
    static inline cusolverStatus_t cusolverDn##S##potrf(cusolverDnHandle_t handle, cublasFillMode_t fill,    \
                                                        int n, T *A, int lda, T *, int, int *dev_info) {     \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(CUDA_CPU_FITS(n, lda));                                                             \
        return cpu::run(__func__, handle, dev_info,                                                          \
                        [=](int &info) { cpu::cuda_cpu_##s##potrf(cpu::uplo(fill), n, A, lda, info, 1); });  \
    }                                                                                                        \
    /* A and devInfo are arrays in device memory */                                                          \
    static inline cusolverStatus_t cusolverDn##S##potrfBatched(cusolverDnHandle_t handle,                    \
                                                               cublasFillMode_t fill, int n, T *A[],         \
                                                               int lda, int *dev_info, int count) {          \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(CUDA_CPU_FITS(n, lda) && count >= 0);                                               \
        return cpu::run(__func__, handle, nullptr, [=](int &) {                                              \
            for (int i = 0; i < count; i++)                                                                  \
                cpu::cuda_cpu_##s##potrf(cpu::uplo(fill), n, A[i], lda, dev_info[i], 1);                     \
        });                                                                                                  \
    }                                                                                                        \
    static inline cusolverStatus_t cusolverDn##S##potrs(cusolverDnHandle_t handle, cublasFillMode_t fill,    \
                                                        int n, int columns, const T *A, int lda, T *B,       \
                                                        int ldb, int *dev_info) {                            \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(columns >= 0 && CUDA_CPU_FITS(n, lda) && CUDA_CPU_FITS(n, ldb));                    \
        return cpu::run(__func__, handle, dev_info, [=](int &info) {                                         \
            cpu::cuda_cpu_##s##potrs(cpu::uplo(fill), n, columns, A, lda, B, ldb, info, 1);                  \
        });                                                                                                  \
    }                                                                                                        \
    static inline cusolverStatus_t cusolverDn##S##potri_bufferSize(                                          \
        cusolverDnHandle_t handle, cublasFillMode_t, int n, T *, int lda, int *size) {                       \
        CUDA_CPU_SIZE(CUDA_CPU_FITS(n, lda), size, n);                                                       \
    }                                                                                                        \
    static inline cusolverStatus_t cusolverDn##S##potri(cusolverDnHandle_t handle, cublasFillMode_t fill,    \
                                                        int n, T *A, int lda, T *, int, int *dev_info) {     \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(CUDA_CPU_FITS(n, lda));                                                             \
        return cpu::run(__func__, handle, dev_info,                                                          \
                        [=](int &info) { cpu::cuda_cpu_##s##potri(cpu::uplo(fill), n, A, lda, info, 1); });  \
    }                                                                                                        \
    static inline cusolverStatus_t cusolverDn##S##getrf_bufferSize(cusolverDnHandle_t handle, int m, int n,  \
                                                                   T *, int lda, int *size) {                \
        CUDA_CPU_SIZE(n >= 0 && CUDA_CPU_FITS(m, lda), size, n);                                             \
    }                                                                                                        \
    static inline cusolverStatus_t cusolverDn##S##getrf(cusolverDnHandle_t handle, int m, int n, T *A,       \
                                                        int lda, T *, int *pivots, int *dev_info) {          \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(n >= 0 && CUDA_CPU_FITS(m, lda));                                                   \
        return cpu::run(__func__, handle, dev_info, [=](int &info) {                                         \
            if (!pivots)                                                                                     \
                info = cpu::lu_without_pivots(m, n, (cpu::Number<T> *)A, lda);                               \
            else                                                                                             \
                cpu::cuda_cpu_##s##getrf(m, n, A, lda, pivots, info);                                        \
        });                                                                                                  \
    }                                                                                                        \
    static inline cusolverStatus_t cusolverDn##S##getrs(cusolverDnHandle_t handle, cublasOperation_t op,     \
                                                        int n, int columns, const T *A, int lda,             \
                                                        const int *pivots, T *B, int ldb, int *dev_info) {   \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(columns >= 0 && CUDA_CPU_FITS(n, lda) && CUDA_CPU_FITS(n, ldb));                    \
        return cpu::run(__func__, handle, dev_info, [=](int &info) {                                         \
            const std::vector<int> none = cpu::no_exchanges(pivots ? 0 : n);                                 \
            cpu::cuda_cpu_##s##getrs(cpu::trans(op), n, columns, A, lda, pivots ? pivots : none.data(), B,   \
                                     ldb, info, 1);                                                          \
        });                                                                                                  \
    }                                                                                                        \
    static inline cusolverStatus_t cusolverDn##S##geqrf_bufferSize(cusolverDnHandle_t handle, int m, int n,  \
                                                                   T *, int lda, int *size) {                \
        CUDA_CPU_SIZE(n >= 0 && CUDA_CPU_FITS(m, lda), size, n);                                             \
    }                                                                                                        \
    static inline cusolverStatus_t cusolverDn##S##geqrf(cusolverDnHandle_t handle, int m, int n, T *A,       \
                                                        int lda, T *tau, T *, int, int *dev_info) {          \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(n >= 0 && CUDA_CPU_FITS(m, lda));                                                   \
        return cpu::run(__func__, handle, dev_info, [=](int &info) {                                         \
            cpu::with_workspace<T>(                                                                          \
                [&](T *work, int size) { cpu::cuda_cpu_##s##geqrf(m, n, A, lda, tau, work, size, info); });  \
        });                                                                                                  \
    }                                                                                                        \
    static inline cusolverStatus_t cusolverDn##S##OR##mqr_bufferSize(                                        \
        cusolverDnHandle_t handle, cublasSideMode_t side, cublasOperation_t, int m, int n, int k, const T *, \
        int lda, const T *, const T *, int ldc, int *size) {                                                 \
        CUDA_CPU_SIZE(n >= 0 && k >= 0 && k <= (side == CUBLAS_SIDE_LEFT ? m : n) &&                         \
                          CUDA_CPU_FITS(side == CUBLAS_SIDE_LEFT ? m : n, lda) && CUDA_CPU_FITS(m, ldc),     \
                      size, side == CUBLAS_SIDE_LEFT ? n : m);                                               \
    }                                                                                                        \
    static inline cusolverStatus_t cusolverDn##S##OR##mqr(                                                   \
        cusolverDnHandle_t handle, cublasSideMode_t side, cublasOperation_t op, int m, int n, int k,         \
        const T *A, int lda, const T *tau, T *C, int ldc, T *, int, int *dev_info) {                         \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(n >= 0 && k >= 0 && k <= (side == CUBLAS_SIDE_LEFT ? m : n) &&                      \
                         CUDA_CPU_FITS(side == CUBLAS_SIDE_LEFT ? m : n, lda) && CUDA_CPU_FITS(m, ldc));     \
        return cpu::run(__func__, handle, dev_info, [=](int &info) {                                         \
            cpu::with_workspace<T>([&](T *work, int size) {                                                  \
                cpu::cuda_cpu_##s##OR##mqr(cpu::side(side), cpu::trans(op), m, n, k, A, lda, tau, C, ldc,    \
                                           work, size, info, 1, 1);                                          \
            });                                                                                              \
        });                                                                                                  \
    }                                                                                                        \
    static inline cusolverStatus_t cusolverDn##S##OR##gqr_bufferSize(                                        \
        cusolverDnHandle_t handle, int m, int n, int k, const T *, int lda, const T *, int *size) {          \
        CUDA_CPU_SIZE(k >= 0 && k <= n && n <= m && CUDA_CPU_FITS(m, lda), size, n);                         \
    }                                                                                                        \
    static inline cusolverStatus_t cusolverDn##S##OR##gqr(cusolverDnHandle_t handle, int m, int n, int k,    \
                                                          T *A, int lda, const T *tau, T *, int,             \
                                                          int *dev_info) {                                   \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(k >= 0 && k <= n && n <= m && CUDA_CPU_FITS(m, lda));                               \
        return cpu::run(__func__, handle, dev_info, [=](int &info) {                                         \
            cpu::with_workspace<T>([&](T *work, int size) {                                                  \
                cpu::cuda_cpu_##s##OR##gqr(m, n, k, A, lda, tau, work, size, info);                          \
            });                                                                                              \
        });                                                                                                  \
    }
CUDA_CPU_SOLVER(S, s, float, or)
CUDA_CPU_SOLVER(D, d, double, or)
CUDA_CPU_SOLVER(C, c, cuComplex, un)
CUDA_CPU_SOLVER(Z, z, cuDoubleComplex, un)
#undef CUDA_CPU_SOLVER

// ---- singular values ----

// As in cuSOLVER, the matrix has at least as many rows as columns, and the result is V transposed. LAPACK of
// complex numbers needs memory for 5 n real ones.
#define CUDA_CPU_SVD(S, s, T, R, ...)                                                                        \
    static inline cusolverStatus_t cusolverDn##S##gesvd_bufferSize(cusolverDnHandle_t handle, int m, int n,  \
                                                                   int *size) {                              \
        CUDA_CPU_SIZE(n >= 0 && m >= n, size, n);                                                            \
    }                                                                                                        \
    static inline cusolverStatus_t cusolverDn##S##gesvd(                                                     \
        cusolverDnHandle_t handle, signed char jobu, signed char jobvt, int m, int n, T *A, int lda,         \
        R *values, T *U, int ldu, T *VT, int ldvt, T *, int, R *, int *dev_info) {                           \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(n >= 0 && m >= n && CUDA_CPU_FITS(m, lda) &&                                        \
                         ((jobu != 'A' && jobu != 'S') || CUDA_CPU_FITS(m, ldu)) &&                          \
                         ((jobvt != 'A' && jobvt != 'S') || CUDA_CPU_FITS(n, ldvt)));                        \
        return cpu::run(__func__, handle, dev_info, [=](int &info) {                                         \
            std::vector<R> real(5 * n + 1);                                                                  \
            cpu::with_workspace<T>([&](T *work, int size) {                                                  \
                cpu::cuda_cpu_##s##gesvd((char)jobu, (char)jobvt, m, n, A, lda, values, U, ldu, VT, ldvt,    \
                                         work, size, __VA_ARGS__ info, 1, 1);                                \
            });                                                                                              \
        });                                                                                                  \
    }
CUDA_CPU_SVD(S, s, float, float, )
CUDA_CPU_SVD(D, d, double, double, )
CUDA_CPU_SVD(C, c, cuComplex, float, real.data(), )
CUDA_CPU_SVD(Z, z, cuDoubleComplex, double, real.data(), )
#undef CUDA_CPU_SVD

// ---- eigenvalues of symmetric matrices ----

// The eigenvalues ascend, and the eigenvectors replace the matrix. The first run of LAPACK says how much
// memory the second one needs.
#define CUDA_CPU_EIGEN(S, s, T)                                                                              \
    static inline cusolverStatus_t cusolverDn##S##sytrf_bufferSize(cusolverDnHandle_t handle, int n, T *,    \
                                                                   int lda, int *size) {                     \
        CUDA_CPU_SIZE(CUDA_CPU_FITS(n, lda), size, n);                                                       \
    }                                                                                                        \
    static inline cusolverStatus_t cusolverDn##S##sytrf(cusolverDnHandle_t handle, cublasFillMode_t fill,    \
                                                        int n, T *A, int lda, int *pivots, T *, int,         \
                                                        int *dev_info) {                                     \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(CUDA_CPU_FITS(n, lda) && pivots);                                                   \
        return cpu::run(__func__, handle, dev_info, [=](int &info) {                                         \
            cpu::with_workspace<T>([&](T *work, int size) {                                                  \
                cpu::cuda_cpu_##s##sytrf(cpu::uplo(fill), n, A, lda, pivots, work, size, info, 1);           \
            });                                                                                              \
        });                                                                                                  \
    }                                                                                                        \
    static inline cusolverStatus_t cusolverDn##S##syevd_bufferSize(                                          \
        cusolverDnHandle_t handle, cusolverEigMode_t, cublasFillMode_t, int n, const T *, int lda,           \
        const T *, int *size) {                                                                              \
        CUDA_CPU_SIZE(CUDA_CPU_FITS(n, lda), size, n);                                                       \
    }                                                                                                        \
    static inline cusolverStatus_t cusolverDn##S##syevd(cusolverDnHandle_t handle, cusolverEigMode_t mode,   \
                                                        cublasFillMode_t fill, int n, T *A, int lda,         \
                                                        T *values, T *, int, int *dev_info) {                \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(CUDA_CPU_FITS(n, lda));                                                             \
        return cpu::run(__func__, handle, dev_info, [=](int &info) {                                         \
            std::vector<int> whole(5 * n + 3);                                                               \
            cpu::with_workspace<T>([&](T *work, int size) {                                                  \
                cpu::cuda_cpu_##s##syevd(cpu::job(mode), cpu::uplo(fill), n, A, lda, values, work, size,     \
                                         whole.data(), size < 0 ? -1 : (int)whole.size(), info, 1, 1);       \
            });                                                                                              \
        });                                                                                                  \
    }                                                                                                        \
    static inline cusolverStatus_t cusolverDn##S##sygvd_bufferSize(                                          \
        cusolverDnHandle_t handle, cusolverEigType_t, cusolverEigMode_t, cublasFillMode_t, int n, const T *, \
        int lda, const T *, int ldb, const T *, int *size) {                                                 \
        CUDA_CPU_SIZE(CUDA_CPU_FITS(n, lda) && CUDA_CPU_FITS(n, ldb), size, n);                              \
    }                                                                                                        \
    static inline cusolverStatus_t cusolverDn##S##sygvd(                                                     \
        cusolverDnHandle_t handle, cusolverEigType_t type, cusolverEigMode_t mode, cublasFillMode_t fill,    \
        int n, T *A, int lda, T *B, int ldb, T *values, T *, int, int *dev_info) {                           \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(CUDA_CPU_FITS(n, lda) && CUDA_CPU_FITS(n, ldb));                                    \
        return cpu::run(__func__, handle, dev_info, [=](int &info) {                                         \
            std::vector<int> whole(5 * n + 3);                                                               \
            cpu::with_workspace<T>([&](T *work, int size) {                                                  \
                cpu::cuda_cpu_##s##sygvd((int)type, cpu::job(mode), cpu::uplo(fill), n, A, lda, B, ldb,      \
                                         values, work, size, whole.data(),                                   \
                                         size < 0 ? -1 : (int)whole.size(), info, 1, 1);                     \
            });                                                                                              \
        });                                                                                                  \
    }
CUDA_CPU_EIGEN(S, s, float)
CUDA_CPU_EIGEN(D, d, double)
#undef CUDA_CPU_EIGEN
#define CUDA_CPU_EIGEN(C, c, T, R)                                                                           \
    static inline cusolverStatus_t cusolverDn##C##heevd_bufferSize(                                          \
        cusolverDnHandle_t handle, cusolverEigMode_t, cublasFillMode_t, int n, const T *, int lda,           \
        const R *, int *size) {                                                                              \
        CUDA_CPU_SIZE(CUDA_CPU_FITS(n, lda), size, n);                                                       \
    }                                                                                                        \
    static inline cusolverStatus_t cusolverDn##C##heevd(cusolverDnHandle_t handle, cusolverEigMode_t mode,   \
                                                        cublasFillMode_t fill, int n, T *A, int lda,         \
                                                        R *values, T *, int, int *dev_info) {                \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(CUDA_CPU_FITS(n, lda));                                                             \
        return cpu::run(__func__, handle, dev_info, [=](int &info) {                                         \
            std::vector<int> whole(5 * n + 3);                                                               \
            std::vector<R> real(2 * (size_t)n * n + 5 * n + 1);                                              \
            cpu::with_workspace<T>([&](T *work, int size) {                                                  \
                cpu::cuda_cpu_##c##heevd(cpu::job(mode), cpu::uplo(fill), n, A, lda, values, work, size,     \
                                         real.data(), size < 0 ? -1 : (int)real.size(), whole.data(),        \
                                         size < 0 ? -1 : (int)whole.size(), info, 1, 1);                     \
            });                                                                                              \
        });                                                                                                  \
    }
CUDA_CPU_EIGEN(C, c, cuComplex, float)
CUDA_CPU_EIGEN(Z, z, cuDoubleComplex, double)
#undef CUDA_CPU_EIGEN
#undef CUDA_CPU_HANDLE
#undef CUDA_CPU_REQUIRE
#undef CUDA_CPU_FITS
#undef CUDA_CPU_SIZE
#include "cuda_cpu/letters_on.h"
