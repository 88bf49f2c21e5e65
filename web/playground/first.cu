// SPDX-License-Identifier: MIT
// The Mandelbrot set, one thread for each pixel. Change something and press Run.
#include <cstdio>

const int size = 512; // pixels a side

__global__ void mandelbrot(unsigned char *pixels) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float cr = 3.0f * x / size - 2.25f, ci = 3.0f * y / size - 1.5f, r = 0, i = 0;
    int steps = 0;
    for (; steps < 100 && r * r + i * i < 4; steps++) {
        float next = r * r - i * i + cr;
        i = 2 * r * i + ci;
        r = next;
    }
    unsigned char *pixel = pixels + 3 * (y * size + x);
    pixel[0] = steps * 5;
    pixel[1] = steps * 3;
    pixel[2] = steps == 100 ? 0 : 80 + steps;
}

int main() {
    unsigned char *pixels;
    cudaMallocManaged(&pixels, 3 * size * size);
    dim3 threads(16, 16), blocks(size / threads.x, size / threads.y);
    mandelbrot<<<blocks, threads>>>(pixels);
    cudaError_t error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorString(error));

    FILE *file = fopen("picture.ppm", "wb"); // the page shows it
    fprintf(file, "P6\n%d %d\n255\n", size, size);
    fwrite(pixels, 3, size * size, file);
    fclose(file);
    cudaFree(pixels);
    return error;
}
