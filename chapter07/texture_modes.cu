// SPDX-License-Identifier: MIT
/*
 * texture_modes: what a texture gives beyond its edges
 *
 * Teaches: A texture answers for every coordinate, and its addressing mode says how: beyond the
 *          edges there is a border (black here), or the edge goes on, or all of it is repeated, or
 *          repeated in a mirror. The latter two need normalised coordinates, where it reaches from
 *          0 to 1.
 * Book:    7.3.5 (course, textures 2)
 * Run:     ./bin/chapter07/texture_modes --output texture_modes.png
 * Picture: yes
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"
#include "../common/cpu_bitmap.h"
#include "../common/memory.h"

#define DIM   512
#define N     8 // texels a side
#define MODES 4

struct Textures {
    cudaTextureObject_t of_mode[MODES];
};

static const cudaTextureAddressMode modes[MODES] = {cudaAddressModeBorder, cudaAddressModeClamp,
                                                    cudaAddressModeWrap, cudaAddressModeMirror};

// The picture has a quarter for each mode, border and clamp in the lower half. Each shows
// coordinates from -1 to 2. Where a pixel's middle is in its quarter, and which that is:
__host__ __device__ float coordinate(size_t pixel, size_t size, int *quarter) {
    *quarter = 2 * pixel / size;
    return 3.0f * (2 * pixel + 1 - *quarter * size) / size - 1;
}

__global__ void kernel(uchar4 *ptr, Textures textures, size_t size) {
    size_t x = threadIdx.x + blockIdx.x * blockDim.x;
    size_t y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    int column, row;
    float u = coordinate(x, size, &column), v = coordinate(y, size, &row);
    float4 color = tex2D<float4>(textures.of_mode[column + 2 * row], u, v); // 0 to 1
    ptr[x + y * size] =
        make_uchar4(color.x * 255 + 0.5f, color.y * 255 + 0.5f, color.z * 255 + 0.5f, 255);
}

// The columns that the middles of texels from -1 to 2 are in, by their red.
__global__ void sample_row(float *red, cudaTextureObject_t texture) {
    red[threadIdx.x] = tex2D<float4>(texture, (threadIdx.x + 0.5f) / N - 1, 0.5f / N).x * 255 / 20;
}

// Which way is up, and left, shows in a letter F. Red is 20 times the number of the column, from 1.
static void draw_texels(uchar4 *texels) {
    const char *const rows[N] = {"........", "..#.....", "..#.....", "..###...",
                                 "..#.....", "..#####.", "........", "........"};
    for (int i = 0; i < N * N; i++) {
        int x = i % N, y = i / N;
        bool letter = rows[y][x] == '#';
        texels[i] = make_uchar4(20 * (x + 1), letter ? 255 : 40 + 20 * y, letter ? 255 : 160, 255);
    }
}

// The texel that texel i, of any number, stands for; -1 is the border.
static int address(long i, int mode) {
    switch (modes[mode]) {
    case cudaAddressModeBorder:
        return i < 0 || i >= N ? -1 : (int)i;
    case cudaAddressModeClamp:
        return i < 0 ? 0 : i >= N ? N - 1 : (int)i;
    case cudaAddressModeWrap:
        return (int)((i + 10 * N) % N);
    default:
        return (int)((i + 10 * N) / N % 2 == 0 ? (i + 10 * N) % N : N - 1 - (i + 10 * N) % N);
    }
}

static uchar4 expected_color(const uchar4 *texels, double u, double v, int mode) {
    int x = address((long)floor(u * N), mode), y = address((long)floor(v * N), mode);
    return x < 0 || y < 0
               ? make_uchar4(0, 0, 0, 255)
               : make_uchar4(texels[x + y * N].x, texels[x + y * N].y, texels[x + y * N].z, 255);
}

// A pixel whose middle is on the edge of two texels may show either.
static bool check_picture(const unsigned char *pixels, const uchar4 *texels, size_t size) {
    uchar4 *expected = (uchar4 *)malloc(size * size * sizeof(uchar4));
    HANDLE_NULL(expected);
    for (size_t i = 0; i < size * size; i++) {
        int column, row;
        double u = coordinate(i % size, size, &column), v = coordinate(i / size, size, &row);
        for (int corner = 0; corner < 4; corner++) {
            uchar4 color = expected_color(texels, u + (corner % 2 ? 1e-6 : -1e-6),
                                          v + (corner / 2 ? 1e-6 : -1e-6), column + 2 * row);
            const unsigned char *got = pixels + i * 4;
            if (corner == 0 || (got[0] == color.x && got[1] == color.y && got[2] == color.z))
                expected[i] = color;
        }
    }
    bool ok = check_pixels("pixel", pixels, (unsigned char *)expected, size * size, 0);
    free(expected);
    return ok;
}

static bool print_table(const Textures &textures) {
    const char *const names[] = {"border", "clamp", "wrap", "mirror"};
    bool ok = true;
    float red[3 * N], *dev_red;
    HANDLE_ERROR(cudaMalloc((void **)&dev_red, sizeof red));
    printf("column");
    for (int k = 0; k < 3 * N; k++)
        printf("%3d", k - N);
    for (int mode = 0; mode < MODES; mode++) {
        double expected[3 * N];
        sample_row<<<1, 3 * N>>>(dev_red, textures.of_mode[mode]);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpy(red, dev_red, sizeof red, cudaMemcpyDeviceToHost));
        printf("\n%-6s", names[mode]);
        for (int k = 0; k < 3 * N; k++) {
            printf("%3.0f", red[k]);
            expected[k] = address(k - N, mode) + 1;
        }
        ok = check_floats(names[mode], red, expected, 3 * N, 1e-4) && ok;
    }
    printf("\n");
    HANDLE_ERROR(cudaFree(dev_red));
    return ok;
}

int main(int argc, char **argv) {
    size_t size = DIM;
    const Option own[] = {OPTION_SIZE("size", &size, 1, 65535, "pixels a side"), OPTION_END};
    parse_options(argc, argv, "Shows a texture beyond its edges.", PICTURE, own);
    select_device();
    size_t bytes = size * size * sizeof(uchar4);
    require_memory(2 * bytes, bytes);

    uchar4 texels[N * N];
    draw_texels(texels);
    cudaArray_t array;
    cudaResourceDesc resource = {};
    cudaChannelFormatDesc format = cudaCreateChannelDesc<uchar4>();
    HANDLE_ERROR(cudaMallocArray(&array, &format, N, N));
    HANDLE_ERROR(cudaMemcpy2DToArray(array, 0, 0, texels, N * sizeof(uchar4), N * sizeof(uchar4), N,
                                     cudaMemcpyHostToDevice));
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    Textures textures;
    for (int mode = 0; mode < MODES; mode++) {
        cudaTextureDesc desc = {};
        desc.addressMode[0] = desc.addressMode[1] = modes[mode];
        desc.readMode = cudaReadModeNormalizedFloat;
        desc.normalizedCoords = true;
        HANDLE_ERROR(cudaCreateTextureObject(&textures.of_mode[mode], &resource, &desc, NULL));
    }
    bool ok = print_table(textures);

    CPUBitmap bitmap(size, size);
    uchar4 *dev_bitmap;
    HANDLE_ERROR(cudaMalloc((void **)&dev_bitmap, bytes));
    dim3 blocks((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    kernel<<<blocks, threads>>>(dev_bitmap, textures, size);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(bitmap.get_ptr(), dev_bitmap, bytes, cudaMemcpyDeviceToHost));
    inject_error(bitmap.get_ptr(), bytes);
    ok = check_picture(bitmap.get_ptr(), texels, size) && ok;
    bitmap.display_and_exit();

    for (int mode = 0; mode < MODES; mode++)
        HANDLE_ERROR(cudaDestroyTextureObject(textures.of_mode[mode]));
    HANDLE_ERROR(cudaFreeArray(array));
    HANDLE_ERROR(cudaFree(dev_bitmap));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
