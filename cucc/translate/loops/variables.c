// SPDX-License-Identifier: MIT
// The variables of a kernel that is to become loops: which have the same value in all threads
#include "plan.h"

// ---- declarations ----

// The token after the specifiers of a declaration: const unsigned int, std::pair<int, int>. Null: no type.
static Token *skip_specifiers(Token *i, Variable *v) {
    bool typed = false, numbers = false;
    for (;;) {
        Token *attribute = skip_attribute(i); // alignas(16)
        if (attribute != i) {
            i = attribute;
        } else if (is_one_of(i, " const constexpr static extern __shared__ volatile ")) {
            v->is_const |= is_one_of(i, " const constexpr ");
            v->is_memory |= is(i, "__shared__");
            i++;
        } else if ((!typed || numbers) && is_one_of(i, number_words)) {
            v->is_integer = !typed || v->is_integer;
            v->is_integer &= is_one_of(i, integer_words);
            typed = numbers = true;
            i++;
        } else if (typed || is_one_of(i, statement_words) || is_one_of(i, " decltype typeof __typeof__ ")) {
            return typed ? i : NULL;
        } else if (is_one_of(i, " typename struct class union enum ")) {
            i++;
        } else if (kind(i) == IDENT || kind(i) == SCOPE) {
            v->is_auto = is(i, "auto");
            v->is_integer = is_one_of(i, integer_words) && kind(i + 1) != SCOPE;
            typed = true;
            for (;;) {
                i += kind(i) == SCOPE;
                i += kind(i) == IDENT;
                if (kind(i) == '<' && !(i = skip_angles(i, NULL)))
                    return NULL;
                if (kind(i) != SCOPE)
                    break;
            }
        } else {
            return NULL;
        }
    }
}

static bool push(LoopPlan *p, Variable v) {
    if (p->count == MAX_VARIABLES)
        return refuse(p, v.name, "it has too many variables");
    p->variables[p->count++] = v;
    return true;
}

static const char restrict_words[] = " const __restrict__ __restrict restrict ";

void add_parameters(LoopPlan *p) {
    Token *const open = p->kernel.parameters, *const close = open->match;
    find_types(p->u);
    for (Token *i = open + 1; i < close; i++) {
        bool is_pack, may_be_unused;
        Token *place, *name = parameter_name(i, close, &place, &is_pack, &may_be_unused);
        if (is_pack) {
            refuse(p, i, "its parameters are a pack");
            return;
        }
        Token *next = next_comma(name ? name : place, close);
        Variable v = {.name = name,
                      .end = p->kernel.body->match,
                      .parameter = true,
                      .region = -1,
                      .after = next,
                      .is_plain = true};
        for (const Token *t = i; name && t < next; t++) {
            v.is_pointer |= kind(t) == '*' || kind(t) == '[';
            v.is_memory |= kind(t) == '&';
            v.is_class |= kind(t) == IDENT && has_functions(t);
            v.is_plain &= t >= name || kind(t) != IDENT || is_plain(t) || is_one_of(t, restrict_words);
        }
        v.is_class &= !v.is_pointer;
        if (name && !push(p, v))
            return;
        i = next;
    }
}

