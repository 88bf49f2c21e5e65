// SPDX-License-Identifier: MIT
// What expand.c and lockstep.c share: a kernel with warp operations that is rewritten. expand.c says how.
#pragma once

#include "split.h"

typedef struct {
    const Token *name, *end; // tokens of this name, or from `name` to `end`, become `text`
    const char *text, *type; // type: of a variable, if it is known
} Change;

typedef struct Place {
    struct Place *outer; // the caller of an expanded function
    int depth;
    Token *parameters;  // of the kernel or function
    const char *result; // what `return` assigns to
    const char *same;   // begins the names of __shared__ variables, which are the same for each call
    Change *changes;
    size_t count;
} Place;

typedef struct { // a pointer or an array that may be shared memory
    const Token *name;
    bool is_volatile, is_memory; // is_memory: certainly
} Shared;

typedef struct {
    Unit *u;
    Token *kernel; // the token before the declaration of the kernel
    const Token *name, *parameters;
    const Token **own; // the names of its variables
    size_t own_count;
    Text out;
    int number;
    const Token *where; // because of which the kernel cannot be expanded
    const char *why;
    Shared *shared; // the pointers and arrays that are known so far
    size_t count;
    bool any;       // whether one of them is volatile
    unsigned since; // READS, WRITES, VOLATILE: the accesses since threads last waited for each other
} Expansion;

enum { READS = 1, WRITES = 2, VOLATILE = 4, BOTH = READS | WRITES | VOLATILE };

// expand.c
bool leave(Expansion *e, const Token *where, const char *why);
Token *enclosing(Token *i);
bool has_operations(Expansion *e, Token *i, const Token *last, bool barriers, int depth);

// lockstep.c
bool is_volatile(const Token *i);
const Shared *find_shared(const Expansion *e, const Token *name);
void add_shared(Expansion *e, const Token *from, const Token *name, const Token *value);
unsigned accesses(Expansion *e, Token *i, const Token *last);
void step(Expansion *e, unsigned next);
