# SPDX-License-Identifier: MIT
"""cu2cpp, the translator: launches, and the text that stays as it is. Programs that use the constructs are in constructs/."""
import re
import subprocess

import pytest

from tools import HERE, cucc, execute, rows, squeeze


# ---- programs ----


@pytest.mark.parametrize("source", sorted((HERE / "constructs").glob("*.cu")), ids=lambda path: path.stem)
def test_constructs(source, tmp_path):
    """Every construct that nvcc accepts runs and gives the right result. All cases run in one process: launches.cu has launches
    before main, whose worker threads a child process would lack."""
    standard = "-std=c++20" if source.stem == "cxx20" else "-std=c++17"
    assert cucc(standard, "-w", "-O0", "--extended-lambda", source, "-o", tmp_path / "a.out").err == ""
    names = re.findall(r"^TEST\((\w+)\)", source.read_text(), re.M)
    assert names and execute(tmp_path / "a.out", *names).err == ""


# ---- launches ----


def launch(callee, config, arguments, name=None):
    return f'(::cuda_cpu::Launch("{name or callee}", ::cuda_cpu::config({config})), {callee}({arguments}))'


CALLEES = rows(
    """
    k | ns::k | ::k | ::ns::k | k<int> | k<A<int>, 256> | k<A<B<int>>> | k<A<B<C<int>>>> | ns::k<T> | A<int>::k<3> | k<> | größe
    T::template k<4> | A<B<int>>::template k<(1 > 2)> | k<(N > 3)> | k<N << 2> | k<1<<4> | k<sizeof(A<int>)> | k<&A::f> | k<A<C>
    k<decltype(a->b)> | decltype(x)::k | k<[] { return 1 > 0; }> | k<1'000> | (*fp) | table[i] | table[i][j + 1] | obj.member
    obj->member | this->k | get(3) | get<int>(3) | f(a)(b) | a.b[2].c | (k) | x.y()->z | (*table[i]) | static_cast<K>(p)
    a[i].template k<int> | ((K)p) | A<int>::get()
    k<a == 1 ? 5 : 6> | k<int{7}> | k<A<B<C<int>>::n> | (a ? k : l) | (0, k)
    """
)


@pytest.mark.parametrize("callee", CALLEES)
def test_kernel_of_a_launch(translate, callee):
    for blank in "", " ":
        source = f"void f() {{ {callee}{blank}<<<g, b>>>{blank}(x, y); }}"
        assert squeeze(translate(source)) == squeeze(f"void f() {{ {launch(callee, 'g, b', 'x, y')}; }}")


BEFORE = rows(
    """
    if (a < b) | if constexpr (a) | if (a) b; else | for (;;) | while (a) | do | (void) | a, | a ? b : | case 1: | case A::b:
    default: | again: | { } | try { } catch (...) { } | if (a; b) | switch (a; b) | for (int n = 3; int v : {1, 2})
    [[likely]] | a ? | return | if (a) { } else | a < b, c > d, | switch (a)
    """
)


@pytest.mark.parametrize("before", BEFORE)
def test_launch_begins_after(translate, before):
    for callee in "k<int>", "::k", "(*fp)", "table[i]", "get(1)":
        text = f"void f() {{ x; {before} %s; y; }}"
        expected = text % launch(callee, "1, 2", "x")
        assert squeeze(translate(text % f"{callee}<<<1, 2>>>(x)")) == squeeze(expected)


def test_launches_outside_of_functions(translate):
    for text in rows(
        """
        struct A { int x = (@, 1); int y{(@, 2)}; }; | struct A { A() : x((@, 1)), y{(@, 2)} { @; } ~A() { @; } };
        struct A { operator int() const { return @, 5; } static void f() { @; } void operator()(int) { @; } }; | void A::f() { @; }
        int f(int n = (@, 1)); | auto l = []<class T>(T v) requires(sizeof(v) == 4) { @; }; | auto l = [](N auto v) { @; };
        """
    ):
        assert squeeze(translate(text.replace("@", "k<<<1, 1>>>(x)"))) == squeeze(
            text.replace("@", launch("k", "1, 1", "x"))
        )


CONFIGURATIONS = rows(
    """
    1, 1 | g, b, 0, stream | dim3(2, 3), dim3(4) | n >> 5, 32 | n>>5, 1<<4 | (n >> 1), (1 << 3) | 1, n>>1 | 1 << 3, 256 >> 2
    (a < b ? 1 : 2), (c > d) | a < b ? 1 : 2, 3 | 1, A<B<C<int>>>::n | 1, A<int>::n | 1, N<A<B<int> > >::n | f<A<int>>(1), 2
    1, 2, sizeof(A<B<C<int>>>) | 1, 2, s[i] * (int)sizeof(float) | f([] { return A<B<C<int>>>(); }), 2 | dim3{1, 2}, dim3{3}
    1, A<B<C<int>>>(3) | 1, p->n | 1, n >= 2 | 1, f<A<int>> | 1, A<B<int>> | 1, f<A<B<int>>> | 1, 1, f<T>
    """
)


