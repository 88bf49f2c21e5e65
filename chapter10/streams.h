// SPDX-License-Identifier: MIT
// What the programs with one and two streams share below their lessons: options, the input, the reference of
// their kernel, and the timeline, which measures with events when each copy and each kernel ran, and draws it
// as text, one row per stream, and as an SVG picture.
#pragma once

#include <string>
#include <vector>
#include "../common/book.h"
#include "../common/file.h"
#include "../common/nvtx.h"
#include "../common/checks/chunks.h" // fill_random(), verify()

static const char *output; // --output

// ---------------------------------------------------------------------------------------- check

typedef void Kernel(const int *a, const int *b, int *c, size_t n);
enum Issue { DEPTH_FIRST, BREADTH_FIRST };

enum Part { COPY_UP, KERNEL, COPY_DOWN, PARTS }; // up: to the device, down: to the host

struct Timeline {
    static constexpr const char *names[PARTS] = {"copy up", "kernel", "copy down"};
    struct Step {
        Part part;
        int row;
        cudaEvent_t start = NULL, stop = NULL;
        float from = 0, to = 0; // ms since the run began
    };
    std::vector<cudaStream_t> streams; // one per row
    std::vector<Step> steps;           // of the last run, in the order of the calls
    float whole = 0;                   // ms of the last run
    float alone = 0;                   // ms of the last run in one stream
    float sum[PARTS] = {};             // ms of that run's parts

    // Begins a step: what is put into the stream of this row until end(). Events in the stream record its
    // start and its end, and in a profiler it is a range. Returns the stream.
    cudaStream_t step(Part part, int row) {
        steps.push_back({part, row});
        HANDLE_ERROR(cudaEventCreate(&steps.back().start));
        HANDLE_ERROR(cudaEventCreate(&steps.back().stop));
        HANDLE_ERROR(cudaEventRecord(steps.back().start, streams[row]));
        nvtxRangePushA(names[part]);
        return streams[row];
    }

    void end(void) {
        nvtxRangePop();
        HANDLE_ERROR(cudaEventRecord(steps.back().stop, streams[steps.back().row]));
    }

    // Reads the times when the device has finished a run, which began with `origin` and took `ms`. A step's
    // first event is recorded when its stream reaches it, even if the copy behind it then waits for a copy
    // engine that is busy with another stream. An engine does one copy at a time, so a copy began no earlier
    // than the one before it, in the same direction, ended.
    void read(cudaEvent_t origin, float ms) {
        std::vector<Step *> order;
        for (Step &step : steps) {
            HANDLE_ERROR(cudaEventElapsedTime(&step.from, origin, step.start));
            HANDLE_ERROR(cudaEventElapsedTime(&step.to, origin, step.stop));
            HANDLE_ERROR(cudaEventDestroy(step.start));
            HANDLE_ERROR(cudaEventDestroy(step.stop));
            order.push_back(&step);
        }
        std::stable_sort(order.begin(), order.end(),
                         [](const Step *a, const Step *b) { return a->to < b->to; });
        float free_from[PARTS] = {}, parts[PARTS] = {};
        for (Step *step : order) {
            if (step->part != KERNEL)
                step->from = std::min(step->to, std::max(step->from, free_from[step->part]));
            free_from[step->part] = step->to;
            parts[step->part] += step->to - step->from;
        }
        whole = ms;
        if (std::all_of(steps.begin(), steps.end(), [](const Step &step) { return step.row == 0; })) {
            alone = whole;
            std::copy(parts, parts + PARTS, sum);
        }
    }

    // Whether the last run has a copy up, a kernel and a copy down, in this order, for each of `chunks`
    // chunks, which the streams take in turn.
    bool has_chunks(size_t chunks) const {
        std::vector<size_t> in_row(streams.size());
        bool ok = steps.size() == PARTS * chunks;
        for (const Step &step : steps)
            ok &= (size_t)step.part == in_row[step.row]++ % PARTS;
        for (size_t row = 0; row < streams.size(); row++)
            ok &= in_row[row] == (chunks + streams.size() - 1 - row) / streams.size() * PARTS;
        return ok;
    }

