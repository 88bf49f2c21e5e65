// SPDX-License-Identifier: MIT
/*
 * dot_mpi: dot product on the GPUs of several machines, one process for each, with MPI and NCCL
 *
 * Teaches: MPI starts one process for each GPU, on one or on many machines; each process, called a rank, has
 *          its own part of the vectors. It generates this part in the memory of its GPU from the seed and
 *          the global index, so no rank needs the whole vectors. MPI_Allreduce adds the partial sums of all
 *          ranks and gives each rank the result. ncclAllReduce does the same between the memories of the
 *          GPUs, in a stream, over NVLink or the network, without a copy to the host first.
 * Terms:   MPI, rank, communicator, collective operation, all-reduce, NCCL, dot product, partial sum, scaling
 * Book:    11.5 (after the book)
 * Build:   nvcc -o dot_mpi chapter11/dot_mpi.cu common/lib/[a-z]*.c -ccbin mpicxx
 * Run:     mpirun -np 2 ./bin/chapter11/dot_mpi --size 64M
 * Needs:   libs=mpi
 * Check:   --size 100003
 */
#include "../common/book.h"
#include "dot_part.h" // part_dot(), blocks_for(), THREADS
#include "ranks.h"    // rank, ranks, HANDLE_MPI, HANDLE_NCCL, ms_of_all_ranks()

#define N (16 * 1024 * 1024)
static size_t n = N;                  // --size: elements of a vector, in all ranks together
static size_t part, first;            // elements of this rank's part, and the global index of its first one
static unsigned blocks;               // for this rank's part
static float *dev_a, *dev_b;          // this rank's part of the vectors
static float *dev_sums;               // of its blocks
static double *dev_partial_c, *dev_c; // this rank's sum, and for NCCL the sum of all ranks
static double c;                      // the result

__host__ __device__ static void element(size_t i, uint64_t seed, float *a, float *b);
static void report_kernel(void);
static bool report(const char *name, double ms, bool of_all);

__global__ void make_vectors(float *a, float *b, size_t first, size_t n, uint64_t seed) {
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += stride)
        element(first + i, seed, &a[i], &b[i]);
}

// The sum of a rank, by the kernel of dot_ladder: vectorized loads, and a reduction of the blocks' sums by
// the block that finishes last.
__global__ void dot(const float *a, const float *b, double *c, size_t n, float *sums) {
    float x;
    if (part_dot(a, b, n, sums, &x) && threadIdx.x == 0)
        *c = x;
}

static void partial_dot(void) {
    c = NAN;
    dot<<<blocks, THREADS>>>(dev_a, dev_b, dev_partial_c, part, dev_sums);
    HANDLE_LAUNCH();
}

// The baseline, one GPU: only rank 0 computes the sum of its part.
static void rank_0_alone(void) {
    if (rank > 0)
        return;
    partial_dot();
    HANDLE_ERROR(cudaMemcpy(&c, dev_partial_c, sizeof(double), cudaMemcpyDeviceToHost));
}

