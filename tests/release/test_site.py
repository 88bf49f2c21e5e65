# SPDX-License-Identifier: MIT
"""`make site`: the pages of the programs and of the documents, made in a copy of the tree without anything built."""
import html
import importlib.util
import os
import pathlib
import re
import shutil

import pytest

import helpers
from browser import needs_browser, violations
from trees import ROOT, copy_sources, make, run

TEXT = "a <b> & \"c\" d|e __device__ </title></pre><script>alert('f')</script>"  # in place of a title
HOSTILE = f"""// SPDX-License-Identifier: MIT
/*
 * hostile: {TEXT}
 *
 * Teaches: {TEXT}
 * Terms:   __device__, launch
 * Book:    3.4 (archive)
 * Run:     ./bin/chapter03/hostile --text '<i>&amp;'
 */
#include "../common/book.h" // {TEXT}
#include "../common/absent.h"

int main() {{
    puts("&lt;");
    bounded<float><<<dim3(1, 2), (1 << 5) >> 1, 0, stream>>>(p, (f));
    return 0 < 1 > 0;
}}

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
        assert " files" in make(tree, "site", f"SITE={folder}/site", "RUN=none")
        return folder / "site"

    return once("site", generate)


def text_of(page):
    return html.unescape(re.sub("<[^>]*>", "", page))


def test_each_program_has_a_page_with_its_source(site):
    programs = [*(p.name for p in helpers.programs()), "chapter03/hostile"]
    assert len(programs) > 80
    for path in [*(f"{program}.cu" for program in programs), "common/book.h"]:
        shown = re.search("<pre>(.*?)</pre>", (site / f"{path}.html").read_text(), re.S)[1]
        assert text_of(shown) == (site.parent / "tree" / path).read_text(), path
    page = (site / "chapter05/dot_ladder.cu.html").read_text().replace("&quot;", '"')
    assert '<a href="../common/bench.h.html">"../common/bench.h"</a>' in page
    assert '<span id="L-1">' in page
    index = (site / "index.html").read_text().split('id="chapters"', 1)[1].split('id="how-fast')[0]
    linked = re.findall(r'<a href="((?:chapter|appendix)\w+/\w+)\.cu\.html">', index)
    assert [program for program in linked if program != "chapter03/hostile"] == programs[:-1]
    for page, around in (
        ("chapter03/hello_world", ["next", "simple_kernel"]),
        ("chapter05/dot", ["previous", "ripple", "next", "dot_wrong_barrier"]),
        ("appendix_a/hashtable_ladder", ["previous", "hashtable_pipeline"]),
    ):
        text = text_of((site / f"{page}.cu.html").read_text())
        assert f"by hand: nvcc -o {page.split('/')[1]} {page}.cu common/lib/*.c" in text, page
        assert re.findall(r"(previous|next): \w+/(\w+)\.cu", text) == [*zip(around[::2], around[1::2])], page
    below = (site / "chapter05/dot.cu.html").read_text().split("</pre>")[1]
    assert (
        '<img src="../docs/drawings/reduction.svg"' in below and "<details><summary>answer</summary>" in below
    )
    assert "./bin/chapter05/dot --size 16 --additions" in below
    assert "must be one of 16|32" in (site / "chapter06/ray_noconst.cu.html").read_text()


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
    assert wrong == [] and count > 2500
    assert not re.search(r"url\(|@import", (site / "site.css").read_text())


def test_all_documents_are_pages(site):
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("cucc/*.md")]:
        name = "index" if path == ROOT / "README.md" else path.relative_to(ROOT)
        page = (site / name).with_suffix(".html").read_text()
        title = re.search("^# (.*)$", path.read_text(), re.M)[1]
        assert text_of(re.search("<h1[^>]*>(.*?)</h1>", page)[1]) == title, path
    terms = text_of((site / "docs/terms.html").read_text())
    assert "The call of a kernel with <<<blocks, threads>>>." in terms and "\n__global__\n" in terms


def test_wide_tables_and_code_scroll(site):
    page = (site / "docs/tools.html").read_text()
    assert page.count("<table>") + page.count("<pre>") == page.count('<div class="table" tabindex="0"') > 6
    assert len(re.findall('<img src="trace/[a-z]+.svg"', page)) == 2


@pytest.mark.parametrize("quote", ["&quot;", '"'])
def test_headers_are_links_with_any_pygments(monkeypatch, quote):
    """Pygments 2.20 does not escape quotation marks, earlier versions do."""
    pygments = pytest.importorskip("pygments")
    usual, quoted = pygments.format, '(?<=<span class="cpf">)(?:&quot;|")(.*?)(?:&quot;|")'
    monkeypatch.setattr(pygments, "format", lambda *all: re.sub(quoted, rf"{quote}\1{quote}", usual(*all)))
    spec = importlib.util.spec_from_file_location("pages", ROOT / "scripts/site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    link = f'<a href="../common/book.h.html">{quote}../common/book.h{quote}</a>'
    assert link in module.source("chapter05/dot.cu")


def test_hostile_text_is_text(site):
    page = (site / "chapter03/hostile.cu.html").read_text()
    # title, lesson and two comments of the source
    assert text_of(page).count(TEXT) == 4
    assert TEXT in text_of((site / "docs/programs.html").read_text())


@needs_browser
@pytest.mark.parametrize("width, dark", [(1200, False), (375, True)], ids=["light", "phone and dark"])
def test_axe_finds_nothing(site, axe, tmp_path, width, dark):
    copy = pathlib.Path(shutil.copytree(site, tmp_path / "site"))
    pages = "index", "chapter03/hostile.cu", "chapter05/dot_ladder.cu", "docs/running", "docs/tools"
    files = [copy / f"{page}.html" for page in pages]
    assert violations(axe, files, tmp_path, [width], dark) == {}
