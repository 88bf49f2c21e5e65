// SPDX-License-Identifier: MIT
// Functions and variables of the device: __device__, __constant__ and __managed__
#include "translate.h"

// With -w, names that only device code of this file can use get internal linkage, unless declared `extern`:
// without -rdc=true, other files may have different functions and variables of the same names, as with nvcc.
static void make_internal(Unit *u, Token *name, const Declaration *d, const Scope *scope) {
    if (!u->how->whole_program || scope->kind != IN_NAMESPACE || kind(name - 1) == SCOPE || d->static_at ||
        d->is_inline || d->is_constexpr || d->is_template || d->is_linkage || is(name, "operator"))
        return;
    if (d->extern_at)
        append_filled(&u->extern_names, " $name ", "name", word_of(name));
    else if (!u->extern_names.data || !is_one_of(name, u->extern_names.data))
        insert_before(u, d->after_pointer ? scope->start : d->first_word, // a specialization cannot be static
                      d->is_specialization ? "inline " : "static __attribute__((unused)) ");
}

// __device__ int f(int x) { … }  ->  int f(int x) { … }
static void translate_function(Unit *u, const Declaration *d, const Scope *scope) {
    Token *name, *parameters = find_parameters(scope->start, &name), *body = find_body(parameters);
    bool for_host = false;
    for (const Token *i = scope->start; i < parameters; i++)
        for_host |= i->host;
    if (!for_host && d->first_word)
        make_internal(u, name, d, scope);
    if (!body)
        return;
    if (!for_host)
        u->device_end = body->match;
    u->asm_end = body->match;
    begin_device_code(u, scope->start, parameters, body);
    Text start = {0}, end = {0};
    if (scope->kind != IN_BLOCK && kind(name - 1) != SCOPE)
        declare_file_shared(u, parameters, body, &start, &end);
    step_parameters(parameters, &start, &end);
    if (start.length > 0) {
        insert_after(u, body, start.data);
        insert_before(u, body->match, end.data);
    }
}

// __device__ T x;  ->  __attribute__((section("cuda_device"))) T x;
//
// Variables are put into linker sections, in which the runtime finds them and swaps their values when the
// device changes. Const variables need a section of their own: a section is writable or not.
static void translate_variables(Unit *u, Declaration *d) {
    const char *space = d->is_managed ? "managed" : d->is_constant ? "constant" : "device";
    const char *attribute = fill("__attribute__((section(\"cuda_$space\")))", "space", space);
    const char *read_only = fill("__attribute__((section(\"cuda_$space_ro\")))", "space", space);
    const Token *semicolon = statement_end(d->end);
    typedef struct {
        Token *last;
        bool is_const;
    } One;
    One *variables = NULL;
    size_t count = 0, constants = 0;
    for (;;) {
        PUSH(variables, count, (One){d->end - 1, d->is_const});
        constants += d->is_const;
        Token *comma = next_comma(d->end, semicolon);
        if (kind(comma) != ',')
            break;
        parse_declarator(u, comma + 1, d, NULL);
        if (d->is_function)
            break;
    }
    if ((constants == 0 || constants == count) && !d->is_late)
        insert_before(u, d->first_word, constants ? read_only : attribute);
    else // one for each: const int a = 1, *b; (only a is const); struct {…} __device__ c; (not of the type)
        for (size_t n = 0; n < count; n++)
            insert_after(u, variables[n].last,
                         fill(" $attribute", "attribute", variables[n].is_const ? read_only : attribute));
}

void translate_device(Unit *u, Token *word, const Scope *scope) {
    Declaration d = {0};
    if (kind(word - 1) == ']' && ends_expression(word - 1) && !strchr(";,=", kind(word + 1))) {
        delete_tokens(u, word, word); // [] __device__ (int x) { … }
        if (kind(word + 1) == '(')
            begin_device_code(u, NULL, word + 1, find_body(word + 1));
        return;
    }
    if (scope->kind == IN_PARENTHESES)
        fail(word, "%s is not allowed here", word_of(word));
    parse_declarator(u, scope->start, &d, NULL);
    if (d.is_shared) { // __device__ __shared__ means the same as __shared__
        translate_shared(u, word, scope);
        return;
    }
    if (!word->done) // the word comes after the declarator
        delete_tokens(u, word, word);
    if (d.is_function && (d.is_constant || d.is_managed))
        fail(word, "only a variable can be __constant__ or __managed__");
    if (d.is_function && !d.is_typedef && !d.is_definition)
        translate_function(u, &d, scope);
    if (d.is_function || d.is_typedef)
        return;
    if (!d.first_word)
        fail_declaration(word);
    if (scope->kind == IN_CLASS && !d.static_at)
        fail(word, "a member variable in device memory must be static");
    if (scope->kind == IN_BLOCK && !d.static_at && !d.extern_at)
        fail(word, "a local variable in device memory must be static");
    make_internal(u, d.name, &d, scope);
    if (d.extern_at && !d.has_value)
        return; // this is only a declaration
    // For these the compiler ignores the section (templates) or reports a conflict (inline).
    if (d.is_inline || d.is_template || (d.is_constexpr && scope->kind == IN_CLASS)) {
        if (!d.is_const)
            fail(word, "an inline or template variable cannot have a value for each device");
        return;
    }
    translate_variables(u, &d);
}
