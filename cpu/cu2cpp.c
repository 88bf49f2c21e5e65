// SPDX-License-Identifier: MIT
/*
 * cu2cpp: turns preprocessed CUDA C++ into C++ for the CPU back end
 *
 *     cu2cpp INPUT [-o OUTPUT]          INPUT - is standard input, OUTPUT is standard output
 *
 * Four things of CUDA are no C++. They are rewritten in place, every other byte stays, and so do the
 * line numbers, so that the compiler, the debugger and the sanitizers speak of the .cu:
 *
 *   1. k<<<g, b>>>(x)             ::cuda_cpu::launch([=](auto &...cu_a) { k(cu_a...); }, "k",
 *                                                    ::cuda_cpu::config(g, b))(x)
 *   2. __shared__ T x[4];         typedef T cu_t_x[4]; cu_t_x &x = ::cuda_cpu::shared<cu_t_x>([] {}, "x");
 *   3. extern __shared__ T x[];   typedef T cu_t_x; cu_t_x *const x = ::cuda_cpu::dynamic_shared<cu_t_x>("x");
 *   4. __device__ T x;            __attribute__((section("cuda_device"))) T x;
 *      and without the word when it stands before a function.
 *
 * How: the text is cut into tokens (comments, linemarkers and other directives count as white
 * space), brackets are paired, then one pass over the tokens keeps track of the scope and collects
 * edits. What cannot be understood is an error that names the line; nothing is guessed past it.
 */
#define _POSIX_C_SOURCE 200809L
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// A token of one character has that character as its kind, digraphs the one that they stand for.
enum { END = 0, IDENT = 128, NUMBER, STRING, CHARACTER, SCOPE /* :: */, ARROW /* -> */, OPERATOR };

typedef struct {
    uint32_t start, length; // bytes of the source
    uint32_t line, file;    // as the linemarkers say; file is where its name stands in the source
    int32_t match;          // of a bracket: its partner
    uint8_t kind;
    bool done; // a memory space word that its declaration has dealt with
} Token;

typedef struct {
    char *data;
    size_t length, capacity;
} Text;

typedef struct {
    size_t position, removed; // replaces so many bytes of the source …
    size_t text, length;      // … by this part of edit_text
    size_t order;             // of creation; decides among edits of one position
} Edit;

static const char *input_name;
static Text source;
static Token *tokens; // PADDING tokens of kind END stand at both ends, so that looking around is safe
static int token_count;
static Edit *edits;
static size_t edit_count;
static Text edit_text;

enum { PADDING = 4 };

// ---- errors and memory ----

_Noreturn static void fail_at(uint32_t file, uint32_t line, const char *format, va_list arguments) {
    if (file == 0) {
        fputs(input_name, stderr);
    } else { // the name is quoted in the linemarker
        for (const char *p = source.data + file; *p && *p != '"' && *p != '\n'; p++) {
            if (*p == '\\' && p[1])
                p++;
            fputc(*p, stderr);
        }
    }
    fprintf(stderr, ":%u: ", (unsigned)line);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    exit(EXIT_FAILURE);
}

__attribute__((format(printf, 2, 3))) _Noreturn static void fail(int token, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fail_at(tokens[token].file, tokens[token].line, format, arguments);
}

_Noreturn static void fail_file(const char *name) {
    fprintf(stderr, "cu2cpp: %s: %s\n", name, strerror(errno));
    exit(EXIT_FAILURE);
}

