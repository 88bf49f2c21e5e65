#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes README.md, and all files that it leads to by links and includes, as web pages, which need no server and no network.
  site.py [FOLDER]   default: build/site (of BUILD, as in the Makefile), which is emptied first. In another folder files of other names stay
site.html is the frame of a page, site.css the style."""
import collections
import itertools
import os
import pathlib
import re
import shutil
import string
import sys
from html import escape, unescape

from programs import ROOT

sys.path.insert(0, str(ROOT / "bench"))
from report import STYLE, find, scrolled  # noqa: E402
from results import Problem, run, shown, write  # noqa: E402

FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / os.environ.get("BUILD", "build") / "site")
pages = ["README.md"]  # paths in the repository; grows by the files that pages link to


def address(path):
    """The path within the site of a file of the repository."""
    if path.endswith((".png", ".webp", ".svg", ".ipynb")):
        return path
    return "index.html" if path == "README.md" else path.removesuffix(".md") + ".html"


def linked(html, page):
    """Converts the links of a page into links within the site, to which the files are added."""

    def link(match):
        file, mark, heading = match[2].partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), file))
        if re.match("[a-z]+:|#", match[2]):
            return match[0]
        if path.startswith("..") or not (ROOT / path).exists():
            raise Problem(f"{page}: links to {match[2]}, but there is no such file")
        if path not in pages:
            pages.append(path)
        return f'{match[1]}="{os.path.relpath(address(path), os.path.dirname(page) or ".")}{mark}{heading}"'

    return re.sub(r'(?<= )(href|src)="([^"]*)"', link, html)


def source(path):
    """A source, or the list of a folder, as HTML. The style sheet adds the line numbers."""
    from pygments import highlight, lexers
    from pygments.formatters import HtmlFormatter

    def included(match):
        there = (ROOT / path).parent.joinpath(match[1]).exists()
        return linked(f'<a href="{match[1]}">', path) + match[0] + "</a>" if there else match[0]

    file = ROOT / path
    text = file.read_text() if file.is_file() else "".join(sorted(f"{own.name}\n" for own in file.iterdir()))
    cuda = path.endswith((".cu", ".h"))
    lexer = lexers.CudaLexer if cuda else lexers.find_lexer_class_for_filename(path) or lexers.TextLexer
    html = highlight(text, lexer(stripnl=False, ensurenl=False), HtmlFormatter(linespans="L"))
    # Pygments 2.20 does not escape quotation marks
    html = re.sub('(?<=<span class="cpf">)(?:&quot;|")([^&<"]+)(?:&quot;|")', included, html)
    return f"<h1>{path}</h1>\n" + scrolled("div", path, html, ' class="table"')


def document(path):
    """A document as HTML. Headings have the anchors that GitHub gives them; tables and code can be scrolled."""
    from markdown_it import MarkdownIt

    text, seen, number = (ROOT / path).read_text(), collections.Counter(), itertools.count(1)
    html = MarkdownIt("commonmark").enable("table").render(re.sub("^<!--.*-->$", "", text, flags=re.M))

    def heading(match):
        words = unescape(re.sub("<[^>]*>", "", match[2])).lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        seen[name] += 1
        return f'<{match[1]} id="{name}{f"-{seen[name] - 1}" * (seen[name] > 1)}">{match[2]}<'

    def wide(match):
        return scrolled("div", f"part {next(number)}", match[0], ' class="table"')

    html = re.sub(r"<(h\d)>(.*?)<(?=/\1>)", heading, html).replace("<th></th>", "<td></td>")
    return re.sub("<table>.*?</table>|<pre>.*?</pre>", wide, linked(html, path), flags=re.S)


def main():
    if len(sys.argv) > 2 or sys.argv[1:2] == ["--help"]:
        print(__doc__, file=sys.stderr)
        return 64
    if not find("pygments", "markdown_it"):
        raise Problem("needs pygments and markdown_it for python3: make setup site installs them")
    if len(sys.argv) == 1:
        shutil.rmtree(FOLDER, ignore_errors=True)
    frame = string.Template((ROOT / "scripts/site.html").read_text())
    for path in pages:  # linked() appends to this list during the loop
        page = FOLDER / address(path)
        if address(path) == path:
            page.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, page)
            continue
        html = document(path) if path.endswith(".md") else source(path)
        title = unescape(re.sub("<[^>]*>", "", re.search("<h1.*?>(.*?)</h1>", html)[1]))
        top = os.path.relpath(".", os.path.dirname(path) or ".")
        write(page, frame.substitute(title=escape(title), top=top, main=html))
    write(FOLDER / "site.css", STYLE + "\n" + (ROOT / "scripts/site.css").read_text())
    print(f"{shown(FOLDER / 'index.html')}: {len(pages)} files")
    return 0


if __name__ == "__main__":
    run(main, "site")
