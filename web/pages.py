#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the front page (front.md), README.md, and all files that they lead to by links and includes, as web pages, which need no server
and no network. They are in SITE, by default BUILD/site, which is emptied first; BUILD is that of the Makefile. site.css is their style.
The page of a chapter is its slides. A program runs in its page as WebAssembly (site.js): cucc compiles it with em++, in the folder
`wasm` of BUILD, again when a file of common/, of cucc or of its chapter is newer. It is changed in the editor of playground/, whose
packages `make setup site` installs."""
import base64
import collections
import concurrent.futures
import fcntl
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse
from html import escape, unescape

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench")]
import docs  # noqa: E402
import exercise as exercises  # noqa: E402
from programs import BUILD, by_hand, libraries, read_libraries, read_programs  # noqa: E402
from report import find  # noqa: E402
from results import run, shown, write  # noqa: E402
from tokens import find_functions  # noqa: E402

if not find("markdown_it", "pygments"):
    sys.exit("site: needs pygments and markdown_it for python3: make setup site installs them")
from markdown_it import MarkdownIt  # noqa: E402
from pygments import highlight, lexers  # noqa: E402
from pygments.formatters import HtmlFormatter  # noqa: E402

RUN = os.environ.get("RUN", "").split()  # the programs that run in their pages, if not all
SITE = os.environ.get("SITE")
PROGRAMS = {f"{program.name}.cu": program for program in read_programs()}
# Documents whose tables are cards on a phone
CARDS = [f"docs/{name}.md" for name in "errata predict programs teaching terms".split()]
ABSENT = {
    r"this_grid|cudaLaunchCooperativeKernel": "a host thread for each block, since its blocks wait for each other",
    r"\n    continue_in_child": "a process that may be ended when it hangs",
    r"= fork\(": "a process of its own",
    r"\(unsigned long long\)&": "pointers of 64 bits",
}
PLAYGROUND = ROOT / "web/playground"
# What a link brings stays text, even where a script that it contains would get into the page.
POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    """content="default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; object-src 'none'">\n"""
)
LACKING = [tool for tool in ("em++", "emar", "node") if not shutil.which(tool)]
editor = {}  # where the playground is made: the "bytes" of its compiler, and "more" that some programs need
failed = {}  # the errors of programs that do not compile for their pages
pages = ["web/front.md", "README.md"]  # paths in the repository; grows by the files that pages link to
FRAME = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
{head}<title>{title}</title>
<link rel="stylesheet" href="{top}/site.css">
<script src="{top}/search.js" defer></script>
<body>
<header><nav aria-label="site">
<a href="{top}/index.html">Start</a> <a href="{top}/readme.html#chapters">Programs</a> <a href="{top}/docs/terms.html">Terms</a>
<a href="{top}/docs/gallery.html">Gallery</a> <a href="{top}/docs/performance.html">Performance</a>
<a href="{top}/readme.html#more">Documents</a>{more}
</nav></header>
<main class="{kind}">{main}</main>
</body>
</html>
"""


# With tabindex the arrow keys scroll what is wider than the screen; then it needs a name.
WIDE = '<div class="table" tabindex="0" role="group" aria-label="{}">{}</div>'


def markdown(text):
    return MarkdownIt("commonmark").enable("table").render(text)


def address(path):
    """The path within the site of a file of the repository."""
    if path.endswith((".png", ".webp", ".svg", ".ipynb")):
        return path
    return {"web/front.md": "index.html", "README.md": "readme.html"}.get(path) or path.removesuffix(
        ".md"
    ) + ".html"


def linked(html, page):
    """Converts the links of a page into links within the site, to which the files are added."""

    def link(match):
        file, mark, heading = match[2].partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), file))
        if re.match("[a-z]+:|#", match[2]) or not (ROOT / path).exists():
            return match[0]
        if path not in pages:
            pages.append(path)
        return f'{match[1]}="{os.path.relpath(address(path), os.path.dirname(address(page)) or ".")}{mark}{heading}"'

    return re.sub(r'(?<= )(href|src)="([^"]*)"', link, html)


