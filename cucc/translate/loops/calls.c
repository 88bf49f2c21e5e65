// SPDX-License-Identifier: MIT
// Which functions a kernel calls: whether one may wait for other threads, or asks for the index of its thread
#include "plan.h"

// A function with a body. There may be several of a name: overloads, and members of classes.
typedef struct Function Function;
struct Function {
    Token *name, *body;
    Function *next; // of those whose names have the same hash value
    unsigned seen;  // the search that found that it and what it calls do not wait, or looks at it; or 0
};

static Function *functions[1 << 12];

static Function **slot_of(const Token *name) {
    unsigned value = 0;
    for (uint32_t n = 0; n < name->length; n++)
        value = value * 31 + (unsigned char)name->text[n];
    return &functions[value % (sizeof functions / sizeof *functions)];
}

static bool is_kernel(const Token *i) {
    while (kind(i) != ';' && kind(i) != '}' && kind(i) != '{' && kind(i) != END && !is(i, "__global__"))
        i--;
    return kind(i) == IDENT;
}

// True if a parameter of the function is called: a function object
static bool is_parameter(const Token *i, const Token *open) {
    for (const Token *t = open; t < open->match; t++)
        if (same_word(t, i) && kind(t + 1) && strchr(",)=", kind(t + 1)))
            return true;
    return false;
}

// Finds all functions of the text. A call is not followed by a body.
static void find_functions(Unit *u) {
    static const char no_functions[] =
        " __attribute__ __attribute noexcept decltype alignas requires constexpr ";
    for (Token *i = u->begin; i < u->end; i++) {
        if (kind(i) != IDENT || kind(i + 1) != '(' || is_one_of(i, statement_words) ||
            is_one_of(i, type_words) || is_one_of(i, no_functions) || is(i - 1, "operator"))
            continue;
        Token *body = find_body(i + 1);
        if (!body || is_kernel(i)) // a kernel is not called, and its name may be that of a variable
            continue;
        Function *f = grow(NULL, 1, sizeof *f), **slot = slot_of(i);
        *f = (Function){i, body, *slot, 0};
        *slot = f;
    }
}

static Function *named(const Token *name, Function *f) { // the first one from f on
    while (f && !same_word(f->name, name))
        f = f->next;
    return f;
}

// The first function of this name; null if there is none. The functions are found once, because the text with
// functions in place of their calls has the same.
static Function *first_function(Unit *u, const Token *name) {
    static bool found;
    if (!found)
        find_functions(u);
    found = true;
    return named(name, *slot_of(name));
}

// The name of the only function of this name; null if there is none, or several, or it is of a library
Token *only_function(Unit *u, const Token *name) {
    Token *found = NULL;
    for (const Function *f = first_function(u, name); f; f = named(name, f->next)) {
        if (is_ours(f->name))
            continue;
        if (found || f->name->system)
            return NULL;
        found = f->name;
    }
    return found;
}

// True if the word is followed by ( somewhere in a header of the system or of this back end.
static bool is_of_library(const Unit *u, const Token *name) {
    if (name->length > 10 && strncmp(name->text, "__builtin_", 10) == 0)
        return true;
    for (const Token *i = u->begin; i < u->end; i++)
        if (same_word(i, name) && kind(i + 1) == '(' && (i->system || is_ours(i)))
            return true;
    return false;
}

static bool is_type(const Unit *u, const Token *name) {
    for (const Token *i = u->begin; i < u->end; i++) {
        if (!same_word(i, name))
            continue;
        if (is_one_of(i - 1, " struct class union enum typename using "))
            return true;
        if (kind(i + 1) == ';' && is(statement_begin(i), "typedef"))
            return true;
    }
    return false;
}

// Atomic functions that always succeed at once. The others may be part of a loop that waits.
static bool is_quick_atomic(const Token *i) {
    return is_one_of(
        i, " atomicAdd atomicSub atomicMin atomicMax atomicAnd atomicOr atomicXor atomicInc atomicDec"
           " atomicAdd_block atomicSub_block atomicMin_block atomicMax_block atomicAdd_system ");
}

