# SPDX-License-Identifier: MIT
"""Exercises that are built: a sample without and with their functions, make check, nvcc, and make grade."""
import collections
import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

import helpers
import exercise
import grade  # scripts/, which helpers adds to the path
from test_exercises import EXERCISES, add, lines, needs_cpu, solve
from trees import ROOT, make, needs_nvcc, nvcc_settings


def waived(program):
    """Whether the program is waived (status 2) on this machine. start() sets the number of devices, so too few are no reason."""
    return program.gpus == 1 and helpers.lacks(program)


def start(tree, program):
    """Runs an exercise with the small size of make check."""
    gpus = helpers.program(program).gpus
    options = next(e.options for e in EXERCISES if e.name == program).split()
    env = {"CUDA_CPU_DEVICES": str(gpus)} if gpus > 1 else None
    return helpers.execute(tree / "bin/my" / program, options, tree, env, timeout=120)


@needs_cpu
def test_without_its_functions_it_fails_and_with_them_it_passes(tree, rng):
    """A sample of one; EXERCISES=all takes all that this build has the libraries for."""
    names = {exercise.name for exercise in EXERCISES}
    here = [p.name for p in helpers.programs() if p.name in names and p.built and not waived(p)]
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


# The exercise => what is replaced => by what: mistakes that other sizes and other kernels of the program do not show
SMALL = r"""
chapter04/fill_on_device => int k = tid % 46341; => int k = tid;
chapter09/hist_gpu_shmem_atomics => bin += blockDim.x)\n        temp[bin] => bin += 256)\n        temp[bin]
chapter09/hist_gpu_shmem_atomics => atomicAdd(&histo[bin], temp[bin]); => ;
chapter10/basic_double_stream => count1 / 256 + 1 => (count1 + 255) / 256
chapter10/basic_double_stream_correct => count1 / 256 + 1 => (count1 + 255) / 256
"""


@needs_cpu
def test_the_small_run_notices(tree):
    for row in lines(SMALL):
        program, old, new = row.replace("\\n", "\n").split(" => ")
        add(tree, program)
        make(tree, "exercise", program)
        solve(tree, program)
        mine = tree / f"my/{program}.cu"
        text = mine.read_text()
        mine.write_text(text.replace(old, new))
        assert text.count(old) == 1, row
        make(tree, f"my/{program}")
        assert start(tree, program).status == 1, row


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
    barrier = re.search(r"            cache\[cacheIndex\] \+= .*;\n( +__syncthreads\(\);\n)", text)[0]
    bounds = r" in kernel dot, .* reads 4 bytes at dot\.cu:\d+,\n +at offset 1200 of device memory"
    waits = r": 128 of 256 threads wait at dot\.cu:\d+"
    for changed, name, says in [
        (text.replace("tid < n", "tid <= n"), "out of bounds", bounds),
        (text.replace(barrier, "{" + barrier + "}"), "divergent barrier", waits),
    ]:
        mine.write_text(changed)
        log = make(tree, *arguments, status=2)
        assert changed != text and re.search(rf"^\[1/1\] my/chapter05/dot +{name} ", log, re.M), log
        assert re.search(rf"cuda on the CPU: {name}{says}", log), log


@needs_nvcc
def test_an_exercise_is_built_with_nvcc(tree):
    program = "chapter04/julia_gpu"
    make(tree, "exercise", program)
    _, settings = nvcc_settings("least")
    binary = tree / "nvcc/my" / program
    log = make(tree, *settings, f"BIN={tree / 'nvcc'}", f"my/{program}")
    assert os.access(binary, os.X_OK) and "warning" not in log, log


@needs_cpu
def test_two_at_once_and_an_interrupt(tree, tmp_path):
    """The second run of make grade waits for the first, also when that is interrupted."""
    program = "chapter04/add_loop_long"
    add(tree, program)
    folder = tmp_path / "handed in"
    folder.mkdir()
    text = (ROOT / f"{program}.cu").read_text()
    (folder / "one.cu").write_text(text)
    (folder / "two.cu").write_text(text.replace("a[tid] + b", "a[tid] - b"))
    env = {**os.environ, "BACKEND": "cpu", "CHECK": "0", "BUILD": "build", "BIN": "bin"}
    command = [sys.executable, "scripts/grade.py", folder]
    streams = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    runs = [subprocess.Popen(command, cwd=tree, env=env, **streams) for _ in range(3)]
    while not list((tree / "my/.grade").glob("1/chapter04/*.cu")) and runs[0].poll() is None:
        time.sleep(0.01)
    runs[0].send_signal(signal.SIGINT)
    for run in runs[1:]:
        output, errors = run.communicate(timeout=600)
        assert "\n1 right, 1 wrong; " in output, output + errors
    runs[0].communicate(timeout=600)
    assert runs[0].returncode != 0
    assert not list((tree / "my").rglob("*.cu"))
    assert {path.name for path in (tree / "build/grade").iterdir()} == {"bin.log", "plain.log"}


