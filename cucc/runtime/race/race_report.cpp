// SPDX-License-Identifier: MIT
// What the race detector prints, with the source lines of instructions (addr2line).
#include "race_detector.h"

namespace cuda_cpu::race {

namespace {

// Finds the program's source line for a call stack, without functions of headers such as atomicAdd.
std::string line_of(const std::vector<uintptr_t> &addresses) {
    for (uintptr_t address : addresses)
        if (const std::string line = race_source_lines({address})[0].text; !line.empty())
            return line;
    return "an unknown line (is addr2line installed, and the program compiled with -g?)";
}

std::string shared_memory(const SharedName &n) {
    return strcmp(n.name, "the launch") == 0 ? "dynamic shared memory"
                                             : std::string("shared memory ") + n.name;
}

// Describes the accessed memory, such as "device memory"; `allocated` is " (allocated at sum.cu:12)" or
// empty.
std::string name_memory(uintptr_t address, const Access &a, std::string &allocated) {
    const char *const p = (const char *)address;
    if (a.block < a_copy && is_shared_memory(address)) {
        for (const SharedName &n : threads().names)
            if (p >= n.begin && p < n.begin + n.bytes)
                return shared_memory(n);
        return "shared memory";
    }
    if (const SymbolSection *s = symbol_section(p))
        return s->constant     ? "a __constant__ variable"
               : s->per_device ? "a __device__ variable"
                               : "a __managed__ variable";
    const auto m = find_allocation(p);
    if (!m)
        return "";
    if (m->site.file)
        allocated = " (allocated at " + place(m->site) + ")";
    return name_of(m->kind);
}

struct Reports {
    std::mutex mutex;
    std::set<std::pair<uint32_t, uint32_t>> seen; // pairs of instructions that have been reported
    std::set<std::pair<std::string, std::string>> lines;
    std::set<std::string> raced; // lines of races
    // Reads of shared memory that nothing has written: the line, and the report, which is printed at the end
    // if the line has no race, because a missing barrier makes such reads too.
    std::vector<std::pair<std::string, std::string>> unwritten;
    // A race of a write and a read by one line. It is printed at the end unless the line is in `changes`: two
    // threads change a word there, and a barrier between the two is no help.
    std::map<std::string, std::string> one_line;
    std::set<std::string> changes;
    unsigned shown = 0, more = 0;

