// SPDX-License-Identifier: MIT
// Which functions a kernel calls: whether one may wait for other threads, or asks for the index of its thread
#include "plan.h"

// A function with a body. There may be several of a name: overloads, and members of classes.
typedef struct Function Function;
struct Function {
    Token *name, *body;
    Function *next; // of those whose names have the same hash value
    unsigned seen;  // 2 * the search that found that it and what it calls do not wait, or looks at it; or 0.
    int active;     // 1 is added if it is called in a loop. `active`: how many calls a search is in
};

static Function *functions[1 << 12];
static bool has_mutable; // or const_cast, in the program

static unsigned hash_of(const Token *name) {
    unsigned value = 0;
    for (uint32_t n = 0; n < name->length; n++)
        value = value * 31 + (unsigned char)name->text[n];
    return value;
}

static Function **slot_of(const Token *name) {
    return &functions[hash_of(name) % (sizeof functions / sizeof *functions)];
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
        has_mutable |= is_one_of(i, " mutable const_cast ") && !i->system && !is_ours(i);
        if (kind(i) != IDENT || kind(i + 1) != '(' || is_one_of(i, statement_words) ||
            is_one_of(i, type_words) || is_one_of(i, no_functions) || is(i - 1, "operator"))
            continue;
        Token *body = find_body(i + 1);
        if (!body || is_kernel(i)) // a kernel is not called, and its name may be that of a variable
            continue;
        Function *f = grow(NULL, 1, sizeof *f), **slot = slot_of(i);
        *f = (Function){.name = i, .body = body, .next = *slot};
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

// The same, but not a member of a class
Token *free_function(Unit *u, const Token *name) {
    Token *f = only_function(u, name);
    return f && is_visible(enclosing(f), false) ? f : NULL;
}

static bool find_in_library(const Unit *u, const Token *name) {
    for (const Token *i = u->begin; i < u->end; i++)
        if (same_word(i, name) && kind(i + 1) == '(' && (i->system || is_ours(i)))
            return true;
    return false;
}

// True if the word is followed by ( somewhere in a header of the system or of this back end. The last answers
// are kept, because a kernel may have thousands of calls.
static bool is_of_library(const Unit *u, const Token *name) {
    static struct {
        const Token *name;
        bool found;
    } known[1 << 8];
    if (name->length > 10 && strncmp(name->text, "__builtin_", 10) == 0)
        return true;
    const unsigned slot = hash_of(name) % (sizeof known / sizeof *known);
    if (!known[slot].name || !same_word(known[slot].name, name)) {
        known[slot].name = name;
        known[slot].found = find_in_library(u, name);
    }
    return known[slot].found;
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
    return is(i, "__syncthreads") || (is_one_of(i, " put put_number put_of_tile meet ") && is_lanes(i - 2));
}

bool is_lanes(const Token *i) { // cu_s1.put, cu_s2.meet
    return kind(i) == IDENT && strncmp(i->text, "cu_s", 4) == 0 && i->text[4] <= '9' && kind(i + 1) == '.';
}

// The number of arguments or parameters
int count_arguments(const Token *open) {
    int n = 0;
    for (Token *i = (Token *)open + 1; i < open->match; i = next_comma(i, open->match) + 1)
        n++;
    return n;
}

// Whether the name at token i may refer to this function. A variable, or a function of the program, may have
// the same name as a function in this back end's headers.
static bool may_mean(Unit *u, Token *i, const Function *f) {
    const Token *open = kind(i + 1) == '<' ? skip_angles(i + 1, NULL) : i + 1;
    if (!open || kind(open) != '(') // the address of a function, or a variable
        return !is_ours(i) && !is_ours(f->name) && kind(i + 1) != '[';
    if (is_ours(i))
        return is_ours(f->name);
    const Token *around = f->name;
    while (kind(around) != '{' && kind(around) != END)
        around = skip_back(around);
    // A function of the program hides those in classes and namespaces of this back end. But the arguments may
    // name the namespace: sync(block)
    Token *own = only_function(u, i);
    return !is_ours(f->name) || is_member(i) || kind(i - 1) == SCOPE || kind(around) == END || !own ||
           count_arguments(own + 1) != count_arguments(open);
}

// The last token of the loops around the next token: those up to here end at `end`. What a lambda or a local
// class contains may be called in a loop.
static const Token *end_of_loops(Token *i, const Token *body, const Token *end) {
    const bool lambda = kind(i) == '[' && !ends_expression(i - 1) && kind(i - 1) != '[' && kind(i + 1) != '[';
    const Token *last = is_one_of(i, " for while do ") ? last_of(i) : i;
    if (!last || (!is_ours(i) && (lambda || is_one_of(i, " struct class union "))))
        last = body->match;
    return last > end ? last : end;
}

// True if the program has a function of this name.
static bool is_own(Unit *u, const Token *name) {
    const Function *f = first_function(u, name);
    while (f && (is_ours(f->name) || f->name->system))
        f = named(name, f->next);
    return f;
}

// True if a variable of this name, int x = …, is declared above in the same block or around it.
static bool is_local_variable(const Token *i, const Token *body) {
    for (const Token *t = body + 1; t <= i && kind(i + 1) != '('; t++)
        if (same_word(t, i) && kind(t - 1) == IDENT && !is_one_of(t - 1, statement_words) &&
            kind(t + 1) < IDENT && strchr("=;,[{", kind(t + 1)) && enclosing((Token *)t)->match >= i)
            return true;
    return false;
}

static unsigned searches; // by waits_elsewhere()

// Looks for a wait in the body of a function and in the functions that are called there. Returns the name or
// the word that says why threads may have to wait; null if they do not. `again`: the body is in a loop;
// atomics that are not do not wait.
static const Token *find_wait(Unit *u, const Token *parameters, Token *body, bool in_kernel, bool again) {
    const Token *loops = again ? body->match : body;
    for (Token *i = body, *end = body->match; i < end; i++) {
        again = i < loops;
        loops = end_of_loops(i, body, loops);
        if (kind(i) == '<' && run(i, 1) == 3)
            return i;
        if (kind(i) != IDENT ||
            (in_kernel && (is_barrier(i) || is_lanes(i - 2) || (is(i - 2, "void") && kind(i + 1) == ';'))) ||
            (is_ours(i) && (is(i, "count_atomic") || (!again && is(i, "atomic_without_effect")))))
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
            if (call && again && kind(close - 2) == ',' && kind(close - 1) == NUMBER &&
                *close[-1].text == '0')
                return i;
            continue;
        }
        if (call && !i->system && !is_ours(i) && !is_member(i) && is_parameter(i, parameters))
            return i;
        Function *f = first_function(u, i);
        if (is_own(u, i) && is_local_variable(i, body))
            continue;
        if (!f && call && !i->system && !is_ours(i) && !is_member(i) &&
            (kind(i - 1) != IDENT || is_one_of(i - 1, statement_words)) && !is_of_library(u, i) &&
            !is_type(u, i))
            return i;
        for (; f; f = named(i, f->next)) {
            const unsigned search = 2 * searches + (again || !call || f->active);
            if ((f->seen && f->seen % 2 >= search % 2) || f->name->system || !may_mean(u, i, f))
                continue;
            f->seen = search;
            Token *open = f->name + 1;
            for (const Token *t = open; t < open->match && !is_ours(t); t++)
                if (is(t, "volatile"))
                    return i;
            f->active++;
            const Token *wait = find_wait(u, open, f->body, false, search % 2);
            f->active--;
            if (wait)
                return i;
        }
    }
    return NULL;
}

