# SPDX-License-Identifier: MIT
"""Tests that every program of the suite must pass. Programs are found by their headers, so a new program is tested here without
further lines."""
import os
import re
import resource
import subprocess

import pytest

import formulas
import helpers

ENDING = helpers.ending()
COMMON_OPTIONS = ["device", "list-devices", "seed", "help", "usage"]

# PICTURES has, for each program, the function that computes its picture with numpy at a size (for an animation, also at a
# frame), and the limits of the comparison. The reasons of the limits follow. Programs that draw the same picture have one
# entry.
#
# Julia: the CPU back end rounds as numpy does, so no pixel may differ. A GPU fuses multiplications with additions (FMA). The
# iteration is chaotic near the edge of the set, so rounding alone changes 0.15 % of the pixels (measured between float and
# double, and with and without FMA). A picture that is shifted by one pixel differs in 4.7 % of them.
ROUNDING = {"cpu": dict(mean=0, worst=0, fraction=0), "gpu": dict(mean=0.5, worst=0, fraction=0.003)}
# Ripple and green spheres: a channel is a value truncated to a whole number. If the value is close to a whole number, rounding
# in float may change the result by 1. That is rare: one in 100 000 was measured. A picture that is shifted by one pixel differs
# in 16 % and 73 % of the pixels.
WHOLE_PART = dict.fromkeys(("cpu", "gpu"), dict(mean=0.0005, worst=1, fraction=0))
# Spheres: rounding differs as for Julia, but changes only pixels on the edge between two levels of a colour or between two
# spheres: ten in a million by one level, and one in ten million by more (with FMA and up to 2000 spheres). The positions of
# moving spheres depend on the sines of numpy and of the C library, which may differ in the last bit.
SHADING = {"cpu": dict(mean=0, worst=0, fraction=0), "gpu": dict(mean=0.001, worst=1, fraction=1e-5)}
MOVING = {"cpu": dict(mean=0.001, worst=1, fraction=1e-4), "gpu": dict(mean=0.001, worst=1, fraction=1e-4)}
# Diamonds: as the ripple, but the values on the two diagonals of the picture are exactly 128 before rounding.
DIAGONALS = dict.fromkeys(("cpu", "gpu"), dict(mean=0.002, worst=1, fraction=0))
# Heat: numpy computes in double, up to the last of the program's five frames. At a temperature where the colour changes, an
# error in the last bit selects the next colour, whose hue differs by one degree.
HEAT = dict.fromkeys(("cpu", "gpu"), dict(mean=0.05, worst=10, fraction=1e-4))
# Texture pictures: the edge of a texel is never at the centre of a pixel, and whole numbers are not rounded.
EXACT = dict.fromkeys(("cpu", "gpu"), dict(mean=0, worst=0, fraction=0))
# Surface: numpy computes the points between the vertices by the formula, where OpenGL interpolates. That changes colours by at
# most 1, and 0.3 % of the pixels, which lie at edges. A picture that is shifted by one pixel differs in 7 %, the frame before in 28 %.
SURFACE = dict.fromkeys(("cpu", "gpu"), dict(mean=0.9, worst=2, fraction=0.005))
# Mirrors: numpy computes in double. A colour is truncated to the next level; at edges, rounding selects another sphere.
MIRRORS = dict.fromkeys(("cpu", "gpu"), dict(mean=0.01, worst=1, fraction=2e-4))
# Volume: numpy computes in double; the weights of the eight texels, which differ by up to 72 levels, have 8 fractional bits.
VOLUME = dict.fromkeys(("cpu", "gpu"), dict(mean=0.2, worst=1, fraction=0))
PICTURES = {
    "chapter04/julia_gpu": (lambda size: formulas.red(formulas.julia(size)), ROUNDING),
    "chapter05/ripple": (lambda size, ticks: formulas.whole(formulas.ripple(size, ticks)), WHOLE_PART),
    "chapter05/shared_bitmap": (lambda size: formulas.whole(formulas.green_spheres(size), (1,)), WHOLE_PART),
    "chapter06/ray": (lambda size: formulas.ray(formulas.spheres(), size), SHADING),
    "chapter06/ray_animated": (
        lambda size, ticks: formulas.ray(formulas.turned(formulas.spheres(), ticks), size),
        MOVING,
    ),
    "chapter06/ray_mirrors": (lambda size: formulas.mirrors(formulas.spheres(), size), MIRRORS),
    "chapter07/heat": (lambda size: formulas.colors(formulas.heat(size, 5 * 90)), HEAT),
    "chapter07/texture_3d": (formulas.volume, VOLUME),
    "chapter07/texture_modes": (formulas.texture_modes, EXACT),
    "chapter08/basic_interop": (lambda size: formulas.whole(formulas.diamonds(size), (1,)), DIAGONALS),
    "chapter08/vertex_interop": (formulas.surface, SURFACE),
    "chapter08/texture_interop": (lambda size, ticks=119: formulas.squares(size, ticks), EXACT),
    "chapter12/fft_convolution": (formulas.out_of_focus, WHOLE_PART),
    "chapter12/bucket_sort_2d": (lambda size: formulas.bucket_picture(), EXACT),
}
# The animations of the gallery have every second frame and are compressed with loss. They differ by 1.3 levels on average, and
# 0.1 % of the pixels by more than 40. A wrong frame, the next one, differs by 2.5 in the ripple and by 11 in the spheres.
LOSSY = dict(mean=2, worst=40, fraction=0.003)


