// SPDX-License-Identifier: MIT
/*
 * ray_ladder: ray tracing, from every sphere for every pixel to the few that a tile shows
 *
 * Teaches: The book's kernel tests every sphere for every pixel, although most spheres miss most pixels. A
 *          warp that draws a tile tests each sphere once for the whole tile, one per lane, and its
 *          pixels need only those that touch it (culling). With many spheres a block first makes a list
 *          for a larger tile, and spheres that are hidden in the whole tile are dropped too.
 * Terms:   constant memory, global memory, ray tracing, culling, warp vote, warp shuffle, tile,
 *          vectorized store, coarsening, shared memory, launch overhead, L2 cache
 * Book:    6.2.3 (ladder)
 * Rungs:   0 book, constant memory (16 x 16 threads); 1 book, global memory (16 x 16 threads); 2 vectorized
 *          stores (four pixels per thread); 3 culling (a tile per warp); 4 list per block (in shared memory);
 *          5 hidden spheres (behind one that covers a tile); 6 four tiles per warp (culled together, in large
 *          pictures)
 * Build:   nvcc -o ray_ladder chapter06/ray_ladder.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter06/ray_ladder --size 1024
 * Differs: 20 and 1000 spheres are drawn, or as many as --spheres says. The nearest one is drawn, as in ray.
 *          The rate counts the bytes of the picture. The time includes the launch: the last row is a
 *          kernel that does nothing. "error" counts the pixels that differ from the book's picture.
 * Limit:   instructions. On an H200 the stores alone (memset) take 37 % of the time with 1000 spheres and
 *          4096 x 4096 pixels. With 20 spheres and 1024 x 1024 pixels half of the time is the launch.
 * Bench:   64 256 512 1024 4096
 * Check:   --size 64 --spheres 40 | --size 100 --spheres 600
 */
#include "../common/book.h"
#include "../common/bench.h"
#include "spheres.h" // struct Sphere with hit(), place_spheres(), draw_spheres(), check_against()

const unsigned TILE = 4;   // lanes across a tile; each has four pixels
const unsigned WARPS = 16; // per block that makes a list
const unsigned ACROSS = 4; // tiles of such a block side by side

// The picture: pixels per side, half of that, and scene units per pixel
struct Screen {
    unsigned size;
    float half, unit;
    __device__ float at(float k) const { return (k - half) * unit; }
};

__constant__ Sphere s[MAX_SPHERES]; // of rung 0
static Sphere *dev_spheres;         // of the others
static Sphere host_spheres[MAX_SPHERES];
static unsigned char *dev_bitmap;
static unsigned char *bitmap, *book, *drawn; // host: of a rung, of the book's kernel, the reference
static bool make_reference(void);

// Rungs 0 and 1, the book's kernel. All threads of a warp read the same sphere at the same time. The book
// found constant memory up to 50 % faster than global memory; today the L1 cache serves such reads of global
// memory too. Loads from constant memory go through another unit of the multiprocessor, which on an H200 is
// busy for 96 % of the time of rung 0, and limits it (docs/book-vs-today.md).
__device__ static void draw_pixel(unsigned char *ptr, size_t size, const Sphere *s, int spheres) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    float half = size / 2.0f, unit = DIM / (float)size;
    float ox = (x - half) * unit, oy = (y - half) * unit;
    float r = 0, g = 0, b = 0;
    float maxz = -INF;
    for (int i = 0; i < spheres; i++) {
        float n = 0, t = s[i].hit(ox, oy, &n);
        if (t > maxz) {
            r = s[i].r * n;
            g = s[i].g * n;
            b = s[i].b * n;
            maxz = t;
        }
    }
    size_t offset = x + y * size;
    ptr[offset * 4 + 0] = (unsigned char)(r * 255);
    ptr[offset * 4 + 1] = (unsigned char)(g * 255);
    ptr[offset * 4 + 2] = (unsigned char)(b * 255);
    ptr[offset * 4 + 3] = 255;
}

__global__ void kernel(unsigned char *ptr, size_t size, const Sphere *, int spheres) {
    draw_pixel(ptr, size, s, spheres);
}

__global__ void kernel_global(unsigned char *ptr, size_t size, const Sphere *s, int spheres) {
    draw_pixel(ptr, size, s, spheres);
}

