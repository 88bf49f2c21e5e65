# SPDX-License-Identifier: MIT
"""docs/gallery.md, which make gallery and make docs write."""
import re

from trees import ROOT


def test_the_gallery_in_words():
    """Each picture has an alternative text, the title of its program, and no two links have the same text."""
    page = (ROOT / "docs/gallery.md").read_text()
    texts, links = re.findall(r'alt="([^"]*)"', page), re.findall(r"\[([^\]]+)\]\(\.\./\w+/\w+\.cu", page)
    assert len(texts) == page.count("<img ") and all(texts) and len(set(texts)) == len(texts)
    assert len(set(links)) == len(links) and {"chapter05/ripple", "chapter08/ripple"} <= set(links)
