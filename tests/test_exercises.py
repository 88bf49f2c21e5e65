# SPDX-License-Identifier: MIT
"""Exercises (make exercise, exercises, progress): scripts/exercise.py. release/test_exercises_built.py builds more."""
import collections
import os
import re
import shutil
import signal
import subprocess

import pytest

import helpers
from trees import ROOT, make
import grade  # scripts/, which helpers adds to the path
import submission
from exercise import Exercise
from tokens import Problem

ALL = [Exercise(program.name) for program in helpers.programs()]
EXERCISES = [exercise for exercise in ALL if not exercise.why_none()]
needs_cpu = pytest.mark.skipif(
    helpers.backend() == "gpu" or bool(helpers.sanitized()),
    reason="the trees of these tests are for the CPU back end",
)


def add(tree, *programs):
    """Adds programs to a tree that was copied without them."""
    for program in programs:
        shutil.copy(ROOT / f"{program}.cu", tree / f"{program}.cu")


def solve(tree, program):
    """Writes the solution into my/: the program itself, with paths that fit."""
    exercise = Exercise(program)
    text = "".join(exercise.with_includes(line, "../../") + "\n" for line in exercise.lines)
    (tree / f"my/{program}.cu").write_text(text)


def test_what_is_no_exercise_says_why():
    reasons = {exercise.name: exercise.why_none() for exercise in ALL if exercise not in EXERCISES}
    assert [n for n, why in reasons.items() if len(why) < 16 or "Task" in why or "\n" in why] == []


def test_texts_of_the_exercises():
    """The check stays; each function has its task, which does not contain the solution; the functions put back give the program."""
    below = "\n// ---------------------------------------------------------------------------------------- check\n"
    for exercise in EXERCISES:
        name, text = exercise.name, exercise.written()
        check = re.sub(rf'"\.\./\.\./{name.split("/")[0]}/', '"', text.split(below)[1])
        rest, told = exercise.text.split("\n// Task: ")
        assert check.replace('"../../', '"../') == rest.split(below)[1], f"{name}: the check has changed"
        tasks = re.findall(r"^    // Task: ((?:.*\n)(?:    //.*\n)*)", text, re.M)
        assert len(tasks) == len(exercise.asked) and min(map(len, tasks)) > 20, name
        told = re.sub(r"\([^)]*\)|; ", "", told.replace("\n// ", " "))
        assert ";" not in told and "<<<" not in told, name
        # Its Run: line has no options for variants of the program.
        options = re.search(rf"^ \* Run: +(?:mpirun -np \d )?\./bin/my/{name}(.*)$", text, re.M)[1]
        assert options.strip() in ("", exercise.options) or re.fullmatch(r" --output \S+", options), name
        header = text[text.index("\n * Exercise:") : text.index("\n */")].splitlines()
        assert max(map(len, header)) <= 110, name
        for path in re.findall(r'^#include "(.*)"', text, re.M):
            assert (ROOT / path.removeprefix("../../")).is_file(), f"{name}: {path}"
        back = with_functions_of(exercise, exercise.text)
        assert code(back.replace(f'"../{name.split("/")[0]}/', '"')) == code(exercise.text), name


def shapes(text):
    """The tokens of a code, in which a name that is neither CUDA's nor called counts as any other, and a string as any string."""
    found = [t for t in submission.tokens_of(submission.cleaned(text)) if t.kind != "directive"]
    for token, after in zip(found, [*found[1:], *found[-1:]]):
        own = token.kind == "word" and after.text not in ("(", "<<<", "::")
        known = submission.WORDS.fullmatch(token.text) or submission.LIBRARY.fullmatch(token.text)
        yield "name" if own and not known else token.kind if token.kind == "string" else token.text


def runs_of(text, length=18):
    """All runs of so many tokens, which is about a line, by their places."""
    every = [*shapes(text)]
    return [tuple(every[i : i + length]) for i in range(len(every) - length + 1)]


