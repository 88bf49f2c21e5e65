// SPDX-License-Identifier: MIT
/*
 * Two forms that a compiler can vectorise over the threads of a row
 *
 * Guards: the threads for which a condition is true are the bounds of the loops inside.
 *     if (i < n) c[i] = a[i] + b[i];       for each run of threads with i < n: { … }
 *     if (i >= n) return; …                the same, with the rest of the kernel
 *
 * Loops in chunks: a loop without barriers is executed by a few neighbouring threads together, one iteration
 * after the other, so that the loop over threads is the innermost one.
 *     for (int j = 0; j < n; j++)          for each chunk of threads: for (int j = 0; j < n; j++)
 *         sum += m[j] * x[j * n + i];          <for the threads of the chunk> sum += …
 *
 * If a thread may leave the loop before others (masked), it does nothing useful until the last one of its
 * chunk has left it too. So such a loop may only compute: variables that are used later keep their values.
 */
#include "plan.h"

// ---- guards ----

static Token *end_of_term(Token *i, const Token *end, int operator) {
    while (i < end && !(kind(i) == operator&& run(i, 1) == 2))
        i = skip(i);
    return i;
}

// The only axis along which the value grows, by one; 0 if it is the same in all threads, -1 if it is unknown
static int axis_of(LoopPlan *p, Token *i, Token *end) {
    int axis = 0;
    for (int a = 'x'; a <= 'z'; a++) {
        const Growth growth = growth_of(p, i, end, a);
        if (growth == UNKNOWN || (growth == BY_ONE && axis))
            return -1;
        axis = growth == BY_ONE ? a : axis;
    }
    return axis;
}

// True for a part of a condition which, if it is true (or false) for the first and last thread of a block, or
// of a run in a row, is so for all: a comparison of a constant with an index that grows by one along one
// axis. Appends the index and the axis.
static bool is_monotonic(LoopPlan *p, Token *i, Token *end, Text *indices, char **axes) {
    const Token *culprit;
    if (kind(i) == '(' && i->match + 1 == end)
        return is_monotonic(p, i + 1, i->match, indices, axes);
    for (const Token *t = i; t < end; t++)
        if (assigns(t))
            return false;
    if (i == end || !is_same(p, i, end, true, &culprit) || converts(p, i, end))
        return false;
    if (axis_of(p, i, end) == 0)
        return true;
    for (Token *t = i; t < end; t = skip(t)) {
        const bool two = kind(t) == OPERATOR && strchr("<>", t->text[0]) && t->length == 2;
        if (!two && ((kind(t) != '<' && kind(t) != '>') || run(t, 1) != 1))
            continue;
        const int left = axis_of(p, i, t), right = axis_of(p, t + 1, end);
        append_filled(indices, " cu_v[$n] = (long long)($x);", "n", format("%d", (int)strlen(*axes)), "x",
                      left > 0 ? spelling(i, t) : spelling(t + 1, end));
        *axes = format("%s%c", *axes, left > 0 ? left : right);
        return (left > 0 && right == 0) || (left == 0 && right > 0);
    }
    return false;
}

bool is_guard(const Statement *s) {
    return s->form == GUARD_IF || s->form == GUARD_RETURN;
}

// True if the guard's condition is a list of such comparisons. Appends their indices.
bool is_good_guard(LoopPlan *p, const Statement *s, Text *indices, char **axes) {
    Token *i = s->first + 2, *end = s->first[1].match, *next;
    for (const int operator= s->form == GUARD_IF ? '&' : '|'; i < end; i = next + 2) {
        next = end_of_term(i, end, operator);
        if (!is_monotonic(p, i, next, indices, axes))
            return false;
    }
    return true;
}

static int times_tried(const LoopPlan *p, const Token *form) {
    int count = 0;
    for (int n = 0; n < p->how.tried_count; n++)
        count += p->how.tried[n] == form;
    return count;
}

// Whether the statement is a guard: `if` at the end of the kernel, or one that returns
StatementForm guard_form(const LoopPlan *p, Token *i, const Token *last, const Token *end) {
    Token *inside = kind(i + 1) == '(' ? i[1].match + 1 : i;
    if (p->barriers || p->how.no_guards || !is(i, "if") || times_tried(p, i) || inside == i ||
        enclosing(i) != p->tail)
        return PLAIN;
    if (kind(inside) == '{' ? is(inside + 1, "return") && kind(inside + 2) == ';' && inside + 3 == last
                            : is(inside, "return") && inside + 1 == last)
        return GUARD_RETURN;
    for (const Token *t = inside; t < last; t++)
        if (is(t, "else") && last_of(inside) < t)
            return PLAIN;
    return last + 1 == end ? GUARD_IF : PLAIN;
}

