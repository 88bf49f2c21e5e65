// SPDX-License-Identifier: MIT
/*
 * cuBLAS by OpenBLAS: link with -lopenblas (cucc does so for -lcublas). Matrices are stored by columns, as
 * in cuBLAS. The functions check sizes and leading dimensions, and do their work in the order of the stream.
 *
 * Has levels 1 to 3 for float and double, the common functions for complex numbers, batches of products, and
 * cublasGemmEx for 16-bit inputs, which are converted to float; batches of LU factorizations. Other functions
 * are not declared. A name with _v2 is the same function.
 */
#pragma once
#define CUBLAS_API_H_
#ifndef __cplusplus
#error "cublas_v2.h: the CPU back end has it for C++ only"
#endif
#if !__has_include(<cblas.h>)
#error "cublas_v2.h: the CPU back end has cuBLAS by OpenBLAS: install libopenblas-dev"
#endif
#include "cuda_cpu/letters_off.h"
#include <cblas.h>
#include <climits>
#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>
#include "cuComplex.h"
#include "cuda_cpu/lapack.h"
#include "cuda_cpu/library.h"
#include "library_types.h"

typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_MAPPING_ERROR = 11,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_INTERNAL_ERROR = 14,
    CUBLAS_STATUS_NOT_SUPPORTED = 15,
    CUBLAS_STATUS_LICENSE_ERROR = 16
} cublasStatus_t;
typedef cublasStatus_t cublasStatus;

typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2, CUBLAS_OP_HERMITAN = 2 } cublasOperation_t;
typedef enum { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1 } cublasFillMode_t;
typedef enum { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 } cublasDiagType_t;
typedef enum { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 } cublasSideMode_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;
typedef enum { CUBLAS_ATOMICS_NOT_ALLOWED = 0, CUBLAS_ATOMICS_ALLOWED = 1 } cublasAtomicsMode_t;
typedef enum {
    CUBLAS_DEFAULT_MATH = 0,
    CUBLAS_TENSOR_OP_MATH = 1,
    CUBLAS_PEDANTIC_MATH = 2,
    CUBLAS_TF32_TENSOR_OP_MATH = 3
} cublasMath_t;
typedef enum {
    CUBLAS_COMPUTE_16F = 64,
    CUBLAS_COMPUTE_16F_PEDANTIC = 65,
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_PEDANTIC = 69,
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_64F_PEDANTIC = 71,
    CUBLAS_COMPUTE_32I = 72,
    CUBLAS_COMPUTE_32F_FAST_16F = 74,
    CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;
typedef enum {
    CUBLAS_GEMM_DEFAULT = -1,
    CUBLAS_GEMM_DFALT = -1,
    CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99
} cublasGemmAlgo_t;
typedef cudaDataType cublasDataType_t;

// The settings that apply to calls with this handle.
struct cublasContext {
    cudaStream_t stream = nullptr;
    cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST; // memory of scalars and results
    cublasMath_t math = CUBLAS_DEFAULT_MATH;
    cublasAtomicsMode_t atomics = CUBLAS_ATOMICS_NOT_ALLOWED;
};
typedef struct cublasContext *cublasHandle_t;

// ---- settings ----

static inline cublasStatus_t cublasCreate(cublasHandle_t *handle) {
    if (!handle)
        return CUBLAS_STATUS_INVALID_VALUE;
    *handle = nullptr;
    if (cudaFree(nullptr) != cudaSuccess) // no device
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = new cublasContext;
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasDestroy(cublasHandle_t handle) {
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}
#define CUDA_CPU_SETTING(NAME, type, member)                                                                 \
    static inline cublasStatus_t cublasSet##NAME(cublasHandle_t handle, type value) {                        \
        if (!handle)                                                                                         \
            return CUBLAS_STATUS_NOT_INITIALIZED;                                                            \
        handle->member = value;                                                                              \
        return CUBLAS_STATUS_SUCCESS;                                                                        \
    }                                                                                                        \
    static inline cublasStatus_t cublasGet##NAME(cublasHandle_t handle, type *value) {                       \
        if (!handle)                                                                                         \
            return CUBLAS_STATUS_NOT_INITIALIZED;                                                            \
        if (!value)                                                                                          \
            return CUBLAS_STATUS_INVALID_VALUE;                                                              \
        *value = handle->member;                                                                             \
        return CUBLAS_STATUS_SUCCESS;                                                                        \
    }
