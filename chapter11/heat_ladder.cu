// SPDX-License-Identifier: MIT
/*
 * heat_ladder: heat simulation on several GPUs, from halos through the host to stores over NVLink
 *
 * Teaches: Each GPU computes a strip of the plate and needs a halo: copies of its neighbours' rows,
 *          exchanged after each step, or, if the halo is deep, after several. Copies between the GPUs are
 *          faster than copies through the host, and they cost no time while the interior is computed.
 *          Kernels can also store the rows directly into the halo of the neighbour and set a flag there.
 *          Then neither copies nor events are needed: the host only launches kernels.
 * Terms:   halo, peer-to-peer access, NVLink, overlap, event, stream, temporal blocking, acquire, release,
 *          scaling, warp shuffle, double buffering
 * Book:    11.3 (ladder)
 * Rungs:   0 one GPU (the same kernel); 1 through the host (strips of rows, halos copied twice); 2 peer
 *          copies (from GPU to GPU, asynchronous, with events); 3 overlap (edges first, copied while the
 *          interior is computed); 4 peer stores (kernels store into the neighbour's halo); 5 flags (kernels
 *          wait for each other, not the host)
 * Build:   nvcc -o heat_ladder chapter11/heat_ladder.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter11/heat_ladder --size 16384
 * Differs: the initial temperatures are random, and heaters keep theirs also in the last step. Times are
 *          those of the host's clock, from the first call until all GPUs have finished. The column "x book"
 *          compares with one GPU that runs the same kernel.
 * Needs:   gpus=2
 * Limit:   with 12 steps per exchange the instructions, of which those for rows near another GPU are executed
 *          twice; with 1 step the memory bandwidth. In small plates the GPUs wait for each other.
 * Bench:   1024 2048 4096 8192 16384
 * Check:   --size 71 --iterations 9 | --size 132 --iterations 13 | --size 18 --iterations 5
 */
#include "../common/book.h"
#include "../common/bench.h"
#include <cuda/atomic>
#include "gpus.h"       // gpus, device_id[], peer_access
#include "heat_steps.h" // the kernel heat_steps

// ---- the exchange of halos ----

// The GPU above (0) or below (1): what a kernel needs to store the rows of its edge directly into the halo
// there. The pointers to its memory, `out` and `tell`, are those of peer-to-peer access.
struct Neighbour {
    float4 *out;          // row 0 of the plate in its output; NULL: the kernel stores nothing there
    int begin, end;       // the rows of its halo
    unsigned *tell;       // flags in its memory, one per block: the rounds that this GPU has stored
    const unsigned *hear; // flags in the memory of this GPU: the rounds that the neighbour has stored
    unsigned round;       // to wait for
};

// A flag of another GPU: the scope of its accesses is the whole system.
typedef cuda::atomic_ref<unsigned, cuda::thread_scope_system> Flag;

// The blocks at the edge of the strip wait until the halo has arrived. Their columns overlap with those of
// the blocks to the left and to the right. The acquire orders the reads of the halo after the flag.
__device__ static void wait_for_halo(const Neighbour &n) {
    unsigned block = blockIdx.x + threadIdx.x - 1;
    if (n.hear && threadIdx.y == 0 && threadIdx.x < 3 && block < gridDim.x)
        while (Flag(const_cast<unsigned &>(n.hear[block])).load(cuda::memory_order_acquire) < n.round)
            continue;
    __syncthreads();
}

// The barrier and the release order the stores of all threads of the block before the store of the flag.
__device__ static void tell_neighbour(const Neighbour &n) {
    __syncthreads();
    if (n.tell && threadIdx.y == 0 && threadIdx.x == 0)
        Flag(n.tell[blockIdx.x]).store(n.round + 1, cuda::memory_order_release);
}

// The exchange of halos with both neighbours
struct Exchange {
    Neighbour above, below;
    // Calls f for each neighbour whose halo has rows of this block.
    template <class F> __device__ void each_neighbour(F f) const {
        if (blockIdx.y == 0)
            f(above);
        if (blockIdx.y == gridDim.y - 1)
            f(below);
    }
    __device__ void wait(void) const { each_neighbour(wait_for_halo); }
    __device__ void store(int row, long long at, float4 t) const {
        if (above.out && row < above.end)
            above.out[at] = t;
        if (below.out && row >= below.begin)
            below.out[at] = t;
    }
    __device__ void tell(void) const { each_neighbour(tell_neighbour); }
};

