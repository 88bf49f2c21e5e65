// SPDX-License-Identifier: MIT
// Combines the recorded threads of a block (trace.h) into steps of its warps, with divergence and
// reconvergence, and counts the bank conflicts of shared memory and the sectors of global memory.
#include "memory.h"
#include "trace.h"

namespace cuda_cpu {

// The memory of an address. `name`, if not null, becomes the array's name, or where it was allocated.
static TraceMemory memory_of(const BlockTrace &b, uint64_t address, std::string *name = nullptr) {
    static thread_local std::optional<Allocation> found; // the last one, in which the next address may be too
    const char *const p = (const char *)address;
    if (b.arena && address - (uint64_t)b.arena < arena_size) {
        for (const SharedName &a : b.arrays)
            if (name && address - (uint64_t)a.begin < a.bytes)
                *name = strcmp(a.name, "the launch") == 0 ? "dynamic shared memory" : a.name;
        return TraceMemory::shared;
    }
    if (!found || p < found->base || p >= found->base + found->size) {
        if (const SymbolSection *const section = symbol_section(p))
            return section->constant ? TraceMemory::constant : TraceMemory::global;
        if (!(found = find_allocation(p)))
            return TraceMemory::none;
    }
    if (name && found->site.file)
        *name = "allocated at " + place(found->site);
    return TraceMemory::global;
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

// The number of aligned pieces of `size` bytes, such as sectors, that an access of a warp touches
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
struct ControlFlow {
    std::vector<TraceEvent> nodes;
    std::vector<std::set<unsigned>> after;
    // For each node its immediate post-dominator, where lanes that diverge at the node reconverge: the first
    // later node that is on every path to the end. Threads that return early are ignored. -1: none.
    std::vector<int> join;

    // Replaces `place` in the events of the block by the number of the node.
    explicit ControlFlow(BlockTrace &b);

  private:
    void find_joins(unsigned end);
};

ControlFlow::ControlFlow(BlockTrace &b) {
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
void ControlFlow::find_joins(unsigned end) {
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

// Combines the threads of a warp into steps, by the rule of GPUs before Volta: where lanes diverge, the paths
// are executed one after the other up to the immediate post-dominator, where the lanes reconverge.
class WarpJoin {
  public:
    using Accesses = std::map<std::tuple<uint32_t, EventKind>, TraceAccess>;

    WarpJoin(Trace &trace, unsigned number, const ControlFlow &flow, Accesses &accesses)
        : trace(trace), b(*trace.recorded), flow(flow), accesses(accesses), warp(trace.warps[number]),
          number(number), lanes(std::min(32u, (unsigned)b.threads.size() - number * 32)) {}

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
    const ControlFlow &flow;
    Accesses &accesses;
    TraceWarp &warp;
    const unsigned number, lanes;
    size_t at[32] = {};
    std::vector<uint32_t> stops;
};

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
    const std::string &line = trace.lines.at(like.place);
    const bool memory = like.kind != EventKind::code;
    TraceStep *const last = warp.steps.empty() ? nullptr : &warp.steps.back();
    if (last && last->mask == mask && last->phase == warp.barriers && like.place >= last->place &&
        trace.lines.at(last->place) == line) {
        last->place = like.place;
        last->memory |= memory;
    } else
        warp.steps.push_back({mask, warp.barriers, like.place, memory});
    if (!memory)
        return;
    const uint64_t first = address[__builtin_ctz(mask)];
    TraceAccess &a = accesses[{like.place, like.kind}];
    std::string object;
    const TraceMemory kind = memory_of(b, first, a.count ? nullptr : &object);
    if (kind == TraceMemory::shared) { // as if each array began at bank 0, like the first one on a GPU
        uint64_t begin = (uint64_t)b.arena;
        for (const SharedName &array : b.arrays)
            if (first - (uint64_t)array.begin < array.bytes)
                begin = (uint64_t)array.begin;
        for (uint64_t &one : address)
            one -= begin;
    }
    if (a.count == 0) {
        a.object = object;
        a.line = line;
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

void Trace::find_steps() {
    BlockTrace &b = *recorded;
    std::vector<uintptr_t> places;
    for (const BlockTrace::Thread &thread : b.threads)
        for (const TraceEvent &e : thread.events)
            if (e.kind != EventKind::barrier)
                places.push_back(e.place);
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    const std::vector<SourceLine> found = race_source_lines(places);
    std::set<uint32_t> inlined;
    for (size_t i = 0; i < places.size(); ++i)
        if (!found[i].text.empty()) { // otherwise it is code of the back end
            lines[(uint32_t)places[i]] = found[i].text;
            if (found[i].inlined)
                inlined.insert((uint32_t)places[i]);
        }
    // Keeps the events of the program's own code and the accesses to shared, global and constant memory.
    for (BlockTrace::Thread &thread : b.threads) {
        std::vector<TraceEvent> &all = thread.events;
        all.erase(std::remove_if(all.begin(), all.end(),
                                 [&](const TraceEvent &e) {
                                     return e.kind == EventKind::barrier ? false
                                            : !lines.count(e.place)      ? true
                                            : e.kind == EventKind::code
                                                ? inlined.count(e.place) > 0
                                                : memory_of(b, e.address) == TraceMemory::none;
                                 }),
                  all.end());
    }
    std::map<std::tuple<uint32_t, EventKind>, TraceAccess> accesses;
    const ControlFlow flow(b);
    warps.resize((b.threads.size() + 31) / 32);
    for (unsigned w = 0; w < warps.size(); ++w)
        WarpJoin(*this, w, flow, accesses).run();
    for (const auto &[key, access] : accesses)
        this->accesses.push_back(access);
    const auto number = [](const TraceAccess &a) { return atoi(a.line.c_str() + a.line.rfind(':') + 1); };
    std::stable_sort(this->accesses.begin(), this->accesses.end(),
                     [&](const TraceAccess &x, const TraceAccess &y) { return number(x) < number(y); });
}

} // namespace cuda_cpu
