# SPDX-License-Identifier: MIT
"""The lessons beside the pages of the book: names, order of the calls and length, compared with listings.txt."""
import re
import statistics

import helpers

GOAL, LEAST, LONGEST = 0.93, 0.85, 1.25


def listings():
    """The program, the lines of code of its listing or 0, the names and the calls."""
    known = {}
    for listing in re.split(r"\n(?=[ca])", (helpers.ROOT / "tests/listings.txt").read_text().strip())[1:]:
        head, *rows = listing.replace("\n" + 8 * " ", " ").splitlines()
        name, lines = f"{head} 0".split()[:2]
        row = dict(row.split(maxsplit=1) for row in rows)
        names, calls = known.get(row.get("as"), ([], []))
        if "calls" in row:
            counted = (word.partition("*") for word in row["calls"].split())
            calls = [call for call, _, n in counted for _ in range(int(n or 1))]
        known[name] = names + row.get("names", "").split(), calls
        yield name, int(lines), *known[name]


def lesson(name):
    """The code above the ruler, without comments and strings."""
    return helpers.code_of((helpers.ROOT / f"{name}.cu").read_text().partition("\n// ----")[0])


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


def test_lessons_follow_the_page():
    """The shares of the page's names and of its calls in order, and the length of the lesson by that of the listing."""
    rows, differs = list(listings()), {program.name: program.differs for program in helpers.programs()}
    every, shares = {call for _, _, _, calls in rows for call in calls}, []
    for name, lines, names, calls in rows:
        code = lesson(name)
        lacks = [word for word in names if not re.search(rf"\b{word}\b", code)]
        own = list(calls_of(code, every))
        found, order = 1 - len(lacks) / max(len(names), 1), in_order(calls, own) / len(calls) if calls else 1
        says = f"{name}: names {found:.2f}, lacks {lacks}, order {order:.2f}, page {calls}, lesson {own}"
        assert min(found, order) >= LEAST or "page" in differs[name], says
        length = sum(bool(line.strip()) for line in code.split("\n"))
        assert not lines or length <= LONGEST * lines, f"{name}: {length} lines, the listing has {lines}"
        shares.append((found, order))
    assert len(shares) == 36 and min(map(statistics.mean, zip(*shares))) >= GOAL
