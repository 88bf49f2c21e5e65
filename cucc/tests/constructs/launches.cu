// SPDX-License-Identifier: MIT
// clang-format off
// Launches: every place and form of <<<…>>> that C++ allows. All is legal for nvcc.
#include "results.h"
#include <vector>

__global__ void set(int value) {
    out[0] = value;
}
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

TEST(comma) {
    set<<<1, 1>>>(1), set<<<1, 1>>>(2);
    EXPECT(result() == 2);
}
TEST(conditional) {
    bool yes = true;
    yes ? set<<<1, 1>>>(3) : set<<<1, 1>>>(4);
    EXPECT(result() == 3);
    !yes ? set<<<1, 1>>>(3) : yes ? set<<<1, 1>>>(5) : none<<<1, 1>>>();
    EXPECT(result() == 5);
    yes ? (set<<<1, 1>>>(6), void()) : void();
    EXPECT(result() == 6);
}
TEST(cast_to_void) {
    (void)set<<<1, 1>>>(7);
    EXPECT(result() == 7);
    static_cast<void>((set<<<1, 1>>>(8), 0));
    EXPECT(result() == 8);
}
TEST(in_parentheses) {
    ((set<<<1, 1>>>((9))));
    EXPECT(result() == 9);
    (set)<<<1, 1>>>(10);
    EXPECT(result() == 10);
}
static void returned() {
    return set<<<1, 1>>>(11);
}
TEST(return_of_a_launch) {
    returned();
    EXPECT(result() == 11);
}
TEST(in_a_lambda) {
    [] { set<<<1, 1>>>(12); }();
    EXPECT(result() == 12);
    auto launch = [&](auto value) { return generic<<<1, 1>>>(value); };
    launch(13.5);
    EXPECT(result() == 13);
}
TEST(every_part_of_a_for) {
    int i = 0;
    for (set<<<1, 1>>>(0); i < 3; i++, add<<<1, 1>>>(i))
        ;
    EXPECT(result() == 6);
}
TEST(init_of_if_and_switch) {
    if (set<<<1, 1>>>(14); result() == 14)
        add<<<1, 1>>>(1);
    else
        add<<<1, 1>>>(2);
    EXPECT(result() == 15);
    switch (add<<<1, 1>>>(1); result()) {
    case 16:
        set<<<1, 1>>>(17);
        break;
    default:
        set<<<1, 1>>>(0);
    }
    EXPECT(result() == 17);
}
TEST(conditions) {
    int n = 0;
    while (set<<<1, 1>>>(n), n < 3)
        n++;
    EXPECT(result() == 3);
    do
        add<<<1, 1>>>(1);
    while (add<<<1, 1>>>(1), --n);
    EXPECT(result() == 9);
}
TEST(range_for) {
    set<<<1, 1>>>(0);
    for (int v : {1, 2, 3})
        add<<<1, 1>>>(v);
    for (auto [a, b] : std::vector<std::pair<int, int>>{{1, 2}, {3, 4}})
        add<<<a, b>>>(1);
    EXPECT(result() == 6 + 2 + 12);
}
TEST(labels_and_goto) {
    int n = 0;
again:
    set<<<1, 1>>>(++n);
    if (n < 3)
        goto again;
    EXPECT(result() == 3);
    switch (n)
    case 3:
        set<<<1, 1>>>(4);
    EXPECT(result() == 4);
}
TEST(dangling_else) {
    if (A == 1)
        if (B == 1)
            set<<<1, 1>>>(1);
        else
            set<<<1, 1>>>(2);
    EXPECT(result() == 2);
}
TEST(try_and_catch) {
    try {
        set<<<1, 1>>>(5);
        throw 1;
    } catch (...) {
        add<<<1, 1>>>(1);
    }
    EXPECT(result() == 6);
}
TEST(attribute_of_a_statement) {
    [[maybe_unused]] int x = 3;
    if (x == 3)
        set<<<1, 1>>>(x);
    EXPECT(result() == 3);
}
static int at_start = (set<<<1, 1>>>(21), result());
static const int at_start_2 = [] { return set<<<1, 1>>>(22), result(); }();
TEST(initial_value_at_namespace_scope) {
    EXPECT(at_start == 21 && at_start_2 == 22);
}
static int by_default(int n = (set<<<1, 1>>>(23), result())) {
    return n;
}
TEST(default_argument) {
    EXPECT(by_default() == 23 && by_default(1) == 1);
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
    Member::own();
    EXPECT(result() == 30);
    Member(1).defined_later();
    EXPECT(result() == 28);
}
auto trailing() -> struct Member;
auto trailing() -> struct Member {
    set<<<1, 1>>>(33);
    return Member(1);
}
auto trailing_pointer(int *p) -> int (*)[4] {
    set<<<1, 1>>>(34);
    return (int(*)[4])p;
}
TEST(trailing_return_types) {
    trailing();
    trailing_pointer(nullptr);
    EXPECT(result() == 34);
}
static int tried() try {
    set<<<1, 1>>>(35);
    return result();
} catch (int) {
    return 0;
}
TEST(function_try_block) {
    EXPECT(tried() == 35);
}

