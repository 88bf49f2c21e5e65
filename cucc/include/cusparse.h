// SPDX-License-Identifier: MIT
// cuSPARSE for float and double (docs/libraries.md). Matrix, vectors and computation must have the same type.
#pragma once
#ifndef __cplusplus
#error "cusparse.h: the CPU back end has it for C++ only"
#endif
#define CUSPARSEAPI
#include "cuda_cpu/letters_off.h"
#include <vector>
#include "cuda_cpu/sparse.h"

#define CUSPARSE_VER_MAJOR 12
#define CUSPARSE_VER_MINOR 6
#define CUSPARSE_VER_PATCH 2
#define CUSPARSE_VERSION   (CUSPARSE_VER_MAJOR * 1000 + CUSPARSE_VER_MINOR * 100 + CUSPARSE_VER_PATCH)

// ---- settings ----

// A function whose first parameter is the handle
#define CUDA_CPU_FUNCTION(name, ...)                                                                         \
    static inline cusparseStatus_t cusparse##name(cusparseHandle_t handle, __VA_ARGS__)

CUDA_CPU_HANDLES(CUDA_CPU_DEFINE, cusparse, cusparseContext)
CUDA_CPU_SETTING(CUDA_CPU_FUNCTION, Stream, cudaStream_t, stream)
CUDA_CPU_SETTING(CUDA_CPU_FUNCTION, PointerMode, cusparsePointerMode_t, pointers)
CUDA_CPU_FUNCTION(GetVersion, int *version) {
    CUDA_CPU_REQUIRE(version);
    *version = CUSPARSE_VERSION;
    return handle ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_NOT_INITIALIZED;
}
static inline const char *cusparseGetErrorName(cusparseStatus_t status) {
#define CUDA_CPU_STATUS(name) "CUSPARSE_STATUS_" #name,
    static const char *const names[] = {CUDA_CPU_STATUSES(CUDA_CPU_STATUS)};
#undef CUDA_CPU_STATUS
#undef CUDA_CPU_STATUSES
    return (unsigned)status < sizeof(names) / sizeof(*names) ? names[status] : "unrecognized error code";
}
CUDA_CPU_RETURN(const char *, cusparseGetErrorString, (cusparseStatus_t status),
                status == CUSPARSE_STATUS_SUCCESS ? "success" : cusparseGetErrorName(status))

// ---- descriptions ----

// Defines a function without a handle: CUSPARSE_STATUS_INVALID_VALUE unless `valid`, else the assignments.
#define CUDA_CPU_SIMPLE(name, PARAMETERS, valid, ...)                                                        \
    static inline cusparseStatus_t cusparse##name PARAMETERS {                                               \
        CUDA_CPU_REQUIRE(valid);                                                                             \
        __VA_ARGS__;                                                                                         \
        return CUSPARSE_STATUS_SUCCESS;                                                                      \
    }