// Adds the variables of a statement of a sequence, or of the header of a loop, from token `first` to `last`,
// which is a ; or ). Returns whether it is a declaration.
bool add_variables(LoopPlan *p, Token *first, Token *last, const Token *end, bool in_header) {
    Variable type = {.end = end, .specifiers = first, .in_header = in_header, .region = -1};
    Token *i = skip_specifiers(first, &type), *from = i;
    if (!i)
        return false;
    if (kind(i) == '(' && strchr("*&", kind(i + 1)) && kind(i + 2) == IDENT && kind(i + 3) == ')' &&
        strchr("[(", kind(i + 4)))
        return refuse(p, i, "it has a pointer or reference to an array or function");
    type.specifiers_end = i;
    for (Token *t = type.specifiers; t < i && !type.is_memory; t++)
        if (skip_attribute(t) != t) // where the type is used again it would not be allowed
            return refuse(p, t, "it has a declaration of an unknown form");
    for (bool more = false;; more = true) {
        Variable v = type;
        v.from = i;
        for (; kind(i) == '*' || kind(i) == '&' || is_one_of(i, restrict_words); i++) {
            v.is_pointer |= kind(i) == '*';
            v.is_reference |= kind(i) == '&';
            v.is_const = is(i, "const") || (v.is_const && kind(i) != '*');
        }
        v.name = i++;
        if (kind(v.name) != IDENT || is_one_of(v.name, statement_words) || !strchr("=;,[({", kind(i)) ||
            kind(i) == END || (kind(from) == '(' && !more))
            return more ? refuse(p, i, "it has a declaration of an unknown form") : false;
        for (; kind(i) == '['; i = i->match + 1, v.dimensions++) {
            v.is_array = true;
            if (i + 1 == i->match && !v.is_memory)
                return refuse(p, i, "it has an array without a size");
        }
        v.init = strchr("=({", kind(i)) ? i : NULL;
        if (!v.init && kind(i) != ',' && kind(i) != ';')
            return refuse(p, i, "it has a declaration of an unknown form");
        bool angle = false, comma = false;
        const Token *semicolon = statement_end(i);
        for (Token *t = i; t < semicolon; t = skip(t)) {
            angle |= kind(t) == '<' && run(t, 1) == 1 && kind(t - 1) == IDENT;
            comma |= angle && kind(t) == ',';
        }
        if (comma) // the , may separate template arguments or variables
            return refuse(p, i, "it has a declaration of an unknown form");
        while (i < last && kind(i) != ',' && kind(i) != ';')
            i = skip(i);
        v.after = i;
        if (!push(p, v))
            return false;
        if (kind(i) != ',')
            return true;
        i++;
    }
}

// The variable that the word means: the last one of this name in whose scope it stands
Variable *find_variable(LoopPlan *p, const Token *name) {
    for (Variable *v = p->variables + p->count; v-- > p->variables;)
        if (same_word(v->name, name) && name < v->end && (v->parameter || name >= v->name))
            return v;
    return NULL;
}

// The same for a token that may be another one, or the name of a member
Variable *variable_at(LoopPlan *p, const Token *i) {
    return kind(i) == IDENT && !is_member(i) ? find_variable(p, i) : NULL;
}

// ---- what happens to a variable ----

static bool is_operand_end(const Token *i) {
    return kind(i) == NUMBER || kind(i) == CHARACTER || kind(i) == STRING ||
           (ends_expression(i) && kind(i) != '>');
}

// True if the parentheses may be a cast: (float *), (T).
static bool may_be_cast(const Token *close) {
    if (kind(close) != ')' || kind(close->match - 1) == IDENT)
        return false;
    for (const Token *i = close->match + 1; i < close; i++)
        if (kind(i) != IDENT && kind(i) != SCOPE && kind(i) != '*' && kind(i) != '<' && kind(i) != '>')
            return false;
    return true;
}

static bool is_prefix(const Token *i) { // of an operator that may also be binary: * & at token i
    return !is_operand_end(i - 1) || may_be_cast(i - 1);
}

bool assigns(const Token *i) { // at an operator after an operand: = += <<= ++
    if (kind(i) == '=')
        return true;
    if (kind(i) == OPERATOR)
        return i->length == 3 && i->text[2] == '=' && i->text[0] == i->text[1];
    if ((kind(i) == '+' || kind(i) == '-') && run(i, 1) >= 2)
        return true;
    return kind(i) && strchr("+-*/%&|^", kind(i)) && kind(i + 1) == '=' && end_of(i) == i[1].text;
}

