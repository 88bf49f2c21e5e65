// SPDX-License-Identifier: MIT
/*
 * Kernels as loops over the threads of a block
 *
 *     __global__ void k(int *x) {            … {
 *         int i = threadIdx.x;                   <for all threads> { int i = threadIdx.x; x[i]++; }
 *         x[i]++;                      ->        if (fibers) __syncthreads();
 *         __syncthreads();                       <for all threads> { int i = threadIdx.x; x[i] += x[0]; }
 *         x[i] += x[0];                      }
 *     }
 *
 * A region is what stands between two barriers. It becomes a loop over the threads of the block. A barrier
 * needs no code then: when a region begins, all threads have executed the one before it. Branches and loops
 * around barriers are executed once for all threads, so their conditions may use only what is the same in all
 * threads, such as parameters and blockIdx. In a kernel that has only barriers of warps, the threads of a
 * warp take the place of those of the block.
 *
 * A variable that several regions use has one value for all threads, or is computed again from threadIdx in
 * each region, or has a copy for each thread in an array (Keeping in plan.h).
 *
 * A warp operation ends a region too: the region stores the operands of all lanes, and the next one reads
 * them. So operations first become statements, and functions that contain operations or barriers are written
 * in place of their calls (inline.c). Loops whose index grows by the number of threads are divided after each
 * iteration, also in kernels without barriers (is_strided() in plan.c).
 *
 * A kernel is refused, and its threads run as fibers, which can wait anywhere, if they may wait elsewhere
 * than at its own barriers (locks, functions of other files: calls.c), if some may not reach a barrier, or if
 * it has something that may not be understood, such as a reference to a local variable that is used on both
 * sides of a barrier. A kernel that is not refused can also run with fibers, each of which executes the
 * regions for one thread (ThreadRange in cuda_cpu/loops.h): the runtime chooses at each launch.
 */
#pragma once

#include "../translate.h"

typedef struct {
    Token *begin, *name, *parameters, *body; // the first token of the declaration, its name, the ( and the {
    const Token *before; // the tokens of the unit before this one are those before the kernel
} Kernel;

// How the body of a kernel is called: kernel.c has the types of cuda_cpu/loops.h. Those after ONE_BODY
// compile the body more than once.
typedef enum { FIBERS, ONE_BODY, PER_WARP, IN_ROWS, ANY_SHAPE, IN_CHUNKS } KernelForm;

typedef struct LoopPlan LoopPlan;

// Called once, before the kernels are translated. Writes the source to *text, with functions in place of
// their calls in kernels that become loops, and warp operations as statements. False if nothing is to change.
bool inline_functions(Unit *u, Text *text);

// Decides whether a kernel becomes loops, and divides it into regions. Does not change its text.
LoopPlan *plan_loops(Unit *u, Kernel kernel);

// For blocks that may run as one, the greatest number of columns; otherwise 0
int joined_columns(const LoopPlan *plan);
// The axis of the block along which the innermost loops run
int innermost_axis(const LoopPlan *plan);

// Says on standard output whether the kernel becomes loops, and why not.
void explain_loops(const LoopPlan *plan);

// Writes the loops, if any; to `start`, declarations for the body's begin. Returns how the kernel is called.
KernelForm write_loops(LoopPlan *plan, Text *start);
