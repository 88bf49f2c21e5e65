// SPDX-License-Identifier: MIT
// LAPACK, which OpenBLAS contains, for cusolverDn.h and the batches of cublas_v2.h
#pragma once
#include "letters_off.h"
#include <algorithm>
#include <complex>
#include <type_traits>
#include <vector>
#include "../cuComplex.h"

// LAPACK's functions, in Fortran: every argument is an address, and the lengths of texts come last. The names
// here are our own, so that a program may declare them too.
namespace cuda_cpu::lapack {
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

// Calls f(work, lwork) twice: LAPACK first says which size is best. The program's workspace is not used.
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

// Matrices are stored by columns; the columns of A begin lda elements apart (ldb, ldc likewise).
//
// A, m x n, becomes its L and U. `pivots` gets min(m, n) row numbers, counted from 1; null: no pivoting.
// Returns LAPACK's info: 0, or the number of the first pivot that is 0, counted from 1.
#define CUDA_CPU_LU(s, T)                                                                                    \
    inline int factorize(int m, int n, T *A, int lda, int *pivots) {                                         \
        int info = 0;                                                                                        \
        if (!pivots)                                                                                         \
            return lu_without_pivots(m, n, (Number<T> *)A, lda);                                             \
        cuda_cpu_##s##getrf(m, n, A, lda, pivots, info);                                                     \
        return info;                                                                                         \
    }                                                                                                        \
    /* A, n x n, holds L and U. B, n x columns, becomes the solution of op(A) X = B. */                      \
    inline int substitute(char op, int n, int columns, const T *A, int lda, const int *pivots, T *B,         \
                          int ldb) {                                                                         \
        int info = 0;                                                                                        \
        const std::vector<int> none = no_exchanges(pivots ? 0 : n);                                          \
        cuda_cpu_##s##getrs(op, n, columns, A, lda, pivots ? pivots : none.data(), B, ldb, info, 1);         \
        return info;                                                                                         \
    }
CUDA_CPU_LU(s, float)
CUDA_CPU_LU(d, double)
CUDA_CPU_LU(c, cuComplex)
CUDA_CPU_LU(z, cuDoubleComplex)

} // namespace cuda_cpu::lapack
#include "letters_on.h"
