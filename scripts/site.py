#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes README.md, and all files that it leads to by links and includes, as web pages, which need no server and no network.
They are in SITE, by default BUILD/site, which is emptied first; BUILD is that of the Makefile. site.css is their style."""
import collections
import os
import re
import shutil
import sys
from html import escape, unescape

import modules as wasm
from programs import ROOT, by_hand, read_programs

sys.path.insert(0, str(ROOT / "bench"))
from report import find  # noqa: E402
from results import run, shown, write  # noqa: E402

if not find("markdown_it", "pygments"):
    sys.exit("site: needs pygments and markdown_it for python3: make setup site installs them")
from markdown_it import MarkdownIt  # noqa: E402
from pygments import highlight, lexers  # noqa: E402
from pygments.formatters import HtmlFormatter  # noqa: E402

RUN = os.environ.get("RUN", "").split()  # the programs that run in their pages, if not all
SITE, BUILD = os.environ.get("SITE"), os.environ.get("BUILD", "build")
pages = ["README.md"]  # paths in the repository; grows by the files that pages link to
FRAME = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="{top}/site.css">
<body>
<header><nav aria-label="site">
<a href="{top}/index.html">Programs</a> <a href="{top}/docs/terms.html">Terms</a> <a href="{top}/docs/gallery.html">Gallery</a>
<a href="{top}/docs/performance.html">Performance</a> <a href="{top}/index.html#more">Documents</a>
</nav></header>
<main>{main}</main>
</body>
</html>
"""


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
        if re.match("[a-z]+:|#", match[2]) or not (ROOT / path).exists():
            return match[0]
        if path not in pages:
            pages.append(path)
        return f'{match[1]}="{os.path.relpath(address(path), os.path.dirname(page) or ".")}{mark}{heading}"'

    return re.sub(r'(?<= )(href|src)="([^"]*)"', link, html)


def neighbours(path):
    """Links from a program to the one before it and to the one after it, in reading order, and the command that builds it. Other
    files have none."""
    programs = {f"{program.name}.cu": program for program in read_programs()}
    order = list(programs)
    if path not in order:
        return ""
    at, folder, links = order.index(path), os.path.dirname(path), []
    for word, there in ("previous", order[:at][-1:]), ("next", order[at + 1 :][:1]):
        links += [f'{word}: <a href="{os.path.relpath(name, folder)}">{name}</a>' for name in there]
    build = f"<p>by hand: <code>{escape(by_hand(programs[path]))}</code></p>\n"
    return linked(f"<p>{', '.join(links)}</p>\n{build}", path)


def panel(path, modules):
    """Where site.js runs a program, or why it does not."""
    programs = [program for program in read_programs() if f"{program.name}.cu" == path]
    if modules and programs and (reason := wasm.why_not(programs[0])):
        return f"<p>It does not run in this page: it needs {escape(reason)}.</p>\n"
    if not programs or programs[0].name not in modules:
        return ""
    preset = programs[0].check.split(" | ")[0].removesuffix("(race)") + " --runs 1" * bool(programs[0].bench)
    name = programs[0].name.split("/")[1]
    return f'<div id="run" data-name="{name}" data-preset="{escape(preset.strip())}"></div><script src="../site.js" defer></script>\n'


def beside(path):
    """Below the source of a program: the drawings whose text names it, and its question, with the answer folded away."""
    _, *drawings = re.split("^## ", (ROOT / "docs/drawings.md").read_text(), flags=re.M)
    shown = "".join(f"## {text}" for text in drawings if f"(../{path})" in text)
    html = MarkdownIt("commonmark").render(shown.replace('src="', 'src="../docs/'))
    row = rf"\| \[.*?\]\(\.\./{path}\) (★+) \| (.*?) \| (?:`(.*?)`)? ?\| (<details>.*</details>) \|\n"
    if found := re.search(row, (ROOT / "docs/predict.md").read_text()):
        stars, question, options, answer = found.groups("")
        run = f"{question} `./bin/{path.removesuffix('.cu')}{options and ' '}{options}`"
        html += MarkdownIt("commonmark").render(f"## Predict, then run {stars}\n\n{run}\n\n")
        html += MarkdownIt("commonmark").renderInline(answer.replace("\\|", "|"))
    return linked(html, path)


def source(path, modules=()):
    """A source, or the list of a folder, as HTML. The style sheet adds the line numbers."""

    def included(match):
        there = (ROOT / path).parent.joinpath(match[1]).exists()
        return linked(f'<a href="{match[1]}">', path) + match[0] + "</a>" if there else match[0]

    file = ROOT / path
    text = file.read_text() if file.is_file() else "".join(sorted(f"{own.name}\n" for own in file.iterdir()))
    lexer = lexers.find_lexer_class_for_filename(re.sub("[.]h$", ".cu", path)) or lexers.TextLexer
    html = highlight(text, lexer(stripnl=False, ensurenl=False), HtmlFormatter(linespans="L"))
    # Pygments 2.20 does not escape quotation marks
    html = re.sub('(?<=<span class="cpf">)(?:&quot;|")([^&<"]+)(?:&quot;|")', included, html)
    return f"<h1>{path}</h1>\n{neighbours(path)}{panel(path, modules)}{html}{beside(path)}"


def document(path):
    """A document as HTML. Headings have the anchors that GitHub gives them."""
    html = MarkdownIt("commonmark").enable("table").render((ROOT / path).read_text())
    seen = collections.Counter()

    def heading(match):
        words = unescape(re.sub("<[^>]*>", "", match[2])).lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        seen[name] += 1
        return f'<{match[1]} id="{name}{f"-{seen[name] - 1}" * (seen[name] > 1)}">{match[2]}<'

    html = re.sub(r"<(h\d)>(.*?)<(?=/\1>)", heading, html)
    return linked(html.replace("<th></th>", "<td></td>"), path)


def main():
    folder = ROOT / (SITE or f"{BUILD}/site")
    if not SITE:
        shutil.rmtree(folder, ignore_errors=True)
    chosen = [p for p in read_programs() if p.name in RUN or not (RUN or wasm.why_not(p))]
    modules = wasm.compile_all(chosen, ROOT / BUILD / "wasm") if chosen and not wasm.missing else {}
    for path in pages:  # linked() appends to this list during the loop
        page, top = folder / address(path), os.path.relpath(".", os.path.dirname(path) or ".")
        if address(path) == path:
            page.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, page)
            continue
        html = document(path) if path.endswith(".md") else source(path, modules)
        title = re.sub("<[^>]*>", "", re.search("<h1.*?</h1>", html)[0])
        # With tabindex the arrow keys scroll what is wider than the screen; then it needs a name.
        wide = r'<div class="table" tabindex="0" role="group" aria-label="table or code">\g<0></div>'
        html = re.sub("<table>.*?</table>|<pre>.*?</pre>", wide, html, flags=re.S)
        write(page, FRAME.format(title=title, top=top, main=html))
    colours = HtmlFormatter().get_style_defs("pre")
    write(folder / "site.css", f"{colours}\n{(ROOT / 'scripts/site.css').read_text()}")
    for name, file in modules.items():
        write(folder / f"{name}.wasm.js", wasm.packed(file))
    if modules:
        shutil.copyfile(ROOT / "scripts/site.js", folder / "site.js")
    without = (
        f"; programs run in no page without {', '.join(wasm.missing)}"
        if wasm.missing
        else f", {len(modules)} programs run"
    )
    print(f"{shown(folder / 'index.html')}: {len(pages)} files{without}")


if __name__ == "__main__":
    run("site", main, __doc__)
