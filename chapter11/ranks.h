// SPDX-License-Identifier: MIT
// For MPI programs: several processes (ranks) on one or more machines (nodes). Error checks for MPI and NCCL,
// options that are broadcast to all ranks, a device for each rank, and MPI_Abort when a rank fails.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>
// The programs use the C functions. The C++ bindings of older versions of MPI would need a library of their
// own.
#define OMPI_SKIP_MPICXX
#define MPICH_SKIP_MPICXX
#include <mpi.h>
#ifdef HAVE_NCCL
#include <nccl.h>
#endif
#include "../common/book.h"
#include "../common/timing.h"

static int rank, ranks; // the number of this process and how many there are; main sets them

// Checks the status that a call of MPI returns. On an error it prints one line, "file:line: call: text", and
// ends all ranks.
//
//     HANDLE_MPI(MPI_Init(&argc, &argv));
#define HANDLE_MPI(...) handle_mpi((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
static inline void handle_mpi(int error, const char *call, const char *file, int line);

// The same for a call of NCCL.
#define HANDLE_NCCL(...) handle_nccl((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

// Called before MPI_Init(), with the arguments of parse_options(). A program that is started without mpirun
// reads its command line here, so --help and mistakes need no MPI. Where MPI cannot start, it ends here.
static inline void options_of_ranks(int argc, char **argv, const char *doc, unsigned uses,
                                    std::initializer_list<Option> own);

// Called after MPI_Init(). Rank 0 reads its command line, if it has not done that yet, and broadcasts it to
// the other ranks, which read it in place of their own, so that no two ranks have different options. After
// this call, every rank that ends with a status other than 0 ends all ranks with that status.
static inline void share_options(void);

// Every program defines this function below its "check" line. It calls share_options() and does the rest of
// settings().
static void settings_of_ranks(void);

// Selects a device of the rank's node, by cudaSetDevice(). The devices are assigned round-robin to the ranks
// of the node, from --device on. If there are more ranks than devices, ranks share devices and rank 0 prints
// that, or with --exclusive the program ends.
static inline void select_device_of_rank(void);
static bool exclusive; // --exclusive
#define OPTION_EXCLUSIVE OPTION_FLAG("exclusive", &exclusive, "refuse to run with fewer devices than ranks")

// Calls require_memory() (book.h) with the host and device memory that one rank needs, in bytes, times the
// number of ranks that share the host or the device.
static inline void require_memory_for_ranks(size_t host, size_t device);

// The median time in milliseconds of work that all ranks do. A barrier synchronizes the ranks before each
// run. The time of a run is that of the slowest rank.
template <class Work> static double ms_of_all_ranks(Work work) {
    return median_of_runs([&] {
        HANDLE_MPI(MPI_Barrier(MPI_COMM_WORLD));
        double mine = host_ms(work), slowest;
        HANDLE_MPI(MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
        return slowest; // All ranks get the same time, so that they do the same number of runs.
    });
}

// Set by select_device_of_rank()
static MPI_Comm node_comm;  // the ranks of this node
static int ranks_of_node;   // number of ranks of this node
static int ranks_of_device; // number of them that use the same device as this rank
static bool devices_shared; // whether any two ranks use the same device

// ---------------------------------------------------------------------------------------- check

static inline void handle_mpi(int error, const char *call, const char *file, int line) {
    if (error == MPI_SUCCESS)
        return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(error, text, &length);
    quit_line(EXIT_FAILURE, "%s:%d: %s: %s", file, line, call, text);
}

#ifdef HAVE_NCCL
static inline void handle_nccl(ncclResult_t error, const char *call, const char *file, int line) {
    if (error == ncclSuccess)
        return;
    quit_line(EXIT_FAILURE, "%s:%d: %s: %s: %s", file, line, call, ncclGetErrorString(error),
              ncclGetLastError(NULL));
}
#endif

// A program that is started without mpirun is a single rank (a singleton). With this variable Open MPI starts
// no daemon process for it. hwloc, which looks for the devices of the machine, asks no OpenCL driver: PoCL
// aborts where there is no /sys.
__attribute__((constructor)) static void start_alone(void) {
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    setenv("HWLOC_COMPONENTS", "-opencl", 0);
}

#ifdef __SANITIZE_ADDRESS__
// Open MPI leaves memory allocated, and it unloads its plugins, so LeakSanitizer reports this memory without
// their names. With this function it does not look for leaks. CUDA_CPU_CHECK=1 still reports CUDA memory
// that is not freed.
extern "C" int __lsan_is_turned_off(void) {
    return true;
}
#endif

// On rank 0: whether the other ranks are blocked in the MPI_Bcast() of on_rank_0_first()
static bool others_blocked;

// An exit handler. If this rank exits before MPI_Finalize(), the other ranks block in their next
// communication with it. So with a status other than 0 it ends all ranks by MPI_Abort(). Rank 0 exits with
// status 0 after --help, which it reads in on_rank_0_first(). Then it broadcasts `end` = true, and the other
// ranks exit, too.
static void end_all_ranks(int status, void *unused) {
    (void)unused;
    int finalized, end = true;
    MPI_Finalized(&finalized);
    if (finalized)
        return;
    if (status != EXIT_SUCCESS) {
        if (ranks > 1)
            MPI_Abort(MPI_COMM_WORLD, status);
        return;
    }
    if (others_blocked)
        MPI_Bcast(&end, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
}

// Calls a function on rank 0 and, after it has returned there, on the other ranks. If the function ends the
// program on rank 0, the other ranks do not call it. So an error that all ranks would detect is reported
// once.
template <class Function> static void on_rank_0_first(Function function) {
    int end = false;
    if (rank == 0) {
        others_blocked = true;
        function();
        others_blocked = false;
    }
    HANDLE_MPI(MPI_Bcast(&end, 1, MPI_INT, 0, MPI_COMM_WORLD));
    if (end)
        exit(EXIT_SUCCESS);
    if (rank != 0)
        function();
}

static void broadcast(void *data, size_t bytes) {
    HANDLE_MPI(MPI_Bcast(data, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD));
}

static std::string
    command_line; // argv of rank 0 as it is sent to the other ranks: each word ends with a null byte
static std::function<void()> parse; // sets the options from command_line
static bool alone;                  // started without mpirun or another launcher

static inline void options_of_ranks(int argc, char **argv, const char *doc, unsigned uses,
                                    std::initializer_list<Option> own) {
    std::vector<Option> rows = own;
    rows.push_back(OPTION_END);
    for (int i = 0; i < argc; i++)
        command_line.append(argv[i], strlen(argv[i]) + 1);
    parse = [=, words = std::vector<char *>()]() mutable {
        for (size_t at = 0; at < command_line.size(); at += strlen(&command_line[at]) + 1)
            words.push_back(&command_line[at]);
        words.push_back(NULL);
        parse_options((int)words.size() - 1, words.data(), doc, uses, rows.data());
    };
    alone = !getenv("PMIX_RANK") && !getenv("PMI_RANK") && !getenv("OMPI_COMM_WORLD_RANK");
    if (!alone)
        return;
    parse();
    try_start("MPI", [] {
        MPI_Init(NULL, NULL);
        MPI_Finalize();
    });
}

static inline void share_options(void) {
    HANDLE_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)); // HANDLE_MPI reports errors
    on_exit(end_all_ranks, NULL);
    if (ranks > 1) {
        setvbuf(stdout, NULL, _IOLBF, 0); // lines that are printed before MPI_Abort() are not lost
        setenv("NO_COLOR", "1", 1); // no preview of pictures, also if stdout is a pseudoterminal of mpirun
    }
    on_rank_0_first([] {
        if (rank == 0 && !alone)
            parse();
    });
    size_t bytes = command_line.size();
    broadcast(&bytes, sizeof(bytes));
    command_line.resize(bytes);
    broadcast(&command_line[0], bytes);
    static char name[64]; // the beginning of the messages of this rank
    if (rank != 0) {
        check_picture_options = NULL; // rank 0 writes the picture
        parse();
        snprintf(name, sizeof(name), "%s: rank %d", options.program, rank);
        options.program = name;
        options.uses &= ~TIMES; // only rank 0 prints the name of its device
    }
}