def with_headers(path, seen):
    """The text of a file, and those of the headers that it includes."""
    if path not in seen:
        seen[path] = path.read_text()
        for name in re.findall(r'^ *#include "(.*)"', seen[path], re.M):
            with_headers((path.parent / name).resolve(), seen)
    return seen


def test_an_exercise_does_not_contain_its_solution():
    """At most 30 % of the tokens of a function that is taken out stand elsewhere in the exercise or a header, in runs that at most four
    programs have; 24 tokens, about two statements, are too few to tell."""
    common = collections.Counter(run for exercise in ALL for run in {*runs_of(exercise.text)})
    told = []
    for exercise in EXERCISES:
        files = with_headers(ROOT / f"{exercise.name}.cu", {})
        texts = [exercise.written(), *[text for path, text in files.items() if path.suffix == ".h"]]
        there = {run for text in texts for run in runs_of(text) if common[run] <= 4}
        for f in exercise.asked:
            runs, at = runs_of(f.text[f.text.index("{") :]), set()
            for i, run in enumerate(runs):
                at |= {*range(i, i + len(run))} if run in there else set()
            total = len([*shapes(f.text[f.text.index("{") :])])
            if f.name != "main" and len(at) > max(24, 0.3 * total):
                told.append(f"{exercise.name}: {f.name}(): {len(at)} of {total} tokens")
    assert told == []


def with_functions_of(exercise, text):
    return submission.with_functions(exercise, *submission.functions_of(exercise, text), "../")


def code(text):
    """The code of a source without comments and spaces, and without the prefix that words of a submission get."""
    return [t.removeprefix(submission.OWN) for t in submission.texts_of(submission.cleaned(text))]


ADD = Exercise("chapter04/add_loop_long")


def taken(inserted, exercise=ADD):
    """The program with the functions of a submission, which is the program with a text inserted. "text @ place" names the place where:
    in the body of the kernel, before or behind it, or before a word. Escapes are as in C."""
    inserted = inserted.encode("latin-1", "backslashreplace").decode("unicode_escape")
    what, _, place = inserted.rpartition(" @ ")
    place = {"body": "{\n    size_t tid", "before": "__global__", "behind": "\nint main("}.get(place, place)
    assert place in exercise.text
    at = exercise.text.index(place) + (place[0] == "{")
    return with_functions_of(exercise, exercise.text[:at] + what + exercise.text[at:])


def lines(text):
    return [line for line in text.split("\n") if line]


