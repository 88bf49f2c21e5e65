// SPDX-License-Identifier: MIT
/*
 * hello_world: a C program is a CUDA C program
 *
 * Teaches: nvcc passes host code on to the host's C++ compiler, so an ordinary C program that is valid C++
 *          is a CUDA C program too. Nothing here runs on a device.
 * Terms:   host, device, nvcc
 * Book:    3.2.1
 * Build:   nvcc -o hello_world chapter03/hello_world.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter03/hello_world
 */
#include "../common/book.h"

int main(int argc, char **argv) {
    settings(argc, argv); // reads the command line; defined below
    printf("Hello, World!\n");
    return EXIT_SUCCESS;
}

// ---------------------------------------------------------------------------------------- check

// In every program, the part below this line has the options, the limits and the check of the result.
void settings(int argc, char **argv) {
    // HOST_ONLY: uses no device unless --device asks for one
    configure(argc, argv, "Prints a greeting from the host.", HOST_ONLY);
}

// Task: none: it computes nothing and prints one line from the host
