# SPDX-License-Identifier: MIT
"""What a reader predicts before a run (docs/predict.md), and hints for the exercises (scripts/exercise.py hint)."""
import re
import shlex

import pytest

import helpers
import exercise  # scripts/, which helpers adds to the path
from trees import ROOT, run as run_script

ROW = r"^\| \[(\S+)\]\(\.\./\1\.cu\) ★+ \| [^|]+ \| (?:`(.*?)`)? ?\| <details><summary>answer</summary>(.*)</details> \|$"
QUESTIONS = re.findall(ROW, (ROOT / "docs/predict.md").read_text(), re.M)


def test_the_questions_are_in_the_order_of_the_programs():
    asked = [name for name, *_ in QUESTIONS]
    assert asked == [p.name for p in helpers.programs() if p.name in asked] and len(asked) > 30


@pytest.mark.backend("cpu")
@pytest.mark.parametrize("name, options, answer", QUESTIONS, ids=[name for name, *_ in QUESTIONS])
def test_the_run_gives_the_answer(run, name, options, answer):
    """Each code span of the answer is in the output."""
    result = run(name, *shlex.split(options))
    shown, said = " ".join((result.out + result.err).split()), re.findall("`(.*?)`", answer)
    assert said and [words for words in said if words.replace("\\|", "|") not in shown] == [], str(result)


def test_hints_for_every_exercise():
    """The second step of dot has the barrier; the third one has no expression of the solution."""
    exercises = exercise.exercises()
    for given in exercises:
        for step in exercise.HINTS.values():
            assert [*step(given)], given.name
    hint = "scripts/exercise.py", "hint"
    said = [run_script(ROOT, *hint, "chapter05/dot", step) for step in "123"]
    assert "barrier: A point that" in said[0] and "dot(): __shared__ threadIdx.x" in said[1]
    assert "        __syncthreads();\n" in said[2]
    assert "cacheIndex + i" not in said[2] and "i /= 2" not in said[2]
    assert "no exercise" in run_script(ROOT, *hint, "chapter05/dot_ladder", "1", status=1)
    assert "needs" in run_script(ROOT, *hint, "chapter05/dot", "4", status=1)
    assert "chapter05/reduction" in [given.name for given in exercises]
