# SPDX-License-Identifier: MIT
"""Tests that every program of the suite must pass. Programs are found by their headers, so a new program is tested here without
further lines. What all programs share (options, files, lost output) is tested with a `sample` of three programs of different kinds;
tests/release runs it with all (conftest.py)."""
import functools
import os
import pathlib
import re
import subprocess
import time

import pytest

import formulas
import helpers

ENDING = helpers.ending()
COMMON_OPTIONS = ["device", "list-devices", "seed", "help", "usage", "version"]

# LIMITS has the limits of the comparison of each program with its picture in the gallery, whose owner is the program with the picture's
# name. They are those of a GPU where its rounding differs (FUSED); on the CPU back end no pixel of these may differ. The reasons follow.
#
# Julia: a GPU fuses multiplications with additions (FMA). The iteration is chaotic near the edge of the set, so rounding alone changes
# 0.15 % of the pixels (measured between float and double, and with and without FMA). A picture that is shifted by one pixel differs in
# 4.7 % of them. STEPS: near the set, rounding changes the number of steps of many pixels.
ROUNDING, STEPS = dict(mean=0.5, fraction=0.003), dict(mean=10, fraction=0.05)
# Ripple and green spheres: a channel is a value truncated to a whole number. If the value is close to a whole number, rounding
# in float may change the result by 1. That is rare: one in 100 000 was measured. A picture that is shifted by one pixel differs
# in 16 % and 73 % of the pixels.
WHOLE_PART = dict(mean=0.0005, worst=1)
# Spheres: rounding differs as for Julia, but changes only pixels on the edge between two levels of a colour or between two
# spheres: ten in a million by one level, and one in ten million by more (with FMA and up to 2000 spheres). The positions of
# moving spheres depend on the sines of numpy and of the C library, which may differ in the last bit.
SHADING, MOVING = dict(mean=0.001, worst=1, fraction=1e-5), dict(mean=0.001, worst=1, fraction=1e-4)
FUSED = ROUNDING, STEPS, SHADING
# Diamonds: as the ripple, but the values on the two diagonals of the picture are exactly 128 before rounding.
DIAGONALS = dict(mean=0.002, worst=1)
# Heat: at a temperature where the colour changes, an error in the last bit selects the next colour, whose hue differs by one degree.
HEAT = dict(mean=0.05, worst=10, fraction=1e-4)
# Texture pictures: the edge of a texel is never at the centre of a pixel, and whole numbers are not rounded.
EXACT = {}
# Surface: versions of OpenGL interpolate in other ways. That changes colours by at most 1, and pixels at edges. A picture that is shifted
# by one pixel differs in 7 %, the frame before in 28 %.
SURFACE = dict(mean=0.9, worst=2, fraction=0.005)
# Mirrors: a colour is truncated to the next level; at edges, rounding selects another sphere.
MIRRORS = dict(mean=0.01, worst=1, fraction=2e-4)
# Volume: the weights of the eight texels, which differ by up to 72 levels, have 8 fractional bits.
VOLUME = dict(mean=0.2, worst=1)
LIMITS = {
    "chapter04/julia_gpu": ROUNDING,
    "chapter04/julia_animated": STEPS,
    "chapter05/ripple": WHOLE_PART,
    "chapter05/shared_bitmap": WHOLE_PART,
    "chapter05/shared_bitmap--no-sync": WHOLE_PART,
    "chapter06/ray": SHADING,
    "chapter06/ray_animated": MOVING,
    "chapter06/ray_mirrors": MIRRORS,
    "chapter07/heat": HEAT,
    "chapter07/texture_3d": VOLUME,
    "chapter07/texture_modes": EXACT,
    "chapter08/basic_interop": DIAGONALS,
    "chapter08/vertex_interop": SURFACE,
    "chapter08/texture_interop": EXACT,
    "chapter12/fft_convolution": WHOLE_PART,
    "chapter12/bucket_sort_2d": EXACT,
}
# The animations of the gallery have every second frame and are compressed with loss. They differ by 1.3 levels on average, and
# 0.1 % of the pixels by more than 40. A wrong frame, the next one, differs by 2.5 in the ripple and by 11 in the spheres. So frames
# of the programs are compared with numpy's.
LOSSY = dict(mean=2, worst=40, fraction=0.003)
FRAMES = {
    "chapter05/ripple": lambda size, i: formulas.whole(formulas.ripple(size, i)),
    "chapter06/ray_animated": lambda size, i: formulas.ray(formulas.turned(formulas.spheres(), i), size),
}