REFUSED = r"""
\n#define check_sums(...) true\n @ body => line \d+: a preprocessor directive
/*\n */#define EXIT_FAILURE 0\n @ body => a preprocessor directive
\n/**/ # define EXIT_FAILURE 0\n @ body => a preprocessor directive
\n/\\\n**/#line 1\n @ body => a preprocessor directive
\n%:define EXIT_FAILURE 0\n @ body => a preprocessor directive
\n??=define EXIT_FAILURE 0\n @ body => line \d+: \?\?
inject_##error; @ body => a preprocessor directive
int a = R"(})" "{"[0]; @ body => line \d+: R
const char *a = "}"; @ body => "}" is not accepted
e\\u0078it(0); @ body => line \d+: \\
\u0435xit(0); @ body => line \d+:
[](int f(int), long a) { *(long *)&f = a; f(1); }(0, 1); @ body => an attribute or a lambda
if (n) [] {}(); @ body => an attribute or a lambda
if (n) [[likely]] n; @ body => an attribute or a lambda
((void (*)(int))n)(0); @ body => a call of a value
void (*(f))(int); *(size_t *)&f = n; @ body => a call of a value
const v(5); @ body => a call of v \(write a variable with =\) is not accepted
float v(0); { auto v = min; v(0); } @ body => a call of v is not
float v((int)n); abs(v(0)), v(1); @ body => a call of v 
printf(R"(x)"); @ body => line \d+: R
"x"; printf("x"); @ body => line \d+: "x" is not accepted
void f(int); auto g = f; *(size_t *)&g = n; g(0); @ body => a call of f 
auto abs = min; *(size_t *)&abs = n; abs(0); @ body => a call of abs is not
auto (n) = min; n(0); @ body => auto other than
auto static n = min; n(0); @ body => auto other than
auto f = min, abs = min; abs(0); @ body => auto for two variables
auto f = min; (f)(0); @ body => a call of a value
auto v = add; sizeof'"', v /* x */ (0), '"'; @ body => a call of v
auto v = add; sizeof'"' // '"';\n /* x */; v(0); @ body => a call of v
__device__ static int x = 1; @ body => __device__ is not accepted
extern int options; @ body => extern is not accepted
static volatile int sum; sum++; @ body => static is not accepted
template <int e, int xit, int __CONCAT> __device__ void h() { __CONCAT(e, xit)(0); } @ before => a call of __CONCAT
auto f = min; *(size_t *)&f = n; f<<<1, 1>>>(0); @ body => a launch in a kernel
int k = 'my/.grade/0/chapter04/add_loop_long ***'; @ body => ' is not accepted
{ @ body => its braces
__global__ void add() {} @ before => has been changed
__global__ void add(const int *a, const int *b, int *c, size_t n) {} @ before => is defined twice
[[gnu::__constructor__]] @ before => has been changed
__attribute__((constructor)) @ before => it has no function add
template <class F> __device__ int h(F f, long a) { return f(a); } @ before => as in C
__device__ int h(int f(int)) { return f(1); } @ before => as in C
__device__ [[gnu::constructor]] void h() { } @ before => as in C
__device__ int x alignas(fork()) { 1 } @ before => as in C
x @ size_t n) { => the declaration of add\(\) has been changed
x @ add( => it has no function add\(\)
"""
CALLS = r"""exit(0)|_exit(0)|quick_exit(0)|fork()|puts(0)|abort()|system(0)|syscall(60, 0)|::exit(0)|std::exit(0)|asm(0)
check_sums(0, 0, 0, 0)|_Pragma(0)|__builtin_trap()|__attribute__((x)) int y|decltype(n) z|operator new(1)|ex\\\nit(0)|exit/\\\n**/(0)
int s = fork()|struct A { A(); }|malloc(1)"""


CALLED = [f"{call}; @ body => a call of" for call in re.split("[|\n]", CALLS)]


@pytest.mark.parametrize("row", lines(REFUSED) + CALLED)
def test_submissions_that_are_refused(row):
    inserted, says = row.split(" => ")
    with pytest.raises(Problem, match=says):
        taken(inserted)


LONG = ("x", " {}"), ('R"(', ""), ("/* ", ""), ("__device__ int f() { auto x = 1;", "}")


@pytest.mark.parametrize("repeated, end", LONG)
def test_long_texts_are_read_in_linear_time(repeated, end):
    """Ten times the largest submission. In time that grows with the square of the length it would take many times the limit."""
    begin, _, word = repeated.rpartition("{ ")
    text = begin + "{ " * bool(begin) + word * (10 * grade.LONGEST // len(word)) + end
    before = signal.signal(signal.SIGALRM, grade.took_too_long)
    signal.alarm(grade.TIME_LIMIT)
    try:
        with pytest.raises(Problem, match="it has no function add|not balanced"):
            submission.functions_of(ADD, text)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_a_class_with_deep_folders(tmp_path, monkeypatch, capsys):
    """make grade reads what the system can, says what it cannot, and goes on."""
    for name, depth in ("d", 1200), ("e" * 250, 20):
        monkeypatch.chdir(tmp_path)
        for _ in range(depth):
            os.mkdir(name)
            os.chdir(name)
        os.close(os.open("a.cu", os.O_CREAT))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "z").mkdir()
    (tmp_path / "z/folder.cu").mkdir()
    (tmp_path / "z/a.cu").symlink_to("folder.cu")
    try:
        found = [str(path.relative_to(tmp_path)) for path in grade.sources_below(tmp_path)]
    finally:
        subprocess.run(["rm", "-rf", *tmp_path.iterdir()], check=True)  # pytest would fail to
    assert found == ["d/" * 1200 + "a.cu", "z/a.cu"]
    said = capsys.readouterr().err
    assert said.startswith(f"make grade: not read: {'e' * 100}: File name too long") and said.count("\n") == 1