// ---- the kernel ----

TEST(names) {
    ::set<<<1, 1>>>(1);
    outer::inner::k<<<1, 1>>>(2);
    EXPECT(result() == 20);
    ::outer::alias::k<<<1, 1>>>(3);
    EXPECT(result() == 30);
    using outer::inner::k;
    k<<<1, 1>>>(4);
    EXPECT(result() == 40);
    namespace o = outer;
    o::inner::k<<<1, 1>>>(5);
    EXPECT(result() == 50);
}
TEST(template_arguments) {
    generic<outer::Box<outer::Box<int>>*><<<1, 1>>>(nullptr);
    EXPECT(result() == 0);
    number<outer::Box<outer::Box<double>>::size><<<1, 1>>>(0);
    EXPECT(result() == 1);
    number<(1 > 0)><<<1, 1>>>(0);
    EXPECT(result() == 1);
    number<(8 >> 1)><<<1, 1>>>(0);
    EXPECT(result() == 4);
    number<1 << 3><<<1, 1>>>(0);
    EXPECT(result() == 8);
    number<sizeof(outer::Box<int>)><<<1, 1>>>(0);
    EXPECT(result() == 1);
    number<'>'><<<1, 1>>>(0);
    EXPECT(result() == '>');
    number<1'000><<<1, 1>>>(0);
    EXPECT(result() == 1000);
    number<A == 1 ? 5 : 6><<<1, 1>>>(0);
    EXPECT(result() == 5);
    number<int{7}><<<1, 1>>>(0);
    EXPECT(result() == 7);
}
TEST(comparisons_as_template_arguments) {
    truth<A<B><<<1, 1>>>();
    EXPECT(result() == 1);
    truth<B<A><<<1, 1>>>();
    EXPECT(result() == 0);
    truth<(A > B)><<<1, 1>>>();
    EXPECT(result() == 0);
    truth<A<outer::Box<int>::size><<<1, 1>>>();
    EXPECT(result() == 1);
    truth<A <= B><<<1, 1>>>();
    EXPECT(result() == 1);
}
TEST(packs) {
    sum<<<1, 1>>>();
    EXPECT(result() == 0);
    sum<<<1, 1>>>(1, 2.5, 'a', 4ull);
    EXPECT(result() == 1 + 2 + 'a' + 4);
    sum<int, int><<<1, 1>>>(3, 4.9);
    EXPECT(result() == 7);
    listed<int, 1, 2, 3><<<1, 1>>>();
    EXPECT(result() == 6);
    listed<char, 'a'><<<1, 1>>>();
    EXPECT(result() == 'a');
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
    Launcher<int>::run(6);
    EXPECT(result() == 6);
    Launcher<char>().dependent();
    EXPECT(result() == 9);
    launch_kernel(set, 10);
    EXPECT(result() == 10);
    launch_kernel(&generic<double>, 11.5);
    EXPECT(result() == 11);
    launch_parameter<set>(12);
    EXPECT(result() == 12);
    launch_parameter<generic<int>>(13);
    EXPECT(result() == 13);
    launch_auto<set>(14);
    EXPECT(result() == 14);
    set<<<1, 1>>>(0);
    launch_all(add, &add, *add);
    EXPECT(result() == 3);
}
typedef void Kernel(int);
using Pointer = void (*)(int);
TEST(pointers) {
    void (*p)(int) = set;
    Pointer q = &set, table[2] = {set, add};
    Kernel &r = set;
    Kernel *const *pp = &p;
    p<<<1, 1>>>(1);
    EXPECT(result() == 1);
    (*q)<<<1, 1>>>(2);
    EXPECT(result() == 2);
    r<<<1, 1>>>(3);
    EXPECT(result() == 3);
    (**pp)<<<1, 1>>>(4);
    EXPECT(result() == 4);
    table[1]<<<1, 1>>>(5);
    EXPECT(result() == 9);
    (A == 1 ? set : add)<<<1, 1>>>(6);
    EXPECT(result() == 6);
    (0, set)<<<1, 1>>>(7);
    EXPECT(result() == 7);
    static_cast<void (*)(int)>(generic)<<<1, 1>>>(8);
    EXPECT(result() == 8);
    ((void (*)(int))overloaded)<<<1, 1>>>(9);
    EXPECT(result() == 1);
    struct {
        Pointer k;
        Pointer get() { return k; }
        Pointer operator[](int) { return k; }
    } s = {set}, *t = &s;
    s.k<<<1, 1>>>(10);
    EXPECT(result() == 10);
    t->k<<<1, 1>>>(11);
    EXPECT(result() == 11);
    s.get()<<<1, 1>>>(12);
    EXPECT(result() == 12);
    t->get()<<<1, 1>>>(13);
    EXPECT(result() == 13);
    s[0]<<<1, 1>>>(14);
    EXPECT(result() == 14);
}
TEST(overloads_and_defaults) {
    overloaded<<<1, 1>>>(1);
    EXPECT(result() == 1);
    overloaded<<<1, 1>>>(1.0f);
    EXPECT(result() == 2);
    overloaded<<<1, 1>>>(nullptr, 0);
    EXPECT(result() == 3);
    overloaded<<<1, 1>>>(0, 0);
    EXPECT(result() == 3);
    defaults<<<1, 1>>>(1);
    EXPECT(result() == 321);
    defaults<<<1, 1>>>(1, 2);
    EXPECT(result() == 303);
}

