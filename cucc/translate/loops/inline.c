// SPDX-License-Identifier: MIT
/*
 * Kernels with warp operations, or with barriers in functions, are rewritten before they are divided:
 *
 *     sum += __shfl_down_sync(~0u, x, 1);     cu_s1.put(cu_r, cu_x, x);
 *                                             sum += cu_s1.shuffle_down(cu_r, cu_x, …<decltype(x)>{}, 1);
 *     if (__any_sync(~0u, x > 0)) …       ->  cu_s2.put_number(cu_r, cu_x, (int)(x > 0) != 0); cu_s2.meet(…);
 *                                             if ((cu_s2.get(cu_r, cu_x) != 0 ? 1 : 0)) …
 *     cg::sync(block);                        __syncthreads();
 *     y = block_sum(x);                       float cu_c3; { float cu_3x = x; … cu_c3 = cu_3x; } y = cu_c3;
 *
 * Accesses of shared memory through `volatile`, by which lanes in lockstep exchange values, become others:
 *     v[t] += v[t + 1];                   ->  cu_s4.put(cu_r, cu_x, v[t] + (v[t + 1])); cu_step();
 *                                             v[t] = cu_s4.own(cu_r, cu_x, …<decltype(v[t] + (v[t + 1]))>{});
 *     x = v[t];                               cu_step(); x = v[t];
 *
 * A region ends after put (cuda_cpu/lanes.h). A kernel with anything else, such as other masks than that of
 * all lanes or an operation in one branch of ?:, stays as it is and runs with fibers.
 */
#include "inline.h"
#include <ctype.h>

// The kernels with warp operations
static Rewrite *rewrites;
static size_t rewrite_count;

// Records why the kernel stays as it is; the first reason counts.
void refuse_inlining(Rewrite *r, const Token *where, const char *why) {
    if (!r->why) {
        r->where = where;
        r->why = why;
    }
}

// Why a kernel was not rewritten; null if it was. Its text may have been read again since then.
const char *why_not_inlined(const Token *name, const Token **where) {
    for (size_t n = 0; n < rewrite_count; n++) {
        const Rewrite *r = &rewrites[n];
        *where = r->where;
        if (r->why && same_word(r->kernel.name, name) && r->kernel.name->line == name->line)
            return r->why;
    }
    return NULL;
}

void replace(Body *b, const Token *first, const Token *last, const char *text) {
    PUSH(b->replacements, b->count, (Replacement){first, last, text, NULL});
}

static void rename_word(Body *b, const Token *name, const char *text, const char *type) {
    for (size_t n = 0; n < b->count; n++)
        if (!b->replacements[n].end && same_word(b->replacements[n].name, name))
            type = NULL; // two variables of this name, perhaps of different types
    PUSH(b->replacements, b->count, (Replacement){name, NULL, text, type});
}

const Replacement *find_replacement(const Body *b, const Token *i) {
    for (size_t n = b->count; n-- > 0;)
        if (b->replacements[n].end ? b->replacements[n].name == i
                                   : same_word(b->replacements[n].name, i) && !is_member(i))
            return &b->replacements[n];
    return NULL;
}

// Appends the tokens with their changes: with the lines between them, or in one line.
static void copy(const Body *b, Text *text, const Token *i, const Token *end, bool lines) {
    while (i < end) {
        const Replacement *c = find_replacement(b, i);
        const Token *last = c && c->end ? c->end : i;
        if (c)
            append_text(text, c->text);
        else if (!is_volatile(i))
            append(text, i->text, i->length);
        i = last + 1;
        if (lines)
            append(text, end_of(last), (size_t)(i->text - end_of(last)));
        else if (i < end && i->text > end_of(last))
            append(text, " ", 1);
    }
}

static void write_tokens(Rewrite *r, const Body *b, const Token *i, const Token *end) {
    copy(b, &r->out, i, end, true);
}

char *changed(const Body *b, const Token *i, const Token *end) {
    Text text = empty_text();
    copy(b, &text, i, end, false);
    return text.data;
}

// ---- what is expanded ----

static const char votes[] = " __ballot_sync __any_sync __all_sync __reduce_add_sync __reduce_min_sync "
                            "__reduce_max_sync __reduce_and_sync __reduce_or_sync __reduce_xor_sync ";
