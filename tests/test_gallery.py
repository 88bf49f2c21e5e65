# SPDX-License-Identifier: MIT
"""make gallery, with shell scripts in place of programs."""
import os
import re
import shutil

import pytest

from trees import FAKE_NVCC, FAKE_SMI, ROOT, make, programs_of, run, stand_in


def gallery(sources, status=0):
    return run(sources, "scripts/gallery.sh", status=status, DISPLAY=":0")


def test_gallery_draws_what_the_headers_say(sources):
    """Programs that draw: a still with a size, one without a size, one that draws the same picture, and an animation."""
    Image = pytest.importorskip("PIL.Image")
    shutil.rmtree(sources / "docs/gallery")
    draw = 'for file; do :; done; [ -z "$DISPLAY" ] && echo "$*" | sed "s,/.*/,," >"$file"'
    Image.new("RGB", (8, 8)).save(sources / "pixels.png")
    draw_frames = (
        f'[ "$1 $2 $3 $4 $5" = "--size 256 --frames 120 --output" ] || exit 1; '
        f'for i in 0000 0001 0002 0003 0004; do cp {sources}/pixels.png "$(printf %s "$6" | sed "s/%04d/$i/")"; done'
    )
    scripts = {"sized": draw, "plain": draw, "again": "exit 9", "moving": draw_frames, "silent": "exit 9"}
    headers = {"again": " * Picture: as chapter03/plain\n", "silent": ""}
    programs_of(sources, scripts, lambda name: headers.get(name, " * Picture: yes\n"))
    for name, output in (
        ("sized", "--output s.png"),
        ("plain", "--fast --output p.png"),
        ("again", "--output a.png"),
        ("moving", "--output m.webp"),
    ):
        path = sources / f"chapter03/{name}.cu"
        run_line = f" * Run:     ./bin/chapter03/{name}"
        path.write_text(
            path.read_text().replace(run_line, f"{run_line} {output}", 1)
            + ('OPTION_SIZE("size"' if name in ("sized", "moving") else "")
        )
    assert run(sources, "scripts/programs.sh", "--check") == ""

    log = gallery(sources)
    made = {path.name: path for path in (sources / "docs/gallery").rglob("*.*")}
    assert set(made) == {"sized.png", "plain.png", "moving.webp"}
    assert made["sized.png"].read_text() == "--size 512 --output sized.png\n"
    assert made["plain.png"].read_text() == "--fast --output plain.png\n"
    with Image.open(
        made["moving.webp"]
    ) as animation:  # every second frame of five equal ones; the decoder may merge equal frames
        assert animation.format == "WEBP" and animation.size == (8, 8)
    assert "docs/gallery/chapter03/sized.png: 30 bytes\n" in log and "gallery refreshed" in log
    page = (sources / "docs/gallery.md").read_text()
    assert (
        '<img src="gallery/chapter03/moving.webp"' in page
        and "[again](../chapter03/again.cu), [plain](../chapter03/plain.cu) |" in page
    )

    # In a second run nothing changes, except that a picture which no program draws is removed.
    (sources / "docs/gallery/chapter03/old.png").write_text("")
    log = gallery(sources)
    assert (
        log.count(", as it was\n") == 3
        and "old.png: no program draws it, removed" in log
        and "gallery is fresh" in log
    )
    assert not (sources / "docs/gallery/chapter03/old.png").exists()

    # If a program fails or its picture is too large, the old picture is kept.
    for script, says in ("echo 'plain: no' >&2; exit 1", "chapter03/plain --fast: plain: no"), (
        draw + '; head -c 200000 /dev/zero >"$file"',
        "docs/gallery/chapter03/plain.png: 200000 bytes are too many",
    ):
        stand_in(sources / "bin/chapter03", "plain", script)
        assert says in gallery(sources, status=1).splitlines()[-1]
        assert made["plain.png"].read_text() == "--fast --output plain.png\n"


def test_gallery_is_for_the_cpu_back_end(tree, tmp_path):
    tools = tmp_path / "cuda/bin"
    stand_in(tools, "nvidia-smi", FAKE_SMI)
    stand_in(tools, "nvcc", FAKE_NVCC)
    env = {"CUDA_PATH": str(tmp_path / "cuda"), "PATH": "%s:%s" % (tools, os.environ["PATH"])}
    assert "back end: cpu (the gallery has to come out the same on every machine)" in make(
        tree, "-n", "gallery", "BACKEND=auto", **env
    )
    assert "the gallery is for BACKEND=cpu" in make(tree, "-n", "gallery", "BACKEND=gpu", status=2, **env)


def test_the_gallery_in_words(sources):
    """Each picture has an alternative text, the title of its program, and no two links have the same text."""
    programs_of(sources, {"plain": "exit 9", "other": "exit 9"}, lambda name: " * Picture: yes\n")
    plain = sources / "chapter03/plain.cu"
    text = plain.read_text().replace(
        " Run:     ./bin/chapter03/plain", " Run:     ./bin/chapter03/plain --output p.png"
    )
    plain.write_text(re.sub(r"plain: .*", 'plain: "a" <b> & c|d', text, count=1))
    (sources / "chapter04/plain.cu").write_text(
        text.replace("chapter03", "chapter04").replace("Picture: yes", "Picture: as chapter03/plain")
    )
    table = run(sources, "scripts/gallery.sh", "--table")
    assert re.search(
        r'"gallery/chapter03/plain.png" width="200" alt="&quot;a&quot; &lt;b&gt; &amp; c&#124;d">', table
    ), table
    assert (
        "[other](../chapter03/other.cu)" in table
        and "[plain (chapter 3)](../chapter03/plain.cu), [plain (chapter 4)](../chapter04/plain.cu) |"
        in table
    ), table
    table = run(ROOT, "scripts/gallery.sh", "--table")
    texts, links = re.findall(r'alt="([^"]*)"', table), re.findall(r"\[([^\]]+)\]\(", table)
    assert len(texts) == table.count("<img ") and all(texts) and len(set(texts)) == len(texts)
    assert len(set(links)) == len(links) and {"ripple (chapter 5)", "ripple (chapter 8)", "ray"} <= set(links)
