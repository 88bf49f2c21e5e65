# SPDX-License-Identifier: MIT
"""cu2cpp, the translator of the CPU back end: what it writes, what it refuses, and that g++ compiles its output.

The cases are CUDA C++ text. A `test_refuses` case must end with one line on stderr, status 1 and no output. The cases
that use `pipeline` compile the translated text against a small stand-in for the real engine and run it.
"""
import os
import re
import resource
import subprocess
import textwrap

import pytest

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cpu", "cu2cpp.c")


@pytest.fixture(scope="session")
def translator(tmp_path_factory):
    program = tmp_path_factory.mktemp("translator") / "cu2cpp"
    subprocess.run(
        ["cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", SOURCE, "-o", program],
        check=True,
    )
    return str(program)


@pytest.fixture
def run(translator):
    def run(text, *arguments):
        if isinstance(text, str):
            text = text.encode()
        return subprocess.run([translator, *(arguments or ("-",))], input=text, capture_output=True)

    return run


@pytest.fixture
def translate(run):
    def translate(text):
        result = run(text)
        assert result.returncode == 0, result.stderr.decode()
        assert result.stderr == b""
        out = result.stdout.decode()
        assert out.count("\n") == text.count("\n"), "the number of lines changed"
        return out

    return translate


@pytest.fixture
def refuse(run):
    """Translates text that must be refused; returns the message without the name of the file."""

    def refuse(text):
        result = run(text)
        assert result.returncode == 1, result.stdout.decode()
        assert result.stdout == b""
        message = result.stderr.decode()
        assert message.startswith("<stdin>:") and message.count("\n") == 1
        return message[len("<stdin>:") :].rstrip("\n")

    return refuse


def launch(callee, config, arguments, name=None):
    name = name or callee
    return f'(::cuda_cpu::Launch("{name}", ::cuda_cpu::config({config})), {callee}({arguments}))'


def words(text):
    """Without the blanks, of which some stay where the translation moves words."""
    return text.replace(" ", "")


# ---- launches ----


@pytest.mark.parametrize(
    "callee",
    [
        "k",
        "ns::k",
        "::k",
        "::ns::k",
        "k<int>",
        "k<A<int>, 256>",
        "k<A<B<int>>>",
        "k<A<B<C<int>>>>",
        "ns::k<T>",
        "A<int>::k<3>",
        "T::template k<4>",
        "A<B<int>>::template k<(1 > 2)>",
        "k<(N > 3)>",
        "k<N << 2>",
        "k<1<<4>",
        "k<sizeof(A<int>)>",
        "k<&A::f>",
        "k<decltype(a->b)>",
        "k<>",
        "decltype(x)::k",
        "k<[] { return 1 > 0; }>",
        "k<1'000>",
        "größe",
    ],
)
@pytest.mark.parametrize("spaces", ["", " "])
def test_launch_by_name(translate, callee, spaces):
    source = f"void f() {{ {callee}{spaces}<<<g, b>>>{spaces}(x, y); }}"
    assert words(translate(source)) == words(f"void f() {{ {launch(callee, 'g, b', 'x, y')}; }}")


@pytest.mark.parametrize(
    "callee",
    [
        "(*fp)",
        "table[i]",
        "table[i][j + 1]",
        "obj.member",
        "obj->member",
        "this->k",
        "get(3)",
        "get<int>(3)",
        "f(a)(b)",
        "a.b[2].c",
        "(k)",
        "x.y()->z",
        "(*table[i])",
        "static_cast<K>(p)",
        "a[i].template k<int>",
        "((K)p)",
        "A<int>::get()",
    ],
)
def test_launch_of_an_expression(translate, callee):
    expected = launch(callee, "g, b", "x")
    assert words(translate(f"void f() {{ {callee}<<<g, b>>>(x); }}")) == words(f"void f() {{ {expected}; }}")


@pytest.mark.parametrize(
    "before",
    [
        "if (a < b)",
        "if constexpr (a)",
        "if (a) b; else",
        "for (;;)",
        "while (a)",
        "do",
        "(void)",
        "a,",
        "a ? b :",
        "case 1:",
        "case A::b:",
        "default:",
        "again:",
        "{ }",
        "[[likely]]",
        "a ?",
        "return",
        "if (a) { } else",
        "a < b, c > d,",
        "switch (a)",
    ],
)
@pytest.mark.parametrize("callee", ["k<int>", "::k", "(*fp)", "table[i]", "get(1)"])
def test_launch_begins_after(translate, before, callee):
    source = f"void f() {{ x; {before} {callee}<<<1, 2>>>(x); y; }}"
    expected = f"void f() {{ x; {before} {launch(callee, '1, 2', 'x')}; y; }}"
    assert words(translate(source)) == words(expected)


@pytest.mark.parametrize(
    "config",
    [
        "1, 1",
        "g, b, 0, stream",
        "dim3(2, 3), dim3(4)",
        "n >> 5, 32",
        "n>>5, 1<<4",
        "(n >> 1), (1 << 3)",
        "1, n>>1",
        "1 << 3, 256 >> 2",
        "(a < b ? 1 : 2), (c > d)",
        "a < b ? 1 : 2, 3",
        "1, A<B<C<int>>>::n",
        "1, A<int>::n",
        "1, N<A<B<int> > >::n",
        "f<A<int>>(1), 2",
        "1, 2, sizeof(A<B<C<int>>>)",
        "1, 2, s[i] * (int)sizeof(float)",
        "f([] { return A<B<C<int>>>(); }), 2",
        "dim3{1, 2}, dim3{3}",
        "1, A<B<C<int>>>(3)",
        "1, p->n",
        "1, n >= 2",
        "(f<<<1, 1>>>(), 1), 2",
    ],
)
def test_launch_configuration(translate, config):
    source = f"void f() {{ k<<<{config}>>>(x); }}"
    inner = config.replace("f<<<1, 1>>>()", launch("f", "1, 1", ""))
    assert words(translate(source)) == words(f"void f() {{ {launch('k', inner, 'x')}; }}")


@pytest.mark.parametrize("config", ["f<A<int>>", "A<B<int>>", "f<A<B<int>>>", "1, f<T>"])
def test_launch_configuration_that_ends_in_angles(translate, config):
    source = f"void f() {{ k<<<1, {config}>>>(x); }}"
    assert words(translate(source)) == words(f"void f() {{ {launch('k', '1, ' + config, 'x')}; }}")


@pytest.mark.parametrize(
    "opens,closes", [("<< <", ">> >"), ("<<<", ">> >"), ("<<  <", ">>>"), ("<< <", ">>  >")]
)
def test_launch_with_blanks_in_the_brackets(translate, opens, closes):
    """As Visual Studio formats them"""
    config = "1, f<A<B<C>> >(2)"
    source = f"void f() {{ k<int, 3> {opens} {config} {closes} (x); }}"
    assert words(translate(source)) == words(f"void f() {{ {launch('k<int, 3>', config, 'x')}; }}")


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        " ",
        "1",
        "a, b",
        "A<int, 3>()",
        "[](int x) { return x; }, 2",
        "T{1, 2}",
        "f(1, (2, 3))",
        "a[i], *b",
        "a < b, c > d",
        "NULLS",
        "f(NULL)",
        "x, (float *)NULL",
        "\"a, <<<\", ')'",
        "NULL, 0, __null",
        "{1, 2}, {}",
    ],
)
def test_launch_arguments_stay(translate, arguments):
    source = f"void f() {{ k<<<1, 1>>>({arguments}); }}"
    assert words(translate(source)) == words(f"void f() {{ {launch('k', '1, 1', arguments)}; }}")


def test_long_kernel_names_are_cut(translate):
    out = translate("void f() { k<" + "a, " * 1000 + 'b, "x\\">"><<<1, 1>>>(); }')
    name = re.search(r'Launch\("(.*?)", ::cuda_cpu', out)[1]
    assert name.startswith("k<a, a, ") and name.endswith("…") and len(name) < 250
    assert '"get(…)"' in translate('void f() { get("a\\"<<<")<<<1, 1>>>(); }')


def test_functions_that_return_a_struct_are_functions(translate):
    for head in (
        "struct A f()",
        "struct A *f(struct B *b)",
        "A<struct B> f()",
        "auto f() -> struct A *",
        "template <class T, struct A *a> void f()",
        "A::A(struct B b) : b{1}, c{2}",
    ):
        assert words(launch("k", "1, 1", "")) in words(translate(head + " { k<<<1, 1>>>(); }"))


def test_two_launches_on_a_line(translate):
    out = translate("void f() { a<<<1, 1>>>(x); b<<<2, 2>>>(y), c<<<3, 3>>>(z); }")
    assert words(out) == words(
        f"void f() {{ {launch('a', '1, 1', 'x')}; {launch('b', '2, 2', 'y')}, "
        f"{launch('c', '3, 3', 'z')}; }}"
    )