# A file => what is replaced in the program => by what => verdict => reason, in which LINE is that of the replacement => a part of the notes
ALONE = """{ if (threadIdx.x == 0) { double sum = 0; for (size_t block = blockIdx.x; block * 256 < n; block += gridDim.x)
for (size_t i = block * 256; i < n && i < (block + 1) * 256; i++) sum += a[i] * b[i]; c[blockIdx.x] = sum; } }"""
LONG = {"ALONE": ALONE, "BLANKS": " " * grade.LONGEST, "FLOOD": "q;" * 1900, "SLOW": 'R"(' * 20000}
CLASS = r"""
anna/dot.cu => temp => temp => right => => ben
ben.cu => temp => sum => right => => anna
carla.cu => while (tid < n) => if (tid < n) => wrong => with a large size: dot product: got .*\noptions --seed \d+, CUDA_CPU_SCHEDULE=forward =>
dora.cu => BODY => ALONE => right => => in dot one thread of a warp does all the work
emil.cu => += cache[cacheIndex + i];\n        __syncthreads(); => += cache[cacheIndex + i]; => race => cuda on the CPU: race .* at submission.cu:LINE,\n +thread .* =>
=fritz/a/dot.cu => temp += => temp += x * => wrong => does not build: submission.cu:LINE:.* .x. was .* =>
gina.cu => cache[cacheIndex] = temp => (uint3 &)threadIdx = {0, 0, 0} => wrong => cuda on the CPU: out of bounds .* writes .* submission.cu:LINE\n.*options --size \d+ --seed \d+, .* =>
ida.cu => float temp = 0;\n    while (tid < n) => float temp = 0; int k = 0; while (tid < n && k++ < 5) => wrong => with a large size: dot product: .*\noptions --size \d{6} .* =>
jan.cu => = cache[0] => = cache[0], ((float *)a)[blockIdx.x * blockDim.x] += 1 => wrong => cuda on the CPU: kernel dot, launched at .* has written to memory that parameter 1 points to as const: byte \d .* =>
hans.cu => cache[0] => exit(0) => wrong => line LINE: a call of exit is not accepted .* =>
"""
WITHOUT_CHECK = r"""
right.cu => a[tid] + b => b[tid] + a => right => =>
wrong.cu => + b => - b => wrong => c\[1\]: got .*, expected .* =>
b/name.cu => c[tid] => n = options.seed; c[tid] => wrong => does not build: .*error: .options. was not declared.* =>
b/hang.cu => BODY => { for (volatile int i = 0;; i++); } => wrong => ran longer than 4 s\n.* =>
b/deep.cu => BODY => { int t[1 << 30] = {1}; c[0] = t[n]; } => wrong => .* =>
b/null.cu => BODY => { *(int *)0 = 1; } => wrong => .* =>
b/syntax.cu => BODY => { c[0] = ; } => wrong => does not build: .*error.* =>
b/flood.cu => BODY => { FLOOD } => wrong => does not build: .* .q. was not declared .*; only the func.* =>
forged\rright\x1b\ufeff\\.cu => BODY => { } => wrong => c\[0\]: got -1.* =>
main.cu => settings(argc, argv); => puts("right"); return 0; => right => =>
fall.cu => __global__ => __device__ int h() { } __global__ => wrong => does not build: .*no return statement.* =>
long.cu => BODY => { BLANKS } => wrong => longer than 64 KiB =>
slow.cu => // Task: => SLOW // Task: => right => =>
unknown.cu => * Run: => * Ran: => unknown => its header has no "Run:.* =>
"""


