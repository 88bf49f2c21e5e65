// SPDX-License-Identifier: MIT
// Memory, text and errors
#include "translate.h"
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>

void *grow(void *array, size_t count, size_t size) {
    void *grown = count > SIZE_MAX / size ? NULL : realloc(array, count * size);
    if (!grown) {
        fputs("cu2cpp: out of memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    return grown;
}

// Appends bytes. The text always ends with a null character.
void append(Text *text, const char *data, size_t length) {
    if (text->length + length >= text->capacity) {
        text->capacity = 2 * (text->length + length) + 64;
        text->data = grow(text->data, text->capacity, 1);
    }
    if (length > 0)
        memcpy(text->data + text->length, data, length);
    text->length += length;
    text->data[text->length] = '\0';
}

Text empty_text(void) {
    Text text = {0};
    append(&text, "", 0);
    return text;
}

void append_text(Text *text, const char *string) {
    append(text, string, strlen(string));
}

// Appends the tokens in one line.
void append_tokens(Text *text, const Token *first, const Token *end) {
    for (const Token *i = first; i < end; i++) {
        if (i > first && i->text > end_of(i - 1))
            append(text, " ", 1);
        append(text, i->text, i->length);
        append_text(text, i->after ? i->after : "");
    }
}

char *spelling(const Token *first, const Token *end) {
    Text text = empty_text();
    append_tokens(&text, first, end);
    return text.data;
}

char *word_of(const Token *i) {
    return spelling(i, i + 1);
}

char *format(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = NULL;
    if (vasprintf(&text, format, arguments) < 0)
        grow(NULL, SIZE_MAX, 2); // out of memory
    va_end(arguments);
    return text;
}

// See fill(). The parts are pairs of a name and a text, and a null pointer at the end.
char *fill_parts(const char *template, ...) {
    Text text = empty_text();
    for (const char *p = template; *p;) {
        const size_t plain = strcspn(p, "$");
        append(&text, p, plain);
        p += plain;
        if (*p != '$')
            break;
        size_t length = 0;
        while (isalnum((unsigned char)*++p))
            length++;
        va_list parts;
        va_start(parts, template);
        const char *name = va_arg(parts, const char *);
        while (name && (strlen(name) != length || strncmp(name, p - length, length) != 0)) {
            va_arg(parts, const char *);
            name = va_arg(parts, const char *);
        }
        if (!name)
            abort(); // the template names a part that the call does not give
        append_text(&text, va_arg(parts, const char *));
        va_end(parts);
    }
    return text.data;
}

// FNV-1a
unsigned hash(const char *text) {
    uint32_t value = 2166136261;
    while (*text)
        value = (value ^ (unsigned char)*text++) * 16777619;
    return value;
}

_Noreturn void fail(const Token *token, const char *format, ...) {
    const File *file = token->file;
    for (size_t i = 0; i < file->length; i++) {
        i += !file->is_input && file->name[i] == '\\' && i + 1 < file->length;
        fputc(file->name[i], stderr);
    }
    fprintf(stderr, ":%u: ", (unsigned)token->line);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    exit(EXIT_FAILURE);
}

_Noreturn void fail_file(const char *name) {
    fprintf(stderr, "cu2cpp: %s: %s\n", name, strerror(errno));
    exit(EXIT_FAILURE);
}
