// SPDX-License-Identifier: MIT
/*
 * heat_checkpoint: heat simulation that goes on after a failure, from checkpoints of MPI-IO
 *
 * Teaches: A long simulation saves its state, so that it can go on after a failure. All ranks write their
 *          strips of the plate into one file (MPI-IO), in calls that all of them make together (collective).
 *          A checkpoint is written under another name and renamed when it is complete, so the one before it
 *          stays good until then. Any number of ranks can go on from the file, because the position of a row
 *          does not depend on it.
 * Terms:   checkpoint, rank, collective operation, halo exchange
 * Book:    11.5 (after the book)
 * After:   chapter11/heat_mpi
 * Build:   nvcc -o heat_checkpoint chapter11/heat_checkpoint.cu common/lib/[a-z]*.c -ccbin mpicxx
 * Run:     mpirun -np 2 ./bin/chapter11/heat_checkpoint --checkpoint heat.state
 * Differs: the simulation is that of heat_mpi, but its exchange of halos is the plainest: the host waits for
 *          it, and nothing overlaps.
 * Needs:   libs=mpi
 * Check:   --size 40 --iterations 30 --checkpoint plate
 */
#include "../common/book.h"
#include "../common/file.h"
#include <errno.h>
#include <sys/stat.h>
#include "heat_strip.h" // Strip, row(), edge(), halo(), start(), launch()
#include "ranks.h"      // MPI; rank, ranks, HANDLE_MPI

#define EVERY 1000 // steps from one checkpoint to the next

static size_t size = CPU_BACKEND ? 256 : 8192; // --size, rows and columns of the plate
static int steps = 96;                         // --iterations
static const char *checkpoint, *resume;        // --checkpoint, --resume
static float *host_out, *host_in;              // rows for a neighbour, and from one

static bool check(Strip *strip);
static const char *text_of(int error);
static int first_error(int error, int now);
static void quit_together(const char *problem, const char *what, const char *path);

