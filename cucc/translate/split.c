// SPDX-License-Identifier: MIT
/*
 * Kernels with barriers as loops
 *
 *     __global__ void k(int *x) {            … {
 *         int i = threadIdx.x;                   <for all threads> { int i = threadIdx.x; x[i]++; }
 *         x[i]++;                      ->        if (fibers) __syncthreads();
 *         __syncthreads();                       <for all threads> { int i = threadIdx.x; x[i] += x[0]; }
 *         x[i] += x[0];                      }
 *     }
 *
 * The statements between two barriers are a region: a loop over the threads of the block. What stands around
 * barriers, loops and branches, is executed once for all threads, so it must depend on nothing that differs
 * between threads. Variables that several regions use are kept for each thread (Keeping in split.h). The same
 * text runs with fibers: then a region's loop is for one thread, and barriers wait (ThreadRange in
 * cuda_cpu/loops.h).
 *
 * Strided loops (is_strided) are split at the end of each iteration, also in a kernel without barriers.
 *
 * A kernel that may not be understood is not split: it runs with fibers. Threads that wait for each other
 * elsewhere than at barriers need them: calls.c looks for that.
 */
#include "split.h"

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

static Node *new_node(Split *s, char kind, Token *first, Token *last) {
    Node *node = grow(NULL, 1, sizeof *node);
    *node = (Node){.kind = kind, .first = first, .last = last, .region = -1};
    if (s->nodes < 8 * MOST)
        s->all[s->nodes++] = node;
    else
        refuse(s, first, "it has too many statements");
    return node;
}

static Node *read_sequence(Split *s, Token *i, Token *end, const Token *scope);

// The statements below a branch or loop: those of the block, or the only one
static Node *read_inside(Split *s, Token *i, Token *last, const Token *scope, Token **block) {
    *block = kind(i) == '{' ? i : NULL;
    return *block ? read_sequence(s, i + 1, i->match, i->match) : read_sequence(s, i, last + 1, scope);
}

static bool uses_memory(const Token *i) {
    return kind(i) == '[' || kind(i) == ARROW || (kind(i) == '*' && !ends_expression(i - 1));
}

// The loops over threads at both sides of a branch, and in two iterations, run as if a barrier were between
// them. That must not hide that one is missing.
static void check_ends(Split *s, const Node *node) {
    bool barriers = true, begins = false, ends = false, crossed = false;
    for (const Node *n = node->inside; n; n = n->next) {
        const bool region = n->kind == 'r', uses = region && has(uses_memory, n->first, n->last - 1);
        barriers &= n->kind == 'b';
        begins |= uses && !crossed;
        ends = uses || (ends && n->kind != 'b' && n->kind != 'c');
        crossed |= n->kind == 'b' || n->kind == 'c';
    }
    if (!has(is_block_barrier, node->first, node->last))
        return; // lanes that exchange values are about to wait for each other
    if (is(node->first, "if") ? barriers && !node->other : begins && ends && kind(node->first) != '{')
        refuse(s, node->first,
               is(node->first, "if") ? "a branch has nothing but a barrier"
                                     : "there may be no barrier between two iterations of a loop");
}

static void read_control(Split *s, Node *node) {
    Token *i = node->first, *body = i;
    if (is(i, "do")) {
        Token *last = last_of(i + 1);
        node->header = last + 2;
        node->inside = read_inside(s, i + 1, last, last, &node->block);
        return check_ends(s, node);
    }
    if (kind(i) != '{') {
        node->header = is(i + 1, "constexpr") ? i + 2 : i + 1;
        body = node->header->match + 1;
    }
    if (is(i, "for")) {
        Token *semicolon = statement_end(node->header + 1);
        Node header = {.first = node->header + 1};
        if (kind(semicolon) != ';') {
            refuse(s, i, "a barrier is in a loop of an unknown form");
            return;
        }
        add_variables(s, &header, semicolon, node->last + 1, true);
    }
    Token *last = kind(body) == '{' ? body->match : last_of(body);
    node->inside = read_inside(s, body, last, last, &node->block);
    if (is(i, "if") && is(last + 1, "else")) {
        node->else_word = last + 1;
        node->other = read_inside(s, last + 2, node->last, node->last, &node->else_block);
    }
    check_ends(s, node);
}

