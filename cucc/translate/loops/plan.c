// SPDX-License-Identifier: MIT
// Decides whether a kernel becomes loops: reads its statements and checks them. loops.h says what is refused.
#include "plan.h"

// Records why the kernel stays as it is; the first reason counts. Returns false.
bool refuse(LoopPlan *p, const Token *where, const char *why) {
    if (!p->why) {
        p->where = where;
        p->why = why;
    }
    return false;
}

// Gives up this attempt to divide the kernel. The next one makes less of this loop or guard; with null, it
// has no guards.
void try_again(LoopPlan *p, const Token *form) {
    if (p->why)
        return;
    p->again = true;
    if (!form)
        p->how.no_guards = true;
    else if (p->how.tried_count < (int)(sizeof p->how.tried / sizeof *p->how.tried))
        p->how.tried[p->how.tried_count++] = form;
    else
        p->how.no_guards = p->how.no_chunks = true;
    refuse(p, p->kernel.body, "");
}

// ---- statements ----

// The last token of the statement that a condition controls; null if it begins with an attribute: [[likely]]
static Token *last_of_inside(Token *i) {
    return kind(i) == '[' ? NULL : last_of(i);
}

// The last token of the statement; null if it has an unknown form
Token *last_of(Token *i) {
    Token *last;
    if (kind(i) == '{')
        return i->match;
    if (is(i, "if")) {
        i += is(i + 1, "constexpr") ? 2 : 1;
        if (kind(i) != '(' || !(last = last_of_inside(i->match + 1)))
            return NULL;
        return is(last + 1, "else") ? last_of_inside(last + 2) : last;
    }
    if (is_one_of(i, " for while switch "))
        return kind(i + 1) == '(' ? last_of_inside(i[1].match + 1) : NULL;
    if (is(i, "do")) {
        last = last_of_inside(i + 1);
        return last && is(last + 1, "while") && kind(last + 2) == '(' && kind(last[2].match + 1) == ';'
                   ? last[2].match + 1
                   : NULL;
    }
    if (is_one_of(i, " case default else goto try catch "))
        return NULL;
    last = statement_end(i);
    return kind(last) == ';' ? last : NULL;
}

static bool is_block_barrier(const Token *i) {
    return is(i, "__syncthreads");
}

// Whether a token from i to last satisfies the predicate what()
static bool has(bool (*what)(const Token *), const Token *i, const Token *last) {
    while (i <= last && !what(i))
        i++;
    return i <= last;
}

// True if there is a break or continue of a loop around these tokens.
static bool jumps_out(Token *i, Token *last, bool in_switch) {
    while (i <= last) {
        Token *end = is_one_of(i, " for while do switch ") ? last_of(i) : NULL;
        if (end && is(i, "switch") && jumps_out(i + 1, end, true))
            return true;
        if (is(i, "continue") || (is(i, "break") && !in_switch))
            return true;
        i = end ? end + 1 : i + 1;
    }
    return false;
}

static Statement *new_statement(LoopPlan *p, StatementKind kind, Token *first, Token *last) {
    const bool full = p->end == p->statements + MAX_STATEMENTS;
    Statement *s = full ? grow(NULL, 1, sizeof *s) : p->end++;
    *s = (Statement){.kind = kind, .first = first, .last = last, .region = -1};
    if (full)
        refuse(p, first, "it has too many statements");
    return s;
}

static Statement *read_sequence(LoopPlan *p, Token *i, Token *end, const Token *scope);

// The statements below a branch or loop: those of the block, or the only one
static Statement *read_inside(LoopPlan *p, Token *i, Token *last, const Token *scope, Token **block) {
    *block = kind(i) == '{' ? i : NULL;
    return *block ? read_sequence(p, i + 1, i->match, i->match) : read_sequence(p, i, last + 1, scope);
}

static bool uses_memory(const Token *i) {
    return kind(i) == '[' || kind(i) == ARROW || (kind(i) == '*' && !ends_expression(i - 1));
}