CUDA_CPU_SETTING(Stream, cudaStream_t, stream)
CUDA_CPU_SETTING(PointerMode, cublasPointerMode_t, pointers)
CUDA_CPU_SETTING(MathMode, cublasMath_t, math)
CUDA_CPU_SETTING(AtomicsMode, cublasAtomicsMode_t, atomics)
#undef CUDA_CPU_SETTING
static inline cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *, size_t) {
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
static inline cublasStatus_t cublasGetVersion(cublasHandle_t, int *version) {
    *version = 130000; // the interface is that of CUDA 13.0
    return CUBLAS_STATUS_SUCCESS;
}
static inline const char *cublasGetStatusName(cublasStatus_t status) {
    switch (status) {
#define CUDA_CPU_NAME(name)                                                                                  \
    case name:                                                                                               \
        return #name;
        CUDA_CPU_NAME(CUBLAS_STATUS_SUCCESS)
        CUDA_CPU_NAME(CUBLAS_STATUS_NOT_INITIALIZED)
        CUDA_CPU_NAME(CUBLAS_STATUS_ALLOC_FAILED)
        CUDA_CPU_NAME(CUBLAS_STATUS_INVALID_VALUE)
        CUDA_CPU_NAME(CUBLAS_STATUS_ARCH_MISMATCH)
        CUDA_CPU_NAME(CUBLAS_STATUS_MAPPING_ERROR)
        CUDA_CPU_NAME(CUBLAS_STATUS_EXECUTION_FAILED)
        CUDA_CPU_NAME(CUBLAS_STATUS_INTERNAL_ERROR)
        CUDA_CPU_NAME(CUBLAS_STATUS_NOT_SUPPORTED)
        CUDA_CPU_NAME(CUBLAS_STATUS_LICENSE_ERROR)
#undef CUDA_CPU_NAME
    }
    return "CUBLAS_STATUS_UNKNOWN";
}
static inline const char *cublasGetStatusString(cublasStatus_t status) {
    return cublasGetStatusName(status);
}

// ---- how the calls work ----

namespace cuda_cpu {
namespace blas {

inline cublasStatus_t status_of(cudaError_t error) {
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

template <class T> struct Scalar : LibraryScalar<T> {
    Scalar(cublasHandle_t handle, const T *p)
        : LibraryScalar<T>(handle->pointers == CUBLAS_POINTER_MODE_DEVICE, p) {}
};

template <class Work> cublasStatus_t run(const char *call, cublasHandle_t handle, Work work) {
    return status_of(library_call(call, handle->stream, work));
}
// Like run() for a function with a result, which work() returns. A result in host memory is valid on return.
template <class T, class Work>
cublasStatus_t run_for(const char *call, cublasHandle_t handle, T *result, Work work) {
    if (handle->pointers == CUBLAS_POINTER_MODE_DEVICE)
        return status_of(library_call(call, handle->stream, [=] { *result = work(); }));
    return status_of(library_call(
        call, handle->stream, [=] { *result = work(); }, true));
}

inline CBLAS_TRANSPOSE trans(cublasOperation_t o) {
    return o == CUBLAS_OP_N ? CblasNoTrans : o == CUBLAS_OP_T ? CblasTrans : CblasConjTrans;
}
inline CBLAS_UPLO uplo(cublasFillMode_t f) {
    return f == CUBLAS_FILL_MODE_LOWER ? CblasLower : CblasUpper;
}
inline CBLAS_DIAG diag(cublasDiagType_t d) {
    return d == CUBLAS_DIAG_UNIT ? CblasUnit : CblasNonUnit;
}
inline CBLAS_SIDE side(cublasSideMode_t s) {
    return s == CUBLAS_SIDE_LEFT ? CblasLeft : CblasRight;
}

// Checks the leading dimension of a matrix with `rows` rows, and of further ones.
inline bool fits(int64_t rows, int64_t ld) {
    return rows >= 0 && ld >= 1 && ld >= rows;
}
template <class... More> bool fits(int64_t rows, int64_t ld, More... more) {
    return fits(rows, ld) && fits(more...);
}
// The rows of a matrix in memory whose op() has m rows and n columns
inline int rows_of(cublasOperation_t op, int m, int n) {
    return op == CUBLAS_OP_N ? m : n;
}
// The rows of a square matrix that an m x n one is multiplied with
inline int rows_of(cublasSideMode_t side, int m, int n) {
    return side == CUBLAS_SIDE_LEFT ? m : n;
}
inline bool product_fits(cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k, int lda, int ldb,
                         int ldc) {
    return n >= 0 && k >= 0 && fits(rows_of(opa, m, k), lda, rows_of(opb, k, n), ldb, m, ldc);
}

// OpenBLAS counts in int. Longer vectors are processed in parts by f(offset, length).
template <class F> void in_parts(int64_t n, F f) {
    const int64_t most = 1 << 30;
    for (int64_t i = 0; i < n; i += most)
        f(i, (int)(n - i < most ? n - i : most));
}
// The start of a part of a vector. With a negative increment, BLAS counts from the end of the memory.
template <class T> T *part(T *x, int64_t n, int64_t inc, int64_t i, int64_t length) {
    return inc >= 0 ? x + i * inc : x + (i + length - n) * inc;
}

// Processes two vectors in parts by f(length, x, y).
template <class X, class Y, class F> void in_parts(int64_t n, X *x, int64_t incx, Y *y, int64_t incy, F f) {
    in_parts(n, [&](int64_t i, int m) { f(m, part(x, n, incx, i, m), part(y, n, incy, i, m)); });
}

} // namespace blas
} // namespace cuda_cpu

#define CUDA_CPU_HANDLE                                                                                      \
    namespace cpu = cuda_cpu::blas;                                                                          \
    if (!handle)                                                                                             \
    return CUBLAS_STATUS_NOT_INITIALIZED
#define CUDA_CPU_REQUIRE(condition)                                                                          \
    if (!(condition))                                                                                        \
    return CUBLAS_STATUS_INVALID_VALUE

// Each function of level 1 also exists with 64-bit numbers.
#define CUDA_CPU_BOTH(MACRO, ...)                                                                            \
    MACRO(, int, __VA_ARGS__)                                                                                \
    MACRO(_64, int64_t, __VA_ARGS__)

// ---- level 1 ----

// Functions with a result: the sums of the parts are added.
#define CUDA_CPU_DOT(suffix, integer, S, s, T)                                                               \
    static inline cublasStatus_t cublas##S##dot##suffix(cublasHandle_t handle, integer n, const T *x,        \
                                                        integer incx, const T *y, integer incy, T *result) { \
        CUDA_CPU_HANDLE;                                                                                     \
        return cpu::run_for(__func__, handle, result, [=] {                                                  \
            T sum = 0;                                                                                       \
            cpu::in_parts(n, x, incx, y, incy,                                                               \
                          [&](int m, auto *x, auto *y) { sum += cblas_##s##dot(m, x, incx, y, incy); });     \
            return sum;                                                                                      \
        });                                                                                                  \
    }                                                                                                        \
    static inline cublasStatus_t cublas##S##asum##suffix(cublasHandle_t handle, integer n, const T *x,       \
                                                         integer incx, T *result) {                          \
        CUDA_CPU_HANDLE;                                                                                     \
        return cpu::run_for(__func__, handle, result, [=] {                                                  \
            T sum = 0;                                                                                       \
            cpu::in_parts(n, [&](int64_t i, int m) { sum += cblas_##s##asum(m, x + i * incx, incx); });      \
            return sum;                                                                                      \
        });                                                                                                  \
    }                                                                                                        \
    static inline cublasStatus_t cublas##S##nrm2##suffix(cublasHandle_t handle, integer n, const T *x,       \
                                                         integer incx, T *result) {                          \
        CUDA_CPU_HANDLE;                                                                                     \
        return cpu::run_for(__func__, handle, result, [=] {                                                  \
            T norm = 0;                                                                                      \
            cpu::in_parts(n, [&](int64_t i, int m) {                                                         \
                norm = std::hypot(norm, cblas_##s##nrm2(m, x + i * incx, incx));                             \
            });                                                                                              \
            return norm;                                                                                     \
        });                                                                                                  \
    }                                                                                                        \
    static inline cublasStatus_t cublas##S##rot##suffix(cublasHandle_t handle, integer n, T *x,              \
                                                        integer incx, T *y, integer incy, const T *c,        \
                                                        const T *sine) {                                     \
        CUDA_CPU_HANDLE;                                                                                     \
        const cpu::Scalar<T> cosine(handle, c), sin(handle, sine);                                           \
        return cpu::run(__func__, handle, [=] {                                                              \
            cpu::in_parts(n, x, incx, y, incy, [&](int m, auto *x, auto *y) {                                \
                cblas_##s##rot(m, x, incx, y, incy, *cosine, *sin);                                          \
            });                                                                                              \
        });                                                                                                  \
    }

// alpha is passed by value for real types and by address for complex ones.
#define CUDA_CPU_AXPY(suffix, integer, S, s, T, ALPHA)                                                       \
    static inline cublasStatus_t cublas##S##axpy##suffix(cublasHandle_t handle, integer n, const T *alpha,   \
                                                         const T *x, integer incx, T *y, integer incy) {     \
        CUDA_CPU_HANDLE;                                                                                     \
        const cpu::Scalar<T> scale(handle, alpha);                                                           \
        return cpu::run(__func__, handle, [=] {                                                              \
            const T a = *scale;                                                                              \
            cpu::in_parts(n, x, incx, y, incy,                                                               \
                          [&](int m, auto *x, auto *y) { cblas_##s##axpy(m, ALPHA a, x, incx, y, incy); });  \
        });                                                                                                  \
    }                                                                                                        \
    static inline cublasStatus_t cublas##S##scal##suffix(cublasHandle_t handle, integer n, const T *alpha,   \
                                                         T *x, integer incx) {                               \
        CUDA_CPU_HANDLE;                                                                                     \
        const cpu::Scalar<T> scale(handle, alpha);                                                           \
        return cpu::run(__func__, handle, [=] {                                                              \
            const T a = *scale;                                                                              \
            cpu::in_parts(n, [&](int64_t i, int m) { cblas_##s##scal(m, ALPHA a, x + i * incx, incx); });    \
        });                                                                                                  \
    }                                                                                                        \
    static inline cublasStatus_t cublas##S##copy##suffix(cublasHandle_t handle, integer n, const T *x,       \
                                                         integer incx, T *y, integer incy) {                 \
        CUDA_CPU_HANDLE;                                                                                     \
        return cpu::run(__func__, handle, [=] {                                                              \
            cpu::in_parts(n, x, incx, y, incy,                                                               \
                          [&](int m, auto *x, auto *y) { cblas_##s##copy(m, x, incx, y, incy); });           \
        });                                                                                                  \
    }                                                                                                        \
    static inline cublasStatus_t cublas##S##swap##suffix(cublasHandle_t handle, integer n, T *x,             \
                                                         integer incx, T *y, integer incy) {                 \
        CUDA_CPU_HANDLE;                                                                                     \
        return cpu::run(__func__, handle, [=] {                                                              \
            cpu::in_parts(n, x, incx, y, incy,                                                               \
                          [&](int m, auto *x, auto *y) { cblas_##s##swap(m, x, incx, y, incy); });           \
        });                                                                                                  \
    }

// The index, from 1, of the first element with the largest or smallest magnitude; 0 if there are no elements.
#define CUDA_CPU_INDEX(suffix, integer, S, T, MAGNITUDE, amax, BETTER)                                       \
    static inline cublasStatus_t cublasI##S##amax##suffix(cublasHandle_t handle, integer n, const T *x,      \
                                                          integer incx, integer *result) {                   \
        CUDA_CPU_HANDLE;                                                                                     \
        return cpu::run_for(__func__, handle, result, [=] {                                                  \
            integer best = 0;                                                                                \
            for (integer i = 1; i < n && incx > 0; i++)                                                      \
                if (MAGNITUDE(x[i * incx]) BETTER MAGNITUDE(x[best * incx]))                                 \
                    best = i;                                                                                \
            return n > 0 && incx > 0 ? best + 1 : 0;                                                         \
        });                                                                                                  \
    }

namespace cuda_cpu {
namespace blas {
inline float magnitude(float x) {
    return std::fabs(x);
}
inline double magnitude(double x) {
    return std::fabs(x);
}
inline float magnitude(cuComplex z) {
    return std::fabs(z.x) + std::fabs(z.y);
}
inline double magnitude(cuDoubleComplex z) {
    return std::fabs(z.x) + std::fabs(z.y);
}
} // namespace blas
} // namespace cuda_cpu

#define CUDA_CPU_LEVEL1(S, s, T, ALPHA)                                                                      \
    CUDA_CPU_BOTH(CUDA_CPU_AXPY, S, s, T, ALPHA)                                                             \
    CUDA_CPU_BOTH(CUDA_CPU_INDEX, s, T, cpu::magnitude, amax, >)                                             \
    CUDA_CPU_BOTH(CUDA_CPU_INDEX, s, T, cpu::magnitude, amin, <)
CUDA_CPU_LEVEL1(S, s, float, )
CUDA_CPU_LEVEL1(D, d, double, )
CUDA_CPU_LEVEL1(C, c, cuComplex, &)
CUDA_CPU_LEVEL1(Z, z, cuDoubleComplex, &)
CUDA_CPU_BOTH(CUDA_CPU_DOT, S, s, float)
CUDA_CPU_BOTH(CUDA_CPU_DOT, D, d, double)
#undef CUDA_CPU_LEVEL1
#undef CUDA_CPU_INDEX
#undef CUDA_CPU_AXPY
#undef CUDA_CPU_DOT
#undef CUDA_CPU_BOTH

#define CUDA_CPU_COMPLEX(C, c, T, SC, sc, R)                                                                 \
    static inline cublasStatus_t cublas##C##dotu(cublasHandle_t handle, int n, const T *x, int incx,         \
                                                 const T *y, int incy, T *result) {                          \
        CUDA_CPU_HANDLE;                                                                                     \
        return cpu::run_for(__func__, handle, result, [=] {                                                  \
            T sum;                                                                                           \
            cblas_##c##dotu_sub(n, x, incx, y, incy, &sum);                                                  \
            return sum;                                                                                      \
        });                                                                                                  \
    }                                                                                                        \
    static inline cublasStatus_t cublas##C##dotc(cublasHandle_t handle, int n, const T *x, int incx,         \
                                                 const T *y, int incy, T *result) {                          \
        CUDA_CPU_HANDLE;                                                                                     \
        return cpu::run_for(__func__, handle, result, [=] {                                                  \
            T sum;                                                                                           \
            cblas_##c##dotc_sub(n, x, incx, y, incy, &sum);                                                  \
            return sum;                                                                                      \
        });                                                                                                  \
    }                                                                                                        \
    static inline cublasStatus_t cublas##SC##nrm2(cublasHandle_t handle, int n, const T *x, int incx,        \
                                                  R *result) {                                               \
        CUDA_CPU_HANDLE;                                                                                     \
        return cpu::run_for(__func__, handle, result, [=] { return cblas_##sc##nrm2(n, x, incx); });         \
    }                                                                                                        \
    static inline cublasStatus_t cublas##SC##asum(cublasHandle_t handle, int n, const T *x, int incx,        \
                                                  R *result) {                                               \
        CUDA_CPU_HANDLE;                                                                                     \
        return cpu::run_for(__func__, handle, result, [=] { return cblas_##sc##asum(n, x, incx); });         \
    }
CUDA_CPU_COMPLEX(C, c, cuComplex, Sc, sc, float)
CUDA_CPU_COMPLEX(Z, z, cuDoubleComplex, Dz, dz, double)
#undef CUDA_CPU_COMPLEX

// ---- levels 2 and 3 ----

// x = op(A) x, or the solution of op(A) x = x, with a triangular matrix
#define CUDA_CPU_TRIANGLE(S, s, T, trmv)                                                                     \
    static inline cublasStatus_t cublas##S##trmv(cublasHandle_t handle, cublasFillMode_t fill,               \
                                                 cublasOperation_t op, cublasDiagType_t diagonal, int n,     \
                                                 const T *A, int lda, T *x, int incx) {                      \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(cpu::fits(n, lda) && incx);                                                         \
        return cpu::run(__func__, handle, [=] {                                                              \
            cblas_##s##trmv(CblasColMajor, cpu::uplo(fill), cpu::trans(op), cpu::diag(diagonal), n, A, lda,  \
                            x, incx);                                                                        \
        });                                                                                                  \
    }

#define CUDA_CPU_MATRIX(S, s, T, ALPHA)                                                                      \
    CUDA_CPU_TRIANGLE(S, s, T, trmv)                                                                         \
    CUDA_CPU_TRIANGLE(S, s, T, trsv)                                                                         \
    static inline cublasStatus_t cublas##S##gemv(cublasHandle_t handle, cublasOperation_t op, int m, int n,  \
                                                 const T *alpha, const T *A, int lda, const T *x, int incx,  \
                                                 const T *beta, T *y, int incy) {                            \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(n >= 0 && cpu::fits(m, lda) && incx && incy);                                       \
        const cpu::Scalar<T> scale(handle, alpha), old(handle, beta);                                        \
        return cpu::run(__func__, handle, [=] {                                                              \
            const T a = *scale, b = *old;                                                                    \
            cblas_##s##gemv(CblasColMajor, cpu::trans(op), m, n, ALPHA a, A, lda, x, incx, ALPHA b, y,       \
                            incy);                                                                           \
        });                                                                                                  \
    }                                                                                                        \
    static inline cublasStatus_t cublas##S##gemm(                                                            \
        cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,            \
        const T *alpha, const T *A, int lda, const T *B, int ldb, const T *beta, T *C, int ldc) {            \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(cpu::product_fits(opa, opb, m, n, k, lda, ldb, ldc));                               \
        const cpu::Scalar<T> scale(handle, alpha), old(handle, beta);                                        \
        return cpu::run(__func__, handle, [=] {                                                              \
            const T a = *scale, b = *old;                                                                    \
            cblas_##s##gemm(CblasColMajor, cpu::trans(opa), cpu::trans(opb), m, n, k, ALPHA a, A, lda, B,    \
                            ldb, ALPHA b, C, ldc);                                                           \
        });                                                                                                  \
    }                                                                                                        \
    static inline cublasStatus_t cublas##S##gemmStridedBatched(                                              \
        cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,            \
        const T *alpha, const T *A, int lda, long long stride_a, const T *B, int ldb, long long stride_b,    \
        const T *beta, T *C, int ldc, long long stride_c, int count) {                                       \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(count >= 0 && cpu::product_fits(opa, opb, m, n, k, lda, ldb, ldc));                 \
        const cpu::Scalar<T> scale(handle, alpha), old(handle, beta);                                        \
        return cpu::run(__func__, handle, [=] {                                                              \
            const T a = *scale, b = *old;                                                                    \
            for (int i = 0; i < count; i++)                                                                  \
                cblas_##s##gemm(CblasColMajor, cpu::trans(opa), cpu::trans(opb), m, n, k, ALPHA a,           \
                                A + i * stride_a, lda, B + i * stride_b, ldb, ALPHA b, C + i * stride_c,     \
                                ldc);                                                                        \
        });                                                                                                  \
    }                                                                                                        \
    static inline cublasStatus_t cublas##S##gemmBatched(                                                     \
        cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,            \
        const T *alpha, const T *const A[], int lda, const T *const B[], int ldb, const T *beta,             \
        T *const C[], int ldc, int count) {                                                                  \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(count >= 0 && cpu::product_fits(opa, opb, m, n, k, lda, ldb, ldc));                 \
        const cpu::Scalar<T> scale(handle, alpha), old(handle, beta);                                        \
        return cpu::run(__func__, handle, [=] {                                                              \
            const T a = *scale, b = *old;                                                                    \
            for (int i = 0; i < count; i++)                                                                  \
                cblas_##s##gemm(CblasColMajor, cpu::trans(opa), cpu::trans(opb), m, n, k, ALPHA a, A[i],     \
                                lda, B[i], ldb, ALPHA b, C[i], ldc);                                         \
        });                                                                                                  \
    }                                                                                                        \
    static inline cublasStatus_t cublas##S##symm(                                                            \
        cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill, int m, int n, const T *alpha,   \
        const T *A, int lda, const T *B, int ldb, const T *beta, T *C, int ldc) {                            \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(n >= 0 && cpu::fits(cpu::rows_of(side, m, n), lda, m, ldb, m, ldc));                \
        const cpu::Scalar<T> scale(handle, alpha), old(handle, beta);                                        \
        return cpu::run(__func__, handle, [=] {                                                              \
            const T a = *scale, b = *old;                                                                    \
            cblas_##s##symm(CblasColMajor, cpu::side(side), cpu::uplo(fill), m, n, ALPHA a, A, lda, B, ldb,  \
                            ALPHA b, C, ldc);                                                                \
        });                                                                                                  \
    }                                                                                                        \
    static inline cublasStatus_t cublas##S##syrk(cublasHandle_t handle, cublasFillMode_t fill,               \
                                                 cublasOperation_t op, int n, int k, const T *alpha,         \
                                                 const T *A, int lda, const T *beta, T *C, int ldc) {        \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(k >= 0 && cpu::fits(cpu::rows_of(op, n, k), lda, n, ldc));                          \
        const cpu::Scalar<T> scale(handle, alpha), old(handle, beta);                                        \
        return cpu::run(__func__, handle, [=] {                                                              \
            const T a = *scale, b = *old;                                                                    \
            cblas_##s##syrk(CblasColMajor, cpu::uplo(fill), cpu::trans(op), n, k, ALPHA a, A, lda, ALPHA b,  \
                            C, ldc);                                                                         \
        });                                                                                                  \
    }                                                                                                        \
    /* BLAS multiplies in place; cuBLAS writes the product to C, which may be B. */                          \
    static inline cublasStatus_t cublas##S##trmm(cublasHandle_t handle, cublasSideMode_t side,               \
                                                 cublasFillMode_t fill, cublasOperation_t op,                \
                                                 cublasDiagType_t diagonal, int m, int n, const T *alpha,    \
                                                 const T *A, int lda, const T *B, int ldb, T *C, int ldc) {  \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(n >= 0 && cpu::fits(cpu::rows_of(side, m, n), lda, m, ldb, m, ldc));                \
        const cpu::Scalar<T> scale(handle, alpha);                                                           \
        return cpu::run(__func__, handle, [=] {                                                              \
            const T a = *scale;                                                                              \
            for (int j = 0; j < n && (C != B || ldc != ldb); j++)                                            \
                std::memmove(C + (size_t)j * ldc, B + (size_t)j * ldb, m * sizeof(T));                       \
            cblas_##s##trmm(CblasColMajor, cpu::side(side), cpu::uplo(fill), cpu::trans(op),                 \
                            cpu::diag(diagonal), m, n, ALPHA a, A, lda, C, ldc);                             \
        });                                                                                                  \
    }                                                                                                        \
    static inline cublasStatus_t cublas##S##trsm(                                                            \
        cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill, cublasOperation_t op,           \
        cublasDiagType_t diagonal, int m, int n, const T *alpha, const T *A, int lda, T *B, int ldb) {       \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(n >= 0 && cpu::fits(cpu::rows_of(side, m, n), lda, m, ldb));                        \
        const cpu::Scalar<T> scale(handle, alpha);                                                           \
        return cpu::run(__func__, handle, [=] {                                                              \
            const T a = *scale;                                                                              \
            cblas_##s##trsm(CblasColMajor, cpu::side(side), cpu::uplo(fill), cpu::trans(op),                 \
                            cpu::diag(diagonal), m, n, ALPHA a, A, lda, B, ldb);                             \
        });                                                                                                  \
    }
