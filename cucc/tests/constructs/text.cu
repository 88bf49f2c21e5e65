// SPDX-License-Identifier: MIT
// clang-format off
// Text that is hard to read correctly: comments, strings, digraphs, line splices, macros, the preprocessor. All is legal for nvcc.
#include "results.h"

__global__ void set(int value) {
    out[0] = value;
}
template <int N> __global__ void number() {
    out[0] = N;
}
template <class T> struct Box {
    static constexpr int size = sizeof(T);
};
struct Stream { // << and <<< in host code
    int n = 0;
    Stream &operator<<(int k) { return n += k, *this; }
    Stream &operator<<(const char *s) { return n += s[0], *this; }
    Stream &operator>>(int &k) { return k = n, *this; }
};
template <class T> Stream &operator<<(Stream &s, Box<T>) {
    return s << (int)sizeof(T);
}

TEST(launches_in_strings_and_comments) {
    const char *s = "set<<<1, 1>>>(1)", *r = R"(set<<<1, 1>>>(2); " ' /* // )", *d = R"x(set<<<)"; )x";
    const char *u = u8"<<<", *concatenated = "<<" "<", *escaped = "\"<<<\\", *spliced = "a\
b";
    const wchar_t *w = L"<<<\"", *wr = LR"(")";
    // set<<<1, 1>>>(3); "
    /* set<<<1, 1>>>(4); ' */ set<<<1, /* >>> */ 1>>>(5 /* ( */); // set<<<1, 1>>>(6);
    EXPECT(result() == 5 && s[3] == '<' && r[3] == '<' && d[6] == ')' - ')' + '<' - '<' + d[6] && u[0] == '<');
    EXPECT(concatenated[2] == '<' && escaped[0] == '"' && spliced[1] == 'b' && w[3] == '"' && wr[0] == '"');
    char c = '<', quote = '\'', double_quote = '"', multi = '\\';
    set<<<1, 1>>>(c + quote + double_quote + multi);
    EXPECT(result() == '<' + '\'' + '"' + '\\');
    // a comment that goes on \
    set<<<1, 1>>>(7);
    EXPECT(result() != 7);
}
TEST(numbers) {
    set<<<1, 1>>>(1'000'000);
    EXPECT(result() == 1000000);
    set<<<0x1, 0b1>>>((int)1e+1 + (int)0x1p4 + 0'7 + 'a' - 'a' + (int)1.5e1f + (int).5);
    EXPECT(result() == 10 + 16 + 7 + 15);
}
TEST(digraphs_and_alternative_words) <%
    int a<:2:> = <% 1, 2 %>;
    set<<<1, 1>>>(a<:1:>);
    EXPECT(result() == 2);
    number<(1 bitor 2)><<<1, 1>>>();
    EXPECT(result() == 3);
    if (not (a[0] == 2) and true)
        set<<<1, 1>>>(compl 0);
    EXPECT(result() == -1);
    number<::Box<int>::size><<<1, 1>>>();
    EXPECT(result() == 4);
%>
TEST(shifts_and_streams) {
    Stream s;
    int n = 1, k;
    s << 1 << 2 << "<<<" << (n << 2) << Box<Box<int>>() << Box<double>();
    s >> k;
    EXPECT(k == 1 + 2 + '<' + 4 + 1 + 8);
    n <<= 3, n >>= 1;
    bool less = n < k, order = n<k, greater = k>n, both = n < k && k > n;
    set<<<1, 1>>>(n << 1 >> 1 << less << order << greater << both);
    EXPECT(result() == 64);
    operator<<(s, Box<int>());
    operator<< <int>(s, Box<int>());
    (operator<< <double>)(s, Box<double>());
    EXPECT(s.n == k + 4 + 4 + 8);
}
TEST(line_splices) {
    se\
t<<<1,\
 1>>>\
(8);
    EXPECT(result() == 8);
    set<<\
<1, 1>\
>>(9);
    EXPECT(result() == 9);
}
#define LAUNCH(kernel, ...) kernel<<<1, 1>>>(__VA_ARGS__)
#define CONFIGURED(kernel, grid, ...) kernel<<<grid, ##__VA_ARGS__>>>
#define OPEN <<<
#define CLOSE >>>
#define KERNEL(name)                                                                                         \
    __global__ void name(int x) {                                                                            \
        __shared__ int s;                                                                                    \
        s = x;                                                                                               \
        out[0] = s;                                                                                          \
    }
#define GLOBAL __global__ void
#define DEVICE static __inline__ __device__
#define SHARED __shared__
#define PASTE(a, b) a##b
#define TEXT(...) #__VA_ARGS__
#define EMPTY
#define CHECKED(...)                                                                                         \
    do {                                                                                                     \
        __VA_ARGS__;                                                                                         \
        OK(cudaGetLastError());                                                                              \
    } while (0)
KERNEL(from_a_macro)
GLOBAL PASTE(pas, ted)(int n) {
    SHARED int a EMPTY[2];
    a[1] = n;
    out[0] = a[1];
}
DEVICE int twice(int x) {
    return 2 * x;
}
GLOBAL uses(int n) {
    out[0] = twice(n);
}
TEST(macros) {
    LAUNCH(set, 1);
    EXPECT(result() == 1);
    LAUNCH(number<2>);
    EXPECT(result() == 2);
    CONFIGURED(set, 1, 1)(3);
    EXPECT(result() == 3);
    set OPEN 1, 1 CLOSE (4);
    EXPECT(result() == 4);
    LAUNCH(from_a_macro, 5);
    EXPECT(result() == 5);
    LAUNCH(PASTE(pas, ted), 6);
    EXPECT(result() == 6);
    LAUNCH(uses, 7);
    EXPECT(result() == 14);
    CHECKED(set<<<1, 1>>>(8));
    EXPECT(result() == 8);
    CHECKED(set<<<1, 1>>>(8), LAUNCH(set, 9));
    EXPECT(result() == 9);
    EXPECT(!strcmp(TEXT(set<<<1, 1>>>(1)), "set<<<1, 1>>>(1)"));
    EXPECT((set<<<1, 1>>>(10), result()) == 10);
}
#if 0
__global__ void never(int n { it's not C++ <<< " ' (
    __shared__ int x = 3;
#elif defined(NEVER)
__global__ never <<<>>>
#else
#define ONCE 11
#endif
#ifdef __CUDACC__
#define WITH_CUDA 1
#else
#error "the compiler of CUDA isn't here
#endif
#if __cplusplus >= 201703L /* a comment
over lines */ && 1 // and another
TEST(conditional_text) {
    set<<<1,
#ifdef NEVER
          2
#else
          1
#endif
          >>>(
#if WITH_CUDA
        ONCE
#endif
    );
    EXPECT(result() == 11);
}
#endif
#pragma GCC diagnostic push
TEST(pragmas_and_lines) {
#pragma unroll
    for (int i = 0; i < 2; i++)
        set<<<1, 1>>>(12 + i);
    _Pragma("GCC diagnostic pop") EXPECT(result() == 13);
#line 500 "another \"name\".cu"
    set<<<1, 1>>>(__LINE__);
#line 179 "text.cu"
    EXPECT(result() == 500);
}
__global__ void unrolled(int n) {
    int sum = 0;
#pragma unroll 4
    for (int i = 0; i < n; i++)
        sum += i;
#pragma unroll(1)
    for (int i = 0; i < n; i++)
        sum += i;
#pragma nv_diag_suppress 177
    int unused;
    out[0] = sum;
}
__global__ void utf8(int n) {
    const char *text = "größe <<<";
    out[0] = n + (text[0] == 'g');
}
__global__ void $dollar$(int n) { out[0] = n; } __global__ void same_line(int n) { __shared__ int s; s = n; out[0] = s; } // two on a line
TEST(odd_names_and_lines) {
    unrolled<<<1, 1>>>(3);
    EXPECT(result() == 6);
    int größe = 4;
    utf8<<<1, 1>>>(gr\u00f6\u00dfe);
    EXPECT(result() == 5);
    $dollar$<<<1, 1>>>(5); EXPECT(result() == 5); same_line<<<1, 1>>>(6); EXPECT(result() == 6);
}
__global__ void words(int n) { // words of CUDA in other places
    struct {
        int shared, device, global, host;
    } s = {1, 2, 3, 4};
    const char *text = "__shared__ int x; __device__ __global__";
    // __shared__ int y;
    out[0] = s.shared + s.device + s.global + s.host + (text[0] == '_') + n;
}
static int device(int shared) {
    int global = shared, __shared = 1, shared__ = 2;
    return global + __shared + shared__;
}
TEST(words_of_cuda_in_other_places) {
    words<<<1, 1>>>(device(1));
    EXPECT(result() == 15);
#ifdef __shared__
    set<<<1, 1>>>(1);
#endif
}