    void show(const std::string &text) { // of a race
        if (shown == 10) {
            ++more;
            return;
        }
        ++shown;
        fflush(stdout);
        fputs(text.c_str(), stderr);
    }
};

ONLY(reports, Reports)

// At the end of the program, changes the exit status to 1. It is registered before main, so it runs last.
[[maybe_unused]] const int at_end = atexit([] {
    fflush(nullptr);
    for (const auto &[line, text] : reports().one_line)
        if (!reports().changes.count(line))
            reports().show(text);
    for (const auto &[line, text] : reports().unwritten)
        if (!reports().raced.count(line)) {
            ++reports().shown;
            fputs(text.c_str(), stderr);
        }
    if (reports().shown == 0)
        return;
    if (reports().more)
        print_line("races at %u more pairs of lines are not shown", reports().more);
    _exit(EXIT_FAILURE);
});

std::string task_name(const Task *task) {
    if (!task)
        return "earlier work";
    if (task->kernel)
        return std::string("kernel ") + task->kernel + ", launched at " + place(task->site) + ",";
    std::vector<uintptr_t> frames;
    for (void *frame : task->frames)
        frames.push_back((uintptr_t)frame - (uintptr_t)__executable_start);
    return std::string(task->call) + ", called at " + line_of(frames) + ",";
}

std::string in_kernel_by(const Access &me) {
    return std::string("in kernel ") + self->kernel->name + ", block " + coordinates(me.block, gridDim) +
           ": thread " + coordinates(me.thread, blockDim);
}

std::string verb(const Access &a, const Task *task = nullptr) {
    if (task && a.block == a_copy && std::string(task->call) == "cudaFreeAsync")
        return "frees";
    if (a.block == a_copy && a.thread == an_allocation)
        return "allocates";
    return a.atomic ? a.write ? "atomically changes" : "atomically reads" : a.write ? "writes" : "reads";
}

std::string amount(size_t bytes) {
    return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

// Reports one instruction's access, unless there has been a report of this kind about it or its line.
void report_one(const char *title, uint32_t kind, const Access &me, size_t bytes, const std::string &memory,
                const std::string &details, bool at_end = false) {
    Reports &r = reports();
    std::lock_guard lock(r.mutex);
    if (!r.seen.insert({me.place, kind}).second)
        return;
    const std::string line = line_of({me.place});
    if (!r.lines.insert({title + memory, line}).second)
        return;
    const std::string text = std::string("cuda on the CPU: ") + title + " " + in_kernel_by(me) + " " +
                             verb(me) + " " + amount(bytes) + memory + " at " + line + details + "\n";
    if (at_end) {
        r.unwritten.push_back({line, text});
        return;
    }
    ++r.shown;
    fflush(stdout);
    fputs(text.c_str(), stderr);
}

} // namespace

void report(const Access &a, const Access &b, uintptr_t address, size_t bytes, bool changes) {
    std::string allocated;
    const std::string memory = name_memory(address, b, allocated);
    if (memory.empty())
        return; // memory of the program or the runtime in the same page as tracked memory
    Reports &r = reports();
    std::lock_guard lock(r.mutex);
    if (!r.seen.insert(std::minmax(a.place, b.place)).second)
        return;
    const std::string line_a = a.place ? line_of({a.place}) : "", line_b = b.place ? line_of({b.place}) : "";
    r.raced.insert({line_a, line_b});
    const bool host = a.block == the_host || b.block == the_host;
    const Task *first = nullptr, *second = current.task;
    if (b.block == the_host || a.time < current.task_begun) {
        Tasks &t = tasks();
        std::lock_guard also(t.mutex);
        first = a.block == the_host ? nullptr : task_at(t, a.time);
    } else
        first = second;
    const bool same = !host && first == second && a.block != a_copy && b.block != a_copy;
    const bool later = same && line_a == line_b && a.write != b.write && a.atomic == b.atomic;
    const bool both = same && a.place == b.place && a.write && b.write, change = both && changes;
    if (change)
        r.changes.insert(line_a);
    if (!later && !r.lines.insert(std::minmax(line_a, line_b)).second)
        return;
    const auto size = amount(bytes) + " of " + memory;
    const auto at = [&](const Access &x) {
        return x.place ? " at " + (&x == &a ? line_a : line_b) : std::string();
    };
    const auto who = [&](const Access &x, const Task *task, bool with_block) -> std::string {
        if (x.block == the_host)
            return "the host";
        if (x.block == a_copy)
            return task_name(task);
        const uint3 block = same ? blockDim : task ? task->block : uint3{1, 1, 1};
        const uint3 grid = same ? gridDim : task ? task->grid : uint3{1, 1, 1};
        return (same ? std::string() : task_name(task) + " ") + "thread " + coordinates(x.thread, block) +
               (with_block ? " of block " + coordinates(x.block, grid) : "");
    };
    std::string text = "cuda on the CPU: race ";
    if (same) {
        const bool one_block = a.block == b.block, warp = one_block && a.thread / 32 == b.thread / 32;
        text += "in kernel " + std::string(self->kernel->name);
        if (one_block)
            text += ", block " + coordinates(a.block, gridDim);
        text += ": " + who(a, first, !one_block) + " " + verb(a) + " " + size + at(a) + allocated +
                ",\n    " + who(b, second, !one_block) + " " + verb(b) + (bytes == 1 ? " it" : " them") +
                at(b) + (change ? ", with no atomic operation such as atomicAdd()" : "") +
                (a.atomic != b.atomic  ? ", which is not ordered with an atomic access"
                 : change && one_block ? ""
                 : !one_block          ? ", and nothing orders these blocks"
                 : both                ? ", with no __syncthreads() or atomic operation between"
                 : warp                ? ", with no __syncwarp() or __syncthreads() between"
                                       : ", with no __syncthreads() between") +
                "\n";
    } else if (host) {
        const bool host_first = a.block == the_host;
        const Access &h = host_first ? a : b, &d = host_first ? b : a;
        const Task *const task = host_first ? second : first;
        text += "between the host and a stream: the host " + verb(h) + " " + size + at(h) + allocated +
                ",\n    which " + who(d, task, true) + " " + verb(d) + at(d) +
                ", and the host has not waited for that\n";
    } else {
        const bool dependent = current.overlaps && first && first->stream == second->stream;
        text += (dependent ? "between kernels: " : "between streams: ") + who(a, first, true) + " " +
                verb(a, first) + " " + size + at(a) + allocated + ",\n    " + who(b, second, true) + " " +
                verb(b, second) + (bytes == 1 ? " it" : " them") + at(b) +
                (dependent ? ", and has not called cudaGridDependencySynchronize()\n"
                           : ", and nothing orders the two\n");
    }
    if (later)
        r.one_line.emplace(line_a, text);
    else
        r.show(text);
}

bool report_out_of_bounds(const Access &me, uintptr_t address, size_t bytes) {
    std::string name, allocated;
    intptr_t offset;
    size_t size;
    if (is_shared_memory(address)) {
        const SharedName none{"the launch", (const char *)address, 0}, *nearest = &none;
        uintptr_t least = ~(uintptr_t)0;
        for (const SharedName &n : threads().names) {
            const uintptr_t from = address - (uintptr_t)n.begin; // wraps around for a lower address
            const uintptr_t distance = from < n.bytes ? 0 : std::min(from - n.bytes, -from);
            if (distance < least || (distance == least && n.bytes)) {
                least = distance;
                nearest = &n;
            }
        }
        name = shared_memory(*nearest);
        offset = (intptr_t)(address - (uintptr_t)nearest->begin);
        size = nearest->bytes;
    } else {
        const char *const at = (const char *)address, *const page = (char *)(address & ~(race_page - 1));
        auto m = find_allocation(page);
        if (!m)
            m = find_allocation(page - 1);
        if (!m || m->kind == MemoryKind::registered)
            return false;
        name = name_memory((uintptr_t)m->base, me, allocated);
        offset = at - m->base;
        size = m->size;
    }
    report_one("out of bounds", 0, me, bytes, "",
               ",\n    at offset " + std::to_string(offset) + " of " + name + allocated + ", which has " +
                   std::to_string(size) + " bytes");
    return true;
}

void report_forbidden(const Access &me, const char *what, size_t bytes) {
    report_one("out of bounds", 0, me, bytes, std::string(" of ") + what, "");
}

void report_uninitialized(const Access &me, uintptr_t address, size_t bytes) {
    const unsigned char *const at = (const unsigned char *)address;
    const bool shared = is_shared_memory(address);
    if (shared && copies_to_shared_memory) // such kernels load ahead, and may not use what they load
        return;
    if (fresh_byte() == 0 || (!shared && !current.task) ||
        !std::all_of(at, at + bytes, [](unsigned char b) { return b == fresh_byte(); }))
        return;
    const auto memory = find_allocation(at);
    if (!shared && (!memory || memory->kind != MemoryKind::device))
        return;
    Access read = me; // the first part of an atomic change
    read.atomic = read.write = false;
    std::string allocated;
    const std::string name = name_memory(address, me, allocated);
    report_one("uninitialized memory", me.place, read, bytes, " of " + name,
               allocated + ",\n    which nothing has written", shared);
}

} // namespace cuda_cpu::race

namespace cuda_cpu {

void race_wrong() {
    std::lock_guard lock(race::reports().mutex);
    ++race::reports().shown;
}

#ifdef __wasm__
std::vector<SourceLine> race_source_lines(const std::vector<uintptr_t> &lines) {
    std::vector<SourceLine> found;
    for (uintptr_t line : lines)
        found.push_back({program_invocation_short_name + (".cu:" + std::to_string(line)), false});
    return found;
}
#else
std::vector<SourceLine> race_source_lines(const std::vector<uintptr_t> &addresses) {
    char program[4096];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[std::max<ssize_t>(length, 0)] = 0;
    // addr2line takes addresses relative to the load address for a position-independent executable, and
    // absolute ones for others. A return address is that of the next instruction, so 1 is subtracted.
    static const bool moved = [] {
        const auto type = *(const uint16_t *)(__executable_start + 16); // e_type
        return type == 3;                                               // ET_DYN
    }();
    std::vector<SourceLine> found(addresses.size());
    constexpr size_t at_once = 4000; // addresses in a command, whose length is limited
    for (size_t first = 0; first < addresses.size(); first += at_once) {
        std::string command = std::string("addr2line -a -i -e '") + program + "'";
        for (size_t i = first; i < std::min(addresses.size(), first + at_once); ++i) {
            char text[32];
            snprintf(text, sizeof text, " 0x%zx",
                     (size_t)(addresses[i] - 1 + (moved ? 0 : (uintptr_t)__executable_start)));
            command += text;
        }
        FILE *const pipe = popen((command + " 2>/dev/null").c_str(), "r");
        if (!pipe)
            break;
        char line[4096];
        // addr2line -a -i prints for each address a line 0x…, then the source line of the instruction, and
        // those of the calls that are inlined there, from the inner to the outer one.
        for (size_t next = first; fgets(line, sizeof line, pipe);) {
            line[strcspn(line, " \n")] = 0;
            if (strncmp(line, "0x", 2) == 0) {
                ++next;
                continue;
            }
            // The toolkit's headers (see cucc), the library's sources (see Makefile), the C++ library
            const bool ours = strstr(line, "/cuda_cpu/") || strncmp(line, "cucc/", 5) == 0 ||
                              strncmp(line, "/usr/", 5) == 0 || *line == '?';
            if (next == first || next > found.size() || !found[next - 1].text.empty())
                continue;
            if (ours || strstr(line, ":?") || strstr(line, ":0"))
                found[next - 1].inlined = true;
            else
                found[next - 1].text = base_name(line);
        }
        pclose(pipe);
    }
    return found;
}
#endif

} // namespace cuda_cpu
