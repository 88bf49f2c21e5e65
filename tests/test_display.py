# SPDX-License-Identifier: MIT
"""Animations in files, and windows on an X server that the tests start (Xvfb)."""
import contextlib
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
from PIL import Image, ImageSequence

import helpers
from formulas import julia, ray, red, spheres, turned
from test_common import gradient, on_terminal, preview

try:
    from Xlib import X, XK, display, error
    from Xlib.ext import xtest
    from Xlib.protocol import event
except ImportError:
    X = None

PICTURE = "tests/common/picture"

needs_webp = pytest.mark.skipif(not helpers.has("WEBP"), reason="needs a build with libwebp")
needs_ffmpeg = pytest.mark.skipif(not shutil.which("ffmpeg"), reason="needs ffmpeg, found none")
needs_window = pytest.mark.skipif(
    not (helpers.has("GLUT") and X and shutil.which("Xvfb")),
    reason="needs a build with freeglut, Xvfb and python3-xlib",
)

# Formats that hold all frames in one file. Videos reduce the resolution of the colours.
WEBP = [pytest.param("webp", marks=needs_webp)]
# GIF has 256 colours per frame; the largest of these pictures has 61103. With ffmpeg 5 the error is at most 24 (mean 3). From
# version 6 on ffmpeg selects colours perceptually: dark reds differ by up to 56 (mean 3.9).
GIF = {"mean": 4.5, "worst": 64}
EXACT = WEBP + [pytest.param(ending, marks=needs_ffmpeg) for ending in ("gif", "apng")]
VIDEOS = [pytest.param(ending, marks=needs_ffmpeg) for ending in ("mp4", "webm", "mkv", "mov", "avi", "mpg")]