def neighbours(path):
    """Links from a program to the one before it and to the one after it, in reading order, and the command that builds it. Other
    files have none."""
    if path not in PROGRAMS:
        return ""
    order = list(PROGRAMS)
    at, folder, links = order.index(path), os.path.dirname(path), []
    for word, there in ("previous", order[:at][-1:]), ("next", order[at + 1 :][:1]):
        links += [f'{word}: <a href="{os.path.relpath(name, folder)}">{name}</a>' for name in there]
    links.append('<a href=".">slides of the chapter</a>')
    build = f"<p>by hand: <code>{escape(by_hand(PROGRAMS[path]))}</code></p>\n"
    return linked(f"<p>{', '.join(links)}</p>\n{build}", path)


def preset(program):
    """The options with which a page begins: those of Web:, or the program's defaults."""
    return drawn(program, (program.web + " --runs 1" * bool(program.bench)).strip())


def drawn(program, options):
    """The options with a file that the page shows, if the program draws. A page has no PNG, and no ffmpeg."""
    name = "frame-%04d" if "ANIMATION" in (ROOT / f"{program.name}.cu").read_text() else "picture"
    return f"{options} --output={name}.ppm".strip() if program.picture else options


def panel(path, modules):
    """Where site.js runs a program, with its picture, or why it does not."""
    program = PROGRAMS[path]
    name, html = program.name.split("/")[1], ""
    for image in (file for drawer, file, _ in docs.pictures() if drawer == program.name):
        html = linked(f'<img src="../{image}" alt="picture of {name}">\n', path)
    if (modules or editor) and (reason := why_not(program)):
        return f"{html}<p>It does not run in this page: it needs {escape(reason)}.</p>\n"
    if program.name in failed:
        html += f"<p>It does not run in this page: it does not compile: <code>{escape(failed[program.name])}</code></p>\n"
    given = {"name": name, "program": program.name, "options": preset(program)}
    if program.name in modules:
        given |= {"module": "", "help": modules[program.name].with_suffix(".help").read_text()}
    return runner("..", given, html) if program.name in modules or editor else html


def runner(top, given, first=""):
    """The panel that site.js fills, with its settings and what stands in it before."""
    given |= {"editor": f"{top}/playground", **editor} if editor else {}
    data = "".join(f' data-{key}="{escape(str(value))}"' for key, value in given.items())
    return f'<div id="run"{data}>{first}</div><script src="{top}/site.js" defer></script>\n'


def drawings(path):
    """The drawings whose text names a program, in Markdown."""
    parts = re.split("^## ", (ROOT / "docs/drawings.md").read_text(), flags=re.M)[1:]
    return [f"## {text}".replace('src="', 'src="../docs/') for text in parts if f"(../{path})" in text]


def measured(path):
    """Of a ladder: the plot and the table that bench/results has of it."""
    section = rf"^### (.*)\n\n\[.*?\]\(\.\./\.\./{path}\); ([^;]*).*?(; the program has changed since)?\.\n([\s\S]*?)(?=^##)"
    if not (found := re.search(section, (ROOT / "bench/results/README.md").read_text(), re.M)):
        return ""
    topic, device, changed, table = found.groups("")
    anchor = re.sub(r"[^\w ]", "", topic).replace(" ", "-")
    text = f"Measured on {device}{changed} ([other sizes](../bench/results/README.md#{anchor})):\n{table}"
    zoomed = re.sub(r"(!\[.*?\])\((.*?)\)", r"[\1(../bench/results/\2)](../bench/results/\2)", text)
    return linked(markdown(zoomed), path)


def exercise(path):
    """The command that writes a program's exercise, with the three hints folded away."""
    if (given := exercises.Exercise(path.removesuffix(".cu"))).why_none():
        return ""
    here = editor and not why_not(given.program)
    web = f' or <a href="../my/{given.name}.html">in the browser</a>' * bool(here)
    return f"<h2>Exercise {given.stars() * '★'}</h2>\n<p><code>make exercise {given.name}</code>{web}</p>\n{hints(given)}"


def hints(given):
    steps = zip(("terms", "words of the solution", "outline"), exercises.HINTS.values())
    folded = '<details><summary>hint {}: {}</summary><pre class="hint">{}</pre></details>\n'.format
    return "".join(folded(i, name, escape("\n".join(step(given)))) for i, (name, step) in enumerate(steps, 1))


