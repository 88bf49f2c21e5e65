// SPDX-License-Identifier: MIT
// The types that a program declares: which are classes with functions, and which are arrays
#include "plan.h"

const char number_words[] = " bool char short int long signed unsigned float double void wchar_t __int128 ";
const char integer_words[] = " bool char short int long signed unsigned size_t ptrdiff_t uint ushort "
                             "uchar ulong int8_t int16_t int32_t int64_t"
                             " uint8_t uint16_t uint32_t uint64_t ";

// A class with functions, or a typedef or data member that is an array
typedef struct {
    const Token *name;
    int dimensions; // 0: a class
} Type;
static Type *types;
static size_t type_count;

bool has_functions(const Token *name) {
    for (size_t n = 0; n < type_count; n++)
        if (!types[n].dimensions && same_word(types[n].name, name))
            return true;
    return false;
}

// The number of array dimensions of the typedef or data member of this name; 0 if there is no such array
int dimensions_of(const Token *name) {
    int most = 0;
    for (size_t n = 0; n < type_count; n++)
        if (types[n].dimensions > most && same_word(types[n].name, name))
            most = types[n].dimensions;
    return most;
}

static void add_class(const Token *name) {
    PUSH(types, type_count, (Type){name, 0});
}

static void add_array(const Token *name, const Token *bracket, int dimensions) {
    for (; kind(bracket) == '['; bracket = bracket->match + 1)
        dimensions++;
    PUSH(types, type_count, (Type){name, dimensions});
}

static void read_class(Token *i) { // from the token after struct, class or union
    while (skip_attribute(i) != i)
        i = skip_attribute(i);
    Token *name = i;
    bool found = false;
    for (; kind(i) != '{' && kind(i) != ';' && kind(i) != END && kind(i) != '('; i++)
        found |= kind(i) == ':' && kind(i - 1) == IDENT;
    for (const Token *m = i; kind(i) == '{' && m < i->match; m++) {
        found |= kind(m) == '(' || kind(m) == '=' || kind(m) == '&';
        if (kind(m) == IDENT && !is_member(m) && kind(m + 1) == '[') // float x[4];
            add_array(m, m + 1, 0);
        else if (kind(m) == IDENT && kind(m + 1) == IDENT && dimensions_of(m)) // T x;
            add_array(m + 1, m + 2, dimensions_of(m));
    }
    if (found && kind(i) == '{')
        add_class(kind(name) == IDENT ? name : i->match + 1);
}

static void read_typedef(Token *i) { // typedef A B; using B = A;
    const Token *end = statement_end(i), *name = is(i, "using") ? i + 1 : NULL;
    for (i += name ? 3 : 1; i < end; i = kind(i) == '{' ? i->match + 1 : i + 1)
        if (kind(i) == '[' && kind(i - 1) != ']')
            add_array(name ? name : i - 1, i, 0);
        else if (kind(i) == IDENT && dimensions_of(i))
            add_array(name ? name : i + 1, name ? i + 1 : i + 2, dimensions_of(i));
        else if (kind(i) == IDENT && has_functions(i))
            add_class(name ? name : end - 1);
}

// Lists the names of the program's classes that have functions, initial values, references or bases; of types
// for which an operator takes its left operand by reference; and typedefs of these. A constructor of such a
// class may use threadIdx, and an expression that looks like a read may change the object. Also lists the
// typedefs and members that are arrays.
void find_types(Unit *u) {
    static bool done;
    for (Token *t = done ? u->end : u->begin; t < u->end; t++) {
        Token *i = t + 1;
        if (kind(t) != IDENT || t->system || is_ours(t))
            continue;
        if (is(t, "operator")) { // operator<<(Stream &s, …)
            while (kind(i) != END && kind(i) != '(')
                i++;
            if (kind(i + 1) == IDENT && kind(i + 2) == '&')
                add_class(i + 1);
        } else if (is_one_of(t, " struct class union ") && kind(t - 1) != '<' && kind(t - 1) != ',') {
            read_class(i);
        } else if (is(t, "typedef") || (is(t, "using") && kind(t + 2) == '=')) {
            read_typedef(t);
        }
    }
    done = true;
}