// The float that sqrtf() returns, without its branch for very small and large numbers. NaN unless x > 0.
// rsqrtf() in place of the instruction has three more, for very small numbers, which do not occur here.
__device__ static float root(float x) {
    float inverse;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
    float y = x * inverse;
    return fmaf(fmaf(-y, y, x), 0.5f * inverse, y);
}

// Rung 2: a thread has four pixels of a row, which share the loads of a sphere and are written with one store
// of 16 bytes. The color is computed once, for the nearest sphere. The lanes of a warp draw a tile of
// TILE * 4 x 32 / TILE pixels.
struct Rays {
    const Screen &screen;
    unsigned x, y;
    float ox[4], oy, maxz[4], dz[4];
    int nearest[4];

    __device__ Rays(unsigned left, unsigned bottom, const Screen &screen) : screen(screen) {
        x = left + threadIdx.x % TILE * 4;
        y = bottom + threadIdx.x / TILE;
        oy = screen.at(y);
        float first = x; // converted once: conversions have an eighth of the rate of additions
        for (int k = 0; k < 4; k++) {
            ox[k] = screen.at(first + k);
            maxz[k] = -INF;
            nearest[k] = -1;
        }
    }

    // dz * dz at pixel k; not above 0 if its ray misses the sphere. The operations of hit() of a sphere, as
    // nvcc compiles them with FMA, so the pictures are equal.
    __device__ float square(int k, float sx, float sy, float radius) const {
        float dx = ox[k] - sx, dy = oy - sy;
        return fmaf(-dy, dy, fmaf(radius, radius, -(dx * dx)));
    }

    // There is one branch for the four pixels, so their roots are computed together; comparisons with NaN are
    // false. With equal depths the sphere that comes first in memory wins, as in the book's loop; lists may
    // have another order.
    __device__ void test(float sx, float sy, float z, float radius, int i) {
        float squares[4], most = 0;
        for (int k = 0; k < 4; k++) {
            squares[k] = square(k, sx, sy, radius);
            most = fmaxf(most, squares[k]);
        }
        if (most == 0)
            return;
        for (int k = 0; k < 4; k++) {
            float height = root(squares[k]), t = z + height;
            if (t > maxz[k] || (t == maxz[k] && i < nearest[k])) {
                maxz[k] = t;
                dz[k] = height;
                nearest[k] = i;
            }
        }
    }

    // n is dz / radius: the remainder of the division corrects the product with the approximate inverse. The
    // sum with 2^23 has the whole part of a colour, from 0 to 255, in its last byte, and 0x4b in its first.
    __device__ static unsigned color(const Sphere &s, float dz, float inverse) {
        float q = dz * inverse, n = fmaf(fmaf(-q, s.radius, dz), inverse, q);
        return 0xff000000 - 0x4b000000 + __float_as_uint(__fadd_rz(s.r * n * 255, 0x1p23f)) +
               (__float_as_uint(__fadd_rz(s.g * n * 255, 0x1p23f)) << 8) +
               (__float_as_uint(__fadd_rz(s.b * n * 255, 0x1p23f)) << 16);
    }

    template <class Color> __device__ void store(uint4 *ptr, Color color_of) const {
        if (x < screen.size && y < screen.size)
            ptr[(x + (size_t)y * screen.size) / 4] =
                make_uint4(color_of(0), color_of(1), color_of(2), color_of(3));
    }

    __device__ void draw(uint4 *ptr, const Sphere *s) const {
        store(ptr, [&](int k) {
            int i = nearest[k];
            return i < 0 ? 0xff000000 : color(s[i], dz[k], __fdividef(1, s[i].radius));
        });
    }

    // If there is only one sphere, no depth is compared.
    __device__ void draw_one(uint4 *ptr, const Sphere &s, float inverse) const {
        store(ptr, [&](int k) {
            float dz2 = square(k, s.x, s.y, s.radius);
            return dz2 > 0 ? color(s, root(dz2), inverse) : 0xff000000;
        });
    }
};

