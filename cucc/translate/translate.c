// SPDX-License-Identifier: MIT
// The translation of a file: the pass over all tokens, which keeps track of the scopes
#include "loops/loops.h"
#include <errno.h>

static Unit unit_of(const Translation *how, Text source, const char *name) {
    Unit unit = {.how = how, .source = source, .files = grow(NULL, 1, sizeof(File))};
    *unit.files = (File){.name = name, .length = strlen(name), .is_input = true};
    return unit;
}

static Unit new_unit(const Translation *how, Text source, const char *name) {
    Unit unit = unit_of(how, source, name);
    lex(&unit, NULL);
    pair_brackets(&unit);
    return unit;
}

static Text read_source(const char *name) {
    Text source = {0};
    FILE *in = strcmp(name, "-") ? fopen(name, "rb") : stdin;
    if (!in)
        fail_file(name);
    read_file(in, &source);
    if (source.length >= 1 << 30)
        errno = EFBIG;
    if (source.length >= 1 << 30 || ferror(in))
        fail_file(name);
    if (in != stdin)
        fclose(in);
    return source;
}

static Unit read_unit(const Translation *how, const char *name) {
    return new_unit(how, read_source(name), strcmp(name, "-") ? name : "<stdin>");
}

void print_file(const char *name) {
    Unit unit = unit_of(NULL, read_source(name), name);
    print_tokens(&unit);
}

// The kind of the scope that this { opens, in the statement or declaration that begins at `start`
ScopeKind brace_kind(Token *start, Token *open) {
    if (kind(open - 1) == STRING && is(open - 2, "extern"))
        return IN_NAMESPACE;
    for (Token *i = start; i < open; i++) {
        if (opens(i)) {
            i = i->match;
        } else if (is(i, "template") && kind(i + 1) == '<') {
            Token *end = skip_angles(i + 1, open);
            if (!end)
                return IN_BLOCK;
            i = end - 1;
        } else if (is(i, "namespace")) {
            return IN_NAMESPACE;
        } else if (is(i, "enum")) {
            return IN_BLOCK;
        } else if (is_one_of(i, " struct class union ")) {
            if (kind(i - 1) == ARROW) // auto f() -> struct S {
                return IN_BLOCK;
            return skip_class_head(i, open) == open ? IN_CLASS : IN_BLOCK;
        }
    }
    return IN_BLOCK;
}

static void translate(Unit *u) {
    int capacity = 0;
    u->body_end = u->begin;
    for (Token *i = u->begin; i < u->end; i++) {
        if (u->depth + 1 >= capacity) {
            capacity = 2 * capacity + 64;
            u->scopes = grow(u->scopes, (size_t)capacity, sizeof *u->scopes);
            u->scopes[0] = u->depth ? u->scopes[0] : (Scope){IN_NAMESPACE, u->begin, NULL};
        }
        Scope *s = &u->scopes[u->depth];
        if (u->kernel_count && kind(i) == IDENT && s->kind == IN_BLOCK && i > u->device_end &&
            (i == s->start || is(i - 1, "else") ||
             (kind(i - 1) == ')' && is_one_of(s->start, " if for while "))))
            refuse_plain_call(u, i);
        if (kind(i) == '{') {
            u->scopes[++u->depth] = (Scope){brace_kind(s->start, i), i + 1, i};
        } else if (opens(i)) {
            u->scopes[++u->depth] = (Scope){IN_PARENTHESES, i + 1, s->open};
        } else if (closes(i)) {
            u->depth--;
            if (kind(i) == '}' && s->kind != IN_CLASS) // variables may follow the definition of a class
                s[-1].start = i + 1;
        } else if (kind(i) == ';') {
            s->start = i + 1;
        } else if (kind(i) == ':') { // a label ends: a new statement begins
            if (is_one_of(s->start, " public private protected case default ") ||
                (s->kind == IN_BLOCK && i == s->start + 1 && !is_one_of(s->start, " struct class union ")))
                s->start = i + 1;
        } else if (kind(i) == '<' && run(i, 1) >= 3) {
            if (!is(i - 1, "operator")) { // operator<<<T> is not a launch
                translate_launch(u, i);
                i += 2;
            }
        } else if (kind(i) == '<' || kind(i) == '>' || kind(i) == OPERATOR) {
            if (u->body_begin < i && i < u->body_end)
                find_shift(i);
        } else if (u->body_begin < i && i < u->body_end && is_one_of(i, called_words)) {
            find_call(i);
        } else if (i < u->device_end && is(i, "clock") && kind(i + 1) == '(' && kind(i + 2) == ')' &&
                   !is_member(i)) {
            edit(u, i->text, i->length, "(clock_t)::clock64"); // not the C library's clock()
        } else if (i < u->asm_end && is_one_of(i, " asm __asm__ __asm ") && !i->done) {
            translate_asm(u, i);
        } else if (is(i, "__global__") && !i->done) {
            translate_kernel(u, i, s);
        } else if (is(i, "volatile") && i < u->device_end && s->kind == IN_BLOCK) {
            translate_volatile(u, i, s);
        } else if (is(i, "volatile") && i < u->device_end && s->kind == IN_PARENTHESES) {
            translate_volatile_cast(u, i, s);
        } else if (u->file_shared_count > 0 && i < u->device_end && kind(i) == IDENT &&
                   kind(i - 1) == SCOPE) {
            translate_qualified(u, i);
        } else if (u->file_shared_count > 0 && i < u->device_end && kind(i) == IDENT && kind(i + 1) == '<') {
            translate_instance(u, i);
        } else if (is(i, "__shared__") && !i->done) {
            translate_shared(u, i, s);
        } else if (is_one_of(i, space_words) && !i->done) {
            translate_device(u, i, s);
        }
    }
    translate_shifts(u);
}

void translate_file(const Translation *how) {
    Unit unit = read_unit(how, how->input);
    if (how->device) {
        Unit for_device = read_unit(how, how->device);
        unit = new_unit(how, merge(&unit, &for_device), for_device.files->name);
    }
    Text inlined;
    if (inline_functions(&unit, &inlined))
        unit = new_unit(how, inlined, unit.files->name);
    translate(&unit);
    if (!how->explain)
        write_output(&unit, how->output);
    else if (fflush(stdout) != 0)
        fail_file("standard output");
}
