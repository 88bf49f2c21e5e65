# SPDX-License-Identifier: MIT
"""Animations in files, each format once, and windows, each kind once; tests/release tries the rest."""
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest

import helpers
from helpers import frames
from trees import stand_in
from test_common import draw, gradient, on_terminal, preview  # noqa: F401
from windows import PICTURE, enlarged, needs_window, screen, window, x_server  # noqa: F401

needs_webp = pytest.mark.skipif(not helpers.has("WEBP"), reason="needs a build with libwebp")
needs_ffmpeg = pytest.mark.skipif(not shutil.which("ffmpeg"), reason="needs ffmpeg, found none")

# Formats that hold all frames in one file. Videos reduce the resolution of the colours.
WEBP = [pytest.param("webp", marks=needs_webp)]
# GIF has 256 colours per frame; the largest of these pictures has 61103. With ffmpeg 5 the error is at most 24 (mean 3). From
# version 6 on ffmpeg selects colours perceptually: dark reds differ by up to 56 (mean 3.9).
GIF = {"mean": 4.5, "worst": 64}
EXACT = WEBP + [pytest.param(ending, marks=needs_ffmpeg) for ending in ("gif", "apng")]
VIDEOS = [pytest.param(ending, marks=needs_ffmpeg) for ending in ("mp4", "webm", "mkv", "mov", "avi", "mpg")]


def wait_until_caught(process, number):
    """Waits until the process has a handler for this signal, and half a second longer, in which it draws."""
    status = pathlib.Path(f"/proc/{process.pid}/status")
    caught = lambda: int(re.search(r"SigCgt:\s*(\w+)", status.read_text())[1], 16)  # noqa: E731
    helpers.wait_for(lambda: caught() >> (number - 1) & 1)
    time.sleep(0.5)


def padded(image):
    """The picture padded with black to even sides, as in a video."""
    return np.pad(image, ((0, image.shape[0] % 2), (0, image.shape[1] % 2), (0, 0)))


# ---- Animations in files


@pytest.mark.parametrize("ending", EXACT + VIDEOS)
def test_animation(draw, tmp_path, ending):
    """Odd sides and small ones, every frame, under a name that means something to ffmpeg. Videos have one colour sample for 2 x 2
    pixels, which distorts small pictures; their formats differ only in the codec, so one of them has all sizes.
    """
    name = f"http:a 50%b.{ending}"
    sizes = (301, 203), (1, 9), (12, 8), (1, 1), (9, 1)
    for width, height in sizes if ending in ("webp", "gif", "mp4") else sizes[:2]:
        result = draw("--animate", "--width", width, "--height", height, "--frames", 7, f"--output={name}")
        assert (result.out, result.err) == (f"wrote {name} ({width}x{height}, 7 frames)\n", "")
        assert os.listdir(tmp_path) == [name]
        got = frames(tmp_path / name)
        assert len(got) == 7
        limits = {"webp": {}, "apng": {}, "gif": GIF}.get(ending, dict(mean=6, worst=255))
        if limits and width < 301:
            limits = dict(mean=60, worst=255)
        for ticks, frame in enumerate(got):
            expected = gradient(width, height, ticks)
            expected = expected if ending in ("webp", "apng", "gif") else padded(expected)
            helpers.compare(ending, frame, expected, **limits)


@pytest.mark.parametrize("ending", EXACT + VIDEOS[:1])
def test_frames_that_are_alike_all_count(draw, tmp_path, ending):
    """Twice the same file; a symbolic link and the mode of the old file stay; a still is one frame."""
    for name in "ab":
        (tmp_path / name).write_text("old")
        (tmp_path / name).chmod(0o604)
        (tmp_path / f"{name}.{ending}").symlink_to(name)
        options = ["--animate", "--still", "--frames", 6, "--width", 40, "--height", 30]
        draw(*options, "--output", f"{name}.{ending}")
        assert len(frames(tmp_path / f"{name}.{ending}")) == 6
        mode = (tmp_path / name).stat().st_mode & 0o777
        assert (tmp_path / f"{name}.{ending}").is_symlink() and mode == 0o604
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() and len(os.listdir(tmp_path)) == 4
    if ending != "mp4":
        assert draw("--output", f"a.{ending}").out == f"wrote a.{ending} (12x8)\n"
        assert len(frames(tmp_path / f"a.{ending}")) == 1


@needs_webp
def test_large_animation_is_stored_with_loss(draw, tmp_path):
    """If all frames compress as the first one does and fit into 5 MB, the file is lossless; otherwise it is lossy, and the
    program says so. The default file is named after the program and has 120 frames."""
    size = "--noise", "--width", 300, "--height", 200  # 240 KB per frame
    for count, loss in (15, ""), (40, ", with loss"):
        out = draw(*size, "--animate", "--frames", count, "--output", "x.webp").out
        assert out == f"wrote x.webp (300x200, {count} frames{loss})\n"
        assert len(frames(tmp_path / "x.webp")) == count
        size_of_frame = (tmp_path / "x.webp").stat().st_size / count
        assert size_of_frame > 150_000 if not loss else size_of_frame < 100_000
    assert draw("--animate").out == "wrote picture.webp (12x8, 120 frames)\n"
    got = frames(tmp_path / "picture.webp")
    assert len(got) == 120 and (got[119] == gradient(12, 8, 119)).all()


