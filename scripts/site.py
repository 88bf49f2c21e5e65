#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the programs and the documents as web pages, which need no server and no network.
  site.py [FOLDER]   default: build/site (of BUILD, as in the Makefile), which is emptied first. In another folder files of other names stay
The pages are index.html, one for each program in the order of scripts/programs.py, one for each .md file, and one for each other
file that these link to or include. site.html is the frame of a page, site.css the style."""
import collections
import itertools
import os
import pathlib
import re
import shutil
import string
import sys
from html import escape

from docs import chapter_title
from gallery import pictures
from highlight import highlighted
from programs import ROOT, read_programs

sys.path.insert(0, str(ROOT / "bench"))
from report import RECORDED, STYLE, find, measured, scrolled  # noqa: E402
from results import Problem, load, run, shown, write  # noqa: E402


PROGRAMS = read_programs()
PICTURES = {program: file for program, file, _ in pictures()}
SOURCES = {program.name + ".cu" for program in PROGRAMS}
TERMS = "docs/index.md"
FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / os.environ.get("BUILD", "build") / "site")

# ---- pages and links: a page has the path of its file in the repository ----

linked = ["README.md"]  # the files that pages link to, in the order in which the links were found


def address(path):
    """The path within the site of a file of the repository."""
    if path.endswith((".png", ".webp", ".svg", ".ipynb")):
        return path
    return (os.path.splitext(path)[0] if path in SOURCES or path.endswith(".md") else path) + ".html"


def link(path, page):
    """The relative link from a page to a file, which is added to the site."""
    if path not in linked:
        linked.append(path)
    return os.path.relpath(address(path), os.path.dirname(page) or ".")


def link_of(url, page):
    """Converts a link of a document into a link to a page of the site."""
    if re.match("[a-z]+:|#", url):
        return url
    file, mark, heading = url.partition("#")
    path = os.path.normpath(os.path.join(os.path.dirname(page), file))
    if path.startswith("..") or not (ROOT / path).exists():
        raise Problem(f"{page}: links to {url}, but there is no such file")
    return link(path, page) + mark + heading


def anchor(text):
    """The anchor of a heading, by GitHub's rules."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def write_page(page, title, *parts):
    frame = string.Template((ROOT / "scripts/site.html").read_text())
    top = os.path.relpath(".", os.path.dirname(page) or ".")
    write(FOLDER / address(page), frame.substitute(title=escape(title), top=top, main="\n".join(parts)))


def listing(lines, begin, end, label):
    """Some lines of a source as HTML. The style sheet adds the line numbers."""
    style = f' class="code" style="counter-reset: line {begin}"'
    return scrolled("pre", label, "".join(lines[begin:end]), style)


def folded(summary, content, state=""):
    return f"<details{state}><summary>{summary}</summary>{content}</details>"


def source_page(path):
    if (ROOT / path).is_dir():
        files = sorted(str(file.relative_to(ROOT)) for file in (ROOT / path).iterdir() if file.is_file())
        body = "".join(f'<p><a href="{link(file, path)}">{file}</a></p>\n' for file in files)
    else:
        body = listing(highlighted(path, link)[0], 0, None, path)
    write_page(path, path, f"<h1>{path}</h1>", body)


# ---- programs ----


def section(program):
    return re.match(r"[\w.]*\w", program.book)[0]


