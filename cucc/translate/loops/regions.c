// SPDX-License-Identifier: MIT
// The regions of a kernel that is divided at its barriers, and which variables each uses
#include "plan.h"

static void number_regions(LoopPlan *p, Statement *s, int *region) {
    bool open = false;
    for (; s; s = s->next) {
        if (s->kind == IN_REGION) {
            *region += !open;
            open = !s->gives;
            s->region = *region;
            continue;
        }
        open = false;
        number_regions(p, s->inside, region);
        number_regions(p, s->other, region);
    }
}

static void use_variables(LoopPlan *p, const Token *first, const Token *last, int region) {
    for (const Token *i = first; i <= last; i++) {
        Variable *v = variable_at(p, i);
        if (v && region >= 0)
            v->used[region] = true;
        if (v && region != v->region && (v->parameter || i > v->name))
            v->crosses = true;
    }
}

// Variables that a region computes again need those of their initial values.
static bool use_again(LoopPlan *p) {
    bool changed = false;
    for (const Variable *v = p->variables; v < p->variables + p->count; v++) {
        const Token *sizes = v->init ? v->init : v->after;
        for (const Token *i = v->specifiers; i && v->crosses && i < sizes; i++) { // in T<w> v[w]
            Variable *w = variable_at(p, i);
            if (w && w != v && !w->crosses && w->region >= 0)
                w->crosses = changed = true;
        }
        for (const Token *i = v->init; v->crosses && v->by_index && i < v->after; i++) {
            Variable *w = variable_at(p, i);
            if (w && !w->crosses && w->region >= 0) // v may be used outside of regions
                w->crosses = changed = true;
            for (int r = 0; w && r < p->regions; r++)
                if (v->used[r] && !w->used[r] && r != v->region) {
                    w->used[r] = changed = true;
                    w->crosses |= r != w->region;
                }
        }
    }
    return changed;
}

// Sets `region`, `used` and `crosses` of all variables.
static void find_uses(LoopPlan *p) {
    for (Variable *v = p->variables; v < p->variables + p->count; v++) {
        memset(v->used, 0, sizeof v->used);
        v->crosses = false;
        for (const Statement *s = p->statements; s < p->end && !v->parameter; s++)
            if (s->kind == IN_REGION && declares(s, v))
                v->region = s->region;
    }
    for (const Statement *s = p->statements; s < p->end; s++)
        if (s->kind != CONTROL)
            use_variables(p, s->first, s->last, s->region);
        else if (s->header)
            use_variables(p, s->header, s->header->match, -1);
    while (use_again(p)) {
    }
}

// True for an assignment to a variable that has the same value in all threads and that other regions use.
static bool is_for_all(LoopPlan *p, const Statement *s) {
    for (const Token *i = s->first; i < s->last; i++) {
        const Variable *v = variable_at(p, i);
        if (v && v->uniform && v->modified && (v->crosses || v->region < 0))
            return is_uniform_statement(p, s);
    }
    return false;
}

// True if the declaration is of constants that may be sizes of arrays, and that other regions use.
static bool is_constant_declaration(LoopPlan *p, const Statement *s) {
    bool found = false;
    for (const Variable *v = p->variables; v < p->variables + p->count; v++) {
        if (!declares(s, v))
            continue;
        found = true;
        if (!v->crosses || !v->is_const || !v->is_integer || !v->init || v->is_array || !v->uniform ||
            v->modified)
            return false;
        for (const Token *i = v->init; i < v->after; i++) {
            const Variable *w = find_variable(p, i);
            if (is_one_of(i, " blockIdx blockDim gridDim ") || (w && w != v && !w->constant))
                return false;
        }
    }
    return found;
}

// Takes a statement out of its region: it is executed once, between two regions. Returns true.
static bool take_out(LoopPlan *p, Statement *s, StatementKind kind) {
    s->kind = kind;
    s->region = -1;
    for (Variable *v = p->variables; v < p->variables + p->count; v++)
        if (kind == OUTSIDE_DECLARATION && declares(s, v)) {
            v->constant = true;
            v->region = -1;
        }
    return true;
}

// Numbers the regions, and finds the variables that cross from one to another. If such a variable has the
// same value in all threads, an assignment to it is executed once, between two regions. That divides a
// region, so more variables may cross, and all is repeated until nothing changes.
void find_regions(LoopPlan *p) {
    for (bool changed = true; changed;) {
        p->regions = -1;
        number_regions(p, p->top, &p->regions);
        if (++p->regions > MAX_REGIONS) {
            refuse(p, p->kernel.body, "it has too many barriers");
            return;
        }
        find_uses(p);
        changed = false;
        for (Statement *s = p->statements; s < p->end; s++)
            if (s->kind == IN_REGION && !s->is_declaration && is_for_all(p, s))
                changed = take_out(p, s, UNIFORM_ASSIGNMENT);
        for (Statement *s = p->statements; s < p->end; s++)
            if (s->kind == IN_REGION && s->is_declaration && is_constant_declaration(p, s))
                changed = take_out(p, s, OUTSIDE_DECLARATION);
    }
}
