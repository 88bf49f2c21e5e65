// SPDX-License-Identifier: MIT
// The values, descriptors and loops of cusparse.h, which includes this header
#pragma once
#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <vector>
#include "letters_off.h"
#include "library.h"
#include "../library_types.h"

// clang-format off
#define CUDA_CPU_STATUSES(X) \
    X(SUCCESS) X(NOT_INITIALIZED) X(ALLOC_FAILED) X(INVALID_VALUE) X(ARCH_MISMATCH) X(MAPPING_ERROR) \
    X(EXECUTION_FAILED) X(INTERNAL_ERROR) X(MATRIX_TYPE_NOT_SUPPORTED) X(ZERO_PIVOT) X(NOT_SUPPORTED) \
    X(INSUFFICIENT_RESOURCES)
// clang-format on
#define CUDA_CPU_STATUS(name) CUSPARSE_STATUS_##name,
typedef enum { CUDA_CPU_STATUSES(CUDA_CPU_STATUS) } cusparseStatus_t; // from 0
#undef CUDA_CPU_STATUS

typedef enum { CUSPARSE_POINTER_MODE_HOST = 0, CUSPARSE_POINTER_MODE_DEVICE = 1 } cusparsePointerMode_t;
typedef enum { CUSPARSE_ACTION_SYMBOLIC = 0, CUSPARSE_ACTION_NUMERIC = 1 } cusparseAction_t;
typedef enum {
    CUSPARSE_MATRIX_TYPE_GENERAL = 0,
    CUSPARSE_MATRIX_TYPE_SYMMETRIC = 1,
    CUSPARSE_MATRIX_TYPE_HERMITIAN = 2,
    CUSPARSE_MATRIX_TYPE_TRIANGULAR = 3
} cusparseMatrixType_t;
typedef enum { CUSPARSE_FILL_MODE_LOWER = 0, CUSPARSE_FILL_MODE_UPPER = 1 } cusparseFillMode_t;
typedef enum { CUSPARSE_DIAG_TYPE_NON_UNIT = 0, CUSPARSE_DIAG_TYPE_UNIT = 1 } cusparseDiagType_t;
typedef enum { CUSPARSE_INDEX_BASE_ZERO = 0, CUSPARSE_INDEX_BASE_ONE = 1 } cusparseIndexBase_t;
typedef enum {
    CUSPARSE_OPERATION_NON_TRANSPOSE = 0,
    CUSPARSE_OPERATION_TRANSPOSE = 1,
    CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE = 2
} cusparseOperation_t;
typedef enum { CUSPARSE_SOLVE_POLICY_NO_LEVEL, CUSPARSE_SOLVE_POLICY_USE_LEVEL } cusparseSolvePolicy_t;
typedef enum { CUSPARSE_FORMAT_CSR = 1, CUSPARSE_FORMAT_CSC = 2, CUSPARSE_FORMAT_COO = 3 } cusparseFormat_t;
typedef enum { CUSPARSE_ORDER_COL = 1, CUSPARSE_ORDER_ROW = 2 } cusparseOrder_t;
typedef enum {
    CUSPARSE_INDEX_16U = 1, // no function takes it
    CUSPARSE_INDEX_32I = 2,
    CUSPARSE_INDEX_64I = 3
} cusparseIndexType_t;
typedef enum { CUSPARSE_SPMAT_FILL_MODE, CUSPARSE_SPMAT_DIAG_TYPE } cusparseSpMatAttribute_t;
// The algorithms differ in speed on a GPU. Here all of them are the same.
typedef enum { CUSPARSE_CSR2CSC_ALG_DEFAULT = 1, CUSPARSE_CSR2CSC_ALG1 = 1 } cusparseCsr2CscAlg_t;
typedef enum { CUSPARSE_SPARSETODENSE_ALG_DEFAULT = 0 } cusparseSparseToDenseAlg_t;
typedef enum { CUSPARSE_DENSETOSPARSE_ALG_DEFAULT = 0 } cusparseDenseToSparseAlg_t;
// clang-format off
typedef enum {
    CUSPARSE_SPMV_ALG_DEFAULT = 0, CUSPARSE_SPMV_COO_ALG1, CUSPARSE_SPMV_CSR_ALG1, CUSPARSE_SPMV_CSR_ALG2,
    CUSPARSE_SPMV_COO_ALG2
} cusparseSpMVAlg_t;
typedef enum {
    CUSPARSE_SPMM_ALG_DEFAULT = 0, CUSPARSE_SPMM_COO_ALG1 = 1, CUSPARSE_SPMM_COO_ALG2 = 2,
    CUSPARSE_SPMM_COO_ALG3 = 3, CUSPARSE_SPMM_CSR_ALG1 = 4, CUSPARSE_SPMM_COO_ALG4 = 5,
    CUSPARSE_SPMM_CSR_ALG2 = 6, CUSPARSE_SPMM_CSR_ALG3 = 12
} cusparseSpMMAlg_t;
// clang-format on
typedef enum { CUSPARSE_SPSV_ALG_DEFAULT = 0 } cusparseSpSVAlg_t;
typedef enum { CUSPARSE_SPSM_ALG_DEFAULT = 0 } cusparseSpSMAlg_t;

