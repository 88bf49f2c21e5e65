// SPDX-License-Identifier: MIT
/*
 * heat_mpi: heat simulation on the GPUs of several machines, one process for each, with MPI and NCCL
 *
 * Teaches: Each rank computes a strip of the plate on a GPU of its own and needs halos, rows of the ranks
 *          above and below, which are exchanged every k steps while the interior is computed. Four
 *          transports are compared: MPI messages from host memory, MPI messages from device memory
 *          (CUDA-aware MPI), NCCL, and copies to the memory of another process (CUDA IPC). Checkpoints are
 *          written by all ranks with MPI-IO. Rank 0 gathers the picture from the ranks one after the other,
 *          so no rank needs memory for the whole plate.
 * Terms:   halo exchange, rank, communicator, overlap, CUDA-aware MPI, CUDA IPC, NCCL, checkpoint,
 *          weak scaling, strong scaling, temporal blocking
 * Book:    11.5 (after the book)
 * Build:   nvcc -o heat_mpi chapter11/heat_mpi.cu common/lib/[a-z]*.c -ccbin mpicxx
 * Run:     mpirun -np 2 ./bin/chapter11/heat_mpi --output heat.png
 * Differs: the kernel is that of heat_ladder. The initial temperature is 0.0001, not 0, so that no
 *          temperature is a denormal number. Then the result is the same bit for bit for every number of
 *          ranks and every k, and equal to that of heat_ladder's kernel on one GPU.
 * Needs:   libs=mpi
 * Check:   --size 70 --iterations 9
 *          | --size 37 --rows 51 --iterations 40 --steps-per-exchange 3 --picture-size 20
 *          | --size 40 --iterations 7 --transport host --checkpoint plate --every 2
 */
#include "../common/book.h"
#include "../common/color.h" // float_to_color
#include "../common/cpu_bitmap.h"
#include "../common/file.h"
#include "../common/checks/heat.h" // heater_at, in_hot_corner, SPEED, COLDEST
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <string>
#include <tuple>
#include <vector>
#include "heat_steps.h" // the kernel heat_steps
#include "ranks.h"      // MPI, NCCL; rank, ranks, HANDLE_MPI
#if defined(OPEN_MPI)
#include <mpi-ext.h> // MPIX_Query_cuda_support
#endif

const int DEEP = 12; // most steps of a launch

static size_t width = CPU_BACKEND ? 256 : 8192; // --size
static int height = 0;                          // --rows
static int k = 0;                               // --steps-per-exchange
static int steps = 96;                          // --iterations
static const char *checkpoint, *resume;         // --checkpoint, --resume
static int every = 0;                           // --every
static size_t picture_size = 1024;              // --picture-size

// ---- the strip of a rank ----

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
__host__ __device__ static size_t pitch_of(const Strip &strip) {
    return (strip.width + 3) / 4 * 4;
}

static size_t halo_cells(const Strip &strip) {
    return strip.k * pitch_of(strip);
}

static size_t buffer_bytes(const Strip &strip) {
    return (strip.end - strip.first + 2 * strip.k) * pitch_of(strip) * sizeof(float);
}

// The address of row y of the plate
__host__ __device__ static float *row(const Strip &strip, float *buffer, int y) {
    return buffer + (y - strip.first + strip.k) * (long long)pitch_of(strip);
}

// edge(): the rows at this side of the strip, which the neighbour needs as its halo. halo(): the rows that
// this rank receives from that neighbour.
static float *edge(const Strip &strip, int side) {
    return row(strip, strip.now, side == 0 ? strip.first : strip.end - strip.k);
}

static float *halo(const Strip &strip, int side) {
    return row(strip, strip.now, side == 0 ? strip.first - strip.k : strip.end);
}

// Calls body(side) for each side that has a neighbour.
template <class Body> static void each_side(const Strip &strip, Body body) {
    for (int side = 0; side < 2; side++)
        if (strip.neighbour[side] != MPI_PROC_NULL)
            body(side);
}

