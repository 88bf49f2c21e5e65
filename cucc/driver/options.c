// SPDX-License-Identifier: MIT
// The options, which are nvcc's: one table for the parser and for --help
#include "driver.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" // most options need few members
#pragma GCC diagnostic ignored "-Wunused-parameter"

// Abbreviations for the table
#define HIDDEN     NULL, NULL // from --help
#define IN(member) offsetof(Settings, member)
#define MODE(mode) set_mode, 0, NULL, mode

// In the order of --help, where an option without a help text shares a line with the next ones
static const Option options[] = {
    {"o:output-file", VALUE, "-o FILE", "output; else a.out, or FILE.o with -c", set_output},
    {"c:compile dw:device-w", FLAG, "-c", NULL, MODE(COMPILE)},
    {"dc:device-c", FLAG, ", -dc", "only compile", set_mode, IN(rdc), NULL, COMPILE},
    {"E:preprocess", FLAG, "-E", "only preprocess", MODE(PREPROCESS)},
    {"cuda", FLAG, "-cuda", "only translate to C++", MODE(TRANSLATE)},
    {"lib", FLAG, "-lib", NULL, MODE(LIB)},
    {"link", FLAG, HIDDEN, MODE(LINK)},
    {"shared", FLAG, ", -shared", NULL, set_shared},
    {"dlink:device-link", FLAG, ", -dlink", NULL, MODE(DLINK)},
    {"run", FLAG, ", -run", "other outputs; compile, link and run", set_true, IN(run)},
    {"run-args", VALUE, HIDDEN, add_split, IN(run_args), ""},
    {"fatbin", FLAG, "-fatbin", NULL, set_image, 0, ".fatbin"},
    {"cubin", FLAG, ", -cubin", "a module for cuModuleLoad, with code for this machine", set_image, 0,
     ".cubin"},
    {"I:include-path", VALUE, "-I", NULL, add_pair, IN(preprocess), "-I"},
    {"isystem:system-include", VALUE, " -isystem DIR", NULL, add_pair, IN(preprocess), "-isystem"},
    {"include:pre-include", VALUE, "  -include FILE", NULL, add_pair, IN(preprocess), "-include"},
    {"D:define-macro", VALUE, "  -D NAME[=VALUE]", NULL, add_pair, IN(preprocess), "-D"},
    {"U:undefine-macro", VALUE, "  -U NAME", "", add_pair, IN(preprocess), "-U"},
    {"L:library-path", VALUE, "-L DIR", NULL, add_joined, IN(link), "-L"},
    {"l:library", VALUE, "  -l NAME", NULL, add_split, IN(link), "-l"},
    {"Xlinker:linker-options", VALUE, "  -Xlinker OPTION", NULL, add_pairs, IN(link), "-Xlinker"},
    {"static", FLAG, "  -static", "", add_flag, IN(link), "-static"},
    {"M:generate-dependencies", FLAG, "-M", NULL, set_depend, 0, "-M", DEPEND},
    {"MM:generate-nonsystem-dependencies", FLAG, " -MM", NULL, set_depend, 0, "-MM", DEPEND},
    {"MD:generate-dependencies-with-compile", FLAG, " -MD", NULL, set_depend, 0, "-MD"},
    {"MMD:generate-nonsystem-dependencies-with-compile", FLAG, " -MMD", NULL, set_depend, 0, "-MMD"},
    {"MP:generate-dependency-targets", FLAG, " -MP", NULL, set_true, IN(depend_phony)},
    {"MF:dependency-output", VALUE, "  -MF FILE", NULL, set_text, IN(depend_file)},
    {"MT:dependency-target-name", VALUE, "  -MT TARGET", "", add_pair, IN(depend_targets), "-MT"},
    {"g:debug", FLAG, "-g", NULL, add_flag, IN(compile), "-g"},
    {"G:device-debug", FLAG, " -G", NULL, set_debug_device},
    {"lineinfo:generate-line-info", FLAG, " -lineinfo", NULL, add_flag, IN(compile), "-g1"},
    {"O:optimize", VALUE, "  -O0 to -O4", NULL, set_optimize},
    {"std", VALUE, "  -std=c++17", NULL, set_standard},
    {"x", VALUE, "  -x cu|c++|c", NULL, set_language},
    {"rdc:relocatable-device-code", VALUE, "  -rdc=true|false", "", set_rdc},
    {"arch:gpu-architecture", VALUE, "-arch=sm_80", NULL, check_architecture},
    {"gencode:generate-code", VALUE, "  -gencode SPEC", "what __CUDA_ARCH__ says", check_code},
    {"Xcompiler:compiler-options", VALUE, "-Xcompiler OPTION,…",
     "options of the C++ compiler, such as -fsanitize=address", set_xcompiler},
    {"ccbin:compiler-bindir", VALUE, "-ccbin COMMAND", "the C++ compiler; else $CXX, else g++", set_compiler},
    {"w:disable-warnings", FLAG, "-w -Wall -Wextra", NULL, add_flag, IN(compile), "-w"},
    {"Werror", FLAG, " -Werror", "", set_werror},
    {"check", FLAG, "--check", "the program reports data races and missing waits when it runs", set_true,
     IN(check)},
    {"legacy", FLAG, "--legacy", "removed features of CUDA, for old programs (-include legacy.h)",
     set_legacy},
    {"lint", FLAG, "--lint",
     "only check, with clang++: it finds kernels called without <<<>>> and host functions called\n"
     "from kernels",
     MODE(LINT)},
    {"explain", FLAG, "--explain",
     "only print which kernels with barriers can become loops, and why others not", MODE(EXPLAIN)},
    {"v:verbose", FLAG, "-v", NULL, set_true, IN(verbose)},
    {"dryrun", FLAG, ", --dryrun", "print the commands; --dryrun does not run them", set_true, IN(dryrun)},
    {"keep save-temps", FLAG, "-keep", NULL, set_true, IN(keep)},
    {"keep-dir", VALUE, ", --keep-dir DIR", "keep the intermediate files", set_folder, IN(keep_folder)},
    {"clean:clean-targets", FLAG, "-clean", "nothing: only -keep leaves files", MODE(CLEAN)},
    {"optf:options-file", VALUE, "@FILE, --options-file FILE",
     "read options from a file, with quotes and backslashes as in a shell", insert_options},
    {"toolkit", FLAG, "--toolkit", "print the folder that stands in for a CUDA toolkit (CUDA_PATH)", set_true,
     IN(print_toolkit)},
    {"V:version", FLAG, "--version", NULL, version_and_finish},
    {"h:help", FLAG, ", -h", "", print_help},

    {"odir:output-directory", VALUE, HIDDEN, set_folder, IN(output_folder)},
    {"ftemplate-depth", VALUE, HIDDEN, add_joined, IN(compile), "-ftemplate-depth="},
    {"ftemplate-backtrace-limit", VALUE, HIDDEN, add_joined, IN(compile), "-ftemplate-backtrace-limit="},
    {"default-stream", VALUE, HIDDEN, set_stream},
    {"cudart", VALUE, HIDDEN, set_runtime},
    {"m:machine", VALUE, HIDDEN, check_bits},
    {"pg:profile", FLAG, HIDDEN, add_flag, IN(compile), "-pg"},
    {"noeh:no-exceptions", FLAG, HIDDEN, add_flag, IN(compile), "-fno-exceptions"},
    {"extended-lambda expt-extended-lambda", FLAG, HIDDEN, add_flag, IN(preprocess),
     "-D__CUDACC_EXTENDED_LAMBDA__"},
    {"expt-relaxed-constexpr", FLAG, HIDDEN, add_flag, IN(preprocess), "-D__CUDACC_RELAXED_CONSTEXPR__"},
    {"forward-unknown-to-host-compiler", FLAG, HIDDEN, set_true, IN(unknown_to_compiler)},
    {"forward-unknown-to-host-linker", FLAG, HIDDEN, set_true, IN(unknown_to_linker)},
    {"forward-unknown-opts", FLAG, HIDDEN, set_true, IN(unknown_to_both)},
    {"code-ls:list-gpu-code", FLAG, HIDDEN, print_and_finish, 0, "sm_80"},
    {"arch-ls:list-gpu-arch", FLAG, HIDDEN, print_and_finish, 0, "compute_80"},
    {"ptx ltoir optix-ir", FLAG, HIDDEN, refuse_gpu_code},

    // Accepted and ignored: they are about GPUs, or about how nvcc works
    {"code:gpu-code Xptxas:ptxas-options Xnvlink:nvlink-options Xarchive:archive-options cudadevrt "
     "maxrregcount ftz prec-div prec-sqrt fmad t:threads split-compile split-compile-extended "
     "diag-suppress diag-error diag-warn arbin:archiver-binary ldir:libdevice-directory "
     "target-dir:target-directory time Ofc:Ofast-compile dopt opt-info:optimization-info e:entries "
     "brief-diag:brief-diagnostics jtd:jump-table-density hls:host-linker-script compress-mode "
     "frandom-seed static-global-template-stub device-entity-has-hidden-visibility "
     "device-stack-protector Xcudafe:cudafe-options Xfatbin:fatbin-options fdevice-time-trace",
     VALUE},
    {"m64 use_fast_math restrict res-usage:resource-usage allow-unsupported-compiler "
     "noprof:dont-use-profile nodlink:no-device-link objtemp:objdir-as-tempdir use-local-env "
     "extra-device-vectorization keep-device-functions src-in-ptx:source-in-ptx dlto:dlink-time-opt "
     "lto gen-opt-lto nohdinitlist:no-host-device-initializer-list "
     "nohdmoveforward:no-host-device-move-forward ewp:extensible-whole-program no-compress "
     "err-no:display-error-number no-err-no:no-display-error-number no-align-double "
     "aug-hls:augment-host-linker-script reloc-ptx:relocatable-ptx jobserver fdevice-syntax-only "
     "Wreorder Wdefault-stream-launch Wmissing-launch-bounds Wext-lambda-captures-this "
     "Wno-deprecated-gpu-targets",
     FLAG},
    {0},
};

