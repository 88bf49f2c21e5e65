// SPDX-License-Identifier: MIT
// What the files of cu2cpp share. main.c says what is translated to what.
//
// Memory is not freed: the process ends when the output is written.
#pragma once

#define _GNU_SOURCE // memrchr(); getopt() accepts options after the input file
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char *data; // ends with a null character
    size_t length, capacity;
} Text;

// A file that a linemarker names, or the input
typedef struct File {
    struct File *next;
    const char *name; // as in the linemarker, where \ comes before " and \, without the quotes
    size_t length;
    bool is_input, is_read;
    Text text;       // of the original file; empty if it cannot be read
    uint32_t line;   // the last line that was looked up …
    size_t position; // … and its position in the text
} File;

// Kinds of tokens. One character is its own kind; a digraph is that of the character that it stands for.
enum { END = 0, IDENT = 128, NUMBER, STRING, CHARACTER, SCOPE /* :: */, ARROW /* -> */, OPERATOR };

typedef struct Token Token;
struct Token {
    const char *text; // in the source
    uint32_t length, line;
    File *file;
    Token *match;      // for a bracket: the matching bracket
    uint32_t search;   // of a function's name: number of the last search that looked into the function
    const char *after; // text that convert.c inserts after the token
    uint8_t kind;
    bool done;    // a word that has been translated, for example a memory space word with its declaration
    bool shift;   // the first of a shift operator, or a function's name, that shift.c will translate
    bool host;    // preceded by __host__, which is not stored as a token
    bool system;  // in a system header
    bool differs; // in the device's text: a constant or type that the host's text declares otherwise
    bool marked;  // the first token after a linemarker
    bool joined;  // the third < of << <, or the third > of >> >; nvcc reads these as <<< and >>>
};

typedef struct {
    const char *position; // in the source
    size_t removed;       // number of bytes of the source to replace …
    const char *text;     // … by this
    size_t order;         // order of creation, which decides between edits at the same position and place
    int place;            // 0: belongs to the token before it, 2: to the one after it, 1: stands between them
    Token *moved;         // if the text was moved here: the token with which it begins
} Edit;

// IN_BLOCK: or other braces; IN_PARENTHESES: or [ ]
typedef enum { IN_NAMESPACE, IN_CLASS, IN_BLOCK, IN_PARENTHESES } ScopeKind;

typedef struct {
    ScopeKind kind;
    Token *start; // first token of the current statement or declaration
    Token *open;  // the { of these braces
} Scope;

// A __shared__ variable outside functions. Each function that uses it gets a reference or pointer to it.
typedef struct {
    Token *name;
    const char *namespaces;
    bool is_volatile, is_template;
} FileShared;

typedef struct {
    Token *lambda, *name; // the [ of the lambda, and the variable that was inserted into its captures
} Capture;

// A text, and the state of its translation
typedef struct {
    File *files; // the first is the input
    Text source;
    Token *tokens; // PADDING tokens of kind END at both ends, so that looking ahead or back needs no check
    size_t token_count;
    Token *begin, *end; // without the padding
    Edit *edits;
    size_t edit_count;
    Scope *scopes;
    int depth;
    Token *device_end;            // the } of the last kernel or device function that was begun
    Token *asm_end;               // the same, including functions for host and device
    Token *numbered_end;          // the } of a kernel that is compiled twice, for its shared variables
    Token *kernel_body;           // the { of the last kernel that was begun
    Token *body_begin, *body_end; // the { } of the device code, for shift.c; lambdas included
    FileShared *file_shared;
    size_t file_shared_count;
    Token **kernels; // names in declarations of kernels in namespaces
    size_t kernel_count;
    Capture *captures;
    size_t capture_count;
    const struct Translation *how; // the options
    const Token **types;           // names of types that the program declares, up to types_end; for convert.c
    size_t type_count;
    Token *types_end;
    Text extern_names; // names declared extern, each with a blank before and after it
} Unit;

enum { PADDING = 4 };

typedef struct {
    Token *first_word;            // the first memory space word: __shared__, __device__, …
    Token *extern_at, *static_at; // these words
    Token *after_pointer;         // a memory space word after * or &, as in T *__device__ f();
    bool is_shared, is_constant, is_managed;
    bool is_constexpr, is_inline, is_typedef, is_template, is_specialization, is_linkage;
    bool is_definition; // it defines a class or an enumeration
    bool is_late;       // the address space comes after this definition
    bool is_typed;      // a declarator has been parsed, so the type is complete
    // The last declarator that was parsed:
    Token *name;
    Token *end; // the token after it: , or ; or the initial value
    bool has_value;
    bool is_function; // if true, the other members about the declarator are not set
    bool is_const;    // the variable itself is const, not what it points to
    // The type that all declarators share is const: in const int a = 1, *b; a is const, and b is not.
    bool is_const_type;
} Declaration;

