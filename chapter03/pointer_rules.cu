// SPDX-License-Identifier: MIT
/*
 * pointer_rules: what happens when a pointer is used on the wrong side
 *
 * Teaches: A pointer to memory of the device has the same type as one to memory of the host, so the
 *          compiler accepts either one everywhere. Each rule for pointers is kept or broken in a child
 *          process, since a wrong access may end it. cudaPointerGetAttributes says what memory a pointer
 *          points to.
 * Terms:   device pointer, device memory, host, pageable memory, page-locked memory, managed memory, unified
 *          addressing
 * Book:    3.2.3 (lab)
 * Build:   nvcc -o pointer_rules chapter03/pointer_rules.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter03/pointer_rules
 * Differs: the book states the rules and has no program for them. Page-locked memory in kernels and
 *          cudaMemcpyDefault came with unified addressing, in CUDA 4.0.
 * Check:   --allowed
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../common/book.h"

#define VALUE 7

typedef struct Rule {
    char text[64];
    void (*try_it)(struct Rule *rule);
    int **from, **to; // the pointers that it uses: &host, &pinned or &dev
    cudaMemcpyKind kind;
    const char *documented;
    int expected; // outcomes, as bits
    // What the child process found:
    cudaError_t error;
    int seen;   // must be VALUE
    int status; // of the process, if the rule ended it
} Rule;

// Memory that the child processes share with their parent
static struct Shared {
    Rule rules[32];
    int count, next; // next: the rule to try
    int kinds[8];    // what cudaPointerGetAttributes says of eight pointers
    int pageable;    // whether kernels can use pageable memory of the host
    int coherent;    // whether they use the page tables of the host for that
} * shared;

static int *host, *pinned, *dev; // [0] is VALUE, [1] is 0
static void make_rules(void);
static void make_pointers(void);
static void print_pointers(void);
static void keep_messages(void);
static bool may_fail(const Rule *rule);
static void ended(Rule *rule, int status);
static bool check(void);

__global__ void read_through(const int *pointer, int *seen) {
    *seen = *pointer;
}

// ---- The rules

// A function of the host may get a device pointer and pass it on, as this one does.
static void kernel_reads(Rule *rule) {
    read_through<<<1, 1>>>(*rule->from, dev + 1);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) // the copy waits for the kernel, and returns its error too
        error = cudaMemcpy(&rule->seen, dev + 1, sizeof(int), cudaMemcpyDeviceToHost);
    rule->error = error;
}

static void host_reads(Rule *rule) {
    rule->seen = **rule->from;
}

static void free_as_device(Rule *rule) {
    rule->error = cudaFree(*rule->from);
}

static void free_as_host(Rule *rule) {
    free(*rule->from);
}

// `kind` may be another direction than that of the pointers.
static void copy(Rule *rule) {
    int *to = *rule->to + 1;
    rule->error = cudaMemcpy(to, *rule->from, sizeof(int), rule->kind);
    HANDLE_ERROR(cudaMemcpy(&rule->seen, to, sizeof(int), cudaMemcpyDefault)); // as the pointers say
}

// What CUDA knows of a pointer. A pointer that CUDA has not seen is taken for one to memory of the host.
static cudaMemoryType kind_of(const void *pointer) {
    cudaPointerAttributes attributes;
    HANDLE_ERROR(cudaPointerGetAttributes(&attributes, pointer));
    return attributes.type;
}

// ---- Processes. The first CUDA call initializes CUDA for its process; a child process cannot use that of
// its parent. So the parent makes no CUDA call.

static int in_child(void (*function)(void)) {
    fflush(stdout); // or the child would print it again
    pid_t child = fork();
    int status;
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // the child ends when the program is killed
        function();
        fflush(stdout);
        _exit(EXIT_SUCCESS);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        quit(EXIT_FAILURE, "cannot run a process: %s", strerror(errno));
    return status;
}

// Tries one rule after another, until one ends this process, or leaves it without a usable device or heap.
static void try_rules(void) {
    keep_messages();
    select_device();
    while (shared->next < shared->count) {
        Rule *rule = &shared->rules[shared->next];
        make_pointers();
        rule->try_it(rule);
        if (rule->error != cudaSuccess && !may_fail(rule))
            quit(EXIT_FAILURE, "%s: %s", rule->text, cudaGetErrorName(rule->error));
        (void)cudaGetLastError(); // otherwise the next launch would report it
        shared->next++;
        cudaError_t error = cudaDeviceSynchronize();
        if (error != cudaSuccess || rule->try_it == free_as_host)
            return;
    }
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int status = in_child(print_pointers);
    if (status != 0) // 2 if there is no device
        return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;

    make_rules();
    while (shared->next < shared->count) {
        status = in_child(try_rules);
        if (status != 0)
            ended(&shared->rules[shared->next++], status);
    }
    return check() ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

// LOST: the call says success, and the value is not there.
enum { WORKED = 1, FAILED = 2, ENDED = 4, LOST = 8, ANYTHING = WORKED | FAILED | ENDED | LOST };
static bool allowed; // --allowed
static int messages; // file: stderr of the child processes

// On the CPU back end memory of the device is then out of the host's reach, as that of a GPU is.
void settings(int argc, char **argv) {
    parse_options(argc, argv, "Keeps and breaks the rules for pointers.", 0,
                  {OPTION_FLAG("allowed", &allowed, "only keeps them")});
    if (options.list_devices)
        select_device();
    setenv("CUDA_CPU_CHECK", "1", 1);
    shared = (Shared *)mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    messages = memfd_create("messages", MFD_CLOEXEC);
    if (shared == MAP_FAILED || messages < 0)
        quit(EXIT_FAILURE, "out of memory: %s", strerror(errno));
}

static void add_rule(const char *text, void (*try_it)(Rule *), int **from, int **to, int kind,
                     const char *documented, int expected) {
    if (allowed && expected != WORKED)
        return;
    Rule *rule = &shared->rules[shared->count++];
    *rule = {"", try_it, from, to, (cudaMemcpyKind)kind, documented, expected, cudaSuccess, VALUE, 0};
    snprintf(rule->text, sizeof(rule->text), "%s", text);
}

// On the CPU back end a kernel runs in the process of the host, and the sanitizers of the compiler let the
// host read all memory. On coherent machines it may be able to read memory of the GPU.
static void make_rules(void) {
    static const char *const kinds[] = {"HostToHost", "HostToDevice", "DeviceToHost", "DeviceToDevice",
                                        "Default"};
    static int **const sides[] = {&host, &dev};
    int read = CPU_BACKEND || shared->pageable ? WORKED : FAILED;
    int no_access = CPU_BACKEND || shared->coherent ? ENDED | WORKED : ENDED;
    add_rule("kernel reads memory of cudaMalloc", kernel_reads, &dev, NULL, 0, "works", WORKED);
    add_rule("kernel reads memory of cudaHostAlloc", kernel_reads, &pinned, NULL, 0, "works", WORKED);
    add_rule("kernel reads memory of malloc", kernel_reads, &host, NULL, 0,
             shared->pageable ? "works" : "an error", read);
    add_rule("host reads memory of cudaMalloc", host_reads, &dev, NULL, 0, "undefined", no_access);
    add_rule("cudaFree() of memory of cudaMalloc", free_as_device, &dev, NULL, 0, "works", WORKED);
    add_rule("cudaFree() of memory of malloc", free_as_device, &host, NULL, 0, "an error", FAILED);
    add_rule("free() of memory of cudaMalloc", free_as_host, &dev, NULL, 0, "undefined", ANYTHING);
    for (int i = 0; i < 20; i++) {
        int from = i / 10, to = i / 5 % 2, kind = i % 5;
        bool fits = kind == cudaMemcpyDefault || kind == 2 * from + to;
        char text[64];
        snprintf(text, sizeof(text), "%s to %s, cudaMemcpy%s", from ? "device" : "host",
                 to ? "device" : "host", kinds[kind]);
        add_rule(text, copy, sides[from], sides[to], kind, fits ? "works" : "undefined",
                 fits ? WORKED : ANYTHING);
    }
}

// In a child process: pointers to new memory
static void make_pointers(void) {
    const int values[] = {VALUE, 0};
    host = host_array<int>(2);
    HANDLE_ERROR(cudaHostAlloc(&pinned, sizeof(values), cudaHostAllocMapped));
    HANDLE_ERROR(cudaMalloc(&dev, sizeof(values)));
    memcpy(host, values, sizeof(values));
    memcpy(pinned, values, sizeof(values));
    HANDLE_ERROR(cudaMemcpy(dev, values, sizeof(values), cudaMemcpyHostToDevice));
}

// In a child process: ended() may show its messages. It leaves no core file.
static void keep_messages(void) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    (void)!ftruncate(messages, 0); // removes those of the process before
    lseek(messages, 0, SEEK_SET);
    dup2(messages, STDERR_FILENO);
}

static const struct {
    const char *origin;
    int expected;
} memories[] = {{"malloc", cudaMemoryTypeUnregistered},
                {"a variable of a function", cudaMemoryTypeUnregistered},
                {"malloc, then cudaHostRegister", cudaMemoryTypeHost},
                {"cudaHostAlloc", cudaMemoryTypeHost},
                {"cudaMalloc", cudaMemoryTypeDevice},
                {"cudaMalloc, one element further", cudaMemoryTypeDevice},
                {"a __device__ variable", cudaMemoryTypeDevice},
                {"cudaMallocManaged", cudaMemoryTypeManaged}};

__device__ int variable;

static void print_pointers(void) {
    static const char *const names[] = {"Unregistered", "Host", "Device", "Managed"};
    int local, *managed, *registered = host_array<int>(1024);
    void *symbol;
    select_device();
    shared->pageable = device_attribute(cudaDevAttrPageableMemoryAccess);
    shared->coherent = device_attribute(cudaDevAttrPageableMemoryAccessUsesHostPageTables);
    make_pointers();
    HANDLE_ERROR(cudaHostRegister(registered, 1024 * sizeof(int), cudaHostRegisterDefault));
    HANDLE_ERROR(cudaMallocManaged(&managed, sizeof(int)));
    HANDLE_ERROR(cudaGetSymbolAddress(&symbol, variable));
    const void *const pointers[] = {host, &local, registered, pinned, dev, dev + 1, symbol, managed};
    printf("%-42s | %s\n", "pointer", "cudaPointerGetAttributes");
    for (int i = 0; i < 8; i++) {
        shared->kinds[i] = kind_of(pointers[i]);
        printf("%-42s | cudaMemoryType%s\n", memories[i].origin, names[shared->kinds[i] & 3]);
    }
    printf("\nKernels can%s use memory of malloc: pageableMemoryAccess is %d.\n\n",
           shared->pageable ? "" : "not", shared->pageable);
}

static int outcome_of(const Rule *rule) {
    return rule->status ? ENDED : rule->error != cudaSuccess ? FAILED : rule->seen != VALUE ? LOST : WORKED;
}

static bool may_fail(const Rule *rule) {
    return rule->expected & FAILED;
}

// A process has ended while it tried this rule. If that is not what the rule does, the program ends too, with
// the message of the process.
static void ended(Rule *rule, int status) {
    char text[4096];
    rule->status = status;
    if (rule->expected & ENDED)
        return;
    ssize_t bytes = pread(messages, text, sizeof(text), 0);
    fwrite(text, 1, bytes > 0 ? bytes : 0, stderr);
    if (WIFEXITED(status))
        exit(WEXITSTATUS(status));
    quit(EXIT_FAILURE, "%s: signal %d ended the process", rule->text, WTERMSIG(status));
}

static void print_outcome(const Rule *rule) {
    printf("%-42s | %-12s | ", rule->text, rule->documented);
    if (rule->status && WIFSIGNALED(rule->status))
        printf("signal %d ended the process\n", WTERMSIG(rule->status));
    else if (rule->status)
        printf("the process ended with status %d\n", WEXITSTATUS(rule->status));
    else if (rule->error != cudaSuccess)
        printf("%s\n", cudaGetErrorName(rule->error)); // needs no device
    else
        puts(rule->seen == VALUE ? "worked" : "success, but the value is not there");
}

static bool check(void) {
    int got[32], expected[32], kinds[8];
    printf("%-42s | %-12s | %s\n", "rule", "documented", "what happened");
    for (int i = 0; i < shared->count; i++) {
        const Rule *rule = &shared->rules[i];
        print_outcome(rule);
        got[i] = outcome_of(rule);
        expected[i] = got[i] & rule->expected ? got[i] : rule->expected;
    }
    if (CPU_BACKEND)
        puts("On the CPU back end kernels can read all memory of the host.");
    bool ok = check_ints("outcomes", got, expected, shared->count);
    for (int i = 0; i < 8; i++)
        kinds[i] = memories[i].expected;
    ok = check_ints("kinds of memory", shared->kinds, kinds, 8) && ok;
    munmap(shared, sizeof(*shared));
    return ok;
}

// Task: kind_of(): Return the type of the memory that the pointer points to, as cudaPointerGetAttributes
// says.
