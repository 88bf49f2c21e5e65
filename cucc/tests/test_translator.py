# SPDX-License-Identifier: MIT
"""cu2cpp, the translator: the text that it writes for declarations. Kernels, shared variables, volatile and conversions are programs in
constructs/ and units/, launches in test_translator_launches.py, what is refused in test_translator_errors.py."""
import re
import subprocess

import pytest

from tools import execute, pairs, rows, squeeze


# ---- shared memory ----


def test_shared_at_file_scope(translate):
    head = f'typedef int cu_t_x[3]; [[maybe_unused]] static cu_t_x &cu_s_x() {{ return ::cuda_cpu::shared<cu_t_x, cu_owner>([] {{}}, "x"); }}'
    use = " auto &x = cu_s_x(); {"
    stay = """@int f() { return a.x + a->x + d::x + y; } | @int f(int x) { return x; } | @int A::f() { return x; } | int f() { return x; }
        struct A : B { @int f() { return x; } }; | struct A { @int f() { return x; } int x; };
        @int f() { return ::A::x + A<int>::x + d->x; }"""  # the base class may have a member of this name
    for source, expected in (
        *[(source, source.replace("@", "")) for source in rows(stay)],
        ("@int f() { return x[0]; }", "int f() {" + use + " return x[0]; } }"),
    ):
        source = source.replace("@", "__device__ ")
        assert squeeze(translate("__shared__ int x[3]; " + source)) == squeeze(head + expected)
        both = "namespace a::b { %s } namespace a { inline namespace b { namespace { %s } } }"
        assert squeeze(translate(both % ("__shared__ int x[3];", source))) == squeeze(both % (head, expected))
        apart = "namespace a { %s } namespace c { %s }"
        assert "cu_s_x();" not in translate(apart % ("__shared__ int x[3];", source))
    function = "__device__ int f() { return %s; }"
    for name, expected in ("::x", "::cu_s_x()"), ("b::x", "b::x"):
        assert f"return {expected};" in translate(f"__shared__ int x; {function % name}")
    for name in "::a::x", "a::x":
        source = f"namespace a {{ volatile __shared__ int x; }} {function % name}"
        assert f"::cuda_cpu::in_step({name[:-1]}cu_s_x())" in translate(source)
    inner = "namespace b { __shared__ int x; __device__ void f() { x; } }"  # hides the outer one
    assert translate(f"namespace a {{ __shared__ int x; {inner} }}").count("auto &x = cu_s_x(); {") == 1


def test_asm_and_clock_of_the_host_stay(translate):
    texts = """void f() { asm volatile("rdtsc" : "=A"(x)); } | asm(".globl x"); | int f() asm("g"); | int t = clock();"""
    for source in rows(texts):
        assert translate("__global__ void k();" + source) == " void k();" + source
    out = translate("__device__ int f() { return clock() + a.clock(); }")
    assert out == " int f() { return (clock_t)::clock64() + a.clock(); }"


# ---- __device__, __constant__, __managed__ ----