CUDA_CPU_MATRIX(S, s, float, )
CUDA_CPU_MATRIX(D, d, double, )
CUDA_CPU_MATRIX(C, c, cuComplex, &)
CUDA_CPU_MATRIX(Z, z, cuDoubleComplex, &)
#undef CUDA_CPU_MATRIX
#undef CUDA_CPU_TRIANGLE

#define CUDA_CPU_REAL_MATRIX(S, s, T)                                                                        \
    static inline cublasStatus_t cublas##S##ger(cublasHandle_t handle, int m, int n, const T *alpha,         \
                                                const T *x, int incx, const T *y, int incy, T *A, int lda) { \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(n >= 0 && cpu::fits(m, lda) && incx && incy);                                       \
        const cpu::Scalar<T> scale(handle, alpha);                                                           \
        return cpu::run(__func__, handle,                                                                    \
                        [=] { cblas_##s##ger(CblasColMajor, m, n, *scale, x, incx, y, incy, A, lda); });     \
    }                                                                                                        \
    static inline cublasStatus_t cublas##S##symv(cublasHandle_t handle, cublasFillMode_t fill, int n,        \
                                                 const T *alpha, const T *A, int lda, const T *x, int incx,  \
                                                 const T *beta, T *y, int incy) {                            \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(cpu::fits(n, lda) && incx && incy);                                                 \
        const cpu::Scalar<T> scale(handle, alpha), old(handle, beta);                                        \
        return cpu::run(__func__, handle, [=] {                                                              \
            cblas_##s##symv(CblasColMajor, cpu::uplo(fill), n, *scale, A, lda, x, incx, *old, y, incy);      \
        });                                                                                                  \
    }                                                                                                        \
    static inline cublasStatus_t cublas##S##syr(cublasHandle_t handle, cublasFillMode_t fill, int n,         \
                                                const T *alpha, const T *x, int incx, T *A, int lda) {       \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(cpu::fits(n, lda) && incx);                                                         \
        const cpu::Scalar<T> scale(handle, alpha);                                                           \
        return cpu::run(__func__, handle, [=] {                                                              \
            cblas_##s##syr(CblasColMajor, cpu::uplo(fill), n, *scale, x, incx, A, lda);                      \
        });                                                                                                  \
    }                                                                                                        \
    /* C = alpha op(A) + beta op(B), where a matrix with the factor 0 is not read */                         \
    static inline cublasStatus_t cublas##S##geam(                                                            \
        cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n, const T *alpha,   \
        const T *A, int lda, const T *beta, const T *B, int ldb, T *C, int ldc) {                            \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(m >= 0 && n >= 0 &&                                                                 \
                         cpu::fits(cpu::rows_of(opa, m, n), lda, cpu::rows_of(opb, m, n), ldb, m, ldc));     \
        const cpu::Scalar<T> scale_a(handle, alpha), scale_b(handle, beta);                                  \
        return cpu::run(__func__, handle, [=] {                                                              \
            const T a = *scale_a, b = *scale_b;                                                              \
            const auto at = [](const T *M, int ld, cublasOperation_t op, int i, int j) {                     \
                return op == CUBLAS_OP_N ? M[i + (size_t)j * ld] : M[j + (size_t)i * ld];                    \
            };                                                                                               \
            for (int j = 0; j < n; j++)                                                                      \
                for (int i = 0; i < m; i++)                                                                  \
                    C[i + (size_t)j * ldc] =                                                                 \
                        (a == 0 ? 0 : a * at(A, lda, opa, i, j)) + (b == 0 ? 0 : b * at(B, ldb, opb, i, j)); \
        });                                                                                                  \
    }                                                                                                        \
    /* C = A diag(x) or diag(x) A */                                                                         \
    static inline cublasStatus_t cublas##S##dgmm(cublasHandle_t handle, cublasSideMode_t side, int m, int n, \
                                                 const T *A, int lda, const T *x, int incx, T *C, int ldc) { \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(n >= 0 && cpu::fits(m, lda, m, ldc));                                               \
        return cpu::run(__func__, handle, [=] {                                                              \
            const int length = cpu::rows_of(side, m, n);                                                     \
            const T *first = cpu::part(x, length, incx, 0, length);                                          \
            if (incx < 0)                                                                                    \
                first = x - (ptrdiff_t)(length - 1) * incx;                                                  \
            for (int j = 0; j < n; j++)                                                                      \
                for (int i = 0; i < m; i++)                                                                  \
                    C[i + (size_t)j * ldc] = A[i + (size_t)j * lda] *                                        \
                                             first[(ptrdiff_t)(side == CUBLAS_SIDE_LEFT ? i : j) * incx];    \
        });                                                                                                  \
    }