def printed(path):
    """What a program printed and drew when `make run` ran it the last time, or nothing."""
    base = f"{BUILD}/run/{path.removesuffix('.cu')}"
    text = (ROOT / f"{base}.txt").read_text(errors="replace") if (ROOT / f"{base}.txt").exists() else ""
    files = [f"../{base}{end}" for end in (".png", ".webp", ".svg") if (ROOT / f"{base}{end}").exists()]
    image = '<p><a href="{0}"><img src="{0}" alt="its picture" loading="lazy"></a></p>\n'.format
    return f"<h2>What it prints</h2>\n<pre>{escape(text)}</pre>\n{''.join(map(image, files))}" if text else ""


def launch(path):
    """The drawings of a program, but for the first, which stands above its lesson, and the picture of a launch"""
    html, file = markdown("".join(drawings(path)[1:])), f"trace/{path.removesuffix('.cu')}.svg"
    for trace in [f"{folder}/{file}" for folder in (BUILD, "docs") if (ROOT / folder / file).exists()][:1]:
        image = f'<img src="../{trace}" class="wide" alt="blocks, barriers and memory accesses of a launch">'
        wide = WIDE.format("launch", f'<a href="../{trace}">{image}</a>')
        html += f"<h2>A launch</h2>\n{wide}\n"
    return linked(html, path)


def question(path):
    """A program's question of predict.md, and its answer, folded away. Its link fills in the options of the panel."""
    row = rf"\| \[.*?\]\(\.\./{path}\) (★+) \| (.*?) \| (?:`(.*?)`)? ?\| (<details>.*</details>) \|\n"
    if found := re.search(row, (ROOT / "docs/predict.md").read_text()):
        stars, question, options, answer = found.groups("")
        run = f"{question} `./bin/{path.removesuffix('.cu')}{options and ' '}{options}`"
        there = f"[run it](#{urllib.parse.quote(options or '--')})"
        answer = MarkdownIt("commonmark").renderInline(answer.replace("\\|", "|"))
        return markdown(f"## Predict, then {there} {stars}\n\n{run}\n\n") + answer
    return ""


def coloured(text, path, **options):
    lexer = lexers.find_lexer_class_for_filename(re.sub("[.]h$", ".cu", path)) or lexers.TextLexer
    return highlight(text, lexer(stripnl=False, ensurenl=False), HtmlFormatter(**options))


def slides(folder):
    """The slides of a chapter: what each program teaches and the kernels of its lesson, and each drawing."""
    number, own, shown = re.sub("^chapter0*|^appendix_", "", folder).upper(), read_programs([folder]), set()
    title = re.search(rf"^\| {number}\. (.*?) \|", (ROOT / "README.md").read_text(), re.M)
    first = "".join(f'<li><a href="{p.name}.cu">{p.name}</a>: {escape(p.title)}</li>' for p in own)
    parts = [f"<h1>{number}. {title[1] if title else folder}</h1>\n<ul>{first}</ul>"]
    for p in own:
        lesson = (ROOT / f"{p.name}.cu").read_text().partition("- check\n")[0]
        kernels = [f.text for f in find_functions(lesson) if "__global__" in f.declared and f.close > f.open]
        code = "".join(coloured(f"{text}\n", ".cu") for text in kernels[: None if not p.bench else 0])
        lines = f"<h2>{escape(p.title)}</h2>", f"<p>{escape(p.teaches)}</p>", f"<p>{escape(p.terms)}</p>"
        notes = question(f"{p.name}.cu").replace('"#', f'"{p.name}.cu#').replace('"../', '"')
        notes = f"<div>{notes}</div>" * bool(notes)
        parts.append("\n".join([*lines, code, notes]))
        new = [text for text in drawings(f"{p.name}.cu") if text not in shown]
        parts += [markdown(text).replace("../", "") for text in new]
        shown.update(new)
    lines = [part.partition("<pre>")[2].count("\n") for part in parts]
    slide = '<section style="--lines: {}">{}</section>\n'.format
    return linked("".join(map(slide, lines, parts)), folder)