FUNCTIONS = rows(
    """
    @int f(int); | @void f() { } | @inline float2 operator+(float2 a, float2 b) { return a; } | static @__host__ int f();
    __host__ @constexpr T f() { return 1; } | @auto f() -> int; | @float2 f(float2 a); | @unsigned f() noexcept; | void f() @;
    extern "C" @int f(int); | extern "C" @void f() { } | extern @int f(int); | @int (*f(int))(float); | @int (f)(int);
    static @A<int> (f)(int x) { return x; } | @const char *f(const char *s, int n); | template <> @int f<int>(int);
    template <class T, int N = 3> @T f(T); | template @int f<int>(int); | @ns::T<int, 3> f(A<int, 3> a); | @Foo foo();
    @A::A(int x) : a(x) { } | @A<T>::A() { } | @A::~A() { } | @A::operator float() const { return 1; } | @bool operator<(A a, A b);
    @A &A::operator=(const A &) { return *this; } | @bool operator()(int); | @void *operator new(size_t);
    @T operator""_x(long double); | @Foo foo(Bar); | @Foo foo(Bar *); | @Foo foo(Bar &b); | @Foo foo(Bar, Baz); | @Foo foo(int);
    @Foo foo(const Bar b); | @Foo foo(ns::Bar<3> b); | @Foo foo(T...); | @Foo foo(A b[3]); | @Foo foo(A[]); | @Foo foo(...);
    @Foo foo(int (*)(int)); | @Foo foo(T (*f)(int)); | @Foo foo(struct A a); | @decltype(x) f(int); | @decltype(auto) f(int);
    @__attribute__((noinline)) int f(int); | @int __attribute__((noinline)) f(int); | [[nodiscard]] @int f(int);
    @[[nodiscard]] int f(int); | __forceinline__ @T f(T a); | @__launch_bounds__(256) void f(); | @struct S *f(struct S *s);
    __attribute__((always_inline)) inline @float f(float x) { return x; } | @unsigned long long int f(); | @T &&f(T &&);
    @int f(int a = g(3)); | @int A::f() const; | template <class T> template <class U> @T A<T>::f(U); | @int f() = delete;
    typedef @int F(int); | @struct S { int a; }; | auto l = [] @(int x) { return x; }; | auto l = [=] @{ return 1; };
    auto l = [] @(int x) mutable -> int { return x; }; | template <typename F = A<B<C<int>>>> @void f(F); | @int f(int), g(int);
    @void f() try { } catch (...) { } | template <int N, enable_if_t<N<2, int> = 0> @void f(); | struct A { @int f(); };
    @void f(bool b = A<int, (3 > 2)>::v); | float *@f(int); | template <class T> T const &@__host__ f(const T &a) { return a; }
    template <class T> requires (sizeof(T) > 2) && A<T> @void f(T); | void f() { g([=] @(int i) { return i < 3; }, [] @{ }); }
    void f() { @int g(int); } | template <class T> @void f(T a) requires requires { a; } { }
    """
)
MEMBERS = rows(
    """
    @A(); | @A(int x) : x(x) { } | @explicit A(B b); | explicit @A(B b); | @~A() { } | @virtual ~A() = default; | @A(T *p);
    @A *operator->(); | @A operator,(A a) const; | template <class T> @T operator>>(T k);
    @operator float() const; | @explicit operator bool() const { return x; } | @A &operator=(const A &) = default;
    @int f() const; | static @int f(int); | @static int f(int x) { return x; } | friend @A operator+(A a, A b);
    @friend bool operator==(const A &, const A &); | template <class T> @T f(T a); | @auto f() -> int; | virtual @void f() = 0;
    @constexpr A(const A &) = default; | @bool operator<(const A &) const; | @T &operator[](int i) { return p[i]; }
    public: @int f(); | private: int a; protected: @A();
    """
)


@pytest.mark.parametrize("source", [*FUNCTIONS, *MEMBERS])
def test_device_functions_lose_the_word(translate, source):
    contexts = "%s", "namespace a { %s }", "int x; %s", "struct B { int x; } %s"
    if source in MEMBERS:
        contexts = rows(
            """
            struct A { %s }; | template <class T> class A : public B<T> { int x; %s }; | void f() { struct A final { %s }; }
            template <> struct A<int (*)(int)> { %s }; | typedef struct __attribute__((x)) A { void g() { } %s } A_t;
            """
        )
    for context in contexts[:3]:
        expected = context % source.replace("@", " ").replace("__host__", "")
        assert translate(context % source.replace("@", "__device__ ")) == expected


def section(name):
    return f'__attribute__((section("cuda_{name}")))'


VARIABLES = rows(
    """
    @int x; | @float x = 3.0f, y[4]; | static @int x[3]; | @static int x; | @int *p; | @int (*fptr)(int); | @float (*p)[4];
    @int (*fptr[3])(int) = {a, b, c}; | @int a{3}; | @Foo foo(3); | @Foo foo(-x); | @Foo foo("a", 2); | @Foo foo(a + b);
    @Foo foo(bar(3)); | @Foo foo(Bar{3}); | @Foo foo(float(3)); | @Foo foo(a.b), bar; | @Foo foo(a[3]); | @Foo foo(&x);
    @Foo foo(sizeof(int)); | @std::vector<int> v; | @A<int, 3> x{1}; | @A<B<C<int>>> x[4]; | @struct S s; | @int A::x = 3;
    @struct S { int a; } s = {1}; | @enum E { a, b } e; | @int A<int>::x; | template <> @int A<int>::x = 3; | @volatile int x;
    extern @int x = 3; | volatile @int x; | @unsigned long long x; | float @x[3]; | @ns::T x; | @int A::*p; | @void (A::*p)(int);
    @T *p, *q; | @__attribute__((aligned(16))) float x[4]; | @float x[4] __attribute__((aligned(16))); | alignas(16) @float x[4];
    @const char *p; | @const int (*p)[3]; | [[maybe_unused]] @int x; | @auto x = [] { return 1; }(); | @int x = sizeof(A<int, 3>), y;
    @bool b = a < c; | @int &r = x; | @int (*(*x)[3])(int); | struct A { static @int x; }; | void f() { static @int x; }
    """
)
CONSTANTS = rows(
    """
    @const char *const p = 0; | @const float x[2] = {1, 2}; | @constexpr float x = 1; | static const @int x = 1; | @float const x = 1;
    @int (*const f)(int) = g; | struct A { @static const float x[2]; }; | @const int a = 1, b = 2;
    """
)


