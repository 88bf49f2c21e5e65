#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the programs and the documents as web pages, which need no server and no network.
  site.py [FOLDER]   default: build/site (of BUILD, as in the Makefile), which is emptied first. In another folder files of other names stay
The pages are one for README.md (index.html), for each program in the order of scripts/programs.py, for each other .md file, and for
each file that these link to or include. site.html is the frame of a page, site.css the style."""
import collections
import itertools
import os
import pathlib
import re
import shutil
import string
import sys
from html import escape, unescape

from docs import chapter_title
from gallery import pictures
from programs import ROOT, read_programs
from task import NO_CODE

sys.path.insert(0, str(ROOT / "bench"))
from report import RECORDED, STYLE, find, measured, scrolled  # noqa: E402
from results import Problem, load, run, shown, write  # noqa: E402

PROGRAMS = read_programs()
NAMES = {program.name for program in PROGRAMS}
PICTURES = {program: file for program, file, _ in pictures()}
FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / os.environ.get("BUILD", "build") / "site")
# A kernel's definition and a launch, in a source without comments and strings
NAME, LIST = r"(\w[\w.]*(?:\[\w*\])?)(?:<[\w\s,:*&.()]*>)?\s*", r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
MARKS = {
    "Kernel": rf"__global__\b[^;{{}}]*?\b{NAME}{LIST}(?=\s*\{{)",
    "Launch": rf"{NAME}<<<.*?>>>\s*{LIST}|\b(cudaLaunch\w*Kernel\w*){LIST}",
}

# ---- pages and links: a page has the path of its file in the repository, and links lead to such paths until linked() ----

pages = ["README.md"]  # grows by the files that pages link to


def address(path):
    """The path within the site of a file of the repository."""
    if path.endswith((".png", ".webp", ".svg", ".ipynb")):
        return path
    short = path.endswith(".md") or path.removesuffix(".cu") in NAMES
    return "index.html" if path == "README.md" else (os.path.splitext(path)[0] if short else path) + ".html"


def target(url, page):
    """The path in the repository that a link of a page leads to; None if there is no such file."""
    path = os.path.normpath(os.path.join(os.path.dirname(page), url))
    return None if path.startswith("..") or not (ROOT / path).exists() else path


def link_of(url, page):
    """Converts a link of a page into one within the site, to which the file is added."""
    if re.match("[a-z]+:|#", url):
        return url
    file, mark, heading = url.partition("#")
    path = target(file, page)
    if not path:
        raise Problem(f"{page}: links to {url}, but there is no such file")
    if path not in pages:
        pages.append(path)
    return os.path.relpath(address(path), os.path.dirname(page) or ".") + mark + heading


def linked(html, page):
    return re.sub(r'(?<= )(href|src)="([^"]*)"', lambda m: f'{m[1]}="{link_of(m[2], page)}"', html)


def anchor(text):
    """The anchor of a heading, by GitHub's rules."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def write_page(page, title, *parts):
    frame = string.Template((ROOT / "scripts/site.html").read_text())
    top = os.path.relpath(".", os.path.dirname(page) or ".")
    write(FOLDER / address(page), frame.substitute(title=escape(title), top=top, main="\n".join(parts)))


# ---- sources ----


def marks_of(text):
    """The kernels and launches in a program, as (first line, last line, kind, name)."""
    code = NO_CODE.sub(lambda match: re.sub(r"\S", " ", match[0]), text)
    found = [(m, kind) for kind, pattern in MARKS.items() for m in re.finditer(pattern, code, re.S)]
    line = lambda at: code.count("\n", 0, at) + 1  # noqa: E731
    return sorted((line(m.start()), line(m.end()), kind, m[1] or m[2]) for m, kind in found)


