# SPDX-License-Identifier: MIT
"""Other ways in than a shell: CMakeLists.txt, .vscode, Dockerfile and .devcontainer, docs/notebook.ipynb. Most of them call make
or run commands of the README, so the tests compare the commands, and run those that are quick."""
import importlib.util
import json
import os
import re
import shlex
import shutil
import sys

import pytest

import helpers
from trees import NVCC, PROGRAMS, ROOT, append, copy_sources, needs_nvcc, run, stand_in

README = (ROOT / "README.md").read_text()
PHONY = re.findall(r"^\.PHONY: ((?:.*\\\n)*.*)$", (ROOT / "Makefile").read_text(), re.M)
TARGETS = {"setup", "exercise", *re.findall(r"[\w.-]+", " ".join(PHONY))}
SETTINGS = re.findall(r"^#: ([A-Z]+)=", (ROOT / "Makefile").read_text(), re.M)


def load(name):
    """A file of JSON. An editor would accept comments in some of them; other tools that read them would not."""
    return json.loads((ROOT / name).read_text())


def unknown_words(command):
    """The words of a call of make that are neither a target, nor a program or exercise, nor a setting of make."""
    tool, *words = shlex.split(command)
    assert tool == "make", command
    sources = {folder + program.name for program in helpers.programs() for folder in ("", "my/")}
    known = {"PROGRAM", "CHAPTER", "TOPIC", *SETTINGS}
    return [w for w in words if w.partition("=")[0] not in known and w not in TARGETS and w not in sources]


# ---- CMake ----

needs_cmake = pytest.mark.skipif(not shutil.which("cmake"), reason="needs cmake, found none")


@needs_cmake
def test_cmake_builds_and_tests(tree):
    """An IDE gets every program. A chapter is built with cucc; a program whose check fails fails its test, and one that lacks something
    is skipped."""
    folder = tree / "build/cmake/cpu"
    (folder / ".cmake/api/v1/query").mkdir(parents=True)
    (folder / ".cmake/api/v1/query/codemodel-v2").touch()

    def targets(*options):
        run(tree, "cmake", "--preset", "cpu", *options)
        files = [json.loads(path.read_text()) for path in folder.glob(".cmake/api/v1/reply/target-*.json")]
        own = {file["name"]: file for file in files if not file.get("isGeneratorProvided")}
        sources = {name: [source["path"] for source in own[name]["sources"]] for name in own}
        return {name: [path for path in sources[name] if path.endswith(".cu")] for name in own}

    assert targets() == {"shared": [], **{name.replace("/", "."): [f"{name}.cu"] for name in PROGRAMS}}
    assert targets("-DCHAPTER=3").keys() == {"shared", "chapter03.hello_world", "chapter03.simple_kernel"}
    build = "cmake", "--build", folder, "-j2"
    run(tree, *build)
    assert "Hello, World!" in run(tree, folder / "bin/chapter03/hello_world")
    ctest = "ctest", "--test-dir", folder
    assert re.search(r"100% tests passed\b.* out of 2", run(tree, *ctest))
    for status, says in (1, r"\*\*\*Failed"), (2, r"\*\*\*Skipped"):
        source = tree / "chapter03/hello_world.cu"
        source.write_text(re.sub(r"return \w*;", f"return {status};", source.read_text()))
        run(tree, *build)
        assert re.search(rf"chapter03.hello_world \.+{says}", run(tree, *ctest, status=None))
    append(tree / "chapter03/hello_world.cu", "#error on purpose\n")
    assert "on purpose" in run(tree, *build, status=2)


@needs_cmake
@needs_nvcc
def test_cmake_with_nvcc(sources):
    """The least that links: nvcc compiles for the architecture that is named, and finds the libraries."""
    settings = "-DBACKEND=gpu", "-DCMAKE_CUDA_ARCHITECTURES=80", "-DCHAPTER=03"
    log = run(sources, "cmake", "-B", "build/gpu", f"-DCMAKE_CUDA_COMPILER={NVCC}", *settings)
    assert "back end: gpu" in log
    assert "-gencode" not in log
    build = "cmake", "--build", "build/gpu", "--verbose", "--target", "chapter03.hello_world"
    assert "sm_80" in run(sources, *build)


