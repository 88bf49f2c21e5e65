# SPDX-License-Identifier: MIT
"""make gallery, with shell scripts in place of programs."""
import re
import shutil

import pytest

from trees import ROOT, programs_of, run, stand_in


def test_gallery_draws_what_the_headers_say(sources):
    """A still with a size, one without a size, one that draws the same picture, and an animation of equal frames."""
    Image = pytest.importorskip("PIL.Image")
    shutil.rmtree(sources / "docs/gallery")
    draw = 'for file; do :; done; [ -z "$DISPLAY" ] && echo "$*" | sed "s,/.*/,," >"$file"'
    Image.new("RGB", (8, 8)).save(sources / "pixels.png")
    draw_frames = f"""[ "$1 $2 $3" = "--size 256 --output" ] || exit 1
        for i in 0 1 2 3 4; do cp {sources}/pixels.png "$(printf "$4" $i)"; done"""
    scripts = {"sized": draw, "plain": draw, "again": "exit 9", "moving": draw_frames, "silent": "exit 9"}
    headers = dict.fromkeys(["sized", "moving"], " * Picture: yes\n * Check:   --size 9\n")
    headers["plain"] = " * Picture: yes\n"
    programs_of(sources, scripts, {**headers, "again": " * Picture: as chapter03/plain\n"})
    outputs = {"sized": "s.png", "plain": "p.png", "again": "a.png", "moving": "m.webp"}
    for name, file in outputs.items():
        output = "--fast " * (name == "plain") + f"--output {file}"
        path, line = sources / f"chapter03/{name}.cu", f" * Run:     ./bin/chapter03/{name}"
        path.write_text(path.read_text().replace(line, f"{line} {output}", 1))
    log = run(sources, "scripts/gallery.py", DISPLAY=":0")
    made = {path.name: path for path in (sources / "docs/gallery").rglob("*.*")}
    assert set(made) == {"sized.png", "plain.png", "moving.webp"}
    assert made["sized.png"].read_text() == "--size 512 --output sized.png\n"
    assert made["plain.png"].read_text() == "--fast --output plain.png\n"
    with Image.open(made["moving.webp"]) as animation:
        assert animation.format == "WEBP" and animation.size == (8, 8)
    assert "docs/gallery/chapter03/sized.png: 30 bytes\n" in log
    run(sources, "scripts/docs.py")
    page = (sources / "docs/gallery.md").read_text()
    assert '<img src="gallery/chapter03/moving.webp"' in page
    assert "[chapter03/again](../chapter03/again.cu), [chapter03/plain](../chapter03/plain.cu) |" in page

    # In a second run nothing changes, except that a picture which no program draws is removed.
    (sources / "docs/gallery/chapter03/old.png").write_text("")
    log = run(sources, "scripts/gallery.py")
    assert log.count(", as it was\n") == 3 and "old.png: no program draws it, removed" in log
    assert not (sources / "docs/gallery/chapter03/old.png").exists()

    # If a program fails or its picture is too large, the old picture is kept.
    for script, says in (
        ("echo 'plain: no' >&2; exit 1", "chapter03/plain --fast: plain: no"),
        (draw + '; head -c 200000 /dev/zero >"$file"', "chapter03/plain.png: 200000 bytes are too many"),
    ):
        stand_in(sources / "bin/chapter03", "plain", script)
        assert says in run(sources, "scripts/gallery.py", status=1).splitlines()[-1]
        assert made["plain.png"].read_text() == "--fast --output plain.png\n"


def test_the_gallery_in_words():
    """Each picture has an alternative text, the title of its program, and no two links have the same text."""
    page = (ROOT / "docs/gallery.md").read_text()
    texts, links = re.findall(r'alt="([^"]*)"', page), re.findall(r"\[([^\]]+)\]\(\.\./\w+/\w+\.cu", page)
    assert len(texts) == page.count("<img ") and all(texts) and len(set(texts)) == len(texts)
    assert len(set(links)) == len(links) and {"chapter05/ripple", "chapter08/ripple"} <= set(links)