// True if a reference may be bound to the variable at token i: int &r = c ? x : y; Pair p{x, y}; f(c ? x : y)
static bool may_be_bound(LoopPlan *p, const Token *i) {
    bool conditional = false;
    for (const Token *t = i - 1; kind(t) != END && !strchr(";}[", kind(t)); t = skip_back(t)) {
        const Token *name = t - 1;
        const Variable *v = kind(name) == IDENT ? find_variable(p, name) : NULL;
        const bool declared = v && v->name == name;
        conditional |= kind(t) == '?';
        if (kind(t) == '=')
            return declared ? v->is_reference || is_class(v) : kind(name) == IDENT && kind(name - 1) == '&';
        if (kind(t) != '(' && kind(t) != '{')
            continue;
        if (declared ? v->is_reference || is_class(v) : kind(name) == IDENT && has_functions(name))
            return true;
        if (kind(name) == IDENT || kind(name) == '>')
            return conditional && kind(t) == '(' && may_take_reference(p->u, name, -1);
    }
    return false;
}

// What an occurrence of a variable does
Use use_of(LoopPlan *p, const Variable *v, Token *i) {
    const Token *before = i - 1;
    Token *after = i + 1;
    int dimensions = v->dimensions; // more than 0: an array, which becomes a pointer
    while (kind(after) == '.' || kind(after) == '[' || kind(after) == ARROW) {
        if ((kind(after) != '.' && v->is_pointer && !v->is_array) || kind(after) == ARROW)
            return READ; // what it points to
        dimensions = kind(after) == '[' ? dimensions - 1 : dimensions_of(after + 1);
        after = kind(after) == '.' ? after + 2 : after->match + 1;
        const Token *call = kind(after) == '<' ? skip_angles(after, NULL) : after;
        if (call && kind(call) == '(') // calls a member function
            return v->parameter && v->is_class && is_constant_member(p->u, after - 1) ? READ : EXPOSURE;
    }
    if ((kind(before) == '(' && kind(before - 1) == STRING) ||
        (kind(before) == ')' && kind(before - 1) == '&'))
        return EXPOSURE; // an operand of asm, or (int &)x
    while (kind(before) == '(' && kind(after) == ')' && kind(before - 1) != IDENT &&
           kind(before - 1) != '>') {
        before--; // (x)
        after++;
    }
    if (assigns(after))
        return kind(i + 1) == '.' || kind(i + 1) == '[' ? EXPOSURE : ASSIGNMENT;
    if ((kind(before) == '+' || kind(before) == '-') && run(before, -1) >= 2)
        return ASSIGNMENT;
    if (kind(before) == '&' && run(before, -1) == 1 && is_prefix(before))
        return EXPOSURE;
    if (dimensions > 0)
        return EXPOSURE;
    if (kind(before) == '=' && (kind(before - 1) == ']' || kind(before - 2) == '&')) // T &r = x;
        return kind(before - 1) == ']' && !is_one_of(before[-1].match - 1, " auto ") &&
                       kind(before[-1].match - 1) != '&'
                   ? READ
                   : EXPOSURE;
    if (kind(before) == '{' && kind(before - 1) == IDENT)
        return EXPOSURE;
    if (kind(before) == ':' && kind(after) == ')' && is(after->match - 1, "for"))
        return EXPOSURE;
    if (may_be_bound(p, i))
        return EXPOSURE;
    if ((kind(before) == '(' || kind(before) == ',') && (kind(after) == ')' || kind(after) == ',')) {
        const Token *open = before;
        while (kind(open) && !strchr("({;[", kind(open)))
            open = skip_back(open);
        const Token *object = open - 1; // Swap()(x, y), Swap{}(x, y)
        if (kind(open) == '(' && (kind(object) == ')' || kind(object) == '}' || kind(object) == ']') &&
            !may_be_cast(object) && ends_expression(object->match - 1))
            return EXPOSURE;
        int number = 0; // of the argument
        for (Token *t = next_comma((Token *)open + 1, i); t < i; t = next_comma(t + 1, i))
            number++;
        if (kind(open) == '(' && (kind(open - 1) == IDENT || kind(open - 1) == '>') &&
            may_take_reference(p->u, open - 1, number))
            return EXPOSURE;
    }
    return READ;
}

// ---- constants ----

