// SPDX-License-Identifier: MIT
/*
 * heat_mpi: heat simulation on the GPUs of several machines, one process for each, with MPI and NCCL
 *
 * Teaches: Each rank computes a strip of the plate on a GPU of its own and needs halos, rows of the ranks
 *          above and below, which are exchanged every k steps while the interior is computed. Four
 *          transports are compared: MPI messages from host memory, MPI messages from device memory
 *          (CUDA-aware MPI), NCCL, and copies to the memory of another process (CUDA IPC).
 * Terms:   halo exchange, rank, communicator, overlap, CUDA-aware MPI, CUDA IPC, NCCL, weak scaling,
 *          strong scaling, temporal blocking
 * Book:    11.5 (after the book)
 * Build:   nvcc -o heat_mpi chapter11/heat_mpi.cu common/lib/[a-z]*.c -ccbin mpicxx
 * Run:     mpirun -np 2 ./bin/chapter11/heat_mpi --output heat.png
 * Differs: the kernel is that of heat_ladder. The initial temperature is 0.0001, not 0, so that no
 *          temperature is a denormal number. Then the result is the same bit for bit for every number of
 *          ranks and every k, and equal to that of heat_ladder's kernel on one GPU.
 * Needs:   libs=mpi
 * Check:   --size 70 --iterations 9 | --size 37 --rows 51 --iterations 40 --steps-per-exchange 3
 */
#include "../common/book.h"
#include "heat_strip.h" // Strip, row(), edge(), halo(), start(), launch()
#include "ranks.h"      // MPI, NCCL; rank, ranks, HANDLE_MPI
#if defined(OPEN_MPI)
#include <mpi-ext.h> // MPIX_Query_cuda_support
#endif

static size_t width = CPU_BACKEND ? 256 : 8192; // --size
static int height = 0;                          // --rows
static int k = 0;                               // --steps-per-exchange
static int steps = 96;                          // --iterations

// ---- the exchange of halos, by four transports ----

// A transport is opened once: open() returns NULL, or on all ranks the same reason why one of them cannot use
// it. close() frees what open() has allocated, also after a failure. exchange() is called after the kernels
// of the edges have been enqueued in the stream `edges`. Later work in that stream finds the halos received.
// Meanwhile the kernel of the interior runs in the other stream.

static bool has_neighbour(const Strip *strip, int side) {
    return strip->neighbour[side] != MPI_PROC_NULL;
}

