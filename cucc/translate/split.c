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
 * text runs with fibers: then a region's loop is for one thread, and barriers wait (Way in cuda_cpu/loops.h).
 *
 * A kernel that may not be understood is not split: it runs with fibers. Threads that wait for each other
 * elsewhere than at barriers need them: calls.c looks for that.
 */
#include "split.h"

// ---- statements ----

// The last token of the statement; null if it has an unknown form
Token *last_of(Token *i) {
    Token *last;
    if (kind(i) == '{')
        return i->match;
    if (is(i, "if")) {
        i += is(i + 1, "constexpr") ? 2 : 1;
        if (kind(i) != '(' || !(last = last_of(i->match + 1)))
            return NULL;
        return is(last + 1, "else") ? last_of(last + 2) : last;
    }
    if (is_one_of(i, " for while switch "))
        return kind(i + 1) == '(' ? last_of(i[1].match + 1) : NULL;
    if (is(i, "do")) {
        last = last_of(i + 1);
        return last && is(last + 1, "while") && kind(last + 2) == '(' && kind(last[2].match + 1) == ';'
                   ? last[2].match + 1
                   : NULL;
    }
    if (is_one_of(i, " case default else goto try catch "))
        return NULL;
    last = statement_end(i);
    return kind(last) == ';' ? last : NULL;
}

static bool has_barrier(const Token *i, const Token *last) {
    for (; i <= last; i++)
        if (is_barrier(i))
            return true;
    return false;
}

