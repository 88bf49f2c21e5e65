// SPDX-License-Identifier: MIT
// What the unit "device" gives to the others: devices, and the errors that stay or end the program
#pragma once
#include "objects.h"

#ifdef __wasm__ // its C library has no on_exit()
inline int on_exit(void (*)(int, void *), void *) {
    return 0;
}
#endif

namespace cuda_cpu {

// ---- devices (device.cpp) ----

constexpr int max_devices = 64;

int device_count();                           // number of visible devices
int current_device();                         // the current device of this host thread
size_t limit_of(int device, cudaLimit limit); // the value that cudaDeviceSetLimit has set, or the default
const cudaDeviceProp &properties(int device);
cudaError_t no_device(const char *call);    // fails, with a message that says why there is no device
cudaDeviceProp describe_device(int device); // this machine as a device (properties.cpp)
size_t available_memory();                  // bytes that this process can still allocate

// Makes a device the current one of this host thread for the lifetime of the object.
struct OnDevice {
    const int before;

    explicit OnDevice(int device);
    ~OnDevice();
};

// ---- errors (error.cpp) ----

// Device code: a pointer to the last error of the calling thread, which is cudaSuccess when the thread
// starts. Host code: null. In the common loop the calling thread is known only while a Caller exists
// (kernel.h): during a launch, cudaGetLastError and cudaPeekAtLastError. The error of any other call, such as
// cudaMalloc, becomes the last error of the thread that makes the next of these three calls.
cudaError_t *error_of_thread();

// At the end of a program with status 0: tells of an error that nothing has asked for. True if it is that of
// a launch, which has no other way to say that its kernel did not run.
bool tell_of_unasked();

// A sticky error, the first one, which every later call on this device returns, as on a GPU.
void set_sticky_error(cudaError_t error);
cudaError_t sticky_error(int device); // cudaSuccess if there is none
// After a reset, a device with a sticky error is unavailable to this process.
void lose_failed_device();

// Called before the message of an error that ends the program: writes what stdout still has. Only the first
// thread that calls it returns, so that one message is printed; the others wait until the program has ended.
void only_error();

} // namespace cuda_cpu
