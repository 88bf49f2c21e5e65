// SPDX-License-Identifier: MIT
// cuSOLVER for sparse linear systems A x = b. The matrix is in CSR format. The reverse Cuthill-McKee
// algorithm permutes its rows and columns, so that the nonzeros are near the diagonal. Then LAPACK solves
// the banded system: csrlsvchol by Cholesky factorization, csrlsvlu and csrlsvqr by LU factorization with
// partial pivoting. Memory and time grow with the bandwidth. The reordering functions (symrcm, symmdq,
// symamd, metisnd) all return the reverse Cuthill-McKee permutation.
//
// E. Cuthill, J. McKee: Reducing the bandwidth of sparse symmetric matrices. Proceedings of the 24th
// National Conference of the ACM, 1969.
#pragma once
#define CUSOLVERSP_H_
#include "cusolver_common.h"
#include "cusparse.h"
#include "cuda_cpu/lapack.h"
#include <limits.h>
#include <new>
#include <numeric>
#include "cuda_cpu/letters_off.h"

struct cusolverSpContext {
    cudaStream_t stream = nullptr;
};
typedef cusolverSpContext *cusolverSpHandle_t;

namespace cuda_cpu::lapack {

#define CUDA_CPU_BAND(s, T)                                                                                  \
    extern "C" {                                                                                             \
    CUDA_CPU_LAPACK(s##gbsv, Int n, Int below, Int above, Int nrhs, T *band, Int ld, int *pivots, T *x,      \
                    Int ldx, int &info)                                                                      \
    CUDA_CPU_LAPACK(s##pbsv, Char, Int n, Int below, Int nrhs, T *band, Int ld, T *x, Int ldx, int &info,    \
                    Length)                                                                                  \
    }                                                                                                        \
    inline int solve_band(int n, int below, int above, T *band, int ld, int *pivots, T *x) {                 \
        int info = 0;                                                                                        \
        if (pivots)                                                                                          \
            cuda_cpu_##s##gbsv(n, below, above, 1, band, ld, pivots, x, n, info);                            \
        else                                                                                                 \
            cuda_cpu_##s##pbsv('L', n, below, 1, band, ld, x, n, info, 1);                                   \
        return info;                                                                                         \
    }
CUDA_CPU_BAND(s, float)
CUDA_CPU_BAND(d, double)
CUDA_CPU_BAND(c, cuComplex)
CUDA_CPU_BAND(z, cuDoubleComplex)

// The sparsity pattern of an n x n matrix in CSR format; `base`: the first index, 0 or 1
struct Pattern {
    int n;
    const int *rows, *columns, base;