def one_line(result, status):
    """Expects that the run ended with this status and one line on stderr, which begins with the name of the program or of a
    source file."""
    assert (
        result.status == status
        and len(result.errors) == 1
        and re.match(r"[\w./-]+: |[\w./-]+:\d+: ", result.err)
    ), f"expected status {status} and one line on stderr\n{result}"


# ---- Successful runs


def test_default_run(program, default_run):
    result = default_run(program)
    assert result.out and (not result.err or program.status), str(result)


def test_list_devices(program, run):
    result = run(program, "--list-devices", status=0)
    assert re.match(r"0: \S", result.out), str(result)


def test_help(program, run):
    result = run(program, "--help", status=0)
    expected = (
        COMMON_OPTIONS + program.own_options + (["output", "window", "no-window"] if program.picture else [])
    )
    missing = [name for name in expected if not re.search(rf"^\s.*--{name}\b", result.out, re.M)]
    assert not missing, f"--help does not mention {missing}\n{result}"
    assert "inject" not in result.out
    usage = run(program, "--usage", status=0)
    assert usage.out.startswith(f"Usage: {program.base}"), str(usage)


def test_runs_are_alike(program, run, tmp_path):
    """Fixed seeds: two runs give the same lines and pictures."""
    folders = [tmp_path / name for name in "ab"]
    outputs = []
    for folder in folders:
        folder.mkdir()
        outputs.append(run(program, *program.small, status=program.status, cwd=folder).lines)
    assert outputs[0] == outputs[1]
    assert contents(folders[0]) == contents(folders[1])


@pytest.mark.backend("cpu")
def test_order_of_threads_does_not_matter(device_program, run, tmp_path, rng):
    """A correct kernel gives the same bits in every order of threads and blocks and on any number of cores. The test compares
    output and pictures, without times, rates and the number of multiprocessors, which is that of the workers.
    """
    outputs = []
    settings = [
        {"CUDA_CPU_SCHEDULE": "forward"},
        {"CUDA_CPU_SCHEDULE": "reverse"},
        *({"CUDA_CPU_SCHEDULE": f"random:{rng.randrange(10**6)}"} for _ in range(4)),
        {"CUDA_CPU_WORKERS": "1"},
        {"CUDA_CPU_WORKERS": "7", "CUDA_CPU_SCHEDULE": "reverse"},
    ]
    for i, env in enumerate(settings):
        folder = tmp_path / str(i)
        folder.mkdir()
        result = run(device_program, *device_program.small, status=device_program.status, env=env, cwd=folder)
        lines = [
            line for line in result.lines if not re.match("Multiprocessors:|best: .* fill the device", line)
        ]
        outputs.append((lines, contents(folder)))
        assert outputs[i] == outputs[0], env


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# ---- Wrong results are detected