    // How long the parts take one after the other, and how long the last run took. Parts are measured in
    // the last run that used one stream, because a part that shares the device with others takes longer. On
    // the CPU back end copies and kernels share the cores, and the ratio says nothing.
    void print_overlap(void) const {
        if (streams.size() == 1)
            printf("Copies up ");
        else
            printf("In one stream %.3f ms: copies up ", alone);
        printf("%.3f ms, kernels %.3f ms, copies down %.3f ms\n", sum[COPY_UP], sum[KERNEL], sum[COPY_DOWN]);
        if (!CPU_BACKEND)
            printf("The parts together are %.2f times the whole of %.3f ms\n",
                   (sum[COPY_UP] + sum[KERNEL] + sum[COPY_DOWN]) / whole, whole);
    }

    // One row per stream, as wide as the run was long. Kernels are short, so a kernel is drawn over a copy
    // in the same column.
    void print(void) const {
        const int columns = 64;
        for (int row = 0; row < (int)streams.size(); row++) {
            std::string line(columns, '.');
            for (int pass = 0; pass < 2; pass++)
                for (const Step &step : steps) {
                    if (step.row != row || (step.part == KERNEL) != (pass == 1))
                        continue;
                    // Both ends are rounded alike, so that steps which follow each other share no column.
                    int from = std::clamp((int)lroundf(step.from / whole * columns), 0, columns - 1);
                    int to = std::clamp((int)lroundf(step.to / whole * columns), from + 1, columns);
                    std::fill(&line[from], &line[to], "^#v"[step.part]);
                }
            printf("stream %d |%s|\n", row, line.c_str());
        }
        printf("          ^ copy up  # kernel  v copy down, 0 to %.3f ms\n", whole);
    }

    void write_svg(const char *path, const char *title) const {
        NewFile file;
        const char *problem = file_open(&file, path);
        if (!problem) {
            draw(file.stream, title);
            problem = file_end(&file);
        }
        if (problem)
            quit(EXIT_FAILURE, "cannot write %s: %s", path, problem);
        print_line(stdout, "wrote %s", path);
    }

