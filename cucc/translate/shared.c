// SPDX-License-Identifier: MIT
// Variables in shared memory: __shared__ T x[4]; and extern __shared__ T x[];
#include "translate.h"

// The namespaces of the current scope, such as "a/b/". Unnamed ones are left out.
static const char *current_namespaces(const Unit *u) {
    Text path = empty_text();
    for (int i = 1; i <= u->depth; i++) {
        const Token *open = u->scopes[i].open, *first = open;
        if (u->scopes[i].kind != IN_NAMESPACE)
            continue;
        while ((kind(first - 1) == IDENT || kind(first - 1) == SCOPE || kind(first - 1) == ')') &&
               !is(first - 1, "namespace"))
            first = kind(first - 1) == ')' ? first[-1].match : first - 1; // or its attributes
        for (; first < open && (is(first - 1, "namespace") || kind(first - 1) == SCOPE); first += 2) // a::b
            if (kind(first) == IDENT)
                append_filled(&path, "$name/", "name", word_of(first));
    }
    return path.data;
}

static bool is_visible(const FileShared *one, const char *namespaces) {
    return strncmp(namespaces, one->namespaces, strlen(one->namespaces)) == 0;
}

static bool stands_in(const Token *word, const Token *i, const Token *end) {
    for (; i < end; i++)
        if (same_word(i, word) && !is_member(i))
            return true;
    return false;
}

// If token i is the [ of a lambda, finds the { of its body; otherwise null. `parameters`: its ( or null
static Token *lambda_body(Token *i, Token **parameters) {
    *parameters = NULL;
    if (kind(i) != '[' || kind(i + 1) == '[' || kind(i - 1) == '[' || is(i - 1, "delete") ||
        (ends_expression(i - 1) && kind(i - 1) != '>'))
        return NULL;
    i = i->match + 1;
    if (kind(i) == '<' && !(i = skip_angles(i, NULL)))
        return NULL;
    while (kind(i) != '{') {
        if (kind(i) == END || kind(i) == ';' || kind(i) == ',' || closes(i))
            return NULL;
        if (kind(i) == '(' && !*parameters)
            *parameters = i;
        i = is(i, "requires") ? skip_requires(i) : skip(i);
    }
    return i;
}

// True if the lambda's list of captures, from this [ on, names the variable: [x], [&x] or [x = 1].
static bool is_captured(const Token *name, Token *open) {
    for (Token *i = open + 1; i < open->match; i = skip(i))
        if (same_word(i, name) && strchr("[,&", kind(i - 1)) && strchr("],=", kind(i + 1)))
            return true;
    return false;
}

// Adds the variable to the captures of a lambda, unless a variable of this name of an outer block was added.
static void capture(Unit *u, Token *lambda, Token *name) {
    bool first = true;
    for (size_t n = 0; n < u->capture_count; n++) {
        if (u->captures[n].lambda == lambda && same_word(u->captures[n].name, name))
            return;
        first &= u->captures[n].lambda != lambda;
    }
    PUSH(u->captures, u->capture_count, (Capture){lambda, name});
    const int next = kind(lambda + 1);
    insert_after(u, next == '=' ? lambda + 1 : lambda,
                 fill(next == ']' && first         ? "&$x"
                      : next == '=' || next == ']' ? ", &$x"
                                                   : "&$x, ",
                      "x", word_of(name)));
}

// A shared variable has static storage duration in CUDA, so a lambda uses it without capturing it. Here it is
// a local reference: lambdas from token `first` to `end` that use it get it in their list of captures, [&x]
// or [=, &x]. decltype(x), which would be the type of the reference, becomes the type of the variable.
static void use_as_static(Unit *u, Token *name, Token *first, const Token *end) {
    for (Token *i = first, *parameters; i < end; i++) {
        if (is(i, "decltype") && kind(i + 1) == '(' && same_word(i + 2, name) && kind(i + 3) == ')' &&
            !i->done) {
            i->done = true;
            insert_before(u, i, fill("cu_t_$x", "x", word_of(name)));
            delete_tokens(u, i, i + 3);
        }
        const Token *body = lambda_body(i, &parameters);
        if (body && stands_in(name, body, body->match) &&
            !(parameters && stands_in(name, parameters, parameters->match)) &&
            !(kind(i + 1) == '&' && (kind(i + 2) == ',' || kind(i + 2) == ']')) && !is_captured(name, i))
            capture(u, i, name);
    }
}