static void *grow(void *array, size_t count, size_t size) {
    void *grown = size && count > SIZE_MAX / size ? NULL : realloc(array, count * size);
    if (!grown) {
        fputs("cu2cpp: out of memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    return grown;
}

static void reserve(Text *text, size_t length) {
    if (text->length + length < text->capacity)
        return;
    text->capacity = 2 * (text->length + length) + 64;
    text->data = grow(text->data, text->capacity, 1);
}

// The text stays a C string.
static void append(Text *text, const char *data, size_t length) {
    reserve(text, length);
    if (length > 0)
        memcpy(text->data + text->length, data, length);
    text->length += length;
    text->data[text->length] = '\0';
}

__attribute__((format(printf, 2, 3))) static void print(Text *text, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const size_t length = (size_t)vsnprintf(NULL, 0, format, arguments);
    reserve(text, length);
    text->length += (size_t)vsnprintf(text->data + text->length, length + 1, format, again);
    va_end(arguments);
    va_end(again);
}

// ---- lexer ----

static size_t at;           // the next byte
static uint32_t line, file; // where that is

__attribute__((format(printf, 2, 3))) _Noreturn static void fail_line(uint32_t wrong_line,
                                                                      const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fail_at(file, wrong_line, format, arguments);
}

// The text ends with zeros, so a few bytes can be looked at without asking how many are left.
static bool ahead(const char *string) {
    return strncmp(source.data + at, string, strlen(string)) == 0;
}

static bool is_word_byte(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static void next_byte(void) {
    if (source.data[at++] == '\n')
        line++;
}

// Skips \ and the end of the line after it.
static bool skip_continuation(void) {
    size_t p = at + 1;
    if (source.data[at] != '\\')
        return false;
    while (source.data[p] == ' ' || source.data[p] == '\t' || source.data[p] == '\r')
        p++;
    if (source.data[p] != '\n')
        return false;
    at = p + 1;
    line++;
    return true;
}

static bool skip_comment(void) {
    if (ahead("//")) {
        while (at < source.length && source.data[at] != '\n')
            if (!skip_continuation())
                at++;
        return true;
    }
    if (!ahead("/*"))
        return false;
    const uint32_t first = line;
    for (at += 2; !ahead("*/"); next_byte())
        if (at >= source.length)
            fail_line(first, "this comment has no end");
    at += 2;
    return true;
}

// Skips a string or character; false when its line ends first.
static bool skip_quoted(char quote) {
    for (at++; at < source.length && source.data[at] != '\n';) {
        if (skip_continuation())
            continue;
        if (source.data[at] == quote) {
            at++;
            return true;
        }
        at += source.data[at] == '\\' && source.data[at + 1] != '\n' ? 2 : 1;
    }
    return false;
}

static void skip_raw_string(void) {
    const char *delimiter = source.data + ++at;
    const size_t length = strcspn(delimiter, "()\\\" \t\n\r");
    if (length > 16 || delimiter[length] != '(')
        fail_line(line, "this raw string has no beginning");
    const uint32_t first = line;
    for (at += length; at < source.length; next_byte()) {
        const char *p = source.data + at;
        if (*p == ')' && strncmp(p + 1, delimiter, length) == 0 && p[1 + length] == '"') {
            at += length + 2;
            return;
        }
    }
    fail_line(first, "this raw string has no end");
}

// 0x1.8p-3, 1'000, 1e+5f
static void skip_number(void) {
    for (;; at++) {
        const char *p = source.data + at;
        if (strchr("eEpP", *p) && (p[1] == '+' || p[1] == '-'))
            at++;
        else if (!is_word_byte(*p) && *p != '.' && !(*p == '\'' && is_word_byte(p[1])))
            return;
    }
}

// Skips a line that begins with #; learns from `# 12 "file.cu"` and `#line 12 "file.cu"`.
static void skip_directive(void) {
    const char *p = source.data + at + 1;
    p += strspn(p, " \t");
    if (strncmp(p, "line", 4) == 0)
        p += 4;
    const char *number = p + strspn(p, " \t");
    const char *name = number + strspn(number, "0123456789");
    const bool marker = name > number;
    name += strspn(name, " \t");
    while (at < source.length && source.data[at] != '\n') {
        const size_t before = at;
        if (skip_continuation() || skip_comment())
            continue;
        if (source.data[at] != '"' || !skip_quoted('"')) // in #error a quote may stand alone
            at = before + 1;
    }
    if (marker) {
        line = (uint32_t)strtoul(number, NULL, 10) - 1; // the end of this line adds 1
        if (*name == '"')
            file = (uint32_t)(name + 1 - source.data);
    }
}

static void add_token(int kind, size_t start) {
    static int capacity;
    if (token_count >= capacity) {
        capacity = capacity ? 2 * capacity : 1 << 16;
        tokens = grow(tokens, (size_t)capacity, sizeof *tokens);
    }
    tokens[token_count++] = (Token){.start = (uint32_t)start,
                                    .length = (uint32_t)(at - start),
                                    .line = line,
                                    .file = file,
                                    .kind = (uint8_t)kind};
}

static void skip_symbol(int *kind) {
    // Longest first. Angle brackets stay single: only the parser knows whether >> is a shift.
    static const struct {
        const char *text;
        int kind;
    } symbols[] = {{"<=>", OPERATOR}, {"<<=", OPERATOR}, {">>=", OPERATOR}, {"->", ARROW},
                   {"::", SCOPE},     {"<=", OPERATOR},  {">=", OPERATOR},  {"==", OPERATOR},
                   {"<%", '{'},       {"%>", '}'},       {"<:", '['},       {":>", ']'}};
    const bool scope_follows =
        ahead("<::") && source.data[at + 3] != ':' && source.data[at + 3] != '>';
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if (ahead(symbols[i].text) && !(scope_follows && symbols[i].kind == '[')) {
            *kind = symbols[i].kind;
            at += strlen(symbols[i].text);
            return;
        }
    at++;
}

static void lex(void) {
    bool fresh_line = true;
    line = 1;
    for (int i = 0; i < PADDING; i++)
        add_token(END, 0);
    while (at < source.length) {
        const size_t start = at;
        const uint32_t first_line = line;
        const char c = source.data[at];
        int kind = (unsigned char)c;
        if (c == '\n')
            fresh_line = true;
        if (isspace((unsigned char)c) || c == '\0') {
            next_byte();
            continue;
        }
        if (skip_comment() || skip_continuation())
            continue;
        if (c == '#' && fresh_line) {
            skip_directive();
            continue;
        }
        fresh_line = false;
        if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)source.data[at + 1]))) {
            kind = NUMBER;
            skip_number();
        } else if (is_word_byte(c)) {
            kind = IDENT;
            while (is_word_byte(source.data[at]))
                at++;
            const size_t length = at - start;
            const char *word = source.data + start;
            if (source.data[at] == '"' && word[length - 1] == 'R' &&
                (length == 1 || (length == 2 && strchr("LuU", *word)) || strncmp(word, "u8R", length) == 0)) {
                kind = STRING;
                skip_raw_string();
            }
        } else if (c == '"' || c == '\'') {
            kind = c == '"' ? STRING : CHARACTER;
            if (!skip_quoted(c))
                fail_line(first_line, "this %c has no partner", c);
        } else {
            skip_symbol(&kind);
        }
        add_token(kind, start);
        tokens[token_count - 1].line = first_line;
    }
    for (int i = 0; i < PADDING; i++)
        add_token(END, at);
}

