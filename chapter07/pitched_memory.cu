// SPDX-License-Identifier: MIT
/*
 * pitched_memory: rows that begin where the hardware likes them to
 *
 * Teaches: cudaMallocPitch makes rows as long as they have to be for each to begin at a good
 *          address, and says how long that is: the pitch. An element is then at row * pitch +
 *          column * size, in bytes, and cudaMemcpy2D copies between two pitches.
 * Book:    7.3.5 (course)
 * Run:     ./bin/chapter07/pitched_memory
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"
#include "../common/memory.h"

__device__ float *element(float *base, size_t pitch, size_t row, size_t column) {
    return (float *)((char *)base + row * pitch) + column; // whole rows in bytes, then floats
}

__global__ void fill(float *base, size_t pitch, size_t columns, size_t rows) {
    size_t column = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    size_t row = threadIdx.y + (size_t)blockIdx.y * blockDim.y;
    for (; row < rows; row += (size_t)blockDim.y * gridDim.y)
        if (column < columns)
            *element(base, pitch, row, column) = row * 1000.0f + column;
}

// Rows without gaps, made of the pitched ones.
static void copy_back(float *rows_of_floats, const float *dev, size_t pitch, size_t columns,
                      size_t rows) {
    size_t width = columns * sizeof(float);
    HANDLE_ERROR(
        cudaMemcpy2D(rows_of_floats, width, dev, pitch, width, rows, cudaMemcpyDeviceToHost));
}

static bool check(const float *got, size_t columns, size_t rows) {
    double *expected = (double *)malloc(columns * sizeof(double));
    HANDLE_NULL(expected);
    bool ok = true;
    for (size_t row = 0; row < rows && ok; row++) {
        for (size_t column = 0; column < columns; column++)
            expected[column] = row * 1000.0 + column;
        char name[32];
        snprintf(name, sizeof name, "row %zu", row);
        ok = check_floats(name, &got[row * columns], expected, columns, 0x1p-22); // two roundings
    }
    free(expected);
    return ok;
}

// One element straight from its place in bytes.
static bool check_place(const float *dev, size_t pitch, size_t row, size_t column) {
    size_t place = row * pitch + column * sizeof(float);
    float value;
    HANDLE_ERROR(
        cudaMemcpy(&value, (const char *)dev + place, sizeof value, cudaMemcpyDeviceToHost));
    printf("Row %zu, column %zu is at byte %zu * %zu + %zu * %zu = %zu: %g\n", row, column, row,
           pitch, column, sizeof(float), place, value);
    return check_value("element", value, row * 1000.0 + column, 0x1p-22);
}

int main(int argc, char **argv) {
    size_t columns = 100, rows = 64;
    const Option own[] = {OPTION_SIZE("columns", &columns, 1, 1 << 24, "floats in a row"),
                          OPTION_SIZE("rows", &rows, 1, 1 << 24, "how many there are"), OPTION_END};
    parse_options(argc, argv, "Memory with a pitch between its rows.", 0, own);
    select_device();

    // A row is longer by less than 1 KB on all devices so far.
    size_t width = columns * sizeof(float), bytes = width * rows;
    require_memory(bytes, bytes + rows * 1024);
    float *result = (float *)malloc(bytes), *dev, *dev_row;
    HANDLE_NULL(result);
    size_t pitch, pitch_of_one;
    HANDLE_ERROR(cudaMallocPitch((void **)&dev, &pitch, width, rows));
    HANDLE_ERROR(cudaMallocPitch((void **)&dev_row, &pitch_of_one, 1, 1));
    printf("Rows of %zu floats have %zu bytes, the pitch is %zu: %zu bytes are left over\n",
           columns, width, pitch, pitch - width);
    printf("A row of 1 byte has a pitch of %zu\n", pitch_of_one);
    bool ok = pitch >= width && pitch % pitch_of_one == 0;
    if (!ok)
        fprintf(stderr, "a pitch of %zu cannot be\n", pitch);

    dim3 threads(32, 8), blocks((columns + 31) / 32, rows < 65535 * 8 ? (rows + 7) / 8 : 65535);
    fill<<<blocks, threads>>>(dev, pitch, columns, rows);
    HANDLE_LAUNCH();

    copy_back(result, dev, pitch, columns, rows);
    inject_error(result, bytes);
    ok = check(result, columns, rows) && ok;
    ok = check_place(dev, pitch, rows / 2, columns / 3) && ok;

    HANDLE_ERROR(cudaFree(dev));
    HANDLE_ERROR(cudaFree(dev_row));
    free(result);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