// Sends out[side] to both neighbours and receives in[side] from them. Non-blocking calls start all four
// messages, which avoids deadlock and serialization. With MPI_PROC_NULL the calls do nothing.
static void exchange_messages(const Strip *strip, float *const out[2], float *const in[2], size_t cells) {
    MPI_Request requests[4];
    for (int side = 0; side < 2; side++) {
        int neighbour = strip->neighbour[side];
        HANDLE_MPI(MPI_Irecv(in[side], cells, MPI_FLOAT, neighbour, 0, MPI_COMM_WORLD, &requests[side]));
        HANDLE_MPI(MPI_Isend(out[side], cells, MPI_FLOAT, neighbour, 0, MPI_COMM_WORLD, &requests[2 + side]));
    }
    HANDLE_MPI(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
}

// ---- host: copies to pinned memory, and messages of MPI from there ----

static float *pinned_out[2], *pinned_in[2];

static void exchange_host(Strip *strip) {
    size_t bytes = halo_cells(strip) * sizeof(float);
    for (int side = 0; side < 2; side++)
        if (has_neighbour(strip, side))
            HANDLE_ERROR(cudaMemcpyAsync(pinned_out[side], edge(strip, side), bytes, cudaMemcpyDeviceToHost,
                                         strip->edges));
    HANDLE_ERROR(cudaStreamSynchronize(strip->edges));
    exchange_messages(strip, pinned_out, pinned_in, halo_cells(strip));
    for (int side = 0; side < 2; side++)
        if (has_neighbour(strip, side))
            HANDLE_ERROR(cudaMemcpyAsync(halo(strip, side), pinned_in[side], bytes, cudaMemcpyHostToDevice,
                                         strip->edges));
}

static const char *open_host(const Strip *strip) {
    for (int side = 0; side < 2; side++) {
        HANDLE_ERROR(cudaMallocHost(&pinned_out[side], halo_cells(strip) * sizeof(float)));
        HANDLE_ERROR(cudaMallocHost(&pinned_in[side], halo_cells(strip) * sizeof(float)));
    }
    return NULL;
}

static void close_host(void) {
    for (int side = 0; side < 2; side++) {
        HANDLE_ERROR(cudaFreeHost(pinned_out[side]));
        HANDLE_ERROR(cudaFreeHost(pinned_in[side]));
    }
}

// ---- cuda-aware: device pointers are passed to MPI, which chooses how to copy ----

static void exchange_cuda_aware(Strip *strip) {
    float *out[2] = {edge(strip, 0), edge(strip, 1)}, *in[2] = {halo(strip, 0), halo(strip, 1)};
    HANDLE_ERROR(cudaStreamSynchronize(strip->edges)); // MPI does not use streams
    exchange_messages(strip, out, in, halo_cells(strip));
}

static const char *open_cuda_aware(const Strip *strip) {
    (void)strip;
    const char *problem = "this MPI library has no query for CUDA support";
#ifdef MPIX_CUDA_AWARE_SUPPORT
    problem = MPIX_Query_cuda_support() ? NULL : "this MPI library is built without CUDA";
#endif
    return problem_of_any(CPU_BACKEND ? "needs GPUs" : problem);
}

static void close_cuda_aware(void) {}

// ---- nccl: sends and receives are enqueued in the stream, so the host does not wait ----

#ifdef HAVE_NCCL
static ncclComm_t nccl; // the communicator of NCCL: all ranks

static void exchange_nccl(Strip *strip) {
    HANDLE_NCCL(ncclGroupStart()); // a group: all four messages are one kernel
    for (int side = 0; side < 2; side++)
        if (has_neighbour(strip, side)) {
            int neighbour = strip->neighbour[side];
            HANDLE_NCCL(
                ncclSend(edge(strip, side), halo_cells(strip), ncclFloat, neighbour, nccl, strip->edges));
            HANDLE_NCCL(
                ncclRecv(halo(strip, side), halo_cells(strip), ncclFloat, neighbour, nccl, strip->edges));
        }
    HANDLE_NCCL(ncclGroupEnd());
}

static const char *open_nccl(const Strip *strip) {
    (void)strip;
    ncclUniqueId id;
    if (devices_shared)
        return "NCCL needs a GPU for each rank";
    if (rank == 0)
        HANDLE_NCCL(ncclGetUniqueId(&id));
    HANDLE_MPI(MPI_Bcast(&id, sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD));
    HANDLE_NCCL(ncclCommInitRank(&nccl, ranks, id, rank));
    return NULL;
}

static void close_nccl(void) {
    if (nccl)
        HANDLE_NCCL(ncclCommDestroy(nccl));
    nccl = NULL;
}
#endif

// ---- peer: copies into memory of the neighbour's process (CUDA IPC) ----

// `received` is the buffer into which the neighbours copy. It is double-buffered: successive exchanges use
// its two slots alternately. When a neighbour writes to a slot again, two exchanges later, the slot has been
// copied to the halo: the exchange between them sent edges that were computed from that halo.
static float *received, *received_by[2];   // of this rank, and of its neighbours
static cudaEvent_t sent[2], sent_by[2][2]; // for each slot: of this rank, and of the neighbours
static unsigned exchanges;

static float *slot_of(const Strip *strip, float *memory, int side, int slot) {
    return memory + (2 * side + slot) * halo_cells(strip);
}

static void exchange_peer(Strip *strip) {
    int slot = exchanges++ % 2;
    size_t bytes = halo_cells(strip) * sizeof(float);
    for (int side = 0; side < 2; side++)
        if (has_neighbour(strip, side))
            HANDLE_ERROR(cudaMemcpyAsync(slot_of(strip, received_by[side], 1 - side, slot), edge(strip, side),
                                         bytes, cudaMemcpyDeviceToDevice, strip->edges));
    HANDLE_ERROR(cudaEventRecord(sent[slot], strip->edges));
    // A process may wait for an event of another process only after that process has called cudaEventRecord.
    // The empty message says that it has. The host does not wait for the copies.
    float *nothing[2] = {NULL, NULL};
    exchange_messages(strip, nothing, nothing, 0);
    for (int side = 0; side < 2; side++)
        if (has_neighbour(strip, side)) {
            HANDLE_ERROR(cudaStreamWaitEvent(strip->edges, sent_by[side][slot], 0));
            HANDLE_ERROR(cudaMemcpyAsync(halo(strip, side), slot_of(strip, received, side, slot), bytes,
                                         cudaMemcpyDeviceToDevice, strip->edges));
        }
}

// The handles that a rank sends to its neighbours, so that they can open its memory and its events
struct Handles {
    cudaIpcMemHandle_t received;
    cudaIpcEventHandle_t sent[2];
};

// Allocates the buffer and opens those of the neighbours. Returns the first error.
static cudaError_t open_buffers(const Strip *strip) {
    struct Handles mine, of[2];
    const int bytes = sizeof(mine);
    HANDLE_ERROR(cudaMalloc(&received, 4 * halo_cells(strip) * sizeof(float)));
    cudaError_t error = cudaIpcGetMemHandle(&mine.received, received);
    for (int slot = 0; slot < 2; slot++) {
        HANDLE_ERROR(cudaEventCreateWithFlags(&sent[slot], cudaEventDisableTiming | cudaEventInterprocess));
        if (error == cudaSuccess)
            error = cudaIpcGetEventHandle(&mine.sent[slot], sent[slot]);
    }
    for (int side = 0; side < 2; side++) // sends in one direction, receives from the other one
        HANDLE_MPI(MPI_Sendrecv(&mine, bytes, MPI_BYTE, strip->neighbour[side], 0, &of[1 - side], bytes,
                                MPI_BYTE, strip->neighbour[1 - side], 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int side = 0; side < 2; side++) {
        if (has_neighbour(strip, side) && error == cudaSuccess)
            error = cudaIpcOpenMemHandle((void **)&received_by[side], of[side].received,
                                         cudaIpcMemLazyEnablePeerAccess);
        for (int slot = 0; slot < 2; slot++)
            if (has_neighbour(strip, side) && error == cudaSuccess)
                error = cudaIpcOpenEventHandle(&sent_by[side][slot], of[side].sent[slot]);
    }
    return error;
}

static const char *open_peer(const Strip *strip) {
    if (CPU_BACKEND)
        return "needs GPUs";
    if (problem_of_any(ranks_of_node < ranks ? "several nodes" : NULL))
        return "the ranks are on several nodes";
    cudaError_t error = open_buffers(strip);
    return problem_of_any(error == cudaSuccess ? NULL : cudaGetErrorString(error));
}

static void close_peer(void) {
    if (!received)
        return;
    cudaGetLastError(); // an error of open_peer, which the next launch must not report
    for (int side = 0; side < 2; side++) {
        if (received_by[side])
            HANDLE_ERROR(cudaIpcCloseMemHandle(received_by[side]));
        received_by[side] = NULL;
        for (int slot = 0; slot < 2; slot++) {
            if (sent_by[side][slot])
                HANDLE_ERROR(cudaEventDestroy(sent_by[side][slot]));
            sent_by[side][slot] = NULL;
        }
    }
    HANDLE_MPI(MPI_Barrier(MPI_COMM_WORLD)); // the neighbours have closed this rank's memory too
    HANDLE_ERROR(cudaEventDestroy(sent[0]));
    HANDLE_ERROR(cudaEventDestroy(sent[1]));
    HANDLE_ERROR(cudaFree(received));
    received = NULL;
}

// ---- the simulation ----

struct Transport {
    const char *name;
    void (*exchange)(Strip *strip);
    const char *(*open)(const Strip *strip);
    void (*close)(void);
};
static bool try_transports(Strip *strip); // runs and checks each of them, and prints the table
static void draw(const Strip *strip);     // the picture

// Events in the streams `edges` and `interior`, for the time in which both work
enum Mark { EXCHANGE_BEGINS, EXCHANGE_ENDS, INTERIOR_BEGINS, INTERIOR_ENDS, MARKS };
static void mark(enum Mark what, cudaStream_t stream);

// Makes each of the two streams wait for the work that has been enqueued in the other one (events).
static void join(const Strip *strip) {
    HANDLE_ERROR(cudaEventRecord(strip->interior_done, strip->interior));
    HANDLE_ERROR(cudaEventRecord(strip->edges_done, strip->edges));
    HANDLE_ERROR(cudaStreamWaitEvent(strip->edges, strip->interior_done, 0));
    HANDLE_ERROR(cudaStreamWaitEvent(strip->interior, strip->edges_done, 0));
}

// Computes the steps up to `until`, in rounds of k steps. A round has one or more launches. All but the last
// one also compute the rows of the halos that later launches read. For the last steps of a round, separate
// launches compute the k rows next to each neighbour, in the stream `edges`, and the interior. So the
// exchange of these rows overlaps with the kernel of the interior.
static void simulate(Strip *strip, const struct Transport *transport, int until) {
    for (int step = 0, round; step < until; step += round) {
        round = min_of(strip->k, until - step);
        int left = round, now = steps_of_launch(left);
        while (now < left) {
            left -= now;
            join(strip);
            launch(strip, now, max_of(strip->first - left, 0), min_of(strip->end + left, strip->height),
                   strip->interior);
            swap(strip->now, strip->next);
            now = steps_of_launch(left);
        }

        int upper = strip->first, lower = strip->end; // the interior
        if (has_neighbour(strip, 0))
            upper = min_of(strip->first + strip->k, strip->end);
        if (has_neighbour(strip, 1))
            lower = max_of(strip->end - strip->k, upper);
        join(strip);
        launch(strip, now, strip->first, upper, strip->edges);
        launch(strip, now, lower, strip->end, strip->edges);
        mark(INTERIOR_BEGINS, strip->interior);
        launch(strip, now, upper, lower, strip->interior);
        mark(INTERIOR_ENDS, strip->interior);
        swap(strip->now, strip->next);

        if (ranks > 1 && step + round < steps) {
            mark(EXCHANGE_BEGINS, strip->edges);
            transport->exchange(strip);
            mark(EXCHANGE_ENDS, strip->edges);
        }
    }
    HANDLE_ERROR(cudaStreamSynchronize(strip->interior));
    HANDLE_ERROR(cudaStreamSynchronize(strip->edges));
}

// Computes all steps. Returns the milliseconds on the slowest rank.
static double run(Strip *strip, const struct Transport *transport) {
    start(strip);
    HANDLE_MPI(MPI_Barrier(MPI_COMM_WORLD));
    double ms = MPI_Wtime() * -1e3, slowest;
    simulate(strip, transport, steps);
    ms += MPI_Wtime() * 1e3;
    HANDLE_MPI(MPI_Allreduce(&ms, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
    return slowest;
}

int main(int argc, char **argv) {
    settings(argc, argv); // before MPI, so that --help works where MPI cannot start
    HANDLE_MPI(MPI_Init(&argc, &argv));
    HANDLE_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    HANDLE_MPI(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
    settings_of_ranks();

    Strip strip;
    make_strip(&strip, width, height, k);
    bool ok = try_transports(&strip);
    draw(&strip);
    free_strip(&strip);
    HANDLE_MPI(MPI_Finalize());
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/color.h" // float_to_color()
#include "../common/cpu_bitmap.h"

#define PICTURE_SIZE 1024 // the largest width and height of the picture

void settings(int argc, char **argv) {
    options_of_ranks(
        argc, argv, "Heat simulation on the GPUs of several processes.", PICTURE | TIMES,
        {OPTION_SIZE("size", &width, 1, 1 << 20, "columns of the plate"),
         OPTION_INT("rows", &height, 1, 1 << 20, "rows of the plate; as many as columns if not given"),
         OPTION_INT("iterations", &steps, 1, 1000000, "steps"),
         OPTION_INT("steps-per-exchange", &k, 1, 64, "k: rows of a halo; 12 if each rank has them"),
         OPTION_EXCLUSIVE});
}

static void settings_of_ranks(void) {
    share_options();
    height = height ? height : width;
    int fewest = height / ranks; // rows of a rank
    if (rank == 0 && fewest < 1)
        quit(EXIT_USAGE, "%d rows are too few for %d ranks", height, ranks);
    if (rank == 0 && ranks > 1 && k > fewest)
        quit(EXIT_USAGE, "--steps-per-exchange %d: only %d rows for a rank", k, fewest);
    k = k ? k : min_of(DEEP, fewest);
    select_device_of_rank();
    size_t row_bytes = (width + 3) / 4 * 16, buffer = (height / ranks + 1 + 2 * k) * row_bytes;
    require_memory_for_ranks((64 << 20) + (4 * k + 2) * row_bytes, 2 * buffer + 4 * k * row_bytes);
    if (rank != 0)
        return;
    printf("%d rows of %zu cells, %d steps, %d rank%s", height, width, steps, ranks, ranks == 1 ? "" : "s");
    printf(ranks > 1 ? ", %d step%s per exchange\n" : "\n", k, k == 1 ? "" : "s");
    printf("transport            step                  rate       exchange  overlapped\n");
}

// ---- when exchanges and kernels run ----

// Events in the two streams, of the first rounds of a run
const int SAMPLES = 64;
static cudaEvent_t marks[SAMPLES][MARKS];
static int sampled; // rounds

static void mark(enum Mark what, cudaStream_t stream) {
    if (sampled == SAMPLES)
        return;
    if (!marks[sampled][what])
        HANDLE_ERROR(cudaEventCreate(&marks[sampled][what]));
    HANDLE_ERROR(cudaEventRecord(marks[sampled][what], stream));
    sampled += what == EXCHANGE_ENDS;
}

static void free_marks(void) {
    for (auto &round : marks)
        for (cudaEvent_t event : round)
            if (event)
                HANDLE_ERROR(cudaEventDestroy(event));
}

// The time of a mark, in milliseconds since the first mark
static float mark_ms(int round, enum Mark what) {
    float ms;
    HANDLE_ERROR(cudaEventElapsedTime(&ms, marks[0][INTERIOR_BEGINS], marks[round][what]));
    return ms;
}

// Prints the row of a transport, on rank 0: the time of a step, the mean time of an exchange, and the share
// of that time in which the kernel of the interior runs; of all ranks. All ranks call it.
static void print_row(const Strip *strip, const Transport &transport, double ms) {
    double sums[] = {0, 0, (double)sampled}, of_all[3];
    for (int i = 0; i < sampled; i++) {
        float begin = mark_ms(i, EXCHANGE_BEGINS), end = mark_ms(i, EXCHANGE_ENDS);
        sums[0] += end - begin;
        sums[1] +=
            fmaxf(0, fminf(end, mark_ms(i, INTERIOR_ENDS)) - fmaxf(begin, mark_ms(i, INTERIOR_BEGINS)));
    }
    HANDLE_MPI(MPI_Allreduce(sums, of_all, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    if (rank != 0)
        return;
    printf("%-12s %9.4f ms %12.3f Gcells/s", ranks > 1 ? transport.name : "one rank", ms,
           1e-6 * strip->width * strip->height / ms);
    if (sampled > 0)
        printf("   %9.4f ms       %3.0f %%", of_all[0] / of_all[2], 100 * of_all[1] / of_all[0]);
    printf("\n");
}

// ---- the run of a transport ----

// Opens a transport, checks it, measures it and prints its row. One that is not available is skipped, on all
// ranks. The run that is checked also warms up. All transports must leave the same temperatures.
static bool try_transport(Strip *strip, const Transport &transport, unsigned long long *checksum) {
    const char *problem = transport.open(strip);
    if (problem) {
        if (rank == 0)
            printf("%-12s skipped: %s\n", transport.name, problem);
        transport.close();
        return true;
    }
    int checked = min_of(steps, REFERENCE_STEPS);
    start(strip);
    simulate(strip, &transport, checked);
    bool ok = check_plate(strip, checked);
    double ms = median_of_runs([&] { // all ranks get the same time, so that they do the same number of runs
        sampled = 0;
        return run(strip, &transport);
    });
    if (checked == steps)
        ok = check_plate(strip, checked) && ok;
    print_row(strip, transport, ms / steps);
    unsigned long long found = checksum_of_plate(strip);
    *checksum = *checksum ? *checksum : found;
    if (rank == 0 && found != *checksum)
        fprintf(stderr, "%s: the temperatures differ from those of the first transport\n", transport.name);
    transport.close();
    return ok && found == *checksum;
}

// One rank exchanges no halos, so it uses the first transport only.
static bool try_transports(Strip *strip) {
    static const Transport transports[] = {
        {"host", exchange_host, open_host, close_host},
        {"cuda-aware", exchange_cuda_aware, open_cuda_aware, close_cuda_aware},
#ifdef HAVE_NCCL
        {"nccl", exchange_nccl, open_nccl, close_nccl},
#else
        {"nccl", NULL, [](const Strip *) { return "this build has no NCCL"; }, [] {}},
#endif
        {"peer", exchange_peer, open_peer, close_peer},
    };
    unsigned long long checksum = 0;
    bool ok = true;
    for (const Transport &transport : transports)
        if (ranks > 1 || &transport == transports)
            ok = try_transport(strip, transport, &checksum) && ok;
    free_marks();
    if (rank == 0)
        print_checks(ok, steps, checksum);
    return ok;
}

// ---- the picture ----

// Each pixel shows one cell. A rank writes the temperatures of the cells that are in its strip.
__global__ void pick_cells(float *picture, Strip strip, size_t w, size_t h) {
    size_t x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    int cell_x = x * strip.width / w, cell_y = y * strip.height / h;
    if (x < w && y < h && cell_y >= strip.first && cell_y < strip.end)
        picture[x + y * w] = fabsf(row(&strip, strip.now, cell_y)[cell_x]);
}

// Rank 0 receives the pixels of all ranks. All temperatures are positive, and pixels of other ranks are 0, so
// the maximum combines them.
static void draw(const Strip *strip) {
    double scale = fmin(1, (double)PICTURE_SIZE / max_of(strip->width, strip->height));
    size_t w = max_of(1, (size_t)(strip->width * scale)), h = max_of(1, (size_t)(strip->height * scale));
    DeviceArray<float> dev_picture(w * h, 0);
    dim3 threads(16, 16), blocks((w + 15) / 16, (h + 15) / 16);
    pick_cells<<<blocks, threads>>>(dev_picture, *strip, w, h);
    HANDLE_LAUNCH();
    HostArray<float> mine(dev_picture, w * h), all(w * h);
    HANDLE_MPI(MPI_Reduce(mine, all, w * h, MPI_FLOAT, MPI_MAX, 0, MPI_COMM_WORLD));
    if (rank != 0)
        return;
    CPUBitmap bitmap(w, h);
    DeviceArray<unsigned char> dev_bitmap(bitmap.image_size());
    HANDLE_ERROR(cudaMemcpy(dev_picture, all, w * h * sizeof(float), cudaMemcpyHostToDevice));
    float_to_color<<<blocks, threads>>>(+dev_bitmap, dev_picture, w, h, w * sizeof(float));
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(bitmap.get_ptr(), dev_bitmap, bitmap.image_size(), cudaMemcpyDeviceToHost));
    bitmap.display_and_exit();
}

// Task: none: its kernels are in heat_steps.h, and the lesson is the exchange between processes