def test_launch_over_lines_and_linemarkers(translate):
    source = textwrap.dedent(
        """\
        void f() {
          ns::
        # 7 "a.cu"
          k< // the type
            int >
        # 9 "a.cu" 3 4
          <<<
            g,
            /* >>> */ b
          >>>
          (
        # 20 "a.cu"
            x
          );
        }
        """
    )
    out = translate(source)
    assert [line for line in out.split("\n") if line.startswith("#")] == [
        '# 7 "a.cu"',
        '# 9 "a.cu" 3 4',
        '# 20 "a.cu"',
    ]
    assert '("ns:: k< int >", ::cuda_cpu::config(' in out and ")), ns:: k< int >\n" in out
    before, after = '(::cuda_cpu::Launch("ns:: k< int >", ::cuda_cpu::config(', ")), ns:: k< int >"
    left = out.replace(before, "").replace(after, "").replace("))", ")")
    kept = re.sub(r"ns::\n|  k<|int >|<<<\n|(?<!\* )>>>", lambda m: "\n" * m[0].count("\n"), source)
    assert words(left) == words(kept)


@pytest.mark.parametrize(
    "text",
    [
        '"k<<<1, 1>>>()"',
        "'<', '<'",
        "// k<<<1, 1>>>()\n",
        "/* k<<<1,\n1>>>() */",
        "// a \\\n k<<<1, 1>>>()\n",
        'R"(k<<<1, 1>>>() " )"',
        'u8R"x(k<<<1)" ,1>>>())x"',
        'L"\\"k<<<"',
        "L'\"'",
        "u8'<'",
        "1'000 << 2",
        'R"(\n\\)"',
        '"a\\\n<<<"',
        "0x1'f",
        "1e+5",
        "'\\''",
        '"\\\\"',
        "a << b << c",
        "a<b>>c",
        "x >>= 3, y <<= 2",
        "a <= b, a >= b, a <=> b, p->q",
        "cout << 1 << '<'",
        "__shared__x",
        "s__device__",
        '"__shared__"',
        "A<B<C<int>>> x",
        "&operator<< <int>",
        "operator<<<int>(a)",
        "ns::operator<<<T>(a, b)",
        "operator<(a)",
        "a%:b",
        "a <: 3 :>",
        "a<::b>()",
        "\v\f\r",
    ],
)
def test_everything_else_stays(translate, text):
    for source in (f"void f() {{ {text}; }}\n", f"int x = {text};", f"#define M {text}\nint x;\n"):
        if not (source.startswith("#") and re.search(r"\n.", text)):
            assert translate(source) == source


@pytest.mark.parametrize(
    "source",
    [
        "",
        "\n",
        "#",
        "# 1",
        '# 1 "',
        "#error don't \"do\n",
        "#define X '\n",
        "#pragma once",
        "\0",
        "int a;\0",
        "//",
        "// \\",
        "/**/",
        '# 3 "a\\\\b"\n',
        "# 99999999999999999999\n",
        "#line 5\n",
        "%:define x\n",
        "\\",
    ],
)
def test_odd_but_legal_text_stays(run, source):
    result = run(source)
    assert (result.returncode, result.stdout.decode(), result.stderr) == (0, source, b"")


@pytest.mark.parametrize("source", ["\\\n", "x = 1 + \\ \n 2;", "int a; \\\t\n"])
def test_a_continuation_that_a_comment_followed_is_removed(translate, source):
    """`\\ // text` before preprocessing; nvcc takes it for white space."""
    assert translate(source) == source.replace("\\", "")


def test_bytes_that_are_no_utf8_stay(run):
    source = b'const char *s = "\xff\xfe";\r\nint \xe9;\r\n'
    assert run(source).stdout == source


@pytest.mark.parametrize(
    "source,why",
    [
        ("void f() {\n x + k<<<1, 1>>>(); }", "2: cannot find the kernel that this <<<…>>> launches"),
        ("void f() {\n <<<1, 1>>>(); }", "2: cannot find the kernel that this <<<…>>> launches"),
        ("void f() { 3<<<1, 1>>>(); }", "1: cannot find the kernel that this <<<…>>> launches"),
        ("void f() { int k<<<1, 1>>>(); }", "1: cannot find the kernel that this <<<…>>> launches"),
        ("void f() { *k<<<1, 1>>>(); }", "1: cannot find the kernel that this <<<…>>> launches"),
        ("void f() { f(x) k<<<1, 1>>>(); }", "1: cannot find the kernel that this <<<…>>> launches"),
        ("void f() { if<<<1, 1>>>(); }", "1: cannot find the kernel that this <<<…>>> launches"),
        ("void f() { a k>><<<1, 1>>>(); }", "1: cannot find the kernel that this <<<…>>> launches"),
        ("void f() { static_cast<T><<<1, 1>>>(); }", "1: cannot find the kernel that this <<<…>>> launches"),
        ("void f() { [0]<<<1, 1>>>(); }", "1: cannot find the kernel that this <<<…>>> launches"),
        ("void f() { k<<<1, 1>>>(x)<<<1, 1>>>(x); }", "1: cannot find the kernel that this <<<…>>> launches"),
        ("void f() {\n\n a <<< b; }", "3: this <<< has no matching >>>"),
        ("void f() { k<<<1, 1>>(x); }", "1: this <<< has no matching >>>"),
        ("void f() { k<<<1, (1>>>(x); }", "1: unmatched ("),
        ("void f() { k<<<1, j<<<1, 1>>>()>>>(x); }", "1: this <<< has no matching >>>"),
        ("void f() { k<<<1, 1>>>; }", "1: this <<<…>>> is not followed by the ( ) of a launch"),
        ("void f() { k<<<1>>>(); }", "1: <<<…>>> needs at least a grid and a block"),
        ("void f() { k<<<>>>(); }", "1: <<<…>>> needs at least a grid and a block"),
        ("void f() { k<<<f(1, 2)>>>(); }", "1: <<<…>>> needs at least a grid and a block"),
        ("void f() { k<<<<1, 1>>>(); }", "1: this <<< has no matching >>>"),
        (
            "void f() { k<[] __device__ { return 1; }><<<1, 1>>>(); }",
            "1: the kernel of this <<<…>>> is too complex: name it in a variable first",
        ),
        ('# 12 "julia.cu"\n\nvoid f() { = k<<<1, 1>>>(); }', None),
    ],
)
def test_refuses_launches(run, source, why):
    result = run(source)
    assert (result.returncode, result.stdout) == (1, b"")
    message = result.stderr.decode()
    if why is None:
        assert message == "julia.cu:13: cannot find the kernel that this <<<…>>> launches\n"
    elif "unmatched" in why:
        assert message.startswith("<stdin>:1: ")
    else:
        assert message == f"<stdin>:{why}\n"


@pytest.mark.parametrize(
    "source,why",
    [
        ("a\n/* b\n", "2: unterminated comment"),
        ("a\n'b\n'", "2: missing closing '"),
        ('a\n"b\n', '2: missing closing "'),
        ('R"(\n\n', "1: unterminated raw string"),
        ('R"a b(x)a b"', "1: invalid delimiter of a raw string"),
        ("{\n(\n}", "3: unmatched }"),
        ("f(\n", "1: this ( is never closed"),
        (")", "1: unmatched )"),
        ("a \\\n 'b\\\n' // c \\\n d\n /*\n*/ R\"(\n)\" )", "7: unmatched )"),
        ('# 7 "x\\\\y.h"\n)', None),
    ],
)
def test_refuses_broken_text(run, source, why):
    result = run(source)
    assert (result.returncode, result.stdout) == (1, b"")
    assert result.stderr.decode() == (f"<stdin>:{why}\n" if why else "x\\y.h:7: unmatched )\n")


# ---- kernels ----


def kernel(head, name, body, *parameters, bounds="0"):
    """`head` up to the {; a parameter is its name, or name..., or (name, what stands for it in the lambda)."""
    types = values = ""
    inner = []
    for parameter in parameters:
        dots = "..." if parameter.endswith("...") else ""
        x = parameter.rstrip(".")
        types += f", decltype({x}){dots}"
        values += f", {x}{dots}"
        inner.append(f"::cuda_cpu::Parameter<decltype({x})> {dots}" + ("" if x.startswith("cu_p") else x))
    return (
        f"{head} {{ struct cu_owner; ::cuda_cpu::launch_body<cu_owner{types}>"
        f'("{name}", {bounds}, []({", ".join(inner)}) {{{body}}}{values}); }}'
    )