struct cusparseContext {
    cudaStream_t stream = nullptr;
    cusparsePointerMode_t pointers = CUSPARSE_POINTER_MODE_HOST;
};
struct cusparseMatDescr {
    cusparseMatrixType_t type = CUSPARSE_MATRIX_TYPE_GENERAL;
    cusparseFillMode_t fill = CUSPARSE_FILL_MODE_LOWER;
    cusparseDiagType_t diagonal = CUSPARSE_DIAG_TYPE_NON_UNIT;
    cusparseIndexBase_t base = CUSPARSE_INDEX_BASE_ZERO;
};
// A matrix is a list of entries. In CSR the entries of row i are those from offsets[i] to offsets[i + 1], in
// CSC those of column i, and `indices` are their columns or rows. In COO `offsets` are the rows.
struct cusparseSpMatDescr {
    cusparseFormat_t format;
    int64_t rows, columns, count;
    void *offsets, *indices, *values;
    cusparseIndexType_t offsets_type, indices_type;
    cusparseIndexBase_t base;
    cudaDataType type;
    cusparseFillMode_t fill = CUSPARSE_FILL_MODE_LOWER;
    cusparseDiagType_t diagonal = CUSPARSE_DIAG_TYPE_NON_UNIT;
};
struct cusparseSpVecDescr {
    int64_t size, count;
    void *indices, *values;
    cusparseIndexType_t indices_type;
    cusparseIndexBase_t base;
    cudaDataType type;
};
struct cusparseDnVecDescr {
    int64_t size;
    void *values;
    cudaDataType type;
};
struct cusparseDnMatDescr {
    int64_t rows, columns, ld;
    void *values;
    cudaDataType type;
    cusparseOrder_t order;
};
struct cusparseSpSVDescr {};
struct cusparseSpSMDescr {};
struct csrilu02Info {
    std::shared_ptr<int> zero_pivot = std::make_shared<int>(-1);
};

typedef cusparseContext *cusparseHandle_t;
typedef cusparseMatDescr *cusparseMatDescr_t;
typedef cusparseSpMatDescr *cusparseSpMatDescr_t;
typedef cusparseSpVecDescr *cusparseSpVecDescr_t;
typedef cusparseDnVecDescr *cusparseDnVecDescr_t;
typedef cusparseDnMatDescr *cusparseDnMatDescr_t;
typedef const cusparseSpMatDescr *cusparseConstSpMatDescr_t;
typedef const cusparseSpVecDescr *cusparseConstSpVecDescr_t;
typedef const cusparseDnVecDescr *cusparseConstDnVecDescr_t;
typedef const cusparseDnMatDescr *cusparseConstDnMatDescr_t;
typedef cusparseSpSVDescr *cusparseSpSVDescr_t;
typedef cusparseSpSMDescr *cusparseSpSMDescr_t;
typedef csrilu02Info *csrilu02Info_t;

#define CUDA_CPU_LIBRARY      sparse
#define CUDA_CPU_RESULT(name) CUSPARSE_STATUS_##name
#define CUDA_CPU_SUPPORT(condition)                                                                          \
    if (!(condition))                                                                                        \
    return CUSPARSE_STATUS_NOT_SUPPORTED