// Instructions of inline PTX that wait, or that read what other threads write
static bool asm_waits(const Token *open) {
    static const char *const parts[] = {"bar", "sync", "vote", "redux",  "match", "sleep",
                                        "vol", "acq",  "atom", "active", "exit"};
    for (const Token *i = open; i < open->match; i++)
        for (size_t n = 0; kind(i) == STRING && n < sizeof parts / sizeof *parts; n++)
            if (memmem(i->text, i->length, parts[n], strlen(parts[n])))
                return true;
    return false;
}

// True for what a kernel may be split at: a barrier, or a warp operation that inline.c has written
bool is_barrier(const Token *i) {
    if (is_one_of(i, " __syncwarp cu_step ") && kind(i + 1) == '(')
        return i + 2 == i[1].match;
    return is(i, "__syncthreads") || (is_one_of(i, " put put_number meet ") && is_lanes(i - 2));
}

bool is_lanes(const Token *i) { // cu_s1.put, cu_s2.meet
    return kind(i) == IDENT && strncmp(i->text, "cu_s", 4) == 0 && i->text[4] <= '9' && kind(i + 1) == '.';
}

// Whether the name at token i may refer to this function. A variable, or a function of the program, may have
// the same name as a function in this back end's headers.
static bool may_mean(Unit *u, Token *i, const Function *f) {
    const Token *open = kind(i + 1) == '<' ? skip_angles(i + 1, NULL) : i + 1;
    if (!open || kind(open) != '(') // the address of a function, or a variable
        return !is_ours(i) && !is_ours(f->name);
    if (is_ours(i))
        return is_ours(f->name);
    const Token *around = f->name;
    while (kind(around) != '{' && kind(around) != END)
        around = skip_back(around);
    // A function of the program hides those in classes and namespaces of this back end.
    return !is_ours(f->name) || is_member(i) || kind(i - 1) == SCOPE || kind(around) == END ||
           !only_function(u, i);
}

static unsigned searches; // by waits_elsewhere()

// Looks for a wait in the body of a function and in the functions that are called there. Returns the name or
// the word that says why threads may have to wait; null if they do not.
static const Token *find_wait(Unit *u, const Token *parameters, Token *body, bool in_kernel) {
    for (Token *i = body, *end = body->match; i < end; i++) {
        if (kind(i) == '<' && run(i, 1) == 3)
            return i;
        if (kind(i) != IDENT ||
            (in_kernel && (is_barrier(i) || is_lanes(i - 2) || (is(i - 2, "void") && kind(i + 1) == ';'))))
            continue;
        if (is_one_of(i, " carry_out switch_context ") ||
            (!is_ours(i) && !i->system && is_one_of(i, " volatile goto co_await co_yield ")))
            return i;
        if (is_one_of(i, " asm __asm__ __asm ") && !is_ours(i)) {
            while (kind(i) == IDENT)
                i++;
            if (kind(i) != '(' || asm_waits(i))
                return i - 1;
            continue;
        }
        const bool call = kind(i + 1) == '(' && !is_one_of(i, statement_words) && !is_one_of(i, type_words) &&
                          !is(i, "constexpr");
        if (is_quick_atomic(i)) { // adding 0 reads the value, perhaps in a loop until it changes
            const Token *close = call ? i[1].match : i;
            if (call && kind(close - 2) == ',' && kind(close - 1) == NUMBER && close[-1].text[0] == '0')
                return i;
            continue;
        }
        if (call && !i->system && !is_ours(i) && !is_member(i) && is_parameter(i, parameters))
            return i;
        Function *f = first_function(u, i);
        if (!f && call && !i->system && !is_ours(i) && !is_member(i) &&
            (kind(i - 1) != IDENT || is_one_of(i - 1, statement_words)) && !is_of_library(u, i) &&
            !is_type(u, i))
            return i;
        for (; f; f = named(i, f->next)) {
            if (f->seen || f->name->system || !may_mean(u, i, f))
                continue;
            f->seen = searches;
            Token *open = f->name + 1;
            for (const Token *t = open; t < open->match && !is_ours(t); t++)
                if (is(t, "volatile"))
                    return i;
            if (find_wait(u, open, f->body, false))
                return i;
        }
    }
    return NULL;
}