// ---- tokens ----

static int kind(int i) { return tokens[i].kind; }

static bool is(int i, const char *word) {
    const Token *t = &tokens[i];
    return t->kind == IDENT && strncmp(source.data + t->start, word, t->length) == 0 &&
           word[t->length] == '\0';
}

// `words` is a list separated and enclosed by single spaces.
static bool is_one_of(int i, const char *words) {
    const Token *t = &tokens[i];
    if (t->kind != IDENT)
        return false;
    for (const char *p = words; *p; p += 1 + strcspn(p + 1, " "))
        if (strncmp(p + 1, source.data + t->start, t->length) == 0 && p[1 + t->length] == ' ')
            return true;
    return false;
}

static bool same_word(int i, int j) {
    return kind(i) == IDENT && kind(j) == IDENT && tokens[i].length == tokens[j].length &&
           !memcmp(source.data + tokens[i].start, source.data + tokens[j].start, tokens[i].length);
}

static bool opens(int i) { return kind(i) == '(' || kind(i) == '[' || kind(i) == '{'; }
static bool closes(int i) { return kind(i) == ')' || kind(i) == ']' || kind(i) == '}'; }

static size_t end_of(int i) { return (size_t)tokens[i].start + tokens[i].length; }

// How many equal tokens stand here with nothing between them: 3 at the start of <<<.
static int run(int i) {
    int n = 1;
    while (kind(i + n) == kind(i) && tokens[i + n].start == end_of(i + n - 1))
        n++;
    return n;
}

static int run_back(int i) {
    int n = 1;
    while (kind(i - n) == kind(i) && end_of(i - n) == tokens[i - n + 1].start)
        n++;
    return n;
}

static void pair_brackets(void) {
    int innermost = 0; // while a bracket is open, match links it to the one around it
    for (int i = PADDING; i < token_count - PADDING; i++) {
        if (opens(i)) {
            tokens[i].match = innermost;
            innermost = i;
        } else if (closes(i)) {
            const int open = innermost;
            const char *pair = kind(i) == ')' ? "()" : kind(i) == ']' ? "[]" : "{}";
            if (!open || kind(open) != pair[0])
                fail(i, "this %c closes nothing", pair[1]);
            innermost = tokens[open].match;
            tokens[open].match = i;
            tokens[i].match = open;
        }
    }
    if (innermost)
        fail(innermost, "this %c is never closed", kind(innermost));
}

// From a < to the token behind its >; 0 when there is none before `limit`.
static int skip_angles(int i, int limit) {
    for (int depth = 0; i < limit && kind(i) != ';' && kind(i) != END && !closes(i); i++) {
        if (opens(i)) {
            i = tokens[i].match;
        } else if (kind(i) == '<') {
            const int n = run(i);
            if (n == 1 && (kind(i - 1) == IDENT || depth == 0)) // else << or "less than"
                depth++;
            i += n - 1;
        } else if (kind(i) == '>' && --depth <= 0) {
            return depth < 0 ? 0 : i + 1;
        }
    }
    return 0;
}

// From a > back to its <; 0 when there is none.
static int skip_angles_back(int i) {
    for (int depth = 0; kind(i) != ';' && kind(i) != END && !opens(i); i--) {
        if (closes(i)) {
            i = tokens[i].match;
        } else if (kind(i) == '>') {
            depth++;
        } else if (kind(i) == '<') {
            const int n = run_back(i);
            if (n > 2)
                return 0;
            if (n == 1 && kind(i - 1) == IDENT && --depth == 0)
                return i;
            i -= n - 1;
        }
    }
    return 0;
}

static void append_token(Text *text, int i) {
    append(text, source.data + tokens[i].start, tokens[i].length);
}

// Tokens from first to last, whatever stood between them as one space; few when they are long.
static void append_squeezed(Text *text, int first, int last, size_t longest) {
    for (int i = first; i <= last && text->length <= longest; i++) {
        if (i > first && tokens[i].start > end_of(i - 1))
            append(text, " ", 1);
        append_token(text, i);
    }
}

// ---- edits ----

static void replace(size_t position, size_t removed, const char *text) {
    if ((edit_count & (edit_count - 1)) == 0)
        edits = grow(edits, edit_count ? 2 * edit_count : 1, sizeof *edits);
    edits[edit_count] = (Edit){position, removed, edit_text.length, strlen(text), edit_count};
    edit_count++;
    append(&edit_text, text, strlen(text));
}

static void insert_before(int i, const char *text) { replace(tokens[i].start, 0, text); }
static void insert_after(int i, const char *text) { replace(end_of(i), 0, text); }
static void replace_token(int i, const char *text) {
    replace(tokens[i].start, tokens[i].length, text);
}

// One token at a time: the lines between them must stay.
static void delete_tokens(int first, int last) {
    for (int i = first; i <= last; i++)
        replace_token(i, "");
}