static const char shuffles[] = " __shfl_sync __shfl_up_sync __shfl_down_sync __shfl_xor_sync ";

static Token *call_of(Token *i) { // the ( of f(…) or f<…>(…)
    Token *open = i + 1;
    if (kind(i) != IDENT || is_member(i))
        return NULL;
    if (kind(open) == '<' && run(open, 1) == 1)
        open = skip_angles(open, NULL);
    return open && kind(open) == '(' ? open : NULL;
}

static bool find_operation(Rewrite *r, Token *i, const Token *last, bool barriers, unsigned search) {
    for (; i <= last; i++) {
        if (is_one_of(i, votes) || is_one_of(i, shuffles) || is_group_call(r->u, i) || is_volatile(i) ||
            (barriers && is_one_of(i, " __syncthreads __syncwarp ")))
            return true;
        Token *f = call_of(i) ? only_function(r->u, i) : NULL;
        if (!f || f->search == search)
            continue;
        f->search = search;
        if (has_escape_loop(f, find_body(f + 1)) ||
            find_operation(r, f + 1, find_body(f + 1)->match, true, search))
            return true;
    }
    return false;
}

// Returns whether the tokens from i to `last`, or a function that they call, contain a warp operation; with
// `barriers`, whether they contain a warp operation or a barrier. Each function is looked into once.
bool has_operations(Rewrite *r, Token *i, const Token *last, bool barriers) {
    static unsigned searches;
    return find_operation(r, i, last, barriers, ++searches);
}

// True if a function is called here that is written in place of its call for its loop.
static bool calls_escape_loop(const Rewrite *r, Token *i, const Token *last) {
    for (; i <= last; i++) {
        Token *f = call_of(i) ? only_function(r->u, i) : NULL;
        if (f && has_escape_loop(f, find_body(f + 1)))
            return true;
    }
    return false;
}

static bool is_full(Rewrite *r, Token *i, const Token *end);

// Finds the declaration of a name: the last one before it in the scopes around it. The caller has to check
// that what is found is a declaration: it may also be an assignment or an argument.
Token *declared(Token *name) {
    Token *t = name - 1;
    while (kind(t) != END &&
           !(same_word(t, name) && !is_member(t) &&
             (kind(t - 1) == IDENT || kind(t - 1) == ',' || kind(t - 1) == '&' || kind(t + 1) == '='))) {
        // Goes to the tokens before, but not into blocks that end there. The ) before a { ends parameters.
        t = closes(t) && !(kind(t) == ')' && kind(t + 1) == '{') ? t->match : t;
        t--;
    }
    return t;
}

// const unsigned ALL = ~0u; True if the name certainly means the mask of all lanes, and nothing changes it.
static bool is_full_variable(Rewrite *r, Token *name) {
    Token *t = declared(name);
    if (kind(enclosing(t)) == '(' || kind(t - 1) != IDENT || is(t - 1, "return") || kind(t + 1) != '=' ||
        same_word(t + 2, t) || !is_full(r, t + 2, next_comma(t + 2, statement_end(t))))
        return false;
    LoopPlan probe = {.u = r->u};
    const Token *open = enclosing(t), *end = kind(open) == END ? r->u->end : open->match;
    for (Token *i = t + 1; i < end; i++)
        if (same_word(i, t) && !is_member(i) && use_of(&probe, &(Variable){0}, i) != READ)
            return false;
    return true;
}

static bool is_full(Rewrite *r, Token *i, const Token *end) {
    char *text = spelling(i, end);
    for (char *c = text; *c; c++)
        *c = (char)tolower(*c);
    if (strlen(text) > 2 && text[strlen(text) - 1] == 'u')
        text[strlen(text) - 1] = '\0';
    if (is_one_of(&(Token){.text = text, .length = (uint32_t)strlen(text), .kind = IDENT},
                  " 0xffffffff ~0 -1 "))
        return true;
    return end == i + 1 && kind(i) == IDENT && is_full_variable(r, i);
}

