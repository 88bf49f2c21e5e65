// SPDX-License-Identifier: MIT
/*
 * Writes a recorded launch (trace.h): as a picture in SVG, which every browser shows, or as JSON in Chrome's
 * trace event format, which Perfetto reads too. Data for which this format has no fields is in the member
 * "launch".
 */
#include "trace.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

namespace cuda_cpu {

// ---- words ----

const char *name_of(TraceMemory memory) {
    static const char *const names[] = {"shared", "global", "constant", "local"};
    return names[(int)memory];
}

const char *name_of(EventKind kind) {
    static const char *const names[] = {"code", "read", "write", "atomic", "barrier"};
    return names[(int)kind];
}

static const char *turns_of(TraceMemory memory) {
    return memory == TraceMemory::shared ? "turns" : memory == TraceMemory::global ? "sectors" : "words";
}

static const char *one_of(TraceMemory memory) {
    return memory == TraceMemory::shared ? "turn" : memory == TraceMemory::global ? "sector" : "word";
}

static std::string triple(uint64_t x, uint64_t y, uint64_t z) {
    return "(" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + ")";
}

std::string block_name(const Trace &trace, uint64_t i) {
    return triple(i % trace.grid.x, i / trace.grid.x % trace.grid.y, i / trace.grid.x / trace.grid.y);
}

// The command that builds the program for checking: "make trace-chapter05/dot" for a program of this project,
// which is started as bin/chapter05/dot and whose source is chapter05/dot.cu; "cucc --check" for others
std::string how_to_instrument(const Trace &trace) {
    const std::string &file = trace.file, name = file.substr(0, file.rfind('.')),
                      program = program_invocation_name;
    if (file[0] != '/' && file.find('/') != file.npos && program.size() > name.size() &&
        program.compare(program.size() - name.size(), name.size(), name) == 0)
        return "make trace-" + name;
    return "cucc --check " + file + " -o " + program;
}

static std::string format(const char *text, ...) __attribute__((format(printf, 1, 2)));
static std::string format(const char *text, ...) {
    char *made = nullptr;
    va_list values;
    va_start(values, text);
    if (vasprintf(&made, text, values) < 0)
        made = nullptr;
    va_end(values);
    std::string result = made ? made : "";
    free(made);
    return result;
}

// ---- JSON ----

static std::string quoted(const std::string &text) {
    std::string result = "\"";
    for (unsigned char c : text)
        if (c < 32)
            result += format("\\u%04x", c);
        else
            result += c == '"' || c == '\\' ? std::string("\\") + (char)c : std::string(1, (char)c);
    return result + "\"";
}

std::string trace_json(const Trace &trace, const TraceSetting &setting) {
    std::string out = "{\"displayTimeUnit\": \"ns\",\n\"traceEvents\": [\n";
    const auto name = [&](const char *what, int process, int thread, const std::string &text) {
        out +=
            format("{\"ph\": \"M\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d, \"args\": {\"name\": %s}},\n",
                   what, process, thread, quoted(text).c_str());
    };
    name("process_name", 1, 0, "blocks of " + trace.kernel + ", launched at " + trace.launched_at);
    for (size_t w = 0; w < trace.workers.size(); ++w) {
        name("thread_name", 1, (int)w, "worker " + std::to_string(w));
        for (const TraceSpan &s : trace.workers[w])
            out += format(
                "{\"ph\": \"X\", \"pid\": 1, \"tid\": %zu, \"ts\": %.3f, \"dur\": %.3f, \"name\": "
                "\"block %s%s\", \"args\": {\"first\": %llu, \"last\": %llu, \"blocks\": %llu}},\n",
                w, s.begin * 1e6, std::max(0.0, s.end - s.begin) * 1e6, block_name(trace, s.first).c_str(),
                s.last != s.first ? (" to " + block_name(trace, s.last)).c_str() : "",
                (unsigned long long)s.first, (unsigned long long)s.last, (unsigned long long)s.count);
    }
    const BlockTrace *const b = trace.recorded;
    if (b) {
        name("process_name", 2, 0, "threads of block " + block_name(trace, setting.block));
        for (size_t t = 0; t < b->threads.size(); ++t)
            name("thread_name", 2, (int)t, "thread " + std::to_string(t));
        for (const BlockTrace::Phase &p : b->phases)
            for (size_t t = 0; t < p.runs.size(); ++t) {
                const BlockTrace::Run &r = p.runs[t];
                if (r.end < 0)
                    continue;
                out +=
                    format("{\"ph\": \"X\", \"pid\": 2, \"tid\": %zu, \"ts\": %.3f, \"dur\": %.3f, \"name\": "
                           "\"run\"},\n",
                           t, r.begin * 1e6, (r.end - r.begin) * 1e6);
                if (!p.barrier.empty())
                    out += format("{\"ph\": \"X\", \"pid\": 2, \"tid\": %zu, \"ts\": %.3f, \"dur\": %.3f, "
                                  "\"name\": \"wait at the barrier %s\"},\n",
                                  t, r.end * 1e6, (p.end - r.end) * 1e6, p.barrier.c_str());
            }
    }
    if (out[out.size() - 2] == ',')
        out.erase(out.size() - 2, 1);
    out += format(
        "],\n\"launch\": {\n\"kernel\": %s, \"launched_at\": %s, \"grid\": [%u, %u, %u], \"block\": [%u, %u, "
        "%u],\n\"workers\": %zu, \"blocks_of_an_event\": %llu,\n\"recorded_block\": %llu",
        quoted(trace.kernel).c_str(), quoted(trace.launched_at).c_str(), trace.grid.x, trace.grid.y,
        trace.grid.z, trace.block.x, trace.block.y, trace.block.z, trace.workers.size(),
        (unsigned long long)trace.group, (unsigned long long)setting.block);
    if (b) {
        out += format(", \"barriers_passed\": %u, \"barriers\": [", b->barriers);
        for (const BlockTrace::Phase &p : b->phases)
            if (!p.barrier.empty())
                out += format("%s\"%s\"", &p == &b->phases[0] ? "" : ", ", p.barrier.c_str());
        out += "]";
    }
    if (trace.steps_known) {
        out += format(",\n\"all_steps\": %s,\n\"steps\": [", b->truncated ? "false" : "true");
        size_t written = 0;
        for (size_t w = 0; w < trace.warps.size(); ++w) {
            size_t left = std::max<size_t>(20000 / trace.warps.size(), 1000);
            for (const TraceStep &s : trace.warps[w].steps) {
                if (left-- == 0)
                    break;
                out += format(
                    "%s\n{\"warp\": %zu, \"phase\": %u, \"line\": %s, \"lanes\": \"%08x\", \"active\": "
                    "%d, \"memory\": %s}",
                    written++ ? "," : "", w, s.phase, quoted(trace.lines[s.line]).c_str(), s.mask,
                    __builtin_popcount(s.mask), s.memory ? "true" : "false");
            }
        }
        out += "],\n\"accesses\": [";
        for (const TraceAccess &a : trace.accesses) {
            out +=
                format("%s\n{\"line\": %s, \"memory\": \"%s\", \"kind\": \"%s\", \"bytes\": %u, "
                       "\"object\": %s, \"warp_accesses\": %llu, \"lanes\": %llu, \"%s\": %llu, \"most\": %u",
                       &a == &trace.accesses[0] ? "" : ",", quoted(a.line).c_str(), name_of(a.memory),
                       name_of(a.kind), a.bytes, quoted(a.object).c_str(), (unsigned long long)a.count,
                       (unsigned long long)a.lanes, turns_of(a.memory), (unsigned long long)a.turns, a.most);
            if (a.line == setting.line) {
                out += ", \"addresses\": {";
                const char *comma = "";
                for (unsigned lane = 0; lane < 32; ++lane)
                    if (a.mask >> lane & 1) {
                        out += format("%s\"%u\": %llu", comma, lane, (unsigned long long)a.address[lane]);
                        comma = ", ";
                    }
                out += "}";
            }
            out += "}";
        }
        out += "]";
    }
    return out + "\n}}\n";
}

// ---- SVG ----

namespace {

constexpr double width = 960, left = 100, right = 20, plot = width - left - right;

struct Drawing {
    std::string out;
    double y = 0;

