// SPDX-License-Identifier: MIT
// Checks of the calls of this chapter's libraries: one macro for each library. A call that fails prints one
// line, "file:line: call: name of the status", and ends the program with EXIT_FAILURE. The program includes
// the library's header before this one. Thrust throws exceptions instead: handle_exceptions() ends the
// program in the same way.
#ifndef CHAPTER12_LIBRARIES_H
#define CHAPTER12_LIBRARIES_H

#include <exception>
#include "../common/book.h"

#define HANDLE_CUBLAS(...)   HANDLE_STATUS(cublasGetStatusName, __VA_ARGS__)
#define HANDLE_CUSPARSE(...) HANDLE_STATUS(cusparseGetErrorName, __VA_ARGS__)
#define HANDLE_CUSOLVER(...) HANDLE_STATUS(name_of_cusolver, __VA_ARGS__)
#define HANDLE_CUFFT(...)    HANDLE_STATUS(name_of_cufft, __VA_ARGS__)
#define HANDLE_CURAND(...)   HANDLE_STATUS(name_of_curand, __VA_ARGS__)
#define HANDLE_NPP(...)      HANDLE_STATUS(name_of_npp, __VA_ARGS__)
#define HANDLE_OPENCL(...)   HANDLE_STATUS(name_of_opencl, __VA_ARGS__)

// ---------------------------------------------------------------------------------------- proof

// In all these libraries the status 0 is success. `name_of` returns the name of a status.
#define HANDLE_STATUS(name_of, ...)                                                                          \
    do {                                                                                                     \
        auto status = (__VA_ARGS__);                                                                         \
        if (status)                                                                                          \
            library_failed(#__VA_ARGS__, name_of(status), __FILE__, __LINE__);                               \
    } while (0)

__attribute__((noreturn)) static inline void library_failed(const char *call, const char *status,
                                                            const char *file, int line) {
    quit_line(EXIT_FAILURE, "%s:%d: %s: %s", file, line, call, status);
}

// Some libraries have no function for the names of their statuses.
#define STATUS_NAME(status)                                                                                  \
    case status:                                                                                             \
        return #status

#ifdef CUSOLVER_VERSION
static inline const char *name_of_cusolver(cusolverStatus_t status) {
    switch (status) {
        STATUS_NAME(CUSOLVER_STATUS_NOT_INITIALIZED);
        STATUS_NAME(CUSOLVER_STATUS_ALLOC_FAILED);
        STATUS_NAME(CUSOLVER_STATUS_INVALID_VALUE);
        STATUS_NAME(CUSOLVER_STATUS_ARCH_MISMATCH);
        STATUS_NAME(CUSOLVER_STATUS_EXECUTION_FAILED);
        STATUS_NAME(CUSOLVER_STATUS_INTERNAL_ERROR);
        STATUS_NAME(CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED);
        STATUS_NAME(CUSOLVER_STATUS_NOT_SUPPORTED);
    default:
        return "a status of cuSOLVER";
    }
}
#endif

#ifdef CUFFT_VERSION
static inline const char *name_of_cufft(cufftResult status) {
    switch (status) {
        STATUS_NAME(CUFFT_INVALID_PLAN);
        STATUS_NAME(CUFFT_ALLOC_FAILED);
        STATUS_NAME(CUFFT_INVALID_TYPE);
        STATUS_NAME(CUFFT_INVALID_VALUE);
        STATUS_NAME(CUFFT_INTERNAL_ERROR);
        STATUS_NAME(CUFFT_EXEC_FAILED);
        STATUS_NAME(CUFFT_SETUP_FAILED);
        STATUS_NAME(CUFFT_INVALID_SIZE);
        STATUS_NAME(CUFFT_INVALID_DEVICE);
        STATUS_NAME(CUFFT_NO_WORKSPACE);
        STATUS_NAME(CUFFT_NOT_SUPPORTED);
    default:
        return "a status of cuFFT";
    }
}

// The largest error of a transform of n points, relative to the root mean square of its results. A fast
// Fourier transform has log2(n) steps. Each rounds a few times, and the errors of different steps partly
// cancel. Sizes with large prime factors are computed through transforms of two to four times the size.
static inline double fft_limit(double n) {
    return 8 * (log2(n) + 3) * 0x1p-24;
}
#endif

// After this call an exception that nobody catches prints one line, "program: what it says", and ends the
// program with EXIT_FAILURE.
static inline void handle_exceptions(void) {
    std::set_terminate([] {
        try {
            std::rethrow_exception(std::current_exception());
        } catch (const std::exception &error) {
            quit(EXIT_FAILURE, "%s", error.what());
        } catch (...) {
            quit(EXIT_FAILURE, "an exception");
        }
    });
}

#ifdef CL_VERSION_2_0
static inline const char *name_of_opencl(cl_int status) {
    switch (status) {
        STATUS_NAME(CL_DEVICE_NOT_AVAILABLE);
        STATUS_NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE);
        STATUS_NAME(CL_OUT_OF_RESOURCES);
        STATUS_NAME(CL_OUT_OF_HOST_MEMORY);
        STATUS_NAME(CL_INVALID_VALUE);
        STATUS_NAME(CL_INVALID_BUFFER_SIZE);
        STATUS_NAME(CL_INVALID_WORK_GROUP_SIZE);
        STATUS_NAME(CL_INVALID_KERNEL_ARGS);
        STATUS_NAME(CL_INVALID_KERNEL_NAME);
    default:
        return "a status of OpenCL";
    }
}
#endif

#ifdef CURAND_VERSION
static inline const char *name_of_curand(curandStatus_t status) {
    switch (status) {
        STATUS_NAME(CURAND_STATUS_VERSION_MISMATCH);
        STATUS_NAME(CURAND_STATUS_NOT_INITIALIZED);
        STATUS_NAME(CURAND_STATUS_ALLOCATION_FAILED);
        STATUS_NAME(CURAND_STATUS_TYPE_ERROR);
        STATUS_NAME(CURAND_STATUS_OUT_OF_RANGE);
        STATUS_NAME(CURAND_STATUS_LENGTH_NOT_MULTIPLE);
        STATUS_NAME(CURAND_STATUS_LAUNCH_FAILURE);
        STATUS_NAME(CURAND_STATUS_PREEXISTING_FAILURE);
        STATUS_NAME(CURAND_STATUS_INITIALIZATION_FAILED);
        STATUS_NAME(CURAND_STATUS_INTERNAL_ERROR);
    default:
        return "a status of cuRAND";
    }
}
#endif

// NPP has many statuses. Errors are below 0, warnings above.
static inline const char *name_of_npp(int status) {
    static char text[32];
    snprintf(text, sizeof(text), "NppStatus %d", status);
    return text;
}

#endif
