// SPDX-License-Identifier: MIT
// Kernels that turn an array of values from 0 to 1 into the colours of a picture.
#pragma once

#include <stddef.h>
#include <cuda_runtime.h>

// One component (red, green or blue) of a colour given by hue and lightness. The component lies
// between `low` and `high`; `hue`, in degrees, is already shifted for this component.
__device__ inline unsigned char color_value(float low, float high, int hue) {
    hue = (hue + 360) % 360;
    float value = low;
    if (hue < 60)
        value = low + (high - low) * hue / 60;
    else if (hue < 180)
        value = high;
    else if (hue < 240)
        value = low + (high - low) * (240 - hue) / 60;
    return (unsigned char)(255 * value);
}

// The palette. The value is the lightness: 0 is black, 1 is white. It also turns the hue once around
// the colour circle, starting at cyan. The saturation is full. Values out of range are clamped; NaN
// counts as 0.
__device__ inline uchar4 color_of(float value) {
    float lightness = value > 0 ? value < 1 ? value : 1 : 0;
    int hue = (180 + (int)(360 * lightness)) % 360;
    float high = lightness <= 0.5f ? 2 * lightness : 1;
    float low = 2 * lightness - high;
    return make_uchar4(color_value(low, high, hue + 120), color_value(low, high, hue),
                       color_value(low, high, hue - 120), 255);
}

__device__ inline void set_pixel(unsigned char *pixels, size_t offset, uchar4 color) {
    pixels[offset * 4 + 0] = color.x;
    pixels[offset * 4 + 1] = color.y;
    pixels[offset * 4 + 2] = color.z;
    pixels[offset * 4 + 3] = color.w;
}
__device__ inline void set_pixel(uchar4 *pixels, size_t offset, uchar4 color) {
    pixels[offset] = color;
}

// One thread per pixel, in a two-dimensional grid. Pixel is uchar4, or unsigned char with 4 elements
// per pixel. `pitch` is the number of bytes from one row of values to the next.
template <class Pixel>
__global__ void float_to_color(Pixel *pixels, const float *values, size_t width, size_t height,
                               size_t pitch) {
    size_t x = threadIdx.x + blockIdx.x * blockDim.x;
    size_t y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= width || y >= height)
        return;
    const float *row = (const float *)((const char *)values + y * pitch);
    set_pixel(pixels, x + y * width, color_of(row[x]));
}

// The same for a grid of exactly the size of the picture, and values without padding.
template <class Pixel> __global__ void float_to_color(Pixel *pixels, const float *values) {
    size_t x = threadIdx.x + blockIdx.x * blockDim.x;
    size_t y = threadIdx.y + blockIdx.y * blockDim.y;
    size_t offset = x + y * blockDim.x * gridDim.x;
    set_pixel(pixels, offset, color_of(values[offset]));
}