// Sends the rows at each side to the neighbour there, and receives those of the neighbour on the other side.
static void exchange(Strip *strip) {
    size_t cells = halo_cells(strip), bytes = cells * sizeof(float);
    for (int side = 0; side < 2; side++) {
        int to = strip->neighbour[side], from = strip->neighbour[1 - side];
        if (to != MPI_PROC_NULL)
            HANDLE_ERROR(cudaMemcpy(host_out, edge(strip, side), bytes, cudaMemcpyDeviceToHost));
        HANDLE_MPI(MPI_Sendrecv(host_out, cells, MPI_FLOAT, to, 0, host_in, cells, MPI_FLOAT, from, 0,
                                MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        if (from != MPI_PROC_NULL)
            HANDLE_ERROR(cudaMemcpy(halo(strip, 1 - side), host_in, bytes, cudaMemcpyHostToDevice));
    }
}

// Computes the steps from `from` to `until`, in rounds of k steps. A round has one or more launches. All but
// the last one also compute the rows of the halos that later launches read.
static void simulate(Strip *strip, int from, int until) {
    for (int step = from; step < until; step += strip->k) {
        int left = min_of(strip->k, until - step);
        while (left > 0) {
            int now = steps_of_launch(left);
            left -= now;
            launch(strip, now, max_of(strip->first - left, 0), min_of(strip->end + left, strip->height),
                   NULL); // the default stream, in which the copies of exchange() follow
            swap(strip->now, strip->next);
        }
        exchange(strip);
    }
}

// The header of the file. The rows of the plate follow it, without padding.
struct Header {
    char magic[8];
    unsigned version;
    int step, width, height;     // the plate, and how many steps it has taken
    float speed, coldest;        // constants that the result depends on
    unsigned long long checksum; // of all temperatures, plus `step`
};

static struct Header header_of(const Strip *strip, int step, unsigned long long checksum) {
    struct Header header = {{}, 1, step, strip->width, strip->height, SPEED, COLDEST, checksum};
    memcpy(header.magic, "CUDAHEAT", sizeof(header.magic));
    return header;
}

static MPI_Offset offset_of(const Strip *strip, int y) {
    return sizeof(struct Header) + (MPI_Offset)y * strip->width * sizeof(float);
}

// Writes or reads the rows from `first` to `end`, in chunks of about 64 MB. The functions of MPI-IO whose
// names end in _all are collective: every rank must call them the same number of times. So the last chunks of
// some ranks have no rows. Returns the first error.
static int transfer(const Strip *strip, MPI_File file, int first, int end, bool writing) {
    size_t bytes = strip->width * sizeof(float), pitch = pitch_of(strip) * sizeof(float); // of a row
    int rows = end - first, most, chunk = max_of(1, (64 << 20) / bytes), error = MPI_SUCCESS;
    HANDLE_MPI(MPI_Allreduce(&rows, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    float *cells = (float *)malloc(min_of(chunk, most) * bytes);
    HANDLE_NULL(cells);
    for (int done = 0; done < most; done += chunk) {
        int y = min_of(first + done, end), count = max_of(min_of(chunk, rows - done), 0);
        float *dev = row(strip, strip->now, y);
        if (writing) {
            HANDLE_ERROR(cudaMemcpy2D(cells, bytes, dev, pitch, bytes, count, cudaMemcpyDeviceToHost));
            error =
                first_error(error, MPI_File_write_at_all(file, offset_of(strip, y), cells,
                                                         count * strip->width, MPI_FLOAT, MPI_STATUS_IGNORE));
        } else {
            error =
                first_error(error, MPI_File_read_at_all(file, offset_of(strip, y), cells,
                                                        count * strip->width, MPI_FLOAT, MPI_STATUS_IGNORE));
            HANDLE_ERROR(cudaMemcpy2D(dev, pitch, cells, bytes, bytes, count, cudaMemcpyHostToDevice));
        }
    }
    free(cells);
    return error;
}

// Open MPI 4 copies a path and an ending of its own to an array of 256 characters.
#define LONGEST_PATH 240
#define TOO_LONG     "its path has more than 240 characters"

// Writes a checkpoint atomically: all ranks write to a temporary file, and rank 0 renames it to `path` after
// MPI_File_sync(). So a file with the name `path` is always complete.
static void write_checkpoint(const Strip *strip, const char *path, int step) {
    static NewFile file;
    const char *problem = rank == 0 ? file_begin(&file, path, ".tmp") : NULL;
    quit_together(problem, "cannot write", path);
    HANDLE_MPI(MPI_Bcast(file.name, sizeof(file.name), MPI_CHAR, 0, MPI_COMM_WORLD));

    MPI_File out;
    MPI_Offset bytes = 0;
    int error = MPI_File_open(MPI_COMM_WORLD, file.name, MPI_MODE_WRONLY, MPI_INFO_NULL, &out);
    quit_together(text_of(error), "cannot write", path);
    struct Header header = header_of(strip, step, checksum_of_plate(strip) + step);
    if (rank == 0)
        error = MPI_File_write_at(out, 0, &header, sizeof(header), MPI_BYTE, MPI_STATUS_IGNORE);
    error = first_error(error, transfer(strip, out, strip->first, strip->end, true));
    error = first_error(error, MPI_File_sync(out));
    error = first_error(error, MPI_File_get_size(out, &bytes));
    error = first_error(error, MPI_File_close(&out));
    problem = text_of(error);
    if (!problem && bytes != offset_of(strip, strip->height))
        problem = "the file is not complete"; // a full disk
    quit_together(problem, "cannot write", path);
    quit_together(rank == 0 ? file_end(&file) : NULL, "cannot write", path);
}

// Reads the rows of this rank and its halos. Returns the number of steps that the plate has taken.
static int read_checkpoint(const Strip *strip, const char *path) {
    MPI_File in;
    MPI_Offset bytes = 0;
    struct Header header = {}, expected = header_of(strip, 0, 0);
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
    error = MPI_File_get_size(in, &bytes);
    error =
        first_error(error, MPI_File_read_at_all(in, 0, &header, sizeof(header), MPI_BYTE, MPI_STATUS_IGNORE));
    quit_together(text_of(error), "cannot read", path);

    char other_plate[128];
    snprintf(other_plate, sizeof(other_plate), "it is of a plate of %d columns and %d rows, not of %d and %d",
             header.width, header.height, strip->width, strip->height);
    if (bytes < (MPI_Offset)sizeof(header) || memcmp(header.magic, expected.magic, sizeof(header.magic)) != 0)
        problem = "it is not a checkpoint";
    else if (header.version != expected.version)
        problem = "it is of another version of this program";
    else if (header.speed != SPEED || header.coldest != COLDEST)
        problem = "it is of a simulation with other constants";
    else if (header.width != strip->width || header.height != strip->height)
        problem = other_plate;
    else if (bytes != offset_of(strip, strip->height))
        problem = "its length is wrong";
    else if (header.step < 0)
        problem = "its number of steps is negative";
    else if (header.step > steps)
        problem = "it has taken more steps than --iterations";
    quit_together(problem, "cannot resume from", path);

    int first = max_of(strip->first - strip->k, 0), end = min_of(strip->end + strip->k, strip->height);
    error = transfer(strip, in, first, end, false);
    error = first_error(error, MPI_File_close(&in));
    quit_together(text_of(error), "cannot read", path);
    bool damaged = checksum_of_plate(strip) + header.step != header.checksum;
    quit_together(damaged ? "its checksum is wrong" : NULL, "cannot resume from", path);
    return header.step;
}

int main(int argc, char **argv) {
    settings(argc, argv); // before MPI, so that --help works where MPI cannot start
    HANDLE_MPI(MPI_Init(&argc, &argv));
    HANDLE_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    HANDLE_MPI(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
    settings_of_ranks();

    Strip strip;
    make_strip(&strip, size, size, min_of(DEEP, size / ranks));
    host_out = (float *)malloc(halo_cells(&strip) * sizeof(float));
    host_in = (float *)malloc(halo_cells(&strip) * sizeof(float));
    HANDLE_NULL(host_out && host_in);

    int step = 0;
    start(&strip);
    if (resume)
        step = read_checkpoint(&strip, resume);
    if (rank == 0)
        printf("%zu x %zu cells, steps %d to %d, %d rank%s\n", size, size, step, steps, ranks,
               ranks == 1 ? "" : "s");
    do {
        int until = min_of((step / EVERY + 1) * EVERY, steps);
        simulate(&strip, step, until);
        step = until;
        if (checkpoint)
            write_checkpoint(&strip, checkpoint, step);
    } while (step < steps);
    bool ok = check(&strip);

    free_strip(&strip);
    free(host_out);
    free(host_in);
    HANDLE_MPI(MPI_Finalize());
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    options_of_ranks(argc, argv, "Heat simulation that writes checkpoints and goes on from them.", 0,
                     {OPTION_SIZE("size", &size, 1, 1 << 20, "rows and columns of the plate"),
                      OPTION_INT("iterations", &steps, 1, 1000000, "steps"),
                      OPTION_FILE("checkpoint", &checkpoint, "write FILE every 1000 steps and at the end"),
                      OPTION_FILE("resume", &resume, "go on from the checkpoint FILE"), OPTION_EXCLUSIVE});
}

static void settings_of_ranks(void) {
    share_options();
    if (rank == 0 && size / ranks < 1)
        quit(EXIT_USAGE, "%zu rows are too few for %d ranks", size, ranks);
    select_device_of_rank();
    size_t row_bytes = (size + 3) / 4 * 16, rows = size / ranks + 1 + 2 * DEEP;
    require_memory_for_ranks((64 << 20) + 2 * DEEP * row_bytes, 2 * rows * row_bytes);
    if (rank != 0 || !checkpoint)
        return;
    char full[PATH_MAX] = "";
    (void)!realpath(checkpoint, full); // of a new file too: glibc stores the path that does not exist
    if (max_of(strlen(checkpoint), strlen(full)) + strlen("/.unfinished-XXXXXX.tmp") > LONGEST_PATH)
        quit(EXIT_FAILURE, "cannot write %s: %s", checkpoint, TOO_LONG);
    file_check(checkpoint);
}

static const char *text_of(int error) {
    static char text[MPI_MAX_ERROR_STRING];
    int length;
    if (error == MPI_SUCCESS)
        return NULL;
    MPI_Error_string(error, text, &length);
    return text;
}

static int first_error(int error, int now) {
    return error == MPI_SUCCESS ? now : error;
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

// Reads the last checkpoint, which must have the temperatures of the plate. Then computes at most
// REFERENCE_STEPS steps again, from the start and without a checkpoint, and compares the plate with that of
// the host. If the program computed no more steps, its plate must have the same checksum.
static bool check(Strip *strip) {
    unsigned long long checksum = checksum_of_plate(strip);
    int checked = min_of(steps, REFERENCE_STEPS);
    bool same = true;
    if (checkpoint) {
        HANDLE_ERROR(cudaMemset(strip->now, 0xff, buffer_bytes(strip)));
        same = read_checkpoint(strip, checkpoint) == steps && checksum_of_plate(strip) == checksum;
    }
    start(strip);
    simulate(strip, 0, checked);
    bool ok = check_plate(strip, checked);
    same = (checked < steps || checksum_of_plate(strip) == checksum) && same;
    if (rank == 0 && !same)
        fprintf(stderr,
                "the file, or the temperatures of a run without checkpoints, differ from the plate\n");
    if (rank == 0)
        print_checks(ok && same, steps, checksum);
    return ok && same;
}

// Task: none: its kernels are in heat_steps.h, and the lesson is the file
