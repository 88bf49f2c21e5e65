// SPDX-License-Identifier: MIT
// Kernels: __global__ void k(int x) { … }
#include "loops/loops.h"

// Deletes attributes such as __launch_bounds__(A, B). Returns A, or "0".
static const char *take_bounds(Unit *u, Token *first, const Token *end) {
    const char *bounds = NULL;
    for (Token *i = first; i < end; i++) {
        if (is_one_of(i, " __cluster_dims__ __block_size__ "))
            fail(i, "%s: clusters of blocks are not supported", word_of(i));
        if (!is_one_of(i, " __launch_bounds__ __maxnreg__ ") || kind(i + 1) != '(')
            continue;
        Token *close = i[1].match, *comma = next_comma(i + 2, close);
        if (is(i, "__launch_bounds__") && !bounds && comma > i + 2)
            bounds = spelling(i + 2, comma);
        delete_tokens(u, i, close);
        i = close;
    }
    return bounds ? bounds : "0";
}

// The types of cuda_cpu/loops.h
static const char *const form_names[] = {"Fibers", "OneBody", "PerWarp", "InRows", "AnyShape", "InChunks"};

// __global__ void k(int x) { … }
//     ->  void k(int x) { struct cu_owner; ::cuda_cpu::launch_body<cu_owner, ::cuda_cpu::Fibers,
//             decltype(x)>("k", 0, [](::cuda_cpu::Parameter<decltype(x)> x) -> void { … }, x); }
//
// The body becomes a lambda with parameters of the same names, which launch_body() calls for every thread.
// Everything else stays, so declarations, overloads and the address are those of a normal function.
void translate_kernel(Unit *u, Token *word, const Scope *scope) {
    delete_tokens(u, word, word);
    word->done = true;
    if (scope->kind == IN_PARENTHESES)
        fail(word, "__global__ is not allowed here");
    Token *name, *open = find_parameters(scope->start, &name), *close = open->match, *body = find_body(open);
    if (is(name, "operator"))
        fail(name, "an operator cannot be a kernel");
    for (const Token *i = scope->start; i < open; i++)
        if (i->host || is(i, "__device__"))
            fail(word, "illegal combination of memory qualifiers: __global__ with %s",
                 i->host ? "__host__" : word_of(i));
    if (scope->kind == IN_NAMESPACE)
        PUSH(u->kernels, u->kernel_count, name);
    const char *bounds = take_bounds(u, scope->start, body ? body : close + 1);
    if (!body)
        return;
    begin_device_code(u, NULL, open, body);
    Text types = empty_text(), parameters = empty_text(), values = empty_text();
    Text start = empty_text(), end = empty_text();
    const bool none = open + 1 == close || (is(open + 1, "void") && open + 2 == close);
    Token *i = open + 1;
    for (int count = 1; !none && i < close; i++, count++) {
        bool is_pack, may_be_unused;
        Token *place, *found = parameter_name(i, close, &place, &is_pack, &may_be_unused);
        const char *x = found ? word_of(found) : format("cu_p%d", count);
        if (!found) {
            if (kind(place) != ',' && kind(place) != '=' && kind(place) != '[' && kind(place) != ')')
                fail_declaration(place);
            if (is_pack && kind(place - 1) == '.' && kind(place - 4) == ',' && place == close)
                fail(place - 1, "a kernel cannot have a variable number of arguments");
            insert_before(u, place, fill(" $x", "x", x));
        }
        const char *dots = is_pack ? "..." : "";
        append_filled(&types, ", decltype($x)$dots", "x", x, "dots", dots);
        append_filled(&parameters, "$comma$unused::cuda_cpu::Parameter<decltype($x)> $dots$name", "comma",
                      count > 1 ? ", " : "", "unused", may_be_unused ? "[[maybe_unused]] " : "", "x", x,
                      "dots", dots, "name", found ? x : "");
        append_filled(&values, ", $x$dots", "x", x, "dots", dots);
        i = next_comma(found ? found : place, close); // skips the default argument
    }
    LoopPlan *plan = plan_loops(u, (Kernel){scope->start, name, open, body, scope->start});
    if (u->how->explain)
        explain_loops(plan);
    const KernelForm form = write_loops(plan, &start);
    if (form > ONE_BODY)
        u->numbered_end = body->match;
    if (scope->kind != IN_BLOCK && kind(name - 1) != SCOPE)
        declare_file_shared(u, open, body, &start, &end);
    step_parameters(open, &start, &end);
    const char *called = form_names[form];
    if (joined_columns(plan))
        called = format("Joined<::cuda_cpu::%s, %d>", called, joined_columns(plan));
    else if (innermost_axis(plan) != 'x')
        called = format("Along<::cuda_cpu::%s, '%c'>", called, innermost_axis(plan));
    const char *range = form == FIBERS ? "" : form == ONE_BODY ? "::cuda_cpu::ThreadRange cu_w" : "auto cu_w";
    insert_after(u, body,
                 fill(" struct cu_owner; ::cuda_cpu::launch_body<cu_owner, ::cuda_cpu::$kind$types>("
                      "\"$name\", $bounds, []($range$comma$parameters) -> void {$start",
                      "types", types.data, "name", word_of(name), "bounds", bounds, "parameters",
                      parameters.data, "start", start.data, "kind", called, "range", range, "comma",
                      *range && !none ? ", " : ""));
    insert_before(u, body->match, fill("$end}$values); ", "end", end.data, "values", values.data));
    for (const Token *t = body; t < body->match; t++)
        if (is_one_of(t, " __func__ __FUNCTION__ ")) // in the lambda it would be the name of its operator()
            edit(u, t->text, t->length, fill("\"$name\"", "name", word_of(name)));
    u->device_end = u->asm_end = body->match;
    u->kernel_body = body;
}
