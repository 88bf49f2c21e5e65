# SPDX-License-Identifier: MIT
"""Builds of the whole suite with other compilers than that of this run: every program without a warning."""
import concurrent.futures
import os
import shlex
import shutil
import subprocess

import pytest

import helpers
from trees import NVCC, ROOT, make, needs_nvcc, nvcc_settings

not_on_a_gpu = pytest.mark.skipif(os.environ.get("BACKEND") == "gpu", reason="this run is the GPU build")


def without_a_word(command):
    """Runs a command of a compiler. Returns what it says, which should be nothing."""
    done = subprocess.run(command, cwd=ROOT, **helpers.TOGETHER)
    return done.stdout or done.returncode and f"{shlex.join(command)}: status {done.returncode}"


def commands(compiler, *settings):
    """The options and the source of each program, in the commands of make."""
    for line in make(ROOT, "-n", *settings, "all").replace("\\\n", " ").splitlines():
        if compiler in shlex.split(line)[:1]:
            words = shlex.split(line)
            yield words[1 : words.index("-MMD")], next(word for word in words if word.endswith(".cu"))


def say_nothing(found, folder):
    found = [[*command, "-o", str(folder / f"{number}.out")] for number, command in enumerate(found)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        assert [text for text in pool.map(without_a_word, found) if text] == [] and len(found) > 100


@needs_nvcc
@not_on_a_gpu
@pytest.mark.xdist_group("nvcc")
def test_with_nvcc_as_far_as_ptx(tmp_path):
    """Every program for the least architecture, which lacks what later ones have. Its front ends have read all of the source then, that
    of the host too; test_by_hand.py links a program of each need."""
    _, settings = nvcc_settings("least")
    ptx = ["-arch=compute_75", "-ptx", "-Xcicc", "-O0"]
    found = commands(NVCC, *settings)
    found = [[NVCC, *(o for o in all if not o.startswith("-gencode")), *ptx, source] for all, source in found]
    say_nothing(found, tmp_path)


@needs_nvcc
@not_on_a_gpu
@pytest.mark.xdist_group("nvcc")
def test_with_nvcc_for_the_default_architectures():
    """The longest program without CUB and those whose text depends on the architecture, as make builds them."""
    texts = {p.name: p.source for p in helpers.programs()}
    without_cub = [name for name in texts if "HAVE_CUB\n" not in texts[name]]
    longest = max(without_cub, key=lambda name: len(texts[name]))
    goals = sorted({longest, *(name for name in texts if "__CUDA_ARCH__" in texts[name])})
    folder, settings = nvcc_settings("default")
    shutil.rmtree(folder, ignore_errors=True)
    assert "warning" not in make(ROOT, *settings, *goals).lower()
    assert all(os.access(folder / "bin" / name, os.X_OK) for name in goals)


@pytest.mark.skipif(not shutil.which("clang++"), reason="needs clang++, found none")
def test_with_clang(tmp_path):
    """Every program, at -O1: with -O0, kernels are not split into loops. One is linked and runs."""
    settings = ["BACKEND=cpu", "CC=clang", "CXX=clang++", "CFLAGS=-O1", "CXXFLAGS=-O1"]
    settings += [f"{name}={helpers.BUILD}/clang/{name.lower()}" for name in ("BIN", "BUILD")]
    once = ["-Xcompiler", "-fsyntax-only,-Qunused-arguments", "-c"]
    found = [["cucc/cucc", *options, *once, source] for options, source in commands("cucc/cucc", *settings)]
    say_nothing(found, tmp_path)
    assert "warning" not in make(ROOT, *settings, "common", "chapter05/dot").lower()
    assert helpers.execute(helpers.BUILD / "clang/bin/chapter05/dot", ["--size", 100], ROOT).status == 0
