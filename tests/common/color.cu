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
