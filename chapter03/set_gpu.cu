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

static bool fulfils(int device, const cudaDeviceProp *wish) {
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, device));
    bool capable =
        prop.major > wish->major || (prop.major == wish->major && prop.minor >= wish->minor);
    bool fulfilled = capable && prop.totalGlobalMem >= wish->totalGlobalMem;
    printf("Device %d: %s, compute capability %d.%d, %zu bytes: %s\n", device, prop.name,
           prop.major, prop.minor, prop.totalGlobalMem,
           fulfilled ? "fulfils the wish" : "falls short");
    return fulfilled;
}

int main(int argc, char **argv) {
    cudaDeviceProp wish;
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
    for (int i = 0; i < count; i++)
        candidates += fulfils(i, &wish);

    HANDLE_ERROR(cudaGetDevice(&current));
    printf("ID of the current CUDA device: %d\n", current);

    HANDLE_ERROR(cudaChooseDevice(&chosen, &wish));
    printf("ID of the CUDA device closest to compute capability %d.%d: %d\n", wish.major,
           wish.minor, chosen);

    HANDLE_ERROR(cudaSetDevice(chosen));
    HANDLE_ERROR(cudaGetDevice(&current));
    inject_error(&current, sizeof current);

    // "Closest" may weigh the properties in another way than we do, so this is worth a line, not a
    // failure.
    if (candidates == 0)
        printf("No device fulfils the wish: this one has to do.\n");
    else if (!fulfils(chosen, &wish))
        printf("%d other would fulfil the wish.\n", candidates);

    bool ok = check_ints("current device", &current, &chosen, 1);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
