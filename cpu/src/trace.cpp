// SPDX-License-Identifier: MIT
/*
 * Records a launch (trace.h): the setting, the recording, and the analysis of one block. The analysis
 * combines the threads of a warp into SIMT steps, with divergence and reconvergence, and counts the bank
 * conflicts of accesses to shared memory and the sectors of accesses to global memory.
 */
#include "trace.h"
#include "internal.h"
#include "race.h"
#include "../../common/lib/printable.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace cuda_cpu {

__thread BlockTrace *traced_block;

namespace {

TraceSetting setting;
bool wanted = false;            // a launch was selected and has not begun yet
uint64_t launches = 0;          // launches of the selected kernel so far
std::set<std::string> launched; // names of all kernels launched, for an error message

// ---- the setting ----

constexpr int exit_usage = 64; // the same as EXIT_USAGE of common/options.h

constexpr char form[] =
    "must be FILE.svg or FILE.json, optionally followed by ,kernel=NAME ,launch=N ,block=N ,warp=N "
    ",line=N, such as dot.svg,line=41";

bool ends_in(const std::string &text, const char *end) {
    const size_t n = strlen(end);
    return text.size() > n && text.compare(text.size() - n, n, end) == 0;
}

bool parse(const std::string &text, TraceSetting &s) {
    s.text = text;
    std::string rest = text;
    for (;;) { // parses from the end, because the file's name may contain commas
        const size_t comma = rest.rfind(','), equal = rest.find('=', comma == rest.npos ? 0 : comma);
        if (comma == rest.npos || equal == rest.npos)
            break;
        const std::string key = rest.substr(comma + 1, equal - comma - 1), value = rest.substr(equal + 1);
        if (key == "kernel")
            s.kernel = value;
        else if (key == "line")
            s.line = value;
        else if (key != "launch" && key != "block" && key != "warp")
            break;
        if (value.empty())
            return false;
        if (key != "kernel") {
            const size_t digits = key == "line" ? value.rfind(':') + 1 : 0;
            char *end;
            const unsigned long long n = strtoull(value.c_str() + digits, &end, 10);
            if (value.find_first_not_of("0123456789", digits) != value.npos || *end ||
                digits == value.size() || value.size() > digits + 18 ||
                (n == 0 && (key == "launch" || key == "line")))
                return false;
            (key == "launch" ? s.launch : key == "block" ? s.block : s.warp) = key == "line" ? s.warp : n;
        }
        rest.resize(comma);
    }
    s.file = rest;
    s.json = ends_in(rest, ".json");
    return s.json || ends_in(rest, ".svg");
}

// Prints a line on stderr. Control characters, which file names may contain, are replaced.
__attribute__((format(printf, 1, 2))) void print_line(const char *format, ...) {
    char text[PATH_MAX + 1000];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    fflush(stdout);
    fprintf(stderr, "cuda on the CPU: %s\n", printable(text));
}

// Reports a setting that does not fit the launch, such as a block that it does not have. Prints one line and
// ends the program.
[[noreturn]] __attribute__((format(printf, 1, 2))) void refuse(const char *why, ...) {
    only_error();
    char text[1000];
    va_list values;
    va_start(values, why);
    vsnprintf(text, sizeof text, why, values);
    va_end(values);
    print_line("the trace %s: %s", setting.text.c_str(), text);
    quick_exit(exit_usage);
}

// Exit handler: prints a line if no launch was recorded, unless the program ends with an error.
void report_missing(int status, void *) {
    if (!wanted || status)
        return;
    std::string names;
    for (const std::string &name : launched)
        names += (names.empty() ? "" : ", ") + name;
    if (launched.empty())
        print_line("the trace %s: nothing is written, because no kernel is launched", setting.text.c_str());
    else if (setting.kernel.empty() || launched.count(setting.kernel))
        print_line("the trace %s: nothing is written, the number of launches%s%s is %llu",
                   setting.text.c_str(), setting.kernel.empty() ? "" : " of ", setting.kernel.c_str(),
                   (unsigned long long)launches);
    else
        print_line("the trace %s: nothing is written, no kernel %s is launched, but %s", setting.text.c_str(),
                   setting.kernel.c_str(), names.c_str());
    fflush(nullptr);
    _exit(exit_usage);
}

const char *set(const char *text) {
    static std::string error;
    TraceSetting s;
    if (!parse(text, s))
        return form;
    const size_t slash = s.file.rfind('/');
    const std::string folder = slash == s.file.npos ? "." : s.file.substr(0, slash + 1);
    struct stat there;
    if (access(folder.c_str(), W_OK | X_OK) != 0 ||
        (stat(s.file.c_str(), &there) == 0 && S_ISDIR(there.st_mode) && (errno = EISDIR))) {
        error = "cannot write " + s.file + ": " + strerror(errno);
        return error.c_str();
    }
    if (!wanted)
        on_exit(report_missing, nullptr);
    setting = s;
    wanted = true;
    return nullptr;
}

// Writes a temporary file and renames it to the final name; special files such as /dev/stdout are written
// directly.
bool write_file(const std::string &name, const std::string &text) {
    struct stat there;
    const bool direct = stat(name.c_str(), &there) == 0 && !S_ISREG(there.st_mode);
    const size_t slash = name.rfind('/');
    std::string made = direct ? name
                              : (slash == name.npos ? "" : name.substr(0, slash + 1)) + ".unfinished-" +
                                    std::to_string(getpid()) + "-" +
                                    name.substr(slash == name.npos ? 0 : slash + 1);
    FILE *const file = fopen(made.c_str(), direct ? "w" : "wx");
    if (!file)
        return false;
    bool good = fwrite(text.data(), 1, text.size(), file) == text.size();
    good = fclose(file) == 0 && good;
    if (direct)
        return good;
    good = good && rename(made.c_str(), name.c_str()) == 0;
    if (!good) {
        const int error = errno;
        unlink(made.c_str());
        errno = error;
    }
    return good;
}

} // namespace

