// SPDX-License-Identifier: MIT
// The spheres of this chapter's ray tracers, as ray.cu defines them; and below the line the options that the
// programs share and the check of their pictures.
#pragma once

#include "../common/book.h"
#include "../common/timing.h"

#ifndef SPHERES          // ray and ray_noconst define this part themselves, as on the page
#define DIM         1024 // the picture shows DIM x DIM units, whatever its size in pixels
#define SPHERES     20
#define MAX_SPHERES 2000 // 56,000 bytes, 54.7 KB of the 64 KB of constant memory
#define INF         2e10f

struct Sphere {
    float r, g, b;
    float x, y, z;
    float radius;

    // Returns the z at which the ray through (ox, oy), parallel to the z axis, meets the sphere, or -INF. The
    // viewer is at large z, so the largest z is nearest. *n becomes the brightness: the cosine of the angle
    // between the normal and the direction to the viewer, 1 in the middle of the sphere, 0 at its outline.
    __device__ float hit(float ox, float oy, float *n) const {
        float dx = ox - x, dy = oy - y;
        float square = radius * radius - dx * dx - dy * dy;
        if (!(square > 0))
            return -INF;
        float dz = sqrtf(square);
        *n = dz / radius;
        return z + dz;
    }
};

static size_t size = DIM;     // --size
static int spheres = SPHERES; // --spheres
static unsigned block = 16;   // --block, threads of a block in each direction

// Random spheres. Values in braces are evaluated from left to right, so a seed determines the spheres.
static inline void place_spheres(Sphere *s, int n) {
    for (int i = 0; i < n; i++)
        s[i] = {rnd(1.0f),          rnd(1.0f),          rnd(1.0f),       rnd(1000.0f) - 500,
                rnd(1000.0f) - 500, rnd(1000.0f) - 500, rnd(100.0f) + 20};
}
#endif

// ---------------------------------------------------------------------------------------- check

// `more` and `another` are options of one program alone.
static inline void sphere_settings(int argc, char **argv, const char *doc, unsigned uses,
                                   Option more = OPTION_END, Option another = OPTION_END) {
    int block_side = 0;
    configure(argc, argv, doc, uses,
              {OPTION_SIZE("size", &size, 1, 65535, "pixels a side"),
               OPTION_INT("spheres", &spheres, 1, MAX_SPHERES, "number of spheres"),
               OPTION_WORD("block", &block_side, "16|32", "threads of a block in each direction"), more,
               another});
    block = block_side == 0 ? 16 : 32;
    require_memory(2 * size * size * 4, size * size * 4);
}

// Each ray tests every sphere: two operations for dx and dy, five for the square.
static inline double ray_operations(void) {
    return 7.0 * size * size * spheres;
}

static float behind[3]; // red, green and blue of the background; ray sets them

// The reference, in double: in each row it draws one sphere after the other and stores, for each pixel, the
// depth of the nearest sphere up to now.
static inline void draw_spheres(unsigned char *pixels, const Sphere *s) {
    HostArray<double> depth(size);
    double half = size / 2.0, unit = 1024.0 / size;
    for (size_t y = 0; y < size; y++) {
        unsigned char *row = pixels + y * size * 4;
        for (size_t x = 0; x < size; x++) {
            depth[x] = -INFINITY;
            for (int k = 0; k < 3; k++)
                row[x * 4 + k] = (unsigned char)(behind[k] * 255);
            row[x * 4 + 3] = 255;
        }
        for (int i = 0; i < spheres; i++) {
            double radius = s[i].radius, dy = (y - half) * unit - s[i].y;
            if (!(fabs(dy) < radius))
                continue;
            // only the columns that the sphere reaches
            size_t begin = fmax((s[i].x - radius) / unit + half, 0);
            size_t end = fmin(fmax((s[i].x + radius) / unit + half + 1, 0), size);
            for (size_t x = begin; x < end; x++) {
                double dx = (x - half) * unit - s[i].x;
                double dz = sqrt(fmax(radius * radius - dx * dx - dy * dy, 0));
                if (!(dz > 0 && s[i].z + dz > depth[x]))
                    continue;
                depth[x] = s[i].z + dz;
                row[x * 4 + 0] = (unsigned char)(s[i].r * dz / radius * 255);
                row[x * 4 + 1] = (unsigned char)(s[i].g * dz / radius * 255);
                row[x * 4 + 2] = (unsigned char)(s[i].b * dz / radius * 255);
            }
        }
    }
}

// A colour in float may be truncated to the neighbouring whole number, so a difference of 1 is allowed, but
// of few colours: a wrong factor, such as 256 in place of 255, changes many of them. At outlines, and where
// two spheres intersect, rounding may select another sphere. With 1000 spheres that changes less than one
// pixel in a million; the check allows ten in a million, and two in a small picture. `drawn` is the
// reference.
static inline bool check_against(const char *name, const unsigned char *pixels, const unsigned char *drawn) {
    HostArray<unsigned char> expected(size * size * 4);
    size_t rounded = 0;
    for (size_t i = 0; i < size * size * 4; i++) {
        bool near = i % 4 != 3 && abs(pixels[i] - drawn[i]) == 1 && rounded < size * size / 100 + 8;
        expected[i] = near ? pixels[i] : drawn[i];
        rounded += near;
    }
    double allowed = fmax(1e-5, fmin(2.5 / (size * size), 0.125));
    return check_pixels(name, pixels, expected, size * size, allowed);
}

// The reference has spheres of its own: their members in turn, as --seed determines them.
static inline void place_reference(Sphere *s) {
    const float range[] = {1, 1, 1, 1000, 1000, 1000, 100}, least[] = {0, 0, 0, -500, -500, -500, 20};
    seed_random(options.seed);
    for (int i = 0; i < 7 * spheres; i++)
        ((float *)s)[i] = rnd(range[i % 7]) + least[i % 7];
}

// Compares the spheres with those of the reference, and the picture with one that the host draws of them.
static inline bool check_spheres(const unsigned char *pixels, const Sphere *s, const Sphere *own,
                                 double tol) {
    HostArray<unsigned char> drawn(size * size * 4);
    draw_spheres(drawn, own);
    bool ok = check_against("pixel", pixels, drawn);
    return check_floats("sphere", (const float *)s, 7 * (size_t)spheres, tol,
                        [&](size_t i) { return ((const float *)own)[i]; }) &&
           ok;
}

static inline bool check_spheres(const unsigned char *pixels, const Sphere *s) {
    HostArray<Sphere> own(spheres);
    place_reference(own);
    return check_spheres(pixels, s, own, 0);
}
