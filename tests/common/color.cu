// SPDX-License-Identifier: MIT
// The palette and the kernels that use it.
#include "../../common/book.h"
#include "../../common/color.h"
#include "../../cucc/tests/unit.h"
#include <math.h>
#include <string.h>

// Values and their colours. The hue is cyan (180 degrees) at 0 and turns once around until 1.
static const struct {
    float value;
    unsigned char color[4];
} palette[] = {
    {0, {0, 0, 0, 255}},           {0.125f, {0, 15, 63, 255}}, // hue 225
    {0.25f, {63, 0, 127, 255}},                                // 270
    {0.5f, {255, 0, 0, 255}},                                  // 0
    {0.75f, {191, 255, 127, 255}},                             // 90
    {1, {255, 255, 255, 255}},     {-1, {0, 0, 0, 255}},
    {2, {255, 255, 255, 255}},     {INFINITY, {255, 255, 255, 255}},
    {NAN, {0, 0, 0, 255}},
};
enum { N = sizeof palette / sizeof *palette };

TEST(colors) {
    float *values;
    unsigned char *bytes;
    uchar4 *pixels;
    HANDLE_ERROR(cudaMallocManaged((void **)&values, 16 * sizeof(float)));
    HANDLE_ERROR(cudaMallocManaged((void **)&bytes, 4 * 16));
    HANDLE_ERROR(cudaMallocManaged((void **)&pixels, 4 * 16));
    for (int i = 0; i < 16; i++)
        values[i] = palette[i % N].value;
    float_to_color<<<dim3(2, 2), dim3(2, 2)>>>(bytes, values);
    HANDLE_LAUNCH();
    float_to_color<<<dim3(1, 2), dim3(4, 2)>>>(pixels, values);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaDeviceSynchronize());
    for (int i = 0; i < 16; i++)
        EXPECT(memcmp(bytes + 4 * i, palette[i % N].color, 4) == 0);
    EXPECT(memcmp(bytes, pixels, 4 * 16) == 0);
    HANDLE_ERROR(cudaFree(values));
    HANDLE_ERROR(cudaFree(bytes));
    HANDLE_ERROR(cudaFree(pixels));
}

TEST(colors_of_rows_with_a_pitch) {
    enum { WIDTH = 3, HEIGHT = 3, PITCH = 20 };
    char *values;
    uchar4 *pixels;
    HANDLE_ERROR(cudaMallocManaged((void **)&values, PITCH * HEIGHT));
    HANDLE_ERROR(cudaMallocManaged((void **)&pixels, 4 * (WIDTH * HEIGHT + 1)));
    memset(pixels, 7, 4 * (WIDTH * HEIGHT + 1));
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        ((float *)(values + i / WIDTH * PITCH))[i % WIDTH] = palette[i].value;
    float_to_color<<<dim3(2, 2), dim3(2, 2)>>>(pixels, (const float *)values, WIDTH, HEIGHT, PITCH);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaDeviceSynchronize());
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        EXPECT(memcmp(&pixels[i], palette[i].color, 4) == 0);
    EXPECT(pixels[WIDTH * HEIGHT].x == 7); // nothing is written beyond the picture
    HANDLE_ERROR(cudaFree(values));
    HANDLE_ERROR(cudaFree(pixels));
}
