# SPDX-License-Identifier: MIT
"""cu2cpp, the translator: what it refuses, its options and files, and the time that it needs. A text that is refused ends with one line
on stderr, status 1 and no output."""
import resource
import signal
import subprocess

import pytest

from tools import CUCC, execute, rows


@pytest.fixture
def refuse(translator):
    """Translates text that must be refused; returns the message without the name of the file."""

    def refuse(text):
        done = subprocess.run([translator, "-"], input=text, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("<stdin>:") and done.stderr.count("\n") == 1
        return done.stderr[len("<stdin>:") : -1]

    return refuse


# Messages, and the texts that they refuse. A text is in the line that its message names; the line 1 is not written.
REFUSED = {
    "cannot find the kernel that this <<<…>>> launches": """
        void f() { x + k<<<1, 1>>>(); } | void f() { <<<1, 1>>>(); } | void f() { 3<<<1, 1>>>(); } | void f() { int k<<<1, 1>>>(); }
        void f() { *k<<<1, 1>>>(); } | void f() { f(x) k<<<1, 1>>>(); } | void f() { if<<<1, 1>>>(); } | void f() { a k>><<<1, 1>>>(); }
        void f() { static_cast<T><<<1, 1>>>(); } | void f() { [0]<<<1, 1>>>(); } | void f() { k<<<1, 1>>>(x)<<<1, 1>>>(x); }
    """,
    "this <<< has no matching >>>": """
        void f() { a <<< b; } | void f() { k<<<1, 1>>(x); } | void f() { k<<<1, j<<<1, 1>>>()>>>(x); } | void f() { k<<<<1, 1>>>(); }
    """,
    "this <<<…>>> is not followed by the ( ) of a launch": "void f() { k<<<1, 1>>>; }",
    "<<<…>>> needs at least a grid and a block": "void f() { k<<<1>>>(); } | void f() { k<<<>>>(); } | void f() { k<<<f(1, 2)>>>(); }",
    "the kernel of this <<<…>>> is too complex: name it in a variable first": """
        void f() { k<[] __device__ { return 1; }><<<1, 1>>>(); }
    """,
    "unmatched }": "{ ( }",
    "unmatched )": ") | void f() { k<<<1, }1)>>>(x); }",
    "this ( is never closed": "f(",
    "__global__ is not allowed here": "void f(__global__ int x) { }",
    "a kernel cannot have a variable number of arguments": "__global__ void k(int n, ...) { }",
    "illegal combination of memory qualifiers: __global__ with __device__": """
        __global__ __device__ void k() { } | __device__ __global__ void k(); | template <class T> void __device__ __global__ k(T) { }
    """,
    "illegal combination of memory qualifiers: __global__ with __host__": "__global__ void __host__ k(); | __host__ __global__ void k();",
    "an operator cannot be a kernel": "__global__ void operator+(A a, A b) { }",
    "__cluster_dims__: clusters of blocks are not supported": "__global__ void __cluster_dims__(2) k() { }",
    "__block_size__: clusters of blocks are not supported": "__block_size__((1, 1)) __global__ void k() { }",
    "__shared__ is only for variables declared in a kernel or device function": """
        void k(__shared__ int *p) { } | void k() { f((__shared__ int *)p); } | struct A { __shared__ int x; };
        struct A { static __shared__ int x; }; | template <class T> struct A<T(int)> : B<(1 > 2)> { extern __shared__ T x[]; };
        void k() { typedef __shared__ int x; } | void k() { __shared__ __constant__ int x; }
        template <> __shared__ int x<int>; | template <class T> __shared__ T x, y; | struct A { template <class T> __shared__ T x; };
    """,
    "a __shared__ variable with an alignment must stand before the switch": """
        void k() { switch (a) { case 1: __shared__ alignas(16) int x; x = 1; case 2: ; } }
    """,
    "a __shared__ variable cannot have an initial value": """
        void k() { __shared__ int x = 3; } | void k() { __shared__ int x[2] = {1, 2}; } | void k() { __shared__ int x{}; }
        void k() { __shared__ int y, x(3); } | void k() { __shared__ int f(int); }
    """,
    "cannot parse this declaration at '('": "void k() { if (a) __shared__ int x; }",
    "cannot parse this declaration at ';'": """
        void k() { __shared__ x; } | void k() { __shared__; } | void k() { __shared__ int; } | __device__;
        int x; __global__ x;
    """,
    "cannot parse this declaration at '}'": "void k() { __shared__ int x }",
    "cannot parse this declaration at 'x'": "void k() { __shared__ int A::x; }",
    "cannot parse this declaration at '+'": "void k() { a + __shared__ int x; } | __device__ int x[3] + 1;",
    "cannot parse this declaration at '='": "__device__ x = 3;",
    "cannot parse this declaration at '3'": "__device__ int 3;",
    "cannot parse this declaration at '__device__'": "int *__device__ p; | int x[3] __device__;",
    "cannot find the > of this <; put comparisons in ( )": "void k() { __shared__ A<b x; } | __device__ A<b x;",
    "the file ends inside a declaration": "__device__",
    "a member variable in device memory must be static": """
        struct A { @ }; | struct A final { @ }; | class A : public B<(1 > 2)> { @ }; | union { @ }; | struct A<T[3]>::B { @ };
        struct [[x]] alignas(8) A { @ }; | template <class T> struct A<T (*)(int)> final : B<T> { @ }; | typedef struct { @ } A;
        void f() { struct : B { @ } x; } | static const struct A { @ } x; | x; y: struct A { @ } z;
        template <class T = A<B<int>>> union A { @ };
    """,
    "a local variable in device memory must be static": "void f() { @ }",
    "__device__ is not allowed here": "void f(__device__ int x) { }",
    "__constant__ is not allowed here": "int x = f(__constant__ 3);",
    "only a variable can be __constant__ or __managed__": "__constant__ int f(int); | __managed__ void f() { }",
    "an inline or template variable cannot have a value for each device": """
        inline @ | template <class T> __device__ T x; | struct A { static inline __constant__ int x = 3; };
    """,
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(refuse, message):
    for source in rows(REFUSED[message].replace("@", "__device__ int x;")):
        assert refuse(source) == f"1: {message}", source
        assert refuse(f"int a;\n\n{source}") == f"3: {message}", source


def test_refused_text(refuse):
    for source, message in (
        ("a\n/* b\n", "2: unterminated comment"),
        ("a\n'b\n'", "2: missing closing '"),
        ('a\n"b\n', '2: missing closing "'),
        ('R"(\n\n', "1: unterminated raw string"),
        ('R"a b(x)a b"', "1: invalid delimiter of a raw string"),
        ("a \\\n 'b\\\n' // c \\\n d\n /*\n*/ R\"(\n)\" )", "7: unmatched )"),
        ("__device__ int\n\n'\\'' x;", r"3: cannot parse this declaration at ''\'''"),
    ):
        assert refuse(source) == message


PTX = {
    'asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0};" : "=f"(x));': "mma.sync",
    'asm("mov.u32 %0, %%envreg3;" : "=r"(x));': "mov.u32 %0, %%envreg3",
    'asm("{ .reg .pred p, q; setp.ne.and.u32 p, %0, 0, q; }" :: "r"(x));': "setp.ne.and.u32 p",
    'asm("{ .reg .pred p; setp.ne.f32 p, %0, %0; }" :: "f"(x));': "setp.ne.f32 p",
    'asm("{ .reg .u32 t; } mov.u32 t, 1;");': "mov.u32 t",
    'asm("{ .reg .u32 t<4>; }");': ".reg .u32 t<4>",
    'asm("{ mov.u32 %0, 1;" : "=r"(x));': "{ mov.u32 %0",
    'asm("} mov.u32 %0, 1;" : "=r"(x));': "} mov.u32 %0",
    'asm("mov.b64 %0, {%1, 5, 6};" : "=l"(y) : "r"(x));': "mov.b64 %0, {%1",
    'asm("mov.u32 5, %0;" : "=r"(x));': "mov.u32 5",
    'asm("@p bra done;");': "@p bra done",
    'asm("cp.async.bulk.commit_group;");': "cp.async.bulk",
    'asm("mov.u32 %0, 1; brkpt;" : "=r"(x));': "brkpt",
    'asm("add.u32 %0, %1, %2;" : "=r"(x) : "r"(x));': "add.u32 %0, %1, %2",
    'asm("mul.lo.cc.u32 %0, %0, %0;" : "+r"(x));': "mul.lo.cc.u32",
    'asm("barrier.cluster.arrive;");': "barrier.cluster.arrive",
    'asm("bar.arrive 1;");': "bar.arrive 1",
    'asm("cvt.rn.relu.f16.f32 %0, %1;" : "=h"(x) : "f"(x));': "cvt.rn.relu.f16.f32",
    'asm("cvt.u32.b32 %0, %1;" : "=r"(x) : "r"(x));': "cvt.u32.b32",
    'asm("add.f16 %0, %0, %0;" : "+h"(x));': "add.f16",
    'asm("setp.lt.f16 %0, %0, %0;" : "+h"(x));': "setp.lt.f16",
    'asm("atom.add.noftz.f16x2 %0, [%1], %0;" : "+r"(x) : "l"(y));': "atom.add.noftz.f16x2",
    'asm("red.min.f32 [%0], %1;" :: "l"(y), "f"(x));': "red.min.f32",
    'asm("vadd4.u32.u32.u32 %0, %0, %0, %0;" : "+r"(x));': "vadd4.u32.u32.u32",
    'asm("wgmma.fence.sync.aligned;");': "wgmma.fence",
    'asm("/");': "'/'",
    'asm("// a comment without an end\\nbra l; /*");': "bra l",
    'asm("lop3.u64 %0, %0, %0, %0, 1;" : "+l"(x));': "lop3.u64",
    'auto f = [&] { __asm__ volatile("mov.u32 %0, %%laneid; exit;" : "=r"(x)); };': "exit",
    'asm("ld.param.u32 %0, [%1];" : "=r"(x) : "r"(y));': "ld.param.u32",
    'asm("mov.u32 %[a], 0;" : [a] "=r"(x));': "an operand with a name",
    'asm("..;");': "'..'",
}


@pytest.mark.parametrize("statement", PTX)
def test_refused_ptx(refuse, statement):
    for head in (
        "__global__ void k()",
        "__device__ int f()",
        "__host__ __device__ A::A() : B<int, 2>{1}, a(1)",
    ):
        message = refuse(f"{head} {{\n int x;\n {statement} }}")
        assert message.startswith("3: inline PTX is not supported here") and PTX[statement] in message


def test_what_is_no_cxx_is_still_none_after_translation(translator, tmp_path):
    sources = rows(
        """
        __device__ int x y; | __device__ using T = int; | static __device__ x; | __device__ int f g(int); | extern __shared__ x y[];
        void f() { __shared__ int x y; } | void f() { static __shared__ x; } | void f() { f(1) g<<<1, 1>>>(); }
        void f() { extern __shared__ int x[], y[]; x = 0; } | __device__ int a[2](3); | void f() { __shared__ int x; x<<<1, 1>>>(3); }
        """
    )
    done = [subprocess.run([translator, "-"], input=s, capture_output=True, text=True) for s in sources]
    assert [d.stderr for d in done if d.returncode and not d.stderr.startswith("<stdin>:1:")] == []
    left = [source for source, d in zip(sources, done) if d.returncode == 0]
    text = "".join(f"namespace n{i} {{ {source} }}\n" for i, source in enumerate(left))
    (tmp_path / "a.cu").write_text(text)
    messages = execute(CUCC, "-c", "-w", "a.cu", cwd=tmp_path, status=1).err
    assert [source for i, source in enumerate(left, 1) if f"\na.cu:{i}:" not in "\n" + messages] == []


# ---- differences between host and device text ----

DIFFERS = "this declaration differs between host and device code, which is not supported (__CUDA_ARCH__)"
LAMBDA = "__CUDA_ARCH__ in a function with a __device__ lambda is not supported"


@pytest.mark.parametrize(
    "host,device,message",
    [
        ("int x = 1;", "int x = 2;", DIFFERS),
        ("__host__ __device__ int x = 1;", "__host__ __device__ int x = 2;", DIFFERS),
        ("namespace n { int a;", "int b;", None),
        ("void f() { g([] __device__ { 1; }); }", "void f() { g(2); }", LAMBDA),
        (
            "template <int N> __host__ __device__ int f() { }",
            "template <int M> __host__ __device__ int f() { 1; }",
            DIFFERS,
        ),
    ],
)
def test_refused_differences(translator, tmp_path, host, device, message):
    (tmp_path / "device").write_text(f'# 1 "d.cu"\n{device}\n')
    text = f'# 7 "h.cu"\n{host}\n'
    command = [translator, "-", "-d", tmp_path / "device"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == (f"h.cu:7: {message}\n" if message else "h.cu:7: this { is never closed\n")


# ---- files, options and resource limits ----


@pytest.fixture
def run(translator, tmp_path):
    """Runs the translator in a folder with a file a.ii; (status, stdout, stderr)."""
    (tmp_path / "a.ii").write_text("__device__ int x;\n" + "int y;\n" * 10000)

    def run(*arguments, **settings):
        settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
        done = subprocess.run([translator, *arguments], cwd=tmp_path, text=True, **settings)
        return done.returncode, done.stdout, done.stderr

    return run


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_output_file(run, tmp_path):
    assert run("a.ii", "-o", "b.ii") == (0, "", "")
    text = (tmp_path / "b.ii").read_text()
    assert text.startswith('__attribute__((section("cuda_device"))) int x;\n')
    assert run("a.ii") == (0, text, "")


def test_a_refused_file_leaves_no_output(run, tmp_path):
    (tmp_path / "a.ii").write_text('# 7 "x\\\\y.h"\n)')
    assert run("a.ii", "-o", "out.ii") == (1, "", "x\\y.h:7: unmatched )\n")
    (tmp_path / "a.ii").write_text("\n)")
    assert run("a.ii", "-o", "out.ii") == (1, "", "a.ii:2: unmatched )\n")
    assert files(tmp_path) == ["a.ii"]


def test_usage(run):
    usage = "usage: cu2cpp INPUT [-d DEVICE] [-w] [-f] [-e] [-o OUTPUT]\n"
    for arguments in "", "a b", "-o", "a -o", "-x", "--help", "-o b", "a -d":
        assert run(*arguments.split()) == (64, "", usage)


def test_unreadable_and_unwritable_files(run, tmp_path):
    assert run("missing.ii") == (1, "", "cu2cpp: missing.ii: No such file or directory\n")
    assert run(".") == (1, "", "cu2cpp: .: Is a directory\n")
    assert run("a.ii", "-d", "missing.ii") == (1, "", "cu2cpp: missing.ii: No such file or directory\n")
    assert run("a.ii", "-o", "/dev/full") == (1, "", "cu2cpp: /dev/full: No space left on device\n")
    with open("/dev/full", "wb") as full:
        assert run("a.ii", stdout=full)[2] == "cu2cpp: standard output: No space left on device\n"

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    done = run("a.ii", "-o", "out.ii", preexec_fn=small_files, restore_signals=False)
    assert done == (1, "", "cu2cpp: out.ii: File too large\n")
    assert files(tmp_path) == ["a.ii"]


def test_little_memory(run, tmp_path):
    (tmp_path / "a.ii").write_text("int x; " * (1 << 20))
    limits = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 25, 1 << 25))}
    assert run("a.ii", "-o", "out.ii", **limits) == (1, "", "cu2cpp: out of memory\n")
    assert files(tmp_path) == ["a.ii"]


