// SPDX-License-Identifier: MIT
// Writes the loops of a kernel that was divided into regions
#include "plan.h"

static char *declarator(const Variable *v, const char *prefix) { // int *x[4]  ->  int *cu_t_x[4]
    const Token *end = v->init ? v->init : v->after;
    return fill("$specifiers$before $prefix$after", "specifiers", spelling(v->specifiers, v->specifiers_end),
                "before", v->from < v->name ? fill(" $x", "x", spelling(v->from, v->name)) : "", "prefix",
                prefix, "after", spelling(v->name, end));
}

// Declares a variable again in a later region: computed from the thread's index, and not stored.
static void declare_again(Text *text, const Variable *v) {
    append_filled(text, " [[maybe_unused]] $x $init;", "x", declarator(v, ""), "init",
                  spelling(v->init, v->after));
}

// Appends the declarations in front of the loop of a region: for each variable that later regions use, a
// typedef of its type and the array with its value for each thread.
static void declare_places(LoopPlan *p, Text *text, int region) {
    for (const Variable *v = p->variables; v < p->variables + p->count; v++) {
        if (v->region != region || v->keeping == NOT_KEPT || v->keeping == COMPUTED_AGAIN)
            continue;
        const char *x = word_of(v->name);
        if (v->keeping == DECLARED_BEFORE)
            append_filled(text, " [[maybe_unused]] $x;", "x", declarator(v, ""));
        else
            append_filled(text,
                          v->keeping == ONE_FOR_ALL
                              ? " typedef $type; ::std::remove_cv_t<cu_t_$x> cu_k_$x{};"
                              : " typedef $type; ::cuda_cpu::OnlyThread<cu_t_$x> cu_o_$x; "
                                "::cuda_cpu::EachThread<cu_t_$x> cu_k_$x(cu_w, cu_o_$x);",
                          "type", declarator(v, "cu_t_"), "x", x);
    }
}