@needs_cmake
def test_cmake_says_what_is_wrong(sources):
    log = run(sources, "cmake", "-B", "x", "-DBACKEND=tpu", status=1)
    assert "BACKEND=tpu: must be auto, gpu or cpu" in log
    assert "Choose a folder" in run(sources, "cmake", ".", status=1)


# ---- Visual Studio Code ----

TASKS = {task["label"]: task for task in load(".vscode/tasks.json")["tasks"]}


def expand(text, program, options=""):
    """Replaces the variables of Visual Studio Code, as it does when the source of the program is open."""
    folder, _, base = program.rpartition("/")
    text = text.replace("${workspaceFolder}", str(ROOT)).replace("${input:options}", options)
    text = text.replace("${relativeFileDirname}", folder).replace("${fileBasenameNoExtension}", base)
    assert "${" not in text, text
    return text


def test_tasks_call_make_and_run_the_open_program():
    """With what the Makefile does for an option that a reader types. The program is built already."""
    for label, task in TASKS.items():
        command = expand(task["command"], "chapter03/simple_kernel_params", "--help")
        assert task["type"] == "shell" and "options" not in task  # so it runs in the workspace folder
        assert task.get("dependsOn", label) in TASKS
        assert command == "./bin/chapter03/simple_kernel_params --help" or unknown_words(command) == []
        if label in ("build this program", "run this program"):
            command = command.replace("./bin", shlex.quote(str(helpers.BIN)), 1)
            said = run(ROOT, "sh", "-c", command, BACKEND=helpers.backend())
    assert "Usage: simple_kernel_params" in said


# ---- the container ----


def instructions(text):
    """The instructions of a Dockerfile, as (name, arguments)."""
    lines = re.sub(r"^#.*\n", "", text, flags=re.M).replace("\\\n", " ").splitlines()
    return [tuple(line.split(None, 1)) for line in lines if line.strip()]


DOCKERFILE = instructions((ROOT / "Dockerfile").read_text())


def test_setup_needs_only_what_the_image_has_then(tmp_path):
    """make setup runs in the image before the programs are copied. Here all packages are installed."""
    copied = next(i for i, step in enumerate(DOCKERFILE) if step[1].startswith("make setup"))
    for name, text in DOCKERFILE[:copied]:
        if name == "COPY":
            source, target = text.split()
            (shutil.copytree if (ROOT / source).is_dir() else shutil.copy)(ROOT / source, tmp_path / target)
    stand_in(tmp_path / "tools", "dpkg-query", "printf installed")
    stand_in(tmp_path / "tools", "apt-get", "exit 1")
    stand_in(tmp_path / "tools", "ffmpeg", "exit 0")
    log = run(tmp_path, "make", "setup", PATH=f"{tmp_path}/tools:{os.environ['PATH']}")
    assert log == "setup: nothing is missing\n"