// The word because of which the threads of a kernel may wait elsewhere than at its barriers, or null
const Token *waits_elsewhere(Unit *u, const Token *parameters, Token *body) {
    searches++;
    const Token *found = find_wait(u, parameters, body, true);
    for (size_t n = 0; found && n < sizeof functions / sizeof *functions; n++)
        for (Function *f = functions[n]; f; f = f->next) // some were marked before they were understood
            f->seen = f->seen == searches ? 0 : f->seen;
    return found;
}

// True if the function may change a variable that is given to it as an argument.
bool may_take_reference(Unit *u, const Token *name) {
    if (kind(name) == '>') { // f<3>(x)
        int depth = 0;
        do
            depth += (kind(name) == '>') - (kind(name) == '<');
        while (--name, depth > 0 && kind(name) && !strchr(";{}()", kind(name)));
    }
    if (kind(name) != IDENT)
        return true;
    if (is_one_of(name, statement_words) || is_one_of(name, type_words) || is_quick_atomic(name) ||
        is_one_of(name, " min max assert printf __ldg "))
        return false;
    Function *f = first_function(u, name);
    if (!f)
        return !is_of_library(u, name);
    for (; f; f = named(name, f->next))
        for (const Token *i = f->name + 1; i < f->name[1].match; i++)
            if (kind(i) == '&')
                return true;
    return false;
}

// True if the function around this token synchronises threads. Then its calls have been expanded.
static bool is_expanded(const Token *i) {
    const Token *body = NULL;
    for (; kind(i) != END && !(kind(i) == '{' && is(i - 2, "namespace")); i = skip_back(i))
        if (kind(i) == '{' && (kind(i - 1) == ')' || is_one_of(i - 1, " const noexcept override final ")))
            body = i; // not of a class or a namespace
    for (const Token *t = body; t && t < body->match; t++)
        if (is_one_of(t, " __syncthreads sync ") ||
            (kind(t) == IDENT && t->length > 5 && memcmp(end_of(t) - 5, "_sync", 5) == 0))
            return true;
    return false;
}

// True if a function that is not a kernel may ask for the index of the thread that calls it.
bool functions_know_thread(const Unit *u) {
    static int known = -1;
    for (const Token *i = u->begin; i < u->end && known < 0; i++) {
        if (is(i, "__global__")) {
            while (i < u->end && !strchr(";{", kind(i)))
                i++;
            i = kind(i) == '{' ? i->match : i;
        }
        if (!i->system && !is_ours(i) &&
            is_one_of(i, " threadIdx thread_rank this_thread_block asm __asm__ ") && !is_expanded(i))
            known = 1;
    }
    return (known = known > 0);
}

bool is_atomic(const Token *i) {
    return kind(i) == IDENT && i->length > 6 && strncmp(i->text, "atomic", 6) == 0;
}

// True if nothing that is called here can ask for the thread's index. Operators and constructors do not show
// as calls: functions_know_thread() is about them. Atomics do not ask, but their order matters.
bool is_quiet(const Token *i, const Token *last, bool *vector) {
    for (; i < last; i++) {
        *vector &= !is_atomic(i);
        if (kind(i + 1) == '(' && !is_atomic(i) && !is_lanes(i - 2) &&
            (kind(i) == '>' || kind(i) == ']' || (kind(i) == ')' && kind(i + 2) == '*') ||
             (kind(i) == IDENT && !is_one_of(i, statement_words) && !is_one_of(i, type_words))))
            return false;
    }
    return true;
}