// Loops over threads act as a barrier beside a branch and between two iterations. One may be missing there.
static void check_ends(LoopPlan *p, const Statement *control) {
    bool barriers = true, begins = false, ends = false, crossed = false;
    for (const Statement *s = control->inside; s; s = s->next) {
        const bool uses = s->kind == IN_REGION && has(uses_memory, s->first, s->last - 1),
                   waits = s->kind == BARRIER || s->kind == CONTROL;
        barriers &= s->kind == BARRIER;
        begins |= uses && !crossed;
        ends = uses || (ends && !waits);
        crossed |= waits;
    }
    if (!has(is_block_barrier, control->first, control->last))
        return; // lanes that exchange values are about to wait for each other
    if (is(control->first, "if") ? barriers && !control->other
                                 : begins && ends && kind(control->first) != '{')
        refuse(p, control->first,
               is(control->first, "if") ? "a branch has nothing but a barrier"
                                        : "there may be no barrier between two iterations of a loop");
}

static void read_control(LoopPlan *p, Statement *s) {
    Token *i = s->first, *body = i;
    const Token *const tail = p->tail;
    p->tail = NULL;
    if (is(i, "do")) {
        body = i + 1;
        s->header = last_of(body) + 2;
    } else if (kind(i) != '{') {
        s->header = is(i + 1, "constexpr") ? i + 2 : i + 1;
        body = s->header->match + 1;
    }
    if (is(i, "for")) {
        Token *semicolon = statement_end(s->header + 1);
        if (kind(semicolon) != ';') {
            refuse(p, i, "a barrier is in a loop of an unknown form");
            return;
        }
        add_variables(p, s->header + 1, semicolon, s->last + 1, true);
    }
    Token *last = last_of(body);
    if (s->form == CHUNK_MASKED)
        s->inside = new_statement(p, IN_REGION, body, last);
    else
        s->inside = read_inside(p, body, last, last, &s->block);
    if (is(i, "if") && is(last + 1, "else")) {
        s->else_word = last + 1;
        s->other = read_inside(p, last + 2, s->last, s->last, &s->else_block);
    }
    check_ends(p, s);
    p->tail = tail;
}

// if (i < n) … at the end of the kernel, or if (i >= n) return; and the statements up to `end`
static void read_guard(LoopPlan *p, Statement *s, Token *end) {
    Token *inside = s->first[1].match + 1;
    s->kind = CONTROL;
    s->header = s->first + 1;
    if (s->form == GUARD_RETURN) {
        Token *rest = s->last + 1;
        s->last = end - 1;
        s->block = rest < end ? s->first : NULL; // nothing to add around the statements
        s->inside = rest < end ? read_sequence(p, rest, end, end) : NULL;
    } else {
        p->tail = kind(inside) == '{' ? inside : p->tail;
        s->inside = read_inside(p, inside, s->last, s->last, &s->block);
    }
}

// True for blockDim and gridDim, and for a variable that was assigned an expression with one of them at most
// 1000 tokens above.
static bool is_number_of_threads(const Token *i) {
    for (const Token *t = i; kind(i) == IDENT && t > i - 1000 && kind(t) != END && !is(t, "__global__"); t--)
        for (const Token *v = t + 1; t < i && same_word(t, i) && kind(t + 1) == '=' && kind(v) != ';'; v++)
            if (is_one_of(v, " blockDim gridDim "))
                return true;
    return is_one_of(i, " blockDim gridDim ");
}

