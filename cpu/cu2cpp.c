// SPDX-License-Identifier: MIT
/*
 * cu2cpp: translates preprocessed CUDA C++ to C++ for the CPU back end
 *
 *     cu2cpp INPUT [-o OUTPUT]          INPUT may be - for standard input; without -o, output goes to
 *                                       standard output
 *         -d DEVICE                     the same source, preprocessed with __CUDA_ARCH__
 *         -w                            other files cannot use the device functions and variables
 *
 * These constructs of CUDA, which C++ lacks, are rewritten in place. All other tokens stay the same. Blanks
 * and linemarkers are added, so that the compiler, the debugger and the sanitizers report lines and columns
 * of the .cu:
 *
 *   1. k<<<g, b>>>(x)
 *          (::cuda_cpu::Launch("k", ::cuda_cpu::config(g, b)), k(x))
 *   2. __global__ void k(int x) { … }
 *          void k(int x) { struct cu_owner; ::cuda_cpu::launch_body<cu_owner, decltype(x)>("k", 0,
 *              [](::cuda_cpu::Parameter<decltype(x)> x) { … }, x); }
 *   3. __shared__ T x[4];
 *          typedef T cu_t_x[4]; cu_t_x &x = ::cuda_cpu::shared<cu_t_x, cu_owner>([] {}, "x");
 *   4. extern __shared__ T x[];
 *          typedef T cu_t_x[]; cu_t_x &x = ::cuda_cpu::dynamic_shared<cu_t_x>("x");
 *   5. __device__ T x;
 *          __attribute__((section("cuda_device"))) T x;
 *      Before a function, __device__ is removed.
 *   6. volatile T *x = y; (in device code)
 *          volatile T *cu_v_x = y; auto x = ::cuda_cpu::in_step_pointer(cu_v_x);
 *      Parameters and casts likewise (cuda_cpu/volatile.h).
 *   7. asm("add.u32 %0, %1, %2;" : "=r"(x) : "r"(y), "r"(z)); (inline PTX in device code)
 *          C++ statements with the same effect (cuda_cpu/ptx.h)
 *
 * With -d, the texts for the host and for the device are merged before that (see "merging" below).
 *
 * The lexer splits the text into tokens; comments, linemarkers and other directives count as white
 * space. Then brackets are paired, and one pass over the tokens keeps track of the scope and collects
 * edits. This is not a full C++ parser: it knows no names, so it decides by the form of the tokens. A
 * construct that it cannot parse is an error with file and line; it is never passed through unchanged.
 */
#define _GNU_SOURCE // getopt accepts options after the input file
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

// Kinds of tokens. A token of one character has that character as its kind; a digraph has the character that
// it stands for.
enum { END = 0, IDENT = 128, NUMBER, STRING, CHARACTER, SCOPE /* :: */, ARROW /* -> */, OPERATOR };

typedef struct {
    uint32_t start, length; // position in the source, in bytes
    uint32_t line, file;    // from the linemarkers; `file` is the position of the name in the source
    int32_t match;          // for a bracket: index of the matching bracket
    uint8_t kind;
    bool done;   // a word that has been translated, for example a memory space word with its declaration
    bool host;   // preceded by __host__, which is not stored as a token
    bool system; // in a system header
    bool joined; // the third < of << <, or the third > of >> >; nvcc reads these as <<< and >>>
} Token;

typedef struct {
    char *data;
    size_t length, capacity;
} Text;

typedef struct {
    size_t position, removed; // number of bytes of the source to replace …
    size_t text, length;      // … by this part of edit_text
    size_t order;             // order of creation, which decides between edits at the same position
    int moved;                // if the text was moved here: the token with which it begins
} Edit;

enum { PADDING = 4 };

static const char *input_name;
static Text source;
static Token *tokens; // PADDING tokens of kind END at both ends, so that looking ahead or back needs no check
static int token_count, token_capacity;
static Edit *edits;
static size_t edit_count;
static size_t capture_count;
static Text edit_text;

// ---- errors and memory ----

__attribute__((format(printf, 2, 3))) _Noreturn static void fail(int token, const char *format, ...) {
    if (tokens[token].file == 0)
        fputs(input_name, stderr);
    else // the name is a quoted string in the linemarker
        for (const char *p = source.data + tokens[token].file; *p && !strchr("\"\n", *p); p++) {
            p += *p == '\\' && p[1] && p[1] != '\n';
            fputc(*p, stderr);
        }
    fprintf(stderr, ":%u: ", (unsigned)tokens[token].line);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    exit(EXIT_FAILURE);
}

_Noreturn static void fail_file(const char *name) {
    fprintf(stderr, "cu2cpp: %s: %s\n", name, strerror(errno));
    exit(EXIT_FAILURE);
}

static void *grow(void *array, size_t count, size_t size) {
    void *grown = count > SIZE_MAX / size ? NULL : realloc(array, count * size);
    if (!grown) {
        fputs("cu2cpp: out of memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    return grown;
}

// The end of an array that may be null if it is empty: C does not allow adding 0 to a null pointer.
#define array_end(array, count) ((array) ? (array) + (count) : (array))

// Appends bytes. The text always ends with a null character.
static void append(Text *text, const char *data, size_t length) {
    if (text->length + length >= text->capacity) {
        text->capacity = 2 * (text->length + length) + 64;
        text->data = grow(text->data, text->capacity, 1);
    }
    if (length > 0)
        memcpy(text->data + text->length, data, length);
    text->length += length;
    text->data[text->length] = '\0';
}

static void append_arguments(Text *text, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    const size_t length = (size_t)vsnprintf(NULL, 0, format, again), start = text->length;
    va_end(again);
    text->length += length;
    append(text, "", 0); // makes room
    vsnprintf(text->data + start, length + 1, format, arguments);
}

__attribute__((format(printf, 2, 3))) static void append_format(Text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    append_arguments(text, format, arguments);
    va_end(arguments);
}

// ---- edits ----

__attribute__((format(printf, 3, 4))) static void edit(size_t position, size_t removed, const char *format,
                                                       ...) {
    va_list arguments;
    if ((edit_count & (edit_count - 1)) == 0) // full
        edits = grow(edits, edit_count ? 2 * edit_count : 1, sizeof *edits);
    const size_t text = edit_text.length;
    va_start(arguments, format);
    append_arguments(&edit_text, format, arguments);
    va_end(arguments);
    edits[edit_count] = (Edit){position, removed, text, edit_text.length - text, edit_count, 0};
    edit_count++;
}

static int compare_edits(const void *left, const void *right) {
    const Edit *a = left, *b = right;
    if (a->position != b->position)
        return a->position < b->position ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

// ---- lexer ----

static size_t at;           // position of the next byte
static bool host;           // __host__ was read, and no token since then
static uint32_t line, file; // line and file of the next byte
static bool in_system_header;

static void add_token(int kind, size_t start, uint32_t first_line) {
    if (token_count >= token_capacity) {
        token_capacity = token_capacity ? 2 * token_capacity : 1 << 16;
        tokens = grow(tokens, (size_t)token_capacity, sizeof *tokens);
    }
    tokens[token_count++] = (Token){.start = (uint32_t)start,
                                    .length = (uint32_t)(at - start),
                                    .line = first_line,
                                    .file = file,
                                    .kind = (uint8_t)kind,
                                    .host = host,
                                    .system = in_system_header};
    host = false;
    const Token *last = &tokens[token_count - 1];
    if ((kind == '<' || kind == '>') && token_count > 3 && last[-1].kind == kind && last[-2].kind == kind &&
        last[-2].start + 1 == last[-1].start && last[-1].start + 1 < last->start)
        tokens[token_count - 1].joined = true;
}

_Noreturn static void fail_lexer(uint32_t first_line, const char *why) {
    add_token(END, at, first_line);
    fail(token_count - 1, "%s", why);
}

// True if the text continues with `string`. The comparison ends at the null character that ends the text.
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

// Skips a line continuation: \ at the end of a line.
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
            fail_lexer(first, "unterminated comment");
    at += 2;
    return true;
}

// Skips a string or character literal; false when the line ends before it is closed.
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
        fail_lexer(line, "invalid delimiter of a raw string");
    const uint32_t first = line;
    for (at += length; at < source.length; next_byte()) {
        const char *p = source.data + at;
        if (*p == ')' && strncmp(p + 1, delimiter, length) == 0 && p[1 + length] == '"') {
            at += length + 2;
            return;
        }
    }
    fail_lexer(first, "unterminated raw string");
}

// Skips a number, such as 0x1.8p-3, 1'000 or 1e+5f.
static void skip_number(void) {
    for (;; at++) {
        const char *p = source.data + at;
        if (strchr("eEpP", *p) && (p[1] == '+' || p[1] == '-'))
            at++;
        else if (!is_word_byte(*p) && *p != '.' && !(*p == '\'' && is_word_byte(p[1])))
            return;
    }
}

// Skips a directive, a line that begins with #. Takes line and file from `# 12 "file.cu"` and
// `#line 12 "file.cu"`.
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
        if (source.data[at] != '"' || !skip_quoted('"')) // in #error, a quote need not be closed
            at = before + 1;
    }
    if (marker) {
        line = (uint32_t)strtoul(number, NULL, 10) - 1; // the newline adds 1
        if (*name == '"') {
            file = (uint32_t)(name + 1 - source.data);
            const char *flags = source.data + at; // flags: 1 or 2, then 3 for a system header
            while (flags > name && strchr("34 ", flags[-1]))
                flags--;
            in_system_header = flags > name && memchr(flags, '3', (size_t)(source.data + at - flags));
        }
    }
}

static void skip_symbol(int *kind) {
    // Operators, longest first. Angle brackets are single tokens, because only the parser can tell whether >>
    // is a shift.
    static const struct {
        const char *text;
        int kind;
    } symbols[] = {{"<=>", OPERATOR}, {"<<=", OPERATOR}, {">>=", OPERATOR}, {"->", ARROW},
                   {"::", SCOPE},     {"<=", OPERATOR},  {">=", OPERATOR},  {"==", OPERATOR},
                   {"<%", '{'},       {"%>", '}'},       {"<:", '['},       {":>", ']'}};
    const bool scope_follows = ahead("<::") && source.data[at + 3] != ':' && source.data[at + 3] != '>';
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
    tokens = NULL;
    token_count = token_capacity = 0;
    edit_count = capture_count = 0; // of an earlier text
    in_system_header = host = false;
    at = file = 0;
    line = 1;
    for (int i = 0; i < PADDING; i++)
        add_token(END, 0, line);
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
        if (skip_comment())
            continue;
        if (skip_continuation()) { // In preprocessed text the compiler does not join lines.
            edit(start, 1, "%s", "");
            continue;
        }
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
            if (length == strlen("__host__") && strncmp(word, "__host__", length) == 0) {
                host = true;
                edit(start, length, "%s", "");
                continue;
            }
            // A macro for __noinline__ would also replace it in __attribute__((__noinline__)), so it is
            // translated here, except in an attribute.
            if (length == strlen("__noinline__") && strncmp(word, "__noinline__", length) == 0 &&
                tokens[token_count - 1].kind != '(' && tokens[token_count - 1].kind != ',' &&
                tokens[token_count - 1].kind != SCOPE) { // [[gnu::__noinline__]]
                edit(start, length, "__attribute__((noinline))");
                continue;
            }
            if (source.data[at] == '"' && word[length - 1] == 'R' &&
                (length == 1 || (length == 2 && strchr("LuU", *word)) || strncmp(word, "u8R", length) == 0)) {
                kind = STRING;
                skip_raw_string();
            }
        } else if (c == '"' || c == '\'') {
            kind = c == '"' ? STRING : CHARACTER;
            if (!skip_quoted(c))
                fail_lexer(first_line, c == '"' ? "missing closing \"" : "missing closing '");
        } else {
            skip_symbol(&kind);
        }
        add_token(kind, start, first_line);
    }
    for (int i = 0; i < PADDING; i++)
        add_token(END, at, line);
}

// ---- tokens ----

static int kind(int i) {
    return tokens[i].kind;
}

static bool is(int i, const char *word) {
    const Token *t = &tokens[i];
    return t->kind == IDENT && strncmp(source.data + t->start, word, t->length) == 0 &&
           word[t->length] == '\0';
}

// Returns true if token i is an identifier that stands in the list `words`, for example " int long ": a space
// comes before and after each word.
static bool is_one_of(int i, const char *words) {
    const Token *t = &tokens[i];
    if (t->kind != IDENT)
        return false;
    for (const char *p = words; *p; p += 1 + strcspn(p + 1, " "))
        if (strncmp(p + 1, source.data + t->start, t->length) == 0 && p[1 + t->length] == ' ')
            return true;
    return false;
}

static size_t end_of(int i) {
    return (size_t)tokens[i].start + tokens[i].length;
}

static bool opens(int i) {
    return kind(i) == '(' || kind(i) == '[' || kind(i) == '{';
}
static bool closes(int i) {
    return kind(i) == ')' || kind(i) == ']' || kind(i) == '}';
}

// The number of equal, adjacent tokens from token i on: 3 at the start of <<< or << <. Counts forward with
// step 1, backward with step -1.
static int run(int i, int step) {
    int n = 1;
    for (; kind(i + step) == kind(i); n++, i += step) {
        const int later = step > 0 ? i + 1 : i;
        if (end_of(later - 1) != tokens[later].start && !tokens[later].joined)
            break;
    }
    return n;
}

static void pair_brackets(void) {
    int innermost = 0; // `match` of an open bracket is, until it is closed, the bracket around it
    for (int i = PADDING; i < token_count - PADDING; i++) {
        if (opens(i)) {
            tokens[i].match = innermost;
            innermost = i;
        } else if (closes(i)) {
            const int open = innermost;
            const char *pair = kind(i) == ')' ? "()" : kind(i) == ']' ? "[]" : "{}";
            if (!open || kind(open) != pair[0])
                fail(i, "unmatched %c", pair[1]);
            innermost = tokens[open].match;
            tokens[open].match = i;
            tokens[i].match = open;
        }
    }
    if (innermost)
        fail(innermost, "this %c is never closed", kind(innermost));
}

// From a <, finds the token after the matching >; 0 if there is none before `limit`. `numbers`: a nested
// template argument list may begin with a number.
static int match_angles(int i, int limit, bool numbers) {
    for (int depth = 0; i < limit && kind(i) != ';' && kind(i) != END && !closes(i); i++) {
        if (opens(i)) {
            i = tokens[i].match;
        } else if (kind(i) == '<') {
            const int n = run(i, 1); // << is a shift; < not after a name is a comparison
            if (depth == 0 || (n == 1 && kind(i - 1) == IDENT && (numbers || kind(i + 1) != NUMBER)))
                depth++;
            i += n - 1;
        } else if (kind(i) == '>' && --depth <= 0) {
            return depth < 0 ? 0 : i + 1;
        }
    }
    return 0;
}