def one_line(result, status):
    """Expects that the run ended with this status and one line on stderr, which begins with the name of the program or of a
    source file."""
    line = len(result.errors) == 1 and re.match(r"[\w./-]+: |[\w./-]+:\d+: ", result.err)
    assert result.status == status and line, f"expected status {status} and one line on stderr\n{result}"


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@functools.cache
def help_of(program):
    """What --help prints, with a line for each option."""
    result = helpers.execute(program, ["--help"], helpers.ROOT, {"ARGP_HELP_FMT": "rmargin=1000"})
    assert result.status == 0, str(result)
    return result.out


def numeric_options(program):
    """The numeric options of a program, as (name, lowest, highest, whether it is a whole number), from --help."""
    number = r"(-?[\d.]+(?:e[-+]\d+)?)"
    ranged = rf"^ *(?:-\w, )?--([\w-]+)=N .*\bfrom {number} to {number}"
    for name, low, high in re.findall(ranged, help_of(program), re.M):
        yield name, float(low), float(high), f'OPTION_FLOAT("{name}"' not in program.settings
    yield "device", 0, None, True
    yield "seed", 0, None, True
    for name in "frames", "runs":
        if f"--{name}=N" in help_of(program):
            yield name, 1, None, True


# ---- Every program


def test_default_run(quick_program, run):
    result = run(quick_program, status=quick_program.status)
    assert result.out and (not result.err or quick_program.status), str(result)


def check_device_of_times(program, result):
    """Before times or rates, a program prints once what they are measured on, and on the CPU back end that they are CPU
    times. The rates that enum_gpu prints are device properties, not measurements."""
    lines = result.out.splitlines()
    times = [i for i, line in enumerate(lines) if helpers.MEASURED.search(line) or helpers.TIMED.match(line)]
    named = [i for i, line in enumerate(lines) if re.match(r"Measured on (device \d+|the host): \S", line)]
    noted = lines.count("CPU back end: these are CPU times and do not rank GPU kernels.")
    if not times or program.base == "enum_gpu":
        assert not named and not noted, lines
        return
    assert named and len({lines[i] for i in named}) == len(named) and max(named) < min(times), lines
    assert len(named) == 1 if program.gpus == 1 else len(named) > 1, lines
    assert noted == (helpers.backend() == "cpu" and not program.host_only), lines


def test_help(program):
    """--help names every option, its range, and what mouse and keys do."""
    text = help_of(program)
    expected = COMMON_OPTIONS + program.own_options
    expected += ["output", "window", "no-window"] * bool(program.picture)
    missing = [name for name in expected if not re.search(rf"^\s.*--{name}\b", text, re.M)]
    if program.picture:
        words = ["Esc", "q", "close button"]
        words += ["drag"] * ("click_drag(" in program.source) + ["space"] * ("key_press(" in program.source)
        missing += [word for word in words if not re.search(rf"\b{word}", text)]
    assert not missing and "inject" not in text, f"--help does not mention {missing}\n{text}"
    own = set(re.findall(r'OPTION_(?:INT|SIZE|FLOAT)\("([^"]+)"', program.settings))
    stated = {name for name, *_ in numeric_options(program)}
    assert own <= stated, f"--help gives no range for {own - stated}"
    for name in re.findall(r'OPTION_WORD\("([^"]+)"', program.settings):
        shown = re.search(rf"^ *--{name}=WORD .*: (\S+) \(default (\S+)\)$", text, re.M)
        assert shown and shown[2] in shown[1].split("|"), name
    assert text.count("(default ") >= len(own) and "\nExit status: 0 " in text