// ---- the strip of a GPU ----

const int DEEP = 12; // steps per exchange with deep halos

// The rows from `first` to `end` of the plate, on one device. Its arrays have DEEP more rows on both sides.
struct Strip {
    int device, first, end;
    int at_once[2];             // blocks that the device runs at the same time: of single steps, and of DEEP
    float *start, *buffers[2];  // the initial temperatures, and ping-pong buffers
    unsigned *flags[2];         // set by the neighbours, one for each of their blocks
    float *on_host[2];          // the rows at its edges, on their way through the host
    cudaStream_t stream, edges; // `edges` has the higher priority
    cudaEvent_t done, edges_done, sent;
};

static int size = BENCH_SIZE(16384, 100); // --size, cells per side
static int steps = BENCH_SIZE(96, 13);    // --iterations

// Cells of a row in memory: a multiple of four, for float4.
static size_t pitch(void) {
    return (size + 3) / 4 * 4;
}

static size_t row_bytes(void) {
    return pitch() * sizeof(float);
}

// The address of row y of the plate
static float *row(const Strip &strip, float *buffer, int y) {
    return buffer + (y - strip.first + DEEP) * (long long)pitch();
}

static int depth;                        // steps per exchange: DEEP or 1
static std::vector<Strip> whole, strips; // the whole plate on the first device, and strips on all of them
static std::vector<Strip> *used;         // by the last run
static int last_round;                   // of the last run
static unsigned first_round;             // number of the first round of a run, for flags
static void make_plate(void);
static void free_strips(void);
static float *start, *expected; // host: the plate before and after all steps; heaters have a negative sign
static float *result;           // host: what a rung computed

// The input and the output of a round, which computes up to `depth` steps.
static float *source(const Strip &strip, int round) {
    return round == 0 ? strip.start : strip.buffers[(round + 1) % 2];
}

static float *target(const Strip &strip, int round) {
    return strip.buffers[round % 2];
}

// Calls body(round, steps of the round). Steps that remain after the last whole round are rounds of one step.
template <class Body> static void each_round(std::vector<Strip> &over, Body body) {
    int round = 0;
    for (int s = 0, now; s < steps; s += now) {
        now = steps - s >= depth ? depth : 1;
        body(round++, now);
    }
    used = &over;
    last_round = round - 1;
}

// Calls body(strip, neighbour, side): 0 above, 1 below.
template <class Body> static void each_neighbour(Body body) {
    for (size_t i = 0; i < strips.size(); i++) {
        HANDLE_ERROR(cudaSetDevice(strips[i].device));
        if (i > 0)
            body(strips[i], strips[i - 1], 0);
        if (i < strips.size() - 1)
            body(strips[i], strips[i + 1], 1);
    }
}

// The first row of those that a strip sends to a neighbour: the `depth` rows at that edge.
static int edge_row(const Strip &strip, int side) {
    return side == 0 ? strip.first : strip.end - depth;
}

// Starts one round of the rows from `begin` to `end`.
static void launch(const Strip &strip, int round, int now, int begin, int end, cudaStream_t stream,
                   Exchange exchange = {}) {
    if (begin >= end)
        return;
    auto kernel = now == DEEP ? heat_steps<DEEP, Exchange> : heat_steps<1, Exchange>;
    int margin = (depth + 3) / 4 * 4; // of a band of columns
    float4 *out = (float4 *)row(strip, target(strip, round), 0);
    const float4 *in = (float4 *)row(strip, source(strip, round), 0);
    Rows rows = {out, in, begin, end, size, size, margin};
    dim3 blocks = grid_of(rows, depth, strip.at_once[now == DEEP]);
    kernel<<<blocks, dim3(32, WARPS), 0, stream>>>(rows, exchange);
    HANDLE_LAUNCH();
}

// Rung 0: one GPU.
static void run_one(void) {
    HANDLE_ERROR(cudaSetDevice(whole[0].device));
    each_round(whole, [](int round, int now) { launch(whole[0], round, now, 0, size, whole[0].stream); });
    wait_for_gpus();
}

