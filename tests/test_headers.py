# SPDX-License-Identifier: MIT
"""The headers of the programs and their reader, scripts/programs.sh; the book's sections."""
import re

import pytest

from trees import ROOT, run


def test_headers():
    assert run(ROOT, "scripts/programs.sh", "--check") == ""


@pytest.mark.parametrize(
    "old, new, says",
    [
        ("// SPDX-License-Identifier: MIT\n", "", r":1: the first line must be"),
        (" * hello_world: ", " * hello: ", r":3: the header begins with"),
        (
            " * Teaches: ",
            " * Lesson:  ",
            r"(?s):5: Lesson: is no field.*:2: the header has no Teaches: field",
        ),
        (" * Teaches: ", " Teaches: ", r":5: a line of the header"),
        (" * Book:    3.2.1\n", "", r":2: the header has no Book: field"),
        (" * Terms:   ", " * Differs: ", r":2: the header has no Terms: field"),
        (
            " * Book:    3.2.1\n",
            " * Book:    4.2.1\n",
            r"Book: \"4.2.1\" does not begin with a section of chapter 3",
        ),
        (" * Book:    3.2.1\n", " * Book:    3.2.1\n * Book:    3.2.1\n", r"Book: is here twice"),
        (
            " * Run:     ./bin/chapter03/hello_world",
            " * Run:     ./hello_world",
            r"Run: must begin with ./bin/chapter03/hello_world",
        ),
        (" */", " * Needs:   libs=mpi\n */", r"Run: must begin with mpirun -np N, since"),
        (" * Run:     ./bin", " * Run:     mpirun -np 2 ./bin", r"Run: must begin with ./bin/chapter03"),
        (" */", " * Needs:   gpu=2\n */", r'Needs: "gpu=2" is none of'),
        (" */", " * Picture: no\n */", r"Picture: is yes"),
        (" */", " * Expect:  2\n */", r"Expect: is 1"),
        (" */", " * Picture: yes\n */", r"Run: ends with --output FILE"),
        (
            " */",
            " * Picture: as chapter03/simple_kernel\n */",
            r"Picture: chapter03/simple_kernel draws no picture of its own",
        ),
        (
            " */",
            " * Check:   64 | --size 8 (fine)\n */",
            r'Check: "64" is not(.|\n)*Check: "--size 8 \(fine\)" is not',
        ),
        (" */", " * Bench:   1M\n */", r"Bench: is for what includes common/bench.h"),
        (" */", " * Bench:   1M 0 2T\n */", r'Bench: "0" is no value of --size\n.*"2T" is no value'),
        (" */\n", ' */\n#include "../common/bench.h"\n', r":2: the header of a ladder has a Bench: field"),
        (" */", "", r"a line of the header|the header comment does not end"),
    ],
)
def test_a_bad_header_is_named(sources, old, new, says):
    source = sources / "chapter03/hello_world.cu"
    assert old in source.read_text()
    source.write_text(source.read_text().replace(old, new, 1))
    log = run(sources, "scripts/programs.sh", "--check", status=1)
    assert re.search(says, log), log
    assert all(line.startswith("chapter03/hello_world.cu:") for line in log.splitlines())


def test_programs_in_reading_order(sources):
    """Sections are sorted as numbers, and a section without a remark comes first; fields are printed completely."""
    text = (sources / "chapter03/hello_world.cu").read_text()
    for name, section in [("a", "3.10"), ("b", "3.9.1"), ("c", "3.9 (course)"), ("d", "3.9")]:
        (sources / "chapter03" / (name + ".cu")).write_text(
            text.replace("hello_world", name)
            .replace("Book:    3.2.1", "Book:    " + section)
            .replace(
                " */",
                " * Differs: in one\n *          or two things\n * Needs:   gpus=2, libs=png gl\n */",
                1,
            )
        )
    rows = [line.split("\t") for line in run(sources, "scripts/programs.sh", "chapter03").splitlines()]
    assert [r[0][10:] for r in rows] == ["hello_world", "simple_kernel", "d", "c", "b", "a"]
    assert all(len(r) == 12 for r in rows)
    assert (
        rows[2][5:10] == ["in one or two things", "gpus=2, libs=png gl", "", "", ""]
        and rows[2][10] == rows[0][10] != ""
    )
    assert "chapter03/d:png,gl" in run(sources, "scripts/programs.sh", "--needs")


def test_the_books_order():
    """Chapters are sorted as numbers, the appendix is last, and in a section the programs of the book come before all others."""
    rows = [line.split("\t") for line in run(ROOT, "scripts/programs.sh").splitlines()]
    folders = list(dict.fromkeys(row[0].split("/")[0] for row in rows))
    assert folders == sorted(f for f in folders if f.startswith("chapter")) + ["appendix_a"]
    order = [number for number, _, _ in sections()]
    places = [order.index(re.match(r"[0-9A-Z.]+", row[2])[0]) for row in rows]
    assert places == sorted(places)
    for before, after in zip(rows, rows[1:]):
        if before[2].split()[0] == after[2].split()[0]:
            assert beyond_the_book(before[2]) <= beyond_the_book(
                after[2]
            ), f"{after[0]} comes after {before[0]}"
    assert [row[0] for row in rows if row[2].startswith("5.3.1")][:2] == [
        "chapter05/dot",
        "chapter05/dot_wrong_barrier",
    ]


def beyond_the_book(section):
    return bool(re.search("archive|course|lab|ladder|after the book", section))


def sections():
    """The sections of the book, as (number, title, names of the programs that the book prints there)."""
    for line in (ROOT / "tests/sections.txt").read_text().splitlines():
        if not line.startswith("#"):
            number, title, *programs = (part.strip() for part in line.split("|"))
            yield number, title, programs[0].split() if programs else []


def test_sections_are_the_books():
    """Each section in a Book: field exists in the book, and a program that the book prints names the section where it is printed."""
    known = {number for number, _, _ in sections()}
    printed = {}
    for number, _, names in sections():
        chapter = number.split(".")[0]
        folder = "chapter%02d" % int(chapter) if chapter.isdigit() else "appendix_" + chapter.lower()
        for name in names:
            printed.setdefault(f"{folder}/{name}", set()).add(number)
    programs = {
        line.split("\t")[0]: line.split("\t")[2] for line in run(ROOT, "scripts/programs.sh").splitlines()
    }
    for name, field in programs.items():
        named = set(re.findall(r"\b(?:[A-Z]|\d+)(?:\.\d+)+\b", field))
        assert named and named <= known, f"{name}: {field}"
        assert not beyond_the_book(field) or name not in printed, f"{name}: the book prints it: {field}"
        for number in printed.get(name, ()):
            assert any(
                f"{number}.".startswith(f"{n}.") for n in named
            ), f"{name}: the book prints it in {number}: {field}"
        for number in named if name in printed else ():
            assert any(
                f"{p}.".startswith(f"{number}.") for p in printed[name]
            ), f"{name}: {field} is not where the book prints it"
    assert printed.keys() <= programs.keys()
