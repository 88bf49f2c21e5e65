# SPDX-License-Identifier: MIT
"""scripts/configure.sh by way of make: bad settings and goals, and the choice of the back end."""
import os
import re
import shutil

import pytest

from trees import FAKE_NVCC, FAKE_SMI, NVCC, ROOT, compiled, make, needs_nvcc, nvcc_settings, run, stand_in


OLD_SMI = """case $1 in -L) echo 'GPU 0: Old (UUID: GPU-1)' ;; *) echo 'Field "compute_cap" is not a valid field to query.'; exit 2 ;; esac"""


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["BACKEND=bogus"], "BACKEND=bogus: must be auto, gpu or cpu"),
        (["BACKEND=gpu", "CUDA_PATH=/nonexistent"], "no nvcc in CUDA_PATH=/nonexistent"),
        (["BACKEND=auto", "SMS=90", "CUDA_PATH=/nonexistent"], "SMS=90: no nvcc"),
        (["BACKEND=cpu", "SMS=90"], "SMS is for BACKEND=gpu"),
        (["BACKEND=gpu", "SANITIZE=address"], "SANITIZE is for BACKEND=cpu"),
        (["check", "BACKEND=gpu"], "make check is for the CPU back end"),
        (["locks", "BACKEND=gpu"], "make locks is for BACKEND=cpu, whose schedule can be chosen"),
        (["check", "SANITIZE=thread"], "make check has instrumentation of its own"),
        (["check", "PROGRAM=chapter05/dt"], "PROGRAM=chapter05/dt: there is no such program"),
        (["run", "PROGRAM=chapter05/dot"], "PROGRAM is for make check"),
        (["exercise"], "make exercise needs a program: make exercises lists all"),
        (["exercise", "nosuch"], "there is no program nosuch: make exercises lists the exercises"),
        (["exercise", "julia"], "there is no program julia: did you mean chapter04/julia_gpu?"),
        (["exercise", "chapter04/julia_gpu.cu"], "julia_gpu.cu: did you mean chapter04/julia_gpu?"),
        (["exercise", "PROGRAM=chapter05/dt"], "PROGRAM=chapter05/dt: there is no such program"),
        (
            ["my/chapter04/julia_gpu"],
            "there is no my/chapter04/julia_gpu.cu: make exercise chapter04/julia_gpu writes it",
        ),
        (["my/nonesuch"], "there is no my/nonesuch.cu"),
        (["grade"], "make grade needs the folder of the solutions"),
        (["grade", "DIR=/nonexistent"], "DIR=/nonexistent: there is no such folder"),
        (["sanitize", "PROGRAM=chapter05/dt"], "PROGRAM=chapter05/dt: there is no such program"),
        (["profile-julia_gpu"], "there is no program julia_gpu: did you mean chapter04/julia_gpu?"),
        (
            ["profile-chapter04/julia_gpu"],
            "make profile-chapter04/julia_gpu needs a GPU (asked for): nsys and ncu",
        ),
        (["trace-julia_gpu"], "there is no program julia_gpu: did you mean chapter04/julia_gpu?"),
        (
            ["trace-chapter04/julia_gpu", "BACKEND=gpu"],
            "make trace-… is for the CPU back end; on a GPU: make profile-…",
        ),
        (["trace-chapter04/julia_gpu", "SANITIZE=address"], "make trace-… has instrumentation of its own"),
        (["run", "FILE=x.svg"], "FILE is for make old and make trace-…"),
        (["DEBUG=yes"], "DEBUG=yes: must be 0 or 1"),
        (["SANITIZE=bogus"], "SANITIZE=bogus: must be"),
        (["SANITIZE=thread,address"], "thread goes with neither"),
        (["run", "CHAPTER=99"], "CHAPTER=99: must be one of"),
        (["chapter03/nonesuch"], "there is no target chapter03/nonesuch: make help lists them"),
        (["chapter4"], "there is no target chapter4: did you mean chapter04?"),
        (["4"], "there is no target 4: did you mean chapter04?"),
        (["chapter4/julia_gpu"], "there is no target chapter4/julia_gpu: did you mean chapter04/julia_gpu?"),
        (["julia_gpu"], "there is no target julia_gpu: did you mean chapter04/julia_gpu?"),
        (["julia_gpu.cu", "run"], "there is no target julia_gpu.cu: did you mean chapter04/julia_gpu?"),
        (["CXX=nonesuch-g++"], "no C++ compiler: nonesuch-g++"),
    ],
)
def test_bad_settings(built, arguments, says):
    lines = make(built, *arguments, status=2).splitlines()
    assert any(says in line for line in lines)
    assert not any(line.startswith("[") for line in lines)


@needs_nvcc
def test_an_architecture_that_nvcc_does_not_know(built):
    log = make(built, "BACKEND=gpu", "SMS=10", "NVCC=" + NVCC, status=2)
    known = run(built, NVCC, "--list-gpu-code").replace("sm_", "").split()
    assert "SMS=10: nvcc" in log and " ".join(known) in log