// True if a class around the function may have a member of this name, perhaps of a base class.
static bool may_be_member(const Unit *u, const Token *name) {
    for (int depth = u->depth; depth > 0 && u->scopes[depth].kind != IN_NAMESPACE; depth--) {
        Token *open = u->scopes[depth].open;
        if (u->scopes[depth].kind != IN_CLASS)
            return true;
        for (const Token *i = u->scopes[depth - 1].start; i < open; i++)
            if (kind(i) == ':')
                return true;
        for (Token *i = open + 1; i < open->match; i = skip(i))
            if (same_word(i, name))
                return true;
    }
    return false;
}

// Translates x, or x<T> of a variable template, to a call of the function that returns the variable: cu_s_x()
// or cu_s_x<T>(). `first` is where its qualified name begins.
static void call_instance(Unit *u, Token *first, Token *i, const FileShared *one) {
    Token *last = one->is_template && kind(i + 1) == '<' ? skip_template_arguments(i + 1) - 1 : i;
    if (one->is_volatile)
        insert_before(u, first, "::cuda_cpu::in_step(");
    insert_before(u, i, "cu_s_");
    insert_after(u, last, one->is_volatile ? "())" : "()");
}

// Translates x<T>, if x is a __shared__ variable template, to a call of the function that returns it.
void translate_instance(Unit *u, Token *i) {
    const char *here = current_namespaces(u);
    for (size_t n = u->file_shared_count; n-- > 0;) {
        const FileShared *one = &u->file_shared[n];
        if (one->is_template && same_word(one->name, i) && is_visible(one, here) && !is_member(i)) {
            call_instance(u, i, i, one);
            return;
        }
    }
}

// Translates x in ns::x or ::x, if it is a __shared__ variable outside functions, to a call of the function
// that returns it. The function's own name finds no variable of an outer scope that the function hides.
void translate_qualified(Unit *u, Token *i) {
    Token *first = i - 1; // the first :: or name
    while (kind(first) == SCOPE && kind(first - 1) == IDENT && !is_one_of(first - 1, statement_words))
        first -= kind(first - 2) == SCOPE ? 2 : 1;
    if (is(first - 1, "using") ||
        (kind(first) == SCOPE && (kind(first - 1) == '>' || kind(first - 1) == ')')))
        return;
    Text path = empty_text();
    for (const Token *t = first; t < i - 1; t++)
        if (kind(t) == IDENT)
            append_filled(&path, "$name/", "name", word_of(t));
    const char *here = current_namespaces(u);
    for (size_t n = 0; n < u->file_shared_count; n++) {
        const FileShared *one = &u->file_shared[n];
        const size_t length = strlen(one->namespaces);
        if (!same_word(one->name, i) || length < path.length ||
            strcmp(one->namespaces + length - path.length, path.data) != 0 ||
            (kind(first) == SCOPE ? length > path.length
                                  : strncmp(here, one->namespaces, length - path.length) != 0))
            continue;
        call_instance(u, first, i, one);
        return;
    }
}

