# SPDX-License-Identifier: MIT
"""The sources are formatted."""
import subprocess

import pytest

from trees import ROOT, run

TOOLS = subprocess.run([ROOT / "scripts/format.sh", "--help"], cwd=ROOT, text=True, stderr=subprocess.PIPE)
needs_tools = pytest.mark.skipif(TOOLS.returncode == 2, reason=TOOLS.stderr.strip())


@needs_tools
def test_the_sources_are_formatted():
    assert run(ROOT, "scripts/format.sh", "--check") == ""