static const bool set_by_environment = [] {
    const char *const value = getenv("CUDA_CPU_TRACE");
    if (!value)
        return false;
    if (const char *const error = set(value)) {
        print_line("CUDA_CPU_TRACE=%s: %s", value, error);
        exit(strncmp(error, "cannot", 6) == 0 ? EXIT_FAILURE : exit_usage);
    }
    return true;
}();

// ---- recording ----

BlockTrace::BlockTrace(std::chrono::steady_clock::time_point start, unsigned count)
    : start(start), most_events((2 << 20) / count), threads(count) {
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

void trace_arrival(unsigned thread, Site &barrier_site) {
    BlockTrace &b = *traced_block;
    b.thread_stops(thread);
    b.add(thread, {0, (uint32_t)barrier_site.line, 0, EventKind::barrier, 0});
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
        b.phases.back().barrier = std::string(base_name(site.file)) + ":" + std::to_string(site.line);
    }
    if (++b.barriers < recorded_phases)
        b.phases.push_back({b.last, -1, {}, std::vector<BlockTrace::Run>(b.threads.size())});
}

static unsigned calling_thread() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

void trace_event(EventKind kind, const void *address, size_t bytes, uint32_t place) {
    BlockTrace &b = *traced_block;
    const unsigned thread = calling_thread();
    if (thread < b.threads.size())
        b.add(thread, {(uint64_t)address, place, (uint16_t)std::min<size_t>(bytes, 65535), kind,
                       b.threads[thread].depth});
}

