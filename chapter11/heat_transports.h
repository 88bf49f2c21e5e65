// SPDX-License-Identifier: MIT
// For heat_mpi: the strip of the plate that belongs to a rank, and four transports for the exchange of halos
// with the ranks above and below. Below the line: allocation, the choice of transports and which are
// available, the times of steps and exchanges, and the table of these times.
#ifndef CHAPTER11_HEAT_TRANSPORTS_H
#define CHAPTER11_HEAT_TRANSPORTS_H

#include <algorithm>
#include <string>
#include <vector>
#include "../common/book.h"
#include "ranks.h" // MPI
#if defined(OPEN_MPI)
#include <mpi-ext.h> // MPIX_Query_cuda_support
#endif

// The rows from `first` to `end` of the plate. The buffers have `k` more rows on both sides, the halos.
// Side 0 is above the strip, side 1 below.
struct Strip {
    int first, end, width, height, k; // width and height of the plate; rows of a halo
    float *now, *next;            // ping-pong buffers: the newest temperatures, and those of the next step
    int neighbour[2];             // ranks; MPI_PROC_NULL at the edge of the plate
    cudaStream_t interior, edges; // `edges` has the higher priority
    cudaEvent_t interior_done, edges_done;
};

// The first row of a rank. For example, 10 rows are divided among 3 ranks into 3, 3 and 4.
static int first_row(int of_rank, int height) {
    return (long long)height * of_rank / ranks;
}

// Cells of a row in memory: a multiple of four, for float4
__host__ __device__ static inline size_t pitch_of(const Strip &strip) {
    return (strip.width + 3) / 4 * 4;
}

static inline size_t halo_cells(const Strip &strip) {
    return strip.k * pitch_of(strip);
}

static inline size_t buffer_bytes(const Strip &strip) {
    return (strip.end - strip.first + 2 * strip.k) * pitch_of(strip) * sizeof(float);
}

// The address of row y of the plate
__host__ __device__ static inline float *row(const Strip &strip, float *buffer, int y) {
    return buffer + (y - strip.first + strip.k) * (long long)pitch_of(strip);
}

// edge(): the rows at this side of the strip, which the neighbour needs as its halo. halo(): the rows that
// this rank receives from that neighbour.
static inline float *edge(const Strip &strip, int side) {
    return row(strip, strip.now, side == 0 ? strip.first : strip.end - strip.k);
}

static inline float *halo(const Strip &strip, int side) {
    return row(strip, strip.now, side == 0 ? strip.first - strip.k : strip.end);
}

// Calls body(side) for each side that has a neighbour.
template <class Body> static void each_side(const Strip &strip, Body body) {
    for (int side = 0; side < 2; side++)
        if (strip.neighbour[side] != MPI_PROC_NULL)
            body(side);
}

