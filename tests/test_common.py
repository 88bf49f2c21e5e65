# SPDX-License-Identifier: MIT
"""common/: picture files, sequences, the preview on a terminal, lines that every program prints, and the layout of the
sources."""
import collections
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time

import numpy as np
import pytest

import helpers

PICTURE = "tests/common/picture"
ENDING = helpers.ending()
needs_png = pytest.mark.skipif(ENDING != "png", reason="needs a build with libpng")


@pytest.fixture
def draw(run):
    """draw("--output", "x.png", …) runs tests/common/picture."""

    def draw(*args, status=0, **more):
        return run(PICTURE, "draw", "--", *args, status=status, **more)

    return draw


def gradient(width, height, ticks=0):
    """The picture that tests/common/picture draws, top row first as in a file."""
    image = np.zeros((height, width, 3), int)
    image[:, :, 0] = np.arange(width) * 255 // width
    image[:, :, 1] = (np.arange(height) * 255 // height)[::-1, None]
    image[:, :, 2] = ticks * 10
    return image


@pytest.mark.parametrize(
    "ending", ["ppm", "PPM", *(pytest.param(ending, marks=needs_png) for ending in ("png", "PNG"))]
)
@pytest.mark.parametrize("width, height", [(1, 1), (12, 8), (7, 300), (300, 7)])
def test_file(draw, tmp_path, ending, width, height):
    result = draw("--width", width, "--height", height, "--output", f"x.{ending}")
    assert result.out == f"wrote x.{ending} ({width}x{height})\n"
    assert result.err == ""
    assert os.listdir(tmp_path) == [f"x.{ending}"]
    assert (helpers.pixels(tmp_path / f"x.{ending}") == gradient(width, height)).all()


def test_default_file(draw, tmp_path):
    assert draw().out == f"wrote picture.{ENDING} (12x8)\n"
    assert (helpers.pixels(tmp_path / f"picture.{ENDING}") == gradient(12, 8)).all()


def test_animation(draw, tmp_path):
    result = draw("--animate", "--frames", 9, "--output", f"f-%03d.{ENDING}")
    assert result.out == f"wrote f-000.{ENDING} to f-008.{ENDING} (12x8)\n"
    assert result.err == ""
    assert sorted(os.listdir(tmp_path)) == [f"f-{i:03}.{ENDING}" for i in range(9)]
    for i in range(9):
        assert (helpers.pixels(tmp_path / f"f-{i:03}.{ENDING}") == gradient(12, 8, i)).all()
    result = draw("--animate", "--frames", 9, "--output", f"last.{ENDING}")
    assert result.out == f"wrote last.{ENDING} (12x8, the last of 9 frames)\n"
    assert (tmp_path / f"last.{ENDING}").read_bytes() == (tmp_path / f"f-008.{ENDING}").read_bytes()
    draw("--output", "still-%d.ppm")
    assert (helpers.pixels(tmp_path / "still-0.ppm") == gradient(12, 8)).all()


def on_terminal(cwd, *args, lines=24, columns=80, env=None, stderr=False):
    """Runs tests/common/picture with stdout (or stderr) on a terminal of that size. Returns the text on the terminal."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    env = helpers.environment(
        {
            "TERM": "xterm",
            "COLORTERM": "truecolor",
            "LC_ALL": "C.UTF-8",
            "NO_COLOR": "",
            "LINES": "",
            **(env or {}),
        }
    )
    process = subprocess.Popen(
        [helpers.BIN / PICTURE, "draw", "--", *map(str, args)],
        cwd=cwd,
        env=env,
        stdout=subprocess.DEVNULL if stderr else slave,
        stderr=slave if stderr else subprocess.PIPE,
    )
    os.close(slave)
    shown = b""
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:  # the program has closed its end
            break
        if not chunk:
            break
        shown += chunk
    os.close(master)
    assert process.wait(60) == 0
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
        ((12, 8), (80, 24), (8, 12)),  # small pictures are not enlarged
        ((160, 40), (80, 24), (20, 80)),
        ((1000, 100), (200, 60), (8, 80)),  # 80 columns at most
        ((300, 300), (80, 24), (44, 44)),  # two lines are left for other text
        ((300, 300), (20, 50), (20, 20)),
        ((5, 3), (80, 24), (3, 5)),  # an odd number of rows
        ((3, 700), (80, 24), (44, 1)),
        ((700, 3), (80, 24), (1, 80)),
        ((50, 50), (1, 1), (1, 1)),
        ((64, 64), (0, 0), (44, 44)),  # a terminal of unknown size
    ],
)
def test_preview(tmp_path, size, terminal, expected):
    shown = on_terminal(
        tmp_path, "--width", size[0], "--height", size[1], columns=terminal[0], lines=terminal[1]
    )
    colours = preview(shown)
    assert shown.startswith(f"wrote picture.{ENDING} ({size[0]}x{size[1]})\n")
    assert colours.shape == (*expected, 3)
    # Each cell has the mean colour of its part of the picture, so the preview has the same mean as the picture.
    picture = gradient(*size)
    assert np.abs(colours.mean(axis=(0, 1)) - picture.mean(axis=(0, 1))).max() < 3
    if size == (160, 40):
        means = picture.reshape(20, 2, 80, 2, 3).mean(axis=(1, 3))
        assert np.abs(colours - means).max() <= 0.5
    if size in ((12, 8), (5, 3)):
        assert (colours == picture).all()


def test_preview_environment(tmp_path):
    shown = on_terminal(
        tmp_path, "--width", 64, "--height", 64, columns=0, lines=0, env={"COLUMNS": "30", "LINES": "10"}
    )
    assert preview(shown).shape == (16, 16, 3)
    shown = on_terminal(
        tmp_path, "--width", 64, "--height", 64, columns=0, lines=0, env={"COLUMNS": "x", "LINES": "-3"}
    )
    assert preview(shown).shape == (44, 44, 3)
    for env in (
        {"NO_COLOR": "1"},
        {"TERM": "dumb"},
        {"TERM": ""},
        {"COLORTERM": ""},
        {"COLORTERM": "no", "TERM": "vt100"},
    ):
        assert on_terminal(tmp_path, env=env) == f"wrote picture.{ENDING} (12x8)\n"


LEVELS = np.array([0, 95, 135, 175, 215, 255])


@pytest.mark.parametrize(
    "env, cube",
    [
        ({"COLORTERM": "24bit"}, False),
        ({"COLORTERM": "", "TERM": "xterm-256color"}, True),
        ({"COLORTERM": "truecolor", "TERM": "screen-256color"}, False),
        ({"COLORTERM": "8", "TERM": "screen-256color"}, True),
    ],
)
def test_preview_colours(tmp_path, env, cube):
    """24-bit colours where the terminal supports them, otherwise the nearest colours of the 6 x 6 x 6 cube."""
    shown = on_terminal(tmp_path, "--width", 64, "--height", 40, env=env)
    picture = gradient(64, 40)
    if not cube:
        assert (preview(shown) == picture).all()
        return
    rows = [
        np.array(re.findall(rf"\x1b\[{plane}8;5;(\d+)m", line), int) - 16
        for line in shown.splitlines()[1:]
        for plane in (3, 4)
    ]
    index = np.array(rows)
    assert index.shape == (40, 64) and "[38;2;" not in shown and "[48;2;" not in shown
    assert index.min() >= 0 and index.max() < 216
    colours = LEVELS[np.stack([index // 36, index // 6 % 6, index % 6], axis=2)]
    nearest = np.abs(picture[..., None] - LEVELS).min(axis=3)
    assert (np.abs(colours - picture) == nearest).all()


@pytest.mark.parametrize(
    "env, halves",
    [
        ({"LC_ALL": "C"}, False),
        ({"LC_ALL": "POSIX", "LANG": "C.UTF-8"}, False),
        ({"LC_ALL": "", "LC_CTYPE": "", "LANG": ""}, False),
        ({"LC_ALL": "", "LC_CTYPE": "C.UTF-8", "LANG": "C"}, True),
        ({"LC_ALL": "xx_XX.UTF-8"}, True),
        ({"LC_ALL": "xx_XX.utf8"}, True),  # not installed
        ({"LC_ALL": "xx_XX.ISO-8859-1", "LANG": "C.UTF-8"}, False),
    ],
)
def test_preview_locale(tmp_path, env, halves):
    """Without UTF-8 there are no half blocks: the preview consists of spaces, with half the vertical resolution."""
    shown = on_terminal(tmp_path, "--width", 40, "--height", 20, env=env)
    picture = gradient(40, 20)
    if halves:
        assert (preview(shown) == picture).all()
        return
    assert shown.isascii()
    lines = [re.findall(r"\x1b\[48;2;(\d+);(\d+);(\d+)m ", line) for line in shown.splitlines()[1:]]
    colours = np.array(lines, int)
    assert colours.shape == (10, 40, 3)
    assert np.abs(colours - picture.reshape(10, 2, 40, 3).mean(axis=1)).max() <= 0.5
    for columns, lines in (20, 50), (80, 9), (1, 1):
        small = on_terminal(
            tmp_path, "--width", 300, "--height", 300, columns=columns, lines=lines, env=env
        ).splitlines()[1:]
        assert len(small) <= max(1, lines - 2) and all(line.count(" ") <= columns for line in small)


def test_progress(tmp_path):
    shown = on_terminal(tmp_path, "--animate", "--frames", 3, stderr=True)
    assert shown == "frame 1 of 3\rframe 2 of 3\rframe 3 of 3\n"


@needs_png
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted(tmp_path, number):
    """An interrupt while a file is written leaves the old file unchanged and no temporary file."""
    (tmp_path / "x.png").write_text("keep")
    command = [
        helpers.BIN / PICTURE,
        "draw",
        "--",
        "--noise",
        "--width",
        "4000",
        "--height",
        "4000",
        "--output",
        "x.png",
    ]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=helpers.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=helpers.default_signals,
    )
    deadline = time.monotonic() + 60
    while len(os.listdir(tmp_path)) < 2:
        assert time.monotonic() < deadline and process.poll() is None, "no unfinished file was seen"
        time.sleep(0.001)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == -number
    assert (out, err) == (b"", b"")
    assert os.listdir(tmp_path) == ["x.png"]
    assert (tmp_path / "x.png").read_text() == "keep"


@needs_png
def test_ignored_interrupt(tmp_path):
    """A signal that is ignored, as under nohup, does not end the program."""
    command = [helpers.BIN / PICTURE, "draw", "--", "--noise", "--width", "2000", "--height", "2000"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=helpers.environment(),
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    while not os.listdir(tmp_path) and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(signal.SIGHUP)
    assert process.wait(60) == 0
    assert helpers.pixels(tmp_path / "picture.png").shape == (2000, 2000, 3)


def test_lost_output(draw, tmp_path):
    """The picture is complete, but the message about it could not be written."""
    with open("/dev/full", "w") as full:
        result = draw(status=1, stdout=full)
    assert result.errors == ["picture: cannot write to stdout: No space left on device"]
    assert (helpers.pixels(tmp_path / f"picture.{ENDING}") == gradient(12, 8)).all()


def test_same_noise_for_a_seed(draw, tmp_path, rng):
    seed = rng.randrange(1 << 63)
    for name, value in ("a", seed), ("b", seed), ("c", seed ^ 1):
        draw("--noise", "--seed", value, "--output", f"{name}.ppm")
    a, b, c = ((tmp_path / f"{name}.ppm").read_bytes() for name in "abc")
    assert a == b != c


# ---- Text from outside on a terminal

HOSTILE = "\x1b[31m\x07\n\u009b32m\u202e"


def test_lines_hold_no_control_characters(tmp_path):
    """Names and settings come from outside. What a terminal would act on becomes a question mark in every line, and the files
    have their names."""
    program, shown = tmp_path / f"pic{HOSTILE}ture", "?[31m???32m?"
    program.symlink_to(helpers.BIN / PICTURE)

    def run(*args, **env):
        result = helpers.execute(program, ["draw", "--", *args], tmp_path, env=env)
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", result.out + result.err), repr(result)
        return result.out.splitlines() + result.errors

    output = f"a{HOSTILE}.ppm"
    assert run("--output", output) == [f"wrote a{shown}.ppm (12x8)"]
    assert (tmp_path / output).exists()
    assert run("--no" + HOSTILE) == [f"pic{shown}ture: unrecognized option '--no{shown}'"]
    assert run("--width", HOSTILE) == [
        f"pic{shown}ture: --width {shown}: must be a whole number from 1 to 65536"
    ]
    if helpers.has("GLUT"):
        lines = run(DISPLAY=f"{HOSTILE}:")
        assert lines[0] == f"wrote pic{shown}ture.{ENDING} (12x8)"
        assert lines[1].startswith(f"pic{shown}ture: no window: ") and shown in lines[1][40:]


@pytest.mark.backend("cpu")
def test_settings_of_the_back_end_hold_no_control_characters(run):
    for name in (
        "DEVICES",
        "WORKERS",
        "SCHEDULE",
        "STREAMS",
        "STRICT",
        "FILL",
        "CHECK",
        "WATCHDOG",
        "TIME_LIMIT",
    ):
        name = f"CUDA_CPU_{name}"
        result = run("chapter04/julia_gpu", "--size", 8, status=1, env={name: HOSTILE})
        assert len(result.errors) == 1 and result.err.startswith(
            f"cuda on the CPU: {name}=?[31m???32m?: must be "
        ), repr(result)


# ---- The line that names the device of the times, and -h


def test_times_have_a_device(program, run):
    """Before times or rates, a program prints once what they are measured on, and on the CPU back end that they are CPU
    times. The rates that enum_gpu prints are device properties, not measurements."""
    lines = run(program, *program.small, status=program.status).out.splitlines()
    times = [i for i, line in enumerate(lines) if helpers.MEASURED.search(line) or helpers.TIMED.match(line)]
    named = [i for i, line in enumerate(lines) if re.match(r"Measured on (device \d+|the host): \S", line)]
    noted = lines.count("CPU back end: these are CPU times and do not rank GPU kernels.")
    if not times or program.base == "enum_gpu":
        assert not named and not noted, lines
        return
    several = program.gpus > 1
    assert len(named) == len({lines[i] for i in named}) and (
        len(named) > 1 if several else len(named) == 1
    ), lines
    assert max(named) < min(times), lines
    assert noted == (helpers.backend() == "cpu" and not program.host_only), lines
    if not program.host_only:
        devices = dict(
            re.findall(
                r"^(\d+): (.*), compute capability ", run(program, "--list-devices", status=0).out, re.M
            )
        )
        for i in named:
            number, name = re.fullmatch(r"Measured on device (\d+): (.*)", lines[i]).groups()
            assert devices[number] == name and (several or number == "0")


@pytest.mark.skipif(helpers.devices() < 2, reason="needs 2 devices")
def test_times_name_the_device_that_was_chosen(run):
    assert re.search(
        r"^Measured on device 1: \S",
        run("appendix_a/hashtable_gpu", "--size", 1000, "--device", 1, status=0).out,
        re.M,
    )


def test_short_help(program, run):
    long = run(program, "--help", status=0)
    assert " -h " in long.out
    for option in "-h", "-?":
        assert run(program, option, status=0).out == long.out


def test_help_says_what_mouse_and_keys_do(picture_program, run):
    text = run(picture_program, "--help", status=0, env={"ARGP_HELP_FMT": "rmargin=1000"}).out
    expected = ["Esc", "q", "close button"]
    expected += ["drag"] * ("click_drag(" in picture_program.source) + ["space"] * (
        "key_press(" in picture_program.source
    )
    assert not [word for word in expected if not re.search(rf"\b{word}", text)], text


# ---- The sources of common/ and of the programs


COMMON = helpers.ROOT / "common"
LESSONS = sorted(path for folder in helpers.ROOT.glob("chapter??") for path in folder.glob("*.cu")) + sorted(
    (helpers.ROOT / "appendix_a").glob("*.cu")
)
HEADERS = sorted({path for lesson in LESSONS for path in lesson.parent.glob("*.h")})


def included(path):
    """The files that a source includes with #include "…"."""
    names = re.findall(r'^#include "([^"]+)"', path.read_text(), re.M)
    return [(path.parent / name).resolve() for name in names]


def test_top_of_common_holds_what_programs_include():
    """Everything else belongs into common/lib. book.h includes some headers for all programs.
    legacy.h is for old programs (make old)."""
    used = {file for path in [*LESSONS, *HEADERS, COMMON / "book.h"] for file in included(path)}
    used.add(COMMON / "legacy.h")
    assert [path.name for path in sorted(COMMON.iterdir()) if path.is_file() and path not in used] == []


def test_common_has_no_include_circle():
    """No header includes itself through others, and common/ includes no file from elsewhere."""

    def follow(path, above):
        assert path not in above, " includes ".join(str(p.relative_to(COMMON)) for p in [*above, path])
        for file in included(path):
            assert COMMON in file.parents, f"{path.name} includes {file}"
            follow(file, [*above, path])

    files = [path for path in COMMON.rglob("*") if path.suffix in (".h", ".c")]
    assert files
    for path in files:
        follow(path, [])


@pytest.mark.parametrize("path", [*LESSONS, *HEADERS], ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_program_is_a_lesson(path):
    """A program has no test apparatus and no code for one back end, and includes only common/ and files of its chapter."""
    assert re.findall(r"\b(?:inject_error|HANDLE_NULL|__NVCC__|__CU2CPP__)\b", path.read_text()) == []
    for file in included(path):
        assert file.exists() and file.parent in (path.parent, COMMON, COMMON / "proofs"), file


FUNCTION = re.compile(r"^[ \t]*((?:[\w:<>,*&]+\s+[*&]*)+)(\w+)\(([^;{}]*)\)(?: const)?\s*\{", re.M)
TOKEN = re.compile(r"[A-Za-z_]\w*|[\d.]\w*|\S")


def functions(text):
    """(name, normalized parameters and body) of each function of at least four lines, other than kernels and main. Comments
    and white space are removed and identifiers are numbered, so that copies with other names are equal."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/|^[ \t]*#.*?$", "", text, flags=re.S | re.M)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', lambda s: re.sub(r"[{}]", "_", s[0]), text)
    for found in FUNCTION.finditer(text):
        end, depth = found.end(), 1
        while depth > 0 and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        body = text[found.end() : end - 1]
        lines = sum(bool(line.strip()) for line in body.splitlines())
        if (
            "__global__" in found[1]
            or found[1].split()[-1] in ("else", "return")
            or found[2] == "main"
            or lines < 4
        ):
            continue
        numbers = {}
        tokens = TOKEN.findall(found[3] + "{" + body)
        yield found[2], " ".join(
            str(numbers.setdefault(t, len(numbers))) if t[0].isalpha() or t[0] == "_" else t for t in tokens
        )


def test_copies_of_a_function_are_found():
    one = 'static int f(int a) {\n    // sum\n    int b = a + 1;\n    b *= a;\n    puts("}");\n    return b;\n}\n'
    same = 'template <class T>\nstatic inline int sum(int x) { int y = x + 1;\n y *= x;\n puts("}");\n\n return y;\n}\n'
    [(name, f)], [(other, g)] = functions(one), functions(same)
    assert (name, other) == ("f", "sum") and f == g
    [(_, different)] = functions(one.replace("b *= a", "b *= b"))
    assert different != f
    assert not list(
        functions("__global__ void k(int a) {" + "\na++;" * 9 + "}\nint main(void) {" + "\nf(1);" * 9 + "}\n")
    )


def test_no_function_stands_twice():
    """What several programs need is in a header of their chapter or in common/proofs. Kernels and main may be repeated."""
    places = collections.defaultdict(list)
    for path in [*LESSONS, *HEADERS, *sorted((COMMON / "proofs").glob("*.h"))]:
        for name, body in functions(path.read_text()):
            places[body].append(f"{path.parent.name}/{path.name}: {name}")
    assert len(places) > 150
    assert [copies for copies in places.values() if len(copies) > 1] == []
