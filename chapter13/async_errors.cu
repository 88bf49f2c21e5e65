// SPDX-License-Identifier: MIT
/*
 * async_errors: which call reports the error of a launch, and which one the error of a kernel
 *
 * Teaches: A launch returns no value. If CUDA refuses it, cudaGetLastError() returns the error at once and
 *          clears it, and the program can go on. If a kernel fails while it runs, the first call that waits
 *          for it returns the error, and so does every call after it: such an error is sticky, and only
 *          another process can use the device again.
 * Terms:   sticky error, asynchronous launch, launch, context
 * Book:    3.2.3 (after the book)
 * Since:   every toolkit and GPU of today
 * Build:   nvcc -o async_errors chapter13/async_errors.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter13/async_errors
 * Differs: as chapter03/simple_kernel_params, with mistakes. On the CPU back end a kernel has ended when
 *          its launch returns, so its error is known there; with CUDA_CPU_STREAMS=late in the environment it
 *          comes when the host waits, as on a GPU.
 * Expect:  1
 */
#include <sys/wait.h>
#include <unistd.h>
#include "../common/book.h"

static void fail_while_running(void);
static void fail_at_launch(void);
static bool check(const cudaError_t *seen, bool while_running);
static void require(bool right);

static cudaError_t seen[8]; // what report() has printed
static int reports;

// The kernel runs for this number of cycles, so that the host asks for its error while it runs.
__global__ void add(int a, int b, int *c, long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles)
        ;
    *c = a + b;
}

static void report(const char *call, cudaError_t error) {
    printf("  %-40s %s\n", call, cudaGetErrorName(error));
    seen[reports++] = error;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    // After an error of execution a process cannot use the device any more, so the kernel that fails gets a
    // process of its own. A child process cannot use the context of its parent, so no call of CUDA comes
    // before fork().
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        fail_while_running(); // does not return
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        quit(EXIT_FAILURE, "cannot run a process of its own");
    if (WEXITSTATUS(status) == EXIT_WAIVED || WEXITSTATUS(status) == EXIT_USAGE)
        return WEXITSTATUS(status); // it has found no device, and has said so
    printf("That process has ended with status %d. This one uses the device:\n", WEXITSTATUS(status));
    fail_at_launch();
    return WEXITSTATUS(status);
}

static void fail_while_running(void) {
    select_device();
    int *dev_c, *more;
    HANDLE_ERROR(cudaMalloc((void **)&dev_c, sizeof(int)));

    printf("A kernel stores to address 0:\n");
    add<<<1, 1>>>(2, 7, NULL, 20000000);
    // No error yet: the launch was accepted, and the kernel runs. HANDLE_LAUNCH() would see no error, either.
    report("cudaPeekAtLastError()", cudaPeekAtLastError());
    report("cudaDeviceSynchronize()", cudaDeviceSynchronize());
    report("cudaGetLastError()", cudaGetLastError());
    report("cudaMalloc()", cudaMalloc((void **)&more, sizeof(int)));
    require(check(seen, true));

    // Each further call returns the error of the kernel, so the message of HANDLE_ERROR names a call that is
    // correct. compute-sanitizer names the line of the store. With CUDA_LAUNCH_BLOCKING=1 in the environment
    // a launch waits for its kernel, and HANDLE_LAUNCH() sees the error.
    printf("  HANDLE_ERROR(cudaFree(dev_c)) ends the process\n");
    HANDLE_ERROR(cudaFree(dev_c));
    exit(EXIT_SUCCESS); // not reached
}

static void fail_at_launch(void) {
    select_device();
    int c, *dev_c, *more;
    HANDLE_ERROR(cudaMalloc((void **)&dev_c, sizeof(int)));

    printf("A launch has too many threads:\n");
    add<<<1, 2048>>>(2, 7, dev_c, 0);
    report("cudaPeekAtLastError()", cudaPeekAtLastError()); // does not clear the error
    report("cudaGetLastError()", cudaGetLastError());       // clears it
    report("cudaGetLastError() again", cudaGetLastError());

    // The last error may come from any earlier call, and a call that succeeds does not clear it. Here the
    // status of cudaMalloc() is not checked. After the launch, which is correct, HANDLE_LAUNCH() would end
    // the program with the error of cudaMalloc() and the line of the launch.
    printf("A call fails before a launch:\n");
    report("cudaMalloc(), 2^60 bytes", cudaMalloc((void **)&more, (size_t)1 << 60));
    report("cudaMemset()", cudaMemset(dev_c, 0, sizeof(int)));
    add<<<1, 1>>>(2, 7, dev_c, 0);
    report("cudaGetLastError() after the launch", cudaGetLastError());

    // None of these errors is sticky: the kernel has run, and the device can be used.
    HANDLE_ERROR(cudaMemcpy(&c, dev_c, sizeof(int), cudaMemcpyDeviceToHost));
    printf("  2 + 7 = %d\n", c);
    require(check_value("sum", c, 9, 0) && check(seen, false));
    HANDLE_ERROR(cudaFree(dev_c));
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    parse_options(argc, argv, "Shows which call reports an error.", 0, {});
    if (options.list_devices)
        select_device();
}

// After the launch the kernel may have ended: on the CPU back end, unless its streams are late, and with
// CUDA_LAUNCH_BLOCKING. The launch that is refused is an invalid configuration by the documentation; on an
// H200 (CUDA 13.0) it is an invalid value.
static bool check(const cudaError_t *seen, bool while_running) {
    const int bad = cudaErrorIllegalAddress;
    const int refused = seen[0] == cudaErrorInvalidValue ? seen[0] : cudaErrorInvalidConfiguration;
    const int running[] = {seen[0] == bad ? bad : cudaSuccess, bad, bad, bad};
    const int at_launch[] = {refused, refused, 0, cudaErrorMemoryAllocation, 0, cudaErrorMemoryAllocation};
    int got[6];
    std::copy(seen, seen + 6, got);
    return while_running ? check_ints("error", got, running, 4) : check_ints("error", got, at_launch, 6);
}

// The kernel that fails makes the status of this program 1, which its header expects. If something else is
// wrong, the status is 0.
static void require(bool right) {
    if (!right)
        exit(EXIT_SUCCESS);
}

// Task: none: its launches are wrong on purpose; the exercise is chapter03/simple_kernel_params