def test_an_ffmpeg_that_does_not_work(draw, tmp_path):
    """With an ffmpeg that does not work, a format that needs it is refused. tests/common/options.c tries other bad formats."""
    stand_in(tmp_path / "tools", "ffmpeg", "exit 1")
    result = draw("--animate", "--output", "x.gif", status=64, env={"PATH": str(tmp_path / "tools")})
    needs = "needs ffmpeg, which is not installed (Debian: ffmpeg)"
    assert result.err == f"picture: --output x.gif: {needs}\n" and os.listdir(tmp_path) == ["tools"]


@pytest.mark.parametrize("ending", WEBP + VIDEOS[:1])
def test_unwritable(draw, tmp_path, ending):
    """A limit on the file size stands for a full disk. Noise does not compress, so the file exceeds it."""
    (tmp_path / f"folder.{ending}").mkdir()
    (tmp_path / f"full.{ending}").symlink_to("/dev/full")
    (tmp_path / f"old.{ending}").write_text("old")
    there = sorted(tmp_path.iterdir())
    command = "--animate", "--noise", "--talk", "--frames", 30, "--width", 150, "--height", 100, "--output"
    for name in "missing/x", "folder", "full", "old", "new":
        limits = {resource.RLIMIT_FSIZE: 20000} if name in ("old", "new") else {}
        result = draw(*command, f"{name}.{ending}", status=1, limits=limits)
        says = f"picture: cannot write {name}.{ending}: "
        assert len(result.errors) == 1 and says in result.err and not result.out, str(result)
        assert sorted(tmp_path.iterdir()) == there
    assert (tmp_path / f"old.{ending}").read_text() == "old"


# The script of a stand-in for ffmpeg, and the expected message
WAYS_TO_DIE = [
    ("head -c 100000 >/dev/null; echo 'out of ink' >&2; echo and more >&2; exit 3", "ffmpeg: out of ink"),
    ("head -c 100000 >/dev/null; kill -9 $$", "ffmpeg: ended by signal 9"),
    ("head -c 100000 >/dev/null; exit 0", "ffmpeg: ended too early"),
    ("cat >/dev/null; exit 4", "ffmpeg: ended with status 4"),
    ("exit 5", "ffmpeg: ended with status 5"),
]


