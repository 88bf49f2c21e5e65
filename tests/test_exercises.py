# SPDX-License-Identifier: MIT
"""Exercises (make exercise, exercises, progress): scripts/task.py and scripts/exercise.py. release/test_exercises_built.py builds more."""
import collections
import re
import shutil

import pytest

import helpers
from trees import ROOT, make
import submission  # scripts/, which helpers adds to the path
import task

ALL = [task.Exercise(program.name) for program in helpers.programs()]
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
    exercise = task.Exercise(program)
    (tree / f"my/{program}.cu").write_text(submission.with_functions_of(exercise, exercise.text, "../../"))


def test_what_is_no_exercise_says_why():
    reasons = {exercise.name: exercise.why_none() for exercise in ALL if exercise not in EXERCISES}
    assert len(reasons) > 20 and len(EXERCISES) > 40
    assert [n for n, why in reasons.items() if len(why) < 16 or "Task" in why or "\n" in why] == []


def test_texts_of_the_exercises():
    """The proof stays; each function has its task, which does not contain the solution; the functions put back give the program."""
    below = "\n// ---------------------------------------------------------------------------------------- proof\n"
    for exercise in EXERCISES:
        name, text = exercise.name, exercise.written()
        proof = re.sub(rf'"\.\./\.\./{name.split("/")[0]}/', '"', text.split(below)[1])
        rest, told = exercise.text.split("\n// Task: ")
        assert proof.replace('"../../', '"../') == rest.split(below)[1], f"{name}: the proof has changed"
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
        back = submission.with_functions_of(exercise, exercise.text, "../")
        assert code(back.replace(f'"../{name.split("/")[0]}/', '"')) == code(exercise.text), name


def code(text):
    """The code of a source without comments and spaces, and without the prefix that words of a submission get."""
    tokens = [m[0] for m in submission.TOKEN.finditer(submission.cleaned(text)) if m.lastgroup != "space"]
    return [token.removeprefix(submission.OWN) for token in tokens]


LOOP, SPLICE = "{\n    for", "\\\n"
ADD = task.Exercise("chapter04/add_loop_long")


def taken(old, new, exercise=ADD):
    """The program with the functions of a submission that differs from it in one place."""
    assert old in exercise.text
    return submission.with_functions_of(exercise, exercise.text.replace(old, new, 1), "../")


CALLS = """exit(0)|_exit(0)|quick_exit(0)|fork()|puts(0)|abort()|system(0)|syscall(60, 0)|::exit(0)|std::exit(0)|asm(0)|printf(0)
    check_sums(0, 0, 0, 0)|_Pragma(0)|__builtin_trap()|__attribute__((x)) int y|decltype(n) z|operator new(1)
    static int s = fork()|struct A { A(); }|malloc(1)""".replace("\n    ", "|").split("|")
CALLS += f"ex{SPLICE}it(0)", f"exit/{SPLICE}**/(0)"