NO_RESULT = ["chapter03/hello_world", "chapter03/simple_kernel"]  # they print a greeting and compute nothing


def test_injected_error_is_noticed(program, run):
    result = run(program, *program.small, "--inject-error", status=0 if program.name in NO_RESULT else 1)
    if program.name in NO_RESULT:
        return
    lines = [line for line in result.errors if "--inject-error" not in line]
    assert lines, f"no mismatch is shown\n{result}"


# ---- Mistakes on the command line


@pytest.mark.parametrize(
    "arguments",
    [["--nonsense"], ["-Z"], ["extra"], ["--", "extra"], [""], ["--device"], ["--help=1"]],
    ids=" ".join,
)
def test_bad_arguments(program, run, arguments):
    result = run(program, *arguments)
    one_line(result, 64)
    assert not result.out


def numeric_options(program, run):
    """The numeric options of a program, as (name, lowest, highest, whether it is a whole number), from --help."""
    text = run(program, "--help", status=0, env={"ARGP_HELP_FMT": "rmargin=1000"}).out
    number = r"(-?[\d.]+(?:e[-+]\d+)?)"
    for name, low, high in re.findall(
        rf"^ *(?:-\w, )?--([\w-]+)=N .*\bfrom {number} to {number}", text, re.M
    ):
        yield name, float(low), float(high), f'OPTION_FLOAT("{name}"' not in program.settings
    yield "device", 0, None, True
    yield "seed", 0, None, True
    for name in "frames", "runs":
        if f"--{name}=N" in text:
            yield name, 1, None, True


def test_bad_numbers(program, run, rng):
    """All programs have the same parser, so those that start MPI, which takes a quarter of a second, get a sample."""
    options = list(numeric_options(program, run))
    stated = {name for name, *_ in options}
    own = set(re.findall(r'OPTION_(?:INT|SIZE|FLOAT)\("([^"]+)"', program.settings))
    assert own <= stated, f"--help gives no range for {own - stated}"
    for name, low, high, whole in options:
        values = ["abc", "", " 1", "1x", "0x1", "nan", "inf", "1,5", "--", "1e999", "9" * 40]
        if whole:
            values += ["1.5", "1e1", f"{low - 1:.0f}"] + ([f"{high + 1:.0f}"] if high and high < 1e15 else [])
        else:
            values += [repr(low - 1 - abs(low) / 100), repr(high + 1 + abs(high) / 100)]
        if low >= 0:
            values.append("-1")
        for value in rng.sample(values, 3) if "libs=mpi" in program.needs else values:
            result = run(program, f"--{name}={value}")
            one_line(result, 64)
            assert f"--{name}" in result.err and not result.out, str(result)


def test_too_large(program, run):
    """The largest possible size is refused: with status 64 if it is out of range, otherwise with status 1 and a line that says
    how much memory is needed and how much is free."""
    for name in set(program.own_options) & {"size", "iterations", "frames"}:
        result = run(program, f"--{name}", "99999999999999")
        one_line(result, 64 if result.status == 64 else 1)
        assert result.status == 64 or re.search(r"needs [\d.]+ GiB.* [\d.]+ GiB are free", result.err)


@pytest.mark.skipif(not os.path.exists("/proc/meminfo"), reason="needs /proc/meminfo")
def test_more_than_the_memory(program, run):
    """A size that is allowed but too large for the memory ends with one line; the system does not kill the program."""
    sizes = [o for o in numeric_options(program, run) if o[0] == "size"]
    if not sizes:
        return
    high = int(sizes[0][2])
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    needed = 8 * high * (high if program.picture else 1)  # at least two copies of four-byte elements
    if needed > memory:
        result = run(program, "--size", high)
        one_line(result, 1)
        assert re.search(r"needs [\d.]+ GiB.* [\d.]+ GiB are free", result.err), str(result)


# ---- Devices


def test_no_such_device(program, run):
    result = run(program, "--device", 999)
    one_line(result, 64)
    assert "--device 999" in result.err and not result.out