static void read_strided(Split *s, Node *node) {
    Token *from = node->first;
    if (is(from, "for")) {
        from = statement_end(from + 2) + 1;
        node->inside = new_node(s, 'r', node->first + 2, from - 1);
        node->inside->is_declaration = add_variables(s, node->inside, from - 1, node->last + 1, false);
    }
    node->kind = 'c';
    node->in_step = true;
    node->other = new_node(s, 'r', from, node->last);
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

// A statement that begins with one of these is a declaration.
static const char declaring[] =
    " auto const constexpr volatile register static extern __shared__ struct class union"
    " enum unsigned signed ";

// Reads the statements from token i to `end`. `scope`: the end of the scope of what they declare
static Node *read_sequence(Split *s, Token *i, Token *end, const Token *scope) {
    Node *first = NULL, **link = &first;
    while (i < end && !s->why) {
        Token *last = last_of(i);
        if (!last || last >= end) {
            refuse(s, i, "it has a statement of an unknown form");
            return first;
        }
        Node *node = new_node(s, 'r', i, last);
        *link = node;
        link = &node->next;
        const bool barrier = has(is_barrier, i, last);
        if ((is_one_of(i, " __syncthreads __syncwarp cu_step ") && kind(i + 1) == '(' &&
             i + 2 == i[1].match && i + 3 == last) ||
            (is_lanes(i) && is(i + 2, "meet"))) {
            node->kind = 'b';
        } else if (is_lanes(i) && is_barrier(i + 2)) {
            node->gives = true;
        } else if (is_one_of(i, " break continue ") && i + 1 == last) {
            node->kind = 'j';
        } else if (barrier || jumps_out(i, last, false)) {
            node->kind = 'c';
            if (kind(i) == '{' || is_one_of(i, " if for while do "))
                read_control(s, node);
            else
                refuse(s, i,
                       barrier ? "a barrier is in a switch or an expression"
                               : "a break or continue crosses a barrier");
        } else if (is_strided(i, last, s->only_atomics)) {
            read_strided(s, node);
        } else if (is_one_of(i, " typedef using namespace static_assert template ") ||
                   defines_type(i, last)) {
            node->kind = 'd';
        } else {
            const int before = s->count;
            node->is_declaration = add_variables(s, node, last, scope, false);
            if (!node->is_declaration && (is_one_of(i, declaring) || is(i + 1, "auto")))
                refuse(s, i, "it has a declaration of an unknown form");
            for (const Token *t = i; t < last && node->is_declaration; t++)
                if (is_one_of(t, " __shared__ static constexpr extern "))
                    node->kind = 'd';
            for (int n = before; n < s->count && node->kind == 'd'; n++)
                s->variables[n].constant = true;
        }
        i = last + 1;
    }
    return first;
}

// True if a pointer, a reference or a structure that may contain one is used in several regions: it may refer
// to a local variable of another region.
static bool points_across(const Split *s) {
    bool found = false;
    for (const Variable *v = s->variables; v < s->variables + s->count; v++)
        found |= v->crosses && !v->parameter && (v->is_pointer || v->is_reference || !v->is_plain);
    return found;
}

static void choose_keeping(Split *s) {
    for (int n = 0; n < s->nodes; n++)
        for (const Token *i = s->all[n]->first; s->all[n]->kind == 'd' && i < s->all[n]->last; i++) {
            const Variable *v = kind(i) == IDENT && !is_member(i) ? find_variable(s, i) : NULL;
            if (v && v->region >= 0)
                refuse(s, i, "a declaration outside of regions uses a variable of one");
        }
    const bool pointed = points_across(s);
    for (Variable *v = s->variables; v < s->variables + s->count; v++) {
        // in an inner scope; what belongs to which could be mistaken
        for (const Variable *w = s->variables; w < v; w++)
            if (same_word(w->name, v->name) && v->name < w->end)
                refuse(s, v->name, "two variables have the same name");
        const bool outside = v->region < 0; // declared outside of regions
        if (v->in_header && !v->uniform)
            refuse(s, v->name, "a barrier is in a loop whose variable differs between threads");
        else if (outside && v->parameter && v->modified && !v->uniform && !v->is_memory)
            v->keeping = COPY;
        else if (!outside && pointed && v->shared_out && !v->crosses && !v->is_reference)
            v->keeping = REFERENCE; // so that it outlives the region
        else if (outside || !v->crosses)
            v->keeping = STAYS;
        else if (v->uniform)
            v->keeping = v->init ? ONE : OUTSIDE;
        else if (v->again)
            v->keeping = AGAIN;
        else
            v->keeping = v->is_array || !v->init || v->shared_out ? REFERENCE : COPY;
        if (v->keeping != STAYS && v->keeping != AGAIN && (v->is_auto || v->is_reference) && !v->parameter)
            refuse(s, v->name, "a variable with auto or a reference is used on both sides of a barrier");
        if (v->keeping != STAYS && v->is_class) // it is not known what its functions do
            refuse(s, v->name, "an object of a class with functions is used on both sides of a barrier");
        if (v->keeping == COPY && v->parameter && v->shared_out)
            refuse(s, v->name, "the address of a parameter is taken");
        if ((v->keeping == REFERENCE || v->keeping == COPY) && v->init && v->is_array && kind(v->init) == '(')
            refuse(s, v->name, "it has a declaration of an unknown form");
    }
}

static void check_conditions(Split *s) {
    const Token *by_warps = s->begin; // the end of what is executed once for each warp
    for (int n = 0; n < s->nodes; n++) {
        Node *node = s->all[n];
        if (!node->header || (is(node->first, "if") && is(node->first + 1, "constexpr")))
            continue;
        Token *i = node->header + 1;
        if (is(node->first, "for")) { // the initial values were checked with the variables
            Node header = {.first = i};
            Split probe = {.u = s->u, .body = s->body};
            if (add_variables(&probe, &header, statement_end(i), node->last, true))
                i = statement_end(i) + 1;
        }
        const Token *culprit = i;
        const bool each = s->warps, in_warp = node->first < by_warps;
        if (!in_warp && is_uniform(s, i, node->header->match, false, &culprit))
            continue;
        s->warps = each || !has(is_block_barrier, node->first, node->last);
        if (!is_uniform(s, i, node->header->match, false, &culprit) ||
            (!each && !in_warp && jumps_out(node->first, node->last, false)))
            refuse(
                s, culprit,
                fill(
                    "a barrier is in a branch or loop that depends on '$x', which may differ between threads",
                    "x", word_of(culprit)));
        s->warps = each;
        if (!each && !in_warp) {
            for (Token *t = node->first; t < node->last; t++) {
                const Variable *v = kind(t) == IDENT && !is_member(t) ? find_variable(s, t) : NULL;
                if (v && v->uniform && v->name < node->first && use_of(s, v, t) != 'r')
                    refuse(s, t, fill("only some warps change '$x'", "x", word_of(t)));
            }
            node->by_warps = true;
            by_warps = node->last;
        }
    }
}

// ---- whole kernels ----

// Why threads may wait elsewhere than at the barriers of the kernel; null if they do not
static const char *elsewhere(Unit *u, const Token *name, Token *open, Token *body, const Token **where) {
    const char *why = not_expanded(name, where);
    if (why || !(*where = waits_elsewhere(u, open, body)))
        return why;
    return fill(kind(*where) == '<' ? "it launches a kernel"
                                    : "threads may wait in '$x', or it is not known here",
                "x", word_of(*where));
}

static void check_words(Split *s, const Token *name, Token *open) {
    for (Token *i = s->body; i < s->body->match; i++) {
        if (is_one_of(i, " goto try catch throw decltype typeof __typeof__ __typeof ") &&
            !is(i - 2, "TypeTag"))
            refuse(s, i, fill("it has the word $x", "x", word_of(i)));
        if (is(i, "return") && kind(i + 1) != ';')
            refuse(s, i, "it returns a value");
        if (kind(i) == '[' && !ends_expression(i - 1) && kind(i - 1) != '[' && kind(i + 1) != '[')
            refuse(s, i, "it has a lambda");
        if (kind(i) == ')' && kind(i + 1) == '=' && kind(i->match - 1) != IDENT)
            for (const Token *t = i->match; t < i; t++)
                if (kind(t) == '?')
                    refuse(s, i, "it assigns to a conditional expression");
    }
    for (const Token *i = s->begin; i < s->body; i++)
        if (is(i, "volatile"))
            refuse(s, i, "it has a volatile parameter");
    const Token *where;
    const char *why = elsewhere(s->u, name, open, s->body, &where);
    if (why)
        refuse(s, where, why);
}

static void explain(const Unit *u, const Token *name, const char *how, const Token *where, const char *why) {
    if (!u->explain)
        return;
    printf("%.*s:%u: %s: %s", (int)name->file->length, name->file->name, (unsigned)name->line, word_of(name),
           how);
    if (why)
        printf(": %s (line %u)", why, (unsigned)where->line);
    printf("\n");
}

// Divides the kernel into regions and stores its first statement in *top. If it cannot be split, `why` of the
// result says why not. only_atomics: as in Split
static Split *find_split(Unit *u, Token *begin, const Token *name, Token *open, Token *body,
                         bool only_atomics, Node **top) {
    Split *s = grow(NULL, 1, sizeof *s);
    const bool warps = has(is_barrier, body, body->match) && !has(is_block_barrier, body, body->match);
    *s = (Split){.u = u, .begin = begin, .body = body, .only_atomics = only_atomics, .warps = warps};
    check_words(s, name, open);
    if (!s->why) {
        add_parameters(s, open);
        *top = read_sequence(s, body + 1, body->match, body->match);
    }
    if (!s->why)
        find_uniform(s);
    if (!s->why)
        check_conditions(s);
    if (!s->why)
        find_regions(s, *top);
    if (!s->why)
        choose_keeping(s);
    return s;
}

// True for a kernel without `return` that has a strided loop (is_strided). It is faster as loops over threads
// also if it has no barriers, because neighbouring threads then use a cache line one after the other.
static bool has_strided_loop(Token *body) {
    bool found = false;
    for (Token *i = body + 1, *last; i < body->match && (last = last_of(i)); i = last + 1)
        found |= is_strided(i, last, false);
    for (const Token *i = body; i < body->match; i++)
        found &= !is(i, "return");
    return found;
}

// Splits the body of a kernel at its barriers and strided loops, if that is possible. Appends to `start` the
// declarations for the beginning of the body. Returns the kind of kernel that it is then (loops.h).
const char *split_kernel(Unit *u, Token *begin, Token *name, Token *open, Token *body, Text *start) {
    if (u->only_fibers && !u->explain)
        return "Fibers";
    const bool barriers = has(is_barrier, body, body->match);
    Node *top = NULL;
    Split *s = NULL;
    if (barriers || (!u->trial && has_strided_loop(body)))
        s = find_split(u, begin, name, open, body, false, &top);
    if (barriers && s->why) // for example, a variable with auto is used before and in a loop with a stride
        s = find_split(u, begin, name, open, body, true, &top);
    if (!barriers && (!s || s->why)) {
        const Token *where = NULL;
        const char *why = u->explain ? elsewhere(u, name, open, body, &where) : NULL;
        explain(u, name, why ? "fibers" : "no barrier", where, why);
        return "Fibers";
    }
    explain(u, name, s->why ? "fibers" : "split", s->where, s->why);
    if (s->why && u->trial)
        leave_kernel(name, s->where, s->why);
    if (s->why || u->explain || u->trial)
        return "Fibers";
    bool lanes = s->warps, by_warps = false;
    for (int n = 0; n < s->nodes; n++) {
        lanes |= is_lanes(s->all[n]->first) || s->all[n]->by_warps;
        by_warps |= s->all[n]->by_warps;
    }
    write_split(s, top, start);
    u->numbered_end = lanes ? body->match : u->numbered_end;
    return !lanes ? "OneBody" : s->warps ? "PerWarp" : by_warps ? "InRows" : "AnyShape";
}
