#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lists the programs of the suite in reading order, from the header comment of each chapterNN/name.cu. The build, `make run`, the
tests and the generated tables all read the headers with this script.
  programs.py [FOLDER…]   the programs as JSON: a list of objects with the fields of Program
  programs.py --list      a line for each program, its fields separated by tabs
  programs.py --check     "file:line: mistake" for each mistake in a header; exit status 1 if there are any"""
import collections
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIELDS = "Teaches Terms Book Rungs Run Differs Needs Picture Expect Bench Check".split()
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
    """The header comment of a program."""

    def __init__(self, name):
        self.name = name
        self.folder, self.base = name.split("/")
        self.title, self.value, self.where = "", collections.defaultdict(str), {}
        text = (ROOT / f"{name}.cu").read_text(errors="replace").replace("\t", " ")
        self.ladder = bool(re.search(r'^#include "\.\./common/bench\.h"', text, re.M))
        self.mistakes = list(self.parse(text.rstrip("\n").split("\n")))

    def parse(self, lines):
        """Reads the fields. Yields the mistakes in the form of the comment, as (line, text)."""
        last = None
        if lines[0] != "// SPDX-License-Identifier: MIT":
            yield 1, "the first line must be // SPDX-License-Identifier: MIT"
        if lines[1:2] != ["/*"]:
            yield 2, "the header comment begins here with /*"
            return
        for number, line in enumerate(lines[2:], 3):
            field = re.match(r" \* ([A-Z][a-z]*): *(.*)", line)
            if line == " */":
                return
            if "*/" in line:
                yield number, 'the header comment ends with " */" on a line of its own'
                return
            if number == 3:
                if line.startswith(f" * {self.base}: "):
                    self.title = line[len(self.base) + 5 :]
            elif field:
                last, text = field.groups()
                if last not in FIELDS:
                    yield number, f"{last}: is no field of a header"
                if last in self.value:
                    yield number, f"{last}: is here twice"
                if not text:
                    yield number, f"{last}: is empty"
                self.value[last], self.where[last] = text, number
            elif re.match(r" \*  +[^ ]", line):
                if not last:
                    yield number, "this line belongs to no field"
                self.value[last] += " " + line[2:].lstrip(" ")
            elif line != " *":
                shape = '" * " and is a field, or goes on with one, deeper indented'
                yield number, f"a line of the header begins with {shape}"
            elif last:
                yield number, "an empty line between fields"
        yield len(lines), "the header comment does not end"

    def mistakes_in_fields(self, terms, drawn):
        """Yields (line or the name of the field, text). drawn: the programs with a picture of their own."""
        value, run = self.value, self.value["Run"] + " "
        if not self.title:
            yield 3, f'the header begins with " * {self.base}: what it is"'
        for field in "Teaches", "Terms", "Book", "Run":
            if not value[field]:
                yield 2, f"the header has no {field}: field"
        chapter = re.sub("^chapter0*|^appendix_", "", self.folder).upper()
        if value["Book"] and not re.fullmatch(rf"{chapter}(\.[0-9]+)*", self.section):
            yield "Book", f'"{value["Book"]}" does not begin with a section of chapter {chapter}'
        if re.search("libs=mpi( |,|$)", value["Needs"]):
            run, mpi = re.subn("^mpirun -np [1-9][0-9]* ", "", run)
            if not mpi:
                yield "Run", "must begin with mpirun -np N, since the program uses MPI"
        if value["Run"] and not run.startswith(f"./bin/{self.name} "):
            yield "Run", f"must begin with ./bin/{self.name}"
        for word in filter(None, re.split("[ ,|]+", value["Needs"])):
            if not re.fullmatch(r"gl|gpus=[1-9]\d*|sm=[1-9]\d+[af]?|arch=90a|libs=[a-z0-9_+]+", word):
                yield "Needs", f'"{word}" is none of gl, gpus=N, sm=NN, arch=90a, libs=name'
        if value["Picture"]:
            if not re.search(r" --output [a-z0-9_]+\.[a-z0-9]+$", value["Run"]):
                yield "Run", "ends with --output FILE, since the program draws"
            other = re.fullmatch("as ([a-z0-9_]+/[a-z0-9_]+)", value["Picture"])
            if other and other[1] not in drawn:
                yield "Picture", f"{other[1]} draws no picture of its own"
            if not other and value["Picture"] != "yes":
                yield "Picture", "is yes, or as chapterNN/name, or the line is left out"
        for term in filter(None, re.split(", *", value["Terms"])):
            if term not in terms:
                yield "Terms", f'"{term}" is not in docs/index.md'
        if value["Expect"] not in ("", "1"):
            yield "Expect", "is 1, the exit status of a program wrong on purpose, or the line is left out"
        if value["Bench"] and not self.ladder:
            yield "Bench", "is for what includes common/bench.h"
        if self.ladder and not value["Bench"]:
            yield 2, "the header of a ladder has a Bench: field"
        for size in value["Bench"].split():
            if not re.fullmatch("[1-9][0-9]*[KMG]?", size):
                yield "Bench", f'"{size}" is no value of --size'
        for options in filter(None, value["Check"].split(" | ")):
            if not re.fullmatch(r"--[a-z][a-z0-9. -]*( \(race\))?", options):
                yield "Check", f'"{options}" is not the options of a run, or options and (race)'

    @property
    def section(self):
        return re.match("[0-9A-Z.]*", self.value["Book"])[0].removesuffix(".")

    @property
    def place(self):
        """The sort key: chapters as numbers, the appendix last; in a section the programs of the book come first."""
        book, appendix = self.value["Book"], not self.folder.startswith("chapter")
        numbers = [f"{int(part):03}" if part.isdigit() else part for part in self.section.split(".")]
        return appendix, self.folder, numbers, bool(BEYOND.search(book)), self.section != book, self.base

    @property
    def program(self):
        return Program(self.name, self.title, *(self.value[f.capitalize()] for f in Program._fields[2:]))


def read_headers(folders=()):
    """The headers of the programs in these folders, or of all, sorted by name."""
    folders = [folder.rstrip("/") for folder in folders] or ["chapter[0-9][0-9]", "appendix_a"]
    files = sorted(path for folder in folders for path in ROOT.glob(f"{folder}/*.cu") if path.stat().st_size)
    return [Header(f"{path.parent.name}/{path.stem}") for path in files]


def read_programs(folders=()):
    """The programs of these folders, or all, in reading order."""
    return [header.program for header in sorted(read_headers(folders), key=lambda header: header.place)]


def check(folders):
    """Yields the mistakes in the headers, a line for each."""
    headers, terms = read_headers(folders), read_terms()
    drawn = {header.name for header in headers if header.value["Picture"] == "yes"}
    for header in headers:
        for line, text in header.mistakes:
            yield f"{header.name}.cu:{line}: {text}"
        for where, text in header.mistakes_in_fields(terms, drawn):
            place = where if isinstance(where, int) else f"{header.where.get(where, 2)}: {where}"
            yield f"{header.name}.cu:{place}: {text}"


def libraries(program):
    """What a program needs to be built: ["cufft", "gl"]"""
    return re.sub(r"(gpus|sm|arch)=[^ ,|]*|libs=|[,|]", " ", program.needs).split()


def main(arguments):
    mode = arguments.pop(0) if arguments and arguments[0].startswith("-") else ""
    if mode == "--check":
        mistakes = list(check(arguments))
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
