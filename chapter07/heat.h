// SPDX-License-Identifier: MIT
// What the heat simulations of this chapter share beside common/proofs/heat.h: options, and the time of a
// step.
#ifndef CHAPTER07_HEAT_H
#define CHAPTER07_HEAT_H

#include "../common/proofs/heat.h"

// ---------------------------------------------------------------------------------------- proof

// The options and limits. Above a speed of 0.25 a cell overshoots the mean of its neighbours, so that
// neighbours differ more and more.
static inline void heat_settings(int argc, char **argv, const char *doc, size_t *size, size_t max_size,
                                 int *steps, float *speed) {
    options.frames = 5; // default number of frames when an animation is written to a file
    configure(argc, argv, doc, ANIMATION | TIMES,
              {OPTION_SIZE("size", size, 1, max_size, "cells a side"),
               OPTION_INT("iterations", steps, 1, 10000, "steps in a frame"),
               OPTION_FLOAT("speed", speed, 0.001f, 0.25f, "k: how fast cells approach their neighbours")});
    size_t bytes = *size * *size * sizeof(float);
    require_memory(8 * bytes, 5 * bytes);
}

// Checks the temperatures and the picture after the last frame. pitch: bytes from row to row in device
// memory.
template <class Data>
static inline bool check_plate(const Data &data, size_t pitch, size_t size, int steps, float speed) {
    return check_frames(data.dev_inSrc, data.dev_before, pitch, size, data.frames, steps, speed,
                        data.bitmap->get_ptr());
}

// Prints the time of one step; the first frame is the warm-up and is not part of it. in_steps: ms of the
// steps in all frames but the first.
static inline void print_step_time(float in_steps, size_t frames, size_t size, int steps) {
    if (frames == 1)
        return;
    // A step reads each cell and its heater and writes the cell. Repeated reads hit the cache.
    double ms = in_steps / (frames - 1) / steps, bytes = 3.0 * sizeof(float) * size * size;
    printf("Step:                    %.3f ms, %.1f GB/s\n", ms, bytes / ms / 1e6);
}

#endif
