# SPDX-License-Identifier: MIT
"""Functions for the tests of the build and its scripts: copies of the tree that a test may change, make in such a copy, and
scripts that replace other programs."""
import os
import re
import shutil
import subprocess

import pytest

import helpers

ROOT = helpers.ROOT
PROGRAMS = ["chapter03/hello_world", "chapter03/simple_kernel", "chapter04/julia_gpu"]
NVCC = os.environ.get("NVCC"), shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc"
NVCC = next((n for n in NVCC if n and not n.endswith("cucc") and os.access(n, os.X_OK)), None)
needs_nvcc = pytest.mark.skipif(not NVCC, reason="needs nvcc, found none")


def nvcc_settings(kind):
    """The settings of make for a build with nvcc: kind "least" is for the least architecture that nvcc has, "default" for the
    default ones. The folder, in build/, is kept for the next run."""
    folder = ROOT / os.environ.get("BUILD", "build") / "nvcc" / kind
    settings = ["BACKEND=gpu", f"NVCC={NVCC}", f"BIN={folder}/bin", f"BUILD={folder}/build"]
    # nvcc takes the name of a compiler, without a command in front of it such as ccache.
    settings += ["CFLAGS=", "CXXFLAGS=", "CXX=" + os.environ.get("CXX", "g++").split()[-1]]
    if kind == "least":
        known = run(ROOT, NVCC, "--list-gpu-code").split()
        settings.append("SMS=75" if "sm_75" in known else "SMS=" + known[0].removeprefix("sm_"))
    return folder, settings


def environment(**more):
    """The environment of the tests, without the variables that `make test` sets."""
    theirs = re.compile("(BACKEND|BIN|BUILD|SANITIZE|DEBUG|SMS|NVCC|CUDA_PATH)$|MAKE|MFLAGS|HAVE_|PYTEST")
    return {k: v for k, v in os.environ.items() if not theirs.match(k)} | more


def run(tree, *command, status=0, **env):
    """Runs a command in tree. Returns its stdout and stderr together. Status None stands for any."""
    done = subprocess.run(command, cwd=tree, env=environment(**env), timeout=2400, **helpers.TOGETHER)
    assert status in (None, done.returncode), done.stdout
    return done.stdout


def make(tree, *arguments, status=0, **env):
    """Runs make on the CPU back end, unless the arguments name another one, and without optimising, which takes half the time."""
    if not any(a.startswith("BACKEND=") for a in arguments):
        arguments = ("BACKEND=cpu", *arguments)
    return run(tree, "make", "CFLAGS=-O0", "CXXFLAGS=-O0", *arguments, status=status, **env)


def compiled(output):
    """The programs and the sources of common/ that were compiled, from lines such as "CUCC  bin/chapter04/julia_gpu"."""
    return set(re.findall(r"^(?:CC|CUCC|NVCC) +(?:bin/)?(\S+)$", output, re.M))


def copy_sources(tree, programs=None):
    """A copy of the sources without build products and tests; of the programs only those that are named."""
    others = ".git", "build", "bin", "my", "tests", "__pycache__", "node_modules"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*others))
    for made in (ROOT / "cucc/build").glob("*/machine"):  # the library for the CPU takes long to build
        if not re.search(",|-address|wasm", made.parent.name):  # those of one test, which may be building it
            shutil.copytree(made.parent, tree / "cucc/build" / made.parent.name, symlinks=True)
            shutil.copytree(ROOT / "cucc/build/bin", tree / "cucc/build/bin", dirs_exist_ok=True)
    for source in [*tree.glob("chapter*/*.cu"), *tree.glob("appendix_a/*.cu")]:
        if programs is not None and str(source.relative_to(tree))[:-3] not in programs:
            source.unlink()
    return tree


def append(path, text):
    path.write_text(path.read_text() + text)


def stand_in(folder, name, script):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n" + script)
    (folder / name).chmod(0o755)


def programs_of(sources, scripts, headers={}):
    """Replaces the programs by shell scripts; `headers` has the lines that are added to the header of each."""
    text = (sources / "chapter03/hello_world.cu").read_text()
    for path in sources.glob("chapter*/*.cu"):
        path.unlink()
    for name, script in scripts.items():
        own = text.replace("hello_world", name).replace(" */", headers.get(name, "") + " */", 1)
        (sources / f"chapter03/{name}.cu").write_text(own)
        stand_in(sources / "bin/chapter03", name, script)
