// SPDX-License-Identifier: MIT
// For heat_mpi: checkpoints (parallel file output with MPI-IO) and the picture (gathered by rank 0). A run
// with any number of ranks can resume from a checkpoint. No rank needs memory for the whole plate. Below the
// line: the checksum and the reports of errors.
#ifndef CHAPTER11_HEAT_FILES_H
#define CHAPTER11_HEAT_FILES_H

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <vector>
#include "../common/book.h"
#include "../common/color.h" // float_to_color
#include "../common/cpu_bitmap.h"
#include "../common/file.h"
#include "../common/proofs/heat.h" // SPEED
#include "heat_transports.h"       // Strip

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

static unsigned long long checksum_of_plate(const Strip &strip);
static const char *text_of(int error);
static void quit_together(const char *problem, const char *what, const char *path);

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
    quit_together(rank == 0 && !realpath(path, full) ? strerror(errno) : NULL, "cannot read", path);
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
    const char *problem =
        memcmp(header.magic, expected.magic, sizeof(header.magic)) ? "it is no checkpoint"
        : header.version != expected.version                 ? "it is of another version of this program"
        : header.speed != SPEED || header.coldest != COLDEST ? "it is of a simulation with other constants"
        : header.width != strip.width || header.height != strip.height ? other_plate
        : size != offset_of(strip, strip.height)                       ? "its length is wrong"
        : header.step < 0 || header.step > steps ? "it has taken more steps than --iterations"
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

// ---- the picture ----

static size_t picture_size = 1024; // --picture-size

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
    float *dev_means;
    unsigned char *dev_bitmap;
    HANDLE_ERROR(cudaMalloc(&dev_means, means.size() * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_bitmap, bitmap.image_size()));
    HANDLE_ERROR(cudaMemcpy(dev_means, means.data(), means.size() * sizeof(float), cudaMemcpyHostToDevice));
    dim3 threads(16, 16), blocks((picture.width + 15) / 16, (picture.height + 15) / 16);
    float_to_color<<<blocks, threads>>>(dev_bitmap, dev_means, picture.width, picture.height,
                                        picture.width * sizeof(float));
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(bitmap.get_ptr(), dev_bitmap, bitmap.image_size(), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaFree(dev_means));
    HANDLE_ERROR(cudaFree(dev_bitmap));
    bitmap.display_and_exit();
}

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

// ---------------------------------------------------------------------------------------- proof

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
    unsigned long long *dev_sum, sum, all;
    HANDLE_ERROR(cudaMalloc(&dev_sum, sizeof(sum)));
    HANDLE_ERROR(cudaMemset(dev_sum, 0, sizeof(sum)));
    sum_hashes<<<256, 256>>>(dev_sum, strip);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(&sum, dev_sum, sizeof(sum), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaFree(dev_sum));
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

#endif
