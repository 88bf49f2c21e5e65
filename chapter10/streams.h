// SPDX-License-Identifier: MIT
// What the programs with one and two streams share below their lessons: options, input, check and timeline.
// The timeline shows when each copy and each kernel ran: the work is done again with an event before and
// after each step, and drawn as text, one row per stream, and with --output as an SVG picture.
#pragma once

#include <string>
#include <vector>
#include "../common/book.h"
#include "../common/file.h"
#include "../common/nvtx.h"
#include "../common/timing.h"        // median_of_runs()
#include "../common/checks/chunks.h" // fill_random(), verify()

// ---------------------------------------------------------------------------------------- check

typedef void Kernel(const int *a, const int *b, int *c, size_t n);
enum Issue { DEPTH_FIRST, BREADTH_FIRST };
enum Part { COPY_UP, KERNEL, COPY_DOWN, PARTS }; // up: to the device, down: to the host
static const char *const part_names[PARTS] = {"copy up", "kernel", "copy down"};

struct Step {
    Part part;
    int row; // the number of its stream
    cudaEvent_t start, stop;
    float from, to; // ms since the run began
};

static const char *output;      // --output
static std::vector<Step> steps; // of the last run, in the order of the calls
static int launches = 1;        // of the kernel for each chunk; more of them stand for a longer kernel

// `own_option` is one that only this program has.
static inline void stream_settings(int argc, char **argv, const char *doc, int streams,
                                   Option own_option = OPTION_END) {
    parse_options(argc, argv, doc, TIMES,
                  {OPTION_SIZE("size", &size, 1, 1LL << 40, "elements in all"),
                   OPTION_SIZE("chunk", &chunk, 1, 1 << 30, "elements at a time"),
                   OPTION_FILE("output", &output, "write the timeline to FILE, an .svg"), own_option});
    if (output && !options.list_devices) { // refused before any work is done
        size_t length = strlen(output);
        if (length < 5 || strcmp(output + length - 4, ".svg") != 0)
            quit(EXIT_USAGE, "--output %s: the name must end in .svg", *output ? output : "''");
        file_check(output);
    }
    select_device();
    chunk = min_of(chunk, size);
    require_memory(4 * size * sizeof(int), 2 * streams * 3 * chunk * sizeof(int));
}

// Does the work in `rows` streams, with events around each step. Stores when the steps ran, and returns how
// long the run took, in milliseconds.
static float run_steps(Kernel *kernel, int rows, Issue issue, const int *host_a, const int *host_b,
                       int *host_c) {
    DeviceArray<int> dev_a(rows * chunk), dev_b(rows * chunk), dev_c(rows * chunk);
    std::vector<cudaStream_t> streams(rows);
    cudaEvent_t start, stop;
    float ms;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    for (cudaStream_t &stream : streams)
        HANDLE_ERROR(cudaStreamCreate(&stream));
    steps.clear();
    memset(host_c, 0xff, size * sizeof(int)); // so that the run must write the whole result
    HANDLE_ERROR(cudaEventRecord(start, 0));
    for (size_t i = 0; i < size; i += rows * chunk) // a round: one chunk in each stream
        for (int k = 0; k < PARTS * rows; k++) {
            int row = issue == DEPTH_FIRST ? k / PARTS : k % rows;
            size_t at = i + row * chunk, d = row * chunk;
            if (at >= size)
                continue;
            size_t n = min_of(chunk, size - at), bytes = n * sizeof(int);
            Step step = {(Part)(issue == DEPTH_FIRST ? k % PARTS : k / rows), row, NULL, NULL, 0, 0};
            HANDLE_ERROR(cudaEventCreate(&step.start));
            HANDLE_ERROR(cudaEventCreate(&step.stop));
            HANDLE_ERROR(cudaEventRecord(step.start, streams[row]));
            nvtxRangePushA(part_names[step.part]);
            if (step.part == COPY_UP) {
                HANDLE_ERROR(
                    cudaMemcpyAsync(dev_a + d, host_a + at, bytes, cudaMemcpyHostToDevice, streams[row]));
                HANDLE_ERROR(
                    cudaMemcpyAsync(dev_b + d, host_b + at, bytes, cudaMemcpyHostToDevice, streams[row]));
            } else if (step.part == KERNEL) {
                for (int i = 0; i < launches; i++) {
                    kernel<<<n / 256 + 1, 256, 0, streams[row]>>>(dev_a + d, dev_b + d, dev_c + d, n);
                    HANDLE_LAUNCH();
                }
            } else
                HANDLE_ERROR(
                    cudaMemcpyAsync(host_c + at, dev_c + d, bytes, cudaMemcpyDeviceToHost, streams[row]));
            nvtxRangePop();
            HANDLE_ERROR(cudaEventRecord(step.stop, streams[row]));
            steps.push_back(step);
        }
    HANDLE_ERROR(cudaDeviceSynchronize());
    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    HANDLE_ERROR(cudaEventElapsedTime(&ms, start, stop));
    for (Step &step : steps) {
        HANDLE_ERROR(cudaEventElapsedTime(&step.from, start, step.start));
        HANDLE_ERROR(cudaEventElapsedTime(&step.to, start, step.stop));
        HANDLE_ERROR(cudaEventDestroy(step.start));
        HANDLE_ERROR(cudaEventDestroy(step.stop));
    }
    for (cudaStream_t stream : streams)
        HANDLE_ERROR(cudaStreamDestroy(stream));
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    return ms;
}

