// SPDX-License-Identifier: MIT
/*
 * heat_mpi: heat simulation on the GPUs of several machines, one process for each, with MPI and NCCL
 *
 * Teaches: Each rank computes a strip of the plate on a GPU of its own. It needs halos, rows of the ranks
 *          above and below. They are exchanged every k steps, while the interior is computed. Four transports
 *          are compared: MPI messages from host memory, MPI messages from device memory (CUDA-aware MPI),
 *          NCCL, and copies to the memory of another process (CUDA IPC). Checkpoints are written by all
 *          ranks with MPI-IO. Rank 0 gathers the picture from the ranks one after the other, so no rank
 *          needs memory for the whole plate.
 * Terms:   halo exchange, rank, communicator, overlap, CUDA-aware MPI, CUDA IPC, NCCL, checkpoint,
 *          weak scaling, strong scaling, temporal blocking
 * Book:    11.5 (after the book)
 * Run:     mpirun -np 2 ./bin/chapter11/heat_mpi --output heat.png
 * Differs: the kernel is that of heat_ladder. The initial temperature is 0.0001, not 0, so that no
 *          temperature is a denormal number. Then the result is the same bit for bit for every number of
 *          ranks and every k, and equal to that of heat_ladder's kernel on one GPU.
 * Needs:   libs=mpi
 * Check:   --size 70 --iterations 9
 */
#include "../common/book.h"
#include "ranks.h"           // rank, ranks, HANDLE_MPI
#include "heat_transports.h" // Strip, transports, mark; open_transport, median_run, print_row
#include "heat_files.h"      // write_checkpoint, read_checkpoint, draw
#include "heat_reference.h"  // fill, check, check_checksum
#include "heat_steps.h"      // the kernel heat_steps

const int DEEP = 12; // most steps of a launch

static size_t width = CPU_BACKEND ? 256 : 8192; // --size
static int height = 0;                          // --rows
static int k = 0;                               // --steps-per-exchange
static int steps = 96;                          // --iterations
static const char *checkpoint, *resume;         // --checkpoint, --resume
static int every = 0;                           // --every
static bool try_transport(Strip &strip, const Transport &transport);

// Steps of the next launch if `left` steps of a round are left: 12, 4 or 1, the shortest launches first.
static int steps_of_launch(int left) {
    return left % DEEP == 0 ? DEEP : left % 4 == 0 ? 4 : 1;
}

// Launches the kernel that computes `now` steps of the rows from `begin` to `end`. It also reads `now` rows
// above and below them.
static void launch(const Strip &strip, int now, int begin, int end, cudaStream_t stream) {
    if (begin >= end)
        return;
    static const int at_once[] = {blocks_at_once<1, NoExchange>(), blocks_at_once<4, NoExchange>(),
                                  blocks_at_once<DEEP, NoExchange>()};
    auto kernel = now == DEEP ? heat_steps<DEEP, NoExchange>
                  : now == 4  ? heat_steps<4, NoExchange>
                              : heat_steps<1, NoExchange>;
    float4 *out = (float4 *)row(strip, strip.next, 0), *in = (float4 *)row(strip, strip.now, 0);
    Rows rows = {out, in, begin, end, strip.width, strip.height, (now + 3) / 4 * 4};
    dim3 blocks = grid_of(rows, now, at_once[now == DEEP ? 2 : now == 4]);
    kernel<<<blocks, dim3(32, WARPS), 0, stream>>>(rows, NoExchange());
    HANDLE_LAUNCH();
}

// Makes each of the two streams wait for the work that has been enqueued in the other one (events).
static void join(const Strip &strip) {
    HANDLE_ERROR(cudaEventRecord(strip.interior_done, strip.interior));
    HANDLE_ERROR(cudaEventRecord(strip.edges_done, strip.edges));
    HANDLE_ERROR(cudaStreamWaitEvent(strip.edges, strip.interior_done, 0));
    HANDLE_ERROR(cudaStreamWaitEvent(strip.interior, strip.edges_done, 0));
}

// Computes the steps from `from` to `until`, in rounds of k steps. A round has one or more launches. All but
// the last one also compute the rows of the halos that later launches read. For the last steps of a round,
// separate launches compute the k rows next to each neighbour, in the stream `edges`, and the interior. So
// the exchange of these rows overlaps with the kernel of the interior.
static void simulate(Strip &strip, const Transport &transport, int from, int until) {
    for (int step = from, round; step < until; step += round) {
        round = min_of(strip.k, until - step);
        int left = round, now = steps_of_launch(left);
        while (now < left) {
            left -= now;
            join(strip);
            launch(strip, now, max_of(strip.first - left, 0), min_of(strip.end + left, strip.height),
                   strip.interior);
            swap(strip.now, strip.next);
            now = steps_of_launch(left);
        }

        bool above = strip.neighbour[0] != MPI_PROC_NULL, below = strip.neighbour[1] != MPI_PROC_NULL;
        int upper = above ? min_of(strip.first + strip.k, strip.end) : strip.first;
        int lower = below ? max_of(strip.end - strip.k, upper) : strip.end;
        join(strip);
        launch(strip, now, strip.first, upper, strip.edges);
        launch(strip, now, lower, strip.end, strip.edges);
        mark(INTERIOR_BEGINS, strip.interior);
        launch(strip, now, upper, lower, strip.interior);
        mark(INTERIOR_ENDS, strip.interior);
        swap(strip.now, strip.next);

        if (ranks > 1 && step + round < steps) {
            mark(EXCHANGE_BEGINS, strip.edges);
            transport.exchange(strip);
            mark(EXCHANGE_ENDS, strip.edges);
        }
    }
    HANDLE_ERROR(cudaStreamSynchronize(strip.interior));
    HANDLE_ERROR(cudaStreamSynchronize(strip.edges));
}