def deadline(seconds=60):
    """for _ in deadline(): … repeats until break; after `seconds` it is an error."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.01)
    raise AssertionError(f"not after {seconds} s")


@pytest.fixture
def draw(run):
    """draw("--output", "x.webp", …) runs tests/common/picture."""

    def draw(*args, status=0, **more):
        return run(PICTURE, "draw", "--", *args, status=status, **more)

    return draw


def start(cwd, *args, env=None, **more):
    """Starts tests/common/picture in the background."""
    return subprocess.Popen(
        [helpers.BIN / PICTURE, "draw", "--", *map(str, args)],
        cwd=cwd,
        text=True,
        env=helpers.environment(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=helpers.default_signals,
        **more,
    )


def frames(path):
    """The frames of an animation: a list of arrays (height, width, 3), top row first."""
    if path.suffix in (".webp", ".gif", ".apng"):
        with Image.open(path) as picture:
            return [np.asarray(frame.convert("RGB")).astype(int) for frame in ImageSequence.Iterator(picture)]
    probe = subprocess.run(
        [
            "ffprobe",
            "-v",
            "error",
            "-select_streams",
            "v:0",
            "-show_entries",
            "stream=width,height",
            "-of",
            "csv=p=0",
            path,
        ],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    width, height = map(int, re.findall(r"\d+", probe.stdout)[:2])
    raw = subprocess.run(
        ["ffmpeg", "-v", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "pipe:1"],
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    return list(np.frombuffer(raw, np.uint8).reshape(-1, height, width, 3).astype(int))


def padded(image):
    """The picture padded with black to even sides, as in a video."""
    return np.pad(image, ((0, image.shape[0] % 2), (0, image.shape[1] % 2), (0, 0)))


# ---- Animations in files


@pytest.mark.parametrize("ending", EXACT)
@pytest.mark.parametrize("width, height", [(12, 8), (1, 1), (1, 9), (9, 1), (301, 203)])
def test_animation(draw, tmp_path, ending, width, height):
    result = draw("--animate", "--width", width, "--height", height, "--frames", 7, "--output", f"x.{ending}")
    assert (result.out, result.err) == (f"wrote x.{ending} ({width}x{height}, 7 frames)\n", "")
    assert os.listdir(tmp_path) == [f"x.{ending}"]
    got = frames(tmp_path / f"x.{ending}")
    assert len(got) == 7
    for ticks, frame in enumerate(got):
        expected = gradient(width, height, ticks)
        if ending == "gif":
            helpers.compare("gif", frame, expected, **GIF)
        else:
            assert (frame == expected).all()


@pytest.mark.parametrize("ending", VIDEOS)
@pytest.mark.parametrize("width, height", [(12, 8), (1, 1), (301, 203)])
def test_video(draw, tmp_path, ending, width, height):
    result = draw(
        "--animate", "--width", width, "--height", height, "--frames", 11, "--output", f"x.{ending}"
    )
    assert (result.out, result.err) == (f"wrote x.{ending} ({width}x{height}, 11 frames)\n", "")
    assert os.listdir(tmp_path) == [f"x.{ending}"]
    got = frames(tmp_path / f"x.{ending}")
    assert len(got) == 11
    for ticks in 0, 10:  # videos have one colour sample for 2 x 2 pixels, which distorts small pictures
        helpers.compare(
            ending,
            got[ticks],
            padded(gradient(width, height, ticks)),
            mean=6 if width > 100 else 60,
            worst=255,
        )


@pytest.mark.parametrize("ending", EXACT + VIDEOS)
def test_frames_that_are_alike_all_count(draw, tmp_path, ending):
    draw("--animate", "--still", "--frames", 6, "--width", 40, "--height", 30, "--output", f"x.{ending}")
    assert len(frames(tmp_path / f"x.{ending}")) == 6


@pytest.mark.parametrize("ending", EXACT + VIDEOS)
def test_runs_are_alike(draw, tmp_path, ending):
    for name in "ab":
        draw("--animate", "--frames", 5, "--width", 77, "--height", 33, "--output", f"{name}.{ending}")
    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


@pytest.mark.parametrize("ending", EXACT)
def test_a_still_is_one_frame(draw, tmp_path, ending):
    result = draw("--output", f"x.{ending}", "--width", 50, "--height", 20)
    assert result.out == f"wrote x.{ending} (50x20)\n"
    [frame] = frames(tmp_path / f"x.{ending}")
    helpers.compare(ending, frame, gradient(50, 20), **(GIF if ending == "gif" else {}))


@needs_webp
def test_sequence_of_a_format_that_moves(draw, tmp_path):
    result = draw("--animate", "--frames", 3, "--output", "f-%02d.webp")
    assert result.out == "wrote f-00.webp to f-02.webp (12x8)\n"
    for ticks in range(3):
        [frame] = frames(tmp_path / f"f-{ticks:02}.webp")
        assert (frame == gradient(12, 8, ticks)).all()


@needs_webp
def test_large_animation_is_stored_with_loss(draw, run, tmp_path):
    """If all frames compress as the first one does and fit into 5 MB, the file is lossless; otherwise it is lossy, and the
    program says so. A still is lossless at any size."""
    size = "--noise", "--width", 300, "--height", 200  # 240 KB per frame
    draw(*size, "--animate", "--frames", 15, "--output", "%02d.ppm")
    assert (
        draw(*size, "--animate", "--frames", 15, "--output", "x.webp").out
        == "wrote x.webp (300x200, 15 frames)\n"
    )
    for i, frame in enumerate(frames(tmp_path / "x.webp")):
        assert (frame == helpers.pixels(tmp_path / f"{i:02}.ppm")).all()
    assert (
        draw(*size, "--animate", "--frames", 40, "--output", "x.webp").out
        == "wrote x.webp (300x200, 40 frames, with loss)\n"
    )
    assert len(frames(tmp_path / "x.webp")) == 40
    draw("--noise", "--width", 1300, "--height", 1300, "--output", "x.webp")
    draw("--noise", "--width", 1300, "--height", 1300, "--output", "x.ppm")
    assert (tmp_path / "x.webp").stat().st_size > 5e6
    assert (helpers.pixels(tmp_path / "x.webp") == helpers.pixels(tmp_path / "x.ppm")).all()


@needs_webp
def test_loss_is_small(run, tmp_path):
    """The mean error is less than one level of 256; only few pixels, at the edges of the spheres, differ more."""
    result = run("chapter06/ray_animated", "--frames", 60, status=0)
    assert result.out.count("wrote ray_animated.webp (1024x1024, 60 frames, with loss)\n") == 1
    assert (tmp_path / "ray_animated.webp").stat().st_size < 5e6 / 2
    got = frames(tmp_path / "ray_animated.webp")
    assert len(got) == 60
    for ticks in 0, 37:
        helpers.compare(
            "loss", got[ticks], ray(turned(spheres(), ticks), 1024), mean=1, worst=40, fraction=0.001
        )


@needs_webp
def test_default_file(draw, tmp_path):
    """The default file is named after the program and has 120 frames."""
    assert draw("--animate").out == "wrote picture.webp (12x8, 120 frames)\n"
    got = frames(tmp_path / "picture.webp")
    assert len(got) == 120 and (got[119] == gradient(12, 8, 119) % 256).all()


def test_without_ffmpeg(draw, tmp_path):
    """Without ffmpeg, or with one that does not work, a format that needs it is refused."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for _ in range(2):
        result = draw("--animate", "--output", "x.gif", status=64, env={"PATH": str(tools)})
        assert (
            result.err == "picture: --output x.gif: needs ffmpeg, which is not installed (Debian: ffmpeg)\n"
        )
        (tools / "ffmpeg").write_text("#!/bin/sh\nexit 1\n")
        (tools / "ffmpeg").chmod(0o755)
    assert os.listdir(tmp_path) == ["tools"]