// Rung 1: the rows go to the host and from there to the neighbour. The host waits for each copy.
static void run_through_host(void) {
    each_round(strips, [](int round, int now) {
        for (Strip &strip : strips) {
            HANDLE_ERROR(cudaSetDevice(strip.device));
            launch(strip, round, now, strip.first, strip.end, 0);
        }
        size_t bytes = depth * row_bytes();
        each_neighbour([&](Strip &strip, Strip &, int side) {
            HANDLE_ERROR(cudaMemcpy(strip.on_host[side],
                                    row(strip, target(strip, round), edge_row(strip, side)), bytes,
                                    cudaMemcpyDeviceToHost));
        });
        each_neighbour([&](Strip &strip, Strip &from, int side) {
            HANDLE_ERROR(cudaMemcpy(row(strip, target(strip, round), edge_row(from, 1 - side)),
                                    from.on_host[1 - side], bytes, cudaMemcpyHostToDevice));
        });
    });
    wait_for_gpus();
}

// Sends the rows at the edges of a strip to its neighbours.
static void send(Strip &strip, Strip &to, int side, int round, cudaStream_t stream) {
    int y = edge_row(strip, side);
    HANDLE_ERROR(cudaMemcpyPeerAsync(row(to, target(to, round), y), to.device,
                                     row(strip, target(strip, round), y), strip.device, depth * row_bytes(),
                                     stream));
}

// Rung 2: asynchronous copies from GPU to GPU. The host enqueues everything; events make a round wait for the
// halos of the one before. When they have arrived, the neighbour has also read its own halo of that round, so
// the next copy may overwrite it.
static void run_peer_copies(void) {
    each_round(strips, [](int round, int now) {
        if (round > 0)
            each_neighbour([](Strip &strip, Strip &from, int) {
                HANDLE_ERROR(cudaStreamWaitEvent(strip.stream, from.sent, 0));
            });
        for (Strip &strip : strips) {
            HANDLE_ERROR(cudaSetDevice(strip.device));
            launch(strip, round, now, strip.first, strip.end, strip.stream);
        }
        each_neighbour(
            [&](Strip &strip, Strip &to, int side) { send(strip, to, side, round, strip.stream); });
        for (Strip &strip : strips)
            HANDLE_ERROR(cudaEventRecord(strip.sent, strip.stream));
    });
    wait_for_gpus();
}

// Rung 3: a second stream computes the rows at the edges first and sends them while the interior is computed.
// Both streams read what both have computed in the round before.
static void run_overlap(void) {
    each_round(strips, [](int round, int now) {
        for (Strip &strip : strips)
            if (round > 0) {
                HANDLE_ERROR(cudaStreamWaitEvent(strip.edges, strip.done, 0));
                HANDLE_ERROR(cudaStreamWaitEvent(strip.stream, strip.edges_done, 0));
            }
        if (round > 0)
            each_neighbour([](Strip &strip, Strip &from, int) {
                HANDLE_ERROR(cudaStreamWaitEvent(strip.edges, from.sent, 0));
            });
        for (Strip &strip : strips) {
            int upper = min_of(strip.first + depth, strip.end), lower = max_of(upper, strip.end - depth);
            HANDLE_ERROR(cudaSetDevice(strip.device));
            launch(strip, round, now, strip.first, upper, strip.edges);
            launch(strip, round, now, lower, strip.end, strip.edges);
            HANDLE_ERROR(cudaEventRecord(strip.edges_done, strip.edges));
            launch(strip, round, now, upper, lower, strip.stream);
            HANDLE_ERROR(cudaEventRecord(strip.done, strip.stream));
        }
        each_neighbour([&](Strip &strip, Strip &to, int side) { send(strip, to, side, round, strip.edges); });
        for (Strip &strip : strips)
            HANDLE_ERROR(cudaEventRecord(strip.sent, strip.edges));
    });
    wait_for_gpus();
}

// Rungs 4 and 5: no copies. Kernels store the rows at the edges into the memory of the neighbour.
static Neighbour neighbour(int i, int side, int round, bool flags) {
    int other = side == 0 ? i - 1 : i + 1;
    Neighbour n = {};
    if (other < 0 || other == (int)strips.size())
        return n;
    n.out = (float4 *)row(strips[other], target(strips[other], round), 0);
    n.begin = edge_row(strips[i], side);
    n.end = n.begin + depth;
    if (flags) {
        n.tell = strips[other].flags[1 - side];
        n.hear = round > 0 ? strips[i].flags[side] : NULL;
        n.round = first_round + round;
    }
    return n;
}