def source(path, modules=()):
    """A source, or the list of a folder, as HTML. The style sheet adds the line numbers."""

    def included(match):
        there = (ROOT / path).parent.joinpath(match[1]).exists()
        return linked(f'<a href="{match[1]}">', path) + match[0] + "</a>" if there else match[0]

    if any(name.startswith(f"{path}/") for name in PROGRAMS):
        return slides(path)
    file = ROOT / path
    text = file.read_text() if file.is_file() else "".join(sorted(f"{own.name}\n" for own in file.iterdir()))
    html = coloured(text, path, linespans="L")
    # Pygments 2.20 does not escape quotation marks
    html = re.sub('(?<=<span class="cpf">)(?:&quot;|")([^&<"]+)(?:&quot;|")', included, html)
    title = "<h1>{}</h1>\n".format(re.sub("(?<=[/_])", "<wbr>", path))  # where a line may end on a phone
    if not (program := PROGRAMS.get(path)):
        return title + html
    ruler = text.partition("- check\n")[0].count("\n") + 1
    lesson, line, check = html.partition(f'<span id="L-{ruler}">')
    folded = f'<details style="--above: {ruler - 1}"><summary>check</summary><div class="highlight"><pre>'
    html = (
        f"{lesson}</pre></div>\n{exercise(path)}{folded}{line}{check}</details>"
        if check
        else html + exercise(path)
    )
    parts = (
        f"<p>{escape(program.teaches)}</p>\n",
        measured(path),
        panel(path, modules),
        linked(markdown("".join(drawings(path)[:1])), path),
        linked(printed(path), path),
        linked(question(path), path),
        "<h2>Lesson</h2>\n",
    )
    return f"{title}{''.join(parts)}{html}{launch(path)}{neighbours(path)}"


def document(path):
    """A document as HTML. Headings have the anchors that GitHub gives them."""
    html, seen = markdown((ROOT / path).read_text()), collections.Counter()

    def anchor(match):
        name = re.sub(r"[^\w\- ]", "", text_of(match[2]).lower()).replace(" ", "-")
        seen[name] += 1
        return f'<{match[1]} id="{name}{f"-{seen[name] - 1}" * (seen[name] > 1)}">{match[3]}'

    html = re.sub(r"<(h\d)>(?=(.*?)</\1>)()", anchor, html)
    if path == "docs/terms.md":
        html = re.sub(r"<(tr)>(?=\n<td>(.*?)</td>)()", anchor, html)
        table, first = html.partition("</table>")[0], {}
        for name, letter in re.findall(r'<tr id="(.*?)">\n<td>([A-Za-z])', table):
            first.setdefault(letter.upper(), f'<a href="#{name}">{letter.upper()}</a>')
        html = html.replace("<table>", f'<p class="letters">{" ".join(first.values())}</p>\n<table>', 1)
    if path == "docs/predict.md":
        there = lambda row: f'{row[1]}<a href="{row[2]}#{urllib.parse.quote(unescape(row[4]))}">{row[3]}</a>'
        html = re.sub(r'(<td><a href="(\S+)">.*</td>\n<td>.*</td>\n<td>)(<code>(--.*?)</code>)', there, html)
    html = re.sub("(?<=>)(chapter..|appendix_a)/", r"\1/<wbr>", html)  # where a name may end a line
    html = re.sub("<thead>\n<tr>\n(<th[^>]*></th>\n)*</tr>\n</thead>\n", "", html)
    return linked(html.replace("<th></th>", "<td></td>"), path)


def text_of(html):
    return unescape(re.sub("<[^>]*>", "", html))


def rows():
    """What the search box finds: name, title and address of each program, each document, and each term and function in docs/terms.md;
    of a document also its headings, of a program its sections, what it teaches, and its sections in the courses.
    """
    for path in pages:
        if path.endswith(".md"):
            text = (ROOT / path).read_text()
            headings = re.findall("^## (.*)", text, re.M)
            yield re.search("^# (.*)", text, re.M)[1], path, address(path), " ".join(headings)
    for program in PROGRAMS.values():
        more, courses = f"{program.book} {program.teaches}", re.sub("[()]", "", program.courses)
        yield program.name, program.title, address(f"{program.name}.cu"), more, courses
    for name, cell in re.findall(r'<tr id="(.*?)">\n<td>(.*?)</td>', document("docs/terms.md")):
        for term in text_of(cell).split(", "):
            yield term, "", f"docs/terms.html#{name}"
    if editor:
        yield "playground", "CUDA that you change, compile and run in the page", "playground.html"
        yield "exercises", "all exercises, and which of them you have done in the browser", "exercises.html"


# ---- the programs as WebAssembly ----