// In A<N<2> = 0> the second < is a comparison. Without knowing the names, this can be found out only by
// trying to read it as the start of an argument list.
static int skip_angles(int i, int limit) {
    const int end = match_angles(i, limit, true);
    return end ? end : match_angles(i, limit, false);
}

// From a >, finds the matching < before it; 0 if there is none. In k<A<C> the last < may be a comparison:
// `comparisons` is the number of < after a name that are not taken for the start of an argument list.
static int skip_angles_back(int i, int comparisons) {
    for (int depth = 0; kind(i) != ';' && kind(i) != END && !opens(i); i--) {
        if (closes(i)) {
            i = tokens[i].match;
        } else if (kind(i) == '>') {
            depth++;
        } else if (kind(i) == '<') {
            const int n = run(i, -1);
            if (n > 2)
                return 0;
            if (n == 1 && kind(i - 1) == IDENT && comparisons-- <= 0 && --depth == 0)
                return i;
            i -= n - 1;
        }
    }
    return 0;
}

static void insert_before(int i, const char *text) {
    edit(tokens[i].start, 0, "%s", text);
}

// Deletes the tokens one by one, so that the newlines between them stay.
static void delete_tokens(int first, int last) {
    for (int i = first; i <= last; i++)
        edit(tokens[i].start, tokens[i].length, "%s", "");
}

// Appends the tokens in one line.
static void append_tokens(Text *text, int first, int end) {
    for (int i = first; i < end; i++) {
        if (i > first && tokens[i].start > end_of(i - 1))
            append(text, " ", 1);
        append(text, source.data + tokens[i].start, tokens[i].length);
    }
}

// ---- launches ----

static const char space_words[] = " __shared__ __device__ __constant__ __managed__ ";

static const char statement_words[] =
    " if else for while do switch case default return co_return co_yield co_await goto"
    " break continue try catch throw using namespace sizeof alignof new delete ";

static const char cast_words[] = " static_cast const_cast reinterpret_cast dynamic_cast ";

// The >>> that ends a launch configuration; 0 if there is none. In `f<A<int>>>>>` these are the last three >.
static int launch_end(int i) {
    for (int templates = 0; kind(i) != ';' && kind(i) != END && !closes(i); i++) {
        if (opens(i)) {
            i = tokens[i].match;
        } else if (kind(i) == '<') {
            const int n = run(i, 1);
            if (n > 2)
                return 0;
            if (n == 1 && kind(i - 1) == IDENT)
                templates++;
            i += n - 1;
        } else if (kind(i) == '>') {
            const int n = run(i, 1);
            if (n >= 3 && n > templates)
                return i + n - 3;
            if (n <= templates) // otherwise a comparison or a shift
                templates -= n;
            i += n - 1;
        }
    }
    return 0;
}

// True if token i can end an expression; then ( or [ after it is a call f(x) or a subscript table[i].
static bool ends_expression(int i) {
    if (kind(i) == IDENT)
        return !is_one_of(i, statement_words);
    if (kind(i) == ']') // [[likely]] is an attribute
        return kind(tokens[i].match + 1) != '[' || kind(i - 1) != ']';
    if (kind(i) != ')')
        return kind(i) == '>';
    const int group = tokens[i].match; // if (…), if constexpr (…), or the cast (void)
    return !is_one_of(group - 1, statement_words) && !is(group - 1, "constexpr") &&
           !(group == i - 2 && is(group + 1, "void"));
}