// ---- the exchange of halos, by four transports ----

// An exchange is called after the kernels of the edges have been enqueued in the stream `edges`. Later work
// in that stream finds the halos received. Meanwhile the kernel of the interior runs in the other stream.

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

// open() returns NULL, or on all ranks the same reason why one of them cannot use the transport. close()
// frees what open() has allocated, also after a failure.
struct Transport {
    const char *name;
    void (*exchange)(Strip &strip);
    const char *(*open)(const Strip &strip);
    void (*close)(const Strip &strip);
};

static Strip make_strip(int width, int height, int k);
static void free_strip(const Strip &strip);
static bool try_transports(Strip &strip); // runs and checks each of them, and prints the table
static void print_checks(bool ok, int steps);
static unsigned long long checksum_of_plate(const Strip &strip);
static const char *text_of(int error);
static void quit_together(const char *problem, const char *what, const char *path);

// ---- the simulation ----

// Events in the streams `edges` and `interior`, for the time in which both work
enum Mark { EXCHANGE_BEGINS, EXCHANGE_ENDS, INTERIOR_BEGINS, INTERIOR_ENDS, MARKS };
static void mark(Mark what, cudaStream_t stream);

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

// The initial temperature of a cell. That of a heater has a negative sign, as heat_steps expects it.
__host__ __device__ static float first_temperature(size_t x, size_t y, size_t width, size_t height) {
    float heater = heater_at(x, y, width, height);
    return heater > 0 ? -heater : in_hot_corner(x, y, width, height) ? 1 : COLDEST;
}

// Writes the initial temperatures of the rows from `first` to `end`: each rank computes those of its own rows
// and of its halos.
__global__ void fill(float *cells, int first, int end, size_t width, size_t height) {
    size_t pitch = (width + 3) / 4 * 4, n = (end - first) * pitch, stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += stride)
        cells[i] = first_temperature(i % pitch, first + i / pitch, width, height);
}

// Writes the initial temperatures. The other buffer is filled with NaN, so the check finds unwritten cells.
static void start(const Strip &strip) {
    int first = max_of(strip.first - strip.k, 0), end = min_of(strip.end + strip.k, strip.height);
    fill<<<1024, 256>>>(row(strip, strip.now, first), first, end, strip.width, strip.height);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemset(strip.next, 0xff, buffer_bytes(strip)));
    HANDLE_ERROR(cudaDeviceSynchronize());
}

// ---- checkpoints (MPI-IO) ----

// The header of the file. The rows of the plate follow it, without padding.
struct Header {
    char magic[8];
    unsigned version;
    int step, width, height;     // the plate, and how many steps it has taken
    float speed, coldest;        // constants that the result depends on
    unsigned long long checksum; // of all temperatures, plus `step`
};

static Header header_of(const Strip &strip, int step, unsigned long long checksum) {
    return {{'C', 'U', 'D', 'A', 'H', 'E', 'A', 'T'},
            1,
            step,
            strip.width,
            strip.height,
            SPEED,
            COLDEST,
            checksum};
}

static MPI_Offset offset_of(const Strip &strip, int y) {
    return sizeof(Header) + (MPI_Offset)y * strip.width * sizeof(float);
}