HARMLESS = r"""
options.inject_error = 0; EXIT_FAILURE; stdout; a.INT_EVIL; std::cout; asm volatile(0); __builtin_trap; goto end; @ body
union B { int b; }; using namespace std; typedef int T; new int; throw 1; thread_local int t; @ body
struct A { A(); } a; int x = fork(); @ before
; int x = fork(); @ behind
} int x = fork(); void f() { @ body
__device__ float fabs(float x) { return x; } @ before
#define EXIT_FAILURE 0\n#pragma GCC poison x\n @ before
"""


@pytest.mark.parametrize("inserted", lines(HARMLESS))
def test_words_that_do_not_compute_are_no_words_of_the_harness(inserted):
    """What the program has more than before is CUDA, numbers and operators; other words have a prefix."""
    count = [collections.Counter(re.findall(r"\w+", text)) for text in (taken(inserted), ADD.text)]
    strange = [w for w in count[0] - count[1] if w[1:].isidentifier() and not w.startswith(submission.OWN)]
    # The first is a member of student_options; to define the last one again, it would not have a prefix.
    others = {w for w in strange if not submission.WORDS.fullmatch(w)}
    assert others <= {"inject_error"} and "fabs" not in strange


HONEST = r"""
int automatic = 1; auto i = automatic; @ body
float t(0), u(t + 1), v((int)n); for (unsigned int k(3); k < 9; k++) printf("%d; \\"x\\"\\n", abs((int)k)); @ body
/* /*\n * */ /*\n @ \n/*
\ufeff @ // SPDX
char c = '{'; // }\n @ body
/* \u00fc # } */ size_t exit = 1'000, k = (size_t)(exit) * 0x1p3f;\n    #pragma unroll 4\n @ body
auto i = threadIdx.x; int t[4] = {0}; for (auto &x : t) x = max(abs((int)i), min(t[0], t[1])); @ body
const char *s = R"x(})" { )x"; @ behind
template <int N> static __device__ int h(const int *a) { static constexpr int k = 1; return a[N] + k; } @ before
"""


@pytest.mark.parametrize("inserted", lines(HONEST))
def test_submissions_that_are_taken(inserted):
    assert "void add(" in taken(inserted)


def test_spaces_of_a_declaration_and_pragma_unroll_are_taken():
    text = ADD.text.replace("const int *a, const int *b,", "const int* a,\n    const int * b ,")
    assert text != ADD.text and "void add(" in with_functions_of(ADD, text)
    for name, says in ("turns", f"{submission.OWN}turns"), ("N", "N"):
        assert f"unroll {says}\n" in taken(f"\n#pragma unroll {name}\n @ body")


def test_a_kernel_calls_no_function_of_the_host_and_no_pointer_in_a_structure():
    by_pointer = "Launch x; *(size_t *)&x.kernel = n; x.kernel(a, b, c, n);"
    for name, of, call in [
        ("chapter05/add_launch_shapes", "kernel", by_pointer),
        ("chapter03/simple_kernel_params", "main", "char *x[] = {0}; main(0, x);"),
    ]:
        exercise = Exercise(name)
        first = exercise.asked[0].text
        changed = exercise.text.replace(first, first.replace("{", "{" + call, 1))
        with pytest.raises(Problem, match=f"a call of {of} is not accepted"):
            with_functions_of(exercise, changed)


def test_functions_of_helpers_are_taken():
    """A further __device__ function comes before the kernel; a host function does not come."""
    text = taken("__device__ int sum(int a, int b) {\n    return a + b;\n}\nvoid cheat() {\n}\n @ before")
    assert text.index(f" {submission.OWN}sum(") < text.index("__global__ void add(") and "cheat" not in text