@pytest.mark.parametrize(
    "source,expected",
    [
        ("@void k() { a; }", kernel("void k()", "k", "a;")),
        ("void @k(void) { }", kernel("void k(void)", "k", "")),
        ("static @void k(int n) { { } }", kernel("static void k(int n)", "k", "{ }", "n")),
        ('extern "C" @void k(T *p) { }', kernel('extern "C" void k(T *p)', "k", "", "p")),
        (
            "template <class T, int N> @void k(const T *__restrict p, ns::A<T, 3> q = {1, 2}, unsigned n = N) { }",
            kernel(
                "template <class T, int N> void k(const T *__restrict p, ns::A<T, 3> q = {1, 2}, unsigned n = N)",
                "k",
                "",
                "p",
                "q",
                "n",
            ),
        ),
        (
            "@void k(int (*f)(int, int), float (&a)[3], int b[], struct S s, typename T::B<int> t, T const u) { }",
            kernel(
                "void k(int (*f)(int, int), float (&a)[3], int b[], struct S s, typename T::B<int> t, T const u)",
                "k",
                "",
                *"fabstu",
            ),
        ),
        (
            "@void k(int, float [], int (*)(int), T, unsigned long, const A<int> = {}, struct S *) { }",
            kernel(
                "void k(int cu_p1, float cu_p2[], int (*cu_p3)(int), T cu_p4, unsigned long cu_p5,"
                " const A<int> cu_p6= {}, struct S * cu_p7)",
                "k",
                "",
                *[f"cu_p{i}" for i in range(1, 8)],
            ),
        ),
        (
            "template <class... A> @void k(int n, A... a) { }",
            kernel("template <class... A> void k(int n, A... a)", "k", "", "n", "a..."),
        ),
        (
            "template <class... A> @void k(A &&...) { }",
            kernel("template <class... A> void k(A &&... cu_p1)", "k", "", "cu_p1..."),
        ),
        ("template <> @void k<int>(int x) { }", kernel("template <> void k<int>(int x)", "k", "", "x")),
        ("@void ns::A<int>::k(int x) { }", kernel("void ns::A<int>::k(int x)", "k", "", "x")),
        (
            "struct A { static @void k(int x) { } };",
            "struct A { " + kernel("static void k(int x)", "k", "", "x") + " };",
        ),
        ("@__launch_bounds__(256) void k() { }", kernel("void k()", "k", "", bounds="256")),
        ("@void __launch_bounds__(f<A, 2>(1), 2) k() { }", kernel("void k()", "k", "", bounds="f<A, 2>(1)")),
        ("__launch_bounds__(N * (2 + 3)) @void k() { }", kernel("void k()", "k", "", bounds="N * (2 + 3)")),
        ("@void __maxnreg__(32) k() noexcept { }", kernel("void k() noexcept", "k", "")),
        ("@auto k(int a) -> void { }", kernel("auto k(int a) -> void", "k", "", "a")),
        ("@void k() { f(__func__, __FUNCTION__); }", kernel("void k()", "k", 'f("k", "k");')),
        ("@void k(int x);", "void k(int x);"),
        ("template @void k<int>(int x);", "template void k<int>(int x);"),
        ("friend @void k(int x = f<1, 2>());", "friend void k(int x = f<1, 2>());"),
        ("@void __launch_bounds__(256) k();", "void k();"),
        ("@void k() = delete;", "void k() = delete;"),
        ("@__host__ void k();", "void k();"),
    ],
)
@pytest.mark.parametrize("context", ["%s", "namespace a { %s }", "int x; %s"])
def test_kernels(translate, source, expected, context):
    assert words(translate(context % source.replace("@", "__global__ "))) == words(context % expected)


@pytest.mark.parametrize(
    "source,why",
    [
        ("void f(__global__ int x) { }", "1: __global__ is not allowed here"),
        ("int x;\n__global__ x;", "2: cannot parse this declaration at ';'"),
        ("__global__ void k(int n, ...) { }", "1: a kernel cannot have a variable number of arguments"),
        ("__global__ void operator+(A a, A b) { }", "1: an operator cannot be a kernel"),
        (
            "__global__ void\n__cluster_dims__(2) k() { }",
            "2: __cluster_dims__: clusters of blocks are not supported",
        ),
        (
            "__block_size__((1, 1)) __global__ void k() { }",
            "1: __block_size__: clusters of blocks are not supported",
        ),
    ],
)
def test_refuses_kernels(refuse, source, why):
    assert refuse(source) == why


# ---- inline PTX ----


@pytest.mark.parametrize(
    "statement,named",
    [
        ('asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0};" : "=f"(x));', "mma.sync"),
        ('asm("mov.u32 %0, %%envreg3;" : "=r"(x));', "mov.u32 %0, %%envreg3"),
        ('asm("{ .reg .pred p, q; setp.ne.and.u32 p, %0, 0, q; }" :: "r"(x));', "setp.ne.and.u32 p"),
        ('asm("{ .reg .pred p; setp.ne.f32 p, %0, %0; }" :: "f"(x));', "setp.ne.f32 p"),
        ('asm("{ .reg .u32 t; } mov.u32 t, 1;");', "mov.u32 t"),
        ('asm("{ .reg .u32 t<4>; }");', ".reg .u32 t<4>"),
        ('asm("{ mov.u32 %0, 1;" : "=r"(x));', "{ mov.u32 %0"),
        ('asm("mov.b64 %0, {%1, 5, 6};" : "=l"(y) : "r"(x));', "mov.b64 %0, {%1"),
        ('asm("@p bra done;");', "@p bra done"),
        ('asm("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"(x), "l"(y));', "cp.async.ca.shared.global"),
        ('asm("add.u32 %0, %1, %2;" : "=r"(x) : "r"(x));', "add.u32 %0, %1, %2"),
        ('asm("addc.u32 %0, %0, %0;" : "+r"(x));', "addc.u32"),
        ('asm("bar.sync 1, 64;");', "bar.sync 1, 64"),
        ('asm("lop3.u64 %0, %0, %0, %0, 1;" : "+l"(x));', "lop3.u64"),
        ('__asm__ volatile("mov.u32 %0, %%laneid; exit;" : "=r"(x));', "exit"),
        ('asm("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(y));', "ld.shared.u32"),
        ('asm("mov.u32 %[a], 0;" : [a] "=r"(x));', "an operand with a name"),
        ('asm("..;");', "'..'"),
    ],
)
def test_refuses_ptx(refuse, statement, named):
    for head in ("__global__ void k()", "__device__ int f()", "__host__ __device__ A::A() : a(1)"):
        message = refuse(f"{head} {{\n int x;\n {statement} }}")
        assert message.startswith("3: inline PTX is not supported here") and named in message


def test_asm_of_the_host_stays(translate):
    for source in ('void f() { asm volatile("rdtsc" : "=A"(x)); }', 'asm(".globl x");', 'int f() asm("g");'):
        assert translate("__global__ void k();" + source) == " void k();" + source


# ---- __shared__ ----


def shared(name, align=""):
    align = f", alignof(cu_a_{name})" if align else ""
    return f' cu_t_{name} &{name} = ::cuda_cpu::shared<cu_t_{name}, cu_owner>([] {{}}, "{name}"{align});'


@pytest.mark.parametrize(
    "declaration,expected,names",
    [
        ("__shared__ float x[N];", "typedef float cu_t_x[N];", "x"),
        ("__shared__ int x;", "typedef int cu_t_x;", "x"),
        ("__shared__ T x[N], *y, z;", "typedef T cu_t_x[N], *cu_t_y, cu_t_z;", "xyz"),
        ("__shared__ float x[16][16 + 1];", "typedef float cu_t_x[16][16 + 1];", "x"),
        ("static __shared__ int x[4];", " typedef int cu_t_x[4];", "x"),
        ("__shared__ static int x[4];", "typedef  int cu_t_x[4];", "x"),
        ("int __shared__ x;", "int typedef cu_t_x;", "x"),
        ("unsigned __shared__ long long x;", "unsigned typedef long long cu_t_x;", "x"),
        ("__shared__ unsigned int x[2];", "typedef unsigned int cu_t_x[2];", "x"),
        ("__shared__ struct S x;", "typedef struct S cu_t_x;", "x"),
        ("__shared__ struct { int a, b; } x[3], y;", "typedef struct { int a, b; } cu_t_x[3], cu_t_y;", "xy"),
        (
            "__shared__ struct S : B<int, 2> { int a; } x;",
            "typedef struct S : B<int, 2> { int a; } cu_t_x;",
            "x",
        ),
        ("__shared__ union U { int a; float b; } x;", "typedef union U { int a; float b; } cu_t_x;", "x"),
        ("__shared__ enum class E : char { a, b } x;", "typedef enum class E : char { a, b } cu_t_x;", "x"),
        ("__shared__ A<int, 3> x;", "typedef A<int, 3> cu_t_x;", "x"),
        ("__shared__ A<B<int>, (1 > 2)>::T x;", "typedef A<B<int>, (1 > 2)>::T cu_t_x;", "x"),
        (
            "__shared__ typename A<T>::type x[A<T, 1>::n];",
            "typedef typename A<T>::type cu_t_x[A<T, 1>::n];",
            "x",
        ),
        ("__shared__ typename A::template B<T>::C x;", "typedef typename A::template B<T>::C cu_t_x;", "x"),
        ("__shared__ ::ns::T x;", "typedef ::ns::T cu_t_x;", "x"),
        ("__shared__ float (*x)[4];", "typedef float (*cu_t_x)[4];", "x"),
        (
            "__shared__ void (*x)(int), (*y[3])(float);",
            "typedef void (*cu_t_x)(int), (*cu_t_y[3])(float);",
            "xy",
        ),
        ("__shared__ int A::*x;", "typedef int A::*cu_t_x;", "x"),
        ("__shared__ float *__restrict__ x;", "typedef float *__restrict__ cu_t_x;", "x"),
        ("__shared__ float const *const *x;", "typedef float const *const *cu_t_x;", "x"),
        ("__shared__ decltype(f(1, 2)) x;", "typedef decltype(f(1, 2)) cu_t_x;", "x"),
        ("__shared__ decltype(a)::type x;", "typedef decltype(a)::type cu_t_x;", "x"),
        ("__shared__ __attribute__((unused)) int x;", "typedef __attribute__((unused)) int cu_t_x;", "x"),
        ("[[maybe_unused]] __shared__ int x;", "[[maybe_unused]] typedef int cu_t_x;", "x"),
        ("__device__ __shared__ int x;", "typedef  int cu_t_x;", "x"),
        ("__shared__ __device__ int x;", "typedef  int cu_t_x;", "x"),
        ("__shared__ int x [ 3 ] ;", "typedef int cu_t_x [ 3 ] ;", "x"),
        ("__shared__ int x[sizeof(int[3])];", "typedef int cu_t_x[sizeof(int[3])];", "x"),
        ("__shared__ int x[[]{ return 1, 2; }()];", "typedef int cu_t_x[[]{ return 1, 2; }()];", "x"),
    ],
)
@pytest.mark.parametrize(
    "context",
    [
        "void k() { %s }",
        "void k() { if (a) { b; } %s }",
        "auto l = [] { %s };",
        "template <class T> struct A { void k() { for (;;) { %s } } };",
        "void f() { g(1, [&](int x) { %s }); }",
        "void f() { switch (a) { case 1: %s } }",
    ],
)
def test_shared(translate, declaration, expected, names, context):
    assert translate(context % declaration) == context % (expected + "".join(shared(n) for n in names))