#define CUDA_CPU_CREATE(NAME, Descriptor)                                                                    \
    CUDA_CPU_SIMPLE(NAME, (Descriptor##_t * descriptor), descriptor, *descriptor = new Descriptor)
CUDA_CPU_CREATE(CreateMatDescr, cusparseMatDescr)
CUDA_CPU_CREATE(CreateCsrilu02Info, csrilu02Info)
CUDA_CPU_CREATE(SpSV_createDescr, cusparseSpSVDescr)
CUDA_CPU_CREATE(SpSM_createDescr, cusparseSpSMDescr)
#define CUDA_CPU_DESTROY(NAME, Descriptor)                                                                   \
    CUDA_CPU_SIMPLE(NAME, (Descriptor descriptor), true, delete descriptor)
CUDA_CPU_DESTROY(DestroyMatDescr, cusparseMatDescr_t)
CUDA_CPU_DESTROY(DestroySpMat, cusparseConstSpMatDescr_t)
CUDA_CPU_DESTROY(DestroySpVec, cusparseConstSpVecDescr_t)
CUDA_CPU_DESTROY(DestroyDnVec, cusparseConstDnVecDescr_t)
CUDA_CPU_DESTROY(DestroyDnMat, cusparseConstDnMatDescr_t)
CUDA_CPU_DESTROY(DestroyCsrilu02Info, csrilu02Info_t)
CUDA_CPU_DESTROY(SpSV_destroyDescr, cusparseSpSVDescr_t)
CUDA_CPU_DESTROY(SpSM_destroyDescr, cusparseSpSMDescr_t)
#define CUDA_CPU_ATTRIBUTE(NAME, value_type, member)                                                         \
    CUDA_CPU_SIMPLE(SetMat##NAME, (cusparseMatDescr_t matrix, value_type value), matrix,                     \
                    matrix->member = value)                                                                  \
    CUDA_CPU_RETURN(value_type, cusparseGetMat##NAME, (const cusparseMatDescr_t matrix), matrix->member)
CUDA_CPU_ATTRIBUTE(Type, cusparseMatrixType_t, type)
CUDA_CPU_ATTRIBUTE(FillMode, cusparseFillMode_t, fill)
CUDA_CPU_ATTRIBUTE(DiagType, cusparseDiagType_t, diagonal)
CUDA_CPU_ATTRIBUTE(IndexBase, cusparseIndexBase_t, base)

namespace cuda_cpu::sparse {
template <class To, class Descriptor>
cusparseStatus_t create(To *to, bool valid, bool supported, const Descriptor &descriptor) {
    CUDA_CPU_REQUIRE(to && valid);
    CUDA_CPU_SUPPORT(supported && is_real(descriptor.type));
    *to = new Descriptor(descriptor);
    return CUSPARSE_STATUS_SUCCESS;
}
template <class To> cusparseStatus_t create_matrix(To *to, const cusparseSpMatDescr &A) {
    return create(to, A.rows >= 0 && A.columns >= 0 && A.count >= 0,
                  is_index(A.offsets_type) && is_index(A.indices_type), A);
}
} // namespace cuda_cpu::sparse

// Each function also exists with Const for what the library may not change. `constant` is const there.
#define CUDA_CPU_BOTH(MACRO, ...)                                                                            \
    MACRO(Create, , , __VA_ARGS__)                                                                           \
    MACRO(CreateConst, Const, const, __VA_ARGS__)
#define CUDA_CPU_COMPRESSED(Create, Const, constant, NAME, format)                                           \
    static inline cusparseStatus_t cusparse##Create##NAME(                                                   \
        cusparse##Const##SpMatDescr_t *matrix, int64_t rows, int64_t columns, int64_t count,                 \
        constant void *offsets, constant void *indices, constant void *values,                               \
        cusparseIndexType_t offsets_type, cusparseIndexType_t indices_type, cusparseIndexBase_t base,        \
        cudaDataType type) {                                                                                 \
        return cuda_cpu::sparse::create_matrix(matrix, {format, rows, columns, count, (void *)offsets,       \
                                                        (void *)indices, (void *)values, offsets_type,       \
                                                        indices_type, base, type});                          \
    }
CUDA_CPU_BOTH(CUDA_CPU_COMPRESSED, Csr, CUSPARSE_FORMAT_CSR)
CUDA_CPU_BOTH(CUDA_CPU_COMPRESSED, Csc, CUSPARSE_FORMAT_CSC)
#define CUDA_CPU_OTHERS(Create, Const, constant, unused)                                                     \
    static inline cusparseStatus_t cusparse##Create##Coo(                                                    \
        cusparse##Const##SpMatDescr_t *matrix, int64_t rows, int64_t columns, int64_t count,                 \
        constant void *row_indices, constant void *column_indices, constant void *values,                    \
        cusparseIndexType_t indices_type, cusparseIndexBase_t base, cudaDataType type) {                     \
        return cuda_cpu::sparse::create_matrix(                                                              \
            matrix, {CUSPARSE_FORMAT_COO, rows, columns, count, (void *)row_indices, (void *)column_indices, \
                     (void *)values, indices_type, indices_type, base, type});                               \
    }                                                                                                        \
    static inline cusparseStatus_t cusparse##Create##SpVec(                                                  \
        cusparse##Const##SpVecDescr_t *vector, int64_t size, int64_t count, constant void *indices,          \
        constant void *values, cusparseIndexType_t indices_type, cusparseIndexBase_t base,                   \
        cudaDataType type) {                                                                                 \
        return cuda_cpu::sparse::create(                                                                     \
            vector, count >= 0 && count <= size, cuda_cpu::sparse::is_index(indices_type),                   \
            cusparseSpVecDescr{size, count, (void *)indices, (void *)values, indices_type, base, type});     \
    }                                                                                                        \
    static inline cusparseStatus_t cusparse##Create##DnVec(                                                  \
        cusparse##Const##DnVecDescr_t *vector, int64_t size, constant void *values, cudaDataType type) {     \
        return cuda_cpu::sparse::create(vector, size >= 0, true,                                             \
                                        cusparseDnVecDescr{size, (void *)values, type});                     \
    }                                                                                                        \
    static inline cusparseStatus_t cusparse##Create##DnMat(                                                  \
        cusparse##Const##DnMatDescr_t *matrix, int64_t rows, int64_t columns, int64_t ld,                    \
        constant void *values, cudaDataType type, cusparseOrder_t order) {                                   \
        return cuda_cpu::sparse::create(                                                                     \
            matrix, rows >= 0 && columns >= 0 && ld >= (order == CUSPARSE_ORDER_COL ? rows : columns), true, \
            cusparseDnMatDescr{rows, columns, ld, (void *)values, type, order});                             \
    }