// The last name of A::B<3>::x; with `limit`, of what ends before it
static Token *last_name(Token *i, const Token *limit) {
    for (;;) {
        Token *next = kind(i + 1) == '<' && run(i + 1, 1) == 1 ? skip_angles(i + 1, limit) : i + 1;
        if (!next || kind(next) != SCOPE || kind(next + 1) != IDENT)
            return i;
        i = next + 1;
    }
}

// True for a constant outside the kernel: a template parameter, an enumerator, or const in a namespace or
// class.
static bool is_constant(LoopPlan *p, const Token *name) {
    const Token *i = p->kernel.begin, *end = is(i, "template") ? skip_angles((Token *)i + 1, NULL) : NULL;
    for (; end && i < end && !is_member(name); i++)
        if (same_word(i, name) && !is_member(i))
            return kind(i - 1) != '&';
    // A copy of the expression may stand below a variable or enumerator of the same name.
    for (const Variable *v = p->variables; v < p->variables + p->count; v++)
        if (same_word(v->name, name) && !is_member(name))
            return false;
    for (i = name + 1; i < p->kernel.body->match; i++)
        if (same_word(i, name) && is_enumerator(i, i + 1))
            return false;
    return is_declared_constant(p->kernel.body, name, name) ||
           is_declared_constant(p->u->begin, p->u->end, name);
}

// True for a function that computes its result from its arguments alone: { return (a + b - 1) / b; }
static bool is_formula(LoopPlan *p, const Token *name) {
    static int depth;
    Token *f = free_function(p->u, name), *body = f ? find_body(f + 1) : NULL;
    if (!body || depth > 3 || !is(body + 1, "return") || statement_end(body + 1) + 1 != body->match)
        return false;
    LoopPlan probe = {.u = p->u, .kernel = {statement_begin(f), f, f + 1, body, f}};
    add_parameters(&probe);
    bool plain = !probe.why;
    for (Variable *v = probe.variables; v < probe.variables + probe.count; v++) {
        v->uniform = true;
        plain &= !v->is_pointer && !v->is_memory && !v->is_class;
    }
    depth++;
    plain = plain && is_uniform(&probe, body + 2, body->match - 1);
    depth--;
    return plain;
}

// ---- expressions ----

// The value of an integer literal; -1 for a floating-point literal such as 32.0f
static long whole_number(const Token *number) {
    char *end;
    const long value = strtol(number->text, &end, 0);
    return end + strspn(end, "uUlL") >= end_of(number) ? value : -1;
}

// Returns whether the expression is certainly a multiple of blockDim.x.
static bool is_width(LoopPlan *p, Token *i, Token *end) {
    for (const Token *t = i; t < end; t++)
        if (kind(t) == NUMBER ? whole_number(t) < 0 : kind(t) != IDENT && !strchr(".*()", kind(t)))
            return false;
    return ((is(i, "blockDim") && is(i + 2, "x") && kind(i + 3) == '*') ||
            (is(end - 3, "blockDim") && is(end - 1, "x") && kind(end - 4) == '*')) &&
           is_uniform(p, i, end);
}

// True if the expression is threadIdx.x, or that and a multiple of blockDim.x: the index of the lane and a
// multiple of 32 if the rows of the block have whole warps.
static bool is_rank(LoopPlan *p, Token *i, Token *end) {
    static const char wide[] = " int unsigned long size_t uint int32_t uint32_t int64_t uint64_t ";
    if (kind(i) == '(' && is_one_of(i + 1, wide) && i->match == i + 2 && i + 3 < end)
        i += 3;
    if (kind(i) == '(' && i->match + 1 == end)
        return is_rank(p, i + 1, i->match);
    if (end == i + 3 && is(i, "threadIdx"))
        return is(i + 2, "x");
    const Variable *v = end == i + 1 && kind(i) == IDENT ? find_variable(p, i) : NULL;
    if (v)
        return !v->modified && v->init && kind(v->init) == '=' && is_one_of(v->specifiers_end - 1, wide) &&
               !v->is_pointer && !v->is_array && is_rank(p, v->init + 1, v->after);
    for (Token *t = i; t < end; t = skip(t))
        if (kind(t) == '+')
            return (is_rank(p, i, t) && is_width(p, t + 1, end)) ||
                   (is_width(p, i, t) && is_rank(p, t + 1, end));
    return false;
}

