// SPDX-License-Identifier: MIT
/*
 * texture_modes: address modes of a texture
 *
 * Teaches: The address mode says what a fetch outside the texture returns: border a fixed colour (black
 *          here), clamp the texel at the edge; wrap repeats the texture, and mirror repeats it with
 *          every second one reversed. Wrap and mirror need normalized coordinates, in which the
 *          texture extends from 0 to 1.
 * Terms:   address mode, border, clamp, wrap, mirror, normalized coordinates, texel, tex2D
 * Book:    7.3.5 (course); N textures (address modes)
 * After:   chapter07/texture_interpolation
 * Build:   nvcc -o texture_modes chapter07/texture_modes.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter07/texture_modes --output texture_modes.png
 * Picture: yes
 * Check:   --size 90
 */
#include "../common/book.h"
#include "../common/cpu_bitmap.h"

#define DIM   512
#define N     8 // the texture has N x N texels
#define MODES 4

static size_t size = DIM; // --size
static uchar4 texels[N * N];
static void draw_texels(void);
static bool check_row(const char *name, const float *columns, int mode);
static void expect(size_t x, size_t y, const unsigned char *got, unsigned char *expected);

static const cudaTextureAddressMode modes[MODES] = {cudaAddressModeBorder, cudaAddressModeClamp,
                                                    cudaAddressModeWrap, cudaAddressModeMirror};
static const char *const names[MODES] = {"border", "clamp", "wrap", "mirror"};

struct Textures {
    cudaTextureObject_t of_mode[MODES];
};

// Each quarter of the picture shows one mode, with texture coordinates from -1 to 2. Border and clamp are in
// the lower half. Returns the coordinate at the centre of a pixel; *quarter is 0 in the left or lower half,
// else 1.
__host__ __device__ float coordinate(size_t pixel, size_t size, int *quarter) {
    *quarter = 2 * pixel / size;
    return 3.0f * (2 * pixel + 1 - *quarter * size) / size - 1;
}

__global__ void kernel(uchar4 *ptr, Textures textures, size_t size) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    int column, row;
    float u = coordinate(x, size, &column), v = coordinate(y, size, &row);
    float4 color = tex2D<float4>(textures.of_mode[column + 2 * row], u, v); // 0 to 1
    ptr[x + y * size] = make_uchar4(color.x * 255 + 0.5f, color.y * 255 + 0.5f, color.z * 255 + 0.5f, 255);
}

// Reads the bottom row at the centres of texels, from one texture width before the texture to one behind it.
// The red component of a texel is 20 times the number of its column, counted from 1. So the result is the
// number of the column that was read, or 0 for the border.
__global__ void sample_row(float *columns, cudaTextureObject_t texture) {
    columns[threadIdx.x] = tex2D<float4>(texture, (threadIdx.x + 0.5f) / N - 1, 0.5f / N).x * 255 / 20;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    draw_texels();
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<uchar4>();
    HANDLE_ERROR(cudaMallocArray(&array, &format, N, N));
    HANDLE_ERROR(cudaMemcpy2DToArray(array, 0, 0, texels, N * sizeof(uchar4), N * sizeof(uchar4), N,
                                     cudaMemcpyHostToDevice));

    // Four texture objects for the same array. The resource says which memory is read. The texture
    // description says how: with this address mode, converted from 0…255 to 0…1, and at normalized
    // coordinates. Its filter mode stays 0, which is point filtering. A texture reference had one
    // description, so tex.addressMode was changed and the array bound once more for each mode.
    Textures textures;
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    for (int mode = 0; mode < MODES; mode++) {
        cudaTextureDesc desc = {};
        desc.addressMode[0] = desc.addressMode[1] = modes[mode];
        desc.readMode = cudaReadModeNormalizedFloat;
        desc.normalizedCoords = true;
        HANDLE_ERROR(cudaCreateTextureObject(&textures.of_mode[mode], &resource, &desc, NULL));
    }

    int right = 0; // checks that have passed
    float columns[3 * N], *dev_columns;
    HANDLE_ERROR(cudaMalloc(&dev_columns, sizeof(columns)));
    printf("column");
    for (int k = 0; k < 3 * N; k++)
        printf("%3d", k - N + 1);
    for (int mode = 0; mode < MODES; mode++) {
        sample_row<<<1, 3 * N>>>(dev_columns, textures.of_mode[mode]);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpy(columns, dev_columns, sizeof(columns), cudaMemcpyDeviceToHost));
        printf("\n%-6s", names[mode]);
        for (int k = 0; k < 3 * N; k++)
            printf("%3.0f", columns[k]);
        right += check_row(names[mode], columns, mode);
    }
    printf("\n");

    CPUBitmap bitmap(size, size);
    uchar4 *dev_bitmap;
    HANDLE_ERROR(cudaMalloc(&dev_bitmap, bitmap.image_size()));
    dim3 blocks((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    kernel<<<blocks, threads>>>(dev_bitmap, textures, size);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(bitmap.get_ptr(), dev_bitmap, bitmap.image_size(), cudaMemcpyDeviceToHost));
    bitmap.display_and_exit();
    right += check_picture("pixel", bitmap.get_ptr(), size, size, expect, 0);

    for (int mode = 0; mode < MODES; mode++)
        HANDLE_ERROR(cudaDestroyTextureObject(textures.of_mode[mode]));
    HANDLE_ERROR(cudaFreeArray(array));
    HANDLE_ERROR(cudaFree(dev_columns));
    HANDLE_ERROR(cudaFree(dev_bitmap));
    return check_value("right checks", right, MODES + 1, 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Shows what the address modes return outside a texture.", PICTURE,
              {OPTION_SIZE("size", &size, 1, 65535, "pixels a side")});
    require_memory(size * size * sizeof(uchar4), size * size * sizeof(uchar4));
}