// From the last token of a kernel expression, finds its first; 0 if the tokens are not an expression.
// `comparisons`: see skip_angles_back().
static int expression_begin(int i, int comparisons) {
    for (bool last = true;; last = false) {
        if (kind(i) == ')' || kind(i) == ']') {
            const int open = tokens[i].match;
            if (!ends_expression(open - 1))
                return kind(open) == '(' ? open : 0;
            i = open - 1;
            continue;
        }
        if (kind(i) == '>') {
            i = skip_angles_back(i, last ? comparisons : 0) - 1;
            if (i > 0 && is_one_of(i, cast_words))
                return last ? 0 : i;
        }
        if (i <= 0 || kind(i) != IDENT || is_one_of(i, statement_words))
            return 0;
        if (is(i, "this"))
            return last ? 0 : i;
        const int before = is(i - 1, "template") ? i - 2 : i - 1;
        if (kind(before) == '.' || kind(before) == ARROW) {
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

// True if a launch may follow token i. A launch has type void, so it can be an operand only of the comma and
// conditional operators.
static bool may_stand_before_launch(int i) {
    if (kind(i) == IDENT || kind(i) == ')' || kind(i) == ']')
        return !ends_expression(i);
    return kind(i) != END && strchr(";{}(,?:", kind(i));
}

// From the last token of a kernel expression, finds its first; 0 if no launch may stand there.
static int launch_begin(int last) {
    for (int comparisons = 0; comparisons < 4; comparisons++) {
        const int begin = expression_begin(last, comparisons);
        if (begin && may_stand_before_launch(begin - 1))
            return begin;
    }
    return 0;
}

// Translates a launch. The kernel call stays a call, so that its arguments are converted like those of any
// function.
static void translate_launch(int open) {
    const int begin = launch_begin(open - 1);
    const int end = launch_end(open + 3);
    if (!end || run(open, 1) > 3)
        fail(open, "this <<< has no matching >>>");
    if (!begin)
        fail(open, "cannot find the kernel that this <<<…>>> launches");
    if (kind(end + 3) != '(')
        fail(end, "this <<<…>>> is not followed by the ( ) of a launch");
    bool comma = false;
    for (int i = open + 3; i < end && !comma; i = opens(i) ? tokens[i].match + 1 : i + 1)
        comma = kind(i) == ',';
    if (!comma)
        fail(open, "<<<…>>> needs at least a grid and a block");

    Text callee = {0};
    for (int i = begin; i < open; i++)
        if (is_one_of(i, space_words) || (kind(i) == '<' && run(i, 1) >= 3))
            fail(open, "the kernel of this <<<…>>> is too complex: name it in a variable first");
    append_tokens(&callee, begin, open);
    Text name = {0}; // for messages: without string literals, and cut to about 200 bytes
    for (int i = begin; i < open; i++) {
        if (i > begin && tokens[i].start > end_of(i - 1))
            append(&name, " ", 1);
        const bool shown = kind(i) != STRING && kind(i) != CHARACTER && name.length < 200;
        append(&name, shown ? source.data + tokens[i].start : "…", shown ? tokens[i].length : strlen("…"));
        if (name.length > 200)
            break;
    }
    // The configuration is evaluated before the call, so the kernel expression moves behind it. Nothing else
    // moves, and empty lines replace the lines of the expression.
    edit(tokens[begin].start, 0, "(::cuda_cpu::Launch(\"%s\", ::cuda_cpu::config(", name.data);
    delete_tokens(begin, open + 2);
    edit(tokens[end].start, 1, ")), ");
    edit(tokens[end].start, 0, "%s", callee.data);
    if (tokens[begin].line == tokens[end].line)
        edits[edit_count - 1].moved = begin;
    delete_tokens(end + 1, end + 2);
    edit(tokens[tokens[end + 3].match].start, 1, "))");
    free(callee.data);
    free(name.data);
}

// ---- declarations ----

static const char type_words[] =
    " void bool char wchar_t char8_t char16_t char32_t short int long signed unsigned"
    " float double auto __int128 decltype typeof __typeof __typeof__ const volatile ";

static const char attribute_words[] = " __attribute__ __attribute alignas _Alignas __align__ asm __asm__"
                                      " __launch_bounds__ __maxnreg__ __cluster_dims__ __block_size__ ";

static int device_end; // the } of the last kernel or device function that was begun
static int asm_end;    // the same, including functions for host and device

typedef struct {
    int first_word;           // the first memory space word: __shared__, __device__, …
    int extern_at, static_at; // the tokens of these words, 0 when absent
    int after_pointer;        // a memory space word after * or &, as in T *__device__ f(); 0 when absent
    bool is_shared, is_constant, is_managed;
    bool is_constexpr, is_inline, is_typedef, is_template, is_linkage;
    bool is_definition; // it defines a class or an enumeration
    bool is_typed;      // a declarator has been parsed, so the type is complete
    // The last declarator that was parsed:
    int name;
    int end; // the token after it: , or ; or the initial value
    bool has_value;
    bool is_function; // if true, the other members about the declarator are not set
    bool is_const;    // the variable itself is const, not what it points to
    // The type that all declarators share is const: in const int a = 1, *b; a is const, and b is not.
    bool is_const_type;
} Declaration;

_Noreturn static void fail_declaration(int i) {
    if (kind(i) == END)
        fail(i, "the file ends inside a declaration");
    const char *text = source.data + tokens[i].start;
    const size_t length = strcspn(text, "\n"); // a string literal may span lines
    fail(i, "cannot parse this declaration at '%.*s'",
         (int)(length < tokens[i].length ? length : tokens[i].length), text);
}

static int skip_template_arguments(int i) {
    const int end = skip_angles(i, token_count);
    if (!end)
        fail(i, "cannot find the > of this <; put comparisons in ( )");
    return end;
}

// From `requires`, finds the token after a requires-clause, such as requires A<T> && (B || requires { c; });
// i if there is none.
static int skip_requires(int i) {
    if (!is(i, "requires"))
        return i;
    for (i++;; i += 2) {
        if (is(i, "requires")) {
            i = kind(i + 1) == '(' ? tokens[i + 1].match + 1 : i + 1;
            i = kind(i) == '{' ? tokens[i].match + 1 : i;
        } else if (kind(i) == '(') {
            i = tokens[i].match + 1;
        } else {
            while (kind(i) == SCOPE || ((kind(i) == IDENT || kind(i) == '<') &&
                                        (kind(i + 1) == SCOPE || kind(i + 1) == '<' || kind(i) == '<')))
                i = kind(i) == '<' ? skip_template_arguments(i) : i + 1;
            i += kind(i) == IDENT && kind(i - 1) != '>';
        }
        if ((kind(i) != '&' && kind(i) != '|') || kind(i + 1) != kind(i))
            return i;
    }
}

// Returns the token after an attribute; i if there is none. Attributes that set an alignment are moved to
// `alignment` if it is not null, because C++ does not allow them on a typedef.
static int skip_attribute(int i, Text *alignment) {
    const bool standard = kind(i) == '[' && kind(i + 1) == '[';
    if (!standard && !is_one_of(i, attribute_words))
        return i;
    const int end = standard ? tokens[i].match + 1 : kind(i + 1) == '(' ? tokens[i + 1].match + 1 : i + 1;
    bool aligns = is_one_of(i, " alignas _Alignas __align__ ");
    for (int t = i; t < end; t++)
        aligns |= is_one_of(t, " aligned __aligned__ ");
    for (int t = i; t < end && alignment && aligns; t++) {
        append(alignment, " ", 1);
        append(alignment, source.data + tokens[t].start, tokens[t].length);
        delete_tokens(t, t);
    }
    return end;
}

// From struct, class, union or enum, finds the { of the definition; without a definition, the token after the
// name.
static int skip_class_head(int i, int limit) {
    i += is(i, "enum") && is_one_of(i + 1, " class struct ") ? 2 : 1;
    for (int next; (next = skip_attribute(i, NULL)) != i;)
        i = next;
    while (i < limit && !is(i, "final") && (kind(i) == IDENT || kind(i) == SCOPE)) {
        const int end = kind(++i) == '<' ? skip_angles(i, limit) : i;
        if (!end)
            return i;
        i = end;
        if (kind(i) != SCOPE && kind(i - 1) != SCOPE)
            break;
    }
    i += is(i, "final");
    if (kind(i) != ':')
        return i;
    int brace = i; // skips the base classes
    while (brace < limit && !strchr("{;)}]", kind(brace)))
        brace = opens(brace) ? tokens[brace].match + 1 : brace + 1;
    return kind(brace) == '{' ? brace : i;
}

// True if the parentheses hold the parameters of a function, false if they hold the initial value of a
// variable. As in C++, an ambiguous declaration declares a function. A single name is taken for a type.
static bool looks_like_parameters(int open) {
    const int close = tokens[open].match;
    int i = open + 1;
    if (kind(close + 1) != ';' && kind(close + 1) != ',')
        return true; // a body, const, noexcept, ->, = 0 …
    if (i == close || run(i, 1) == 3 || is_one_of(i, " struct class union enum typename "))
        return true; // run: ...
    if (is_one_of(i, type_words))
        return (kind(i + 1) != '(' || kind(i + 2) == '*') && kind(i + 1) != '{';
    if ((kind(i) != IDENT && kind(i) != SCOPE) ||
        is_one_of(i, " true false nullptr this sizeof alignof new NULL __null "))
        return false;
    while (++i < close && (kind(i) == SCOPE || kind(i - 1) == SCOPE || kind(i) == '<'))
        if (kind(i) == '<' && (i = skip_angles(i, close) - 1) < 0)
            return false;
    if (kind(i) == '*' || kind(i) == '&') // T *p, T *, but not a * 2
        return i + 1 == close || kind(i + 1) == IDENT || strchr("*&,", kind(i + 1));
    return i == close || kind(i) == IDENT || kind(i) == ',' || run(i, 1) == 3 ||
           (kind(i) == '(' && kind(i + 1) == '*') || (kind(i) == '[' && kind(i + 1) == ']');
}

// True if this ( begins a nested declarator: (*name)(…) or (A::*name)[…].
static bool holds_declarator(int open) {
    int i = open + 1;
    while (kind(i) == IDENT || kind(i) == SCOPE)
        i++;
    return (kind(i) == '*' || kind(i) == '&') && (i == open + 1 || kind(i - 1) == SCOPE) &&
           (kind(tokens[open].match + 1) == '(' || kind(tokens[open].match + 1) == '[');
}

// True for the first ( of (name)(int x), which declares a function.
static bool is_parenthesised_name(int open) {
    return kind(open) == '(' && kind(open + 1) == IDENT && kind(open + 2) == ')' && kind(open + 3) == '(' &&
           !is_one_of(open + 1, type_words);
}

static void note_word(Declaration *d, int i) {
    d->extern_at = is(i, "extern") ? i : d->extern_at;
    d->static_at = is(i, "static") ? i : d->static_at;
    d->is_constexpr |= is(i, "constexpr");
    d->is_inline |= is_one_of(i, " inline __inline __inline__ ");
    d->is_typedef |= is(i, "typedef");
    d->is_const |= is_one_of(i, " const constexpr ");
    if (!is_one_of(i, space_words))
        return;
    if (kind(i - 1) == '*' || kind(i - 1) == '&')
        d->after_pointer = i;
    d->first_word = d->first_word ? d->first_word : i;
    d->is_shared |= is(i, "__shared__");
    d->is_constant |= is(i, "__constant__");
    d->is_managed |= is(i, "__managed__");
    tokens[i].done = true;
    delete_tokens(i, i);
}

// Parses a declarator; the first call also parses the specifiers before it. Only the name has to be found: it
// is the last word before [ ( = , or ; that does not belong to a type.
static void parse_declarator(int i, Declaration *d, Text *alignment) {
    int words = 0, outermost = 0;
    bool pointer = false;
    d->name = 0;
    d->is_const = d->is_const_type;
    d->is_function = false;
    for (int next;;) {
        if ((next = skip_attribute(i, alignment)) != i) {
            i = next;
        } else if (is(i, "operator") || kind(i) == '~') {
            d->is_function = true;
            return;
        } else if (is(i, "template") && kind(i + 1) == '<') {
            d->is_template |= kind(i + 2) != '>';
            i = skip_template_arguments(i + 1);
        } else if (is(i, "requires")) {
            i = skip_requires(i);
        } else if (is(i, "extern") && kind(i + 1) == STRING) {
            d->is_linkage = true;
            note_word(d, i);
            i += 2;
        } else if (is_one_of(i, " struct class union enum ")) {
            words++;
            d->name = i;
            i = skip_class_head(i, token_count);
            d->is_definition |= kind(i) == '{';
            i = kind(i) == '{' ? tokens[i].match + 1 : i;
        } else if (kind(i) == IDENT) {
            note_word(d, i);
            if (!is_one_of(i, space_words)) {
                d->name = i;
                words++;
            }
            i++;
            if (kind(i) == '<')
                i = skip_template_arguments(i);
            else if (kind(i) == '(' && is_one_of(i - 1, " decltype typeof __typeof __typeof__ "))
                i = tokens[i].match + 1;
        } else if (kind(i) == '*' || kind(i) == '&') {
            d->is_const_type = d->is_typed || pointer ? d->is_const_type : d->is_const;
            pointer = true;
            d->is_const = false;
            i++;
        } else if (kind(i) == '(' && words > 0 && is_parenthesised_name(i)) {
            d->is_function = true;
            return;
        } else if (kind(i) == '(' && holds_declarator(i)) {
            outermost = outermost ? outermost : i;
            i++;
        } else if (kind(i) == SCOPE) {
            i++;
        } else {
            break;
        }
    }
    if (d->is_definition && !d->is_typed && words == 1 && kind(i) == ';') {
        d->is_function = true; // a type is defined, but no variable
        return;
    }
    d->is_function = kind(i) == '(' && looks_like_parameters(i);
    if (!d->name || is_one_of(d->name, type_words) || is_one_of(d->name, statement_words))
        fail_declaration(i);
    if (d->is_function)
        return;
    if (d->after_pointer) // an attribute here would apply to the pointer's type
        fail_declaration(d->after_pointer);
    if (outermost)
        i = tokens[outermost].match + 1;
    for (int next;; i = next) {
        next = skip_attribute(i, alignment);
        if (next == i && (kind(i) == '[' || (kind(i) == '(' && outermost)))
            next = tokens[i].match + 1;
        if (next == i)
            break;
    }
    d->end = i;
    d->has_value = kind(i) == '=' || kind(i) == '{' || kind(i) == '(';
    if (!d->has_value && kind(i) != ',' && kind(i) != ';')
        fail_declaration(i);
    if (!d->is_typed && words < 2)
        fail_declaration(i);
    d->is_const_type = d->is_typed || pointer ? d->is_const_type : d->is_const;
    d->is_const |= d->is_constexpr;
    d->is_typed = true;
}

// From the start of a function's declaration, finds the ( of its parameters and sets `name`.
static int find_parameters(int i, int *name) {
    *name = 0;
    for (int next;;) {
        if ((next = skip_attribute(i, NULL)) != i) {
            i = next;
        } else if (is(i, "template") && kind(i + 1) == '<') {
            i = skip_template_arguments(i + 1);
        } else if (is(i, "requires")) {
            i = skip_requires(i);
        } else if (kind(i) == IDENT && !is(i, "operator")) {
            *name = i++;
            if (kind(i) == '<')
                i = skip_template_arguments(i);
            else if (kind(i) == '(' && is_one_of(i - 1, " decltype typeof __typeof __typeof__ explicit "))
                i = tokens[i].match + 1;
        } else if (is(i, "operator")) {
            *name = i++;
            i += kind(i) == '(' || kind(i) == '[' ? 2 : 0;
            while (kind(i) != '(' && kind(i) != ';' && kind(i) != END && !closes(i))
                i++;
        } else if (kind(i) == '(' && holds_declarator(i)) {
            i++;
        } else if (*name && is_parenthesised_name(i)) {
            *name = i + 1; // void (name)(int x)
            return i + 3;
        } else if (kind(i) == '(' && *name) {
            return i;
        } else if (kind(i) && strchr("*&~", kind(i))) {
            i++;
        } else if (kind(i) == SCOPE || kind(i) == STRING) { // extern "C"
            i++;
        } else {
            fail_declaration(i);
        }
    }
}

// From the ( of a function's parameters, finds the { of its body; 0 if this only declares the function.
static int find_body(int open) {
    int i = tokens[open].match + 1;
    while (kind(i) != '{' && kind(i) != ':' && kind(i) != ';' && kind(i) != '=' && kind(i) != END &&
           !closes(i))
        i = is(i, "requires") ? skip_requires(i) : opens(i) ? tokens[i].match + 1 : i + 1;
    if (kind(i) == ':') // a constructor's member initialisers: a(1), b{2}
        do {
            i++;
            while (kind(i) != '(' && kind(i) != '{' && kind(i) != ';' && kind(i) != END && !closes(i))
                i = kind(i) == '<' ? skip_template_arguments(i) : i + 1;
            i = opens(i) ? tokens[i].match + 1 : i;
            i += run(i, 1) == 3 && kind(i) == '.' ? 3 : 0;
        } while (kind(i) == ',');
    return kind(i) == '{' ? i : 0;
}

// ---- memory spaces ----

typedef struct {
    char kind; // n: namespace, c: class, b: block or other braces, p: ( ) or [ ]
    int start; // first token of the current statement or declaration
    int open;  // the { of these braces
} Scope;

static Scope *scopes;
static int scope_depth;

// Appends the namespaces of the current scope, such as "a/b/". Unnamed ones are left out.
static void append_namespaces(Text *path) {
    append(path, "", 0);
    for (int i = 1; i <= scope_depth; i++) {
        const int open = scopes[i].open;
        int first = open;
        if (scopes[i].kind != 'n')
            continue;
        while ((kind(first - 1) == IDENT || kind(first - 1) == SCOPE) && !is(first - 1, "namespace"))
            first--;
        for (; first < open && (is(first - 1, "namespace") || kind(first - 1) == SCOPE); first += 2) { // a::b
            append_tokens(path, first, first + (kind(first) == IDENT));
            append(path, "/", kind(first) == IDENT);
        }
    }
}

// A __shared__ variable outside functions. Each function that uses it gets a reference or pointer of the same
// name.
typedef struct {
    int name; // its token
    Text namespaces;
    bool is_volatile;
} FileShared;

static FileShared *file_shared;
static int file_shared_count;

static bool same_word(int i, int j) {
    return kind(i) == IDENT && kind(j) == IDENT && tokens[i].length == tokens[j].length &&
           memcmp(source.data + tokens[i].start, source.data + tokens[j].start, tokens[i].length) == 0;
}

// True if the variable is in one of these namespaces.
static bool is_visible(const FileShared *one, const Text *namespaces) {
    return strncmp(namespaces->data, one->namespaces.data, one->namespaces.length) == 0;
}

static bool stands_in(int word, int i, int end) {
    for (; i < end; i++)
        if (same_word(i, word) && kind(i - 1) != '.' && kind(i - 1) != ARROW && kind(i - 1) != SCOPE)
            return true;
    return false;
}

// If token i is the [ of a lambda, finds the { of its body; otherwise 0. `parameters` becomes its ( or 0.
static int lambda_body(int i, int *parameters) {
    *parameters = 0;
    if (kind(i) != '[' || kind(i + 1) == '[' || kind(i - 1) == '[' || is(i - 1, "delete") ||
        (ends_expression(i - 1) && kind(i - 1) != '>'))
        return 0;
    i = tokens[i].match + 1;
    if (kind(i) == '<' && !(i = skip_angles(i, token_count)))
        return 0;
    for (; kind(i) != '{'; i++) {
        if (kind(i) == END || kind(i) == ';' || kind(i) == ',' || closes(i))
            return 0;
        if (is(i, "requires")) {
            i = skip_requires(i) - 1;
            continue;
        }
        if (kind(i) == '(' && !*parameters)
            *parameters = i;
        i = opens(i) ? tokens[i].match : i;
    }
    return i;
}

typedef struct {
    int lambda, name; // the [ of the lambda, and the variable that was inserted into its captures
} Capture;

static Capture *captures;

// True if the lambda's list of captures, from this [ on, names the variable: [x], [&x] or [x = 1].
static bool is_captured(int name, int open) {
    for (int i = open + 1; i < tokens[open].match; i = opens(i) ? tokens[i].match + 1 : i + 1)
        if (same_word(i, name) && strchr("[,&", kind(i - 1)) && strchr("],=", kind(i + 1)))
            return true;
    return false;
}

// A shared variable has static storage duration in CUDA, so a lambda uses it without capturing it. Here it is
// a local reference: each lambda from token `first` to `end` that uses it gets it in its list of captures,
// [&x] or [=, &x]. And decltype(x), which would be the type of the reference, becomes the type of the
// variable.
static void use_as_static(int name, int first, int end) {
    for (int i = first, parameters; i < end; i++) {
        if (is(i, "decltype") && kind(i + 1) == '(' && same_word(i + 2, name) && kind(i + 3) == ')' &&
            !tokens[i].done) {
            tokens[i].done = true;
            edit(tokens[i].start, 0, "cu_t_%.*s", (int)tokens[name].length, source.data + tokens[name].start);
            delete_tokens(i, i + 3);
        }
        const int body = lambda_body(i, &parameters);
        if (!body || !stands_in(name, body, tokens[body].match) ||
            (parameters && stands_in(name, parameters, tokens[parameters].match)) ||
            (kind(i + 1) == '&' && (kind(i + 2) == ',' || kind(i + 2) == ']')) || is_captured(name, i))
            continue;
        bool found = false, first_one = true; // a variable of an outer block may have the same name
        for (const Capture *one = captures; one != array_end(captures, capture_count); one++) {
            first_one &= one->lambda != i;
            found |= one->lambda == i && same_word(one->name, name);
        }
        if (found)
            continue;
        captures = grow(captures, capture_count + 1, sizeof *captures);
        captures[capture_count++] = (Capture){i, name};
        const int next = kind(i + 1);
        edit(end_of(next == '=' ? i + 1 : i), 0,
             next == ']' && first_one     ? "&%.*s"
             : next == '=' || next == ']' ? ", &%.*s"
                                          : "&%.*s, ",
             (int)tokens[name].length, source.data + tokens[name].start);
    }
}

// True if a class around the current function may have a member of this name. What a base class has is not
// known.
static bool may_be_member(int name) {
    for (int depth = scope_depth; depth > 0 && scopes[depth].kind != 'n'; depth--) {
        const int open = scopes[depth].open;
        if (scopes[depth].kind != 'c')
            return true;
        for (int i = scopes[depth - 1].start; i < open; i++)
            if (kind(i) == ':')
                return true;
        for (int i = open + 1; i < tokens[open].match; i = opens(i) ? tokens[i].match + 1 : i + 1)
            if (same_word(i, name))
                return true;
    }
    return false;
}

// Translates x in ns::x or ::x, if it is a variable of `file_shared`, to a call of the function that returns
// it. The function's own name finds no variable of an outer scope that the function hides.
static void translate_qualified(int i) {
    int first = i - 1; // the first :: or name
    while (kind(first) == SCOPE && kind(first - 1) == IDENT && !is_one_of(first - 1, statement_words))
        first -= kind(first - 2) == SCOPE ? 2 : 1;
    if (is(first - 1, "using") || kind(first - 1) == '>' || kind(first - 1) == ')')
        return;
    Text path = {0}, here = {0};
    append(&path, "", 0);
    append_namespaces(&here);
    for (int t = first; t < i - 1; t++)
        if (kind(t) == IDENT) {
            append_tokens(&path, t, t + 1);
            append(&path, "/", 1);
        }
    for (const FileShared *one = file_shared; one != array_end(file_shared, file_shared_count); one++) {
        const size_t n = one->namespaces.length;
        const bool ends =
            n >= path.length && memcmp(one->namespaces.data + n - path.length, path.data, path.length) == 0;
        if (!same_word(one->name, i) || !ends ||
            (kind(first) == SCOPE ? n > path.length
                                  : strncmp(here.data, one->namespaces.data, n - path.length) != 0))
            continue;
        if (one->is_volatile)
            insert_before(first, "::cuda_cpu::in_step(");
        insert_before(i, "cu_s_");
        edit(end_of(i), 0, one->is_volatile ? "())" : "()");
        break;
    }
    free(path.data);
    free(here.data);
}

// For a function of namespace or class scope: inserts after its { the declarations of these variables that it
// needs, and before its } what closes them.
static void declare_file_shared(int parameters, int body) {
    Text text = {0}, here = {0};
    const int end = tokens[body].match;
    append_namespaces(&here);
    for (const FileShared *one = file_shared; one != array_end(file_shared, file_shared_count); one++) {
        bool hidden = false; // hidden by a variable of the same name in an inner namespace
        for (const FileShared *other = file_shared; other != array_end(file_shared, file_shared_count);
             other++)
            hidden |= same_word(other->name, one->name) && is_visible(other, &here) &&
                      other->namespaces.length > one->namespaces.length;
        if (hidden || !is_visible(one, &here) || !stands_in(one->name, body, end) ||
            stands_in(one->name, parameters, tokens[parameters].match) || may_be_member(one->name))
            continue;
        const int length = (int)tokens[one->name].length;
        const char *x = source.data + tokens[one->name].start;
        append_format(&text,
                      one->is_volatile ? " auto &&%.*s = ::cuda_cpu::in_step(cu_s_%.*s());"
                                       : " auto &%.*s = cu_s_%.*s();",
                      length, x, length, x);
        use_as_static(one->name, body, end);
    }
    if (text.length > 0) { // opens a block, so that the function can declare the same name again
        edit(end_of(body), 0, "%s {", text.data);
        edit(tokens[end].start, 0, "} ");
    }
    free(here.data);
    free(text.data);
}

// If `open` is the { of a switch, and a label comes after token `i` in it, returns the token `switch`. A jump
// to that label would skip the initialisation of a reference. Otherwise returns 0.
static int switch_of(int open, int i) {
    const int word = kind(open - 1) == ')' ? tokens[open - 1].match - 1 : 0;
    if (!is(word, "switch"))
        return 0;
    while (i < tokens[open].match && !is_one_of(i, " case default "))
        i++;
    return i < tokens[open].match ? word : 0;
}

// __shared__ T x[4], *y;  ->  typedef T cu_t_x[4], *cu_t_y; cu_t_x &x = …; cu_t_y &y = …;
//
// A typedef accepts every form of declarator unchanged, also with dependent types.
static void translate_shared(int word, const Scope *scope) {
    static const char misplaced[] =
        "__shared__ is only for variables declared in a kernel or device function";
    Declaration d = {0};
    Text alignment = {0}, name = {0}, references = {0};
    append(&alignment, "", 0);
    append(&references, "", 0);
    int semicolon = scope->start, i = scope->start;
    while (kind(semicolon) != ';' && kind(semicolon) != END && !closes(semicolon))
        semicolon = opens(semicolon) ? tokens[semicolon].match + 1 : semicolon + 1;
    if (scope->kind == 'p' || scope->kind == 'c')
        fail(word, misplaced);
    bool is_volatile = false;
    for (int t = i; t < semicolon; t++)
        is_volatile |= is(t, "volatile");
    const int hoist = scope->kind == 'b' ? switch_of(scope->open, semicolon) : 0;
    // In front of a switch: switch (a) becomes if (T &x = …; false) { } else switch (a).
    const char *const begin = hoist ? "if (" : " ", *const close = hoist ? "; false) { } else " : ";";
    Text names = {0};
    append(&names, " ", 1);
    do {
        parse_declarator(i, &d, &alignment);
        if (d.is_typedef || d.is_template || d.is_linkage || d.is_constant || d.is_managed)
            fail(word, misplaced);
        if (d.is_function || d.has_value)
            fail(word, "a __shared__ variable cannot have an initial value");
        if (!d.is_shared || kind(d.name - 1) == SCOPE)
            fail_declaration(d.name);
        name.length = 0;
        append(&name, source.data + tokens[d.name].start, tokens[d.name].length);
        const char *x = name.data;
        if (!hoist)
            insert_before(d.name, "cu_t_");
        if (d.extern_at && (kind(d.name + 1) != '[' || kind(d.name + 2) != ']'))
            fail(word, "an extern __shared__ variable must be an array without a size, %s[]", x);
        append_format(&names, "%s ", x);
        if (alignment.length > 0 && !d.extern_at)
            append_format(&references, " struct cu_a_%s {%s cu_t_%s v; };", x, alignment.data, x);
        if (scope->kind == 'n')
            append_format(&references, " [[maybe_unused]] static cu_t_%s &cu_s_%s() { return ", x, x);
        else
            append_format(&references, "%scu_t_%s &%s%s = ", begin, x, is_volatile ? "cu_v_" : "", x);
        append_format(&references,
                      d.extern_at ? "::cuda_cpu::dynamic_shared<cu_t_%s>(\"%s\""
                                  : "::cuda_cpu::shared<cu_t_%s, cu_owner>([] {}, \"%s\"",
                      x, x);
        if (alignment.length > 0 && !d.extern_at)
            append_format(&references, ", alignof(cu_a_%s)", x);
        append_format(&references, scope->kind == 'n' ? "); }" : ")%s", close);
        if (is_volatile && scope->kind != 'n')
            append_format(&references, "%sauto &&%s = ::cuda_cpu::in_step(cu_v_%s)%s", begin, x, x, close);
        if (scope->kind == 'n' && d.extern_at)
            append_format(&references,
                          " [[maybe_unused]] static const ::cuda_cpu::dynamic_array<cu_t_%s> %s{};", x, x);
        if (scope->kind == 'b')
            use_as_static(d.name, semicolon, tokens[scope->open].match);
        if (scope->kind == 'n') {
            file_shared = grow(file_shared, (size_t)file_shared_count + 1, sizeof *file_shared);
            file_shared[file_shared_count] = (FileShared){.name = d.name, .is_volatile = is_volatile};
            append_namespaces(&file_shared[file_shared_count++].namespaces);
        }
        i = d.end + 1;
    } while (kind(d.end) == ',');
    if (hoist) {
        if (alignment.length > 0)
            fail(word, "a __shared__ variable with an alignment must stand before the switch");
        edit(tokens[hoist].start, 0, "if (typedef");
        for (int t = scope->start; t < semicolon; t++)
            if (!is_one_of(t, space_words) && t != d.extern_at && t != d.static_at) {
                edit(tokens[hoist].start, 0, is_one_of(t, names.data) ? " cu_t_" : " ");
                edit(tokens[hoist].start, 0, "%.*s", (int)tokens[t].length, source.data + tokens[t].start);
            }
        edit(tokens[hoist].start, 0, "%s%s", close, references.data);
        delete_tokens(scope->start, semicolon - 1);
    } else {
        insert_before(d.first_word, "typedef");
        edit(end_of(semicolon), 0, "%s", references.data);
        if (d.extern_at)
            delete_tokens(d.extern_at, d.extern_at);
        if (d.static_at)
            delete_tokens(d.static_at, d.static_at);
    }
    free(names.data);
    free(alignment.data);
    free(name.data);
    free(references.data);
}

// Parses the parameter that begins at token i. Returns its name; for a parameter without a name returns 0,
// and sets `place` to where a name can be inserted.
static int parameter_name(int i, int close, int *place, bool *is_pack, bool *may_be_unused) {
    static const char qualifiers[] = " const volatile __restrict __restrict__ restrict register __const ";
    bool typed = false;
    *is_pack = *may_be_unused = false;
    for (int next; i < close;) {
        if ((next = skip_attribute(i, NULL)) != i) {
            for (; i < next; i++)
                *may_be_unused |= is_one_of(i, " maybe_unused unused __unused__ ");
        } else if (is_one_of(i, qualifiers)) {
            i++;
        } else if (run(i, 1) == 3 && kind(i) == '.') {
            *is_pack = true;
            i += 3;
        } else if (is_one_of(i, type_words)) {
            typed = true;
            i++;
            if (kind(i) == '(' && is_one_of(i - 1, " decltype typeof __typeof __typeof__ "))
                i = tokens[i].match + 1;
        } else if ((kind(i) == IDENT || kind(i) == SCOPE) && !typed) { // ns::A<int>::T
            typed = true;
            if (is_one_of(i, " struct class union enum typename "))
                i++;
            for (;;) {
                i += kind(i) == SCOPE;
                i += is(i, "template");
                i += kind(i) == IDENT;
                if (kind(i) == '<')
                    i = skip_template_arguments(i);
                if (kind(i) != SCOPE)
                    break;
            }
        } else if (kind(i) == IDENT) {
            const int next_word = kind(i + 1) == '<' ? skip_angles(i + 1, close) : i + 1;
            if (kind(next_word) != SCOPE)
                return i;
            i = next_word; // int A<B>::*name
        } else if (kind(i) == SCOPE || kind(i) == '*' || kind(i) == '&' || kind(i) == '(') {
            i++;
        } else {
            break;
        }
    }
    *place = i;
    return 0;
}

static int next_comma(int i, int close) {
    while (i < close && kind(i) != ',') {
        const int angles = kind(i) == '<' && kind(i - 1) == IDENT ? skip_angles(i, close) : 0;
        i = angles ? angles : opens(i) ? tokens[i].match + 1 : i + 1;
    }
    return i;
}

// ---- volatile ----

// True if tokens `from` to `name` declare a pointer to a volatile type: volatile T *x, volatile T x[].
static bool points_to_volatile(int from, int name) {
    int stars = 0;
    bool is_volatile = false;
    for (int i = from; i < name; i++) {
        is_volatile |= is(i, "volatile") && stars == 0;
        stars += kind(i) == '*';
        if (kind(i) == '(' || kind(i) == '&')
            return false;
    }
    return is_volatile && (stars == 1 ? kind(name + 1) != '[' : stars == 0 && kind(name + 1) == '[');
}

// void f(volatile T *x) { … }
//     ->  void f(volatile T *x) { auto cu_v_x = in_step_pointer(x); { auto x = cu_v_x; … }}
static void step_parameters(int open, int body) {
    const int close = tokens[open].match;
    Text start = {0}, inner = {0};
    append(&inner, "", 0);
    for (int i = open + 1, next; i < close; i = next + 1) {
        bool is_pack, may_be_unused;
        int place = close;
        const int name = parameter_name(i, close, &place, &is_pack, &may_be_unused);
        next = next_comma(name ? name : place, close);
        if (!name || is_pack || !points_to_volatile(i, name))
            continue;
        const int n = (int)tokens[name].length;
        const char *x = source.data + tokens[name].start;
        append_format(&start, " [[maybe_unused]] auto cu_v_%.*s = ::cuda_cpu::in_step_pointer(%.*s);", n, x,
                      n, x);
        append_format(&inner, " [[maybe_unused]] auto %.*s = cu_v_%.*s;", n, x, n, x);
    }
    if (start.length > 0) {
        append_format(&start, " {%s", inner.data);
        edit(end_of(body), 0, "%s", start.data);
        edit(tokens[tokens[body].match].start, 0, "} ");
    }
    free(start.data);
    free(inner.data);
}

// volatile T *x = y;  ->  volatile T *cu_v_x = y; auto x = ::cuda_cpu::in_step_pointer(cu_v_x);
static void translate_volatile(int word, const Scope *scope) {
    int semicolon = scope->start;
    for (int i = scope->start; i < word; i++)
        if ((kind(i) != IDENT && kind(i) != SCOPE) || is_one_of(i, statement_words) ||
            is_one_of(i, " typedef using asm __asm__ __asm extern "))
            return;
    while (kind(semicolon) != ';' && kind(semicolon) != END && !closes(semicolon)) {
        if (is(semicolon, "__shared__") || is(semicolon, "volatile") > (semicolon >= word))
            return; // a __shared__ declaration, or not the first `volatile` of this one
        semicolon = opens(semicolon) ? tokens[semicolon].match + 1 : semicolon + 1;
    }
    if (kind(semicolon) != ';')
        return;
    Declaration d = {0};
    int i = scope->start;
    bool is_pointer_to_volatile = false;
    for (int t = word; t < semicolon && kind(t) != '=' && kind(t) != '(' && kind(t) != '{'; t++)
        is_pointer_to_volatile |= kind(t) == '*';
    if (!is_pointer_to_volatile)
        return;
    do {
        const int first = i == scope->start ? word : i;
        parse_declarator(i, &d, NULL);
        if (d.is_function || d.is_definition)
            return;
        int stars = 0;
        for (int t = first; t < d.name; t++)
            stars += kind(t) == '*' ? 1 : kind(t) == '(' || kind(t) == '&' ? 2 : 0;
        if (stars == 1 && kind(d.name + 1) != '[') {
            const int n = (int)tokens[d.name].length;
            const char *x = source.data + tokens[d.name].start;
            insert_before(d.name, "cu_v_");
            for (int t = d.end; t < semicolon; t++) // initial values of later variables may use this one
                if (kind(t) == IDENT && tokens[t].length == (uint32_t)n && kind(t - 1) != '.' &&
                    kind(t - 1) != ARROW && kind(t - 1) != SCOPE &&
                    memcmp(source.data + tokens[t].start, x, (size_t)n) == 0)
                    insert_before(t, "cu_v_");
            if (d.has_value)
                edit(end_of(semicolon), 0,
                     " [[maybe_unused]] auto %.*s = ::cuda_cpu::in_step_pointer(cu_v_%.*s);", n, x, n, x);
            else
                edit(end_of(semicolon), 0, " decltype(::cuda_cpu::in_step_pointer(cu_v_%.*s)) %.*s;", n, x, n,
                     x);
        }
        i = d.end;
        while (kind(i) != ',' && kind(i) != ';') // skips the initial value
            i = kind(i) == '<' && skip_angles(i, semicolon) ? skip_angles(i, semicolon)
                : opens(i)                                  ? tokens[i].match + 1
                                                            : i + 1;
    } while (kind(i++) == ',');
}

// (volatile T *)x  ->  (::cuda_cpu::in_step_cast<volatile T *>)x
static void translate_volatile_cast(int word, const Scope *scope) {
    const int open = scope->start - 1, close = tokens[open].match;
    int stars = 0, i = open + 1;
    for (; i < close; i++) {
        stars += kind(i) == '*';
        if (kind(i) == '<')
            i = skip_template_arguments(i) - 1;
        else if (kind(i) != IDENT && kind(i) != SCOPE && kind(i) != '*')
            return;
    }
    const int next = kind(close + 1);
    if (kind(open) != '(' || ends_expression(open - 1) || stars != 1 || kind(close - 1) != '*' ||
        (next != IDENT && next != SCOPE && next != '(' && next != '&' && next != '*') || word > close)
        return;
    insert_before(open + 1, "::cuda_cpu::in_step_cast<");
    insert_before(close, ">");
}

// With -w, names that only device code of this file can use get internal linkage. nvcc does the same without
// -rdc=true: other files may have different functions and variables with the same names. A name that is
// declared `extern` keeps external linkage.
static bool whole_program;
static Text extern_names = {0}; // names declared extern, each with a blank before and after it

static void make_internal(int name, const Declaration *d, const Scope *scope) {
    if (!whole_program || scope->kind != 'n' || kind(name - 1) == SCOPE || d->static_at || d->is_inline ||
        d->is_constexpr || d->is_template || d->is_linkage || is(name, "operator"))
        return;
    if (d->extern_at) {
        append(&extern_names, " ", 1);
        append_tokens(&extern_names, name, name + 1);
        append(&extern_names, " ", 1);
    } else if (!extern_names.data || !is_one_of(name, extern_names.data)) {
        insert_before(d->after_pointer ? scope->start : d->first_word, "static __attribute__((unused)) ");
    }
}

// Variables are put into linker sections, in which the runtime finds them and swaps their values
// when the device changes. Variables that are const need a separate section, because a section is
// either writable or read-only.
static void translate_device(int word, const Scope *scope) {
    Declaration d = {0};
    if (kind(word - 1) == ']' && ends_expression(word - 1) && !strchr(";,=", kind(word + 1))) {
        delete_tokens(word, word); // [] __device__ (int x) { … }
        return;
    }
    if (scope->kind == 'p')
        fail(word, "%.*s is not allowed here", (int)tokens[word].length, source.data + tokens[word].start);
    parse_declarator(scope->start, &d, NULL);
    if (d.is_shared) { // __device__ __shared__ means the same as __shared__
        translate_shared(word, scope);
        return;
    }
    if (!tokens[word].done) // the word comes after the declarator
        delete_tokens(word, word);
    if (d.is_function && (d.is_constant || d.is_managed))
        fail(word, "only a variable can be __constant__ or __managed__");
    if (d.is_function && !d.is_typedef && !d.is_definition) {
        int name;
        const int parameters = find_parameters(scope->start, &name), body = find_body(parameters);
        bool for_host = false;
        for (int i = scope->start; i < parameters; i++)
            for_host |= tokens[i].host;
        if (!for_host && d.first_word)
            make_internal(name, &d, scope);
        if (body && !for_host)
            device_end = tokens[body].match;
        if (body)
            asm_end = tokens[body].match;
        if (body && scope->kind != 'b' && kind(name - 1) != SCOPE)
            declare_file_shared(parameters, body);
        if (body)
            step_parameters(parameters, body);
    }
    if (d.is_function || d.is_typedef)
        return;
    if (!d.first_word)
        fail_declaration(word);
    if (scope->kind == 'c' && !d.static_at)
        fail(word, "a member variable in device memory must be static");
    if (scope->kind == 'b' && !d.static_at && !d.extern_at)
        fail(word, "a local variable in device memory must be static");
    make_internal(d.name, &d, scope);
    if (d.extern_at && !d.has_value)
        return; // this is only a declaration
    // For these variables the compiler ignores the section (templates), or reports a conflict
    // between sections (inline).
    if (d.is_inline || d.is_template || (d.is_constexpr && scope->kind == 'c')) {
        if (!d.is_const)
            fail(word, "an inline or template variable cannot have a value for each device");
        return;
    }
    const char *const space = d.is_managed ? "managed" : d.is_constant ? "constant" : "device";
    static const char attribute[] = " __attribute__((section(\"cuda_%s%s\")))";
    int semicolon = d.end, *ends = NULL, count = 0, constants = 0;
    while (kind(semicolon) != ';' && kind(semicolon) != END && !closes(semicolon))
        semicolon = opens(semicolon) ? tokens[semicolon].match + 1 : semicolon + 1;
    for (;;) {
        ends = grow(ends, (size_t)count + 1, sizeof *ends);
        ends[count++] = d.is_const ? d.end : -d.end;
        constants += d.is_const;
        const int comma = next_comma(d.end, semicolon);
        if (kind(comma) != ',')
            break;
        parse_declarator(comma + 1, &d, NULL);
        if (d.is_function)
            break;
    }
    if (constants == 0 || constants == count)
        edit(tokens[d.first_word].start, 0, attribute + 1, space, constants ? "_ro" : "");
    else // const int a = 1, *b; a is const and b is not, so each variable gets an attribute of its own
        for (int i = 0; i < count; i++)
            edit(end_of(abs(ends[i]) - 1), 0, attribute, space, ends[i] > 0 ? "_ro" : "");
    free(ends);
}

// ---- kernels ----

// Deletes attributes such as __launch_bounds__(A, B), and appends A to `bounds`.
static void take_bounds(int first, int end, Text *bounds) {
    for (int i = first; i < end; i++) {
        if (is_one_of(i, " __cluster_dims__ __block_size__ "))
            fail(i, "%.*s: clusters of blocks are not supported", (int)tokens[i].length,
                 source.data + tokens[i].start);
        if (!is_one_of(i, " __launch_bounds__ __maxnreg__ ") || kind(i + 1) != '(')
            continue;
        const int close = tokens[i + 1].match, comma = next_comma(i + 2, close);
        if (is(i, "__launch_bounds__") && bounds->length == 0)
            append_tokens(bounds, i + 2, comma);
        delete_tokens(i, close);
        i = close;
    }
}

// Translates a kernel. The body becomes a lambda with parameters of the same names, which launch_body() calls
// for every thread. Everything else stays, so that declarations, specialisations, overloads and the kernel's
// address are those of a normal function.
static void translate_kernel(int word, const Scope *scope) {
    int name;
    delete_tokens(word, word);
    tokens[word].done = true;
    if (scope->kind == 'p')
        fail(word, "__global__ is not allowed here");
    const int open = find_parameters(scope->start, &name), close = tokens[open].match, body = find_body(open);
    if (is(name, "operator"))
        fail(name, "an operator cannot be a kernel");
    Text bounds = {0}, types = {0}, parameters = {0}, values = {0};
    append(&bounds, "", 0);
    append(&types, "", 0);
    append(&parameters, "", 0);
    append(&values, "", 0);
    take_bounds(scope->start, body ? body : close + 1, &bounds);
    if (!body)
        return;
    const bool none = open + 1 == close || (is(open + 1, "void") && open + 2 == close);
    int i = open + 1;
    for (int count = 1; !none && i < close; i++, count++) {
        bool is_pack, may_be_unused;
        int place = close;
        const int found = parameter_name(i, close, &place, &is_pack, &may_be_unused);
        Text parameter = {0};
        if (found) {
            append_tokens(&parameter, found, found + 1);
        } else if (kind(place) == ',' || kind(place) == '=' || kind(place) == '[' || kind(place) == ')') {
            if (is_pack && kind(place - 1) == '.' && kind(place - 4) == ',' && place == close)
                fail(place - 1, "a kernel cannot have a variable number of arguments");
            append_format(&parameter, "cu_p%d", count);
            edit(tokens[place].start, 0, " %s", parameter.data);
        } else {
            fail_declaration(place);
        }
        const char *const x = parameter.data;
        const char *const comma = count > 1 ? ", " : "", *const dots = is_pack ? "..." : "";
        append_format(&types, ", decltype(%s)%s", x, dots);
        append_format(&parameters, "%s%s::cuda_cpu::Parameter<decltype(%s)> %s%s", comma,
                      may_be_unused ? "[[maybe_unused]] " : "", x, dots, found ? x : "");
        append_format(&values, ", %s%s", x, dots);
        free(parameter.data);
        i = next_comma(found ? found : place, close); // skips the default argument
    }
    edit(end_of(body), 0, " struct cu_owner; ::cuda_cpu::launch_body<cu_owner%s>(\"%.*s\", %s, [](%s) {",
         types.data, (int)tokens[name].length, source.data + tokens[name].start,
         bounds.length ? bounds.data : "0", parameters.data);
    if (scope->kind != 'b' && kind(name - 1) != SCOPE)
        declare_file_shared(open, body);
    step_parameters(open, body);
    edit(tokens[tokens[body].match].start, 0, "}%s); ", values.data);
    for (int i = body; i < tokens[body].match; i++)
        if (is_one_of(i, " __func__ __FUNCTION__ ")) // in the lambda it would be the name of its operator()
            edit(tokens[i].start, tokens[i].length, "\"%.*s\"", (int)tokens[name].length,
                 source.data + tokens[name].start);
    device_end = asm_end = tokens[body].match;
    free(bounds.data);
    free(types.data);
    free(parameters.data);
    free(values.data);
}

// ---- inline PTX ----
//
// The template string of an asm statement in device code contains PTX instructions. Those that programs use
// most are translated to C++ statements; any other instruction or register is an error that names it.

// A C++ operand of the asm statement, such as "=r"(x): %0, %1 … in the template string.
typedef struct {
    int first, end; // first token of the expression, and the token after it
    bool output;    // an instruction may write to it
} Operand;

typedef struct {
    int token; // the word asm
    Operand operands[64];
    int count;      // of operands
    const char *at; // the next character of the template string
    Text out;       // the C++ statements
    bool has_carry; // an instruction of this statement has written the carry flag (add.cc, sub.cc)
    struct {
        char name[32];
        int depth;   // number of PTX braces { } around the declaration
    } registers[64]; // the PTX registers that the template declares: .reg .u32 x;
    int register_count, depth;
} Ptx;

// The special registers, and the C++ expressions that have their values.
static const struct {
    const char *name, *value;
} ptx_registers[] = {
    {"laneid", "::cuda_cpu::lane()"},
    {"warpid", "(::cuda_cpu::thread_rank() / 32)"},
    {"nwarpid", "::cuda_cpu::ptx::warps()"},
    {"smid", "0u"},
    {"nsmid", "1u"},
    {"clock", "(unsigned)clock64()"},
    {"clock64", "clock64()"},
    {"globaltimer", "::cuda_cpu::ptx::globaltimer()"},
    {"globaltimer_lo", "(unsigned)::cuda_cpu::ptx::globaltimer()"},
    {"lanemask_eq", "::cuda_cpu::ptx::lanemask_eq()"},
    {"lanemask_lt", "::cuda_cpu::ptx::lanemask_lt()"},
    {"lanemask_le", "(::cuda_cpu::ptx::lanemask_lt() | ::cuda_cpu::ptx::lanemask_eq())"},
    {"lanemask_ge", "~::cuda_cpu::ptx::lanemask_lt()"},
    {"lanemask_gt", "~(::cuda_cpu::ptx::lanemask_lt() | ::cuda_cpu::ptx::lanemask_eq())"},
    {"tid.x", "threadIdx.x"},
    {"tid.y", "threadIdx.y"},
    {"tid.z", "threadIdx.z"},
    {"ntid.x", "blockDim.x"},
    {"ntid.y", "blockDim.y"},
    {"ntid.z", "blockDim.z"},
    {"ctaid.x", "blockIdx.x"},
    {"ctaid.y", "blockIdx.y"},
    {"ctaid.z", "blockIdx.z"},
    {"nctaid.x", "gridDim.x"},
    {"nctaid.y", "gridDim.y"},
    {"nctaid.z", "gridDim.z"},
    {"WARP_SZ", "32"},
};

// The PTX instructions that compute one result from source operands.
//
//   types     the type suffixes that are supported: u for .u8 to .u64, s for .s8 to .s64, b for .b8 to .b64,
//             f for .f32, d for .f64
//   operands  a letter for each source operand, which says to which C++ type it is converted: t to the type
//             of the suffix, u to unsigned, w to the integer type of twice that width, p to bool (predicate)
//   value     the C++ expression of the result, in which T stands for the C++ type of the suffix and 1 to 4
//             stand for the source operands
static const struct {
    const char *name, *types, *operands, *value;
} ptx_instructions[] = {
    {"mov", "usbfd", "t", "1"},
    {"cvta", "u", "t", "1"},
    {"cvta.to", "u", "t", "1"},
    {"add", "usfd", "tt", "::cuda_cpu::ptx::add<T>(1, 2)"},
    {"sub", "usfd", "tt", "::cuda_cpu::ptx::sub<T>(1, 2)"},
    {"mul", "fd", "tt", "1 * 2"},
    {"mul.lo", "us", "tt", "::cuda_cpu::ptx::mul_lo<T>(1, 2)"},
    {"mul.hi", "us", "tt", "::cuda_cpu::ptx::mul_hi<T>(1, 2)"},
    {"mul.wide", "us", "tt", "::cuda_cpu::ptx::mul_wide<T>(1, 2)"},
    {"mad.lo", "us", "ttt", "::cuda_cpu::ptx::add<T>(::cuda_cpu::ptx::mul_lo<T>(1, 2), 3)"},
    {"mad.hi", "us", "ttt", "::cuda_cpu::ptx::add<T>(::cuda_cpu::ptx::mul_hi<T>(1, 2), 3)"},
    {"mad.wide", "us", "ttw", "::cuda_cpu::ptx::add(::cuda_cpu::ptx::mul_wide<T>(1, 2), 3)"},
    {"add.cc", "us", "tt", "::cuda_cpu::ptx::add_carry<T>(cu_carry, false, 1, 2)"},
    {"addc.cc", "us", "tt", "::cuda_cpu::ptx::add_carry<T>(cu_carry, true, 1, 2)"},
    {"addc", "us", "tt", "::cuda_cpu::ptx::add_carry<T>(cu_carry, true, 1, 2)"},
    {"sub.cc", "us", "tt", "::cuda_cpu::ptx::sub_carry<T>(cu_carry, false, 1, 2)"},
    {"subc.cc", "us", "tt", "::cuda_cpu::ptx::sub_carry<T>(cu_carry, true, 1, 2)"},
    {"subc", "us", "tt", "::cuda_cpu::ptx::sub_carry<T>(cu_carry, true, 1, 2)"},
    {"fma.rn", "fd", "ttt", "::std::fma(1, 2, 3)"},
    {"min", "usfd", "tt", "::cuda_cpu::ptx::minimum<T>(1, 2)"},
    {"max", "usfd", "tt", "::cuda_cpu::ptx::maximum<T>(1, 2)"},
    {"neg", "sfd", "t", "-1"},
    {"abs", "sfd", "t", "::std::abs(1)"},
    {"and", "b", "tt", "1 & 2"},
    {"or", "b", "tt", "1 | 2"},
    {"xor", "b", "tt", "1 ^ 2"},
    {"not", "b", "t", "~1"},
    {"shl", "b", "tu", "::cuda_cpu::ptx::shift_left<T>(1, 2)"},
    {"shr", "usb", "tu", "::cuda_cpu::ptx::shift_right<T>(1, 2)"},
    {"bfe", "us", "tuu", "::cuda_cpu::ptx::bfe<T>(1, 2, 3)"},
    {"bfi", "b", "ttuu", "::cuda_cpu::ptx::bfi<T>(1, 2, 3, 4)"},
    {"lop3", "b", "tttu", "::cuda_cpu::ptx::lop3(1, 2, 3, 4)"},
    {"prmt", "b", "ttt", "::cuda_cpu::ptx::prmt(1, 2, 3)"},
    {"shf.l.wrap", "b", "ttu", "__funnelshift_l(1, 2, 3)"},
    {"shf.r.wrap", "b", "ttu", "__funnelshift_r(1, 2, 3)"},
    {"shf.l.clamp", "b", "ttu", "__funnelshift_lc(1, 2, 3)"},
    {"shf.r.clamp", "b", "ttu", "__funnelshift_rc(1, 2, 3)"},
    {"vabsdiff4.add", "u", "ttt", "__vsadu4(1, 2) + 3"},
    {"dp4a.s32", "s", "ttt", "__dp4a(1, 2, 3)"},
    {"dp4a.u32", "u", "ttt", "__dp4a(1, 2, 3)"},
    {"popc", "b", "t", "__popcll(1)"},
    {"selp", "usbfd", "ttp", "3 ? 1 : 2"},
    {"vote.sync.ballot", "b", "pu", "__ballot_sync(2, 1)"},
    {"activemask", "b", "", "__activemask()"},
    {"rcp.approx", "f", "t", "1.0f / 1"},
    {"sqrt.approx", "f", "t", "::std::sqrt(1)"},
    {"rsqrt.approx", "f", "t", "1.0f / ::std::sqrt(1)"},
    {"ex2.approx", "f", "t", "::std::exp2(1)"},
    {"lg2.approx", "f", "t", "::std::log2(1)"},
    {"sin.approx", "f", "t", "::std::sin(1)"},
    {"cos.approx", "f", "t", "::std::cos(1)"},
    {"tanh.approx", "f", "t", "::std::tanh(1)"},
};

_Noreturn static void fail_ptx(const Ptx *p, const char *instruction) {
    const int length = (int)strcspn(instruction, ";\n");
    fail(p->token, "inline PTX is not supported here: '%.*s'", length, instruction);
}

static void skip_blanks(Ptx *p) {
    p->at += strspn(p->at, " \t\n\r");
}

// Returns the length of the register name at s, or 0 if there is none. A % or %% before the name is skipped:
// s is set to the first character of the name.
static size_t ptx_name(const char **s) {
    if (**s == '%')
        *s += (*s)[1] == '%' ? 2 : 1;
    const size_t length = strspn(*s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$");
    return length > 0 && !isdigit((unsigned char)**s) ? length : 0;
}

// Appends the C++ expression for a PTX operand: an operand of the asm statement (%0), a register that the
// template declares (x), a special register (%%laneid) or a constant (12, 0x96). Returns the operand, if
// instructions can write to it; null for a special register or a constant.
static const Operand *ptx_operand(Ptx *p, Text *out, const char *instruction) {
    skip_blanks(p);
    const char *s = p->at;
    size_t length;
    if (s[0] == '%' && isdigit((unsigned char)s[1])) {
        char *end;
        const long n = strtol(s + 1, &end, 10);
        if (n >= p->count)
            fail_ptx(p, instruction);
        p->at = end;
        append_format(out, "cu_p%ld", n);
        return &p->operands[n];
    }
    const char *word = s;
    length = ptx_name(&word);
    for (int i = p->register_count - 1; i >= 0 && length > 0; i--)
        if (strlen(p->registers[i].name) == length && memcmp(p->registers[i].name, word, length) == 0) {
            static const Operand declared = {0, 0, true};
            p->at = word + length;
            append_format(out, "cu_r_%s", p->registers[i].name);
            return &declared;
        }
    if (s[0] == '%') { // a special register: %%laneid, for which nvcc also accepts %laneid
        s += s[1] == '%' ? 2 : 1;
        length = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_.");
        for (size_t i = 0; i < sizeof ptx_registers / sizeof *ptx_registers; i++)
            if (strncmp(ptx_registers[i].name, s, length) == 0 && ptx_registers[i].name[length] == '\0') {
                p->at = s + length;
                append_format(out, "%s", ptx_registers[i].value);
                return NULL;
            }
        fail_ptx(p, instruction);
    }
    length = strspn(s, "-0123456789abcdefxABCDEFX");
    if (length == 0 || strchr("abcdefxABCDEFX", *s))
        fail_ptx(p, instruction);
    p->at = s + length;
    append(out, s, length);
    return NULL;
}

static bool ptx_accept(Ptx *p, char c) {
    skip_blanks(p);
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

static void ptx_expect(Ptx *p, char c, const char *instruction) {
    if (!ptx_accept(p, c))
        fail_ptx(p, instruction);
}

static const char *ptx_type(const char *name) {
    static const char *const types[][2] = {
        {"u8", "unsigned char"}, {"s8", "signed char"},
        {"b8", "unsigned char"}, {"u16", "unsigned short"},
        {"s16", "short"},        {"b16", "unsigned short"},
        {"u32", "unsigned"},     {"s32", "int"},
        {"b32", "unsigned"},     {"u64", "unsigned long long"},
        {"s64", "long long"},    {"b64", "unsigned long long"},
        {"f32", "float"},        {"f64", "double"},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i][0], name) == 0)
            return types[i][1];
    return NULL;
}

// Translates the operands of ld and st: one operand or a vector {%0, %1}, and an address [%2 + 4]. `strong`:
// the load is volatile, relaxed or acquire. A loop may wait for such a load to return another value, so
// ptx::poll() lets other threads run.
static void ptx_memory(Ptx *p, bool load, bool strong, const char *type, const char *instruction) {
    Text values[4] = {{0}}, address = {0};
    int count = 0;
    for (int side = 0; side < 2; side++) {
        if ((side == 0) == load) { // the values
            const bool list = ptx_accept(p, '{');
            do {
                if (count == 4 || (!ptx_operand(p, &values[count++], instruction) && load))
                    fail_ptx(p, instruction);
            } while (list && ptx_accept(p, ','));
            if (list)
                ptx_expect(p, '}', instruction);
        } else {
            ptx_expect(p, '[', instruction);
            append(&address, "(unsigned long long)", strlen("(unsigned long long)"));
            ptx_operand(p, &address, instruction);
            if (ptx_accept(p, '+')) {
                append(&address, " + ", 3);
                ptx_operand(p, &address, instruction);
            }
            ptx_expect(p, ']', instruction);
        }
        if (side == 0)
            ptx_expect(p, ',', instruction);
    }
    for (int i = 0; i < count; i++) {
        append_format(&p->out, load ? "::cuda_cpu::ptx::set(" : "::cuda_cpu::ptx::store<%s>(", type);
        append(&p->out, load ? values[i].data : address.data, load ? values[i].length : address.length);
        append_format(&p->out,
                      !load    ? ", (%s)"
                      : strong ? ", ::cuda_cpu::ptx::poll<%s>("
                               : ", ::cuda_cpu::ptx::load<%s>(",
                      type);
        append(&p->out, load ? address.data : values[i].data, load ? address.length : values[i].length);
        append_format(&p->out, load ? ", %d)); " : ", %d); ", i);
        free(values[i].data);
    }
    free(address.data);
}

// .reg .u32 x, y;  ->  unsigned cu_r_x{}, cu_r_y{};
static void ptx_declaration(Ptx *p) {
    const char *const begin = p->at;
    char type[16];
    p->at += strlen(".reg");
    ptx_expect(p, '.', begin);
    const size_t length = strspn(p->at, "abcdefghijklmnopqrstuvwxyz0123456789");
    snprintf(type, sizeof type, "%.*s", (int)length, p->at);
    p->at += length;
    const char *const word = strcmp(type, "pred") == 0 ? "bool" : ptx_type(type);
    do {
        skip_blanks(p);
        const char *name = p->at;
        const size_t n = ptx_name(&name);
        if (!word || n == 0 || n >= sizeof p->registers->name || p->register_count == 64 || name[n] == '<')
            fail_ptx(p, begin);
        snprintf(p->registers[p->register_count].name, n + 1, "%s", name);
        p->registers[p->register_count++].depth = p->depth;
        p->at = name + n;
        append_format(&p->out, "[[maybe_unused]] %s cu_r_%.*s{}; ", word, (int)n, name);
    } while (ptx_accept(p, ','));
}

// setp.lt.s32 p, %0, %1;
static void ptx_compare(Ptx *p, char *const *part, int parts, const char *type, const char *instruction) {
    static const char *const signs[][2] = {{"eq", "=="}, {"ne", "!="}, {"lt", "<"}, {"le", "<="},
                                           {"gt", ">"},  {"ge", ">="}, {"lo", "<"}, {"ls", "<="},
                                           {"hi", ">"},  {"hs", ">="}};
    const bool real = type && part[parts - 1][0] == 'f';
    for (size_t i = 0; type && parts == 3 && i < sizeof signs / sizeof *signs; i++) {
        if (strcmp(part[1], signs[i][0]) != 0 ||
            (real && (i == 1 || i > 5))) // ne.f32 is false for NaN, unlike !=
            continue;
        if (!ptx_operand(p, &p->out, instruction))
            break;
        ptx_expect(p, ',', instruction);
        append_format(&p->out, " = (%s)", type);
        ptx_operand(p, &p->out, instruction);
        ptx_expect(p, ',', instruction);
        append_format(&p->out, " %s (%s)", signs[i][1], type);
        ptx_operand(p, &p->out, instruction);
        append_format(&p->out, "; ");
        return;
    }
    fail_ptx(p, instruction);
}

// Translates mov between one register and a pair of registers of half its width: mov.b64 %0, {%1, %2}; packs,
// and mov.b64 {%0, %1}, %2; unpacks. The first of the pair is the lower half. Returns false if there is no
// pair.
static bool ptx_halves(Ptx *p, const char *type, const char *instruction) {
    const char *const half = strcmp(type, "unsigned long long") == 0 ? "unsigned"
                             : strcmp(type, "unsigned") == 0         ? "unsigned short"
                                                                     : NULL;
    const char *const end = p->at + strcspn(p->at, ";");
    const char *const brace = memchr(p->at, '{', (size_t)(end - p->at));
    if (!brace)
        return false;
    Text whole = {0}, halves[2] = {{0}};
    const bool split = ptx_accept(p, '{');
    bool writes = half != NULL;
    for (int side = 0; side < 2; side++) {
        if (split == (side == 0)) {
            if (side == 1)
                ptx_expect(p, '{', instruction);
            for (int i = 0; i < 2; i++) {
                const bool variable = ptx_operand(p, &halves[i], instruction);
                writes = writes && (variable || !split);
                ptx_expect(p, i ? '}' : ',', instruction);
            }
        } else {
            writes = (ptx_operand(p, &whole, instruction) || split) && writes;
        }
        if (side == 0)
            ptx_expect(p, ',', instruction);
    }
    if (!writes)
        fail_ptx(p, instruction);
    if (split)
        append_format(
            &p->out,
            "{ const auto cu_w = ::cuda_cpu::ptx::bits<%s>(%s); ::cuda_cpu::ptx::set(%s, (%s)cu_w); "
            "::cuda_cpu::ptx::set(%s, (%s)(cu_w >> 4 * sizeof cu_w)); } ",
            type, whole.data, halves[0].data, half, halves[1].data, half);
    else
        append_format(&p->out,
                      "::cuda_cpu::ptx::set(%s, (%s)((%s)::cuda_cpu::ptx::bits<%s>(%s) | "
                      "(%s)::cuda_cpu::ptx::bits<%s>(%s) << 4 * sizeof(%s))); ",
                      whole.data, type, type, half, halves[0].data, type, half, halves[1].data, type);
    free(whole.data);
    free(halves[0].data);
    free(halves[1].data);
    return true;
}

static void ptx_instruction(Ptx *p) {
    const char *const begin = p->at;
    if (strncmp(begin, ".reg", 4) == 0 && strchr(" \t.", begin[4])) {
        ptx_declaration(p);
        return;
    }
    if (ptx_accept(p, '@')) { // @p and @!p: a condition
        append_format(&p->out, ptx_accept(p, '!') ? "if (!" : "if (");
        if (!ptx_operand(p, &p->out, begin))
            fail_ptx(p, begin);
        append_format(&p->out, ") { ");
        skip_blanks(p);
        if (*p->at == '@' || *p->at == '.')
            fail_ptx(p, begin);
        ptx_instruction(p);
        append_format(&p->out, "} ");
        return;
    }
    char name[128], *part[16];
    const size_t length = strspn(begin, "abcdefghijklmnopqrstuvwxyz0123456789_.:L");
    int parts = 0;
    if (length == 0 || length >= sizeof name)
        fail_ptx(p, begin);
    p->at += length;
    char key[128] = "";
    memcpy(name, begin, length);
    name[length] = '\0';
    for (char *s = strtok(name, "."); s && parts < 16; s = strtok(NULL, "."))
        part[parts++] = s;
    if (parts == 0) // only dots
        fail_ptx(p, begin);
    static const char absdiff[] = "vabsdiff4.u32.u32.u32.add"; // no type suffix at its end
    if (length == strlen(absdiff) && memcmp(begin, absdiff, length) == 0)
        parts = 2, part[0] = "vabsdiff4.add";
    const char *const type = ptx_type(part[parts - 1]);
    if (strcmp(part[0], "membar") == 0 || strcmp(part[0], "fence") == 0) {
        append_format(&p->out, "__threadfence(); ");
        return;
    }
    if (strncmp(part[0], "prefetch", strlen("prefetch")) == 0) { // prefetching changes no values
        p->at += strcspn(p->at, ";");
        append_format(&p->out, "(void)0; ");
        return;
    }
    if (strcmp(part[0], "trap") == 0 || strcmp(part[0], "brkpt") == 0) {
        append_format(&p->out, "__%s(); ", part[0]);
        return;
    }
    if (strcmp(part[0], "nanosleep") == 0 && type) {
        append_format(&p->out, "__nanosleep(");
        ptx_operand(p, &p->out, begin);
        append_format(&p->out, "); ");
        return;
    }
    if ((strcmp(part[0], "bar") == 0 || strcmp(part[0], "barrier") == 0) &&
        strcmp(part[parts - 1], "sync") == 0) {
        Text number = {0};
        ptx_operand(p, &number, begin);
        skip_blanks(p);
        if (strcmp(number.data, "0") != 0 || *p->at == ',')
            fail_ptx(p, begin); // only barrier 0, for all threads of the block, is supported
        free(number.data);
        append_format(&p->out, "__syncthreads(); ");
        return;
    }
    if ((strcmp(part[0], "ld") == 0 || strcmp(part[0], "st") == 0) && type) {
        bool strong = false;
        for (int i = 1; i < parts - 1; i++) {
            strong |= strstr("volatile relaxed acquire", part[i]) != NULL;
            if (strncmp(part[i], "L1::", 4) == 0 || strncmp(part[i], "L2::", 4) == 0)
                continue;
            char word[64];
            snprintf(word, sizeof word, " %.60s ", part[i]);
            if (!strstr(" volatile relaxed acquire release weak gpu sys cta global local ca cg cs cv lu nc "
                        "wb wt v2 v4 ",
                        word))
                fail_ptx(p, begin);
        }
        ptx_memory(p, part[0][0] == 'l', strong, type, begin);
        return;
    }
    if (strcmp(part[0], "setp") == 0) {
        ptx_compare(p, part, parts, type, begin);
        return;
    }
    if (strcmp(part[0], "mov") == 0 && parts == 2 && type && ptx_halves(p, type, begin))
        return;
    // The key of the table: the name without its type suffix and without the modifiers that do not change the
    // result on the CPU (.ftz, .global, .rn, .shared).
    for (int i = 0; i < parts - 1; i++) {
        if (strcmp(part[i], "ftz") == 0 || strcmp(part[i], "global") == 0 ||
            (i > 0 && strcmp(part[i], "rn") == 0 && strcmp(part[0], "fma") != 0) ||
            (strcmp(part[i], "shared") == 0 && strncmp(part[0], "cvta", 4) == 0))
            continue;
        snprintf(key + strlen(key), sizeof key - strlen(key), "%s%s", *key ? "." : "", part[i]);
    }
    for (size_t n = 0; type && n < sizeof ptx_instructions / sizeof *ptx_instructions; n++) {
        if (strcmp(ptx_instructions[n].name, key) != 0 ||
            !strchr(ptx_instructions[n].types, strcmp(type, "double") == 0 ? 'd' : part[parts - 1][0]))
            continue;
        const char *const operands = ptx_instructions[n].operands;
        Text target = {0}, values[4] = {{0}};
        if (!ptx_operand(p, &target, begin))
            fail_ptx(p, begin);
        for (int i = 0; operands[i]; i++) {
            ptx_expect(p, ',', begin);
            append_format(&values[i],
                          operands[i] == 'w' ? "(typename ::cuda_cpu::ptx::Wide<%s>::type)" : "(%s)",
                          operands[i] == 'u'   ? "unsigned"
                          : operands[i] == 'p' ? "bool"
                                               : type);
            if (operands[i] == 'p' && ptx_accept(p, '!'))
                append(&values[i], "!", 1);
            ptx_operand(p, &values[i], begin);
        }
        if (strstr(ptx_instructions[n].value, "cu_carry, true") && !p->has_carry)
            fail_ptx(p, begin); // the carry flag of an earlier asm statement is not kept
        p->has_carry |= strstr(ptx_instructions[n].value, "cu_carry, false") != NULL;
        append_format(&p->out, "::cuda_cpu::ptx::set(");
        append(&p->out, target.data, target.length);
        const bool wide = strstr(ptx_instructions[n].value, "mul_wide<T>(1, 2)") != NULL;
        append_format(&p->out, wide ? ", (typename ::cuda_cpu::ptx::Wide<%s>::type)(" : ", (%s)(", type);
        for (const char *v = ptx_instructions[n].value; *v; v++) {
            const bool word = v > ptx_instructions[n].value && (is_word_byte(v[-1]) || v[-1] == '.');
            if (*v == 'T' && !word && !is_word_byte(v[1]))
                append(&p->out, type, strlen(type));
            else if (*v >= '1' && *v <= '4' && !word && v[1] != '.')
                append(&p->out, values[*v - '1'].data, values[*v - '1'].length);
            else
                append(&p->out, v, 1);
        }
        append_format(&p->out, ")); ");
        free(target.data);
        for (int i = 0; i < 4; i++)
            free(values[i].data);
        return;
    }
    fail_ptx(p, begin);
}

static void translate_asm(int i) {
    Ptx p = {.token = i};
    Text template = {0};
    const int word = i++;
    while (is_one_of(i, " volatile __volatile__ __volatile inline "))
        i++;
    if (kind(i) != '(' || kind(i + 1) != STRING)
        fail(word, "inline PTX is not supported here");
    const int close = tokens[i].match;
    append(&template, "", 0);
    for (i++; kind(i) == STRING; i++) {
        for (const char *s = source.data + tokens[i].start + 1; s < source.data + end_of(i) - 1; s++) {
            const char c = *s == '\\' ? *++s : *s;
            append(&template, s[-1] == '\\' && strchr("ntr", c) ? " " : s, 1);
        }
    }
    int section = 0;
    while (i < close) {
        if (kind(i) == ':' || kind(i) == SCOPE) {
            section += kind(i) == SCOPE ? 2 : 1;
            i++;
        } else if (kind(i) == STRING && kind(i + 1) == '(' && section < 3 && p.count < 64) {
            const int open = i + 1;
            p.operands[p.count++] = (Operand){open + 1, tokens[open].match, section < 2};
            i = tokens[open].match + 1;
        } else if (kind(i) == ',' || kind(i) == STRING) {
            i++;
        } else {
            fail(word, "inline PTX is not supported here: an operand with a name");
        }
    }
    append_format(&p.out, "do { "); // one C++ statement, so that `if (a) asm(…); else …` still compiles
    // Each operand is evaluated once. Input operands are copied before the first instruction, because an
    // instruction may write to an output operand that is the same variable.
    for (int n = 0; n < p.count; n++) {
        append_format(&p.out,
                      p.operands[n].output ? "[[maybe_unused]] auto &&cu_p%d = ("
                                           : "[[maybe_unused]] const auto cu_p%d = ::cuda_cpu::ptx::input(",
                      n);
        append_tokens(&p.out, p.operands[n].first, p.operands[n].end);
        append_format(&p.out, "); ");
    }
    if (strstr(template.data, ".cc"))
        append_format(&p.out, "[[maybe_unused]] unsigned cu_carry = 0; ");
    p.at = template.data;
    for (skip_blanks(&p); *p.at; skip_blanks(&p)) {
        if (*p.at == ';') {
            p.at++;
            continue;
        }
        if (*p.at == '{' || *p.at == '}') {
            p.depth += *p.at == '{' ? 1 : -1;
            while (p.register_count > 0 && p.registers[p.register_count - 1].depth > p.depth)
                p.register_count--;
            if (p.depth < 0)
                fail_ptx(&p, p.at);
            append_format(&p.out, "%c ", *p.at++);
            continue;
        }
        const char *const begin = p.at;
        ptx_instruction(&p);
        skip_blanks(&p);
        if (*p.at && *p.at != ';')
            fail_ptx(&p, begin);
    }
    if (p.depth != 0)
        fail_ptx(&p, template.data);
    if (strspn(template.data, " ") == template.length) // an empty template: a compiler barrier
        append_format(&p.out, "__asm__ volatile(\"\" : : : \"memory\"); ");
    append_format(&p.out, "} while (0)");
    for (int t = word; t <= close; t++)
        tokens[t].done = true;
    edit(tokens[word].start, 0, "%s", p.out.data);
    delete_tokens(word, close);
    free(template.data);
    free(p.out.data);
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
            if (kind(i - 1) == ARROW) // auto f() -> struct S {
                return 'b';
            return skip_class_head(i, open) == open ? 'c' : 'b';
        }
    }
    return 'b';
}

static void translate(void) {
    Scope *s;
    int depth = 0, capacity = 0;
    for (int i = PADDING; i < token_count - PADDING; i++) {
        if (depth + 1 >= capacity) {
            capacity = 2 * capacity + 64;
            scopes = grow(scopes, (size_t)capacity, sizeof *scopes);
            scopes[0] = depth ? scopes[0] : (Scope){'n', PADDING, 0};
        }
        s = &scopes[depth];
        scope_depth = depth;
        if (kind(i) == '{') {
            const char brace = brace_kind(s->start, i);
            scopes[++depth] = (Scope){brace, i + 1, i};
        } else if (opens(i)) {
            scopes[++depth] = (Scope){'p', i + 1, s->open};
        } else if (closes(i)) {
            depth--;
            if (kind(i) == '}')
                scopes[depth].start = i + 1;
        } else if (kind(i) == ';') {
            s->start = i + 1;
        } else if (kind(i) == ':') { // a label ends: a new statement begins
            if (is_one_of(s->start, " public private protected case default ") ||
                (s->kind == 'b' && i == s->start + 1 && !is_one_of(s->start, " struct class union ")))
                s->start = i + 1;
        } else if (kind(i) == '<') {
            if (run(i, 1) >= 3 && !is(i - 1, "operator")) { // operator<<<T> is not a launch
                translate_launch(i);
                i += 2;
            }
        } else if (i < device_end && is(i, "clock") && kind(i + 1) == '(' && kind(i + 2) == ')' &&
                   kind(i - 1) != '.' && kind(i - 1) != ARROW && kind(i - 1) != SCOPE) {
            edit(tokens[i].start, tokens[i].length, "(clock_t)::clock64"); // not the C library's clock()
        } else if (i < asm_end && is_one_of(i, " asm __asm__ __asm ") && !tokens[i].done) {
            translate_asm(i);
        } else if (is(i, "__global__") && !tokens[i].done) {
            translate_kernel(i, s);
        } else if (is(i, "volatile") && i < device_end && s->kind == 'b') {
            translate_volatile(i, s);
        } else if (is(i, "volatile") && i < device_end && s->kind == 'p') {
            translate_volatile_cast(i, s);
        } else if (file_shared_count > 0 && i < device_end && kind(i) == IDENT && kind(i - 1) == SCOPE) {
            translate_qualified(i);
        } else if (is_one_of(i, space_words) && !tokens[i].done) {
            if (is(i, "__shared__"))
                translate_shared(i, s);
            else
                translate_device(i, s);
        }
    }
    free(scopes);
}

// ---- output ----
//
// A compiler marks an error in a line of the .cu at its column. So each token is moved to its column in the
// .cu: with spaces, or, when the output is already past that column, with a new line and a linemarker. For
// this the original files are read, and the words of each line are compared with those of the same line of
// its file. Tokens that come from a macro have no counterpart there and stay where they are.

typedef struct {
    const char *name; // position in the source of the name, which ends with a quote
    Text text;
    uint32_t line; // the last line that was read, and its position in the text
    size_t position;
} Original;

typedef struct {
    uint32_t start, length;
} Word;

static FILE *out;
static size_t column; // column of the next byte of the output, from 0
static char last_byte;

static void put(const char *text, size_t length) {
    if (length == 0)
        return;
    const char *newline = memrchr(text, '\n', length);
    column = newline ? (size_t)(text + length - newline - 1) : column + length;
    last_byte = text[length - 1];
    fwrite(text, 1, length, out);
}

static size_t name_length(const char *name) {
    size_t n = 0;
    while (name[n] && name[n] != '"' && name[n] != '\n')
        n += name[n] == '\\' && name[n + 1] ? 2 : 1;
    return n;
}

static void read_file(FILE *in, Text *text) {
    static char buffer[1 << 16];
    for (size_t n; text->length < 1 << 30 && (n = fread(buffer, 1, sizeof buffer, in)) > 0;)
        append(text, buffer, n);
    append(text, "", 0);
}

// The original file of a token; empty if it cannot be read.
static Original *original_of(const Token *token) {
    static Original *originals, *last;
    static size_t count;
    const char *name = source.data + token->file;
    const size_t length = name_length(name);
    if (last && last->name == name)
        return last;
    for (last = originals; last != array_end(originals, count); last++)
        if (name_length(last->name) == length && memcmp(last->name, name, length) == 0)
            return last;
    originals = grow(originals, count + 1, sizeof *originals);
    last = originals + count++;
    *last = (Original){.name = name, .line = 1};
    char path[4096];
    FILE *in = NULL;
    if (length < sizeof path && !memchr(name, '\\', length)) {
        memcpy(path, name, length);
        path[length] = '\0';
        in = fopen(path, "rb");
    }
    if (in) {
        read_file(in, &last->text);
        fclose(in);
    } else {
        append(&last->text, "", 0);
    }
    return last;
}

// Splits a line of the file into words and strings, without comments. Returns their number.
static size_t split_line(Original *o, uint32_t number, Word **words) {
    static size_t capacity;
    size_t count = 0;
    if (number < o->line) {
        o->line = 1;
        o->position = 0;
    }
    for (; o->line < number; o->line++) {
        const char *newline = memchr(o->text.data + o->position, '\n', o->text.length - o->position);
        if (!newline)
            return 0;
        o->position = (size_t)(newline + 1 - o->text.data);
    }
    const char *begin = o->text.data + o->position, *p = begin; // the text ends with a null character
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
        (*words)[count++] = (Word){(uint32_t)(start - begin), (uint32_t)(p - start)};
    }
    return count;
}

