// SPDX-License-Identifier: MIT
// For programs that call Thrust, which throws exceptions.
#pragma once

#include <exception>
#include "../book.h"

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