// ---- loops in chunks ----

// True if every / of the loop is a division of floating-point numbers: idle threads must not divide by zero.
static bool divides_floats(LoopPlan *p, const Token *i) {
    const Variable *v = variable_at(p, i + 1);
    return kind(i + 1) == NUMBER ? memchr(i[1].text, '.', i[1].length) != NULL
                                 : v && !v->parameter && is_one_of(v->specifiers_end - 1, " float double ");
}

// True if the name was declared in the loop, as a number.
static bool is_of_loop(const Token *loop, Token *name) {
    for (Token *t = (Token *)loop; t <= name; t++)
        if (same_word(t, name) && (is_one_of(t - 1, number_words) ||
                                   (kind(t - 1) == ',' && is_one_of(statement_begin(t), number_words))))
            return true;
    return false;
}

// True if nothing happens when a thread that has left the loop evaluates this token of it: it accesses no
// memory, calls no function of the program, does not divide by zero, and changes no variable outside of the
// kernel.
static bool only_computes(LoopPlan *p, const Token *loop, Token *i) {
    const Variable *v = variable_at(p, i);
    if (kind(i) == IDENT && !v && (assigns(i + 1) || run(i - 1, -1) == 2) && !is_of_loop(loop, i))
        return false;
    if (kind(i) == IDENT && kind(i + 1) == IDENT && !is_one_of(i, number_words) &&
        !is_one_of(i, " const else "))
        return false; // declares an object of an unknown type
    if (kind(i) == IDENT && kind(i + 1) == '(' && !is_one_of(i, statement_words) &&
        !is_one_of(i, number_words) && !is_computation(i))
        return false;
    if ((kind(i) == '*' || kind(i) == '&') && run(i, -1) == 1 && run(i, 1) == 1 && !assigns(i))
        return (ends_expression(i - 1) || kind(i - 1) == NUMBER) &&
               !(kind(i - 1) == ')' && is_one_of(i - 2, number_words)); // binary, and no (float)*p
    return kind(i) != '[' && kind(i) != ARROW && kind(i) != '%' && kind(i) != STRING && kind(i) != SCOPE &&
           !(v && v->is_class) && !(kind(i) == '>' && kind(i + 1) == '(' && kind(i - 1) != IDENT) &&
           (kind(i) != '/' || divides_floats(p, i));
}

// True if the loop changes a variable of the kernel that is a number, and nothing else of the kernel's.
static bool changes_numbers(LoopPlan *p, Token *i, const Token *last, bool floats) {
    bool found = false;
    for (Token *t = i; t < last; t++) {
        const Variable *v = variable_at(p, t);
        if (!v || v->name >= i || v->is_memory || use_of(p, v, t) == READ)
            continue;
        if (v->parameter || v->is_pointer || v->is_reference || v->is_array || v->is_auto ||
            !is_one_of(v->specifiers_end - 1, " int unsigned float double bool ") ||
            use_of(p, v, t) == EXPOSURE)
            return false;
        found |= !floats || is_one_of(v->specifiers_end - 1, " float double ");
    }
    return found;
}

// for (int k = 0; k < 3; k++) …, also with such loops in it: the compiler unrolls them.
static bool is_short(Token *i, const Token *last) {
    for (; i < last; i++) {
        Token *test = is(i, "for") ? statement_end(i + 2) + 1 : i, *end = statement_end(test);
        bool few = !is_one_of(i, " for while do ");
        for (; test < end; test++)
            few |= kind(test) == '<' && kind(test + 1) == NUMBER && test[1].length == 1;
        if (!few)
            return false;
    }
    return true;
}