def test_the_development_container_is_the_image():
    settings = load(".devcontainer/devcontainer.json")
    folder = ROOT / ".devcontainer"
    build = settings["build"]
    assert (folder / build["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert (folder / build["context"]).resolve() == ROOT
    assert any(name == "FROM" and text.endswith(f" AS {build['target']}") for name, text in DOCKERFILE)
    assert {("ARG", name + "=") for name in build["args"]} <= set(DOCKERFILE)
    assert f"useradd --create-home --shell /bin/bash {settings['remoteUser']} " in str(DOCKERFILE)
    assert unknown_words(settings["postCreateCommand"]) == []
    assert f"\n    {settings['postCreateCommand']} " in README


# ---- the notebook ----

NOTEBOOK = load("docs/notebook.ipynb")
CELLS = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
SHELL = "%%bash -e\n"
COMMANDS = [line for cell in CELLS if cell.startswith(SHELL) for line in cell.splitlines()[1:]]
BEGINNING = CELLS[0]


def test_the_commands_of_the_notebook_exist():
    made = re.findall(r"make ((?:my/)?chapter\S+)", "\n".join(COMMANDS))
    tools = "cucc/cucc", "./mine", *(f"./bin/{name}" for name in made)
    assert [c for c in COMMANDS if c.split()[0] not in tools and unknown_words(c)] == []


def test_the_notebook_clones_the_repository(tmp_path):
    """In an empty folder; then in the folder with the clone, in the clone and in its docs, where it clones nothing."""
    cell = tmp_path / "cell.py"
    where = 'print(os.path.relpath(".", %r), os.path.exists("Makefile"))' % str(tmp_path)
    cell.write_text(f"{BEGINNING}\n{where}")
    assert "ValueError: write the address" in run(tmp_path, sys.executable, str(cell), status=1)
    origin = tmp_path / "origin"
    for name in "Makefile", "cucc/cucc", "docs/notebook.ipynb":
        (origin / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, origin / name)
    git = ["git", "-C", str(origin), "-c", "user.name=t", "-c", "user.email=t@example.com"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        run(tmp_path, *git, *words)
    cell.write_text(f"{BEGINNING}\n{where}".replace('repository = ""', f'repository = "file://{origin}"'))
    assert "cuda-by-example True\n" in run(tmp_path, sys.executable, str(cell))
    shutil.rmtree(origin)
    for folder in "", "cuda-by-example", "cuda-by-example/docs":
        assert run(tmp_path / folder, sys.executable, str(cell)) == "cuda-by-example True\n"


@pytest.mark.skipif(
    not (shutil.which("jupyter-nbconvert") and importlib.util.find_spec("ipykernel")),
    reason="needs jupyter-nbconvert and python3-ipykernel, found none",
)
@pytest.mark.skipif(not helpers.has("PNG"), reason="needs libpng, which this build lacks")
def test_the_notebook_runs(tmp_path):
    """Without the cells that install packages, write exercises or take long. The last cell is added: a wrong result must stop it."""
    clone = copy_sources(tmp_path / "cuda-by-example")
    for name, folder in ("bin", helpers.BIN), ("build", helpers.BUILD):  # which make finds to be up to date
        (clone / name).symlink_to(folder)
    notebook = json.loads((clone / "docs/notebook.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if not cell["metadata"].get("tags")]
    checked = next(cell for cell in cells if "./bin/chapter05/dot\n" in cell["source"])
    source = "".join(checked["source"]).replace("/dot\n", "/dot --inject-error\n")
    cells.append({**checked, "source": source, "metadata": {"tags": ["raises-exception"]}})
    (clone / "docs/quick.ipynb").write_text(json.dumps({**notebook, "cells": cells}))
    options = "--to=notebook --execute --ExecutePreprocessor.timeout=300 --output=executed.ipynb".split()
    # HOME: so that no settings of the user are read, and nothing is written there
    home = {"HOME": str(clone), "JUPYTER_RUNTIME_DIR": str(clone / "run")}
    run(clone, "jupyter-nbconvert", *options, "docs/quick.ipynb", BACKEND=helpers.backend(), **home)
    cells = json.loads((clone / "docs/executed.ipynb").read_text())["cells"]
    *outputs, wrong = [cell["outputs"] for cell in cells if "outputs" in cell]
    printed = "".join("".join(output.get("text", "")) for cell in outputs for output in cell)
    for text in f"back end: {helpers.backend()}", "31 * 31 = 961", "Usage: dot":
        assert text in printed
    assert "image/png" in str(outputs) and helpers.pixels(clone / "julia.png").shape == (2000, 2000, 3)
    assert wrong[-1].get("ename") == "CalledProcessError" and "Usage: dot" not in str(wrong)
