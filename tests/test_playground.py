# SPDX-License-Identifier: MIT
"""The playground (web/playground): what needs no compiler. tests/release/test_release_playground.py compiles programs."""
import json
import shutil
import subprocess

import pytest

from trees import ROOT

PLAYGROUND = ROOT / "web/playground"
needs_node = pytest.mark.skipif(not shutil.which("node"), reason="needs node")


@needs_node
def test_diagnostics_have_the_lines_of_the_text():
    """Messages of clang and of cu2cpp about the person's file keep their lines; those about headers are told at line 1."""
    said = (
        "a.cu:3:7: error: expected ';'\na.cu:9: unmatched }\n/headers/common/book.h:5:1: warning: unused\n"
        "/headers/x.h:1:1: note: here\n3 errors generated.\n"
    )
    script = f"""import {{diagnose}} from "{PLAYGROUND}/pipeline.js";
    console.log(JSON.stringify(diagnose({json.dumps(said)}, "a.cu").map(d => [d.line, d.column, d.severity, d.text])));"""
    command = ["node", "--input-type=module", "-e", script]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert json.loads(out) == [
        [3, 7, "error", "expected ';'"],
        [9, 1, "error", "unmatched }"],
        [1, 1, "warning", "/headers/common/book.h:5: unused"],
    ]


def test_packages_are_pinned():
    """Versions are exact, and the lock file has checksums and names no server."""
    versions = json.loads((PLAYGROUND / "package.json").read_text())["dependencies"]
    assert all(version[0].isdigit() for version in versions.values())
    packages = json.loads((PLAYGROUND / "package-lock.json").read_text())["packages"]
    own = {name: package for name, package in packages.items() if name}
    assert all(package["integrity"].startswith("sha512-") for package in own.values())
    assert not any("resolved" in package for package in own.values())
