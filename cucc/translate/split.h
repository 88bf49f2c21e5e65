// SPDX-License-Identifier: MIT
// What split.c, variables.c and regions.c share: a kernel that is to be split at its barriers. split.c says
// how.
#pragma once

#include "translate.h"

// How a variable that several regions use gets from one to the next
typedef enum {
    STAYS,   // it does not: a parameter, or a variable that is declared outside of regions
    ONE,     // has the same value in all threads: the region in which it is declared stores it for all others
    OUTSIDE, // the same, without an initial value: it is declared before the region
    AGAIN,   // depends on the thread's index only: each region that uses it computes it again
    COPY,    // a copy for each thread, which each region that uses it loads and stores
    REFERENCE, // one for each thread; regions have a reference to it
} Keeping;

enum { MOST = 96 }; // regions, and variables

typedef struct {
    Token *name;
    const Token *end;                    // of its scope
    Token *specifiers, *specifiers_end;  // int in int a, *b = 0; these are the same for a and b
    Token *from, *init;                  // the declarator begins at `from`; init: = ( { or null
    Token *after;                        // the , or ; after the declarator
    bool parameter, in_header, constant; // in_header: of a loop; constant: stands outside of regions as it is
    bool is_const, is_array, is_pointer, is_reference, is_auto, is_integer;
    bool is_plain;   // a number, or several: float4
    bool is_class;   // of the program, with more than members
    int dimensions;  // of an array
    bool is_memory;  // __shared__, or a parameter that is a reference: nothing is known about its value
    bool uniform;    // all threads have the same value when they are at the same place
    bool modified;   // after its declaration
    bool shared_out; // its address is taken
    bool again;      // its initial value depends on the thread's index and on constants
    char in_warp; // with `again`: y or n, whether all lanes of a warp have the same value; 0: not known yet
    int region;   // where it is declared; -1: outside of regions
    bool used[MOST], crosses;
    Keeping keeping;
} Variable;

// A statement of a sequence of statements that all threads execute together
typedef struct Node Node;
struct Node {
    char kind; // r: part of a region; d: declaration outside of regions; u: assigns to uniform variables
               // b: barrier; j: break or continue; c: block, branch or loop with barriers
    Token *first, *last;
    bool is_declaration;
    bool gives;    // r: stores the operand of a warp operation, which ends the region
    bool by_warps; // c: is executed once for each warp
    bool in_step;  // c: a loop without barriers whose iterations all threads execute together
    int region;
    Node *next, *inside, *other; // other: the statements of else
    Token *header, *block;       // c: the ( of the condition, and the { of a block
    Token *else_block, *else_word;
};

typedef struct {
    Unit *u;
    Token *begin, *body; // the kernel's declaration
    Variable variables[MOST];
    int count, regions;
    Node *all[8 * MOST]; // every node, in the order of the text
    int nodes;
    bool only_atomics; // a loop with a stride but without atomics is part of a region
    bool warps; // what is the same in a warp counts as uniform: the kernel, or the branch, has no barriers of
                // the block
    const Token *where; // the token because of which the kernel cannot be split …
    const char *why;    // … and the reason
} Split;

Token *last_of(Token *i);
bool refuse(Split *s, const Token *where, const char *why);

// variables.c
void add_parameters(Split *s, Token *open);
bool add_variables(Split *s, Node *node, Token *last, const Token *end, bool in_header);
char use_of(Split *s, const Variable *v, Token *i);
Variable *find_variable(Split *s, const Token *name);
bool is_uniform(Split *s, Token *first, const Token *end, bool threads, const Token **culprit);
bool is_thread_x(Split *s, Token *first, const Token *end);
void find_uniform(Split *s);

// regions.c
void find_regions(Split *s, Node *top);
void write_split(Split *s, Node *top, Text *start);
