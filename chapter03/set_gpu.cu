// SPDX-License-Identifier: MIT
/*
 * set_gpu: choosing a device by its properties
 *
 * Teaches: A program can describe the device that it needs in a cudaDeviceProp. cudaChooseDevice
 *          returns the closest one, and cudaSetDevice makes it the current device. cudaChooseDevice
 *          always returns a device, so the program has to check whether it meets the requirements.
 * Terms:   device properties, compute capability, current device, device
 * Book:    3.4
 * Build:   nvcc -o set_gpu chapter03/set_gpu.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter03/set_gpu --major 9 --minor 0
 * Differs: requires compute capability 9.0. All devices of today meet the book's 1.3, so cudaChooseDevice
 *          could return any. Prints which devices meet the requirements. --most picks the one with the most
 *          multiprocessors, of all or of one kind.
 * Check:   --major 8 --minor 1 | --major 8 | --major 7 --minor 5 | --memory 5000000000 |
 *          --memory 90000000000 | --most any
 */
#include "../common/book.h"

static int major = 9, minor = 0; // --major, --minor
static size_t memory = 0;        // --memory
static int most = 0;             // --most: 1 any device, 2 an integrated, 3 a discrete one
static int choose_most(void);
static bool check(int current, int chosen);

static bool meets_requirements(const cudaDeviceProp *prop) {
    bool capable = prop->major > major || (prop->major == major && prop->minor >= minor);
    return capable && prop->totalGlobalMem >= memory;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    if (most)
        return choose_most();
    cudaDeviceProp prop;
    int dev, current, count, suitable = 0;

    HANDLE_ERROR(cudaGetDevice(&dev));
    printf("ID of the current CUDA device: %d\n", dev);

    memset(&prop, 0, sizeof(prop)); // members that are 0 require nothing
    prop.major = major;
    prop.minor = minor;
    prop.totalGlobalMem = memory;
    HANDLE_ERROR(cudaChooseDevice(&dev, &prop));
    printf("ID of the CUDA device closest to compute capability %d.%d: %d\n", major, minor, dev);
    HANDLE_ERROR(cudaSetDevice(dev)); // from here on allocations and launches use this device

    // CUDA's documentation does not say how cudaChooseDevice compares devices, so the program looks at all.
    HANDLE_ERROR(cudaGetDeviceCount(&count));
    for (int i = 0; i < count; i++) {
        HANDLE_ERROR(cudaGetDeviceProperties(&prop, i));
        bool meets = meets_requirements(&prop);
        suitable += meets;
        printf("Device %d: %s, compute capability %d.%d, %zu bytes: %s the requirements\n", i, prop.name,
               prop.major, prop.minor, prop.totalGlobalMem, meets ? "meets" : "does not meet");
    }
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, dev));
    if (suitable == 0)
        printf("No device meets the requirements.\n");
    else if (!meets_requirements(&prop))
        printf("This device does not meet the requirements, but another one does.\n");

    HANDLE_ERROR(cudaGetDevice(&current));
    return check(current, dev) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Chooses the device that comes closest to the requirements.", 0,
              {OPTION_INT("major", &major, 1, 99, "required compute capability, before the point"),
               OPTION_INT("minor", &minor, 0, 9, "required compute capability, after the point"),
               OPTION_SIZE("memory", &memory, 0, (size_t)1 << 50, "required bytes of device memory"),
               OPTION_WORD("most", &most, "none|any|integrated|discrete",
                           "chooses the device of this kind with the most multiprocessors instead")});
}

// cudaChooseDevice compares with required values, and cannot look for the largest one. An integrated device
// is in one chip with the host and uses its memory; the others are discrete. Returns the exit status.
static int choose_most(void) {
    int count, current, chosen = -1, largest = 0;
    HANDLE_ERROR(cudaGetDeviceCount(&count));
    for (int i = 0; i < count; i++) {
        cudaDeviceProp prop;
        HANDLE_ERROR(cudaGetDeviceProperties(&prop, i));
        printf("Device %d: %s, %d multiprocessors, %s\n", i, prop.name, prop.multiProcessorCount,
               prop.integrated ? "integrated" : "discrete");
        if ((most == 1 || prop.integrated == (most == 2)) && prop.multiProcessorCount > largest) {
            chosen = i;
            largest = prop.multiProcessorCount;
        }
    }
    if (chosen < 0)
        quit(EXIT_WAIVED, "needs %s device, found none", most == 2 ? "an integrated" : "a discrete");
    HANDLE_ERROR(cudaSetDevice(chosen));
    HANDLE_ERROR(cudaGetDevice(&current));
    printf("ID of the device with the most multiprocessors: %d\n", current);
    return check_value("current device", current, chosen, 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// Whether a device with these properties meets the requirements
static int meets(int of_major, int of_minor, size_t bytes) {
    cudaDeviceProp prop = {};
    prop.major = of_major;
    prop.minor = of_minor;
    prop.totalGlobalMem = bytes;
    return meets_requirements(&prop);
}

// The chosen device must be the current one, and the one that the options alone ask for; `make check` has
// devices that differ. Exactly what is required suffices, and so does a newer device, but nothing less.
static bool check(int current, int chosen) {
    cudaDeviceProp wanted = {};
    int expected;
    wanted.major = major;
    wanted.minor = minor;
    wanted.totalGlobalMem = memory;
    HANDLE_ERROR(cudaChooseDevice(&expected, &wanted));
    memory++; // so that it is not 0, and `memory - 1` is a device with less
    const int got[] = {chosen,
                       current,
                       meets(major, minor, memory),
                       meets(major + 1, minor - 1, memory),
                       meets(major, minor - 1, memory),
                       meets(major - 1, minor + 1, memory),
                       meets(major, minor, memory - 1)};
    const int right[] = {expected, chosen, 1, 1, 0, 0, 0};
    return check_ints("chosen device, current device, requirements", got, right, 7);
}

// Task: none: it asks the runtime to choose a device, and most machines have only one
