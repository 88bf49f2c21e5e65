# SPDX-License-Identifier: MIT
"""Fixtures of the tests of cucc. Nothing is built before the first test runs; what several tests use is built once."""
import os
import pathlib
import re
import subprocess

import pytest

import tools
from fixtures import choose_seed, once, rng  # noqa: F401


def pytest_configure(config):
    choose_seed()


def pytest_report_header():
    return f"{tools.CUCC}, TEST_SEED={os.environ['TEST_SEED']}"


@pytest.fixture(scope="session")
def program(once):
    """program(path, "-O0") -> the Path of the program of this source, compiled with these options."""

    def program(source, *options):
        libraries = tools.needs(source)
        for library in libraries:
            if not tools.has(library):
                pytest.skip(f"needs {library}: no {tools.LIBRARIES[library][0]} that links")

        def compile(folder):
            linked = [option for library in libraries for option in tools.LIBRARIES[library][2]]
            built = tools.cucc(*options, source, "-o", folder / source.stem, *linked)
            warnings = re.sub("^cucc: building .*\n", "", built.err)  # of the library with sanitizers
            assert not (warnings and "-Wall" in options), str(built)
            return folder / source.stem

        names = (option.strip("-").replace("/", "_") for option in options)
        return once("-".join([source.stem, *names]), compile)

    return program


@pytest.fixture
def unit(program):
    """unit("memory", "-O0") -> the Path of units/memory.cu's program, compiled with these options."""
    return lambda name, *options: program(
        tools.HERE / f"units/{name}.cu", "-O1", "-Wall", "-Wextra", *options
    )


@pytest.fixture(scope="session")
def translator():
    """The program cu2cpp"""
    return pathlib.Path(tools.cucc("--toolkit").out.strip()) / "bin/cu2cpp"


@pytest.fixture
def translate(translator):
    """translate("text", "-w") -> the translation, without what convert.c inserts"""

    def translate(text, *options):
        done = subprocess.run([translator, "-", *options], input=text.encode(), capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")
        if not options:
            assert done.stdout.count(b"\n") == text.count("\n"), "the number of lines changed"
        out = done.stdout.decode()
        return re.sub(r" ::cuda_cpu::Into<[^{}]*>\{\} =|\(::cuda_cpu::Saturated<[^()]*>\)", "", out)

    return translate
