#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hints for an exercise, in three steps: hint.py PROGRAM STEP
  1   the terms that the program shows, with their meanings
  2   the words of CUDA, and the functions, that the solution uses, in their order
  3   the lines of the solution without their expressions"""
import re
import sys

from programs import ROOT
from task import NO_CODE, Exercise

WORDS = r"\b(__\w+|(?:threadIdx|blockIdx|blockDim|gridDim)\.\w|\w+(?=(?:<[\w, ]+>)?\(|<<<))"


def terms(exercise):
    rows = re.findall(r"^\| (.+?) \| (.+?) \|", (ROOT / "docs/terms.md").read_text(), re.M)
    meaning = {term.replace("\\_", "_"): text.replace("\\_", "_") for term, text in rows}
    for term in re.split(", *", exercise.program.terms):
        yield f"{term}: {meaning[term]}"


def body(exercise, function):
    return "\n".join(exercise.lines[function.open + 1 : function.close])


def words(exercise):
    for function in exercise.asked:
        found = dict.fromkeys(re.findall(WORDS, NO_CODE.sub("", body(exercise, function))))
        yield f"{function.name}(): {' '.join(word for word in found if word not in ('for', 'if', 'while'))}"


def outline(exercise):
    """Comments, loops, branches, barriers and the left sides of assignments."""
    for function in exercise.asked:
        yield f"{function.name}()"
        for line in body(exercise, function).split("\n"):
            code = re.sub(r"(\b(?:for|if|while) )\(.*\)", r"\1(…)", line)
            yield re.sub(r"(?<![<>=!])(=|\breturn\b)(?!=) .*;|(\w\()(?!…)[^)].*;", r"\1\2 …;", code)


if __name__ == "__main__":
    try:
        name, step = sys.argv[1:]
        exercise = Exercise(name)
        if exercise.why_none():
            sys.exit(f"hint.py: {name} is no exercise: {exercise.why_none()}")
        print(*{"1": terms, "2": words, "3": outline}[step](exercise), sep="\n")
    except (ValueError, KeyError, FileNotFoundError):
        sys.exit("hint.py: needs chapter05/dot, or another exercise, and 1, 2 or 3")
