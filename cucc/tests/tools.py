# SPDX-License-Identifier: MIT
"""Functions for the tests of cucc: compiling with it, running a program."""
import dataclasses
import functools
import os
import pathlib
import re
import shlex
import signal
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOM = HERE.parent
CUCC = pathlib.Path(os.environ.get("CUCC", ROOM / "cucc"))  # another one, as a copy that is installed
CXX = shlex.split(os.environ.get("CXX", "g++"))
CLANG = "clang" in CXX[-1]

# Variables that would change the results, and those of make
PRIVATE = re.compile(r"CUDA_CPU_|CUDA_VISIBLE_DEVICES$|CUDA_PATH$|(WAYLAND_)?DISPLAY$|MAKE|MFLAGS$|PYTEST")

# The libraries that a line `// Needs: cublas` of a source can name: the header that tells whether it is there, the linker's
# options to test it, and the options of cucc
LIBRARIES = {
    "cublas": ("cblas.h", ["-lopenblas"], ["-lcublas"]),
    "cusolver": ("cblas.h", ["-lopenblas"], ["-lcusolver"]),
    "cufft": ("fftw3.h", ["-lfftw3f"], ["-lcufft"]),
    "egl": ("EGL/egl.h", ["-lEGL", "-lGL"], ["-lEGL", "-lGL"]),
    "thrust": ("thrust/sort.h", ["-DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP"], []),
}


@dataclasses.dataclass
class Result:
    """The result of a run: exit status (negative: the signal that ended it), stdout and stderr."""

    status: int
    out: str
    err: str
    command: str

    def __str__(self):
        return f"{self.command}\nstatus {self.status}\n--- stdout\n{self.out}--- stderr\n{self.err}"


def environment(extra=None):
    return {**{k: v for k, v in os.environ.items() if not PRIVATE.match(k)}, **(extra or {})}


def execute(program, *args, cwd=None, env=None, timeout=120, status=0):
    """Runs a program and kills it with its children after `timeout` seconds. `env` adds variables to the environment. The exit status must
    be `status`, unless that is None."""
    command = [str(program), *map(str, args)]
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=environment(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        raise AssertionError(f"{shlex.join(command)}: not done after {timeout} s\n{out}\n{err}")
    result = Result(process.returncode, out, err, shlex.join(command))
    assert status in (None, result.status), str(result)
    return result


def cucc(*args, **more):
    return execute(CUCC, *args, timeout=600, **more)


def compiled(folder, text, *options, status=0, **env):
    """Compiles folder/main.cu, which has this text; returns the Result."""
    (folder / "main.cu").write_text(text)
    return cucc("main.cu", *options, cwd=folder, env=env, status=status)


@functools.cache
def has(library):
    """Whether the compiler finds a library, by its name in LIBRARIES."""
    header, options, _ = LIBRARIES[library]
    with tempfile.TemporaryDirectory() as folder:
        command = [*CXX, "-std=c++17", "-include", header, "-x", "c++", "-", "-x", "none"]
        done = subprocess.run(
            [*command, *options, "-o", f"{folder}/probe"], input=b"int main() {}", stderr=subprocess.DEVNULL
        )
    return done.returncode == 0


def needs(source):
    """The libraries of the line `// Needs:` of a source."""
    line = re.search(r"^// Needs: (.*)", source.read_text(), re.M)
    return line[1].split() if line else []


def squeeze(text):
    """Without the blanks, of which some stay where the translator moves words"""
    return re.sub(r"[ \n]+", "", text)


def rows(table):
    """The cells of a table: one in a line, or several between bars"""
    return [cell.strip() for cell in re.split(r"\n| \| ", table) if cell.strip()]


def pairs(table):
    """The pairs of a table of lines `source -> translation`; a line that begins with -> continues the one before."""
    lines = re.sub(r"\n *->", " ->", table).strip().split("\n")
    return [[side.strip() for side in line.split(" -> ")] for line in lines]
