# SPDX-License-Identifier: MIT
"""common/: its unit tests in C and CUDA (tests/common), picture files, sequences, the preview on a terminal, and text from outside."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios

import numpy as np
import pytest

import helpers

PICTURE = "tests/common/picture"
ENDING = helpers.ending()


@pytest.fixture
def draw(run):
    """draw("--output", "x.png", …) runs tests/common/picture."""

    def draw(*args, status=0, **more):
        return run(PICTURE, *args, status=status, **more)

    return draw


def gradient(width, height, ticks=0):
    """The picture that tests/common/picture draws, top row first as in a file."""
    image = np.zeros((height, width, 3), int)
    image[:, :, 0] = np.arange(width) * 255 // width
    image[:, :, 1] = (np.arange(height) * 255 // height)[::-1, None]
    image[:, :, 2] = ticks * 10 % 256
    return image


def test_unit(unit, run):
    """Each program of tests/common runs its cases in child processes."""
    run(unit, status=0, timeout=300)


def test_files(draw, tmp_path):
    for ending in {"ppm", "PPM", ENDING, ENDING.upper()}:
        for width, height in (1, 1), (7, 300), (300, 7):
            result = draw("--width", width, "--height", height, "--output", f"x.{ending}")
            assert (result.out, result.err) == (f"wrote x.{ending} ({width}x{height})\n", "")
            assert os.listdir(tmp_path) == [f"x.{ending}"]
            assert (helpers.pixels(tmp_path / f"x.{ending}") == gradient(width, height)).all()
        (tmp_path / f"x.{ending}").unlink()
    assert draw().out == f"wrote picture.{ENDING} (12x8)\n"
    assert (helpers.pixels(tmp_path / f"picture.{ENDING}") == gradient(12, 8)).all()


def test_sequence(draw, tmp_path):
    result = draw("--animate", "--frames", 9, "--output", f"f-%03d.{ENDING}")
    assert (result.out, result.err) == (f"wrote f-000.{ENDING} to f-008.{ENDING} (12x8)\n", "")
    assert sorted(os.listdir(tmp_path)) == [f"f-{i:03}.{ENDING}" for i in range(9)]
    for i in range(9):
        assert (helpers.pixels(tmp_path / f"f-{i:03}.{ENDING}") == gradient(12, 8, i)).all()
    result = draw("--animate", "--frames", 9, "--output", f"last.{ENDING}")
    assert result.out == f"wrote last.{ENDING} (12x8, the last of 9 frames)\n"
    assert (tmp_path / f"last.{ENDING}").read_bytes() == (tmp_path / f"f-008.{ENDING}").read_bytes()
    draw("--output", "still-%d.ppm")
    assert (helpers.pixels(tmp_path / "still-0.ppm") == gradient(12, 8)).all()


# ---- On a terminal


def on_terminal(cwd, *args, lines=24, columns=80, env=None, stderr=False):
    """Runs tests/common/picture with stdout (or stderr) on a terminal of that size. Returns the text on the terminal."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    usual = dict(TERM="xterm", COLORTERM="truecolor", LC_ALL="C.UTF-8", NO_COLOR="", LINES="")
    ends = {"stdout": subprocess.DEVNULL, "stderr": slave} if stderr else {"stdout": slave}
    process = helpers.start(PICTURE, args, cwd, usual | (env or {}), **ends)
    shown, readable = b"", lambda seconds: select.select([master], [], [], seconds)[0]
    while process.poll() is None or readable(0):
        if readable(0.02):
            shown += os.read(master, 65536)
    os.close(slave)  # only now: Linux may drop what was written just before the last end is closed
    os.close(master)
    assert process.returncode == 0
    return shown.decode().replace("\r\n", "\n")


CELL = re.compile(r"\x1b\[38;2;(\d+);(\d+);(\d+)m(?:\x1b\[48;2;(\d+);(\d+);(\d+)m)?\u2580")


