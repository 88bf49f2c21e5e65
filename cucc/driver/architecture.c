// SPDX-License-Identifier: MIT
// -arch and -gencode: names of architectures of GPUs, checked in nvcc's words
#include "driver.h"
#include <regex.h>

// Finds an extended regular expression in a text. Sets what its second group stands for, if that is not null.
static const char *find(const char *text, const char *expression, char **second) {
    regex_t compiled;
    regmatch_t found[3];
    if (regcomp(&compiled, expression, REG_EXTENDED) != 0)
        stop("out of memory");
    const bool here = regexec(&compiled, text, 3, found, 0) == 0;
    regfree(&compiled);
    if (here && second)
        *second = format("%.*s", (int)(found[2].rm_eo - found[2].rm_so), text + found[2].rm_so);
    return here ? text + found[0].rm_eo : NULL;
}

// The device has compute capability 8.0. Of several architectures, it runs the newest up to 8.0.
static void note_architectures(Settings *s, const char *text) {
    for (char *number; (text = find(text, "(sm|compute|lto)_([0-9]+)", &number));) {
        const int one = atoi(number);
        if (!s->arch || (one <= 80 ? one > s->arch || s->arch > 80 : one < s->arch))
            s->arch = one;
    }
}

static void check_name(const char *name) {
    char *number;
    if (matches(name, "native all all-major"))
        return;
    if (!find(name, "^(sm|compute|lto)_([1-9][0-9]{1,2})[af]?$", &number) || atoi(number) > 129)
        stop("Unsupported gpu architecture '%s'", name);
    if (atoi(number) < 75)
        fprintf(stderr, "cucc: warning: nvcc 13 refuses the architecture '%s'\n", name);
}

// Refuses what is no GPU; warns of those that nvcc 13 no longer knows.
void check_architecture(Settings *s, const Option *option, const char *name) {
    (void)option;
    check_name(name);
    note_architectures(s, name);
}

// Checks the value of -gencode, such as arch=compute_80,code=[sm_80,compute_80], and notes its architectures.
void check_code(Settings *s, const Option *option, const char *value) {
    (void)option;
    char *arch, *code = strstr(value, "code=");
    if (!strchr(value, '='))
        stop("'%s' is not in 'keyword=value' format", value);
    if (!find(value, "(^|,)arch=([^,]*)", &arch))
        stop("Option '--generate-code %s', missing architecture", value);
    check_name(arch);
    if (!find(value, "(^|,)code=", NULL))
        stop("Option '--generate-code %s', missing code", value);
    code += strlen("code=");
    const char *next = strstr(code, ",arch=");
    Text names = empty_text();
    for (const char *p = code; *p && p != next; p++)
        if (!strchr("[]'\"", *p))
            append(&names, p, 1);
    const List all = words_of(names.data);
    for (int i = 0; i < all.count; i++)
        check_name(all.words[i]);
    note_architectures(s, value);
}
