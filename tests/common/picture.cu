// SPDX-License-Identifier: MIT
// A program with a picture and an animation that needs no device. tests/test_common.py and
// tests/test_display.py check its output.
#include <unistd.h>
#include "../../common/cpu_anim.h"
#include "../../common/random.h"
extern "C" {
#include "../../common/lib/window.h"
}

struct Scene {
    size_t width, height;
    unsigned char *pixels;
    int blue;
    bool noise, still, slow, hang;
};

// Red increases to the right, green upwards, blue with time.
static void frame(void *data, int ticks) {
    Scene *scene = (Scene *)data;
    unsigned char blue = (unsigned char)(scene->blue + (scene->still ? 0 : ticks * 10));
    if (scene->slow)
        usleep(20000);
    while (scene->hang && ticks == 3)
        pause();
    if (scene->noise)
        return random_bytes(scene->pixels, scene->width * scene->height * 4);
    for (size_t y = 0; y < scene->height; y++)
        for (size_t x = 0; x < scene->width; x++) {
            unsigned char *p = scene->pixels + (y * scene->width + x) * 4;
            p[0] = (unsigned char)(x * 255 / scene->width);
            p[1] = (unsigned char)(y * 255 / scene->height);
            p[2] = blue;
        }
}

static void drag(void *data, int x0, int y0, int x1, int y1) {
    (void)data;
    printf("drag %d %d %d %d\n", x0, y0, x1, y1);
    fflush(stdout);
}

static void key(void *data, unsigned char key) {
    ((Scene *)data)->blue = 200;
    printf("key %d\n", key);
    fflush(stdout);
}

static void leave(void *data) {
    (void)data;
    puts("exit function");
}

// Whether a window that is interrupted before its first frame shows this frame all the same.
static bool interrupted_at_once(void) {
    const volatile sig_atomic_t stop = SIGINT;
    unsigned char pixels[4 * 8 * 8] = {};
    int frames = 0;
    Canvas canvas = {};
    canvas.pixels = pixels;
    canvas.width = canvas.height = 8;
    canvas.data = &frames;
    canvas.frame = [](void *data, int) { ++*(int *)data; };
    return window_problem() || (!window_open(&canvas) && !window_show(&canvas, &stop) && frames == 1);
}

int main(int argc, char **argv) {
    bool animate = false, talk = false, wrong = false, interrupted = false;
    Scene scene = {12, 8, NULL, 0, false, false, false, false};
    const Option own[] = {OPTION_SIZE("width", &scene.width, 1, 65536, "pixels a row"),
                          OPTION_SIZE("height", &scene.height, 1, 65536, "rows"),
                          OPTION_FLAG("animate", &animate, "draw frames"),
                          OPTION_FLAG("slow", &scene.slow, "draw at most 50 a second"),
                          OPTION_FLAG("still", &scene.still, "draw the same in each"),
                          OPTION_FLAG("hang", &scene.hang, "never finish the fourth"),
                          OPTION_FLAG("noise", &scene.noise, "draw noise"),
                          OPTION_FLAG("talk", &talk, "say when the exit function runs"),
                          OPTION_FLAG("wrong", &wrong, "end with status 1"),
                          OPTION_FLAG("interrupted", &interrupted, "show a window that is interrupted"),
                          OPTION_END};
    parse_options(argc, argv, "Draws a test picture.", PICTURE | ANIMATION, own);
    if (interrupted)
        return !interrupted_at_once();
    if (animate) {
        CPUAnimBitmap bitmap(scene.width, scene.height, &scene);
        scene.pixels = bitmap.get_ptr();
        bitmap.click_drag(drag);
        bitmap.key_press(key);
        bitmap.anim_and_exit(frame, talk ? leave : NULL);
    } else {
        CPUBitmap bitmap(scene.width, scene.height, &scene);
        scene.pixels = bitmap.get_ptr();
        frame(&scene, 0);
        bitmap.display_and_exit(talk ? leave : NULL);
    }
    return wrong;
}
