// SPDX-License-Identifier: MIT
// chapter12/libraries.h: calls that fail and exceptions end a program with one line. What ends the program
// runs in a child process.
#include <stdexcept>
#include "../../chapter12/libraries.h"
#include "../../cucc/tests/unit.h"

enum Status { GOOD, BAD };

static const char *name_of(Status status) {
    return status == BAD ? "STATUS_BAD" : "?";
}

static int calls = 0;

static Status call(Status status) {
    calls++;
    return status;
}

TEST(calls) {
    HANDLE_STATUS(name_of, call(GOOD));
    EXPECT(calls == 1);
    unit_result r = IN_CHILD({
        HANDLE_STATUS(name_of, call(BAD));
        printf("not reached\n");
    });
    EXPECT(r.status == EXIT_FAILURE && !r.out[0]);
    EXPECT(strstr(r.err, "libraries.cu:") && strstr(r.err, ": call(BAD): STATUS_BAD\n"));
    EXPECT(strchr(r.err, '\n') == r.err + strlen(r.err) - 1);
}

static void throw_error(const char *what) {
    handle_exceptions();
    printf("before\n");
    if (what)
        throw std::runtime_error(what);
    throw 1;
}

TEST(exceptions) {
    options.program = "program";
    unit_result r = IN_CHILD(throw_error("out of memory"));
    EXPECT(r.status == EXIT_FAILURE && strcmp(r.out, "before\n") == 0);
    EXPECT(strcmp(r.err, "program: out of memory\n") == 0);
    r = IN_CHILD(throw_error(NULL));
    EXPECT(r.status == EXIT_FAILURE && strcmp(r.err, "program: an exception\n") == 0);
}