@needs_nvcc
@pytest.mark.skipif(os.environ.get("BACKEND") == "gpu", reason="this run is the GPU build")
@pytest.mark.xdist_group("nvcc")
def test_gpu_back_end_builds_without_a_warning():
    """Every program for the least architecture, which lacks what later ones have. For the default ones, the least among them,
    which take three times as long, the longest program without CUB and those whose text depends on the architecture.

    The folders are kept, so the next run compiles only what has changed. They are deleted unless the last run has passed,
    because make shows a warning only when it compiles."""
    programs = [line.split("\t")[0] for line in run(ROOT, "scripts/programs.sh").splitlines()]
    texts = {name: (ROOT / (name + ".cu")).read_text() for name in programs}
    several = {
        max(
            (name for name in programs if "HAVE_CUB\n" not in texts[name]), key=lambda name: len(texts[name])
        ),
        *(name for name in programs if "__CUDA_ARCH__" in texts[name]),
    }
    for kind, goals, wanted in ("default", several, several), ("least", ["all"], programs):
        folder, settings = nvcc_settings(kind)
        passed = folder / "passed"
        if not passed.exists():
            shutil.rmtree(folder, ignore_errors=True)
        passed.unlink(missing_ok=True)
        log = make(ROOT, *settings, *goals)
        assert "warning" not in log.lower()
        for name in wanted:
            assert os.access(folder / "bin" / name, os.X_OK) or "off: %s:" % name in log
        passed.touch()


@pytest.mark.parametrize(
    "nvcc, smi, arguments, says",
    [
        (FAKE_NVCC, FAKE_SMI, [], r"gpu \(nvcc 12.9 and NVIDIA H200, sm 90\)"),
        (FAKE_NVCC, OLD_SMI, [], r"gpu \(nvcc 12.9 and a GPU, sm 75 90 120 and PTX\)"),
        (
            FAKE_NVCC,
            FAKE_SMI.replace("9.0", "13.0"),
            [],
            r"gpu \(nvcc 12.9 and NVIDIA H200, sm 75 90 120 and PTX\)",
        ),
        (FAKE_NVCC, FAKE_SMI, ["SMS=75"], r"gpu \(SMS asks for GPU code, sm 75\)"),
        (FAKE_NVCC, FAKE_SMI, ["SANITIZE=address"], r"cpu \(SANITIZE is for the CPU back end\)"),
        (FAKE_NVCC, FAKE_SMI, ["BACKEND=cpu"], r"cpu \(asked for\)"),
        (None, FAKE_SMI, [], r"cpu \(no nvcc in CUDA_PATH=.*\)"),
        pytest.param(
            FAKE_NVCC,
            "exit 9",
            [],
            r"cpu \(nvcc 12.9 is here, but no GPU\)",
            marks=pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="there is a GPU here"),
        ),
    ],
)
def test_choice_of_back_end(tree, tmp_path, nvcc, smi, arguments, says):
    tools = tmp_path / "cuda/bin"
    stand_in(tools, "nvidia-smi", smi)
    if nvcc:
        stand_in(tools, "nvcc", nvcc)
    if not any(a.startswith("BACKEND=") for a in arguments):
        arguments = ["BACKEND=auto", *arguments]
    log = make(
        tree, "-n", *arguments, CUDA_PATH=str(tmp_path / "cuda"), PATH="%s:%s" % (tools, os.environ["PATH"])
    )
    assert re.search("back end: " + says, log), log


def test_program_for_an_architecture_with_its_own_features(tree, tmp_path):
    """With `Needs: arch=90a` a program is compiled for 90a in place of 90; other architectures, PTX and programs stay."""
    source = tree / "chapter03/hello_world.cu"
    source.write_text(source.read_text().replace("\n */", "\n * Needs:   arch=90a\n */", 1))
    assert not run(tree, "scripts/programs.sh", "--check")
    stand_in(tmp_path, "nvcc", FAKE_NVCC.replace("echo sm_120", "true"))  # the default adds PTX for 90
    stand_in(tmp_path, "nvidia-smi", "exit 9")
    for arguments, others, own in [
        (["SMS=75 90"], "75,sm_75 90,sm_90", "75,sm_75 90a,sm_90a"),
        (["SMS=75"], "75,sm_75", "75,sm_75"),
        (["SMS=90a"], "90a,sm_90a", "90a,sm_90a"),
        ([], "75,sm_75 90,sm_90 90,compute_90", "75,sm_75 90a,sm_90a 90,compute_90"),
    ]:
        path = "%s:%s" % (tmp_path, os.environ["PATH"])
        log = make(tree, "-n", "BACKEND=gpu", f"NVCC={tmp_path}/nvcc", *arguments, PATH=path)
        for name, codes in ("simple_kernel", others), ("hello_world", own):
            (command,) = re.findall(r".* -c -o \S*/%s\.o .*" % name, log)
            found = re.findall(r"arch=compute_(\w+),code=(\w+)", command)
            assert " ".join(map(",".join, found)) == codes, command


def test_environment_sets_what_the_command_line_sets(tree):
    assert "cpu (asked for)" in run(tree, "make", "-n", BACKEND="cpu")
    assert "build/cpu-address" in run(tree, "make", "-n", BACKEND="cpu", SANITIZE="address")