// A step's first event is recorded when its stream reaches it, even if the copy behind it then waits for a
// copy engine that is busy with another stream. An engine does one copy at a time, so a copy began no earlier
// than the one before it, in the same direction, ended.
static void correct_copies(void) {
    float free_from[PARTS] = {};
    for (Step &step : steps) {
        if (step.part != KERNEL)
            step.from = std::min(step.to, std::max(step.from, free_from[step.part]));
        free_from[step.part] = std::max(step.to, free_from[step.part]);
    }
}

// One row per stream, as wide as the run was long. Kernels are short, so a kernel is drawn over a copy in the
// same column.
static void print_timeline(int rows, float whole) {
    const int columns = 64;
    std::vector<std::string> lines(rows, std::string(columns, '.'));
    for (int pass = 0; pass < 2; pass++)
        for (const Step &step : steps) {
            if ((step.part == KERNEL) != (pass == 1))
                continue;
            // Both ends are rounded alike, so that steps which follow each other share no column.
            int from = std::clamp((int)lroundf(step.from / whole * columns), 0, columns - 1);
            int to = std::clamp((int)lroundf(step.to / whole * columns), from + 1, columns);
            std::fill(&lines[step.row][from], &lines[step.row][to], "^#v"[step.part]);
        }
    for (int row = 0; row < rows; row++)
        printf("stream %d |%s|\n", row, lines[row].c_str());
    printf("          ^ copy up  # kernel  v copy down, 0 to %.3f ms\n", whole);
}

static void write_svg(int rows, float whole) {
    static const char *const colors[] = {"#0072b2", "#d55e00", "#009e73"};
    const int left = 80, width = 1000, top = 60, high = 36, bottom = top + rows * high;
    NewFile svg;
    const char *problem = file_begin(&svg, output, ".tmp");
    if (problem)
        quit(EXIT_FAILURE, "cannot write %s: %s", output, problem);
    FILE *file = svg.stream;
    fprintf(file,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
            "font-family='sans-serif' font-size='13'>\n"
            "<rect width='100%%' height='100%%' fill='white'/>\n"
            "<text x='%d' y='22' font-size='15'>%s: %.3f ms</text>\n",
            left + width + 20, bottom + 40, left, options.program, whole);
    for (int part = 0; part < PARTS; part++)
        fprintf(file,
                "<rect x='%d' y='34' width='12' height='12' fill='%s'/>"
                "<text x='%d' y='45'>%s</text>\n",
                left + part * 120, colors[part], left + 18 + part * 120, part_names[part]);
    for (int row = 0; row < rows; row++)
        fprintf(file, "<text x='8' y='%d'>stream %d</text>\n", top + row * high + 21, row);
    for (const Step &step : steps) {
        float x = step.from / whole * width, end = step.to / whole * width;
        fprintf(file,
                "<rect x='%.2f' y='%d' width='%.2f' height='%d' fill='%s' stroke='white' "
                "stroke-width='0.3'><title>%s, %.3f to %.3f ms</title></rect>\n",
                left + x, top + step.row * high + 4, std::max(end - x, 0.5f), high - 8, colors[step.part],
                part_names[step.part], step.from, step.to);
    }
    for (int tick = 0; tick <= 10; tick++)
        fprintf(file,
                "<path d='M%d %dv6' stroke='black'/>"
                "<text x='%d' y='%d' text-anchor='middle'>%.2f</text>\n",
                left + tick * width / 10, bottom, left + tick * width / 10, bottom + 22, whole * tick / 10);
    fprintf(file, "</svg>\n");
    if ((problem = file_end(&svg)))
        quit(EXIT_FAILURE, "cannot write %s: %s", output, problem);
    print_line(stdout, "wrote %s", output);
}

