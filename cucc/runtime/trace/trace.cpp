// SPDX-License-Identifier: MIT
// Records a launch (trace.h): the setting, the recording, and the file, which is JSON in Chrome's trace
// event format, which Perfetto reads too. Data for which this format has no fields is in the member
// "launch".
#include "memory.h"
#include "trace.h"

#include <climits>
#include <cstdarg>
#include <sys/stat.h>

namespace cuda_cpu {

__thread BlockTrace *traced_block;

namespace {

TraceSetting setting;
bool wanted = false;            // a launch was selected and has not begun yet
uint64_t launches = 0;          // launches of the selected kernel so far
std::set<std::string> launched; // names of all kernels launched, for an error message

// ---- the setting ----

constexpr int exit_usage = 64; // EX_USAGE of sysexits.h

constexpr char form[] = "must be FILE.json, optionally followed by ,kernel=NAME ,launch=N ,block=N, such as "
                        "dot.json,kernel=dot; cucc/trace.py draws it";

bool parse(const std::string &text, TraceSetting &s) {
    s.text = s.file = text;
    for (;;) { // parses from the end, because the file's name may contain commas
        const size_t comma = s.file.rfind(','), equal = s.file.find('=', comma == s.file.npos ? 0 : comma);
        if (comma == s.file.npos || equal == s.file.npos)
            break;
        const std::string key = s.file.substr(comma + 1, equal - comma - 1), value = s.file.substr(equal + 1);
        const bool number = key == "launch" || key == "block";
        if (!number && key != "kernel")
            break;
        if (value.empty() ||
            (number && (value.find_first_not_of("0123456789") != value.npos || value.size() > 18)))
            return false;
        if (number)
            (key == "launch" ? s.launch : s.block) = std::stoull(value);
        else
            s.kernel = value;
        s.file.resize(comma);
    }
    return s.launch > 0 && s.file.size() > 5 && s.file.compare(s.file.size() - 5, 5, ".json") == 0;
}

// Exit handler: prints a line if no launch was recorded, unless the program ends with an error.
void report_missing(int status, void *) {
    if (!wanted || status)
        return;
    std::string names;
    for (const std::string &name : launched)
        names += (names.empty() ? "" : ", ") + name;
    const std::string of = setting.kernel.empty() ? "" : " of " + setting.kernel;
    const std::string why = launched.empty() ? "because no kernel is launched"
                            : of.empty() || launched.count(setting.kernel)
                                ? "the number of launches" + of + " is " + std::to_string(launches)
                                : "no kernel " + setting.kernel + " is launched, but " + names;
    print_line("the trace %s: nothing is written, %s", setting.text.c_str(), why.c_str());
    fflush(nullptr);
    _exit(exit_usage);
}

// Writes a file under another name and renames it when it is complete, so that the file is whole or does not
// exist. A device or pipe such as /dev/stdout is written directly.
bool write_file(const std::string &name, const std::string &text) {
    struct stat there;
    const bool direct = stat(name.c_str(), &there) == 0 && !S_ISREG(there.st_mode);
    const std::string made = direct ? name : name + ".unfinished-" + std::to_string(getpid());
    FILE *const file = fopen(made.c_str(), direct ? "w" : "wx");
    if (!file)
        return false;
    bool good = fwrite(text.data(), 1, text.size(), file) == text.size();
    good = fclose(file) == 0 && good;
    if (direct || (good && rename(made.c_str(), name.c_str()) == 0))
        return good;
    const int error = errno;
    unlink(made.c_str());
    errno = error;
    return false;
}

} // namespace

// Reads CUDA_CPU_TRACE when the program starts.
static const bool set_by_environment = [] {
    const char *const value = getenv("CUDA_CPU_TRACE");
    if (!value)
        return false;
    if (!parse(value, setting)) {
        print_line("CUDA_CPU_TRACE=%s: %s", value, form);
        exit(exit_usage);
    }
    const std::string folder = setting.file.substr(0, setting.file.rfind('/') + 1);
    struct stat there;
    if (access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0 ||
        (stat(setting.file.c_str(), &there) == 0 && S_ISDIR(there.st_mode) && (errno = EISDIR))) {
        end_program("CUDA_CPU_TRACE=%s: cannot write %s: %s", value, setting.file.c_str(), strerror(errno));
    }
    on_exit(report_missing, nullptr);
    return wanted = true;
}();

// ---- recording ----

BlockTrace::BlockTrace(std::chrono::steady_clock::time_point start, unsigned count)
    : start(start), most_events((2 << 20) / std::max(count, 1u)), threads(count) {
    last = now();
    phases.push_back({last, -1, {}, std::vector<Run>(count)});
}

void BlockTrace::add(unsigned thread, const TraceEvent &event) {
    std::vector<TraceEvent> &events = threads[thread].events;
    if (events.size() < most_events)
        events.push_back(event);
    else
        truncated = true;
}

void BlockTrace::thread_stops(unsigned thread) {
    const double time = now();
    if (barriers < recorded_phases)
        phases.back().runs[thread] = {last, time};
    last = time;
}

void trace_arrival(unsigned thread, Site site, Site &barrier_site) {
    BlockTrace &b = *traced_block;
    b.thread_stops(thread);
    b.add(thread, {0, (uint32_t)site.line, 0, EventKind::barrier, 0});
    static __thread char own_name[PATH_MAX];
    if (barrier_site.file != own_name) {
        snprintf(own_name, sizeof own_name, "%s", barrier_site.file);
        barrier_site.file = own_name;
    }
}

void trace_release(Site site) {
    BlockTrace &b = *traced_block;
    b.last = b.now();
    if (b.barriers < recorded_phases) {
        b.phases.back().end = b.last;
        b.phases.back().barrier = place(site);
    }
    if (++b.barriers < recorded_phases)
        b.phases.push_back({b.last, -1, {}, std::vector<BlockTrace::Run>(b.threads.size())});
}

void trace_event(EventKind kind, const void *address, size_t bytes, uint32_t place) {
    BlockTrace &b = *traced_block;
    const unsigned thread = thread_rank();
    if (thread < b.threads.size())
        b.add(thread, {(uint64_t)address, place, (uint16_t)std::min<size_t>(bytes, 65535), kind,
                       b.threads[thread].depth});
}

void trace_call(int change) {
    BlockTrace &b = *traced_block;
    const unsigned thread = thread_rank();
    if (thread < b.threads.size())
        b.threads[thread].depth = (uint8_t)(b.threads[thread].depth + change);
}

Trace *trace_launch(const Kernel &kernel, const LaunchConfig &config) {
    if (!wanted)
        return nullptr;
    const char *const own_name = kernel.function ? (const char *)kernel.function->name : "";
    const std::string name = *own_name ? own_name : kernel.name;
    launched.insert(name);
    if (!setting.kernel.empty() && name != setting.kernel)
        return nullptr;
    if (++launches != setting.launch)
        return nullptr;
    wanted = false;
    Trace *const trace = new Trace;
    trace->kernel = name;
    trace->launched_at = place(kernel.site);
    trace->grid = config.grid;
    trace->block = config.block;
    trace->blocks = (uint64_t)config.grid.x * config.grid.y * config.grid.z;
    trace->group = (trace->blocks + 4095) / 4096;
    if (setting.block >= trace->blocks) {
        only_error();
        print_line("the trace %s: the launch of %s at %s has the blocks 0 to %llu", setting.text.c_str(),
                   name.c_str(), trace->launched_at.c_str(), (unsigned long long)trace->blocks - 1);
        quick_exit(exit_usage);
    }
    return trace;
}

std::vector<TraceSpan> &Trace::new_worker() {
    std::lock_guard<std::mutex> lock(mutex);
    return workers.emplace_back();
}

void Trace::begin_block(std::vector<TraceSpan> &spans, uint64_t number) {
    const double time = seconds_since(start);
    const bool next = !spans.empty() && spans.back().count < group &&
                      (number == spans.back().last + 1 || number + 1 == spans.back().last);
    if (next || spans.size() > 8192) { // a limit, because blocks in a random order are not consecutive
        spans.back().last = number;
        ++spans.back().count;
    } else
        spans.push_back({number, number, 1, time, -1});
    if (number != setting.block)
        return;
    traced_block = new BlockTrace(start, block.x * block.y * block.z);
    recorded = traced_block;
}

void Trace::end_block(std::vector<TraceSpan> &spans) {
    spans.back().end = seconds_since(start);
    if (!traced_block)
        return;
    traced_block->phases.back().end = traced_block->now();
    traced_block->arena = self->arena_block == block_number ? self->arena : nullptr;
    traced_block = nullptr;
}

// ---- the file ----

// printf into a string
__attribute__((format(printf, 1, 2))) static std::string format(const char *text, ...) {
    char *made = nullptr;
    va_list values;
    va_start(values, text);
    const std::string result = vasprintf(&made, text, values) < 0 ? "" : made;
    va_end(values);
    free(made);
    return result;
}

static std::string quoted(const std::string &text) {
    std::string result = "\"";
    for (unsigned char c : text)
        result +=
            c < 32 ? format("\\u%04x", c) : (c == '"' || c == '\\' ? "\\" : "") + std::string(1, (char)c);
    return result + "\"";
}

// A list of JSON, whose members are on lines of their own
static std::string list(const std::vector<std::string> &members) {
    std::string result = "[";
    for (const std::string &one : members)
        result += (result.size() > 1 ? ",\n" : "\n") + one;
    return result + "]";
}

// What happens when, as events of Chrome's format: the blocks on the workers, and the threads of a block
static std::string time_events(const Trace &trace) {
    std::vector<std::string> events;
    const auto name = [&](const char *what, int process, size_t thread, const std::string &text) {
        events.push_back(format(R"({"ph": "M", "name": "%s", "pid": %d, "tid": %zu, "args": {"name": %s}})",
                                what, process, thread, quoted(text).c_str()));
    };
    const auto span = [&](int process, size_t thread, double begin, double end, const std::string &text,
                          const std::string &more) {
        events.push_back(
            format(R"({"ph": "X", "pid": %d, "tid": %zu, "ts": %.3f, "dur": %.3f, "name": %s, "args": {%s}})",
                   process, thread, begin * 1e6, std::max(0.0, end - begin) * 1e6, quoted(text).c_str(),
                   more.c_str()));
    };
    name("process_name", 1, 0, "blocks of " + trace.kernel + ", launched at " + trace.launched_at);
    for (size_t w = 0; w < trace.workers.size(); ++w) {
        name("thread_name", 1, w, "worker " + std::to_string(w));
        for (const TraceSpan &s : trace.workers[w])
            span(1, w, s.begin, s.end,
                 "block " + coordinates(s.first, trace.grid) +
                     (s.last != s.first ? " to " + coordinates(s.last, trace.grid) : ""),
                 format(R"("first": %llu, "last": %llu, "blocks": %llu)", (unsigned long long)s.first,
                        (unsigned long long)s.last, (unsigned long long)s.count));
    }
    const BlockTrace &b = *trace.recorded;
    name("process_name", 2, 0, "threads of block " + coordinates(setting.block, trace.grid));
    for (size_t t = 0; t < b.threads.size(); ++t)
        name("thread_name", 2, t, "thread " + std::to_string(t));
    for (const BlockTrace::Phase &p : b.phases)
        for (size_t t = 0; t < p.runs.size(); ++t) {
            const BlockTrace::Run &r = p.runs[t];
            if (r.end < 0)
                continue;
            const std::string phase = format("\"phase\": %zu", (size_t)(&p - &b.phases[0]));
            span(2, t, r.begin, r.end, "run", phase);
            if (!p.barrier.empty())
                span(2, t, r.end, p.end, "wait at the barrier " + p.barrier, phase);
        }
    return list(events);
}

static std::string json(const Trace &trace) {
    const BlockTrace &b = *trace.recorded;
    std::vector<std::string> barriers;
    for (const BlockTrace::Phase &p : b.phases)
        if (!p.barrier.empty())
            barriers.push_back(quoted(p.barrier));
    std::string out =
        "{\"displayTimeUnit\": \"ns\",\n\"traceEvents\": " + time_events(trace) +
        format(",\n\"launch\": {\"kernel\": %s, \"launched_at\": %s, \"grid\": [%u, %u, %u], "
               "\"block\": [%u, %u, %u],\n\"workers\": %zu, "
               "\"recorded_block\": %llu, \"barriers_passed\": %u, \"barriers\": %s",
               quoted(trace.kernel).c_str(), quoted(trace.launched_at).c_str(), trace.grid.x, trace.grid.y,
               trace.grid.z, trace.block.x, trace.block.y, trace.block.z, trace.workers.size(),
               (unsigned long long)setting.block, b.barriers, list(barriers).c_str());
    if (!race_launch)
        return out + "}}\n";
    std::vector<std::string> steps, passed, accesses;
    for (size_t w = 0; w < trace.warps.size(); ++w) {
        passed.push_back(std::to_string(trace.warps[w].barriers));
        const size_t most = std::max<size_t>(20000 / trace.warps.size(), 1000);
        for (size_t i = 0; i < std::min(most, trace.warps[w].steps.size()); ++i) {
            const TraceStep &s = trace.warps[w].steps[i];
            steps.push_back(format(
                R"({"warp": %zu, "phase": %u, "line": %s, "lanes": "%08x", "active": %d, "memory": %s})", w,
                s.phase, quoted(trace.lines.at(s.place)).c_str(), s.mask, __builtin_popcount(s.mask),
                s.memory ? "true" : "false"));
        }
    }
    static const char *const memories[] = {"shared", "global", "constant", "local"};
    static const char *const kinds[] = {"code", "read", "write", "atomic", "barrier"};
    for (const TraceAccess &a : trace.accesses) {
        std::string addresses;
        for (unsigned lane = 0; lane < 32; ++lane)
            if (a.mask >> lane & 1)
                addresses += format("%s\"%u\": %llu", addresses.empty() ? "" : ", ", lane,
                                    (unsigned long long)a.address[lane]);
        accesses.push_back(format(
            R"({"line": %s, "memory": "%s", "kind": "%s", "bytes": %u, "object": %s, )"
            R"("warp_accesses": %llu, "lanes": %llu, "turns": %llu, "most": %u, "warp": %u, "addresses": {%s}})",
            quoted(a.line).c_str(), memories[(int)a.memory], kinds[(int)a.kind], a.bytes,
            quoted(a.object).c_str(), (unsigned long long)a.count, (unsigned long long)a.lanes,
            (unsigned long long)a.turns, a.most, a.warp, addresses.c_str()));
    }
    return out +
           format(",\n\"warp_barriers\": %s, \"all_steps\": %s,\n\"steps\": ", list(passed).c_str(),
                  b.truncated ? "false" : "true") +
           list(steps) + ",\n\"accesses\": " + list(accesses) + "}}\n";
}

void finish_trace(Trace *trace) {
    if (!trace)
        return;
    if (!trace->recorded) // the kernel has ended before that block began
        trace->recorded = new BlockTrace(trace->start, 0);
    if (race_launch)
        trace->find_steps();
    if (!write_file(setting.file, json(*trace)))
        end_program("cannot write %s: %s", setting.file.c_str(), strerror(errno));
    print_line("%s describes the launch of %s at %s%s", setting.file.c_str(), trace->kernel.c_str(),
               trace->launched_at.c_str(),
               race_launch ? (", and block " + coordinates(setting.block, trace->grid) + " of it").c_str()
                           : "; lanes and accesses need a program built for checking (cucc --check)");
    delete trace->recorded;
    delete trace;
}

} // namespace cuda_cpu
