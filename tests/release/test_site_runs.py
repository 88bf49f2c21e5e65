# SPDX-License-Identifier: MIT
"""Programs that run in their pages (make site with em++): in a browser they print and draw what they do here. Two programs, and one
that TEST_SEED draws; PAGES=all takes all of them, which are compiled in 16 minutes the first time."""
import base64
import io
import os
import random
import re
import shutil

import pytest

import helpers
from browser import needs_browser, press_run

Image = pytest.importorskip("PIL.Image")
numpy = pytest.importorskip("numpy")
pytest.importorskip("pygments")
pytest.importorskip("markdown_it")
import pages  # noqa: E402: web/, which helpers adds to the path

pytestmark = [
    needs_browser,
    pytest.mark.skipif(not shutil.which("em++"), reason="needs em++ (Debian: emscripten, node-acorn)"),
]
# Options beside those that the page begins with
OPTIONS = {
    "chapter04/julia_gpu": {"real": "-0.4"},
    "chapter05/dot": {"size": "100000", "sweep": ""},
    "chapter05/ripple": {"frames": "3"},
    "chapter05/shared_bitmap": {"no-sync": ""},
    "chapter12/radix_sort": {"seed": "7"},
}
ALWAYS, AGAIN = ["chapter04/julia_gpu", "chapter05/ripple"], "go.click(); await ended();"
POSSIBLE = {p.name: p for p in helpers.programs() if not pages.why_not(p)}
SOME = random.Random(os.environ["TEST_SEED"]).sample(sorted({*POSSIBLE} - {*ALWAYS}), 1)
RUNS = list(POSSIBLE) if os.environ.get("PAGES") == "all" else ALWAYS + SOME


@pytest.fixture
def site(once):
    """The folder of the site. The modules are kept in the build folder."""

    def generate(folder):
        made = helpers.make("site", f"SITE={folder}/site", f"RUN={' '.join(RUNS)}")
        assert f", {len(RUNS)} programs run" in made, made
        return folder / "site"

    return once("site that runs", generate)


@pytest.fixture
def pressed(once, site):
    """What the pages have after a run with OPTIONS. One browser opens all of them."""

    def press(folder):
        scripts = {}
        for name in RUNS:
            fill = []
            for option, value in OPTIONS.get(name, {}).items():
                set_to = f"value = {value!r}" if value else "checked = true"
                fill.append(f'form.elements["{option}"].{set_to};')
            scripts[site / f"{name}.cu.html"] = "".join([*fill, AGAIN] if fill else [])
        return dict(zip(RUNS, press_run(scripts, folder)))

    return once("pages that ran", press)


@pytest.mark.parametrize("name", RUNS)
def test_a_page_prints_and_draws_what_the_program_does(pressed, tmp_path, name):
    program, options, there = POSSIBLE[name], OPTIONS.get(name, {}), pressed[name]
    arguments = pages.preset(program).split()
    arguments += [f"--{option}{value and '='}{value}" for option, value in options.items()]
    here = helpers.execute(name, arguments, tmp_path, env={"CUDA_CPU_WORKERS": "1"})
    assert there["state"].startswith(f"status {here.status}: "), there
    printed = comparable(there["output"])
    for line in comparable(here.err):  # stands where it was written
        printed.remove(line)
    assert printed == [line for line in comparable(here.out) if not line.startswith("wrote ")]
    assert bool(there["picture"]) == bool(program.picture)
    if program.picture:
        with Image.open(io.BytesIO(base64.b64decode(there["picture"].split(",")[1]))) as picture:
            shown = numpy.asarray(picture.convert("RGB")).astype(int)
        assert (shown == helpers.pixels(max(tmp_path.glob("*.ppm")))).all()


def comparable(text):
    """The lines that are the same in every run: without times, and not about the processor."""
    other = re.compile(r"^Measured on|^Device \d:|^CPU back end:|^(Name|Total global memory|L2 cache):")
    lines = [line for line in text.splitlines() if not helpers.MEASURED.search(line)]
    return [line for line in helpers.Result(0, "\n".join(lines), "", "").lines if not other.search(line)]


def test_a_wrong_option_and_stop(site, tmp_path):
    julia = site / "chapter04/julia_gpu.cu.html"
    (wrong,) = press_run({julia: f"form.elements.size.value = 0; {AGAIN}"}, tmp_path)
    assert wrong["state"].startswith("status 64: an option is wrong"), wrong
    assert wrong["output"].startswith("julia_gpu: --size 0: must be a whole number from 1 to ")
    endless = "form.elements.size.value = 9999; form.elements.iterations.value = 1000000;"
    stopped = f"{endless} go.click(); setTimeout(() => stop.click(), 200); await ended();"
    (ended,) = press_run({julia: stopped}, tmp_path)
    assert ended["state"] == "stopped"


def test_a_link_holds_the_options_and_a_slider_draws(site, tmp_path):
    """The options are there before the first run, the link of the question fills them in and runs, and the address has those of a run."""
    slide = """const range = form.querySelector("[name=size] + [type=range]"); range.value = 300;
        range.oninput(); range.value = 200; range.oninput(); while (go.disabled || again) await ended();
        const sliding = canvas.width, shared = location.hash; location.hash = "#--size=77%20--real=0";
        await new Promise(next => setTimeout(next, 50)); await ended();
        state.textContent += [sliding, canvas.width, shared, form.elements.real.value, document.querySelectorAll("#run img").length]"""
    (got,) = press_run({site / "chapter04/julia_gpu.cu.html": slide}, tmp_path)
    assert got["state"].startswith("status 0") and got["state"].endswith("200,77,#--size=200,0,0"), got
    assert "wrote" not in got["output"]


def test_pages_are_small_and_say_why_a_program_does_not_run(site):
    assert max((site / f"{name}.wasm.js").stat().st_size for name in RUNS) < 400_000
    page = (site / "chapter08/ripple.cu.html").read_text()
    assert "It does not run in this page: it needs OpenGL." in page and "site.js" not in page
