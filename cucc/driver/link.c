// SPDX-License-Identifier: MIT
// What follows the objects: an archive, an empty object of device code, or a program that is linked and run
#include "driver.h"
#include <errno.h>

// Nothing has to be linked for a device, but build systems expect an object file.
static int link_device(const Settings *s) {
    const char *source = format("%s/empty.c", work_folder());
    FILE *file = fopen(source, "we");
    if (!file || fclose(file) != 0)
        stop("%s: %s", source, strerror(errno));
    List command = copy_of(&s->cxx);
    ADD(&command, "-x", "c", "-fPIC", "-c", source, "-o", s->output ? s->output : "a_dlink.o");
    return run_step(s, &command);
}

static int archive(const Settings *s, const List *arguments) {
    List command = blank_separated("ar rcs");
    add(&command, s->output ? s->output : "a.a");
    add_list(&command, arguments);
    return run_step(s, &command);
}

static int link_program(const Settings *s, const List *arguments) {
    List command = copy_of(&s->cxx);
    for (int i = 0; i < arguments->count; i++) {
        const char *one = arguments->words[i];
        if (matches(one, "-lcublas* -lcufft* -lcurand* -lcusparse* -lcusolver* -lnpp* -lnvrtc -lnvjpeg "
                         "-lnccl -lcudnn") &&
            !mode_of(format("%s/lib64/lib%s.a", s->tools, one + 2)))
            stop("%s: this library of NVIDIA's is not part of the CPU back end", one);
    }
    add(&command, s->optimize);
    add_list(&command, &s->threads);
    add_list(&command, &s->executable);
    add_list(&command, &s->compile);
    ADD(&command, "-o", s->output ? s->output : "a.out", format("-L%s/lib64", s->tools));
    add_list(&command, arguments);
    if (!s->no_runtime)
        ADD(&command, "-lcudadevrt", "-lcudart_static");
    const int status = run_step(s, &command);
    if (status && s->shared_index && !s->rdc)
        fputs("cucc: a __device__ function or variable of another .cu is found only with -rdc=true, as with "
              "nvcc\n",
              stderr);
    return status;
}

static int run_program(const Settings *s) {
    const char *program = s->output ? s->output : "a.out";
    List command = {0};
    add(&command, *program == '/' ? program : format("./%s", program));
    add_list(&command, &s->run_args);
    return s->dryrun ? 0 : run_command(&command, NULL, NULL, NULL);
}

// What is made of the objects, if anything. Returns the status of cucc: with -run, that of the program.
int link_objects(const Settings *s, const List *arguments) {
    if (s->mode == LIB)
        return archive(s, arguments) != 0;
    if (s->mode == DLINK)
        return link_device(s) != 0;
    if (s->mode != LINK)
        return 0;
    if (link_program(s, arguments) != 0)
        return 1;
    return s->run ? run_program(s) : 0;
}
