# SPDX-License-Identifier: MIT
"""translator_fuzz.py: a short run."""
import translator_fuzz


def test_damaged_sources_are_translated_or_refused(tmp_path, rng):
    seed = rng.randrange(1 << 31)
    outcomes = translator_fuzz.fuzz(translator_fuzz.build(tmp_path), seed, 500, tmp_path)
    assert set(outcomes) == {"translated", "refused"}, seed
    assert min(outcomes.values()) > 50