static bool has_block_barrier(const Token *i, const Token *last) {
    for (; i <= last; i++)
        if (is(i, "__syncthreads"))
            return true;
    return false;
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

static bool uses_memory(const Token *i, const Token *last) {
    for (; i < last; i++)
        if (kind(i) == '[' || kind(i) == ARROW || (kind(i) == '*' && !ends_expression(i - 1)))
            return true;
    return false;
}

// The loops over threads at both sides of a branch, and in two iterations, run as if a barrier were between
// them. That must not hide that one is missing.
static void check_ends(Split *s, const Node *node) {
    bool barriers = true, begins = false, ends = false, crossed = false;
    for (const Node *n = node->inside; n; n = n->next) {
        const bool region = n->kind == 'r', uses = region && uses_memory(n->first, n->last);
        barriers &= n->kind == 'b';
        begins |= uses && !crossed;
        ends = uses || (ends && n->kind != 'b' && n->kind != 'c');
        crossed |= n->kind == 'b' || n->kind == 'c';
    }
    if (!has_block_barrier(node->first, node->last))
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
    return i == last ? i == first + 2 : kind(i) == '{' && kind(last - 1) == '}' && !variable;
}

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
        const bool barrier = has_barrier(i, last);
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
        } else if (is_one_of(i, " typedef using static_assert template ") || defines_type(i, last)) {
            node->kind = 'd';
        } else if (is_one_of(i, " struct class union enum ")) {
            refuse(s, i, "it has a declaration of an unknown form");
        } else {
            const int before = s->count;
            node->is_declaration = add_variables(s, node, last, scope, false);
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

static void choose_keeping(Split *s) {
    for (int n = 0; n < s->count; n++) {
        Variable *v = &s->variables[n];
        for (int m = 0; m < n; m++) // in an inner scope; what belongs to which could be mistaken
            if (same_word(s->variables[m].name, v->name) && v->name < s->variables[m].end)
                refuse(s, v->name, "two variables have the same name");
        const bool outside = v->region < 0; // declared outside of regions
        if (v->in_header && !v->uniform)
            refuse(s, v->name, "a barrier is in a loop whose variable differs between threads");
        else if (outside && v->parameter && v->modified && !v->uniform && !v->is_memory)
            v->keeping = COPY;
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
        s->warps = each || !has_block_barrier(node->first, node->last);
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

// ---- the translation ----

typedef struct {
    Split *s;
    bool live;    // threads may return before others: which did is kept
    bool in_warp; // what is written is executed once for each warp
} Writer;

static char *declarator(const Variable *v, const char *prefix) { // int *x[4]  ->  int *cu_t_x[4]
    const Token *end = v->init ? v->init : v->after;
    return fill("$specifiers$before $prefix$after", "specifiers", spelling(v->specifiers, v->specifiers_end),
                "before", v->from < v->name ? fill(" $x", "x", spelling(v->from, v->name)) : "", "prefix",
                prefix, "after", spelling(v->name, end));
}

// Declares a variable again in a later region: its value depends only on the thread's index, so it is
// computed again and not stored for each thread.
static void declare_again(Text *text, const Variable *v) {
    append_filled(text, " [[maybe_unused]] $x $init;", "x", declarator(v, ""), "init",
                  spelling(v->init, v->after));
}

// What stands before the loop of a region: the type of each variable that is kept, and its place
static void declare_places(Split *s, Text *text, int region) {
    for (int n = 0; n < s->count; n++) {
        const Variable *v = &s->variables[n];
        if (v->region != region || v->keeping == STAYS || v->keeping == AGAIN)
            continue;
        const char *x = word_of(v->name);
        if (v->keeping == OUTSIDE)
            append_filled(text, " [[maybe_unused]] $x;", "x", declarator(v, ""));
        else
            append_filled(text,
                          v->keeping == ONE
                              ? " typedef $type; ::std::remove_cv_t<cu_t_$x> cu_k_$x{};"
                              : " typedef $type; ::cuda_cpu::EachThread<cu_t_$x> cu_k_$x(cu_w);",
                          "type", declarator(v, "cu_t_"), "x", x);
    }
}

// Begins the loop of the region from node `first` to `last`. In `vector` loops, threads do each operation
// together.
static void open_region(Writer *w, const Node *first, const Node *last, bool vector, bool returns,
                        Token *before) {
    Split *s = w->s;
    Text text = empty_text();
    const bool quiet = is_quiet(first->first, last->last, &vector) && !functions_know_thread(s->u);
    declare_places(s, &text, first->region);
    if (last->gives)
        append_filled(&text, " const ::cuda_cpu::Given<::std::decay_t<decltype(cu_w)>> $x(cu_w, $gaps);", "x",
                      word_of(last->first), "gaps",
                      !w->live  ? "false"
                      : returns ? "true"
                                : "cu_live != cu_w.count");
    append_text(&text, " for (unsigned cu_z = cu_w.z; cu_z < cu_w.end_z; ++cu_z)"
                       " for (unsigned cu_y = cu_w.y; cu_y < cu_w.end_y; ++cu_y)");
    if (vector && quiet)
        append_text(&text, format("\n#pragma omp simd\n# %u \"%.*s\"\n", (unsigned)first->first->line,
                                  (int)first->first->file->length, first->first->file->name));
    append_filled(&text,
                  " for (unsigned cu_x = cu_w.x; cu_x < cu_w.end_x; ++cu_x) {"
                  " [[maybe_unused]] const uint3 threadIdx = $turn{cu_x, cu_y, cu_z};"
                  " [[maybe_unused]] const size_t cu_r = cu_w.row(cu_y, cu_z);",
                  "turn", quiet ? "" : "::threadIdx = ");
    if (w->live)
        append_text(&text, " if (cu_gone(cu_r, cu_x)) continue;");
    append_text(&text, " {");
    for (int n = 0; n < s->count; n++) {
        const Variable *v = &s->variables[n];
        if (v->region == first->region || !v->used[first->region])
            continue;
        const char *x = word_of(v->name);
        if (v->keeping == AGAIN)
            declare_again(&text, v);
        else if (v->keeping == COPY || v->keeping == REFERENCE)
            append_filled(&text, " [[maybe_unused]] cu_t_$x $reference$x = cu_k_$x(cu_r, cu_x);", "x", x,
                          "reference", v->keeping == REFERENCE ? "&" : "");
    }
    insert_between(s->u, before, text.data);
}

// if (threadIdx.x < n) … as the only statement of a region: the others of a row need not be looked at.
static bool stop_early(Split *s, Node *node) {
    Token *i = node->first, *open = i + 1, *close = open->match, *end = open + 1;
    const Token *culprit;
    if (!is(i, "if") || kind(open) != '(' || is(last_of(close + 1) + 1, "else"))
        return false;
    while (end < close && kind(end) != '<' && kind(end) != OPERATOR)
        end++;
    const bool equal = kind(end) == OPERATOR && is_thread_x(s, open + 1, end) && end->text[0] == '=' &&
                       end + 2 == close && kind(end + 1) == NUMBER && end[1].length == 1 &&
                       end[1].text[0] == '0';
    const bool less = (kind(end) == '<' && run(end, 1) == 1) ||
                      (kind(end) == OPERATOR && end->length == 2 && end->text[0] == '<');
    for (const Token *t = end + 1; t < close && !equal; t++)
        if (!less || kind(t) == OPERATOR || kind(t) == '=' || (kind(t) && strchr("&|?,<>^!", kind(t))))
            return false;
    if (!equal &&
        (!less || !is_thread_x(s, open + 1, end) || !is_uniform(s, end + 1, close, false, &culprit)))
        return false;
    insert_between(s->u, close, " {");
    insert_after(s->u, node->last, " } else break;");
    return true;
}

// Divides a declaration if its variables have to be declared in different ways.
static void rewrite_declaration(Split *s, Node *node) {
    bool needed = false, again = false;
    for (int n = 0; n < s->count; n++) {
        const Variable *v = &s->variables[n];
        const bool here = node->first <= v->name && v->name <= node->last;
        needed |= here && (v->keeping == REFERENCE || v->keeping == OUTSIDE);
        again |= here && v->keeping == AGAIN; // perhaps not used in this region
    }
    if (again && !needed)
        insert_before(s->u, node->first, "[[maybe_unused]] ");
    for (int n = 0; n < s->count && needed; n++) {
        Variable *v = &s->variables[n];
        if (v->name < node->first || v->name > node->last)
            continue;
        const bool outside = v->keeping == OUTSIDE, reference = v->keeping == REFERENCE;
        if (v->from == v->specifiers_end)
            delete_tokens(s->u, v->specifiers, v->from - 1);
        Token *end = v->init ? v->init : v->after;
        delete_tokens(s->u, v->from, end - 1);
        const char *x = word_of(v->name);
        insert_before(s->u, end,
                      outside      ? ""
                      : !reference ? fill("[[maybe_unused]] $x", "x", declarator(v, ""))
                      : v->init    ? fill("cu_t_$x cu_i_$x ", "x", x)
                                   : fill("[[maybe_unused]] cu_t_$x &$x = cu_k_$x(cu_r, cu_x)", "x", x));
        if (reference && v->init)
            insert_before(
                s->u, v->after,
                fill("; [[maybe_unused]] cu_t_$x &$x = ::cuda_cpu::keep(cu_k_$x(cu_r, cu_x), cu_i_$x)", "x",
                     x));
        if (kind(v->after) == ',')
            edit(s->u, v->after->text, 1, ";");
    }
}

// Replaces the returns of a region. Returns whether there are any.
static bool write_returns(Writer *w, const Node *node) {
    bool found = false;
    for (Token *i = node->first; i < node->last; i++) {
        if (!is(i, "return"))
            continue;
        found = true;
        edit(w->s->u, i->text, i->length,
             fill(w->live ? "{ cu_gone(cu_r, cu_x) = true; --cu_live; goto cu_end_$n" : "{ goto cu_end_$n",
                  "n", format("%d", node->region)));
        insert_after(w->s->u, i + 1, " }");
    }
    return found;
}

static void close_region(Writer *w, Node *last, bool returns) {
    Split *s = w->s;
    Text text = empty_text(), later = empty_text();
    for (int n = 0; n < s->count; n++) {
        const Variable *v = &s->variables[n];
        const char *x = word_of(v->name);
        const bool here = v->region == last->region;
        if (v->keeping == ONE && here) {
            append_filled(&text, " cu_k_$x = $x;", "x", x);
            append_filled(&later, " [[maybe_unused]] $type = cu_k_$x;", "type", declarator(v, ""), "x", x);
        } else if (v->keeping == COPY && (here || (v->modified && v->used[last->region]))) {
            append_filled(&text, " cu_k_$x.put(cu_r, cu_x, $x);", "x", x);
        }
    }
    append_text(&text, " }");
    if (returns)
        append_text(&text, fill(" cu_end_$n:;", "n", format("%d", last->region)));
    append_filled(&text, " }$live$later", "live", returns && w->live ? " if (!cu_live) return;" : "", "later",
                  later.data);
    insert_after(s->u, last->last, text.data);
}

static void write_sequence(Writer *w, Node *node, Token *before);

static void write_inside(Writer *w, Node *inside, Token *block, Token *before) {
    if (block) {
        write_sequence(w, inside, block);
        return;
    }
    insert_between(w->s->u, before, " {");
    write_sequence(w, inside, before);
    insert_after(w->s->u, inside->last, " }");
}

// for (int i = threadIdx.x; i < n; i += blockDim.x) …: all threads execute an iteration before the next one.
static void write_strided(Writer *w, Node *node) {
    Unit *u = w->s->u;
    Token *open = node->first + 1, *before = node->inside ? node->inside->last : open;
    edit(u, node->first->text, node->first->length, "{");
    edit(u, open->text, 1, "");
    if (node->inside) {
        write_sequence(w, node->inside, open);
        edit(u, statement_end(before + 1)->text, 1, "); cu_once = false,");
    } else {
        insert_before(u, open->match, "); cu_once = false");
    }
    insert_after(u, node->last, " }");
    insert_between(u, before, " for (bool cu_any = true; cu_any;) { cu_any = false;");
    write_sequence(w, node->other, before);
    insert_between(u, before, " for (bool cu_once = true; cu_once && (");
    insert_between(u, open->match, " { cu_any = true;");
    insert_after(u, node->last, " } }");
}

// What a warp is to know outside of regions, for conditions and votes
static const char first_lane[] =
    " [[maybe_unused]] const uint3 threadIdx = {cu_w.x, cu_w.y, cu_w.z}; [[maybe_unused]] const size_t cu_r ="
    " cu_w.row(cu_w.y, cu_w.z); [[maybe_unused]] const unsigned cu_x = cu_w.x;";

// Declares again, after the loop of a region, the variables that depend on the thread's index only: a
// condition that a whole warp evaluates once may use them. They have the values of the warp's first thread.
static void declare_for_warp(Split *s, Token *last, int region) {
    Text text = empty_text();
    for (int n = 0; n < s->count; n++)
        if (s->variables[n].keeping == AGAIN && s->variables[n].region == region)
            declare_again(&text, &s->variables[n]);
    insert_after(s->u, last, text.data);
}

static void open_warps(Split *s, const Node *node, Token *before) {
    Text text = empty_text();
    append_filled(
        &text,
        " for (unsigned cu_n = 0; cu_n < cu_w.warps(); ++cu_n) { const auto cu_b = cu_w.warp(cu_n); {"
        " const auto &cu_w = cu_b;$first",
        "first", first_lane);
    for (int n = 0; n < s->count; n++) {
        const Variable *v = &s->variables[n];
        if (v->keeping == AGAIN && v->name < node->first && node->last < v->end)
            declare_again(&text, v);
    }
    insert_between(s->u, before, text.data);
}

// `before`: the token after which the sequence begins
static void write_sequence(Writer *w, Node *node, Token *before) {
    Unit *u = w->s->u;
    for (; node; node = node->next) {
        if (node->kind == 'r') {
            Node *first = node;
            bool returns = false;
            for (;; node = node->next) {
                returns |= write_returns(w, node);
                rewrite_declaration(w->s, node);
                if (node->gives || !node->next || node->next->kind != 'r')
                    break;
            }
            const bool early = first == node && stop_early(w->s, node);
            open_region(w, first, node, !early && !returns && !w->live, returns, before);
            close_region(w, node, returns);
            if (w->in_warp)
                declare_for_warp(w->s, node->last, node->region);
        } else if (node->kind == 'b' && !is_lanes(node->first)) {
            insert_between(u, before, " { if (__builtin_expect(cu_w.fibers, 0))");
            insert_after(u, node->last, " }");
        } else if (node->in_step) {
            write_strided(w, node);
        } else if (node->kind == 'c') {
            if (node->by_warps)
                open_warps(w->s, node, before);
            w->in_warp |= node->by_warps;
            write_inside(w, node->inside, node->block,
                         kind(node->first) == '{' || is(node->first, "do") ? node->first
                                                                           : node->header->match);
            if (node->else_word)
                write_inside(w, node->other, node->else_block, node->else_word);
            insert_after(u, node->last, node->by_warps ? " } }" : "");
            w->in_warp &= !node->by_warps;
        }
        before = node->last;
    }
}

// True if a return is followed by statements: then threads that have returned must be left out of them.
static bool returns_early(const Split *s, const Node *top) {
    const Node *end = top;
    while (end && end->next)
        end = end->next;
    for (int n = 0; n < s->nodes; n++)
        for (const Token *i = s->all[n]->first; s->all[n]->kind != 'c' && i < s->all[n]->last; i++)
            if (is(i, "return") && s->all[n]->region != end->region)
                return true;
    return false;
}

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
        if (is_one_of(i, " goto try catch throw decltype typeof __typeof__ __typeof ") && !is(i - 2, "Type"))
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
    memset(s, 0, sizeof *s);
    s->u = u;
    s->begin = begin;
    s->body = body;
    s->only_atomics = only_atomics;
    s->warps = !has_block_barrier(body, body->match);
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

// Splits the body of a kernel at its barriers, if that is possible. Appends to `start` the declarations for
// the beginning of the body. Returns the parameters that tell the body which threads to run.
const char *split_kernel(Unit *u, Token *begin, Token *name, Token *open, Token *body, Text *start) {
    if (u->only_fibers && !u->explain)
        return "";
    if (!has_barrier(body, body->match)) {
        const Token *where = NULL;
        const char *why = u->explain ? elsewhere(u, name, open, body, &where) : NULL;
        explain(u, name, why ? "fibers" : "no barrier", where, why);
        return "";
    }
    Node *top = NULL;
    Split *s = find_split(u, begin, name, open, body, false, &top);
    if (s->why) // for example, a variable with auto is used before and in a loop with a stride
        s = find_split(u, begin, name, open, body, true, &top);
    explain(u, name, s->why ? "fibers" : "split", s->where, s->why);
    if (s->why && u->trial)
        leave_kernel(name, s->where, s->why);
    if (s->why || u->explain || u->trial)
        return "";
    bool lanes = s->warps, by_warps = false;
    for (int n = 0; n < s->nodes; n++) {
        lanes |= is_lanes(s->all[n]->first) || s->all[n]->by_warps;
        by_warps |= s->all[n]->by_warps;
    }
    Writer w = {s, returns_early(s, top), s->warps};
    if (w.live)
        append_text(start, " ::cuda_cpu::EachThread<bool> cu_gone(cu_w); cu_gone.fill(false); unsigned "
                           "cu_live = cu_w.count;");
    for (int n = 0; n < s->count; n++)
        if (s->variables[n].parameter && s->variables[n].keeping == COPY)
            append_filled(start,
                          " typedef ::std::remove_cv_t<::std::remove_reference_t<decltype($x)>> cu_t_$x;"
                          " ::cuda_cpu::EachThread<cu_t_$x> cu_k_$x(cu_w); cu_k_$x.fill($x);",
                          "x", word_of(s->variables[n].name));
    append_text(start, s->warps ? first_lane : "");
    write_sequence(&w, top, body);
    u->numbered_end = lanes ? body->match : u->numbered_end;
    return !lanes     ? "::cuda_cpu::Way cu_w"
           : s->warps ? "auto cu_w, ::cuda_cpu::PerWarp"
           : by_warps ? "auto cu_w, ::cuda_cpu::InRows"
                      : "auto cu_w, ::cuda_cpu::AnyShape";
}
