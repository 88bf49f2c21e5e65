# SPDX-License-Identifier: MIT
"""Functions for the tests of the build and its scripts: copies of the tree that a test may change, make in such a copy, and
scripts that replace other programs."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

# What the attack with hostile command lines runs
SANITIZED = [
    "chapter03/simple_kernel_params",
    "chapter04/julia_gpu",
    "chapter05/dot",
    "chapter10/basic_single_stream",
]

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ["chapter03/hello_world", "chapter03/simple_kernel", "chapter04/julia_gpu"]
NVCC = next(
    (
        n
        for n in (os.environ.get("NVCC"), shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc")
        if n and not n.endswith("cucc") and os.access(n, os.X_OK)
    ),
    None,
)
needs_nvcc = pytest.mark.skipif(not NVCC, reason="needs nvcc, found none")


def nvcc_settings(kind):
    """The settings of make for a build with nvcc: kind "least" is for the least architecture that nvcc has, "default" for the
    default ones. The folder, in build/, is kept for the next run."""
    folder = ROOT / os.environ.get("BUILD", "build") / "nvcc" / kind
    settings = ["BACKEND=gpu", f"NVCC={NVCC}", f"BIN={folder}/bin", f"BUILD={folder}/build"]
    # nvcc takes the name of a compiler, without a command in front of it such as ccache.
    settings.append("CXX=" + os.environ.get("CXX", "g++").split()[-1])
    if kind == "least":
        known = run(ROOT, NVCC, "--list-gpu-code").split()
        settings.append("SMS=75" if "sm_75" in known else "SMS=" + known[0].removeprefix("sm_"))
    return folder, settings


def environment(**more):
    """The environment of the tests, without the variables that `make test` sets."""
    ours = {
        k: v
        for k, v in os.environ.items()
        if k not in ("BACKEND", "BIN", "BUILD", "SANITIZE", "DEBUG", "SMS", "NVCC", "CUDA_PATH")
        and not k.startswith(("MAKE", "MFLAGS", "HAVE_", "PYTEST"))
    }
    return {**ours, **more}


def run(tree, *command, status=0, **env):
    """Runs a command in tree. Returns its stdout and stderr together. Status None stands for any."""
    done = subprocess.run(
        command,
        cwd=tree,
        env=environment(**env),
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=1200,
    )
    assert status in (None, done.returncode), done.stdout
    return done.stdout


def make(tree, *arguments, status=0, **env):
    """Runs make on the CPU back end, unless the arguments name another one."""
    if not any(a.startswith("BACKEND=") for a in arguments):
        arguments = ("BACKEND=cpu", *arguments)
    return run(tree, "make", *arguments, status=status, **env)


def compiled(output):
    """The programs and the sources of common/ that were compiled, from lines such as "NVCC  bin/chapter04/julia_gpu"."""
    return set(re.findall(r"^(?:CC|NVCC) +(?:bin/)?(\S+)$", output, re.M))


def copy_sources(tree, programs=None):
    """A copy of the sources without build products and tests; of the programs only those that are named."""
    shutil.copytree(
        ROOT,
        tree,
        ignore=shutil.ignore_patterns(
            ".git", "build", "bin", "my", "tests", "__pycache__", "compile_commands.json"
        ),
    )
    for made in (ROOT / "cucc/build").glob("*/machine"):  # the library for the CPU takes long to build
        if "," not in made.parent.name and "-address" not in made.parent.name:
            shutil.copytree(made.parent, tree / "cucc/build" / made.parent.name, symlinks=True)
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


def programs_of(sources, scripts, header=lambda name: ""):
    """Replaces the programs by shell scripts, with headers to which header(name) adds lines."""
    text = (sources / "chapter03/hello_world.cu").read_text()
    for path in sources.glob("chapter*/*.cu"):
        path.unlink()
    for name, script in scripts.items():
        (sources / "chapter03" / (name + ".cu")).write_text(
            text.replace("hello_world", name).replace(" */", header(name) + " */", 1)
        )
        stand_in(sources / "bin/chapter03", name, script)


# nvcc and nvidia-smi, as scripts for stand_in()
FAKE_NVCC = """case $1 in --version) echo 'Cuda compilation tools, release 12.9, V12.9.1' ;;
--list-gpu-code) echo sm_75; echo sm_90; echo sm_120 ;; *) exit 1 ;; esac"""
FAKE_SMI = """case $1 in --query-gpu=compute_cap,name*) printf '9.0, NVIDIA H200\\n9.0, NVIDIA H200\\n' ;; *) exit 1 ;; esac"""
