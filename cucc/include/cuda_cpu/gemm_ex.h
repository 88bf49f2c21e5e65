// SPDX-License-Identifier: MIT
// cublasGemmEx and its batches: products of matrices of several types; a part of cublas_v2.h
#pragma once
#include "numbers.h"

namespace cuda_cpu {
namespace blas {

inline bool is_real(cudaDataType type) {
    return type == CUDA_R_16F || type == CUDA_R_16BF || type == CUDA_R_32F;
}
CUDA_CPU_RETURN(size_t, size_of, (cudaDataType type), type == CUDA_R_32F ? 4 : 2)
inline float load(const void *p, cudaDataType type, size_t i) {
    return type == CUDA_R_32F   ? ((const float *)p)[i]
           : type == CUDA_R_16F ? widen<10>(((const uint16_t *)p)[i])
                                : widen<7>(((const uint16_t *)p)[i]);
}
inline void store(void *p, cudaDataType type, size_t i, float value) {
    if (type == CUDA_R_32F)
        ((float *)p)[i] = value;
    else
        ((uint16_t *)p)[i] =
            type == CUDA_R_16F ? narrow<10>(value, Rounding::nearest) : narrow<7>(value, Rounding::nearest);
}
// Converts a matrix to float. The leading dimension of the result is `rows`.
inline std::vector<float> as_float(const void *p, cudaDataType type, int rows, int columns, int ld) {
    std::vector<float> matrix((size_t)rows * columns);
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < rows; i++)
            matrix[i + (size_t)j * rows] = load(p, type, i + (size_t)j * ld);
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

} // namespace blas
} // namespace cuda_cpu

CUDA_CPU_FUNCTION(GemmStridedBatchedEx, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
                  const void *alpha, const void *A, cudaDataType type_a, int lda, long long stride_a,
                  const void *B, cudaDataType type_b, int ldb, long long stride_b, const void *beta, void *C,
                  cudaDataType type_c, int ldc, long long stride_c, int count,
                  cuda_cpu::blas::Compute compute, cublasGemmAlgo_t) {
    CUDA_CPU_VALID(count >= 0 && cpu::product_fits(opa, opb, m, n, k, lda, ldb, ldc));
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
CUDA_CPU_FUNCTION(SgemmEx, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
                  const float *alpha, const void *A, cudaDataType type_a, int lda, const void *B,
                  cudaDataType type_b, int ldb, const float *beta, void *C, cudaDataType type_c, int ldc) {
    return cublasGemmEx(handle, opa, opb, m, n, k, alpha, A, type_a, lda, B, type_b, ldb, beta, C, type_c,
                        ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}
