// SPDX-License-Identifier: MIT
// For the unit tests of cuBLAS, cuSPARSE, cuSOLVER and cuFFT.
#pragma once

#include <cmath>
#include "device.h"

// A library's functions for both types, by overloading
#define TYPED(library, name)                                                                                 \
    template <class... A> static auto name(float, A &&...a) {                                                \
        return library##S##name(a...);                                                                       \
    }                                                                                                        \
    template <class... A> static auto name(double, A &&...a) {                                               \
        return library##D##name(a...);                                                                       \
    }

// A handle of a library, which create(&handle, arguments…) makes
template <class H, auto create, auto destroy> struct HandleOf {
    H h;
    template <class... A> explicit HandleOf(A... arguments) { OK(create(&h, arguments...)); }
    ~HandleOf() { OK(destroy(h)); }
    HandleOf(const HandleOf &) = delete;
    operator H() const { return h; }
};

template <class T> static bool near(double got, double expected, double scale) {
    return fabs(got - expected) <= scale * (sizeof(T) == 4 ? 1e-5 : 1e-13);
}

// f(0) + … + f(n - 1)
template <class F> static double sum(int n, F f) {
    double total = 0;
    for (int i = 0; i < n; i++)
        total += f(i);
    return total;
}

// Values on the host and in device memory. As an argument it is the pointer to the latter.
template <class T> struct Array : Device<T> {
    std::vector<T> host;

    explicit Array(const std::vector<T> &values) : Device<T>(values), host(values) {}
    explicit Array(size_t n) : Array(std::vector<T>(n)) {}
    operator T *() const { return this->data; }
    void to_device() const {
        OK(cudaMemcpy(*this, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    }
    std::vector<T> back() const {
        OK(cudaDeviceSynchronize());
        return Device<T>::host();
    }
    // Whether each element in device memory is near expected(index).
    template <class F> bool holds(double scale, F expected) const {
        const std::vector<T> got = back();
        for (size_t i = 0; i < got.size(); i++)
            if (!near<T>(got[i], expected((int)i), scale)) {
                fprintf(stderr, "  element %zu: %g, not %g\n", i, (double)got[i], (double)expected((int)i));
                return false;
            }
        return true;
    }
};

// Random numbers from -1 to 1
template <class T> static std::vector<T> noise(size_t n) {
    return made(n, [](int) { return pick(-1000, 1000) / (T)1000; });
}

// A matrix of random numbers, stored by columns. `more` is what the leading dimension exceeds the rows by.
template <class T> struct Matrix : Array<T> {
    int rows, columns, ld;

    Matrix(int rows, int columns, int more = 0)
        : Array<T>(noise<T>((size_t)(rows + more) * columns)), rows(rows), columns(columns), ld(rows + more) {
    }
    double at(int i, int j, bool transposed = false) const {
        return transposed ? this->host[j + (size_t)i * ld] : this->host[i + (size_t)j * ld];
    }
    // Whether each element in device memory is near expected(row, column), and nothing between the columns
    // has changed.
    template <class F> bool holds(double scale, F expected) const {
        return Array<T>::holds(scale, [&](int at) {
            return at % ld < rows ? (double)expected(at % ld, at / ld) : (double)this->host[at];
        });
    }
};
