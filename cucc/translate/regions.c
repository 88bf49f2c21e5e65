// SPDX-License-Identifier: MIT
// The regions of a kernel that is split at its barriers: which variables they use, and how they are written
#include "split.h"

// ---- the variables that each region uses ----

static void number_regions(Split *s, Node *node, int *region) {
    bool open = false;
    for (; node; node = node->next) {
        if (node->kind == 'r') {
            *region += !open;
            open = !node->gives;
            node->region = *region;
            continue;
        }
        open = false;
        number_regions(s, node->inside, region);
        number_regions(s, node->other, region);
    }
}

static void use_variables(Split *s, const Token *first, const Token *last, int region) {
    for (const Token *i = first; i <= last; i++) {
        Variable *v = kind(i) == IDENT && !is_member(i) ? find_variable(s, i) : NULL;
        if (v && region >= 0)
            v->used[region] = true;
        if (v && region != v->region && (v->parameter || i > v->name))
            v->crosses = true;
    }
}

// Variables that a region computes again need those of their initial values.
static bool use_again(Split *s) {
    bool changed = false;
    for (const Variable *v = s->variables; v < s->variables + s->count; v++) {
        const Token *sizes = v->init ? v->init : v->after;
        for (const Token *i = v->specifiers; i && v->crosses && i < sizes; i++) { // in T<w> v[w]
            Variable *w = kind(i) == IDENT && !is_member(i) ? find_variable(s, i) : NULL;
            if (w && w != v && !w->crosses && w->region >= 0)
                w->crosses = changed = true;
        }
        for (const Token *i = v->init; v->crosses && v->again && i < v->after; i++) {
            Variable *w = kind(i) == IDENT && !is_member(i) ? find_variable(s, i) : NULL;
            if (w && !w->crosses && w->region >= 0) // v may be used outside of regions
                w->crosses = changed = true;
            for (int r = 0; w && r < s->regions; r++)
                if (v->used[r] && !w->used[r] && r != v->region) {
                    w->used[r] = changed = true;
                    w->crosses |= r != w->region;
                }
        }
    }
    return changed;
}

// Numbers the regions, and sets `crosses` of variables that a region other than that of their declaration
// uses. If such a variable has the same value in all threads, an assignment to it is executed once, between
// two regions. That divides a region, so more variables may cross, and all is repeated until nothing changes.
void find_regions(Split *s, Node *top) {
    for (bool changed = true; changed && !s->why;) {
        s->regions = -1;
        number_regions(s, top, &s->regions);
        if (++s->regions > MOST) {
            refuse(s, s->body, "it has too many barriers");
            return;
        }
        for (Variable *v = s->variables; v < s->variables + s->count; v++) {
            memset(v->used, 0, sizeof v->used);
            v->crosses = false;
            for (int k = 0; k < s->nodes && !v->parameter; k++)
                if (s->all[k]->kind == 'r' && s->all[k]->first <= v->name && v->name <= s->all[k]->last)
                    v->region = s->all[k]->region;
        }
        for (int k = 0; k < s->nodes; k++) {
            const Node *node = s->all[k];
            if (node->kind != 'c')
                use_variables(s, node->first, node->last, node->region);
            else if (node->header)
                use_variables(s, node->header, node->header->match, -1);
        }
        while (use_again(s)) {
        }
        changed = false;
        for (int k = 0; k < s->nodes; k++) {
            Node *node = s->all[k];
            for (const Token *i = node->first; node->kind == 'r' && !node->is_declaration && i < node->last;
                 i++) {
                const Variable *v = kind(i) == IDENT && !is_member(i) ? find_variable(s, i) : NULL;
                const Token *culprit;
                if (!v || !v->uniform || !v->modified || !(v->crosses || v->region < 0) ||
                    is_one_of(node->first, statement_words) || kind(node->first) == '{' ||
                    !is_uniform(s, node->first, node->last, false, &culprit))
                    continue;
                node->kind = 'u';
                node->region = -1;
                changed = true;
            }
        }
        for (int k = 0; k < s->nodes; k++) { // a constant that may be the size of an array
            Node *node = s->all[k];
            if (node->kind != 'r' || !node->is_declaration)
                continue;
            bool constant = true;
            for (const Variable *v = s->variables; v < s->variables + s->count; v++) {
                if (v->name < node->first || v->name > node->last)
                    continue;
                constant &= v->crosses && v->is_const && v->is_integer && v->init && !v->is_array &&
                            v->uniform && !v->modified;
                for (const Token *i = v->init; constant && i < v->after; i++) {
                    const Variable *w = kind(i) == IDENT ? find_variable(s, i) : NULL;
                    constant = !is_one_of(i, " blockIdx blockDim gridDim ") && (!w || w == v || w->constant);
                }
            }
            for (Variable *v = s->variables; v < s->variables + s->count && constant; v++)
                if (v->name >= node->first && v->name <= node->last) {
                    v->constant = changed = true;
                    v->region = -1;
                    node->kind = 'd';
                    node->region = -1;
                }
        }
    }
}

