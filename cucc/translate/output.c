// SPDX-License-Identifier: MIT
// Edits and the output
//
// A compiler marks an error in a line of the .cu at its column. So each token is moved to its column in the
// .cu: with spaces, or, when the output is already past that column, with a new line and a linemarker. For
// this the original files are read, and the words of each line are compared with those of the same line of
// its file. Tokens that come from a macro have no counterpart there and stay where they are.
#include "translate.h"
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- edits ----

void edit(Unit *u, const char *position, size_t removed, const char *text) {
    PUSH(u->edits, u->edit_count, (Edit){position, removed, text, u->edit_count, 2, NULL});
}

void insert_before(Unit *u, const Token *i, const char *text) {
    edit(u, i->text, 0, text);
}

void insert_after(Unit *u, const Token *i, const char *text) {
    edit(u, end_of(i), 0, text);
    u->edits[u->edit_count - 1].place = 0;
}

// Inserts after a token, but behind what belongs to it, also what is inserted later.
void insert_between(Unit *u, const Token *before, const char *text) {
    edit(u, end_of(before), 0, text);
    u->edits[u->edit_count - 1].place = 1;
}

// Deletes the tokens one by one, so that the newlines between them stay.
void delete_tokens(Unit *u, Token *first, const Token *last) {
    for (Token *i = first; i <= last; i++) {
        edit(u, i->text, i->length, "");
        i->shift = false;
        i->after = NULL;
    }
}

static int compare_edits(const void *left, const void *right) {
    const Edit *a = left, *b = right;
    if (a->position != b->position)
        return a->position < b->position ? -1 : 1;
    if (a->place != b->place)
        return a->place - b->place;
    return a->order < b->order ? -1 : 1;
}

// ---- columns of the original files ----

typedef struct {
    const char *text;
    size_t length;
} Word;

typedef struct {
    FILE *file;
    const char *begin; // of the source
    size_t column;     // of the next byte of the output, from 0
    char last_byte;
    const Token *next, *end;   // the first token that was not written, and the end of all tokens
    const Token *first, *last; // the tokens of the line whose columns are known, and the token after them
    long *columns;             // of each of these tokens in the original file, or -1
} Output;

void read_file(FILE *in, Text *text) {
    static char buffer[1 << 16];
    for (size_t n; text->length < 1 << 30 && (n = fread(buffer, 1, sizeof buffer, in)) > 0;)
        append(text, buffer, n);
    append(text, "", 0);
}

static void read_original(File *file) {
    file->is_read = true;
    file->text = empty_text();
    if (file->length >= 4096 || memchr(file->name, '\\', file->length))
        return;
    const char *name = format("%.*s", (int)file->length, file->name);
    struct stat status;
    FILE *in = stat(name, &status) == 0 && S_ISREG(status.st_mode) ? fopen(name, "rb") : NULL; // no pipe
    if (!in)
        return;
    read_file(in, &file->text);
    fclose(in);
}

// Splits a line of the file into words and strings, without comments. Returns their number.
static size_t split_line(File *file, uint32_t number, Word **words) {
    static size_t capacity;
    size_t count = 0;
    if (!file->is_read)
        read_original(file);
    if (number < file->line) {
        file->line = 1;
        file->position = 0;
    }
    for (; file->line < number; file->line++) {
        const char *newline =
            memchr(file->text.data + file->position, '\n', file->text.length - file->position);
        if (!newline)
            return 0;
        file->position = (size_t)(newline + 1 - file->text.data);
    }
    const char *p = file->text.data + file->position; // the text ends with a null character
    while (*p && *p != '\n' && strncmp(p, "//", 2) != 0) {
        const char *start = p;
        if (strncmp(p, "/*", 2) == 0) {
            for (p += 2; *p && *p != '\n' && strncmp(p - 2, "*/", 2) != 0; p++)
                ;
            continue;
        }
        if (*p == '"') {
            for (p++; *p && *p != '\n' && *p != '"'; p++)
                p += *p == '\\' && p[1] && p[1] != '\n';
            p += *p == '"';
        } else if (is_word_byte(*p)) {
            while (is_word_byte(*p))
                p++;
        } else {
            p++;
            continue;
        }
        if (count >= capacity) {
            capacity = 2 * capacity + 64;
            *words = grow(*words, capacity, sizeof **words);
        }
        (*words)[count++] = (Word){start, (size_t)(p - start)};
    }
    return count;
}

static bool same_text(const Token *token, const Word *word) {
    return word->length == token->length && memcmp(word->text, token->text, word->length) == 0;
}

