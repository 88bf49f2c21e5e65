// SPDX-License-Identifier: MIT
// Launches: k<<<g, b>>>(x)
#include "translate.h"

static const char cast_words[] = " static_cast const_cast reinterpret_cast dynamic_cast ";

// From a >, finds the matching < before it; null if there is none. In k<A<C> the last < may be a comparison:
// `comparisons` is the number of < after a name that are not taken for the start of an argument list.
static Token *skip_angles_back(Token *i, int comparisons) {
    for (int depth = 0; kind(i) != ';' && kind(i) != END && !opens(i); i--) {
        if (closes(i)) {
            i = i->match;
        } else if (kind(i) == '>') {
            depth++;
        } else if (kind(i) == '<') {
            const int n = run(i, -1);
            if (n > 2)
                return NULL;
            if (n == 1 && kind(i - 1) == IDENT && comparisons-- <= 0 && --depth == 0)
                return i;
            i -= n - 1;
        }
    }
    return NULL;
}

// The >>> that ends a launch configuration, or null. In `f<A<int>>>>>` these are the last three >.
static Token *launch_end(Token *i) {
    for (int templates = 0; kind(i) != ';' && kind(i) != END && !closes(i); i++) {
        if (opens(i)) {
            i = i->match;
        } else if (kind(i) == '<') {
            const int n = run(i, 1);
            if (n > 2)
                return NULL;
            if (n == 1 && kind(i - 1) == IDENT)
                templates++;
            i += n - 1;
        } else if (kind(i) == '>') {
            const int n = run(i, 1);
            if (n >= 3 && n > templates)
                return i + n - 3;
            if (n <= templates) // otherwise a comparison or a shift
                templates -= n;
            i += n - 1;
        }
    }
    return NULL;
}

// From the last token of a kernel expression, finds its first, or null. `comparisons`: skip_angles_back()
static Token *expression_begin(Token *i, int comparisons) {
    for (bool last = true;; last = false) {
        if (kind(i) == ')' || kind(i) == ']') {
            Token *open = i->match;
            if (!ends_expression(open - 1))
                return kind(open) == '(' ? open : NULL;
            i = open - 1;
            continue;
        }
        if (kind(i) == '>') {
            Token *open = skip_angles_back(i, last ? comparisons : 0);
            if (!open)
                return NULL;
            i = open - 1;
            if (is_one_of(i, cast_words))
                return last ? NULL : i;
        }
        if (kind(i) != IDENT || is_one_of(i, statement_words))
            return NULL;
        if (is(i, "this"))
            return last ? NULL : i;
        Token *before = is(i - 1, "template") ? i - 2 : i - 1;
        if (kind(before) == '.' || kind(before) == ARROW) {
            i = before - 1;
        } else if (kind(before) == SCOPE) {
            i = before - 1;
            if (kind(i) == ')' && is(i->match - 1, "decltype"))
                return i->match - 1;
            if (kind(i) != '>' && (kind(i) != IDENT || is_one_of(i, statement_words)))
                return before; // ::k
        } else {
            return before == i - 1 ? i : NULL;
        }
    }
}

// True if a launch, which has type void, may follow token i: as an operand of a comma or a conditional.
static bool may_stand_before_launch(const Token *i) {
    if (kind(i) == IDENT || kind(i) == ')' || kind(i) == ']')
        return !ends_expression(i);
    return kind(i) != END && strchr(";{}(,?:", kind(i));
}

// From the last token of a kernel expression, finds its first; null if no launch may stand there.
static Token *launch_begin(Token *last) {
    for (int comparisons = 0; comparisons < 4; comparisons++) {
        Token *begin = expression_begin(last, comparisons);
        if (begin && may_stand_before_launch(begin - 1))
            return begin;
    }
    return NULL;
}