// ---- writing the loops ----

typedef struct {
    Split *s;
    bool live;    // some threads may return before others: an array says which have returned
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

// Appends the declarations in front of the loop of a region: for each variable that later regions use, a
// typedef of its type and the array with its value for each thread.
static void declare_places(Split *s, Text *text, int region) {
    for (const Variable *v = s->variables; v < s->variables + s->count; v++) {
        if (v->region != region || v->keeping == STAYS || v->keeping == AGAIN)
            continue;
        const char *x = word_of(v->name);
        if (v->keeping == OUTSIDE)
            append_filled(text, " [[maybe_unused]] $x;", "x", declarator(v, ""));
        else
            append_filled(text,
                          v->keeping == ONE ? " typedef $type; ::std::remove_cv_t<cu_t_$x> cu_k_$x{};"
                                            : " typedef $type; ::cuda_cpu::OnlyThread<cu_t_$x> cu_o_$x; "
                                              "::cuda_cpu::EachThread<cu_t_$x> cu_k_$x(cu_w, cu_o_$x);",
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
        append_filled(&text,
                      " const ::cuda_cpu::WarpOperands<::std::decay_t<decltype(cu_w)>> $x(cu_w, $gaps);", "x",
                      word_of(last->first), "gaps",
                      !w->live  ? "false"
                      : returns ? "true"
                                : "cu_live != cu_w.count");
    append_text(&text, " for (unsigned cu_z = cu_w.z; cu_z < cu_w.end_z; ++cu_z)"
                       " for (unsigned cu_y = cu_w.y; cu_y < cu_w.end_y; ++cu_y)");
    if (vector && quiet)
        append_text(&text, format("\n#pragma omp simd\n# %u \"%.*s\"\n", (unsigned)before->line,
                                  (int)before->file->length, before->file->name));
    append_filled(&text,
                  " for (unsigned cu_x = cu_w.x; cu_x < cu_w.end_x; ++cu_x) {"
                  " [[maybe_unused]] const uint3 threadIdx = $turn{cu_x, cu_y, cu_z};"
                  " [[maybe_unused]] const size_t cu_r = cu_w.row(cu_y, cu_z);",
                  "turn", quiet ? "" : "::threadIdx = ");
    if (w->live)
        append_text(&text, " if (cu_gone(cu_r, cu_x)) continue;");
    append_text(&text, " {");
    for (const Variable *v = s->variables; v < s->variables + s->count; v++) {
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

// Writes each variable of a declaration as a declaration of its own, if they are kept in different ways.
static void rewrite_declaration(Split *s, Node *node) {
    bool needed = false, again = false;
    for (const Variable *v = s->variables; v < s->variables + s->count; v++) {
        const bool here = node->first <= v->name && v->name <= node->last;
        needed |= here && (v->keeping == REFERENCE || v->keeping == OUTSIDE);
        again |= here && v->keeping == AGAIN; // perhaps not used in this region
    }
    if (again && !needed)
        insert_before(s->u, node->first, "[[maybe_unused]] ");
    for (Variable *v = s->variables; v < s->variables + s->count && needed; v++) {
        if (v->name < node->first || v->name > node->last)
            continue;
        const bool outside = v->keeping == OUTSIDE, reference = v->keeping == REFERENCE;
        if (v->from == v->specifiers_end)
            delete_tokens(s->u, v->specifiers, v->from - 1);
        Token *end = v->init ? v->init : v->after;
        delete_tokens(s->u, v->from, end - 1);
        const char *x = word_of(v->name);
        insert_before(
            s->u, end,
            outside      ? ""
            : !reference ? fill("[[maybe_unused]] $x", "x", declarator(v, ""))
            : v->init    ? fill("cu_t_$x cu_i_$x ", "x", x)
            : v->is_plain || v->is_pointer
                ? fill("[[maybe_unused]] cu_t_$x &$x = cu_k_$x(cu_r, cu_x)", "x", x)
                : fill("[[maybe_unused]] cu_t_$x &$x = cu_k_$x(cu_r, cu_x); ::new ((void *)&$x) cu_t_$x", "x",
                       x));
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
    for (const Variable *v = s->variables; v < s->variables + s->count; v++) {
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

// Declares, outside of regions, the indices of a warp's first thread: conditions and votes use them.
static const char first_lane[] =
    " [[maybe_unused]] const uint3 threadIdx = {cu_w.x, cu_w.y, cu_w.z}; [[maybe_unused]] const size_t cu_r ="
    " cu_w.row(cu_w.y, cu_w.z); [[maybe_unused]] const unsigned cu_x = cu_w.x;";

// Declares again, after the loop of a region, the variables that depend on the thread's index only: a
// condition that a whole warp evaluates once may use them. They have the values of the warp's first thread.
static void declare_for_warp(Split *s, Token *last, int region) {
    Text text = empty_text();
    for (const Variable *v = s->variables; v < s->variables + s->count; v++)
        if (v->keeping == AGAIN && v->region == region)
            declare_again(&text, v);
    insert_after(s->u, last, text.data);
}

static void open_warps(Writer *w, const Node *node, Token *before) {
    Split *s = w->s;
    Text text = empty_text();
    append_filled(
        &text,
        " for (unsigned cu_n = 0; cu_n < cu_w.warps(); ++cu_n) { const auto cu_b = cu_w.warp(cu_n); {"
        " const auto &cu_w = cu_b;$first",
        "first", first_lane);
    if (w->live) // skips a warp whose threads have all returned, because its variables have no values
        append_text(
            &text, " bool cu_here = false;"
                   " for (unsigned cu_i = cu_w.x; cu_i < cu_w.end_x; ++cu_i) cu_here |= !cu_gone(cu_r, cu_i);"
                   " if (!cu_here) continue;");
    for (const Variable *v = s->variables; v < s->variables + s->count; v++) {
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
                open_warps(w, node, before);
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

// Writes the kernel in regions. Appends to `start` the declarations for the beginning of its body.
void write_split(Split *s, Node *top, Text *start) {
    Writer w = {s, returns_early(s, top), s->warps};
    if (w.live)
        append_text(
            start,
            " ::cuda_cpu::OnlyThread<bool> cu_one; ::cuda_cpu::EachThread<bool> cu_gone(cu_w, cu_one); "
            "cu_gone.fill(false); unsigned cu_live = cu_w.count;");
    for (const Variable *v = s->variables; v < s->variables + s->count; v++)
        if (v->parameter && v->keeping == COPY)
            append_filled(start,
                          " typedef ::std::remove_cv_t<::std::remove_reference_t<decltype($x)>> cu_t_$x;"
                          " ::cuda_cpu::OnlyThread<cu_t_$x> cu_o_$x; "
                          "::cuda_cpu::EachThread<cu_t_$x> cu_k_$x(cu_w, cu_o_$x); cu_k_$x.fill($x);",
                          "x", word_of(v->name));
    append_text(start, s->warps ? first_lane : "");
    write_sequence(&w, top, s->body);
}