// On the CPU back end every process has its own worker threads. This divides the cores of a node among its
// ranks. mpirun may have bound the process to fewer cores.
static inline void share_cores(void) {
    long share = max_of(sysconf(_SC_NPROCESSORS_ONLN) / ranks_of_node, 1);
    long workers = min_of(share, max_of(std::thread::hardware_concurrency(), 1));
    if (CPU_BACKEND && ranks_of_node > 1)
        setenv("CUDA_CPU_WORKERS", std::to_string(workers).c_str(), 0);
}

static inline void select_device_of_rank(void) {
    int rank_of_node, count = 0;
    HANDLE_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node_comm));
    HANDLE_MPI(MPI_Comm_rank(node_comm, &rank_of_node));
    HANDLE_MPI(MPI_Comm_size(node_comm, &ranks_of_node));
    share_cores();
    on_rank_0_first([&] {
        // select_device() reports an error, and a device that does not exist.
        if (cudaGetDeviceCount(&count) == cudaSuccess && options.device < count)
            options.device = (options.device + rank_of_node) % count;
        select_device();
    });

    // Which ranks have the same device. A job manager may show each rank a device of its own under the number
    // 0, so the identifiers are compared.
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, options.device));
    HostArray<cudaUUID_t> of_rank(ranks_of_node);
    HANDLE_MPI(MPI_Allgather(&prop.uuid, sizeof(prop.uuid), MPI_BYTE, of_rank, sizeof(prop.uuid), MPI_BYTE,
                             node_comm));
    bool first = true;
    for (int i = 0; i < ranks_of_node; i++)
        if (memcmp(&of_rank[i], &prop.uuid, sizeof(prop.uuid)) == 0) {
            ranks_of_device++;
            first = first && i >= rank_of_node;
        }
    int mine[] = {first, rank_of_node == 0}, all[2];
    HANDLE_MPI(MPI_Allreduce(mine, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    devices_shared = all[0] < ranks;
    if (rank == 0 && devices_shared && exclusive)
        quit(EXIT_WAIVED, "needs %d GPUs, one for each rank, found %d", ranks, all[0]);
    if (rank == 0 && ranks > 1)
        printf("%d ranks on %d node%s %s %d device%s\n", ranks, all[1], all[1] == 1 ? "" : "s",
               devices_shared ? "share" : "use", all[0], all[0] == 1 ? "" : "s");
}

static inline void require_memory_for_ranks(size_t host, size_t device) {
    on_rank_0_first([&] { require_memory(host * ranks_of_node, device * ranks_of_device); });
    HANDLE_MPI(MPI_Barrier(MPI_COMM_WORLD)); // no rank allocates before all ranks have checked
}