def facts(program):
    """The fields of the header, as pairs of a name and HTML."""
    page, number, text = program.name, section(program), (ROOT / (program.name + ".cu")).read_text()
    needs = re.sub(r"\barch=\w+|libs=", "", program.needs).replace("gpus=2", "2 GPUs").replace("gl", "OpenGL")
    exercise = (
        f'<code>make exercise {page}</code> (<a href="{link("docs/exercises.md", page)}">exercises</a>)'
    )
    index = os.path.relpath("index.html", os.path.dirname(page))
    terms = [(f"{link(TERMS, page)}#{anchor(term)}", escape(term)) for term in re.split(", *", program.terms)]
    command = " ".join(f"<span>{escape(word)}</span>" for word in program.run.split())
    return {
        "Book": f'<a href="{index}#section-{number}">{number}</a>{escape(program.book[len(number):])}',
        "Terms": ", ".join(f'<a href="{target}">{term}</a>' for target, term in terms),
        "Build": f"<code>make {page}</code>",
        "Run": f"<code>{command}</code>",
        "Exercise": exercise if re.search(r"^// Task: (?!none:)\S", text, re.M) else "",
        "Needs": escape(needs),
        "Differs": escape(program.differs),
        "Status": f"{program.expect}, since the program is wrong on purpose" if program.expect else "",
    }


def program_page(program, chapter, neighbours, recorded):
    page, path = program.name, program.name + ".cu"
    text, (lines, marks) = (ROOT / path).read_text().splitlines(), highlighted(path, link)
    head = text.index(" */") + 1
    proof = next((i for i, line in enumerate(text) if re.match("// -+ proof$", line)), len(text))
    parts = [
        f'<p class="above">{chapter}</p>\n<h1>{page.split("/")[1]}: {escape(program.title)}</h1>',
        f"<p>{escape(program.teaches)}</p>",
    ]
    if page in PICTURES:
        file = PICTURES[page]
        image = f'<img src="{link(file, page)}" alt="picture of {page}: {escape(program.title)}">'
        # An animation does not stop by itself, so the reader can hide it.
        parts.append(folded("Animation", image, " open") if file.endswith("webp") else f"<p>{image}</p>")
    told = [f"<dt>{name}</dt><dd>{html}</dd>" for name, html in facts(program).items() if html]
    parts += ["<dl>", *told, f"</dl>\n<h2>Source</h2>\n<p>{path}."]
    for kind, words in ("Kernel", "Kernels"), ("Launch", "Launches"):
        own = [f'<code>{name}</code> in line <a href="#L{n}">{n}</a>' for of, name, n in marks if of == kind]
        parts += [f'<mark class="{kind}">{words}</mark>: {", ".join(own)}.'] if own else []
    parts += [
        "</p>",
        folded(f"Header, lines 1 to {head}", listing(lines, 0, head, "header")),
        listing(lines, head, proof, "lesson"),
    ]
    if proof < len(text):
        title = f"Proof, lines {proof + 1} to {len(text)}: options, input, reference and check"
        parts.append(folded(title, listing(lines, proof, None, "proof")))
    if page in recorded.get("programs", {}):
        how = f'{link("docs/performance.md", page)}#how-the-times-are-taken'
        parts.append(f'<h2>Measured</h2>\n<p><a href="{how}">How the times are taken</a></p>')
        parts += measured(page, RECORDED, recorded)
    parts.append('<nav class="neighbours" aria-label="previous and next program">')
    for rel, word, other in zip(("prev", "next"), ("Previous", "Next"), neighbours):
        if other:
            parts.append(f'<a rel="{rel}" href="{link(other.name + ".cu", page)}">{word}: {other.name}</a>')
    write_page(path, f"{page}: {program.title}", *parts, "</nav>")


# ---- documents ----