__global__ void kernel_vectors(uint4 *ptr, const Sphere *s, int spheres, Screen screen) {
    Rays rays(blockIdx.x * TILE * 4, (blockIdx.y * blockDim.y + threadIdx.y) * (32 / TILE), screen);
    for (int i = 0; i < spheres; i++)
        rays.test(s[i].x, s[i].y, s[i].z, s[i].radius, i);
    rays.draw(ptr, s);
}

// Rung 3: culling. A sphere can be in a tile only if the point of the tile that is nearest to its center is
// within its radius. Each lane tests a different sphere, the warp vote __ballot_sync() tells all lanes which
// spheres touch the tile, and warp shuffles broadcast those from the lanes that have loaded them.
struct Ball {
    float x, y, z, radius;
    int i; // its place in s
};

__device__ static Ball ball(const Sphere *s, int i) {
    return {s[i].x, s[i].y, s[i].z, s[i].radius, i};
}

struct Tile {
    float left, right, bottom, top; // bounds of the tile: coordinates of its outermost pixels

    __device__ Tile(float x, float y, unsigned width, unsigned height, const Screen &screen)
        : left(screen.at(x)), right(screen.at(x + (width - 1))), bottom(screen.at(y)),
          top(screen.at(y + (height - 1))) {}

    // The square of the height of the sphere above its center, where it is highest in the tile; not above 0
    // if it does not touch the tile. The factor 1.0001 makes the test conservative: in spite of rounding
    // errors no sphere that touches the tile is dropped. A sphere that is kept needlessly only costs time.
    __device__ float highest(const Ball &s) const {
        float dx = fmaxf(fmaxf(left - s.x, s.x - right), 0), dy = fmaxf(fmaxf(bottom - s.y, s.y - top), 0);
        return s.radius * s.radius * 1.0001f - dx * dx - dy * dy;
    }

    // A lower bound for the depth of the sphere at all pixels of the tile; NaN if it does not cover the tile
    __device__ float covers(const Ball &s) const {
        float dx = fmaxf(s.x - left, right - s.x), dy = fmaxf(s.y - bottom, top - s.y);
        return s.z + root(s.radius * s.radius * 0.9999f - dx * dx - dy * dy) - 0.01f;
    }
};

__device__ static float warp_max(float x) {
    for (int lanes = 16; lanes > 0; lanes /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, lanes));
    return x;
}

// Draws the tiles of a warp, which lie one above the other; (x, y) is the lower left pixel of the lowest one.
// Only `count` spheres can be visible in them, and load(i) returns number i of these.
//
// Rung 5: if one sphere covers all pixels, spheres that are behind it everywhere are hidden.
template <bool hide, unsigned tiles, class Load>
__device__ static void draw_tiles(uint4 *ptr, const Sphere *s, unsigned x, unsigned y, const Screen &screen,
                                  int count, Load load) {
    const unsigned height = 32 / TILE;
    Tile all(x, y, TILE * 4, tiles * height, screen);
    Ball mine;          // the sphere of this lane
    float front = -INF; // at each pixel some sphere is at least as near as this
    for (int first = 0; hide && first < count; first += 32)
        front = fmaxf(front, warp_max(all.covers(load(min(first + (int)threadIdx.x, count - 1)))));
    auto cull = [&](int first) {
        mine = load(min(first + (int)threadIdx.x, count - 1));
        float highest = all.highest(mine);
        bool touches = first + (int)threadIdx.x < count && highest > 0;
        return __ballot_sync(0xffffffff, touches && (!hide || mine.z + root(highest) >= front));
    };
    unsigned seen = count ? cull(0) : 0;
    if (count <= 32 && seen == 0) {
        for (unsigned t = 0; t < tiles; t++)
            Rays(x, y + t * height, screen).draw(ptr, s);
        return;
    }
    if (count <= 32 && (seen & (seen - 1)) == 0) {
        Sphere one = s[__shfl_sync(0xffffffff, mine.i, __ffs(seen) - 1)];
        float inverse = __fdividef(1, one.radius);
        for (unsigned t = 0; t < tiles; t++)
            Rays(x, y + t * height, screen).draw_one(ptr, one, inverse);
        return;
    }
    for (unsigned t = 0; t < tiles; t++) {
        Rays rays(x, y + t * height, screen);
        for (int first = 0; first < count; first += 32) {
            if (count > 32)
                seen = cull(first);
            for (unsigned lanes = seen; lanes; lanes &= lanes - 1) {
                int lane = __ffs(lanes) - 1;
                rays.test(__shfl_sync(0xffffffff, mine.x, lane), __shfl_sync(0xffffffff, mine.y, lane),
                          __shfl_sync(0xffffffff, mine.z, lane), __shfl_sync(0xffffffff, mine.radius, lane),
                          __shfl_sync(0xffffffff, mine.i, lane));
            }
        }
        rays.draw(ptr, s);
    }
}