// In rung 4 events order the rounds, as before. In rung 5 no event does: the blocks at an edge wait for
// flags, which the neighbour's blocks set after their stores. The host only enqueues kernels. That cannot
// deadlock, because no kernel waits for one that is launched after it.
static void run_stores(bool flags) {
    each_round(strips, [&](int round, int now) {
        if (round > 0 && !flags)
            each_neighbour([](Strip &strip, Strip &from, int) {
                HANDLE_ERROR(cudaStreamWaitEvent(strip.stream, from.done, 0));
            });
        for (int i = 0; i < (int)strips.size(); i++) {
            Strip &strip = strips[i];
            HANDLE_ERROR(cudaSetDevice(strip.device));
            launch(strip, round, now, strip.first, strip.end, strip.stream,
                   {neighbour(i, 0, round, flags), neighbour(i, 1, round, flags)});
        }
        for (Strip &strip : strips)
            if (!flags)
                HANDLE_ERROR(cudaEventRecord(strip.done, strip.stream));
        if (flags && CPU_BACKEND) // whose devices need not work at the same time
            wait_for_gpus();
    });
    first_round += flags ? last_round + 1 : 0;
    wait_for_gpus();
}

// The limits: a copy within the memory of each GPU, and the arithmetic, on all at once.
static void run_copies(void) {
    for (Strip &strip : strips) {
        HANDLE_ERROR(cudaSetDevice(strip.device));
        size_t bytes = (strip.end - strip.first) * row_bytes();
        HANDLE_ERROR(cudaMemcpyAsync(strip.buffers[1], strip.buffers[0], bytes, cudaMemcpyDeviceToDevice,
                                     strip.stream));
    }
    wait_for_gpus();
}

static void run_arithmetic(void) {
    for (Strip &strip : strips) {
        HANDLE_ERROR(cudaSetDevice(strip.device));
        bench_fma(strip.buffers[1], strip.stream);
    }
    wait_for_gpus();
}

static const char *rows_needed(void) {
    for (Strip &strip : strips)
        if (strips.size() > 1 && strip.end - strip.first < depth)
            return depth == 1 ? "needs a row on each GPU" : "needs 12 rows on each GPU";
    return NULL;
}

static const char *peers_needed(void) {
    return rows_needed() ? rows_needed() : peer_access ? NULL : "needs peer access";
}

static Rung rungs[] = {
    {"one GPU", "the same kernel", run_one},
    {"through the host", "strips of rows, halos copied twice", run_through_host, RUNG, 0, 0, rows_needed},
    {"peer copies", "from GPU to GPU, asynchronous, with events", run_peer_copies, RUNG, 0, 0, rows_needed},
    {"overlap", "edges first, copied while the interior is computed", run_overlap, RUNG, 0, 0, rows_needed},
    {"peer stores", "kernels store into the neighbour's halo", [] { run_stores(false); }, RUNG, 0, 0,
     peers_needed},
    {"flags", "kernels wait for each other, not the host", [] { run_stores(true); }, RUNG, 0, 0,
     peers_needed},
    {"copy of the plate", "each cell is read and written once", run_copies, LIMIT},
    // For four cells pairs() has four additions and sums() five.
    {"arithmetic", "nine operations for four cells and a step", run_arithmetic, LIMIT},
};

int main(int argc, char **argv) {
    settings(argc, argv);
    make_plate();
    for (int table = 0; table < 2; table++) {
        depth = table == 0 ? DEEP : 1;
        bench.data = table == 0 ? "12 steps per exchange" : "1 step per exchange";
        bench_run(rungs);
    }
    free_strips();
    return bench_finish({start, expected, result});
}

// ---------------------------------------------------------------------------------------- check

static void make_reference(float *spare) {
    const size_t n = size;
    const float *in = start;
    for (int s = 0; s < steps; s++) {
        float *out = (steps - s) % 2 ? expected : spare;
        in_threads(n * n, [=](size_t begin, size_t end) { // rows that begin in this range
            reference_rows(in, out, n, n, (begin + n - 1) / n, (end + n - 1) / n);
        });
        in = out;
    }
}

