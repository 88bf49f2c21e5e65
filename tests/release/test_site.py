# SPDX-License-Identifier: MIT
"""`make site`: the pages of the programs and of the documents, made in a copy of the tree without anything built."""
import html
import json
import os
import pathlib
import re
import shutil
import sys

import pytest

import helpers
from browser import needs_browser, violations
from trees import ROOT, copy_sources, make, run

sys.path.insert(0, str(ROOT / "scripts"))

from highlight import highlighted  # noqa: E402

TEXT = "a <b> & \"c\" d|e __device__ </title></pre><script>alert('f')</script>"  # in place of a title
HOSTILE = f"""// SPDX-License-Identifier: MIT
/*
 * hostile: {TEXT}
 *
 * Teaches: {TEXT}
 * Terms:   __device__, launch
 * Book:    3.4 (archive)
 * Run:     ./bin/chapter03/hostile --text '<i>&amp;'
 * Differs: {TEXT}
 */
#include "../common/book.h" // {TEXT}
#include "../common/absent.h"

// __global__ void in_a_comment(int n) {{ in_a_comment<<<1, 1>>>(n); }}
__global__ void declared(int n);
template <class T> __global__ void __launch_bounds__(min_of(256, 128), 2) bounded(T *p, int (*f)(int)) {{
}}
template <> __global__ void bounded<float>(float *p, int (*f)(int)) {{
}}
static __global__
void two_lines(const char *text, int n) {{
}}

int main() {{
    puts("__global__ void in_a_string() {{ in_a_string<<<1, 1>>>(); }} &lt;");
    bounded<float><<<dim3(1, 2), (1 << 5) >> 1, 0, stream>>>(p, (f));
    table.rows[i]<<<1, 1>>>(two_lines("a)", '"'));
    cudaLaunchKernel((void *)two_lines, 1, 1, 0, 0, 0);
    return 0 < 1 > 0;
}}

// ---------------------------------------------------------------------------------------- proof

// {TEXT}
"""


@pytest.fixture
def site(once):
    """The folder of a site with one program more. Nothing may be written here, since other tests use it."""

    def generate(folder):
        tree = copy_sources(folder / "tree")
        for tests in "tests", "cucc/tests":
            shutil.copytree(ROOT / tests, tree / tests, dirs_exist_ok=True)
        (tree / "chapter03/hostile.cu").write_text(HOSTILE)
        run(tree, "scripts/docs.py")
        assert "programs" in make(tree, "site", f"SITE={folder}/site")
        return folder / "site"

    return once("site", generate)


def text_of(page):
    return html.unescape(re.sub("<[^>]*>", "", page))


def source_in(page):
    return "".join(text_of(part) for part in re.findall('<pre class="code"[^>]*>(.*?)</pre>', page, re.S))


def test_each_program_has_a_page_with_its_source(site):
    programs = [*(p.name for p in helpers.programs()), "chapter03/hostile"]
    assert len(programs) > 80
    for program in programs:
        page = (site / f"{program}.html").read_text()
        assert source_in(page) == (site.parent / "tree" / f"{program}.cu").read_text(), program
        assert "<details><summary>Proof" in page or program == "chapter03/hello_world", program
    assert source_in((site / "common/book.h.html").read_text()) == (ROOT / "common/book.h").read_text()


def test_previous_and_next_are_the_order_of_the_programs(site):
    programs = json.loads(run(site.parent / "tree", "scripts/programs.py"))
    order = [program["name"] for program in programs]
    assert [p for p in order if p != "chapter03/hostile"] == [p.name for p in helpers.programs()]
    found = []
    for program in order:
        page = (site / f"{program}.html").read_text()
        links = dict(re.findall(r'<a rel="(prev|next)" href="(.*?)\.html"', page))
        found.append(
            {rel: os.path.normpath(f"{program.split('/')[0]}/{target}") for rel, target in links.items()}
        )
    assert found[0] == {"next": order[1]} and found[-1] == {"prev": order[-2]}
    assert found[1:-1] == [{"prev": a, "next": c} for a, c in zip(order, order[2:])]
    index = (site / "index.html").read_text().split('id="chapters"', 1)[1].split('id="how-fast')[0]
    assert re.findall(r'<a href="((?:chapter|appendix)\w+/\w+)\.html">', index) == order


def test_every_link_leads_somewhere(site):
    """Links lead to existing files and anchors. The pages load nothing from other sites and have no scripts."""
    pages = {path: path.read_text() for path in site.rglob("*.html")}
    anchors = {path: re.findall(r' id="([^"]*)"', page) for path, page in pages.items()}
    wrong, count = [], 0
    for path, page in pages.items():
        tags = re.findall("<[a-z][^>]*>", page)
        assert len(set(anchors[path])) == len(anchors[path]), path
        assert not [tag for tag in tags if re.match(r"<(script|iframe|base)\b|<[^>]* on\w+=", tag)], path
        for tag, kind, target in re.findall(r'(<\w+) [^>]*?\b(href|src)="([^"]*)"', "\n".join(tags)):
            count += 1
            if tag == "<a" and target.startswith("https:"):
                continue
            file, _, anchor = html.unescape(target).partition("#")
            aim = pathlib.Path(os.path.normpath(path.parent / file)) if file else path
            if not aim.is_file() or (anchor and anchor not in anchors[aim]):
                wrong.append((path, target))
    assert wrong == [] and count > 4000
    assert not re.search(r"url\(|@import", (site / "site.css").read_text())


