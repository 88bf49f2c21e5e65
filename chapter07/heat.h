// SPDX-License-Identifier: MIT
// What the checks of this chapter's heat simulations share beside common/checks/heat.h: options and time.
#pragma once

#include "../common/checks/heat.h"

// The options and limits. Above a speed of 0.25 a cell overshoots the mean of its neighbours, so that
// neighbours differ more and more.
static inline void heat_settings(int argc, char **argv, const char *doc, size_t *size, size_t max_size,
                                 int *steps, float *speed) {
    options.frames = 5; // default number of frames when an animation is written to a file
    configure(argc, argv, doc, ANIMATION | TIMES,
              {OPTION_SIZE("size", size, 1, max_size, "cells a side"),
               OPTION_INT("iterations", steps, 1, 10000, "steps in a frame"),
               OPTION_FLOAT("speed", speed, 0.001f, 0.25f, "k: how fast cells approach their neighbours")});
    steps_for_window(steps, *size);
    size_t bytes = *size * *size * sizeof(float);
    require_memory(8 * bytes, 5 * bytes);
}

// Checks the temperatures and the picture after the last frame, and prints the time of a step. step(d)
// computes one step. pitch: bytes from row to row in device memory.
template <class Data>
static inline bool check_plate(Data *d, void (*step)(Data *), size_t pitch, size_t size, int steps,
                               float speed) {
    bool ok = check_frames(d, step, pitch, size, steps, speed, d->bitmap->get_ptr());
    if (d->frames > 1) {
        // A step reads each cell and its heater and writes the cell. Repeated reads hit the cache.
        double ms = time_steps(d, step, steps) / steps, bytes = 3.0 * sizeof(float) * size * size;
        printf("Step:                    %.3f ms, %.1f GB/s\n", ms, bytes / ms / 1e6);
    }
    return check_step(d, step, pitch, size, speed) && ok;
}