CUDA_CPU_BOTH(CUDA_CPU_OTHERS, )
#undef CUDA_CPU_BOTH

#define CUDA_CPU_VALUES(NAME)                                                                                \
    CUDA_CPU_SIMPLE(NAME##GetValues, (cusparse##NAME##Descr_t d, void **values), d &&values,                 \
                    *values = d->values)                                                                     \
    CUDA_CPU_SIMPLE(NAME##SetValues, (cusparse##NAME##Descr_t d, void *values), d &&values,                  \
                    d->values = values)
CUDA_CPU_VALUES(SpMat)
CUDA_CPU_VALUES(SpVec)
CUDA_CPU_VALUES(DnVec)
CUDA_CPU_VALUES(DnMat)
#define CUDA_CPU_POINTERS(NAME)                                                                              \
    CUDA_CPU_SIMPLE(NAME##SetPointers,                                                                       \
                    (cusparseSpMatDescr_t matrix, void *offsets, void *indices, void *values), matrix,       \
                    matrix->offsets = offsets, matrix->indices = indices, matrix->values = values)
CUDA_CPU_POINTERS(Csr)
CUDA_CPU_POINTERS(Csc)
CUDA_CPU_POINTERS(Coo)

CUDA_CPU_SIMPLE(SpMatGetSize,
                (cusparseConstSpMatDescr_t matrix, int64_t *rows, int64_t *columns, int64_t *count),
                matrix &&rows &&columns &&count, *rows = matrix->rows, *columns = matrix->columns,
                *count = matrix->count)
CUDA_CPU_SIMPLE(SpMatSetAttribute,
                (cusparseSpMatDescr_t matrix, cusparseSpMatAttribute_t attribute, void *data, size_t size),
                matrix &&data &&size == sizeof(int),
                attribute == CUSPARSE_SPMAT_FILL_MODE
                    ? (void)(matrix->fill = *(cusparseFillMode_t *)data)
                    : (void)(matrix->diagonal = *(cusparseDiagType_t *)data))

// The size of a buffer, which is not used here
#define CUDA_CPU_BUFFER(name, ...) CUDA_CPU_BUFFER_OF(size_t, name##_bufferSize, __VA_ARGS__)
#define CUDA_CPU_BUFFER_OF(size_type, name, ...)                                                             \
    CUDA_CPU_FUNCTION(name, __VA_ARGS__, size_type *size) {                                                  \
        CUDA_CPU_VALID(size);                                                                                \
        *size = 8; /* programs allocate it, and may take a null pointer for a failure */                     \
        return CUSPARSE_STATUS_SUCCESS;                                                                      \
    }

// ---- sparse vectors ----