    static std::string escaped(const std::string &text) {
        std::string result;
        for (char c : text)
            result += c == '<'   ? "&lt;"
                      : c == '>' ? "&gt;"
                      : c == '&' ? "&amp;"
                      : c == '"' ? "&quot;"
                                 : std::string(1, c);
        return result;
    }
    void text(double x, double at, const char *css, const std::string &words) {
        out += format("<text x=\"%.4g\" y=\"%.5g\" class=\"%s\">%s</text>\n", x, at, css,
                      escaped(words).c_str());
    }
    void rect(double x, double at, double w, double h, const char *css, const std::string &tip = "") {
        out += format("<rect x=\"%.5g\" y=\"%.5g\" width=\"%.4g\" height=\"%.4g\" class=\"%s\"", x, at, w, h,
                      css);
        out += tip.empty() ? "/>\n" : "><title>" + escaped(tip) + "</title></rect>\n";
    }
    void line(double x1, double y1, double x2, double y2, const char *css) {
        out += format("<path d=\"M%.5g %.5gL%.5g %.5g\" class=\"%s\"/>\n", x1, y1, x2, y2, css);
    }
    // A heading, and lines of explanation of at most 128 characters
    void heading(const std::string &words, const std::string &explanation) {
        y += 44;
        text(left, y, "h", words);
        size_t begin = 0;
        while (begin < explanation.size()) {
            size_t end = explanation.size();
            if (end - begin > 128)
                end = explanation.rfind(' ', begin + 128);
            y += 16;
            text(left, y, "s", explanation.substr(begin, end - begin));
            begin = end + 1;
        }
        y += 12;
    }
    // A legend: samples of the marks and their meaning
    void legend(std::initializer_list<std::pair<const char *, const char *>> marks) {
        double x = left;
        y += 6;
        for (const auto &[css, words] : marks) {
            rect(x, y, 14, 11, css);
            text(x + 19, y + 10, "s", words);
            x += 40 + 6.4 * (double)strlen(words);
        }
        y += 16;
    }
    // An axis below the marks, with five to ten ticks. `to_x` maps values to coordinates.
    void axis(double top, double begin, double end, const std::string &label, double unit) {
        double step = pow(10, floor(log10((end - begin) / unit)));
        while ((end - begin) / unit / step < 5)
            step /= (end - begin) / unit / step < 2.5 ? 5 : 2;
        for (double tick = ceil(begin / unit / step) * step; tick <= end / unit * 1.0000001; tick += step) {
            const double x = left + (tick * unit - begin) / (end - begin) * plot;
            line(x, top, x, y + 4, "g");
            text(x, y + 17, "t m", format("%.6g", fabs(tick) < step / 2 ? 0 : tick));
        }
        y += 34;
        text(left + plot / 2, y, "s m", label);
    }
};

struct Unit {
    double seconds;
    const char *name;
};
Unit unit_of(double seconds) {
    return seconds < 1e-3 ? Unit{1e-6, "microseconds"}
           : seconds < 1  ? Unit{1e-3, "milliseconds"}
                          : Unit{1, "seconds"};
}

std::string count_of(uint64_t n, const char *thing) {
    return std::to_string(n) + " " + thing + (n == 1 ? "" : "s");
}

// The time at which the first block begins, which is 0 on the time axes.
double first_block(const Trace &trace) {
    double first = 1e9;
    for (const auto &spans : trace.workers)
        if (!spans.empty())
            first = std::min(first, spans[0].begin);
    return first;
}

void draw_blocks(Drawing &d, const Trace &trace) {
    const double first = first_block(trace);
    double end = first + 1e-7;
    for (const auto &spans : trace.workers)
        for (const TraceSpan &s : spans)
            end = std::max(end, s.end);
    end -= first;
    const Unit unit = unit_of(end);
    d.heading("Blocks, on the workers that ran them",
              "A worker is a host thread of the CPU back end. It runs one block after the other, as a "
              "multiprocessor "
              "of a GPU does; a multiprocessor also runs several blocks at the same time.");
    const double top = d.y, row = trace.workers.size() > 16 ? 14 : 26;
    std::string marks;
    std::swap(d.out, marks);
    for (size_t w = 0; w < trace.workers.size(); ++w, d.y += row) {
        d.text(left - 8, d.y + row / 2 + 2, "t e", format("worker %zu", w));
        const std::vector<TraceSpan> &spans = trace.workers[w];
        unsigned number = 0;
        for (size_t i = 0; i < spans.size(); ++number) {
            size_t last = i; // blocks that are narrower than a pixel are drawn together
            const auto x = [&](double time) { return left + (time - first) / end * plot; };
            while (last + 1 < spans.size() && x(spans[last].end) - x(spans[i].begin) < 1.5)
                ++last;
            const double from = x(spans[i].begin), to = std::max(from + 0.5, x(spans[last].end));
            const uint64_t a = spans[i].first, b = spans[last].last;
            const std::string label =
                a == b ? std::to_string(a) : std::to_string(a) + "–" + std::to_string(b);
            d.rect(from, d.y, to - from, row - 6, number % 2 ? "b" : "a",
                   (a == b ? "block " + block_name(trace, a)
                           : "blocks " + block_name(trace, a) + " to " + block_name(trace, b)) +
                       format(": %.4g %s", (spans[last].end - spans[i].begin) / unit.seconds, unit.name));
            if (row > 20 && to - from > 8 + 6.5 * (double)label.size() - (a == b ? 0 : 12))
                d.text((from + to) / 2, d.y + 14, "i m", label);
            i = last + 1;
        }
    }
    std::swap(d.out, marks);
    d.axis(top, 0, end, format("time since the first block began, in %s", unit.name), unit.seconds);
    d.out += marks;
    if (trace.blocks > 1)
        d.legend({{"a", "a block, or several that are too short to draw"},
                  {"b", "the next one; the label is its number"}});
}

void draw_waits(Drawing &d, const Trace &trace, const TraceSetting &setting) {
    const BlockTrace &b = *trace.recorded;
    const size_t threads = b.threads.size();
    const bool by_warp = threads > 32;
    const size_t rows = by_warp ? (threads + 31) / 32 : threads,
                 shown = std::min<size_t>(b.phases.size(), 24);
    const double begin = b.phases[0].begin, end = std::max(b.phases[shown - 1].end, begin + 1e-7);
    const Unit unit = unit_of(end - begin);
    d.heading(
        format("Barriers of block %s: when its %s run and wait", block_name(trace, setting.block).c_str(),
               by_warp ? "warps" : "threads"),
        format(
            "The block passes %s. On the CPU back end one worker runs the threads of a block in turn, each "
            "up to the barrier, where it waits for the others.%s%s",
            count_of(b.barriers, "barrier").c_str(),
            by_warp ? " A warp begins with its first lane and waits from the arrival of its last lane." : "",
            b.barriers + 1 > shown ? format(" The first %zu are drawn.", shown).c_str() : ""));
    const double top = d.y, row = rows > 16 ? 13 : 18;
    std::string marks;
    std::swap(d.out, marks);
    const auto x = [&](double time) { return left + (time - begin) / (end - begin) * plot; };
    for (size_t r = 0; r < rows; ++r, d.y += row) {
        d.text(left - 8, d.y + row / 2 + 3, "t e", format("%s %zu", by_warp ? "warp" : "thread", r));
        for (size_t p = 0; p < shown; ++p) {
            const BlockTrace::Phase &phase = b.phases[p];
            double from = 1e9, to = -1;
            for (size_t t = by_warp ? r * 32 : r; t < std::min(threads, by_warp ? r * 32 + 32 : r + 1); ++t)
                if (phase.runs[t].end >= 0)
                    from = std::min(from, phase.runs[t].begin), to = std::max(to, phase.runs[t].end);
            if (to < 0)
                continue;
            const std::string barrier = phase.barrier.empty() ? "" : "the barrier " + phase.barrier;
            if (!phase.barrier.empty())
                d.rect(x(to), d.y, x(phase.end) - x(to), row - 4, "w",
                       format("waits %.4g %s at ", (phase.end - to) / unit.seconds, unit.name) + barrier);
            d.rect(x(from), d.y, std::max(0.7, x(to) - x(from)), row - 4, "a",
                   format("runs %.4g %s", (to - from) / unit.seconds, unit.name));
        }
    }
    for (size_t p = 0; p < shown; ++p)
        if (!b.phases[p].barrier.empty())
            d.line(x(b.phases[p].end), top - 4, x(b.phases[p].end), d.y, "l");
    std::swap(d.out, marks);
    const double first = first_block(trace);
    d.axis(top, begin - first, end - first, format("time since the first block began, in %s", unit.name),
           unit.seconds);
    d.out += marks;
    d.legend({{"a", "runs"}, {"w", "waits at a barrier"}, {"k", "the barrier is passed"}});
}

// The first step of each phase. All warps begin a phase together, after the warp with the most steps has
// reached the barrier.
std::vector<unsigned> phase_starts(const Trace &trace) {
    std::vector<std::vector<unsigned>> steps;
    for (const TraceWarp &warp : trace.warps) {
        std::vector<unsigned> mine;
        for (const TraceStep &s : warp.steps) {
            mine.resize(std::max<size_t>(mine.size(), s.phase + 1));
            ++mine[s.phase];
        }
        mine.resize(std::max<size_t>(mine.size(), warp.barriers + 1));
        steps.push_back(mine);
    }
    std::vector<unsigned> starts{0};
    for (size_t p = 0;; ++p) {
        unsigned most = 0;
        bool any = false;
        for (const auto &mine : steps)
            if (p < mine.size())
                any = true, most = std::max(most, mine[p]);
        if (!any)
            return starts;
        starts.push_back(starts.back() + most);
    }
}

struct Columns { // one for each step
    unsigned count, shown;
    double each;
    explicit Columns(const std::vector<unsigned> &starts)
        : count(starts.back()), shown(std::min(std::max(count, 1u), 240u)),
          each(std::min(24.0, plot / shown)) {}
    double x(unsigned step) const { return left + each * std::min(step, shown); }
    std::string cut() const {
        return count > shown ? format(" The first %u of %u steps are drawn.", shown, count) : "";
    }
};

void step_axis(Drawing &d, const Columns &c, double top) {
    const unsigned every = c.shown <= 40 ? 5 : c.shown <= 100 ? 10 : 20;
    for (unsigned step = 0; step <= c.shown; step += every) {
        d.line(c.x(step), top, c.x(step), d.y + 4, "g");
        d.text(c.x(step), d.y + 17, "t m", std::to_string(step));
    }
    d.y += 34;
    d.text(left + plot / 2, d.y, "s m",
           "steps: a step is a source line that lanes of a warp execute together");
}

void draw_barriers(Drawing &d, const std::vector<unsigned> &starts, const Columns &c, double top) {
    for (size_t p = 1; p + 1 < starts.size(); ++p)
        if (starts[p] <= c.shown)
            d.line(c.x(starts[p]), top - 4, c.x(starts[p]), d.y, "l");
}

void draw_warps(Drawing &d, const Trace &trace, const TraceSetting &setting) {
    const std::vector<unsigned> starts = phase_starts(trace);
    const Columns c(starts);
    d.heading(
        format("Warps of block %s: active lanes in each step", block_name(trace, setting.block).c_str()),
        "The height of a bar is the number of active lanes, of 32. Every warp is counted as if it had a "
        "scheduler of its own: at a barrier it waits for the warp with the most steps." +
            c.cut());
    const double top = d.y, row = trace.warps.size() > 8 ? 17 : 26, full = row - 4;
    std::string marks;
    std::swap(d.out, marks);
    for (size_t w = 0; w < trace.warps.size(); ++w, d.y += row) {
        d.text(left - 8, d.y + row / 2 + 3, "t e", format("warp %zu", w));
        const TraceWarp &warp = trace.warps[w];
        std::string bars;
        std::vector<unsigned> used(starts.size());
        for (const TraceStep &s : warp.steps) {
            const unsigned at = starts[s.phase] + used[s.phase]++;
            if (at >= c.shown)
                continue;
            const double height = full * __builtin_popcount(s.mask) / 32;
            bars += format("M%.5g %.5gh%.3gv-%.3gh-%.3gz", c.x(at), d.y + full, c.each - (c.each > 4 ? 1 : 0),
                           height, c.each - (c.each > 4 ? 1 : 0));
        }
        for (unsigned p = 0; p < warp.barriers && p + 1 < starts.size(); ++p) {
            const double from = c.x(starts[p] + used[p]), to = c.x(starts[p + 1]);
            if (to - from > 0.5)
                d.rect(from, d.y, to - from, full, "w",
                       format("waits %u steps", starts[p + 1] - starts[p] - used[p]));
        }
        d.out += "<path d=\"" + bars + "\" class=\"a\"/>\n";
        d.line(left, d.y + full, c.x(c.shown), d.y + full, "g");
    }
    draw_barriers(d, starts, c, top);
    std::swap(d.out, marks);
    step_axis(d, c, top);
    d.out += marks;
    d.legend({{"a", "active lanes"}, {"w", "waits at a barrier"}, {"k", "the barrier is passed"}});
}

void draw_lanes(Drawing &d, const Trace &trace, const TraceSetting &setting) {
    const TraceWarp &warp = trace.warps[setting.warp];
    const std::vector<unsigned> starts = phase_starts(trace);
    const Columns c(starts);
    const unsigned lanes =
        std::min<unsigned>(32, (unsigned)(trace.recorded->threads.size() - 32 * setting.warp));
    unsigned apart = 0;
    for (const TraceStep &s : warp.steps)
        apart += (unsigned)__builtin_popcount(s.mask) < lanes;
    const std::string when = apart ? format("In %u of %zu steps some of the %u lanes are inactive: they wait "
                                            "while the others execute a "
                                            "branch or a loop, or they have returned.",
                                            apart, warp.steps.size(), lanes)
                             : lanes == 1 ? "The warp has one lane."
                                          : format("All %u lanes are active in every step.", lanes);
    d.heading(format("Lanes of warp %llu", (unsigned long long)setting.warp),
              "A column is a step. " + when + c.cut());
    const double cell = 8, top = d.y;
    std::string marks;
    std::swap(d.out, marks);
    for (unsigned lane = 0; lane < lanes; lane += 4)
        d.text(left - 8, top + cell * lane + 8, "t e", format("lane %u", lane));
    d.y += cell * lanes;
    std::vector<unsigned> used(starts.size());
    double label_end = 0;
    for (const TraceStep &s : warp.steps) {
        const unsigned at = starts[s.phase] + used[s.phase]++;
        if (at >= c.shown)
            continue;
        std::string path;
        for (unsigned lane = 0; lane < lanes; ++lane)
            if (s.mask >> lane & 1) {
                unsigned n = 1;
                while (lane + n < lanes && s.mask >> (lane + n) & 1)
                    ++n;
                const double w = c.each - (c.each > 3 ? 1 : 0);
                path += format("M%.5g %.5gh%.3gv%.4gh-%.3gz", c.x(at), top + cell * lane, w, cell * n - 1, w);
                lane += n;
            }
        d.out += "<path d=\"" + path + "\" class=\"" + (s.memory ? "b" : "a") + "\"><title>" +
                 Drawing::escaped(format("step %u, %s: %d of %u lanes%s", at, trace.lines[s.line].c_str(),
                                         __builtin_popcount(s.mask), lanes, s.memory ? ", memory" : "")) +
                 "</title></path>\n";
        // The number of the line, where there is space
        const std::string &line = trace.lines[s.line];
        const std::string number = line.substr(line.rfind(':') + 1);
        const double x = c.x(at) + c.each / 2, half = 3.4 * (double)number.size();
        if (x - half > label_end) {
            d.text(x, d.y + 12, "t m", number);
            label_end = x + half + 3;
        }
    }
    d.y += 14;
    d.text(left - 8, d.y - 2, "t e", "source line");
    draw_barriers(d, starts, c, top);
    std::swap(d.out, marks);
    step_axis(d, c, top);
    d.out += marks;
    d.legend(
        {{"a", "lane is active"}, {"b", "lane is active, and the line accesses memory"}, {"k", "barrier"}});
}

std::string list_of(const std::vector<unsigned> &lanes) {
    std::string list;
    for (unsigned lane : lanes)
        list += (list.empty() ? "" : ", ") + std::to_string(lane);
    return list;
}

void draw_banks(Drawing &d, const TraceAccess &a) {
    // For each bank the words that are accessed, in the order of their addresses, and their lanes
    std::map<unsigned, std::map<uint64_t, std::vector<unsigned>>> banks;
    for (unsigned lane = 0; lane < 32; ++lane)
        if (a.mask >> lane & 1)
            for (uint64_t word = a.address[lane] / 4; word <= (a.address[lane] + a.bytes - 1) / 4; ++word)
                banks[word % 32][word * 32 + (a.kind == EventKind::atomic ? lane : 0)].push_back(lane);
    const double column = plot / 32, cell = 16, top = d.y + 14;
    for (unsigned bank = 0; bank < 32; ++bank)
        d.text(left + column * (bank + 0.5), top - 4, "t m", std::to_string(bank));
    d.text(left - 8, top - 4, "t e", "bank");
    size_t rows = 1;
    for (const auto &[bank, words] : banks) {
        size_t row = 0;
        for (const auto &[key, lanes] : words) {
            const double x = left + column * bank, y = top + cell * (double)row++;
            const std::string all = list_of(lanes);
            d.rect(x + 0.5, y, column - 1, cell - 1, "a",
                   format("bank %u, word %llu: lane%s ", bank, (unsigned long long)key / 32,
                          lanes.size() > 1 ? "s" : "") +
                       all);
            d.text(x + column / 2, y + 11, "i m", lanes.size() == 1 ? all : format("×%zu", lanes.size()));
        }
        rows = std::max(rows, row);
    }
    for (size_t row = 0; row < rows; ++row)
        d.text(left - 8, top + cell * (double)row + 11, "t e", format("turn %zu", row + 1));
    for (unsigned bank = 0; bank <= 32; ++bank)
        d.line(left + column * bank, top, left + column * bank, top + cell * (double)rows, "g");
    d.y = top + cell * (double)rows + 2;
    d.legend({{"a", "a word; the number is the lane that accesses it (×32: so many lanes, a broadcast)"}});
}

void draw_sectors(Drawing &d, const TraceAccess &a) {
    std::map<uint64_t, std::vector<unsigned>> words; // 4-byte words and their lanes
    std::set<uint64_t> sectors, lines;
    for (unsigned lane = 0; lane < 32; ++lane)
        if (a.mask >> lane & 1)
            for (uint64_t word = a.address[lane] / 4; word <= (a.address[lane] + a.bytes - 1) / 4; ++word) {
                words[word].push_back(lane);
                sectors.insert(word / 8);
                lines.insert(word / 32);
            }
    const double column = plot / 32, cell = 16, top = d.y + 14;
    for (unsigned byte = 0; byte < 128; byte += 32)
        d.text(left + column * byte / 4, top - 4, "t",
               byte ? format("byte %u", byte) : "byte 0 of the cache line");
    d.text(left - 8, top - 4, "t e", "offset");
    d.y = top;
    unsigned row = 0;
    for (uint64_t line : lines) {
        if (row++ == 32)
            break;
        d.text(left - 8, d.y + 11, "t e", format("+%llu", (unsigned long long)(line - *lines.begin()) * 128));
        for (unsigned s = 0; s < 4; ++s) {
            if (!sectors.count(line * 4 + s)) {
                d.rect(left + column * 8 * s + 2, d.y, column * 8 - 4, cell - 2, "n");
                continue;
            }
            for (unsigned w = 0; w < 8; ++w) {
                const auto found = words.find(line * 32 + s * 8 + w);
                const double x = left + column * (8 * s + w) + (w == 0 ? 2 : 0),
                             wide = column - (w == 0 || w == 7 ? 2 : 0);
                if (found == words.end()) {
                    d.rect(x, d.y, wide, cell - 2, "w");
                    continue;
                }
                const std::string all = list_of(found->second);
                d.rect(x, d.y, wide - 0.7, cell - 2, "a", "lane " + all);
                d.text(x + wide / 2, d.y + 10.5, "i m",
                       found->second.size() == 1 ? all : format("×%zu", found->second.size()));
            }
        }
        d.y += cell;
    }
    if (lines.size() > 32)
        d.text(left, d.y += 12, "s", format("and %zu more cache lines", lines.size() - 32));
    d.y += 2;
    d.legend({{"a", "4 bytes and the lane that accesses them (×4: so many lanes)"},
              {"w", "moved with the sector, not used"},
              {"n", "sector that is not moved"}});
}

void draw_line(Drawing &d, const Trace &trace, const TraceSetting &setting) {
    unsigned drawn = 0;
    for (const TraceAccess &a : trace.accesses) {
        if (a.line != setting.line || a.memory == TraceMemory::constant || drawn++ == 4)
            continue;
        const int lanes = __builtin_popcount(a.mask);
        const std::string who = format("warp %u, %d lane%s of %u byte%s each", a.warp, lanes,
                                       lanes == 1 ? "" : "s", a.bytes, a.bytes == 1 ? "" : "s");
        if (a.memory == TraceMemory::shared) {
            d.heading(
                format("%s, %s of %s in shared memory: %s", a.line.c_str(),
                       a.kind == EventKind::atomic ? "atomic operation" : name_of(a.kind),
                       a.object.empty() ? "an array" : a.object.c_str(),
                       a.most == 1 ? "no bank conflict" : format("%u turns of the banks", a.most).c_str()),
                format(
                    "The access with the most turns: %s. Word w of 4 bytes is in bank w mod 32, and a bank "
                    "serves one word in a turn%s. All %llu accesses of warps in this block need %llu turns.",
                    who.c_str(), a.kind == EventKind::atomic ? ", for one lane's atomic operation" : "",
                    (unsigned long long)a.count, (unsigned long long)a.turns));
            draw_banks(d, a);
        } else {
            d.heading(
                format("%s, %s of global memory: %s", a.line.c_str(),
                       a.kind == EventKind::atomic ? "atomic operation" : name_of(a.kind),
                       count_of(a.most, "sector").c_str()),
                (a.object.empty() ? "" : "The memory was " + a.object + ". ") +
                    format(
                        "The access with the most sectors: %s. Memory moves in sectors of 32 bytes; a cache "
                        "line, "
                        "a row here, has four. All %llu accesses of warps in this block move %llu sectors.",
                        who.c_str(), (unsigned long long)a.count, (unsigned long long)a.turns));
            draw_sectors(d, a);
        }
    }
}

void draw_table(Drawing &d, const Trace &trace, const TraceSetting &setting) {
    d.heading(format("Memory accesses of block %s, by source line", block_name(trace, setting.block).c_str()),
              "Turns: how often the banks of shared memory serve a word. Sectors: pieces of 32 bytes of "
              "global memory. "
              "Words: different words of constant memory, served one after the other.");
    size_t longest = 0; // longest text in the first column
    for (const TraceAccess &a : trace.accesses)
        longest = std::max(longest, std::min<size_t>(a.line.size(), 31));
    const double second = left + std::max(110.0, 12 + 7.6 * (double)longest);
    const double x[] = {left, second, second + 190, left + 570, left + 650, left + 780, left + 840};
    const char *const heads[] = {"source line",           "memory", "access", "by warps", "lanes each",
                                 "turns or sectors each", "most"};
    d.y += 6;
    for (int i = 0; i < 7; ++i)
        d.text(x[i], d.y, i < 3 ? "t" : "t e", heads[i]);
    d.line(left, d.y + 5, left + plot, d.y + 5, "l");
    d.y += 5;
    unsigned rows = 0;
    const auto short_name = [](const std::string &text) {
        return text.size() <= 31 ? text : "…" + text.substr(text.size() - 30);
    };
    for (const TraceAccess &a : trace.accesses) {
        if (rows++ == 40)
            break;
        d.y += 17;
        // Memory that is allocated in the same file: "global (allocated in line 62)", else "global
        // (lock.h:16)"
        std::string object = a.object;
        if (const size_t colon = object.rfind(':'); object.compare(0, 13, "allocated at ") == 0) {
            const bool same = a.line.compare(0, a.line.rfind(':'), object, 13, colon - 13) == 0;
            object = same ? "allocated in line " + object.substr(colon + 1) : short_name(object.substr(13));
        }
        const std::string cells[] = {
            short_name(a.line),
            std::string(name_of(a.memory)) + (object.empty() ? "" : " (" + object + ")"),
            format("%s of %u byte%s", name_of(a.kind), a.bytes, a.bytes == 1 ? "" : "s"),
            std::to_string(a.count),
            format("%.3g", (double)a.lanes / (double)a.count),
            format("%.3g", (double)a.turns / (double)a.count) + " " +
                (a.turns == a.count ? one_of(a.memory) : turns_of(a.memory)),
            std::to_string(a.most)};
        for (int i = 0; i < 7; ++i)
            d.text(x[i], d.y, i < 3 ? (a.line == setting.line && i == 0 ? "v" : "c") : "c e", cells[i]);
    }
    if (trace.accesses.size() > 40)
        d.text(left, d.y += 17, "s", format("and %zu more", trace.accesses.size() - 40));
}

constexpr char style[] =
    "<style>svg { color-scheme: light dark; --paper: #fff; --ink: #222; --soft: #595959; --grid: #ccc; --a: "
    "#0b57a4; "
    "--b: #c44500 }\n"
    "@media (prefers-color-scheme: dark) { svg { --paper: #161618; --ink: #e6e6e6; --soft: #b0b0b0; --grid: "
    "#4a4a4c; "
    "--a: #8ab8f0; --b: #ff9a5c } }\n"
    "text { font: 11px system-ui, sans-serif; fill: var(--ink) } .h { font-size: 15px; font-weight: 600 } .s "
    "{ "
    "font-size: 12px; fill: var(--soft) }\n"
    ".title { font-size: 20px; font-weight: 600 } .c { font-size: 12px } .v { font-size: 12px; font-weight: "
    "700 } "
    ".i { fill: var(--paper); font-size: 10px; pointer-events: none }\n"
    ".m { text-anchor: middle } .e { text-anchor: end } .a { fill: var(--a) } .b { fill: var(--b) } .k { "
    "fill: "
    "var(--ink) }\n"
    ".w { fill: url(#waits); stroke: var(--soft); stroke-width: 0.5 } .n { fill: none; stroke: var(--soft); "
    "stroke-width: 0.7; stroke-dasharray: 2 3 }\n"
    ".g { stroke: var(--grid); stroke-width: 0.7 } .l { stroke: var(--ink); stroke-width: 1.2 }</style>\n"
    "<defs><pattern id=\"waits\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><path d=\"M0 0V4\" stroke=\"var(--soft)\" "
    "stroke-width=\"1.6\"/></pattern></defs>\n";

} // namespace

std::string trace_svg(const Trace &trace, const TraceSetting &setting) {
    const auto size = [](const dim3 &d) {
        return d.z > 1   ? format("%u × %u × %u", d.x, d.y, d.z)
               : d.y > 1 ? format("%u × %u", d.x, d.y)
                         : std::to_string(d.x);
    };
    const std::string title = "A launch of the kernel " + trace.kernel,
                      what = format("At %s, %s block%s of %s thread%s, on %s of the CPU back end",
                                    trace.launched_at.c_str(), size(trace.grid).c_str(),
                                    trace.blocks == 1 ? "" : "s", size(trace.block).c_str(),
                                    trace.block.x * trace.block.y * trace.block.z == 1 ? "" : "s",
                                    count_of(trace.workers.size(), "worker").c_str());
    Drawing d;
    d.y = 36;
    d.text(left, d.y, "title", title);
    d.y += 20;
    d.text(left, d.y, "s", what);
    draw_blocks(d, trace);
    const BlockTrace *const b = trace.recorded;
    if (b && b->barriers > 0)
        draw_waits(d, trace, setting);
    if (trace.steps_known) {
        draw_warps(d, trace, setting);
        draw_lanes(d, trace, setting);
        draw_line(d, trace, setting);
        if (!trace.accesses.empty())
            draw_table(d, trace, setting);
    } else {
        d.y += 40;
        d.text(left, d.y, "s",
               "Active lanes, bank conflicts and sectors need a program built for checking: " +
                   how_to_instrument(trace));
    }
    d.y += 24;
    std::string out =
        format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%.0f\" viewBox=\"0 0 %g "
               "%.0f\" role=\"img\" aria-labelledby=\"title desc\">\n<title id=\"title\">%s</title>\n<desc "
               "id=\"desc\">%s.",
               width, d.y, width, d.y, Drawing::escaped(title).c_str(), Drawing::escaped(what).c_str());
    if (b)
        out += format(" Block %s passes %s.", block_name(trace, setting.block).c_str(),
                      count_of(b->barriers, "barrier").c_str());
    for (const TraceAccess &a : trace.accesses)
        if (a.line == setting.line)
            out += Drawing::escaped(format(" %s %ss %s memory in %u %s at most for a warp.", a.line.c_str(),
                                           name_of(a.kind), name_of(a.memory), a.most,
                                           a.most == 1 ? one_of(a.memory) : turns_of(a.memory)));
    out += "</desc>\n";
    out += style;
    return out + "<rect width=\"100%\" height=\"100%\" fill=\"var(--paper)\"/>\n" + d.out + "</svg>\n";
}

} // namespace cuda_cpu