static Strip make_strip(int device, int first, int end) {
    Strip strip = {};
    strip.device = device;
    strip.first = first;
    strip.end = end;
    size_t rows = end - first + 2 * DEEP, bytes = rows * row_bytes();
    Rows whole = {NULL, NULL, 0, size, size, size, DEEP};
    size_t blocks = bands_of(whole) * sizeof(unsigned), width = size * sizeof(float);
    int from = max_of(first - DEEP, 0), to = min_of(end + DEEP, size);
    int least, greatest;
    HANDLE_ERROR(cudaSetDevice(device));
    strip.at_once[0] = blocks_at_once<1, Exchange>();
    strip.at_once[1] = blocks_at_once<DEEP, Exchange>();
    bench_malloc(&strip.start, bytes);
    HANDLE_ERROR(cudaMemset(strip.start, 0, bytes)); // also the cells that fill up the last float4 of a row
    HANDLE_ERROR(cudaMemcpy2D(row(strip, strip.start, from), row_bytes(), start + (size_t)from * size, width,
                              width, to - from, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    HANDLE_ERROR(cudaStreamCreateWithPriority(&strip.stream, cudaStreamNonBlocking, least));
    HANDLE_ERROR(cudaStreamCreateWithPriority(&strip.edges, cudaStreamNonBlocking, greatest));
    for (cudaEvent_t *event : {&strip.done, &strip.edges_done, &strip.sent})
        HANDLE_ERROR(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    for (int i = 0; i < 2; i++) {
        bench_malloc(&strip.buffers[i], bytes);
        bench_malloc(&strip.flags[i], blocks);
        HANDLE_ERROR(cudaMemset(strip.flags[i], 0, blocks));
        bench_malloc_host(&strip.on_host[i], DEEP * row_bytes(), cudaHostAllocPortable);
    }
    return strip;
}

static void free_strip(const Strip &strip) {
    HANDLE_ERROR(cudaSetDevice(strip.device));
    HANDLE_ERROR(cudaStreamDestroy(strip.stream));
    HANDLE_ERROR(cudaStreamDestroy(strip.edges));
    for (cudaEvent_t event : {strip.done, strip.edges_done, strip.sent})
        HANDLE_ERROR(cudaEventDestroy(event));
}

static size_t part[MAX_GPUS]; // rows of each strip

void settings(int argc, char **argv) {
    size_t side = size;
    parse_options(argc, argv, "Heat simulation on several devices.", LADDER,
                  {OPTION_SIZE("size", &side, 1, 46340, "cells a side"),
                   OPTION_INT("iterations", &steps, 1, 10000, "steps"), OPTION_GPUS, OPTION_NO_PEER});
    choose_gpus();
    size = side;
    gpus = min_of(gpus, size);
    size_t plate = (size_t)size * row_bytes();
    for (int i = gpus - 1; i >= 0; i--) {
        HANDLE_ERROR(cudaSetDevice(device_id[i]));
        require_memory(4 * plate, 4 * ((size / gpus + 1 + 2 * DEEP) * row_bytes() + (i == 0 ? plate : 0)));
    }
    bench.title = std::to_string(size) + " x " + std::to_string(size) + " cells, " + std::to_string(steps) +
                  " steps, " + std::to_string(gpus) + " GPUs";
    bench.size = size;
    bench.work = 2.0 * size * size * sizeof(float) * steps; // each step reads and writes each cell
    std::end(rungs)[-1].work = gpus * BENCH_FMAS / 9 * 4 * 2 * sizeof(float); // the arithmetic
    bench.devices = name_gpus;
    bench.host_clock = true;
    bench.left = [](const std::string &name) {
        std::vector<BenchLeft> left;
        for (const Strip &strip : strips)
            if (name == "copy of the plate")
                left.push_back({strip.buffers[1], strip.buffers[0], (strip.end - strip.first) * row_bytes()});
        return left;
    };
}

// Load balancing: divides the rows so that all strips take the same estimated time. Rows of heaters count 1.7
// times, since the kernel takes another path there. No strip is empty.
static void divide_rows(void) {
    std::vector<double> cost(size + 1, 0.0); // of all rows up to this one
    for (int y = 0; y < size; y++) {
        size_t heaters = std::count_if(start + (size_t)y * size, start + (size_t)(y + 1) * size,
                                       [](float t) { return t < 0; });
        cost[y + 1] = cost[y] + 1 + 0.7 * heaters / size;
    }
    for (int i = 0, first = 0; i < gpus; first += part[i++]) {
        int last = std::lower_bound(cost.begin(), cost.end(), cost[size] * (i + 1) / gpus) - cost.begin();
        part[i] = (i == gpus - 1 ? size : std::clamp(last, first + 1, size - (gpus - 1 - i))) - first;
    }
}

// Random temperatures, and those of the heaters; the reference; and what the devices need.
static void make_plate(void) {
    size_t cells = (size_t)size * size;
    start = host_array<float>(cells);
    expected = host_array<float>(cells);
    result = host_array<float>(cells);
    place_heaters(expected, size);
    random_floats(start, cells, 1);
    for (size_t i = 0; i < cells; i++)
        start[i] = expected[i] != 0 ? -expected[i] : start[i];
    make_reference(result);
    divide_rows();
    enable_peer_access();
    whole.push_back(make_strip(device_id[0], 0, size));
    for (int i = 0, first = 0; i < gpus; first += part[i++])
        strips.push_back(make_strip(device_id[i], first, first + part[i]));
    wait_for_gpus();
}

static void free_strips(void) {
    for (auto set : {&whole, &strips})
        for (Strip &strip : *set)
            free_strip(strip);
}

static void poison(void) {
    for (auto set : {&whole, &strips})
        for (Strip &strip : *set)
            for (float *buffer : strip.buffers) {
                HANDLE_ERROR(cudaSetDevice(strip.device));
                HANDLE_ERROR(cudaMemset(buffer, 0xff, (strip.end - strip.first + 2 * DEEP) * row_bytes()));
            }
    wait_for_gpus();
}

// Without flags rung 5 has a race condition, but its result may still be right. So the flags are compared
// too: each must be equal to the number of the next round.
static bool check_flags(void) {
    int wrong = 0;
    each_neighbour([&](Strip &strip, Strip &, int side) {
        unsigned flag; // of the first block
        HANDLE_ERROR(cudaMemcpy(&flag, strip.flags[side], sizeof(flag), cudaMemcpyDeviceToHost));
        wrong += flag != first_round;
    });
    return check_value("flags without the number of the next round", wrong, 0, 0);
}

// For check_waiting: all blocks but two have told when these two, number `late` of the first and of the last
// row, tell. Before that nobody may have told in their place, and none of the three blocks that need their
// flag may end its wait. found: how many blocks have told, and how many mistakes there are. A cooperative
// launch, because blocks wait for later ones.
__global__ void meet(Exchange e, unsigned late, unsigned *found) {
    bool first = threadIdx.x + threadIdx.y == 0, edge = blockIdx.y != 1;
    const unsigned *flags = blockIdx.y == 0 ? e.above.hear : e.below.hear;
    auto lacks = [&](unsigned x) { return Flag(const_cast<unsigned &>(flags[x])).load() == 0; };
    if (first && edge && blockIdx.x == late) {
        while (atomicAdd(&found[0], 0) < gridDim.x * gridDim.y - 2)
            __nanosleep(20);
        for (int i = 0; i < 100; i++)
            __nanosleep(1000);
        atomicAdd(&found[1], !lacks(late));
    }
    e.tell();
    if (first && !(edge && blockIdx.x == late))
        atomicAdd(&found[0], 1);
    e.wait();
    for (unsigned x = max(blockIdx.x, 1) - 1; first && edge && x < min(blockIdx.x + 2, gridDim.x); x++)
        atomicAdd(&found[1], lacks(x));
}

// Whether the blocks at an edge, and no others, tell the neighbour, and wait for each flag that they need. In
// a run the rows may have arrived in time without that.
static bool check_waiting(void) {
    HANDLE_ERROR(cudaSetDevice(device_id[0]));
    DeviceArray<unsigned> dev(8); // three flags above, three below, and what meet() finds
    unsigned mistakes = 0;
    for (unsigned late = 0; late < 3; late++) {
        HANDLE_ERROR(cudaMemset(dev, 0, 8 * sizeof(unsigned)));
        Exchange e = {{NULL, 0, 0, dev, dev, 1}, {NULL, 0, 0, dev + 3, dev + 3, 1}};
        unsigned *found = dev + 6;
        void *arguments[] = {&e, &late, &found};
        HANDLE_ERROR(cudaLaunchCooperativeKernel(meet, dim3(3, 3), dim3(32, WARPS), arguments, 0, 0));
        mistakes += HostArray<unsigned>(dev, 8)[7];
    }
    return check_value("blocks that wait or tell too early", mistakes, 0, 0);
}

static bool check(const char *name, BenchError *) {
    size_t width = size * sizeof(float);
    for (Strip &strip : *used)
        HANDLE_ERROR(cudaMemcpy2D(result + (size_t)strip.first * size, width,
                                  row(strip, target(strip, last_round), strip.first), row_bytes(), width,
                                  strip.end - strip.first, cudaMemcpyDeviceToHost));
    bool ok = check_ints(name, (int *)result, (int *)expected, (size_t)size * size); // bit for bit
    return ok && (strcmp(name, "flags") != 0 || (check_flags() && check_waiting()));
}
