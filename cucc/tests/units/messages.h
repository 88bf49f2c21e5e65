// SPDX-License-Identifier: MIT
// For unit tests of faults: what calls and programs write to stderr.
#pragma once

#include "device.h"

// The call's output on stderr
template <class Call> static std::string said(Call call, cudaError_t &error) {
    FILE *file = tmpfile();
    fflush(stderr);
    const int before = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    error = call();
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    char text[4096];
    unit_slurp(file, text, sizeof text);
    return text;
}

// The call fails with this error, cudaGetLastError() then returns the same, and on the CPU back end one line
// says why.
template <class Call> static bool fails(cudaError_t error, const char *why, Call call) {
    cudaError_t got;
    const std::string text = said(call, got);
    bool ok = got == error && cudaGetLastError() == error && cudaGetLastError() == cudaSuccess;
    ok = ok && text.find("cuda on the CPU: cuda") == 0 && text.find(why) != std::string::npos &&
         text.find('\n') == text.size() - 1;
    if (!ok)
        fprintf(stderr, "%s, expected %s (%s)\n%s", cudaGetErrorName(got), cudaGetErrorName(error), why,
                text.c_str());
    return ok;
}

// A correct call: no error and no output
template <class Call> static bool works(Call call) {
    cudaError_t got;
    const std::string text = said(call, got);
    const bool ok = got == cudaSuccess && text.empty();
    if (!ok)
        fprintf(stderr, "%s\n%s", cudaGetErrorName(got), text.c_str());
    return ok;
}

#define FAILS(error, why, call) EXPECT(fails(error, why, [&] { return call; }))
#define WORKS(call)             EXPECT(works([&] { return call; }))

// A program that ended with status 0 and said nothing
[[maybe_unused]] static void ends_well(const unit_result &result) {
    if (!EXPECT(result.status == 0 && result.err[0] == '\0'))
        fprintf(stderr, "  status %d: %s%s\n", result.status, result.out, result.err);
}