// Whether a loop without barriers is executed in chunks. That is tried in the form with the least to do for
// each thread: all threads leave it together; some leave it earlier; each evaluates its condition.
StatementForm chunk_form(LoopPlan *p, Token *i, Token *last) {
    static const char refused[] =
        " continue return goto switch while do asm try static __shared__ volatile new "
        "delete throw operator struct class union enum auto typedef using ";
    const int tried = times_tried(p, i) + is(i, "while");
    Token *body = kind(i + 1) == '(' ? i[1].match + 1 : i;
    bool vector = true, leaves = tried > 0, nested = false;
    if (p->how.no_chunks || tried > 1 || !is_one_of(i, " for while ") || body == i || is_short(i, last) ||
        !is_quiet(p->u, i, last, &vector) || !vector || functions_know_thread(p->u))
        return PLAIN;
    for (Token *t = i + 1; t < last; t++) {
        leaves |= is(t, "break");
        nested |= is(t, "for");
        if (is_one_of(t, refused) || is_lanes(t) || (kind(t) == '[' && kind(t + 1) == '['))
            return PLAIN;
    }
    for (Token *t = i + 1; t < last && leaves; t++)
        if (nested || !only_computes(p, i, t))
            return PLAIN;
    if (!changes_numbers(p, i, last, leaves))
        return PLAIN;
    return tried ? CHUNK_OWN_TEST : leaves ? CHUNK_MASKED : CHUNK;
}

bool is_chunk(const Statement *s) {
    return s->form == CHUNK || s->form == CHUNK_MASKED || s->form == CHUNK_OWN_TEST;
}

bool is_changed_in(LoopPlan *p, const Statement *s, const Variable *v) {
    for (Token *t = s->first; t < s->last; t++)
        if (variable_at(p, t) == v && use_of(p, v, t) != READ)
            return true;
    return false;
}

// True if the variable has to keep its value when its thread has left the masked loop.
bool is_used_later(LoopPlan *p, const Statement *loop, const Variable *v) {
    const Token *begin = loop->last + 1;
    for (const Statement *s = p->statements; s < p->end; s++)
        if (s != loop && s->kind == CONTROL && !is(s->first, "if") && s->first <= loop->first &&
            loop->last <= s->last && s->first > v->name && s->first < begin)
            begin = s->first; // an iteration of a loop around this one comes later
    for (const Token *t = begin; t < v->end; t++)
        if ((t < loop->first || t > loop->last) && variable_at(p, t) == v)
            return true;
    return false;
}

static void check_chunk(LoopPlan *p, const Statement *s) {
    for (Token *i = s->first; i < s->last; i++) {
        const Variable *v = variable_at(p, i);
        const bool masked_index = s->form == CHUNK_MASKED && v && v->uniform && use_of(p, v, i) != READ;
        if (v && v->name < s->first && (masked_index || v->keeping == OBJECT_OF_THREAD))
            try_again(p, s->first);
    }
}

static bool uses_object(LoopPlan *p, const Token *i, const Token *end) {
    for (; i < end; i++) {
        const Variable *v = variable_at(p, i);
        if (v && v->is_class)
            return true;
    }
    return false;
}

// Gives up a guard whose condition uses an object of a class with functions. The condition is evaluated with
// copies of what it uses, and of what its index variables use, and a copy constructor might do anything.
static void check_copies(LoopPlan *p, const Statement *s) {
    bool objects = uses_object(p, s->first, s->first[1].match);
    for (const Variable *v = p->variables; v < p->variables + p->count; v++)
        if (v->keeping == COMPUTED_AGAIN && v->name < s->first)
            objects |= uses_object(p, v->init, v->after);
    if (objects)
        try_again(p, s->first);
}

// Gives up guards and chunks that would be wrong, or slow, with the way in which variables are kept
// (Keeping).
void check_forms(LoopPlan *p) {
    const bool early = returns_early(p);
    bool guards = false, chunks = false;
    for (const Statement *s = p->statements; s < p->end; s++) {
        guards |= is_guard(s);
        chunks |= is_chunk(s);
        if (is_chunk(s))
            check_chunk(p, s);
        if (is_guard(s))
            check_copies(p, s);
    }
    if (chunks && early && !p->why) { // threads that have returned would have to be left out of loops
        p->how.no_chunks = p->again = true;
        refuse(p, p->kernel.body, "");
    }
    for (const Variable *v = p->variables; v < p->variables + p->count && guards && !chunks; v++)
        if (v->keeping == COPY_OF_THREAD || v->keeping == OBJECT_OF_THREAD)
            try_again(p, NULL); // storing a value for each thread takes longer than the guard saves
}