// y = alpha x + beta y
CUDA_CPU_FUNCTION(Axpby, const void *alpha, cusparseConstSpVecDescr_t x, const void *beta,
                  cusparseDnVecDescr_t y) {
    CUDA_CPU_VALID(alpha && x && beta && y && x->size == y->size);
    CUDA_CPU_SUPPORT(x->type == y->type);
    const cpu::Scalar scale(handle, x->type, alpha), old(handle, x->type, beta);
    return cpu::run_real(__func__, handle, x->type, [=, x = *x, y = *y](auto number) {
        using T = decltype(number);
        const T a = scale, b = old;
        T *const to = (T *)y.values;
        for (int64_t i = 0; i < y.size; i++)
            to[i] = b == 0 ? 0 : b * to[i];
        cpu::for_pairs<T>(x, y, [=](T sparse, T &dense) { dense += a * sparse; });
    });
}
#define CUDA_CPU_EXCHANGE(NAME, FIRST, first, SECOND, second, statement)                                     \
    CUDA_CPU_FUNCTION(NAME, FIRST first, SECOND second) {                                                    \
        CUDA_CPU_VALID(x &&y && x->size == y->size);                                                         \
        CUDA_CPU_SUPPORT(x->type == y->type);                                                                \
        return cpu::run_real(__func__, handle, x->type, [x = *x, y = *y](auto number) {                      \
            using T = decltype(number);                                                                      \
            cpu::for_pairs<T>(x, y, [](T &sparse, T &dense) { statement; });                                 \
        });                                                                                                  \
    }
CUDA_CPU_EXCHANGE(Gather, cusparseConstDnVecDescr_t, y, cusparseSpVecDescr_t, x, sparse = dense)
CUDA_CPU_EXCHANGE(Scatter, cusparseConstSpVecDescr_t, x, cusparseDnVecDescr_t, y, dense = sparse)
CUDA_CPU_BUFFER(SpVV, cusparseOperation_t, cusparseConstSpVecDescr_t, cusparseConstDnVecDescr_t, const void *,
                cudaDataType)
CUDA_CPU_FUNCTION(SpVV, cusparseOperation_t, cusparseConstSpVecDescr_t x, cusparseConstDnVecDescr_t y,
                  void *result, cudaDataType compute, void *) {
    CUDA_CPU_VALID(x && y && result && x->size == y->size);
    CUDA_CPU_SUPPORT(x->type == y->type && x->type == compute);
    const auto work = [=, x = *x, y = *y](auto number) {
        using T = decltype(number);
        double sum = 0; // in float, many small terms would be lost
        cpu::for_pairs<T>(x, y, [&](T sparse, T dense) { sum += sparse * dense; });
        *(T *)result = (T)sum;
    };
    return cpu::run_real(__func__, handle, compute, work, handle->pointers == CUSPARSE_POINTER_MODE_HOST);
}

// ---- products ----

// y = alpha op(A) x + beta y
CUDA_CPU_FUNCTION(SpMV, cusparseOperation_t op, const void *alpha, cusparseConstSpMatDescr_t A,
                  cusparseConstDnVecDescr_t x, const void *beta, cusparseDnVecDescr_t y, cudaDataType compute,
                  cusparseSpMVAlg_t, void *) {
    CUDA_CPU_VALID(alpha && A && x && beta && y);
    const bool transposed = op != CUSPARSE_OPERATION_NON_TRANSPOSE;
    CUDA_CPU_REQUIRE(x->size == (transposed ? A->rows : A->columns) &&
                     y->size == (transposed ? A->columns : A->rows));
    CUDA_CPU_SUPPORT(A->type == compute && x->type == compute && y->type == compute);
    const cpu::Scalar scale(handle, compute, alpha), old(handle, compute, beta);
    return cpu::run_real(__func__, handle, compute, [=, A = *A, x = x->values, y = y->values](auto number) {
        using T = decltype(number);
        cpu::multiply<T>(A, transposed, scale, (const T *)x, old, (T *)y);
    });
}
// C = alpha op(A) op(B) + beta C
CUDA_CPU_FUNCTION(SpMM, cusparseOperation_t opa, cusparseOperation_t opb, const void *alpha,
                  cusparseConstSpMatDescr_t A, cusparseConstDnMatDescr_t B, const void *beta,
                  cusparseDnMatDescr_t C, cudaDataType compute, cusparseSpMMAlg_t, void *) {
    CUDA_CPU_VALID(alpha && A && B && beta && C);
    const bool ta = opa != CUSPARSE_OPERATION_NON_TRANSPOSE, tb = opb != CUSPARSE_OPERATION_NON_TRANSPOSE;
    CUDA_CPU_REQUIRE(C->rows == (ta ? A->columns : A->rows) && C->columns == (tb ? B->rows : B->columns) &&
                     (ta ? A->rows : A->columns) == (tb ? B->columns : B->rows));
    CUDA_CPU_SUPPORT(A->type == compute && B->type == compute && C->type == compute);
    const cpu::Scalar scale(handle, compute, alpha), old(handle, compute, beta);
    return cpu::run_real(__func__, handle, compute, [=, A = *A, B = *B, C = *C](auto number) {
        using T = decltype(number);
        const T *const from = (const T *)B.values, factor = scale, b = old;
        T *const to = (T *)C.values;
        for (int64_t i = 0; i < C.rows; i++)
            for (int64_t j = 0; j < C.columns; j++) {
                T &c = to[cpu::place(C, i, j)];
                c = b == 0 ? 0 : b * c;
            }
        cpu::for_entries(A, [&](int64_t i, int64_t l, int64_t k) {
            const T value = factor * ((const T *)A.values)[k];
            for (int64_t j = 0; j < C.columns; j++)
                to[cpu::place(C, ta ? l : i, j)] += value * from[cpu::place(B, ta ? i : l, j, tb)];
        });
    });
}

