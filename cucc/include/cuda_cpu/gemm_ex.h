// SPDX-License-Identifier: MIT
// cublasGemmEx and its batches: products of matrices of several types; a part of cublas_v2.h
#pragma once
#include "numbers.h"

namespace cuda_cpu::blas {

CUDA_CPU_RETURN(bool, is_real, (cudaDataType type),
                type == CUDA_R_16F || type == CUDA_R_16BF || type == CUDA_R_32F)
CUDA_CPU_RETURN(size_t, size_of, (cudaDataType type),
                type == CUDA_R_8I                          ? 1
                : type == CUDA_R_32F || type == CUDA_R_32I ? 4
                                                           : 2)
template <class T = float> T load(const void *p, cudaDataType type, size_t i) {
    return type == CUDA_R_32F   ? (T)((const float *)p)[i]
           : type == CUDA_R_32I ? (T)((const int *)p)[i]
           : type == CUDA_R_8I  ? (T)((const signed char *)p)[i]
           : type == CUDA_R_16F ? (T)widen<10>(((const uint16_t *)p)[i])
                                : (T)widen<7>(((const uint16_t *)p)[i]);
}
template <class T> void store(void *p, cudaDataType type, size_t i, T value) {
    if (type == CUDA_R_32F)
        ((float *)p)[i] = (float)value;
    else if (type == CUDA_R_32I)
        ((int *)p)[i] = (int)(long long)value;
    else
        ((uint16_t *)p)[i] = type == CUDA_R_16F ? narrow<10>((float)value, Rounding::nearest)
                                                : narrow<7>((float)value, Rounding::nearest);
}
// Converts a matrix to float or double. The leading dimension of the result is `rows`.
template <class T = float>
std::vector<T> converted(const void *p, cudaDataType type, int rows, int columns, int ld) {
    std::vector<T> matrix((size_t)rows * columns);
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < rows; i++)
            matrix[i + (size_t)j * rows] = load<T>(p, type, i + (size_t)j * ld);
    return matrix;
}

// The type of the computation, also as CUDA 10 had it
struct Compute {
    cublasComputeType_t type;
    Compute(cublasComputeType_t type) : type(type) {}
    Compute(cudaDataType number)
        : type(number == CUDA_R_16F   ? CUBLAS_COMPUTE_16F
               : number == CUDA_R_64F ? CUBLAS_COMPUTE_64F
               : number == CUDA_R_32I ? CUBLAS_COMPUTE_32I
                                      : CUBLAS_COMPUTE_32F) {}
    operator cublasComputeType_t() const { return type; }
};

// The matrices of a batch, of one type: at equal distances, or where an array in device memory says
struct Batch {
    const void *first;
    long long stride;
    const void *const *list;
    cudaDataType type;
    int ld;
    void *at(int which) const {
        return (void *)(list ? list[which] : (const char *)first + which * stride * (long long)size_of(type));
    }
};

// C = alpha op(A) op(B) + beta C for each of a batch, computed in T, with scalars of type `scalars`
template <class T>
cublasStatus_t products(const char *call, cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb,
                        int m, int n, int k, const void *alpha, Batch A, Batch B, const void *beta, Batch C,
                        int count, cudaDataType scalars) {
    const bool on_device = handle->pointers == CUBLAS_POINTER_MODE_DEVICE;
    const T host_alpha = on_device ? 0 : load<T>(alpha, scalars, 0),
            host_beta = on_device ? 0 : load<T>(beta, scalars, 0);
    return run(call, handle, [=] {
        const T a = on_device ? load<T>(alpha, scalars, 0) : host_alpha,
                b = on_device ? load<T>(beta, scalars, 0) : host_beta;
        const int rows_a = rows_of(opa, m, k), rows_b = rows_of(opb, k, n);
        std::vector<T> product((size_t)m * n);
        for (int which = 0; which < count; which++) {
            const auto fa = converted<T>(A.at(which), A.type, rows_a, rows_of(opa, k, m), A.ld);
            const auto fb = converted<T>(B.at(which), B.type, rows_b, rows_of(opb, n, k), B.ld);
            const auto gemm = [&](auto function) {
                function(CblasColMajor, trans(opa), trans(opb), m, n, k, a, fa.data(), rows_a ? rows_a : 1,
                         fb.data(), rows_b ? rows_b : 1, 0, product.data(), m ? m : 1);
            };
            if constexpr (std::is_same_v<T, double>)
                gemm(cblas_dgemm);
            else
                gemm(cblas_sgemm);
            for (int j = 0; j < n; j++)
                for (int i = 0; i < m; i++) {
                    const size_t at = i + (size_t)j * C.ld;
                    store<T>(C.at(which), C.type, at,
                             product[i + (size_t)j * m] +
                                 (b == 0 ? 0 : b * load<T>(C.at(which), C.type, at)));
                }
        }
    });
}

