// SPDX-License-Identifier: MIT
// The events that the engine and the streams report to the race detector (race.cpp). These functions are
// weak: their addresses are null in a program that is not built for checking, because then the linker leaves
// race.o out: only instrumented code refers to it.
#pragma once
#include "block.h"

namespace cuda_cpu {

// The source lines of these instructions, such as "sum.cu:12". The addresses are relative to the program's
// start. The text is empty if the line is unknown or belongs to the back end. `inlined` is set for code of
// the back end that the compiler has inlined into this line, such as a part of atomicAdd().
struct SourceLine {
    std::string text;
    bool inlined;
};
std::vector<SourceLine> race_source_lines(const std::vector<uintptr_t> &addresses) __attribute__((weak));

struct SharedName { // an array in shared memory
    const char *name, *begin;
    size_t bytes;
};

struct Transfer;
struct Fill;

#define WEAK __attribute__((weak))

void race_track(const void *memory, size_t bytes) WEAK;     // marks memory that threads may share as tracked
void race_track_new(const void *memory, size_t bytes) WEAK; // the same, for memory that nothing has written
void race_forget(const void *memory, size_t bytes) WEAK;    // drops the records of memory that is freed
// A thread that waits can keep this stack; with begin = end, it is one no more.
void race_stack(const char *begin, const char *end) WEAK;
constexpr size_t race_page = 64 << 10; // bytes; tracked memory should not share such pages with other memory

// Called when a launch begins, and when the blocks of a cooperative launch have passed a grid barrier.
void race_launch(const Kernel &kernel, const LaunchConfig &config) WEAK;
void race_grid_barrier() WEAK;
void copies_to_shared_memory() WEAK; // defined in programs with cuda_pipeline_primitives.h
void race_wrong() WEAK;              // the exit status becomes 1
// Called when this worker's block has passed a barrier, or lanes of a warp have passed __syncwarp().
void race_barrier(const Worker &worker) WEAK;
void race_warp_barrier(unsigned warp, unsigned lanes) WEAK;
void race_name_shared(const char *name, const void *memory, size_t bytes) WEAK;

// The work of streams: race_enqueue() is called when a launch, a copy or a fill is enqueued, race_begin() and
// race_end() when it begins and ends, race_waited() when the host has waited for its end. `launch` is the
// configuration of a launch, null for other work.
void race_enqueue(uint64_t number, uint64_t stream, const std::vector<uint64_t> &after, const char *call,
                  const LaunchConfig *launch) WEAK;
void race_begin(uint64_t number) WEAK;
void race_end() WEAK;
void race_waited(uint64_t number) WEAK;
// Records a row of a copy or fill, or an allocation in a stream, as an access.
void race_copy(const void *memory, size_t bytes, bool write) WEAK;
void race_allocate(const void *memory, size_t bytes) WEAK;

#undef WEAK

} // namespace cuda_cpu
