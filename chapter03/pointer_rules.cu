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
 * Book:    3.2.3 (after the book)
 * Build:   nvcc -o pointer_rules chapter03/pointer_rules.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter03/pointer_rules
 * Differs: the book states the rules and has no program for them. Since CUDA 4.0
 *          (unified addressing) a kernel may use the host's pointer to page-locked memory, and cudaMemcpy
 *          may be called with cudaMemcpyDefault.
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

enum Use { KERNEL_READS, HOST_READS, CUDA_FREE, FREE, COPY };
// LOST: CUDA says success, and the value is not there.
enum { WORKED = 1, FAILED = 2, ENDED = 4, LOST = 8, ANYTHING = WORKED | FAILED | ENDED | LOST };

typedef struct Rule {
    char text[64];
    Use use;
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
    bool types;      // whether cudaPointerGetAttributes returned the documented types
    int pageable;    // whether kernels can use pageable memory of the host
    int coherent;    // whether they use the page tables of the host for that
} * shared;

static int *host, *pinned, *dev; // [0] is VALUE, [1] is 0
static void make_rules(void);
static void make_pointers(void);
static void print_pointers(void);
static void be_silent(void);
static bool check(void);

__global__ void read_through(const int *pointer, int *seen) {
    *seen = *pointer;
}

static void try_rule(Rule *rule) {
    int *pointer = *rule->from;
    switch (rule->use) {
    case KERNEL_READS: { // a function of the host may get a device pointer and pass it on
        read_through<<<1, 1>>>(pointer, dev + 1);
        cudaError_t error = cudaGetLastError();
        if (error == cudaSuccess) // the copy waits for the kernel, and returns its error too
            error = cudaMemcpy(&rule->seen, dev + 1, sizeof(int), cudaMemcpyDeviceToHost);
        rule->error = error;
        break;
    }
    case HOST_READS:
        rule->seen = *pointer;
        break;
    case CUDA_FREE:
        rule->error = cudaFree(pointer);
        break;
    case FREE:
        free(pointer);
        break;
    case COPY: // with cudaMemcpyDefault CUDA finds the direction from the pointers
        rule->error = cudaMemcpy(*rule->to + 1, pointer, sizeof(int), rule->kind);
        HANDLE_ERROR(cudaMemcpy(&rule->seen, *rule->to + 1, sizeof(int), cudaMemcpyDefault));
        break;
    }
}

// What CUDA knows of a pointer. One that CUDA has not seen is taken for a pointer to memory of the host.
static cudaMemoryType type_of(const void *pointer) {
    cudaPointerAttributes attributes;
    HANDLE_ERROR(cudaPointerGetAttributes(&attributes, pointer));
    return attributes.type;
}

// The first CUDA call initializes CUDA for its process, and a child process cannot use that of its parent. So
// the parent makes no CUDA call.
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
    select_device();
    while (shared->next < shared->count) {
        Rule *rule = &shared->rules[shared->next];
        if (strcmp(rule->documented, "works") != 0)
            be_silent();
        make_pointers();
        try_rule(rule);
        if (rule->error != cudaSuccess && rule->expected == WORKED)
            quit(EXIT_FAILURE, "%s: %s", rule->text, cudaGetErrorName(rule->error));
        (void)cudaGetLastError(); // clears the error, so that the check of the next launch does not see it
        shared->next++;
        cudaError_t error = cudaDeviceSynchronize();
        if (error != cudaSuccess || rule->use == FREE)
            return;
    }
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int status = in_child(print_pointers);
    make_rules();
    while (status == 0 && shared->next < shared->count) {
        status = in_child(try_rules);
        Rule *rule = &shared->rules[shared->next];
        if (status != 0 && rule->expected != WORKED) { // the rule has ended the process
            rule->status = status;
            shared->next++;
            status = 0;
        }
    }
    if (WIFSIGNALED(status))
        quit(EXIT_FAILURE, "signal %d ended a process", WTERMSIG(status));
    if (status != 0) // the process has printed why; 2 if there is no device
        return WEXITSTATUS(status);
    return check() ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

static bool allowed; // --allowed

// On the CPU back end memory of the device is then out of the host's reach, as that of a GPU is.
void settings(int argc, char **argv) {
    parse_options(argc, argv, "Keeps and breaks the rules for pointers.", 0,
                  {OPTION_FLAG("allowed", &allowed, "only keeps them")});
    if (options.list_devices)
        select_device();
    setenv("CUDA_CPU_CHECK", "1", 1);
    shared = (Shared *)mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        quit(EXIT_FAILURE, "out of memory: %s", strerror(errno));
}

static void add_rule(const char *text, Use use, int **from, const char *documented, int expected,
                     int **to = NULL, int kind = 0) {
    if (allowed && expected != WORKED)
        return;
    Rule *rule = &shared->rules[shared->count++];
    int seen = use == CUDA_FREE || use == FREE ? VALUE : 0; // the others must read it
    *rule = {"", use, from, to, (cudaMemcpyKind)kind, documented, expected, cudaSuccess, seen, 0};
    snprintf(rule->text, sizeof(rule->text), "%s", text);
}

