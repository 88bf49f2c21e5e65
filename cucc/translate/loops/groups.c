// SPDX-License-Identifier: MIT
/*
 * Cooperative groups in kernels that inline.c rewrites: the block, and tiles of at most 32 threads
 *
 *     auto tile = cg::tiled_partition<32>(block);      ;
 *     if (tile.meta_group_rank() == 0) …               if (((threadIdx.x + …) / 32) == 0) …
 *     v = cg::reduce(tile, v, cg::plus<int>());   ->   cu_s1.put_of_tile(…); cu_s1.meet(…);
 *                                                      v = cu_s1.reduced(…);
 *     block.sync();                                    __syncthreads();
 *
 * A variable that is a group is replaced by an expression in threadIdx and blockDim, if every use of the
 * variable has a known form. Otherwise the variable and its operations stay, and the kernel runs with fibers.
 */
#include "inline.h"

static const char operations[] = " shfl shfl_up shfl_down shfl_xor any all ballot ",
                  block_text[] = "::cooperative_groups::this_thread_block()",
                  tile_text[] = "::cooperative_groups::tiled_partition<",
                  base_text[] = "::cooperative_groups::thread_group(",
                  rank[] =
                      "((threadIdx.x + blockDim.x * threadIdx.y) + blockDim.x * blockDim.y * threadIdx.z)",
                  threads[] = "(blockDim.x * blockDim.y * blockDim.z)";

// True for the name of a function of the namespace cooperative_groups, or of another name of it: cg::reduce.
// Without a namespace, none of the program has the name and as many parameters.
static bool is_of_groups(const Unit *u, Token *name) {
    const Token *space = kind(name - 1) == SCOPE ? name - 2 : NULL;
    bool found = space ? is(space, "cooperative_groups") : !is_member(name);
    for (Token *t = u->begin; t < u->end; t++)
        if (t->system || is_ours(t) || !same_word(t, space ? space : name)) {
            continue;
        } else if (space && is(t - 1, "namespace")) {
            found = is(t + 2 + (kind(t + 2) == SCOPE), "cooperative_groups");
            if (kind(t + 1) != '=' || !found)
                return false;
        } else if (!space && kind(t + 1) == '(' && find_body(t + 1) &&
                   (kind(name + 1) != '(' || count_arguments(t + 1) == count_arguments(name + 1))) {
            return false;
        }
    return found && !(space && kind(space - 1) == SCOPE && kind(space - 2) == IDENT);
}

static Token *first_of(Token *name) { // :: or cg in ::cooperative_groups::sync, cg::sync
    while (kind(name - 1) == SCOPE)
        name -= kind(name - 2) == IDENT ? 2 : 1;
    return name;
}

