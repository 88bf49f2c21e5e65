# SPDX-License-Identifier: MIT
"""translator_fuzz.py: a short run, and the defects that it must find."""
import pytest
import translator_fuzz


def test_damaged_sources_are_translated_or_refused(tmp_path, rng):
    seed = rng.randrange(1 << 31)
    outcomes = translator_fuzz.fuzz(translator_fuzz.build(tmp_path), seed, 500, tmp_path)
    assert set(outcomes) == {"translated", "refused"}, seed
    assert min(outcomes.values()) > 50


@pytest.mark.parametrize(
    "does,found",
    [
        ("echo a.cu:3: why >&2; exit 1", "refused"),
        ("echo a.cu:3: why >&2; echo more >&2; exit 1", "status 1"),
        ("echo a.cu:3: why >&2", "status 0"),
        ("echo part; echo a.cu:3: why >&2; exit 1", "status 1"),
        ("kill -SEGV $$", "status -11"),
        ("echo 'lex.c:7: runtime error: overflow' >&2; exit 1", "runtime error: overflow"),
    ],
)
def test_defects_are_found(tmp_path, does, found):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    assert translator_fuzz.check(program, "-").startswith(found)