// True for float, float4, uint32_t
bool is_plain(const Token *type) {
    static const char vectors[] =
        " char uchar short ushort int uint long ulong longlong ulonglong float double ";
    const Token number = {.kind = IDENT, .text = type->text, .length = type->length - 1};
    const char last = end_of(type)[-1];
    return is_one_of(type, number_words) || is_one_of(type, integer_words) || is(type, "const") ||
           (last >= '1' && last <= '4' && is_one_of(&number, vectors));
}

// True for an object of a class with functions
bool is_class(const Variable *v) {
    if (v->parameter || v->is_pointer || v->is_reference || v->is_memory)
        return false;
    const Token *name = v->specifiers_end - 1;
    for (int depth = kind(name) == '>'; depth > 0 && kind(name) != END;) {
        name--;
        depth += (kind(name) == '>') - (kind(name) == '<');
        name -= depth == 0;
    }
    return has_functions(name);
}

// ---- constants ----

typedef enum { NOT_DECLARED, FIXED, CHANGES } Constancy;

// True if code outside of these braces can use a name that is declared in them: they belong to a namespace
// or, if the name is written A::name (`qualified`), to a class.
bool is_visible(const Token *open, bool qualified) {
    for (; kind(open) == '{'; open = enclosing((Token *)open - 1)) {
        const ScopeKind scope = brace_kind(statement_begin(open), (Token *)open);
        if (scope == IN_BLOCK || (scope == IN_CLASS && !qualified))
            return false;
    }
    return kind(open) == END;
}

// Whether token i is an enumerator that may be meant by `use`, which is in the same block or outside
// functions
bool is_enumerator(const Token *i, const Token *use) {
    const Token *open = enclosing((Token *)i), *word = statement_begin(open);
    while (word < open && !is(word, "enum"))
        word++;
    if (kind(open) != '{' || kind(open - 1) == ')' || word == open || !strchr("{,", kind(i - 1)) ||
        (is_one_of(word + 1, " class struct ") && !is_member(use)))
        return false;
    open = enclosing((Token *)word - 1);
    return is_visible(open, is_member(use)) || (open < use && i < use && use < open->match);
}

// What token i declares if it is the name in a declaration outside functions
static Constancy declared_by(Token *i, bool qualified) {
    static const char no_types[] = " struct class union enum typename operator goto typedef using friend ";
    Token *begin = statement_begin(i), *t = begin, *open = enclosing(i);
    const bool after_type = kind(i - 1) == IDENT
                                ? !is_one_of(i - 1, statement_words) && !is_one_of(i - 1, no_types)
                                : kind(i - 1) && strchr(">*&,", kind(i - 1));
    if (!after_type || is_one_of(begin, " typedef using friend ") || !is_visible(open, qualified))
        return NOT_DECLARED;
    for (const Token *before = i - 1; before >= begin && kind(before) != ','; before = skip_back(before))
        if (kind(before) == '=')
            return NOT_DECLARED; // in an initial value
    if (is(t, "template") && (!(t = skip_angles(t + 1, NULL)) || i < t))
        return NOT_DECLARED;
    bool fixed = false, varies = kind(i - 1) == '*' || kind(i - 1) == '&';
    bool in_class = kind(open) == '{' && brace_kind(statement_begin(open), open) == IN_CLASS;
    for (; t < i && (kind(t) >= IDENT || !strchr("*&=,([{", kind(t))); t++) {
        fixed |= is_one_of(t, " const constexpr __constant__ ");
        varies |= is(t, "volatile") || (kind(t) == IDENT && has_functions(t));
        in_class &= !is_one_of(t, " static constexpr ");
    }
    return in_class ? NOT_DECLARED : fixed && !varies ? FIXED : CHANGES;
}

// True if the name means a constant: if the program declares it several times, all of them have to be
// constants, and what libraries declare counts only if the program does not. Of what is in functions, only
// the enumerators around `name` count.
bool is_declared_constant(const Token *i, const Token *end, const Token *name) {
    Constancy of_program = NOT_DECLARED, of_library = NOT_DECLARED;
    for (; i < end; i++) {
        Constancy *found = i->system || is_ours(i) ? &of_library : &of_program;
        if (!same_word(i, name) || is_member(i) || *found == CHANGES || kind(i + 1) >= IDENT ||
            !strchr("=;,{}([", kind(i + 1)))
            continue;
        const Constancy one = is_enumerator(i, name) ? FIXED : declared_by((Token *)i, is_member(name));
        *found = one > *found ? one : *found;
    }
    return (of_program ? of_program : of_library) == FIXED;
}