@pytest.mark.parametrize(
    "old, new, says",
    [
        (LOOP, "{\n#define check_sums(...) true\n    for", "line \\d+: a preprocessor directive"),
        (LOOP, "{/*\n */#define EXIT_FAILURE 0\n    for", "line \\d+: a preprocessor directive"),
        (LOOP, "{\n/**/ # define EXIT_FAILURE 0\n    for", "line \\d+: a preprocessor directive"),
        (LOOP, f"{{\n/{SPLICE}**/#line 1\n    for", "line \\d+: a preprocessor directive"),
        (LOOP, "{\n%:define EXIT_FAILURE 0\n    for", "line \\d+: a preprocessor directive"),
        (LOOP, "{\n??=define EXIT_FAILURE 0\n    for", r"line \d+: \?\?"),
        (LOOP, '{ int a = R"(})" "{"[0];\n    for', "line \\d+: R"),
        (LOOP, '{ const char *a = "}";\n    for', 'line \\d+: "}" is not accepted'),
        (LOOP, "{ e\\u0078it(0);\n    for", "line \\d+: "),
        (LOOP, "{ \u0435xit(0);\n    for", "line \\d+: "),
        (LOOP, "{ [](int f(int), long a) { *(long *)&f = a; f(1); }(0, 1);\n    for", "an attribute or a lambda"),
        (LOOP, "{ if (n) [] {}();\n    for", "an attribute or a lambda"),
        (LOOP, "{ if (n) [[likely]] n;\n    for", "an attribute or a lambda"),
        (LOOP, "{ ((void (*)(int))n)(0);\n    for", "a call of a value"),
        (LOOP, "{ void (*(f))(int); *(size_t *)&f = n;\n    for", "a call of a value"),
        (LOOP, "{ void f(int); auto g = f; *(size_t *)&g = n; g(0);\n    for", "a call of f is not"),
        (LOOP, "{ auto abs = min; *(size_t *)&abs = n; abs(0);\n    for", "a call of abs is not"),
        (LOOP, "{ auto f = min, abs = min; abs(0);\n    for", "auto for two variables"),
        (LOOP, "{ auto f = min; (f)(0);\n    for", "a call of a value"),
        *((LOOP, f"{{ {call};\n    for", "a call of") for call in CALLS),
        (LOOP, "{ extern int options;\n    for", "extern is not accepted"),
        (LOOP, "{\n    {\n    for", "its braces"),
        ("size_t n) {", "unsigned n) {", r"the declaration of add\(\) has been changed"),
        ("void add(", "void plus(", r"it has no function add\(\)"),
        ("__global__ void add(", "__global__ void add() {}\n__global__ void add(", "has been changed"),
        ("__global__", "[[gnu::__constructor__]] __global__", "has been changed"),
        ("__global__", "__attribute__((constructor)) __global__", "it has no function"),
        ("__global__", "template <class F> __device__ int h(F f, long a) { return f(a); }\n__global__", "as in C"),
        ("__global__", "__device__ int h(int f(int)) { return f(1); }\n__global__", "as in C"),
        ("__global__", "__device__ [[gnu::constructor]] void h() { }\n__global__", "as in C"),
    ],
)
def test_submissions_that_are_refused(old, new, says):
    with pytest.raises(task.Problem, match=says):
        taken(old, new)


@pytest.mark.parametrize(
    "old, new",
    [
        (LOOP, "{ options.inject_error = 0; EXIT_FAILURE; stdout; a.INT_EVIL; std::cout; asm volatile(0); __builtin_trap; goto end;\n for"),
        (LOOP, "{ union B { int b; }; using namespace std; typedef int T; new int; throw 1; thread_local int t;\n for"),
        ("__global__", "struct A { A(); } a; int x = fork(); __global__"),
        ("\nint main(", "; int x = fork();\nint main("),
        ("__global__", "__device__ float fabs(float x) { return x; }\n__global__"),
        ("__global__", "#define EXIT_FAILURE 0\n#pragma GCC poison x\n__global__"),
    ],
)
def test_words_that_do_not_compute_are_no_words_of_the_harness(old, new):
    """What the program has more than before is CUDA, numbers and operators; other words have a prefix."""
    text = taken(old, new)
    more = collections.Counter(re.findall(r"\w+", text)) - collections.Counter(re.findall(r"\w+", ADD.text))
    strange = [w for w in more if w[1:].isidentifier() and not submission.WORDS.fullmatch(w)]
    assert {w for w in strange if not w.startswith(submission.OWN)} <= {"inject_error"}  # a member of student_options
    assert "fabs(" not in text.replace(f"{submission.OWN}fabs(", "")