def why_not(program):
    """What a program needs that a page does not have; "" if nothing."""
    text = (ROOT / f"{program.name}.cu").read_text()
    # The other libraries for the CPU are parts of cucc.
    installed = {row.name: row.adds for row in read_libraries() if row.only or " " not in row.debian}
    short = lambda text: re.sub(r"^CUDA with | \(.*", "", text)
    reasons = [short(installed[name]) for name in libraries(program) if name in installed]
    return ", ".join([*reasons, *(reason for code, reason in ABSENT.items() if re.search(code, text))])


def newest(*folders):
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if "build" not in path.parts]
    return max(path.stat().st_mtime for path in files)


def compile_all(programs, folder):
    """Compiles these programs. Returns the file of each one by its name. The errors of the others go into `failed`."""
    base = newest("common", *(f"cucc/{part}" for part in ("runtime", "include", "translate")))
    library = folder / "libcommon.a"

    def cucc(output, *inputs):
        output.parent.mkdir(parents=True, exist_ok=True)
        command = ["cucc/cucc", "-ccbin", "em++", "-w", "-o", output, *inputs]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace")
        said = done.stderr.splitlines() or [f"status {done.returncode}"]
        wrong = [line for line in said if re.search("error|undefined", line)] or said
        return wrong[0] if done.returncode else ""

    def compiled(program):
        file = folder / f"{program.name}.js"
        fresh = file.exists() and file.stat().st_mtime > max(base, newest(program.name.split("/")[0]))
        error = "" if fresh else cucc(file, f"{program.name}.cu", library)
        told = file.with_suffix(".help")
        if not error and not (told.exists() and fresh):
            told.write_text(subprocess.run(["node", file, "--help"], capture_output=True, text=True).stdout)
        return program.name, file, error

    if not library.exists() or library.stat().st_mtime < base:
        objects = [folder / f"common/{path.stem}.o" for path in (ROOT / "common/lib").glob("*.c")]
        for file in objects:
            cucc(file, "-c", f"common/lib/{file.stem}.c")
        library.unlink(missing_ok=True)
        subprocess.run(["emar", "rcs", library, *objects], check=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(compiled, programs))
    failed.update((name, error) for name, _, error in done if error)
    return {name: file for name, file, error in done if not error}


def packed(file):
    """The script of a page's module: it passes the program's JavaScript and its WebAssembly, both compressed, to site.js."""
    script = file.read_text()
    wasm = re.search('octet-stream;base64,([^"]{1000,})"', script)[1]
    parts = script.replace(wasm, "").encode(), base64.b64decode(wasm)
    packed = [base64.b64encode(gzip.compress(part, mtime=0)).decode() for part in parts]
    return "receive({!r}, {!r})\n".format(*packed)


# ---- the playground ----


