# SPDX-License-Identifier: MIT
"""make old: programs as they were written in 2010 build unchanged and run without a display. Two listings of tests/old; the others are
tested in tests/release."""
import pathlib
import re

import pytest

import helpers

OLD = helpers.ROOT / "tests/old"


@pytest.fixture(scope="session")
def old(once):
    """old("julia") -> the program that make old has built from tests/old/julia.cu, for the back end of this run."""

    def old(name):
        source = OLD / (name + ".cu")

        def build(folder):
            return helpers.make("old", f"FILE={source}")

        output = once("old-" + name, build)
        assert "warning" not in output.lower(), output
        assert f"built {'' if helpers.BIN.is_absolute() else './'}" in output
        return helpers.BIN.absolute() / "old" / source.stem

    return old


def test_chapters_without_pictures(old, run):
    """Every part of the program prints one line, or says what is wrong."""
    out = run(old("chapters"), status=0).out
    assert out.count("Name: ") == helpers.devices()
    assert re.search(r"^Clock rate: [1-9]", out, re.M) and "Device copy overlap: Enabled" in out
    rest = out.split("Max linear texture: 1\n")[-1].splitlines()
    assert rest == [*(f"thread {i}" for i in range(16)), "decoded: HAL", f"{2 * 32 * 96} threads counted"]


def test_bitmap_and_a_constructor_without_device_and_void_main(old, run, tmp_path):
    """The squares of all points inside the unit circle stay there."""
    run(old("julia"), env={"OUTPUT": "julia.ppm"}, status=0)
    image = helpers.pixels(tmp_path / "julia.ppm")
    assert image.shape == (100, 100, 3)
    for x, y in [(50, 50), (90, 50), (50, 10), (2, 2), (98, 98), (50, 1)]:
        inside = (x - 50) ** 2 + (y - 50) ** 2 < 50**2
        assert tuple(image[99 - y, x]) == (255 * inside, 0, 0), (x, y)
    result = run(old("julia"), env={"FRAMES": "many"}, status=64)
    assert "FRAMES=many: must be a number" in result.err


def test_an_error_names_the_line_of_the_listing(tmp_path):
    source = pathlib.Path(tmp_path / "wrong.cu")
    source.write_text("int main(void) {\n    nonesuch();\n}\n")
    assert re.search(r"wrong\.cu[:(]2", helpers.make("old", f"FILE={source}", status=2))
    missing = helpers.make("old", "FILE=/nonexistent/x.cu", status=2)
    assert "/nonexistent/x.cu: there is no such file" in missing