CUDA_CPU_REAL_MATRIX(S, s, float)
CUDA_CPU_REAL_MATRIX(D, d, double)
#undef CUDA_CPU_REAL_MATRIX

// ---- cublasGemmEx: matrices of several types ----

namespace cuda_cpu {
namespace blas {

inline float from_half(uint16_t h) {
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const float value = exponent == 31 ? (fraction ? NAN : INFINITY)
                        : exponent     ? std::ldexp(1024.0f + fraction, exponent - 25)
                                       : std::ldexp((float)fraction, -24);
    return h >> 15 ? -value : value;
}
inline uint16_t to_half(float f) { // to the nearest, ties to even
    const uint16_t sign = std::signbit(f) ? 0x8000 : 0;
    f = std::fabs(f);
    if (!(f < 65520)) // the first value that rounds to infinity; also true for NaN
        return sign | (std::isnan(f) ? 0x7fff : 0x7c00);
    int exponent = -13;
    if (f > 0)
        std::frexp(f, &exponent);
    exponent = exponent < -13 ? -13 : exponent; // subnormal numbers have the smallest exponent
    const int scaled = (int)std::nearbyint(std::ldexp(f, 11 - exponent));
    return sign | (uint16_t)(scaled + ((exponent + 13) << 10));
}
inline float from_bfloat(uint16_t h) {
    const uint32_t bits = (uint32_t)h << 16;
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
}
inline uint16_t to_bfloat(float f) {
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    if (std::isnan(f))
        return bits >> 16 | 0x40;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
inline bool is_real(cudaDataType type) {
    return type == CUDA_R_16F || type == CUDA_R_16BF || type == CUDA_R_32F;
}
inline size_t size_of(cudaDataType type) {
    return type == CUDA_R_32F ? 4 : 2;
}
inline float load(const void *p, cudaDataType type, size_t i) {
    return type == CUDA_R_32F   ? ((const float *)p)[i]
           : type == CUDA_R_16F ? from_half(((const uint16_t *)p)[i])
                                : from_bfloat(((const uint16_t *)p)[i]);
}
inline void store(void *p, cudaDataType type, size_t i, float value) {
    if (type == CUDA_R_32F)
        ((float *)p)[i] = value;
    else
        ((uint16_t *)p)[i] = type == CUDA_R_16F ? to_half(value) : to_bfloat(value);
}
// Converts a matrix to float. The leading dimension of the result is `rows`.
inline std::vector<float> as_float(const void *p, cudaDataType type, int rows, int columns, int ld) {
    std::vector<float> matrix((size_t)rows * columns);
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < rows; i++)
            matrix[i + (size_t)j * rows] = load(p, type, i + (size_t)j * ld);
    return matrix;
}

} // namespace blas
} // namespace cuda_cpu