// Sets columns[t], for each of the `count` preprocessed tokens of a line, to the column of the same word in
// the source file, or to -1 if the source line does not contain it (it comes from a macro). Words are matched
// by the longest common subsequence of the tokens and the words of the source line.
static void align_line(const Token *first, size_t count, long *columns) {
    static Word *words;
    static uint16_t *lengths;
    static size_t capacity;
    for (size_t t = 0; t < count; t++)
        columns[t] = -1;
    const size_t n = split_line(first->file, first->line, &words), row = n + 1;
    if (n == 0 || n > UINT16_MAX || row * (count + 1) > 1 << 22)
        return;
    if (row * (count + 1) > capacity) {
        capacity = row * (count + 1);
        lengths = grow(lengths, capacity, sizeof *lengths);
    }
    memset(lengths, 0, row * (count + 1) * sizeof *lengths);
    // lengths[t * row + w]: of the longest common subsequence of tokens from t on and words from w on
    for (size_t t = count; t-- > 0;)
        for (size_t w = n; w-- > 0;) {
            const uint16_t skip_token = lengths[(t + 1) * row + w], skip_word = lengths[t * row + w + 1];
            lengths[t * row + w] = same_text(&first[t], &words[w])
                                       ? (uint16_t)(lengths[(t + 1) * row + w + 1] + 1)
                                   : skip_token > skip_word ? skip_token
                                                            : skip_word;
        }
    const char *begin = first->file->text.data + first->file->position;
    for (size_t t = 0, w = 0; t < count && w < n;)
        if (same_text(&first[t], &words[w]))
            columns[t++] = words[w++].text - begin;
        else if (lengths[(t + 1) * row + w] > lengths[t * row + w + 1])
            t++;
        else
            w++;
}

// The column of a token in its file, or -1
static long original_column(Output *o, const Token *i) {
    if (i->file->is_input || i->system)
        return -1;
    if (i < o->first || i >= o->last) {
        o->first = i;
        o->last = i + 1;
        while (kind(o->last) != END && o->last->line == i->line && !o->last->marked)
            o->last++;
        const size_t count = (size_t)(o->last - i);
        o->columns = grow(o->columns, count, sizeof *o->columns);
        align_line(i, count, o->columns);
    }
    return o->columns[i - o->first];
}

// ---- output ----

static void put(Output *o, const char *text, size_t length) {
    if (length == 0)
        return;
    const char *newline = memrchr(text, '\n', length);
    o->column = newline ? (size_t)(text + length - newline - 1) : o->column + length;
    o->last_byte = text[length - 1];
    fwrite(text, 1, length, o->file);
}

// Called before a token is written: moves the output to the token's column, if a blank is allowed here. An
// operator directly before a word, as in *p, moves with the word.
static void move_to(Output *o, const Token *token) {
    const Token *word = token;
    while (word < token + 8 && word + 1 < o->end && kind(word) < IDENT && end_of(word) == word[1].text)
        word++;
    if (word > token && strchr("+-*/%&|^<>=!.:#", token->text[token->text > o->begin ? -1 : 0]))
        return; // inside an operator such as ->: only its first character may move
    const long distance = word->text - token->text;
    const long wanted = original_column(o, word) - distance;
    const File *file = token->file;
    // A blank would change L"a" and "a"_x.
    if (wanted + distance < 0 || (size_t)wanted == o->column || is_word_byte(o->last_byte) ||
        o->last_byte == '"' || o->last_byte == '\'')
        return;
    if (word > token &&
        (wanted < 0 || memcmp(file->text.data + file->position + wanted, token->text, (size_t)distance) != 0))
        return;
    if ((size_t)wanted < o->column) {
        const char *marker =
            format("\n# %u \"%.*s\"\n", (unsigned)token->line, (int)file->length, file->name);
        put(o, marker, strlen(marker));
    }
    while (o->column < (size_t)wanted)
        put(o, " ", 1);
}

// Writes the source from `position` to `end`.
static void put_source(Output *o, const char *position, const char *end) {
    while (o->next < o->end && o->next->text < position)
        o->next++;
    for (; o->next < o->end && o->next->text < end; o->next++) {
        const Token *token = o->next;
        put(o, position, (size_t)(token->text - position));
        move_to(o, token);
        position = end_of(token) < end ? end_of(token) : end;
        put(o, token->text, (size_t)(position - token->text));
    }
    put(o, position, (size_t)(end - position));
}

static void write_edited(Unit *u, FILE *file) {
    Output o = {.file = file, .begin = u->source.data, .next = u->begin, .end = u->end};
    const char *done = u->source.data;
    if (u->edit_count > 0)
        qsort(u->edits, u->edit_count, sizeof *u->edits, compare_edits);
    for (size_t i = 0; i < u->edit_count; i++) {
        const Edit *e = &u->edits[i];
        if (e->position > done) {
            put_source(&o, done, e->position);
            done = e->position;
        }
        if (e->moved)
            move_to(&o, e->moved);
        put(&o, e->text, strlen(e->text));
        if (e->position + e->removed > done)
            done = e->position + e->removed;
    }
    put_source(&o, done, u->source.data + u->source.length);
}

// Writes the source with its edits to a file, or to the standard output if `name` is null.
void write_output(Unit *u, const char *name) {
    FILE *file = name ? fopen(name, "wb") : stdout;
    if (!file)
        fail_file(name);
    write_edited(u, file);
    const bool failed = ferror(file);
    if (fclose(file) == 0 && !failed)
        return;
    const int error = errno;
    struct stat status;
    if (name && stat(name, &status) == 0 && S_ISREG(status.st_mode)) // not a device such as /dev/full
        unlink(name);
    errno = error;
    fail_file(name ? name : "standard output");
}
