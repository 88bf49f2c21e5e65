// SPDX-License-Identifier: MIT
// What the files of the compiler driver share. main.c has the order of the steps.
//
// Memory is not freed: the process ends when the last step does.
#pragma once
#include "../translate/translate.h"
#include <sys/stat.h>

// Words of a command or of a list of options; words[count] is a null pointer.
typedef struct {
    char **words;
    int count;
} List;

typedef enum { LINK, COMPILE, PREPROCESS, TRANSLATE, DEPEND, LINT, EXPLAIN, DLINK, LIB, CLEAN } Mode;

typedef enum { UNKNOWN, CUDA, CXX, C, OTHER, OBJECT } Kind; // of an input

// What the command line says, and what follows from it. A text that is not given is a null pointer.
typedef struct {
    Mode mode;
    List inputs;              // in the order of the command line
    List link;                // arguments of the linker; each input is among them, by the same pointer
    List preprocess, compile; // options of the C++ compiler
    List old;                 // of --legacy, and not for C
    List run_args, depend_targets;
    const char *output, *output_folder, *depend, *depend_file, *keep_folder, *image;
    const char *standard, *standard_c, *optimize;
    Kind language; // of -x
    int arch;      // the compute capability, times ten
    bool check, depend_phony, dryrun, keep, legacy, no_runtime, print_toolkit, rdc, run, shared, verbose;
    const char *argument;                                         // the option that is read, as it is spelled
    bool unknown_to_compiler, unknown_to_linker, unknown_to_both; // where unknown options go
    bool shared_index; // threadIdx is shared with other units (CUDA_CPU_SEVERAL in kernel.h)

    // compiler.c
    List cxx;        // the command of the C++ compiler
    char *cxx_path;  // the program, without symbolic links
    char *sanitize;  // of the program; the library must have them too
    List instrument; // of --check
    List translated; // for what the translator writes
    List threads, executable;

    // toolkit.c
    const char *script; // the file cucc that was started …
    char **words;       // … with these arguments
    bool restarted;     // to build in a folder of the user's own
    const char *home;   // the folder with the sources
    const char *build;  // the folder with what is built from them
    char *tools;        // the folder that is laid out like a CUDA toolkit
} Settings;

// words.c
void add(List *list, const char *word);
void add_words(List *list, ...);
#define ADD(list, ...) add_words(list, __VA_ARGS__, (char *)NULL)
void add_list(List *list, const List *more);
void add_all_of(List *list, const char *words);
List copy_of(const List *list);
bool split_words(const char *text, const char *separators, bool as_shell, List *words);
List words_of(const char *text);
List blank_separated(const char *text);
bool matches(const char *text, const char *patterns);
bool has_prefix(const char *text, const char *prefix);
const char *name_of(const char *path);
char *stem_of(const char *path);

// files.c
mode_t mode_of(const char *path);
bool same_file(const char *path, const char *other);
bool read_text(const char *path, Text *text);
bool contains(const char *path, const char *text);
const char *first_of(const char *path, const char *words, bool only_program);
bool names_architecture(const char *preprocessed, const char *except);

// command.c
__attribute__((format(printf, 1, 2))) _Noreturn void stop(const char *format, ...);
_Noreturn void finish(int status);
void catch_signals(void);
void wait_a_moment(void);
const char *work_folder(void);
_Noreturn void restart(const Settings *s);
void show(const Settings *s, const List *command);
int run_step(const Settings *s, const List *command);
int run_command(const List *command, FILE *in, FILE *out, FILE *err);
int run_captured(const List *command, bool errors, Text *printed);
const char *color_option(void);
int run_translation(const Settings *s, const List *command, const Translation *how);

// options.c, actions.c, architecture.c
typedef struct Option Option;
typedef void Action(Settings *s, const Option *option, const char *value);
struct Option {
    const char *names; // name:long-name; -name, --name and --long-name mean the same
    enum { FLAG, VALUE } takes;
    const char *usage, *help; // a line of --help ends with an option that has help
    Action *action;           // null: accepted and ignored
    size_t member;            // of Settings, a word and a number, for the action
    const char *word;
    int number;
};
void parse_options(Settings *s, int count, char **words);
Action insert_options, print_help, check_architecture, check_code;
Action add_flag, add_pair, add_joined, add_split, add_pairs, set_text, set_folder, set_true, set_mode;
Action set_output, set_image, set_shared, set_legacy, set_xcompiler, set_compiler, set_language, set_standard;
Action set_optimize, set_debug_device, set_rdc, set_depend, set_werror, set_stream, set_runtime, check_bits;
Action refuse_gpu_code, print_and_finish, version_and_finish;

// compiler.c
char *find_command(const char *name);
void choose_compiler(Settings *s);
char *machine_of(const Settings *s);

// toolkit.c
void find_toolkit(Settings *s);

// compile.c, link.c
Kind kind_of(const Settings *s, const char *file);
int compile_source(const Settings *s, const char *file, const char *object);
int link_objects(const Settings *s, const List *arguments);

// precompiled.c
bool compile_with_precompiled(const Settings *s, const List *command, const char *input, const char *object);

// hints.c
void hint_missing_header(const Settings *s, const List *preprocess, const char *file);
void hint_removed(const Settings *s, const char *file);
void print_messages(const Text *said);
