// SPDX-License-Identifier: MIT
// An array in device memory, for unit tests.
#ifndef TESTS_DEVICE_H
#define TESTS_DEVICE_H

#include <cuda_runtime.h>
#include <vector>
#include "../unit.h"

template <class T> struct Device {
    T *data;
    size_t n;
    explicit Device(const std::vector<T> &from) : n(from.size()) {
        OK(cudaMalloc(&data, (n + 1) * sizeof(T)));
        OK(cudaMemcpy(data, from.data(), n * sizeof(T), cudaMemcpyHostToDevice));
    }
    explicit Device(size_t count) : n(count) { // zeros
        OK(cudaMalloc(&data, (n + 1) * sizeof(T)));
        OK(cudaMemset(data, 0, n * sizeof(T)));
    }
    ~Device() { OK(cudaFree(data)); }
    Device(const Device &) = delete;
    // The values, after the kernels that have been launched
    std::vector<T> host() const {
        std::vector<T> copy(n);
        OK(cudaGetLastError());
        OK(cudaMemcpy(copy.data(), data, n * sizeof(T), cudaMemcpyDeviceToHost));
        return copy;
    }
};

// The kernel has set all values to 1.
[[maybe_unused]] static bool all_good(const Device<int> &good) {
    int wrong = 0;
    for (const int value : good.host())
        wrong += value != 1;
    return EXPECT(wrong == 0);
}

#endif
