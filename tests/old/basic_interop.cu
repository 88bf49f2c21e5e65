// SPDX-License-Identifier: MIT
// Chapter 8 as it was written then: GLUT and OpenGL's functions through cpu_bitmap.h, the program's own
// pointers to functions of OpenGL, a callback for each event. freeglut's main loop returns. With an argument
// it is an endless animation, which only Esc ends.
#include "GL/freeglut.h"
#include "../common/book.h"
#include "../common/cpu_bitmap.h"

#include "cuda.h"
#include "cuda_gl_interop.h"

PFNGLBINDBUFFERARBPROC glBindBuffer = NULL;
PFNGLDELETEBUFFERSARBPROC glDeleteBuffers = NULL;
PFNGLGENBUFFERSARBPROC glGenBuffers = NULL;
PFNGLBUFFERDATAARBPROC glBufferData = NULL;

#define SIZE 64

GLuint pixels;
cudaGraphicsResource *shared;
int ticks = 0;

__global__ void stripes(uchar4 *ptr) {
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    int offset = x + y * blockDim.x * gridDim.x;
    ptr[offset].x = 4 * x;
    ptr[offset].y = 2 * y;
    ptr[offset].z = 17;
    ptr[offset].w = 255;
}

static void key_func(unsigned char key, int x, int y) {
    switch (key) {
    case 27:
        HANDLE_ERROR(cudaGraphicsUnregisterResource(shared));
        glBindBuffer(GL_PIXEL_UNPACK_BUFFER_ARB, 0);
        glDeleteBuffers(1, &pixels);
        printf("cleaned up\n");
        if (ticks > 0)
            exit(0);
        break;
    }
}

static void close_func(void) {
    printf("closed\n");
}

static void idle_func(void) {
    ticks++;
    glutPostRedisplay();
}

static void draw_func(void) {
    glPixelTransferf(GL_BLUE_BIAS, ticks / 255.0f);
    glDrawPixels(SIZE, SIZE, GL_RGBA, GL_UNSIGNED_BYTE, 0);
    glPixelTransferf(GL_BLUE_BIAS, 0);
    glutSwapBuffers();
}

int main(int argc, char **argv) {
    cudaDeviceProp prop;
    int dev;
    memset(&prop, 0, sizeof(cudaDeviceProp));
    prop.major = 1;
    prop.minor = 0;
    HANDLE_ERROR(cudaChooseDevice(&dev, &prop));
    HANDLE_ERROR(cudaGLSetGLDevice(dev));

    glutInit(&argc, argv);
    glutInitDisplayMode(GLUT_DOUBLE | GLUT_RGBA);
    glutInitWindowSize(SIZE, SIZE);
    glutCreateWindow("stripes");

    glBindBuffer = (PFNGLBINDBUFFERARBPROC)GET_PROC_ADDRESS("glBindBuffer");
    glDeleteBuffers = (PFNGLDELETEBUFFERSARBPROC)GET_PROC_ADDRESS("glDeleteBuffers");
    glGenBuffers = (PFNGLGENBUFFERSARBPROC)GET_PROC_ADDRESS("glGenBuffers");
    glBufferData = (PFNGLBUFFERDATAARBPROC)glutGetProcAddress("glBufferData");

    glGenBuffers(1, &pixels);
    glBindBuffer(GL_PIXEL_UNPACK_BUFFER_ARB, pixels);
    glBufferData(GL_PIXEL_UNPACK_BUFFER_ARB, SIZE * SIZE * 4, NULL, GL_DYNAMIC_DRAW_ARB);
    HANDLE_ERROR(cudaGraphicsGLRegisterBuffer(&shared, pixels, cudaGraphicsMapFlagsNone));

    uchar4 *dev_ptr;
    size_t size;
    HANDLE_ERROR(cudaGraphicsMapResources(1, &shared, NULL));
    HANDLE_ERROR(cudaGraphicsResourceGetMappedPointer((void **)&dev_ptr, &size, shared));
    dim3 grids(SIZE / 16, SIZE / 16);
    dim3 threads(16, 16);
    stripes<<<grids, threads>>>(dev_ptr);
    HANDLE_ERROR(cudaGraphicsUnmapResources(1, &shared, NULL));

    glutKeyboardFunc(key_func);
    glutDisplayFunc(draw_func);
    glutCloseFunc(close_func);
    if (argc > 1)
        glutIdleFunc(idle_func);
    glutSetOption(GLUT_ACTION_ON_WINDOW_CLOSE, GLUT_ACTION_GLUTMAINLOOP_RETURNS);
    glutMainLoop();
    printf("the main loop has returned\n");
}
