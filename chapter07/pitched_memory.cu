// SPDX-License-Identifier: MIT
/*
 * pitched_memory: two-dimensional arrays with aligned rows
 *
 * Teaches: cudaMallocPitch pads the rows of a two-dimensional array, so that each row begins at an
 *          aligned address (for coalesced access), and returns the distance from row to row in bytes:
 *          the pitch. An element is at row * pitch + column * size, in bytes. cudaMemcpy2D copies
 *          between two pitches.
 * Terms:   pitch, cudaMallocPitch, cudaMemcpy2D, padding, alignment, coalesced access
 * Book:    7.3.5 (course); N arrays (pitch)
 * Build:   nvcc -o pitched_memory chapter07/pitched_memory.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter07/pitched_memory --columns 1001 --rows 16K
 * Check:   --columns 101 --rows 45
 */
#include "../common/book.h"

static size_t columns = 100, rows = 64; // --columns, --rows
static bool show_times(float *dev, size_t pitch);
static bool check(const float *got, size_t pitch, size_t pitch_of_one);

// The row is counted in bytes, the column in floats.
__device__ float *element(float *base, size_t pitch, size_t row, size_t column) {
    return (float *)((char *)base + row * pitch) + column;
}

__global__ void fill(float *base, size_t pitch, size_t columns, size_t rows) {
    size_t column = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    size_t row = threadIdx.y + (size_t)blockIdx.y * blockDim.y;
    for (; row < rows; row += (size_t)blockDim.y * gridDim.y) // a grid has at most 65535 blocks in y
        if (column < columns)
            *element(base, pitch, row, column) = row * 1000.0f + column;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t width = columns * sizeof(float), pitch, pitch_of_one;
    float *dev, *dev_one;
    HANDLE_ERROR(cudaMallocPitch(&dev, &pitch, width, rows));
    HANDLE_ERROR(cudaMallocPitch(&dev_one, &pitch_of_one, 1, 1));
    printf("Rows of %zu floats have %zu bytes, the pitch is %zu: %zu bytes are left over\n", columns, width,
           pitch, pitch - width);
    printf("A row of 1 byte has a pitch of %zu\n", pitch_of_one);

    dim3 threads(32, 8), blocks((columns + 31) / 32, min_of(65535, (rows + 7) / 8));
    fill<<<blocks, threads>>>(dev, pitch, columns, rows);
    HANDLE_LAUNCH();

    // The rows on the host have no padding: their pitch is their width.
    float *result = (float *)malloc(width * rows);
    HANDLE_NULL(result);
    HANDLE_ERROR(cudaMemcpy2D(result, width, dev, pitch, width, rows, cudaMemcpyDeviceToHost));
    bool ok = check(result, pitch, pitch_of_one);

    // One element alone, copied from its address.
    size_t row = rows / 2, column = columns / 3, offset = row * pitch + column * sizeof(float);
    float value;
    HANDLE_ERROR(cudaMemcpy(&value, (const char *)dev + offset, sizeof(float), cudaMemcpyDeviceToHost));
    printf("Row %zu, column %zu is at byte %zu * %zu + %zu * %zu = %zu: %g\n", row, column, row, pitch,
           column, sizeof(float), offset, value);
    ok = check_value("element", value, row * 1000.0 + column, 0x1p-22) && ok;
    ok = show_times(dev, pitch) && ok;

    HANDLE_ERROR(cudaFree(dev));
    HANDLE_ERROR(cudaFree(dev_one));
    free(result);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/timing.h" // median_ms()

void settings(int argc, char **argv) {
    configure(argc, argv, "Shows the pitch of a two-dimensional array.", TIMES,
              {OPTION_SIZE("columns", &columns, 1, 1 << 24, "floats in a row"),
               OPTION_SIZE("rows", &rows, 1, 1 << 24, "number of rows")});
    // On all devices so far the padding of a row is less than 1 KB.
    size_t bytes = columns * sizeof(float) * rows;
    require_memory(2 * bytes, 2 * bytes + rows * 1024);
}

// With a pitch that is a multiple of 128 bytes, each warp writes 32 floats in 4 sectors of 32 bytes. Without
// padding most rows begin within a sector, and a warp writes to 5.
static bool show_times(float *dev, size_t pitch) {
    size_t width = columns * sizeof(float);
    DeviceArray<float> packed(columns * rows);
    dim3 threads(32, 8), blocks((columns + 31) / 32, min_of(65535, (rows + 7) / 8));
    float ms = median_ms([&] { fill<<<blocks, threads>>>(dev, pitch, columns, rows); });
    printf("Kernel, rows with padding:    %.4f ms, %.3f GB/s\n", ms, width * rows / ms / 1e6);
    ms = median_ms([&] { fill<<<blocks, threads>>>(packed, width, columns, rows); });
    printf("Kernel, rows without padding: %.4f ms, %.3f GB/s\n", ms, width * rows / ms / 1e6);
    return check(HostArray<float>(packed, columns * rows), pitch, pitch);
}

// Compares each element with row * 1000 + column, which the device rounds twice, and sees whether the
// pitch can be right: a multiple of the smallest one, and not less than the width.
static bool check(const float *got, size_t pitch, size_t pitch_of_one) {
    bool ok = pitch >= columns * sizeof(float) && pitch % pitch_of_one == 0;
    if (!ok)
        fprintf(stderr, "a pitch of %zu is impossible\n", pitch);
    return check_floats("element", got, columns * rows, 0x1p-22,
                        [](size_t i) { return i / columns * 1000.0 + i % columns; }) &&
           ok;
}

// Task: element(): Return the address of the float in row `row` and column `column` of an array of floats
// whose rows begin `pitch` bytes apart.
// fill(): The grid has two dimensions. Set each element to row * 1000 + column. Each thread has one column,
// and does nothing if column >= columns. Its rows are those of a grid-stride loop in y: it starts at its y
// coordinate in the grid, and the stride is the height of the grid in threads.