static bool starts(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static const char *derived(const char *group) { // without the conversion to the base class
    return group + (starts(group, base_text) ? sizeof base_text - 1 : 0);
}

unsigned group_size(const char *group) { // of a tile; 0: the block
    return starts(group, tile_text) ? (unsigned)atoi(group + sizeof tile_text - 1) : 0;
}

// The size of a tile: a number, or a constant with a number as its value. 0: not known, or of several warps
static unsigned read_size(const Body *b, Token *i) {
    Token *t = kind(i) == IDENT && !find_replacement(b, i) ? declared(i) : NULL;
    for (const Token *w = t; w && w > t - 4; w--)
        if (is_one_of(w, " const constexpr ") && kind(t + 1) == '=' && kind(t + 3) == ';')
            i = t + 2;
    const char *text = changed(b, i, i + 1);
    char *end;
    const unsigned long n = strtoul(text + strspn(text, "("), &end, 0);
    return end[strspn(end, "uU)")] || n > 32 || (n & (n - 1)) ? 0 : (unsigned)n;
}

// The text of a group that has the value of this expression; null if it is not known to be one.
const char *group_of(const Unit *u, const Body *b, Token *i, const Token *end) {
    const Replacement *c = find_replacement(b, i);
    if (i + 1 == end)
        return c && starts(c->text, "::cooperative_groups::") && c->text[strlen(c->text) - 1] == ')' ? c->text
                                                                                                     : NULL;
    while (i < end && (kind(i) == SCOPE || kind(i + 1) == SCOPE))
        i++;
    if (is(i, "this_thread_block") && kind(i + 1) == '(' && i[1].match == i + 2 && i + 3 == end)
        return is_of_groups(u, i) ? block_text : NULL;
    Token *open = i + 4;
    if (!is(i, "tiled_partition") || kind(i + 1) != '<' || kind(i + 3) != '>' || kind(open) != '(' ||
        open->match + 1 != end || !is_of_groups(u, i))
        return NULL;
    const char *parent = group_of(u, b, open + 1, open->match);
    const unsigned size = read_size(b, i + 2);
    return parent && size ? format("%s%u>(%s)", tile_text, size, derived(parent)) : NULL;
}

// What a member function of the group returns, as an expression; null if it is not known.
static const char *value_of(const char *group, const Token *member) {
    const char *const text = derived(group);
    const unsigned n = group_size(text), parent = n ? group_size(strchr(text, '(') + 1) : 0;
    const char *value = is_one_of(member, " size num_threads ") ? n ? format("%uu", n) : threads
                        : is(member, "thread_rank")             ? n ? format("(%s %% %u)", rank, n) : rank
                                                                : NULL;
    if (value || group != text)
        return value && group != text ? fill("((unsigned long long)$x)", "x", value) : value;
    if (n && is(member, "meta_group_rank"))
        return format("(%s / %u)", parent ? format("%s %% %u", rank, parent) : rank, n);
    if (n && is(member, "meta_group_size"))
        return format("((%s + %u) / %u)", parent ? format("%uu", parent) : threads, n - 1, n);
    return n || kind(member + 3) != '.'                   ? NULL
           : is(member, "group_index")                    ? "blockIdx"
           : is(member, "thread_index")                   ? "threadIdx"
           : is_one_of(member, " dim_threads group_dim ") ? "blockDim"
                                                          : NULL;
}

// Whether what the program does with a variable that is this group, at token i, is understood
static bool is_understood(Rewrite *r, const char *group, Token *i) {
    Token *const member = i + 2, *name = enclosing(i - 1) - 1;
    if (kind(i + 1) == '.' && kind(member + 1) == '(')
        return is(member, "sync") || (group_size(group) > 0 && is_one_of(member, operations)) ||
               (member[1].match == member + 2 && value_of(group, member));
    if (!strchr("(,", kind(i - 1)) || !strchr("),", kind(i + 1)) || kind(name + 1) != '(')
        return false;
    if (kind(name) == '>') { // tiled_partition<4>(tile)
        while (kind(name) && !strchr("<(;", kind(name)))
            name--;
        name--;
    }
    if (is_one_of(name, " tiled_partition sync reduce ") && is_of_groups(r->u, name))
        return true;
    Token *f = is_member(name) ? NULL : only_function(r->u, name);
    if (!f)
        return false;
    bool by_value = true, is_const = false; // or by a reference to const
    for (const Token *t = f + 1; t < f[1].match; t++) {
        is_const = is(t, "const") || (is_const && kind(t) != ',');
        by_value &= is_const || kind(t) != '&';
    }
    return by_value || has_operations(r, f + 1, find_body(f + 1)->match, true);
}

// Replaces a variable that is this group, from token i to `end`. Returns false if it has to stay.
static bool replace_group(Rewrite *r, Body *b, const Token *name, const char *group, Token *i,
                          const Token *end) {
    for (Token *t = i; t < end; t++)
        if (same_word(t, name) && !is_member(t) && !is_understood(r, group, t))
            return false;
    for (Token *t = i; t < end; t++) {
        if (!same_word(t, name) || is_member(t))
            continue;
        const char *value = kind(t + 1) == '.' ? value_of(group, t + 2) : NULL;
        replace(b, t, value ? t + 4 : t, value ? value : group);
        b->replacements[b->count - 1].type =
            group != derived(group) ? NULL
            : group_size(group)     ? format("::cooperative_groups::thread_block_tile<%u>", group_size(group))
                                    : "::cooperative_groups::thread_block";
    }
    return true;
}

// Replaces a parameter of a function that is called with this group.
bool replace_group_parameter(Rewrite *r, Body *f, const Token *name, const char *group, Token *body) {
    if (group && is(name - 1 - (kind(name - 1) == '&'), "thread_group"))
        group = format("%s%s)", base_text, derived(group));
    return group && replace_group(r, f, name, group, body, body->match);
}

// Replaces the variable of a declaration of nothing else, and leaves the declaration out.
bool replace_group_variable(Rewrite *r, Body *b, const Variable *v) {
    Token *const type = v->specifiers_end - 1, *init = v->init, *last = init ? init->match : NULL;
    const char *group = !init                  ? NULL
                        : kind(init) == '='    ? group_of(r->u, b, init + 1, v->after)
                        : last + 1 == v->after ? group_of(r->u, b, init + 1, last)
                                               : NULL;
    if (!group || v->is_pointer || kind(v->after) != ';' || kind(v->specifiers - 1) == '(')
        return false;
    if (!v->is_auto && (group_size(group) ? kind(type) != '>' : !is(type, "thread_block")))
        return false;
    if (!replace_group(r, b, v->name, group, v->after, enclosing(v->name)->match))
        return false;
    const char *used = ""; // a constant, so that compilers do not say that it is not
    for (Token *t = init; t < v->after; t++)
        if (is(t - 2, "tiled_partition") && kind(t) == IDENT)
            used = fill("(void)$x", "x", changed(b, t, t + 1));
    replace(b, v->specifiers, v->after - 1, used);
    return true;
}

// ---- operations ----

// True for a word that may be an operation of a group: in tile.any(x), cg::reduce(tile, x, op), block.sync().
// In other functions than templates, groups have types.
bool is_group_call(const Unit *u, Token *i) {
    static const char types[] =
        " template thread_group thread_block thread_block_tile this_thread_block tiled_partition ";
    if (kind(i + 1) != '(' || !(kind(i - 1) == '.' ? is_one_of(i, operations) || is(i, "sync")
                                                   : is_one_of(i, " sync reduce ") && is_of_groups(u, i)))
        return false;
    const Token *t = i;
    while (kind(t) != END && !is_one_of(t, " __device__ __global__ ") && !is_one_of(t, types))
        t--;
    return is_one_of(t, types) || is(statement_begin(t), "template") || is(i + 2, "this_thread_block") ||
           is(i + 4, "this_thread_block");
}

// The number of threads of the tile if this word is an operation of one other than sync; otherwise 0
unsigned tile_of(Rewrite *r, const Body *b, Token *i) {
    const bool reduction = is(i, "reduce");
    if (kind(i + 1) != '(' || !(reduction || (is_one_of(i, operations) && kind(i - 1) == '.')))
        return 0;
    Token *tile = reduction ? i + 2 : i - 2;
    const char *group = kind(tile) == IDENT && !is_member(tile) && kind(tile + 1) == (reduction ? ',' : '.')
                            ? group_of(r->u, b, tile, tile + 1)
                            : NULL;
    return group && (!reduction || is_of_groups(r->u, i)) ? group_size(derived(group)) : 0;
}

// True if calls of the operation can stand for those of the threads: cg::plus<float>()
static bool is_operation(const Unit *u, Token *i, const Token *end) {
    while (i < end && (kind(i) == SCOPE || kind(i + 1) == SCOPE))
        i++;
    Token *after = kind(i + 1) == '<' ? skip_angles(i + 1, end) : NULL;
    if (!is_one_of(i, " plus less greater bit_and bit_or bit_xor ") || !after || !is_of_groups(u, i) ||
        !opens(after) || after->match != after + 1 || after + 2 != end)
        return false;
    bool numbers = true;
    for (const Token *t = i + 2; t < after - 1; t++)
        numbers &= is_one_of(t, number_words) || is_one_of(t, integer_words);
    for (const Token *t = u->begin; t < u->end; t++) // the program's functions may ask for the thread's index
        if (!t->system && !is_ours(t) &&
            ((!numbers && is(t, "operator")) ||
             (kind(i - 1) != SCOPE && same_word(t, i) && is_one_of(t - 1, " struct class using "))))
            return false;
    return true;
}

// v = cg::reduce(tile, v, cg::plus<int>());
void write_reduction(Rewrite *r, Body *b, Token *name, unsigned size) {
    Token *close = name[1].match, *value = name + 4, *comma = next_comma(value, close);
    if (comma == close || !is_operation(r->u, comma + 1, close)) {
        refuse_inlining(r, name, "the operation of a reduction is not known");
        return;
    }
    const char *s = format("cu_s%d", ++r->number),
               *tile = format("::cuda_cpu::TypeTag<::cooperative_groups::thread_block_tile<%u>>{}", size),
               *op = fill("::cuda_cpu::TypeTag<$op>{}", "op", changed(b, comma + 1, close - 2));
    append_filled(&r->out, "$s.put_of_tile(cu_r, cu_x, $x, $op); $s.meet($tile, $op); ", "s", s, "x",
                  changed(b, value, comma), "tile", tile, "op", op);
    replace(b, first_of(name), close,
            fill("$s.reduced(cu_r, cu_x, $tile, $op)", "s", s, "tile", tile, "op", op));
}

// Writes tile.sync(); or cg::sync(block); Returns false for other statements.
bool write_group_sync(Rewrite *r, Body *b, Token *i, const Token *last) {
    const Token *close = last - 1;
    Token *open = kind(close) == ')' ? close->match : NULL, *word = open ? open - 1 : NULL;
    if (!open || !is(word, "sync"))
        return false;
    const char *group = kind(word - 1) == '.'                             ? group_of(r->u, b, i, word - 1)
                        : first_of(word) == i && is_of_groups(r->u, word) ? group_of(r->u, b, open + 1, close)
                                                                          : NULL;
    const unsigned size = group ? group_size(derived(group)) : 0;
    // cu_step() in place of __syncwarp() for a smaller tile: other tiles of its warp may not reach this line.
    if (group)
        append_text(&r->out, !size ? "__syncthreads()" : size == 32 ? "__syncwarp()" : "cu_step()");
    return group;
}
