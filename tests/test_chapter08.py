# SPDX-License-Identifier: MIT
"""Chapter 8: pictures that kernels write into OpenGL's memory, with and without a window. With GL_DEBUG set, the programs
print OpenGL's errors and the OpenGL objects that they did not delete, to stderr."""
import os
import pty
import re
import signal
import subprocess
import time

import pytest

import formulas
import helpers
from test_display import ENDINGS, enlarged, needs_window, screen, window, x_server  # noqa: F401

pytestmark = pytest.mark.skipif(not helpers.has("GL"), reason="needs a build with OpenGL and EGL")

ENDING = helpers.ending()
PROGRAMS = ["basic_interop", "ripple", "heat", "texture_interop", "vertex_interop"]
ANIMATIONS = PROGRAMS[1:]
RIGHT = {
    "basic_interop": "The picture that OpenGL drew is right.\n",
    "ripple": "Frame {} is right, as OpenGL drew it.\n",
    "heat": "Largest difference from double, over",
    "texture_interop": "Frame {} is right, as OpenGL drew it.\n",
    "vertex_interop": "The vertices of frame {} are right, as OpenGL has them.\n",
}
# When registering is refused, a program prints one line; before it the CPU back end prints its reason.
REFUSED = r"(cuda on the CPU: cudaGraphicsGLRegister\w+: refused, .*\n)?\w+: CUDA cannot use this OpenGL \(\w+\): copying through the host\n"


@pytest.fixture(autouse=True)
def debug(monkeypatch):
    monkeypatch.setenv("GL_DEBUG", "1")
    # As in test_display.py: Mesa and Xlib are not instrumented, which holds for EGL too.
    monkeypatch.setenv("TSAN_OPTIONS", "ignore_noninstrumented_modules=1")


def drawn(name, size, ticks):
    """The picture computed with numpy, and the limits for its comparison: values next to a whole number, such as those on
    the diagonals of basic_interop, may be truncated to either neighbour."""
    if name == "texture_interop":
        return formulas.squares(size, ticks), {}
    value = formulas.diamonds(size) if name == "basic_interop" else formulas.ripple(size, ticks)
    return formulas.whole(value, (1,) if name == "basic_interop" else (0, 1, 2)), dict(mean=1 / size, worst=1)


# ---- Without a window


