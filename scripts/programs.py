#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lists the programs of the suite in reading order, from the header comment of each chapterNN/name.cu. The build, `make run`, the
tests and the generated tables all read the headers with this script; tests/test_headers.py says what is wrong with one.
  programs.py [FOLDER…]   the programs as JSON: a list of objects with the fields of Program"""
import collections
import functools
import json
import os
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = ROOT / os.environ.get("BIN", "bin")
BUILD = os.environ.get("BUILD", "build")  # relative to ROOT, as it is printed
Program = collections.namedtuple(
    "Program", "name title book courses after teaches run differs needs picture expect bench terms check web"
)
# In Book: of programs that neither the book nor its archive has
BEYOND = re.compile("course|ladder|after the book")
# The courses, with those of their sections that are known, or subjects where the numbers are not, in their order
COURSES = {
    "R": ("Rauber and Rünger, chapter 7", "7.1; 7.2; 7.3; warps; 7.5; OpenCL"),
    "C": (
        "CSInParallel",
        "1.4; 1.6; 2; 3 (Dot-GM); 3 (Dot-SM); 4.2.1; 4.3.3; 4.4; 4.5; 4.5.4; 5; 5.4.4; 5.6.4",
    ),
    "N": ("Class notes", "memory; banks; textures; arrays; radix sort"),
    "T": (
        "TACC lab",
        "reduction; random numbers; BLAS; conjugate gradient; FFT; Thrust; bucket sort; memory checker",
    ),
}
Library = collections.namedtuple("Library", "name only flags headers debian fedora arch suse adds")


@functools.cache
def read_libraries():
    """The rows of libraries.txt. One that differs between the back ends has two, first that of the CPU."""
    lines = (ROOT / "scripts/libraries.txt").read_text().splitlines()
    rows = [re.split(" *[|] *", line) for line in lines if not line.startswith("#")]
    return [Library(*row) for row in rows if len(row) == len(Library._fields)]


def read_program(path):
    """The program of a source. A field goes on in lines that are indented deeper."""
    head = path.read_text(errors="replace").partition("\n */")[0]
    title = re.search(rf"^ \* {path.stem}: (.*)", head, re.M)
    fields = dict(re.findall(r"^ \* ([A-Z][a-z]*): *(.*(?:\n \*  +[^ ].*)*)", head, re.M))
    fields = {name: re.sub(r"\n \* +", " ", value) for name, value in fields.items()}
    fields["Book"], _, fields["Courses"] = fields.get("Book", "").partition("; ")
    values = (fields.get(field.capitalize(), "") for field in Program._fields[2:])
    return Program(f"{path.parent.name}/{path.stem}", title[1] if title else "", *values)


def places(program):
    """Where the courses have what a program shows: (letter, number of the section in COURSES, section with remark, options)."""
    for text in filter(None, program.courses.split("; ")):
        letter, place, options = re.fullmatch(r"(\w) (.+?)(?:: (--.+))?", text).groups("")
        for number, section in enumerate(COURSES[letter][1].split("; ")):
            if re.match(rf"{re.escape(section)}(?![\w.])", place):
                yield letter, number, place, options


def in_section(program):
    """The sort key among the sections of a chapter, which are sorted as numbers. One without a remark comes first."""
    numbers = [part.zfill(3) for part in program.book.split(" ")[0].split(".")]
    return numbers, "archive" in program.book, " " in program.book, program.name


def place(program, named):
    """The sort key: in each chapter the book's programs, then the others, then the ladders. After: puts one behind another."""
    part, chain = 2 if program.bench else bool(BEYOND.search(program.book)), [program]
    while (before := named.get(chain[0].after)) and before not in chain:
        chain.insert(0, before)
    return program.name.startswith("appendix"), program.name.split("/")[0], part, *map(in_section, chain)


def read_programs(folders=()):
    """The programs of these folders, or all, in reading order. A header that lacks a field ends the process with one line."""
    folders = [folder.rstrip("/") for folder in folders] or ["chapter[0-9][0-9]", "appendix_a"]
    files = [path for folder in folders for path in ROOT.glob(f"{folder}/*.cu") if path.stat().st_size]
    named = {program.name: program for program in map(read_program, files)}
    for program in named.values():
        for field in "terms", "book", "run":
            if program.teaches and not getattr(program, field):
                what = f'its header has no line "{field.capitalize()}:" (CONTRIBUTING.md has the form)'
                sys.exit(f"{program.name}.cu: {what}")
    return sorted(named.values(), key=lambda program: place(program, named))


def libraries(program):
    """What a program needs to be built: ["cufft", "gl"]"""
    return re.sub(r"(gpus|sm|arch)=[^ ,|]*|libs=|[,|]", " ", program.needs).split()


def by_hand(program, compiler="nvcc"):
    """The command that builds a program without make, in the root of the repository. `/*` would begin a comment in a header."""
    flags = {library.name: library.flags for library in reversed(read_libraries())} | {"mpi": "-ccbin mpicxx"}
    words = [flags.get(library, f"-l{library}") for library in libraries(program)]
    if arch := re.search(r"arch=(\w+)", program.needs) if compiler == "nvcc" else None:
        words.append(f"-arch=sm_{arch[1]}")
    glut = " common/old/glut.c" if "glut" in libraries(program) else ""
    line = f"{compiler} -o {program.name.split('/')[1]} {program.name}.cu common/lib/[a-z]*.c{glut}"
    return " ".join([line, *dict.fromkeys(" ".join(filter(None, words)).split())])


def build_field(program):
    """The field Build: of a header, in lines of at most 110 columns."""
    lines = textwrap.wrap(by_hand(program), 98, break_long_words=False, break_on_hyphens=False)
    return " * Build:   " + "\n *          ".join(lines) + "\n"


if __name__ == "__main__":
    programs = [program._asdict() for program in read_programs(sys.argv[1:])]
    print(json.dumps(programs, indent=1, ensure_ascii=False))
