# SPDX-License-Identifier: MIT
"""The headers of the programs, as CONTRIBUTING.md has them, and their reader, scripts/programs.py; the book's sections."""
import re

import helpers
import programs as headers
from trees import ROOT, run

FORM = re.compile(
    r"// SPDX-License-Identifier: MIT\n/\*\n \* (\w+): \S.*\n(?: \*\n)?((?: \* [A-Z][a-z]*: *\S.*\n(?: \*  +\S.*\n)*)+) \*/\n"
)
# The fields that every header has, then the others; a field whose value is checked below has the form of its words
NEEDED = {"Teaches", "Terms", "Book", "Build", "Run"}
FIELDS = NEEDED | set("After Since Rungs Limit Differs Needs Picture Expect Bench Check Web".split())
FORMS = {
    "needs": r"((gl|gpus=[1-9]\d*|sm=[1-9]\d+[af]?|arch=90a|libs=[a-z0-9_+]+)([ ,|]+|$))*",
    "picture": r"|yes|as [a-z0-9_]+/[a-z0-9_]+",
    "expect": "1?",
    "bench": r"([1-9][0-9]*[KMG]?( |$))*",
    "check": r"(--[a-z][a-z0-9. -]*( \(race\))?( \| |$))*",
    "web": r"(--[a-z][a-zA-Z0-9. -]*)?",
}

# The sections of the book in its order, each with the programs that it prints. Two of them are 5.3.1.
BOOK = """3.2; 3.2.1 hello_world; 3.2.2 simple_kernel; 3.2.3 simple_kernel_params; 3.3 enum_gpu; 3.4 set_gpu; 3.5;
4.2; 4.2.1 add_loop_cpu add_loop_gpu; 4.2.2 julia_cpu julia_gpu; 4.3;
5.2; 5.2.1 add_loop_blocks add_loop_long_blocks; 5.2.2 ripple; 5.3; 5.3.1 dot; 5.3.1 dot_wrong_barrier;
5.3.2 shared_bitmap; 5.4;
6.2; 6.2.1; 6.2.2 ray_noconst; 6.2.3 ray; 6.2.4; 6.3; 6.3.1; 6.4;
7.2; 7.3; 7.3.1; 7.3.2; 7.3.3 heat_gmem; 7.3.4 heat; 7.3.5 heat_2d; 7.4;
8.2 basic_interop; 8.3; 8.3.1; 8.3.2 ripple; 8.4 heat; 8.5; 8.6;
9.2; 9.2.1; 9.2.2; 9.3; 9.4; 9.4.1 hist_cpu; 9.4.2 hist_gpu_gmem_atomics hist_gpu_shmem_atomics; 9.5;
10.2 copy_timed; 10.3; 10.4 basic_single_stream; 10.5 basic_double_stream; 10.6;
10.7 basic_double_stream_correct; 10.8;
11.2; 11.2.1 time_zero2; 11.2.2; 11.3 multidevice; 11.4 portable; 11.5;
12.2; 12.2.1; 12.2.2; 12.2.3; 12.2.4; 12.2.5; 12.2.6; 12.2.7; 12.3; 12.3.1; 12.3.2; 12.3.3; 12.4; 12.4.1;
12.4.2; 12.4.3; 12.5;
A.1; A.1.1; A.1.2 dot; A.2; A.2.1; A.2.2 hashtable_cpu; A.2.3 hashtable_gpu; A.2.4 hashtable_gpu; A.2.5;
A.3"""
SECTIONS = [section.split() for section in BOOK.split(";")]