@pytest.mark.parametrize("ending", ["tiff", "mp3", "txt", "GIF8"])
def test_unknown_ending(draw, tmp_path, ending):
    result = draw("--animate", "--output", f"x.{ending}", status=64)
    assert len(result.errors) == 1 and f"--output x.{ending}: the name must end in .png, " in result.err
    assert os.listdir(tmp_path) == []


def test_no_frames(draw, tmp_path):
    result = draw("--animate", "--frames", 0, status=64)
    assert result.err == "picture: --frames 0: must be a whole number from 1 to 2147483647\n"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("output", ["missing/x.%s", "folder.%s", "file/x.%s"])
@pytest.mark.parametrize("ending", EXACT)
def test_unwritable(draw, tmp_path, ending, output):
    (tmp_path / f"folder.{ending}").mkdir()
    (tmp_path / "file").write_text("")
    result = draw("--animate", "--talk", "--output", output % ending, status=1)
    assert (
        len(result.errors) == 1
        and f"picture: cannot write {output % ending}: " in result.err
        and not result.out
    )
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", f"folder.{ending}"]


@pytest.mark.parametrize("ending", EXACT + VIDEOS)
def test_names_that_mean_something_to_ffmpeg(draw, tmp_path, ending):
    """Names with a colon, a leading dash, a per cent sign or blanks, which are not options or URLs for ffmpeg."""
    for name in f"http:a b.{ending}", f"-y.{ending}", f"50%.{ending}", f"a|b'c.{ending}":
        draw("--animate", "--frames", 2, "--width", 32, "--height", 32, f"--output={name}")
        assert os.listdir(tmp_path) == [name]
        (tmp_path / name).unlink()


@pytest.mark.parametrize("ending", EXACT)
def test_link_and_mode_stay(draw, tmp_path, ending):
    (tmp_path / "old").write_text("old")
    (tmp_path / "old").chmod(0o604)
    (tmp_path / f"x.{ending}").symlink_to("old")
    draw("--animate", "--frames", 2, "--output", f"x.{ending}")
    assert sorted(os.listdir(tmp_path)) == ["old", f"x.{ending}"]
    assert (tmp_path / f"x.{ending}").is_symlink() and (tmp_path / "old").stat().st_mode & 0o777 == 0o604
    assert len(frames(tmp_path / f"x.{ending}")) == 2


# ---- Full disk, and ffmpeg ends early


@pytest.mark.parametrize("ending", ["png", *EXACT, *VIDEOS])
def test_full_disk(draw, tmp_path, ending):
    """A limit on the file size stands for a full disk. Noise does not compress, so the file exceeds it."""
    if ending == "png" and not helpers.has("PNG"):
        pytest.skip("needs a build with libpng")
    for old in None, b"old":
        if old:
            (tmp_path / f"x.{ending}").write_bytes(old)
        result = draw(
            "--animate",
            "--noise",
            "--talk",
            "--frames",
            30,
            "--width",
            150,
            "--height",
            100,
            "--output",
            f"x.{ending}",
            status=1,
            limits={resource.RLIMIT_FSIZE: 20000},
        )
        assert len(result.errors) == 1 and f"picture: cannot write x.{ending}: " in result.err, str(result)
        assert result.out == ""
        assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == ({f"x.{ending}": old} if old else {})


