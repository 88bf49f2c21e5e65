// SPDX-License-Identifier: MIT
// Writes the loops of a kernel that was divided into regions
#include "plan.h"

char *declarator(const Variable *v) { // without the initial value
    return fill("$specifiers$before $x", "specifiers", spelling(v->specifiers, v->specifiers_end), "before",
                v->from < v->name ? fill(" $x", "x", spelling(v->from, v->name)) : "", "x",
                spelling(v->name, v->init ? v->init : v->after));
}

// Appends an expression in which what a region declares is replaced by values of the same types.
static void append_unevaluated(LoopPlan *p, Text *text, const Token *i, const Token *end) {
    for (; i < end; i++) {
        const Variable *v = variable_at(p, i);
        append_text(text, i->text > end_of(i - 1) ? " " : "");
        if (v && v->typed && v->keeping != DECLARED_BEFORE)
            append_filled(text,
                          v->is_reference ? "(*::std::declval<cu_t_$x>())" : "::std::declval<cu_t_$x &>()",
                          "x", word_of(i));
        else
            append(text, i->text, i->length);
    }
}

// Declares the type cu_t_x of a variable x, outside of its region; for a reference, that of a pointer.
static void declare_type(LoopPlan *p, Text *text, const Variable *v) {
    append_text(text, " typedef");
    for (const Token *t = v->specifiers; t < v->specifiers_end; t++) {
        if (!is(t, "auto")) {
            append_text(text, t == v->specifiers || t->text > end_of(t - 1) ? " " : "");
            append(text, t->text, t->length);
            continue;
        }
        append_text(text, v->is_reference ? " ::std::remove_reference_t<decltype(("
                          : v->is_pointer ? " ::std::remove_pointer_t<::std::decay_t<decltype(("
                                          : " ::std::decay_t<decltype((");
        append_unevaluated(p, text, v->init + 1, v->after);
        append_text(text, v->is_pointer ? "))>>" : "))>");
    }
    append_filled(text, "$before cu_t_$after;", "before", v->is_reference ? " *" : spelling(v->from, v->name),
                  "after", spelling(v->name, v->init ? v->init : v->after));
}

// Declares a variable again in a later region: computed from the thread's index, and not stored.
static void declare_again(Text *text, const Variable *v, bool counted) {
    append_filled(text, " [[maybe_unused]] $x $init;", "x", declarator(v), "init",
                  counted && v->place >= 0
                      ? fill("= $value, $x)", "value", counted_value(v), "x", spelling(v->init + 1, v->after))
                      : spelling(v->init, v->after));
}

// Appends the declarations in front of the loop of a region: for each variable that later regions use, a
// typedef of its type and the array with its value for each thread.
static void declare_places(LoopPlan *p, Text *text, int region) {
    for (const Variable *v = p->variables; v < p->variables + p->count; v++) {
        if (v->region != region)
            continue;
        if (v->keeping == DECLARED_BEFORE)
            append_filled(text, " [[maybe_unused]] $x;", "x", declarator(v));
        else if (v->typed)
            declare_type(p, text, v);
        if (v->keeping == ONE_FOR_ALL)
            append_filled(text, " ::std::remove_cv_t<cu_t_$x> cu_k_$x{};", "x", word_of(v->name));
        else if (v->keeping == COPY_OF_THREAD || v->keeping == OBJECT_OF_THREAD)
            append_filled(
                text,
                p->chunk ? " ::cuda_cpu::EachLane<cu_t_$x, cu_n> cu_k_$x;"
                : p->form == IN_CHUNKS
                    ? " ::cuda_cpu::EachThreadOf<::std::decay_t<decltype(cu_w)>, cu_t_$x> cu_k_$x(cu_w);"
                    : " ::cuda_cpu::OnlyThread<cu_t_$x> cu_o_$x; "
                      "::cuda_cpu::EachThread<cu_t_$x> cu_k_$x(cu_w, cu_o_$x);",
                "x", word_of(v->name));
    }
}

// In `vector` loops, threads do each operation together: their order is not kept.
static void write_pragma(Text *text, const char *clause, const Token *before) {
    append_text(text, format("\n#pragma omp simd%s\n# %u \"%.*s\"\n", clause, (unsigned)before->line,
                             (int)before->file->length, before->file->name));
}

