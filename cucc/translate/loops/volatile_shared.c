// SPDX-License-Identifier: MIT
// Accesses of shared memory through `volatile`, by which the lanes of a warp exchange values in lockstep
#include "inline.h"

bool is_volatile(const Token *i) { // not in asm volatile (…)
    return is(i, "volatile") && !is_one_of(i - 1, " asm __asm__ __asm ");
}

// The pointer or array of this name; null if there is none. Scopes are not looked at: if several have the
// name, the result is one that is volatile, if there is one.
const SharedPointer *find_shared_pointer(const Rewrite *r, const Token *name) {
    const SharedPointer *found = NULL;
    for (size_t n = r->count; n-- > 0 && !is_member(name);)
        if (r->shared[n].name == name)
            return &r->shared[n];
        else if (same_word(r->shared[n].name, name) && (!found || r->shared[n].is_volatile))
            found = &r->shared[n];
    return found;
}

static bool is_shared_memory(const Rewrite *r, const Token *address) {
    const SharedPointer *known = find_shared_pointer(r, address + (kind(address) == '&'));
    return known && known->is_memory;
}

// Appends a variable to the list r->shared if it is a pointer, an array, volatile or __shared__. `from`: the
// first token of its declaration; `value`: the first token of its initial value, or null if it has none.
void add_shared_pointer(Rewrite *r, const Token *from, const Token *name, const Token *value) {
    SharedPointer one = {name, false, value && is_shared_memory(r, value)};
    const Token *before = name - 1;
    while (is_one_of(before, " const __restrict__ __restrict restrict "))
        before--;
    const bool points = kind(name + 1) == '[' || kind(before) == '*' || kind(before) == '&';
    for (; from < name; from++) {
        one.is_volatile |= is_volatile(from);
        one.is_memory |= is(from, "__shared__");
    }
    if (one.is_volatile && !one.is_memory)
        refuse_inlining(r, name, "it is not known whether what is volatile is shared memory");
    r->has_volatile |= one.is_volatile;
    if (points || one.is_volatile || one.is_memory)
        PUSH(r->shared, r->count, one);
}

// How the tokens access pointers and arrays that may be shared memory: READS, WRITES and VOLATILE
unsigned accesses(Rewrite *r, Token *i, const Token *last) {
    unsigned found = 0;
    for (; i <= last && r->has_volatile; i++) {
        const SharedPointer *known = find_shared_pointer(r, i);
        if (!known || known->name == i)
            continue;
        Token *after = i + 1, *open = enclosing(i), *f;
        while (kind(after) == '[' || kind(after) == '.' || kind(after) == ARROW)
            after = kind(after) == '[' ? after->match + 1 : after + 2;
        const bool address =
            after == i + 1 && kind(open) == '('; // f(x), *(x + 3): an address may be computed
        if (address && (f = only_function(r->u, open - 1)) && find_body(f + 1) &&
            has_operations(r, f + 1, find_body(f + 1)->match, true))
            continue; // an argument of a function that is expanded
        const bool argument = kind(open) == '(' && strchr(",)", kind(after)) &&
                              (kind(open - 1) == IDENT || kind(open - 1) == '>'),
                   changes = address || assigns(after) || kind(after) == '(' ||
                             (argument && may_take_reference(r->u, open - 1, -1)) ||
                             (kind(i - 1) == '&' && !ends_expression(i - 2)) || run(i - 1, -1) == 2,
                   writes = kind(after) == '=' && after > i + 1 && !(found & WRITES); // the first one
        found |= writes ? WRITES : changes ? READS | WRITES : READS;
        found |= known->is_volatile ? VOLATILE : 0;
    }
    return found;
}

// Writes cu_step(), a wait of the lanes of a warp for each other, between earlier accesses and the accesses
// `next` if one of them is a write and one is volatile.
void write_step(Rewrite *r, unsigned next) {
    if (next && r->accessed && ((next | r->accessed) & WRITES) && ((next | r->accessed) & VOLATILE)) {
        append_text(&r->out, "cu_step(); ");
        r->accessed = 0;
    }
    r->accessed |= next;
}
