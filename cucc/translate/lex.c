// SPDX-License-Identifier: MIT
// The lexer: splits the text into tokens. Comments, linemarkers and directives count as white space.
#include "translate.h"
#include <ctype.h>

// Further kinds, of what is no token for the translator
enum { BLANK = OPERATOR + 1, COMMENT, DIRECTIVE };

typedef struct {
    Unit *unit;
    const char *at, *end; // the next byte, and the end of the text, at which there is a null character
    const char *start;    // of the token that is read
    uint32_t line;        // of the next byte
    File *file;
    const char *wrong; // what is wrong with the token
    bool fresh_line;   // no token of this line was read
    bool in_directive; // that goes on behind a comment
    bool host;         // __host__ was read, and no token since then
    bool system;       // in a system header
    bool marked;       // a linemarker was read, and no token since then
} Lexer;

static void add_token(Lexer *l, int kind, const char *start, uint32_t first_line) {
    Unit *u = l->unit;
    PUSH(u->tokens, u->token_count,
         (Token){.text = start,
                 .length = (uint32_t)(l->at - start),
                 .line = first_line,
                 .file = l->file,
                 .kind = (uint8_t)kind,
                 .host = l->host,
                 .system = l->system,
                 .marked = l->marked});
    Token *last = &u->tokens[u->token_count - 1];
    l->host = l->marked = false;
    last->joined = (kind == '<' || kind == '>') && last[-1].kind == kind && last[-2].kind == kind &&
                   last[-2].text + 1 == last[-1].text && last[-1].text + 1 < last->text;
}

// True if the text continues with `string`. The comparison ends at the null character that ends the text.
static bool ahead(const Lexer *l, const char *string) {
    return strncmp(l->at, string, strlen(string)) == 0;
}