def test_options_without_a_run(sample, run):
    """The version of the suite is in one file. It is printed before the program looks for a device."""
    version = (helpers.ROOT / "VERSION").read_text()
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", version)
    for option in "--version", "-V":
        result = run(sample, option, "--device", 999, status=0, env={"CUDA_CPU_DEVICES": "0"})
        assert (result.out, result.err) == (f"{sample.base} (cuda-by-example) {version}", "")
    assert run(sample, "-h", status=0).out == run(sample, "--help", status=0).out
    assert run(sample, "--usage", status=0).out.startswith(f"Usage: {sample.base}")
    assert re.match(r"0: \S", run(sample, "--list-devices", status=0).out)


def test_small_runs(program, run, tmp_path, rng):
    """A correct kernel gives the same bits in every order of threads and blocks and on any number of cores, so lines (without
    times, rates, lost updates, the sums in any order and the number of multiprocessors, which is that of the workers) and files are the same.
    """
    orders = [{}, {}]
    if helpers.backend() == "cpu" and not program.host_only:
        # Thrust works in the memory of the host there, which CUDA_CPU_CHECK=1 refuses. Of the hash tables each of 1024 locks is an
        # allocation of its own, which it protects at every call: seconds for each of them, so hashtable_locks stands for all.
        many = "hashtable" in program.name and program.base != "hashtable_locks"
        check = {} if many or "thrust" in program.needs else {"CUDA_CPU_CHECK": "1"}
        orders = [
            {"CUDA_CPU_SCHEDULE": "forward"},
            {"CUDA_CPU_SCHEDULE": f"random:{rng.randrange(10**6)}", "CUDA_CPU_WORKERS": "3"},
            {"CUDA_CPU_SCHEDULE": "reverse", "CUDA_CPU_WORKERS": "1", **check},
        ]
    compare_orders(program, orders, run, tmp_path)
    if program.picture:
        [path] = (tmp_path / "0").iterdir()
        (tmp_path / "new").touch()  # with the mode that umask leaves
        assert path.stem == program.base and path.stat().st_mode == (tmp_path / "new").stat().st_mode


def compare_orders(program, orders, run, tmp_path):
    outputs = []
    for i, env in enumerate(orders):
        folder = tmp_path / str(i)
        folder.mkdir()
        result = run(program, *program.small, status=program.status, env=env, cwd=folder)
        check_device_of_times(program, result)
        other = re.compile(
            r"Multiprocessors:|best: .* fill the device|x = x \+ 1: |With a lock: |Read without cudaEventSynchronize|"
            r"  cudaPeekAtLastError|\d+ multiprocessors|Fastest: "
        )
        lines = [line for line in result.lines if not other.match(line)]
        assert not result.err or program.status, f"{env}\n{result}"
        outputs.append((lines, contents(folder)))
        assert outputs[i] == outputs[0], env


def sizes_of(program):
    """The least and the greatest number of --size; None if it has none."""
    ranges = {name: (low, high) for name, low, high, _ in numeric_options(program)}
    return tuple(map(int, ranges["size"])) if "size" in ranges else None


def test_sizes_and_options(program, run, rng):
    """The least size, an odd one, and the options of the header's Check: line. The program checks its results."""
    words = list(program.small)
    lines = [line.replace("(race)", "").split() for line in program.check.split("|")[1:]]
    if "--size" in words and (range_ := sizes_of(program)):
        at = words.index("--size") + 1
        odd = rng.randrange(range_[0] | 1, min(range_[1], 300), 2)
        lines += [words[:at] + [size] + words[at + 1 :] for size in (range_[0], odd)]
    for line in lines:
        more = ["--runs", 1] if program.bench and "--runs" not in line else []
        status = 1 if {"--bug", "--no-sync"} & set(map(str, line)) else program.status
        run(program, *line, *more, "--seed", rng.randrange(1 << 63), status=status)