@pytest.mark.parametrize("config", CONFIGURATIONS)
def test_configuration_of_a_launch(translate, config):
    for opening, closing in zip(
        ("<<<", "<< <", "<<  <"), (">>>", ">> >", ">>  >")
    ):  # as Visual Studio formats them
        if closing == ">>>" or not config.endswith(">"):
            out = translate(f"void f() {{ k<int, 3> {opening} {config}{closing} (x); }}")
            assert squeeze(out) == squeeze(f"void f() {{ {launch('k<int, 3>', config, 'x')}; }}")


def test_long_kernel_names_are_cut(translate):
    out = translate("void f() { k<" + "a, " * 1000 + 'b, "x\\">"><<<1, 1>>>(); }')
    name = re.search(r'Launch\("(.*?)", ::cuda_cpu', out)[1]
    assert name.startswith("k<a, a, ") and name.endswith("…") and len(name) < 250
    assert '"get(…)"' in translate('void f() { get("a\\"<<<")<<<1, 1>>>(); }')
    assert '"k<…>"' in translate("void f() { k<'>'><<<1, 1>>>(); }")


def test_functions_that_return_a_struct_are_functions(translate):
    heads = """struct A f() | struct A *f(struct B *b) | A<struct B> f() | auto f() -> struct A * | A::A(struct B b) : b{1}, c{2}
        auto f() -> int (*)[4] | int f() try"""
    for head in [*rows(heads), "template <class T, struct A *a> void f()"]:
        assert squeeze(launch("k", "1, 1", "")) in squeeze(translate(head + " { k<<<1, 1>>>(); }"))


# ---- text that stays ----

STAYS = [
    *rows(
        r"""
        "k<<<1, 1>>>()" | '<', '<' | "\\" | R"(k<<<1, 1>>>() " )" | u8R"x(k<<<1)" ,1>>>())x" | L"\"k<<<" | LR"(")" | L'"' | u8'<' | '\''
        1'000 << 2 | .5f | 0x1'f | 1e+5 | a << b << c | a<b>>c | x >>= 3, y <<= 2 | a <= b, a >= b, a <=> b, p->q | cout << 1 << '<'
        __shared__x | s__device__ | "__shared__" | A<B<C<int>>> x | &operator<< <int> | operator<(a) | operator<<<int>(a)
        ns::operator<<<T>(a, b) | a%:b | a <: 3 :> | a<::b>()
        """
    ),
    *(
        "// k<<<1, 1>>>()\n",
        "/* k<<<1,\n1>>>() */",
        "// a \\\n k<<<1, 1>>>()\n",
        'R"(\n\\)"',
        '"a\\\n<<<"',
        "\v\f\r",
    ),
]


@pytest.mark.parametrize("text", STAYS)
def test_everything_else_stays(translate, text):
    for source in f"void f() {{ {text}; }}\n", f"int x = {text};", f"#define M {text}\nint x;\n":
        if not (source.startswith("#") and re.search(r"\n.", text)):
            assert translate(source) == source


def test_odd_but_legal_text_stays(translator, translate):
    ended = rows(
        r"""#error don't "do | #define X ' | # 3 "a\\b" | # 99999999999999999999 | #line 5 | %:define x"""
    )
    open_ended = rows(r"""# | # 1 | # 1 " | #pragma once | // | \ | // \ | /**/""")
    for source in ["", "\n", "\0", "int a;\0", *(line + "\n" for line in ended), *open_ended]:
        assert translate(source) == source
    no_utf8 = b'const char *s = "\xff\xfe";\r\nint \xe9;\r\n'
    assert subprocess.run([translator, "-"], input=no_utf8, capture_output=True).stdout == no_utf8
    # `\ // text` before preprocessing; nvcc takes it for white space.
    for source in "\\\n", "x = 1 + \\ \n 2;", "int a; \\\t\n":
        assert translate(source) == source.replace("\\", "")


def test_noinline(translate):
    out = translate("__noinline__ int f(); int __noinline__ g();")
    assert out == "__attribute__((noinline)) int f(); int __attribute__((noinline)) g();"
    kept = "__attribute__((__noinline__)) int f(); __attribute__((a, __noinline__)) int g(); [[gnu::__noinline__]] int h();"
    assert translate(kept) == kept
