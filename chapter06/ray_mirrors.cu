// SPDX-License-Identifier: MIT
/*
 * ray_mirrors: ray tracing with reflections and shadows
 *
 * Teaches: A ray that hits a mirror is a new ray: it starts at the surface, in the mirrored direction; in
 *          glass (--surface) it is refracted, and starts where it leaves the sphere. The kernel follows it
 *          in a loop; recursion would need a stack. A second ray, from the surface to the light, tells
 *          whether the point is in shadow. Neighbouring threads follow different numbers of rays, so warps
 *          diverge.
 * Terms:   ray tracing, reflection, refraction, constant memory, warp divergence, broadcast, __constant__
 * Book:    6.2.1 (after the book)
 * After:   chapter06/ray_animated
 * Build:   nvcc -o ray_mirrors chapter06/ray_mirrors.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter06/ray_mirrors --output mirrors.png
 * Differs: the book leaves out lights, shadows, mirrors and glass, and says that they are easily added.
 * Picture: yes
 * Check:   --size 100 --bounces 1 | --size 9 --spheres 2000 | --size 90 --surface glass
 */
#include "../common/book.h"
#include "../common/cpu_bitmap.h"
#include "spheres.h" // struct Sphere, place_spheres()

#define MIRROR  0.4f    // how much of its light a sphere reflects, or lets through
#define GLASS   1.5f    // refractive index: the speed of light in air by that in glass
#define AMBIENT 0.25f   // brightness in the shadow
#define FAR     1000.0f // where the first rays start

static int bounces = 3; // --bounces
static int glass = 0;   // --surface
__constant__ const float3 light = {-600, 800, 1200}, sky = {0.5f, 0.75f, 1};
__constant__ Sphere s[MAX_SPHERES];
static void time_kernel(unsigned char *dev_bitmap);
static bool check_mirrors(const unsigned char *pixels);