def test_ffmpeg_dies(draw, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    command = "--animate", "--talk", "--frames", 30, "--width", 100, "--height", 100, "--output", "x.mp4"
    for script, says in WAYS_TO_DIE:
        stand_in(tmp_path / "tools", "ffmpeg", f"[ $# = 1 ] && exit\nPATH=/usr/bin:/bin\n{script}\n")
        result = draw(*command, status=1, env={"PATH": str(tmp_path / "tools")}, cwd=folder)
        assert (result.out, result.err) == ("", f"picture: cannot write x.mp4: {says}\n")
        assert os.listdir(folder) == []


# ---- Interrupts


SIGNALS = {"webp": signal.SIGINT, "mp4": signal.SIGTERM, "gif": signal.SIGHUP}


@pytest.mark.parametrize("ending", [*WEBP, VIDEOS[0], EXACT[1]])
def test_interrupt(tmp_path, ending):
    """The file is completed with the frames so far, the exit function runs, and the status names the signal. The signal goes
    to all processes of the group, as it does from the keyboard."""
    number = SIGNALS[ending]
    options = ["--animate", "--slow", "--talk", "--width", 64, "--height", 64, "--frames", 2000]
    process = helpers.start(PICTURE, [*options, "--output", f"x.{ending}"], tmp_path)
    wait_until_caught(process, number)
    helpers.wait_for(lambda: ending == "webp" or os.listdir(tmp_path))  # ffmpeg may start slowly
    os.killpg(process.pid, number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number, err
    assert os.listdir(tmp_path) == [f"x.{ending}"]
    got = frames(tmp_path / f"x.{ending}")
    assert 1 <= len(got) < 1000
    wrote = f"wrote x.{ending} (64x64, {len(got)} frame{'s' * (len(got) > 1)})"
    assert (out, err) == (f"{wrote}\nexit function\n", "")
    assert ending != "webp" or (got[-1] == gradient(64, 64, len(got) - 1)).all()


def test_interrupted_sequence(tmp_path):
    """A wrong result is not hidden by an interrupt."""
    for more, status in ([], 130), (["--wrong"], 1):
        options = "--animate", "--slow", "--talk", "--frames", 100000, "--output", "%d.ppm"
        process = helpers.start(PICTURE, [*options, *more], tmp_path)
        helpers.wait_for(lambda: len(os.listdir(tmp_path)) > 3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        count = len(os.listdir(tmp_path))
        assert sorted(os.listdir(tmp_path)) == sorted(f"{i}.ppm" for i in range(count))
        assert process.returncode == status and not err
        assert more or out == f"wrote 0.ppm to {count - 1}.ppm (12x8)\nexit function\n"
        for path in tmp_path.iterdir():
            path.unlink()


@needs_webp
def test_second_interrupt_ends_at_once(tmp_path):
    options = "--animate", "--hang", "--talk", "--frames", 100000, "--output", "x.webp"
    process = helpers.start(PICTURE, options, tmp_path)
    wait_until_caught(process, signal.SIGINT)
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (-signal.SIGINT, "", "")
    assert os.listdir(tmp_path) == []


@needs_webp
def test_preview_of_an_animation(tmp_path):
    shown = on_terminal(tmp_path, "--animate", "--frames", 5)
    assert shown.startswith("wrote picture.webp (12x8, 5 frames)\n")
    assert (preview(shown) == gradient(12, 8, 4)).all()


# ---- Windows


@needs_window
def test_window_of_a_still(window):
    """A small picture is enlarged; its shape is kept; a drag does nothing. When the margin is odd, the extra pixel is at the right and
    at the top."""
    w = window("--talk", "--width", 30, "--height", 20)
    assert w.size == (240, 160) and w.title == "picture"
    picture = gradient(30, 20)
    w.shows(enlarged(picture, 8))
    for width, height, factor in (400, 160, 8), (300, 203, 10), (30, 20, 1):
        w.resize(width, height)
        expected = np.zeros((height, width, 3), int)
        inner = enlarged(picture, factor)
        left, top = (width - inner.shape[1]) // 2, height - inner.shape[0] - (height - inner.shape[0]) // 2
        expected[top : top + inner.shape[0], left : left + inner.shape[1]] = inner
        w.shows(expected)
    w.button(True)
    w.button(False)
    w.key("a")
    w.close()
    assert w.end() == "exit function\n"


@needs_window
def test_window_of_an_animation(window):
    """The title tells the frame rate; keys and drags reach the program, in the coordinates of the picture."""
    w = window("--animate", "--still", "--width", 400, "--height", 300)
    w.shows(gradient(400, 300))
    w.point(100, 50)
    w.button(True)
    assert w.line() == "drag 100 249 100 249\n"
    w.point(900, 320)  # outside the picture
    assert w.line() == "drag 100 249 399 0\n"
    w.button(False)
    assert w.line() == "drag 100 249 399 0\n"
    w.key("space")
    assert w.line() == "key 32\n"
    w.shows(gradient(400, 300, 20))
    w.wait_for(lambda: re.fullmatch(r"picture: ([\d.]+) frames/s", w.title))
    w.key("Escape")
    assert w.end() == ""


FEWER = "A frame has 2 steps in place of 90, " if helpers.backend() == "cpu" else ""


@needs_window
@pytest.mark.parametrize(
    "name, says",
    [
        ("chapter07/heat_gmem", FEWER),  # so that ten frames a second are shown
        ("chapter07/heat_2d", FEWER),
        # c is near 0: a disc
        ("chapter04/julia_animated", r"1(3[89]|40)\d\d of 40000 pixels are in the set"),
        ("chapter06/ray_animated", ""),
    ],
)
def test_programs_follow_the_mouse(window, name, says):
    """The check knows of the drag."""
    w = window(program=name)
    w.moves()
    w.point(100, 100)
    w.button(True)
    w.moves()
    w.moves()
    w.key("Escape")
    assert re.search(says, w.end())


@needs_window
def test_interrupt_of_a_window(window, run, screen):
    """Also at once. The status of a wrong result is kept."""
    env = {"DISPLAY": screen, "LSAN_OPTIONS": "detect_leaks=0"}  # leaks inside Mesa
    run(PICTURE, "--interrupted", status=0, env=env)
    w = window("--talk", "--animate")
    w.process.send_signal(signal.SIGINT)
    assert w.end(130) == "exit function\n"
    w = window("--wrong", "--talk")
    w.close()
    assert w.end(1) == "exit function\n"


def test_no_window(draw, tmp_path):
    """Without a working display one line is printed and a file is written; with --window it is an error."""
    env = {"DISPLAY": ":9999"}
    result = draw("--animate", "--frames", 3, "--talk", env=env)
    built_without = "built without freeglut (Debian: freeglut3-dev)"
    why = "failed to open display ':9999'" if helpers.has("GLUT") else built_without
    assert result.err == f"picture: no window: {why}; writing a file\n"
    wrote = r"wrote picture\.\w+ \(12x8, .*3 frames\)\n(for all frames in one file, .*\n)?exit function\n"
    assert re.fullmatch(wrote, result.out)
    [file] = os.listdir(tmp_path)
    result = draw("--animate", "--window", "--talk", env=env, status=64)
    assert (result.out, result.err) == ("", f"picture: --window: {why}\n")
    assert os.listdir(tmp_path) == [file]
    for args in ["--no-window"], ["--output", "x.ppm"]:  # no window is tried
        assert draw(*args, env=env).err == ""
    if helpers.has("GLUT"):
        for unset in {}, {"DISPLAY": ""}:
            result = draw("--window", env=unset, status=64)
            assert result.err == "picture: --window: there is no display, DISPLAY is not set\n"
