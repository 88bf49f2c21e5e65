# SPDX-License-Identifier: MIT
"""The form of a lesson (CONTRIBUTING.md): plain C above the ruler, and below it no more code than above."""
import re

import helpers

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
