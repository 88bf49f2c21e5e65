# SPDX-License-Identifier: MIT
"""The lessons beside the pages of the book: names, order of the calls and length, compared with listings.txt. As a script it prints
the measures of each program and what its lesson lacks."""
import re
import statistics

import helpers

GOAL, LEAST, LONGEST = 0.93, 0.85, 1.25
NO_CODE = re.compile(r'//.*|/\*[\s\S]*?\*/|"(?:\\.|[^"\\\n])*"')


def listings():
    """The program, the lines of code of its listing or 0, the names and the calls."""
    text = (helpers.ROOT / "tests/listings.txt").read_text()
    for name, lines, names, calls in re.findall(
        r"^(\w+/\w+) ?(\d*)\n(?:    names  ((?:.*\n       )*.*\n))?(?:    calls  ((?:.*\n       )*.*(?:\n|\Z)))?",
        text,
        re.M,
    ):
        counted = (word.partition("*") for word in calls.split())
        yield name, int(lines or 0), names.split(), [
            call for call, _, n in counted for _ in range(int(n or 1))
        ]


def lesson(name):
    """The code above the ruler, without comments and strings."""
    text = (helpers.ROOT / f"{name}.cu").read_text().partition("\n// ----")[0]
    return NO_CODE.sub(lambda match: "\n" * match[0].count("\n"), text)


def calls_of(code, wanted):
    """The calls in a source that are among the wanted ones, in order. A kernel is called with <<<."""
    kernels = set(re.findall(r"__global__ \w+ (\w+)", code))
    for name, opened in re.findall(r"(\w+)(?:<\w+>)?\s*(\(|<<<)", code):
        if name in wanted and (opened == "<<<") == (name in kernels):
            yield name


def in_order(a, b):
    """The length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for x in a:
        old = row
        row = [0]
        for j, y in enumerate(b):
            row.append(old[j] + 1 if x == y else max(row[j], old[j + 1]))
    return row[-1]


def measures():
    """The program, the shares of the page's names and of its calls in order, the lesson's length by the listing's, what is missing."""
    every = {call for _, _, _, calls in listings() for call in calls}
    for name, lines, names, calls in listings():
        code = lesson(name)
        lacks = [word for word in names if not re.search(rf"\b{word}\b", code)]
        own = list(calls_of(code, every))
        length = sum(bool(line.strip()) for line in code.split("\n")) / lines if lines else 0
        order = in_order(calls, own) / len(calls) if calls else 1
        yield name, 1 - len(lacks) / len(names) if names else 1, order, length, lacks, calls, own


def test_lessons_follow_the_page():
    rows = list(measures())
    assert len(rows) == 36
    differs = {program.name: program.differs for program in helpers.programs()}
    for name, names, order, length, *_ in rows:
        assert (
            min(names, order) >= LEAST or "page" in differs[name]
        ), f"{name}: names {names:.2f}, order {order:.2f}"
        assert length <= LONGEST, f"{name}: {length:.2f} times as long as the listing"
    assert statistics.mean(row[1] for row in rows) >= GOAL
    assert statistics.mean(row[2] for row in rows) >= GOAL


if __name__ == "__main__":
    total = list(measures())
    for name, names, order, length, lacks, calls, own in total:
        print(
            f"{name:40} names {names:.2f}  order {order:.2f}  length {length or float('nan'):.2f}  {' '.join(lacks)}"
        )
        if order < 1:
            print("    page:  ", *calls, "\n    lesson:", *own)
    print(
        f"mean names {statistics.mean(r[1] for r in total):.3f}, order {statistics.mean(r[2] for r in total):.3f}"
    )