// True for the region of an iteration in a loop that threads leave one after the other
static bool in_masked_region(const LoopPlan *p, int region) {
    const Statement *s = p->chunk;
    return s && ((s->form == CHUNK_MASKED && s->inside->region == region) ||
                 (s->form == CHUNK_OWN_TEST && s->other->region == region));
}

// True for a variable whose value must not change when its thread has left that loop
static bool keeps_value(LoopPlan *p, const Variable *v, int region) {
    return in_masked_region(p, region) && v->keeping == COPY_OF_THREAD && v->modified && !v->is_reference &&
           v->region != region && v->name < p->chunk->first && is_used_later(p, p->chunk, v);
}

static const char rows[] = " for (unsigned cu_z = cu_w.z; cu_z < cu_w.end_z; ++cu_z)"
                           " for (unsigned cu_y = cu_w.y; cu_y < cu_w.end_y; ++cu_y)";

// Begins the rows of a region, and runs of threads whose index variables are counted from the first one.
// Where these are the same in all rows, runs are the outer loops.
static void open_rows(LoopPlan *p, Text *text, int region, int growing) {
    const bool alike = growing && grow_alike(p);
    append_text(text, alike ? " { const unsigned cu_y = cu_w.y, cu_z = cu_w.z;" : rows);
    if (!growing)
        return;
    append_text(text, alike ? "" : " {");
    write_growing(p, text, region, region);
    append_text(text, format(" long long cu_f[%d] = {}; for (unsigned cu_b = cu_w.x, cu_e; cu_b < cu_w.end_x;"
                             " cu_b = cu_e) { cu_e = ::cuda_cpu::end_of_run(cu_b, cu_w.end_x, cu_f, cu_a);%s",
                             growing, alike ? rows : ""));
}

// Begins a loop whose iterations the threads execute together, as long as it goes on for them.
static void open_counted(LoopPlan *p, const Statement *loop) {
    const Variable *v = loop->counter;
    const Token *test = loop->other->first, *step = statement_end(loop->other->first) + 1;
    Text again = empty_text();
    for (const Variable *w = p->variables; w < p->variables + p->count; w++)
        if (w->keeping == COMPUTED_AGAIN && w->used[loop->inside->region])
            declare_again(&again, w, false);
    delete_tokens(p->u, loop->first, loop->first[1].match);
    insert_after(
        p->u, loop->first[1].match,
        fill(" for (::cuda_cpu::Neighbours<$type> cu_h(cu_w.x, cu_w.end_x); cu_h.next($step, [&](unsigned "
             "cu_x) {"
             " [[maybe_unused]] const uint3 threadIdx = {cu_x, 0, 0};$again $type $x $init; return $x; },"
             " [&]($type $x) { return $test; });) {",
             "again", again.data, "type", spelling(v->specifiers, v->specifiers_end), "x", word_of(v->name),
             "init", spelling(v->init, v->after), "test", spelling(test, step - 1), "step",
             spelling(step + 3, loop->first[1].match)));
}

