// SPDX-License-Identifier: MIT
// Tokens, brackets and angle brackets
#include "translate.h"

// A list of words has a space before and after each word, for is_one_of().
const char space_words[] = " __shared__ __device__ __constant__ __managed__ ";

const char statement_words[] =
    " if else for while do switch case default return co_return co_yield co_await goto"
    " break continue try catch throw using namespace sizeof alignof new delete ";

const char type_words[] = " void bool char wchar_t char8_t char16_t char32_t short int long signed unsigned"
                          " float double auto __int128 decltype typeof __typeof __typeof__ const volatile ";

bool is(const Token *i, const char *word) {
    return i->kind == IDENT && strncmp(i->text, word, i->length) == 0 && word[i->length] == '\0';
}

bool is_one_of(const Token *i, const char *words) {
    if (i->kind != IDENT)
        return false;
    for (const char *p = words; p[1]; p = strchr(p + 1, ' '))
        if (strncmp(p + 1, i->text, i->length) == 0 && p[1 + i->length] == ' ')
            return true;
    return false;
}

bool same_word(const Token *i, const Token *j) {
    return kind(i) == IDENT && kind(j) == IDENT && i->length == j->length &&
           memcmp(i->text, j->text, i->length) == 0;
}

// True for the name after . -> and ::
bool is_member(const Token *i) {
    return kind(i - 1) == '.' || kind(i - 1) == ARROW || kind(i - 1) == SCOPE;
}

const char *end_of(const Token *i) {
    return i->text + i->length;
}

bool opens(const Token *i) {
    return kind(i) == '(' || kind(i) == '[' || kind(i) == '{';
}
bool closes(const Token *i) {
    return kind(i) == ')' || kind(i) == ']' || kind(i) == '}';
}

// The token after i, or after the bracket that closes i
Token *skip(Token *i) {
    return opens(i) ? i->match + 1 : i + 1;
}

// The token before i, or before the bracket that i closes
Token *skip_back(const Token *i) {
    return closes(i) ? i->match - 1 : (Token *)i - 1;
}

// The bracket in which token i stands, or the end of the text; i if it opens one
Token *enclosing(Token *i) {
    while (!opens(i) && kind(i) != END)
        i = skip_back(i);
    return i;
}

// The number of equal, adjacent tokens from token i on, 3 for <<< or << <, forward (step 1) or back (-1)
int run(const Token *i, int step) {
    int n = 1;
    for (; kind(i + step) == kind(i); n++, i += step) {
        const Token *later = step > 0 ? i + 1 : i;
        if (end_of(later - 1) != later->text && !later->joined)
            break;
    }
    return n;
}

void pair_brackets(Unit *u) {
    Token *innermost = NULL; // `match` of an open bracket is, until it is closed, the bracket around it
    for (Token *i = u->begin; i < u->end; i++) {
        if (opens(i)) {
            i->match = innermost;
            innermost = i;
        } else if (closes(i)) {
            Token *open = innermost;
            const char *pair = kind(i) == ')' ? "()" : kind(i) == ']' ? "[]" : "{}";
            if (!open || kind(open) != pair[0])
                fail(i, "unmatched %c", pair[1]);
            innermost = open->match;
            open->match = i;
            i->match = open;
        }
    }
    if (innermost)
        fail(innermost, "this %c is never closed", kind(innermost));
}

// From a <, finds the token after the matching >; null if there is none before `limit` (null: the end of the
// text). `numbers`: a nested template argument list may begin with a number.
static Token *match_angles(Token *i, const Token *limit, bool numbers) {
    for (int depth = 0; (!limit || i < limit) && kind(i) != ';' && kind(i) != END && !closes(i); i++) {
        if (opens(i)) {
            i = i->match;
        } else if (kind(i) == '<') {
            const int n = run(i, 1); // << is a shift; < not after a name is a comparison
            if (depth == 0 || (n == 1 && kind(i - 1) == IDENT && (numbers || kind(i + 1) != NUMBER)))
                depth++;
            i += n - 1;
        } else if (kind(i) == '>' && --depth <= 0) {
            return depth < 0 ? NULL : i + 1;
        }
    }
    return NULL;
}

// In A<N<2> = 0> the second < is a comparison. Without knowing the names, this can be found out only by
// trying to read it as the start of an argument list.
Token *skip_angles(Token *i, const Token *limit) {
    Token *end = match_angles(i, limit, true);
    return end ? end : match_angles(i, limit, false);
}

Token *skip_template_arguments(Token *i) {
    Token *end = skip_angles(i, NULL);
    if (!end)
        fail(i, "cannot find the > of this <; put comparisons in ( )");
    return end;
}

Token *next_comma(Token *i, const Token *close) {
    while (i < close && kind(i) != ',') {
        Token *angles = kind(i) == '<' && kind(i - 1) == IDENT ? skip_angles(i, close) : NULL;
        i = angles ? angles : skip(i);
    }
    return i;
}

// The token after the ; { or } before token i
Token *statement_begin(const Token *i) {
    while (kind(i - 1) != END && !strchr(";{}", kind(i - 1)))
        i--;
    return (Token *)i;
}

// The ; that ends this statement, or the bracket or the end of the text before which there is none
Token *statement_end(Token *i) {
    while (kind(i) != ';' && kind(i) != END && !closes(i))
        i = skip(i);
    return i;
}

// True if token i can end an expression; then ( or [ after it is a call f(x) or a subscript table[i].
bool ends_expression(const Token *i) {
    if (kind(i) == IDENT)
        return !is_one_of(i, statement_words);
    if (kind(i) == ']') // [[likely]] is an attribute
        return kind(i->match + 1) != '[' || kind(i - 1) != ']';
    if (kind(i) != ')')
        return kind(i) == '>';
    const Token *group = i->match; // if (…), if constexpr (…), or the cast (void)
    return !is_one_of(group - 1, statement_words) && !is(group - 1, "constexpr") &&
           !(group == i - 2 && is(group + 1, "void"));
}

bool is_ours(const Token *i) { // in a header of cucc
    return memmem(i->file->name, i->file->length, "/cuda_cpu/", 10) != NULL ||
           memmem(i->file->name, i->file->length, "/cooperative_groups", 19) != NULL;
}
