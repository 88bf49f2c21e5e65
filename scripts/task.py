# SPDX-License-Identifier: MIT
"""A program as an exercise: functions are taken out of it. submission.py puts them back.

The functions to write are those that the comment "// Task:" at the end of the program names, such as "kernel(): Each thread ...".
If it names none, they are all kernels above the ruler line. The body of a function is taken out; of main only the statements that
begin with HANDLE_ or contain <<<."""
import collections
import re

from programs import ROOT, read_program

# A raw string. One that is not closed ends with the text, as a comment does: no search begins anew behind it.
RAW = r'(?:u8|[uUL])?R"(?P<mark>[^\s()\\]{0,16})\([\s\S]*?(?:\)(?P=mark)"|\Z)'
# What is no code: preprocessor lines, comments, strings and characters (but not the ' of 1'000)
NO_CODE = re.compile(
    rf"""^[ \t]*\#(?:.*\\\n)*.*|{RAW}|//.*|/\*[\s\S]*?(?:\*/|(?P<open>\Z))|"(?:\\.|[^"\\\n])*"|(?<!\d)'(?:\\.|[^'\\\n])*'""",
    re.M,
)
# declared: the text before the brace; first, open, close: numbers of lines, from 0; text: from the first word to the last brace
Function = collections.namedtuple("Function", "name declared first open close text")


class Problem(Exception):
    """Why a program is no exercise, or a submission is refused."""


def find_functions(text):
    """The functions of a source. Braces in a class or a namespace are skipped."""
    code = NO_CODE.sub(lambda m: m[0] if m["open"] is not None else re.sub(r"\S", " ", m[0]), text)
    found, depth, begin, function = [], 0, 0, None
    for match in re.finditer("[{};]", code):
        at = match.start()
        if match[0] == "{":
            if not depth:
                declared = code[begin:at]
                plain = re.sub(r"__launch_bounds__\s*\([^)]*\)", "", declared)
                name = re.search(r"\b([A-Za-z_]\w*)\s*\(", plain) if "=" not in plain else None
                first = begin + len(declared) - len(declared.lstrip())
                function = name and (name[1], declared, *(code.count("\n", 0, i) for i in (first, at)))
            depth += 1
        elif match[0] == "}" and depth:
            depth -= 1
            if not depth and function:
                found.append(Function(*function, code.count("\n", 0, at), text[first : at + 1]))
        if not depth and match[0] != "{":
            begin = at + 1
    if depth or "/*" in code:
        raise Problem("its braces or comments are not balanced")
    return found


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
            " *          The run says right or wrong. The check needs no GPU; it also finds data races, barriers",
            " *          that not all threads of a block reach, and accesses beyond an array.",
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