// True for a loop whose index grows by the number of threads of the block or grid, or by another step in a
// loop with atomics (`atomics`: only these count). Neighbouring threads then read neighbouring elements: if
// each thread executed the whole loop before the next thread, each would load the same cache lines again.
static bool is_strided(Token *i, Token *last, bool atomics) {
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

static void read_strided(LoopPlan *p, Statement *s) {
    Token *from = s->first;
    if (is(from, "for")) {
        from = statement_end(from + 2) + 1;
        s->inside = new_statement(p, IN_REGION, s->first + 2, from - 1);
        s->inside->is_declaration = add_variables(p, s->first + 2, from - 1, s->last + 1, false);
    }
    s->kind = CONTROL;
    s->in_step = true;
    s->other = new_statement(p, IN_REGION, from, s->last);
}

// True for struct S { … }; and struct S;
static bool defines_type(const Token *first, const Token *last) {
    const Token *i = first;
    if (!is_one_of(first, " struct class union enum "))
        return false;
    while (i < last && kind(i) != '{' && kind(i) != '=' && kind(i) != '(')
        i++;
    const bool variable =
        i == first + 3 && kind(i - 1) == IDENT && !is(i - 1, "final") && !is(i - 2, "class");
    return i == last ? i == first + 2 : kind(i) == '{' && i->match + 1 == last && !variable;
}

static void read_plain(LoopPlan *p, Statement *s, const Token *scope) {
    static const char declaring[] = // A statement that begins with one of these is a declaration.
        " auto const constexpr volatile register static extern __shared__ struct class union"
        " enum unsigned signed ";
    const int before = p->count;
    s->is_declaration = add_variables(p, s->first, s->last, scope, false);
    if (!s->is_declaration && (is_one_of(s->first, declaring) || is(s->first + 1, "auto")))
        refuse(p, s->first, "it has a declaration of an unknown form");
    for (const Token *t = s->first; t < s->last && s->is_declaration; t++)
        if (is_one_of(t, " __shared__ static constexpr extern "))
            s->kind = OUTSIDE_DECLARATION;
    for (int n = before; n < p->count && s->kind == OUTSIDE_DECLARATION; n++)
        p->variables[n].constant = true;
}

static void read_statement(LoopPlan *p, Statement *s, Token *end, const Token *scope) {
    Token *i = s->first, *last = s->last;
    const bool barrier = has(is_barrier, i, last);
    if (!barrier && (s->form = guard_form(p, i, last, end)) != PLAIN) {
        read_guard(p, s, end);
        return;
    }
    if ((is_one_of(i, " __syncthreads __syncwarp cu_step ") && kind(i + 1) == '(' && i + 2 == i[1].match &&
         i + 3 == last) ||
        (is_lanes(i) && is(i + 2, "meet"))) {
        s->kind = BARRIER;
    } else if (is_lanes(i) && is_barrier(i + 2)) {
        s->gives = true;
    } else if (is_one_of(i, " break continue ") && i + 1 == last) {
        s->kind = JUMP;
    } else if (barrier || jumps_out(i, last, false)) {
        s->kind = CONTROL;
        if (kind(i) == '{' || is_one_of(i, " if for while do "))
            read_control(p, s);
        else
            refuse(p, i,
                   barrier ? "a barrier is in a switch or an expression"
                           : "a break or continue crosses a barrier");
    } else if (is_strided(i, last, p->how.only_atomics)) {
        read_strided(p, s);
    } else if ((s->form = chunk_form(p, i, last)) == CHUNK_OWN_TEST) {
        read_strided(p, s);
    } else if (s->form != PLAIN) {
        s->kind = CONTROL;
        read_control(p, s);
    } else if (is_one_of(i, " typedef using namespace static_assert template ") || defines_type(i, last)) {
        s->kind = OUTSIDE_DECLARATION;
    } else {
        read_plain(p, s, scope);
    }
}

// Reads the statements from token i to `end`. `scope`: the end of the scope of what they declare
static Statement *read_sequence(LoopPlan *p, Token *i, Token *end, const Token *scope) {
    Statement *first = NULL, **link = &first;
    while (i < end && !p->why) {
        Token *last = last_of(i);
        if (!last || last >= end) {
            refuse(p, i, "it has a statement of an unknown form");
            return first;
        }
        Statement *s = *link = new_statement(p, IN_REGION, i, last);
        read_statement(p, s, end, scope);
        link = &s->next;
        i = s->last + 1;
    }
    return first;
}

// ---- conditions ----

// A condition around barriers is executed once for all threads, or once for each warp, so it must be the same
// in them. `end`: of the last statement that is executed once for each warp
static void check_condition(LoopPlan *p, Statement *s, const Token **end) {
    Token *i = s->header + 1;
    if (is(s->first, "for")) { // the initial values were checked with the variables
        LoopPlan probe = {.u = p->u, .kernel = p->kernel};
        if (add_variables(&probe, i, statement_end(i), s->last, true))
            i = statement_end(i) + 1;
    }
    const Token *culprit = i;
    const bool all = p->warps, in_warps = s->first < *end;
    if (!in_warps && is_same(p, i, s->header->match, false, &culprit))
        return;
    if (is_chunk(s)) {
        try_again(p, s->first);
        return;
    }
    p->warps = all || !has(is_block_barrier, s->first, s->last);
    if (!is_same(p, i, s->header->match, false, &culprit) ||
        (!all && !in_warps && jumps_out(s->first, s->last, false)))
        refuse(p, culprit,
               fill("a barrier is in a branch or loop that depends on '$x', which may differ between threads",
                    "x", word_of(culprit)));
    p->warps = all;
    if (all || in_warps)
        return;
    for (Token *t = s->first; t < s->last; t++) {
        const Variable *v = variable_at(p, t);
        if (v && v->uniform && v->name < s->first && use_of(p, v, t) != READ)
            refuse(p, t, fill("only some warps change '$x'", "x", word_of(t)));
    }
    s->by_warps = true;
    *end = s->last;
}

static void check_guard(LoopPlan *p, const Statement *s) {
    Text indices = empty_text();
    char *axes = "";
    if (!is_good_guard(p, s, &indices, &axes))
        try_again(p, s->first);
}

static void check_conditions(LoopPlan *p) {
    const Token *end = p->kernel.body;
    for (Statement *s = p->statements; s < p->end; s++)
        if (is_guard(s))
            check_guard(p, s);
        else if (s->header && !(is(s->first, "if") && is(s->first + 1, "constexpr")))
            check_condition(p, s, &end);
}

// ---- how variables cross barriers ----

// True if a pointer, a reference or a structure that may contain one is used in several regions: it may refer
// to a local variable of another region.
static bool points_across(const LoopPlan *p) {
    bool found = false;
    for (const Variable *v = p->variables; v < p->variables + p->count; v++)
        found |= v->crosses && !v->parameter && (v->is_pointer || v->is_reference || !v->is_plain);
    return found;
}

static Keeping keeping_of(const Variable *v, bool pointed) {
    const bool outside = v->region < 0; // declared outside of regions
    if (outside && v->parameter && v->modified && !v->uniform && !v->is_memory)
        return v->is_exposed ? OBJECT_OF_THREAD : COPY_OF_THREAD;
    if (!outside && pointed && v->is_exposed && !v->crosses && !v->is_reference)
        return OBJECT_OF_THREAD; // so that it outlives the region
    if (outside || !v->crosses)
        return NOT_KEPT;
    if (v->uniform)
        return v->init ? ONE_FOR_ALL : DECLARED_BEFORE;
    if (v->by_index)
        return COMPUTED_AGAIN;
    const bool any_type = v->is_auto && !v->is_plain; // its type is unknown: an operator may change it
    return !v->is_reference && (v->is_array || !v->init || v->is_exposed || any_type) ? OBJECT_OF_THREAD
                                                                                      : COPY_OF_THREAD;
}

// Declares the types of the variables that the type of v depends on.
static void need_type(LoopPlan *p, Variable *v) {
    v->typed = true;
    for (const Token *i = v->init; v->is_auto && i < v->after; i++) {
        Variable *w = variable_at(p, i);
        if (w && !w->typed && w->region >= 0)
            need_type(p, w);
    }
}

static void choose_keeping(LoopPlan *p) {
    for (const Statement *s = p->statements; s < p->end; s++)
        for (const Token *i = s->first; s->kind == OUTSIDE_DECLARATION && i < s->last; i++) {
            const Variable *v = variable_at(p, i);
            if (v && v->region >= 0)
                refuse(p, i, "a declaration outside of regions uses a variable of one");
        }
    const bool pointed = points_across(p);
    for (Variable *v = p->variables; v < p->variables + p->count; v++) {
        // in an inner scope; what belongs to which could be mistaken
        for (const Variable *w = p->variables; w < v; w++)
            if (same_word(w->name, v->name) && v->name < w->end)
                refuse(p, v->name, "two variables have the same name");
        if (v->in_header && !v->uniform)
            refuse(p, v->name, "a barrier is in a loop whose variable differs between threads");
        v->keeping = keeping_of(v, pointed);
        for (Statement *loop = p->statements; loop < p->end; loop++)
            if (loop->in_step && loop->inside && v->region == loop->inside->region &&
                counts_evenly(p, loop, v)) {
                loop->counter = v;
                v->keeping = NOT_KEPT;
            }
        const bool of_thread = v->keeping == COPY_OF_THREAD || v->keeping == OBJECT_OF_THREAD;
        if (v->keeping == NOT_KEPT || v->keeping == COMPUTED_AGAIN || v->parameter)
            continue;
        need_type(p, v);
        if (v->is_reference ? !is_element(p, v, false) : v->is_auto && !is_known(p, v))
            refuse(p, v->name, "a variable with auto or a reference is used on both sides of a barrier");
        if (v->is_class) // it is not known what its functions do
            refuse(p, v->name, "an object of a class with functions is used on both sides of a barrier");
        if (of_thread && v->init && v->is_array && kind(v->init) == '(')
            refuse(p, v->name, "it has a declaration of an unknown form");
    }
}

// ---- whole kernels ----

// Refuses a kernel whose threads may wait elsewhere than at its barriers.
static void check_waits(LoopPlan *p) {
    const Token *where;
    const char *why = why_not_inlined(p->kernel.name, &where);
    if (!why && (where = waits_elsewhere(p->u, p->kernel.parameters, p->kernel.body)))
        why = fill(kind(where) == '<' ? "it launches a kernel"
                                      : "threads may wait in '$x', or it is not known here",
                   "x", word_of(where));
    if (why)
        refuse(p, where, why);
}

static void check_words(LoopPlan *p) {
    for (Token *i = p->kernel.body; i < p->kernel.body->match; i++) {
        if (is_one_of(i, " goto try catch throw decltype typeof __typeof__ __typeof ") &&
            !is(i - 2, "TypeTag")) // inline.c writes TypeTag<decltype(x)>
            refuse(p, i, fill("it has the word $x", "x", word_of(i)));
        if (is(i, "return") && kind(i + 1) != ';')
            refuse(p, i, "it returns a value");
        if (kind(i) == '[' && !ends_expression(i - 1) && kind(i - 1) != '[' && kind(i + 1) != '[')
            refuse(p, i, "it has a lambda");
        if (kind(i) == ')' && kind(i + 1) == '=' && kind(i->match - 1) != IDENT)
            for (const Token *t = i->match; t < i; t++)
                if (kind(t) == '?')
                    refuse(p, i, "it assigns to a conditional expression");
    }
    for (const Token *i = p->kernel.begin; i < p->kernel.body; i++)
        if (is(i, "volatile"))
            refuse(p, i, "it has a volatile parameter");
    check_waits(p);
}

static LoopPlan *new_plan(Unit *u, Kernel kernel, Attempt how) {
    const Token *body = kernel.body;
    LoopPlan *p = grow(NULL, 1, sizeof *p);
    *p = (LoopPlan){.u = u, .kernel = kernel, .how = how, .tail = body};
    p->statements = p->end = grow(NULL, MAX_STATEMENTS, sizeof *p->end);
    p->barriers = has(is_barrier, body, body->match);
    p->warps = p->barriers && !has(is_block_barrier, body, body->match);
    find_joined(p);
    return p;
}

static void read_body(LoopPlan *p) {
    Token *const body = p->kernel.body;
    add_parameters(p);
    p->top = read_sequence(p, body + 1, body->match, body->match);
}

// Divides the kernel into regions. Returns false, with the reason in the plan, if that is not possible.
static bool divide(LoopPlan *p) {
    static void (*const steps[])(LoopPlan *) = {check_words,      read_body,    find_uniform,   choose_axis,
                                                check_conditions, find_regions, choose_keeping, check_forms};
    for (size_t n = 0; n < sizeof steps / sizeof *steps && !p->why; n++)
        steps[n](p);
    return !p->why;
}

// True for a kernel without `return` that has a strided loop (is_strided). It is faster as loops over threads
// also if it has no barriers, because neighbouring threads then use a cache line one after the other.
bool has_strided_loop(Token *body) {
    bool found = false;
    for (Token *i = body + 1, *last; i < body->match && (last = last_of(i)); i = last + 1)
        found |= is_strided(i, last, false);
    for (const Token *i = body; i < body->match; i++)
        found &= !is(i, "return");
    return found;
}

static KernelForm form_of(const LoopPlan *p) {
    bool lanes = p->warps, by_warps = false, chunks = false;
    for (const Statement *s = p->statements; s < p->end; s++) {
        chunks |= is_chunk(s);
        lanes |= is_lanes(s->first) || s->by_warps;
        by_warps |= s->by_warps;
    }
    if (chunks && !p->barriers)
        return IN_CHUNKS;
    return !lanes ? ONE_BODY : p->warps ? PER_WARP : by_warps ? IN_ROWS : ANY_SHAPE;
}

bool loops_are_wanted(const Unit *u) {
    return !u->how->only_fibers || u->how->explain;
}

// Divides the kernel, with less and less of what is only for speed.
static LoopPlan *attempt(Unit *u, Kernel kernel, Attempt how) {
    LoopPlan *p = new_plan(u, kernel, how);
    while (!divide(p) && (p->again || !p->how.no_guards || !p->how.no_chunks)) {
        if (!p->again)
            p->how.no_guards = p->how.no_chunks = true;
        how = p->how;
        free(p->statements);
        free(p);
        p = new_plan(u, kernel, how);
    }
    return p;
}

// True if the kernel has what is faster as loops also without barriers.
static bool is_worthwhile(const LoopPlan *p) {
    for (const Statement *s = p->statements; s < p->end; s++)
        if (s->form != PLAIN)
            return true;
    return p->barriers || p->joined || has_strided_loop(p->kernel.body);
}

LoopPlan *plan_loops(Unit *u, Kernel kernel) {
    if (!loops_are_wanted(u))
        return new_plan(u, kernel, (Attempt){0});
    LoopPlan *p = attempt(u, kernel, (Attempt){0});
    // A strided loop may be the reason, by a variable with auto that is used before it and in it. Only those
    // with atomics are divided then.
    if (p->why && p->barriers)
        p = attempt(u, kernel, (Attempt){.only_atomics = true});
    if (!p->why && is_worthwhile(p)) {
        p->form = form_of(p);
    } else if (!p->barriers) {
        p->why = NULL;
        if (u->how->explain)
            check_waits(p);
    }
    return p;
}

int joined_columns(const LoopPlan *p) {
    return p->form == ONE_BODY || p->form == IN_CHUNKS ? p->joined : 0;
}

int innermost_axis(const LoopPlan *p) {
    return p->form != FIBERS && p->how.along ? p->how.along : 'x';
}

void explain_loops(const LoopPlan *p) {
    const Token *name = p->kernel.name;
    printf("%.*s:%u: %s: %s", (int)name->file->length, name->file->name, (unsigned)name->line, word_of(name),
           p->form != FIBERS ? "split"
           : p->why          ? "fibers"
                             : "no barrier");
    if (p->why)
        printf(": %s (line %u)", p->why, (unsigned)p->where->line);
    printf("\n");
}
