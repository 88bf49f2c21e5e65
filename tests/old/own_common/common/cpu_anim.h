// SPDX-License-Identifier: MIT
// A window made with GLUT. It never returns: only Esc ends the program.
#include <GL/glut.h>
#include <GL/glext.h>
#include <GL/glx.h>
#define GET_PROC_ADDRESS(str) glXGetProcAddress((const GLubyte *)str)

struct CPUAnimBitmap {
    unsigned char *pixels;
    int width, height;
    void *dataBlock;
    void (*fAnim)(void *, int);
    void (*animExit)(void *);

    CPUAnimBitmap(int w, int h, void *d = NULL) {
        width = w;
        height = h;
        pixels = new unsigned char[width * height * 4];
        dataBlock = d;
    }
    ~CPUAnimBitmap() { delete[] pixels; }
    unsigned char *get_ptr(void) const { return pixels; }
    long image_size(void) const { return width * height * 4; }

    void anim_and_exit(void (*f)(void *, int), void (*e)(void *)) {
        *get_bitmap_ptr() = this;
        fAnim = f;
        animExit = e;
        int c = 1;
        char *dummy = (char *)"";
        glutInit(&c, &dummy);
        glutInitDisplayMode(GLUT_DOUBLE | GLUT_RGBA);
        glutInitWindowSize(width, height);
        glutCreateWindow("bitmap");
        glutKeyboardFunc(Key);
        glutDisplayFunc(Draw);
        glutMouseFunc(mouse_func);
        glutIdleFunc(idle_func);
        glutMainLoop();
    }

    static CPUAnimBitmap **get_bitmap_ptr(void) {
        static CPUAnimBitmap *gBitmap;
        return &gBitmap;
    }
    static void mouse_func(int button, int state, int mx, int my) {}
    static void idle_func(void) {
        static int ticks = 1;
        CPUAnimBitmap *bitmap = *get_bitmap_ptr();
        bitmap->fAnim(bitmap->dataBlock, ticks++);
        glutPostRedisplay();
    }
    static void Key(unsigned char key, int x, int y) {
        switch (key) {
        case 27:
            CPUAnimBitmap *bitmap = *get_bitmap_ptr();
            bitmap->animExit(bitmap->dataBlock);
            exit(0);
        }
    }
    static void Draw(void) {
        CPUAnimBitmap *bitmap = *get_bitmap_ptr();
        glClearColor(0.0, 0.0, 0.0, 1.0);
        glClear(GL_COLOR_BUFFER_BIT);
        glDrawPixels(bitmap->width, bitmap->height, GL_RGBA, GL_UNSIGNED_BYTE, bitmap->pixels);
        glutSwapBuffers();
    }
};
