// SPDX-License-Identifier: MIT
// For vertex_interop, which defines n, size, vertices, indices, colours and HEIGHT: the triangles, the
// camera, and the check of what was drawn.
#ifndef CHAPTER08_SURFACE_H
#define CHAPTER08_SURFACE_H

// ---------------------------------------------------------------------------------------- proof

// Between two rows of vertices lies a strip of triangles, whose corners are taken from both in turn.
static void make_triangles(void) {
    GLuint *corners = host_array<GLuint>(2 * n * (n - 1));
    for (size_t j = 0; j + 1 < n; j++)
        for (size_t i = 0; i < n; i++)
            for (size_t row = 0; row < 2; row++)
                corners[2 * (i + j * n) + row] = i + (j + row) * n;
    glGenBuffers(1, &indices);
    glBindBuffer(GL_ELEMENT_ARRAY_BUFFER, indices);
    glBufferData(GL_ELEMENT_ARRAY_BUFFER, 2 * n * (n - 1) * sizeof(GLuint), corners, GL_STATIC_DRAW);
    free(corners);
}

// The camera looks down on the surface at 40 degrees, from a distance of 3. The colour of a point depends on
// its height y: a texture of two texels is read at y / HEIGHT + 1/2. Between the middles of its texels, at
// 1/4 and 3/4, it is interpolated; beyond them it is clamped.
static void place_camera(void) {
    glMatrixMode(GL_PROJECTION);
    glLoadIdentity();
    glFrustum(-0.4, 0.4, -0.4, 0.4, 1, 10);
    glMatrixMode(GL_MODELVIEW);
    glLoadIdentity();
    glTranslatef(0, 0.15f, -3);
    glRotatef(40, 1, 0, 0);

    const unsigned char low_and_high[] = {0, 32, 96, 255, 255, 255, 255, 255};
    const float plane[] = {0, 1 / HEIGHT, 0, 0.5f};
    glGenTextures(1, &colours);
    glBindTexture(GL_TEXTURE_1D, colours);
    glTexParameteri(GL_TEXTURE_1D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
    glTexParameteri(GL_TEXTURE_1D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
    glTexImage1D(GL_TEXTURE_1D, 0, GL_RGBA8, 2, 0, GL_RGBA, GL_UNSIGNED_BYTE, low_and_high);
    glTexEnvi(GL_TEXTURE_ENV, GL_TEXTURE_ENV_MODE, GL_REPLACE);
    glTexGeni(GL_S, GL_TEXTURE_GEN_MODE, GL_OBJECT_LINEAR);
    glTexGenfv(GL_S, GL_OBJECT_PLANE, plane);
    glEnable(GL_TEXTURE_GEN_S);
    glEnable(GL_TEXTURE_1D);
}

// Whether every strip was drawn: the middle of each square of vertices must not show the background, which
// has no blue. Squares so near the edge that the centre of their pixel may lie beyond it are left out.
static bool check_strips(const unsigned char *pixels) {
    size_t edge = 5 * n / size, missing = 0;
    for (size_t j = edge; j + 1 + edge < n; j++)
        for (size_t i = edge; i + 1 + edge < n; i++) {
            float4 a = vertices[i + 1 + j * n], b = vertices[i + (j + 1) * n]; // a side of both triangles
            double x = (a.x + b.x) / 2, y = (a.y + b.y) / 2, z = (a.z + b.z) / 2, angle = 40 * M_PI / 180;
            double half = 0.4 * (3 - y * sin(angle) - z * cos(angle)); // of the picture's width at this point
            double up = y * cos(angle) - z * sin(angle) + 0.15;
            if (!(fabs(x) < half && fabs(up) < half))
                continue; // outside the picture
            size_t column = (x / half + 1) / 2 * size, row = (up / half + 1) / 2 * size;
            missing += pixels[4 * (column + row * size) + 2] < 90;
        }
    return check_value("squares that are not drawn", missing, 0, 0);
}

#endif