static void add_copies(bool fit) {
    static const char *const kinds[] = {"HostToHost", "HostToDevice", "DeviceToHost", "DeviceToDevice",
                                        "Default"};
    for (int i = 0; i < 20; i++) {
        int from = i / 10, to = i / 5 % 2, kind = i % 5;
        char text[64];
        snprintf(text, sizeof(text), "%s to %s, cudaMemcpy%s", from ? "device" : "host",
                 to ? "device" : "host", kinds[kind]);
        if (fit == (kind == cudaMemcpyDefault || kind == 2 * from + to))
            add_rule(text, COPY, from ? &dev : &host, fit ? "works" : "undefined", fit ? WORKED : ANYTHING,
                     to ? &dev : &host, kind);
    }
}

// First what is allowed. On the CPU back end a kernel runs in the process of the host, and the sanitizers of
// the compiler let the host read all memory. Coherent machines may let it read memory of the GPU.
static void make_rules(void) {
    add_rule("kernel reads memory of cudaMalloc", KERNEL_READS, &dev, "works", WORKED);
    add_rule("kernel reads memory of cudaHostAlloc", KERNEL_READS, &pinned, "works", WORKED);
    add_rule("cudaFree() of memory of cudaMalloc", CUDA_FREE, &dev, "works", WORKED);
    add_copies(true);
    add_rule("kernel reads memory of malloc", KERNEL_READS, &host, shared->pageable ? "works" : "an error",
             CPU_BACKEND || shared->pageable ? WORKED : FAILED);
    add_rule("cudaFree() of memory of malloc", CUDA_FREE, &host, "an error", FAILED);
    add_rule("host reads memory of cudaMalloc", HOST_READS, &dev, "undefined",
             CPU_BACKEND || shared->coherent ? ENDED | WORKED : ENDED);
    add_rule("free() of memory of cudaMalloc", FREE, &dev, "undefined", ANYTHING);
    add_copies(false);
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

// In a child process that breaks rules: no messages, since the table says what happened, and no core file
static void be_silent(void) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    if (!freopen("/dev/null", "w", stderr))
        quit(EXIT_FAILURE, "cannot open /dev/null: %s", strerror(errno));
}

__device__ int variable;

// In a child process
static void print_pointers(void) {
    static const char *const names[] = {"Unregistered", "Host", "Device", "Managed"};
    int *managed, got[6], expected[6];
    void *symbol;
    select_device();
    make_pointers();
    HANDLE_ERROR(cudaMallocManaged(&managed, sizeof(int)));
    HANDLE_ERROR(cudaGetSymbolAddress(&symbol, variable));
    const struct {
        const char *origin;
        const void *pointer;
        int type;
    } pointers[] = {{"malloc", host, cudaMemoryTypeUnregistered},
                    {"cudaHostAlloc", pinned, cudaMemoryTypeHost},
                    {"cudaMalloc", dev, cudaMemoryTypeDevice},
                    {"the element after it", dev + 1, cudaMemoryTypeDevice},
                    {"a __device__ variable", symbol, cudaMemoryTypeDevice},
                    {"cudaMallocManaged", managed, cudaMemoryTypeManaged}};
    printf("%-42s | %s\n", "pointer", "cudaPointerGetAttributes");
    for (int i = 0; i < 6; i++) {
        got[i] = type_of(pointers[i].pointer);
        expected[i] = pointers[i].type;
        printf("%-42s | cudaMemoryType%s\n", pointers[i].origin, names[got[i] & 3]);
    }
    shared->types = check_ints("types of memory", got, expected, 6);
    shared->pageable = device_attribute(cudaDevAttrPageableMemoryAccess);
    shared->coherent = device_attribute(cudaDevAttrPageableMemoryAccessUsesHostPageTables);
    printf("\nKernels can%s use memory of malloc: pageableMemoryAccess is %d.\n\n",
           shared->pageable ? "" : "not", shared->pageable);
}

// Prints what happened, and returns it as a bit.
static int print_outcome(const Rule *rule) {
    printf("%-42s | %-12s | ", rule->text, rule->documented);
    if (rule->status)
        printf(WIFSIGNALED(rule->status) ? "signal %d ended the process\n"
                                         : "the process ended with status %d\n",
               WIFSIGNALED(rule->status) ? WTERMSIG(rule->status) : WEXITSTATUS(rule->status));
    else if (rule->error != cudaSuccess)
        puts(cudaGetErrorName(rule->error)); // needs no device
    else
        puts(rule->seen == VALUE ? "worked" : "success, but the value is not there");
    return rule->status ? ENDED : rule->error != cudaSuccess ? FAILED : rule->seen != VALUE ? LOST : WORKED;
}

static bool check(void) {
    int got[32], expected[32];
    printf("%-42s | %-12s | %s\n", "rule", "documented", "what happened");
    for (int i = 0; i < shared->count; i++) {
        got[i] = print_outcome(&shared->rules[i]);
        expected[i] = got[i] & shared->rules[i].expected ? got[i] : shared->rules[i].expected;
    }
    if (CPU_BACKEND)
        puts("On the CPU back end kernels can read all memory of the host.");
    return check_ints("outcomes", got, expected, shared->count) && shared->types;
}

// Task: type_of(): Return the type of the memory that the pointer points to, as cudaPointerGetAttributes
// says.
