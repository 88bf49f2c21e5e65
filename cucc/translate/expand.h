// SPDX-License-Identifier: MIT
// What expand.c and lockstep.c share: a kernel with warp operations that is rewritten. expand.c says how.
#pragma once

#include "split.h"

typedef struct {
    const Token *name, *end; // end: null, or the last of the tokens to replace; `name` is the first one then
    const char *text;        // replaces them, or without `end` every token of this name
    const char *type;        // that of the variable `name`; null if it is not known
} Change;

typedef struct {
    int depth;
    Token *parameters;  // of the kernel or function
    const char *result; // what `return` assigns to
    const char *same;   // prefix of the names of __shared__ variables: equal in all calls of a function
    Change *changes;
    size_t count;
} Place;

// A pointer that may point to shared memory, or an array that may be in it
typedef struct {
    const Token *name;
    bool is_volatile, is_memory; // is_memory: it is known to be shared memory
} Shared;

typedef struct {
    Unit *u;
    Token *kernel; // the token before the first one of the kernel's declaration
    const Token *name, *parameters;
    const Token **own; // the names of the kernel's local variables
    size_t own_count;
    Text out;
    int number;
    const Token *where; // the token because of which the kernel stays as it is …
    const char *why;    // … and the reason
    Shared *shared;     // the pointers and arrays that have been declared so far
    size_t count;
    bool any;       // at least one of them is volatile
    unsigned since; // READS, WRITES, VOLATILE: the accesses since threads last waited for each other
} Expansion;

enum { READS = 1, WRITES = 2, VOLATILE = 4, BOTH = READS | WRITES | VOLATILE };

// expand.c
bool leave(Expansion *e, const Token *where, const char *why);
Token *enclosing(Token *i);
bool has_operations(Expansion *e, Token *i, const Token *last, bool barriers);

// lockstep.c
bool is_volatile(const Token *i);
const Shared *find_shared(const Expansion *e, const Token *name);
void add_shared(Expansion *e, const Token *from, const Token *name, const Token *value);
unsigned accesses(Expansion *e, Token *i, const Token *last);
void step(Expansion *e, unsigned next);
