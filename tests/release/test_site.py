# SPDX-License-Identifier: MIT
"""`make site`: the pages of the programs and of the documents, made in a copy of the tree without anything built."""
import html
import importlib.util
import json
import os
import pathlib
import re
import shutil

import pytest

import helpers
from browser import dumped, needs_browser
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
        (tree / "build/run/chapter05").mkdir(parents=True)
        (tree / "build/run/chapter05/shared_bitmap.txt").write_text("0 < 1 & so on\n")
        shutil.copy(next((ROOT / "docs").rglob("*.png")), tree / "build/run/chapter05/shared_bitmap.png")
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
        page = (site / f"{path}.html").read_text()
        parts = re.findall("<pre>(?:<span></span>)?(<span id=.*?)</pre>", page, re.S)
        assert "".join(map(text_of, parts)) == (site.parent / "tree" / path).read_text(), path
    page = (site / "chapter05/dot_ladder.cu.html").read_text().replace("&quot;", '"')
    assert '<a href="../common/bench.h.html">"../common/bench.h"</a>' in page
    assert '<span id="L-1">' in page
    index = (site / "readme.html").read_text().split('id="chapters"', 1)[1].split('id="how-fast')[0]
    linked = re.findall(r'<a href="((?:chapter|appendix)\w+/\w+)\.cu\.html">', index)
    assert [program for program in linked if program != "chapter03/hostile"] == programs[:-1]
    for page, around in (
        ("chapter03/hello_world", ["next", "simple_kernel"]),
        ("chapter05/dot", ["previous", "ripple", "next", "dot_wrong_barrier"]),
        ("appendix_a/hashtable_ladder", ["previous", "hashtable_pipeline"]),
    ):
        text = text_of((site / f"{page}.cu.html").read_text())
        assert f"by hand: nvcc -o {page.split('/')[1]} {page}.cu common/lib/[a-z]*.c" in text, page
        assert re.findall(r"(previous|next): \w+/(\w+)\.cu", text) == [*zip(around[::2], around[1::2])], page
    dot = (site / "chapter05/dot.cu.html").read_text()
    order = '<p>The threads of|drawings/reduction|run it</a>|id="L-1"|make exercise|<summary>check|- check<'
    places = [dot.index(text) for text in order.split("|")]
    assert places == sorted(places)
    above = dot.split('id="L-1"')[0]
    shown = '<img src="../docs/drawings/reduction.svg"', "<details><summary>answer</summary>"
    for text in *shown, "./bin/chapter05/dot --size 3", '"#--size%203"':
        assert text in above
    assert 'href="../chapter05/dot.cu.html#--size%203"' in (site / "docs/predict.html").read_text()
    assert "must be one of 16|32" in (site / "chapter06/ray_noconst.cu.html").read_text()


def test_every_link_leads_somewhere(site):
    """Links lead to existing files and anchors, those of the search box too. The pages load nothing from other sites and have no script
    but that of the search box."""
    pages = {path: path.read_text() for path in site.rglob("*.html")}
    anchors = {path: re.findall(r' id="([^"]*)"', page) for path, page in pages.items()}
    wrong, count = [], 0
    for path, page in pages.items():
        tags = re.findall("<[a-z][^>]*>", page)
        assert len(set(anchors[path])) == len(anchors[path]), path
        strange = [tag for tag in tags if re.match(r"<(script|iframe|base)\b|<[^>]* on\w+=", tag)]
        (script,) = re.findall('<script src="([^"]*)" defer>', "\n".join(strange))
        assert len(strange) == 1 and (path.parent / script).resolve() == site / "search.js", path
        for tag, kind, target in re.findall(r'(<\w+) [^>]*?\b(href|src)="([^"]*)"', "\n".join(tags)):
            count += 1
            if tag == "<a" and target.startswith("https:"):
                continue
            file, _, anchor = html.unescape(target).partition("#")
            aim = pathlib.Path(os.path.normpath(path.parent / file)) if file else path
            if not aim.is_file() or (anchor and not anchor.startswith("--") and anchor not in anchors[aim]):
                wrong.append((path, target))
    assert wrong == [] and count > 2500
    script = (site / "search.js").read_text()
    for name, _, address, *_ in json.loads(script.rpartition("\nsearch(")[2].removesuffix(");\n")):
        file, _, anchor = address.partition("#")
        assert (site / file) in pages and (not anchor or anchor in anchors[site / file]), name
    assert not re.search(r"url\(|@import", (site / "site.css").read_text())


def test_all_documents_are_pages(site):
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("cucc/*.md")]:
        name = "readme" if path == ROOT / "README.md" else path.relative_to(ROOT)
        page = (site / name).with_suffix(".html").read_text()
        title = re.search("^# (.*)$", path.read_text(), re.M)[1]
        assert text_of(re.search("<h1[^>]*>(.*?)</h1>", page)[1]) == title, path


def test_a_ladder_shows_its_measurements_first(site):
    page = (site / "chapter05/dot_ladder.cu.html").read_text().split('<span id="L-1">')[0]
    assert re.search(r'src="../bench/results/[\w-]+/chapter05/dot.svg"', page) and "single launch" in page
    assert "Measured on" not in (site / "chapter05/dot.cu.html").read_text()


def test_what_make_run_printed(site):
    page = (site / "chapter05/shared_bitmap.cu.html").read_text()
    assert "<pre>0 &lt; 1 &amp; so on\n</pre>" in page
    assert 'src="../build/run/chapter05/shared_bitmap.png"' in page
    assert (site / "build/run/chapter05/shared_bitmap.png").exists()
    assert "What it prints" not in (site / "chapter05/dot.cu.html").read_text()


