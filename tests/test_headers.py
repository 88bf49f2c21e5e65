# SPDX-License-Identifier: MIT
"""The headers of the programs, as CONTRIBUTING.md has them, and their reader, scripts/programs.py; the book's sections."""
import json
import re

import helpers
from trees import ROOT, run

FORM = re.compile(
    r"// SPDX-License-Identifier: MIT\n/\*\n \* (\w+): \S.*\n(?: \*\n)?((?: \* [A-Z][a-z]*: *\S.*\n(?: \*  +\S.*\n)*)+) \*/\n"
)
# The fields that every header has, then the others; a field whose value is checked below has the form of its words
NEEDED = {"Teaches", "Terms", "Book", "Run"}
FIELDS = NEEDED | {"Rungs", "Differs", "Needs", "Picture", "Expect", "Bench", "Check"}
FORMS = {
    "needs": r"((gl|gpus=[1-9]\d*|sm=[1-9]\d+[af]?|arch=90a|libs=[a-z0-9_+]+)([ ,|]+|$))*",
    "picture": r"|yes|as [a-z0-9_]+/[a-z0-9_]+",
    "expect": "1?",
    "bench": r"([1-9][0-9]*[KMG]?( |$))*",
    "check": r"(--[a-z][a-z0-9. -]*( \(race\))?( \| |$))*",
}


def test_headers():
    terms = {
        t.replace("\\_", "_")
        for t in re.findall(r"^\| (.+?) \| (?!See )", (ROOT / "docs/terms.md").read_text(), re.M)
    }
    drawn = {f"as {program.name}" for program in helpers.programs() if program.picture == "yes"}
    for program in helpers.programs():
        header = FORM.match(program.source)
        assert (
            header and header[1] == program.base
        ), f"{program}: the header has not the form of CONTRIBUTING.md"
        fields = re.findall(r"^ \* ([A-Z]\w*):", header[2], re.M)
        assert NEEDED <= set(fields) <= FIELDS and len(fields) == len(set(fields)), f"{program}: {fields}"
        for field, form in FORMS.items():
            value = getattr(program, field)
            assert re.fullmatch(form, value), f"{program}: {field.capitalize()}: {value} is not {form}"
        number = re.sub("^chapter0*|^appendix_", "", program.name.split("/")[0]).upper()
        assert re.match(
            rf"{number}(\.[0-9]+)*\.?(?![0-9A-Z.])", program.book
        ), f"{program}: Book: {program.book}"
        mpi = "mpirun -np [1-9][0-9]* " if re.search("libs=mpi( |,|$)", program.needs) else ""
        output = r" --output [a-z0-9_]+\.[a-z0-9]+" if program.picture else ""
        assert re.fullmatch(
            rf"{mpi}\./bin/{program}( .*)?{output}", program.run
        ), f"{program}: Run: {program.run}"
        assert set(re.split(", *", program.terms)) <= terms, f"{program}: Terms: {program.terms}"
        assert program.picture in {"", "yes", *drawn}, f"{program}: Picture: {program.picture}"
        ladder = '\n#include "../common/bench.h"' in program.source
        assert bool(program.bench) == ladder, f"{program}: Bench: is for what includes common/bench.h"


def test_a_ladder_lists_its_rungs():
    """The names in its header are those of its tables, in order. Rows of other kinds, such as libraries, are no rungs."""
    ladders = 0
    for path in sorted(ROOT.glob("*/*.cu")):
        text = path.read_text()
        tables = re.findall(r"^static (?:const )?Rung \w+\[\] = \{\n(.*?)^\};", text, re.S | re.M)
        if not tables:
            continue
        ladders += 1
        field = re.search(r"^ \* Rungs: +(.*\n(?: \*  .*\n)*)", text, re.M)
        assert field, f"{path.name} has no Rungs: field"
        listed = " ".join(field[1].replace("\n * ", " ").split())
        for table in tables:
            rows = re.findall(r'^    \{"([^"]*)",(.*?)(?=^    \{"|^    \w+,$|^#|\Z)', table, re.S | re.M)
            names = [
                name for name, rest in rows if not re.search(r"\b(LIBRARY|COPY_RATE|INACCURATE)\b", rest)
            ]
            for number, name in enumerate(names):
                assert f"{number} {name}" in listed, f"{path.name}: Rungs: lacks {number} {name}"
    assert ladders > 15