REPEATED = {  # a piece, and what closes it
    **dict.fromkeys(["void f() { k<<<1, 1>>>(x); }\n", "__device__ int f(int); ", "template <class T> "], ""),
    **dict.fromkeys(
        ["a > ", "a < ", "x ? ", '"a" ', "'a'", "public: ", "=\n", '# 1 "a"\n', "struct A < "], ""
    ),
    **{"f(": ")", "{": "}", "A<": ">", "((": "))", "[[": "]]", "namespace a { ": "}"},
    **{"g([] { k<<<1, 1>>>(); }, ": "0)", "(f": "<<<1, 1>>>(), g)"},
}


@pytest.mark.parametrize("piece", REPEATED)
def test_time_grows_with_the_length_only(translator, piece):
    """Measures processor time, which other processes on the machine hardly affect. Linear steps take well under a second; the
    fastest quadratic step, a search for a byte through the rest of the text, takes ten."""
    n = 400000
    text = "void f() { " + piece * n + REPEATED[piece] * n + " k<<<1, 1>>>(x); __shared__ int y; }"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = [translator, "-", "-o", "/dev/null"]
    done = subprocess.run(command, input=text, stderr=subprocess.DEVNULL, text=True)
    assert done.returncode in (0, 1)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 6


@pytest.mark.parametrize("functions, first", [(12, ""), (8, "__shfl_sync(~0u, 1, 0);")])
def test_functions_that_call_the_next_one_twelve_times(translator, functions, first):
    """All paths of calls are too many to follow, and to write the functions in place of their calls."""
    text = f"__device__ void f0() {{ {first} }}\n"
    for i in range(1, functions):
        text += f"__device__ void f{i}() {{ {f'f{i - 1}(); ' * 12} }}\n"
    text += f"__global__ void k(int *x) {{ f{functions - 1}(); *x = __shfl_sync(~0u, *x, 0); }}\n"
    done = subprocess.run([translator, "-w", "-"], input=text, capture_output=True, text=True, timeout=20)
    assert done.returncode == 0 and f"f{functions - 1}" in done.stdout


