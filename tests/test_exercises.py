# SPDX-License-Identifier: MIT
"""Exercises (make exercise, exercises, progress, grade): scripts/exercise.awk, exercise.sh and grade.sh."""
import os
import re
import shutil
import subprocess

import pytest

import helpers
import trees
from trees import ROOT, make, needs_nvcc, nvcc_settings

AWK = ROOT / "scripts/exercise.awk"


def awk(program, mode, **more):
    settings = [f"-v{k}={v}" for k, v in {"mode": mode, "up": "../../", "program": program, **more}.items()]
    done = subprocess.run(
        ["awk", *settings, "-f", AWK, f"{program}.cu"], cwd=ROOT, text=True, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


EXERCISES = [str(p) for p in helpers.programs() if awk(str(p), "stars")]
OTHERS = [str(p) for p in helpers.programs() if str(p) not in EXERCISES]


def functions(program):
    """The functions that the exercise asks for."""
    return [line.split()[0] for line in awk(program, "functions").splitlines()]


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_exercise_says_why(name):
    why = awk(name, "why").strip()
    assert "\n" not in why and len(why) > 15 and "Task" not in why


@pytest.mark.parametrize("name", EXERCISES)
def test_text_of_an_exercise(name, tmp_path):
    original, text = (ROOT / f"{name}.cu").read_text(), awk(name, "write")
    assert not awk(name, "why") and awk(name, "stars").strip() in "1234"
    below = "\n// ---------------------------------------------------------------------------------------- proof\n"
    proof = re.sub(r'"\.\./\.\./' + name.split("/")[0] + "/", '"', text.split(below)[1])
    rest, task = original.split("\n// Task: ")
    assert proof.replace('"../../', '"../') == rest.split(below)[1], "the proof has changed"
    tasks = re.findall(r"^    // Task: ((?:.*\n)(?:    //.*\n)*)", text, re.M)
    assert len(tasks) == len(functions(name)) and all(len(task) > 20 for task in tasks)
    task = re.sub(r"\n// ", " ", task)
    # The task describes what is to be written; it does not contain it.
    assert ";" not in re.sub(r"\([^)]*\)|; ", "", task) and "<<<" not in task
    # Its Run: line has no options for variants of the program.
    run = re.search(rf"^ \* Run: +(?:mpirun -np \d )?\./bin/my/{name}(.*)$", text, re.M).group(1)
    assert run in ("", awk(name, "options").rstrip("\n")) or re.fullmatch(r" --output \S+", run)
    assert "(race)" not in run and "|" not in run
    exercise = text[text.index("\n * Exercise:") : text.index("\n */")].splitlines()
    assert max(map(len, exercise)) <= 110 and f"make check PROGRAM=my/{name}" in " ".join(exercise)
    for path in re.findall(r'^#include "(.*)"', text, re.M):
        assert (ROOT / "my/chapter03" / path).resolve().is_file() or not (ROOT / "my").exists()
        assert (ROOT / path.removeprefix("../../")).is_file()
    # The functions of the program, put into the exercise, give the program.
    submission = tmp_path / "original.cu"
    submission.write_text(original)
    back = awk(name, "grade", up="../", submission=submission)
    assert back.replace(f'"../{name.split("/")[0]}/', '"') == original


needs_cpu = pytest.mark.skipif(
    helpers.backend() != "cpu" or bool(helpers.sanitized()),
    reason="the trees of these tests are for the CPU back end",
)


def add(tree, *programs):
    """Adds programs to a tree that was copied without them."""
    for program in programs:
        shutil.copy(ROOT / f"{program}.cu", tree / f"{program}.cu")


def solve(tree, program):
    """Writes the solution into my/: the program itself, with paths that fit."""
    text = awk(program, "grade", submission=ROOT / f"{program}.cu")
    (tree / f"my/{program}.cu").write_text(text)


def waived(program):
    """Whether the program is waived (status 2) on this machine. start() sets the number of devices, so too few are no reason."""
    return program.gpus == 1 and helpers.lacks(program)


def start(tree, program):
    """Runs an exercise with the small size of make check."""
    gpus = next(p.gpus for p in helpers.programs() if str(p) == program)
    return helpers.execute(
        tree / "bin/my" / program,
        awk(program, "options").split(),
        tree,
        env={"CUDA_CPU_DEVICES": str(gpus)} if gpus > 1 else None,
        timeout=120,
    )


@needs_cpu
def test_without_its_functions_it_fails_and_with_them_it_passes(tree, rng):
    """A sample of one; EXERCISES=all takes all that this build has the libraries for."""
    here = [str(p) for p in helpers.programs() if str(p) in EXERCISES and p.built and not waived(p)]
    simple = [p for p in here if not p.startswith(("chapter08", "chapter11", "chapter12"))]
    programs = here if os.environ.get("EXERCISES") == "all" else [rng.choice(simple)]
    add(tree, *programs)
    make(tree, "exercise", *programs)
    make(tree, "-k", "-j1", *(f"my/{p}" for p in programs))
    passed = []
    for program in programs:
        result = start(tree, program)
        print(program, result.status, *result.errors[:1])
        if result.status == 0 or result.err.endswith(": right\n"):
            passed.append(program)
    assert not passed, "these pass although their functions are empty"

    failed = []
    for program in programs:
        solve(tree, program)
    make(tree, "-k", "-j1", *(f"my/{p}" for p in programs))
    for program in programs:
        result = start(tree, program)
        said = rf"make check PROGRAM=my/{program}\n{program.split('/')[1]}: right\n$"
        if result.status != 0 or not re.search(said, result.err):
            failed.append(str(result))
    assert not failed, "\n".join(failed)


def test_make_exercise_keeps_what_is_there(tree):
    (tree / "my/chapter04").mkdir(parents=True)
    mine = tree / "my/chapter04/julia_gpu.cu"
    mine.write_text("// mine\n")
    assert "my/chapter04/julia_gpu.cu is there already" in make(tree, "exercise", "chapter04/julia_gpu")
    make(tree, "exercise", "PROGRAM=chapter04/julia_gpu")
    make(tree, "exercises")
    assert mine.read_text() == "// mine\n"
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
    assert re.search(r"^ +1  \*+ +chapter04/add_loop_gpu +open +parallel|^ +1  \*", log, re.M)
    assert log.endswith("1 not written, 3 open\n") and "right" not in log

    solve(tree, "chapter04/add_loop_gpu")
    wrong = tree / "my/chapter04/add_loop_long.cu"
    limits = '    puts(getenv("CUDA_CPU_WATCHDOG"));\n    puts(getenv("CUDA_CPU_TIME_LIMIT"));\n'
    wrong.write_text(
        wrong.read_text().replace("    // Task:", limits + "    c[0] = a[0] + b[0];\n    // Task:")
    )
    broken = tree / "my/chapter04/julia_gpu.cu"
    broken.write_text(broken.read_text().replace("return {};", "return nonesuch;"))
    assert "2 changed" in make(tree, "exercises") or "3 changed" in make(tree, "exercises")
    log = make(tree, "progress")
    assert re.search(r"add_loop_gpu +done", log) and re.search(r"add_loop_long +wrong", log)
    assert re.search(r"^ +c\[1\]: got -1, expected", log, re.M)
    # The time limits for a kernel in a deadlock or an endless loop are set.
    assert (tree / "build/progress/chapter04/add_loop_long.out").read_text().startswith("10\n20\n")
    assert re.search(r"^ +does not build: .*nonesuch", log, re.M)
    assert log.endswith("1 done, 1 open, 2 wrong\n")
    assert make(tree, "progress") == log  # nothing is built again
    assert "back end" not in log


@needs_cpu
def test_make_check(tree):
    """Two mistakes that do not change the result."""
    program = "chapter05/dot"
    add(tree, program)
    make(tree, "exercise", program)
    solve(tree, program)
    mine = tree / f"my/{program}.cu"
    # The programs that the check builds are kept for the next run of the tests.
    arguments = ("check", f"PROGRAM=my/{program}", f"BUILD={ROOT / 'build/exercises'}")
    assert "1 of 1 clean, " in make(tree, *arguments)
    text = mine.read_text()
    barrier = re.search(r"            cache\[threadIdx.x\] \+= .*;\n( +__syncthreads\(\);\n)", text)[0]
    for changed, name, says in [
        (
            text.replace("tid < n", "tid <= n"),
            "out of bounds",
            r" in kernel dot, .* reads 4 bytes at dot\.cu:\d+,\n +at offset 135168 of device memory",
        ),
        (
            text.replace(barrier, "{" + barrier + "}"),
            "divergent barrier",
            r": 128 of 256 threads wait at dot\.cu:\d+",
        ),
    ]:
        mine.write_text(changed)
        log = make(tree, *arguments, status=2)
        assert changed != text and re.search(rf"^\[1/1\] my/chapter05/dot +{name} ", log, re.M), log
        assert re.search(rf"cuda on the CPU: {name}{says}", log), log


def test_make_check_without_the_runs_that_are_wrong_on_purpose(sources):
    """Shell scripts replace a wrong exercise and its program."""
    scripts = {"sound": "echo 'c[0]: got 1, expected 2' >&2; echo 'sound: wrong' >&2; exit 1"}
    trees.programs_of(sources, scripts, lambda name: " * Check:   --seed 1 | --seed 2 (race)\n")
    for folder, file in ("bin", "sound"), (".", "sound.cu"):
        (sources / folder / "my/chapter03").mkdir(parents=True)
        shutil.copy(sources / folder / "chapter03" / file, sources / folder / "my/chapter03" / file)
    log = trees.run(sources, "scripts/check.sh", "my/chapter03/sound", status=1, BIN="bin")
    assert re.search(r"\n\[1/1\] my/chapter03/sound +FAILED .*\n    c\[0\]: got 1, expected 2\n", log), log


@needs_nvcc
def test_an_exercise_is_built_with_nvcc(tree):
    program = "chapter04/julia_gpu"
    make(tree, "exercise", program)
    _, settings = nvcc_settings("least")
    binary = tree / "nvcc/my" / program
    log = make(tree, *settings, f"BIN={tree / 'nvcc'}", f"my/{program}")
    assert os.access(binary, os.X_OK) and "warning" not in log, log


@needs_cpu
def test_grade(tree, tmp_path):
    program = "chapter04/add_loop_long"
    add(tree, program)
    text = (ROOT / f"{program}.cu").read_text()
    body = text[text.index("    for (size_t tid") : text.index("}\n\nint main")]
    assert body.count("\n") == 2

    def kernel(new):
        return text.replace(body, new)

    solutions = {
        "right.cu": text,
        "helper.cu": kernel("    add_all(a, b, c, n);\n").replace(
            "__global__",
            "__device__ void add_all(const int *a, const int *b, int *c, size_t n) {\n"
            + body
            + "}\n\n__global__",
            1,
        ),
        "wrong.cu": kernel(body.replace("+ b", "- b")),
        "exit.cu": kernel('    puts("add_loop_long: right");\n    exit(0);\n'),
        "main.cu": kernel("").replace(
            "    settings(argc, argv);\n", '    puts("right");\n    return 0;\n', 1
        ),
        "hang.cu": kernel("    for (volatile int i = 0;; i++)\n        ;\n"),
        "memory.cu": kernel("    for (;;)\n        memset(malloc(1 << 24), 1, 1 << 24);\n"),
        "syntax.cu": kernel("    c[0] = ;\n"),
        "macro.cu": kernel("#define check_sums(...) true\n" + body),
        "braces.cu": kernel("    {\n" + body),
        "changed.cu": text.replace("size_t n) {", "unsigned n) {", 1),
        "away.cu": text.replace("void add(", "void plus("),
        "spoiler.cu": kernel("    options.inject_error = false;\n" + body),
        "unknown.cu": "int main() {}\n",
        # The status of a program on a machine without the GPU that it needs
        "no-device.cu": kernel('    fputs("needs a CUDA device\\n", stderr);\n    exit(2);\n'),
    }
    says = {
        "right.cu": "right",
        "helper.cu": "right",
        "wrong.cu": "wrong .*: c\\[1\\]: got .*, expected",
        "exit.cu": "wrong .*: the program ended before its check",
        "main.cu": "wrong .*: c\\[0\\]: got -1",
        "hang.cu": "wrong .*: ran longer than 4 s",
        "memory.cu": "wrong ",
        "syntax.cu": "wrong .*: does not build: .*error",
        "macro.cu": "wrong .*: line [0-9]+: no preprocessor directive",
        "braces.cu": "wrong .*: its braces",
        "changed.cu": r"wrong .*: the declaration of add\(\) has been changed",
        "away.cu": r"wrong .*: it has no function add\(\)",
        "spoiler.cu": "wrong .*: line [0-9]+: asm, .* are not accepted",
        "unknown.cu": 'unknown .*has no "Run:',
        "no-device.cu": "unknown .*: needs a CUDA device$",
    }
    folder = tmp_path / "handed in"
    (folder / "b").mkdir(parents=True)
    for name, solution in solutions.items():
        (folder / ("b" if name > "m" else ".") / name).write_text(solution)
    log = make(tree, "grade", f"DIR={folder}", "CHECK=0", "TIME_LIMIT=4", "MEMORY_LIMIT=1024", status=2)
    for name, pattern in says.items():
        line = next(line for line in log.splitlines() if re.search(rf"(^|[ /]){name}", line))
        assert re.match(pattern, line), log
    assert "\n2 right, 2 unknown, 11 wrong\n" in log
    assert not (tree / "my").exists() or not list((tree / "my").rglob("*.cu"))


def test_grade_needs_solutions(tree, tmp_path):
    assert "there is no .cu file in it" in make(tree, "grade", f"DIR={tmp_path / 'tree/docs'}", status=2)
