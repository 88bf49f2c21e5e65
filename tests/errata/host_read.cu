// SPDX-License-Identifier: MIT
// Rauber and Rünger: the host adds numbers that it reads through a pointer to device memory.
#include <stdio.h>

int main() {
    float parts[4] = {1, 2, 3, 4}, *dev_parts, sum = 0;
    cudaMalloc(&dev_parts, sizeof(parts));
    cudaMemcpy(dev_parts, parts, sizeof(parts), cudaMemcpyHostToDevice);
    for (int i = 0; i < 4; i++)
        sum += dev_parts[i];
    printf("%g\n", sum);
    cudaFree(dev_parts);
}
