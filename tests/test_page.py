# SPDX-License-Identifier: MIT
"""The lessons beside the pages of the book: names, order of the calls and length, compared with listings.txt."""
import re
import statistics

import helpers

GOAL, LEAST, LONGEST = 0.93, 0.85, 1.25


def listings():
    """The program, the lines of code of its listing or 0, the names and the calls."""
    known = {}
    for listing in (helpers.ROOT / "tests/listings.txt").read_text().split("\n\n")[1:]:
        head, *rows = listing.replace("\n" + 11 * " ", " ").splitlines()
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


# What C does not have. A reference is & behind a type, before a name that is declared.
CXX = {
    "lambda": r"(?<![\w\])])\[[=&\w, ]*\]\s*(\([^()]*\)\s*)?(mutable\s*)?(->\s*\w+\s*)?\{",
    "template": r"\btemplate\b",
    "auto": r"\bauto\b",
    "reference": r"\b(const )?[A-Za-z_]\w*(<[\w, ]*>)? &\w+(?= *[,)=(:{;])(?<!return &)",
    "range-for": r"\bfor \([^;()]*[^:;()]:[^:;][^;]*\)",
    "std::": r"\bstd::",
    "array class": r"\b(host_array|HostArray|DeviceArray|PinnedArray)\b",
}


def lines_of(code):
    """The lines of code, without comments and #include."""
    return sum(bool(line.strip()) and not line.lstrip().startswith("#include") for line in code.split("\n"))


def measured(program):
    """The code above and below the ruler, the options of its own, what is not C above it, and whether settings() runs something else."""
    above, below = re.split(r"^// -{9,} check$", program.source, flags=re.M)
    code, rest = helpers.code_of(above), helpers.code_of(below)
    settings = re.search(r"^(?:static )?void settings\(.*?^}", rest, re.M | re.S)
    return (
        lines_of(code),
        lines_of(rest),
        len(re.findall(r"\bOPTION_(?!END)\w+\(", rest)),
        [name for name, form in CXX.items() if re.search(form, code)],
        bool(settings and re.search(r"\bexit\((?!EXIT_USAGE|EXIT_WAIVED)", settings[0])),
    )


def test_lessons_are_plain():
    """The check is no longer than its lesson but where the header says why; lessons are C; settings() only reads options."""
    rows = {row: measured(row) for row in helpers.programs()}
    longer = [row.name for row, (above, below, *_) in rows.items() if below > above]
    assert len(longer) <= 6, longer
    many = {row.name: options for row, (_, _, options, _, _) in rows.items() if options > 4}
    assert not many
    lessons = [row for row in rows if "ladder" not in row.name]
    other = {row.name: rows[row][3] for row in lessons if rows[row][3]}
    assert len(lessons) - len(other) >= 80, other
    assert not [row.name for row in rows if rows[row][4]]


if __name__ == "__main__":  # the table of all programs
    for row in helpers.programs():
        above, below, options, cxx, exits = measured(row)
        marks = (above < below) * " more-below" + (options > 4) * " options" + exits * " exits"
        print(f"{row.name:40}{above:5}{below:5}{options:3}{marks} {' '.join(cxx)}")
