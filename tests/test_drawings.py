# SPDX-License-Identifier: MIT
"""docs/drawings: the SVG files are what draw.py writes, and each can be read: title, description, letters that are large enough,
lie within the drawing and not on each other."""
import itertools
import re
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
        size, x, y = (float(text.get(name)) for name in ("font-size", "x", "y"))
        kinds = text.get("class").split()
        wide = len(text.text) * size * (0.66 if "h" in kinds else 0.6)  # an estimate: fonts differ
        begin = x - wide * (0.5 if "m" in kinds else 1 if "e" in kinds else 0)
        assert size >= 13 and begin >= 0 and begin + wide <= width, text.text
        assert size <= y <= height - 4, text.text
        areas.append((text.text, begin, begin + wide, y - 0.75 * size, y + 0.2 * size))
    for a, b in itertools.combinations(areas, 2):
        apart = a[2] <= b[1] or b[2] <= a[1] or a[4] <= b[3] or b[4] <= a[3]
        assert apart, f"{a[0]} lies on {b[0]}"


def test_a_program_leads_to_a_drawing_that_names_it():
    """The table of programs has the drawings of each program, and a comment of a program those that explain it."""
    table, links = (ROOT / "docs/programs.md").read_text(), re.compile(r"drawings\.md#([\w-]+)")
    assert (ROOT / "docs/drawings.md").read_text().count('.svg" alt="') == len(NAMES)
    for path in ROOT.glob("*/*.cu"):
        row = re.search(rf"^\| \[{path.parent.name}/{path.stem}\].*", table, re.M)
        assert {*links.findall(path.read_text())} <= {*links.findall(row[0] if row else "")}, path
