// SPDX-License-Identifier: MIT
// Precompiled headers: what every .cu includes before its first line is 1 MB of C++ after translation, which
// g++ parses in 0.25 s. When the translations of two sources begin with the same headers, and their options
// are the same, g++ stores what it has parsed (25 MB), and reads that for the second and later ones.
#include "driver.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_KEPT = 8 }; // others are removed, the longest unused first

// The headers end where the compiler returns from -include cuda_runtime.h to its command line.
static size_t end_of_headers(const Text *text) {
    const char *begin = strstr(text->data, "/cuda_runtime.h\" 1\n");
    const char *end = begin ? strstr(begin, "\n# 0 \"<command-line>\" 2\n") : NULL;
    return end ? (size_t)(end + 1 - text->data) : 0;
}

// All that decides what g++ stores: itself, its options, and the headers
static Text describe(const Settings *s, const List *options, const char *headers, size_t length) {
    struct stat status = {0};
    Text text = empty_text();
    stat(s->cxx_path, &status);
    append_text(
        &text, format("// %s %lld %lld", s->cxx_path, (long long)status.st_mtime, (long long)status.st_size));
    for (int i = 1; i < options->count; i++)
        append_text(&text, format(" %s", options->words[i]));
    append_text(&text, "\n# 0 \"cuda_runtime.h\"\n");
    append(&text, headers, length);
    return text;
}

// A file appears under its name when it is complete.
static bool write_text(const char *path, const Text *text) {
    const char *part = format("%s.part", path);
    FILE *out = fopen(part, "wbe");
    if (!out)
        return false;
    const bool written = fwrite(text->data, 1, text->length, out) == text->length;
    if (fclose(out) == 0 && written && rename(part, path) == 0)
        return true;
    unlink(part);
    return false;
}

static int is_header(const struct dirent *file) {
    return matches(file->d_name, "*.ii");
}

// Removes the headers that were not used for the longest time, with what g++ stored for them.
static void make_room(const char *folder) {
    struct dirent **files;
    for (int count; (count = scandir(folder, &files, is_header, NULL)) >= MOST_KEPT;) {
        const char *oldest = NULL;
        struct stat status;
        time_t used = 0;
        for (int i = 0; i < count; i++) {
            const char *path = format("%s/%s", folder, files[i]->d_name);
            if (stat(path, &status) == 0 && (!oldest || status.st_mtime < used))
                oldest = path, used = status.st_mtime;
        }
        if (!oldest || unlink(oldest) != 0)
            return;
        unlink(format("%.*s.gch", (int)strlen(oldest) - 3, oldest));
    }
}

static bool precompile(const List *options, const char *header, const char *stored) {
    const char *part = format("%s.part", stored);
    List command = copy_of(options);
    Text messages = {0};
    ADD(&command, "-w", "-x", "c++-header", "-fpreprocessed", header, "-o", part);
    if (run_captured(&command, true, &messages) == 0 && rename(part, stored) == 0)
        return true;
    unlink(part);
    return false;
}

// What g++ has stored for these headers, or null. The first source that has them leaves them in the folder of
// the toolkit, and the second one has them precompiled. Of several processes, one writes; the others go on.
static const char *stored_for(const Settings *s, const List *options, const Text *description) {
    const char *folder = format("%s/precompiled", s->tools);
    mkdir(folder, 0777);
    const char *name = format("%s/%08x", folder, hash(description->data));
    const char *header = format("%s.ii", name), *stored = format("%s.gch", name);
    const int lock = open(format("%s/lock", folder), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    const bool writes = lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0;
    Text kept = {0};
    const bool seen = read_text(header, &kept) && kept.length == description->length &&
                      memcmp(kept.data, description->data, kept.length) == 0;
    bool ready = seen && access(stored, R_OK) == 0;
    if (seen) {
        utimensat(AT_FDCWD, header, NULL, 0); // used now
        ready = ready || (writes && precompile(options, header, stored));
    } else if (writes) {
        make_room(folder);
        unlink(stored);
        write_text(header, description);
    }
    close(lock);
    return ready ? stored : NULL;
}

// Compiles a translated source with precompiled headers, and prints the warnings. `command` has no input yet.
// Returns false if it did not: then the whole text is to be compiled, which also gives the errors.
bool compile_with_precompiled(const Settings *s, const List *command, const char *input, const char *object) {
    Text text = {0}, rest = empty_text(), messages = {0};
    List options = {0};
    const bool gcc = s->cxx.count == 1 && matches(name_of(s->cxx_path), "g++* *-g++*");
    if (s->dryrun || s->keep || !gcc || !read_text(input, &text))
        return false;
    const size_t first = strcspn(text.data, "\n") + 1, end = end_of_headers(&text);
    if (end <= first)
        return false;
    for (int i = 0; i < command->count; i++)
        add(&options, has_prefix(command->words[i], "-W") ? NULL : command->words[i]); // warnings may differ
    const Text description = describe(s, &options, text.data + first, end - first);
    const char *stored = stored_for(s, &options, &description), *shorter = format("%s.rest.ii", input);
    if (!stored)
        return false;
    append(&rest, text.data, first);
    append_text(&rest, format("#pragma GCC pch_preprocess \"%s\"\n", stored));
    append(&rest, text.data + end, text.length - end);
    List compile = copy_of(&s->cxx);
    add(&compile, color_option());
    for (int i = 1; i < command->count; i++)
        add(&compile, command->words[i]);
    ADD(&compile, "-c", shorter, "-o", object);
    if (!write_text(shorter, &rest) || run_captured(&compile, true, &messages) != 0)
        return false;
    print_messages(&messages);
    return true;
}
