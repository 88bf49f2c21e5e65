// SPDX-License-Identifier: MIT
// Declarations: finds the names, the parameters and the bodies
#include "translate.h"

static const char attribute_words[] = " __attribute__ __attribute alignas _Alignas __align__ asm __asm__"
                                      " __launch_bounds__ __maxnreg__ __cluster_dims__ __block_size__ ";

static const char decltype_words[] = " decltype typeof __typeof __typeof__ ";

_Noreturn void fail_declaration(const Token *i) {
    if (kind(i) == END)
        fail(i, "the file ends inside a declaration");
    const size_t length = strcspn(i->text, "\n"); // a string literal may span lines
    fail(i, "cannot parse this declaration at '%.*s'", (int)(length < i->length ? length : i->length),
         i->text);
}

// Returns the token after an attribute; i if there is none.
Token *skip_attribute(Token *i) {
    if (kind(i) == '[' && kind(i + 1) == '[')
        return i->match + 1;
    if (!is_one_of(i, attribute_words))
        return i;
    return kind(i + 1) == '(' ? i[1].match + 1 : i + 1;
}

// Skips an attribute like skip_attribute(). Attributes that set an alignment are moved to `alignment` if it
// is not null, because C++ does not allow them on a typedef.
static Token *take_attribute(Unit *u, Token *i, Text *alignment) {
    Token *end = skip_attribute(i);
    bool aligns = false;
    for (const Token *t = i; t < end; t++)
        aligns |=
            is_one_of(t, " aligned __aligned__ ") || (t == i && is_one_of(t, " alignas _Alignas __align__ "));
    for (const Token *t = i; t < end && alignment && aligns; t++)
        append_filled(alignment, " $word", "word", word_of(t));
    if (alignment && aligns)
        delete_tokens(u, i, end - 1);
    return end;
}

// Skips a requires-clause, such as requires A<T> && (B || requires { c; }). Returns i if there is none.
Token *skip_requires(Token *i) {
    if (!is(i, "requires"))
        return i;
    for (i++;; i += 2) {
        if (is(i, "requires")) {
            i = kind(i + 1) == '(' ? i[1].match + 1 : i + 1;
            i = kind(i) == '{' ? i->match + 1 : i;
        } else if (kind(i) == '(') {
            i = i->match + 1;
        } else {
            while (kind(i) == SCOPE || kind(i) == '<' ||
                   (kind(i) == IDENT && (kind(i + 1) == SCOPE || kind(i + 1) == '<')))
                i = kind(i) == '<' ? skip_template_arguments(i) : i + 1;
            i += kind(i) == IDENT && kind(i - 1) != '>';
        }
        if ((kind(i) != '&' && kind(i) != '|') || kind(i + 1) != kind(i))
            return i;
    }
}

// From struct, class, union or enum, finds the { of the definition; without a definition, the token after the
// name. A null `limit` is the end of the text.
Token *skip_class_head(Token *i, const Token *limit) {
    i += is(i, "enum") && is_one_of(i + 1, " class struct ") ? 2 : 1;
    for (Token *next; (next = skip_attribute(i)) != i;)
        i = next;
    while ((!limit || i < limit) && !is(i, "final") && (kind(i) == IDENT || kind(i) == SCOPE)) {
        Token *end = kind(++i) == '<' ? skip_angles(i, limit) : i;
        if (!end)
            return i;
        i = end;
        if (kind(i) != SCOPE && kind(i - 1) != SCOPE)
            break;
    }
    i += is(i, "final");
    if (kind(i) != ':')
        return i;
    Token *brace = i;                                                  // skips the base classes
    while ((!limit || brace < limit) && !strchr("{;)}]", kind(brace))) // strchr() also finds END
        brace = skip(brace);
    return kind(brace) == '{' ? brace : i;
}

// True if the parentheses hold the parameters of a function, false if they hold the initial value of a
// variable. As in C++, an ambiguous declaration declares a function. A single name is taken for a type.
static bool looks_like_parameters(Token *open) {
    const Token *close = open->match;
    Token *i = open + 1;
    if (kind(close + 1) != ';' && kind(close + 1) != ',')
        return true; // a body, const, noexcept, ->, = 0 …
    if (i == close || run(i, 1) == 3 || is_one_of(i, " struct class union enum typename "))
        return true; // run: ...
    if (is_one_of(i, type_words))
        return (kind(i + 1) != '(' || kind(i + 2) == '*') && kind(i + 1) != '{';
    if ((kind(i) != IDENT && kind(i) != SCOPE) ||
        is_one_of(i, " true false nullptr this sizeof alignof new NULL __null "))
        return false;
    while (++i < close && (kind(i) == SCOPE || kind(i - 1) == SCOPE || kind(i) == '<'))
        if (kind(i) == '<') {
            Token *end = skip_angles(i, close);
            if (!end)
                return false;
            i = end - 1;
        }
    if (kind(i) == '*' || kind(i) == '&') // T *p, T *, but not a * 2
        return i + 1 == close || kind(i + 1) == IDENT || strchr("*&,", kind(i + 1));
    return i == close || kind(i) == IDENT || kind(i) == ',' || run(i, 1) == 3 ||
           (kind(i) == '(' && kind(i + 1) == '*') || (kind(i) == '[' && kind(i + 1) == ']');
}