// For --streams: times the work in one stream and in several, breadth first, with kernels that take from a
// quarter of the copies' time to four times as long. With full overlap the longest part hides the others, so
// the gain is at most the sum of all parts over the longest one. Returns the exit status.
static inline int compare_streams(Kernel *kernel, int streams) {
    PinnedArray<int> a(size), b(size), c(size);
    fill_random(a);
    fill_random(b);
    bool ok = true;
    float one, several, sum[PARTS];
    double once = 0; // what one launch for each chunk takes, over the time of the copies
    for (double aim : {0.0, 0.25, 0.5, 1.0, 2.0, 4.0}) {
        launches = once > 0 ? max_of(1, (int)lround(aim / once)) : 1;
        one = median_of_runs([&] { return run_steps(kernel, 1, BREADTH_FIRST, a, b, c); });
        std::fill(sum, sum + PARTS, 0);
        for (const Step &step : steps)
            sum[step.part] += step.to - step.from;
        double ratio = sum[KERNEL] / (sum[COPY_UP] + sum[COPY_DOWN]);
        if (aim == 0) {
            once = ratio;
            printf("kernels / copies  one stream  %2d streams  gain  at most\n", streams);
            continue;
        }
        several = median_of_runs([&] { return run_steps(kernel, streams, BREADTH_FIRST, a, b, c); });
        ok = verify(a, b, c) && ok;
        float all = sum[COPY_UP] + sum[KERNEL] + sum[COPY_DOWN];
        printf("%16.2f %8.3f ms %8.3f ms  %5.2f  %7.2f\n", ratio, one, several, one / several,
               all / *std::max_element(sum, sum + PARTS));
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// Compares the result of the lesson with the reference. Then measures the steps, in one stream and in all,
// and shows how long the parts take one after the other, how long the run in all streams took, and its
// timeline. Parts are measured in one stream, because a part that shares the device with others takes longer.
// On the CPU back end copies and kernels share the cores, and the ratio says nothing. At the end c has the
// result of the measured steps, which is compared as well.
static inline bool check(Kernel *kernel, int streams, Issue issue, const int *a, const int *b, int *c) {
    if (!verify(a, b, c))
        return false;
    float alone = run_steps(kernel, 1, issue, a, b, c), whole = alone, sum[PARTS] = {};
    for (const Step &step : steps)
        sum[step.part] += step.to - step.from;
    if (streams == 1)
        printf("Copies up ");
    else {
        whole = run_steps(kernel, streams, issue, a, b, c);
        printf("In one stream %.3f ms: copies up ", alone);
    }
    correct_copies();
    printf("%.3f ms, kernels %.3f ms, copies down %.3f ms\n", sum[COPY_UP], sum[KERNEL], sum[COPY_DOWN]);
    if (!CPU_BACKEND)
        printf("The parts together are %.2f times the whole of %.3f ms\n",
               (sum[COPY_UP] + sum[KERNEL] + sum[COPY_DOWN]) / whole, whole);
    print_timeline(streams, whole);
    if (output)
        write_svg(streams, whole);
    return verify(a, b, c);
}