// True if the call is evaluated whenever the statement is: not at one side of ? : && || or a comma.
static bool is_unconditional(Token *i, const Token *first) {
    for (Token *t = i - 1; t >= first; t = skip_back(t))
        if (kind(t) == '?' || ((kind(t) == '&' || kind(t) == '|') && run(t, -1) == 2) ||
            (kind(t) == ',' && enclosing(t) < first) || kind(t) == '{')
            return false;
    return true;
}

// ---- warp operations ----

static void hoist(Rewrite *r, Body *b, Token *first, Token *end);
static void statements(Rewrite *r, Body *b, Token *i, Token *end);

// Writes the operation `name`, of the lanes in its mask or of a tile of `size` threads.
static void write_operation(Rewrite *r, Body *b, Token *name, Token *open, unsigned size) {
    Token *close = open->match, *comma = size ? open : next_comma(open + 1, close);
    if (comma == close || (!size && !is_full(r, open + 1, comma))) {
        refuse_inlining(r, name, "the mask of a warp operation is not that of all lanes");
        return;
    }
    Token *end = next_comma(comma + 1, close);
    const char *value = changed(b, comma + 1, end), *get = fill("cu_s$k", "k", format("%d", ++r->number));
    const char *n = size ? format(", %u", size) : "", *word = word_of(name),
               *type = fill(", ::cuda_cpu::TypeTag<decltype($value)$n>{}", "value", value, "n", n);
    if (is_one_of(name, shuffles) || strncmp(word, "shfl", 4) == 0) { // __shfl_down_sync -> shuffle_down
        word = size ? word + 4 : format("%.*s", (int)name->length - 11, word + 6);
        append_filled(&r->out, "$s.put$tile(cu_r, cu_x, $value); ", "s", get, "tile", size ? "_of_tile" : "",
                      "value", value);
        get = fill("$s.shuffle$word(cu_r, cu_x$type$rest)", "s", get, "word",
                   strcmp(word, "") == 0 ? "_index" : word, "type", type, "rest", changed(b, end, close));
    } else {
        const bool all = strstr(word, "all_") || strcmp(word, "all") == 0, any = all || strstr(word, "any"),
                   reduction = word[2] == 'r';
        const char *test = all ? " == 0" : reduction ? "" : " != 0";
        n = size < 32 ? n : "";
        append_filled(&r->out,
                      "$s.put_number(cu_r, cu_x, $int($value)$test); $s.meet(::cuda_cpu::WarpOp::$op$n); ",
                      "s", get, "int", reduction ? "" : "(int)", "value", value, "test", test, "op",
                      reduction ? format("%.*s", (int)name->length - 7, word + 2) : "ballot", "n", n);
        get = fill(any ? "($s.get(cu_r, cu_x$n)$test ? 1 : 0)" : "$s.get(cu_r, cu_x$n$type)", "s", get, "n",
                   n, "test", test, "type", reduction ? type : "");
    }
    replace(b, size ? name - 2 : name, close, get);
}

// ---- functions ----

// The type of an argument that is a variable; null if it is not known
static const char *type_of(const Body *b, Token *i, const Token *end) {
    const Replacement *c = find_replacement(b, i);
    if (end != i + 1 || kind(i) != IDENT || c)
        return end == i + 1 && c ? c->type : NULL;
    for (Token *t = i - 1; t > b->parameters; t--) {
        t = kind(t) == '}' && t->match ? t->match : t; // of another scope
        Token *from = t;
        if (kind(t) == ')' && is(t->match - 1, "for") && last_of(t->match - 1) < i)
            t = t->match; // of another scope too
        if (same_word(t, i) && kind(t - 1) == IDENT && !is_one_of(t - 1, statement_words) && opens(t + 1))
            return NULL; // int x{3};
        if (!same_word(t, i) || is_member(t) || !strchr("=;,)", kind(t + 1)))
            continue;
        if (kind(t - 1) == ',' && kind(enclosing(t)) != '(')
            return NULL; // int a, x;
        while (kind(from - 1) == IDENT && !is_one_of(from - 1, statement_words))
            from--;
        from += is(from, "const");
        for (const Token *w = from; w < t; w++)
            if (is_one_of(w, " const constexpr static register "))
                return NULL; // int const x
        if (from < t && strchr("(,;{}", kind(from - 1)) && !is(from, "auto"))
            return changed(b, from, t);
    }
    return NULL;
}

