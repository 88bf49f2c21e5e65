// SPDX-License-Identifier: MIT
// What plan.c, variables.c, regions.c and write.c share: a kernel that is divided into regions (loops.h).
#pragma once

#include "loops.h"

enum { MAX_REGIONS = 96, MAX_VARIABLES = 96, MAX_STATEMENTS = 768 };

// How a variable that several regions use gets from one to the next
typedef enum {
    NOT_KEPT,         // it does not: a parameter, or a variable that is declared outside of regions
    ONE_FOR_ALL,      // has the same value in all threads: its region stores it for all others
    DECLARED_BEFORE,  // the same, without an initial value: it is declared before its region
    COMPUTED_AGAIN,   // depends on the thread's index only: each region that uses it computes it again
    COPY_OF_THREAD,   // one for each thread, which each region that uses it loads and stores
    OBJECT_OF_THREAD, // one for each thread, to which regions have a reference
} Keeping;

typedef enum { NOT_KNOWN, SAME, DIFFERENT } InWarp;

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
    bool is_exposed; // others may have its address
    bool by_index;   // its initial value depends on the thread's index and on constants
    InWarp in_warp;  // with `by_index`: whether all lanes of a warp have the same value
    int region;      // where it is declared; -1: outside of regions
    bool used[MAX_REGIONS], crosses; // used: by each region; crosses: by others than its own
    Keeping keeping;
} Variable;

typedef enum {
    IN_REGION,           // part of a region
    OUTSIDE_DECLARATION, // declares types, constants or __shared__ variables
    UNIFORM_ASSIGNMENT,  // assigns to variables that are the same in all threads, once for all
    BARRIER,
    JUMP,    // break or continue
    CONTROL, // a block, branch or loop with barriers
} StatementKind;

// A statement of a sequence of statements that all threads execute together
typedef struct Statement Statement;
struct Statement {
    StatementKind kind;
    Token *first, *last;
    bool is_declaration;
    bool gives;    // IN_REGION: stores the operand of a warp operation, which ends the region
    bool by_warps; // CONTROL: is executed once for each warp
    bool in_step;  // CONTROL: a loop without barriers whose iterations all threads execute together
    int region;
    Statement *next, *inside, *other; // other: the statements of else
    Token *header, *block;            // CONTROL: the ( of the condition, and the { of a block
    Token *else_block, *else_word;
};

struct LoopPlan {
    Unit *u;
    Kernel kernel;
    KernelForm form;
    const char *why;    // the reason why the kernel stays as it is, …
    const Token *where; // … and the token because of which it does
    Variable variables[MAX_VARIABLES];
    int count, regions;
    Statement *top;              // the first of the body
    Statement *statements, *end; // every one, in the order of the text, up to `end`
    bool only_atomics;           // a loop with a stride but without atomics is part of a region
    bool warps;         // uniform in a warp suffices: the kernel, or the branch, has no barriers of the block
    bool in_warp;       // what is being written is executed once for each warp
    bool returns_early; // some threads may return before others: an array says which have returned
};

static inline bool declares(const Statement *s, const Variable *v) {
    return s->first <= v->name && v->name <= s->last;
}

// plan.c
bool refuse(LoopPlan *p, const Token *where, const char *why);
Token *last_of(Token *i);
bool loops_are_wanted(const Unit *u);

// variables.c
typedef enum {
    READ,
    ASSIGNMENT,
    EXPOSURE, // gives others access to it: its address or a reference
} Use;

void add_parameters(LoopPlan *p);
bool add_variables(LoopPlan *p, Token *first, Token *last, const Token *end, bool in_header);
bool assigns(const Token *i);
Use use_of(LoopPlan *p, const Variable *v, Token *i);
Variable *find_variable(LoopPlan *p, const Token *name);
Variable *variable_at(LoopPlan *p, const Token *i);
bool is_same(LoopPlan *p, Token *first, const Token *end, bool threads, const Token **culprit);
bool is_uniform(LoopPlan *p, Token *first, const Token *end);
bool is_uniform_statement(LoopPlan *p, const Statement *s);
bool is_thread_x(LoopPlan *p, Token *first, const Token *end);
void find_uniform(LoopPlan *p);

// types.c
extern const char number_words[], integer_words[];
void find_types(Unit *u);
bool has_functions(const Token *name);
int dimensions_of(const Token *name);
bool is_plain(const Token *type);
bool is_class(const Variable *v);

// regions.c
void find_regions(LoopPlan *p);

// inline.c
const char *why_not_inlined(const Token *name, const Token **where);

// calls.c
Token *only_function(Unit *u, const Token *name);
const Token *waits_elsewhere(Unit *u, const Token *parameters, Token *body);
bool is_barrier(const Token *i);
bool is_lanes(const Token *i);
bool is_atomic(const Token *i);
bool may_take_reference(Unit *u, const Token *name);
bool functions_know_thread(const Unit *u);
bool is_quiet(const Token *i, const Token *last, bool *vector);
