// SPDX-License-Identifier: MIT
/*
 * set_gpu: choose a device by what it can do
 *
 * Teaches: A program can make a wish and take the device that comes closest. cudaChooseDevice
 *          always has an answer, so whether it is what was wished for is left to the caller.
 * Book:    3.4
 * Run:     ./bin/chapter03/set_gpu
 * Differs: asks for compute capability 9.0, the first with clusters of thread blocks, which a
 *          device of today can lack; the book's 1.3 for double precision every device has.
 *          --major, --minor and --memory make other wishes. Says whether the device chosen
 *          fulfils them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../common/book.h"

static bool fulfils(const cudaDeviceProp *device, const cudaDeviceProp *wish) {
    bool capable = device->major > wish->major ||
                   (device->major == wish->major && device->minor >= wish->minor);
    return capable && device->totalGlobalMem >= wish->totalGlobalMem;
}

int main(int argc, char **argv) {
    cudaDeviceProp prop, wish;
    memset(&wish, 0, sizeof wish); // zero is no wish
    wish.major = 9;
    wish.minor = 0;
    const Option own[] = {
        OPTION_INT("major", &wish.major, 1, 99, "compute capability before the point"),
        OPTION_INT("minor", &wish.minor, 0, 9, "compute capability after the point"),
        OPTION_SIZE("memory", &wish.totalGlobalMem, 0, (size_t)1 << 50, "bytes of device memory"),
        OPTION_END};
    parse_options(argc, argv, "Chooses the device that comes closest to a wish.", 0, own);
    select_device();

    int count, current, chosen, candidates = 0;
    HANDLE_ERROR(cudaGetDeviceCount(&count));
    for (int i = 0; i < count; i++) {
        HANDLE_ERROR(cudaGetDeviceProperties(&prop, i));
        bool good = fulfils(&prop, &wish);
        candidates += good;
        printf("Device %d: %s, compute capability %d.%d, %zu bytes: %s\n", i, prop.name, prop.major,
               prop.minor, prop.totalGlobalMem, good ? "fulfils the wish" : "falls short");
    }

    HANDLE_ERROR(cudaGetDevice(&current));
    printf("ID of the current CUDA device: %d\n", current);

    HANDLE_ERROR(cudaChooseDevice(&chosen, &wish));
    printf("ID of the CUDA device closest to compute capability %d.%d: %d\n", wish.major,
           wish.minor, chosen);

    HANDLE_ERROR(cudaSetDevice(chosen));
    HANDLE_ERROR(cudaGetDevice(&current));
    inject_error(&current, sizeof current);

    // How the properties are weighed is not documented: a choice that falls short is worth a line,
    // no failure.
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, chosen));
    if (candidates == 0)
        printf("No device fulfils the wish: this one has to do.\n");
    else if (!fulfils(&prop, &wish))
        printf("It falls short, and another device would fulfil the wish.\n");

    bool ok = check_ints("current device", &current, &chosen, 1);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
