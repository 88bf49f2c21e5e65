// SPDX-License-Identifier: MIT
// Pointers to volatile variables in device code (cuda_cpu/volatile.h)
#include "translate.h"

// True if tokens `from` to `name` declare a pointer to a volatile type: volatile T *x, volatile T x[].
static bool points_to_volatile(const Token *from, const Token *name) {
    int stars = 0;
    bool is_volatile = false;
    for (const Token *i = from; i < name; i++) {
        is_volatile |= is(i, "volatile") && stars == 0;
        stars += kind(i) == '*';
        if (kind(i) == '(' || kind(i) == '&')
            return false;
    }
    return is_volatile && (stars == 1 ? kind(name + 1) != '[' : stars == 0 && kind(name + 1) == '[');
}

// void f(volatile T *x) { … }
//     ->  void f(volatile T *x) { auto cu_v_x = in_step_pointer(x); { auto x = cu_v_x; … }}
//
// Appends what to insert after the { and before the }.
void step_parameters(Token *open, Text *start, Text *end) {
    const Token *close = open->match;
    Text inner = {0};
    for (Token *i = open + 1, *next; i < close; i = next + 1) {
        bool is_pack, may_be_unused;
        Token *place, *name = parameter_name(i, close, &place, &is_pack, &may_be_unused);
        next = next_comma(name ? name : place, close);
        if (!name || is_pack || !points_to_volatile(i, name))
            continue;
        const char *x = word_of(name);
        append_filled(start, " [[maybe_unused]] auto cu_v_$x = ::cuda_cpu::in_step_pointer($x);", "x", x);
        append_filled(&inner, " [[maybe_unused]] auto $x = cu_v_$x;", "x", x);
    }
    if (inner.length > 0) {
        append_filled(start, " {$inner", "inner", inner.data);
        append_text(end, "} ");
    }
}

// volatile T *x = y;  ->  volatile T *cu_v_x = y; auto x = ::cuda_cpu::in_step_pointer(cu_v_x);
void translate_volatile(Unit *u, Token *word, const Scope *scope) {
    Token *semicolon = scope->start;
    for (const Token *i = scope->start; i < word; i++)
        if ((kind(i) != IDENT && kind(i) != SCOPE) || is_one_of(i, statement_words) ||
            is_one_of(i, " typedef using asm __asm__ __asm extern "))
            return;
    for (; kind(semicolon) != ';' && kind(semicolon) != END && !closes(semicolon);
         semicolon = skip(semicolon))
        if (is(semicolon, "__shared__") || (is(semicolon, "volatile") && semicolon < word))
            return; // a __shared__ declaration, or not the first `volatile` of this one
    if (kind(semicolon) != ';')
        return;
    bool is_pointer_to_volatile = false;
    for (const Token *t = word; t < semicolon && kind(t) != '=' && kind(t) != '(' && kind(t) != '{'; t++)
        is_pointer_to_volatile |= kind(t) == '*';
    if (!is_pointer_to_volatile)
        return;
    Declaration d = {0};
    Token *i = scope->start;
    do {
        const Token *first = i == scope->start ? word : i;
        parse_declarator(u, i, &d, NULL);
        if (d.is_function || d.is_definition)
            return;
        int stars = 0;
        for (const Token *t = first; t < d.name; t++)
            stars += kind(t) == '*' ? 1 : kind(t) == '(' || kind(t) == '&' ? 2 : 0;
        if (stars == 1 && kind(d.name + 1) != '[') {
            insert_before(u, d.name, "cu_v_");
            for (const Token *t = d.end; t < semicolon;
                 t++) // initial values of later variables may use this one
                if (same_word(t, d.name) && !is_member(t))
                    insert_before(u, t, "cu_v_");
            insert_after(u, semicolon,
                         fill(d.has_value
                                  ? " [[maybe_unused]] auto $x = ::cuda_cpu::in_step_pointer(cu_v_$x);"
                                  : " decltype(::cuda_cpu::in_step_pointer(cu_v_$x)) $x;",
                              "x", word_of(d.name)));
        }
        i = next_comma(d.end, semicolon); // skips the initial value
    } while (kind(i++) == ',');
}

// (volatile T *)x  ->  (::cuda_cpu::in_step_cast<volatile T *>)x
void translate_volatile_cast(Unit *u, Token *word, const Scope *scope) {
    const Token *open = scope->start - 1, *close = open->match;
    int stars = 0;
    if (kind(open) != '(' || !close)
        return;
    for (Token *i = scope->start; i < close; i++) {
        stars += kind(i) == '*';
        if (kind(i) == '<')
            i = skip_template_arguments(i) - 1;
        else if (kind(i) != IDENT && kind(i) != SCOPE && kind(i) != '*')
            return;
    }
    const int next = kind(close + 1);
    if (ends_expression(open - 1) || stars != 1 || kind(close - 1) != '*' ||
        (next != IDENT && next != SCOPE && next != '(' && next != '&' && next != '*') || word > close)
        return;
    insert_before(u, open + 1, "::cuda_cpu::in_step_cast<");
    insert_before(u, close, ">");
}
