# SPDX-License-Identifier: MIT
"""make old: programs as they were written in 2010 build unchanged and run without a display. The programs are tests/old/*.cu."""
import pathlib
import re

import pytest

import helpers
from trees import make, needs_nvcc, nvcc_settings

OLD = helpers.ROOT / "tests/old"
gl = pytest.mark.skipif(
    not (helpers.has("GL") and helpers.has("GLUT")), reason="built without OpenGL or GLUT"
)


@pytest.fixture(scope="session")
def old(once):
    """old("dot") -> the program that make old has built from tests/old/dot.cu, for the back end of this run."""

    def old(name):
        source = OLD / (name + ".cu")

        def build(folder):
            status, output = helpers.make("old", f"FILE={source}")
            assert status == 0, output
            return output

        output = once("old-" + name.replace("/", "-"), build)
        assert "warning" not in output.lower(), output
        assert f"built {'' if helpers.BIN.is_absolute() else './'}" in output
        return f"old/{source.stem}"

    return old


def picture(path):
    return helpers.Image.open(path).convert("RGB")


def test_texture_references(old, run):
    """All types, read modes and ways to bind; members that change while bound; two devices."""
    assert "textures: right" in run(old("textures"), status=0).out


def test_chapters_without_pictures(old, run):
    """Every part of the program prints one line, or says what is wrong."""
    out = run(old("chapters"), status=0).out
    assert out.count("Name: ") == helpers.devices()
    assert re.search(r"^Clock rate: [1-9]", out, re.M) and "Device copy overlap: Enabled" in out
    rest = out.split("Max linear texture: 1\n")[-1].splitlines()
    # warp-synchronous code: volatile, and no barrier in the last warp
    assert len(rest) == 24 and all(found == wanted for found, wanted in map(str.split, rest[:4])), rest
    assert rest[4] == f"Value calculated: {33 * 1024 * 2:.6f}"
    assert rest[5:21] == [f"thread {i}" for i in range(16)]
    assert rest[21:] == [
        "decoded: HAL",
        "5000 elements found in hash table.",
        f"{2 * 32 * 96} threads counted",
    ]


def test_bitmap_and_a_constructor_without_device_and_void_main(old, run, tmp_path):
    """The squares of all points inside the unit circle stay there."""
    run(old("julia"), env={"OUTPUT": "julia.ppm"}, status=0)
    image = picture(tmp_path / "julia.ppm")
    assert image.size == (100, 100)
    for x, y in [(50, 50), (90, 50), (50, 10), (2, 2), (98, 98), (50, 1)]:
        inside = (x - 50) ** 2 + (y - 50) ** 2 < 50**2
        assert image.getpixel((x, 99 - y)) == (255 * inside, 0, 0), (x, y)


def test_endless_animation_ends(old, run, tmp_path):
    out = run(old("heat"), env={"FRAMES": "3", "OUTPUT": "heat.ppm"}, status=0).out
    assert "the last of 3 frames" in out and "3 frames\n" in out
    colors = picture(tmp_path / "heat.ppm").getcolors(20000)
    assert len(colors) > 20  # from hot to cold


@gl
def test_two_dimensions_and_interoperability_give_the_same_picture(old, run, tmp_path):
    for name in ("heat", "heat_2d"):
        run(old(name), env={"FRAMES": "3", "OUTPUT": name + ".ppm"}, status=0)
    assert (tmp_path / "heat.ppm").read_bytes() == (tmp_path / "heat_2d.ppm").read_bytes()


@gl
def test_glut_and_functions_of_opengl_of_its_own(old, run, tmp_path):
    """Without a display: one picture, then Esc."""
    out = run(old("basic_interop"), env={"OUTPUT": "stripes.ppm"}, status=0).out
    assert out.endswith("cleaned up\nclosed\nthe main loop has returned\n")
    image = picture(tmp_path / "stripes.ppm")
    assert image.size == (64, 64)
    assert image.getpixel((10, 63 - 20)) == (40, 40, 17) and image.getpixel((63, 0)) == (252, 126, 17)


@gl
def test_its_own_common_is_used(old, run, tmp_path):
    """It calls GLUT, which never returns from an animation."""
    out = run(old("own_common/chapter05/ripple"), env={"FRAMES": "4", "OUTPUT": "ripple.ppm"}, status=0).out
    assert "cleaned up" in out
    image = picture(tmp_path / "ripple.ppm")
    assert [image.getpixel((x, 5))[0] for x in (0, 59, 60)] == [int(255 * t / 64) for t in (4, 63, 0)]


@pytest.mark.backend("cpu")
def test_a_lock_that_is_never_released(old, run):
    result = run(old("spin"), env={"CUDA_CPU_WATCHDOG": "0.5"}, status=1)
    assert result.out == "before\n"
    line = (OLD / "spin.cu").read_text().split("while (atomicCAS")[0].count("\n") + 1
    assert f"no progress for 0.5 s: every thread that can run polls" in result.err
    assert f"spin.cu:{line}:" in result.err and "in kernel count, block (" in result.err


def test_a_path_with_a_blank_and_a_listing_beside_nothing(run, tmp_path):
    source = tmp_path / "my listings" / "hello there.cu"
    source.parent.mkdir()
    source.write_text(
        '#include "../common/book.h"\nint main(void) { HANDLE_ERROR(cudaThreadSynchronize()); puts("hello"); }\n'
    )
    status, output = helpers.make("old", f"FILE={source}")
    assert status == 0, output
    assert [p.name for p in source.parent.iterdir()] == ["hello there.cu"]
    assert run("old/hello there", status=0).out == "hello\n"


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["old"], "make old needs the program: make old FILE=/path/to/listing.cu"),
        (["old", "FILE=/nonexistent/x.cu"], "FILE=/nonexistent/x.cu: there is no such file"),
        (["chapter03", "FILE=x.cu"], "FILE is for make old"),
    ],
)
def test_bad_settings(arguments, says):
    status, output = helpers.make(*arguments)
    assert status == 2 and says in output


@pytest.mark.parametrize("value", ["0", "many", "-1"])
def test_bad_number_of_frames(old, run, value):
    assert f"FRAMES={value}: must be a number" in run(old("julia"), env={"FRAMES": value}, status=64).err


def test_an_error_names_the_line_of_the_listing(tmp_path):
    source = tmp_path / "wrong.cu"
    source.write_text("int main(void) {\n    nonesuch();\n}\n")
    status, output = helpers.make("old", f"FILE={source}")
    assert status == 2 and re.search(r"wrong\.cu[:(]2", output), output


@needs_nvcc
@pytest.mark.backend("cpu")
@pytest.mark.xdist_group("nvcc")
@pytest.mark.parametrize("name", ["textures", "julia", "heat_2d", "basic_interop", "chapters"])
def test_nvcc_builds_them(name):
    _, settings = nvcc_settings("least")
    log = make(helpers.ROOT, *settings, "old", f"FILE={OLD / name}.cu")
    assert "warning" not in log.lower(), log
    assert f"/bin/old/{name}\n" in log
    assert ("the constructors of cuComplex" in log) == (name == "julia")