// The word because of which the threads of a kernel may wait elsewhere than at its barriers, or null
const Token *waits_elsewhere(Unit *u, const Token *parameters, Token *body) {
    searches++;
    const Token *found = find_wait(u, parameters, body, true, false);
    for (size_t n = 0; found && n < sizeof functions / sizeof *functions; n++)
        for (Function *f = functions[n]; f; f = f->next) // some were marked before they were understood
            f->seen = f->seen / 2 == searches ? 0 : f->seen;
    return found;
}

// True if the program declares nothing of the name of one of this back end's functions.
static bool is_only_ours(const Unit *u, const Token *name) {
    for (const Token *i = u->begin; i < u->end; i++)
        if (same_word(i, name) && !is_ours(i) &&
            (kind(i + 1) != '(' || (kind(i - 1) == IDENT && !is_one_of(i - 1, statement_words))))
            return false;
    return true;
}

// Atomics in the body of a kernel, but not in a loop, are told that they are no polls.
void mark_atomics(Unit *u, Token *body) {
    const Token *loops = body;
    for (const Token *i = body; i < body->match; i++)
        loops = is(i, "goto") ? body->match : loops;
    for (Token *i = body; i < body->match; loops = end_of_loops(i++, body, loops))
        if (i > loops && (is_quick_atomic(i) || is_one_of(i, " atomicCAS atomicExch ")) && !is_ours(i) &&
            kind(i + 1) == '(' && is_only_ours(u, i))
            insert_before(u, i[1].match, ", nullptr, -1");
}

// True if the function may change a variable that is given to it as an argument: the one with this number,
// from 0, or any of them (-1).
bool may_take_reference(Unit *u, const Token *name, int number) {
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
    for (; f; f = named(name, f->next)) {
        Token *i = f->name + 2, *close = f->name[1].match, *end = next_comma(i, close);
        for (int n = number; n > 0 && end < close; n--, end = next_comma(i, close))
            i = end + 1;
        for (end = number < 0 ? close : end; i < end; i++)
            if (kind(i) == '&')
                return true;
    }
    return false;
}

