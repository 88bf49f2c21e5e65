// SPDX-License-Identifier: MIT
// Neighbouring blocks that run as one: the loop over the threads of a row goes on through their rows, which
// often lie side by side in memory. That is possible if a kernel uses the indices in x only as
//     blockIdx.x * blockDim.x + threadIdx.x
// because this number goes on by one from a block to the next: blockIdx.x stays that of the first block, and
// threadIdx.x goes on past blockDim.x. It is also possible if a kernel does not use threadIdx.x, in launches
// with blockDim.x = 1: then blockIdx.x goes on by one (p->single).
#include "plan.h"

static bool is_index(const Token *i, const char *name) { // name.x
    return is(i, name) && kind(i + 1) == '.' && is(i + 2, "x");
}

// a.x * b.x + c.x, or with `first` the sum c.x + a.x * b.x
static bool is_sum(const Token *i, const char *a, const char *b, bool first) {
    const Token *product = first ? i + 4 : i;
    return is_index(product, a) && kind(product + 3) == '*' && is_index(product + 4, b) &&
           is_index(first ? i : i + 8, "threadIdx") && kind(first ? i + 3 : i + 7) == '+';
}

// True if the tokens are the number of the thread in the row of all blocks, and stand alone: no operator that
// binds more closely than + takes a part of them.
static bool is_global_index(LoopPlan *p, Token *i) {
    Token *before = i - 1, *after = i + 11;
    bool found = false;
    for (int n = 0; n < 4; n++)
        found |= n & 1 ? is_sum(i, "blockIdx", "blockDim", n & 2) : is_sum(i, "blockDim", "blockIdx", n & 2);
    if (found && kind(before) == ')' && before->match == before - 2 && is_one_of(before - 1, wide_words))
        before -= 3; // a cast of the first one
    return found && after < p->kernel.body->match && kind(after) && !strchr("*/%", kind(after)) &&
           (is(before, "return") || (kind(before) && strchr("=(,[{;", kind(before))));
}

// Sets the number of columns up to which blocks may be joined, for a kernel without barriers; 0: not at all.
void find_joined(LoopPlan *p) {
    Token *const body = p->kernel.body, *const end = body->match;
    bool vector = true, lone_block = false, lone_thread = false, global = false;
    for (Token *i = p->how.along ? end : body; i < end; i++) {
        if (is_global_index(p, i)) {
            global = true;
            i += 10;
        } else if (is_one_of(i, " asm __asm__ __asm volatile __shared__ ") ||
                   (is_one_of(i, " blockIdx threadIdx ") && kind(i + 1) != '.')) {
            return;
        }
        lone_block |= is_index(i, "blockIdx");
        lone_thread |= is_index(i, "threadIdx");
    }
    p->single = lone_block && !lone_thread && !global;
    if ((!global || lone_block || lone_thread) && !p->single)
        return;
    const bool quiet = !p->barriers && is_quiet(p->u, body, end, &vector) && vector &&
                       !functions_know_thread(p->u) && !has_file_shared(p->u);
    p->joined = !quiet ? 0 : p->single ? 1 : 256;
    p->single &= quiet;
}

// Appends the declaration of the indices of the thread at place `x` of its row.
void declare_index(const LoopPlan *p, Text *text, const char *x, const char *turn) {
    const char *thread = p->how.along ? "::cuda_cpu::turned<'$along'>({$x, cu_y, cu_z})" : "{$x, cu_y, cu_z}";
    append_filled(text, " [[maybe_unused]] const uint3 threadIdx = $turn$thread;$block", "turn", turn,
                  "thread", fill(thread, "x", x, "along", format("%c", p->how.along)), "block",
                  p->single ? " [[maybe_unused]] const uint3 blockIdx = cu_w.block(threadIdx.x);" : "");
}