// Calls body(y, rows, cells) for the rows from `first` to `end` in chunks of about 64 MB, with host memory
// for a chunk. The functions of MPI-IO whose names end in _all are collective: every rank must call them
// the same number of times. So the last chunks of some ranks have no rows.
template <class Body> static void each_chunk(const Strip &strip, int first, int end, Body body) {
    int rows = end - first, most, chunk = max_of(1, (64 << 20) / (strip.width * sizeof(float)));
    HANDLE_MPI(MPI_Allreduce(&rows, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    float *cells = host_array<float>((size_t)min_of(chunk, most) * strip.width);
    for (int y = 0; y < most; y += chunk)
        body(min_of(first + y, end), max_of(min_of(chunk, rows - y), 0), cells);
    free(cells);
}

// Open MPI 4 copies a path and an ending of its own to an array of 256 characters.
#define LONGEST_PATH 240
#define TOO_LONG     "its path has more than 240 characters"

// Writes a checkpoint atomically: all ranks write to a temporary file, and rank 0 renames it to `path` after
// MPI_File_sync(). So a file with the name `path` is always complete.
static void write_checkpoint(const Strip &strip, const char *path, int step) {
    static NewFile file;
    const char *problem = rank == 0 ? file_begin(&file, path, ".tmp") : NULL;
    quit_together(problem, "cannot write", path);
    HANDLE_MPI(MPI_Bcast(file.name, sizeof(file.name), MPI_CHAR, 0, MPI_COMM_WORLD));

    MPI_File out;
    int error = MPI_File_open(MPI_COMM_WORLD, file.name, MPI_MODE_WRONLY, MPI_INFO_NULL, &out);
    quit_together(text_of(error), "cannot write", path);
    auto check = [&](int now) { error = error == MPI_SUCCESS ? now : error; }; // keeps the first error
    Header header = header_of(strip, step, checksum_of_plate(strip) + step);
    if (rank == 0)
        check(MPI_File_write_at(out, 0, &header, sizeof(header), MPI_BYTE, MPI_STATUS_IGNORE));
    size_t width = strip.width * sizeof(float), pitch = pitch_of(strip) * sizeof(float);
    each_chunk(strip, strip.first, strip.end, [&](int y, int rows, float *cells) {
        HANDLE_ERROR(
            cudaMemcpy2D(cells, width, row(strip, strip.now, y), pitch, width, rows, cudaMemcpyDeviceToHost));
        check(MPI_File_write_at_all(out, offset_of(strip, y), cells, rows * strip.width, MPI_FLOAT,
                                    MPI_STATUS_IGNORE));
    });
    MPI_Offset size = 0;
    check(MPI_File_sync(out));
    check(MPI_File_get_size(out, &size));
    check(MPI_File_close(&out));
    problem = text_of(error);
    if (!problem && size != offset_of(strip, strip.height))
        problem = "the file is not complete"; // a full disk
    quit_together(problem, "cannot write", path);
    quit_together(rank == 0 ? file_end(&file) : NULL, "cannot write", path);
}

// Reads the rows of this rank and its halos. Returns the number of steps that the plate has taken.
static int read_checkpoint(const Strip &strip, const char *path, int steps) {
    MPI_File in;
    MPI_Offset size = 0;
    Header header = {}, expected = header_of(strip, 0, 0);
    char full[PATH_MAX]; // MPI_File_open of Open MPI 4 fails for a name of one letter
    struct stat status;
    const char *problem = NULL;
    if (rank == 0 && (!realpath(path, full) || stat(full, &status) != 0))
        problem = strerror(errno);
    else if (rank == 0 && !S_ISREG(status.st_mode)) // opening a pipe would wait for its writer
        problem = "it is not a regular file";
    else if (rank == 0 && strlen(full) > LONGEST_PATH)
        problem = TOO_LONG;
    quit_together(problem, "cannot read", path);
    HANDLE_MPI(MPI_Bcast(full, sizeof(full), MPI_CHAR, 0, MPI_COMM_WORLD));
    int error = MPI_File_open(MPI_COMM_WORLD, full, MPI_MODE_RDONLY, MPI_INFO_NULL, &in);
    quit_together(text_of(error), "cannot read", path);
    auto check = [&](int now) { error = error == MPI_SUCCESS ? now : error; };
    check(MPI_File_get_size(in, &size));
    check(MPI_File_read_at_all(in, 0, &header, sizeof(header), MPI_BYTE, MPI_STATUS_IGNORE));
    quit_together(text_of(error), "cannot read", path);

    char other_plate[128];
    snprintf(other_plate, sizeof(other_plate), "it is of a plate of %d columns and %d rows, not of %d and %d",
             header.width, header.height, strip.width, strip.height);
    problem = size < (MPI_Offset)sizeof(header) || memcmp(header.magic, expected.magic, sizeof(header.magic))
                  ? "it is not a checkpoint"
              : header.version != expected.version ? "it is of another version of this program"
              : header.speed != SPEED || header.coldest != COLDEST
                  ? "it is of a simulation with other constants"
              : header.width != strip.width || header.height != strip.height ? other_plate
              : size != offset_of(strip, strip.height)                       ? "its length is wrong"
              : header.step < 0     ? "its number of steps is negative"
              : header.step > steps ? "it has taken more steps than --iterations"
                                    : NULL;
    quit_together(problem, "cannot resume from", path);

    int first = max_of(strip.first - strip.k, 0), end = min_of(strip.end + strip.k, strip.height);
    size_t width = strip.width * sizeof(float), pitch = pitch_of(strip) * sizeof(float);
    each_chunk(strip, first, end, [&](int y, int rows, float *cells) {
        check(MPI_File_read_at_all(in, offset_of(strip, y), cells, rows * strip.width, MPI_FLOAT,
                                   MPI_STATUS_IGNORE));
        HANDLE_ERROR(
            cudaMemcpy2D(row(strip, strip.now, y), pitch, cells, width, width, rows, cudaMemcpyHostToDevice));
    });
    check(MPI_File_close(&in));
    quit_together(text_of(error), "cannot read", path);
    bool damaged = checksum_of_plate(strip) + header.step != header.checksum;
    quit_together(damaged ? "its checksum is wrong" : NULL, "cannot resume from", path);
    return header.step;
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

// ---- the picture ----

// A pixel is the mean of its cells. This is the first row, or column, of the cells of pixel i.
__host__ __device__ static size_t first_cell(size_t i, size_t cells, size_t pixels) {
    return (i * cells + pixels - 1) / pixels;
}

struct Picture {
    size_t width, height;
};

// For each pixel from row `from` on: the sum of its cells that belong to this rank's strip. The sums are
// integers, which are exact in any order, so the picture does not depend on the number of ranks.
__global__ void sum_cells(unsigned long long *sums, Strip strip, Picture picture, size_t from) {
    size_t x = threadIdx.x + blockIdx.x * blockDim.x, y = from + blockIdx.y;
    if (x >= picture.width)
        return;
    int begin = max(strip.first, (int)first_cell(y, strip.height, picture.height));
    int end = min(strip.end, (int)first_cell(y + 1, strip.height, picture.height));
    size_t left = first_cell(x, strip.width, picture.width);
    size_t right = first_cell(x + 1, strip.width, picture.width);
    unsigned long long sum = 0;
    for (int cell_y = begin; cell_y < end; cell_y++)
        for (size_t cell_x = left; cell_x < right; cell_x++)
            sum += (unsigned long long)(fabsf(row(strip, strip.now, cell_y)[cell_x]) * 0x1p24f);
    sums[blockIdx.y * picture.width + x] = sum;
}

static void show(const Strip &strip, Picture picture, const std::vector<unsigned long long> &sums);

// Each rank sums up the pixels that have cells in its strip. Rank 0 receives the sums of one rank after the
// other and adds them, since a pixel can have cells of several ranks.
static void draw(const Strip &strip) {
    double scale = fmin(1, (double)picture_size / max_of(strip.width, strip.height));
    size_t w = strip.width * scale, h = strip.height * scale;
    Picture picture = {max_of(w, 1), max_of(h, 1)};
    size_t pixels = picture.width * picture.height, all = strip.height;
    auto from = [&](int r) { return first_row(r, all) * picture.height / all; };
    auto rows = [&](int r) { return (first_row(r + 1, all) - 1) * picture.height / all + 1 - from(r); };
    size_t own = rows(rank) * picture.width;
    unsigned long long *dev_sums, *sums = host_array<unsigned long long>(rank == 0 ? pixels : own);
    HANDLE_ERROR(cudaMalloc(&dev_sums, own * sizeof(*sums)));
    sum_cells<<<dim3((picture.width + 127) / 128, rows(rank)), 128>>>(dev_sums, strip, picture, from(rank));
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(sums, dev_sums, own * sizeof(*sums), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaFree(dev_sums));

    std::vector<unsigned long long> total(rank == 0 ? pixels : 0);
    if (rank != 0)
        HANDLE_MPI(MPI_Send(sums, own, MPI_UNSIGNED_LONG_LONG, 0, 0, MPI_COMM_WORLD));
    for (int r = 0; r < ranks && rank == 0; r++) {
        size_t n = rows(r) * picture.width;
        if (r > 0)
            HANDLE_MPI(MPI_Recv(sums, n, MPI_UNSIGNED_LONG_LONG, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (size_t i = 0; i < n; i++)
            total[from(r) * picture.width + i] += sums[i];
    }
    free(sums);
    if (rank == 0)
        show(strip, picture, total);
}

int main(int argc, char **argv) {
    settings(argc, argv); // before MPI, so that --help works where MPI cannot start
    HANDLE_MPI(MPI_Init(&argc, &argv));
    HANDLE_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    HANDLE_MPI(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
    settings_of_ranks();

    Strip strip = make_strip(width, height, k);
    bool ok = try_transports(strip);
    if (rank == 0)
        print_checks(ok, steps);
    draw(strip);
    free_strip(strip);
    HANDLE_MPI(MPI_Finalize());
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

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
    if (rounds < 1)
        return;
    float end = fmaxf(mark_ms(rounds, EXCHANGE_ENDS), mark_ms(rounds, INTERIOR_ENDS)),
          begin = mark_ms(1, INTERIOR_BEGINS);
    for (auto [name, begins, ends] : {std::tuple("exchange", EXCHANGE_BEGINS, EXCHANGE_ENDS),
                                      {"interior", INTERIOR_BEGINS, INTERIOR_ENDS}}) {
        std::string line(width, ' ');
        for (int i = 1; i <= rounds; i++) {
            int from = (mark_ms(i, begins) - begin) / (end - begin) * width;
            int to = (mark_ms(i, ends) - begin) / (end - begin) * width;
            for (int x = from; x == from || x < to; x++)
                line[min_of(x, width - 1)] = i % 2 ? '#' : '=';
        }
        printf("  %s |%s|\n", name, line.c_str());
    }
    printf("  %.3f ms of rank 0\n", end - begin);
}

// ---- times ----

static bool timeline = false; // --timeline

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

// ---- the picture, checksums and errors ----

static void show(const Strip &strip, Picture picture, const std::vector<unsigned long long> &sums) {
    std::vector<float> means(sums.size());
    for (size_t i = 0; i < sums.size(); i++) {
        size_t x = i % picture.width, y = i / picture.width;
        size_t columns =
            first_cell(x + 1, strip.width, picture.width) - first_cell(x, strip.width, picture.width);
        size_t rows =
            first_cell(y + 1, strip.height, picture.height) - first_cell(y, strip.height, picture.height);
        means[i] = sums[i] * 0x1p-24 / (columns * rows);
    }
    CPUBitmap bitmap(picture.width, picture.height);
    DeviceArray<float> dev_means(means.data(), means.size());
    DeviceArray<unsigned char> dev_bitmap(bitmap.image_size());
    dim3 threads(16, 16), blocks((picture.width + 15) / 16, (picture.height + 15) / 16);
    float_to_color<<<blocks, threads>>>(+dev_bitmap, dev_means, picture.width, picture.height,
                                        picture.width * sizeof(float));
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(bitmap.get_ptr(), dev_bitmap, bitmap.image_size(), cudaMemcpyDeviceToHost));
    bitmap.display_and_exit();
}

// A sum of hash values of all cells: each depends on the index and on the bits of a cell. A sum does not
// depend on the order, so the checksum does not depend on the number of ranks.
__global__ void sum_hashes(unsigned long long *sum, Strip strip) {
    unsigned long long mine = 0, n = (unsigned long long)(strip.end - strip.first) * strip.width;
    for (unsigned long long i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x) {
        int y = strip.first + i / strip.width, x = i % strip.width;
        unsigned long long hash = (unsigned long long)y * strip.width + x;
        hash = hash * 0x9e3779b97f4a7c15 + __float_as_uint(row(strip, strip.now, y)[x]) * 0xd6e8feb86659fd93;
        hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93;
        mine += hash ^ hash >> 32;
    }
    atomicAdd(sum, mine);
}

static unsigned long long checksum_of_plate(const Strip &strip) {
    unsigned long long sum = 0, all;
    DeviceArray<unsigned long long> dev_sum(&sum, 1);
    sum_hashes<<<256, 256>>>(dev_sum, strip);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(&sum, dev_sum, sizeof(sum), cudaMemcpyDeviceToHost));
    HANDLE_MPI(MPI_Allreduce(&sum, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD));
    return all;
}

static const char *text_of(int error) {
    static char text[MPI_MAX_ERROR_STRING];
    int length;
    if (error == MPI_SUCCESS)
        return NULL;
    MPI_Error_string(error, text, &length);
    return text;
}

// Collective error check: all ranks call it, each with its error message or NULL. If any rank has a message,
// rank 0 prints it (that of the lowest rank) and ends the program.
static void quit_together(const char *problem, const char *what, const char *path) {
    problem = problem_of_any(problem);
    if (problem && rank == 0)
        quit(EXIT_FAILURE, "%s %s: %s", what, path, problem);
    if (problem)
        MPI_Barrier(MPI_COMM_WORLD); // does not return: MPI_Abort() of rank 0 ends this process
}

// ---- the reference ----

// The host computes a reference: of a small plate all cells of the strip; of a large one, patches of cells at
// the edges of the strip, of the plate and of the heaters, for at most the first 256 steps.
const int PATCH = 16, REFERENCE_STEPS = 256;

struct Patch {
    int left, right, begin, end; // columns, rows
    std::vector<int> expected;   // the bits of its cells
};

// Computes the cells of a patch after `steps` steps, from the initial temperatures of all cells within that
// distance. At an edge of this area within the plate the neighbours are missing, so the temperatures there
// are wrong. In each step the wrong cells reach one cell further, and after all steps they end before the
// patch.
static void make_reference(const Strip &strip, Patch &patch, int steps) {
    const int left = max_of(patch.left - steps, 0), begin = max_of(patch.begin - steps, 0);
    const size_t width = min_of(patch.right + steps, strip.width) - left;
    const size_t height = min_of(patch.end + steps, strip.height) - begin;
    std::vector<float> in(width * height), out(width * height);
    for (size_t i = 0; i < in.size(); i++)
        in[i] = first_temperature(left + i % width, begin + i / width, strip.width, strip.height);
    for (int s = 0; s < steps; s++, swap(in, out))
        reference_rows(in.data(), out.data(), width, height, 0, height);
    for (int y = patch.begin; y < patch.end; y++) {
        const int *row = (const int *)&in[(y - begin) * width + patch.left - left];
        patch.expected.insert(patch.expected.end(), row, row + (patch.right - patch.left));
    }
}

static std::vector<Patch> patches; // of this rank

static void make_patches(const Strip &strip, int steps) {
    int rows = strip.end - strip.first, w = strip.width;
    if ((rows + 2.0 * steps) * w * steps < 1 << 26)
        patches.push_back({0, w, strip.first, strip.end, {}});
    else
        for (int y : {strip.first, strip.first + rows / 2, strip.end - PATCH})
            for (int x : {0, (int)(w * 300LL / DIM) - PATCH / 2, w - PATCH}) {
                int left = max_of(x, 0), begin = max_of(y, strip.first);
                patches.push_back(
                    {left, min_of(left + PATCH, w), begin, min_of(begin + PATCH, strip.end), {}});
            }
    for (Patch &patch : patches)
        make_reference(strip, patch, steps);
}

// Compares the patches of all ranks with the reference, bit for bit. Returns the same on all ranks.
static bool check(const Strip &strip) {
    int good = true, all_good;
    for (const Patch &patch : patches) {
        size_t bytes = (patch.right - patch.left) * sizeof(int);
        std::vector<int> got(patch.expected.size());
        HANDLE_ERROR(cudaMemcpy2D(got.data(), bytes, row(strip, strip.now, patch.begin) + patch.left,
                                  pitch_of(strip) * sizeof(float), bytes, patch.end - patch.begin,
                                  cudaMemcpyDeviceToHost));
        good = check_ints("temperature", got.data(), patch.expected.data(), got.size()) && good;
    }
    HANDLE_MPI(MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
    return all_good;
}

static unsigned long long checksum; // of all temperatures; the same after every transport

// Compares the checksum with that of the first transport. Returns the same on all ranks.
static bool check_checksum(const Strip &strip, const Transport &transport) {
    unsigned long long found = checksum_of_plate(strip);
    checksum = checksum ? checksum : found;
    if (rank == 0 && found != checksum)
        fprintf(stderr, "%s: the temperatures differ from those of the first transport\n", transport.name);
    return found == checksum;
}

static void print_checks(bool ok, int steps) {
    bool all = patches.size() == 1;
    printf("Checksum of all temperatures: %016llx\n", checksum);
    printf("%s to the temperatures of the host, bit for bit, after %d steps: ", ok ? "Equal" : "Not equal",
           min_of(steps, REFERENCE_STEPS));
    printf(all ? "all cells\n" : "%zu patches of %d x %d cells of each rank\n", patches.size(), PATCH, PATCH);
}

// ---- options, and the run of a transport ----

void settings(int argc, char **argv) {
    options_of_ranks(
        argc, argv, "Heat simulation on the GPUs of several processes.", PICTURE | TIMES,
        {OPTION_SIZE("size", &width, 1, 1 << 20, "columns of the plate"),
         OPTION_INT("rows", &height, 1, 1 << 20, "rows of the plate; as many as columns if not given"),
         OPTION_INT("iterations", &steps, 1, 1000000, "steps"),
         OPTION_INT("steps-per-exchange", &k, 1, 64, "k: rows of a halo; 12 if each rank has them"),
         OPTION_WORD("transport", &chosen, "host|cuda-aware|nccl|peer|all", "how halos are exchanged"),
         OPTION_SIZE("picture-size", &picture_size, 1, 8192, "largest width and height of the picture"),
         OPTION_FLAG("timeline", &timeline, "show what rank 0 does at which time"),
         OPTION_FILE("checkpoint", &checkpoint, "write checkpoints to FILE"),
         OPTION_INT("every", &every, 1, 1000000, "steps from one checkpoint to the next; one at the end"),
         OPTION_FILE("resume", &resume, "continue from the checkpoint FILE"), OPTION_EXCLUSIVE});
}

static void settings_of_ranks(void) {
    share_options();
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
    if (rank == 0 && checkpoint && strlen(checkpoint) + strlen("/.unfinished-XXXXXX.tmp") > LONGEST_PATH)
        quit(EXIT_FAILURE, "cannot write %s: %s", checkpoint, TOO_LONG);
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
    auto timed = [&] { // All ranks get the same time, so that they do the same number of runs.
        sampled = 0;
        return run(strip, transport) * steps;
    };
    double ms = (checkpoint || resume ? timed() : median_of_runs(timed)) / steps;
    if (checked == steps)
        ok = check(strip) && ok;
    print_row(strip, transport, ms);
    ok = check_checksum(strip, transport) && ok;
    transport.close(strip);
    free_marks();
    return ok;
}

static bool try_transports(Strip &strip) {
    bool ok = true;
    for (const Transport &transport : transports)
        ok = try_transport(strip, transport) && ok;
    return ok;
}

// Task: none: its kernels are in heat_steps.h, and the lesson is the exchange between processes
