// SPDX-License-Identifier: MIT
// clang-format off
// Launches: every place and form of <<<…>>> that C++ allows. All is legal for nvcc.
#include "results.h"
#include <vector>

__global__ void add(int value) {
    atomicAdd(out, value);
}
__global__ void none() {
    out[0] = 77;
}
template <class T> __global__ void generic(T value) {
    out[0] = (int)(long long)value;
}
template <int N> __global__ void number(int) {
    out[0] = N;
}
template <bool B> __global__ void truth() {
    out[0] = B;
}
template <class... T> __global__ void sum(T... values) {
    out[0] = (0 + ... + (int)values);
}
template <class T, T... V> __global__ void listed() {
    out[0] = (0 + ... + (int)V);
}
__global__ void defaults(int a, int b = 20, int c = 300) {
    out[0] = a + b + c;
}
__global__ void overloaded(int) {
    out[0] = 1;
}
__global__ void overloaded(double) {
    out[0] = 2;
}
__global__ void overloaded(int *, int) {
    out[0] = 3;
}
namespace outer {
namespace inner {
__global__ void k(int value) {
    out[0] = 10 * value;
}
} // namespace inner
inline namespace v2 {
template <class T> struct Box {
    static constexpr int size = sizeof(T);
    template <int N> static void launch() { number<N><<<1, 1>>>(0); }
};
} // namespace v2
namespace alias = inner;
} // namespace outer
constexpr int A = 1, B = 2;

// ---- where a launch stands ----

static void returned() {
    return set<<<1, 1>>>(11);
}
TEST(expressions) {
    const bool yes = true;
    GIVES(2, set<<<1, 1>>>(1), set<<<1, 1>>>(2));
    GIVES(5, !yes ? set<<<1, 1>>>(3) : yes ? set<<<1, 1>>>(5) : none<<<1, 1>>>());
    GIVES(6, yes ? (set<<<1, 1>>>(6), void()) : void());
    GIVES(8, static_cast<void>((set<<<1, 1>>>(8), 0)));
    GIVES(9, ((set<<<1, 1>>>((9)))));
    GIVES(10, (set)<<<1, 1>>>(10));
    GIVES(11, returned());
    GIVES(12, [] { set<<<1, 1>>>(12); }());
    auto launch = [&](auto value) { return generic<<<1, 1>>>(value); };
    GIVES(13, launch(13.5));
}
TEST(statements) {
    int n = 0;
    GIVES(6, for (set<<<1, 1>>>(0); n < 3; n++, add<<<1, 1>>>(n)));
    if (set<<<1, 1>>>(14); result() == 14)
        add<<<1, 1>>>(1);
    else
        add<<<1, 1>>>(2);
    EXPECT(result() == 15);
    switch (add<<<1, 1>>>(1); result())
    case 16:
        set<<<1, 1>>>(0);
    do
        add<<<1, 1>>>(1);
    while (add<<<1, 1>>>(1), --n);
    EXPECT(result() == 6);
    for (auto [a, b] : std::vector<std::pair<int, int>>{{1, 2}, {3, 4}})
        add<<<a, b>>>(1);
    EXPECT(result() == 6 + 2 + 12);
again:
    set<<<1, 1>>>(++n);
    if (n < 3)
        goto again;
    else if (n == 3)
        try {
            add<<<1, 1>>>(2);
            throw 1;
        } catch (...) {
            add<<<1, 1>>>(3);
        }
    EXPECT(result() == 8);
}
static int at_start = (set<<<1, 1>>>(21), result());
static const int at_start_2 = [] { return set<<<1, 1>>>(22), result(); }();
static int by_default(int n = (set<<<1, 1>>>(23), result())) {
    return n;
}
TEST(initial_values_and_default_arguments) {
    EXPECT(at_start == 21 && at_start_2 == 22 && by_default() == 23 && by_default(1) == 1);
}
struct Member {
    int value = (set<<<1, 1>>>(24), result());
    int other{(set<<<1, 1>>>(25), result())};
    Member() : value((set<<<1, 1>>>(26), result())) {}
    Member(int) { set<<<1, 1>>>(27); }
    ~Member() { set<<<1, 1>>>(28); }
    operator int() const { return set<<<1, 1>>>(29), 5; }
    void operator()(int n) { set<<<1, 1>>>(n); }
    static void own() { set<<<1, 1>>>(30); }
    void defined_later();
};
void Member::defined_later() {
    set<<<1, 1>>>(31);
}
TEST(members) {
    {
        Member m;
        EXPECT(m.value == 26 && m.other == 25);
        m(32);
        EXPECT(result() == 32 && (int)m == 5 && result() == 29);
    }
    EXPECT(result() == 28);
    GIVES(30, Member::own());
    GIVES(28, Member(1).defined_later());
}
auto trailing() -> struct Member {
    set<<<1, 1>>>(33);
    return Member(1);
}
auto trailing_pointer(int *p) -> int (*)[4] {
    set<<<1, 1>>>(34);
    return (int(*)[4])p;
}
static int tried() try {
    set<<<1, 1>>>(35);
    return result();
} catch (int) {
    return 0;
}
TEST(heads_of_functions) {
    trailing();
    GIVES(34, trailing_pointer(nullptr));
    EXPECT(tried() == 35);
}