// Gives the parameters of a template the arguments of the call. Returns false if one is not known.
static bool take_template(Rewrite *r, Body *b, Body *f, Token *list, Token *name, Token *open) {
    Token *end = skip_angles(list, NULL), *given = name + 1 < open ? name + 2 : NULL;
    for (Token *i = list + 1; end && i < end; i++) {
        Token *comma = next_comma(i, end - 1), *next = given ? next_comma(given, open - 1) : NULL,
              *word = comma - 1;
        for (Token *t = i; t < comma; t++)
            if (kind(t) == '=')
                word = t - 1;
        const char *text = NULL;
        if (given && given < open - 1)
            text = changed(b, given, next);
        else if (word + 1 < comma)
            text = changed(f, word + 2, comma);
        if (given)
            given = next + 1 < open ? next + 1 : NULL;
        Token *argument = open + 1;
        for (Token *t = f->parameters + 1; !text && t < f->parameters->match;) {
            Token *last = next_comma(t, f->parameters->match), *stop = next_comma(argument, open->match);
            const char *group = group_of(r->u, b, argument, stop);
            t += is(t, "const");
            if (same_word(t, word) && (t + 2 == last || (group && kind(t + 1) == '&')))
                text = type_of(b, argument, stop);
            for (Token *w = t; group && w < last; w++) // thread_block_tile<N>
                if (is(w, "thread_block_tile") && same_word(w + 2, word))
                    text = format("%u", group_size(group));
            t = last + 1;
            argument = stop + 1;
        }
        if (!text || kind(word) != IDENT)
            return false;
        if (is_one_of(i, " class typename ") && strchr(text, ' ')) // T(0) is to be valid for unsigned int
            text = strcmp(text, "unsigned int") == 0 ? "unsigned"
                                                     : fill("::std::enable_if_t<true, $x>", "x", text);
        rename_word(f, word, is_one_of(i, " class template typename ") ? text : fill("($x)", "x", text),
                    NULL);
        i = comma;
    }
    return end;
}

// Finds the variables of a kernel, or of a function, in which they get other names. Replaces groups.
static void rename_variables(Rewrite *r, Body *b, Token *body) {
    LoopPlan probe = {.u = r->u};
    const Token *end = body;
    for (Token *i = body + 1; i < body->match; i++) {
        probe.count = 0;
        if ((strchr("{};", kind(i - 1)) || (kind(i - 1) == '(' && is(i - 2, "for"))) &&
            !add_variables(&probe, i, statement_end(i), body->match, false))
            probe.count = 0;
        for (const Variable *v = probe.variables; v < probe.variables + probe.count; v++) {
            end = v->specifiers_end;
            if (probe.count == 1 && replace_group_variable(r, b, v))
                continue;
            add_shared_pointer(r, v->specifiers, v->name, v->is_pointer && v->init ? v->init + 1 : NULL);
            const bool plain =
                v->from == v->name && !v->is_array && !v->is_auto && !is(v->specifiers, "const");
            const char *k = v->is_memory ? b->shared_prefix : format("%d", r->number);
            if (!b->result)
                PUSH(r->own, r->own_count, v->name);
            else
                rename_word(b, v->name, fill("cu_$k$x", "k", k, "x", word_of(v->name)),
                            plain ? changed(b, v->specifiers, v->specifiers_end) : NULL);
        }
        if (is_volatile(i) && i > end)
            refuse_inlining(r, i, "'volatile' is not in the declaration of a pointer or an array");
    }
}

// True if a variable or parameter of the kernel has this name.
static bool is_own(const Rewrite *r, const Token *name) {
    for (size_t n = 0; n < r->own_count; n++)
        if (same_word(r->own[n], name))
            return true;
    for (const Token *t = r->kernel.parameters; t < r->kernel.parameters->match; t++)
        if (same_word(t, name) && strchr(",)[=", kind(t + 1)))
            return true;
    return false;
}

