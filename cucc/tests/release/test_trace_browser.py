# SPDX-License-Identifier: MIT
"""The picture of a launch (cucc/trace.py) in a browser: no text is outside it, its colours are those of a light and of a dark page."""
import re
import shutil
import sys

import pytest

import tools

BROWSER = next(filter(shutil.which, ("chromium", "google-chrome", "chrome")), None)
pytestmark = pytest.mark.skipif(not BROWSER, reason="needs chromium")

SCRIPT = """<script>
const far = [...document.querySelectorAll("text")].filter(t => {
    const box = t.getBBox();
    return box.x < 0 || box.x + box.width > 960 || box.y < 0;
}).map(t => t.textContent);
document.body.dataset.seen = JSON.stringify([document.querySelectorAll("text").length, far]);
</script>"""


@pytest.fixture
def svg(program, tmp_path):
    traced, draw = program(tools.HERE / "traced.cu", "--check"), tools.ROOM / "trace.py"
    assert tools.execute(sys.executable, draw, "x.svg,kernel=sum", traced, cwd=tmp_path).status == 0
    return (tmp_path / "x.svg").read_text()


def browse(folder, page, *options, dark=False):
    """Opens a page in a window of 980 x 1800; returns what the browser prints."""
    (folder / "page.html").write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{page}")
    settings = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=980,1800"]
    settings += ["--virtual-time-budget=5000", f"--user-data-dir={folder}/profile"]
    if dark:
        settings += ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"]
    return tools.execute(
        BROWSER, *settings, *options, f"file://{folder}/page.html", env={"HOME": str(folder)}
    ).out


def test_no_text_is_outside(svg, tmp_path):
    dom = browse(tmp_path, svg + SCRIPT, "--dump-dom")
    seen = re.search(r'data-seen="\[(\d+),\[(.*?)\]\]"', dom)
    assert seen and int(seen[1]) > 100 and seen[2] == "", dom[-2000:]


LIGHT = (255, 255, 255), (0x0B, 0x57, 0xA4)
DARK = (0x16, 0x16, 0x18), (0x8A, 0xB8, 0xF0)


@pytest.mark.parametrize("dark, colors", [(False, LIGHT), (True, DARK)], ids=["light", "dark"])
def test_the_colours(svg, tmp_path, dark, colors):
    image, numpy = pytest.importorskip("PIL.Image"), pytest.importorskip("numpy")
    browse(tmp_path, svg, f"--screenshot={tmp_path}/shot.png", dark=dark)
    pixels = numpy.asarray(image.open(tmp_path / "shot.png").convert("RGB"))[20:1700, 20:940]
    paper, mark = [(pixels == color).all(axis=2).mean() for color in colors]
    assert paper > 0.4 and mark > 0.05
