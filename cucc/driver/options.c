// SPDX-License-Identifier: MIT
// The options, which are nvcc's: one table for the parser and for --help
#include "driver.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" // most options need few members

// Abbreviations for the table
#define HIDDEN     NULL, NULL // from --help
#define IN(member) offsetof(Settings, member)
#define MODE(mode) set_mode, 0, NULL, mode

// In the order of --help, where an option without a help text shares a line with the next ones
const Option options[] = {
    {"o", "output-file", VALUE, "-o FILE", "output; else a.out, or FILE.o with -c", set_output},
    {"c", "compile", FLAG, "-c", NULL, MODE(COMPILE)},
    {"dc", "device-c", FLAG, ", -dc", "only compile", set_compile_device},
    {"dw", "device-w", FLAG, HIDDEN, MODE(COMPILE)},
    {"E", "preprocess", FLAG, "-E", "only preprocess", MODE(PREPROCESS)},
    {"cuda", "cuda", FLAG, "-cuda", "only translate to C++", MODE(TRANSLATE)},
    {"lib", "lib", FLAG, "-lib", NULL, MODE(LIBRARY)},
    {"link", "link", FLAG, HIDDEN, MODE(LINK)},
    {"shared", "shared", FLAG, ", -shared", NULL, set_shared},
    {"dlink", "device-link", FLAG, ", -dlink", NULL, MODE(DEVICE_LINK)},
    {"run", "run", FLAG, ", -run", "other outputs; compile, link and run", set_true, IN(run)},
    {"run-args", "run-args", VALUE, HIDDEN, add_split, IN(run_args), ""},
    {"fatbin", "fatbin", FLAG, "-fatbin", NULL, set_image, 0, ".fatbin"},
    {"cubin", "cubin", FLAG, ", -cubin", "a module for cuModuleLoad, with code for this machine", set_image,
     0, ".cubin"},
    {"I", "include-path", VALUE, "-I", NULL, add_pair, IN(preprocess), "-I"},
    {"isystem", "system-include", VALUE, " -isystem DIR", NULL, add_pair, IN(preprocess), "-isystem"},
    {"include", "pre-include", VALUE, "  -include FILE", NULL, add_pair, IN(preprocess), "-include"},
    {"D", "define-macro", VALUE, "  -D NAME[=VALUE]", NULL, add_pair, IN(preprocess), "-D"},
    {"U", "undefine-macro", VALUE, "  -U NAME", "", add_pair, IN(preprocess), "-U"},
    {"L", "library-path", VALUE, "-L DIR", NULL, add_joined, IN(link), "-L"},
    {"l", "library", VALUE, "  -l NAME", NULL, add_split, IN(link), "-l"},
    {"Xlinker", "linker-options", VALUE, "  -Xlinker OPTION", NULL, add_pairs, IN(link), "-Xlinker"},
    {"static", "static", FLAG, "  -static", "", add_flag, IN(link), "-static"},
    {"M", "generate-dependencies", FLAG, "-M", NULL, set_depend, 0, "-M", DEPEND},
    {"MM", "generate-nonsystem-dependencies", FLAG, " -MM", NULL, set_depend, 0, "-MM", DEPEND},
    {"MD", "generate-dependencies-with-compile", FLAG, " -MD", NULL, set_depend, 0, "-MD"},
    {"MMD", "generate-nonsystem-dependencies-with-compile", FLAG, " -MMD", NULL, set_depend, 0, "-MMD"},
    {"MP", "generate-dependency-targets", FLAG, " -MP", NULL, set_true, IN(depend_phony)},
    {"MF", "dependency-output", VALUE, "  -MF FILE", NULL, set_text, IN(depend_file)},
    {"MT", "dependency-target-name", VALUE, "  -MT TARGET", "", add_pair, IN(depend_targets), "-MT"},
    {"g", "debug", FLAG, "-g", NULL, add_flag, IN(compile), "-g"},
    {"G", "device-debug", FLAG, " -G", NULL, set_debug_device},
    {"lineinfo", "generate-line-info", FLAG, " -lineinfo", NULL, add_flag, IN(compile), "-g1"},
    {"O", "optimize", VALUE, "  -O0 to -O4", NULL, set_optimize},
    {"std", "std", VALUE, "  -std=c++17", NULL, set_standard},
    {"x", "x", VALUE, "  -x cu|c++|c", NULL, set_language},
    {"rdc", "relocatable-device-code", VALUE, "  -rdc=true|false", "", set_rdc},
    {"arch", "gpu-architecture", VALUE, "-arch=sm_80", NULL, set_architecture},
    {"gencode", "generate-code", VALUE, "  -gencode SPEC", "what __CUDA_ARCH__ says", set_code},
    {"Xcompiler", "compiler-options", VALUE, "-Xcompiler OPTION,…",
     "options of the C++ compiler, such as -fsanitize=address", set_xcompiler},
    {"ccbin", "compiler-bindir", VALUE, "-ccbin COMMAND", "the C++ compiler; else $CXX, else g++",
     set_compiler},
    {"w", "disable-warnings", FLAG, "-w -Wall -Wextra", NULL, add_flag, IN(compile), "-w"},
    {"Werror", "Werror", FLAG, " -Werror", "", set_werror},
    {"check", "check", FLAG, "--check", "the program reports data races and missing waits when it runs",
     set_true, IN(check)},
    {"legacy", "legacy", FLAG, "--legacy", "removed features of CUDA, for old programs (-include legacy.h)",
     set_legacy},
    {"lint", "lint", FLAG, "--lint",
     "only check, with clang++: it finds kernels called without <<<>>> and host functions called\n"
     "from kernels",
     MODE(LINT)},
    {"explain", "explain", FLAG, "--explain",
     "only print which kernels with barriers can become loops, and why others not", MODE(EXPLAIN)},
    {"v", "verbose", FLAG, "-v", NULL, set_true, IN(verbose)},
    {"dryrun", "dryrun", FLAG, ", --dryrun", "print the commands; --dryrun does not run them", set_dryrun},
    {"keep", "keep", FLAG, "-keep", NULL, set_true, IN(keep)},
    {"save-temps", "save-temps", FLAG, HIDDEN, set_true, IN(keep)},
    {"keep-dir", "keep-dir", VALUE, ", --keep-dir DIR", "keep the intermediate files", set_keep_folder},
    {"clean", "clean-targets", FLAG, "-clean", "nothing: only -keep leaves files", MODE(CLEAN)},
    {"optf", "options-file", VALUE, "@FILE, --options-file FILE",
     "read options from a file, with quotes and backslashes as in a shell", read_options_file},
    {"toolkit", "toolkit", FLAG, "--toolkit",
     "print the folder that stands in for a CUDA toolkit (CUDA_PATH)", set_true, IN(print_toolkit)},
    {"V", "version", FLAG, "--version", NULL, version_and_finish},
    {"h", "help", FLAG, ", -h", "", help_and_finish},

    {"odir", "output-directory", VALUE, HIDDEN, set_folder, IN(output_folder)},
    {"ftemplate-depth", "ftemplate-depth", VALUE, HIDDEN, add_joined, IN(compile), "-ftemplate-depth="},
    {"ftemplate-backtrace-limit", "ftemplate-backtrace-limit", VALUE, HIDDEN, add_joined, IN(compile),
     "-ftemplate-backtrace-limit="},
    {"default-stream", "default-stream", VALUE, HIDDEN, set_stream},
    {"cudart", "cudart", VALUE, HIDDEN, set_runtime},
    {"m", "machine", VALUE, HIDDEN, check_bits},
    {"pg", "profile", FLAG, HIDDEN, add_flag, IN(compile), "-pg"},
    {"noeh", "no-exceptions", FLAG, HIDDEN, add_flag, IN(compile), "-fno-exceptions"},
    {"extended-lambda", "expt-extended-lambda", FLAG, HIDDEN, add_flag, IN(preprocess),
     "-D__CUDACC_EXTENDED_LAMBDA__"},
    {"expt-extended-lambda", "expt-extended-lambda", FLAG, HIDDEN, add_flag, IN(preprocess),
     "-D__CUDACC_EXTENDED_LAMBDA__"},
    {"expt-relaxed-constexpr", "expt-relaxed-constexpr", FLAG, HIDDEN, add_flag, IN(preprocess),
     "-D__CUDACC_RELAXED_CONSTEXPR__"},
    {"forward-unknown-to-host-compiler", "forward-unknown-to-host-compiler", FLAG, HIDDEN, set_true,
     IN(unknown_to_compiler)},
    {"forward-unknown-to-host-linker", "forward-unknown-to-host-linker", FLAG, HIDDEN, set_true,
     IN(unknown_to_linker)},
    {"forward-unknown-opts", "forward-unknown-opts", FLAG, HIDDEN, set_forward},
    {"code-ls", "list-gpu-code", FLAG, HIDDEN, print_and_finish, 0, "sm_80"},
    {"arch-ls", "list-gpu-arch", FLAG, HIDDEN, print_and_finish, 0, "compute_80"},
    {"ptx", "ptx", FLAG, HIDDEN, refuse_gpu_code},
    {"ltoir", "ltoir", FLAG, HIDDEN, refuse_gpu_code},
    {"optix-ir", "optix-ir", FLAG, HIDDEN, refuse_gpu_code},

    // Accepted and ignored: they are about GPUs, or about how nvcc works
    {"code", "gpu-code", VALUE},
    {"Xptxas", "ptxas-options", VALUE},
    {"Xnvlink", "nvlink-options", VALUE},
    {"Xarchive", "archive-options", VALUE},
    {"cudadevrt", "cudadevrt", VALUE},
    {"maxrregcount", "maxrregcount", VALUE},
    {"ftz", "ftz", VALUE},
    {"prec-div", "prec-div", VALUE},
    {"prec-sqrt", "prec-sqrt", VALUE},
    {"fmad", "fmad", VALUE},
    {"t", "threads", VALUE},
    {"split-compile", "split-compile", VALUE},
    {"split-compile-extended", "split-compile-extended", VALUE},
    {"diag-suppress", "diag-suppress", VALUE},
    {"diag-error", "diag-error", VALUE},
    {"diag-warn", "diag-warn", VALUE},
    {"arbin", "archiver-binary", VALUE},
    {"ldir", "libdevice-directory", VALUE},
    {"target-dir", "target-directory", VALUE},
    {"time", "time", VALUE},
    {"Ofc", "Ofast-compile", VALUE},
    {"dopt", "dopt", VALUE},
    {"opt-info", "optimization-info", VALUE},
    {"e", "entries", VALUE},
    {"brief-diag", "brief-diagnostics", VALUE},
    {"jtd", "jump-table-density", VALUE},
    {"hls", "host-linker-script", VALUE},
    {"compress-mode", "compress-mode", VALUE},
    {"frandom-seed", "frandom-seed", VALUE},
    {"static-global-template-stub", "static-global-template-stub", VALUE},
    {"device-entity-has-hidden-visibility", "device-entity-has-hidden-visibility", VALUE},
    {"device-stack-protector", "device-stack-protector", VALUE},
    {"Xcudafe", "cudafe-options", VALUE},
    {"Xfatbin", "fatbin-options", VALUE},
    {"fdevice-time-trace", "fdevice-time-trace", VALUE},
    {"m64", "m64", FLAG},
    {"use_fast_math", "use_fast_math", FLAG},
    {"restrict", "restrict", FLAG},
    {"res-usage", "resource-usage", FLAG},
    {"allow-unsupported-compiler", "allow-unsupported-compiler", FLAG},
    {"noprof", "dont-use-profile", FLAG},
    {"nodlink", "no-device-link", FLAG},
    {"objtemp", "objdir-as-tempdir", FLAG},
    {"use-local-env", "use-local-env", FLAG},
    {"extra-device-vectorization", "extra-device-vectorization", FLAG},
    {"keep-device-functions", "keep-device-functions", FLAG},
    {"src-in-ptx", "source-in-ptx", FLAG},
    {"dlto", "dlink-time-opt", FLAG},
    {"lto", "lto", FLAG},
    {"gen-opt-lto", "gen-opt-lto", FLAG},
    {"nohdinitlist", "no-host-device-initializer-list", FLAG},
    {"nohdmoveforward", "no-host-device-move-forward", FLAG},
    {"ewp", "extensible-whole-program", FLAG},
    {"no-compress", "no-compress", FLAG},
    {"err-no", "display-error-number", FLAG},
    {"no-err-no", "no-display-error-number", FLAG},
    {"no-align-double", "no-align-double", FLAG},
    {"aug-hls", "augment-host-linker-script", FLAG},
    {"reloc-ptx", "relocatable-ptx", FLAG},
    {"jobserver", "jobserver", FLAG},
    {"fdevice-syntax-only", "fdevice-syntax-only", FLAG},
    {"Wreorder", "Wreorder", FLAG},
    {"Wdefault-stream-launch", "Wdefault-stream-launch", FLAG},
    {"Wmissing-launch-bounds", "Wmissing-launch-bounds", FLAG},
    {"Wext-lambda-captures-this", "Wext-lambda-captures-this", FLAG},
    {"Wno-deprecated-gpu-targets", "Wno-deprecated-gpu-targets", FLAG},
    {0},
};