def listing(path, text, label, first=1, marked=()):
    """A source, or a part of one that begins with the line `first`, as HTML. The style sheet adds the line numbers."""
    from pygments import highlight, lexers
    from pygments.formatters import HtmlFormatter

    def included(match):
        return (
            linked(f'<a href="{match[1]}">', path) + match[0] + "</a>" if target(match[1], path) else match[0]
        )

    cuda = path.endswith((".cu", ".h"))
    lexer = lexers.CudaLexer if cuda else lexers.find_lexer_class_for_filename(path) or lexers.TextLexer
    shape = HtmlFormatter(linenostart=first, linespans="L", hl_lines=[line - first + 1 for line in marked])
    html = highlight(text, lexer(stripnl=False, ensurenl=False), shape)
    html = html.partition("<pre><span></span>")[2].rpartition("</pre>")[0]
    # Pygments 2.20 does not escape quotation marks
    html = re.sub('(?<=<span class="cpf">)(?:&quot;|")([^&<"]+)(?:&quot;|")', included, html)
    return scrolled("pre", label, html, f' class="code" style="counter-reset: line {first - 1}"')


def source_page(path):
    file = ROOT / path
    names = sorted(f"{member.name}\n" for member in file.iterdir()) if file.is_dir() else []
    write_page(path, path, f"<h1>{path}</h1>", listing(path, "".join(names) or file.read_text(), path))


def facts(program, text):
    """The fields of the header, as pairs of a name and HTML."""
    needs = re.sub(r"\barch=\w+|libs=", "", program.needs).replace("gpus=2", "2 GPUs").replace("gl", "OpenGL")
    exercise = f'<code>make exercise {program.name}</code> (<a href="../docs/exercises.md">exercises</a>)'
    terms = [f'<a href="../docs/index.md#{anchor(t)}">{escape(t)}</a>' for t in program.terms.split(", ")]
    return {
        "Book": escape(program.book),
        "Terms": ", ".join(terms),
        "Build": f"<code>make {program.name}</code>",
        "Run": f'<code>{" ".join(f"<span>{escape(word)}</span>" for word in program.run.split())}</code>',
        "Exercise": exercise if re.search(r"^// Task: (?!none:)\S", text, re.M) else "",
        "Needs": escape(needs),
        "Differs": escape(program.differs),
        "Status": f"{program.expect}, since the program is wrong on purpose" if program.expect else "",
    }


def program_page(before, program, after, recorded):
    name, path, title = program.name, f"{program.name}.cu", escape(program.title)
    text, (chapter, base) = (ROOT / path).read_text(), name.split("/")
    head, lesson, proof = re.fullmatch(r"(.*?^ \*/\n)(.*?)(^// -+ proof$.*)?", text, re.M | re.S).groups("")
    end, last, marks = head.count("\n"), (head + lesson).count("\n"), marks_of(text)
    marked = [line for mark in marks for line in range(mark[0], mark[1] + 1)]
    parts = [f'<p class="above">{escape(chapter_title(chapter))}</p>\n<h1>{base}: {title}</h1>']
    parts.append(f"<p>{escape(program.teaches)}</p>")
    if name in PICTURES:
        # An animation does not stop by itself, so the reader can hide it.
        animated = PICTURES[name].endswith("webp")
        frame = "<details open><summary>Animation</summary>{}</details>" if animated else "<p>{}</p>"
        parts.append(frame.format(f'<img src="../{PICTURES[name]}" alt="picture of {name}: {title}">'))
    told = (f"<dt>{field}</dt><dd>{html}</dd>" for field, html in facts(program, text).items() if html)
    parts += ["<dl>", *told, f"</dl>\n<h2>Source</h2>\n<p>{path}."]
    for kind, words in ("Kernel", "Kernels"), ("Launch", "Launches"):
        own = [f'<code>{m[3]}</code> in line <a href="#L-{m[0]}">{m[0]}</a>' for m in marks if m[2] == kind]
        parts += [f'<mark>{words}</mark>: {", ".join(own)}.'] if own else []
    folded = "<details><summary>{}</summary>{}</details>"
    sources = [
        folded.format(f"Header, lines 1 to {end}", listing(path, head, "header")),
        listing(path, lesson, "lesson", end + 1, marked),
    ]
    if proof:
        what = f"Proof, lines {last + 1} to {text.count(chr(10))}: options, input, reference and check"
        sources.append(folded.format(what, listing(path, proof, "proof", last + 1, marked)))
    parts = [linked("\n".join(parts), path), "</p>", *sources]
    if name in recorded.get("programs", {}):
        how = '<a href="../docs/performance.md#how-the-times-are-taken">How the times are taken</a>'
        parts += [f"<h2>Measured</h2>\n<p>{linked(how, path)}</p>", *measured(name, RECORDED, recorded)]
    nav = '<nav class="neighbours" aria-label="previous and next program">'
    for rel, word, other in ("prev", "Previous", before), ("next", "Next", after):
        nav += f'\n<a rel="{rel}" href="../{other.name}.cu">{word}: {other.name}</a>' if other else ""
    write_page(path, f"{name}: {program.title}", *parts, linked(nav, path), "</nav>")