void trace_call(int change) {
    BlockTrace &b = *traced_block;
    const unsigned thread = calling_thread();
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
    trace->file = kernel.file;
    trace->launched_at = std::string(base_name(kernel.file)) + ":" + std::to_string(kernel.line);
    trace->grid = config.grid;
    trace->block = config.block;
    trace->blocks = (uint64_t)config.grid.x * config.grid.y * config.grid.z;
    trace->group = (trace->blocks + 4095) / 4096;
    const uint64_t warps = ((uint64_t)config.block.x * config.block.y * config.block.z + 31) / 32;
    if (setting.block >= trace->blocks)
        refuse("the launch of %s at %s has the blocks 0 to %llu", name.c_str(), trace->launched_at.c_str(),
               (unsigned long long)trace->blocks - 1);
    if (setting.warp >= warps)
        refuse("a block of %s, launched at %s, has the warps 0 to %llu", name.c_str(),
               trace->launched_at.c_str(), (unsigned long long)warps - 1);
    if (!race_launch && (setting.warp || !setting.line.empty()))
        refuse("lanes and accesses need a program built for checking: %s", how_to_instrument(*trace).c_str());
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

// ---- analysis ----

static TraceMemory memory_of(const BlockTrace &b, uint64_t address, std::string *name = nullptr) {
    static thread_local Allocation found{};
    if (name && b.arena && address - (uint64_t)b.arena < arena_size) {
        for (const BlockTrace::Array &a : b.arrays)
            if (address - a.begin < a.bytes)
                *name = strcmp(a.name, "the launch") == 0 ? "dynamic shared memory" : a.name;
    } else if (name && !symbol_section((const void *)address) &&
               find_allocation((const void *)address, found) && found.file)
        *name = std::string("allocated at ") + base_name(found.file) + ":" + std::to_string(found.line);
    const char *const p = (const char *)address;
    if (b.arena && address - (uint64_t)b.arena < arena_size)
        return TraceMemory::shared;
    if (found.base && p >= found.base && p < found.base + found.size)
        return TraceMemory::global;
    if (const SymbolSection *const section = symbol_section(p))
        return section->constant ? TraceMemory::constant : TraceMemory::global;
    if (find_allocation(p, found))
        return TraceMemory::global;
    found = {};
    return TraceMemory::none;
}

// The number of turns (Nsight Compute: wavefronts) for an access of a warp to the 32 banks of shared memory;
// more than one is a bank conflict. In a turn each bank serves one 4-byte word, for all lanes that read or
// write it, or one atomic operation. Accesses of 8 bytes are split into half-warps, of 16 into quarter-warps.
static unsigned bank_turns(const uint64_t *address, uint32_t mask, unsigned bytes, bool atomic) {
    const unsigned lanes = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
    unsigned turns = 0;
    for (unsigned first = 0; first < 32; first += lanes) {
        std::set<uint64_t> words[32];
        size_t most = 0;
        for (unsigned lane = first; lane < first + lanes; ++lane)
            if (mask >> lane & 1)
                for (uint64_t word = address[lane] / 4; word <= (address[lane] + bytes - 1) / 4; ++word) {
                    words[word % 32].insert(word * 32 + (atomic ? lane : 0));
                    most = std::max(most, words[word % 32].size());
                }
        turns += (unsigned)most;
    }
    return turns;
}

// The number of different aligned pieces of `size` bytes that an access of a warp touches, such as the
// sectors of global memory
static unsigned pieces(const uint64_t *address, uint32_t mask, unsigned bytes, unsigned size) {
    std::set<uint64_t> all;
    for (unsigned lane = 0; lane < 32; ++lane)
        if (mask >> lane & 1)
            for (uint64_t piece = address[lane] / size; piece <= (address[lane] + bytes - 1) / size; ++piece)
                all.insert(piece);
    return (unsigned)all.size();
}

// The control-flow graph of the block, from the events of its threads. A node is an instruction that reported
// an event, together with the call depth. So each level of a recursion has nodes of its own.
namespace {
struct Flow {
    std::vector<TraceEvent> nodes;
    std::vector<std::set<unsigned>> after;
    // For each node its immediate post-dominator, where lanes that diverge at the node reconverge: the first
    // later node that is on every path to the end. Threads that return early are ignored. -1: none.
    std::vector<int> join;

    // Replaces `place` in the events of the block by the number of the node.
    explicit Flow(BlockTrace &b);

  private:
    void find_joins(unsigned end);
};
} // namespace

Flow::Flow(BlockTrace &b) {
    std::map<std::tuple<uint32_t, EventKind, uint8_t>, unsigned> numbers;
    std::vector<uint64_t> ends;
    for (BlockTrace::Thread &thread : b.threads) {
        int before = -1;
        for (TraceEvent &e : thread.events) {
            const auto [found, added] = numbers.insert({{e.place, e.kind, e.depth}, (unsigned)nodes.size()});
            if (added) {
                nodes.push_back(e);
                after.emplace_back();
            }
            e.place = found->second;
            if (before >= 0)
                after[before].insert(e.place);
            before = (int)e.place;
        }
        ends.resize(nodes.size());
        if (before >= 0)
            ++ends[before];
    }
    join.assign(nodes.size(), -1);
    if (!nodes.empty()) // the last node of most threads; the others return early
        find_joins((unsigned)(std::max_element(ends.begin(), ends.end()) - ends.begin()));
}

// Computes the immediate post-dominators, by the iterative algorithm for dominators of Cooper, Harvey and
// Kennedy ("A Simple, Fast Dominance Algorithm") on the reversed graph.
void Flow::find_joins(unsigned end) {
    std::vector<std::vector<unsigned>> before(nodes.size());
    for (unsigned n = 0; n < nodes.size(); ++n)
        for (unsigned next : after[n])
            before[next].push_back(n);
    std::vector<int> order(nodes.size(), -1); // postorder of the reversed graph, from the end
    std::vector<unsigned> sequence;
    std::vector<std::pair<unsigned, size_t>> stack{{end, 0}};
    std::vector<bool> seen(nodes.size());
    seen[end] = true;
    while (!stack.empty()) {
        auto &[n, i] = stack.back();
        if (i == before[n].size()) {
            order[n] = (int)sequence.size();
            sequence.push_back(n);
            stack.pop_back();
        } else if (const unsigned next = before[n][i++]; !seen[next]) {
            seen[next] = true;
            stack.push_back({next, 0});
        }
    }
    join[end] = (int)end;
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = sequence.size(); i-- > 0;) {
            const unsigned n = sequence[i];
            int best = n == end ? (int)end : -1;
            for (unsigned next : after[n]) {
                if (n == end || order[next] < 0 || join[next] < 0)
                    continue;
                int other = (int)next;
                while (best >= 0 && best != other)
                    if (order[best] < order[other])
                        best = join[best];
                    else
                        other = join[other];
                best = other;
            }
            if (join[n] != best) {
                join[n] = best;
                changed = true;
            }
        }
    }
    join[end] = -1;
}

