// SPDX-License-Identifier: MIT
/*
 * cu2cpp: translates preprocessed CUDA C++ to C++ for the CPU back end
 *
 *     cu2cpp INPUT [-o OUTPUT]          INPUT may be - for standard input; without -o, output goes to
 *                                       standard output
 *         -d DEVICE                     the same source, preprocessed with __CUDA_ARCH__
 *         -f                            kernels with barriers are not split into loops
 *         -e                            says on standard output which kernels are split; writes no output
 *         -w                            other files cannot use the device functions and variables
 *
 * These constructs of CUDA, which C++ lacks, are rewritten in place:
 *
 *     k<<<g, b>>>(x)                                launch.c
 *     __global__ void k(int x) { … }                kernel.c; if it has barriers, also split.c
 *     __shared__ T x[4];  extern __shared__ T x[];  shared.c
 *     __device__ T x;  __device__ void f() { … }    device.c
 *     volatile T *x = y; (in device code)           volatile.c
 *     a << b; a >>= b;  (in device code)            shift.c
 *     (int)x; int i = x;  (in device code)          convert.c
 *     asm("add.u32 %0, %1, %2;" …); (inline PTX)    ptx.c
 *
 * All other tokens stay the same. Blanks and linemarkers are added, so that the compiler, the debugger and
 * the sanitizers report lines and columns of the .cu (output.c).
 *
 * With -d, the texts for the host and for the device are merged first (merge.c). lex.c splits the text into
 * tokens, token.c pairs the brackets, and one pass over the tokens keeps track of the scope (scope.c) and
 * collects edits. This is not a full C++ parser: it knows no names, so it decides by the form of the tokens
 * (declaration.c). A construct that it cannot parse is an error with file and line; it is never passed
 * through unchanged.
 */
#include "translate.h"
#include <errno.h>
#include <unistd.h>

static Unit new_unit(Text source, const char *name) {
    Unit unit = {.source = source, .files = grow(NULL, 1, sizeof(File))};
    *unit.files = (File){.name = name, .length = strlen(name), .is_input = true};
    lex(&unit);
    pair_brackets(&unit);
    return unit;
}

static Unit read_unit(const char *name) {
    Text source = {0};
    FILE *in = strcmp(name, "-") ? fopen(name, "rb") : stdin;
    if (!in)
        fail_file(name);
    read_file(in, &source);
    if (source.length >= 1 << 30)
        errno = EFBIG;
    if (source.length >= 1 << 30 || ferror(in))
        fail_file(name);
    if (in != stdin)
        fclose(in);
    return new_unit(source, in == stdin ? "<stdin>" : name);
}

int main(int argc, char **argv) {
    const char *output = NULL, *device = NULL;
    bool whole_program = false, only_fibers = false, explain = false;
    int option;
    opterr = 0;
    while ((option = getopt(argc, argv, "o:d:wfe")) != -1 && option != '?')
        if (option == 'w')
            whole_program = true;
        else if (option == 'f')
            only_fibers = true;
        else if (option == 'e')
            explain = true;
        else
            *(option == 'o' ? &output : &device) = optarg;
    if (option != -1 || optind + 1 != argc) {
        fputs("usage: cu2cpp INPUT [-d DEVICE] [-w] [-f] [-e] [-o OUTPUT]\n", stderr);
        return 64;
    }
    Unit unit = read_unit(argv[optind]);
    if (device) {
        Unit for_device = read_unit(device);
        unit = new_unit(merge(&unit, &for_device), for_device.files->name);
    }
    Text expanded;
    if ((!only_fibers || explain) && expand(&unit, &expanded)) {
        // Kernels that cannot be split run with fibers, which need their text as it was.
        Unit trial = new_unit(expanded, unit.files->name);
        trial.trial = true;
        forget_functions();
        translate(&trial);
        forget_functions();
        if (expand(&unit, &expanded))
            unit = new_unit(expanded, unit.files->name);
    }
    forget_functions();
    unit.whole_program = whole_program;
    unit.only_fibers = only_fibers || explain;
    unit.explain = explain;
    translate(&unit);
    if (explain)
        return EXIT_SUCCESS;
    write_output(&unit, output);
    return EXIT_SUCCESS;
}
