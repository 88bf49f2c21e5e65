# SPDX-License-Identifier: MIT
"""Windows on an X server that the tests start (Xvfb): a fixture `window`, with the actions of a user and of a window manager."""
import contextlib
import os
import re
import shutil
import subprocess
import time

import numpy as np
import pytest

import helpers

try:
    from Xlib import X, XK, display, error
    from Xlib.ext import xtest
    from Xlib.protocol import event
except ImportError:
    X = None

PICTURE = "tests/common/picture"
ENDINGS = {"Esc": lambda w: w.key("Escape"), "q": lambda w: w.key("q"), "close button": lambda w: w.close()}

needs_window = pytest.mark.skipif(
    not (helpers.has("GLUT") and X and shutil.which("Xvfb")),
    reason="needs a build with freeglut, Xvfb and python3-xlib",
)


@pytest.fixture(scope="module")
def x_server():
    """x_server(*options) starts an X server, which ends with the tests. Returns its DISPLAY and its process."""
    with contextlib.ExitStack() as stack:

        def x_server(*options, screen="1280x1024x24"):
            read, write = os.pipe()
            command = ["Xvfb", "-displayfd", str(write), "-screen", "0", screen, "-nolisten", "tcp", *options]
            process = subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL)
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


@pytest.fixture
def window(screen, tmp_path):
    """window("--animate", …) starts tests/common/picture, or another program, in a window. No program leaves a file."""
    with contextlib.ExitStack() as stack:

        def window(*args, program=PICTURE, name=screen):
            return stack.enter_context(Window(name, program, args, tmp_path))

        yield window
    assert os.listdir(tmp_path) == []


class Window:
    """The window of a program."""

    def __init__(self, name, program, args, cwd):
        # Leaks and races inside Mesa and Xlib are not faults of the suite.
        quiet = {"LSAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "ignore_noninstrumented_modules=1"}
        self.process = helpers.start(program, args, cwd, {"DISPLAY": name, **quiet})
        self.display = display.Display(name)
        self.root = self.display.screen().root

        def viewable():
            assert self.process.poll() is None, "".join(self.process.communicate())
            there = self.root.query_tree().children
            return [w for w in there if w.get_attributes().map_state == X.IsViewable]

        [self.window] = helpers.wait_for(viewable)
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
        helpers.wait_for(condition, 20)

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

    def still(self):
        """Waits until a picture that does not move is complete: the server may have drawn a part. Returns its pixels."""
        shots = [self.pixels(), 0]
        while np.any(shots[0] != shots[1]):
            time.sleep(0.2)
            shots = [self.pixels(), shots[0]]
        return shots[0]

    def moves(self):
        """Waits until the picture changes."""
        first = self.pixels()
        self.wait_for(lambda: (self.pixels() != first).any())

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
        protocols, delete = map(self.display.intern_atom, ("WM_PROTOCOLS", "WM_DELETE_WINDOW"))
        data = 32, [delete, X.CurrentTime, 0, 0, 0]
        self.window.send_event(event.ClientMessage(window=self.window, client_type=protocols, data=data))
        self.display.sync()

    def line(self):
        return self.process.stdout.readline()

    def end(self, status=0, says=""):
        """Waits for the end of the program, whose stderr is the pattern `says`. Returns its stdout."""
        out, err = self.process.communicate(timeout=30)
        if helpers.backend() == "gpu":  # a virtual X server often has Mesa's OpenGL, which CUDA cannot use
            refused = r"^\w+: CUDA cannot use this OpenGL \(cuda\w+\): copying through the host\n"
            err = re.sub(refused, "", err)
        assert self.process.returncode == status and re.fullmatch(says, err), err + out
        with pytest.raises(error.BadDrawable):
            self.window.get_geometry()
        return out


def enlarged(image, factor):
    return image.repeat(factor, axis=0).repeat(factor, axis=1)