// Sets columns[t], for each of the `count` preprocessed tokens of a line, to the column of the same word in
// the source file, or to -1 if the source line does not contain it (it comes from a macro). Words are matched
// by the longest common subsequence of the tokens and the words of the source line.
static void align_line(int first, size_t count, long *columns) {
    static Word *words;
    static uint16_t *lengths;
    static size_t capacity;
    for (size_t t = 0; t < count; t++)
        columns[t] = -1;
    Original *o = original_of(&tokens[first]);
    const size_t n = split_line(o, tokens[first].line, &words), row = n + 1;
    if (n == 0 || n > UINT16_MAX || row * (count + 1) > 1 << 22)
        return;
    if (row * (count + 1) > capacity) {
        capacity = row * (count + 1);
        lengths = grow(lengths, capacity, sizeof *lengths);
    }
    memset(lengths, 0, row * (count + 1) * sizeof *lengths);
    const char *begin = o->text.data + o->position;
    // lengths[t * row + w]: length of the longest common subsequence of the tokens from t on and the words
    // from w on
#define SAME(t, w)                                                                                           \
    (words[w].length == tokens[first + (int)t].length &&                                                     \
     memcmp(begin + words[w].start, source.data + tokens[first + (int)t].start, words[w].length) == 0)
    for (size_t t = count; t-- > 0;)
        for (size_t w = n; w-- > 0;) {
            const uint16_t skip = lengths[(t + 1) * row + w], other = lengths[t * row + w + 1];
            lengths[t * row + w] = SAME(t, w)     ? (uint16_t)(lengths[(t + 1) * row + w + 1] + 1)
                                   : skip > other ? skip
                                                  : other;
        }
    for (size_t t = 0, w = 0; t < count && w < n;)
        if (SAME(t, w))
            columns[t++] = words[w++].start;
        else if (lengths[(t + 1) * row + w] > lengths[t * row + w + 1])
            t++;
        else
            w++;
#undef SAME
}