@pytest.mark.parametrize("source", [*VARIABLES, *CONSTANTS])
def test_device_variables(translate, source):
    for context in "%s", "namespace a { namespace { %s } }", 'extern "C" { %s }', "void f() { } %s":
        for name in "device", "constant", "managed":
            expected = section(name + "_ro" * (source in CONSTANTS)) + " "
            out = translate(context % source.replace("@", f"__{name}__ "))
            assert out == context % source.replace("@", expected)


# D, C and M stand for the sections.
WORDS = pairs(
    """
    __device__ __constant__ float x; -> C float x;
    __constant__ static __device__ float x; -> C static float x;
    __managed__ __device__ int m = 1; -> M int m = 1;
    extern __device__ int x; -> extern int x;
    extern __constant__ float x[3]; -> extern float x[3];
    extern "C" __device__ int x; -> extern "C" int x;
    struct A { static constexpr __device__ int x = 1; }; -> struct A { static constexpr int x = 1; };
    inline __device__ const int x = 1; -> inline const int x = 1;
    template <class T> __device__ constexpr T x = 1; -> template <class T> constexpr T x = 1;
    void f() { extern __device__ int x; } -> void f() { extern int x; }
    __device__ int x = [] __device__ (int i) { return i; }(3); -> D int x = [] (int i) { return i; }(3);
    __device__ const int a = 1, *b, c[2] = {}; -> const int a R = 1, *b D, c[2] R = {};
    """
)


@pytest.mark.parametrize("source,expected", WORDS)
def test_words_of_memory_spaces(translate, source, expected):
    sections = {"D": "device", "C": "constant", "M": "managed", "R": "device_ro"}
    expected = re.sub(r"(?<!\")\b[DCMR]\b", lambda m: section(sections[m[0]]), expected)
    assert squeeze(translate(source)) == squeeze(expected)


def test_whole_program(translate):
    """-w: names of device code get internal linkage, unless another file can use them."""
    static = "static __attribute__((unused)) "
    for source, expected in (
        ("__device__ int f();", static + "int f();"),
        ("__device__ int x;", static + section("device") + " int x;"),
        ("float *__device__ f();", static + "float * f();"),
        ("extern __device__ int x; __device__ int x = 1;", f"extern int x; {section('device')} int x = 1;"),
        ("extern __device__ int g(); __device__ int g() { }", "extern int g(); int g() { }"),
        ("extern __device__ int g(); __device__ int f();", f"extern int g(); {static}int f();"),
        *(
            (text, text.replace("__device__", "").replace("__host__", ""))
            for text in rows(
                """
                static __device__ int f(); | inline __device__ int f(); | __device__ constexpr int f(); | __device__ int A::f();
                template <class T> __device__ int f(); | extern "C" __device__ int f(); | struct A { __device__ int f(); };
                __host__ __device__ int f(); | __device__ A operator+(A, A);
                """
            )
        ),
    ):
        assert squeeze(translate(source, "-w")) == squeeze(expected)


# ---- shifts ----

