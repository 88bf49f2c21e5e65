// SPDX-License-Identifier: MIT
// The C++ compiler: which one it is, what it accepts, and the options that follow from that
#include "driver.h"
#include <errno.h>
#include <unistd.h>

// The path of a command, or null
char *find_command(const char *name) {
    const char *folders = strchr(name, '/') ? "" : getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin";
    for (const char *folder = folders, *end; *name; folder = end + 1) {
        end = folder + strcspn(folder, ":");
        char *path = format("%.*s%s%s", (int)(end - folder), folder, folder == end ? "" : "/", name);
        if (mode_of(path) == S_IFREG && access(path, X_OK) == 0)
            return path;
        if (!*end)
            break;
    }
    return NULL;
}

// Runs the compiler with these options. Returns the first line that it prints, or null if it fails.
static char *ask(const Settings *s, const char *options) {
    List command = copy_of(&s->cxx);
    Text printed = {0};
    add_all_of(&command, options);
    if (run_captured(&command, false, &printed) != 0)
        return NULL;
    return format("%.*s", (int)strcspn(printed.data, "\n"), printed.data);
}

// Adds options if the compiler accepts them, together with others, for a source without text.
static bool add_if_accepted(const Settings *s, List *list, const char *options, const char *with) {
    const bool accepted = ask(s, format("%s %s -x c++ -", options, with));
    if (accepted)
        add_all_of(list, options);
    return accepted;
}

// What -dumpmachine says, such as x86_64-linux-gnu
char *machine_of(const Settings *s) {
    const char *answer = ask(s, "-dumpmachine"), *vendor = answer ? strstr(answer, "-pc-") : NULL;
    if (!answer)
        stop("%s -dumpmachine fails: not a C++ compiler", name_of(s->cxx.words[0]));
    return vendor ? format("%.*s%s", (int)(vendor - answer), answer, vendor + 3) : format("%s", answer);
}

// Finds the sanitizers of the program. The library must be compiled with them too.
static void choose_sanitizers(Settings *s) {
    for (int i = 0; i < s->compile.count; i++) {
        const char *one = s->compile.words[i];
        if (has_prefix(one, "-fsanitize="))
            s->sanitize = format("%s%s%s", s->sanitize ? s->sanitize : "", s->sanitize ? "," : "",
                                 strchr(one, '=') + 1);
    }
    if (!s->sanitize)
        return;
    add_all_of(&s->compile, "-fno-sanitize-recover=all -fno-omit-frame-pointer");
    // The macros by which g++ tells sources of its sanitizers; older clang++ does not define them.
    const bool thread = strstr(s->sanitize, "thread"), address = strstr(s->sanitize, "address");
    if (thread || address)
        add(&s->preprocess, thread ? "-D__SANITIZE_THREAD__=1" : "-D__SANITIZE_ADDRESS__=1");
    // AddressSanitizer of g++ then also finds accesses beyond __device__ and __constant__ variables.
    const char *sections =
        "-fsanitize-sections=cuda_device,cuda_device_ro,cuda_managed,cuda_constant,cuda_constant_ro";
    if (address)
        add_if_accepted(s, &s->compile, sections, "-E");
}

// --check: the compiler calls a function at every memory access, as for ThreadSanitizer, from race_hooks.cpp.
static void choose_instrumentation(Settings *s) {
    if (s->sanitize)
        stop("--check does not go with -fsanitize");
    // In DWARF 5 of clang++ the addr2line of binutils 2.40 does not see inlined calls. Compilers drop what
    // follows the use of a null pointer unless they are told that the address exists.
    add_all_of(&s->instrument, "-g -gdwarf-4 -fsanitize=thread -fsanitize-coverage=trace-pc "
                               "-fno-delete-null-pointer-checks");
    // clang++ leaves out the read of x += 1 unless it is asked for it.
    const char *with = "-Werror -fsanitize=thread -c -o /dev/null";
    if (!add_if_accepted(s, &s->instrument, "--param=tsan-distinguish-volatile=1", with))
        add_if_accepted(s, &s->instrument,
                        "-mllvm -tsan-distinguish-volatile=1 -mllvm -tsan-instrument-read-before-write=1",
                        with);
}

// Options of clang++ for what the translator writes
static void choose_for_clang(Settings *s) {
    // CUDA permits arguments that are not initialised, as in
    // int old; if (leader) old = atomicAdd(…); old = __shfl_sync(mask, old, 0);
    // clang++ concludes from such an argument that the call is not reached, unless an option says otherwise,
    // whose name depends on the version.
    if (!add_if_accepted(s, &s->translated, "-Xclang -disable-noundef-analysis", "-fsyntax-only"))
        add_if_accepted(s, &s->translated, "-Xclang -no-enable-noundef-analysis", "-fsyntax-only");
    // The shifts of device code are operators of ours, and regions of kernels are loops in one line. Not
    // -fopenmp-simd: clang makes `if (threadIdx.x == 255) *sum = x;` a store of every thread in such a loop.
    add_all_of(&s->translated,
               "-Wno-overloaded-shift-op-parentheses -Wno-misleading-indentation -Wno-unknown-pragmas");
}

void choose_compiler(Settings *s) {
    const char *name = s->cxx.count ? s->cxx.words[0] : "", *path = find_command(name);
    if (!path)
        stop("no C++ compiler: %s", name);
    s->cxx_path = realpath(path, NULL);
    if (!s->cxx_path)
        stop("%s: %s", path, strerror(errno));
    if (s->image && s->inputs.count) { // a module for cuModuleLoad; its kernels may have the names of others
        s->output = s->output ? s->output : format("%s%s", stem_of(s->inputs.words[0]), s->image);
        add_if_accepted(s, &s->compile, "-fno-gnu-unique", "-E");
    }
    choose_sanitizers(s);
    if (s->check)
        choose_instrumentation(s);
    const bool wasm = matches(name_of(name), "em++*");
    bool clang = matches(name_of(s->cxx_path), "*clang* *em++*");
    for (int i = 0; i < s->cxx.count; i++) // ccache clang++
        clang = clang || matches(name_of(s->cxx.words[i]), "*clang* *em++*");
    if (clang)
        choose_for_clang(s);
    else // -fstack-clash-protection, so that large local arrays reach the guard page below a stack
        add_all_of(&s->translated, "-fstack-clash-protection -Wno-unknown-pragmas -Wno-psabi -fopenmp-simd");
    if (!wasm) {
        add(&s->threads, "-pthread");
        add(&s->executable, "-rdynamic"); // the runtime finds the names of kernels by it
        return;
    }
    // WebAssembly: one thread; the fibers of a block need -sASYNCIFY
    add_all_of(&s->executable, "-sASYNCIFY -sALLOW_MEMORY_GROWTH -sMAXIMUM_MEMORY=4GB -sEXIT_RUNTIME "
                               "-sFORCE_FILESYSTEM -sSINGLE_FILE");
    const char *modules = getenv("NODE_PATH");
    if (!modules || !*modules)
        setenv("NODE_PATH", "/usr/share/nodejs", 1); // where Debian has acorn, which em++ needs
}
