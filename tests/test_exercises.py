# SPDX-License-Identifier: MIT
"""Exercises (make exercise, exercises, progress): scripts/task.py and scripts/exercise.py. release/test_exercises_built.py builds more."""
import re
import shutil

import pytest

import helpers
from trees import ROOT, make
import task  # scripts/, which helpers adds to the path

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
        back = exercise.with_functions_of(exercise.text, "../")
        assert back.replace(f'"../{name.split("/")[0]}/', '"') == exercise.text, name


LOOP = "{\n    for"


@pytest.mark.parametrize(
    "old, new, says",
    [
        (LOOP, "{\n#define check_sums(...) true\n    for", "line \\d+: no preprocessor directive"),
        (LOOP, "{\n    {\n    for", "its braces"),
        (LOOP, "{\n    options.inject_error = false;\n    for", "line \\d+: asm, .* are not accepted"),
        ("size_t n) {", "unsigned n) {", r"the declaration of add\(\) has been changed"),
        ("void add(", "void plus(", r"it has no function add\(\)"),
        ("__global__ void add(", "__global__ void add() {}\n__global__ void add(", "has been changed"),
        ("\n/*\n", "\n/* /*\n * */ /*\n", None),
        (LOOP, "{\n    char c = '{'; // }\n    for", None),
    ],
)
def test_submissions_that_are_refused(old, new, says):
    exercise = task.Exercise("chapter04/add_loop_long")
    assert old in exercise.text
    submission = exercise.text.replace(old, new, 1)
    if says:
        with pytest.raises(task.Problem, match=says):
            exercise.with_functions_of(submission, "../")
    else:
        assert "void add(" in exercise.with_functions_of(submission, "../")


def test_functions_of_helpers_are_taken():
    """A further __device__ function comes before the kernel; a host function does not come."""
    exercise = task.Exercise("chapter04/add_loop_long")
    more = "__device__ int sum(int a, int b) {\n    return a + b;\n}\n\nvoid cheat() {\n}\n\n__global__"
    text = exercise.with_functions_of(exercise.text.replace("__global__", more, 1), "../")
    assert text.index("__device__ int sum(") < text.index("__global__ void add(") and "cheat" not in text


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