// True if this ( begins a nested declarator: (*name)(…) or (A::*name)[…].
static bool holds_declarator(const Token *open) {
    const Token *i = open + 1;
    while (kind(i) == IDENT || kind(i) == SCOPE)
        i++;
    return (kind(i) == '*' || kind(i) == '&') && (i == open + 1 || kind(i - 1) == SCOPE) &&
           (kind(open->match + 1) == '(' || kind(open->match + 1) == '[');
}

// True for the first ( of (name)(int x), which declares a function.
static bool is_parenthesised_name(const Token *open) {
    return kind(open) == '(' && kind(open + 1) == IDENT && kind(open + 2) == ')' && kind(open + 3) == '(' &&
           !is_one_of(open + 1, type_words);
}

static void note_word(Unit *u, Declaration *d, Token *i) {
    d->extern_at = is(i, "extern") ? i : d->extern_at;
    d->static_at = is(i, "static") ? i : d->static_at;
    d->is_constexpr |= is(i, "constexpr");
    d->is_inline |= is_one_of(i, " inline __inline __inline__ ");
    d->is_typedef |= is(i, "typedef");
    d->is_const |= is_one_of(i, " const constexpr ");
    if (!is_one_of(i, space_words))
        return;
    if (kind(i - 1) == '*' || kind(i - 1) == '&')
        d->after_pointer = i;
    d->first_word = d->first_word ? d->first_word : i;
    d->is_shared |= is(i, "__shared__");
    d->is_constant |= is(i, "__constant__");
    d->is_managed |= is(i, "__managed__");
    i->done = true;
    delete_tokens(u, i, i);
}

// From a word, finds the token after it and its template arguments or, after decltype, its ( ).
static Token *skip_word(Token *i, const char *before_parentheses) {
    if (kind(i + 1) == '<')
        return skip_template_arguments(i + 1);
    return kind(i + 1) == '(' && is_one_of(i, before_parentheses) ? i[1].match + 1 : i + 1;
}

// Parses a declarator; the first call also parses the specifiers before it. Only the name has to be found: it
// is the last word before [ ( = , or ; that does not belong to a type.
void parse_declarator(Unit *u, Token *i, Declaration *d, Text *alignment) {
    int words = 0;
    Token *outermost = NULL;
    bool pointer = false;
    d->name = NULL;
    d->is_const = d->is_const_type;
    d->is_function = false;
    for (Token *next;;) {
        if ((next = take_attribute(u, i, alignment)) != i) {
            i = next;
        } else if (is(i, "operator") || kind(i) == '~') {
            d->is_function = true;
            return;
        } else if (is(i, "template") && kind(i + 1) == '<') {
            d->is_template |= kind(i + 2) != '>';
            d->is_specialization |= kind(i + 2) == '>';
            i = skip_template_arguments(i + 1);
        } else if (is(i, "requires")) {
            i = skip_requires(i);
        } else if (is(i, "extern") && kind(i + 1) == STRING) {
            d->is_linkage = true;
            note_word(u, d, i);
            i += 2;
        } else if (is_one_of(i, " struct class union enum ")) {
            words++;
            d->name = i;
            i = skip_class_head(i, NULL);
            d->is_definition |= kind(i) == '{';
            d->is_late |= kind(i) == '{' && !d->first_word;
            i = kind(i) == '{' ? i->match + 1 : i;
        } else if (kind(i) == IDENT) {
            note_word(u, d, i);
            if (!is_one_of(i, space_words)) {
                d->name = i;
                words++;
            }
            i = skip_word(i, decltype_words);
        } else if (kind(i) == '*' || kind(i) == '&') {
            d->is_const_type = d->is_typed || pointer ? d->is_const_type : d->is_const;
            pointer = true;
            d->is_const = false;
            i++;
        } else if (kind(i) == '(' && words > 0 && is_parenthesised_name(i)) {
            d->is_function = true;
            return;
        } else if (kind(i) == '(' && holds_declarator(i)) {
            outermost = outermost ? outermost : i;
            i++;
        } else if (kind(i) == SCOPE) {
            i++;
        } else {
            break;
        }
    }
    if (d->is_definition && !d->is_typed && words == 1 && kind(i) == ';') {
        d->is_function = true; // a type is defined, but no variable
        return;
    }
    d->is_function = kind(i) == '(' && looks_like_parameters(i);
    if (!d->name || is_one_of(d->name, type_words) || is_one_of(d->name, statement_words))
        fail_declaration(i);
    if (d->is_function)
        return;
    if (d->after_pointer) // an attribute here would apply to the pointer's type
        fail_declaration(d->after_pointer);
    if (outermost)
        i = outermost->match + 1;
    for (Token *next;; i = next) {
        next = take_attribute(u, i, alignment);
        if (next == i && (kind(i) == '[' || (kind(i) == '(' && outermost)))
            next = i->match + 1;
        if (next == i)
            break;
    }
    d->end = i;
    d->has_value = kind(i) == '=' || kind(i) == '{' || kind(i) == '(';
    if ((!d->has_value && kind(i) != ',' && kind(i) != ';') || (!d->is_typed && words < 2))
        fail_declaration(i);
    d->is_const_type = d->is_typed || pointer ? d->is_const_type : d->is_const;
    d->is_const |= d->is_constexpr;
    d->is_typed = true;
}