// ---- the kernel ----

TEST(names) {
    ::set<<<1, 1>>>(1);
    GIVES(20, outer::inner::k<<<1, 1>>>(2));
    GIVES(30, ::outer::alias::k<<<1, 1>>>(3));
    using outer::inner::k;
    GIVES(40, k<<<1, 1>>>(4));
}
TEST(template_arguments) {
    GIVES(0, generic<outer::Box<outer::Box<int>>*><<<1, 1>>>(nullptr));
    GIVES(1, number<(1 > 0)><<<1, 1>>>(0));
    GIVES(4, number<(8 >> 1)><<<1, 1>>>(0));
    GIVES(8, number<1 << 3><<<1, 1>>>(0));
    GIVES('>', number<'>'><<<1, 1>>>(0));
    GIVES(5, number<A == 1 ? 5 : 6><<<1, 1>>>(0));
    GIVES(7, number<int{7}><<<1, 1>>>(0));
}
TEST(comparisons_as_template_arguments) {
    GIVES(1, truth<A<B><<<1, 1>>>());
    GIVES(0, truth<(A > B)><<<1, 1>>>());
    GIVES(1, truth<A<outer::Box<int>::size><<<1, 1>>>());
}
TEST(packs) {
    GIVES(0, sum<<<1, 1>>>());
    GIVES(1 + 2 + 'a' + 4, sum<<<1, 1>>>(1, 2.5, 'a', 4ull));
    GIVES(6, listed<int, 1, 2, 3><<<1, 1>>>());
}
template <class T> struct Launcher {
    template <class U> static void run(U value) {
        generic<U><<<1, 1>>>(value);
    }
    void dependent() { outer::Box<T>::template launch<9>(); }
};
template <class T, class K> void launch_kernel(K kernel, T value) {
    kernel<<<1, 1>>>(value);
}
template <void (*K)(int)> void launch_parameter(int value) {
    K<<<1, 1>>>(value);
}
template <auto K, class... A> void launch_auto(A... values) {
    K<<<1, 1>>>(values...);
}
template <class... K> void launch_all(K... kernels) {
    (kernels<<<1, 1>>>(1), ...);
}
TEST(kernels_as_parameters) {
    GIVES(6, Launcher<int>::run(6));
    GIVES(9, Launcher<char>().dependent());
    GIVES(10, launch_kernel(set, 10));
    GIVES(12, launch_parameter<set>(12));
    GIVES(14, launch_auto<set>(14));
    set<<<1, 1>>>(0);
    GIVES(3, launch_all(add, &add, *add));
}
typedef void Kernel(int);
using Pointer = void (*)(int);
TEST(pointers) {
    void (*p)(int) = set;
    Pointer table[2] = {set, add};
    Kernel &r = set;
    Kernel *const *pp = &p;
    GIVES(1, p<<<1, 1>>>(1));
    GIVES(3, r<<<1, 1>>>(3));
    GIVES(4, (**pp)<<<1, 1>>>(4));
    GIVES(9, table[1]<<<1, 1>>>(5));
    GIVES(6, (A == 1 ? set : add)<<<1, 1>>>(6));
    GIVES(7, (0, set)<<<1, 1>>>(7));
    GIVES(8, static_cast<void (*)(int)>(generic)<<<1, 1>>>(8));
    GIVES(1, ((void (*)(int))overloaded)<<<1, 1>>>(9));
    struct {
        Pointer k;
        Pointer get() { return k; }
        Pointer operator[](int) { return k; }
    } s = {set}, *t = &s;
    GIVES(10, s.k<<<1, 1>>>(10));
    GIVES(13, t->get()<<<1, 1>>>(13));
    GIVES(14, s[0]<<<1, 1>>>(14));
}
TEST(overloads_and_defaults) {
    GIVES(2, overloaded<<<1, 1>>>(1.0f));
    GIVES(3, overloaded<<<1, 1>>>(nullptr, 0));
    GIVES(321, defaults<<<1, 1>>>(1));
}

// ---- the configuration ----

