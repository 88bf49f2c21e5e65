// SPDX-License-Identifier: MIT
// What has another meaning in device code than in host code: shifts a << b, a >> b, a <<= b, a >>= b
// (cuda_cpu/shift.h), printf (cuda_cpu/kernel.h), lrint and the like (cuda_cpu/convert.h). Also numbers the
// calls of __activemask and coalesced_threads in a line, since lanes at different calls are not one group
#include "translate.h"

// Notes that the { } of `body` are device code, of a function with these parameters. `returned`: the first
// token of the type that it returns, or null. Bodies may be nested: those of local classes and lambdas.
void begin_device_code(Unit *u, Token *returned, Token *parameters, Token *body) {
    if (!body || parameters < u->body_end)
        return;
    u->body_begin = body;
    u->body_end = body->match;
    find_conversions(u, returned, parameters, body);
}

// True if the < may begin template arguments: after a name or [] of a lambda, without blanks on both sides.
static bool may_open(const Token *i) {
    const Token *before = i - 1;
    if (end_of(before) < i->text && end_of(i) < i[1].text)
        return false;
    return kind(before) == IDENT || (kind(before) == ']' && !ends_expression(before->match - 1));
}

// True if the >> at token i closes two template argument lists: that many < stand before it in the
// statement. Where this is unclear, as in f(a<b, c<d>>e), it is taken for that, and the shift stays plain.
static bool closes_templates(const Token *i) {
    int closed = 0, open = 0;
    if (kind(i + 2) == NUMBER || kind(i + 2) == CHARACTER)
        return false;
    for (i--; kind(i) != ';' && kind(i) != '?' && kind(i) != END && !opens(i) && kind(i) != '}'; i--) {
        if (closes(i)) {
            i = i->match;
        } else if (kind(i) == '>') {
            closed++;
        } else if (kind(i) == '<') {
            const int n = run(i, -1);
            if (n == 1 && may_open(i) && closed-- <= 0) {
                closed = 0;
                if (++open == 2)
                    return true;
            }
            i -= n - 1;
        }
    }
    return false;
}

static bool is_fold(const Token *first, const Token *after) { // (x << ...)
    return (kind(first - 1) == '.' && run(first - 1, -1) == 3) || (kind(after) == '.' && run(after, 1) == 3);
}

// Marks the shift operator that begins at token i, if there is one. It is translated at the end, unless the
// token has been deleted by then, because what it stands in was moved.
void find_shift(Token *i) {
    if (is(i - 1, "operator") || i->done)
        return;
    if (kind(i) == OPERATOR)
        i->shift = i->length == 3 && i->text[0] == i->text[1]; // <<= or >>=, not <=>
    else if (run(i, 1) == 2 && (kind(i - 1) != kind(i) || run(i - 1, 1) == 1) && !is_fold(i, i + 2))
        i->shift = kind(i) == '<' || (ends_expression(i - 1) && !closes_templates(i)) ||
                   (kind(i - 1) == NUMBER && !closes_templates(i));
}

// True if these tokens have the same value when they are evaluated twice.
static bool is_pure(const Token *first, const Token *end) {
    for (const Token *i = first; i < end; i++)
        if (kind(i) == '(' || kind(i) == '=' || kind(i) == OPERATOR || kind(i) == '{' ||
            ((kind(i) == '+' || kind(i) == '-') && run(i, 1) > 1))
            return false;
    return true;
}

// From the token before an assignment, finds the first of its left operand x, a[i].x or p->x, which may be a
// bit-field; null if it cannot be one, or should not be evaluated twice.
static Token *field_begin(Token *i) {
    if (kind(i) != IDENT)
        return NULL;
    while (kind(i - 1) == '.' || kind(i - 1) == ARROW || kind(i - 1) == SCOPE) {
        for (i -= 2; kind(i) == ']'; i = i->match - 1)
            if (!is_pure(i->match, i))
                return NULL;
        if (kind(i) != IDENT)
            return NULL;
    }
    const Token *before = i - 1;
    const bool begins = kind(before) == IDENT || kind(before) == ')'
                            ? !ends_expression(before)
                            : strchr(";{}(),=?:[", kind(before)) || kind(before) == OPERATOR;
    return begins ? i : NULL;
}

