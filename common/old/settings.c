// SPDX-License-Identifier: MIT
// Linked to every program that make old builds: settings that our own programs take as options.
#include <stdlib.h>
#include "../options.h"

// Before main: FRAMES and OUTPUT of the environment are --frames and --output. On the CPU back end, a kernel
// whose threads wait for ever ends the program soon (cucc/README.md).
__attribute__((constructor)) static void read_environment(void) {
    const char *frames = getenv("FRAMES"), *output = getenv("OUTPUT");
    if (frames) {
        char *end;
        unsigned long n = strtoul(frames, &end, 10);
        if (n == 0 || n > 1000000 || *end)
            quit(EXIT_USAGE, "FRAMES=%s: must be a number from 1 to 1000000", frames);
        options.frames = n;
        options.frames_given = true;
    }
    if (output && *output)
        options.output = output;
    setenv("CUDA_CPU_WATCHDOG", "10", 0);
    setenv("CUDA_CPU_TIME_LIMIT", "120", 0);
}
