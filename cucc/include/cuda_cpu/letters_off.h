// SPDX-License-Identifier: MIT
// Programs define macros such as N or T, also with -DN=1024, before they include a header of this folder. The
// headers have template parameters of these names, so each begins with this file and ends with letters_on.h.
// No #pragma once: it is included several times.
#pragma push_macro("A")
#undef A
#pragma push_macro("B")
#undef B
#pragma push_macro("C")
#undef C
#pragma push_macro("D")
#undef D
#pragma push_macro("F")
#undef F
#pragma push_macro("I")
#undef I
#pragma push_macro("K")
#undef K
#pragma push_macro("M")
#undef M
#pragma push_macro("N")
#undef N
#pragma push_macro("P")
#undef P
#pragma push_macro("R")
#undef R
#pragma push_macro("S")
#undef S
#pragma push_macro("T")
#undef T
#pragma push_macro("U")
#undef U
#pragma push_macro("V")
#undef V
#pragma push_macro("W")
#undef W
#pragma push_macro("X")
#undef X
#pragma push_macro("Y")
#undef Y
#pragma push_macro("Z")
#undef Z
