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
 *          could return any; --major, --minor and --memory set other requirements. Prints which devices
 *          meet them. --most picks the one with the most multiprocessors, of all or of one kind.
 * Check:   --major 8 --minor 1 | --major 8 | --major 7 --minor 5 | --memory 5000000000 |
 *          --memory 90000000000 | --most any
 */
#include "../common/book.h"

static int major = 9, minor = 0; // --major, --minor
static size_t memory = 0;        // --memory
static int count_suitable(void);
static bool check_choice(int current, int chosen, bool suitable);

static bool meets_requirements(const cudaDeviceProp *prop) {
    bool capable = prop->major > major || (prop->major == major && prop->minor >= minor);
    return capable && prop->totalGlobalMem >= memory;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    cudaDeviceProp prop;
    int dev, current;

    HANDLE_ERROR(cudaGetDevice(&dev));
    printf("ID of the current CUDA device: %d\n", dev);

    memset(&prop, 0, sizeof(prop)); // members that are 0 require nothing
    prop.major = major;
    prop.minor = minor;
    prop.totalGlobalMem = memory;
    HANDLE_ERROR(cudaChooseDevice(&dev, &prop));
    printf("ID of the CUDA device closest to compute capability %d.%d: %d\n", major, minor, dev);
    HANDLE_ERROR(cudaSetDevice(dev)); // from here on allocations and launches use this device

    // CUDA's documentation does not say how cudaChooseDevice compares devices, so the program checks the
    // chosen one.
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, dev));
    bool suitable = meets_requirements(&prop);
    if (count_suitable() == 0)
        printf("No device meets the requirements.\n");
    else if (!suitable)
        printf("This device does not meet the requirements, but another one does.\n");

    HANDLE_ERROR(cudaGetDevice(&current));
    return check_choice(current, dev, suitable) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

// For --most: cudaChooseDevice compares with required values, and cannot look for the largest one. Kind 1 is
// any device, 2 an integrated one (in one chip with the host, whose memory it uses), 3 a discrete one.
static int choose_most(int kind) {
    int count, current, chosen = -1, most = 0;
    HANDLE_ERROR(cudaGetDeviceCount(&count));
    for (int i = 0; i < count; i++) {
        cudaDeviceProp prop;
        HANDLE_ERROR(cudaGetDeviceProperties(&prop, i));
        printf("Device %d: %s, %d multiprocessors, %s\n", i, prop.name, prop.multiProcessorCount,
               prop.integrated ? "integrated" : "discrete");
        if ((kind == 1 || prop.integrated == (kind == 2)) && prop.multiProcessorCount > most) {
            chosen = i;
            most = prop.multiProcessorCount;
        }
    }
    if (chosen < 0)
        quit(EXIT_WAIVED, "needs %s device, found none", kind == 2 ? "an integrated" : "a discrete");
    HANDLE_ERROR(cudaSetDevice(chosen));
    HANDLE_ERROR(cudaGetDevice(&current));
    printf("ID of the device with the most multiprocessors: %d\n", current);
    return check_value("current device", current, chosen, 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}

void settings(int argc, char **argv) {
    int kind = 0;
    configure(argc, argv, "Chooses the device that comes closest to the requirements.", 0,
              {OPTION_INT("major", &major, 1, 99, "required compute capability, before the point"),
               OPTION_INT("minor", &minor, 0, 9, "required compute capability, after the point"),
               OPTION_SIZE("memory", &memory, 0, (size_t)1 << 50, "required bytes of device memory"),
               OPTION_WORD("most", &kind, "none|any|integrated|discrete",
                           "chooses the device of this kind with the most multiprocessors instead")});
    if (kind > 0)
        exit(choose_most(kind));
}

// Prints for each device whether it meets the requirements. Returns how many do.
static int count_suitable(void) {
    int count, suitable = 0;
    HANDLE_ERROR(cudaGetDeviceCount(&count));
    for (int i = 0; i < count; i++) {
        cudaDeviceProp prop;
        HANDLE_ERROR(cudaGetDeviceProperties(&prop, i));
        bool meets = meets_requirements(&prop);
        suitable += meets;
        printf("Device %d: %s, compute capability %d.%d, %zu bytes: %s the requirements\n", i, prop.name,
               prop.major, prop.minor, prop.totalGlobalMem, meets ? "meets" : "does not meet");
    }
    return suitable;
}

// The chosen device must be the current one and the one that is chosen for the options alone; `make check`
// has devices that differ. `suitable` must be what its properties say, which are read again and compared as
// whole numbers.
static bool check_choice(int current, int chosen, bool suitable) {
    int version = 10 * device_attribute(cudaDevAttrComputeCapabilityMajor, chosen) +
                  device_attribute(cudaDevAttrComputeCapabilityMinor, chosen);
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, chosen));
    bool expected = version >= 10 * major + minor && !(memory > prop.totalGlobalMem);
    cudaDeviceProp wanted = {};
    wanted.major = major;
    wanted.minor = minor;
    wanted.totalGlobalMem = memory;
    int expected_device;
    HANDLE_ERROR(cudaChooseDevice(&expected_device, &wanted));
    // Exactly the required memory suffices, one byte less does not.
    cudaDeviceProp less = wanted;
    less.totalGlobalMem -= memory > 0;
    bool ok = check_value("enough memory", meets_requirements(&wanted), 1, 0);
    ok = check_value("too little memory", meets_requirements(&less), memory == 0, 0) && ok;
    ok = check_value("chosen device", chosen, expected_device, 0) && ok;
    ok = check_value("current device", current, chosen, 0) && ok;
    return check_value("meets the requirements", suitable, expected, 0) && ok;
}

// Task: none: it asks the runtime to choose a device, and most machines have only one
