// SPDX-License-Identifier: MIT
// Reading files, and searching sources for words
#include "driver.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// The kind of a file; 0 if there is none
mode_t mode_of(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 ? status.st_mode & S_IFMT : 0;
}

bool same_file(const char *path, const char *other) {
    struct stat a, b;
    return stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool read_text(const char *path, Text *text) {
    FILE *in = fopen(path, "rbe");
    if (!in)
        return false;
    read_file(in, text);
    const bool failed = ferror(in);
    fclose(in);
    return !failed;
}

// Whether an object or a library has this text. It may be large.
bool contains(const char *path, const char *text) {
    const int file = mode_of(path) == S_IFREG ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return false;
    const size_t size = (size_t)lseek(file, 0, SEEK_END);
    const void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    return data != MAP_FAILED && memmem(data, size, text, strlen(text));
}

static const char *end_of_line(const Text *text, const char *line) {
    const char *end = memchr(line, '\n', (size_t)(text->data + text->length - line));
    return end ? end : text->data + text->length;
}

// If the line is a linemarker such as # 1 "a.cu" 2, sets its name and returns the text after it.
static const char *flags_of(const char *line, const char *end, Text *name) {
    if (!has_prefix(line, "# "))
        return NULL;
    const char *p = line + 2 + strspn(line + 2, "0123456789");
    if (!has_prefix(p, " \""))
        return NULL;
    *name = empty_text();
    for (p += 2; p < end && *p != '"'; p++) {
        p += *p == '\\' && p + 1 < end;
        append(name, p, 1);
    }
    return p < end ? p + 1 : NULL;
}

static bool is_listed(const char *word, size_t length, const char *words, bool member) {
    for (const char *p = words, *end; *(p += strspn(p, " ")); p = end) {
        end = p + strcspn(p, " ");
        p += *p == '.' && member;
        if ((size_t)(end - p) == length && memcmp(p, word, length) == 0)
            return true;
    }
    return false;
}

// The first of the words, which have a blank before and after them, that stands in a source; or null. With
// `only_program`, the headers of the system do not count. A word that begins with . stands after . or ->.
const char *first_of(const char *path, const char *words, bool only_program) {
    Text text = {0}, name;
    bool system = false;
    if (!read_text(path, &text))
        return NULL;
    for (const char *line = text.data, *end; *line; line = *end ? end + 1 : end) {
        end = end_of_line(&text, line);
        const char *flags = only_program && *line == '#' ? flags_of(line, end, &name) : NULL;
        if (flags) {
            const bool ours = flags + strspn(flags, " 12") >= end;
            system = system ? !ours : memchr(flags, '3', (size_t)(end - flags)) != NULL;
            continue;
        }
        for (const char *p = line, *first; p < end && !system; p++) {
            for (first = p; p < end && is_word_byte(*p);)
                p++;
            if (p > first &&
                is_listed(first, (size_t)(p - first), words, first > line && strchr(".>", first[-1])))
                return format("%.*s", (int)(p - first), first);
        }
    }
    return NULL;
}

// Whether a source that was preprocessed to this file, or a header not in `except`, has __CUDA_ARCH__
bool names_architecture(const char *preprocessed, const char *except) {
    Text text = {0}, name;
    List seen = {0};
    if (!read_text(preprocessed, &text))
        return false;
    for (const char *line = text.data, *end; *line; line = *end ? end + 1 : end) {
        end = end_of_line(&text, line);
        const char *flags = *line == '#' ? flags_of(line, end, &name) : NULL;
        if (!flags || flags + strspn(flags, " 12") < end || name.data[0] == '<' || strstr(name.data, except))
            continue;
        int i = 0;
        while (i < seen.count && strcmp(seen.words[i], name.data) != 0)
            i++;
        if (i == seen.count && contains(name.data, "__CUDA_ARCH__") &&
            first_of(name.data, " __CUDA_ARCH__ ", false))
            return true;
        if (i == seen.count)
            add(&seen, name.data);
    }
    return false;
}