@pytest.mark.parametrize("ending", EXACT)
def test_full_device(draw, tmp_path, ending):
    (tmp_path / f"x.{ending}").symlink_to("/dev/full")
    result = draw("--animate", "--frames", 5, "--output", f"x.{ending}", status=1)
    assert len(result.errors) == 1 and "No space left on device" in result.err, str(result)
    assert os.listdir(tmp_path) == [f"x.{ending}"] and os.path.exists("/dev/full")


# The script of a stand-in for ffmpeg, and the expected message
WAYS_TO_DIE = [
    ("head -c 100000 >/dev/null; echo 'out of ink' >&2; echo and more >&2; exit 3", "ffmpeg: out of ink"),
    ("head -c 100000 >/dev/null; exit 3", "ffmpeg: ended with status 3"),
    ("head -c 100000 >/dev/null; kill -9 $$", "ffmpeg: ended by signal 9"),
    ("head -c 100000 >/dev/null; exit 0", "ffmpeg: ended too early"),
    ("cat >/dev/null; exit 4", "ffmpeg: ended with status 4"),
    ("exit 5", "ffmpeg: ended with status 5"),
]


@pytest.mark.parametrize("script, says", WAYS_TO_DIE)
def test_ffmpeg_dies(draw, tmp_path, script, says):
    tools, folder = tmp_path / "tools", tmp_path / "folder"
    tools.mkdir()
    folder.mkdir()
    (tools / "ffmpeg").write_text(f"#!/bin/sh\n[ $# = 1 ] && exit\nPATH=/usr/bin:/bin\n{script}\n")
    (tools / "ffmpeg").chmod(0o755)
    result = draw(
        "--animate",
        "--talk",
        "--frames",
        30,
        "--width",
        100,
        "--height",
        100,
        "--output",
        "x.mp4",
        status=1,
        env={"PATH": str(tools)},
        cwd=folder,
    )
    assert (result.out, result.err) == ("", f"picture: cannot write x.mp4: {says}\n")
    assert os.listdir(folder) == []