// Begins the loop of a region. Returns whether it counts some variables from its first thread.
static bool open_region(LoopPlan *p, const Statement *first, const Statement *last, bool vector, bool returns,
                        Token *before) {
    Text text = empty_text();
    const bool quiet = is_quiet(p->u, first->first, last->last, &vector) && !functions_know_thread(p->u);
    vector &= quiet;
    bool indexed = false; // uses the index of a thread: the compiler is told that it does not wrap around
    for (const Token *i = first->first; i < last->last; i++)
        indexed |= is_thread_index(p, i);
    const int growing = p->chunk ? 0 : number_growing(p, first->region, first->region - (!vector || p->loop));
    declare_places(p, &text, first->region);
    if (last->gives)
        append_filled(
            &text, " const ::cuda_cpu::WarpOperands<::std::decay_t<decltype(cu_w)>$most> $x(cu_w, $gaps);",
            "x", word_of(last->first), "most", is(last->first + 2, "put_of_tile") ? ", 32" : "", "gaps",
            !p->returns_early ? "false"
            : returns         ? "true"
                              : "cu_live != cu_w.count");
    if (p->chunk) {
        write_pragma(&text, in_masked_region(p, first->region) ? " reduction(|:cu_any)" : "", before);
        append_text(&text, " for (int cu_i = 0; cu_i < (int)cu_n; ++cu_i) {");
    } else {
        indexed = vector && !p->loop && (indexed || growing);
        open_rows(p, &text, first->region, growing);
        if (vector)
            write_pragma(&text, "", before);
        append_filled(&text,
                      indexed ? " for (int cu_i = 0; cu_i < (int)($end - $begin); ++cu_i) {"
                                " const unsigned cu_x = $begin + (unsigned)cu_i;"
                              : " for (unsigned cu_x = $begin; cu_x < $end; ++cu_x) {",
                      "begin",
                      p->loop   ? "cu_h.begin"
                      : growing ? "cu_b"
                                : "cu_w.x",
                      "end",
                      p->loop   ? "cu_h.end"
                      : growing ? "cu_e"
                                : "cu_w.end_x");
    }
    if (p->chunk) {
        append_text(&text, " [[maybe_unused]] const unsigned cu_x = cu_i, cu_r = 0;");
        declare_index(p, &text, "cu_w.x + cu_x", "");
    } else {
        append_text(&text, indexed ? " ::cuda_cpu::is_in_block(cu_x);" : "");
        declare_index(p, &text, "cu_x", quiet ? "" : "::threadIdx = ");
        append_text(&text, " [[maybe_unused]] const size_t cu_r = cu_w.row(cu_y, cu_z);");
    }
    if (p->returns_early)
        append_text(&text, " if (cu_gone(cu_r, cu_x)) continue;");
    append_text(&text, " {");
    for (const Variable *v = p->variables; v < p->variables + p->count; v++) {
        if (v->region == first->region &&
            v->place >= 0) { // counted, with the type of the initial value as it is
            insert_between(p->u, v->init, fill(" $value, ", "value", counted_value(v)));
            insert_after(p->u, v->after - 1, ")");
        }
        if (v->region == first->region || !v->used[first->region])
            continue;
        const char *x = word_of(v->name);
        if (p->loop && v == p->loop->counter)
            append_filled(&text, " [[maybe_unused]] $type $x = cu_h.first + ($type)(cu_x - cu_h.begin);",
                          "type", spelling(v->specifiers, v->specifiers_end), "x", x);
        if (v->keeping == COMPUTED_AGAIN)
            declare_again(&text, v, true);
        else if (v->keeping == COPY_OF_THREAD || v->keeping == OBJECT_OF_THREAD)
            append_filled(&text, " [[maybe_unused]] $type$x = $star cu_k_$x(cu_r, cu_x);", "x", x, "type",
                          v->is_reference                  ? "auto &"
                          : v->keeping == OBJECT_OF_THREAD ? fill("cu_t_$x &", "x", x)
                                                           : fill("cu_t_$x ", "x", x),
                          "star", v->is_reference ? "*" : "");
        if (keeps_value(p, v, first->region))
            append_filled(&text, " const auto cu_p_$x = $x;", "x", x);
    }
    if (in_masked_region(p, first->region))
        append_text(&text, " int cu_out = -1;");
    if (p->chunk && p->chunk->form == CHUNK_MASKED)
        append_text(&text, " do {"); // `break` leaves it with cu_out = -1
    insert_between(p->u, before, text.data);
    return growing > 0;
}

// True if the statement declares a variable for this region alone, and does nothing else.
static bool only_declares(LoopPlan *p, const Statement *s) {
    bool quiet = true, found = false;
    for (const Variable *v = p->variables; v < p->variables + p->count; v++) {
        found |= declares(s, v);
        quiet &= !declares(s, v) || v->keeping == NOT_KEPT || v->keeping == COMPUTED_AGAIN;
        for (const Token *i = v->init ? v->init + 1 : v->after; declares(s, v) && i < v->after; i++)
            quiet &= !assigns(i) && !is_atomic(i);
    }
    return found && is_quiet(p->u, s->first, s->last, &quiet) && quiet;
}