// text.c: memory, text, errors
void *grow(void *array, size_t count, size_t size);
// Appends an element to an array that only PUSH makes larger. There is room for a power of two.
#define PUSH(array, count, ...)                                                                              \
    do {                                                                                                     \
        if (((count) & ((count)-1)) == 0)                                                                    \
            (array) = grow((array), (count) ? 2 * (size_t)(count) : 1, sizeof *(array));                     \
        (array)[count] = (__VA_ARGS__);                                                                      \
        (count)++;                                                                                           \
    } while (0)
Text empty_text(void);
void append(Text *text, const char *data, size_t length);
void append_text(Text *text, const char *string);
void append_tokens(Text *text, const Token *first, const Token *end);
__attribute__((format(printf, 1, 2))) char *format(const char *format, ...);
char *spelling(const Token *first, const Token *end);
char *word_of(const Token *i);
char *fill_parts(const char *template, ...);
unsigned hash(const char *text);
__attribute__((format(printf, 2, 3))) _Noreturn void fail(const Token *token, const char *format, ...);
_Noreturn void fail_file(const char *name);

// Fills a template of C++ text, $ before parts: fill("auto &$x = $f();", "x", name, "f", function)
#define fill(...)                fill_parts(__VA_ARGS__, (char *)NULL)
#define append_filled(text, ...) append_text(text, fill(__VA_ARGS__))

// lex.c
void lex(Unit *u, const Token *from);
void print_tokens(Unit *u);
bool is_word_byte(char c);

// token.c: tokens and brackets
extern const char space_words[], statement_words[], type_words[];
static inline int kind(const Token *i) {
    return i->kind;
}
bool is(const Token *i, const char *word);
bool is_one_of(const Token *i, const char *words);
bool same_word(const Token *i, const Token *j);
bool is_member(const Token *i);
const char *end_of(const Token *i);
bool opens(const Token *i);
bool closes(const Token *i);
Token *skip(Token *i);
Token *skip_back(const Token *i);
Token *enclosing(Token *i);
Token *statement_begin(const Token *i);
int run(const Token *i, int step);
void pair_brackets(Unit *u);
Token *skip_angles(Token *i, const Token *limit);
Token *skip_template_arguments(Token *i);
Token *next_comma(Token *i, const Token *close);
Token *statement_end(Token *i);
bool ends_expression(const Token *i);
bool is_ours(const Token *i);

// declaration.c
_Noreturn void fail_declaration(const Token *i);
Token *skip_attribute(Token *i);
Token *skip_requires(Token *i);
Token *skip_class_head(Token *i, const Token *limit);
void parse_declarator(Unit *u, Token *i, Declaration *d, Text *alignment);
Token *find_parameters(Token *i, Token **name);
Token *find_body(Token *open);
Token *parameter_name(Token *i, const Token *close, Token **place, bool *is_pack, bool *may_be_unused);

// kernel.c, launch.c, shared.c, device.c, volatile.c, shift.c, convert.c, ptx.c: translate a construct
void translate_launch(Unit *u, Token *open);
void refuse_plain_call(const Unit *u, Token *name);
void translate_shared(Unit *u, Token *word, const Scope *scope);
void translate_qualified(Unit *u, Token *i);
void translate_instance(Unit *u, Token *i);
void declare_file_shared(Unit *u, Token *parameters, Token *body, Text *start, Text *end);
void translate_device(Unit *u, Token *word, const Scope *scope);
void translate_kernel(Unit *u, Token *word, const Scope *scope);
void translate_volatile(Unit *u, Token *word, const Scope *scope);
void translate_volatile_cast(Unit *u, Token *word, const Scope *scope);
void step_parameters(Token *open, Text *start, Text *end);
void translate_asm(Unit *u, Token *word);
extern const char called_words[];
void begin_device_code(Unit *u, Token *returned, Token *parameters, Token *body);
void find_conversions(Unit *u, Token *returned, Token *parameters, Token *body);
void find_shift(Token *i);
void find_call(Token *i);
unsigned place_on_line(const Token *call);
void translate_shifts(Unit *u);

// translate.c: the pass over all tokens
typedef struct Translation {
    const char *input;  // preprocessed CUDA C++; - is standard input
    const char *device; // the same source, preprocessed with __CUDA_ARCH__; or null
    const char *output; // null: standard output
    bool only_fibers;   // kernels with barriers are not split into loops
    bool explain;       // says on standard output which kernels are split; writes no output
    bool whole_program; // other files cannot use the device functions and variables
} Translation;
void print_file(const char *name);           // its tokens
void translate_file(const Translation *how); // an error ends the process with status 1
ScopeKind brace_kind(Token *start, Token *open);

// merge.c
Text merge(Unit *host, Unit *device);

// output.c
void edit(Unit *u, const char *position, size_t removed, const char *text);
void insert_before(Unit *u, const Token *i, const char *text);
void insert_after(Unit *u, const Token *i, const char *text);
void insert_between(Unit *u, const Token *before, const char *text);
void delete_tokens(Unit *u, Token *first, const Token *last);
void read_file(FILE *in, Text *text);
void write_output(Unit *u, const char *name);