static List arguments; // of the command line, with those that files and variables insert …
static int next;       // … and the next one to read

// The option that an argument such as -name, --name, --long-name or --name=value begins with
static const Option *find_option(const char *argument) {
    const bool is_long = argument[1] == '-';
    const char *name = argument + 1 + is_long;
    const size_t length = strcspn(name, "=");
    for (const Option *o = options; o->name; o++)
        if ((!strncmp(o->name, name, length) && !o->name[length]) ||
            (is_long && !strncmp(o->long_name, name, length) && !o->long_name[length]))
            return o;
    return NULL;
}

const char *next_argument(void) {
    return next < arguments.count ? arguments.words[next] : "";
}

void take_argument(void) {
    next += next < arguments.count;
}

static void insert_arguments(const List *words) {
    List all = {0};
    add_list(&all, words);
    for (; next < arguments.count; next++)
        add(&all, arguments.words[next]);
    arguments = all;
    next = 0;
}

// Inserts the words of a file before the arguments that are left.
void insert_options(const char *file) {
    static int files;
    Text text = {0};
    List words = {0};
    if (!is_regular(file) || !read_text(file, &text))
        stop("%s: cannot read this file of options", file);
    if (++files > 100)
        stop("%s: this file of options reads itself", file);
    size_t kept = 0;
    for (size_t i = 0; i < text.length; i++)
        if (text.data[i] != '\0' && text.data[i] != '\r')
            text.data[kept++] = text.data[i];
    text.data[kept] = '\0';
    if (!split_words(text.data, " \t\n", true, &words))
        stop("%s: a quote of this file of options is not closed", file);
    insert_arguments(&words);
}