// if (threadIdx.x < n) … as the last statement of a region that otherwise only declares variables: the others
// of a row need not be looked at.
static bool stop_early(LoopPlan *p, Statement *s) {
    Token *i = s->first, *open = i + 1, *close = open->match, *end = open + 1;
    if (!is(i, "if") || kind(open) != '(' || is(last_of(close + 1) + 1, "else"))
        return false;
    while (end < close && kind(end) != '<' && kind(end) != OPERATOR)
        end++;
    const bool equal = kind(end) == OPERATOR && end->text[0] == '=' &&
                       (is_thread_x(p, open + 1, end) || (p->in_warp && is_lane(p, open + 1, end))) &&
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
        text = fill("[[maybe_unused]] $x", "x", declarator(v));
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

static void close_region(LoopPlan *p, Statement *last, bool returns, bool counts) {
    Text text = empty_text(), later = empty_text();
    for (const Variable *v = p->variables; v < p->variables + p->count; v++) {
        const char *x = word_of(v->name);
        const bool here = v->region == last->region;
        if (v->keeping == ONE_FOR_ALL && here) {
            append_filled(&text, " cu_k_$x = $x;", "x", x);
            append_filled(&later, " [[maybe_unused]] $type = cu_k_$x;", "type", declarator(v), "x", x);
        } else if (v->keeping == COPY_OF_THREAD &&
                   (here || (v->modified && !v->is_reference && v->used[last->region]))) {
            append_filled(
                &text,
                keeps_value(p, v, last->region)
                    ? " cu_k_$x.put(cu_r, cu_x, ::cuda_cpu::choose(cu_on(cu_r, cu_x), $x, cu_p_$x));"
                    : " cu_k_$x.put(cu_r, cu_x, $address($x));",
                "x", x, "address", v->is_reference ? "::std::addressof" : "");
        }
    }
    if (p->chunk && p->chunk->form == CHUNK_MASKED)
        insert_after(p->u, last->last, " cu_out = 0; } while (false);");
    if (in_masked_region(p, last->region))
        append_text(&text, " const int cu_now = cu_on(cu_r, cu_x) & ~cu_out; cu_on.put(cu_r, cu_x, cu_now);"
                           " cu_any |= cu_now;");
    append_text(&text, " }");
    if (returns)
        append_text(&text, fill(" cu_end_$n:;", "n", format("%d", last->region)));
    append_filled(&text, " }$counts$live$later", "counts", counts ? " } }" : "", "live",
                  returns && p->returns_early ? " if (!cu_live) return;" : "", "later", later.data);
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
// The same for the threads of a chunk (CHUNK_OWN_TEST), which note when they leave the loop.
static void write_strided(LoopPlan *p, Statement *s) {
    Unit *u = p->u;
    const bool chunk = s->form == CHUNK_OWN_TEST;
    Token *open = s->first + 1, *before = s->inside ? s->inside->last : open;
    const char *step = chunk ? "); cu_once = false, cu_out = 0" : "); cu_once = false";
    if (s->counter) {
        open_counted(p, s);
        p->loop = s;
        write_sequence(p, s->other, open->match);
        p->loop = NULL;
        insert_after(u, s->last, " }");
        return;
    }
    edit(u, s->first->text, s->first->length, "{");
    edit(u, open->text, 1, "");
    if (s->inside) {
        Token *semicolon = statement_end(before + 1);
        write_sequence(p, s->inside, open);
        edit(u, semicolon->text, 1,
             fill("$step$comma", "step", step, "comma", semicolon + 1 < open->match ? "," : ""));
    } else {
        insert_before(u, open->match, step);
    }
    insert_after(u, s->last, chunk ? "" : " }");
    insert_between(u, before,
                   chunk ? " for (int cu_any = -1; cu_any;) { cu_any = 0;"
                         : " for (bool cu_any = true; cu_any;) { cu_any = false;");
    write_sequence(p, s->other, before);
    insert_between(u, before, " for (bool cu_once = true; cu_once && (");
    insert_between(u, open->match, chunk ? "" : " { cu_any = true;");
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
            declare_again(&text, v, false);
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
            declare_again(&text, v, false);
    }
    insert_between(p->u, before, text.data);
}

static bool in_chunk(const LoopPlan *p, const Statement *s,
                     const Variable *v) { // used there, but declared before it
    bool used = false;
    for (const Statement *t = s; t < p->end && t->first <= s->last; t++)
        used |= t->region >= 0 && v->used[t->region];
    return used && v->keeping == COPY_OF_THREAD && v->name < s->first;
}

static int last_region(const LoopPlan *p, const Statement *s, int *first) {
    int last = -1;
    *first = p->regions;
    for (const Statement *t = s; t < p->end && t->first <= s->last; t++)
        if (t->region >= 0) {
            *first = t->region < *first ? t->region : *first;
            last = t->region > last ? t->region : last;
        }
    return last;
}

// Executes a loop for a few threads of a row at a time. Returns what to write after it.
static char *open_chunk(LoopPlan *p, const Statement *s, Token *before) {
    Text text = empty_text(), inside = empty_text(), end = empty_text(), after = empty_text();
    int begin, last = last_region(p, s, &begin), growing = number_growing(p, begin, last);
    append_text(&text, " {");
    for (const Variable *v = p->variables; v < p->variables + p->count; v++)
        if (v->uniform && v->name < s->first && is_changed_in(p, s, v)) { // once in each chunk
            const char *x = word_of(v->name);
            const bool first =
                is(s->first, "for") && same_word(s->first + 2, v->name) && kind(s->first + 3) == '=';
            append_filled(&text, first ? " ::std::decay_t<decltype($x)> cu_q_$x{};" : " auto cu_q_$x = $x;",
                          "x", x);
            append_filled(&inside, " auto cu_c_$x = $from; auto &cu_d_$x = cu_q_$x; {{ auto &$x = cu_c_$x;",
                          "x", x, "from", first ? fill("cu_q_$x", "x", x) : x);
            append_filled(&end, " cu_d_$x = cu_c_$x; }}", "x", x);
            append_filled(&after, " $x = cu_q_$x;", "x", x);
        }
    append_text(&text, " ::cuda_cpu::for_chunks(cu_w, [&](const auto cu_c) -> bool {"
                       " [[maybe_unused]] constexpr unsigned cu_n = decltype(cu_c)::lanes;"
                       " [[maybe_unused]] const unsigned cu_y = cu_c.y, cu_z = cu_c.z, cu_b = cu_c.x;"
                       " ::cuda_cpu::is_in_block(cu_b);"
                       " [[maybe_unused]] const size_t cu_r = cu_c.row(cu_y, cu_z);");
    if (growing) {
        write_growing(p, &text, begin, last);
        append_text(&text,
                    format(" long long cu_f[%d] = {}; if (::cuda_cpu::end_of_run(cu_b, cu_b + cu_n, cu_f,"
                           " cu_a) != cu_b + cu_n) return false;",
                           growing));
    }
    if (s->form != CHUNK)
        append_text(&text, " ::cuda_cpu::Mask<cu_n> cu_on;");
    append_text(&inside, " { const auto &cu_w = cu_c;");
    for (const Variable *v = p->variables; v < p->variables + p->count; v++) {
        const char *x = word_of(v->name);
        if (!in_chunk(p, s, v))
            continue;
        append_filled(&text,
                      " ::cuda_cpu::EachLane<cu_t_$x, cu_n> cu_l_$x; cu_l_$x.take(cu_k_$x, cu_r, cu_b);", "x",
                      x);
        append_filled(&inside, " auto &cu_k_$x = cu_l_$x;", "x", x);
        append_filled(&end, v->modified ? " cu_l_$x.give(cu_k_$x, cu_r, cu_b);" : "", "x", x);
    }
    insert_between(p->u, before, fill("$text$inside", "text", text.data, "inside", inside.data));
    return fill(" }$end return true; });$after }", "end", end.data, "after", after.data);
}

// Executes what a guard contains for all threads if its condition is true for them, or else for each run of
// threads in a row for which it is.
static void open_guard(LoopPlan *p, const Statement *s, Token *before) {
    Token *open = s->first + 1;
    Text text = empty_text(), indices = empty_text();
    char *axes = "";
    is_good_guard(p, s, &indices, &axes);
    append_text(&text, " { const auto cu_a = [=](unsigned cu_x, unsigned cu_y, unsigned cu_z,"
                       " [[maybe_unused]] long long *cu_v) -> bool {");
    declare_index(p, &text, "cu_x", "");
    for (const Variable *v = p->variables; v < p->variables + p->count; v++)
        if (v->keeping == COMPUTED_AGAIN && v->name < s->first && s->first < v->end)
            declare_again(&text, v, false);
    append_filled(&text, "$indices return $not", "indices", indices.data, "not",
                  s->form == GUARD_RETURN ? "!" : "");
    insert_between(p->u, before, text.data); // the condition stays where it is, because it is translated
    delete_tokens(p->u, s->first, s->first);
    insert_after(
        p->u, open->match,
        fill("; }; auto cu_g = cu_w; for (auto cu_o = ::cuda_cpu::first_run(cu_g, cu_w, \"$axes\", cu_a);"
             " cu_o != ::cuda_cpu::Runs::none; cu_o = cu_o == ::cuda_cpu::Runs::all ? ::cuda_cpu::Runs::none"
             " : ::cuda_cpu::next_part(cu_g, cu_w, \"$axes\", cu_a)) { const auto cu_h = cu_g; { const auto "
             "&cu_w = cu_h; {",
             "axes", axes));
    if (s->form == GUARD_RETURN)
        delete_tokens(p->u, open->match + 1, last_of(open->match + 1));
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
    bool early = true;
    for (const Statement *s = first; s != last; s = s->next)
        early = early && only_declares(p, s);
    early = early && stop_early(p, last);
    const bool counts = open_region(p, first, last, !early && !returns && !p->returns_early, returns, before);
    close_region(p, last, returns, counts);
    if (p->in_warp)
        declare_for_warp(p, last);
    return last;
}

static void write_guard(LoopPlan *p, Statement *s, Token *before) {
    open_guard(p, s, before);
    if (s->form == GUARD_IF)
        write_inside(p, s->inside, s->block, s->header->match);
    else
        write_sequence(p, s->inside, last_of(s->header->match + 1));
    insert_after(p->u, s->last, " } } } }");
}

static void write_chunk(LoopPlan *p, Statement *s, Token *before) {
    const bool outer = !p->chunk;
    const char *end = "";
    if (outer) {
        end = open_chunk(p, s, before);
        p->chunk = s;
    }
    if (s->form == CHUNK_OWN_TEST) {
        write_strided(p, s);
    } else if (s->form == CHUNK) {
        write_inside(p, s->inside, s->block, s->header->match);
    } else {
        Token *first = statement_end(s->header + 1), *second = statement_end(first + 1);
        insert_between(p->u, before, " int cu_any = -1;");
        insert_between(p->u, first, second == first + 1 ? " cu_any" : " cu_any && (");
        insert_before(p->u, second, second == first + 1 ? "" : ")");
        insert_between(p->u, s->header->match, " { cu_any = 0;");
        write_sequence(p, s->inside, s->header->match);
        insert_after(p->u, s->last, " }");
    }
    insert_after(p->u, s->last, end);
    if (outer)
        p->chunk = NULL;
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
        } else if (is_guard(s)) {
            write_guard(p, s, before);
        } else if (is_chunk(s)) {
            write_chunk(p, s, before);
        } else if (s->in_step) {
            write_strided(p, s);
        } else if (s->kind == CONTROL) {
            write_control(p, s, before);
        }
        before = s->last;
    }
}

// True if a return is followed by statements: then threads that have returned must be left out of them.
bool returns_early(const LoopPlan *p) {
    const Statement *end = p->top;
    while (end && (end->next || is_guard(end)))
        end = end->next ? end->next : end->inside;
    if (!end)
        return false;
    for (const Statement *s = p->statements; s < p->end; s++)
        for (const Token *i = s->first; s->kind != CONTROL && i < s->last; i++)
            if (is(i, "return") && s->region != end->region)
                return true;
    return false;
}

KernelForm write_loops(LoopPlan *p, Text *start) {
    mark_atomics(p->u, p->kernel.body);
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
        if (v->parameter && v->keeping != NOT_KEPT)
            append_filled(start,
                          " typedef ::std::remove_cv_t<::std::remove_reference_t<decltype($x)>> cu_t_$x;"
                          " ::cuda_cpu::OnlyThread<cu_t_$x> cu_o_$x; "
                          "::cuda_cpu::EachThread<cu_t_$x> cu_k_$x(cu_w, cu_o_$x); cu_k_$x.fill($x);",
                          "x", word_of(v->name));
    append_text(start, p->warps ? first_lane : "");
    write_sequence(p, p->top, p->kernel.body);
    return p->form;
}
