// SPDX-License-Identifier: MIT
// Conversions to integers in device code, which saturate (cuda_cpu/convert.h): casts, initial values,
// assignments, returned values, and the arguments of make_uchar4() and the like. The C++ compiler examines
// the types. Nothing is inserted where the words show that no floating-point number is converted.
#include "translate.h"

static const char integers[] = " char short int long signed unsigned wchar_t char16_t char32_t size_t ssize_t"
                               " ptrdiff_t intptr_t uintptr_t uint uchar ushort ulong clock_t"
                               " int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t ";
static const char others[] = " float double bool void half __half __nv_bfloat16 half2 __half2 auto __int128 "
                             " float1 float2 float3 float4 double1 double2 double3 double4 ";
static const char modifiers[] = " const constexpr static volatile register __restrict__ ";
static const char index_words[] = " threadIdx blockIdx blockDim gridDim ";

typedef enum { NO_TYPE, INTEGER, OF_PROGRAM, OTHER } TypeKind; // OTHER: another one of the language

typedef struct {
    const Token *name; // of a variable of a function
    TypeKind type;     // that of the variable, or of what it points to
} Known;

typedef struct {
    Unit *u;
    Known *known;
    size_t count;
} Function;

static void put_after(Token *i, const char *text) {
    i->after = i->after ? fill("$a$b", "a", i->after, "b", text) : text;
}

// ---- types ----

static bool is_type(const Unit *u, const Token *name) {
    for (size_t n = 0; n < u->type_count; n++)
        if (same_word(u->types[n], name))
            return true;
    return false;
}

static void add_type(Unit *u, const Token *name) {
    if (kind(name) == IDENT && !is_type(u, name))
        PUSH(u->types, u->type_count, name);
}

// Adds the names of types that the text up to `end` declares in the program's own files.
static void find_types(Unit *u, const Token *end) {
    for (Token *i = u->types_end ? u->types_end : u->begin; i < end; i++) {
        if (kind(i) != IDENT || i->system || is_ours(i))
            continue;
        if (is(i, "typedef")) {
            add_type(u, statement_end(i) - 1);
        } else if ((is_one_of(i, " typename class ") && (kind(i - 1) == '<' || kind(i - 1) == ',')) ||
                   (is(i, "using") && kind(i + 2) == '=')) {
            add_type(u, i + 1);
        }
    }
    u->types_end = end > u->types_end ? (Token *)end : u->types_end;
}

// The text of the type between token i and token `end`, such as unsigned int, T or typename A::type, if it
// may be an integer type; otherwise null. `certain`: a name that is not declared as a type is none.
static const char *integer_type(const Unit *u, Token *i, const Token *end, bool certain) {
    bool integer = false, name = false;
    Token *const first = i;
    for (; i < end; i++) {
        if (is_one_of(i, others) || is_one_of(i, statement_words))
            return NULL;
        if (is_one_of(i, integers)) {
            integer = true;
        } else if (is(i, "typename")) {
            certain = false;
        } else if (kind(i) == IDENT && !is_one_of(i, modifiers)) {
            if (name && kind(i - 1) != SCOPE)
                return NULL;
            name = true;
        } else if (kind(i) != SCOPE && kind(i) != IDENT) {
            return NULL;
        }
    }
    if (!integer && (!name || (certain && !is_type(u, end - 1))))
        return NULL;
    return spelling(first, end);
}

// ---- expressions ----

static const Known *find_known(const Function *f, const Token *name) {
    for (size_t n = f->count; n-- > 0;)
        if (same_word(f->known[n].name, name))
            return &f->known[n];
    return NULL;
}

static bool is_floating(const Token *number) {
    const bool hexadecimal = number->length > 1 && (number->text[1] | 32) == 'x';
    for (const char *p = number->text; p < end_of(number); p++)
        if (strchr(hexadecimal ? ".pP" : ".eE", *p))
            return true;
    return false;
}