// True if the function has nothing that cannot stand in place of a call.
static bool may_be_inlined(const Rewrite *r, Token *start, Token *body, bool escapes) {
    const Token *around = enclosing(statement_begin(start) - 1);
    if (start >= r->kernel.begin || (kind(around) != END && around != enclosing(r->kernel.begin - 1)))
        return false;
    for (Token *t = body; t < body->match; t++)
        if (is_one_of(
                t, " goto volatile __func__ __FUNCTION__ __PRETTY_FUNCTION__ asm __asm__ struct class union "
                   "enum ") ||
            (is(t, "static") && !is(t + 1, "__shared__") && !is(t - 1, "__shared__")))
            return false;
    return escapes || !returns_early_from(body);
}

// Declares the parameters of the function with the arguments as their values, or replaces them by the
// arguments. Returns false if that may mean something else.
static bool pass_arguments(Rewrite *r, Body *b, Body *f, Token *body, Token *open) {
    Token *argument = open + 1, *close = f->parameters->match;
    for (Token *t = f->parameters + 1; t < close && !(is(t, "void") && t + 1 == close); t++) {
        bool is_pack, may_be_unused;
        Token *place, *x = parameter_name(t, close, &place, &is_pack, &may_be_unused);
        Token *stop = next_comma(argument, open->match);
        if (!x || is_pack || argument >= open->match || kind(x + 1) == '[' || kind(x + 1) == '=' ||
            (kind(x + 1) == ')' && x + 1 != close))
            return false;
        const char *value = changed(b, argument, stop);
        add_shared_pointer(r, t, x, argument);
        const SharedPointer *known = find_shared_pointer(r, x);
        bool same = known && known->name == x && known->is_volatile && stop == argument + 1;
        for (Token *u = body; u < body->match; u++)
            same &= !same_word(u, x) || !(assigns(u + 1) || run(u - 1, -1) == 2 || kind(u - 1) == '&');
        if (replace_group_parameter(r, f, x, group_of(r->u, b, argument, stop), body)) {
            // it needs no variable
        } else if (same) {
            rename_word(f, x, value, NULL);
        } else if (kind(x - 1) == '&') {
            const char *its = type_of(b, argument, stop);
            if (stop != argument + 1 || kind(argument) != IDENT ||
                (is(t, "const") && (!its || strcmp(its, changed(f, t + 1, x - 1)) != 0)))
                return false; // or a conversion
            rename_word(f, x, value, its);
        } else {
            const char *own = format("cu_%d%s", r->number, word_of(x)), *type = changed(f, t, x);
            append_text(&r->out, format("%s %s = %s; ", type, own, value));
            rename_word(f, x, own, kind(x - 1) == IDENT ? changed(f, t + is(t, "const"), x) : NULL);
        }
        t = next_comma(x, close);
        argument = stop + 1;
    }
    return argument >= open->match;
}

// Gives the variables of the function other names. Returns false if a name may mean something else then.
static bool rename_function(Rewrite *r, Body *f, Token *body) {
    const size_t names = f->count;
    rename_variables(r, f, body);
    for (size_t n = 0; n < names; n++)
        for (size_t m = names; m < f->count; m++)
            if (same_word(f->replacements[n].name, f->replacements[m].name))
                return false; // a variable has the name of a parameter
    for (Token *t = body + 1; t < body->match; t++)
        if (kind(t) == IDENT && !is_member(t) && kind(t - 1) != SCOPE && !find_replacement(f, t) &&
            is_own(r, t))
            return false;
    return true;
}

static void write_line(Rewrite *r, const Token *body, const Token *i) {
    if (!body->file->is_input)
        append_text(&r->out,
                    format("\n# %u \"%.*s\"\n", (unsigned)i->line, (int)i->file->length, i->file->name));
}

