# SPDX-License-Identifier: MIT
"""README.md and docs/: generated parts are up to date, the index leads to programs."""
import re

import helpers
import docs  # scripts/, which helpers adds to the path
from programs import libraries, read_libraries
from trees import PROGRAMS, ROOT, make

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/*.md", "bench/results/README.md", "cucc/*.md", "cucc/docs/*.md")
    for path in ROOT.glob(pattern)
)


def test_what_is_generated_is_fresh():
    """make docs would change nothing."""
    for file, what, name, source in docs.PARTS:
        assert f"-->\n{docs.made_by(source)}<!-- {name}:end" in (ROOT / file).read_text(), f"{file}: {what}"
    figures = docs.recorded_figures()
    for page in PAGES:
        text = (ROOT / page).read_text()
        assert docs.quoted(text, figures) == text, page


def test_the_readme_names_what_the_cpu_cannot_build():
    rows = read_libraries()
    of_a_gpu = {row.name for row in rows} - {row.name for row in rows if row.only != "gpu"}
    for program in helpers.programs():
        named = f"`{program.name.split('/')[1]}`" in (ROOT / "README.md").read_text()
        assert named or not of_a_gpu & {*libraries(program)}, program.name


def test_docs_refreshes_the_tables(sources):
    make(sources, "docs")
    before = (sources / "docs/programs.md").read_text()
    assert "refreshed" not in make(sources, "docs") and before.count("\n| [chapter") == len(PROGRAMS)
    source = sources / "chapter03/hello_world.cu"
    text = source.read_text().replace("Teaches: ", "Teaches: Something <else>__. ", 1)
    source.write_text(text.replace("Terms:   ", "Terms:   zero-copy, ", 1))
    log = make(sources, "docs")
    assert "docs/programs.md: the table of programs is refreshed" in log
    assert "docs/terms.md: the index of terms is refreshed" in log
    after, terms = (sources / "docs/programs.md").read_text(), (sources / "docs/terms.md").read_text()
    assert r"| Something &lt;else>\_\_. |" in after and len(after.splitlines()) == len(before.splitlines())
    assert re.search(r"^\| zero-copy \|.*\(\.\./chapter03/hello_world\.cu\) \|$", terms, re.M)


# ---- the front page ----


def test_the_readme_shows_a_kernel_and_pictures_of_this_project():
    """The kernel is that of chapter05/dot, with lines left out; every picture is described."""
    text = (ROOT / "README.md").read_text()
    rest = iter((ROOT / "chapter05/dot.cu").read_text().splitlines())
    shown = re.search("```cuda\n(.*?)```", text, re.S)[1].splitlines()
    assert [line for line in shown if "…" not in line and line not in rest] == []
    drawn = {path.relative_to(ROOT).as_posix() for path, _ in helpers.gallery().values()}
    for image in re.findall(r"<img ([^>]*)>", text):
        attributes = dict(re.findall(r'(\w+)="([^"]*)"', image))
        assert attributes["src"] in drawn or attributes["src"].endswith("speedup.svg")
        assert attributes["alt"]


def test_ci_runs_the_readme_command():
    assert "\n    make setup test " in (ROOT / "README.md").read_text()
    assert "\nmake setup test\n" in (ROOT / ".ci/run").read_text()
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    assert workflow.count("run: .ci/run") == workflow.count("timeout-minutes:")


def test_every_page_is_linked_from_the_readme():
    """So all are pages of make site, whose links tests/release/test_site.py follows."""
    text = (ROOT / "README.md").read_text()
    assert [page for page in PAGES if page != "README.md" and f"]({page})" not in text] == []


# ---- terms ----


def test_every_term_is_shown_by_a_program_or_leads_to_one_that_is():
    """The terms are sorted, without duplicates."""
    text = (ROOT / "docs/terms.md").read_text().replace("\\_", "_")
    terms = re.findall(r"^\| (?!term \|)(.+?) \| (.+?) \|.*\|$", text, re.M)
    names = [name.lower() for name, _ in terms]
    assert names == sorted({*names})
    shown = {term for program in helpers.programs() for term in re.split(", *", program.terms)}
    synonyms = {name: meaning[4:-1] for name, meaning in terms if meaning.startswith("See ")}
    assert not synonyms.keys() & shown
    assert [name for name, _ in terms if synonyms.get(name, name) not in shown] == []


def test_calls_and_names_of_the_book_are_found():
    """Each has at most three programs, above whose ruler it stands; a name in a comment or below the ruler does not count."""
    text = (ROOT / "docs/terms.md").read_text()
    found = re.findall(r"^\| (`.*`) \| (.*) \|$", text, re.M)
    rows = {name: programs for names, programs in found for name in re.findall(r"\w+", names)}
    wanted = "cudaMemset cudaFreeHost cudaEventRecord cudaStreamCreate cudaChooseDevice HANDLE_ERROR CPUBitmap anim_and_exit"
    assert not {*wanted.split()} - rows.keys()
    assert rows["cudaChooseDevice"] == "[chapter03/set_gpu](../chapter03/set_gpu.cu)"
    assert rows["cudaMalloc"].count("](") == 3 and re.search(r" and \d+ more$", rows["cudaMalloc"])
    assert not {"HostArray", "settings", "struct"} & rows.keys()
