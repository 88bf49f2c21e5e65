// SPDX-License-Identifier: MIT
// Chapter 5: an endless animation in a window made with GLUT, which only Esc ends. With its own common/.
#include <GL/glut.h>
#include "../common/book.h"

#ifndef OWN_BOOK
#error the common/ beside the program was not used
#endif

#define DIM 64

unsigned char pixels[DIM * DIM * 4], *dev_pixels;

__global__ void wave(unsigned char *ptr, int ticks) {
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    ptr[4 * (x + y * blockDim.x * gridDim.x)] = (x + ticks) % DIM * 255 / 64;
}

static void idle_func(void) {
    static int ticks = 1;
    wave<<<dim3(DIM / 16, DIM / 16), dim3(16, 16)>>>(dev_pixels, ticks++);
    HANDLE_ERROR(cudaMemcpy(pixels, dev_pixels, sizeof(pixels), cudaMemcpyDeviceToHost));
    glutPostRedisplay();
}

static void key_func(unsigned char key, int x, int y) {
    if (key == 27) {
        HANDLE_ERROR(cudaFree(dev_pixels));
        printf("cleaned up\n");
        exit(0);
    }
}

static void draw_func(void) {
    glClearColor(0.0, 0.0, 0.0, 1.0);
    glClear(GL_COLOR_BUFFER_BIT);
    glDrawPixels(DIM, DIM, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
    glutSwapBuffers();
}

int main(int argc, char **argv) {
    HANDLE_ERROR(cudaMalloc((void **)&dev_pixels, sizeof(pixels)));
    glutInit(&argc, argv);
    glutInitDisplayMode(GLUT_DOUBLE | GLUT_RGBA);
    glutInitWindowSize(DIM, DIM);
    glutCreateWindow("bitmap");
    glutKeyboardFunc(key_func);
    glutDisplayFunc(draw_func);
    glutMouseFunc(NULL);
    glutIdleFunc(idle_func);
    glutMainLoop();
}
