// SPDX-License-Identifier: MIT
// clang-format off
// Launches in places, of kernels and with arguments that need more than the right text to work. All is legal for nvcc.
#include "results.h"
#include <vector>

__global__ void add(int value) {
    atomicAdd(out, value);
}
template <class T> __global__ void generic(T value) {
    out[0] = (int)(long long)value;
}
template <int N> __global__ void number(int) {
    out[0] = N;
}
template <class... T> __global__ void sum(T... values) {
    out[0] = (0 + ... + (int)values);
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
// ---- where a launch stands ----

static int at_start = (set<<<1, 1>>>(21), result());
static const int at_start_2 = [] { return set<<<1, 1>>>(22), result(); }();
static int by_default(int n = (set<<<1, 1>>>(23), result())) {
    return n;
}
TEST(initial_values_and_default_arguments) {
    EXPECT(at_start == 21 && at_start_2 == 22 && by_default() == 23 && by_default(1) == 1);
}

// ---- the kernel ----

template <class T> struct Launcher {
    template <class U> static void run(U value) {
        generic<U><<<1, 1>>>(value);
    }
    template <int N> static void launch() { number<N><<<1, 1>>>(0); }
    void dependent() { Launcher<T *>::template launch<9>(); }
};
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
    GIVES(12, launch_parameter<set>(12));
    GIVES(14, launch_auto<set>(14));
    set<<<1, 1>>>(0);
    GIVES(3, launch_all(add, &add, *add));
}
typedef void Kernel(int);
TEST(pointers) {
    Kernel &r = set, *p = set, *const *pp = &p;
    GIVES(3, r<<<1, 1>>>(3));
    GIVES(4, (**pp)<<<1, 1>>>(4));
    GIVES(8, static_cast<void (*)(int)>(generic)<<<1, 1>>>(8));
    GIVES(1, ((void (*)(int))overloaded)<<<1, 1>>>(9));
}
TEST(overloads_and_defaults) {
    GIVES(2, overloaded<<<1, 1>>>(1.0f));
    GIVES(3, overloaded<<<1, 1>>>(nullptr, 0));
    GIVES(321, defaults<<<1, 1>>>(1));
}

// ---- the configuration ----

TEST(configurations) {
    set<<<1, 1>>>(0);
    GIVES(8, add<<<dim3(2, 2), dim3(2)>>>(1));
    GIVES(16, add<<<dim3{1, 1, 2}, {2, 2}>>>(1));
    GIVES(17, add<<<1, [] { return 1; }(), 0, NULL>>>(1));
    GIVES(18, add<<<1, std::vector<int>{1}[0], 0, cudaStreamPerThread>>>(1));
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
    GIVES(12, set<<<(set<<<1, 1>>>(1), result()), 1>>>(10), add<<<1, 1>>>(2));
}

// A constructor that would take any argument does not take a copy.
static int conversions;
struct Greedy {
    int value;
    Greedy() = default;
    Greedy(const Greedy &) = default;
    template <class T> Greedy(T &&) : value(0) { conversions++; }
};
__global__ void greedy(Greedy g) {
    out[0] = g.value;
}
TEST(copies_are_not_conversions) {
    Greedy g;
    g.value = 9;
    const Greedy same = static_cast<const Greedy &>(g);
    conversions = 0;
    greedy<<<2, 8>>>(same);
    EXPECT(result() == 9 && conversions == 0);
}
