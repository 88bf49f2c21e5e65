# SPDX-License-Identifier: MIT
"""docs/drawings: the SVG files are what draw.py writes, and each can be read: title, description, letters that are large enough,
lie within the drawing and not on each other."""
import itertools
import xml.etree.ElementTree as xml

import pytest

from trees import ROOT, run

FOLDER = ROOT / "docs/drawings"
NAMES = sorted(path.stem for path in FOLDER.glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"


def test_the_drawings_are_fresh(tmp_path):
    run(ROOT, "docs/drawings/draw.py", tmp_path)
    assert sorted(path.stem for path in tmp_path.iterdir()) == NAMES
    assert [name for name in NAMES if (tmp_path / f"{name}.svg").read_text() != svg(name)] == []


def svg(name):
    return (FOLDER / f"{name}.svg").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_can_be_read(name):
    root = xml.fromstring(svg(name))
    left, top, width, height = map(float, root.get("viewBox").split())
    assert (left, top) == (0, 0) and width <= 640
    assert root.findtext(f"{SVG}title") and root.findtext(f"{SVG}desc")
    assert "prefers-color-scheme: dark" in root.findtext(f"{SVG}style")
    areas = []
    for text in root.iter(f"{SVG}text"):
        size, kinds, x, y = float(text.get("font-size")), text.get("class").split(), float(text.get("x")), float(text.get("y"))
        wide = len(text.text) * size * (0.66 if "h" in kinds else 0.6)  # an estimate: fonts differ
        begin = x - wide * (0.5 if "m" in kinds else 1 if "e" in kinds else 0)
        assert size >= 13 and begin >= 0 and begin + wide <= width, text.text
        assert size <= y <= height - 4, text.text
        areas.append((text.text, begin, begin + wide, y - 0.75 * size, y + 0.2 * size))
    for (words, left, right, top, low), (other, left2, right2, top2, low2) in itertools.combinations(areas, 2):
        assert not (left < right2 and left2 < right and top < low2 and top2 < low), f"{words} lies on {other}"
