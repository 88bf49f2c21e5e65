// SPDX-License-Identifier: MIT
// Lists of words, and texts that are split into them
#include "driver.h"
#include <fnmatch.h>
#include <stdarg.h>

// A null pointer adds nothing.
void add(List *list, const char *word) {
    if (!word)
        return;
    PUSH(list->words, list->count, (char *)word);
    PUSH(list->words, list->count, NULL);
    list->count--;
}

// The words end with a null pointer.
void add_words(List *list, ...) {
    va_list words;
    va_start(words, list);
    for (const char *word; (word = va_arg(words, const char *));)
        add(list, word);
    va_end(words);
}

void add_list(List *list, const List *more) {
    for (int i = 0; i < more->count; i++)
        add(list, more->words[i]);
}

List copy_of(const List *list) {
    List copy = {0};
    add_list(&copy, list);
    return copy;
}

// Splits at separators. Quotes and a backslash protect them; in double quotes, a backslash does so only as in
// a shell, and only before " \ $. Returns false if a quote is not closed in its line.
bool split_words(const char *text, const char *separators, bool as_shell, List *words) {
    Text word = {0};
    char quote = 0;
    bool any = false;
    for (const char *p = text;; p++) {
        const bool protects = !quote || (quote == '"' && as_shell && p[0] && p[1] && strchr("\"\\$", p[1]));
        if (quote && (*p == '\0' || *p == '\n'))
            return false;
        if (*p == '\\' && p[1] == '\n' && !quote) {
            p++; // the line goes on
        } else if (*p == '\\' && protects) {
            any = true;
            if (p[1] && p[1] != '\n')
                append(&word, ++p, 1);
        } else if (quote && *p == quote) {
            quote = 0;
        } else if (!quote && (*p == '"' || *p == '\'')) {
            quote = *p;
            any = true;
        } else if (*p && (quote || !strchr(separators, *p))) {
            append(&word, p, 1);
            any = true;
        } else {
            if (any)
                add(words, word.data ? word.data : "");
            word = (Text){0};
            any = false;
            if (!*p)
                return true;
        }
    }
}

// Splits at blanks and commas as nvcc does for -Xcompiler.
List words_of(const char *text) {
    List words = {0};
    if (!split_words(text, ", \t\n", false, &words))
        stop("a quote is not closed: %s", text);
    return words;
}

// Splits at blanks only, as a shell does for $CXX.
List blank_separated(const char *text) {
    List words = {0};
    for (char *word = strtok(format("%s", text), " \t\n"); word; word = strtok(NULL, " \t\n"))
        add(&words, word);
    return words;
}

void add_all_of(List *list, const char *words) {
    const List more = blank_separated(words);
    add_list(list, &more);
}

// Whether a text matches one of several patterns of a shell, with blanks between them
bool matches(const char *text, const char *patterns) {
    const List all = blank_separated(patterns);
    for (int i = 0; i < all.count; i++)
        if (fnmatch(all.words[i], text, 0) == 0)
            return true;
    return false;
}

bool has_prefix(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

// The path without its folder
const char *name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// The name without its last ending
char *stem_of(const char *path) {
    const char *name = name_of(path), *dot = strrchr(name, '.');
    return dot ? format("%.*s", (int)(dot - name), name) : format("%s", name);
}