__global__ void kernel_culling(uint4 *ptr, const Sphere *s, int spheres, Screen screen) {
    draw_tiles<false, 1>(ptr, s, blockIdx.x * TILE * 4, (blockIdx.y * blockDim.y + threadIdx.y) * (32 / TILE),
                         screen, spheres, [=](int i) { return ball(s, i); });
}

// Rungs 4 to 6: with many spheres the culling itself takes most of the time. The threads of a block together
// cull for all its tiles, and append the spheres that touch them to a list in shared memory. Then each warp
// culls only this list.
//
// Rung 6: a warp culls once for several tiles if the list has at most 32 spheres.
template <bool hide, unsigned tiles>
__global__ void __launch_bounds__(32 * WARPS)
    kernel_list(uint4 *ptr, const Sphere *s, int spheres, Screen screen) {
    __shared__ Ball list[MAX_SPHERES];
    __shared__ int count;
    const unsigned width = TILE * 4, height = tiles * (32 / TILE);
    unsigned left = blockIdx.x * ACROSS * width, bottom = blockIdx.y * (WARPS / ACROSS) * height;
    Tile all(left, bottom, ACROSS * width, WARPS / ACROSS * height, screen);
    if (threadIdx.x + threadIdx.y == 0)
        count = 0;
    __syncthreads();
    for (int i = threadIdx.x + threadIdx.y * 32; i < spheres; i += 32 * WARPS)
        if (all.highest(ball(s, i)) > 0)
            list[atomicAdd(&count, 1)] = ball(s, i);
    __syncthreads();
    draw_tiles<hide, tiles>(ptr, s, left + threadIdx.y % ACROSS * width,
                            bottom + threadIdx.y / ACROSS * height, screen, count,
                            [=](int i) { return list[i]; });
}

static void run_book(void (*kernel)(unsigned char *, size_t, const Sphere *, int)) {
    dim3 blocks((size - 1) / 16 + 1, (size - 1) / 16 + 1), threads(16, 16);
    kernel<<<blocks, threads>>>(dev_bitmap, size, dev_spheres, spheres);
    HANDLE_LAUNCH();
}

// The grid of a kernel whose blocks have `warps` warps with `tiles` tiles each, `across` tiles side by side
static dim3 blocks_of(unsigned across, unsigned warps, unsigned tiles) {
    unsigned width = across * TILE * 4, height = warps / across * tiles * (32 / TILE);
    return dim3((size - 1) / width + 1, (size - 1) / height + 1);
}

static void run(void (*kernel)(uint4 *, const Sphere *, int, Screen), unsigned across, unsigned warps,
                unsigned tiles = 1) {
    kernel<<<blocks_of(across, warps, tiles), dim3(32, warps)>>>(
        (uint4 *)dev_bitmap, dev_spheres, spheres, {(unsigned)size, size / 2.0f, DIM / (float)size});
    HANDLE_LAUNCH();
}

// In a small picture four tiles per warp would leave fewer than two blocks per multiprocessor: there a warp
// has one, as in rung 5.
static void run_four_tiles(void) {
    dim3 blocks = blocks_of(ACROSS, WARPS, 4);
    if (blocks.x * blocks.y < 2u * device_attribute(cudaDevAttrMultiProcessorCount))
        run(kernel_list<true, 1>, ACROSS, WARPS);
    else
        run(kernel_list<true, 4>, ACROSS, WARPS, 4);
}

static const char *four_need(void) {
    return size % 4 ? "needs a size that is a multiple of 4" : NULL;
}

// With up to 32 spheres rung 3 tests one per lane, so a list for the block would save nothing.
static const char *list_needs(void) {
    return four_need() ? four_need() : spheres <= 32 ? "needs more than 32 spheres" : NULL;
}

