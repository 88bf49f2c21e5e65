# SPDX-License-Identifier: MIT
"""Builds that are interrupted or run twice at once, full disks, odd folders, users, locales and clocks, a machine without /sys."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

import helpers
from trees import compiled, copy_sources, environment, make, run

pytestmark = pytest.mark.backend("cpu")
HELLO = "chapter03/hello_world"
MAKE = "make", "BACKEND=cpu", "CFLAGS=-O0", "CXXFLAGS=-O0"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount or to change the user")


@pytest.fixture
def small(tmp_path):
    """The sources with one program, not built, in a folder with blanks and quotes."""
    return copy_sources(tmp_path / """a b'c"d""", [HELLO])


def start(tree, *goals):
    said = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "start_new_session": True, "text": True}
    return subprocess.Popen([*MAKE, *goals], cwd=tree, env=environment(), **said)


def right(tree):
    """A make finishes what is left, the next one has nothing to do, and the program runs. No unfinished files are left."""
    left = tree / "bin" / f"{HELLO}.999999999"
    left.parent.mkdir(parents=True, exist_ok=True)
    left.touch()
    run(tree, *MAKE)
    assert not compiled(run(tree, *MAKE))
    assert not [f for f in [*tree.glob("bin/**/*"), *tree.glob("build/**/*")] if f.suffix[1:].isdigit()]
    assert "Hello, World!" in run(tree, f"bin/{HELLO}")


def test_interrupted_builds(small, rng):
    """INTERRUPTS=50 is the long run of CONTRIBUTING.md."""
    for number in range(int(os.environ.get("INTERRUPTS", 5))):
        if number % 5 == 0:
            shutil.rmtree(small / "build", ignore_errors=True)
        build = start(small)
        time.sleep(rng.uniform(0.05, 4))
        sent = rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
        os.killpg(build.pid, sent) if build.poll() is None else None
        build.communicate(timeout=60)
        if number % 5 == 4:
            right(small)


def test_two_at_once(small):
    """Each builds and runs; the second run waits for the first, because both write the same files."""
    both = [start(small, "run") for _ in range(2)]
    for build in both:
        out, _ = build.communicate(timeout=600)
        assert build.returncode == 0 and "1 ok, 0 failed" in out, out


@as_root
def test_a_full_disk(small, tmp_path):
    """The build says so and fails; it succeeds when there is room again."""
    script = """mount -t tmpfs -o size=200k none "$1" && cd "$2" && shift 2 || exit 9
    "$@"; first=$?; df . >&2; mount -o remount,size=64m "$BUILD" && "$@" && [ $first = 2 ] && echo twice"""
    (tmp_path / "disk").mkdir()
    disk = tmp_path / "disk"
    command = *MAKE, f"BUILD={disk}", HELLO
    log = run(small, "unshare", "-m", "sh", "-c", script, "sh", disk, small, *command, BUILD=str(disk))
    assert "No space left on device" in log and log.endswith("twice\n"), log


@as_root
def test_an_ordinary_user_with_a_read_only_clone():
    """Without HOME, with umask 077, with BUILD and BIN elsewhere. The translator and the library are in the user's cache."""
    with tempfile.TemporaryDirectory() as folder:
        tree, own = copy_sources(pathlib.Path(folder, "clone"), [HELLO]), pathlib.Path(folder, "own")
        number = run(tree, "sh", "-c", 'echo "$PWD/cucc" | cksum | cut -d" " -f1').strip()
        shutil.move(tree / "cucc/build", own / "cucc" / number)
        run(tree, "chown", "-R", "65534:65534", own)
        run(tree, "chmod", "-R", "go+rX", tree, own)
        os.chmod(folder, 0o755)
        user = "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "-u", "HOME"
        folders = f"XDG_CACHE_HOME={own}", *MAKE, f"BUILD={own}/build", f"BIN={own}/bin", HELLO
        run(tree, "sh", "-c", 'umask 077; exec "$@"', "sh", *user, *folders)
        assert "Hello, World!" in run(tree, *user, own / "bin" / HELLO)


@pytest.mark.parametrize("locale", ["tr_TR", "C"])
def test_locales_and_clocks(tree, tmp_path, locale):
    """Sources of 1990 and of the future: a build ends, and what it has built is right."""
    if locale != "C":
        if not shutil.which("localedef") or not os.path.exists(f"/usr/share/i18n/locales/{locale}"):
            pytest.skip("needs localedef and the sources of the locales")
        run(tmp_path, "localedef", "-i", locale, "-f", "UTF-8", tmp_path / f"{locale}.UTF-8", status=None)
    name = locale if locale == "C" else f"{locale}.UTF-8"
    settings = {"LC_ALL": name, "LOCPATH": str(tmp_path), "LANG": name}
    os.utime(tree / f"{HELLO}.cu", (time.time() + 1e8,) * 2 if locale == "C" else (6e8, 6e8))
    (tree / "bin" / HELLO).unlink()
    assert compiled(make(tree, HELLO, **settings)) == {HELLO}
    assert "Hello, World!" in run(tree, f"bin/{HELLO}", **settings)


# ---- a bare container

DOT, OPENCL = "chapter11/dot_mpi", "chapter12/opencl_add"
NO_SYS = "unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys && exec "$@"', "sh"


def test_where_mpi_cannot_start(run):
    """Options are read before it; else there is one line and status 2."""
    env = {"OMPI_MCA_pml": "none-such", "MPIR_CVAR_CH4_NETMOD": "none-such"}
    assert run(DOT, "--help", env=env, status=0).out.startswith("Usage: dot_mpi")
    assert run(DOT, "--nonsense", env=env, status=64).errors == ["dot_mpi: unrecognized option '--nonsense'"]
    result = run(DOT, "--size", 100, env=env, status=2)
    says = "dot_mpi: needs MPI, which cannot start"
    assert len(result.errors) == 1 and result.err.startswith(says), str(result)


@as_root
def test_without_sys(tmp_path):
    """MPI starts, because it does not ask OpenCL for devices; PoCL aborts there."""
    for program, statuses in (DOT, {0}), (OPENCL, {0, 2}):
        helpers.build(program)
        for options in ["--size", "100"], ["--help"]:
            command = [*NO_SYS, str(helpers.BIN / program), *options]
            where = {"cwd": tmp_path, "env": helpers.environment()}
            done = subprocess.run(command, capture_output=True, text=True, **where)
            lines = [line for line in done.stderr.splitlines() if not line.startswith("[hwloc/linux]")]
            assert done.returncode in (statuses if options != ["--help"] else {0}), done
            assert len(lines) == (done.returncode == 2), done
