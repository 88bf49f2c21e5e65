// SPDX-License-Identifier: MIT
// What the options do: the actions of the table in options.c
#include "driver.h"
#pragma GCC diagnostic ignored "-Wunused-parameter" // all actions have the same parameters

// The member of the settings that the table names for an option
static void *member(Settings *s, const Option *option) {
    return (char *)s + option->member;
}

// ---- actions that the table completes with a member, a word or a number

void add_flag(Settings *s, const Option *option, const char *value) {
    add(member(s, option), option->word);
}

void add_pair(Settings *s, const Option *option, const char *value) {
    ADD(member(s, option), option->word, value);
}

void add_joined(Settings *s, const Option *option, const char *value) {
    add(member(s, option), format("%s%s", option->word, value));
}

// Several words, each joined to that of the table
void add_split(Settings *s, const Option *option, const char *value) {
    const List words = words_of(value);
    for (int i = 0; i < words.count; i++)
        add_joined(s, option, words.words[i]);
}

// Several words, each after that of the table
void add_pairs(Settings *s, const Option *option, const char *value) {
    const List words = words_of(value);
    for (int i = 0; i < words.count; i++)
        add_pair(s, option, words.words[i]);
}

void set_text(Settings *s, const Option *option, const char *value) {
    *(const char **)member(s, option) = *value ? value : NULL;
}

void set_folder(Settings *s, const Option *option, const char *value) {
    *(const char **)member(s, option) = format("%s/", value);
}

void set_true(Settings *s, const Option *option, const char *value) {
    *(bool *)member(s, option) = true;
}

// A member of the table is set to true.
void set_mode(Settings *s, const Option *option, const char *value) {
    s->mode = (Mode)option->number;
    if (option->member)
        set_true(s, option, value);
}

void print_and_finish(Settings *s, const Option *option, const char *value) {
    puts(option->word);
    finish(EXIT_SUCCESS);
}

// ---- actions of one option or of similar ones

void set_output(Settings *s, const Option *option, const char *value) {
    if (!*value)
        stop("-o: the output's name is empty");
    s->output = value;
}

void set_image(Settings *s, const Option *option, const char *value) {
    s->mode = LINK;
    s->shared = s->rdc = s->no_runtime = true;
    s->image = option->word;
    add(&s->compile, "-fPIC");
    ADD(&s->link, "-shared", "-Wl,-Bsymbolic");
}

void set_shared(Settings *s, const Option *option, const char *value) {
    s->shared = true;
    add(&s->link, "-shared");
}

void set_legacy(Settings *s, const Option *option, const char *value) {
    s->legacy = true;
    ADD(&s->preprocess, "-I", format("%s/legacy", s->home));
    s->old = (List){0};
    ADD(&s->old, "-fpermissive", "-include", format("%s/legacy/legacy.h", s->home));
}

// The commas of -fsanitize=address,undefined are part of the value.
void set_xcompiler(Settings *s, const Option *option, const char *value) {
    const List words = words_of(value);
    for (int i = 0; i < words.count; i++) {
        List *to = &s->compile;
        char **last = to->count ? &to->words[to->count - 1] : NULL;
        if (last && has_prefix(*last, "-fsanitize=") &&
            matches(words.words[i], "address undefined leak thread"))
            *last = format("%s,%s", *last, words.words[i]);
        else
            add(to, words.words[i]);
    }
}

void set_compiler(Settings *s, const Option *option, const char *value) {
    s->cxx = (List){0};
    if (mode_of(value) == S_IFDIR)
        add(&s->cxx, format("%s/g++", value));
    else
        add_all_of(&s->cxx, value);
}

void set_language(Settings *s, const Option *option, const char *value) {
    if (!matches(value, "cu c++ c"))
        stop("-x %s: must be cu, c++ or c", value);
    s->language = !strcmp(value, "cu") ? CUDA : !strcmp(value, "c") ? C : CXX;
}

void set_standard(Settings *s, const Option *option, const char *value) {
    if (matches(value, "c++03 c++11 c++14 gnu++03 gnu++11 gnu++14")) {
        s->standard = "gnu++14"; // see cxx14.h
        add(&s->compile, "-Wno-c++17-extensions");
    } else if (matches(value, "c++17 gnu++17")) {
        s->standard = "gnu++17";
    } else if (matches(value, "c++2* gnu++2*")) {
        s->standard = format("gnu%s", strchr(value, '+'));
        if (matches(value, "*23 *2b"))
            fprintf(stderr, "cucc: warning: nvcc 13 refuses -std=%s\n", value);
    } else if (matches(value, "c[0-9]* gnu[0-9]*")) {
        s->standard_c = format("-std=%s", value);
    } else {
        stop("-std=%s: must be c++03, c++11, c++14, c++17 or c++20", value);
    }
}

void set_optimize(Settings *s, const Option *option, const char *value) {
    if (!matches(value, "[0-9] s g"))
        stop("-O%s: must be 0 to 4", value);
    s->optimize = format("-O%s", matches(value, "[4-9]") ? "3" : value);
}

void set_debug_device(Settings *s, const Option *option, const char *value) {
    add(&s->compile, "-g");
    s->optimize = "-O0";
}

void set_rdc(Settings *s, const Option *option, const char *value) {
    s->rdc = !strcmp(value, "true");
    if (!s->rdc && strcmp(value, "false") != 0)
        stop("-rdc=%s: must be true or false", value);
}

void set_depend(Settings *s, const Option *option, const char *value) {
    s->depend = option->word;
    if (option->number)
        s->mode = DEPEND;
}

void set_stream(Settings *s, const Option *option, const char *value) {
    if (!strcmp(value, "per-thread"))
        add(&s->preprocess, "-DCUDA_API_PER_THREAD_DEFAULT_STREAM");
}

void set_runtime(Settings *s, const Option *option, const char *value) {
    s->no_runtime = s->no_runtime || !strcmp(value, "none");
}

void check_bits(Settings *s, const Option *option, const char *value) {
    if (strcmp(value, "64") != 0)
        stop("-m%s: only 64 bits are supported", value);
}

void refuse_gpu_code(Settings *s, const Option *option, const char *value) {
    stop("%s: there is no code for a GPU here, only for this machine's processor", s->argument);
}

// CMake and makefiles look for the words that nvcc prints.
void version_and_finish(Settings *s, const Option *option, const char *value) {
    Text version = empty_text();
    read_text(format("%s/VERSION", s->home), &version);
    printf("cucc %.*s: CUDA C++ for the CPU, in place of nvcc: NVIDIA (R) Cuda compiler driver\n"
           "Cuda compilation tools, release 13.0, V13.0.88\n",
           (int)strcspn(version.data, "\n"), version.data);
    finish(EXIT_SUCCESS);
}
