# SPDX-License-Identifier: MIT
"""docs/errata.md: the tables of errors of the texts. tests/release tries the errors."""
import re

import helpers


def test_every_error_names_a_program():
    """Each row of the tables ends with a program of this project, a listing or a page, and its links lead somewhere."""
    rows = [
        line for line in (helpers.ROOT / "docs/errata.md").read_text().splitlines() if line.startswith("| ")
    ]
    rows = [row for row in rows if not re.match(r"\| (---|where)", row)]
    assert len(rows) >= 70
    assert [row for row in rows if not re.search(r"\]\([\w./#-]+\)[^|]* \|$", row)] == []