def test_headers():
    index = (ROOT / "docs/terms.md").read_text().replace("\\_", "_")
    terms = {*re.findall(r"^\| (.+?) \| (?!See )", index, re.M)}
    known = {library.name for library in headers.read_libraries()}
    drawn = {f"as {program.name}" for program in helpers.programs() if program.picture == "yes"}
    for program in helpers.programs():
        header = FORM.match(program.source)
        formed = header and header[1] == program.base
        assert formed, f"{program}: the header has not the form of CONTRIBUTING.md"
        fields = re.findall(r"^ \* ([A-Z]\w*):", header[2], re.M)
        assert NEEDED <= set(fields) <= FIELDS and len(fields) == len(set(fields)), f"{program}: {fields}"
        for field, form in FORMS.items():
            value = getattr(program, field)
            assert re.fullmatch(form, value), f"{program}: {field.capitalize()}: {value} is not {form}"
        number = re.sub("^chapter0*|^appendix_", "", program.name.split("/")[0]).upper()
        number = "([3-9]|1[0-2]|A)" if number == "13" else number  # the chapter since the book: any section
        section = rf"{number}(\.[0-9]+)*\.?(?![0-9A-Z.])"
        assert re.match(section, program.book), f"{program}: Book: {program.book}"
        built = f"\n{headers.build_field(program)} * Run:"
        assert built in program.source, f"{program}: Build: is not what make docs writes"
        assert ("Since" in fields) == program.name.startswith("chapter13/"), f"{program}: Since: {fields}"
        mpi = "mpirun -np [1-9][0-9]* " if re.search("libs=mpi( |,|$)", program.needs) else ""
        output = r" --output [a-z0-9_]+\.[a-z0-9]+" if program.picture else ""
        command = rf"{mpi}\./bin/{program}( .*)?{output}"
        assert re.fullmatch(command, program.run), f"{program}: Run: {program.run}"
        strange = set(headers.libraries(program)) - known
        assert not strange, f"{program}: Needs: {strange}, which libraries.txt lacks"
        assert set(re.split(", *", program.terms)) <= terms, f"{program}: Terms: {program.terms}"
        assert program.picture in {"", "yes", *drawn}, f"{program}: Picture: {program.picture}"
        sentences = re.findall(r"[.?!](?= [A-Z]|$)", program.teaches)
        differs = re.search(r"^ \* Differs:.*\n(?: \*  .*\n)*", program.source, re.M)
        assert len(sentences) <= 4, f"{program}: Teaches: has {len(sentences)} sentences"
        assert not differs or differs[0].count("\n") <= 3, f"{program}: Differs: has more than three lines"
        ladder = '\n#include "../common/bench.h"' in program.source
        both = bool(program.bench) == ladder == ("Limit" in fields)
        assert both, f"{program}: Bench: and Limit: are for ladders"


def test_a_ladder_lists_its_rungs():
    """Names and ideas in its header are those of its tables, in order (of a second table only the names, as its ideas may differ).
    Rows of other kinds, such as libraries, are no rungs."""
    ladders, other = 0, r"\b(LIBRARY|LIMIT|INACCURATE)\b"
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
            row = r'^    \{"([^"]*)", "([^"]*)"(.*?)(?=^    \{"|^    \w+,$|^#|\Z)'
            rows = [r for r in re.findall(row, table, re.S | re.M) if not re.search(other, r[2])]
            for number, (name, idea, _) in enumerate(rows):
                rung = f"{number} {name} ({idea})" if table == tables[0] else f"{number} {name} ("
                assert rung in listed, f"{path.name}: Rungs: lacks {rung}"
    assert ladders > 15


def part(program):
    """The part of its chapter: 0 for the book's programs, 1 for the variations, 2 for the ladders."""
    return 2 if program.bench else bool(re.search("course|ladder|after the book", program.book))


def test_places_in_the_courses():
    """Each is a section that is known, and its options are those of the program. What is marked as of a course names it. No section is
    without a program."""
    found = set()
    for program in helpers.programs():
        texts, places = [*filter(None, program.courses.split("; "))], [*headers.places(program)]
        formed = all(re.fullmatch(r"[RCNT] [^|:;]+(: --[^|:;]+)?", text) for text in texts)
        assert formed and len(places) == len(texts), f"{program}: Book: {program.courses}"
        assert texts or "course" not in program.book, f"{program}: Book: which course?"
        for letter, section, place, options in places:
            found.add((letter, section))
            for option in re.findall("--([a-z-]+)", options):
                is_known = option == "kernel" or f'"{option}"' in program.settings
                assert is_known, f"{program}: {place}: --{option}"
    assert len(found) == sum(len(sections.split("; ")) for _, sections in headers.COURSES.values())


