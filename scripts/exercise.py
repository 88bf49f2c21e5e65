#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exercises: programs of the suite whose kernels the reader writes. They are in my/, which git ignores.
  exercise.py write PROGRAM…      writes my/PROGRAM.cu; a chapter stands for its exercises. A file that exists is never changed
  exercise.py exercises           writes every exercise that is not there yet, and lists all
  exercise.py progress            builds and runs the exercises that are no longer as they were written, and lists all: done, wrong, open
  exercise.py hint PROGRAM STEP   1: the terms that it shows, with their meanings; 2: the words of CUDA, and the functions, that the
                                  solution uses, in their order; 3: the lines of the solution without their expressions
The functions to write are those that the comment "// Task:" at the end of the program names, such as "kernel(): Each thread ...". If it
names none, they are all kernels above the ruler line. The body of a function is taken out; of main only the statements that begin with
HANDLE_ or contain <<<. submission.py puts functions back. BACKEND, BIN and BUILD are the settings of make. TIME_LIMIT is in seconds."""
import collections
import os
import re
import subprocess
import sys

from check import own_errors
from programs import BIN, BUILD, ROOT, read_program, read_programs
from run import execute, lines_of, reason_of
from tokens import Problem, code_of, find_functions

BACKEND = os.environ.get("BACKEND", "cpu")
TIME_LIMIT = int(os.environ.get("TIME_LIMIT", 60))
LOG = ROOT / BUILD / "progress/build.log"  # of make
WORDS = r"\b(__\w+|(?:threadIdx|blockIdx|blockDim|gridDim)\.\w|\w+(?=(?:<[\w, ]+>)?\(|<<<))"


class Exercise:
    def __init__(self, name):
        self.name, self.text = name, (ROOT / f"{name}.cu").read_text()
        before, _, task = self.text.partition("\n// Task: ")
        self.lines, self.task = self.text.rstrip("\n").split("\n"), task.rstrip("\n").replace("\n// ", "\n")
        if re.search("\n(?!// )", task.rstrip("\n")):
            raise Problem(f"{name}.cu: the comment Task: must be the last lines of the file")
        self.end = before.count("\n")  # the empty line before the comment
        self.header_end = self.lines.index(" */")
        self.program = read_program(ROOT / f"{name}.cu")
        options = self.program.check.split(" | ")[0]
        self.options = "" if options.endswith("(race)") else options  # of a quick run, of make check
        self.functions, self.asked = find_functions(self.text), []
        if self.task and not self.task.startswith("none: "):
            self.read_task()

    def of_kernels(self, is_right):
        """Of a ladder, whose kernels run one at a time: those for whose options is_right, and a text that says which these are."""
        count = sum("__global__" in f.declared for f in self.asked) if self.program.bench else 0
        right = [number for number in range(count) if is_right(f"{self.options} --kernel {number}")]
        together = len(right) > 1 and right == [*range(right[0], right[-1] + 1)]
        listed = f"{right[0]} to {right[-1]}" if together else ", ".join(map(str, right))
        named = f"kernel{'s' * (len(right) > 1)} {listed}" if right else "no kernel"
        return right, f"right: {named} of {count}; " * bool(count)

    def read_task(self):
        """The lines of text for each function are in self.tasks, the general ones in self.tasks[""]."""
        parts = ["", *re.split(r"(?:^|(?<=\s))([A-Za-z_]\w*)\(\):(?=\s|$)", self.task)]
        rows = [[" ".join(row.split()) for row in part.split("\n") if row.strip()] for part in parts[1::2]]
        self.tasks = dict(zip(parts[::2], rows))
        named = {*parts[2::2]}
        self.ruler = next((i for i, line in enumerate(self.lines) if re.match("// -+ check$", line)), 1 << 30)
        for f in self.functions:
            if f.first < self.ruler and f.close > f.open:
                if f.name in named if named else "__global__" in f.declared:
                    self.asked.append(f)
        for name in named - {f.name for f in self.asked}:
            raise Problem(f"{self.name}.cu: Task: names {name}(), which the lesson does not define")
        if not self.asked:
            raise Problem(f"{self.name}.cu: Task: no kernel is above the ruler, so it must name a function")

    def why_none(self):
        """Why the program is no exercise; None if it is one."""
        if self.task.startswith("none: "):
            return self.task[6:].replace("\n", " ")
        if not self.task and '\n#include "../common/bench.h"' in self.text:
            return "a ladder compares several kernels for one task; the exercise is the program of the book"
        return None if self.task else 'it has no comment "Task:"'

    def stars(self):
        """1 to 4: by the number of lines to write, and whether threads work together."""
        count, together = 0, False
        for f in self.asked:
            words = "HANDLE_|<<<" if f.name == "main" else "."
            code = [line for line in self.lines[f.open + 1 : f.close] if not re.match(" *(//|$)", line)]
            count += sum(bool(re.search(words, line)) for line in code)
            words = r"__shared__|__sync|atomic|__threadfence|lock\(|_sync\("
            together |= f.name != "main" and bool(re.search(words, "\n".join(code)))
        return 1 + (count > 6) + (count > 20) + together

    def with_includes(self, line, up):
        """An include of the program, for a file in another folder. up: the path from there to the root."""
        line = re.sub('^#include "../', f'#include "{up}', line)
        return re.sub(r'^#include "(?!\.\./)', f'#include "{up}{self.name.split("/")[0]}/', line)

    def written(self):
        """The text of the exercise."""
        lines = [self.with_includes(line, "../../") for line in self.lines[: self.end]]
        # Other options may be for variants of the program, in which the kernels of the exercise do not run.
        run = next(i for i, line in enumerate(lines) if line.startswith(" * Run: "))
        output = re.search(r" --output [^ ]*$", lines[run])
        options = output[0] if output else f" {self.options}".rstrip()
        lines[run] = re.sub("bin/.*", lambda _: f"bin/my/{self.name}{options}", lines[run], count=1)
        lines[run - 1] = lines[run - 1].replace(self.name, f"my/{self.name}")  # Build:
        command = re.sub(r"^ \* Run: *", "", lines[run])
        first = self.asked[0]
        for f in reversed(self.asked):
            task = (self.tasks[""] if f is first else []) + self.tasks.get(f.name, [])
            task = task or [f"see {first.name}()."]
            body = [f"    // {'Task: ' * (not i)}{row}" for i, row in enumerate(task)]
            if f.name == "main":
                body += self.main_without_cuda(f)
            elif not re.search(r"(^|[^\w*])void [A-Za-z_]", " ".join(f.declared.split())):
                body.append("    return {};")
            lines[f.open + 1 : f.close + 1] = [*body, self.lines[f.close] if f.name == "main" else "}"]
        lines[self.header_end : self.header_end] = [
            ' * Exercise: write what the comments "Task:" ask for. docs/terms.md explains the terms.',
            f" *              make my/{self.name}",
            f" *              {command}",
            f" *              make check PROGRAM=my/{self.name}",
            f" *              make grade DIR=my/{self.name}.cu",
            " *          The run says right or wrong. The check needs no GPU; it also finds data races, barriers",
            " *          that not all threads of a block reach, and accesses beyond an array. make grade says what",
            " *          a teacher's grading says, with other sizes too.",
        ]
        return "\n".join(lines) + "\n"

    def main_without_cuda(self, main):
        """The body of main. One statement that does nothing stands for successive calls of CUDA."""
        last, inside = None, False
        for line in self.lines[main.open + 1 : main.close]:
            if inside or re.match(r" *HANDLE_| *[\w<>, ]+<<<", line):
                indent = re.match(" *", line)[0]
                if not inside and indent != last:
                    yield f"{indent}(void)0; // to write"
                last = last if inside else indent
                inside = not re.search("; *(//.*)?$", line)
                continue
            if line.strip(" ") and not re.match(" *//", line):
                last = None
            yield line


def known(name):
    exercise = Exercise(name)
    if exercise.why_none():
        raise Problem(f"{name} is no exercise: {exercise.why_none()}")
    return exercise


def exercises(folders=()):
    every = [Exercise(program.name) for program in read_programs(folders)]
    return [exercise for exercise in every if not exercise.why_none()]


def write(exercise):
    """Writes an exercise. Returns whether it was not there yet; a file that exists is never changed."""
    path = ROOT / f"my/{exercise.name}.cu"
    if path.exists():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(exercise.written())
    return True


def write_each(words):
    for word in words:
        for exercise in [known(word)] if "/" in word else exercises([word]):
            name = exercise.name
            if write(exercise):
                what = f'write what the comments "Task:" ask for, then make my/{name}'
                print(f"my/{name}.cu: {what}; the first comment in it has all commands")
            else:
                print(f"my/{name}.cu is there already and stays as it is")


# Of what make says, without the lines of source that compilers quote: these may be many, and a submission could write there what looks
# like a message about another one. At most 1 MiB about each goal, and 64 KiB of a line.
KEPT = (
    r"cut -b-65536 | awk '/^(NV|CU)CC / { room = 2^20 } { room -= length + 1 } room > 0 && !/^ *[0-9]* \|/'"
)


def build(goals, log, *settings, **options):
    """Builds all goals with one make, whose output goes to a file. options are those of subprocess.run."""
    make = ["make", "-k", "--no-print-directory", f"BACKEND={BACKEND}", f"BUILD={BUILD}", *settings]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        command = ["sh", "-c", f'"$@" 2>&1 | {KEPT}', "sh", *make, *map(str, goals)]
        subprocess.run(command if goals else ["true"], cwd=ROOT, stdout=output, **options)


def why_not_built(goal, bin_folder, log):
    """Why make could not build a goal, in lines; none if it could."""
    every = lines_of(log)
    said = [line for line in every if re.search(rf"{goal}(?!\w)", line)]
    if os.access(bin_folder / goal, os.X_OK) and not any("***" in line for line in said):
        return []
    wrong = rf"error:|needs|{goal}\S*:\d+: (?! |note|warning)"  # of compilers, make, cu2cpp
    reasons = [line for line in said if re.search(wrong, line)] or said[:1] or every[-1:]
    return [f"does not build: {''.join(reasons[:1])}", *reasons[1:]]


def attempt(exercise):
    """Runs an exercise that make has built. Returns its state, and the reason."""
    why = why_not_built(f"my/{exercise.name}", BIN, LOG)
    if why:
        return "wrong", why[0]

    def run(options):
        command = [BIN / "my" / exercise.name, *options.split()]
        return execute(command, ROOT / BUILD / "progress" / exercise.name, limit=TIME_LIMIT)

    status, errors = run(exercise.options)
    said = own_errors(errors)
    if status == 0:
        return ("done", "") if said and said[-1].endswith(": right") else ("wrong", "ended before its check")
    _, right = exercise.of_kernels(lambda options: run(options)[0] == 0) if status != 2 else ([], "")
    return ("waived" if status == 2 else "wrong"), right + reason_of(status, said[:1], TIME_LIMIT)


def state_of(exercise):
    """What the source alone says."""
    path = ROOT / f"my/{exercise.name}.cu"
    if not path.exists():
        return "not written"
    return "open" if path.read_text() == exercise.written() else "changed"


def list_all(run_changed):
    counts, listed = collections.Counter(), [(exercise, state_of(exercise)) for exercise in exercises()]
    if run_changed:
        build([f"my/{exercise.name}" for exercise, state in listed if state == "changed"], LOG, f"BIN={BIN}")
    for number, (exercise, state) in enumerate(listed, 1):
        state, reason = attempt(exercise) if run_changed and state == "changed" else (state, "")
        shown = f"{exercise.name:38} {state.replace('not written', '-'):6} {exercise.program.title}"
        print(f"{number:3}  {'*' * exercise.stars():4}  {shown}", flush=True)
        if reason:
            print(f"           {reason}")
        counts[state] += 1
    print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))


# ---- hints ----


def terms(exercise):
    rows = re.findall(r"^\| (.+?) \| (.+?) \|", (ROOT / "docs/terms.md").read_text(), re.M)
    meaning = {term.replace("\\_", "_"): text.replace("\\_", "_") for term, text in rows}
    for term in re.split(", *", exercise.program.terms):
        yield f"{term}: {meaning[term]}"


def body(exercise, function):
    return "\n".join(exercise.lines[function.open + 1 : function.close])


def words(exercise):
    for function in exercise.asked:
        found = dict.fromkeys(re.findall(WORDS, code_of(body(exercise, function))))
        yield f"{function.name}(): {' '.join(word for word in found if word not in ('for', 'if', 'while'))}"


def outline(exercise):
    """Comments, loops, branches, barriers and the left sides of assignments."""
    for function in exercise.asked:
        yield f"{function.name}()"
        for line in body(exercise, function).split("\n"):
            code = re.sub(r"(\b(?:for|if|while) )\(.*\)", r"\1(…)", line)
            yield re.sub(r"(?<![<>=!])(=|\breturn\b)(?!=) .*;|(\w\()(?!…)[^)].*;", r"\1\2 …;", code)


HINTS = {"1": terms, "2": words, "3": outline}


def main(mode, *words):
    if mode == "write":
        return write_each(words)
    if mode == "hint":
        if len(words) != 2 or words[1] not in HINTS or not (ROOT / f"{words[0]}.cu").exists():
            raise Problem("hint needs chapter05/dot, or another exercise, and 1, 2 or 3")
        return print(*HINTS[words[1]](known(words[0])), sep="\n")
    for exercise in exercises() if mode == "exercises" else ():
        write(exercise)
    list_all(mode == "progress")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Problem as problem:
        sys.exit(f"make: {problem}")