// MPI: each rank copies its sum to the host. MPI_Allreduce returns when it has the sums of all ranks.
static void mpi_allreduce(void) {
    double partial_c;
    partial_dot();
    HANDLE_ERROR(cudaMemcpy(&partial_c, dev_partial_c, sizeof(double), cudaMemcpyDeviceToHost));
    HANDLE_MPI(MPI_Allreduce(&partial_c, &c, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
}

#ifdef HAVE_NCCL
static ncclComm_t nccl;

// NCCL needs its own communicator. Rank 0 creates a unique identifier for it, and MPI_Bcast sends it to all
// ranks.
static void make_communicator(void) {
    ncclUniqueId id;
    if (rank == 0)
        HANDLE_NCCL(ncclGetUniqueId(&id));
    HANDLE_MPI(MPI_Bcast(&id, sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD));
    HANDLE_NCCL(ncclCommInitRank(&nccl, ranks, id, rank));
}

// NCCL: the sums stay in device memory. ncclAllReduce is asynchronous, like a kernel launch; here it follows
// the kernel in the default stream.
static void nccl_allreduce(void) {
    partial_dot();
    HANDLE_NCCL(ncclAllReduce(dev_partial_c, dev_c, 1, ncclDouble, ncclSum, nccl, 0));
    HANDLE_ERROR(cudaMemcpy(&c, dev_c, sizeof(double), cudaMemcpyDeviceToHost));
}
#endif

int main(int argc, char **argv) {
    settings(argc, argv); // before MPI, so that --help works where MPI cannot start
    HANDLE_MPI(MPI_Init(&argc, &argv));
    HANDLE_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    HANDLE_MPI(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
    settings_of_ranks(); // n, part, first, blocks, and the device of this rank

    HANDLE_ERROR(cudaMalloc(&dev_a, part * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_b, part * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_partial_c, sizeof(double)));
    HANDLE_ERROR(cudaMalloc(&dev_c, sizeof(double)));
    HANDLE_ERROR(cudaMalloc(&dev_sums, blocks * sizeof(float)));
    make_vectors<<<blocks, THREADS>>>(dev_a, dev_b, first, part, options.seed);
    HANDLE_LAUNCH();

    report_kernel();
    bool ok = report("Rank 0 alone", ms_of_all_ranks(rank_0_alone), false);
    ok = report("MPI_Allreduce", ms_of_all_ranks(mpi_allreduce), true) && ok;
#ifdef HAVE_NCCL
    if (!devices_shared) {
        make_communicator();
        ok = report("ncclAllReduce", ms_of_all_ranks(nccl_allreduce), true) && ok;
        HANDLE_NCCL(ncclCommDestroy(nccl));
    } else if (rank == 0)
        printf("ncclAllReduce: needs a GPU for each rank\n");
#else
    if (rank == 0)
        printf("ncclAllReduce: needs NCCL\n");
#endif

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_sums));
    HANDLE_ERROR(cudaFree(dev_partial_c));
    HANDLE_ERROR(cudaFree(dev_c));
    HANDLE_MPI(MPI_Finalize());
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

// Each rank generates its part of the vectors alone, so an element is a function of the seed and the index.
// The elements of each block of 2^24 indices have every pair of 12-bit numbers once, in an order that
// depends on the seed and on the block. So the sum over a block has a closed form. An offset makes the sums
// of neighbouring blocks differ, so a block that is added twice in place of another one is noticed.
const uint64_t BLOCK = 1 << 24;

__host__ __device__ static unsigned offset_of(uint64_t block) {
    return 64 * (block % 61);
}

// The elements with index i of both vectors
__host__ __device__ static void element(size_t i, uint64_t seed, float *a, float *b) {
    uint64_t block = i / BLOCK;
    uint64_t key = (seed + block + 1) * 0x9e3779b97f4a7c15;
    key = (key ^ key >> 29) * 0xbf58476d1ce4e5b9;
    uint32_t x = i % BLOCK;
    for (int round = 0; round < 3; round++) { // each step maps the numbers below 2^24 one to one
        x = (x * ((uint32_t)(key >> 8 * round) | 1) + (uint32_t)(key >> 32)) % BLOCK;
        x ^= x >> 13;
    }
    *a = ((x >> 12) + offset_of(block)) / 4096.0f;
    *b = (x & 4095) / 4096.0f;
}

void settings(int argc, char **argv) {
    options_of_ranks(argc, argv, "Dot product on one GPU for each process of MPI.", TIMES,
                     {OPTION_SIZE("size", &n, 1, 1LL << 40, "elements in a vector, in all ranks together"),
                      OPTION_EXCLUSIVE});
}

static void settings_of_ranks(void) {
    share_options();
    select_device_of_rank();
    size_t longer = n % ranks; // the first `longer` ranks have one element more than the others
    part = n / ranks + ((size_t)rank < longer);
    first = n / ranks * rank + min_of(rank, longer);
    require_memory_for_ranks(0, 2 * part * sizeof(float) + (1 << 20));
    blocks = blocks_for(part, options.device);
}

// The exact dot product of the first `count` elements. Whole blocks: the sum of all products of two 12-bit
// numbers, and of the products with the offset. The products are whole multiples of 2^-24.
static double exact_dot(size_t count, uint64_t seed) {
    const uint64_t numbers = 4096 * 4095 / 2; // 0 + 1 + … + 4095
    uint64_t sum = 0;
    for (uint64_t block = 0; block < count / BLOCK; block++)
        sum += numbers * numbers + offset_of(block) * 4096 * numbers;
    for (size_t i = count / BLOCK * BLOCK; i < count; i++) {
        float a, b;
        element(i, seed, &a, &b);
        sum += (uint64_t)(a * 4096) * (uint64_t)(b * 4096);
    }
    return sum * 0x1p-24;
}

// Overwrites the results on the device with NaN, so that those of an earlier launch do not pass.
static void forget_sums(void) {
    for (double *sum : {dev_partial_c, dev_c})
        HANDLE_ERROR(cudaMemset(sum, 0xff, sizeof(double)));
}

// Prints the sizes of the parts and the times that the ranks' kernels take, between two events on each.
static void report_kernel(void) {
    double ms = median_ms([] { dot<<<blocks, THREADS>>>(dev_a, dev_b, dev_partial_c, part, dev_sums); });
    double mine[] = {-ms, ms}, all[2];
    HANDLE_MPI(MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD));
    if (rank == 0)
        printf("%zu elements, at most %zu in a rank; kernel %.3f to %.3f ms\n", n, part, -all[0], all[1]);
    forget_sums();
}

// Prints the time and the rate of a row, and checks its result: of all ranks, or of rank 0. The kernel
// adds in float, the sums of the ranks are added in double. `additions` is the longest chain of additions of
// the kernel: in a thread, in its block and in the last block. No product is negative, so the limit is
// relative to the result. After a sum of all ranks every rank must have the same bits. Returns the same on
// all ranks.
static bool report(const char *name, double ms, bool of_all) {
    static double one; // the rate of one GPU
    double of_rank_0 = c;
    forget_sums();
    HANDLE_MPI(MPI_Bcast(&of_rank_0, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD));
    int differs = of_all && memcmp(&c, &of_rank_0, sizeof(c)) != 0, differ, ok = true;
    HANDLE_MPI(MPI_Reduce(&differs, &differ, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
    if (rank == 0) {
        size_t elements = of_all ? n : part;
        double rate = 2.0 * elements * sizeof(float) / ms / 1e6; // both vectors are read
        one = one ? one : rate;
        double additions = ceil(part / (4.0 * blocks * THREADS)) + 64 + (double)blocks / THREADS;
        double limit = likely_roundings(1 + additions) * 0x1p-24,
               expected = exact_dot(elements, options.seed);
        printf("%-14s %.3f ms, %.3f GB/s, %.2f times the rate of one GPU\n",
               (std::string(name) + ":").c_str(), ms, rate, rate / one);
        printf("    Does the sum %.9g = %.9g? It may differ by %.2g of that.\n", c, expected, limit);
        ok = check_value(name, c, expected, limit) && differ == 0;
        if (differ)
            fprintf(stderr, "%s: %d of %d ranks have another result than rank 0\n", name, differ, ranks);
    }
    HANDLE_MPI(MPI_Bcast(&ok, 1, MPI_INT, 0, MPI_COMM_WORLD));
    return ok;
}

// Task: make_vectors(): In a grid-stride loop, set a[i] and b[i] for all i below n by
// element(first + i, seed, &a[i], &b[i]).
// mpi_allreduce(): Each rank computes the partial sum of its part of the vectors with partial_dot(), which
// stores it as a double at dev_partial_c, and copies it to the host. One MPI call in HANDLE_MPI() sets c, on
// every rank, to the sum of the partial sums of all ranks of MPI_COMM_WORLD.
