// SPDX-License-Identifier: MIT
// cuBLASLt by OpenBLAS: D = epilogue(alpha op(A) op(B) + beta C) of matrices that are stored by columns,
// also in batches without an epilogue. Other settings than these epilogues are accepted and have no effect;
// what would change the result is CUBLAS_STATUS_NOT_SUPPORTED.
#pragma once
#include "cublas_v2.h"
#include "cuda_cpu/letters_off.h"

typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct cublasLtSettings { // values of attributes, by number
    uint64_t of[64];
} cublasLtMatmulDescOpaque_t, cublasLtMatrixLayoutOpaque_t, cublasLtMatmulPreferenceOpaque_t,
    *cublasLtMatmulDesc_t, *cublasLtMatrixLayout_t, *cublasLtMatmulPreference_t;
typedef struct {
    uint64_t data[8];
} cublasLtMatmulAlgo_t;
typedef struct {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;

typedef enum { CUBLASLT_ORDER_COL = 0, CUBLASLT_ORDER_ROW = 1 } cublasLtOrder_t;
// clang-format off
typedef enum {
    CUBLASLT_MATRIX_LAYOUT_TYPE = 0, CUBLASLT_MATRIX_LAYOUT_ORDER, CUBLASLT_MATRIX_LAYOUT_ROWS,
    CUBLASLT_MATRIX_LAYOUT_COLS, CUBLASLT_MATRIX_LAYOUT_LD, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
    CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET
} cublasLtMatrixLayoutAttribute_t;
typedef enum {
    CUBLASLT_MATMUL_DESC_COMPUTE_TYPE = 0, CUBLASLT_MATMUL_DESC_SCALE_TYPE = 1,
    CUBLASLT_MATMUL_DESC_POINTER_MODE = 2, CUBLASLT_MATMUL_DESC_TRANSA = 3, CUBLASLT_MATMUL_DESC_TRANSB = 4,
    CUBLASLT_MATMUL_DESC_EPILOGUE = 7, CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
    CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 11, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD = 12,
    CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE = 22, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26
} cublasLtMatmulDescAttributes_t;
// clang-format on
typedef enum { CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1 } cublasLtMatmulPreferenceAttributes_t;
typedef enum { // sums of 2: ReLU, 4: bias, 32: GELU, 64: its gradient, 128: with aux
    CUBLASLT_EPILOGUE_DEFAULT = 1,
    CUBLASLT_EPILOGUE_RELU = 2,
    CUBLASLT_EPILOGUE_BIAS = 4,
    CUBLASLT_EPILOGUE_RELU_BIAS = 6,
    CUBLASLT_EPILOGUE_GELU = 32,
    CUBLASLT_EPILOGUE_GELU_BIAS = 36,
    CUBLASLT_EPILOGUE_GELU_AUX = 160,
    CUBLASLT_EPILOGUE_GELU_AUX_BIAS = 164,
    CUBLASLT_EPILOGUE_DGELU = 192,
    CUBLASLT_EPILOGUE_BGRADB = 512
} cublasLtEpilogue_t;

CUDA_CPU_RETURN(cublasStatus_t, cublasLtCreate, (cublasLtHandle_t * handle),
                cublasCreate((cublasHandle_t *)handle))
CUDA_CPU_RETURN(cublasStatus_t, cublasLtDestroy, (cublasLtHandle_t handle),
                cublasDestroy((cublasHandle_t)handle))
// The functions …Init fill an object that the caller has declared; those …Create allocate one.
static inline cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t d, cublasComputeType_t compute,
                                                    cudaDataType_t scale) {
    *d = {{(uint64_t)compute, (uint64_t)scale, 0, 0, 0, 0, 0, CUBLASLT_EPILOGUE_DEFAULT}};
    d->of[CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE] = d->of[CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE] = ~0ull;
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t d, cudaDataType type,
                                                      uint64_t rows, uint64_t columns, int64_t ld) {
    *d = {{(uint64_t)type, CUBLASLT_ORDER_COL, rows, columns, (uint64_t)ld, 1, 0}};
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t d) {
    *d = {};
    return CUBLAS_STATUS_SUCCESS;
}
CUDA_CPU_RETURN(cublasStatus_t, cublasLtMatmulDescCreate,
                (cublasLtMatmulDesc_t * d, cublasComputeType_t compute, cudaDataType_t scale),
                cublasLtMatmulDescInit(*d = new cublasLtSettings, compute, scale))