def preview(shown):
    """The colours of a preview: an array (rows, columns, 3) with two rows per line of text."""
    rows = []
    for line in shown.splitlines()[1:]:
        cells = CELL.findall(line)
        assert CELL.sub("", line) == "\x1b[0m", repr(line)
        rows.append([cell[:3] for cell in cells])
        if cells[0][3]:
            rows.append([cell[3:] for cell in cells])
    return np.array(rows, int)


# Size of the picture, size of the terminal (columns, lines), expected size of the preview (rows, columns)
@pytest.mark.parametrize(
    "size, terminal, expected",
    [
        ((160, 40), (80, 24), (20, 80)),
        ((1000, 100), (200, 60), (8, 80)),  # 80 columns at most
        ((300, 300), (80, 24), (44, 44)),  # two lines are left for other text
        ((5, 3), (80, 24), (3, 5)),  # an odd number of rows; small pictures are not enlarged
        ((700, 3), (80, 24), (1, 80)),
        ((50, 50), (1, 1), (1, 1)),
        ((64, 64), (0, 0), (44, 44)),  # a terminal of unknown size
    ],
)
def test_preview(tmp_path, size, terminal, expected):
    size_options = "--width", size[0], "--height", size[1]
    shown = on_terminal(tmp_path, *size_options, columns=terminal[0], lines=terminal[1])
    colours = preview(shown)
    assert shown.startswith(f"wrote picture.{ENDING} ({size[0]}x{size[1]})\n")
    assert colours.shape == (*expected, 3)
    # Each cell has the mean colour of its part of the picture, so the preview has the same mean as the picture.
    picture = gradient(*size)
    assert np.abs(colours.mean(axis=(0, 1)) - picture.mean(axis=(0, 1))).max() < 3
    if size == (160, 40):
        means = picture.reshape(20, 2, 80, 2, 3).mean(axis=(1, 3))
        assert np.abs(colours - means).max() <= 0.5
    if size == (5, 3):
        assert (colours == picture).all()