NO_RESULT = ["chapter03/hello_world", "chapter03/simple_kernel"]  # they print a greeting and compute nothing


def test_injected_error_is_noticed(program, run):
    """async_errors ends with 1 when it is right, and with 0 when it is not."""
    good = program.name in [*NO_RESULT, "chapter13/async_errors"]
    result = run(program, *program.small, "--inject-error", status=0 if good else 1)
    lines = [line for line in result.errors if "--inject-error" not in line]
    assert lines or program.name in NO_RESULT, f"no mismatch is shown\n{result}"


PRINTED = (helpers.ROOT / "tests/printed.txt").read_text().strip().split("\n\n")[1:]


@pytest.mark.parametrize("block", PRINTED, ids=lambda block: block.partition("\n")[0])
def test_what_is_printed(run, block):
    """A variant of a program prints these lines, and notices an error."""
    command, *lines = block.split("\n")
    command, _, status = command.partition(" => ")
    if command.endswith("(cpu)") and helpers.backend() == "gpu":
        pytest.skip("a GPU may print other digits")
    words = command.removesuffix("(cpu)").split()
    found = [" ".join(line.split()) for line in run(*words, status=int(status or 0)).out.splitlines()]
    measured = r"\d+\.\d+|\d+(?= cycles)"
    found = [re.sub(measured, "#", line) if helpers.MEASURED.search(line) else line for line in found]
    rest = iter(found)
    assert [line for line in lines if line not in rest] == [], "\n".join(found)
    run(*words, "--inject-error", status=1)


COMPARED = [
    "chapter05/matmul_gmem --size 70 --columns",
    "chapter05/matmul_shared --size 70",
    "chapter12/cublas_matmul --m 90 --n 150 --k 70",
    "chapter12/fft_batch --rows 90 --points 150",
]


@pytest.mark.parametrize("command", COMPARED)
def test_comparison_with_the_host(run, rng, command):
    """With --cpu a program prints five runs on the device and on the host, and their means."""
    words = [*command.split(), "--cpu", "--seed", rng.randrange(10**6)]
    result = run(*words)
    if result.status == 2:
        pytest.skip("this build lacks the library of the host")
    rows = re.findall(r"^(\w+) +([\d.]+) ms +([\d.]+) ms +[\d.]+$", result.out, re.M)
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "5", "mean"] and result.status == 0
    for side in 1, 2:
        *times, mean = [float(row[side]) for row in rows]
        assert abs(sum(times) / 5 - mean) <= 0.0011
    assert result.out.endswith("The results of all 10 runs are right.\n")
    run(*words, "--inject-error", status=1)


# The operations, or bytes, of what is timed
RATES = {
    "chapter05/matmul_cpu --size 200": 2 * 200**3,
    "chapter05/matmul_gmem --size 200": 2 * 200**3,
    "chapter05/matmul_shared --size 200": 2 * 200**3,
    "chapter06/ray --size 400 --spheres 50": 7 * 400**2 * 50,
    "chapter06/ray_noconst --size 400 --spheres 50": 7 * 400**2 * 50,
    "chapter06/ray_animated --size 400 --spheres 50 --frames 2": 7 * 400**2 * 50,
    "chapter07/heat_gmem --size 500 --frames 3": 12 * 500**2,
    "chapter09/hist_gpu_gmem_atomics --size 1000000": 10**6,
    "chapter09/hist_gpu_shmem_atomics --size 1000000": 10**6,
}


