# SPDX-License-Identifier: MIT
"""Every message of the compiler and every breakpoint is at the line of the .cu, whatever the translator inserts."""
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import tools

SOURCE = Path(__file__).with_name("lines.cu")
WAYS = "-O2", "-O0"  # kernels with barriers as loops, and with fibers


def statements(text):
    """The numbers of the lines inside functions that end a statement"""
    depth, found = 0, []
    for number, line in enumerate(text.split("\n"), 1):
        if line.endswith(";") and depth > 0 and not line.startswith("}"):
            found.append(number)
        depth += line.count("{") - line.count("}")
    return found


def test_kernels_of_the_source_are_loops():
    told = tools.cucc("--explain", SOURCE).out
    assert re.findall(r": (\w+): (.*)", told) == [
        ("tree", "split"),
        ("regions", "split"),
        ("plain", "no barrier"),
    ]


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("optimise", WAYS)
def test_an_error_has_its_line(tmp_path, optimise, compiler):
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    lines = SOURCE.read_text().split("\n")
    numbers = statements("\n".join(lines))
    for number in numbers:
        lines[number - 1] += f" bad_{number};"
    options = ["-c", optimise, "-Xcompiler", "-fmax-errors=0" if compiler == "g++" else "-ferror-limit=0"]
    message = tools.compiled(tmp_path, "\n".join(lines), *options, status=1, CXX=compiler).err
    found = re.findall(r"^main\.cu:(\d+):\d+: error: .*?bad_(\d+)", message, re.M)
    assert len(numbers) > 50 and {int(bad) for _, bad in found} == set(numbers), message
    assert [(line, bad) for line, bad in found if line != bad] == []
    assert message.count(" error: ") == len(found), message


@pytest.mark.parametrize("options", [["-G"], ["-g", "-O1"]])
def test_debugger_knows_each_line(tmp_path, options):
    """The table of lines has each line that stores or calls; gdb, where it is installed, breaks there without optimisation."""
    text = SOURCE.read_text()
    result = tools.compiled(tmp_path, text, *options, "-o", "main")
    wanted = [
        n
        for n, line in enumerate(text.split("\n"), 1)
        if re.search(r"out\[\d+\] =|p\[\w\] =|>>>|\w\(&?p, ", line)
        and (options == ["-G"] or "cudaMallocManaged" not in line)  # which clang puts in line
    ]
    table = subprocess.run(
        ["objdump", "--dwarf=decodedline", "main"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    known = {int(line) for line in re.findall(r"^main\.cu +(\d+) ", table, re.M)}
    assert len(wanted) > 20 and set(wanted) <= known, str(result)
    if options == ["-G"] and shutil.which("gdb"):
        breaks = [word for line in wanted for word in ("-ex", f"break main.cu:{line}")]
        said = subprocess.run(
            ["gdb", "-batch", *breaks, "main"], cwd=tmp_path, capture_output=True, text=True
        ).stdout
        found = re.findall(r"^Breakpoint \d+ at .*? (?:line |main\.cu:)(\d+)\.", said, re.M)
        assert found == [str(line) for line in wanted], said
