// SPDX-License-Identifier: MIT
// Checks of the calls of this chapter's libraries: one macro for each library. A call that fails prints one
// line, "file:line: call: name or number of the status", and ends the program with EXIT_FAILURE. The program
// includes the library's header before this one. Thrust throws exceptions instead: handle_exceptions() ends
// the program in the same way.
#pragma once

#include "../common/book.h"
#include "../common/checks/exceptions.h" // handle_exceptions()

#define HANDLE_CUBLAS(...)   HANDLE_STATUS(cublasGetStatusName, __VA_ARGS__)
#define HANDLE_CUSPARSE(...) HANDLE_STATUS(cusparseGetErrorName, __VA_ARGS__)
#define HANDLE_CUSOLVER(...) HANDLE_STATUS(number_of_status, __VA_ARGS__)
#define HANDLE_CUFFT(...)    HANDLE_STATUS(number_of_status, __VA_ARGS__)
#define HANDLE_CURAND(...)   HANDLE_STATUS(number_of_status, __VA_ARGS__)
#define HANDLE_NPP(...)      HANDLE_STATUS(number_of_status, __VA_ARGS__)
#define HANDLE_OPENCL(...)   HANDLE_STATUS(number_of_status, __VA_ARGS__)

// ---------------------------------------------------------------------------------------- check

// The other libraries have no function for the names of their statuses; their headers list the numbers.
static inline const char *number_of_status(int status) {
    static char text[32];
    snprintf(text, sizeof(text), "status %d", status);
    return text;
}

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

#ifdef CUFFT_VERSION
// The largest error of a transform of n points, relative to the root mean square of its results. A fast
// Fourier transform has log2(n) steps. Each rounds a few times, and the errors of different steps partly
// cancel. Sizes with large prime factors are computed through transforms of two to four times the size.
static inline double fft_limit(double n) {
    return 8 * (log2(n) + 3) * 0x1p-24;
}
#endif
