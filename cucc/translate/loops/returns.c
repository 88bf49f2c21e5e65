// SPDX-License-Identifier: MIT
// Functions that return from a loop, as one that iterates z = z * z + c until z is large. Written in place of
// its call (inline.c), such a function leaves the loop, and skips the rest, by a variable:
//
//     for (…) if (r > 4) return 0;      for (…) if (r > 4) { cu_c1 = 0; cu_q1 = 1; break; }
//     return 1;                     ->  if (!cu_q1) { cu_c1 = 1; }
#include "inline.h"

bool has_return(const Token *i, const Token *last) {
    while (i <= last && !is(i, "return"))
        i++;
    return i <= last;
}

// True if nothing of the function would be executed after these returns: each is the last statement of its
// block and of those around it, up to a loop or to the body.
static bool are_last(Token *i, Token *end, bool in_loop) {
    while (i < end) {
        Token *last = last_of(i), *body = i + 1;
        if (!last || last >= end)
            return false;
        if (has_return(i, last)) {
            const bool loop = is_one_of(i, " for while ");
            if (is_one_of(i, " do switch ") || (loop && in_loop))
                return false;
            if (loop || is(i, "if"))
                body = (is(i + 1, "constexpr") ? i[2].match : i[1].match) + 1;
            Token *inside = kind(i) == '{' ? i : kind(body) == '{' ? body : NULL;
            if (inside && !are_last(inside + 1, inside->match, in_loop || loop))
                return false;
            if (!inside && !is(i, "return") && !are_last(body, last_of(body) + 1, in_loop || loop))
                return false;
            if (is(i, "if") && is(last_of(body) + 1, "else") &&
                !are_last(last_of(body) + 2, last + 1, in_loop))
                return false;
            if (!in_loop && last + 1 < end && !loop && !is(i, "if") && !is(i, "return"))
                return false;
        }
        i = last + 1;
    }
    return true;
}

// True if the function has one loop, which computes with floating-point numbers, no access to memory and no
// warp operation, and if its returns can be written in the form above.
bool has_escape_loop(const Token *name, Token *body) {
    int loops = 0;
    bool floats = false;
    for (Token *t = (Token *)name + 1; t < body->match; t++) {
        loops += is_one_of(t, " for while do ");
        floats |= is_one_of(t, " float double ");
        if (loops == 0 && is(t, "return")) // the loop would be in a branch
            return false;
        if (kind(t) == '[' || kind(t) == ARROW || is_one_of(t, " switch auto continue __syncthreads ") ||
            (t < body && (kind(t) == '*' || kind(t) == '&')) || (is_member(t) && kind(t + 1) == '(') ||
            (kind(t) == IDENT && t->length > 5 && memcmp(end_of(t) - 5, "_sync", 5) == 0))
            return false;
    }
    return loops == 1 && floats && are_last(body + 1, body->match, false);
}

// True if it returns elsewhere than at its end.
bool returns_early_from(Token *body) {
    for (Token *t = body; t < body->match; t++)
        if (is(t, "return") &&
            (statement_end(t) + 1 != body->match || kind(t - 1) == ')' || is(t - 1, "else")))
            return true;
    return false;
}