static inline cublasStatus_t
cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n,
                           int k, const void *alpha, const void *A, cudaDataType type_a, int lda,
                           long long stride_a, const void *B, cudaDataType type_b, int ldb,
                           long long stride_b, const void *beta, void *C, cudaDataType type_c, int ldc,
                           long long stride_c, int count, cublasComputeType_t compute, cublasGemmAlgo_t) {
    CUDA_CPU_HANDLE;
    CUDA_CPU_REQUIRE(count >= 0 && cpu::product_fits(opa, opb, m, n, k, lda, ldb, ldc));
    if (type_a == CUDA_R_64F && type_b == CUDA_R_64F && type_c == CUDA_R_64F &&
        (compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC))
        return cublasDgemmStridedBatched(handle, opa, opb, m, n, k, (const double *)alpha, (const double *)A,
                                         lda, stride_a, (const double *)B, ldb, stride_b,
                                         (const double *)beta, (double *)C, ldc, stride_c, count);
    const bool half = compute == CUBLAS_COMPUTE_16F || compute == CUBLAS_COMPUTE_16F_PEDANTIC;
    if (!cpu::is_real(type_a) || !cpu::is_real(type_b) || !cpu::is_real(type_c) ||
        compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC ||
        compute == CUBLAS_COMPUTE_32I)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    // The scalars have the type of the computation.
    const bool on_device = handle->pointers == CUBLAS_POINTER_MODE_DEVICE;
    const auto scalar = [half](const void *p) { return cpu::load(p, half ? CUDA_R_16F : CUDA_R_32F, 0); };
    const float host_alpha = on_device ? 0 : scalar(alpha), host_beta = on_device ? 0 : scalar(beta);
    return cpu::run(__func__, handle, [=] {
        const float a = on_device ? scalar(alpha) : host_alpha, b = on_device ? scalar(beta) : host_beta;
        const int rows_a = cpu::rows_of(opa, m, k), columns_a = cpu::rows_of(opa, k, m);
        const int rows_b = cpu::rows_of(opb, k, n), columns_b = cpu::rows_of(opb, n, k);
        std::vector<float> product((size_t)m * n);
        for (int which = 0; which < count; which++) {
            const auto fa = cpu::as_float((const char *)A + which * stride_a * cpu::size_of(type_a), type_a,
                                          rows_a, columns_a, lda);
            const auto fb = cpu::as_float((const char *)B + which * stride_b * cpu::size_of(type_b), type_b,
                                          rows_b, columns_b, ldb);
            cblas_sgemm(CblasColMajor, cpu::trans(opa), cpu::trans(opb), m, n, k, a, fa.data(),
                        rows_a ? rows_a : 1, fb.data(), rows_b ? rows_b : 1, 0, product.data(), m ? m : 1);
            char *const c = (char *)C + which * stride_c * cpu::size_of(type_c);
            for (int j = 0; j < n; j++)
                for (int i = 0; i < m; i++) {
                    const size_t at = i + (size_t)j * ldc;
                    cpu::store(c, type_c, at,
                               product[i + (size_t)j * m] + (b == 0 ? 0 : b * cpu::load(c, type_c, at)));
                }
        }
    });
}
static inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb,
                                          int m, int n, int k, const void *alpha, const void *A,
                                          cudaDataType type_a, int lda, const void *B, cudaDataType type_b,
                                          int ldb, const void *beta, void *C, cudaDataType type_c, int ldc,
                                          cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
    return cublasGemmStridedBatchedEx(handle, opa, opb, m, n, k, alpha, A, type_a, lda, 0, B, type_b, ldb, 0,
                                      beta, C, type_c, ldc, 0, 1, compute, algorithm);
}
static inline cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t opa,
                                           cublasOperation_t opb, int m, int n, int k, const float *alpha,
                                           const void *A, cudaDataType type_a, int lda, const void *B,
                                           cudaDataType type_b, int ldb, const float *beta, void *C,
                                           cudaDataType type_c, int ldc) {
    return cublasGemmEx(handle, opa, opb, m, n, k, alpha, A, type_a, lda, B, type_b, ldb, beta, C, type_c,
                        ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

// ---- batches of factorizations ----

// A, B and C are arrays of matrices, all in device memory; each matrix has n pivots, or none where P is null.
#define CUDA_CPU_FACTORS(S, T)                                                                               \
    static inline cublasStatus_t cublas##S##getrfBatched(cublasHandle_t handle, int n, T *const A[],         \
                                                         int lda, int *P, int *info, int count) {            \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(count >= 0 && cpu::fits(n, lda));                                                   \
        return cpu::run(__func__, handle, [=] {                                                              \
            for (int i = 0; i < count; i++)                                                                  \
                info[i] = cuda_cpu::lapack::factorize(n, n, A[i], lda, P ? P + (size_t)i * n : nullptr);     \
        });                                                                                                  \
    }                                                                                                        \
    /* *info is in host memory: 0, or which argument is wrong */                                             \
    static inline cublasStatus_t cublas##S##getrsBatched(                                                    \
        cublasHandle_t handle, cublasOperation_t op, int n, int columns, const T *const A[], int lda,        \
        const int *P, T *const B[], int ldb, int *info, int count) {                                         \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(columns >= 0 && count >= 0 && cpu::fits(n, lda, n, ldb) && info);                   \
        *info = 0;                                                                                           \
        const char letter = op == CUBLAS_OP_N ? 'N' : op == CUBLAS_OP_T ? 'T' : 'C';                         \
        return cpu::run(__func__, handle, [=] {                                                              \
            for (int i = 0; i < count; i++)                                                                  \
                cuda_cpu::lapack::substitute(letter, n, columns, A[i], lda, P ? P + (size_t)i *n : nullptr,  \
                                             B[i], ldb);                                                     \
        });                                                                                                  \
    }                                                                                                        \
    /* The inverse, from L and U */                                                                          \
    static inline cublasStatus_t cublas##S##getriBatched(cublasHandle_t handle, int n, const T *const A[],   \
                                                         int lda, const int *P, T *const C[], int ldc,       \
                                                         int *info, int count) {                             \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_REQUIRE(count >= 0 && cpu::fits(n, lda, n, ldc));                                           \
        return cpu::run(__func__, handle, [=] {                                                              \
            for (int i = 0; i < count; i++) {                                                                \
                info[i] = 0;                                                                                 \
                for (int j = n - 1; j >= 0; j--)                                                             \
                    if (cpu::magnitude(A[i][j + (size_t)j * lda]) == 0)                                      \
                        info[i] = j + 1;                                                                     \
                if (!info[i])                                                                                \
                    cuda_cpu::lapack::invert(n, A[i], lda, P ? P + (size_t)i *n : nullptr, C[i], ldc);       \
            }                                                                                                \
        });                                                                                                  \
    }