// True if a part of this expression may be a floating-point number.
static bool may_float(const Function *f, const Token *i, const Token *end) {
    for (; i < end; i++) {
        if (is_one_of(i, index_words) && kind(i + 1) == '.')
            i += 3; // threadIdx.x
        if (i >= end)
            break;
        if (kind(i) == NUMBER ? is_floating(i) : kind(i) == SCOPE || kind(i) == ARROW)
            return true;
        if (kind(i) != IDENT || kind(i - 1) == '.' || is_one_of(i, integers) || is_one_of(i, modifiers) ||
            is_one_of(i, " warpSize sizeof static_cast min max "))
            continue;
        const Known *known = find_known(f, i);
        if (!known || known->type != INTEGER || kind(i + 1) == '(')
            return true;
    }
    return false;
}

// True if no conversion is inserted for this right operand or initial value, because it is a null pointer, a
// list in braces, a lambda, or has integers only
static bool is_plain(const Function *f, const Token *i, const Token *end) {
    return i >= end || kind(i) == '{' || kind(i) == '[' ||
           (i + 1 == end && is_one_of(i, " NULL __null nullptr true false this ")) || !may_float(f, i, end);
}

static void into(const Function *f, Token *place, const char *type, const Token *end) {
    if (!is_plain(f, place + 1, end))
        put_after(place, fill(" ::cuda_cpu::Into<$type>{} =", "type", type));
}

// ---- casts ----

// True if the token can only be the first of an operand.
static bool begins_operand(const Token *i) {
    return kind(i) == NUMBER || kind(i) == CHARACTER || (kind(i) == '!' && kind(i + 1) != '=') ||
           kind(i) == '~' || kind(i) == SCOPE ||
           (kind(i) == IDENT && !is_one_of(i, " const volatile noexcept override final mutable and or xor "
                                              " not_eq and_eq or_eq xor_eq bitand bitor __attribute__ "));
}

// (int)x
static void find_cast(const Function *f, Token *open) {
    Token *const close = open->match, *const next = close + 1, *const before = open - 1;
    if (open + 1 == close || kind(before) == STRING || kind(before) == ']' ||
        (kind(before) == IDENT && !is_one_of(before, " return case else do throw and or not ")) ||
        (kind(before) == ')' && is_one_of(before->match - 1, " if while for switch constexpr catch ")))
        return;
    const bool certain = !begins_operand(next);
    if (certain && (!kind(next) || !strchr("(+-*&", kind(next))))
        return;
    const char *type = integer_type(f->u, open + 1, close, certain);
    if (!type || (kind(next) == '(' ? next + 1 == next->match || !may_float(f, next, next->match)
                                    : certain && kind(next + 1) == ')'))
        return;
    const bool word =
        kind(next) == NUMBER || (kind(next) == IDENT && !is_one_of(next, " min max static_cast "));
    if (!word || may_float(f, next, next + 1))
        put_after(close, fill("(::cuda_cpu::Saturated<$type>)", "type", type));
}

// int(x), static_cast<int>(x)
static void find_call_of_type(const Function *f, Token *i) {
    Token *open = i + 1, *end;
    const char *type = NULL;
    if (is(i, "static_cast") && kind(open) == '<' && (end = skip_angles(open, NULL)) && kind(end) == '(') {
        type = integer_type(f->u, open + 1, end - 1, false);
        open = end;
    } else if (kind(open) == '(' && (is_one_of(i, integers) || is_type(f->u, i)) && !is_member(i) &&
               !strchr(";{}", kind(i - 1)) && (kind(i - 1) != IDENT || is_one_of(i - 1, " return case ")) &&
               !(strchr("*&", kind(open + 1)) && strchr("([", kind(open->match + 1))) &&
               (!(is_one_of(open + 1, type_words) || is_type(f->u, open + 1)) || kind(open + 2) == '(')) {
        type = word_of(i);
    }
    Token *const close = open->match;
    if (!type || open + 1 == close || next_comma(open + 1, close) != close || is_plain(f, open + 1, close))
        return;
    put_after(open, fill("::cuda_cpu::Saturated<$type>(", "type", type));
    put_after(close - 1, ")");
}