// Begins the loop of a region. In `vector` loops, threads do each operation together.
static void open_region(LoopPlan *p, const Statement *first, const Statement *last, bool vector, bool returns,
                        Token *before) {
    Text text = empty_text();
    const bool quiet = is_quiet(first->first, last->last, &vector) && !functions_know_thread(p->u);
    declare_places(p, &text, first->region);
    if (last->gives)
        append_filled(&text,
                      " const ::cuda_cpu::WarpOperands<::std::decay_t<decltype(cu_w)>> $x(cu_w, $gaps);", "x",
                      word_of(last->first), "gaps",
                      !p->returns_early ? "false"
                      : returns         ? "true"
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
    if (p->returns_early)
        append_text(&text, " if (cu_gone(cu_r, cu_x)) continue;");
    append_text(&text, " {");
    for (const Variable *v = p->variables; v < p->variables + p->count; v++) {
        if (v->region == first->region || !v->used[first->region])
            continue;
        const char *x = word_of(v->name);
        if (v->keeping == COMPUTED_AGAIN)
            declare_again(&text, v);
        else if (v->keeping == COPY_OF_THREAD || v->keeping == OBJECT_OF_THREAD)
            append_filled(&text, " [[maybe_unused]] cu_t_$x $reference$x = cu_k_$x(cu_r, cu_x);", "x", x,
                          "reference", v->keeping == OBJECT_OF_THREAD ? "&" : "");
    }
    insert_between(p->u, before, text.data);
}

// if (threadIdx.x < n) … as the only statement of a region: the others of a row need not be looked at.
static bool stop_early(LoopPlan *p, Statement *s) {
    Token *i = s->first, *open = i + 1, *close = open->match, *end = open + 1;
    if (!is(i, "if") || kind(open) != '(' || is(last_of(close + 1) + 1, "else"))
        return false;
    while (end < close && kind(end) != '<' && kind(end) != OPERATOR)
        end++;
    const bool equal = kind(end) == OPERATOR && is_thread_x(p, open + 1, end) && end->text[0] == '=' &&
                       end + 2 == close && kind(end + 1) == NUMBER && end[1].length == 1 &&
                       end[1].text[0] == '0';
    const bool less = (kind(end) == '<' && run(end, 1) == 1) ||
                      (kind(end) == OPERATOR && end->length == 2 && end->text[0] == '<');
    for (const Token *t = end + 1; t < close && !equal; t++)
        if (!less || kind(t) == OPERATOR || kind(t) == '=' || (kind(t) && strchr("&|?,<>^!", kind(t))))
            return false;
    if (!equal && (!less || !is_thread_x(p, open + 1, end) || !is_uniform(p, end + 1, close)))
        return false;
    insert_between(p->u, close, " {");
    insert_after(p->u, s->last, " } else break;");
    return true;
}

// Writes a variable of a declaration whose variables are kept in different ways, as its own declaration.
static void rewrite_variable(LoopPlan *p, const Variable *v) {
    const bool reference = v->keeping == OBJECT_OF_THREAD;
    const char *x = word_of(v->name), *text = "";
    Token *end = v->init ? v->init : v->after;
    if (v->from == v->specifiers_end)
        delete_tokens(p->u, v->specifiers, v->from - 1);
    delete_tokens(p->u, v->from, end - 1);
    if (reference && v->init)
        text = fill("cu_t_$x cu_i_$x ", "x", x);
    else if (reference)
        text = fill("[[maybe_unused]] cu_t_$x &$x = cu_k_$x(cu_r, cu_x)$new", "x", x, "new",
                    v->is_plain || v->is_pointer ? "" : fill("; ::new ((void *)&$x) cu_t_$x", "x", x));
    else if (v->keeping != DECLARED_BEFORE)
        text = fill("[[maybe_unused]] $x", "x", declarator(v, ""));
    insert_before(p->u, end, text);
    if (reference && v->init)
        insert_before(
            p->u, v->after,
            fill("; [[maybe_unused]] cu_t_$x &$x = ::cuda_cpu::keep(cu_k_$x(cu_r, cu_x), cu_i_$x)", "x", x));
    if (kind(v->after) == ',')
        edit(p->u, v->after->text, 1, ";");
}

static void rewrite_declaration(LoopPlan *p, const Statement *s) {
    bool needed = false, again = false;
    for (const Variable *v = p->variables; v < p->variables + p->count; v++) {
        needed |= declares(s, v) && (v->keeping == OBJECT_OF_THREAD || v->keeping == DECLARED_BEFORE);
        again |= declares(s, v) && v->keeping == COMPUTED_AGAIN; // perhaps not used in this region
    }
    if (again && !needed)
        insert_before(p->u, s->first, "[[maybe_unused]] ");
    for (const Variable *v = p->variables; v < p->variables + p->count && needed; v++)
        if (declares(s, v))
            rewrite_variable(p, v);
}

// Replaces the returns of a region. Returns whether there are any.
static bool write_returns(LoopPlan *p, const Statement *s) {
    bool found = false;
    for (Token *i = s->first; i < s->last; i++) {
        if (!is(i, "return"))
            continue;
        found = true;
        edit(p->u, i->text, i->length,
             fill(p->returns_early ? "{ cu_gone(cu_r, cu_x) = true; --cu_live; goto cu_end_$n"
                                   : "{ goto cu_end_$n",
                  "n", format("%d", s->region)));
        insert_after(p->u, i + 1, " }");
    }
    return found;
}

static void close_region(LoopPlan *p, Statement *last, bool returns) {
    Text text = empty_text(), later = empty_text();
    for (const Variable *v = p->variables; v < p->variables + p->count; v++) {
        const char *x = word_of(v->name);
        const bool here = v->region == last->region;
        if (v->keeping == ONE_FOR_ALL && here) {
            append_filled(&text, " cu_k_$x = $x;", "x", x);
            append_filled(&later, " [[maybe_unused]] $type = cu_k_$x;", "type", declarator(v, ""), "x", x);
        } else if (v->keeping == COPY_OF_THREAD && (here || (v->modified && v->used[last->region]))) {
            append_filled(&text, " cu_k_$x.put(cu_r, cu_x, $x);", "x", x);
        }
    }
    append_text(&text, " }");
    if (returns)
        append_text(&text, fill(" cu_end_$n:;", "n", format("%d", last->region)));
    append_filled(&text, " }$live$later", "live", returns && p->returns_early ? " if (!cu_live) return;" : "",
                  "later", later.data);
    insert_after(p->u, last->last, text.data);
}

static void write_sequence(LoopPlan *p, Statement *s, Token *before);

static void write_inside(LoopPlan *p, Statement *inside, Token *block, Token *before) {
    if (block) {
        write_sequence(p, inside, block);
        return;
    }
    insert_between(p->u, before, " {");
    write_sequence(p, inside, before);
    insert_after(p->u, inside->last, " }");
}

// for (int i = threadIdx.x; i < n; i += blockDim.x) …: all threads execute an iteration before the next one.
static void write_strided(LoopPlan *p, Statement *s) {
    Unit *u = p->u;
    Token *open = s->first + 1, *before = s->inside ? s->inside->last : open;
    edit(u, s->first->text, s->first->length, "{");
    edit(u, open->text, 1, "");
    if (s->inside) {
        write_sequence(p, s->inside, open);
        edit(u, statement_end(before + 1)->text, 1, "); cu_once = false,");
    } else {
        insert_before(u, open->match, "); cu_once = false");
    }
    insert_after(u, s->last, " }");
    insert_between(u, before, " for (bool cu_any = true; cu_any;) { cu_any = false;");
    write_sequence(p, s->other, before);
    insert_between(u, before, " for (bool cu_once = true; cu_once && (");
    insert_between(u, open->match, " { cu_any = true;");
    insert_after(u, s->last, " } }");
}

// Declares, outside of regions, the indices of a warp's first thread: conditions and votes use them.
static const char first_lane[] =
    " [[maybe_unused]] const uint3 threadIdx = {cu_w.x, cu_w.y, cu_w.z}; [[maybe_unused]] const size_t cu_r ="
    " cu_w.row(cu_w.y, cu_w.z); [[maybe_unused]] const unsigned cu_x = cu_w.x;";

// Declares again, after the loop of a region, the variables that depend on the thread's index only: a
// condition that a whole warp evaluates once may use them. They have the values of the warp's first thread.
static void declare_for_warp(LoopPlan *p, const Statement *last) {
    Text text = empty_text();
    for (const Variable *v = p->variables; v < p->variables + p->count; v++)
        if (v->keeping == COMPUTED_AGAIN && v->region == last->region)
            declare_again(&text, v);
    insert_after(p->u, last->last, text.data);
}

static void open_warps(LoopPlan *p, const Statement *s, Token *before) {
    Text text = empty_text();
    append_filled(
        &text,
        " for (unsigned cu_n = 0; cu_n < cu_w.warps(); ++cu_n) { const auto cu_b = cu_w.warp(cu_n); {"
        " const auto &cu_w = cu_b;$first",
        "first", first_lane);
    if (p->returns_early) // skips a warp whose threads have all returned
        append_text(
            &text, " bool cu_here = false;"
                   " for (unsigned cu_i = cu_w.x; cu_i < cu_w.end_x; ++cu_i) cu_here |= !cu_gone(cu_r, cu_i);"
                   " if (!cu_here) continue;");
    for (const Variable *v = p->variables; v < p->variables + p->count; v++) {
        if (v->keeping == COMPUTED_AGAIN && v->name < s->first && s->last < v->end)
            declare_again(&text, v);
    }
    insert_between(p->u, before, text.data);
}

// Writes the region that begins with the statement `first`. Returns its last statement.
static Statement *write_region(LoopPlan *p, Statement *first, Token *before) {
    Statement *last = first;
    bool returns = false;
    for (;; last = last->next) {
        returns |= write_returns(p, last);
        rewrite_declaration(p, last);
        if (last->gives || !last->next || last->next->kind != IN_REGION)
            break;
    }
    const bool early = first == last && stop_early(p, last);
    open_region(p, first, last, !early && !returns && !p->returns_early, returns, before);
    close_region(p, last, returns);
    if (p->in_warp)
        declare_for_warp(p, last);
    return last;
}

static void write_control(LoopPlan *p, Statement *s, Token *before) {
    const bool plain = kind(s->first) == '{' || is(s->first, "do");
    if (s->by_warps)
        open_warps(p, s, before);
    p->in_warp |= s->by_warps;
    write_inside(p, s->inside, s->block, plain ? s->first : s->header->match);
    if (s->else_word)
        write_inside(p, s->other, s->else_block, s->else_word);
    insert_after(p->u, s->last, s->by_warps ? " } }" : "");
    p->in_warp &= !s->by_warps;
}

// `before`: the token after which the sequence begins
static void write_sequence(LoopPlan *p, Statement *s, Token *before) {
    for (; s; s = s->next) {
        if (s->kind == IN_REGION) {
            s = write_region(p, s, before);
        } else if (s->kind == BARRIER && !is_lanes(s->first)) {
            insert_between(p->u, before, " { if (__builtin_expect(cu_w.fibers, 0))");
            insert_after(p->u, s->last, " }");
        } else if (s->in_step) {
            write_strided(p, s);
        } else if (s->kind == CONTROL) {
            write_control(p, s, before);
        }
        before = s->last;
    }
}

// True if a return is followed by statements: then threads that have returned must be left out of them.
static bool returns_early(const LoopPlan *p) {
    const Statement *end = p->top;
    while (end && end->next)
        end = end->next;
    for (const Statement *s = p->statements; s < p->end; s++)
        for (const Token *i = s->first; s->kind != CONTROL && i < s->last; i++)
            if (is(i, "return") && s->region != end->region)
                return true;
    return false;
}

KernelForm write_loops(LoopPlan *p, Text *start) {
    if (p->form == FIBERS)
        return FIBERS;
    p->returns_early = returns_early(p);
    p->in_warp = p->warps;
    if (p->returns_early)
        append_text(
            start,
            " ::cuda_cpu::OnlyThread<bool> cu_one; ::cuda_cpu::EachThread<bool> cu_gone(cu_w, cu_one); "
            "cu_gone.fill(false); unsigned cu_live = cu_w.count;");
    for (const Variable *v = p->variables; v < p->variables + p->count; v++)
        if (v->parameter && v->keeping == COPY_OF_THREAD)
            append_filled(start,
                          " typedef ::std::remove_cv_t<::std::remove_reference_t<decltype($x)>> cu_t_$x;"
                          " ::cuda_cpu::OnlyThread<cu_t_$x> cu_o_$x; "
                          "::cuda_cpu::EachThread<cu_t_$x> cu_k_$x(cu_w, cu_o_$x); cu_k_$x.fill($x);",
                          "x", word_of(v->name));
    append_text(start, p->warps ? first_lane : "");
    write_sequence(p, p->top, p->kernel.body);
    return p->form;
}