def test_an_exercise_has_its_hints_and_its_launch(site):
    hints, launch = (site / "chapter05/dot.cu.html").read_text().split("<h2>A launch</h2>")
    assert 'src="../docs/trace/chapter05/dot.svg"' in launch and "make exercise chapter05/dot</code>" in hints
    hints = re.findall("<details><summary>hint . *(.*?)</summary><pre.*?>(.*?)</pre></details>", hints, re.S)
    told = run(ROOT, "scripts/exercise.py", "hint", "chapter05/dot", "3")
    assert len(hints) == 3 and html.unescape(hints[2][1]) == told.rstrip("\n")
    assert "make exercise" not in (site / "chapter05/dot_ladder.cu.html").read_text()


def test_slides_have_each_program_its_kernels_and_its_drawings(site):
    parts = (site / "chapter05.html").read_text().split("<section")[1:]
    own = [p for p in helpers.programs() if p.name.startswith("chapter05/")]
    titles = [text_of(re.search("<h[12]>(.*?)</h[12]>", part)[1]) for part in parts]
    assert [title for title in titles if title in {p.title for p in own}] == [p.title for p in own]
    assert titles[0] == "5. Thread cooperation" and titles.count("The tree of a reduction") == 1
    dot = text_of(parts[titles.index("dot product with a reduction in shared memory")])
    assert "__syncthreads();" in dot and "int main" not in dot and "What do the 253 threads" in dot


def test_the_front_page_and_the_letters_of_the_terms(site):
    front = (site / "index.html").read_text()
    for page in "chapter04/julia_gpu", "chapter05/ripple", "chapter06/ray":
        assert front.count(f'href="{page}.cu.html"') == 2
    assert "git clone" not in front and 'href="readme.html#chapters"' in front
    letters = re.findall(r'<a href="#[^"]+">([A-Z])</a>', (site / "docs/terms.html").read_text())
    assert letters == sorted(letters) and len(letters) > 20


ADD_LOOPS = [f"chapter04/add_loop_{name}.cu.html" for name in ("cpu", "gpu")]


@needs_browser
@pytest.mark.parametrize(
    "words, found",
    [
        ("DOT", ["chapter05/dot.cu.html", "appendix_a/dot.cu.html"]),
        ("bank conflict", ["chapter05/bank_conflicts.cu.html", "docs/terms.html#bank-conflict"]),
        ("reduciton", ["chapter05/reduction.cu.html"]),
        ("5.3.1", ["chapter05/dot.cu.html", "chapter05/dot_wrong_barrier.cu.html"]),
        ("7.3", ["chapter07/heat_gmem.cu.html", "chapter07/heat.cu.html"]),
        ("TACC", ["docs/courses.html", "docs/errata.html"]),
        ("Dot-GM", ["chapter05/dot_gmem.cu.html"]),
        ("Fig. 7.9", ["chapter05/dot_variants.cu.html"]),
        ("Kernel 3", ["chapter05/reduction.cu.html"]),
        ("how to add two vectors", ["docs/terms.html#vector-addition", *ADD_LOOPS]),
        ("zzz", []),
        ("<b>", ["chapter03/hostile.cu.html"]),
    ],
)
def test_the_search_box_is_used_with_the_keyboard(site, tmp_path, words, found):
    press = """(() => {
        const input = document.querySelector("input"), form = input.form, here = () => document.activeElement;
        const key = key => here().dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
        input.value = WORDS;
        input.dispatchEvent(new Event("input"));
        const links = [...form.querySelectorAll("a")].map(link => link.href);
        let first;
        form.addEventListener("click", event => { event.preventDefault(); first = event.target.href; });
        form.requestSubmit();
        input.focus();
        const round = [...links, ""].map(() => { key("ArrowDown"); return here().href; });
        key("ArrowUp");
        return {links, first, round, last: here().href, count: form.querySelector("[role=status]").textContent};
    })()"""
    result = f"JSON.stringify({press.replace('WORDS', json.dumps(words))}).replace(/</g, '&lt;')"
    body = f'<header></header><script src="{(site / "search.js").as_uri()}"></script>'
    script = f"<script>document.body.innerHTML = `<pre>${{{result}}}</pre>`</script>"
    (tmp_path / "page.html").write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{body}{script}")
    (got,) = dumped(tmp_path, tmp_path / "page.html")
    assert [link.removeprefix(f"{site.as_uri()}/") for link in got["links"]][: len(found)] == found
    assert bool(got["links"]) == bool(found) and len(got["links"]) <= 12
    assert int(got["count"].split()[0]) >= len(got["links"])
    if found:
        assert got["round"] == [*got["links"], None] and got["last"] == got["links"][-1]
        assert got["first"] == got["links"][0]


@pytest.mark.parametrize("quote", ["&quot;", '"'])
def test_headers_are_links_with_any_pygments(monkeypatch, quote):
    """Pygments 2.20 does not escape quotation marks, earlier versions do."""
    pygments = pytest.importorskip("pygments")
    usual, quoted = pygments.format, '(?<=<span class="cpf">)(?:&quot;|")(.*?)(?:&quot;|")'
    monkeypatch.setattr(pygments, "format", lambda *all: re.sub(quoted, rf"{quote}\1{quote}", usual(*all)))
    spec = importlib.util.spec_from_file_location("pages", ROOT / "web/pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    link = f'<a href="../common/book.h.html">{quote}../common/book.h{quote}</a>'
    assert link in module.source("chapter05/dot.cu")


def test_hostile_text_is_text(site):
    page = (site / "chapter03/hostile.cu.html").read_text()
    # title, lesson, which stands above the source too, and two comments of the source
    assert text_of(page).count(TEXT) == 5
    assert TEXT in text_of((site / "docs/programs.html").read_text())