def test_all_documents_are_pages(site):
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("cucc/*.md")]:
        name = "index" if path == ROOT / "README.md" else path.relative_to(ROOT)
        page = (site / name).with_suffix(".html").read_text()
        title = re.search("^# (.*)$", path.read_text(), re.M)[1]
        assert text_of(re.search("<h1[^>]*>(.*?)</h1>", page)[1]) == title, path
    terms = text_of((site / "docs/index.html").read_text())
    assert "The call of a kernel with <<<blocks, threads>>>." in terms and "\n__global__\n" in terms


def test_what_a_page_shows(site):
    page = (site / "chapter05/dot_ladder.html").read_text()
    page = page.replace("&quot;", '"')  # Pygments 2.20 does not escape quotation marks
    for text in (
        "<dd>5.3.1 (ladder)</dd>",
        '<a href="../docs/index.html#warp-shuffle">warp shuffle</a>',
        '<a href="../common/bench.h.html">"../common/bench.h"</a>',
        '<mark>Launches</mark>: <code>kernel</code> in line <a href="#L-',
    ):
        assert text in page, text
    recorded = bool(list(ROOT.glob("bench/results/nvidia-h200*")))
    assert ("<svg" in page) == ("<h2>Measured</h2>" in page) == recorded
    page = (site / "chapter04/julia_gpu.html").read_text()
    assert re.search('<img src="../docs/gallery/chapter04/julia_gpu.png" alt="[^"]+">', page)
    assert "<code>make exercise chapter04/julia_gpu</code>" in page
    assert "make exercise" not in (site / "chapter03/hello_world.html").read_text()
    page = (site / "docs/tools.html").read_text()  # wide pictures and tables scroll
    assert len(re.findall('<figure tabindex="0"[^>]*><img src="trace/[a-z]+.svg"', page)) == 2
    assert page.count("<table>") == page.count('<div class="table text" tabindex="0"') > 3


@pytest.mark.parametrize("quote", ["&quot;", '"'])
def test_headers_are_links_with_any_pygments(monkeypatch, quote):
    """Pygments 2.20 does not escape quotation marks, earlier versions do."""
    pygments = pytest.importorskip("pygments")
    usual, quoted = pygments.format, '(?<=<span class="cpf">)(?:&quot;|")(.*?)(?:&quot;|")'
    monkeypatch.setattr(pygments, "format", lambda *all: re.sub(quoted, rf"{quote}\1{quote}", usual(*all)))
    lines, _ = highlighted("chapter05/dot.cu", lambda file, page: file)
    assert f'<a href="common/book.h">{quote}../common/book.h{quote}</a>' in "".join(lines)


def test_hostile_text_is_text(site):
    page = (site / "chapter03/hostile.html").read_text()
    assert text_of(re.search("<title>(.*?)</title>", page)[1]) == f"chapter03/hostile: {TEXT}"
    assert text_of(re.search("<h1>(.*?)</h1>", page)[1]) == f"hostile: {TEXT}"
    # title, heading, lesson, differences; title, two fields and two comments of the source
    assert text_of(page).count(TEXT) == 9
    assert TEXT in text_of((site / "docs/programs.html").read_text())


def test_kernels_and_launches_are_marked(site):
    page = (site / "chapter03/hostile.html").read_text()
    lines = HOSTILE.splitlines()

    def named(kind):
        found = re.search(f"<mark>{kind}.*?</mark>: (.*)\\.\n", page)[1]
        return [
            (name, lines[int(line) - 1].strip())
            for name, line in re.findall(r'<code>(.*?)</code> in line <a href="#L-(\d+)">', found)
        ]

    assert [name for name, _ in named("Kernel")] == ["bounded", "bounded", "two_lines"]
    assert [line for _, line in named("Kernel")][2] == "static __global__"
    assert [name for name, _ in named("Launches")] == ["bounded", "table.rows[i]", "cudaLaunchKernel"]
    marked = [text_of(line) for line in re.findall(r'<span class="hll">(.*)\n', page)]
    for text in (
        "static __global__",
        "void two_lines(const char *text, int n) {",
        "    table.rows[i]<<<1, 1>>>",
    ):
        assert any(line.startswith(text) for line in marked), (text, marked)
    assert len(marked) == 7 and not [line for line in marked if "in_a_" in line or "declared" in line]


@needs_browser
@pytest.mark.parametrize("width, dark", [(1200, False), (375, True)], ids=["light", "phone and dark"])
def test_axe_finds_nothing(site, axe, tmp_path, width, dark):
    copy = pathlib.Path(shutil.copytree(site, tmp_path / "site"))
    pages = "index", "chapter03/hostile", "chapter05/ripple", "chapter05/dot_ladder", "docs/running"
    files = [copy / f"{page}.html" for page in pages]
    for file in files:
        file.write_text(file.read_text().replace("<details>", "<details open>"))
    assert violations(axe, files, tmp_path, [width], dark) == {}