namespace {

// Combines the threads of a warp into steps, by the rule of GPUs before independent thread scheduling (before
// Volta): where lanes diverge, the paths are executed one after the other up to the immediate post-dominator,
// where the lanes reconverge.
class WarpJoin {
  public:
    using Accesses = std::map<std::tuple<uint32_t, EventKind>, TraceAccess>;

    WarpJoin(Trace &trace, unsigned number, const Flow &flow, const std::map<uint32_t, unsigned> &line_of,
             Accesses &accesses)
        : trace(trace), b(*trace.recorded), flow(flow), line_of(line_of), accesses(accesses),
          warp(trace.warps[number]), number(number),
          lanes(std::min(32u, (unsigned)b.threads.size() - number * 32)) {}

    void run() {
        int last = -1;
        for (;;) {
            run(lanes == 32 ? ~0u : (1u << lanes) - 1, last);
            bool more = false; // lanes wait at a barrier; otherwise all have ended
            for (unsigned lane = 0; lane < lanes; ++lane)
                if (const TraceEvent *const e = next(lane)) {
                    more = true;
                    last = (int)e->place;
                    ++at[lane];
                }
            if (!more)
                return;
            ++warp.barriers;
        }
    }

  private:
    const TraceEvent *next(unsigned lane) const {
        const std::vector<TraceEvent> &events = b.threads[number * 32 + lane].events;
        return at[lane] == events.size() ? nullptr : &events[at[lane]];
    }