// Writes the body of the function before the statement that calls it.
static bool inline_call(Rewrite *r, Body *b, Token *name, Token *open, Token *start) {
    Body f = {.parameters = start + 1, .depth = b->depth + 1};
    const size_t count = r->count;
    Token *i = statement_begin(start), *body = find_body(f.parameters);
    const bool is_template = is(i, "template");
    const bool escapes = has_escape_loop(start, body), early = escapes && returns_early_from(body);
    if (f.depth > 8 || !may_be_inlined(r, start, body, escapes))
        return false;
    if (is_template) {
        if (!take_template(r, b, &f, i + 1, name, open))
            return false;
        i = skip_angles(i + 1, NULL);
    }
    const char *call = format("%d", (int)(start->text - r->u->source.data));
    for (size_t n = 0; n < f.count; n++)
        call = fill("$call $x", "call", call, "x", f.replacements[n].text);
    f.shared_prefix = format("f%x_", hash(call));
    Text type = empty_text();
    for (; i < start; i++)
        if (is_one_of(i, " __attribute__ __attribute "))
            i++, i = i->match;
        else if (is_one_of(i, " auto __global__ volatile friend template operator ") || kind(i) == '[')
            return false;
        else if (!is_one_of(i, " __device__ static inline __inline__ __inline constexpr extern const "))
            append_filled(&type, "$x ", "x", changed(&f, i, i + 1));
    const bool none = strcmp(type.data, "void ") == 0;
    r->number++;
    f.result = none ? "" : format("cu_c%d", r->number);
    if (!none)
        append_filled(&r->out, escapes ? "$type $x{}; " : "$type $x; ", "type", type.data, "x", f.result);
    if (early)
        append_filled(&r->out, "int $x = 0; ", "x", f.returned = format("cu_q%d", r->number));
    append_text(&r->out, escapes ? "" : "{ "); // its loop is to be a statement of the kernel
    if (!is_template)                          // so that compilers do not say that it is not used
        append_filled(&r->out, "(void)$f; ", "f", word_of(start));
    if (!pass_arguments(r, b, &f, body, open) || !rename_function(r, &f, body))
        return false;
    write_line(r, body, body + 1);
    statements(r, &f, body + 1, body->match);
    for (; f.open > 0; f.open--)
        append_text(&r->out, "} ");
    r->count = count;
    write_line(r, body, name);
    append_text(&r->out, escapes ? "" : "} ");
    replace(b, name, open->match, none ? "((void)0)" : f.result);
    return true;
}

// ---- statements ----

// The largest text of a kernel with the functions in place of their calls
static const size_t most_bytes = 256 << 10;

// Writes what comes before a statement for the operations between these tokens. A call of a function without
// operations stays if that function cannot be written in its place.
static void hoist(Rewrite *r, Body *b, Token *first, Token *end) {
    for (Token *i = first; i < end && !r->why; i++) {
        const unsigned tile = tile_of(r, b, i);
        Token *open = tile ? i + 1 : call_of(i), *f = open && !tile ? only_function(r->u, i) : NULL,
              *body = f ? find_body(f + 1) : NULL;
        const bool operation = tile || is_one_of(i, votes) || is_one_of(i, shuffles),
                   needed = operation || (f && has_operations(r, f + 1, body->match, true));
        if (!open || (!needed && !(f && has_escape_loop(f, body) && is_unconditional(i, first) &&
                                   r->out.length < most_bytes)))
            continue;
        if (r->out.length > most_bytes)
            refuse_inlining(r, i, "it has more than 256 KB with the functions in place of their calls");
        if (!is_unconditional(i, first))
            refuse_inlining(r, i, fill("'$x' is at one side of a condition or comma", "x", word_of(i)));
        hoist(r, b, open + 1, open->match);
        const size_t length = r->out.length, count = r->count;
        if (is(i, "reduce") && tile)
            write_reduction(r, b, i, tile);
        else if (operation)
            write_operation(r, b, i, open, tile);
        else if (!inline_call(r, b, i, open, f) && needed)
            refuse_inlining(
                r, i, fill("the function '$x', which has barriers, has an unknown form", "x", word_of(i)));
        else if (!needed && (r->why || !find_replacement(b, i))) { // it was not written
            r->out.length = length;
            r->out.data[length] = '\0';
            r->count = count;
            r->why = NULL;
        }
        i = open->match;
    }
}

static void statement(Rewrite *r, Body *b, Token *i, Token *last);

static void controlled(Rewrite *r, Body *b, Token *i, Token *last) { // what a branch or loop contains
    const bool wrap = kind(i) != '{' && (r->has_volatile || has_operations(r, i, last, true));
    append_text(&r->out, wrap ? "{ " : "");
    r->accessed = r->has_volatile ? BOTH : 0; // what came before, here or in another iteration, is not known
    b->inside++;
    statement(r, b, i, last);
    b->inside--;
    r->accessed = r->has_volatile ? BOTH : 0;
    append_text(&r->out, wrap ? "} " : "");
}