// Sends out[side] to both neighbours and receives in[side] from them. Non-blocking calls start all four
// messages, which avoids deadlock and serialization. With MPI_PROC_NULL the calls do nothing.
static void exchange_messages(const Strip &strip, float *const out[2], float *const in[2], size_t cells) {
    MPI_Request requests[4];
    for (int side = 0; side < 2; side++) {
        HANDLE_MPI(
            MPI_Irecv(in[side], cells, MPI_FLOAT, strip.neighbour[side], 0, MPI_COMM_WORLD, &requests[side]));
        HANDLE_MPI(MPI_Isend(out[side], cells, MPI_FLOAT, strip.neighbour[side], 0, MPI_COMM_WORLD,
                             &requests[2 + side]));
    }
    HANDLE_MPI(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
}

// Events in the streams `edges` and `interior`, for the time in which both work
enum Mark { EXCHANGE_BEGINS, EXCHANGE_ENDS, INTERIOR_BEGINS, INTERIOR_ENDS, MARKS };
static void mark(Mark what, cudaStream_t stream);

// An exchange is called after the kernels of the edges have been enqueued in the stream `edges`. Later work
// in that stream finds the halos received. Meanwhile the kernel of the interior runs in the other stream.

// ---- host: copies to pinned memory, and messages of MPI from there ----

static float *pinned_out[2], *pinned_in[2];

static void exchange_host(Strip &strip) {
    size_t bytes = halo_cells(strip) * sizeof(float);
    each_side(strip, [&](int side) {
        HANDLE_ERROR(
            cudaMemcpyAsync(pinned_out[side], edge(strip, side), bytes, cudaMemcpyDeviceToHost, strip.edges));
    });
    HANDLE_ERROR(cudaStreamSynchronize(strip.edges));
    exchange_messages(strip, pinned_out, pinned_in, halo_cells(strip));
    each_side(strip, [&](int side) {
        HANDLE_ERROR(
            cudaMemcpyAsync(halo(strip, side), pinned_in[side], bytes, cudaMemcpyHostToDevice, strip.edges));
    });
}

// ---- cuda-aware: device pointers are passed to MPI, which chooses how to copy ----

static void exchange_cuda_aware(Strip &strip) {
    float *out[2] = {edge(strip, 0), edge(strip, 1)}, *in[2] = {halo(strip, 0), halo(strip, 1)};
    HANDLE_ERROR(cudaStreamSynchronize(strip.edges)); // MPI does not use streams
    exchange_messages(strip, out, in, halo_cells(strip));
}

// ---- nccl: sends and receives are enqueued in the stream, so the host does not wait ----

#ifdef HAVE_NCCL
static ncclComm_t nccl; // the communicator of NCCL: all ranks

static void exchange_nccl(Strip &strip) {
    HANDLE_NCCL(ncclGroupStart()); // a group: all four messages are one kernel
    each_side(strip, [&](int side) {
        HANDLE_NCCL(ncclSend(edge(strip, side), halo_cells(strip), ncclFloat, strip.neighbour[side], nccl,
                             strip.edges));
        HANDLE_NCCL(ncclRecv(halo(strip, side), halo_cells(strip), ncclFloat, strip.neighbour[side], nccl,
                             strip.edges));
    });
    HANDLE_NCCL(ncclGroupEnd());
}
#else
static void exchange_nccl(Strip &) {}
#endif

// ---- peer: copies into memory of the neighbour's process (CUDA IPC) ----

// `received` is the buffer into which the neighbours copy. It is double-buffered: successive exchanges use
// its two slots alternately. When a neighbour writes to a slot again, two exchanges later, the slot has been
// copied to the halo: the exchange between them sent edges that were computed from that halo.
static float *received, *received_by[2];   // of this rank, and of its neighbours
static cudaEvent_t sent[2], sent_by[2][2]; // for each slot: of this rank, and of the neighbours
static unsigned exchanges;

static float *slot_of(const Strip &strip, float *memory, int side, int slot) {
    return memory + (2 * side + slot) * halo_cells(strip);
}

static void exchange_peer(Strip &strip) {
    int slot = exchanges++ % 2;
    size_t bytes = halo_cells(strip) * sizeof(float);
    each_side(strip, [&](int side) {
        HANDLE_ERROR(cudaMemcpyAsync(slot_of(strip, received_by[side], 1 - side, slot), edge(strip, side),
                                     bytes, cudaMemcpyDeviceToDevice, strip.edges));
    });
    HANDLE_ERROR(cudaEventRecord(sent[slot], strip.edges));
    // A process may wait for an event of another process only after that process has called cudaEventRecord.
    // The empty message says that it has. The host does not wait for the copies.
    float *nothing[2] = {NULL, NULL};
    exchange_messages(strip, nothing, nothing, 0);
    each_side(strip, [&](int side) {
        HANDLE_ERROR(cudaStreamWaitEvent(strip.edges, sent_by[side][slot], 0));
        HANDLE_ERROR(cudaMemcpyAsync(halo(strip, side), slot_of(strip, received, side, slot), bytes,
                                     cudaMemcpyDeviceToDevice, strip.edges));
    });
}

// ---------------------------------------------------------------------------------------- proof

static Strip make_strip(int width, int height, int k) {
    Strip strip = {};
    strip.width = width;
    strip.height = height;
    strip.first = first_row(rank, height);
    strip.end = first_row(rank + 1, height);
    strip.k = k;
    strip.neighbour[0] = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    strip.neighbour[1] = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
    HANDLE_ERROR(cudaMalloc(&strip.now, buffer_bytes(strip)));
    HANDLE_ERROR(cudaMalloc(&strip.next, buffer_bytes(strip)));
    int least, greatest;
    HANDLE_ERROR(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    HANDLE_ERROR(cudaStreamCreateWithPriority(&strip.interior, cudaStreamNonBlocking, least));
    HANDLE_ERROR(cudaStreamCreateWithPriority(&strip.edges, cudaStreamNonBlocking, greatest));
    HANDLE_ERROR(cudaEventCreateWithFlags(&strip.interior_done, cudaEventDisableTiming));
    HANDLE_ERROR(cudaEventCreateWithFlags(&strip.edges_done, cudaEventDisableTiming));
    return strip;
}

static void free_strip(const Strip &strip) {
    HANDLE_ERROR(cudaFree(strip.now));
    HANDLE_ERROR(cudaFree(strip.next));
    HANDLE_ERROR(cudaStreamDestroy(strip.interior));
    HANDLE_ERROR(cudaStreamDestroy(strip.edges));
    HANDLE_ERROR(cudaEventDestroy(strip.interior_done));
    HANDLE_ERROR(cudaEventDestroy(strip.edges_done));
}

// open() returns NULL, or on all ranks the same reason why one of them cannot use the transport. close()
// frees what open() has allocated, also after a failure.
struct Transport {
    const char *name;
    void (*exchange)(Strip &strip);
    const char *(*open)(const Strip &strip);
    void (*close)(const Strip &strip);
};

// Returns the error message of the lowest rank that has one, on all ranks; or NULL if no rank has one.
static const char *problem_of_any(const char *problem) {
    static char text[512];
    int mine = problem ? rank : ranks, lowest;
    HANDLE_MPI(MPI_Allreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    if (lowest == ranks)
        return NULL;
    if (rank == lowest && problem != text)
        snprintf(text, sizeof(text), "%s", problem);
    HANDLE_MPI(MPI_Bcast(text, sizeof(text), MPI_CHAR, lowest, MPI_COMM_WORLD));
    return text;
}

static const char *open_host(const Strip &strip) {
    for (int side = 0; side < 2; side++) {
        HANDLE_ERROR(cudaMallocHost(&pinned_out[side], halo_cells(strip) * sizeof(float)));
        HANDLE_ERROR(cudaMallocHost(&pinned_in[side], halo_cells(strip) * sizeof(float)));
    }
    return NULL;
}

static void close_host(const Strip &) {
    for (int side = 0; side < 2; side++) {
        HANDLE_ERROR(cudaFreeHost(pinned_out[side]));
        HANDLE_ERROR(cudaFreeHost(pinned_in[side]));
    }
}

static const char *open_cuda_aware(const Strip &) {
    const char *problem = "this MPI library has no query for CUDA support";
#ifdef MPIX_CUDA_AWARE_SUPPORT
    problem = MPIX_Query_cuda_support() ? NULL : "this MPI library is built without CUDA";
#endif
    return problem_of_any(CPU_BACKEND ? "needs GPUs" : problem);
}

static void close_cuda_aware(const Strip &) {}

static const char *open_nccl(const Strip &) {
#ifdef HAVE_NCCL
    if (devices_shared)
        return "NCCL needs a GPU for each rank";
    ncclUniqueId id;
    if (rank == 0)
        HANDLE_NCCL(ncclGetUniqueId(&id));
    HANDLE_MPI(MPI_Bcast(&id, sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD));
    HANDLE_NCCL(ncclCommInitRank(&nccl, ranks, id, rank));
    return NULL;
#else
    return "this build has no NCCL";
#endif
}

static void close_nccl(const Strip &) {
#ifdef HAVE_NCCL
    if (nccl)
        HANDLE_NCCL(ncclCommDestroy(nccl));
    nccl = NULL;
#endif
}

// The handles that a rank sends to its neighbours, so that they can open its memory and its events
struct Handles {
    cudaIpcMemHandle_t received;
    cudaIpcEventHandle_t sent[2];
};

static const char *open_peer(const Strip &strip) {
    if (CPU_BACKEND)
        return "needs GPUs";
    Handles mine, of[2];
    HANDLE_ERROR(cudaMalloc(&received, 4 * halo_cells(strip) * sizeof(float)));
    for (int slot = 0; slot < 2; slot++)
        HANDLE_ERROR(cudaEventCreateWithFlags(&sent[slot], cudaEventDisableTiming | cudaEventInterprocess));
    cudaError_t error = cudaIpcGetMemHandle(&mine.received, received);
    for (int slot = 0; slot < 2 && error == cudaSuccess; slot++)
        error = cudaIpcGetEventHandle(&mine.sent[slot], sent[slot]);
    const char *problem = ranks_of_node < ranks ? "the ranks are on several nodes" : NULL;
    if (!problem && error != cudaSuccess)
        problem = cudaGetErrorString(error);
    if ((problem = problem_of_any(problem)))
        return problem;

    const int bytes = sizeof(Handles);
    for (int side = 0; side < 2; side++) // sends in one direction, receives from the other one
        HANDLE_MPI(MPI_Sendrecv(&mine, bytes, MPI_BYTE, strip.neighbour[side], 0, &of[1 - side], bytes,
                                MPI_BYTE, strip.neighbour[1 - side], 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    each_side(strip, [&](int side) {
        if (error == cudaSuccess)
            error = cudaIpcOpenMemHandle((void **)&received_by[side], of[side].received,
                                         cudaIpcMemLazyEnablePeerAccess);
        for (int slot = 0; slot < 2 && error == cudaSuccess; slot++)
            error = cudaIpcOpenEventHandle(&sent_by[side][slot], of[side].sent[slot]);
    });
    return problem_of_any(error == cudaSuccess ? NULL : cudaGetErrorString(error));
}

static void close_peer(const Strip &strip) {
    if (!received)
        return;
    cudaGetLastError(); // an error of open_peer, which the next launch must not report
    each_side(strip, [&](int side) {
        if (received_by[side])
            HANDLE_ERROR(cudaIpcCloseMemHandle(received_by[side]));
        received_by[side] = NULL;
        for (cudaEvent_t &event : sent_by[side]) {
            if (event)
                HANDLE_ERROR(cudaEventDestroy(event));
            event = NULL;
        }
    });
    HANDLE_MPI(MPI_Barrier(MPI_COMM_WORLD)); // the neighbours have closed this rank's memory too
    for (cudaEvent_t event : sent)
        HANDLE_ERROR(cudaEventDestroy(event));
    HANDLE_ERROR(cudaFree(received));
    received = NULL;
}

static const Transport transports[] = {
    {"host", exchange_host, open_host, close_host},
    {"cuda-aware", exchange_cuda_aware, open_cuda_aware, close_cuda_aware},
    {"nccl", exchange_nccl, open_nccl, close_nccl},
    {"peer", exchange_peer, open_peer, close_peer},
};

static const int ALL = std::size(transports);
static int chosen = ALL; // --transport

// Opens a transport, if it is chosen and available. Returns the same on all ranks. A transport that is not
// available is skipped, or ends the program if it is the only one chosen. One rank exchanges no halos, so it
// uses the first transport only.
static bool open_transport(const Strip &strip, const Transport &transport) {
    int index = &transport - transports;
    if (ranks == 1 ? index > 0 : chosen != ALL && chosen != index)
        return false;
    const char *problem = transport.open(strip);
    if (problem && rank == 0 && chosen == index)
        quit(EXIT_WAIVED, "--transport %s: %s", transport.name, problem);
    if (problem && rank == 0)
        printf("%-12s skipped: %s\n", transport.name, problem);
    if (problem)
        transport.close(strip);
    return !problem;
}

// ---- when exchanges and kernels run ----

// Events in the two streams, of the first rounds of a run
const int SAMPLES = 64;
static cudaEvent_t marks[SAMPLES][MARKS];
static int sampled; // rounds

static void mark(Mark what, cudaStream_t stream) {
    if (sampled == SAMPLES)
        return;
    if (!marks[sampled][what])
        HANDLE_ERROR(cudaEventCreate(&marks[sampled][what]));
    HANDLE_ERROR(cudaEventRecord(marks[sampled][what], stream));
    sampled += what == EXCHANGE_ENDS;
}

// The time of a mark, in milliseconds since the first mark
static float mark_ms(int round, Mark what) {
    float ms;
    HANDLE_ERROR(cudaEventElapsedTime(&ms, marks[0][INTERIOR_BEGINS], marks[round][what]));
    return ms;
}

static void free_marks(void) {
    for (auto &round : marks)
        for (cudaEvent_t &event : round) {
            if (event)
                HANDLE_ERROR(cudaEventDestroy(event));
            event = NULL;
        }
}

// The mean time of an exchange in milliseconds, and the share of that time in which the kernel of the
// interior runs; of all ranks.
static void exchange_times(double *ms, double *overlap) {
    double sums[] = {0, 0, (double)sampled}, of_all[3];
    for (int i = 0; i < sampled; i++) {
        float begin = mark_ms(i, EXCHANGE_BEGINS), end = mark_ms(i, EXCHANGE_ENDS);
        sums[0] += end - begin;
        sums[1] +=
            fmaxf(0, fminf(end, mark_ms(i, INTERIOR_ENDS)) - fmaxf(begin, mark_ms(i, INTERIOR_BEGINS)));
    }
    HANDLE_MPI(MPI_Allreduce(sums, of_all, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    *ms = of_all[0] / of_all[2];
    *overlap = of_all[1] / of_all[0];
}

// One character for each part of the time in which rank 0 computes its second, third and fourth round
static void draw_timeline(void) {
    const int rounds = min_of(sampled - 1, 3), width = 80;
    const struct {
        const char *name;
        Mark begin, end;
    } rows[] = {{"exchange", EXCHANGE_BEGINS, EXCHANGE_ENDS}, {"interior", INTERIOR_BEGINS, INTERIOR_ENDS}};
    if (rounds < 1)
        return;
    float end = fmaxf(mark_ms(rounds, EXCHANGE_ENDS), mark_ms(rounds, INTERIOR_ENDS)),
          begin = mark_ms(1, INTERIOR_BEGINS);
    for (auto &of : rows) {
        std::string line(width, ' ');
        for (int i = 1; i <= rounds; i++) {
            int from = (mark_ms(i, of.begin) - begin) / (end - begin) * width;
            int to = (mark_ms(i, of.end) - begin) / (end - begin) * width;
            for (int x = from; x == from || x < to; x++)
                line[min_of(x, width - 1)] = i % 2 ? '#' : '=';
        }
        printf("  %s |%s|\n", of.name, line.c_str());
    }
    printf("  %.3f ms of rank 0\n", end - begin);
}

// ---- times ----

static bool timeline = false; // --timeline

// The median of up to 11 runs within half a second, or the time of a single run if `once`. run() returns the
// milliseconds per step, the same on all ranks, so all do the same number of runs.
template <class Run> static double median_run(int steps, bool once, Run run) {
    std::vector<double> ms;
    double total = 0;
    while (ms.empty() || (!once && ms.size() < 11 && total < 500)) {
        sampled = 0;
        ms.push_back(run());
        total += ms.back() * steps;
    }
    std::nth_element(ms.begin(), ms.begin() + ms.size() / 2, ms.end());
    return ms[ms.size() / 2];
}

static void print_head(size_t width, int height, int steps, int k) {
    printf("%d rows of %zu cells, %d steps, %d rank%s", height, width, steps, ranks, ranks == 1 ? "" : "s");
    printf(ranks > 1 ? ", %d step%s per exchange\n" : "\n", k, k == 1 ? "" : "s");
    printf("transport            step                  rate       exchange  overlapped\n");
}

// Prints the row of a transport, on rank 0. All ranks call it. `ms`: of a step
static void print_row(const Strip &strip, const Transport &transport, double ms) {
    double exchange, overlap;
    exchange_times(&exchange, &overlap);
    if (rank != 0)
        return;
    printf("%-12s %9.4f ms %12.3f Gcells/s", ranks > 1 ? transport.name : "one rank", ms,
           1e-6 * strip.width * strip.height / ms);
    if (sampled > 0)
        printf("   %9.4f ms       %3.0f %%", exchange, 100 * overlap);
    printf("\n");
    if (timeline)
        draw_timeline();
}

#endif
