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
 *     cu2cpp --tokens INPUT             prints the tokens of a source, preprocessed or not (lex.c)
 *
 * These constructs of CUDA, which C++ lacks, are rewritten in place:
 *
 *     k<<<g, b>>>(x)                                launch.c
 *     __global__ void k(int x) { … }                kernel.c; if it becomes loops, also loops/
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
 * tokens, token.c pairs the brackets, and one pass over the tokens keeps track of the scope (translate.c) and
 * collects edits. This is not a full C++ parser: it knows no names, so it decides by the form of the tokens
 * (declaration.c). A construct that it cannot parse is an error with file and line; it is never passed
 * through unchanged.
 */
#include "translate.h"
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--tokens") == 0) {
        print_file(argv[2]);
        return EXIT_SUCCESS;
    }
    Translation how = {0};
    int option;
    opterr = 0;
    while ((option = getopt(argc, argv, "o:d:wfe")) != -1 && option != '?')
        if (option == 'w')
            how.whole_program = true;
        else if (option == 'f')
            how.only_fibers = true;
        else if (option == 'e')
            how.explain = true;
        else
            *(option == 'o' ? &how.output : &how.device) = optarg;
    if (option != -1 || optind + 1 != argc) {
        fputs("usage: cu2cpp INPUT [-d DEVICE] [-w] [-f] [-e] [-o OUTPUT]\n", stderr);
        return 64;
    }
    how.input = argv[optind];
    translate_file(&how);
    return EXIT_SUCCESS;
}
