// SPDX-License-Identifier: MIT
// chapter05/matmul_tensor.h: how matrices are split and packed for tensor cores. The product itself needs
// sm_90a.
#include "../../chapter05/matmul_tensor.h"
#include "../../common/random.h"
#include "../unit.h"
#include <vector>

void settings(int argc, char **argv) {
    (void)argc, (void)argv;
}

// The sum of the parts of a packed element; NAN if one is larger than the rounding error of the previous
// ones. `row` counts rows of a, or columns of b; z counts columns of a, or rows of b.
static double sum_of_parts(const std::vector<__nv_bfloat16> &packed, Tiles tiles, size_t row, size_t z) {
    double sum = 0;
    for (unsigned p = 0; p < PARTS; p++) {
        size_t tile = row / SIDE * tiles.depth + z / SLICE;
        size_t column = (tile * PARTS + p) * (SLICE / 8) + z % SLICE / 8;
        double part = __bfloat162float(packed[(column * SIDE + row % SIDE) * 8 + z % 8]);
        if (p > 0 && fabs(part) > fabs(sum) * 0x1p-8)
            return NAN;
        sum += part;
    }
    return sum;
}

// The three parts of each element add up to it exactly, at every position of a matrix; the padding is zero.
static void check_parts(size_t m, size_t n, size_t k) {
    std::vector<float> a(m * k), b(k * n);
    for (std::vector<float> *x : {&a, &b}) {
        random_floats(x->data(), x->size(), 1);
        for (float &v : *x)
            v = ldexpf(v - 0.5f, (int)(random_bits() % 81) - 40);
    }
    Tiles tiles = tensor_tiles(m, n, k);
    size_t bytes = tensor_workspace(m, n, k);
    std::vector<__nv_bfloat16> packed(bytes / sizeof(__nv_bfloat16));
    float *dev_a, *dev_b;
    uint4 *dev_packed;
    OK(cudaMalloc(&dev_a, a.size() * sizeof(float)));
    OK(cudaMalloc(&dev_b, b.size() * sizeof(float)));
    OK(cudaMalloc(&dev_packed, bytes));
    OK(cudaMemcpy(dev_a, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
    OK(cudaMemcpy(dev_b, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));
    OK(cudaMemset(dev_packed, 0xff, bytes));
    pack_parts<<<dim3(tiles.depth, tiles.rows + tiles.cols), 256>>>(dev_a, dev_b, dev_packed, m, n, k, tiles);
    OK(cudaGetLastError());
    OK(cudaMemcpy(packed.data(), dev_packed, bytes, cudaMemcpyDeviceToHost));
    size_t wrong = 0;
    for (size_t z = 0; z < tiles.depth * SLICE; z++) {
        for (size_t y = 0; y < tiles.rows * SIDE; y++)
            wrong += !(sum_of_parts(packed, tiles, y, z) == (y < m && z < k ? a[y * k + z] : 0));
        for (size_t x = 0; x < tiles.cols * SIDE; x++)
            wrong += !(sum_of_parts(packed, tiles, tiles.rows * SIDE + x, z) ==
                       (x < n && z < k ? b[z * n + x] : 0));
    }
    EXPECT(wrong == 0);
    OK(cudaFree(dev_a));
    OK(cudaFree(dev_b));
    OK(cudaFree(dev_packed));
}

TEST(parts_of_whole_tiles) {
    check_parts(128, 256, 64);
}

TEST(parts_at_the_edges) {
    check_parts(130, 127, 72); // rows of a are aligned to 16 bytes
    check_parts(1, 129, 35);
}

TEST(needs_sm_90a) { // the tests are compiled for the usual architectures
    EXPECT(tensor_needs() && strcmp(tensor_needs(), "needs sm_90a") == 0);
}
