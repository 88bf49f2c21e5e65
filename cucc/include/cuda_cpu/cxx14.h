// SPDX-License-Identifier: MIT
// For -std=c++14 and older: what the headers use of C++17's library. The language's additions need nothing:
// in C++14 compilers take `if constexpr`, fold expressions and inline variables as extensions.
#pragma once

#include <type_traits>

#if __cplusplus < 201703L
#define CU_TRAIT(name) template <class... T> constexpr auto name##_v = name<T...>::value;
// clang-format off
namespace std {
CU_TRAIT(extent) CU_TRAIT(is_arithmetic) CU_TRAIT(is_array) CU_TRAIT(is_base_of) CU_TRAIT(is_class)
CU_TRAIT(is_convertible) CU_TRAIT(is_enum) CU_TRAIT(is_floating_point) CU_TRAIT(is_integral)
CU_TRAIT(is_pointer) CU_TRAIT(is_reference) CU_TRAIT(is_same) CU_TRAIT(is_scalar)
CU_TRAIT(is_signed) CU_TRAIT(is_trivially_constructible) CU_TRAIT(is_trivially_copyable) CU_TRAIT(is_void) CU_TRAIT(is_volatile)
} // namespace std
// clang-format on
#undef CU_TRAIT
#endif