static void unknown_option(Settings *s, const char *argument) {
    if (has_prefix(argument, "-Wl,")) {
        fprintf(stderr, "cucc: warning: nvcc refuses %s (-Xlinker passes an option to the linker)\n",
                argument);
        add(&s->link, argument);
    } else if (has_prefix(argument, "-W")) {
        add(&s->compile, argument);
    } else if (!strcmp(argument, "--Wno-deprecated-declarations")) {
        add(&s->compile, argument + 1);
    } else if (!s->unknown_to_compiler && !s->unknown_to_linker) {
        stop("unknown option '%s' (-Xcompiler passes an option to the C++ compiler)", argument);
    } else {
        if (s->unknown_to_compiler)
            add(&s->compile, argument);
        if (s->unknown_to_linker)
            add(&s->link, argument);
    }
}

static void parse_option(Settings *s, const char *argument) {
    const Option *option = find_option(argument);
    const char *equals = strchr(argument, '='), *value = equals ? equals + 1 : NULL;
    // A one-letter option may be joined to its value: -Ifolder, -O2. -I=folder is also allowed.
    if (!option && argument[1] && argument[2] &&
        (strchr("IDULlOxo", argument[1]) ||
         (strchr("mt", argument[1]) && strchr("0123456789", argument[2])))) {
        option = find_option(format("-%c", argument[1]));
        value = argument + 2;
        argument = format("-%c", argument[1]);
    }
    if (!option) {
        unknown_option(s, argument);
        return;
    }
    if (option->takes == VALUE && !value) {
        if (next == arguments.count)
            stop("argument expected after '%s'", argument);
        value = arguments.words[next++];
    }
    s->argument = argument;
    if (option->action)
        option->action(s, option, value ? value : "");
}