// Writes the initial temperatures. The other buffer is filled with NaN, so the check finds unwritten cells.
static void start(const Strip &strip) {
    int first = max_of(strip.first - strip.k, 0), end = min_of(strip.end + strip.k, strip.height);
    fill<<<1024, 256>>>(row(strip, strip.now, first), first, end, strip.width, strip.height);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemset(strip.next, 0xff, buffer_bytes(strip)));
    HANDLE_ERROR(cudaDeviceSynchronize());
}

// Computes all steps and writes the checkpoints. Returns the milliseconds per step on the slowest rank.
static double run(Strip &strip, const Transport &transport) {
    int step = 0;
    start(strip);
    if (resume)
        step = read_checkpoint(strip, resume, steps);
    const int ran = steps - step;
    HANDLE_MPI(MPI_Barrier(MPI_COMM_WORLD));
    double ms = MPI_Wtime() * -1e3, slowest;
    for (int until; step < steps; step = until) {
        until = checkpoint ? min_of((step / every + 1) * every, steps) : steps;
        simulate(strip, transport, step, until);
        if (checkpoint)
            write_checkpoint(strip, checkpoint, until);
    }
    ms += MPI_Wtime() * 1e3;
    HANDLE_MPI(MPI_Allreduce(&ms, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
    return slowest / max_of(ran, 1);
}

int main(int argc, char **argv) {
    HANDLE_MPI(MPI_Init(&argc, &argv));
    HANDLE_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    HANDLE_MPI(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
    settings(argc, argv);

    Strip strip = make_strip(width, height, k);
    bool ok = true;
    for (const Transport &transport : transports)
        ok = try_transport(strip, transport) && ok;
    if (rank == 0)
        print_checks(ok, steps);
    draw(strip);
    free_strip(strip);
    HANDLE_MPI(MPI_Finalize());
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

void settings(int argc, char **argv) {
    const Option own[] = {
        OPTION_SIZE("size", &width, 1, 1 << 20, "columns of the plate"),
        OPTION_INT("rows", &height, 1, 1 << 20, "rows of the plate; as many as columns if not given"),
        OPTION_INT("iterations", &steps, 1, 1000000, "steps"),
        OPTION_INT("steps-per-exchange", &k, 1, 64, "k: rows of a halo; 12 if each rank has them"),
        OPTION_WORD("transport", &chosen, "host|cuda-aware|nccl|peer|all", "how halos are exchanged"),
        OPTION_SIZE("picture-size", &picture_size, 1, 8192, "largest width and height of the picture"),
        OPTION_FLAG("timeline", &timeline, "show what rank 0 does at which time"),
        OPTION_FILE("checkpoint", &checkpoint, "write checkpoints to FILE"),
        OPTION_INT("every", &every, 1, 1000000, "steps from one checkpoint to the next; one at the end"),
        OPTION_FILE("resume", &resume, "continue from the checkpoint FILE"),
        OPTION_EXCLUSIVE,
        OPTION_END};
    options_of_all_ranks(argc, argv, "Heat simulation on the GPUs of several processes.", PICTURE | TIMES,
                         own);
    height = height ? height : width;
    int fewest = height / ranks; // rows of a rank
    const char *file = checkpoint ? "--checkpoint" : resume ? "--resume" : NULL;
    if (rank == 0 && fewest < 1)
        quit(EXIT_USAGE, "%d rows are too few for %d ranks", height, ranks);
    if (rank == 0 && ranks > 1 && k > fewest)
        quit(EXIT_USAGE, "--steps-per-exchange %d: only %d rows for a rank", k, fewest);
    if (rank == 0 && ranks > 1 && file && chosen == ALL)
        quit(EXIT_USAGE, "%s needs one --transport", file);
    if (rank == 0 && every && !checkpoint)
        quit(EXIT_USAGE, "--every needs --checkpoint");
    k = k ? k : min_of(DEEP, fewest);
    every = every ? every : steps;
    select_device_of_rank();
    size_t row_bytes = (width + 3) / 4 * 16, buffer = (height / ranks + 1 + 2 * k) * row_bytes;
    require_memory_for_ranks((64 << 20) + (4 * k + 2) * row_bytes + 20 * picture_size * picture_size,
                             2 * buffer + 4 * k * row_bytes);
    if (rank == 0 && checkpoint)
        file_check(checkpoint);
    if (rank == 0)
        print_head(width, height, steps, k);
}

// Checks a transport, measures it and prints its row of the table. The run that is checked also warms up.
static bool try_transport(Strip &strip, const Transport &transport) {
    if (!open_transport(strip, transport))
        return true;
    int checked = min_of(steps, REFERENCE_STEPS);
    if (patches.empty())
        make_patches(strip, checked);
    start(strip);
    simulate(strip, transport, 0, checked);
    bool ok = check(strip);
    double ms = median_run(steps, checkpoint || resume, [&] { return run(strip, transport); });
    if (checked == steps)
        ok = check(strip) && ok;
    print_row(strip, transport, ms);
    ok = check_checksum(strip, transport) && ok;
    transport.close(strip);
    free_marks();
    return ok;
}

// Task: none: its kernels are in heat_steps.h, and the lesson is the exchange between processes
