// SPDX-License-Identifier: MIT
/*
 * cucc: compiles CUDA C++ for this machine's processor, with nvcc's options
 *
 *     options.c, actions.c, architecture.c    the command line: one table, and what each option does
 *     compiler.c        the C++ compiler, and options that depend on it
 *     toolkit.c         the headers and the library: found, or built once
 *     compile.c         three steps for a .cu: the compiler preprocesses it, ../translate makes C++ of it,
 *                       and the compiler compiles that; with precompiled.c
 *     link.c            links the objects to the library
 *     hints.c           what follows the compiler's errors
 *     command.c, files.c, words.c    commands and signals, reading files, lists of words
 *
 * The script ../cucc starts it, with three arguments before those of the user: the path of the script, and
 * the folders of the sources and of what is built from them.
 */
#include "driver.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

// A standard file that is closed must not become one that the next open() gets.
static void keep_standard_files(void) {
    for (int file = 0; file < 3; file++)
        if (fcntl(file, F_GETFD) < 0 && open("/dev/null", file == 0 ? O_WRONLY : O_RDONLY) != file)
            exit(EXIT_FAILURE);
}

// CMake searches the output of -v for this.
static void show_folders(const Settings *s) {
    const char *path = getenv("PATH");
    if (!s->verbose && !s->dryrun)
        return;
    fprintf(stderr, "#$ _CUDART_=cudart\n#$ _HERE_=%s/bin\n#$ TOP=%s\n", s->tools, s->tools);
    fprintf(stderr, "#$ NVVMIR_LIBRARY_DIR=%s/nvvm/libdevice\n#$ PATH=%s\n", s->tools, path ? path : "");
    fprintf(stderr, "#$ INCLUDES=\"-I%s/include\"\n#$ LIBRARIES=-L%s/lib64\n", s->tools, s->tools);
    fprintf(stderr, "#$ _ARCH_=-arch compute_%d\n", s->arch);
}

// A file that can be read to its end. /dev/zero has none.
static void check_input(const char *file) {
    struct stat status;
    const bool standard = !strcmp(file, "-"),
               nothing = same_file(standard ? "/dev/stdin" : file, "/dev/null");
    if (!standard && stat(file, &status) != 0)
        stop("%s: no such file", file);
    if (standard && !isatty(STDIN_FILENO) && !nothing && fstat(STDIN_FILENO, &status) == 0 &&
        S_ISCHR(status.st_mode))
        stop("standard input: neither a file nor a pipe");
    if (!standard && !nothing && !S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode))
        stop("%s: neither a file nor a pipe", file);
}

// Checks the inputs, and finds out whether the program has several units, which share threadIdx (kernel.h). A
// program that is one .cu, compiled and linked at once, has its own, which is faster.
static void check_inputs(Settings *s) {
    int sources = 0, cuda_sources = 0;
    for (int i = 0; i < s->inputs.count; i++) {
        const char *file = s->inputs.words[i], *const outputs[] = {s->output, s->depend_file};
        check_input(file);
        for (int j = 0; j < 2; j++)
            if (outputs[j] && mode_of(outputs[j]) == S_IFREG && same_file(outputs[j], file))
                stop("%s: the output would overwrite this source", outputs[j]);
        const Kind kind = kind_of(s, file);
        s->shared_index = s->shared_index || (kind == OBJECT && contains(file, "cuda_cpu_several"));
        sources += kind != OBJECT;
        cuda_sources += kind == CUDA;
    }
    const bool one_output = s->mode != LINK && s->mode != LIB && s->mode != DLINK;
    if (one_output && s->output && sources != 1)
        stop("-o names one file, but there are %d sources", sources);
    if (s->mode != LINK || cuda_sources > 1 || s->shared || s->rdc)
        s->shared_index = true;
}

// The same for the libraries in folders of the command line
static void check_libraries(Settings *s) {
    static const char *const endings[] = {"a", "so"};
    List folders = {0};
    for (int i = 0; i < s->link.count; i++) {
        const char *word = s->link.words[i];
        if (has_prefix(word, "-L"))
            add(&folders, word + 2);
        bool several = !strcmp(word, "-lcuda"); // it may load modules
        for (int j = 0; has_prefix(word, "-l") && j < 2 * folders.count; j++)
            several |= contains(format("%s/lib%s.%s", folders.words[j / 2], word + 2, endings[j % 2]),
                                "cuda_cpu_several");
        s->shared_index |= several;
    }
}

static const char *object_of(const Settings *s, const char *file) {
    static int number;
    const char *name = format("%s.o", stem_of(file));
    if (s->mode != LINK && s->mode != LIB && s->mode != DLINK)
        return s->output ? s->output : format("%s%s", s->output_folder, name);
    if (s->keep)
        return format("%s%s", s->keep_folder, name);
    const char *folder = format("%s/%d", work_folder(), ++number); // two sources may have the same name
    if (mkdir(folder, 0777) != 0)
        stop("%s: %s", folder, strerror(errno));
    return format("%s/%s", folder, name);
}

// Compiles the sources. Returns the linker's arguments; as with nvcc, libraries follow the objects.
static List compile_sources(const Settings *s) {
    List arguments = {0}, early = {0};
    bool failed = false;
    int input = 0;
    for (int i = 0; i < s->link.count; i++) {
        char *word = s->link.words[i];
        const bool is_input = input < s->inputs.count && word == s->inputs.words[input];
        input += is_input;
        if (!is_input && input < s->inputs.count && has_prefix(word, "-l")) {
            add(&early, word);
        } else if (!is_input || kind_of(s, word) == OBJECT) {
            add(&arguments, word);
        } else {
            const char *object = object_of(s, word);
            failed = compile_source(s, word, object) != 0 || failed;
            add(&arguments, object);
        }
        if (is_input && input == s->inputs.count)
            add_list(&arguments, &early);
    }
    if (failed)
        finish(EXIT_FAILURE);
    return arguments;
}

int main(int count, char **words) {
    const char *cxx = getenv("CXX");
    Settings s = {.standard = "gnu++17", .optimize = "-O2", .output_folder = ""};
    keep_standard_files();
    catch_signals();
    if (count < 4)
        stop("this program is started by the script cucc");
    s.script = words[1];
    s.words = words + 3; // restart() gives cucc the name of the folder instead of its own
    s.restarted = getenv("CUCC_OWN_FOLDER");
    unsetenv("CUCC_OWN_FOLDER");
    s.home = words[2];
    s.build = words[3];
    s.cxx = blank_separated(cxx && *cxx ? cxx : "g++");
    parse_options(&s, count - 4, words + 4);
    s.arch = s.arch ? s.arch : 80;
    s.keep = s.keep || s.keep_folder;
    s.keep_folder = s.keep_folder ? s.keep_folder : "";
    choose_compiler(&s);
    find_toolkit(&s);
    show_folders(&s);
    if (s.print_toolkit) {
        puts(s.tools);
        finish(EXIT_SUCCESS);
    }
    if (!s.inputs.count)
        stop("no input files");
    if (s.mode == CLEAN) // there are no intermediate files unless they are asked for
        finish(EXIT_SUCCESS);
    check_inputs(&s);
    check_libraries(&s);
    const List arguments = compile_sources(&s);
    finish(link_objects(&s, &arguments));
}
