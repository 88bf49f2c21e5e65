// SPDX-License-Identifier: MIT
// Prints what common/bench.h has measured: the table of a ladder, or its JSON. bench.h includes this,
// after the declaration of its types.
#pragma once

// ---- figures ----

static inline double bench_median(const std::vector<float> &sorted) {
    return sorted.empty() ? NAN : sorted[sorted.size() / 2];
}

// 10^9 units of work per second
static inline double bench_rate(const BenchRow &row) {
    return (row.rung->work ? row.rung->work : bench.work) / bench_median(row.ms) / 1e6;
}

// The rates and times with which the rows of a table are compared; NAN where there is none.
struct BenchReference {
    double limit; // NAN on the CPU back end, where the limits of a GPU do not bound the rates of kernels
    double book;  // time of the first rung whose name begins with "book", if none does of rung 0; NAN on the
                  // CPU back end, where times do not rank kernels
    double library; // time of the fastest library
};

// A row's rate as a part of the limit; NAN for a library that does not do the same work
static inline double bench_of_limit(const BenchRow &row, const BenchReference &r) {
    return row.rung->kind == INACCURATE ? NAN : bench_rate(row) / r.limit;
}

static inline BenchReference bench_reference(const std::vector<BenchRow> &rows) {
    BenchReference r = {NAN, NAN, NAN};
    bool named = false;
    for (const BenchRow &row : rows) {
        if (row.rung->kind == LIMIT && !CPU_BACKEND)
            r.limit = fmin(r.limit, bench_rate(row)); // fmin ignores NAN
        if (row.rung->kind == LIBRARY)
            r.library = fmin(r.library, bench_median(row.ms));
        bool book = strncmp(row.rung->name, "book", 4) == 0;
        if (!CPU_BACKEND && (row.number == 0 || (book && !named)))
            r.book = bench_median(row.ms);
        named |= book;
    }
    return r;
}

// The number as text, or `none` where there is no number
static inline std::string bench_format(const char *format, double value, const char *none = "-") {
    char text[64];
    snprintf(text, sizeof text, format, value);
    return isfinite(value) ? text : none;
}

// ---- the table ----

// Pads to a number of columns. In UTF-8 only the first byte of a character takes one.
static inline std::string bench_pad(std::string text, size_t width) {
    size_t columns = 0;
    for (unsigned char c : text)
        columns += (c & 0xc0) != 0x80;
    return columns < width ? text + std::string(width - columns, ' ') : text;
}

// previous: the time of the rung before; NAN where there is none
static inline void bench_print_row(const BenchRow &row, const BenchReference &r, double previous,
                                   bool in_l2) {
    if (!row.skipped.empty()) {
        printf("%s\n", row.skipped.c_str());
        return;
    }
    if (row.ms.empty()) {
        printf("%*s wrong, not timed\n", 10, "");
        return;
    }
    double ms = bench_median(row.ms), rate = bench_rate(row);
    bool alone = bench_alone(*row.rung);
    printf("%11.5f %9.5f %9.5f ", ms, row.ms.front(), row.ms.back());
    if (in_l2)
        printf("%9.5f ", bench_median(row.cold));
    printf("%9.1f %8s ", rate, bench_format("%.1f%%", 100 * bench_of_limit(row, r)).c_str());
    if (bench.steps && !CPU_BACKEND)
        printf("%7s ", bench_format("%.2f", previous / ms).c_str());
    printf("%s%9s  %s",
           CPU_BACKEND ? "" : bench_format("%7.2f ", alone ? NAN : r.book / ms, "      - ").c_str(),
           bench_format("%.3f", alone ? NAN : r.library / ms).c_str(),
           alone    ? "-"
           : row.ok ? "yes"
                    : "NO");
    if (isfinite(row.error.max))
        printf(", error %.2g", row.error.max);
    if (isfinite(row.error.rms))
        printf(", RMS %.2g", row.error.rms);
    printf("\n");
}