def children(pid):
    """The child processes of a process. Reads /proc, because a minimal system has no ps."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = stat.read_text().rsplit(")", 1)[1].split()[1]
        except OSError:  # the process has ended meanwhile
            continue
        if int(parent) == pid:
            found.append(int(stat.parent.name))
    return found


@needs_ffmpeg
def test_ffmpeg_is_killed(tmp_path):
    process = start(tmp_path, "--animate", "--slow", "--frames", 10000, "--output", "x.mp4")
    for _ in deadline():
        if children(process.pid) and os.listdir(tmp_path):
            break
    time.sleep(0.2)  # skips the first run of ffmpeg, which only tests whether it works
    [child] = children(process.pid)
    os.kill(child, signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (
        1,
        "",
        "picture: cannot write x.mp4: ffmpeg: ended by signal 9\n",
    )
    assert os.listdir(tmp_path) == []


# ---- Interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("ending", EXACT + VIDEOS[:1])
def test_interrupt(tmp_path, ending, number):
    """The file is completed with the frames so far, the exit function runs, and the status names the signal. The signal goes
    to all processes of the group, as it does from the keyboard."""
    process = start(
        tmp_path,
        "--animate",
        "--slow",
        "--talk",
        "--width",
        64,
        "--height",
        64,
        "--frames",
        2000,
        "--output",
        f"x.{ending}",
    )
    time.sleep(1)
    os.killpg(process.pid, number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number, err
    assert os.listdir(tmp_path) == [f"x.{ending}"]
    got = frames(tmp_path / f"x.{ending}")
    assert 1 <= len(got) < 1000
    assert (out, err) == (
        f"wrote x.{ending} (64x64, {len(got)} frame{'s' * (len(got) > 1)})\nexit function\n",
        "",
    )
    if ending in ("webp", "apng"):
        assert (got[-1] == gradient(64, 64, len(got) - 1) % 256).all()


def test_interrupted_sequence(tmp_path):
    process = start(tmp_path, "--animate", "--slow", "--talk", "--frames", 100000, "--output", "%d.ppm")
    for _ in deadline():
        if len(os.listdir(tmp_path)) > 3:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    count = len(os.listdir(tmp_path))
    assert sorted(os.listdir(tmp_path)) == sorted(f"{i}.ppm" for i in range(count))
    assert (process.returncode, out, err) == (
        130,
        f"wrote 0.ppm to {count - 1}.ppm (12x8)\nexit function\n",
        "",
    )


def test_interrupted_before_the_last_frame_of_a_still(tmp_path):
    process = start(tmp_path, "--animate", "--slow", "--frames", 100000, "--output", "x.ppm")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    n = int(re.fullmatch(r"wrote x.ppm \(12x8, the last of (\d+) frames?\)\n", out)[1])
    assert (process.returncode, err) == (130, "")
    assert (helpers.pixels(tmp_path / "x.ppm") == gradient(12, 8, n - 1) % 256).all()


def test_a_wrong_result_is_not_hidden_by_an_interrupt(tmp_path):
    process = start(tmp_path, "--animate", "--slow", "--wrong", "--frames", 100000, "--output", "x.ppm")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 1


@pytest.mark.parametrize("ending", EXACT + VIDEOS[:1])
def test_second_interrupt_ends_at_once(tmp_path, ending):
    process = start(tmp_path, "--animate", "--hang", "--talk", "--frames", 100000, "--output", f"x.{ending}")
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (-signal.SIGINT, "", "")
    assert os.listdir(tmp_path) == []


# ---- On a terminal


@needs_webp
def test_preview_of_an_animation(tmp_path):
    shown = on_terminal(tmp_path, "--animate", "--frames", 5)
    assert shown.startswith("wrote picture.webp (12x8, 5 frames)\n")
    assert (preview(shown) == gradient(12, 8, 4)).all()


# ---- Windows


@pytest.fixture(scope="module")
def x_server():
    """x_server(*options) starts an X server, which ends with the tests. Returns its DISPLAY and its process."""
    with contextlib.ExitStack() as stack:

        def x_server(*options, screen="1280x1024x24"):
            read, write = os.pipe()
            process = subprocess.Popen(
                ["Xvfb", "-displayfd", str(write), "-screen", "0", screen, "-nolisten", "tcp", *options],
                pass_fds=[write],
                stderr=subprocess.DEVNULL,
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
            os.close(write)
            with os.fdopen(read) as pipe:
                number = pipe.readline().strip()
            assert number, "Xvfb did not start"
            return f":{number}", process

        yield x_server


@pytest.fixture(scope="module")
def screen(x_server):
    """The DISPLAY of the X server that these tests share."""
    return x_server()[0]


class Window:
    """The window of a program, with the actions of a user and of a window manager."""

    def __init__(self, name, program, args, cwd):
        # Leaks and races inside Mesa and Xlib are not faults of the suite.
        env = {
            "DISPLAY": name,
            "LSAN_OPTIONS": "detect_leaks=0",
            "TSAN_OPTIONS": "ignore_noninstrumented_modules=1",
        }
        self.process = subprocess.Popen(
            [helpers.BIN / program, *map(str, args)],
            cwd=cwd,
            env=helpers.environment(env),
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=helpers.default_signals,
        )
        self.display = display.Display(name)
        self.root = self.display.screen().root
        for _ in deadline():
            assert self.process.poll() is None, "".join(self.process.communicate())
            windows = [
                w for w in self.root.query_tree().children if w.get_attributes().map_state == X.IsViewable
            ]
            if windows:
                break
        [self.window] = windows
        self.window.configure(x=10, y=20)  # placed as by a window manager, which Xvfb lacks
        self.wait_for(lambda: self.geometry()[:2] == (10, 20))

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.communicate()
        with contextlib.suppress(error.ConnectionClosedError):
            self.display.close()

    def wait_for(self, condition):
        for _ in deadline(20):
            if condition():
                return

    def geometry(self):
        g = self.window.get_geometry()
        return g.x + g.border_width, g.y + g.border_width, g.width, g.height

    @property
    def size(self):
        return self.geometry()[2:]

    @property
    def title(self):
        return self.window.get_wm_name()

    def pixels(self):
        width, height = self.size
        data = self.window.get_image(0, 0, width, height, X.ZPixmap, 0xFFFFFFFF).data
        return np.frombuffer(data, np.uint8).reshape(height, width, 4)[:, :, 2::-1].astype(int)

    def shows(self, expected, **limits):
        """Waits until the window shows the picture, which takes a moment after it has opened or changed."""
        end = time.monotonic() + 10
        while True:
            try:
                return helpers.compare("window", self.pixels(), expected, **limits)
            except AssertionError:
                if time.monotonic() > end:
                    raise
            time.sleep(0.05)

    def resize(self, width, height):
        self.window.configure(width=width, height=height)
        self.wait_for(lambda: self.size == (width, height))

    def point(self, x, y):
        """Moves the mouse pointer to a pixel of the window."""
        left, top = self.geometry()[:2]
        xtest.fake_input(self.display, X.MotionNotify, x=left + x, y=top + y)
        self.display.sync()

    def button(self, down, number=1):
        xtest.fake_input(self.display, X.ButtonPress if down else X.ButtonRelease, number)
        self.display.sync()

    def key(self, name):
        self.point(5, 5)  # keys go to the window under the mouse
        code = self.display.keysym_to_keycode(XK.string_to_keysym(name))
        xtest.fake_input(self.display, X.KeyPress, code)
        xtest.fake_input(self.display, X.KeyRelease, code)
        self.display.sync()

    def close(self):
        """Sends the message that a window manager sends when the close button is pressed."""
        message = event.ClientMessage(
            window=self.window,
            client_type=self.display.intern_atom("WM_PROTOCOLS"),
            data=(32, [self.display.intern_atom("WM_DELETE_WINDOW"), X.CurrentTime, 0, 0, 0]),
        )
        self.window.send_event(message)
        self.display.sync()

    def line(self):
        return self.process.stdout.readline()

    def end(self, status=0):
        out, err = self.process.communicate(timeout=30)
        if (
            helpers.backend() == "gpu"
        ):  # a virtual X server often has Mesa's OpenGL, which CUDA cannot use; the program says so
            err = re.sub(
                r"^\w+: CUDA cannot use this OpenGL \(cuda\w+\): copying through the host\n", "", err
            )
        assert (self.process.returncode, err) == (status, ""), out
        with pytest.raises(error.BadDrawable):
            self.window.get_geometry()
        return out


ENDINGS = {"Esc": lambda w: w.key("Escape"), "q": lambda w: w.key("q"), "close button": lambda w: w.close()}


@pytest.fixture
def window(screen, tmp_path):
    """window("--animate", …) starts tests/common/picture, or another program, in a window."""
    with contextlib.ExitStack() as stack:

        def window(*args, program=PICTURE, name=screen):
            args = ["draw", "--", *args] if program == PICTURE else args
            return stack.enter_context(Window(name, program, args, tmp_path))

        yield window
    assert os.listdir(tmp_path) == []


def enlarged(image, factor):
    return image.repeat(factor, axis=0).repeat(factor, axis=1)


@needs_window
@pytest.mark.parametrize("how", ENDINGS)
@pytest.mark.parametrize("kind", [[], ["--animate", "--still"]], ids=["still", "animation"])
def test_window(window, kind, how):
    w = window(*kind, "--talk", "--width", 300, "--height", 200)
    assert w.size == (300, 200)
    w.shows(gradient(300, 200))
    assert w.title.split(":")[0] == "picture"
    ENDINGS[how](w)
    assert w.end() == "exit function\n"


@needs_window
def test_impatient_user(window):
    """Several requests to close the window at the same time, while a frame is drawn."""
    for ways in (["Esc"] * 3, ["Esc", "close button", "q"], ["close button"] * 2, ["close button", "q"]):
        w = window("--animate", "--slow", "--talk")
        w.display.sync = w.display.flush  # so the requests are sent without waiting for an answer
        for way in ways:
            ENDINGS[way](w)
        del w.display.sync
        assert w.end() == "exit function\n"


@needs_window
def test_status_of_a_wrong_result_is_kept(window):
    w = window("--wrong", "--talk")
    w.close()
    out, err = w.process.communicate(timeout=30)
    assert w.process.returncode == 1 and out == "exit function\n" and "expected !wrong" in err


@needs_window
def test_window_of_julia(window):
    w = window("--size", 200, program="chapter04/julia_gpu")
    limits = {} if helpers.backend() == "cpu" else dict(mean=0.5, fraction=0.006)
    w.shows(red(julia(size=200)), **limits)
    w.key("q")
    assert re.fullmatch(r"\d+ of 40000 pixels are in the set; .*\n", w.end())


@needs_window
def test_window_of_an_animated_julia(window):
    w = window("--animate", "--size", 64, program="chapter04/julia_gpu")
    first = w.pixels()
    w.wait_for(lambda: (w.pixels() != first).any())
    w.key("Escape")
    w.end()


@needs_window
def test_space_stops_the_spheres(window):
    """The space key stops the animation between two frames; pressed again, it continues."""

    def rests():
        before = w.pixels()
        time.sleep(0.3)
        return (w.pixels() == before).all()

    w = window("--size", 256, program="chapter06/ray_animated")
    assert not rests()
    w.key("space")
    w.wait_for(rests)
    stopped = w.pixels()
    assert min(np.abs(ray(turned(spheres(), ticks), 256) - stopped).mean() for ticks in range(120)) < 0.01
    w.key("space")
    w.wait_for(lambda: (w.pixels() != stopped).any())
    w.key("q")
    assert re.search(r"^Average Time per frame: ", w.end(), re.M)


@needs_window
def test_title_tells_the_frame_rate(window):
    w = window("--animate")
    rate = r"picture: ([\d.]+) frames/s"
    w.wait_for(lambda: re.fullmatch(rate, w.title))
    time.sleep(1)
    assert float(re.fullmatch(rate, w.title)[1]) < 66
    w.key("q")
    w.end()
    w = window()
    time.sleep(1)
    assert w.title == "picture"
    w.key("q")
    w.end()


@needs_window
def test_resizing_keeps_the_aspect(window):
    w = window("--width", 30, "--height", 20)
    assert w.size == (240, 160)  # a small picture is enlarged, here eight times
    picture = gradient(30, 20)
    w.shows(enlarged(picture, 8))
    for width, height, factor in (400, 160, 8), (240, 300, 8), (300, 200, 10), (30, 20, 1), (600, 100, 5):
        w.resize(width, height)
        expected = np.zeros((height, width, 3), int)
        inner = enlarged(picture, factor)
        # When the margin is odd, the extra pixel is at the right and at the top.
        left, top = (width - inner.shape[1]) // 2, height - inner.shape[0] - (height - inner.shape[0]) // 2
        expected[top : top + inner.shape[0], left : left + inner.shape[1]] = inner
        w.shows(expected)
    w.resize(1, 1)
    w.resize(73, 41)  # the scale is not a whole number: 61.5 x 41 pixels
    w.wait_for(
        lambda: (w.pixels()[:, 6:67].max(axis=(0, 2)) > 0).all()
        and not w.pixels()[:, :5].any()
        and not w.pixels()[:, 68:].any()
    )
    w.key("q")
    w.end()


@needs_window
def test_large_picture_fits_the_screen(window):
    w = window("--width", 3000, "--height", 1000)
    assert w.size == (1152, 384)  # nine tenths of the screen's width, 1280
    # one pixel of 2.6 is drawn
    w.shows(gradient(1152, 384), mean=1, worst=2)
    w.key("q")
    w.end()


@needs_window
def test_drag(window):
    w = window("--animate", "--width", 400, "--height", 300)
    w.point(100, 50)
    w.button(True)
    assert w.line() == "drag 100 249 100 249\n"
    w.point(150, 40)
    assert w.line() == "drag 100 249 150 259\n"
    w.point(900, 320)  # outside the picture
    assert w.line() == "drag 100 249 399 0\n"
    w.button(False)
    assert w.line() == "drag 100 249 399 0\n"
    w.point(20, 20)  # no button pressed
    w.button(True, 3)
    w.point(30, 30)  # another button pressed
    w.button(False, 3)
    w.resize(800, 900)  # the picture is scaled by 2, with bars of 150 pixels above and below
    w.shows(np.zeros((900, 800, 3), int), worst=255, mean=255)
    w.wait_for(lambda: not w.pixels()[:149].any() and w.pixels()[151].any())
    w.point(200, 150)
    w.button(True)
    assert w.line() == "drag 100 299 100 299\n"
    w.point(201, 10)
    assert w.line() == "drag 100 299 100 299\n"
    w.point(799, 749)
    assert w.line() == "drag 100 299 399 0\n"
    w.button(False)
    assert w.line() == "drag 100 299 399 0\n"
    w.key("Escape")
    assert w.end() == ""


@needs_window
def test_dragging_moves_the_ripple(window):
    """The rings are centred at the last position of the drag. The program itself checks its last frame."""
    w = window("--size", 256, program="chapter05/ripple")

    def rings_about(x, y):
        part = w.pixels()[y - 30 : y + 31, x - 30 : x + 31]
        return (
            (part == part[::-1, ::-1]).all()
            and (part == part.transpose(1, 0, 2)).all()
            and (part[30] != part[30, 0]).any()
        )

    w.wait_for(lambda: rings_about(128, 127))  # rows count from below, where the centre is at 128
    for x, y in (40, 200), (210, 60):
        w.point(100, 50)
        w.button(True)
        w.point(x, y)
        w.button(False)
        w.wait_for(lambda: rings_about(x, y))
    w.key("q")
    assert re.fullmatch(r"Frame \d+ is right\.\n", w.end())


@needs_window
def test_drag_over_a_still_does_nothing(window):
    w = window()
    w.point(10, 10)
    w.button(True)
    w.point(50, 50)
    w.button(False)
    w.key("a")
    w.key("q")
    assert w.end() == ""


@needs_window
def test_keys_of_the_program(window):
    w = window("--animate", "--still", "--width", 300, "--height", 200)
    w.shows(gradient(300, 200))
    w.key("space")
    assert w.line() == "key 32\n"
    w.shows(gradient(300, 200, 20))
    w.key("q")
    assert w.end() == ""


@needs_window
def test_frames_that_are_asked_for_end_the_window(window):
    w = window("--animate", "--slow", "--talk", "--frames", 60)
    start = time.monotonic()
    assert w.end() == "exit function\n"
    assert time.monotonic() - start < 20


@needs_window
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("kind", [[], ["--animate"]], ids=["still", "animation"])
def test_interrupt_of_a_window(window, kind, number):
    w = window("--talk", *kind)
    w.process.send_signal(number)
    assert w.end(128 + number) == "exit function\n"


@needs_window
def test_x_server_goes_away(window, x_server):
    name, process = x_server()
    w = window("--animate", name=name)
    process.terminate()
    process.wait()
    out, err = w.process.communicate(timeout=30)
    assert w.process.returncode == 1 and err


@needs_window
@pytest.mark.parametrize("args", [["--no-window"], ["--output", "picture.ppm"]], ids=" ".join)
def test_no_window_although_there_could_be_one(draw, screen, tmp_path, args):
    result = draw(*args, env={"DISPLAY": screen})
    assert result.out.startswith("wrote picture.p") and not result.err
    assert len(os.listdir(tmp_path)) == 1


def test_dead_display(draw, tmp_path):
    """Without a working display one line is printed and a file is written; with --window it is an error."""
    env = {"DISPLAY": ":9999"}
    result = draw("--animate", "--frames", 3, "--talk", env=env)
    why = (
        "failed to open display ':9999'"
        if helpers.has("GLUT")
        else "built without freeglut (Debian: freeglut3-dev)"
    )
    assert result.err == f"picture: no window: {why}; writing a file\n"
    assert re.fullmatch(
        r"wrote picture\.\w+ \(12x8, .*3 frames\)\n(for all frames in one file, .*\n)?exit function\n",
        result.out,
    )
    [file] = os.listdir(tmp_path)
    result = draw("--animate", "--window", "--talk", env=env, status=64)
    assert (result.out, result.err) == ("", f"picture: --window: {why}\n")
    assert os.listdir(tmp_path) == [file]
    assert draw("--no-window", "--talk", env=env).err == ""


@needs_window
@pytest.mark.parametrize(
    "options, screen_size",
    [(["-extension", "GLX"], "640x480x24"), ([], "640x480x8")],
    ids=["no GLX", "8 bits"],
)
def test_display_without_opengl(draw, x_server, options, screen_size):
    name, _ = x_server(*options, screen=screen_size)
    result = draw("--talk", env={"DISPLAY": name})
    assert (
        len(result.errors) == 1
        and result.err.startswith("picture: no window: ")
        and result.err.endswith("; writing a file\n")
    )
    assert result.out.startswith("wrote picture.p") and result.out.endswith("exit function\n")
    result = draw("--window", "--talk", env={"DISPLAY": name}, status=64)
    assert len(result.errors) == 1 and result.err.startswith("picture: --window: ")