def test_programs_in_reading_order(sources):
    """Sections are sorted as numbers, and a section without a remark comes first; fields are printed completely."""
    text = (sources / "chapter03/hello_world.cu").read_text()
    more = " * Differs: in one\n *          or two things\n * Needs:   gpus=2, libs=png gl\n */"
    for name, section in ("a", "3.10"), ("b", "3.9.1"), ("c", "3.9 (course)"), ("d", "3.9"):
        changed = text.replace("hello_world", name).replace("Book:    3.2.1", f"Book:    {section}")
        (sources / f"chapter03/{name}.cu").write_text(changed.replace(" */", more, 1))
    found = json.loads(run(sources, "scripts/programs.py", "chapter03"))
    assert [p["name"][10:] for p in found] == ["hello_world", "simple_kernel", "d", "c", "b", "a"]
    assert (found[2]["differs"], found[2]["needs"], found[2]["picture"]) == (
        "in one or two things",
        "gpus=2, libs=png gl",
        "",
    )
    assert found[2]["terms"] == found[0]["terms"] != "" and list(found[0]) == list(found[2])


def beyond_the_book(section):
    return bool(re.search("archive|course|lab|ladder|after the book", section))


def sections():
    """The sections of the book, as (number, title, names of the programs that the book prints there)."""
    for line in (ROOT / "tests/sections.txt").read_text().splitlines():
        if not line.startswith("#"):
            number, title, *programs = (part.strip() for part in line.split("|"))
            yield number, title, programs[0].split() if programs else []


def test_the_books_order():
    """Chapters are sorted as numbers, the appendix is last, and in a section the programs of the book come before all others."""
    programs = helpers.programs()
    folders = list(dict.fromkeys(p.name.split("/")[0] for p in programs))
    assert folders == sorted(f for f in folders if f.startswith("chapter")) + ["appendix_a"]
    order = [number for number, _, _ in sections()]
    places = [(order.index(re.match(r"[0-9A-Z.]+", p.book)[0]), p.book.split()[0]) for p in programs]
    assert [place for place, _ in places] == sorted(place for place, _ in places)
    for before, after in zip(programs, programs[1:]):
        if before.book.split()[0] == after.book.split()[0]:
            assert beyond_the_book(before.book) <= beyond_the_book(after.book), f"{before}, {after}"
    assert [p.base for p in programs if p.book.startswith("5.3.1")][:2] == ["dot", "dot_wrong_barrier"]


def test_sections_are_the_books():
    """Each section in a Book: field exists in the book, and a program that the book prints names the section where it is printed."""
    known, printed = {number for number, _, _ in sections()}, {}
    for number, _, names in sections():
        chapter = number.split(".")[0]
        folder = f"chapter{int(chapter):02}" if chapter.isdigit() else f"appendix_{chapter.lower()}"
        for name in names:
            printed.setdefault(f"{folder}/{name}", set()).add(number)
    for name, field in ((program.name, program.book) for program in helpers.programs()):
        named = set(re.findall(r"\b(?:[A-Z]|\d+)(?:\.\d+)+\b", field))
        assert named and named <= known, f"{name}: {field}"
        assert not beyond_the_book(field) or name not in printed, f"{name}: the book prints it: {field}"
        places = printed.get(name, set())
        for place in places:
            assert any(f"{place}.".startswith(f"{n}.") for n in named), f"{name}: printed in {place}: {field}"
        for number in named if places else ():
            assert any(f"{p}.".startswith(f"{number}.") for p in places), f"{name}: not printed in {number}"
    assert printed.keys() <= {program.name for program in helpers.programs()}