// ---- triangular systems ----

// op(A) y = alpha x
CUDA_CPU_FUNCTION(SpSV_solve, cusparseOperation_t op, const void *alpha, cusparseConstSpMatDescr_t A,
                  cusparseConstDnVecDescr_t x, cusparseDnVecDescr_t y, cudaDataType compute,
                  cusparseSpSVAlg_t, cusparseSpSVDescr_t) {
    CUDA_CPU_VALID(alpha && A && x && y && A->rows == A->columns && x->size == A->rows && y->size == A->rows);
    CUDA_CPU_SUPPORT(A->type == compute && x->type == compute && y->type == compute &&
                     A->format != CUSPARSE_FORMAT_CSC);
    const cpu::Scalar scale(handle, compute, alpha);
    return cpu::run_real(__func__, handle, compute, [=, A = *A, x = x->values, y = y->values](auto number) {
        using T = decltype(number);
        cpu::solve<T>(A, op != CUSPARSE_OPERATION_NON_TRANSPOSE, scale, (const T *)x, 1, (T *)y, 1);
    });
}
// op(A) C = alpha op(B)
CUDA_CPU_FUNCTION(SpSM_solve, cusparseOperation_t opa, cusparseOperation_t opb, const void *alpha,
                  cusparseConstSpMatDescr_t A, cusparseConstDnMatDescr_t B, cusparseDnMatDescr_t C,
                  cudaDataType compute, cusparseSpSMAlg_t, cusparseSpSMDescr_t) {
    CUDA_CPU_VALID(alpha && A && B && C && A->rows == A->columns && C->rows == A->rows);
    const bool tb = opb != CUSPARSE_OPERATION_NON_TRANSPOSE;
    CUDA_CPU_REQUIRE((tb ? B->columns : B->rows) == C->rows && (tb ? B->rows : B->columns) == C->columns);
    CUDA_CPU_SUPPORT(A->type == compute && B->type == compute && C->type == compute &&
                     A->format != CUSPARSE_FORMAT_CSC);
    const cpu::Scalar scale(handle, compute, alpha);
    return cpu::run_real(__func__, handle, compute, [=, A = *A, B = *B, C = *C](auto number) {
        using T = decltype(number);
        const T *const from = (const T *)B.values;
        T *const to = (T *)C.values;
        for (int64_t j = 0; j < C.columns; j++)
            cpu::solve<T>(A, opa != CUSPARSE_OPERATION_NON_TRANSPOSE, scale, from + cpu::place(B, 0, j, tb),
                          cpu::place(B, 1, 0, tb), to + cpu::place(C, 0, j), cpu::place(C, 1, 0));
    });
}