@pytest.mark.parametrize(
    "refuse", [False, pytest.param(True, marks=pytest.mark.backend("cpu"))], ids=["shared", "refused"]
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_pictures(run, tmp_path, name, refuse):
    """Interoperability and copies through the host draw the same pictures, without OpenGL errors or undeleted objects."""
    env = {"CUDA_CPU_GL": "refuse"} if refuse else {}
    for size in 1, 2, 15, 16, 17, 33, 100, 257:
        frames = [] if name == "basic_interop" else ["--frames", 1 + size % 4]
        result = run(
            f"chapter08/{name}", "--size", size, *frames, "--output", f"p.{ENDING}", status=0, env=env
        )
        assert RIGHT[name].format(size % 4) in result.out
        assert re.fullmatch(REFUSED, result.err) if refuse else not result.err, str(result)
        if name in ("heat", "vertex_interop"):
            continue
        expected, limits = drawn(name, size, size % 4)
        helpers.compare(name, helpers.pixels(tmp_path / f"p.{ENDING}"), expected, **limits)


@pytest.mark.parametrize("name", ANIMATIONS)
def test_each_frame(run, tmp_path, name):
    run(f"chapter08/{name}", "--size", 40, "--frames", 20, "--output", f"%02d.{ENDING}", status=0)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 20
    if name not in ("heat", "vertex_interop"):
        for ticks, file in enumerate(files):
            expected, limits = drawn(name, 40, ticks)
            helpers.compare(name, helpers.pixels(file), expected, **limits)


@pytest.mark.backend("cpu")
def test_heat_is_that_of_chapter_7(run, tmp_path):
    for size, steps in (64, 1), (64, 90), (100, 91), (33, 900):
        for program in "chapter07/heat_gmem", "chapter08/heat":
            args = "--size", size, "--iterations", steps, "--frames", 1
            result = run(program, *args, "--output", f"{program.replace('/', '-')}.{ENDING}", status=0)
            (tmp_path / f"{program[7:9]}.txt").write_text(re.search(r"Mean temperature: .*", result.out)[0])
        assert (tmp_path / "07.txt").read_text() == (tmp_path / "08.txt").read_text()
        assert (tmp_path / f"chapter07-heat_gmem.{ENDING}").read_bytes() == (
            tmp_path / f"chapter08-heat.{ENDING}"
        ).read_bytes()


def test_surface(run, tmp_path, rng):
    """A surface with another number of vertices, in another frame and size, against numpy's. Few pixels make wide edges."""
    size, n, frames = rng.randrange(100, 200), rng.randrange(150, 300), rng.randrange(1, 40)
    args = "--size", size, "--vertices", n, "--frames", frames, "--output", f"p.{ENDING}"
    out = run("chapter08/vertex_interop", *args, status=0).out
    assert RIGHT["vertex_interop"].format(frames - 1) in out
    expected = formulas.surface(size, frames - 1, n)
    helpers.compare(
        "surface", helpers.pixels(tmp_path / f"p.{ENDING}"), expected, mean=2.5, worst=4, fraction=0.03
    )


@pytest.mark.parametrize("n", [2, 3, 15, 16, 17, 100])
def test_surface_of_few_vertices(run, n):
    out = run("chapter08/vertex_interop", "--size", 20, "--vertices", n, "--frames", 2, status=0).out
    assert RIGHT["vertex_interop"].format(1) in out


def test_heat_tells_what_the_copies_cost(run):
    out = run("chapter08/heat", "--size", 256, "--frames", 3, status=0).out
    assert re.search(r"^Average Time per frame:  [\d.]+ ms$", out, re.M)
    mapped, copied = map(
        float,
        re.search(
            r"^From device to OpenGL:   ([\d.]+) ms by interop, ([\d.]+) ms through the host$", out, re.M
        ).groups(),
    )
    interop, host, ratio = map(
        float,
        re.search(
            r"^A whole frame: +([\d.]+) ms by interop, ([\d.]+) ms through the host, ratio ([\d.]+)$",
            out,
            re.M,
        ).groups(),
    )
    assert 0 < mapped < interop and 0 < copied < host and abs(ratio - host / interop) < 0.02


@pytest.mark.parametrize("name", PROGRAMS)
def test_injected_error(run, tmp_path, name):
    result = run(f"chapter08/{name}", "--size", 20, "--inject-error", "--output", f"x.{ENDING}", status=1)
    assert "OpenGL" not in result.err and "at exit" not in result.err


def start(folder, name, stderr):
    return subprocess.Popen(
        [helpers.BIN / f"chapter08/{name}", "--size", "64", "--frames", "1000000", "--output", f"x.{ENDING}"],
        cwd=folder,
        env=helpers.environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=stderr,
        preexec_fn=helpers.default_signals,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", ANIMATIONS)
def test_interrupt(tmp_path, name, number):
    """An interrupt during the animation, which has begun when progress is printed to the terminal. The progress must be
    read, or the program blocks."""
    master, slave = pty.openpty()
    process = start(tmp_path, name, slave)
    os.close(slave)
    err = b""
    try:
        while more := os.read(master, 4096):
            if b"frame" not in err and b"frame" in more:
                process.send_signal(number)
            err += more
    except OSError:  # the program has closed the terminal
        pass
    os.close(master)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert re.fullmatch(rb"(frame \d+ of 1000000\r)+\n", err)
    assert re.search(r"\(64x64, the last of \d+ frames?\)", out)


@pytest.mark.parametrize("name", ANIMATIONS)
def test_interrupt_at_any_time(tmp_path, name):
    """Before the animation begins, an interrupt ends the program at once, without a picture."""
    for wait in 0, 0.01, 0.03, 0.1, 0.3, 1:
        process = start(tmp_path, name, subprocess.PIPE)
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err, os.listdir(tmp_path)) in (
            (-signal.SIGINT, "", []),
            (130, "", [f"x.{ENDING}"]),
        )
        for file in tmp_path.iterdir():
            assert helpers.pixels(file).shape == (64, 64, 3)
            file.unlink()


@pytest.mark.backend("cpu")
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_opengl_at_all(run, tmp_path, name):
    """Without a window and without EGL: one line, status 2, no file."""
    result = run(
        f"chapter08/{name}",
        "--size",
        20,
        "--output",
        f"x.{ENDING}",
        status=2,
        env={"__EGL_VENDOR_LIBRARY_FILENAMES": "/nowhere"},
    )
    assert result.err == f"{name}: needs OpenGL: no window is open, and no device of EGL works\n"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_unwritable(run, tmp_path, name):
    (tmp_path / f"x.{ENDING}").symlink_to("/dev/full")
    result = run(f"chapter08/{name}", "--size", 200, "--output", f"x.{ENDING}", status=1)
    assert len(result.errors) == 1 and "No space left" in result.err


# ---- In a window


@needs_window
@pytest.mark.parametrize("how", ENDINGS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_window(window, name, how):
    w = window("--size", 300, program=f"chapter08/{name}")
    assert w.size == (300, 300)
    if name == "basic_interop":
        expected, limits = drawn(name, 300, 0)
        w.shows(expected, **limits)
    else:
        first = w.pixels()
        w.wait_for(lambda: (w.pixels() != first).any())
    ENDINGS[how](w)
    assert RIGHT[name].split("{")[0] in w.end()  # end() also checks that stderr is empty


@needs_window
@pytest.mark.parametrize("name", ANIMATIONS)
def test_frames_end_the_window(window, name):
    few = ["--iterations", 5] if name == "heat" else []  # short enough for sanitizers
    out = window(
        "--size", 300, "--frames", 300, *few, program=f"chapter08/{name}"
    ).end()  # long enough for the test to find the window
    assert RIGHT[name].format(299) in out


@needs_window
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", PROGRAMS)
def test_interrupt_of_a_window(window, name, number):
    w = window("--size", 300, program=f"chapter08/{name}")
    w.wait_for(lambda: w.pixels().any())  # the window appears before the first picture
    w.process.send_signal(number)
    assert RIGHT[name].split("{")[0] in w.end(128 + number)


@needs_window
def test_a_larger_window_shows_a_larger_picture(window):
    """glDrawPixels and a textured quad scale the picture to a window of twice the size."""
    for name in "basic_interop", "texture_interop":
        w = window(
            "--size",
            260,
            *([] if name == "basic_interop" else ["--frames", 100]),
            program=f"chapter08/{name}",
        )
        w.resize(520, 520)
        if name == "basic_interop":
            expected, limits = drawn(name, 260, 0)
            w.shows(enlarged(expected, 2), **limits)
            w.key("q")
        else:
            w.wait_for(
                lambda: w.pixels()[::2].any() and (w.pixels()[::2, ::2] == w.pixels()[1::2, 1::2]).all()
            )
        w.end()


@needs_window
@pytest.mark.backend("cpu")
@pytest.mark.parametrize("name", PROGRAMS)
def test_refused_in_a_window(window, monkeypatch, name):
    monkeypatch.setitem(
        os.environ, "CUDA_CPU_GL", "refuse"
    )  # helpers.environment() would remove it, see below
    monkeypatch.setattr(helpers, "PRIVATE", re.compile(r"DISPLAY$"))
    w = window("--size", 300, program=f"chapter08/{name}")
    if name == "basic_interop":
        expected, limits = drawn(name, 300, 0)
        w.shows(expected, **limits)
    w.key("q")
    out, err = w.process.communicate(timeout=30)
    assert w.process.returncode == 0 and re.fullmatch(REFUSED, err) and RIGHT[name].split("{")[0] in out


@needs_window
@pytest.mark.parametrize("options", [["-extension", "GLX"]], ids=["no GLX"])
def test_display_without_opengl(run, x_server, tmp_path, options):
    """A display without OpenGL: the picture is drawn through EGL and written to a file."""
    name, _ = x_server(*options, screen="640x480x24")
    result = run("chapter08/basic_interop", "--size", 100, status=0, env={"DISPLAY": name})
    assert len(result.errors) == 1 and result.err.startswith("basic_interop: no window: ")
    [file] = tmp_path.iterdir()
    expected, limits = drawn("basic_interop", 100, 0)
    helpers.compare("basic_interop", helpers.pixels(file), expected, **limits)