def test_no_device_at_all(program, run):
    result = run(program, *program.small, env={"CUDA_VISIBLE_DEVICES": ""})
    if program.host_only:
        assert result.status == 0 and not result.err, str(result)
    else:
        one_line(result, 2)
        assert "device" in result.err and not result.out


# ---- Output that cannot be written


def test_closed_pipe(sound_program, run):
    read, write = os.pipe()
    os.close(read)
    try:
        one_line(run(sound_program, *sound_program.small, stdout=write), 1)
    finally:
        os.close(write)


def test_stdout_on_a_full_disk(sound_program, run):
    with open("/dev/full", "w") as full:
        one_line(run(sound_program, *sound_program.small, stdout=full), 1)


@pytest.mark.backend("cpu")
def test_a_refused_setting_on_a_full_disk(run):
    """Only the refused setting is reported, not the failed write to stdout."""
    with open("/dev/full", "w") as full:
        result = run("chapter05/matmul_shared", "--size", 48, stdout=full, env={"CUDA_CPU_SCHEDULE": "x"})
    assert result.status == 1 and len(result.errors) == 1, str(result)
    assert "CUDA_CPU_SCHEDULE=x: must be" in result.err


def test_closed_stdout(sound_program, run):
    command = f'exec "{helpers.BIN / sound_program.name}" {" ".join(sound_program.small)} >&-'
    result = helpers.Result(*shell(command, run), command)
    assert result.status == 1 and len(result.errors) == 1, str(result)


def shell(command, run):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=folder,
            env=helpers.environment(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=300,
        )
    return done.returncode, done.stdout, done.stderr


# ---- Pictures


def owner(file):
    """The program whose name a file of docs/gallery has."""
    return str(file.relative_to(helpers.GALLERY).with_suffix(""))


def is_still(file):
    return file.suffix == ".png"


def test_picture(picture_program, run, tmp_path):
    """Each program draws the picture in the gallery; each frame of an animation is equal to numpy's."""
    name = str(picture_program)
    file, arguments = helpers.gallery()[name]
    picture, limits = PICTURES[owner(file)]
    output = f"picture.{ENDING}" if is_still(file) else f"frame-%04d.{ENDING}"
    run(picture_program, *arguments, "--output", output, status=0)
    drawn = sorted(tmp_path.iterdir())
    if is_still(file):
        assert [path.name for path in drawn] == [output]
        helpers.compare_with_reference(name, drawn[0], file, **limits[helpers.backend()])
    else:
        assert [path.name for path in drawn] == [output % i for i in range(120)]
        for ticks, path in enumerate(drawn):
            shown = helpers.pixels(path)
            helpers.compare(f"{name}-{ticks}", shown, picture(len(shown), ticks), **limits[helpers.backend()])


def test_gallery():
    """The pictures of the gallery are equal to numpy's, and each program with its own picture has one."""
    files = {file for file, _ in helpers.gallery().values()}
    assert files == {path for path in helpers.GALLERY.rglob("*") if path.is_file()}, "make gallery"
    assert {owner(file) for file in files} == set(PICTURES)
    for file in files:
        picture, limits = PICTURES[owner(file)]
        assert file.stat().st_size < 200_000
        if is_still(file):
            shown = helpers.pixels(file)
            helpers.compare(owner(file), shown, picture(len(shown)), **limits["cpu"])
            continue
        frames = list(helpers.frames(file))
        assert len(frames) == 60
        for i, shown in enumerate(frames):
            helpers.compare(f"{owner(file)}-{2 * i}", shown, picture(len(shown), 2 * i), **LOSSY)


def test_default_file(picture_program, run, tmp_path):
    """Without --output the picture is named after the program, and the path is printed."""
    result = run(picture_program, *picture_program.small, status=0)
    [path] = tmp_path.iterdir()
    assert path.stem == picture_program.base and path.name in result.out
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask()


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_picture_replaces_an_older_one(picture_program, run, tmp_path):
    old = tmp_path / f"old.{ENDING}"
    old.write_bytes(b"old")
    run(picture_program, *picture_program.small, "--output", old.name, status=0)
    assert helpers.pixels(old).shape[2] == 3
    assert list(tmp_path.iterdir()) == [old]


