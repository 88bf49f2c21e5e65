// SPDX-License-Identifier: MIT
// Index variables that grow by one from each thread of a row to the next: int i = blockIdx.x * blockDim.x +
// threadIdx.x. A compiler does not see that they do, because the unsigned sum might wrap around, and would
// not load x[i] of several threads at once. So the value of a row's first thread is computed first, and the
// others count from there (step() in cuda_cpu/loops.h).
#include "plan.h"

const char wide_words[] = " int unsigned long size_t uint int32_t uint32_t int64_t uint64_t ptrdiff_t ";

// `axis`: 'x', 'y' or 'z'
static bool differs_along(LoopPlan *p, Token *i, int axis) {
    if (is_thread_index(p, i))
        return loop_axis(p, i[2].text[0]) == axis;
    Variable *v = variable_at(p, i);
    return v && !v->uniform && growth_of_variable(p, v, axis) != CONSTANT;
}

static Growth growth_of_term(LoopPlan *p, Token *i, Token *end, int axis) {
    bool differs = false;
    for (Token *t = i; t < end; t++)
        differs |= differs_along(p, t, axis);
    if (!differs)
        return CONSTANT;
    while (kind(i) == '(' && i->match == i + 2 && is_one_of(i + 1, wide_words))
        i += 3; // a cast
    if (kind(i) == '(' && i->match + 1 == end)
        return growth_of(p, i + 1, i->match, axis);
    Variable *v = end == i + 1 ? variable_at(p, i) : NULL;
    return v ? growth_of_variable(p, v, axis) : is_thread_index(p, i) && end == i + 3 ? BY_ONE : UNKNOWN;
}

// How the value of an expression without side effects grows from a thread to the next one along an axis
Growth growth_of(LoopPlan *p, Token *i, Token *end, int axis) {
    Growth all = CONSTANT;
    Token *term = i;
    for (Token *t = i; t <= end; t = t < end ? skip(t) : t + 1) {
        const bool sum = t == end || ((kind(t) == '+' || kind(t) == '-') && t > term);
        if (!sum) {
            if (kind(t) != IDENT && kind(t) != NUMBER && !strchr(".+-*/%(", kind(t)))
                return growth_of_term(p, i, end, axis) == CONSTANT ? CONSTANT : UNKNOWN;
            continue;
        }
        const Growth one = growth_of_term(p, term, t, axis);
        if (one == UNKNOWN || (one == BY_ONE && (all == BY_ONE || (term > i && kind(term - 1) == '-'))))
            return UNKNOWN;
        all = one == BY_ONE ? one : all;
        term = t + 1;
    }
    return all;
}

// The same for a variable that depends on the thread's index only, or is the same in all threads
Growth growth_of_variable(LoopPlan *p, Variable *v, int axis) {
    Growth *const known = &v->growth[axis - 'x'];
    if (*known == NOT_FOUND) {
        *known = v->uniform ? CONSTANT : UNKNOWN;
        const bool wide = v->is_auto || (!v->parameter && is_one_of(v->specifiers_end - 1, wide_words));
        const Growth grows = v->by_index ? growth_of(p, v->init + 1, v->after, axis) : UNKNOWN;
        if (v->by_index && (grows == CONSTANT || (wide && !v->is_pointer)))
            *known = grows;
    }
    return *known;
}

// Lets the innermost loops of a kernel without barriers run along the axis for which the most indices of
// arrays grow by one: memory is read in its order, whichever axis the program has chosen.
void choose_axis(LoopPlan *p) {
    int votes[3] = {0}, best = 'x';
    for (Token *i = p->kernel.body; i < p->kernel.body->match && !p->barriers && !p->how.along; i++)
        for (int a = 'x'; a <= 'z' && kind(i) == '['; a++)
            votes[a - 'x'] += growth_of(p, i + 1, i->match, a) == BY_ONE;
    for (int a = 'y'; a <= 'z'; a++)
        best = votes[a - 'x'] > votes[best - 'x'] ? a : best;
    if (best == 'x' || has_strided_loop(p->kernel.body))
        return;
    p->how.along = best;
    p->again = refuse(p, p->kernel.body, "") || true;
}

// True if the region declares the variable, or computes it again
static bool computes(const Variable *v, int region) {
    return v->region == region || (v->keeping == COMPUTED_AGAIN && v->used[region]);
}

static bool is_of(const Variable *v, int first_region, int last_region) {
    bool found = false;
    for (int r = first_region; r <= last_region; r++)
        found |= computes(v, r);
    return found;
}

// True if the value can be computed before these regions: it depends on nothing that they assign to.
static bool is_known_before(LoopPlan *p, const Variable *v, int first_region, int last_region) {
    bool known = !v->modified && v->init && kind(v->init) == '=' && (v->by_index || v->uniform);
    for (Token *i = v->init; known && i < v->after; i++) {
        const Variable *w = variable_at(p, i);
        known =
            !w || !is_of(w, first_region, last_region) || is_known_before(p, w, first_region, last_region);
    }
    return known;
}

// Numbers the variables that grow by one in these regions. Returns how many there are.
int number_growing(LoopPlan *p, int first_region, int last_region) {
    int count = 0;
    for (Variable *v = p->variables; v < p->variables + p->count; v++) {
        const bool grows = v->by_index && is_of(v, first_region, last_region) &&
                           growth_of_variable(p, v, 'x') == BY_ONE &&
                           is_known_before(p, v, first_region, last_region);
        v->place = grows ? count++ : -1;
    }
    return count;
}

// True if they have the same values in all rows of a block.
bool grow_alike(LoopPlan *p) {
    bool alike = true;
    for (Variable *v = p->variables; v < p->variables + p->count; v++)
        alike &= v->place < 0 ||
                 growth_of_variable(p, v, 'y') + growth_of_variable(p, v, 'z') == CONSTANT + CONSTANT;
    return alike;
}

// Appends a lambda that computes these variables for one thread of a row.
void write_growing(LoopPlan *p, Text *text, int first_region, int last_region) {
    append_text(text, " const auto cu_a = [&](unsigned cu_x, long long *cu_v) {");
    declare_index(p, text, "cu_x", "");
    for (Variable *v = p->variables; v < p->variables + p->count; v++) {
        if (is_of(v, first_region, last_region) && is_known_before(p, v, first_region, last_region))
            append_filled(text, " [[maybe_unused]] $x $init;", "x", declarator(v), "init",
                          spelling(v->init, v->after));
        if (v->place >= 0)
            append_filled(text, " cu_v[$n] = (long long)$x;", "n", format("%d", v->place), "x",
                          word_of(v->name));
    }
    append_text(text, " };");
}

// The initial value of such a variable in a region: counted from the first thread's
const char *counted_value(const Variable *v) {
    return fill("::cuda_cpu::step<$type>(cu_f[$n], cu_i", "type",
                v->is_auto ? fill("decltype($x)", "x", spelling(v->init + 1, v->after))
                           : fill("decltype($x)", "x", word_of(v->name)),
                "n", format("%d", v->place));
}