bool is_word_byte(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

// Preprocessors write a letter beyond ASCII as \U000000f6.
static bool is_word_at(const char *p) {
    return is_word_byte(*p) || (*p == '\\' && (p[1] == 'U' || p[1] == 'u'));
}

static void next_byte(Lexer *l) {
    if (*l->at++ == '\n')
        l->line++;
}

// Skips a line continuation: \ at the end of a line.
static bool skip_continuation(Lexer *l) {
    if (*l->at != '\\')
        return false;
    const char *p = l->at + 1;
    p += strspn(p, " \t\r");
    if (*p != '\n')
        return false;
    l->at = p + 1;
    l->line++;
    return true;
}

static bool skip_comment(Lexer *l) {
    if (ahead(l, "//")) {
        while (l->at < l->end && *l->at != '\n')
            if (!skip_continuation(l))
                l->at++;
        return true;
    }
    if (!ahead(l, "/*"))
        return false;
    for (l->at += 2; l->at < l->end; next_byte(l))
        if (ahead(l, "*/")) {
            l->at += 2;
            return true;
        }
    l->wrong = "unterminated comment";
    return true;
}

// Skips a string or character literal; false when the line ends before it is closed.
static bool skip_quoted(Lexer *l) {
    const char quote = *l->at++;
    while (l->at < l->end && *l->at != '\n') {
        if (skip_continuation(l))
            continue;
        if (*l->at == quote) {
            l->at++;
            return true;
        }
        l->at += *l->at == '\\' && l->at[1] != '\n' ? 2 : 1;
    }
    return false;
}

static void skip_raw_string(Lexer *l) {
    const char *delimiter = ++l->at;
    const size_t length = strcspn(delimiter, "()\\\" \t\n\r");
    if (length > 16 || delimiter[length] != '(') {
        l->wrong = "invalid delimiter of a raw string";
        return;
    }
    for (l->at += length; l->at < l->end; next_byte(l)) {
        const char *p = l->at;
        if (*p == ')' && strncmp(p + 1, delimiter, length) == 0 && p[1 + length] == '"') {
            l->at += length + 2;
            return;
        }
    }
    l->wrong = "unterminated raw string";
}

// Skips a number, such as 0x1.8p-3, 1'000 or 1e+5f.
static void skip_number(Lexer *l) {
    for (;; l->at++) {
        const char *p = l->at;
        if (strchr("eEpP", *p) && (p[1] == '+' || p[1] == '-'))
            l->at++;
        else if (!is_word_byte(*p) && *p != '.' && !(*p == '\'' && is_word_byte(p[1])))
            return;
    }
}

// The file of this name, which ends at a quote or at the end of the line
static File *find_file(Unit *u, const char *name) {
    size_t length = 0;
    while (name[length] && name[length] != '"' && name[length] != '\n')
        length += name[length] == '\\' && name[length + 1] && name[length + 1] != '\n' ? 2 : 1;
    File *file = u->files;
    for (; file->next; file = file->next)
        if (file->next->length == length && memcmp(file->next->name, name, length) == 0)
            return file->next;
    file->next = grow(NULL, 1, sizeof *file);
    *file->next = (File){.name = name, .length = length, .line = 1};
    return file->next;
}

// Skips a directive, a line that begins with #, up to a comment in it. Takes line and file from `# 12
// "file.cu"` and `#line 12 "file.cu"`.
static void skip_directive(Lexer *l) {
    const char *const hash = l->at, *p = hash + 1;
    p += strspn(p, " \t");
    if (strncmp(p, "line", 4) == 0)
        p += 4;
    const char *number = p + strspn(p, " \t");
    const char *name = number + strspn(number, "0123456789");
    const bool marker = *hash == '#' && name > number;
    name += strspn(name, " \t");
    while (l->at < l->end && *l->at != '\n' && !ahead(l, "//") && !ahead(l, "/*")) {
        const char *before = l->at;
        if (skip_continuation(l))
            continue;
        if (*l->at != '"' || !skip_quoted(l)) // in #error, a quote need not be closed
            l->at = before + 1;
    }
    l->in_directive = *l->at == '/';
    // clang++ wants a loop directly after it, and some loops are written anew; g++ does not know it.
    const bool unroll = strncmp(p, "pragma", 6) == 0 && strspn(p + 6, " \t") > 0 &&
                        strncmp(p + 6 + strspn(p + 6, " \t"), "unroll", 6) == 0;
    if (unroll && !memchr(hash, '\n', (size_t)(l->at - hash)))
        edit(l->unit, hash, (size_t)(l->at - hash), "");
    if (!marker)
        return;
    l->line = (uint32_t)strtoul(number, NULL, 10) - 1; // the newline adds 1
    if (*name == '"') {
        l->file = find_file(l->unit, name + 1);
        l->marked = true;
        const char *flags = l->at; // flags: 1 or 2, then 3 for a system header
        while (flags > name && strchr("34 ", flags[-1]))
            flags--;
        l->system = flags > name && memchr(flags, '3', (size_t)(l->at - flags));
    }
}

// Skips an operator and returns its kind. Only the parser can tell whether >> is a shift: < and > are single.
static int skip_symbol(Lexer *l) {
    static const struct {
        const char *text;
        int kind;
    } symbols[] = {{"<=>", OPERATOR}, {"<<=", OPERATOR}, {">>=", OPERATOR}, {"->", ARROW},
                   {"::", SCOPE},     {"<=", OPERATOR},  {">=", OPERATOR},  {"==", OPERATOR},
                   {"<%", '{'},       {"%>", '}'},       {"<:", '['},       {":>", ']'}};
    const bool scope_follows = ahead(l, "<::") && l->at[3] != ':' && l->at[3] != '>';
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) // longest first
        if (ahead(l, symbols[i].text) && !(scope_follows && symbols[i].kind == '[')) {
            l->at += strlen(symbols[i].text);
            return symbols[i].kind;
        }
    return (unsigned char)*l->at++;
}