    // Runs the lanes until each has ended, waits at a barrier, or has reached a point of reconvergence
    // (`stops`). `last` is the node that all of them have executed last.
    void run(uint32_t mask, int last) {
        for (;;) {
            std::map<uint32_t, uint32_t> groups; // node -> lanes
            for (unsigned lane = 0; lane < lanes; ++lane)
                if (const TraceEvent *const e = mask >> lane & 1 ? next(lane) : nullptr;
                    e && e->kind != EventKind::barrier &&
                    std::find(stops.begin(), stops.end(), e->place) == stops.end())
                    groups[e->place] |= 1u << lane;
            if (groups.empty())
                return;
            if (groups.size() == 1) {
                last = (int)groups.begin()->first;
                execute(groups.begin()->second, (unsigned)last);
                continue;
            }
            std::vector<std::pair<uint32_t, uint32_t>> paths; // sorted by the address of their code
            for (const auto &[node, group] : groups)
                paths.push_back({flow.nodes[node].place, group});
            std::sort(paths.begin(), paths.end());
            const int join = last < 0 ? -1 : flow.join[last];
            if (join >= 0)
                stops.push_back((uint32_t)join);
            for (const auto &[place, group] : paths)
                run(group, -1);
            if (join >= 0)
                stops.pop_back();
            last = -1;
        }
    }

    void execute(uint32_t mask, unsigned node);

    Trace &trace;
    const BlockTrace &b;
    const Flow &flow;
    const std::map<uint32_t, unsigned> &line_of;
    Accesses &accesses;
    TraceWarp &warp;
    const unsigned number, lanes;
    size_t at[32] = {};
    std::vector<uint32_t> stops;
};

} // namespace

// Adds the step in which these lanes execute the node together, and counts its memory access.
void WarpJoin::execute(uint32_t mask, unsigned node) {
    const TraceEvent &like = flow.nodes[node];
    uint64_t address[32] = {};
    unsigned bytes = 0;
    for (unsigned lane = 0; lane < lanes; ++lane)
        if (mask >> lane & 1) {
            const TraceEvent &e = *next(lane);
            address[lane] = e.address;
            bytes = std::max<unsigned>(bytes, e.bytes);
            ++at[lane];
        }
    const unsigned line = line_of.at(like.place);
    const bool memory = like.kind != EventKind::code;
    if (!warp.steps.empty() && warp.steps.back().line == line && warp.steps.back().mask == mask &&
        warp.steps.back().phase == warp.barriers && like.place >= warp.steps.back().place) {
        warp.steps.back().place = like.place;
        warp.steps.back().memory |= memory;
    } else
        warp.steps.push_back({line, mask, warp.barriers, like.place, memory});
    if (!memory)
        return;
    const uint64_t first = address[__builtin_ctz(mask)];
    TraceAccess &a = accesses[{like.place, like.kind}];
    std::string object;
    const TraceMemory kind = memory_of(b, first, a.count ? nullptr : &object);
    if (kind == TraceMemory::shared) { // as if each array began at bank 0, like the first one on a GPU
        uint64_t begin = (uint64_t)b.arena;
        for (const BlockTrace::Array &array : b.arrays)
            if (first - array.begin < array.bytes)
                begin = array.begin;
        for (uint64_t &one : address)
            one -= begin;
    }
    if (a.count == 0) {
        a.object = object;
        a.line = trace.lines[line];
        a.place = like.place;
        a.memory = kind;
        a.kind = like.kind;
        a.bytes = bytes;
    }
    const unsigned turns = kind == TraceMemory::shared
                               ? bank_turns(address, mask, bytes, like.kind == EventKind::atomic)
                           : kind == TraceMemory::global ? pieces(address, mask, bytes, 32)
                                                         : pieces(address, mask, bytes, 4);
    ++a.count;
    a.lanes += (unsigned)__builtin_popcount(mask);
    a.turns += turns;
    if (turns > a.most) {
        a.most = turns;
        a.warp = number;
        a.mask = mask;
        memcpy(a.address, address, sizeof address);
    }
}

static int number_of(const std::string &line) {
    return atoi(line.c_str() + line.rfind(':') + 1);
}