LEFT, RIGHT = "<< ::cuda_cpu::ShiftLeft() <<", "<< ::cuda_cpu::ShiftRight() >>"
SHIFTS = pairs(
    f"""
    x = a << 3 + b << c; -> x = a {LEFT} 3 + b {LEFT} c;
    for (; i < n >> 1;) x = (a + b) >>c[1]>> 'd'; -> for (; i < n {RIGHT} 1;) x = (a + b) {RIGHT}c[1]{RIGHT} 'd';
    int a[1 << 3]; enum {{ b = 2 << 1 }}; A<4 << 1> c; -> int a[1 {LEFT} 3]; enum {{ b = 2 {LEFT} 1 }}; A<4 {LEFT} 1> c;
    A<B<int>> a; f<A<B<T *>>>(b); A<(n >> 1), B<int>> c; -> A<B<int>> a; f<A<B<T *>>>(b); A<(n {RIGHT} 1), B<int>> c;
    x = i < n && a[0] < b >> c; f([]<class T, class U = A<T>>() {{}}); -> x = i < n && a[0] < b {RIGHT} c; f([]<class T, class U = A<T>>() {{}});
    x = y ? a < b >> c : n; -> x = y ? a < b {RIGHT} c : n;
    (a << ... << b); operator<<(a, b); s.operator>>(b); -> (a << ... << b); operator<<(a, b); s.operator>>(b);
    if (a) p->q[i].x >>= 1, y <<= 2; -> if (a) p->q[i].x = p->q[i].x << ::cuda_cpu::AssignRight() = 1, y = y << ::cuda_cpu::AssignLeft() = 2;
    *p++ <<= n; f()[1] >>= m; q[i++].x <<= n; -> *p++ << ::cuda_cpu::ChangeLeft() = n; f()[1] << ::cuda_cpu::ChangeRight() = m; q[i++].x << ::cuda_cpu::ChangeLeft() = n;
    """
)


@pytest.mark.parametrize("source,expected", SHIFTS)
@pytest.mark.parametrize("word", ["__device__", "__host__ __device__"])
def test_shifts(translate, word, source, expected):
    assert squeeze(translate(f"{word} void f() {{ {source} }}")) == squeeze(f"void f() {{ {expected} }}")


def test_shifts_of_the_host_stay(translate):
    source = "int x = 1 << n; void f(int a = 1 << 2) { x <<= y >> 3; } template <int n = (1 >> 2)> void g();"
    assert translate(source) == source
    lambdas = translate("void f() { a << b; auto g = [] __device__ (int n) { return n << 1; }; a << b; }")
    assert squeeze(lambdas) == squeeze(
        f"void f() {{ a << b; auto g = [] (int n) {{ return n {LEFT} 1; }}; a << b; }}"
    )


# ---- lines and columns ----

COLUMNS = r"""
#define TWICE(x) ((x) + (x))
#define LONG(x) do { int a_long_name_that_is_in_the_macro = (x); (void)a_long_name_that_is_in_the_macro; } while (0)
template <class T> __global__ void k(T *at_1, int at_2) {
\t__shared__ float x[32], y; at_3;  int at_4, at_5 = 1;
    /* at_6 __shared__ */ at_6 += L"at_7"[0]; "at_7" "at_8"_at9; at_10>>=at_11>>2; // at_10
    extern __shared__ int z[]; at_12; TWICE(at_13); int at_14; LONG(at_15); at_16;
}
void f() {
    k<<<1, at_17>>>(at_18, at_19); at_20;
    ns::
        k<int><<<dim3(at_21,
        at_22), at_23>>>(at_24,
                         at_25); at_26->at_27.at_28;
    __device__ void g(int at_29); at_30;
}
"""


def test_tokens_stay_at_their_lines_and_columns(translate, translator, tmp_path):
    """Whatever is inserted or expanded before a word, the compiler finds the word at its line and column of the .cu."""
    source = tmp_path / "a.cu"
    source.write_text(COLUMNS)
    text = execute("g++", "-E", "-x", "c++", source).out
    out = subprocess.run([translator, "-"], input=text, check=True, capture_output=True, text=True).stdout
    found, line, here = {}, 0, False
    for row in out.split("\n"):
        if mark := re.match(r'# (\d+) "(.*?)"', row):
            line, here = int(mark[1]) - 1, mark[2] == str(source)
            continue
        line += 1
        for word in re.finditer(r"(?<![\w])at_\d+", row):
            found.setdefault(word[0], []).append((line, word.start()) if here else None)
    expected = {}
    for number, row in enumerate(COLUMNS.split("\n"), 1):
        for word in re.finditer(r"(?<!/\* )(?<!// )(?<!\w)at_\d+", row):
            expected[word[0]] = (number, word.start())
    assert len(expected) == 29
    assert {word: place for word, place in expected.items() if place not in found[word]} == {}
    assert 'L"at_7"' in out and '"_at9' in out