@pytest.mark.parametrize("command, work", RATES.items())
def test_rates(run, command, work):
    """A time and its rate agree, within the printed digits. The programs of the book print its figure too."""
    out = run(*command.split(), status=0).out
    line = r"^(?:Kernel|Step|Time to multiply): +(\d+\.\d{3}) ms, (\d+\.(\d+)) G(?:FLOP|B)/s$"
    ms, rate, digits = re.search(line, out, re.M).groups()
    off = 0.0006 / max(float(ms), 1e-3) + 0.6 * 10 ** -len(digits) / max(float(rate), 1e-3)
    assert float(ms) == 0 or float(rate) * float(ms) * 1e6 == pytest.approx(work, rel=off)
    book = re.search(r"^(Time to generate|Average Time per frame):  \d+\.\d ms$", out, re.M)
    assert book or "matmul" in command, out


# Programs that record two events themselves, with sizes for which no kernel of the CPU back end ends within 0.05 ms
EVENTS = """
chapter06/ray_animated --size 400 --spheres 50 --frames 2
chapter07/heat_2d --size 500 --frames 2
chapter07/heat_gmem --size 500 --frames 2
chapter09/hist_gpu_gmem_atomics --size 1000000
chapter10/basic_single_stream --size 1M
chapter10/basic_double_stream --size 1M
chapter10/basic_double_stream_correct --size 1M
appendix_a/hashtable_gpu --size 100000
chapter13/managed_hist --size 1000000
"""


@pytest.mark.parametrize("command", EVENTS.split("\n")[1:-1])
def test_elapsed_times(run, command):
    """The events are before and after the work: the time is positive, which a GPU's may be too short for, and not above the host's."""
    begin = time.monotonic()
    out = run(*command.split(), status=0).out
    most = (time.monotonic() - begin) * 1e3
    line = r"^(?:Time |Average Time |Page faults:|Prefetch:|Advice:).*?(\d+\.\d+) ms"
    times = [float(ms) for ms in re.findall(line, out, re.M)]
    least = 0 if helpers.backend() == "gpu" else 0.01
    assert times and least <= min(times) and max(times) <= most, out


# ---- Mistakes on the command line, devices


def test_bad_arguments(sample, run, rng):
    """A bad value for each option, words that are none of the list, a device that does not exist, words that are no options.
    tests/common/options.c tries other mistakes."""
    mistakes = ["--device=999", "--help=1", "extra", ""]
    for name, low, high, whole in numeric_options(sample):
        values = ["", "1x", "nan", "1e999", repr(low - 1 - abs(low) / 100), *["1.5"] * whole]
        values += [] if not high or high > 1e15 else [f"{high + 1:.0f}"]
        mistakes.append(f"--{name}={rng.choice(values)}")
    mistakes += [f"--{name}=a|b" for name in re.findall(r'OPTION_WORD\("([^"]+)"', sample.settings)]
    for mistake in mistakes:
        result = run(sample, mistake)
        one_line(result, 64)
        assert not result.out and mistake.split("=")[0].strip("-") in result.err, str(result)


# Options that exclude each other, or whose values do
EXCLUDED = {
    "chapter05/launch_geometry --block-x=32 --block-y=33": "a block has at most 1024 threads, and 32 x 33 are 1056",
    "chapter05/launch_geometry --grid-x=65535 --grid-y=65535": "a launch has at most 1048576 threads here",
    "chapter12/linear_solver --rows=90 --constraints=10": "--constraints 10: must be at most 9, the columns",
}


@pytest.mark.parametrize("command, says", EXCLUDED.items())
def test_options_that_exclude_each_other(run, command, says):
    name, *options = command.split()
    result = run(name, *options, status=64)
    assert (result.out, result.err) == ("", f"{name.split('/')[1]}: {says}\n")


def test_no_device_at_all(sample, run):
    """A program of the host alone needs one only if it is asked for."""
    for option in [], ["--device", "9"], ["--list-devices"]:
        result = run(sample, *sample.small, *option, env={"CUDA_VISIBLE_DEVICES": ""})
        if sample.host_only and not option:
            assert result.status == 0 and not result.err, str(result)
        else:
            one_line(result, 2)
            assert "device" in result.err and not result.out