// ---- variables ----

static void add_known(Function *f, const Token *name, TypeKind type) {
    PUSH(f->known, f->count, (Known){name, type});
}

// Returns the token after the type that begins at token i, and sets `type`. Returns null if no
// type of the language, common integer type or name that the program declares as a type begins there.
static Token *skip_type(const Function *f, Token *i, TypeKind *type) {
    *type = NO_TYPE;
    for (;; i++) {
        if (is(i, "std") && kind(i + 1) == SCOPE && is_one_of(i + 2, integers))
            i++;
        else if (is_one_of(i, integers))
            *type = *type ? *type : INTEGER;
        else if (is_one_of(i, others))
            *type = OTHER;
        else if (!*type && kind(i) == IDENT && is_type(f->u, i))
            *type = OF_PROGRAM;
        else if (!is_one_of(i, modifiers))
            return *type ? i : NULL;
    }
}

static void add_parameters(Function *f, Token *open) {
    for (Token *i = open; i < open->match; i = next_comma(i + 1, open->match)) {
        TypeKind type;
        Token *name = skip_type(f, i + 1, &type);
        while (name && (kind(name) == '*' || kind(name) == '&' || is_one_of(name, modifiers)))
            name++;
        if (name && kind(name) == IDENT)
            add_known(f, name, type);
    }
}

// A declaration that begins here: int i = x, *p, k(y);
static void find_declaration(Function *f, Token *i) {
    TypeKind kind_of_type;
    Token *name = skip_type(f, i, &kind_of_type);
    const Token *end = statement_end(i);
    const char *type = "";
    for (Token *t = i; name && t < name; t++)
        if (!is_one_of(t, modifiers))
            type = fill("$a $b", "a", type, "b", word_of(t));
    while (name && name < end) {
        bool is_pointer = false;
        for (; kind(name) == '*' || kind(name) == '&' || is_one_of(name, modifiers); name++)
            is_pointer |= kind(name) == '*' || kind(name) == '&';
        if (kind(name) != IDENT || is_one_of(name, statement_words))
            return;
        add_known(f, name, kind_of_type);
        Token *value = name + 1, *comma = next_comma(value, (Token *)end);
        const bool number = kind_of_type != OTHER && !is_pointer;
        if (number && kind(value) == '=')
            into(f, value, type, comma);
        else if (number && kind_of_type == INTEGER && kind(value) == '(' && value->match + 1 == comma &&
                 next_comma(value + 1, value->match) == value->match && !is_type(f->u, value + 1) &&
                 !is_one_of(value + 1, type_words))
            into(f, value, type, value->match);
        name = kind(comma) == ',' ? comma + 1 : NULL;
    }
}

// The first token of the left operand x, a[i].x, p->x, *p of an assignment; null for another form.
static Token *left_operand(Token *i) {
    for (;; i -= 2) {
        while (kind(i) == ']' ||
               (kind(i) == ')' && kind(i->match - 1) == IDENT && ends_expression(i->match - 1)))
            i = i->match - 1;
        if (kind(i) == ')')
            i = i->match;
        else if (kind(i) != IDENT)
            return NULL;
        if (kind(i - 1) != '.' && kind(i - 1) != ARROW && kind(i - 1) != SCOPE)
            break;
    }
    if (is_one_of(i, type_words) || is_one_of(i, " operator class typename "))
        return NULL;
    while (kind(i - 1) == '*' && !ends_expression(i - 2) && kind(i - 2) != NUMBER)
        i--;
    const Token *before = i - 1;
    const bool begins = kind(before) == IDENT ? is_one_of(before, " else do return ")
                        : kind(before) == ')' ? !ends_expression(before)
                                              : kind(before) && strchr(";{}(,=?:", kind(before));
    return begins ? i : NULL;
}