// The column of a token in its file, or -1.
static long original_column(int i) {
    static int first, end;
    static long *columns;
    static size_t capacity;
    const Token *token = &tokens[i];
    if (token->file == 0 || token->system)
        return -1;
    if (i < first || i >= end) {
        first = i;
        for (end = i + 1;
             kind(end) != END && tokens[end].line == token->line && tokens[end].file == token->file;)
            end++;
        const size_t count = (size_t)(end - first);
        if (count > capacity) {
            capacity = 2 * count;
            columns = grow(columns, capacity, sizeof *columns);
        }
        align_line(first, count, columns);
    }
    return columns[i - first];
}

// Called before a token is written: moves the output to the token's column, if a blank is allowed here. An
// operator directly before a word, as in *p, moves with the word.
static void move_to(int i) {
    const Token *token = &tokens[i];
    int word = i;
    while (word < i + 8 && kind(word) < IDENT && end_of(word) == tokens[word + 1].start)
        word++;
    if (word > i && strchr("+-*/%&|^<>=!.:#", source.data[token->start - (token->start > 0)]))
        return; // inside an operator such as ->: only its first character may move
    const size_t distance = tokens[word].start - token->start;
    long wanted = original_column(word);
    if (wanted >= 0 && word > i) {
        const Original *o = original_of(token);
        if (wanted < (long)distance ||
            memcmp(o->text.data + o->position + wanted - distance, source.data + token->start, distance) != 0)
            return;
        wanted -= (long)distance;
    }
    // A blank would change L"a" and "a"_x.
    if (wanted < 0 || (size_t)wanted == column || is_word_byte(last_byte) || last_byte == '"' ||
        last_byte == '\'')
        return;
    if ((size_t)wanted < column) {
        const char *name = source.data + token->file;
        char marker[32];
        put(marker, (size_t)snprintf(marker, sizeof marker, "\n# %u \"", (unsigned)token->line));
        put(name, name_length(name));
        put("\"\n", 2);
    }
    while (column < (size_t)wanted)
        put(" ", 1);
}