@needs_cpu
@pytest.mark.parametrize(
    "solved, rows, settings",
    [
        ("chapter05/dot", CLASS, []),
        ("chapter04/add_loop_long", WITHOUT_CHECK, ["CHECK=0", "TIME_LIMIT=4", "MEMORY_LIMIT=1024"]),
    ],
)
def test_grade_of_a_class(tree, tmp_path, solved, rows, settings):
    """The tables and what is printed, with the lines of the submissions. A kernel without a loop is right for the small size of make
    check. Folders of a call that was killed go away."""
    folder, expected = tmp_path / "handed in", {"link.cu": ("wrong", "a symbolic link, or no file", "")}
    add(tree, solved)
    exercise, text = next(e for e in EXERCISES if e.name == solved), (ROOT / f"{solved}.cu").read_text()
    kernel = exercise.asked[0].text
    for row in rows.strip().split("\n"):
        name, old, new, verdict, reason, notes = (part.strip() for part in row.split("=>"))
        old = old.replace("\\n", "\n").replace("BODY", kernel[kernel.index("{") :])
        for word, meant in LONG.items():
            new = new.replace(word, meant)
        part = kernel if old in kernel else text
        assert old in part
        solution = f"// {name}\n" + text.replace(part, part.replace(old, new))
        path = folder / name.encode().decode("unicode_escape")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(solution)
        reason = reason.replace("LINE", str(solution[: solution.index(new)].count("\n") + 1))
        expected[name] = verdict, reason, notes
    (folder / "link.cu").symlink_to("/proc/self/mem")
    for old in "build/grade/runs/9", "my/.grade/9":
        (tree / old).mkdir(parents=True)
    log = make(tree, "grade", f"DIR={folder}", f"TABLE={tmp_path}/t", *settings, status=2)
    counts = sorted(collections.Counter(verdict for verdict, *_ in expected.values()).items())
    assert f"\n{', '.join(f'{count} {verdict}' for verdict, count in counts)}; " in log
    assert not (tree / "my/.grade").exists()
    assert {path.name for path in (tree / "build/grade").iterdir()} == {"bin.log", "plain.log"}
    size = (tree / "build/grade/plain.log").stat().st_size
    assert size < 1 << 18, "it has the lines that the compiler quotes"
    graded = json.loads((tmp_path / "t.json").read_text())
    assert {row["file"] for row in graded} == expected.keys()
    for row in graded:
        verdict, reason, notes = expected[row["file"]]
        assert row["verdict"] == verdict and re.fullmatch(reason, row["reason"], re.S), row
        assert re.search(rf"^{verdict} +\S+ +{re.escape(row['file'])}(:|$| \()", log, re.M), log
        assert row["student"] == row["file"].split("/")[0].removesuffix(".cu")
        assert notes in row["notes"] or (f"{notes}.cu" in expected and not shutil.which("sim_c++")), row
        ran = "CUDA" in row["reason"] or verdict == "right"
        assert row["points"] == exercise.stars() * (verdict == "right"), row
        timed = row["seconds"] > 0 or settings or verdict != "right"  # a short run may take less than 0.05 s
        assert timed if ran else row["seconds"] == 0, row
    with (tmp_path / "t.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["reason"] for row in table] == [row["reason"] for row in graded]
    assert solved != "chapter05/dot" or table[0]["student"] == "'=fritz"


# The exercise and its functions => what is replaced => by what => the grade that a person would give, and points for single kernels
AS_A_PERSON = r"""
chapter05/dot dot => cache[cacheIndex] = temp; => cache[cacheIndex] = temp; if (tid == 0) printf("first sum: %f;\n", temp); => right
chapter05/dot dot => float temp = 0; => float temp(0), more{0}; temp += more; => right
chapter05/dot dot => for (unsigned i = blockDim.x / 2; i > 0; i /= 2) { => for (unsigned i = 1; cacheIndex == 0 && i < 256; i++) cache[0] += cache[i]; for (int i = 1; i < 1;) { => right
chapter05/dot dot => BODY => { __shared__ float sum; if (threadIdx.x == 0) sum = 0; __syncthreads(); for (size_t i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x) atomicAdd(&sum, a[i] * b[i]); __syncthreads(); if (threadIdx.x == 0) c[blockIdx.x] = sum; } => right
chapter05/ripple kernel => cosf(d / 10.0f - ticks / 7.0f) / (d / 10.0f + 1.0f) => cosf(0.1f * d - ticks / 7.0f) / (1 + 0.1f * d) => right
chapter05/shared_bitmap kernel => 255 * (sinf(x * 2.0f * PI / period) + 1.0f) * (sinf(y * 2.0f * PI / period) + 1.0f) / 4.0f => 63.75f * (1 + sinf(2 * PI / period * x)) * (1 + sinf(2 * PI / period * y)) => right
chapter03/simple_kernel_params main => HANDLE_LAUNCH(); => HANDLE_LAUNCH(); printf("launched with %d\n", first); => right
chapter03/simple_kernel_params main => HANDLE_ERROR(cudaMemcpy(&c, dev_c, sizeof(int), cudaMemcpyDeviceToHost)); => => wrong
chapter05/dot dot => a[tid] * b[tid] => a[tid] + b[tid] => wrong
chapter04/julia_gpu julia => > 1000 => > 2 => wrong
chapter05/dot dot => BODY => {} => wrong
chapter05/dot dot => float temp = 0; => float temp = 0 => wrong
chapter05/dot dot => tid < n => tid <= n => wrong
chapter05/dot dot => cache[cacheIndex] = temp;\n    __syncthreads(); => cache[cacheIndex] = temp; => race
chapter09/hist_gpu_shmem_atomics histo_kernel => atomicAdd(&temp[buffer[i]], 1) => temp[buffer[i]]++ => race
chapter05/shared_bitmap kernel => __syncthreads(); => ; => race
chapter05/reduction reduce1 reduce2 reduce3 reduce4 reduce5 reduce6 => BODY => {} => wrong 1
chapter05/reduction reduce3 reduce4 reduce5 reduce6 => BODY => {} => wrong 3
chapter05/reduction reduce3 reduce5 => BODY => {} => wrong 5
chapter05/reduction reduce0 => t % (2 * step) == 0 => t % (2 * step) < 1 => right 7
chapter05/reduction reduce1 => cache[at + step];\n        __syncthreads(); => cache[at + step]; => race 6
appendix_a/dot dot_atomic => atomicAdd(c, cache[0]) => *c += cache[0] => race
"""


@needs_cpu
def test_the_grades_are_those_of_a_person(tree, tmp_path):
    verdicts, rows, folder = {}, AS_A_PERSON.strip().split("\n"), tmp_path / "handed in"
    folder.mkdir()
    for number, row in enumerate(rows):
        name, old, new, verdict = (part.strip() for part in row.split("=>"))
        name, *functions = name.split()
        add(tree, name)
        given = next(e for e in EXERCISES if e.name == name)
        text = given.text
        for part in (f.text for f in given.asked if f.name in functions):
            was = old.replace("\\n", "\n").replace("BODY", part[part.index("{") :])
            assert was in part, row
            text = text.replace(part, part.replace(was, new))
        assert text != given.text, row
        (folder / f"{number}.cu").write_text(text)
        verdicts[f"{number}.cu"] = verdict.split()
    make(tree, "grade", f"DIR={folder}", f"TABLE={tmp_path}/t", status=2)
    graded = {row["file"]: row for row in json.loads((tmp_path / "t.json").read_text())}
    for file, expected in verdicts.items():
        given = [graded[file]["verdict"], str(graded[file]["points"])]
        assert given[: len(expected)] == expected, graded[file]
    assert len(graded) == len(verdicts)


def test_what_compilers_say_is_bounded(tmp_path, monkeypatch):
    """1 MiB about each goal, and no part of a long line that they quote."""
    make = tmp_path / "make"
    says = "'NVCC a', 'x' * 99999, *['y' * 99] * 19999, ' 1 | ' + 'q' * 99999, 'NVCC b', 'z'"
    make.write_text(f"#!{sys.executable}\nprint({says}, sep='\\n')\n")
    make.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    exercise.build(["goal"], tmp_path / "log")
    text = (tmp_path / "log").read_text()
    assert len(text) < 2 << 20 and "q" not in text and text.endswith("y\nNVCC b\nz\n")


def test_grade_needs_solutions(tree, tmp_path):
    """A folder with one at least, or a file."""
    assert "there is no .cu file in it" in make(tree, "grade", f"DIR={tree / 'docs'}", status=2)
    assert "there is no such file or folder" in make(tree, "grade", f"DIR={tree / 'none.cu'}", status=2)
    (tmp_path / "hans.cu").write_text("int main() {}\n")
    assert "\n1 unknown; " in make(tree, "grade", f"DIR={tmp_path}/hans.cu", f"TABLE={tmp_path}/t", status=2)
    assert json.loads((tmp_path / "t.json").read_text())[0]["student"] == "hans"


def test_runs_of_grade_have_no_network_and_no_new_privileges(tmp_path):
    here = tmp_path / "here"
    box = grade.find_box(here)(here)
    if not box:
        pytest.skip("neither bwrap nor unshare works here")
    command = [*box, "sh", "-c", "cat /proc/net/dev; grep NoNewPrivs /proc/self/status; exit 3"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert re.findall(r"^ *(\w+):", result.stdout, re.M) == ["lo", "NoNewPrivs"] and result.returncode == 3
    assert result.stdout.endswith("NoNewPrivs:\t1\n")


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
    mistake = f"{limits}    c[0] = a[0] + b[0];\n    // Task:"
    wrong.write_text(wrong.read_text().replace("    // Task:", mistake))
    broken = tree / "my/chapter04/julia_gpu.cu"
    broken.write_text(broken.read_text().replace("return {};", "return nonesuch;"))
    assert "3 changed" in make(tree, "exercises")
    log = make(tree, "progress")
    assert re.search(r"add_loop_gpu +done", log) and re.search(r"add_loop_long +wrong", log)
    assert re.search(r"^ +c\[1\]: got 2139062143, expected", log, re.M)
    # The time limits for a kernel in a deadlock or an endless loop are set.
    assert (tree / "build/progress/chapter04/add_loop_long.txt").read_text().startswith("10\n20\n")
    assert re.search(r"^ +does not build: .*nonesuch", log, re.M)
    assert log.endswith("1 done, 1 open, 2 wrong\n")
    assert make(tree, "progress") == log