@pytest.mark.parametrize(
    "old, new",
    [
        ("\n/*\n", "\n/* /*\n * */ /*\n"),
        ("// SPDX", "\ufeff// SPDX"),
        ("\n", "\r\n"),
        (LOOP, "{\n    char c = '{'; // }\n    for"),
        (LOOP, "{ /* \u00fc # } */ size_t exit = 1'000, k = (size_t)(exit) * 0x1p3f;\n#pragma unroll 4\n    for"),
        (LOOP, "{ auto i = threadIdx.x; int t[4] = {0}; for (auto &x : t) x = max(abs((int)i), min(t[0], t[1]));\n    for"),
        ("int main(", 'const char *s = R"x(})" { )x"; int main('),
        ("__global__", "template <int N> __device__ int h(const int *a) { return a[N]; }\n__global__"),
    ],
)
def test_submissions_that_are_taken(old, new):
    assert "void add(" in taken(old, new)


def test_functions_of_helpers_are_taken():
    """A further __device__ function comes before the kernel; a host function does not come."""
    more = "__device__ int sum(int a, int b) {\n    return a + b;\n}\n\nvoid cheat() {\n}\n\n__global__"
    text = taken("__global__", more)
    assert text.index(f"__device__ int {submission.OWN}sum(") < text.index("__global__ void add(") and "cheat" not in text


def test_main_keeps_what_is_no_call_of_cuda():
    exercise = task.Exercise("chapter03/simple_kernel_params")
    for new in "return 0; HANDLE_ERROR(", "HANDLE_ERROR((c = a + b, cudaSuccess)); HANDLE_ERROR(", "HANDLE_ERROR(exit(0)); HANDLE_ERROR(":
        with pytest.raises(task.Problem, match=r"main\(\)"):
            taken("HANDLE_ERROR(", new, exercise)
    assert taken("HANDLE_ERROR(", "HANDLE_ERROR(cudaDeviceSynchronize()); HANDLE_ERROR(", exercise)


def test_a_kernel_has_no_name_of_the_host():
    """radix_sort has an option that its kernels have as a parameter: on the CPU the name would be that of the option."""
    text = submission.with_functions_of(task.Exercise("chapter12/radix_sort"), task.Exercise("chapter12/radix_sort").text, "../")
    assert re.search(r"bool student_printed_test, size_t student_n\)", text)


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


@needs_cpu
def test_progress(tree):
    add(tree, "chapter04/add_loop_gpu", "chapter04/add_loop_long", "chapter05/add_loop_blocks")
    log = make(tree, "exercise", "chapter04")
    assert len(re.findall("^my/chapter04/", log, re.M)) == 3
    log = make(tree, "progress")
    assert re.search(r"^ +1  \*+ +chapter04/add_loop_gpu +open +\w", log, re.M), log
    assert log.endswith("1 not written, 3 open\n") and "right" not in log

    solve(tree, "chapter04/add_loop_gpu")
    wrong = tree / "my/chapter04/add_loop_long.cu"
    limits = '    puts(getenv("CUDA_CPU_WATCHDOG"));\n    puts(getenv("CUDA_CPU_TIME_LIMIT"));\n'
    wrong.write_text(
        wrong.read_text().replace("    // Task:", limits + "    c[0] = a[0] + b[0];\n    // Task:")
    )
    broken = tree / "my/chapter04/julia_gpu.cu"
    broken.write_text(broken.read_text().replace("return {};", "return nonesuch;"))
    assert "3 changed" in make(tree, "exercises")
    log = make(tree, "progress")
    assert re.search(r"add_loop_gpu +done", log) and re.search(r"add_loop_long +wrong", log)
    assert re.search(r"^ +c\[1\]: got -1, expected", log, re.M)
    # The time limits for a kernel in a deadlock or an endless loop are set.
    assert (tree / "build/progress/chapter04/add_loop_long.txt").read_text().startswith("10\n20\n")
    assert re.search(r"^ +does not build: .*nonesuch", log, re.M)
    assert log.endswith("1 done, 1 open, 2 wrong\n")
    assert make(tree, "progress") == log