CUDA_CPU_FACTORS(S, float)
CUDA_CPU_FACTORS(D, double)
CUDA_CPU_FACTORS(C, cuComplex)
CUDA_CPU_FACTORS(Z, cuDoubleComplex)
#undef CUDA_CPU_FACTORS

// ---- copies between host and device ----

// Elements have `size` bytes. Vectors with increments are copied element by element, as columns of a matrix.
#define CUDA_CPU_COPIES(Set, kind)                                                                           \
    static inline cublasStatus_t cublas##Set##MatrixAsync(int rows, int columns, int size, const void *A,    \
                                                          int lda, void *B, int ldb, cudaStream_t stream) {  \
        namespace cpu = cuda_cpu::blas;                                                                      \
        CUDA_CPU_REQUIRE(size > 0 && columns >= 0 && cpu::fits(rows, lda, rows, ldb));                       \
        return cpu::status_of(cudaMemcpy2DAsync(B, (size_t)ldb * size, A, (size_t)lda * size,                \
                                                (size_t)rows * size, columns, kind, stream));                \
    }                                                                                                        \
    static inline cublasStatus_t cublas##Set##Matrix(int rows, int columns, int size, const void *A,         \
                                                     int lda, void *B, int ldb) {                            \
        namespace cpu = cuda_cpu::blas;                                                                      \
        CUDA_CPU_REQUIRE(size > 0 && columns >= 0 && cpu::fits(rows, lda, rows, ldb));                       \
        return cpu::status_of(                                                                               \
            cudaMemcpy2D(B, (size_t)ldb * size, A, (size_t)lda * size, (size_t)rows * size, columns, kind)); \
    }                                                                                                        \
    static inline cublasStatus_t cublas##Set##VectorAsync(int n, int size, const void *x, int incx, void *y, \
                                                          int incy, cudaStream_t stream) {                   \
        CUDA_CPU_REQUIRE(incx > 0 && incy > 0);                                                              \
        return cublas##Set##MatrixAsync(1, n, size, x, incx, y, incy, stream);                               \
    }                                                                                                        \
    static inline cublasStatus_t cublas##Set##Vector(int n, int size, const void *x, int incx, void *y,      \
                                                     int incy) {                                             \
        CUDA_CPU_REQUIRE(incx > 0 && incy > 0);                                                              \
        return cublas##Set##Matrix(1, n, size, x, incx, y, incy);                                            \
    }
