# SPDX-License-Identifier: MIT
"""The archive of a release: `make dist` writes it, and it builds where there is no git."""
import os
import re
import subprocess
import tarfile

import pytest

from trees import ROOT, compiled, make, run, stand_in

HELLO = "chapter03/hello_world"
VERSION = (ROOT / "VERSION").read_text().strip()
needs_clone = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs a clone")


@needs_clone
def test_the_archive_builds_without_git(tmp_path):
    """It has the files of the commit, and the same bytes with another umask. In a folder with blanks and quotes it builds cucc's
    library and a program, and again after a change of a source, or of a header, which one file of the library includes.
    """
    name = f"cuda-by-example-{VERSION}"
    archives = [tmp_path / folder / f"{name}.tar.gz" for folder in ("a", "b")]
    config = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "tar.umask", "GIT_CONFIG_VALUE_0": "user"}
    for archive, umask in zip(archives, ("022", "077")):
        run(ROOT, "sh", "-c", f"umask {umask}; exec make dist BUILD='{archive.parent}'", **config)
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with tarfile.open(archives[0]) as archive:
        archive.extractall(tmp_path / """a b'c"d""")
    tree = tmp_path / """a b'c"d""" / name
    commit = subprocess.check_output(["git", "ls-tree", "-rz", "--name-only", "HEAD"], cwd=ROOT, text=True)
    files = {str(p.relative_to(tree)) for p in tree.rglob("*") if p.is_file()}
    assert files == set(commit.split("\0")) - {""}
    stand_in(tmp_path / "tools", "git", f"echo \"$@\" >>'{tmp_path}/calls'; exit 127")
    path = {"PATH": f"{tmp_path}/tools:{os.environ['PATH']}"}
    assert "once; it takes about" in make(tree, HELLO, **path)
    assert run(tree, f"bin/{HELLO}", "--version").split()[-1] == VERSION
    assert "Hello, World!" in run(tree, f"bin/{HELLO}")
    for source in "include/curand.h", "runtime/memory/symbol.cpp":
        (tree / "cucc" / source).touch()
        assert compiled(make(tree, HELLO, **path)) == {HELLO}, source
    assert not compiled(make(tree, HELLO, **path))
    make(tree, "docs", **path)
    assert not (tmp_path / "calls").exists()


@needs_clone
def test_git_ignores_pictures_of_programs():
    """In the root of the clone, where the README starts them"""
    drawn = [f"julia{ending}" for ending in (".png", ".ppm", ".webp", ".gif", ".mp4", "-0001.png")]
    names = [*drawn, "docs/gallery/julia.png", "README.md", "julia.cu"]
    assert run(ROOT, "git", "check-ignore", "--no-index", *names).split() == drawn


def test_the_notes_are_those_of_the_version():
    """The latest release of the changelog. What is not released yet may stand before it."""
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(r"^## (\d\S*) — \d{4}-\d\d-\d\d$", changes, re.M)[1] == VERSION