def document(text, page):
    """A document as HTML, and its title."""
    from markdown_it import MarkdownIt

    markdown, title, seen = MarkdownIt("commonmark").enable("table"), page, collections.Counter()
    tokens = markdown.parse(re.sub("^<!--.*-->$", "", text, flags=re.M))
    for i, (before, token) in enumerate(zip(tokens, tokens[1:])):
        inner = token.children or []
        words = "".join(part.content for part in inner)
        if before.type == "heading_open":
            title = words if before.tag == "h1" else title
            before.attrSet("id", anchor(words) + (f"-{seen[words]}" if seen[words] else ""))
            seen[words] += 1
        if page == TERMS and (before.type, token.type) == ("tr_open", "td_open"):  # the cell of a term
            token.attrSet("id", anchor(tokens[i + 2].content.replace("\\", "")))
        for part in [token, *inner]:
            for name in {"href", "src"} & set(part.attrs):
                part.attrSet(name, link_of(part.attrs[name], page))
            if part.type in ("html_inline", "html_block"):  # <img src="…">
                part.content = re.sub('(?<=src=")([^"]*)', lambda m: link_of(m[1], page), part.content)
    html, number = markdown.renderer.render(tokens, markdown.options, {}), itertools.count(1)
    html = html.replace("<th></th>", "<td></td>")
    for pattern, element, name, attributes in (
        ("(<table>.*?</table>)", "div", "table", ' class="table text"'),
        ("<pre>(.*?)</pre>", "pre", "text", ""),
        (r'(?:<p>)?(<img src="[^"]*\.svg"[^>]*>)(?:</p>)?', "figure", "picture", ""),
    ):
        name_next = lambda m: scrolled(element, f"{name} {next(number)}", m[1], attributes)  # noqa: E731
        html = re.sub(pattern, name_next, html, flags=re.S)
    return html, title


def index(chapters):
    """The first page: the opening of README.md, the chapters with their programs, and README.md's list of documents."""
    readme = (ROOT / "README.md").read_text()
    opening, title = document(readme.partition("\n| ")[0], "README.md")
    documents, _ = document("## Documents\n" + readme.partition("\n## More\n")[2], "README.md")
    contents = [f'<a href="#chapter-{i}">{chapter}</a>' for i, chapter in enumerate(chapters)]
    parts, sections = [opening, '<nav aria-label="chapters">', *contents, "</nav>"], set()
    for i, (chapter, programs) in enumerate(chapters.items()):
        parts.append(f'<h2 id="chapter-{i}">{chapter}</h2>\n<ul class="programs">')
        for program in programs:
            number, file = section(program), f"docs/gallery/{program.name}.png"
            first = "" if number in sections else f' id="section-{number}"'
            sections.add(number)
            name = f'<a href="{link(program.name + ".cu", "")}">{program.name.split("/")[1]}</a>'
            parts.append(f"<li{first}><span>{number}</span> <p>{name} {escape(program.title)}</p>")
            if file in PICTURES.values():
                parts.append(f'<img src="{link(file, "")}" alt="" width="72" height="72" loading="lazy">')
            parts.append("</li>")
        parts.append("</ul>")
    write_page("index.md", title, *parts, documents)


def main():
    if len(sys.argv) > 2 or sys.argv[1:2] == ["--help"]:
        print(__doc__, file=sys.stderr)
        return 64
    if not find("pygments", "markdown_it"):
        raise Problem("needs pygments and markdown_it for python3: make setup site installs them")
    if len(sys.argv) == 1:
        shutil.rmtree(FOLDER, ignore_errors=True)
    folders = itertools.groupby(PROGRAMS, lambda program: program.name.split("/")[0])
    chapters = {escape(chapter_title(folder)): list(programs) for folder, programs in folders}
    index(chapters)
    recorded = load().get(RECORDED, {})
    for before, program, after in zip([None, *PROGRAMS], PROGRAMS, [*PROGRAMS[1:], None]):
        chapter = next(title for title, programs in chapters.items() if program in programs)
        program_page(program, chapter, (before, after), recorded)
    for path in linked:  # link() appends to this list during the loop
        if path.endswith(".md"):
            html, title = document((ROOT / path).read_text(), path)
            write_page(path, title, html)
        elif address(path) == path:
            (FOLDER / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, FOLDER / path)
        elif path not in SOURCES:
            source_page(path)
    documents = sum(path.endswith(".md") for path in linked)
    write(FOLDER / "site.css", STYLE + "\n" + (ROOT / "scripts/site.css").read_text())
    print(f"{shown(FOLDER / 'index.html')}: {len(PROGRAMS)} programs, {documents} documents")
    return 0


if __name__ == "__main__":
    run(main, "site")
