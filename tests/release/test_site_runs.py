# SPDX-License-Identifier: MIT
"""Programs that run in their pages (make site with em++): in a browser they print and draw what they do here."""
import base64
import io
import pathlib
import re
import shutil

import pytest

import helpers
from browser import needs_browser, press_run, violations
from trees import copy_sources, make

Image = pytest.importorskip("PIL.Image")
numpy = pytest.importorskip("numpy")
pytestmark = [
    needs_browser,
    pytest.mark.skipif(not shutil.which("em++"), reason="needs em++ (Debian: emscripten, node-acorn)"),
]
# Options beside those of Check:
RUNS = {
    "chapter03/set_gpu": {},
    "chapter04/julia_gpu": {"real": "-0.4", "colors": "steps"},
    "chapter05/dot": {"size": "100000", "sum": "one-thread"},
    "chapter05/ripple": {"frames": "3"},
    "chapter05/shared_bitmap": {},
    "chapter12/radix_sort": {"seed": "7"},
}
AGAIN = "go.click(); await ended();"


@pytest.fixture
def site(once):
    def generate(folder):
        tree = copy_sources(folder / "tree")
        assert f", {len(RUNS)} programs run" in make(
            tree, "site", f"SITE={folder}/site", f"RUN={' '.join(RUNS)}"
        )
        return folder / "site"

    return once("site that runs", generate)


@pytest.mark.parametrize("name", RUNS)
def test_a_page_prints_and_draws_what_the_program_does(site, tmp_path, name):
    program, options = next(p for p in helpers.programs() if p.name == name), RUNS[name]
    fill = [f'form.elements.{option}.value = "{value}";' for option, value in options.items()]
    there = press_run(site / f"{name}.cu.html", tmp_path, "".join(fill) + AGAIN)
    arguments = [*program.check.split(" | ")[0].split(), *(f"--{o}={v}" for o, v in options.items())]
    file = "frame-%04d.ppm" if "ANIMATION" in program.settings else "picture.ppm"
    here = helpers.execute(name, [*arguments, *(["--output", file] if program.picture else [])], tmp_path)
    assert there["state"].startswith(f"status {here.status}: "), there
    assert comparable(there["output"]) == comparable(here.out)
    assert bool(there["picture"]) == bool(program.picture)
    if program.picture:
        with Image.open(io.BytesIO(base64.b64decode(there["picture"].split(",")[1]))) as picture:
            shown = numpy.asarray(picture.convert("RGB")).astype(int)
        assert (shown == helpers.pixels(max(tmp_path.glob("*.ppm")))).all()


def comparable(text):
    """The lines that are the same in every run: those without times, and not about the processor."""
    lines, other = text.splitlines(), re.compile(r"^Measured on|^Device \d:|^CPU back end:")
    return [line for line in lines if not other.search(line) and not helpers.MEASURED.search(line)]


def test_a_wrong_option_and_stop(site, tmp_path):
    julia = site / "chapter04/julia_gpu.cu.html"
    wrong = press_run(julia, tmp_path, f"form.elements.size.value = 0; {AGAIN}")
    assert wrong["state"].startswith("status 64: an option is wrong"), wrong
    assert wrong["output"].startswith("julia_gpu: --size 0: must be a whole number from 1 to ")
    endless = "form.elements.size.value = 9999; form.elements.iterations.value = 1000000;"
    ended = press_run(
        julia, tmp_path, f"{endless} go.click(); setTimeout(() => stop.click(), 200); await ended();"
    )
    assert ended["state"] == "stopped"


def test_pages_are_small_and_say_why_a_program_does_not_run(site):
    for name in RUNS:
        assert (site / f"{name}.wasm.js").stat().st_size < 400_000
        assert len((site / f"{name}.cu.html").read_text() + (site / "site.js").read_text()) < 200_000
    page = (site / "chapter08/ripple.cu.html").read_text()
    assert "It does not run in this page: it needs OpenGL." in page and "<script" not in page


@pytest.mark.parametrize("width, dark", [(1200, False), (390, True)], ids=["light", "phone and dark"])
def test_axe_finds_nothing_after_a_run(site, axe, tmp_path, width, dark):
    copy = pathlib.Path(shutil.copytree(site, tmp_path / "site")) / "chapter04/julia_gpu.cu.html"
    opened = 'document.querySelector("#run details").open = true'
    copy.write_text("<!DOCTYPE html>" + press_run(copy, tmp_path, opened)["html"])
    assert violations(axe, [copy], tmp_path, [width], dark) == {}