def test_more_than_the_memory(sample, run):
    """A size beyond the range is refused with status 64; one that is allowed but too large for the memory with status 1 and a
    line that says how much is needed and how much is free."""
    for name in set(sample.own_options) & {"size", "iterations", "frames"}:
        result = run(sample, f"--{name}", "99999999999999")
        one_line(result, 64 if result.status == 64 else 1)
        assert result.status == 64 or re.search(r"needs [\d.]+ GiB.* [\d.]+ GiB are free", result.err)
    high = (sizes_of(sample) or (0, 0))[1]
    needed = 8 * high * (high if sample.picture else 1)  # at least two copies of four-byte elements
    if needed > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        result = run(sample, "--size", high)
        one_line(result, 1)
        assert re.search(r"needs [\d.]+ GiB.* [\d.]+ GiB are free", result.err), str(result)


@pytest.mark.skipif(helpers.devices() < 2, reason="needs 2 devices")
def test_times_name_the_device_that_was_chosen(run):
    out = run("appendix_a/hashtable_gpu", "--size", 1000, "--device", 1, status=0).out
    assert re.search(r"^Measured on device 1: \S", out, re.M)


# ---- Output that cannot be written


def test_lost_output(sound_sample, run, tmp_path):
    """stdout is a pipe that nobody reads, a full disk, closed. A picture is written all the same."""
    read, write = os.pipe()
    os.close(read)
    try:
        one_line(run(sound_sample, *sound_sample.small, stdout=write), 1)
    finally:
        os.close(write)
    with open("/dev/full", "w") as full:
        one_line(run(sound_sample, *sound_sample.small, stdout=full), 1)
    assert list(tmp_path.iterdir()) or not sound_sample.picture
    command = f'exec "{helpers.BIN / sound_sample.name}" {" ".join(sound_sample.small)} >&-'
    one_line(run(pathlib.Path("/bin/sh"), "-c", command), 1)


@pytest.mark.backend("cpu")
def test_a_refused_setting_on_a_full_disk(run):
    """Only the refused setting is reported, not the failed write to stdout."""
    with open("/dev/full", "w") as full:
        result = run("chapter05/matmul_shared", "--size", 48, stdout=full, env={"CUDA_CPU_SCHEDULE": "x"})
    assert result.status == 1 and len(result.errors) == 1, str(result)
    assert "CUDA_CPU_SCHEDULE=x: must be" in result.err


# ---- Pictures


def owner(file):
    """The program whose name a file of docs/gallery has."""
    return str(file.relative_to(helpers.GALLERY).with_suffix(""))


def test_picture(picture_program, run, tmp_path):
    """Each program draws the picture in the gallery; frames of an animation are equal to numpy's."""
    name = str(picture_program)
    file, arguments = helpers.gallery()[name]
    limits = LIMITS[owner(file)]
    limits = {} if helpers.backend() == "cpu" and limits in FUSED else limits
    if owner(file) not in FRAMES:
        (tmp_path / "old").write_bytes(b"something shorter than the picture")
        (tmp_path / "old").chmod(0o604)
        (tmp_path / f"picture.{ENDING}").symlink_to("old")
        run(picture_program, *arguments, "--output", f"picture.{ENDING}", status=0)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["old", f"picture.{ENDING}"]
        assert (tmp_path / "old").stat().st_mode & 0o777 == 0o604
        helpers.compare(name, helpers.pixels(tmp_path / "old"), helpers.pixels(file), **limits)
        return
    run(picture_program, *arguments, "--frames", 12, "--output", f"frame-%04d.{ENDING}", status=0)
    drawn = sorted(tmp_path.iterdir())
    assert [path.name for path in drawn] == [f"frame-{i:04}.{ENDING}" for i in range(12)]
    for ticks, path in enumerate(drawn):
        shown = helpers.pixels(path)
        helpers.compare(f"{name}-{ticks}", shown, FRAMES[owner(file)](len(shown), ticks), **limits)


