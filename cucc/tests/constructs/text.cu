// SPDX-License-Identifier: MIT
// clang-format off
// Digraphs, pragmas and odd names. All is legal for nvcc but for letters beyond ASCII in names of the device.
#include "results.h"

template <int N> __global__ void number() {
    out[0] = N;
}
template <class T> struct Box {
    static constexpr int size = sizeof(T);
};
TEST(digraphs_and_alternative_words) <%
    int a<:2:> = <% 1, 2 %>;
    GIVES(2, set<<<1, 1>>>(a<:1:>));
    GIVES(3, number<(1 bitor 2)><<<1, 1>>>());
    if (not (a[0] == 2) and true)
        set<<<1, 1>>>(compl 0);
    EXPECT(result() == -1);
    GIVES(4, number<::Box<int>::size><<<1, 1>>>());
%>
#pragma GCC diagnostic push
TEST(pragmas_and_lines) {
#pragma unroll(1)
    for (int i = 0; i < 2; i++)
        set<<<1, 1>>>(12 + i);
    _Pragma("GCC diagnostic pop") EXPECT(result() == 13);
#line 500 "another \"name\".cu"
    set<<<1, 1>>>(__LINE__);
#line 30 "text.cu"
    EXPECT(result() == 500);
}
__global__ void utf8(int n) {
    const char *text = "größe <<<";
    out[0] = n + (text[0] == 'g');
}
__global__ void $dollar$(int n) { out[0] = n; } __global__ void same_line(int n) { __shared__ int s; s = n; out[0] = s; } // two on a line
#ifdef __CU2CPP__ // nvcc refuses these names
__constant__ int fünf = 5;
__device__ int dr\u00fcber(int maß) { return fünf + maß; }
namespace ä { template <class Ö> __global__ void größer(Ö p) { __shared__ Ö läßt; läßt = dr\u00fcber(p); __syncthreads(); out[0] = läßt; } }
#endif
TEST(odd_names_and_lines) {
#ifdef __CU2CPP__
    GIVES(7, ä::größer<int><<<1, 1>>>(2));
#endif
    int größe = 4;
    GIVES(5, utf8<<<1, 1>>>(gr\u00f6\u00dfe));
    $dollar$<<<1, 1>>>(5); EXPECT(result() == 5); same_line<<<1, 1>>>(6); EXPECT(result() == 6);
}