// Functions that prepare a call: the size of its buffer, and an analysis, which is not needed here. They take
// the arguments of the call between `op` and the algorithm.
#define CUDA_CPU_PREPARE(NAME, PREPARE, algorithm, ...)                                                      \
    CUDA_CPU_BUFFER(NAME, __VA_ARGS__, cudaDataType, algorithm)                                              \
    CUDA_CPU_FUNCTION(NAME##_##PREPARE, __VA_ARGS__, cudaDataType, algorithm, void *) {                      \
        return handle ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_NOT_INITIALIZED;                           \
    }
#define CUDA_CPU_COMMA ,
CUDA_CPU_PREPARE(SpMV, preprocess, cusparseSpMVAlg_t, cusparseOperation_t, const void *,
                 cusparseConstSpMatDescr_t, cusparseConstDnVecDescr_t, const void *, cusparseDnVecDescr_t)
CUDA_CPU_PREPARE(SpMM, preprocess, cusparseSpMMAlg_t, cusparseOperation_t, cusparseOperation_t, const void *,
                 cusparseConstSpMatDescr_t, cusparseConstDnMatDescr_t, const void *, cusparseDnMatDescr_t)
CUDA_CPU_PREPARE(SpSV, analysis, cusparseSpSVAlg_t CUDA_CPU_COMMA cusparseSpSVDescr_t, cusparseOperation_t,
                 const void *, cusparseConstSpMatDescr_t, cusparseConstDnVecDescr_t, cusparseDnVecDescr_t)
CUDA_CPU_PREPARE(SpSM, analysis, cusparseSpSMAlg_t CUDA_CPU_COMMA cusparseSpSMDescr_t, cusparseOperation_t,
                 cusparseOperation_t, const void *, cusparseConstSpMatDescr_t, cusparseConstDnMatDescr_t,
                 cusparseDnMatDescr_t)

// ---- conversions ----

CUDA_CPU_BUFFER(SparseToDense, cusparseConstSpMatDescr_t, cusparseDnMatDescr_t, cusparseSparseToDenseAlg_t)
CUDA_CPU_FUNCTION(SparseToDense, cusparseConstSpMatDescr_t A, cusparseDnMatDescr_t D,
                  cusparseSparseToDenseAlg_t, void *) {
    CUDA_CPU_VALID(A && D && A->rows == D->rows && A->columns == D->columns);
    CUDA_CPU_SUPPORT(A->type == D->type);
    return cpu::run_real(__func__, handle, A->type, [A = *A, D = *D](auto number) {
        using T = decltype(number);
        T *const to = (T *)D.values;
        for (int64_t i = 0; i < D.rows; i++)
            for (int64_t j = 0; j < D.columns; j++)
                to[cpu::place(D, i, j)] = 0;
        cpu::for_entries(
            A, [&](int64_t i, int64_t j, int64_t k) { to[cpu::place(D, i, j)] = ((const T *)A.values)[k]; });
    });
}
CUDA_CPU_BUFFER(DenseToSparse, cusparseConstDnMatDescr_t, cusparseSpMatDescr_t, cusparseDenseToSparseAlg_t)
namespace cuda_cpu::sparse {
// Calls f(outer, inner, value) for the elements that are not zero, in the order of the format.
template <class T, class F> void for_nonzero(const cusparseDnMatDescr &D, cusparseFormat_t format, F f) {
    const bool by_columns = format == CUSPARSE_FORMAT_CSC;
    const int64_t outer = by_columns ? D.columns : D.rows, inner = by_columns ? D.rows : D.columns;
    for (int64_t i = 0; i < outer; i++)
        for (int64_t j = 0; j < inner; j++) {
            const T value = ((const T *)D.values)[place(D, i, j, by_columns)];
            if (value != 0)
                f(i, j, value);
        }
}
} // namespace cuda_cpu::sparse
// Counts the elements, and writes the offsets of CSR and CSC. The program then reads the number with
// cusparseSpMatGetSize, allocates the other arrays, and sets their addresses.
CUDA_CPU_FUNCTION(DenseToSparse_analysis, cusparseConstDnMatDescr_t D, cusparseSpMatDescr_t A,
                  cusparseDenseToSparseAlg_t, void *) {
    CUDA_CPU_VALID(A && D && A->rows == D->rows && A->columns == D->columns);
    CUDA_CPU_SUPPORT(A->type == D->type);
    const auto work = [A, D = *D](auto number) {
        using T = decltype(number);
        const int64_t outer = A->format == CUSPARSE_FORMAT_CSC ? D.columns : D.rows;
        std::vector<int64_t> counts(outer + 1);
        cpu::for_nonzero<T>(D, A->format, [&](int64_t i, int64_t, T) { counts[i + 1]++; });
        std::partial_sum(counts.begin(), counts.end(), counts.begin());
        A->count = counts[outer];
        if (A->format != CUSPARSE_FORMAT_COO)
            cpu::with_index(A->offsets_type, [&](auto index) {
                for (int64_t i = 0; i <= outer; i++)
                    ((decltype(index) *)A->offsets)[i] = counts[i] + A->base;
            });
    };
    return cpu::run_real(__func__, handle, A->type, work, true);
}
CUDA_CPU_FUNCTION(DenseToSparse_convert, cusparseConstDnMatDescr_t D, cusparseSpMatDescr_t A,
                  cusparseDenseToSparseAlg_t, void *) {
    CUDA_CPU_VALID(A && D && A->rows == D->rows && A->columns == D->columns);
    CUDA_CPU_SUPPORT(A->type == D->type);
    return cpu::run_real(__func__, handle, A->type, [A = *A, D = *D](auto number) {
        using T = decltype(number);
        cpu::with_index(A.indices_type, [&](auto index) {
            using I = decltype(index);
            int64_t k = 0;
            cpu::for_nonzero<T>(D, A.format, [&](int64_t i, int64_t j, T value) {
                if (A.format == CUSPARSE_FORMAT_COO)
                    ((I *)A.offsets)[k] = i + A.base;
                ((I *)A.indices)[k] = j + A.base;
                ((T *)A.values)[k++] = value;
            });
        });
    });
}