static int compare_edits(const void *left, const void *right) {
    const Edit *a = left, *b = right;
    if (a->position != b->position)
        return a->position < b->position ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static Text apply_edits(void) {
    Text result = {0};
    size_t done = 0;
    if (edit_count > 0)
        qsort(edits, edit_count, sizeof *edits, compare_edits);
    for (size_t i = 0; i < edit_count; i++) {
        const Edit *e = &edits[i];
        if (e->position > done) {
            append(&result, source.data + done, e->position - done);
            done = e->position;
        }
        append(&result, edit_text.data + e->text, e->length);
        if (e->position + e->removed > done)
            done = e->position + e->removed;
    }
    append(&result, source.data + done, source.length - done);
    return result;
}

// ---- launches ----

static const char statement_words[] =
    " if else for while do switch case default return co_return co_yield co_await goto break continue"
    " try catch throw constexpr using namespace sizeof alignof new delete ";

static const char cast_words[] = " static_cast const_cast reinterpret_cast dynamic_cast ";

// The >>> that ends a configuration; 0 when there is none. Of `f<A<int>>>>>` the last three do.
static int launch_end(int i) {
    for (int templates = 0; kind(i) != ';' && kind(i) != END && !closes(i); i++) {
        if (opens(i)) {
            i = tokens[i].match;
        } else if (kind(i) == '<') {
            const int n = run(i);
            if (n > 2)
                return 0;
            if (n == 1 && kind(i - 1) == IDENT)
                templates++;
            i += n - 1;
        } else if (kind(i) == '>') {
            const int n = run(i);
            if (n >= 3 && n > templates)
                return i + n - 3;
            if (n <= templates) // else a comparison or a shift
                templates -= n;
            i += n - 1;
        }
    }
    return 0;
}

// Does an expression end here that a ( or [ would go on with, as f(x) and table[i] do?
static bool ends_expression(int i) {
    if (kind(i) == IDENT)
        return !is_one_of(i, statement_words);
    if (kind(i) == ']') // [[likely]] is an attribute
        return kind(tokens[i].match + 1) != '[' || kind(i - 1) != ']';
    if (kind(i) != ')')
        return kind(i) == '>';
    const int group = tokens[i].match; // if (…), or the cast (void)
    return !is_one_of(group - 1, statement_words) && !(group == i - 2 && is(group + 1, "void"));
}

// Goes back from the last token of a kernel expression to its first; 0 when it is none. It is a
// name unless something in it has to be evaluated.
static int launch_begin(int i, bool *is_name) {
    *is_name = true;
    for (bool last = true;; last = false) {
        if (kind(i) == ')' || kind(i) == ']') {
            const int open = tokens[i].match;
            *is_name = false;
            if (!ends_expression(open - 1))
                return kind(open) == '(' ? open : 0;
            i = open - 1;
            continue;
        }
        if (kind(i) == '>') {
            i = skip_angles_back(i) - 1;
            if (i > 0 && is_one_of(i, cast_words))
                return last ? 0 : i;
        }
        if (i <= 0 || kind(i) != IDENT || is_one_of(i, statement_words))
            return 0;
        if (is(i, "this"))
            return last ? 0 : i;
        const int before = is(i - 1, "template") ? i - 2 : i - 1;
        if (kind(before) == '.' || kind(before) == ARROW) {
            *is_name = false;
            i = before - 1;
        } else if (kind(before) == SCOPE) {
            i = before - 1;
            if (kind(i) == ')' && is(tokens[i].match - 1, "decltype"))
                return tokens[i].match - 1;
            if (kind(i) != '>' && (kind(i) != IDENT || is_one_of(i, statement_words)))
                return before; // ::k
        } else {
            return before == i - 1 ? i : 0;
        }
    }
}

// A launch is an expression of its own, of type void.
static bool may_stand_before_launch(int i) {
    if (kind(i) == IDENT || kind(i) == ')' || kind(i) == ']')
        return !ends_expression(i);
    return kind(i) != END && strchr(";{}(,?:", kind(i));
}

static void check_arguments(int open) {
    const int close = tokens[open].match;
    for (int i = open + 1, first = i; i < close; i++) {
        if (i == first && kind(i) == '{')
            fail(i, "a launch cannot pass { } alone: name its type, as in T{…}");
        if (i == first && is_one_of(i, " NULL __null ") && (kind(i + 1) == ',' || i + 1 == close))
            replace_token(i, "nullptr"); // through a template __null would arrive as a number
        if (opens(i))
            i = tokens[i].match;
        else if (kind(i) == ',')
            first = i + 1;
    }
}

// Appends the tokens as a string literal; cut when it is very long.
static void append_quoted(Text *text, int first, int last) {
    enum { LONGEST = 200 };
    Text name = {0};
    append_squeezed(&name, first, last, LONGEST);
    append(text, "\"", 1);
    for (size_t i = 0; i < name.length && i < LONGEST; i++) {
        const char c = name.data[i];
        if (c == '"' || c == '\\')
            append(text, "\\", 1);
        append(text, c == '\n' ? "\\n" : &c, c == '\n' ? 2 : 1);
    }
    print(text, name.length > LONGEST ? "…\"" : "\"");
    free(name.data);
}

// A name is called in the lambda, so that template arguments are deduced and the call is inlined;
// any other expression is evaluated once, when the lambda is made.
static void translate_launch(int open) {
    bool is_name;
    const int begin = launch_begin(open - 1, &is_name);
    const int end = launch_end(open + 3);
    if (!end)
        fail(open, "this <<< has no matching >>>");
    if (!begin || !may_stand_before_launch(begin - 1))
        fail(open, "cannot find the kernel that this <<<…>>> launches");
    if (kind(end + 3) != '(')
        fail(end, "this <<<…>>> is not followed by the ( ) of a launch");
    bool comma = false;
    for (int i = open + 3; i < end && !comma; i = opens(i) ? tokens[i].match + 1 : i + 1)
        comma = kind(i) == ',';
    if (!comma)
        fail(open, "<<<…>>> needs at least a grid and a block");
    check_arguments(end + 3);

    const bool colon = source.data[tokens[begin].start - 1] == ':'; // "a ? b :k<<<" must not get :::
    Text text = {0};
    print(&text, "%s::cuda_cpu::launch(%s", colon ? " " : "",
          is_name ? "[=](auto &...cu_a) { " : "[cu_k = ");
    insert_before(begin, text.data);
    text.length = 0;
    print(&text, is_name ? "(cu_a...); }, " : "](auto &...cu_a) { cu_k(cu_a...); }, ");
    append_quoted(&text, begin, open - 1);
    print(&text, ", ::cuda_cpu::config(");
    replace(tokens[open].start, 3, text.data);
    replace(tokens[end].start, 3, "))");
    free(text.data);
}

// ---- declarations ----

static const char space_words[] = " __shared__ __device__ __constant__ __managed__ ";

static const char specifier_words[] =
    " static extern inline __inline __inline__ constexpr constinit consteval const __const volatile"
    " __volatile__ register mutable thread_local __thread friend virtual explicit typedef typename"
    " __extension__ __restrict __restrict__ __host__ __global__ __forceinline__ __noinline__ ";

static const char type_words[] =
    " void bool char wchar_t char8_t char16_t char32_t short int long signed __signed__ unsigned float"
    " double auto __int128 decltype typeof __typeof __typeof__ ";

static const char attribute_words[] =
    " __attribute__ __attribute alignas _Alignas __align__ __launch_bounds__ __declspec asm __asm__ ";

typedef struct {
    int end;        // the token behind: the first declarator
    int first_word; // the first of __shared__, __device__, …
    int extern_at, static_at; // these words, 0 when absent
    bool is_shared, is_constant, is_managed;
    bool is_const, is_constexpr, is_inline, is_typedef, is_template, is_linkage;
    bool is_definition; // of a class or an enum
    bool is_function;   // a constructor, a destructor or a conversion: there is no type before the name
} Specifiers;

typedef struct {
    int end;  // the token behind
    int name; // 0 when the declarator has none
    bool is_function;
    bool is_const; // the object itself, not what it points to
} Declarator;

_Noreturn static void fail_declaration(int i) {
    if (kind(i) == END)
        fail(i, "the text ends inside a declaration");
    fail(i, "cannot parse this declaration at '%.*s'", (int)(tokens[i].length > 60 ? 60 : tokens[i].length),
         source.data + tokens[i].start);
}

static int skip_template_arguments(int i) {
    const int end = skip_angles(i, token_count);
    if (!end)
        fail(i, "cannot find the > of this <; put comparisons in ( )");
    return end;
}

// Returns i when no attribute stands here. Attributes that align are taken out when `alignment`
// wants them: C++ has no place for them on a typedef.
static int skip_attribute(int i, Text *alignment) {
    int last;
    if (kind(i) == '[' && kind(i + 1) == '[')
        return tokens[i].match + 1;
    if (!is_one_of(i, attribute_words))
        return i;
    last = kind(i + 1) == '(' ? tokens[i + 1].match : i;
    bool aligns = is_one_of(i, " alignas _Alignas __align__ ");
    for (int t = i; t < last && !aligns; t++)
        aligns = is_one_of(t, " aligned __aligned__ ");
    if (alignment && aligns) {
        append_squeezed(alignment, i, last, SIZE_MAX);
        append(alignment, " ", 1);
        delete_tokens(i, last);
    }
    return last + 1;
}

// Skips a::b<c>::d. Stops at what is no name: behind `A::` of `A::~A` and `int A::*`. `twin` says
// whether the last two parts are the same word, which names a constructor.
static int skip_name(int i, bool *twin) {
    int part = 0;
    *twin = false;
    if (kind(i) == SCOPE)
        i++;
    for (;;) {
        if (is(i, "template"))
            i++;
        if (kind(i) != IDENT || is_one_of(i, statement_words) || is(i, "operator"))
            return i;
        *twin = part && same_word(part, i);
        part = i++;
        if (kind(i) == '<' && run(i) == 1)
            i = skip_template_arguments(i);
        if (kind(i) != SCOPE)
            return i;
        i++;
    }
}

// From struct, class, union or enum to the { of the definition, or behind the name.
static int skip_class_head(int i, int limit) {
    i += is(i, "enum") && is_one_of(i + 1, " class struct ") ? 2 : 1;
    for (int next; (next = skip_attribute(i, NULL)) != i;)
        i = next;
    while (i < limit && !is(i, "final") && (kind(i) == IDENT || kind(i) == SCOPE)) {
        i++;
        if (kind(i) == '<') {
            const int end = skip_angles(i, limit);
            if (!end)
                return i;
            i = end;
        }
        if (kind(i) != SCOPE && kind(i - 1) != SCOPE)
            break;
    }
    if (is(i, "final"))
        i++;
    if (kind(i) != ':')
        return i;
    int j = i; // base classes
    while (j < limit && kind(j) != '{' && kind(j) != ';' && kind(j) != END && !closes(j))
        j = opens(j) ? tokens[j].match + 1 : j + 1;
    return kind(j) == '{' ? j : i;
}

static void take_word(Specifiers *s, int i) {
    if (!s->first_word)
        s->first_word = i;
    s->is_shared |= is(i, "__shared__");
    s->is_constant |= is(i, "__constant__");
    s->is_managed |= is(i, "__managed__");
    tokens[i].done = true;
    replace_token(i, "");
}

static Specifiers parse_specifiers(int i, bool in_class, Text *alignment) {
    Specifiers s = {0};
    bool typed = false;
    for (;;) {
        const int next = skip_attribute(i, alignment);
        if (next != i) {
            i = next;
        } else if (is_one_of(i, space_words)) {
            take_word(&s, i++);
        } else if (is(i, "template")) {
            if (kind(++i) == '<') {
                s.is_template |= kind(i + 1) != '>';
                i = skip_template_arguments(i);
            }
        } else if (is_one_of(i, specifier_words)) {
            if (is(i, "extern"))
                s.extern_at = i;
            if (is(i, "static"))
                s.static_at = i;
            s.is_const |= is_one_of(i, " const __const constexpr ");
            s.is_constexpr |= is(i, "constexpr");
            s.is_inline |= is_one_of(i, " inline __inline __inline__ ");
            s.is_typedef |= is(i, "typedef");
            i++;
            if (kind(i) == STRING && s.extern_at == i - 1) { // extern "C"
                s.is_linkage = true;
                i++;
            }
        } else if (is_one_of(i, type_words)) {
            typed = true;
            i = kind(i + 1) == '(' && is_one_of(i, " decltype typeof __typeof __typeof__ ")
                    ? tokens[i + 1].match + 1
                    : i + 1;
            if (kind(i) == SCOPE)
                typed = false; // decltype(x)::type: the name goes on
        } else if (is_one_of(i, " struct class union enum ")) {
            typed = true;
            i = skip_class_head(i, token_count);
            if (kind(i) == '{') {
                s.is_definition = true;
                i = tokens[i].match + 1;
            }
        } else if (!typed && (is(i, "operator") || kind(i) == '~')) {
            s.is_function = true;
            break;
        } else if (!typed && (kind(i) == IDENT || kind(i) == SCOPE)) {
            bool twin;
            i = skip_name(i, &twin);
            typed = true;
            if (is(i, "operator") || kind(i) == '~')
                s.is_function = true;
            if (kind(i) == '(' && (twin || (in_class && kind(i + 1) != '*' && kind(i + 1) != '&')))
                s.is_function = true;
            if (s.is_function)
                break;
            if (kind(i - 1) == SCOPE || is_one_of(i, statement_words))
                fail_declaration(i);
        } else {
            break;
        }
    }
    if (!typed && !s.is_function)
        fail_declaration(i);
    s.end = i;
    return s;
}

// Are these the parameters of a function, and not the initial value of a variable? As in C++ what
// could be both is a function: a name alone counts as a type.
static bool looks_like_parameters(int open) {
    const int close = tokens[open].match;
    int i = open + 1;
    if (kind(close + 1) != ';' && kind(close + 1) != ',')
        return true; // a body, const, noexcept, ->, = 0 …
    if (i == close || (kind(i) == '.' && kind(i + 1) == '.') ||
        is_one_of(i, " struct class union enum typename const volatile ") ||
        (is_one_of(i, type_words) && (kind(i + 1) != '(' || kind(i + 2) == '*') && kind(i + 1) != '{'))
        return true;
    if ((kind(i) != IDENT && kind(i) != SCOPE) ||
        is_one_of(i, " true false nullptr this sizeof alignof new NULL __null "))
        return false;
    while (++i < close && (kind(i) == SCOPE || kind(i - 1) == SCOPE || kind(i) == '<'))
        if (kind(i) == '<' && (i = skip_angles(i, close) - 1) < 0)
            return false;
    if (kind(i) == '*' || kind(i) == '&') // T *p, T *, but not a * b(c)
        return i + 1 == close || kind(i + 1) == IDENT || strchr("*&,)", kind(i + 1));
    return i == close || kind(i) == IDENT || kind(i) == ',' ||
           (kind(i) == '.' && kind(i + 1) == '.') || (kind(i) == '(' && kind(i + 1) == '*') || (kind(i) == '[' && kind(i + 1) == ']');
}

// Parses *name[3], (*name)(int), name(parameters) and the like up to the initial value.
static Declarator parse_declarator(int i, const Specifiers *s, Text *alignment) {
    Declarator d = {.is_const = s->is_const};
    int parentheses = 0;
    bool pointer = false; // inside of parentheses
    for (;; i++) {
        for (int next; (next = skip_attribute(i, alignment)) != i;)
            i = next;
        bool twin;
        const int end = kind(i) == IDENT || kind(i) == SCOPE ? skip_name(i, &twin) : i;
        if (kind(i) == '*' || kind(i) == '&' || (kind(end) == '*' && kind(end - 1) == SCOPE)) {
            d.is_const = false;
            pointer |= parentheses > 0;
            i = end; // behind the class of a pointer to member
        } else if (kind(i) == '(') {
            parentheses++;
        } else if (is_one_of(i, " const __const ")) {
            d.is_const = true;
        } else if (is_one_of(i, space_words)) {
            tokens[i].done = true;
            replace_token(i, "");
        } else if (!is_one_of(i, " volatile __volatile__ __restrict __restrict__ ")) {
            if (is(end, "operator") || kind(end) == '~') {
                d.is_function = true;
                return d;
            }
            if (end == i || kind(end - 1) == SCOPE || is_one_of(i, statement_words))
                fail_declaration(i);
            d.name = end - 1;
            i = end;
            break;
        }
    }
    // Behind the name: the first ( ) that meets no pointer on its way is a parameter list.
    for (bool direct = true;;) {
        const int next = skip_attribute(i, alignment);
        if (next != i) {
            i = next;
        } else if (kind(i) == '(' && direct) {
            d.is_function = looks_like_parameters(i);
            break; // an initial value otherwise
        } else if (kind(i) == '(' || kind(i) == '[') {
            direct = false;
            i = tokens[i].match + 1;
        } else if (kind(i) == ')' && parentheses-- > 0) {
            direct = direct && !pointer;
            i++;
        } else {
            break;
        }
    }
    if (parentheses > 0 && !d.is_function)
        fail_declaration(i);
    d.end = i;
    return d;
}

// ---- memory spaces ----

typedef struct {
    char kind;  // n: namespace, c: class, b: block or other braces, p: ( ) or [ ]
    char brace; // the kind of the innermost braces
    int start;  // the first token of the statement or declaration that we are in
} Scope;

// __shared__ T x[4], *y;  ->  typedef T cu_t_x[4], *cu_t_y; cu_t_x &x = …; cu_t_y &y = …;
// A typedef takes every form of declarator as it is, and dependent types too.
static void translate_shared(int word, const Scope *scope) {
    static const char misplaced[] = "__shared__ can only stand before a variable in a kernel";
    Text alignment = {0}, name = {0}, after = {0};
    if (scope->kind == 'p' || scope->kind == 'c')
        fail(word, misplaced);
    append(&alignment, "", 0);
    const Specifiers s = parse_specifiers(scope->start, false, &alignment);
    if (!s.is_shared)
        fail_declaration(word);
    if (s.is_function || s.is_typedef || s.is_template || s.is_linkage || s.is_constant || s.is_managed)
        fail(word, misplaced);
    if (scope->kind == 'n' && !s.extern_at)
        fail(word, "outside a kernel __shared__ needs extern and an array of open size, x[]");
    insert_before(s.first_word, "typedef");
    delete_tokens(s.extern_at, s.extern_at ? s.extern_at : -1);
    delete_tokens(s.static_at, s.static_at ? s.static_at : -1);

    const size_t common_alignment = alignment.length;
    int i = s.end;
    do {
        const Declarator d = parse_declarator(i, &s, &alignment);
        if (d.is_function || kind(d.end) == '=' || kind(d.end) == '{' || kind(d.end) == '(')
            fail(d.end, "a __shared__ variable cannot have an initial value");
        if ((kind(d.end) != ',' && kind(d.end) != ';') || kind(d.name) != IDENT ||
            kind(d.name - 1) == SCOPE)
            fail_declaration(d.end);
        name.length = 0;
        append_token(&name, d.name);
        const char *x = name.data;
        insert_before(d.name, "cu_t_");
        if (s.extern_at) {
            if (kind(d.name + 1) != '[' || kind(d.name + 2) != ']')
                fail(d.name, "an extern __shared__ variable must be an array of open size, %s[]", x);
            delete_tokens(d.name + 1, d.name + 2);
            if (scope->kind == 'n')
                print(&after, " static const ::cuda_cpu::dynamic_array<cu_t_%s> %s{};", x, x);
            else
                print(&after, " cu_t_%s *const %s = ::cuda_cpu::dynamic_shared<cu_t_%s>(\"%s\");", x,
                      x, x, x);
        } else {
            const bool aligned = alignment.length > 0;
            if (aligned)
                print(&after, " struct cu_a_%s { %.*scu_t_%s v; };", x, (int)alignment.length,
                      alignment.data, x);
            print(&after, " cu_t_%s &%s = ::cuda_cpu::shared<cu_t_%s>([] {}, \"%s\"", x, x, x, x);
            print(&after, aligned ? ", alignof(cu_a_%s));" : ");", x);
        }
        alignment.length = common_alignment; // without what only this declarator asked for
        i = d.end + 1;
    } while (kind(i - 1) == ',');
    insert_after(i - 1, after.data);
    free(alignment.data);
    free(name.data);
    free(after.data);
}

// Variables go into a section of their own, which is how the runtime knows them and swaps them when
// the device changes. Constant ones need another one: a section is writable or it is not.
static void translate_device(int word, const Scope *scope) {
    const size_t edits_before = edit_count;
    if (kind(word - 1) == ']' && ends_expression(word - 1) && !strchr(";,=", kind(word + 1))) {
        replace_token(word, ""); // [] __device__ (int x) { … }
        return;
    }
    if (scope->kind == 'p')
        fail(word, "%.*s cannot stand here", (int)tokens[word].length, source.data + tokens[word].start);
    const Specifiers s = parse_specifiers(scope->start, scope->kind == 'c', NULL);
    if (s.is_shared) { // __device__ __shared__ says no more than __shared__
        edit_count = edits_before;
        translate_shared(word, scope);
        return;
    }
    if (s.is_typedef || (s.is_definition && kind(s.end) == ';'))
        return;
    Declarator d = {.is_function = true};
    if (!s.is_function)
        d = parse_declarator(s.end, &s, NULL);
    if (d.is_function) {
        if (s.is_constant || s.is_managed)
            fail(word, "only a variable can be __constant__ or __managed__");
        if (!tokens[word].done)
            replace_token(word, "");
        return;
    }
    const bool has_value = kind(d.end) == '=' || kind(d.end) == '{' || kind(d.end) == '(';
    if (!s.first_word || (!has_value && kind(d.end) != ',' && kind(d.end) != ';'))
        fail_declaration(d.end);
    if (scope->kind == 'c' && !s.static_at)
        fail(word, "a member variable needs static to live in device memory");
    if (scope->kind == 'b' && !s.static_at && !s.extern_at)
        fail(word, "a variable of a function needs static to live in device memory");
    if (s.extern_at && !has_value)
        return; // declared here, defined elsewhere
    // The compiler would ignore the section of a template and mix up those of inline variables.
    if (s.is_inline || s.is_template || (s.is_constexpr && scope->kind == 'c')) {
        if (!d.is_const)
            fail(word, "the CPU back end cannot keep an inline variable or a variable template for each "
                       "device");
        return;
    }
    Text text = {0};
    print(&text, "__attribute__((section(\"cuda_%s%s\")))",
          s.is_managed    ? "managed"
          : s.is_constant ? "constant"
                          : "device",
          d.is_const ? "_ro" : "");
    insert_before(s.first_word, text.data);
    free(text.data);
}

// ---- the pass over all tokens ----

static char brace_kind(int start, int open) {
    if (kind(open - 1) == STRING && is(open - 2, "extern"))
        return 'n';
    for (int i = start; i < open; i++) {
        if (opens(i)) {
            i = tokens[i].match;
        } else if (is(i, "template") && kind(i + 1) == '<') {
            i = skip_angles(i + 1, open) - 1;
            if (i < 0)
                return 'b';
        } else if (is(i, "namespace")) {
            return 'n';
        } else if (is(i, "enum")) {
            return 'b';
        } else if (is_one_of(i, " struct class union ")) {
            return skip_class_head(i, open) == open ? 'c' : 'b';
        }
    }
    return 'b';
}

static void translate(void) {
    Scope *scopes = NULL, *s;
    int depth = 0, capacity = 0;
    for (int i = PADDING; i < token_count - PADDING; i++) {
        if (depth + 1 >= capacity) {
            capacity = 2 * capacity + 64;
            scopes = grow(scopes, (size_t)capacity, sizeof *scopes);
            scopes[0] = depth ? scopes[0] : (Scope){'n', 'n', PADDING};
        }
        s = &scopes[depth];
        if (kind(i) == '{') {
            const char kind = brace_kind(s->start, i);
            scopes[++depth] = (Scope){kind, kind, i + 1};
        } else if (opens(i)) {
            scopes[++depth] = (Scope){'p', s->brace, i + 1};
        } else if (closes(i)) {
            depth--;
            if (kind(i) == '}')
                scopes[depth].start = i + 1;
        } else if (kind(i) == ';') {
            s->start = i + 1;
        } else if (kind(i) == ':') { // of a label: what follows is a new statement
            if (is_one_of(s->start, " public private protected case default ") ||
                (s->kind == 'b' && i == s->start + 1 && !is_one_of(s->start, " struct class union ")))
                s->start = i + 1;
        } else if (kind(i) == '<') {
            const int n = run(i);
            if (is(i - 1, "operator")) { // operator<<<T>(x): one or two belong to the name
                i += n > 1;
            } else if (n > 2) {
                if (n > 3 || s->brace != 'b')
                    fail(i, n > 3 ? "cannot parse this <<<<" : "this <<<…>>> is outside a function");
                translate_launch(i);
                i += 2;
            }
        } else if (is(i, "__shared__") && !tokens[i].done) {
            translate_shared(i, s);
        } else if (is_one_of(i, space_words) && !tokens[i].done) {
            translate_device(i, s);
        }
    }
    free(scopes);
}

// ---- files ----

static void read_input(void) {
    static char buffer[1 << 16];
    FILE *in = strcmp(input_name, "-") ? fopen(input_name, "rb") : stdin;
    if (!in)
        fail_file(input_name);
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, in)) > 0;) {
        append(&source, buffer, n);
        if (source.length > 1 << 30) {
            errno = EFBIG;
            fail_file(input_name);
        }
    }
    if (ferror(in))
        fail_file(input_name);
    append(&source, "", 0);
    if (in == stdin)
        input_name = "<stdin>";
    else
        fclose(in);
}