#define LIBRARY " printf lrint lrintf llrint llrintf lround lroundf llround llroundf "
static const char library_words[] = LIBRARY;
const char called_words[] = LIBRARY "__activemask coalesced_threads ";

// Marks the name of a function whose call is translated at the end.
void find_call(Token *i) {
    const bool of_library =
        kind(i - 1) != SCOPE || is(i - 2, "std") || !ends_expression(i - 2) || !is_one_of(i, library_words);
    i->shift = kind(i + 1) == '(' && kind(i - 1) != '.' && kind(i - 1) != ARROW && of_library &&
               (is_one_of(i, library_words) || (kind(i + 2) == ')' && kind(i + 3) != '{'));
}

// The number of this call among those on its line, of which a macro may have several
unsigned place_on_line(const Token *call) {
    static const File *file;
    static unsigned line, count;
    count = file == call->file && line == call->line ? count + 1 : 0;
    file = call->file;
    line = call->line;
    return count;
}

// printf(f, a, b)  ->  printed(printf(f, without_sign_of_nan(a), …), 2)
static void translate_printf(Unit *u, Token *name) {
    Token *const open = name + 1, *const close = open->match;
    const char *arguments = "0";
    for (Token *i = next_comma(open + 1, close); i < close;) {
        Token *const first = i + 1, *last;
        i = next_comma(first, close);
        last = i - 1;
        const bool is_pack = kind(last) == '.' && run(last, -1) == 3;
        last -= is_pack ? 3 : 0;
        insert_before(u, first, "::cuda_cpu::without_sign_of_nan(");
        insert_between(u, last, ")");
        arguments = is_pack && last == first ? format("%s + sizeof...(%s)", arguments, word_of(last))
                                             : format("%s + 1", arguments);
    }
    if (kind(name - 1) == SCOPE)
        name -= is(name - 2, "std") ? 2 : 1;
    insert_before(u, name, "::cuda_cpu::printed(");
    insert_after(u, close, format(", %s)", arguments));
}

// lrintf(x), std::lrintf(x)  ->  ::cuda_cpu::lrintf(x)
static void translate_library_call(Unit *u, Token *name) {
    Token *first = kind(name - 1) != SCOPE ? name : is(name - 2, "std") ? name - 2 : name - 1;
    first -= first < name - 1 && kind(first - 1) == SCOPE;
    delete_tokens(u, first, name - 1);
    insert_before(u, name, "::cuda_cpu::");
}

void translate_shifts(Unit *u) {
    for (Token *i = u->begin; i < u->end; i++) {
        if (i->after)
            insert_after(u, i, i->after);
        if (!i->shift)
            continue;
        if (kind(i) == IDENT) {
            if (is(i, "printf"))
                translate_printf(u, i);
            else if (is_one_of(i, library_words))
                translate_library_call(u, i);
            else
                insert_after(u, i + 1, format("%u", place_on_line(i)));
            continue;
        }
        const char *direction = i->text[0] == '<' ? "Left" : "Right";
        Token *field = kind(i) == OPERATOR ? field_begin(i - 1) : NULL;
        if (kind(i) == '<')
            insert_after(u, i + 1, " ::cuda_cpu::ShiftLeft() <<");
        else if (kind(i) == '>')
            insert_before(u, i, "<< ::cuda_cpu::ShiftRight() ");
        else if (field)
            edit(u, i->text, i->length,
                 fill("= $field << ::cuda_cpu::Assign$direction() =", "field", spelling(field, i),
                      "direction", direction));
        else
            edit(u, i->text, i->length, fill("<< ::cuda_cpu::Change$direction() =", "direction", direction));
    }
}