// The kernel expression for messages: without string literals, and cut to about 200 bytes
static const char *short_name(const Token *begin, const Token *end) {
    Text name = {0};
    for (const Token *i = begin; i < end && name.length <= 200; i++) {
        if (i > begin && i->text > end_of(i - 1))
            append(&name, " ", 1);
        if (kind(i) != STRING && kind(i) != CHARACTER && name.length < 200)
            append(&name, i->text, i->length);
        else
            append_text(&name, "…");
    }
    return name.data;
}

// k<<<g, b>>>(x)  ->  (::cuda_cpu::Launch("k", ::cuda_cpu::config(g, b)), k(x))
//
// The kernel call stays a call, so that its arguments are converted like those of any function.
void translate_launch(Unit *u, Token *open) {
    Token *begin = launch_begin(open - 1), *end = launch_end(open + 3);
    if (!end || run(open, 1) > 3)
        fail(open, "this <<< has no matching >>>");
    if (!begin)
        fail(open, "cannot find the kernel that this <<<…>>> launches");
    if (kind(end + 3) != '(')
        fail(end, "this <<<…>>> is not followed by the ( ) of a launch");
    Token *comma = open + 3;
    while (comma < end && kind(comma) != ',')
        comma = skip(comma);
    if (comma >= end)
        fail(open, "<<<…>>> needs at least a grid and a block");
    for (Token *i = begin; i < open; i++)
        if (is_one_of(i, space_words) || (kind(i) == '<' && run(i, 1) >= 3))
            fail(open, "the kernel of this <<<…>>> is too complex: name it in a variable first");
    // The configuration is evaluated before the call, so the kernel expression moves behind it. Nothing else
    // moves, and empty lines replace the lines of the expression.
    insert_before(
        u, begin,
        fill("(::cuda_cpu::Launch(\"$name\", ::cuda_cpu::config(", "name", short_name(begin, open)));
    delete_tokens(u, begin, open + 2);
    edit(u, end->text, 1, ")), ");
    insert_before(u, end, spelling(begin, open));
    if (begin->line == end->line)
        u->edits[u->edit_count - 1].moved = begin;
    delete_tokens(u, end + 1, end + 2);
    edit(u, end[3].match->text, 1, "))");
}

// True if a name may be declared here, other than as a kernel, with a scope that contains the call
static bool may_declare(const Unit *u, Token *i, const Token *call) {
    for (size_t k = 0; k < u->kernel_count; k++)
        if (u->kernels[k] == i)
            return false;
    const bool follows = kind(i - 1) == IDENT ? !is_one_of(i - 1, statement_words)
                                              : kind(i - 1) != END && strchr("*&>[,", kind(i - 1));
    if (!follows || kind(i + 1) == SCOPE)
        return false;
    Token *open = enclosing(i);
    if (kind(open) == '(') { // a parameter, or an argument
        for (open = open->match + 1; kind(open) != '{' && kind(open) != ';' && kind(open) != END;)
            open++;
        return kind(open) == '{' && open < call && call < open->match;
    }
    if (kind(open) == '[') // an index, a capture, or auto [a, b]
        return is(open - 1, "auto") || !ends_expression(open - 1);
    if (kind(open) != '{' || (open < call && call < open->match))
        return true;
    return !i->system && !is_ours(i) && brace_kind(statement_begin(open - 1), open) == IN_CLASS;
}

// Refuses the statement k(x); or k<T>(x); in host code if k can only be a kernel, which needs <<<…>>>.
void refuse_plain_call(const Unit *u, Token *name) {
    size_t k = 0;
    while (k < u->kernel_count && !same_word(u->kernels[k], name))
        k++;
    Token *open = kind(name + 1) == '<' ? skip_angles(name + 1, NULL) : name + 1;
    if (k == u->kernel_count || !open || kind(open) != '(' || kind(open->match + 1) != ';')
        return;
    for (Token *i = u->begin; i < u->end; i++)
        if (same_word(i, name) && may_declare(u, i, name))
            return;
    const char *word = word_of(name);
    fail(name, "%s is a kernel, so this call needs <<<blocks, threads>>>: %s<<<…, …>>>(…)", word, word);
}