static void analyse(Trace &trace) {
    BlockTrace &b = *trace.recorded;
    std::vector<uintptr_t> places;
    for (const BlockTrace::Thread &thread : b.threads)
        for (const TraceEvent &e : thread.events)
            if (e.kind != EventKind::barrier)
                places.push_back(e.place);
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    const std::vector<SourceLine> found = race_source_lines(places);
    for (const SourceLine &line : found)
        trace.lines.push_back(line.text);
    std::sort(trace.lines.begin(), trace.lines.end(), [](const std::string &x, const std::string &y) {
        const int order = x.compare(0, x.rfind(':'), y, 0, y.rfind(':'));
        return order ? order < 0 : number_of(x) < number_of(y);
    });
    trace.lines.erase(std::unique(trace.lines.begin(), trace.lines.end()), trace.lines.end());
    std::map<uint32_t, unsigned> line_of;
    std::set<uint32_t> inlined;
    for (size_t i = 0; i < places.size(); ++i)
        if (!found[i].text.empty()) { // otherwise it is code of the back end
            line_of[(uint32_t)places[i]] =
                (unsigned)(std::find(trace.lines.begin(), trace.lines.end(), found[i].text) -
                           trace.lines.begin());
            if (found[i].inlined)
                inlined.insert((uint32_t)places[i]);
        }
    // Keeps the events of the program's own code and the accesses to shared, global and constant memory.
    for (BlockTrace::Thread &thread : b.threads) {
        std::vector<TraceEvent> &all = thread.events;
        all.erase(std::remove_if(all.begin(), all.end(),
                                 [&](const TraceEvent &e) {
                                     return e.kind == EventKind::barrier ? false
                                            : !line_of.count(e.place)    ? true
                                            : e.kind == EventKind::code
                                                ? inlined.count(e.place) > 0
                                                : memory_of(b, e.address) == TraceMemory::none;
                                 }),
                  all.end());
    }
    std::map<std::tuple<uint32_t, EventKind>, TraceAccess> accesses;
    const Flow flow(b);
    trace.warps.resize((b.threads.size() + 31) / 32);
    for (unsigned w = 0; w < trace.warps.size(); ++w)
        WarpJoin(trace, w, flow, line_of, accesses).run();
    for (const auto &[key, access] : accesses)
        trace.accesses.push_back(access);
    std::stable_sort(
        trace.accesses.begin(), trace.accesses.end(),
        [](const TraceAccess &x, const TraceAccess &y) { return number_of(x.line) < number_of(y.line); });
    trace.steps_known = true;
}

// Chooses the line whose accesses are drawn: the line of the setting, or the one with the most turns and
// sectors.
static void choose_line(Trace &trace) {
    std::map<std::string, uint64_t> turns;
    std::string list;
    for (const TraceAccess &a : trace.accesses) {
        if (!turns.count(a.line))
            list += (list.empty() ? "" : ", ") + a.line;
        turns[a.line] += a.turns;
    }
    if (setting.line.empty()) {
        for (const auto &[line, count] : turns)
            if (setting.line.empty() || count > turns[setting.line])
                setting.line = line;
        return;
    }
    const std::string own = std::string(base_name(trace.file.c_str())) + ":" + setting.line;
    std::vector<std::string> meant;
    for (const auto &[line, count] : turns)
        if (line == setting.line || line == own || number_of(line) == atoi(setting.line.c_str()))
            meant.push_back(line);
    if (std::find(meant.begin(), meant.end(), own) != meant.end())
        meant = {own};
    if (meant.empty())
        refuse("block %llu of %s accesses no memory at that line%s%s", (unsigned long long)setting.block,
               trace.kernel.c_str(), list.empty() ? "" : ", but at ", list.c_str());
    setting.line = meant[0];
}

void finish_trace(Trace *trace) {
    if (!trace)
        return;
    if (race_launch && trace->recorded) {
        analyse(*trace);
        choose_line(*trace);
    }
    if (!write_file(setting.file, setting.json ? trace_json(*trace, setting) : trace_svg(*trace, setting)))
        end_program("cannot write %s: %s", setting.file.c_str(), strerror(errno));
    const std::string more =
        trace->steps_known
            ? ", and block " + block_name(*trace, setting.block) + " of it"
            : "; lanes and accesses need a program built for checking: " + how_to_instrument(*trace);
    print_line("%s shows the launch of %s at %s%s", setting.file.c_str(), trace->kernel.c_str(),
               trace->launched_at.c_str(), more.c_str());
    delete trace->recorded;
    delete trace;
}

} // namespace cuda_cpu

const char *cuda_cpu_trace(const char *text) {
    return cuda_cpu::set(text);
}
