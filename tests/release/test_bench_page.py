# SPDX-License-Identifier: MIT
"""bench/report.html, made from the recorded results, in a browser."""
import re
import shutil
import subprocess
import sys

import pytest

import helpers
from browser import browse, needs_browser, violations


@needs_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_in_a_browser(tmp_path, axe, dark):
    """Chromium reports no error, axe finds nothing on a wide and on a narrow screen, and the plots are drawn: the picture has the
    colour of the last rung of a plot, and the background of the scheme."""
    shutil.copytree(helpers.ROOT / "bench", tmp_path / "bench", ignore=shutil.ignore_patterns("__py*"))
    subprocess.run([sys.executable, tmp_path / "bench/report.py"], cwd=tmp_path, check=True)
    page = (tmp_path / "bench/report.html").read_text()
    assert not re.search(r'(src|href)="(?!#)|@import|<script|url\((?!#)', page), "it needs another file"
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert page.count("<svg") >= 18 and len(ids) == len(set(ids))
    head, sections = page.split("<section", 1)[0], page.split("<section")[1:]
    few = [text for text in sections if re.match(r' id="chapter0(4-julia|5-reduction|7-heat)', text)]
    assert len(few) == 3  # for all of them axe takes minutes, and their parts have the same form
    few = head + "".join("<section" + text for text in few) + "</main></body></html>"
    few = re.sub(r'<a href="#(?!chapter0[457]-(?:julia|reduction|heat))[^<]*</a> ?·?', "", few)
    (tmp_path / "few.html").write_text(few)
    assert violations(axe, [tmp_path / "few.html"], tmp_path, [375, 1200], dark) == {}
    picture = tmp_path / "page.png"
    options = "--enable-logging=stderr", "--window-size=1300,2000", f"--screenshot={picture}"
    said = browse(tmp_path, page, *options, dark=dark)
    assert picture.exists() and "CONSOLE" not in said, said
    pixels = helpers.pixels(picture)[..., :3].reshape(-1, 3)
    assert tuple(pixels[0]) == ((0x16, 0x16, 0x18) if dark else (255, 255, 255))
    figure = re.search(r"<figure.*?</figure>", page, re.S)[0]
    color = re.findall(r'id="[^"]*rung-\d+">.*?(?:stroke|fill): (#[0-9a-f]{6})', figure, re.S)[-1]
    if dark:
        color = re.search(rf"{color}\"\] \{{\w+: (#[0-9a-f]{{6}})", figure)[1]
    near = abs(pixels.astype(int) - [int(color[i : i + 2], 16) for i in (1, 3, 5)]).max(axis=1) <= 3
    assert near.sum() > 50, f"{near.sum()} pixels of {color}"
