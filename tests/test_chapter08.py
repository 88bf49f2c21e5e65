# SPDX-License-Identifier: MIT
"""Chapter 8: pictures that kernels write into OpenGL's memory, with and without a window. With GL_DEBUG set, the programs
print OpenGL's errors and the OpenGL objects that they did not delete, to stderr."""
import functools
import os
import re
import signal
import subprocess

import pytest

import formulas
import helpers
from windows import ENDINGS, needs_window, screen, window, x_server  # noqa: F401

pytestmark = pytest.mark.skipif(not helpers.has("GL"), reason="needs a build with OpenGL and EGL")

ENDING = helpers.ending()
RIGHT = {
    "basic_interop": "The picture that OpenGL drew is right.\n",
    "ripple": "Frame {} is right, as OpenGL drew it.\n",
    "heat": "Largest difference from double, over",
    "texture_interop": "Frame {} is right, as OpenGL drew it.\n",
    "vertex_interop": "The vertices of frame {} are right, as OpenGL has them.\n",
}
if helpers.has("GLUT"):
    RIGHT["ripple_by_hand"] = RIGHT["ripple"]
# When registering is refused, a program prints one line; before it the CPU back end prints its reason.
REFUSED = r"(cuda on the CPU: cudaGraphicsGLRegister\w+: refused, .*\n)?\w+: CUDA cannot use this OpenGL \(\w+\): copying through the host\n"


@pytest.fixture(autouse=True)
def debug(monkeypatch):
    monkeypatch.setenv("GL_DEBUG", "1")
    # As in windows.py: Mesa and Xlib are not instrumented, which holds for EGL too.
    monkeypatch.setenv("TSAN_OPTIONS", "ignore_noninstrumented_modules=1")


def check_diamonds(check, size):
    """Compares what basic_interop draws with numpy. On its diagonals values next to a whole number may be truncated to either neighbour."""
    check(formulas.whole(formulas.diamonds(size), (1,)), mean=1 / size, worst=1)


# ---- Without a window


@pytest.mark.parametrize("refuse", [False, pytest.param(True, marks=pytest.mark.backend("cpu"))])
@pytest.mark.parametrize("name", RIGHT)
def test_pictures(run, rng, name, refuse):
    """Interoperability and copies through the host draw right pictures, without OpenGL errors or undeleted objects."""
    env = {"CUDA_CPU_GL": "refuse"} if refuse else {}
    for size in 1, 16, rng.randint(17, 257):
        frames = [] if name == "basic_interop" else ["--frames", 1 + size % 4]
        command = f"chapter08/{name}", "--size", size, *frames, "--output", f"p.{ENDING}"
        result = run(*command, status=0, env=env)
        assert RIGHT[name].format(size % 4) in result.out
        assert re.fullmatch(REFUSED, result.err) if refuse else not result.err, str(result)
    wrong = run(*command, "--inject-error", status=1, env=env).err
    assert "at exit" not in wrong and ("OpenGL" not in wrong or refuse)


def test_surface(run, rng):
    """Surfaces with other numbers of vertices. The program checks the vertices and the picture."""
    for size, n in (rng.randrange(100, 200), rng.randrange(150, 300)), (20, 2), (20, 17):
        args = "--size", size, "--vertices", n, "--frames", 2, "--output", f"p.{ENDING}"
        assert RIGHT["vertex_interop"].format(1) in run("chapter08/vertex_interop", *args, status=0).out


def test_heat_tells_what_the_copies_cost(run):
    out = run("chapter08/heat", "--size", 256, "--frames", 3, status=0).out
    assert re.search(r"^Average Time per frame:  [\d.]+ ms$", out, re.M)
    line = r"^From device to OpenGL: +(\S+) ms by interop, (\S+) ms through the host$"
    mapped, copied = map(float, re.search(line, out, re.M).groups())
    line = r"^A whole frame: +(\S+) ms by interop, (\S+) ms through the host, ratio (\S+)$"
    interop, host, ratio = map(float, re.search(line, out, re.M).groups())
    assert 0 < mapped < interop and 0 < copied < host and abs(ratio - host / interop) < 0.02