// void f() { … }  ->  void f() { auto &x = cu_s_x(); { … } }
//
// For a function of namespace or class scope: declares the __shared__ variables outside functions that it
// uses, after its {, and opens an inner block, in which the same name may be declared, to be closed before
// its }.
void declare_file_shared(Unit *u, Token *parameters, Token *body, Text *start, Text *end) {
    const char *here = current_namespaces(u);
    const size_t length = start->length;
    for (size_t n = 0; n < u->file_shared_count; n++) {
        const FileShared *one = &u->file_shared[n];
        bool hidden = false; // hidden by a variable of the same name in an inner namespace
        for (size_t m = 0; m < u->file_shared_count; m++)
            hidden |= same_word(u->file_shared[m].name, one->name) && is_visible(&u->file_shared[m], here) &&
                      strlen(u->file_shared[m].namespaces) > strlen(one->namespaces);
        if (hidden || one->is_template || !is_visible(one, here) ||
            !stands_in(one->name, body, body->match) || stands_in(one->name, parameters, parameters->match) ||
            may_be_member(u, one->name))
            continue;
        append_filled(start,
                      one->is_volatile ? " auto &&$x = ::cuda_cpu::in_step(cu_s_$x());"
                                       : " auto &$x = cu_s_$x();",
                      "x", word_of(one->name));
        use_as_static(u, one->name, body, body->match);
    }
    if (start->length > length) {
        append_text(start, " {");
        append_text(end, "} ");
    }
}

// If `open` is the { of a switch, and a label comes after token `i` in it, returns the token `switch`. A jump
// to that label would skip the initialisation of a reference. Otherwise returns null.
static Token *switch_of(const Token *open, const Token *i) {
    Token *word = kind(open - 1) == ')' ? open[-1].match - 1 : NULL;
    if (!word || !is(word, "switch"))
        return NULL;
    while (i < open->match && !is_one_of(i, " case default "))
        i++;
    return i < open->match ? word : NULL;
}

// Where a variable in shared memory is declared; the first three are in a namespace
typedef enum { PLAIN, EXTERN_ARRAY, TEMPLATE, LOCAL, BEFORE_SWITCH } Place;

// What declares the variable x of type cu_t_x
static const char *declare_shared(const char *x, Place place, const char *alignment, bool is_extern,
                                  bool is_volatile, const char *tag) {
    const bool aligned = *alignment && !is_extern;
    const char *begin =
        aligned ? fill(" struct cu_a_$x {$alignment cu_t_$x v; };", "x", x, "alignment", alignment) : "";
    const char *value =
        fill(is_extern ? "::cuda_cpu::dynamic_shared<cu_t_$x>(\"$x\")"
             : aligned ? "::cuda_cpu::shared<cu_t_$x, cu_owner>($tag, \"$x\", alignof(cu_a_$x))"
                       : "::cuda_cpu::shared<cu_t_$x, cu_owner>($tag, \"$x\")",
             "x", x, "tag", tag);
    const char *form;
    if (place == TEMPLATE)
        form = " return $value; }";
    else if (place == EXTERN_ARRAY)
        form = " [[maybe_unused]] static cu_t_$x &cu_s_$x() { return $value; }"
               " [[maybe_unused]] static const ::cuda_cpu::dynamic_array<cu_t_$x> $x{};";
    else if (place == PLAIN)
        form = " [[maybe_unused]] static cu_t_$x &cu_s_$x() { return $value; }";
    else if (place == BEFORE_SWITCH && is_volatile)
        form = "if (cu_t_$x &cu_v_$x = $value; false) { } else "
               "if (auto &&$x = ::cuda_cpu::in_step(cu_v_$x); false) { } else ";
    else if (place == BEFORE_SWITCH)
        form = "if (cu_t_$x &$x = $value; false) { } else ";
    else if (is_volatile)
        form = " cu_t_$x &cu_v_$x = $value; auto &&$x = ::cuda_cpu::in_step(cu_v_$x);";
    else
        form = " cu_t_$x &$x = $value;";
    return fill("$begin$declaration", "begin", begin, "declaration", fill(form, "x", x, "value", value));
}