    void draw(FILE *file, const char *title) const {
        static const char *const colors[] = {"#0072b2", "#d55e00", "#009e73"};
        const int left = 80, width = 1000, top = 60, high = 36;
        const int rows = streams.size(), bottom = top + rows * high;
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
        for (const Step &step : steps) {
            float x = step.from / whole * width, end = step.to / whole * width;
            fprintf(file,
                    "<rect x='%.2f' y='%d' width='%.2f' height='%d' fill='%s' stroke='white' "
                    "stroke-width='0.3'><title>%s, %.3f to %.3f ms</title></rect>\n",
                    left + x, top + step.row * high + 4, std::max(end - x, 0.5f), high - 8, colors[step.part],
                    names[step.part], step.from, step.to);
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

// Refuses a bad --output before any work is done.
static inline void check_svg(const char *path) {
    if (!path || options.list_devices)
        return;
    size_t length = strlen(path);
    if (length < 5 || strcmp(path + length - 4, ".svg") != 0)
        quit(EXIT_USAGE, "--output %s: the name must end in .svg", *path ? path : "''");
    file_check(path);
}

// `own_option` is one that only this program has.
static inline void stream_settings(int argc, char **argv, const char *doc, int streams,
                                   Option own_option = OPTION_END) {
    parse_options(argc, argv, doc, TIMES,
                  {OPTION_SIZE("size", &size, 1, 1LL << 40, "elements in all"),
                   OPTION_SIZE("chunk", &chunk, 1, 1 << 30, "elements at a time"),
                   OPTION_FILE("output", &output, "write the timeline to FILE, an .svg"), own_option});
    check_svg(output);
    select_device();
    chunk = min_of(chunk, size);
    require_memory(4 * size * sizeof(int), 2 * streams * 3 * chunk * sizeof(int));
}

// A device without a copy engine does not copy while a kernel runs, so several streams are no faster than
// one.
static inline void print_copy_engines(int engines) {
    printf("Copy engines: %d\n", engines);
    if (engines == 0)
        printf("The device does not overlap copies with kernels, so streams gain nothing.\n");
}

static Timeline timeline;
static bool steps_ok; // the result of the runs for the timeline

// Does the work of the program with events around each step: in one stream to warm up, then in one stream to
// measure each part alone, and if there are more `streams`, in all of them. It has device memory of its own.
// At the end host_c holds no result.
static inline void time_steps(Kernel *kernel, int streams, Issue issue, const int *host_a, const int *host_b,
                              int *host_c) {
    cudaEvent_t start, stop;
    float ms;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    timeline.streams.resize(streams);
    for (cudaStream_t &stream : timeline.streams)
        HANDLE_ERROR(cudaStreamCreate(&stream));
    DeviceArray<int> dev_a(streams * chunk), dev_b(streams * chunk), dev_c(streams * chunk);
    for (int run = 0; run <= streams; run++) {
        int rows = run < 2 ? 1 : streams;
        memset(host_c, 0xff, size * sizeof(int)); // so each run must write the whole result
        timeline.steps.clear();
        HANDLE_ERROR(cudaEventRecord(start, 0));
        for (size_t i = 0; i < size; i += rows * chunk) // a round: one chunk in each stream
            for (int k = 0; k < PARTS * rows; k++) {
                int row = issue == DEPTH_FIRST ? k / PARTS : k % rows;
                Part part = (Part)(issue == DEPTH_FIRST ? k % PARTS : k / rows);
                size_t at = i + row * chunk, d = row * chunk;
                if (at >= size)
                    continue;
                size_t n = min_of(chunk, size - at), bytes = n * sizeof(int);
                cudaStream_t stream = timeline.step(part, row);
                if (part == COPY_UP) {
                    HANDLE_ERROR(
                        cudaMemcpyAsync(dev_a + d, host_a + at, bytes, cudaMemcpyHostToDevice, stream));
                    HANDLE_ERROR(
                        cudaMemcpyAsync(dev_b + d, host_b + at, bytes, cudaMemcpyHostToDevice, stream));
                } else if (part == KERNEL) {
                    kernel<<<(n + 255) / 256, 256, 0, stream>>>(dev_a + d, dev_b + d, dev_c + d, n);
                    HANDLE_LAUNCH();
                } else
                    HANDLE_ERROR(
                        cudaMemcpyAsync(host_c + at, dev_c + d, bytes, cudaMemcpyDeviceToHost, stream));
                timeline.end();
            }
        HANDLE_ERROR(cudaDeviceSynchronize());
        HANDLE_ERROR(cudaEventRecord(stop, 0));
        HANDLE_ERROR(cudaEventSynchronize(stop));
        HANDLE_ERROR(cudaEventElapsedTime(&ms, start, stop));
        timeline.read(start, ms);
    }
    for (cudaStream_t stream : timeline.streams)
        HANDLE_ERROR(cudaStreamDestroy(stream));
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    steps_ok = verify(host_a, host_b, host_c);
    memset(host_c, 0xff, size * sizeof(int));
}

// Checks the steps of the timeline, prints how much overlapped and draws the timeline, with --output also
// into a file. Compares the result of the lesson with the reference.
static inline bool check(const int *a, const int *b, const int *c) {
    if (!timeline.has_chunks((size + chunk - 1) / chunk))
        quit(EXIT_FAILURE, "the timeline lacks a step of a chunk");
    timeline.print_overlap();
    timeline.print();
    if (output)
        timeline.write_svg(output, options.program);
    return verify(a, b, c) && steps_ok;
}
