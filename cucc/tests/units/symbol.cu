// SPDX-License-Identifier: MIT
// __device__ and __constant__ variables: copies, addresses, use in kernels, several devices.
#include "device.h"

struct Sphere {
    float x, y, z;
    int id;
};

__constant__ int numbers[64];
__constant__ float scale = 2.5f;
__device__ int counter = 7;
__device__ double table[3][5];
__device__ Sphere spheres[4];
__device__ volatile int flag;
__managed__ unsigned shared_by_all = 11;
__constant__ const int fixed_numbers[4] = {10, 20, 30, 40};
static __device__ int hidden[3] = {1, 2, 3};
namespace inner {
__device__ short small[5];
}
__device__ char odd[3];

// A variable, or an element of it
template <class T, class S> static T copied(const S &symbol, size_t i = 0) {
    T value = {};
    OK(cudaMemcpyFromSymbol(&value, symbol, sizeof value, i * sizeof value));
    return value;
}
template <class S, class T> static void set(S &symbol, const T &value) {
    OK(cudaMemcpyToSymbol(symbol, &value, sizeof value));
}

__global__ void read(int *out) {
    const int i = threadIdx.x;
    out[i] = numbers[i] + counter + (int)scale + fixed_numbers[i % 4] + hidden[i % 3];
}

__global__ void write() {
    counter += 1;
    table[2][4] = counter;
    spheres[3].id = 99;
    inner::small[4] = -5;
    odd[2] = 'z';
    shared_by_all *= 2;
}

TEST(symbols_are_copied_both_ways) {
    const std::vector<int> in = made(64, [](int i) { return i * i; });
    int out[64] = {};
    OK(cudaMemcpyToSymbol(numbers, in.data(), sizeof out));
    OK(cudaMemcpyFromSymbol(out, numbers, sizeof out));
    EXPECT(memcmp(in.data(), out, sizeof out) == 0);
    OK(cudaMemcpyFromSymbol(out, numbers, 8, 16)); // the offset is in bytes
    EXPECT(out[0] == 16 && out[1] == 25);
    const int two[2] = {-1, -2};
    OK(cudaMemcpyToSymbol(numbers, two, sizeof two, 62 * sizeof(int)));
    OK(cudaMemcpyFromSymbol(out, numbers, sizeof out));
    EXPECT(out[61] == 61 * 61 && out[62] == -1 && out[63] == -2);
    EXPECT(copied<float>(scale) == 2.5f);
    OK(cudaMemcpyToSymbol(numbers, in.data(), 0, sizeof numbers)); // 0 bytes at the end
    const cudaStream_t s = new_stream();
    OK(cudaMemcpyToSymbolAsync(counter, &in[3], sizeof(int), 0, cudaMemcpyHostToDevice, s));
    OK(cudaMemcpyFromSymbolAsync(&out[0], counter, sizeof(int), 0, cudaMemcpyDeviceToHost, s));
    OK(cudaStreamSynchronize(s));
    EXPECT(out[0] == 9);
}

TEST(kernels_see_symbols) {
    const Device<int> device(32);
    OK(cudaMemcpyToSymbol(numbers, made(64, [](int i) { return 1000 * i; }).data(), sizeof numbers));
    set(counter, 7);
    read<<<1, 32>>>(device.data);
    const auto expected = [](int i) { return 1000 * i + 7 + 2 + 10 * (i % 4 + 1) + i % 3 + 1; };
    EXPECT(device.host() == made(32, expected));
    shared_by_all = 21;
    write<<<1, 1>>>();
    OK(cudaDeviceSynchronize());
    EXPECT(shared_by_all == 42); // managed, so it belongs to both sides
    EXPECT(copied<double>(table, 14) == 8 && copied<Sphere>(spheres, 3).id == 99);
    EXPECT(copied<short>(inner::small, 4) == -5 && copied<char>(odd, 2) == 'z');
}

TEST(symbols_have_addresses_and_sizes) {
    size_t size = 0;
    double *address, value = 4.5;
    OK(cudaGetSymbolSize(&size, table));
    EXPECT(size == 15 * sizeof(double));
    OK(cudaGetSymbolSize(&size, flag));
    EXPECT(size == sizeof(int));
    OK(cudaGetSymbolAddress((void **)&address, table));
    OK(cudaMemcpy(address + 7, &value, sizeof value, cudaMemcpyHostToDevice));
    EXPECT(copied<double>(table, 7) == 4.5);
    OK(cudaMemset(address, 0, sizeof table));
    EXPECT(copied<double>(table, 7) == 0);
    cudaPointerAttributes of;
    OK(cudaPointerGetAttributes(&of, address));
    EXPECT(of.type == cudaMemoryTypeDevice);
    const Device<int> device(1); // from a variable to memory and back, on the device
    set(counter, 31);
    OK(cudaMemcpyFromSymbol(device.data, counter, sizeof(int), 0, cudaMemcpyDeviceToDevice));
    OK(cudaMemcpyToSymbol(hidden, device.data, sizeof(int), 4, cudaMemcpyDeviceToDevice));
    EXPECT(copied<int>(hidden, 1) == 31);
}

// No code of this file writes these by name, so a compiler could take them for constants.
static __device__ int level = 5;
static __constant__ float factor = 0.5f;
__global__ void read_level(float *out) {
    *out = level * factor;
}

TEST(kernels_read_values_that_only_copies_change) {
    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < device_count(); d++) {
            OK(cudaSetDevice(d));
            const Device<float> out(1);
            read_level<<<1, 1>>>(out.data);
            EXPECT(out.host()[0] == (pass ? (8 + d) * (d + 1.5f) : 2.5f));
            set(level, 8 + d);
            set(factor, d + 1.5f);
        }
}

TEST(a_reset_brings_the_first_values_back) {
    set(scale, 7.0f);
    OK(cudaDeviceReset());
    EXPECT(copied<float>(scale) == 2.5f);
}