// The end of an expression that begins here and is the same in all lanes of a warp, though not in the block:
// threadIdx.x / 32, threadIdx.x < 64, a vote. Null if there is none.
static Token *same_in_warp(LoopPlan *p, Token *i) {
    if (is(i, "threadIdx") && kind(i + 1) == '.' && is_one_of(i + 2, " y z "))
        return i + 3;
    if (is_lanes(i) && is(i + 2, "get") && i[3].match == i + 7)
        return i + 8;
    Token *end = kind(i) == '(' ? i->match + 1 : is(i, "threadIdx") ? i + 3 : i + 1, *number = end + 1;
    const int before = kind(i - 1);
    const bool begins = is(i - 1, "return") || (before < IDENT && strchr("=(,;?:&|", before)),
               right = kind(end) == '>' && run(end, 1) == 2,
               less = (kind(end) == '<' && run(end, 1) == 1) ||
                      (kind(end) == OPERATOR && end->text[0] == '>' && end->length == 2);
    if ((kind(end) != '/' && !right && !less) || !is_rank(p, i, end))
        return NULL;
    number += right;
    const long value = is(number, "warpSize") ? 32 : kind(number) == NUMBER ? whole_number(number) : 0;
    const bool binds = kind(number + 1) < IDENT && kind(number + 1) && strchr("+-*/%", kind(number + 1));
    if (kind(end) == '/' ? value <= 0 || value % 32 || !(begins || before == '+')
                         : !begins || binds || (right ? value < 5 : value % 32 || !value))
        return NULL;
    return number + 1;
}

// True if all lanes of a warp have the same value of a variable whose initial value depends on the thread's
// index. Each variable is examined once, because a chain of them may have very many paths.
static bool is_same_in_warp(LoopPlan *p, Variable *v) {
    if (!v->in_warp)
        v->in_warp = is_uniform(p, v->init + 1, v->after) ? SAME : DIFFERENT;
    return v->in_warp == SAME;
}

// True if the expression has the same value in all threads, or, with `threads`, depends on nothing but that
// and the thread's index. Otherwise sets `culprit`.
bool is_same(LoopPlan *p, Token *first, const Token *end, bool threads, const Token **culprit) {
    static const char plain_words[] = " true false warpSize static_cast const sizeof ";
    for (Token *i = first; i < end; i++) {
        *culprit = i;
        const Token *same = p->warps && !threads ? same_in_warp(p, i) : NULL;
        if (same && same <= end) {
            i += same - i - 1;
            continue;
        }
        if (kind(i) == NUMBER || kind(i) == CHARACTER || kind(i) == OPERATOR)
            continue;
        if (kind(i) == '*' || kind(i) == '&') {
            if ((i + 1 < end && kind(i + 1) == kind(i)) || (kind(i) == '&' && kind(i - 1) == '&'))
                continue; // &&
            if (i > first ? !is_operand_end(i - 1) : true)
                return false;
            if (may_be_cast(i - 1) && !(i - 3 >= first && kind(i - 3) == '(' && find_variable(p, i - 2)))
                return false; // (int)*p
            continue;
        }
        if (kind(i) != IDENT && kind(i) != SCOPE) {
            if (kind(i) == STRING || !strchr("()+-/%|^!~<>=?:,;", kind(i)) || kind(i) == END)
                return false;
            if ((kind(i) == '<' || kind(i) == '>') && threads && run(i, 1) == 2 && kind(i + 2) != NUMBER)
                return false; // in a copy of the expression the shift would be another one
            continue;
        }
        const int next = i + 1 < end ? kind(i + 1) : ';';
        Token *const last = last_name(kind(i) == SCOPE ? i + 1 : i, end);
        if (is_one_of(i, " blockIdx blockDim gridDim threadIdx ") && next == '.') {
            if (is_thread_index(p, i) && !threads)
                return false;
            i += 2;
        } else if (is_one_of(i, " sizeof alignof ") && next == '(' && !threads) {
            i = i[1].match;
        } else if (last > i || (next == '(' && !find_variable(p, i) && is_formula(p, i))) {
            const int after = last + 1 < end ? kind(last + 1) : ';';
            if (is_member(i) ||
                (after == '(' ? !is_formula(p, last)
                              : strchr("[.{", after) || after == ARROW || !is_constant(p, last)))
                return false;
            i = last;
        } else if (is_one_of(i, number_words) || is_one_of(i, integer_words) || is_one_of(i, plain_words) ||
                   (is_one_of(i, " min max ") && next == '(')) {
            continue;
        } else {
            if (next == '[' || next == ARROW || next == '(' || next == SCOPE || next == '{' || is_member(i))
                return false;
            Variable *v = find_variable(p, i);
            const bool warp = v && p->warps && v->by_index && is_same_in_warp(p, v);
            if (v ? v->is_memory || v->is_reference || !(v->uniform || warp || (threads && v->by_index)) ||
                        (threads && v->modified) || (v->is_class && next != '.')
                  : !is_constant(p, i))
                return false;
            if (next == '.') {
                i += 2;
                if (!v || (i + 1 < end && kind(i + 1) && strchr("[(.", kind(i + 1))) || kind(i + 1) == ARROW)
                    return false;
            }
        }
    }
    return true;
}