CUDA_CPU_RETURN(cublasStatus_t, cublasLtMatrixLayoutCreate,
                (cublasLtMatrixLayout_t * d, cudaDataType type, uint64_t rows, uint64_t columns, int64_t ld),
                cublasLtMatrixLayoutInit(*d = new cublasLtSettings, type, rows, columns, ld))
CUDA_CPU_RETURN(cublasStatus_t, cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * d),
                cublasLtMatmulPreferenceInit(*d = new cublasLtSettings))
// An attribute is a number of 4 or 8 bytes, or a pointer.
#define CUDA_CPU_SETTINGS(Name, Attribute)                                                                   \
    static inline cublasStatus_t cublasLt##Name##SetAttribute(cublasLt##Name##_t d, Attribute attribute,     \
                                                              const void *value, size_t bytes) {             \
        if (!d || !value || bytes > 8)                                                                       \
            return CUBLAS_STATUS_INVALID_VALUE;                                                              \
        d->of[attribute] = 0;                                                                                \
        memcpy(&d->of[attribute], value, bytes);                                                             \
        return CUBLAS_STATUS_SUCCESS;                                                                        \
    }                                                                                                        \
    static inline cublasStatus_t cublasLt##Name##Destroy(cublasLt##Name##_t d) {                             \
        delete d;                                                                                            \
        return CUBLAS_STATUS_SUCCESS;                                                                        \
    }
CUDA_CPU_SETTINGS(MatmulDesc, cublasLtMatmulDescAttributes_t)
CUDA_CPU_SETTINGS(MatrixLayout, cublasLtMatrixLayoutAttribute_t)
CUDA_CPU_SETTINGS(MatmulPreference, cublasLtMatmulPreferenceAttributes_t)

namespace cuda_cpu::blas {

struct Layout {
    cudaDataType type;
    bool known;
    int rows, columns, ld, count;
    int64_t stride;
    Layout(cublasLtMatrixLayout_t d)
        : type((cudaDataType)d->of[0]), known(d->of[1] == CUBLASLT_ORDER_COL && is_real(type)),
          rows((int)d->of[2]), columns((int)d->of[3]), ld((int)d->of[4]), count((int)d->of[5]),
          stride((int64_t)d->of[6]) {}
    template <class P> P at(P p, int which) const {
        return (P)((char *)p + which * stride * (int64_t)size_of(type));
    }
};

// GELU by tanh, and its derivative
CUDA_CPU_RETURN(float, gelu, (float x),
                0.5f * x * (1 + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x))))
inline float gelu_slope(float x) {
    const float t = std::tanh(0.7978845608f * (x + 0.044715f * x * x * x));
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.7978845608f * (1 + 3 * 0.044715f * x * x);
}

