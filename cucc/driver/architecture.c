// SPDX-License-Identifier: MIT
// -arch and -gencode: names of architectures of GPUs, checked in nvcc's words
#include "driver.h"

static const char *const prefixes[] = {"sm_", "compute_", "lto_", NULL};

// The number at the begin of a text such as sm_80, and where it ends; or 0
static int number_of(const char *text, char **end) {
    for (const char *const *prefix = prefixes; *prefix; prefix++) {
        const char *digits = text + strlen(*prefix);
        if (has_prefix(text, *prefix) && '0' <= *digits && *digits <= '9')
            return (int)strtoul(digits, end, 10);
    }
    return 0;
}

// The device has compute capability 8.0. If several architectures are given, it runs the code for the newest
// one that is not above 8.0.
static void note_architectures(Settings *s, const char *text) {
    for (char *next; *text; text = next) {
        const int one = number_of(text, &next);
        if (!one)
            next = (char *)text + 1;
        else if (!s->arch || (one <= 80 ? one > s->arch || s->arch > 80 : one < s->arch))
            s->arch = one;
    }
}

static void check_name(const char *name) {
    if (!strcmp(name, "native") || !strcmp(name, "all") || !strcmp(name, "all-major"))
        return;
    char *end = NULL;
    const int number = number_of(name, &end);
    const char *digits = strchr(name, '_');
    if (!number || digits[1] == '0' || end - digits < 3 || end - digits > 4 || number > 129 ||
        (*end && strcmp(end, "a") != 0 && strcmp(end, "f") != 0))
        stop("Unsupported gpu architecture '%s'", name);
    if (number < 75)
        fprintf(stderr, "cucc: warning: nvcc 13 refuses the architecture '%s'\n", name);
}

// Refuses what is no GPU; warns of those that nvcc 13 no longer knows.
void check_architecture(Settings *s, const char *name) {
    check_name(name);
    note_architectures(s, name);
}

// What follows `key` at the begin of the text or after a comma
static const char *after_key(const char *text, const char *key) {
    for (; text; text = (text = strchr(text, ',')) ? text + 1 : NULL)
        if (has_prefix(text, key))
            return text + strlen(key);
    return NULL;
}

// Of -gencode, such as arch=compute_80,code=[sm_80,compute_80]
void check_code(Settings *s, const char *specification) {
    if (!strchr(specification, '='))
        stop("'%s' is not in 'keyword=value' format", specification);
    const char *arch = after_key(specification, "arch="), *code = after_key(specification, "code=");
    if (!arch)
        stop("Option '--generate-code %s', missing architecture", specification);
    check_name(format("%.*s", (int)strcspn(arch, ","), arch));
    if (!code)
        stop("Option '--generate-code %s', missing code", specification);
    const char *next = strstr(code, ",arch=");
    List names = {0};
    Text bare = empty_text();
    for (const char *p = code; *p && p != next; p++)
        if (!strchr("[]'\"", *p))
            append(&bare, p, 1);
    if (split_words(bare.data, ", \t\n", false, &names))
        for (int i = 0; i < names.count; i++)
            check_name(names.words[i]);
    note_architectures(s, specification);
}