static const Rung rungs[] = {
    {"book, constant memory", "16 x 16 threads", [] { run_book(kernel); }},
    {"book, global memory", "16 x 16 threads", [] { run_book(kernel_global); }},
    {"vectorized stores", "four pixels per thread", [] { run(kernel_vectors, 1, 4); }, four_need},
    {"culling", "a tile per warp", [] { run(kernel_culling, 1, 4); }, four_need},
    {"list per block", "in shared memory", [] { run(kernel_list<false, 1>, ACROSS, WARPS); }, list_needs},
    {"hidden spheres", "behind one that covers a tile", [] { run(kernel_list<true, 1>, ACROSS, WARPS); },
     list_needs},
    {"four tiles per warp", "culled together, in large pictures", run_four_tiles, list_needs},
    {"memset", "of the whole picture", [] { HANDLE_ERROR(cudaMemsetAsync(dev_bitmap, 0, size * size * 4)); },
     LIMIT},
};

int main(int argc, char **argv) {
    int counts[] = {SPHERES, (int)BENCH_SIZE(1000, 100)};
    spheres = 0;
    settings(argc, argv);
    size_t bytes = size * size * 4;
    bitmap = host_array<unsigned char>(bytes);
    book = host_array<unsigned char>(bytes);
    drawn = host_array<unsigned char>(bytes);
    bench_malloc(&dev_bitmap, bytes);
    bench_malloc(&dev_spheres, sizeof host_spheres);

    bool ok = true, one = spheres > 0;
    for (int i = 0; i < (one ? 1 : 2); i++) {
        spheres = one ? spheres : counts[i];
        bench.data = std::to_string(spheres) + " spheres";
        ok = make_reference() && ok;
        bench_run(rungs);
    }

    return bench_finish({bitmap, book, drawn}, ok);
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    size = BENCH_SIZE(DIM, 128);
    configure(argc, argv, "Ray tracing, from the book's kernel to the fastest.", LADDER,
              {OPTION_SIZE("size", &size, 1, 65535, "pixels a side"),
               OPTION_INT("spheres", &spheres, 1, MAX_SPHERES, "number of spheres; default 20, then 1000")});
    require_memory(4 * size * size * 4, size * size * 4);
    bench.title = std::to_string(size) + " x " + std::to_string(size) + " pixels";
    bench.size = size;
    bench.work = bench.footprint = size * size * 4; // each pixel is written once
    bench.left = [](const std::string &name) {
        return std::vector<BenchLeft>(name == "memset", {dev_bitmap, NULL, bench.footprint});
    };
}

// Places new spheres, and draws them on the host and with the book's kernel. One in the middle has the
// position and radius of the first one, and another colour. Their depths are equal; the first must be drawn.
// The last one is in front of all others.
static bool make_reference(void) {
    size_t bytes = size * size * 4;
    place_spheres(host_spheres, spheres);
    Sphere first = host_spheres[0];
    host_spheres[spheres - 1].z = 700;
    if (spheres > 2)
        host_spheres[spheres / 2] = {1 - first.r, 1 - first.g, 1 - first.b, first.x,
                                     first.y,     first.z,     first.radius};
    HANDLE_ERROR(cudaMemcpyToSymbol(s, host_spheres, sizeof(Sphere) * spheres));
    HANDLE_ERROR(cudaMemcpy(dev_spheres, host_spheres, sizeof(Sphere) * spheres, cudaMemcpyHostToDevice));
    draw_spheres(drawn, host_spheres);
    run_book(kernel);
    HANDLE_ERROR(cudaMemcpy(book, dev_bitmap, bytes, cudaMemcpyDeviceToHost));
    return check_value("at least one sphere", spheres > 0, true, 0) && check_against("book", book, drawn);
}

static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_bitmap, 0x5a, size * size * 4));
}

static bool check(const char *name, BenchError *error) {
    size_t pixels = size * size;
    HANDLE_ERROR(cudaMemcpy(bitmap, dev_bitmap, pixels * 4, cudaMemcpyDeviceToHost));
    error->max = 0;
    for (size_t i = 0; i < pixels; i++)
        error->max += memcmp(bitmap + 4 * i, book + 4 * i, 4) != 0;
    return check_against(name, bitmap, drawn);
}