STEP = " [[maybe_unused]] auto {0} = ::cuda_cpu::in_step_pointer(cu_v_{0});"


@pytest.mark.parametrize(
    "source,expected",
    [
        ("volatile T *x = y;", "volatile T *cu_v_x = y;" + STEP.format("x")),
        ("T volatile *x = f(1, 2);", "T volatile *cu_v_x = f(1, 2);" + STEP.format("x")),
        (
            "const volatile unsigned int *const x{y}, z, *w = x + z;",
            "const volatile unsigned int *const cu_v_x{y}, z, *cu_v_w = cu_v_x + z;"
            + STEP.format("x")
            + STEP.format("w"),
        ),
        ("volatile T *x;", "volatile T *cu_v_x; decltype(::cuda_cpu::in_step_pointer(cu_v_x)) x;"),
        ("*(volatile T *)x = 1;", "*(::cuda_cpu::in_step_cast<volatile T *>)x = 1;"),
        ("a = ((volatile A<int> *)&x)[1];", "a = ((::cuda_cpu::in_step_cast<volatile A<int> *>)&x)[1];"),
        # These have no accesses that could be in step, or are not pointers.
        *(
            (text, text)
            for text in (
                "volatile int x = 1, y[3];",
                "T *volatile x = y;",
                "volatile T **x = y;",
                "volatile T *x[3];",
                "typedef volatile int *P;",
                "using P = volatile int *;",
                "f(sizeof(volatile int *), (volatile int)x);",
                "for (volatile int i = 0; i < 2; i++) ;",
                "volatile T &x = y;",
            )
        ),
    ],
)
def test_volatile(translate, source, expected):
    assert translate(f"__device__ void k() {{ {source} }}") == f" void k() {{ {expected} }}"
    assert translate(f"void host() {{ {source} }}") == f"void host() {{ {source} }}"


def test_volatile_parameters_and_shared_variables(translate):
    assert translate(
        "__device__ int f(volatile T *x, int n, volatile int *y, volatile int z[]) { return *x; }"
    ) == (
        " int f(volatile T *x, int n, volatile int *y, volatile int z[]) {"
        + "".join(f" [[maybe_unused]] auto cu_v_{x} = ::cuda_cpu::in_step_pointer({x});" for x in "xyz")
        + " {"
        + "".join(f" [[maybe_unused]] auto {x} = cu_v_{x};" for x in "xyz")
        + " return *x; } }"
    )
    for declaration, typedef in (
        ("volatile __shared__ int x[4];", "volatile typedef int cu_t_x[4];"),
        ("__shared__ volatile int x[4];", "typedef volatile int cu_t_x[4];"),
    ):
        assert translate(f"void k() {{ {declaration} }}") == (
            f"void k() {{ {typedef}{shared('x').replace('&x', '&cu_v_x')} auto &&x = ::cuda_cpu::in_step(cu_v_x); }}"
        )


def test_shared_after_a_label(translate):
    assert (
        translate("void k() { a: __shared__ int x; }")
        == "void k() { a: typedef int cu_t_x;" + shared("x") + " }"
    )


@pytest.mark.parametrize(
    "declaration,typedef,moved",
    [
        (
            "__shared__ __attribute__((aligned(16))) float x[4];",
            "typedef  float cu_t_x[4];",
            "__attribute__((aligned(16)))",
        ),
        (
            "__attribute__((aligned(16))) __shared__ float x[4];",
            " typedef float cu_t_x[4];",
            "__attribute__((aligned(16)))",
        ),
        (
            "__shared__ float __attribute__((__aligned__(8))) x[4];",
            "typedef float  cu_t_x[4];",
            "__attribute__((__aligned__(8)))",
        ),
        (
            "__shared__ float x[4] __attribute__((aligned(16)));",
            "typedef float cu_t_x[4] ;",
            "__attribute__((aligned(16)))",
        ),
        (
            "__shared__ float x __attribute__((aligned(16)))[4];",
            "typedef float cu_t_x [4];",
            "__attribute__((aligned(16)))",
        ),
        ("alignas(float4) __shared__ float x[4];", " typedef float cu_t_x[4];", "alignas(float4)"),
        ("__shared__ alignas(16) float x[4];", "typedef  float cu_t_x[4];", "alignas(16)"),
        ("__shared__ alignas(8) alignas(16) float x;", "typedef   float cu_t_x;", "alignas(8) alignas(16)"),
    ],
)
def test_shared_alignment_moves_to_a_struct(translate, declaration, typedef, moved):
    body = typedef + f" struct cu_a_x {{ {moved} cu_t_x v; }};" + shared("x", "aligned")
    assert translate(f"void k() {{ {declaration} }}").replace(" ", "") == f"void k() {{ {body} }}".replace(
        " ", ""
    )


def test_alignment_of_several_variables(translate):
    out = translate("void k() { __shared__ alignas(64) int x, y; }")
    assert shared("x", "aligned") in out and shared("y", "aligned") in out


def test_alignment_of_a_class_defined_there_stays(translate):
    out = translate("void k() { __shared__ struct __attribute__((aligned(16))) S { alignas(8) int a; } x; }")
    assert out == (
        "void k() { typedef struct __attribute__((aligned(16))) S { alignas(8) int a; } cu_t_x;"
        + shared("x")
        + " }"
    )


@pytest.mark.parametrize(
    "declaration,typedef,name",
    [
        ("extern __shared__ T x[];", "typedef T cu_t_x[];", "x"),
        ("extern __shared__ float x[][16];", "typedef float cu_t_x[][16];", "x"),
        ("extern volatile __shared__ int x[];", "volatile typedef int cu_t_x[];", "x"),
        ("extern __shared__ volatile int x[];", "typedef volatile int cu_t_x[];", "x"),
        ("__shared__ extern int x[];", "typedef int cu_t_x[];", "x"),
        (
            "extern __shared__ __attribute__((aligned(16))) unsigned char x[];",
            "typedef unsigned char cu_t_x[];",
            "x",
        ),
        ("extern __attribute__((aligned(16))) __shared__ float2 *x[];", "typedef float2 *cu_t_x[];", "x"),
        ("extern __shared__ int x [ ] ;", "typedef int cu_t_x [ ] ;", "x"),
    ],
)
def test_dynamic_shared(translate, declaration, typedef, name):
    def squeezed(text):
        return re.sub(" +", " ", text)

    n = name
    inside = f' cu_t_{n} &{n} = ::cuda_cpu::dynamic_shared<cu_t_{n}>("{n}");'
    if "volatile" in declaration:
        inside = inside.replace("&", "&cu_v_") + f" auto &&{n} = ::cuda_cpu::in_step(cu_v_{n});"
    outside = (
        f' [[maybe_unused]] static cu_t_{n} &cu_s_{n}() {{ return ::cuda_cpu::dynamic_shared<cu_t_{n}>("{n}"); }}'
        f" [[maybe_unused]] static const ::cuda_cpu::dynamic_array<cu_t_{n}> {n}{{}};"
    )
    assert squeezed(translate(f"void k() {{{declaration}}}")) == squeezed(
        f"void k() {{{' ' * declaration.startswith('ext')}{typedef}{inside}}}"
    )
    for a, b in (
        ("", ""),
        ("namespace a { inline namespace b {", "}}"),
        ('extern "C" {', "}"),
        ("namespace a::b __attribute__((x)) {", "}"),
        ("struct A { }; void f() { }", ""),
    ):
        assert squeezed(translate(f"{a} {declaration}{b}")) == squeezed(f"{a} {typedef}{outside}{b}")


