# SPDX-License-Identifier: MIT
"""make old: the other listings of tests/old, and builds with nvcc."""
import numpy as np
import pytest

import helpers
from test_old import OLD, old  # noqa: F401
from trees import make, needs_nvcc, nvcc_settings

has_gl = helpers.has("GL") and helpers.has("GLUT")
gl = pytest.mark.skipif(not has_gl, reason="built without OpenGL or GLUT")


@gl
def test_endless_animation_with_interoperability_ends(old, run, tmp_path):
    out = run(old("heat_2d"), env={"FRAMES": "3", "OUTPUT": "heat.ppm"}, status=0).out
    assert "the last of 3 frames" in out and "3 frames\n" in out
    colors = helpers.pixels(tmp_path / "heat.ppm").reshape(-1, 3)
    assert len(np.unique(colors, axis=0)) > 20  # from hot to cold


@gl
def test_glut_and_functions_of_opengl_of_its_own(old, run, tmp_path):
    """Without a display: one picture, then Esc."""
    out = run(old("basic_interop"), env={"OUTPUT": "stripes.ppm"}, status=0).out
    assert out.endswith("cleaned up\nclosed\nthe main loop has returned\n")
    image = helpers.pixels(tmp_path / "stripes.ppm")
    assert image.shape == (64, 64, 3)
    assert tuple(image[63 - 20, 10]) == (40, 40, 17) and tuple(image[0, 63]) == (252, 126, 17)
    env = {"FRAMES": "4", "OUTPUT": "animated.ppm"}
    assert run(old("basic_interop"), "animated", env=env, status=0).out.endswith(" frames)\ncleaned up\n")
    assert tuple(helpers.pixels(tmp_path / "animated.ppm")[0, 63]) == (252, 126, 17 + 4)


def test_a_path_with_a_blank_and_a_common_of_its_own(run, tmp_path):
    """Without a folder common/ beside its own, a listing gets that of make old."""
    source = tmp_path / "my listings" / "hello there.cu"
    source.parent.mkdir()
    call = "HANDLE_ERROR(cudaThreadSynchronize());"
    source.write_text(f'#include "../common/book.h"\nint main(void) {{ {call} puts("hello"); }}\n')
    for own in "", "its own\n":
        helpers.make("old", f"FILE={source}")
        assert [p.name for p in source.parent.iterdir()] == ["hello there.cu"]
        assert run(helpers.BIN.absolute() / "old/hello there", status=0).out == f"{own}hello\n"
        (tmp_path / "common").mkdir(exist_ok=True)
        its_own = '#include <stdio.h>\n#define HANDLE_ERROR(call) puts("its own")\n'
        (tmp_path / "common/book.h").write_text(its_own)


@needs_nvcc
@pytest.mark.backend("cpu")
@pytest.mark.xdist_group("nvcc")
@pytest.mark.parametrize("name", ["julia", "heat_2d", "basic_interop", "chapters"])
def test_nvcc_builds_them(name):
    _, settings = nvcc_settings("least")
    log = make(helpers.ROOT, *settings, "old", f"FILE={OLD / name}.cu")
    assert "warning" not in log.lower(), log
    assert f"/bin/old/{name}\n" in log
    assert ("the constructors of cuComplex" in log) == (name == "julia")