// Writes the source from `position` to `end`. `next` is the first token that was not written.
static void put_source(size_t position, size_t end, int *next) {
    while (tokens[*next].start < position && *next < token_count - PADDING)
        ++*next;
    for (; *next < token_count - PADDING && tokens[*next].start < end; ++*next) {
        const Token *token = &tokens[*next];
        put(source.data + position, token->start - position);
        move_to(*next);
        position = end_of(*next) < end ? end_of(*next) : end;
        put(source.data + token->start, position - token->start);
    }
    put(source.data + position, end - position);
}

static void write_edited(void) {
    size_t done = 0;
    int next = PADDING;
    if (edit_count > 0)
        qsort(edits, edit_count, sizeof *edits, compare_edits);
    for (size_t i = 0; i < edit_count; i++) {
        const Edit *const e = &edits[i];
        if (e->position > done)
            put_source(done, e->position, &next);
        if (e->moved)
            move_to(e->moved);
        put(edit_text.data + e->text, e->length);
        if (e->position > done)
            done = e->position;
        if (e->position + e->removed > done)
            done = e->position + e->removed;
    }
    put_source(done, source.length, &next);
}

// ---- files ----

static void read_input(void) {
    FILE *in = strcmp(input_name, "-") ? fopen(input_name, "rb") : stdin;
    if (!in)
        fail_file(input_name);
    read_file(in, &source);
    if (source.length >= 1 << 30)
        errno = EFBIG;
    if (source.length >= 1 << 30 || ferror(in))
        fail_file(input_name);
    if (in == stdin)
        input_name = "<stdin>";
    else
        fclose(in);
}

