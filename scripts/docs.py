#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Updates the generated parts of README.md and docs/ (PARTS below), each between two markers, and the field Build: of each program, and
draws the plots again.
  docs.py gallery   first makes the gallery: runs every program that draws, with a small size, and writes the picture to docs/gallery.
                    The tests compare the programs with these pictures, which the CPU back end draws in the same way on every machine"""
import collections
import html
import io
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from exercise import exercises
from programs import BEYOND, BIN, COURSES, ROOT, build_field, places, read_programs
from run import execute
from tokens import without

sys.path.insert(0, str(ROOT / "bench"))
from report import find  # noqa: E402

LIMIT = 200000  # largest file of the gallery, in bytes


def markdown(text):
    """Escapes plain text; otherwise __device__ would be bold, and <x> an HTML tag."""
    return text.translate(str.maketrans({"&": "&amp;", "<": "&lt;", "|": r"\|"})).replace("__", r"\_\_")


def pictures():
    """The program, the file of its picture, which several may share, and the arguments that draw it, for each program that draws. If
    its Check: field has --size, it gets one. Animations are drawn smaller than stills, because they consist of many pictures. A program
    with an option that makes it race, such as --no-sync, has a second, wrong picture: program--no-sync, file--no-sync.png.
    """
    for program in read_programs():
        if program.picture:
            arguments, _, output = program.run.partition(f"./bin/{program.name} ")[2].rpartition("--output ")
            owner = program.name if program.picture == "yes" else program.picture.removeprefix("as ")
            words, ending = arguments.split(), output.rpartition(".")[2]
            words += ["--size", "512" if ending == "png" else "256"] * ("--size" in program.check)
            for race in "", *re.findall(r"(--[a-z-]+) \(race\)", program.check):
                yield program.name + race, f"docs/gallery/{owner}{race}.{ending}", [*words, *race.split()]


def drawings(name):
    """Links to the drawings whose text names a program. Headings have the anchors that GitHub gives them."""
    for part in re.split("^## ", (ROOT / "docs/drawings.md").read_text(), flags=re.M)[1:]:
        if f"(../{name}.cu)" in part:
            anchor = re.sub(r"[^\w\- ]", "", part.splitlines()[0].lower()).replace(" ", "-")
            yield f"[drawing](drawings.md#{anchor})"


def program_table():
    """Every program, with what it teaches."""
    yield "| program | book | what it is | what it teaches | notes |\n|---|---|---|---|---|"
    for p in read_programs():
        teaches = re.sub("(?<=[.?!]) .*", "", p.teaches)
        needs = re.sub(r"(^|[ ,|]+)arch=90a", "", p.needs)  # how it is compiled: it runs on any device
        notes = ["picture"] * bool(p.picture) + ["ladder"] * bool(p.bench) + [f"needs {needs}"] * bool(needs)
        notes += [*[f"wrong on purpose: status {p.expect}"] * bool(p.expect), *drawings(p.name)]
        courses = dict.fromkeys(f"{course} {place}" for course, _, place, _ in places(p))
        book = "; ".join(filter(None, [p.book, *courses]))
        cells = f"[{p.name}](../{p.name}.cu)", book, markdown(p.title), markdown(teaches), ", ".join(notes)
        yield f"| {' | '.join(cells)} |"


def chapter_table():
    """A row for each chapter, with a picture of one of its programs, those of the book in bold, and the ladders apart. The titles of the
    chapters are those of the page."""
    title = dict(re.findall(r"^\| (\w+)\. (.*?) \|", (ROOT / "README.md").read_text(), re.M))
    yield "| chapter | programs | ladders | a picture |\n|---|---|---|---|"
    shown = '<img src="{}" width="96" alt="picture of {}">'.format
    drawn = {name: shown(file, name.split("/")[1]) for name, file, _ in pictures() if f"/{name}." in file}
    for folder, own in itertools.groupby(read_programs(), lambda program: program.name.split("/")[0]):
        names, links = [], ([], [])
        for p in own:
            bold = "" if BEYOND.search(p.book) or "archive" in p.book else "**"
            names.append(p.name)
            links[bool(p.bench)].append(f"{bold}[{p.name.split('/')[1]}]({p.name}.cu){bold}")
        programs, ladders = map(", ".join, links)
        image = next((drawn[name] for name in names if name in drawn), "")
        number = re.sub("^chapter0*|^appendix_", "", folder).upper()
        yield f"| {number}. {title.get(number, '')} | {programs} | {ladders} | {image} |"


def course_tables():
    """For each course its sections in order, with the programs that show them, and at their first place in the course their exercise and
    their question of predict.md."""
    tasks = {e.name: f"`make exercise {e.name}` {'★' * e.stars()}" for e in exercises()}
    questions = (ROOT / "docs/predict.md").read_text()
    asked = dict(re.findall(r"^\| \[(\S+)\]\(.*?★ \| (.+?) \| ", questions, re.M))
    rows, seen = collections.defaultdict(list), set()
    for number, p in enumerate(read_programs()):
        for letter, section, place, options in places(p):
            rows[letter].append((section, number, place, p.name, options))
    for letter, (course, _) in COURSES.items():
        yield f"## {letter}: {course}\n\n| section | program, options | exercise | question |\n|---|---|---|---|"
        for _, _, place, name, options in sorted(rows[letter]):
            cells = [] if (letter, name) in seen else [tasks.get(name, ""), asked.get(name, "")]
            seen.add((letter, name))
            link = f"[{name}](../{name}.cu) {f'`{options}`' * bool(options)}".rstrip()
            yield f"| {' | '.join([place, link, *(cells or ['', ''])])} |"
        yield ""


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
    """The pictures, four in a row, with the programs that draw them, and the option that makes a picture wrong. The alternative text is
    the title of the first one."""
    title = {program.name: program.title for program in read_programs()}
    programs = collections.defaultdict(list)
    for name, file, _ in pictures():
        programs[file.removeprefix("docs/")].append(name.partition("--")[0])
    cells = []
    for file, names in programs.items():
        own, option = re.fullmatch(r"gallery/(.*?)(--.*)?\..*", file).groups("")
        alt = html.escape(f"{title[own]} {option}".rstrip()).replace("|", "&#124;")
        links = ", ".join(f"[{name}](../{name}.cu)" for name in names) + f" `{option}`" * bool(option)
        cells.append(f'<img src="{file}" width="200" alt="{alt}"><br>{links}')
    yield "| | | | |\n|:-:|:-:|:-:|:-:|"
    for i in range(0, len(cells), 4):
        yield f"| {' | '.join(cells[i : i + 4])} |"


# The file, what the part is, the name of its markers, and what makes it: a function here, or a command
PARTS = [
    ("README.md", "table of chapters", "chapters", chapter_table),
    ("README.md", "list of factors", "factors", "bench/report.py --factors"),
    ("docs/programs.md", "table of programs", "programs", program_table),
    ("docs/courses.md", "table of sections", "courses", course_tables),
    ("docs/gallery.md", "gallery", "gallery", gallery),
    ("docs/terms.md", "index of terms", "terms", index),
    ("docs/terms.md", "index of names", "names", names),
    ("docs/book-vs-today.md", "table of conclusions", "conclusions", "bench/then.py --conclusions"),
    ("docs/since-the-book.md", "table of times", "since", "bench/then.py --since"),
    ("docs/performance.md", "table of times", "performance", "bench/report.py --summary"),
    ("docs/performance.md", "table of predictions", "predictions", "bench/report.py --predictions"),
    ("bench/results/README.md", "recorded times", "results", "bench/report.py --results"),
    ("bench/results/README.md", "part then and now", "then", "bench/then.py --tables"),
]


def made_by(source):
    """The lines of a part."""
    if callable(source):
        return "\n".join(source()) + "\n"
    done = subprocess.run(source.split(), cwd=ROOT, text=True, stdout=subprocess.PIPE)
    return sys.exit(done.returncode) if done.returncode else done.stdout.strip("\n") + "\n"


def quoted(text, figures):
    """A document in which each figure that it quotes from the records is written anew."""
    of = lambda match: f"{match[1]}{figures[match[2]]}{match[3]}"  # noqa: E731
    return re.sub(r"(<!-- figure (\w+) -->)[^<]*(<!-- end -->)", of, text)


def recorded_figures():
    return dict(line.split("\t") for line in made_by("bench/then.py --figures").splitlines())


def updated(path, what, text):
    """Writes a file, if that changes it, and says so."""
    if text != path.read_text():
        path.write_text(text)
        print(f"{path.relative_to(ROOT)}: the {what} is refreshed", flush=True)


def animation(frames):
    """An animated WebP with every second of the given pictures, at the highest quality that is within the limit. The programs write
    lossless animations, which are ten times as large."""
    from PIL import Image

    first, *rest = [Image.open(path).convert("RGB") for path in frames[::2]]
    for quality in 98, 95, 90, 80, 70, 60, 50, 40:
        file, settings = io.BytesIO(), {"duration": 50, "loop": 0, "quality": quality, "method": 6}
        first.save(file, "webp", save_all=True, append_images=rest, **settings)
        if file.tell() < LIMIT:
            break
    return file.getvalue()


def draw(name, file, arguments, scratch):
    """The bytes of a picture. A wrong one ends the program with status 1."""
    made = scratch / (pathlib.Path(file).name if file.endswith(".png") else "frame-%04d.png")
    program, _, race = name.partition("--")
    status, errors = execute([BIN / program, *arguments, "--output", made], scratch / "log")
    if status != bool(race):
        sys.exit(f"{' '.join([name, *arguments])}: {' '.join(errors)}")
    return made.read_bytes() if file.endswith(".png") else animation(sorted(scratch.glob("frame-*.png")))


def draw_gallery():
    if not find("PIL"):
        sys.exit("no python3 here has PIL: make setup gallery installs it")
    for name, file, arguments in pictures():
        varies = "--" in name and os.environ.get("BACKEND") == "gpu"  # a race
        if varies or not file.startswith(f"docs/gallery/{name}."):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            data = draw(name, file, arguments, pathlib.Path(scratch))
        if len(data) >= LIMIT:
            sys.exit(f"{file}: {len(data)} bytes are too many")
        target = ROOT / file
        same = target.exists() and target.read_bytes() == data
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        print(f"{file}: {len(data)} bytes{', as it was' * same}", flush=True)
    for path in {*(ROOT / "docs/gallery").glob("*/*")} - {ROOT / file for _, file, _ in pictures()}:
        path.unlink()
        print(f"{path.relative_to(ROOT)}: no program draws it, removed")


def main(mode=""):
    if mode == "gallery":
        draw_gallery()
    print(made_by("bench/report.py").lstrip("\n"), end="", flush=True)
    for program in read_programs():
        path, field = ROOT / f"{program.name}.cu", build_field(program)
        place = re.compile(r"^( \* Build:.*\n(?: \*  .*\n)*)?(?= \* Run:)", re.M)
        updated(path, "field Build:", place.sub(field, path.read_text(), count=1))
    for file, what, name, source in PARTS:
        text = (ROOT / file).read_text()
        part = re.search(rf"^<!-- {name}:begin.*\n((?:.*\n)*?)<!-- {name}:end", text, re.M)
        updated(ROOT / file, what, text[: part.start(1)] + made_by(source) + text[part.end(1) :])
    figures = recorded_figures()
    for path in sorted(ROOT.glob("docs/*.md")):
        updated(path, "figures of the records", quoted(path.read_text(), figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
