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

// How a value changes from one thread to the next one along an axis
typedef enum { NOT_FOUND, CONSTANT, BY_ONE, UNKNOWN } Growth;

typedef struct {
    Token *name;
    const Token *end;                    // of its scope
    Token *specifiers, *specifiers_end;  // int in int a, *b = 0; these are the same for a and b
    Token *from, *init;                  // the declarator begins at `from`; init: = ( { or null
    Token *after;                        // the , or ; after the declarator
    bool parameter, in_header, constant; // in_header: of a loop; constant: stands outside of regions as it is
    bool is_const, is_array, is_pointer, is_reference, is_auto, is_integer;
    bool is_plain;    // a number, or several: float4
    bool is_class;    // of the program, with more than members
    int dimensions;   // of an array
    bool is_memory;   // __shared__, or a parameter that is a reference: nothing is known about its value
    bool uniform;     // all threads have the same value when they are at the same place
    bool modified;    // after its declaration
    bool is_exposed;  // others may have its address
    bool typed;       // the type of it, or of another variable by it, is needed outside of its region
    bool by_index;    // its initial value depends on the thread's index and on constants
    InWarp in_warp;   // with `by_index`: whether all lanes of a warp have the same value
    Growth growth[3]; // along x, y and z
    int place;        // of the first thread's value in the array cu_f that a loop counts from; -1: none
    int region;       // where it is declared; -1: outside of regions
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

// What vector.c makes of a statement that is CONTROL
typedef enum { PLAIN, GUARD_IF, GUARD_RETURN, CHUNK, CHUNK_MASKED, CHUNK_OWN_TEST } StatementForm;

// A statement of a sequence of statements that all threads execute together
typedef struct Statement Statement;
struct Statement {
    StatementKind kind;
    StatementForm form;
    Token *first, *last;
    bool is_declaration;
    bool gives;              // IN_REGION: stores the operand of a warp operation, which ends the region
    bool by_warps;           // CONTROL: is executed once for each warp
    bool in_step;            // CONTROL: a loop without barriers whose iterations all threads execute together
    const Variable *counter; // … and whose variable differs by 1 between neighbouring threads
    int region;
    Statement *next, *inside, *other; // other: the statements of else
    Token *header, *block;            // CONTROL: the ( of the condition, and the { of a block
    Token *else_block, *else_word;
};

// What an attempt to divide a kernel leaves out, because it failed before
typedef struct {
    bool only_atomics; // a loop with a stride but without atomics is part of a region
    bool no_guards, no_chunks;
    int along;              // 'y' or 'z': the innermost loops run along that axis; else 0
    const Token *tried[16]; // loops and guards that failed; a loop once for each of its forms
    int tried_count;
} Attempt;

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
    Attempt how;
    bool again;             // `how` was changed: the kernel is to be divided anew
    bool barriers;          // it has some, or warp operations
    const Token *tail;      // the { of the statements that are the last of the kernel; null inside loops
    const Statement *chunk; // the loop in chunks that is being written
    const Statement *loop;  // of which the only region is being written; it has a counter
    bool warps;         // uniform in a warp suffices: the kernel, or the branch, has no barriers of the block
    bool in_warp;       // what is being written is executed once for each warp
    int joined;         // neighbouring blocks of up to so many columns may run as one (blocks.c)
    bool single;        // … in which blockIdx.x differs between threads
    bool returns_early; // some threads may return before others: an array says which have returned
};

// Whether the innermost loops ('x'), or those outside of them, run along an axis of the block
static inline int loop_axis(const LoopPlan *p, int axis) {
    return axis == p->how.along ? 'x' : axis == 'x' && p->how.along ? p->how.along : axis;
}

// True for a number that differs between threads: threadIdx.x, for example
static inline bool is_thread_index(const LoopPlan *p, const Token *i) {
    return is(i, "threadIdx") || (p->single && is(i, "blockIdx") && is(i + 2, "x"));
}

static inline bool declares(const Statement *s, const Variable *v) {
    return s->first <= v->name && v->name <= s->last;
}

// plan.c
bool refuse(LoopPlan *p, const Token *where, const char *why);
void try_again(LoopPlan *p, const Token *form);
Token *last_of(Token *i);
bool loops_are_wanted(const Unit *u);
bool has_strided_loop(Token *body);

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
bool counts_evenly(LoopPlan *p, const Statement *loop, const Variable *v);
bool is_element(LoopPlan *p, const Variable *v, bool threads);
bool is_known(LoopPlan *p, const Variable *v);
bool is_lane(LoopPlan *p, Token *first, Token *end);
bool converts(LoopPlan *p, Token *i, const Token *end);
void find_uniform(LoopPlan *p);

// blocks.c
void find_joined(LoopPlan *p);
void declare_index(const LoopPlan *p, Text *text, const char *x, const char *turn);

// linear.c
extern const char wide_words[];
void choose_axis(LoopPlan *p);
Growth growth_of(LoopPlan *p, Token *i, Token *end, int axis);
Growth growth_of_variable(LoopPlan *p, Variable *v, int axis);
bool grow_alike(LoopPlan *p);
int number_growing(LoopPlan *p, int first_region, int last_region);
void write_growing(LoopPlan *p, Text *text, int first_region, int last_region);
const char *counted_value(const Variable *v);

// vector.c
StatementForm guard_form(const LoopPlan *p, Token *i, const Token *last, const Token *end);
bool is_guard(const Statement *s);
bool is_good_guard(LoopPlan *p, const Statement *s, Text *indices, char **axes);
StatementForm chunk_form(LoopPlan *p, Token *i, Token *last);
bool is_chunk(const Statement *s);
bool is_changed_in(LoopPlan *p, const Statement *s, const Variable *v);
bool is_used_later(LoopPlan *p, const Statement *loop, const Variable *v);
void check_forms(LoopPlan *p);

// write.c
char *declarator(const Variable *v);
bool returns_early(const LoopPlan *p);

// types.c
extern const char number_words[], integer_words[];
void find_types(Unit *u);
bool has_functions(const Token *name);
int dimensions_of(const Token *name);
bool is_plain(const Token *type);
bool is_class(const Variable *v);
bool is_visible(const Token *open, bool qualified);
bool is_enumerator(const Token *i, const Token *use);
bool is_declared_constant(const Token *i, const Token *end, const Token *name);

// regions.c
void find_regions(LoopPlan *p);

// inline.c
const char *why_not_inlined(const Token *name, const Token **where);

// calls.c
Token *only_function(Unit *u, const Token *name);
Token *free_function(Unit *u, const Token *name);
int count_arguments(const Token *open);
const Token *waits_elsewhere(Unit *u, const Token *parameters, Token *body);
bool is_barrier(const Token *i);
bool is_lanes(const Token *i);
bool is_atomic(const Token *i);
void mark_atomics(Unit *u, Token *body);
bool may_take_reference(Unit *u, const Token *name, int number);
bool is_constant_member(Unit *u, const Token *name);
bool functions_know_thread(Unit *u);
bool has_file_shared(Unit *u);
bool is_computation(const Token *i);
bool is_quiet(Unit *u, const Token *i, const Token *last, bool *vector);
