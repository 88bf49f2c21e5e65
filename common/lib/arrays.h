// SPDX-License-Identifier: MIT
// For the part of a program below the "check" line: arrays that are freed at the end of their scope, and
// checks of an array against a formula. Only book.h includes this header, after it has defined HANDLE_ERROR.
#pragma once

// n elements in host memory: not initialized, all with the same value, or a copy of device memory. An array
// converts to a pointer to its first element.
template <class T> class HostArray {
    T *data;

  public:
    explicit HostArray(size_t n) : data(host_array<T>(n)) {}
    HostArray(size_t n, T value) : HostArray(n) { std::fill(data, data + n, value); }
    HostArray(const T *device, size_t n) : HostArray(n) {
        memset((void *)data, 0xff, n * sizeof(T)); // no results of an array that was freed before
        HANDLE_ERROR(cudaMemcpy(data, device, n * sizeof(T), cudaMemcpyDeviceToHost));
    }
    HostArray(const HostArray &) = delete;
    ~HostArray() { free(data); }
    operator T *() const { return data; }
};

// n elements in memory of the current device: not initialized, with the same value in all bytes, or a copy of
// host memory
template <class T> class DeviceArray {
    T *data;

  public:
    explicit DeviceArray(size_t n) { HANDLE_ERROR(cudaMalloc(&data, n * sizeof(T))); }
    DeviceArray(size_t n, unsigned char byte) : DeviceArray(n) {
        HANDLE_ERROR(cudaMemset(data, byte, n * sizeof(T)));
    }
    DeviceArray(const T *host, size_t n) : DeviceArray(n) {
        HANDLE_ERROR(cudaMemcpy(data, host, n * sizeof(T), cudaMemcpyHostToDevice));
    }
    DeviceArray(const DeviceArray &) = delete;
    ~DeviceArray() { HANDLE_ERROR(cudaFree(data)); }
    operator T *() const { return data; }
};

// n elements of page-locked host memory, not initialized, with the flags of cudaHostAlloc
template <class T> class PinnedArray {
    T *data;

  public:
    explicit PinnedArray(size_t n, unsigned flags = cudaHostAllocDefault) {
        HANDLE_ERROR(cudaHostAlloc(&data, n * sizeof(T), flags));
    }
    PinnedArray(const PinnedArray &) = delete;
    ~PinnedArray() { HANDLE_ERROR(cudaFreeHost(data)); }
    operator T *() const { return data; }
};

// In its scope, `size` is at most `most`: for a check of a size that is no multiple of a block's.
class Smaller {
    size_t &size;
    const size_t whole;

  public:
    Smaller(size_t &size, size_t most) : size(size), whole(size) { size = min_of(whole, most); }
    Smaller(const Smaller &) = delete;
    ~Smaller() { size = whole; }
};

// As the checks of check.h, with a function that returns the expected value of element i.
template <class Expect>
static inline bool check_ints(const char *name, const int *got, size_t n, Expect expect) {
    HostArray<int> expected(n);
    for (size_t i = 0; i < n; i++)
        expected[i] = expect(i);
    return check_ints(name, got, expected, n);
}
template <class Expect>
static inline bool check_floats(const char *name, const float *got, size_t n, double tol, Expect expect) {
    HostArray<double> expected(n);
    for (size_t i = 0; i < n; i++)
        expected[i] = expect(i);
    return check_floats(name, got, expected, n, tol);
}
