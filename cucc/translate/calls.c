// SPDX-License-Identifier: MIT
// Which functions a kernel calls: whether one may wait for other threads, or asks for the index of its thread
#include "translate.h"

// A function with a body. There may be several of a name: overloads, and members of classes.
typedef struct {
    Token *name, *open, *body;
    bool seen; // it and all functions that it calls do not wait, or are being looked at
} Function;

static Function *functions;
static size_t function_count;

static int compare_words(const Token *a, const Token *b) {
    return a->length != b->length ? (a->length < b->length ? -1 : 1) : memcmp(a->text, b->text, a->length);
}

static int compare_functions(const void *left, const void *right) {
    const Function *a = left, *b = right;
    const int order = compare_words(a->name, b->name);
    return order ? order : a->name < b->name ? -1 : a->name > b->name;
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
        PUSH(functions, function_count, (Function){i, i + 1, body, false});
    }
    if (function_count)
        qsort(functions, function_count, sizeof *functions, compare_functions);
}

// The first function of this name; null if there is none. The others follow it.
static Function *first_function(Unit *u, const Token *name) {
    if (!functions) {
        functions = grow(NULL, 1, sizeof *functions);
        find_functions(u);
    }
    size_t low = 0, high = function_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (compare_words(functions[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < function_count && same_word(functions[low].name, name) ? &functions[low] : NULL;
}

bool is_ours(const Token *i) { // in a header of cucc
    return memmem(i->file->name, i->file->length, "/cuda_cpu/", 10) != NULL ||
           memmem(i->file->name, i->file->length, "/cooperative_groups", 19) != NULL;
}

// The name of the only function of this name; null if there is none, or several, or it is of a library
Token *only_function(Unit *u, const Token *name) {
    Token *found = NULL;
    for (const Function *f = first_function(u, name);
         f && f < functions + function_count && same_word(f->name, name); f++) {
        if (is_ours(f->name))
            continue;
        if (found || f->name->system)
            return NULL;
        found = f->name;
    }
    return found;
}

void forget_functions(void) { // of a text that another one replaces
    functions = NULL;
    function_count = 0;
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
        const Token *start = i;
        while (kind(start - 1) != ';' && kind(start - 1) != '}' && kind(start - 1) != '{' &&
               kind(start - 1) != END)
            start--;
        if (kind(i + 1) == ';' && is(start, "typedef"))
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

// True for what a kernel may be split at: a barrier, or a warp operation that expand.c has written
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
        around = closes(around) ? around->match - 1 : around - 1;
    // A function of the program hides those in classes and namespaces of this back end.
    return !is_ours(f->name) || is_member(i) || kind(i - 1) == SCOPE || kind(around) == END ||
           !only_function(u, i);
}

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
        for (; f && f < functions + function_count && same_word(f->name, i); f++) {
            if (f->seen || f->name->system || !may_mean(u, i, f))
                continue;
            f->seen = true;
            for (const Token *t = f->open; t < f->open->match && !is_ours(t); t++)
                if (is(t, "volatile"))
                    return i;
            if (find_wait(u, f->open, f->body, false))
                return i;
        }
    }
    return NULL;
}

// The word in the kernel's body because of which its threads may wait at other places than its own
// __syncthreads(), or null
const Token *waits_elsewhere(Unit *u, const Token *parameters, Token *body) {
    bool *before = grow(NULL, function_count + 1, sizeof *before);
    const size_t count = function_count;
    for (size_t n = 0; n < count; n++)
        before[n] = functions[n].seen;
    const Token *found = find_wait(u, parameters, body, true);
    for (size_t n = 0; found && n < function_count; n++) // some were marked before they were understood
        functions[n].seen = n < count && before[n];
    free(before);
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
    for (; f < functions + function_count && same_word(f->name, name); f++)
        for (const Token *i = f->open; i < f->open->match; i++)
            if (kind(i) == '&')
                return true;
    return false;
}

// True if the function around this token synchronises threads: then the translator has expanded its calls,
// and operators and constructors do not call it.
static bool is_expanded(const Token *i) {
    const Token *body = NULL;
    for (; kind(i) != END && !(kind(i) == '{' && is(i - 2, "namespace"));
         i = closes(i) ? i->match - 1 : i - 1)
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

static bool is_atomic(const Token *i) {
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

// True for blockDim and gridDim, and for a variable that was assigned an expression with one of them above.
static bool is_number_of_threads(const Token *i) {
    for (const Token *t = i; kind(i) == IDENT && t > i - 1000 && kind(t) != END && !is(t, "__global__"); t--)
        for (const Token *v = t + 1; t < i && same_word(t, i) && kind(t + 1) == '=' && kind(v) != ';'; v++)
            if (is_one_of(v, " blockDim gridDim "))
                return true;
    return is_one_of(i, " blockDim gridDim ");
}

// True for a loop whose index grows by the number of threads of the block or grid, or by another step in a
// loop with atomics. Neighbouring threads then read neighbouring elements: if each thread executed the whole
// loop before the next thread, each would load the same cache lines again. `atomics`: only loops with atomics
// count.
bool is_strided(Token *i, Token *last, bool atomics) {
    Token *header = i + 1, *body = kind(header) == '(' ? header->match + 1 : last;
    bool known = false, stride = false;
    Token *test = is(i, "for") ? statement_end(header + 1) + 1 : header + 1;
    for (Token *t = test; t < body - 1 && kind(t) != ';'; t++) // a thread that has ended evaluates it again
        if (assigns(t) ||
            (kind(t) == '&' && run(t, 1) == 1 && !ends_expression(t - 1) && kind(t - 1) != '&') ||
            (kind(t) == '(' && kind(t - 1) == IDENT && !is_one_of(t - 1, " min max ")))
            return false;
    for (const Token *t = is(i, "for") ? statement_end(header + 1) : body; t < last; t++) {
        const bool step =
            kind(t) == '+' && kind(t + 1) == '=' && kind(t - 1) == IDENT && (t < body || is(i, "while"));
        stride |= step;
        known |= is_atomic(t);
        for (const Token *s = t; step && !atomics && s < last && kind(s) != ';' && s != header->match; s++)
            known |= is_number_of_threads(s);
        if (is_one_of(t, " return break continue "))
            return false;
    }
    return known && stride && is_one_of(i, " for while ");
}