// Between the rows of sorted entries and the offset of each row
CUDA_CPU_FUNCTION(Xcoo2csr, const int *rows, int count, int m, int *offsets, cusparseIndexBase_t base) {
    CUDA_CPU_VALID(m >= 0 && count >= 0 && offsets);
    return cpu::run(__func__, handle, [=] {
        for (int row = 0, k = 0; row <= m; row++) {
            while (k < count && rows[k] - base < row)
                k++;
            offsets[row] = k + base;
        }
    });
}
CUDA_CPU_FUNCTION(Xcsr2coo, const int *offsets, int count, int m, int *rows, cusparseIndexBase_t base) {
    CUDA_CPU_VALID(m >= 0 && count >= 0 && offsets);
    return cpu::run(__func__, handle, [=] { cpu::rows_of_entries(offsets, m, base, rows); });
}

// Sorting of the indices of a COO, CSR or CSC matrix. `permutation` is reordered in the same way.
CUDA_CPU_FUNCTION(CreateIdentityPermutation, int count, int *permutation) {
    CUDA_CPU_VALID(count >= 0 && permutation);
    return cpu::run(__func__, handle, [=] { std::iota(permutation, permutation + count, 0); });
}
#define CUDA_CPU_SORT_BUFFER(name)                                                                           \
    CUDA_CPU_BUFFER_OF(size_t, name##_bufferSizeExt, int, int, int, const int *, const int *)
CUDA_CPU_SORT_BUFFER(Xcoosort)
#define CUDA_CPU_SORT(NAME, first, second)                                                                   \
    CUDA_CPU_FUNCTION(NAME, int m, int n, int count, int *rows, int *columns, int *permutation, void *) {    \
        CUDA_CPU_VALID(m >= 0 && n >= 0 && count >= 0 && permutation);                                       \
        return cpu::run(__func__, handle, [=] { cpu::sort_entries(first, second, permutation, count); });    \
    }
CUDA_CPU_SORT(XcoosortByRow, rows, columns)
CUDA_CPU_SORT(XcoosortByColumn, columns, rows)
#define CUDA_CPU_SORT_INSIDE(NAME, lines)                                                                    \
    CUDA_CPU_SORT_BUFFER(NAME)                                                                               \
    CUDA_CPU_FUNCTION(NAME, int m, int n, int count, const cusparseMatDescr_t matrix, const int *offsets,    \
                      int *entries, int *permutation, void *) {                                              \
        CUDA_CPU_VALID(m >= 0 && n >= 0 && count >= 0 && matrix && offsets && permutation);                  \
        return cpu::run(__func__, handle, [=, base = matrix->base] {                                         \
            std::vector<int> first(count);                                                                   \
            cpu::rows_of_entries(offsets, lines, base, first.data());                                        \
            cpu::sort_entries(first.data(), entries, permutation, count);                                    \
        });                                                                                                  \
    }
CUDA_CPU_SORT_INSIDE(Xcsrsort, m)
CUDA_CPU_SORT_INSIDE(Xcscsort, n)
CUDA_CPU_BUFFER(Csr2cscEx2, int, int, int, const void *, const int *, const int *, void *, int *, int *,
                cudaDataType, cusparseAction_t, cusparseIndexBase_t, cusparseCsr2CscAlg_t)
CUDA_CPU_FUNCTION(Csr2cscEx2, int m, int n, int count, const void *values, const int *offsets,
                  const int *columns, void *csc_values, int *csc_offsets, int *csc_rows, cudaDataType type,
                  cusparseAction_t action, cusparseIndexBase_t base, cusparseCsr2CscAlg_t, void *) {
    CUDA_CPU_VALID(m >= 0 && n >= 0 && count >= 0);
    CUDA_CPU_SUPPORT(cpu::is_real(type));
    return cpu::run_real(__func__, handle, type, [=](auto number) {
        using T = decltype(number);
        std::vector<int> next(n + 1);
        for (int k = 0; k < count; k++)
            next[columns[k] - base + 1]++;
        std::partial_sum(next.begin(), next.end(), next.begin());
        for (int j = 0; j <= n; j++)
            csc_offsets[j] = next[j] + base;
        for (int i = 0; i < m; i++)
            for (int k = offsets[i] - base; k < offsets[i + 1] - base; k++) {
                const int to = next[columns[k] - base]++;
                csc_rows[to] = i + base;
                if (action == CUSPARSE_ACTION_NUMERIC)
                    ((T *)csc_values)[to] = ((const T *)values)[k];
            }
    });
}

// ---- incomplete LU factorization ----

#define CUDA_CPU_ILU(S, number)                                                                              \
    CUDA_CPU_BUFFER_OF(int, S##csrilu02_bufferSize, int, int, const cusparseMatDescr_t, number *,            \
                       const int *, const int *, csrilu02Info_t)                                             \
    CUDA_CPU_FUNCTION(S##csrilu02_analysis, int, int, const cusparseMatDescr_t, const number *, const int *, \
                      const int *, csrilu02Info_t, cusparseSolvePolicy_t, void *) {                          \
        return handle ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_NOT_INITIALIZED;                           \
    }                                                                                                        \
    CUDA_CPU_FUNCTION(S##csrilu02, int m, int count, const cusparseMatDescr_t matrix, number *values,        \
                      const int *offsets, const int *indices, csrilu02Info_t info, cusparseSolvePolicy_t,    \
                      void *) {                                                                              \
        CUDA_CPU_VALID(m >= 0 && count >= 0 && matrix && info);                                              \
        return cpu::run(__func__, handle, [=, base = matrix->base, zero_pivot = info->zero_pivot] {          \
            *zero_pivot = cpu::incomplete_lu(m, base, values, offsets, indices);                             \
        });                                                                                                  \
    }
CUDA_CPU_ILU(S, float)
CUDA_CPU_ILU(D, double)
CUDA_CPU_FUNCTION(Xcsrilu02_zeroPivot, csrilu02Info_t info, int *position) {
    CUDA_CPU_VALID(info && position);
    const auto work = [position, zero_pivot = info->zero_pivot] { *position = *zero_pivot; };
    const cusparseStatus_t status = cpu::run(__func__, handle, work, true);
    return status == CUSPARSE_STATUS_SUCCESS && handle->pointers == CUSPARSE_POINTER_MODE_HOST &&
                   *position >= 0
               ? CUSPARSE_STATUS_ZERO_PIVOT
               : status;
}
#undef CUDA_CPU_FUNCTION
#undef CUDA_CPU_LIBRARY
#undef CUDA_CPU_RESULT
#include "cuda_cpu/letters_on.h"
