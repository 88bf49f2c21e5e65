# SPDX-License-Identifier: MIT
"""Builds of the whole suite with other compilers than that of this run: every program without a warning."""
import os
import re
import shutil

import pytest

import helpers
from trees import ROOT, make, needs_nvcc, nvcc_settings


@needs_nvcc
@pytest.mark.skipif(os.environ.get("BACKEND") == "gpu", reason="this run is the GPU build")
@pytest.mark.xdist_group("nvcc")
@pytest.mark.parametrize("kind", ["default", "least"])
def test_with_nvcc(kind):
    """Every program for the least architecture, which lacks what later ones have. For the default ones, the least among them,
    which take three times as long, the longest program without CUB and those whose text depends on the architecture. The host's
    part of the former is not optimised, which takes a fifth less time. The folder is kept, so the next run compiles only what has
    changed; it is deleted unless the last run has passed, because make shows a warning only when it compiles.
    """
    texts = {p.name: p.source for p in helpers.programs()}
    own = [name for name in texts if "HAVE_CUB\n" not in texts[name]]
    longest = max(own, key=lambda name: len(texts[name]))
    several = {longest, *(name for name in texts if "__CUDA_ARCH__" in texts[name])}
    goals = sorted(several) if kind == "default" else ["all"]
    folder, settings = nvcc_settings(kind)
    settings += ["NVCCFLAGS=-O0"] if kind == "least" else []
    passed = folder / "passed"
    if not passed.exists():
        shutil.rmtree(folder, ignore_errors=True)
    passed.unlink(missing_ok=True)
    log = re.sub(".*redefinition for option 'optimize'.*", "", make(ROOT, *settings, *goals))
    assert "warning" not in log.lower()
    for name in texts if kind == "least" else goals:
        assert os.access(folder / "bin" / name, os.X_OK) or f"off: {name}: " in log
    passed.touch()


@pytest.mark.skipif(not shutil.which("clang++"), reason="needs clang++, found none")
def test_with_clang():
    """Every program, at -O1: with -O0, kernels are not split into loops. The folder is kept, as above."""
    folder = ROOT / os.environ.get("BUILD", "build") / "clang"
    passed = folder / "passed"
    if not passed.exists():
        shutil.rmtree(folder, ignore_errors=True)
    passed.unlink(missing_ok=True)
    settings = ["BACKEND=cpu", "CC=clang", "CXX=clang++", "CFLAGS=-O1", "CXXFLAGS=-O1", f"BIN={folder}/bin"]
    log = make(ROOT, *settings, f"BUILD={folder}/build", "all")
    assert "warning" not in log.lower()
    for program in helpers.programs():
        built = [os.access(bin / program.name, os.X_OK) for bin in (folder / "bin", helpers.BIN)]
        assert built[0] == built[1], program.name
    passed.touch()