// x = y
static void find_assignment(const Function *f, Token *i) {
    if (kind(i - 1) == OPERATOR || is(i - 1, "operator") ||
        (kind(i - 1) < IDENT && strchr("+-*/%&|^!~<>", kind(i - 1))))
        return;
    Token *left = left_operand(i - 1), *base = left;
    if (!left)
        return;
    while (base < i && kind(base) != IDENT)
        base++;
    const Known *known = find_known(f, base);
    if (known ? known->type == OTHER || known->name == base : base == i - 1 && kind(base - 1) == ',')
        return;         // the latter may be a declaration
    Token *end = i + 1; // the end of the right operand
    while (kind(end) != ',' && kind(end) != ';' && kind(end) != END && !closes(end))
        end = next_comma(end, statement_end(end));
    into(f, i, fill("decltype($left)", "left", spelling(left, i)), end);
}

// ---- functions ----

// make_uchar4(x, y, z, w)
static void find_vector(const Function *f, Token *name) {
    static const struct {
        const char *name, *type;
    } vectors[] = {{"char", "signed char"},
                   {"uchar", "unsigned char"},
                   {"short", "short"},
                   {"ushort", "unsigned short"},
                   {"int", "int"},
                   {"uint", "unsigned"},
                   {"long", "long"},
                   {"ulong", "unsigned long"},
                   {"longlong", "long long"},
                   {"ulonglong", "unsigned long long"}};
    Token *const close = name[1].match;
    for (size_t n = 0; n < sizeof vectors / sizeof *vectors; n++) {
        const size_t length = strlen(vectors[n].name);
        if (name->length != 6 + length || strncmp(name->text + 5, vectors[n].name, length) != 0)
            continue;
        for (Token *i = name + 1; i < close;) {
            Token *comma = next_comma(i + 1, close);
            into(f, i, vectors[n].type, comma);
            i = comma;
        }
    }
}

// Finds the conversions in a function. `returned`: the first token of the type that it returns, or null.
void find_conversions(Unit *u, Token *returned, Token *parameters, Token *body) {
    Function f = {.u = u};
    if (body->system)
        return; // a library's functions: compiling them takes less time
    find_types(u, body->match);
    add_parameters(&f, parameters);
    Token *name = parameters - 1;
    while (returned && is_one_of(returned, " __device__ __forceinline__ inline __inline__ static extern "))
        returned++;
    const char *type = returned && returned < name && kind(parameters->match + 1) == '{'
                           ? integer_type(u, returned, name, true)
                           : NULL;
    const Token *other = body; // the end of a lambda or local class, which return something else
    for (Token *i = body + 1; i < body->match; i++) {
        const Token *before = i - 1;
        if (kind(i) == '[') {
            if (ends_expression(before)) // a subscript
                continue;
            i = i->match;
            const Token *inner = i + 1;
            if (kind(inner) == '(') {
                inner = find_body(i + 1);
                add_parameters(&f, i + 1);
            }
            if (inner && kind(inner) == '{' && inner->match > other)
                other = inner->match;
            continue;
        }
        if (kind(i) == '(')
            find_cast(&f, i);
        else if (kind(i) == '=')
            find_assignment(&f, i);
        if (kind(i) != IDENT)
            continue;
        if ((kind(before) < IDENT && strchr(";{}:", kind(before)) && kind(before)) ||
            (kind(before) == '(' && is_one_of(before - 1, " for if while switch ")) ||
            (kind(before) == ')' && !ends_expression(before)) || is_one_of(before, " else do "))
            find_declaration(&f, i);
        if (is_one_of(i, " enum struct class union ")) {
            Token *brace = skip_class_head(i, NULL);
            if (kind(brace) == '{' && is(i, "enum"))
                i = brace->match;
            else if (kind(brace) == '{' && brace->match > other)
                other = brace->match;
        } else if (is(i, "return") && type && i > other) {
            into(&f, i, type, statement_end(i));
        } else if (kind(i + 1) == '(' && i->length > 7 && strncmp(i->text, "make_", 5) == 0) {
            find_vector(&f, i);
        } else {
            find_call_of_type(&f, i);
        }
    }
}