CUDA_CPU_COPIES(Set, cudaMemcpyHostToDevice)
CUDA_CPU_COPIES(Get, cudaMemcpyDeviceToHost)
#undef CUDA_CPU_COPIES
#undef CUDA_CPU_HANDLE
#undef CUDA_CPU_REQUIRE

// The library's own names of the functions that version 2 of the interface has changed
#define cublasCreate_v2         cublasCreate
#define cublasDestroy_v2        cublasDestroy
#define cublasGetVersion_v2     cublasGetVersion
#define cublasSetWorkspace_v2   cublasSetWorkspace
#define cublasSetStream_v2      cublasSetStream
#define cublasGetStream_v2      cublasGetStream
#define cublasGetPointerMode_v2 cublasGetPointerMode
#define cublasSetPointerMode_v2 cublasSetPointerMode
#define cublasSnrm2_v2          cublasSnrm2
#define cublasDnrm2_v2          cublasDnrm2
#define cublasScnrm2_v2         cublasScnrm2
#define cublasDznrm2_v2         cublasDznrm2
#define cublasSdot_v2           cublasSdot
#define cublasDdot_v2           cublasDdot
#define cublasCdotu_v2          cublasCdotu
#define cublasCdotc_v2          cublasCdotc
#define cublasZdotu_v2          cublasZdotu
#define cublasZdotc_v2          cublasZdotc
#define cublasSscal_v2          cublasSscal
#define cublasDscal_v2          cublasDscal
#define cublasCscal_v2          cublasCscal
#define cublasZscal_v2          cublasZscal
#define cublasSaxpy_v2          cublasSaxpy
#define cublasDaxpy_v2          cublasDaxpy
#define cublasCaxpy_v2          cublasCaxpy
#define cublasZaxpy_v2          cublasZaxpy
#define cublasScopy_v2          cublasScopy
#define cublasDcopy_v2          cublasDcopy
#define cublasCcopy_v2          cublasCcopy
#define cublasZcopy_v2          cublasZcopy
#define cublasSswap_v2          cublasSswap
#define cublasDswap_v2          cublasDswap
#define cublasCswap_v2          cublasCswap
#define cublasZswap_v2          cublasZswap
#define cublasIsamax_v2         cublasIsamax
#define cublasIdamax_v2         cublasIdamax
#define cublasIcamax_v2         cublasIcamax
#define cublasIzamax_v2         cublasIzamax
#define cublasIsamin_v2         cublasIsamin
#define cublasIdamin_v2         cublasIdamin
#define cublasIcamin_v2         cublasIcamin
#define cublasIzamin_v2         cublasIzamin
#define cublasSasum_v2          cublasSasum
#define cublasDasum_v2          cublasDasum
#define cublasScasum_v2         cublasScasum
#define cublasDzasum_v2         cublasDzasum
#define cublasSrot_v2           cublasSrot
#define cublasDrot_v2           cublasDrot
#define cublasSgemv_v2          cublasSgemv
#define cublasDgemv_v2          cublasDgemv
#define cublasCgemv_v2          cublasCgemv
#define cublasZgemv_v2          cublasZgemv
#define cublasStrmv_v2          cublasStrmv
#define cublasDtrmv_v2          cublasDtrmv
#define cublasCtrmv_v2          cublasCtrmv
#define cublasZtrmv_v2          cublasZtrmv
#define cublasStrsv_v2          cublasStrsv
#define cublasDtrsv_v2          cublasDtrsv
#define cublasCtrsv_v2          cublasCtrsv
#define cublasZtrsv_v2          cublasZtrsv
#define cublasSsymv_v2          cublasSsymv
#define cublasDsymv_v2          cublasDsymv
#define cublasSger_v2           cublasSger
#define cublasDger_v2           cublasDger
#define cublasSsyr_v2           cublasSsyr
#define cublasDsyr_v2           cublasDsyr
#define cublasSgemm_v2          cublasSgemm
#define cublasDgemm_v2          cublasDgemm
#define cublasCgemm_v2          cublasCgemm
#define cublasZgemm_v2          cublasZgemm
#define cublasSsyrk_v2          cublasSsyrk
#define cublasDsyrk_v2          cublasDsyrk
#define cublasCsyrk_v2          cublasCsyrk
#define cublasZsyrk_v2          cublasZsyrk
#define cublasSsymm_v2          cublasSsymm
#define cublasDsymm_v2          cublasDsymm
#define cublasCsymm_v2          cublasCsymm
#define cublasZsymm_v2          cublasZsymm
#define cublasStrsm_v2          cublasStrsm
#define cublasDtrsm_v2          cublasDtrsm
#define cublasCtrsm_v2          cublasCtrsm
#define cublasZtrsm_v2          cublasZtrsm
#define cublasStrmm_v2          cublasStrmm
#define cublasDtrmm_v2          cublasDtrmm
#define cublasCtrmm_v2          cublasCtrmm
#define cublasZtrmm_v2          cublasZtrmm
#include "cuda_cpu/letters_on.h"