// Reads a word. Returns the kind of its token; END if it becomes none.
static int read_word(Lexer *l) {
    const char *word = l->at;
    while (is_word_at(l->at))
        l->at++;
    const size_t length = (size_t)(l->at - word);
    const int before = l->unit->tokens[l->unit->token_count - 1].kind;
    if (length == strlen("__host__") && strncmp(word, "__host__", length) == 0) {
        l->host = true;
        edit(l->unit, word, length, "");
        return END;
    }
    // A macro for __noinline__ would also replace it in __attribute__((__noinline__)) and
    // [[gnu::__noinline__]], so it is translated here, except in an attribute.
    if (length == strlen("__noinline__") && strncmp(word, "__noinline__", length) == 0 && before != '(' &&
        before != ',' && before != SCOPE) {
        edit(l->unit, word, length, "__attribute__((noinline))");
        return END;
    }
    if (*l->at == '"' && word[length - 1] == 'R' &&
        (length == 1 || (length == 2 && strchr("LuU", *word)) || strncmp(word, "u8R", length) == 0)) {
        skip_raw_string(l);
        return STRING;
    }
    return IDENT;
}

static int read_quoted(Lexer *l) {
    const uint32_t first_line = l->line;
    const bool is_string = *l->start == '"';
    if (!skip_quoted(l)) {
        l->wrong = is_string ? "missing closing \"" : "missing closing '";
        l->at = l->start + 1;
        l->line = first_line;
    }
    return is_string ? STRING : CHARACTER;
}

// Reads the token, or the white space, that begins at l->start. Returns its kind; END if the word is deleted.
static int read_token(Lexer *l) {
    const char c = *l->start;
    if (c == '\n') {
        l->fresh_line = true;
        l->in_directive = false;
    }
    if (isspace((unsigned char)c) || c == '\0') {
        next_byte(l);
        return BLANK;
    }
    if (skip_comment(l))
        return COMMENT;
    if (skip_continuation(l)) { // In preprocessed text the compiler does not join lines.
        edit(l->unit, l->start, 1, "");
        return BLANK;
    }
    if (l->in_directive || (c == '#' && l->fresh_line)) {
        skip_directive(l);
        return DIRECTIVE;
    }
    l->fresh_line = false;
    if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)l->at[1]))) {
        skip_number(l);
        return NUMBER;
    }
    if (is_word_at(l->at))
        return read_word(l);
    return c == '"' || c == '\'' ? read_quoted(l) : skip_symbol(l);
}

static Lexer new_lexer(Unit *u) {
    Lexer l = {.unit = u, .at = u->source.data, .line = 1, .file = u->files, .fresh_line = true};
    l.end = l.at + u->source.length;
    for (int i = 0; i < PADDING; i++)
        add_token(&l, END, l.at, l.line);
    return l;
}

// Splits u->source into tokens. The first of u->files is the input. `from`: a token of a text before, or null
void lex(Unit *u, const Token *from) {
    Lexer l = new_lexer(u);
    if (from) {
        l.line = from->line;
        l.file = from->file;
        l.system = from->system;
    }
    while (l.at < l.end) {
        l.start = l.at;
        const uint32_t first_line = l.line;
        const int kind = read_token(&l);
        if (l.wrong) {
            add_token(&l, END, l.at, first_line);
            fail(&u->tokens[u->token_count - 1], "%s", l.wrong);
        }
        if (kind != END && kind < BLANK)
            add_token(&l, kind, l.start, first_line);
    }
    for (int i = 0; i < PADDING; i++)
        add_token(&l, END, l.at, l.line);
    u->begin = u->device_end = u->asm_end = u->tokens + PADDING;
    u->end = u->tokens + u->token_count - PADDING;
}

// Prints the tokens of a source that need not be preprocessed, one a line: kind, offset and length in bytes,
// and its first line. Comments and directives are among them.
void print_tokens(Unit *u) {
    static const char *const kinds[] = {"word",   "number", "string", "character", "symbol",
                                        "symbol", "symbol", NULL,     "comment",   "directive"};
    Lexer l = new_lexer(u);
    while (l.at < l.end) {
        l.start = l.at;
        const int kind = read_token(&l);
        const size_t length = (size_t)(l.at - l.start);
        const char *newline = memchr(l.start, '\n', length);
        const char *name = kind == END ? "word" : kind < IDENT ? "symbol" : kinds[kind - IDENT];
        if (name)
            printf("%s %zu %zu %.*s\n", l.wrong ? "unclosed" : name, (size_t)(l.start - u->source.data),
                   length, (int)((newline ? newline : l.at) - l.start), l.start);
        l.wrong = NULL;
    }
}