__device__ static float dot(float3 a, float3 b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

// a + t b
__device__ static float3 along(float3 a, float t, float3 b) {
    return make_float3(a.x + t * b.x, a.y + t * b.y, a.z + t * b.z);
}

// Returns the index of the first sphere that the ray meets before it has gone *distance, and sets *distance
// to the distance of that sphere. Returns -1 if there is none. The ray starts outside of all spheres, or on
// the sphere `own`, which it cannot meet again. Behind glass it may start inside another sphere, which it
// then does not meet.
__device__ static int first_hit(float3 from, float3 direction, int spheres, int own, float *distance) {
    int found = -1;
    for (int i = 0; i < spheres; i++) {
        float3 centre = make_float3(s[i].x - from.x, s[i].y - from.y, s[i].z - from.z);
        float middle = dot(centre, direction); // where the ray is nearest to the centre
        float3 miss = along(centre, -middle, direction);
        float square = s[i].radius * s[i].radius - dot(miss, miss);
        if (i == own || !(square > 0))
            continue;
        float t = middle - sqrtf(square);
        if (t > 0 && t < *distance) {
            *distance = t;
            found = i;
        }
    }
    return found;
}

__global__ void kernel(unsigned char *ptr, size_t size, int spheres, int bounces, bool glass) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    float unit = DIM / (float)size; // units per pixel
    float3 from = make_float3((x - size / 2.0f) * unit, (y - size / 2.0f) * unit, FAR);
    float3 direction = make_float3(0, 0, -1);

    float3 colour = make_float3(0, 0, 0);
    float share = 1; // of the pixel's colour that this ray contributes
    for (int bounce = 0, own = -1; share > 0; bounce++) {
        float distance = INF;
        int i = first_hit(from, direction, spheres, own, &distance);
        own = i; // the sphere that the next ray starts from
        if (i < 0) {
            colour = along(colour, share, sky);
            break;
        }
        from = along(from, distance, direction);
        float3 normal = make_float3((from.x - s[i].x) / s[i].radius, (from.y - s[i].y) / s[i].radius,
                                    (from.z - s[i].z) / s[i].radius);

        // The light that the surface scatters: full if nothing is between it and the light.
        float3 to_light = along(light, -1, from);
        float distance_to_light = sqrtf(dot(to_light, to_light));
        to_light = along(make_float3(0, 0, 0), 1 / distance_to_light, to_light);
        float cosine = dot(normal, to_light), brightness = AMBIENT;
        if (cosine > 0 && first_hit(from, to_light, spheres, own, &distance_to_light) < 0)
            brightness += (1 - AMBIENT) * cosine;
        float reflected = bounce < bounces ? MIRROR : 0;
        colour = along(colour, share * (1 - reflected) * brightness, make_float3(s[i].r, s[i].g, s[i].b));

        if (glass) { // Snell's law; the way out of the sphere is symmetric to the way in
            float3 inside = along(direction, -dot(direction, normal), normal); // along the surface
            inside = make_float3(inside.x / GLASS, inside.y / GLASS, inside.z / GLASS);
            inside = along(inside, -sqrtf(1 - dot(inside, inside)), normal);
            from = along(from, -2 * s[i].radius * dot(inside, normal), inside);
            direction = make_float3(-direction.x, -direction.y, -direction.z);
            direction = along(direction, -2 * dot(direction, inside), inside);
        } else
            direction = along(direction, -2 * dot(direction, normal), normal);
        share *= reflected;
    }

    size_t offset = x + y * size;
    ptr[offset * 4 + 0] = (unsigned char)(colour.x * 255);
    ptr[offset * 4 + 1] = (unsigned char)(colour.y * 255);
    ptr[offset * 4 + 2] = (unsigned char)(colour.z * 255);
    ptr[offset * 4 + 3] = 255;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    CPUBitmap bitmap(size, size);
    Sphere temp_s[MAX_SPHERES];
    place_spheres(temp_s, spheres);
    HANDLE_ERROR(cudaMemcpyToSymbol(s, temp_s, spheres * sizeof(Sphere)));
    unsigned char *dev_bitmap;
    HANDLE_ERROR(cudaMalloc(&dev_bitmap, bitmap.image_size()));

    dim3 grids((size + block - 1) / block, (size + block - 1) / block), threads(block, block);
    kernel<<<grids, threads>>>(dev_bitmap, size, spheres, bounces, glass);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(bitmap.get_ptr(), dev_bitmap, bitmap.image_size(), cudaMemcpyDeviceToHost));

    time_kernel(dev_bitmap);

    bitmap.display_and_exit();
    HANDLE_ERROR(cudaFree(dev_bitmap));
    return check_mirrors(bitmap.get_ptr()) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include <float.h>

void settings(int argc, char **argv) {
    sphere_settings(argc, argv, "Draws spheres that reflect each other, or refract.", PICTURE | TIMES,
                    OPTION_INT("bounces", &bounces, 0, 5, "reflections to follow"),
                    OPTION_WORD("surface", &glass, "mirror|glass", "of the spheres"));
}

static void time_kernel(unsigned char *dev_bitmap) {
    dim3 grids((size + block - 1) / block, (size + block - 1) / block), threads(block, block);
    float ms = median_ms([&] { kernel<<<grids, threads>>>(dev_bitmap, size, spheres, bounces, glass); });
    printf("Kernel:            %.3f ms, at most %d reflections\n", ms, bounces);
}

struct Vector {
    double x, y, z;
    Vector operator-(Vector b) const { return {x - b.x, y - b.y, z - b.z}; }
    Vector operator*(double t) const { return {x * t, y * t, z * t}; }
    double operator*(Vector b) const { return x * b.x + y * b.y + z * b.z; }
};

static const Sphere *scene;

// The nearest of the distances at which a ray enters spheres, as roots of a quadratic equation; its sphere.
static double enter(Vector from, Vector direction, int own, int *which) {
    double nearest = INFINITY;
    for (int i = 0; i < spheres; i++) {
        Vector d = from - Vector{scene[i].x, scene[i].y, scene[i].z};
        double half_b = d * direction, c = d * d - (double)scene[i].radius * scene[i].radius;
        double root = -half_b - sqrt(half_b * half_b - c); // NaN if the ray misses
        if (i != own && root > 0 && root < nearest)
            nearest = root, *which = i;
    }
    return nearest;
}

