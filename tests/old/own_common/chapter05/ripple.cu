// SPDX-License-Identifier: MIT
// Chapter 5: an endless animation in a window made with GLUT, which only Esc ends. With its own common/.
#include <GL/glut.h>
#include "../common/book.h"

#ifndef OWN_BOOK
#error the common/ beside the program was not used
#endif

#define DIM 64

unsigned char pixels[DIM * DIM * 4];

static void idle_func(void) {
    static int ticks = 1;
    for (int i = 0; i < DIM * DIM; i++)
        pixels[4 * i] = (i + ticks) % DIM * 255 / 64;
    ticks++;
    glutPostRedisplay();
}

static void key_func(unsigned char key, int x, int y) {
    HANDLE_ERROR(cudaDeviceSynchronize());
    printf("cleaned up\n");
    exit(key != 27);
}

static void draw_func(void) {
    glDrawPixels(DIM, DIM, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
    glutSwapBuffers();
}

int main(int argc, char **argv) {
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