    bool valid(int count) const {
        bool ok = rows[0] == base && rows[n] - base == count;
        for (int i = 0; i < n; i++)
            ok &= rows[i] <= rows[i + 1];
        for (int k = 0; ok && k < count; k++)
            ok = columns[k] >= base && columns[k] - base < n;
        return ok;
    }
    template <class F> void each(F f) const { // calls f(row, column, index in `columns`), all from 0
        for (int i = 0; i < n; i++)
            for (int k = rows[i] - base; k < rows[i + 1] - base; k++)
                f(i, columns[k] - base, k);
    }
};

// The reverse Cuthill-McKee permutation p: row i of the permuted matrix is row p[i] of A; so with columns.
inline std::vector<int> cuthill_mckee(const Pattern &A) {
    std::vector<std::vector<int>> near(A.n);
    A.each([&](int i, int j, int) {
        if (i != j)
            near[i].push_back(j), near[j].push_back(i);
    });
    for (std::vector<int> &list : near) {
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    const auto fewer = [&](int a, int b) { return near[a].size() < near[b].size(); };
    std::vector<int> order, starts(A.n);
    std::vector<char> placed(A.n);
    std::iota(starts.begin(), starts.end(), 0);
    std::stable_sort(starts.begin(), starts.end(), fewer);
    const auto walk = [&](int start) { // breadth first; returns the last one, which is far from the start
        size_t at = order.size();
        order.push_back(start);
        for (placed[start] = true; at < order.size(); at++) {
            const size_t first = order.size();
            for (const int next : near[order[at]])
                if (!placed[next])
                    placed[next] = true, order.push_back(next);
            std::stable_sort(order.begin() + first, order.end(), fewer);
        }
        return order.back();
    };
    for (const int start : starts) {
        if (placed[start])
            continue;
        const size_t before = order.size();
        const int far = walk(start);
        for (size_t i = before; i < order.size(); i++)
            placed[order[i]] = false;
        order.resize(before);
        walk(far);
    }
    std::reverse(order.begin(), order.end());
    return order;
}
inline std::vector<int> inverse(const std::vector<int> &p) {
    std::vector<int> q(p.size());
    for (size_t i = 0; i < p.size(); i++)
        q[p[i]] = (int)i;
    return q;
}

// Solves A x = b. Returns -1; or, if A is singular, the index of the first pivot whose absolute value is at
// most `tolerance`, in the order of elimination. Then x is unchanged.
template <class T, class Real>
int solve_sparse(bool cholesky, const Pattern &A, const T *values, const T *b, Real tolerance, T *x) {
    const std::vector<int> p = cuthill_mckee(A), q = inverse(p);
    const int n = A.n;
    int below = 0, above = 0;
    A.each([&](int i, int j, int) {
        below = std::max(below, q[i] - q[j]);
        above = std::max(above, q[j] - q[i]);
    });
    if (cholesky)
        below = std::max(below, above);
    const int diagonal = cholesky ? 0 : below + above, ld = diagonal + below + 1;
    if ((size_t)ld * n > INT_MAX)
        throw std::bad_alloc(); // LAPACK counts with int
    std::vector<T> band((size_t)ld * n), y(n);
    A.each([&](int i, int j, int k) {
        if (cholesky && i < j) // the lower triangle alone counts
            return;
        const bool mirrored = cholesky && q[i] < q[j];
        const int row = mirrored ? q[j] : q[i], column = mirrored ? q[i] : q[j];
        Number<T> &element = (Number<T> &)band[diagonal + row - column + (size_t)column * ld];
        if constexpr (std::is_floating_point<T>::value)
            element += values[k];
        else
            element += mirrored ? std::conj(number(values[k])) : number(values[k]);
    });
    for (int i = 0; i < n; i++)
        y[i] = b[p[i]];
    std::vector<int> pivots(n);
    const int info =
        solve_band(n, below, above, band.data(), ld, cholesky ? nullptr : pivots.data(), y.data());
    for (int i = 0; i < n; i++)
        if (i == info - 1 || std::abs(number(band[diagonal + (size_t)i * ld])) <= tolerance)
            return i;
    for (int i = 0; i < n; i++)
        x[p[i]] = y[i];
    return -1;
}

} // namespace cuda_cpu::lapack

#define CUDA_CPU_LIBRARY      lapack
#define CUDA_CPU_RESULT(name) CUSOLVER_STATUS_##name
#define CUDA_CPU_FUNCTION(name, ...)                                                                         \
    static inline cusolverStatus_t cusolverSp##name(cusolverSpHandle_t handle, __VA_ARGS__)
CUDA_CPU_HANDLES(CUDA_CPU_DEFINE, cusolverSp, cusolverSpContext)
CUDA_CPU_SETTING(CUDA_CPU_FUNCTION, Stream, cudaStream_t, stream)

// The functions without Host in their name take device memory. They wait for the stream, because
// `singularity` is in host memory.
#define CUDA_CPU_SOLVE(NAME, T, Real, cholesky, on_host)                                                     \
    CUDA_CPU_FUNCTION(NAME, int n, int count, const cusparseMatDescr_t matrix, const T *values,              \
                      const int *rows, const int *columns, const T *b, Real tolerance, int, T *x,            \
                      int *singularity) {                                                                    \
        CUDA_CPU_VALID(n >= 0 && count >= 0 && matrix && values && rows && columns && b && x &&              \
                       singularity);                                                                         \
        CUDA_CPU_REQUIRE(matrix->type == CUSPARSE_MATRIX_TYPE_GENERAL);                                      \
        cusolverStatus_t status = CUSOLVER_STATUS_SUCCESS;                                                   \
        const auto work = [&] {                                                                              \
            try {                                                                                            \
                const cpu::Pattern A = {n, rows, columns, (int)matrix->base};                                \
                if (A.valid(count))                                                                          \
                    *singularity = cpu::solve_sparse(cholesky, A, values, b, tolerance, x);                  \
                else                                                                                         \
                    status = CUSOLVER_STATUS_INVALID_VALUE;                                                  \
            } catch (const std::exception &) { /* bad_alloc or length_error */                               \
                status = CUSOLVER_STATUS_ALLOC_FAILED;                                                       \
            }                                                                                                \
        };                                                                                                   \
        if (on_host)                                                                                         \
            work();                                                                                          \
        else if (cuda_cpu::library_call(__func__, handle->stream, work, true) != cudaSuccess)                \
            return CUSOLVER_STATUS_EXECUTION_FAILED;                                                         \
        return status;                                                                                       \
    }
#define CUDA_CPU_SOLVES(S, T, Real)                                                                          \
    CUDA_CPU_SOLVE(S##csrlsvluHost, T, Real, false, true)                                                    \
    CUDA_CPU_SOLVE(S##csrlsvqrHost, T, Real, false, true)                                                    \
    CUDA_CPU_SOLVE(S##csrlsvqr, T, Real, false, false)                                                       \
    CUDA_CPU_SOLVE(S##csrlsvcholHost, T, Real, true, true)                                                   \
    CUDA_CPU_SOLVE(S##csrlsvchol, T, Real, true, false)
CUDA_CPU_SOLVES(S, float, float)
CUDA_CPU_SOLVES(D, double, double)
CUDA_CPU_SOLVES(C, cuComplex, float)
CUDA_CPU_SOLVES(Z, cuDoubleComplex, double)

// ---- reordering: row i of the permuted matrix is row p[i] of A ----

#define CUDA_CPU_PATTERN                                                                                     \
    int n, int count, const cusparseMatDescr_t matrix, const int *rows, const int *columns
#define CUDA_CPU_ORDER(name, ...)                                                                            \
    CUDA_CPU_FUNCTION(name, CUDA_CPU_PATTERN, __VA_ARGS__ int *p) {                                          \
        CUDA_CPU_VALID(n >= 0 && count >= 0 && matrix && rows && columns && p);                              \
        const cpu::Pattern A = {n, rows, columns, (int)matrix->base};                                        \
        CUDA_CPU_REQUIRE(A.valid(count));                                                                    \
        const std::vector<int> order = cpu::cuthill_mckee(A);                                                \
        std::copy(order.begin(), order.end(), p);                                                            \
        return CUSOLVER_STATUS_SUCCESS;                                                                      \
    }
CUDA_CPU_ORDER(XcsrsymrcmHost, )
CUDA_CPU_ORDER(XcsrsymmdqHost, )
CUDA_CPU_ORDER(XcsrsymamdHost, )
#define CUDA_CPU_OPTIONS const int64_t *,
CUDA_CPU_ORDER(XcsrmetisndHost, CUDA_CPU_OPTIONS)

// Whether the sparsity pattern is symmetric. Row i has the elements from rows[i] to ends[i] - 1.
CUDA_CPU_FUNCTION(XcsrissymHost, int n, int count, const cusparseMatDescr_t matrix, const int *rows,
                  const int *ends, const int *columns, int *symmetric) {
    CUDA_CPU_VALID(n >= 0 && count >= 0 && matrix && rows && ends && columns && symmetric);
    std::vector<std::pair<int, int>> places, mirrored;
    for (int i = 0; i < n; i++)
        for (int k = rows[i] - matrix->base; k < ends[i] - matrix->base; k++) {
            places.emplace_back(i, columns[k] - matrix->base);
            mirrored.emplace_back(columns[k] - matrix->base, i);
        }
    std::sort(places.begin(), places.end());
    std::sort(mirrored.begin(), mirrored.end());
    *symmetric = places == mirrored;
    return CUSOLVER_STATUS_SUCCESS;
}

// Permutes a square matrix in place: element (i, j) of the result is element (p[i], q[j]) of the old matrix.
// `map` is permuted as the array of values must be.
CUDA_CPU_FUNCTION(Xcsrperm_bufferSizeHost, int m, int n, int count, const cusparseMatDescr_t matrix,
                  const int *, const int *, const int *, const int *, size_t *bytes) {
    CUDA_CPU_VALID(m >= 0 && n >= 0 && count >= 0 && matrix && bytes);
    *bytes = 1;
    return CUSOLVER_STATUS_SUCCESS;
}
CUDA_CPU_FUNCTION(XcsrpermHost, int m, int n, int count, const cusparseMatDescr_t matrix, int *rows,
                  int *columns, const int *p, const int *q, int *map, void *) {
    CUDA_CPU_VALID(m >= 0 && n >= 0 && count >= 0 && matrix && rows && columns && p && q && map);
    const int base = matrix->base;
    CUDA_CPU_REQUIRE(m == n && (cpu::Pattern{n, rows, columns, base}).valid(count));
    for (int i = 0; i < n; i++)
        CUDA_CPU_REQUIRE(p[i] >= 0 && p[i] < n && q[i] >= 0 && q[i] < n);
    const std::vector<int> old_rows(rows, rows + m + 1), old_columns(columns, columns + count),
        old_map(map, map + count), to = cpu::inverse(std::vector<int>(q, q + n));
    std::vector<std::pair<int, int>> row; // columns, and where they were
    for (int i = 0, at = 0; i < m; i++) {
        row.clear();
        for (int k = old_rows[p[i]] - base; k < old_rows[p[i] + 1] - base; k++)
            row.emplace_back(to[old_columns[k] - base], k);
        std::sort(row.begin(), row.end());
        rows[i] = at + base;
        for (const auto &[column, k] : row) {
            columns[at] = column + base;
            map[at++] = old_map[k];
        }
        rows[i + 1] = at + base;
    }
    return CUSOLVER_STATUS_SUCCESS;
}
#undef CUDA_CPU_LIBRARY
#undef CUDA_CPU_RESULT
#undef CUDA_CPU_FUNCTION
#include "cuda_cpu/letters_on.h"