// ---- the configuration ----

TEST(configurations) {
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    set<<<1, 1>>>(0);
    add<<<dim3(2, 2), dim3(2)>>>(1);
    EXPECT(result() == 8);
    add<<<dim3{1, 1, 2}, {2, 2}>>>(1);
    EXPECT(result() == 16);
    add<<<{2}, 3>>>(1);
    EXPECT(result() == 22);
    add<<<(2), (1 > 0 ? 2 : 1)>>>(1);
    EXPECT(result() == 26);
    add<<<8 >> 2, 1 << 1>>>(1);
    EXPECT(result() == 30);
    add<<<16>>2, 64>>5>>>(1);
    EXPECT(result() == 38);
    add<<<1, 1, 0, stream>>>(1);
    add<<<1, 1, sizeof(std::vector<std::vector<int>>), stream>>>(1);
    EXPECT(result() == 40);
    add<<<1, 1, 0, 0>>>(1);
    add<<<1, 1, 0, nullptr>>>(1);
    add<<<1, 1, 0, NULL>>>(1);
    add<<<1, 1, 0, cudaStreamPerThread>>>(1);
    EXPECT(result() == 44);
    add<<<1, outer::Box<outer::Box<int>>::size>>>(1);
    add<<<std::vector<std::vector<int>>(1).size(), 1>>>(1);
    add<<<1, [] { return 1; }()>>>(1);
    add<<<1, std::vector<int>{1}[0]>>>(1);
    EXPECT(result() == 48);
    dim3 grid = 2;
    add<<<grid.x, grid.y>>>(1);
    add<<<grid, A < B>>>(1);
    EXPECT(result() == 52);
    OK(cudaStreamDestroy(stream));
}
TEST(blanks_and_comments_between_the_brackets) {
    set // the kernel
        <<< // configuration
            1, /* >>> */ 1 // <<<
        >>> /* arguments: */ (
            5);
    EXPECT(result() == 5);
    set <<< 1,1 >>> (6);
    EXPECT(result() == 6);
    number
    <
    7
    >
    <<<1,
1>>>
    (
    0
    )
    ;
    EXPECT(result() == 7);
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
__global__ void array(const int p[3]) {
    out[0] = !p;
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
__global__ void unnamed(int, double, Pair) {
    out[0] = 5;
}
__global__ void nothing(void) {
    out[0] = 6;
}
TEST(members_of_packed_structures_and_bit_fields) {
    Packed p = {1, 2, 3.5};
    Bits b = {1, 100};
    sum<<<1, 1>>>(p.c, p.i, p.d, b.three, b.seven);
    EXPECT(result() == 107);
    defaults<<<1, 1>>>(p.i, p.d, b.seven);
    EXPECT(result() == 105);
    generic<<<1, 1>>>(b.seven);
    EXPECT(result() == 100);
    generic<<<1, 1>>>(p.i);
    EXPECT(result() == 2);
}
TEST(null_pointers_and_braces) {
    pointers<<<1, 1>>>(0, NULL, nullptr, {});
    EXPECT(result() == 4);
    pointers<<<1, 1>>>((NULL), (0), (nullptr), (Pair *)0);
    EXPECT(result() == 4);
    pointers<<<1, 1>>>({}, {nullptr}, {NULL}, {0});
    EXPECT(result() == 4);
    pair<<<1, 1>>>({1, 2}, {3});
    EXPECT(result() == 6);
    pair<<<1, 1>>>({}, {});
    EXPECT(result() == 0);
    pair<<<1, 1>>>(Pair{1, 2}, int{});
    EXPECT(result() == 3);
    pair<<<1, 1>>>({.a = 4, .b = 5}, 'a' - 'a');
    EXPECT(result() == 9);
    text<<<1, 1>>>({"abc"});
    EXPECT(result() == 'a');
    text<<<1, 1>>>({{'<', '<', '<'}});
    EXPECT(result() == '<');
}
TEST(other_types_of_arguments) {
    color<<<1, 1>>>(red, Scoped::blue);
    EXPECT(result() == 7);
    array<<<1, 1>>>(nullptr);
    EXPECT(result() == 1);
#ifndef __NVCC__
    member<<<1, 1>>>(&Pair::b);
    EXPECT(result() == 6);
#endif
    constant<<<1, 1>>>(1, {2, 3});
    EXPECT(result() == 4);
    set<<<1, 1>>>(0);
    modified<<<1, 4>>>(1, {0, 0});
    EXPECT(result() == 8 + 6);
    unnamed<<<1, 1>>>(1, 2, {});
    EXPECT(result() == 5);
    nothing<<<1, 1>>>();
    EXPECT(result() == 6);
    set<<<1, 1>>>([](int x) { return x + 1; }(7));
    EXPECT(result() == 8);
    set<<<1, 1>>>((set<<<1, 1>>>(9), result()));
    EXPECT(result() == 9);
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
