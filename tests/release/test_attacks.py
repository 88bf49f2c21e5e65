# SPDX-License-Identifier: MIT
"""tests/attacks/record.py: the figures that it keeps, and the part of docs/trust.md that it writes (test_docs.py compares it with
the page). The sample of each attack is in a test_attacks_….py of its own."""
import json
import sys

import pytest

from trees import ROOT

sys.path.insert(0, str(ROOT / "tests/attacks"))
import record  # noqa: E402
import results  # noqa: E402


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """An attack without records, and the file that its records go to."""
    (tmp_path / "storm.py").write_text('"""storm.py: shakes\nthe tree.\n\nUsage."""\n')
    (tmp_path / "helper.py").write_text('"""No attack."""\n')
    monkeypatch.setattr(record, "HERE", tmp_path)
    monkeypatch.setattr(record, "FILE", tmp_path / "results.json")
    return tmp_path / "results.json"


def test_an_attack_without_records_is_described(kept):
    assert record.page() == "### [storm](../tests/attacks/storm.py)\n\nShakes\nthe tree."


def test_a_record_replaces_that_of_the_same_command(kept):
    record.record("storm", "make storm", {"runs": 1})
    record.record("storm", "make storm ARGS=--all", {"runs": 2})
    record.record("storm", "make storm", {"runs": 12345, "seed": 67890, "found": "none"})
    page = record.page()
    assert "| runs | seed | found |\n| --- | --- | --- |\n| 12,345 | 67890 | none |" in page
    assert page.index("`make storm` (") < page.index("`make storm ARGS=--all` (") and "| 1 |" not in page
    entry = json.loads(kept.read_text())["storm"]["make storm"]
    assert entry["date"] in page and entry["machine"] in page and f"commit {entry['commit']}" in page


def test_a_record_of_no_attack_is_named(kept):
    kept.write_text('{"calm": {}}')
    with pytest.raises(results.Problem, match="there is no attack calm"):
        record.page()
    kept.write_text("{")
    with pytest.raises(results.Problem, match="no results"):
        record.page()


def test_each_attack_is_described_and_has_a_target():
    found = record.attacks()
    own = {p.stem for p in record.HERE.glob("*.py") if p.name != "record.py"}
    assert set(found) == own | {"translator_fuzz"}
    makefile = (ROOT / "Makefile").read_text()
    for name in found:
        assert f"tests/attacks/{name}.py" in makefile, f"make has no target for {name}"
