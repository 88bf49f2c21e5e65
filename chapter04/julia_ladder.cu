// SPDX-License-Identifier: MIT
/*
 * julia_ladder: the Julia set, from one block per pixel to a symmetry that saves half of the iterations
 *
 * Teaches: One thread in a block leaves 31 lanes of its warp idle. The lanes of a whole warp wait for the
 *          one that iterates longest, so a warp draws 8 x 4 pixels, which need similar numbers of
 *          iterations. Then the instructions per iteration determine the time. All rungs round as the
 *          book's kernel does, because near the boundary of the set a different last bit changes the pixel.
 * Terms:   compute-bound, warp divergence, FMA, loop unrolling, load balancing, Julia set,
 *          two-dimensional grid, lane
 * Book:    4.2.2 (ladder)
 * Rungs:   0 book (one block per pixel); 1 two-dimensional blocks (16 x 16 threads); 2 square warps (8 x 4
 *          pixels: less divergence); 3 fewer operations (same rounding); 4 fewer tests (after 10 steps,
 *          unrolled); 5 symmetry (z and -z, middle first)
 * Build:   nvcc -o julia_ladder chapter04/julia_ladder.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter04/julia_ladder --size 1000
 * Differs: four Julia sets are drawn, or with --real and --imag that of another c. The rate of every rung
 *          counts the iterations that the book's kernel computes for the picture. The time includes the
 *          launch.
 * Limit:   the lanes of a warp wait for the one whose point takes most steps, and the last ten steps of a
 *          point that diverges are computed for nothing. A small picture takes 1.5 to 2
 *          times as long as a memset of it.
 * Bench:   125 250 500 1000 4000
 * Check:   --size 64 | --size 37 --real -1 --imag 0.2 --iterations 13
 */
#include "../common/book.h"
#include "../common/bench.h"

const int EVERY = 10;       // iterations between two tests, from rung 4 on
const float FAR = 1000;     // of the squared magnitude, beyond which a point certainly diverges
const unsigned LONG = 4096; // iterations per thread in the row "half of the steps"

struct View {
    size_t size;             // pixels a side
    float scale, real, imag; // the picture shows -scale to scale on both axes; c is real + imag * i
    int iterations;          // after which a point counts as part of the set
};
static View view = {1000, 1.5f, -0.8f, 0.156f, 200}; // the book's
static uchar4 *dev_bitmap;
static unsigned char *bitmap, *expected; // host: of a rung, of the book's kernel
static unsigned multiprocessors;         // of the device
static bool make_reference(void);

struct cuComplex {
    float r, i;
    __device__ float magnitude2(void) const { return r * r + i * i; }
    __device__ cuComplex operator*(cuComplex a) const { return {r * a.r - i * a.i, i * a.r + r * a.i}; }
    __device__ cuComplex operator+(cuComplex a) const { return {r + a.r, i + a.i}; }
};

// The coordinate of column or row k in the complex plane.
__device__ static float coordinate(unsigned k, View view) {
    float half = view.size / 2.0f;
    return view.scale * (half - k) / half;
}

// Rungs 0 to 2, the book's: iterates a = a * a + c and returns the number of steps before the one that
// exceeds the limit.
__device__ static int julia(unsigned x, unsigned y, View view) {
    cuComplex c = {view.real, view.imag};
    cuComplex a = {coordinate(x, view), coordinate(y, view)};
    for (int i = 0; i < view.iterations; i++) {
        a = a * a + c;
        if (a.magnitude2() > FAR)
            return i;
    }
    return view.iterations;
}

__device__ static uchar4 color(bool inside) {
    return make_uchar4(inside ? 255 : 0, 0, 0, 255);
}

// One block per pixel. A warp has 32 lanes, and this block uses one of them.
__global__ void kernel(uchar4 *ptr, View view) {
    unsigned x = blockIdx.x, y = blockIdx.y;
    ptr[x + y * view.size] = color(julia(x, y, view) == view.iterations);
}