def test_the_books_order():
    """Chapters are sorted as numbers, the appendix is last. In a chapter the programs of the book come first, in its order, and the
    ladders last. A program comes after the one that its After: names, which exists and is of the same chapter: no cycle.
    """
    programs, order = helpers.programs(), [number for number, *_ in SECTIONS]
    folders = list(dict.fromkeys(p.name.split("/")[0] for p in programs))
    assert folders == sorted(f for f in folders if f.startswith("chapter")) + ["appendix_a"]
    places = [(folders.index(p.name.split("/")[0]), part(p)) for p in programs]
    assert places == sorted(places)
    places = [order.index(re.match(r"[0-9A-Z.]+", p.book)[0]) for p in programs if not part(p)]
    assert places == sorted(places)
    names = [p.name for p in programs]
    for p in programs:
        folder = p.after.split("/")[0]
        if p.after:
            assert p.name.startswith(f"{folder}/") and p.after in names, f"{p}: After: {p.after}"
            assert names.index(p.after) < names.index(p.name), f"{p}: After: {p.after} comes later"
    keys = [headers.place(p, {p.name: p for p in programs}) for p in programs]
    assert len(set(map(repr, keys))) == len(keys), "the order of two programs depends on the file system"
    assert [p.base for p in programs if p.book.startswith("5.3.1")][:2] == ["dot", "dot_wrong_barrier"]


# The lines of code of the book's listings that were counted
LISTINGS = """chapter03/simple_kernel_params 15 chapter04/add_loop_gpu 31 chapter04/julia_gpu 48 chapter05/dot 54
    chapter05/ripple 42 chapter05/shared_bitmap 30 chapter06/ray 87 chapter08/basic_interop 75
    chapter09/hist_gpu_gmem_atomics 51 chapter10/basic_single_stream 84 appendix_a/hashtable_gpu 133"""


def test_a_lesson_is_hardly_longer_than_its_listing():
    """At most 1.25 times: what is above the ruler, without comments."""
    for name, lines in re.findall(r"(\S+) (\d+)", LISTINGS):
        lesson = helpers.code_of((ROOT / f"{name}.cu").read_text().partition("\n// ----")[0])
        own = sum(bool(line.strip()) for line in lesson.split("\n"))
        assert own <= 1.25 * int(lines), f"{name}: {own} lines, the listing has {lines}"


def printed_by_the_book():
    """The programs that the book prints, with their sections."""
    printed = {}
    for number, *names in SECTIONS:
        chapter = number.split(".")[0]
        folder = f"chapter{int(chapter):02}" if chapter.isdigit() else f"appendix_{chapter.lower()}"
        for name in names:
            printed.setdefault(f"{folder}/{name}", set()).add(number)
    return printed


def test_sections_are_the_books():
    """Each section in a Book: field exists in the book, and a program that the book prints names the section where it is printed."""
    known, printed = {number for number, *_ in SECTIONS}, printed_by_the_book()
    for name, field in ((program.name, program.book) for program in helpers.programs()):
        named = set(re.findall(r"\b(?:[A-Z]|\d+)(?:\.\d+)+\b", field))
        assert named and named <= known, f"{name}: {field}"
        marked = re.search("archive|course|ladder|after the book", field)
        assert bool(marked) == (name not in printed), f"{name}: does the book print it? {field}"
        places = printed.get(name, set())
        for place in places:
            assert any(f"{place}.".startswith(f"{n}.") for n in named), f"{name}: printed in {place}: {field}"
        for number in named if places else ():
            assert any(f"{p}.".startswith(f"{number}.") for p in places), f"{name}: not printed in {number}"
    assert printed.keys() <= {program.name for program in helpers.programs()}


def test_what_is_wrong_with_a_header_is_one_line(sources):
    """clang-format would join its fields if a line is too long, and then no field would be found."""
    source = sources / "chapter03/hello_world.cu"
    text = source.read_text()
    source.write_text(text.replace("Teaches: ", "Teaches: " + 20 * "word ", 1))
    said = run(sources, "scripts/format.sh", status=1)
    assert said.startswith("chapter03/hello_world.cu:5: a line of the header has more than 110 columns")
    source.write_text(text.replace(" * Terms:", " *         ", 1))
    said = run(sources, "scripts/docs.py", status=1)
    says = 'chapter03/hello_world.cu: its header has no line "Terms:"'
    assert said.startswith(says) and said.count("\n") == 1