bool is_uniform(LoopPlan *p, Token *first, const Token *end) {
    const Token *culprit;
    return is_same(p, first, end, false, &culprit);
}

// True if the tokens are threadIdx.x, or a variable that is, and loops run along it.
bool is_thread_x(LoopPlan *p, Token *first, const Token *end) {
    if (p->how.along)
        return false;
    if (kind(first) == '(' && is_one_of(first + 1, " int unsigned ") && kind(first + 2) == ')')
        first += 3;
    if (end == first + 3)
        return is(first, "threadIdx") && kind(first + 1) == '.' && is(first + 2, "x");
    const Variable *v = end == first + 1 && kind(first) == IDENT ? find_variable(p, first) : NULL;
    return v && v->by_index && kind(v->init) == '=' && v->is_integer && !v->is_pointer &&
           !is_one_of(v->specifiers_end - 1, " bool char uchar int8_t uint8_t ") &&
           is_thread_x(p, v->init + 1, v->after);
}

// True if the tokens are the index of the lane in its warp, such as threadIdx.x % 32, or a variable that is.
bool is_lane(LoopPlan *p, Token *first, Token *end) {
    if (kind(first) == '(' && first->match + 1 == end)
        return is_lane(p, first + 1, first->match);
    const Variable *v = end == first + 1 && kind(first) == IDENT ? find_variable(p, first) : NULL;
    if (v)
        return v->by_index && kind(v->init) == '=' && is_lane(p, v->init + 1, v->after);
    return kind(end - 1) == NUMBER && kind(end - 3) != '&' && is_rank(p, first, end - 2) &&
           whole_number(end - 1) == (kind(end - 2) == '%'   ? 32
                                     : kind(end - 2) == '&' ? 31
                                                            : 0);
}

// ---- the variables that are the same in all threads ----

// True for a statement, other than a branch or loop, that does the same in all threads.
bool is_uniform_statement(LoopPlan *p, const Statement *s) {
    return kind(s->first) != '{' && !is_one_of(s->first, statement_words) && is_uniform(p, s->first, s->last);
}