static void write_output(const char *name, Text text) {
    FILE *out = name ? fopen(name, "wb") : stdout;
    if (!out)
        fail_file(name);
    const bool written = fwrite(text.data, 1, text.length, out) == text.length;
    if (fclose(out) == 0 && written)
        return;
    const int error = errno;
    struct stat status;
    if (name && stat(name, &status) == 0 && S_ISREG(status.st_mode)) // never /dev/full
        unlink(name);
    errno = error;
    fail_file(name ? name : "standard output");
}

int main(int argc, char **argv) {
    static const char usage[] = "usage: cu2cpp INPUT [-o OUTPUT]\n";
    const char *output = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(usage, stdout);
            return EXIT_SUCCESS;
        }
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc && !output)
            output = argv[++i];
        else if ((argv[i][0] != '-' || !argv[i][1]) && !input_name)
            input_name = argv[i];
        else
            input_name = NULL, i = argc; // fails below
    }
    if (!input_name) {
        fputs(usage, stderr);
        return 64;
    }
    read_input();
    lex();
    pair_brackets();
    translate();
    const Text result = apply_edits();
    write_output(output, result);
    free(source.data);
    free(tokens);
    free(edits);
    free(edit_text.data);
    free(result.data);
    return EXIT_SUCCESS;
}