// Rung 1: one thread per pixel. Rung 2 launches the same kernel with blocks that are 8 threads wide, so that
// a warp draws 8 x 4 pixels. They are nearer to each other than 16 x 2, so they diverge after more similar
// numbers of steps, and the lanes wait less for each other.
__global__ void kernel_2d(uchar4 *ptr, View view) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < view.size && y < view.size)
        ptr[x + y * view.size] = color(julia(x, y, view) == view.iterations);
}

// Rung 3: the step a = a * a + c with five operations. The book's needs six and its test two, with FMA:
//     r' = fma(r, r, -(i * i)) + c.r      i' = fma(i, r, r * i) + c.i      fma(r', r', i' * i') > 1000
// i * i of the test is also that of the next step. i * r + r * i is twice r * i, and doubling is exact, so
// fma(2, r * i, c.i) has the same value as the book's i'. In r' both roundings must stay: with
// fma(r, r, fma(-i, i, c.r)), one operation less, 1.7 of 1000 pixels of the book's picture change.
struct Point {
    float r, i, ii; // ii: i * i
    __device__ Point(float r, float i) : r(r), i(i), ii(i * i) {}
    __device__ void step(View c) {
        float ri = r * i;
        r = r * r - ii + c.real;
        i = 2 * ri + c.imag;
        ii = i * i;
    }
    __device__ bool bounded(void) const { return r * r + ii <= FAR; } // false for NaN too
};

// Rung 4: divergence is tested only after every tenth iteration. A later test has the same result: once |a|
// exceeds the limit it grows with each iteration, since |a * a + c| >= |a| * |a| - |c| and |c| < 3, until the
// coordinates overflow to infinity and then become NaN. The compiler unrolls the ten iterations, so there is
// no branch between them.
template <int every> __device__ static bool inside(Point a, View view) {
    for (int k = 0; k < view.iterations % every; k++)
        a.step(view);
    for (int k = 0; k < view.iterations / every && a.bounded(); k++) {
#pragma unroll
        for (int j = 0; j < every; j++)
            a.step(view);
    }
    return a.bounded();
}

template <int every> __global__ void kernel_steps(uchar4 *ptr, View view) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < view.size && y < view.size)
        ptr[x + y * view.size] = color(inside<every>({coordinate(x, view), coordinate(y, view)}, view));
}

// Rung 5: a and -a have the same square, so the set is symmetric about the origin, also bit by bit. The
// thread of pixel (x, y) draws pixel (size - x, size - y) as well. Column 0 and row 0 have no counterpart in
// the picture, so the first thread of a row iterates two points. The blocks in the middle of the picture
// start first, because they take longest: if one of them started last, the other multiprocessors would be
// idle.
__global__ void kernel_symmetric(uchar4 *ptr, View view) {
    unsigned row = gridDim.y - 1 - blockIdx.y;
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + row * blockDim.y;
    if (x >= view.size || 2 * y > view.size)
        return;
    float jx = coordinate(x, view), jy = coordinate(y, view);
    uchar4 c = color(inside<EVERY>({jx, jy}, view));
    ptr[x + y * view.size] = c;
    if (y == 0 || 2 * y == view.size)
        return;
    if (x > 0)
        ptr[view.size - x + (view.size - y) * view.size] = c;
    else
        ptr[(view.size - y) * view.size] = color(inside<EVERY>({jx, -jy}, view));
}

// The limit: iterations only, without tests, warp divergence and stores. All threads iterate the same point.
__global__ void kernel_alone(uchar4 *ptr, View view) {
    Point a(view.real, view.imag);
#pragma unroll 16
    for (unsigned k = 0; k < LONG; k++)
        a.step(view);
    if (a.r == 1) // never true; the compiler does not know that
        *ptr = color(true);
}

static unsigned alone_blocks(void) {
    return BENCH_SIZE(16 * multiprocessors, 1);
}

static void run(void (*kernel)(uchar4 *, View), dim3 threads, size_t rows = view.size) {
    dim3 blocks((view.size - 1) / threads.x + 1, (rows - 1) / threads.y + 1);
    kernel<<<blocks, threads>>>(dev_bitmap, view);
    HANDLE_LAUNCH();
}

static void run_alone(void) {
    View still = view;
    still.real = still.imag = 0; // the point stays at the origin
    kernel_alone<<<alone_blocks(), 128>>>(dev_bitmap, still);
    HANDLE_LAUNCH();
}

