// SPDX-License-Identifier: MIT
// The systems of linear equations that conjugate_gradient solves, and their checks.
#ifndef CHAPTER12_SYSTEMS_H
#define CHAPTER12_SYSTEMS_H

#include <numeric>
#include "../common/book.h"

static float limit = 1e-4f;    // --limit: the method ends when |r| / |b| is so small
static int most_steps = 10000; // --iterations

// ---------------------------------------------------------------------------------------- proof

// Random numbers from -1 to 1
static inline void fill_vector(float *b, size_t unknowns) {
    for (size_t i = 0; i < unknowns; i++)
        b[i] = 2 * rnd(1) - 1;
}

// A = H L H with the eigenvalues L from 1 to `condition`, and the reflection H = 1 - 2 v v^T at a random
// vector v of length 1. With w = L v, A = L - 2 v w^T - 2 w v^T + 4 (v . w) v v^T.
static inline void fill_dense(float *A, size_t n, double condition) {
    double *v = host_array<double>(n), *w = host_array<double>(n), length = 0, vw = 0;
    for (size_t i = 0; i < n; i++) {
        v[i] = 2 * rnd(1) - 1;
        length += v[i] * v[i];
    }
    const auto eigenvalue = [=](size_t i) { return n == 1 ? 1 : 1 + (condition - 1) * i / (n - 1.0); };
    for (size_t i = 0; i < n; i++) {
        v[i] /= sqrt(length);
        w[i] = eigenvalue(i) * v[i];
        vw += v[i] * w[i];
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            A[i * n + j] =
                (i == j ? eigenvalue(i) : 0) - 2 * (v[i] * w[j] + w[i] * v[j]) + 4 * vw * v[i] * v[j];
    free(v);
    free(w);
}

// Poisson's equation on a grid of side * side cells, in CSR. Returns the number of entries.
static inline size_t fill_grid(int *rows, int *columns, float *values, size_t side) {
    size_t k = 0, cell = 0;
    const auto add = [&](bool is_there, size_t column, float value) {
        columns[k] = column;
        values[k] = value;
        k += is_there;
    };
    for (size_t y = 0; y < side; y++)
        for (size_t x = 0; x < side; x++, cell++) {
            rows[cell] = k;
            add(y > 0, cell - side, -1);
            add(x > 0, cell - 1, -1);
            add(true, cell, 4);
            add(x + 1 < side, cell + 1, -1);
            add(y + 1 < side, cell + side, -1);
        }
    rows[cell] = k;
    return k;
}

static inline double dot(const double *a, const double *b, size_t n) {
    return std::inner_product(a, a + n, b, 0.0);
}

// The conjugate gradient method in double; returns the number of steps.
template <class Multiply> static int host_steps(size_t n, Multiply multiply, const float *b) {
    double *r = host_array<double>(n), *d = host_array<double>(n), *y = host_array<double>(n);
    for (size_t i = 0; i < n; i++)
        r[i] = d[i] = b[i];
    double delta = dot(r, r, n), enough = (double)limit * limit * delta;
    int steps = 0;
    for (; steps < most_steps && delta > enough; steps++) {
        multiply(d, y);
        double alpha = delta / dot(d, y, n), before = delta;
        for (size_t i = 0; i < n; i++)
            r[i] -= alpha * y[i];
        delta = dot(r, r, n);
        for (size_t i = 0; i < n; i++)
            d[i] = r[i] + delta / before * d[i];
    }
    free(r);
    free(d);
    free(y);
    return steps;
}

// Checks |b - A x| / |b|, computed in double. It may exceed `limit` by what rounding has changed in r since
// the loop last computed b - A x: less than 2^-24 |A| |x| / |b| in 120 runs, so twice that is allowed. |A| is
// the largest eigenvalue. The number of steps may differ a little from that in double.
template <class Multiply>
static bool check_solution(size_t n, Multiply multiply, double norm, const float *x, const float *b,
                           int steps) {
    double *in = host_array<double>(n), *r = host_array<double>(n), bb = 0;
    for (size_t i = 0; i < n; i++) {
        in[i] = x[i];
        bb += (double)b[i] * b[i];
    }
    multiply(in, r);
    for (size_t i = 0; i < n; i++)
        r[i] = b[i] - r[i];
    double residual = bb > 0 ? sqrt(dot(r, r, n) / bb) : 0;
    double rounding = bb > 0 ? 2 * 0x1p-24 * norm * sqrt(dot(in, in, n) / bb) : 0;
    int on_host = host_steps(n, multiply, b);
    printf("  |b - A x| / |b| = %.2g in double; in double the method takes %d steps\n", residual, on_host);
    bool ok = check_value("residual", residual, 0, limit + rounding);
    ok = check_value("steps", steps, on_host, 0.1 + 2.0 / max_of(1, on_host)) && ok;
    free(in);
    free(r);
    return ok;
}

static inline bool check_dense(const float *A, const float *x, const float *b, size_t n, double condition,
                               int steps) {
    const auto multiply = [=](const double *in, double *out) {
        for (size_t i = 0; i < n; i++) {
            out[i] = 0;
            for (size_t j = 0; j < n; j++)
                out[i] += A[i * n + j] * in[j];
        }
    };
    return check_solution(n, multiply, condition, x, b, steps);
}

// Computes A x from the grid itself, without the sparse matrix.
static inline bool check_grid(const float *x, const float *b, size_t side, int steps) {
    const auto multiply = [=](const double *in, double *out) {
        const auto cell = [=](size_t x, size_t y) { return x < side && y < side ? in[y * side + x] : 0; };
        for (size_t y = 0; y < side; y++)
            for (size_t x = 0; x < side; x++)
                out[y * side + x] =
                    4 * cell(x, y) - cell(x - 1, y) - cell(x + 1, y) - cell(x, y - 1) - cell(x, y + 1);
    };
    return check_solution(side * side, multiply, 8, x, b, steps);
}

#endif
