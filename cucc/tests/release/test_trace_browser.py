# SPDX-License-Identifier: MIT
"""The picture of a launch (cucc/trace.py) in a browser: no text is outside it."""
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
    tools.execute(sys.executable, draw, "x.svg,kernel=sum", traced, cwd=tmp_path)
    return (tmp_path / "x.svg").read_text()


def test_no_text_is_outside(svg, tmp_path):
    """In a window of 980 x 1800"""
    (tmp_path / "page.html").write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{svg}{SCRIPT}")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=980,1800"]
    options += ["--virtual-time-budget=5000", f"--user-data-dir={tmp_path}/profile", "--dump-dom"]
    dom = tools.execute(BROWSER, *options, f"file://{tmp_path}/page.html", env={"HOME": str(tmp_path)}).out
    seen = re.search(r'data-seen="\[(\d+),\[(.*?)\]\]"', dom)
    assert seen and int(seen[1]) > 100 and seen[2] == "", dom[-2000:]