static List arguments; // of the command line, with those that files and variables insert …
static int next;       // … and the next one to read

// Whether an option of the table has this name. The names after : have two dashes.
static bool is_named(const Option *option, const char *name, size_t length, bool two_dashes) {
    for (const char *p = option->names, *end; *p; p = end + (*end != '\0')) {
        end = p + strcspn(p, ": ");
        if ((two_dashes || p == option->names || p[-1] == ' ') && (size_t)(end - p) == length &&
            memcmp(p, name, length) == 0)
            return true;
    }
    return false;
}

// The option that an argument such as -name, --name or --name=value begins with
static const Option *find_option(const char *argument) {
    const bool two_dashes = argument[1] == '-';
    const char *name = argument + 1 + two_dashes;
    for (const Option *o = options; o->names; o++)
        if (is_named(o, name, strcspn(name, "="), two_dashes))
            return o;
    return NULL;
}

// Inserts the words of a file before the arguments that are left.
void insert_options(Settings *s, const Option *option, const char *file) {
    static int files;
    Text text = {0};
    List words = {0};
    if (mode_of(file) != S_IFREG || !read_text(file, &text))
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
    for (; next < arguments.count; next++)
        add(&words, arguments.words[next]);
    arguments = words;
    next = 0;
}

// nvcc requires the kind of warning as a value; g++ takes none.
void set_werror(Settings *s, const Option *option, const char *value) {
    const bool joined = strchr(s->argument, '=');
    value = joined ? value : next < arguments.count ? arguments.words[next] : "";
    const bool known =
        matches(value, "cross-execution-space-call* deprecated-declarations* reorder* "
                       "default-stream-launch* missing-launch-bounds* ext-lambda-captures-this*");
    const bool all = strstr(value, "all-warnings");
    if (all || !known)
        add(&s->compile, "-Werror");
    if ((all || known) && !joined)
        next++;
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
    } else {
        if (s->unknown_to_compiler || s->unknown_to_both)
            add(&s->compile, argument);
        if (s->unknown_to_linker || s->unknown_to_both)
            add(&s->link, argument);
        if (!s->unknown_to_compiler && !s->unknown_to_linker && !s->unknown_to_both)
            stop("unknown option '%s' (-Xcompiler passes an option to the C++ compiler)", argument);
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
            insert_options(s, NULL, argument + 1);
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

void print_help(Settings *s, const Option *option, const char *value) {
    puts("usage: cucc [options] file…\n"
         "Compiles CUDA C++ (.cu), C++ (.cpp, .cc, .cxx) and C (.c) for this machine's processor and links "
         "them. The options are\n"
         "nvcc's, with a blank or = before a value:");
    Text usage = empty_text();
    for (const Option *o = options; o->names; o++) {
        append_text(&usage, o->usage ? o->usage : "");
        if (o->help) {
            print_line(usage.data, o->help);
            usage = empty_text();
        }
    }
    puts("Options about GPUs that have no meaning here are accepted, such as -Xptxas, -Xcudafe, -Xfatbin and "
         "-fdevice-time-trace. man cucc says more.");
    finish(EXIT_SUCCESS);
}
