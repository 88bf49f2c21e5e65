// SPDX-License-Identifier: MIT
// What differs between the sources of a program. cucc includes it after cuda_runtime.h.
#pragma once

namespace cuda_cpu {

// Each unit calls one of these before main: the first one if it has a threadIdx of its own, else the second.
// The program ends with an error if it has several units and one of them has a threadIdx of its own. cucc
// recognises the form of an object file by the second name.
void cuda_cpu_one_unit(const char *file);
void cuda_cpu_several_units(const char *file);
#ifndef CUDA_CPU_UNIT // cucc sets the source's name; clang++ does not know it in a header given by -include
#define CUDA_CPU_UNIT __BASE_FILE__
#endif
namespace {
#ifdef CUDA_CPU_SEVERAL
[[maybe_unused]] const bool unit = (cuda_cpu_several_units(CUDA_CPU_UNIT), true);
#else
[[maybe_unused]] const bool unit = (cuda_cpu_one_unit(CUDA_CPU_UNIT), true);
#endif
} // namespace

} // namespace cuda_cpu