def test_main_is_changed_only_in_calls_of_cuda():
    exercise = Exercise("chapter03/simple_kernel_params")
    for new in "HANDLE_ERROR(cudaDeviceSynchronize());", r'printf("here: %d;\\n", c);':
        assert taken(f"{new} @ HANDLE_ERROR(", exercise)
    comma = "HANDLE_ERROR((c = a + b, cudaSuccess));"
    for new in "return 0;", "printf(x, settings(0, 0));", comma, "HANDLE_ERROR(argc);":
        with pytest.raises(Problem, match=r"main\(\)"):
            taken(f"{new} @ HANDLE_ERROR(", exercise)


def test_main_has_the_streams_and_the_asynchronous_copies():
    """No run shows that they are missing: the result is right without them."""
    exercise = Exercise("chapter10/basic_double_stream")
    for old, new, says in [
        ("256, 0, stream1>>>", "256, 0, stream0>>>", "stream1 in a launch"),
        ("256, 0, stream1>>>", "256>>>", "stream1 in a launch"),
        ("cudaMemcpyAsync(", "cudaMemcpy(", "cudaMemcpyAsync"),
    ]:
        with pytest.raises(Problem, match=rf"^main\(\) has no {says}$"):
            with_functions_of(exercise, exercise.text.replace(old, new))


def test_a_kernel_has_no_name_of_the_host():
    """Kernels of radix_sort have a parameter with the name of a variable, which they could set on the CPU."""
    exercise = Exercise("chapter12/radix_sort")
    text = with_functions_of(exercise, exercise.text)
    assert re.search(r"int bit, size_t student_n\)", text)


def test_a_kernel_has_no_types_of_headers():
    """A variable of a type that is a pointer to a function could have the name of a function, and be called."""
    for name, kernel, types in [
        ("chapter08/ripple_vulkan", "kernel", "PFN_vkGetMemoryFdKHR VkInstance include"),
        ("chapter12/transpose", "copy", "kernels std"),
        ("chapter05/reduction", "reduce0", "dev_sum"),  # a pointer to const
    ]:
        names = submission.Names(Exercise(name))
        assert kernel in names.device and [w for w in types.split() if names.has(w, False)] == [], name
    # Constants and types of the lesson stay.
    names = submission.Names(Exercise("chapter07/heat_gmem"))
    assert all(names.has(word, False) for word in ("DIM", "SPEED", "MAX_TEMP"))


def test_the_document_names_the_exercises_with_calls_of_values():
    found = [e.name.split("/")[1] for e in EXERCISES if submission.Names(e).calls_values]
    assert f"(`{'`, `'.join(found)}`) accept calls of values" in (ROOT / "docs/grading.md").read_text()


def test_the_right_kernels_of_a_ladder_are_named():
    (ladder,) = (e for e in EXERCISES if e.name == "chapter05/reduction")
    says = {
        (): "no kernel",
        (0,): "kernel 0",
        (0, 1, 2, 3): "kernels 0 to 3",
        (0, 1, 5, 6): "kernels 0, 1, 5, 6",
    }
    for right, named in says.items():
        is_right = lambda options, right=right: int(options.split()[-1]) in right
        assert ladder.of_kernels(is_right) == ([*right], f"right: {named} of 7; ")


def test_make_exercise_keeps_what_is_there(sources):
    tree = sources
    (tree / "my/chapter04").mkdir(parents=True)
    mine = tree / "my/chapter04/julia_gpu.cu"
    mine.write_text("// mine\n")
    assert "my/chapter04/julia_gpu.cu is there already" in make(tree, "exercise", "chapter04/julia_gpu")
    make(tree, "exercise", "PROGRAM=chapter04/julia_gpu")
    make(tree, "exercises")
    make(tree, "clean")
    assert mine.read_text() == "// mine\n"
    log = make(tree, "exercise", "chapter03/hello_world", status=2)
    assert "chapter03/hello_world is no exercise: it computes nothing" in log
    assert not (tree / "my/chapter03").exists()