# ---- documents ----


def document_page(page):
    from markdown_it import MarkdownIt

    text, seen, number = (ROOT / page).read_text(), collections.Counter(), itertools.count(1)
    html = MarkdownIt("commonmark").enable("table").render(re.sub("^<!--.*-->$", "", text, flags=re.M))

    def heading(match):
        name = anchor(unescape(re.sub("<[^>]*>", "", match[2])))
        seen[name] += 1
        return f'<{match[1]} id="{name}{f"-{seen[name] - 1}" * (seen[name] > 1)}">{match[2]}<'

    html = re.sub(r"<(h\d)>(.*?)<(?=/\1>)", heading, html)
    if page == "docs/index.md":  # the cells of the terms
        html = re.sub("(?<=<tr>\n<td)>(.*?)<", lambda m: f' id="{anchor(unescape(m[1]))}">{m[1]}<', html)
    html = linked(html.replace("<th></th>", "<td></td>"), page)
    for pattern, element, name, attributes in (
        ("(<table>.*?</table>)", "div", "table", ' class="table text"'),
        ("<pre>(.*?)</pre>", "pre", "text", ""),
        (r'(?:<p>)?(<img src="[^"]*\.svg"[^>]*>)(?:</p>)?', "figure", "picture", ""),
    ):
        next_one = lambda m: scrolled(element, f"{name} {next(number)}", m[1], attributes)  # noqa: E731
        html = re.sub(pattern, next_one, html, flags=re.S)
    write_page(page, re.search("^# (.*)", text, re.M)[1], html)


def main():
    if len(sys.argv) > 2 or sys.argv[1:2] == ["--help"]:
        print(__doc__, file=sys.stderr)
        return 64
    if not find("pygments", "markdown_it"):
        raise Problem("needs pygments and markdown_it for python3: make setup site installs them")
    if len(sys.argv) == 1:
        shutil.rmtree(FOLDER, ignore_errors=True)
    recorded = load().get(RECORDED, {})
    for neighbours in zip([None, *PROGRAMS], PROGRAMS, [*PROGRAMS[1:], None]):
        program_page(*neighbours, recorded)
    for path in pages:  # link_of() appends to this list during the loop
        if path.endswith(".md"):
            document_page(path)
        elif address(path) == path:
            (FOLDER / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, FOLDER / path)
        elif path.removesuffix(".cu") not in NAMES:
            source_page(path)
    documents = sum(path.endswith(".md") for path in pages)
    write(FOLDER / "site.css", STYLE + "\n" + (ROOT / "scripts/site.css").read_text())
    print(f"{shown(FOLDER / 'index.html')}: {len(PROGRAMS)} programs, {documents} documents")
    return 0


if __name__ == "__main__":
    run(main, "site")
