# SPDX-License-Identifier: MIT
"""Hostile sources and options: cucc compiles them, or says in one message what is wrong. Hostile kernels are in units/kernel_faults.cu."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

import tools

RIGHT = """__global__ void k(int *p) { *p = 42; }
int main() {
    int *d, h = 0;
    cudaMalloc(&d, 4);
    k<<<1, 1>>>(d);
    cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost);
    cudaFree(d);
    return h != 42;
}
"""
SOURCES = {
    "CRLF": RIGHT.replace("\n", "\r\n").encode(),
    "not UTF-8": b"// \xe4 \xff\xfe\n" + RIGHT.encode() + b'const char *s = "\xe4\xff";\n',
    "a BOM": b"\xef\xbb\xbf" + RIGHT.encode(),
    "a null byte": b"// a\0b\n" + RIGHT.encode(),
    "a line of 1 MB": b'const char *s = "' + b"a" * (1 << 20) + b'";\n' + RIGHT.encode(),
    "long lists": "enum {{ {} }};\nvoid list(int *a) {{ {} }}\n{}".format(
        ", ".join(f"e{i}" for i in range(30000)),
        "\n".join(f"a[{i}] = e{i};" for i in range(30000)),
        RIGHT.replace("*p = 42", "__syncthreads(); *p = 42"),
    ).encode(),
}


@pytest.mark.parametrize("what", SOURCES)
def test_odd_sources(tmp_path, what):
    (tmp_path / "a b'c.cu").write_bytes(SOURCES[what])
    tools.cucc("-O0", "a b'c.cu", "-o", "x", cwd=tmp_path)
    tools.execute(tmp_path / "x")


def test_names_do_not_grow_with_the_square_of_the_parameters(tmp_path):
    parameters, values = ", ".join(f"int *p{i}" for i in range(400)), ", ".join(["d"] * 400)
    text = RIGHT.replace("int *p", parameters).replace("*p =", "*p399 =").replace(">(d)", f">({values})")
    (tmp_path / "a.cu").write_text(text)
    tools.cucc("-O0", "a.cu", "-o", "x", cwd=tmp_path)
    tools.execute(tmp_path / "x")
    assert (tmp_path / "x").stat().st_size < 2 << 20


@pytest.mark.parametrize(
    "text, says",
    [
        ("@options", "options: this file of options reads itself"),
        ('-DX="a', "options: a quote of this file of options is not closed"),
        ("", "no input files"),
        ("-O0\r\nmissing.cu\r\n", "missing.cu: no such file"),
        (None, "options: cannot read this file of options"),
    ],
)
def test_odd_files_of_options(tmp_path, text, says):
    (tmp_path / "options").mkdir() if text is None else (tmp_path / "options").write_text(text)
    assert tools.cucc("@options", cwd=tmp_path, status=1).err == f"cucc: {says}\n"


def test_a_source_without_an_end(tmp_path):
    result = tools.cucc("-x", "cu", "/dev/zero", cwd=tmp_path, status=1)
    assert result.err == "cucc: /dev/zero: neither a file nor a pipe\n"
    with open("/dev/zero") as zero:
        read = subprocess.run([tools.CUCC, "-x", "cu", "-"], stdin=zero, stderr=subprocess.PIPE, text=True)
    assert (read.returncode, read.stderr) == (1, "cucc: standard input: neither a file nor a pipe\n")


def test_a_changed_header_is_noticed_however_the_folder_is_named(tmp_path):
    shutil.copytree(tools.ROOM, tmp_path / "cucc", ignore=shutil.ignore_patterns("build", "tests"))
    for folder, stale in (tmp_path / "cucc/new", True), ("new", False), ("new", True):
        command = (
            "make",
            "-C",
            tmp_path / "cucc",
            f"TOOLKIT={folder}",
            f"{folder}/objects/runtime/block_unit.cpp.o",
        )
        log = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert stale == ("CXX" in log), log
        if not stale:
            (tmp_path / "cucc/runtime/fiber.h").touch()


# In place of the Makefiles of copies, whose compiler is ours
COPIES_THE_COMPILER = f"tools:\n\tmkdir -p '$(BUILD)/bin' && cp '{tools.ROOM}/build/bin/cucc' '$(BUILD)/bin' && touch '$(BUILD)/bin/made'\n"


def test_a_cold_cache_used_by_two(tmp_path):
    """One builds the translator and the library, the other waits. A Makefile that notices another one takes the place of ours."""
    shutil.copytree(tools.ROOM, tmp_path / "cucc", ignore=shutil.ignore_patterns("build", "tests"))
    makefile = "all:\n\tmkdir $(TOOLKIT).busy && sleep 1 && rmdir $(TOOLKIT).busy && mkdir -p $(TOOLKIT)\n"
    (tmp_path / "cucc/Makefile").write_text(makefile)
    (tmp_path / "cucc/driver/Makefile").write_text(COPIES_THE_COMPILER)
    command = [tmp_path / "cucc/cucc", "--toolkit"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    said = [process.communicate(timeout=60)[0] for process in both]
    assert said[0] == said[1] and [process.returncode for process in both] == [0, 0]
    # The compiler is built again when one of its sources is newer.
    built = (tmp_path / "cucc/build/bin/cucc").stat().st_mtime_ns
    for again in False, True:
        if again:
            (tmp_path / "cucc/translate/lex.c").touch()
        assert tools.execute(*command).out == said[0].decode()
        assert ((tmp_path / "cucc/build/bin/cucc").stat().st_mtime_ns > built) == again


@pytest.mark.parametrize("to", [os.killpg, os.kill])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_it_with_the_status_of_a_shell(tmp_path, name, to):
    """As that of a terminal, to all its processes, and to the compiler alone, which passes it on"""
    command, env = [tools.CUCC, "-v", "-x", "cu", "-"], {**os.environ, "TMPDIR": str(tmp_path)}
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with subprocess.Popen(command, env=env, start_new_session=True, **pipes) as process:
        next(line for line in process.stderr if " -E " in line)
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")

        def compiles():
            try:
                return any(
                    pathlib.Path(f"/proc/{pid}/comm").read_text() != "cucc\n"
                    for pid in children.read_text().split()
                )
            except FileNotFoundError:  # a process has just ended
                return False

        # When the compiler has begun to wait for the source
        while not compiles():
            time.sleep(0.01)
        time.sleep(0.1)
        pids = children.read_text().split()
        to(process.pid, getattr(signal, name))
        assert process.wait(60) == 128 + getattr(signal, name)
    assert not any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root, to be two users")
def test_a_home_that_cannot_be_written_to():
    """The finished build of another user is taken unless it is out of date; else the cache goes where it may."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shutil.copytree(tools.ROOM, folder / "cucc", ignore=shutil.ignore_patterns("build", "tests"))
        (folder / "cucc/Makefile").write_text("all:\n\tmkdir -p '$(TOOLKIT)'\n")
        (folder / "cucc/driver/Makefile").write_text(COPIES_THE_COMPILER)
        user = "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"
        for part, mode in ("", 0o755), ("home", 0o755), ("tmp", 0o1777), ("own", 0o777), ("bad", 0o1777):
            (folder / part).mkdir(exist_ok=True)
            (folder / part).chmod(mode)
        (folder / "bad/cucc-65534").symlink_to(folder / "own")  # of another user

        def toolkit(*settings, who=user):
            env = "env", "-u", "HOME", "-u", "XDG_CACHE_HOME", *(word.replace("@", name) for word in settings)
            return tools.execute(*who, *env, folder / "cucc/cucc", "--toolkit", cwd=folder).out.strip()

        for settings, place in [
            ("HOME=@/home TMPDIR=@/tmp", "@/tmp/cucc-65534/"),
            ("HOME=@/home/none TMPDIR=@/tmp", "@/tmp/cucc-65534/"),
            ("HOME= TMPDIR=@/tmp", "@/tmp/cucc-65534/"),
            ("TMPDIR=@/tmp", "@/tmp/cucc-65534/"),
            ("HOME=@/home XDG_CACHE_HOME=@/home TMPDIR=@/tmp", "@/tmp/cucc-65534/"),
            ("HOME=@/own XDG_CACHE_HOME=own TMPDIR=@/tmp", "@/tmp/cucc-65534/"),
            ("HOME=@/own TMPDIR=@/tmp", "@/own/.cache/cucc/"),
            ("HOME=@/home XDG_CACHE_HOME=@/own TMPDIR=@/tmp", "@/own/cucc/"),
            ("HOME=@/home TMPDIR=@/home", "/tmp/cucc-65534/"),
            ("HOME=@/home TMPDIR=@/bad", "/tmp/cucc-65534/"),
        ]:
            found = toolkit(*settings.split())
            shutil.rmtree(pathlib.Path(found).parent)
            assert found.startswith(place.replace("@", name)), settings
        built = toolkit(f"HOME={name}", who=())
        assert built.startswith(f"{name}/cucc/build/") and toolkit("HOME=@/home", "TMPDIR=@/tmp") == built
        os.utime(folder / "cucc/Makefile", (2e9, 2e9))
        assert toolkit("HOME=@/home", "TMPDIR=@/tmp").startswith(f"{name}/tmp/")