def make_playground(folder):
    """Makes the editor and the compiler. Returns what is missing for them."""
    made, modules = folder / "playground", PLAYGROUND / "node_modules"
    if not shutil.which("node") or not modules.exists():
        return "node and the packages of web/playground: make setup site"
    # Two that make the site at once share this folder, so one waits for the other.
    with (ROOT / BUILD / "playground.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["node", PLAYGROUND / "build.mjs", made, ROOT / BUILD / "playground"], check=True)
    sizes = {file.name: file.stat().st_size for file in made.rglob("*.packed")}
    # Fetched for the search for races, and for kernels whose threads wait
    editor["more"] = sum(size for name, size in sizes.items() if re.match("check|binaryen", name))
    editor["bytes"] = sum(sizes.values()) - editor["more"]
    settings = "--bundle", "--minify", "--format=iife", "--global-name=playground", "--log-level=warning"
    tool = modules / "esbuild-wasm/bin/esbuild"
    subprocess.run([tool, PLAYGROUND / "editor.js", *settings, f"--outfile={made}/editor.js"], check=True)
    return ""


def playground():
    """The page for a program of the reader's own."""
    about = "Run compiles the program in this page and runs it on your processor, with nothing installed and no server."
    given = {"program": "first", "options": "", "open": ""}
    text = (PLAYGROUND / "first.cu").read_text().partition("\n")[2]  # without the line of the licence
    return f"<h1>Playground</h1>\n<p>{about}</p>\n{runner('.', given)}{coloured(text, 'first.cu', linespans='L')}"


def exercise_page(given):
    """The page in which a reader writes an exercise."""
    about = "Write what the comments <code>Task:</code> ask for. <em>Run</em> compiles it, and its check says whether it is right."
    about += f" The browser keeps it; <em>Download</em> gives the file that <code>make grade</code> takes. {hints(given)}"
    options = drawn(given.program, given.options or given.program.web)
    check = "" if "(race)" in given.program.check.split(" | ")[0] else "check"  # whether races are looked for
    settings = {"program": f"my/{given.name}", "options": options, "open": "", "exercise": check}
    text = coloured(given.written(), "exercise.cu", linespans="L")
    head = f"<h1>Exercise {given.name}</h1>\n<p>{escape(given.program.title)}</p><p>{about}</p>\n"
    return head + runner("../..", settings) + text


def list_of_exercises(every):
    here = '<li data-exercise="my/{0}"><a href="my/{0}.html">{0}</a> {1}, {2}</li>'.format
    not_here = '<li><a href="{0}.cu.html">{0}</a> {1}, {2}: not in a page, it needs {3}</li>'.format
    items = ""
    for one in every:
        reason = escape(why_not(one.program))
        items += (not_here if reason else here)(
            one.name, one.stars() * "★", escape(one.program.title), reason
        )
    script = '<script src="playground/progress.js" defer></script>'
    return f'<h1>Exercises</h1>\n<p id="count"></p><ol class="exercises">{items}</ol>{script}'


def main():
    folder = ROOT / (SITE or f"{BUILD}/site")
    if not SITE:
        shutil.rmtree(folder, ignore_errors=True)
    chosen = [p for p in PROGRAMS.values() if p.name in RUN or not (RUN or why_not(p))]
    modules = compile_all(chosen, ROOT / BUILD / "wasm") if chosen and not LACKING else {}
    absent = make_playground(folder)
    absent = f"; no playground without {absent}" * bool(absent)

    def put(page, html, kind, head=""):
        title = escape(text_of(re.search("<h1.*?</h1>", html)[0]), quote=False)
        wide = lambda match: WIDE.format("table or code", match[0])
        html = re.sub("(?s)<table>.*?</table>|<pre>.*?</pre>", wide, html)
        top = os.path.relpath(folder, page.parent)
        more = (
            f' <a href="{top}/playground.html">Playground</a> <a href="{top}/exercises.html">Exercises</a>'
            * bool(editor)
        )
        write(page, FRAME.format(title=title, top=top, kind=kind, main=html, more=more, head=head))

    if editor:
        put(folder / "playground.html", playground(), "playground", POLICY)
        every = exercises.exercises()
        for one in every:
            if not why_not(one.program):
                put(folder / f"my/{one.name}.html", exercise_page(one), "exercise", POLICY)
        put(folder / "exercises.html", list_of_exercises(every), "exercises", POLICY)
        shutil.copyfile(PLAYGROUND / "offline.js", folder / "offline.js")
        shutil.copyfile(PLAYGROUND / "progress.js", folder / "playground/progress.js")
    for path in pages:  # linked() appends to this list during the loop
        page = folder / address(path)
        if address(path) == path:
            page.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, page)
            continue
        html = document(path) if path.endswith(".md") else source(path, modules)
        put(page, html, path.removesuffix(".md").replace("/", "-") + " cards" * (path in CARDS))
    colours = HtmlFormatter().get_style_defs("pre")
    dark = HtmlFormatter(style="github-dark").get_style_defs("pre")
    colours += f"\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}"
    write(folder / "site.css", f"{colours}\n{(ROOT / 'web/site.css').read_text()}")
    found = json.dumps(list(rows()), ensure_ascii=False, separators=(",", ":"))
    write(folder / "search.js", f"{(ROOT / 'web/search.js').read_text()}\nsearch({found});\n")
    for name, file in modules.items():
        write(folder / f"{name}.wasm.js", packed(file))
    if modules or editor:
        shutil.copyfile(ROOT / "web/site.js", folder / "site.js")
    for name, error in failed.items():
        print(f"{name} does not run in its page: {error}", file=sys.stderr)
    lacking = f"; programs run in no page without {', '.join(LACKING)}" if LACKING else ""
    print(f"{shown(folder / 'index.html')}: {len(pages)} files, {len(modules)} programs run{lacking}{absent}")


if __name__ == "__main__":
    run("site", main, __doc__)