// v[t] += v[t + 1]; All lanes have read before any of them stores.
static void write_read_modify_write(Rewrite *r, Body *b, Token *i, Token *last) {
    Token *op = i + 1;
    while (kind(op) == '[')
        op = op->match + 1;
    Token *value = op + (kind(op) == '=' || kind(op) == OPERATOR ? 1 : 2);
    const SharedPointer *known = find_shared_pointer(r, i);
    bool plain = known && known->is_volatile && op > i + 1 && assigns(op) &&
                 (kind(op) == '=' || run(op, 1) == 1) && !(accesses(r, value, last) & WRITES) &&
                 !accesses(r, i + 1, op) && next_comma(value, last) == last;
    for (Token *t = i + 1; t < op; t++)
        plain &= !assigns(t) && !call_of(t);
    if (!plain) {
        refuse_inlining(r, i, "it changes volatile memory in an unknown way");
        return;
    }
    write_step(r, READS | VOLATILE); // and again, because hoist may write
    hoist(r, b, i, last);
    write_step(r, READS | VOLATILE);
    const char *target = changed(b, i, op), *text = changed(b, value, last);
    if (kind(op) != '=')
        text = fill("$x $op ($y)", "x", target, "op", format("%.*s", kind(op) == OPERATOR ? 2 : 1, op->text),
                    "y", text);
    append_filled(&r->out,
                  "cu_s$k.put(cu_r, cu_x, $y); cu_step(); $x = cu_s$k.own(cu_r, cu_x, "
                  "::cuda_cpu::TypeTag<decltype($y)>{})",
                  "k", format("%d", ++r->number), "y", text, "x", target);
    write_tokens(r, b, last, last + 1);
    r->accessed = WRITES | VOLATILE;
}

static void statement(Rewrite *r, Body *b, Token *i, Token *last) {
    const bool result = is(i, "return") && b->result, early = b->returned && has_return(i, last),
               top = early && !b->inside, loop = is_one_of(i, " for while "),
               control = kind(i) == '{' || is_one_of(i, " if for while do "),
               escapes = (control || !is_one_of(i, statement_words)) && calls_escape_loop(r, i, last);
    unsigned uses = accesses(r, i, last);
    if (write_group_sync(r, b, i, last)) {
        write_tokens(r, b, last, last + 1);
        r->accessed = 0;
        return;
    }
    if (is_one_of(i, " __syncthreads __syncwarp "))
        r->accessed = 0;
    for (Token *t = i; t < last && r->has_volatile && uses; t++)
        if (is(t, "auto") && accesses(r, t, statement_end(t)))
            refuse_inlining(r, t, "a variable with auto may be a pointer to volatile memory");
        else if (is_one_of(t, " for while do ") && uses == (READS | VOLATILE))
            refuse_inlining(r, t, "a loop reads volatile memory");
        else if (is_one_of(t, " for while do ") && (uses & VOLATILE))
            uses = BOTH; // one iteration may write where another one does
    if (uses == BOTH && !control) {
        write_read_modify_write(r, b, i, last);
    } else if (!has_operations(r, i, last, r->has_volatile) && !result && !early && !escapes &&
               uses != BOTH && !(uses && kind(i) == '{')) {
        write_step(r, uses);
        write_tokens(r, b, i, last + 1);
    } else if (kind(i) == '{') {
        write_tokens(r, b, i, i + 1);
        b->inside++;
        statements(r, b, i + 1, i->match);
        b->inside--;
        write_tokens(r, b, i->match, i->match + 1);
    } else if (is_one_of(i, " if for while ")) {
        Token *open = i + 1 + is(i + 1, "constexpr"), *body = open->match + 1, *end = last_of(body);
        write_step(r, accesses(r, open, open->match));
        if (is(i, "if"))
            hoist(r, b, open + 1, open->match);
        if (!is(i, "if") && has_operations(r, open, open->match, true))
            refuse_inlining(r, i, "a warp operation is in the condition of a loop");
        write_tokens(r, b, i, body);
        b->loops += loop;
        controlled(r, b, body, end);
        b->loops -= loop;
        if (end < last) {
            write_tokens(r, b, end + 1, end + 2);
            controlled(r, b, end + 2, last);
        }
    } else if (is(i, "do")) {
        Token *end = last_of(i + 1);
        if (has_operations(r, end + 1, last, true))
            refuse_inlining(r, i, "a warp operation is in the condition of a loop");
        write_tokens(r, b, i, i + 1);
        controlled(r, b, i + 1, end);
        write_tokens(r, b, end + 1, last + 1);
    } else {
        if (is_one_of(i, statement_words) && !result)
            refuse_inlining(r, i, "a warp operation is in a switch or an expression");
        write_step(r, uses);
        hoist(r, b, result ? i + 1 : i, last);
        write_step(r, uses);
        append_text(&r->out, result && early ? "{ " : "");
        if (result && i + 1 < last)
            append_filled(&r->out, "$x = ", "x", b->result);
        write_tokens(r, b, result ? i + 1 : i, last + 1);
        if (result && early && !top)
            append_filled(&r->out, "$x = 1; $break", "x", b->returned, "break", b->loops ? "break; " : "");
        append_text(&r->out, result && early ? "} " : "");
    }
    if (top && !result) {
        append_filled(&r->out, "if (!$x) { ", "x", b->returned);
        b->open++;
    }
}