// The colour that a ray sees, in double and by recursion.
static Vector seen(Vector from, Vector direction, int own, int left) {
    int i = -1, blocking;
    double t = enter(from, direction, own, &i);
    if (i < 0)
        return {0.5, 0.75, 1};
    Vector point = from - direction * -t, normal = point - Vector{scene[i].x, scene[i].y, scene[i].z};
    normal = normal * (1 / (double)scene[i].radius);
    Vector to_light = Vector{-600, 800, 1200} - point;
    double distance = sqrt(to_light * to_light);
    to_light = to_light * (1 / distance);
    double lit = enter(point, to_light, i, &blocking) < distance ? 0 : fmax(normal * to_light, 0);
    Vector own_colour = Vector{scene[i].r, scene[i].g, scene[i].b} * (0.25 + 0.75 * lit);
    if (left == 0)
        return own_colour;
    if (glass) { // the angles of the ray in air and in glass, and of directions, are those to the normal
        Vector along = direction - normal * (direction * normal);
        double sine = fmin(sqrt(along * along), 1), air = asin(sine), inside = asin(sine / 1.5);
        along = along * (1 / fmax(sine, DBL_MIN));
        auto at = [&](double angle) { return along * sin(angle) - normal * cos(angle); };
        Vector leaves = point - (normal - at(2 * inside)) * (double)scene[i].radius;
        return own_colour * 0.6 - seen(leaves, at(2 * inside - air), i, left - 1) * -0.4;
    }
    Vector mirrored = seen(point, direction - normal * (2 * (direction * normal)), i, left - 1);
    return own_colour * 0.6 - mirrored * -0.4;
}

// A convex mirror magnifies rounding errors, more at each reflection, and at an edge they select another
// sphere. So a colour is also right between those that are seen by rays a 500th of a unit away, with a 20th
// of a level for other rounding.
static void expect(size_t x, size_t y, const unsigned char *got, unsigned char *expected) {
    double unit = 1024.0 / size, shift[] = {0, 0.002, -0.002};
    double least[] = {INFINITY, INFINITY, INFINITY}, most[] = {-INFINITY, -INFINITY, -INFINITY};
    int right = 0; // channels
    for (int i = 0; i < 9 && right < 3; i++) {
        Vector from = {(x - size / 2.0) * unit + shift[i % 3], (y - size / 2.0) * unit + shift[i / 3], 1000};
        Vector colour = seen(from, {0, 0, -1}, -1, bounces);
        const double channels[] = {255 * colour.x, 255 * colour.y, 255 * colour.z};
        right = 0;
        for (int c = 0; c < 3; c++) {
            least[c] = fmin(least[c], channels[c]);
            most[c] = fmax(most[c], channels[c]);
            expected[c] = channels[c];
            right += floor(least[c] - 0.05) <= got[c] && got[c] <= floor(most[c] + 0.05);
        }
    }
    if (right == 3)
        memcpy(expected, got, 3);
    expected[3] = 255;
}

static bool check_mirrors(const unsigned char *pixels) {
    HostArray<Sphere> own(spheres);
    place_reference(own);
    scene = own;
    // Each reflection magnifies rounding errors, so with each bounce three times as many pixels may differ.
    double allowed = fmax(1e-5 * pow(3, bounces), fmin(2.5 / (size * size), 0.125));
    return check_picture("pixel", pixels, size, size, expect, allowed);
}

// Task: first_hit(): Intersect the ray from + t * direction, where direction has length 1, with the spheres
// s[i], i < spheres, of radius s[i].radius around (s[i].x, s[i].y, s[i].z), except the one with the index
// `own`. Of the two intersections with a sphere, use only the nearer one. Return the index of the sphere with
// the smallest t for which 0 < t < *distance, and set *distance to this t. Return -1 if there is none.
// along(a, t, b) returns a + t * b, and dot(a, b) the dot product.