static inline void bench_print_table(const std::vector<BenchRow> &rows, bool in_l2) {
    static bool first = true;
    if (first && bench.devices)
        bench.devices();
    else if (first)
        print_device(options.device);
    first = false;
    size_t name = strlen("kernel"), idea = strlen("what is new");
    for (const BenchRow &row : rows) {
        name = max_of(name, strlen(row.rung->name));
        idea = max_of(idea, strlen(row.rung->idea));
    }
    printf("%s%s%s%s\n", bench.title.c_str(), bench.data.empty() ? "" : ", ", bench.data.c_str(),
           in_l2 ? "; in L2, and cold" : "");
    printf(" #  %s %s %11s %9s %9s %s%9s %8s %s%9s  %s\n", bench_pad("kernel", name).c_str(),
           bench_pad("what is new", idea).c_str(), "median ms", "min", "max", in_l2 ? "     cold " : "",
           bench.unit, "of limit",
           CPU_BACKEND   ? ""
           : bench.steps ? " x prev x first "
                         : " x book ",
           "x library", "verified");
    BenchReference r = bench_reference(rows);
    double previous = NAN;
    for (const BenchRow &row : rows) {
        std::string number = row.number < 0 ? "-" : std::to_string(row.number);
        printf("%2s  %s %s ", number.c_str(), bench_pad(row.rung->name, name).c_str(),
               bench_pad(row.rung->idea, idea).c_str());
        bench_print_row(row, r, row.rung->kind == RUNG ? previous : NAN, in_l2);
        previous = bench_median(row.ms);
    }
    printf("\n");
    fflush(stdout);
}

// ---- JSON: one object for the program, whose "rows" are those of all its tables ----

static inline std::string bench_number(double value) {
    return bench_format("%.6g", value, "null");
}

static inline std::string bench_string(std::string text) {
    std::string quoted = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\')
            quoted += '\\';
        quoted += c;
    }
    return quoted + '"';
}

static std::string bench_json; // the rows up to now

static inline void bench_add_json(const std::vector<BenchRow> &rows, bool in_l2) {
    static const char *const kinds[] = {"rung", "library", "inaccurate", "limit", "alone"};
    BenchReference r = bench_reference(rows);
    for (const BenchRow &row : rows) {
        double ms = bench_median(row.ms), rate = bench_rate(row);
        bool alone = bench_alone(*row.rung);
        auto add = [&](const char *key, std::string value) {
            bench_json += (bench_json.back() == '{' ? "\"" : ", \"") + std::string(key) + "\": " + value;
        };
        bench_json += bench_json.empty() ? "\n    {" : ",\n    {";
        add("size", std::to_string(bench.size));
        add("title", bench_string(bench.title));
        add("data", bench.data.empty() ? "null" : bench_string(bench.data));
        add("kind", bench_string(kinds[row.rung->kind]));
        add("number", row.number < 0 ? "null" : std::to_string(row.number));
        add("name", bench_string(row.rung->name));
        add("idea", bench_string(row.rung->idea));
        add("skipped", row.skipped.empty() ? "null" : bench_string(row.skipped));
        add("runs", std::to_string(row.ms.size()));
        add("median_ms", bench_number(ms));
        add("min_ms", bench_number(row.ms.empty() ? NAN : row.ms.front()));
        add("max_ms", bench_number(row.ms.empty() ? NAN : row.ms.back()));
        add("cold_ms", bench_number(bench_median(row.cold)));
        add("in_l2", in_l2 ? "true" : "false");
        add("rate", bench_number(rate));
        add("unit", bench_string(bench.unit));
        add("of_limit", bench_number(bench_of_limit(row, r)));
        add("times_book", bench_number(alone ? NAN : r.book / ms));
        add("times_library", bench_number(alone ? NAN : r.library / ms));
        add("verified", alone || !row.skipped.empty() ? "null" : row.ok ? "true" : "false");
        add("max_error", bench_number(row.error.max));
        add("rms_error", bench_number(row.error.rms));
        bench_json += "}";
    }
}

static inline void bench_print_json(const cudaDeviceProp &prop) {
    int driver, runtime;
    HANDLE_ERROR(cudaDriverGetVersion(&driver));
    HANDLE_ERROR(cudaRuntimeGetVersion(&runtime));
    printf("{\"program\": %s, \"device\": %s, \"backend\": \"%s\", \"compute_capability\": \"%d.%d\", "
           "\"multiprocessors\": %d, \"l2_bytes\": %d, \"memory_bytes\": %zu, \"cuda_driver\": %d, "
           "\"cuda_runtime\": %d, \"seed\": %llu, \"rows\": [%s]}\n",
           bench_string(options.program).c_str(), bench_string(prop.name).c_str(),
           CPU_BACKEND ? "cpu" : "gpu", prop.major, prop.minor, prop.multiProcessorCount, prop.l2CacheSize,
           prop.totalGlobalMem, driver, runtime, (unsigned long long)options.seed, bench_json.c_str());
}
