// SPDX-License-Identifier: MIT
// Checks of the calls of this chapter's libraries: one macro for each library. A call that fails prints one
// line, "file:line: call: name of the status", and ends the program with EXIT_FAILURE. The program includes
// the library's header before this one. Thrust throws exceptions instead: handle_exceptions() ends the
// program in the same way.
#pragma once

#include "../common/book.h"
#include "../common/checks/exceptions.h" // handle_exceptions()

#define HANDLE_CUBLAS(...)   HANDLE_STATUS(cublasGetStatusName, __VA_ARGS__)
#define HANDLE_CUSPARSE(...) HANDLE_STATUS(cusparseGetErrorName, __VA_ARGS__)
#define HANDLE_CUSOLVER(...) HANDLE_STATUS(name_of_cusolver, __VA_ARGS__)
#define HANDLE_CUFFT(...)    HANDLE_STATUS(name_of_cufft, __VA_ARGS__)
#define HANDLE_CURAND(...)   HANDLE_STATUS(name_of_curand, __VA_ARGS__)
#define HANDLE_NPP(...)      HANDLE_STATUS(name_of_npp, __VA_ARGS__)
#define HANDLE_OPENCL(...)   HANDLE_STATUS(name_of_opencl, __VA_ARGS__)

// ---------------------------------------------------------------------------------------- check

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

// Some libraries have no function for the names of their statuses. Returns `other` if the name is not here.
#define NAMED(status)                                                                                        \
    { status, #status }

template <class Status>
static inline const char *name_in(Status status, const char *other,
                                  std::initializer_list<std::pair<Status, const char *>> names) {
    for (const auto &named : names)
        if (named.first == status)
            return named.second;
    return other;
}

#ifdef CUSOLVER_VERSION
static inline const char *name_of_cusolver(cusolverStatus_t status) {
    return name_in<cusolverStatus_t>(
        status, "a status of cuSOLVER",
        {NAMED(CUSOLVER_STATUS_NOT_INITIALIZED), NAMED(CUSOLVER_STATUS_ALLOC_FAILED),
         NAMED(CUSOLVER_STATUS_INVALID_VALUE), NAMED(CUSOLVER_STATUS_ARCH_MISMATCH),
         NAMED(CUSOLVER_STATUS_EXECUTION_FAILED), NAMED(CUSOLVER_STATUS_INTERNAL_ERROR),
         NAMED(CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED), NAMED(CUSOLVER_STATUS_NOT_SUPPORTED)});
}
#endif

#ifdef CUFFT_VERSION
static inline const char *name_of_cufft(cufftResult status) {
    return name_in<cufftResult>(
        status, "a status of cuFFT",
        {NAMED(CUFFT_INVALID_PLAN), NAMED(CUFFT_ALLOC_FAILED), NAMED(CUFFT_INVALID_TYPE),
         NAMED(CUFFT_INVALID_VALUE), NAMED(CUFFT_INTERNAL_ERROR), NAMED(CUFFT_EXEC_FAILED),
         NAMED(CUFFT_SETUP_FAILED), NAMED(CUFFT_INVALID_SIZE), NAMED(CUFFT_INVALID_DEVICE),
         NAMED(CUFFT_NO_WORKSPACE), NAMED(CUFFT_NOT_SUPPORTED)});
}

// The largest error of a transform of n points, relative to the root mean square of its results. A fast
// Fourier transform has log2(n) steps. Each rounds a few times, and the errors of different steps partly
// cancel. Sizes with large prime factors are computed through transforms of two to four times the size.
static inline double fft_limit(double n) {
    return 8 * (log2(n) + 3) * 0x1p-24;
}
#endif

#ifdef CL_VERSION_2_0
static inline const char *name_of_opencl(cl_int status) {
    return name_in<cl_int>(status, "a status of OpenCL",
                           {NAMED(CL_DEVICE_NOT_AVAILABLE), NAMED(CL_MEM_OBJECT_ALLOCATION_FAILURE),
                            NAMED(CL_OUT_OF_RESOURCES), NAMED(CL_OUT_OF_HOST_MEMORY), NAMED(CL_INVALID_VALUE),
                            NAMED(CL_INVALID_BUFFER_SIZE), NAMED(CL_INVALID_WORK_GROUP_SIZE),
                            NAMED(CL_INVALID_KERNEL_ARGS), NAMED(CL_INVALID_KERNEL_NAME)});
}
#endif

#ifdef CURAND_VERSION
static inline const char *name_of_curand(curandStatus_t status) {
    return name_in<curandStatus_t>(
        status, "a status of cuRAND",
        {NAMED(CURAND_STATUS_VERSION_MISMATCH), NAMED(CURAND_STATUS_NOT_INITIALIZED),
         NAMED(CURAND_STATUS_ALLOCATION_FAILED), NAMED(CURAND_STATUS_TYPE_ERROR),
         NAMED(CURAND_STATUS_OUT_OF_RANGE), NAMED(CURAND_STATUS_LENGTH_NOT_MULTIPLE),
         NAMED(CURAND_STATUS_LAUNCH_FAILURE), NAMED(CURAND_STATUS_PREEXISTING_FAILURE),
         NAMED(CURAND_STATUS_INITIALIZATION_FAILED), NAMED(CURAND_STATUS_INTERNAL_ERROR)});
}
#endif

// NPP has many statuses. Errors are below 0, warnings above.
static inline const char *name_of_npp(int status) {
    static char text[32];
    snprintf(text, sizeof(text), "NppStatus %d", status);
    return text;
}