static void statements(Rewrite *r, Body *b, Token *i, Token *end) {
    while (i < end && !r->why) {
        Token *last = last_of(i);
        if (!last || last >= end)
            refuse_inlining(r, i, "it has a statement of an unknown form");
        if (!r->why)
            statement(r, b, i, last);
        i = r->why ? end : last + 1;
    }
}

// ---- kernels ----

static void rewrite(Rewrite *r) {
    Token *const body = r->kernel.body;
    for (bool has_volatile = false;;) {
        *r = (Rewrite){.u = r->u, .kernel = r->kernel, .out = empty_text(), .has_volatile = has_volatile};
        Body b = {.parameters = r->kernel.parameters};
        rename_variables(r, &b, body);
        has_volatile = r->has_volatile;
        statements(r, &b, body + 1, body->match);
        if (r->has_volatile == has_volatile)
            return;
        has_volatile = true; // a function that is called has the first `volatile`
    }
}

// Plans the loops of a rewritten kernel from its text alone. If it cannot be divided, it keeps its text.
static void check_division(Rewrite *r) {
    const Kernel k = r->kernel;
    Unit alone = {.files = r->u->files, .source = empty_text()};
    append(&alone.source, k.begin->text, (size_t)(k.body[1].text - k.begin->text));
    append_filled(&alone.source, "$body}", "body", r->out.data);
    lex(&alone, k.begin);
    pair_brackets(&alone);
    Token *const begin = alone.begin;
    const LoopPlan *p =
        plan_loops(r->u, (Kernel){begin, begin + (k.name - k.begin), begin + (k.parameters - k.begin),
                                  begin + (k.body - k.begin), k.begin});
    r->why = p->why;
    r->where = p->where;
}

bool inline_functions(Unit *u, Text *text) {
    for (Token *i = u->begin; loops_are_wanted(u) && i < u->end; i++) {
        if (!is(i, "__global__"))
            continue;
        Kernel k = {.begin = statement_begin(i)};
        if (!(k.parameters = find_parameters(k.begin, &k.name)) || !(k.body = find_body(k.parameters)))
            continue;
        Rewrite r = {.u = u, .kernel = k};
        bool groups = false;
        for (const Token *t = k.body; t < k.body->match; t++)
            groups |= is(t, "this_thread_block");
        if (!groups && !has_operations(&r, k.body, k.body->match, false))
            continue;
        rewrite(&r);
        if (!r.why)
            check_division(&r);
        PUSH(rewrites, rewrite_count, r);
        i = k.body->match;
    }
    const char *done = u->source.data;
    const Token *where;
    *text = empty_text();
    for (size_t n = 0; n < rewrite_count; n++) {
        const Rewrite *r = &rewrites[n];
        if (why_not_inlined(r->kernel.name, &where))
            continue;
        append(text, done, (size_t)(r->kernel.body[1].text - done));
        append(text, r->out.data, r->out.length);
        done = r->kernel.body->match->text;
    }
    append_text(text, done);
    return done != u->source.data;
}