void parse_options(Settings *s, int count, char **words) {
    const char *before = getenv("NVCC_PREPEND_FLAGS"), *after = getenv("NVCC_APPEND_FLAGS");
    // As nvcc, so that a project's own build can be given an option
    arguments = blank_separated(before ? before : "");
    for (int i = 0; i < count; i++)
        add(&arguments, words[i]);
    const List appended = blank_separated(after ? after : "");
    add_list(&arguments, &appended);
    while (next < arguments.count) {
        const char *argument = arguments.words[next++];
        if (!*argument) {
            stop("an argument is empty");
        } else if (*argument == '@') {
            insert_options(argument + 1);
        } else if (*argument != '-' || !argument[1]) {
            add(&s->inputs, argument);
            add(&s->link, argument);
        } else {
            parse_option(s, argument);
        }
    }
}

// A line of --help: options, and in column 31 a text, which may have several lines
static void print_line(const char *usage, const char *help) {
    int columns = 0;
    for (const char *p = usage; *p; p++)
        columns += (*p & 0xc0) != 0x80; // … has three bytes
    printf("  %s%*s", usage, *help ? 29 - columns : 0, "");
    for (; *help; help++)
        *help == '\n' ? printf("\n%31s", "") : putchar(*help);
    putchar('\n');
}

void print_help(void) {
    puts("usage: cucc [options] file…\n"
         "Compiles CUDA C++ (.cu), C++ (.cpp, .cc, .cxx) and C (.c) for this machine's processor and links "
         "them. The "
         "options are\nnvcc's, with a blank or = before a value:");
    Text usage = empty_text();
    for (const Option *o = options; o->name; o++) {
        append_text(&usage, o->usage ? o->usage : "");
        if (o->help) {
            print_line(usage.data, o->help);
            usage = empty_text();
        }
    }
    puts("Options about GPUs that have no meaning here are accepted, such as -Xptxas, -Xcudafe, -Xfatbin and "
         "-fdevice-time-trace. man cucc says more.");
}
