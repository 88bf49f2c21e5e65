// SPDX-License-Identifier: MIT
// When each copy and each kernel of a few streams ran, from events recorded before and after it;
// drawn as text, one row a stream, and as an SVG picture.
#ifndef CHAPTER10_TIMELINE_H
#define CHAPTER10_TIMELINE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include <string>
#include <vector>
#include "../common/book.h"
#include "../common/file.h"

enum Part { COPY_UP, KERNEL, COPY_DOWN, PARTS };

struct Timeline {
    struct Step {
        Part part;
        int row;
        cudaEvent_t start, stop;
        float from, to; // ms since the origin
    };
    std::vector<Step> steps; // in the order of the calls
    size_t used = 0;         // of them in this run; events serve again in the next one

    void clear(void) { used = 0; }

    // Around what goes into the stream that is drawn in this row.
    void begin(Part part, int row, cudaStream_t stream) {
        if (used == steps.size()) {
            steps.push_back({});
            HANDLE_ERROR(cudaEventCreate(&steps[used].start));
            HANDLE_ERROR(cudaEventCreate(&steps[used].stop));
        }
        steps[used].part = part;
        steps[used].row = row;
        HANDLE_ERROR(cudaEventRecord(steps[used].start, stream));
    }
    void end(cudaStream_t stream) { HANDLE_ERROR(cudaEventRecord(steps[used++].stop, stream)); }

    // Reads the times, once all is done. An event is past when its stream has come to it, so a step
    // seems to begin while it still waits for other streams. A copy engine takes one copy at a
    // time: a copy began when the one before it, in the same direction, had ended.
    void read(cudaEvent_t origin) {
        std::vector<Step *> order;
        for (size_t i = 0; i < used; i++) {
            HANDLE_ERROR(cudaEventElapsedTime(&steps[i].from, origin, steps[i].start));
            HANDLE_ERROR(cudaEventElapsedTime(&steps[i].to, origin, steps[i].stop));
            order.push_back(&steps[i]);
        }
        std::stable_sort(order.begin(), order.end(),
                         [](const Step *a, const Step *b) { return a->to < b->to; });
        float free_from[PARTS] = {};
        for (Step *step : order) {
            if (step->part != KERNEL)
                step->from = std::min(step->to, std::max(step->from, free_from[step->part]));
            free_from[step->part] = step->to;
        }
    }

    // Milliseconds of all steps of one part. Honest where one stream ran alone.
    float sum(Part part) const {
        float ms = 0;
        for (size_t i = 0; i < used; i++)
            ms += steps[i].part == part ? steps[i].to - steps[i].from : 0;
        return ms;
    }

    // One row a stream, `whole` ms wide. A kernel is short beside the copies: where it shares a
    // column with one, it is what is shown.
    void print(int rows, float whole) const {
        const int columns = 64;
        for (int row = 0; row < rows; row++) {
            std::string line(columns, '.');
            for (int pass = 0; pass < 2; pass++)
                for (size_t i = 0; i < used; i++) {
                    const Step &step = steps[i];
                    if (step.row != row || (step.part == KERNEL) != (pass == 1))
                        continue;
                    int from = std::max(0, (int)(step.from / whole * columns));
                    int to = std::min(columns, (int)(step.to / whole * columns + 0.999f));
                    for (int c = std::min(from, columns - 1); c < std::max(to, from + 1); c++)
                        line[std::min(c, columns - 1)] = "^#v"[step.part];
                }
            printf("stream %d |%s|\n", row, line.c_str());
        }
        printf("          ^ copy up  # kernel  v copy down, 0 to %.3f ms\n", whole);
    }

    void write_svg(const char *path, const char *title, int rows, float whole) const {
        char *data;
        size_t size;
        FILE *memory = open_memstream(&data, &size);
        HANDLE_NULL(memory);
        draw(memory, title, rows, whole);
        HANDLE_NULL(fclose(memory) == 0);
        NewFile file;
        const char *problem = file_save(&file, path, data, size);
        free(data);
        if (problem)
            quit(EXIT_FAILURE, "cannot write %s: %s", path, problem);
        printf("wrote %s\n", path);
    }

    void release(void) {
        for (Step &step : steps) {
            HANDLE_ERROR(cudaEventDestroy(step.start));
            HANDLE_ERROR(cudaEventDestroy(step.stop));
        }
        steps.clear();
        used = 0;
    }

    void draw(FILE *file, const char *title, int rows, float whole) const {
        static const char *const names[] = {"copy up", "kernel", "copy down"};
        static const char *const colors[] = {"#0072b2", "#d55e00", "#009e73"};
        const int left = 80, width = 1000, top = 60, high = 36;
        const int bottom = top + rows * high;
        fprintf(file,
                "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
                "font-family='sans-serif' font-size='13'>\n"
                "<rect width='100%%' height='100%%' fill='white'/>\n"
                "<text x='%d' y='22' font-size='15'>%s: %.3f ms</text>\n",
                left + width + 20, bottom + 40, left, title, whole);
        for (int part = 0; part < PARTS; part++)
            fprintf(file,
                    "<rect x='%d' y='34' width='12' height='12' fill='%s'/>"
                    "<text x='%d' y='45'>%s</text>\n",
                    left + part * 120, colors[part], left + 18 + part * 120, names[part]);
        for (int row = 0; row < rows; row++)
            fprintf(file, "<text x='8' y='%d'>stream %d</text>\n", top + row * high + 21, row);
        for (size_t i = 0; i < used; i++) {
            const Step &step = steps[i];
            float x = step.from / whole * width, end = step.to / whole * width;
            fprintf(file,
                    "<rect x='%.2f' y='%d' width='%.2f' height='%d' fill='%s' stroke='white' "
                    "stroke-width='0.3'><title>%s, %.3f to %.3f ms</title></rect>\n",
                    left + x, top + step.row * high + 4, std::max(end - x, 0.5f), high - 8,
                    colors[step.part], names[step.part], step.from, step.to);
        }
        for (int tick = 0; tick <= 10; tick++)
            fprintf(file,
                    "<path d='M%d %dv6' stroke='black'/>"
                    "<text x='%d' y='%d' text-anchor='middle'>%.2f</text>\n",
                    left + tick * width / 10, bottom, left + tick * width / 10, bottom + 22,
                    whole * tick / 10);
        fprintf(file, "</svg>\n");
    }
};

// --output, before any work: a picture in another format would be a surprise, one that cannot be
// written a disappointment.
static inline void check_svg(const char *path) {
    if (!path || options.list_devices)
        return;
    size_t length = strlen(path);
    if (length < 5 || strcmp(path + length - 4, ".svg") != 0)
        quit(EXIT_USAGE, "--output %s: the name must end in .svg", *path ? path : "''");
    file_check(path);
}

#endif