static void write_output(const char *name) {
    out = name ? fopen(name, "wb") : stdout;
    if (!out)
        fail_file(name);
    write_edited();
    const bool failed = ferror(out);
    if (fclose(out) == 0 && !failed)
        return;
    const int error = errno;
    struct stat status;
    if (name && stat(name, &status) == 0 && S_ISREG(status.st_mode)) // not a device such as /dev/full
        unlink(name);
    errno = error;
    fail_file(name ? name : "standard output");
}

// ---- merging the host's and the device's text ----
//
// nvcc preprocesses a .cu once for the host, and once with __CUDA_ARCH__ for the device. Where the texts
// differ, kernels and device functions are taken from the device's text, and everything else from the host's.
// A function for both gets both bodies, and chooses one when it is called.

typedef struct {
    int first, end; // its tokens
    int body;       // the { of a function's body, or 0
    int depth;      // number of namespaces and classes around it
    int opens;      // 1: begins a namespace or class, -1: ends one
    bool for_device, for_host, is_constexpr, is_kernel;
    uint64_t head, whole; // hashes of the tokens; the head ends before the body, the initial value or the ;
} Item;

typedef struct {
    Text source;
    Token *tokens;
    int token_count, item_count;
    Item *items;
} Unit;

static void use(const Unit *unit) {
    source = unit->source;
    tokens = unit->tokens;
    token_count = unit->token_count;
}

