// SPDX-License-Identifier: MIT
/*
 * bucket_sort_2d: points of the plane, sorted into the cells of a grid by Thrust
 *
 * Teaches: A grid of buckets finds the points near a place without looking at all of them. Three algorithms
 *          build it: a transformation computes the bucket of each point, a sort by key brings the points
 *          of a bucket together, and two binary searches for each number of a bucket find where its points
 *          begin and end. The searches for all buckets are one call, whose input is a counting iterator.
 * Terms:   Thrust, bucket sort, iterator, stable sort, binary search, clamp
 * Book:    12.4 (lab)
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
#include <vector>
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include "../common/book.h"
#include "../common/cpu_bitmap.h"
#include "../common/timing.h"
#include "libraries.h" // handle_exceptions()

#define POINTS 100000
#define WIDTH  200
#define HEIGHT 100

static int n = POINTS;                     // --points
static int width = WIDTH, height = HEIGHT; // --width, --height: of the grid
static std::vector<float2> points;         // their coordinates are from 0 to 1
static std::vector<int> begins, ends;      // of the points of each bucket
static bool check(const std::vector<float2> &sorted);
static void draw(CPUBitmap &bitmap);

struct Bucket {
    int width, height;

    __host__ __device__ int operator()(float2 p) const {
        int x = p.x * width, y = p.y * height;
        x = x < width ? x : width - 1;
        y = y < height ? y : height - 1;
        return y * width + x;
    }
};

int main(int argc, char **argv) {
    settings(argc, argv);
    int buckets = width * height;
    thrust::device_vector<float2> input = points, dev_points(n);
    thrust::device_vector<int> dev_buckets(n), dev_begins(buckets), dev_ends(buckets);
    thrust::counting_iterator<int> first(0), last(buckets);

    auto sort_points = [&] {
        thrust::transform(dev_points.begin(), dev_points.end(), dev_buckets.begin(), Bucket{width, height});
        thrust::stable_sort_by_key(dev_buckets.begin(), dev_buckets.end(), dev_points.begin());
        thrust::lower_bound(dev_buckets.begin(), dev_buckets.end(), first, last, dev_begins.begin());
        thrust::upper_bound(dev_buckets.begin(), dev_buckets.end(), first, last, dev_ends.begin());
    };
    float ms = median_ms(sort_points, [&] { dev_points = input; });
    printf("bucket sort: %.3f ms, %.3f Mpoints/s\n", ms, n / ms / 1e3);

    std::vector<float2> sorted(n);
    thrust::copy(dev_points.begin(), dev_points.end(), sorted.begin());
    begins.resize(buckets);
    ends.resize(buckets);
    thrust::copy(dev_begins.begin(), dev_begins.end(), begins.begin());
    thrust::copy(dev_ends.begin(), dev_ends.end(), ends.begin());
    bool ok = check(sorted);

    CPUBitmap bitmap(4 * width, 4 * height);
    draw(bitmap);
    bitmap.display_and_exit();
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

// A random number from 0 to 2^31 - 1, divided as the course does: from 0 to 1, 1 included.
static float coordinate(uint64_t bits) {
    return (int)(bits >> 33) / 0x1p31f; // RAND_MAX + 1.0f
}

void settings(int argc, char **argv) {
    handle_exceptions();
    configure(argc, argv, "Sorts points into the buckets of a grid.", PICTURE | TIMES,
              {OPTION_INT("points", &n, 1, INT_MAX, "points"),
               OPTION_INT("width", &width, 1, 4096, "columns of buckets"),
               OPTION_INT("height", &height, 1, 4096, "rows of buckets")});
    size_t buckets = (size_t)width * height;
    require_memory(64 * (size_t)n + 96 * buckets, 48 * (size_t)n + 8 * buckets);
    points.push_back({coordinate(UINT64_MAX), coordinate(UINT64_MAX)});
    for (int i = 1; i < n; i++) {
        float x = coordinate(random_bits());
        points.push_back({x, coordinate(random_bits())});
    }
}

// Whether a point lies in a cell. The product with the width was rounded, and the last cell has its edge too.
static bool lies_in(float at, int cell, int cells) {
    double place = (double)at * cells;
    return place >= cell - cells * 0x1p-24 && place <= cell + 1 + cells * 0x1p-24;
}

// Against buckets that the host has filled one point after the other
static bool check(const std::vector<float2> &sorted) {
    size_t buckets = begins.size();
    std::vector<std::vector<float2>> filled(buckets);
    for (float2 p : points)
        filled[Bucket{width, height}(p)].push_back(p);
    std::vector<int> wanted_begins, wanted_ends;
    std::vector<float2> wanted;
    int most = 0, empty = 0, outside = 0;
    for (size_t i = 0; i < buckets; i++) {
        wanted_begins.push_back(wanted.size());
        wanted.insert(wanted.end(), filled[i].begin(), filled[i].end());
        wanted_ends.push_back(wanted.size());
        most = max_of(most, ends[i] - begins[i]);
        empty += begins[i] == ends[i];
    }
    bool ok = check_ints("begin of bucket", begins.data(), wanted_begins.data(), buckets);
    ok = check_ints("end of bucket", ends.data(), wanted_ends.data(), buckets) && ok;
    ok = check_floats("coordinate", &sorted[0].x, 2 * (size_t)n, 0,
                      [&](size_t i) { return (&wanted[0].x)[i]; }) &&
         ok;
    if (!ok)
        return false;

    size_t sum = 0;
    for (size_t i = 0; i < buckets; i++) {
        sum += ends[i] - begins[i];
        for (int k = begins[i]; k < ends[i]; k++)
            outside += !lies_in(sorted[k].x, i % width, width) || !lies_in(sorted[k].y, i / width, height);
    }
    printf("%zu points in %d x %d buckets: %.2f in a bucket, at most %d; %d buckets are empty\n", sum, width,
           height, (double)sum / buckets, most, empty);
    return check_value("points outside their cells", outside, 0, 0) &&
           check_value("sum of all sizes", sum, n, 0);
}

// A square of 4 x 4 pixels for each bucket, the brighter the more points are in it
static void draw(CPUBitmap &bitmap) {
    int most = 1;
    for (size_t i = 0; i < begins.size(); i++)
        most = max_of(most, ends[i] - begins[i]);
    for (size_t i = 0; i < 16 * begins.size(); i++) {
        size_t x = i % (4 * width) / 4, y = i / (4 * width) / 4, bucket = y * width + x;
        unsigned char *pixel = bitmap.get_ptr() + 4 * i;
        pixel[0] = pixel[1] = pixel[2] = 255LL * (ends[bucket] - begins[bucket]) / most;
        pixel[3] = 255;
    }
}

// Task: none: the lesson is the sequence of Thrust calls in main, which the program shows in full