// From the start of a function's declaration, finds the ( of its parameters and sets `name`.
Token *find_parameters(Token *i, Token **name) {
    *name = NULL;
    for (Token *next;;) {
        if ((next = skip_attribute(i)) != i) {
            i = next;
        } else if (is(i, "template") && kind(i + 1) == '<') {
            i = skip_template_arguments(i + 1);
        } else if (is(i, "requires")) {
            i = skip_requires(i);
        } else if (is(i, "operator")) {
            *name = i++;
            i += kind(i) == '(' || kind(i) == '[' ? 2 : 0;
            while (kind(i) != '(' && kind(i) != ';' && kind(i) != END && !closes(i))
                i++;
        } else if (kind(i) == IDENT) {
            *name = i;
            i = skip_word(i, " decltype typeof __typeof __typeof__ explicit ");
        } else if (kind(i) == '(' && holds_declarator(i)) {
            i++;
        } else if (*name && is_parenthesised_name(i)) {
            *name = i + 1; // void (name)(int x)
            return i + 3;
        } else if (kind(i) == '(' && *name) {
            return i;
        } else if (kind(i) == '*' || kind(i) == '&' || kind(i) == '~' || kind(i) == SCOPE ||
                   kind(i) == STRING) { // extern "C"
            i++;
        } else {
            fail_declaration(i);
        }
    }
}

// From the ( of a function's parameters, finds the { of its body; null if this only declares the function.
Token *find_body(Token *open) {
    Token *i = open->match + 1;
    while (kind(i) != '{' && kind(i) != ':' && kind(i) != ';' && kind(i) != '=' && kind(i) != END &&
           !closes(i))
        i = is(i, "requires") ? skip_requires(i) : skip(i);
    if (kind(i) == ':') // a constructor's member initialisers: a(1), b{2}
        do {
            i++;
            while (kind(i) != '(' && kind(i) != '{' && kind(i) != ';' && kind(i) != END && !closes(i)) {
                Token *after = kind(i) == '<' ? skip_angles(i, NULL) : NULL; // null after f() ? g() : x < y
                i = after ? after : i + 1;
            }
            i = opens(i) ? i->match + 1 : i;
            i += run(i, 1) == 3 && kind(i) == '.' ? 3 : 0;
        } while (kind(i) == ',');
    return kind(i) == '{' ? i : NULL;
}

// Parses a parameter from token i. Returns its name, or null and sets `place` to where one can be inserted.
Token *parameter_name(Token *i, const Token *close, Token **place, bool *is_pack, bool *may_be_unused) {
    static const char qualifiers[] = " const volatile __restrict __restrict__ restrict register __const ";
    bool typed = false;
    *is_pack = *may_be_unused = false;
    for (Token *next; i < close;) {
        if ((next = skip_attribute(i)) != i) {
            for (; i < next; i++)
                *may_be_unused |= is_one_of(i, " maybe_unused unused __unused__ ");
        } else if (is_one_of(i, qualifiers)) {
            i++;
        } else if (run(i, 1) == 3 && kind(i) == '.') {
            *is_pack = true;
            i += 3;
        } else if (is_one_of(i, type_words)) {
            typed = true;
            i = kind(i + 1) == '(' && is_one_of(i, decltype_words) ? i[1].match + 1 : i + 1;
        } else if ((kind(i) == IDENT || kind(i) == SCOPE) && !typed) { // ns::A<int>::T
            typed = true;
            if (is_one_of(i, " struct class union enum typename "))
                i++;
            for (;;) {
                i += kind(i) == SCOPE;
                i += is(i, "template");
                i += kind(i) == IDENT;
                if (kind(i) == '<')
                    i = skip_template_arguments(i);
                if (kind(i) != SCOPE)
                    break;
            }
        } else if (kind(i) == IDENT) {
            Token *next_word = kind(i + 1) == '<' ? skip_angles(i + 1, close) : i + 1;
            if (!next_word || kind(next_word) != SCOPE)
                return i;
            i = next_word; // int A<B>::*name
        } else if (kind(i) == SCOPE || kind(i) == '*' || kind(i) == '&' || kind(i) == '(') {
            i++;
        } else {
            break;
        }
    }
    *place = i;
    return NULL;
}
