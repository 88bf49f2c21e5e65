# SPDX-License-Identifier: MIT
"""Device functions beside the record of an H200, conformance/h200.txt. `make test-gpu` makes the record again on a GPU."""
import re

import pytest

import tools
from conformance import generate

RECORD = (tools.HERE / "conformance/h200.txt").read_text().splitlines()


def by_name(lines, section):
    return {words[1]: words[2:] for words in map(str.split, lines) if words[0] == section}


def differences(record, got):
    """What is wrong with results: a function must have the hashes of the record, or be within the error that CUDA documents."""
    for name in record.keys() | got.keys():
        if name not in record or name not in got:
            yield f"{name}: only in {'the record' if name in record else 'the program'}"
            continue
        (wanted, *_), (hashes, *documented) = record[name], got[name]
        if documented and documented[2] != "0":
            yield f"{name}: {documented[2]} results are outside of {documented[1]} ulp"
        elif not documented and hashes != wanted:
            part = next(i for i in range(16) if hashes[4 * i : 4 * i + 4] != wanted[4 * i : 4 * i + 4])
            yield f"{name}: the first input that differs is in part {part} of 16; the program with this name as argument prints all"


# Numbers of 16 bits take long, and both kinds have the same code.
@pytest.mark.parametrize("section", [section for section in generate.SECTIONS if section != "bfloat16"])
def test_functions_do_what_an_h200_does(tmp_path, section, optimised="-O0"):
    """Not optimised, which takes half the time; release/ has other sections as -O1 compiles them."""
    program = generate.build(section, tmp_path, tools.CUCC, optimised)
    got = by_name(generate.printed(section, program).splitlines(), section)
    found = list(differences(by_name(RECORD, section), got))
    assert not found, "\n".join(found)


def test_what_differs_is_found():
    record = {"exact": ["0" * 64], "near": ["0" * 64, "1", "2", "0"], "gone": ["0" * 64]}
    assert not list(differences(record, {**record, "near": ["1" * 64, "2", "2", "0"]}))
    wrong = {"exact": ["0" * 9 + "1" * 55], "near": ["0" * 64, "3", "2", "5"], "new": ["0" * 64]}
    found = "\n".join(sorted(differences(record, wrong)))
    assert re.fullmatch(
        "exact: .* part 2 of 16;.*\ngone: .*\nnear: 5 results .* 2 ulp\nnew: only in the program", found
    )
