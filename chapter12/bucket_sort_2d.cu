// SPDX-License-Identifier: MIT
/*
 * bucket_sort_2d: points of the plane, sorted into the cells of a grid by Thrust
 *
 * Teaches: A grid of buckets finds the points near a place without looking at all of them. Three algorithms
 *          build it: a transformation computes the bucket of each point, a sort by key brings the points
 *          of a bucket together, and two binary searches for each number of a bucket find where its points
 *          begin and end. The searches for all buckets are one call, whose input is a counting iterator.
 * Terms:   Thrust, bucket sort, iterator, stable sort, binary search, clamp
 * Book:    12.4 (course); T bucket sort
 * After:   chapter12/thrust_sort
 * Build:   nvcc -o bucket_sort_2d chapter12/bucket_sort_2d.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter12/bucket_sort_2d --output bucket_sort_2d.png
 * Differs: rand() / (RAND_MAX + 1.0f) is 1 for the largest numbers, because they are rounded to RAND_MAX + 1,
 *          and such a point would be in a bucket beyond the last. Here it belongs to the last one, and the
 *          first point is always such a point.
 * Needs:   libs=thrust
 * Picture: yes
 * Check:   --points 1000 --width 13 --height 7
 */
#include <thrust/binary_search.h>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include "../common/book.h"
#include "../common/cpu_bitmap.h"
#include "libraries.h" // handle_exceptions()

#define POINTS 100000
#define WIDTH  200
#define HEIGHT 100

static int n = POINTS;                     // --points
static int width = WIDTH, height = HEIGHT; // --width, --height: of the grid
typedef thrust::host_vector<float2> Points;
typedef thrust::host_vector<int> Ints;
static bool check(const Points &points, const Points &sorted, const Ints &begins, const Ints &ends);
static void draw(const Ints &begins, const Ints &ends, unsigned char *ptr);

struct Bucket {
    int width, height;

    __host__ __device__ int operator()(float2 p) const {
        int x = p.x * width, y = p.y * height;
        x = x < width ? x : width - 1;
        y = y < height ? y : height - 1;
        return y * width + x;
    }
};

// A random number from 0 to 2^31 - 1, divided as the course does: from 0 to 1, 1 included.
static float coordinate(unsigned random) {
    return (int)(random >> 1) / 0x1p31f; // RAND_MAX + 1.0f
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int buckets = width * height;

    // Step 1: random points. The first one has the largest coordinates that there are.
    Points points(n);
    points[0].x = points[0].y = coordinate(UINT_MAX);
    for (int i = 1; i < n; i++) {
        points[i].x = coordinate(random_bits() >> 32);
        points[i].y = coordinate(random_bits() >> 32);
    }
    thrust::device_vector<float2> dev_points(n);
    thrust::device_vector<int> dev_buckets(n), dev_begins(buckets), dev_ends(buckets);
    thrust::counting_iterator<int> first(0), last(buckets);

    cudaEvent_t start, stop;
    float ms;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    for (int run = 0; run < 2; run++) { // the first run is a warm-up
        dev_points = points;
        HANDLE_ERROR(cudaEventRecord(start));
        // Step 2: the bucket of each point
        thrust::transform(dev_points.begin(), dev_points.end(), dev_buckets.begin(), Bucket{width, height});
        // Step 3: the points in the order of their buckets
        thrust::stable_sort_by_key(dev_buckets.begin(), dev_buckets.end(), dev_points.begin());
        // Step 4: for the numbers of all buckets, where the points of a bucket begin and end
        thrust::lower_bound(dev_buckets.begin(), dev_buckets.end(), first, last, dev_begins.begin());
        thrust::upper_bound(dev_buckets.begin(), dev_buckets.end(), first, last, dev_ends.begin());
        HANDLE_ERROR(cudaEventRecord(stop));
    }
    HANDLE_ERROR(cudaEventSynchronize(stop));
    HANDLE_ERROR(cudaEventElapsedTime(&ms, start, stop));
    printf("bucket sort: %.3f ms, %.3f Mpoints/s\n", ms, n / ms / 1e3);

    Points sorted = dev_points;
    Ints begins = dev_begins, ends = dev_ends;
    bool ok = check(points, sorted, begins, ends);

    CPUBitmap bitmap(4 * width, 4 * height);
    draw(begins, ends, bitmap.get_ptr());
    bitmap.display_and_exit();
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    handle_exceptions();
    configure(argc, argv, "Sorts points into the buckets of a grid.", PICTURE | TIMES,
              {OPTION_INT("points", &n, 1, INT_MAX, "points"),
               OPTION_INT("width", &width, 1, 4096, "columns of buckets"),
               OPTION_INT("height", &height, 1, 4096, "rows of buckets")});
    size_t buckets = (size_t)width * height;
    require_memory(64 * (size_t)n + 96 * buckets, 48 * (size_t)n + 8 * buckets);
}

// The points are in the order of a stable sort on the host, and each bucket begins and ends where it should.
static bool check(const Points &points, const Points &sorted, const Ints &begins, const Ints &ends) {
    const int buckets = width * height;
    auto bucket_of = [](float2 p) {
        return min_of((int)(p.y * height), height - 1) * width + min_of((int)(p.x * width), width - 1);
    };
    Points expected = points;
    std::stable_sort(expected.begin(), expected.end(),
                     [&](float2 a, float2 b) { return bucket_of(a) < bucket_of(b); });
    Ints bounds(buckets + 1, 0);
    for (float2 p : points)
        bounds[bucket_of(p) + 1]++;
    int most = 0, empty = 0;
    for (int i = 0; i < buckets; i++) {
        most = max_of(most, bounds[i + 1]);
        empty += bounds[i + 1] == 0;
        bounds[i + 1] += bounds[i];
    }
    bool ok = check_ints("begin of bucket", begins.data(), bounds.data(), buckets);
    ok = check_ints("end of bucket", ends.data(), bounds.data() + 1, buckets) && ok;
    ok = check_ints("coordinate", (const int *)&sorted[0], (const int *)&expected[0], 2 * (size_t)n) && ok;
    printf("%d points in %d x %d buckets: %.2f in a bucket, at most %d; %d buckets are empty\n", n, width,
           height, (double)n / buckets, most, empty);
    return ok;
}

// A square of 4 x 4 pixels for each bucket, the brighter the more points are in it.
static void draw(const Ints &begins, const Ints &ends, unsigned char *ptr) {
    int most = 1;
    for (size_t i = 0; i < begins.size(); i++)
        most = max_of(most, ends[i] - begins[i]);
    for (size_t i = 0; i < 16 * begins.size(); i++) {
        size_t x = i % (4 * width) / 4, y = i / (4 * width) / 4, bucket = y * width + x;
        ptr[4 * i] = ptr[4 * i + 1] = ptr[4 * i + 2] = 255LL * (ends[bucket] - begins[bucket]) / most;
        ptr[4 * i + 3] = 255;
    }
}

// Task: none: the lesson is the sequence of Thrust calls in main, which the program shows in full
