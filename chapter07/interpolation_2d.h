// SPDX-License-Identifier: MIT
// For texture_interpolation --2d. texture_interpolation defines the kinds of filtering, per_texel and
// make_texture().
#ifndef CHAPTER07_INTERPOLATION_2D_H
#define CHAPTER07_INTERPOLATION_2D_H

#define SIDE 4 // texels of the texture for --2d, in each direction

// Point (i, j) is at x = (i + 0.5) / per_texel - 1, and y likewise with j.
__global__ void kernel_2d(float *values, cudaTextureObject_t texture, int points, int per_texel) {
    int i = threadIdx.x + blockIdx.x * blockDim.x, j = threadIdx.y + blockIdx.y * blockDim.y;
    if (i < points && j < points)
        values[i + j * points] =
            tex2D<float>(texture, (i + 0.5f) / per_texel - 1, (j + 0.5f) / per_texel - 1);
}

static double expected_2d(float got, const float (*texels)[SIDE], double x, double y, bool linear);

// For --2d. Returns the exit status.
static int read_in_two_dimensions(void) {
    float texels[SIDE][SIDE], back[SIDE][SIDE];
    for (int j = 0; j < SIDE; j++)
        for (int i = 0; i < SIDE; i++)
            texels[j][i] = i * i + 10 * j;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    HANDLE_ERROR(cudaMallocArray(&array, &format, SIDE, SIDE));
    HANDLE_ERROR(cudaMemcpy2DToArray(array, 0, 0, texels, sizeof(texels[0]), sizeof(texels[0]), SIDE,
                                     cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy2DFromArray(back, sizeof(back[0]), array, 0, 0, sizeof(back[0]), SIDE,
                                       cudaMemcpyDeviceToHost));
    int bits[2][SIDE * SIDE]; // compared as ints: the copies must not change a bit
    memcpy(bits[0], back, sizeof(back));
    memcpy(bits[1], texels, sizeof(texels));
    bool ok = check_ints("copied back", bits[0], bits[1], SIDE * SIDE);

    int points = (SIDE + 2) * per_texel;
    size_t count = (size_t)points * points;
    float *values = host_array<float>(count), *dev_values;
    double *expected = host_array<double>(count);
    HANDLE_ERROR(cudaMalloc(&dev_values, count * sizeof(float)));
    printf("Texel (i, j) is i * i + 10 * j, for i and j from 0 to %d.\n", SIDE - 1);
    for (int kind : {POINT, LINEAR}) {
        cudaTextureObject_t texture = make_texture(array, kind);
        dim3 blocks((points + 15) / 16, (points + 15) / 16), threads(16, 16);
        kernel_2d<<<blocks, threads>>>(dev_values, texture, points, per_texel);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpy(values, dev_values, count * sizeof(float), cudaMemcpyDeviceToHost));
        HANDLE_ERROR(cudaDestroyTextureObject(texture));
        printf("%s\n", kind == POINT ? "point" : "linear");
        for (int j = 0; j < points; j++) {
            for (int i = 0; i < points; i++) {
                size_t at = i + (size_t)j * points;
                expected[at] = expected_2d(values[at], texels, (i + 0.5) / per_texel - 1,
                                           (j + 0.5) / per_texel - 1, kind == LINEAR);
                printf(" %7.3f", values[at]);
            }
            printf("\n");
        }
        ok = check_floats(kind == POINT ? "point" : "linear", values, expected, count, 0) && ok;
    }
    HANDLE_ERROR(cudaFree(dev_values));
    HANDLE_ERROR(cudaFreeArray(array));
    free(values);
    free(expected);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

// The expected value at (x, y), or `got` if rounding can explain the difference: an error of the last of the
// 8 fractional bits of a weight changes the mean by at most 1/256 of the largest difference between the four
// texels.
static double expected_2d(float got, const float (*texels)[SIDE], double x, double y, bool linear) {
    auto texel = [&](double i, double j) {
        return texels[(int)fmin(fmax(j, 0), SIDE - 1)][(int)fmin(fmax(i, 0), SIDE - 1)];
    };
    if (!linear) { // on an edge between texels, rounding decides, so each texel at the edge is accepted
        for (double dx : {-1e-5, 1e-5})
            for (double dy : {-1e-5, 1e-5})
                if (got == texel(floor(x + dx), floor(y + dy)))
                    return got;
        return texel(floor(x), floor(y));
    }
    double i = floor(x - 0.5), j = floor(y - 0.5), a = x - 0.5 - i, b = y - 0.5 - j;
    double around[] = {texel(i, j), texel(i + 1, j), texel(i, j + 1), texel(i + 1, j + 1)};
    double value =
        (1 - b) * ((1 - a) * around[0] + a * around[1]) + b * ((1 - a) * around[2] + a * around[3]);
    double most = *std::max_element(around, around + 4), least = *std::min_element(around, around + 4);
    return fabs(got - value) <= 2 * (most - least) / 256 + 1e-5 ? got : value;
}

#endif
