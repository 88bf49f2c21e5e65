# SPDX-License-Identifier: MIT
"""Animations in files and windows: the cases beyond those of tests/test_display.py and tests/test_chapter08.py."""
import re
import signal

import pytest

import helpers
from test_chapter08 import RIGHT, debug  # noqa: F401
from test_common import draw, gradient  # noqa: F401
from test_display import needs_webp
from windows import ENDINGS, enlarged, needs_window, screen, window, x_server  # noqa: F401


# ---- Animations in files


@needs_webp
def test_a_still_is_lossless_at_any_size(draw, tmp_path):
    for ending in "webp", "ppm":
        draw("--noise", "--width", 1300, "--height", 1300, "--output", f"x.{ending}")
    assert (tmp_path / "x.webp").stat().st_size > 5e6
    assert (helpers.pixels(tmp_path / "x.webp") == helpers.pixels(tmp_path / "x.ppm")).all()
    out = draw("--animate", "--frames", 3, "--output", "f-%02d.webp").out
    assert out == "wrote f-00.webp to f-02.webp (12x8)\n"


# ---- Windows


@needs_window
def test_impatient_user(window):
    """Several requests to close the window at the same time, while a frame is drawn."""
    for ways in (["Esc"] * 3, ["Esc", "close button", "q"], ["close button"] * 2, ["q", "close button"]):
        w = window("--animate", "--slow", "--talk")
        w.geometry = lambda place=w.geometry(): place  # the first request may have closed the window
        w.display.sync = w.display.flush  # so the requests are sent without waiting for an answer
        for way in ways:
            ENDINGS[way](w)
        del w.display.sync
        assert w.end() == "exit function\n"


@needs_window
def test_sizes_of_windows(window):
    """A large picture fits the screen: nine tenths of its width, 1280. One pixel of 2.6 is drawn. A scale that is not a whole number:
    61.5 x 41 pixels. A drag in a window of twice the size, with bars above and below."""
    w = window("--width", 3000, "--height", 1000)
    assert w.size == (1152, 384)
    w.shows(gradient(1152, 384), mean=1, worst=2)
    w.key("q")
    w.end()
    w = window("--width", 30, "--height", 20)
    w.resize(1, 1)
    w.resize(73, 41)

    def between_bars():
        pixels = w.pixels()
        return pixels[:, 6:67].max(axis=(0, 2)).all() and not pixels[:, :5].any() and not pixels[:, 68:].any()

    w.wait_for(between_bars)
    w.key("q")
    w.end()
    w = window("--animate", "--width", 400, "--height", 300)
    w.resize(800, 900)
    w.wait_for(lambda: not w.pixels()[:149].any() and w.pixels()[151].any())
    for x, y, number in (20, 20, 3), (200, 150, 1):  # another button does nothing
        w.point(x, y)
        w.button(True, number)
    assert w.line() == "drag 100 299 100 299\n"
    w.point(799, 749)
    assert w.line() == "drag 100 299 399 0\n"
    w.key("Escape")
    w.end()


@needs_window
def test_x_server_goes_away(window, x_server):
    name, process = x_server()
    w = window("--animate", name=name)
    process.terminate()
    process.wait()
    out, err = w.process.communicate(timeout=30)
    assert w.process.returncode == 1 and err


@needs_window
@pytest.mark.parametrize("options, size", [(["-extension", "GLX"], "640x480x24"), ([], "640x480x8")])
def test_display_without_opengl(draw, x_server, options, size):
    env = {"DISPLAY": x_server(*options, screen=size)[0]}
    result = draw("--talk", env=env)
    assert re.fullmatch("picture: no window: .*; writing a file\n", result.err)
    assert result.out.startswith("wrote picture.p") and result.out.endswith("exit function\n")
    result = draw("--window", "--talk", env=env, status=64)
    assert len(result.errors) == 1 and result.err.startswith("picture: --window: ")


# ---- Windows of chapter 8


@needs_window
@pytest.mark.skipif(not helpers.has("GL"), reason="needs a build with OpenGL and EGL")
@pytest.mark.parametrize("name", RIGHT)
def test_windows_of_chapter_8(window, debug, name):
    """The end by the number of frames, by each key, by a signal."""
    few = ["--iterations", 5] if name == "heat" else []  # short enough for sanitizers
    frames = 100 if name == "vertex_interop" else 300  # long enough for the test to find the window
    if name != "basic_interop":
        out = window("--size", 300, "--frames", frames, *few, program=f"chapter08/{name}").end()
        assert RIGHT[name].format(frames - 1) in out
    # A signal ends a program that has GLUT's own loop like any other program.
    signals = [] if name == "ripple_by_hand" else [signal.SIGINT, signal.SIGTERM]
    for how in *ENDINGS, *signals:
        w = window("--size", 300, program=f"chapter08/{name}")
        w.wait_for(lambda: w.pixels().any())  # the window appears before the first picture
        if how in ENDINGS:
            ENDINGS[how](w)
            assert RIGHT[name].split("{")[0] in w.end()
        else:
            w.process.send_signal(how)
            assert RIGHT[name].split("{")[0] in w.end(128 + how)
    w = window("--size", 260, program=f"chapter08/{name}")
    w.wait_for(lambda: w.pixels().any())
    small = w.still() if name == "basic_interop" else None
    w.resize(520, 520)
    if small is not None:
        w.shows(enlarged(small, 2), mean=1, worst=1)
    w.key("q")
    w.end()