@pytest.mark.parametrize(
    "source,why",
    [
        (
            "void k(__shared__ int *p) { }",
            "1: __shared__ is only for variables declared in a kernel or device function",
        ),
        (
            "void k() { f((__shared__ int *)p); }",
            "1: __shared__ is only for variables declared in a kernel or device function",
        ),
        (
            "struct A {\n__shared__ int x; };",
            "2: __shared__ is only for variables declared in a kernel or device function",
        ),
        (
            "struct A {\nstatic __shared__ int x; };",
            "2: __shared__ is only for variables declared in a kernel or device function",
        ),
        (
            "template <class T> struct A<T(int)> : B<(1 > 2)> { extern __shared__ T x[]; };",
            "1: __shared__ is only for variables declared in a kernel or device function",
        ),
        (
            "void k() { typedef __shared__ int x; }",
            "1: __shared__ is only for variables declared in a kernel or device function",
        ),
        (
            "void k() { __shared__ __constant__ int x; }",
            "1: __shared__ is only for variables declared in a kernel or device function",
        ),
        ("void k() {\n__shared__ int x = 3; }", "2: a __shared__ variable cannot have an initial value"),
        (
            "void k() { __shared__ int x[2] = {1, 2}; }",
            "1: a __shared__ variable cannot have an initial value",
        ),
        ("void k() { __shared__ int x{}; }", "1: a __shared__ variable cannot have an initial value"),
        ("void k() { __shared__ int y, x(3); }", "1: a __shared__ variable cannot have an initial value"),
        ("void k() { __shared__ int f(int); }", "1: a __shared__ variable cannot have an initial value"),
        (
            "void k() { extern __shared__ int x[4]; }",
            "1: an extern __shared__ variable must be an array without a size, x[]",
        ),
        (
            "void k() { extern __shared__ int x; }",
            "1: an extern __shared__ variable must be an array without a size, x[]",
        ),
        ("void k() { if (a) __shared__ int x; }", "1: cannot parse this declaration at '('"),
        ("void k() { __shared__ x; }", "1: cannot parse this declaration at ';'"),
        ("void k() { __shared__; }", "1: cannot parse this declaration at ';'"),
        ("void k() { __shared__ int; }", "1: cannot parse this declaration at ';'"),
        ("void k() { __shared__ int x }", "1: cannot parse this declaration at '}'"),
        ("void k() { __shared__ int A::x; }", "1: cannot parse this declaration at 'x'"),
        ("void k() { __shared__ A<b x; }", "1: cannot find the > of this <; put comparisons in ( )"),
        ("void k() { a + __shared__ int x; }", "1: cannot parse this declaration at '+'"),
    ],
)
def test_refuses_shared(refuse, source, why):
    assert refuse(source) == why


def test_shared_at_file_scope(translate):
    head = 'typedef int cu_t_x[3]; [[maybe_unused]] static cu_t_x &cu_s_x() { return ::cuda_cpu::shared<cu_t_x, cu_owner>([] {}, "x"); }'
    uses, dynamic = (
        " auto &x = cu_s_x(); {",
        " auto &d = cu_s_d(); {",
    )
    for source, expected in (
        ("@int f() { return x[0]; }", "int f() {" + uses + " return x[0]; } }"),
        ("@int f() { return a.x + a->x + d::x + y; }", None),
        ("@int f(int x) { return x; }", None),
        ("@int A::f() { return x; }", None),
        ("struct A { @int f() { return x; } };", "struct A { int f() {" + uses + " return x; } } };"),
        ("struct A : B { @int f() { return x; } };", None),  # the base class may have a member of this name
        ("struct A { @int f() { return x; } int x; };", None),
        ("@int f() { return ::A::x + A<int>::x + d->x; }", None),
        ("int f() { return x; }", None),
        (
            "namespace a { @int f() { return x[0]; } }",
            "namespace a { int f() {" + uses + " return x[0]; } } }",
        ),
        ("__global__ void k() { x[0] = 1; }", kernel("void k()", "k", uses + "x[0] = 1;}")),
    ):
        expected = expected or source.replace("@", "")
        source = source.replace("@", "__device__ ")
        assert words(translate("__shared__ int x[3]; " + source)) == words(head + expected)
        assert words(translate("static __shared__ int x[3]; " + source)) == words(head + expected)
        if "namespace" not in source:
            both = "namespace a::b { %s } namespace a { inline namespace b { namespace { %s } } }"
            assert words(translate(both % ("__shared__ int x[3];", source))) == words(both % (head, expected))
            apart = "namespace a { %s } namespace c { %s }"
            assert "cu_s_x();" not in translate(apart % ("__shared__ int x[3];", source))
    out = translate("extern __shared__ T d[]; __device__ void f() { d[0] = 1; }")
    assert words(dynamic + "d[0] = 1; } }") in words(out)


def test_noinline(translate):
    assert words(translate("__noinline__ int f(); int __noinline__ g();")) == words(
        "__attribute__((noinline)) int f(); int __attribute__((noinline)) g();"
    )
    kept = "__attribute__((__noinline__)) int f(); __attribute__((a, __noinline__)) int g();"
    assert translate(kept) == kept


# ---- __device__, __constant__, __managed__ ----


@pytest.mark.parametrize(
    "declaration",
    [
        "@int f(int);",
        "@void f() { }",
        "@inline float2 operator+(float2 a, float2 b) { return a; }",
        "static @__host__ int f();",
        "__host__ @constexpr T f() { return 1; }",
        "@auto f() -> int;",
        "@float2 f(float2 a);",
        "@unsigned f() noexcept;",
        'extern "C" @int f(int);',
        'extern "C" @void f() { }',
        "extern @int f(int);",
        "@int (*f(int))(float);",
        "@int (f)(int);",
        "static @A<int> (f)(int x) { return x; }",
        "@int *f();",
        "@const char *f(const char *s, int n);",
        "template <class T, int N = 3> @T f(T);",
        "template <> @int f<int>(int);",
        "template @int f<int>(int);",
        "@ns::T<int, 3> f(A<int, 3> a);",
        "@Foo foo();",
        "@A::A(int x) : a(x) { }",
        "@A<T>::A() { }",
        "@A::~A() { }",
        "@A::operator float() const { return 1; }",
        "@A &A::operator=(const A &) { return *this; }",
        "@bool operator<(A a, A b);",
        "@bool operator()(int);",
        "@void *operator new(size_t);",
        '@T operator""_x(long double);',
        "@Foo foo(Bar);",
        "@Foo foo(Bar *);",
        "@Foo foo(Bar &b);",
        "@Foo foo(Bar, Baz);",
        "@Foo foo(int);",
        "@Foo foo(const Bar b);",
        "@Foo foo(ns::Bar<3> b);",
        "@Foo foo(T...);",
        "@Foo foo(A b[3]);",
        "@Foo foo(A[]);",
        "@Foo foo(int (*)(int));",
        "@Foo foo(T (*f)(int));",
        "@Foo foo(...);",
        "@Foo foo(struct A a);",
        "@decltype(x) f(int);",
        "@decltype(auto) f(int);",
        "@__attribute__((noinline)) int f(int);",
        "@int __attribute__((noinline)) f(int);",
        "[[nodiscard]] @int f(int);",
        "@[[nodiscard]] int f(int);",
        "__forceinline__ @T f(T a);",
        "@__launch_bounds__(256) void f();",
        "__attribute__((always_inline)) inline @float f(float x) { return x; }",
        "@struct S *f(struct S *s);",
        "@unsigned long long int f();",
        "@T &&f(T &&);",
        "@int f(int a = g(3));",
        "@int A::f() const;",
        "template <class T> template <class U> @T A<T>::f(U);",
        "@int f() = delete;",
        "typedef @int F(int);",
        "@struct S { int a; };",
        "auto l = [] @(int x) { return x; };",
        "auto l = [=] @{ return 1; };",
        "auto l = [] @(int x) mutable -> int { return x; };",
        "template <typename F = A<B<C<int>>>> @void f(F);",
        "@void f() try { } catch (...) { }",
        "void f() @;",
        "@int f(int), g(int);",
        "template <int N, enable_if_t<N<2, int> = 0> @void f();",
        "@void f(bool b = A<int, (3 > 2)>::v);",
        "struct A { @int f(); };",
        "float *@f(int);",
        "template <class T> T const &@__host__ f(const T &a) { return a; }",
    ],
)
@pytest.mark.parametrize("context", ["%s", "namespace a { %s }", "int x; %s", "}; %s"])
def test_device_functions_lose_the_word(translate, declaration, context):
    context = context.replace("};", "struct B { int x; };")
    expected = context % declaration.replace("@", " ").replace("__host__", "")
    assert translate(context % declaration.replace("@", "__device__ ")) == expected


@pytest.mark.parametrize(
    "member",
    [
        "@A();",
        "@A(int x) : x(x) { }",
        "@explicit A(B b);",
        "explicit @A(B b);",
        "@~A() { }",
        "@virtual ~A() = default;",
        "@operator float() const;",
        "@explicit operator bool() const { return x; }",
        "@A &operator=(const A &) = default;",
        "@int f() const;",
        "static @int f(int);",
        "@static int f(int x) { return x; }",
        "friend @A operator+(A a, A b);",
        "@friend bool operator==(const A &, const A &);",
        "template <class T> @T f(T a);",
        "@auto f() -> int;",
        "virtual @void f() = 0;",
        "@constexpr A(const A &) = default;",
        "@A(T *p);",
        "@bool operator<(const A &) const;",
        "@T &operator[](int i) { return p[i]; }",
        "public: @int f();",
        "private: int a; protected: @A();",
    ],
)
@pytest.mark.parametrize(
    "context",
    [
        "struct A { %s };",
        "template <class T> class A : public B<T> { int x; %s };",
        "void f() { struct A final { %s }; }",
        "template <> struct A<int (*)(int)> { %s };",
        "typedef struct __attribute__((x)) A { void g() { } %s } A_t;",
    ],
)
def test_device_members_lose_the_word(translate, member, context):
    assert translate(context % member.replace("@", "__device__ ")) == context % member.replace("@", " ")