def test_interrupt(tmp_path):
    """An interrupt ends the animation after a frame; before the animation begins, it ends the program, without a picture."""
    for name in "ripple", "vertex_interop":
        options = ["--size", "64", "--frames", "1000000", "--output", f"x.{ENDING}"]
        process = helpers.start(f"chapter08/{name}", options, tmp_path, stdout=None)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=60)[1]
        done = process.returncode, err, os.listdir(tmp_path)
        assert done in ((-signal.SIGINT, "", []), (130, "", [f"x.{ENDING}"]))
        for file in tmp_path.iterdir():
            assert helpers.pixels(file).shape == (64, 64, 3)
            file.unlink()


@pytest.mark.backend("cpu")
@pytest.mark.parametrize("name", RIGHT)
def test_no_opengl_at_all(run, tmp_path, name):
    """Without a window and without EGL: one line, status 2, no file."""
    env = {"__EGL_VENDOR_LIBRARY_FILENAMES": "/nowhere"}
    result = run(f"chapter08/{name}", "--size", 20, "--output", f"x.{ENDING}", status=2, env=env)
    assert result.err == f"{name}: needs OpenGL: no window is open, and no device of EGL works\n"
    assert os.listdir(tmp_path) == []


# ---- In a window


@needs_window
@pytest.mark.parametrize("name, how", list(zip(("basic_interop", "ripple", "vertex_interop"), ENDINGS)))
def test_window(window, name, how):
    w = window("--size", 300, program=f"chapter08/{name}")
    assert w.size == (300, 300)
    if name == "basic_interop":
        check_diamonds(w.shows, 300)
    else:
        w.moves()
    ENDINGS[how](w)
    assert RIGHT[name].split("{")[0] in w.end()


@needs_window
@pytest.mark.parametrize("how", ENDINGS)
def test_ripple_by_hand_follows_the_mouse(window, how):
    """The centre of the waves moves as far as the mouse is dragged. The program checks the last frame with that centre."""
    w = window("--size", 300, program="chapter08/ripple_by_hand")
    assert (w.size, w.title) == ((300, 300), "ripple by hand")
    w.moves()
    w.point(100, 50)
    w.button(True)
    for x, y in (120, 90), (140, 80):
        w.point(x, y)
    w.button(False)
    w.point(10, 200)
    w.moves()
    ENDINGS[how](w)
    out = w.end()
    assert re.search(r"^Frame \d+ is right, as OpenGL drew it.\nThe waves start at \(190, 120\).$", out, re.M)
    assert re.search(r"^Average Time per frame:  \d+\.\d ms$", out, re.M)


@needs_window
@pytest.mark.backend("cpu")
def test_refused_in_a_window(window, monkeypatch):
    monkeypatch.setitem(os.environ, "CUDA_CPU_GL", "refuse")
    monkeypatch.setattr(helpers, "PRIVATE", re.compile(r"DISPLAY$"))  # environment() would remove it
    w = window("--size", 300, program="chapter08/texture_interop")
    w.moves()
    w.key("q")
    assert RIGHT["texture_interop"].split("{")[0] in w.end(says=REFUSED)


@needs_window
def test_display_without_opengl(run, x_server, tmp_path):
    """A display without OpenGL: the picture is drawn through EGL and written to a file."""
    name, _ = x_server("-extension", "GLX", screen="640x480x24")
    result = run("chapter08/basic_interop", "--size", 100, status=0, env={"DISPLAY": name})
    assert len(result.errors) == 1 and result.err.startswith("basic_interop: no window: ")
    [file] = tmp_path.iterdir()
    check_diamonds(functools.partial(helpers.compare, "basic_interop", helpers.pixels(file)), 100)
