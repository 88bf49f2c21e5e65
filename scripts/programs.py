#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lists the programs of the suite in reading order, from the header comment of each chapterNN/name.cu. The build, `make run`, the
tests and the generated tables all read the headers with this script; tests/test_headers.py says what is wrong with one.
  programs.py [FOLDER…]   the programs as JSON: a list of objects with the fields of Program
  programs.py --list      the name of each program"""
import collections
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
Program = collections.namedtuple(
    "Program", "name title book teaches run differs needs picture expect bench terms check"
)
# The sections of programs that the book does not print; they come after those that it prints.
BEYOND = re.compile("archive|course|lab|ladder|after the book")


def read_program(path):
    """The program of a source. A field goes on in lines that are indented deeper."""
    head = path.read_text(errors="replace").partition("\n */")[0]
    title = re.search(rf"^ \* {path.stem}: (.*)", head, re.M)
    fields = dict(re.findall(r"^ \* ([A-Z][a-z]*): *(.*(?:\n \*  +[^ ].*)*)", head, re.M))
    values = (re.sub(r"\n \* +", " ", fields.get(f.capitalize(), "")) for f in Program._fields[2:])
    return Program(f"{path.parent.name}/{path.stem}", title[1] if title else "", *values)


def place(program):
    """The sort key: chapters as numbers, the appendix last; in a section the programs of the book come first."""
    folder, base = program.name.split("/")
    section = re.match("[0-9A-Z.]*", program.book)[0].removesuffix(".")
    numbers = [f"{int(part):03}" if part.isdigit() else part for part in section.split(".")]
    beyond = bool(BEYOND.search(program.book))
    return not folder.startswith("chapter"), folder, numbers, beyond, section != program.book, base


def read_programs(folders=()):
    """The programs of these folders, or all, in reading order."""
    folders = [folder.rstrip("/") for folder in folders] or ["chapter[0-9][0-9]", "appendix_a"]
    files = [path for folder in folders for path in ROOT.glob(f"{folder}/*.cu") if path.stat().st_size]
    return sorted(map(read_program, files), key=place)


def libraries(program):
    """What a program needs to be built: ["cufft", "gl"]"""
    return re.sub(r"(gpus|sm|arch)=[^ ,|]*|libs=|[,|]", " ", program.needs).split()


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print(*(program.name for program in read_programs()), sep="\n")
    elif any(word.startswith("-") for word in sys.argv[1:]):
        print(__doc__, file=sys.stderr)
        sys.exit(64)
    else:
        programs = [program._asdict() for program in read_programs(sys.argv[1:])]
        print(json.dumps(programs, indent=1, ensure_ascii=False))