// True if token i is where a uniform variable may be assigned to: in such a statement, or in the header of a
// loop or branch, which check_conditions() is about
static bool assigned_uniformly(LoopPlan *p, const Variable *v, const Token *i) {
    bool in_header = false;
    for (const Statement *s = p->statements; s < p->end; s++) {
        if (is_guard(s) && v->name < s->first && s->first <= i && i <= s->last)
            return false; // only some threads execute it
        if (s->kind != CONTROL && s->first <= i && i <= s->last)
            return s->kind != OUTSIDE_DECLARATION && !s->is_declaration && is_uniform_statement(p, s);
        in_header |= s->header && s->header < i && i < s->header->match;
    }
    return in_header;
}

static bool is_still_uniform(LoopPlan *p, const Variable *v) {
    Use use;
    if (v->init && !is_uniform(p, v->init + 1, kind(v->init) == '=' ? v->after : v->init->match))
        return false;
    if (v->init && kind(v->init) != '=' && v->init->match + 1 != v->after)
        return false;
    for (Token *i = v->after ? v->after : p->kernel.body; i < v->end; i++)
        if (same_word(i, v->name) && !is_member(i) && find_variable(p, i) == v &&
            ((use = use_of(p, v, i)) == EXPOSURE || (use == ASSIGNMENT && !assigned_uniformly(p, v, i))))
            return false;
    return true;
}

// True if the expression may convert a floating-point number to an integer: copies of it would not be
// translated.
bool converts(LoopPlan *p, Token *i, const Token *end) {
    for (; i < end; i++) {
        const bool cast = kind(i) == '(' && i->match == i + 2 && is_one_of(i + 1, integer_words);
        const Token *of = i + 3;
        const Variable *v = cast ? variable_at(p, of) : NULL;
        const bool whole =
            v ? v->is_integer || v->by_index || (v->parameter && is_one_of(v->name - 1, integer_words))
            : kind(of) == NUMBER ? whole_number(of) >= 0
                                 : is_one_of(of, " threadIdx blockIdx blockDim gridDim ");
        if (is(i, "static_cast") || (is_one_of(i, integer_words) && kind(i + 1) == '(') || (cast && !whole))
            return true;
    }
    return false;
}

// True if the expression consists of names, numbers and these operators, and may be copied to another place,
// where all threads have the same value of it. Nothing of it is translated.
static bool is_limit(LoopPlan *p, Token *i, const Token *end, const char *operators) {
    const Token *culprit;
    bool same = is_uniform(p, i, end) && is_same(p, i, end, true, &culprit);
    for (; i < end && same; i++)
        same = kind(i) == IDENT ? !is_one_of(i, number_words) && !is_one_of(i, integer_words)
                                : kind(i) == NUMBER || strchr(operators, kind(i));
    return same;
}

// for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x): True if the variable differs
// by 1 between neighbouring threads, and all threads add the same whole number to it.
bool counts_evenly(LoopPlan *p, const Statement *loop, const Variable *v) {
    Token *test = loop->other->first, *end = loop->first[1].match, *step = statement_end(test) + 1;
    const Token *culprit;
    const bool warps = p->warps, less = kind(test + 1) == OPERATOR
                                            ? test[1].length == 2 && test[1].text[0] == '<'
                                            : kind(test + 1) == '<' && run(test + 1, 1) == 1;
    p->warps = false;
    bool even = v->from == v->name && v->from == v->specifiers_end && v->after == loop->inside->last &&
                v->is_integer && is_rank(p, v->init + 1, v->after) &&
                is_same(p, v->init + 1, v->after, true, &culprit) && same_word(test, v->name) && less &&
                is_limit(p, test + 2, step - 1, ".()+-*/%") && same_word(step, v->name) &&
                kind(step + 1) == '+' && kind(step + 2) == '=' && is_limit(p, step + 3, end, ".+*");
    p->warps = warps;
    for (const Token *i = step + 3; i < end && even; i++) { // a whole number
        const Variable *w = variable_at(p, i);
        even = kind(i) == IDENT ? (w ? w->is_integer && !w->is_pointer
                                     : is_member(i) || is_one_of(i, " blockDim gridDim "))
                                : kind(i) != NUMBER || whole_number(i) >= 0;
    }
    for (Token *i = end; i < v->end && even; i++)
        even = variable_at(p, i) != v || use_of(p, v, i) == READ;
    return even;
}