// __shared__ T x[4], *y;  ->  typedef T cu_t_x[4], *cu_t_y; cu_t_x &x = …; cu_t_y &y = …;
//
// A typedef accepts every form of declarator unchanged, also with dependent types. A template in a namespace
// is a function, so that it has the same parameters:
//
// template <class T> __shared__ T x;  ->  template <class T> static auto &cu_s_x() { typedef T cu_t_x; … }
//
// In front of a switch:
//
// switch (a) { __shared__ T x; case 1: … }
//     ->  if (typedef T cu_t_x; false) { } else if (cu_t_x &x = …; false) { } else switch (a) { case 1: … }
void translate_shared(Unit *u, Token *word, const Scope *scope) {
    static const char misplaced[] =
        "__shared__ is only for variables declared in a kernel or device function";
    Declaration d = {0};
    Text alignment = empty_text(), references = empty_text(), names = empty_text();
    append_text(&names, " ");
    Token *i = scope->start, *semicolon = statement_end(i);
    if (scope->kind == IN_PARENTHESES || scope->kind == IN_CLASS)
        fail(word, misplaced);
    bool is_volatile = false;
    for (const Token *t = i; t < semicolon; t++)
        is_volatile |= is(t, "volatile");
    Token *hoist = scope->kind == IN_BLOCK ? switch_of(scope->open, semicolon) : NULL;
    do {
        parse_declarator(u, i, &d, &alignment);
        if (d.is_typedef || d.is_linkage || d.is_constant || d.is_managed || d.is_specialization ||
            (d.is_template && (scope->kind != IN_NAMESPACE || kind(d.end) == ',')))
            fail(word, misplaced);
        if (d.is_function || d.has_value)
            fail(word, "a __shared__ variable cannot have an initial value");
        if (!d.is_shared || kind(d.name - 1) == SCOPE)
            fail_declaration(d.name);
        const char *x = word_of(d.name);
        if (!hoist)
            insert_before(u, d.name, "cu_t_");
        append_filled(&names, "$x ", "x", x);
        const bool inlined =
            strncmp(x, "cu_f", 4) == 0; // loops/inline.c: the same in all calls of a function
        const char *tag = inlined || word < u->numbered_end
                              ? format("::std::integral_constant<unsigned, %uu>()",
                                       inlined ? hash(x) : (unsigned)(d.name - u->body_begin))
                              : "[] {}";
        const Place place = hoist                                    ? BEFORE_SWITCH
                            : d.is_template                          ? TEMPLATE
                            : scope->kind != IN_NAMESPACE            ? LOCAL
                            : d.extern_at && kind(d.name + 1) == '[' ? EXTERN_ARRAY
                                                                     : PLAIN;
        append_text(&references, declare_shared(x, place, alignment.data, d.extern_at, is_volatile, tag));
        if (scope->kind == IN_BLOCK)
            use_as_static(u, d.name, semicolon, scope->open->match);
        if (scope->kind == IN_NAMESPACE)
            PUSH(u->file_shared, u->file_shared_count,
                 (FileShared){d.name, current_namespaces(u), is_volatile, d.is_template});
        i = d.end + 1;
    } while (kind(d.end) == ',');
    if (hoist) {
        if (alignment.length > 0)
            fail(word, "a __shared__ variable with an alignment must stand before the switch");
        Text type = {0};
        for (const Token *t = scope->start; t < semicolon; t++)
            if (!is_one_of(t, space_words) && t != d.extern_at && t != d.static_at)
                append_filled(&type, is_one_of(t, names.data) ? " cu_t_$word" : " $word", "word", word_of(t));
        insert_before(u, hoist,
                      fill("if (typedef$type; false) { } else $references", "type", type.data, "references",
                           references.data));
        delete_tokens(u, scope->start, semicolon - 1);
    } else {
        if (d.is_template)
            insert_after(u, skip_template_arguments(scope->start + 1) - 1,
                         fill(" [[maybe_unused]] static auto &cu_s_$x() {", "x", word_of(d.name)));
        insert_before(u, d.first_word, "typedef");
        insert_after(u, semicolon, references.data);
        if (d.extern_at)
            delete_tokens(u, d.extern_at, d.extern_at);
        if (d.static_at)
            delete_tokens(u, d.static_at, d.static_at);
    }
}