// Finds how products of these types are computed.
inline cublasStatus_t gemm_ex(const char *call, cublasHandle_t handle, cublasOperation_t opa,
                              cublasOperation_t opb, int m, int n, int k, const void *alpha, Batch A, Batch B,
                              const void *beta, Batch C, int count, cublasComputeType_t compute) {
    CUDA_CPU_VALID(count >= 0 && product_fits(opa, opb, m, n, k, A.ld, B.ld, C.ld));
    const bool half = compute == CUBLAS_COMPUTE_16F || compute == CUBLAS_COMPUTE_16F_PEDANTIC,
               whole = compute == CUBLAS_COMPUTE_32I || compute == CUBLAS_COMPUTE_32I_PEDANTIC,
               full = compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC;
    // Sums of products of bytes are exact in double.
    if (A.type == CUDA_R_8I && B.type == CUDA_R_8I && !half && !full &&
        C.type == (whole ? CUDA_R_32I : CUDA_R_32F))
        return products<double>(call, handle, opa, opb, m, n, k, alpha, A, B, beta, C, count, C.type);
    if (!is_real(A.type) || !is_real(B.type) || !is_real(C.type) || whole || full)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return products<float>(call, handle, opa, opb, m, n, k, alpha, A, B, beta, C, count,
                           half ? CUDA_R_16F : CUDA_R_32F);
}

CUDA_CPU_RETURN(bool, in_double, (cudaDataType a, cudaDataType b, cudaDataType c, Compute compute),
                a == CUDA_R_64F && b == a && c == a &&
                    (compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC))

} // namespace cuda_cpu::blas

CUDA_CPU_FUNCTION(GemmStridedBatchedEx, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
                  const void *alpha, const void *A, cudaDataType type_a, int lda, long long stride_a,
                  const void *B, cudaDataType type_b, int ldb, long long stride_b, const void *beta, void *C,
                  cudaDataType type_c, int ldc, long long stride_c, int count,
                  cuda_cpu::blas::Compute compute, cublasGemmAlgo_t) {
    if (cuda_cpu::blas::in_double(type_a, type_b, type_c, compute))
        return cublasDgemmStridedBatched(handle, opa, opb, m, n, k, (const double *)alpha, (const double *)A,
                                         lda, stride_a, (const double *)B, ldb, stride_b,
                                         (const double *)beta, (double *)C, ldc, stride_c, count);
    return cuda_cpu::blas::gemm_ex(__func__, handle, opa, opb, m, n, k, alpha,
                                   {A, stride_a, nullptr, type_a, lda}, {B, stride_b, nullptr, type_b, ldb},
                                   beta, {C, stride_c, nullptr, type_c, ldc}, count, compute);
}
CUDA_CPU_FUNCTION(GemmBatchedEx, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
                  const void *alpha, const void *const A[], cudaDataType type_a, int lda,
                  const void *const B[], cudaDataType type_b, int ldb, const void *beta, void *const C[],
                  cudaDataType type_c, int ldc, int count, cuda_cpu::blas::Compute compute,
                  cublasGemmAlgo_t) {
    if (cuda_cpu::blas::in_double(type_a, type_b, type_c, compute))
        return cublasDgemmBatched(handle, opa, opb, m, n, k, (const double *)alpha, (const double *const *)A,
                                  lda, (const double *const *)B, ldb, (const double *)beta,
                                  (double *const *)C, ldc, count);
    return cuda_cpu::blas::gemm_ex(__func__, handle, opa, opb, m, n, k, alpha, {nullptr, 0, A, type_a, lda},
                                   {nullptr, 0, B, type_b, ldb}, beta, {nullptr, 0, C, type_c, ldc}, count,
                                   compute);
}
CUDA_CPU_FUNCTION(GemmEx, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
                  const void *alpha, const void *A, cudaDataType type_a, int lda, const void *B,
                  cudaDataType type_b, int ldb, const void *beta, void *C, cudaDataType type_c, int ldc,
                  cuda_cpu::blas::Compute compute, cublasGemmAlgo_t algorithm) {
    return cublasGemmStridedBatchedEx(handle, opa, opb, m, n, k, alpha, A, type_a, lda, 0, B, type_b, ldb, 0,
                                      beta, C, type_c, ldc, 0, 1, compute, algorithm);
}

