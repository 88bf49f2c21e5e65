// SPDX-License-Identifier: MIT
// What inline.c and volatile_shared.c share: a kernel with warp operations that inline.c rewrites.
#pragma once

#include "plan.h"

typedef struct {
    const Token *name, *end; // end: null, or the last of the tokens to replace; `name` is the first one then
    const char *text;        // replaces them, or without `end` every token of this name
    const char *type;        // that of the variable `name`; null if it is not known
} Replacement;

// The body of the kernel, or of a function that is written in place of a call
typedef struct {
    int depth;
    Token *parameters;         // of the kernel or function
    const char *result;        // what `return` assigns to
    const char *returned;      // the variable that says whether it has returned early; null if it does not
    int inside, loops;         // how many statements, and loops, of the function are around this statement
    int open;                  // braces that are to be closed at the function's end
    const char *shared_prefix; // of the names of __shared__ variables: equal in all calls of a function
    Replacement *replacements;
    size_t count;
} Body;

// A pointer that may point to shared memory, or an array that may be in it
typedef struct {
    const Token *name;
    bool is_volatile, is_memory; // is_memory: it is known to be shared memory
} SharedPointer;

typedef struct {
    Unit *u;
    Kernel kernel;
    Text out;           // the new body
    const char *why;    // the reason why the kernel stays as it is, …
    const Token *where; // … and the token because of which it does
    const Token **own;  // the names of the kernel's local variables
    size_t own_count;
    int number;            // of operations and calls so far
    SharedPointer *shared; // the pointers and arrays that have been declared so far
    size_t count;
    bool has_volatile; // at least one of them is volatile
    unsigned accessed; // READS, WRITES, VOLATILE: the accesses since threads last waited for each other
} Rewrite;

enum { READS = 1, WRITES = 2, VOLATILE = 4, BOTH = READS | WRITES | VOLATILE };

// inline.c
void refuse_inlining(Rewrite *r, const Token *where, const char *why);
bool has_operations(Rewrite *r, Token *i, const Token *last, bool barriers);

void replace(Body *b, const Token *first, const Token *last, const char *text);
const Replacement *find_replacement(const Body *b, const Token *i);
char *changed(const Body *b, const Token *i, const Token *end);
Token *declared(Token *name);

// returns.c
bool has_return(const Token *i, const Token *last);
bool has_escape_loop(const Token *name, Token *body);
bool returns_early_from(Token *body);

// groups.c
const char *group_of(const Unit *u, const Body *b, Token *i, const Token *end);
unsigned group_size(const char *group);
bool replace_group_parameter(Rewrite *r, Body *f, const Token *name, const char *group, Token *body);
bool replace_group_variable(Rewrite *r, Body *b, const Variable *v);
bool is_group_call(const Unit *u, Token *i);
unsigned tile_of(Rewrite *r, const Body *b, Token *i);
void write_reduction(Rewrite *r, Body *b, Token *name, unsigned size);
bool write_group_sync(Rewrite *r, Body *b, Token *i, const Token *last);

// volatile_shared.c
bool is_volatile(const Token *i);
const SharedPointer *find_shared_pointer(const Rewrite *r, const Token *name);
void add_shared_pointer(Rewrite *r, const Token *from, const Token *name, const Token *value);
unsigned accesses(Rewrite *r, Token *i, const Token *last);
void write_step(Rewrite *r, unsigned next);
