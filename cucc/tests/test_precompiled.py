# SPDX-License-Identifier: MIT
"""Precompiled headers (driver/precompiled.c): the same object and the same messages as without them, whatever their files have."""
import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import tools

SOURCE = """#include <stdio.h>
__global__ void add(int a, int b, int *c) { *c = a + b; }
int main() {
    int c, unused, *d;
    cudaMalloc(&d, sizeof c);
    add<<<1, 1>>>(2, 7, d);
    cudaMemcpy(&c, d, sizeof c, cudaMemcpyDeviceToHost);
    printf("%d\\n", c);
    cudaFree(d);
}
"""

pytestmark = pytest.mark.skipif(tools.CLANG, reason="they are for g++")


@pytest.fixture
def own(tmp_path):
    """A copy of the compiler with its toolkit: the headers kept there belong to this test, which no other program removes."""
    if tools.CUCC != tools.ROOM / "cucc":
        pytest.skip("an installed copy keeps none")
    tools.cucc("--toolkit")
    ignored = shutil.ignore_patterns("tests", "precompiled", ".lock")
    return shutil.copytree(tools.ROOM, tmp_path / "copy", symlinks=True, ignore=ignored) / "cucc"


def test_the_second_compilation_uses_them(tmp_path, own):
    def compiled(*more, source=SOURCE, status=0):
        (tmp_path / "main.cu").write_text(source)
        return tools.execute(own, "main.cu", "-Wall", "-o", "a.out", *more, cwd=tmp_path, status=status).err

    folder = Path(tools.execute(own, "--toolkit").out.strip()) / "precompiled"
    found = [(compiled(), len(list(folder.glob("*.gch")))) for _ in range(3)]
    assert [count for _, count in found] == [0, 1, 1]
    messages = found[0][0]
    assert {text for text, _ in found} == {messages} and "main.cu:4:12: warning: unused variable" in messages
    assert tools.execute(tmp_path / "a.out").out == "9\n"
    [kept] = folder.glob("*.gch")
    os.utime(kept, (0, kept.stat().st_mtime))
    compiled()
    assert kept.stat().st_atime > 0 or os.statvfs(folder).f_flag & os.ST_NOATIME, "it was not read"
    # A mistake has the messages of the whole text; a macro that changes the headers gets headers of its own.
    wrong = compiled(source=SOURCE.replace("a + b", "a + x"), status=1)
    assert "main.cu:2:54: error: " in wrong and wrong.count("error:") == 1
    compiled("-D_FILE_OFFSET_BITS=64")
    assert len(list(folder.glob("*.ii"))) == 2
    # Without the file, or with a damaged one, the whole text is compiled.
    kept.write_bytes(kept.read_bytes()[: 1 << 20])
    assert compiled() == messages
    assert tools.execute(tmp_path / "a.out").out == "9\n"
    # While another process writes them, a compilation does not wait.
    kept.unlink()
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert compiled() == messages and not kept.exists()
    assert compiled() == messages and kept.exists()


def test_a_named_pipe_is_read_once(tmp_path):
    os.mkfifo(tmp_path / "main.cu")
    command = [tools.CUCC, "-c", tmp_path / "main.cu", "-o", tmp_path / "main.o"]
    with subprocess.Popen(command) as process:
        (tmp_path / "main.cu").write_text(SOURCE + "#ifdef __CUDA_ARCH__\n#endif\n")
        assert process.wait(timeout=60) == 0


def test_a_line_of_an_options_file_goes_on(tmp_path):
    (tmp_path / "options").write_text("-DA=1 \\\n  -DB='2 3'\n-D\\\nC=4\n")
    shown = tools.compiled(tmp_path, SOURCE, "@options", "--dryrun").err
    assert "-D A=1 -D" in shown and "-D C=4" in shown
