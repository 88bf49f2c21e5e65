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
