# SPDX-License-Identifier: MIT
"""tests/attacks/translator_fuzz.py: a sample of the attack, and what it must find."""
import os
import re
import subprocess
import sys
import types

import pytest

from trees import NVCC, ROOT, needs_nvcc

sys.path.insert(0, str(ROOT / "tests/attacks"))
import translator_fuzz  # noqa: E402


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    """With sanitizers"""
    compiler = os.environ.get("CC", "cc")
    try:
        return translator_fuzz.build(tmp_path_factory.mktemp("translator"), [compiler], "cu2cpp")
    except translator_fuzz.CannotBuild as error:
        if "clang" not in compiler:
            raise
        pytest.skip(f"needs the sanitizers of clang, which Debian 13 has in libclang-rt-dev: {error}")


def test_a_compiler_without_sanitizers_is_one_line(tmp_path):
    attack = [sys.executable, ROOT / "tests/attacks/translator_fuzz.py", "--engine", "own", "--inputs", "1"]
    settings = {**os.environ, "CC": "false", "PATH": "/nothing/here"}
    ended = subprocess.run(attack, env=settings, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 1 and len(ended.stderr.splitlines()) == 1, ended
    assert "false cannot build cpu/cu2cpp.c" in ended.stderr


def test_damaged_sources_are_translated_or_refused(translator, tmp_path, rng):
    options = types.SimpleNamespace(seed=rng.randrange(1 << 31), inputs=200, minutes=5)
    campaign = translator_fuzz.Campaign(tmp_path)
    assert translator_fuzz.fuzz_ourselves(translator, campaign, options) == options.inputs
    assert campaign.defects == {}, options
    assert sum(campaign.counts.values()) == options.inputs and min(campaign.counts.values()) > 20


@pytest.mark.parametrize(
    "does, found",
    [
        ("exit 0", "translated"),
        ("echo a.cu:3: why >&2; exit 1", "refused"),
        ("echo cu2cpp: why >&2; exit 1", "refused"),
        ("echo why >&2; exit 1", "status 1"),
        ("echo a.cu:3: why >&2; echo more >&2; exit 1", "status 1"),
        ("echo a.cu:3: why >&2", "status 0"),
        ("echo part; echo a.cu:3: why >&2; exit 1", "status 1"),
        ("kill -SEGV $$", "status -11"),
        ("echo 'cu2cpp.c:7: runtime error: overflow' >&2; exit 1", "runtime error: overflow"),
        ("kill -XCPU $$", "not ended"),
    ],
)
def test_defects_are_found(tmp_path, does, found):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    assert translator_fuzz.check(program, "-").startswith(found)


def test_a_seed_repeats_its_inputs():
    sources = translator_fuzz.seeds()
    make = lambda seed: translator_fuzz.mutate(translator_fuzz.random.Random(seed), sources)  # noqa: E731
    assert make(1) == make(1) != make(2)


REFUSED = re.findall(r"(?ms)^== (.*?)\n(.*?)(?=^== |\Z)", (ROOT / "tests/constructs/refused.txt").read_text())


@pytest.mark.parametrize("message, source", REFUSED)
def test_constructs_that_are_refused(translator, message, source):
    done = subprocess.run([translator, "-"], input=source, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"<stdin>:{message}\n")


@needs_nvcc
def test_nvcc_accepts_what_is_refused(tmp_path):
    (tmp_path / "all.cu").write_text("".join(source for _, source in REFUSED))
    arguments = ["-std=c++17", "-rdc=true", "-w", "-arch=compute_90", "-ptx", "all.cu"]
    done = subprocess.run([NVCC, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_nvcc
@pytest.mark.parametrize("name", sorted(p.stem for p in (ROOT / "tests/constructs").glob("*.cu")))
def test_nvcc_accepts_the_constructs(tmp_path, name):
    """Only its front end, without code for a GPU."""
    standard = "-std=c++20" if name == "cxx20" else "-std=c++17"
    arguments = [
        standard,
        "--extended-lambda",
        "-w",
        "-arch=compute_75",
        "-ptx",
        ROOT / f"tests/constructs/{name}.cu",
    ]
    done = subprocess.run([NVCC, *arguments, "-o", tmp_path / "out"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