def test_preview_environment(tmp_path):
    """Size, colours and locale of the terminal."""
    square = "--width", 64, "--height", 64
    for env, size in ({"COLUMNS": "30", "LINES": "10"}, 16), ({"COLUMNS": "x", "LINES": "-3"}, 44):
        shown = on_terminal(tmp_path, *square, columns=0, lines=0, env=env)
        assert preview(shown).shape == (size, size, 3)
    for env in {"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}, {"COLORTERM": "no", "TERM": "vt100"}:
        assert on_terminal(tmp_path, env=env) == f"wrote picture.{ENDING} (12x8)\n"
    for env in {"COLORTERM": "24bit"}, {"TERM": "screen-256color"}, {"LC_ALL": "", "LC_CTYPE": "C.UTF-8"}:
        assert (preview(on_terminal(tmp_path, env=env)) == gradient(12, 8)).all()


def test_preview_with_few_colours(tmp_path):
    """The nearest colours of a cube of 6 x 6 x 6."""
    env = {"COLORTERM": "", "TERM": "xterm-256color"}
    shown = on_terminal(tmp_path, "--width", 64, "--height", 40, env=env)
    levels, picture = np.array([0, 95, 135, 175, 215, 255]), gradient(64, 40)
    lines = shown.splitlines()[1:]
    rows = [re.findall(rf"\x1b\[{plane}8;5;(\d+)m", line) for line in lines for plane in (3, 4)]
    index = np.array(rows, int) - 16
    assert index.shape == (40, 64) and "[38;2;" not in shown and "[48;2;" not in shown
    assert index.min() >= 0 and index.max() < 216
    colours = levels[np.stack([index // 36, index // 6 % 6, index % 6], axis=2)]
    nearest = np.abs(picture[..., None] - levels).min(axis=3)
    assert (np.abs(colours - picture) == nearest).all()


@pytest.mark.parametrize("env", [{"LC_ALL": "C"}, {"LC_ALL": "xx_XX.ISO-8859-1", "LANG": "C.UTF-8"}])
def test_preview_without_utf_8(tmp_path, env):
    """There are no half blocks: the preview consists of spaces, with half the vertical resolution."""
    shown = on_terminal(tmp_path, "--width", 40, "--height", 20, env=env)
    assert shown.isascii()
    lines = [re.findall(r"\x1b\[48;2;(\d+);(\d+);(\d+)m ", line) for line in shown.splitlines()[1:]]
    colours = np.array(lines, int)
    assert colours.shape == (10, 40, 3)
    assert np.abs(colours - gradient(40, 20).reshape(10, 2, 40, 3).mean(axis=1)).max() <= 0.5
    large = on_terminal(tmp_path, "--width", 300, "--height", 300, columns=20, lines=9, env=env)
    small = large.splitlines()[1:]
    assert len(small) <= 7 and all(line.count(" ") <= 20 for line in small)


def test_progress(tmp_path):
    shown = on_terminal(tmp_path, "--animate", "--frames", 3, stderr=True)
    assert shown == "frame 1 of 3\rframe 2 of 3\rframe 3 of 3\n"


# ---- Signals, lost messages


@pytest.mark.skipif(ENDING != "png", reason="needs a build with libpng")
def test_a_signal_that_is_ignored(tmp_path):
    """As under nohup, it does not end the program while a file is written. tests/common/image.c tries the others."""
    options = ["--noise", "--width", "2000", "--height", "2000", "--output", "x.png"]
    ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
    process = helpers.start(PICTURE, options, tmp_path, preexec_fn=ignore)
    helpers.wait_for(lambda: os.listdir(tmp_path) or process.poll() is not None)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    assert os.listdir(tmp_path) == ["x.png"]
    assert process.returncode == 0 and helpers.pixels(tmp_path / "x.png").shape == (2000, 2000, 3)


def test_pictures_are_opaque(draw, tmp_path):
    """The default format stores no transparency."""
    for name in "a.ppm", f"b.{ENDING}":
        draw("--noise", "--output", name)
    assert helpers.Image.open(tmp_path / f"b.{ENDING}").mode == "RGB"
    assert (helpers.pixels(tmp_path / f"b.{ENDING}") == helpers.pixels(tmp_path / "a.ppm")).all()


# ---- Text from outside on a terminal

HOSTILE = "\x1b[31m\x07\n\u009b32m\u202e"


def test_lines_hold_no_control_characters(tmp_path):
    """Names and settings come from outside. What a terminal would act on becomes a question mark in every line, and the files
    have their names."""
    program, shown = tmp_path / f"pic{HOSTILE}ture", "?[31m???32m?"
    program.symlink_to(helpers.BIN / PICTURE)

    def run(*args, **env):
        result = helpers.execute(program, args, tmp_path, env=env)
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", result.out + result.err), repr(result)
        return result.out.splitlines() + result.errors

    output = f"a{HOSTILE}.ppm"
    assert run("--output", output) == [f"wrote a{shown}.ppm (12x8)"]
    assert (tmp_path / output).exists()
    if helpers.has("GLUT"):
        lines = run(DISPLAY=f"{HOSTILE}:")
        assert lines[0] == f"wrote pic{shown}ture.{ENDING} (12x8)"
        assert lines[1].startswith(f"pic{shown}ture: no window: ") and shown in lines[1][40:]


@pytest.mark.backend("cpu")
def test_settings_of_the_back_end_hold_no_control_characters(run):
    settings = "DEVICES WORKERS SCHEDULE STREAMS STRICT FILL CHECK WATCHDOG TIME_LIMIT"
    for name in settings.split():
        result = run("chapter04/julia_gpu", "--size", 8, status=1, env={f"CUDA_CPU_{name}": HOSTILE})
        says = f"cuda on the CPU: CUDA_CPU_{name}=?[31m???32m?: must be "
        assert len(result.errors) == 1 and result.err.startswith(says), repr(result)