def test_variables_that_use_the_one_before_twice(translator):
    """Whether all lanes of a warp have the same value of a39 is found without following 2^39 paths."""
    chain = "".join(f"int a{i} = a{i - 1} + a{i - 1}; " for i in range(1, 40))
    shuffle = "x[threadIdx.x] = __shfl_sync(~0u, x[threadIdx.x], 0); "
    text = (
        f"__global__ void k(int *x) {{ int a0 = threadIdx.x / 32; {chain} if (a39 > 3) {{ {shuffle} }} }}\n"
    )
    done = subprocess.run([translator, "-w", "-"], input=text, capture_output=True, text=True, timeout=20)
    assert done.returncode == 0 and "a39" in done.stdout


def test_tokens_of_a_source(run, tmp_path):
    """--tokens: kind, offset, length and the first line of each; a source need not be preprocessed or complete."""
    (tmp_path / "a.cu").write_text('#define X /* a\n */ { // b\nk<1\'0(L"\\""\'c\'R"(a\n)""\n/* open')
    shown = """directive 0 10 #define X |comment 10 8 /* a|directive 19 2 { |comment 21 4 // b|word 26 1 k|symbol 27 1 <
number 28 3 1'0|symbol 31 1 (|word 32 1 L|string 33 4 "\\""|character 37 3 'c'|string 40 7 R"(a|unclosed 47 1 "|unclosed 49 7 /* open
"""
    assert run("--tokens", "a.cu") == (0, shown.replace("|", "\n"), "")