def section(name):
    return f'__attribute__((section("cuda_{name}")))'


@pytest.mark.parametrize(
    "declaration,where",
    [
        ("@int x;", "device"),
        ("@float x = 3.0f, y[4];", "device"),
        ("static @int x[3];", "device"),
        ("@static int x;", "device"),
        ("@int *p;", "device"),
        ("@int (*fptr)(int);", "device"),
        ("@int (*fptr[3])(int) = {a, b, c};", "device"),
        ("@float (*p)[4];", "device"),
        ("@int a{3};", "device"),
        ("@Foo foo(3);", "device"),
        ("@Foo foo(-x);", "device"),
        ('@Foo foo("a", 2);', "device"),
        ("@Foo foo(a + b);", "device"),
        ("@Foo foo(bar(3));", "device"),
        ("@Foo foo(Bar{3});", "device"),
        ("@Foo foo(float(3));", "device"),
        ("@Foo foo(a.b), bar;", "device"),
        ("@Foo foo(a[3]);", "device"),
        ("@Foo foo(&x);", "device"),
        ("@Foo foo(sizeof(int));", "device"),
        ("@Foo foo(a * b(c));", None),
        ("@std::vector<int> v;", "device"),
        ("@A<int, 3> x{1};", "device"),
        ("@A<B<C<int>>> x[4];", "device"),
        ("@struct S s;", "device"),
        ("@struct S { int a; } s = {1};", "device"),
        ("@enum E { a, b } e;", "device"),
        ("@int A::x = 3;", "device"),
        ("@int A<int>::x;", "device"),
        ("template <> @int A<int>::x = 3;", "device"),
        ("extern @int x = 3;", "device"),
        ("@volatile int x;", "device"),
        ("volatile @int x;", "device"),
        ("@unsigned long long x;", "device"),
        ("float @x[3];", "device"),
        ("@ns::T x;", "device"),
        ("@int A::*p;", "device"),
        ("@void (A::*p)(int);", "device"),
        ("@T *p, *q;", "device"),
        ("@__attribute__((aligned(16))) float x[4];", "device"),
        ("@float x[4] __attribute__((aligned(16)));", "device"),
        ("alignas(16) @float x[4];", "device"),
        ("@const char *p;", "device"),
        ("@const char *const p = 0;", "device_ro"),
        ("@const float x[2] = {1, 2};", "device_ro"),
        ("@constexpr float x = 1;", "device_ro"),
        ("static const @int x = 1;", "device_ro"),
        ("@float const x = 1;", "device_ro"),
        ("@int (*const f)(int) = g;", "device_ro"),
        ("@const int (*p)[3];", "device"),
        ("[[maybe_unused]] @int x;", "device"),
        ("@auto x = [] { return 1; }();", "device"),
        ("@int x = sizeof(A<int, 3>), y;", "device"),
        ("@bool b = a < c;", "device"),
        ("@int &r = x;", "device"),
        ("@int (*(*x)[3])(int);", "device"),
    ],
)
def test_device_variables(translate, declaration, where):
    for context in ("%s", "namespace a { namespace { %s } }", 'extern "C" { %s }', "void f() { } %s"):
        for word, name in (
            ("__device__", "device"),
            ("__constant__", "constant"),
            ("__managed__", "managed"),
        ):
            if where is None:
                continue
            expected = section(where.replace("device", name))
            assert translate(context % declaration.replace("@", word + " ")) == context % declaration.replace(
                "@", expected + " "
            )


@pytest.mark.parametrize(
    "source,expected",
    [
        ("__device__ __constant__ float x;", section("constant") + "  float x;"),
        ("__constant__ static __device__ float x;", section("constant") + " static  float x;"),
        ("__device__ __managed__ int m = 1;", section("managed") + "  int m = 1;"),
        ("__managed__ __device__ int m;", section("managed") + "  int m;"),
        ("extern __device__ int x;", "extern  int x;"),
        ("extern __constant__ float x[3];", "extern  float x[3];"),
        ('extern "C" __device__ int x;', 'extern "C"  int x;'),
        ("struct A { static __device__ int x; };", f"struct A {{ static {section('device')} int x; }};"),
        (
            "struct A { __constant__ static const float x[2]; };",
            f"struct A {{ {section('constant_ro')} static const float x[2]; }};",
        ),
        (
            "struct A { static constexpr __device__ int x = 1; };",
            "struct A { static constexpr  int x = 1; };",
        ),
        ("inline __device__ const int x = 1;", "inline  const int x = 1;"),
        ("template <class T> __device__ constexpr T x = 1;", "template <class T>  constexpr T x = 1;"),
        ("void f() { static __device__ int x; }", f"void f() {{ static {section('device')} int x; }}"),
        ("void f() { extern __device__ int x; }", "void f() { extern  int x; }"),
        ("void f() { __device__ int g(int); }", "void f() {  int g(int); }"),
        (
            "void f() { g([=] __device__ (int i) { return i < 3; }, [] __device__ { }); }",
            "void f() { g([=]  (int i) { return i < 3; }, []  { }); }",
        ),
        (
            "__device__ int x = [] __device__ (int i) { return i; }(3);",
            section("device") + " int x = []  (int i) { return i; }(3);",
        ),
    ],
)
def test_device_words_and_scopes(translate, source, expected):
    assert translate(source) == expected


@pytest.mark.parametrize(
    "head",
    [
        "struct A",
        "struct A final",
        "class A : public B<(1 > 2)>",
        "union",
        "struct A<T[3]>::B",
        "struct [[x]] alignas(8) A",
        "template <class T> struct A<T (*)(int)> final : B<T>",
        "void f() { struct : B",
        "typedef struct",
        "static const struct A",
        "x; y: struct A",
        "template <class T = A<B<int>>> union A",
    ],
)
def test_members(translate, refuse, head):
    end = " } x;" + " }" * head.startswith("void")
    assert (
        translate(head + " { static __device__ int x;" + end)
        == head + " { static " + section("device") + " int x;" + end
    )
    assert (
        refuse(head + " { __device__ int x;" + end) == "1: a member variable in device memory must be static"
    )


