// SPDX-License-Identifier: MIT
/*
 * Kernels with warp operations, or with barriers in functions, are rewritten before split.c sees them:
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
#include "expand.h"
#include <ctype.h>

// The kernels that stay as they are, for not_expanded()
static Expansion *left;
static size_t left_count;

bool leave(Expansion *e, const Token *where, const char *why) {
    if (!e->why) {
        e->where = where;
        e->why = why;
    }
    return false;
}

// Why a kernel was not expanded; null if it was. Its text has been read again since then.
const char *not_expanded(const Token *name, const Token **where) {
    for (size_t n = 0; n < left_count; n++)
        if (same_word(left[n].name, name) && left[n].name->line == name->line) {
            *where = left[n].where;
            return left[n].why;
        }
    return NULL;
}

// Records that a kernel keeps its text, and why. One that cannot be split needs its `volatile` for fibers.
void leave_kernel(const Token *name, const Token *where, const char *why) {
    PUSH(left, left_count, (Expansion){.name = name, .where = where, .why = why});
}

static void change(Place *p, Change c) {
    for (size_t n = 0; n < p->count && !c.end; n++)
        if (!p->changes[n].end && same_word(p->changes[n].name, c.name))
            c.type = NULL; // two variables of this name, perhaps of different types
    PUSH(p->changes, p->count, c);
}

static const Change *find_change(const Place *p, const Token *i) {
    for (size_t n = p->count; n-- > 0;)
        if (p->changes[n].end ? p->changes[n].name == i : same_word(p->changes[n].name, i) && !is_member(i))
            return &p->changes[n];
    return NULL;
}

// Appends the tokens with their changes: with the lines between them, or in one line.
static void copy(const Place *p, Text *text, const Token *i, const Token *end, bool lines) {
    while (i < end) {
        const Change *c = find_change(p, i);
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

static char *changed(const Place *p, const Token *i, const Token *end) {
    Text text = empty_text();
    copy(p, &text, i, end, false);
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

static Token *declared(Token *name);

Token *enclosing(Token *i) { // the bracket in which it stands, or the end of the text
    while (!opens(i) && kind(i) != END)
        i = closes(i) ? i->match - 1 : i - 1;
    return i;
}

// True for the word sync of cg::sync(block) and block.sync(), where `block` is a variable of type
// thread_block
static bool is_block_sync(Token *i) {
    if (!is(i, "sync") || kind(i + 1) != '(')
        return false;
    const bool member = kind(i - 1) == '.';
    Token *name = member ? i - 2 : i + 2, *close = i[1].match;
    if (kind(name) != IDENT || close != (member ? i + 2 : i + 3))
        return false;
    const Token *t = declared(name), *type = kind(t - 1) == '&' ? t - 2 : t - 1;
    if (is(type, "thread_block"))
        return true;
    while (is(type, "auto") && kind(t) != ';' && kind(t) != END)
        if (is(t++, "this_thread_block") && kind(t) == '(')
            return kind(t->match + 1) == ';';
    return false;
}

static bool find_operation(Expansion *e, Token *i, const Token *last, bool barriers, unsigned search) {
    for (; i <= last; i++) {
        if (is_one_of(i, votes) || is_one_of(i, shuffles) || is_block_sync(i) || is_volatile(i) ||
            (barriers && is_one_of(i, " __syncthreads __syncwarp ")))
            return true;
        Token *f = call_of(i) ? only_function(e->u, i) : NULL;
        if (!f || f->search == search)
            continue;
        f->search = search;
        if (find_operation(e, f + 1, find_body(f + 1)->match, true, search))
            return true;
    }
    return false;
}

// Returns whether the tokens from i to `last`, or a function that they call, contain a warp operation; with
// `barriers`, whether they contain a warp operation or a barrier. Each function is looked into once.
bool has_operations(Expansion *e, Token *i, const Token *last, bool barriers) {
    static unsigned searches;
    return find_operation(e, i, last, barriers, ++searches);
}

static bool is_full(Expansion *e, Token *i, const Token *end);

// Finds the declaration of a name: the last one before it in the scopes around it. The caller has to check
// that what is found is a declaration: it may also be an assignment or an argument.
static Token *declared(Token *name) {
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

// const unsigned ALL = ~0u; True if the declaration that this name refers to gives it the mask of all lanes,
// and nothing changes it. When in doubt, false.
static bool is_full_variable(Expansion *e, Token *name) {
    Token *t = declared(name);
    if (kind(enclosing(t)) == '(' || kind(t - 1) != IDENT || is(t - 1, "return") || kind(t + 1) != '=' ||
        same_word(t + 2, t) || !is_full(e, t + 2, next_comma(t + 2, statement_end(t))))
        return false;
    Split probe = {.u = e->u};
    const Token *open = enclosing(t), *end = kind(open) == END ? e->u->end : open->match;
    for (Token *i = t + 1; i < end; i++)
        if (same_word(i, t) && !is_member(i) && use_of(&probe, &(Variable){0}, i) != 'r')
            return false;
    return true;
}

static bool is_full(Expansion *e, Token *i, const Token *end) {
    char *text = spelling(i, end);
    for (char *c = text; *c; c++)
        *c = (char)tolower(*c);
    if (strlen(text) > 2 && text[strlen(text) - 1] == 'u')
        text[strlen(text) - 1] = '\0';
    if (is_one_of(&(Token){.text = text, .length = (uint32_t)strlen(text), .kind = IDENT},
                  " 0xffffffff ~0 -1 "))
        return true;
    return end == i + 1 && kind(i) == IDENT && is_full_variable(e, i);
}

// True if the call at token i is evaluated whenever the statement is: not at one side of ? : && || or a
// comma.
static bool is_unconditional(Token *i, const Token *first) {
    for (Token *t = i - 1; t >= first; t = closes(t) ? t->match - 1 : t - 1)
        if (kind(t) == '?' || ((kind(t) == '&' || kind(t) == '|') && run(t, -1) == 2) ||
            (kind(t) == ',' && enclosing(t) < first) || kind(t) == '{')
            return false;
    return true;
}

// ---- warp operations ----

static void hoist(Expansion *e, Place *p, Token *first, Token *end);
static void statements(Expansion *e, Place *p, Token *i, Token *end);

static void give(Expansion *e, Place *p, Token *name, Token *open) {
    Token *close = open->match, *comma = next_comma(open + 1, close);
    if (comma == close || !is_full(e, open + 1, comma)) {
        leave(e, name, "the mask of a warp operation is not that of all lanes");
        return;
    }
    Token *end = next_comma(comma + 1, close);
    const char *value = changed(p, comma + 1, end), *get = fill("cu_s$k", "k", format("%d", ++e->number));
    const char *type = fill(", ::cuda_cpu::TypeTag<decltype($value)>{}", "value", value),
               *word = word_of(name);
    if (is_one_of(name, shuffles)) { // __shfl_down_sync -> shuffle_down
        word = is(name, "__shfl_sync") ? "index" : format("%.*s", (int)name->length - 12, word + 7);
        append_filled(&e->out, "$s.put(cu_r, cu_x, $value); ", "s", get, "value", value);
        get = fill("$s.shuffle_$word(cu_r, cu_x$type$rest)", "s", get, "word", word, "type", type, "rest",
                   changed(p, end, close));
    } else {
        const bool all = is(name, "__all_sync"), any = all || is(name, "__any_sync"),
                   reduction = word[2] == 'r';
        const char *test = all ? " == 0" : reduction ? "" : " != 0";
        append_filled(&e->out,
                      "$s.put_number(cu_r, cu_x, $int($value)$test); $s.meet(::cuda_cpu::WarpOp::$op); ", "s",
                      get, "int", reduction ? "" : "(int)", "value", value, "test", test, "op",
                      reduction ? format("%.*s", (int)name->length - 7, word + 2) : "ballot");
        get = fill(any ? "($s.get(cu_r, cu_x)$test ? 1 : 0)" : "$s.get(cu_r, cu_x$type)", "s", get, "test",
                   test, "type", reduction ? type : "");
    }
    change(p, (Change){name, close, get, NULL});
}

// ---- functions ----

// The type of an argument that is a variable; null if it is not known
static const char *type_of(const Place *p, Token *i, const Token *end) {
    const Change *c = find_change(p, i);
    if (end != i + 1 || kind(i) != IDENT || c)
        return end == i + 1 && c ? c->type : NULL;
    for (Token *t = i - 1; t > p->parameters; t--) {
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
            return changed(p, from, t);
    }
    return NULL;
}

// Gives the parameters of a template the arguments of the call. Returns false if one is not known.
static bool take_template(Place *p, Place *f, Token *list, Token *name, Token *open) {
    Token *end = skip_angles(list, NULL), *given = name + 1 < open ? name + 2 : NULL;
    for (Token *i = list + 1; end && i < end; i++) {
        Token *comma = next_comma(i, end - 1), *next = given ? next_comma(given, open - 1) : NULL,
              *word = comma - 1;
        for (Token *t = i; t < comma; t++)
            if (kind(t) == '=')
                word = t - 1;
        const char *text = NULL;
        if (given && given < open - 1)
            text = changed(p, given, next);
        else if (word + 1 < comma)
            text = changed(f, word + 2, comma);
        if (given)
            given = next + 1 < open ? next + 1 : NULL;
        Token *argument = open + 1;
        for (Token *t = f->parameters + 1;
             !text && t < f->parameters->match && is_one_of(i, " class typename ");) {
            Token *last = next_comma(t, f->parameters->match), *stop = next_comma(argument, open->match);
            t += is(t, "const");
            if (same_word(t, word) && t + 2 == last)
                text = type_of(p, argument, stop);
            t = last + 1;
            argument = stop + 1;
        }
        if (!text || kind(word) != IDENT)
            return false;
        if (is_one_of(i, " class typename ") && strchr(text, ' ')) // T(0) is to be valid for unsigned int
            text = strcmp(text, "unsigned int") == 0 ? "unsigned"
                                                     : fill("::std::enable_if_t<true, $x>", "x", text);
        change(f, (Change){word, NULL,
                           is_one_of(i, " class template typename ") ? text : fill("($x)", "x", text), NULL});
        i = comma;
    }
    return end;
}

// Finds the variables of a kernel, or of the function f, in which they get other names.
static void find_variables(Expansion *e, Place *f, Token *body) {
    Split *probe = grow(NULL, 1, sizeof *probe);
    const Token *end = body;
    for (Token *i = body + 1; i < body->match; i++) {
        Node node = {.first = i};
        probe->u = e->u;
        probe->count = 0;
        if ((strchr("{};", kind(i - 1)) || (kind(i - 1) == '(' && is(i - 2, "for"))) &&
            !add_variables(probe, &node, statement_end(i), body->match, false))
            probe->count = 0;
        for (const Variable *v = probe->variables; v < probe->variables + probe->count; v++) {
            end = v->specifiers_end;
            add_shared(e, v->specifiers, v->name, v->is_pointer && v->init ? v->init + 1 : NULL);
            const bool plain =
                v->from == v->name && !v->is_array && !v->is_auto && !is(v->specifiers, "const");
            const char *k = f && v->is_memory ? f->same : format("%d", e->number);
            if (!f)
                PUSH(e->own, e->own_count, v->name);
            else
                change(f, (Change){v->name, NULL, fill("cu_$k$x", "k", k, "x", word_of(v->name)),
                                   plain ? changed(f, v->specifiers, v->specifiers_end) : NULL});
        }
        if (is_volatile(i) && i > end)
            leave(e, i, "'volatile' is not in the declaration of a pointer or an array");
    }
    free(probe);
}

// True if a variable or parameter of the kernel has this name.
static bool is_own(const Expansion *e, const Token *name) {
    for (size_t n = 0; n < e->own_count; n++)
        if (same_word(e->own[n], name))
            return true;
    for (const Token *t = e->parameters; t < e->parameters->match; t++)
        if (same_word(t, name) && strchr(",)[=", kind(t + 1)))
            return true;
    return false;
}

// Writes the body of the function before the statement that calls it.
static bool expand_call(Expansion *e, Place *p, Token *name, Token *open, Token *start) {
    Place f = {.parameters = start + 1, .depth = p->depth + 1};
    const size_t count = e->count;
    Token *i = start, *close = f.parameters->match, *body = find_body(f.parameters);
    while (kind(i - 1) != END && !strchr(";{}", kind(i - 1)))
        i--;
    if (f.depth > 8 || start > e->kernel ||
        (kind(enclosing(i - 1)) != END && enclosing(i - 1) != enclosing(e->kernel)))
        return false;
    for (Token *t = body; t < body->match; t++)
        if (is_one_of(t, " static goto volatile __func__ __FUNCTION__ __PRETTY_FUNCTION__ asm __asm__ struct "
                         "class union enum ") ||
            (is(t, "return") &&
             (statement_end(t) + 1 != body->match || kind(t - 1) == ')' || is(t - 1, "else"))))
            return false;
    const bool is_template = is(i, "template");
    if (is_template) {
        if (!take_template(p, &f, i + 1, name, open))
            return false;
        i = skip_angles(i + 1, NULL);
    }
    const char *call = format("%d", (int)(start->text - e->u->source.data));
    for (size_t n = 0; n < f.count; n++)
        call = fill("$call $x", "call", call, "x", f.changes[n].text);
    f.same = format("f%x_", hash(call));
    Text type = empty_text();
    for (; i < start; i++)
        if (is_one_of(i, " __attribute__ __attribute "))
            i++, i = i->match;
        else if (is_one_of(i, " auto __global__ volatile friend template operator ") || kind(i) == '[')
            return false;
        else if (!is_one_of(i, " __device__ static inline __inline__ __inline constexpr extern const "))
            append_filled(&type, "$x ", "x", changed(&f, i, i + 1));
    const char *k = format("%d", ++e->number);
    const bool none = strcmp(type.data, "void ") == 0;
    f.result = none ? "" : fill("cu_c$k", "k", k);
    if (!none)
        append_filled(&e->out, "$type $x; ", "type", type.data, "x", f.result);
    append_text(&e->out, "{ ");
    if (!is_template) // so that compilers do not say that it is not used
        append_filled(&e->out, "(void)$f; ", "f", word_of(start));
    Token *argument = open + 1;
    for (Token *t = f.parameters + 1; t < close && !(is(t, "void") && t + 1 == close); t++) {
        bool is_pack, may_be_unused;
        Token *place, *x = parameter_name(t, close, &place, &is_pack, &may_be_unused);
        Token *next = x ? next_comma(x, close) : NULL, *stop = next_comma(argument, open->match);
        if (!x || is_pack || argument >= open->match || kind(x + 1) == '[' || kind(x + 1) == '=' ||
            (kind(x + 1) == ')' && x + 1 != close))
            return false;
        const char *value = changed(p, argument, stop);
        add_shared(e, t, x, argument);
        const Shared *known = find_shared(e, x);
        bool same = known && known->name == x && known->is_volatile && stop == argument + 1;
        for (Token *u = body; u < body->match; u++)
            same &= !same_word(u, x) || !(assigns(u + 1) || run(u - 1, -1) == 2 || kind(u - 1) == '&');
        if (same) { // the argument takes the place of the parameter
            change(&f, (Change){x, NULL, value, NULL});
        } else if (kind(x - 1) == '&') {
            const char *its = type_of(p, argument, stop);
            if (stop != argument + 1 || kind(argument) != IDENT ||
                (is(t, "const") && (!its || strcmp(its, changed(&f, t + 1, x - 1)) != 0)))
                return false; // or a conversion
            change(&f, (Change){x, NULL, value, its});
        } else if (is(x - 1, "thread_block")) { // there is only one block
            change(&f, (Change){x, NULL, "::cooperative_groups::this_thread_block()", NULL});
        } else {
            const char *own = fill("cu_$k$x", "k", k, "x", word_of(x));
            const char *its = changed(&f, t + is(t, "const"), x);
            append_filled(&e->out, "$type $own = $value; ", "type", changed(&f, t, x), "own", own, "value",
                          value);
            change(&f, (Change){x, NULL, own, kind(x - 1) == IDENT ? its : NULL});
        }
        t = next;
        argument = stop + 1;
    }
    const size_t names = f.count;
    find_variables(e, &f, body);
    for (size_t n = 0; n < f.count; n++)
        for (size_t m = names; m < f.count && n < names; m++)
            if (same_word(f.changes[n].name, f.changes[m].name))
                return false; // a variable has the name of a parameter
    for (Token *t = body + 1; t < body->match; t++)
        if (kind(t) == IDENT && !is_member(t) && kind(t - 1) != SCOPE && !find_change(&f, t) && is_own(e, t))
            return false;
    const char *line = body->file->is_input ? "" : "\n# $line \"$file\"\n";
    append_filled(&e->out, line, "line", format("%u", (unsigned)body[1].line), "file",
                  format("%.*s", (int)body->file->length, body->file->name));
    statements(e, &f, body + 1, body->match);
    e->count = count;
    append_filled(&e->out, line, "line", format("%u", (unsigned)name->line), "file",
                  format("%.*s", (int)name->file->length, name->file->name));
    append_text(&e->out, "} ");
    change(p, (Change){name, open->match, none ? "((void)0)" : f.result, NULL});
    return true;
}

// ---- statements ----

// The largest text of a kernel with the functions in place of their calls
static const size_t most_bytes = 256 << 10;

// Writes what comes before a statement for the operations between these tokens.
static void hoist(Expansion *e, Place *p, Token *first, Token *end) {
    for (Token *i = first; i < end && !e->why; i++) {
        Token *open = call_of(i), *f = open ? only_function(e->u, i) : NULL,
              *body = f ? find_body(f + 1) : NULL;
        const bool operation = is_one_of(i, votes) || is_one_of(i, shuffles);
        if (!open || !(operation || (f && has_operations(e, f + 1, body->match, true))))
            continue;
        if (e->out.length > most_bytes)
            leave(e, i, "it has more than 256 KB with the functions in place of their calls");
        if (!is_unconditional(i, first))
            leave(e, i, fill("'$x' is at one side of a condition or comma", "x", word_of(i)));
        hoist(e, p, open + 1, open->match);
        if (operation)
            give(e, p, i, open);
        else if (!expand_call(e, p, i, open, f))
            leave(e, i, fill("the function '$x', which has barriers, has an unknown form", "x", word_of(i)));
        i = open->match;
    }
}

static void statement(Expansion *e, Place *p, Token *i, Token *last);

static void inside(Expansion *e, Place *p, Token *i, Token *last) { // what a branch or loop contains
    const bool wrap = kind(i) != '{' && (e->any || has_operations(e, i, last, true));
    append_text(&e->out, wrap ? "{ " : "");
    e->since = e->any ? BOTH : 0; // what came before, here or in another iteration, is not known
    statement(e, p, i, last);
    e->since = e->any ? BOTH : 0;
    append_text(&e->out, wrap ? "} " : "");
}

static bool is_sync_statement(Token *i, const Token *last) { // cg::sync(block); or block.sync();
    while (kind(i) == IDENT && (kind(i + 1) == SCOPE || kind(i + 1) == '.'))
        i += 2;
    return is_block_sync(i) && i[1].match + 1 == last;
}

// v[t] += v[t + 1]; All lanes have read before any of them stores.
static void divide(Expansion *e, Place *p, Token *i, Token *last) {
    Token *op = i + 1;
    while (kind(op) == '[')
        op = op->match + 1;
    Token *value = op + (kind(op) == '=' || kind(op) == OPERATOR ? 1 : 2);
    const Shared *known = find_shared(e, i);
    bool plain = known && known->is_volatile && op > i + 1 && assigns(op) &&
                 (kind(op) == '=' || run(op, 1) == 1) && !(accesses(e, value, last) & WRITES) &&
                 !accesses(e, i + 1, op) && next_comma(value, last) == last;
    for (Token *t = i + 1; t < op; t++)
        plain &= !assigns(t) && !call_of(t);
    if (!plain) {
        leave(e, i, "it changes volatile memory in an unknown way");
        return;
    }
    step(e, READS | VOLATILE); // and again, because hoist may write
    hoist(e, p, i, last);
    step(e, READS | VOLATILE);
    const char *target = changed(p, i, op), *text = changed(p, value, last);
    if (kind(op) != '=')
        text = fill("$x $op ($y)", "x", target, "op", format("%.*s", kind(op) == OPERATOR ? 2 : 1, op->text),
                    "y", text);
    append_filled(&e->out,
                  "cu_s$k.put(cu_r, cu_x, $y); cu_step(); $x = cu_s$k.own(cu_r, cu_x, "
                  "::cuda_cpu::TypeTag<decltype($y)>{})",
                  "k", format("%d", ++e->number), "y", text, "x", target);
    copy(p, &e->out, last, last + 1, true);
    e->since = WRITES | VOLATILE;
}

static void statement(Expansion *e, Place *p, Token *i, Token *last) {
    const bool result = is(i, "return") && p->result,
               control = kind(i) == '{' || is_one_of(i, " if for while do ");
    unsigned uses = accesses(e, i, last);
    if (e->any && (is_sync_statement(i, last) || is_one_of(i, " __syncthreads __syncwarp ")))
        e->since = 0;
    for (Token *t = i; t < last && e->any && uses; t++)
        if (is(t, "auto") && accesses(e, t, statement_end(t)))
            leave(e, t, "a variable with auto may be a pointer to volatile memory");
        else if (is_one_of(t, " for while do ") && uses == (READS | VOLATILE))
            leave(e, t, "a loop reads volatile memory");
        else if (is_one_of(t, " for while do ") && (uses & VOLATILE))
            uses = BOTH; // one iteration may write where another one does
    if (uses == BOTH && !control) {
        divide(e, p, i, last);
    } else if (!has_operations(e, i, last, e->any) && !result && uses != BOTH && !(uses && kind(i) == '{')) {
        step(e, uses);
        copy(p, &e->out, i, last + 1, true);
    } else if (is_sync_statement(i, last)) {
        append_text(&e->out, "__syncthreads()");
        copy(p, &e->out, last, last + 1, true);
    } else if (kind(i) == '{') {
        copy(p, &e->out, i, i + 1, true);
        statements(e, p, i + 1, i->match);
        copy(p, &e->out, i->match, i->match + 1, true);
    } else if (is_one_of(i, " if for while ")) {
        Token *open = i + 1 + is(i + 1, "constexpr"), *body = open->match + 1, *end = last_of(body);
        step(e, accesses(e, open, open->match));
        if (is(i, "if"))
            hoist(e, p, open + 1, open->match);
        if (!is(i, "if") && has_operations(e, open, open->match, true))
            leave(e, i, "a warp operation is in the condition of a loop");
        copy(p, &e->out, i, body, true);
        inside(e, p, body, end);
        if (end < last) {
            copy(p, &e->out, end + 1, end + 2, true);
            inside(e, p, end + 2, last);
        }
    } else if (is(i, "do")) {
        Token *end = last_of(i + 1);
        if (has_operations(e, end + 1, last, true))
            leave(e, i, "a warp operation is in the condition of a loop");
        copy(p, &e->out, i, i + 1, true);
        inside(e, p, i + 1, end);
        copy(p, &e->out, end + 1, last + 1, true);
    } else {
        if (is_one_of(i, statement_words) && !result)
            leave(e, i, "a warp operation is in a switch or an expression");
        step(e, uses);
        hoist(e, p, result ? i + 1 : i, last);
        step(e, uses);
        if (result && i + 1 < last)
            append_filled(&e->out, "$x = ", "x", p->result);
        copy(p, &e->out, result ? i + 1 : i, last + 1, true);
    }
}

static void statements(Expansion *e, Place *p, Token *i, Token *end) {
    while (i < end && !e->why) {
        Token *last = last_of(i);
        if (!last || last >= end)
            leave(e, i, "it has a statement of an unknown form");
        if (!e->why)
            statement(e, p, i, last);
        i = e->why ? end : last + 1;
    }
}

// Writes the source to *text, with the bodies of __device__ functions in place of their calls in kernels, and
// warp operations as separate statements. Returns false if no kernel needs that.
bool expand(Unit *u, Text *text) {
    const char *done = u->source.data;
    *text = empty_text();
    for (Token *i = u->begin; i < u->end; i++) {
        if (!is(i, "__global__"))
            continue;
        Token *name, *start = i, *open, *body;
        while (kind(start - 1) != END && !strchr(";{}", kind(start - 1)))
            start--;
        if (!(open = find_parameters(start, &name)) || !(body = find_body(open)))
            continue;
        Expansion e = {.u = u};
        const Token *where;
        if (!has_operations(&e, body, body->match, false) || not_expanded(name, &where))
            continue;
        bool any = false, again;
        do {
            e = (Expansion){.u = u,
                            .kernel = start - 1,
                            .name = name,
                            .parameters = open,
                            .out = empty_text(),
                            .any = any};
            Place p = {.parameters = open};
            find_variables(&e, NULL, body);
            any = e.any;
            statements(&e, &p, body + 1, body->match);
            again = e.any != any; // a function that is called has the first `volatile`
            any = e.any;
        } while (again);
        if (e.why) {
            leave_kernel(name, e.where, e.why);
            continue;
        }
        append(text, done, (size_t)(body[1].text - done));
        append(text, e.out.data, e.out.length);
        done = body->match->text;
        i = body->match;
    }
    if (done == u->source.data)
        return false;
    append_text(text, done);
    return true;
}