// True for a reference to an element of memory, T &r = p[i]; with `threads`, if that depends on nothing but
// the thread's index, so that it may be declared again.
bool is_element(LoopPlan *p, const Variable *v, bool threads) {
    Token *i = v->init + 1;
    const Token *culprit;
    const Variable *w = kind(v->init) == '=' && v->name - v->from == 1 ? variable_at(p, i) : NULL;
    if (!w || (v->is_const && !v->is_auto) ||
        !(w->is_array ? w->is_memory : w->is_pointer && !w->is_reference) ||
        (threads && !w->is_memory && (w->modified || !(w->uniform || w->by_index))))
        return false; // a constant reference of another type would be one to a temporary value
    int subscripts = w->is_array ? w->dimensions : 1;
    for (i++; kind(i) == '[' && subscripts > 0; i = i->match + 1, subscripts--)
        if (threads && !is_same(p, i + 1, i->match, true, &culprit))
            return false;
    return i == v->after && i > v->init + 2;
}

// True if the type of a variable with auto is a number, or several, or a pointer to these
static bool is_number(LoopPlan *p, const Variable *v) {
    for (const Token *i = v->init + 1; i < v->after; i++) {
        const Variable *w = variable_at(p, i);
        if (kind(i) == IDENT && !is_member(i) && !(w ? w->is_plain : is_plain(i)) &&
            !is_one_of(i, " blockIdx blockDim gridDim threadIdx "))
            return false;
    }
    return true;
}

// True if the type of a variable with auto, which may be a class, is certainly none with functions.
bool is_known(LoopPlan *p, const Variable *v) {
    bool known = kind(v->init) == '=' && kind(v->init + 1) != '{';
    for (const Token *i = v->init + 1; i < v->after && known; i++) {
        const Variable *w = variable_at(p, i);
        known = !(w && w->is_class) && !(kind(i) == IDENT && has_functions(i)) && !is_lanes(i);
    }
    for (const Token *i = v->from + 1; i < v->name; i++)
        known &= kind(i) != '*';
    return known;
}

// Determines `modified`, `is_exposed`, `uniform` and `by_index` of all variables.
void find_uniform(LoopPlan *p) {
    for (Variable *v = p->variables; v < p->variables + p->count; v++) {
        v->is_class |= is_class(v);
        v->is_plain = v->parameter ? v->is_plain : !v->is_auto && is_plain(v->specifiers_end - 1);
        if (!v->parameter && !v->is_pointer && !v->is_reference && dimensions_of(v->specifiers_end - 1)) {
            v->is_array = true; // the name of an array type
            v->dimensions += dimensions_of(v->specifiers_end - 1);
        }
        for (Token *i = v->parameter ? p->kernel.body : v->after; i < v->end; i++)
            if (same_word(i, v->name) && !is_member(i) && find_variable(p, i) == v) {
                const Use use = use_of(p, v, i);
                v->modified |= use != READ;
                v->is_exposed |= use == EXPOSURE;
            }
        v->uniform = !v->is_memory && !v->is_array && !v->is_reference && (v->parameter || !v->is_class);
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (Variable *v = p->variables; v < p->variables + p->count; v++)
            if (v->uniform && !is_still_uniform(p, v)) {
                v->uniform = false;
                changed = true;
            }
    }
    // in the order of the text, so that variables before v are known
    for (Variable *v = p->variables; v < p->variables + p->count; v++) {
        const Token *culprit;
        v->by_index = v->is_reference ? v->init && is_element(p, v, true)
                                      : !v->uniform && !v->modified && v->init && kind(v->init) == '=' &&
                                            !v->is_array && (v->is_integer || v->is_pointer || v->is_auto) &&
                                            is_same(p, v->init + 1, v->after, true, &culprit) &&
                                            !converts(p, v->init + 1, v->after);
        v->is_plain |= v->is_auto && is_number(p, v);
    }
}