@pytest.mark.parametrize(
    "source,why",
    [
        ("struct A {\n__device__ int x; };", "2: a member variable in device memory must be static"),
        ("void f() { __device__ int x; }", "1: a local variable in device memory must be static"),
        ("void f(__device__ int x) { }", "1: __device__ is not allowed here"),
        ("int x = f(__constant__ 3);", "1: __constant__ is not allowed here"),
        ("__constant__ int f(int);", "1: only a variable can be __constant__ or __managed__"),
        ("__managed__ void f() { }", "1: only a variable can be __constant__ or __managed__"),
        ("__device__ x = 3;", "1: cannot parse this declaration at '='"),
        ("__device__;", "1: cannot parse this declaration at ';'"),
        ("__device__", "1: the file ends inside a declaration"),
        ("int *__device__ p;", "1: cannot parse this declaration at '__device__'"),
        ("int x[3] __device__;", "1: cannot parse this declaration at '__device__'"),
        ("__device__ int x[3] + 1;", "1: cannot parse this declaration at '+'"),
        ("__device__ int 3;", "1: cannot parse this declaration at '3'"),
        ("struct S { } __device__ s;", "1: cannot parse this declaration at ';'"),
        ("__device__ A<b x;", "1: cannot find the > of this <; put comparisons in ( )"),
        ("inline __device__ int x;", "1: an inline or template variable cannot have a value for each device"),
        (
            "template <class T> __device__ T x;",
            "1: an inline or template variable cannot have a value for each device",
        ),
        (
            "struct A { static inline __constant__ int x = 3; };",
            "1: an inline or template variable cannot have a value for each device",
        ),
    ],
)
def test_refuses_device_words(refuse, source, why):
    assert refuse(source) == why


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
    ns::k<int><<<dim3(at_21,
        at_22), at_23>>>(at_24,
                         at_25); at_26->at_27.at_28;
    __device__ void g(int at_29); at_30;
}
"""


def test_tokens_stay_at_their_lines_and_columns(translator, tmp_path):
    """Whatever is inserted or expanded before a word, the compiler finds the word at its line and column of the .cu."""
    source = tmp_path / "a.cu"
    source.write_text(COLUMNS)
    text = subprocess.run(
        ["g++", "-E", "-x", "c++", source], check=True, capture_output=True, text=True
    ).stdout
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
    assert 'L"at_7"' in out and '"_at9' in out and ">>=" in out and ">>2" in out


# ---- compiling and running the translation ----

ENGINE = r"""
#include <cassert>
#include <cstddef>
#include <tuple>
#include <type_traits>
struct cu_owner;
struct float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
namespace cuda_cpu {
struct Config { unsigned grid, block; std::size_t bytes; void *stream; };
inline Config config(unsigned grid, unsigned block, std::size_t bytes = 0, void *stream = nullptr) {
    return {grid, block, bytes, stream};
}
inline const char *last_name, *body_name;
inline unsigned thread, bounds;
struct Launch;
inline Launch *current;
struct Launch {
    const char *name;
    Config config;
    Launch *outer = current;
    Launch(const char *n, Config c) : name(n), config(c) { current = this; }
    ~Launch() { current = outer; }
};
template <class A> using Parameter = A;
template <class Owner, class... A, class Body> void launch_body(const char *name, unsigned most, Body body, A &...a) {
    last_name = current->name;
    body_name = name;
    bounds = most;
    for (unsigned i = 0; i < current->config.grid * current->config.block; i++) {
        thread = i;
        body(a...);
    }
}
template <class T, class Owner, class Tag> T &shared(Tag, const char *, std::size_t align = alignof(T)) {
    static char memory[sizeof(T) + 4096];
    std::size_t address = reinterpret_cast<std::size_t>(memory);
    return *reinterpret_cast<T *>((address + align - 1) / align * align);
}
alignas(128) inline char tail[4096];
template <class T> T &dynamic_shared(const char *) { return *reinterpret_cast<T *>(tail); }
template <class T> T *in_step_pointer(T *p) { return p; }
template <class T> T &in_step(T &variable) { return variable; }
template <class P> using in_step_cast = P;
template <class T> struct dynamic_array {
    operator std::remove_extent_t<T> *() const { return dynamic_shared<T>(""); }
    template <class U> explicit operator U *() const { return (U *)dynamic_shared<T>(""); }
};
}
#line 1 "case.cu"
"""

GXX = ["g++", "-x", "c++", "-std=gnu++17", "-Wall", "-Wextra", "-Werror"]


@pytest.fixture
def pipeline(translate, tmp_path):
    """A function that preprocesses, translates and compiles a text, and unless check=False runs the program."""

    def pipeline(text, *arguments, check=True):
        source = ENGINE + text
        text = subprocess.run(
            [*GXX, "-E", "-D__CU2CPP__", "-"], input=source, text=True, check=True, capture_output=True
        ).stdout
        program = tmp_path / "program"
        built = subprocess.run(
            [*GXX, "-fpreprocessed", "-o", program, *arguments, "-"],
            text=True,
            input=translate(text),
            capture_output=True,
        )
        if not check:
            return built
        assert built.returncode == 0, built.stderr
        ran = subprocess.run([program], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr

    return pipeline


def test_launches_compile_and_run(pipeline):
    pipeline(
        r"""
        #include <cstring>
        template <class T, int N> struct Tag { static constexpr int n = N; };
        __global__ void add(int a, int b, int *c) { *c += a + b; }
        template <class T> __global__ void fill(T *p, T value) { p[cuda_cpu::thread] = value; }
        template <class T, int N> __global__ void by(int *p) { p[cuda_cpu::thread] = T::n * N; }
        template <class F> __global__ void each(F f, int *p) { p[cuda_cpu::thread] = f(cuda_cpu::thread); }
        __global__ void copies(float2 v, int *p) { v.x += 1; *p += (int)v.x; }
        __global__ void pointer(int *p, const char *q) { assert(!p && !q); }
        namespace ns { template <class T> __global__ void k(T *p) { *p = sizeof(T); } __global__ void plain() { } }
        struct Holder {
            void (*member)(int, int, int *);
            static __global__ void own(int *p) { *p = 77; }
            void run(int *p) { own<<<1, 1>>>(p); this->member<<<1, 1>>>(1, 1, p); }
            template <class T> void generic(T *p) { ns::k<T><<<1, 1>>>(p); }
        };
        template <int N, class T> int in_template(T *p) {
            fill<T><<<1, N>>>(p, T(9));
            by<Tag<Tag<T, N>, N>, N - 1><<<1, N>>>(p);
            auto l = [&] { fill<<<1, 1>>>(p, T(4)); };
            l();
            return p[0];
        }
        #define LAUNCH(kernel, ...) kernel<<<__VA_ARGS__>>>
        #define CHECK(call) do { call; } while (0)
        int main() {
            int c = 0, p[64], calls = 0;
            int *d = &c;
            add<<<2, 3>>>(2, 7, d);
            assert(c == 54 && !strcmp(cuda_cpu::last_name, "add"));
            fill<<<1, 64>>>(p, 5);
            assert(p[63] == 5);
            by<Tag<Tag<int, 2>, 3>, 7><<<1, 1 << 4>>>(p);
            assert(p[15] == 21 && p[16] == 5);
            assert(!strcmp(cuda_cpu::last_name, "by<Tag<Tag<int, 2>, 3>, 7>"));
            by<Tag<int, 3>, 2><<<64 >> 5, 64 >> 4>>>(p);
            assert(p[7] == 6 && p[8] == 21);
            const int offset = 10;
            each<<<1, 8>>>([=] __device__ (int i) { return i + offset; }, p);
            assert(p[7] == 17);
            copies<<<1, 4>>>(float2{1, 2}, (c = 0, &c));
            assert(c == 8);
            pointer<<<1, 1>>>(NULL, 0 ? "" : NULL);
            pointer<<<1, 1, 0, NULL>>>(nullptr, NULL);
            ns::k<double><<<1, 1>>>((double *)(void *)p);
            ::ns::plain<<<1, 1>>>();
            void (*fp)(int, int, int *) = add;
            void (*table[])(int, int, int *) = {add, add};
            auto next = [&calls, table] { return table[calls++]; };
            c = 0;
            (*fp)<<<1, 1>>>(1, 2, &c);
            fp<<<1, 1>>>(1, 2, &c);
            table[c > 5]<<<1, 1>>>(1, 2, &c);
            next()<<<2, 8>>>(1, 0, &c);
            assert(c == 9 + 16 && calls == 1);
            Holder h = {add};
            h.member<<<1, 1>>>(1, 2, &c);
            (&h)->run(&c);
            assert(c == 79);
            h.generic(p);
            assert(p[0] == 4);
            assert((in_template<5>(p)) == 4 && p[1] == 20);
            if (c) fill<<<1, 1>>>(p, 1); else fill<<<1, 1>>>(p, 2);
            assert(p[0] == 1);
            c ? fill<<<1, 1>>>(p, 3) :fill<<<1, 1>>>(p, 4);
            assert(p[0] == 3);
            for (int i = 0; i < 2; i++) add<<<1, 1>>>(i, i, p), fill<<<1, 1>>>(p + i, i);
            assert(p[0] == 2 && p[1] == 1);
            LAUNCH(fill<int>, 1, 2)(p, 12);
            CHECK((fill<<<1,
                          3>>>(p,
                               13)));
            assert(p[1] == 13 && p[2] == 13);
        }
    """
    )


def test_shared_compiles_and_runs(pipeline):
    pipeline(
        r"""
        constexpr int size() { return 3; }
        template <class T> struct Traits { typedef T type; enum { n = 5 }; };
        template <class T, int N> __global__ void k(T *out) {
            __shared__ T a[N], *b, c;
            __shared__ typename Traits<T>::type d[Traits<T>::n][size()];
            volatile __shared__ int e[2];
            static __shared__ struct Pair { T x; float y; } f, g[2];
            __shared__ __attribute__((aligned(256))) char h[5];
            alignas(T) alignas(64) __shared__ T i[2];
            __shared__ float4 j;
            __shared__ void (*l)(T *);
            static_assert(sizeof a == N * sizeof(T) && sizeof b == 8 && sizeof d == 15 * sizeof(T));
            static_assert(std::is_same_v<decltype((e[0])), volatile int &> && sizeof g == 2 * sizeof f && sizeof h == 5);
            assert(reinterpret_cast<std::size_t>(&h) % 256 == 0 && reinterpret_cast<std::size_t>(i) % 64 == 0);
            if (cuda_cpu::thread == 0) {
                for (auto &x : a) x = T(1);
                b = a; c = T(2); d[4][2] = T(3); e[1] = 4; g[1].x = T(5); f.y = 6; h[4] = 7; i[1] = T(8); j.w = 9; l = k<T, N>;
            } else {
                __shared__ int nested; // not the variable of the next line
                { __shared__ int nested; nested = 1; }
                nested = 2;
                *out = b[N - 1] + c + d[4][2] + e[1] + g[1].x + T(f.y) + h[4] + i[1] + T(j.w) + T(l == k<T, N>) + nested;
            }
        }
        __device__ float sum(float x) { __shared__ float total; return total += x; }
        __global__ void one(float *out) {
            extern __shared__ float x[];
            x[cuda_cpu::thread] = cuda_cpu::thread;
            out[cuda_cpu::thread] = x[0] + x[cuda_cpu::thread];
        }
        __global__ void two(double *out) {
            extern __shared__ __attribute__((aligned(16))) volatile double x[];
            extern __shared__ char bytes[], rows[][8];
            assert((void *)bytes == (void *)x && &rows[1][0] == bytes + 8);
            x[1] = 5;
            out[0] = x[1];
        }
        extern __shared__ int outside[];
        namespace ns { extern __shared__ __attribute__((aligned(16))) float outside[]; }
        __global__ void three(int *out) {
            outside[3] = 6;
            int *p = outside, *q = &outside[3];
            float *f = (float *)outside;
            ns::outside[0] = 1.5f;
            assert(*f == 1.5f);
            out[0] = p[3] + *q + *(outside + 3);
        }
        int main() {
            int i = 0; double d[4]; float f[4];
            k<int, 4><<<1, 2>>>(&i);
            assert(i == 48);
            k<double, 8><<<1, 2>>>(d);
            assert(d[0] == 48);
            assert(sum(1) == 1 && sum(2) == 3);
            one<<<1, 4, 16>>>(f);
            assert(f[3] == 3);
            two<<<1, 1, 64>>>(d);
            assert(d[0] == 5);
            three<<<1, 1, 64>>>(&i);
            assert(i == 18);
        }
    """
    )


def test_device_variables_compile_and_run(pipeline):
    pipeline(
        r"""
        extern char __start_cuda_device[], __stop_cuda_device[], __start_cuda_constant[], __stop_cuda_constant[],
            __start_cuda_managed[], __stop_cuda_managed[], __start_cuda_device_ro[], __stop_cuda_device_ro[],
            __start_cuda_constant_ro[], __stop_cuda_constant_ro[];
        struct Sphere { float r, x; __device__ float hit(float ox) const { return ox - x; } __host__ __device__ Sphere() = default;
                        static __device__ int count; static constexpr __device__ int limit = 5; };
        struct Pair { int a, b; __host__ __device__ constexpr Pair(int a, int b) : a(a), b(b) { } __device__ operator int() const; };
        __device__ Pair::operator int() const { return a + b; }
        __constant__ Sphere s[20];
        __device__ int Sphere::count = 3;
        extern __device__ int later;
        __device__ int later = 4;
        __device__ float x = 3.0f, y[4];
        static __device__ int hidden[2] = {1, 2};
        __device__ int twice(int v) { return 2 * v; }
        __device__ int (*fptr)(int) = twice;
        __device__ int a{3};
        __device__ Pair pair(3, 4);
        __device__ __constant__ float scale = 2;
        __constant__ const float table[3] = {1, 2, 3};
        __constant__ const char *name = "a"; __constant__ const char *const names[] = {"b", "c"};
        __device__ const int fixed = 7;
        __device__ constexpr int bound = 2;
        __device__ __managed__ int counter;
        template <class T> __device__ inline T cube(T v) { return v * v * v; }
        __device__ inline float2 operator+(float2 p, float2 q) { return {p.x + q.x, p.y + q.y}; }
        extern "C" __device__ int plain(int v);
        extern "C" __device__ int plain(int v) { return v; }
        __device__ auto trailing(int v) -> int { static __device__ int calls; return v + calls++; }
        template <class F> __global__ void apply(F f, int *out) { *out = f(int(cuda_cpu::thread)); }
        template <class T> bool in(T &v, const char *begin, const char *end) { return (const char *)&v >= begin && (const char *)(&v + 1) <= end; }
        #define DEVICE(v) in(v, __start_cuda_device, __stop_cuda_device)
        int main() {
            int i = 0;
            apply<<<1, 3>>>([=] __host__ __device__ (int t) { return t + i; }, &i);
            assert(i == 2 && DEVICE(x) && DEVICE(y) && DEVICE(hidden) && DEVICE(fptr) && DEVICE(a) && DEVICE(pair));
            assert(DEVICE(later) && DEVICE(Sphere::count) && !DEVICE(scale) && !DEVICE(counter) && !DEVICE(i));
            assert(in(s, __start_cuda_constant, __stop_cuda_constant) && in(scale, __start_cuda_constant, __stop_cuda_constant));
            assert(in(counter, __start_cuda_managed, __stop_cuda_managed) && in(fixed, __start_cuda_device_ro, __stop_cuda_device_ro));
            assert(in(table, __start_cuda_constant_ro, __stop_cuda_constant_ro) && in(names, __start_cuda_constant_ro, __stop_cuda_constant_ro));
            assert(fptr(hidden[1]) == 4 && int(pair) == 7 && cube(a) == 27 && plain(5) == 5 && trailing(1) + trailing(1) == 3);
            assert((float2{1, 2} + float2{3, 4}).y == 6 && table[2] == 3 && *names[1] == 'c' && *name == 'a' && Sphere::limit == 5);
            int sized[bound] = {later, fixed};
            assert(sized[0] == 4 && s[3].hit(2) == 2);
        }
    """
    )


@pytest.mark.parametrize(
    "declaration",
    [
        "__device__ int x y;",
        "__device__ using T = int;",
        "static __device__ x;",
        "__device__ int f g(int);",
        "void f() { __shared__ int x y; }",
        "void f() { static __shared__ x; }",
        "extern __shared__ x y[];",
        "void f() { extern __shared__ int x[], y[]; x = 0; }",
        "void f() { f(1) g<<<1, 1>>>(); }",
        "__device__ int a[2](3);",
        "void f() { __shared__ int x; x<<<1, 1>>>(3); }",
    ],
)
def test_what_is_no_cxx_is_still_none_after_translation(pipeline, run, declaration):
    if run(declaration).returncode == 0:
        assert "case.cu:1:" in pipeline(declaration, check=False).stderr


def test_compiler_errors_name_the_source_line(pipeline):
    built = pipeline("\n\nvoid f() {\n  __shared__ int x[3];\n  missing<<<1, 1>>>(x);\n}\n", check=False)
    assert "case.cu:5:" in built.stderr and "missing" in built.stderr


# ---- files, options and resource limits ----


def test_files(translator, tmp_path):
    source = tmp_path / "a.ii"
    source.write_text("__device__ int x;\n")
    target = tmp_path / "b.ii"
    done = subprocess.run([translator, source, "-o", target], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert target.read_text() == section("device") + " int x;\n"
    assert subprocess.run([translator, source], capture_output=True).stdout == target.read_bytes()


def test_a_refused_file_leaves_no_output(translator, tmp_path):
    source = tmp_path / "julia.cu"
    source.write_text("\nvoid f() { = k<<<1, 1>>>(); }\n")
    done = subprocess.run(
        [translator, source.name, "-o", "out.ii"], capture_output=True, cwd=tmp_path, text=True
    )
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == "julia.cu:2: cannot find the kernel that this <<<…>>> launches\n"
    assert os.listdir(tmp_path) == ["julia.cu"]


@pytest.mark.parametrize(
    "arguments", [(), ("a", "b"), ("-o",), ("a", "-o"), ("-x",), ("--help",), ("-o", "b")]
)
def test_usage(translator, arguments, tmp_path):
    done = subprocess.run([translator, *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (
        64,
        "",
        "usage: cu2cpp INPUT [-d DEVICE] [-w] [-o OUTPUT]\n",
    )


def test_unreadable_input(translator, tmp_path):
    for name, why in (("missing.ii", "No such file or directory"), (".", "Is a directory")):
        done = subprocess.run([translator, name], capture_output=True, text=True, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (1, "", f"cu2cpp: {name}: {why}\n")


def test_full_disk(run, translator, tmp_path):
    source = tmp_path / "a.ii"
    source.write_text("int x;\n" * 10000)
    done = subprocess.run([translator, source, "-o", "/dev/full"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "cu2cpp: /dev/full: No space left on device\n")
    assert os.path.exists("/dev/full")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([translator, source], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "cu2cpp: standard output: No space left on device\n")


def test_a_file_that_cannot_be_written_whole_is_removed(translator, tmp_path):
    source = tmp_path / "a.ii"
    source.write_text("int x;\n" * 10000)

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    done = subprocess.run(
        [translator, source, "-o", tmp_path / "out.ii"],
        capture_output=True,
        text=True,
        preexec_fn=small_files,
        restore_signals=False,
    )
    assert done.returncode == 1 and done.stderr.endswith("out.ii: File too large\n")
    assert os.listdir(tmp_path) == ["a.ii"]


def test_little_memory(translator, tmp_path):
    source = tmp_path / "a.ii"
    source.write_text("int x; " * (1 << 20))
    done = subprocess.run(
        [translator, source, "-o", tmp_path / "out.ii"],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 25, 1 << 25)),
    )
    assert (done.returncode, done.stderr) == (1, "cu2cpp: out of memory\n")
    assert os.listdir(tmp_path) == ["a.ii"]


@pytest.mark.parametrize(
    "piece,tail",
    [
        ("void f() { k<<<1, 1>>>(x); }\n", ""),
        ("f(", ")"),
        ("{", "}"),
        ("A<", ">"),
        ("a > ", ""),
        ("a < ", ""),
        ("((", "))"),
        ("__device__ int f(int); ", ""),
        ("template <class T> ", ""),
        ("struct A < ", ""),
        ("x ? ", ""),
        ("public: ", ""),
        ("namespace a { ", "}"),
        ("g([] { k<<<1, 1>>>(); }, ", "0)"),
        ('"a" ', ""),
        ('# 1 "a"\n', ""),
        ("'a'", ""),
        ("=\n", ""),
        ('R"(', ""),
        ("/*", ""),
        ("<<", ""),
        ("[[", "]]"),
        ("(f", "<<<1, 1>>>(), g)"),
    ],
)
def test_time_grows_with_the_length_only(run, piece, tail):
    """Measures processor time, which other processes on the machine hardly affect. Linear steps take well under a
    second; the fastest quadratic step, a search for a byte through the rest of the text, takes ten."""
    n = 400000
    text = "void f() { " + piece * n + tail * n + " k<<<1, 1>>>(x); __shared__ int y; }"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    assert run(text).returncode in (0, 1)
    assert (
        resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 6
    ), "a quadratic step takes much longer"
