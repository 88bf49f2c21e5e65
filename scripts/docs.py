#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Updates the generated parts of README.md and docs/ (PARTS below), each between two markers, and the field Build: of each program, and
draws the plots again."""
import collections
import html
import itertools
import re
import subprocess
import sys

from gallery import pictures
from programs import ROOT, by_hand, read_programs
from tokens import without


def markdown(text):
    """Escapes plain text; otherwise __device__ would be bold, and <x> an HTML tag."""
    return text.translate(str.maketrans({"&": "&amp;", "<": "&lt;", "|": r"\|"})).replace("__", r"\_\_")


def program_table():
    """Every program, with what it teaches."""
    yield "| program | book | what it is | what it teaches | notes |\n|---|---|---|---|---|"
    for p in read_programs():
        teaches = re.sub("(?<=[.?!]) .*", "", p.teaches)
        needs = re.sub(r"(^|[ ,|]+)arch=90a", "", p.needs)  # how it is compiled: it runs on any device
        notes = ["picture"] * bool(p.picture) + ["ladder"] * bool(p.bench) + [f"needs {needs}"] * bool(needs)
        notes += [f"wrong on purpose: status {p.expect}"] * bool(p.expect)
        cells = f"[{p.name}](../{p.name}.cu)", p.book, markdown(p.title), markdown(teaches), ", ".join(notes)
        yield f"| {' | '.join(cells)} |"


def chapter_table():
    """A row for each chapter, with a picture of one of its programs. The titles of the chapters are those of the page."""
    title = dict(re.findall(r"^\| (\w+)\. (.*?) \|", (ROOT / "README.md").read_text(), re.M))
    yield "| chapter | programs | a picture from it |\n|---|---|---|"
    shown = '<img src="{}" width="96" alt="picture of {}">'.format
    drawn = {name: shown(file, name.split("/")[1]) for name, file, _ in pictures() if f"/{name}." in file}
    for folder, own in itertools.groupby(read_programs(), lambda program: program.name.split("/")[0]):
        names = [program.name for program in own]
        links = ", ".join(f"[{name.split('/')[1]}]({name}.cu)" for name in names)
        image = next((drawn[name] for name in names if name in drawn), "")
        number = re.sub("^chapter0*|^appendix_", "", folder).upper()
        yield f"| {number}. {title.get(number, '')} | {links} | {image} |"


def index():
    """The terms of the page, each with its meaning and the programs that show it; a synonym says which term to see."""
    shown = collections.defaultdict(list)
    for p in read_programs():
        for term in re.split(", *", p.terms):
            shown[term].append(f"[{p.name}](../{p.name}.cu)")
    yield "| term | meaning | programs |\n|---|---|---|"
    rows = re.findall(r"^(\| (.+?) \| .+? \|).*\|$", (ROOT / "docs/terms.md").read_text(), re.M)
    for row, term in rows[1:]:
        programs = ", ".join(shown[term.replace("\\_", "_")])
        yield f"{row} {programs} |"


def names():
    """Functions and types of CUDA, of libraries and of common/, with the first programs above whose ruler they stand. Neighbours that
    stand in the same programs share a row."""
    public = r"^(?:#define |\w.*?[ *:]|    \w.*?[ *](?=[a-z]+_))(?!settings|struct|poison|check\b|\d)(\w+)(?: [{:]|\(|;)"
    ours = re.findall(public, "\n".join(path.read_text() for path in ROOT.glob("common/*.h")), re.M)
    cuda = r"(?:cuda[A-Z]|atomic[A-Z]|cu(?:blas|fft|rand|sparse|solver)[A-Z]|(?:tex|surf)\dD|nccl|MPI_|gl[A-Z]|__(?!kernel|global |has_))\w*"
    word, used = rf"\b(?:{'|'.join([*ours, cuda])})(?= ?[(<]| \*?\w)", collections.defaultdict(list)
    for p in read_programs():
        lesson = (ROOT / f"{p.name}.cu").read_text().partition("- check\n")[0]
        for name in {*re.findall(word, without(lesson, "comment"))}:
            used[name].append(f"[{p.name}](../{p.name}.cu)")
    yield "| name | programs |\n|---|---|"
    rows = sorted(used.items(), key=lambda item: item[0].lower().strip("_"))
    for links, group in itertools.groupby(rows, key=lambda item: item[1]):
        shown = ", ".join(f"`{name}`" for name, _ in group)
        yield f"| {shown} | {', '.join(links[:3])}{f' and {len(links) - 3} more' * (len(links) > 3)} |"


def gallery():
    """The pictures, four in a row, with the programs that draw them. The alternative text is the title of the first one."""
    title = {program.name: program.title for program in read_programs()}
    programs = collections.defaultdict(list)
    for name, file, _ in pictures():
        programs[file.removeprefix("docs/")].append(name)
    cells = []
    for file, names in programs.items():
        alt = html.escape(title[file.removeprefix("gallery/").rpartition(".")[0]]).replace("|", "&#124;")
        links = ", ".join(f"[{name}](../{name}.cu)" for name in names)
        cells.append(f'<img src="{file}" width="200" alt="{alt}"><br>{links}')
    yield "| | | | |\n|:-:|:-:|:-:|:-:|"
    for i in range(0, len(cells), 4):
        yield f"| {' | '.join(cells[i : i + 4])} |"


# The file, what the part is, the name of its markers, and what makes it: a function here, or a command
PARTS = [
    ("README.md", "table of chapters", "chapters", chapter_table),
    ("docs/programs.md", "table of programs", "programs", program_table),
    ("docs/gallery.md", "gallery", "gallery", gallery),
    ("docs/terms.md", "index of terms", "terms", index),
    ("docs/terms.md", "index of names", "names", names),
    ("docs/book-vs-today.md", "table of conclusions", "conclusions", "bench/then.py --conclusions"),
    ("docs/since-the-book.md", "table of times", "since", "bench/then.py --since"),
    ("docs/performance.md", "table of times", "performance", "bench/report.py --summary"),
    ("bench/results/README.md", "recorded times", "results", "bench/report.py --results"),
    ("bench/results/README.md", "part about scaling", "scaling", "bench/scaling.py --tables"),
    ("bench/results/README.md", "part then and now", "then", "bench/then.py --tables"),
]


def made_by(source):
    """The lines of a part."""
    if callable(source):
        return "\n".join(source()) + "\n"
    done = subprocess.run(source.split(), cwd=ROOT, text=True, stdout=subprocess.PIPE)
    return sys.exit(done.returncode) if done.returncode else done.stdout.strip("\n") + "\n"


def updated(path, what, text):
    """Writes a file, if that changes it, and says so."""
    if text != path.read_text():
        path.write_text(text)
        print(f"{path.relative_to(ROOT)}: the {what} is refreshed", flush=True)


def main():
    for command in "bench/report.py", "bench/scaling.py --plot":
        print(made_by(command).lstrip("\n"), end="", flush=True)
    for program in read_programs():
        path, line = ROOT / f"{program.name}.cu", f" * Build:   {by_hand(program)}\n"
        text = re.sub(r"^( \* Build:.*\n)?(?= \* Run:)", line, path.read_text(), count=1, flags=re.M)
        updated(path, "field Build:", text)
    for file, what, name, source in PARTS:
        text = (ROOT / file).read_text()
        part = re.search(rf"^<!-- {name}:begin.*\n((?:.*\n)*?)<!-- {name}:end", text, re.M)
        updated(ROOT / file, what, text[: part.start(1)] + made_by(source) + text[part.end(1) :])


if __name__ == "__main__":
    main()