@pytest.mark.parametrize("output", ["missing/picture", "folder", "/proc/picture", "file/picture"])
def test_unwritable_picture(picture_program, run, tmp_path, output):
    (tmp_path / f"folder.{ENDING}").mkdir()
    (tmp_path / "file").write_text("")
    one_line(run(picture_program, *picture_program.small, "--output", f"{output}.{ENDING}"), 1)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", f"folder.{ENDING}"]


def test_picture_on_a_full_disk(picture_program, run, tmp_path):
    full = tmp_path / f"full.{ENDING}"
    full.symlink_to("/dev/full")
    one_line(run(picture_program, *picture_program.small, "--output", full.name), 1)
    assert list(tmp_path.iterdir()) == [full] and full.is_symlink() and os.path.exists("/dev/full")


def test_picture_over_the_file_size_limit(picture_program, run, tmp_path):
    old, new = f"old.{ENDING}", f"new.{ENDING}"
    (tmp_path / old).write_bytes(b"old")
    for output in new, old:
        one_line(
            run(
                picture_program,
                *picture_program.small,
                "--output",
                output,
                limits={resource.RLIMIT_FSIZE: 32},
            ),
            1,
        )
    assert contents(tmp_path) == {old: b"old"}, "a partial picture, or the older one is gone"


@pytest.mark.parametrize(
    "arguments",
    [["--output", "picture.xyz"], ["--output", "picture"], ["--output", ""], ["--window", "--no-window"]],
    ids=" ".join,
)
def test_bad_picture_options(picture_program, run, tmp_path, arguments):
    one_line(run(picture_program, *picture_program.small, *arguments), 64)
    assert not list(tmp_path.iterdir())


def test_comparison_of_pictures_fails_when_it_should(tmp_path, monkeypatch, nprng):
    monkeypatch.setattr(helpers, "KEPT", tmp_path)
    picture = nprng.integers(0, 256, (20, 30, 3))
    helpers.compare("same", picture, picture)
    off = picture.copy()
    off[3, 4, 0] ^= 1
    with pytest.raises(AssertionError, match="worst by 1"):
        helpers.compare("off", off, picture)
    helpers.compare("allowed", off, picture, mean=0.01, worst=1)
    assert {path.name for path in (tmp_path / "off").iterdir()} == {
        "actual.png",
        "expected.png",
        "difference.png",
    }
    with pytest.raises(AssertionError, match="shape"):
        helpers.compare("cut", picture[1:], picture)
    with pytest.raises(AssertionError, match="no reference"):
        helpers.compare_with_reference("missing", tmp_path / "x.png", tmp_path / "there-is-none.png")


# ---- The sources