static Rung rungs[] = {
    {"book", "one block per pixel", [] { run(kernel, 1); }},
    {"two-dimensional blocks", "16 x 16 threads", [] { run(kernel_2d, dim3(16, 16)); }},
    {"square warps", "8 x 4 pixels: less divergence", [] { run(kernel_2d, dim3(8, 16)); }},
    {"fewer operations", "same rounding", [] { run(kernel_steps<1>, dim3(8, 16)); }},
    {"fewer tests", "after 10 steps, unrolled", [] { run(kernel_steps<EVERY>, dim3(8, 16)); }},
    {"symmetry", "z and -z, middle first", [] { run(kernel_symmetric, dim3(8, 16), view.size / 2 + 1); }},
    {"half of the steps", "no tests, no divergence", run_alone, LIMIT},
    {"memset", "of the whole picture",
     [] { HANDLE_ERROR(cudaMemsetAsync(dev_bitmap, 0, view.size * view.size * 4)); }, LIMIT},
};

// The book's c, and three others: a set with many pixels inside, Douady's rabbit, and a set with few
static const float2 sets[] = {{-0.8f, 0.156f}, {-0.4f, 0.6f}, {-0.123f, 0.745f}, {0.285f, 0.01f}};

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t pixels = view.size * view.size;
    bitmap = host_array<unsigned char>(pixels * 4);
    expected = host_array<unsigned char>(pixels * 4);
    bench_malloc(&dev_bitmap, pixels * 4);

    bool ok = true, book = view.real == sets[0].x && view.imag == sets[0].y;
    for (int i = 0; i < (book ? 4 : 1); i++) {
        if (book) {
            view.real = sets[i].x;
            view.imag = sets[i].y;
        }
        ok = make_reference() && ok;
        bench.data = bench_format("c = %g ", view.real) + bench_format("%+gi", view.imag);
        bench_run(rungs);
    }
    return bench_finish({bitmap, expected}, ok);
}

// ---------------------------------------------------------------------------------------- check

#include "julia.h" // check_julia()

void settings(int argc, char **argv) {
    view.size = BENCH_SIZE(1000, 160);
    configure(argc, argv, "The Julia set, from the book's kernel to the fastest.", LADDER,
              {OPTION_SIZE("size", &view.size, 1, 65535, "pixels a side"),
               OPTION_FLOAT("real", &view.real, -2, 2, "real part of c; not the book's c: only this set"),
               OPTION_FLOAT("imag", &view.imag, -2, 2, "imaginary part of c"),
               OPTION_INT("iterations", &view.iterations, 1, 1000000,
                          "iterations after which a point counts as part of the set")});
    multiprocessors = device_attribute(cudaDevAttrMultiProcessorCount);
    size_t bytes = view.size * view.size * 4;
    require_memory(4 * bytes, bytes);
    bench.title = std::to_string(view.size) + " x " + std::to_string(view.size) + " pixels";
    bench.size = view.size;
    bench.unit = "Gsteps/s";
    bench.footprint = bytes;
    bench.left = [](const std::string &name) {
        return std::vector<BenchLeft>(name == "memset", {dev_bitmap, NULL, bench.footprint});
    };
    rungs[6].work = 2 * 128.0 * LONG * alone_blocks(); // by symmetry each step serves two pixels
}

// The reference is the picture of the book's kernel, after a check against the host's.
static bool make_reference(void) {
    run(kernel, 1);
    HANDLE_ERROR(cudaMemcpy(expected, dev_bitmap, view.size * view.size * 4, cudaMemcpyDeviceToHost));
    bool ok = check_julia(expected);
    bench.work = iterations; // also of rung 5, which computes half of them
    return ok;
}

static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_bitmap, 0x5a, view.size * view.size * 4));
}

// Every pixel is equal to that of the book's kernel.
static bool check(const char *name, BenchError *) {
    size_t pixels = view.size * view.size;
    HANDLE_ERROR(cudaMemcpy(bitmap, dev_bitmap, pixels * 4, cudaMemcpyDeviceToHost));
    return check_pixels(name, bitmap, expected, pixels, 0);
}