// True if all of the program's functions of this name are constant members of classes, and no member is
// mutable.
bool is_constant_member(Unit *u, const Token *name) {
    bool found = false;
    for (Function *f = first_function(u, name); f; f = named(name, f->next)) {
        if (f->name->system || is_ours(f->name))
            continue;
        if (has_mutable || !is(f->name[1].match + 1, "const"))
            return false;
        found = true;
    }
    return found;
}

static const char index_words[] = " threadIdx blockIdx thread_rank this_thread_block asm __asm__ ";

// The { of the function around this token; null if there is none
static const Token *body_around(const Token *i) {
    const Token *body = NULL;
    for (; kind(i) != END && !(kind(i) == '{' && is(i - 2, "namespace")); i = skip_back(i))
        if (kind(i) == '{' && (kind(i - 1) == ')' || is_one_of(i - 1, " const noexcept override final ")))
            body = i; // not of a class or a namespace
    return body;
}

// True if the function synchronises threads. Then its calls have been expanded.
static bool is_expanded(const Token *body) {
    for (const Token *t = body; t < body->match; t++)
        if (is_one_of(t, " __syncthreads sync ") ||
            (kind(t) == IDENT && t->length > 5 && memcmp(end_of(t) - 5, "_sync", 5) == 0))
            return true;
    return false;
}

// True if it can only be called by its name: is_quiet() looks at it.
static bool is_free(Unit *u, const Token *body) {
    const Token *name = kind(body - 1) == ')' ? body[-1].match - 1 : body;
    const Token *f = kind(name) == IDENT ? free_function(u, name) : NULL;
    return f && find_body((Token *)f + 1) == body;
}

static bool knows_index, has_shared;

static void find_indices(Unit *u) {
    static bool found;
    for (const Token *i = u->begin; i < u->end && !found; i++) {
        if (is(i, "__global__")) {
            while (i < u->end && !strchr(";{", kind(i)))
                i++;
            i = kind(i) == '{' ? i->match : i;
        }
        const bool index = is_one_of(i, index_words);
        if (i->system || is_ours(i) || (!index && !is(i, "__shared__")))
            continue;
        const Token *body = body_around(i);
        if (!body || !is_expanded(body)) {
            has_shared |= !index;
            knows_index |= index && !(body && is_free(u, body));
        }
    }
    found = true;
}

// True if a function that does not show as a call, such as an operator or a constructor, may ask for the
// index of the thread that calls it, or of its block.
bool functions_know_thread(Unit *u) {
    find_indices(u);
    return knows_index;
}

// True if a variable in shared memory is declared outside of kernels.
bool has_file_shared(Unit *u) {
    find_indices(u);
    return has_shared;
}

bool is_atomic(const Token *i) {
    return kind(i) == IDENT && i->length > 6 && strncmp(i->text, "atomic", 6) == 0;
}

// Functions of libraries that compute a value from their arguments
bool is_computation(const Token *i) {
    return is_one_of(
        i,
        " sqrtf sqrt rsqrtf rsqrt fabsf fabs abs min max fminf fmaxf fmin fmax expf exp exp2f logf log log2f"
        " powf pow sinf cosf tanf sin cos tan sincosf tanhf tanh atan2f atan2 floorf floor ceilf ceil"
        " roundf rintf fmodf fmod fmaf fma hypotf hypot copysignf erff __expf __logf __sinf __cosf"
        " __fdividef __powf __ldg __fsqrt_rn __frcp_rn __saturatef make_float2 make_float3 make_float4"
        " make_int2 make_int3 make_int4 make_uchar4 make_double2 ");
}

// True if nothing that is called here can ask for the thread's index. Operators and constructors do not show
// as calls: functions_know_thread() is about them. Atomics do not ask, but their order matters.
bool is_quiet(Unit *u, const Token *i, const Token *last, bool *vector) {
    static int depth;
    for (; i < last; i++) {
        *vector &= !is_atomic(i);
        if (depth > 0 && is_one_of(i, index_words))
            return false;
        if (kind(i + 1) != '(' || is_atomic(i) || is_lanes(i - 2) ||
            !(kind(i) == '>' || kind(i) == ']' || (kind(i) == ')' && kind(i + 2) == '*') ||
              (kind(i) == IDENT && !is_one_of(i, statement_words) && !is_one_of(i, type_words))))
            continue;
        Token *f = kind(i) == IDENT && !is_member(i) ? free_function(u, i) : NULL;
        depth++;
        const bool quiet = f ? depth < 8 && is_quiet(u, find_body(f + 1), find_body(f + 1)->match, vector)
                             : is_computation(i) && !is_member(i) && !is_own(u, i);
        depth--;
        if (!quiet)
            return false;
    }
    return true;
}