inline cublasStatus_t multiply(cublasLtMatmulDesc_t d, const void *alpha, const void *A, Layout a,
                               const void *B, Layout b, const void *beta, const void *C, Layout c, void *D,
                               Layout to, cudaStream_t stream, bool only_check) {
    const auto opa = (cublasOperation_t)d->of[CUBLASLT_MATMUL_DESC_TRANSA],
               opb = (cublasOperation_t)d->of[CUBLASLT_MATMUL_DESC_TRANSB];
    const int m = to.rows, n = to.columns, k = rows_of(opa, a.columns, a.rows), epilogue = (int)d->of[7];
    const auto type_or = [&](int attribute) {
        return d->of[attribute] == ~0ull ? to.type : (cudaDataType)d->of[attribute];
    };
    const cudaDataType aux_type = type_or(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE),
                       bias_type = type_or(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE),
                       scale = (cudaDataType)d->of[CUBLASLT_MATMUL_DESC_SCALE_TYPE];
    const bool known = (to.count == 1 || epilogue == 1) && !(epilogue & ~(1 | 2 | 4 | 32 | 64 | 128 | 512)) &&
                       (epilogue & 130) != 130;
    const bool on_device = d->of[CUBLASLT_MATMUL_DESC_POINTER_MODE] == CUBLAS_POINTER_MODE_DEVICE;
    if (!known || !a.known || !b.known || !c.known || !to.known || !is_real(scale) || d->of[2] > 1)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (rows_of(opa, a.rows, a.columns) != m || rows_of(opb, b.columns, b.rows) != n ||
        rows_of(opb, b.rows, b.columns) != k || c.rows != m || c.columns != n || a.count != to.count)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (only_check)
        return CUBLAS_STATUS_SUCCESS;
    void *const bias = (void *)d->of[CUBLASLT_MATMUL_DESC_BIAS_POINTER], *const aux = (void *)d->of[11];
    const int64_t aux_ld = (int64_t)d->of[CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD];
    if (((epilogue & 516) && !bias) || ((epilogue & 128) && !aux))
        return CUBLAS_STATUS_INVALID_VALUE;
    const float host_alpha = on_device ? 0 : load(alpha, scale, 0),
                host_beta = on_device ? 0 : load(beta, scale, 0);
    return status_of(library_call("cublasLtMatmul", stream, [=] {
        const float s = on_device ? load(alpha, scale, 0) : host_alpha,
                    old = on_device ? load(beta, scale, 0) : host_beta;
        std::vector<float> product((size_t)m * n);
        for (int which = 0; which < to.count; which++) {
            const auto fa = converted(a.at(A, which), a.type, a.rows, a.columns, a.ld),
                       fb = converted(b.at(B, which), b.type, b.rows, b.columns, b.ld);
            cblas_sgemm(CblasColMajor, trans(opa), trans(opb), m, n, k, s, fa.data(), std::max(a.rows, 1),
                        fb.data(), std::max(b.rows, 1), 0, product.data(), std::max(m, 1));
            for (int j = 0; j < n; j++)
                for (int i = 0; i < m; i++) {
                    const size_t in_aux = i + (size_t)j * aux_ld;
                    float x = product[i + (size_t)j * m];
                    x += old == 0 ? 0 : old * load(c.at(C, which), c.type, i + (size_t)j * c.ld);
                    x += epilogue & 4 ? load(bias, bias_type, i) : 0;
                    if ((epilogue & 160) == 160)
                        store(aux, aux_type, in_aux, x);
                    x = epilogue & 2    ? std::max(x, 0.0f)
                        : epilogue & 32 ? gelu(x)
                        : epilogue & 64 ? x * gelu_slope(load(aux, aux_type, in_aux))
                                        : x;
                    store(to.at(D, which), to.type, i + (size_t)j * to.ld, x);
                }
            for (int j = 0; j < n && epilogue & 512; j++) { // sums over k of op(B)
                float sum = 0;
                for (int l = 0; l < k; l++)
                    sum += fb[opb == CUBLAS_OP_N ? l + (size_t)j * b.rows : j + (size_t)l * b.rows];
                store(bias, bias_type, j, sum);
            }
        }
    }));
}

} // namespace cuda_cpu::blas

CUDA_CPU_RETURN(cublasStatus_t, cublasLtMatmul,
                (cublasLtHandle_t, cublasLtMatmulDesc_t d, const void *alpha, const void *A,
                 cublasLtMatrixLayout_t a, const void *B, cublasLtMatrixLayout_t b, const void *beta,
                 const void *C, cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t to,
                 const cublasLtMatmulAlgo_t *, void *, size_t, cudaStream_t stream),
                cuda_cpu::blas::multiply(d, alpha, A, a, B, b, beta, C, c, D, to, stream, false))
// There is one algorithm.
static inline cublasStatus_t
cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
                               cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t to,
                               cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t *results,
                               int *found) {
    const cublasStatus_t status = cuda_cpu::blas::multiply(d, nullptr, nullptr, a, nullptr, b, nullptr,
                                                           nullptr, c, nullptr, to, nullptr, true);
    *found = status == CUBLAS_STATUS_SUCCESS;
    results[0] = {{}, 0, status, 1, {}};
    return status;
}

#include "cuda_cpu/letters_on.h"