@pytest.mark.backend("cpu")
def test_the_picture_without_a_barrier(run, tmp_path):
    """It is the one in the gallery; the program itself counts the pixels that are wrong (predict.md)."""
    name = "chapter05/shared_bitmap--no-sync"
    file, arguments = helpers.gallery()[name]
    run(name.partition("--")[0], *arguments, "--output", f"picture.{ENDING}", status=1)
    helpers.compare(name, helpers.pixels(tmp_path / f"picture.{ENDING}"), helpers.pixels(file), **WHOLE_PART)


def test_gallery():
    """Each program with a picture of its own has one in the gallery, and the animations have the right frames."""
    files = {file for file, _ in helpers.gallery().values()}
    assert files == {path for path in helpers.GALLERY.rglob("*") if path.is_file()}, "make gallery"
    assert {owner(file) for file in files} == set(LIMITS)
    assert max(file.stat().st_size for file in files) < 200_000
    for file in files:
        if file.suffix != ".png":
            frames = helpers.frames(file)
            assert len(frames) == 60
            for i, shown in list(enumerate(frames))[::10]:
                expected = FRAMES[owner(file)](len(shown), 2 * i)
                helpers.compare(f"{owner(file)}-{2 * i}", shown, expected, **LOSSY)


# ---- The sources: mistakes that no run would show


def test_the_sources_are_formatted():
    done = subprocess.run(["scripts/format.sh", "--check"], cwd=helpers.ROOT, **helpers.TOGETHER)
    if done.returncode == 2:
        pytest.skip(done.stdout.strip())
    assert (done.returncode, done.stdout) == (0, "")


def test_every_call_and_launch_is_checked():
    """An error of a call or a launch that is not checked is reported by another call, or by none."""
    unchecked = []
    # The two of programmatic dependent launches are calls of kernels, without a status.
    calls = r"\bcuda(?!Get\w*Error|Trigger|GridDep)[A-Z]\w*\s*\(|>>>\s*\([^;]*;"
    for program in helpers.programs():
        code = helpers.code_of(program.source)
        for call in re.finditer(calls, code):
            before, place = code[: call.start()], f"{program}:{code[: call.start()].count(chr(10)) + 1}"
            if call.group().startswith("cuda"):
                # The last two: the program looks at the status itself.
                checks = r"(HANDLE_ERROR\(\s*|INTEROP_WORKS\(\s*|\w = |report\(\s+, )$"
                unchecked += [place] * (not re.search(checks, before))
                continue
            # median_ms calls HANDLE_LAUNCH() after the function that it times.
            _, timed, timing = before.rpartition("median_ms(")
            named = re.search(r"auto (\w+) = \[&\] \{[^;]*$", before)
            if timed and timing.count("(") >= timing.count(")") or named and f"median_ms({named[1]}" in code:
                continue
            checks = r"(HANDLE_LAUNCH\(\);|cudaError_t error = cudaGetLastError\(\);|report\()"
            if not re.match(rf"\s*(else\s[^;]*;\s*)?{checks}", code[call.end() :]):
                unchecked.append(place)
    assert unchecked == []


def test_comparisons_notice_nan():
    """fabs(a - b) > tol is false for NaN: a comparison is written !(fabs(a - b) <= tol)."""
    wrong = re.compile(r"\b(std::)?f?abs[fl]?\([^;]*\)\s*>=?")
    for folder in "chapter*", "appendix*", "common", "common/*", "bench":
        for path in helpers.ROOT.glob(f"{folder}/*.[ch]*"):
            for number, line in enumerate(helpers.code_of(path.read_text()).splitlines(), 1):
                assert not wrong.search(line), f"{path}:{number}: {line.strip()}"