def test_headers():
    done = subprocess.run(
        [helpers.ROOT / "scripts" / "programs.sh", "--check"],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout


def test_every_source_is_listed(programs):
    listed = {program.path for program in programs}
    assert listed == {
        path for pattern in ("chapter*/*.cu", "appendix*/*.cu") for path in helpers.ROOT.glob(pattern)
    }


def code_of(source):
    """Without comments; the lines stay where they are."""

    def blank(match):
        text = match.group()
        return text if text[0] in "\"'" else re.sub(r"[^\n]", " ", text)

    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', blank, source, flags=re.S)


def test_length(program):
    """Counts lines without the first comment, which describes the program, and the last one, which is for the exercise."""
    limit = 385 if program.bench else 250 if "mpi" in program.needs else 188  # several ways to do one thing
    lines = program.source.partition("*/")[2].partition("\n// Task:")[0].splitlines()
    assert len(lines) < limit


def test_no_program_asks_for_the_back_end():
    """Code that differs between nvcc and the CPU back end belongs into common/ and cpu/. Only one program, whose lesson it is,
    tests __CUDA_ARCH__."""
    for folder in "chapter*", "appendix*":
        for path in helpers.ROOT.glob(f"{folder}/*.*"):
            arch = "" if path.stem == "compute_capability" else "|CUDA_ARCH"
            assert not re.search(rf"__(NVCC|CUDACC|CU2CPP{arch})__", path.read_text()), path


def test_every_launch_is_checked(program):
    code = code_of(program.source)
    for launch in re.finditer(r">>>\s*\([^;]*;", code):
        line = code[: launch.start()].count("\n") + 1
        timed = re.search(r"(?:median_ms\(\s*|auto (\w+) = )\[&\] \{[^;]*$", code[: launch.start()])
        if timed and (not timed[1] or f"median_ms({timed[1]}" in code):
            continue  # median_ms calls HANDLE_LAUNCH()
        assert re.match(
            r"\s*HANDLE_LAUNCH\(\);", code[launch.end() :]
        ), f"{program.path}:{line}: no HANDLE_LAUNCH()"


def test_every_call_is_checked(program):
    code = code_of(program.source)
    for call in re.finditer(r"\bcuda[A-Z]\w*\s*\(", code):
        line = code[: call.start()].count("\n") + 1
        assert re.search(
            r"(HANDLE_ERROR\(\s*|INTEROP_WORKS\(\s*|cudaError_t \w+ = )$", code[: call.start()]
        ), f"{program.path}:{line}: the result of {call.group()}) is lost"


def test_everything_is_freed(program):
    code = code_of(program.source)
    for take, give in [
        (r"\bcuda(Malloc\w*|ExternalMemoryGetMappedBuffer)\(", r"\bcudaFree(Array)?\("),
        (r"\bcudaImportExternal\w+\(", r"\bcudaDestroyExternal\w+\("),
        (
            r"\b(m|c|aligned_)alloc\(|\bbig_random_\w+\(|\bhost_array<[^>]*>\(|\bmake_(data|values|keys)\(",
            r"\bfree\(",
        ),
        (r"\bcudaHostAlloc\(", r"\bcudaFreeHost\("),
        (r"\bcudaStreamCreate\w*\(", r"\bcudaStreamDestroy\("),
        (r"\bcudaEventCreate\w*\(", r"\bcudaEventDestroy\("),
    ]:
        assert len(re.findall(take, code)) == len(re.findall(give, code)), f"{take} and {give} do not match"


def test_comparisons_notice_nan():
    """fabs(a - b) > tol is false for NaN: a comparison is written !(fabs(a - b) <= tol)."""
    for folder in "chapter*", "appendix*", "common", "cpu", "cpu/*", "cpu/include/*", "bench":
        for path in helpers.ROOT.glob(f"{folder}/*.[ch]*"):
            for number, line in enumerate(code_of(path.read_text()).splitlines(), 1):
                assert not re.search(
                    r"\b(std::)?f?abs[fl]?\([^;]*\)\s*>=?", line
                ), f"{path}:{number}: {line.strip()}"


# ---- On a GPU


@pytest.mark.backend("gpu")
@pytest.mark.parametrize(
    "tool",
    [["memcheck", "--leak-check", "full"], ["racecheck"], ["initcheck"], ["synccheck"]],
    ids=lambda tool: tool[0],
)
def test_compute_sanitizer_is_silent(sound_device_program, tool, tmp_path):
    program = sound_device_program
    if "vulkan" in program.needs:
        pytest.skip("compute-sanitizer does not work with Vulkan")
    if tool[0] != "memcheck" and re.search("cusparse|cusolver", program.needs):
        pytest.skip("reports kernels of the library; the program has none of its own")
    # ncclCommInitRank asks for kernels of its own that have no image for this GPU, and handles error 209 itself.
    calls = ["--report-api-errors", "no"] if "mpi" in program.needs and tool[0] == "memcheck" else []
    done = subprocess.run(
        [
            "compute-sanitizer",
            "--error-exitcode",
            "9",
            "--tool",
            *tool,
            *calls,
            helpers.BIN / program.name,
            *program.small,
        ],
        cwd=tmp_path,
        env=helpers.environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout
    summary = "RACECHECK SUMMARY: 0 hazards" if tool == ["racecheck"] else "ERROR SUMMARY: 0 errors"
    assert summary in done.stdout, done.stdout