namespace cuda_cpu::sparse {

template <class Work>
cusparseStatus_t run(const char *call, cusparseHandle_t handle, Work work, bool wait = false) {
    return library_call(call, handle->stream, work, wait) == cudaSuccess ? CUSPARSE_STATUS_SUCCESS
                                                                         : CUSPARSE_STATUS_EXECUTION_FAILED;
}
CUDA_CPU_RETURN(bool, is_real, (cudaDataType type), type == CUDA_R_32F || type == CUDA_R_64F)
CUDA_CPU_RETURN(bool, is_index, (cusparseIndexType_t type),
                type == CUSPARSE_INDEX_32I || type == CUSPARSE_INDEX_64I)
// Runs work(number), where the number has the given type.
template <class Work>
cusparseStatus_t run_real(const char *call, cusparseHandle_t handle, cudaDataType type, Work work,
                          bool wait = false) {
    return run(
        call, handle, [=] { type == CUDA_R_32F ? work(float()) : work(double()); }, wait);
}
// A scalar argument. One in host memory is read by the call, one in device memory when the work runs.
struct Scalar {
    const void *device;
    double host;
    Scalar(cusparseHandle_t handle, cudaDataType type, const void *p)
        : device(handle->pointers == CUSPARSE_POINTER_MODE_DEVICE ? p : nullptr),
          host(device               ? 0
               : type == CUDA_R_32F ? *(const float *)p
                                    : *(const double *)p) {}
    template <class T> operator T() const { return device ? *(const T *)device : (T)host; }
};
template <class F> void with_index(cusparseIndexType_t type, F f) {
    if (type == CUSPARSE_INDEX_32I)
        f(int32_t());
    else
        f(int64_t());
}

// Calls f(value, element of the dense vector) for each value of a sparse vector.
template <class T, class F> void for_pairs(const cusparseSpVecDescr &x, const cusparseDnVecDescr &y, F f) {
    with_index(x.indices_type, [&](auto i) {
        for (int64_t k = 0; k < x.count; k++)
            f(((T *)x.values)[k], ((T *)y.values)[((const decltype(i) *)x.indices)[k] - x.base]);
    });
}

// Calls f(outer, begin, end, indices) for the entries of each row in CSR, each column in CSC and each entry
// in COO. `begin` and `end` count from 0, but the indices from the base.
template <class F> void for_outer(const cusparseSpMatDescr &A, F f) {
    with_index(A.offsets_type, [&](auto o) {
        with_index(A.indices_type, [&](auto i) {
            const auto *const offsets = (const decltype(o) *)A.offsets;
            const auto *const indices = (const decltype(i) *)A.indices;
            if (A.format == CUSPARSE_FORMAT_COO) {
                for (int64_t k = 0; k < A.count; k++)
                    f((int64_t)offsets[k] - A.base, k, k + 1, indices);
                return;
            }
            const int64_t outer = A.format == CUSPARSE_FORMAT_CSR ? A.rows : A.columns;
            for (int64_t r = 0; r < outer; r++)
                f(r, (int64_t)offsets[r] - A.base, (int64_t)offsets[r + 1] - A.base, indices);
        });
    });
}
// Calls f(row, column, index of the value) for each entry.
template <class F> void for_entries(const cusparseSpMatDescr &A, F f) {
    for_outer(A, [&](int64_t outer, int64_t begin, int64_t end, auto *indices) {
        for (int64_t k = begin; k < end; k++)
            if (A.format == CUSPARSE_FORMAT_CSC)
                f((int64_t)indices[k] - A.base, outer, k);
            else
                f(outer, (int64_t)indices[k] - A.base, k);
    });
}

template <class T>
void multiply(const cusparseSpMatDescr &A, bool transposed, T alpha, const T *x, T beta, T *y) {
    const T *const values = (const T *)A.values;
    const int64_t rows = transposed ? A.columns : A.rows;
    for (int64_t i = 0; i < rows; i++)
        y[i] = beta == 0 ? 0 : beta * y[i];
    if (transposed == (A.format == CUSPARSE_FORMAT_CSC)) { // outer are rows of op(A)
        for_outer(A, [&](int64_t row, int64_t begin, int64_t end, auto *indices) {
            T sum = 0;
            for (int64_t k = begin; k < end; k++)
                sum += values[k] * x[indices[k] - A.base];
            y[row] += alpha * sum;
        });
    } else {
        for_outer(A, [&](int64_t column, int64_t begin, int64_t end, auto *indices) {
            for (int64_t k = begin; k < end; k++)
                y[indices[k] - A.base] += alpha * values[k] * x[column];
        });
    }
}

// The index of element (i, j) of a dense matrix in its array. With `transposed`, (i, j) is an element of the
// transposed matrix.
CUDA_CPU_RETURN(int64_t, place, (const cusparseDnMatDescr &D, int64_t i, int64_t j, bool transposed = false),
                (D.order == CUSPARSE_ORDER_COL) != transposed ? i + j * D.ld : i * D.ld + j)

// Solves op(A) y = alpha x, where only the triangle that the matrix's attributes name is read. x and y are
// vectors whose element i is at x[i * incx] and y[i * incy]; they may be the same.
template <class T>
void solve(const cusparseSpMatDescr &A, bool transposed, T alpha, const T *x, int64_t incx, T *y,
           int64_t incy) {
    const T *const values = (const T *)A.values;
    const int64_t n = A.rows;
    const bool lower = A.fill == CUSPARSE_FILL_MODE_LOWER, unit = A.diagonal == CUSPARSE_DIAG_TYPE_UNIT;
    // The entries of the triangle, sorted by rows
    std::vector<int64_t> first(n + 1), column(A.count), entry(A.count);
    for_entries(A, [&](int64_t i, int64_t, int64_t) { first[i + 1]++; });
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<int64_t> next(first.begin(), first.end() - 1);
    for_entries(A, [&](int64_t i, int64_t j, int64_t k) {
        column[next[i]] = j;
        entry[next[i]++] = k;
    });
    for (int64_t i = 0; i < n; i++)
        y[i * incy] = alpha * x[i * incx];
    for (int64_t step = 0; step < n; step++) {
        const int64_t i = lower != transposed ? step : n - 1 - step;
        T diagonal = unit ? 1 : 0, sum = 0;
        for (int64_t k = first[i]; k < first[i + 1]; k++) {
            if (column[k] == i)
                diagonal = unit ? 1 : values[entry[k]];
            else if (!transposed && (column[k] < i) == lower)
                sum += values[entry[k]] * y[column[k] * incy];
        }
        const T solved = y[i * incy] = (y[i * incy] - sum) / diagonal;
        for (int64_t k = first[i]; transposed && k < first[i + 1]; k++)
            if (column[k] != i && (column[k] < i) == lower)
                y[column[k] * incy] -= values[entry[k]] * solved;
    }
}

// Expands the row offsets of a CSR matrix: writes the row index of each entry.
inline void rows_of_entries(const int *offsets, int m, int base, int *rows) {
    for (int row = 0; row < m; row++)
        for (int k = offsets[row] - base; k < offsets[row + 1] - base; k++)
            rows[k] = row + base;
}

// Stable sort of entries, with their `permutation`, by the index `first`, then by the index `second`
inline void sort_entries(int *first, int *second, int *permutation, int count) {
    std::vector<std::array<int, 3>> entries(count);
    for (int k = 0; k < count; k++)
        entries[k] = {first[k], second[k], permutation[k]};
    std::stable_sort(entries.begin(), entries.end(), [](auto &a, auto &b) {
        return std::make_pair(a[0], a[1]) < std::make_pair(b[0], b[1]);
    });
    for (int k = 0; k < count; k++) {
        first[k] = entries[k][0];
        second[k] = entries[k][1];
        permutation[k] = entries[k][2];
    }
}

// LU factorization without fill-in: each row keeps the places of its entries. Returns the first row with a
// zero on the diagonal, or -1.
template <class T> int incomplete_lu(int n, int base, T *values, const int *offsets, const int *indices) {
    int zero_pivot = -1;
    std::vector<int> diagonal(n, -1), place(n, -1); // where the entries of the current row are
    for (int i = 0; i < n; i++) {
        const int begin = offsets[i] - base, end = offsets[i + 1] - base;
        for (int k = begin; k < end; k++)
            place[indices[k] - base] = k;
        diagonal[i] = place[i];
        for (int k = begin; k < end && indices[k] - base < i; k++) { // columns ascend
            const int row = indices[k] - base;
            if (diagonal[row] < 0 || values[diagonal[row]] == 0)
                continue;
            const T factor = values[k] /= values[diagonal[row]];
            for (int l = diagonal[row] + 1; l < offsets[row + 1] - base; l++)
                if (place[indices[l] - base] >= 0)
                    values[place[indices[l] - base]] -= factor * values[l];
        }
        if (zero_pivot < 0 && (diagonal[i] < 0 || values[diagonal[i]] == 0))
            zero_pivot = i + base;
        for (int k = begin; k < end; k++)
            place[indices[k] - base] = -1;
    }
    return zero_pivot;
}

} // namespace cuda_cpu::sparse
#include "letters_on.h"