// Draws a letter F, which looks different when it is reversed in either direction. Red is 20 times the number
// of the column, counted from 1.
static void draw_texels(void) {
    const char *const rows[N] = {"........", "..#.....", "..#.....", "..###...",
                                 "..#.....", "..#####.", "........", "........"};
    for (int i = 0; i < N * N; i++) {
        int x = i % N, y = i / N;
        bool letter = rows[y][x] == '#';
        texels[i] = make_uchar4(20 * (x + 1), letter ? 255 : 40 + 20 * y, letter ? 255 : 160, 255);
    }
}

// The column or row that is read for the index i, which may lie outside the texture; -1 for the border.
static int address(int i, int mode) {
    int wrapped = (i + 10 * N) % N; // i is never less than -10 * N
    switch (modes[mode]) {
    case cudaAddressModeBorder:
        return i < 0 || i >= N ? -1 : i;
    case cudaAddressModeClamp:
        return i < 0 ? 0 : i >= N ? N - 1 : i;
    case cudaAddressModeWrap:
        return wrapped;
    default:
        return (i + 10 * N) / N % 2 == 0 ? wrapped : N - 1 - wrapped;
    }
}

static bool check_row(const char *name, const float *columns, int mode) {
    return check_floats(name, columns, 3 * N, 1e-4, [=](int k) { return address(k - N, mode) + 1; });
}

// A pixel whose centre is on the edge of two texels may show either.
static void expect(size_t x, size_t y, const unsigned char *got, unsigned char *expected) {
    int column = 2 * x >= size, row = 2 * y >= size, mode = column + 2 * row;
    double u = 3 * (2 * x + 1.0 - column * size) / size - 1, v = 3 * (2 * y + 1.0 - row * size) / size - 1;
    const uchar4 black = {0, 0, 0, 255};
    for (int corner = 0; corner < 4; corner++) {
        int i = address(floor((u + (corner % 2 ? 1e-6 : -1e-6)) * N), mode);
        int j = address(floor((v + (corner / 2 ? 1e-6 : -1e-6)) * N), mode);
        memcpy(expected, i < 0 || j < 0 ? &black : &texels[i + j * N], 4);
        if (memcmp(got, expected, 4) == 0)
            return;
    }
}

// Task: kernel(): One thread per pixel of a picture of size x size pixels: the thread with the coordinates
// (x, y) in the grid computes pixel (x, y). Threads outside the picture do nothing.
// coordinate(x, size, &column) returns the texture coordinate u and sets column to the column of the quarter
// of the picture that contains the pixel, 0 or 1. coordinate(y, size, &row) returns v and sets row in the
// same way. The thread reads a float4 from the texture textures.of_mode[column + 2 * row] at (u, v). It
// stores the pixel in ptr[x + y * size]: red, green and blue are the components of the float4 times 255,
// rounded to the nearest integer, and alpha is 255.
// sample_row(): The grid has one block. Thread i reads a float4 from the texture at u = (i + 0.5) / N - 1 and
// v = 0.5 / N, in float, and stores red * 255 / 20 in columns[i], where red is the red component.