static uint64_t hash_tokens(int first, int end, bool attributes) {
    uint64_t hash = 14695981039346656037u;
    for (int i = first, next; i < end; i = next) {
        const int after = attributes ? i : skip_attribute(i, NULL);
        next = after > i ? after : i + 1;
        if (after > i || is_one_of(i, " __device__ __global__ "))
            continue;
        for (uint32_t k = 0; k < tokens[i].length; k++)
            hash = (hash ^ (unsigned char)source.data[tokens[i].start + k]) * 1099511628211u;
        hash = (hash ^ ' ') * 1099511628211u;
    }
    return hash;
}

// Finds the end and the parts of the declaration that begins at item->first.
static void parse_item(Item *item) {
    int i = item->first, head = 0;
    bool parameters = false, is_enum = false;
    for (int next; i < token_count - PADDING && kind(i) != ';' && kind(i) != '}'; i = next) {
        next = skip_attribute(i, NULL);
        if (next != i)
            continue;
        next = i + 1;
        if (is(i, "template") && kind(i + 1) == '<') {
            next = skip_angles(i + 1, token_count);
            next = next ? next : i + 1;
        } else if (is(i, "requires")) {
            next = skip_requires(i);
        } else if (is(i, "operator")) {
            while (kind(next) != '(' && kind(next) != ';' && kind(next) != END)
                next++;
            next += kind(next) == '(' && kind(next + 1) == ')' && kind(next + 2) == '(' ? 2 : 0;
        } else if (is(i, "enum")) {
            is_enum = true;
        } else if (kind(i) == '=' && !head) {
            head = i;
        } else if (kind(i) == '(' || kind(i) == '[') {
            parameters |= kind(i) == '(';
            next = tokens[i].match + 1;
        } else if (kind(i) == '{') {
            next = tokens[i].match + 1;
            const char brace = head || is_enum ? 'b' : brace_kind(item->first, i);
            if (brace != 'b') {
                item->opens = 1;
                next = i + 1;
            } else if (parameters && !head && kind(next) != ',' && kind(next) != '{') {
                item->body = i; // not the initial value of a member: A() : x{1} { }
            } else {
                head = head || parameters ? head : i;
                continue;
            }
            head = i;
            i = next - (kind(next) != ';' || item->opens);
            break;
        }
    }
    item->end = i + 1 < token_count - PADDING ? i + 1 : token_count - PADDING;
    if (kind(i) == '}' && !item->body)
        item->end = i;
    head = head ? head : item->end;
    for (int t = item->first; t < head; t++) {
        item->for_device |= is(t, "__device__") || is(t, "__constant__") || is(t, "__managed__");
        item->is_kernel |= is(t, "__global__");
        item->for_host |= tokens[t].host;
        item->is_constexpr |= is(t, "constexpr");
    }
    item->head = hash_tokens(item->first, head, false); // not hashed: __launch_bounds__ may differ
    item->whole = hash_tokens(item->first, item->end, true) + item->for_device + 2 * item->for_host +
                  4 * item->is_kernel;
}

// Splits the text into declarations. Declarations in namespaces and classes are items too.
static void split(Unit *unit) {
    char *scopes = NULL;
    int depth = 0, capacity = 0;
    for (int i = PADDING; i < token_count - PADDING;) {
        if ((capacity & (capacity - 1)) == 0)
            unit->items = grow(unit->items, capacity ? 2 * (size_t)capacity : 1, sizeof(Item));
        Item *item = &unit->items[capacity++];
        *item = (Item){.first = i};
        if (kind(i) == '}' && depth > 0) {
            item->opens = -1;
            item->end = i + 1;
            depth--;
            while (scopes[depth] == 'c' && item->end < token_count - PADDING && kind(item->end - 1) != ';')
                item->end = opens(item->end) ? tokens[item->end].match + 1 : item->end + 1;
            item->whole = item->head = hash_tokens(i, item->end, true);
        } else if (is_one_of(i, " public private protected ") && kind(i + 1) == ':') {
            item->end = i + 2;
            item->whole = item->head = hash_tokens(i, item->end, true);
        } else {
            parse_item(item);
        }
        if (item->end <= i)
            item->end = i + 1;
        item->depth = depth;
        if (item->opens > 0) {
            scopes = grow(scopes, (size_t)depth + 1, 1);
            scopes[depth++] = brace_kind(i, item->end - 1);
        }
        i = item->end;
    }
    free(scopes);
    unit->item_count = capacity;
}

// Appends tokens after a linemarker with their place in the source.
static void append_piece(Text *text, const Unit *unit, int first, int end) {
    const Token *token = &unit->tokens[first], *last = &unit->tokens[end - 1];
    const char *data = unit->source.data;
    char marker[32];
    append(text, marker, (size_t)snprintf(marker, sizeof marker, "\n# %u \"", (unsigned)token->line));
    if (token->file)
        append(text, data + token->file, name_length(data + token->file));
    append(text, token->system ? "\" 3\n" : "\"\n", token->system ? 4 : 2);
    for (uint32_t i = token->start; i > 0 && data[i - 1] != '\n'; i--)
        append(text, " ", 1);
    if (end > first)
        append(text, data + token->start, last->start + last->length - token->start);
}

_Noreturn static void fail_both(const Unit *unit, const Item *item) {
    use(unit);
    fail(item->first,
         "this declaration differs between host and device code, which is not supported (__CUDA_ARCH__)");
}

// Appends a declaration that is in both texts.
static void append_pair(Text *text, const Unit *host, const Item *h, const Unit *device, const Item *d) {
    const bool on_device = h->for_device || d->for_device || h->is_kernel || d->is_kernel;
    const bool on_host = h->for_host || d->for_host || !on_device;
    if (on_device && !on_host) {
        append_piece(text, device, d->first, d->end);
    } else if (!h->body || !d->body) {
        if (h->body || d->body || h->for_device != d->for_device || h->whole != d->whole)
            fail_both(host, h);
        append_piece(text, host, h->first, h->end);
    } else if (!on_device && !h->is_constexpr) {
        use(host);
        for (int i = h->body; i < h->end; i++)
            if (is(i, "__device__"))
                fail(i, "__CUDA_ARCH__ in a function with a __device__ lambda is not supported");
        append_piece(text, host, h->first, h->end);
    } else {
        static const char choose[] = "{ if (::cuda_cpu::on_device())",
                          choose_late[] =
                              "{ if (!__builtin_is_constant_evaluated() && ::cuda_cpu::on_device())";
        append_piece(text, h->for_device ? host : device, h->for_device ? h->first : d->first,
                     h->for_device ? h->body : d->body);
        append(text, h->is_constexpr ? choose_late : choose, strlen(h->is_constexpr ? choose_late : choose));
        append_piece(text, device, d->body, device->tokens[d->body].match + 1);
        append(text, " else ", 6);
        append_piece(text, host, h->body, host->tokens[h->body].match + 1);
        append(text, " }", 2);
    }
}

// Appends a place where the texts differ: items h to h_end of the host's text correspond to items d to d_end
// of the device's.
static void append_difference(Text *text, const Unit *host, int h, int h_end, const Unit *device, int d,
                              int d_end) {
    int open = 0;
    if (h < h_end && d < d_end && host->tokens[host->items[h].first].system) {
        append_piece(text, host, host->items[h].first, host->items[h_end - 1].end);
        return;
    }
    for (; h < h_end || d < d_end; d++) {
        int pair = h;
        while (d < d_end && pair < h_end &&
               (host->items[pair].head != device->items[d].head ||
                host->items[pair].depth != device->items[d].depth))
            pair++;
        const bool found = d < d_end && pair < h_end;
        // An item only in the host's text: left out if it is for the device only.
        for (const int end = d >= d_end ? h_end : found ? pair : h; h < end; h++) {
            const Item *item = &host->items[h];
            open += item->opens;
            if (!item->for_device || item->for_host)
                append_piece(text, host, item->first, item->end);
        }
        if (d >= d_end)
            break;
        if (found) {
            append_pair(text, host, &host->items[h++], device, &device->items[d]);
        } else {
            open += device->items[d].opens;
            append_piece(text, device, device->items[d].first, device->items[d].end);
        }
    }
    if (open)
        fail_both(host, &host->items[h ? h - 1 : 0]);
}

static bool same(const Unit *a, int i, const Unit *b, int j) {
    return a->items[i].whole == b->items[j].whole && a->items[i].depth == b->items[j].depth;
}

// Reads a file and splits it into items.
static Unit read_unit(const char *name) {
    Unit unit = {0};
    source = (Text){0};
    input_name = name;
    read_input();
    lex();
    pair_brackets();
    unit = (Unit){.source = source, .tokens = tokens, .token_count = token_count};
    split(&unit);
    return unit;
}

// Merges both texts and stores the result in `source`.
static void merge(const Unit *host, const Unit *device) {
    Text text = {0};
    uint32_t done = 0; // items of the device's text that have been written
    for (int h = 0, d = 0; h < host->item_count || d < device->item_count;) {
        if (h < host->item_count && d < device->item_count && same(host, h, device, d)) {
            h++;
            d++;
            continue;
        }
        // Finds the nearest declaration that is in both texts. A lone } or public: is too common to be used
        // for this.
        int a = 0, b = 0, sum;
        for (sum = 1;; sum++) {
            for (a = 0; a <= sum; a++) {
                b = sum - a;
                if (h + a == host->item_count && d + b == device->item_count)
                    break;
                if (h + a < host->item_count && d + b < device->item_count &&
                    same(host, h + a, device, d + b) &&
                    (host->items[h + a].end - host->items[h + a].first > 2 || h + a + 1 == host->item_count ||
                     (d + b + 1 < device->item_count && same(host, h + a + 1, device, d + b + 1))))
                    break;
            }
            if (a <= sum)
                break;
        }
        const uint32_t start = d < device->item_count ? device->tokens[device->items[d].first].start
                                                      : (uint32_t)device->source.length;
        append(&text, device->source.data + done, start - done);
        append_difference(&text, host, h, h + a, device, d, d + b);
        h += a;
        d += b;
        done = (uint32_t)device->source.length;
        if (d < device->item_count) {
            append_piece(&text, device, device->items[d].first, device->items[d].first + 1);
            const Token *token = &device->tokens[device->items[d].first];
            done = token->start + token->length;
        }
    }
    append(&text, device->source.data + done, device->source.length - done);
    source = text;
}

int main(int argc, char **argv) {
    const char *output = NULL, *device = NULL;
    int option;
    opterr = 0;
    while ((option = getopt(argc, argv, "o:d:w")) != -1 && option != '?')
        if (option == 'w')
            whole_program = true;
        else
            *(option == 'o' ? &output : &device) = optarg;
    if (option != -1 || optind + 1 != argc) {
        fputs("usage: cu2cpp INPUT [-d DEVICE] [-w] [-o OUTPUT]\n", stderr);
        return 64;
    }
    if (device) {
        const Unit for_host = read_unit(argv[optind]), for_device = read_unit(device);
        merge(&for_host, &for_device);
    } else {
        input_name = argv[optind];
        read_input();
    }
    lex();
    pair_brackets();
    translate();
    write_output(output);
    free(source.data);
    free(tokens);
    free(edits);
    free(edit_text.data);
    return EXIT_SUCCESS;
}