CUDA_CPU_FUNCTION(Hgemm, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
                  const __half *alpha, const __half *A, int lda, const __half *B, int ldb, const __half *beta,
                  __half *C, int ldc) {
    return cublasGemmEx(handle, opa, opb, m, n, k, alpha, A, CUDA_R_16F, lda, B, CUDA_R_16F, ldb, beta, C,
                        CUDA_R_16F, ldc, CUBLAS_COMPUTE_16F, CUBLAS_GEMM_DEFAULT);
}
CUDA_CPU_FUNCTION(HgemmStridedBatched, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
                  const __half *alpha, const __half *A, int lda, long long stride_a, const __half *B, int ldb,
                  long long stride_b, const __half *beta, __half *C, int ldc, long long stride_c, int count) {
    return cublasGemmStridedBatchedEx(handle, opa, opb, m, n, k, alpha, A, CUDA_R_16F, lda, stride_a, B,
                                      CUDA_R_16F, ldb, stride_b, beta, C, CUDA_R_16F, ldc, stride_c, count,
                                      CUBLAS_COMPUTE_16F, CUBLAS_GEMM_DEFAULT);
}
CUDA_CPU_FUNCTION(HgemmBatched, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
                  const __half *alpha, const __half *const A[], int lda, const __half *const B[], int ldb,
                  const __half *beta, __half *const C[], int ldc, int count) {
    return cublasGemmBatchedEx(handle, opa, opb, m, n, k, alpha, (const void *const *)A, CUDA_R_16F, lda,
                               (const void *const *)B, CUDA_R_16F, ldb, beta, (void *const *)C, CUDA_R_16F,
                               ldc, count, CUBLAS_COMPUTE_16F, CUBLAS_GEMM_DEFAULT);
}
CUDA_CPU_FUNCTION(SgemmEx, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
                  const float *alpha, const void *A, cudaDataType type_a, int lda, const void *B,
                  cudaDataType type_b, int ldb, const float *beta, void *C, cudaDataType type_c, int ldc) {
    return cublasGemmEx(handle, opa, opb, m, n, k, alpha, A, type_a, lda, B, type_b, ldb, beta, C, type_c,
                        ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

// The inner product of two vectors of one type; all three types are the same. The sum is in double: in
// float, adding one term after the other, small terms would be lost. cuBLAS adds the partial sums of threads.
CUDA_CPU_FUNCTION(DotEx, int n, const void *x, cudaDataType type_x, int incx, const void *y,
                  cudaDataType type_y, int incy, void *result, cudaDataType type_result,
                  cudaDataType compute) {
    if (type_x == CUDA_R_64F && type_y == type_x && type_result == type_x && compute == type_x)
        return cublasDdot(handle, n, (const double *)x, incx, (const double *)y, incy, (double *)result);
    if (!cuda_cpu::blas::is_real(type_x) || type_y != type_x || type_result != type_x ||
        compute != CUDA_R_32F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return cuda_cpu::blas::status_of(cuda_cpu::library_call(
        __func__, handle->stream,
        [=] {
            double sum = 0;
            for (int64_t i = 0; i < n; i++)
                sum += cuda_cpu::blas::load(x, type_x, incx < 0 ? (i + 1 - n) * incx : i * incx) *
                       cuda_cpu::blas::load(y, type_x, incy < 0 ? (i + 1 - n) * incy : i * incy);
            cuda_cpu::blas::store(result, type_x, 0, (float)sum);
        },
        handle->pointers == CUBLAS_POINTER_MODE_HOST));
}
