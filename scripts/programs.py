#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lists the programs of the suite in reading order, from the header comment of each chapterNN/name.cu. The build, `make run`, the
tests and the generated tables all read the headers with this script.
  programs.py [FOLDER…]   the programs as JSON: a list of objects with the fields of Program
  programs.py --list      a line for each program, its fields separated by tabs
  programs.py --check     "file:line: mistake" for each mistake in a header; exit status 1 if there are any"""
import collections
import json
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIELDS = (
    "Teaches",
    "Terms",
    "Book",
    "Rungs",
    "Run",
    "Differs",
    "Needs",
    "Picture",
    "Expect",
    "Bench",
    "Check",
)
Program = collections.namedtuple(
    "Program", "name title book teaches run differs needs picture expect bench terms check"
)
# The sections of programs that the book does not print; they come after those that it prints.
BEYOND = re.compile("archive|course|lab|ladder|after the book")


def read_terms():
    """The terms of docs/index.md, each with the beginning of its row, which has the meaning."""
    rows = re.findall(r"^(\| (.+?) \| .+? \|).*\|$", (ROOT / "docs/index.md").read_text(), re.M)
    return {term.replace("\\_", "_"): row for row, term in rows[1:]}


class Header:
    """The header comment of a program. mistakes is a list of (line, text)."""

    def __init__(self, name):
        self.name = name
        self.folder, self.base = name.split("/")
        self.title, self.value, self.where, self.mistakes = "", {}, {}, []
        with open(f"{ROOT}/{name}.cu", errors="replace") as file:
            text = file.read().replace("\t", " ")
        self.ladder = bool(re.search(r'^#include "\.\./common/bench\.h"', text, re.M))
        self.parse(text.rstrip("\n").split("\n"))

    def complain(self, where, text):
        """where: a line, or the field that is wrong"""
        self.mistakes.append((self.where.get(where, 2) if isinstance(where, str) else where, text))

    def parse(self, lines):
        last = None
        if lines[0] != "// SPDX-License-Identifier: MIT":
            self.complain(1, "the first line must be // SPDX-License-Identifier: MIT")
        if lines[1:2] != ["/*"]:
            return self.complain(2, "the header comment begins here with /*")
        for number, line in enumerate(lines[2:], 3):
            field = re.match(r" \* ([A-Z][a-z]*): *(.*)", line)
            if line == " */":
                return None
            if "*/" in line:
                return self.complain(number, 'the header comment ends with " */" on a line of its own')
            if number == 3:
                if line.startswith(f" * {self.base}: "):
                    self.title = line[len(self.base) + 5 :]
            elif field:
                last, text = field.groups()
                if last not in FIELDS:
                    self.complain(number, f"{last}: is no field of a header")
                if last in self.value:
                    self.complain(number, f"{last}: is here twice")
                if not text:
                    self.complain(number, f"{last}: is empty")
                self.value[last], self.where[last] = text, number
            elif re.match(r" \*  +[^ ]", line):
                if last:
                    self.value[last] += " " + line[2:].lstrip(" ")
                else:
                    self.complain(number, "this line belongs to no field")
            elif line != " *":
                self.complain(
                    number,
                    'a line of the header begins with " * " and is a field, or goes on with one, deeper indented',
                )
            elif last:
                self.complain(number, "an empty line between fields")
        return self.complain(len(lines), "the header comment does not end")

    def check(self, terms, drawn):
        """Looks for mistakes in the fields. drawn: the programs with a picture of their own."""
        value = {field: self.value.get(field, "") for field in FIELDS}
        run = value["Run"] + " "
        if not self.title:
            self.complain(3, f'the header begins with " * {self.base}: what it is"')
        for field in "Teaches", "Terms", "Book", "Run":
            if not value[field]:
                self.complain(2, f"the header has no {field}: field")
        chapter = re.sub("^chapter0*|^appendix_", "", self.folder).upper()
        section = re.match("[0-9A-Z.]*", value["Book"])[0].removesuffix(".")
        if value["Book"] and not re.fullmatch(rf"{chapter}(\.[0-9]+)*", section):
            self.complain(
                "Book", f'Book: "{value["Book"]}" does not begin with a section of chapter {chapter}'
            )
        if re.search("libs=mpi( |,|$)", value["Needs"]):
            run, mpi = re.subn("^mpirun -np [1-9][0-9]* ", "", run)
            if not mpi:
                self.complain("Run", "Run: must begin with mpirun -np N, since the program uses MPI")
        if value["Run"] and not run.startswith(f"./bin/{self.name} "):
            self.complain("Run", f"Run: must begin with ./bin/{self.name}")
        for word in re.split("[ ,|]+", value["Needs"]) if value["Needs"] else []:
            if not re.fullmatch(r"gl|gpus=[1-9]\d*|sm=[1-9]\d+[af]?|arch=90a|libs=[a-z0-9_+]+", word):
                self.complain("Needs", f'Needs: "{word}" is none of gl, gpus=N, sm=NN, arch=90a, libs=name')
        if value["Picture"]:
            if not re.search(r" --output [a-z0-9_]+\.[a-z0-9]+$", value["Run"]):
                self.complain("Run", "Run: ends with --output FILE, since the program draws")
            other = re.fullmatch("as ([a-z0-9_]+/[a-z0-9_]+)", value["Picture"])
            if other and other[1] not in drawn:
                self.complain("Picture", f"Picture: {other[1]} draws no picture of its own")
            if not other and value["Picture"] != "yes":
                self.complain("Picture", "Picture: is yes, or as chapterNN/name, or the line is left out")
        for term in re.split(", *", value["Terms"]) if value["Terms"] else []:
            if term not in terms:
                self.complain("Terms", f'Terms: "{term}" is not in docs/index.md')
        if value["Expect"] not in ("", "1"):
            self.complain(
                "Expect",
                "Expect: is 1, the exit status of a program that is wrong on purpose, or the line is left out",
            )
        if value["Bench"] and not self.ladder:
            self.complain("Bench", "Bench: is for what includes common/bench.h")
        if self.ladder and not value["Bench"]:
            self.complain(2, "the header of a ladder has a Bench: field")
        for size in value["Bench"].split():
            if not re.fullmatch("[1-9][0-9]*[KMG]?", size):
                self.complain("Bench", f'Bench: "{size}" is no value of --size')
        for options in value["Check"].split(" | ") if value["Check"] else []:
            if not re.fullmatch(r"--[a-z][a-z0-9. -]*( \(race\))?", options):
                self.complain(
                    "Check", f'Check: "{options}" is not the options of a run, or options and (race)'
                )

    @property
    def place(self):
        """The sort key: chapters as numbers, the appendix last; in a section the programs of the book come first."""
        book = self.value.get("Book", "")
        section = re.match("[0-9A-Z.]*", book)[0].removesuffix(".")
        numbers = [f"{int(part):03}" if part.isdigit() else part for part in section.split(".")]
        appendix = not self.folder.startswith("chapter")
        return appendix, self.folder, numbers, bool(BEYOND.search(book)), section != book, self.base

    @property
    def program(self):
        return Program(
            self.name, self.title, *(self.value.get(f.capitalize(), "") for f in Program._fields[2:])
        )


def read_headers(folders=()):
    """The headers of the programs in these folders, or of all, sorted by name."""
    every = sorted(f for f in os.listdir(ROOT) if re.fullmatch("chapter[0-9][0-9]|appendix_a", f))
    names = []
    for folder in [folder.rstrip("/") for folder in folders] or every:
        if not os.path.isdir(f"{ROOT}/{folder}"):
            continue
        files = sorted(os.scandir(f"{ROOT}/{folder}"), key=lambda file: file.name)
        names += [f"{folder}/{f.name[:-3]}" for f in files if f.name.endswith(".cu") and f.stat().st_size]
    return [Header(name) for name in names]


def read_programs(folders=()):
    """The programs of these folders, or all, in reading order."""
    return [header.program for header in sorted(read_headers(folders), key=lambda header: header.place)]


def check(folders):
    """The mistakes in the headers, a line for each."""
    headers, terms = read_headers(folders), read_terms()
    drawn = {header.name for header in headers if header.value.get("Picture") == "yes"}
    for header in headers:
        header.check(terms, drawn)
    return [f"{header.name}.cu:{line}: {text}" for header in headers for line, text in header.mistakes]


def libraries(program):
    """What a program needs to be built: ["cufft", "gl"]"""
    return (
        re.sub(r"(gpus|sm|arch)=[^ ,|]*|libs=", "", program.needs).replace(",", " ").replace("|", " ").split()
    )


def main(arguments):
    mode = arguments.pop(0) if arguments and arguments[0].startswith("-") else ""
    if mode == "--check":
        mistakes = check(arguments)
        print(*mistakes, sep="\n", end="\n" if mistakes else "")
        return bool(mistakes)
    programs = read_programs(arguments)
    if mode == "--list":
        print(*map("\t".join, programs), sep="\n")
    elif mode:
        print(__doc__, file=sys.stderr)
        return 64
    else:
        print(json.dumps([program._asdict() for program in programs], indent=1, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