TEST(configurations) {
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    const dim3 grid = 2;
    set<<<1, 1>>>(0);
    GIVES(8, add<<<dim3(2, 2), dim3(2)>>>(1));
    GIVES(16, add<<<dim3{1, 1, 2}, {2, 2}>>>(1));
    GIVES(20, add<<<(2), (1 > 0 ? 2 : 1)>>>(1));
    GIVES(28, add<<<16>>2, 64>>5>>>(1));
    GIVES(30, add<<<grid.x, A < B>>>(1));
    GIVES(32, add<<<1, outer::Box<outer::Box<int>>::size, sizeof(std::vector<std::vector<int>>), stream>>>(2));
    GIVES(33, add<<<1, [] { return 1; }(), 0, NULL>>>(1));
    GIVES(34, add<<<1, std::vector<int>{1}[0], 0, cudaStreamPerThread>>>(1));
    OK(cudaStreamDestroy(stream));
}
TEST(blanks_and_comments_between_the_brackets) {
    set // the kernel
        <<< // configuration
            1, /* >>> */ 1 // <<<
        >>> /* arguments: */ (
            5);
    EXPECT(result() == 5);
}

// ---- the arguments ----

struct __attribute__((packed)) Packed {
    char c;
    int i;
    double d;
};
struct Bits {
    int three : 3;
    unsigned seven : 7;
};
struct Pair {
    int a, b;
};
struct Text {
    char text[8];
};
enum Color { red = 3 };
enum class Scoped : char { blue = 4 };
__global__ void pair(Pair p, int n) {
    out[0] = p.a + p.b + n;
}
__global__ void pointers(int *a, const char *b, void (*c)(int), Pair *d) {
    out[0] = !a + !b + !c + !d;
}
__global__ void text(Text t) {
    out[0] = t.text[0];
}
__global__ void color(Color c, Scoped s) {
    out[0] = c + (int)s;
}
#ifndef __NVCC__ // nvcc 13.0 gives the kernel and its launch different names (M4Pairi), so they do not link
__global__ void member(int Pair::*m) {
    out[0] = (Pair{5, 6}).*m;
}
#endif
__global__ void constant(const int a, const Pair b) {
    out[0] = a + b.b;
}
__global__ void modified(int a, Pair b) {
    a++;
    b.a += threadIdx.x;
    atomicAdd(out, a + b.a);
}
__global__ void nothing(void) {
    out[0] = 6;
}
TEST(members_of_packed_structures_and_bit_fields) {
    Packed p = {1, 2, 3.5};
    Bits b = {1, 100};
    GIVES(107, sum<<<1, 1>>>(p.c, p.i, p.d, b.three, b.seven));
    GIVES(105, defaults<<<1, 1>>>(p.i, p.d, b.seven));
}
TEST(null_pointers_and_braces) {
    GIVES(4, pointers<<<1, 1>>>(0, NULL, nullptr, {}));
    GIVES(4, pointers<<<1, 1>>>({}, {nullptr}, {NULL}, {0}));
    GIVES(6, pair<<<1, 1>>>({1, 2}, {3}));
    GIVES(9, pair<<<1, 1>>>({.a = 4, .b = 5}, 'a' - 'a'));
    GIVES('a', text<<<1, 1>>>({"abc"}));
    GIVES('<', text<<<1, 1>>>({{'<', '<', '<'}}));
}
TEST(other_types_of_arguments) {
    GIVES(7, color<<<1, 1>>>(red, Scoped::blue));
#ifndef __NVCC__
    GIVES(6, member<<<1, 1>>>(&Pair::b));
#endif
    constant<<<1, 1>>>(1, {2, 3});
    EXPECT(result() == 4);
    set<<<1, 1>>>(0);
    GIVES(8 + 6, modified<<<1, 4>>>(1, {0, 0}));
    GIVES(6, nothing<<<1, 1>>>());
    GIVES(8, set<<<1, 1>>>([](int x) { return x + 1; }(7)));
    GIVES(9, set<<<1, 1>>>((set<<<1, 1>>>(9), result())));
}

// Conversions of arguments run on the host, once a launch.
static int conversions;
struct From {
    int value;
    From(int v) : value(v) { conversions++; }
};
struct To {
    operator int() const { return conversions++, 7; }
};
struct Greedy {
    int value;
    Greedy() = default;
    Greedy(const Greedy &) = default;
    template <class T> Greedy(T &&) : value(0) { conversions++; }
};
__global__ void from(From f) {
    out[0] = f.value;
}
__global__ void greedy(Greedy g) {
    out[0] = g.value;
}
TEST(conversions_run_once) {
    conversions = 0;
    from<<<2, 8>>>(5);
    EXPECT(result() == 5 && conversions == 1);
    conversions = 0;
    set<<<2, 8>>>(To());
    EXPECT(result() == 7 && conversions == 1);
    Greedy g;
    g.value = 9;
    const Greedy same = static_cast<const Greedy &>(g);
    conversions = 0;
    greedy<<<2, 8>>>(same);
    EXPECT(result() == 9 && conversions == 0);
}
