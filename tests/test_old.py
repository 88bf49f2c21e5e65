# SPDX-License-Identifier: MIT
"""make old: programs as they were written in 2010 build unchanged and run without a display. The programs are tests/old/*.cu."""
import pathlib
import subprocess

import pytest

import helpers
from trees import NVCC, needs_nvcc

OLD = helpers.ROOT / "tests/old"


@pytest.fixture(scope="session")
def old(once):
    """old("dot") -> the program that make old has built from tests/old/dot.cu, for the back end of this run. A path is built
    as it is."""

    def old(name):
        source = name if isinstance(name, pathlib.Path) else OLD / (name + ".cu")

        def build(folder):
            status, output = helpers.make("old", f"FILE={source}")
            assert status == 0, output
            return output

        output = once("old-" + str(source).replace("/", "-"), build)
        assert "warning" not in output.lower(), output
        return f"old/{source.stem}"

    return old


def test_texture_references(old, run):
    """All types, read modes and ways to bind; members that change while bound; two devices."""
    assert "textures: right" in run(old("textures"), status=0).out


@needs_nvcc
@pytest.mark.backend("cpu")
@pytest.mark.parametrize("name", ["textures"])
def test_nvcc_builds_them(name, tmp_path):
    done = subprocess.run(
        ["make", "old", f"FILE={OLD / name}.cu", "BACKEND=gpu", "SMS=90", f"NVCC={NVCC}"]
        + [f"BIN={tmp_path}/bin", f"BUILD={tmp_path}/build"],
        cwd=helpers.ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout
    assert "warning" not in done.stdout.lower(), done.stdout
    assert (tmp_path / "bin/old" / name).exists()
