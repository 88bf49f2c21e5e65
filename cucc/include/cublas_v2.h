// SPDX-License-Identifier: MIT
// cuBLAS by OpenBLAS (docs/libraries.md says what there is). Matrices are stored by columns, as in cuBLAS.
// The functions check sizes and leading dimensions, and do their work in the order of the stream. A name
// with _v2 is the same function.
#pragma once
#define CUBLAS_API_H_
#define CUBLAS_V2_H_
#ifndef __cplusplus
#error "cublas_v2.h: the CPU back end has it for C++ only"
#endif
#if !__has_include(<cblas.h>)
#error "cublas_v2.h: the CPU back end has cuBLAS by OpenBLAS: install libopenblas-dev"
#endif
#include "cuda_cpu/letters_off.h"
#include <cblas.h>
#include <cmath>
#include <cstring>
#include <type_traits>
#include "cuComplex.h"
#include "cuda_bf16.h"
#include "cuda_cpu/lapack.h"
#include "cuda_cpu/library.h"
#include "library_types.h"

// clang-format off
#define CUDA_CPU_STATUSES(X) \
    X(SUCCESS, 0) X(NOT_INITIALIZED, 1) X(ALLOC_FAILED, 3) X(INVALID_VALUE, 7) X(ARCH_MISMATCH, 8) \
    X(MAPPING_ERROR, 11) X(EXECUTION_FAILED, 13) X(INTERNAL_ERROR, 14) X(NOT_SUPPORTED, 15) \
    X(LICENSE_ERROR, 16)
// clang-format on
#define CUDA_CPU_STATUS(name, value) CUBLAS_STATUS_##name = value,
typedef enum { CUDA_CPU_STATUSES(CUDA_CPU_STATUS) } cublasStatus_t;
#undef CUDA_CPU_STATUS
typedef cublasStatus_t cublasStatus;

typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2, CUBLAS_OP_HERMITAN = 2 } cublasOperation_t;
typedef enum { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1 } cublasFillMode_t;
typedef enum { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 } cublasDiagType_t;
typedef enum { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 } cublasSideMode_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;
typedef enum { CUBLAS_ATOMICS_NOT_ALLOWED = 0, CUBLAS_ATOMICS_ALLOWED = 1 } cublasAtomicsMode_t;
// clang-format off
typedef enum {
    CUBLAS_DEFAULT_MATH = 0, CUBLAS_TENSOR_OP_MATH, CUBLAS_PEDANTIC_MATH, CUBLAS_TF32_TENSOR_OP_MATH
} cublasMath_t;
typedef enum {
    CUBLAS_COMPUTE_16F = 64, CUBLAS_COMPUTE_16F_PEDANTIC = 65, CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_PEDANTIC = 69, CUBLAS_COMPUTE_64F = 70, CUBLAS_COMPUTE_64F_PEDANTIC = 71,
    CUBLAS_COMPUTE_32I = 72, CUBLAS_COMPUTE_32I_PEDANTIC = 73, CUBLAS_COMPUTE_32F_FAST_16F = 74,
    CUBLAS_COMPUTE_32F_FAST_16BF = 75, CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;
typedef enum {
    CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DFALT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99
} cublasGemmAlgo_t;
// clang-format on
typedef cudaDataType cublasDataType_t;

// The settings that apply to calls with this handle.
struct cublasContext {
    cudaStream_t stream = nullptr;
    cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST; // memory of scalars and results
    cublasMath_t math = CUBLAS_DEFAULT_MATH;
    cublasAtomicsMode_t atomics = CUBLAS_ATOMICS_NOT_ALLOWED;
};
typedef struct cublasContext *cublasHandle_t;

// ---- how the calls work ----

namespace cuda_cpu::blas {

CUDA_CPU_RETURN(cublasStatus_t, status_of, (cudaError_t error),
                error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED)

// A scalar argument. One in host memory is read by the call, one in device memory when the work runs.
template <class T> struct Scalar {
    const T *const device;
    const T value;
    Scalar(cublasHandle_t handle, const T *p)
        : device(handle->pointers == CUBLAS_POINTER_MODE_DEVICE ? p : nullptr), value(device ? T() : *p) {}
    T operator*() const { return device ? *device : value; }
    // As an argument of CBLAS: real numbers are passed by value and complex ones by address.
    auto operator()() const {
        if constexpr (std::is_floating_point_v<T>)
            return **this;
        else
            return device ? device : &value;
    }
};

template <class Work> cublasStatus_t run(const char *call, cublasHandle_t handle, Work work) {
    return status_of(library_call(call, handle->stream, work));
}
// Like run() for a function with a result, which work() returns. A result in host memory is valid on return.
template <class T, class Work>
cublasStatus_t run_for(const char *call, cublasHandle_t handle, T *result, Work work) {
    const bool on_host = handle->pointers == CUBLAS_POINTER_MODE_HOST;
    return status_of(library_call(
        call, handle->stream, [=] { *result = work(); }, on_host));
}

inline CBLAS_TRANSPOSE trans(cublasOperation_t o) {
    return o == CUBLAS_OP_N ? CblasNoTrans : o == CUBLAS_OP_T ? CblasTrans : CblasConjTrans;
}
CUDA_CPU_RETURN(CBLAS_UPLO, uplo, (cublasFillMode_t f), f == CUBLAS_FILL_MODE_LOWER ? CblasLower : CblasUpper)
CUDA_CPU_RETURN(CBLAS_DIAG, diag, (cublasDiagType_t d), d == CUBLAS_DIAG_UNIT ? CblasUnit : CblasNonUnit)
CUDA_CPU_RETURN(CBLAS_SIDE, side, (cublasSideMode_t s), s == CUBLAS_SIDE_LEFT ? CblasLeft : CblasRight)

// Checks the leading dimension of a matrix with `rows` rows, and of further ones.
CUDA_CPU_RETURN(bool, fits, (int64_t rows, int64_t ld), rows >= 0 && ld >= 1 && ld >= rows)
template <class... More> bool fits(int64_t rows, int64_t ld, More... more) {
    return fits(rows, ld) && fits(more...);
}
// The rows of a matrix in memory whose op() has m rows and n columns
CUDA_CPU_RETURN(int, rows_of, (cublasOperation_t op, int m, int n), op == CUBLAS_OP_N ? m : n)
// The rows of a square matrix that an m x n one is multiplied with
CUDA_CPU_RETURN(int, rows_of, (cublasSideMode_t side, int m, int n), side == CUBLAS_SIDE_LEFT ? m : n)
inline bool product_fits(cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k, int lda, int ldb,
                         int ldc) {
    return n >= 0 && k >= 0 && fits(rows_of(opa, m, k), lda, rows_of(opb, k, n), ldb, m, ldc);
}

template <class T> auto magnitude(T x) {
    if constexpr (std::is_floating_point_v<T>)
        return std::fabs(x);
    else
        return std::fabs(x.x) + std::fabs(x.y);
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

} // namespace cuda_cpu::blas

// ---- settings ----

// A function, also by its name in version 2 of the interface
#define CUDA_CPU_V2(name, ...)                                                                               \
    static inline cublasStatus_t name(__VA_ARGS__);                                                          \
    [[maybe_unused]] static constexpr auto &name##_v2 = name;                                                \
    static inline cublasStatus_t name(__VA_ARGS__)
#define CUDA_CPU_FUNCTION(name, ...) CUDA_CPU_V2(cublas##name, cublasHandle_t handle, __VA_ARGS__)
#define CUDA_CPU_LIBRARY             blas
#define CUDA_CPU_RESULT(name)        CUBLAS_STATUS_##name

CUDA_CPU_HANDLES(CUDA_CPU_V2, cublas, cublasContext)
CUDA_CPU_SETTING(CUDA_CPU_FUNCTION, Stream, cudaStream_t, stream)
CUDA_CPU_SETTING(CUDA_CPU_FUNCTION, PointerMode, cublasPointerMode_t, pointers)
CUDA_CPU_SETTING(CUDA_CPU_FUNCTION, MathMode, cublasMath_t, math)
CUDA_CPU_SETTING(CUDA_CPU_FUNCTION, AtomicsMode, cublasAtomicsMode_t, atomics)
CUDA_CPU_FUNCTION(SetWorkspace, void *, size_t) {
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
CUDA_CPU_V2(cublasGetVersion, cublasHandle_t, int *version) {
    *version = 130000; // the interface is that of CUDA 13.0
    return CUBLAS_STATUS_SUCCESS;
}
static inline const char *cublasGetStatusName(cublasStatus_t status) {
    switch (status) {
#define CUDA_CPU_NAME(name, value)                                                                           \
    case value:                                                                                              \
        return "CUBLAS_STATUS_" #name;
        CUDA_CPU_STATUSES(CUDA_CPU_NAME)
#undef CUDA_CPU_NAME
#undef CUDA_CPU_STATUSES
    }
    return "CUBLAS_STATUS_UNKNOWN";
}
CUDA_CPU_RETURN(const char *, cublasGetStatusString, (cublasStatus_t status), cublasGetStatusName(status))

#define CUDA_CPU_RUN(...) return cpu::run(__func__, handle, [=] { __VA_ARGS__; })
// For the vectors x and y: calls of CBLAS for the m numbers of a part of each
#define CUDA_CPU_RUN_IN_PARTS(...)                                                                           \
    CUDA_CPU_RUN(cpu::in_parts(n, x, incx, y, incy, [&](int m, auto *x, auto *y) { __VA_ARGS__; }))

// Each function of level 1 also exists with 64-bit numbers.
#define CUDA_CPU_BOTH(MACRO, ...)                                                                            \
    MACRO(, int, __VA_ARGS__)                                                                                \
    MACRO(_64, int64_t, __VA_ARGS__)

// ---- level 1 ----

// Functions with a result. `total` is that of the parts before, 0 for the first one.
#define CUDA_CPU_TOTAL(T, ...)                                                                               \
    CUDA_CPU_HANDLE;                                                                                         \
    return cpu::run_for(__func__, handle, result, [=] {                                                      \
        T total = 0;                                                                                         \
        cpu::in_parts(n, [&](int64_t i, int m) { total = __VA_ARGS__; });                                    \
        return total;                                                                                        \
    })
// The norms of a vector of T, of which R is the real type
#define CUDA_CPU_NORMS(suffix, integer, S, s, T, R)                                                          \
    CUDA_CPU_FUNCTION(S##asum##suffix, integer n, const T *x, integer incx, R *result) {                     \
        CUDA_CPU_TOTAL(R, total + cblas_##s##asum(m, x + i * incx, incx));                                   \
    }                                                                                                        \
    CUDA_CPU_FUNCTION(S##nrm2##suffix, integer n, const T *x, integer incx, R *result) {                     \
        CUDA_CPU_TOTAL(R, std::hypot(total, cblas_##s##nrm2(m, x + i * incx, incx)));                        \
    }
#define CUDA_CPU_DOT(suffix, integer, S, s, T)                                                               \
    CUDA_CPU_FUNCTION(S##dot##suffix, integer n, const T *x, integer incx, const T *y, integer incy,         \
                      T *result) {                                                                           \
        CUDA_CPU_TOTAL(T, total + cblas_##s##dot(m, cpu::part(x, n, incx, i, m), incx,                       \
                                                 cpu::part(y, n, incy, i, m), incy));                        \
    }                                                                                                        \
    CUDA_CPU_FUNCTION(S##rot##suffix, integer n, T *x, integer incx, T *y, integer incy, const T *c,         \
                      const T *sine) {                                                                       \
        CUDA_CPU_HANDLE;                                                                                     \
        const cpu::Scalar<T> cosine(handle, c), sin(handle, sine);                                           \
        CUDA_CPU_RUN_IN_PARTS(cblas_##s##rot(m, x, incx, y, incy, *cosine, *sin));                           \
    }

#define CUDA_CPU_AXPY(suffix, integer, S, s, T)                                                              \
    CUDA_CPU_FUNCTION(S##axpy##suffix, integer n, const T *alpha, const T *x, integer incx, T *y,            \
                      integer incy) {                                                                        \
        CUDA_CPU_HANDLE;                                                                                     \
        const cpu::Scalar<T> scale(handle, alpha);                                                           \
        CUDA_CPU_RUN_IN_PARTS(cblas_##s##axpy(m, scale(), x, incx, y, incy));                                \
    }                                                                                                        \
    CUDA_CPU_FUNCTION(S##scal##suffix, integer n, const T *alpha, T *x, integer incx) {                      \
        CUDA_CPU_HANDLE;                                                                                     \
        const cpu::Scalar<T> scale(handle, alpha);                                                           \
        CUDA_CPU_RUN(                                                                                        \
            cpu::in_parts(n, [&](int64_t i, int m) { cblas_##s##scal(m, scale(), x + i * incx, incx); }));   \
    }                                                                                                        \
    CUDA_CPU_FUNCTION(S##copy##suffix, integer n, const T *x, integer incx, T *y, integer incy) {            \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_RUN_IN_PARTS(cblas_##s##copy(m, x, incx, y, incy));                                         \
    }                                                                                                        \
    CUDA_CPU_FUNCTION(S##swap##suffix, integer n, T *x, integer incx, T *y, integer incy) {                  \
        CUDA_CPU_HANDLE;                                                                                     \
        CUDA_CPU_RUN_IN_PARTS(cblas_##s##swap(m, x, incx, y, incy));                                         \
    }

// The index, from 1, of the first element with the largest or smallest magnitude; 0 if there are no elements.
#define CUDA_CPU_INDEX(suffix, integer, S, T, amax, BETTER)                                                  \
    CUDA_CPU_FUNCTION(I##S##amax##suffix, integer n, const T *x, integer incx, integer *result) {            \
        CUDA_CPU_HANDLE;                                                                                     \
        return cpu::run_for(__func__, handle, result, [=] {                                                  \
            integer best = 0;                                                                                \
            for (integer i = 1; i < n && incx > 0; i++)                                                      \
                if (cpu::magnitude(x[i * incx]) BETTER cpu::magnitude(x[best * incx]))                       \
                    best = i;                                                                                \
            return n > 0 && incx > 0 ? best + 1 : 0;                                                         \
        });                                                                                                  \
    }

#define CUDA_CPU_LEVEL1(S, s, T)                                                                             \
    CUDA_CPU_BOTH(CUDA_CPU_AXPY, S, s, T)                                                                    \
    CUDA_CPU_BOTH(CUDA_CPU_INDEX, s, T, amax, >)                                                             \
    CUDA_CPU_BOTH(CUDA_CPU_INDEX, s, T, amin, <)
CUDA_CPU_LEVEL1(S, s, float)
CUDA_CPU_LEVEL1(D, d, double)
CUDA_CPU_LEVEL1(C, c, cuComplex)
CUDA_CPU_LEVEL1(Z, z, cuDoubleComplex)
CUDA_CPU_BOTH(CUDA_CPU_DOT, S, s, float)
CUDA_CPU_BOTH(CUDA_CPU_DOT, D, d, double)
CUDA_CPU_BOTH(CUDA_CPU_NORMS, S, s, float, float)
CUDA_CPU_BOTH(CUDA_CPU_NORMS, D, d, double, double)
CUDA_CPU_BOTH(CUDA_CPU_NORMS, Sc, sc, cuComplex, float)
CUDA_CPU_BOTH(CUDA_CPU_NORMS, Dz, dz, cuDoubleComplex, double)
#undef CUDA_CPU_DOT
#undef CUDA_CPU_BOTH

#define CUDA_CPU_COMPLEX_DOT(C, c, T, dotu)                                                                  \
    CUDA_CPU_FUNCTION(C##dotu, int n, const T *x, int incx, const T *y, int incy, T *result) {               \
        CUDA_CPU_HANDLE;                                                                                     \
        return cpu::run_for(__func__, handle, result, [=] {                                                  \
            T sum;                                                                                           \
            cblas_##c##dotu##_sub(n, x, incx, y, incy, &sum);                                                \
            return sum;                                                                                      \
        });                                                                                                  \
    }
CUDA_CPU_COMPLEX_DOT(C, c, cuComplex, dotu)
CUDA_CPU_COMPLEX_DOT(C, c, cuComplex, dotc)
CUDA_CPU_COMPLEX_DOT(Z, z, cuDoubleComplex, dotu)
CUDA_CPU_COMPLEX_DOT(Z, z, cuDoubleComplex, dotc)

// ---- levels 2 and 3 ----

// x = op(A) x, or the solution of op(A) x = x, with a triangular matrix
#define CUDA_CPU_TRIANGLE(S, s, T, trmv)                                                                     \
    CUDA_CPU_FUNCTION(S##trmv, cublasFillMode_t fill, cublasOperation_t op, cublasDiagType_t diagonal,       \
                      int n, const T *A, int lda, T *x, int incx) {                                          \
        CUDA_CPU_VALID(cpu::fits(n, lda) && incx);                                                           \
        CUDA_CPU_RUN(cblas_##s##trmv(CblasColMajor, cpu::uplo(fill), cpu::trans(op), cpu::diag(diagonal), n, \
                                     A, lda, x, incx));                                                      \
    }

// The body of a function for a batch of `count` matrix products c = alpha op(a) op(b) + beta c. a, b and c
// are expressions with the index i of the product.
#define CUDA_CPU_PRODUCTS(s, T, count, a, b, c)                                                              \
    CUDA_CPU_VALID(count >= 0 && cpu::product_fits(opa, opb, m, n, k, lda, ldb, ldc));                       \
    const cpu::Scalar<T> scale(handle, alpha), old(handle, beta);                                            \
    return cpu::run(__func__, handle, [=] {                                                                  \
        for (int i = 0; i < count; i++)                                                                      \
            cblas_##s##gemm(CblasColMajor, cpu::trans(opa), cpu::trans(opb), m, n, k, scale(), a, lda, b,    \
                            ldb, old(), c, ldc);                                                             \
    })

#define CUDA_CPU_MATRIX(S, s, T)                                                                             \
    CUDA_CPU_TRIANGLE(S, s, T, trmv)                                                                         \
    CUDA_CPU_TRIANGLE(S, s, T, trsv)                                                                         \
    CUDA_CPU_FUNCTION(S##gemv, cublasOperation_t op, int m, int n, const T *alpha, const T *A, int lda,      \
                      const T *x, int incx, const T *beta, T *y, int incy) {                                 \
        CUDA_CPU_VALID(n >= 0 && cpu::fits(m, lda) && incx && incy);                                         \
        const cpu::Scalar<T> scale(handle, alpha), old(handle, beta);                                        \
        CUDA_CPU_RUN(                                                                                        \
            cblas_##s##gemv(CblasColMajor, cpu::trans(op), m, n, scale(), A, lda, x, incx, old(), y, incy)); \
    }                                                                                                        \
    CUDA_CPU_FUNCTION(S##gemm, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,            \
                      const T *alpha, const T *A, int lda, const T *B, int ldb, const T *beta, T *C,         \
                      int ldc) {                                                                             \
        CUDA_CPU_PRODUCTS(s, T, 1, A, B, C);                                                                 \
    }                                                                                                        \
    CUDA_CPU_FUNCTION(S##gemmStridedBatched, cublasOperation_t opa, cublasOperation_t opb, int m, int n,     \
                      int k, const T *alpha, const T *A, int lda, long long stride_a, const T *B, int ldb,   \
                      long long stride_b, const T *beta, T *C, int ldc, long long stride_c, int count) {     \
        CUDA_CPU_PRODUCTS(s, T, count, A + i * stride_a, B + i * stride_b, C + i * stride_c);                \
    }                                                                                                        \
    CUDA_CPU_FUNCTION(S##gemmBatched, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,     \
                      const T *alpha, const T *const A[], int lda, const T *const B[], int ldb,              \
                      const T *beta, T *const C[], int ldc, int count) {                                     \
        CUDA_CPU_PRODUCTS(s, T, count, A[i], B[i], C[i]);                                                    \
    }                                                                                                        \
    CUDA_CPU_FUNCTION(S##symm, cublasSideMode_t side, cublasFillMode_t fill, int m, int n, const T *alpha,   \
                      const T *A, int lda, const T *B, int ldb, const T *beta, T *C, int ldc) {              \
        CUDA_CPU_VALID(n >= 0 && cpu::fits(cpu::rows_of(side, m, n), lda, m, ldb, m, ldc));                  \
        const cpu::Scalar<T> scale(handle, alpha), old(handle, beta);                                        \
        CUDA_CPU_RUN(cblas_##s##symm(CblasColMajor, cpu::side(side), cpu::uplo(fill), m, n, scale(), A, lda, \
                                     B, ldb, old(), C, ldc));                                                \
    }                                                                                                        \
    CUDA_CPU_FUNCTION(S##syrk, cublasFillMode_t fill, cublasOperation_t op, int n, int k, const T *alpha,    \
                      const T *A, int lda, const T *beta, T *C, int ldc) {                                   \
        CUDA_CPU_VALID(k >= 0 && cpu::fits(cpu::rows_of(op, n, k), lda, n, ldc));                            \
        const cpu::Scalar<T> scale(handle, alpha), old(handle, beta);                                        \
        CUDA_CPU_RUN(cblas_##s##syrk(CblasColMajor, cpu::uplo(fill), cpu::trans(op), n, k, scale(), A, lda,  \
                                     old(), C, ldc));                                                        \
    }                                                                                                        \
    /* BLAS multiplies in place; cuBLAS writes the product to C, which may be B. */                          \
    CUDA_CPU_FUNCTION(S##trmm, cublasSideMode_t side, cublasFillMode_t fill, cublasOperation_t op,           \
                      cublasDiagType_t diagonal, int m, int n, const T *alpha, const T *A, int lda,          \
                      const T *B, int ldb, T *C, int ldc) {                                                  \
        CUDA_CPU_VALID(n >= 0 && cpu::fits(cpu::rows_of(side, m, n), lda, m, ldb, m, ldc));                  \
        const cpu::Scalar<T> scale(handle, alpha);                                                           \
        return cpu::run(__func__, handle, [=] {                                                              \
            for (int j = 0; j < n && (C != B || ldc != ldb); j++)                                            \
                std::memmove(C + (size_t)j * ldc, B + (size_t)j * ldb, m * sizeof(T));                       \
            cblas_##s##trmm(CblasColMajor, cpu::side(side), cpu::uplo(fill), cpu::trans(op),                 \
                            cpu::diag(diagonal), m, n, scale(), A, lda, C, ldc);                             \
        });                                                                                                  \
    }                                                                                                        \
    CUDA_CPU_FUNCTION(S##trsm, cublasSideMode_t side, cublasFillMode_t fill, cublasOperation_t op,           \
                      cublasDiagType_t diagonal, int m, int n, const T *alpha, const T *A, int lda, T *B,    \
                      int ldb) {                                                                             \
        CUDA_CPU_VALID(n >= 0 && cpu::fits(cpu::rows_of(side, m, n), lda, m, ldb));                          \
        const cpu::Scalar<T> scale(handle, alpha);                                                           \
        CUDA_CPU_RUN(cblas_##s##trsm(CblasColMajor, cpu::side(side), cpu::uplo(fill), cpu::trans(op),        \
                                     cpu::diag(diagonal), m, n, scale(), A, lda, B, ldb));                   \
    }
CUDA_CPU_MATRIX(S, s, float)
CUDA_CPU_MATRIX(D, d, double)
CUDA_CPU_MATRIX(C, c, cuComplex)
CUDA_CPU_MATRIX(Z, z, cuDoubleComplex)

#define CUDA_CPU_REAL_MATRIX(S, s, T)                                                                        \
    CUDA_CPU_FUNCTION(S##ger, int m, int n, const T *alpha, const T *x, int incx, const T *y, int incy,      \
                      T *A, int lda) {                                                                       \
        CUDA_CPU_VALID(n >= 0 && cpu::fits(m, lda) && incx && incy);                                         \
        const cpu::Scalar<T> scale(handle, alpha);                                                           \
        CUDA_CPU_RUN(cblas_##s##ger(CblasColMajor, m, n, *scale, x, incx, y, incy, A, lda));                 \
    }                                                                                                        \
    CUDA_CPU_FUNCTION(S##symv, cublasFillMode_t fill, int n, const T *alpha, const T *A, int lda,            \
                      const T *x, int incx, const T *beta, T *y, int incy) {                                 \
        CUDA_CPU_VALID(cpu::fits(n, lda) && incx && incy);                                                   \
        const cpu::Scalar<T> scale(handle, alpha), old(handle, beta);                                        \
        CUDA_CPU_RUN(                                                                                        \
            cblas_##s##symv(CblasColMajor, cpu::uplo(fill), n, *scale, A, lda, x, incx, *old, y, incy));     \
    }                                                                                                        \
    CUDA_CPU_FUNCTION(S##syr, cublasFillMode_t fill, int n, const T *alpha, const T *x, int incx, T *A,      \
                      int lda) {                                                                             \
        CUDA_CPU_VALID(cpu::fits(n, lda) && incx);                                                           \
        const cpu::Scalar<T> scale(handle, alpha);                                                           \
        CUDA_CPU_RUN(cblas_##s##syr(CblasColMajor, cpu::uplo(fill), n, *scale, x, incx, A, lda));            \
    }                                                                                                        \
    /* C = alpha op(A) + beta op(B), where a matrix with the factor 0 is not read */                         \
    CUDA_CPU_FUNCTION(S##geam, cublasOperation_t opa, cublasOperation_t opb, int m, int n, const T *alpha,   \
                      const T *A, int lda, const T *beta, const T *B, int ldb, T *C, int ldc) {              \
        CUDA_CPU_VALID(m >= 0 && n >= 0 &&                                                                   \
                       cpu::fits(cpu::rows_of(opa, m, n), lda, cpu::rows_of(opb, m, n), ldb, m, ldc));       \
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
    CUDA_CPU_FUNCTION(S##dgmm, cublasSideMode_t side, int m, int n, const T *A, int lda, const T *x,         \
                      int incx, T *C, int ldc) {                                                             \
        CUDA_CPU_VALID(n >= 0 && cpu::fits(m, lda, m, ldc));                                                 \
        return cpu::run(__func__, handle, [=] {                                                              \
            const T *const first = incx < 0 ? x - (ptrdiff_t)(cpu::rows_of(side, m, n) - 1) * incx : x;      \
            for (int j = 0; j < n; j++)                                                                      \
                for (int i = 0; i < m; i++)                                                                  \
                    C[i + (size_t)j * ldc] = A[i + (size_t)j * lda] *                                        \
                                             first[(ptrdiff_t)(side == CUBLAS_SIDE_LEFT ? i : j) * incx];    \
        });                                                                                                  \
    }
CUDA_CPU_REAL_MATRIX(S, s, float)
CUDA_CPU_REAL_MATRIX(D, d, double)

#include "cuda_cpu/gemm_ex.h"

// ---- batches of factorizations ----

// A is an array of matrices, all in device memory; each matrix has n pivots, or none where P is null.
#define CUDA_CPU_FACTORS(S, T)                                                                               \
    CUDA_CPU_FUNCTION(S##getrfBatched, int n, T *const A[], int lda, int *P, int *info, int count) {         \
        CUDA_CPU_VALID(count >= 0 && cpu::fits(n, lda));                                                     \
        return cpu::run(__func__, handle, [=] {                                                              \
            for (int i = 0; i < count; i++)                                                                  \
                info[i] = cuda_cpu::lapack::factorize(n, n, A[i], lda, P ? P + (size_t)i * n : nullptr);     \
        });                                                                                                  \
    }
CUDA_CPU_FACTORS(S, float)
CUDA_CPU_FACTORS(D, double)
CUDA_CPU_FACTORS(C, cuComplex)
CUDA_CPU_FACTORS(Z, cuDoubleComplex)

// ---- copies between host and device ----

// Elements have `size` bytes. Vectors with increments are copied element by element, as columns of a matrix.
// The functions with Async in their names have a stream as their last parameter.
#define CUDA_CPU_COPIES(Set, Async, kind, STREAM, stream)                                                    \
    static inline cublasStatus_t cublas##Set##Matrix##Async(                                                 \
        int rows, int columns, int size, const void *A, int lda, void *B, int ldb CUDA_CPU_LIST STREAM) {    \
        namespace cpu = cuda_cpu::blas;                                                                      \
        CUDA_CPU_REQUIRE(size > 0 && columns >= 0 && cpu::fits(rows, lda, rows, ldb));                       \
        return cpu::status_of(cudaMemcpy2D##Async(B, (size_t)ldb * size, A, (size_t)lda * size,              \
                                                  (size_t)rows * size, columns, kind CUDA_CPU_LIST stream)); \
    }                                                                                                        \
    static inline cublasStatus_t cublas##Set##Vector##Async(int n, int size, const void *x, int incx,        \
                                                            void *y, int incy CUDA_CPU_LIST STREAM) {        \
        CUDA_CPU_REQUIRE(incx > 0 && incy > 0);                                                              \
        return cublas##Set##Matrix##Async(1, n, size, x, incx, y, incy CUDA_CPU_LIST stream);                \
    }
CUDA_CPU_COPIES(Set, , cudaMemcpyHostToDevice, (), ())
CUDA_CPU_COPIES(Get, , cudaMemcpyDeviceToHost, (), ())
CUDA_CPU_COPIES(Set, Async, cudaMemcpyHostToDevice, (, cudaStream_t stream), (, stream))
CUDA_CPU_COPIES(Get, Async, cudaMemcpyDeviceToHost, (, cudaStream_t stream), (, stream))
#undef CUDA_CPU_LIBRARY
#undef CUDA_CPU_FUNCTION
#undef CUDA_CPU_RESULT

#include "cuda_cpu/letters_on.h"
